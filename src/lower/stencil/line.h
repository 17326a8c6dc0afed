/* SPDX-License-Identifier: Apache-2.0 */
/* line.h - the geometry of several time steps per launch in one dimension, for planning and code generation.
 *
 * A *tile* is a warp's: 32 stretches of `items` points side by side, one per lane.  What a warp computes goes wrong from
 * the ends of its tile inward, `reach` points with each step, so tiles overlap.
 */
#ifndef PTXGEN_STENCIL_LINE_H
#define PTXGEN_STENCIL_LINE_H

#include "strip.h"

enum { LINE_ITEMS_MAX = 64, LINE_KERNELS = 2 };

struct line_shape {
    int reach;  /* the longest offset */
    int items;  /* points of a lane */
    int width;  /* points of a tile */
    int vector; /* points of the widest access; tiles begin at multiples */
    int halo;   /* points that a tile loses on either side */
    int useful; /* those that are left */
    int warps;  /* of a block */
    int pitch;  /* bytes from one lane's stretch to the next in shared memory, whatever the array, so that a stretch is
                   its lane's alone; lanes side by side meet different banks */
};
struct line_shape line_shape(const struct plan_case *c, const struct problem *p);
/* Points of an access of an array, in an aligned case. */
int line_vector(const struct prog_array *a, int items);

/* Kernels of several steps: kernel 0 does as many as the tunable says, kernel 1 what is left of them.  Which of them
 * the case has, in this order; none if the tunable says one step. */
int line_kernels(const struct plan_case *c, const struct problem *p, bool rest[LINE_KERNELS]);
/* The roles of the windows behind them. */
int line_roles(const struct plan_case *c, const struct problem *p, enum stencil_role role[STENCIL_ROLES]);

/* stencil.temporal in one dimension. */
void line_plan(struct planner *pl, const struct strategy *row);
bool line_build(struct planner *pl, struct plan_case *c);
void line_explain(const struct problem *p, const struct plan_case *c, struct str *out);

#endif
