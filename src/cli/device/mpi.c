/* SPDX-License-Identifier: Apache-2.0 */
/* mpi.c - exchanges of ranks by MPI.
 *
 * No header of MPI is needed, since what is used has been the same for decades.  Handles are pointers in Open MPI and
 * ints in MPICH.  Both travel in one register in the C ABIs of 64-bit Linux, so one prototype with intptr_t serves both;
 * of a request, which the library stores, MPICH writes the lower half.
 */
#include "mpi.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LIMIT_SECONDS = 300, SPINS = 1000, TAG = 77 };
/* Of MPICH and those that have its binary interface. */
enum { MPICH_COMM_WORLD = 0x44000000, MPICH_BYTE = 0x4c00010d };

struct mpi {
    void *handle;
    intptr_t world, byte;
    void *ignored_status;
    int (*Init)(int *, char ***);
    int (*Finalize)(void);
    int (*Comm_rank)(intptr_t, int *);
    int (*Comm_size)(intptr_t, int *);
    int (*Iallgather)(const void *, int, intptr_t, void *, int, intptr_t, intptr_t, intptr_t *);
    int (*Isend)(const void *, int, intptr_t, int, int, intptr_t, intptr_t *);
    int (*Irecv)(void *, int, intptr_t, int, int, intptr_t, intptr_t *);
    int (*Test)(intptr_t *, int *, void *);
};

/* The library of the launcher that started this process comes first. */
static void *open_library(void)
{
    static const char *const name[] = { "libmpi.so.40", "libmpich.so.12", "libmpi.so.12", "libmpi.so" };
    const char *chosen = getenv("PTXGEN_LIBMPI"); /* a path, for installations in unusual places */
    void *handle = chosen ? dlopen(chosen, RTLD_NOW | RTLD_GLOBAL) : NULL;
    const size_t n = sizeof name / sizeof *name, first = getenv("PMI_SIZE") && !getenv("OMPI_COMM_WORLD_SIZE") ? 1 : 0;
    for (size_t i = 0; i < n && !chosen && !handle; i++)
        handle = dlopen(name[(first + i) % n], RTLD_NOW | RTLD_GLOBAL); /* Open MPI's plugins look for its symbols */
    return handle;
}

static bool find_functions(struct mpi *m)
{
    const struct {
        const char *name;
        void *slot;
    } function[] = {
        { "MPI_Init", &m->Init },
        { "MPI_Finalize", &m->Finalize },
        { "MPI_Comm_rank", &m->Comm_rank },
        { "MPI_Comm_size", &m->Comm_size },
        { "MPI_Iallgather", &m->Iallgather },
        { "MPI_Isend", &m->Isend },
        { "MPI_Irecv", &m->Irecv },
        { "MPI_Test", &m->Test },
    };
    for (size_t i = 0; i < sizeof function / sizeof *function; i++) {
        void *symbol = dlsym(m->handle, function[i].name);
        if (!symbol)
            return false;
        memcpy(function[i].slot, &symbol, sizeof symbol);
    }
    void *world = dlsym(m->handle, "ompi_mpi_comm_world"), *byte = dlsym(m->handle, "ompi_mpi_byte");
    m->world = world ? (intptr_t)world : MPICH_COMM_WORLD;
    m->byte = byte ? (intptr_t)byte : MPICH_BYTE;
    m->ignored_status = world ? NULL : (void *)(intptr_t)1;
    return true;
}

struct mpi *mpi_open(int *rank, int *size, const char **why)
{
    struct mpi *m = calloc(1, sizeof *m);
    *why = "memory is exhausted";
    if (!m)
        return NULL;
    *why = "no MPI library was found (libmpi.so.40 or libmpich.so.12; PTXGEN_LIBMPI names another)";
    m->handle = open_library();
    if (m->handle && find_functions(m)) {
        *why = "MPI does not start";
        if (m->Init(NULL, NULL) == 0 && m->Comm_rank(m->world, rank) == 0 && m->Comm_size(m->world, size) == 0)
            return m;
    }
    free(m); /* the library stays: MPI cannot be started a second time */
    return NULL;
}

void mpi_close(struct mpi *m)
{
    if (m)
        m->Finalize();
    free(m);
}

static int wait_for(const struct mpi *m, intptr_t *request)
{
    const struct timespec pause = { .tv_nsec = 50000 };
    const time_t end = time(NULL) + LIMIT_SECONDS;
    int done = 0, failed = 0;
    for (int64_t i = 0; !done && !failed; i++) {
        failed = m->Test(request, &done, m->ignored_status) || (!done && time(NULL) > end);
        if (!done && i > SPINS)
            nanosleep(&pause, NULL);
    }
    return failed;
}

static int allgather(void *user, const void *own, void *all, size_t bytes)
{
    const struct mpi *m = user;
    intptr_t request = 0;
    if (bytes > INT_MAX)
        return 1;
    return m->Iallgather(own, (int)bytes, m->byte, all, (int)bytes, m->byte, m->world, &request) ||
           wait_for(m, &request);
}

static int sendrecv(void *user, const void *send, size_t send_bytes, int to, void *get, size_t get_bytes, int from)
{
    const struct mpi *m = user;
    intptr_t getting = 0, sending = 0;
    if (send_bytes > INT_MAX || get_bytes > INT_MAX)
        return 1;
    return m->Irecv(get, (int)get_bytes, m->byte, from, TAG, m->world, &getting) ||
           m->Isend(send, (int)send_bytes, m->byte, to, TAG, m->world, &sending) || wait_for(m, &getting) ||
           wait_for(m, &sending);
}

ptxgen_comm_callbacks mpi_callbacks(struct mpi *m)
{
    ptxgen_comm_callbacks with = PTXGEN_COMM_CALLBACKS_INIT;
    with.allgather = allgather;
    with.sendrecv = sendrecv;
    with.user = m;
    return with;
}
