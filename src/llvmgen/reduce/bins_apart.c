/* SPDX-License-Identifier: Apache-2.0 */
/* bins_apart.c - blocks leave their tables apart, one after the other, where a bin would be locked in a common one.
 *
 *     add      every block writes what it has of each bin, zeros where that is nothing
 *     finish   a warp takes a bin, or a thread where there are many bins: the states of all tables, then the outputs
 *
 * In a common table blocks wait for each other at every bin: 396 blocks with 16 bins took 1.6 ms for that alone (H200).
 */
#include "bins.h"

/* Tables that lie apart, one after the other, so many of them (i64). */
static void apart_tables(struct gen *g, struct bins *b, kb_val tables)
{
    kb *k = g->k;
    const kb_ptr base = gen_buffer(g, BUF_TABLE, TY_U8);
    const kb_val words = kb_mul(k, tables, gen_value(g, VAL_BINS));
    *b = (struct bins){ .g = g, .tables = 1, .bin_step = 1, .alone = true };
    for (int w = 0; w < bins_words(g->p); w++) {
        b->table[w] = kb_advance(k, base, kb_mul(k, words, bins_before(g->p, w)));
        b->table[w].ty = bins_word_type(g, w);
    }
}

void bins_destination(struct gen *g, struct bins *all)
{
    kb *k = g->k;
    if (!bins_apart(g->c, g->p)) {
        bins_global_table(g, all, !bins_parted(g->c));
        return;
    }
    const struct bins own = { .g = g, .parts = bins_parted(g->c) ? gen_value(g, VAL_PARTS) : kb_imm(k, TY_I32, 1) };
    kb_val block, blocks;
    bins_blocks(&own, &block, &blocks);
    apart_tables(g, all, blocks);
    all->row = kb_name(kb_mul(k, block, gen_value(g, VAL_BINS)), "row");
}

void bins_leave(struct bins *all, kb_val bin, kb_tup x, kb_val some)
{
    kb *k = all->g->k;
    kb_val word[STATE_FIELDS_MAX];
    if (!bins_apart(all->g->c, all->g->p)) {
        kb_if(k, some) {
            bins_update(all, bin, x);
        }
        return;
    }
    encode_words(all->g, x, word);
    const kb_val to = kb_add(k, all->row, kb_cast(k, bin, TY_I64));
    for (int w = 0; w < bins_words(all->g->p); w++)
        kb_store(k, all->table[w], to, kb_select(k, some, word[w], kb_imm(k, word[w].ty, 0)));
}

kb_tup bins_sum_words(struct bins *b, kb_val first, kb_val end, kb_val step, kb_val *some)
{
    struct gen *g = b->g;
    kb *k = g->k;
    kb_val word[STATE_FIELDS_MAX];
    kb_tvar sum = kb_var_new(k, state_pad_value(g), "sum");
    kb_var any = kb_var_new(k, kb_false(k), "any");
    kb_for(k, i, first, end, step) {
        const kb_val has = bins_load(b, i, word);
        kb_set(k, any, kb_or(k, kb_get(k, any), has));
        kb_set(k, sum, state_combine(g, kb_get(k, sum), decode_words(g, word)));
    }
    *some = kb_get(k, any);
    return kb_get(k, sum);
}

/* Tables that lie apart: what all of them have of a bin, by a warp, or by a thread where there are many bins. */
void bins_finish_apart(struct gen *g)
{
    kb *k = g->k;
    const int lanes = bins_joined_by(g->c);
    struct bins b;
    LET(tables, kb_cast(k, gen_value(g, VAL_PARTS), TY_I64));
    LET(bins, gen_value(g, VAL_BINS));
    apart_tables(g, &b, tables);
    const int64_t each = kb_threads(k) / lanes;
    const kb_val number = lanes == KB_WARP ? kb_warp(k) : kb_tid(k);
    LET(own, kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), each), kb_cast(k, number, TY_I64)));
    LET(lane, kb_cast(k, kb_and(k, kb_lane(k), lanes - 1), TY_I64));
    kb_for(k, bin, own, bins, kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), each)) {
        kb_val some;
        const kb_val first = kb_add(k, bin, kb_mul(k, lane, bins)), step = kb_mul(k, bins, lanes);
        kb_tup sum = bins_sum_words(&b, first, kb_mul(k, tables, bins), step, &some);
        if (lanes == KB_WARP) {
            sum = warp_reduce(g, sum, KB_WARP, valid_all());
            some = kb_any(k, some);
        }
        kb_if(k, kb_eq(k, lane, 0)) {
            bins_finish(g, bin, sum, some);
        }
    }
}
