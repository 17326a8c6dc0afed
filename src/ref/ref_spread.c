/* SPDX-License-Identifier: Apache-2.0 */
/* ref_spread.c - what the errors of two states do to their combination.
 *
 * Operation by operation the bounds of ref_bound.c add up the errors of operands as if they were independent.  In
 * a.mean + (b.mean - a.mean) * w the error of a.mean would count twice, and a tree of such steps would double it at
 * every level.  So the operator is taken as one function f of all fields:
 *
 *   own rounding    f evaluated with bounds on operands without errors
 *   inherited       for every field that has an error, f with that field at either end of its interval and the others
 *                   in place: the largest change, summed over the fields (the first-order terms of the Taylor series)
 *   outcomes        f with all of the left state up and all of the right down, and the reverse, for comparisons that
 *                   flip only when both sides move
 */
#include <math.h>

#include "ref_internal.h"

struct spread {
    struct ref *r;
    const struct op *op;
    const struct tuple *centre;
};

/* worst[f] = the larger of it and the change of field f when the operands are these. */
static void change(const struct spread *s, const struct tuple *a, const struct tuple *b, double *worst)
{
    struct tuple moved;
    s->r->quiet = true;
    ref_combine(s->r, s->op, a, b, &moved);
    s->r->quiet = false;
    for (int f = 0; f < s->op->nfields; f++) {
        worst[f] = fmax(worst[f], ref_distance(s->op->field[f], moved.field[f].v, s->centre->field[f].v));
    }
}

/* One field of one side moves. */
static void inherited(const struct spread *s, const struct tuple side[2], double *sum)
{
    for (int i = 0; i < 2 * s->op->nfields; i++) {
        int which = i / s->op->nfields, field = i % s->op->nfields;
        struct num x = side[which].field[field];
        double worst[STATE_FIELDS_MAX] = { 0 };
        for (int upper = 0; upper < 2 && x.err > 0; upper++) {
            struct tuple moved[2] = { side[0], side[1] };
            moved[which].field[field].v = ref_corner(s->op->field[field], x, upper);
            change(s, &moved[0], &moved[1], worst);
        }
        for (int f = 0; f < s->op->nfields; f++) {
            sum[f] += worst[f];
        }
    }
}

/* Both sides move, in opposite directions. */
static void outcomes(const struct spread *s, const struct tuple side[2], double *worst)
{
    for (int upper = 0; upper < 2; upper++) {
        struct tuple moved[2] = { side[0], side[1] };
        for (int f = 0; f < s->op->nfields; f++) {
            moved[0].field[f].v = ref_corner(s->op->field[f], side[0].field[f], upper);
            moved[1].field[f].v = ref_corner(s->op->field[f], side[1].field[f], !upper);
        }
        change(s, &moved[0], &moved[1], worst);
    }
}

/* Is any field of it anything? Then so is what is not finite after it: infinities do not move. */
static bool unknown(const struct op *op, const struct tuple *x)
{
    for (int f = 0; f < op->nfields; f++) {
        if (isinf(x->field[f].err)) {
            return true;
        }
    }
    return false;
}

/* a op b, or f(a, b): nothing depends on anything else. */
static bool is_one_operation(const struct op *op)
{
    const struct expr *e = op->combine[0];
    return op->nfields == 1 && e->nargs == 2 && e->arg[0]->kind == EX_LEFT && e->arg[1]->kind == EX_RIGHT;
}

void ref_combine_bounded(struct ref *r, const struct op *op, const struct tuple *a, const struct tuple *b,
                         struct tuple *out)
{
    struct tuple side[2] = { *a, *b }, clean[2] = { *a, *b };
    bool exact = true;
    for (int f = 0; f < op->nfields; f++) {
        exact = exact && a->field[f].err == 0 && b->field[f].err == 0;
        clean[0].field[f].err = clean[1].field[f].err = 0;
    }
    if (exact || is_one_operation(op)) {
        ref_combine(r, op, &side[0], &side[1], out);
        return;
    }
    struct tuple centre;
    double sum[STATE_FIELDS_MAX] = { 0 }, worst[STATE_FIELDS_MAX] = { 0 };
    struct spread s = { r, op, &centre };
    ref_combine(r, op, &clean[0], &clean[1], &centre);
    inherited(&s, side, sum);
    outcomes(&s, side, worst);
    const bool any = unknown(op, &side[0]) || unknown(op, &side[1]);
    *out = centre;
    for (int f = 0; f < op->nfields; f++) {
        const bool lost = any && ty_is_float(op->field[f]) && !isfinite(centre.field[f].v.f);
        out->field[f].err += lost ? INFINITY : fmax(sum[f], worst[f]);
    }
}
