/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - the entry points of the CUDA driver, found at run time, and the meaning of its failures.
 *
 * Each row of CUDA_TABLE is looked up by its versioned symbol.  A missing required symbol means a driver older than
 * anything ptxgen generates code for; missing optional ones leave a NULL entry that the users of the row test.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/session.h"
#include "launch_impl.h"

bool fault_set(struct fault *f, ptxgen_status status, int code, const char *format, ...)
{
    va_list ap;
    f->status = status;
    f->code = code;
    va_start(ap, format);
    vsnprintf(f->text, sizeof f->text, format, ap);
    va_end(ap);
    return false;
}

ptxgen_status fault_report(struct ptxgen_session *s, const struct fault *f)
{
    session_report(s, (enum diag_code)f->code, f->text);
    return f->status;
}

static const char *library_name(void)
{
    const char *name = secure_getenv("PTXGEN_LIBCUDA");
    return name && *name ? name : "libcuda.so.1";
}

/* All rows, or the name of the first missing required one. */
static const char *find_symbols(struct driver *cu)
{
#define X(name, symbol, required, params)                                                                              \
    *(void **)&cu->name = dlsym(cu->library, symbol);                                                                  \
    if (required && cu->name == NULL)                                                                                  \
        return symbol;
    CUDA_TABLE(X)
#undef X
    return NULL;
}

static bool driver_start(struct driver *cu, struct fault *f)
{
    int result = cu->Init(0);

    if (result == CU_NO_DEVICE)
        return fault_set(f, PTXGEN_NO_DEVICE, D_NO_DEVICE, "the CUDA driver is installed but finds no device");
    return driver_check(f, cu, result, "cuInit(0)", __FILE__, __LINE__) && CU(f, cu, DriverGetVersion(&cu->version));
}

bool driver_open(struct driver *cu, struct fault *f)
{
    const char *missing;

    memset(cu, 0, sizeof *cu);
    cu->library = dlopen(library_name(), RTLD_NOW | RTLD_LOCAL);
    if (cu->library == NULL)
        return fault_set(f, PTXGEN_NO_DEVICE, D_NO_DEVICE, "no CUDA driver: %s", dlerror());
    missing = find_symbols(cu);
    if (missing)
        fault_set(f, PTXGEN_NO_DEVICE, D_DRIVER_TOO_OLD, "%s has no entry point %s: the driver is too old",
                  library_name(), missing);
    if (missing || !driver_start(cu, f)) {
        driver_close(cu);
        return false;
    }
    return true;
}

void driver_close(struct driver *cu)
{
    if (cu->library)
        dlclose(cu->library);
    cu->library = NULL;
}

static ptxgen_status status_of(int result)
{
    switch (result) {
    case CU_OUT_OF_MEMORY:
    case CU_NO_DEVICE:
    case CU_INVALID_DEVICE:
    case CU_NO_BINARY_FOR_GPU:
    case CU_UNSUPPORTED_PTX: return PTXGEN_NO_DEVICE;
    default: return PTXGEN_INTERNAL;
    }
}

bool driver_fault(struct fault *f, const struct driver *cu, int result, const char *call, const char *file, int line)
{
    const char *name = NULL, *text = NULL, *base = strrchr(file, '/');

    cu->GetErrorName(result, &name);
    cu->GetErrorString(result, &text);
    return fault_set(f, status_of(result), D_CUDA_CALL, "%s failed: %s (%s, %d) at %s:%d", call,
                     text ? text : "unknown", name ? name : "no name", result, base ? base + 1 : file, line);
}
