/* SPDX-License-Identifier: Apache-2.0 */
/* plan_read.c - a plan back from its text, for experiments and tuning.
 *
 * Strategy, tunables, alignment and guard of each case are taken from the text; kernels, buffers and steps are then
 * built as the planner builds them, and the formulas that the text gives (grids, bytes, dynamic shared memory) take
 * their place.  A kernel or buffer that does not fit the tunables is an error, so that a plan cannot say one thing and
 * do another.
 */
#include "lower_impl.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/yaml_doc.h"

struct reader {
    struct ptxgen_session *s;
    struct planner pl;
    bool ok;
};

static void wrong(struct reader *r, const struct ynode *at, const char *what)
{
    diag_error(&r->s->diags, D_BAD_PLAN, at ? at->at : span_none(), "%s", what);
    r->ok = false;
}

/* A scalar's text, or NULL after a message when it is required. */
static const char *scalar(struct reader *r, const struct ynode *mapping, const char *key, bool required)
{
    const struct ynode *v = mapping && mapping->kind == Y_MAPPING ? ynode_get(mapping, key) : NULL;
    if (v && v->kind == Y_SCALAR)
        return v->text;
    if (required || v)
        wrong(r, v ? v : mapping, arena_printf(&r->s->arena, "'%s' must be given, as a scalar", key));
    return NULL;
}

static int number(struct reader *r, const struct ynode *mapping, const char *key, int otherwise)
{
    const char *text = scalar(r, mapping, key, false);
    char *end;
    if (!text)
        return otherwise;
    const long x = strtol(text, &end, 10);
    if (*end || end == text || x < 0 || x > 1 << 20)
        wrong(r, ynode_get(mapping, key), arena_printf(&r->s->arena, "'%s' must be a whole number", key));
    return (int)x;
}

static bool flag(struct reader *r, const struct ynode *mapping, const char *key)
{
    const char *text = scalar(r, mapping, key, false);
    if (text && strcmp(text, "true") && strcmp(text, "false"))
        wrong(r, ynode_get(mapping, key), arena_printf(&r->s->arena, "'%s' must be true or false", key));
    return text && !strcmp(text, "true");
}

static void formula(struct reader *r, const struct ynode *mapping, const char *key, const struct prog_case *c,
                    struct formula *out)
{
    const char *text = scalar(r, mapping, key, false);
    if (!text)
        return;
    const struct formula_names names = plan_names(&r->s->arena, r->pl.plan, c);
    int at = 0;
    const char *message = formula_parse(text, &names, out, &at);
    if (message) {
        const struct ynode *v = ynode_get(mapping, key);
        diag_error(&r->s->diags, D_BAD_PLAN, ynode_span(v, (uint32_t)at, (uint32_t)at + 1), "%s", message);
        r->ok = false;
    }
}

static const struct ynode *list(const struct ynode *mapping, const char *key)
{
    const struct ynode *v = ynode_get(mapping, key);
    return v && v->kind == Y_SEQUENCE ? v : NULL;
}

static void read_tunables(struct reader *r, struct plan_case *c, const struct ynode *y)
{
    for (int i = 0; y && y->kind == Y_MAPPING && i < y->count; i++) {
        const struct ypair *pair = &y->pair[i];
        int t = 0;
        while (t < TN_COUNT && strcmp(pair->key->text, tunable_name(t)))
            t++;
        if (t == TN_COUNT || !(c->strategy->tunables & 1u << t)) {
            wrong(r, pair->key,
                  arena_printf(&r->s->arena, "%s has no tunable '%s'", c->code.strategy, pair->key->text));
            continue;
        }
        c->tunable[t] = number(r, y, pair->key->text, 0);
        c->overridden[t] = true;
        c->tunable_from[t] = "plan";
    }
}

static void compare_kernels(struct reader *r, const struct plan_case *c, const struct ynode *y)
{
    for (int i = 0; y && i < y->count; i++) {
        const char *name = scalar(r, y->item[i], "name", true);
        if (i >= c->code.nkernels || (name && strcmp(name, c->code.kernel[i].name)))
            wrong(r, y->item[i], "the strategy has no such kernel");
        else if (number(r, y->item[i], "threads", c->code.kernel[i].threads) != c->code.kernel[i].threads)
            wrong(r, y->item[i], "threads differ from the tunables");
    }
}

