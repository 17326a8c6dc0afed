/* SPDX-License-Identifier: Apache-2.0 */
/* problems.c - the problems: random data, sequential references in double, comparison.
 *
 * f32 and f64 are uniform in [-1, 1), integers in [-100, 100].  Tolerances of sums are relative to the
 * sum of magnitudes, far above what a tree of partial sums loses and far below what one lost or repeated element of the
 * data would cost at the small sizes; there every element counts.
 */
#include "bench.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- scalars --------------------------------------------------------------------------------- */
int scalar_bytes(enum scalar t)
{
    static const int bytes[] = {
        [F16] = 2, [BF16] = 2, [F32] = 4, [F64] = 8, [I8] = 1, [I32] = 4, [I64] = 8, [RUNS] = 4
    };
    return bytes[t];
}

static double half_value(uint16_t h)
{
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    double magnitude = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);

    return h >> 15 ? -magnitude : magnitude;
}

static double bfloat_value(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

double scalar_load(enum scalar t, const void *p, int64_t i)
{
    switch (t) {
    case F16: return half_value(((const uint16_t *)p)[i]);
    case BF16: return bfloat_value(((const uint16_t *)p)[i]);
    case F32: return ((const float *)p)[i];
    case F64: return ((const double *)p)[i];
    case I8: return ((const int8_t *)p)[i];
    case I32:
    case RUNS: return ((const int32_t *)p)[i];
    case I64: return (double)((const int64_t *)p)[i];
    }
    return 0;
}

/* splitmix64 of a counter: the same data for the same seed, whatever the order. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void store_random(enum scalar t, void *p, int64_t i, uint64_t r)
{
    switch (t) {
    /* Magnitudes in [0.5, 1): random sign and mantissa under a fixed exponent. */
    case F16: ((uint16_t *)p)[i] = (uint16_t)((r & 0x8000) | 14 << 10 | (r >> 20 & 1023)); break;
    case BF16: ((uint16_t *)p)[i] = (uint16_t)((r & 0x8000) | 126 << 7 | (r >> 20 & 127)); break;
    case F32: ((float *)p)[i] = (float)(int32_t)(r >> 40) * 0x1p-23f - 1; break;
    case F64: ((double *)p)[i] = (double)(int64_t)(r >> 11) * 0x1p-52 - 1; break;
    case I8: ((int8_t *)p)[i] = (int8_t)((int)((r >> 32) % 201) - 100); break;
    case I32:
    case RUNS: ((int32_t *)p)[i] = (int32_t)((r >> 32) % 201) - 100; break;
    case I64: ((int64_t *)p)[i] = (int64_t)((r >> 32) % 201) - 100; break;
    }
}

enum { FILL_THREADS = 8, RUN = 32 };
struct part {
    enum scalar t;
    void *p;
    int64_t begin, end;
    uint64_t seed;
};

static void *fill_part(void *argument)
{
    const struct part *x = argument;

    for (int64_t i = x->begin; i < x->end; i++)
        store_random(x->t, x->p, i, mix(x->seed + (uint64_t)(x->t == RUNS ? i / RUN : i)));
    return NULL;
}

void fill_random(enum scalar t, void *p, int64_t elements, uint64_t seed)
{
    struct part part[FILL_THREADS];
    pthread_t thread[FILL_THREADS];
    bool started[FILL_THREADS];

    for (int k = 0; k < FILL_THREADS; k++) {
        part[k] = (struct part){ t, p, elements / FILL_THREADS * k,
                                 k + 1 < FILL_THREADS ? elements / FILL_THREADS * (k + 1) : elements, seed };
        started[k] = pthread_create(&thread[k], NULL, fill_part, &part[k]) == 0;
    }
    for (int k = 0; k < FILL_THREADS; k++)
        if (started[k])
            pthread_join(thread[k], NULL);
        else
            fill_part(&part[k]);
}

/* ---- references ------------------------------------------------------------------------------ */
double sum_unit(enum scalar t) { return t == F64 ? 1e-13 : t == I8 || t == I32 || t == I64 ? 0 : 4e-7; }

