/* SPDX-License-Identifier: Apache-2.0 */
/* segment.c - the segments of a scan: where one begins, and what is written once for each. */
#include "scan_gen.h"

#include <string.h>

void segment_open(struct gen *g, struct scan_segment *s, kb_val number)
{
    kb *k = g->k;
    const kb_val zero = kb_imm(k, TY_I64, 0);
    kb_val index[SPACE_MAX];
    s->number = number;
    s->length = gen_value(g, VAL_LENGTH);
    for (int d = 0; d < g->p->rank; d++)
        index[d] = zero;
    if (g->p->offsets >= 0) {
        kb_val last;
        space_offsets(g, number, &s->first, &last);
        s->length = kb_sub(k, last, s->first);
        index[0] = s->first;
    } else {
        space_split(g, number, 0, g->p->rank, false, index);
        s->first = space_linear(g, index);
    }
    point_init(&s->here, g, s->first, kb_imm(k, TY_I32, 0), 0);
    memcpy(s->here.index, index, sizeof index);
    s->here.segment = number;
    g->here = &s->here;
}

void segment_open_all(struct gen *g, struct scan_segment *s)
{
    const kb_val zero = kb_imm(g->k, TY_I64, 0);
    if (g->p->offsets < 0) {
        segment_open(g, s, zero);
    } else {
        *s = (struct scan_segment){ .number = zero, .first = zero };
        point_init(&s->here, g, zero, kb_imm(g->k, TY_I32, 0), 0);
    }
    s->length = gen_value(g, VAL_COUNT);
    if (scan_keeps(g->p) || g->p->offsets >= 0)
        g->here = NULL; /* operators read nothing that differs between segments */
}

/* ---- indices without division ------------------------------------------------------------------------------------ */

void items_set_indices(const struct items *h, struct point *pt, int i, kb_val at)
{
    const struct problem *p = h->g->p;
    kb *k = h->g->k;
    if (h->walked)
        memcpy(pt->index, h->index[i], sizeof pt->index);
    if (!h->turn && !h->alone)
        return;
    for (int d = 0; d < p->rank; d++)
        if (!p->space[d].reduced)
            pt->index[d] = h->segment->here.index[d];
    if (scan_axes(p) != 1)
        return;
    const kb_val position = kb_add(k, h->base, kb_cast(k, at, TY_I64));
    pt->index[p->rank - 1] = p->reverse ? kb_sub(k, kb_sub(k, h->segment->length, 1), position) : position;
}

/* index := those of the next element in the direction of the scan, where `on`. */
static void next_indices(struct gen *g, kb_val on, kb_val *index)
{
    kb *k = g->k;
    const kb_val zero = kb_imm(k, TY_I64, 0);
    for (int d = g->p->rank - 1; d >= 0; d--) {
        const kb_val step = kb_cast(k, on, TY_I64), extent = gen_extent(g, &g->p->space[d].extent);
        const kb_val next = g->p->reverse ? kb_sub(k, index[d], step) : kb_add(k, index[d], step);
        const kb_val around = g->p->reverse ? kb_lt(k, next, 0) : kb_ge(k, next, extent);
        index[d] = d ? kb_select(k, around, g->p->reverse ? kb_sub(k, extent, 1) : zero, next) : next;
        on = around;
    }
}

static void walk(struct items *h)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const struct scan_segment *s = h->segment;
    const kb_val at = kb_add(k, h->base, kb_cast(k, kb_min(k, h->own, kb_sub(k, h->valid, 1)), TY_I64));
    kb_val rest = kb_add(k, s->first, g->p->reverse ? kb_sub(k, kb_sub(k, s->length, 1), at) : at), index[SPACE_MAX];
    for (int d = g->p->rank - 1; d > 0; d--)
        index[d] = index_along(g, d, &rest);
    index[0] = rest;
    for (int i = 0; i < h->n; i++) {
        memcpy(h->index[i], index, sizeof index);
        next_indices(g, i + 1 < h->n ? items_inside(h, i + 1) : kb_false(k), index);
    }
    h->walked = true;
}

void items_know_indices(struct items *h, bool alone)
{
    h->alone = alone && scan_asks_indices(h->g->p);
    if (!alone && scan_asks_indices(h->g->p))
        walk(h);
}

void segment_finish(struct gen *g, struct scan_segment *s, kb_tup state, kb_val empty)
{
    const kb_tup total = kb_select(g->k, empty, state_start(g), state);
    struct point pt = s->here;
    pt.env.user = &pt;
    pt.state = &total;
    outputs_store_total(&pt);
}

void segment_finish_empty(struct gen *g, struct scan_segment *s, kb_val here)
{
    if (!scan_has_totals(g->p))
        return;
    kb_if(g->k, here) {
        segment_finish(g, s, state_zero(g), kb_true(g->k));
    }
}

static void totals_of_none(struct gen *g)
{
    kb *k = g->k;
    if (!scan_has_totals(g->p))
        return;
    const int threads = kb_threads(k);
    LET(first, kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), threads), kb_cast(k, kb_tid(k), TY_I64)));
    kb_for(k, number, first, gen_value(g, VAL_SEGMENTS), kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), threads)) {
        struct scan_segment s;
        segment_open(g, &s, number);
        segment_finish(g, &s, state_zero(g), kb_true(k));
    }
}

void scan_kernel_of(struct gen *g, void (*body)(struct gen *g, void *of), void *of)
{
    gen_wait_for_predecessor(g);
    kb_if(g->k, kb_gt(g->k, gen_value(g, VAL_COUNT), 0)) {
        body(g, of);
    }
    kb_else { totals_of_none(g); }
    g->here = NULL; /* what it pointed to is gone */
}
