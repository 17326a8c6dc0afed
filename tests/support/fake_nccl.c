/* SPDX-License-Identifier: Apache-2.0 */
/* fake_nccl.c - see fake_nccl.h. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dist/nccl_abi.h"
#include "fake_nccl.h"

enum { REMOTE_ERROR = 6, MAIL = 64 };

struct ncclComm {
    int rank, device;
};

/* What a rank sends; NULL: it was taken. */
struct mail {
    const void *from;
    size_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct fake_nccl fake = { .ranks = 1, .dead = -1 };
static struct ncclComm comms[FAKE_RANKS];
static int arrived, left;
static const void *sent[FAKE_RANKS];
static struct mail mail[FAKE_RANKS][FAKE_RANKS][MAIL];
static int mails[FAKE_RANKS][FAKE_RANKS], read_mails[FAKE_RANKS][FAKE_RANKS];
static _Thread_local bool grouped;
static _Thread_local struct {
    void *get;
    size_t bytes;
    int rank, from;
} waiting[MAIL];
static _Thread_local int nwaiting;

struct fake_nccl *fake_nccl_state(int ranks);
struct fake_nccl *fake_nccl_state(int ranks)
{
    fake.ranks = ranks;
    for (int r = 0; r < FAKE_RANKS; r++)
        comms[r] = (struct ncclComm){ .rank = r };
    return &fake;
}

void *fake_nccl_comm(int rank);
void *fake_nccl_comm(int rank) { return &comms[rank]; }

/* With the lock held: until *count is `until`; false: somebody is dead. */
static bool meet(const int *count, int until)
{
    while (*count != until && fake.dead < 0)
        pthread_cond_wait(&changed, &lock);
    return *count == until;
}

static void record(char what, int rank, int other, const void *stream, size_t bytes)
{
    if (fake.ncalls < FAKE_NCCL_CALLS)
        fake.call[fake.ncalls++] = (struct fake_nccl_call){ what, rank, other, stream, bytes };
}

static int result(bool good) { return !good ? REMOTE_ERROR : fake.in_flight ? NCCL_IN_PROGRESS : NCCL_OK; }

#define ENTRY(symbol, ...)                                                                                             \
    int symbol(__VA_ARGS__);                                                                                           \
    int symbol(__VA_ARGS__)

ENTRY(ncclCommCount, const struct ncclComm *comm, int *count)
{
    (void)comm;
    *count = fake.ranks;
    return NCCL_OK;
}
ENTRY(ncclCommUserRank, const struct ncclComm *comm, int *rank)
{
    *rank = comm->rank;
    return NCCL_OK;
}
ENTRY(ncclCommCuDevice, const struct ncclComm *comm, int *device)
{
    *device = fake.apart ? comm->rank : comm->device;
    return NCCL_OK;
}
ENTRY(ncclCommGetAsyncError, struct ncclComm *comm, int *error)
{
    (void)comm;
    *error = fake.error;
    return NCCL_OK;
}

/* Everybody comes, everybody copies, everybody leaves. */
ENTRY(ncclAllGather, const void *send, void *get, size_t count, int type, struct ncclComm *comm,
      struct CUstream_st *stream)
{
    (void)type;
    pthread_mutex_lock(&lock);
    record('g', comm->rank, -1, stream, count);
    const bool alive = fake.dead != comm->rank;
    bool good = alive && meet(&left, 0);
    sent[comm->rank] = send;
    arrived += alive;
    pthread_cond_broadcast(&changed);
    good = good && meet(&arrived, fake.ranks);
    for (int r = 0; r < fake.ranks && good; r++)
        memmove((char *)get + (size_t)r * count, sent[r], count);
    left++;
    if (left == fake.ranks) {
        arrived = left = 0;
        pthread_cond_broadcast(&changed);
    } else if (good) {
        good = meet(&left, 0);
    }
    pthread_mutex_unlock(&lock);
    return result(good);
}

ENTRY(ncclGroupStart, void)
{
    grouped = true;
    nwaiting = 0;
    return NCCL_OK;
}
ENTRY(ncclSend, const void *send, size_t count, int type, int to, struct ncclComm *comm, struct CUstream_st *stream)
{
    (void)type;
    pthread_mutex_lock(&lock);
    record('s', comm->rank, to, stream, count);
    mail[comm->rank][to][mails[comm->rank][to]++ % MAIL] = (struct mail){ send, count };
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return grouped ? NCCL_OK : REMOTE_ERROR;
}
ENTRY(ncclRecv, void *get, size_t count, int type, int from, struct ncclComm *comm, struct CUstream_st *stream)
{
    (void)type;
    pthread_mutex_lock(&lock);
    record('r', comm->rank, from, stream, count);
    pthread_mutex_unlock(&lock);
    waiting[nwaiting].get = get;
    waiting[nwaiting].bytes = count;
    waiting[nwaiting].rank = comm->rank;
    waiting[nwaiting++].from = from;
    return grouped ? NCCL_OK : REMOTE_ERROR;
}
/* A sender's memory is read before the sender goes on: all of a group wait for each other. */
ENTRY(ncclGroupEnd, void)
{
    bool good = true;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < nwaiting && good; i++) {
        const int from = waiting[i].from, to = waiting[i].rank;
        while (mails[from][to] == read_mails[from][to] && fake.dead < 0)
            pthread_cond_wait(&changed, &lock);
        const struct mail *m = &mail[from][to][read_mails[from][to] % MAIL];
        good = mails[from][to] > read_mails[from][to] && m->bytes == waiting[i].bytes;
        if (good)
            memcpy(waiting[i].get, m->from, m->bytes);
        read_mails[from][to]++;
        pthread_cond_broadcast(&changed);
    }
    for (int from = 0; from < fake.ranks && nwaiting; from++)
        for (int to = 0; to < fake.ranks && good && from == waiting[0].rank; to++)
            while (mails[from][to] > read_mails[from][to] && fake.dead < 0)
                pthread_cond_wait(&changed, &lock);
    grouped = false;
    pthread_mutex_unlock(&lock);
    return result(good);
}

/* For whole programs. */
ENTRY(ncclCommInitAll, struct ncclComm **comm, int n, const int *devices)
{
    fake_nccl_state(n);
    for (int r = 0; r < n; r++) {
        comms[r].device = devices[r];
        comm[r] = &comms[r];
    }
    fake.dead = getenv("FAKE_NCCL_DEAD") ? atoi(getenv("FAKE_NCCL_DEAD")) : -1;
    return getenv("FAKE_NCCL_FAIL") ? REMOTE_ERROR : NCCL_OK;
}
ENTRY(ncclCommDestroy, struct ncclComm *comm)
{
    (void)comm;
    return NCCL_OK;
}
ENTRY(ncclCommAbort, struct ncclComm *comm)
{
    (void)comm;
    return NCCL_OK;
}
ENTRY(ncclAllReduce, const void *send, void *get, size_t n, int type, int operation, struct ncclComm *comm,
      struct CUstream_st *stream)
{
    (void)send, (void)get, (void)n, (void)type, (void)operation, (void)comm, (void)stream;
    return NCCL_OK;
}

const char *ncclGetErrorString(int error);
const char *ncclGetErrorString(int error) { return error == REMOTE_ERROR ? "remote error" : "the words of NCCL"; }
