/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h - what the files of a launch share. */
#ifndef PTXGEN_DIST_LAUNCH_H
#define PTXGEN_DIST_LAUNCH_H

#include "dist.h"

struct launch {
    struct ptxgen_session *s;
    struct ptxgen_dist *d;
    const struct run_args *args;
    const struct dist_hello *hello; /* of all ranks */
    int64_t *first;                 /* where the parts of the ranks begin, and the last one ends */
    int64_t total, piece;
    int64_t states;       /* of all ranks */
    int64_t state;        /* bytes of the state of a piece: of all its segments */
    size_t block;         /* bytes that a rank sends */
    char *own, *all;      /* what is sent, and got */
    char *carry;          /* a state */
    ptxgen_status failed; /* of this rank, which goes on exchanging and tells it last */
    /* Where neighbours are on other ranks: arrays with ghosts, inputs and then outputs; NULL: without the dimension. */
    char *room[PROBLEM_ARGS_MAX];
    int64_t begin, extent; /* position of the first ghost or element; their number */
};

/* Room with ghosts, and the inputs in it. */
ptxgen_status halo_open(struct launch *l);
void halo_close(struct launch *l);
/* The outputs become the inputs of the next time step, as the problem's feedback says. */
ptxgen_status halo_feed(struct launch *l);
/* As dist_run_stage(), with neighbours: run->first, count, behind are of the elements whose results are wanted. */
ptxgen_status halo_run(struct launch *l, enum dist_stage stage, const struct dist_run *run);

#endif
