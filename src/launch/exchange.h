/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - bytes between the GPUs of one machine, which write into each other's memory. */
#ifndef PTXGEN_LAUNCH_EXCHANGE_H
#define PTXGEN_LAUNCH_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "ptxgen/launch.h"

/* EXCHANGE_WORDS: bytes of a message that travels as words; a longer one has flags.  EXCHANGE_SHORT: of messages that one
 * block exchanges, if all are so short.  EXCHANGE_PIECES: of a message, at most. */
enum {
    EXCHANGE_MESSAGES = 16,
    EXCHANGE_PIECES = 32,
    EXCHANGE_SHORT = 2048,
    EXCHANGE_WORDS = 131072,
    EXCHANGE_THREADS = 512
};

/* The parameters of the kernels: exchange_code.c.  Addresses, bytes, nanoseconds. */
struct exchange_row {
    uint64_t send_bytes, send, send_piece; /* piece: bytes of all pieces but the last one */
    uint64_t slot_there,
        flag_there;      /* of the receiver.  No flag: `slot` is where a long message is wanted, on this device */
    uint64_t done_there; /* on this device: what the receiver has done */
    uint64_t get_bytes, get, get_piece;
    uint64_t slot_here, flag_here;
};
struct exchange_table {
    uint64_t window; /* of this rank: struct window_head */
    uint64_t half;   /* bytes from slots and flags of even exchanges to those of odd ones */
    uint64_t fault;  /* a word in host memory: 1 after a wait that was too long */
    uint64_t limit;
    uint64_t longest; /* EXCHANGE_WORDS */
    struct exchange_row row[EXCHANGE_MESSAGES];
};
enum { EXCHANGE_CODE_PARTS = 6 };
extern const char *const exchange_code[EXCHANGE_CODE_PARTS]; /* one after the other */

/* Rows that kernels of neighbouring ranks write for each other while both run (kb_halo_number()): how their memory begins,
 * at HALO_SLOTS of which there are words of even launches, then of odd ones.  Words of one launch: of the rows before this
 * rank's part, then of those after it. */
enum { HALO_SLOTS = 256, HALO_RANKS = 16 };
struct halo_head {
    uint32_t last, ticket, fault, one; /* fault: of this rank's wait, or of another rank's kernel; one: 1 */
    uint64_t host_fault, limit;        /* a word in host memory: 1 after a fault; nanoseconds */
    uint64_t told[HALO_RANKS];         /* where the others read what this rank has done; then 0 */
    uint32_t done[HALO_RANKS];         /* what they have done, by their numbers */
};

/* What a rank tells the others of its window. */
struct exchange_card {
    int64_t status;            /* PTXGEN_OK */
    uint64_t ready;            /* 0: there is no window */
    uint64_t machine, process; /* equal where ranks have them in common */
    uint64_t context, memory;  /* in the process */
    char handle[64];           /* for other processes of the machine */
};

/* Bytes that travel with one call: to a rank and from one.  Message i of a rank is message i of its receiver. */
struct exchange_message {
    const void *send;
    void *get;
    size_t send_bytes, get_bytes;
    int to, from;
};

/* This rank's window, and those of the others. */
struct exchange;
/* For up to `messages` messages of up to `most` bytes at a time, and with `halo` bytes for exchange_halo().  seconds: the longest wait of a kernel for other ranks.
 * *out is NULL, and the card is not ready, where the device or the driver cannot do it. */
void exchange_open(ptxgen_gpu *gpu, int rank, int ranks, int messages, size_t most, size_t halo, double seconds,
                   struct exchange_card *card, struct exchange **out);
/* The windows of all ranks, by their cards.  False: some cannot be reached. */
bool exchange_reach(struct exchange *x, const struct exchange_card *cards);
/* Enqueue; n <= EXCHANGE_MESSAGES.  All ranks make the same calls in the same order, on streams that keep this order. */
ptxgen_status exchange_launch(ptxgen_session *s, struct exchange *x, const struct exchange_message *m, int n,
                              ptxgen_stream stream);
/* What a kernel that does the exchange itself reads (kb_exchange()).  False: the messages are not all so short, or not whole
 * words. */
bool exchange_table(const struct exchange *x, const struct exchange_message *m, int n, struct exchange_table *table);
/* What a kernel needs that exchanges rows itself, of `words` bytes of words in all: from byte `at` of those bytes on.  before,
 * after: the ranks beside this one, or -1.  address: of struct halo_head, here and there.  False: a failure.  All ranks know
 * what each has done, as each may write to all that it has failed: until then their memory is there. */
int64_t exchange_halo_bytes(int64_t words);
bool exchange_halo(struct exchange *x, size_t at, int before, int after, uint64_t address[3]);
/* After a kernel with these rows was refused: those of all ranks end, also later ones, instead of waiting for its words.  Where
 * the caller captures, nothing runs yet, and nothing is done.  False after a fault: some wait, and this rank's next kernel
 * would pass for the one that was refused. */
bool exchange_halo_fails(ptxgen_session *s, struct exchange *x, uint64_t here, ptxgen_stream stream);
/* Has a wait been too long?  Then all that came later is wrong. */
bool exchange_failed(const struct exchange *x);
/* Addresses of the words that say so: on the device, where it is read by kernels, and in host memory. */
void exchange_late_at(const struct exchange *x, uint64_t *error, uint64_t *fault);
/* After all launches of this rank.  Waits until the other ranks have no more to write to this one; where that takes too
 * long, the memory is lost.  Another process may still have a handle of the memory open: the driver keeps it until then,
 * though its manual does not promise that. */
void exchange_close(struct exchange *x);

#endif