static void reference_sum(const struct problem *p, const void *const *in, int64_t n, struct expected *e)
{
    double sum = 0, magnitude = 0;

    for (int64_t i = 0; i < n; i++) {
        double x = scalar_load(p->type, in[0], i);
        sum += x;
        magnitude += fabs(x);
    }
    e->value[0] = sum;
    e->tolerance[0] = magnitude * sum_unit(p->type);
}

static void reference_dot(const struct problem *p, const void *const *in, int64_t n, struct expected *e)
{
    const float *x = in[0], *y = in[1];
    double sum = 0, magnitude = 0;

    (void)p;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)x[i] * y[i];
        magnitude += fabs((double)x[i] * y[i]);
    }
    e->value[0] = sum;
    e->tolerance[0] = magnitude * sum_unit(F32);
}

static void reference_max(const struct problem *p, const void *const *in, int64_t n, struct expected *e)
{
    const float *x = in[0];
    float hi = -INFINITY;

    (void)p;
    for (int64_t i = 0; i < n; i++)
        hi = x[i] > hi ? x[i] : hi;
    *e = (struct expected){ .value = { hi } };
}

static void reference_argmin(const struct problem *p, const void *const *in, int64_t n, struct expected *e)
{
    const float *x = in[0];
    int64_t at = 0;

    (void)p;
    for (int64_t i = 1; i < n; i++)
        at = x[i] < x[at] ? i : at;
    *e = (struct expected){ .value = { n ? x[at] : INFINITY, (double)at } };
}

static void reference_minmaxsum(const struct problem *p, const void *const *in, int64_t n, struct expected *e)
{
    const float *x = in[0];
    struct expected sum;
    float lo = INFINITY, hi = -INFINITY;

    for (int64_t i = 0; i < n; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    reference_sum(p, in, n, &sum);
    *e = (struct expected){ .value = { lo, hi, sum.value[0] }, .tolerance = { 0, 0, sum.tolerance[0] } };
}

static void reference_welford(const struct problem *p, const void *const *in, int64_t n, struct expected *e)
{
    const float *x = in[0];
    double sum = 0, squares = 0;

    (void)p;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
        squares += (double)x[i] * x[i];
    }
    e->value[0] = sum / (double)n;
    e->value[1] = squares / (double)n - e->value[0] * e->value[0];
    e->tolerance[0] = 2e-6;
    e->tolerance[1] = 2e-6;
}

static void reference_mss(const struct problem *p, const void *const *in, int64_t n, struct expected *e)
{
    const int32_t *x = in[0];
    int64_t best = 0, here = 0;

    (void)p;
    for (int64_t i = 0; i < n; i++) {
        here = here + x[i] > 0 ? here + x[i] : 0;
        best = here > best ? here : best;
    }
    *e = (struct expected){ .value = { (double)best } };
}

/* ---- scans by steps -------------------------------------------------------------------------- */
static double step_mss(const void *const *in, int64_t i, double state[4])
{
    const double here = state[0] + ((const int32_t *)in[0])[i];

    state[0] = here > 0 ? here : 0;
    state[1] = fmax(state[0], state[1]);
    return state[1];
}

static double step_lssp(const void *const *in, int64_t i, double state[4])
{
    const int32_t *x = in[0];

    state[0] = i > 0 && x[i - 1] <= x[i] ? state[0] + 1 : 1;
    state[1] = fmax(state[0], state[1]);
    return state[1];
}

static double step_affine(const void *const *in, int64_t i, double state[4])
{
    state[0] = state[0] * ((const float *)in[0])[i] + ((const float *)in[1])[i];
    return state[0];
}

/* ---- outputs of some elements ---------------------------------------------------------------- */
static int32_t at(const void *const *in, int64_t i) { return ((const int32_t *)in[0])[i]; }

