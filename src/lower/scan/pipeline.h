/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.h - the shapes of scan.pipeline's tiles (pipeline_tile.c). */
#ifndef PTXGEN_LOWER_SCAN_PIPELINE_H
#define PTXGEN_LOWER_SCAN_PIPELINE_H

#include "scan.h"

enum { PIPELINE_THREADS_MAX = 1024 };

/* Bytes of shared memory beside the stages, and of a stage. */
int pipeline_reserved(const struct problem *p, int threads, int stages, int vector, int looks);
int pipeline_stage_bytes(const struct problem *p, int tile);
/* Warps that mark where segments begin, and the threads of a block of which `threads` scan. */
int pipeline_markers(const struct problem *p);
int pipeline_threads(int threads, int upsweep, int markers, int looks);
/* The most positions of a thread at all. */
int pipeline_positions_most(const struct problem *p, int vector);
/* Bytes that are compared with neighbours, in marked segments: so much work per byte that more warps combine.  H200, u8 of 2^26 between
 * flags: 203 us, by four warps 212. */
bool pipeline_takes_bytes(const struct problem *p);
/* Vectors per thread: an odd number, as many as registers and the ring have room for; 0: not even one. */
int pipeline_most_items(const struct problem *p, const struct device *d, int threads, int upsweep, int vector,
                        int stages, int looks);
/* Elements of the narrowest array in 16 bytes. */
int pipeline_unit(const struct problem *p);
/* Operators whose chains wait, and not memory: many threads with few positions each. */
bool pipeline_waits(const struct problem *p, int sm);
/* The largest tile, where the tuned one does not fit; and threads and positions for such operators. */
void pipeline_largest_tile(const struct problem *p, const struct device *d, struct plan_case *c);
void pipeline_shorten_chains(const struct problem *p, const struct device *d, struct plan_case *c);

#endif
