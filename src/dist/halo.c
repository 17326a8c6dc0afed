/* SPDX-License-Identifier: Apache-2.0 */
/* halo.c - runs of stages whose elements read neighbours along the split dimension.
 *
 * Arrays with the split dimension get room for `before` and `after` more elements of it, ghosts.  What an element beyond
 * the whole is follows from the boundary, so ghosts at the ends of the whole are filled as well, and a stage sees no edge
 * along the split dimension.  Only with `interior` there are no ghosts beyond the whole: points there are not computed.
 * Points at ghosts are computed along with the others, and thrown away: results are cut out of room of their own.
 *
 * Time steps of a problem that combines nothing copy no whole array.  The part is computed in the caller's arrays, without
 * its outermost rows.  These are computed in a little memory with ghosts on each side: straight into the caller's arrays, or
 * copied from there.  On a GPU, all this and the exchange go on while the part is computed.  Where only all rows of the part
 * can be computed, as if it were the whole, the outermost ones are wrong, and replaced afterwards.  So it is with several
 * steps after one exchange, whose ghosts are as many times as deep; that exchange comes first.  Where kernels take rows of
 * other ranks themselves, they compute all of the part, and nothing is computed again.
 */
#include "launch.h"
#include "lower/stencil/stencil.h"

#include <stdlib.h>
#include <string.h>

static const struct prog_array *array_of(const struct problem *p, int i)
{
    return i < p->ninputs ? &p->input[i].array : &p->output[i - p->ninputs].array;
}

/* Do time steps hand on what they compute by swapping arrays?  Else by way of the caller's outputs: where `interior`
 * leaves points alone, these hold what is there, unless it is the input's value that a point keeps. */
static bool swaps(const struct dist_split *sp)
{
    const struct problem *p = sp->problem;
    bool good = !sp->pieces;
    for (int i = 0; i < p->ninputs && p->nfeedback < p->noutputs; i++)
        for (int d = 0; d < p->input[i].array.rank; d++)
            good &= !p->input[i].neighbours || p->input[i].boundary[d].mode != BOUND_INTERIOR;
    for (int k = 0; k < p->nfeedback; k++)
        for (int j = 0; j < k; j++)
            good &= p->feedback[j].output != p->feedback[k].output;
    return good;
}

static bool is_end(const struct dist_room *m, int64_t at) { return at == 0 || at == m->total; }

/* The part needs outermost rows on both sides, with all their ghosts, and everything must be an element of it. */
bool halo_is_direct(const struct dist_room *m, int r, int64_t depth)
{
    const struct dist_split *sp = m->d->split;
    const struct problem *p = sp->problem;
    const int64_t first = m->first[r], end = m->first[r + 1];
    bool good = !sp->combined && swaps(sp) && part_of(m, r) >= (sp->before + sp->after) * depth;
    if (depth > 1 ? !sp->wraps : sp->interior)
        good &= (is_end(m, first) || first >= sp->before * depth) &&
                (is_end(m, end) || m->total - end >= sp->after * depth);
    for (int o = 0; o < p->noutputs; o++)
        good &= p->output[o].role == OUT_ELEMENT && rows_of(m, &p->output[o].array).split;
    return good;
}

/* Memory for so many rows of each array with the split dimension. */
static ptxgen_status make_arrays(struct ptxgen_session *s, struct dist_room *m, int64_t extent, char **array)
{
    const struct problem *p = m->d->split->problem;
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; i < p->ninputs + p->noutputs && status == PTXGEN_OK; i++) {
        const struct rows r = rows_of(m, array_of(p, i));
        int64_t row, bytes;
        void *memory = NULL;
        if (!r.split)
            continue;
        if (__builtin_mul_overflow(r.outer, r.inner, &row) || __builtin_mul_overflow(row, extent, &bytes))
            return PTXGEN_NO_MEMORY;
        status = machine_of(m->d)->alloc(s, m->d, (size_t)bytes, &memory);
        array[i] = memory;
    }
    return status;
}

