/* SPDX-License-Identifier: Apache-2.0 */
/* gen_state.c - an operator on two states, and the product of the states of all reductions, as one operator on one
 * tuple. */
#include "llvmgen/builder/kb_target.h"
#include "lower/segreduce/settle.h"
#include "output.h"

#include <string.h>

/* ---- operators --------------------------------------------------------------------------------------------------- */

kb_tup emit_combine(kb *k, const struct op *op, struct emit_env *outer, kb_tup a, kb_tup b)
{
    struct emit_env env = { .op = op, .left = &a, .right = &b, .outer = outer };
    return emit_exprs(k, &env, op->nfields, op->combine);
}

/* Field f of n states in order, by itself. */
static kb_val emit_field(kb *k, const struct op *op, struct emit_env *outer, int f, const kb_tup *x, int n)
{
    if (n == 1)
        return x[0].e[f];
    kb_tup a = x[0], b = x[n / 2];
    a.e[f] = emit_field(k, op, outer, f, x, n / 2);
    b.e[f] = emit_field(k, op, outer, f, x + n / 2, n - n / 2);
    struct emit_env env = { .op = op, .left = &a, .right = &b, .outer = outer };
    return emit_expr(k, &env, op->combine[f]);
}

/* The sum of what n states add to field f, where `known` has those before. */
static kb_val emit_share(kb *k, const struct op *op, struct emit_env *outer, int f, const kb_tup *x, int n,
                         const kb_tup *known)
{
    if (n > 1)
        return emit_binary(k, BIN_ADD, emit_share(k, op, outer, f, x, n / 2, known),
                           emit_share(k, op, outer, f, x + n / 2, n - n / 2, known));
    struct emit_env env = { .op = op, .left = x, .right = known, .outer = outer };
    return emit_expr(k, &env, op->many[f]);
}

/* n states in order, at once where that costs less. */
static kb_tup emit_combine_many(kb *k, const struct reduction *red, struct emit_env *outer, const kb_tup *x, int n)
{
    const struct op *op = red->op;
    if (n == 1)
        return x[0];
    if (!red->takes_many || n == 2)
        return emit_combine(k, op, outer, emit_combine_many(k, red, outer, x, n / 2),
                            emit_combine_many(k, red, outer, x + n / 2, n - n / 2));
    kb_tup r = x[0];
    for (int f = 0; f < op->nfields; f++) {
        const kb_tup known = r;
        r.e[f] = op->many[f] ? emit_share(k, op, outer, f, x, n, &known) : emit_field(k, op, outer, f, x, n);
    }
    return r;
}

static kb_tup emit_constants(kb *k, const struct op *op, struct emit_env *outer, const struct expr *const *e)
{
    struct emit_env env = { .op = op, .outer = outer };
    if (e[0])
        return emit_exprs(k, &env, op->nfields, e);
    kb_tup x = { .n = op->nfields };
    kb_misuse(k, "operator %s has no identity", op->name);
    for (int i = 0; i < op->nfields; i++)
        x.e[i] = kb_imm(k, op->field[i], 0);
    return x;
}

kb_tup emit_identity(kb *k, const struct op *op, struct emit_env *outer)
{
    return emit_constants(k, op, outer, op->identity);
}

kb_tup emit_pad(kb *k, const struct op *op, struct emit_env *outer)
{
    return emit_constants(k, op, outer, op->pad[0] ? op->pad : op->identity);
}

/* ---- the product of all operators -------------------------------------------------------------------------------- */

void state_env(struct point *pt, struct gen *g)
{
    env_init(pt, g, NULL);
    if (!g->here)
        return;
    pt->base = g->here->base;
    pt->segment = g->here->segment;
    memcpy(pt->index, g->here->index, sizeof pt->index);
}

static kb_tup slice(kb_tup x, int first, int n)
{
    kb_tup s = { .n = n };
    for (int i = 0; i < n; i++)
        s.e[i] = x.e[first + i];
    return s;
}

static void append(kb_tup *x, kb_tup part)
{
    for (int i = 0; i < part.n; i++)
        x->e[x->n++] = part.e[i];
}

