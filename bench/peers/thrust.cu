/* SPDX-License-Identifier: Apache-2.0 */
/* thrust.cu - Thrust's algorithms; their results come back to the host, so they wait for the device. */
#include <thrust/execution_policy.h>
#include <thrust/inner_product.h>
#include <thrust/reduce.h>
#include <thrust/extrema.h>

#include "peer_rows.cuh"

static int give(float *to, float value, cudaStream_t stream)
{
    return cudaMemcpyAsync(to, &value, sizeof value, cudaMemcpyHostToDevice, stream);
}

static const Row sum{ "sum_f32", "thrust", [](PEER_ARGS) {
                         PEER_NO_TEMP
                         const float *x = static_cast<const float *>(in[0]);
                         return give(static_cast<float *>(out[0]), thrust::reduce(thrust::cuda::par.on(stream), x, x + size->n),
                                     stream);
                     },
                      1 };
static const Row dot{ "dot", "thrust", [](PEER_ARGS) {
                         PEER_NO_TEMP
                         const float *x = static_cast<const float *>(in[0]), *y = static_cast<const float *>(in[1]);
                         return give(static_cast<float *>(out[0]),
                                     thrust::inner_product(thrust::cuda::par.on(stream), x, x + size->n, y, 0.0f), stream);
                     },
                      1 };
