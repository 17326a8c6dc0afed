/* SPDX-License-Identifier: Apache-2.0 */
/* segments.c - problems with segments: where segments lie, and the comparison of all of them by several threads.
 *
 *     rows      consecutive elements, all of one size
 *     columns   every (number of segments)-th element
 *     flags     consecutive elements from mark to mark, by the power law below
 *     offsets   consecutive elements between offsets, whose distances follow a law: all equal; a power law, in random
 * order, where half of the segments have few elements and some have thousands of times the mean; or one segment with
 * nine tenths of all elements among equal ones
 */
#include "bench.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 16, HUGE_SHARE = 10 };

int64_t segment_count(const struct peer_size *size) { return size->n / size->segment; }

/* ---- offsets --------------------------------------------------------------------------------- */
static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Weights of segments become offsets; rounding keeps them ascending, from 0 to n. */
static void weights_to_offsets(const double *weight, int64_t segments, int64_t n, int64_t *offset)
{
    double total = 0, sum = 0;

    for (int64_t s = 0; s < segments; s++)
        total += weight[s];
    offset[0] = 0;
    for (int64_t s = 0; s < segments; s++) {
        sum += weight[s];
        offset[s + 1] = s + 1 == segments ? n : (int64_t)((double)n * (sum / total));
    }
}

bool fill_offsets(enum layout layout, const struct peer_size *size, int64_t *offset)
{
    int64_t segments = segment_count(size);
    double *weight = malloc((size_t)segments * sizeof *weight);
    uint64_t state = 12345;

    if (weight == NULL)
        return false;
    for (int64_t s = 0; s < segments; s++) {
        double u = ((double)(next_random(&state) >> 11) + 1) * 0x1p-53;
        weight[s] = layout == OFFSETS_POWER || layout == FLAGS_POWER ? pow(u, -0.8) : 1;
    }
    if (layout == OFFSETS_HUGE)
        weight[segments / 2] = (double)(HUGE_SHARE - 1) * (double)segments;
    weights_to_offsets(weight, segments, size->n, offset);
    free(weight);
    return true;
}

void offsets_to_flags(const int64_t *offset, int64_t segments, int64_t n, uint8_t *flag)
{
    memset(flag, 0, (size_t)n);
    for (int64_t s = 0; s < segments; s++)
        if (offset[s] < n)
            flag[offset[s]] = 1;
}

/* ---- comparison ------------------------------------------------------------------------------ */
struct share {
    const struct problem *p;
    const void *const *in, *const *out;
    const struct peer_size *size;
    const int64_t *offset; /* NULL: all of one size */
    int64_t begin, end;    /* segments */
    bool ok;
    char why[160];
};

static bool agrees(struct share *x, int64_t segment, const struct expected *e)
{
    for (int o = 0; o < x->p->noutputs && x->ok; o++) {
        double got = scalar_load(x->p->out[o], x->out[o], segment);

        x->ok = fabs(got - e->value[o]) <= e->tolerance[o];
        if (!x->ok)
            snprintf(x->why, sizeof x->why, "output %d of segment %lld is %.9g, expected %.9g within %.3g", o,
                     (long long)segment, got, e->value[o], e->tolerance[o]);
    }
    return x->ok;
}

static void check_runs(struct share *x)
{
    for (int64_t s = x->begin; s < x->end && x->ok; s++) {
        int64_t first = x->offset ? x->offset[s] : s * x->size->segment;
        int64_t last = x->offset ? x->offset[s + 1] : first + x->size->segment;
        const void *in[INPUTS_MAX] = { NULL };
        struct expected e = { .value = { 0 } };

        for (int i = 0; i < x->p->ninputs; i++)
            in[i] = (const char *)x->in[i] + first * scalar_bytes(x->p->type);
        x->p->reference(x->p, in, last - first, &e);
        agrees(x, s, &e);
    }
}

