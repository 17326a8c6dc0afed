/* SPDX-License-Identifier: Apache-2.0 */
/* embed_header.c - a generated header in a program that knows nothing of ptxgen.
 *
 *     ptxgen specs/dot.yaml --emit=header -o dot.h
 *     cc embed_header.c -I. -I/usr/local/cuda/include -lcuda -o embed_header && ./embed_header
 *
 * The header holds the PTX and typed functions on top of the CUDA driver API; its top says how they are called.
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

int main(void)
{
    static float x[N], y[N];
    dot_program program;
    CUdevice device;
    CUcontext context;
    CUdeviceptr dx, dy, dresult, workspace;
    size_t bytes = 0;
    float result = 0;

    for (int i = 0; i < N; i++) {
        x[i] = 1;
        y[i] = 2;
    }
    TRY(cuInit(0));
    TRY(cuDeviceGet(&device, 0));
    TRY(cuDevicePrimaryCtxRetain(&context, device));
    TRY(cuCtxSetCurrent(context));
    TRY(cuMemAlloc(&dx, sizeof x));
    TRY(cuMemAlloc(&dy, sizeof y));
    TRY(cuMemAlloc(&dresult, sizeof result));
    TRY(cuMemcpyHtoD(dx, x, sizeof x));
    TRY(cuMemcpyHtoD(dy, y, sizeof y));

    TRY(dot_load(&program));
    TRY(dot_workspace_bytes(&program, N, &bytes));
    TRY(cuMemAlloc(&workspace, bytes ? bytes : 1));
    TRY(dot_launch(&program, NULL, N, ptxgen_pointer(dx), ptxgen_pointer(dy), ptxgen_pointer(dresult),
                   ptxgen_pointer(workspace), bytes));
    TRY(cuMemcpyDtoH(&result, dresult, sizeof result));
    printf("dot: %g\n", result);

    dot_unload(&program);
    TRY(cuMemFree(workspace));
    TRY(cuMemFree(dresult));
    TRY(cuMemFree(dy));
    TRY(cuMemFree(dx));
    TRY(cuDevicePrimaryCtxRelease(device));
    return result == 2 * N ? 0 : 1;
}
