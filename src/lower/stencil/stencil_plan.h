/* SPDX-License-Identifier: Apache-2.0 */
/* stencil_plan.h - pieces that the plans of stencil strategies are made of. */
#ifndef PTXGEN_STENCIL_PLAN_H
#define PTXGEN_STENCIL_PLAN_H

#include "lower/lower_impl.h"
#include "stencil.h"

struct formula stencil_extent(const struct problem *p, int axis);
/* Points of a row that are read or written in one vector of every array.  Structures are taken one by one, but side by
 * side: a warp that writes whole ones fills whole sectors. */
int stencil_vector(const struct problem *p);
/* Every row of every direct array begins at a boundary of `points` elements. */
struct formula stencil_rows_aligned(const struct problem *p, int points);
struct formula stencil_steps(const struct problem *p);

/* Threads of a block and points of a thread. */
struct shape {
    int threads, block_x, block_y;
    int points_x, points_y, points_z;
    const char *from; /* evidence */
};
/* The row of tuning.def for what a strategy does (`what`), for a kind of problem where it has one ("": any), by the
 * rank of the problem. */
struct shape stencil_tuned(struct arena *a, const struct problem *p, const struct device *d, const char *strategy,
                           const char *what, const char *kind);
/* Are there arrays that are read at the point alone? */
bool stencil_beside(const struct problem *p);
/* Planes in shared memory (stream.c).  Bytes of all rings. */
int64_t stencil_ring_bytes(const struct problem *p, const struct plan_case *c);
struct shape stencil_stream_shape(struct planner *pl, const char *what);
/* A case with this tile, or a smaller one where rings would not fit; with vectors of so many elements, where rows begin at their
 * boundaries: the shape is for the longest, and shorter ones get as many columns and points.  NULL: no row does. */
struct plan_case *stencil_stream_case(struct planner *pl, const struct strategy *row, const char *name,
                                      struct formula guard, struct shape s);
struct plan_case *stencil_stream_vectors(struct planner *pl, const struct strategy *row, const char *name,
                                         struct formula guard, struct shape s, int vector);
/* The cases of a plan in which no strategy is pinned. */
void stencil_stream_choose(struct planner *pl, const struct strategy *row);
/* Takes back the case that was added last. */

/* Values that a window of this shape holds at once, over all inputs. */
int64_t stencil_window_cells(const struct problem *p, const struct shape *s);
int64_t stencil_case_cells(const struct problem *p, const struct plan_case *c);
/* Values that a thread loads for its window, or for a place of a block that streams. */
int64_t stencil_case_loads(const struct problem *p, const struct plan_case *c);
/* Words of four bytes that they lie in, where they are bytes. */
int64_t stencil_case_words(const struct problem *p, const struct plan_case *c);
/* Do the registers of a thread hold what its window reads? */
bool stencil_roomy(const struct problem *p, const struct plan_case *c);
/* Are the values of a place in a block that streams nearly more than registers hold? */
bool stencil_tight(const struct problem *p, const struct plan_case *c);
/* Are they all there, but with little room beside them? */
bool stencil_full(const struct problem *p, const struct plan_case *c);
/* The case leaves rows that fill at most half a block's width to the last one, whose launches choose the width; not where
 * the user has set a width, nor where all cases have one tree. */
void stencil_keep_wide(const struct planner *pl, struct plan_case *c);
/* A case that turns (turned.c): may it?  Its shape; it leaves narrow arrays to the last one. */
bool stencil_turns_fit(const struct problem *p, const struct plan_case *c);
struct shape stencil_turned_shape(struct planner *pl, const struct strategy *row);
/* The same with this many columns per thread: do they pay, and for which arrays? */
bool stencil_turns_by_pairs(struct planner *pl, const struct shape *s, struct formula *guard);
void stencil_keep_turned(const struct planner *pl, struct plan_case *c);
/* Defaults from a shape, made to agree with what the user has set. */
void stencil_set_shape(struct plan_case *c, struct shape s);

/* A second array for each fed-back output, needed from two steps on; buffer: per feedback. */
void stencil_buffers(struct planner *pl, struct plan_case *c, int *buffer);
/* Fed-back arrays of the problem are replaced by those of the time step. */
void stencil_step_args(const struct problem *p, struct prog_kernel *k, const int *buffer);
/* The kernel of windows in a role, and the step that launches it `times` times, if there are time steps. */
void stencil_add_role(struct planner *pl, struct plan_case *c, enum stencil_role role, const int *buffer,
                      struct formula times);
/* Do threads and windows fit each other?  promised: elements of the boundary that rows begin at, where the case is
 * aligned. */
bool stencil_check_tunables(struct planner *pl, const struct plan_case *c, int promised);

#endif
