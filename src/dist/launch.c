/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - a run on all ranks.
 *
 *     hello         what each rank calls with what, and how long its part is: from here on all know all parts
 *     partial       the states of the pieces of the part; one piece per part where results may depend on parts
 *     exchange      everybody gets all states
 *     total, scan   folds in the order of the elements; a scan goes through each piece with the fold of those before
 *
 * Every rank decides from the same table of hellos, so all take the same way.
 */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

enum { PIECES = 64, PIECE_MULTIPLE = 16, HEAD = 16 };

int64_t dist_piece(const struct dist_split *sp, int64_t total)
{
    if (!sp->pieces)
        return total > 0 ? total : 1;
    const int64_t share = (total + PIECES - 1) / PIECES;
    return share <= PIECE_MULTIPLE ? PIECE_MULTIPLE : (share + PIECE_MULTIPLE - 1) / PIECE_MULTIPLE * PIECE_MULTIPLE;
}

void dist_share(const struct dist_split *sp, int64_t total, int rank, int size, int64_t *first, int64_t *count)
{
    const int64_t unit = sp->pieces ? dist_piece(sp, total) : 1, units = (total + unit - 1) / unit;
    const int64_t each = units / size, more = units % size;
    const int64_t begin = (rank * each + (rank < more ? rank : more)) * unit;
    const int64_t end = begin + (each + (rank < more)) * unit;
    *first = begin < total ? begin : total;
    *count = (end < total ? end : total) - *first;
}

/* Product of the extents of the axes that are reduced or kept, without the split one. */
static int64_t extent(const struct dist_split *sp, const int64_t *size, bool reduced)
{
    const struct problem *p = sp->problem;
    struct prog_array shape = { .stride = sp->state_bytes };
    for (int i = 0; i < p->rank; i++)
        if (i != sp->axis && dist_reduced(p, i) == reduced)
            shape.dim[shape.rank++] = p->space[i].extent;
    return prog_array_elements(&shape, size);
}

/* Pieces of rank r's part: the multiples of l->piece cut it. */
static int64_t pieces_of(const struct launch *l, int r)
{
    const int64_t first = l->first[r], count = l->hello[r].count;
    if (count == 0 || extent(l->d->split, l->args->size, true) == 0)
        return 0;
    return l->d->split->pieces ? (first + count - 1) / l->piece - first / l->piece + 1 : 1;
}

/* Elements of piece i of this rank. */
static struct dist_run piece_run(const struct launch *l, int64_t i)
{
    const int rank = l->d->comm->rank;
    const int64_t first = l->first[rank], end = first + l->hello[rank].count;
    int64_t from = first, to = end;
    if (l->d->split->pieces) {
        const int64_t cut = (first / l->piece + i) * l->piece;
        from = i ? cut : first;
        to = cut + l->piece < end ? cut + l->piece : end;
    }
    return (struct dist_run){
        .args = l->args, .first = from, .count = to - from, .behind = from - first, .total = l->total
    };
}

/* ---- what can be known from the table ---------------------------------------------------------------------------- */

static ptxgen_status wrong(struct launch *l, const char *text)
{
    diag_error(&l->s->diags, D_RUN_DATA, span_none(), "%s", text);
    return PTXGEN_INVALID;
}

