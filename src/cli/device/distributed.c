/* SPDX-License-Identifier: Apache-2.0 */
/* distributed.c - `run --distributed`: the ranks of mpirun share a run on the host executor.
 *
 * Every rank makes the inputs of the whole, which are the same on all, and takes its part of them.  The parts of the
 * outputs are gathered, so that rank 0 shows, verifies and writes what one process would.
 */
#include <stdlib.h>
#include <string.h>

#include "data/parts.h"
#include "data/stages.h"
#include "mpi.h"
#include "progress.h"

struct shared {
    struct job *j;
    struct mpi *mpi;
    ptxgen_comm *comm;
    ptxgen_dist *dist;
    int rank, ranks, split; /* split: number of the size */
    struct part part;
    void **data;     /* arrays of the part, inputs and then outputs */
    int64_t *size;   /* of the part */
    char *own, *all; /* parts of an array */
    bool unseen;     /* a stage could not be brought together */
};

/* Room for the part of each array; whole arrays stay where they are. */
static ptxgen_status take_parts(struct shared *s)
{
    struct job *j = s->j;
    int64_t outer, inner;
    s->data = calloc((size_t)(j->ninputs + j->noutputs) + 1, sizeof *s->data);
    s->size = parts_sizes(j, s->split, s->part.count);
    if (!s->data || !s->size)
        return PTXGEN_NO_MEMORY;
    for (int i = 0; i < j->ninputs + j->noutputs; i++) {
        struct array *a = parts_array(j, i);
        s->data[i] = a->data;
        if (!parts_rows(s->j, s->split, a, &outer, &inner))
            continue;
        s->data[i] = calloc(1, (size_t)(outer * inner * s->part.count) + 1);
        if (!s->data[i])
            return PTXGEN_NO_MEMORY;
        parts_copy(s->j, s->split, a, s->data[i], &s->part, false);
    }
    return PTXGEN_OK;
}

/* The parts of an array of all ranks, into the whole; of: the job that has it, whose size `split` is split. */
static ptxgen_status gather(struct shared *s, const struct job *of, int split, const struct array *a, const char *part)
{
    int64_t outer, inner, most = 0;
    struct part p;
    if (!parts_rows(of, split, a, &outer, &inner))
        return PTXGEN_OK;
    for (int r = 0; r < s->ranks; r++) {
        parts_share(s->j->session, s->j, s->dist, of->size[split], r, s->ranks, &p);
        most = p.count > most ? p.count : most;
    }
    const size_t bytes = (size_t)(outer * inner * most);
    char *own = realloc(s->own, bytes + 1), *all = realloc(s->all, bytes * (size_t)s->ranks + 1);
    s->own = own ? own : s->own;
    s->all = all ? all : s->all;
    if (!own || !all)
        return PTXGEN_NO_MEMORY;
    memset(own, 0, bytes + 1);
    memcpy(own, part, (size_t)(outer * inner * s->part.count));
    const ptxgen_comm_callbacks with = mpi_callbacks(s->mpi);
    if (with.allgather(with.user, own, all, bytes) != 0)
        return PTXGEN_RANKS;
    for (int r = 0; r < s->ranks; r++) {
        parts_share(s->j->session, s->j, s->dist, of->size[split], r, s->ranks, &p);
        parts_copy(of, split, a, all + (size_t)r * bytes, &p, true);
    }
    return PTXGEN_OK;
}

/* The first rank's value, on all ranks; negative where an exchange failed. */
static int64_t first_says(const struct shared *s, int64_t own)
{
    int64_t *all = calloc((size_t)s->ranks, sizeof *all);
    const ptxgen_comm_callbacks with = mpi_callbacks(s->mpi);
    const int64_t said = all && with.allgather(with.user, &own, all, sizeof own) == 0 ? all[0] : -1;
    free(all);
    return said;
}

/* Are all ranks fine? */
static bool all_fine(const struct shared *s, bool own)
{
    char *all = calloc((size_t)s->ranks, 1);
    const ptxgen_comm_callbacks with = mpi_callbacks(s->mpi);
    bool fine = all && with.allgather(with.user, &(char){ own }, all, 1) == 0;
    for (int r = 0; r < s->ranks && fine; r++)
        fine = all[r];
    free(all);
    return fine;
}

