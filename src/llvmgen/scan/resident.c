/* SPDX-License-Identifier: Apache-2.0 */
/* resident.c - scans of medium size in one pass: every block reads the totals of all tiles before its own.
 *
 *     load, upsweep     as with look-back, but tile = block: the whole grid is resident at once
 *     publish           the tile's total, at once
 *     collect           every thread waits for the totals of some consecutive tiles, the block combines them in order
 *     downsweep
 *
 * There is no chain of tiles: after the slowest total has been published, every block needs one round of reading and
 * one tree.  The tree is fixed, so results are the same on every run.  The block of the last tile starts the next
 * epoch, because it has seen a word of every other block; in scans of rows it looks at those of the other rows when it
 * is done.
 *
 * Rows may have tiles of their own.  Or tiles cut across rows and begin with whole vectors, in lines (lines.h).  What comes
 * before a tile in its row begins in the tile in which the row does; the total of that tile covers what lies after its
 * last cut.  Segments between offsets likewise, but only a tile's state tells whether one begins in it: totals are read
 * back to the nearest tile in which one does.
 */
#include "llvmgen/shared/lookback.h"
#include "lines.h"
#include "tile.h"

/* The combination of the threads, of which the leading ones have something, in all threads.  The whole block arrives. */
static kb_tup combine_threads(struct gen *g, kb_tup x, kb_val valid)
{
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    const kb_val in_warp = kb_sub(k, valid, kb_mul(k, kb_warp(k), KB_WARP));
    if (warps == 1)
        return kb_shfl_idx(k, warp_reduce(g, x, KB_WARP, state_pad_end(g->p) ? valid_all() : valid_first(in_warp)), 0);
    const bool wide = scan_marks_kept(g->p, g->c); /* warps with nothing skip the shuffles of several words */
    const kb_arr aggregates = state_shared(g, KB_WARP, "tile_totals");
    kb_if(k, wide ? kb_gt(k, in_warp, 0) : kb_true(k)) {
        const kb_tup of_warp = warp_reduce(g, x, KB_WARP, state_pad_end(g->p) ? valid_all() : valid_first(in_warp));
        kb_if(k, kb_lane0(k)) {
            kb_store(k, aggregates, kb_warp(k), of_warp);
        }
    }
    kb_barrier(k);
    const kb_val warps_valid = kb_shr(k, kb_add(k, valid, KB_WARP - 1), 5);
    const kb_val last = wide ? kb_sub(k, warps_valid, 1) : kb_imm(k, TY_I32, warps - 1);
    const kb_tup aggregate = kb_load(k, aggregates, kb_min(k, kb_lane(k), last));
    return kb_shfl_idx(k, warp_reduce(g, aggregate, KB_WARP, valid_first(warps_valid)), 0);
}

static kb_tup await(struct gen *g, const void *ticket, kb_val tile)
{
    return tile_await(g, *(const struct ticket *)ticket, tile);
}

/* The combination of all tiles before number `index` of a segment, in all threads.  The whole block arrives. */
static kb_tup collect(struct gen *g, struct ticket t, kb_val index)
{
    kb_val valid;
    LET(first, kb_sub(g->k, t.tile, index));
    const kb_tup own = gather_in_order(g, first, index, await, &t, &valid);
    return combine_threads(g, own, valid);
}

/* The same where there are any; an unused zero where not. */
static kb_tup prefix_of(struct gen *g, struct ticket t, kb_val index)
{
    kb *k = g->k;
    kb_tvar prefix = kb_var_new(k, state_zero(g), "prefix");
    kb_if(k, kb_gt(k, index, 0)) {
        kb_set(k, prefix, collect(g, t, index));
    }
    return kb_get(k, prefix);
}

/* The last block has seen the tiles of its own row, and waits for those of the others, `before` of them. */
static void finish_epoch(struct gen *g, struct ticket t, kb_val before)
{
    kb *k = g->k;
    kb_if(k, kb_eq(k, kb_warp(k), 0)) {
        kb_for(k, i, kb_imm(k, TY_I32, 0), before, KB_WARP) {
            kb_loop(k) {
                const kb_val tile = kb_min(k, kb_add(k, i, kb_lane(k)), kb_sub(k, before, 1));
                const kb_val missing = kb_ballot(k, kb_not(k, tile_state_read(g, t, tile).there));
                kb_break_if(k, kb_eq(k, missing, 0));
                kb_backoff(k, BACKOFF_NANOSECONDS);
            }
        }
        kb_if(k, kb_lane0(k)) {
            ticket_next_epoch(g, t);
        }
    }
}

