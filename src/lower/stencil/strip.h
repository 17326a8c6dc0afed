/* SPDX-License-Identifier: Apache-2.0 */
/* strip.h - the geometry of several time steps per launch, for planning and code generation; that of one dimension is in
 * line.h.
 *
 * The first axis is streamed: a *plane* is a row in two dimensions, and a plane in three.  A warp has a strip of 128
 * columns; in three dimensions a block's warps lie below each other, each with some lines.
 */
#ifndef PTXGEN_STENCIL_STRIP_H
#define PTXGEN_STENCIL_STRIP_H

#include "stencil.h"

enum {
    STRIP_COLUMNS = 4, /* of a lane */
    STRIP_WIDTH = 32 * STRIP_COLUMNS,
    STRIP_REACH_MAX = 2,
    STRIP_STEPS_MAX = 16,
    STRIP_LINES_MAX = 8,
    STRIP_FED_MAX = 3,
    STRIP_ARRAYS_MAX = 6, /* read and written; the guard asks for the place of each */
    LINE_REACH_MAX = 4,   /* in one dimension (line.h) */
    STRIP_GIVES = 12,     /* rows that a part gives to others which has rows of other ranks to send or to wait for */
};

struct strip_shape {
    int steps;                 /* of a launch */
    int reach;                 /* the longest offset */
    int places;                /* 2 reach + 1: planes of a step in registers */
    int lines;                 /* of a lane; 1 in two dimensions */
    int warps;                 /* of a block */
    int halo;                  /* columns that a strip loses on either side */
    int useful;                /* those that are left */
    int height, useful_height; /* in three dimensions: lines of a block, and what is left of them */
};
struct strip_shape strip_shape(const struct plan_case *c, const struct problem *p, int steps);

/* Steps of kernel i = 0, 1, … of a case: what the tunable says, then halves; 0: no more kernels of several steps. */
int strip_steps(const struct plan_case *c, int i);
/* Elements of an aligned access, at most `most`, a power of two; in strips at most STRIP_COLUMNS. */
int strip_vector_of(const struct prog_array *a, int most);
int strip_vector(const struct prog_array *a);
/* And all direct arrays begin at the boundary of one. */
struct formula strip_bases_aligned(const struct problem *p, int most, struct formula guard);
/* The longest offset of all inputs. */
int strip_reach(const struct problem *p);
/* Do the arrays that are fed back wrap around at axis d? */
bool strip_wraps(const struct problem *p, int d);
/* Does a line of the input see other lines, in three dimensions? */
bool strip_sees_lines(const struct problem *p, int input);
/* Lines for explain: what is lost at the sides. */
void strip_explain(const struct problem *p, const struct plan_case *c, struct str *out);
/* NULL, or why the problem does not fit. */
const char *strip_misfit(const struct problem *p, struct arena *a);

#endif
