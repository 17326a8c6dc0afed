/* SPDX-License-Identifier: Apache-2.0 */
/* bins_hot.c - bins that many lanes of a warp have at once.
 *
 *     merged    equal bins are combined first, and the lowest lane of each updates the table
 *     hot       one such bin stays in registers, each lane with what it has of it
 *     crowded   several: the elements of a tile are merged, until no bin but the hot one is frequent
 */
#include "bins.h"

kb_val bins_merge(struct bins *b, kb_val bin, kb_tup x)
{
    kb *k = b->g->k;
    LET(peers, kb_match(k, bin));
    const bool count = bins_count(b->g->p);
    const kb_tup sum = count ? state_times(k, x, kb_popcount(k, peers))
                             : peers_combine(b->g, kb_cast(k, kb_ctz(k, peers_above(k, peers)), TY_I32), true, x);
    kb_if(k, kb_and(k, kb_ge(k, bin, 0), kb_eq(k, peers_below(k, peers), 0))) {
        bins_update(b, bin, sum);
    }
    return peers;
}

/* Updates of one word by many lanes take turns.  So a warp keeps a bin that at least HOT_LANES of its lanes had at once
 * in registers, each lane what it has of it.  If as many lanes share another bin, the tile is crowded.  Once a tile the
 * warp looks whether all this is so still. */
enum { HOT_LANES = 4 };

/* What no element has come to. */
static kb_tup no_elements(struct bins *b)
{
    kb_val word[STATE_FIELDS_MAX];
    for (int w = 0; w < bins_words(b->g->p); w++)
        word[w] = kb_imm(b->g->k, b->table[w].ty, 0);
    return decode_words(b->g, word);
}

void bins_hot_begin(struct bins *b)
{
    kb *k = b->g->k;
    if (!b->hot)
        return;
    b->hot_bin = kb_var_new(k, kb_imm(k, TY_I32, -1), "hot_bin");
    b->hot_sum = kb_var_new(k, no_elements(b), "hot_sum");
    b->crowded = kb_var_new(k, kb_false(k), "crowded");
}

void bins_hot_end(struct bins *b)
{
    kb *k = b->g->k;
    if (!b->hot)
        return;
    LET(bin, kb_get(k, b->hot_bin));
    const kb_tup sum = warp_reduce(b->g, kb_get(k, b->hot_sum), KB_WARP, valid_all());
    kb_if(k, kb_and(k, kb_lane0(k), kb_ge(k, bin, 0))) {
        bins_update(b, bin, sum);
    }
    kb_set(k, b->hot_sum, no_elements(b));
}

/* How many lanes have the bin of that one? */
static kb_val lanes_like(kb *k, kb_val bin, int lane, kb_val *theirs)
{
    *theirs = kb_shfl_idx(k, bin, lane);
    return kb_cast(k, kb_popcount(k, kb_ballot(k, kb_eq(k, bin, *theirs))), TY_I32);
}

/* Takes the bin of the first lane where many have that, and few the one that is in registers.  The whole warp arrives;
 * bin -1: none. */
static void hot_choose(struct bins *b, kb_val bin)
{
    kb *k = b->g->k;
    kb_val first;
    LET(now, kb_popcount(k, kb_ballot(k, kb_eq(k, bin, kb_get(k, b->hot_bin)))));
    LET(then, lanes_like(k, bin, 0, &first));
    LET(better, kb_and(k, kb_ge(k, first, 0),
                       kb_and(k, kb_lt(k, kb_cast(k, now, TY_I32), HOT_LANES), kb_ge(k, then, HOT_LANES))));
    kb_if(k, kb_any(k, better)) {
        bins_hot_end(b);
        kb_set(k, b->hot_bin, first);
    }
}

/* Have many lanes the bin of one that has another than that in registers? */
static void crowd_begin(struct bins *b, kb_val bin)
{
    kb *k = b->g->k;
    kb_val other;
    LET(beside, lanes_like(k, bin, KB_WARP / 2, &other));
    LET(cold, kb_and(k, kb_ge(k, other, 0), kb_ne(k, other, kb_get(k, b->hot_bin))));
    kb_set(k, b->crowded, kb_any(k, kb_and(k, cold, kb_ge(k, beside, HOT_LANES))));
}

/* Merged until no bin but that in registers has many lanes. */
static void update_crowded(struct bins *b, kb_val bin, kb_val cold, kb_tup x)
{
    kb *k = b->g->k;
    LET(peers, kb_popcount(k, bins_merge(b, kb_select(k, cold, bin, kb_imm(k, TY_I32, -1)), x)));
    kb_set(k, b->crowded, kb_any(k, kb_and(k, cold, kb_ge(k, kb_cast(k, peers, TY_I32), HOT_LANES))));
}

void bins_hot_look(struct bins *b, kb_val bin)
{
    hot_choose(b, bin);
    crowd_begin(b, bin);
}

void bins_add_hot(struct bins *b, kb_val bin, kb_val inside, kb_tup x, int turn)
{
    kb *k = b->g->k;
    const kb_val own = kb_select(k, inside, bin, kb_imm(k, TY_I32, -1));
    if (turn == BINS_FIRST)
        bins_hot_look(b, own);
    else if (turn & BINS_FIRST)
        hot_choose(b, own);
    LET(hot, kb_and(k, inside, kb_eq(k, bin, kb_get(k, b->hot_bin))));
    const kb_tup sum = kb_get(k, b->hot_sum);
    kb_set(k, b->hot_sum, kb_select(k, hot, state_combine(b->g, sum, x), sum));
    LET(cold, kb_and(k, inside, kb_not(k, hot)));
    if (turn & BINS_CROWDED) {
        update_crowded(b, bin, cold, x);
        return;
    }
    kb_if(k, cold) {
        bins_update(b, bin, x);
    }
}
