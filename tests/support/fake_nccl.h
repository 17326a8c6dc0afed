/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nccl.h - NCCL among the threads of a process: ranks meet, and bytes travel at once.
 *
 * Built as a shared object with the entry points that the transport looks up.  "Device" memory is host memory, as that of
 * fake_cuda.c, and a stream has done all that it was given.  A call waits until the ranks that it needs have come, or one
 * of them is dead: then NCCL reports an error.  Sends and receives of a group are matched in order, at its end.
 *
 * For whole processes: FAKE_NCCL_DEAD is the rank that is dead, and with FAKE_NCCL_FAIL there are no communicators.
 */
#ifndef PTXGEN_FAKE_NCCL_H
#define PTXGEN_FAKE_NCCL_H

enum { FAKE_RANKS = 8, FAKE_NCCL_CALLS = 1024 };

struct fake_nccl_call {
    char what; /* g: AllGather, s: Send, r: Recv */
    int rank, other;
    const void *stream;
    unsigned long bytes;
};

struct fake_nccl {
    int ranks;
    int dead;      /* this rank never comes again; -1: none */
    int error;     /* what ncclCommGetAsyncError() gives */
    int apart;     /* each rank is on a device of its own, that of its number */
    int in_flight; /* calls are done later: they give ncclInProgress, and the next question ncclSuccess */
    int ncalls;
    struct fake_nccl_call call[FAKE_NCCL_CALLS];
};

/* In the shared object, as "fake_nccl_state" and "fake_nccl_comm": the communicator of a rank. */
typedef struct fake_nccl *fake_nccl_state_fn(int ranks);
typedef void *fake_nccl_comm_fn(int rank);

#endif
