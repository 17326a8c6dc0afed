/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - blocks that stream along the outermost axis, with a ring of planes in shared memory.
 *
 *     coordinates of this thread's elements of a plane, through the boundaries: once
 *     copies of the first planes start
 *     values that later places share: into registers
 *     for every place of the chunk:
 *         wait for the newest plane; barrier
 *         copy of the plane `ahead` places on starts, over the one that is no longer read
 *         what has just come into reach: from shared memory into registers
 *         compute and store the window; what the next place has too stays in registers
 *
 * It is the 2.5-dimensional blocking of Micikevicius (3D finite difference computation on GPUs using CUDA, 2009) with
 * asynchronous copies.  What is beyond the edge is put in place by the copies, so that all blocks run the same code,
 * and an element is copied on its own where rows begin anywhere, so that their alignment does not matter.  The loop
 * takes as many places at a time as the ring has planes: positions in the ring are known when the kernel is generated.
 */
#include "stencil_gen.h"

#include <stdlib.h>
#include <string.h>

#include "llvmgen/builder/kb_target.h"

/* What one thread copies of every plane of an input: one element, or as many as a vector has. */
struct part {
    kb_val number;            /* i32: of the element in the plane's tile */
    kb_val exists;            /* bool: the tile has it; ir NULL: always */
    kb_val whole;             /* bool: vectors, all elements inside the array */
    kb_val element;           /* i64: in the array's plane */
    kb_val beyond[SPACE_MAX]; /* bool, along the axes but the first: a constant stands for it; ir NULL: never */
};

struct stream {
    struct sweep *s;
    struct ring ring[PROBLEM_ARGS_MAX];
    struct part part[PROBLEM_ARGS_MAX][STREAM_COPIES_MAX];
    int parts[PROBLEM_ARGS_MAX];
    kb_val extent[SPACE_MAX]; /* i64 */
    kb_val begin, end;        /* i64: places of the chunk */
    int lo, hi, depth, ahead;
    bool together, keeps; /* stencil_crowded(), stencil_keeps() */
    int nheld;            /* values that stay: of cells with another one before them */
    struct cell *held;
};

/* ---- tiles of planes --------------------------------------------------------------------------------------------- */

/* Coordinates of the element at a row and a column of the tile. */
static void locate(struct stream *st, int input, kb_val row, kb_val column, struct part *p)
{
    struct gen *g = st->s->g;
    kb *k = g->k;
    const struct input *in = &g->p->input[input];
    const struct ring *r = &st->ring[input];
    const int last = g->p->rank - 1;
    p->element = kb_imm(k, TY_I64, 0);
    for (int d = 1; d <= last; d++) {
        const kb_val extent = st->extent[d], at = kb_cast(k, d == last ? column : row, TY_I64);
        const int64_t first = d == last ? -r->is.before : r->is.reach.lo[d];
        kb_val inside = kb_true(k);
        const kb_val i =
            boundary_index(k, in->boundary[d].mode, kb_add(k, kb_add(k, st->s->box[d], at), first), extent, &inside);
        p->element = d == 1 ? i : kb_add(k, kb_mul(k, p->element, extent), i);
        p->beyond[d].ir = NULL;
        if (in->boundary[d].mode == BOUND_CONSTANT)
            p->beyond[d] = kb_not(k, inside);
    }
}

static void locate_parts(struct stream *st, int input)
{
    struct gen *g = st->s->g;
    kb *k = g->k;
    const struct ring *r = &st->ring[input];
    const int last = g->p->rank - 1, columns = r->is.pitch / r->vector, parts = columns * r->is.rows,
              threads = kb_threads(k);
    for (int i = 0; i * threads < parts; i++) {
        struct part *p = &st->part[input][st->parts[input]++];
        const kb_val number = kb_add(k, kb_tid(k), i * threads), row = kb_div(k, number, columns),
                     column = kb_mul(k, kb_rem(k, number, columns), r->vector);
        *p = (struct part){ .number = kb_mul(k, number, r->vector) };
        if ((i + 1) * threads > parts)
            p->exists = kb_lt(k, number, parts);
        locate(st, input, row, column, p);
        if (r->vector > 1) {
            const kb_val x = kb_sub(k, kb_add(k, st->s->box[last], kb_cast(k, column, TY_I64)), r->is.before);
            p->whole = kb_and(k, kb_ge(k, x, 0), kb_lt(k, x, st->extent[last]));
        }
    }
}

