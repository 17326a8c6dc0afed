/* SPDX-License-Identifier: Apache-2.0 */
/* kept.c - outputs that some elements write: how many a block's tile keeps, and how these reach memory; for tiles of a
 * ring see kept_ring.c.
 *
 *     count    a scan of conditions alone needs no shuffles of its states: the lanes of a warp add up the counts of
 *              several stretches at a time, each in some bits of a word
 *     gather   every thread puts the values that it keeps where they belong among those of the tile, in shared memory
 *     store    neighbouring threads store neighbouring values, from the place on to which the tiles before have come
 */
#include "scan_gen.h"

bool kept_gathers(const struct items *h, int output)
{
    const struct output *o = &h->g->p->output[output];
    return o->role == OUT_KEPT && h->inside && !*o->array.field[0].name && !scan_keeps(h->g->p);
}

/* Positions after the last one of the array repeat it, unless nothing is counted there. */
static kb_val kept_by_tile(const struct items *h, int counter)
{
    kb *k = h->g->k;
    LET(beyond, kb_sub(k, kb_imm(k, TY_I32, kb_threads(k) * h->n), h->valid));
    kb_var kept = kb_var_new(k, kept_counted(h->g, counter, &h->total, TY_I32), "kept");
    if (!items_know_neighbours(h))
        kb_if(k, kb_gt(k, beyond, 0)) {
            struct items last = { .g = h->g, .segment = h->segment, .base = h->base, .valid = h->valid };
            struct point pt;
            last.own = kb_sub(k, h->valid, 1);
            items_point(&last, &pt, 0);
            const kb_val one = kb_cast(k, emit_expr(k, &pt.env, h->g->p->reduction[counter].map[0]), TY_I32);
            kb_set(k, kept, kb_sub(k, kb_get(k, kept), kb_mul(k, beyond, one)));
        }
    return kb_assume_uniform(kb_get(k, kept), KB_UNI_BLOCK); /* of the total, and an element that all threads read */
}

/* The values among those of the tile; the buffer is free. */
static void put(struct items *h, int output, const kb_val *x)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const struct output *o = &g->p->output[output];
    kb_val rank = kb_imm(k, TY_I32, 0);
    if (!h->kept.ir)
        h->kept = kb_shared_v(k, TY_U8, kb_threads(k) * h->n * kept_bytes(g->p), "kept");
    for (int i = 0; i < h->n; i++) {
        struct point pt;
        item_point(h, &pt, i);
        if (i == 0 || (h->stretch && i % h->stretch == 0))
            rank = kept_counted(g, o->counter, &h->inside[h->stretch ? i / h->stretch : 0], TY_I32);
        const kb_val keep = kb_and(k, items_inside(h, i), emit_expr(k, &pt.env, o->where));
        kb_if(k, keep) {
            kb_store(k, ptr_as(h->kept, x[i].ty), rank, x[i]);
        }
        rank = kb_add(k, rank, kb_cast(k, keep, TY_I32));
    }
}

/* ---- by bits ----------------------------------------------------------------------------------------------------- */

void kept_buffer(struct items *h)
{
    kb *k = h->g->k;
    const int kept = kb_threads(k) * h->n * scan_kept_bytes(h->g->p);
    const int stage = h->staged ? stage_bytes(h->g, h->n) : 0;
    h->kept = kb_shared_v(k, TY_U8, kept > stage ? kept : stage, "kept");
}

/* The output's part of the buffer. */
static kb_ptr part_of(const struct items *h, int output)
{
    const struct problem *p = h->g->p;
    int first = 0;
    for (int o = 0; o < output; o++)
        first += p->output[o].role == OUT_KEPT ? p->output[o].array.stride : 0;
    const kb_val bytes = kb_imm(h->g->k, TY_I32, first * kb_threads(h->g->k) * h->n);
    return ptr_as(kb_advance(h->g->k, h->kept, bytes), p->output[output].array.field[0].type);
}

static void put_marked(struct items *h, kb_var *rank, int r, int i)
{
    struct gen *g = h->g;
    kb *k = g->k;
    kb_if(k, kept_bit(h, state_first(g->p, r), i)) {
        for (int o = 0; o < g->p->noutputs; o++) {
            struct point pt;
            if (!kept_with(g->p, o, r))
                continue;
            item_point(h, &pt, i);
            kb_store(k, part_of(h, o), kb_get(k, rank[r]), output_value(&pt, o, 0));
        }
        kb_set(k, rank[r], kb_add(k, kb_get(k, rank[r]), 1));
    }
}

static void put_all_marked(struct items *h, struct run outside)
{
    struct gen *g = h->g;
    kb_var rank[KB_TUP_MAX];
    for (int r = 0; r < g->p->nreductions; r++)
        rank[r] = kb_var_new(g->k, kept_counted(g, r, h->inside, TY_I32), "rank");
    if (!h->put && kb_threads(g->k) == KB_WARP)
        kb_warp_sync(g->k); /* no barrier has been met since the transpose */
    kept_scan(h, outside, h->inside[0], rank, put_marked);
    h->put = 1;
}

