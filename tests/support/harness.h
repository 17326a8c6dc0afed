/* SPDX-License-Identifier: Apache-2.0 */
/* harness.h - run a spec's kernels on the host executor and compare with the oracle; what the property, strategy and
 * mutation tests share.  Everything goes through the public API.
 *
 * Buffers come from malloc plus a chosen misalignment in elements, so that address checkers and the kernels' vector
 * paths both see what they should.
 */
#ifndef PTXGEN_TEST_HARNESS_H
#define PTXGEN_TEST_HARNESS_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptxgen/ptxgen.h"

enum { HARNESS_ARRAYS = 24 };

struct harness {
    ptxgen_session *s;
    ptxgen_problem *problem;
    ptxgen_plan *plan;
    ptxgen_host *host;
    int64_t size[8];
    ptxgen_value param[16];
    void *memory[2 * HARNESS_ARRAYS];
    void *input[HARNESS_ARRAYS], *output[HARNESS_ARRAYS], *expected[HARNESS_ARRAYS];
    double *bound[HARNESS_ARRAYS];
    int64_t count[HARNESS_ARRAYS]; /* elements of outputs */
    int nmemory;
    char text[2048]; /* what went wrong */
};

/* Of random cases and of specs one in as many as the environment says is run, where sanitizers take their time. */
static inline int harness_one_in(const char *variable)
{
    const char *n = getenv(variable);
    return n ? atoi(n) : 1;
}

/* run_seed() of `count` seeds from `from` on, as a test of a suite: a failure names its block of seeds, and the other
 * blocks still run.  PTXGEN_TEST_SEEDS=N: one in N of them. */
#define HARNESS_SEEDS(suite, from, count)                                                                              \
    Test(suite, seeds_##from)                                                                                          \
    {                                                                                                                  \
        for (uint64_t seed = (from); seed < (from) + (count); seed += (uint64_t)harness_one_in("PTXGEN_TEST_SEEDS"))   \
            run_seed(seed);                                                                                            \
    }

static inline uint64_t harness_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Small integers, and floats in [-1, 1): what users' operators are safe with. */
static inline void harness_fill(const ptxgen_array_info *a, int64_t n, unsigned char *p, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++)
        for (int f = 0; f < a->field_count; f++) {
            const uint64_t r = harness_random(&seed);
            const ptxgen_type t = a->field_type[f];
            ptxgen_value v;
            if (t >= PTXGEN_F16)
                v.f = (double)(int64_t)(r >> 11) * 0x1p-52 - 1.0;
            else if (t == PTXGEN_BOOL)
                v.i = (int64_t)(r & 1);
            else
                v.i = (int64_t)(r % 201) - (t >= PTXGEN_U8 ? 0 : 100);
            ptxgen_value_store(t, p + (size_t)i * a->element_size + a->field_offset[f], v);
        }
}

static inline bool harness_fail(struct harness *h, const char *what)
{
    char *text = h->s ? ptxgen_diagnostics_text(h->s, 0) : NULL;
    snprintf(h->text, sizeof h->text, "%s: %s", what, text ? text : "");
    ptxgen_free(text);
    return false;
}

/* Spec text to plan.  settings: NAME=VALUE pairs as name, value, name, value, …, NULL. */
static inline bool harness_plan(struct harness *h, const char *name, const char *spec, const char *arch,
                                const char *const *settings)
{
    ptxgen_setting set[8];
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    memset(h, 0, sizeof *h);
    for (int i = 0; settings && settings[2 * i]; i++)
        set[o.setting_count++] = (ptxgen_setting){ settings[2 * i], settings[2 * i + 1] };
    o.setting = set;
    o.arch = arch;
    if (ptxgen_session_create(&h->s) != PTXGEN_OK)
        return harness_fail(h, "session");
    if (ptxgen_problem_from_string(h->s, spec, strlen(spec), name, &h->problem) != PTXGEN_OK)
        return harness_fail(h, "problem");
    if (ptxgen_plan_create(h->s, h->problem, &o, &h->plan) != PTXGEN_OK)
        return harness_fail(h, "plan");
    return true;
}

