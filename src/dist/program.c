/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - a run of a program of stages on all ranks.
 *
 * Each stage is a run of its own problem, on the parts that all stages share: an array with the split dimension has the
 * rank's elements of it in every stage, any other array is whole.  All ranks walk through the same stages.  Where a rank
 * fails, it goes on with the exchanges, so that no other waits for it; they learn it in the next exchange that tells, or
 * at the end.
 *
 * The condition of a loop is computed on every rank, from the same bits.  Nevertheless ranks tell each other whether it
 * holds, and all do what rank 0 says: a rank that has failed cannot compute it.  Here the host reads it; where GPUs write
 * into each other's memory, they decide without the host (loop.c).
 */
#include "launch.h"

#include <stdlib.h>

void program_place(struct program_room *of, void *memory)
{
    of->memory = memory;
    of->between = of->memory + (PROGRAM_ALIGNMENT - (uintptr_t)memory % PROGRAM_ALIGNMENT) % PROGRAM_ALIGNMENT;
}

ptxgen_status program_make(struct ptxgen_session *s, struct dist_room *m)
{
    const struct ptxgen_dist *d = m->d;
    const struct prog_stages *p = d->program;
    struct program_room *of = m->program = calloc(1, sizeof *of);
    void *memory = NULL;
    if (!of)
        return PTXGEN_NO_MEMORY;
    if (!stages_place(p, m->size, &of->layout)) {
        diag_error(&s->diags, D_RUN_DATA, span_none(), "%s: the arrays between stages are too large at these sizes",
                   d->shape->name);
        return PTXGEN_INVALID;
    }
    ptxgen_status status = machine_of(d)->alloc(s, m->d, (size_t)of->layout.bytes + PROGRAM_ALIGNMENT, &memory);
    program_place(of, memory);
    for (int i = 0; i < p->nstages && status == PTXGEN_OK; i++) {
        int64_t size[STAGE_ARGS_MAX];
        for (int k = 0; k < p->stage[i].nsizes; k++)
            size[k] = m->size[p->stage[i].size[k]];
        status = room_make(s, d->of[i], size, &of->of[i]);
    }
    return status;
}

void program_free(struct dist_room *m)
{
    if (!m->program)
        return;
    loop_close(m);
    for (int i = 0; i < m->d->program->nstages && m->program->of[i]; i++) {
        m->program->of[i]->peers = NULL;
        room_free(m->program->of[i]);
    }
    machine_of(m->d)->free(m->d, m->program->memory);
    free(m->program);
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

struct program_walk {
    struct launch *l;
    int64_t step;    /* that are over */
    int64_t visited; /* the one whose stages are visited; -1: none yet */
};

/* Also where a rank has failed, so that visits of all ranks are alike.  False: the run ends. */
static bool visit(struct program_walk *w, int stage, const struct run_args *args)
{
    struct launch *l = w->l;
    const ptxgen_arguments shown = { args->size, args->input, args->output,
                                     (const ptxgen_value *)(const void *)args->param };
    if (!l->visitor || l->prepares)
        return true;
    if (machine_of(l->d)->wait)
        did(l, machine_of(l->d)->wait(l));
    l->over |= l->d->comm->broken;
    return !l->over && l->visitor->visit(stage, w->visited, &shown, l->visitor->user) == 0;
}

struct launch program_stage(const struct launch *l, int stage, const struct run_args *args)
{
    return (struct launch){ .s = l->s,
                            .d = l->d->of[stage],
                            .args = args,
                            .room = l->room->program->of[stage],
                            .stream = l->stream,
                            .prepares = l->prepares,
                            .failed = l->failed };
}

static bool run(void *user, int stage, const struct run_args *args)
{
    struct program_walk *w = user;
    struct launch *l = w->l, of = program_stage(l, stage, args);
    did(l, dist_walk(&of));
    l->over = of.over || l->d->comm->broken;
    w->step += stage == l->d->program->nstages - 1;
    w->visited += stage == 0;
    return !l->over && !(l->prepares && w->step == PREPARED_STEPS) && visit(w, stage, args);
}

static bool copy(void *user, void *to, const void *from, int64_t bytes)
{
    const struct program_walk *w = user;
    const struct dist_copy c = { .to = to, .from = from, .width = (size_t)bytes, .rows = 1 };
    if (w->l->failed == PTXGEN_OK)
        did(w->l, machine_of(w->l->d)->copy(w->l, &c));
    return true;
}

/* What rank 0 says. */
static bool holds(void *user, const void *flag, bool *holds)
{
    struct launch *l = ((struct program_walk *)user)->l;
    int64_t own[HEAD / sizeof(int64_t)] = { 0 };
    unsigned char value = 0;
    *holds = false;
    if (l->prepares)
        return true;
    if (l->failed == PTXGEN_OK)
        did(l, machine_of(l->d)->read(l, &value, flag, 1));
    own[0] = l->failed;
    own[1] = value;
    const ptxgen_status status = dist_exchange(l->s, l->d->comm, own, l->d->comm->hello, sizeof own);
    did(l, status);
    l->over = status != PTXGEN_OK;
    *holds = ((const int64_t *)(const void *)l->d->comm->hello)[1] != 0;
    return !l->over;
}

ptxgen_status program_walk(struct launch *l)
{
    const struct prog_stages *p = l->d->program;
    struct program_walk w = { .l = l, .visited = -1 };
    const struct stages_doer doer = { &w, run, copy, holds, l->prepares };
    const char *why;
    const int64_t steps = stages_steps(p, l->args->param, &why);
    if (steps < 0) {
        diag_error(&l->s->diags, D_RUN_DATA, span_none(), "%s: %s", l->d->shape->name, why);
        return PTXGEN_INVALID;
    }
    if (l->room->program->loop && !l->visitor && stages_checks(p, p->check_every - 1, steps))
        return loop_launch(l);
    if (l->prepares && p->until >= 0 && machine_of(l->d)->open)
        loop_note(l);
    stages_walk(p, l->args, &l->room->program->layout, l->room->program->between, &doer);
    return l->over || !machine_of(l->d)->tells ? l->failed : dist_told(l, l->failed);
}
