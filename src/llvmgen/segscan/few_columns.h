/* SPDX-License-Identifier: Apache-2.0 */
/* few_columns.h - what scan.pipeline does with tiles of a few columns side by side; roles and barriers are those of
 * its other tiles (ring.h). */
#ifndef PTXGEN_FEW_COLUMNS_H
#define PTXGEN_FEW_COLUMNS_H

#include "llvmgen/scan/ring.h"

/* What all threads know of the shape. */
struct columns_shape {
    int v, rows;    /* columns and rows of a thread */
    int states;     /* at least as many as columns */
    kb_val q;       /* i32: lanes next to one another in a row, … */
    kb_val groups;  /* … how many times as many are in a warp … */
    kb_val group;   /* … and the lane's number among those; `groups` for the last lanes, which have nothing */
    kb_val column;  /* i32: number of the thread's first column, by V */
    kb_val columns; /* i32 */
};
struct columns_shape columns_shape_of(struct gen *g);
/* `q` and `groups`, which the host passes but where a row is one vector. */
kb_val columns_lanes(struct gen *g);
kb_val columns_groups(struct gen *g);
enum { COLUMNS_WORDS_MAX = 2 * KB_TUP_MAX };
/* The words of a state lie side by side; states have numbers (i64). */
struct place columns_words_at(struct gen *g, kb_val number);

/* All lanes of a warp: store the totals of warp `warp`'s part of the tile. */
void columns_combine(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val warp);
/* One whole warp: publish the tile's totals; the warp does not use the stage afterwards. */
void columns_publish(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val parity);

/* What comes before a block's tiles, kept by one warp. */
struct columns_ahead {
    struct gen *g;
    kb_var from;                               /* i32: the first window that is not in `whole` */
    struct run_var whole[SCAN_COLUMNS_VECTOR]; /* in the lane's columns */
};
void columns_ahead_new(struct gen *g, struct columns_ahead *a);
/* All lanes: store the tile's prefix in its stage; then arrive at `prefixed`. */
void columns_prefix(struct columns_ahead *a, const struct scan_ring *r, const struct scan_ring_tile *t);

/* Look-back in place of the look-ahead.  All lanes of each look-back warp (`own` is its number): store what the warp has
 * read, then arrive at `looked`.  One of these warps, after `looked`: store the tile's prefix in its stage, publish the
 * inclusive prefix, then arrive at `prefixed`. */
void columns_look(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val own);
void columns_before(const struct scan_ring *r, const struct scan_ring_tile *t);

/* The team: scan the tile in place. */
void columns_scan(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val parity);

#endif
