/* SPDX-License-Identifier: Apache-2.0 */
/* fake_graphs.c - the fake driver's captures, events and graphs; see fake_cuda.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fake_graphs.h"

enum { CAPTURES = 64, CONDITIONS = FAKE_NODES, EVENTS = 1024, CAPTURE_INVALIDATED = 901, CAPTURE_MERGE = 902 };

/* A stream may join the capture of another one, by an event. */
struct capture {
    bool used, joined;
    const void *stream;
    int graph;
    bool made; /* the graph: it belongs to the code that ends the capture */
    int nlast, last[FAKE_AFTER];
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows, but for running graphs */
static struct capture capture[CAPTURES];
static struct capture recorded[EVENTS]; /* where the stream of an event was, if it was captured */
static bool said;                       /* a test says that streams are captured, without a call */
static int graphs;
static int condition[CONDITIONS], nconditions;

static int new_graph(void) { return __atomic_add_fetch(&graphs, 1, __ATOMIC_RELAXED); }

static int captures(void)
{
    int n = 0;
    for (int i = 0; i < CAPTURES; i++)
        n += capture[i].used;
    return n;
}

static struct capture *begin(const void *stream, int graph)
{
    struct capture *c = capture;

    if (!fake.capturing)
        memset(capture, 0, sizeof capture); /* what a test said is over */
    said = captures() ? said : fake.capturing;
    while (c->used)
        c++;
    *c = (struct capture){ .used = true, .stream = stream, .graph = graph };
    fake.capturing = 1;
    return c;
}

static struct capture *find(const void *stream)
{
    for (int i = 0; i < CAPTURES; i++)
        if (capture[i].used && capture[i].stream == stream)
            return &capture[i];
    return NULL;
}

static struct capture *capture_of(const void *stream)
{
    struct capture *c = fake.capturing ? find(stream) : NULL;

    return c || !fake.capturing || captures() ? c : begin(stream, new_graph());
}

bool fake_captures(const void *stream)
{
    pthread_mutex_lock(&lock);
    const bool captured = fake.capturing && (!captures() || said || find(stream));
    pthread_mutex_unlock(&lock);
    return captured;
}

static struct fake_node *add(int graph, const char *what)
{
    static struct fake_node overflow;
    struct fake_node *n = fake.nnodes < FAKE_NODES ? &fake.node[fake.nnodes] : &overflow;

    *n = (struct fake_node){ .what = what, .graph = graph };
    __atomic_add_fetch(&fake.nnodes, n != &overflow, __ATOMIC_RELEASE); /* graphs may run meanwhile */
    return n;
}

static void follow(struct fake_node *n, const int *after, int count)
{
    n->nafter = count;
    memcpy(n->after, after, (size_t)count * sizeof *after);
}

struct fake_node *fake_capture(const void *stream, const char *what, const struct fake_call *call)
{
    pthread_mutex_lock(&lock);
    struct capture *c = capture_of(stream);
    struct fake_node *n = c ? add(c->graph, what) : NULL;

