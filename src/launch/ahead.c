/* SPDX-License-Identifier: Apache-2.0 */
/* ahead.c - the code of all stages at once, before the first launch.
 *
 * A stage's code is made when a launch takes it: tens of milliseconds for each stage, most of them in the driver's
 * compiler.  So the first launch of a program has threads make what its stages take at these sizes, one stage each.  They
 * end before the launch goes on, which finds the code ready.  What fails here is reported by that launch, which asks again.
 */
#include <pthread.h>
#include <unistd.h>

#include "launch_stages.h"

enum { STACK = 8 << 20 }; /* emitters hold the values of a tile on it */

struct ahead {
    struct ptxgen_loaded *l;
    const struct run_args *run;
    const struct stages_layout *layout;
    cu_stream stream;
    _Atomic int next; /* stage that no thread has taken */
};

struct turn {
    const struct ahead *of;
    int stage;
};

static bool prepare_one(void *user, int stage, const struct run_args *given)
{
    const struct turn *t = user;
    const ptxgen_arguments args = { given->size, given->input, given->output, (const ptxgen_value *)given->param };

    if (stage == t->stage)
        launch_load_code(t->of->l->stages->stage[stage], &args, t->of->stream);
    return stage != t->stage; /* the walk ends there */
}

static bool copy_nothing(void *user, void *to, const void *from, int64_t bytes)
{
    (void)user, (void)to, (void)from, (void)bytes;
    return true;
}

static bool never(void *user, const void *flag, bool *holds)
{
    (void)user, (void)flag;
    *holds = false;
    return true;
}

static void *take_turns(void *user)
{
    struct ahead *a = user;
    const struct prog_stages *p = a->l->stages->p;
    void *nowhere = (void *)(uintptr_t)256; /* aligned as memory between stages is */
    struct turn t = { a, 0 };

    while ((t.stage = atomic_fetch_add(&a->next, 1)) < p->nstages)
        stages_walk(p, a->run, a->layout, nowhere, &(struct stages_doer){ &t, prepare_one, copy_nothing, never, true });
    return NULL;
}

void stages_load_ahead(struct ptxgen_loaded *l, const struct run_args *run, const struct stages_layout *layout,
                       cu_stream stream)
{
    struct ahead a = { .l = l, .run = run, .layout = layout, .stream = stream };
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const int threads = processors < l->stages->p->nstages ? (int)processors : l->stages->p->nstages;
    pthread_t thread[STAGES_MAX];
    pthread_attr_t attributes;
    int n = 0;

    if (threads < 2 || atomic_exchange(&l->stages->begun, true) || pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setstacksize(&attributes, STACK);
    while (n < threads && pthread_create(&thread[n], &attributes, take_turns, &a) == 0)
        n++;
    while (n > 0)
        pthread_join(thread[--n], NULL);
    pthread_attr_destroy(&attributes);
}
