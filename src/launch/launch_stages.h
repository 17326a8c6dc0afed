/* SPDX-License-Identifier: Apache-2.0 */
/* launch_stages.h - a loaded spec with stages: a loaded program for each of them, and memory between them. */
#ifndef PTXGEN_LAUNCH_STAGES_H
#define PTXGEN_LAUNCH_STAGES_H

#include "base/session.h"
#include "launch_impl.h"
#include "program/stages.h"
#include "ptxgen/stages.h"

struct loaded_stages {
    const struct prog_stages *p;
    void *user;
    void (*end)(void *user); /* p is not read any more */
    struct ptxgen_loaded *stage[];
};

/* Without the stages themselves, which the caller puts into `stages->stage`; NULL: out of memory. */
struct ptxgen_loaded *launch_new_stages(struct ptxgen_gpu *gpu, const struct prog_stages *p);
void launch_destroy_stages(struct loaded_stages *of);
/* prepares: load what a launch needs, and launch nothing. */
ptxgen_status launch_stages(struct ptxgen_session *s, struct ptxgen_loaded *l, const ptxgen_arguments *args,
                            cu_stream stream, bool prepares);
/* PTXGEN_UNSUPPORTED, after a message. */
ptxgen_status launch_refuse_stages(struct ptxgen_session *s, const char *what);

#endif
