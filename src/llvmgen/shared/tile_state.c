/* SPDX-License-Identifier: Apache-2.0 */
/* tile_state.c - the states of tiles, without initialisation, fences or flags of their own.
 *
 * Note [Self-describing words]
 * A state is published as words of 64 bits: 32 bits of the state and a tag, 2 * epoch + (total: 0, prefix: 1).  A word
 * is written and read as a whole, so relaxed accesses are enough: a reader that finds the same tag in all words of a
 * tile has words that were published together, since a tile publishes each tag once per launch.  Words of an earlier
 * launch have an earlier epoch and count as not there, so they are never cleared.
 *
 * Note [Tickets and epochs]
 * Tiles are numbered in the order in which blocks start.  So the blocks of earlier tiles run already, and waiting for
 * them is safe.  Epochs have 31 bits: an old word could be mistaken for a new one only after 2^31 launches that all have
 * fewer tiles.
 *
 * Note [Where the counter lies]
 * The counter and the tiles' words are one buffer.  With the counter elsewhere, scans of medium size took a fifth longer
 * in every second program, whatever the distance; with the counter beside the words, in none.  The likely reason: an
 * address belongs to one of two halves of the second-level cache.
 */
#include "tile_state.h"

/* ---- tickets of tiles -------------------------------------------------------------------------------------------- */

const struct tickets tile_tickets = { "states", 32 };

struct ticket ticket_take_tile(struct gen *g, kb_val tiles)
{
    kb *k = g->k;
    const kb_ptr slot = ticket_slot(g);
    kb_if(k, kb_thread0(k)) {
        const kb_val word = ticket_take(g, &tile_tickets);
        ticket_share(g, slot, word);
        ticket_last_begins_next(g, &tile_tickets, word, tiles);
    }
    kb_barrier(k);
    const kb_val word = ticket_shared(g, slot);
    return (struct ticket){ kb_name(kb_cast(k, word, TY_I32), "tile"),
                            kb_name(kb_cast(k, kb_shr(k, word, 32), TY_U32), "epoch") };
}

kb_val ticket_take_first(struct gen *g, kb_ptr slot)
{
    kb *k = g->k;
    kb_if(k, kb_thread0(k)) {
        ticket_share(g, slot, ticket_take(g, &tile_tickets));
    }
    kb_barrier(k);
    const kb_val word = ticket_shared(g, slot);
    kb_barrier(k); /* all have read it */
    return word;
}

kb_val ticket_fetch(struct gen *g) { return kb_load_relaxed(g->k, gen_buffer(g, tile_tickets.buffer, TY_U64), 0); }

struct ticket ticket_of_block(struct gen *g, kb_val fetched)
{
    kb *k = g->k;
    const kb_val word = kb_shfl_idx(k, fetched, 0);
    return (struct ticket){ kb_block(k), kb_name(kb_cast(k, kb_shr(k, word, 32), TY_U32), "epoch") };
}

void ticket_next_epoch(struct gen *g, struct ticket t)
{
    ticket_next_launch(g, &tile_tickets, kb_cast(g->k, t.epoch, TY_U64));
}

void tickets_used_up(struct gen *g, kb_val last, kb_val epoch, kb_val tiles)
{
    kb *k = g->k;
    const kb_val taken = kb_add(k, kb_cast(k, tiles, TY_U32), kb_cast(k, kb_blocks(k), TY_U32));
    kb_if(k, kb_and(k, kb_thread0(k), kb_eq(k, last, kb_sub(k, taken, 1)))) {
        ticket_next_epoch(g, (struct ticket){ .epoch = epoch });
    }
}

/* ---- tile states ------------------------------------------------------------------------------------------------- */

/* Of the types that states have in this kernel: in some, counters are narrow. */
static int words_of(const struct gen *g, int *offset) { return fields_words(g->field, g->nfields, offset); }

void state_pack(struct gen *g, kb_tup x, kb_val *word)
{
    kb *k = g->k;
    int offset[KB_TUP_MAX];
    const int n = words_of(g, offset);
    for (int w = 0; w < n; w++)
        word[w] = kb_imm(k, TY_U32, 0);
    for (int f = 0; f < g->nfields; f++) {
        const kb_val bits = field_bits(k, x.e[f]);
        kb_val *to = &word[offset[f] / 4];
        if (bits.ty == TY_U64)
            to[1] = kb_cast(k, kb_shr(k, bits, 32), TY_U32);
        *to = kb_or(k, *to, kb_shl(k, kb_cast(k, bits, TY_U32), 8 * (offset[f] % 4)));
    }
}

kb_tup state_unpack(struct gen *g, const kb_val *word)
{
    kb *k = g->k;
    int offset[KB_TUP_MAX];
    kb_tup x = { .n = g->nfields };
    words_of(g, offset);
    for (int f = 0; f < g->nfields; f++) {
        const enum ty type = g->field[f];
        const kb_val *from = &word[offset[f] / 4];
        kb_val bits = kb_shr(k, *from, 8 * (offset[f] % 4));
        if (ty_bytes(type) == 8)
            bits = kb_or(k, kb_cast(k, from[0], TY_U64), kb_shl(k, kb_cast(k, from[1], TY_U64), 32));
        if (type == TY_BOOL)
            bits = kb_cast(k, bits, TY_U8); /* other fields lie above */
        x.e[f] = field_from_bits(k, bits, type);
    }
    return x;
}

