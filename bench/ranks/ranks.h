/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.h - one process, a thread for each device, and NCCL between them. */
#ifndef RANKS_H
#define RANKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "dist/nccl_abi.h"
#include "ptxgen/dist.h"

enum { RANKS_MAX = 8, ARRAYS_MAX = 8, SAMPLES = 9 };

struct world;
struct rank {
    struct world *world;
    int number;
    ptxgen_session *s;
    ptxgen_gpu *gpu;
    ptxgen_stream stream;
    ptxgen_event begin, end;
    struct ncclComm *nccl;
    ptxgen_comm *comm;
    void *job; /* what the threads work on */
    bool ok;
    double seconds; /* of the last measurement */
};

struct world {
    int ranks, only_nccl;
    struct rank rank[RANKS_MAX];
    pthread_barrier_t barrier;
    const char *specs;
    const char *transport; /* of the last launches */
    FILE *csv;
    int failed;
    int bad; /* since this was 0, a rank has failed */
    int (*CommInitAll)(struct ncclComm **comm, int count, const int *devices);
    int (*CommDestroy)(struct ncclComm *comm);
    int (*CommAbort)(struct ncclComm *comm);
    int (*AllReduce)(const void *send, void *get, size_t count, int type, int operation, struct ncclComm *comm,
                     ptxgen_stream stream);
};

/* f on the threads of all ranks at once, with rank->job; true: all said so. */
bool all_ranks(struct world *w, bool (*f)(struct rank *r), void *job);
void say(struct rank *r, const char *what);
/* A spec: its own text, or the name of a file of the specs. */
ptxgen_problem *read_spec(struct rank *r, const char *spec);

void check_all(struct world *w);
void measure_all(struct world *w);

#endif
