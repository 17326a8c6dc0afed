/* SPDX-License-Identifier: Apache-2.0 */
/* collectives.c - one state per thread to one state per warp or block.
 *
 *     warp    tree over the lanes by shuffle-down: lane i takes in lane i + d for d = 1, 2, 4, …
 *     block   lane 0 of each warp stores its total in shared memory, warp 0 reduces the stored totals
 *
 * Operands keep their order, so the operator need not commute.  The tree depends on the number of lanes and warps
 * alone, so the result is the same on every run.  Where lanes may be empty and the state has no padding element, a lane
 * combines only with valid ones: a user's operator never sees anything but contributions of elements.
 */
#include "gen.h"

static kb_tup combine_if(struct gen *g, kb_val both, kb_tup left, kb_tup right)
{
    kb *k = g->k;
    kb_tvar x = kb_var_new(k, left, "x");
    kb_if(k, both) {
        kb_set(k, x, state_combine(g, left, right));
    }
    return kb_get(k, x);
}

kb_tup warp_reduce(struct gen *g, kb_tup x, int lanes, struct valid_items f)
{
    kb *k = g->k;
    for (int d = 1; d < lanes; d *= 2) {
        const kb_tup other = kb_shfl_down(k, x, d);
        x = f.all ? state_combine(g, x, other) : combine_if(g, kb_lt(k, kb_add(k, kb_lane(k), d), f.count), x, other);
    }
    return x;
}

int power_of_two_above(int n)
{
    int p = 1;
    while (p < n)
        p *= 2;
    return p;
}

kb_tup warps_combine(struct gen *g, kb_tup x, struct valid_items valid, kb_arr aggregates)
{
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    if (warps == 1)
        return x;
    LET(lane, kb_lane(k));
    LET(warp, kb_warp(k));
    kb_if(k, kb_eq(k, lane, 0)) {
        kb_store(k, aggregates, warp, x);
    }
    kb_barrier(k);

    kb_tvar total = kb_var_new(k, x, "total");
    kb_if(k, kb_eq(k, warp, 0)) {
        kb_tvar y = kb_var_new(k, g->padded ? state_pad_value(g) : x, "aggregate");
        kb_if(k, kb_lt(k, lane, valid.all ? kb_imm(k, TY_I32, warps) : valid.count)) {
            kb_set(k, y, kb_load(k, aggregates, lane));
        }
        const struct valid_items lanes = valid.all && !g->padded ? valid_first(kb_imm(k, TY_I32, warps)) : valid;
        kb_set(k, total, warp_reduce(g, kb_get(k, y), power_of_two_above(warps), g->padded ? valid_all() : lanes));
    }
    return kb_get(k, total);
}

kb_tup block_reduce(struct gen *g, kb_tup x, struct valid_items threads, kb_arr aggregates)
{
    kb *k = g->k;
    if (threads.all)
        return warps_combine(g, warp_reduce(g, x, KB_WARP, threads), threads, aggregates);
    LET(in_warp, kb_sub(k, threads.count, kb_mul(k, kb_warp(k), KB_WARP)));
    LET(warps, kb_shr(k, kb_add(k, threads.count, KB_WARP - 1), 5));
    x = warp_reduce(g, x, KB_WARP, valid_first(in_warp));
    return warps_combine(g, x, valid_first(warps), aggregates);
}

/* ---- with gaps --------------------------------------------------------------------------------------------------- */

/* x := x * other, or whichever of the two is there. */
static void take_some(struct gen *g, kb_tvar x, kb_var have, kb_tup other, kb_val other_has)
{
    kb_if(g->k, other_has) {
        state_accumulate(g, x, have, other);
    }
}

void warp_reduce_some(struct gen *g, kb_tvar x, kb_var have)
{
    kb *k = g->k;
    for (int d = 1; d < KB_WARP; d *= 2) {
        const kb_tup other = kb_shfl_down(k, kb_get(k, x), d);
        const kb_val has = kb_shfl_down(k, kb_cast(k, kb_get(k, have), TY_U32), d);
        take_some(g, x, have, other, kb_and(k, kb_lt(k, kb_add(k, kb_lane(k), d), KB_WARP), kb_ne(k, has, 0)));
    }
}

