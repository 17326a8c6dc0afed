/* SPDX-License-Identifier: Apache-2.0 */
/* ahead.c - see ahead.h.
 *
 *     windows from the first one that is not complete yet up to the block's own tile, one after the other:
 *         every lane reads its tiles of the window until those before the block's own have published
 *         combine them; complete windows go into `whole`, the last one into the prefix alone
 *
 * A block gets its prefix after the tile that was published last has been seen, read and combined, and every stage waits
 * for the prefix.  So windows are small and read one at a time, which leaves little work after the last word.  Two
 * windows read at once, and windows twice as long or half as long, are slower.
 *
 * Note [Fixed windows]
 * Every warp combines totals in windows of the same tiles; only the last window is partly filled.  So the tree depends
 * on sizes and tunables alone, whichever block takes which tile, and results are the same on every run.
 *
 * Note [Back to the last cut]
 * Where segments begin anywhere, tiles before the last tile with a cut are neither waited for nor combined.  While a
 * block finds a cut in its own window, it reads no other window.  When it finds none, it reads the windows that it has
 * skipped; if they are many, it begins with the last one in which it sees a cut.  The combination from there on is the
 * same as from any earlier window.  From then on earlier windows are read first, so that none is left to read after the
 * last word, until there is a cut again.
 */
#include "ahead.h"

enum { EACH_MAX = 2, WORDS_MAX = 2 * KB_TUP_MAX, FEW = 4 /* windows */ };

void scan_ahead_new(struct gen *g, struct scan_ahead *a)
{
    kb *k = g->k;
    *a = (struct scan_ahead){ .g = g, .each = scan_ahead_each(g->p) };
    a->window = KB_WARP * a->each;
    a->from = kb_var_new(k, kb_imm(k, TY_I32, 0), "from");
    a->from.uni = KB_UNI_WARP;
    a->whole = run_var_new(g, run_none(g));
    a->ends = kb_var_new(k, kb_false(k), "ends");
}

/* Words of one number lie side by side for a window, first those that are their lane's first ones. */
static struct place place_in_window(struct gen *g, int each, kb_val first, kb_val lane, kb_val i)
{
    kb *k = g->k;
    const kb_val base = kb_mul(k, kb_cast(k, first, TY_I64), fields_words(g->field, g->nfields, NULL));
    const kb_val inside = kb_add(k, kb_mul(k, i, KB_WARP), lane);
    return place_at(g, kb_add(k, base, kb_cast(k, inside, TY_I64)), kb_imm(k, TY_I64, KB_WARP * each));
}

/* A total with a cut is a prefix already. */
void total_publish(struct gen *g, struct ticket t, int each, struct run total)
{
    kb *k = g->k;
    if (scan_own_tiles(g->p)) {
        tile_publish(g, t, total.x, kb_false(k));
        return;
    }
    LET(inside, kb_rem(k, t.tile, KB_WARP * each));
    const struct place p =
        place_in_window(g, each, kb_sub(k, t.tile, inside), kb_div(k, inside, each), kb_rem(k, inside, each));
    state_publish(g, t, p, total.x, total.cut);
}

/* All lanes: the words of the lane's tile i in the window that begins at tile `first`, of whose tiles the first `count`
 * matter (at least one). */
static void totals_load(struct gen *g, int each, kb_val first, kb_val count, int i, kb_val *word)
{
    kb *k = g->k;
    if (scan_own_tiles(g->p)) {
        const kb_val own = kb_add(k, kb_mul(k, kb_lane(k), each), i);
        state_load(g, place_of_tile(g, kb_add(k, first, kb_min(k, own, kb_sub(k, count, 1)))), word);
    } else {
        state_load(g, place_in_window(g, each, first, kb_lane(k), kb_imm(k, TY_I32, i)), word);
    }
}

