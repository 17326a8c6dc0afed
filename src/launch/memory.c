/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - memory, streams, events and graphs, for programs that use no other CUDA library.
 *
 * Every function is the driver's call of that purpose inside the gpu's context.
 */
#include "base/session.h"
#include "launch_impl.h"

static cu_pointer address(const void *p) { return (cu_pointer)(uintptr_t)p; }

/* Run one driver call in the gpu's context, and return its status from the calling function. */
#define RETURN_IN_CONTEXT(s, gpu, call)                                                                                \
    do {                                                                                                               \
        struct fault fault_;                                                                                           \
        bool pushed_, ok_ = gpu_enter((gpu), &pushed_, &fault_);                                                       \
        if (ok_) {                                                                                                     \
            ok_ = CU(&fault_, &(gpu)->cu, call);                                                                       \
            gpu_leave((gpu), pushed_);                                                                                 \
        }                                                                                                              \
        return ok_ ? PTXGEN_OK : fault_report((s), &fault_);                                                           \
    } while (0)

/* The same where failure cannot be helped: releasing. */
#define RELEASE(gpu, call)                                                                                             \
    do {                                                                                                               \
        struct fault fault_;                                                                                           \
        bool pushed_;                                                                                                  \
        if (gpu_enter((gpu), &pushed_, &fault_)) {                                                                     \
            (gpu)->cu.call;                                                                                            \
            gpu_leave((gpu), pushed_);                                                                                 \
        }                                                                                                              \
    } while (0)

static ptxgen_status alloc_pointer(ptxgen_session *s, ptxgen_gpu *gpu, size_t bytes, cu_pointer *out)
{
    RETURN_IN_CONTEXT(s, gpu, MemAlloc(out, bytes));
}

ptxgen_status ptxgen_gpu_alloc(ptxgen_session *s, ptxgen_gpu *gpu, size_t bytes, void **out)
{
    CLEAR(out);
    NEED(PTXGEN_USAGE, s, gpu, out);
    cu_pointer p = 0;
    ptxgen_status status = alloc_pointer(s, gpu, bytes ? bytes : 1, &p); /* the driver refuses 0 bytes */

    *out = status == PTXGEN_OK ? (void *)(uintptr_t)p : NULL;
    return status;
}

void ptxgen_gpu_free(ptxgen_gpu *gpu, void *p)
{
    if (gpu && p)
        RELEASE(gpu, MemFree(address(p)));
}

static ptxgen_status write_pageable(ptxgen_session *s, ptxgen_gpu *gpu, void *device, const void *host, size_t bytes)
{
    RETURN_IN_CONTEXT(s, gpu, MemcpyHtoD(address(device), host, bytes));
}

/* A copy from pageable memory returns when the data has left it, not when it has arrived; kernels on streams that do
 * not follow the default one would overtake it. */
static ptxgen_status finish_default_stream(ptxgen_session *s, ptxgen_gpu *gpu)
{
    RETURN_IN_CONTEXT(s, gpu, StreamSynchronize(NULL));
}

ptxgen_status ptxgen_gpu_write(ptxgen_session *s, ptxgen_gpu *gpu, void *device, const void *host, size_t bytes)
{
    if (LACKS(s, gpu) || (bytes && LACKS(s, device, host)))
        return PTXGEN_USAGE;
    if (bytes == 0)
        return PTXGEN_OK;
    const ptxgen_status status = write_pageable(s, gpu, device, host, bytes);
    return status == PTXGEN_OK ? finish_default_stream(s, gpu) : status;
}

ptxgen_status ptxgen_gpu_read(ptxgen_session *s, ptxgen_gpu *gpu, void *host, const void *device, size_t bytes)
{
    if (LACKS(s, gpu) || (bytes && LACKS(s, host, device)))
        return PTXGEN_USAGE;
    if (bytes == 0)
        return PTXGEN_OK;
    RETURN_IN_CONTEXT(s, gpu, MemcpyDtoH(host, address(device), bytes));
}

ptxgen_status ptxgen_gpu_copy(ptxgen_session *s, ptxgen_gpu *gpu, void *to, const void *from, size_t bytes,
                              ptxgen_stream stream)
{
    if (LACKS(s, gpu) || (bytes && LACKS(s, to, from)))
        return PTXGEN_USAGE;
    if (bytes == 0)
        return PTXGEN_OK;
    RETURN_IN_CONTEXT(s, gpu, MemcpyDtoDAsync(address(to), address(from), bytes, stream));
}

