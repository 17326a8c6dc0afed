/* SPDX-License-Identifier: Apache-2.0 */
/* scan_ahead.c - see scan_ahead.h.
 *
 *     windows from the first one that is not complete yet up to the block's own tile, one after the other:
 *         every lane reads its tiles of the window until those before the block's own have published
 *         combine them; complete windows go into `whole`, the last one into the prefix alone
 *
 * A block gets its prefix when the tile that was published last has been seen, read and combined, and every stage waits
 * for that.  So windows are small and read one at a time: what comes behind the last word is short.  Two windows read
 * at once, and windows twice as long or half as long, are slower.
 *
 * Note [Fixed windows]
 * Totals are combined in windows of the same tiles whoever does it, the last one partly: so the tree depends on sizes
 * and tunables alone, whichever block draws which tile, and results are the same on every run.
 */
#include "scan_ahead.h"

enum { EACH_MAX = 2, WORDS_MAX = 2 * KB_TUP_MAX };

void scan_ahead_new(struct gen *g, struct scan_ahead *a)
{
    kb *k = g->k;
    *a = (struct scan_ahead){ .g = g, .each = scan_ahead_each(g->p) };
    a->window = KB_WARP * a->each;
    a->from = kb_var_new(k, kb_imm(k, TY_I32, 0), "from");
    a->from.uni = KB_UNI_WARP;
    a->whole = run_var_new(g, run_none(g));
}

/* Of the window that begins at tile `first`, the lane's tiles, as soon as those among the first `count` have published.
 */
static void read_window(struct scan_ahead *a, struct ticket t, kb_val first, kb_val count, struct run_var *seen)
{
    kb *k = a->g->k;
    const kb_val never = kb_imm(k, TY_BOOL, 0);
    for (int i = 0; i < a->each; i++)
        seen[i] = run_var_new(a->g, run_of(a->g, state_zero(a->g), never));
    LET(own, kb_mul(k, kb_lane(k), a->each));
    kb_loop(k) {
        kb_val word[EACH_MAX][WORDS_MAX], all = kb_imm(k, TY_BOOL, 1);
        for (int i = 0; i < a->each; i++)
            totals_load(a->g, a->each, first, count, i, word[i]);
        for (int i = 0; i < a->each; i++) {
            struct run x;
            const kb_val there = totals_see(a->g, t, word[i], &x);
            run_set(a->g, seen[i], x);
            all = kb_and(k, all, kb_or(k, there, kb_ge(k, kb_add(k, own, i), count)));
        }
        kb_break_if(k, all);
        kb_backoff(k, 0); /* one warp of many: sleeping would only add to the latency */
    }
}

/* The combination of its first `count` tiles, at least one, in order, in lane 0.  All lanes. */
static struct run window_total(struct scan_ahead *a, struct ticket t, kb_val first, kb_val count)
{
    struct gen *g = a->g;
    kb *k = g->k;
    struct run_var seen[EACH_MAX];
    read_window(a, t, first, count, seen);
    LET(own, kb_mul(k, kb_lane(k), a->each));
    for (int i = 1; i < a->each; i++)
        kb_if(k, kb_lt(k, kb_add(k, own, i), count)) {
            run_set(g, seen[0], run_join(g, run_get(g, seen[0]), run_get(g, seen[i])));
        }
    const struct run lane = run_get(g, seen[0]);
    const kb_val lanes = kb_div(k, kb_add(k, count, a->each - 1), a->each);
    if (scan_marked(g->p))
        return run_from_lane(g, warp_scan(g, lane, KB_WARP, true), kb_sub(k, lanes, 1), true);
    return run_of(g, warp_reduce(g, lane.x, KB_WARP, filled_first(lanes)), kb_imm(k, TY_BOOL, 0));
}

/* In rows windows are counted from the row's first tile; with a row everything begins anew. */
static kb_val begin_of(struct scan_ahead *a, struct ticket t, kb_val index)
{
    kb *k = a->g->k;
    const kb_val begin = kb_mul(k, kb_div(k, index, a->window), a->window);
    if (!scan_keeps(a->g->p))
        return begin;
    LET(row, kb_sub(k, t.tile, index));
    kb_if(k, kb_lt(k, kb_get(k, a->from), row)) {
        kb_set(k, a->from, row);
        run_set(a->g, a->whole, run_none(a->g));
    }
    return kb_add(k, row, begin);
}

kb_tup scan_ahead_prefix(struct scan_ahead *a, struct ticket t, kb_val index)
{
    struct gen *g = a->g;
    kb *k = g->k;
    const kb_val all = kb_imm(k, TY_I32, a->window);
    LET(begin, begin_of(a, t, index));
    kb_for(k, first, kb_get(k, a->from), begin, a->window) {
        run_set(g, a->whole, run_join(g, run_get(g, a->whole), window_total(a, t, first, all)));
    }
    kb_set(k, a->from, begin);
    LET(rest, kb_sub(k, t.tile, begin));
    struct run_var prefix = run_var_new(g, run_get(g, a->whole));
    kb_if(k, kb_gt(k, rest, 0)) {
        run_set(g, prefix, run_join(g, run_get(g, a->whole), window_total(a, t, begin, rest)));
    }
    return run_get(g, prefix).x;
}
