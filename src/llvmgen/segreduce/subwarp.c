/* SPDX-License-Identifier: Apache-2.0 */
/* subwarp.c - reductions of segments by teams of 1 … 32 lanes, each of which takes `segments` segments at a time; a tree
 * over its lanes by shuffles.
 *
 * One lane is Futhark's thread per segment.  Teams know their segment: no thread divides by the size of a segment.
 */
#include "seg_gen.h"

/* Segments from `first` on: `n` for each team of the warp, neighbouring teams taking neighbouring ones. */
static void warp_segments(struct gen *g, const struct team *team, int n, kb_val first)
{
    kb *k = g->k;
    const int teams = KB_WARP / team->lanes;
    const kb_val segments = gen_value(g, VAL_SEGMENTS);
    const bool general = !access_any_direct(g->p); /* nothing is read at positions themselves */
    struct segment seg[SEG_AT_ONCE_MAX];
    struct stretch stretch[SEG_AT_ONCE_MAX];
    kb_val exists[SEG_AT_ONCE_MAX];
    for (int u = 0; u < n; u++) {
        const kb_val number =
            kb_add(k, kb_add(k, first, kb_cast(k, kb_div(k, kb_lane(k), team->lanes), TY_I64)), u * teams);
        exists[u] = kb_lt(k, number, segments);
        segment_at(g, &seg[u], kb_min(k, number, kb_sub(k, segments, 1)));
        segment_enter(g, &seg[u]);
        if (general)
            segment_ahead(g, &seg[u]);
        stretch[u] = (struct stretch){ .seg = &seg[u], .first = seg[u].first, .total = partial_new(g, "total") };
        /* Where nothing is read or written at positions the last segment may be reduced again: lengths that are the
         * same need one mask for all segments. */
        stretch[u].last = general && !problem_writes(g->p, AT_POINT)
                              ? seg[u].last
                              : kb_select(k, exists[u], seg[u].last, seg[u].first);
    }
    stretches_reduce(g, team, n, stretch, gen_value(g, VAL_LENGTH));
    for (int u = 0; u < n; u++) {
        const kb_tup total = team_total(g, team, &stretch[u]);
        kb_if(k, kb_and(k, exists[u], kb_eq(k, team->rank, 0))) {
            segment_store(g, &seg[u], total);
        }
    }
}

static void emit_teams(struct gen *g, int lanes)
{
    kb *k = g->k;
    const int n = gen_tunable(g, TN_SEGMENTS), warps = kb_threads(k) / KB_WARP;
    const int64_t each = (int64_t)n * (KB_WARP / lanes);
    gen_wait_for_predecessor(g);
    const struct team team = { lanes, kb_and(k, kb_lane(k), lanes - 1) };
    LET(warp, kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), warps), kb_cast(k, kb_warp(k), TY_I64)));
    LET(step, kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), warps * each));
    kb_for(k, first, kb_mul(k, warp, each), gen_value(g, VAL_SEGMENTS), step) {
        warp_segments(g, &team, n, first);
    }
}

void emit_segreduce_subwarp(struct gen *g)
{
    const int lanes = gen_tunable(g, TN_LANES);
    if (lanes == 0)
        emit_packed(g);
    else
        emit_teams(g, lanes);
}
