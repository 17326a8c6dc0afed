/* SPDX-License-Identifier: Apache-2.0 */
/* lookback.c - decoupled look-back (Merrill and Garland, NVR-2016-002).
 *
 *     publish the tile's total;  if nothing before the tile matters, the total is the inclusive prefix already
 *     window of 32 to 128 tiles before this one, some per lane, until one of them has published a prefix:
 *         wait until all from the nearest prefix on have published, and sleep between the reads (kb_backoff())
 *         combine them in order, older ones on the left
 *     publish prefix * total as the prefix of the tiles that follow
 */
#include "lookback.h"

/* Consecutive tiles that a lane polls: one where states are large, since all of them are in flight at once. */
static int tiles_per_lane(const struct gen *g)
{
    static const int n[] = { 1, 4, 2 };
    const int words = state_words(g->p, NULL);
    return words <= 2 ? n[words] : 1;
}

/* What one lane sees of its tiles. */
struct lane_tiles {
    kb_val found;   /* bool: one of them has published a prefix, and all later ones have published */
    kb_val missing; /* bool: a tile that has not published comes before any prefix */
};

/* Combine the lane's tiles, `tile` the latest of them, back to the nearest prefix. */
static struct lane_tiles poll_tiles(struct gen *g, struct ticket t, kb_val tile, kb_tvar x)
{
    kb *k = g->k;
    const int n = tiles_per_lane(g);
    struct published s[4];
    struct lane_tiles r = { kb_false(k), kb_false(k) };
    for (int i = 0; i < n; i++)
        s[i] = tile_state_read(g, t, kb_max(k, kb_sub(k, tile, i), 0));
    for (int i = 0; i < n; i++) {
        const kb_val open = kb_and(k, kb_ge(k, kb_sub(k, tile, i), 0), kb_not(k, kb_or(k, r.found, r.missing)));
        if (i == 0) {
            kb_set(k, x, s[i].x);
        } else {
            kb_if(k, kb_and(k, open, s[i].there)) {
                kb_set(k, x, state_combine(g, s[i].x, kb_get(k, x)));
            }
        }
        r.missing = kb_or(k, r.missing, kb_and(k, open, kb_not(k, s[i].there)));
        r.found = kb_or(k, r.found, kb_and(k, open, kb_and(k, s[i].there, kb_eq(g->k, s[i].kind, TILE_PREFIX))));
    }
    return r;
}

/* The nearest lane of the window with a prefix (KB_WARP: none) once all tiles after it have published; what the lanes
 * see in *x. */
static kb_val wait_for_window(struct gen *g, struct ticket t, kb_val tile, kb_tvar x)
{
    kb *k = g->k;
    kb_var nearest = kb_var_new(k, kb_imm(k, TY_I32, KB_WARP), "nearest");
    nearest.uni = KB_UNI_WARP;
    kb_loop(k) {
        const struct lane_tiles s = poll_tiles(g, t, tile, x);
        const kb_val prefixes = kb_ballot(k, s.found);
        const kb_val missing = kb_ballot(k, s.missing);
        kb_set(k, nearest, kb_cast(k, kb_ctz(k, prefixes), TY_I32));
        /* What is older than the nearest prefix does not matter. */
        const kb_val matters = kb_sub(k, kb_and(k, prefixes, kb_neg(k, prefixes)), 1);
        kb_break_if(k, kb_eq(k, kb_and(k, missing, matters), 0));
        kb_backoff(k, BACKOFF_NANOSECONDS);
    }
    return kb_get(k, nearest);
}

/* The states of lanes last … 0 combined, higher lanes on the left; in lane 0. */
static kb_tup window_reduce(struct gen *g, kb_tup x, kb_val last)
{
    kb *k = g->k;
    for (int d = 1; d < KB_WARP; d *= 2) {
        const kb_tup older = kb_shfl_down(k, x, d);
        kb_tvar both = kb_var_new(k, x, "window");
        kb_if(k, kb_le(k, kb_add(k, kb_lane(k), d), last)) {
            kb_set(k, both, state_combine(g, older, x));
        }
        x = kb_get(k, both);
    }
    return x;
}

