/* SPDX-License-Identifier: Apache-2.0 */
/* stencil.h - what planning and code generation share about stencils: what is read, how far, and which kernels a case
 * has. */
#ifndef PTXGEN_STENCIL_H
#define PTXGEN_STENCIL_H

#include "lower/plan.h"

/* Lowest and highest offset, along the axes of the space or the dimensions of an input; lo <= 0 <= hi. */
struct reach {
    int64_t lo[SPACE_MAX], hi[SPACE_MAX];
};

/* f on every EX_INPUT and EX_GATHER of the outputs per element and the maps, through lets, each once. */
void stencil_each_read(const struct problem *p, void (*f)(const struct expr *e, void *user), void *user);
/* How far constant offsets reach from a point, in the dimensions of `input`. */
struct reach stencil_input_reach(const struct problem *p, int input);
/* The same along the axes of the space, over all inputs. */
struct reach stencil_space_reach(const struct problem *p);
/* The input that is read before a point along the first axis of the space; -1: none is. */
int stencil_joined_input(const struct problem *p);
/* How many time steps one of its kernels computes at most: between two exchanges. */
int stencil_joined_steps(const struct problem *p);
/* Blocks that send to other ranks, at most, so that others have room; and values that a thread of them loads at once, at most,
 * where a kernel computes several steps: two for each, as its registers are more with them. */
enum { JOINED_SENDERS_MOST = 128, JOINED_AT_ONCE = 16 };
/* Has a dimension of an input this boundary? */
bool stencil_bounded_by(const struct problem *p, enum boundary_mode mode);
/* … that leaves out points whose surroundings it does not hold? */
static inline bool stencil_skips(const struct problem *p) { return stencil_bounded_by(p, BOUND_INTERIOR); }

/* The feedback into an input, or from an output; -1: there is none. */
int stencil_feeds(const struct problem *p, int input);
int stencil_fed(const struct problem *p, int output);

/* What the kernels of a case do. */
enum stencil_role {
    STENCIL_STEP, /* one step */
    STENCIL_LAST, /* the last step, with the reductions */
    STENCIL_COPY, /* no steps: the fed-back inputs become their outputs */
};
enum { STENCIL_ROLES = 3 };
int stencil_roles(const struct problem *p, enum stencil_role role[STENCIL_ROLES]);

/* Points that a thread computes, and threads of a block, along an axis of the space. */
int stencil_points(const struct plan_case *c, int rank, int axis);
int stencil_threads(const struct plan_case *c, int rank, int axis);
/* Points of a block. */
int stencil_box(const struct plan_case *c, int rank, int axis);
/* Rows may begin anywhere in a vector.  Then each row of a window begins at a boundary of its own: so many columns
 * right of the window's origin, for the row at these coordinates along the outer axes.  Rows of windows side by side
 * still meet. */
int stencil_skew(const struct plan_case *c, int rank, const int *at);
bool stencil_skewed(const struct plan_case *c);
/* The least and the most of it over the rows of a window. */
struct skews {
    int lo, hi;
};
struct skews stencil_skews(const struct plan_case *c, int rank);
/* Columns that windows must begin before column 0, a multiple of points_x, so that every row is covered. */
int stencil_lead(const struct plan_case *c, int rank);
/* Where outputs have another last dimension than the space: the axis that this is in the first of them; -1: there are
 * none. */
int stencil_turn(const struct problem *p);
/* In a case that turns: does this output leave in its own order, through a tile in shared memory with the values of the
 * block's box?  Elements, of so many bytes, from one row of the tile to the next. */
bool stencil_turned(const struct problem *p, const struct plan_case *c, int output);
int stencil_turned_pitch(const struct problem *p, const struct plan_case *c, int bytes);
/* And do the windows of such a case hold so few values that those at edges load all of them together? */
bool stencil_turns_together(const struct problem *p, const struct plan_case *c);
/* Do blocks stream along axis 0? */
bool stencil_streams(const struct plan_case *c);
/* Do registers not hold the values of all a thread's points of a place, so that they are loaded where they are used?
 * And do those that the next place reads too stay there? */
bool stencil_crowded(const struct problem *p, const struct plan_case *c);
bool stencil_keeps(const struct problem *p, const struct plan_case *c);
/* Do values grow as planes arrive: what they are of the planes up to an offset stays in registers, not what was read?  Then the
 * part of the value for each offset from lo on; the last is the value. (partial.c) */
enum { PARTS_MAX = 32 };
struct parts {
    int lo, hi;
    const struct expr *part[PARTS_MAX];
};
bool stencil_parts(const struct problem *p, struct parts *parts);
bool stencil_partial(const struct problem *p, const struct plan_case *c);
/* Are there floats of two bytes?  Points of their windows are computed side by side, so that the assembler finds pairs:
 * point by point it spilled up to 344 bytes, with registers left. */
bool stencil_halves(const struct problem *p);
/* Planes of an input in shared memory: the block's tile of one place and what its points read around it. */
struct ring_shape {
    struct reach reach;
    int64_t lo, hi;    /* over all inputs: planes that a place reads */
    int before, after; /* columns before the tile's first and after its last, multiples of points_x */
    int rows, pitch;   /* of a plane; elements of a row */
    bool partial;      /* stencil_partial() */
    int depth;         /* planes in the ring */
    int ahead;         /* of them so many are on their way when a place is computed */
};
struct ring_shape stencil_ring(const struct problem *p, const struct plan_case *c, int input);
/* Elements that a thread copies of a plane into the ring at once; `asynchronous`: the target has such copies.  How many
 * of them are a thread's; at most STREAM_COPIES_MAX. */
enum { STREAM_COPIES_MAX = 64 };
int stencil_ring_vector(const struct problem *p, const struct plan_case *c, int input, bool asynchronous);
int stencil_ring_copies(const struct problem *p, const struct plan_case *c, int input, bool asynchronous);
/* With tiles: does an input go through shared memory? */
bool stencil_staged(const struct problem *p, int input);
/* Are there reductions whose bits must not depend on where arrays lie?  Then cases for aligned arrays have a twin of
 * the same shape for others. */
bool stencil_one_tree(const struct problem *p);
/* Are all outputs bytes of which the low eight bits are all that is needed on the way, so that rows can be computed in
 * packed words? */
bool stencil_packs(const struct problem *p);
/* How many values a point reads. */
int stencil_reads(const struct problem *p);
/* Does a problem of three dimensions read values of 8 or 16 bits alone, several in a register until they are computed
 * with? */
bool stencil_narrow(const struct problem *p);
/* Is that so of one of two dimensions, with floats among them? */
bool stencil_flat_halves(const struct problem *p);
/* Lines for explain: how often what a case loads is used, and what overlaps. */
void stencil_explain(const struct problem *p, const struct plan_case *c, struct str *out);
/* Threads are numbered along the points in row-major order, so that their contributions are in order. */
bool stencil_linear(const struct problem *p);

#endif
