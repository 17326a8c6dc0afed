/* SPDX-License-Identifier: Apache-2.0 */
/* segment.h - a segment: where it begins and ends, its points, and where its results are stored.
 *
 * Segments are rows, columns, boxes of a middle dimension, or lie between offsets.  The elements of a segment have
 * consecutive *positions*: element numbers where segments are runs of elements (trailing), else places within the
 * segment.
 */
#ifndef PTXGEN_SEGMENT_H
#define PTXGEN_SEGMENT_H

#include "gen.h"

struct segment {
    kb_val number;      /* i64 */
    kb_val element;     /* i64: its first element, … */
    kb_val first, last; /* … and its positions, [first, last) */
    struct point here;  /* its first element, for what does not vary within it */
};
/* Segment `number`, which must exist.  After segment_enter(), operators read the invariants of this segment, until
 * another one is entered. */
void segment_at(struct gen *g, struct segment *s, kb_val number);
/* Segment `number` between offsets, without reading the offsets: the caller gives the first element. */
void segment_known(struct gen *g, struct segment *s, kb_val number, kb_val first);
/* The one with these indices along the kept axes, of a problem without offsets: nothing is divided. */
void segment_of(struct gen *g, struct segment *s, const kb_val *index);
/* The same, whose number is known. */
void segment_named(struct gen *g, struct segment *s, kb_val number, const kb_val *index);
/* The segment of a column (see lower/segments.h). */
void segment_column(struct gen *g, struct segment *s, kb_val outer, kb_val column);
void segment_enter(struct gen *g, struct segment *s);
/* Computes what the maps of all elements of the segment share, for its points from here on, ahead of a loop over them. */
void segment_ahead(struct gen *g, struct segment *s);
/* The point at position base + offset + plus of the segment. */
void segment_point(struct gen *g, struct point *pt, const struct segment *s, kb_val base, kb_val offset, int plus);

/* Gaps between elements at consecutive positions, every so many of them, as seen from one position.  Distances from
 * there are below SEGMENTS_PIECE_MOST. */
struct gaps {
    kb_val every;      /* i32: positions between two gaps, or SEGMENTS_PIECE_MOST if they are more */
    kb_val reciprocal; /* u64: 2^32 / every + 1 */
    kb_val size;       /* i64: elements that a gap has */
    kb_val skipped;    /* i64: elements of gaps that lie before the position … */
    kb_val next;       /* i32: … and its distance to the next one; at most `every` */
};
/* Where segments consist of pieces: from position `base` of a segment on, gaps since its beginning.  And elements of
 * others between two pieces, i64. */
struct gaps pieces_from(struct gen *g, kb_val base);
kb_val pieces_between(struct gen *g);
/* As seen from a position that is i32 `at` further. */
struct gaps gaps_at(struct gen *g, const struct gaps *from, kb_val at);
/* A known distance further, in few instructions, and without `skipped`: what has to be added to that and to `plus`, i64. */
kb_val gaps_pass(struct gen *g, struct gaps *from, int distance, int plus);

/* One thread, in a segment that is entered: applies init, treats the empty case and stores the outputs.  The second
 * function is for a segment whose positions are not known; empty: bool. */
void segment_store(struct gen *g, struct segment *s, kb_tup total);
void segment_store_known(struct gen *g, struct segment *s, kb_tup total, kb_val empty);

#endif
