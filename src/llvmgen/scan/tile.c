/* SPDX-License-Identifier: Apache-2.0 */
/* tile.c - see tile.h.
 *
 * Segments of equal length lie one after the other, and tiles take no notice of where they begin: within a tile a
 * beginning is a cut, found by index arithmetic (Clausen, "Regular Segmented Single-pass Scan in Futhark"): one 64-bit
 * remainder per tile, one 32-bit remainder per thread, additions per element.  Flags cut in the same way.
 */
#include "tile.h"
#include "llvmgen/shared/lookback.h"

#include <string.h>

static int per_thread(const struct gen *g) { return gen_tunable(g, TN_ITEMS) * gen_tunable(g, TN_VECTOR); }
int tile_size(const struct gen *g) { return kb_threads(g->k) * per_thread(g); }

static bool rows(const struct gen *g) { return scan_keeps(g->p); }

bool tile_cuts(const struct gen *g) { return rows(g) || g->p->flags >= 0; }

/* Where segments begin within the tile, as seen by a thread; true when one begins with the tile. */
static kb_val find_rows(struct gen *g, struct items *h, int tile)
{
    kb *k = g->k;
    h->rows = true;
    LET(length, gen_value(g, VAL_LENGTH));
    LET(into, kb_rem(k, h->base, length));
    LET(starts, kb_eq(k, into, 0));
    LET(rest, kb_select(k, starts, into, kb_sub(k, length, into)));
    LET(boundary, kb_cast(k, kb_min(k, rest, tile + 1), TY_I32)); /* tile: right after it; more: not here */
    h->period = kb_name(kb_cast(k, kb_min(k, length, tile + 1), TY_I32), "period");
    LET(beyond, kb_sub(k, h->own, boundary));
    LET(phase, kb_rem(k, kb_max(k, beyond, 0), h->period));
    LET(wait, kb_select(k, kb_eq(k, phase, 0), phase, kb_sub(k, h->period, phase)));
    h->next = kb_select(k, kb_lt(k, beyond, 0), kb_neg(k, beyond), wait);
    return starts;
}

/* The totals of the rows that end within the tile. */
static void store_totals(struct items *h)
{
    kb *k = h->g->k;
    for (int i = 0; i < h->n; i++)
        kb_if(k, kb_and(k, h->tail[i], items_inside(h, i))) {
            struct point pt;
            items_point(h, &pt, i);
            pt.state = &h->upto[i];
            outputs_store_total(&pt);
        }
}

/* Where segments begin within tiles: nowhere, by equal lengths, by flags, by marks. */
typedef void mark_fn(struct gen *g, struct items *h);

static struct aggregates totals_of_warps(struct items *h, bool cuts)
{
    struct gen *g = h->g;
    enum ty field[KB_TUP_MAX];
    memcpy(field, g->field, sizeof field);
    if (h->counted)
        kept_narrow(g, true);
    const struct aggregates totals = aggregates_new(g, KB_WARP, cuts, "warp_totals");
    memcpy(g->field, field, sizeof field);
    if (h->counted)
        kept_buffer(h);
    return totals;
}

static void find_segments(struct tile *t, bool equal, mark_fn *mark)
{
    struct items *h = &t->items;
    struct gen *g = h->g;
    t->alone = kb_eq(g->k, t->index, 0);
    if (equal)
        t->alone = kb_or(g->k, t->alone, find_rows(g, h, tile_size(g)));
    if (rows(g) && !mark)
        items_know_indices(h, !equal);
    h->marked = h->within = mark != NULL;
    if (mark)
        mark(g, h);
}

