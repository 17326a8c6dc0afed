/* SPDX-License-Identifier: Apache-2.0 */
/* segmented.cu - sums of segments: cub::DeviceSegmentedReduce with computed and with given offsets, and reductions by key. */
#include <cub/device/device_segmented_reduce.cuh>
#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/reduce.h>

#include "peer_rows.cuh"

struct Offset {
    int64_t segment;
    __host__ __device__ int64_t operator()(int64_t i) const { return i * segment; }
};

struct Key {
    int64_t segment;
    __host__ __device__ int32_t operator()(int64_t i) const { return static_cast<int32_t>(i / segment); }
};

static const Row segsum{ "segsum", "cub offsets", [](PEER_ARGS) {
                            auto offsets = thrust::make_transform_iterator(thrust::make_counting_iterator<int64_t>(0),
                                                                           Offset{ size->segment });
                            return static_cast<int>(cub::DeviceSegmentedReduce::Sum(
                                temp, *bytes, static_cast<const float *>(in[0]), static_cast<float *>(out[0]),
                                size->n / size->segment, offsets, offsets + 1, stream));
                        } };

static const Row by_key{ "segsum", "thrust by key", [](PEER_ARGS) {
                            PEER_NO_TEMP
                            const float *x = static_cast<const float *>(in[0]);
                            auto keys = thrust::make_transform_iterator(thrust::make_counting_iterator<int64_t>(0), Key{ size->segment });
                            thrust::reduce_by_key(thrust::cuda::par_nosync.on(stream), keys, keys + size->n, x,
                                                  thrust::make_discard_iterator(), static_cast<float *>(out[0]));
                            return static_cast<int>(cudaGetLastError());
                        },
                         1 };

static int given_offsets(PEER_ARGS)
{
    const int64_t *offset = static_cast<const int64_t *>(in[1]);
    return static_cast<int>(cub::DeviceSegmentedReduce::Sum(temp, *bytes, static_cast<const float *>(in[0]),
                                                            static_cast<float *>(out[0]), size->n / size->segment, offset, offset + 1,
                                                            stream));
}
static const Row equal{ "offsets_equal", "cub", given_offsets };
static const Row power{ "offsets_power", "cub", given_offsets };
static const Row huge{ "offsets_huge", "cub", given_offsets };
