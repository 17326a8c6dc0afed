/* SPDX-License-Identifier: Apache-2.0 */
/* launch_stages.h - a loaded spec with stages: a loaded program for each of them, and memory between them. */
#ifndef PTXGEN_LAUNCH_STAGES_H
#define PTXGEN_LAUNCH_STAGES_H

#include "base/session.h"
#include "launch_impl.h"
#include "program/stages.h"
#include "ptxgen/stages.h"

struct loop_code {
    _Atomic bool refused; /* by the driver: the host walks */
    cu_module module;     /* NULL: not loaded */
    cu_function decide, home;
};

struct loaded_stages {
    const struct prog_stages *p;
    void *user;
    void (*end)(void *user); /* p is not read any more */
    struct loop_code loop;
    struct ptxgen_loaded *stage[];
};

/* Without the stages themselves, which the caller puts into `stages->stage`; NULL: out of memory. */
struct ptxgen_loaded *launch_new_stages(struct ptxgen_gpu *gpu, const struct prog_stages *p);
void launch_destroy_stages(struct ptxgen_loaded *l);
/* prepares: load what a launch needs, and launch nothing. */
ptxgen_status launch_stages(struct ptxgen_session *s, struct ptxgen_loaded *l, const ptxgen_arguments *args,
                            cu_stream stream, bool prepares);

/* A loop that ends on a condition, in a graph (loop.c). */
enum { LOOP_COUNTER = 8 /* bytes of memory after the arrays between stages */ };
struct loop_launch {
    struct ptxgen_session *s;
    struct ptxgen_loaded *l;
    const struct run_args *args;
    const struct stages_layout *layout;
    struct control_block
        *block; /* of the stream, with layout->bytes + LOOP_COUNTER bytes of scratch; its lock is held */
    cu_stream stream;
    bool prepares;
};
/* The gpu's context is current.  False: nothing was launched, and the host must walk. */
bool loop_launch(const struct loop_launch *x, ptxgen_status *status);
/* NULL: loops may be in graphs; else why not. */
const char *loop_refuses(const struct ptxgen_loaded *l);

/* PTXGEN_UNSUPPORTED, after a message. */
ptxgen_status launch_refuse_stages(struct ptxgen_session *s, const char *what);

#endif
