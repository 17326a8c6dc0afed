/* SPDX-License-Identifier: Apache-2.0 */
/* stencils.c - the stencil problems: what arrays they have, and what every point has to be, evaluated in double.
 *
 * Floats are uniform in [1, 2), so that nothing divides by zero and an absolute tolerance serves; bytes are any.  The
 * data is periodic: element i of input k is element (i + k * SHIFT) mod PERIOD of one block, so that the host needs no
 * copy of the whole.
 */
#include "stencil_bench.h"

#include <math.h>
#include <stdlib.h>

enum { SHIFT = 1000192 };

/* ---- reading ----------------------------------------------------------------------------------- */
/* Where index i of n elements is read. */
static int64_t bounded(enum bound mode, int64_t i, int64_t n)
{
    int64_t period;

    switch (mode) {
    case WRAP: return (i % n + n) % n;
    case REFLECT:
        period = 2 * n;
        i = (i % period + period) % period;
        return i < n ? i : period - 1 - i;
    case MIRROR:
        period = n > 1 ? 2 * n - 2 : 1;
        i = (i % period + period) % period;
        return i < n ? i : period - i;
    default: return i < 0 ? 0 : i >= n ? n - 1 : i;
    }
}

double stencil_element(const struct field *f, int input, int64_t element)
{
    return scalar_load(f->stencil->type, f->block, (element + (int64_t)SHIFT * input) % STENCIL_PERIOD);
}

static double part(const struct field *f, const int64_t *at, int input, int which, int z, int y, int x)
{
    const struct stencil *s = f->stencil;
    int64_t i = bounded(s->bound, at[0] + z, f->extent[0]);

    i = i * f->extent[1] + bounded(s->bound, at[1] + y, f->extent[1]);
    i = i * f->extent[2] + bounded(s->bound, at[2] + x, f->extent[2]);
    return stencil_element(f, input, i * s->in_parts[input] + which);
}

#define U(z, y, x) part(f, at, 0, 0, z, y, x)

/* ---- points -------------------------------------------------------------------------------------- */
static void jacobi2d(const struct field *f, const int64_t *at, double *out)
{
    bool inner = true;

    for (int d = 1; d < 3; d++)
        inner &= at[d] > 0 && at[d] < f->extent[d] - 1;
    *out = inner ? 0.25 * (U(0, -1, 0) + U(0, 1, 0) + U(0, 0, -1) + U(0, 0, 1)) : U(0, 0, 0);
}

static void jacobi2d9(const struct field *f, const int64_t *at, double *out)
{
    double sum = U(0, 0, 0);

    for (int k = 1; k <= 2; k++)
        sum += U(0, -k, 0) + U(0, k, 0) + U(0, 0, -k) + U(0, 0, k);
    *out = sum / 9;
}

static void gaussian5x5(const struct field *f, const int64_t *at, double *out)
{
    static const double weight[] = { 1, 4, 6, 4, 1 };
    double sum = 0;

    for (int y = -2; y <= 2; y++)
        for (int x = -2; x <= 2; x++)
            sum += weight[y + 2] * weight[x + 2] * U(0, y, x);
    *out = sum / 256;
}

static void gradient(const struct field *f, const int64_t *at, double *out)
{
    *out = hypot(0.5 * (U(0, 1, 0) - U(0, -1, 0)), 0.5 * (U(0, 0, 1) - U(0, 0, -1)));
}

static void hotspot2d(const struct field *f, const int64_t *at, double *out)
{
    const double *p = f->param, here = U(0, 0, 0);
    double dy = U(0, 1, 0) + U(0, -1, 0) - 2 * here, dx = U(0, 0, 1) + U(0, 0, -1) - 2 * here;

    *out = here + p[0] * (part(f, at, 1, 0, 0, 0, 0) + dy / p[2] + dx / p[1] + (p[4] - here) / p[3]);
}

static void sradv2_coefficients(const struct field *f, const int64_t *at, double *out)
{
    double here = U(0, 0, 0), q0 = f->param[0];
    double n = U(0, -1, 0) - here, s = U(0, 1, 0) - here, w = U(0, 0, -1) - here, e = U(0, 0, 1) - here;
    double g2 = (n * n + s * s + w * w + e * e) / (here * here), l = (n + s + w + e) / here, den = 1 + 0.25 * l;
    double q = (0.5 * g2 - 0.0625 * l * l) / (den * den);

    out[0] = fmin(fmax(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0), 1);
    out[1] = n;
    out[2] = s;
    out[3] = w;
    out[4] = e;
}

static void sradv2_update(const struct field *f, const int64_t *at, double *out)
{
    double c = part(f, at, 1, 0, 0, 0, 0);
    double sum = c * part(f, at, 2, 0, 0, 0, 0) + part(f, at, 1, 0, 0, 1, 0) * part(f, at, 2, 1, 0, 0, 0) +
                 c * part(f, at, 2, 2, 0, 0, 0) + part(f, at, 1, 0, 0, 0, 1) * part(f, at, 2, 3, 0, 0, 0);

    *out = U(0, 0, 0) + 0.25 * f->param[0] * sum;
}

/* The sum of the neighbours at distance `k` along the axes. */
static double axes(const struct field *f, const int64_t *at, int k)
{
    return U(-k, 0, 0) + U(k, 0, 0) + U(0, -k, 0) + U(0, k, 0) + U(0, 0, -k) + U(0, 0, k);
}

static void jacobi3d7(const struct field *f, const int64_t *at, double *out)
{
    *out = (U(0, 0, 0) + axes(f, at, 1)) / 7;
}
static void jacobi3d7_i8(const struct field *f, const int64_t *at, double *out)
{
    *out = (int8_t)(int)(U(0, 0, 0) + axes(f, at, 1));
}
static void heat3d_f64(const struct field *f, const int64_t *at, double *out)
{
    *out = 0.4 * U(0, 0, 0) + 0.1 * axes(f, at, 1);
}