/* Sums of neighbouring columns, row by row. */
static void check_columns(struct share *x)
{
    int64_t columns = segment_count(x->size), mine = x->end - x->begin;
    double *sum = calloc((size_t)mine * 2 + 1, sizeof *sum), *magnitude = sum + mine;

    x->ok = sum != NULL;
    for (int64_t r = 0; r < x->size->segment && x->ok; r++)
        for (int64_t c = 0; c < mine; c++) {
            double v = scalar_load(x->p->type, x->in[0], r * columns + x->begin + c);
            sum[c] += v;
            magnitude[c] += fabs(v);
        }
    for (int64_t c = 0; c < mine && x->ok; c++) {
        struct expected e = { .value = { sum[c] }, .tolerance = { 4e-7 * magnitude[c] } };
        agrees(x, x->begin + c, &e);
    }
    free(sum);
}

/* One element, i of its segment's running sum. */
static void check_running(struct share *x, int64_t element, double *sum, double *magnitude)
{
    double v = scalar_load(x->p->type, x->in[0], element), got = scalar_load(x->p->out[0], x->out[0], element);

    *sum += v;
    *magnitude += fabs(v);
    x->ok = fabs(got - *sum) <= *magnitude * sum_unit(x->p->type);
    if (!x->ok)
        snprintf(x->why, sizeof x->why, "element %lld is %.9g, expected %.9g", (long long)element, got, *sum);
}

static void check_running_rows(struct share *x)
{
    for (int64_t s = x->begin; s < x->end && x->ok; s++) {
        int64_t first = x->offset ? x->offset[s] : s * x->size->segment;
        int64_t last = x->offset ? x->offset[s + 1] : first + x->size->segment;
        double sum = 0, magnitude = 0;

        for (int64_t i = first; i < last && x->ok; i++)
            check_running(x, i, &sum, &magnitude);
    }
}

static void check_running_columns(struct share *x)
{
    int64_t columns = segment_count(x->size), mine = x->end - x->begin;
    double *sum = calloc((size_t)mine * 2 + 1, sizeof *sum), *magnitude = sum + mine;

    x->ok = sum != NULL;
    for (int64_t r = 0; r < x->size->segment && x->ok; r++)
        for (int64_t c = 0; c < mine && x->ok; c++)
            check_running(x, r * columns + x->begin + c, &sum[c], &magnitude[c]);
    free(sum);
}

static void *check_share(void *argument)
{
    struct share *x = argument;

    if (x->p->per_element)
        (x->p->layout == COLUMNS ? check_running_columns : check_running_rows)(x);
    else
        (x->p->layout == COLUMNS ? check_columns : check_runs)(x);
    return NULL;
}

bool check_segments(const struct problem *p, const void *const *in, const struct peer_size *size, const int64_t *offset,
                    const void *const *out, char *why, size_t length)
{
    struct share share[THREADS];
    pthread_t thread[THREADS];
    bool started[THREADS], ok = true;
    int64_t segments = segment_count(size);

    for (int t = 0; t < THREADS; t++) {
        share[t] = (struct share){ .p = p,
                                   .in = in,
                                   .out = out,
                                   .size = size,
                                   .offset = offset,
                                   .ok = true,
                                   .begin = segments * t / THREADS,
                                   .end = segments * (t + 1) / THREADS };
        started[t] = pthread_create(&thread[t], NULL, check_share, &share[t]) == 0;
    }
    for (int t = 0; t < THREADS; t++) {
        if (started[t])
            pthread_join(thread[t], NULL);
        else
            check_share(&share[t]);
        if (ok && !share[t].ok)
            snprintf(why, length, "%s", share[t].why);
        ok &= share[t].ok;
    }
    return ok;
}

bool check_running_sums(const struct problem *p, const void *const *in, const struct peer_size *size,
                        const int64_t *offset, const void *out, char *why, size_t length)
{
    return check_segments(p, in, size, offset, &out, why, length);
}
