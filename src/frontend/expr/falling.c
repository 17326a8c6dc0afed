/* SPDX-License-Identifier: Apache-2.0 */
/* falling.c - exponentials of what is at most 0: exp(x - r.max), where r.max is the maximum of x. */
#include "frontend/problem/problem.h"

/* Is field f of combined states the greater one? */
static bool is_greatest(const struct op *op, int f)
{
    const struct expr *c = op->combine[f];
    if (c->kind == EX_OP_LET)
        c = op->let[c->which].value;
    if (c->kind != EX_CALL || c->op != FN_MAX)
        return false;
    const struct expr *a = c->arg[0], *b = c->arg[1];
    return a->kind == EX_LEFT && b->kind == EX_RIGHT && a->field == f && b->field == f;
}

bool problem_exp_falls(const struct problem *p, const struct op *op, const struct expr *e)
{
    const struct expr *d = e->kind == EX_CALL && e->op == FN_EXP ? e->arg[0] : NULL;
    if (!d || d->kind != EX_BINARY || d->op != BIN_SUB)
        return false;
    const struct expr *x = d->arg[0], *most = d->arg[1];
    if (op)
        return x->kind == EX_LEFT && most->kind == EX_RIGHT && x->field == most->field && is_greatest(op, x->field);
    if (!p || p->kind != KIND_REDUCE || most->kind != EX_STATE)
        return false;
    const struct reduction *r = &p->reduction[most->which];
    return !r->counts && is_greatest(r->op, most->field) && expr_equal(x, r->map[most->field]);
}
