/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - time steps of a stencil that combines nothing, several after each exchange.
 *
 *     for each `depth` steps:
 *         exchange ghosts for all of them
 *         the part as one problem of `depth` steps; what depends on other ranks is wrong in it: rows at its ends
 *         those rows again, from ghosts and more rows of the part
 *
 * Or all steps as one problem of the part, whose kernels exchange the rows for what each of them computes (JOINED_STEPS).
 *
 * The last steps write the caller's outputs, those before them memory of the room, in turn.  A preparation goes through one
 * step and `depth` steps as well, since the number of steps may be a param, of which other launches have another value.
 */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

/* Rows that go to another rank are at most one in TWICE of the average part. */
enum { DEPTH_MOST = 16, TWICE = 16 };

/* The same on all ranks. */
static int64_t depth_of(const struct dist_room *m)
{
    const struct dist_split *sp = m->d->split;
    const int size = m->d->comm->size;
    for (int64_t depth = DEPTH_MOST; depth > 1 && sp->stage[STAGE_STEPS].problem; depth /= 2) {
        bool good = (sp->before + sp->after) * depth * TWICE <= m->total / size;
        for (int r = 0; r < size; r++)
            good &= halo_is_direct(m, r, depth);
        if (good)
            return depth;
    }
    return 1;
}

static ptxgen_status make_deep(struct ptxgen_session *s, struct dist_room *m, int64_t depth)
{
    const size_t ranks = (size_t)m->d->comm->size;
    struct dist_room *deep = m->deep = calloc(1, sizeof *deep);
    if (!deep)
        return PTXGEN_NO_MEMORY;
    deep->d = m->d;
    deep->total = m->total;
    deep->depth = depth;
    deep->clipped = !m->d->split->wraps;
    memcpy(deep->size, m->size, sizeof deep->size);
    deep->first = calloc(ranks + 1, sizeof *deep->first);
    if (!deep->first)
        return PTXGEN_NO_MEMORY;
    memcpy(deep->first, m->first, (ranks + 1) * sizeof *deep->first);
    return halo_make(s, deep);
}

ptxgen_status steps_make(struct ptxgen_session *s, struct dist_room *m)
{
    const struct problem *p = m->d->split->problem;
    ptxgen_status status = PTXGEN_OK;
    if (!p->iterated || !m->all_direct)
        return PTXGEN_OK;
    for (int k = 0; k < p->nfeedback && status == PTXGEN_OK; k++) {
        const int o = p->feedback[k].output;
        const struct rows r = rows_of(m, &p->output[o].array);
        void *memory = NULL;
        status = machine_of(m->d)->alloc(s, m->d, (size_t)(part_of(m, m->d->comm->rank) * r.outer * r.inner), &memory);
        m->spare[o] = memory;
    }
    const int64_t depth = depth_of(m);
    return status == PTXGEN_OK && depth > 1 ? make_deep(s, m, depth) : status;
}

void steps_free(struct dist_room *m)
{
    for (int o = 0; o < PROBLEM_ARGS_MAX; o++)
        machine_of(m->d)->free(m->d, m->spare[o]);
    if (m->deep)
        m->deep->peers = NULL; /* those of m */
    room_free(m->deep);
}

ptxgen_status steps_direct(struct launch *l, int64_t count)
{
    const struct problem *p = l->d->split->problem;
    struct dist_room *const near = l->room, *const deep = near->deep ? near->deep : near;
    const struct run_args *const user = l->args;
    const bool joined = deep->depth > 1 && deep->joined && count > 1 && !l->prepares && !l->inside;
    const int64_t depth = joined ? count : deep->depth, turns = (count + depth - 1) / depth;
    const void *input[PROBLEM_ARGS_MAX];
    void *output[PROBLEM_ARGS_MAX];
    const struct run_args args = { user->size, input, output, user->param };
    ptxgen_status status = PTXGEN_OK;
    memcpy(input, user->input, sizeof *input * (size_t)p->ninputs);
    memcpy(output, user->output, sizeof *output * (size_t)p->noutputs);
    l->args = &args;
    l->direct = true;
    for (int64_t i = 0; i < turns && status == PTXGEN_OK; i++) {
        const int64_t steps = i + 1 < turns ? depth : count - i * depth;
        const bool last = (turns - 1 - i) % 2 == 0;
        for (int k = 0; k < p->nfeedback; k++)
            output[p->feedback[k].output] =
                last ? user->output[p->feedback[k].output] : near->spare[p->feedback[k].output];
        l->room = steps == 1 ? near : deep;
        if (!l->prepares || i < PREPARED_STEPS || i + 1 == turns)
            status = halo_direct(l, steps);
        for (int k = 0; k < p->nfeedback; k++)
            input[p->feedback[k].input] = output[p->feedback[k].output];
    }
    for (int k = 0; k < 2 && l->prepares && near->all_direct && status == PTXGEN_OK; k++) {
        l->room = k ? deep : near;
        if (k == 0 || deep != near)
            status = halo_direct(l, l->room->depth);
    }
    l->args = user;
    l->room = near;
    return status;
}
