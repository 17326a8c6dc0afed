/* SPDX-License-Identifier: Apache-2.0 */
/* lookback.h - what comes before a tile, by decoupled look-back over the states of the tiles before it. */
#ifndef PTXGEN_LOOKBACK_H
#define PTXGEN_LOOKBACK_H

#include "llvmgen/scan/scan_gen.h"
#include "llvmgen/shared/tile_state.h"

/* One whole warp arrives, with the same arguments in all lanes.  Publishes the tile's total; all lanes get the exclusive
 * prefix of the tile.  `alone`: nothing before the tile is combined with its first element, so there is no look-back. */
struct run lookback(struct gen *g, struct ticket t, struct run total, kb_val alone);

/* One whole warp arrives; all lanes get the combination of the tiles before this one, back to the nearest tile that has
 * published a prefix.  Where tiles publish prefixes only because segments begin in them, the order of combination is the
 * same on every run. */
kb_tup tiles_before(struct gen *g, struct ticket t);

/* One thread, whose tile has published its total at `own`: the combination of the tiles before it, whose words lie `step`
 * (i64) apart, as above.  There is one, and the first of them publishes a prefix. */
kb_tup states_before(struct gen *g, struct ticket t, struct place own, kb_val step);

#endif
