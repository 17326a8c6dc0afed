/* SPDX-License-Identifier: Apache-2.0 */
/* scan_points.c - segments and positions become points: contributions are loaded, results stored.
 *
 * Where the scanned axes are the last ones, element = first of the segment + position (from the other end for a reversed scan).
 * Otherwise the position is divided into indices along the scanned axes, the segment's number into those of the kept ones; a
 * single scanned axis needs no division.
 */
#include "scan_gen.h"

#include <string.h>

static kb_val extent(struct gen *g, int axis)
{
    const struct prog_dim *d = &g->p->space[axis].extent;
    return d->size < 0 ? kb_imm(g->k, TY_I64, d->add) : kb_add(g->k, gen_size(g, d->size), d->add);
}

/* Number -> indices along the scanned or the kept axes, row-major. */
static void split(struct gen *g, kb_val number, bool scanned, kb_val *index)
{
    kb *k = g->k;
    int first = 0;
    while (first < g->p->rank && g->p->space[first].reduced != scanned)
        first++;
    for (int d = g->p->rank - 1; d >= first; d--) {
        if (g->p->space[d].reduced != scanned)
            continue;
        index[d] = d == first ? number : kb_rem(k, number, extent(g, d));
        if (d > first)
            number = kb_div(k, number, extent(g, d));
    }
}

static kb_val linear(struct gen *g, const kb_val *index)
{
    kb *k = g->k;
    kb_val element = index[0];
    for (int d = 1; d < g->p->rank; d++)
        element = kb_add(k, kb_mul(k, element, extent(g, d)), index[d]);
    return element;
}

/* ---- segments ------------------------------------------------------------------------------------------------------------------- */

/* The range of a segment between offsets, kept inside the array whatever they say. */
static void range(struct gen *g, struct scan_segment *s)
{
    kb *k = g->k;
    const kb_ptr offsets = gen_input(g, g->p->offsets);
    const kb_val n = extent(g, 0);
    const kb_val from = kb_cast(k, kb_load(k, offsets, s->number), TY_I64);
    const kb_val to = kb_cast(k, kb_load(k, offsets, kb_add(k, s->number, 1)), TY_I64);
    s->first = kb_max(k, kb_min(k, from, n), 0);
    s->length = kb_sub(k, kb_max(k, kb_min(k, to, n), s->first), s->first);
}

void segment_open(struct gen *g, struct scan_segment *s, kb_val number)
{
    kb *k = g->k;
    const kb_val zero = kb_imm(k, TY_I64, 0);
    kb_val index[SPACE_MAX];
    s->number = number;
    s->length = gen_value(g, "length");
    for (int d = 0; d < g->p->rank; d++)
        index[d] = zero;
    if (g->p->offsets >= 0) {
        range(g, s);
        index[0] = s->first;
    } else {
        split(g, number, false, index);
        s->first = linear(g, index);
    }
    point_init(&s->here, g, s->first, kb_imm(k, TY_I32, 0), 0);
    memcpy(s->here.index, index, sizeof index);
    g->here = &s->here;
}

void segment_finish(struct gen *g, struct scan_segment *s, kb_tup state, kb_val empty)
{
    const kb_tup total = kb_select(g->k, empty, state_start(g), state);
    struct point pt = s->here;
    pt.env.user = &pt;
    pt.state = &total;
    pt.segment = s->number;
    for (int o = 0; o < g->p->noutputs; o++)
        if (g->p->output[o].role == OUT_SEGMENT)
            point_store_segment(&pt, o);
}

/* ---- positions ------------------------------------------------------------------------------------------------------------------ */

