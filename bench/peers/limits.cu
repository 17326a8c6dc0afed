/* SPDX-License-Identifier: Apache-2.0 */
/* limits.cu - what the device can do at all: an empty kernel, the best read of n bytes, a vectorised copy.
 *
 * The readers keep `loads` 16-byte loads in flight per thread and fold what they read, so that nothing is optimised
 * away; the fold is stored only if it has one value in 2^32.  Every launch touches each byte once.
 */
#include "peer_rows.cuh"

__global__ void empty() {}

static __device__ unsigned fold(uint4 v)
{
    return v.x ^ v.y ^ v.z ^ v.w;
}

template <int threads, int loads, bool stay>
__global__ void __launch_bounds__(threads) read_all(const uint4 *__restrict__ x, int64_t vectors, unsigned *out)
{
    const int64_t tile = (int64_t)threads * loads;
    unsigned sum = 0;

    for (int64_t at = blockIdx.x * tile; at < vectors; at += gridDim.x * tile) {
        uint4 v[loads];
#pragma unroll
        for (int i = 0; i < loads; i++) {
            const int64_t k = at + i * threads + threadIdx.x;
            v[i] = k >= vectors ? uint4{ 0, 0, 0, 0 } : stay ? x[k] : __ldcs(x + k);
        }
#pragma unroll
        for (int i = 0; i < loads; i++)
            sum ^= fold(v[i]);
    }
    if (sum == 0x9e3779b9u)
        *out = sum;
}

template <int threads, int loads>
__global__ void __launch_bounds__(threads) copy_all(const uint4 *__restrict__ x, uint4 *__restrict__ y, int64_t vectors)
{
    const int64_t at = blockIdx.x * (int64_t)threads * loads + threadIdx.x;
    uint4 v[loads];
#pragma unroll
    for (int i = 0; i < loads; i++)
        if (at + i * threads < vectors)
            v[i] = x[at + i * threads];
#pragma unroll
    for (int i = 0; i < loads; i++)
        if (at + i * threads < vectors)
            y[at + i * threads] = v[i];
}

/* size->n is bytes here. blocks_per_sm 0: one tile per block.  stay: without the hint that data leave the caches first. */
template <int threads, int loads, int blocks_per_sm, bool stay = false>
static int read_limit(PEER_ARGS)
{
    PEER_NO_TEMP
    const int64_t vectors = size->n / 16, tiles = (vectors + threads * loads - 1) / (threads * loads);
    static int sms = 0;

    if (sms == 0)
        cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
    int64_t blocks = blocks_per_sm && tiles > (int64_t)sms * blocks_per_sm ? (int64_t)sms * blocks_per_sm : tiles;
    read_all<threads, loads, stay><<<blocks < 1 ? 1 : (unsigned)blocks, threads, 0, stream>>>(
        static_cast<const uint4 *>(in[0]), vectors, static_cast<unsigned *>(out[0]));
    return cudaGetLastError();
}

static const Row empty_row{ "empty", "empty kernel", [](PEER_ARGS) {
                               (void)in, (void)out, (void)size;
                               PEER_NO_TEMP
                               empty<<<1, 32, 0, stream>>>();
                               return static_cast<int>(cudaGetLastError());
                           } };
static const Row read_rows[] = {
    { "read", "read 512x4 tiles", read_limit<512, 4, 0> },    { "read", "read 512x8 tiles", read_limit<512, 8, 0> },
    { "read", "read 1024x4 tiles", read_limit<1024, 4, 0> },  { "read", "read 512x4 resident", read_limit<512, 4, 4> },
    { "read", "read 256x4 64 a SM", read_limit<256, 4, 64> }, { "read", "read 256x4 tiles that stay", read_limit<256, 4, 0, true> },
    { "read", "read 512x4 64 a SM that stay", read_limit<512, 4, 64, true> },
};
template <int threads, int loads> static int copy_limit(PEER_ARGS)
{
    PEER_NO_TEMP
    const int64_t vectors = size->n / 16, blocks = (vectors + threads * loads - 1) / (threads * loads);

    copy_all<threads, loads><<<blocks < 1 ? 1 : (unsigned)blocks, threads, 0, stream>>>(
        static_cast<const uint4 *>(in[0]), static_cast<uint4 *>(out[0]), vectors);
    return cudaGetLastError();
}
static const Row copy_rows[] = {
    { "copy", "copy 256x4", copy_limit<256, 4> },
    { "copy", "copy 512x4", copy_limit<512, 4> },
    { "copy", "copy 512x2", copy_limit<512, 2> },
    { "copy", "copy 1024x1", copy_limit<1024, 1> },
};
