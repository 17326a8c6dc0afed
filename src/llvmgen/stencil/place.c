/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - where a thread's window lies: the block's box, and the thread's place in it.
 *
 *     box      of the block's number, row-major; cases that turn follow their output
 *     window   of the thread's number in the block, row-major; a launch may give more threads to the outer axes
 *     skew     to the vector boundary before, where rows begin at boundaries of their own
 */
#include "stencil_gen.h"

static kb_val u32(kb *k, kb_val x) { return kb_cast(k, x, TY_U32); }

/* Points in row-major order over the threads of the grid. */
void sweep_linear_origin(struct sweep *s)
{
    kb *k = s->g->k;
    LET(block, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), kb_threads(k)));
    kb_val rest = kb_add(k, block, kb_cast(k, kb_tid(k), TY_I64));
    for (int d = s->g->p->rank - 1; d > 0; d--) {
        const kb_val extent = kb_max(k, gen_extent(s->g, &s->g->p->space[d].extent), 1);
        s->origin[d] = kb_rem(k, rest, extent);
        rest = kb_div(k, rest, extent);
    }
    s->origin[0] = rest;
}

/* To the boundary before, in the window's first row. */
static void skew_origin(struct sweep *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const int last = g->p->rank - 1, vector = stencil_points(g->c, g->p->rank, last);
    if (!stencil_skewed(g->c))
        return;
    kb_val phase = kb_imm(k, TY_I32, 0);
    for (int d = 0; d < last; d++)
        phase = kb_add(k, phase, kb_mul(k, kb_cast(k, s->origin[d], TY_I32), g->c->shift[d]));
    phase = kb_add(k, kb_and(k, phase, vector - 1), stencil_lead(g->c, g->p->rank));
    s->origin[last] = kb_sub(k, s->origin[last], kb_cast(k, phase, TY_I64));
}

enum { THREADS_MAX = 1024 };

/* n / power, i32, of a power of two that a launch chooses. */
static kb_val over_power(kb *k, kb_val n, kb_val power)
{
    return kb_shr(k, n, kb_cast(k, kb_popcount(k, kb_sub(k, power, 1)), TY_I32));
}

/* The place of thread number *rest along an axis that is not the outermost one, i32, which leaves the number along the
 * axes outside; *threads: of the block along the axis, which a launch chooses where the array may be narrow. */
static kb_val place_along(struct gen *g, int axis, kb_val *rest, kb_val *threads)
{
    kb *k = g->k;
    const int rank = g->p->rank, usual = stencil_threads(g->c, rank, axis);
    const kb_val number = *rest;
    *threads = kb_imm(k, TY_I32, usual);
    if (gen_has_value(g, VAL_LANES_X)) {
        *threads = gen_value(g, axis == rank - 1 ? VAL_LANES_X : VAL_LANES_Y);
        *threads = kb_and(k, *threads, 2 * THREADS_MAX - 1); /* says that places are small and positive */
        *rest = over_power(k, number, *threads);
        return kb_and(k, number, kb_sub(k, *threads, 1));
    }
    *rest = kb_div(k, number, usual);
    return usual & (usual - 1) ? kb_rem(k, number, usual) : kb_and(k, number, usual - 1);
}

/* Threads of the block along the outermost axis. */
static kb_val threads_outside(struct gen *g, kb_val inner)
{
    const int usual = stencil_threads(g->c, g->p->rank, 0);
    return gen_has_value(g, VAL_LANES_X) ? over_power(g->k, kb_imm(g->k, TY_I32, kb_threads(g->k)), inner)
                                         : kb_imm(g->k, TY_I32, usual);
}

/* The number of a box along an axis, where the others' numbers vary less often; *rest becomes the number without it. */
static kb_val box_along(struct gen *g, int axis, kb_val *rest)
{
    kb *k = g->k;
    const int box = stencil_box(g->c, g->p->rank, axis);
    kb_val boxes = axis > 0 ? gen_value(g, axis == 1 ? VAL_BOXES1 : VAL_BOXES2)
                            : kb_div(k, kb_add(k, gen_extent(g, &g->p->space[0].extent), box - 1), box);
    boxes = u32(k, kb_max(k, boxes, 1));
    const kb_val number = kb_rem(k, *rest, boxes);
    *rest = kb_div(k, *rest, boxes);
    return number;
}

/* In cases that turn, blocks side by side follow the last axis of the output, then that of the space: what two of them
 * store of a sector meets in the cache soon.  Their boxes' numbers. */
static void turned_boxes(struct gen *g, kb_val rest, kb_val *number)
{
    const int last = g->p->rank - 1, turn = stencil_turn(g->p), other = last > 1 ? 1 - turn : last;
    number[turn] = box_along(g, turn, &rest);
    if (other < last)
        number[last] = box_along(g, last, &rest);
    number[other] = rest;
}

/* Boxes in row-major order over the blocks, windows in row-major order over the threads of a block. */
void sweep_box_origin(struct sweep *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const int rank = g->p->rank;
    kb_val number[SPACE_MAX], box = u32(k, kb_block(k)), thread = kb_tid(k), inner = kb_imm(k, TY_I32, 1);
    if (g->c->turns)
        turned_boxes(g, box, number);
    for (int d = rank - 1; d >= 0; d--) {
        const int points = stencil_points(g->c, rank, d);
        kb_val t = thread, threads;
        if (!g->c->turns)
            number[d] = d > 0 ? box_along(g, d, &box) : box;
        if (d > 0) {
            t = place_along(g, d, &thread, &threads);
            inner = kb_mul(k, inner, threads);
        } else {
            threads = threads_outside(g, inner);
        }
        if (s->joined)
            s->joined->box[d] = kb_cast(k, kb_mul(k, threads, points), TY_I64);
        if (d == 0 && s->joined)
            number[d] = joined_turn(s->joined, number[d]);
        const kb_val first = kb_mul(k, kb_cast(k, number[d], TY_I64), kb_cast(k, kb_mul(k, threads, points), TY_I64));
        s->box[d] = first;
        s->origin[d] = kb_add(k, first, kb_cast(k, kb_mul(k, t, points), TY_I64));
    }
    skew_origin(s);
}
