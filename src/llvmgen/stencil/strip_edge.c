/* SPDX-License-Identifier: Apache-2.0 */
/* strip_edge.c - what lies beside a lane's values: those of other lanes and warps, or what stands for them beyond the
 * array.
 *
 * Strips and blocks are shifted inward at the ends of the array, so that its edge is always that of lane 0 or 31, and
 * of the first or last warp: what lies beyond is then among the lane's own values.  Beyond the first and last plane it
 * is among the planes of the queue, which are put right as soon as the plane that the farthest one mirrors is there.
 * Arrays that wrap around need none of this: they are computed beyond their edge as within.
 */
#include "strip_gen.h"

static const struct boundary *boundary(const struct strip *s, const struct queue *q, int d)
{
    return &s->g->p->input[q->input].boundary[d];
}

static kb_val constant(const struct strip *s, const struct queue *q, int d)
{
    return kb_const(s->g->k, s->g->p->input[q->input].array.field[0].type, boundary(s, q, d)->constant[0]);
}

/* How far inside lies what stands for the element `distance` beyond the edge: 0 for the outermost, which also fills the
 * place of what is not read. */
static int inside(enum boundary_mode mode, int distance)
{
    switch (mode) {
    case BOUND_REFLECT: return distance - 1;
    case BOUND_MIRROR: return distance;
    case BOUND_CLAMP:
    case BOUND_CONSTANT: /* its value is taken instead */
    case BOUND_WRAP:     /* columns come from the other end */
    case BOUND_INTERIOR: /* points beside the edge keep their values */ break;
    }
    return 0;
}

kb_val strip_beside(kb *k, const struct boundary *b, const kb_val *v, int n, int side, int distance, kb_val edge)
{
    const kb_val near = side == 0 ? kb_shfl_up(k, v[n - distance], 1) : kb_shfl_down(k, v[distance - 1], 1);
    if (b->mode == BOUND_WRAP || b->mode == BOUND_INTERIOR)
        return near;
    const int i = inside(b->mode, distance);
    const kb_val beyond =
        b->mode == BOUND_CONSTANT ? kb_const(k, v[0].ty, b->constant[0]) : v[side == 0 ? i : n - 1 - i];
    return kb_select(k, edge, beyond, near);
}

kb_val strip_column_beside(const struct strip *s, const struct queue *q, const kb_val v[V], int side, int distance)
{
    kb *k = s->g->k;
    const kb_val edge = s->sides ? kb_eq(k, s->lane, side == 0 ? 0 : KB_WARP - 1) : kb_false(k);
    return strip_beside(k, boundary(s, q, s->g->p->rank - 1), v, V, side, distance, edge);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

void strip_line_beside(const struct strip *s, const struct queue *q, int step, int place, int side, int distance,
                       kb_val v[V])
{
    kb *k = s->g->k;
    const enum boundary_mode mode = boundary(s, q, 1)->mode;
    const int last = s->is.warps - 1;
    /* the outermost warps have no other; what they read there is lost in the halo, or put right */
    const kb_val other = side == 0 ? kb_max(k, kb_sub(k, s->warp, 1), 0) : kb_min(k, kb_add(k, s->warp, 1), last);
    const int slot = ((step * 2 + side) * s->is.reach + distance - 1) * s->is.warps;
    const kb_val line = kb_add(k, kb_mul(k, kb_add(k, other, slot), STRIP_WIDTH), kb_mul(k, s->lane, V));
    const int bytes = V * ty_bytes(q->border.ty);
    kb_load_n(k, kb_advance(k, q->border, kb_add(k, line, kb_get(k, s->half))), kb_imm(k, TY_I32, 0), V,
              bytes < 16 ? bytes : 16, v);
    if (!s->sides || mode == BOUND_WRAP || mode == BOUND_INTERIOR)
        return;
    const int i = inside(mode, distance);
    const kb_val outermost = kb_eq(k, s->warp, side == 0 ? 0 : last);
    for (int c = 0; c < V; c++) {
        const kb_val own = kb_get(k, q->at[step][place][side == 0 ? i : s->is.lines - 1 - i][c]);
        v[c] = kb_select(k, outermost, mode == BOUND_CONSTANT ? constant(s, q, 1) : own, v[c]);
    }
}

/* ---- planes ------------------------------------------------------------------------------------------------------ */

static void set_plane(const struct strip *s, const struct queue *q, int step, int place, int source)
{
    kb *k = s->g->k;
    for (int j = 0; j < s->is.lines; j++)
        for (int i = 0; i < V; i++)
            kb_set(k, q->at[step][place][j][i],
                   boundary(s, q, 0)->mode == BOUND_CONSTANT ? constant(s, q, 0)
                                                             : kb_get(k, q->at[step][source][j][i]));
}

void strip_planes_beyond(const struct strip *s, const struct queue *q, int step, int place, kb_val z)
{
    kb *k = s->g->k;
    const enum boundary_mode mode = boundary(s, q, 0)->mode;
    const int reach = s->is.reach;
    if (!s->ends || mode == BOUND_WRAP || mode == BOUND_INTERIOR)
        return;
    /* plane `reach` is the farthest that one before the first stands for */
    const kb_val first = kb_eq(k, z, reach);
    kb_if(k, s->joined ? kb_and(k, first, kb_not(k, s->beside[0])) : first) {
        for (int d = 1; d <= reach; d++)
            set_plane(s, q, step, strip_place(s, place, reach + d), strip_place(s, place, reach - inside(mode, d)));
    }
    for (int d = 1; d <= reach; d++) {
        const kb_val last = kb_eq(k, z, kb_add(k, s->planes, d - 1));
        kb_if(k, s->joined ? kb_and(k, last, kb_not(k, s->beside[1])) : last) {
            set_plane(s, q, step, place, strip_place(s, place, d + inside(mode, d)));
        }
    }
}

/* ---- interior ---------------------------------------------------------------------------------------------------- */

static kb_val leaves(const struct strip *s, const struct strip_point *sp, int input, int d)
{
    kb *k = s->g->k;
    const struct reach r = stencil_input_reach(s->g->p, input);
    const int axis = s->g->p->input[input].axis[d];
    const kb_val at = sp->pt.index[axis], extent = gen_extent(s->g, &s->g->p->space[axis].extent);
    return kb_or(k, kb_lt(k, at, -r.lo[d]), kb_ge(k, kb_add(k, at, r.hi[d]), extent));
}

kb_val strip_keep(const struct strip *s, const struct strip_point *sp, const struct queue *q, kb_val v)
{
    kb *k = s->g->k;
    const struct problem *p = s->g->p;
    kb_val skip = kb_false(k);
    if ((!s->sides && !s->ends) || !stencil_skips(p))
        return v;
    for (int i = 0; i < p->ninputs; i++)
        for (int d = 0; d < p->input[i].array.rank; d++)
            if (p->input[i].boundary[d].mode == BOUND_INTERIOR && (p->input[i].axis[d] == 0 ? s->ends : s->sides))
                skip = kb_or(k, skip, leaves(s, sp, i, d));
    return kb_select(k, skip, kb_get(k, q->at[sp->step][strip_place(s, sp->place, s->is.reach)][sp->line][sp->column]),
                     v);
}
