/* SPDX-License-Identifier: Apache-2.0 */
/* column.c - scans over dimensions that are not the last: neighbouring lanes take neighbouring segments.
 *
 *     rows = 1    a thread per segment, some positions at a time with a running carry
 *     rows > 1    a strip of 32 segments per block: every warp takes some consecutive positions of all of them, the
 * totals of its lanes meet in shared memory, and a carry runs on to the strip's next tile
 *
 * Lanes load the same position of neighbouring segments, so accesses are whole lines wherever the last dimension is
 * kept.
 */
#include "llvmgen/scan/tile.h"

enum { BUFFERS = 2 };

static int per_thread(const struct gen *g) { return gen_tunable(g, TN_ITEMS) * gen_tunable(g, TN_VECTOR); }

/* A strip of segments, one per lane; lanes after the last segment repeat it and store nothing. */
struct strip {
    struct scan_segment segment;
    struct turn turn;
    kb_val exists;     /* bool */
    int rows;          /* threads that share a segment, … */
    kb_val group;      /* … and which of them this one is, i32 */
    kb_arr aggregates; /* totals: per turn, warp and lane */
};

/* The positions from `base` on. */
static struct items tile_at(struct gen *g, struct strip *s, kb_val base)
{
    struct items h = items_down(g, &s->segment, base, s->segment.length, s->rows, s->group);
    h.turn = g->c->turns ? &s->turn : NULL;
    return h;
}

/* Inputs that arrive through shared memory set out before their tile is loaded, if there is one. */
static void fetch_tile(struct gen *g, struct strip *s, kb_val base, struct direct_vars *ahead)
{
    if (!g->c->turns || !scan_turns_inputs(g->p))
        return;
    kb_if(g->k, kb_lt(g->k, base, s->segment.length)) {
        struct items h = tile_at(g, s, base);
        turn_fetch(&h, ahead);
    }
}

static void load_tile(struct items *h, struct strip *s, struct direct_vars *ahead)
{
    struct gen *g = h->g;
    if (!ahead->declared) {
        items_load(h);
        return;
    }
    turn_take(h, ahead);
    fetch_tile(g, s, kb_add(g->k, h->base, s->rows * h->n), ahead);
    items_contribute(h);
}

static void thread_segment(struct gen *g, struct strip *strip)
{
    kb *k = g->k;
    struct scan_segment *s = &strip->segment;
    const int n = per_thread(g);
    struct direct_vars ahead = { .declared = false };
    struct run_var carry = run_var_new(g, run_none(g));
    kb_tvar last = kb_var_new(k, state_zero(g), "last");
    strip->rows = 1;
    strip->group = kb_imm(k, TY_I32, 0);
    fetch_tile(g, strip, kb_imm(k, TY_I64, 0), &ahead);
    kb_for(k, base, kb_imm(k, TY_I64, 0), s->length, n) {
        struct items h = tile_at(g, strip, base);
        load_tile(&h, strip, &ahead);
        items_scan(&h, run_get(g, carry), NULL);
        kb_if(k, strip->exists) {
            items_store(&h);
        }
        if (h.turn)
            turn_leave(&h, strip->exists);
        kb_set(k, last, items_last(&h));
        run_set(g, carry, run_of(g, kb_get(k, last), kb_false(k)));
    }
    kb_if(k, strip->exists) {
        segment_finish(g, s, kb_get(k, last), kb_eq(k, s->length, 0));
    }
}

static void threads_take_segments(struct gen *g)
{
    kb *k = g->k;
    const int threads = kb_threads(k);
    LET(first, kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), threads), kb_cast(k, kb_tid(k), TY_I64)));
    kb_for(k, number, first, gen_value(g, VAL_SEGMENTS), kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), threads)) {
        struct strip s = { .exists = kb_true(k) };
        segment_open(g, &s.segment, number);
        thread_segment(g, &s);
    }
}

/* One each. */
static void strip_open(struct gen *g, struct strip *s, kb_val number)
{
    kb *k = g->k;
    LET(segments, gen_value(g, VAL_SEGMENTS));
    s->exists = kb_lt(k, number, segments);
    const kb_val column = kb_min(k, number, kb_sub(k, segments, 1));
    segment_open(g, &s->segment, g->c->turns ? turn_segment(g, column) : column);
}

/* A box of 32 segments along the axis that turns and one per warp along the last one, of which `row` and `column` are the
 * thread's. */
static kb_val segment_of_box(struct gen *g, kb_val row, kb_val column, kb_val *exists)
{
    kb *k = g->k;
    const int last = g->p->rank - 1, warps = kb_threads(k) / KB_WARP;
    LET(rows, gen_extent(g, &g->p->space[scan_turn(g->p)].extent));
    LET(columns, gen_extent(g, &g->p->space[last].extent));
    LET(across, kb_div(k, kb_add(k, columns, warps - 1), warps));
    LET(block, kb_cast(k, kb_block(k), TY_I64));
    LET(down, kb_div(k, block, across));
    const kb_val i = kb_add(k, kb_mul(k, down, KB_WARP), kb_cast(k, row, TY_I64));
    const kb_val j = kb_add(k, kb_mul(k, kb_sub(k, block, kb_mul(k, down, across)), warps), kb_cast(k, column, TY_I64));
    *exists = kb_and(k, kb_lt(k, i, rows), kb_lt(k, j, columns));
    const kb_val least = kb_min(k, i, kb_sub(k, rows, 1));
    return kb_add(k, kb_mul(k, least, columns), kb_min(k, j, kb_sub(k, columns, 1)));
}

