/* SPDX-License-Identifier: Apache-2.0 */
/* room.c - what ranks know of each other's parts, from the table of hellos, and the memory that a launch with them needs.
 *
 * Every rank decides from the same table, so all decide the same.
 */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

enum { PIECES = 64, PIECE_MULTIPLE = 16 };

/* Elements of a piece: the same for all numbers of ranks.  Whole parts are one piece where results may depend on parts. */
static int64_t piece_of(bool pieces, int64_t total)
{
    if (!pieces)
        return total > 0 ? total : 1;
    const int64_t share = (total + PIECES - 1) / PIECES;
    return share <= PIECE_MULTIPLE ? PIECE_MULTIPLE : (share + PIECE_MULTIPLE - 1) / PIECE_MULTIPLE * PIECE_MULTIPLE;
}

void dist_share(bool pieces, int64_t total, int rank, int size, int64_t *first, int64_t *count)
{
    const int64_t unit = pieces ? piece_of(true, total) : 1, units = (total + unit - 1) / unit;
    const int64_t each = units / size, more = units % size;
    const int64_t begin = (rank * each + (rank < more ? rank : more)) * unit;
    const int64_t end = begin + (each + (rank < more)) * unit;
    *first = begin < total ? begin : total;
    *count = (end < total ? end : total) - *first;
}

void dist_deal(int64_t block, int64_t total, int rank, int size, int64_t *first, int64_t *count)
{
    const int64_t whole = total / block, rest = total % block; /* the rest is a block, too */
    *count = (whole / size + (rank < whole % size)) * block + (rank == whole % size ? rest : 0);
    *first = rank * block < total ? rank * block : total;
}

/* Product of the extents of the axes that are reduced, or kept and of the bins, without the split one. */
static int64_t extent(const struct dist_split *sp, const int64_t *size, bool reduced)
{
    const struct problem *p = sp->problem;
    struct prog_array shape = { .stride = sp->state_bytes };
    for (int i = 0; i < p->rank; i++)
        if (i != sp->axis && dist_reduced(p, i) == reduced)
            shape.dim[shape.rank++] = p->space[i].extent;
    for (int i = 0; i < p->nby && !reduced; i++)
        shape.dim[shape.rank++] = p->bin[i];
    return prog_array_elements(&shape, size);
}

int64_t dist_state_bytes(const struct dist_split *sp, const int64_t *size)
{
    return extent(sp, size, false) * sp->state_bytes;
}

int64_t room_pieces(const struct dist_room *m, int r)
{
    const struct dist_split *sp = m->d->split;
    const int64_t first = m->first[r], count = part_of(m, r);
    if (count == 0 || extent(sp, m->size, true) == 0)
        return 0;
    if (sp->block)
        return (count - 1) / m->piece + 1;
    return sp->pieces ? (first + count - 1) / m->piece - first / m->piece + 1 : 1;
}

/* ---- what can be known from the table ---------------------------------------------------------------------------- */

static ptxgen_status wrong(struct ptxgen_session *s, const char *text)
{
    diag_error(&s->diags, D_RUN_DATA, span_none(), "%s", text);
    return PTXGEN_INVALID;
}

/* Where the parts begin. */
static ptxgen_status find_parts(struct ptxgen_session *s, struct dist_room *m)
{
    const struct ptxgen_comm *comm = m->d->comm;
    m->first = calloc((size_t)comm->size + 1, sizeof *m->first);
    if (!m->first)
        return PTXGEN_NO_MEMORY;
    for (int r = 0; r < comm->size; r++)
        if (__builtin_add_overflow(m->first[r], comm->hello[r].count, &m->first[r + 1]))
            return wrong(s, arena_printf(&s->arena, "%s of all ranks is out of range", dist_split_name(m->d)));
    m->total = m->first[comm->size];
    return PTXGEN_OK;
}

/* Has each rank the elements of its blocks? */
static ptxgen_status fits_deal(struct ptxgen_session *s, const struct dist_room *m)
{
    for (int r = 0; r < m->d->comm->size; r++) {
        int64_t first, count;
        dist_deal(m->piece, m->total, r, m->d->comm->size, &first, &count);
        if (count != part_of(m, r))
            return wrong(s, arena_printf(&s->arena,
                                         "rank %d has %lld elements of %s, but of %lld elements in blocks of %lld its "
                                         "share is %lld: ptxgen_dist_share() tells it",
                                         r, (long long)part_of(m, r), dist_split_name(m->d), (long long)m->total,
                                         (long long)m->piece, (long long)count));
    }
    return PTXGEN_OK;
}