kb_val state_word(struct gen *g, kb_val value, kb_val tag)
{
    kb *k = g->k;
    const kb_val high = kb_shl(k, kb_cast(k, value, TY_U64), 32);
    return kb_or(k, high, kb_cast(k, tag, TY_U64));
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
    const kb_val base = kb_mul(k, kb_cast(k, first, TY_I64), words_of(g, NULL));
    const kb_val inside = kb_add(k, kb_mul(k, i, KB_WARP), lane);
    return (struct place){ kb_add(k, base, kb_cast(k, inside, TY_I64)), kb_imm(k, TY_I64, KB_WARP * each) };
}

static kb_ptr word_place(struct gen *g, struct place p, int w)
{
    const kb_ptr states =
        kb_advance(g->k, gen_buffer(g, "states", TY_U64), kb_imm(g->k, TY_I64, SCAN_COUNTER_BYTES / 8));
    return w ? kb_advance(g->k, states, kb_mul(g->k, p.apart, w)) : states;
}

static kb_val tag_of(struct gen *g, struct ticket t, int kind)
{
    return kb_add(g->k, kb_add(g->k, t.epoch, t.epoch), 2 + kind);
}

/* One lane. */
static void publish(struct gen *g, struct place p, kb_tup x, kb_val prefix, struct ticket t)
{
    kb *k = g->k;
    const kb_val tag = kb_select(k, prefix, tag_of(g, t, TILE_PREFIX), tag_of(g, t, TILE_TOTAL));
    kb_val word[STATE_WORDS_MAX];
    const int n = words_of(g, NULL);
    state_pack(g, x, word);
    for (int w = 0; w < n; w++)
        kb_store_relaxed(k, word_place(g, p, w), p.at, state_word(g, word[w], tag));
}

static void load_words(struct gen *g, struct place p, kb_val *word /* u64 */)
{
    for (int w = 0; w < words_of(g, NULL); w++)
        word[w] = kb_load_relaxed(g->k, word_place(g, p, w), p.at);
}

struct published tile_state_of_words(struct gen *g, struct ticket t, const kb_val *word)
{
    kb *k = g->k;
    kb_val value[STATE_WORDS_MAX];
    struct published s;
    const int n = words_of(g, NULL);
    for (int w = 0; w < n; w++) {
        const kb_val tag = kb_cast(k, word[w], TY_U32);
        value[w] = kb_cast(k, kb_shr(k, word[w], 32), TY_U32);
        if (w == 0) {
            s.kind = kb_sub(k, tag, tag_of(g, t, TILE_TOTAL));
            s.there = kb_le(k, s.kind, TILE_PREFIX);
        } else {
            s.there = kb_and(k, s.there, kb_eq(k, kb_sub(k, tag, tag_of(g, t, TILE_TOTAL)), s.kind));
        }
    }
    s.x = state_unpack(g, value);
    return s;
}

struct published tile_state_read(struct gen *g, struct ticket t, kb_val tile)
{
    kb_val word[STATE_WORDS_MAX];
    load_words(g, place_of(g, tile), word);
    return tile_state_of_words(g, t, word);
}

/* ---- of one tile ------------------------------------------------------------------------------------------------- */

void tile_publish(struct gen *g, struct ticket t, kb_tup x, kb_val prefix)
{
    publish(g, place_of(g, t.tile), x, prefix, t);
}

kb_tup tile_await(struct gen *g, struct ticket t, kb_val tile)
{
    kb *k = g->k;
    kb_tvar x = kb_var_new(k, state_zero(g), "total");
    kb_loop(k) {
        const struct published s = tile_state_read(g, t, tile);
        kb_set(k, x, s.x);
        kb_break_if(k, s.there);
        kb_backoff(k, BACKOFF_NANOSECONDS);
    }
    return kb_get(k, x);
}

/* ---- in windows -------------------------------------------------------------------------------------------------- */

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
    publish(g, p, total.x, total.cut, t);
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

kb_val totals_read(struct gen *g, struct ticket t, const kb_val *word, struct run *x)
{
    const struct published s = tile_state_of_words(g, t, word);
    *x = run_of(g, s.x, scan_marked(g->p) ? published_prefix(g, &s) : kb_false(g->k));
    return s.there;
}

/* Words of a state lie side by side. */
static struct place place_of_number(struct gen *g, kb_val number)
{
    kb *k = g->k;
    return (struct place){ kb_mul(k, number, words_of(g, NULL)), kb_imm(k, TY_I64, 1) };
}

void state_publish(struct gen *g, struct ticket t, kb_val number, kb_tup x, kb_val prefix)
{
    publish(g, place_of_number(g, number), x, prefix, t);
}

void state_words_load(struct gen *g, kb_val number, kb_val *word) { load_words(g, place_of_number(g, number), word); }