static bool keep_1(const void *const *in, int64_t i, int64_t n, double state[4], double *value)
{
    (void)in, (void)i, (void)n, (void)state;
    return value[0] > 98;
}
static bool keep_50(const void *const *in, int64_t i, int64_t n, double state[4], double *value)
{
    (void)in, (void)i, (void)n, (void)state;
    return value[0] > 0;
}
static bool keep_99(const void *const *in, int64_t i, int64_t n, double state[4], double *value)
{
    (void)in, (void)i, (void)n, (void)state;
    return value[0] > -99;
}
static bool keep_first(const void *const *in, int64_t i, int64_t n, double state[4], double *value)
{
    (void)n, (void)state, (void)value;
    return i == 0 || at(in, i) != at(in, i - 1);
}

/* The sum of a run, at its last element; without a second input, of ones. */
static bool keep_run(const void *const *in, int64_t i, int64_t n, double state[4], double *value)
{
    const double x = in[1] ? ((const int32_t *)in[1])[i] : 1;
    state[0] = i > 0 && at(in, i) == at(in, i - 1) ? state[0] + x : x;
    value[1] = state[0];
    return i + 1 == n || at(in, i + 1) != at(in, i);
}

#define KEPT(name, type, ins, outs, keep, kept)                                                                        \
    {                                                                                                                  \
        name, type, ins, outs, { type, outs == 3 ? type : I64, I64 }, true, false, NULL, ROWS, NULL, NULL, 0, keep,    \
            kept                                                                                                       \
    }

