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
/* The segment of a column (see lower/segments.h). */
void segment_column(struct gen *g, struct segment *s, kb_val outer, kb_val column);
void segment_enter(struct gen *g, struct segment *s);
/* The point at position base + offset + plus of the segment. */
void segment_point(struct gen *g, struct point *pt, const struct segment *s, kb_val base, kb_val offset, int plus);

/* One thread, in a segment that is entered: applies init, treats the empty case and stores the outputs.  The second
 * function is for a segment whose positions are not known; empty: bool. */
void segment_store(struct gen *g, struct segment *s, kb_tup total);
void segment_store_known(struct gen *g, struct segment *s, kb_tup total, kb_val empty);

#endif
