/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c - scans of large arrays and of long rows by blocks that stay: a pipeline of bulk copies, and
 * prefixes from totals alone.
 *
 *     producer      one warp: takes tickets and starts the copies of their tiles into a ring of stages
 *     markers       where segments begin anywhere, some warps: a bitmap of where they do in the tile
 *     upsweep       some warps: combine a tile as soon as it is there, by parts, and publish its total
 *     look-ahead    one warp: keeps the combination of the tiles before the block's latest one, and adds what others
 *                   have published
 *     look-back     in its place for a few columns, some warps (columns.c)
 *     downsweep     a team of warps: scan the tile in place, every warp its part; of outputs that some elements write,
 *                   put the values that are kept side by side (kept_ring.c)
 *     storer        one warp: starts the copies of scanned tiles to memory, and frees their stages
 *
 * Unlike look-back, there is no chain: a block never waits for another block's prefix, only for totals.  And no total
 * waits for another block: different warps combine and scan, so a block whose prefix is late still publishes what others
 * need.  Tiles of many vectors keep the memory busy, with few words exchanged.
 *
 * Rows have tiles of their own, and what the look-ahead keeps is what comes before in the row: it begins anew with
 * each.  A few columns are scanned side by side (columns.c): roles and barriers are the same.
 *
 * Note [Progress]
 * Take the first tile that is not published.  Its block can only wait for a stage, hence for the prefix of an earlier
 * tile, whose predecessors have all been published.  Running blocks take the tickets, so nothing is assumed about how
 * many blocks run at once.
 *
 * Words, tags and epochs are those of tile_state.c; a block goes on taking tickets until they are used up, so
 * the last one is number tiles + blocks - 1 and starts the next epoch.
 */
#include "ahead.h"
#include "llvmgen/segscan/few_columns.h"
#include "ring.h"

enum { TEAM = 1 /* its barrier */ };

/* What a role does with each tile; `of` is its own. */
typedef void take_tile(struct scan_ring *r, struct scan_ring_tile *t, kb_val parity, void *of);

/* A role of a warp, or of the team: tiles one after the other, as soon as they are numbered, until there are no more. */
static void each_tile(struct scan_ring *r, kb_uni uni, take_tile *take, void *of)
{
    kb *k = r->g->k;
    const struct scan_ring_place at = scan_ring_begin(r, 0, uni);
    kb_loop(k) {
        LET(stage, kb_get(k, at.stage));
        LET(parity, kb_get(k, at.parity));
        kb_mbar_wait(k, r->numbered, stage, parity);
        /* One word that all threads read. */
        const kb_val word = kb_load(k, r->ticket, stage);
        struct scan_ring_tile t = scan_ring_tile(r, uni == KB_UNI_BLOCK ? kb_assume_uniform(word, uni) : word, stage);
        kb_break_if(k, kb_not(k, t.exists));
        take(r, &t, parity, of);
        scan_ring_advance(r, at);
    }
}

/* ---- the producer ------------------------------------------------------------------------------------------------ */

/* Lane 0 takes a ticket; the word in all lanes. */
static kb_val take_ticket(struct gen *g)
{
    kb *k = g->k;
    kb_var word = kb_var_new(k, kb_imm(k, TY_U64, 0), "ticket_word");
    kb_if(k, kb_lane0(k)) {
        const kb_val taken = ticket_take(g, &tile_tickets);
        ticket_last_begins_next(g, &tile_tickets, taken, kb_add(k, gen_value(g, VAL_TILES), kb_blocks(k)));
        kb_set(k, word, taken);
    }
    return kb_shfl_idx(k, kb_get(k, word), 0);
}

