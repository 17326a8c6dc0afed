/* SPDX-License-Identifier: Apache-2.0 */
/* bins.h - tables of bins, in global or shared memory: what the kernels of bins.c and bins_private.c share. */
#ifndef PTXGEN_LLVMGEN_BINS_H
#define PTXGEN_LLVMGEN_BINS_H

#include "llvmgen/shared/output.h"
#include "lower/reduce/bins.h"

struct bins {
    struct gen *g;
    kb_ptr table[BINS_WORDS_MAX];     /* per word of a bin, that of the lock the last; or */
    bool counters;                    /* a single one, of how many elements a bin has, all equal */
    int tables, bin_step, table_step; /* word (bin, table) is number bin * bin_step + table * table_step */
    kb_ptr mine[BINS_WORDS_MAX];      /* where the table of this thread begins */
    bool placed;                      /* the outputs themselves */
    bool merge;                       /* equal indices of a warp first */
    bool hot;                         /* what many lanes have goes to registers: */
    kb_var hot_bin;                   /* i32, the same in all lanes; -1: there is none */
    kb_tvar hot_sum;                  /* what this lane has of it, not yet in the table */
    kb_var crowded;                   /* do many lanes of the warp share another one? */
    kb_val first, parts; /* i32: bin of the tables' first word; parts of the bins, where blocks have one each */
    bool rows;           /* of the row that the block is at */
    bool alone;          /* no other thread touches this thread's table: no atomic operations */
    kb_val row;          /* i64: of tables that lie apart, where this block's begins; none: blocks share one */
};

/* A word of a bin, in memory; how many tables there are. */
enum ty bins_word_type(const struct gen *g, int word);
int bins_all_words(const struct bins *b);
/* The table in global memory; fixed: that of tables in shared memory, else one of the launch's bins. */
void bins_global_table(struct gen *g, struct bins *b, bool fixed);
/* Where blocks leave what they have, and one thread what its block has of a bin (i32), if that is something (bins_apart.c); the
 * kernel that joins tables which lie apart. */
void bins_destination(struct gen *g, struct bins *all);
void bins_leave(struct bins *all, kb_val bin, kb_tup x, kb_val some);
void bins_finish_apart(struct gen *g);
/* The state of words first, first + step, … below end, i32 or i64, and whether any is not zero. */
kb_tup bins_sum_words(struct bins *b, kb_val first, kb_val end, kb_val step, kb_val *some);
/* The point's bin, i32, and whether it has one.  kept: numbered with the kept dimensions, after those of the
 * indices. */
kb_val bins_number(struct point *pt, bool kept, kb_val *inside);
/* x to the words of a bin. */
void bins_update(struct bins *b, kb_val bin, kb_tup x);
/* The words of a number in all tables; whether any of them is not zero. */
kb_val bins_load(struct bins *b, kb_val number, kb_val *word);
/* Of the first elements of a tile, and of those of crowded tiles: whole warps arrive. */
enum { BINS_NEXT, BINS_FIRST, BINS_CROWDED };
/* An element, if `valid`, to the tables. */
void bins_add_point(struct bins *b, struct point *pt, kb_val valid, int turn);
/* The elements of a tile that begins at `base` (i64); one element per thread, if `valid`.  The whole block arrives. */
void bins_add_tile(struct bins *b, kb_val base);
void bins_add_single(struct bins *b, kb_val element, kb_val valid);
/* x of all lanes, those with bin -1 excepted, by the lowest lane of each bin; constants are counted.  Returns the lanes that
 * share this one's bin.  The whole warp arrives. */
kb_val bins_merge(struct bins *b, kb_val bin, kb_tup x);
/* Where a bin may be hot: looks at the bins (i32; -1: none) of a tile's first elements; the whole warp arrives.  An element. */
void bins_hot_look(struct bins *b, kb_val bin);
void bins_add_hot(struct bins *b, kb_val bin, kb_val inside, kb_tup x, int turn);
/* Where a bin may be hot: none is yet; the registers go to the table, and the whole warp arrives. */
void bins_hot_begin(struct bins *b);
void bins_hot_end(struct bins *b);
/* The tables of the block, in shared memory; the whole block clears so many bins (i32) of each. */
void bins_block_tables(struct gen *g, struct bins *b);
void bins_clear_tables(struct bins *b, kb_val bins);
/* Are words of a bin in several tables neighbours? */
static inline bool bins_side_by_side(const struct bins *b) { return b->table_step == 1; }
/* One thread: what they have of a bin together, and whether that is something; writes the outputs of a bin, which is that
 * segment (i64). */
kb_tup bins_sum(struct bins *b, kb_val bin, kb_val *some);
void bins_finish(struct gen *g, kb_val segment, kb_tup state, kb_val some);
/* Rows, one after the other, from elements to outputs (bins_rows.c). */
void bins_take_rows(struct gen *g);
/* Do threads walk down columns, in place of tiles (bins_walk.c)? */
bool bins_walks(const struct problem *p);
void bins_walk(struct bins *b);
/* Where threads walk, puts small tables that at() reads into shared memory, for reads after the block's next barrier. */
void bins_share_tables(struct gen *g);
/* i64: how many blocks share the elements with this one, and its number among them. */
void bins_blocks(const struct bins *b, kb_val *block, kb_val *blocks);
/* All elements of the block to its tables, in tiles of vectors that go round-robin to the blocks.  All threads. */
void bins_add_elements(struct bins *b);
/* All elements of the block, to tables of each thread, and these to where bins_leave() writes. */
void bins_add_private(struct gen *g);

#endif
