/* SPDX-License-Identifier: Apache-2.0 */
/* embed_header.c - a generated header in a program that knows nothing of ptxgen.
 *
 *     ptxgen specs/dot.yaml --emit=header -o dot.h
 *     cc embed_header.c -I. -I/usr/local/cuda/include -lcuda -o embed_header && ./embed_header
 *
 * The header holds the PTX and typed functions on top of the CUDA driver API.
 */
#include <stdio.h>

#include "dot.h"

enum { N = 1000 };

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        CUresult result_ = (call);                                                                                     \
        if (result_ != CUDA_SUCCESS) {                                                                                 \
            const char *text_ = NULL;                                                                                  \
            cuGetErrorString(result_, &text_);                                                                         \
            fprintf(stderr, "%s: %s\n", #call, text_ ? text_ : "unknown");                                             \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

struct state {
    CUdevice device;
    CUcontext context;
    dot_program program;
    CUdeviceptr x, y, result, workspace;
};

static int run(struct state *s, const float *x, const float *y, float *result)
{
    const size_t bytes = N * sizeof *x;
    size_t needed = 0;

    TRY(cuInit(0));
    TRY(cuDeviceGet(&s->device, 0));
    TRY(cuDevicePrimaryCtxRetain(&s->context, s->device));
    TRY(cuCtxSetCurrent(s->context));
    TRY(cuMemAlloc(&s->x, bytes));
    TRY(cuMemAlloc(&s->y, bytes));
    TRY(cuMemAlloc(&s->result, sizeof *result));
    TRY(cuMemcpyHtoD(s->x, x, bytes));
    TRY(cuMemcpyHtoD(s->y, y, bytes));

    TRY(dot_load(&s->program));
    TRY(dot_workspace_bytes(&s->program, N, &needed));
    TRY(cuMemAlloc(&s->workspace, needed ? needed : 1));
    TRY(dot_launch(&s->program, NULL, N, ptxgen_pointer(s->x), ptxgen_pointer(s->y), ptxgen_pointer(s->result),
                   ptxgen_pointer(s->workspace), needed));
    TRY(cuMemcpyDtoH(result, s->result, sizeof *result));
    return 0;
}

static void finish(struct state *s)
{
    const CUdeviceptr memory[] = { s->x, s->y, s->result, s->workspace };

    if (s->context == NULL)
        return;
    dot_unload(&s->program);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        if (memory[i])
            cuMemFree(memory[i]);
    cuDevicePrimaryCtxRelease(s->device);
}

int main(void)
{
    static float x[N], y[N];
    static struct state state;
    float result = 0;
    int failed;

    for (int i = 0; i < N; i++) {
        x[i] = 1;
        y[i] = 2;
    }
    failed = run(&state, x, y, &result);
    if (!failed)
        printf("dot: %g\n", result);
    finish(&state);
    return !failed && result == 2 * N ? 0 : 1;
}
