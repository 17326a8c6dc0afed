/* SPDX-License-Identifier: Apache-2.0 */
/* bins_private.c - reductions by computed indices with a table for every thread in shared memory.
 *
 *     clear own table
 *     for each own element:  own table[bin] := own table[bin] * element       no other thread touches these words
 *     barrier
 *     each bin of all tables to the one table in global memory, or to the block's own there (bins_apart.c)
 *
 * The words of a bin lie side by side, word (bin, thread) at bin * threads + thread: whatever bins the lanes of a warp
 * have, they meet in no bank.
 *
 * Columns: dimensions are kept after the reduced ones, the space is rows of `columns` elements.  As many rows as fit
 * are side by side in a block, thread t takes element t of them, in every step: so it stays in column t % columns, bins
 * are those of the indices alone, and no element's number is divided.
 */
#include "bins.h"
#include "llvmgen/shared/segment.h"
#include "lower/segments.h"

#include <string.h>

/* ---- columns ----------------------------------------------------------------------------------------------------- */

struct columns {
    struct bins *b;
    kb_val columns, at_once;  /* i32: of a row; rows that the block takes side by side */
    kb_val elements;          /* of these rows */
    kb_val place, row, works; /* i32: the thread's element of these rows, its row; bool: it has one */
    kb_val index[SPACE_MAX];  /* along the kept dimensions */
};

static void columns_begin(struct columns *c, struct bins *b)
{
    struct gen *g = b->g;
    kb *k = g->k;
    *c = (struct columns){ .b = b, .columns = kb_max(k, gen_value(g, VAL_COLUMNS), 1) };
    c->at_once = kb_name(kb_div(k, kb_imm(k, TY_I32, kb_threads(k)), c->columns), "at_once");
    c->elements = kb_mul(k, c->at_once, c->columns);
    LET(row, kb_div(k, kb_tid(k), c->columns));
    LET(column, kb_sub(k, kb_tid(k), kb_mul(k, row, c->columns)));
    c->works = kb_lt(k, row, c->at_once);
    c->row = kb_select(k, c->works, row, kb_imm(k, TY_I32, 0)); /* where threads without an element may read one */
    c->place = kb_add(k, kb_mul(k, c->row, c->columns), column);
    space_split(g, kb_cast(k, column, TY_I64), segments_behind(g->p), g->p->rank, false, c->index);
}

/* The thread's elements of `items` steps, from row `first` of the block on, in three rounds: all loads, all bins and
 * values, all updates, so that loads do not wait for updates. */
static void add_rows(struct columns *c, kb_val first, int items)
{
    struct gen *g = c->b->g;
    kb *k = g->k;
    struct direct direct[GEN_MANY_MAX];
    struct point pt[GEN_MANY_MAX];
    kb_val bin[GEN_MANY_MAX], inside[GEN_MANY_MAX];
    kb_tup x[GEN_MANY_MAX];
    LET(base, kb_mul(k, first, kb_cast(k, c->columns, TY_I64)));
    for (int u = 0; u < items; u++) {
        const kb_val place = kb_add(k, c->place, kb_mul(k, c->elements, u));
        const kb_val row = kb_add(k, c->row, kb_mul(k, c->at_once, u));
        direct_load(g, base, place, 0, 1, false, &direct[u]);
        point_init(&pt[u], g, base, place, 0);
        memcpy(pt[u].index, c->index, sizeof c->index);
        space_split(g, kb_no_wrap(kb_add(k, first, kb_cast(k, row, TY_I64))), 0, g->p->rank, true, pt[u].index);
        pt[u].direct = &direct[u];
    }
    for (int u = 0; u < items; u++) {
        bin[u] = bins_number(&pt[u], false, &inside[u]);
        x[u] = point_map(&pt[u]);
    }
    for (int u = 0; u < items; u++) {
        kb_if(k, kb_and(k, c->works, inside[u])) {
            bins_update(c->b, bin[u], x[u]);
        }
    }
}

