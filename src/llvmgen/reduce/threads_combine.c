/* SPDX-License-Identifier: Apache-2.0 */
/* threads_combine.c - the ways of Tangram (Garcia de Gonzalo et al., CGO 2019) to make one total of a block's threads.
 *
 *     shuffle                 a tree of shuffles per warp, another over the warps' totals (collectives.c)
 *     tree                    a tree over all threads in shared memory
 *     shared_atomic_all       every thread updates one shared accumulator
 *     shared_atomic_leaders   a tree of shuffles per warp, then the first lane of each warp updates the accumulator
 *     tree_leaders            the same with a tree in shared memory per warp
 *     redux                   redux.sync per warp, and over the warps' totals
 */
#include "llvmgen/shared/gen.h"

/* A tree over `n` neighbouring threads in shared memory, in each group of n; the total is in the first of each.  A
 * group meets between steps: a warp (n 32) or the block.  Every slot is written once, before the step that reads it. */
static kb_tup shared_tree(struct gen *g, kb_tup x, int n)
{
    kb *k = g->k;
    const int threads = kb_threads(k);
    const bool warp = n == KB_WARP;
    const kb_arr slot = state_shared(g, threads, "tree");
    const kb_val tid = kb_tid(k), place = warp ? kb_lane(k) : tid;
    kb_tvar sum = kb_var_new(k, x, "sum");
    int d = 1;
    while (2 * d < n)
        d *= 2;
    for (; d > 0; d /= 2) {
        kb_if(k, kb_and(k, kb_ge(k, place, d), kb_lt(k, place, 2 * d))) {
            kb_store(k, slot, tid, kb_get(k, sum));
        }
        if (warp)
            kb_warp_sync(k);
        else
            kb_barrier(k);
        kb_if(k, kb_lt(k, place, d < n - d ? d : n - d)) {
            kb_set(k, sum, state_combine(g, kb_get(k, sum), kb_load(k, slot, kb_add(k, tid, d))));
        }
    }
    return kb_get(k, sum);
}

/* Those threads for which `takes` holds add what they have to a shared accumulator; all meet before and after. */
static kb_tup shared_atomic(struct gen *g, kb_tup x, kb_val takes)
{
    kb *k = g->k;
    const kb_ptr words = kb_shared_v(k, TY_U64, g->p->nreductions, "accumulator");
    const kb_val tid = kb_tid(k);
    kb_if(k, kb_eq(k, tid, 0)) {
        for (int r = 0; r < g->p->nreductions; r++)
            kb_store(k, words, r, kb_imm(k, TY_U64, 0));
    }
    kb_barrier(k);
    kb_if(k, takes) {
        accumulate_atomic(g, words, x);
    }
    kb_barrier(k);
    kb_tvar total = kb_var_new(k, x, "accumulated");
    kb_if(k, kb_eq(k, tid, 0)) {
        kb_set(k, total, read_accumulated(g, words));
    }
    return kb_get(k, total);
}

static kb_tup warp_redux(struct gen *g, kb_tup x)
{
    static const enum kb_rmw rmw[] = {
        [NATIVE_ADD] = KB_RMW_ADD, [NATIVE_MIN] = KB_RMW_MIN, [NATIVE_MAX] = KB_RMW_MAX,
        [NATIVE_AND] = KB_RMW_AND, [NATIVE_OR] = KB_RMW_OR,   [NATIVE_XOR] = KB_RMW_XOR
    };
    for (int r = 0; r < g->p->nreductions; r++)
        x.e[r] = kb_redux(g->k, rmw[op_native(g->p->reduction[r].op)], x.e[r]); /* one field each */
    return x;
}

static kb_tup block_redux(struct gen *g, kb_tup x, kb_arr aggregates)
{
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    kb_tvar total = kb_var_new(k, warp_redux(g, x), "total");
    if (warps == 1)
        return kb_get(k, total);
    LET(lane, kb_lane(k));
    LET(warp, kb_warp(k));
    kb_if(k, kb_eq(k, lane, 0)) {
        kb_store(k, aggregates, warp, kb_get(k, total));
    }
    kb_barrier(k);
    kb_if(k, kb_eq(k, warp, 0)) {
        kb_tvar y = kb_var_new(k, state_pad_value(g), "aggregate");
        kb_if(k, kb_lt(k, lane, warps)) {
            kb_set(k, y, kb_load(k, aggregates, lane));
        }
        kb_set(k, total, warp_redux(g, kb_get(k, y)));
    }
    return kb_get(k, total);
}

kb_tup threads_combine(struct gen *g, kb_tup x, struct valid_items threads, kb_arr aggregates)
{
    kb *k = g->k;
    const kb_val leads = kb_lane0(k);
    switch (gen_tunable(g, TN_COMBINE)) {
    case COMBINE_TREE: return shared_tree(g, x, kb_threads(k));
    case COMBINE_SHARED_ATOMIC_ALL: return shared_atomic(g, x, kb_true(k));
    case COMBINE_SHARED_ATOMIC_LEADERS: return shared_atomic(g, warp_reduce(g, x, KB_WARP, threads), leads);
    case COMBINE_TREE_LEADERS: return shared_atomic(g, shared_tree(g, x, KB_WARP), leads);
    case COMBINE_REDUX: return block_redux(g, x, aggregates);
    default: return block_reduce(g, x, threads, aggregates);
    }
}
