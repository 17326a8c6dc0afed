/* SPDX-License-Identifier: Apache-2.0 */
/* quotients.c - f32 values of a row's elements that are divided by the same number, such as those of softmax.
 *
 *     h = 1 / s,  l = (1 - h s) h         once per row: the reciprocal in twice the precision
 *     q = x h + x l                       a neighbour of x / s, rounded once
 *     q + (x - q s) h                     x / s, rounded: Markstein, "Computation of elementary functions on the IBM RISC
 *                                         System/6000 processor", 1990; h must be 1 / s, rounded
 *
 * A division takes 13 instructions, this 4, and 2 that find the range of a thread's x, which must be at most 2^100.  Where
 * 1 <= s <= 2^100 neither the remainder nor q is wrong by more than half of the smallest denormal number, however small x is.
 * Where 2^-24 <= s < 1 that is multiplied by 1 / s, so x must be at least 2^-100.  Others are divided.
 */
#include "quotients.h"
#include "resident_gen.h"

/* Is the value the same for all elements of a row, and not known when generating? */
static bool follows_results(const struct expr *e, bool *known)
{
    switch (e->kind) {
    case EX_STATE:
    case EX_PARAM: *known = false; return true;
    case EX_CONST:
    case EX_SIZE: return true;
    case EX_UNARY:
    case EX_BINARY:
    case EX_CALL:
    case EX_CAST: break;
    default: return false;
    }
    for (int i = 0; i < e->nargs; i++)
        if (!follows_results(e->arg[i], known))
            return false;
    return true;
}

/* A quotient in the value that every element computes, or NULL. */
static const struct expr *find(const struct expr *e)
{
    bool known = true;
    if (e->kind == EX_BINARY && e->op == BIN_DIV && e->type == TY_F32 && follows_results(e->arg[1], &known) && !known)
        return e;
    if (e->kind != EX_UNARY && e->kind != EX_BINARY && e->kind != EX_CALL && e->kind != EX_CAST)
        return NULL;
    const struct expr *found = NULL;
    for (int i = 0; i < e->nargs && !found; i++)
        found = find(e->arg[i]);
    return found;
}

static kb_val fused(kb *k, kb_val a, kb_val b, kb_val c)
{
    const kb_val arg[] = { a, b, c };
    return emit_function(k, FN_FMA, 3, arg);
}

void quotients_begin(struct quotients *q, struct point *pt, int n)
{
    enum { LEAST = 4 }; /* a thread with fewer elements gains little */
    const struct gen *g = pt->g;
    kb *k = g->k;
    *q = (struct quotients){ .fits = kb_true(k), .small = kb_false(k) };
    for (int o = 0; o < g->p->noutputs && n >= LEAST && !q->of; o++)
        if (output_moment(&g->p->output[o]) == AT_RESULT && !*g->p->output[o].array.field[0].name)
            q->of = find(g->p->output[o].value[0]);
    if (q->of && resident_reads(g->p, q->of->arg[0])) /* after the end of a row there is nothing to ask */
        q->of = NULL;
    if (!q->of)
        return;
    const kb_val one = kb_immf(k, TY_F32, 1);
    q->falls = problem_exp_falls(g->p, NULL, q->of->arg[0]);
    q->divisor = emit_expr(k, &pt->env, q->of->arg[1]);
    q->high = kb_div(k, one, q->divisor);
    q->low = kb_mul(k, fused(k, kb_neg(k, q->divisor), q->high, one), q->high);
    const kb_val size = emit_function(k, FN_ABS, 1, &q->divisor), large = kb_ge(k, size, one);
    q->fits = kb_and(k, large, kb_le(k, size, kb_immf(k, TY_F32, 0x1p100)));
    if (!q->falls) /* the sum of such is at least 1 */
        q->small = kb_and(k, kb_not(k, large), kb_ge(k, size, kb_immf(k, TY_F32, 0x1p-24)));
}

void quotients_range(const struct quotients *q, struct point *pt, int n, kb_val *least, kb_val *most)
{
    kb *k = pt->g->k;
    for (int j = 0; j < n; j++) {
        const kb_val x = emit_expr(k, &pt[j].env, q->of->arg[0]), size = emit_function(k, FN_ABS, 1, &x);
        *least = kb_min(k, *least, size);
        *most = kb_max(k, *most, size);
    }
}

kb_val quotients_fit(kb *k, const struct quotients *q, kb_val least, kb_val most)
{
    const kb_val above = kb_ge(k, least, kb_immf(k, TY_F32, 0x1p-100)),
                 below = kb_le(k, most, kb_immf(k, TY_F32, 0x1p100));
    return kb_and(k, kb_or(k, q->fits, kb_and(k, q->small, above)), below);
}

static kb_val quotient(kb *k, const struct quotients *q, kb_val x)
{
    const kb_val near = fused(k, x, q->high, kb_mul(k, x, q->low));
    return fused(k, fused(k, kb_neg(k, near), q->divisor, x), q->high, near);
}

void quotients_take(const struct quotients *q, struct point *pt, int n)
{
    for (int j = 0; j < n && q->of; j++) {
        pt[j].env.known = q->of;
        pt[j].env.known_value = quotient(pt->g->k, q, emit_expr(pt->g->k, &pt[j].env, q->of->arg[0]));
    }
}
