/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.h - what a CUDA programmer would write for the dot product of two vectors in one launch.
 *
 * Both kernels do what the generated one does: 16-byte loads, a sum per block, a partial sum per block in memory, and
 * the block that finishes last adds those up and sets the counter back.  The first includes nothing; the second leaves
 * the block's sum to CUB.
 */
#ifndef PTXGEN_BENCH_KERNELS_H
#define PTXGEN_BENCH_KERNELS_H

#define KERNEL_MAIN                                                                                                    \
    "extern \"C\" __global__ void __launch_bounds__(256)\n"                                                            \
    "dot(const float *__restrict__ x, const float *__restrict__ y, float *out, float *partial, unsigned *done, long "  \
    "long n)\n"                                                                                                        \
    "{\n"                                                                                                              \
    "    const float4 *x4 = (const float4 *)x, *y4 = (const float4 *)y;\n"                                             \
    "    const long long quads = n / 4, stride = (long long)gridDim.x * 256;\n"                                        \
    "    const long long first = blockIdx.x * 256ll + threadIdx.x;\n"                                                  \
    "    float sum = 0.0f;\n"                                                                                          \
    "#pragma unroll 4\n"                                                                                               \
    "    for (long long i = first; i < quads; i += stride) {\n"                                                        \
    "        float4 a = x4[i], b = y4[i];\n"                                                                           \
    "        sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;\n"                                                  \
    "    }\n"                                                                                                          \
    "    for (long long i = quads * 4 + first; i < n; i += stride)\n"                                                  \
    "        sum += x[i] * y[i];\n"                                                                                    \
    "    sum = block_sum(sum);\n"                                                                                      \
    "    __shared__ bool last;\n"                                                                                      \
    "    if (threadIdx.x == 0) {\n"                                                                                    \
    "        partial[blockIdx.x] = sum;\n"                                                                             \
    "        __threadfence();\n"                                                                                       \
    "        last = atomicAdd(done, 1u) == gridDim.x - 1;\n"                                                           \
    "    }\n"                                                                                                          \
    "    __syncthreads();\n"                                                                                           \
    "    if (!last)\n"                                                                                                 \
    "        return;\n"                                                                                                \
    "    __threadfence();\n"                                                                                           \
    "    sum = 0.0f;\n"                                                                                                \
    "    for (unsigned i = threadIdx.x; i < gridDim.x; i += 256)\n"                                                    \
    "        sum += partial[i];\n"                                                                                     \
    "    sum = block_sum(sum);\n"                                                                                      \
    "    if (threadIdx.x == 0) {\n"                                                                                    \
    "        *out = sum;\n"                                                                                            \
    "        *done = 0;\n"                                                                                             \
    "    }\n"                                                                                                          \
    "}\n"

static const char kernel_plain[] = "__device__ float warp_sum(float v)\n"
                                   "{\n"
                                   "    for (int k = 16; k > 0; k /= 2)\n"
                                   "        v += __shfl_down_sync(0xffffffffu, v, k);\n"
                                   "    return v;\n"
                                   "}\n"
                                   "__device__ float block_sum(float v)\n"
                                   "{\n"
                                   "    __shared__ float of_warp[8];\n"
                                   "    v = warp_sum(v);\n"
                                   "    __syncthreads();\n"
                                   "    if (threadIdx.x % 32 == 0)\n"
                                   "        of_warp[threadIdx.x / 32] = v;\n"
                                   "    __syncthreads();\n"
                                   "    return warp_sum(threadIdx.x < 8 ? of_warp[threadIdx.x] : 0.0f);\n"
                                   "}\n" KERNEL_MAIN;

static const char kernel_cub[] = "#include <cub/block/block_reduce.cuh>\n"
                                 "__device__ float block_sum(float v)\n"
                                 "{\n"
                                 "    using reduce = cub::BlockReduce<float, 256>;\n"
                                 "    __shared__ typename reduce::TempStorage storage;\n"
                                 "    __syncthreads();\n"
                                 "    return reduce(storage).Sum(v);\n"
                                 "}\n" KERNEL_MAIN;

static const char spec_dot[] = "kind: reduce\n"
                               "inputs:\n"
                               "  x: f32[n]\n"
                               "  y: f32[n]\n"
                               "map: x * y\n"
                               "operator: add\n"
                               "outputs:\n"
                               "  dot: f32\n";

#endif
