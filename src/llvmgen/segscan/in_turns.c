/* SPDX-License-Identifier: Apache-2.0 */
/* in_turns.c - scans of few long segments in one pass: tiles of a segment pass their totals on by
 * look-back, tiles of all segments take turns.
 *
 *     until no ticket is left:
 *         upsweep     each lane combines its vectors, warps their lines, the block its warps
 *         fetch       the block's next ticket is there: its tile's loads set out
 *         look-back   one warp publishes the tile's total and finds what comes before it in its segment
 *         downsweep   from there on; the next ticket's tile is taken
 *
 * Ticket q is tile q / segments of segment q % segments, so that the tiles of one segment are far apart in time, and
 * look-back seldom waits.  A segment begins with a tile of its own, which publishes a prefix at once: no look-back
 * leaves its segment.  Merrill and Garland's look-back, Clausen's boundaries; blocks stay, so that loads are in flight
 * while they wait.
 *
 * Note [Tickets of blocks that stay]
 * Every block takes tickets until it gets one beyond the last tile, and no further: so as many are taken as there are
 * tiles and blocks together, and the block with the last one starts the next epoch (tickets_used_up()).
 */
#include "llvmgen/shared/lookback.h"
#include "llvmgen/scan/lines.h"
#include "llvmgen/scan/tile.h"

/* What all threads of the block share. */
struct shared {
    kb_ptr ticket; /* u64 */
    kb_arr prefix;
    struct aggregates aggregates;
    kb_ptr turn;
    struct turn leaving;
};

/* A ticket's tile. */
struct long_tile {
    struct scan_segment segment;
    struct lines l;
    kb_val first; /* bool: of its segment */
    kb_val some;  /* bool, block-uniform: it has positions; the last tile of a segment may have none */
    kb_val state; /* i32: its place among the tile states; a segment's lie side by side */
};

static void open_tile(struct gen *g, const struct shared *m, struct long_tile *t, kb_val ticket)
{
    kb *k = g->k;
    const int n = gen_tunable(g, TN_ITEMS), v = gen_tunable(g, TN_VECTOR), warp_size = KB_WARP * n * v;
    const int64_t size = (int64_t)kb_threads(k) * n * v;
    const kb_val segments = kb_cast(k, gen_value(g, VAL_SEGMENTS), TY_U32), number = kb_cast(k, ticket, TY_U32);
    LET(tile, kb_div(k, number, segments)); /* once per tile */
    LET(segment, kb_sub(k, number, kb_mul(k, tile, segments)));
    segment_open(g, &t->segment, kb_cast(k, segment, TY_I64));
    t->l = (struct lines){ .g = g, .segment = &t->segment, .n = n, .v = v, .turn = m->turn };
    struct lines *l = &t->l;
    if (g->c->turns)
        l->leaving = &m->leaving;
    const kb_val skew = lines_skew(g, &t->segment, v, kb_imm(k, TY_I64, 0));
    LET(base, kb_sub(k, kb_mul(k, kb_cast(k, tile, TY_I64), size), skew));
    t->some = kb_assume_uniform(kb_lt(k, base, t->segment.length), KB_UNI_BLOCK); /* as the ticket is */
    l->base = kb_select(k, t->some, base, kb_sub(k, base, size)); /* the tile before stands for an empty one */
    l->own = kb_add(k, kb_mul(k, kb_warp(k), warp_size), kb_mul(k, kb_lane(k), v));
    l->from = kb_cast(k, kb_max(k, kb_neg(k, l->base), 0), TY_I32);
    l->to = kb_cast(k, kb_min(k, kb_sub(k, t->segment.length, l->base), size), TY_I32);
    t->first = l->is_start = kb_eq(k, tile, 0);
    const kb_val per_segment = kb_cast(k, gen_value(g, VAL_PER_SEGMENT), TY_U32);
    t->state = kb_cast(k, kb_add(k, kb_mul(k, segment, per_segment), tile), TY_I32);
}

/* What comes before the tile in its segment, for all threads after the next barrier. */
static void share_prefix(struct gen *g, const struct shared *m, const struct long_tile *t, kb_val epoch,
                         struct run total)
{
    kb *k = g->k;
    kb_if(k, kb_eq(k, kb_warp(k), 0)) {
        const struct run found = lookback(g, (struct ticket){ t->state, epoch }, total, t->first);
        kb_if(k, kb_lane0(k)) {
            kb_store(k, m->prefix, 0, found.x);
        }
    }
}

