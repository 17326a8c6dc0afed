/* SPDX-License-Identifier: Apache-2.0 */
/* ticket.h - blocks take numbers in the order in which they start, and launches on one control buffer are told apart.
 *
 * One word, at the beginning of the buffer, counts the tickets that have been taken in its low bits and the launches
 * above them: one atomic addition gives a block both.  The block with the last ticket may begin the next launch with
 * the count at zero, since every other block has taken its own already.  Words that a launch has written carry its
 * number, so nothing is cleared between launches.
 */
#ifndef PTXGEN_TICKET_H
#define PTXGEN_TICKET_H

#include "llvmgen/shared/gen.h"

struct tickets {
    enum kernel_buffer buffer;
    int bits; /* of the word that count tickets; at most 32 */
};

/* One thread, after gen_wait_for_predecessor(): take a ticket; gives the word, u64.  The thread waits at the first use. */
kb_val ticket_take(struct gen *g, const struct tickets *l);
/* Every thread calls this; thread 0 takes the ticket, the other threads get zero. */
kb_var ticket_take_early(struct gen *g, const struct tickets *l);
/* The parts of such a word: the ticket, u32, unique among the blocks; the number of the launch, u64, unique until the
 * number outgrows the word; and a tag, u32, which differs from the tags of the 2^32 - 1 launches before, and is not zero
 * in the first 2^32 - 1 launches. */
kb_val ticket_number(struct gen *g, const struct tickets *l, kb_val word);
kb_val ticket_launch(struct gen *g, const struct tickets *l, kb_val word);
kb_val ticket_tag(struct gen *g, const struct tickets *l, kb_val word);

/* One thread, when all tickets have been taken: the launch after number `launch` (u64) begins. */
void ticket_next_launch(struct gen *g, const struct tickets *l, kb_val launch);
/* One thread: the same if `word` holds the last of `taken` tickets. */
void ticket_last_begins_next(struct gen *g, const struct tickets *l, kb_val word, kb_val taken);

/* A word for all threads of the block: thread 0 shares it, and all read it after the next barrier. */
kb_ptr ticket_slot(struct gen *g);
void ticket_share(struct gen *g, kb_ptr slot, kb_val word);
kb_val ticket_shared(struct gen *g, kb_ptr slot); /* block-uniform */

#endif
