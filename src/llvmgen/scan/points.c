/* SPDX-License-Identifier: Apache-2.0 */
/* points.c - positions become points: contributions are loaded, results stored.
 *
 * Where the scanned axes are the last ones, element = first of the segment + position (from the other end for a
 * reversed scan). Otherwise the position is divided into indices along the scanned axes, the segment's number into
 * those of the kept ones; a single scanned axis needs no division.
 */
#include "ring.h"

#include <string.h>

/* ---- positions --------------------------------------------------------------------------------------------------- */

int items_distance(const struct items *h, int i)
{
    return h->stretch ? i / h->stretch * KB_WARP * h->stretch + i % h->stretch : i;
}

/* One comparison with a constant per position, so that nothing but the difference stays in a register. */
kb_val items_inside(const struct items *h, int i)
{
    if (h->whole)
        return kb_true(h->g->k);
    if (h->within) {
        kb *k = h->g->k;
        const kb_val behind = kb_gt(k, kb_sub(k, h->to, h->own), items_distance(h, i));
        return kb_and(k, behind, kb_le(k, kb_sub(k, h->from, h->own), items_distance(h, i)));
    }
    return kb_gt(h->g->k, kb_sub(h->g->k, h->valid, h->own), items_distance(h, i));
}

/* The element at position `at` of the tile, its number i, where neighbouring positions are a fixed distance apart: from
 * the thread's first one on, so that whole tiles multiply once per thread. */
static kb_val element_apart(const struct items *h, int i, kb_val at)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const kb_val stride = space_stride(g);
    kb_val own = kb_add(k, h->base, kb_cast(k, h->own, TY_I64));
    if (g->p->reverse)
        own = kb_sub(k, kb_sub(k, h->segment->length, 1), own);
    kb_val element = kb_add(k, h->segment->first, kb_mul(k, own, stride));
    for (int step = 0; h->whole && h->stepwise && step < i; step++)
        element = g->p->reverse ? kb_sub(k, element, stride) : kb_add(k, element, stride);
    if (h->whole && h->stepwise)
        return element;
    const kb_val steps = h->whole ? kb_imm(k, TY_I64, i) : kb_cast(k, kb_sub(k, at, h->own), TY_I64);
    return kb_add(k, element, kb_mul(k, g->p->reverse ? kb_neg(k, steps) : steps, stride));
}

void items_point(const struct items *h, struct point *pt, int i)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const kb_val own = kb_add(k, h->own, items_distance(h, i));
    const kb_val at = h->whole ? own : kb_min(k, own, kb_sub(k, h->valid, 1));
    const struct scan_segment *s = h->segment;
    if (scan_trailing(g->p)) {
        const kb_val last = kb_sub(k, kb_add(k, s->first, s->length), 1);
        if (g->p->reverse)
            point_init(pt, g, kb_sub(k, last, h->base), kb_neg(k, at), 0);
        else
            point_init(pt, g, kb_add(k, s->first, h->base), at, 0);
        items_set_indices(h, pt, i, at);
        return;
    }
    kb_val position = kb_add(k, h->base, kb_cast(k, at, TY_I64));
    if (g->p->reverse)
        position = kb_sub(k, kb_sub(k, s->length, 1), position);
    kb_val index[SPACE_MAX];
    memcpy(index, s->here.index, sizeof index);
    space_split(g, position, 0, g->p->rank, true, index);
    const kb_val zero = kb_imm(k, TY_I32, 0);
    if (!segments_adjacent(g->p))
        point_init(pt, g, space_linear(g, index), zero, 0);
    else
        point_init(pt, g, element_apart(h, i, at), zero, 0);
    memcpy(pt->index, index, sizeof index);
    pt->by_element = h->stepwise || scan_axes(g->p) > 1;
}

