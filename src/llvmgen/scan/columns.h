/* SPDX-License-Identifier: Apache-2.0 */
/* columns.h - what scan.pipeline does with tiles of a few columns side by side; roles and barriers are those of
 * its other tiles (ring.h). */
#ifndef PTXGEN_SCAN_COLUMNS_H
#define PTXGEN_SCAN_COLUMNS_H

#include "ring.h"

/* All lanes of a warp: store the totals of warp `warp`'s part of the tile. */
void columns_combine(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val warp);
/* One warp, which then has nothing to do with the stage any more: publish the tile's totals. */
void columns_publish(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val parity);

/* What comes before a block's tiles, kept by one warp. */
struct columns_ahead {
    struct gen *g;
    kb_var from;                               /* i32: the first window that is not in `whole` */
    struct run_var whole[SCAN_COLUMNS_VECTOR]; /* in the lane's columns */
};
void columns_ahead_new(struct gen *g, struct columns_ahead *a);
/* All lanes: what comes before the tile, into its stage; arrive at `prefixed` behind it. */
void columns_prefix(struct columns_ahead *a, const struct scan_ring *r, const struct scan_ring_tile *t);

/* By look-back instead, all lanes of each warp that looks, warp `own`: store what it sees; arrive at `looked` behind it.
 * One of them, behind `looked`: what comes before the tile, into its stage and with its totals for those that look
 * back; arrive at `prefixed` behind it. */
void columns_look(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val own);
void columns_before(const struct scan_ring *r, const struct scan_ring_tile *t);

/* The team: scan the tile in place. */
void columns_scan(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val parity);

#endif
