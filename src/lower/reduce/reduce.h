/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.h - what the strategies for whole arrays share: reduce.c, space.c. */
#ifndef PTXGEN_REDUCE_H
#define PTXGEN_REDUCE_H

#include "lower/lower_impl.h"

enum { REDUCE_BLOCK_LIMIT = 1 << 14 /* elements that one block reduces alone */ };

/* Are whole arrays reduced? */
bool reduce_whole_array(const struct problem *p, const char **why);
/* May the blocks of a thread-block cluster combine first? */
bool reduce_clusters_fit(const struct problem *p, const struct device *d, struct arena *a, const char **why);
/* The cases of a strategy for what is not small; without a pin only if `chosen`. */
void reduce_plan_large(struct planner *pl, const struct strategy *row, bool chosen);
/* A kernel with the arguments that all of them have: the problem's, and where its vectors are. */
struct prog_kernel *reduce_kernel(struct planner *pl, struct plan_case *c, const char *suffix);
/* Dependent launch, and hints for the caches, as they usually are. */
void reduce_usual(struct planner *pl, struct plan_case *c);
/* Blocks of a grid that fills the device (grid.c). */
struct formula reduce_grid(struct planner *pl, const struct plan_case *c);
/* Do the tunables go together?  False after a diagnostic. */
bool reduce_check_tunables(struct planner *pl, const struct plan_case *c);

/* Bytes of a block's tile: of all direct inputs.  Where an ordered reduction transposes, its shared memory. */
int reduce_tile_bytes(const struct problem *p, const struct plan_case *c);
/* Bytes of shared memory for the totals of a block's warps, and for the tree where `combine` is one. */
int reduce_totals_bytes(const struct problem *p, const struct plan_case *c);

/* The part of reduce_check_tunables() that looks at `combine`, `over_blocks` and `over_threads` (space.c). */
bool reduce_check_space(struct planner *pl, const struct plan_case *c);

#endif
