/* SPDX-License-Identifier: Apache-2.0 */
/* last_block.h - several blocks write partials, and the last one to finish reads them all. */
#ifndef PTXGEN_LAST_BLOCK_H
#define PTXGEN_LAST_BLOCK_H

#include "llvmgen/shared/gen.h"

/* Called in one thread; takes a ticket, which is the last one of its group if it equals `last`. */
struct finish {
    kb_val ticket, last;
};

/* One thread: take one of the `blocks` tickets of counter[group] (u32); the last one resets the counter to zero. */
struct finish finish_ticket(struct gen *g, kb_ptr counter, kb_val group, kb_val blocks);

/* The whole block arrives.  Thread 0 takes a ticket by `take`; true in every thread of the block that takes the last one.
 * This block sees what thread 0 of every block has written, or has seen written before a barrier. */
kb_val last_to_finish(struct gen *g, struct finish (*take)(struct gen *g, const void *what), const void *what);

/* The same by counter `group` of buffer "counter", for `blocks`. */
kb_val last_of_group(struct gen *g, kb_val group, kb_val blocks);

#endif
