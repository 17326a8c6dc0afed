/* SPDX-License-Identifier: Apache-2.0 */
/* kept_graphs.c - graphs of stages: kept for a stream, and started again by later launches, with one call for all stages.
 *
 * All arguments of a launch together are the key of a graph.  A loop that ends on a condition becomes a graph at once.
 * Launches of a fixed number of steps are walked (stages.c) until the same arguments come for the third time.  While the
 * caller captures, the nodes of a loop become part of the caller's graph.
 *
 * What a graph holds is captured in a stream that belongs to the caller's stream, and works in the memory that stages
 * keep for it.
 */
#include <stdlib.h>
#include <string.h>

#include "launch_graph.h"

enum { GRAPHS_MAX = 32, WALKS = 2, LAUNCHES_MIN = 3, LAUNCHES_MAX = 1000 };

/* ---- stages into a graph --------------------------------------------------------------------- */
bool staging_run(void *user, int stage, const struct run_args *given)
{
    struct staging *m = user;
    const ptxgen_arguments args = { given->size, given->input, given->output, (const ptxgen_value *)given->param };
    struct ptxgen_loaded *l = m->l ? m->l->stages->stage[stage] : NULL;

    if (m->ranks)
        return loop_run_rank(m, stage, given);
    if (m->prepares) {
        m->status = ptxgen_prepare(m->s, l, &args, m->stream);
        return m->status == PTXGEN_OK;
    }
    if (m->branches && !branches_before_stage(m->branches, stage, l->program, given, m->f))
        return false;
    m->status = ptxgen_launch(m->s, l, &args, m->stream, NULL);
    return m->status == PTXGEN_OK && (!m->branches || branches_after(m->branches, stage, m->f));
}

bool staging_copy(void *user, void *to, const void *from, int64_t bytes)
{
    struct staging *m = user;

    if (m->branches && !branches_join(m->branches, m->f))
        return false;
    branches_free(m->branches); /* copies are the last */
    m->branches = NULL;
    if (m->ranks)
        m->status = m->ranks->copy(m->ranks->user, to, from, bytes, m->stream);
    else if (!m->prepares)
        m->status = ptxgen_gpu_copy(m->s, m->gpu, to, from, (size_t)bytes, m->stream);
    return m->status == PTXGEN_OK;
}

/* All stages and steps. */
static bool walk(struct staging *m)
{
    const struct stages_doer doer = { m, staging_run, staging_copy, NULL, m->prepares };

    return stages_walk(m->l->stages->p, m->args, m->layout, m->memory, &doer);
}

static bool fill(struct staging *m, const struct loop_place *place, struct growing *g)
{
    bool ok;

    if (place)
        return loop_fill(m, place, g);
    m->stream = g->stream;
    if (!graph_open(g, m->f))
        return false;
    m->branches = branches_new(g->cu, g->stream, m->f);
    ok = m->branches && walk(m) && (!m->branches || branches_join(m->branches, m->f));
    branches_free(m->branches);
    m->branches = NULL;
    return graph_close(g, ok, m->f);
}

static bool prepare(struct staging *m, const struct loop_place *place)
{
    bool ok;

    m->prepares = true;
    m->stream = m->inner;
    ok = place ? loop_prepare(m, place) : walk(m);
    m->prepares = false;
    return ok && CU(m->f, &m->gpu->cu, StreamSynchronize(m->inner));
}

bool kept_make(struct staging *m, const struct loop_place *place, unsigned long long flags, cu_graph_exec *exec)
{
    const struct driver *cu = &m->gpu->cu;
    struct growing g = { .cu = cu, .stream = m->inner };
    bool ok;

    if (!prepare(m, place) || !CU(m->f, cu, GraphCreate(&g.graph, 0)))
        return false;
    ok = fill(m, place, &g) && graph_instantiate(cu, g.graph, flags, exec, m->f);
    cu->GraphDestroy(g.graph);
    return ok;
}

/* ---- graphs by arguments --------------------------------------------------------------------- */
static size_t key_length(const struct program *p)
{
    return (size_t)(p->nsizes + p->ninputs + p->noutputs + p->nparams);
}

