/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - stages that repeat until a condition holds, in a CUDA graph: the host takes no part in the loop.
 *
 *     step 0, decide
 *     while again:
 *         step 1, decide
 *         if second:            only where an output has a twin: steps take turns between two memories
 *             step 2, decide
 *     if home: copy             where the last step has written the twins
 *
 * `decide` is a kernel of one thread: it reads the flag that the last stage has written, counts the step, and sets the
 * conditions.  In a capture of the caller's the nodes become part of the caller's graph.  Elsewhere a launch starts a
 * graph that was made for the same arguments, or makes one.  Steps inside of the loop are captured in a stream that
 * belongs to the caller's stream, and work in the memory that is kept for it.
 *
 * Conditional nodes need a driver of CUDA 12.4.  Where it is older, where an expression reads `step`, and where the
 * driver refuses the graph, the launcher's walk (stages.c) reads the flag after each step.
 */
#include <stdlib.h>
#include <string.h>

#include "launch_graph.h"
#include "launch_stages.h"

enum { DRIVER_WITH_CONDITIONS = 12040, GRAPHS_MAX = 32, AGAIN = 1, SECOND = 2 };

static const char *const control_code =
    ".version 8.4\n.target sm_75\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 condition, .param .b32 value);\n"
    ".visible .entry ptxgen_decide(.param .u64 flag, .param .u64 counter, .param .u64 steps, .param .u64 again,\n"
    "    .param .u64 second, .param .u32 sets, .param .u32 first)\n"
    "{\n"
    "    .reg .pred %ended, %p;\n    .reg .b16 %flag;\n    .reg .b32 %goes, %sets, %first;\n"
    "    .reg .b64 %at, %count, %steps, %condition;\n"
    "    ld.param.u64 %at, [counter];\n    ld.param.u32 %first, [first];\n"
    "    ld.global.u64 %count, [%at];\n    setp.ne.u32 %p, %first, 0;\n"
    "    selp.b64 %count, 0, %count, %p;\n    add.u64 %count, %count, 1;\n    st.global.u64 [%at], %count;\n"
    "    ld.param.u64 %at, [flag];\n    ld.global.u8 %flag, [%at];\n    ld.param.u64 %steps, [steps];\n"
    "    setp.ge.s64 %ended, %count, %steps;\n    setp.ne.or.u16 %ended, %flag, 0, %ended;\n"
    "    selp.b32 %goes, 0, 1, %ended;\n    ld.param.u32 %sets, [sets];\n"
    "    and.b32 %first, %sets, 1;\n    setp.eq.u32 %p, %first, 0;\n    @%p bra SECOND;\n"
    "    ld.param.u64 %condition, [again];\n"
    "    { .param .b64 c; .param .b32 v; st.param.b64 [c], %condition; st.param.b32 [v], %goes;\n"
    "      call.uni cudaGraphSetConditional, (c, v); }\n"
    "SECOND:\n"
    "    and.b32 %first, %sets, 2;\n    setp.eq.u32 %p, %first, 0;\n    @%p bra DONE;\n"
    "    ld.param.u64 %condition, [second];\n"
    "    { .param .b64 c; .param .b32 v; st.param.b64 [c], %condition; st.param.b32 [v], %goes;\n"
    "      call.uni cudaGraphSetConditional, (c, v); }\n"
    "DONE:\n    ret;\n}\n"
    ".visible .entry ptxgen_home(.param .u64 counter, .param .u64 home)\n"
    "{\n"
    "    .reg .b32 %odd;\n    .reg .b64 %at, %count, %condition;\n"
    "    ld.param.u64 %at, [counter];\n    ld.global.u64 %count, [%at];\n    sub.u64 %count, %count, 1;\n"
    "    and.b64 %count, %count, 1;\n    cvt.u32.u64 %odd, %count;\n    ld.param.u64 %condition, [home];\n"
    "    { .param .b64 c; .param .b32 v; st.param.b64 [c], %condition; st.param.b32 [v], %odd;\n"
    "      call.uni cudaGraphSetConditional, (c, v); }\n"
    "    ret;\n}\n";

/* A graph for one set of arguments. */
struct loop_graph {
    struct loop_graph *next; /* used longer ago */
    cu_graph_exec exec;
    int64_t key[];
};

/* What a stream of the caller's keeps. */
struct loop_memory {
    cu_stream inner; /* where what the graphs hold is captured */
    struct loop_graph *first;
};

/* ---- making nodes ---------------------------------------------------------------------------- */
struct making {
    const struct loop_launch *x;
    struct ptxgen_session *s; /* told of faults; NULL: nobody is */
    char *memory;             /* arrays between stages, then the counter */
    cu_stream inner, stream;  /* stream: of the launches now */
    struct branches *branches;
    int64_t steps;
    bool twins, prepares;
    ptxgen_status status; /* of a call that has told its fault */
    struct fault *f;
};

