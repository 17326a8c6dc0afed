/* SPDX-License-Identifier: Apache-2.0 */
/* search.c - a search in what ascends, as offsets do, by all lanes of a warp.
 *
 * A binary search has the latency of one load per bit.  Here 32 lanes read 32 places at once, so a round finds five
 * bits:
 *
 *     while [lo, hi) is not empty:   lane i looks at lo + i * apart, evenly over what is left
 *                                    the answer lies after the last place for which `before` holds, and not after the
 *                                    first place for which it does not
 */
#include "gen.h"

kb_val warp_evenly(struct gen *g, kb_val count)
{
    return kb_max(g->k, kb_shr(g->k, kb_add(g->k, count, KB_WARP - 1), 5), 1);
}

/* Twice as far from lane to lane, to both sides. */
kb_val warp_around(struct gen *g, kb_val expected)
{
    enum { NEAR = 16 };
    kb *k = g->k;
    LET(side, kb_sub(k, kb_lane(k), KB_WARP / 2));
    const kb_val steps = kb_max(k, side, kb_neg(k, side));
    const kb_val away = kb_sub(k, kb_shl(k, kb_imm(k, TY_I32, NEAR), steps), NEAR);
    return kb_add(k, expected, kb_cast(k, kb_select(k, kb_lt(k, side, 0), kb_neg(k, away), away), TY_I64));
}

void warp_enclose(struct gen *g, kb_val place, kb_val end, kb_val before, kb_val *lo, kb_val *hi)
{
    kb *k = g->k;
    const kb_val is = kb_or(k, kb_lt(k, place, 0), kb_and(k, kb_lt(k, place, end), before));
    LET(count, kb_cast(k, kb_popcount(k, kb_ballot(k, is)), TY_I32));
    LET(from, kb_shfl_idx(k, kb_add(k, place, 1), kb_max(k, kb_sub(k, count, 1), 0)));
    LET(to, kb_shfl_idx(k, place, kb_min(k, count, KB_WARP - 1)));
    *lo = kb_select(k, kb_eq(k, count, 0), kb_imm(k, TY_I64, 0), kb_max(k, from, 0));
    *hi = kb_select(k, kb_eq(k, count, KB_WARP), end, kb_min(k, to, end));
}

kb_val warp_search(struct gen *g, kb_val first, kb_val end, kb_val apart, is_before *before, const void *what)
{
    return warp_narrow(g, first, end, apart, 0, before, what);
}

kb_val warp_narrow(struct gen *g, kb_val first, kb_val end, kb_val apart, int enough, is_before *before,
                   const void *what)
{
    kb *k = g->k;
    kb_var lo = kb_var_new(k, first, "lo"), hi = kb_var_new(k, end, "hi"), distance = kb_var_new(k, apart, "apart");
    kb_loop(k) {
        /* The same in all lanes: they search for the same place. */
        LET(from, kb_assume_uniform(kb_get(k, lo), KB_UNI_WARP));
        LET(to, kb_assume_uniform(kb_get(k, hi), KB_UNI_WARP));
        LET(step, kb_assume_uniform(kb_get(k, distance), KB_UNI_WARP));
        kb_break_if(k, enough ? kb_le(k, kb_sub(k, to, from), enough) : kb_ge(k, from, to));
        LET(place, kb_add(k, from, kb_mul(k, step, kb_cast(k, kb_lane(k), TY_I64))));
        const kb_val there = kb_min(k, place, kb_sub(k, to, 1));
        LET(is, kb_and(k, kb_lt(k, place, to), before(g, what, there)));
        LET(count, kb_cast(k, kb_popcount(k, kb_ballot(k, is)), TY_I64));
        /* The last of those before it, and the first that is not, enclose the answer. */
        LET(last, kb_add(k, from, kb_mul(k, step, kb_sub(k, count, 1))));
        LET(none, kb_eq(k, count, 0));
        LET(next, kb_select(k, kb_eq(k, count, KB_WARP), to, kb_min(k, to, kb_add(k, last, step))));
        kb_set(k, lo, kb_select(k, none, from, kb_add(k, last, 1)));
        kb_set(k, hi, kb_select(k, none, from, next));
        kb_set(k, distance, warp_evenly(g, kb_sub(k, kb_get(k, hi), kb_get(k, lo))));
    }
    return kb_assume_uniform(kb_get(k, lo), KB_UNI_WARP);
}