static void read_buffers(struct reader *r, struct plan_case *c, const struct ynode *y)
{
    for (int i = 0; y && i < y->count; i++) {
        const char *name = scalar(r, y->item[i], "name", true);
        if (i >= c->code.nbuffers || (name && strcmp(name, c->code.buffer[i].name)))
            wrong(r, y->item[i], "the strategy has no such buffer");
        else
            formula(r, y->item[i], "bytes", &c->code, &c->code.buffer[i].bytes);
    }
}

static void read_steps(struct reader *r, struct plan_case *c, const struct ynode *y)
{
    for (int i = 0; y && i < y->count; i++) {
        if (i >= c->code.nsteps) {
            wrong(r, y->item[i], "the strategy has no such step");
            continue;
        }
        formula(r, y->item[i], "grid", &c->code, &c->code.step[i].grid);
        formula(r, y->item[i], "shared", &c->code, &c->code.step[i].shared);
        if (ynode_get(y->item[i], "dependent"))
            c->code.step[i].dependent = flag(r, y->item[i], "dependent");
    }
}

static void read_case(struct reader *r, const struct ynode *y)
{
    const char *name = scalar(r, y, "name", true), *strategy_name = scalar(r, y, "strategy", true);
    const struct strategy *row = strategy_name ? strategy_by_name(strategy_name) : NULL;
    const char *why = NULL;
    if (!name || !strategy_name)
        return;
    if (!row || row->kind != r->pl.plan->problem->kind) {
        wrong(r, ynode_get(y, "strategy"), "no such strategy for this kind of problem");
        return;
    }
    if (!row->fits(r->pl.plan->problem, &r->pl.plan->device, &r->s->arena, &why)) {
        wrong(r, ynode_get(y, "strategy"), arena_printf(&r->s->arena, "%s does not fit: %s", row->name, why));
        return;
    }
    struct plan_case *c = plan_case_add(&r->pl, row, name, (struct formula){ 0 });
    formula(r, y, "guard", NULL, &c->code.guard);
    read_tunables(r, c, ynode_get(y, "tunables"));
    c->aligned = flag(r, y, "aligned");
    c->shift[0] = number(r, y, "shift0", 0) % 16;
    c->shift[1] = number(r, y, "shift1", 0) % 16;
    if (!r->ok || !row->build(&r->pl, c)) {
        r->ok = false;
        return;
    }
    compare_kernels(r, c, list(y, "kernels"));
    read_buffers(r, c, list(y, "buffers"));
    read_steps(r, c, list(y, "steps"));
}

static void read_checks(struct reader *r, const struct ynode *y)
{
    for (int i = 0; y && i < y->count && r->pl.plan->nchecks < PLAN_CHECKS_MAX; i++) {
        struct formula condition = { 0 };
        const char *message = scalar(r, y->item[i], "message", true);
        formula(r, y->item[i], "condition", NULL, &condition);
        if (message)
            plan_check(&r->pl, condition, message);
    }
}

const struct plan *plan_read(struct ptxgen_session *s, const struct problem *p, const char *file, const char *text,
                             size_t length)
{
    diags_source(&s->diags, file, text, length);
    const int errors = s->diags.errors;
    const struct ynode *root = yaml_parse(&s->diags, text, length);
    if (!root || s->diags.errors > errors)
        return NULL;
    struct reader r = { .s = s, .ok = true };
    struct plan *plan = plan_new(s, p);
    plan->origin = PLAN_READ;
    r.pl = (struct planner){ .s = s, .plan = plan };
    const char *arch = scalar(&r, root, "arch", true), *problem = scalar(&r, root, "problem", true);
    if (problem && strcmp(problem, p->name))
        wrong(&r, ynode_get(root, "problem"),
              arena_printf(&s->arena, "the plan is for '%s', the problem is '%s'", problem, p->name));
    if (arch && !device_by_name(arch, number(&r, root, "ptx", 0), &plan->device))
        wrong(&r, ynode_get(root, "arch"), "unknown architecture, or a PTX version that it does not have");
    if (!r.ok)
        return NULL;
    plan_launch_checks(&r.pl);
    read_checks(&r, list(root, "checks"));
    plan_drop_repeated_checks(plan, 0);
    const struct ynode *cases = list(root, "cases");
    if (!cases || cases->count < 1 || cases->count > PLAN_CASES_MAX)
        wrong(&r, root, "'cases' must be a list of 1 to 16 cases");
    for (int i = 0; r.ok && i < cases->count; i++)
        read_case(&r, cases->item[i]);
    return r.ok ? plan : NULL;
}