/* Does a flag begin a segment at the point, in the order of the scan? */
static kb_val flagged(struct gen *g, struct point *pt)
{
    kb *k = g->k;
    const kb_ptr flags = gen_input(g, g->p->flags);
    kb_val element = point_linear(pt);
    if (g->p->reverse) /* the mark stands on the element after; the last element is where the scan begins anyway */
        element = kb_min(k, kb_add(k, element, 1), kb_sub(k, gen_extent(g, &g->p->space[0].extent), 1));
    return kb_ne(k, kb_load(k, flags, element), kb_imm(k, flags.ty, 0));
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static void load_one_by_one(struct items *h)
{
    struct point pt;
    for (int i = 0; i < h->n; i++) {
        items_point(h, &pt, i);
        direct_load(h->g, pt.base, pt.offset, pt.plus, 1, false, &h->direct[i]);
        if (h->g->p->flags >= 0)
            h->head[i] = flagged(h->g, &pt);
    }
}

static void load_whole(struct items *h)
{
    h->whole = true;
    if (items_loads_go_down(h))
        items_load_down(h);
    else
        load_one_by_one(h);
    h->whole = false;
}

/* v := x; `first`: declare v. */
static void var_put(kb *k, kb_var *v, bool first, kb_val x, const char *name)
{
    if (first)
        *v = kb_var_new(k, x, name);
    else
        kb_set(k, *v, x);
}

void direct_keep(struct gen *g, struct direct_vars *v, const struct direct *direct, int n)
{
    const int fields = access_direct_fields(g->p);
    for (int i = 0; i < n; i++)
        for (int f = 0; f < fields; f++)
            var_put(g->k, &v->value[i][f], !v->declared, direct[i].v[f], "element");
    v->declared = true;
}

void direct_take(struct gen *g, const struct direct_vars *v, struct direct *direct, int n)
{
    const int fields = access_direct_fields(g->p);
    for (int i = 0; i < n; i++)
        for (int f = 0; f < fields; f++)
            direct[i].v[f] = kb_get(g->k, v->value[i][f]);
}

void turn_values(const struct gen *g, kb_val *x, int n)
{
    for (int i = 0; g->p->reverse && i < n / 2; i++) {
        const kb_val t = x[i];
        x[i] = x[n - 1 - i];
        x[n - 1 - i] = t;
    }
}

/* Where the tile begins in an array of bytes. */
static kb_ptr tile_bytes(const struct items *h, kb_ptr array)
{
    return kb_advance(h->g->k, array, kb_add(h->g->k, h->segment->first, h->base));
}

/* What has been loaded, in variables. */
struct loaded {
    struct direct_vars direct;
    kb_var head[SCAN_ITEMS_MAX], word[SCAN_ITEMS_MAX / 4];
};

static void loaded_keep(struct items *h, struct loaded *v)
{
    kb *k = h->g->k;
    const bool first = !v->direct.declared;
    for (int w = 0; h->packed && w < h->n / 4; w++)
        var_put(k, &v->word[w], first, h->word[w], "word");
    direct_keep(h->g, &v->direct, h->direct, h->n);
    for (int i = 0; h->g->p->flags >= 0 && i < h->n; i++)
        var_put(k, &v->head[i], first, h->head[i], "head");
}

static void loaded_take(struct items *h, const struct loaded *v)
{
    kb *k = h->g->k;
    direct_take(h->g, &v->direct, h->direct, h->n);
    for (int i = 0; h->g->p->flags >= 0 && i < h->n; i++)
        h->head[i] = kb_get(k, v->head[i]);
    for (int w = 0; h->packed && w < h->n / 4; w++)
        h->word[w] = kb_get(k, v->word[w]);
}

static void pack_words(struct items *h)
{
    for (int w = 0; h->packed && w < h->n / 4; w++)
        h->word[w] = packed_word(h, packed_slot(h->g->p), w);
}

/* A full tile takes the fast way, the last one the other; the values meet in variables. */
static void load_two_ways(struct items *h)
{
    struct gen *g = h->g;
    struct loaded v = { .direct.declared = false };
    kb_if(g->k, h->full) {
        if (h->staged)
            stage_load(h);
        else
            load_whole(h);
        pack_words(h);
        loaded_keep(h, &v);
    }
    kb_else
    {
        load_one_by_one(h);
        if (h->packed && g->c->aligned)
            packed_load_part(h, tile_bytes(h, gen_input(g, scan_summed_bytes(g->p))));
        else
            pack_words(h);
        loaded_keep(h, &v);
    }
    loaded_take(h, &v);
}

/* Rows begin at `next` and every `period` after it. */
static void row_heads(struct items *h)
{
    kb *k = h->g->k;
    kb_val next = h->next;
    for (int i = 0; i <= h->n; i++) {
        const kb_val begins = kb_eq(k, next, i);
        if (i < h->n)
            h->head[i] = begins;
        if (i > 0)
            h->tail[i - 1] = begins;
        next = kb_select(k, begins, kb_add(k, next, h->period), next);
    }
}

void items_load(struct items *h)
{
    struct gen *g = h->g;
    kb *k = g->k;
    kb_val edge[PROBLEM_ARGS_MAX];
    const bool beside = beside_fits(h);
    for (int i = 0; i < h->n && !h->marked; i++)
        h->head[i] = kb_false(k);
    if (beside)
        beside_load(h, edge);
    if (h->staged || h->apart)
        load_two_ways(h);
    else
        load_one_by_one(h);
    if (h->rows)
        row_heads(h);
    if (beside)
        beside_take(h, edge);
    items_contribute(h);
}

/* The point with what the thread has loaded. */
static void loaded_point(const struct items *h, struct point *pt, int i)
{
    items_point(h, pt, i);
    pt->direct = &h->direct[i + h->beside];
    if (items_know_neighbours(h)) {
        const int earlier = i + h->beside, later = h->n - 1 - i + h->beside;
        pt->before = h->g->p->reverse ? later : earlier;
        pt->after = h->g->p->reverse ? earlier : later;
        pt->towards = h->g->p->reverse ? -1 : 1;
    }
    if ((h->counted || (h->ring && scan_ring_keeps(h->g->p))) && h->g->p->rank == 1 && !h->g->p->reverse)
        point_is_near(pt, 0, kb_add(h->g->k, h->base, kb_cast(h->g->k, h->own, TY_I64)), i);
}

/* Where neighbours come from registers, conditions after the last position mean nothing. */
static void count_inside(const struct items *h, int i, kb_tup *x)
{
    kb *k = h->g->k;
    for (int r = 0; items_know_neighbours(h) && r < h->g->p->nreductions; r++) {
        kb_val *count = &x->e[state_first(h->g->p, r)];
        if (h->g->p->reduction[r].counts)
            *count = kb_cast(k, kb_and(k, items_inside(h, i), kb_ne(k, *count, kb_imm(k, count->ty, 0))), count->ty);
    }
}

void items_contribute(struct items *h)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const bool heads = h->rows || h->marked || g->p->flags >= 0;
    if (h->packed) {
        packed_contribute(h);
        return;
    }
    for (int i = 0; i < h->n; i++) {
        struct point pt;
        loaded_point(h, &pt, i);
        if (i == 0 && g->p->flags >= 0)
            h->head[i] = kb_or(k, h->head[i], h->is_start);
        h->x[i] = point_map(&pt);
        if (!h->ring && !h->counted)
            count_inside(h, i, &h->x[i]);
        if (i == 0 || heads)
            h->x[i] = state_with_init(g, i == 0 ? kb_or(k, h->head[i], h->is_start) : h->head[i], h->x[i]);
    }
    if (h->counted || (h->ring && scan_ring_keeps(g->p)))
        kept_mark(h);
}