/* Where a plane is read; what a constant stands for in *outside (ir NULL: nothing). */
static kb_val plane_at(struct stream *st, int input, kb_val place, kb_val *outside)
{
    struct gen *g = st->s->g;
    kb *k = g->k;
    const struct input *in = &g->p->input[input];
    kb_val inside = kb_true(k);
    const kb_val z = boundary_index(k, in->boundary[0].mode, place, st->extent[0], &inside);
    outside->ir = NULL;
    if (in->boundary[0].mode == BOUND_CONSTANT)
        *outside = kb_not(k, inside);
    return z;
}

/* Do zeros stand for a scalar input beyond the array? */
static bool zeros_beyond(const struct stream *st, int input)
{
    const struct gen *g = st->s->g;
    const struct input *in = &g->p->input[input];
    for (int d = 0; d < g->p->rank; d++)
        if (in->boundary[d].mode == BOUND_CONSTANT &&
            !LLVMIsNull(kb_const(g->k, in->array.field[0].type, in->boundary[d].constant[0]).ir))
            return false;
    return true;
}

/* What stands for an element beyond the array: the constant of the last axis along which it is, or x if it is inside. */
static kb_val constant_or(struct stream *st, int input, int field, const struct part *p, kb_val outside, kb_val x)
{
    struct gen *g = st->s->g;
    const struct input *in = &g->p->input[input];
    for (int d = 0; d < g->p->rank; d++) {
        const kb_val here = d == 0 ? outside : p->beyond[d];
        if (here.ir)
            x = kb_select(g->k, here, kb_const(g->k, x.ty, in->boundary[d].constant[field]), x);
    }
    return x;
}

/* One element: copied, or what stands for it. `first`: of the plane, in the array; to: the plane of the ring.  A constant
 * is stored at once, so that no load is waited for. */
static void copy_element(struct stream *st, int input, const struct part *p, kb_val first, kb_val outside, int to)
{
    struct gen *g = st->s->g;
    kb *k = g->k;
    const struct input *in = &g->p->input[input];
    const struct ring *r = &st->ring[input];
    const kb_val element = kb_add(k, first, p->element);
    kb_val beyond = outside;
    for (int d = 1; d < g->p->rank; d++)
        if (p->beyond[d].ir)
            beyond = beyond.ir ? kb_or(k, beyond, p->beyond[d]) : p->beyond[d];
    const kb_val number = kb_add(k, p->number, to);
    if (r->copies && (!beyond.ir || zeros_beyond(st, input))) {
        const kb_val exists = beyond.ir ? kb_not(k, beyond) : beyond;
        kb_copy_or_zero(k, in->array.stride, r->field[0], number, gen_input(g, input), element, exists);
        return;
    }
    if (r->copies) {
        kb_if(k, kb_not(k, beyond)) {
            kb_copy(k, in->array.stride, r->field[0], number, gen_input(g, input), element);
        }
        kb_else
        {
            const kb_val any = kb_imm(k, in->array.field[0].type, 0);
            kb_store(k, r->field[0], number, constant_or(st, input, 0, p, outside, any));
        }
        return;
    }
    for (int f = 0; f < in->array.nfields; f++) {
        const kb_val x = gen_load_field(g, &in->array, gen_input(g, input), element, f);
        kb_store(k, r->field[f], number, constant_or(st, input, f, p, outside, x));
    }
}

/* A vector: at once, or what is beyond the ends of a row element by element. */
static void copy_vector(struct stream *st, int input, const struct part *p, kb_val first, kb_val outside, int to)
{
    struct gen *g = st->s->g;
    kb *k = g->k;
    const struct ring *r = &st->ring[input];
    const int bytes = r->vector * g->p->input[input].array.stride;
    kb_val whole = p->whole;
    if (outside.ir)
        whole = kb_and(k, whole, kb_not(k, outside));
    for (int d = 1; d < g->p->rank - 1; d++)
        if (p->beyond[d].ir)
            whole = kb_and(k, whole, kb_not(k, p->beyond[d]));
    kb_if(k, whole) {
        kb_copy(k, bytes, r->field[0], kb_add(k, p->number, to), gen_input(g, input), kb_add(k, first, p->element));
    }
    kb_else
    {
        for (int i = 0; i < r->vector; i++) {
            struct part one = { .number = kb_add(k, p->number, i) };
            const kb_val row = kb_div(k, p->number, r->is.pitch),
                         column = kb_add(k, kb_rem(k, p->number, r->is.pitch), i);
            locate(st, input, row, column, &one);
            copy_element(st, input, &one, first, outside, to);
        }
    }
}

