/* SPDX-License-Identifier: Apache-2.0 */
/* branches.c - stages of a capture that do not depend on each other become branches of the graph.
 *
 * A stage follows every earlier stage that has written memory that it touches, or has touched memory that it writes; and
 * itself, in an earlier step, whose kept memory it works in.  Memory counts and not names: arrays between stages share
 * memory where they do not live at the same time.
 */
#include <stdlib.h>

#include "base/session.h"
#include "launch_graph.h"

struct range {
    int stage;
    bool written;
    uintptr_t begin, end;
};

struct branches {
    const struct driver *cu;
    cu_stream stream;
    struct graph_nodes begin;           /* what all stages follow */
    struct graph_nodes end[STAGES_MAX]; /* of the latest run of a stage; count 0: none yet */
    uint32_t before[STAGES_MAX];        /* stages whose latest runs come before it; a bit for each */
    bool followed[STAGES_MAX];          /* by a later stage */
    struct range *range;                /* of all runs so far, each once */
    int nranges, room;
};

_Static_assert(STAGES_MAX <= 32, "sets of stages are words");

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

static uint32_t bit(int stage) { return (uint32_t)1 << stage; }

static bool conflict(const struct range *a, const struct range *b)
{
    return (a->written || b->written) && a->begin < b->end && b->begin < a->end;
}

/* The stage touches r: follows[] gets what must come before. */
static bool touch(struct branches *b, const struct range *r, uint32_t *follows, struct fault *f)
{
    bool known = false;

    for (int i = 0; i < b->nranges; i++) {
        const struct range *o = &b->range[i];

        if (conflict(o, r))
            *follows |= bit(o->stage);
        known |= o->stage == r->stage && o->written == r->written && o->begin == r->begin && o->end == r->end;
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

static bool touch_array(struct branches *b, int stage, const struct prog_array *a, const void *at, bool written,
                        const int64_t *size, uint32_t *follows, struct fault *f)
{
    const int64_t bytes = at ? prog_array_elements(a, size) * a->stride : 0;
    const uintptr_t begin = (uintptr_t)at;

    return touch(b, &(struct range){ stage, written, begin, begin + (uintptr_t)(bytes > 0 ? bytes : 0) }, follows, f);
}

static bool add_nodes(struct graph_nodes *to, const struct graph_nodes *more, struct fault *f)
{
    for (size_t i = 0; i < more->count; i++) {
        size_t k = 0;

        while (k < to->count && to->node[k] != more->node[i])
            k++;
        if (k == GRAPH_NODES_MAX)
            return fault_set(f, PTXGEN_UNSUPPORTED, D_CAPTURE, "a stage would follow more than %d nodes",
                             GRAPH_NODES_MAX);
        to->node[k] = more->node[i];
        to->count = k < to->count ? to->count : k + 1;
    }
    return true;
}

/* Of a set: those that no other one comes after. */
static uint32_t latest(const struct branches *b, uint32_t stages)
{
    uint32_t others = 0;

    for (int i = 0; i < STAGES_MAX; i++)
        if (stages & bit(i))
            others |= b->before[i];
    return stages & ~others;
}

/* The next node follows the stages of the set, or what all follow where there are none. */
static bool follow(struct branches *b, uint32_t stages, struct fault *f)
{
    struct graph_nodes nodes = { 0 };

    for (int i = 0; i < STAGES_MAX; i++) {
        if (!(stages & bit(i)))
            continue;
        b->followed[i] = true;
        if (!add_nodes(&nodes, &b->end[i], f))
            return false;
    }
    return graph_set_last(b->cu, b->stream, nodes.count ? &nodes : &b->begin, f);
}

bool branches_before(struct branches *b, int stage, const struct program *p, const struct run_args *args,
                     struct fault *f)
{
    uint32_t follows = b->end[stage].count ? bit(stage) : 0;

    for (int i = 0; i < p->ninputs; i++)
        if (!touch_array(b, stage, &p->input[i], args->input[i], false, args->size, &follows, f))
            return false;
    for (int i = 0; i < p->noutputs; i++)
        if (!touch_array(b, stage, &p->output[i], args->output[i], true, args->size, &follows, f))
            return false;
    if (!follow(b, latest(b, follows), f))
        return false;
    b->before[stage] = follows;
    for (int i = 0; i < STAGES_MAX; i++)
        if (follows & bit(i))
            b->before[stage] |= b->before[i];
    for (int i = 0; i < STAGES_MAX; i++) /* of the stage itself an earlier run */
        b->before[i] &= ~bit(stage);
    return true;
}

bool branches_after(struct branches *b, int stage, struct fault *f)
{
    b->followed[stage] = false;
    return graph_get_last(b->cu, b->stream, &b->end[stage], f);
}

bool branches_join(struct branches *b, struct fault *f)
{
    uint32_t open = 0;

    for (int i = 0; i < STAGES_MAX; i++)
        if (b->end[i].count > 0 && !b->followed[i])
            open |= bit(i);
    return follow(b, open, f);
}