/* ---- scanning and storing ---------------------------------------------------------------------------------------- */

static struct run stretch_total(struct items *h, int first, int n)
{
    if (h->packed)
        return packed_total(h, first, n);
    struct run r = run_of(h->g, h->x[first], h->head[first]);
    for (int i = first + 1; i < first + n; i++)
        r = run_join(h->g, r, run_of(h->g, h->x[i], h->head[i]));
    return r;
}

struct run items_total(struct items *h) { return stretch_total(h, 0, h->n); }

void items_arrange(struct items *h)
{
    kb *k = h->g->k;
    h->own = kb_mul(k, kb_tid(k), h->n);
    if (!gen_tunable(h->g, TN_STRIPED))
        return;
    h->stretch = gen_tunable(h->g, TN_VECTOR);
    h->own = kb_add(k, kb_mul(k, kb_warp(k), KB_WARP * h->n), kb_mul(k, kb_lane(k), h->stretch));
}

/* Of a warp with striped positions, the same in all lanes. */
static struct run warp_total(struct items *h, struct run *in_warp)
{
    if (scan_counts(h->g->p))
        return kept_count_warp(h, in_warp);
    struct run before = run_none(h->g);
    for (int s = 0; s < h->n / h->stretch; s++) {
        struct run total;
        in_warp[s] = run_join(h->g, before,
                              warp_scan_exclusive(h->g, stretch_total(h, s * h->stretch, h->stretch), false, &total));
        before = run_join(h->g, before, total);
    }
    return before;
}

void items_block_total(struct items *h, const struct aggregates *aggregates, struct run *in_tile, struct run *total)
{
    struct gen *g = h->g;
    if (h->stretch) {
        const struct run before_warp = block_scan_warps(g, warp_total(h, in_tile), aggregates, total);
        for (int s = 0; s < h->n / h->stretch; s++)
            in_tile[s] = run_join(g, before_warp, in_tile[s]);
    } else {
        in_tile[0] = block_scan(g, h->counted ? kept_run(h) : items_total(h), aggregates, total);
    }
    h->inside = in_tile;
    h->total = *total;
}

