/* SPDX-License-Identifier: Apache-2.0 */
/* shares.h - what the parts of the kernel for staged shares of irregular segments know together; the algorithm is
 * described in shares.c.
 *
 * All values are one warp's.  Positions are elements from the share's beginning on, as i32.
 */
#ifndef PTXGEN_SEG_SHARES_H
#define PTXGEN_SEG_SHARES_H

#include "seg_gen.h"
#include "stage.h"

enum { SHARE_NONE = -1 };

/* A group of 32 segments: segment base + i is lane i's. */
struct group {
    kb_var base; /* i64 */
    kb_var end;  /* i32: where the lane's segment ends, kept inside [0, length + 1]; SHARE_NONE: it has no elements */
    kb_var last; /* i32, warp-uniform: where the group's last segment ends */
};

struct shares {
    struct gen *g;
    struct stages stages;
    int tile;      /* elements */
    bool in_place; /* a state takes the place of the element that a segment ends with, else a slot of `totals` */
    kb_ptr marks;  /* of the warp, u32: a bit per element of a batch, where a segment ends */
    kb_arr totals; /* of the warp: of a batch's segments */

    kb_val segments;     /* i64 */
    kb_val from;         /* i64: the first element of the share */
    kb_val length, stop; /* its elements, and how many of them lie before the last offset */
    struct group now;
    kb_var next_first, next_last; /* i64: the offsets of the group after `now`, on their way */
    kb_var head;                  /* i64: the segment that began before the share and ends in it, if any */
    kb_var head_first;            /* i64: its first element */
    kb_var ended;                 /* bool, warp-uniform: a segment has ended in the share */
    kb_var pos;                   /* warp-uniform: how far the share has been combined */
    struct partial open;          /* what has been combined since the last end, … */
    kb_var spread;                /* bool: … in all lanes (commutative), not in lane 0 alone */
    kb_arr left_over;             /* of the block, 2 w: the total of the head of warp w */
    struct segment here;
};

/* Elements [pos, end) of the stage, the first one at place `at` of it, and the lanes' segments among the current group
 * that end there. */
struct batch {
    kb_val stage, pos, end, at;
    kb_val mine; /* bool */
    kb_val ends; /* u32, warp-uniform: the lanes whose segments do */
};

static inline kb_val share_uniform(kb_val x) { return kb_assume_uniform(x, KB_UNI_WARP); }

/* One lane: the results of segment `number`. */
void share_finish(struct shares *s, kb_val number, kb_tup total, bool empty);

/* ---- groups of segments (groups.c) ------------------------------------------------------------------------------- */
/* Offset i, as it is written: it may lie outside of the array. */
kb_val share_offset(struct shares *s, kb_val i);
/* An element number as a position inside [0, length]. */
kb_val share_position(struct shares *s, kb_val element);
void group_init(struct shares *s);
/* The group of the segment that the share begins in, and the head. */
void group_first(struct shares *s);
/* The group with the first segment that ends after `pos`, which is after the current one. */
void group_advance(struct shares *s, kb_val pos);
/* Warp `number` of `warps`: results of groups of 32 segments that have no elements at all. */
void groups_finish_empty(struct shares *s, kb_val number, kb_val warps);

/* ---- staged elements (batch.c) ----------------------------------------------------------------------------------- */
void batch_init(struct shares *s);
/* No segment ends there: combine. */
void batch_inside(struct shares *s, const struct batch *b);
/* Some do: combine, and write their results, but for the head's, which the lane that has it hands to `take_head`. */
void batch_ends(struct shares *s, const struct batch *b, void (*take_head)(struct shares *s, kb_tup total));
/* What has been combined since the last end, in lane 0 alone. */
void share_gather_open(struct shares *s);

#endif