static void key_fill(const struct program *p, const struct run_args *args, int64_t *key)
{
    for (int i = 0; i < p->nsizes; i++)
        *key++ = args->size[i];
    for (int i = 0; i < p->ninputs; i++)
        *key++ = (int64_t)(intptr_t)args->input[i];
    for (int i = 0; i < p->noutputs; i++)
        *key++ = (int64_t)(intptr_t)args->output[i];
    for (int i = 0; i < p->nparams; i++)
        *key++ = args->param[i].i;
}

static void graph_free(const struct driver *cu, struct kept_graph *g)
{
    if (g->exec)
        cu->GraphExecDestroy(g->exec);
    free(g);
}

/* What there is with the key, taken out of the list; NULL: nothing. */
static struct kept_graph *take(struct kept *of, const struct driver *cu, size_t key_bytes, const int64_t *key,
                               cu_stream stream)
{
    struct kept_graph **at = &of->first, *g;
    int count = 1;

    while (*at && memcmp((*at)->key, key, key_bytes) != 0 && ((*at)->next || count < GRAPHS_MAX)) {
        at = &(*at)->next;
        count++;
    }
    g = *at;
    if (!g)
        return NULL;
    *at = g->next;
    if (memcmp(g->key, key, key_bytes) == 0)
        return g;
    if (g->exec)
        cu->StreamSynchronize(stream);
    graph_free(cu, g);
    return NULL;
}

struct kept_graph *kept_find(struct kept *of, const struct driver *cu, const struct program *shape,
                             const struct run_args *args, cu_stream stream)
{
    const size_t bytes = key_length(shape) * sizeof(int64_t);
    struct kept_graph *fresh = calloc(1, sizeof *fresh + bytes), *g;

    if (!fresh)
        return NULL;
    key_fill(shape, args, fresh->key);
    g = take(of, cu, bytes, fresh->key, stream);
    if (g)
        free(fresh);
    else
        g = fresh;
    g->next = of->first;
    of->first = g;
    return g;
}

void kept_forget(struct kept *of, const struct driver *cu)
{
    for (struct kept_graph *g = of->first, *next; g; g = next) {
        next = g->next;
        graph_free(cu, g);
    }
    of->first = NULL;
}

/* ---- what a stream keeps --------------------------------------------------------------------- */
static struct kept *kept_of(const struct kept_launch *x, struct fault *f)
{
    struct kept *of = x->block->kept;

    if (of)
        return of;
    of = calloc(1, sizeof *of);
    if (!of || !CU(f, &x->l->gpu->cu, StreamCreate(&of->inner, CU_STREAM_FLAG_NON_BLOCKING))) {
        free(of);
        return NULL;
    }
    x->block->kept = of;
    return of;
}

void kept_free(struct ptxgen_loaded *l, struct kept *of, const cu_stream *stream)
{
    const struct driver *cu = &l->gpu->cu;

    if (!of)
        return;
    if (stream)
        cu->StreamSynchronize(*stream);
    kept_forget(of, cu);
    for (int i = 0; i < l->stages->p->nstages; i++)
        ptxgen_stream_release(NULL, l->stages->stage[i], of->inner);
    cu->StreamDestroy(of->inner);
    free(of);
}

bool kept_reset(struct ptxgen_loaded *l, const struct kept *of, struct fault *f)
{
    for (int i = 0; i < l->stages->p->nstages; i++)
        if (ptxgen_stream_reset(NULL, l->stages->stage[i], of->inner) != PTXGEN_OK)
            return fault_set(f, PTXGEN_NO_DEVICE, D_CUDA_CALL, "the memory of a loop could not be made zero");
    return CU(f, &l->gpu->cu, StreamSynchronize(of->inner));
}

/* ---- the calls ------------------------------------------------------------------------------- */
static bool has_arrays(const struct kept_launch *x)
{
    const struct program *p = x->l->program;
    bool has = (x->args->input || !p->ninputs) && (x->args->output || !p->noutputs);

    for (int i = 0; i < p->ninputs && has; i++)
        has = x->args->input[i] != NULL;
    for (int i = 0; i < p->noutputs && has; i++)
        has = x->args->output[i] != NULL;
    return has;
}

/* Fewer launches would gain nothing, and more make a large graph. */
static bool is_worth(const struct kept_launch *x)
{
    const struct prog_stages *p = x->l->stages->p;
    const char *why;
    const int64_t steps = stages_steps(p, x->args->param, &why);

    return steps <= LAUNCHES_MAX && steps * p->nstages >= LAUNCHES_MIN && steps * p->nstages <= LAUNCHES_MAX;
}

