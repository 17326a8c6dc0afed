/* SPDX-License-Identifier: Apache-2.0 */
/* partial.c - values that grow as planes arrive: what a point reads of a plane joins what it read of those before.
 *
 * The order of the expression stays, and with it all bits.  So this serves expressions that go through the planes from the lowest
 * offset on, as sums that are written in this order do.
 */
#include "stencil.h"

#include "stencil_plan.h"

/* The planes that an expression reads, and whether it grows. */
struct reads {
    bool any, grows;
    int lo, hi;
};

/* An expression without operands; false: it has some. */
static bool is_leaf(const struct problem *p, const struct expr *e, struct reads *of)
{
    *of = (struct reads){ .grows = true };
    switch (e->kind) {
    case EX_UNARY:
    case EX_BINARY:
    case EX_CALL:
    case EX_CAST: return false;
    case EX_CONST:
    case EX_PARAM: return true;
    case EX_INPUT:
        of->any = stencil_staged(p, e->which); /* else at the point alone, whenever it is needed */
        of->grows = of->any || access_input_direct(p, e->which);
        of->lo = of->hi = of->any && e->noffsets ? e->offset[0] : 0;
        return true;
    default: of->grows = false; return true;
    }
}

/* Only one operand of what grows reads planes before the last, and this operand grows. */
static struct reads visit(const struct problem *p, const struct expr *e, struct parts *parts)
{
    struct reads of, arg[OPERANDS_MAX];
    const struct expr *before = NULL;
    int until = 0;
    if (is_leaf(p, e, &of))
        return of;
    for (int i = 0; i < e->nargs; i++) {
        arg[i] = visit(p, e->arg[i], parts);
        of.grows &= arg[i].grows;
        if (!arg[i].any)
            continue;
        of.lo = !of.any || arg[i].lo < of.lo ? arg[i].lo : of.lo;
        of.hi = !of.any || arg[i].hi > of.hi ? arg[i].hi : of.hi;
        of.any = true;
    }
    for (int i = 0; i < e->nargs; i++)
        if (arg[i].any && arg[i].lo < of.hi) {
            of.grows &= !before;
            before = e->arg[i];
            until = arg[i].hi;
        }
    for (int plane = until; before && plane < of.hi && of.grows; plane++)
        parts->part[plane - parts->lo] = before;
    return of;
}

bool stencil_parts(const struct problem *p, struct parts *parts)
{
    const struct reach r = stencil_space_reach(p);
    const struct expr *value = p->output[0].value[0];
    *parts = (struct parts){ .lo = (int)r.lo[0], .hi = (int)r.hi[0] };
    if (parts->hi - parts->lo >= PARTS_MAX)
        return false;
    const struct reads all = visit(p, value, parts);
    parts->part[parts->hi - parts->lo] = value;
    return all.grows && all.lo == parts->lo && all.hi == parts->hi && parts->lo < parts->hi;
}

bool stencil_partial(const struct problem *p, const struct plan_case *c)
{
    struct parts parts;
    const bool one = p->noutputs == 1 && p->output[0].array.nfields == 1 && !p->nreductions && !p->sums;
    return p->rank > 2 && one && output_moment(&p->output[0]) == AT_POINT && access_output_direct(p, 0) &&
           !(stencil_skips(p) && stencil_fed(p, 0) >= 0) && !stencil_keeps(p, c) && stencil_parts(p, &parts);
}