static struct run shared_prefix(struct gen *g, const struct shared *m, const struct long_tile *t)
{
    kb *k = g->k;
    return (struct run){ kb_not(k, t->first), kb_false(k), kb_load(k, m->prefix, 0) };
}

static void finish_tile(struct gen *g, struct long_tile *t, struct run before)
{
    kb *k = g->k;
    lines_scan(&t->l, before);
    lines_store(&t->l);
    if (!scan_has_totals(g->p))
        return;
    kb_val mine;
    const kb_tup last = lines_last(&t->l, &mine);
    const kb_val end = kb_add(k, t->l.base, kb_cast(k, t->l.to, TY_I64));
    kb_if(k, kb_and(k, mine, kb_eq(k, end, t->segment.length))) {
        segment_finish(g, &t->segment, last, kb_false(k));
    }
}

/* The tile of ticket `current`, whose inputs have been fetched; then those of the next one, which goes to `next`. */
static void take_tile(struct gen *g, const struct shared *m, kb_val current, kb_val epoch, struct direct_vars *ahead,
                      kb_var next)
{
    kb *k = g->k;
    const kb_val tiles = kb_cast(k, gen_value(g, VAL_TILES), TY_U32);
    const kb_var taken = ticket_take_early(g, &tile_tickets); /* not waited for before the upsweep is done */
    struct long_tile t, following;
    struct run total = run_none(g), in_tile;
    open_tile(g, m, &t, current);
    lines_take(&t.l, ahead);
    const struct run own = lines_total(&t.l);
    kb_if(k, kb_thread0(k)) {
        ticket_share(g, m->ticket, kb_get(k, taken));
    }
    in_tile = block_scan_warps(g, own, &m->aggregates, &total);
    if (kb_threads(k) == KB_WARP)
        kb_barrier(k); /* a single warp has met none */
    LET(number, kb_cast(k, ticket_shared(g, m->ticket), TY_U32));
    kb_set(k, next, number);
    kb_if(k, kb_lt(k, number, tiles)) {
        open_tile(g, m, &following, number);
        kb_if(k, following.some) {
            lines_fetch(&following.l, ahead);
        }
    }
    g->here = &t.segment.here;
    kb_if(k, t.some) {
        share_prefix(g, m, &t, epoch, total);
    }
    kb_barrier(k); /* the prefix is there, and all have read the ticket */
    kb_if(k, t.some) {
        finish_tile(g, &t, run_join(g, shared_prefix(g, m, &t), in_tile));
    }
}

void tiles_in_turns(struct gen *g, void *of)
{
    (void)of;
    kb *k = g->k;
    struct shared m = { .ticket = ticket_slot(g),
                        .prefix = state_shared(g, 1, "tile_prefix"),
                        .aggregates = aggregates_new(g, KB_WARP, false, "warp_totals"),
                        .turn = lines_turn_new(g) };
    if (g->c->turns)
        lines_leaving_new(g, &m.leaving);
    const kb_val tiles = kb_cast(k, gen_value(g, VAL_TILES), TY_U32);
    struct direct_vars ahead = { .declared = false };
    LET(word, ticket_take_first(g, m.ticket));
    kb_var ticket = kb_var_new(k, kb_cast(k, word, TY_U32), "ticket");
    ticket.uni = KB_UNI_BLOCK; /* it only takes what all threads have read in one place */
    LET(epoch, kb_cast(k, kb_shr(k, word, 32), TY_U32));
    kb_if(k, kb_lt(k, kb_get(k, ticket), tiles)) {
        struct long_tile t;
        open_tile(g, &m, &t, kb_get(k, ticket));
        kb_if(k, t.some) {
            lines_fetch(&t.l, &ahead);
        }
    }
    kb_loop(k) {
        const kb_val current = kb_assume_uniform(kb_get(k, ticket), KB_UNI_BLOCK);
        kb_break_if(k, kb_ge(k, current, tiles));
        take_tile(g, &m, current, epoch, &ahead, ticket);
    }
    tickets_used_up(g, kb_get(k, ticket), epoch, gen_value(g, VAL_TILES));
}