kb_tup state_combine(struct gen *g, kb_tup left, kb_tup right)
{
    struct point pt;
    state_env(&pt, g);
    kb_tup x = { .n = 0 };
    for (int r = 0; r < g->p->nreductions; r++) {
        const struct op *op = g->p->reduction[r].op;
        if (g->p->reduction[r].counts) { /* of any type: in some tiles counters are narrower than the state's */
            const kb_val sum = kb_add(g->k, left.e[x.n], right.e[x.n]);
            append(&x, (kb_tup){ .n = 1, .e = { sum } });
            continue;
        }
        append(&x, emit_combine(g->k, op, &pt.env, slice(left, x.n, op->nfields), slice(right, x.n, op->nfields)));
    }
    return x;
}

/* ---- the states of neighbouring points --------------------------------------------------------------------------- */

/* Does a field of states of consecutive elements never become smaller?  That of their index along the only reduced axis,
 * of which operators keep one: `if … then b.index else a.index`. */
static bool grows(const struct problem *p, const struct reduction *red, int f, bool words)
{
    const struct expr *e = red->map[f], *kept = red->op->combine[f];
    int reduced = 0;
    for (int d = 0; d < p->rank; d++)
        reduced += p->space[d].reduced;
    if (e->kind == EX_CAST && ty_bytes(e->type) >= (words ? 4 : 8) && !ty_is_float(e->type))
        e = e->arg[0];
    const bool one_of_both = kept->kind == EX_IF && kept->arg[1]->field == f && kept->arg[2]->field == f &&
                             kept->arg[1]->kind == EX_RIGHT && kept->arg[2]->kind == EX_LEFT;
    return p->kind == KIND_REDUCE && reduced == 1 && one_of_both && e->kind == EX_INDEX && p->space[e->which].reduced;
}

struct later {
    int field;
    const struct expr *found; /* b.field < a.field */
};

static void find_later(const struct expr *e, void *user)
{
    struct later *x = user;
    if (e->kind == EX_BINARY && e->op == BIN_LT && e->arg[0]->kind == EX_RIGHT && e->arg[1]->kind == EX_LEFT &&
        e->arg[0]->field == x->field && e->arg[1]->field == x->field)
        x->found = e;
}

/* What an operator asks of a later element that is never so, or NULL: does b have a smaller index? */
static const struct expr *never_of_later(const struct problem *p, const struct reduction *red, bool words)
{
    struct later x = { 0 };
    for (; x.field < red->op->nfields && !x.found; x.field++) {
        for (int i = 0; i < red->op->nlets && grows(p, red, x.field, words); i++)
            expr_walk(red->op->let[i].value, find_later, &x);
    }
    return x.found;
}

/* States of elements, left ones before right ones. */
static kb_tup combine_later(struct gen *g, kb_tup left, kb_tup right, bool words)
{
    struct point pt;
    kb_tup x = { .n = 0 };
    state_env(&pt, g);
    for (int r = 0; r < g->p->nreductions; r++) {
        const struct reduction *red = &g->p->reduction[r];
        const struct expr *never = red->counts ? NULL : never_of_later(g->p, red, words);
        if (!never)
            return state_combine(g, left, right);
        const kb_tup a = slice(left, x.n, red->op->nfields), b = slice(right, x.n, red->op->nfields);
        struct emit_env env = {
            .op = red->op, .left = &a, .right = &b, .outer = &pt.env, .known = never, .known_value = kb_false(g->k)
        };
        append(&x, emit_exprs(g->k, &env, red->op->nfields, red->op->combine));
    }
    return x;
}

static kb_tup of_points(struct gen *g, struct point *pt, int lo, int hi, bool words)
{
    if (hi - lo == 1)
        return point_map(&pt[lo]);
    const int mid = lo + (hi - lo) / 2;
    const kb_tup left = of_points(g, pt, lo, mid, words);
    return combine_later(g, left, of_points(g, pt, mid, hi, words), words);
}

