/* SPDX-License-Identifier: Apache-2.0 */
/* segmented.cu - sums of regular segments: cub::DeviceSegmentedReduce with computed offsets. */
#include <cub/device/device_segmented_reduce.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "peer_rows.cuh"

struct Offset {
    int64_t segment;
    __host__ __device__ int64_t operator()(int64_t i) const { return i * segment; }
};

static const Row segsum{ "segsum", "cub offsets", [](PEER_ARGS) {
                            auto offsets = thrust::make_transform_iterator(thrust::make_counting_iterator<int64_t>(0),
                                                                           Offset{ size->segment });
                            return static_cast<int>(cub::DeviceSegmentedReduce::Sum(
                                temp, *bytes, static_cast<const float *>(in[0]), static_cast<float *>(out[0]),
                                size->n / size->segment, offsets, offsets + 1, stream));
                        } };
