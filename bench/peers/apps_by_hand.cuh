/* SPDX-License-Identifier: Apache-2.0 */
/* apps_by_hand.cuh - applications of specs/apps as kernels by hand, split as Rodinia and Parboil split them.
 *
 * apps_by_hand.py launches them through CuPy, which compiles this file with the constants of a problem: F coordinates, K
 * centroids, NODES of a lattice.  In a dry run the C++ compiler compiles it, and apps_on_host.h runs its threads.
 */
#ifndef F
#define F 4
#endif
#ifndef K
#define K 4
#endif
#ifndef NODES
#define NODES 64
#endif

/* ---- grids: blocks of 16 by 16, or 32 by 8 ---- */
#define POINT                                                                                                          \
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;                           \
    size_t at = (size_t)i * n + j;                                                                                     \
    bool inside = i < m && j < n
#define UP(a) a[i ? at - n : at]
#define DOWN(a) a[i < m - 1 ? at + n : at]
#define LEFT(a) a[j ? at - 1 : at]
#define RIGHT(a) a[j < n - 1 ? at + 1 : at]

/* The largest of a block's values, which are not negative, so that their bits are in the same order. */
__device__ void keep_largest(float value, int *most)
{
    __shared__ float all[256];
    int t = threadIdx.y * blockDim.x + threadIdx.x;
    all[t] = value;
    for (int half = 128; half; half /= 2) {
        __syncthreads();
        if (t < half)
            all[t] = fmaxf(all[t], all[t + half]);
    }
    if (t == 0)
        atomicMax(most, __float_as_int(all[0]));
}

extern "C" __global__ void heat_step(const float *u, float *next, int m, int n, int *moved)
{
    POINT;
    float change = 0;
    if (inside) {
        change = 0.2f * (UP(u) + DOWN(u) + LEFT(u) + RIGHT(u) - 4 * u[at]);
        next[at] = u[at] + change;
    }
    keep_largest(fabsf(change), moved);
}

extern "C" __global__ void hotspot_step(const float *t, const float *power, float *next, int m, int n, float cap, float rx,
                                        float ry, float rz, float amb, int *moved)
{
    POINT;
    float change = 0;
    if (inside) {
        float x = t[at];
        change = cap * (power[at] + (UP(t) + DOWN(t) - 2 * x) * ry + (LEFT(t) + RIGHT(t) - 2 * x) * rx + (amb - x) * rz);
        next[at] = x + change;
    }
    keep_largest(fabsf(change), moved);
}

