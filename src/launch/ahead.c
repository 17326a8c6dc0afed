/* SPDX-License-Identifier: Apache-2.0 */
/* ahead.c - the first launch of stages: the code of all stages is made at the same time, a thread for each.
 *
 * What a stage takes follows from its arguments, and these are known before any stage has run.  So a walk that only
 * collects them is enough.  A thread tells nobody what went wrong: the launch meets it again, and does.
 */
#include <stdlib.h>
#include <string.h>

#include "launch_graph.h"

/* One stage, with arguments of its own. */
struct worker {
    struct ptxgen_loaded *l;
    cu_stream stream;
    ptxgen_arguments args;
    int64_t size[STAGE_ARGS_MAX];
    const void *input[STAGE_ARGS_MAX];
    void *output[STAGE_ARGS_MAX];
    ptxgen_value param[STAGE_ARGS_MAX];
    pthread_t thread;
    bool started;
};

struct ahead {
    const struct loaded_stages *of;
    struct worker *worker; /* a row for each stage */
    cu_stream stream;
};

static void *prepare(void *of)
{
    struct worker *w = of;

    ptxgen_prepare(NULL, w->l, &w->args, w->stream);
    return NULL;
}

/* False ends the walk, after the first step. */
static bool collect(void *user, int stage, const struct run_args *given)
{
    struct ahead *a = user;
    struct worker *w = &a->worker[stage];
    const struct program *p = a->of->stage[stage]->program;

    w->l = a->of->stage[stage];
    w->stream = a->stream;
    memcpy(w->size, given->size, sizeof *w->size * (size_t)p->nsizes);
    memcpy(w->input, given->input, sizeof *w->input * (size_t)p->ninputs);
    memcpy(w->output, given->output, sizeof *w->output * (size_t)p->noutputs);
    memcpy(w->param, given->param, sizeof *w->param * (size_t)p->nparams);
    w->args = (ptxgen_arguments){ w->size, w->input, w->output, w->param };
    return stage < a->of->p->nstages - 1;
}

static bool no_copy(void *user, void *to, const void *from, int64_t bytes)
{
    (void)user, (void)to, (void)from, (void)bytes;
    return false;
}

void ahead_prepare(struct loaded_stages *of, const struct run_args *args, const struct stages_layout *layout,
                   void *memory, cu_stream stream)
{
    enum { STACK = 8 << 20 }; /* emitters hold the values of a tile on it */
    const int count = of->p->nstages;
    pthread_attr_t attributes;
    struct ahead a = { of, calloc((size_t)count, sizeof *a.worker), stream };
    const struct stages_doer doer = { &a, collect, no_copy, NULL };

    if (!a.worker || pthread_attr_init(&attributes) != 0) {
        free(a.worker);
        return;
    }
    pthread_attr_setstacksize(&attributes, STACK);
    stages_walk(of->p, args, layout, memory, &doer);
    for (int i = 0; i < count; i++)
        a.worker[i].started =
            a.worker[i].l && pthread_create(&a.worker[i].thread, &attributes, prepare, &a.worker[i]) == 0;
    for (int i = 0; i < count; i++)
        if (a.worker[i].started)
            pthread_join(a.worker[i].thread, NULL);
    pthread_attr_destroy(&attributes);
    free(a.worker);
}