/* Steps of several rows of each thread go round-robin to the blocks, and then what is left row by row. */
static void add_columns(struct columns *c)
{
    struct gen *g = c->b->g;
    kb *k = g->k;
    const int items = gen_tunable(g, TN_ITEMS);
    LET(rows, gen_value(g, VAL_ROWS));
    LET(block, kb_cast(k, kb_block(k), TY_I64));
    LET(blocks, kb_cast(k, kb_blocks(k), TY_I64));
    LET(at_once, kb_cast(k, c->at_once, TY_I64));
    LET(step, kb_mul(k, at_once, items));
    LET(full, kb_div(k, rows, kb_max(k, step, 1)));
    kb_section(k, "rows");
    kb_for(k, t, block, full, blocks) {
        add_rows(c, kb_mul(k, t, step), items);
    }
    kb_section(k, "rest");
    LET(own, kb_add(k, kb_mul(k, full, step), kb_mul(k, block, at_once)));
    kb_for(k, first, own, rows, kb_mul(k, blocks, at_once)) {
        kb_if(k, kb_lt(k, kb_add(k, first, kb_cast(k, c->row, TY_I64)), rows)) {
            add_rows(c, first, 1);
        }
    }
}

/* ---- the block's end --------------------------------------------------------------------------------------------- */

static void clear_own(struct bins *b, kb_val bins)
{
    kb *k = b->g->k;
    kb_for(k, bin, kb_imm(k, TY_I32, 0), bins, 1) {
        for (int w = 0; w < bins_all_words(b); w++)
            kb_store(k, b->mine[w], kb_mul(k, bin, b->bin_step), kb_imm(k, b->mine[w].ty, 0));
    }
}

/* Where blocks begin among `count` numbers, so that they do not meet: the i-th one of this block. */
static kb_val turned(kb *k, kb_val i, kb_val count)
{
    LET(number, kb_add(k, i, kb_rem(k, kb_mul(k, kb_block(k), kb_threads(k)), count)));
    return kb_select(k, kb_ge(k, number, count), kb_sub(k, number, count), number);
}

/* A warp for each bin. */
static void add_tables(struct bins *b, struct bins *all, kb_val bins)
{
    kb *k = b->g->k;
    kb_for(k, i, kb_warp(k), bins, kb_threads(k) / KB_WARP) {
        LET(bin, turned(k, i, bins));
        LET(table, kb_mul(k, bin, b->bin_step));
        kb_val some;
        const kb_tup own = bins_sum_words(b, kb_add(k, table, kb_lane(k)), kb_add(k, table, b->tables),
                                          kb_imm(k, TY_I32, KB_WARP), &some);
        const kb_tup sum = warp_reduce(b->g, own, KB_WARP, valid_all());
        const kb_val any = kb_any(k, some);
        kb_if(k, kb_lane0(k)) {
            bins_leave(all, bin, sum, any);
        }
    }
}

/* A thread for each index and column. */
static void add_column_tables(struct columns *c, struct bins *all, kb_val bins)
{
    struct bins *b = c->b;
    kb *k = b->g->k;
    kb_for(k, i, kb_tid(k), bins, kb_threads(k)) {
        LET(bin, turned(k, i, bins));
        LET(index, kb_div(k, bin, c->columns));
        LET(column, kb_sub(k, bin, kb_mul(k, index, c->columns)));
        LET(table, kb_mul(k, index, b->bin_step));
        kb_val some;
        const kb_tup sum =
            bins_sum_words(b, kb_add(k, table, column), kb_add(k, table, c->elements), c->columns, &some);
        bins_leave(all, bin, sum, some);
    }
}

void bins_add_private(struct gen *g)
{
    kb *k = g->k;
    const int threads = kb_threads(k);
    struct bins b = { .g = g, .tables = threads, .bin_step = threads, .table_step = 1, .alone = true };
    struct bins all;
    struct columns c;
    const bool columns = bins_columns(g->p);
    bins_destination(g, &all);
    for (int w = 0; w < bins_all_words(&b); w++) {
        b.table[w] = kb_shared_v(k, bins_word_type(g, w), gen_tunable(g, TN_BINS) * threads, "table");
        b.mine[w] = kb_advance(k, b.table[w], kb_tid(k));
    }
    LET(bins, kb_cast(k, gen_value(g, VAL_BINS), TY_I32));
    if (columns)
        columns_begin(&c, &b);
    clear_own(&b, columns ? kb_div(k, bins, c.columns) : bins);
    if (columns)
        add_columns(&c);
    else
        bins_add_elements(&b);
    kb_barrier(k);
    kb_section(k, "add tables");
    if (columns)
        add_column_tables(&c, &all, bins);
    else
        add_tables(&b, &all, bins);
}
