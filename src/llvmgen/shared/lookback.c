/* SPDX-License-Identifier: Apache-2.0 */
/* lookback.c - decoupled look-back (Merrill and Garland, NVR-2016-002), without initialisation, fences or flags of its
 * own.
 *
 *     publish the tile's total;  if nothing before it matters, that is the prefix already
 *     window of 32 or 128 tiles before this one, some per lane, until one of them has published a prefix:
 *         wait until all from the nearest prefix on have published
 *         combine them in order, older ones on the left
 *     publish prefix * total as the prefix of the tiles that follow
 *
 * Note [Self-describing words]
 * A state is published as words of 64 bits: 32 bits of the state and a tag, 2 * epoch + (total: 0, prefix: 1).  A word
 * is written and read as a whole, so relaxed accesses are enough: whoever finds the same tag in all words of a tile has
 * words that were published together, since a tile publishes each tag once per launch.  Words of an earlier launch
 * carry an earlier epoch and count as not there, so nobody clears them.
 *
 * Note [Tickets and epochs]
 * Tiles are numbered in the order in which blocks start, which is what makes waiting for earlier tiles safe.  The
 * counter shares a word with the epoch, so one atomic addition gives both, and whoever draws the last ticket can start
 * the next epoch with the counter at zero: every other block has drawn already.  Epochs are 31 bits; a tile's word
 * would have to survive 2^31 launches that all have fewer tiles before it could be mistaken for a new one.
 *
 * Note [Where the counter lies]
 * The counter and the tiles' words are one buffer.  At addresses that have nothing to do with each other, scans of
 * medium size took a fifth longer in every other program, whatever the distance; side by side in none.  What fits is
 * that an address belongs to one of two halves of the second-level cache.
 */
#include "lookback.h"

/* ---- tickets ----------------------------------------------------------------------------------------------------- */

kb_ptr ticket_counter(struct gen *g) { return gen_buffer(g, "states", TY_U64); }

/* What thread 0 stored in the slot, for all threads. */
static struct ticket ticket_read(struct gen *g, kb_ptr slot)
{
    kb *k = g->k;
    kb_barrier(k);
    const kb_val drawn =
        kb_assume_uniform(kb_load(k, slot, kb_imm(k, TY_I32, 0)), KB_UNI_BLOCK); /* one word that all read */
    return (struct ticket){ kb_name(kb_cast(k, drawn, TY_I32), "tile"),
                            kb_name(kb_cast(k, kb_shr(k, drawn, 32), TY_U32), "epoch") };
}

struct ticket ticket_draw(struct gen *g, kb_val tiles)
{
    kb *k = g->k;
    const kb_ptr counter = ticket_counter(g), slot = kb_shared_v(k, TY_U64, 1, "ticket_slot");
    const kb_val zero = kb_imm(k, TY_I32, 0);
    kb_if(k, kb_eq(k, kb_tid(k), 0)) {
        const kb_val drawn = kb_atomic(k, KB_RMW_ADD, counter, zero, kb_imm(k, TY_U64, 1));
        kb_store(k, slot, zero, drawn);
        const kb_val number = kb_cast(k, drawn, TY_U32);
        kb_if(k, kb_eq(k, number, kb_sub(k, kb_cast(k, tiles, TY_U32), 1))) {
            const kb_val next_epoch = kb_add(k, kb_shr(k, drawn, 32), 1);
            if (kb_point(k, "next epoch"))
                kb_store_relaxed(k, counter, zero, kb_shl(k, next_epoch, 32));
        }
    }
    return ticket_read(g, slot);
}

struct ticket ticket_of_block(struct gen *g)
{
    kb *k = g->k;
    const kb_val zero = kb_imm(k, TY_I32, 0);
    const kb_val word = kb_shfl_idx(k, kb_load_relaxed(k, ticket_counter(g), zero), zero);
    return (struct ticket){ kb_block(k), kb_name(kb_cast(k, kb_shr(k, word, 32), TY_U32), "epoch") };
}

void ticket_next_epoch(struct gen *g, struct ticket t)
{
    kb *k = g->k;
    const kb_val next = kb_add(k, kb_cast(k, t.epoch, TY_U64), 1);
    if (kb_point(k, "next epoch"))
        kb_store_relaxed(k, ticket_counter(g), kb_imm(k, TY_I32, 0), kb_shl(k, next, 32));
}

/* ---- tile states ------------------------------------------------------------------------------------------------- */