static const struct driver *driver_of(const struct making *m) { return &m->x->l->gpu->cu; }

static bool run(void *user, int stage, const struct run_args *given)
{
    struct making *m = user;
    const ptxgen_arguments args = { given->size, given->input, given->output, (const ptxgen_value *)given->param };
    struct ptxgen_loaded *l = m->x->l->stages->stage[stage];

    if (m->prepares) {
        m->status = ptxgen_prepare(m->s, l, &args, m->stream);
        return m->status == PTXGEN_OK;
    }
    if (!branches_before(m->branches, stage, l->program, given, m->f))
        return false;
    m->status = ptxgen_launch(m->s, l, &args, m->stream, NULL);
    return m->status == PTXGEN_OK && branches_after(m->branches, stage, m->f);
}

static bool copy(void *user, void *to, const void *from, int64_t bytes)
{
    struct making *m = user;

    m->status = ptxgen_gpu_copy(m->s, m->x->l->gpu, to, from, (size_t)bytes, m->stream);
    return m->status == PTXGEN_OK;
}

static bool step(struct making *m, int number)
{
    const struct stages_doer doer = { m, run, copy, NULL };
    const struct prog_stages *p = m->x->l->stages->p;
    bool ok;

    if (m->prepares)
        return stages_step(p, m->x->args, m->x->layout, m->memory, number, &doer);
    m->branches = branches_new(driver_of(m), m->stream, m->f);
    ok = m->branches && stages_step(p, m->x->args, m->x->layout, m->memory, number, &doer) &&
         branches_join(m->branches, m->f);
    branches_free(m->branches);
    return ok;
}

static void *counter_of(const struct making *m) { return m->memory + m->x->layout->bytes; }

/* One thread. */
static bool single(const struct making *m, cu_function f, void **params)
{
    return CU(m->f, driver_of(m), LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, m->stream, params, NULL));
}

/* second NULL: there is none. */
static bool decide(const struct making *m, bool first, cu_condition again, const cu_condition *second)
{
    const struct loaded_stages *of = m->x->l->stages;
    void *flag = m->memory + m->x->layout->offset[of->p->until], *counter = counter_of(m);
    int64_t steps = m->steps;
    cu_condition other = second ? *second : 0;
    unsigned sets = second ? AGAIN | SECOND : AGAIN, begins = first;

    return single(m, of->loop.decide, (void *[]){ &flag, &counter, &steps, &again, &other, &sets, &begins });
}

static bool condition_new(const struct making *m, cu_graph graph, cu_condition *out)
{
    return CU(m->f, driver_of(m), ConditionCreate(out, graph, m->x->l->gpu->context, 0, 0));
}

/* A step, and what follows from it. */
static bool add_step(struct making *m, struct growing *g, int number, cu_condition again, const cu_condition *second)
{
    m->stream = g->stream;
    return graph_open(g, m->f) && graph_close(g, step(m, number) && decide(m, number == 0, again, second), m->f);
}

static bool add_condition(struct making *m, struct growing *g, int kind, cu_condition condition, struct growing *body)
{
    *body = (struct growing){ .cu = g->cu, .stream = m->inner };
    return graph_add_condition(g, kind, condition, m->x->l->gpu->context, &body->graph, m->f);
}

/* Step 1, and step 2 inside. */
static bool fill_loop(struct making *m, struct growing *loop, cu_condition again)
{
    struct growing body;
    cu_condition second;

    if (!m->twins)
        return add_step(m, loop, 1, again, NULL);
    return condition_new(m, loop->graph, &second) && add_step(m, loop, 1, again, &second) &&
           add_condition(m, loop, CU_CONDITION_IF, second, &body) && add_step(m, &body, 2, again, NULL);
}

/* After the loop. */
static bool bring_home(struct making *m, struct growing *g)
{
    const struct loaded_stages *of = m->x->l->stages;
    const struct stages_doer doer = { m, run, copy, NULL };
    void *counter = counter_of(m);
    struct growing body;
    cu_condition home;

    m->stream = g->stream;
    if (!condition_new(m, g->graph, &home) || !graph_open(g, m->f) ||
        !graph_close(g, single(m, of->loop.home, (void *[]){ &counter, &home }), m->f) ||
        !add_condition(m, g, CU_CONDITION_IF, home, &body))
        return false;
    m->stream = body.stream;
    return graph_open(&body, m->f) &&
           graph_close(&body, stages_twins_home(of->p, m->x->args, m->x->layout, m->memory, &doer), m->f);
}

static bool fill(struct making *m, struct growing *g)
{
    struct growing loop;
    cu_condition again;

    return condition_new(m, g->graph, &again) && add_step(m, g, 0, again, NULL) &&
           add_condition(m, g, CU_CONDITION_WHILE, again, &loop) && fill_loop(m, &loop, again) &&
           (!m->twins || bring_home(m, g));
}

