/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.c - devices, and the context that a gpu object works in. */
#include <stdlib.h>
#include <string.h>

#include "base/session.h"
#include "launch_impl.h"

/* ---- describing ------------------------------------------------------------------------------ */
static bool describe(const struct driver *cu, cu_device device, ptxgen_gpu_info *out, struct fault *f)
{
    int major = 0, minor = 0, l2 = 0;
    size_t memory = 0;
    const struct {
        int attribute, *value;
    } question[] = {
        { CU_DEV_MAJOR, &major },
        { CU_DEV_MINOR, &minor },
        { CU_DEV_L2_SIZE, &l2 },
        { CU_DEV_MULTIPROCESSORS, &out->multiprocessors },
        { CU_DEV_SHARED_OPTIN, &out->shared_per_block },
        { CU_DEV_MEMORY_CLOCK, &out->memory_clock_khz },
        { CU_DEV_BUS_WIDTH, &out->bus_bits },
    };

    memset(out, 0, sizeof *out);
    if (!CU(f, cu, DeviceGetName(out->name, (int)sizeof out->name, device)) ||
        !CU(f, cu, DeviceTotalMem(&memory, device)))
        return false;
    for (size_t i = 0; i < sizeof question / sizeof *question; i++)
        if (!CU(f, cu, DeviceGetAttribute(question[i].value, question[i].attribute, device)))
            return false;
    out->sm = 10 * major + minor;
    out->memory = memory;
    out->l2 = (uint64_t)l2;
    out->driver = cu->version;
    out->ptx = ptx_of_driver(cu->version);
    return true;
}

static bool find_device(const struct driver *cu, int ordinal, cu_device *device, struct fault *f)
{
    int count = 0;

    if (!CU(f, cu, DeviceGetCount(&count)))
        return false;
    if (count == 0)
        return fault_set(f, PTXGEN_NO_DEVICE, D_NO_DEVICE, "the CUDA driver is installed but finds no device");
    if (ordinal < 0 || ordinal >= count)
        return fault_set(f, PTXGEN_USAGE, D_NO_DEVICE, "device %d does not exist: there %s %d, counted from 0", ordinal,
                         count == 1 ? "is" : "are", count);
    return CU(f, cu, DeviceGet(device, ordinal));
}

ptxgen_status ptxgen_gpu_count(ptxgen_session *s, int *count)
{
    struct driver cu;
    struct fault f;
    bool ok;

    NEED(PTXGEN_USAGE, s, count);
    *count = 0;
    if (!driver_open(&cu, &f))
        return fault_report(s, &f);
    ok = CU(&f, &cu, DeviceGetCount(count));
    if (ok && *count == 0)
        ok = fault_set(&f, PTXGEN_NO_DEVICE, D_NO_DEVICE, "the CUDA driver is installed but finds no device");
    driver_close(&cu);
    return ok ? PTXGEN_OK : fault_report(s, &f);
}

ptxgen_status ptxgen_gpu_query(ptxgen_session *s, int ordinal, ptxgen_gpu_info *out)
{
    struct driver cu;
    struct fault f;
    cu_device device = 0;
    bool ok;

    NEED(PTXGEN_USAGE, s, out);
    if (!driver_open(&cu, &f))
        return fault_report(s, &f);
    ok = find_device(&cu, ordinal, &device, &f) && describe(&cu, device, out, &f);
    driver_close(&cu);
    return ok ? PTXGEN_OK : fault_report(s, &f);
}

/* ---- contexts -------------------------------------------------------------------------------- */
bool gpu_enter(const struct ptxgen_gpu *gpu, bool *pushed, struct fault *f)
{
    cu_context current = NULL;

    *pushed = false;
    if (!CU(f, &gpu->cu, CtxGetCurrent(&current)))
        return false;
    if (current == gpu->context)
        return true;
    if (!CU(f, &gpu->cu, CtxPush(gpu->context)))
        return false;
    *pushed = true;
    return true;
}

void gpu_leave(const struct ptxgen_gpu *gpu, bool pushed)
{
    cu_context popped;

    if (pushed)
        gpu->cu.CtxPop(&popped);
}

/* The context that is current, or the primary one of device max(ordinal, 0). */
static bool choose_context(struct ptxgen_gpu *gpu, int ordinal, struct fault *f)
{
    const struct driver *cu = &gpu->cu;

    if (ordinal == PTXGEN_GPU_CURRENT) {
        if (!CU(f, cu, CtxGetCurrent(&gpu->context)))
            return false;
        if (gpu->context)
            return CU(f, cu, CtxGetDevice(&gpu->device));
        ordinal = 0;
    }
    if (!find_device(cu, ordinal, &gpu->device, f) || !CU(f, cu, PrimaryRetain(&gpu->context, gpu->device)))
        return false;
    gpu->retained = true;
    return true;
}

static bool stream_device(const struct ptxgen_gpu *gpu, ptxgen_stream stream, int *ordinal, struct fault *f)
{
    const struct driver *cu = &gpu->cu;
    cu_context context = NULL, popped;
    bool pushed;

    if (!gpu_enter(gpu, &pushed, f))
        return false;
    bool ok = CU(f, cu, StreamGetCtx(stream, &context)) && CU(f, cu, CtxPush(context));
    if (ok) {
        ok = CU(f, cu, CtxGetDevice(ordinal));
        cu->CtxPop(&popped);
    }
    gpu_leave(gpu, pushed);
    return ok;
}

ptxgen_status ptxgen_stream_device(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_stream stream, int *out)
{
    struct fault f;

    if (out)
        *out = -1;
    NEED(PTXGEN_USAGE, s, gpu, out);
    return stream_device(gpu, stream, out, &f) ? PTXGEN_OK : fault_report(s, &f);
}

static bool gpu_start(struct ptxgen_gpu *gpu, int ordinal, struct fault *f)
{
    int pools = 0;

    if (!driver_open(&gpu->cu, f) || !choose_context(gpu, ordinal, f) ||
        !describe(&gpu->cu, gpu->device, &gpu->info, f))
        return false;
    /* An old driver does not know the attribute; then there are no pools. */
    gpu->cu.DeviceGetAttribute(&pools, CU_DEV_MEMORY_POOLS, gpu->device);
    gpu->pools = pools && gpu->cu.MemAllocAsync && gpu->cu.MemFreeAsync;
    return true;
}

ptxgen_status ptxgen_gpu_open(ptxgen_session *s, int ordinal, ptxgen_gpu **out)
{
    CLEAR(out);
    NEED(PTXGEN_USAGE, s, out);
    struct fault f;
    struct ptxgen_gpu *gpu = calloc(1, sizeof *gpu);
    if (gpu == NULL)
        return PTXGEN_NO_MEMORY;
    if (!gpu_start(gpu, ordinal, &f)) {
        ptxgen_gpu_close(gpu);
        return fault_report(s, &f);
    }
    *out = gpu;
    return PTXGEN_OK;
}

void ptxgen_gpu_close(ptxgen_gpu *gpu)
{
    if (gpu == NULL)
        return;
    if (gpu->retained)
        gpu->cu.PrimaryRelease(gpu->device);
    driver_close(&gpu->cu);
    free(gpu);
}

const ptxgen_gpu_info *ptxgen_gpu_describe(const ptxgen_gpu *gpu) { return gpu ? &gpu->info : NULL; }