/* sum: of the pixels and of their squares; the update makes it ready for the next step. */
extern "C" __global__ void srad_statistics(const float *img, long long count, double *sum)
{
    __shared__ double a[256], b[256];
    double x = 0, xx = 0;
    for (long long k = blockIdx.x * 256LL + threadIdx.x; k < count; k += gridDim.x * 256LL)
        x += img[k], xx += (double)img[k] * img[k];
    a[threadIdx.x] = x, b[threadIdx.x] = xx;
    for (int half = 128; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            a[threadIdx.x] += a[threadIdx.x + half], b[threadIdx.x] += b[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        atomicAdd(&sum[0], a[0]), atomicAdd(&sum[1], b[0]);
}

extern "C" __global__ void srad_coefficients(const float *img, float *dn, float *ds, float *dw, float *de, float *c, int m,
                                             int n, const double *sum)
{
    POINT;
    if (!inside)
        return;
    double mean = sum[0] / ((double)m * n), square = sum[1] / ((double)m * n);
    float q0 = (float)((square - mean * mean) / (mean * mean)), x = img[at];
    float north = UP(img) - x, south = DOWN(img) - x, west = LEFT(img) - x, east = RIGHT(img) - x;
    float g2 = (north * north + south * south + west * west + east * east) / (x * x), l = (north + south + west + east) / x;
    float den = 1 + 0.25f * l, q = (0.5f * g2 - 0.0625f * (l * l)) / (den * den);
    dn[at] = north, ds[at] = south, dw[at] = west, de[at] = east;
    c[at] = fminf(fmaxf(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0), 1);
}

extern "C" __global__ void srad_update(float *img, const float *dn, const float *ds, const float *dw, const float *de,
                                       const float *c, int m, int n, float rate, double *sum)
{
    POINT;
    if (!inside)
        return;
    img[at] += rate * (c[at] * dn[at] + DOWN(c) * ds[at] + c[at] * dw[at] + RIGHT(c) * de[at]);
    if (at == 0)
        sum[0] = sum[1] = 0;
}

/* ---- back-propagation, 16 hidden ---- */
extern "C" __global__ void net_forward(const float *x, const float *w1, float *partial, int n)
{
    __shared__ float all[16][16];
    float sum = 0;
    for (int i = blockIdx.x * 16 + threadIdx.y; i < n; i += gridDim.x * 16)
        sum += x[i] * w1[i * 16 + threadIdx.x];
    all[threadIdx.y][threadIdx.x] = sum;
    for (int half = 8; half; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
            all[threadIdx.y][threadIdx.x] += all[threadIdx.y + half][threadIdx.x];
    }
    if (threadIdx.y == 0)
        partial[blockIdx.x * 16 + threadIdx.x] = all[0][threadIdx.x];
}

/* One block: the hidden layer from its parts, the output, both errors, and the second weights. */
extern "C" __global__ void net_middle(const float *partial, int parts, const float *w2, const float *target, float *next2,
                                      float *d1, int o, float rate)
{
    __shared__ float all[16][16], y1[16];
    float sum = 0;
    for (int i = threadIdx.y; i < parts; i += 16)
        sum += partial[i * 16 + threadIdx.x];
    all[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0) {
        for (int i = 1; i < 16; i++)
            sum += all[i][threadIdx.x];
        y1[threadIdx.x] = 1 / (1 + expf(-sum));
    }
    __syncthreads();
    if (threadIdx.y)
        return;
    float blame = 0, mine = y1[threadIdx.x];
    for (int k = 0; k < o; k++) {
        float y2 = 0;
        for (int j = 0; j < 16; j++)
            y2 += y1[j] * w2[j * o + k];
        y2 = 1 / (1 + expf(-y2));
        float d2 = y2 * (1 - y2) * (target[k] - y2);
        blame += d2 * w2[threadIdx.x * o + k];
        next2[threadIdx.x * o + k] = w2[threadIdx.x * o + k] + rate * mine * d2;
    }
    d1[threadIdx.x] = mine * (1 - mine) * blame;
}

extern "C" __global__ void net_adjust(const float *x, const float *w1, const float *d1, float *next1, int n, float rate)
{
    int at = blockIdx.x * 256 + threadIdx.x;
    if (at < n * 16)
        next1[at] = w1[at] + rate * x[at / 16] * d1[at % 16];
}

/* ---- k-means ---- */
extern "C" __global__ void kmeans_assign(const float *x, const float *c, int *member, int n)
{
    __shared__ float centroid[K * F];
    for (int k = threadIdx.x; k < K * F; k += blockDim.x)
        centroid[k] = c[k];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x, nearest = 0;
    if (i >= n)
        return;
    float point[F], least = 3e38f;
    for (int f = 0; f < F; f++)
        point[f] = x[(size_t)i * F + f];
    for (int k = 0; k < K; k++) {
        float sum = 0;
        for (int f = 0; f < F; f++)
            sum += (point[f] - centroid[k * F + f]) * (point[f] - centroid[k * F + f]);
        if (sum < least)
            least = sum, nearest = k;
    }
    member[i] = nearest;
}

/* Neighbouring threads take the coordinates of a point, which are added at different places. */
extern "C" __global__ void kmeans_sums(const float *x, const int *member, float *sum, int *many, long long count)
{
    __shared__ float s[K * F];
    __shared__ int own[K];
    for (int k = threadIdx.x; k < K * F; k += blockDim.x)
        s[k] = 0;
    for (int k = threadIdx.x; k < K; k += blockDim.x)
        own[k] = 0;
    __syncthreads();
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < count; at += (long long)gridDim.x * blockDim.x) {
        int f = (int)(at % F), k = member[at / F];
        atomicAdd(&s[k * F + f], x[at]);
        if (f == 0)
            atomicAdd(&own[k], 1);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < K * F; k += blockDim.x)
        atomicAdd(&sum[k], s[k]);
    for (int k = threadIdx.x; k < K; k += blockDim.x)
        atomicAdd(&many[k], own[k]);
}

/* One block; the sums are made ready for the next step. */
extern "C" __global__ void kmeans_means(float *sum, int *many, float *c)
{
    for (int k = threadIdx.x; k < K * F; k += blockDim.x) {
        c[k] = many[k / F] ? sum[k] / many[k / F] : c[k];
        sum[k] = 0;
    }
    __syncthreads();
    for (int k = threadIdx.x; k < K; k += blockDim.x)
        many[k] = 0;
}

/* ---- points ---- */
extern "C" __global__ void nbody_step(const float *mass, const float *x, const float *y, const float *z, const float *u,
                                      const float *v, const float *w, float *xn, float *yn, float *zn, float *un, float *vn,
                                      float *wn, int n, float dt, float soft)
{
    __shared__ float px[256], py[256], pz[256], pm[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t, own = i < n ? i : n - 1;
    float ax = 0, ay = 0, az = 0, mx = x[own], my = y[own], mz = z[own];
    for (int first = 0; first < n; first += 256) {
        int j = first + t < n ? first + t : n - 1;
        px[t] = x[j], py[t] = y[j], pz[t] = z[j], pm[t] = first + t < n ? mass[j] : 0;
        __syncthreads();
#pragma unroll 16
        for (int k = 0; k < 256; k++) {
            float dx = px[k] - mx, dy = py[k] - my, dz = pz[k] - mz, near = rsqrtf(dx * dx + dy * dy + dz * dz + soft);
            float pull = pm[k] * near * near * near;
            ax += pull * dx, ay += pull * dy, az += pull * dz;
        }
        __syncthreads();
    }
    if (i >= n)
        return;
    un[i] = u[i] + dt * ax, vn[i] = v[i] + dt * ay, wn[i] = w[i] + dt * az;
    xn[i] = mx + dt * un[i], yn[i] = my + dt * vn[i], zn[i] = mz + dt * wn[i];
}

__device__ void insert(float *d, int *at, float distance, int index)
{
    if (!(distance < d[3]))
        return;
    d[3] = distance, at[3] = index;
    for (int k = 3; k > 0 && d[k] < d[k - 1]; k--) {
        float x = d[k];
        int i = at[k];
        d[k] = d[k - 1], at[k] = at[k - 1], d[k - 1] = x, at[k - 1] = i;
    }
}

/* Four queries a block; every thread keeps the four best of its share, and shares are joined in a tree. */
extern "C" __global__ void nearest4_search(const float *q, const float *p, int m, int n, int *n0, int *n1, int *n2, int *n3,
                                           float *distance)
{
    __shared__ float all[256 * 4];
    __shared__ int index[256 * 4];
    float d[4][4], mine[4][F];
    int at[4][4], t = threadIdx.x;
    for (int k = 0; k < 4; k++) {
        int row = blockIdx.x * 4 + k < m ? blockIdx.x * 4 + k : m - 1;
        for (int f = 0; f < F; f++)
            mine[k][f] = q[row * F + f];
        for (int b = 0; b < 4; b++)
            d[k][b] = 3e38f, at[k][b] = 2147483647;
    }
    for (int i = t; i < n; i += 256) {
        float other[F];
        for (int f = 0; f < F; f++)
            other[f] = p[(size_t)i * F + f];
        for (int k = 0; k < 4; k++) {
            float sum = 0;
            for (int f = 0; f < F; f++)
                sum += (other[f] - mine[k][f]) * (other[f] - mine[k][f]);
            insert(d[k], at[k], sum, i);
        }
    }
    for (int k = 0; k < 4; k++) {
        __syncthreads();
        for (int b = 0; b < 4; b++)
            all[t * 4 + b] = d[k][b], index[t * 4 + b] = at[k][b];
        for (int half = 128; half; half /= 2) {
            __syncthreads();
            if (t < half)
                for (int b = 0; b < 4; b++)
                    insert(&all[t * 4], &index[t * 4], all[(t + half) * 4 + b], index[(t + half) * 4 + b]);
        }
        int row = blockIdx.x * 4 + k;
        if (t == 0 && row < m) {
            n0[row] = index[0], n1[row] = index[1], n2[row] = index[2], n3[row] = index[3];
            distance[row] = sqrtf(all[3]);
        }
    }
}

__device__ int bin_of(float c, const float *edge)
{
    int bin = 0;
    for (int half = 16; half; half /= 2)
        bin += c < edge[bin + half - 1] ? half : 0;
    return bin;
}

/* A row of blocks for each set; each warp counts in a histogram of its own. */
extern "C" __global__ void tpacf_pairs(const float *x, const float *y, const float *z, const float *edge, int m,
                                       unsigned long long *pairs, unsigned long long *mixed)
{
    __shared__ float ox[256], oy[256], oz[256], edges[31];
    __shared__ unsigned within[8][32], across[8][32];
    int t = threadIdx.x, i = blockIdx.x * 256 + t, set = blockIdx.y, own = i < m ? i : m - 1;
    size_t base = (size_t)set * m;
    float mx = x[base + own], my = y[base + own], mz = z[base + own];
    if (t < 31)
        edges[t] = edge[t];
    within[t / 32][t % 32] = across[t / 32][t % 32] = 0;
    for (int both = set ? 2 : 1; both--;)
        for (int first = both ? 0 : blockIdx.x * 256; first < m; first += 256) {
            size_t from = both ? 0 : base;
            int j = first + t < m ? first + t : m - 1, end = m - first < 256 ? m - first : 256;
            __syncthreads();
            ox[t] = x[from + j], oy[t] = y[from + j], oz[t] = z[from + j];
            __syncthreads();
            for (int k = 0; k < end; k++)
                if (i < m && (both || first + k > i))
                    atomicAdd(&(both ? across : within)[t / 32][bin_of(mx * ox[k] + my * oy[k] + mz * oz[k], edges)], 1u);
        }
    __syncthreads();
    if (t >= 32)
        return;
    for (int k = 1; k < 8; k++)
        within[0][t] += within[k][t], across[0][t] += across[k][t];
    atomicAdd(&pairs[t * 2 + (set > 0)], (unsigned long long)within[0][t]);
    atomicAdd(&mixed[t], (unsigned long long)across[0][t]);
}

extern "C" __global__ void tpacf_estimate(const unsigned long long *pairs, const unsigned long long *mixed, double *w, int m,
                                          int sets)
{
    int k = threadIdx.x;
    double dd = (double)pairs[k * 2] * (sets - 1), rr = (double)pairs[k * 2 + 1], dr = (double)mixed[k] * (m - 1) / m;
    w[k] = rr > 0 ? (dd - dr + rr) / rr : 0;
}

/* ---- sums ---- */
extern "C" __global__ void mri_sums(const float *re, const float *im, const float *kx, const float *ky, const float *kz,
                                    const float *x, const float *y, const float *z, float *qr, float *qi, int samples, int n)
{
    __shared__ float sx[256], sy[256], sz[256], mag[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t, own = i < n ? i : n - 1;
    float r = 0, q = 0, mx = x[own], my = y[own], mz = z[own];
    for (int first = 0; first < samples; first += 256) {
        int k = first + t < samples ? first + t : samples - 1, end = samples - first < 256 ? samples - first : 256;
        __syncthreads();
        sx[t] = kx[k], sy[t] = ky[k], sz[t] = kz[k], mag[t] = re[k] * re[k] + im[k] * im[k];
        __syncthreads();
        for (k = 0; k < end; k++) {
            float s, c;
            sincosf(6.2831853f * (sx[k] * mx + sy[k] * my + sz[k] * mz), &s, &c);
            r += mag[k] * c, q += mag[k] * s;
        }
    }
    if (i < n)
        qr[i] = r, qi[i] = q;
}

/* A block for each option: the lattice stays in shared memory, and only its triangle is computed. */
extern "C" __global__ void options_price(const float *spot, const float *strike, const float *rate, const float *vol,
                                         const float *years, float *price, int steps)
{
    __shared__ float exercise[NODES], value[2][NODES];
    int o = blockIdx.x;
    float s = spot[o], dt = years[o] / steps, v = vol[o], r = rate[o], move = v * sqrtf(3 * dt), less = expf(-r * dt);
    float drift = (r - 0.5f * v * v) * sqrtf(dt / (12 * v * v)), up = less * (1 / 6.0f + drift), same = less * (2 / 3.0f);
    float down = less * (1 / 6.0f - drift);
    for (int k = threadIdx.x; k < 2 * steps + 1; k += blockDim.x)
        exercise[k] = value[0][k] = fmaxf(strike[o] - s * expf((k - steps) * move), 0);
    for (int step = 1; step <= steps; step++) {
        const float *old = value[(step - 1) % 2];
        __syncthreads();
        for (int k = step + threadIdx.x; k < 2 * steps + 1 - step; k += blockDim.x)
            value[step % 2][k] = fmaxf(exercise[k], up * old[k + 1] + same * old[k] + down * old[k - 1]);
    }
    __syncthreads();
    if (threadIdx.x == 0)
        price[o] = fmaxf(strike[o] - s, value[steps % 2][steps]);
}

/* ---- connected components: union and find, the smaller root wins ---- */
__device__ int root_of(volatile int *parent, int v)
{
    for (int up = parent[v]; up != v; up = parent[v]) {
        int next = parent[up];
        parent[v] = next;
        v = next;
    }
    return v;
}

extern "C" __global__ void components_begin(const int *label, int *parent, int n)
{
    int v = blockIdx.x * 256 + threadIdx.x;
    if (v < n)
        parent[v] = label[v];
}

extern "C" __global__ void components_join(const int *from, const int *to, int *parent, int edges)
{
    int e = blockIdx.x * 256 + threadIdx.x;
    if (e >= edges || from[e] <= to[e]) /* the other direction is another edge */
        return;
    int a = root_of(parent, from[e]), b = root_of(parent, to[e]);
    while (a != b) {
        int high = a > b ? a : b, low = a > b ? b : a;
        if (atomicCAS(&parent[high], high, low) == high)
            return;
        a = root_of(parent, high), b = root_of(parent, low);
    }
}

extern "C" __global__ void components_end(int *parent, int n)
{
    int v = blockIdx.x * 256 + threadIdx.x;
    if (v < n)
        parent[v] = root_of(parent, v);
}
