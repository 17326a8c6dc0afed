/* SPDX-License-Identifier: Apache-2.0 */
/* driver_calls.c - a library in front of the CUDA driver that says what its slow calls take.
 *
 *     PTXGEN_CACHE=off CUDA_CACHE_DISABLE=1 PTXGEN_LIBCUDA=lib/libdriver_calls.so bin/ptxgen run SPEC.yaml ...
 *
 * Each call of at least 0.2 ms, or of DRIVER_CALLS_FROM ms, is a line on standard error: process, when it began in ms,
 * how long it took, its name.  What lies between two lines is the caller's.  Entry points that are not here are found in the driver, on which this
 * library depends.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void say(const char *name, double begin)
{
    const double end = now_ms();
    const char *least = getenv("DRIVER_CALLS_FROM");

    if (end - begin >= (least ? atof(least) : 0.2))
        fprintf(stderr, "%d %12.2f %8.2f ms %s\n", (int)getpid(), begin, end - begin, name);
}

#define CALL(name, params, args)                                                                                       \
    __attribute__((visibility("default"))) int name params;                                                            \
    int name params                                                                                                    \
    {                                                                                                                  \
        static int(*driver) params;                                                                                    \
        const double begin = now_ms();                                                                                 \
        if (!driver)                                                                                                   \
            *(void **)&driver = dlsym(dlopen("libcuda.so.1", RTLD_NOW), #name);                                        \
        const int result = driver args;                                                                                \
        say(#name, begin);                                                                                             \
        return result;                                                                                                 \
    }

CALL(cuInit, (unsigned flags), (flags))
CALL(cuDeviceGetName, (char *name, int bytes, int device), (name, bytes, device))
CALL(cuDeviceTotalMem_v2, (size_t * bytes, int device), (bytes, device))
CALL(cuDeviceGetAttribute, (int *value, int attribute, int device), (value, attribute, device))
CALL(cuDevicePrimaryCtxRetain, (void **context, int device), (context, device))
CALL(cuCtxSynchronize, (void), ())
CALL(cuModuleLoadDataEx, (void **module, const void *image, unsigned n, int *option, void **value),
     (module, image, n, option, value))
CALL(cuModuleGetFunction, (void **function, void *module, const char *name), (function, module, name))
CALL(cuFuncGetAttribute, (int *value, int attribute, void *function), (value, attribute, function))
CALL(cuFuncSetAttribute, (void *function, int attribute, int value), (function, attribute, value))
CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, void *function, int threads, size_t shared),
     (blocks, function, threads, shared))
CALL(cuMemAlloc_v2, (unsigned long long *p, size_t bytes), (p, bytes))
CALL(cuMemAllocAsync, (unsigned long long *p, size_t bytes, void *stream), (p, bytes, stream))
CALL(cuMemcpyHtoD_v2, (unsigned long long to, const void *from, size_t bytes), (to, from, bytes))
CALL(cuMemcpyDtoH_v2, (void *to, unsigned long long from, size_t bytes), (to, from, bytes))
CALL(cuMemsetD8Async, (unsigned long long to, unsigned char value, size_t bytes, void *stream),
     (to, value, bytes, stream))
CALL(cuStreamIsCapturing, (void *stream, int *status), (stream, status))
CALL(cuStreamCreate, (void **stream, unsigned flags), (stream, flags))
CALL(cuStreamSynchronize, (void *stream), (stream))
CALL(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags), (exec, graph, flags))
CALL(cuGraphLaunch, (void *exec, void *stream), (exec, stream))
CALL(cuLaunchKernel,
     (void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
      void *stream, void **params, void **extra),
     (f, gx, gy, gz, bx, by, bz, shared, stream, params, extra))
CALL(cuLaunchKernelEx, (const void *config, void *f, void **params, void **extra), (config, f, params, extra))
