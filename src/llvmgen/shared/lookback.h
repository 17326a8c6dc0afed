/* SPDX-License-Identifier: Apache-2.0 */
/* lookback.h - tiles of one grid pass their totals on: tickets, tile states, and the search for what comes before a
 * tile. */
#ifndef PTXGEN_LOOKBACK_H
#define PTXGEN_LOOKBACK_H

#include "llvmgen/scan/scan_gen.h"

/* What a block learns from its ticket. */
struct ticket {
    kb_val tile;  /* i32, block-uniform: 0, 1, … in the order in which blocks started */
    kb_val epoch; /* u32, block-uniform: number of this launch */
};
/* Epoch and number of tickets drawn (u64), at the beginning of the control buffer "states"; see Note [Where the counter
 * lies]. */
kb_ptr ticket_counter(struct gen *g);
/* Draw the block's ticket.  The whole block arrives. */
struct ticket ticket_draw(struct gen *g, kb_val tiles);

/* Publish the tile's total and find what comes before it; called by one whole warp, with the same arguments in all
 * lanes, and the result holds in all lanes.  Buffer "states": 8 bytes per tile and word of the state, behind
 * the counter.  `alone`: nothing before the tile goes into its first element; then there is no search. */
struct run lookback(struct gen *g, struct ticket t, struct run total, kb_val alone);

/* The block's number as its tile, for grids that are resident as a whole; every thread reads the epoch, which differs
 * from thread to thread for the builder but not in fact.  Whoever knows that all blocks have published, which they do
 * when all their threads have read the epoch, starts the next one (one thread). */
struct ticket ticket_of_block(struct gen *g);
void ticket_next_epoch(struct gen *g, struct ticket t);
/* Publish a tile's total (one thread), and wait for that of an earlier tile. */
void tile_publish(struct gen *g, struct ticket t, kb_tup total);
kb_tup tile_await(struct gen *g, struct ticket t, kb_val tile);
/* Has the tile published its total (bool)?  Then *x is it. */
kb_val tile_look(struct gen *g, struct ticket t, kb_val tile, kb_tup *x);
/* The same for totals and prefixes (bool), where tiles publish both. */
void tile_publish_either(struct gen *g, struct ticket t, kb_tup x, kb_val prefix);
kb_val tile_look_either(struct gen *g, struct ticket t, kb_val tile, kb_tup *x, kb_val *prefix);

/* Everything before the tile, back to the nearest one that has published a prefix; one whole warp, in all lanes.  Where
 * tiles publish prefixes only because segments begin in them, it is combined in the same order on every run. */
kb_tup tiles_before(struct gen *g, struct ticket t);

/* For whoever reads the totals of many tiles: windows of KB_WARP * `each` tiles, `each` consecutive ones per lane,
 * whose words lie so that the lanes of a warp read neighbouring ones; buffer "states" has whole windows.  Windows of
 * rows begin with any tile, so there they lie by the tiles' numbers. */
void total_publish(struct gen *g, struct ticket t, int each, struct run total);
/* All lanes: the words (u64, scan_state_words() of them) of the lane's tile i in the window that begins at tile
 * `first`, of whose tiles the first `count` matter (at least one); and what they say: has it published its total
 * (bool)?  Then *x is it. */
void totals_load(struct gen *g, int each, kb_val first, kb_val count, int i, kb_val *word);
kb_val totals_see(struct gen *g, struct ticket t, const kb_val *word, struct run *x);
/* The same for totals that have numbers (i64) of their own, whoever makes them up; totals_see() reads those words too.
 */
void state_publish(struct gen *g, struct ticket t, kb_val number, kb_tup x);
void state_words_load(struct gen *g, kb_val number, kb_val *word);
/* The same for totals and prefixes (bool), where both are published. */
void state_publish_either(struct gen *g, struct ticket t, kb_val number, kb_tup x, kb_val prefix);
kb_val state_see_either(struct gen *g, struct ticket t, const kb_val *word, kb_tup *x, kb_val *prefix);

#endif
