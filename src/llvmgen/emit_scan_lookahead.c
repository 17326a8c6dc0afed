/* SPDX-License-Identifier: Apache-2.0 */
/* emit_scan_lookahead.c - scans of large arrays and of long rows by blocks that stay: a pipeline of bulk copies, and
 * prefixes from totals alone.
 *
 *     producer      one warp: draws tickets and starts the copies of their tiles into a ring of stages
 *     compute       a team of warps: combine tile i + 1 and publish its total, then scan tile i in place
 *     look-ahead    one warp: keeps the combination of all tiles before the block's latest one, and adds what others do
 *     storer        one warp: starts the copies of scanned tiles to memory, and frees their stages
 *
 * Against look-back there is no chain: a block never waits for another one's prefix, only for totals, which every block
 * publishes as soon as a tile has arrived, one tile ahead of its own scan.  Tiles of many vectors keep the memory busy
 * with few words exchanged.
 *
 * Rows have tiles of their own, and what the look-ahead keeps is what comes before in the row: it begins anew with
 * each.
 *
 * Note [Fixed windows]
 * Totals are combined in windows of the same tiles whoever does it, the last one partly: so the tree depends on sizes
 * and tunables alone, whichever block draws which tile, and results are the same on every run.
 *
 * Note [Progress]
 * Of all tiles that are not published, the first one's block can only be waiting for the prefix of an earlier tile,
 * whose predecessors have all been published.  Tickets are drawn by running blocks, so nothing is assumed about how
 * many run at once.
 *
 * Words, tags and epochs are those of look-back (lookback.c); a block goes on drawing until the tickets are used up, so
 * the last one is number tiles + blocks - 1 and starts the next epoch.
 */
#include "lookback.h"
#include "scan_ring.h"

enum { TEAM = 1 /* its barrier */ };

/* ---- the producer
 * ----------------------------------------------------------------------------------------------------------- */

/* Lane 0 draws; the word in all lanes. */
static kb_val draw(struct gen *g)
{
    kb *k = g->k;
    const kb_ptr counter = gen_buffer(g, "ticket", TY_U64);
    const kb_val zero = kb_imm(k, TY_I32, 0);
    kb_var word = kb_var_new(k, kb_imm(k, TY_U64, 0), "drawn");
    kb_if(k, kb_eq(k, kb_lane(k), 0)) {
        const kb_val drawn = kb_atomic(k, KB_RMW_ADD, counter, zero, kb_imm(k, TY_U64, 1));
        const kb_val last = kb_sub(k, kb_add(k, gen_value(g, "tiles"), kb_blocks(k)), 1);
        kb_if(k, kb_eq(k, kb_cast(k, drawn, TY_I32), last)) {
            if (kb_point(k, "next epoch"))
                kb_store_relaxed(k, counter, zero, kb_shl(k, kb_add(k, kb_shr(k, drawn, 32), 1), 32));
        }
        kb_set(k, word, drawn);
    }
    return kb_shfl_idx(k, kb_get(k, word), zero);
}

static void produce(struct scan_ring *r)
{
    struct gen *g = r->g;
    kb *k = g->k;
    kb_section(k, "producer");
    const struct scan_ring_place at = scan_ring_begin(r, 1, KB_UNI_WARP);
    kb_loop(k) {
        LET(stage, kb_get(k, at.stage));
        kb_mbar_wait(k, r->empty, stage, kb_get(k, at.parity));
        LET(word, draw(g));
        kb_if(k, kb_eq(k, kb_lane(k), 0)) {
            kb_store(k, r->ticket, stage, word);
        }
        const struct scan_ring_tile t = scan_ring_tile(r, word, stage);
        kb_if(k, t.exists) {
            scan_ring_fill_rest(r, &t);
        }
        kb_mbar_arrive(k, r->numbered, stage);
        kb_if(k, kb_eq(k, kb_lane(k), 0)) {
            kb_if(k, t.exists) {
                scan_ring_fill(r, &t);
            }
        }
        kb_break_if(k, kb_not(k, t.exists));
        scan_ring_advance(r, at);
    }
}

/* ---- the look-ahead
 * ---------------------------------------------------------------------------------------------------------- */

/* Consecutive tiles that a lane takes of a window: fewer where states are large, since all of them are in flight at
 * once. */
static int tiles_per_lane(const struct gen *g) { return scan_state_words(g->p, NULL) <= 4 ? 4 : 1; }

