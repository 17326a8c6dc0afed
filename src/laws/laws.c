/* SPDX-License-Identifier: Apache-2.0 */
/* laws.c - verdicts.
 *
 *   trials, ideally: the sides differ                    refuted
 *   trials, bit for bit: all equal; proof in bits        proved
 *   proof over the integers and reals                    proved ideally, with the bits' difference as an example
 *   otherwise                                            unknown
 *
 * Trials come first because they are quick and their examples small; a proof may still find what trials missed.
 */
#include <string.h>

#include "laws_impl.h"

static void set_example(struct evaluator *v, struct arena *a, struct law_finding *out, const struct example *x)
{
    out->field = x->field;
    out->example = example_text(a, x);
    out->cause = example_cause(v, x);
}

static void refute(struct evaluator *v, struct arena *a, struct law_finding *out, const struct example *x,
                   const char *method)
{
    set_example(v, a, out, x);
    out->verdict = LAW_REFUTED;
    out->cause = NULL;
    out->method = method;
}

/* An example from a proof: does nothing leave its type in it? */
static bool holds_ideally(struct evaluator *v, const struct example *x)
{
    struct trial t = x->trial;
    int field;
    v->w = &t.world;
    v->undefined = v->overflow = false;
    return trial_lift(&t) && trial_sides(v, &t, &field) == OUTCOME_DIFFERENT;
}

static void judge(struct evaluator *v, struct prover *q, struct arena *a, enum law law, const struct state *identity,
                  struct law_finding *out)
{
    const struct world *w = v->w;
    struct search_result found;
    struct example x = { .found = false };
    *out = (struct law_finding){ .verdict = LAW_UNKNOWN, .method = "trials" };
    search_law(v, law, identity, &found);
    v->w = w;
    if (found.ideal.found) {
        refute(v, a, out, &found.ideal, "trials");
        return;
    }
    if (found.complete) {
        *out = (struct law_finding){ .verdict = LAW_PROVED, .method = "all values" };
        return;
    }
    if (!found.bits.found) {
        const enum proof proof = prover_law(q, LEVEL_BITS, law, identity, &x);
        if (proof == PROOF_YES) {
            *out = (struct law_finding){ .verdict = LAW_PROVED, .method = "proof" };
            return;
        }
        if (proof == PROOF_NO && holds_ideally(v, &x)) {
            refute(v, a, out, &x, "proof");
            return;
        }
        if (proof == PROOF_NO)
            found.bits = x;
    }
    if (found.bits.found)
        set_example(v, a, out, &found.bits);
    const enum proof proof = prover_law(q, LEVEL_IDEAL, law, identity, &x);
    if (proof == PROOF_NO)
        refute(v, a, out, &x, "proof");
    else if (proof == PROOF_YES)
        out->verdict = LAW_PROVED_IDEAL, out->method = "proof";
}

/* ---- identities ---- */

static const char *identity_text(struct arena *a, const struct op *op, const struct state *e)
{
    struct str text = { 0 };
    state_text(op, e, &text);
    const char *kept = arena_strdup(a, text.text ? text.text : "");
    str_finish(&text);
    return kept;
}

/* Where none is declared, or a wrong one: one that can be proved, at either level. */
static void find_identity(struct evaluator *v, struct prover *q, struct arena *a, struct law_report *report)
{
    struct state e = { 0 };
    struct law_finding finding;
    const struct world *w = v->w;
    if (!search_identity(v, &e))
        return;
    judge(v, q, v->a, LAW_IDENTITY, &e, &finding);
    v->w = w;
    if (finding.verdict == LAW_PROVED || finding.verdict == LAW_PROVED_IDEAL)
        report->identity = identity_text(a, w->red->op, &e);
}

/* ---- reports ---- */

static void note_real(const struct expr *e, void *user)
{
    if (ty_is_float(e->type))
        *(bool *)user = true;
}

static bool is_integral(const struct op *op)
{
    bool reals = false;
    for (int f = 0; f < op->nfields; f++) {
        reals |= ty_is_float(op->field[f]);
        expr_walk(op->combine[f], note_real, &reals);
    }
    return !reals;
}

