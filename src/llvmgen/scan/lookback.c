/* SPDX-License-Identifier: Apache-2.0 */
/* lookback.c - scans in one pass over memory: a tile per block, what comes before it by decoupled look-back.
 *
 *     ticket      the block's tile, in the order in which blocks start
 *     load        vectors, transposed so that every thread holds consecutive positions
 *     upsweep     each thread combines its positions, the block scans the threads
 *     look-back   one warp publishes the tile's total and finds what comes before the tile
 *     downsweep   each thread scans its positions from what comes before it; results are transposed back and stored
 *
 * A tile with a cut publishes its total as a prefix, so that look-back ends there; a tile that begins with a segment
 * does not look back at all.
 */
#include "llvmgen/shared/lookback.h"
#include "tile.h"

void emit_scan_lookback(struct gen *g) { tile_in_turn(g, tile_load); }
void emit_segscan_flat(struct gen *g) { tile_in_turn(g, tile_load); }
void emit_segscan_flags(struct gen *g) { tile_in_turn(g, tile_load); }
