/* SPDX-License-Identifier: Apache-2.0 */
/* strip_gen.h - what the files of stencil.temporal share: a lane's part of a strip, its arrays, and what lies beyond.
 */
#ifndef PTXGEN_STRIP_GEN_H
#define PTXGEN_STRIP_GEN_H

#include "stencil_gen.h"
#include "lower/stencil/strip.h"

enum { V = STRIP_COLUMNS, PLACES_MAX = 2 * STRIP_REACH_MAX + 1, AHEAD_MAX = PLACES_MAX };

/* Planes of an array that is fed back, all at places of a ring that are known when the kernel is generated. */
struct queue {
    int input, output;
    bool lines;                                                 /* its lines see those of other warps */
    kb_var at[STRIP_STEPS_MAX][PLACES_MAX][STRIP_LINES_MAX][V]; /* [step][place][line][column] */
    kb_var ahead[AHEAD_MAX][STRIP_LINES_MAX][V];                /* planes of step 0 as they were read */
    kb_var came[AHEAD_MAX][STRIP_LINES_MAX];                    /* with other ranks: they have all been read; bool */
    kb_ptr border; /* lines for other warps: [parity][step][side][distance][warp][column] */
};

struct strip {
    struct gen *g;
    struct strip_shape is;
    bool sides, ends;   /* columns or lines, planes may lie beyond the array: else no boundary is met */
    bool aligned;       /* rows begin at vector boundaries */
    bool by_element;    /* else: columns are read and written one by one */
    int nqueues, ahead; /* how many planes are read ahead */
    struct queue queue[STRIP_FED_MAX];
    kb_val lane, warp;             /* i32 */
    kb_val planes, lines, columns; /* extents, i32; lines only in three dimensions */
    kb_val pitch;                  /* elements of a plane, i64 */
    kb_val x, y;      /* i32: the first column and line of the lane, which wrap around where the array does */
    kb_val begin;     /* i32: the warp's first column */
    kb_val right;     /* bool: its columns end with the row */
    kb_val column[V]; /* at edges: where columns are read, i32; only the first when aligned */
    kb_val line[STRIP_LINES_MAX];       /* element that the line begins at, in its plane; i64 */
    kb_val first, last, top, bottom;    /* i32: columns and lines that are written: [first, last), [top, bottom) */
    kb_val from, to;                    /* i32: planes that are written */
    kb_var half;                        /* i32: where in the borders this round reads */
    struct joined *joined;              /* other ranks have planes beyond: strip_joined.c; or NULL */
    kb_val beside[2];                   /* then: they have, before and after this one's; bool */
    kb_val block;                       /* i32: number of the block among those that compute */
    kb_var moving[PROBLEM_ARGS_MAX][V]; /* per input, where rows are moved in more than one way */
    int half_size;
};

/* Values of one step of all lines, and what is beside them. */
struct beside {
    kb_val line[STRIP_FED_MAX][2][STRIP_REACH_MAX]
               [V]; /* beyond the lane's lines in the middle plane, by side and distance - 1 */
    kb_val column[STRIP_FED_MAX][PLACES_MAX][STRIP_LINES_MAX + 2 * STRIP_REACH_MAX][2][STRIP_REACH_MAX];
    kb_val aux[PROBLEM_ARGS_MAX][STRIP_LINES_MAX][V]; /* inputs that are read at the point */
};

/* The point that is being computed: the step it is made from, the place of the newest plane, its line and column. */
struct strip_point {
    struct point pt;
    const struct strip *s;
    struct beside *beside;
    int step, place, line, column;
};

static inline int strip_place(const struct strip *s, int newest, int back)
{
    return (newest - back + 2 * s->is.places) % s->is.places;
}

