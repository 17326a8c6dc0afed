/* SPDX-License-Identifier: Apache-2.0 */
/* emit_stencil.c - stencils by windows: every thread computes a box of neighbouring points out of registers.
 *
 *     origin of the thread's window, from the block's box and the thread's place in it
 *     if the windows of the whole warp and all they read lie inside:
 *         load every value once, compute row by row, store
 *     else, if only columns may leave the arrays:
 *         row by row with columns through their boundary mode, storing the points that exist
 *     else:
 *         point by point, everything through the boundary modes
 *     last step: contributions of the points -> block -> the last block to finish combines the partials
 *
 * Inside, no instruction is spent on boundaries.  The decision is a warp's, so the two sides never share a warp.
 */
#include <stdlib.h>

#include "kb_target.h"
#include "stencil_gen.h"

struct sweep {
    struct gen *g;
    enum stencil_role role;
    kb_val origin[SPACE_MAX];
    struct gather_reach gather;
    const struct tile *tile;    /* per input, or NULL */
    kb_val box[SPACE_MAX];      /* first point of the block */
    kb_tvar acc; /* what this thread's points contribute */
    kb_var have;
};

/* ---- places -------------------------------------------------------------------------------------------------------------------- */

static kb_val u32(kb *k, kb_val x) { return kb_cast(k, x, TY_U32); }

/* Points in row-major order over the threads of the grid. */
static void linear_origin(struct sweep *s)
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

/* Boxes in row-major order over the blocks, windows in row-major order over the threads of a block. */
static void box_origin(struct sweep *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const int rank = g->p->rank;
    kb_val box = u32(k, kb_block(k)), thread = kb_tid(k);
    for (int d = rank - 1; d >= 0; d--) {
        const int threads = stencil_threads(g->c, rank, d), points = stencil_points(g->c, rank, d);
        kb_val b = box, t = thread;
        if (d > 0) {
            const kb_val boxes = u32(k, kb_max(k, gen_value(g, d == 1 ? "boxes1" : "boxes2"), 1));
            b = kb_rem(k, box, boxes);
            box = kb_div(k, box, boxes);
            t = kb_and(k, thread, threads - 1);
            if (threads & (threads - 1))
                t = kb_rem(k, thread, threads);
            thread = kb_div(k, thread, threads);
        }
        const kb_val first = kb_mul(k, kb_cast(k, b, TY_I64), threads * points);
        s->box[d] = first;
        s->origin[d] = kb_add(k, first, kb_cast(k, kb_mul(k, t, points), TY_I64));
    }
}

/* Do all the window's points exist along these axes, and lie their surroundings at known offsets inside? */
static kb_val inside_along(struct sweep *s, int from, int to)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const struct reach r = stencil_space_reach(g->p);
    kb_val inside = kb_imm(k, TY_BOOL, 1);
    for (int d = from; d < to; d++) {
        const int64_t beyond = stencil_points(g->c, g->p->rank, d) + r.hi[d];
        const kb_val extent = gen_extent(g, &g->p->space[d].extent);
        inside = kb_and(k, inside, kb_le(k, kb_add(k, s->origin[d], beyond), extent));
        if (r.lo[d] < 0)
            inside = kb_and(k, inside, kb_ge(k, s->origin[d], -r.lo[d]));
    }
    return inside;
}

/* Does the window's first point exist along these axes? */
static kb_val exists_along(struct sweep *s, int from, int to)
{
    kb *k = s->g->k;
    kb_val exists = kb_imm(k, TY_BOOL, 1);
    for (int d = from; d < to; d++)
        exists = kb_and(k, exists, kb_lt(k, s->origin[d], gen_extent(s->g, &s->g->p->space[d].extent)));
    return exists;
}

/* ---- one window ---------------------------------------------------------------------------------------------------------------- */

static void contribute(struct sweep *s, struct stencil_point *sp)
{
    kb *k = s->g->k;
    if (s->role != STENCIL_LAST || s->g->nfields == 0)
        return;
    const kb_tup x = point_map(&sp->pt);
    kb_if (k, sp->exists) {
        state_accumulate(s->g, s->acc, s->have, x);
    }
}

