/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.h - the ranks of MPI_COMM_WORLD as a communicator of ptxgen, for the examples beside this file. */
#include <limits.h>
#include <mpi.h>
#include <ptxgen/dist.h>
#include <stdio.h>
#include <stdlib.h>

static int too_long(size_t bytes) { return bytes > INT_MAX; }

static int allgather(void *user, const void *own, void *all, size_t bytes)
{
    (void)user;
    return too_long(bytes) || MPI_Allgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static int sendrecv(void *user, const void *send, size_t send_bytes, int to, void *get, size_t get_bytes, int from)
{
    (void)user;
    return too_long(send_bytes) || too_long(get_bytes) ||
           MPI_Sendrecv(send, (int)send_bytes, MPI_BYTE, to, 0, get, (int)get_bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE);
}

/* What every program here begins with: the spec, shared by all ranks. */
struct ranks {
    int rank, size;
    ptxgen_session *s;
    ptxgen_comm *comm;
    ptxgen_dist *dist;
};

static int ranks_open(struct ranks *r, const char *spec)
{
    ptxgen_problem *problem = NULL;
    ptxgen_comm_callbacks with = PTXGEN_COMM_CALLBACKS_INIT;
    with.allgather = allgather;
    with.sendrecv = sendrecv;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &r->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r->size);
    return ptxgen_session_create(&r->s) == PTXGEN_OK && ptxgen_problem_from_file(r->s, spec, &problem) == PTXGEN_OK &&
           ptxgen_comm_from_host(r->s, &with, r->rank, r->size, &r->comm) == PTXGEN_OK &&
           ptxgen_dist_load(r->s, r->comm, problem, NULL, &r->dist) == PTXGEN_OK;
}

/* The status of the process.  What went wrong is on standard error. */
static int ranks_close(struct ranks *r, int ok)
{
    char *text = ok ? NULL : ptxgen_diagnostics_text(r->s, 0);
    if (!ok)
        fprintf(stderr, "rank %d: %s\n", r->rank, text ? text : "out of memory");
    ptxgen_free(text);
    ptxgen_dist_destroy(r->dist);
    ptxgen_comm_destroy(r->comm);
    ptxgen_session_destroy(r->s);
    MPI_Finalize();
    return ok ? 0 : 1;
}