/* A ticket is taken when its stage is free and not before: other blocks wait for the tiles of all tickets taken. */
static void produce(struct scan_ring *r)
{
    struct gen *g = r->g;
    kb *k = g->k;
    kb_section(k, "producer");
    const struct scan_ring_place at = scan_ring_begin(r, 1, KB_UNI_WARP);
    kb_loop(k) {
        LET(stage, kb_get(k, at.stage));
        kb_mbar_wait(k, r->empty, stage, kb_get(k, at.parity));
        LET(word, take_ticket(g));
        kb_if(k, kb_lane0(k)) {
            kb_store(k, r->ticket, stage, word);
        }
        const struct scan_ring_tile t = scan_ring_tile(r, word, stage);
        kb_if(k, t.exists) {
            scan_ring_fill_rest(r, &t);
        }
        kb_mbar_arrive(k, r->numbered, stage);
        kb_if(k, kb_lane0(k)) {
            kb_if(k, t.exists) {
                scan_ring_fill(r, &t);
            }
        }
        kb_break_if(k, kb_not(k, t.exists));
        scan_ring_advance(r, at);
    }
}

/* ---- the markers ------------------------------------------------------------------------------------------------- */

struct marking {
    struct scan_marker marker;
    kb_var turn; /* i32: the marker warp that takes the next tile */
    kb_val own;
};

static void mark_tile(struct scan_ring *r, struct scan_ring_tile *t, kb_val parity, void *of)
{
    kb *k = r->g->k;
    struct marking *m = of;
    (void)parity;
    kb_if(k, kb_eq(k, kb_get(k, m->turn), m->own)) {
        scan_ring_mark(&m->marker, t);
    }
    kb_mbar_arrive(k, r->full, t->stage);
    LET(next, kb_add(k, kb_get(k, m->turn), 1));
    const kb_val around = kb_eq(k, next, gen_tunable(r->g, TN_MARKER_WARPS));
    kb_set(k, m->turn, kb_select(k, around, kb_imm(k, TY_I32, 0), next));
}

/* Marker warps take tiles in turn.  All of them arrive for each tile, so that no stage is used again before all have seen
 * its ticket. */
static void mark(struct scan_ring *r, kb_val own)
{
    kb *k = r->g->k;
    kb_section(k, "markers");
    struct marking m = { .own = own };
    scan_marker_new(r, &m.marker);
    m.turn = kb_var_new(k, kb_imm(k, TY_I32, 0), "turn");
    m.turn.uni = KB_UNI_WARP;
    each_tile(r, KB_UNI_WARP, mark_tile, &m);
}

/* ---- the look-ahead ---------------------------------------------------------------------------------------------- */

static void tile_ahead(struct scan_ring *r, struct scan_ring_tile *t, kb_val parity, void *of)
{
    kb *k = r->g->k;
    (void)parity;
    scan_ring_enter(r, t);
    const kb_tup prefix = scan_ahead_prefix(of, t->ticket, t->index);
    kb_if(k, kb_lane0(k)) {
        kb_store(k, r->prefix, t->stage, prefix);
    }
    kb_mbar_arrive(k, r->prefixed, t->stage);
}

static void columns_tile_ahead(struct scan_ring *r, struct scan_ring_tile *t, kb_val parity, void *of)
{
    (void)parity;
    columns_prefix(of, r, t);
    kb_mbar_arrive(r->g->k, r->prefixed, t->stage);
}

static void look_ahead(struct scan_ring *r)
{
    kb_section(r->g->k, "prefix of the tile");
    if (scan_few_columns(r->g->p)) {
        struct columns_ahead side_by_side;
        columns_ahead_new(r->g, &side_by_side);
        each_tile(r, KB_UNI_WARP, columns_tile_ahead, &side_by_side);
    } else {
        struct scan_ahead ahead;
        scan_ahead_new(r->g, &ahead);
        each_tile(r, KB_UNI_WARP, tile_ahead, &ahead);
    }
}

/* ---- the look-back of columns ------------------------------------------------------------------------------------ */

/* Warp *of of those that look back: all look at every tile's predecessors, each at some; the first one goes on. */
static void look_back(struct scan_ring *r, struct scan_ring_tile *t, kb_val parity, void *of)
{
    kb *k = r->g->k;
    const kb_val own = *(const kb_val *)of;
    kb_mbar_wait(k, r->published, t->stage, parity); /* earlier ones are there soon, and a prefix goes where it is */
    columns_look(r, t, own);
    kb_mbar_arrive(k, r->looked, t->stage);
    kb_if(k, kb_eq(k, own, 0)) {
        kb_mbar_wait(k, r->looked, t->stage, parity);
        columns_before(r, t);
        kb_mbar_arrive(k, r->prefixed, t->stage);
    }
}

