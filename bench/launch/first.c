/* SPDX-License-Identifier: Apache-2.0 */
/* first.c - the time from source text to the first result, by ptxgen and by NVRTC. */
#include "launch_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../latency/kernels.h"
#include "../latency/nvrtc.h"

static bool is_right(struct bench_device *d)
{
    float result = 0;

    return ptxgen_gpu_read(d->s, d->gpu, &result, d->out, sizeof result) == PTXGEN_OK && result == 2.0f * N;
}

/* Everything that a caller pays, from a session of its own on. */
static bool by_ptxgen(struct bench_device *d, double begin, double *loaded_ms, double *result_ms)
{
    const int64_t n = N;
    const void *in[] = { d->x, d->y };
    const ptxgen_arguments args = { &n, in, &d->out, NULL };
    ptxgen_session *s;
    ptxgen_loaded *loaded = NULL;
    bool ok;

    if (ptxgen_session_create(&s) != PTXGEN_OK)
        return false;
    ok = ptxgen_jit_string(s, d->gpu, spec_dot, strlen(spec_dot), "dot", NULL, &loaded) == PTXGEN_OK &&
         ptxgen_prepare(s, loaded, &args, NULL) == PTXGEN_OK;
    *loaded_ms = now_ms() - begin;
    ok = ok && ptxgen_launch(s, loaded, &args, NULL, NULL) == PTXGEN_OK && is_right(d);
    *result_ms = now_ms() - begin;
    ptxgen_loaded_destroy(loaded);
    ptxgen_session_destroy(s);
    return ok;
}

/* k-means from the file of its spec; all points are alike, so that one step is the last. */
static bool kmeans(struct bench_device *d, double begin, double *loaded_ms, double *result_ms)
{
    const int64_t size[] = { N / 16, 16, 8 }; /* n, f, k */
    const void *in[] = { d->x, d->x };
    void *out[2] = { NULL, NULL };
    const ptxgen_arguments args = { size, in, out, NULL };
    char path[400];
    ptxgen_session *s;
    ptxgen_problem *p;
    ptxgen_loaded *loaded = NULL;
    int32_t member = -1;
    bool ok;

    if (!d->specs || ptxgen_session_create(&s) != PTXGEN_OK)
        return false;
    snprintf(path, sizeof path, "%s/apps/kmeans.yaml", d->specs);
    ok = ptxgen_problem_from_file(s, path, &p) == PTXGEN_OK && ptxgen_problem_size_count(p) == 3 &&
         ptxgen_gpu_alloc(s, d->gpu, (size_t)size[0] * 4, &out[0]) == PTXGEN_OK &&
         ptxgen_gpu_alloc(s, d->gpu, (size_t)(size[1] * size[2]) * 4, &out[1]) == PTXGEN_OK &&
         ptxgen_jit(s, d->gpu, p, NULL, &loaded) == PTXGEN_OK && ptxgen_prepare(s, loaded, &args, NULL) == PTXGEN_OK;
    *loaded_ms = now_ms() - begin;
    ok = ok && ptxgen_launch(s, loaded, &args, NULL, NULL) == PTXGEN_OK &&
         ptxgen_gpu_read(s, d->gpu, &member, out[0], sizeof member) == PTXGEN_OK && member == 0;
    *result_ms = now_ms() - begin;
    ptxgen_loaded_destroy(loaded);
    ptxgen_gpu_free(d->gpu, out[0]);
    ptxgen_gpu_free(d->gpu, out[1]);
    ptxgen_session_destroy(s);
    return ok;
}

/* The kernel's workspace is part of the price, as it is in ptxgen's first launch. */
static bool by_nvrtc(struct bench_device *d, const char *source, bool headers, double begin, double *loaded_ms,
                     double *result_ms)
{
    enum { BLOCKS = 1024, THREADS = 256 };
    struct raw_driver cu;
    void *module, *function, *partial = NULL, *done = NULL;
    long long n = N;
    void *params[] = { &d->x, &d->y, &d->out, &partial, &done, &n };
    size_t size;
    char *cubin = nvrtc_compile(source, d->arch, headers, true, &size);
    bool ok = cubin && raw_open(&cu) && cu.load(&module, cubin) == 0 && cu.function(&function, module, "dot") == 0 &&
              ptxgen_gpu_alloc(d->s, d->gpu, BLOCKS * sizeof(float), &partial) == PTXGEN_OK &&
              ptxgen_gpu_alloc(d->s, d->gpu, sizeof(unsigned), &done) == PTXGEN_OK &&
              ptxgen_gpu_fill(d->s, d->gpu, done, 0, sizeof(unsigned), NULL) == PTXGEN_OK;

    *loaded_ms = now_ms() - begin;
    ok = ok && cu.launch(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL) == 0 && is_right(d);
    *result_ms = now_ms() - begin;
    free(cubin);
    ptxgen_gpu_free(d->gpu, partial);
    ptxgen_gpu_free(d->gpu, done);
    return ok;
}

bool first_result(enum subject subject, struct bench_device *d, double *loaded, double *result)
{
    bool nvrtc = subject == NVRTC_PLAIN || subject == NVRTC_CUB;
    double begin;

    if (nvrtc && !nvrtc_open())
        return false;
    begin = now_ms();
    if (subject == KMEANS_COLD || subject == KMEANS_WARM)
        return kmeans(d, begin, loaded, result);
    return nvrtc ? by_nvrtc(d, subject == NVRTC_CUB ? kernel_cub : kernel_plain, subject == NVRTC_CUB, begin, loaded,
                            result)
                 : by_ptxgen(d, begin, loaded, result);
}