/* ---- strip_step.c: one step of one plane ---- */
/* A coordinate along an axis that wraps around, if the point may lie beyond the array. */
kb_val strip_wrapped(const struct strip *s, bool beyond, int axis, kb_val i, kb_val extent);
/* Step `step` + 1 of plane z, where `place` has the newest plane of the step before; and its values to memory. */
void strip_compute(const struct strip *s, int step, int place, kb_val z, kb_val v[STRIP_FED_MAX][STRIP_LINES_MAX][V]);
void strip_store_plane(const struct strip *s, kb_val z, kb_val v[STRIP_FED_MAX][STRIP_LINES_MAX][V]);

/* ---- strip_rows.c: arrays ---- */
/* At the sides, are columns read and written one by one?  Where they wrap around; and in two dimensions, where a warp at a
 * side is what all others wait for and shuffles would only make its rounds longer. */
bool strip_sides_by_element(const struct strip *s);
/* Columns of a row that begins at element `row`: as they are, or from the vector boundary before; then strip_shift()
 * puts them right. */
void strip_load(const struct strip *s, int input, kb_val row, kb_val v[V]);
void strip_shift(const struct strip *s, int input, kb_val row, kb_val v[V]);
/* The elements that strip_load() reads, i64. */
void strip_elements(const struct strip *s, int input, kb_val row, kb_val e[V]);
/* Write the columns in [first, last); rows that are not aligned move both bounds to the vector boundary before, so that
 * strips meet. */
void strip_store(const struct strip *s, kb_ptr array, const struct prog_array *a, kb_val row, const kb_val v[V]);
/* The element that plane z begins at, inside the array; *outside where a constant stands for it (ir NULL: nowhere). */
kb_val strip_plane(const struct strip *s, int input, kb_val z, kb_val *outside);

/* ---- line.c: the kernels of one dimension ---- */
void emit_line(struct gen *g);

/* ---- strip_edge.c: what lies beyond ---- */
/* The value `distance` beyond the n ones of a lane on a side: that of the lane beside, or where `edge` (bool) holds what
 * stands for it beyond the array.  The whole warp arrives. */
kb_val strip_beside(kb *k, const struct boundary *b, const kb_val *v, int n, int side, int distance, kb_val edge);
/* The value `distance` beyond the lane's columns on a side, of a line whose own columns are v. */
kb_val strip_column_beside(const struct strip *s, const struct queue *q, const kb_val v[V], int side, int distance);
/* Line `distance` beyond the lane's own ones in the plane at `place` of a step, out of the borders. */
void strip_line_beside(const struct strip *s, const struct queue *q, int step, int place, int side, int distance,
                       kb_val v[V]);
/* Planes beyond the array in what has just become step `step`, plane z at `place`. */
void strip_planes_beyond(const struct strip *s, const struct queue *q, int step, int place, kb_val z);
/* v, or what the point had where its surroundings leave an array whose boundary is `interior`. */
kb_val strip_keep(const struct strip *s, const struct strip_point *sp, const struct queue *q, kb_val v);

/* ---- temporal.c: kernels ---- */
/* Write rows [s->from, s->to) of a strip, in two dimensions; in three, the share of block s->block. */
void strip_stream_rows(struct strip *s, kb_val strip);
void strip_planes_of_block(struct strip *s);

/* ---- strip_joined.c: planes of other ranks ---- */
/* All of a kernel but what begins it. */
void strip_joined(struct strip *s, struct joined *j);
/* Before the first plane is read, which is plane `begin`. */
void strip_joined_await(const struct strip *s, kb_val begin);
/* A line of a plane, whose element `row` it begins at, into q->ahead; and before it is used. */
void strip_joined_fetch(const struct strip *s, const struct queue *q, int place, int line, kb_val row);
void strip_joined_take(const struct strip *s, const struct queue *q, int place, int line, kb_val row);
/* Plane z where it lies in the array; others as far as the ranks beside have them: these are the rows before the first and
 * after the last one. */
kb_val strip_joined_plane(const struct strip *s, kb_val z, kb_val in_array, kb_val *other);

#endif
