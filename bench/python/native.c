/* SPDX-License-Identifier: Apache-2.0 */
/* native.c - launches by the C library alone, for examples.py and calls.py: the same spec and memory as the calls from Python
 * beside them; and launches of an empty kernel by the driver alone. */
#include "ptxgen/launch.h"

#include "../../src/launch/cuda_abi.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct native {
    ptxgen_session *session;
    ptxgen_gpu *gpu;
    ptxgen_loaded *loaded;
    ptxgen_event begin, end;
    ptxgen_arguments args; /* borrowed */
};

static ptxgen_status open_all(struct native *n, const char *text)
{
    ptxgen_status status = ptxgen_gpu_open(n->session, 0, &n->gpu);
    if (status == PTXGEN_OK)
        status = ptxgen_jit_string(n->session, n->gpu, text, strlen(text), "example", NULL, &n->loaded);
    if (status == PTXGEN_OK)
        status = ptxgen_event_create(n->session, n->gpu, &n->begin);
    return status == PTXGEN_OK ? ptxgen_event_create(n->session, n->gpu, &n->end) : status;
}

/* NULL: the reason was printed.  Arrays: inputs, then outputs. */
struct native *native_open(const char *text, const int64_t *size, void *const *array, int inputs,
                           const ptxgen_value *param)
{
    struct native *n = calloc(1, sizeof *n);
    if (!n || ptxgen_session_create(&n->session) != PTXGEN_OK)
        return NULL;
    n->args = (ptxgen_arguments){ size, (const void *const *)array, array + inputs, param };
    if (open_all(n, text) == PTXGEN_OK)
        return n;
    char *why = ptxgen_diagnostics_text(n->session, 0);
    fputs(why ? why : "out of memory\n", stderr);
    ptxgen_free(why);
    return NULL;
}

static ptxgen_status launch(struct native *n, int count)
{
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; i < count && status == PTXGEN_OK; i++)
        status = ptxgen_launch(n->session, n->loaded, &n->args, NULL, NULL);
    return status;
}

/* Seconds of one of `count` launches on the default stream, on the GPU and of the processor; negative: one failed. */
double native_seconds(struct native *n, int count)
{
    double seconds = -1;
    ptxgen_status status = ptxgen_event_record(n->session, n->gpu, n->begin, NULL);
    if (status == PTXGEN_OK)
        status = launch(n, count);
    if (status == PTXGEN_OK)
        status = ptxgen_event_record(n->session, n->gpu, n->end, NULL);
    if (status == PTXGEN_OK)
        status = ptxgen_event_seconds(n->session, n->gpu, n->begin, n->end, &seconds);
    return status == PTXGEN_OK ? seconds / count : -1;
}

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double native_host_seconds(struct native *n, int count)
{
    const double begin = now();
    const ptxgen_status status = launch(n, count);
    return status == PTXGEN_OK ? (now() - begin) / count : -1;
}

/* ---- an empty kernel ------------------------------------------------------------------------- */
static const char empty_ptx[] = ".version 7.8\n.target sm_70\n.address_size 64\n"
                                ".visible .entry empty(.param .u64 x, .param .u64 y, .param .u64 n)\n{\n    ret;\n}\n";

static struct {
    int (*load)(cu_module *module, const void *image);
    int (*find)(cu_function *function, cu_module module, const char *name);
    int (*launch)(cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                  unsigned block_y, unsigned block_z, unsigned shared, cu_stream stream, void **params, void **extra);
    int (*launch_ex)(const struct cu_launch_config *config, cu_function function, void **params, void **extra);
    cu_function empty;
} driver;

/* In the context of the calling thread. */
static bool driver_open(void)
{
    void *library = driver.empty ? NULL : dlopen("libcuda.so.1", RTLD_NOW);
    cu_module module;
    const struct {
        const char *name;
        void *to;
    } entry[] = { { "cuModuleLoadData", &driver.load },
                  { "cuModuleGetFunction", &driver.find },
                  { "cuLaunchKernel", &driver.launch },
                  { "cuLaunchKernelEx", &driver.launch_ex } };
    for (size_t i = 0; library && i < sizeof entry / sizeof *entry; i++)
        if ((*(void **)entry[i].to = dlsym(library, entry[i].name)) == NULL)
            return false;
    return driver.empty ||
           (library && driver.load(&module, empty_ptx) == 0 && driver.find(&driver.empty, module, "empty") == 0);
}

/* Seconds of the processor for one of `count` launches on the default stream; negative: one failed. */
double native_empty_seconds(struct native *n, int count)
{
    long long x = 0;
    void *params[] = { &x, &x, &x };
    int result = driver_open() ? 0 : -1;
    const double begin = now();
    (void)n;
    for (int i = 0; i < count && result == 0; i++)
        result = driver.launch(driver.empty, 1, 1, 1, 256, 1, 1, 0, NULL, params, NULL);
    return result == 0 ? (now() - begin) / count : -1;
}

/* The same as dependent launches (sm_90): each may begin before the one before has ended. */
double native_dependent_seconds(struct native *n, int count)
{
    long long x = 0;
    void *params[] = { &x, &x, &x };
    struct cu_attribute dependent = { .id = CU_ATTR_PROGRAMMATIC, .value.programmatic = 1 };
    const struct cu_launch_config config = { 1, 1, 1, 256, 1, 1, 0, NULL, &dependent, 1 };
    int result = driver_open() ? 0 : -1;
    const double begin = now();
    (void)n;
    for (int i = 0; i < count && result == 0; i++)
        result = driver.launch_ex(&config, driver.empty, params, NULL);
    return result == 0 ? (now() - begin) / count : -1;
}
