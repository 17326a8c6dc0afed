/* SPDX-License-Identifier: Apache-2.0 */
/* kept.cu - cub::DeviceSelect, DeviceRunLengthEncode and DeviceReduce::ReduceByKey; the last output is the count. */
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_select.cuh>

#include "peer_rows.cuh"

template <class T, int threshold> struct Above {
    __host__ __device__ bool operator()(T x) const { return x > threshold; }
};
template <class T, int threshold> static int select(PEER_ARGS)
{
    return cub::DeviceSelect::If(temp, *bytes, static_cast<const T *>(in[0]), static_cast<T *>(out[0]),
                                 static_cast<int64_t *>(out[1]), size->n, Above<T, threshold>{}, stream);
}
static int unique(PEER_ARGS)
{
    return cub::DeviceSelect::Unique(temp, *bytes, static_cast<const int *>(in[0]), static_cast<int *>(out[0]),
                                     static_cast<int64_t *>(out[1]), size->n, stream);
}
static int run_length(PEER_ARGS)
{
    return cub::DeviceRunLengthEncode::Encode(temp, *bytes, static_cast<const int *>(in[0]), static_cast<int *>(out[0]),
                                              static_cast<int *>(out[1]), static_cast<int64_t *>(out[2]),
                                              static_cast<int>(size->n), stream);
}
struct Add {
    __host__ __device__ int operator()(int a, int b) const { return a + b; }
};
static int sums_by_key(PEER_ARGS)
{
    return cub::DeviceReduce::ReduceByKey(temp, *bytes, static_cast<const int *>(in[0]), static_cast<int *>(out[0]),
                                          static_cast<const int *>(in[1]), static_cast<int *>(out[1]),
                                          static_cast<int64_t *>(out[2]), Add{}, static_cast<int>(size->n), stream);
}
static const Row rows[] = {
    { "select_1", "cub", select<int, 98> },
    { "select_50", "cub", select<int, 0> },
    { "select_99", "cub", select<int, -99> },
    { "select_i64", "cub", select<int64_t, 0> },
    { "select_i8", "cub", select<int8_t, 0> },
    { "unique", "cub", unique },
    { "run_length", "cub", run_length },
    { "sums_by_key", "cub", sums_by_key },
};
