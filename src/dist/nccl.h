/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.h - a rank of a caller's NCCL communicator. */
#ifndef PTXGEN_DIST_NCCL_H
#define PTXGEN_DIST_NCCL_H

#include "dist.h"
#include "nccl_abi.h"
#include "ptxgen/dist.h"

struct nccl {
    void *library;
#define X(name, symbol, params) int(*name) params;
    NCCL_TABLE(X)
#undef X
    const char *(*GetErrorString)(int result);
    struct ncclComm *comm; /* the caller's */
    ptxgen_gpu *gpu;       /* the caller's */
    ptxgen_stream stream;  /* for what ranks tell each other */
    char *staging;         /* and where it lies on the device: of this rank, then of all */
    size_t room;           /* of this rank */
    double seconds;        /* the longest wait for other ranks */
    bool only_nccl;        /* GPUs do not write into each other's memory */
    int ends_apart;        /* 1: no kernel takes neighbours from other ranks itself; -1: none of several steps does */
    /* Of kernels that do: the stream of those that were prepared last; are they on several?  Then `turn` is behind the last. */
    ptxgen_stream joined;
    bool joins, in_turn;
    ptxgen_event turn;
    char fault[200]; /* the last one; "": none */
};

/* Rank and size are the communicator's.  false: a message; nothing is left over. */
ptxgen_status nccl_open(ptxgen_session *s, ptxgen_gpu *gpu, struct ncclComm *comm, const ptxgen_nccl_options *o,
                        struct ptxgen_comm **out);
/* Is this result of a call of NCCL a success?  If not, the fault is kept.  The gpu's context must be current. */
bool nccl_did(struct nccl *n, int result, const char *call);
/* Until the stream is done; false after a fault, or when that takes too long.  The gpu's context is current. */
bool nccl_wait(struct nccl *n, ptxgen_stream stream);

#endif
