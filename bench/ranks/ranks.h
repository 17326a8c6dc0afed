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
    int number, device;
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
    int ranks, only_nccl, ends_apart;
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
    int (*GroupStart)(void);
    int (*GroupEnd)(void);
    int (*Send)(const void *send, size_t count, int type, int to, struct ncclComm *comm, ptxgen_stream stream);
    int (*Recv)(void *get, size_t count, int type, int from, struct ncclComm *comm, ptxgen_stream stream);
    int (*AllReduce)(const void *send, void *get, size_t count, int type, int operation, struct ncclComm *comm,
                     ptxgen_stream stream);
};

/* f on the threads of all ranks at once, with rank->job; true: all said so. */
bool all_ranks(struct world *w, bool (*f)(struct rank *r), void *job);
void say(struct rank *r, const char *what);
/* A spec: its own text, or the name of a file of the specs. */
ptxgen_problem *read_spec(struct rank *r, const char *spec);

/* alone: each device for itself; dist: all together; nccl: alone, and ncclAllReduce() of the results; hand: what is beside
 * other ranks travels by ncclSend() and ncclRecv(), and is computed afterwards (by_hand.c). */
enum way { ALONE, DIST, NCCL, HAND, WAYS };

struct trial {
    const char *label, *spec;
    int64_t size[3];  /* of a device's part */
    int64_t elements; /* of the input and of the output, per device */
    bool maps;        /* the output has as many as the input; else one */
    int64_t steps;    /* per launch; 0: there is no such param */
    int64_t block;    /* that ranks have in turn; 0: consecutive parts */
    enum way way;
    double microseconds; /* of a launch, the result */
};

struct hand; /* by_hand.c: a rank's second stream, and what orders it with the first one */
struct state {
    ptxgen_loaded *loaded;
    ptxgen_dist *dist;
    struct hand *hand;
    char *in, *out;
    size_t stride;
    int batch, repeats;
};

bool hand_open(struct rank *r, struct state *m);
void hand_close(struct rank *r, struct state *m);
/* Rows of one plane each: what one launch does, from `in` to `out`, which have one more row at both ends. */
bool hand_launch(struct rank *r, const struct trial *t, struct state *m, char *in, char *out, bool prepares);

void check_all(struct world *w);
/* only: "sums", "scans", "stencils" or "loops"; NULL: all */
void measure_all(struct world *w, const char *only);
/* Microseconds of the slowest rank; 0: failed. */
double measure_one(struct world *w, struct trial *t, bool graph);
void measure_stencils(struct world *w);

#endif
