/* SPDX-License-Identifier: Apache-2.0 */
/* falling.c - exponentials of what is at most 0: exp(x - r.max), where r.max is the maximum of x. */
#include "frontend/problem/problem.h"

/* Is e the greater one of field f of two states that op combines? */
static bool is_greater(const struct op *op, const struct expr *e, int f)
{
    if (e->kind == EX_OP_LET)
        e = op->let[e->which].value;
    return e->kind == EX_CALL && e->op == FN_MAX && e->arg[0]->kind == EX_LEFT && e->arg[1]->kind == EX_RIGHT &&
           e->arg[0]->field == f && e->arg[1]->field == f;
}

/* Is e field f of one of the states?  *f < 0: any field, which is found. */
static bool is_side(const struct expr *e, int *f)
{
    if (e->kind == EX_IF)
        return is_side(e->arg[1], f) && is_side(e->arg[2], f);
    if ((e->kind != EX_LEFT && e->kind != EX_RIGHT) || (*f >= 0 && e->field != *f))
        return false;
    *f = e->field;
    return true;
}

/* In a built-in operator, whose sums are at least 1 beside what is added: field f of a state less the greater one of two; or,
 * where many states meet, less that of all, which stands right. */
static bool falls_in(const struct op *op, const struct expr *x, const struct expr *most)
{
    int f = -1;
    return op->builtin && is_side(x, &f) &&
           (is_greater(op, most, f) ||
            (x->kind == EX_LEFT && most->kind == EX_RIGHT && most->field == f && is_greater(op, op->combine[f], f)));
}

static bool is_exp_of_difference(const struct expr *e)
{
    return e->kind == EX_CALL && e->op == FN_EXP && e->arg[0]->kind == EX_BINARY && e->arg[0]->op == BIN_SUB;
}

struct others {
    const struct problem *p;
    bool any;
};

static void find_other(const struct expr *e, void *user)
{
    struct others *o = user;
    o->any |= is_exp_of_difference(e) && e->arg[0]->arg[1]->kind == EX_STATE && !problem_exp_falls(o->p, NULL, e);
}

/* Has an output the exponential of another difference, such as of what a map masks?  Then both are computed in one way: as what
 * an element adds is often the same value, which then is computed once. */
static bool has_others(const struct problem *p)
{
    struct others o = { p, false };
    for (int i = 0; i < p->noutputs; i++)
        for (int f = 0; f < p->output[i].array.nfields && p->output[i].value[f]; f++)
            problem_walk(p, p->output[i].value[f], find_other, &o);
    return o.any;
}

bool problem_exp_falls(const struct problem *p, const struct op *op, const struct expr *e)
{
    if (!is_exp_of_difference(e))
        return false;
    const struct expr *x = e->arg[0]->arg[0], *most = e->arg[0]->arg[1];
    if (op)
        return falls_in(op, x, most) && !(p && has_others(p));
    if (!p || p->kind != KIND_REDUCE || most->kind != EX_STATE)
        return false;
    const struct reduction *r = &p->reduction[most->which];
    return !r->counts && is_greater(r->op, r->op->combine[most->field], most->field) &&
           expr_equal(x, r->map[most->field]);
}
