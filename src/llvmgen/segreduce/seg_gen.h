/* SPDX-License-Identifier: Apache-2.0 */
/* seg_gen.h - what emitters of segmented reductions share: stretches of elements that a team of threads reduces.
 *
 * A *team* is a power of two of lanes of a warp, or a whole block.  A *stretch* is a range of consecutive positions of
 * one segment (shared/segment.h).
 */
#ifndef PTXGEN_SEG_GEN_H
#define PTXGEN_SEG_GEN_H

#include "llvmgen/shared/output.h"
#include "llvmgen/shared/segment.h"
#include "lower/segments.h"

enum { SEG_AT_ONCE_MAX = 8, SEG_ITEMS_MAX = 64 };

/* ---- stretches (stretches.c) ------------------------------------------------------------------------------------- */

/* What one lane, warp or block has combined so far; `have` is used where the state has no padding element. */
struct partial {
    kb_tvar x;
    kb_var have;
};
struct partial partial_new(struct gen *g, const char *name);
void partial_take(struct gen *g, struct partial *p, kb_tup x);
/* The same for what another partial has, if anything. */
void partial_join(struct gen *g, struct partial *p, kb_tup x, kb_val have);

struct stretch {
    struct segment *seg;
    kb_val first, last;   /* i64 positions */
    struct partial total; /* of this lane (commutative), or of the team in its lane 0 (ordered) */
};
struct team {
    int lanes;   /* 1 … 32, or all threads of the block (commutative operators only) */
    kb_val rank; /* i32 of this thread in the team */
};
/* Reduce n stretches side by side, so that all their loads are in flight together.  `longest`: i64 >= last - first of
 * each of them, and equal to it where a warp has only one stretch; as uniform as a team is wide.  Whole teams arrive. */
void stretches_reduce(struct gen *g, const struct team *team, int n, struct stretch *stretch, kb_val longest);
/* How many lanes of the team hold something then, counted from the first; at least 1. */
kb_val stretch_valid(struct gen *g, const struct team *team, const struct stretch *stretch);
/* The total of a stretch, in lane 0 of its team, which is part of a warp.  The whole warp arrives. */
kb_tup team_total(struct gen *g, const struct team *team, struct stretch *stretch);

/* ---- a block's stretch (block.c) --------------------------------------------------------------------------------- */
/* The total of positions [first, last) of the segment, the same for the block, in thread 0.  `aggregates`: state_shared
 * of 32, which the first warp reads until the next barrier.  The whole block arrives. */
kb_tup block_stretch(struct gen *g, struct segment *seg, kb_val first, kb_val last, kb_arr aggregates);

/* ---- a segment in registers (resident.c) -------------------------------------------------------------------------- */
/* Reduces a segment that is not empty and has at most 32 * items elements, stores its results and maps it.  The whole warp
 * arrives.  The state is commutative, and there are inputs that are read element by element. */
void resident_by_warp(struct gen *g, const struct segment *seg, int items);

/* ---- whole kernels ----------------------------------------------------------------------------------------------- */
void emit_packed(struct gen *g);        /* a warp's loads are packed with segments (packed.c) */
void emit_products(struct gen *g);      /* segreduce.pairs of two kept axes (products.c) */
void emit_whole(struct gen *g);         /* a block or a warp per segment between offsets (whole.c) */
void emit_staged_shares(struct gen *g); /* the first of two for segments between offsets, by tiles (shares.c) */

#endif
