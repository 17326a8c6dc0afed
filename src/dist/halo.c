/* SPDX-License-Identifier: Apache-2.0 */
/* halo.c - runs of stages whose elements read neighbours along the split dimension.
 *
 * Arrays with the split dimension get room for `before` and `after` more elements of it, ghosts.  What an element beyond
 * the whole is follows from the boundary, so ghosts at the ends of the whole are filled as well, and a stage sees no edge
 * along the split dimension.  Only with `interior` there are no ghosts beyond the whole: points there are not computed.
 * Points at ghosts are computed along with the others, and thrown away: results are cut out of room of their own.
 */
#include "launch.h"

#include <stdlib.h>

static const struct prog_array *array_of(const struct problem *p, int i)
{
    return i < p->ninputs ? &p->input[i].array : &p->output[i - p->ninputs].array;
}

ptxgen_status halo_make(struct ptxgen_session *s, struct dist_room *m)
{
    const struct problem *p = m->d->split->problem;
    const int rank = m->d->comm->rank;
    int64_t end;
    ptxgen_status status = PTXGEN_OK;
    halo_reach(m, m->first[rank], m->first[rank + 1], &m->begin, &end);
    m->extent = end - m->begin;
    m->ghosts = calloc((size_t)p->ninputs * (size_t)(m->d->comm->size + 1) + 1, sizeof *m->ghosts);
    if (!m->ghosts)
        return PTXGEN_NO_MEMORY;
    for (int i = 0; i < p->ninputs + p->noutputs && status == PTXGEN_OK; i++) {
        const struct rows r = rows_of(m, array_of(p, i));
        int64_t row, bytes;
        void *memory = NULL;
        if (!r.split)
            continue;
        if (__builtin_mul_overflow(r.outer, r.inner, &row) || __builtin_mul_overflow(row, m->extent, &bytes))
            return PTXGEN_NO_MEMORY;
        status = machine_of(m->d)->alloc(s, m->d, (size_t)bytes, &memory);
        m->array[i] = memory;
    }
    for (int i = 0; i < p->ninputs && status == PTXGEN_OK; i++)
        status = ghosts_make(s, m, i);
    return status;
}

void halo_free(struct dist_room *m)
{
    for (int i = 0; i < m->d->split->problem->ninputs; i++)
        ghosts_free(m, i);
    for (int i = 0; i < PROBLEM_ARGS_MAX; i++)
        machine_of(m->d)->free(m->d, m->array[i]);
    free(m->ghosts);
}

static void did(struct launch *l, ptxgen_status status)
{
    if (l->failed == PTXGEN_OK)
        l->failed = status;
}

/* The part's rows of the caller's array into the room. */
static void take(struct launch *l, int input, const void *from)
{
    const struct dist_room *m = l->room;
    const int rank = l->d->comm->rank;
    const int64_t count = part_of(m, rank);
    const struct rows r = rows_of(m, array_of(l->d->split->problem, input));
    const struct strip part = { m->first[rank] - m->begin, 0, count };
    if (r.split)
        did(l, copy_rows(l, &r, l->array[input], m->extent, from, count, &part));
}

ptxgen_status halo_begin(struct launch *l)
{
    const struct problem *p = l->d->split->problem;
    int fill[PROBLEM_ARGS_MAX], n = 0;
    for (int i = 0; i < p->ninputs; i++) {
        take(l, i, l->args->input[i]);
        if (l->array[i] && p->input[i].neighbours)
            fill[n++] = i;
    }
    return ghosts_fill(l, fill, n);
}

/* Do time steps hand on what they compute by swapping arrays?  Else by way of the caller's outputs: where `interior`
 * leaves points alone, these hold what is there. */
static bool swaps(const struct dist_split *sp)
{
    const struct problem *p = sp->problem;
    bool good = !sp->pieces;
    for (int i = 0; i < p->ninputs; i++)
        for (int d = 0; d < p->input[i].array.rank; d++)
            good &= !p->input[i].neighbours || p->input[i].boundary[d].mode != BOUND_INTERIOR;
    for (int k = 0; k < p->nfeedback; k++)
        for (int j = 0; j < k; j++)
            good &= p->feedback[j].output != p->feedback[k].output;
    return good;
}

ptxgen_status halo_feed(struct launch *l)
{
    const struct problem *p = l->d->split->problem;
    int fill[PROBLEM_ARGS_MAX], n = 0;
    for (int k = 0; k < p->nfeedback; k++) {
        const int i = p->feedback[k].input, o = p->ninputs + p->feedback[k].output;
        char *computed = l->array[o];
        if (!swaps(l->d->split)) {
            take(l, i, l->args->output[p->feedback[k].output]);
        } else if (computed) {
            l->array[o] = l->array[i];
            l->array[i] = computed;
        }
        if (l->array[i] && p->input[i].neighbours)
            fill[n++] = i;
    }
    return ghosts_fill(l, fill, n);
}

/* Outputs between the caller's array and the room in which a stage computes them. */
static ptxgen_status cut(struct launch *l, const struct dist_run *run, int64_t begin, int64_t extent, bool back)
{
    const struct problem *p = l->d->split->problem;
    const int64_t count = part_of(l->room, l->d->comm->rank);
    ptxgen_status status = PTXGEN_OK;
    for (int o = 0; o < p->noutputs && status == PTXGEN_OK; o++) {
        const struct rows r = rows_of(l->room, &p->output[o].array);
        char *user = l->args->output[o], *room = l->array[p->ninputs + o];
        const struct strip strip = { back ? run->behind : run->first - begin, back ? run->first - begin : run->behind,
                                     run->count };
        if (r.split)
            status = copy_rows(l, &r, back ? user : room, back ? count : extent, back ? room : user,
                               back ? extent : count, &strip);
    }
    return status;
}

/* Does a stage leave elements of outputs as they are? */
static bool leaves(const struct dist_split *sp)
{
    bool left = !swaps(sp);
    for (int o = 0; o < sp->problem->noutputs; o++)
        left |= sp->problem->output[o].role == OUT_KEPT;
    return left;
}

ptxgen_status halo_run(struct launch *l, enum dist_stage stage, const struct dist_run *run)
{
    const struct problem *p = l->d->split->problem;
    const void *input[PROBLEM_ARGS_MAX];
    void *output[PROBLEM_ARGS_MAX];
    int64_t begin, end;
    if (run->count == 0)
        return PTXGEN_OK;
    halo_reach(l->room, run->first, run->first + run->count, &begin, &end);
    for (int i = 0; i < p->ninputs; i++) {
        const struct rows r = rows_of(l->room, &p->input[i].array);
        input[i] = r.split ? l->array[i] + (begin - l->room->begin) * r.inner : l->args->input[i];
    }
    for (int o = 0; o < p->noutputs; o++)
        output[o] = l->array[p->ninputs + o] ? l->array[p->ninputs + o] : l->args->output[o];
    const struct run_args args = { l->args->size, input, output, l->args->param };
    struct dist_run with = *run;
    with.args = &args;
    with.first = begin;
    with.count = end - begin;
    with.behind = 0;
    with.own_first = run->first;
    with.own_count = run->count;
    ptxgen_status status = leaves(l->d->split) ? cut(l, run, begin, end - begin, false) : PTXGEN_OK;
    if (status == PTXGEN_OK)
        status = dist_run_stage(l, stage, &with);
    if (status == PTXGEN_OK && (l->ends || !swaps(l->d->split)))
        status = cut(l, run, begin, end - begin, true);
    return status;
}
