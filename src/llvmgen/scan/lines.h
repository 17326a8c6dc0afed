/* SPDX-License-Identifier: Apache-2.0 */
/* lines.h - a tile of a scan in lines: line u of a warp is 32 vectors side by side, one per lane.
 *
 * Memory and threads have the same arrangement, so nothing passes through shared memory: a vector is scanned by its
 * lane, a line by shuffles, and lines, one after the other, by a carry that all lanes know.  Cheap where an operator
 * costs a few instructions; the shuffles of a line are paid once per vector.
 *
 * Positions are as in scan_gen.h.  *Places* are 32-bit positions from the tile's base on; the base is where a vector of
 * memory begins, so up to a vector less one place may lie before the tile's first position.
 */
#ifndef PTXGEN_SCAN_LINES_H
#define PTXGEN_SCAN_LINES_H

#include "llvmgen/shared/segment.h"
#include "scan_gen.h"

/* Rows of equal length follow one another within the tile; without division at run time but for one multiplication. */
struct line_rows {
    kb_val length;     /* i32: or one more than a tile, of longer ones that begin in one tile only */
    kb_val reciprocal; /* u64: 2^32 / length + 1 */
    kb_val first;      /* i64: number of one of them, in the order of the scan, … */
    kb_val origin;     /* i32: … and the place where it begins, or any after the tile; below 0 in tiles after */
    kb_val before;     /* i64: position of place 0 in the row before it, if any of that one is inside */
};

enum { LINE_GAPS_MAX = 2 };

/* The caller sets the fields up to `leaving`. */
struct lines {
    struct gen *g;
    const struct scan_segment *segment; /* what positions count: a segment, or all of them as one sequence */
    int n, v;    /* lines of a warp, and consecutive positions of a lane in each; n * v <= SCAN_ITEMS_MAX */
    kb_val base; /* i64 position of place 0 */
    kb_val own;  /* i32 place of the lane's first position in line 0 */
    kb_val from,
        to; /* i32, warp-uniform: places [from, to) are inside; 0 <= from < v, from < to; fewer may be stored */
    kb_val is_start;              /* bool, warp-uniform: the scan begins at `from` */
    const struct line_rows *rows; /* NULL: the tile is part of one segment, unless … */
    kb_ptr turn;                  /* lines_turn_new() */
    const kb_ptr *marks;          /* … not NULL: segments begin where this map says (block_marks.c) */
    const struct turn *leaving;   /* lines_leaving_new(), or NULL */

    bool turned; /* outputs have changed sides */
    int ngaps;   /* of segments of pieces: of consecutive places; between pieces, and from row to row */
    struct gaps gaps[LINE_GAPS_MAX];

    kb_val at[SCAN_ITEMS_MAX]; /* i32: the place, or the nearest one inside */
    struct direct direct[SCAN_ITEMS_MAX];
    kb_val head[SCAN_ITEMS_MAX], tail[SCAN_ITEMS_MAX]; /* bool: a segment begins, ends here (tail: with rows) */
    kb_tup x[SCAN_ITEMS_MAX];                          /* contributions */
    struct run upto[SCAN_ITEMS_MAX];    /* of the positions of the lane's vector, up to and including this one */
    struct run in_line[SCAN_ITEMS_MAX]; /* per line: what comes before the lane in it, … */
    struct run line[SCAN_ITEMS_MAX];    /* … and all of it, the same in all lanes */
    kb_tup state[SCAN_ITEMS_MAX];       /* by lines_scan: what outputs call the state */
    kb_tup result[SCAN_ITEMS_MAX];      /* by lines_scan: everything in the segment up to and including the position */
};

/* How far the element at the tile's first place would be from where the scan begins, if the gaps before the place lay
 * before the tile; and the element so far from there. */
kb_val lines_way(struct lines *l, kb_val at);
kb_val lines_element(struct lines *l, kb_val steps);
/* v of the direct inputs from i on: from the order of memory to that of positions. */
void lines_reverse(struct lines *l, int i, int v);

/* (lines_pieces.c) Of segments of pieces: are v consecutive positions no vector of memory, but exchanged between lanes?
 * And the memory that this takes, once per kernel. */
bool lines_turned(const struct gen *g);
kb_ptr lines_turn_new(struct gen *g);
/* l->gaps.  Then, instead of vectors: loads, what follows them when the inputs are taken, and stores of the line from value
 * i on, after which x holds something else.  The warp arrives. */
void lines_find_gaps(struct lines *l);
void lines_load_pieces(struct lines *l);
void lines_turn_direct(struct lines *l);
void lines_store_across(struct lines *l, kb_ptr out, int i, kb_val *x);

/* Place of value i = line * v + position in the vector. */
kb_val lines_place(const struct lines *l, int i);

/* (segscan/turn_pieces.c) A block's tile of segments of pieces whose outputs turn: the memory that they leave through, once
 * per kernel.  Then values are kept there, and leave; the block arrives, and meets a barrier before it keeps others. */
void lines_leaving_new(struct gen *g, struct turn *t);
void lines_keep(void *of, int output, int i, const kb_val *x);
void lines_leave(const struct lines *l);

/* Places before the position: distance to where a vector of memory begins.  `position` and the result are i64. */
kb_val lines_skew(struct gen *g, const struct scan_segment *s, int v, kb_val position);
/* Load the vectors of the tile, to be taken when its turn comes; needs no more than the fields up to `to`. */
void lines_fetch(struct lines *l, struct direct_vars *ahead);
/* What was fetched for this tile becomes `direct`. */
void lines_take(struct lines *l, const struct direct_vars *ahead);
/* Both, where nothing else happens in between. */
void lines_load(struct lines *l);
/* What the positions contribute, combined in vectors and lines: the total of the warp's lines, in all lanes.  All
 * arrive. */
struct run lines_total(struct lines *l);
/* Scan the positions, `before` having been combined before the warp's first line. */
void lines_scan(struct lines *l, struct run before);
/* Write the results of the positions that are inside. */
void lines_store(struct lines *l);
/* Write the totals of the rows that end in the tile. */
void lines_store_totals(struct lines *l);
/* The state after the last position inside, and whether this lane holds it. */
kb_tup lines_last(struct lines *l, kb_val *mine);

#endif