/* Has a stage a loop of its own, of any number of launches? */
static bool has_inner_loop(const struct loaded_stages *of)
{
    for (int i = 0; i < of->p->nstages; i++) {
        const struct program *p = of->stage[i]->program;

        for (int c = 0; c < p->ncases; c++)
            for (int k = 0; k < p->cases[c].nsteps; k++)
                if (p->cases[c].step[k].repeat.n)
                    return true;
    }
    return false;
}

/* Into the caller's graph. */
static ptxgen_status capture(struct staging *m, const struct kept_launch *x)
{
    struct growing g;

    if (!x->block->kept) {
        load_outside_capture(x->l, x->stream, "a stream for the loop would be made", m->f);
        return fault_report(x->s, m->f);
    }
    m->inner = x->block->kept->inner;
    m->s = x->s;
    if (graph_of_capture(&g, &x->l->gpu->cu, x->stream, m->f) && loop_fill(m, x->place, &g))
        return PTXGEN_OK;
    return m->status != PTXGEN_OK ? m->status : fault_report(x->s, m->f);
}

static bool load(struct ptxgen_loaded *l, struct fault *f)
{
    bool ok;

    pthread_mutex_lock(&l->lock);
    ok = loop_load(l->gpu, &l->stages->loop, f);
    pthread_mutex_unlock(&l->lock);
    return ok;
}

/* The graph for the arguments, made where it is time for that; NULL: the host walks, and *m->f or m->status may say
 * why. */
static struct kept_graph *graph_for(struct staging *m, const struct kept_launch *x)
{
    struct kept *of = !x->place || load(x->l, m->f) ? kept_of(x, m->f) : NULL;
    struct kept_graph *g = of ? kept_find(of, &x->l->gpu->cu, x->l->program, x->args, x->stream) : NULL;

    if (!g || g->exec)
        return g;
    if (g->refused || (!x->place && g->walks++ < WALKS))
        return NULL;
    m->inner = of->inner;
    g->refused = (!x->place && has_inner_loop(x->l->stages)) || !kept_make(m, x->place, 0, &g->exec);
    return g->refused ? NULL : g;
}

static void say_refused(struct staging *m, const struct kept_launch *x)
{
    x->l->stages->refused = true;
    session_log(x->s, PTXGEN_LOG_INFO, 0, "%s: the host reads the condition: %s", x->l->program->name,
                m->status == PTXGEN_OK ? m->f->text : "a stage could not be captured");
}

/* False: there is no graph, and nothing was launched. */
static bool launch_graph(struct staging *m, const struct kept_launch *x, ptxgen_status *status)
{
    struct kept_graph *g = graph_for(m, x);

    if (!g && x->place)
        say_refused(m, x);
    if (!g || x->prepares)
        return false; /* what is prepared serves captures, too: the walk prepares the caller's stream */
    *status = CU(m->f, &x->l->gpu->cu, GraphLaunch(g->exec, x->stream)) ? PTXGEN_OK : fault_report(x->s, m->f);
    return true;
}

bool kept_launch(const struct kept_launch *x, ptxgen_status *status)
{
    struct fault f = { .status = PTXGEN_NO_MEMORY, .code = D_LAUNCH_ARGUMENT, .text = "out of host memory" };
    struct staging m = { .gpu = x->l->gpu,
                         .l = x->l,
                         .code = &x->l->stages->loop,
                         .args = x->args,
                         .layout = x->layout,
                         .f = &f,
                         .memory = x->block ? (char *)(uintptr_t)x->block->scratch : NULL };
    int capturing = CU_CAPTURE_NONE;

    if (!x->block || (x->prepares && (!x->place || !has_arrays(x))) || (!x->place && !is_worth(x)))
        return false;
    if (!CU(&f, &x->l->gpu->cu, StreamIsCapturing(x->stream, &capturing))) {
        *status = fault_report(x->s, &f);
        return true;
    }
    if (capturing == CU_CAPTURE_NONE)
        return launch_graph(&m, x, status);
    if (x->place)
        *status = capture(&m, x);
    return x->place != NULL;
}