/* Tile `index` of t->segment; `equal`: rows begin within tiles.  The block's ticket where *ticket is asked for. */
static void load(struct gen *g, struct tile *t, kb_val number, kb_val index, bool equal, mark_fn *mark,
                 struct ticket *ticket)
{
    kb *k = g->k;
    struct items *h = &t->items;
    const int tile = tile_size(g);
    *h = (struct items){
        .g = g, .segment = &t->segment, .n = per_thread(g), .staged = gen_tunable(g, TN_SMEM_TRANSPOSE)
    };
    t->number = number;
    t->index = index;
    h->counted = scan_marks_kept(g->p, g->c);
    if (ticket && !h->counted)
        *ticket = ticket_of_block(g, ticket_fetch(g));
    t->aggregates = totals_of_warps(h, equal || mark || g->p->flags >= 0);
    if (h->staged && !gen_tunable(g, TN_STRIPED))
        h->stage = stage_new(g, h->n, h->kept);
    h->base = kb_name(kb_mul(k, kb_cast(k, index, TY_I64), tile), "base");
    items_arrange(h);
    h->packed = h->stretch && !equal && !mark && packed_fits(g->p, h->n, h->stretch);
    h->valid = kb_cast(k, kb_min(k, kb_sub(k, t->segment.length, h->base), tile), TY_I32);
    h->full = kb_eq(k, h->valid, tile);
    h->is_start = kb_and(k, kb_eq(k, index, 0), kb_thread0(k));
    find_segments(t, equal, mark);
    kb_section(k, "load");
    const bool late = ticket && h->counted; /* the epoch sets out with the elements; others gained nothing by it */
    const kb_val fetched = late ? ticket_fetch(g) : t->number;
    items_load(h);
    if (late)
        *ticket = ticket_of_block(g, fetched);
    kb_section(k, "upsweep");
    items_block_total(h, &t->aggregates, t->in_tile, &t->total);
    if (h->counted)
        t->total.x = kept_widen(g, t->total.x);
}

void tile_load(struct gen *g, struct tile *t, kb_val number)
{
    segment_open_all(g, &t->segment);
    load(g, t, number, number, rows(g), NULL, NULL);
}

void tile_load_own(struct gen *g, struct tile *t, struct ticket *ticket)
{
    kb *k = g->k;
    LET(number, kb_block(k));
    if (!rows(g)) {
        segment_open_all(g, &t->segment);
        load(g, t, number, number, false, NULL, ticket);
        return;
    }
    const kb_val each = gen_value(g, VAL_PER_SEGMENT);
    LET(row, kb_div(k, kb_cast(k, number, TY_U32), kb_cast(k, each, TY_U32))); /* once per block */
    segment_open(g, &t->segment, kb_cast(k, row, TY_I64));
    load(g, t, number, kb_name(kb_sub(k, number, kb_mul(k, kb_cast(k, row, TY_I32), each)), "index"), false, NULL,
         ticket);
}

void tile_load_marked(struct gen *g, struct tile *t, kb_val number, mark_fn *mark)
{
    segment_open_all(g, &t->segment);
    load(g, t, number, number, false, mark, NULL);
}

void tile_finish(struct gen *g, struct tile *t, struct run before)
{
    kb *k = g->k;
    struct items *h = &t->items;
    kb_section(k, "downsweep");
    h->stage_used &= kb_threads(k) == KB_WARP; /* a single warp has met no barrier */
    if (h->counted) {
        kept_tile(h, before);
        return;
    }
    items_scan(h, before, t->in_tile);
    items_store(h);
    if (!h->rows)
        items_finish(h);
    else if (scan_has_totals(g->p))
        store_totals(h);
}

struct run tile_prefix(struct gen *g, struct tile *t, struct ticket ticket)
{
    kb *k = g->k;
    kb_tvar prefix = kb_var_new(k, state_zero(g), "tile_prefix");
    kb_if(k, kb_eq(k, kb_warp(k), 0)) {
        kb_set(k, prefix, lookback(g, ticket, t->total, t->alone).x);
    }
    kept_put_first(&t->items);
    const kb_tup found = kb_get(k, prefix);
    const kb_arr shared = state_shared(g, 1, "tile_prefix");
    kb_if(k, kb_thread0(k)) {
        kb_store(k, shared, 0, found);
    }
    kb_barrier(k);
    t->items.stage_used = false;
    t->items.met = true;
    return (struct run){ kb_not(k, t->alone), kb_false(k), kb_load(k, shared, 0) };
}
