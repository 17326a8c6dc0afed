/* SPDX-License-Identifier: Apache-2.0 */
/* partial.c - blocks that stream, where values grow as planes arrive.
 *
 *     for every plane that the chunk's places read, in order:
 *         wait for it; barrier; copy of the plane `ahead` on starts
 *         for every place that reads it, from the one that is complete with it to the one that begins with it:
 *             what its points read of this plane joins their values
 *         store the place that is complete
 *
 * A value that comes from shared memory serves all places that read it, where a window would load it again for each.  Registers
 * hold one value for each point and place under way.
 */
#include "planes.h"

#include <stdlib.h>

#include "llvmgen/builder/kb_impl.h"

struct partial {
    struct stream *st;
    struct parts parts;
    int points;
    kb_val *value; /* of every place under way, the youngest first: as many as there are points */
};

static kb_val *values_at(const struct partial *p, int plane) { return p->value + (plane - p->parts.lo) * p->points; }

static void store_rows(struct partial *p, struct window *w, bool whole)
{
    kb *k = w->g->k;
    const int n = w->points[w->rank - 1];
    w->whole = whole;
    struct stencil_point *sp = sweep_points(p->st->s, w);
    for (int i = 0; sp && i < p->points; i++)
        sp[i].value[0] = (struct emit_cached){ values_at(p, p->parts.hi)[i], kb_place(k) };
    for (int i = 0; sp && i < p->points; i += n)
        sweep_store_row(p->st->s, w, sp + i);
    free(sp);
}

static void store_place(struct partial *p, struct window *w, kb_val place)
{
    struct stream *st = p->st;
    kb *k = st->s->g->k;
    kb_if(k, kb_ge(k, place, st->begin)) {
        kb_if(k, kb_and(k, stream_exists(st, true), stream_none_skipped(st, place))) {
            store_rows(p, w, true);
        }
        kb_else
        {
            kb_if(k, kb_and(k, stream_exists(st, false), kb_not(k, stream_all_skipped(st, place)))) {
                store_rows(p, w, false);
            }
        }
    }
}

/* The plane in a position of the rings, with which `place` is complete. */
static void add_plane(struct partial *p, kb_val place, int position)
{
    struct stream *st = p->st;
    kb *k = st->s->g->k;
    struct window w;
    stream_window(st, &w, place, st->lo + position);
    for (int i = 0; i < w.ncells; i++)
        w.cell[i].late = true;
    w.first = kb_add(k, kb_mul(k, place, st->planes.plane), kb_cast(k, st->own, TY_I64));
    w.whole = true;
    struct stencil_point *sp = sweep_points(st->s, &w);
    for (int plane = p->parts.hi; sp && plane >= p->parts.lo; plane--) {
        const struct expr *const *part = &p->parts.part[plane - p->parts.lo];
        kb_val *to = values_at(p, plane);
        w.away = p->parts.hi - plane;
        for (int i = 0; i < p->points && plane > p->parts.lo; i++)
            to[i] = to[i - p->points];
        stencil_grow(sp, p->points, plane > p->parts.lo ? part[-1] : NULL, *part, to);
    }
    free(sp);
    store_place(p, &w, place);
    window_free(&w);
}

static void planes(struct partial *p, kb_var *var, int n)
{
    struct stream *st = p->st;
    kb *k = st->s->g->k;
    const kb_val end = kb_add(k, st->end, st->hi), first = kb_add(k, st->begin, st->lo);
    for (int i = 0; i < st->ahead; i++)
        planes_copy(&st->planes, kb_add(k, first, i), end, i);
    for (int i = 0; i < n; i++)
        var[i] = kb_var_new(k, kb_imm(k, p->parts.part[i / p->points]->type, 0), "value");
    kb_section(k, "planes");
    kb_for(k, done, kb_imm(k, TY_I64, 0), kb_sub(k, end, first), st->depth) {
        for (int i = 0; i < n; i++)
            p->value[i] = kb_get(k, var[i]);
        for (int turn = 0; turn < st->depth; turn++) {
            const kb_val plane = kb_add(k, first, kb_add(k, done, turn));
            if (turn > 0)
                kb_break_if(k, kb_ge(k, plane, end));
            stream_wait(st, st->ahead - 1);
            planes_copy(&st->planes, kb_add(k, plane, st->ahead), end, (turn + st->ahead) % st->depth);
            add_plane(p, kb_sub(k, plane, st->hi), turn);
        }
        for (int i = 0; i < n; i++)
            kb_set(k, var[i], p->value[i]);
    }
}

void stream_partial(struct stream *st)
{
    struct gen *g = st->s->g;
    const int rank = g->p->rank;
    struct partial p = { .st = st, .points = stencil_points(g->c, rank, 1) * stencil_points(g->c, rank, rank - 1) };
    stencil_parts(g->p, &p.parts);
    const int carried = (p.parts.hi - p.parts.lo) * p.points;
    p.value = calloc((size_t)(carried + p.points), sizeof *p.value);
    kb_var *var = calloc((size_t)carried, sizeof *var);
    if (p.value && var)
        planes(&p, var, carried);
    else
        kb_misuse(g->k, "out of memory");
    free(var);
    free(p.value);
}