/* Has the tile published its total (bool)?  Then *x is it. */
static kb_val totals_read(struct gen *g, struct ticket t, const kb_val *word, struct run *x)
{
    const struct published s = state_of_words(g, t, word);
    *x = run_of(g, s.x, scan_marked(g->p) ? kb_eq(g->k, s.kind, TILE_PREFIX) : kb_false(g->k));
    return s.there;
}

/* Have all tiles after the last cut published? */
static kb_val enough(struct scan_ahead *a, kb_val lane_is_there, kb_val lane_cuts)
{
    kb *k = a->g->k;
    const kb_val cuts = kb_ballot(k, lane_cuts), missing = kb_ballot(k, kb_not(k, lane_is_there));
    return kb_ge(k, kb_clz(k, missing), kb_clz(k, cuts)); /* the last lane that is missing is not after the last cut */
}

/* Of the window that begins at tile `first`, the lane's tiles, as soon as those among the first `count` have published,
 * or with `nearest` those of them from the last one in which a segment begins on. */
static void read_window(struct scan_ahead *a, struct ticket t, kb_val first, kb_val count, bool nearest,
                        struct run_var *seen)
{
    kb *k = a->g->k;
    const kb_val never = kb_false(k);
    for (int i = 0; i < a->each; i++)
        seen[i] = run_var_new(a->g, run_of(a->g, state_zero(a->g), never));
    LET(own, kb_mul(k, kb_lane(k), a->each));
    kb_loop(k) {
        kb_val word[EACH_MAX][WORDS_MAX], all = kb_true(k), cut = never;
        for (int i = 0; i < a->each; i++)
            totals_load(a->g, a->each, first, count, i, word[i]);
        for (int i = 0; i < a->each; i++) {
            struct run x;
            const kb_val there = totals_read(a->g, t, word[i], &x);
            run_set(a->g, seen[i], x);
            const kb_val inside = kb_lt(k, kb_add(k, own, i), count);
            const kb_val cuts = kb_and(k, inside, kb_and(k, there, x.cut));
            all = kb_and(k, all, kb_or(k, there, kb_not(k, inside)));
            if (nearest) {
                all = kb_or(k, all, cuts);
                cut = kb_or(k, cut, cuts);
            }
        }
        kb_break_if(k, nearest ? enough(a, all, kb_and(k, cut, all)) : all);
        kb_backoff(k, 0); /* one warp of many: sleeping would only add to the latency */
    }
}

/* The combination of its first `count` tiles, at least one, in order, in lane 0.  All lanes. */
static struct run window_total(struct scan_ahead *a, struct ticket t, kb_val first, kb_val count, bool nearest)
{
    struct gen *g = a->g;
    kb *k = g->k;
    struct run_var seen[EACH_MAX];
    read_window(a, t, first, count, nearest, seen);
    LET(own, kb_mul(k, kb_lane(k), a->each));
    for (int i = 1; i < a->each; i++)
        kb_if(k, kb_lt(k, kb_add(k, own, i), count)) {
            run_set(g, seen[0], run_join(g, run_get(g, seen[0]), run_get(g, seen[i])));
        }
    const struct run lane = run_get(g, seen[0]);
    const kb_val lanes = kb_div(k, kb_add(k, count, a->each - 1), a->each);
    if (scan_marked(g->p))
        return run_from_lane(g, warp_scan(g, lane, KB_WARP, true), kb_sub(k, lanes, 1), true);
    return run_of(g, warp_reduce(g, lane.x, KB_WARP, valid_first(lanes)), kb_false(k));
}

/* In rows windows are counted from the row's first tile; with a row everything begins anew. */
static kb_val begin_of(struct scan_ahead *a, struct ticket t, kb_val index)
{
    kb *k = a->g->k;
    const kb_val begin = kb_mul(k, kb_div(k, index, a->window), a->window);
    if (!scan_own_tiles(a->g->p))
        return begin;
    LET(row, kb_sub(k, t.tile, index));
    kb_if(k, kb_lt(k, kb_get(k, a->from), row)) {
        kb_set(k, a->from, row);
        run_set(a->g, a->whole, run_none(a->g));
    }
    return kb_add(k, row, begin);
}