ptxgen_status halo_make(struct ptxgen_session *s, struct dist_room *m)
{
    const struct dist_split *sp = m->d->split;
    const struct problem *p = sp->problem;
    const int rank = m->d->comm->rank;
    const int64_t before = sp->before * m->depth, after = sp->after * m->depth, reach = before + after;
    const int64_t count = part_of(m, rank);
    int64_t end;
    ptxgen_status status = PTXGEN_OK;
    halo_reach(m, m->first[rank], m->first[rank + 1], &m->begin, &end);
    m->extent = end - m->begin;
    m->direct = halo_is_direct(m, rank, m->depth);
    m->all_direct = true;
    for (int r = 0; r < m->d->comm->size; r++)
        m->all_direct &= halo_is_direct(m, r, m->depth);
    m->side[0] = (struct side){ .count = m->clipped && is_end(m, m->first[rank]) ? 0 : before,
                                .begin = -before,
                                .extent = before + reach };
    m->side[1] = (struct side){ .first = count - after,
                                .count = m->clipped && is_end(m, m->first[rank + 1]) ? 0 : after,
                                .begin = count - reach,
                                .extent = reach + after };
    m->ghosts = calloc((size_t)p->ninputs * (size_t)(m->d->comm->size + 1) + 1, sizeof *m->ghosts);
    if (!m->ghosts)
        return PTXGEN_NO_MEMORY;
    if (!m->direct || (p->iterated && !m->all_direct))
        status = make_arrays(s, m, m->extent, m->array);
    for (int k = 0; k < 2 && status == PTXGEN_OK && m->direct; k++)
        status = make_arrays(s, m, m->side[k].extent, m->side[k].array);
    for (int i = 0; i < p->ninputs && status == PTXGEN_OK; i++)
        status = ghosts_make(s, m, i);
    return status;
}

