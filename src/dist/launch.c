/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - a run on all ranks.
 *
 *     hello         what each rank calls with what, and how long its part is: from here on all know all parts
 *     partial       the states of the pieces of the part; one piece per part where results may depend on parts
 *     exchange      everybody gets all states
 *     total, scan   folds in the order of the elements; a scan goes through each piece with the fold of those before
 *
 * Where blocks are dealt out, each block is a piece, of maps, too.  If there are rows (derive_rows.c), one run computes all
 * whole blocks of the rank.  Pieces are left: a shorter block, and the first one of a scan, which has no carry.
 *
 * On the host, each launch begins with hellos.  On a GPU, a call before the launch does that (prepare), and walks through
 * the same steps to load what they need; a launch only enqueues.
 */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

/* Elements of piece i of this rank. */
static struct dist_run piece_run(const struct launch *l, int64_t i)
{
    const int rank = l->d->comm->rank;
    const int64_t first = l->room->first[rank], end = first + part_of(l->room, rank);
    if (l->d->split->block) {
        const int64_t piece = l->room->piece, at = (i * l->d->comm->size + rank) * piece, left = l->room->total - at;
        return (
            struct dist_run){ .args = l->args, .first = at, .count = left < piece ? left : piece, .behind = i * piece };
    }
    int64_t from = first, to = end;
    if (l->d->split->pieces) {
        const int64_t cut = (first / l->room->piece + i) * l->room->piece;
        from = i ? cut : first;
        to = cut + l->room->piece < end ? cut + l->room->piece : end;
    }
    return (struct dist_run){ .args = l->args, .first = from, .count = to - from, .behind = from - first };
}

