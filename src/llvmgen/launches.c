/* SPDX-License-Identifier: Apache-2.0 */
/* launches.c - launches on one control region are told apart by numbers.
 *
 * One word counts the blocks that have started, below, and the launches, above: an addition gives a block both. Whoever
 * draws the last ticket of the grid can begin the next launch with the count at zero, as every other block has drawn.
 * Nothing waits for what is drawn until it is needed, at the end of a block.
 */
#include "gen.h"

enum { BLOCK_BITS = 32 }; /* of any grid */

kb_var launch_draw(struct gen *g)
{
    kb *k = g->k;
    kb_var drawn = kb_var_new(k, kb_imm(k, TY_U64, 0), "drawn");
    kb_if(k, kb_eq(k, kb_tid(k), 0)) {
        const kb_val one = kb_imm(k, TY_U64, 1);
        kb_set(k, drawn, kb_atomic(k, KB_RMW_ADD, gen_buffer(g, "launch", TY_U64), kb_imm(k, TY_I32, 0), one));
    }
    return drawn;
}

kb_val launch_number(struct gen *g, kb_val drawn) { return kb_shr(g->k, drawn, BLOCK_BITS); }

void launch_next(struct gen *g, kb_val drawn)
{
    kb *k = g->k;
    const kb_val before = kb_and(k, drawn, ((int64_t)1 << BLOCK_BITS) - 1);
    kb_if(k, kb_eq(k, before, kb_cast(k, kb_sub(k, kb_blocks(k), 1), TY_U64))) {
        const kb_val next = kb_add(k, launch_number(g, drawn), 1);
        if (kb_point(k, "next launch"))
            kb_store_relaxed(k, gen_buffer(g, "launch", TY_U64), kb_imm(k, TY_I32, 0), kb_shl(k, next, BLOCK_BITS));
    }
}