void halo_free(struct dist_room *m)
{
    for (int i = 0; i < m->d->split->problem->ninputs; i++)
        ghosts_free(m, i);
    for (int i = 0; i < PROBLEM_ARGS_MAX; i++) {
        machine_of(m->d)->free(m->d, m->array[i]);
        machine_of(m->d)->free(m->d, m->side[0].array[i]);
        machine_of(m->d)->free(m->d, m->side[1].array[i]);
    }
    free(m->ghosts);
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
    return ghosts_fill(l, fill, n, NULL, 0);
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
    return ghosts_fill(l, fill, n, NULL, 0);
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

/* ---- a single time step ------------------------------------------------------------------------------------------ */

/* Do the rows of the part that a side has travel with the exchange?  On all ranks alike; of arrays in which rows lie in one
 * stretch. */
static bool along(const struct launch *l, int input)
{
    const struct problem *p = l->d->split->problem;
    const struct rows r = rows_of(l->room, array_of(p, input));
    return r.outer == 1 && (l->d->comm->size + 1) * p->ninputs <= EXCHANGE_MESSAGES;
}

/* The rows of the part that a side has. */
static struct strip own_rows(const struct side *side, int64_t count)
{
    const int64_t begin = side->begin < 0 ? 0 : side->begin;
    const int64_t end = side->begin + side->extent > count ? count : side->begin + side->extent;
    return (struct strip){ begin - side->begin, begin, end - begin };
}

/* These rows of each input, but for those that have come along with the exchange. */
static void take_side(struct launch *l, const struct side *side, int64_t count)
{
    const struct problem *p = l->d->split->problem;
    const struct strip strip = own_rows(side, count);
    for (int i = 0; i < p->ninputs; i++) {
        const struct rows r = rows_of(l->room, array_of(p, i));
        if (r.split && !along(l, i))
            did(l, copy_rows(l, &r, side->array[i], side->extent, l->args->input[i], count, &strip));
    }
}

/* Where an output of the caller would begin if it were as long as the side. */
static void *in_place(const struct launch *l, const struct side *side, int output)
{
    const struct rows r = rows_of(l->room, &l->d->split->problem->output[output].array);
    return (void *)((uintptr_t)l->args->output[output] + (uintptr_t)(side->begin * r.inner));
}

/* Can the rows of a side be computed where the caller has them?  Nothing but them is written then. */
static bool lies_in_place(const struct launch *l)
{
    const struct problem *p = l->d->split->problem;
    bool good = l->d->split->stage[STAGE_INNER].problem != NULL;
    for (int o = 0; o < p->noutputs; o++)
        good &= rows_of(l->room, &p->output[o].array).outer == 1;
    return good;
}

/* The results of a side's rows, in its memory, or with INNER in the caller's. */
static void run_side(struct launch *l, const struct side *side, enum dist_stage stage, int64_t steps)
{
    const struct problem *p = l->d->split->problem;
    const int64_t first = l->room->first[l->d->comm->rank];
    const void *input[PROBLEM_ARGS_MAX];
    void *output[PROBLEM_ARGS_MAX];
    for (int i = 0; i < p->ninputs; i++)
        input[i] = side->array[i] ? side->array[i] : l->args->input[i];
    for (int o = 0; o < p->noutputs; o++)
        output[o] = stage == STAGE_INNER ? in_place(l, side, o) : side->array[p->ninputs + o];
    const struct run_args args = { l->args->size, input, output, l->args->param };
    const struct dist_run run = { .args = &args,
                                  .first = first + side->begin,
                                  .count = side->extent,
                                  .own_first = first + side->first,
                                  .own_count = side->count,
                                  .steps = steps };
    did(l, dist_run_stage(l, stage, &run));
}

/* From there to the caller. */
static void give_side(struct launch *l, const struct side *side, int64_t count)
{
    const struct problem *p = l->d->split->problem;
    const struct strip strip = { side->first, side->first - side->begin, side->count };
    for (int o = 0; o < p->noutputs && l->failed == PTXGEN_OK; o++) {
        const struct rows r = rows_of(l->room, &p->output[o].array);
        did(l, copy_rows(l, &r, l->args->output[o], count, side->array[p->ninputs + o], side->extent, &strip));
    }
}

/* Memory of the sides: what the rank needs of others, and with the same exchange, of itself. */
static ptxgen_status fill_sides(struct launch *l, int64_t count)
{
    const struct problem *p = l->d->split->problem;
    struct exchange_message own[EXCHANGE_MESSAGES];
    const int rank = l->d->comm->rank;
    int fill[PROBLEM_ARGS_MAX], n = 0, nown = 0;
    for (int i = 0; i < p->ninputs; i++) {
        const struct rows r = rows_of(l->room, array_of(p, i));
        if (r.split && (p->input[i].neighbours || l->room->depth > 1))
            fill[n++] = i;
        for (int k = 0; k < 2 && r.split && along(l, i); k++) {
            const struct side *side = &l->room->side[k];
            const struct strip s = own_rows(side, count);
            const size_t bytes = (size_t)(s.count * r.inner);
            if (side->count && bytes)
                own[nown++] = (struct exchange_message){ (const char *)l->args->input[i] + s.from * r.inner,
                                                         side->array[i] + s.to * r.inner,
                                                         bytes,
                                                         bytes,
                                                         rank,
                                                         rank };
        }
    }
    return ghosts_fill(l, fill, n, own, nown);
}

static void run_sides(struct launch *l, int64_t count, enum dist_stage stage, int64_t steps)
{
    for (int k = 0; k < 2 && l->failed == PTXGEN_OK; k++)
        if (l->room->side[k].count) {
            take_side(l, &l->room->side[k], count);
            run_side(l, &l->room->side[k], stage, steps);
        }
}

static void give_sides(struct launch *l, int64_t count)
{
    for (int k = 0; k < 2 && l->failed == PTXGEN_OK; k++)
        if (l->room->side[k].count)
            give_side(l, &l->room->side[k], count);
}

int64_t halo_bytes(const struct dist_room *m)
{
    const struct problem *p = m->d->split->problem;
    const int input = stencil_joined_input(p);
    const int64_t steps = m->depth > 1 ? dist_joined_steps(m->d->split) : 1;
    return input < 0 ? 0
                     : 2 * steps * (m->d->split->before + m->d->split->after) * rows_of(m, array_of(p, input)).inner;
}

/* Could kernels of this room take rows of other ranks?  Those of several steps take rows of the ranks beside alone. */
static bool halo_joins(const struct dist_room *m)
{
    const struct dist_split *sp = m->d->split;
    const bool deep = m->depth > 1;
    bool good = sp->stage[deep ? STAGE_JOINED_STEPS : STAGE_JOINED].problem && m->all_direct && peers_may_join(m);
    for (int r = 0; r < m->d->comm->size && deep && good; r++)
        good = part_of(m, r) >= (sp->before + sp->after) * dist_joined_steps(sp);
    return good;
}

/* All in one kernel, or one for several steps; a rank that has failed launches it as well, as the others wait for its rows.  Where that is refused,
 * they are told. */
static void run_joined(struct launch *l, enum dist_stage stage, const struct dist_run *part)
{
    struct dist_room *m = l->room;
    struct dist_run run = *part;
    memcpy(run.halo, m->halo, sizeof run.halo);
    if (!l->prepares && machine_of(l->d)->take_turn)
        did(l, machine_of(l->d)->take_turn(l, false));
    const ptxgen_status status = dist_run_stage(l, stage, &run);
    did(l, status);
    if (l->prepares) {
        m->joined = true;
        return;
    }
    if (machine_of(l->d)->take_turn)
        did(l, machine_of(l->d)->take_turn(l, true));
    if (status != PTXGEN_OK && !exchange_halo_fails(l->s, m->peers->exchange, m->halo[0], l->stream))
        dist_broken(l->s, l->d->comm, "the other ranks could not be told that a kernel failed");
}

/* Blocks of the part fill the device, and stay until its end.  So the sides of many steps, which take long, begin before it,
 * and wait for the exchange; the exchange of a single step is beside the part. */
ptxgen_status halo_direct(struct launch *l, int64_t steps)
{
    const struct dist_room *m = l->room;
    const struct dist_machine *machine = machine_of(l->d);
    const int rank = l->d->comm->rank;
    const int64_t count = part_of(m, rank), first = m->first[rank];
    const bool apart = steps == 1 && l->d->split->stage[STAGE_INNER].problem, inside = apart && lies_in_place(l);
    const enum dist_stage stage = steps > 1 ? STAGE_STEPS : apart ? STAGE_INNER : STAGE_LOCAL;
    const struct dist_run part = {
        .args = l->args, .first = first, .count = count, .own_first = first, .own_count = count, .steps = steps
    };
    /* Not inside of a loop that is a graph: there a wait that was too long has to end the loop, and exchanges tell so. */
    const enum dist_stage joined = steps > 1 ? STAGE_JOINED_STEPS : STAGE_JOINED;
    if (!l->inside && l->prepares && halo_joins(m))
        run_joined(l, joined, &part);
    if (!l->inside && !l->prepares && m->joined) {
        run_joined(l, joined, &part);
        return PTXGEN_OK;
    }
    ptxgen_status status = steps > 1 ? fill_sides(l, count) : PTXGEN_OK;
    if (machine->fork && l->d->comm->size > 1 && status == PTXGEN_OK)
        did(l, machine->fork(l));
    const bool forked = l->beside;
    if (steps == 1)
        status = fill_sides(l, count);
    if (status == PTXGEN_OK)
        run_sides(l, count, apart && !inside ? STAGE_LOCAL : stage, steps);
    if (status == PTXGEN_OK && apart && !inside)
        give_sides(l, count);
    l->beside = false;
    if (l->failed == PTXGEN_OK && status == PTXGEN_OK)
        did(l, dist_run_stage(l, stage, &part));
    if (forked)
        did(l, machine->join(l));
    if (status == PTXGEN_OK && !apart)
        give_sides(l, count);
    return status;
}
