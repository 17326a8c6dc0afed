/* SPDX-License-Identifier: Apache-2.0 */
/* space.c - numbers of points, places and segments, and the indices that they stand for. */
#include "gen.h"
#include "lower/segments.h"

static kb_val axis_extent(struct gen *g, int axis) { return gen_extent(g, &g->p->space[axis].extent); }

void space_split(struct gen *g, kb_val number, int from, int to, bool reduced, kb_val *index)
{
    kb *k = g->k;
    while (from < to && g->p->space[from].reduced != reduced)
        from++;
    for (int d = to - 1; d > from; d--) {
        if (g->p->space[d].reduced != reduced)
            continue;
        index[d] = kb_rem(k, number, axis_extent(g, d));
        number = kb_div(k, number, axis_extent(g, d));
    }
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