/* Is a segment known to begin in the window?  All lanes. */
static kb_val window_cuts(struct scan_ahead *a, struct ticket t, kb_val first)
{
    kb *k = a->g->k;
    kb_val word[WORDS_MAX], cuts = kb_false(k);
    for (int i = 0; i < a->each; i++) {
        struct run x;
        totals_load(a->g, a->each, first, kb_imm(k, TY_I32, a->window), i, word);
        const kb_val there = totals_read(a->g, t, word, &x);
        cuts = kb_or(k, cuts, kb_and(k, there, x.cut));
    }
    return kb_any(k, cuts);
}

/* See Note [Back to the last cut]. */
static void skip_to_cut(struct scan_ahead *a, struct ticket t, kb_val begin)
{
    kb *k = a->g->k;
    kb_var first = kb_var_new(k, begin, "first");
    first.uni = KB_UNI_WARP;
    LET(from, kb_get(k, a->from));
    kb_loop(k) {
        kb_break_if(k, kb_le(k, kb_get(k, first), kb_add(k, from, FEW * a->window)));
        kb_set(k, first, kb_sub(k, kb_get(k, first), a->window));
        LET(cuts, kb_assume_uniform(window_cuts(a, t, kb_get(k, first)), KB_UNI_WARP)); /* a vote */
        kb_if(k, cuts) {
            kb_set(k, a->from, kb_get(k, first));
        }
        kb_break_if(k, cuts);
    }
}

/* Everything before the window that begins at `begin` goes into `whole`. */
static void complete(struct scan_ahead *a, struct ticket t, kb_val begin)
{
    struct gen *g = a->g;
    kb *k = g->k;
    const kb_val all = kb_imm(k, TY_I32, a->window);
    if (scan_marked(g->p))
        skip_to_cut(a, t, begin);
    kb_for(k, first, kb_get(k, a->from), begin, a->window) {
        run_set(g, a->whole, run_join(g, run_get(g, a->whole), window_total(a, t, first, all, false)));
    }
    kb_set(k, a->from, begin);
}

kb_tup scan_ahead_prefix(struct scan_ahead *a, struct ticket t, kb_val index)
{
    struct gen *g = a->g;
    kb *k = g->k;
    LET(begin, begin_of(a, t, index));
    LET(rest, kb_sub(k, t.tile, begin));
    if (!scan_marked(g->p)) {
        complete(a, t, begin);
        struct run_var prefix = run_var_new(g, run_get(g, a->whole));
        kb_if(k, kb_gt(k, rest, 0)) {
            run_set(g, prefix, run_join(g, run_get(g, a->whole), window_total(a, t, begin, rest, false)));
        }
        return run_get(g, prefix).x;
    }
    struct run_var near = run_var_new(g, (struct run){ kb_gt(k, rest, 0), kb_false(k), state_zero(g) });
    LET(ends, kb_assume_uniform(kb_get(k, a->ends), KB_UNI_WARP)); /* one lane's, for all */
    kb_if(k, ends) {
        kb_if(k, kb_gt(k, rest, 0)) {
            run_set(g, near, window_total(a, t, begin, rest, true));
        }
    }
    kb_else
    {
        complete(a, t, begin);
        kb_if(k, kb_gt(k, rest, 0)) {
            run_set(g, near, window_total(a, t, begin, rest, false));
        }
    }
    LET(cut, kb_assume_uniform(run_get(g, near).cut, KB_UNI_WARP));
    kb_if(k, kb_and(k, ends, kb_not(k, cut))) {
        complete(a, t, begin);
    }
    if (!scan_keeps(g->p)) /* rows that come here are longer than tiles */
        kb_set(k, a->ends, cut);
    return run_join(g, run_get(g, a->whole), run_get(g, near)).x;
}
