/* SPDX-License-Identifier: Apache-2.0 */
/* few_columns_look.c - look-back of scan.pipeline down a few columns, in place of the look-ahead: see few_columns.c. */
#include "few_columns.h"

enum { TILES = 8, LOADS = 16, LOADS_OF_LARGE = 12 };

/* Tiles that a warp looks at, all of them in flight: fewer where their words would take too many registers. */
static int tiles_at_once(const struct gen *g)
{
    const int words = state_words(g->p, NULL), loads = words > 2 ? LOADS_OF_LARGE : LOADS;
    const int fit = words < loads ? loads / words : 1;
    return fit < TILES ? fit : TILES;
}

/* A lane has a column; the last one stands for those that do not exist. */
static kb_val lane_column(struct gen *g, const struct columns_shape *s)
{
    return kb_min(g->k, kb_lane(g->k), kb_sub(g->k, s->columns, 1));
}

static kb_val number_of(struct gen *g, const struct columns_shape *s, kb_val tile, kb_val column)
{
    kb *k = g->k;
    const kb_val first = kb_mul(k, kb_cast(k, tile, TY_I64), kb_cast(k, s->columns, TY_I64));
    return kb_add(k, first, kb_cast(k, column, TY_I64));
}

/* What the lane sees of its column in the tiles `back` (at least 1), back + 1, … before this one, up to the nearest
 * prefix; *ends: there is one.  Waits for these tiles.  All lanes. */
static kb_tup glance(struct gen *g, const struct scan_ring_tile *t, const struct columns_shape *s, kb_val back,
                     kb_var ends)
{
    kb *k = g->k;
    const int n = tiles_at_once(g);
    const kb_val column = lane_column(g, s);
    kb_tvar seen = kb_var_new(k, state_zero(g), "seen");
    kb_loop(k) {
        kb_val word[TILES][COLUMNS_WORDS_MAX], missing = kb_false(k), end = missing;
        kb_tup x = { 0 };
        for (int i = 0; i < n; i++) { /* the first tile stands for those before it: it has a prefix */
            const kb_val tile = kb_max(k, kb_sub(k, t->ticket.tile, kb_add(k, back, i)), 0);
            state_load(g, columns_words_at(g, number_of(g, s, tile, column)), word[i]);
        }
        for (int i = 0; i < n; i++) {
            const struct published of = state_of_words(g, t->ticket, word[i]);
            const kb_val prefix = kb_eq(g->k, of.kind, TILE_PREFIX);
            missing = kb_or(k, missing, kb_not(k, kb_or(k, end, of.there)));
            x = i ? kb_select(k, end, x, state_combine(g, of.x, x)) : of.x;
            end = kb_or(k, end, prefix);
        }
        kb_set(k, seen, x);
        kb_set(k, ends, end);
        kb_break_if(k, kb_not(k, kb_any(k, missing)));
        kb_backoff(k, BACKOFF_NANOSECONDS);
    }
    return kb_get(k, seen);
}

void columns_look(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val own)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const struct columns_shape s = columns_shape_of(g);
    LET(of, kb_add(k, kb_mul(k, t->stage, r->looks), own));
    kb_var ends = kb_var_new(k, kb_false(k), "ends");
    const kb_tup seen = glance(g, t, &s, kb_add(k, kb_mul(k, own, tiles_at_once(g)), 1), ends);
    const kb_val end = kb_ballot(k, kb_get(k, ends));
    kb_store(k, r->seen, kb_add(k, kb_mul(k, of, KB_WARP), kb_lane(k)), seen);
    kb_if(k, kb_lane0(k)) {
        kb_store(k, r->ends, of, end);
    }
}

/* All that comes before the tile in the lane's column: what the warps have seen, and further back one of them looks
 * alone. */
static kb_tup before_tile(const struct scan_ring *r, const struct scan_ring_tile *t, const struct columns_shape *s)
{
    struct gen *g = r->g;
    kb *k = g->k;
    kb_var done = kb_var_new(k, kb_false(k), "done"), ends = kb_var_new(k, kb_get(k, done), "ends");
    kb_tvar before = kb_var_new(k, state_zero(g), "before");
    for (int w = 0; w < r->looks; w++) {
        const kb_val of = kb_add(k, kb_mul(k, t->stage, r->looks), w);
        const kb_tup seen = kb_load(k, r->seen, kb_add(k, kb_mul(k, of, KB_WARP), kb_lane(k)));
        const kb_tup x = w ? state_combine(g, seen, kb_get(k, before)) : seen;
        const kb_val end = kb_shr(k, kb_load(k, r->ends, of), kb_cast(k, kb_lane(k), TY_U32));
        kb_set(k, before, kb_select(k, kb_get(k, done), kb_get(k, before), x));
        kb_set(k, done, kb_or(k, kb_get(k, done), kb_ne(k, kb_and(k, end, 1), 0)));
    }
    kb_var back = kb_var_new(k, kb_imm(k, TY_I32, r->looks * tiles_at_once(g) + 1), "back");
    back.uni = KB_UNI_WARP;
    kb_loop(k) {
        kb_break_if(k, kb_all(k, kb_get(k, done)));
        const kb_tup x = state_combine(g, glance(g, t, s, kb_get(k, back), ends), kb_get(k, before));
        kb_set(k, before, kb_select(k, kb_get(k, done), kb_get(k, before), x));
        kb_set(k, done, kb_or(k, kb_get(k, done), kb_get(k, ends)));
        kb_set(k, back, kb_add(k, kb_get(k, back), tiles_at_once(g)));
    }
    return kb_get(k, before);
}

void columns_before(const struct scan_ring *r, const struct scan_ring_tile *t)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const struct columns_shape s = columns_shape_of(g);
    const kb_tup before = before_tile(r, t, &s);
    kb_if(k, kb_lt(k, kb_lane(k), s.columns)) {
        const kb_val at = kb_add(k, kb_mul(k, t->stage, s.states), kb_lane(k));
        kb_if(k, kb_gt(k, t->index, 0)) {
            const kb_tup upto = state_combine(g, before, kb_load(k, r->total, at));
            const kb_val number = number_of(g, &s, t->ticket.tile, kb_lane(k));
            state_publish(g, t->ticket, columns_words_at(g, number), upto, kb_true(k));
        }
        kb_store(k, r->prefix, at, before);
    }
}
