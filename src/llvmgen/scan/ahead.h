/* SPDX-License-Identifier: Apache-2.0 */
/* ahead.h - the look-ahead: one warp computes the prefixes of its block's tiles from the totals of all tiles, and keeps
 * the combination from tile to tile. */
#ifndef PTXGEN_SCAN_AHEAD_H
#define PTXGEN_SCAN_AHEAD_H

#include "llvmgen/scan/scan_gen.h"
#include "llvmgen/shared/tile_state.h"

/* One thread publishes the total of its tile for blocks that read the totals of many tiles, in windows of KB_WARP * `each`
 * tiles, `each` consecutive ones per lane, whose words lie so that the lanes of a warp read neighbouring ones; buffer
 * "states" has whole windows.  Windows of rows begin with any tile, so there they lie by the tiles' numbers. */
void total_publish(struct gen *g, struct ticket t, int each, struct run total);

struct scan_ahead {
    struct gen *g;
    int each, window;     /* tiles of a lane and of a window */
    kb_var ends;          /* bool: the window of the tile before held a cut */
    kb_var from;          /* i32: the first window that is not in `whole` */
    struct run_var whole; /* in lane 0: the combination of the windows before it, from the last cut on */
};
void scan_ahead_new(struct gen *g, struct scan_ahead *a);
/* All lanes of the warp arrive.  Lane 0 gets the combination of all tiles before the ticket's, which is tile `index` of
 * its segment; undefined for tile 0.  Waits until these tiles have published.  Tiles grow from call to call. */
kb_tup scan_ahead_prefix(struct scan_ahead *a, struct ticket t, kb_val index);

#endif
