/* SPDX-License-Identifier: Apache-2.0 */
/* branches.c - stages of a capture that do not depend on each other become branches of the graph.
 *
 * The workers are the stages, and the kernel that decides about the end of a loop.  A worker follows every earlier worker
 * that has written memory that this one touches, or has touched memory that this one writes.  It also follows its own run
 * of the step before, because both use the same kept memory.  Addresses decide and not names: arrays between stages share
 * memory where they do not live at the same time.
 */
#include <stdlib.h>

#include "base/session.h"
#include "launch_graph.h"

struct range {
    int worker;
    bool written;
    uintptr_t begin, end;
};

struct branches {
    const struct driver *cu;
    cu_stream stream;
    struct graph_nodes begin;             /* what all workers follow */
    struct graph_nodes end[BRANCHES_MAX]; /* of the latest run of a worker; count 0: none yet */
    uint64_t before[BRANCHES_MAX];        /* workers whose latest runs come before it; a bit for each */
    bool followed[BRANCHES_MAX];          /* by a later worker */
    struct range *range;                  /* of all runs so far, each once */
    int nranges, room;
};

_Static_assert(BRANCHES_MAX <= 64, "sets of workers are words");

struct branches *branches_new(const struct driver *cu, cu_stream stream, struct fault *f)
{
    struct branches *b = calloc(1, sizeof *b);

    if (!b) {
        fault_set(f, PTXGEN_NO_MEMORY, D_LAUNCH_ARGUMENT, "out of host memory");
        return NULL;
    }
    b->cu = cu;
    b->stream = stream;
    if (graph_get_last(cu, stream, &b->begin, f))
        return b;
    branches_free(b);
    return NULL;
}

void branches_free(struct branches *b)
{
    if (b)
        free(b->range);
    free(b);
}

static uint64_t bit(int worker) { return (uint64_t)1 << worker; }

static bool conflict(const struct range *a, const struct range *b)
{
    return (a->written || b->written) && a->begin < b->end && b->begin < a->end;
}

/* A worker touches r: *follows gets what must come before. */
static bool touch(struct branches *b, const struct range *r, uint64_t *follows, struct fault *f)
{
    bool known = false;

    for (int i = 0; i < b->nranges; i++) {
        const struct range *o = &b->range[i];

        if (conflict(o, r))
            *follows |= bit(o->worker);
        known |= o->worker == r->worker && o->written == r->written && o->begin == r->begin && o->end == r->end;
    }
    if (known || r->begin == r->end)
        return true;
    if (b->nranges == b->room) {
        const int room = 2 * b->room + 64;
        struct range *more = realloc(b->range, (size_t)room * sizeof *more);

        if (!more)
            return fault_set(f, PTXGEN_NO_MEMORY, D_LAUNCH_ARGUMENT, "out of host memory");
        b->range = more;
        b->room = room;
    }
    b->range[b->nranges++] = *r;
    return true;
}

static bool add_nodes(struct graph_nodes *to, const struct graph_nodes *more, struct fault *f)
{
    for (size_t i = 0; i < more->count; i++) {
        size_t k = 0;

        while (k < to->count && to->node[k] != more->node[i])
            k++;
        if (k == GRAPH_NODES_MAX)
            return fault_set(f, PTXGEN_UNSUPPORTED, D_CAPTURE, "a node would follow more than %d others",
                             GRAPH_NODES_MAX);
        to->node[k] = more->node[i];
        to->count = k < to->count ? to->count : k + 1;
    }
    return true;
}

/* Of a set: those that no other one comes after. */
static uint64_t latest(const struct branches *b, uint64_t workers)
{
    uint64_t others = 0;

    for (int i = 0; i < BRANCHES_MAX; i++)
        if (workers & bit(i))
            others |= b->before[i];
    return workers & ~others;
}

/* The next node follows the workers of the set, or what all follow where there are none. */
static bool follow(struct branches *b, uint64_t workers, struct fault *f)
{
    struct graph_nodes nodes = { 0 };

    for (int i = 0; i < BRANCHES_MAX; i++) {
        if (!(workers & bit(i)))
            continue;
        b->followed[i] = true;
        if (!add_nodes(&nodes, &b->end[i], f))
            return false;
    }
    return graph_set_last(b->cu, b->stream, nodes.count ? &nodes : &b->begin, f);
}

bool branches_before(struct branches *b, int worker, const struct touched *memory, int count, struct fault *f)
{
    uint64_t follows = b->end[worker].count ? bit(worker) : 0;

    for (int i = 0; i < count; i++) {
        const uintptr_t begin = (uintptr_t)memory[i].at;
        const uintptr_t bytes = memory[i].at && memory[i].bytes > 0 ? (uintptr_t)memory[i].bytes : 0;

        if (!touch(b, &(struct range){ worker, memory[i].written, begin, begin + bytes }, &follows, f))
            return false;
    }
    if (!follow(b, latest(b, follows), f))
        return false;
    b->before[worker] = follows;
    for (int i = 0; i < BRANCHES_MAX; i++)
        if (follows & bit(i))
            b->before[worker] |= b->before[i];
    for (int i = 0; i < BRANCHES_MAX; i++) /* of the worker itself an earlier run */
        b->before[i] &= ~bit(worker);
    return true;
}

bool branches_before_stage(struct branches *b, int stage, const struct program *p, const struct run_args *args,
                           struct fault *f)
{
    struct touched memory[2 * STAGE_ARGS_MAX];

    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const bool written = i >= p->ninputs;
        const struct prog_array *a = written ? &p->output[i - p->ninputs] : &p->input[i];

        memory[i] = (struct touched){ written ? args->output[i - p->ninputs] : args->input[i],
                                      prog_array_elements(a, args->size) * a->stride, written };
    }
    return branches_before(b, stage, memory, p->ninputs + p->noutputs, f);
}

bool branches_after(struct branches *b, int worker, struct fault *f)
{
    b->followed[worker] = false;
    return graph_get_last(b->cu, b->stream, &b->end[worker], f);
}

bool branches_join(struct branches *b, struct fault *f)
{
    uint64_t open = 0;

    for (int i = 0; i < BRANCHES_MAX; i++)
        if (b->end[i].count > 0 && !b->followed[i])
            open |= bit(i);
    return follow(b, open, f);
}
