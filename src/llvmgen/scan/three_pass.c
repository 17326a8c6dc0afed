/* SPDX-License-Identifier: Apache-2.0 */
/* three_pass.c - scans by three kernels: totals of the tiles, their scan by one block, and the tiles again.
 *
 * Reads every element twice, but waits for no block, and its combination tree is a function of the size and the tunables:
 * what `determinism` asks for.  Tiles, cuts and transposes are those of the single-pass scans.
 */
#include "tile.h"

static struct aggregates partials(const struct gen *g)
{
    struct aggregates p = { .x = gen_partials(g), .cuts = tile_cuts(g) };
    if (p.cuts)
        p.cut = gen_buffer(g, BUF_CUTS, TY_U32);
    return p;
}

static void totals(struct gen *g)
{
    kb *k = g->k;
    struct tile t;
    tile_load(g, &t, kb_block(k));
    kb_if(k, kb_thread0(k)) {
        const struct aggregates p = partials(g);
        aggregates_store(g, &p, t.number, t.total);
    }
}

void totals_to_prefixes(struct gen *g, const struct aggregates *totals, kb_val count)
{
    kb *k = g->k;
    const struct aggregates aggregates = aggregates_new(g, KB_WARP, totals->cuts, "warp_totals");
    struct run_var carry = run_var_new(g, run_none(g));
    kb_for(k, from, kb_imm(k, TY_I32, 0), count, kb_threads(k)) {
        LET(tile, kb_add(k, from, kb_tid(k)));
        kb_barrier(k); /* every warp has read the stored totals of the round before */
        const struct run own = aggregates_load(g, totals, kb_min(k, tile, kb_sub(k, count, 1)));
        struct run total;
        const struct run in_round = block_scan(g, own, &aggregates, &total);
        const struct run before = run_get(g, carry);
        if (kb_threads(k) == KB_WARP)
            kb_warp_sync(k); /* else block_scan has met a barrier: what repeats the last tile has been read */
        kb_if(k, kb_lt(k, tile, count)) {
            aggregates_store(g, totals, tile, run_join(g, before, in_round));
        }
        run_set(g, carry, run_join(g, before, total));
    }
}

static void prefixes(struct gen *g)
{
    const struct aggregates tiles = partials(g);
    totals_to_prefixes(g, &tiles, gen_value(g, VAL_TILES));
}

static void apply_tile(struct gen *g, void *of)
{
    (void)of;
    kb *k = g->k;
    struct tile t;
    tile_load(g, &t, kb_block(k));
    const kb_tup prefix = kb_load(k, gen_partials(g), t.number);
    tile_finish(g, &t, (struct run){ kb_not(k, t.alone), kb_false(k), prefix });
}

void emit_scan_three_pass(struct gen *g)
{
    static void (*const pass[])(struct gen * g) = { totals, prefixes };
    const ptrdiff_t number = g->kernel - g->c->code.kernel;
    if (number == 2) {
        scan_kernel_of(g, apply_tile, NULL);
        return;
    }
    gen_wait_for_predecessor(g);
    pass[number](g);
}
