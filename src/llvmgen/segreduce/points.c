/* SPDX-License-Identifier: Apache-2.0 */
/* points.c - segments and positions become points.
 *
 * Where segments are runs of elements, a position is an element number and nothing is divided but the segment's number,
 * once, into indices along the kept axes.  Otherwise a position is a place, divided into indices along the reduced axes
 * when there is more than one.
 */
#include "seg_gen.h"

#include <string.h>

/* The kept indices are known; what follows from them. */
static void open_at(struct gen *g, struct seg *s, kb_val number, const kb_val *index)
{
    kb *k = g->k;
    s->number = number;
    if (g->p->offsets >= 0) {
        s->element = index[0];
    } else {
        const bool trailing = segments_trailing(g->p);
        const kb_val length = gen_value(g, "length");
        s->element = trailing ? kb_mul(k, number, length) : space_linear(g, index);
        s->first = trailing ? s->element : kb_imm(k, TY_I64, 0);
        s->last = kb_add(k, s->first, length);
    }
    point_init(&s->here, g, s->element, kb_imm(k, TY_I32, 0), 0);
    memcpy(s->here.index, index, sizeof s->here.index);
    s->here.segment = number;
}

void seg_open(struct gen *g, struct seg *s, kb_val number)
{
    kb_val index[SPACE_MAX];
    s->number = number;
    for (int d = 0; d < SPACE_MAX; d++)
        index[d] = kb_imm(g->k, TY_I64, 0);
    if (g->p->offsets >= 0) {
        space_offsets(g, s->number, &s->first, &s->last);
        index[0] = s->first;
    } else {
        space_split(g, number, 0, g->p->rank, false, index);
    }
    open_at(g, s, number, index);
}

void seg_open_at(struct gen *g, struct seg *s, kb_val number, kb_val first)
{
    kb_val index[SPACE_MAX];
    for (int d = 0; d < SPACE_MAX; d++)
        index[d] = kb_imm(g->k, TY_I64, 0);
    index[0] = s->first = s->last = first;
    open_at(g, s, number, index);
}

void seg_open_column(struct gen *g, struct seg *s, kb_val outer, kb_val column)
{
    kb *k = g->k;
    kb_val index[SPACE_MAX];
    const int behind = segments_behind(g->p);
    for (int d = 0; d < SPACE_MAX; d++)
        index[d] = kb_imm(k, TY_I64, 0);
    space_split(g, outer, 0, behind, false, index);
    space_split(g, column, behind, g->p->rank, false, index);
    open_at(g, s, kb_add(k, kb_mul(k, outer, space_stride(g)), column), index);
}

void seg_enter(struct gen *g, struct seg *s) { g->here = &s->here; }

void seg_point(struct gen *g, struct point *pt, const struct seg *s, kb_val base, kb_val offset, int plus)
{
    kb *k = g->k;
    const bool trailing = segments_trailing(g->p);
    const kb_val start = kb_add(k, base, kb_cast(k, offset, TY_I64)), position = kb_add(k, start, plus);
    /* So that comparing indices of neighbours folds. */
    const kb_val place = trailing ? kb_no_wrap(kb_add(k, kb_sub(k, start, s->first), plus)) : position;
    kb_val index[SPACE_MAX];
    memcpy(index, s->here.index, sizeof index);
    if (g->p->offsets >= 0)
        index[0] = position;
    else
        space_split(g, place, 0, g->p->rank, true, index);
    if (trailing)
        point_init(pt, g, base, offset, plus);
    else if (segments_adjacent(g->p))
        point_init(pt, g, kb_add(k, s->element, kb_mul(k, place, space_stride(g))), kb_imm(k, TY_I32, 0), 0);
    else
        point_init(pt, g, space_linear(g, index), kb_imm(k, TY_I32, 0), 0);
    memcpy(pt->index, index, sizeof index);
}

void seg_finish(struct gen *g, struct seg *s, kb_tup total)
{
    seg_enter(g, s);
    state_finish(g, total, kb_ge(g->k, s->first, s->last));
}
