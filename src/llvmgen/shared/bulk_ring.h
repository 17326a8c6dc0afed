/* SPDX-License-Identifier: Apache-2.0 */
/* bulk_ring.h - a ring of stages in shared memory for each warp, which bulk copies fill (sm_90).
 *
 *     const struct bulk_ring r = bulk_ring_warp(k, stages, bytes);         all lanes of all warps
 *     fill    ring_announce(&r, at, n);  ring_copy(&r, at, 0, from, n);    lane 0
 *             ring_advance(&r, at);
 *     use     ring_await(&r, at);  … read ring_stage(&r, at, 0, ty) …      all lanes
 *             ring_release(&r);  ring_advance(&r, at);
 *
 * After ring_release() a stage may be filled again.  Filling and using go through the stages in turn, each with a
 * place of its own.  Global addresses and sizes of copies are multiples of 16 bytes: the caller sees to that.
 */
#ifndef PTXGEN_BULK_RING_H
#define PTXGEN_BULK_RING_H

#include "llvmgen/builder/kb.h"

struct bulk_ring {
    kb *k;
    int stages, bytes; /* of a stage: a multiple of 16 */
    kb_ptr memory;     /* u8: the stages of all warps */
    kb_ptr full;       /* an mbarrier for each stage */
    kb_val first;      /* i32: number of the warp's first stage in memory and among the barriers */
};

/* Where a user of the ring is: the stage, and the parity of the round. */
struct ring_place {
    kb_var stage, parity;
};

/* All lanes of all warps arrive: a ring for each warp. */
struct bulk_ring bulk_ring_warp(kb *k, int stages, int bytes);

struct ring_place ring_start(const struct bulk_ring *r);
void ring_advance(const struct bulk_ring *r, struct ring_place at);
/* The stage's memory from a byte on, as elements of a type. */
kb_ptr ring_stage(const struct bulk_ring *r, struct ring_place at, int byte, enum ty ty);

/* Lane 0: first the bytes that will be copied into the stage in all, then each copy: `bytes` (i32) to byte `to` of the
 * stage. */
void ring_announce(const struct bulk_ring *r, struct ring_place at, kb_val bytes);
void ring_copy(const struct bulk_ring *r, struct ring_place at, int to, kb_ptr from, kb_val bytes);

/* All lanes of the warp: wait until the stage is full; give it back, when all lanes have read. */
void ring_await(const struct bulk_ring *r, struct ring_place at);
void ring_release(const struct bulk_ring *r);

#endif
