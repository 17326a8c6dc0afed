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
static fake_cuda_call_fn *nccl_call;
static double nccl_seconds = 60;
static bool nccl_kernels;  /* those of the driver are launched, which runs nothing */
static bool nccl_apart;    /* each rank has a device of its own */
static int nccl_ends;      /* ptxgen_nccl_options.ends_apart */
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

/* A stage's run as a node of a graph. */
struct nccl_node {
    struct launch l;
    enum dist_stage stage;
    struct run_args args;
    int64_t size[PROBLEM_ARGS_MAX];
    const void *input[PROBLEM_ARGS_MAX];
    void *output[PROBLEM_ARGS_MAX];
    union value param[PROBLEM_ARGS_MAX + 8];
};

/* After the run, in a stream or a graph; or NULL. */
static void (*nccl_ran)(const struct launch *l, const struct run_args *args);
static _Atomic int nccl_replays, nccl_faults; /* runs in graphs, and those that failed */

static inline ptxgen_status nccl_run_now(struct launch *l, enum dist_stage stage, const struct run_args *args)
{
    const ptxgen_status status = dist_machine_host.run(l, stage, args);
    if (nccl_ran)
        nccl_ran(l, args);
    return status;
}

static inline void nccl_replay(void *user)
{
    struct nccl_node *n = user;
    nccl_replays++;
    nccl_faults += nccl_run_now(&n->l, n->stage, &n->args) != PTXGEN_OK;
}

static inline ptxgen_status nccl_run(struct launch *l, enum dist_stage stage, const struct run_args *args)
{
    const struct problem *p = l->d->split->stage[stage].problem;
    static _Thread_local int runs;
    if (nccl_late && runs++ % l->d->comm->size == l->d->comm->rank)
        nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
    if (nccl_kernels)
        return dist_machine_gpu.run(l, stage, args);
    if (l->prepares)
        return PTXGEN_OK;
    struct nccl_node *n = calloc(1, sizeof *n);
    *n = (struct nccl_node){ .l = *l, .stage = stage, .args = { n->size, n->input, n->output, n->param } };
    memcpy(n->size, args->size, (size_t)p->nsizes * sizeof *n->size);
    memcpy(n->input, args->input, (size_t)p->ninputs * sizeof *n->input);
    memcpy(n->output, args->output, (size_t)p->noutputs * sizeof *n->output);
    memcpy(n->param, args->param, (size_t)p->nparams * sizeof *n->param);
    if (nccl_call(l->beside ? l->room->beside[l->inside].stream : l->stream, nccl_replay, n))
        return PTXGEN_OK; /* the graph has it */
    free(n);
    return nccl_run_now(l, stage, args);
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
    nccl_call = *(fake_cuda_call_fn **)(void *[]){ fake_open(FAKE_CUDA, "fake_cuda_call", "PTXGEN_LIBCUDA") };
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

/* Ranks that have all been made; and what is left of them afterwards. */
static inline void nccl_open_ranks(struct world *w, struct rank *rank)
{
    world_open(w, rank);
    for (int r = 0; r < w->ranks; r++)
        cr_assert_eq(rank[r].status, PTXGEN_OK, "rank %d: %s", r, rank[r].text);
}

/* Ranks with a device each, which reach each other's memory.  launched: what kernels of the driver do. */
static inline void nccl_open_peers(struct world *w, struct rank *rank, struct harness *h, const char *spec, int ranks,
                                   void (*launched)(const char *kernel, const unsigned grid[2], unsigned threads,
                                                    void *const *params))
{
    setenv("PTXGEN_CACHE", "off", 1);
    setenv("PTXGEN_LIBCUDA", FAKE_CUDA, 1);
    cr_assert(harness_open(h, "whole", spec, "sm_80", NULL), "%s", h->text);
    *w = (struct world){
        .whole = h, .name = "whole", .spec = spec, .split = "n", .modes = w->modes, .ranks = ranks, .over = &over_nccl
    };
    nccl_apart = true;
    nccl_open_ranks(w, rank);
    fake_gpu->launched = launched;
    fake_gpu->peers = 1;
}

static inline void nccl_close_ranks(struct world *w, struct rank *rank, struct harness *h)
{
    world_free(w, rank);
    world_close(w, rank);
    harness_close(h);
    cr_expect_eq(fake_gpu->live, 0, "%d objects of the driver were not given back", fake_gpu->live);
}

static inline void nccl_spoil(const struct rank *r, const struct harness *h)
{
    for (int i = 0; i < ptxgen_problem_output_count(h->problem); i++) {
        ptxgen_array_info a;
        int64_t size[8];
        ptxgen_problem_output(h->problem, i, &a);
        rank_sizes(r, size);
        memset(r->output[i], 0x5a, (size_t)ptxgen_array_elements(&a, size) * a.element_size);
    }
}

/* Launches what was prepared; the outputs hold something else before. */
static inline void nccl_launch(struct rank *r, const struct harness *h)
{
    int64_t size[8];
    rank_sizes(r, size);
    const ptxgen_arguments args = { size, (const void *const *)r->input, r->output, h->param };
    nccl_spoil(r, h);
    ptxgen_diagnostics_clear(r->s);
    r->status = ptxgen_dist_launch_on(r->s, r->dist, &args, r->stream);
    rank_text(r);
}

/* The same in a graph of the caller, launched twice. */
static inline void nccl_launch_graph(struct rank *r, const struct harness *h)
{
    ptxgen_graph graph = NULL;
    cr_assert_eq(ptxgen_capture_begin(r->s, r->gpu, r->stream), PTXGEN_OK);
    nccl_launch(r, h);
    cr_assert_eq(ptxgen_capture_end(r->s, r->gpu, r->stream, &graph), PTXGEN_OK);
    for (int i = 0; i < 2 && r->status == PTXGEN_OK; i++) {
        nccl_spoil(r, h);
        r->status = ptxgen_graph_launch(r->s, r->gpu, graph, r->stream);
    }
    ptxgen_graph_destroy(r->gpu, graph);
}

#endif
