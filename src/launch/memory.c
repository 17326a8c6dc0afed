/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - memory, streams, events and graphs, for programs that use no other CUDA library, and for src/dist.
 *
 * Every function is the driver's call of that purpose inside the gpu's context.
 */
#include <limits.h>

#include "base/session.h"
#include "launch_graph.h"

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
    if (!gpu || !p)
        return;
    const int before = driver_capture_mode(&gpu->cu, CU_CAPTURE_RELAXED);
    RELEASE(gpu, MemFree(address(p)));
    driver_capture_mode(&gpu->cu, before);
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

static ptxgen_status copy_2d(ptxgen_session *s, ptxgen_gpu *gpu, const struct cu_copy_2d *copy, ptxgen_stream stream)
{
    RETURN_IN_CONTEXT(s, gpu, Memcpy2DAsync(copy, stream));
}

ptxgen_status launch_copy(ptxgen_session *s, ptxgen_gpu *gpu, void *to, size_t to_pitch, const void *from,
                          size_t from_pitch, size_t width, size_t rows, ptxgen_stream stream)
{
    const size_t most = INT_MAX; /* of a pitch that the driver takes */
    ptxgen_status status = PTXGEN_OK;
    if (rows == 1 || (to_pitch == width && from_pitch == width))
        return ptxgen_gpu_copy(s, gpu, to, from, width * rows, stream);
    for (size_t i = 0; (to_pitch > most || from_pitch > most) && i < rows && status == PTXGEN_OK; i++)
        status = ptxgen_gpu_copy(s, gpu, (char *)to + i * to_pitch, (const char *)from + i * from_pitch, width, stream);
    if (to_pitch > most || from_pitch > most)
        return status;
    return copy_2d(s, gpu,
                   &(struct cu_copy_2d){ .from_kind = CU_MEMORY_DEVICE,
                                         .from = address(from),
                                         .from_pitch = from_pitch,
                                         .to_kind = CU_MEMORY_DEVICE,
                                         .to = address(to),
                                         .to_pitch = to_pitch,
                                         .width = width,
                                         .rows = rows },
                   stream);
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

ptxgen_status launch_poll(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_stream stream, bool *done)
{
    struct fault f;
    bool pushed, ok = gpu_enter(gpu, &pushed, &f);

    *done = false;
    if (ok) {
        const int result = gpu->cu.StreamQuery(stream);

        *done = result == CU_OK;
        ok = result == CU_NOT_READY || driver_check(&f, &gpu->cu, result, "cuStreamQuery(stream)", __FILE__, __LINE__);
        gpu_leave(gpu, pushed);
    }
    return ok ? PTXGEN_OK : fault_report(s, &f);
}

ptxgen_status launch_captures(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_stream stream, bool *captures)
{
    struct fault f;
    int status = CU_CAPTURE_NONE;
    bool pushed, ok = gpu_enter(gpu, &pushed, &f);

    if (ok) {
        ok = CU(&f, &gpu->cu, StreamIsCapturing(stream, &status));
        gpu_leave(gpu, pushed);
    }
    *captures = status != CU_CAPTURE_NONE;
    return ok ? PTXGEN_OK : fault_report(s, &f);
}

static int urgent_stream(const struct driver *cu, ptxgen_stream *out)
{
    int least = 0, greatest = 0;

    if (!cu->StreamCreateWithPriority || !cu->StreamPriorities || cu->StreamPriorities(&least, &greatest) != CU_OK)
        return cu->StreamCreate(out, CU_STREAM_FLAG_NON_BLOCKING);
    return cu->StreamCreateWithPriority(out, CU_STREAM_FLAG_NON_BLOCKING, greatest);
}

ptxgen_status launch_urgent_stream(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_stream *out)
{
    struct fault f;
    bool pushed, ok = gpu_enter(gpu, &pushed, &f);

    if (ok) {
        ok = driver_check(&f, &gpu->cu, urgent_stream(&gpu->cu, out), "cuStreamCreate()", __FILE__, __LINE__);
        gpu_leave(gpu, pushed);
    }
    return ok ? PTXGEN_OK : fault_report(s, &f);
}

ptxgen_status launch_order_event(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_event *out)
{
    RETURN_IN_CONTEXT(s, gpu, EventCreate(out, CU_EVENT_NO_TIMING));
}

ptxgen_status launch_follow(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_event event, ptxgen_stream stream)
{
    RETURN_IN_CONTEXT(s, gpu, StreamWaitEvent(stream, event, 0));
}

ptxgen_status launch_settle(ptxgen_session *s, ptxgen_gpu *gpu) { RETURN_IN_CONTEXT(s, gpu, CtxSynchronize()); }

ptxgen_status launch_order(ptxgen_session *s, ptxgen_gpu *gpu, ptxgen_event with, ptxgen_stream earlier,
                           ptxgen_stream later)
{
    struct fault f;
    bool pushed, ok = gpu_enter(gpu, &pushed, &f);

    if (ok) {
        ok = CU(&f, &gpu->cu, EventRecord(with, earlier)) && CU(&f, &gpu->cu, StreamWaitEvent(later, with, 0));
        gpu_leave(gpu, pushed);
    }
    return ok ? PTXGEN_OK : fault_report(s, &f);
}

bool launch_enter(ptxgen_session *s, ptxgen_gpu *gpu, bool *pushed)
{
    struct fault f;

    if (gpu_enter(gpu, pushed, &f))
        return true;
    fault_report(s, &f);
    return false;
}

void launch_leave(ptxgen_gpu *gpu, bool pushed) { gpu_leave(gpu, pushed); }

int launch_ordinal(const ptxgen_gpu *gpu) { return gpu->device; }

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

/* Kernels keep the priority of the stream that they were captured on, where the driver knows how (CUDA 11.7). */
static bool capture_end(const struct driver *cu, ptxgen_stream stream, ptxgen_graph *out, struct fault *f)
{
    cu_graph graph = NULL;
    bool ok;

    if (!CU(f, cu, StreamEndCapture(stream, &graph)))
        return false;
    ok = graph_instantiate(cu, graph, CU_GRAPH_NODE_PRIORITY, out, f);
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
