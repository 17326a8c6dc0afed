/* SPDX-License-Identifier: Apache-2.0 */
/* turned.c - outputs whose last dimension is another axis than the space's.
 *
 *     threads keep the values of their points in a tile in shared memory, which lies as the output does
 *     barrier
 *     neighbouring threads take neighbouring values of the tile's rows, and store those of points that exist
 *
 * Rows of the tile are so long that threads side by side, whose values go to different rows, meet different banks.
 */
#include "stencil_gen.h"

static int pitch_of(const struct gen *g, enum ty type) { return stencil_turned_pitch(g->p, g->c, ty_bytes(type)); }

static int box(const struct gen *g, int axis) { return stencil_box(g->c, g->p->rank, axis); }

void turned_declare(struct gen *g, struct turned *turned)
{
    int rows = 1;
    for (int d = 0; d < g->p->rank; d++)
        rows *= d == stencil_turn(g->p) ? 1 : box(g, d);
    for (int o = 0; o < g->p->noutputs; o++) {
        const struct prog_array *a = &g->p->output[o].array;
        turned[o].kept = stencil_turned(g->p, g->c, o);
        for (int f = 0; turned[o].kept && f < a->nfields; f++)
            turned[o].field[f] = kb_shared_v(g->k, a->field[f].type, rows * pitch_of(g, a->field[f].type), a->name);
    }
}

/* Where the tile has the point. */
static kb_ptr place_in_tile(const struct stencil_point *sp, int output, int f)
{
    const struct window *w = sp->w;
    kb *k = w->g->k;
    const struct output *o = &w->g->p->output[output];
    const int last = w->rank - 1, pitch = pitch_of(w->g, o->array.field[f].type);
    kb_val element = kb_imm(k, TY_I32, 0);
    int distance = 0;
    for (int d = 0; d <= last; d++) {
        const int axis = o->axis[d], extent = d == last ? pitch : box(w->g, axis);
        const kb_val from_box = kb_cast(k, kb_sub(k, w->origin[axis], w->box[axis]), TY_I32);
        element = kb_add(k, kb_mul(k, element, extent), from_box);
        distance = distance * extent + sp->at[axis];
    }
    return kb_advance(k, kb_advance(k, w->turned[output].field[f], element), kb_imm(k, TY_I32, distance));
}

bool turned_keep(struct point *pt, int output, const kb_val *x)
{
    const struct stencil_point *sp = pt->env.user;
    kb *k = pt->g->k;
    if (!sp->w->turned || !sp->w->turned[output].kept)
        return false;
    for (int f = 0; f < pt->g->p->output[output].array.nfields; f++)
        kb_store(k, place_in_tile(sp, output, f), kb_imm(k, TY_I32, 0), x[f]);
    return true;
}

static kb_val kept_value(struct point *pt, int output, int f)
{
    return kb_load(pt->g->k, place_in_tile(pt->env.user, output, f), kb_imm(pt->g->k, TY_I32, 0));
}

/* The first point of the box that the thread stores. */
static void place_to_leave(const struct sweep *s, const struct output *o, kb_val *origin)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const int last = g->p->rank - 1, along = box(g, o->axis[last]);
    kb_val rest = kb_div(k, kb_tid(k), along);
    for (int d = last; d >= 0; d--) {
        const int axis = o->axis[d];
        kb_val place = d == last ? kb_rem(k, kb_tid(k), along) : rest;
        if (d < last && d > 0) {
            place = kb_rem(k, rest, box(g, axis));
            rest = kb_div(k, rest, box(g, axis));
        }
        origin[axis] = kb_add(k, s->box[axis], kb_cast(k, place, TY_I64));
    }
}

/* Elements of the output between a point and the one at a distance from it, i64: the same for all threads. */
static kb_val distance_of(struct gen *g, const struct output *o, const int *at)
{
    kb *k = g->k;
    kb_val element = kb_imm(k, TY_I64, 0);
    for (int d = 0; d < g->p->rank; d++) {
        const int here = at[o->axis[d]];
        element =
            d == 0 ? kb_imm(k, TY_I64, here) : kb_add(k, kb_mul(k, element, gen_extent(g, &o->array.dim[d])), here);
    }
    return element;
}

/* Stores the point at a distance from the thread's first one. */
static void leave(struct sweep *s, int output, struct window *w, const int *at)
{
    static const int none[SPACE_MAX] = { 0 };
    struct gen *g = s->g;
    kb *k = g->k;
    const struct output *o = &g->p->output[output];
    const struct prog_array *a = &o->array;
    struct stencil_point first, sp;
    stencil_point_init(&first, w, none, &s->gather);
    stencil_point_init(&sp, w, at, &s->gather);
    const int scale = *a->field[0].name ? a->stride : 1;
    const kb_val written = stencil_written(&sp.pt, output);
    kb_if(k, kb_and(k, written, output_has(&sp.pt, output))) {
        const kb_ptr from = kb_advance(k, gen_output(g, output), kb_mul(k, output_element(&first.pt, output), scale));
        const kb_ptr to = kb_advance(k, from, kb_mul(k, distance_of(g, o, at), scale));
        for (int f = 0; f < a->nfields; f++)
            gen_store_field(g, a, to, kb_imm(k, TY_I64, 0), f, kept_value(&sp.pt, output, f));
    }
}

/* Does the output have all points of the block's box, and is none of them left out? */
static kb_val box_inside(const struct sweep *s, const struct output *o)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const struct reach none = { { 0 }, { 0 } }, r = stencil_skips(g->p) ? stencil_space_reach(g->p) : none;
    kb_val inside = kb_true(k);
    for (int d = 0; d < g->p->rank; d++) {
        const int axis = o->axis[d];
        const kb_val extent =
            kb_min(k, gen_extent(g, &o->array.dim[d]), kb_sub(k, gen_extent(g, &g->p->space[axis].extent), r.hi[axis]));
        inside = kb_and(k, inside, kb_le(k, kb_add(k, s->box[axis], box(g, axis)), extent));
        if (r.lo[axis] < 0)
            inside = kb_and(k, inside, kb_ge(k, s->box[axis], -r.lo[axis]));
    }
    return inside;
}

/* All points of the thread; their distances from its first one are known. */
static void leave_all(struct sweep *s, int output, int points, enum placement place)
{
    static const int one[SPACE_MAX] = { 1, 1, 1 };
    struct gen *g = s->g;
    struct window w;
    kb_val origin[SPACE_MAX];
    place_to_leave(s, &g->p->output[output], origin);
    window_init(&w, g, origin, one, place);
    w.turned = s->turned;
    w.box = s->box;
    const int last = g->p->rank - 1, *axis = g->p->output[output].axis;
    const int rows = kb_threads(g->k) / box(g, axis[last]), of_plane = box(g, axis[last - 1]);
    for (int i = 0; i < points; i++) {
        int at[SPACE_MAX] = { 0 };
        at[axis[0]] = i * rows / of_plane;
        at[axis[last - 1]] = i * rows % of_plane;
        leave(s, output, &w, at);
    }
}

void turned_leave(struct sweep *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    int points = 1;
    for (int d = 0; d < g->p->rank; d++)
        points *= stencil_points(g->c, g->p->rank, d);
    kb_section(k, "leave");
    kb_barrier(k);
    for (int o = 0; o < g->p->noutputs; o++) {
        if (!s->turned[o].kept)
            continue;
        kb_if(k, box_inside(s, &g->p->output[o])) {
            leave_all(s, o, points, PLACE_INSIDE);
        }
        kb_else { leave_all(s, o, points, PLACE_EDGE); }
    }
}