kb_tup state_of_points(struct gen *g, struct point *pt, int lo, int hi) { return of_points(g, pt, lo, hi, false); }

kb_tup state_of_tile(struct gen *g, struct point *pt, int n) { return of_points(g, pt, 0, n, true); }

kb_tup state_combine_many(struct gen *g, const kb_tup *x, int n)
{
    struct point pt;
    state_env(&pt, g);
    kb_tup out = { .n = 0 };
    for (int r = 0; r < g->p->nreductions; r++) {
        const struct op *op = g->p->reduction[r].op;
        kb_tup part[GEN_MANY_MAX];
        for (int i = 0; i < n; i++)
            part[i] = slice(x[i], out.n, op->nfields);
        append(&out, emit_combine_many(g->k, &g->p->reduction[r], &pt.env, part, n));
    }
    return out;
}

static const struct expr *added(const struct reduction *red, int f)
{
    return red->takes_many ? red->op->many[f] : NULL;
}

kb_val state_field_share(struct gen *g, int r, int f, kb_tup x, kb_tup known)
{
    const struct reduction *red = &g->p->reduction[r];
    const int first = state_first(g->p, r);
    const kb_tup own = slice(x, first, red->op->nfields), total = slice(known, first, red->op->nfields);
    struct point pt;
    state_env(&pt, g);
    return added(red, f) ? emit_share(g->k, red->op, &pt.env, f, &own, 1, &total) : own.e[f];
}

kb_val state_field_join(struct gen *g, int r, int f, kb_val a, kb_val b)
{
    const struct reduction *red = &g->p->reduction[r];
    kb_tup left = slice(state_zero(g), state_first(g->p, r), red->op->nfields), right = left;
    struct point pt;
    state_env(&pt, g);
    if (added(red, f))
        return emit_binary(g->k, BIN_ADD, a, b);
    left.e[f] = a, right.e[f] = b;
    struct emit_env env = { .op = red->op, .left = &left, .right = &right, .outer = &pt.env };
    return emit_expr(g->k, &env, red->op->combine[f]);
}

kb_val state_field_pad(struct gen *g, int r, int f)
{
    const int first = state_first(g->p, r);
    return added(&g->p->reduction[r], f) ? kb_imm(g->k, g->field[first + f], 0) : state_pad_value(g).e[first + f];
}

kb_tup state_pad_value(struct gen *g)
{
    struct point pt;
    state_env(&pt, g);
    kb_tup x = { .n = 0 };
    for (int r = 0; r < g->p->nreductions; r++) {
        const struct op *op = g->p->reduction[r].op;
        const kb_val none = kb_imm(g->k, g->field[x.n], 0);
        append(&x, g->p->reduction[r].counts ? (kb_tup){ .n = 1, .e = { none } } : emit_pad(g->k, op, &pt.env));
    }
    return x;
}

kb_tup state_zero(struct gen *g)
{
    kb_tup x = { .n = g->nfields };
    for (int f = 0; f < g->nfields; f++)
        x.e[f] = kb_imm(g->k, g->field[f], 0);
    return x;
}

void state_accumulate(struct gen *g, kb_tvar acc, kb_var have, kb_tup x)
{
    kb *k = g->k;
    kb_if(k, kb_get(k, have)) {
        kb_set(k, acc, state_combine(g, kb_get(k, acc), x));
    }
    kb_else { kb_set(k, acc, x); }
    kb_set(k, have, kb_true(k));
}

static kb_val conditions_hold(struct gen *g, const struct settle *c, const kb_tup *state, const kb_tup *x)
{
    kb *k = g->k;
    struct point pt;
    struct emit_env env = { .op = g->p->reduction[0].op, .left = state, .right = x, .outer = &pt.env };
    kb_val all = kb_true(k);
    state_env(&pt, g);
    for (int i = 0; i < c->n; i++) {
        const kb_val holds = emit_expr(k, &env, c->condition[i]);
        all = kb_and(k, all, c->holds[i] ? holds : kb_not(k, holds));
    }
    return all;
}

