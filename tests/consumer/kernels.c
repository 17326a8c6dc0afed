/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c - kernels that CMake generated, called on memory of the driver's: no cast is needed. */
#include "largest.h"
#include "total.h"

CUresult total_and_largest(CUstream stream, int64_t n, CUdeviceptr x, CUdeviceptr total, CUdeviceptr largest)
{
    total_program sums;
    largest_program maxima;
    CUresult result = total_load(&sums);
    if (result == CUDA_SUCCESS)
        result = total_launch(&sums, stream, n, ptxgen_pointer(x), ptxgen_pointer(total), NULL, 0);
    if (result == CUDA_SUCCESS)
        result = largest_load(&maxima);
    if (result == CUDA_SUCCESS)
        result = largest_launch(&maxima, stream, n, ptxgen_pointer(x), ptxgen_pointer(largest), NULL, 0);
    return result;
}
