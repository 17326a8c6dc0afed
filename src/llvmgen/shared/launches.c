/* SPDX-License-Identifier: Apache-2.0 */
/* launches.c - launches on one control region are told apart by numbers.
 *
 * One word counts the blocks that have started, below, and the launches, above: an addition gives a block both. Whoever
 * draws the last ticket can begin the next launch with the count at zero, as every other block has drawn.
 * Nothing waits for what is drawn until it is needed, at the end of a block.
 *
 * The word lies right before the totals that bear its tags: see Note [Where the counter lies] in lookback.c.
 */
#include "gen.h"

static kb_ptr counter(struct gen *g, const struct launches *l) { return gen_buffer(g, l->buffer, TY_U64); }

kb_var launch_draw(struct gen *g, const struct launches *l)
{
    kb *k = g->k;
    kb_var drawn = kb_var_new(k, kb_imm(k, TY_U64, 0), "drawn");
    kb_if(k, kb_eq(k, kb_tid(k), 0)) {
        const kb_val one = kb_imm(k, TY_U64, 1);
        kb_set(k, drawn, kb_atomic(k, KB_RMW_ADD, counter(g, l), kb_imm(k, TY_I32, 0), one));
    }
    return drawn;
}

kb_val launch_ticket(struct gen *g, const struct launches *l, kb_val drawn)
{
    kb *k = g->k;
    return l->bits == 32 ? kb_cast(k, drawn, TY_U32)
                         : kb_cast(k, kb_and(k, drawn, ((int64_t)1 << l->bits) - 1), TY_U32);
}

kb_val launch_number(struct gen *g, const struct launches *l, kb_val drawn) { return kb_shr(g->k, drawn, l->bits); }

kb_val launch_tag(struct gen *g, const struct launches *l, kb_val drawn)
{
    return kb_add(g->k, kb_cast(g->k, launch_number(g, l, drawn), TY_U32), 1);
}

void launch_next(struct gen *g, const struct launches *l, kb_val drawn, kb_val blocks)
{
    kb *k = g->k;
    kb_if(k, kb_eq(k, launch_ticket(g, l, drawn), kb_cast(k, kb_sub(k, blocks, 1), TY_U32))) {
        const kb_val next = kb_add(k, launch_number(g, l, drawn), 1);
        if (kb_point(k, "next launch"))
            kb_store_relaxed(k, counter(g, l), kb_imm(k, TY_I32, 0), kb_shl(k, next, l->bits));
    }
}
