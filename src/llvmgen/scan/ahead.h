/* SPDX-License-Identifier: Apache-2.0 */
/* ahead.h - what comes before a tile, from the totals of all tiles before it, which one warp keeps for its block
 * from tile to tile. */
#ifndef PTXGEN_SCAN_AHEAD_H
#define PTXGEN_SCAN_AHEAD_H

#include "llvmgen/shared/tile_state.h"

/* Tiles publish by total_publish(…, each, …). */
struct scan_ahead {
    struct gen *g;
    int each, window;     /* tiles of a lane and of a window */
    kb_var ends;          /* bool: the window of the tile before held a cut */
    kb_var from;          /* i32: the first window that is not in `whole` */
    struct run_var whole; /* in lane 0: the combination of the windows before it, from the last cut on */
};
void scan_ahead_new(struct gen *g, struct scan_ahead *a);
/* The combination of all tiles before the ticket's, which is tile `index` of its segment, in lane 0; nothing that means
 * anything for tile 0.  Waits until they have published.  All lanes of the warp; tiles grow from call to call. */
kb_tup scan_ahead_prefix(struct scan_ahead *a, struct ticket t, kb_val index);

#endif
