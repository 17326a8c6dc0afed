/* SPDX-License-Identifier: Apache-2.0 */
/* fake_graphs.c - the fake driver's captures and graphs; see fake_cuda.h. */
#include <string.h>

#include "fake_graphs.h"

enum { CAPTURES = 8, CONDITIONS = FAKE_NODES, CAPTURE_INVALIDATED = 901 };

struct capture {
    const void *stream;
    int graph, before; /* before: fake.capturing, as it was */
    bool made;         /* the graph: it belongs to the code that ends the capture */
    int nlast, last[FAKE_AFTER];
};
static struct capture capture[CAPTURES];
static int ncaptures, graphs;
static int condition[CONDITIONS], nconditions;

static struct capture *begin(const void *stream, int graph)
{
    struct capture *c = &capture[ncaptures++];

    *c = (struct capture){ .stream = stream, .graph = graph, .before = fake.capturing };
    fake.capturing = 1;
    return c;
}

/* A test may say that streams are captured, without a call. */
static struct capture *capture_of(const void *stream)
{
    for (int i = 0; i < ncaptures; i++)
        if (capture[i].stream == stream)
            return &capture[i];
    return fake.capturing && !ncaptures ? begin(stream, ++graphs) : NULL;
}

static struct fake_node *add(int graph, const char *what)
{
    static struct fake_node overflow;
    struct fake_node *n = fake.nnodes < FAKE_NODES ? &fake.node[fake.nnodes++] : &overflow;

    *n = (struct fake_node){ .what = what, .graph = graph };
    return n;
}

static void follow(struct fake_node *n, const int *after, int count)
{
    n->nafter = count;
    memcpy(n->after, after, (size_t)count * sizeof *after);
}

bool fake_capture(const void *stream, const char *what, const struct fake_call *call)
{
    struct capture *c = fake.capturing ? capture_of(stream) : NULL;
    struct fake_node *n;

    if (!c)
        return false;
    n = add(c->graph, what);
    n->call = *call;
    follow(n, c->last, c->nlast);
    c->nlast = 1;
    c->last[0] = fake.nnodes;
    return true;
}

/* ---- running --------------------------------------------------------------------------------- */
/* As the kernels of src/launch/loop.c, which read the flag where it matters: a log tells of that. */
static bool decides(const struct fake_call *c)
{
    static bool held, unread;

    if (strcmp(c->kernel, "ptxgen_decide") == 0) {
        int64_t *state = (int64_t *)(uintptr_t)c->param[1];

        if (c->param[5])
            state[0] = state[1] = 0;
        if (!state[1]) {
            unread = ++state[0] >= (int64_t)c->param[2];
            held = !unread && fake_holds(c->param[0]);
            state[1] = unread || held;
        }
        if (c->param[4])
            condition[c->param[3]] = !state[1];
        return true;
    }
    if (strcmp(c->kernel, "ptxgen_whether") == 0) {
        held = unread ? fake_holds(c->param[0]) : held;
        unread = false;
        condition[c->param[2]] = held == (c->param[1] != 0);
        return true;
    }
    if (strcmp(c->kernel, "ptxgen_odd") != 0)
        return false;
    condition[c->param[1]] = (*(int64_t *)(uintptr_t)c->param[0] - 1) % 2 != 0;
    return true;
}

static void run(int graph)
{
    for (int i = 0; i < fake.nnodes; i++) {
        const struct fake_node *n = &fake.node[i];

        if (n->graph != graph)
            continue;
        if (strcmp(n->what, "copy") == 0) {
            fake_do_copy(&n->call);
        } else if (strcmp(n->what, "fill") == 0) {
            fake_do_fill(&n->call);
        } else if (strcmp(n->what, "if") == 0) {
            if (condition[n->condition])
                run(n->body);
        } else if (strcmp(n->what, "while") == 0) {
            while (condition[n->condition])
                run(n->body);
        } else if (!decides(&n->call)) {
            fake_record("run", NULL, 0, 0)->kernel = n->what;
            fake_do_launch(&n->call);
        }
    }
}

