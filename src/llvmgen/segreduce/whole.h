/* SPDX-License-Identifier: Apache-2.0 */
/* whole.h - segments between offsets and the tiles of their array (whole.c), for what maps them afterwards (mapped.c). */
#ifndef PTXGEN_WHOLE_H
#define PTXGEN_WHOLE_H

#include "seg_gen.h"

struct cut {
    struct gen *g;
    kb_val tile;        /* i64: elements */
    kb_val tiles;       /* i32: how many there are */
    kb_val stay;        /* i32: tiles after its first one that a whole segment may extend to */
    kb_val watching;    /* i32: blocks that look after tiles, the first ones of the grid */
    kb_val helping;     /* i32: the last ones, which take parts from the queue when their segments are done */
    kb_val segments;    /* i64 */
    kb_val ticket_word; /* of this block, where it takes parts at once */
    kb_arr aggregates;  /* totals of warps */
    kb_arr shown;       /* the total of the block's segment, where it is mapped */
    kb_ptr found;       /* i64 per warp: the segment of the tile that it looked at, or -1 */
};
/* What kernels have of it; `found` is to be made. */
struct cut cut_of(struct gen *g);
/* The tile of an element, and a tile's first element. */
kb_val tile_of(struct cut *c, kb_val element);
kb_val tile_begin(struct cut *c, kb_val tile);
/* Calls `take` with the segment and the tile for every part in the tiles that this block watches; both are the same for
 * the block, which arrives as a whole. */
typedef void part_taker(struct cut *c, kb_val number, kb_val tile);
void watch_tiles(struct cut *c, part_taker *take);

/* Maps the segment that the block has just reduced; the total is in thread 0.  The whole block arrives. */
void map_by_block(struct cut *c, struct segment *seg, kb_tup total);
/* … that the warp has just reduced; the total is in lane 0. */
void map_by_warp(struct gen *g, struct segment *seg, kb_tup total);

#endif
