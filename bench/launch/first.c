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
    return nvrtc ? by_nvrtc(d, subject == NVRTC_CUB ? kernel_cub : kernel_plain, subject == NVRTC_CUB, begin, loaded,
                            result)
                 : by_ptxgen(d, begin, loaded, result);
}
