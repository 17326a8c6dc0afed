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
 * does not look back at all.  Where rows begin follows from the index; of segments between offsets a block marks it:
 *
 *     marks     the first offset in the tile is searched for by all lanes of every warp; from there on each thread
 *               marks offsets in a bitmap of the tile in shared memory, until one lies after the tile
 *     heads     a thread takes the bits of its consecutive positions
 *
 * Backwards, a segment begins in front of the next one's offset.  Elements outside of all segments are scanned like
 * others and not written.
 */
#include "llvmgen/shared/lookback.h"
#include "llvmgen/shared/tile_state.h"
#include "tile.h"

static kb_val offset_below(struct gen *g, const void *least, kb_val i)
{
    return kb_lt(g->k, segment_offset(g, i), *(const kb_val *)least);
}

/* Segments that begin in [base, base + tile) of the scan's positions; a position and an offset add up to the number of
 * elements where the scan runs backwards. */
static void mark_offsets(struct gen *g, struct items *h)
{
    kb *k = g->k;
    const int tile = tile_size(g), words = scan_mark_words(tile), threads = kb_threads(k);
    const bool reverse = g->p->reverse;
    const kb_ptr map = kb_shared_v(k, TY_U32, words, "marks");
    LET(n, h->segment->length);
    LET(offsets, kb_add(k, gen_value(g, VAL_SEGMENTS), 1));
    kb_for(k, i, kb_tid(k), kb_imm(k, TY_I32, words), threads) {
        kb_store(k, map, i, kb_imm(k, TY_U32, 0));
    }
    LET(least, reverse ? kb_add(k, kb_sub(k, n, kb_add(k, h->base, tile)), 1) : h->base);
    const kb_val none = kb_imm(k, TY_I64, 0);
    LET(first, warp_search(g, none, offsets, warp_evenly(g, offsets), offset_below, &least));
    kb_barrier(k); /* the map is empty */
    kb_for(k, i, kb_add(k, first, kb_cast(k, kb_tid(k), TY_I64)), offsets, threads) {
        LET(at, segment_offset(g, i));
        kb_break_if(k, kb_ge(k, at, kb_add(k, least, tile)));
        LET(place, kb_cast(k, reverse ? kb_sub(k, kb_sub(k, n, h->base), at) : kb_sub(k, at, h->base), TY_I32));
        const kb_val bit = kb_shl(k, kb_imm(k, TY_U32, 1), kb_cast(k, kb_rem(k, place, 32), TY_U32));
        kb_atomic(k, KB_RMW_OR, map, kb_div(k, place, 32), bit);
    }
    kb_barrier(k); /* the map is full */
    items_take_marks(h, map);
    const kb_val begin = segment_offset(g, kb_imm(k, TY_I64, 0)), end = segment_offset(g, kb_sub(k, offsets, 1));
    const kb_val from = reverse ? kb_sub(k, n, end) : begin, to = reverse ? kb_sub(k, n, begin) : end;
    h->from = kb_name(kb_cast(k, kb_max(k, kb_min(k, kb_sub(k, from, h->base), tile), 0), TY_I32), "from");
    h->to = kb_name(kb_cast(k, kb_max(k, kb_min(k, kb_sub(k, to, h->base), tile), 0), TY_I32), "to");
    /* One pair of offsets that all threads read. */
    h->full = kb_assume_uniform(kb_and(k, kb_eq(k, h->from, 0), kb_eq(k, h->to, tile)), KB_UNI_BLOCK);
}

static void scan_tile(struct gen *g, void *of)
{
    (void)of;
    struct tile t;
    const struct ticket ticket = ticket_take_tile(g, gen_value(g, VAL_TILES));
    if (g->p->offsets >= 0)
        tile_load_marked(g, &t, ticket.tile, mark_offsets);
    else
        tile_load(g, &t, ticket.tile);
    tile_finish(g, &t, tile_prefix(g, &t, ticket));
}

void emit_scan_lookback(struct gen *g)
{
    scan_kernel_of(g, scan_takes_turns(g->p, g->c) ? tiles_in_turns : scan_tile, NULL);
}
