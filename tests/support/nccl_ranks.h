/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_ranks.h - threads as ranks of a communicator of fake_nccl.c, with their arrays in the memory of fake_cuda.c.
 *
 * Everything is as on GPUs but the kernels: `machine` runs the host executor's in their place.  "Device" memory is host
 * memory, so all states and neighbours travel, and results are compared with the oracle's.
 */
#ifndef PTXGEN_TEST_NCCL_RANKS_H
#define PTXGEN_TEST_NCCL_RANKS_H

#include <dlfcn.h>

#include "api/api_impl.h"
#include "dist/launch.h"
#include "fake_cuda.h"
#include "fake_nccl.h"
#include "support/ranks.h"

static struct fake_cuda *fake_gpu;
static struct fake_nccl *fake_nccl;
static fake_nccl_comm_fn *fake_comm;
static double nccl_seconds = 60;
static bool nccl_kernels;  /* those of the driver are launched, which runs nothing */
static bool nccl_apart;    /* each rank has a device of its own */
static bool nccl_ends;     /* rows beside other ranks are computed by kernels of their own */
static bool nccl_late;     /* ranks are late in turn before they run a stage */
static bool nccl_only;     /* bytes travel through NCCL alone */
static int nccl_poor = -1; /* this rank has no memory left */
static struct dist_machine nccl_machine;
static struct dist_transport nccl_transport;

static inline void *fake_open(const char *file, const char *symbol, const char *variable)
{
    void *library = dlopen(file, RTLD_NOW);
    cr_assert_not_null(library, "%s", dlerror());
    setenv(variable, file, 1);
    return dlsym(library, symbol);
}

static inline ptxgen_status nccl_run(struct launch *l, enum dist_stage stage, const struct run_args *args)
{
    static _Thread_local int runs;
    if (nccl_late && runs++ % l->d->comm->size == l->d->comm->rank)
        nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
    if (nccl_kernels)
        return dist_machine_gpu.run(l, stage, args);
    return l->prepares ? PTXGEN_OK : dist_machine_host.run(l, stage, args);
}

static inline ptxgen_status nccl_alloc(struct ptxgen_session *s, struct ptxgen_dist *d, size_t bytes, void **out)
{
    return d->comm->rank == nccl_poor ? PTXGEN_NO_MEMORY : dist_machine_gpu.alloc(s, d, bytes, out);
}

static inline void nccl_begin(int ranks)
{
    fake_gpu = (*(fake_cuda_state_fn **)(void *[]){ fake_open(FAKE_CUDA, "fake_cuda_state", "PTXGEN_LIBCUDA") })();
    fake_nccl =
        (*(fake_nccl_state_fn **)(void *[]){ fake_open(FAKE_NCCL, "fake_nccl_state", "PTXGEN_LIBNCCL") })(ranks);
    fake_comm = *(fake_nccl_comm_fn **)(void *[]){ fake_open(FAKE_NCCL, "fake_nccl_comm", "PTXGEN_LIBNCCL") };
    fake_nccl->apart = nccl_apart;
    fake_gpu->devices = nccl_apart ? ranks : 1;
    nccl_machine = dist_machine_gpu;
    nccl_machine.run = nccl_run;
    nccl_machine.alloc = nccl_alloc;
    nccl_transport = dist_transport_nccl;
    nccl_transport.machine = &nccl_machine;
}

static inline ptxgen_status nccl_comm(struct rank *r)
{
    ptxgen_nccl_options o = PTXGEN_NCCL_OPTIONS_INIT;
    o.seconds = nccl_seconds;
    o.only_nccl = nccl_only;
    o.ends_apart = nccl_ends;
    ptxgen_status status = ptxgen_gpu_open(r->s, nccl_apart ? r->end.rank : 0, &r->gpu);
    if (status == PTXGEN_OK)
        status = ptxgen_stream_create(r->s, r->gpu, &r->stream);
    if (status == PTXGEN_OK)
        status = ptxgen_comm_from_nccl(r->s, r->gpu, fake_comm(r->end.rank), &o, &r->comm);
    if (status == PTXGEN_OK)
        r->comm->transport = &nccl_transport;
    return status;
}

/* Host code for the stages, beside the GPU's. */
static inline ptxgen_status nccl_code(struct rank *r)
{
    struct llvmgen_options o;
    struct simt_options modes;
    if (api_read_modes(r->s, r->world->modes, &modes) != PTXGEN_OK || !api_compile_options(r->s, NULL, &o))
        return PTXGEN_INTERNAL;
    r->dist->modes = modes;
    return nccl_kernels || dist_compile(r->s, r->dist, &o) ? PTXGEN_OK : PTXGEN_INTERNAL;
}

static const struct world_over over_nccl = { nccl_begin, nccl_comm, nccl_code };

#endif
