/* SPDX-License-Identifier: Apache-2.0 */
/* last_block.c - the last block to finish, found by a counter (threadFenceReduction of the CUDA samples; Futhark's
 * SegRed).
 *
 *     thread 0    fence (release), ticket, fence (acquire)
 *     barrier     all threads of the block learn whether the ticket is the last
 */
#include "last_block.h"

/* A count of this launch: the first ticket of it raises the word to none taken. */
static struct finish ticket_of_launch(struct gen *g, const struct count *c)
{
    kb *k = g->k;
    const kb_val tag = kb_shl(k, kb_add(k, ticket_launch(g, c->launch, c->word), 1), c->launch->bits);
    if (kb_point(k, "count of this launch"))
        kb_atomic(k, KB_RMW_MAX, c->counter, c->group, tag);
    LET(before, kb_atomic(k, KB_RMW_ADD, c->counter, c->group, kb_imm(k, TY_U64, 1)));
    return (struct finish){ before, kb_add(k, tag, kb_cast(k, kb_sub(k, c->blocks, 1), TY_U64)) };
}

struct finish finish_ticket(struct gen *g, const struct count *c)
{
    kb *k = g->k;
    if (c->launch)
        return ticket_of_launch(g, c);
    LET(last, kb_cast(k, kb_sub(k, c->blocks, 1), TY_U32));
    const enum kb_rmw take = kb_point(k, "counter reset") ? KB_RMW_INC_WRAP : KB_RMW_ADD;
    LET(ticket, kb_atomic(k, take, c->counter, c->group, take == KB_RMW_ADD ? kb_imm(k, TY_U32, 1) : last));
    return (struct finish){ ticket, last };
}

kb_val last_to_finish(struct gen *g, const struct count *c)
{
    kb *k = g->k;
    const kb_ptr flag = kb_shared_v(k, TY_U32, 1, "is_last");
    kb_if(k, kb_thread0(k)) {
        kb_fence(k, KB_RELEASE, KB_SCOPE_DEVICE); /* pairs with the acquire below, through the ticket */
        const struct finish f = finish_ticket(g, c);
        kb_fence(k, KB_ACQUIRE, KB_SCOPE_DEVICE); /* the block with the last ticket sees all partials */
        kb_store(k, flag, 0, kb_cast(k, kb_eq(k, f.ticket, f.last), TY_U32));
    }
    kb_barrier(k);
    /* One word read by all threads after a barrier. */
    return kb_assume_uniform(kb_ne(k, kb_load(k, flag, 0), 0), KB_UNI_BLOCK);
}

kb_val last_of_group(struct gen *g, kb_val group, kb_val blocks)
{
    return last_to_finish(g, &(struct count){ gen_buffer(g, BUF_COUNTER, TY_U32), group, blocks, .launch = NULL });
}
