/* SPDX-License-Identifier: Apache-2.0 */
/* launch_stages.h - a loaded spec with stages: a loaded program for each of them, and memory between them. */
#ifndef PTXGEN_LAUNCH_STAGES_H
#define PTXGEN_LAUNCH_STAGES_H

#include "base/session.h"
#include "launch_impl.h"
#include "program/stages.h"
#include "ptxgen/stages.h"

struct loop_code {
    cu_module module; /* NULL: not loaded */
    cu_function decide, odd, whether;
};

struct loaded_stages {
    const struct prog_stages *p;
    void *user;
    void (*end)(void *user); /* p is not read any more */
    struct loop_code loop;
    _Atomic bool refused; /* the graph of a loop, by the driver: the host walks */
    struct ptxgen_loaded *stage[];
};

/* Without the stages themselves, which the caller puts into `stages->stage`; NULL: out of memory. */
struct ptxgen_loaded *launch_new_stages(struct ptxgen_gpu *gpu, const struct prog_stages *p);
void launch_destroy_stages(struct ptxgen_loaded *l);
/* workspace NULL: memory that is kept for the stream. */
ptxgen_status launch_stages(struct ptxgen_session *s, struct ptxgen_loaded *l, const ptxgen_arguments *args,
                            cu_stream stream, const ptxgen_workspace *workspace);
/* Load what a launch needs, and launch nothing. */
ptxgen_status launch_prepare_stages(struct ptxgen_session *s, struct ptxgen_loaded *l, const ptxgen_arguments *args,
                                    cu_stream stream);
ptxgen_status launch_measure_stages(struct ptxgen_session *s, struct ptxgen_loaded *l, const ptxgen_arguments *args,
                                    ptxgen_workspace *out);

/* A caller's workspace (stages_workspace.c): arrays between stages, with `layout`, lie at the beginning of scratch. */
struct stages_pieces {
    ptxgen_workspace piece[STAGES_MAX];
    size_t control_bytes, scratch_bytes; /* of all */
};
/* given NULL: nothing is known but the bytes. */
ptxgen_status stages_measure(struct ptxgen_session *s, struct ptxgen_loaded *l, const struct run_args *run,
                             const struct stages_layout *layout, const ptxgen_workspace *given,
                             struct stages_pieces *out);

/* What a loop that ends on a condition needs in a graph (loop.c).  Where the condition is read after each step: a second
 * memory for each array that a step writes and that leaves it. */
struct loop_place {
    struct prog_stages p; /* there, every output that is fed back has a twin */
    struct stage_feedback feedback[STAGE_ARRAYS_MAX];
    struct stages_layout layout;      /* with these twins */
    int64_t output[STAGE_ARRAYS_MAX]; /* of the whole: where their second memory lies; -1: it is a twin's */
    int64_t state;                    /* of the words that count */
    int64_t told;                     /* of what this rank tells the others, and then all ranks */
    int64_t bytes;
    int64_t decisions; /* at most */
    int rest;          /* steps after the last decision */
};
/* ranks: that tell each other their state; 0: there is one GPU.  False: bytes overflow. */
bool loop_lay_out(const struct prog_stages *p, const struct run_args *args, int ranks, struct loop_place *out);
/* NULL: loops may be in graphs; else why not. */
const char *loop_refuses(const struct ptxgen_gpu *gpu, const struct prog_stages *p);

/* Graphs that launches start (kept_graphs.c). */
struct kept_launch {
    struct ptxgen_session *s;
    struct ptxgen_loaded *l;
    const struct run_args *args;
    const struct stages_layout *layout;
    const struct loop_place *place; /* of a loop that ends on a condition, else NULL */
    struct control_block *block;    /* of the stream, with the scratch memory of layout or place; its lock is held */
    cu_stream stream;
    bool prepares;
};
/* The gpu's context is current.  False: nothing was launched, and the host must walk. */
bool kept_launch(const struct kept_launch *x, ptxgen_status *status);

#endif