/* Operators of a scan with `starts` have a field that says where a segment begins (where.c), and do not commute. */
static const char *operator_text(struct arena *a, const struct problem *p, const struct reduction *red)
{
    return p->starts && !red->counts ? arena_printf(a, "%s, anew in each segment", red->op->name) : red->op->name;
}

static void report_one(struct ptxgen_session *s, struct arena *scratch, const struct problem *p,
                       const struct reduction *red, const struct laws_options *o, struct law_report *report)
{
    const struct op *op = red->op;
    const struct world w = { .p = p, .red = red, .seed = 1 };
    struct evaluator v;
    struct prover *q = prover_open(scratch, p, red, o);
    *report = (struct law_report){ .name = red->name,
                                   .operator= operator_text(&s->arena, p, red),
                                   .integers = is_integral(op) };
    for (int law = 0; law < LAW_COUNT; law++) {
        evaluator_begin(&v, scratch, &w);
        if (law == LAW_IDENTITY && !op->identity[0])
            report->law[law] = (struct law_finding){ .verdict = LAW_ABSENT, .method = "" };
        else
            judge(&v, q, &s->arena, (enum law)law, NULL, &report->law[law]);
        report->law[law].expected = law == LAW_ASSOCIATIVE || (law == LAW_COMMUTATIVE && op->commutative) ||
                                    (law == LAW_IDENTITY && op->identity[0]);
        if (law == LAW_ASSOCIATIVE && report->law[law].verdict == LAW_REFUTED)
            prover_rest(q); /* the spec has to be changed anyway */
    }
    const enum law_verdict identity = report->law[LAW_IDENTITY].verdict;
    evaluator_begin(&v, scratch, &w);
    if (identity == LAW_ABSENT || identity == LAW_REFUTED)
        find_identity(&v, q, &s->arena, report);
    report->prover = prover_is_there(q);
    prover_close(q);
}

struct checking {
    struct ptxgen_session *s;
    const struct problem *p;
    const struct reduction *red;
    const struct laws_options *o;
    struct law_report *report;
};

static void check_one(struct arena *scratch, void *user)
{
    const struct checking *c = user;
    report_one(c->s, scratch, c->p, c->red, c->o, c->report);
}

const struct problem *laws_subject(struct arena *a, const struct problem *p)
{
    if (p->binned)
        return p->binned;
    if (!p->ngatherers)
        return p;
    struct problem *all = arena_new(a, struct problem, 1);
    struct reduction *red = arena_new(a, struct reduction, p->nreductions + p->ngatherers);
    *all = *p;
    all->reduction = red;
    for (int i = 0; i < p->nreductions; i++)
        red[i] = p->reduction[i];
    for (int i = 0; i < p->ngatherers; i++) {
        const struct gatherer *g = &p->gatherer[i];
        struct reduction *r = &red[all->nreductions++];
        *r = (struct reduction){ .name = g->name, .op = g->op, .at = g->at };
        memcpy(r->map, g->map, sizeof *r->map * (size_t)g->op->nfields);
    }
    return all;
}

void laws_check(struct ptxgen_session *s, const struct problem *p, const struct laws_options *o,
                struct law_report *report)
{
    for (int i = 0; i < p->nreductions; i++) {
        struct checking c = { s, p, &p->reduction[i], o, &report[i] };
        session_scratch(s, check_one, &c);
    }
    laws_complain(s, p, report);
}

const struct problem *laws_apply(struct ptxgen_session *s, const struct problem *p, const struct law_report *report)
{
    struct problem *changed = NULL;
    struct reduction *red = NULL;
    for (int i = 0; i < p->nreductions; i++) {
        const struct op *op = p->reduction[i].op;
        const bool commutes = report[i].law[LAW_COMMUTATIVE].verdict == LAW_PROVED;
        if (op->commutative || !commutes)
            continue;
        if (!changed) {
            changed = arena_new(&s->arena, struct problem, 1);
            red = arena_new(&s->arena, struct reduction, p->nreductions);
            *changed = *p;
            for (int k = 0; k < p->nreductions; k++)
                red[k] = p->reduction[k];
            changed->reduction = red;
        }
        struct op *better = arena_new(&s->arena, struct op, 1);
        *better = *op;
        better->commutative = true;
        better->exact = report[i].law[LAW_ASSOCIATIVE].verdict == LAW_PROVED;
        red[i].op = better;
    }
    return changed ? changed : p;
}