/* ---- the storer -------------------------------------------------------------------------------------------------- */

static void store(struct scan_ring *r, struct scan_ring_tile *t, kb_val parity, void *of)
{
    kb *k = r->g->k;
    (void)of;
    kb_mbar_wait(k, r->scanned, t->stage, parity);
    scan_ring_drain(r, t);
    kb_bulk_wait(k, 0, true);
    kb_mbar_arrive(k, r->empty, t->stage);
}

/* ---- the upsweep ------------------------------------------------------------------------------------------------- */

/* In place of the last warp's part, which no warp asks for: the total of the tile that leads, a position per
 * lane at a time.  Lane 0 has it. */
static void combine_lead(struct scan_ring *r, struct scan_ring_tile *t, kb_val warp, struct run *total)
{
    struct gen *g = r->g;
    kb *k = g->k;
    kb_tvar x = kb_var_new(k, total->x, "part");
    kb_if(k, kb_and(k, kb_eq(k, t->index, 0), kb_eq(k, warp, r->warps - 1))) {
        struct run_var upto = run_var_new(g, run_none(g));
        kb_for(k, at, kb_imm(k, TY_I32, 0), t->valid, KB_WARP) {
            struct items *h = &(struct items){ .g = g };
            scan_ring_load(r, t, kb_add(k, at, kb_lane(k)), 1, h);
            items_contribute(h);
            const struct valid_items inside = valid_first(kb_sub(k, t->valid, at));
            const kb_tup next = warp_reduce(g, items_total(h).x, KB_WARP, inside);
            run_set(g, upto, run_join(g, run_get(g, upto), run_of(g, next, kb_false(k))));
        }
        kb_set(k, x, run_get(g, upto).x);
    }
    total->x = kb_get(k, x);
}

/* All lanes of one warp: store the total of the warp's part of the tile in shared memory. */
static void combine_part(struct scan_ring *r, struct scan_ring_tile *t, kb_val warp)
{
    struct gen *g = r->g;
    kb *k = g->k;
    struct items *h = &(struct items){ .g = g };
    scan_ring_load(r, t, kb_add(k, kb_mul(k, warp, KB_WARP), kb_lane(k)), r->each, h);
    items_contribute(h);
    struct run total = kept_run(h); /* the last tile's goes nowhere */
    if (h->marked)
        warp_scan_exclusive(g, total, true, &total);
    else
        total.x = kept_widen(g, warp_reduce(g, total.x, KB_WARP, valid_all()));
    if (scan_leads(g->p))
        combine_lead(r, t, warp, &total);
    scan_ring_publish_part(r, t, warp, total);
}

/* By warp *of of those that combine; the first one publishes. */
static void combine(struct scan_ring *r, struct scan_ring_tile *t, kb_val parity, void *of)
{
    kb *k = r->g->k;
    const kb_val own = *(const kb_val *)of;
    const bool columns = scan_few_columns(r->g->p);
    kb_mbar_wait(k, r->full, t->stage, parity);
    kb_for(k, warp, own, r->warps, gen_tunable(r->g, TN_UPSWEEP_WARPS)) {
        if (columns)
            columns_combine(r, t, warp);
        else
            combine_part(r, t, warp);
    }
    kb_mbar_arrive(k, r->combined, t->stage);
    kb_if(k, kb_eq(k, own, 0)) {
        if (columns)
            columns_publish(r, t, parity);
        else
            scan_ring_publish(r, t, parity);
    }
}

/* ---- the downsweep ----------------------------------------------------------------------------------------------- */

/* Does an output lie where an input lay whose elements other threads read too? */
static bool overwrites_neighbours(const struct scan_ring *r)
{
    const struct problem *p = r->g->p;
    bool does = false;
    for (int i = 0; i < p->ninputs; i++)
        for (int o = 0; p->input[i].neighbours && r->layout.input[i] >= 0 && o < p->noutputs; o++)
            does |= r->layout.output[o] == r->layout.input[i];
    return does;
}

