/* SPDX-License-Identifier: Apache-2.0 */
/* segments.h - how the elements of a reduction with kept dimensions lie in memory.
 *
 * A problem has *segments*: one per combination of the kept axes, or one per pair of offsets.  The elements of a
 * segment are numbered by their *place*: 0, 1, … in row-major order of the reduced axes.  Where the reduced axes are
 * neighbours, the space is a box of three merged axes,
 *
 *     element = (outer * length + place) * inner + column,      segment = outer * inner + column
 *
 * and `inner` is 1 where the reduced axes are the last ones (*trailing*: a segment is a run of elements).
 */
#ifndef PTXGEN_SEGMENTS_H
#define PTXGEN_SEGMENTS_H

#include "access.h"

struct planner;
bool segments_kept(const struct problem *p);     /* an axis is kept */
bool segments_trailing(const struct problem *p); /* also with offsets */
bool segments_adjacent(const struct problem *p); /* the reduced axes are neighbours, so the box above exists */
/* Else the second of three axes is kept: a segment consists of *pieces*, runs of as many elements as the last axis has,
 * at equal distances. */
static inline bool segments_in_pieces(const struct problem *p) { return !segments_adjacent(p); }
struct formula segments_piece(const struct problem *p); /* its elements */
enum { SEGMENTS_PIECE_MOST = 1 << 16 };                 /* elements of a tile of pieces */
int segments_behind(const struct problem *p);           /* the first axis after the reduced ones */
struct formula segments_count(const struct problem *p); /* with `by`: bins */
/* Elements among which segments lie: none where there is not one offset, for kernels that read the first and the last. */
struct formula segments_elements(const struct problem *p);
struct formula segments_length(const struct problem *p); /* not with offsets: there it differs */
/* What is known about the length before the launch. */
void segments_length_range(const struct planner *pl, int64_t *lo, int64_t *hi);
struct formula segments_inner(const struct problem *p); /* only where adjacent */

/* Several blocks per segment: a block's slot of words begins with one whose lower half counts tickets of the segment
 * whose first block it is; it is zero between launches, whatever sizes they have. */
enum { SEGMENTS_TICKET_WORDS = 1 };

/* Consecutive elements that a lane takes of a staged tile between offsets: `items` vectors of so many elements, made
 * odd so that lanes read different banks; no more than 31, the bits of a word less one. */
int segments_chunk(int items, int vector);

/* Fraction bits of `pace`, the segments that a tile would have if all had the same size. */
enum { SEGMENTS_PACE_BITS = 16 };

/* Counters (u64) of a queue of parts; there are two of each, for launches in turn. */
enum { SEGMENTS_QUEUE_WORDS = 2 };

#endif
