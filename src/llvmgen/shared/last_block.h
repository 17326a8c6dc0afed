/* SPDX-License-Identifier: Apache-2.0 */
/* last_block.h - several blocks write partials, and the last one to finish reads them all. */
#ifndef PTXGEN_LAST_BLOCK_H
#define PTXGEN_LAST_BLOCK_H

#include "llvmgen/shared/gen.h"

/* One thread takes a ticket; it is the last one of its group if it equals `last`. */
struct finish {
    kb_val ticket, last;
};

/* A ticket of counter[group] (u32), of which `blocks` are taken; the last one leaves zero there. */
struct finish finish_ticket(struct gen *g, kb_ptr counter, kb_val group, kb_val blocks);

/* Thread 0 takes a ticket by `take`; true in every thread of the block that took the last one.  What thread 0 has
 * written, or seen written before a barrier, is there for that block.  The whole block arrives. */
kb_val last_to_finish(struct gen *g, struct finish (*take)(struct gen *g, const void *what), const void *what);

/* The same by counter `group` of buffer "counter", for `blocks`. */
kb_val last_of_group(struct gen *g, kb_val group, kb_val blocks);

#endif
