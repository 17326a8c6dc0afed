/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c - whole-array reductions: one block, one cluster, or a grid whose last block finishes.
 *
 *     total of the block (tiles or windows, then block tree)
 *     block      thread 0 writes the results
 *     cluster    each block writes its total into a slot of block 0's shared memory; block 0 reduces the slots
 *     grid       each block writes its total to memory and takes a ticket; the block with the last one reduces the partials
 *     atomic     each block adds its total to accumulators and takes a ticket; the block with the last one takes theirs
 *     kernels    each block writes its total to memory; a second kernel of one block reduces the partials
 *
 * In the last three the blocks of a cluster may do as the third line says first: then "each block" is the first block
 * of each cluster, and the others end once it has their totals.
 *
 * The ticket counter wraps to zero by itself (atomic increment modulo the grid), so no launch has to clear it.
 * Ordering: a block's partial is released before its ticket, and acquired after the last ticket; the ticket itself is
 * relaxed.
 */
#include "llvmgen/shared/last_block.h"

/* The whole block arrives.  tiles_reduce() or windows_reduce(), combined: thread 0 gets the block's total. */
static kb_tup block_total(struct gen *g, kb_val block, kb_val blocks)
{
    struct valid_items f;
    kb_arr aggregates = state_shared(g, KB_WARP, "warp_totals");
    if (state_commutative(g->p)) {
        const kb_tup x = tiles_reduce(g, block, blocks, &f);
        return threads_combine(g, x, f, aggregates);
    }
    const kb_tup x = windows_reduce(g, block, blocks, &f);
    return warps_combine(g, x, f, aggregates);
}

static kb_val empty(struct gen *g) { return kb_le(g->k, gen_value(g, VAL_COUNT), 0); }

static void one_block(struct gen *g)
{
    kb *k = g->k;
    gen_wait_for_predecessor(g);
    if (g->p->exchanges)
        kb_exchange(k, gen_param(g, g->p->nparams - 1));
    const kb_tup total = block_total(g, kb_imm(k, TY_I32, 0), kb_imm(k, TY_I32, 1));
    kb_if(k, kb_thread0(k)) {
        state_finish(g, total, empty(g));
    }
}

/* Every block's total meets in the first block's shared memory, where after this its threads find them.  The whole
 * cluster arrives, and no block ends before all totals are there. */
static kb_arr cluster_aggregates(struct gen *g, kb_tup total, kb_val rank)
{
    kb *k = g->k;
    const kb_arr slots = state_shared(g, KB_WARP, "block_totals");
    kb_cluster_wait(k); /* every block of the cluster has started, so its shared memory is there */
    kb_if(k, kb_thread0(k)) {
        for (int f = 0; f < g->nfields; f++)
            kb_store(k, kb_cluster_map(k, slots.e[f], kb_imm(k, TY_I32, 0)), rank, total.e[f]);
    }
    kb_cluster_arrive(k);
    kb_cluster_wait(k); /* all totals have been written */
    return slots;
}

/* What the valid ones of a cluster's blocks have stored, in lane 0.  One warp of the first block arrives. */
static kb_tup cluster_total(struct gen *g, kb_arr slots, struct valid_items blocks)
{
    kb *k = g->k;
    const int cluster = gen_tunable(g, TN_CLUSTER);
    LET(lane, kb_lane(k));
    kb_tvar x = kb_var_new(k, g->padded ? state_pad_value(g) : state_zero(g), "slot");
    kb_if(k, kb_lt(k, lane, blocks.all ? kb_imm(k, TY_I32, cluster) : blocks.count)) {
        kb_set(k, x, kb_load(k, slots, lane));
    }
    return warp_reduce(g, kb_get(k, x), cluster, blocks);
}

static void one_cluster(struct gen *g)
{
    kb *k = g->k;
    const int cluster = gen_tunable(g, TN_CLUSTER);
    kb_cluster_arrive(k); /* waited for in cluster_aggregates() */
    gen_wait_for_predecessor(g);
    LET(rank, kb_cluster_rank(k));
    const kb_tup total = block_total(g, rank, kb_imm(k, TY_I32, cluster));
    kb_section(k, "cluster");
    const kb_arr slots = cluster_aggregates(g, total, rank);
    kb_if(k, kb_and(k, kb_eq(k, rank, 0), kb_eq(k, kb_warp(k), 0))) {
        const struct valid_items blocks =
            g->padded ? valid_all() : valid_first(tiles_valid_blocks(g, kb_imm(k, TY_I32, cluster)));
        const kb_tup all = cluster_total(g, slots, blocks);
        kb_if(k, kb_lane0(k)) {
            state_finish(g, all, empty(g));
        }
    }
}

void emit_reduce_block(struct gen *g)
{
    if (gen_tunable(g, TN_CLUSTER) > 1)
        one_cluster(g);
    else
        one_block(g);
}

/* ---- what the grid combines -------------------------------------------------------------------------------------- */

/* A block, or the first block of a cluster, which has the total of the cluster. */
struct part {
    kb_tup total;         /* in thread 0 */
    kb_val number, parts; /* i32: of this one, and how many there are */
    kb_val blocks;        /* of the grid, i32 */
};

static int blocks_per_part(const struct gen *g)
{
    const int cluster = gen_tunable(g, TN_CLUSTER);
    return cluster > 1 ? cluster : 1;
}

static kb_val parts_of(struct gen *g, kb_val blocks)
{
    const int each = blocks_per_part(g);
    return each == 1 ? blocks : kb_div(g->k, blocks, each);
}