static void scan_own(struct gen *g, void *of)
{
    kb *k = g->k;
    struct tile t;
    (void)of;
    struct ticket ticket;
    const bool narrow = scan_marks_kept(g->p, g->c);
    if (narrow)
        kept_narrow(g, true); /* all tiles together have less than 2^31 positions */
    LET(first, kb_thread0(k));
    tile_load_own(g, &t, &ticket);
    kb_if(k, first) {
        tile_publish(g, ticket, t.total.x, kb_false(k));
    }
    kept_put_first(&t.items);
    const kb_tup prefix = prefix_of(g, ticket, t.index);
    LET(last, kb_eq(k, ticket.tile, kb_sub(k, gen_value(g, VAL_TILES), 1)));
    if (!scan_keeps(g->p))
        kb_if(k, kb_and(k, first, last)) {
            ticket_next_epoch(g, ticket);
        }
    tile_finish(g, &t, (struct run){ kb_not(k, t.alone), kb_false(k), prefix });
    if (scan_keeps(g->p))
        kb_if(k, last) {
            finish_epoch(g, ticket, kb_sub(k, ticket.tile, t.index));
        }
    if (narrow)
        kept_narrow(g, false);
}

/* ---- tiles across rows ------------------------------------------------------------------------------------------- */

static int across_size(struct gen *g)
{
    return kb_threads(g->k) * gen_tunable(g, TN_ITEMS) * gen_tunable(g, TN_VECTOR);
}

/* Position of the first place of tile `number` (i32) of all segments as one sequence. */
static kb_val across_base(struct gen *g, struct scan_segment *all, kb_val number)
{
    kb *k = g->k;
    segment_open_all(g, all);
    const kb_val skew = lines_skew(g, all, gen_tunable(g, TN_VECTOR), kb_imm(k, TY_I64, 0));
    return kb_name(kb_sub(k, kb_mul(k, kb_cast(k, number, TY_I64), across_size(g)), skew), "base");
}

static struct lines tile_across(struct gen *g, struct scan_segment *all, kb_val number, kb_val base)
{
    kb *k = g->k;
    const int n = gen_tunable(g, TN_ITEMS), v = gen_tunable(g, TN_VECTOR), of_warp = KB_WARP * n * v;
    return (struct lines){ .g = g,
                           .segment = all,
                           .n = n,
                           .v = v,
                           .base = base,
                           .own = kb_add(k, kb_mul(k, kb_warp(k), of_warp), kb_mul(k, kb_lane(k), v)),
                           .from = kb_cast(k, kb_max(k, kb_neg(k, base), 0), TY_I32), /* of the first one, backwards */
                           .to = kb_cast(k, kb_min(k, kb_sub(k, all->length, base), across_size(g)), TY_I32),
                           .is_start = kb_eq(k, number, 0) };
}

/* Its rows; *before: tiles before it that hold positions of its first row (i32). */
static struct line_rows rows_across(const struct lines *l, kb_val *before)
{
    struct gen *g = l->g;
    kb *k = g->k;
    const int64_t size = across_size(g);
    LET(length, gen_value(g, VAL_LENGTH));
    LET(position, kb_max(k, l->base, 0));
    LET(row, kb_div(k, position, length)); /* once per tile */
    LET(into, kb_sub(k, position, kb_mul(k, row, length)));
    LET(starts, kb_eq(k, into, 0));
    LET(origin, kb_select(k, starts, kb_cast(k, l->from, TY_I64), kb_sub(k, length, into)));
    *before = kb_cast(k, kb_div(k, kb_add(k, into, size - 1), kb_imm(k, TY_I64, size)), TY_I32);
    return (struct line_rows){ .length = kb_cast(k, kb_min(k, length, size + 1), TY_I32),
                               .reciprocal = kb_cast(k, gen_value(g, VAL_RECIPROCAL), TY_U64),
                               .first = kb_select(k, starts, row, kb_add(k, row, 1)),
                               .origin = kb_cast(k, kb_min(k, origin, size + 1), TY_I32),
                               .before = into };
}

static void scan_across(struct gen *g, void *of)
{
    kb *k = g->k;
    (void)of;
    const struct ticket ticket = ticket_of_block(g, ticket_fetch(g));
    const struct aggregates aggregates = aggregates_new(g, KB_WARP, true, "warp_totals");
    struct scan_segment all;
    struct run total;
    kb_val index;
    const kb_val base = across_base(g, &all, ticket.tile);
    struct lines l = tile_across(g, &all, ticket.tile, base);
    const struct line_rows rows = rows_across(&l, &index);
    l.rows = &rows;
    lines_load(&l);
    const struct run in_tile = block_scan_warps(g, lines_total(&l), &aggregates, &total);
    kb_if(k, kb_thread0(k)) {
        tile_publish(g, ticket, total.x, kb_false(k));
    }
    const struct run before = { kb_gt(k, index, 0), kb_false(k), prefix_of(g, ticket, index) };
    lines_scan(&l, run_join(g, before, in_tile));
    lines_store(&l);
    if (scan_has_totals(g->p))
        lines_store_totals(&l);
    kb_if(k, kb_eq(k, ticket.tile, kb_sub(k, gen_value(g, VAL_TILES), 1))) {
        finish_epoch(g, ticket, kb_sub(k, ticket.tile, index));
    }
}