const struct problem problems[] = {
    KEPT("select_1", I32, 1, 2, keep_1, 2.0 / 201),
    KEPT("select_50", I32, 1, 2, keep_50, 100.0 / 201),
    KEPT("select_99", I32, 1, 2, keep_99, 199.0 / 201),
    KEPT("select_i64", I64, 1, 2, keep_50, 100.0 / 201),
    KEPT("select_i8", I8, 1, 2, keep_50, 100.0 / 201),
    KEPT("unique", RUNS, 1, 2, keep_first, 1.0 / RUN),
    KEPT("run_length", RUNS, 1, 3, keep_run, 1.0 / RUN),
    KEPT("sums_by_key", RUNS, 2, 3, keep_run, 1.0 / RUN),
    { "sum_f32", F32, 1, 1, { F32 }, false, false, reference_sum, ROWS, NULL, NULL, 0, NULL, 0 },
    { "dot", F32, 2, 1, { F32 }, false, false, reference_dot, ROWS, NULL, NULL, 0, NULL, 0 },
    { "argmin", F32, 1, 2, { F32, I64 }, false, false, reference_argmin, ROWS, NULL, NULL, 0, NULL, 0 },
    { "max", F32, 1, 1, { F32 }, false, false, reference_max, ROWS, NULL, NULL, 0, NULL, 0 },
    { "minmaxsum", F32, 1, 3, { F32, F32, F32 }, false, false, reference_minmaxsum, ROWS, NULL, NULL, 0, NULL, 0 },
    { "welford", F32, 1, 2, { F32, F32 }, false, false, reference_welford, ROWS, NULL, NULL, 0, NULL, 0 },
    { "mss", I32, 1, 1, { I32 }, false, false, reference_mss, ROWS, NULL, NULL, 0, NULL, 0 },
    { "sum_i8", I8, 1, 1, { I32 }, false, false, reference_sum, ROWS, NULL, NULL, 0, NULL, 0 },
    { "sum_f16", F16, 1, 1, { F32 }, false, false, reference_sum, ROWS, NULL, NULL, 0, NULL, 0 },
    { "sum_bf16", BF16, 1, 1, { F32 }, false, false, reference_sum, ROWS, NULL, NULL, 0, NULL, 0 },
    { "sum_f64", F64, 1, 1, { F64 }, false, false, reference_sum, ROWS, NULL, NULL, 0, NULL, 0 },
    { "scan_f32", F32, 1, 1, { F32 }, true, false, NULL, ROWS, NULL, NULL, 0, NULL, 0 },
    { "scan_f32_run", F32, 1, 1, { F32 }, true, false, NULL, ROWS, NULL, NULL, 0, NULL, 0 },
    { "scan_f32_device", F32, 1, 1, { F32 }, true, false, NULL, ROWS, NULL, NULL, 0, NULL, 0 },
    { "scan_i32", I32, 1, 1, { I32 }, true, false, NULL, ROWS, NULL, NULL, 0, NULL, 0 },
    { "scan_i64", I64, 1, 1, { I64 }, true, false, NULL, ROWS, NULL, NULL, 0, NULL, 0 },
    { "scan_f64", F64, 1, 1, { F64 }, true, false, NULL, ROWS, NULL, NULL, 0, NULL, 0 },
    { "scan_i8", I8, 1, 1, { I8 }, true, false, NULL, ROWS, NULL, NULL, 0, NULL, 0 },
    { "scan_mss", I32, 1, 1, { I32 }, true, false, NULL, ROWS, NULL, step_mss, 0, NULL, 0 },
    { "scan_lssp", I32, 1, 1, { I32 }, true, false, NULL, ROWS, NULL, step_lssp, 0, NULL, 0 },
    { "scan_affine", F32, 2, 2, { F32, F32 }, true, false, NULL, ROWS, NULL, step_affine, 1e-4, NULL, 0 },
    { "scan_i64x4", I64, 4, 4, { I64, I64, I64, I64 }, true, false, NULL, ROWS, NULL, NULL, 0, NULL, 0 },
    { "segscan", F32, 1, 1, { F32 }, true, true, NULL, ROWS, NULL, NULL, 0, NULL, 0 },
    { "segscan_i64", I64, 1, 1, { I64 }, true, true, NULL, ROWS, NULL, NULL, 0, NULL, 0 },
    { "segscan_f64", F64, 1, 1, { F64 }, true, true, NULL, ROWS, NULL, NULL, 0, NULL, 0 },
    { "scan_equal", F32, 1, 1, { F32 }, true, true, NULL, OFFSETS_EQUAL, "scan_between", NULL, 0, NULL, 0 },
    { "scan_power", F32, 1, 1, { F32 }, true, true, NULL, OFFSETS_POWER, "scan_between", NULL, 0, NULL, 0 },
    { "scan_huge", F32, 1, 1, { F32 }, true, true, NULL, OFFSETS_HUGE, "scan_between", NULL, 0, NULL, 0 },
    { "scan_flags", F32, 1, 1, { F32 }, true, true, NULL, FLAGS_POWER, "scan_flagged", NULL, 0, NULL, 0 },
    { "colscan", F32, 1, 1, { F32 }, true, true, NULL, COLUMNS, NULL, NULL, 0, NULL, 0 },
    { "segsum", F32, 1, 1, { F32 }, false, true, reference_sum, ROWS, NULL, NULL, 0, NULL, 0 },
    { "segmss", I32, 1, 1, { I32 }, false, true, reference_mss, ROWS, NULL, NULL, 0, NULL, 0 },
    { "segargmin", F32, 1, 2, { F32, I64 }, false, true, reference_argmin, ROWS, NULL, NULL, 0, NULL, 0 },
    { "segwelford", F32, 1, 2, { F32, F32 }, false, true, reference_welford, ROWS, NULL, NULL, 0, NULL, 0 },
    { "colsum", F32, 1, 1, { F32 }, false, true, reference_sum, COLUMNS, NULL, NULL, 0, NULL, 0 },
    { "offsets_equal", F32, 1, 1, { F32 }, false, true, reference_sum, OFFSETS_EQUAL, "offsets", NULL, 0, NULL, 0 },
    { "offsets_power", F32, 1, 1, { F32 }, false, true, reference_sum, OFFSETS_POWER, "offsets", NULL, 0, NULL, 0 },
    { "offsets_huge", F32, 1, 1, { F32 }, false, true, reference_sum, OFFSETS_HUGE, "offsets", NULL, 0, NULL, 0 },
    { "offmss_equal", I32, 1, 1, { I32 }, false, true, reference_mss, OFFSETS_EQUAL, "offmss", NULL, 0, NULL, 0 },
    { "offmss_power", I32, 1, 1, { I32 }, false, true, reference_mss, OFFSETS_POWER, "offmss", NULL, 0, NULL, 0 },
    { "offmss_huge", I32, 1, 1, { I32 }, false, true, reference_mss, OFFSETS_HUGE, "offmss", NULL, 0, NULL, 0 },
};
const int nproblems = sizeof problems / sizeof *problems;