/* --verify of a program: the first rank compares each stage with the reference. */
static int visit(int stage, int64_t step, const ptxgen_arguments *args, void *user)
{
    struct shared *s = user;
    struct parts_stage p;
    bool fine = all_fine(s, parts_stage_begin(&p, s->j, s->dist, stage, args));
    for (int i = 0; i < p.of.ninputs + p.of.noutputs && fine; i++) {
        const struct array *a = parts_array(&p.of, i);
        const char *part = parts_stage_shown(&p, i, args);
        int64_t outer, inner;
        if (parts_rows(&p.of, p.split, a, &outer, &inner))
            fine = gather(s, &p.of, p.split, a, part) == PTXGEN_OK;
        else if (a->bytes)
            memcpy(a->data, part, a->bytes);
    }
    if (!fine)
        s->unseen = true;
    const int64_t says = fine ? first_says(s, s->rank ? 0 : parts_stage_verify(&p, s->j, stage, step)) : 1;
    parts_stage_finish(&p);
    return says != 0;
}

static ptxgen_status launch(struct shared *s, const ptxgen_arguments *args)
{
    struct job *j = s->j;
    if (!j->options->verify || !stages_checked(j, NULL))
        return ptxgen_dist_launch(j->session, s->dist, args);
    const ptxgen_status status = ptxgen_dist_launch_stages(j->session, s->dist, args, NULL, visit, s);
    return status == PTXGEN_OK && s->unseen ? PTXGEN_RANKS : status;
}

static ptxgen_status run_parts(struct shared *s)
{
    struct job *j = s->j;
    s->split = parts_split(j, s->dist);
    ptxgen_status status = parts_share(j->session, j, s->dist, j->size[s->split], s->rank, s->ranks, &s->part);
    status = status == PTXGEN_OK ? take_parts(s) : status;
    if (status != PTXGEN_OK)
        return status;
    const ptxgen_arguments args = { s->size, (const void *const *)s->data, s->data + j->ninputs, j->param };
    const double begin = progress_now();
    status = launch(s, &args);
    j->seconds = progress_now() - begin;
    for (int i = 0; i < j->noutputs && status == PTXGEN_OK; i++)
        status = gather(s, j, s->split, &j->output[i], s->data[j->ninputs + i]);
    return status;
}

static void finish(struct shared *s)
{
    for (int i = 0; s->data && i < s->j->ninputs + s->j->noutputs; i++)
        if (s->data[i] != parts_array(s->j, i)->data)
            free(s->data[i]);
    free(s->data);
    free(s->size);
    free(s->own);
    free(s->all);
    ptxgen_dist_destroy(s->dist);
    ptxgen_comm_destroy(s->comm);
    mpi_close(s->mpi);
}

int distributed_run(struct job *j, bool *shows)
{
    const struct options *o = j->options;
    const char *why;
    struct shared s = { .j = j };
    ptxgen_dist_options options = PTXGEN_DIST_OPTIONS_INIT;
    if (o->device && strcmp(o->device, "cpu") != 0 && strcmp(o->device, "auto") != 0)
        return fail(EXIT_USAGE, "--distributed runs on the host executor alone: use it with --device cpu");
    if (o->plan || o->variant || o->set.n)
        return fail(EXIT_USAGE, "--distributed makes its own plans: leave out --plan, --variant and --set");
    if (parts_block(o, &options.block))
        return EXIT_USAGE;
    s.mpi = mpi_open(&s.rank, &s.ranks, &why);
    if (!s.mpi)
        return fail(EXIT_DEVICE, "%s", why);
    options.split = o->shard;
    options.modes = o->simt;
    const ptxgen_comm_callbacks with = mpi_callbacks(s.mpi);
    ptxgen_status status = ptxgen_comm_from_host(j->session, &with, s.rank, s.ranks, &s.comm);
    if (status == PTXGEN_OK)
        status = ptxgen_dist_load(j->session, s.comm, j->problem, &options, &s.dist);
    if (status == PTXGEN_OK)
        status = run_parts(&s);
    *shows = s.rank == 0;
    snprintf(j->device, sizeof j->device, "%d rank%s", s.ranks, s.ranks == 1 ? "" : "s");
    const int result = status == PTXGEN_OK ? EXIT_OK : fail_call(j->session, status, "running on all ranks");
    finish(&s);
    return result;
}