static ptxgen_status wrong(struct launch *l, const char *text)
{
    diag_error(&l->s->diags, D_RUN_DATA, span_none(), "%s", text);
    return PTXGEN_INVALID;
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static ptxgen_status run_stage(struct launch *l, enum dist_stage stage, const struct dist_run *run)
{
    return has_halo(l->d->split) ? halo_run(l, stage, run) : dist_run_stage(l, stage, run);
}

/* Of the states in a block. */
static size_t head(const struct launch *l) { return machine_of(l->d)->tells ? HEAD : 0; }

/* Of `pieces` pieces of this rank, those that are rows: the first ones. */
static int64_t whole_blocks(const struct launch *l, int64_t pieces)
{
    const int64_t whole = l->d->split->rows ? part_of(l->room, l->d->comm->rank) / l->d->split->block : 0;
    return whole < pieces ? whole : pieces;
}

/* Whole blocks from number `from` on. */
static ptxgen_status run_rows(struct launch *l, enum dist_stage stage, int64_t from, int64_t count, void *states)
{
    const int64_t ranks = l->d->comm->size, block = l->d->split->block;
    const struct dist_run run = { .args = l->args,
                                  .first = (from * ranks + l->d->comm->rank) * block,
                                  .count = count,
                                  .behind = from,
                                  .stride = ranks * block,
                                  .states_in = states,
                                  .states_out = states };
    return count > 0 ? dist_run_stage(l, stage, &run) : PTXGEN_OK;
}

static ptxgen_status partials(struct launch *l)
{
    const int64_t pieces = room_pieces(l->room, l->d->comm->rank), rows = whole_blocks(l, pieces);
    char *const states = l->room->own + head(l);
    ptxgen_status status = run_rows(l, STAGE_PARTIAL_ROWS, 0, rows, states);
    for (int64_t i = rows; i < pieces && status == PTXGEN_OK; i++) {
        struct dist_run run = piece_run(l, i);
        run.states_out = states + i * l->room->state;
        status = run_stage(l, STAGE_PARTIAL, &run);
    }
    return status;
}

/* The first piece of rank r among those of all ranks.  Of consecutive parts all pieces of a rank follow each other; of
 * blocks in turn the next piece of a rank comes after one of each other rank. */
static int64_t first_piece(const struct dist_room *m, int r)
{
    int64_t n = 0;
    for (int k = 0; k < r; k++)
        n += m->d->split->block ? 1 : room_pieces(m, k);
    return n;
}

static int64_t next_piece(const struct dist_room *m) { return m->d->split->block ? m->d->comm->size : 1; }

/* How many states lie before that of piece i of rank r. */
static int64_t place(const struct dist_room *m, int r, int64_t i)
{
    const int64_t n = first_piece(m, r) + i * next_piece(m);
    return dist_turned(m->d->split) ? m->states - 1 - n : n;
}

/* The states of all ranks one after the other, in the order in which a fold combines them. */
static ptxgen_status collect(struct launch *l)
{
    const struct dist_room *m = l->room;
    const bool reverse = dist_turned(m->d->split);
    const size_t state = (size_t)m->state;
    ptxgen_status status = PTXGEN_OK;
    for (int r = 0; m->ordered != m->all && r < m->d->comm->size; r++) {
        const int64_t pieces = room_pieces(m, r), copies = reverse ? pieces : pieces > 0;
        for (int64_t i = 0; i < copies && status == PTXGEN_OK; i++)
            status = machine_of(l->d)->copy(
                l, &(struct dist_copy){ .to = m->ordered + place(m, r, i) * m->state,
                                        .from = m->all + (size_t)r * m->block + head(l) + i * m->state,
                                        .to_pitch = state * (size_t)next_piece(m),
                                        .from_pitch = state,
                                        .width = state,
                                        .rows = reverse ? 1 : pieces });
    }
    return status;
}

static ptxgen_status fold(struct launch *l, enum dist_stage stage, int64_t states, void *out)
{
    const struct dist_run run = { .args = l->args,
                                  .states = states,
                                  .states_in = l->room->ordered,
                                  .states_out = out,
                                  .exchange = l->arrives ? l->room->table : NULL };
    if (!l->d->split->stage[stage].problem)
        return PTXGEN_OK;
    const ptxgen_status status = dist_run_stage(l, stage, &run);
    l->arrives &= status != PTXGEN_OK;
    return status;
}

/* With CARRIES: the fold of all states before that of piece i, in scan order; NULL: there are none. */
static char *carry_of(const struct launch *l, int64_t i)
{
    const struct dist_room *m = l->room;
    const int64_t before = place(m, l->d->comm->rank, i) + (m->d->split->problem->reverse ? 1 : -1);
    return before >= 0 && before < m->states ? m->prefix + before * m->state : NULL;
}

/* The rows of a scan: whole blocks with a carry, which are [*from, *to) of `pieces` pieces. */
static ptxgen_status scan_rows(struct launch *l, int64_t pieces, int64_t *from, int64_t *to)
{
    const struct dist_room *m = l->room;
    *from = 0;
    *to = m->d->split->stage[STAGE_NEXT_ROWS].problem ? whole_blocks(l, pieces) : 0;
    if (*to > 0 && !carry_of(l, 0))
        ++*from;
    else if (*to > 0 && !carry_of(l, *to - 1))
        --*to;
    if (*from >= *to)
        return PTXGEN_OK;
    const size_t state = (size_t)m->state, pitch = state * (size_t)next_piece(m);
    const struct dist_copy own = { m->carry, carry_of(l, *from), state, pitch, state, *to - *from };
    const ptxgen_status status = machine_of(l->d)->copy(l, &own);
    return status == PTXGEN_OK ? run_rows(l, STAGE_NEXT_ROWS, *from, *to - *from, m->carry) : status;
}

/* A piece of a scan, which begins with the fold of those that are before it in scan order. */
static ptxgen_status scan_piece(struct launch *l, int64_t i)
{
    const int64_t before = place(l->room, l->d->comm->rank, i);
    struct dist_run run = piece_run(l, i);
    ptxgen_status status = PTXGEN_OK;
    if (l->d->split->stage[STAGE_CARRIES].problem)
        run.states_in = carry_of(l, i);
    else if (before > 0) {
        run.states_in = l->room->carry;
        status = fold(l, STAGE_CARRY, before, l->room->carry);
    }
    return status == PTXGEN_OK ? run_stage(l, run.states_in ? STAGE_NEXT : STAGE_LOCAL, &run) : status;
}

static ptxgen_status scan(struct launch *l)
{
    const int64_t pieces = room_pieces(l->room, l->d->comm->rank);
    int64_t from, to;
    ptxgen_status status = scan_rows(l, pieces, &from, &to);
    for (int64_t i = 0; i < pieces && status == PTXGEN_OK; i++)
        if (i < from || i >= to)
            status = scan_piece(l, i);
    return status;
}

static ptxgen_status gather(struct launch *l)
{
    const ptxgen_status status = machine_of(l->d)->gather(l);
    l->over = status != PTXGEN_OK;
    return status;
}

/* Is a fold what this rank enqueues next, and can it exchange the states?  The first piece of a scan has no fold. */
static bool fold_gathers(const struct launch *l)
{
    const struct dist_split *sp = l->d->split;
    const int rank = l->d->comm->rank;
    const bool carries = sp->stage[STAGE_NEXT].problem && room_pieces(l->room, rank) > 0 && place(l->room, rank, 0) > 0;
    return l->room->tabled && l->room->peers->exchange && l->failed == PTXGEN_OK &&
           (sp->stage[STAGE_TOTAL].problem || carries);
}

/* A fold that was not enqueued has not exchanged, and other ranks wait for it. */
static ptxgen_status combine(struct launch *l)
{
    if (l->failed == PTXGEN_OK)
        l->failed = partials(l);
    l->arrives = fold_gathers(l);
    ptxgen_status status = l->arrives ? PTXGEN_OK : gather(l);
    if (status == PTXGEN_OK)
        status = l->failed;
    if (status == PTXGEN_OK)
        status = collect(l);
    if (status == PTXGEN_OK)
        status = fold(l, STAGE_TOTAL, l->room->states, l->room->carry);
    if (status == PTXGEN_OK)
        status = fold(l, STAGE_CARRIES, l->room->states, l->room->prefix);
    if (status == PTXGEN_OK && l->d->split->stage[STAGE_NEXT].problem)
        status = scan(l);
    if (l->arrives)
        did(l, gather(l));
    return status;
}

/* ---- time steps -------------------------------------------------------------------------------------------------- */

/* No step: what is fed back is the result. */
static ptxgen_status no_step(struct launch *l)
{
    const struct problem *p = l->d->split->problem;
    ptxgen_status status = PTXGEN_OK;
    if (p->nfeedback < p->noutputs)
        return wrong(l, "with zero steps, an output that is not fed back has no value");
    for (int i = 0; i < p->nfeedback && status == PTXGEN_OK; i++) {
        const struct prog_array *a = &p->output[p->feedback[i].output].array;
        const struct dist_copy copy = { .to = l->args->output[p->feedback[i].output],
                                        .from = l->args->input[p->feedback[i].input],
                                        .width = (size_t)(prog_array_elements(a, l->args->size) * a->stride),
                                        .rows = 1 };
        if (copy.to != copy.from)
            status = machine_of(l->d)->copy(l, &copy);
    }
    return status;
}

static ptxgen_status local(struct launch *l)
{
    const int64_t block = l->d->split->block, part = part_of(l->room, l->d->comm->rank);
    const int64_t pieces = block ? part / block + (part % block > 0) : 1, rows = whole_blocks(l, pieces);
    if (l->failed == PTXGEN_OK)
        l->failed = run_rows(l, STAGE_LOCAL_ROWS, 0, rows, NULL);
    for (int64_t i = rows; i < pieces && l->failed == PTXGEN_OK; i++) {
        const struct dist_run run = piece_run(l, i);
        l->failed = run_stage(l, STAGE_LOCAL, &run);
    }
    return l->failed;
}

/* Where neighbours are exchanged, each step by itself.  A rank whose step fails goes on exchanging, and tells it last. */
static ptxgen_status steps(struct launch *l)
{
    const struct problem *p = l->d->split->problem;
    int64_t count = !p->iterated ? 1 : p->steps_param < 0 ? p->steps : l->args->param[p->steps_param].i;
    const bool combined = l->d->split->combined, direct = l->room->all_direct || (l->room->direct && count == 1);
    if (count < 0)
        return wrong(l, "the number of steps is negative");
    if (count == 0 && !(l->prepares && direct))
        return no_step(l);
    if (l->prepares && !direct && count > PREPARED_STEPS)
        count = PREPARED_STEPS;
    ptxgen_status status = direct ? steps_direct(l, count) : halo_begin(l);
    for (int64_t i = 1; !direct && i <= count && status == PTXGEN_OK; i++) {
        l->ends = i == count;
        if (l->failed == PTXGEN_OK && !(l->ends && combined))
            l->failed = combined ? partials(l) : local(l);
        if (!l->ends)
            status = halo_feed(l);
    }
    if (status != PTXGEN_OK)
        return status;
    if (combined)
        return combine(l);
    return machine_of(l->d)->tells ? gather(l) : l->failed;
}

/* All of it, on each rank. */
static ptxgen_status alike(struct launch *l)
{
    return l->failed == PTXGEN_OK ? machine_of(l->d)->run(l, STAGE_LOCAL, l->args) : l->failed;
}

ptxgen_status dist_walk(struct launch *l)
{
    const struct dist_split *sp = l->d->split;
    if (l->d->program)
        return program_walk(l);
    if (sp->alike)
        return alike(l);
    memcpy(l->array, l->room->array, sizeof l->array);
    return has_halo(sp) ? steps(l) : sp->combined ? combine(l) : local(l);
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

static struct dist_hello hello_of(const struct ptxgen_dist *d, enum dist_operation operation,
                                  const struct run_args *args, ptxgen_status status)
{
    const struct program *p = d->shape;
    struct dist_hello own = { .operation = operation, .problem = d->problem, .status = status };
    strncpy(own.name, p->name, PROBLEM_NAME_MAX);
    for (int i = 0; i < p->nsizes && status == PTXGEN_OK; i++)
        own.value[i] = i == d->size ? 0 : (uint64_t)args->size[i];
    for (int i = 0; i < p->nparams && status == PTXGEN_OK; i++)
        own.value[p->nsizes + i] = args->param[i].u;
    own.count = status == PTXGEN_OK ? args->size[d->size] : 0;
    return own;
}

static ptxgen_status launch_at_once(struct launch *l, struct dist_hello *own)
{
    ptxgen_status status = dist_agree(l->s, l->d->comm, l->d->shape, own);
    if (status == PTXGEN_OK)
        status = room_make(l->s, l->d, l->args->size, &l->room);
    return status == PTXGEN_OK ? dist_walk(l) : status;
}

ptxgen_status dist_told(struct launch *l, ptxgen_status here)
{
    struct ptxgen_comm *comm = l->d->comm;
    const int64_t own[HEAD / sizeof(int64_t)] = { here };
    return dist_exchange(l->s, comm, own, comm->hello, sizeof own);
}

static void set_shared(struct dist_room *m, ptxgen_stream stream, struct dist_peers *peers)
{
    m->stream = stream;
    m->peers = peers;
    if (m->deep)
        set_shared(m->deep, stream, peers);
    for (int i = 0; m->program && i < m->d->program->nstages && m->program->of[i]; i++)
        set_shared(m->program->of[i], stream, peers);
}

static ptxgen_status make_for(struct launch *l)
{
    struct dist_peers *peers = calloc(1, sizeof *peers);
    const ptxgen_status status = peers ? room_make(l->s, l->d, l->args->size, &l->room) : PTXGEN_NO_MEMORY;
    if (l->room)
        set_shared(l->room, l->stream, peers);
    else
        free(peers);
    return status;
}

static ptxgen_status prepare(struct launch *l, struct dist_hello *own)
{
    ptxgen_status status = dist_agree(l->s, l->d->comm, l->d->shape, own);
    if (status == PTXGEN_OK)
        status = dist_told(l, make_for(l));
    if (status == PTXGEN_OK)
        status = dist_told(l, dist_walk(l));
    return status == PTXGEN_OK && machine_of(l->d)->open ? machine_of(l->d)->open(l) : status;
}

/* Also when memory runs out on the way, l knows what is to be freed. */
static ptxgen_status guarded(struct launch *l, struct dist_hello *own,
                             ptxgen_status (*call)(struct launch *l, struct dist_hello *own))
{
    jmp_buf oom, *const outer = l->s->arena.oom;
    if (setjmp(oom)) {
        l->s->arena.oom = outer;
        return PTXGEN_NO_MEMORY;
    }
    l->s->arena.oom = &oom;
    const ptxgen_status status = call(l, own);
    l->s->arena.oom = outer;
    return status;
}

struct dist_room *room_of(const struct ptxgen_dist *d, const int64_t *size, ptxgen_stream stream)
{
    struct dist_room *m = d->rooms;
    const size_t bytes = sizeof *size * (size_t)d->shape->nsizes;
    while (m && (m->superseded || m->stream != stream || memcmp(m->size, size, bytes)))
        m = m->next;
    return m;
}

static ptxgen_status launch_prepared(struct launch *l, ptxgen_stream stream)
{
    l->room = room_of(l->d, l->args->size, stream);
    if (l->room)
        return dist_walk(l);
    diag_hint(&l->s->diags,
              diag_error(&l->s->diags, D_LAUNCH_ARGUMENT, span_none(),
                         "'%s' was not prepared for these sizes on this stream", l->d->shape->name),
              "all ranks call ptxgen_dist_prepare() once before launches with other sizes");
    return PTXGEN_USAGE;
}

ptxgen_status dist_launch(struct ptxgen_session *s, struct ptxgen_dist *d, const struct run_args *args,
                          ptxgen_stream stream, ptxgen_status own_status, const struct dist_visitor *visitor)
{
    struct launch l = { .s = s, .d = d, .args = args, .stream = stream, .visitor = visitor };
    if (machine_of(d)->prepared)
        return own_status == PTXGEN_OK ? launch_prepared(&l, stream) : own_status;
    struct dist_hello own = hello_of(d, DIST_LAUNCH, args, own_status);
    const ptxgen_status status = guarded(&l, &own, launch_at_once);
    room_free(l.room);
    return status;
}

/* Are the sizes but the split one alike? */
static bool same_beside(const struct dist_room *a, const struct dist_room *b)
{
    bool same = true;
    for (int i = 0; i < a->d->shape->nsizes; i++)
        same &= i == a->d->size || a->size[i] == b->size[i];
    return same;
}

/* Is some rank's part the same, and is it so for all ranks? */
static bool same_parts(const struct dist_room *a, const struct dist_room *b, bool *all)
{
    bool some = false;
    *all = true;
    for (int r = 0; r < a->d->comm->size; r++) {
        const bool same = part_of(a, r) == part_of(b, r);
        some |= same;
        *all &= same;
    }
    return some;
}

/* The room that this rank has for what was just prepared; 0: none.  All ranks number their rooms alike. */
static int64_t known(const struct dist_room *m)
{
    const size_t sizes = sizeof *m->size * (size_t)m->d->shape->nsizes;
    for (const struct dist_room *old = m->d->rooms; old; old = old->next) {
        bool all;
        same_parts(m, old, &all);
        if (all && m->stream == old->stream && !old->superseded && !memcmp(m->size, old->size, sizes))
            return old->number;
    }
    return 0;
}

/* A rank finds the room of a launch by the sizes of its own part and its stream.  So where some rank's part was the same
 * before among other parts, ranks would take different rooms and wait for each other: all of them give up the older one,
 * which all know from the same parts.  The memory stays, for graphs.  A room that all ranks have already stays instead of
 * the new one; where only some have it, as streams go, all take the new one. */
static ptxgen_status keep(struct launch *l, struct dist_room *m)
{
    struct ptxgen_dist *d = l->d;
    const int64_t own[HEAD / sizeof(int64_t)] = { PTXGEN_OK, known(m) };
    const int64_t *const told = (const int64_t *)(const void *)d->comm->hello;
    const ptxgen_status status = dist_exchange(l->s, d->comm, own, d->comm->hello, sizeof own);
    bool alike = true;
    for (int r = 0; r < d->comm->size && status == PTXGEN_OK; r++)
        alike &= told[2 * r + 1] == own[1];
    if (status != PTXGEN_OK || (alike && own[1])) {
        room_free(m);
        return status;
    }
    for (struct dist_room *old = d->rooms; old; old = old->next) {
        bool all;
        const bool some = same_parts(m, old, &all);
        old->superseded |= some && (!all || !alike) && same_beside(m, old);
    }
    m->number = ++d->nrooms;
    m->next = d->rooms;
    d->rooms = m;
    return PTXGEN_OK;
}

ptxgen_status dist_prepare(struct ptxgen_session *s, struct ptxgen_dist *d, const struct run_args *args,
                           ptxgen_stream stream, ptxgen_status own_status)
{
    struct launch l = { .s = s, .d = d, .args = args, .stream = stream, .prepares = true };
    struct dist_hello own = hello_of(d, DIST_PREPARE, args, own_status);
    const ptxgen_status status = guarded(&l, &own, prepare);
    if (status != PTXGEN_OK) {
        room_free(l.room);
        return status;
    }
    return keep(&l, l.room);
}