enum { WORDS_MAX = 2 * KB_TUP_MAX };

static enum ty bits_of(enum ty t)
{
    static const enum ty type[] = { [1] = TY_U8, [2] = TY_U16, [4] = TY_U32, [8] = TY_U64 };
    return type[ty_bytes(t)];
}

static kb_val as_bits(kb *k, kb_val x)
{
    return x.ty == TY_BOOL ? kb_cast(k, x, TY_U8) : kb_bitcast(k, x, bits_of(x.ty));
}

static void pack(struct gen *g, kb_tup x, kb_val *word /* u32 */)
{
    kb *k = g->k;
    int offset[KB_TUP_MAX];
    const int n = scan_state_words(g->p, offset);
    for (int w = 0; w < n; w++)
        word[w] = kb_imm(k, TY_U32, 0);
    for (int f = 0; f < g->nfields; f++) {
        const kb_val bits = as_bits(k, x.e[f]);
        kb_val *to = &word[offset[f] / 4];
        if (bits.ty == TY_U64)
            to[1] = kb_cast(k, kb_shr(k, bits, 32), TY_U32);
        *to = kb_or(k, *to, kb_shl(k, kb_cast(k, bits, TY_U32), 8 * (offset[f] % 4)));
    }
}

static kb_tup unpack(struct gen *g, const kb_val *word)
{
    kb *k = g->k;
    int offset[KB_TUP_MAX];
    kb_tup x = { .n = g->nfields };
    scan_state_words(g->p, offset);
    for (int f = 0; f < g->nfields; f++) {
        const enum ty type = g->field[f];
        const kb_val *from = &word[offset[f] / 4];
        kb_val bits = kb_cast(k, kb_shr(k, *from, 8 * (offset[f] % 4)), bits_of(type));
        if (ty_bytes(type) == 8)
            bits = kb_or(k, kb_cast(k, from[0], TY_U64), kb_shl(k, kb_cast(k, from[1], TY_U64), 32));
        x.e[f] = type == TY_BOOL ? kb_ne(k, bits, 0) : kb_bitcast(k, bits, type);
    }
    return x;
}

/* Where the words of a tile are: the first at states[at], the others so far apart (i64). */
struct place {
    kb_val at, apart;
};

/* Words of one number lie side by side for all tiles. */
static struct place place_of(struct gen *g, kb_val tile)
{
    return (struct place){ tile, kb_cast(g->k, gen_value(g, "tiles"), TY_I64) };
}

/* Words of one number lie side by side for a window, first those that are their lane's first ones. */
static struct place place_in_window(struct gen *g, int each, kb_val first, kb_val lane, kb_val i)
{
    kb *k = g->k;
    const kb_val base = kb_mul(k, kb_cast(k, first, TY_I64), scan_state_words(g->p, NULL));
    const kb_val inside = kb_add(k, kb_mul(k, i, KB_WARP), lane);
    return (struct place){ kb_add(k, base, kb_cast(k, inside, TY_I64)), kb_imm(k, TY_I64, KB_WARP * each) };
}

static kb_ptr state_word(struct gen *g, struct place p, int w)
{
    const kb_ptr states =
        kb_advance(g->k, gen_buffer(g, "states", TY_U64), kb_imm(g->k, TY_I64, SCAN_COUNTER_BYTES / 8));
    return w ? kb_advance(g->k, states, kb_mul(g->k, p.apart, w)) : states;
}

enum { TOTAL, PREFIX };

static kb_val tag_of(struct gen *g, struct ticket t, int kind)
{
    return kb_add(g->k, kb_add(g->k, t.epoch, t.epoch), 2 + kind);
}

/* One lane. */
static void publish(struct gen *g, struct place p, kb_tup x, kb_val tag)
{
    kb *k = g->k;
    kb_val word[WORDS_MAX];
    const int n = scan_state_words(g->p, NULL);
    pack(g, x, word);
    for (int w = 0; w < n; w++) {
        const kb_val value = kb_shl(k, kb_cast(k, word[w], TY_U64), 32);
        kb_store_relaxed(k, state_word(g, p, w), p.at, kb_or(k, value, kb_cast(k, tag, TY_U64)));
    }
}

/* What a tile has published. */
struct seen {
    kb_val tag;   /* u32: TOTAL or PREFIX */
    kb_val there; /* bool: all words are of this launch, and belong together */
    kb_tup x;
};

