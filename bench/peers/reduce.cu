/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.cu - cub::DeviceReduce on the whole-array problems.
 *
 * Item counts are 32-bit, CUB's fast path: the benchmark stays below 2^31 elements here.
 */
#include <cub/device/device_reduce.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "peer_rows.cuh"

template <class T> static const T *input(const void *const *in, int i)
{
    return static_cast<const T *>(in[i]);
}
template <class T> static T *output(void *const *out, int i)
{
    return static_cast<T *>(out[i]);
}

/* ---- sums ------------------------------------------------------------------------------------ */
template <class From, class To> struct Widen {
    __host__ __device__ To operator()(From x) const { return static_cast<To>(x); }
};

template <class From, class To> static int sum(PEER_ARGS)
{
    const int n = static_cast<int>(size->n);

    if constexpr (std::is_same_v<From, To>)
        return cub::DeviceReduce::Sum(temp, *bytes, input<From>(in, 0), output<To>(out, 0), n, stream);
    else
        return cub::DeviceReduce::Sum(temp, *bytes,
                                      thrust::make_transform_iterator(input<From>(in, 0), Widen<From, To>{}),
                                      output<To>(out, 0), n, stream);
}
static const Row sums[] = {
    { "sum_f32", "cub", sum<float, float> },         { "sum_f64", "cub", sum<double, double> },
    { "sum_i8", "cub", sum<int8_t, int32_t> },       { "sum_f16", "cub", sum<__half, float> },
    { "sum_bf16", "cub", sum<__nv_bfloat16, float> },
};

struct Product {
    const float *x, *y;
    __host__ __device__ float operator()(int i) const { return x[i] * y[i]; }
};
static const Row dot{ "dot", "cub", [](PEER_ARGS) {
                         auto products = thrust::make_transform_iterator(thrust::make_counting_iterator(0),
                                                                         Product{ input<float>(in, 0), input<float>(in, 1) });
                         return static_cast<int>(cub::DeviceReduce::Sum(temp, *bytes, products, output<float>(out, 0),
                                                                        static_cast<int>(size->n), stream));
                     } };

/* ---- extrema --------------------------------------------------------------------------------- */
static const Row max_row{ "max", "cub", [](PEER_ARGS) {
                             return static_cast<int>(cub::DeviceReduce::Max(temp, *bytes, input<float>(in, 0),
                                                                            output<float>(out, 0),
                                                                            static_cast<int>(size->n), stream));
                         } };
static const Row argmin{ "argmin", "cub", [](PEER_ARGS) {
                            return static_cast<int>(cub::DeviceReduce::ArgMin(
                                temp, *bytes, input<float>(in, 0), output<float>(out, 0), output<int64_t>(out, 1),
                                static_cast<int64_t>(size->n), stream));
                        } };

/* ---- tuple states: an output iterator that spreads the state over several arrays ------------- */
template <class State, class Store> struct Spread {
    using value_type = void;
    using difference_type = ptrdiff_t;
    using pointer = void;
    using iterator_category = std::random_access_iterator_tag;
    struct reference {
        Store store;
        __host__ __device__ void operator=(const State &s) const { store(s); }
    };
    Store store;
    __host__ __device__ reference operator*() const { return { store }; }
    __host__ __device__ reference operator[](ptrdiff_t) const { return { store }; }
    __host__ __device__ Spread operator+(ptrdiff_t) const { return *this; }
};

struct MinMaxSum {
    float lo, hi, sum;
};
struct ToMinMaxSum {
    __host__ __device__ MinMaxSum operator()(float x) const { return { x, x, x }; }
};
struct AddMinMaxSum {
    __host__ __device__ MinMaxSum operator()(MinMaxSum a, MinMaxSum b) const
    {
        return { fminf(a.lo, b.lo), fmaxf(a.hi, b.hi), a.sum + b.sum };
    }
};
struct StoreMinMaxSum {
    float *lo, *hi, *sum;
    __host__ __device__ void operator()(const MinMaxSum &s) const { *lo = s.lo, *hi = s.hi, *sum = s.sum; }
};
static const Row minmaxsum{ "minmaxsum", "cub", [](PEER_ARGS) {
                               Spread<MinMaxSum, StoreMinMaxSum> result{ { output<float>(out, 0), output<float>(out, 1),
                                                                           output<float>(out, 2) } };
                               return static_cast<int>(cub::DeviceReduce::Reduce(
                                   temp, *bytes, thrust::make_transform_iterator(input<float>(in, 0), ToMinMaxSum{}), result,
                                   static_cast<int>(size->n), AddMinMaxSum{}, MinMaxSum{ INFINITY, -INFINITY, 0 }, stream));
                           } };

struct Moments {
    float n, mean, m2;
};
struct ToMoments {
    __host__ __device__ Moments operator()(float x) const { return { 1, x, 0 }; }
};
struct AddMoments {
    __host__ __device__ Moments operator()(Moments a, Moments b) const
    {
        const float n = a.n + b.n, delta = b.mean - a.mean, share = n > 0 ? b.n / n : 0;
        return { n, a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.n * share };
    }
};
struct StoreMoments {
    float *mean, *variance;
    __host__ __device__ void operator()(const Moments &s) const { *mean = s.mean, *variance = s.m2 / s.n; }
};
static const Row welford{ "welford", "cub", [](PEER_ARGS) {
                             Spread<Moments, StoreMoments> result{ { output<float>(out, 0), output<float>(out, 1) } };
                             return static_cast<int>(cub::DeviceReduce::Reduce(
                                 temp, *bytes, thrust::make_transform_iterator(input<float>(in, 0), ToMoments{}), result,
                                 static_cast<int>(size->n), AddMoments{}, Moments{ 0, 0, 0 }, stream));
                         } };
