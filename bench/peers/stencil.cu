/* SPDX-License-Identifier: Apache-2.0 */
/* stencil.cu - stencils by hand: every thread computes a window of points out of registers.
 *
 *     window inside the array, with all that its points read: its surroundings into registers, 16 bytes at a time where rows allow it,
 *     then row by row
 *     else: its surroundings through the boundary, then those points that exist
 *
 * Windows are as wide as a vector where rows are multiples of one, otherwise a column of eight points, so that a warp's accesses lie side by
 * side.  Nothing goes through shared memory: the L1 cache serves windows that overlap.  Values of a window that no point reads are
 * loads that the compiler drops.
 */
#include "peer_rows.cuh"

namespace {

enum Bound { CLAMP, WRAP, REFLECT, MIRROR };
template <Bound B> __device__ int bounded(int i, int n)
{
    if (B == CLAMP)
        return min(max(i, 0), n - 1);
    if (B == WRAP)
        return i < 0 ? i + n : i >= n ? i - n : i;
    return i < 0 ? -i - (B == REFLECT) : i >= n ? 2 * n - 1 - i - (B == MIRROR) : i;
}

/* N consecutive elements at a time, in one access where they are aligned to it. */
template <int N, class T> struct alignas(N * sizeof(T)) Pack {
    T e[N];
};
template <int N, class T> __device__ void load(const T *p, T *to)
{
    const Pack<N, T> v = *reinterpret_cast<const Pack<N, T> *>(p);
    for (int i = 0; i < N; i++)
        to[i] = v.e[i];
}
template <int N, class T> __device__ void store(T *p, const T *from)
{
    Pack<N, T> v;
    for (int i = 0; i < N; i++)
        v.e[i] = from[i];
    *reinterpret_cast<Pack<N, T> *>(p) = v;
}

/* ---- stencils --------------------------------------------------------------------------------------
 * `value` is one point from its surroundings, u(z, y, x); a stencil with more than that has a `row` of its own. */
template <class S, int N, class At> __device__ void plain_row(typename S::T *out, At u)
{
    typename S::T r[N];
    for (int i = 0; i < N; i++)
        r[i] = S::value([&](int z, int y, int x) { return u(z, y, x + i); });
    store<N>(out, r);
}
template <class Type, int Reach, int ReachZ, Bound B> struct Stencil {
    using T = Type;
    static constexpr int R = Reach, RZ = ReachZ;
    static constexpr Bound bound = B;
};
/* A stencil's numbers, and inside the kernel its arrays beside the one of the window. */
struct Numbers {
    float param[6];
};
struct Arguments {
    const float *__restrict__ in1;
    const float4 *__restrict__ in2;
    void *__restrict__ out0;
    float4 *__restrict__ out1;
    const float *param;
};

struct Jacobi2d : Stencil<float, 1, 0, CLAMP> {
    [[maybe_unused]] static constexpr bool border_stays = true;
    template <class U> static __device__ float value(U u) { return 0.25f * (u(0, -1, 0) + u(0, 1, 0) + u(0, 0, -1) + u(0, 0, 1)); }
};
struct Jacobi2d9 : Stencil<float, 2, 0, CLAMP> {
    template <class U> static __device__ float value(U u)
    {
        const float near = u(0, -1, 0) + u(0, 1, 0) + u(0, 0, -1) + u(0, 0, 1), far = u(0, -2, 0) + u(0, 2, 0) + u(0, 0, -2) + u(0, 0, 2);
        return (u(0, 0, 0) + near + far) * (1 / 9.f);
    }
};
struct Gaussian : Stencil<float, 2, 0, REFLECT> {
    template <class U> static __device__ float value(U u)
    {
        const float weight[] = { 1, 4, 6, 4, 1 };
        float sum = 0;
#pragma unroll
        for (int y = -2; y <= 2; y++)
#pragma unroll
            for (int x = -2; x <= 2; x++)
                sum += weight[y + 2] * weight[x + 2] * u(0, y, x);
        return sum * (1 / 256.f);
    }
};
struct Gradient : Stencil<float, 1, 0, MIRROR> {
    template <class U> static __device__ float value(U u)
    {
        const float dy = 0.5f * (u(0, 1, 0) - u(0, -1, 0)), dx = 0.5f * (u(0, 0, 1) - u(0, 0, -1));
        return sqrtf(dy * dy + dx * dx);
    }
};
template <class U> __device__ auto axes(U u, int k)
{
    return u(-k, 0, 0) + u(k, 0, 0) + u(0, -k, 0) + u(0, k, 0) + u(0, 0, -k) + u(0, 0, k);
}
struct Jacobi3d7 : Stencil<float, 1, 1, CLAMP> {
    template <class U> static __device__ float value(U u) { return (u(0, 0, 0) + axes(u, 1)) * (1 / 7.f); }
};
struct Jacobi3d7Bytes : Stencil<signed char, 1, 1, CLAMP> {
    template <class U> static __device__ signed char value(U u) { return static_cast<signed char>(u(0, 0, 0) + axes(u, 1)); }
};
struct Heat3dDouble : Stencil<double, 1, 1, CLAMP> {
    template <class U> static __device__ double value(U u) { return 0.4 * u(0, 0, 0) + 0.1 * axes(u, 1); }
};
struct Jacobi3d13 : Stencil<float, 2, 2, CLAMP> {
    template <class U> static __device__ float value(U u) { return (u(0, 0, 0) + axes(u, 1) + axes(u, 2)) * (1 / 13.f); }
};
struct Poisson19 : Stencil<float, 1, 1, CLAMP> {
    template <class U> static __device__ float value(U u)
    {
        float diagonal = 0;
#pragma unroll
        for (int i = -1; i <= 1; i += 2)
#pragma unroll
            for (int j = -1; j <= 1; j += 2)
                diagonal += u(i, j, 0) + u(i, 0, j) + u(0, i, j);
        return 2.666f * u(0, 0, 0) - 0.166f * axes(u, 1) - 0.0833f * diagonal;
    }
};

template <class S, class = void> struct BorderStays {
    static constexpr bool value = false;
};
template <class S> struct BorderStays<S, decltype((void)S::border_stays)> {
    static constexpr bool value = true;
};
template <class S> struct Plain {
    using T = typename S::T;
    static constexpr int R = S::R, RZ = S::RZ;
    static constexpr Bound bound = S::bound;
    template <int N, class At> static __device__ void row(const Arguments &a, int element, bool inner, At u)
    {
        if (BorderStays<S>::value && !inner) {
            static_cast<T *>(a.out0)[element] = u(0, 0, 0);
            return;
        }
        plain_row<S, N>(static_cast<T *>(a.out0) + element, u);
    }
};
struct Heat3d : Stencil<float, 1, 1, WRAP> {
    template <int N, class At> static __device__ void row(const Arguments &a, int element, bool, At u)
    {
        float r[N];
        for (int i = 0; i < N; i++) {
            auto v = [&](int z, int y, int x) { return u(z, y, x + i); };
            r[i] = v(0, 0, 0) + a.param[0] * (axes(v, 1) - 6 * v(0, 0, 0));
        }
        store<N>(static_cast<float *>(a.out0) + element, r);
    }
};
struct Hotspot2d : Stencil<float, 1, 0, CLAMP> {
    template <int N, class At> static __device__ void row(const Arguments &a, int element, bool, At u)
    {
        const float *p = a.param, rx = 1 / p[1], ry = 1 / p[2], rz = 1 / p[3];
        float r[N], power[N];
        load<N>(a.in1 + element, power);
        for (int i = 0; i < N; i++) {
            const float here = u(0, 0, i), dy = u(0, 1, i) + u(0, -1, i) - 2 * here, dx = u(0, 0, i + 1) + u(0, 0, i - 1) - 2 * here;
            r[i] = here + p[0] * (power[i] + dy * ry + dx * rx + (p[4] - here) * rz);
        }
        store<N>(static_cast<float *>(a.out0) + element, r);
    }
};
struct Hotspot3d : Stencil<float, 1, 1, CLAMP> {
    template <int N, class At> static __device__ void row(const Arguments &a, int element, bool, At u)
    {
        const float *p = a.param;
        float r[N], power[N];
        load<N>(a.in1 + element, power);
        for (int i = 0; i < N; i++)
            r[i] = u(0, 0, i) * p[0] + p[1] * (u(0, 0, i - 1) + u(0, 0, i + 1)) + p[2] * (u(0, -1, i) + u(0, 1, i)) +
                   p[3] * (u(-1, 0, i) + u(1, 0, i)) + p[4] * power[i] + p[3] * p[5];
        store<N>(static_cast<float *>(a.out0) + element, r);
    }
};
struct SradCoefficients : Stencil<float, 1, 0, CLAMP> {
    template <int N, class At> static __device__ void row(const Arguments &a, int element, bool, At u)
    {
        const float q0 = a.param[0];
        float c[N];
        for (int i = 0; i < N; i++) {
            const float here = u(0, 0, i), over = 1 / here, n = u(0, -1, i) - here, s = u(0, 1, i) - here, w = u(0, 0, i - 1) - here,
                        e = u(0, 0, i + 1) - here;
            const float g2 = (n * n + s * s + w * w + e * e) * over * over, l = (n + s + w + e) * over, den = 1 + 0.25f * l;
            const float q = (0.5f * g2 - 0.0625f * l * l) / (den * den);
            c[i] = fminf(fmaxf(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0), 1);
            a.out1[element + i] = make_float4(n, s, w, e);
        }
        store<N>(static_cast<float *>(a.out0) + element, c);
    }
};
/* The window is that of the coefficients. */
struct SradUpdate : Stencil<float, 1, 0, CLAMP> {
    template <int N, class At> static __device__ void row(const Arguments &a, int element, bool, At c)
    {
        float img[N];
        load<N>(a.in1 + element, img);
        for (int i = 0; i < N; i++) {
            const float4 d = a.in2[element + i];
            img[i] += 0.25f * a.param[0] * (c(0, 0, i) * d.x + c(0, 1, i) * d.y + c(0, 0, i) * d.z + c(0, 0, i + 1) * d.w);
        }
        store<N>(static_cast<float *>(a.out0) + element, img);
    }
};

/* ---- windows ----------------------------------------------------------------------------------------- */
template <class S, int BX, int BY, int BZ, int PX, int PY, int PZ>
__global__ void __launch_bounds__(BX *BY *BZ) windows(const typename S::T *__restrict__ in, const float *__restrict__ in1, const float4 *__restrict__ in2, void *__restrict__ out0,
        float4 *__restrict__ out1, Numbers numbers, int nx, int ny, int nz)
{
    const Arguments a = { in1, in2, out0, out1, numbers.param };
    using T = typename S::T;
    constexpr int R = S::R, RZ = S::RZ, A = PX > 1 ? (R + PX - 1) / PX * PX : R; /* columns that are loaded on either side */
    const int x0 = (blockIdx.x * BX + threadIdx.x) * PX, y0 = (blockIdx.y * BY + threadIdx.y) * PY, z0 = (blockIdx.z * BZ + threadIdx.z) * PZ;

    T w[PZ + 2 * RZ][PY + 2 * R][PX + 2 * A];
    const int at = (z0 * ny + y0) * nx + x0;
    if (x0 >= R && x0 + PX + R <= nx && y0 >= R && y0 + PY + R <= ny && z0 >= RZ && z0 + PZ + RZ <= nz) {
#pragma unroll
        for (int z = 0; z < PZ + 2 * RZ; z++)
#pragma unroll
            for (int y = 0; y < PY + 2 * R; y++) {
                const T *row = in + at + ((z - RZ) * ny + (y - R)) * nx;
                load<PX>(row, &w[z][y][A]);
#pragma unroll
                for (int x = 0; x < R; x++) {
                    w[z][y][A - 1 - x] = row[-1 - x];
                    w[z][y][A + PX + x] = row[PX + x];
                }
            }
#pragma unroll
        for (int z = 0; z < PZ; z++)
#pragma unroll
            for (int y = 0; y < PY; y++)
                S::template row<PX>(a, at + (z * ny + y) * nx, true,
                                    [&](int dz, int dy, int dx) { return w[z + RZ + dz][y + R + dy][A + dx]; });
        return;
    }
    if (x0 >= nx || y0 >= ny || z0 >= nz)
        return;
#pragma unroll
    for (int z = 0; z < PZ + 2 * RZ; z++) {
        const int zz = RZ ? bounded<S::bound>(min(z0 + z - RZ, nz - 1 + RZ), nz) : z0;
#pragma unroll
        for (int y = 0; y < PY + 2 * R; y++) {
            const int yy = bounded<S::bound>(min(y0 + y - R, ny - 1 + R), ny);
#pragma unroll
            for (int x = -R; x < PX + R; x++)
                w[z][y][A + x] = in[(zz * ny + yy) * nx + bounded<S::bound>(min(x0 + x, nx - 1 + R), nx)];
        }
    }
#pragma unroll
    for (int z = 0; z < PZ; z++)
#pragma unroll
        for (int y = 0; y < PY; y++)
#pragma unroll
            for (int x = 0; x < PX; x++)
                if (x0 + x < nx && y0 + y < ny && z0 + z < nz)
                    S::template row<1>(a, at + (z * ny + y) * nx + x, x0 + x > 0 && x0 + x < nx - 1 && y0 + y > 0 && y0 + y < ny - 1,
                                       [&](int dz, int dy, int dx) { return w[z + RZ + dz][y + R + dy][A + x + dx]; });
}

unsigned blocks(int64_t n, int per) { return static_cast<unsigned>((n + per - 1) / per); }

/* Input `window` is the one that goes through the window; the others follow in order. */
template <class S, int BX, int BY, int BZ, int PX, int PY, int PZ> int launch(PEER_ARGS, int window = 0)
{
    PEER_NO_TEMP
    const int64_t *e = size->extent;
    const dim3 grid(blocks(e[2], BX * PX), blocks(e[1], BY * PY), blocks(e[0], BZ * PZ));
    Numbers numbers;
    for (int i = 0; i < 6; i++)
        numbers.param[i] = static_cast<float>(size->param[i]);
    windows<S, BX, BY, BZ, PX, PY, PZ><<<grid, dim3(BX, BY, BZ), 0, stream>>>(
        static_cast<const typename S::T *>(in[window]), static_cast<const float *>(in[!window]), static_cast<const float4 *>(in[2]), out[0],
        static_cast<float4 *>(out[1]), numbers, static_cast<int>(e[2]), static_cast<int>(e[1]), static_cast<int>(e[0]));
    return cudaGetLastError();
}
template <class S, int window = 0> int launch2(PEER_ARGS)
{
    return size->extent[2] % 4 == 0 ? launch<S, 32, 8, 1, 4, 4, 1>(temp, bytes, in, out, size, stream, window)
                                    : launch<S, 32, 8, 1, 1, 8, 1>(temp, bytes, in, out, size, stream, window);
}
template <class S> int launch3(PEER_ARGS)
{
    constexpr int V = sizeof(typename S::T) == 8 ? 2 : 4;
    return size->extent[2] % V == 0 ? launch<S, 32, 8, 1, V, 1, 4>(temp, bytes, in, out, size, stream)
                                    : launch<S, 32, 8, 1, 1, 1, 8>(temp, bytes, in, out, size, stream);
}

const Row rows[] = {
    { "jacobi2d", "cuda windows", launch2<Plain<Jacobi2d>> },
    { "jacobi2d9", "cuda windows", launch2<Plain<Jacobi2d9>> },
    { "gaussian5x5", "cuda windows", launch2<Plain<Gaussian>> },
    { "gradient", "cuda windows", launch2<Plain<Gradient>> },
    { "hotspot2d", "cuda windows", launch2<Hotspot2d> },
    { "sradv2_coefficients", "cuda windows", launch2<SradCoefficients> },
    { "sradv2_update", "cuda windows", launch2<SradUpdate, 1> },
    { "heat3d", "cuda windows", launch3<Heat3d> },
    { "jacobi3d7", "cuda windows", launch3<Plain<Jacobi3d7>> },
    { "jacobi3d13", "cuda windows", launch3<Plain<Jacobi3d13>> },
    { "poisson3d19", "cuda windows", launch3<Plain<Poisson19>> },
    { "hotspot3d", "cuda windows", launch3<Hotspot3d> },
    { "heat3d_f64", "cuda windows", launch3<Plain<Heat3dDouble>> },
    { "jacobi3d7_i8", "cuda windows", launch3<Plain<Jacobi3d7Bytes>> },
};

} // namespace