static void load_words(struct gen *g, struct place p, kb_val *word /* u64 */)
{
    for (int w = 0; w < scan_state_words(g->p, NULL); w++)
        word[w] = kb_load_relaxed(g->k, state_word(g, p, w), p.at);
}

static struct seen make_out(struct gen *g, struct ticket t, const kb_val *word)
{
    kb *k = g->k;
    kb_val value[WORDS_MAX];
    struct seen s;
    const int n = scan_state_words(g->p, NULL);
    for (int w = 0; w < n; w++) {
        const kb_val tag = kb_cast(k, word[w], TY_U32);
        value[w] = kb_cast(k, kb_shr(k, word[w], 32), TY_U32);
        if (w == 0) {
            s.tag = kb_sub(k, tag, tag_of(g, t, TOTAL));
            s.there = kb_le(k, s.tag, PREFIX);
        } else {
            s.there = kb_and(k, s.there, kb_eq(k, kb_sub(k, tag, tag_of(g, t, TOTAL)), s.tag));
        }
    }
    s.x = unpack(g, value);
    return s;
}

static struct seen look(struct gen *g, struct ticket t, kb_val tile)
{
    kb_val word[WORDS_MAX];
    load_words(g, place_of(g, tile), word);
    return make_out(g, t, word);
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

/* Consecutive tiles that a lane looks at: one where states are large, since all of them are in flight at once. */
static int tiles_per_lane(const struct gen *g)
{
    static const int n[] = { 1, 4, 2 };
    const int words = scan_state_words(g->p, NULL);
    return words <= 2 ? n[words] : 1;
}

/* What one lane sees of its tiles. */
struct glance {
    kb_val found;   /* bool: one of them has published a prefix, and all later ones have published */
    kb_val missing; /* bool: one that is not there stands before any prefix */
};

/* Combine the lane's tiles, `tile` the latest of them, back to the nearest prefix. */
static struct glance glance_at(struct gen *g, struct ticket t, kb_val tile, kb_tvar x)
{
    kb *k = g->k;
    const int n = tiles_per_lane(g);
    struct seen s[4];
    struct glance r = { kb_imm(k, TY_BOOL, 0), kb_imm(k, TY_BOOL, 0) };
    for (int i = 0; i < n; i++)
        s[i] = look(g, t, kb_max(k, kb_sub(k, tile, i), 0));
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
        r.found = kb_or(k, r.found, kb_and(k, open, kb_and(k, s[i].there, kb_eq(k, s[i].tag, PREFIX))));
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
        const struct glance s = glance_at(g, t, tile, x);
        const kb_val prefixes = kb_ballot(k, s.found);
        const kb_val missing = kb_ballot(k, s.missing);
        kb_set(k, nearest, kb_cast(k, kb_ctz(k, prefixes), TY_I32));
        /* What is older than the nearest prefix does not matter. */
        const kb_val matters = kb_sub(k, kb_and(k, prefixes, kb_neg(k, prefixes)), 1);
        kb_break_if(k, kb_eq(k, kb_and(k, missing, matters), 0));
        kb_backoff(k, 20);
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
        const struct run older = run_of(g, window, kb_imm(k, TY_BOOL, 0));
        run_set(g, prefix, run_join(g, older, run_get(g, prefix)));
        kb_break_if(k, kb_lt(k, nearest, KB_WARP));
        kb_set(k, back, kb_add(k, kb_get(k, back), KB_WARP * tiles_per_lane(g)));
    }
    return kb_shfl_idx(k, kb_get(k, prefix.x), kb_imm(k, TY_I32, 0));
}

struct run lookback(struct gen *g, struct ticket t, struct run total, kb_val alone)
{
    kb *k = g->k;
    kb_section(k, "lookback");
    LET(leader, kb_eq(k, kb_lane(k), 0));
    const kb_val final = kb_or(k, alone, total.cut);
    struct run before = { .some = kb_not(k, alone), .cut = kb_imm(k, TY_BOOL, 0) };
    kb_if(k, leader) {
        publish(g, place_of(g, t.tile), total.x, kb_select(k, final, tag_of(g, t, PREFIX), tag_of(g, t, TOTAL)));
    }
    kb_tvar prefix = kb_var_new(k, state_zero(g), "prefix");
    kb_if(k, kb_not(k, alone)) {
        const kb_tup found = tiles_before(g, t);
        kb_set(k, prefix, found);
        kb_if(k, kb_and(k, leader, kb_not(k, final))) {
            publish(g, place_of(g, t.tile), state_combine(g, found, total.x), tag_of(g, t, PREFIX));
        }
    }
    before.x = kb_get(k, prefix);
    return before;
}

