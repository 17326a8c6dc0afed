/* SPDX-License-Identifier: Apache-2.0 */
/* lookback.h - what comes before a tile, by decoupled look-back over the states of the tiles before it. */
#ifndef PTXGEN_LOOKBACK_H
#define PTXGEN_LOOKBACK_H

#include "llvmgen/shared/tile_state.h"

/* Publish the tile's total and find what comes before it; called by one whole warp, with the same arguments in all
 * lanes, and the result holds in all lanes.  `alone`: nothing before the tile goes into its first element; then there
 * is no search. */
struct run lookback(struct gen *g, struct ticket t, struct run total, kb_val alone);

/* Everything before the tile, back to the nearest one that has published a prefix; one whole warp, in all lanes.  Where
 * tiles publish prefixes only because segments begin in them, it is combined in the same order on every run. */
kb_tup tiles_before(struct gen *g, struct ticket t);

#endif
