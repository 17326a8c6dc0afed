/* SPDX-License-Identifier: Apache-2.0 */
/* emit_reduce.c - whole-array reductions: one block, one cluster, or a grid whose last block finishes.
 *
 *     total of the block (tiles or windows, then block tree)
 *     block      thread 0 writes the results
 *     cluster    each block writes its total into a slot of block 0's shared memory; block 0 reduces the slots
 *     grid       each block writes its total to memory and draws a ticket; who draws the last one reduces the partials
 *     atomic     each block adds its total to accumulators and draws a ticket; who draws the last one takes what they
 * have kernels    each block writes its total to memory; a second kernel of one block reduces the partials
 *
 * The ticket counter wraps to zero by itself (atomic increment modulo the grid), so no launch has to clear it.
 * Ordering: a block's partial is released before its ticket, and acquired after the last ticket; the ticket itself is
 * relaxed.
 */
#include "gen.h"

kb_tup block_total(struct gen *g, kb_val block, kb_val blocks)
{
    struct filled f;
    kb_arr park = state_shared(g, KB_WARP, "warp_totals");
    if (state_commutative(g->p)) {
        const kb_tup x = tiles_reduce(g, block, blocks, &f);
        return threads_combine(g, x, f, park);
    }
    const kb_tup x = windows_reduce(g, block, blocks, &f);
    return warps_combine(g, x, f, park);
}

static kb_val empty(struct gen *g) { return kb_le(g->k, gen_value(g, "count"), 0); }

void emit_reduce_block(struct gen *g)
{
    kb *k = g->k;
    gen_wait_for_predecessor(g);
    const kb_tup total = block_total(g, kb_imm(k, TY_I32, 0), kb_imm(k, TY_I32, 1));
    kb_if(k, kb_eq(k, kb_tid(k), 0)) {
        state_finish(g, total, empty(g));
    }
}

/* Every block's total meets in the first block's shared memory. */
static kb_arr cluster_park(struct gen *g, kb_tup total, kb_val rank)
{
    kb *k = g->k;
    const kb_arr slots = state_shared(g, KB_WARP, "block_totals");
    kb_cluster_wait(k); /* every block of the cluster has started, so its shared memory is there */
    kb_if(k, kb_eq(k, kb_tid(k), 0)) {
        for (int f = 0; f < g->nfields; f++)
            kb_store(k, kb_cluster_map(k, slots.e[f], kb_imm(k, TY_I32, 0)), rank, total.e[f]);
    }
    kb_cluster_arrive(k);
    kb_cluster_wait(k); /* all totals have been written */
    return slots;
}

void emit_reduce_cluster(struct gen *g)
{
    kb *k = g->k;
    const int cluster = gen_tunable(g, TN_CLUSTER);
    kb_cluster_arrive(k); /* waited for in cluster_park() */
    gen_wait_for_predecessor(g);
    LET(rank, kb_cluster_rank(k));
    const kb_tup total = block_total(g, rank, kb_imm(k, TY_I32, cluster));
    kb_section(k, "cluster");
    const kb_arr slots = cluster_park(g, total, rank);
    kb_if(k, kb_and(k, kb_eq(k, rank, 0), kb_eq(k, kb_warp(k), 0))) {
        const struct filled blocks =
            g->padded ? filled_all() : filled_first(tiles_filled_blocks(g, kb_imm(k, TY_I32, cluster)));
        LET(lane, kb_lane(k));
        kb_tvar x = kb_var_new(k, g->padded ? state_pad_value(g) : state_zero(g), "slot");
        kb_if(k, kb_lt(k, lane, blocks.all ? kb_imm(k, TY_I32, cluster) : blocks.count)) {
            kb_set(k, x, kb_load(k, slots, lane));
        }
        const kb_tup all = warp_reduce(g, kb_get(k, x), cluster, blocks);
        kb_if(k, kb_eq(k, lane, 0)) {
            state_finish(g, all, empty(g));
        }
    }
}

kb_val draw_last(struct gen *g, kb_val group, kb_val blocks)
{
    kb *k = g->k;
    const kb_ptr counter = gen_buffer(g, "counter", TY_U32);
    const kb_ptr flag = kb_shared_v(k, TY_U32, 1, "is_last");
    const kb_val zero = kb_imm(k, TY_I32, 0);
    kb_if(k, kb_eq(k, kb_tid(k), 0)) {
        kb_fence(k, KB_RELEASE, KB_SCOPE_DEVICE); /* pairs with the acquire below, through the ticket */
        LET(last, kb_cast(k, kb_sub(k, blocks, 1), TY_U32));
        const enum kb_rmw draw = kb_point(k, "counter reset") ? KB_RMW_INC_WRAP : KB_RMW_ADD;
        LET(ticket, kb_atomic(k, draw, counter, group, draw == KB_RMW_ADD ? kb_imm(k, TY_U32, 1) : last));
        kb_fence(k, KB_ACQUIRE, KB_SCOPE_DEVICE); /* whoever drew the last ticket sees all partials */
        kb_store(k, flag, zero, kb_cast(k, kb_eq(k, ticket, last), TY_U32));
    }
    kb_barrier(k);
    /* One word read by all threads behind a barrier. */
    return kb_assume_uniform(kb_ne(k, kb_load(k, flag, zero), 0), KB_UNI_BLOCK);
}