/* Points `first` … of the last axis, a row of the window. */
static void row(struct sweep *s, struct window *w, const int *first)
{
    const int n = w->points[w->rank - 1];
    struct stencil_point *sp = calloc((size_t)n, sizeof *sp);
    if (!sp) {
        kb_misuse(s->g->k, "out of memory");
        return;
    }
    for (int i = 0; i < n; i++) {
        int at[SPACE_MAX] = { first[0], first[1], first[2] };
        at[w->rank - 1] = i;
        stencil_point_init(&sp[i], w, at, &s->gather);
        for (int o = 0; o < s->g->p->noutputs; o++) /* before any store of the row */
            for (int f = 0; s->g->p->output[o].role == OUT_ELEMENT && f < s->g->p->output[o].array.nfields; f++)
                stencil_value(&sp[i], o, f);
        contribute(s, &sp[i]);
    }
    if ((w->place == PLACE_INSIDE || w->vectors) && !sp[0].skip.ir && n <= GEN_VECTOR_MAX)
        stencil_store_row(sp, n);
    else
        for (int i = 0; i < n; i++)
            stencil_store(&sp[i]);
    free(sp);
}

static void window(struct sweep *s, const kb_val *origin, const int *points, enum placement place)
{
    struct window w;
    window_init(&w, s->g, origin, points, place);
    w.tile = s->tile;
    w.box = s->box;
    window_load(&w);
    const int last = w.rank - 1;
    const int rows = last > 0 ? w.points[last - 1] : 1, planes = last > 1 ? w.points[0] : 1;
    for (int z = 0; z < planes; z++)
        for (int y = 0; y < rows; y++) {
            int first[SPACE_MAX] = { 0 };
            if (last > 1)
                first[0] = z;
            if (last > 0)
                first[last - 1] = y;
            row(s, &w, first);
        }
    window_free(&w);
}

/* A window, or a part of one, of which a point may exist. */
static void partial_window(struct sweep *s, const int *points, enum placement place)
{
    const int last = s->g->p->rank - 1;
    kb_if (s->g->k, exists_along(s, place == PLACE_ROWS ? last : 0, last + 1)) {
        window(s, s->origin, points, place);
    }
}

/* How much of a window is computed at a time at the edge.  Few warps come there, so that registers count more than reuse: a row or,
 * where rows leave the arrays too, a point.  In three dimensions rows are short and many warps end one: more together. */
static void edge_part(const struct gen *g, const int *points, enum placement place, int *part)
{
    const int last = g->p->rank - 1;
    part[0] = part[1] = part[2] = 1;
    if (place == PLACE_EDGE)
        return;
    part[last] = points[last];
    for (int d = 0; last == 2 && d < last; d++)
        part[d] = g->c->aligned ? points[d] : points[d] % 4 ? 1 : points[d] / 4;
}

static void edge(struct sweep *s, const int *points, enum placement place)
{
    kb *k = s->g->k;
    const int last = s->g->p->rank - 1;
    int part[SPACE_MAX], parts = 1;
    edge_part(s->g, points, place, part);
    for (int d = 0; d <= last; d++)
        parts *= points[d] / part[d];
    if (parts == 1) {
        partial_window(s, points, place);
        return;
    }
    kb_for (k, i, kb_imm(k, TY_I32, 0), parts, 1) {
        struct sweep at = *s;
        kb_val rest = i;
        for (int d = last; d >= 0; d--) {
            const int n = points[d] / part[d];
            const kb_val place_of = n == 1 ? kb_imm(k, TY_I32, 0) : kb_rem(k, rest, n);
            at.origin[d] = kb_add(k, s->origin[d], kb_cast(k, kb_mul(k, place_of, part[d]), TY_I64));
            rest = n == 1 ? rest : kb_div(k, rest, n);
        }
        partial_window(&at, part, place);
    }
}

static void windows(struct sweep *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const int rank = g->p->rank;
    int points[SPACE_MAX] = { 1, 1, 1 };
    for (int d = 0; d < rank; d++)
        points[d] = stencil_points(g->c, rank, d);
    LET(rows_inside, kb_all(k, inside_along(s, 0, rank - 1)));
    kb_section(k, "inside");
    kb_if (k, kb_and(k, rows_inside, kb_all(k, inside_along(s, rank - 1, rank)))) {
        window(s, s->origin, points, PLACE_INSIDE);
    } kb_else {
        kb_section(k, "columns");
        kb_if (k, rows_inside) {
            edge(s, points, PLACE_ROWS);
        } kb_else {
            kb_section(k, "edge");
            if (rank > 1)
                edge(s, points, PLACE_EDGE);
        }
    }
}

