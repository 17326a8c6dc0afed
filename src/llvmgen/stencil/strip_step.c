/* SPDX-License-Identifier: Apache-2.0 */
/* strip_step.c - one step of one plane of a strip, out of the planes of the step before. */
#include "strip_gen.h"

/* ---- values ------------------------------------------------------------------------------------------------------ */

static const struct queue *queue_of(const struct strip *s, int input)
{
    for (int n = 0; n < s->nqueues; n++)
        if (s->queue[n].input == input)
            return &s->queue[n];
    return NULL;
}

/* Columns of a line of the plane dz from the middle one; the lane's own, or beyond them. */
static void line_values(const struct strip_point *sp, const struct queue *q, int dz, int line, kb_val v[V])
{
    const struct strip *s = sp->s;
    const int place = strip_place(s, sp->place, s->is.reach - dz), lines = s->is.lines;
    for (int i = 0; i < V; i++)
        v[i] = line < 0        ? sp->beside->line[q - s->queue][0][-line - 1][i]
               : line >= lines ? sp->beside->line[q - s->queue][1][line - lines][i]
                               : kb_get(s->g->k, q->at[sp->step][place][line][i]);
}

static kb_val queued(const struct strip_point *sp, const struct queue *q, int dz, int line, int column)
{
    const struct strip *s = sp->s;
    const int side = column < 0 ? 0 : 1, distance = column < 0 ? -column : column - V + 1;
    kb_val v[V];
    line_values(sp, q, dz, line, v);
    if (column >= 0 && column < V)
        return v[column];
    kb_val *known = &sp->beside->column[q - s->queue][dz + s->is.reach][line + STRIP_REACH_MAX][side][distance - 1];
    if (!known->ir)
        *known = strip_column_beside(s, q, v, side, distance);
    return *known;
}

/* A line of an input that is read at the point. */
static kb_val beside_queues(const struct strip_point *sp, const struct expr *e)
{
    const struct strip *s = sp->s;
    struct gen *g = s->g;
    kb *k = g->k;
    kb_val *v = sp->beside->aux[e->which][sp->line];
    if (!v[0].ir) {
        const kb_val row = kb_add(k, kb_mul(k, sp->pt.index[0], s->pitch), s->line[sp->line]);
        strip_load(s, e->which, row, v);
        strip_shift(s, e->which, row, v);
    }
    return v[sp->column];
}

static kb_val leaf(kb *k, struct emit_env *env, const struct expr *e)
{
    const struct strip_point *sp = env->user;
    const struct problem *p = sp->s->g->p;
    const struct queue *q = e->kind == EX_INPUT ? queue_of(sp->s, e->which) : NULL;
    const int dz = e->noffsets ? (int)e->offset[0] : 0, dy = e->noffsets == 3 ? (int)e->offset[1] : 0;
    if (q)
        return queued(sp, q, dz, sp->line + dy, sp->column + (e->noffsets ? (int)e->offset[p->rank - 1] : 0));
    if (e->kind == EX_INPUT && access_input_direct(p, e->which) && !*p->input[e->which].array.field[0].name)
        return beside_queues(sp, e);
    return point_leaf(k, env, e);
}

/* ---- one step of one plane --------------------------------------------------------------------------------------- */

kb_val strip_wrapped(const struct strip *s, bool beyond, int axis, kb_val i, kb_val extent)
{
    kb_val inside = kb_true(s->g->k);
    return beyond && strip_wraps(s->g->p, axis) ? boundary_index(s->g->k, BOUND_WRAP, i, extent, &inside) : i;
}

/* Where the point is in the array; beyond it any place in it. */
static void place_point(const struct strip *s, struct strip_point *sp, kb_val z)
{
    kb *k = s->g->k;
    const int rank = s->g->p->rank;
    kb_val at[SPACE_MAX];
    at[0] = strip_wrapped(s, s->ends, 0, z, s->planes);
    if (s->ends && !strip_wraps(s->g->p, 0))
        at[0] = kb_max(k, kb_min(k, z, kb_sub(k, s->planes, 1)), 0);
    if (s->ends && s->joined)
        at[0] = strip_joined_plane(s, z, at[0], &(kb_val){ 0 });
    if (rank == 3)
        at[1] = strip_wrapped(s, s->sides, 1, kb_add(k, s->y, sp->line), s->lines);
    at[rank - 1] = strip_wrapped(s, s->sides, rank - 1, kb_add(k, s->x, sp->column), s->columns);
    for (int d = 0; d < rank; d++)
        sp->pt.index[d] = kb_cast(k, at[d], TY_I64);
}

static void lines_beside(const struct strip *s, int step, int place, struct beside *b)
{
    for (int n = 0; n < s->nqueues; n++) {
        const struct queue *q = &s->queue[n];
        const struct reach r = stencil_input_reach(s->g->p, q->input);
        for (int side = 0; q->lines && side < 2; side++)
            for (int d = 1; d <= (side ? r.hi[1] : -r.lo[1]); d++)
                strip_line_beside(s, q, step, strip_place(s, place, s->is.reach), side, d, b->line[n][side][d - 1]);
    }
}

void strip_compute(const struct strip *s, int step, int place, kb_val z, kb_val v[STRIP_FED_MAX][STRIP_LINES_MAX][V])
{
    kb *k = s->g->k;
    struct beside beside = { 0 };
    lines_beside(s, step, place, &beside);
    for (int j = 0; j < s->is.lines; j++)
        for (int i = 0; i < V; i++) {
            struct strip_point sp = { .s = s, .beside = &beside, .step = step, .place = place, .line = j, .column = i };
            env_init(&sp.pt, s->g, NULL);
            sp.pt.env.leaf = leaf;
            sp.pt.env.user = &sp;
            place_point(s, &sp, z);
            for (int n = 0; n < s->nqueues; n++) {
                const struct queue *q = &s->queue[n];
                v[n][j][i] = strip_keep(s, &sp, q, emit_expr(k, &sp.pt.env, s->g->p->output[q->output].value[0]));
            }
        }
}

void strip_store_plane(const struct strip *s, kb_val z, kb_val v[STRIP_FED_MAX][STRIP_LINES_MAX][V])
{
    struct gen *g = s->g;
    kb *k = g->k;
    kb_if(k, kb_and(k, kb_ge(k, z, s->from), kb_lt(k, z, s->to))) {
        for (int j = 0; j < s->is.lines; j++) {
            const kb_val row = kb_add(k, kb_mul(k, kb_cast(k, z, TY_I64), s->pitch), s->line[j]);
            kb_val written = kb_true(k);
            if (s->is.height) {
                const kb_val y = kb_add(k, s->y, j);
                written = kb_and(k, kb_ge(k, y, s->top), kb_lt(k, y, s->bottom));
            }
            kb_if(k, written) {
                for (int n = 0; n < s->nqueues; n++)
                    strip_store(s, gen_output(g, s->queue[n].output), &g->p->output[s->queue[n].output].array, row,
                                v[n][j]);
            }
        }
    }
}