static void jacobi3d13(const struct field *f, const int64_t *at, double *out)
{
    *out = (U(0, 0, 0) + axes(f, at, 1) + axes(f, at, 2)) / 13;
}

static void heat3d(const struct field *f, const int64_t *at, double *out)
{
    *out = U(0, 0, 0) + f->param[0] * (axes(f, at, 1) - 6 * U(0, 0, 0));
}

static void hotspot3d(const struct field *f, const int64_t *at, double *out)
{
    const double *p = f->param;

    *out = U(0, 0, 0) * p[0] + p[1] * (U(0, 0, -1) + U(0, 0, 1)) + p[2] * (U(0, -1, 0) + U(0, 1, 0)) +
           p[3] * (U(-1, 0, 0) + U(1, 0, 0)) + p[4] * part(f, at, 1, 0, 0, 0, 0) + p[3] * p[5];
}

static void poisson3d19(const struct field *f, const int64_t *at, double *out)
{
    double diagonal = 0;

    for (int i = -1; i <= 1; i += 2)
        for (int j = -1; j <= 1; j += 2)
            diagonal += U(i, j, 0) + U(i, 0, j) + U(0, i, j);
    *out = 2.666 * U(0, 0, 0) - 0.166 * axes(f, at, 1) - 0.0833 * diagonal;
}

/*   name                   rank type ins parts        outs parts     bound    tolerance  point                params of
 * the spec, in order */
const struct stencil stencils[] = {
    { "jacobi2d", 2, F32, 1, { 1 }, 1, { 1 }, INTERIOR, 2e-6, jacobi2d, { 0 } },
    { "jacobi2d9", 2, F32, 1, { 1 }, 1, { 1 }, CLAMP, 4e-6, jacobi2d9, { 0 } },
    { "gaussian5x5", 2, F32, 1, { 1 }, 1, { 1 }, REFLECT, 8e-6, gaussian5x5, { 0 } },
    { "gradient", 2, F32, 1, { 1 }, 1, { 1 }, MIRROR, 2e-6, gradient, { 0 } },
    { "hotspot2d", 2, F32, 2, { 1, 1 }, 1, { 1 }, CLAMP, 4e-5, hotspot2d, { 0.25, 2, 4, 8, 1.5 } },
    { "sradv2_coefficients", 2, F32, 1, { 1 }, 2, { 1, 4 }, CLAMP, 4e-5, sradv2_coefficients, { 0.5 } },
    { "sradv2_update", 2, F32, 3, { 1, 1, 4 }, 1, { 1 }, CLAMP, 8e-6, sradv2_update, { 0.5 } },
    { "heat3d", 3, F32, 1, { 1 }, 1, { 1 }, WRAP, 8e-6, heat3d, { 0.125 } },
    { "jacobi3d7", 3, F32, 1, { 1 }, 1, { 1 }, CLAMP, 4e-6, jacobi3d7, { 0 } },
    { "jacobi3d13", 3, F32, 1, { 1 }, 1, { 1 }, CLAMP, 8e-6, jacobi3d13, { 0 } },
    { "poisson3d19", 3, F32, 1, { 1 }, 1, { 1 }, CLAMP, 2e-5, poisson3d19, { 0 } },
    { "hotspot3d", 3, F32, 2, { 1, 1 }, 1, { 1 }, CLAMP, 2e-5, hotspot3d, { 0.4, 0.1, 0.1, 0.1, 0.001, 80 } },
    { "heat3d_f64", 3, F64, 1, { 1 }, 1, { 1 }, CLAMP, 1e-14, heat3d_f64, { 0 } },
    { "jacobi3d7_i8", 3, I8, 1, { 1 }, 1, { 1 }, CLAMP, 0, jacobi3d7_i8, { 0 } },
};
const int nstencils = sizeof stencils / sizeof *stencils;

/* ---- data ------------------------------------------------------------------------------------------ */
void *stencil_block(enum scalar type)
{
    void *block = malloc((size_t)STENCIL_PERIOD * (size_t)scalar_bytes(type));

    if (!block)
        return NULL;
    fill_random(type, block, STENCIL_PERIOD, 5);
    for (int64_t i = 0; i < STENCIL_PERIOD; i++)
        if (type == F32)
            ((float *)block)[i] = 1.5F + 0.5F * ((float *)block)[i];
        else if (type == F64)
            ((double *)block)[i] = 1.5 + 0.5 * ((double *)block)[i];
    return block;
}

int64_t stencil_first(int input) { return (int64_t)SHIFT * input % STENCIL_PERIOD; }

bool stencil_check(const struct field *f, int output, int64_t first, int64_t count, int64_t stride, const void *got,
                   char *why, size_t length)
{
    const struct stencil *s = f->stencil;
    int skip = 0;

    for (int o = 0; o < output; o++)
        skip += s->out_parts[o];
    for (int64_t i = 0; i < count; i += stride) {
        int64_t p = first + i,
                at[] = { p / f->extent[2] / f->extent[1], p / f->extent[2] % f->extent[1], p % f->extent[2] };
        double want[STENCIL_PARTS];

        s->point(f, at, want);
        for (int k = 0; k < s->out_parts[output]; k++) {
            double x = scalar_load(s->type, got, i * s->out_parts[output] + k);

            if (fabs(x - want[skip + k]) <= s->tolerance)
                continue;
            snprintf(why, length, "output %d at %lld, %lld, %lld is %.9g, expected %.9g", output, (long long)at[0],
                     (long long)at[1], (long long)at[2], x, want[skip + k]);
            return false;
        }
    }
    return true;
}