int64_t output_elements(const struct problem *p, int output, const struct peer_size *size)
{
    if (p->keep && output + 1 == p->noutputs)
        return 1;
    return p->per_element ? size->n : p->segmented ? segment_count(size) : 1;
}

double problem_bytes(const struct problem *p, const struct peer_size *size)
{
    double bytes = (double)size->n * scalar_bytes(p->type) * p->ninputs;

    for (int o = 0; o < p->noutputs; o++)
        bytes += (double)output_elements(p, o, size) * scalar_bytes(p->out[o]) * (p->keep ? p->kept : 1);
    if (p->layout == FLAGS_POWER)
        bytes += (double)size->n;
    return bytes;
}

/* ---- comparison ------------------------------------------------------------------------------ */
bool check_scalars(const struct problem *p, const struct expected *e, const void *const *out, char *why, size_t length)
{
    for (int o = 0; o < p->noutputs; o++) {
        double got = scalar_load(p->out[o], out[o], 0);

        if (!(fabs(got - e->value[o]) <= e->tolerance[o])) {
            snprintf(why, length, "output %d is %.9g, expected %.9g within %.3g", o, got, e->value[o], e->tolerance[o]);
            return false;
        }
    }
    return true;
}

static bool check_steps(const struct problem *p, const void *const *in, int64_t n, const void *out, char *why,
                        size_t length)
{
    double state[4] = { 0 };

    for (int64_t i = 0; i < n; i++) {
        const double expected = p->step(in, i, state), got = scalar_load(p->out[0], out, i);

        if (!(fabs(got - expected) <= p->tolerance)) {
            snprintf(why, length, "element %lld is %.9g, expected %.9g within %.3g", (long long)i, got, expected,
                     p->tolerance);
            return false;
        }
    }
    return true;
}

bool check_kept(const struct problem *p, const void *const *in, int64_t n, const void *const *out, char *why,
                size_t length)
{
    const int last = p->noutputs - 1;
    double state[4] = { 0 }, value[OUTPUTS_MAX] = { 0 };
    int64_t kept = 0, count = *(const int64_t *)out[last];

    for (int64_t i = 0; i < n; i++) {
        value[0] = scalar_load(p->type, in[0], i);
        if (!p->keep(in, i, n, state, value))
            continue;
        for (int o = 0; o < last; o++)
            if (scalar_load(p->out[o], out[o], kept) != value[o]) {
                snprintf(why, length, "output %d of kept element %lld is %.9g, expected %.9g", o, (long long)kept,
                         scalar_load(p->out[o], out[o], kept), value[o]);
                return false;
            }
        kept++;
    }
    if (kept != count)
        snprintf(why, length, "%lld are counted, expected %lld", (long long)count, (long long)kept);
    return kept == count;
}

/* Sums of bytes wrap around, as in C. */
static double wrapped(enum scalar t, double sum) { return t == I8 ? (int8_t)(int64_t)sum : sum; }

bool check_array(const struct problem *p, const void *const *in, const struct peer_size *size, const int64_t *offset,
                 const void *out, char *why, size_t length)
{
    double sum = 0, magnitude = 0;

    if (p->segmented)
        return check_running_sums(p, in, size, offset, out, why, length);
    if (p->step)
        return check_steps(p, in, size->n, out, why, length);
    for (int64_t i = 0; i < size->n; i++) {
        double x = scalar_load(p->type, in[0], i), got, tolerance;

        sum += x;
        magnitude += fabs(x);
        got = scalar_load(p->out[0], out, i);
        tolerance = magnitude * sum_unit(p->type);
        if (!(fabs(got - wrapped(p->out[0], sum)) <= tolerance)) {
            snprintf(why, length, "element %lld is %.9g, expected %.9g within %.3g", (long long)i, got, sum, tolerance);
            return false;
        }
    }
    return true;
}