/* The combination of `count` tiles from `first` on, at most a window, in order, in lane 0.  All lanes. */
static kb_tup window_total(struct gen *g, struct ticket t, kb_val first, kb_val count)
{
    kb *k = g->k;
    enum { EACH_MAX = 4 };
    const int each = tiles_per_lane(g);
    LET(own, kb_mul(k, kb_lane(k), each));
    kb_tvar seen[EACH_MAX];
    for (int i = 0; i < each; i++)
        seen[i] = kb_var_new(k, state_zero(g), "seen");
    kb_loop(k) {
        kb_val all = kb_imm(k, TY_BOOL, 1);
        for (int i = 0; i < each; i++) {
            const kb_val tile = kb_add(k, first, kb_min(k, kb_add(k, own, i), kb_sub(k, count, 1)));
            kb_tup x;
            all = kb_and(k, all, tile_look(g, t, tile, &x));
            kb_set(k, seen[i], x);
        }
        kb_break_if(k, all);
        kb_backoff(k, 0); /* one warp of many: sleeping would only add to the latency */
    }
    kb_tvar x = kb_var_new(k, kb_get(k, seen[0]), "window");
    for (int i = 1; i < each; i++)
        kb_if(k, kb_lt(k, kb_add(k, own, i), count)) {
            kb_set(k, x, state_combine(g, kb_get(k, x), kb_get(k, seen[i])));
        }
    const kb_val lanes = kb_div(k, kb_add(k, count, each - 1), each);
    return warp_reduce(g, kb_get(k, x), KB_WARP, filled_first(lanes));
}

/* The prefix of a tile in its segment, in lane 0: `whole` are the segment's windows before tile `from`, which advances
 * to the beginning of the one that holds the tile. */
static struct run prefix_of(struct gen *g, const struct scan_ring_tile *tile, kb_var from, struct run_var whole)
{
    kb *k = g->k;
    const struct ticket t = tile->ticket;
    const int window = KB_WARP * tiles_per_lane(g);
    const kb_val all = kb_imm(k, TY_I32, window), never = kb_imm(k, TY_BOOL, 0);
    kb_val begin = kb_mul(k, kb_div(k, tile->index, window), window);
    if (scan_keeps(g->p)) {
        LET(segment, kb_sub(k, t.tile, tile->index));
        begin = kb_name(kb_add(k, segment, begin), "begin");
        kb_if(k, kb_lt(k, kb_get(k, from), segment)) {
            kb_set(k, from, segment);
            run_set(g, whole, run_none(g));
        }
    }
    kb_for(k, first, kb_get(k, from), begin, window) {
        run_set(g, whole, run_join(g, run_get(g, whole), run_of(g, window_total(g, t, first, all), never)));
    }
    kb_set(k, from, begin);
    LET(rest, kb_sub(k, t.tile, begin));
    struct run_var prefix = run_var_new(g, run_get(g, whole));
    kb_if(k, kb_gt(k, rest, 0)) {
        run_set(g, prefix, run_join(g, run_get(g, whole), run_of(g, window_total(g, t, begin, rest), never)));
    }
    return run_get(g, prefix);
}

static void look_ahead(struct scan_ring *r)
{
    struct gen *g = r->g;
    kb *k = g->k;
    kb_section(k, "lookahead");
    const struct scan_ring_place at = scan_ring_begin(r, 0, KB_UNI_WARP);
    kb_var from = kb_var_new(k, kb_imm(k, TY_I32, 0), "from");
    from.uni = KB_UNI_WARP;
    struct run_var whole = run_var_new(g, run_none(g));
    kb_loop(k) {
        LET(stage, kb_get(k, at.stage));
        kb_mbar_wait(k, r->numbered, stage, kb_get(k, at.parity));
        struct scan_ring_tile t = scan_ring_tile(r, kb_load(k, r->ticket, stage), stage);
        kb_break_if(k, kb_not(k, t.exists));
        scan_ring_enter(r, &t);
        const struct run prefix = prefix_of(g, &t, from, whole);
        kb_if(k, kb_eq(k, kb_lane(k), 0)) {
            kb_store(k, r->prefix, stage, prefix.x);
        }
        kb_mbar_arrive(k, r->prefixed, stage);
        scan_ring_advance(r, at);
    }
}

/* ---- the storer
 * ------------------------------------------------------------------------------------------------------------- */

static void store(struct scan_ring *r)
{
    kb *k = r->g->k;
    kb_section(k, "storer");
    const struct scan_ring_place at = scan_ring_begin(r, 0, KB_UNI_WARP);
    kb_loop(k) {
        LET(stage, kb_get(k, at.stage));
        kb_mbar_wait(k, r->numbered, stage, kb_get(k, at.parity));
        const struct scan_ring_tile t = scan_ring_tile(r, kb_load(k, r->ticket, stage), stage);
        kb_break_if(k, kb_not(k, t.exists));
        kb_mbar_wait(k, r->scanned, stage, kb_get(k, at.parity));
        scan_ring_drain(r, &t);
        kb_bulk_wait(k, 0, true);
        kb_mbar_arrive(k, r->empty, stage);
        scan_ring_advance(r, at);
    }
}

/* ---- the team that computes
 * --------------------------------------------------------------------------------------------------- */

/* A tile between its two passes. */
struct pending {
    kb_var there;          /* bool, block-uniform */
    kb_var word;           /* u64: its ticket */
    struct run_var before; /* what comes before the thread within it */
};

