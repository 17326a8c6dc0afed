/* SPDX-License-Identifier: Apache-2.0 */
/* boundary.c - which element stands for one beyond the edge.
 *
 * Any distance beyond the edge has an answer; within one period of it, which is all that kernels meet on ordinary
 * extents, no division is executed.
 */
#include "gen.h"

/* i mod n in [0, n). */
static kb_val wrap(kb *k, kb_val i, kb_val n)
{
    const kb_val lifted = kb_select(k, kb_lt(k, i, 0), kb_add(k, i, n), i);
    const kb_val near = kb_select(k, kb_ge(k, lifted, n), kb_sub(k, lifted, n), lifted);
    kb_var m = kb_var_new(k, near, "wrapped");
    kb_if(k, kb_or(k, kb_lt(k, near, 0), kb_ge(k, near, n))) {
        const kb_val r = kb_rem(k, i, n);
        kb_set(k, m, kb_select(k, kb_lt(k, r, 0), kb_add(k, r, n), r));
    }
    return kb_get(k, m);
}

kb_val boundary_index(kb *k, enum boundary_mode mode, kb_val i, kb_val n, kb_val *inside)
{
    const kb_val last = kb_sub(k, n, 1);
    const kb_val clamped = kb_min(k, kb_max(k, i, 0), last);
    switch (mode) {
    case BOUND_WRAP: return wrap(k, i, n);
    case BOUND_REFLECT: { /* period 2n: d c b a | a b c d | d c b a */
        const kb_val m = wrap(k, i, kb_add(k, n, n));
        return kb_min(k, m, kb_sub(k, kb_sub(k, kb_add(k, n, n), 1), m));
    }
    case BOUND_MIRROR: { /* period 2n - 2: d c b | a b c d | c b a */
        const kb_val period = kb_max(k, kb_add(k, last, last), 1);
        const kb_val m = wrap(k, i, period);
        return kb_min(k, m, kb_sub(k, period, m));
    }
    case BOUND_CONSTANT: *inside = kb_and(k, *inside, kb_eq(k, clamped, i)); return clamped;
    case BOUND_CLAMP:
    case BOUND_INTERIOR: break;
    }
    return clamped;
}
