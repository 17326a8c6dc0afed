/* SPDX-License-Identifier: Apache-2.0 */
/* prove.c - laws as questions: is there a state for which the sides differ?
 *
 * First for any states at all; often both sides are then one term and nothing is asked.  Where the map reaches only
 * some states, the answer "yes" may be about states that never occur: then with what is known of those that do
 * (invariant.c), and for a counterexample with states that are single elements.  Every counterexample is put to the
 * oracle before it counts.
 */
#include <string.h>

#include "terms.h"

struct prover {
    struct arena *a;
    const struct problem *p;
    const struct reduction *red;
    struct z3 *z3;
    struct evaluator v;
    struct world world;
    bool free; /* any state occurs */
    struct invariants inv[2];
    bool looked[2];
    bool resting;
};

struct prover *prover_open(struct arena *a, const struct problem *p, const struct reduction *red,
                           const struct laws_options *o)
{
    struct prover *q = arena_new(a, struct prover, 1);
    *q = (struct prover){ .a = a, .p = p, .red = red, .z3 = z3_open(a, o) };
    q->world = (struct world){ .p = p, .red = red, .seed = 1 };
    q->free = world_map_is_free(p, red);
    evaluator_begin(&q->v, a, &q->world);
    return q;
}

void prover_close(struct prover *q) { z3_close(q->z3); }
void prover_rest(struct prover *q) { q->resting = true; }
bool prover_is_there(const struct prover *q) { return q->z3 != NULL; }

enum domain { DOMAIN_ANY, DOMAIN_INVARIANT, DOMAIN_ELEMENTS };

/* A question under construction. */
struct question {
    struct terms t;
    struct symbols s;
    term a[STATE_FIELDS_MAX], b[STATE_FIELDS_MAX], c[STATE_FIELDS_MAX];
    term equal[STATE_FIELDS_MAX]; /* the sides in each field */
    term fact[3 * 256 + 1];
    int nfacts;
};

static void operand(struct prover *q, struct question *ask, enum domain domain, int k, term *out)
{
    static const char *const name[] = { "a", "b", "c" };
    const struct invariants *inv = &q->inv[ask->t.level];
    if (domain == DOMAIN_ELEMENTS)
        symbols_element(&ask->s, k, out);
    else
        symbols_state(&ask->s, name[k], out);
    for (int i = 0; domain == DOMAIN_INVARIANT && i < inv->n; i++)
        ask->fact[ask->nfacts++] = symbols_claim(&ask->s, inv->claim[i], out);
}

/* Both sides of the law are equal, as a term. */
static term law_term(struct prover *q, struct question *ask, enum domain domain, enum law law, bool right,
                     const struct state *identity)
{
    const struct op *op = q->red->op;
    struct symbols *s = &ask->s;
    term l[STATE_FIELDS_MAX], r[STATE_FIELDS_MAX], e[STATE_FIELDS_MAX];
    operand(q, ask, domain, 0, ask->a);
    operand(q, ask, domain, 1, ask->b);
    operand(q, ask, domain, 2, ask->c);
    memcpy(r, ask->a, sizeof r);
    switch (law) {
    case LAW_ASSOCIATIVE:
        symbols_combine(s, ask->a, ask->b, l);
        symbols_combine(s, l, ask->c, l);
        symbols_combine(s, ask->b, ask->c, r);
        symbols_combine(s, ask->a, r, r);
        break;
    case LAW_COMMUTATIVE:
        symbols_combine(s, ask->a, ask->b, l);
        symbols_combine(s, ask->b, ask->a, r);
        break;
    case LAW_IDENTITY:
        symbols_identity(s, identity, e);
        symbols_combine(s, right ? ask->a : e, right ? e : ask->a, l);
        break;
    default: symbols_combine(s, ask->a, ask->a, l); break;
    }
    term all = term_true(&ask->t, true);
    for (int f = 0; f < op->nfields; f++)
        all = term_and(&ask->t, all, ask->equal[f] = term_equal(&ask->t, l[f], r[f]));
    return all;
}

/* ---- models ---- */

enum { ASK_MAX = 3 * STATE_FIELDS_MAX + PROBLEM_ARGS_MAX + 16 * PROBLEM_ARGS_MAX };

struct wishes {
    term term[ASK_MAX];
    union value model[ASK_MAX];
    bool given[ASK_MAX];
    int n, nstates;
    struct fixed fixed[ASK_MAX];
    int nfixed;
};

static void wish_fixed(struct question *ask, struct wishes *w, enum expr_kind kind, int which, int field)
{
    struct fixed x = { .kind = kind, .which = which, .field = field };
    term t = w->n < ASK_MAX ? symbols_fixed(&ask->s, &x) : NULL;
    if (!t)
        return;
    w->term[w->n++] = t;
    w->fixed[w->nfixed++] = x;
}

static void wish(struct prover *q, struct question *ask, struct wishes *w)
{
    const term *const of[] = { ask->a, ask->b, ask->c };
    w->n = w->nfixed = 0;
    for (int i = 0; i < 3; i++)
        for (int f = 0; f < q->red->op->nfields; f++)
            w->term[w->n++] = of[i][f];
    w->nstates = w->n;
    for (int i = 0; i < q->p->nparams; i++)
        wish_fixed(ask, w, EX_PARAM, i, 0);
    for (int i = 0; i < q->p->nsizes; i++)
        wish_fixed(ask, w, EX_SIZE, i, 0);
    for (int i = 0; i < q->p->ninputs; i++)
        for (int f = 0; f < q->p->input[i].array.nfields; f++)
            wish_fixed(ask, w, EX_INPUT, i, f);
}

