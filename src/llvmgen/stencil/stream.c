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
 * asynchronous copies (planes.c).  The loop takes as many places at a time as the ring has planes: positions in the ring are
 * known when the kernel is generated.
 */
#include "planes.h"

#include <stdlib.h>
#include <string.h>

#include "llvmgen/builder/kb_target.h"

void stream_window(struct stream *st, struct window *w, kb_val place, int turn)
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
    w->ring = st->planes.ring;
    w->turn = turn;
    w->together = st->together;
    w->partial = st->partial;
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
    stream_window(st, &w, st->begin, 0);
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

void stream_wait(struct stream *st, int pending)
{
    kb *k = st->s->g->k;
    if (kb_has_copy(k))
        kb_copy_wait(k, pending);
    kb_barrier(k);
}

/* Do all points of a window exist, or the first? */
kb_val stream_exists(struct stream *st, bool whole)
{
    struct gen *g = st->s->g;
    kb *k = g->k;
    kb_val exists = kb_true(k);
    for (int d = 1; d < g->p->rank; d++) {
        const int points = whole ? stencil_points(g->c, g->p->rank, d) : 1;
        exists = kb_and(k, exists, kb_le(k, kb_add(k, st->s->origin[d], points), st->planes.extent[d]));
    }
    return exists;
}

/* Is no point of the window skipped: does nothing that it reads leave an array whose boundary is `interior`? */
kb_val stream_none_skipped(struct stream *st, kb_val place)
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
            none = kb_and(k, none, kb_lt(k, kb_add(k, at, points - 1 + r.hi[d]), st->planes.extent[axis]));
        }
    }
    return none;
}

/* Are all points of the window skipped, and is nothing stored or reduced at such points? */
kb_val stream_all_skipped(struct stream *st, kb_val place)
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
            all = kb_or(k, all, kb_ge(k, kb_add(k, at, r.hi[d]), st->planes.extent[axis]));
        }
    }
    return all;
}

/* What is held goes one place on. */
static void compute_place(struct stream *st, kb_val place, int turn)
{
    kb *k = st->s->g->k;
    struct window w;
    stream_window(st, &w, place, turn);
    for (int i = 0; i < st->nheld; i++)
        window_cell(&w, st->held[i].input, st->held[i].field, st->held[i].at)->v = st->held[i].v;
    for (int i = 0; i < w.ncells && w.together; i++)
        w.cell[i].late = w.ring[w.cell[i].input].staged && !w.cell[i].v.ir;
    window_fill(&w);
    w.first = kb_add(k, kb_mul(k, place, st->planes.plane), kb_cast(k, st->own, TY_I64));
    kb_if(k, kb_and(k, stream_exists(st, true), stream_none_skipped(st, place))) {
        w.whole = true;
        sweep_rows(st->s, &w);
    }
    kb_else
    {
        const kb_val any = kb_and(k, stream_exists(st, false), kb_not(k, stream_all_skipped(st, place)));
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
            stream_wait(st, st->ahead - 1);
            planes_copy(&st->planes, kb_add(k, place, st->hi + st->ahead), kb_add(k, st->end, st->hi),
                        (turn + st->hi - st->lo + st->ahead) % st->depth);
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
    const kb_val length = gen_value(g, VAL_PLACES), extent = st->planes.extent[0];
    st->begin = kb_name(kb_mul(k, st->s->box[0], length), "begin");
    kb_val end = kb_min(k, kb_add(k, st->begin, length), extent);
    for (int d = 1; d < g->p->rank; d++)
        end = kb_select(k, kb_gt(k, st->planes.extent[d], 0), end, st->begin);
    st->end = kb_name(kb_max(k, end, st->begin), "end");
}

/* Values are computed as a whole. */
static void whole(struct stream *st)
{
    kb *k = st->s->g->k;
    const int planes = st->hi - st->lo, first = planes + st->ahead, early = first < st->depth ? first : st->depth;
    const kb_val end = kb_add(k, st->end, st->hi);
    for (int i = 0; i < early; i++)
        planes_copy(&st->planes, kb_add(k, st->begin, st->lo + i), end, i);
    stream_wait(st, early - planes);
    if (!first_values(st))
        return;
    if (first > early)
        kb_barrier(k);
    for (int i = early; i < first; i++)
        planes_copy(&st->planes, kb_add(k, st->begin, st->lo + i), end, i % st->depth);
    kb_section(k, "places");
    places(st);
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
    planes_init(&st->planes, g, s->box);
    st->own = kb_imm(k, TY_U32, 0);
    for (int d = 1; d < g->p->rank; d++)
        st->own =
            kb_add(k, kb_mul(k, st->own, kb_cast(k, st->planes.inner[d], TY_U32)), kb_cast(k, s->origin[d], TY_U32));
    const struct ring_shape is = stencil_ring(g->p, g->c, 0);
    st->lo = (int)is.lo;
    st->hi = (int)is.hi;
    st->depth = is.depth;
    st->ahead = is.ahead;
    st->together = stencil_crowded(g->p, g->c);
    st->keeps = stencil_keeps(g->p, g->c);
    st->partial = is.partial;
    chunk(st);
    kb_section(k, "first");
    kb_if(k, kb_lt(k, st->begin, st->end)) {
        planes_declare(&st->planes);
        (st->partial ? stream_partial : whole)(st);
    }
    free(st->held);
    free(st);
}