ptxgen_status ptxgen_gpu_fill(ptxgen_session *s, ptxgen_gpu *gpu, void *device, int byte, size_t bytes,
                              ptxgen_stream stream)
{
    if (LACKS(s, gpu) || (bytes && LACKS(s, device)))
        return PTXGEN_USAGE;
    if (bytes == 0)
        return PTXGEN_OK;
    RETURN_IN_CONTEXT(s, gpu, MemsetD8Async(address(device), (unsigned char)byte, bytes, stream));
}

ptxgen_status ptxgen_stream_create(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_stream *out)
{
    CLEAR(out);
    NEED(PTXGEN_USAGE, s, gpu, out);
    RETURN_IN_CONTEXT(s, gpu, StreamCreate(out, CU_STREAM_FLAG_NON_BLOCKING));
}

void ptxgen_stream_destroy(ptxgen_gpu *gpu, ptxgen_stream stream)
{
    if (gpu && stream)
        RELEASE(gpu, StreamDestroy(stream));
}

ptxgen_status ptxgen_stream_wait(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_stream stream)
{
    NEED(PTXGEN_USAGE, s, gpu);
    RETURN_IN_CONTEXT(s, gpu, StreamSynchronize(stream));
}

ptxgen_status ptxgen_event_create(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_event *out)
{
    CLEAR(out);
    NEED(PTXGEN_USAGE, s, gpu, out);
    RETURN_IN_CONTEXT(s, gpu, EventCreate(out, 0));
}

void ptxgen_event_destroy(ptxgen_gpu *gpu, ptxgen_event event)
{
    if (gpu && event)
        RELEASE(gpu, EventDestroy(event));
}

ptxgen_status ptxgen_event_record(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_event event, ptxgen_stream stream)
{
    NEED(PTXGEN_USAGE, s, gpu, event);
    RETURN_IN_CONTEXT(s, gpu, EventRecord(event, stream));
}

static bool elapsed(const struct driver *cu, ptxgen_event begin, ptxgen_event end, double *seconds, struct fault *f)
{
    float milliseconds = 0;

    if (!CU(f, cu, EventSynchronize(end)) || !CU(f, cu, EventElapsedTime(&milliseconds, begin, end)))
        return false;
    *seconds = milliseconds * 1e-3;
    return true;
}

ptxgen_status ptxgen_event_seconds(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_event begin, ptxgen_event end,
                                   double *seconds)
{
    NEED(PTXGEN_USAGE, s, gpu, begin, end, seconds);
    struct fault f;
    bool pushed, ok = gpu_enter(gpu, &pushed, &f);

    if (ok) {
        ok = elapsed(&gpu->cu, begin, end, seconds, &f);
        gpu_leave(gpu, pushed);
    }
    return ok ? PTXGEN_OK : fault_report(s, &f);
}

ptxgen_status ptxgen_capture_begin(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_stream stream)
{
    NEED(PTXGEN_USAGE, s, gpu, stream);
    RETURN_IN_CONTEXT(s, gpu, StreamBeginCapture(stream, CU_CAPTURE_THREAD_LOCAL));
}

static bool capture_end(const struct driver *cu, ptxgen_stream stream, ptxgen_graph *out, struct fault *f)
{
    cu_graph graph = NULL;
    bool ok;

    if (!CU(f, cu, StreamEndCapture(stream, &graph)))
        return false;
    ok = CU(f, cu, GraphInstantiate(out, graph, 0));
    cu->GraphDestroy(graph);
    return ok;
}

ptxgen_status ptxgen_capture_end(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_stream stream, ptxgen_graph *out)
{
    CLEAR(out);
    NEED(PTXGEN_USAGE, s, gpu, stream, out);
    struct fault f;
    bool pushed, ok = gpu_enter(gpu, &pushed, &f);

    if (ok) {
        ok = capture_end(&gpu->cu, stream, out, &f);
        gpu_leave(gpu, pushed);
    }
    return ok ? PTXGEN_OK : fault_report(s, &f);
}

ptxgen_status ptxgen_graph_launch(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_graph graph, ptxgen_stream stream)
{
    NEED(PTXGEN_USAGE, s, gpu, graph);
    RETURN_IN_CONTEXT(s, gpu, GraphLaunch(graph, stream));
}

void ptxgen_graph_destroy(ptxgen_gpu *gpu, ptxgen_graph graph)
{
    if (gpu && graph)
        RELEASE(gpu, GraphExecDestroy(graph));
}