/* How many parts, counted from the first, hold something. */
static kb_val valid_parts(struct gen *g, kb_val blocks)
{
    const int each = blocks_per_part(g);
    if (g->padded || !state_commutative(g->p))
        return parts_of(g, blocks);
    return parts_of(g, kb_add(g->k, tiles_valid_blocks(g, blocks), each - 1));
}

/* The total of the cluster in thread 0 of its first block, all of which arrives. */
static kb_tup join_cluster(struct gen *g, kb_arr slots, kb_tup total, struct part at)
{
    kb *k = g->k;
    kb_tvar joined = kb_var_new(k, total, "joined");
    kb_if(k, kb_eq(k, kb_warp(k), 0)) {
        struct valid_items valid = valid_all();
        if (!g->padded) {
            const kb_val before = kb_mul(k, at.number, blocks_per_part(g));
            valid = valid_first(kb_min(k, kb_sub(k, tiles_valid_blocks(g, at.blocks), before), blocks_per_part(g)));
        }
        kb_set(k, joined, cluster_total(g, slots, valid));
    }
    return kb_get(k, joined);
}

/* Totals of all blocks, of clusters where there are any, and then `combine` for each part: the whole block arrives. */
static void combine_parts(struct gen *g, kb_val block, kb_val blocks, void (*combine)(struct gen *g, struct part mine))
{
    kb *k = g->k;
    const kb_tup total = block_total(g, block, blocks);
    struct part mine = { .total = total, .number = parts_of(g, block), .parts = parts_of(g, blocks), .blocks = blocks };
    if (blocks_per_part(g) == 1) {
        combine(g, mine);
        return;
    }
    kb_section(k, "cluster");
    LET(rank, kb_cluster_rank(k));
    const kb_arr slots = cluster_aggregates(g, total, rank);
    kb_if(k, kb_eq(k, rank, 0)) {
        mine.total = join_cluster(g, slots, total, mine);
        combine(g, mine);
    }
}

/* Before anything else of a kernel with combine_parts(). */
static void begin_parts(struct gen *g)
{
    if (blocks_per_part(g) > 1)
        kb_cluster_arrive(g->k); /* waited for in cluster_aggregates() */
    gen_wait_for_predecessor(g);
}

kb_val is_last_block(struct gen *g, kb_tup total, kb_val block, kb_val blocks)
{
    kb *k = g->k;
    kb_if(k, kb_thread0(k)) {
        kb_store(k, gen_partials(g), block, total);
    }
    return last_of_group(g, kb_imm(k, TY_I32, 0), blocks);
}

static kb_tup load_partial(struct gen *g, const void *partials, kb_val number)
{
    return kb_load(g->k, *(const kb_arr *)partials, number);
}

kb_tup reduce_partials(struct gen *g, kb_val first, kb_val valid)
{
    const kb_arr partials = gen_partials(g);
    return block_gather(g, first, valid, load_partial, &partials);
}

/* Every part adds its total to the accumulators; the last one takes what they have. */
static void combine_atomically(struct gen *g, struct part mine)
{
    kb *k = g->k;
    const kb_ptr words = gen_buffer(g, BUF_ACCUMULATOR, TY_U64);
    kb_section(k, "finish");
    kb_if(k, kb_thread0(k)) {
        accumulate_atomic(g, words, mine.total);
    }
    kb_if(k, last_of_group(g, kb_imm(k, TY_I32, 0), mine.parts)) {
        kb_if(k, kb_thread0(k)) {
            state_finish(g, take_accumulated(g, words), empty(g));
        }
    }
}

void emit_reduce_atomic(struct gen *g)
{
    begin_parts(g);
    LET(blocks, kb_blocks(g->k));
    combine_parts(g, kb_block(g->k), blocks, combine_atomically);
}

static void leave_partial(struct gen *g, struct part mine)
{
    kb *k = g->k;
    kb_if(k, kb_thread0(k)) {
        kb_store(k, gen_partials(g), mine.number, mine.total);
    }
}

/* The first kernel leaves the total of every part; the second, of one block, reduces them. */
void emit_reduce_two_kernel(struct gen *g)
{
    kb *k = g->k;
    if (g->kernel == &g->c->code.kernel[0]) {
        begin_parts(g);
        LET(blocks, gen_value(g, VAL_BLOCKS));
        combine_parts(g, kb_block(k), blocks, leave_partial);
        return;
    }
    gen_wait_for_predecessor(g);
    LET(blocks, gen_value(g, VAL_BLOCKS));
    const kb_tup all = reduce_partials(g, kb_imm(k, TY_I32, 0), valid_parts(g, blocks));
    kb_if(k, kb_thread0(k)) {
        state_finish(g, all, empty(g));
    }
}

static void combine_in_last(struct gen *g, struct part mine)
{
    kb *k = g->k;
    kb_section(k, "finish");
    kb_if(k, kb_eq(k, mine.parts, 1)) {
        kb_if(k, kb_thread0(k)) {
            state_finish(g, mine.total, empty(g));
        }
    }
    kb_else
    {
        kb_if(k, is_last_block(g, mine.total, mine.number, mine.parts)) {
            const kb_tup all = reduce_partials(g, kb_imm(k, TY_I32, 0), valid_parts(g, mine.blocks));
            kb_if(k, kb_thread0(k)) {
                state_finish(g, all, empty(g));
            }
        }
    }
}

/* The order of an ordered operator is in block_total() and in that of the partials. */
void emit_reduce_last_block(struct gen *g)
{
    begin_parts(g);
    LET(block, kb_block(g->k));
    LET(blocks, kb_blocks(g->k));
    combine_parts(g, block, blocks, combine_in_last);
}