static ptxgen_status fits_whole(struct launch *l)
{
    const struct dist_split *sp = l->d->split;
    const struct dimension *size = &sp->problem->size[sp->size];
    struct arena *a = &l->s->arena;
    l->first = calloc((size_t)l->d->comm->size + 1, sizeof *l->first);
    if (!l->first)
        return PTXGEN_NO_MEMORY;
    for (int r = 0; r < l->d->comm->size; r++)
        if (__builtin_add_overflow(l->first[r], l->hello[r].count, &l->first[r + 1]))
            return wrong(l, arena_printf(a, "%s of all ranks is out of range", size->name));
    l->total = l->first[l->d->comm->size];
    if (l->total < size->min || l->total > size->max || l->total % size->multiple_of)
        return wrong(l, arena_printf(a, "%s = %lld of all ranks is not what `assume` promises", size->name,
                                     (long long)l->total));
    l->piece = dist_piece(sp, l->total);
    for (int r = 1; r < l->d->comm->size && sp->pieces && sp->problem->determinism == DET_DEVICE; r++) {
        const int64_t first = l->first[r];
        if (first % l->piece && first < l->total)
            return wrong(l, arena_printf(a,
                                         "rank %d begins at %s = %lld; with `determinism: device` parts begin at "
                                         "multiples of %lld, as those of ptxgen_dist_share() do",
                                         r, size->name, (long long)first, (long long)l->piece));
    }
    return PTXGEN_OK;
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static bool has_halo(const struct launch *l) { return l->d->split->before + l->d->split->after > 0; }

static ptxgen_status run_stage(struct launch *l, enum dist_stage stage, const struct dist_run *run)
{
    return has_halo(l) ? halo_run(l, stage, run) : dist_run_stage(l->s, l->d, stage, run);
}

static ptxgen_status make_room(struct launch *l)
{
    const struct dist_split *sp = l->d->split;
    int64_t most = 0, block;
    l->state = extent(sp, l->args->size, false) * sp->state_bytes;
    for (int r = 0; r < l->d->comm->size; r++) {
        const int64_t pieces = pieces_of(l, r);
        most = pieces > most ? pieces : most;
    }
    if (l->state < 0 || __builtin_mul_overflow(most, l->state, &block) || block > INT64_MAX / 2)
        return PTXGEN_NO_MEMORY;
    l->block = ((size_t)block + 2 * HEAD - 1) / HEAD * HEAD;
    l->own = calloc(1, l->block);
    l->all = calloc((size_t)l->d->comm->size, l->block);
    l->carry = calloc(1, (size_t)l->state + 1);
    return l->own && l->all && l->carry ? PTXGEN_OK : PTXGEN_NO_MEMORY;
}

static ptxgen_status partials(struct launch *l)
{
    const int64_t pieces = pieces_of(l, l->d->comm->rank);
    ptxgen_status status = PTXGEN_OK;
    for (int64_t i = 0; i < pieces && status == PTXGEN_OK; i++) {
        struct dist_run run = piece_run(l, i);
        run.states_out = l->own + HEAD + i * l->state;
        status = run_stage(l, STAGE_PARTIAL, &run);
    }
    return status;
}

/* The states of all ranks one after the other, in the order in which they are combined, at l->all. */
static ptxgen_status collect(struct launch *l)
{
    const int size = l->d->comm->size;
    const bool reverse = l->d->split->problem->reverse;
    l->states = 0;
    for (int r = 0; r < size; r++)
        l->states += pieces_of(l, r);
    char *in_order = calloc((size_t)l->states + 1, (size_t)l->state + 1);
    if (!in_order)
        return PTXGEN_NO_MEMORY;
    for (int64_t r = 0, n = 0; r < size; r++)
        for (int64_t i = 0, pieces = pieces_of(l, (int)r); i < pieces; i++, n++)
            memcpy(in_order + (reverse ? l->states - 1 - n : n) * l->state,
                   l->all + (size_t)r * l->block + HEAD + i * l->state, (size_t)l->state);
    free(l->all);
    l->all = in_order;
    return PTXGEN_OK;
}

static ptxgen_status fold(struct launch *l, enum dist_stage stage, int64_t states)
{
    const struct dist_run run = {
        .args = l->args, .total = l->total, .states = states, .states_in = l->all, .states_out = l->carry
    };
    return l->d->code[stage] ? dist_run_stage(l->s, l->d, stage, &run) : PTXGEN_OK;
}

/* The pieces of a scan: each begins with the fold of those that are before it in scan order. */
static ptxgen_status scan(struct launch *l)
{
    const int rank = l->d->comm->rank;
    const int64_t pieces = pieces_of(l, rank);
    ptxgen_status status = PTXGEN_OK;
    int64_t behind = 0;
    for (int r = 0; r < rank; r++)
        behind += pieces_of(l, r);
    for (int64_t i = 0; i < pieces && status == PTXGEN_OK; i++) {
        const int64_t before = l->d->split->problem->reverse ? l->states - 1 - (behind + i) : behind + i;
        struct dist_run run = piece_run(l, i);
        run.states_in = l->carry;
        if (before > 0)
            status = fold(l, STAGE_CARRY, before);
        if (status == PTXGEN_OK)
            status = run_stage(l, before > 0 ? STAGE_NEXT : STAGE_LOCAL, &run);
    }
    return status;
}

static ptxgen_status combine(struct launch *l)
{
    const int64_t own = l->failed == PTXGEN_OK ? partials(l) : l->failed;
    memcpy(l->own, &own, sizeof own);
    ptxgen_status status = dist_exchange(l->s, l->d->comm, l->own, l->all, l->block);
    if (status == PTXGEN_OK)
        status = collect(l);
    if (status == PTXGEN_OK)
        status = fold(l, STAGE_TOTAL, l->states);
    if (status == PTXGEN_OK && l->d->code[STAGE_NEXT])
        status = scan(l);
    return status;
}

/* ---- time steps -------------------------------------------------------------------------------------------------- */

/* No step: what is fed back is the result. */
static ptxgen_status no_step(struct launch *l)
{
    const struct problem *p = l->d->split->problem;
    if (p->nfeedback < p->noutputs)
        return wrong(l, "with zero steps, an output that is not fed back has no value");
    for (int i = 0; i < p->nfeedback; i++) {
        const struct prog_array *a = &p->output[p->feedback[i].output].array;
        memmove(l->args->output[p->feedback[i].output], l->args->input[p->feedback[i].input],
                (size_t)(prog_array_elements(a, l->args->size) * a->stride));
    }
    return PTXGEN_OK;
}

static ptxgen_status local(struct launch *l)
{
    const int rank = l->d->comm->rank;
    const struct dist_run run = {
        .args = l->args, .first = l->first[rank], .count = l->hello[rank].count, .total = l->total
    };
    return run_stage(l, STAGE_LOCAL, &run);
}

/* Where neighbours are exchanged, each step by itself.  A rank whose step fails goes on exchanging, and tells it last. */
static ptxgen_status steps(struct launch *l)
{
    const struct problem *p = l->d->split->problem;
    const int64_t count = !p->iterated ? 1 : p->steps_param < 0 ? p->steps : l->args->param[p->steps_param].i;
    if (count <= 0)
        return count < 0 ? wrong(l, "the number of steps is negative") : no_step(l);
    const bool combined = l->d->split->combined;
    ptxgen_status status = halo_open(l);
    for (int64_t i = combined ? 1 : 0; i < count && status == PTXGEN_OK; i++) {
        if (l->failed == PTXGEN_OK)
            l->failed = combined ? partials(l) : local(l);
        if (i + 1 < count || combined)
            status = halo_feed(l);
    }
    if (status != PTXGEN_OK)
        return status;
    if (combined)
        return combine(l);
    const int64_t own = l->failed;
    memcpy(l->own, &own, sizeof own);
    return dist_exchange(l->s, l->d->comm, l->own, l->all, l->block);
}

static void say_hello(struct dist_hello *own, const struct ptxgen_dist *d, const struct run_args *args,
                      ptxgen_status status)
{
    const struct problem *p = d->split->problem;
    own->status = status;
    for (int i = 0; i < p->nsizes && status == PTXGEN_OK; i++)
        own->value[i] = i == d->split->size ? 0 : (uint64_t)args->size[i];
    for (int i = 0; i < p->nparams && status == PTXGEN_OK; i++)
        own->value[p->nsizes + i] = args->param[i].u;
    own->count = status == PTXGEN_OK ? args->size[d->split->size] : 0;
}

static ptxgen_status in_turn(struct launch *l, struct dist_hello *own)
{
    ptxgen_status status = dist_agree(l->s, l->d->comm, l->d->split, own);
    if (status == PTXGEN_OK)
        status = fits_whole(l);
    if (status != PTXGEN_OK)
        return status;
    if (l->d->split->combined || has_halo(l))
        status = make_room(l);
    if (status != PTXGEN_OK)
        return status;
    return has_halo(l) ? steps(l) : l->d->split->combined ? combine(l) : local(l);
}

/* Also when memory runs out on the way, l knows what is to be freed. */
static ptxgen_status all_ranks(struct launch *l, struct dist_hello *own)
{
    jmp_buf oom, *const outer = l->s->arena.oom;
    if (setjmp(oom)) {
        l->s->arena.oom = outer;
        return PTXGEN_NO_MEMORY;
    }
    l->s->arena.oom = &oom;
    const ptxgen_status status = in_turn(l, own);
    l->s->arena.oom = outer;
    return status;
}

ptxgen_status dist_launch(struct ptxgen_session *s, struct ptxgen_dist *d, const struct run_args *args,
                          ptxgen_status own_status)
{
    struct launch l = { .s = s, .d = d, .args = args, .hello = d->comm->hello };
    struct dist_hello own = { .operation = DIST_LAUNCH, .problem = d->problem };
    strncpy(own.name, d->split->problem->name, PROBLEM_NAME_MAX);
    say_hello(&own, d, args, own_status);
    const ptxgen_status status = all_ranks(&l, &own);
    halo_close(&l);
    free(l.first);
    free(l.own);
    free(l.all);
    free(l.carry);
    return status;
}
