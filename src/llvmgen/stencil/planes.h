/* SPDX-License-Identifier: Apache-2.0 */
/* planes.h - the ring of planes in shared memory of blocks that stream. */
#ifndef PTXGEN_STENCIL_PLANES_H
#define PTXGEN_STENCIL_PLANES_H

#include "stencil_gen.h"

/* What one thread copies of every plane of an input: one element, or as many as a vector has. */
struct part {
    int elements;
    kb_val first;             /* i32: number of the first in the plane's tile, … */
    int number;               /* … but for this constant */
    kb_ptr at;                /* of the first field in the ring: element `first` */
    kb_val exists;            /* bool: the tile has it; ir NULL: always */
    kb_val element;           /* u32: in the array's plane */
    kb_val beyond[SPACE_MAX]; /* bool, along the axes but the first: a constant stands for it; ir NULL: never */
};

struct planes {
    struct gen *g;
    const kb_val *box;        /* i64: the first point of the block, along the axes but the first */
    kb_val extent[SPACE_MAX]; /* i64 */
    kb_val inner[SPACE_MAX];  /* i32: the same, of a plane, whose elements are few enough: stencil_stream_plan() */
    kb_val plane;             /* i64: elements of a plane */
    struct ring ring[PROBLEM_ARGS_MAX];
    struct part part[PROBLEM_ARGS_MAX][STREAM_COPIES_MAX];
    int parts[PROBLEM_ARGS_MAX];
};

void planes_init(struct planes *pl, struct gen *g, const kb_val *box);
/* Rings of all inputs that have one, and what each thread copies of a plane. */
void planes_declare(struct planes *pl);
/* The copies of the planes at a place (i64) into a position of the rings, as a group; none at places from `end` on. */
void planes_copy(struct planes *pl, kb_val place, kb_val end, int position);

/* ---- blocks that stream (stream.c) -------------------------------------------------------------------------------- */
struct stream {
    struct sweep *s;
    struct planes planes;
    kb_val own;        /* u32: the thread's first point, in its plane */
    kb_val begin, end; /* i64: places of the chunk */
    int lo, hi, depth, ahead;
    bool together, keeps, partial; /* stencil_crowded(), stencil_keeps(), stencil_partial() */
    int nheld;                     /* values that stay: of cells with another one before them */
    struct cell *held;
};

/* The window of the points at a place, without values; `turn`: where the lowest plane that it reads lies in the rings. */
void stream_window(struct stream *st, struct window *w, kb_val place, int turn);
/* Waits until at most so many planes are on their way.  The whole block arrives. */
void stream_wait(struct stream *st, int pending);
/* bool: do all points of a window exist, or the first?  Is no point of it skipped: does nothing that it reads leave an array whose
 * boundary is `interior`?  Are all, and is nothing stored or reduced at such points? */
kb_val stream_exists(struct stream *st, bool whole);
kb_val stream_none_skipped(struct stream *st, kb_val place);
kb_val stream_all_skipped(struct stream *st, kb_val place);
/* All places of the chunk, where values grow as planes arrive (partial.c). */
void stream_partial(struct stream *st);

#endif