/* ---- reductions ---------------------------------------------------------------------------------------------------------------- */

static kb_tup block_sum(struct sweep *s)
{
    struct gen *g = s->g;
    if (g->padded)
        return block_reduce(g, kb_get(g->k, s->acc), filled_all(), state_shared(g, KB_WARP, "warp_totals"));
    kb_val have = kb_get(g->k, s->have);
    return block_reduce_some(g, kb_get(g->k, s->acc), &have);
}

static kb_val no_points(struct gen *g)
{
    kb *k = g->k;
    kb_val none = kb_imm(k, TY_BOOL, 0);
    for (int d = 0; d < g->p->rank; d++)
        none = kb_or(k, none, kb_le(k, gen_extent(g, &g->p->space[d].extent), 0));
    return none;
}

static void finish(struct sweep *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    LET(block, kb_block(k));
    LET(blocks, kb_blocks(k));
    kb_section(k, "finish");
    if (g->nfields == 0) {
        kb_if (k, kb_and(k, kb_eq(k, block, 0), kb_eq(k, kb_tid(k), 0))) {
            state_finish(g, (kb_tup){ .n = 0 }, no_points(g));
        }
        return;
    }
    const kb_tup total = block_sum(s);
    kb_if (k, is_last_block(g, total, block, blocks)) {
        const kb_tup all = reduce_partials(g, blocks); /* the first window of every block has a point, or there are none at all */
        kb_if (k, kb_eq(k, kb_tid(k), 0)) {
            state_finish(g, all, no_points(g));
        }
    }
}

/* ---- kernels ------------------------------------------------------------------------------------------------------------------- */

/* Element i of every fed-back input to its output. */
static void copy(struct gen *g)
{
    kb *k = g->k;
    LET(block, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), kb_threads(k)));
    LET(i, kb_add(k, block, kb_cast(k, kb_tid(k), TY_I64)));
    for (int b = 0; b < g->p->nfeedback; b++) {
        const struct prog_array *a = &g->p->input[g->p->feedback[b].input].array;
        kb_val count = kb_imm(k, TY_I64, 1);
        for (int d = 0; d < a->rank; d++)
            count = kb_mul(k, count, gen_extent(g, &a->dim[d]));
        kb_if (k, kb_lt(k, i, count)) {
            for (int f = 0; f < a->nfields; f++) {
                const kb_val x = gen_load_field(g, a, gen_input(g, g->p->feedback[b].input), i, f);
                gen_store_field(g, a, gen_output(g, g->p->feedback[b].output), i, f, x);
            }
        }
    }
}

static void wait_for_predecessor(struct gen *g)
{
    if (!gen_tunable(g, TN_PDL))
        return;
    kb_dependency_wait(g->k);
    kb_dependency_launch(g->k);
}

void emit_windows(struct gen *g, enum stencil_role role, bool staged)
{
    kb *k = g->k;
    struct sweep s = { .g = g, .role = role };
    struct tile tile[PROBLEM_ARGS_MAX];
    wait_for_predecessor(g);
    if (s.role == STENCIL_COPY) {
        copy(g);
        return;
    }
    (stencil_linear(g->p) ? linear_origin : box_origin)(&s);
    s.gather = gather_reach(g);
    if (s.role == STENCIL_LAST) {
        s.acc = kb_var_new(k, g->padded ? state_pad_value(g) : state_zero(g), "acc");
        s.have = kb_var_new(k, kb_imm(k, TY_BOOL, 0), "have");
    }
    if (staged) {
        tiles_load(g, s.box, tile);
        s.tile = tile;
    }
    windows(&s);
    if (s.role == STENCIL_LAST)
        finish(&s);
}

static void emit_roles(struct gen *g, bool staged)
{
    enum stencil_role role[STENCIL_ROLES];
    stencil_roles(g->p, role);
    emit_windows(g, role[g->kernel - g->c->code.kernel], staged);
}

void emit_stencil_global(struct gen *g) { emit_roles(g, false); }
void emit_stencil_multi_write(struct gen *g) { emit_roles(g, false); }
void emit_stencil_dynamic(struct gen *g) { emit_roles(g, false); }
void emit_stencil_big_tile(struct gen *g) { emit_roles(g, true); }
