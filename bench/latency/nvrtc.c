/* SPDX-License-Identifier: Apache-2.0 */
/* nvrtc.c - the few entry points of libnvrtc that are needed, looked up by name; no header of the toolkit is included.
 */
#include "nvrtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct nvrtc_program *nvrtcProgram;

static struct {
    int (*version)(int *major, int *minor);
    int (*create)(nvrtcProgram *, const char *source, const char *name, int, const char *const *, const char *const *);
    int (*compile)(nvrtcProgram, int, const char *const *options);
    int (*ptx_size)(nvrtcProgram, size_t *);
    int (*ptx)(nvrtcProgram, char *);
    int (*cubin_size)(nvrtcProgram, size_t *);
    int (*cubin)(nvrtcProgram, char *);
    int (*log_size)(nvrtcProgram, size_t *);
    int (*log)(nvrtcProgram, char *);
    int (*destroy)(nvrtcProgram *);
} api;

static const struct {
    const char *name;
    void *slot;
} entry[] = {
    { "nvrtcVersion", &api.version },
    { "nvrtcCreateProgram", &api.create },
    { "nvrtcCompileProgram", &api.compile },
    { "nvrtcGetPTXSize", &api.ptx_size },
    { "nvrtcGetPTX", &api.ptx },
    { "nvrtcGetCUBINSize", &api.cubin_size },
    { "nvrtcGetCUBIN", &api.cubin },
    { "nvrtcGetProgramLogSize", &api.log_size },
    { "nvrtcGetProgramLog", &api.log },
    { "nvrtcDestroyProgram", &api.destroy },
};

/* Debian's and NVIDIA's names, then the toolkit whose headers were found when this was built. */
static void *open_library(void)
{
    static const char *const name[] = {
        "libnvrtc.so",
        "libnvrtc.so.13",
        "libnvrtc.so.12",
        PTXGEN_CUDA_INCLUDE "/../lib64/libnvrtc.so",
        PTXGEN_CUDA_INCLUDE "/../lib64/libnvrtc.so.13",
        PTXGEN_CUDA_INCLUDE "/../lib64/libnvrtc.so.12",
    };
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        void *library = dlopen(name[i], RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    return NULL;
}

bool nvrtc_open(void)
{
    void *library = open_library();
    for (size_t i = 0; library && i < sizeof entry / sizeof *entry; i++) {
        void *symbol = dlsym(library, entry[i].name);
        if (!symbol)
            return false;
        memcpy(entry[i].slot, &symbol, sizeof symbol); /* ISO C has no cast from void * to a function pointer */
    }
    return library != NULL;
}

const char *nvrtc_version_text(void)
{
    static char text[32];
    int major = 0, minor = 0;
    api.version(&major, &minor);
    snprintf(text, sizeof text, "%d.%d", major, minor);
    return text;
}

static void print_log(nvrtcProgram program)
{
    size_t size = 0;
    api.log_size(program, &size);
    char *log = malloc(size + 1);
    if (log && api.log(program, log) == 0)
        fprintf(stderr, "NVRTC: %.*s\n", (int)(size < 2000 ? size : 2000), log);
    free(log);
}

/* What was compiled, as PTX or machine code; malloc; NULL: it could not be had. */
static char *take_result(nvrtcProgram program, bool cubin, size_t *size)
{
    char *result;

    if ((cubin ? api.cubin_size : api.ptx_size)(program, size) != 0)
        return NULL;
    result = malloc(*size + 1);
    if (result && (cubin ? api.cubin : api.ptx)(program, result) != 0) {
        free(result);
        return NULL;
    }
    return result;
}

char *nvrtc_compile(const char *source, const char *arch, bool toolkit_headers, bool cubin, size_t *size)
{
    char architecture[32], *result = NULL;
    snprintf(architecture, sizeof architecture, "-arch=%s_%s", cubin ? "sm" : "compute", arch + strlen("sm_"));
    const char *option[] = { architecture, "-std=c++17", "-default-device", "-I" PTXGEN_CUDA_INCLUDE,
                             "-I" PTXGEN_CUDA_INCLUDE "/cccl" };
    nvrtcProgram program;
    if (api.create(&program, source, "kernel.cu", 0, NULL, NULL) != 0)
        return NULL;
    if (api.compile(program, toolkit_headers ? 5 : 3, option) != 0)
        print_log(program);
    else
        result = take_result(program, cubin, size);
    api.destroy(&program);
    return result;
}
