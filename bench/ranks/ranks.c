/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.c - problems on several devices of this machine: results against the reference, then times.
 *
 *     ranks [check|bench|all] [--specs DIR] [--devices 0,1] [--csv FILE] [--over nccl] [--ends apart|steps] [--only KIND]
 *
 * --over nccl: all bytes travel through NCCL, also between devices that can write into each other's memory.
 * --ends apart: rows of a stencil beside other ranks are always computed by kernels of their own; steps: those of several
 * time steps are.
 * --only sums, scans, stencils or loops: what is measured.
 *
 * Exit status 0: all is well; 1: something is wrong; 3: there are not two devices, or no NCCL.  With RANKS_ON_ONE_DEVICE
 * set, one device may stand for all, as that of tests/support/fake_cuda.c does.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"

enum { NOT_RUN = 3, LIMIT_SECONDS = 540 };

struct call {
    pthread_t thread;
    struct rank *rank;
    bool (*f)(struct rank *r);
};

static void *thread_main(void *argument)
{
    struct call *c = argument;
    c->rank->ok = c->f(c->rank);
    return NULL;
}

bool all_ranks(struct world *w, bool (*f)(struct rank *r), void *job)
{
    struct call call[RANKS_MAX];
    bool ok = true;
    for (int i = 0; i < w->ranks; i++) {
        call[i] = (struct call){ .rank = &w->rank[i], .f = f };
        w->rank[i].job = job;
        pthread_create(&call[i].thread, NULL, thread_main, &call[i]);
    }
    for (int i = 0; i < w->ranks; i++) {
        pthread_join(call[i].thread, NULL);
        ok &= w->rank[i].ok;
    }
    return ok;
}

void say(struct rank *r, const char *what)
{
    char *text = r->s ? ptxgen_diagnostics_text(r->s, 0) : NULL;
    fprintf(stderr, "rank %d: %s\n%s", r->number, what, text ? text : "");
    ptxgen_free(text);
    if (r->s)
        ptxgen_diagnostics_clear(r->s);
}

ptxgen_problem *read_spec(struct rank *r, const char *spec)
{
    ptxgen_problem *p = NULL;
    char path[512];
    snprintf(path, sizeof path, "%s/%s.yaml", r->world->specs, spec);
    const ptxgen_status status = strchr(spec, '\n') ? ptxgen_problem_from_string(r->s, spec, strlen(spec), "spec", &p)
                                                    : ptxgen_problem_from_file(r->s, path, &p);
    if (status != PTXGEN_OK)
        say(r, spec);
    return p;
}

/* ---- opening ------------------------------------------------------------------------------------ */
static bool open_nccl(struct world *w)
{
    const char *name = getenv("PTXGEN_LIBNCCL");
    void *library = dlopen(name && *name ? name : "libnccl.so.2", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "ranks: no NCCL: %s\n", dlerror());
        return false;
    }
    *(void **)&w->CommInitAll = dlsym(library, "ncclCommInitAll");
    *(void **)&w->CommDestroy = dlsym(library, "ncclCommDestroy");
    *(void **)&w->CommAbort = dlsym(library, "ncclCommAbort");
    *(void **)&w->AllReduce = dlsym(library, "ncclAllReduce");
    *(void **)&w->GroupStart = dlsym(library, "ncclGroupStart");
    *(void **)&w->GroupEnd = dlsym(library, "ncclGroupEnd");
    *(void **)&w->Send = dlsym(library, "ncclSend");
    *(void **)&w->Recv = dlsym(library, "ncclRecv");
    return w->CommInitAll && w->CommDestroy && w->CommAbort && w->AllReduce && w->GroupStart && w->GroupEnd &&
           w->Send && w->Recv;
}

