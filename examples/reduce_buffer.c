/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_buffer.c - compile a spec for the GPU at hand and reduce a buffer of one's own.
 *
 *     cc reduce_buffer.c $(pkg-config --cflags --libs ptxgen) -o reduce_buffer && ./reduce_buffer
 *
 * The memory could as well come from cudaMalloc() and the stream from cudaStreamCreate(): ptxgen works in the device's
 * primary context, which is the runtime's.  The second run takes the code from the disk cache.
 */
#include <stdio.h>
#include <stdlib.h>

#include <ptxgen/launch.h>

enum { N = 1000003 };

static const char spec[] = "kind: reduce\n"
                           "inputs: {x: \"f32[n]\"}\n"
                           "map: x * x\n"
                           "operator: add\n"
                           "outputs: {norm: {type: f32, value: sqrt(r)}}\n";

/* Copy `host` to the device, launch, copy the result back. */
static ptxgen_status reduce(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_loaded *loaded, const float *host, float *result)
{
    const int64_t n = N;
    void *x = NULL, *norm = NULL;
    ptxgen_status status = ptxgen_gpu_alloc(s, gpu, N * sizeof *host, &x);

    if (status == PTXGEN_OK)
        status = ptxgen_gpu_alloc(s, gpu, sizeof *result, &norm);
    if (status == PTXGEN_OK)
        status = ptxgen_gpu_write(s, gpu, x, host, N * sizeof *host);
    if (status == PTXGEN_OK) {
        const void *in[] = { x };
        void *out[] = { norm };
        const ptxgen_arguments args = { &n, in, out, NULL };

        status = ptxgen_launch(s, loaded, &args, NULL, NULL); /* in the default stream; returns at once */
    }
    if (status == PTXGEN_OK)
        status = ptxgen_gpu_read(s, gpu, result, norm, sizeof *result); /* waits */
    ptxgen_gpu_free(gpu, x);
    ptxgen_gpu_free(gpu, norm);
    return status;
}

int main(void)
{
    ptxgen_session *s = NULL;
    ptxgen_gpu *gpu = NULL;
    ptxgen_loaded *loaded = NULL;
    ptxgen_status status;
    float *host = malloc(N * sizeof *host), norm = 0;

    if (host == NULL || ptxgen_session_create(&s) != PTXGEN_OK) {
        free(host);
        return EXIT_FAILURE;
    }
    for (int i = 0; i < N; i++)
        host[i] = 1;
    status = ptxgen_gpu_open(s, PTXGEN_GPU_CURRENT, &gpu);
    if (status == PTXGEN_OK)
        status = ptxgen_jit_string(s, gpu, spec, sizeof spec - 1, "norm", NULL, &loaded);
    if (status == PTXGEN_OK)
        status = reduce(s, gpu, loaded, host, &norm);
    if (status == PTXGEN_OK) {
        printf("norm of %d ones: %g\n", N, norm);
    } else {
        char *text = ptxgen_diagnostics_text(s, 0);

        fputs(text ? text : "out of memory\n", stderr);
        ptxgen_free(text);
    }
    ptxgen_loaded_destroy(loaded);
    ptxgen_gpu_close(gpu);
    ptxgen_session_destroy(s);
    free(host);
    return status == PTXGEN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