kb_tup block_reduce_some(struct gen *g, kb_tup x, kb_val *have)
{
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    const kb_arr aggregates = state_shared(g, KB_WARP, "warp_totals");
    const kb_ptr aggregates_have = kb_shared_v(k, TY_U32, KB_WARP, "warp_has");
    kb_tvar total = kb_var_new(k, x, "total");
    kb_var some = kb_var_new(k, *have, "some");
    LET(lane, kb_lane(k));
    LET(warp, kb_warp(k));
    warp_reduce_some(g, total, some);
    kb_if(k, kb_eq(k, lane, 0)) {
        kb_store(k, aggregates, warp, kb_get(k, total));
        kb_store(k, aggregates_have, warp, kb_cast(k, kb_get(k, some), TY_U32));
    }
    kb_barrier(k);
    kb_if(k, kb_eq(k, warp, 0)) {
        kb_set(k, some, kb_false(k));
        kb_if(k, kb_lt(k, lane, warps)) {
            kb_set(k, total, kb_load(k, aggregates, lane));
            kb_set(k, some, kb_ne(k, kb_load(k, aggregates_have, lane), 0));
        }
        warp_reduce_some(g, total, some);
    }
    *have = kb_get(k, some);
    return kb_get(k, total);
}

kb_tup gather_in_order(struct gen *g, kb_val first, kb_val count, load_state *load, const void *what, kb_val *valid)
{
    kb *k = g->k;
    LET(each, kb_div(k, kb_add(k, count, kb_threads(k) - 1), kb_threads(k)));
    LET(from, kb_mul(k, kb_tid(k), each));
    LET(to, kb_min(k, kb_add(k, from, each), count));
    kb_tvar acc = kb_var_new(k, state_pad_end(g->p) ? state_pad_value(g) : state_zero(g), "gathered");
    kb_var have = kb_var_new(k, kb_false(k), "have_gathered");
    kb_for(k, i, from, to, 1) {
        state_accumulate(g, acc, have, load(g, what, kb_add(k, first, i)));
    }
    *valid = kb_name(kb_div(k, kb_add(k, count, kb_sub(k, each, 1)), each), "valid_threads");
    return kb_get(k, acc);
}

kb_tup block_gather(struct gen *g, kb_val first, kb_val count, load_state *load, const void *what)
{
    kb_val valid;
    const kb_tup own = gather_in_order(g, first, count, load, what, &valid);
    return block_reduce(g, own, g->padded ? valid_all() : valid_first(valid),
                        state_shared(g, KB_WARP, "gathered_totals"));
}

/* ---- lanes with the same key ------------------------------------------------------------------------------------- */

/* Votes on the bits of the key, which are few, are faster than the machine's own search for equal words: 2^26 ranks among
 * 256 bins take 355 us on an H100, and 602. */
kb_val peers_of(kb *k, kb_val key, int keys)
{
    kb_val peers = kb_ballot(k, kb_ge(k, key, 0));
    for (int bit = 1; bit < keys; bit *= 2) {
        const kb_val set = kb_ne(k, kb_and(k, key, bit), 0);
        const kb_val votes = kb_ballot(k, set);
        peers = kb_and(k, peers, kb_select(k, set, votes, kb_not(k, votes)));
    }
    return peers;
}

kb_val peers_below(kb *k, kb_val peers)
{
    const kb_val own = kb_shl(k, kb_imm(k, TY_U32, 1), kb_cast(k, kb_lane(k), TY_U32));
    return kb_and(k, peers, kb_sub(k, own, 1));
}

kb_val peers_above(kb *k, kb_val peers)
{
    const kb_val next = kb_shl(k, kb_imm(k, TY_U32, 2), kb_cast(k, kb_lane(k), TY_U32));
    return kb_and(k, peers, kb_not(k, kb_sub(k, next, 1)));
}

/* Each lane takes in what the next peer has, and looks at what that one looks at; at most five rounds. */
kb_tup peers_combine(struct gen *g, kb_val next_peer, bool above, kb_tup x)
{
    kb *k = g->k;
    const kb_val lane = kb_lane(k);
    kb_tvar sum = kb_var_new(k, x, "sum");
    kb_var next = kb_var_new(k, next_peer, "next");
    kb_loop(k) {
        LET(from, kb_get(k, next));
        LET(more, above ? kb_lt(k, from, KB_WARP) : kb_ge(k, from, 0));
        kb_break_if(k, kb_not(k, kb_any(k, more)));
        const kb_val source = kb_select(k, more, from, lane);
        const kb_tup mine = kb_get(k, sum), other = kb_shfl_idx(k, mine, source);
        const kb_val further = kb_shfl_idx(k, from, source);
        const kb_tup both = above ? state_combine(g, mine, other) : state_combine(g, other, mine);
        kb_set(k, sum, kb_select(k, more, both, mine));
        kb_set(k, next, kb_select(k, more, further, from));
    }
    return kb_get(k, sum);
}

kb_tup state_times(kb *k, kb_tup x, kb_val n)
{
    for (int f = 0; f < x.n; f++)
        x.e[f] = kb_mul(k, x.e[f], kb_cast(k, n, x.e[f].ty));
    return x;
}