    if (n) {
        n->call = *call;
        follow(n, c->last, c->nlast);
        c->nlast = 1;
        c->last[0] = fake.nnodes;
    }
    pthread_mutex_unlock(&lock);
    return n;
}

bool fake_cuda_call(const void *stream, void (*f)(void *user), void *user)
{
    struct fake_node *n = fake_capture(stream, "call", &(struct fake_call){ 0 });

    if (n) {
        n->calls = f;
        n->user = user;
    }
    return n != NULL;
}

/* A stream joins the capture, or follows more of it; it may not join two. */
static int wait_for(const void *stream, const struct capture *from)
{
    struct capture *c = from->used ? find(stream) : NULL;

    if (c && c->graph != from->graph)
        return CAPTURE_MERGE;
    if (from->used && !c) {
        c = begin(stream, from->graph);
        c->joined = true;
    }
    for (int i = 0; c && i < from->nlast && c->nlast < FAKE_AFTER; i++)
        c->last[c->nlast++] = from->last[i];
    return CU_OK;
}

/* ---- running --------------------------------------------------------------------------------- */
/* As the kernel of src/launch/loop_ranks.c. */
static void agrees(const struct fake_call *c)
{
    enum { HOLDS = 1, STEPS = 2, FAILED = 4, TELLS = 32 };
    const char *all = (const char *)(uintptr_t)c->param[0];
    int64_t *state = (int64_t *)(uintptr_t)c->param[2];
    bool failed = *(volatile uint32_t *)(uintptr_t)c->param[4] != 0;

    for (uint64_t r = 0; r < c->param[1]; r++)
        failed |= *(const int64_t *)(const void *)(all + r * TELLS + 8) != 0;
    if (c->param[9])
        state[0] = state[1] = 0;
    for (uint64_t i = 0; i < c->param[8] && !state[1]; i++)
        state[1] = ++state[0] >= (int64_t)c->param[7] ? STEPS : 0, state[1] = all[16 * i] ? HOLDS : state[1];
    if (failed) {
        *(volatile uint32_t *)(uintptr_t)c->param[5] = 1;
        state[1] = FAILED;
    }
    *(char *)(uintptr_t)c->param[3] = (state[1] & (HOLDS | FAILED)) != 0;
    condition[c->param[6]] = !state[1];
}

/* As the kernels of src/launch/loop.c, which read the flag where it matters: a log tells of that. */
static _Thread_local bool held, unread;
static bool decides(const struct fake_call *c)
{

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
    if (strcmp(c->kernel, "ptxgen_agree") == 0) {
        agrees(c);
        unread = true; /* what is in the flag's memory now */
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
    for (int i = 0; i < __atomic_load_n(&fake.nnodes, __ATOMIC_ACQUIRE); i++) {
        const struct fake_node *n = &fake.node[i];

        if (n->graph != graph)
            continue;
        if (strcmp(n->what, "copy") == 0) {
            fake_do_copy(&n->call);
        } else if (strcmp(n->what, "copy 2d") == 0) {
            fake_do_copy_2d(&n->call);
        } else if (strcmp(n->what, "fill") == 0) {
            fake_do_fill(&n->call);
        } else if (strcmp(n->what, "if") == 0) {
            if (condition[n->condition])
                run(n->body);
        } else if (strcmp(n->what, "while") == 0) {
            while (condition[n->condition])
                run(n->body);
        } else if (n->calls) {
            n->calls(n->user);
        } else if (!decides(&n->call)) {
            fake_record("run", NULL, 0, 0)->kernel = n->what;
            if (n->table && fake.launched)
                fake.launched(n->what, n->grid, n->call.block, &n->table);
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
    *status = fake_captures(stream);
    return fake_result("cuStreamIsCapturing");
}
ENTRY(cuStreamBeginCapture_v2, cu_stream stream, int mode)
{
    (void)mode;
    pthread_mutex_lock(&lock);
    begin(stream, new_graph())->made = true;
    fake.capture_spoiled = 0;
    pthread_mutex_unlock(&lock);
    return fake_result("cuStreamBeginCapture");
}
ENTRY(cuStreamBeginCaptureToGraph, cu_stream stream, cu_graph graph, const cu_graph_node *after, const void *edge,
      size_t count, int mode)
{
    struct capture *c;

    (void)edge, (void)mode;
    if (fake_result("cuStreamBeginCaptureToGraph") != CU_OK)
        return fake_result("cuStreamBeginCaptureToGraph");
    pthread_mutex_lock(&lock);
    c = begin(stream, (int)(uintptr_t)graph);
    c->nlast = (int)count;
    for (size_t i = 0; i < count; i++)
        c->last[i] = (int)(uintptr_t)after[i];
    fake.capture_spoiled = 0;
    pthread_mutex_unlock(&lock);
    return CU_OK;
}
ENTRY(cuStreamEndCapture, cu_stream stream, cu_graph *graph)
{
    pthread_mutex_lock(&lock);
    struct capture *c = capture_of(stream), old = *c;

    *graph = (cu_graph)(uintptr_t)old.graph;
    c->used = false;
    for (int i = 0; i < CAPTURES; i++)
        capture[i].used &= !capture[i].joined || capture[i].graph != old.graph;
    fake.capturing = captures() || said;
    pthread_mutex_unlock(&lock);
    return fake.capture_spoiled ? CAPTURE_INVALIDATED : fake_count("cuStreamEndCapture", old.made);
}
ENTRY(cuStreamGetCaptureInfo_v2, cu_stream stream, int *status, unsigned long long *id, cu_graph *graph,
      const cu_graph_node **after, size_t *count)
{
    static _Thread_local cu_graph_node node[FAKE_AFTER];

    pthread_mutex_lock(&lock);
    const struct capture *c = capture_of(stream);
    *status = c != NULL;
    if (c && id)
        *id = 1;
    if (c && graph)
        *graph = (cu_graph)(uintptr_t)c->graph;
    for (int i = 0; c && i < c->nlast; i++)
        node[i] = (cu_graph_node)(uintptr_t)c->last[i];
    if (c) {
        *after = node;
        *count = (size_t)c->nlast;
    }
    pthread_mutex_unlock(&lock);
    return fake_result("cuStreamGetCaptureInfo");
}
ENTRY(cuStreamUpdateCaptureDependencies, cu_stream stream, cu_graph_node *after, size_t count, unsigned flags)
{
    (void)flags;
    pthread_mutex_lock(&lock);
    struct capture *c = capture_of(stream);
    c->nlast = (int)count;
    for (size_t i = 0; i < count; i++)
        c->last[i] = (int)(uintptr_t)after[i];
    pthread_mutex_unlock(&lock);
    return fake_result("cuStreamUpdateCaptureDependencies");
}

/* ---- events ------------------------------------------------------------------------------------ */
static unsigned long long event_ids;
ENTRY(cuEventCreate, cu_event *event, unsigned flags)
{
    (void)flags;
    *event = (cu_event)(uintptr_t)__atomic_add_fetch(&event_ids, 1, __ATOMIC_RELAXED);
    return fake_count("cuEventCreate", 1);
}
GIVE_BACK(cuEventDestroy_v2, "cuEventDestroy", cu_event)
ENTRY(cuEventRecord, cu_event event, cu_stream stream)
{
    fake_record("cuEventRecord", stream, (uintptr_t)event, 0);
    pthread_mutex_lock(&lock);
    const struct capture *c = fake.capturing ? find(stream) : NULL;
    recorded[(uintptr_t)event % EVENTS] = c ? *c : (struct capture){ 0 };
    pthread_mutex_unlock(&lock);
    return fake_result("cuEventRecord");
}
ENTRY(cuStreamWaitEvent, cu_stream stream, cu_event event, unsigned flags)
{
    fake_record("cuStreamWaitEvent", stream, (uintptr_t)event, flags);
    pthread_mutex_lock(&lock);
    const int result = wait_for(stream, &recorded[(uintptr_t)event % EVENTS]);
    pthread_mutex_unlock(&lock);
    return result == CU_OK ? fake_result("cuStreamWaitEvent") : result;
}
ENTRY(cuEventSynchronize, cu_event event)
{
    (void)event;
    return fake_result("cuEventSynchronize");
}
ENTRY(cuEventElapsedTime, float *milliseconds, cu_event begin, cu_event end)
{
    (void)begin, (void)end;
    *milliseconds = 2.5f;
    return fake_result("cuEventElapsedTime");
}

/* ---- graphs ---------------------------------------------------------------------------------- */
ENTRY(cuGraphCreate, cu_graph *graph, unsigned flags)
{
    (void)flags;
    *graph = (cu_graph)(uintptr_t)new_graph();
    return fake_count("cuGraphCreate", 1);
}
ENTRY(cuGraphConditionalHandleCreate, cu_condition *out, cu_graph graph, cu_context context, unsigned value,
      unsigned flags)
{
    (void)graph, (void)context, (void)flags;
    const int number = __atomic_fetch_add(&nconditions, 1, __ATOMIC_RELAXED);
    if (number >= CONDITIONS)
        return CU_OUT_OF_MEMORY;
    condition[number] = (int)value;
    *out = (cu_condition)number;
    return fake_result("cuGraphConditionalHandleCreate");
}
ENTRY(cuGraphAddNode_v2, cu_graph_node *node, cu_graph graph, const cu_graph_node *after, const void *edge,
      size_t count, struct cu_condition_node *params)
{
    static _Thread_local cu_graph body;
    struct fake_node *n;

    (void)edge;
    if (fake_result("cuGraphAddNode") != CU_OK)
        return fake_result("cuGraphAddNode");
    pthread_mutex_lock(&lock);
    n = add((int)(uintptr_t)graph, params->kind == CU_CONDITION_WHILE ? "while" : "if");
    n->condition = (int)params->condition;
    n->body = new_graph();
    n->nafter = (int)count;
    for (size_t i = 0; i < count; i++)
        n->after[i] = (int)(uintptr_t)after[i];
    body = (cu_graph)(uintptr_t)n->body;
    params->body = &body;
    *node = (cu_graph_node)(uintptr_t)fake.nnodes;
    pthread_mutex_unlock(&lock);
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
ENTRY(cuGraphExecDestroy, cu_graph_exec exec)
{
    fake_record("cuGraphExecDestroy", NULL, (uintptr_t)exec, 0);
    return fake_count("cuGraphExecDestroy", -1);
}
