/* SPDX-License-Identifier: Apache-2.0 */
/* nvjitlink.c - machine code by NVIDIA's JIT linker, where its library is installed and no ptxas is.
 *
 * It compiles for linking, and half of all kernels then use more registers (docs/machine-code.md).  So ptxas is
 * asked first.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* The library's interface as documented; its functions have kept these names and arguments since version 12.0. */
enum { NVJITLINK_SUCCESS = 0, NVJITLINK_INPUT_PTX = 2 };
typedef struct nvjitlink_state *nvjitlink;

struct nvjitlink_library {
    void *handle;
    int (*Create)(nvjitlink *, uint32_t count, const char **options);
    int (*Destroy)(nvjitlink *);
    int (*AddData)(nvjitlink, int type, const void *data, size_t length, const char *name);
    int (*Complete)(nvjitlink);
    int (*GetLinkedCubinSize)(nvjitlink, size_t *);
    int (*GetLinkedCubin)(nvjitlink, void *);
    int (*GetErrorLogSize)(nvjitlink, size_t *);
    int (*GetErrorLog)(nvjitlink, char *);
};

static bool open_library(struct nvjitlink_library *lib)
{
    static const char *const name[] = { "libnvJitLink.so", "libnvJitLink.so.13", "libnvJitLink.so.12",
                                        "/usr/local/cuda/lib64/libnvJitLink.so", "/opt/cuda/lib64/libnvJitLink.so" };
    const struct {
        const char *name;
        void *slot;
    } function[] = {
        { "nvJitLinkCreate", &lib->Create },
        { "nvJitLinkDestroy", &lib->Destroy },
        { "nvJitLinkAddData", &lib->AddData },
        { "nvJitLinkComplete", &lib->Complete },
        { "nvJitLinkGetLinkedCubinSize", &lib->GetLinkedCubinSize },
        { "nvJitLinkGetLinkedCubin", &lib->GetLinkedCubin },
        { "nvJitLinkGetErrorLogSize", &lib->GetErrorLogSize },
        { "nvJitLinkGetErrorLog", &lib->GetErrorLog },
    };
    const char *chosen = getenv("PTXGEN_NVJITLINK"); /* a path, for installations in unusual places */
    lib->handle = chosen ? dlopen(chosen, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; i < sizeof name / sizeof *name && !chosen && !lib->handle; i++)
        lib->handle = dlopen(name[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof function / sizeof *function && lib->handle; i++) {
        void *symbol = dlsym(lib->handle, function[i].name);
        if (!symbol) {
            dlclose(lib->handle);
            lib->handle = NULL;
        }
        memcpy(function[i].slot, &symbol, sizeof symbol);
    }
    return lib->handle != NULL;
}

/* The linker's own words go where our messages go. */
static int complain(const struct nvjitlink_library *lib, nvjitlink link, const char *what, int result)
{
    size_t length = 0;
    char *log = NULL;
    if (lib->GetErrorLogSize(link, &length) == NVJITLINK_SUCCESS && length > 0 && (log = calloc(length + 1, 1)))
        lib->GetErrorLog(link, log);
    int status = fail(EXIT_WRONG, "nvJitLink could not %s (error %d)%s%s", what, result, log && *log ? ": " : "",
                      log ? log : "");
    free(log);
    return status;
}

static int take_cubin(const struct nvjitlink_library *lib, nvjitlink link, char **out, size_t *length)
{
    int result = lib->GetLinkedCubinSize(link, length);
    if (result != NVJITLINK_SUCCESS)
        return complain(lib, link, "tell the machine code's size", result);
    *out = malloc(*length ? *length : 1);
    if (!*out)
        return fail(EXIT_INTERNAL, "out of memory");
    result = lib->GetLinkedCubin(link, *out);
    return result == NVJITLINK_SUCCESS ? EXIT_OK : complain(lib, link, "hand out the machine code", result);
}

bool nvjitlink_assemble(const char *ptx, const char *arch, char **out, size_t *length, int *status)
{
    struct nvjitlink_library lib;
    char target[64];
    const char *option[] = { target };
    nvjitlink link = NULL;
    *out = NULL;
    *status = EXIT_OK;
    if (!open_library(&lib))
        return false;
    snprintf(target, sizeof target, "-arch=%s", arch);
    int result = lib.Create(&link, 1, option);
    if (result != NVJITLINK_SUCCESS) {
        *status = fail(EXIT_WRONG, "nvJitLink cannot make machine code for %s (error %d)", arch, result);
    } else if ((result = lib.AddData(link, NVJITLINK_INPUT_PTX, ptx, strlen(ptx) + 1, "program.ptx")) !=
               NVJITLINK_SUCCESS) {
        *status = complain(&lib, link, "read the PTX", result);
    } else if ((result = lib.Complete(link)) != NVJITLINK_SUCCESS) {
        *status = complain(&lib, link, "assemble the PTX", result);
    } else {
        *status = take_cubin(&lib, link, out, length);
    }
    if (link)
        lib.Destroy(&link);
    dlclose(lib.handle);
    if (*status != EXIT_OK) {
        free(*out);
        *out = NULL;
    }
    return true;
}