static ptxgen_status fits_whole(struct ptxgen_session *s, struct dist_room *m)
{
    const struct ptxgen_comm *comm = m->d->comm;
    const struct dist_split *sp = m->d->split;
    const struct dimension *size = &sp->problem->size[sp->size];
    if (m->total < size->min || m->total > size->max || m->total % size->multiple_of)
        return wrong(s, arena_printf(&s->arena, "%s = %lld of all ranks is not what `assume` promises", size->name,
                                     (long long)m->total));
    m->piece = sp->block ? sp->block : piece_of(sp->pieces, m->total);
    if (sp->block)
        return fits_deal(s, m);
    for (int r = 1; r < comm->size && sp->pieces && sp->problem->determinism == DET_DEVICE; r++) {
        const int64_t first = m->first[r];
        if (first % m->piece && first < m->total)
            return wrong(s, arena_printf(&s->arena,
                                         "rank %d begins at %s = %lld; with `determinism: device` parts begin at "
                                         "multiples of %lld, as those of ptxgen_dist_share() do",
                                         r, size->name, (long long)first, (long long)m->piece));
    }
    return PTXGEN_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static ptxgen_status alloc(struct ptxgen_session *s, struct dist_room *m, size_t bytes, char **out)
{
    void *memory = NULL;
    const ptxgen_status status = machine_of(m->d)->alloc(s, m->d, bytes, &memory);
    *out = memory;
    return status;
}

/* Do the blocks of all ranks, one after the other, hold the states in the order in which they are combined? */
static bool in_order(const struct dist_room *m, int64_t most)
{
    bool good = !machine_of(m->d)->tells && (!dist_turned(m->d->split) || m->states < 2) &&
                (!m->d->split->block || most < 2 || m->d->comm->size == 1);
    for (int64_t r = 0, n = 0; r < m->d->comm->size; n += room_pieces(m, (int)r++))
        good &= room_pieces(m, (int)r) == 0 || n == r * most;
    return good;
}

/* May the first fold after the exchange do the exchange? */
static bool folds_exchange(const struct dist_room *m, int64_t most)
{
    const struct problem *total = m->d->split->stage[STAGE_TOTAL].problem,
                         *carry = m->d->split->stage[STAGE_CARRY].problem;
    const struct problem *fold = total ? total : carry;
    return machine_of(m->d)->open && fold && fold->exchanges && m->block && in_order(m, most) && m->d->comm->size > 1 &&
           m->d->comm->size <= EXCHANGE_MESSAGES;
}

/* Room for states; without any, for what ranks tell each other. */
static ptxgen_status make_states(struct ptxgen_session *s, struct dist_room *m)
{
    const struct dist_split *sp = m->d->split;
    const bool tells = machine_of(m->d)->tells, carries = sp->stage[STAGE_CARRIES].problem;
    const size_t ranks = (size_t)m->d->comm->size;
    int64_t most = 0, block;
    m->state = dist_state_bytes(sp, m->size);
    for (int r = 0; r < m->d->comm->size; r++) {
        const int64_t pieces = room_pieces(m, r);
        most = pieces > most ? pieces : most;
        m->states += pieces;
    }
    if (m->state < 0 || __builtin_mul_overflow(most, m->state, &block) || block > INT64_MAX / 2 / (int64_t)ranks)
        return PTXGEN_NO_MEMORY;
    m->block = tells ? ((size_t)block + 2 * HEAD - 1) / HEAD * HEAD : (size_t)block;
    ptxgen_status status = alloc(s, m, m->block, &m->own);
    if (status == PTXGEN_OK)
        status = alloc(s, m, ranks * m->block, &m->all);
    if (status == PTXGEN_OK)
        status = alloc(s, m, (size_t)(carries ? most : 1) * (size_t)m->state, &m->carry);
    if (status == PTXGEN_OK && carries)
        status = alloc(s, m, (size_t)m->states * (size_t)m->state, &m->prefix);
    if (status == PTXGEN_OK && folds_exchange(m, most))
        status = machine_of(m->d)->alloc(s, m->d, sizeof(struct exchange_table), &m->table);
    m->ordered = m->all;
    if (status == PTXGEN_OK && !in_order(m, most))
        status = alloc(s, m, (size_t)m->states * (size_t)m->state, &m->ordered);
    return status;
}

ptxgen_status room_make(struct ptxgen_session *s, struct ptxgen_dist *d, const int64_t *size, struct dist_room **out)
{
    struct dist_room *m = *out = calloc(1, sizeof *m);
    if (!m)
        return PTXGEN_NO_MEMORY;
    m->d = d;
    m->depth = 1;
    m->clipped = d->split && d->split->interior;
    memcpy(m->size, size, sizeof *size * (size_t)d->shape->nsizes);
    if (d->split && d->split->alike)
        return PTXGEN_OK;
    ptxgen_status status = find_parts(s, m);
    if (status == PTXGEN_OK)
        status = d->program ? program_make(s, m) : fits_whole(s, m);
    if (d->program)
        return status;
    if (status == PTXGEN_OK && (d->split->combined || (has_halo(d->split) && machine_of(d)->tells)))
        status = make_states(s, m);
    if (status == PTXGEN_OK && has_halo(d->split))
        status = halo_make(s, m);
    if (status == PTXGEN_OK && has_halo(d->split))
        status = steps_make(s, m);
    return status;
}

void room_free(struct dist_room *m)
{
    if (!m)
        return;
    const struct dist_machine *machine = machine_of(m->d);
    if (m->d->program)
        program_free(m);
    else {
        steps_free(m);
        halo_free(m);
    }
    if (machine->close)
        machine->close(m);
    machine->free(m->d, m->own);
    machine->free(m->d, m->carry);
    machine->free(m->d, m->prefix);
    machine->free(m->d, m->table);
    if (m->ordered != m->all)
        machine->free(m->d, m->ordered);
    machine->free(m->d, m->all);
    free(m->peers);
    free(m->first);
    free(m);
}
