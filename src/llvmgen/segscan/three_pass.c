/* SPDX-License-Identifier: Apache-2.0 */
/* three_pass.c - scans down few long columns by three kernels: reduce, scan of the totals, scan.
 *
 *     totals      thread (chunk, column): combines the positions of the chunk, last tile first
 *     prefixes    block (column): what comes before each of its chunks, in the place of the chunk's total
 *     apply       thread (chunk, column): scans the chunk after its prefix
 *
 * Neighbouring threads have neighbouring columns, then the columns of the next chunk, so that no lane is idle whatever the
 * number of columns is.  No block waits for another one, and states may have any size.  The totals of a column lie side
 * by side.
 */
#include "llvmgen/scan/tile.h"

/* A thread's chunk of a column: positions from `from` to before `to`. */
struct chunk {
    struct scan_segment segment;
    kb_val number, from, to; /* i64 */
    kb_val slot;             /* i64: of its total */
};

static int per_thread(const struct gen *g) { return gen_tunable(g, TN_ITEMS) * gen_tunable(g, TN_VECTOR); }

/* The thread's chunk goes to `body`, if there is one. */
static void for_chunk(struct gen *g, void (*body)(struct gen *g, struct chunk *c))
{
    kb *k = g->k;
    const kb_val segments = gen_value(g, VAL_SEGMENTS), chunks = kb_cast(k, gen_value(g, VAL_PER_SEGMENT), TY_I64);
    LET(block, kb_cast(k, kb_block(k), TY_I64));
    LET(thread, kb_add(k, kb_mul(k, block, kb_threads(k)), kb_cast(k, kb_tid(k), TY_I64)));
    kb_if(k, kb_lt(k, thread, kb_mul(k, segments, chunks))) {
        struct chunk c;
        c.number = kb_name(kb_div(k, thread, segments), "chunk");
        segment_open(g, &c.segment, kb_sub(k, thread, kb_mul(k, c.number, segments)));
        c.from = kb_name(kb_mul(k, c.number, gen_value(g, VAL_CHUNK)), "from");
        c.to = kb_name(kb_min(k, kb_add(k, c.from, gen_value(g, VAL_CHUNK)), c.segment.length), "to");
        c.slot = kb_add(k, kb_mul(k, c.segment.number, chunks), c.number);
        body(g, &c);
    }
    g->here = NULL; /* what it pointed to is gone */
}

/* The last chunk of a column alone is no multiple of a tile long, and nobody asks for its total. */
static void chunk_total(struct gen *g, struct chunk *c)
{
    kb *k = g->k;
    const int n = per_thread(g);
    const kb_val zero = kb_imm(k, TY_I32, 0);
    struct run_var total = run_var_new(g, run_none(g));
    LET(last, kb_add(k, c->from, kb_mul(k, kb_div(k, kb_sub(k, kb_sub(k, c->to, c->from), 1), n), n)));
    kb_for(k, done, kb_imm(k, TY_I64, 0), kb_sub(k, c->to, c->from), n) {
        struct items h = items_down(g, &c->segment, kb_sub(k, last, done), c->to, 1, zero);
        items_load(&h);
        run_set(g, total, run_join(g, items_total(&h), run_get(g, total)));
    }
    kb_store(k, gen_partials(g), c->slot, run_get(g, total).x);
}

static void prefixes(struct gen *g)
{
    kb *k = g->k;
    const kb_val chunks = gen_value(g, VAL_PER_SEGMENT);
    struct scan_segment s;
    segment_open(g, &s, kb_cast(k, kb_block(k), TY_I64));
    struct aggregates totals = { .x = gen_partials(g) };
    for (int f = 0; f < totals.x.n; f++)
        totals.x.e[f] = kb_advance(k, totals.x.e[f], kb_mul(k, s.number, kb_cast(k, chunks, TY_I64)));
    totals_to_prefixes(g, &totals, chunks);
    g->here = NULL;
}

static void scan_chunk(struct gen *g, struct chunk *c)
{
    kb *k = g->k;
    const kb_val zero = kb_imm(k, TY_I32, 0);
    const struct run prefix = { kb_gt(k, c->number, 0), kb_false(k), kb_load(k, gen_partials(g), c->slot) };
    struct run_var carry = run_var_new(g, prefix);
    kb_for(k, base, c->from, c->to, per_thread(g)) {
        struct items h = items_down(g, &c->segment, base, c->to, 1, zero);
        items_load(&h);
        items_scan(&h, run_get(g, carry), NULL);
        items_store(&h);
        run_set(g, carry, run_of(g, items_last(&h), kb_false(k)));
    }
    if (!scan_has_totals(g->p))
        return;
    kb_if(k, kb_eq(k, c->to, c->segment.length)) {
        segment_finish(g, &c->segment, run_get(g, carry).x, kb_false(k));
    }
}

static void apply(struct gen *g, void *of)
{
    (void)of;
    for_chunk(g, scan_chunk);
}

void emit_segscan_three_pass(struct gen *g)
{
    const ptrdiff_t number = g->kernel - g->c->code.kernel;
    if (number == 2) {
        scan_kernel_of(g, apply, NULL);
        return;
    }
    gen_wait_for_predecessor(g);
    if (number == 0)
        for_chunk(g, chunk_total);
    else
        prefixes(g);
}
