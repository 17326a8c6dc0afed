// SPDX-License-Identifier: Apache-2.0
// kernels.cu - a generated kernel beside one of CUDA C++, on memory and in a stream of the runtime's.
#include "total.h"

__global__ void square(float *x, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= x[i];
}

CUresult sum_of_squares(total_program *program, cudaStream_t stream, float *x, float *total)
{
    void *workspace = nullptr;
    size_t bytes = 0;
    CUresult result = total_workspace_bytes(program, 4096, &bytes);
    if (result != CUDA_SUCCESS || cudaMallocAsync(&workspace, bytes + 1, stream) != cudaSuccess)
        return result;
    square<<<16, 256, 0, stream>>>(x, 4096);
    result = total_launch(program, stream, 4096, x, total, workspace, bytes);
    cudaFreeAsync(workspace, stream);
    return result;
}