/* ---- captures -------------------------------------------------------------------------------- */
/* A capture of another thread refuses what is not safe beside it, and is spoiled, unless this thread's mode is relaxed. */
static _Thread_local int capture_mode;
ENTRY(cuThreadExchangeStreamCaptureMode, int *mode)
{
    const int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return CU_OK;
}
bool fake_spoils_capture(void)
{
    const bool spoils = fake.foreign_capture && capture_mode != CU_CAPTURE_RELAXED;
    fake.capture_spoiled |= spoils;
    return spoils;
}
ENTRY(cuStreamIsCapturing, cu_stream stream, int *status)
{
    (void)stream;
    *status = fake.capturing;
    return fake_result("cuStreamIsCapturing");
}
ENTRY(cuStreamBeginCapture_v2, cu_stream stream, int mode)
{
    (void)mode;
    begin(stream, ++graphs)->made = true;
    fake.capture_spoiled = 0;
    return fake_result("cuStreamBeginCapture");
}
ENTRY(cuStreamBeginCaptureToGraph, cu_stream stream, cu_graph graph, const cu_graph_node *after, const void *edge,
      size_t count, int mode)
{
    struct capture *c;

    (void)edge, (void)mode;
    if (fake_result("cuStreamBeginCaptureToGraph") != CU_OK)
        return fake_result("cuStreamBeginCaptureToGraph");
    c = begin(stream, (int)(uintptr_t)graph);
    c->nlast = (int)count;
    for (size_t i = 0; i < count; i++)
        c->last[i] = (int)(uintptr_t)after[i];
    fake.capture_spoiled = 0;
    return CU_OK;
}
ENTRY(cuStreamEndCapture, cu_stream stream, cu_graph *graph)
{
    struct capture *c = capture_of(stream), old = *c;

    *graph = (cu_graph)(uintptr_t)old.graph;
    fake.capturing = old.before;
    *c = capture[--ncaptures];
    return fake.capture_spoiled ? CAPTURE_INVALIDATED : fake_count("cuStreamEndCapture", old.made);
}
ENTRY(cuStreamGetCaptureInfo_v2, cu_stream stream, int *status, unsigned long long *id, cu_graph *graph,
      const cu_graph_node **after, size_t *count)
{
    static cu_graph_node node[FAKE_AFTER];
    const struct capture *c = capture_of(stream);

    *status = c != NULL;
    if (!c)
        return fake_result("cuStreamGetCaptureInfo");
    if (id)
        *id = 1;
    if (graph)
        *graph = (cu_graph)(uintptr_t)c->graph;
    for (int i = 0; i < c->nlast; i++)
        node[i] = (cu_graph_node)(uintptr_t)c->last[i];
    *after = node;
    *count = (size_t)c->nlast;
    return fake_result("cuStreamGetCaptureInfo");
}
ENTRY(cuStreamUpdateCaptureDependencies, cu_stream stream, cu_graph_node *after, size_t count, unsigned flags)
{
    struct capture *c = capture_of(stream);

    (void)flags;
    c->nlast = (int)count;
    for (size_t i = 0; i < count; i++)
        c->last[i] = (int)(uintptr_t)after[i];
    return fake_result("cuStreamUpdateCaptureDependencies");
}

/* ---- graphs ---------------------------------------------------------------------------------- */
ENTRY(cuGraphCreate, cu_graph *graph, unsigned flags)
{
    (void)flags;
    *graph = (cu_graph)(uintptr_t)++graphs;
    return fake_count("cuGraphCreate", 1);
}
ENTRY(cuGraphConditionalHandleCreate, cu_condition *out, cu_graph graph, cu_context context, unsigned value,
      unsigned flags)
{
    (void)graph, (void)context, (void)flags;
    if (nconditions == CONDITIONS)
        return CU_OUT_OF_MEMORY;
    condition[nconditions] = (int)value;
    *out = (cu_condition)nconditions++;
    return fake_result("cuGraphConditionalHandleCreate");
}
ENTRY(cuGraphAddNode_v2, cu_graph_node *node, cu_graph graph, const cu_graph_node *after, const void *edge,
      size_t count, struct cu_condition_node *params)
{
    static cu_graph body;
    struct fake_node *n;

    (void)edge;
    if (fake_result("cuGraphAddNode") != CU_OK)
        return fake_result("cuGraphAddNode");
    n = add((int)(uintptr_t)graph, params->kind == CU_CONDITION_WHILE ? "while" : "if");
    n->condition = (int)params->condition;
    n->body = ++graphs;
    n->nafter = (int)count;
    for (size_t i = 0; i < count; i++)
        n->after[i] = (int)(uintptr_t)after[i];
    body = (cu_graph)(uintptr_t)n->body;
    params->body = &body;
    *node = (cu_graph_node)(uintptr_t)fake.nnodes;
    return CU_OK;
}
ENTRY(cuGraphInstantiateWithFlags, cu_graph_exec *exec, cu_graph graph, unsigned long long flags)
{
    if (flags & fake.no_flags)
        return CU_INVALID_DEVICE;
    fake.graph_flags = flags;
    *exec = (cu_graph_exec)(void *)graph;
    return fake_count("cuGraphInstantiateWithFlags", 1);
}
ENTRY(cuGraphLaunch, cu_graph_exec exec, cu_stream stream)
{
    fake_record("cuGraphLaunch", stream, 0, 0);
    run((int)(uintptr_t)exec);
    return fake_result("cuGraphLaunch");
}
GIVE_BACK(cuGraphDestroy, "cuGraphDestroy", cu_graph)
GIVE_BACK(cuGraphExecDestroy, "cuGraphExecDestroy", cu_graph_exec)