/* ---- tiles across segments between offsets ----------------------------------------------------------------------- */

/* What is outside of all segments is scanned with the rest and not written. */
static void narrow(struct lines *l, const struct block_marks *m)
{
    kb *k = l->g->k;
    const bool reverse = l->g->p->reverse;
    const kb_val n = l->segment->length;
    const kb_val first = reverse ? kb_sub(k, n, m->to) : m->from, end = reverse ? kb_sub(k, n, m->from) : m->to;
    const kb_val from = kb_cast(k, l->from, TY_I64), to = kb_cast(k, l->to, TY_I64);
    l->from = kb_cast(k, kb_min(k, kb_max(k, kb_sub(k, first, l->base), from), to), TY_I32);
    l->to = kb_cast(k, kb_max(k, kb_min(k, kb_sub(k, end, l->base), to), from), TY_I32);
}

/* What comes before the tile, for those warps before which no segment begins in it.  The first one waits for the tiles
 * back to where one does; the others wait for the first warp, unless a segment begins in the first warp's places. */
static struct run before_warp(struct gen *g, struct ticket t, const struct aggregates *aggregates)
{
    kb *k = g->k;
    const kb_val zero = kb_imm(k, TY_I32, 0), never = kb_false(k);
    const kb_arr slot = state_shared(g, 1, "tile_prefix");
    kb_tvar prefix = kb_var_new(k, state_zero(g), "prefix");
    LET(behind, kb_gt(k, t.tile, 0));
    kb_if(k, kb_and(k, behind, kb_eq(k, kb_warp(k), 0))) {
        kb_set(k, prefix, tiles_before(g, t));
        kb_if(k, kb_lane0(k)) {
            kb_store(k, slot, zero, kb_get(k, prefix));
        }
    }
    if (kb_threads(k) > KB_WARP) {
        const kb_val open = kb_and(k, behind, kb_eq(k, kb_load(k, aggregates->cut, zero), 0));
        kb_if(k, kb_assume_uniform(open, KB_UNI_BLOCK)) { /* one word that all threads read */
            kb_barrier(k);
            kb_set(k, prefix, kb_load(k, slot, zero));
        }
    }
    return (struct run){ behind, never, kb_get(k, prefix) };
}

/* A tile of them, whose marks have been begun before its kernel may read memory. */
struct marked_tile {
    struct scan_segment all;
    struct block_marks marks;
    kb_val base;
};

/* Offsets and elements set out together. */
static void scan_marked_tile(struct gen *g, void *of)
{
    kb *k = g->k;
    struct marked_tile *t = of;
    struct block_marks *marks = &t->marks;
    const struct aggregates aggregates = aggregates_new(g, KB_WARP, true, "warp_totals");
    struct direct_vars inputs = { .declared = false };
    struct run total;
    struct lines l = tile_across(g, &t->all, kb_block(k), t->base);
    l.marks = &marks->map;
    block_marks_fetch(marks);
    lines_fetch(&l, &inputs);
    const struct ticket ticket = ticket_of_block(g, ticket_fetch(g));
    block_marks_finish(marks, l.from, l.is_start);
    lines_take(&l, &inputs);
    const struct run in_tile = block_scan_warps(g, lines_total(&l), &aggregates, &total);
    kb_if(k, kb_thread0(k)) {
        tile_publish(g, ticket, total.x, total.cut);
    }
    const struct run before = before_warp(g, ticket, &aggregates);
    lines_scan(&l, run_join(g, before, in_tile));
    narrow(&l, marks);
    lines_store(&l);
    kb_if(k, kb_eq(k, ticket.tile, kb_sub(k, gen_value(g, VAL_TILES), 1))) {
        finish_epoch(g, ticket, ticket.tile);
    }
}

void emit_scan_resident(struct gen *g)
{
    struct marked_tile t;
    if (g->p->offsets < 0) {
        scan_kernel_of(g, gen_tunable(g, TN_ACROSS) ? scan_across : scan_own, NULL);
        return;
    }
    t.base = across_base(g, &t.all, kb_block(g->k));
    block_marks_new(g, &t.marks, across_size(g), t.base);
    scan_kernel_of(g, scan_marked_tile, &t);
}
