/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.c - the transport over a caller's NCCL communicator.  NCCL is opened at run time.
 *
 * What ranks tell each other is short and lies in host memory.  It is sent through memory on the device, on a stream of
 * its own.  The wait is bounded: if a rank died, or makes another call, the others end with a message.
 */
#define _GNU_SOURCE
#include "nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "launch/launch_dist.h"
#include "launch.h"

static const char *library_name(void)
{
    const char *name = secure_getenv("PTXGEN_LIBNCCL");
    return name && *name ? name : "libnccl.so.2";
}

/* All rows, or the name of the first that is missing. */
static const char *find_symbols(struct nccl *n)
{
#define X(name, symbol, params)                                                                                        \
    *(void **)&n->name = dlsym(n->library, symbol);                                                                    \
    if (!n->name)                                                                                                      \
        return symbol;
    NCCL_TABLE(X)
#undef X
    *(void **)&n->GetErrorString = dlsym(n->library, "ncclGetErrorString");
    return n->GetErrorString ? NULL : "ncclGetErrorString";
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sleep a little; false: the limit is over. */
static bool before(double end)
{
    nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
    return now() < end;
}

static bool failed(struct nccl *n, const char *call, const char *why)
{
    snprintf(n->fault, sizeof n->fault, "%s: %s", call, why);
    return false;
}

static bool timed_out(struct nccl *n)
{
    snprintf(n->fault, sizeof n->fault, "not all ranks came within %g s", n->seconds);
    return false;
}

/* Has NCCL, or another rank, failed meanwhile? */
static bool nccl_alive(struct nccl *n)
{
    int error = NCCL_OK;
    const int result = n->CommGetAsyncError(n->comm, &error);
    if (result == NCCL_OK && (error == NCCL_OK || error == NCCL_IN_PROGRESS))
        return true;
    return failed(n, "NCCL", n->GetErrorString(result ? result : error));
}

/* Calls on a communicator that does not block are done later. */
bool nccl_did(struct nccl *n, int result, const char *call)
{
    const double end = now() + n->seconds;
    if (result == NCCL_OK)
        return true;
    for (int error = result; result == NCCL_IN_PROGRESS; result = error) {
        if (n->CommGetAsyncError(n->comm, &error) != NCCL_OK)
            return failed(n, call, "its outcome is unknown");
        if (error == NCCL_OK)
            return true;
        if (error == NCCL_IN_PROGRESS && !before(end))
            return timed_out(n);
    }
    return failed(n, call, n->GetErrorString(result));
}

bool nccl_wait(struct nccl *n, ptxgen_stream stream)
{
    const double end = now() + n->seconds;
    bool done = false;
    while (!done) {
        if (launch_poll(NULL, n->gpu, stream, &done) != PTXGEN_OK)
            return failed(n, "CUDA", "the device failed");
        if (!done && !nccl_alive(n))
            return false;
        if (!done && !before(end))
            return timed_out(n);
    }
    return nccl_alive(n);
}

/* With the gpu's context. */
static bool gather(struct nccl *n, const void *own, void *all, size_t bytes, size_t ranks)
{
    char *const results = n->staging + n->room;
    return (ptxgen_gpu_write(NULL, n->gpu, n->staging, own, bytes) == PTXGEN_OK ||
            failed(n, "CUDA", "the device failed")) &&
           nccl_did(n, n->AllGather(n->staging, results, bytes, NCCL_INT8, n->comm, n->stream), "ncclAllGather") &&
           nccl_wait(n, n->stream) &&
           (ptxgen_gpu_read(NULL, n->gpu, all, results, bytes * ranks) == PTXGEN_OK ||
            failed(n, "CUDA", "the device failed"));
}

static int allgather(void *self, const void *own, void *all, size_t bytes)
{
    struct nccl *n = self;
    bool pushed, good = false;
    int ranks = 0;
    n->fault[0] = 0;
    if (!launch_enter(NULL, n->gpu, &pushed))
        return 1;
    if (bytes <= n->room && nccl_did(n, n->CommCount(n->comm, &ranks), "ncclCommCount"))
        good = gather(n, own, all, bytes, (size_t)ranks);
    launch_leave(n->gpu, pushed);
    return !good;
}

static bool sends(void *self)
{
    (void)self;
    return true;
}

static const char *fault(void *self)
{
    struct nccl *n = self;
    return n->fault[0] || !nccl_alive(n) ? n->fault : NULL;
}

static void close_all(void *self)
{
    struct nccl *n = self;
    ptxgen_gpu_free(n->gpu, n->staging);
    ptxgen_event_destroy(n->gpu, n->turn);
    ptxgen_stream_destroy(n->gpu, n->stream);
    if (n->library)
        dlclose(n->library);
    free(n);
}

const struct dist_transport dist_transport_nccl = { .machine = &dist_machine_gpu,
                                                    .allgather = allgather,
                                                    .sends = sends,
                                                    .fault = fault,
                                                    .ends = true,
                                                    .close = close_all };

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static ptxgen_status refuse(ptxgen_session *s, ptxgen_status status, const char *what, const char *why)
{
    char text[400];
    snprintf(text, sizeof text, "%s%s", what, why);
    session_report(s, D_RANKS, text);
    return status;
}

static ptxgen_status open_library(ptxgen_session *s, struct nccl *n)
{
    n->library = dlopen(library_name(), RTLD_NOW | RTLD_LOCAL);
    if (!n->library)
        return refuse(s, PTXGEN_NO_DEVICE, "no NCCL: ", dlerror());
    const char *missing = find_symbols(n);
    return missing ? refuse(s, PTXGEN_NO_DEVICE, "NCCL is too old: it has no ", missing) : PTXGEN_OK;
}

static ptxgen_status ask(ptxgen_session *s, struct nccl *n, int *rank, int *size)
{
    int device = -1;
    if (!nccl_did(n, n->CommCount(n->comm, size), "ncclCommCount") ||
        !nccl_did(n, n->CommUserRank(n->comm, rank), "ncclCommUserRank") ||
        !nccl_did(n, n->CommCuDevice(n->comm, &device), "ncclCommCuDevice"))
        return refuse(s, PTXGEN_USAGE, "the communicator does not answer: ", n->fault);
    if (device != launch_ordinal(n->gpu))
        return refuse(s, PTXGEN_USAGE, "the communicator is on another device", " than the gpu");
    n->room = (sizeof(struct dist_hello) + HEAD) / HEAD * HEAD;
    void *staging = NULL;
    ptxgen_status status = ptxgen_gpu_alloc(s, n->gpu, n->room * ((size_t)*size + 1), &staging);
    n->staging = staging;
    if (status == PTXGEN_OK)
        status = ptxgen_stream_create(s, n->gpu, &n->stream);
    if (status == PTXGEN_OK)
        status = launch_order_event(s, n->gpu, &n->turn);
    return status;
}

ptxgen_status nccl_open(ptxgen_session *s, ptxgen_gpu *gpu, struct ncclComm *comm, const ptxgen_nccl_options *o,
                        struct ptxgen_comm **out)
{
    struct nccl *n = calloc(1, sizeof *n);
    int rank = 0, size = 0;
    if (!n)
        return PTXGEN_NO_MEMORY;
    n->gpu = gpu;
    n->comm = comm;
    n->seconds = o->seconds;
    n->only_nccl = o->only_nccl;
    n->ends_apart = o->ends_apart;
    ptxgen_status status = open_library(s, n);
    if (status == PTXGEN_OK)
        status = ask(s, n, &rank, &size);
    if (status != PTXGEN_OK) {
        close_all(n);
        return status;
    }
    *out = dist_comm_create(&dist_transport_nccl, n, rank, size);
    if (*out)
        (*out)->gpu = gpu;
    return *out ? PTXGEN_OK : PTXGEN_NO_MEMORY;
}
