/* SPDX-License-Identifier: Apache-2.0 */
/* last_block.c - the last block to finish, found by a counter (threadFenceReduction of the CUDA samples; Futhark's
 * SegRed).
 *
 *     thread 0    fence (release), ticket, fence (acquire)
 *     barrier     all threads of the block learn whether the ticket is the last
 */
#include "last_block.h"

struct finish finish_ticket(struct gen *g, kb_ptr counter, kb_val group, kb_val blocks)
{
    kb *k = g->k;
    LET(last, kb_cast(k, kb_sub(k, blocks, 1), TY_U32));
    const enum kb_rmw take = kb_point(k, "counter reset") ? KB_RMW_INC_WRAP : KB_RMW_ADD;
    LET(ticket, kb_atomic(k, take, counter, group, take == KB_RMW_ADD ? kb_imm(k, TY_U32, 1) : last));
    return (struct finish){ ticket, last };
}

kb_val last_to_finish(struct gen *g, struct finish (*take)(struct gen *g, const void *what), const void *what)
{
    kb *k = g->k;
    const kb_ptr flag = kb_shared_v(k, TY_U32, 1, "is_last");
    kb_if(k, kb_thread0(k)) {
        kb_fence(k, KB_RELEASE, KB_SCOPE_DEVICE); /* pairs with the acquire below, through the ticket */
        const struct finish f = take(g, what);
        kb_fence(k, KB_ACQUIRE, KB_SCOPE_DEVICE); /* the block with the last ticket sees all partials */
        kb_store(k, flag, 0, kb_cast(k, kb_eq(k, f.ticket, f.last), TY_U32));
    }
    kb_barrier(k);
    /* One word read by all threads after a barrier. */
    return kb_assume_uniform(kb_ne(k, kb_load(k, flag, 0), 0), KB_UNI_BLOCK);
}

struct group {
    kb_val number, blocks;
};

static struct finish take_of_group(struct gen *g, const void *what)
{
    const struct group *group = what;
    return finish_ticket(g, gen_buffer(g, "counter", TY_U32), group->number, group->blocks);
}

kb_val last_of_group(struct gen *g, kb_val group, kb_val blocks)
{
    return last_to_finish(g, take_of_group, &(struct group){ group, blocks });
}