static inline bool harness_compile(struct harness *h)
{
    return ptxgen_host_create(h->s, h->plan, NULL, &h->host) == PTXGEN_OK || harness_fail(h, "host");
}

/* Spec text to host code. */
static inline bool harness_open(struct harness *h, const char *name, const char *spec, const char *arch,
                                const char *const *settings)
{
    return harness_plan(h, name, spec, arch, settings) && harness_compile(h);
}

static inline void *harness_memory(struct harness *h, int64_t bytes, int64_t skew)
{
    unsigned char *p = malloc((size_t)(bytes + skew) + 64);
    h->memory[h->nmemory++] = p;
    p += (16 - (uintptr_t)p % 16) % 16;
    memset(p, 0xA5, (size_t)(bytes + skew));
    return p + skew;
}

static inline void harness_release(struct harness *h)
{
    for (int i = 0; i < h->nmemory; i++)
        free(h->memory[i]);
    h->nmemory = 0;
}

static inline void harness_close(struct harness *h)
{
    harness_release(h);
    ptxgen_host_destroy(h->host);
    ptxgen_session_destroy(h->s);
}

/* A shape that no array has, [k-1] of none, is left to those who refuse it. */
static inline int64_t harness_count(struct harness *h, const ptxgen_array_info *a)
{
    const int64_t n = ptxgen_array_elements(a, h->size);
    return n < 0 ? 0 : n;
}

/* Elements of the first ordinary input. */
static inline int64_t harness_elements(struct harness *h)
{
    ptxgen_array_info a = { .role = 0 };
    for (int i = 0; i < ptxgen_problem_input_count(h->problem); i++) {
        ptxgen_problem_input(h->problem, i, &a);
        if (a.role == PTXGEN_ROLE_ELEMENTS)
            break;
    }
    return ptxgen_array_elements(&a, h->size);
}

/* Segment offsets that ascend to n, empty segments among them. */
static inline void harness_offsets(const ptxgen_array_info *a, int64_t count, void *p, int64_t n, uint64_t seed)
{
    ptxgen_value at = { .i = 0 };
    for (int64_t i = 0; i < count; i++) {
        const uint64_t r = harness_random(&seed);
        const int64_t step = i + 1 == count ? n - at.i : (int64_t)(r % 3 ? r / 3 % (uint64_t)(2 * n / count + 2) : 0);
        at.i = at.i + step < n ? at.i + step : n;
        ptxgen_value_store(a->field_type[0], (char *)p + (size_t)i * a->element_size, at);
    }
}

/* Inputs of seed at the given sizes; every array `skew` elements behind a 16-byte boundary (input i: skew + i * skew2).
 * Segment offsets ascend. */
static inline void harness_data_at(struct harness *h, const int64_t *size, uint64_t seed, int skew, int skew2)
{
    ptxgen_array_info a;
    harness_release(h);
    for (int i = 0; i < ptxgen_problem_size_count(h->problem); i++)
        h->size[i] = size[i];
    for (int i = 0; i < ptxgen_problem_param_count(h->problem); i++) {
        ptxgen_param_info p;
        ptxgen_problem_param(h->problem, i, &p);
        if (p.has_default)
            h->param[i] = p.default_value;
        else if (p.type >= PTXGEN_F16)
            h->param[i].f = 0.5;
        else
            h->param[i].i = 3 % (p.type == PTXGEN_BOOL ? 2 : 4);
    }
    for (int i = 0; i < ptxgen_problem_input_count(h->problem); i++) {
        ptxgen_problem_input(h->problem, i, &a);
        const int64_t count = harness_count(h, &a);
        h->input[i] = harness_memory(h, count * (int64_t)a.element_size, (skew + i * skew2) * (int64_t)a.element_size);
        if (a.role == PTXGEN_ROLE_SEGMENT_OFFSETS)
            harness_offsets(&a, count, h->input[i], harness_elements(h), seed * 77 + (uint64_t)i);
        else
            harness_fill(&a, count, h->input[i], seed * 77 + (uint64_t)i);
    }
    for (int i = 0; i < ptxgen_problem_output_count(h->problem); i++) {
        ptxgen_problem_output(h->problem, i, &a);
        h->count[i] = harness_count(h, &a);
        const int64_t bytes = h->count[i] * (int64_t)a.element_size;
        h->output[i] = harness_memory(h, bytes, (skew + i * skew2) * (int64_t)a.element_size);
        h->expected[i] = harness_memory(h, bytes, 0);
        const int64_t bounds = h->count[i] * a.field_count * (int64_t)sizeof(double);
        h->bound[i] = memset(harness_memory(h, bounds, 0), 0, (size_t)bounds); /* stays 0 for what nobody writes */
    }
}

