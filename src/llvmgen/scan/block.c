/* SPDX-License-Identifier: Apache-2.0 */
/* block.c - scans without communication between blocks: a block takes a whole segment.
 *
 *     for segment in my segments:
 *         for tile of the segment:    load, combine each thread's positions, scan over the block,
 *                                     join with the carry, store;   carry := carry * total of the tile
 *         the thread with the last position writes the totals
 */
#include "tile.h"

static int per_thread(const struct gen *g) { return gen_tunable(g, TN_ITEMS) * gen_tunable(g, TN_VECTOR); }

/* Shared memory of the block. */
struct block_memory {
    struct aggregates aggregates;
    kb_ptr stage;
};

static void block_tile(struct gen *g, struct scan_segment *s, kb_val base, struct run_var carry,
                       const struct block_memory *m)
{
    kb *k = g->k;
    struct items *h = &(struct items){ .g = g, .segment = s, .n = per_thread(g), .base = base, .stage = m->stage };
    const int tile = kb_threads(k) * h->n;
    items_arrange(h);
    h->valid = kb_cast(k, kb_min(k, kb_sub(k, s->length, base), tile), TY_I32);
    h->full = kb_assume_uniform(kb_eq(k, h->valid, tile), KB_UNI_BLOCK); /* as the length is */
    h->staged = gen_tunable(g, TN_SMEM_TRANSPOSE);
    h->is_start = kb_and(k, kb_eq(k, base, 0), kb_thread0(k));
    items_load(h);
    struct run total, in_tile[SCAN_ITEMS_MAX];
    items_block_total(h, &m->aggregates, in_tile, &total);
    const struct run before = run_get(g, carry);
    h->stage_used &= kb_threads(k) == KB_WARP; /* a single warp has met no barrier */
    items_scan(h, before, in_tile);
    items_store(h);
    items_finish(h);
    run_set(g, carry, run_join(g, before, total));
}

static void block_segment(struct gen *g, struct scan_segment *s, const struct block_memory *m)
{
    kb *k = g->k;
    struct run_var carry = run_var_new(g, run_none(g));
    /* The same for all threads: arguments, or offsets that all threads have read. */
    const kb_val length = kb_assume_uniform(s->length, KB_UNI_BLOCK);
    kb_for(k, base, kb_imm(k, TY_I64, 0), length, (int64_t)kb_threads(k) * per_thread(g)) {
        kb_barrier(k); /* every warp has read the stored totals of the tile before */
        block_tile(g, s, base, carry, m);
    }
    segment_finish_empty(g, s, kb_and(k, kb_eq(k, s->length, 0), kb_thread0(k)));
}

/* Columns are taken element by element. */
void emit_scan_block(struct gen *g)
{
    kb *k = g->k;
    if (!scan_single(g->p) && scan_in_lines(g->p)) {
        scan_by_teams(g);
        return;
    }
    gen_wait_for_predecessor(g);
    struct block_memory m = { .aggregates = aggregates_new(g, KB_WARP, g->p->flags >= 0, "warp_totals") };
    if (gen_tunable(g, TN_SMEM_TRANSPOSE) && !gen_tunable(g, TN_STRIPED))
        m.stage = stage_new(g, per_thread(g), (kb_ptr){ .ir = NULL });
    kb_for(k, number, kb_cast(k, kb_block(k), TY_I64), gen_value(g, VAL_SEGMENTS), kb_cast(k, kb_blocks(k), TY_I64)) {
        struct scan_segment s;
        segment_open(g, &s, number);
        block_segment(g, &s, &m);
    }
}
