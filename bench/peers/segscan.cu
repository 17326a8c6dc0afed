/* SPDX-License-Identifier: Apache-2.0 */
/* segscan.cu - running sums of regular segments: scans by key of CUB and Thrust, keys computed from the position. */
#include <cub/device/device_scan.cuh>
#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
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

static const Row by_key{ "segscan", "cub by key", [](PEER_ARGS) {
                            return static_cast<int>(cub::DeviceScan::InclusiveSumByKey(
                                temp, *bytes, keys(size), static_cast<const float *>(in[0]), static_cast<float *>(out[0]),
                                static_cast<uint32_t>(size->n), cuda::std::equal_to<>{}, stream));
                        } };

static const Row thrust_by_key{ "segscan", "thrust by key", [](PEER_ARGS) {
                                   PEER_NO_TEMP
                                   const float *x = static_cast<const float *>(in[0]);
                                   const auto key = keys(size);
                                   thrust::inclusive_scan_by_key(thrust::cuda::par.on(stream), key, key + size->n, x,
                                                                 static_cast<float *>(out[0]));
                                   return static_cast<int>(cudaGetLastError());
                               },
                                1 };
