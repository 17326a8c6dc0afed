/* SPDX-License-Identifier: Apache-2.0 */
/* stencil_slide.c - windows that slide along the outermost axis: 2.5-dimensional blocking in registers.
 *
 *     window of one place along axis 0, loaded
 *     for every place of the chunk:
 *         next window: what this one has too is taken over, the rest is loaded
 *         compute and store this window
 *
 * So each value is loaded once by the thread that computes at it, and the loads of a place are under way while the one
 * before is computed (Micikevicius, 3D finite difference computation on GPUs, with registers and the L1 cache in the
 * place of shared memory).  The body is unrolled twice, so that a value that is on its way need not be copied.  Places
 * whose surroundings leave the arrays along axis 0 are windows of their own.
 */
#include "stencil_gen.h"

#include <stdlib.h>
#include <string.h>

#include "kb_target.h"

enum { UNROLL = 2 };

/* Where a cell of the window at the next place lies in this one. */
static void one_before(const struct window *w, const int *at, int *to)
{
    const int along[SPACE_MAX] = { 1 };
    memcpy(to, at, SPACE_MAX * sizeof *to);
    to[0]++;
    to[w->rank - 1] += w->slanted ? stencil_slant(w->g->c, w->rank, along) : 0;
}

/* What is read sideways later on goes through the boundary from the beginning. */
static void look_ahead(struct window *w)
{
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < w->ncells; i++) {
            int at[SPACE_MAX];
            one_before(w, w->cell[i].at, at);
            struct cell *before = window_cell(w, w->cell[i].input, w->cell[i].field, at);
            if (!before || before->sideways || !w->cell[i].sideways)
                continue;
            before->sideways = true;
            more = true;
        }
    }
}

/* A window at `place`, whose columns begin `slant` columns right of the chunk's; like: another one of the chunk, or
 * NULL. */
static void window_at(struct sweep *s, struct window *w, kb_val place, kb_val slant, enum placement where,
                      const struct window *like)
{
    kb *k = s->g->k;
    const int rank = s->g->p->rank;
    int points[SPACE_MAX] = { 1, 1, 1 };
    kb_val origin[SPACE_MAX];
    for (int d = 0; d < rank; d++) {
        points[d] = d > 0 ? stencil_points(s->g->c, rank, d) : 1;
        origin[d] = d > 0 ? s->origin[d] : place;
    }
    if (rank > 1)
        origin[rank - 1] = kb_add(k, origin[rank - 1], slant);
    window_init(w, s->g, origin, points, where);
    w->sliding = true;
    if (like && !w->slanted) { /* columns stay where they are */
        w->spot = like->spot;
        w->nspots = like->nspots;
        w->spots_lent = true;
    }
    window_collect(w);
    look_ahead(w);
}

/* Columns that the window has moved at `place`. */
static kb_val slant_of(struct sweep *s, kb_val place)
{
    kb *k = s->g->k;
    const int along[SPACE_MAX] = { 1 };
    if (!stencil_slanted(s->g->c))
        return kb_imm(k, TY_I64, 0);
    return kb_mul(k, kb_sub(k, place, s->origin[0]), stencil_slant(s->g->c, s->g->p->rank, along));
}

/* The window one place on, but not past the last. */
static void advance(struct sweep *s, struct window *w, struct window *next, kb_val place, kb_val end,
                    const struct window *like)
{
    kb *k = s->g->k;
    const kb_val to = kb_min(k, kb_add(k, place, 1), kb_sub(k, end, 1));
    window_at(s, next, to, slant_of(s, to), w->place, like);
    for (int i = 0; i < next->ncells; i++) {
        struct cell *c = &next->cell[i];
        int at[SPACE_MAX];
        one_before(w, c->at, at);
        const struct cell *known = window_cell(w, c->input, c->field, at);
        if (known)
            c->v = known->v;
    }
    window_fill(next);
}

static void slide(struct sweep *s, kb_val begin, kb_val end, enum placement where)
{
    kb *k = s->g->k;
    struct window first, w[UNROLL + 1];
    window_at(s, &first, begin, slant_of(s, begin), where, NULL);
    window_fill(&first);
    kb_var *held = calloc((size_t)first.ncells + 1, sizeof *held);
    if (!held) {
        kb_misuse(k, "out of memory");
        window_free(&first);
        return;
    }
    for (int i = 0; i < first.ncells; i++)
        held[i] = kb_var_new(k, first.cell[i].v, "held");
    kb_for(k, place, begin, end, UNROLL) {
        window_at(s, &w[0], place, slant_of(s, place), where, &first);
        for (int i = 0; i < w[0].ncells; i++)
            w[0].cell[i].v = kb_get(k, held[i]);
        for (int u = 0; u < UNROLL; u++) {
            const kb_val here = kb_add(k, place, u);
            advance(s, &w[u], &w[u + 1], here, end, &first);
            kb_if(k, u == 0 ? kb_imm(k, TY_BOOL, 1) : kb_lt(k, here, end)) {
                sweep_rows(s, &w[u]);
            }
        }
        for (int i = 0; i < first.ncells; i++)
            kb_set(k, held[i], w[UNROLL].cell[i].v);
        for (int u = 0; u <= UNROLL; u++)
            window_free(&w[u]);
    }
    free(held);
    window_free(&first);
}

/* Are all places of the window inside along the axes between the first and the last? */
static kb_val middle_inside(struct sweep *s)
{
    kb *k = s->g->k;
    const int rank = s->g->p->rank;
    const kb_val wide =
        kb_ge(k, gen_extent(s->g, &s->g->p->space[rank - 1].extent), 64 + 2 * stencil_points(s->g->c, rank, 0));
    return kb_and(k, wide, sweep_inside(s, 1, rank - 1));
}

void sweep_slide(struct sweep *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const int rank = g->p->rank, places = stencil_points(g->c, rank, 0);
    const struct reach r = stencil_space_reach(g->p);
    const kb_val extent = gen_extent(g, &g->p->space[0].extent);
    const kb_val stop = kb_min(k, kb_add(k, s->origin[0], places), extent);
    LET(begin, kb_min(k, kb_max(k, s->origin[0], 1 - r.lo[0]), stop)); /* PLACE_ROWS wants a row more on either side */
    LET(end, kb_max(k, kb_min(k, stop, kb_sub(k, extent, r.hi[0] + 1)), begin));
    const kb_val some = kb_lt(k, begin, end);
    LET(rows, kb_all(k, middle_inside(s)));
    const kb_val clear = kb_all(k, sweep_inside(s, rank - 1, rank)), exists = sweep_exists(s, 1, rank);
    kb_if(k, rows) {
        kb_section(k, "inside");
        kb_if(k, clear) {
            kb_if(k, some) {
                slide(s, begin, end, PLACE_INSIDE);
            }
        }
        kb_else
        {
            kb_section(k, "columns");
            kb_if(k, kb_and(k, some, exists)) {
                slide(s, begin, end, PLACE_ROWS);
            }
        }
    }
    kb_section(k, "edge");
    kb_if(k, exists) {
        const kb_val before = kb_sub(k, begin, s->origin[0]),
                     slid = kb_select(k, rows, kb_sub(k, end, begin), kb_imm(k, TY_I64, 0));
        sweep_by_rows(s, kb_sub(k, kb_sub(k, stop, s->origin[0]), slid), before, slid, PLACE_EDGE);
    }
}
