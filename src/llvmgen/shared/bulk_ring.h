/* SPDX-License-Identifier: Apache-2.0 */
/* bulk_ring.h - a ring of stages in shared memory that bulk copies fill (sm_90).
 *
 * Two owners.  A *block's* ring has a producer, one lane of a warp of its own, and consumers, the warps of a team:
 *
 *     const struct bulk_ring r = bulk_ring_block(k, stages, bytes, consumers);      every thread of the block
 *     producer   ring_acquire(&r, at);  ring_announce(&r, at, n);  ring_copy(&r, at, 0, from, n);
 *                ring_advance(&r, at);
 *     consumer   ring_await(&r, at);  … read ring_stage(&r, at, 0, ty) …  ring_release(&r, at);
 *                ring_advance(&r, at);
 *
 * A *warp's* ring belongs to that warp alone: lane 0 announces and copies, the others need not be waited for but by
 * ring_release(), after which the stage may be filled again.
 *
 * Every user of a ring goes through the stages in turn, with a place of its own.  Global addresses and sizes of
 * copies are multiples of 16 bytes: the caller sees to that.
 */
#ifndef PTXGEN_BULK_RING_H
#define PTXGEN_BULK_RING_H

#include "llvmgen/builder/kb.h"

struct bulk_ring {
    kb *k;
    int stages, bytes; /* of a stage: a multiple of 16 */
    bool shared;       /* by the warps of the block */
    kb_ptr memory;     /* u8 */
    kb_ptr full, empty;
    kb_val first; /* i32: number of the ring's first stage in memory and among the barriers */
};

/* Where a user of the ring is: the stage, and the parity of the round. */
struct ring_place {
    kb_var stage, parity;
};

/* The whole block arrives, before it splits into teams: `consumers` warps will release each stage. */
struct bulk_ring bulk_ring_block(kb *k, int stages, int bytes, int consumers);
/* All lanes of all warps arrive: a ring for each warp. */
struct bulk_ring bulk_ring_warp(kb *k, int stages, int bytes);
/* Shared memory that they take: bytes, and a barrier or two per stage. */
int bulk_ring_bytes(int stages, int bytes, int rings);

struct ring_place ring_start(const struct bulk_ring *r);
void ring_advance(const struct bulk_ring *r, struct ring_place at);
/* The stage's memory from a byte on, as elements of a type. */
kb_ptr ring_stage(const struct bulk_ring *r, struct ring_place at, int byte, enum ty ty);

/* Producer, one lane.  acquire: until the consumers have released the stage; a warp's ring has nothing to wait for. */
void ring_acquire(const struct bulk_ring *r, struct ring_place at);
/* How much will be copied into the stage in all, and then each copy: `bytes` (i32) to byte `to` of the stage. */
void ring_announce(const struct bulk_ring *r, struct ring_place at, kb_val bytes);
void ring_copy(const struct bulk_ring *r, struct ring_place at, int to, kb_ptr from, kb_val bytes);

/* Consumers, whole warps. */
void ring_await(const struct bulk_ring *r, struct ring_place at);
void ring_release(const struct bulk_ring *r, struct ring_place at);

#endif