/* Where segments begin at `starts`, only positions before the first of them in the tile were put with another state. */
static void put_unbegun(struct items *h, struct run outside)
{
    const struct problem *p = h->g->p;
    kb *k = h->g->k;
    const kb_tup last = h->last; /* totals are those of counters */
    kb_val begun = kb_false(k);
    for (int r = 0; r < p->nreductions; r++)
        if (!p->reduction[r].counts)
            begun = h->inside->x.e[state_first(p, r) + p->reduction[r].op->nfields - 1];
    kb_if(k, kb_and(k, outside.some, kb_not(k, kb_and(k, h->inside->some, begun)))) {
        put_all_marked(h, outside);
    }
    h->last = last;
}

void kept_tile(struct items *h, struct run outside)
{
    struct gen *g = h->g;
    h->outside = outside;
    if (!h->put)
        put_all_marked(h, outside);
    else if (!scan_counts(g->p))
        put_unbegun(h, outside);
    kb_barrier(g->k);
    for (int o = 0; o < g->p->noutputs; o++)
        if (g->p->output[o].role == OUT_KEPT) {
            const int r = g->p->output[o].counter;
            output_store_kept(g, o, part_of(h, o), kept_counted(g, r, &h->total, TY_I32),
                              kept_counted(g, r, &outside, TY_I64), h->segment->length);
        }
    kept_finish(h);
}

/* ---- by conditions ----------------------------------------------------------------------------------------------- */

void kept_put_first(struct items *h)
{
    const struct problem *p = h->g->p;
    if (h->counted && (scan_counts(p) || p->starts))
        put_all_marked(h, run_none(h->g));
    if (h->counted)
        return;
    kb_val x[SCAN_ITEMS_MAX];
    int o = 0;
    while (o < p->noutputs && !(scan_counts(p) && kept_gathers(h, o)))
        o++;
    for (int i = 0; o < p->noutputs && i < h->n; i++) {
        struct point pt;
        item_point(h, &pt, i);
        x[i] = output_value(&pt, o, 0);
    }
    if (o < p->noutputs)
        put(h, o, x);
    h->put = o < p->noutputs ? o + 1 : 0;
}

void kept_store(struct items *h, int output, const kb_val *x)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const int counter = g->p->output[output].counter;
    const bool done = h->put == output + 1;
    if (h->kept.ir && !done)
        kb_barrier(k); /* the output before has been stored */
    if (!done)
        put(h, output, x);
    if (!done || !h->met)
        kb_barrier(k);
    const kb_val before = kept_counted(g, counter, &h->outside, TY_I64);
    output_store_kept(g, output, ptr_as(h->kept, x[0].ty), kept_by_tile(h, counter), before, h->segment->length);
}

kb_tup kept_total(const struct items *h)
{
    kb *k = h->g->k;
    kb_tup x = { .n = h->g->p->nreductions };
    for (int r = 0; r < x.n; r++) {
        const kb_val before = kept_counted(h->g, r, &h->outside, h->g->p->reduction[r].op->field[0]);
        x.e[r] = kb_add(k, before, kb_cast(k, kept_by_tile(h, r), before.ty));
    }
    return x;
}

/* Inclusive sums over the lanes of a warp. */
static kb_val sum_lanes(kb *k, kb_val x)
{
    for (int d = 1; d < KB_WARP; d *= 2) {
        const kb_val left = kb_shfl_up(k, x, d);
        x = kb_select(k, kb_ge(k, kb_lane(k), d), kb_add(k, x, left), x);
    }
    return x;
}

/* The counts of scan r in stretches first, first + 1, …, `n` of them, in parts of a word. */
static kb_val count_stretches(const struct items *h, int r, int first, int n, int bits)
{
    kb *k = h->g->k;
    kb_val word = kb_imm(k, TY_U32, 0);
    for (int s = 0; s < n; s++) {
        kb_val count = kb_imm(k, TY_U32, 0);
        for (int i = 0; i < h->stretch; i++)
            count = kb_add(k, count, kb_cast(k, h->x[(first + s) * h->stretch + i].e[r], TY_U32));
        word = kb_or(k, word, kb_shl(k, count, bits * s));
    }
    return word;
}

struct run kept_count_warp(struct items *h, struct run *in_warp)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const int stretches = h->n / h->stretch, bits = KB_WARP * h->stretch < 256 ? 8 : 16, at_once = 32 / bits;
    const enum ty part = bits == 8 ? TY_U8 : TY_U16;
    struct run total = run_of(g, state_zero(g), kb_false(k));
    for (int s = 0; s < stretches; s++)
        in_warp[s] = total;
    for (int r = 0; r < g->nfields; r++)
        for (int s = 0; s < stretches; s += at_once) {
            const int n = stretches - s < at_once ? stretches - s : at_once;
            const kb_val own = count_stretches(h, r, s, n, bits), upto = sum_lanes(k, own);
            const kb_val before = kb_sub(k, upto, own), all = kb_shfl_idx(k, upto, KB_WARP - 1);
            for (int i = 0; i < n; i++) {
                kb_val *const sum = &total.x.e[r];
                in_warp[s + i].x.e[r] =
                    kb_add(k, *sum, kb_cast(k, kb_extract(k, &before, i * bits / 8, part), sum->ty));
                *sum = kb_add(k, *sum, kb_cast(k, kb_extract(k, &all, i * bits / 8, part), sum->ty));
            }
        }
    return total;
}
