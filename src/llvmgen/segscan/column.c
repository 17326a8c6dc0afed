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

static void thread_segment(struct gen *g, struct scan_segment *s)
{
    kb *k = g->k;
    const int n = per_thread(g);
    struct run_var carry = run_var_new(g, run_none(g));
    kb_tvar last = kb_var_new(k, state_zero(g), "last");
    kb_for(k, base, kb_imm(k, TY_I64, 0), s->length, n) {
        struct items *h =
            &(struct items){ .g = g, .segment = s, .n = n, .base = base, .own = kb_imm(k, TY_I32, 0), .apart = true };
        h->valid = kb_cast(k, kb_min(k, kb_sub(k, s->length, base), n), TY_I32);
        h->full = kb_eq(k, h->valid, n);
        h->is_start = kb_eq(k, base, 0);
        items_load(h);
        items_scan(h, run_get(g, carry), NULL);
        items_store(h);
        kb_set(k, last, items_last(h));
        run_set(g, carry, run_of(g, kb_get(k, last), kb_false(k)));
    }
    segment_finish(g, s, kb_get(k, last), kb_eq(k, s->length, 0));
}

static void threads_take_segments(struct gen *g)
{
    kb *k = g->k;
    const int threads = kb_threads(k);
    LET(first, kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), threads), kb_cast(k, kb_tid(k), TY_I64)));
    kb_for(k, number, first, gen_value(g, VAL_SEGMENTS), kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), threads)) {
        struct scan_segment s;
        segment_open(g, &s, number);
        thread_segment(g, &s);
    }
}

/* ---- strips ------------------------------------------------------------------------------------------------------ */

/* A strip of 32 segments, one per lane; lanes after the last segment repeat it and store nothing. */
struct strip {
    struct scan_segment segment;
    kb_val exists;     /* bool */
    kb_arr aggregates; /* totals: per turn, warp and lane */
};

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

static void strip_tile(struct gen *g, struct strip *s, kb_val base, kb_val turn, struct run_var carry)
{
    kb *k = g->k;
    const int n = per_thread(g), tile = kb_threads(k) / KB_WARP * n;
    struct items *h = &(struct items){ .g = g, .segment = &s->segment, .n = n, .base = base, .apart = true };
    struct run total;
    h->own = kb_mul(k, kb_warp(k), n);
    h->valid = kb_cast(k, kb_min(k, kb_sub(k, s->segment.length, base), tile), TY_I32);
    h->full = kb_eq(k, h->valid, tile);
    h->is_start = kb_and(k, kb_eq(k, base, 0), kb_eq(k, kb_warp(k), 0));
    items_load(h);
    const struct run in_tile = warps_before(g, s, items_total(h).x, turn, &total), before = run_get(g, carry);
    items_scan(h, run_join(g, before, in_tile), NULL);
    kb_if(k, s->exists) {
        items_store(h);
        items_finish(h);
    }
    run_set(g, carry, run_join(g, before, total));
}

static void block_takes_strip(struct gen *g)
{
    kb *k = g->k;
    const int tile = kb_threads(k) / KB_WARP * per_thread(g);
    struct strip s = { .aggregates = state_shared(g, BUFFERS * kb_threads(k), "warp_totals") };
    LET(number, kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), KB_WARP), kb_cast(k, kb_lane(k), TY_I64)));
    LET(segments, gen_value(g, VAL_SEGMENTS));
    kb_if(k, kb_gt(k, segments, 0)) {
        s.exists = kb_lt(k, number, segments);
        segment_open(g, &s.segment, kb_min(k, number, kb_sub(k, segments, 1)));
        struct run_var carry = run_var_new(g, run_none(g));
        /* Totals alternate between two places: a thread that writes one has passed the barrier after which all have read it.
         */
        kb_var turn = kb_var_new(k, kb_imm(k, TY_I32, 0), "turn");
        kb_for(k, base, kb_imm(k, TY_I64, 0), gen_value(g, VAL_LENGTH), tile) {
            strip_tile(g, &s, base, kb_get(k, turn), carry);
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
    else
        threads_take_segments(g);
}
