/* SPDX-License-Identifier: Apache-2.0 */
/* emit_segscan_rows.c - scans of segments that lie one behind the other, by teams that wait for nobody.
 *
 *     subwarp, staged    a warp, or a block, takes as many whole rows as fit its tile: one sequence with cuts
 *     warp, block        a warp, or a block, takes a segment of any length: tile by tile with a running carry, the loads of the
 *                        next tile in flight while this one is scanned
 *
 * Tiles are arranged in lines (scan_lines.h).  The host says how many rows a tile holds and gives the reciprocal of their
 * length, so nothing divides.  Futhark's SegRed has the small and the large case for reductions; here they scan.
 */
#include "scan_lines.h"
#include "scan_tile.h"

enum { PARKS = 2 };

/* Who takes a tile together. */
struct team {
    bool block;
    int warps;
    kb_val number; /* i64, of the team in the grid; as uniform as it is wide */
    kb_val own;    /* i32: this lane's first place in its first line */
    struct park park;
};

static int lines_of(const struct gen *g) { return gen_tunable(g, TN_ITEMS); }
static int vector_of(const struct gen *g) { return gen_tunable(g, TN_VECTOR); }
static int tile_of(const struct gen *g, const struct team *t) { return t->warps * KB_WARP * lines_of(g) * vector_of(g); }

static struct team team_new(struct gen *g, bool block, bool cuts)
{
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    struct team t = { .block = block, .warps = block ? warps : 1 };
    t.number = kb_cast(k, kb_block(k), TY_I64);
    t.own = kb_mul(k, kb_lane(k), vector_of(g));
    if (block) {
        t.own = kb_add(k, t.own, kb_mul(k, kb_warp(k), KB_WARP * lines_of(g) * vector_of(g)));
        t.park = park_new(g, PARKS * KB_WARP, cuts, "warp_totals");
    } else {
        t.number = kb_add(k, kb_mul(k, t.number, warps), kb_cast(k, kb_warp(k), TY_I64));
    }
    return t;
}

/* Teams of the grid. */
static kb_val teams(struct gen *g, const struct team *t)
{
    kb *k = g->k;
    const int per_block = kb_threads(k) / KB_WARP / t->warps;
    return kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), per_block);
}

/* What comes before this warp's lines in the tile, and the tile's total; parks from `slot` on are used.  The whole team arrives. */
static struct run team_scan(struct gen *g, const struct team *t, struct run own, kb_val slot, struct run *total)
{
    struct park park = t->park;
    if (!t->block) {
        *total = own;
        return run_none(g);
    }
    for (int f = 0; f < park.x.n; f++)
        park.x.e[f] = kb_advance(g->k, park.x.e[f], slot);
    if (park.cuts)
        park.cut = kb_advance(g->k, park.cut, slot);
    return block_scan_warps(g, own, &park, total);
}

/* ---- whole rows ----------------------------------------------------------------------------------------------------------------- */

static void whole_rows(struct gen *g, bool block)
{
    kb *k = g->k;
    scan_wait_for_predecessor(g);
    const struct team t = team_new(g, block, true);
    LET(first, kb_mul(k, t.number, gen_value(g, "rows")));
    LET(segments, gen_value(g, "segments"));
    kb_if (k, kb_lt(k, first, segments)) {
        struct scan_segment all;
        segment_open(g, &all, kb_imm(k, TY_I64, 0));
        all.length = gen_value(g, "count");
        g->here = NULL; /* operators read nothing that differs between rows */
        LET(length, gen_value(g, "length"));
        LET(begin, kb_mul(k, first, length));
        LET(end, kb_mul(k, kb_min(k, kb_add(k, first, gen_value(g, "rows")), segments), length));
        const struct line_rows rows = { kb_cast(k, length, TY_I32), kb_cast(k, gen_value(g, "reciprocal"), TY_U64), first };
        struct lines l = { .g = g, .segment = &all, .n = lines_of(g), .v = vector_of(g), .own = t.own, .rows = &rows };
        LET(skew, lines_skew(g, &all, l.v, begin));
        l.base = kb_sub(k, begin, skew);
        l.from = kb_cast(k, skew, TY_I32);
        l.to = kb_name(kb_cast(k, kb_sub(k, end, l.base), TY_I32), "to");
        l.fresh = kb_imm(k, TY_BOOL, 1);
        struct lines_ahead inputs = { .declared = false };
        struct run total;
        lines_fetch(&l, &inputs);
        lines_take(&l, &inputs);
        lines_scan(&l, team_scan(g, &t, lines_total(&l), kb_imm(k, TY_I32, 0), &total));
        lines_store(&l);
        if (scan_has_totals(g->p))
            lines_store_totals(&l);
    }
}