void state_take_element(struct gen *g, kb_tvar acc, kb_var have, kb_var settled, kb_tup x)
{
    kb *k = g->k;
    struct settle conditions;
    settle_find(g->p, &conditions);
    const kb_tup before = kb_get(k, acc);
    const kb_val hold = conditions_hold(g, &conditions, &before, &x);
    kb_if(k, kb_not(k, kb_and(k, kb_get(k, settled), hold))) {
        kb_val same = kb_and(k, hold, kb_get(k, have));
        state_accumulate(g, acc, have, x);
        const kb_tup after = kb_get(k, acc);
        for (int f = 0; f < g->nfields; f++)
            same = kb_and(k, same, kb_eq(k, field_bits(k, before.e[f]), field_bits(k, after.e[f])));
        kb_set(k, settled, same);
    }
}

/* init combined with x by reduction r, where `begins`. */
static kb_tup begin_with_init(struct gen *g, struct point *pt, int r, kb_val begins, kb_tup x)
{
    kb *k = g->k;
    const struct reduction *red = &g->p->reduction[r];
    if (!red->init[0])
        return x;
    const kb_tup init = emit_exprs(k, &pt->env, red->op->nfields, red->init);
    kb_tvar result = kb_var_new(k, x, "begun");
    kb_if(k, begins) {
        kb_set(k, result, emit_combine(k, red->op, &pt->env, init, x));
    }
    return kb_get(k, result);
}

kb_tup state_with_init(struct gen *g, kb_val begins, kb_tup x)
{
    struct point pt;
    state_env(&pt, g);
    kb_tup out = { .n = 0 };
    for (int r = 0; r < g->p->nreductions; r++)
        append(&out, begin_with_init(g, &pt, r, begins, slice(x, out.n, g->p->reduction[r].op->nfields)));
    return out;
}

kb_tup state_start(struct gen *g)
{
    struct point pt;
    state_env(&pt, g);
    const kb_tup zero = state_zero(g);
    kb_tup x = { .n = 0 };
    for (int r = 0; r < g->p->nreductions; r++) {
        const struct reduction *red = &g->p->reduction[r];
        if (red->init[0])
            append(&x, emit_exprs(g->k, &pt.env, red->op->nfields, red->init));
        else if (red->op->identity[0])
            append(&x, emit_identity(g->k, red->op, &pt.env));
        else
            append(&x, slice(zero, x.n, red->op->nfields));
    }
    return x;
}

kb_arr state_shared(struct gen *g, int count, const char *name)
{
    return kb_shared(g->k, g->nfields, g->field, count, name);
}

/* init combined on the left; without elements, init or the identity alone (checked before the launch where neither is). */
static kb_tup with_init(struct gen *g, struct point *pt, int r, kb_tup total, kb_val empty)
{
    kb *k = g->k;
    const struct reduction *red = &g->p->reduction[r];
    const int n = red->op->nfields;
    if (!red->init[0] && !red->op->identity[0])
        return total;
    if (!red->init[0])
        return kb_select(k, empty, emit_identity(k, red->op, &pt->env), total);
    const kb_tup init = emit_exprs(k, &pt->env, n, red->init);
    kb_tvar result = kb_var_new(k, init, "result");
    kb_if(k, kb_not(k, empty)) {
        kb_set(k, result, emit_combine(k, red->op, &pt->env, init, total));
    }
    return kb_get(k, result);
}

kb_tup state_results(struct gen *g, kb_tup total, kb_val empty)
{
    struct point pt;
    state_env(&pt, g);
    kb_tup state = { .n = 0 };
    for (int r = 0; r < g->p->nreductions; r++)
        append(&state, with_init(g, &pt, r, slice(total, state.n, g->p->reduction[r].op->nfields), empty));
    return state;
}

void state_store(struct gen *g, const kb_tup *results)
{
    struct point pt;
    state_env(&pt, g);
    pt.state = results;
    results_leave(g, &pt);
    outputs_store_total(&pt);
}

void state_finish(struct gen *g, kb_tup total, kb_val empty)
{
    const kb_tup results = state_results(g, total, empty);
    state_store(g, &results);
}