static void combine(struct scan_ring *r, struct scan_ring_tile *t, const struct park *park, struct run_var before)
{
    struct gen *g = r->g;
    kb *k = g->k;
    struct held *h = &(struct held){ .g = g };
    struct run in_tile[SCAN_HELD_MAX], total;
    kb_section(k, "upsweep");
    scan_ring_load(r, t, h);
    held_contribute(h);
    held_block_total(h, park, in_tile, &total);
    kb_if(k, kb_eq(k, kb_tid(k), 0)) {
        tile_publish(g, t->ticket, total.x);
    }
    run_set(g, before, in_tile[0]);
}

static void scan(struct scan_ring *r, struct scan_ring_tile *t, kb_val parity, struct run in_tile)
{
    struct gen *g = r->g;
    kb *k = g->k;
    struct held *h = &(struct held){ .g = g };
    kb_section(k, "downsweep");
    scan_ring_load(r, t, h);
    held_contribute(h);
    kb_if(k, kb_not(k, h->full)) {
        kb_barrier(k); /* threads without positions have read the last one, which is overwritten now */
    }
    kb_mbar_wait(k, r->prefixed, t->stage, parity);
    const struct run before = { kb_gt(k, t->index, 0), kb_imm(k, TY_BOOL, 0), kb_load(k, r->prefix, t->stage) };
    held_scan(h, before, &in_tile);
    scan_ring_store(r, t, h);
    kb_mbar_arrive(k, r->scanned, t->stage);
    if (scan_has_totals(g->p))
        kb_if(k, held_has_last(h)) {
            segment_finish(g, h->segment, held_last(h), kb_imm(k, TY_BOOL, 0));
        }
}

/* Where the warps of this tile park their totals: two places in turn, because a warp may be one tile ahead of another.
 */
static struct park turn_park(struct gen *g, const struct park *both, kb_var second)
{
    kb *k = g->k;
    struct park p = *both;
    const kb_val skip = kb_mul(k, kb_get(k, second), KB_WARP);
    for (int f = 0; f < p.x.n; f++)
        p.x.e[f] = kb_advance(k, p.x.e[f], skip);
    kb_set(k, second, kb_xor(k, kb_get(k, second), 1));
    return p;
}

static void compute(struct scan_ring *r)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const struct park parks = park_new(g, 2 * KB_WARP, false, "warp_totals");
    const struct scan_ring_place in = scan_ring_begin(r, 0, KB_UNI_BLOCK), out = scan_ring_begin(r, 0, KB_UNI_BLOCK);
    struct pending p = { kb_var_new(k, kb_imm(k, TY_BOOL, 0), "pending"),
                         kb_var_new(k, kb_imm(k, TY_U64, 0), "pending_ticket"), run_var_new(g, run_none(g)) };
    kb_var second = kb_var_new(k, kb_imm(k, TY_I32, 0), "second");
    p.there.uni = p.word.uni = second.uni = KB_UNI_BLOCK;
    kb_loop(k) {
        LET(stage, kb_get(k, in.stage));
        kb_mbar_wait(k, r->numbered, stage, kb_get(k, in.parity));
        /* One word that all threads read. */
        const kb_val word = kb_assume_uniform(kb_load(k, r->ticket, stage), KB_UNI_BLOCK);
        struct scan_ring_tile next = scan_ring_tile(r, word, stage);
        struct scan_ring_tile last = scan_ring_tile(r, kb_get(k, p.word), kb_get(k, out.stage));
        const struct run in_tile = run_get(g, p.before);
        kb_if(k, next.exists) {
            const struct park park = turn_park(g, &parks, second);
            kb_mbar_wait(k, r->full, stage, kb_get(k, in.parity));
            combine(r, &next, &park, p.before);
        }
        kb_if(k, kb_get(k, p.there)) {
            scan(r, &last, kb_get(k, out.parity), in_tile);
            scan_ring_advance(r, out);
        }
        kb_break_if(k, kb_not(k, next.exists));
        kb_set(k, p.there, kb_imm(k, TY_BOOL, 1));
        kb_set(k, p.word, word);
        scan_ring_advance(r, in);
    }
}

void emit_scan_lookahead(struct gen *g)
{
    kb *k = g->k;
    struct scan_ring r;
    const int warps = gen_tunable(g, TN_THREADS) / KB_WARP;
    scan_ring_new(g, &r);
    scan_wait_for_predecessor(g);
    kb_if(k, kb_gt(k, gen_value(g, "count"), 0)) {
        kb_barrier(k); /* the mbarriers are ready */
        kb_team(k, warps, TEAM) { compute(&r); }
        kb_else
        {
            kb_if(k, kb_eq(k, kb_warp(k), warps)) {
                produce(&r);
            }
            kb_if(k, kb_eq(k, kb_warp(k), warps + 1)) {
                look_ahead(&r);
            }
            kb_if(k, kb_eq(k, kb_warp(k), warps + 2)) {
                store(&r);
            }
        }
        g->here = NULL;
    }
    kb_else { tile_none(g); }
}
