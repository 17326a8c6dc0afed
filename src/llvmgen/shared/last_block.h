/* SPDX-License-Identifier: Apache-2.0 */
/* last_block.h - several blocks write partials, and the last one to finish reads them all. */
#ifndef PTXGEN_LAST_BLOCK_H
#define PTXGEN_LAST_BLOCK_H

#include "llvmgen/shared/ticket.h"

/* What blocks count when they finish: they take the `blocks` tickets of counter[group]. */
struct count {
    kb_ptr counter;               /* u32; the last ticket resets it to zero */
    kb_val group, blocks;         /* blocks: u32 or i32 */
    const struct tickets *launch; /* or NULL: the counter is u64, and begins anew with the launch of ticket `word` */
    kb_val word;
};

/* One thread: the ticket, which is the last one if it equals `last`. */
struct finish {
    kb_val ticket, last;
};
struct finish finish_ticket(struct gen *g, const struct count *c);

/* The whole block arrives.  Thread 0 takes a ticket; true in every thread of the block that takes the last one.  This
 * block sees what thread 0 of every block has written, or has seen written before a barrier. */
kb_val last_to_finish(struct gen *g, const struct count *c);

/* The same by counter `group` of buffer "counter", for `blocks`. */
kb_val last_of_group(struct gen *g, kb_val group, kb_val blocks);

#endif
