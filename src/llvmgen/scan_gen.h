/* SPDX-License-Identifier: Apache-2.0 */
/* scan_gen.h - what emitters of scans share: positions, runs of elements, and how runs are joined.
 *
 * A *segment* is a sequence of elements that is scanned on its own; *positions* count its elements in the order of the scan.  A
 * *run* is the combination of consecutive positions.  Runs may span segments: then `cut` says that a segment begins within the run,
 * x is what comes after the last such beginning, and nothing from before the run goes into it.
 *
 * Positions behind the end of a segment stand for its last one again, so that loads stay inside and operators see nothing but what
 * elements contribute; no result of theirs is used.
 */
#ifndef PTXGEN_SCAN_GEN_H
#define PTXGEN_SCAN_GEN_H

#include "gen.h"
#include "lower/scan.h"

enum { SCAN_HELD_MAX = 64 };

/* ---- runs (scan_runs.c) --------------------------------------------------------------------------------------------------- */

struct run {
    kb_val some; /* bool: holds an element */
    kb_val cut;  /* bool: a segment begins in it */
    kb_tup x;
};
struct run run_none(struct gen *g);
struct run run_of(struct gen *g, kb_tup x, kb_val cut); /* of at least one element */
struct run run_join(struct gen *g, struct run left, struct run right);

/* A run in variables, for loops and branches. */
struct run_var { kb_var some, cut; kb_tvar x; };
struct run_var run_var_new(struct gen *g, struct run r);
struct run run_get(struct gen *g, struct run_var v);
void run_set(struct gen *g, struct run_var v, struct run r);

/* ---- the elements that a thread holds (scan_points.c) ------------------------------------------------------------------------ */

/* The segment that is being scanned. */
struct scan_segment {
    kb_val number; /* i64 */
    kb_val first;  /* i64: number of its first element in memory order, where segments are runs of elements */
    kb_val length; /* i64 */
    struct point here; /* its first element in memory order: for what does not vary within it */
};
/* `number` is less than the number of segments.  Sets g->here, so operators read what belongs to this segment. */
void segment_open(struct gen *g, struct scan_segment *s, kb_val number);
/* Write the totals of the segment; `state` is the combination of its elements, valid unless `empty`. */
void segment_finish(struct gen *g, struct scan_segment *s, kb_tup state, kb_val empty);

/* n consecutive positions of a thread: first + own … */
struct held {
    struct gen *g;
    struct scan_segment *segment;
    int n;
    kb_val base;  /* i64 position */
    kb_val own;   /* i32, relative to base */
    kb_val valid; /* i32: positions from base on that are inside */
    struct direct direct[SCAN_HELD_MAX];
    kb_val head[SCAN_HELD_MAX]; /* bool: a segment begins here (known false for most) */
    kb_tup x[SCAN_HELD_MAX];    /* contributions, `init` included where a segment begins */
};
/* Loads what the positions contribute. `fresh`: bool, base + own is where the segment begins, if flags say nothing else. */
void held_load(struct held *h, kb_val fresh);
/* The combination of the positions. */
struct run held_total(struct held *h);
/* Writes the results of the positions inside, `before` having been combined before them, and returns the state at
 * the last position inside in *last when it is not NULL. */
void held_store(struct held *h, struct run before, kb_tup *last);

/* ---- collectives (scan_runs.c) --------------------------------------------------------------------------------------------- */

/* What comes before this thread in the block, and the block's total, the same in all threads.  Every thread has a run of at least
 * one element.  `park`: runs in shared memory, one per warp.  The whole block arrives; park may be used again behind a barrier. */
struct park { kb_arr x; kb_ptr cut; bool cuts; };
struct park park_new(struct gen *g, int count, bool cuts, const char *name);
void park_store(struct gen *g, const struct park *p, kb_val i, struct run r);
struct run park_load(struct gen *g, const struct park *p, kb_val i);
struct run block_scan(struct gen *g, struct run own, const struct park *park, struct run *total);
/* Inclusive over the lanes of a warp; all arrive. */
struct run warp_scan(struct gen *g, struct run own, int lanes, bool cuts);

#endif