/* The point at position base + offset + plus, which is inside. */
static void point_at(const struct held *h, struct point *pt, kb_val offset, int plus)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const struct scan_segment *s = h->segment;
    const bool reverse = g->p->reverse;
    if (scan_trailing(g->p)) {
        const kb_val last = kb_sub(k, kb_add(k, s->first, s->length), 1);
        if (reverse)
            point_init(pt, g, kb_sub(k, last, h->base), kb_neg(k, offset), -plus);
        else
            point_init(pt, g, kb_add(k, s->first, h->base), offset, plus);
        return;
    }
    kb_val position = kb_add(k, kb_add(k, h->base, kb_cast(k, offset, TY_I64)), plus);
    if (reverse)
        position = kb_sub(k, kb_sub(k, s->length, 1), position);
    kb_val index[SPACE_MAX];
    memcpy(index, s->here.index, sizeof index);
    split(g, position, true, index);
    point_init(pt, g, linear(g, index), kb_imm(k, TY_I32, 0), 0);
    memcpy(pt->index, index, sizeof index);
}

/* Does a flag begin a segment at the point, in the order of the scan?  Element 0 does so by itself. */
static kb_val flagged(struct gen *g, struct point *pt)
{
    kb *k = g->k;
    const kb_ptr flags = gen_input(g, g->p->flags);
    const kb_val zero = kb_imm(k, flags.ty, 0);
    if (!g->p->reverse)
        return kb_ne(k, kb_load(k, flags, point_linear(pt)), zero);
    /* The mark stands on the element behind; the last element is where a reversed scan begins anyway. */
    const kb_val behind = kb_min(k, kb_add(k, point_linear(pt), 1), kb_sub(k, extent(g, 0), 1));
    return kb_ne(k, kb_load(k, flags, behind), zero);
}

/* Where position own + i is loaded: the last one inside stands for those behind it. */
static kb_val clamped(const struct held *h, int i)
{
    kb *k = h->g->k;
    return kb_min(k, kb_add(k, h->own, i), kb_sub(k, h->valid, 1));
}

void held_load(struct held *h, kb_val fresh)
{
    struct gen *g = h->g;
    kb *k = g->k;
    kb_val at[SCAN_HELD_MAX];
    struct point pt;
    for (int i = 0; i < h->n; i++) {
        at[i] = clamped(h, i);
        point_at(h, &pt, at[i], 0);
        direct_load(g, pt.base, pt.offset, pt.plus, 1, false, &h->direct[i]);
    }
    for (int i = 0; i < h->n; i++) {
        point_at(h, &pt, at[i], 0);
        pt.direct = &h->direct[i];
        h->head[i] = g->p->flags >= 0 ? flagged(g, &pt) : kb_imm(k, TY_BOOL, 0);
        if (i == 0 && g->p->flags >= 0)
            h->head[i] = kb_or(k, h->head[i], fresh);
        h->x[i] = point_map(&pt);
        if (i == 0 || g->p->flags >= 0)
            h->x[i] = state_with_init(g, i == 0 ? kb_or(k, h->head[i], fresh) : h->head[i], h->x[i]);
    }
}

struct run held_total(struct held *h)
{
    struct run r = run_of(h->g, h->x[0], h->head[0]);
    for (int i = 1; i < h->n; i++)
        r = run_join(h->g, r, run_of(h->g, h->x[i], h->head[i]));
    return r;
}

void held_store(struct held *h, struct run before, kb_tup *last)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const kb_val last_own = kb_sub(k, kb_sub(k, h->valid, 1), h->own);
    for (int i = 0; i < h->n; i++) {
        const struct run upto = run_join(g, before, run_of(g, h->x[i], h->head[i]));
        kb_tup state = upto.x;
        if (g->p->exclusive) {
            const kb_val begins = kb_or(k, h->head[i], kb_not(k, before.some));
            state = kb_select(k, begins, state_start(g), before.x);
        }
        kb_if (k, kb_lt(k, kb_add(k, h->own, i), h->valid)) {
            struct point pt;
            point_at(h, &pt, h->own, i);
            pt.direct = &h->direct[i];
            pt.state = &state;
            points_store(&pt, 1, false);
        }
        if (last)
            *last = i == 0 ? upto.x : kb_select(k, kb_ge(k, last_own, i), upto.x, *last);
        before = upto;
    }
}
