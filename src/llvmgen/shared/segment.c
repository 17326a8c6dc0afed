/* SPDX-License-Identifier: Apache-2.0 */
/* segment.c - numbers of points, places and segments, and the indices that they stand for; see segment.h.
 *
 * Where segments are runs of elements, a position is an element number and nothing is divided but the segment's number,
 * once, into indices along the kept axes.  Otherwise a position is a place, divided into indices along the reduced axes
 * when there is more than one.
 */
#include "segment.h"
#include "lower/segments.h"

#include <string.h>

/* ---- numbers and indices ----------------------------------------------------------------------------------------- */

static kb_val axis_extent(struct gen *g, int axis) { return gen_extent(g, &g->p->space[axis].extent); }

void space_split(struct gen *g, kb_val number, int from, int to, bool reduced, kb_val *index)
{
    while (from < to && g->p->space[from].reduced != reduced)
        from++;
    for (int d = to - 1; d > from; d--)
        if (g->p->space[d].reduced == reduced)
            index[d] = index_along(g, d, &number);
    if (from < to)
        index[from] = number;
}

kb_val space_linear(struct gen *g, const kb_val *index)
{
    kb *k = g->k;
    kb_val element = index[0];
    for (int d = 1; d < g->p->rank; d++)
        element = kb_add(k, kb_mul(k, element, axis_extent(g, d)), index[d]);
    return element;
}

kb_val space_stride(struct gen *g)
{
    kb_val n = kb_imm(g->k, TY_I64, 1);
    for (int d = segments_behind(g->p); d < g->p->rank; d++)
        n = kb_mul(g->k, n, axis_extent(g, d));
    return n;
}

void space_offsets(struct gen *g, kb_val number, kb_val *first, kb_val *last)
{
    kb *k = g->k;
    const kb_ptr offsets = gen_input(g, g->p->offsets);
    const kb_val n = axis_extent(g, 0);
    const kb_val from = kb_cast(k, kb_load(k, offsets, number), TY_I64);
    const kb_val to = kb_cast(k, kb_load(k, offsets, kb_add(k, number, 1)), TY_I64);
    *first = kb_max(k, kb_min(k, from, n), 0);
    *last = kb_max(k, kb_min(k, to, n), *first);
}

