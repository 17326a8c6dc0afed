/* SPDX-License-Identifier: Apache-2.0 */
/* together.c - the code that a first launch of stages takes, as one module.
 *
 * The driver compiles one module at a time, in any number of threads, and takes about 12 ms for a module beside what its
 * kernels take.  So the PTX of the cases that the first steps take is made in a thread for each, and becomes one module,
 * with the kernels of the loop.  Where that fails, and for cases that later launches take, there is a module for each
 * case (load.c).
 */
#include <stdlib.h>
#include <string.h>

#include "launch_graph.h"

enum { STEPS = 3 /* after these every memory has been an argument */, TAKEN_MAX = 2 * STAGES_MAX };

/* A case that is not loaded yet. */
struct taken {
    struct ptxgen_loaded *stage;
    int c;
    bool made, threaded;
    pthread_t thread;
};

struct gathering {
    struct loaded_stages *of;
    int count;
    struct taken taken[TAKEN_MAX];
};

static bool gather(void *user, int stage, const struct run_args *given)
{
    struct gathering *g = user;
    struct ptxgen_loaded *l = g->of->stage[stage];
    const ptxgen_arguments args = { given->size, given->input, given->output, (const ptxgen_value *)given->param };
    const char *name = ptxgen_launch_case(NULL, l, &args);
    bool add = name && g->count < TAKEN_MAX;
    int c = 0;

    while (name && l->program->cases[c].name != name)
        c++;
    for (int i = 0; i < g->count; i++)
        add &= g->taken[i].stage != l || g->taken[i].c != c;
    if (add && !atomic_load_explicit(&l->cases[c].ready, memory_order_acquire))
        g->taken[g->count++] = (struct taken){ .stage = l, .c = c };
    return true;
}

static bool copy(void *user, void *to, const void *from, int64_t bytes)
{
    (void)user, (void)to, (void)from, (void)bytes;
    return true;
}

/* ---- code ------------------------------------------------------------------------------------ */
static void *make(void *user)
{
    struct taken *t = user;
    struct fault f; /* the launch that takes the case says it */

    t->made = !t->stage->source.make || t->stage->source.make(t->stage->source.user, NULL, t->c, &f);
    return NULL;
}

/* The last one is made here, and so is what gets no thread. */
static bool make_all(struct gathering *g)
{
    enum { STACK = 8 << 20 }; /* emitters hold the values of a tile on it */
    pthread_attr_t attributes;
    const bool threads = pthread_attr_init(&attributes) == 0;
    bool ok = true;

    if (threads)
        pthread_attr_setstacksize(&attributes, STACK);
    for (int i = 0; i < g->count; i++) {
        struct taken *t = &g->taken[i];

        t->threaded = threads && i < g->count - 1 && pthread_create(&t->thread, &attributes, make, t) == 0;
        if (!t->threaded)
            make(t);
    }
    for (int i = 0; i < g->count; i++) {
        if (g->taken[i].threaded)
            pthread_join(g->taken[i].thread, NULL);
        ok &= g->taken[i].made;
    }
    if (threads)
        pthread_attr_destroy(&attributes);
    return ok;
}

static void add_module(struct program *all, const struct prog_module *m)
{
    bool is_new = true;

    for (int i = 0; i < all->nmodules; i++)
        is_new &= all->module[i].ptx != m->ptx;
    if (is_new)
        all->module[all->nmodules++] = *m;
}

static bool merge(const struct gathering *g, bool loops, struct str *out)
{
    const struct prog_module control = { .ptx = (char *)(uintptr_t)loop_control_code };
    struct program all = *g->taken[0].stage->program;

    all.ncases = all.nmodules = 0;
    all.module = calloc((size_t)g->count * LAUNCH_KERNELS_MAX + 1, sizeof *all.module);
    if (!all.module)
        return false;
    for (int i = 0; i < g->count; i++) {
        const struct program *p = g->taken[i].stage->program;
        const struct prog_case *c = &p->cases[g->taken[i].c];

        for (int k = 0; k < c->nkernels && k < LAUNCH_KERNELS_MAX; k++)
            add_module(&all, &p->module[c->kernel[k].module]);
    }
    if (loops)
        add_module(&all, &control);
    program_ptx(&all, out);
    free(all.module);
    return !out->failed;
}

/* Two kernels of one name would have got other names. */
static bool has_all(const struct gathering *g, cu_module module)
{
    const struct driver *cu = &g->taken[0].stage->gpu->cu;
    cu_function function;
    bool has = true;

    for (int i = 0; i < g->count && has; i++) {
        const struct prog_case *c = &g->taken[i].stage->program->cases[g->taken[i].c];

        for (int k = 0; k < c->nkernels && has; k++)
            has = cu->ModuleGetFunction(&function, module, c->kernel[k].name) == CU_OK;
    }
    return has;
}

static bool load(const struct gathering *g, bool loops, cu_module *out)
{
    const struct driver *cu = &g->taken[0].stage->gpu->cu;
    struct str text = { 0 };
    bool ok = merge(g, loops, &text) && cu->ModuleLoadDataEx(out, text.text, 0, NULL, NULL) == CU_OK;

    str_finish(&text);
    if (ok && has_all(g, *out))
        return true;
    if (ok)
        cu->ModuleUnload(*out);
    *out = NULL;
    return false;
}

static void install(const struct gathering *g)
{
    for (int i = 0; i < g->count; i++) {
        struct ptxgen_loaded *l = g->taken[i].stage;
        const struct prog_case *c = &l->program->cases[g->taken[i].c];

        pthread_mutex_lock(&l->lock);
        l->lent = g->of->together;
        for (int k = 0; k < c->nkernels; k++)
            if (!l->module[c->kernel[k].module])
                l->module[c->kernel[k].module] = l->lent;
        pthread_mutex_unlock(&l->lock);
    }
}

void together_load(struct ptxgen_session *s, struct ptxgen_loaded *l, const struct run_args *run,
                   const struct stages_layout *layout, int64_t steps, bool loops, cu_stream stream)
{
    struct loaded_stages *of = l->stages;
    struct gathering g = { .of = of };
    const struct stages_doer doer = { &g, gather, copy, NULL, true };
    const double begin = session_now();
    struct fault f;

    if (of->met || !load_outside_capture(l, stream, "", &f) || atomic_exchange(&of->met, true))
        return;
    for (int i = 0; i < STEPS && i < steps; i++)
        stages_step(of->p, run, layout, NULL, i, &doer);
    if (g.count < 2 || !make_all(&g))
        return;
    pthread_mutex_lock(&l->lock);
    if (load(&g, loops && !of->loop.module, &of->together)) {
        install(&g);
        if (loops && !of->loop.module)
            of->loop.module = of->together;
        if (s)
            session_log(s, PTXGEN_LOG_INFO, begin, "%s: the code of %d cases made and loaded together",
                        l->program->name, g.count);
    }
    pthread_mutex_unlock(&l->lock);
}
