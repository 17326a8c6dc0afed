/* SPDX-License-Identifier: Apache-2.0 */
/* segscan.h - what the planning of segmented scans shares. */
#ifndef PTXGEN_SEGSCAN_H
#define PTXGEN_SEGSCAN_H

#include "lower/lower_impl.h"
#include "lower/scan/scan.h"

bool segscan_has_segments(const struct problem *p, struct arena *a, const char **why);
/* A strategy is pinned, so its cases must take every launch that they can. */
bool segscan_pinned(const struct planner *pl);
/* A case for arrays that begin where a vector does, and one for others.  `whole`: for rows that fit a tile, of a block
 * or of a warp. */
void segscan_add_cases(struct planner *pl, const struct strategy *row, const char *variant, const char *name,
                       struct formula guard, bool whole, bool block);
/* A kernel with the arguments that all of them have: those of scans, count. */
struct prog_kernel *segscan_kernel(struct planner *pl, struct plan_case *c);
bool segscan_check(struct planner *pl, const struct plan_case *c);

#endif