static bool open_rank(struct rank *r)
{
    ptxgen_nccl_options o = PTXGEN_NCCL_OPTIONS_INIT;
    o.seconds = 60;
    o.only_nccl = r->world->only_nccl;
    o.ends_apart = r->world->ends_apart;
    const bool ok = ptxgen_stream_create(r->s, r->gpu, &r->stream) == PTXGEN_OK &&
                    ptxgen_event_create(r->s, r->gpu, &r->begin) == PTXGEN_OK &&
                    ptxgen_event_create(r->s, r->gpu, &r->end) == PTXGEN_OK &&
                    ptxgen_comm_from_nccl(r->s, r->gpu, r->nccl, &o, &r->comm) == PTXGEN_OK;
    if (!ok)
        say(r, "cannot be opened");
    return ok && ptxgen_comm_size(r->comm) == r->world->ranks && ptxgen_comm_rank(r->comm) == r->number;
}

static bool open_world(struct world *w, const int *devices)
{
    struct ncclComm *comm[RANKS_MAX];
    for (int i = 0; i < w->ranks; i++) {
        struct rank *r = &w->rank[i];
        r->world = w;
        r->number = i;
        r->device = devices[i];
        if (ptxgen_session_create(&r->s) != PTXGEN_OK || ptxgen_gpu_open(r->s, devices[i], &r->gpu) != PTXGEN_OK) {
            say(r, "no such device");
            return false;
        }
    }
    if (w->CommInitAll(comm, w->ranks, devices) != NCCL_OK) {
        fputs("ranks: ncclCommInitAll failed\n", stderr);
        return false;
    }
    for (int i = 0; i < w->ranks; i++)
        w->rank[i].nccl = comm[i];
    pthread_barrier_init(&w->barrier, NULL, (unsigned)w->ranks);
    return all_ranks(w, open_rank, NULL);
}

static bool close_rank(struct rank *r)
{
    ptxgen_comm_destroy(r->comm);
    r->world->CommDestroy(r->nccl);
    ptxgen_event_destroy(r->gpu, r->begin);
    ptxgen_event_destroy(r->gpu, r->end);
    ptxgen_stream_destroy(r->gpu, r->stream);
    ptxgen_gpu_close(r->gpu);
    ptxgen_session_destroy(r->s);
    return true;
}

/* The devices of a list, or the first two. */
static int read_devices(const char *list, int *devices)
{
    int n = 0;
    char *at = (char *)(uintptr_t)list;
    while (n < RANKS_MAX && *at) {
        devices[n++] = (int)strtol(at, &at, 10);
        at += *at == ',';
    }
    return n;
}

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], name))
            return argv[i + 1];
    return otherwise;
}

int main(int argc, char **argv)
{
    static struct world w;
    int devices[RANKS_MAX], there = 0;
    const char *what = argc > 1 && argv[1][0] != '-' ? argv[1] : "all", *csv = option(argc, argv, "--csv", NULL);
    w.specs = option(argc, argv, "--specs", "specs");
    w.only_nccl = !strcmp(option(argc, argv, "--over", ""), "nccl");
    const char *ends = option(argc, argv, "--ends", "");
    w.ends_apart = !strcmp(ends, "apart") - !strcmp(ends, "steps");
    w.ranks = read_devices(option(argc, argv, "--devices", "0,1"), devices);
    ptxgen_gpu_count(NULL, &there);
    if (there < 2 && !getenv("RANKS_ON_ONE_DEVICE")) {
        printf("ranks: not run: there %s %d device%s, and two are needed\n", there == 1 ? "is" : "are", there,
               there == 1 ? "" : "s");
        return NOT_RUN;
    }
    alarm(LIMIT_SECONDS);
    if (!open_nccl(&w) || !open_world(&w, devices))
        return NOT_RUN;
    w.csv = csv ? fopen(csv, "w") : NULL;
    if (w.csv)
        fputs("what,per_device,mode,way,microseconds\n", w.csv);
    if (strcmp(what, "bench") != 0)
        check_all(&w);
    if (strcmp(what, "check") != 0)
        measure_all(&w, option(argc, argv, "--only", NULL));
    if (w.csv)
        fclose(w.csv);
    all_ranks(&w, close_rank, NULL);
    printf("ranks: %d failed\n", w.failed);
    return w.failed > 0;
}
