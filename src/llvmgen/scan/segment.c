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
