/* SPDX-License-Identifier: Apache-2.0 */
/* gather.c - a grid whose blocks hand over their totals in words that carry their own validity.
 *
 *     every block     takes a ticket and learns the launch's tag before its own work, so that they are there when it is done;
 *                     publishes its total: each 32-bit word of it beside the tag, in one 64-bit store
 *     the gatherer    (the block with the last ticket) reads the words of all blocks until every one bears the tag, and
 *                     reduces them in order
 *
 * Against a last block found by a counter at the end (reduce.last_block) this saves a fence and an atomic on the
 * critical path: about 1 us of 4 on an H200.  Words are relaxed: what makes one valid travels in the same store.  Words
 * of earlier launches bear other tags (shared/ticket.h), so nothing has to be cleared.  The gatherer waits only for blocks
 * that took a ticket before it, which run or have ended: nothing is assumed about the order of scheduling.
 */
#include "llvmgen/shared/tile_state.h"
#include "llvmgen/builder/kb_target.h"

/* In thread 0: begin the next launch, and let the block know its ticket and tag; the barrier of its own
 * combination makes them visible. */
static kb_ptr post(struct gen *g, kb_var ticket_word)
{
    kb *k = g->k;
    const kb_ptr turn = kb_shared_v(k, TY_U32, 2, "turn");
    kb_if(k, kb_thread0(k)) {
        const kb_val word = kb_get(k, ticket_word);
        kb_store(k, turn, 0, ticket_number(g, &word_tickets, word));
        kb_store(k, turn, 1, ticket_tag(g, &word_tickets, word));
        ticket_last_begins_next(g, &word_tickets, word, kb_blocks(k));
    }
    if (kb_threads(k) == KB_WARP)
        kb_warp_sync(k); /* one warp combines without a barrier */
    return turn;
}

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

static kb_tup combine_block(struct gen *g, kb_tup x, struct valid_items f)
{
    const kb_arr aggregates = state_shared(g, KB_WARP, "warp_totals");
    return state_commutative(g->p) ? block_reduce(g, x, f, aggregates) : warps_combine(g, x, f, aggregates);
}

static kb_val empty(struct gen *g) { return kb_le(g->k, gen_value(g, VAL_COUNT), 0); }

/* Several blocks: publish, and in the gatherer reduce what all have published. */
static void hand_over(struct gen *g, kb_tup total, kb_val block, kb_val blocks, kb_ptr turn)
{
    kb *k = g->k;
    /* Words after the barrier of combine_block(), read by all threads. */
    const kb_val ticket = kb_assume_uniform(kb_load(k, turn, 0), KB_UNI_BLOCK);
    const kb_val tag = kb_assume_uniform(kb_load(k, turn, 1), KB_UNI_BLOCK);
    kb_if(k, kb_thread0(k)) {
        words_publish(g, place_in_slot(g, 0, block), total, tag);
    }
    kb_if(k, kb_eq(k, kb_cast(k, ticket, TY_I32), kb_sub(k, blocks, 1))) {
        const kb_val valid = g->padded || !state_commutative(g->p) ? blocks : tiles_valid_blocks(g, blocks);
        const kb_tup all = words_gather(g, 0, kb_imm(k, TY_I32, 0), valid, tag);
        kb_if(k, kb_thread0(k)) {
            state_finish(g, all, empty(g));
        }
    }
}

void emit_reduce_gather(struct gen *g)
{
    kb *k = g->k;
    LET(block, kb_block(k));
    LET(blocks, kb_blocks(k));
    if (gen_tunable(g, TN_PDL) && state_commutative(g->p))
        tiles_prefetch(g, block);
    gen_wait_for_predecessor(g);
    const kb_var ticket_word = ticket_take_early(g, &word_tickets);
    struct valid_items f;
    const kb_tup x =
        state_commutative(g->p) ? tiles_reduce(g, block, blocks, &f) : windows_reduce(g, block, blocks, &f);
    kb_section(k, "finish");
    const kb_ptr turn = post(g, ticket_word);
    const kb_tup total = combine_block(g, x, f);
    kb_if(k, kb_eq(k, blocks, 1)) {
        kb_if(k, kb_thread0(k)) {
            state_finish(g, total, empty(g));
        }
    }
    kb_else { hand_over(g, total, block, blocks, turn); }
}
