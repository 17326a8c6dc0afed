/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_abi.h - the part of NCCL's binary interface that ptxgen uses.
 *
 * Written out here so that ptxgen builds without NCCL's header; names, argument order and numbers are NCCL's, which has
 * not changed them since 2.7.  tests/unit/dist/test_nccl_abi.c compares the two where the header is there.
 *
 * NCCL_TABLE rows: X(name, symbol, parameters).  Every function returns an int, an ncclResult_t.
 */
#ifndef PTXGEN_NCCL_ABI_H
#define PTXGEN_NCCL_ABI_H

#include <stddef.h>

struct ncclComm;
struct CUstream_st;

enum { NCCL_OK = 0, NCCL_IN_PROGRESS = 7 };
enum { NCCL_INT8 = 0, NCCL_FLOAT32 = 7 };
enum { NCCL_SUM = 0 };

/* clang-format off */
#define NCCL_TABLE(X)                                                                                                     \
    X(CommCount,         "ncclCommCount",         (const struct ncclComm *comm, int *count))                              \
    X(CommUserRank,      "ncclCommUserRank",      (const struct ncclComm *comm, int *rank))                               \
    X(CommCuDevice,      "ncclCommCuDevice",      (const struct ncclComm *comm, int *device))                             \
    X(CommGetAsyncError, "ncclCommGetAsyncError", (struct ncclComm *comm, int *result))                                   \
    X(AllGather,         "ncclAllGather",         (const void *send, void *get, size_t count, int type,                   \
                                                   struct ncclComm *comm, struct CUstream_st *stream))                    \
    X(Send,              "ncclSend",              (const void *send, size_t count, int type, int to,                      \
                                                   struct ncclComm *comm, struct CUstream_st *stream))                    \
    X(Recv,              "ncclRecv",              (void *get, size_t count, int type, int from,                           \
                                                   struct ncclComm *comm, struct CUstream_st *stream))                    \
    X(GroupStart,        "ncclGroupStart",        (void))                                                                 \
    X(GroupEnd,          "ncclGroupEnd",          (void))
/* clang-format on */

#endif
