/* SPDX-License-Identifier: Apache-2.0 */
/* tile_state.h - tiles of one grid publish their totals (aggregates) and inclusive prefixes, and poll those of others.
 *
 * Buffer "states": the word of the tickets, then 8 bytes for each tile and 32-bit word of the state.
 */
#ifndef PTXGEN_TILE_STATE_H
#define PTXGEN_TILE_STATE_H

#include "llvmgen/shared/ticket.h"

extern const struct tickets tile_tickets, word_tickets; /* of buffers "states" and "words" */

/* What a block learns from its ticket. */
struct ticket {
    kb_val tile;  /* i32, block-uniform: 0, 1, … in the order in which blocks started */
    kb_val epoch; /* u32, block-uniform: number of this launch */
};
/* The whole block arrives: takes the block's ticket, one for each of `tiles`. */
struct ticket ticket_take_tile(struct gen *g, kb_val tiles);
/* The same for a block that takes several tickets: the word of the first one, shared in `slot`, which is free again on
 * return. */
kb_val ticket_take_first(struct gen *g, kb_ptr slot);
/* For grids that are resident as a whole: the tile is the block's number, and every thread reads the epoch; between the two, loads of
 * elements set out.  The builder takes the epoch for divergent; it is the same in all threads.  A block publishes after all its threads have read the
 * epoch; one thread that knows that all blocks have published starts the next epoch. */
kb_val ticket_fetch(struct gen *g);
struct ticket ticket_of_block(struct gen *g, kb_val fetched);
void ticket_next_epoch(struct gen *g, struct ticket t);
/* For blocks that take tickets until one is beyond the last of `tiles`.  `last` is the block's last ticket; if it is the
 * last of all blocks, thread 0 begins the next epoch. */
void tickets_used_up(struct gen *g, kb_val last, kb_val epoch, kb_val tiles);

/* Where the words of a state are: the first at words[skip + at], the others so far apart (i64). */
struct place {
    kb_ptr words;
    int skip;
    kb_val at, apart;
};
struct place place_at(struct gen *g, kb_val at, kb_val apart);
/* Words of one number lie side by side for all tiles. */
struct place place_of_tile(struct gen *g, kb_val tile);

/* What a tile has published. */
enum { TILE_TOTAL, TILE_PREFIX };
struct published {
    kb_val kind;  /* u32: TILE_TOTAL or TILE_PREFIX */
    kb_val there; /* bool: all words are of this launch, and belong together */
    kb_tup x;
};
/* One thread: publish a total, or (bool) an inclusive prefix. */
void state_publish(struct gen *g, struct ticket t, struct place p, kb_tup x, kb_val prefix);
/* The words (u64, state_words() of them), and what they say. */
void state_load(struct gen *g, struct place p, kb_val *word);
struct published state_of_words(struct gen *g, struct ticket t, const kb_val *word);

/* The same of tiles. */
void tile_publish(struct gen *g, struct ticket t, kb_tup x, kb_val prefix);
struct published tile_state_read(struct gen *g, struct ticket t, kb_val tile);
/* Wait for the total of an earlier tile. */
kb_tup tile_await(struct gen *g, struct ticket t, kb_val tile);

/* For totals of blocks: buffer "words", control memory, has first a cache line with the word of the tickets, then slots.
 * A slot has `spare` words of the caller, where `words` of its place points to, then 8 bytes for each 32-bit word of the
 * state. */
struct place place_in_slot(struct gen *g, int spare, kb_val slot);
/* One thread: publish a total with the tag of the launch, u32, which no earlier word has. */
void words_publish(struct gen *g, struct place p, kb_tup total, kb_val tag);
/* The whole block arrives.  Thread 0 gets the totals of `valid` slots from `first` on, combined in order; waits for those
 * that running blocks have not published yet. */
kb_tup words_gather(struct gen *g, int spare, kb_val first, kb_val valid, kb_val tag);

#endif
