/* SPDX-License-Identifier: Apache-2.0 */
/* bins_rows.c - reductions by computed indices of many rows: a block has tables of one row.
 *
 *     for row in my rows:
 *         tables := nothing
 *         tiles of the row, then the elements that are left: each updates its bin
 *         each bin, by a thread: combine the tables, write the outputs of (bin, row)
 *
 * No other block has the row, so no table in global memory, and no second kernel, is needed.
 */
#include "bins.h"

/* From element `first` on, which is a multiple of the vector. */
static void add_row(struct bins *b, kb_val first)
{
    struct gen *g = b->g;
    kb *k = g->k;
    const int64_t threads = kb_threads(k), tile = threads * gen_tunable(g, TN_ITEMS) * gen_tunable(g, TN_VECTOR);
    const kb_val length = gen_value(g, VAL_LENGTH);
    LET(whole, kb_mul(k, kb_div(k, length, tile), tile));
    kb_for(k, base, kb_imm(k, TY_I64, 0), whole, tile) {
        bins_add_tile(b, kb_add(k, first, base));
    }
    kb_for(k, base, whole, length, threads) {
        LET(i, kb_add(k, base, kb_cast(k, kb_tid(k), TY_I64)));
        bins_add_single(b, kb_add(k, first, i), kb_lt(k, i, length));
    }
}

static void take_row(struct bins *b, kb_val row)
{
    struct gen *g = b->g;
    kb *k = g->k;
    const kb_val bins = kb_cast(k, gen_value(g, VAL_BINS), TY_I32);
    bins_clear_tables(b, bins);
    kb_barrier(k);
    bins_hot_begin(b);
    add_row(b, kb_mul(k, row, gen_value(g, VAL_LENGTH)));
    bins_hot_end(b);
    kb_barrier(k);
    kb_for(k, bin, kb_tid(k), bins, kb_threads(k)) {
        kb_val some;
        const kb_tup sum = bins_sum(b, bin, &some);
        const kb_val above = kb_mul(k, kb_cast(k, bin, TY_I64), gen_value(g, VAL_ROWS));
        bins_finish(g, kb_add(k, above, row), sum, some);
    }
    if (bins_side_by_side(b))
        kb_barrier(k); /* else a thread clears what it has read itself */
}

void bins_take_rows(struct gen *g)
{
    kb *k = g->k;
    struct bins b;
    bins_block_tables(g, &b);
    b.rows = true;
    kb_for(k, row, kb_cast(k, kb_block(k), TY_I64), gen_value(g, VAL_ROWS), kb_cast(k, kb_blocks(k), TY_I64)) {
        take_row(&b, row);
    }
}