/* The copies of a plane into its position of the ring, a group; none of planes that the chunk does not reach. */
static void copy_plane(struct stream *st, kb_val place, int position)
{
    struct gen *g = st->s->g;
    kb *k = g->k;
    kb_if(k, kb_lt(k, place, kb_add(k, st->end, st->hi))) {
        for (int i = 0; i < g->p->ninputs; i++) {
            const struct ring *r = &st->ring[i];
            kb_val outside;
            if (!r->staged)
                continue;
            kb_val first = plane_at(st, i, place, &outside);
            for (int d = 1; d < g->p->rank; d++)
                first = kb_mul(k, first, st->extent[d]);
            for (int n = 0; n < st->parts[i]; n++) {
                const struct part *p = &st->part[i][n];
                kb_if(k, p->exists.ir ? p->exists : kb_true(k)) {
                    (r->vector > 1 ? copy_vector : copy_element)(st, i, p, first, outside,
                                                                 position * r->is.rows * r->is.pitch);
                }
            }
        }
    }
    if (kb_has_copy(k))
        kb_copy_commit(k);
}

kb_ptr ring_row(struct window *w, int input, int field, const int *at)
{
    kb *k = w->g->k;
    const struct ring *r = &w->ring[input];
    const int last = w->rank - 1, lo = (int)r->is.lo;
    const int position = (w->turn + at[0] - lo) % r->is.depth;
    int64_t distance = (int64_t)position * r->is.rows * r->is.pitch + r->is.before;
    for (int d = 1; d < last; d++)
        distance += (at[d] - r->is.reach.lo[d]) * r->is.pitch;
    return kb_advance(k, kb_advance(k, r->field[field], r->at), kb_imm(k, TY_I32, distance));
}

/* ---- rings ------------------------------------------------------------------------------------------------------- */