/* Does the oracle agree that the model is a counterexample? */
static bool confirm(struct prover *q, enum level level, enum law law, bool right, const struct state *identity,
                    struct wishes *w, struct example *out)
{
    const int nfields = q->red->op->nfields;
    struct trial t = { .law = law, .right = right, .count = { 1, 1, 1 }, .world = q->world };
    struct state *const to[] = { &t.a, &t.b, &t.c };
    int field;
    for (int i = 0; i < w->n; i++)
        if (!w->given[i])
            return false;
    for (int i = 0; i < w->nstates; i++)
        to[i / nfields]->field[i % nfields].bits = w->model[i];
    for (int i = 0; i < w->nfixed; i++)
        w->fixed[i].value = w->model[w->nstates + i];
    struct fixed *kept = arena_new(q->a, struct fixed, w->nfixed ? w->nfixed : 1);
    memcpy(kept, w->fixed, sizeof *kept * (size_t)w->nfixed);
    t.world.fixed = kept;
    t.world.nfixed = w->nfixed;
    t.identity = identity;
    if (level == LEVEL_IDEAL) {
        struct trial ideal = t;
        if (!trial_lift(&ideal))
            return false;
        q->v.w = &ideal.world;
        q->v.undefined = q->v.overflow = false;
        if (trial_sides(&q->v, &ideal, &field) != OUTCOME_DIFFERENT)
            return false;
    }
    return trial_replay(&q->v, &t, out);
}

/* ---- proofs ---- */

/* The fields one by one: several simple questions where the one about all of them was too hard. */
static bool each_field(struct prover *q, struct question *ask, bool clean)
{
    for (int f = 0; f < q->red->op->nfields; f++) {
        if (term_is(ask->equal[f], "true"))
            continue;
        ask->fact[ask->nfacts] = term_not(&ask->t, ask->equal[f]);
        if (z3_ask(q->z3, &ask->t, ask->fact, ask->nfacts + 1, clean, NULL, 0, NULL, NULL) != ANSWER_NO)
            return false;
    }
    return true;
}

static enum proof ask_once(struct prover *q, enum level level, enum domain domain, bool clean, enum law law, bool right,
                           const struct state *identity, struct example *out)
{
    struct question *ask = arena_new(q->a, struct question, 1);
    struct wishes *w = arena_new(q->a, struct wishes, 1);
    terms_begin(&ask->t, q->a, level);
    symbols_begin(&ask->s, &ask->t, q->p, q->red);
    term all = law_term(q, ask, domain, law, right, identity);
    if (term_is(all, "true") && !ask->t.lost)
        return PROOF_YES;
    if (level == LEVEL_IDEAL && domain != DOMAIN_ELEMENTS && (algebra_is_for(&ask->t) || !q->z3 || q->resting) &&
        algebra_proves(&ask->t, q->resting ? NULL : q->z3, all, ask->fact, ask->nfacts))
        return PROOF_YES;
    if (!q->z3 || q->resting)
        return PROOF_UNKNOWN;
    wish(q, ask, w);
    ask->fact[ask->nfacts++] = term_not(&ask->t, all);
    switch (z3_ask(q->z3, &ask->t, ask->fact, ask->nfacts, clean, w->term, w->n, w->model, w->given)) {
    case ANSWER_NO: return domain == DOMAIN_ELEMENTS ? PROOF_UNKNOWN : PROOF_YES;
    case ANSWER_YES:
        if (domain != DOMAIN_ELEMENTS && !q->free)
            return PROOF_UNKNOWN;
        return confirm(q, level, law, right, identity, w, out) ? PROOF_NO : PROOF_UNKNOWN;
    default:
        ask->nfacts--;
        return domain != DOMAIN_ELEMENTS && q->red->op->nfields > 1 && each_field(q, ask, clean) ? PROOF_YES
                                                                                                 : PROOF_UNKNOWN;
    }
}

/* One side of the law. */
static enum proof prove(struct prover *q, enum level level, enum law law, bool right, const struct state *identity,
                        struct example *out)
{
    enum proof proof = ask_once(q, level, DOMAIN_ANY, false, law, right, identity, out);
    if (proof != PROOF_UNKNOWN || !q->z3 || q->resting)
        return proof;
    if (level == LEVEL_IDEAL)
        proof = ask_once(q, level, DOMAIN_ANY, true, law, right, identity, out);
    if (proof != PROOF_UNKNOWN || q->free)
        return proof;
    if (!q->looked[level]) {
        q->v.w = &q->world;
        invariants_find(&q->inv[level], &q->v, q->z3, level);
        q->looked[level] = true;
    }
    if (q->inv[level].n)
        proof = ask_once(q, level, DOMAIN_INVARIANT, false, law, right, identity, out);
    if (proof == PROOF_UNKNOWN && q->inv[level].n && level == LEVEL_IDEAL)
        proof = ask_once(q, level, DOMAIN_INVARIANT, true, law, right, identity, out);
    return proof != PROOF_UNKNOWN
               ? proof
               : ask_once(q, level, DOMAIN_ELEMENTS, level == LEVEL_IDEAL, law, right, identity, out);
}

enum proof prover_law(struct prover *q, enum level level, enum law law, const struct state *identity,
                      struct example *out)
{
    const enum proof left = prove(q, level, law, false, identity, out);
    if (law != LAW_IDENTITY || left == PROOF_NO)
        return left;
    const enum proof right = prove(q, level, law, true, identity, out);
    return right == PROOF_NO || left == PROOF_YES ? right : left;
}
