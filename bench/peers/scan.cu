/* SPDX-License-Identifier: Apache-2.0 */
/* scan.cu - cub::DeviceScan; and the maximum segment sum through it, the way to an ordered reduction with CUB. */
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/tuple.h>

#include "peer_rows.cuh"

template <class T> static int scan(PEER_ARGS)
{
    return cub::DeviceScan::InclusiveSum(temp, *bytes, static_cast<const T *>(in[0]), static_cast<T *>(out[0]),
                                         static_cast<int>(size->n), stream);
}
static const Row scans[] = {
    { "scan_f32", "cub", scan<float> },
    { "scan_f32_run", "cub, any order", scan<float> },
    { "scan_f32_device", "cub, any order", scan<float> },
    { "scan_i32", "cub", scan<int32_t> },
    { "scan_i64", "cub", scan<int64_t> },
    { "scan_f64", "cub", scan<double> },
    { "scan_i8", "cub", scan<int8_t> },
};

struct alignas(16) Mss {
    int best, left, right, total;
};
struct ToMss {
    __host__ __device__ Mss operator()(int x) const
    {
        const int p = x > 0 ? x : 0;
        return { p, p, p, x };
    }
};
struct AddMss {
    static __host__ __device__ int larger(int a, int b) { return a > b ? a : b; }
    __host__ __device__ Mss operator()(Mss a, Mss b) const
    {
        return { larger(larger(a.best, b.best), a.right + b.left), larger(a.left, a.total + b.left),
                 larger(b.right, a.right + b.total), a.total + b.total };
    }
};
__global__ void take_best(const Mss *states, int64_t n, int *out)
{
    *out = n > 0 ? states[n - 1].best : 0;
}

/* All prefixes go to memory; the last one holds the answer. */
static const Row mss{ "mss", "cub scan", [](PEER_ARGS) {
                         const size_t states = (static_cast<size_t>(size->n) * sizeof(Mss) + 255) / 256 * 256;
                         size_t inner = temp ? *bytes - states : 0;
                         Mss *prefix = static_cast<Mss *>(temp);
                         const cudaError_t status = cub::DeviceScan::InclusiveScan(
                             temp ? static_cast<char *>(temp) + states : nullptr, inner,
                             thrust::make_transform_iterator(static_cast<const int *>(in[0]), ToMss{}), prefix, AddMss{},
                             static_cast<int>(size->n), stream);
                         if (temp == nullptr) {
                             *bytes = states + inner;
                             return static_cast<int>(status);
                         }
                         take_best<<<1, 1, 0, stream>>>(prefix, size->n, static_cast<int *>(out[0]));
                         return static_cast<int>(status ? status : cudaGetLastError());
                     } };

/* ---- operators of one's own: states through iterators, results reduced to what the problem asks for */
struct TakeBest {
    template <class State> __host__ __device__ int operator()(const State &s) const { return s.best; }
};

struct Run {
    int best, head, tail, length, first, last;
};
struct ToRun {
    __host__ __device__ Run operator()(int x) const { return { 1, 1, 1, 1, x, x }; }
};
struct AddRun {
    __host__ __device__ Run operator()(Run a, Run b) const
    {
        const bool joins = a.last <= b.first;
        const int across = joins ? a.tail + b.head : 0, best = AddMss::larger(a.best, b.best);
        return { AddMss::larger(best, across), joins && a.head == a.length ? a.length + b.head : a.head,
                 joins && b.tail == b.length ? b.length + a.tail : b.tail, a.length + b.length, a.first, b.last };
    }
};

template <class Map, class Operator> static int best_so_far(PEER_ARGS)
{
    return cub::DeviceScan::InclusiveScan(temp, *bytes, thrust::make_transform_iterator(static_cast<const int *>(in[0]), Map{}),
                                          thrust::make_transform_output_iterator(static_cast<int *>(out[0]), TakeBest{}), Operator{},
                                          static_cast<int>(size->n), stream);
}

/* Affine maps, the earlier one first; arrays of their own for factors and terms. */
struct AddAffine {
    __host__ __device__ thrust::tuple<float, float> operator()(thrust::tuple<float, float> a, thrust::tuple<float, float> b) const
    {
        return { thrust::get<0>(a) * thrust::get<0>(b), thrust::get<1>(a) * thrust::get<0>(b) + thrust::get<1>(b) };
    }
};
static int affine(PEER_ARGS)
{
    return cub::DeviceScan::InclusiveScan(
        temp, *bytes, thrust::make_zip_iterator(static_cast<const float *>(in[0]), static_cast<const float *>(in[1])),
        thrust::make_zip_iterator(static_cast<float *>(out[1]), static_cast<float *>(out[0])), AddAffine{}, static_cast<int>(size->n), stream);
}

/* Four sums at once, arrays of their own. */
using Four = thrust::tuple<int64_t, int64_t, int64_t, int64_t>;
struct AddFour {
    __host__ __device__ Four operator()(Four a, Four b) const
    {
        return { thrust::get<0>(a) + thrust::get<0>(b), thrust::get<1>(a) + thrust::get<1>(b), thrust::get<2>(a) + thrust::get<2>(b),
                 thrust::get<3>(a) + thrust::get<3>(b) };
    }
};
template <class T> static auto zip_four(T *const *p)
{
    return thrust::make_zip_iterator(p[0], p[1], p[2], p[3]);
}
static int four(PEER_ARGS)
{
    const int64_t *const from[] = { static_cast<const int64_t *>(in[0]), static_cast<const int64_t *>(in[1]),
                                    static_cast<const int64_t *>(in[2]), static_cast<const int64_t *>(in[3]) };
    int64_t *const to[] = { static_cast<int64_t *>(out[0]), static_cast<int64_t *>(out[1]), static_cast<int64_t *>(out[2]),
                            static_cast<int64_t *>(out[3]) };
    return cub::DeviceScan::InclusiveScan(temp, *bytes, zip_four(from), zip_four(to), AddFour{}, static_cast<int>(size->n), stream);
}
static const Row states[] = {
    { "scan_mss", "cub", best_so_far<ToMss, AddMss> },
    { "scan_lssp", "cub", best_so_far<ToRun, AddRun> },
    { "scan_affine", "cub", affine },
    { "scan_i64x4", "cub", four },
};