/* ---- without a search -------------------------------------------------------------------------------------------- */

void tile_publish(struct gen *g, struct ticket t, kb_tup total)
{
    publish(g, place_of(g, t.tile), total, tag_of(g, t, TOTAL));
}

void tile_publish_either(struct gen *g, struct ticket t, kb_tup x, kb_val prefix)
{
    publish(g, place_of(g, t.tile), x, kb_select(g->k, prefix, tag_of(g, t, PREFIX), tag_of(g, t, TOTAL)));
}

kb_val tile_look_either(struct gen *g, struct ticket t, kb_val tile, kb_tup *x, kb_val *prefix)
{
    const struct seen s = look(g, t, tile);
    *x = s.x;
    *prefix = kb_eq(g->k, s.tag, PREFIX);
    return s.there;
}

kb_val tile_look(struct gen *g, struct ticket t, kb_val tile, kb_tup *x)
{
    const struct seen s = look(g, t, tile);
    *x = s.x;
    return s.there;
}

kb_tup tile_await(struct gen *g, struct ticket t, kb_val tile)
{
    kb *k = g->k;
    kb_tvar x = kb_var_new(k, state_zero(g), "total");
    kb_loop(k) {
        const struct seen s = look(g, t, tile);
        kb_set(k, x, s.x);
        kb_break_if(k, s.there);
        kb_backoff(k, 20);
    }
    return kb_get(k, x);
}

/* ---- in windows -------------------------------------------------------------------------------------------------- */

/* A total with a cut is a prefix already. */
void total_publish(struct gen *g, struct ticket t, int each, struct run total)
{
    kb *k = g->k;
    if (scan_own_tiles(g->p)) {
        tile_publish(g, t, total.x);
        return;
    }
    LET(inside, kb_rem(k, t.tile, KB_WARP * each));
    const struct place p =
        place_in_window(g, each, kb_sub(k, t.tile, inside), kb_div(k, inside, each), kb_rem(k, inside, each));
    publish(g, p, total.x, kb_select(k, total.cut, tag_of(g, t, PREFIX), tag_of(g, t, TOTAL)));
}

void totals_load(struct gen *g, int each, kb_val first, kb_val count, int i, kb_val *word)
{
    kb *k = g->k;
    if (scan_own_tiles(g->p)) {
        const kb_val own = kb_add(k, kb_mul(k, kb_lane(k), each), i);
        load_words(g, place_of(g, kb_add(k, first, kb_min(k, own, kb_sub(k, count, 1)))), word);
    } else {
        load_words(g, place_in_window(g, each, first, kb_lane(k), kb_imm(k, TY_I32, i)), word);
    }
}

kb_val totals_see(struct gen *g, struct ticket t, const kb_val *word, struct run *x)
{
    kb *k = g->k;
    const struct seen s = make_out(g, t, word);
    *x = run_of(g, s.x, scan_marked(g->p) ? kb_eq(k, s.tag, PREFIX) : kb_imm(k, TY_BOOL, 0));
    return s.there;
}

/* Words of a state lie side by side. */
static struct place place_of_number(struct gen *g, kb_val number)
{
    kb *k = g->k;
    return (struct place){ kb_mul(k, number, scan_state_words(g->p, NULL)), kb_imm(k, TY_I64, 1) };
}

void state_publish(struct gen *g, struct ticket t, kb_val number, kb_tup x)
{
    publish(g, place_of_number(g, number), x, tag_of(g, t, TOTAL));
}

void state_publish_either(struct gen *g, struct ticket t, kb_val number, kb_tup x, kb_val prefix)
{
    publish(g, place_of_number(g, number), x, kb_select(g->k, prefix, tag_of(g, t, PREFIX), tag_of(g, t, TOTAL)));
}

kb_val state_see_either(struct gen *g, struct ticket t, const kb_val *word, kb_tup *x, kb_val *prefix)
{
    const struct seen s = make_out(g, t, word);
    *x = s.x;
    *prefix = kb_eq(g->k, s.tag, PREFIX);
    return s.there;
}

void state_words_load(struct gen *g, kb_val number, kb_val *word) { load_words(g, place_of_number(g, number), word); }