void emit_segscan_subwarp(struct gen *g) { whole_rows(g, false); }
void emit_segscan_staged(struct gen *g) { whole_rows(g, true); }

/* ---- a segment per team ------------------------------------------------------------------------------------------------------------ */

static void tile_at(struct lines *l, const struct team *t, kb_val base)
{
    kb *k = l->g->k;
    l->base = base;
    l->from = kb_cast(k, kb_max(k, kb_neg(k, base), 0), TY_I32);
    l->to = kb_cast(k, kb_min(k, kb_sub(k, l->segment->length, base), tile_of(l->g, t)), TY_I32);
    l->fresh = kb_le(k, base, 0);
}

/* Scan a tile whose inputs have been fetched, from the carry on. */
static void tile_scan(struct lines *l, const struct team *t, kb_val slot, struct run_var carry)
{
    struct gen *g = l->g;
    kb *k = g->k;
    struct run total;
    const struct run in_tile = team_scan(g, t, lines_total(l), slot, &total);
    const struct run before = run_get(g, carry);
    lines_scan(l, run_join(g, before, in_tile));
    lines_store(l);
    if (scan_has_totals(g->p)) {
        kb_val mine;
        const kb_tup last = lines_last(l, &mine);
        const kb_val ends = kb_eq(k, kb_add(k, l->base, kb_cast(k, l->to, TY_I64)), l->segment->length);
        kb_if (k, kb_and(k, mine, ends)) {
            segment_finish(g, (struct scan_segment *)l->segment, last, kb_imm(k, TY_BOOL, 0));
        }
    }
    run_set(g, carry, run_join(g, before, total));
}

static void segment_tiles(struct gen *g, const struct team *t, struct scan_segment *s, kb_var slot)
{
    kb *k = g->k;
    struct lines l = { .g = g, .segment = s, .n = lines_of(g), .v = vector_of(g), .own = t->own }, next = l;
    struct lines_ahead ahead = { .declared = false };
    struct run_var carry = run_var_new(g, run_none(g));
    const kb_uni width = t->block ? KB_UNI_BLOCK : KB_UNI_WARP;
    const int64_t tile = tile_of(g, t);
    /* The same for the whole team: arguments, or offsets that all of its threads have read. */
    LET(skew, kb_assume_uniform(lines_skew(g, s, l.v, kb_imm(k, TY_I64, 0)), width));
    LET(length, kb_assume_uniform(s->length, width));
    LET(start, kb_neg(k, skew));
    tile_at(&l, t, start);
    lines_fetch(&l, &ahead);
    kb_for (k, base, start, length, tile) {
        tile_at(&l, t, base);
        lines_take(&l, &ahead);
        LET(behind, kb_add(k, base, tile));
        kb_if (k, kb_lt(k, behind, length)) {
            tile_at(&next, t, behind);
            lines_fetch(&next, &ahead);
        }
        tile_scan(&l, t, kb_get(k, slot), carry);
        if (t->block && kb_point(k, "alternation of parks"))
            kb_set(k, slot, kb_xor(k, kb_get(k, slot), KB_WARP));
    }
}

static void segment_each(struct gen *g, bool block)
{
    kb *k = g->k;
    scan_wait_for_predecessor(g);
    const struct team t = team_new(g, block, false);
    /* Parked totals alternate between two places: whoever writes a place has met the barrier behind which all had read it. */
    kb_var slot = kb_var_new(k, kb_imm(k, TY_I32, 0), "slot");
    kb_for (k, number, t.number, gen_value(g, "segments"), teams(g, &t)) {
        struct scan_segment s;
        segment_open(g, &s, number);
        kb_if (k, kb_gt(k, kb_assume_uniform(s.length, block ? KB_UNI_BLOCK : KB_UNI_WARP), 0)) { /* as below */
            segment_tiles(g, &t, &s, slot);
        }
        kb_else
        {
            const kb_val one = block ? kb_tid(k) : kb_lane(k);
            if (scan_has_totals(g->p))
                kb_if (k, kb_eq(k, one, 0)) {
                    segment_finish(g, &s, state_zero(g), kb_imm(k, TY_BOOL, 1));
                }
        }
    }
}

void emit_segscan_warp(struct gen *g) { segment_each(g, false); }

/* Segments that are no runs of elements are taken element by element. */
void emit_segscan_block(struct gen *g)
{
    if (scan_trailing(g->p))
        segment_each(g, true);
    else
        emit_scan_block(g);
}
