/* SPDX-License-Identifier: Apache-2.0 */
/* test_nccl_abi.c - the transport's own declarations of NCCL against <nccl.h>, where there is one. */
#include <criterion/criterion.h>

#include "dist/nccl_abi.h"

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>

Test(nccl_abi, numbers_are_those_of_the_header)
{
    cr_expect_eq((int)NCCL_OK, (int)ncclSuccess);
    cr_expect_eq((int)NCCL_IN_PROGRESS, (int)ncclInProgress);
    cr_expect_eq((int)NCCL_INT8, (int)ncclInt8);
    cr_expect_eq((int)NCCL_FLOAT32, (int)ncclFloat32);
    cr_expect_eq((int)NCCL_SUM, (int)ncclSum);
    cr_expect_eq(sizeof(ncclDataType_t), sizeof(int));
    cr_expect_eq(sizeof(ncclResult_t), sizeof(int));
}

/* The compiler refuses a prototype of other parameters: the same names, with the header's types. */
#define SEND ncclResult_t (*)(const void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)
_Static_assert(_Generic(&ncclCommCount, ncclResult_t (*)(const ncclComm_t, int *) : 1, default : 0), "ncclCommCount");
_Static_assert(_Generic(&ncclCommUserRank, ncclResult_t (*)(const ncclComm_t, int *) : 1, default : 0),
               "ncclCommUserRank");
_Static_assert(_Generic(&ncclCommCuDevice, ncclResult_t (*)(const ncclComm_t, int *) : 1, default : 0),
               "ncclCommCuDevice");
_Static_assert(_Generic(&ncclCommGetAsyncError, ncclResult_t (*)(ncclComm_t, ncclResult_t *) : 1, default : 0),
               "ncclCommGetAsyncError");
_Static_assert(_Generic(&ncclAllGather,
                        ncclResult_t (*)(const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t) : 1,
                        default : 0),
               "ncclAllGather");
_Static_assert(_Generic(&ncclSend, SEND : 1, default : 0), "ncclSend");
_Static_assert(_Generic(&ncclRecv, ncclResult_t (*)(void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t) : 1,
                        default : 0),
               "ncclRecv");
_Static_assert(_Generic(&ncclGroupStart, ncclResult_t (*)(void) : 1, default : 0), "ncclGroupStart");
_Static_assert(_Generic(&ncclGroupEnd, ncclResult_t (*)(void) : 1, default : 0), "ncclGroupEnd");
_Static_assert(_Generic(&ncclGetErrorString, const char *(*)(ncclResult_t) : 1, default : 0), "ncclGetErrorString");
#else
Test(nccl_abi, needs_the_header) { cr_skip_test("there is no <nccl.h> to compare with"); }
#endif