kb_val segment_offset(struct gen *g, kb_val i)
{
    kb *k = g->k;
    const kb_val n = gen_extent(g, &g->p->space[0].extent);
    const kb_val x = kb_cast(k, kb_load(k, gen_input(g, g->p->offsets), i), TY_I64);
    return kb_max(k, kb_min(k, x, n), 0);
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

kb_val pieces_between(struct gen *g)
{
    kb *k = g->k;
    return kb_mul(k, kb_sub(k, axis_extent(g, 1), 1), axis_extent(g, 2));
}

struct gaps pieces_from(struct gen *g, kb_val base)
{
    kb *k = g->k;
    kb_val number = base;
    const kb_val size = axis_extent(g, 2), into = index_along(g, 2, &number);
    return (struct gaps){ .every = kb_cast(k, kb_min(k, size, SEGMENTS_PIECE_MOST), TY_I32),
                          .reciprocal = kb_cast(k, gen_value(g, VAL_PIECE), TY_U64),
                          .size = pieces_between(g),
                          .skipped = kb_mul(k, number, pieces_between(g)),
                          .next = kb_cast(k, kb_min(k, kb_sub(k, size, into), SEGMENTS_PIECE_MOST), TY_I32) };
}

/* Quotient of 0 <= x and the distance of gaps; exact, as the product of both is less than 2^32. */
static kb_val gaps_within(kb *k, const struct gaps *from, kb_val x)
{
    return kb_cast(k, kb_shr(k, kb_mul(k, kb_cast(k, x, TY_U64), from->reciprocal), 32), TY_I32);
}

struct gaps gaps_at(struct gen *g, const struct gaps *from, kb_val at)
{
    kb *k = g->k;
    struct gaps there = *from;
    const kb_val behind = kb_sub(k, at, from->next), before = kb_lt(k, behind, 0);
    const kb_val more = gaps_within(k, from, kb_max(k, behind, 0));
    const kb_val rest = kb_sub(k, kb_mul(k, kb_add(k, more, 1), from->every), behind);
    const kb_val begun = kb_select(k, before, kb_imm(k, TY_I32, 0), kb_add(k, more, 1));
    there.next = kb_select(k, before, kb_neg(k, behind), rest);
    there.skipped = kb_add(k, from->skipped, kb_mul(k, kb_cast(k, begun, TY_I64), from->size));
    return there;
}

kb_val gaps_pass(struct gen *g, struct gaps *from, int distance, int plus)
{
    kb *k = g->k;
    const kb_val whole = gaps_within(k, from, kb_imm(k, TY_I32, distance));
    const kb_val sure = kb_add(k, kb_mul(k, kb_cast(k, whole, TY_I64), from->size), plus);
    const kb_val left = kb_sub(k, from->next, kb_sub(k, kb_imm(k, TY_I32, distance), kb_mul(k, whole, from->every)));
    const kb_val one = kb_le(k, left, 0);
    from->next = kb_select(k, one, kb_add(k, left, from->every), left);
    return kb_select(k, one, kb_add(k, sure, from->size), sure);
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

/* The kept indices are known; what follows from them. */
static void open_at(struct gen *g, struct segment *s, kb_val number, const kb_val *index)
{
    kb *k = g->k;
    s->number = number;
    if (g->p->offsets >= 0) {
        s->element = index[0];
    } else {
        const bool trailing = segments_trailing(g->p);
        const kb_val length = gen_value(g, VAL_LENGTH);
        s->element = trailing ? kb_mul(k, number, length) : space_linear(g, index);
        s->first = trailing ? s->element : kb_imm(k, TY_I64, 0);
        s->last = kb_add(k, s->first, length);
    }
    point_init(&s->here, g, s->element, kb_imm(k, TY_I32, 0), 0);
    memcpy(s->here.index, index, sizeof s->here.index);
    s->here.segment = number;
}

static void no_indices(struct gen *g, kb_val *index)
{
    for (int d = 0; d < SPACE_MAX; d++)
        index[d] = kb_imm(g->k, TY_I64, 0);
}

void segment_at(struct gen *g, struct segment *s, kb_val number)
{
    kb_val index[SPACE_MAX];
    no_indices(g, index);
    if (g->p->offsets >= 0) {
        space_offsets(g, number, &s->first, &s->last);
        index[0] = s->first;
    } else {
        space_split(g, number, 0, g->p->rank, false, index);
    }
    open_at(g, s, number, index);
}

void segment_known(struct gen *g, struct segment *s, kb_val number, kb_val first)
{
    kb_val index[SPACE_MAX];
    no_indices(g, index);
    index[0] = s->first = s->last = first;
    open_at(g, s, number, index);
}

void segment_named(struct gen *g, struct segment *s, kb_val number, const kb_val *index)
{
    kb_val own[SPACE_MAX];
    no_indices(g, own);
    for (int d = 0; d < g->p->rank; d++)
        if (!g->p->space[d].reduced)
            own[d] = index[d];
    open_at(g, s, number, own);
}

void segment_of(struct gen *g, struct segment *s, const kb_val *index)
{
    kb *k = g->k;
    kb_val number = kb_imm(k, TY_I64, 0);
    for (int d = 0; d < g->p->rank; d++)
        if (!g->p->space[d].reduced)
            number = kb_add(k, kb_mul(k, number, axis_extent(g, d)), index[d]);
    segment_named(g, s, number, index);
}

void segment_column(struct gen *g, struct segment *s, kb_val outer, kb_val column)
{
    kb_val index[SPACE_MAX];
    const int behind = segments_behind(g->p);
    no_indices(g, index);
    space_split(g, outer, 0, behind, false, index);
    space_split(g, column, behind, g->p->rank, false, index);
    open_at(g, s, kb_add(g->k, kb_mul(g->k, outer, space_stride(g)), column), index);
}

void segment_enter(struct gen *g, struct segment *s) { g->here = &s->here; }

void segment_ahead(struct gen *g, struct segment *s)
{
    unsigned axes = 0;
    for (int i = 0; i < g->p->rank; i++)
        axes |= g->p->space[i].reduced ? 1u << i : 0;
    point_ahead(&s->here, axes);
}

static kb_val piece_element(struct gen *g, const struct segment *s, kb_val base, kb_val at)
{
    kb *k = g->k;
    const struct gaps from = pieces_from(g, base);
    return kb_add(k, kb_add(k, s->element, base), kb_add(k, gaps_at(g, &from, at).skipped, kb_cast(k, at, TY_I64)));
}

void segment_point(struct gen *g, struct point *pt, const struct segment *s, kb_val base, kb_val offset, int plus)
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
        point_init(pt, g, piece_element(g, s, base, kb_add(k, offset, plus)), kb_imm(k, TY_I32, 0), 0);
    memcpy(pt->index, index, sizeof index);
    pt->env.sum = s->here.env.sum;
}

void segment_store_known(struct gen *g, struct segment *s, kb_tup total, kb_val empty)
{
    segment_enter(g, s);
    state_finish(g, total, empty);
}

void segment_store(struct gen *g, struct segment *s, kb_tup total)
{
    segment_store_known(g, s, total, kb_ge(g->k, s->first, s->last));
}