kb_tup tiles_before(struct gen *g, struct ticket t)
{
    kb *k = g->k;
    kb_var back = kb_var_new(k, kb_imm(k, TY_I32, 1), "back");
    back.uni = KB_UNI_WARP;
    struct run_var prefix = run_var_new(g, run_none(g));
    kb_loop(k) {
        kb_tvar x = kb_var_new(k, state_zero(g), "seen");
        const kb_val tile = kb_sub(k, kb_sub(k, t.tile, kb_get(k, back)), kb_mul(k, kb_lane(k), tiles_per_lane(g)));
        LET(nearest, wait_for_window(g, t, tile, x));
        const kb_tup window = window_reduce(g, kb_get(k, x), kb_min(k, nearest, KB_WARP - 1));
        const struct run older = run_of(g, window, kb_false(k));
        run_set(g, prefix, run_join(g, older, run_get(g, prefix)));
        kb_break_if(k, kb_lt(k, nearest, KB_WARP));
        kb_set(k, back, kb_add(k, kb_get(k, back), KB_WARP * tiles_per_lane(g)));
    }
    return kb_shfl_idx(k, kb_get(k, prefix.x), 0);
}

/* One thread: the states at back, back + step, … before `own`, up to the first that is not there; how many were, i32. */
static kb_val take_states(struct gen *g, struct ticket t, struct place own, kb_val step, kb_val back,
                          struct run_var prefix, kb_var found)
{
    kb *k = g->k;
    const int n = tiles_per_lane(g);
    struct published s[4];
    kb_val open = kb_true(k), taken = kb_imm(k, TY_I32, 0);
    for (int i = 0; i < n; i++) {
        kb_val word[2 * KB_TUP_MAX];
        struct place p = own;
        p.at = kb_max(k, kb_sub(k, own.at, kb_add(k, back, kb_mul(k, step, i))), 0);
        state_load(g, p, word);
        s[i] = state_of_words(g, t, word);
    }
    for (int i = 0; i < n; i++) {
        LET(here, kb_and(k, open, s[i].there));
        kb_if(k, here) {
            run_set(g, prefix, run_join(g, run_of(g, s[i].x, kb_false(k)), run_get(g, prefix)));
        }
        const kb_val last = kb_eq(k, s[i].kind, TILE_PREFIX);
        kb_set(k, found, kb_or(k, kb_get(k, found), kb_and(k, here, last)));
        open = kb_and(k, here, kb_not(k, last));
        taken = kb_select(k, here, kb_imm(k, TY_I32, i + 1), taken);
    }
    return taken;
}

kb_tup states_before(struct gen *g, struct ticket t, struct place own, kb_val step)
{
    kb *k = g->k;
    kb_var back = kb_var_new(k, step, "back"), found = kb_var_new(k, kb_false(k), "found");
    struct run_var prefix = run_var_new(g, run_none(g));
    kb_loop(k) {
        LET(taken, take_states(g, t, own, step, kb_get(k, back), prefix, found));
        kb_break_if(k, kb_get(k, found));
        kb_set(k, back, kb_add(k, kb_get(k, back), kb_mul(k, step, kb_cast(k, taken, TY_I64))));
        kb_if(k, kb_eq(k, taken, 0)) {
            kb_backoff(k, BACKOFF_NANOSECONDS);
        }
    }
    return kb_get(k, prefix.x);
}

struct run lookback(struct gen *g, struct ticket t, struct run total, kb_val alone)
{
    kb *k = g->k;
    kb_section(k, "lookback");
    LET(leader, kb_lane0(k));
    const kb_val final = kb_or(k, alone, total.cut);
    struct run before = { .some = kb_not(k, alone), .cut = kb_false(k) };
    kb_if(k, leader) {
        tile_publish(g, t, total.x, final);
    }
    kb_tvar prefix = kb_var_new(k, state_zero(g), "prefix");
    kb_if(k, kb_not(k, alone)) {
        const kb_tup found = tiles_before(g, t);
        kb_set(k, prefix, found);
        kb_if(k, kb_and(k, leader, kb_not(k, final))) {
            tile_publish(g, t, state_combine(g, found, total.x), kb_true(k));
        }
    }
    before.x = kb_get(k, prefix);
    return before;
}
