/* SPDX-License-Identifier: Apache-2.0 */
/* seg_points.c - segments and positions become points.
 *
 * Where segments are runs of elements, a position is an element number and nothing is divided but the segment's number, once,
 * into indices along the kept axes.  Otherwise a position is a place, divided into indices along the reduced axes when there is
 * more than one.
 */
#include "seg_gen.h"

#include <string.h>

/* A number becomes indices along the reduced or the kept axes, row-major. */
static void split(struct gen *g, kb_val number, bool reduced, kb_val *index)
{
    kb *k = g->k;
    int first = 0;
    while (first < g->p->rank && g->p->space[first].reduced != reduced)
        first++;
    for (int d = g->p->rank - 1; d > first; d--) {
        if (g->p->space[d].reduced != reduced)
            continue;
        index[d] = kb_rem(k, number, gen_extent(g, &g->p->space[d].extent));
        number = kb_div(k, number, gen_extent(g, &g->p->space[d].extent));
    }
    if (first < g->p->rank)
        index[first] = number;
}

static kb_val linear(struct gen *g, const kb_val *index)
{
    kb *k = g->k;
    kb_val element = index[0];
    for (int d = 1; d < g->p->rank; d++)
        element = kb_add(k, kb_mul(k, element, gen_extent(g, &g->p->space[d].extent)), index[d]);
    return element;
}

/* The range between two offsets, kept inside the array whatever they say. */
static void offset_range(struct gen *g, struct seg *s)
{
    kb *k = g->k;
    const kb_ptr offsets = gen_input(g, g->p->offsets);
    const kb_val n = gen_extent(g, &g->p->space[0].extent);
    const kb_val from = kb_cast(k, kb_load(k, offsets, s->number), TY_I64);
    const kb_val to = kb_cast(k, kb_load(k, offsets, kb_add(k, s->number, 1)), TY_I64);
    s->first = kb_max(k, kb_min(k, from, n), 0);
    s->last = kb_max(k, kb_min(k, to, n), s->first);
}

void seg_open(struct gen *g, struct seg *s, kb_val number)
{
    kb *k = g->k;
    kb_val index[SPACE_MAX], element;
    s->number = number;
    for (int d = 0; d < g->p->rank; d++)
        index[d] = kb_imm(k, TY_I64, 0);
    if (g->p->offsets >= 0) {
        offset_range(g, s);
        index[0] = element = s->first;
    } else {
        const kb_val length = gen_value(g, "length");
        const bool trailing = segments_trailing(g->p);
        split(g, number, false, index);
        element = trailing ? kb_mul(k, number, length) : linear(g, index);
        s->first = trailing ? element : kb_imm(k, TY_I64, 0);
        s->last = kb_add(k, s->first, length);
    }
    point_init(&s->here, g, element, kb_imm(k, TY_I32, 0), 0);
    memcpy(s->here.index, index, sizeof index);
    s->here.segment = number;
}

void seg_enter(struct gen *g, struct seg *s) { g->here = &s->here; }

void seg_point(struct gen *g, struct point *pt, const struct seg *s, kb_val base, kb_val offset, int plus)
{
    kb *k = g->k;
    const bool trailing = segments_trailing(g->p);
    const kb_val place = kb_sub(k, base, trailing ? s->first : kb_imm(k, TY_I64, 0));
    kb_val index[SPACE_MAX];
    memcpy(index, s->here.index, sizeof index);
    if (g->p->offsets >= 0)
        index[0] = kb_add(k, kb_add(k, base, kb_cast(k, offset, TY_I64)), plus);
    else
        split(g, kb_add(k, kb_add(k, place, kb_cast(k, offset, TY_I64)), plus), true, index);
    if (trailing)
        point_init(pt, g, base, offset, plus);
    else
        point_init(pt, g, linear(g, index), kb_imm(k, TY_I32, 0), 0);
    memcpy(pt->index, index, sizeof index);
}

void seg_finish(struct gen *g, struct seg *s, kb_tup total)
{
    seg_enter(g, s);
    state_finish(g, total, kb_ge(g->k, s->first, s->last));
}