/* All that launches in the inner stream keep. */
static bool prepare_inner(struct making *m)
{
    bool ok = true;

    m->prepares = true;
    m->stream = m->inner;
    for (int i = 0; i <= (m->twins ? 2 : 1) && ok; i++)
        ok = step(m, i);
    m->prepares = false;
    return ok && CU(m->f, driver_of(m), StreamSynchronize(m->inner));
}

static bool make(struct making *m, cu_graph_exec *exec)
{
    const struct driver *cu = driver_of(m);
    struct growing g = { .cu = cu, .stream = m->inner };
    bool ok;

    if (!prepare_inner(m) || !CU(m->f, cu, GraphCreate(&g.graph, 0)))
        return false;
    ok = fill(m, &g) && CU(m->f, cu, GraphInstantiate(exec, g.graph, 0));
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

static void graph_free(const struct driver *cu, struct loop_graph *g)
{
    if (g->exec)
        cu->GraphExecDestroy(g->exec);
    free(g);
}

/* A graph with the key, which is taken out of the list; NULL: none.  The graph that was used least is given up where
 * there are as many as there may be, when the stream has done its work. */
static struct loop_graph *graph_take(const struct loop_launch *x, struct loop_memory *of, const int64_t *key)
{
    const size_t bytes = key_length(x->l->program) * sizeof *key;
    struct loop_graph **at = &of->first, *g;
    int count = 1;

    while (*at && memcmp((*at)->key, key, bytes) != 0 && ((*at)->next || count < GRAPHS_MAX)) {
        at = &(*at)->next;
        count++;
    }
    g = *at;
    if (!g)
        return NULL;
    *at = g->next;
    if (memcmp(g->key, key, bytes) == 0)
        return g;
    x->l->gpu->cu.StreamSynchronize(x->stream);
    graph_free(&x->l->gpu->cu, g);
    return NULL;
}

/* The graph for these arguments, now the first of the list; NULL: it cannot be made. */
static struct loop_graph *graph_for(struct making *m, struct loop_memory *of)
{
    const struct program *p = m->x->l->program;
    struct loop_graph *fresh = calloc(1, sizeof *fresh + key_length(p) * sizeof *fresh->key), *g;

    if (!fresh)
        return NULL;
    key_fill(p, m->x->args, fresh->key);
    g = graph_take(m->x, of, fresh->key);
    if (!g && make(m, &fresh->exec)) {
        g = fresh;
        fresh = NULL;
    }
    if (fresh)
        graph_free(driver_of(m), fresh);
    if (g) {
        g->next = of->first;
        of->first = g;
    }
    return g;
}

/* ---- what a stream keeps --------------------------------------------------------------------- */
static struct loop_memory *memory_of(const struct loop_launch *x, struct fault *f)
{
    struct loop_memory *of = x->block->loop;

    if (of)
        return of;
    of = calloc(1, sizeof *of);
    if (!of || !CU(f, &x->l->gpu->cu, StreamCreate(&of->inner, CU_STREAM_FLAG_NON_BLOCKING))) {
        free(of);
        return NULL;
    }
    x->block->loop = of;
    return of;
}

void loop_free(struct ptxgen_loaded *l, struct loop_memory *of, const cu_stream *stream)
{
    const struct driver *cu = &l->gpu->cu;

    if (!of)
        return;
    if (stream)
        cu->StreamSynchronize(*stream);
    for (struct loop_graph *g = of->first, *next; g; g = next) {
        next = g->next;
        graph_free(cu, g);
    }
    for (int i = 0; i < l->stages->p->nstages; i++)
        ptxgen_stream_release(NULL, l->stages->stage[i], of->inner);
    cu->StreamDestroy(of->inner);
    free(of);
}

bool loop_reset(struct ptxgen_loaded *l, const struct loop_memory *of, struct fault *f)
{
    for (int i = 0; i < l->stages->p->nstages; i++)
        if (ptxgen_stream_reset(NULL, l->stages->stage[i], of->inner) != PTXGEN_OK)
            return fault_set(f, PTXGEN_NO_DEVICE, D_CUDA_CALL, "the memory of a loop could not be made zero");
    return CU(f, &l->gpu->cu, StreamSynchronize(of->inner));
}

/* ---- the calls ------------------------------------------------------------------------------- */
static bool driver_can(const struct driver *cu)
{
    return cu->version >= DRIVER_WITH_CONDITIONS && cu->GraphCreate && cu->GraphAddNode && cu->ConditionCreate &&
           cu->BeginCaptureTo && cu->GetCaptureInfo && cu->UpdateCapture;
}

static bool reads_step(const struct prog_stages *p)
{
    for (int i = 0; i < p->nstages; i++)
        for (int k = 0; k < p->stage[i].nparams; k++)
            if (p->stage[i].param[k] < 0)
                return true;
    return false;
}

const char *loop_refuses(const struct ptxgen_loaded *l)
{
    if (l->stages->loop.refused)
        return "the driver has refused to make a graph of the loop";
    if (reads_step(l->stages->p))
        return "an expression reads `step`";
    return driver_can(&l->gpu->cu) ? NULL : "loops inside of a graph need a driver of CUDA 12.4";
}

/* A driver may know the call and refuse it. */
static bool conditions_work(const struct ptxgen_loaded *l, struct fault *f)
{
    const struct driver *cu = &l->gpu->cu;
    cu_condition condition;
    cu_graph graph;
    bool ok;

    if (!CU(f, cu, GraphCreate(&graph, 0)))
        return false;
    ok = CU(f, cu, ConditionCreate(&condition, graph, l->gpu->context, 0, 0));
    cu->GraphDestroy(graph);
    return ok;
}

/* The kernels that decide. */
static bool load_code(struct ptxgen_loaded *l, struct fault *f)
{
    const struct driver *cu = &l->gpu->cu;
    struct loop_code *c = &l->stages->loop;
    bool ok;

    pthread_mutex_lock(&l->lock);
    ok = c->module || (conditions_work(l, f) && CU(f, cu, ModuleLoadDataEx(&c->module, control_code, 0, NULL, NULL)) &&
                       CU(f, cu, ModuleGetFunction(&c->decide, c->module, "ptxgen_decide")) &&
                       CU(f, cu, ModuleGetFunction(&c->home, c->module, "ptxgen_home")));
    pthread_mutex_unlock(&l->lock);
    return ok;
}

static bool has_arrays(const struct loop_launch *x)
{
    const struct program *p = x->l->program;
    bool has = (x->args->input || !p->ninputs) && (x->args->output || !p->noutputs);

    for (int i = 0; i < p->ninputs && has; i++)
        has = x->args->input[i] != NULL;
    for (int i = 0; i < p->noutputs && has; i++)
        has = x->args->output[i] != NULL;
    return has;
}

/* Into the caller's graph. */
static ptxgen_status capture(struct making *m)
{
    const struct loop_launch *x = m->x;
    struct growing g;

    if (!x->block->loop) {
        load_outside_capture(x->l, x->stream, "a stream for the loop would be made", m->f);
        return fault_report(x->s, m->f);
    }
    m->inner = x->block->loop->inner;
    m->s = x->s;
    if (graph_of_capture(&g, driver_of(m), x->stream, m->f) && fill(m, &g))
        return PTXGEN_OK;
    return m->status != PTXGEN_OK ? m->status : fault_report(x->s, m->f);
}

/* False: there is no graph, and nothing was launched. */
static bool launch_graph(struct making *m, ptxgen_status *status)
{
    const struct loop_launch *x = m->x;
    const struct driver *cu = driver_of(m);
    struct loop_memory *of = load_code(x->l, m->f) ? memory_of(x, m->f) : NULL;
    struct loop_graph *g = NULL;

    if (of) {
        m->inner = of->inner;
        g = graph_for(m, of);
    }
    if (!g) {
        x->l->stages->loop.refused = true;
        session_log(x->s, PTXGEN_LOG_INFO, 0, "%s: the host reads the condition after each step: %s",
                    x->l->program->name, m->status == PTXGEN_OK ? m->f->text : "a stage could not be captured");
        return false;
    }
    if (!x->prepares)
        *status = CU(m->f, cu, GraphLaunch(g->exec, x->stream)) ? PTXGEN_OK : fault_report(x->s, m->f);
    return !x->prepares;
}

bool loop_launch(const struct loop_launch *x, ptxgen_status *status)
{
    const struct prog_stages *p = x->l->stages->p;
    struct fault f = { .status = PTXGEN_NO_MEMORY, .code = D_LAUNCH_ARGUMENT, .text = "out of host memory" };
    struct making m = { .x = x, .f = &f, .memory = (char *)(uintptr_t)x->block->scratch };
    int capturing = CU_CAPTURE_NONE;
    const char *why;

    m.steps = stages_steps(p, x->args->param, &why);
    for (int i = 0; i < p->nfeedback; i++)
        m.twins |= p->feedback[i].twin;
    if (m.steps < 2 || loop_refuses(x->l) || (x->prepares && !has_arrays(x)))
        return false;
    if (!CU(&f, driver_of(&m), StreamIsCapturing(x->stream, &capturing))) {
        *status = fault_report(x->s, &f);
        return true;
    }
    if (capturing == CU_CAPTURE_NONE)
        return launch_graph(&m, status);
    *status = capture(&m);
    return true;
}
