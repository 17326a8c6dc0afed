/* SPDX-License-Identifier: Apache-2.0 */
/* tile.h - one block's tile of a scan whose tiles depend on one another; strategies differ in how the prefix
 * comes. */
#ifndef PTXGEN_SCAN_TILE_H
#define PTXGEN_SCAN_TILE_H

#include "llvmgen/shared/tile_state.h"
#include "scan_gen.h"

struct tile {
    kb_val number;    /* i32, block-uniform */
    kb_val alone;     /* bool, block-uniform: nothing before the tile goes into its first element */
    struct run total; /* of the tile, in all threads */
    struct run
        in_tile[SCAN_ITEMS_MAX]; /* what comes before the thread within the tile, or before each of its stretches */
    struct aggregates aggregates;
    kb_val index;                /* i32, of the tile in `segment` */
    struct scan_segment segment; /* the tile's own, or the positions of all segments as one sequence */
    struct items items;
};
/* Elements of a tile. */
int tile_size(const struct gen *g);
/* Tiles may have cuts: rows, or flags. */
bool tile_cuts(const struct gen *g);
/* Load the positions of tile `number`, combine them in every thread and over the block.  The whole block arrives. */
void tile_load(struct gen *g, struct tile *t, kb_val number);
/* The same where segments begin at places that `mark` finds: it sets head, from and to of *h, and may clear h->full.
 * The whole block arrives in it. */
void tile_load_marked(struct gen *g, struct tile *t, kb_val number, void (*mark)(struct gen *g, struct items *h));
/* The same of the block's own tile, and its ticket; every row has tiles of its own, one row's after another's: value "per_segment", unless the whole array
 * is a single segment.  Operators read what belongs to the row, as long as *t lives. */
void tile_load_own(struct gen *g, struct tile *t, struct ticket *ticket);
/* Scan and store the positions, and the totals of segments that end here.  The whole block arrives. */
void tile_finish(struct gen *g, struct tile *t, struct run before);
/* Segments in lines, by teams that wait for no other team (segscan/rows.c). */
void scan_by_teams(struct gen *g);
/* Tiles of all rows, in turns, until none is left (segscan/in_turns.c). */
void tiles_in_turns(struct gen *g, void *of);
/* The prefix of the tile by look-back of the first warp, for all threads.  The whole block arrives. */
struct run tile_prefix(struct gen *g, struct tile *t, struct ticket ticket);

#endif