void items_scan(struct items *h, struct run outside, const struct run *inside)
{
    struct gen *g = h->g;
    kb *k = g->k;
    struct run before = h->outside = outside;
    for (int i = 0; i < h->n; i++) {
        if (inside && (i == 0 || (h->stretch && i % h->stretch == 0)))
            before = run_join(g, outside, inside[h->stretch ? i / h->stretch : 0]);
        if (h->packed) {
            const int n = h->stretch ? h->stretch : h->n;
            if (i % n == 0)
                packed_scan(h, i, n, before);
            continue;
        }
        const struct run upto = run_join(g, before, run_of(g, h->x[i], h->head[i]));
        h->upto[i] = h->state[i] = upto.x;
        if (g->p->exclusive) {
            const kb_val begins = kb_or(k, h->head[i], kb_not(k, before.some));
            h->state[i] = kb_select(k, begins, state_start(g), before.x);
        }
        before = upto;
    }
}

void item_point(void *of, struct point *pt, int i)
{
    const struct items *h = of;
    loaded_point(h, pt, i);
    pt->state = &h->state[i];
}

static kb_val item_inside(void *of, int i) { return items_inside(of, i); }

static enum store_way staged_way(void *of, int output)
{
    const struct items *h = of;
    if (kept_gathers(h, output))
        return STORE_TOGETHER;
    if (h->turn && scan_turns_output(h->g->p, output))
        return STORE_KEPT;
    if (items_stores_go_down(h, output))
        return STORE_TOGETHER;
    if (!h->staged || !access_output_vector(h->g->p, output))
        return STORE_ALONE;
    return items_store_words(h, output) ? STORE_PACKED : STORE_TOGETHER;
}

static void staged_store(void *of, int output, int first, kb_val *x)
{
    struct items *h = of;
    kb *k = h->g->k;
    const kb_ptr out = gen_output(h->g, output);
    if (items_stores_go_down(h, output)) {
        items_store_down(h, out, x);
        return;
    }
    if (kept_gathers(h, output)) {
        kept_store(h, output, x);
        return;
    }
    kb_if(k, h->full) {
        stage_store(h, output, x);
    }
    kb_else
    {
        if (!x)
            packed_store_part(h, tile_bytes(h, out));
        for (int i = first; x && i < h->n; i++)
            kb_if(k, items_inside(h, i)) {
                struct point pt;
                items_point(h, &pt, i);
                kb_store(k, out, point_linear(&pt), x[i]);
            }
    }
}

struct places items_places(struct items *h)
{
    return (struct places){ .g = h->g,
                            .of = h,
                            .n = h->n,
                            .at_once = h->n,
                            .point = item_point,
                            .inside = item_inside,
                            .way = staged_way,
                            .store = staged_store,
                            .keep = turn_keep };
}

void items_store(struct items *h)
{
    kb *k = h->g->k;
    const struct places places = items_places(h);
    if (!h->apart || (h->turn && !scan_turns_inputs(h->g->p))) {
        places_store(&places);
        return;
    }
    kb_if(k, h->full) {
        h->whole = true;
        places_store(&places);
        h->whole = false;
    }
    kb_else { places_store(&places); }
}

kb_tup items_last(const struct items *h)
{
    kb *k = h->g->k;
    kb_tup x = h->upto[0];
    for (int i = 1; i < h->n; i++)
        x = kb_select(k, items_inside(h, i), h->upto[i], x);
    return x;
}

kb_val items_have_last(const struct items *h)
{
    kb *k = h->g->k;
    const kb_val left = kb_sub(k, h->segment->length, h->base);
    if (!h->stretch) {
        const kb_val beyond = kb_sub(k, left, kb_cast(k, h->own, TY_I64));
        const kb_val own = kb_and(k, kb_gt(k, beyond, 0), kb_le(k, beyond, h->n));
        /* A tile that leads has fewer positions than its threads. */
        return h->ring && scan_leads(h->g->p) ? kb_and(k, own, kb_le(k, left, kb_cast(k, h->valid, TY_I64))) : own;
    }
    const kb_val last = kb_sub(k, h->valid, 1); /* the tile's; the segment's where no more than the tile is left */
    kb_val found = kb_false(k);
    for (int i = 0; i < h->n; i += h->stretch) {
        const kb_val beyond = kb_sub(k, kb_sub(k, last, h->own), items_distance(h, i));
        found = kb_or(k, found, kb_and(k, kb_ge(k, beyond, 0), kb_lt(k, beyond, h->stretch)));
    }
    return kb_and(k, found, kb_eq(k, left, kb_cast(k, h->valid, TY_I64)));
}

void items_finish(const struct items *h)
{
    struct gen *g = h->g;
    if (!scan_has_totals(g->p))
        return;
    kb_if(g->k, items_have_last(h)) {
        segment_finish(g, h->segment,
                       h->inside && scan_counts(g->p) && !scan_keeps(g->p) ? kept_total(h) : items_last(h),
                       kb_false(g->k));
    }
}
