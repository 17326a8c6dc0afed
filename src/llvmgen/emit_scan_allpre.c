/* SPDX-License-Identifier: Apache-2.0 */
/* emit_scan_allpre.c - scans of medium size in one pass: every block reads the totals of all tiles before its own.
 *
 *     load, upsweep     as with look-back, but tile = block: the whole grid is resident at once
 *     publish           the tile's total, at once
 *     collect           every thread waits for the totals of some consecutive tiles, the block combines them in order
 *     downsweep
 *
 * There is no chain of tiles: after the slowest total has been published, every block needs one round of reading and
 * one tree.  The tree is fixed, so results are the same on every run.  The block of the last tile starts the next
 * epoch, because it has seen a word of every other block.
 */
#include "lookback.h"
#include "scan_tile.h"

/* The combination of all tiles before this one, in thread 0. */
static kb_tup collect(struct gen *g, struct ticket t)
{
    kb *k = g->k;
    const int threads = kb_threads(k);
    LET(each, kb_div(k, kb_add(k, t.tile, threads - 1), threads));
    LET(from, kb_mul(k, kb_tid(k), each));
    LET(to, kb_min(k, kb_add(k, from, each), t.tile));
    kb_tvar acc = kb_var_new(k, g->padded ? state_pad_value(g) : state_zero(g), "totals");
    kb_var have = kb_var_new(k, kb_imm(k, TY_BOOL, 0), "have_total");
    kb_for(k, i, from, to, 1) {
        state_accumulate(g, acc, have, tile_await(g, t, i));
    }
    const kb_val filled = kb_div(k, kb_add(k, t.tile, kb_sub(k, each, 1)), each);
    const struct filled f = g->padded ? filled_all() : filled_first(kb_name(filled, "filled"));
    return block_reduce(g, kb_get(k, acc), f, state_shared(g, KB_WARP, "tile_totals"));
}

void emit_scan_allpre(struct gen *g)
{
    kb *k = g->k;
    scan_wait_for_predecessor(g);
    kb_if(k, kb_gt(k, gen_value(g, "count"), 0)) {
        struct tile t;
        const struct ticket ticket = ticket_of_block(g);
        LET(first, kb_eq(k, kb_tid(k), 0));
        tile_load(g, &t, ticket.tile);
        kb_if(k, first) {
            tile_publish(g, ticket, t.total.x);
        }
        kb_tvar prefix = kb_var_new(k, state_zero(g), "prefix");
        kb_if(k, kb_gt(k, ticket.tile, 0)) {
            kb_set(k, prefix, collect(g, ticket));
        }
        kb_if(k, kb_and(k, first, kb_eq(k, ticket.tile, kb_sub(k, gen_value(g, "tiles"), 1)))) {
            ticket_next_epoch(g, ticket);
        }
        tile_finish(g, &t, tile_share(g, &t, first, kb_get(k, prefix)));
    }
    kb_else { tile_none(g); }
}