/* All sizes n. */
static inline void harness_data(struct harness *h, int64_t n, uint64_t seed, int skew, int skew2)
{
    int64_t size[8];
    for (int i = 0; i < 8; i++)
        size[i] = n;
    harness_data_at(h, size, seed, skew, skew2);
}

static inline bool harness_same(ptxgen_type t, ptxgen_value got, ptxgen_value want, double bound)
{
    if (t < PTXGEN_F16)
        return bound == 0 ? got.i == want.i : isinf(bound) || fabs((double)got.i - (double)want.i) <= bound;
    if (isnan(want.f) || isnan(got.f))
        return (isnan(want.f) && isnan(got.f)) || isinf(bound);
    return got.f == want.f || fabs(got.f - want.f) <= bound || isinf(bound);
}

/* The oracle's values and bounds. */
static inline bool harness_expect(struct harness *h)
{
    ptxgen_arguments args = { h->size, (const void *const *)h->input, h->expected, h->param };
    ptxgen_diagnostics_clear(h->s);
    return ptxgen_error_bound(h->s, h->problem, &args, h->bound) == PTXGEN_OK || harness_fail(h, "oracle");
}

/* Are the outputs what the oracle expects? */
static inline bool harness_compare(struct harness *h)
{
    for (int o = 0; o < ptxgen_problem_output_count(h->problem); o++) {
        ptxgen_array_info a;
        ptxgen_problem_output(h->problem, o, &a);
        for (int64_t i = 0; i < h->count[o]; i++)
            for (int f = 0; f < a.field_count; f++) {
                const size_t at = (size_t)i * a.element_size + a.field_offset[f];
                const ptxgen_value got = ptxgen_value_load(a.field_type[f], (char *)h->output[o] + at);
                const ptxgen_value want = ptxgen_value_load(a.field_type[f], (char *)h->expected[o] + at);
                const double bound = h->bound[o][i * a.field_count + f];
                if (harness_same(a.field_type[f], got, want, bound))
                    continue;
                const bool is_float = a.field_type[f] >= PTXGEN_F16;
                snprintf(h->text, sizeof h->text, "%s[%lld].%s: got %.17g, want %.17g, bound %g (case %s)", a.name,
                         (long long)i, a.field_name[f], is_float ? got.f : (double)got.i,
                         is_float ? want.f : (double)want.i, bound, h->host ? ptxgen_host_case(h->host) : "-");
                return false;
            }
    }
    return true;
}

/* Run once in the given modes and compare with the oracle. */
static inline bool harness_check(struct harness *h, const char *modes)
{
    ptxgen_arguments args = { h->size, (const void *const *)h->input, h->output, h->param };
    if (!harness_expect(h))
        return false;
    if (ptxgen_host_run(h->s, h->host, &args, modes) != PTXGEN_OK)
        return harness_fail(h, "run");
    return harness_compare(h);
}

static inline char *harness_read(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    char *text = calloc(1, 1 << 16);
    if (text && fread(text, 1, (1 << 16) - 1, f) == 0)
        text[0] = 0;
    fclose(f);
    return text;
}

#endif