static void declare_ring(struct stream *st, int input)
{
    struct gen *g = st->s->g;
    kb *k = g->k;
    const int rank = g->p->rank, x = stencil_threads(g->c, rank, rank - 1);
    const struct prog_array *a = &g->p->input[input].array;
    struct ring *r = &st->ring[input];
    *r = (struct ring){ .staged = stencil_staged(g->p, input),
                        .vector = stencil_ring_vector(g->p, g->c, input, kb_has_copy(k)) };
    if (!r->staged)
        return;
    r->is = stencil_ring(g->p, g->c, input);
    const bool scalar = *a->field[0].name == 0;
    const int points = stencil_points(g->c, rank, rank - 1);
    r->copies = kb_has_copy(k) && scalar && (a->stride == 4 || a->stride == 8);
    for (int f = 0; f < a->nfields; f++)
        r->field[f] = kb_shared_v(k, a->field[f].type, r->is.depth * r->is.rows * r->is.pitch, a->name);
    const kb_val column = kb_mul(k, kb_rem(k, kb_tid(k), x), points),
                 row = kb_mul(k, kb_div(k, kb_tid(k), x), rank > 2 ? stencil_points(g->c, rank, 1) : 0);
    r->at = kb_add(k, kb_mul(k, row, r->is.pitch), column);
    locate_parts(st, input);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static void window_at(struct stream *st, struct window *w, kb_val place, int turn)
{
    struct gen *g = st->s->g;
    const int rank = g->p->rank;
    int points[SPACE_MAX] = { 1, 1, 1 };
    kb_val origin[SPACE_MAX];
    for (int d = 0; d < rank; d++) {
        points[d] = d > 0 ? stencil_points(g->c, rank, d) : 1;
        origin[d] = d > 0 ? st->s->origin[d] : place;
    }
    window_init(w, g, origin, points, PLACE_EDGE);
    w->ring = st->ring;
    w->turn = turn;
    w->together = st->together;
    window_collect(w);
}

/* The cell that has this one's value at the place before; NULL: it is loaded when its place comes. */
static struct cell *one_before(const struct stream *st, struct window *w, const struct cell *c)
{
    int at[SPACE_MAX];
    memcpy(at, c->at, sizeof at);
    at[0]++;
    return w->ring[c->input].staged && st->keeps ? window_cell(w, c->input, c->field, at) : NULL;
}

/* The values that are held at the first place. */
static bool first_values(struct stream *st)
{
    struct window w;
    window_at(st, &w, st->begin, 0);
    struct cell *held = calloc((size_t)w.ncells + 1, sizeof *held);
    for (int i = 0; held && i < w.ncells; i++)
        if (one_before(st, &w, &w.cell[i]))
            held[st->nheld++] = w.cell[i];
    if (held)
        memcpy(w.cell, held, sizeof *held * (size_t)st->nheld);
    w.ncells = st->nheld;
    window_fill(&w);
    for (int i = 0; held && i < st->nheld; i++)
        held[i].v = w.cell[i].v;
    st->held = held;
    window_free(&w);
    if (!held)
        kb_misuse(st->s->g->k, "out of memory");
    return held;
}

static void barrier_of_planes(struct stream *st, int pending)
{
    kb *k = st->s->g->k;
    if (kb_has_copy(k))
        kb_copy_wait(k, pending);
    kb_barrier(k);
}

/* Do all points of a window exist, or the first? */
static kb_val window_exists(struct stream *st, bool whole)
{
    struct gen *g = st->s->g;
    kb *k = g->k;
    kb_val exists = kb_true(k);
    for (int d = 1; d < g->p->rank; d++) {
        const int points = whole ? stencil_points(g->c, g->p->rank, d) : 1;
        exists = kb_and(k, exists, kb_le(k, kb_add(k, st->s->origin[d], points), st->extent[d]));
    }
    return exists;
}

/* Is no point of the window skipped: does nothing that it reads leave an array whose boundary is `interior`? */
static kb_val none_skipped(struct stream *st, kb_val place)
{
    struct gen *g = st->s->g;
    kb *k = g->k;
    kb_val none = kb_true(k);
    for (int i = 0; i < g->p->ninputs; i++) {
        const struct input *in = &g->p->input[i];
        const struct reach r = stencil_input_reach(g->p, i);
        for (int d = 0; in->role == ROLE_ELEMENT && d < in->array.rank; d++) {
            const int axis = in->axis[d], points = axis > 0 ? stencil_points(g->c, g->p->rank, axis) : 1;
            if (in->boundary[d].mode != BOUND_INTERIOR)
                continue;
            const kb_val at = axis > 0 ? st->s->origin[axis] : place;
            none = kb_and(k, none, kb_ge(k, kb_add(k, at, r.lo[d]), 0));
            none = kb_and(k, none, kb_lt(k, kb_add(k, at, points - 1 + r.hi[d]), st->extent[axis]));
        }
    }
    return none;
}

/* Are all points of the window skipped, and is nothing stored or reduced at such points? */
static kb_val all_skipped(struct stream *st, kb_val place)
{
    struct gen *g = st->s->g;
    kb *k = g->k;
    const int last = g->p->rank - 1;
    const bool columns = stencil_points(g->c, g->p->rank, last) == 1;
    kb_val all = kb_false(k);
    for (int o = 0; o < g->p->noutputs; o++)
        if (stencil_fed(g->p, o) >= 0)
            return all;
    for (int i = 0; i < g->p->ninputs && g->nfields == 0; i++) {
        const struct input *in = &g->p->input[i];
        const struct reach r = stencil_input_reach(g->p, i);
        for (int d = 0; in->role == ROLE_ELEMENT && d < in->array.rank; d++) {
            const int axis = in->axis[d];
            if (in->boundary[d].mode != BOUND_INTERIOR || !(axis == 0 || (axis == last && columns)))
                continue;
            const kb_val at = axis > 0 ? st->s->origin[axis] : place;
            all = kb_or(k, all, kb_lt(k, kb_add(k, at, r.lo[d]), 0));
            all = kb_or(k, all, kb_ge(k, kb_add(k, at, r.hi[d]), st->extent[axis]));
        }
    }
    return all;
}

/* What is held goes one place on. */
static void compute_place(struct stream *st, kb_val place, int turn)
{
    kb *k = st->s->g->k;
    struct window w;
    window_at(st, &w, place, turn);
    for (int i = 0; i < st->nheld; i++)
        window_cell(&w, st->held[i].input, st->held[i].field, st->held[i].at)->v = st->held[i].v;
    for (int i = 0; i < w.ncells && w.together; i++)
        w.cell[i].late = w.ring[w.cell[i].input].staged && !w.cell[i].v.ir;
    window_fill(&w);
    window_know_first(&w);
    kb_if(k, kb_and(k, window_exists(st, true), none_skipped(st, place))) {
        w.whole = true;
        sweep_rows(st->s, &w);
    }
    kb_else
    {
        const kb_val any = kb_and(k, window_exists(st, false), kb_not(k, all_skipped(st, place)));
        w.whole = false;
        if (w.together && !st->keeps) { /* what stays in registers for the next place lives anyway */
            w.any = any;
            sweep_rows(st->s, &w);
        } else {
            kb_if(k, any) {
                sweep_rows(st->s, &w);
            }
        }
    }
    for (int i = 0; i < st->nheld; i++)
        one_before(st, &w, &st->held[i])->late = false;
    window_fill(&w);
    for (int i = 0; i < st->nheld; i++)
        st->held[i].v = one_before(st, &w, &st->held[i])->v;
    window_free(&w);
}

static void places(struct stream *st)
{
    kb *k = st->s->g->k;
    const kb_val n = kb_sub(k, st->end, st->begin);
    kb_var *var = calloc((size_t)st->nheld + 1, sizeof *var);
    if (!var) {
        kb_misuse(k, "out of memory");
        return;
    }
    for (int i = 0; i < st->nheld; i++)
        var[i] = kb_var_new(k, st->held[i].v, "held");
    kb_for(k, done, kb_imm(k, TY_I64, 0), n, st->depth) {
        for (int i = 0; i < st->nheld; i++)
            st->held[i].v = kb_get(k, var[i]);
        for (int turn = 0; turn < st->depth; turn++) {
            const kb_val here = kb_add(k, done, turn), place = kb_add(k, st->begin, here);
            if (turn > 0)
                kb_break_if(k, kb_ge(k, here, n));
            barrier_of_planes(st, st->ahead - 1);
            copy_plane(st, kb_add(k, place, st->hi + st->ahead), (turn + st->hi - st->lo + st->ahead) % st->depth);
            compute_place(st, place, turn);
        }
        for (int i = 0; i < st->nheld; i++)
            kb_set(k, var[i], st->held[i].v);
    }
    free(var);
}

/* The chunk's places, between the first and the last of the space; none in an empty one. */
static void chunk(struct stream *st)
{
    struct gen *g = st->s->g;
    kb *k = g->k;
    const kb_val length = gen_value(g, VAL_PLACES), extent = st->extent[0];
    st->begin = kb_name(kb_mul(k, st->s->box[0], length), "begin");
    kb_val end = kb_min(k, kb_add(k, st->begin, length), extent);
    for (int d = 1; d < g->p->rank; d++)
        end = kb_select(k, kb_gt(k, st->extent[d], 0), end, st->begin);
    st->end = kb_name(kb_max(k, end, st->begin), "end");
}

void sweep_stream(struct sweep *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    struct stream *st = calloc(1, sizeof *st);
    if (!st) {
        kb_misuse(k, "out of memory");
        return;
    }
    st->s = s;
    for (int d = 0; d < g->p->rank; d++)
        st->extent[d] = gen_extent(g, &g->p->space[d].extent);
    const struct ring_shape is = stencil_ring(g->p, g->c, 0);
    st->lo = (int)is.lo;
    st->hi = (int)is.hi;
    st->depth = is.depth;
    st->ahead = is.ahead;
    st->together = stencil_crowded(g->p, g->c);
    st->keeps = stencil_keeps(g->p, g->c);
    chunk(st);
    const int planes = st->hi - st->lo, first = planes + st->ahead, early = first < st->depth ? first : st->depth;
    kb_section(k, "first");
    kb_if(k, kb_lt(k, st->begin, st->end)) {
        for (int i = 0; i < g->p->ninputs; i++)
            declare_ring(st, i);
        for (int i = 0; i < early; i++)
            copy_plane(st, kb_add(k, st->begin, st->lo + i), i);
        barrier_of_planes(st, early - planes);
        if (first_values(st)) {
            if (first > early)
                kb_barrier(k);
            for (int i = early; i < first; i++)
                copy_plane(st, kb_add(k, st->begin, st->lo + i), i % st->depth);
            kb_section(k, "places");
            places(st);
        }
    }
    free(st->held);
    free(st);
}