static void scan_tile(struct scan_ring *r, struct scan_ring_tile *t, kb_val parity)
{
    struct gen *g = r->g;
    kb *k = g->k;
    struct items *h = &(struct items){ .g = g };
    struct run total;
    const bool keeps = scan_ring_keeps(g->p);
    scan_ring_load(r, t, kb_tid(k), r->each, h);
    items_contribute(h);
    struct run in_warp = warp_scan_exclusive(g, kept_run(h), h->marked, &total);
    in_warp.x = kept_widen(g, in_warp.x);
    const struct run in_tile = run_join(g, scan_ring_parts(r, t, parity, &h->total), in_warp);
    /* Threads without positions read the last one, and neighbours each other's; kept values go anywhere. */
    kb_if(k, keeps || overwrites_neighbours(r) ? kb_true(k) : kb_not(k, h->full)) {
        kb_barrier(k); /* what has been read is overwritten now */
    }
    kb_mbar_wait(k, r->prefixed, t->stage, parity);
    const struct run before = { kb_gt(k, t->index, 0), kb_false(k), kb_load(k, r->prefix, t->stage) };
    if (keeps)
        kept_ring_scan(h, before, &in_tile);
    else
        items_scan(h, before, &in_tile);
    scan_ring_store(h);
    kb_mbar_arrive(k, r->scanned, t->stage);
    if (!keeps)
        items_finish(h);
}

static void scan(struct scan_ring *r, struct scan_ring_tile *t, kb_val parity, void *of)
{
    (void)of;
    kb_mbar_wait(r->g->k, r->full, t->stage, parity);
    if (scan_few_columns(r->g->p))
        columns_scan(r, t, parity);
    else
        scan_tile(r, t, parity);
}

/* ---- the block --------------------------------------------------------------------------------------------------- */

/* The warps beside the team, from number `side` on those that do not combine. */
static void side_warps(struct scan_ring *r, int side)
{
    kb *k = r->g->k;
    kb_if(k, kb_lt(k, kb_warp(k), side)) {
        kb_section(k, "upsweep");
        kb_val own = kb_name(kb_sub(k, kb_warp(k), r->warps), "own");
        each_tile(r, KB_UNI_WARP, combine, &own);
    }
    kb_if(k, kb_eq(k, kb_warp(k), side)) {
        produce(r);
    }
    kb_if(k, kb_eq(k, kb_warp(k), side + 1)) {
        kb_section(k, "storer");
        scan_ring_bounds(r);
        each_tile(r, KB_UNI_WARP, store, NULL);
    }
    if (r->looks) {
        kb_if(k, kb_gt(k, kb_warp(k), side + 1)) {
            kb_section(k, "lookback");
            kb_val own = kb_sub(k, kb_warp(k), side + 2);
            each_tile(r, KB_UNI_WARP, look_back, &own);
        }
    } else {
        kb_if(k, kb_eq(k, kb_warp(k), side + 2)) {
            look_ahead(r);
        }
    }
    if (scan_marked(r->g->p))
        kb_if(k, kb_gt(k, kb_warp(k), side + 2)) {
            mark(r, kb_sub(k, kb_warp(k), side + 3));
        }
}

static void run_pipeline(struct gen *g, void *of)
{
    kb *k = g->k;
    struct scan_ring *r = of;
    kb_barrier(k); /* the mbarriers are ready */
    kb_team(k, r->warps, TEAM)
    {
        kb_section(k, "downsweep");
        each_tile(r, KB_UNI_BLOCK, scan, NULL);
    }
    kb_else { side_warps(r, r->warps + gen_tunable(g, TN_UPSWEEP_WARPS)); }
}

void emit_scan_pipeline(struct gen *g)
{
    struct scan_ring r;
    scan_ring_new(g, &r);
    scan_kernel_of(g, run_pipeline, &r);
}
