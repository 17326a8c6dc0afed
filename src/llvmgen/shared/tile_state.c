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

enum { STATE_WORDS_MAX = 2 * KB_TUP_MAX };

/* ---- tickets of tiles -------------------------------------------------------------------------------------------- */

const struct tickets tile_tickets = { BUF_STATES, 32 }, word_tickets = { BUF_WORDS, 32 /* for any grid */ };

/* The word of a ticket that thread 0 takes.  tiles: the last ticket of so many begins the next epoch; or NULL. */
static kb_val take_for_all(struct gen *g, kb_ptr slot, const kb_val *tiles)
{
    kb *k = g->k;
    kb_if(k, kb_thread0(k)) {
        const kb_val word = ticket_take(g, &tile_tickets);
        ticket_share(g, slot, word);
        if (tiles)
            ticket_last_begins_next(g, &tile_tickets, word, *tiles);
    }
    kb_barrier(k);
    return ticket_shared(g, slot);
}

static kb_val epoch_of(kb *k, kb_val word) { return kb_name(kb_cast(k, kb_shr(k, word, 32), TY_U32), "epoch"); }

struct ticket ticket_take_tile(struct gen *g, kb_val tiles)
{
    const kb_val word = take_for_all(g, ticket_slot(g), &tiles);
    const kb_val tile = kb_name(kb_cast(g->k, word, TY_I32), "tile");
    return (struct ticket){ tile, epoch_of(g->k, word) };
}

kb_val ticket_take_first(struct gen *g, kb_ptr slot)
{
    const kb_val word = take_for_all(g, slot, NULL);
    kb_barrier(g->k); /* all have read it */
    return word;
}

kb_val ticket_fetch(struct gen *g) { return kb_load_relaxed(g->k, gen_buffer(g, tile_tickets.buffer, TY_U64), 0); }

struct ticket ticket_of_block(struct gen *g, kb_val fetched)
{
    const kb_val word = kb_shfl_idx(g->k, fetched, 0), block = kb_block(g->k);
    return (struct ticket){ block, epoch_of(g->k, word) };
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

/* A state as words of 32 bits, words_of() them, and back. */
static void state_pack(struct gen *g, kb_tup x, kb_val *word)
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

static kb_tup state_unpack(struct gen *g, const kb_val *word)
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

struct place place_at(struct gen *g, kb_val at, kb_val apart)
{
    return (struct place){ gen_buffer(g, BUF_STATES, TY_U64), LAUNCH_LINE_BYTES / 8, at, apart };
}

struct place place_of_tile(struct gen *g, kb_val tile)
{
    return place_at(g, tile, kb_cast(g->k, gen_value(g, VAL_TILES), TY_I64));
}

struct place place_in_slot(struct gen *g, int spare, kb_val slot)
{
    kb *k = g->k;
    const kb_val first = kb_mul(k, kb_cast(k, slot, TY_I64), spare + words_of(g, NULL));
    const kb_ptr words = kb_advance(k, gen_buffer(g, BUF_WORDS, TY_U64), kb_add(k, first, LAUNCH_LINE_BYTES / 8));
    return (struct place){ words, 0, kb_imm(k, TY_I64, spare), kb_imm(k, TY_I64, 1) };
}

static kb_ptr word_place(struct gen *g, struct place p, int w)
{
    const kb_ptr words = p.skip ? kb_advance(g->k, p.words, kb_imm(g->k, TY_I64, p.skip)) : p.words;
    return w ? kb_advance(g->k, words, kb_mul(g->k, p.apart, w)) : words;
}

static kb_val tag_of(struct gen *g, struct ticket t, int kind)
{
    return kb_add(g->k, kb_add(g->k, t.epoch, t.epoch), 2 + kind);
}

void words_publish(struct gen *g, struct place p, kb_tup total, kb_val tag)
{
    kb *k = g->k;
    kb_val value[STATE_WORDS_MAX];
    state_pack(g, total, value);
    for (int w = 0; w < words_of(g, NULL); w++) {
        const kb_val high = kb_shl(k, kb_cast(k, value[w], TY_U64), 32);
        const kb_val word = kb_or(k, high, kb_cast(k, tag, TY_U64));
        kb_store_relaxed(k, word_place(g, p, w), p.at, word);
    }
}

void state_publish(struct gen *g, struct ticket t, struct place p, kb_tup x, kb_val prefix)
{
    words_publish(g, p, x, kb_select(g->k, prefix, tag_of(g, t, TILE_PREFIX), tag_of(g, t, TILE_TOTAL)));
}

void state_load(struct gen *g, struct place p, kb_val *word)
{
    for (int w = 0; w < words_of(g, NULL); w++)
        word[w] = kb_load_relaxed(g->k, word_place(g, p, w), p.at);
}

struct published state_of_words(struct gen *g, struct ticket t, const kb_val *word)
{
    kb *k = g->k;
    kb_val value[STATE_WORDS_MAX];
    struct published s;
    const int n = words_of(g, NULL);
    for (int w = 0; w < n; w++) {
        const kb_val tag = kb_cast(k, word[w], TY_U32);
        value[w] = kb_cast(k, kb_shr(k, word[w], 32), TY_U32);
        const kb_val kind = kb_sub(k, tag, tag_of(g, t, TILE_TOTAL));
        s.there = w ? kb_and(k, s.there, kb_eq(k, kind, s.kind)) : kb_le(k, kind, TILE_PREFIX);
        s.kind = w ? s.kind : kind;
    }
    s.x = state_unpack(g, value);
    return s;
}

struct published tile_state_read(struct gen *g, struct ticket t, kb_val tile)
{
    kb_val word[STATE_WORDS_MAX];
    state_load(g, place_of_tile(g, tile), word);
    return state_of_words(g, t, word);
}

/* ---- of one tile ------------------------------------------------------------------------------------------------- */

void tile_publish(struct gen *g, struct ticket t, kb_tup x, kb_val prefix)
{
    state_publish(g, t, place_of_tile(g, t.tile), x, prefix);
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

/* ---- in slots of blocks ------------------------------------------------------------------------------------------ */

struct slots {
    int spare;
    kb_val tag;
};

/* One thread: wait until all words of a slot bear the tag. */
static kb_tup collect(struct gen *g, const void *what, kb_val slot)
{
    kb *k = g->k;
    const struct slots *s = what;
    const struct place p = place_in_slot(g, s->spare, slot);
    const int n = words_of(g, NULL);
    kb_var seen[STATE_WORDS_MAX];
    kb_val value[STATE_WORDS_MAX];
    for (int w = 0; w < n; w++)
        seen[w] = kb_var_new(k, kb_imm(k, TY_U32, 0), "word");
    kb_loop(k) {
        kb_val all = kb_true(k);
        for (int w = 0; w < n; w++) {
            const kb_val word = kb_load_relaxed(k, word_place(g, p, w), p.at);
            kb_set(k, seen[w], kb_cast(k, kb_shr(k, word, 32), TY_U32));
            all = kb_and(k, all, kb_eq(k, kb_cast(k, word, TY_U32), s->tag));
        }
        kb_break_if(k, all);
        kb_backoff(k, BACKOFF_NANOSECONDS);
    }
    for (int w = 0; w < n; w++)
        value[w] = kb_get(k, seen[w]);
    return state_unpack(g, value);
}

kb_tup words_gather(struct gen *g, int spare, kb_val first, kb_val valid, kb_val tag)
{
    return block_gather(g, first, valid, collect, &(struct slots){ spare, tag });
}