static void planes_open(struct gen *g, struct strip *s)
{
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    kb_val any;
    const kb_val loaded = segment_of_box(g, kb_div(k, kb_tid(k), warps), kb_rem(k, kb_tid(k), warps), &any);
    segment_open(g, &s->segment, loaded);
    s->turn.first = s->segment.first;
    segment_open(g, &s->segment, segment_of_box(g, kb_lane(k), kb_warp(k), &s->exists));
}

/* A thread per segment, and lanes that follow the other order. */
static void threads_turn(struct gen *g)
{
    kb *k = g->k;
    struct strip s;
    turn_new(g, &s.turn);
    kb_if(k, kb_gt(k, gen_value(g, VAL_SEGMENTS), 0)) {
        if (scan_turn_planes(g->p, g->c))
            planes_open(g, &s);
        else
            strip_open(
                g, &s,
                kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), kb_threads(k)), kb_cast(k, kb_tid(k), TY_I64)));
        thread_segment(g, &s);
    }
}

/* ---- strips ------------------------------------------------------------------------------------------------------ */

/* What comes before this warp's positions in the lane's segment within the tile, and the tile's total.  The whole block
 * arrives. */
static struct run warps_before(struct gen *g, const struct strip *s, kb_tup own, kb_val turn, struct run *total)
{
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    LET(slot, kb_add(k, kb_mul(k, turn, kb_threads(k)), kb_lane(k)));
    kb_store(k, s->aggregates, kb_add(k, slot, kb_mul(k, kb_warp(k), KB_WARP)), own);
    kb_barrier(k);
    *total = run_none(g);
    struct run_var before = run_var_new(g, *total);
    for (int w = 0; w < warps; w++) {
        const kb_tup x = kb_load(k, s->aggregates, kb_add(k, slot, w * KB_WARP));
        *total = run_join(g, *total, run_of(g, x, kb_false(k)));
        kb_if(k, kb_gt(k, kb_warp(k), w)) {
            run_set(g, before, *total);
        }
    }
    return run_get(g, before);
}

static void strip_tile(struct gen *g, struct strip *s, kb_val base, kb_val turn, struct run_var carry,
                       struct direct_vars *ahead)
{
    kb *k = g->k;
    struct items h = tile_at(g, s, base);
    struct run total;
    load_tile(&h, s, ahead);
    const struct run in_tile = warps_before(g, s, items_total(&h).x, turn, &total), before = run_get(g, carry);
    items_scan(&h, run_join(g, before, in_tile), NULL);
    kb_if(k, s->exists) {
        items_store(&h);
        items_finish(&h);
    }
    if (h.turn)
        turn_leave(&h, s->exists);
    run_set(g, carry, run_join(g, before, total));
}

static void block_takes_strip(struct gen *g)
{
    kb *k = g->k;
    const int tile = kb_threads(k) / KB_WARP * per_thread(g);
    struct strip s = { .rows = kb_threads(k) / KB_WARP,
                       .aggregates = state_shared(g, BUFFERS * kb_threads(k), "warp_totals") };
    if (g->c->turns)
        turn_new(g, &s.turn);
    LET(number, kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), KB_WARP), kb_cast(k, kb_lane(k), TY_I64)));
    kb_if(k, kb_gt(k, gen_value(g, VAL_SEGMENTS), 0)) {
        strip_open(g, &s, number);
        s.group = kb_warp(k);
        struct run_var carry = run_var_new(g, run_none(g));
        /* Totals alternate between two places: a thread that writes one has passed the barrier after which all have read it. */
        kb_var turn = kb_var_new(k, kb_imm(k, TY_I32, 0), "turn");
        struct direct_vars ahead = { .declared = false };
        fetch_tile(g, &s, kb_imm(k, TY_I64, 0), &ahead);
        kb_for(k, base, kb_imm(k, TY_I64, 0), gen_value(g, VAL_LENGTH), tile) {
            strip_tile(g, &s, base, kb_get(k, turn), carry, &ahead);
            if (kb_point(k, "alternation of buffers"))
                kb_set(k, turn, kb_xor(k, kb_get(k, turn), 1));
        }
        const kb_val empty = kb_eq(k, gen_value(g, VAL_LENGTH), 0);
        segment_finish_empty(g, &s.segment, kb_and(k, empty, kb_and(k, s.exists, kb_eq(k, kb_warp(k), 0))));
    }
}

void emit_segscan_column(struct gen *g)
{
    gen_wait_for_predecessor(g);
    if (gen_tunable(g, TN_ROWS) > 1)
        block_takes_strip(g);
    else if (g->c->turns)
        threads_turn(g);
    else
        threads_take_segments(g);
}