kb_val is_last_block(struct gen *g, kb_tup total, kb_val block, kb_val blocks)
{
    kb *k = g->k;
    kb_if(k, kb_eq(k, kb_tid(k), 0)) {
        kb_store(k, gen_partials(g), block, total);
    }
    return draw_last(g, kb_imm(k, TY_I32, 0), blocks);
}

/* Every thread takes consecutive ones. */
kb_tup reduce_partials(struct gen *g, kb_val first, kb_val filled)
{
    kb *k = g->k;
    const int threads = kb_threads(k);
    const kb_arr partial = gen_partials(g);
    LET(each, kb_div(k, kb_add(k, filled, threads - 1), threads));
    LET(from, kb_mul(k, kb_tid(k), each));
    LET(to, kb_min(k, kb_add(k, from, each), filled));
    kb_tvar acc = kb_var_new(k, g->padded ? state_pad_value(g) : state_zero(g), "partials");
    kb_var have = kb_var_new(k, kb_imm(k, TY_BOOL, 0), "have_partial");
    kb_for(k, b, from, to, 1) {
        state_accumulate(g, acc, have, kb_load(k, partial, kb_add(k, first, b)));
    }
    LET(threads_filled, kb_div(k, kb_add(k, filled, kb_sub(k, each, 1)), each));
    const struct filled f = g->padded ? filled_all() : filled_first(threads_filled);
    return block_reduce(g, kb_get(k, acc), f, state_shared(g, KB_WARP, "last_totals"));
}

/* The order is in block_total() and in that of the partials. */
void emit_reduce_ordered(struct gen *g) { emit_reduce_last_block(g); }

/* Every block adds its total to the accumulators; the last one takes what they have. */
void emit_reduce_atomic(struct gen *g)
{
    kb *k = g->k;
    gen_wait_for_predecessor(g);
    LET(blocks, kb_blocks(k));
    const kb_tup total = block_total(g, kb_block(k), blocks);
    const kb_ptr words = gen_buffer(g, "accumulator", TY_U64);
    kb_section(k, "finish");
    kb_if(k, kb_eq(k, kb_tid(k), 0)) {
        accumulate_atomic(g, words, total);
    }
    kb_if(k, draw_last(g, kb_imm(k, TY_I32, 0), blocks)) {
        kb_if(k, kb_eq(k, kb_tid(k), 0)) {
            state_finish(g, take_accumulated(g, words), empty(g));
        }
    }
}

/* The first kernel leaves every block's total; the second, of one block, reduces them. */
void emit_reduce_two_kernel(struct gen *g)
{
    kb *k = g->k;
    const bool first = g->kernel == &g->c->code.kernel[0];
    gen_wait_for_predecessor(g);
    LET(blocks, gen_value(g, "blocks"));
    if (first) {
        const kb_tup total = block_total(g, kb_block(k), blocks);
        kb_if(k, kb_eq(k, kb_tid(k), 0)) {
            kb_store(k, gen_partials(g), kb_block(k), total);
        }
        return;
    }
    const kb_val filled = g->padded || !state_commutative(g->p) ? blocks : tiles_filled_blocks(g, blocks);
    const kb_tup all = reduce_partials(g, kb_imm(k, TY_I32, 0), filled);
    kb_if(k, kb_eq(k, kb_tid(k), 0)) {
        state_finish(g, all, empty(g));
    }
}

void emit_reduce_last_block(struct gen *g)
{
    kb *k = g->k;
    gen_wait_for_predecessor(g);
    LET(block, kb_block(k));
    LET(blocks, kb_blocks(k));
    const kb_tup total = block_total(g, block, blocks);
    kb_section(k, "finish");
    kb_if(k, kb_eq(k, blocks, 1)) {
        kb_if(k, kb_eq(k, kb_tid(k), 0)) {
            state_finish(g, total, empty(g));
        }
    }
    kb_else
    {
        kb_if(k, is_last_block(g, total, block, blocks)) {
            const kb_val filled = g->padded || !state_commutative(g->p) ? blocks : tiles_filled_blocks(g, blocks);
            const kb_tup all = reduce_partials(g, kb_imm(k, TY_I32, 0), filled);
            kb_if(k, kb_eq(k, kb_tid(k), 0)) {
                state_finish(g, all, empty(g));
            }
        }
    }
}
