/* SPDX-License-Identifier: Apache-2.0 */
/* ghosts.c - elements of other ranks that a rank reads as neighbours: which they are, and their exchange.
 *
 * All ranks know all parts.  So each knows who owns what it needs, and who needs what it owns, and sends just that: parts
 * may be thinner than the reach of a stencil.  What is beyond the whole follows from the boundary: rows of some rank, or
 * constants.  All this depends on the parts alone, and is worked out once for a room, as strips of rows.
 */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

struct rows rows_of(const struct dist_room *m, const struct prog_array *a)
{
    struct prog_array before = { .stride = 1 }, after = { .stride = a->stride };
    struct rows r = { false, 0, 0 };
    for (int d = 0; d < a->rank; d++) {
        struct prog_array *side = r.split ? &after : &before;
        if (a->dim[d].size == m->d->split->size)
            r.split = true;
        else
            side->dim[side->rank++] = a->dim[d];
    }
    r.outer = prog_array_elements(&before, m->size);
    r.inner = prog_array_elements(&after, m->size) * a->stride;
    return r;
}

ptxgen_status copy_rows(struct launch *l, const struct rows *r, char *to, int64_t to_extent, const char *from,
                        int64_t from_extent, const struct strip *strip)
{
    struct dist_copy copy = { .from = from + strip->from * r->inner,
                              .to_pitch = (size_t)(to_extent * r->inner),
                              .from_pitch = (size_t)(from_extent * r->inner),
                              .width = (size_t)(strip->count * r->inner),
                              .rows = r->outer };
    copy.to = to + strip->to * r->inner;
    return copy.width && copy.rows ? machine_of(l->d)->copy(l, &copy) : PTXGEN_OK;
}

/* ---- which ghosts there are -------------------------------------------------------------------------------------- */

static int64_t modulo(int64_t x, int64_t n) { return (x % n + n) % n; }

/* The element of the whole that is read at `at`; -1: a constant. */
static int64_t element_at(enum boundary_mode mode, int64_t at, int64_t total)
{
    if (at >= 0 && at < total)
        return at;
    switch (mode) {
    case BOUND_CLAMP: return at < 0 ? 0 : total - 1;
    case BOUND_WRAP: return modulo(at, total);
    case BOUND_REFLECT: at = modulo(at, 2 * total); return at < total ? at : 2 * total - 1 - at;
    case BOUND_MIRROR: at = total > 1 ? modulo(at, 2 * total - 2) : 0; return at < total ? at : 2 * total - 2 - at;
    case BOUND_CONSTANT:
    case BOUND_INTERIOR: break;
    }
    return -1;
}

void halo_reach(const struct dist_room *m, int64_t from, int64_t to, int64_t *begin, int64_t *end)
{
    const struct dist_split *sp = m->d->split;
    *begin = from - sp->before * m->depth;
    *end = to + sp->after * m->depth;
    if (m->clipped) {
        *begin = *begin < 0 ? 0 : *begin;
        *end = *end > m->total ? m->total : *end;
    }
}

/* Does an exchange fill the ghosts of this input?  Elements that are only read where they are have some, too, where several
 * steps compute what is at ghosts. */
static bool has_ghosts(const struct dist_room *m, int i)
{
    const struct input *in = &m->d->split->problem->input[i];
    return rows_of(m, &in->array).split && (in->neighbours || m->depth > 1);
}

static const struct boundary *boundary_of(const struct dist_room *m, int i)
{
    const struct input *in = &m->d->split->problem->input[i];
    for (int d = 0; d < in->array.rank; d++)
        if (in->axis[d] == m->d->split->axis)
            return &in->boundary[d];
    return NULL;
}

/* The ghosts of rank `needs` that rank `owns` has (-1: constants), in order, as strips; `row` counts from `mine`.  Their
 * number; strips: NULL, or room for as many. */
static int64_t each_ghost(const struct dist_room *m, int i, int needs, int owns, struct strip *strips, int *n)
{
    const int64_t from = m->first[needs], to = m->first[needs + 1];
    const int64_t mine = owns < 0 ? 0 : m->first[owns], behind = owns < 0 ? 0 : m->first[owns + 1];
    int64_t begin, end, ghosts = 0;
    halo_reach(m, from, to, &begin, &end);
    for (int64_t at = begin; at < end && from < to; at++) {
        if (at == from) /* the part */
            at = to;
        if (at >= end)
            break;
        const int64_t row = element_at(m->depth > 1 ? BOUND_WRAP : boundary_of(m, i)->mode, at, m->total);
        if (owns < 0 ? row >= 0 : row < mine || row >= behind)
            continue;
        ghosts++;
        struct strip *last = strips && *n ? &strips[*n - 1] : NULL;
        if (last && owns >= 0 && last->to + last->count == at && last->from + last->count == row)
            last->count++;
        else if (strips)
            strips[(*n)++] = (struct strip){ at, row, 1 };
    }
    return ghosts;
}

/* ---- what a room has of them ------------------------------------------------------------------------------------- */

/* The strips of what rank `needs` needs of `owns`; NULL: memory is exhausted. */
static struct strip *strips_of(const struct dist_room *m, int i, int needs, int owns, int *n, int64_t *rows)
{
    *rows = each_ghost(m, i, needs, owns, NULL, NULL);
    struct strip *strips = calloc((size_t)*rows + 1, sizeof *strips);
    if (strips)
        each_ghost(m, i, needs, owns, strips, n);
    return strips;
}

/* Does any rank need something of the one `shift` before it? */
static bool shifted(const struct dist_room *m, int input, int shift)
{
    const int size = m->d->comm->size;
    for (int r = 0; r < size; r++)
        if (each_ghost(m, input, (r + shift) % size, r, NULL, NULL))
            return true;
    return false;
}

/* Rows travel side by side.  Where they lie so in the array, they need no memory of their own. */
static ptxgen_status packing(struct ptxgen_session *s, struct dist_room *m, const struct rows *r, int strips,
                             int64_t rows, char **packed)
{
    void *memory = NULL;
    if (rows == 0 || (strips == 1 && r->outer == 1))
        return PTXGEN_OK;
    const ptxgen_status status = machine_of(m->d)->alloc(s, m->d, (size_t)(rows * r->outer * r->inner), &memory);
    *packed = memory;
    return status;
}

static ptxgen_status shift_make(struct ptxgen_session *s, struct dist_room *m, int i, int shift, struct ghosts *g)
{
    const int size = m->d->comm->size, rank = m->d->comm->rank;
    const int to = (rank + shift) % size, from = (rank + size - shift) % size;
    const struct rows r = rows_of(m, &m->d->split->problem->input[i].array);
    g->any = shifted(m, i, shift);
    g->in = strips_of(m, i, rank, from, &g->nin, &g->in_rows);
    g->out = strips_of(m, i, to, rank, &g->nout, &g->out_rows);
    if (!g->in || !g->out)
        return PTXGEN_NO_MEMORY;
    for (int k = 0; k < g->nin; k++)
        g->in[k].to -= m->begin;
    if (shift == 0) {
        for (int k = 0; k < g->nin; k++)
            g->in[k].from -= m->begin;
        return PTXGEN_OK;
    }
    int64_t n = 0;
    for (int k = 0; k < g->nin; n += g->in[k++].count)
        g->in[k].from = n;
    n = 0;
    for (int k = 0; k < g->nout; n += g->out[k++].count) {
        g->out[k].from -= m->begin;
        g->out[k].to = n;
    }
    const ptxgen_status status = packing(s, m, &r, g->nout, g->out_rows, &g->send);
    return status == PTXGEN_OK ? packing(s, m, &r, g->nin, g->in_rows, &g->get) : status;
}

/* A row of what is beyond the whole, and the ghosts that it is copied to. */
static ptxgen_status edge_make(struct ptxgen_session *s, struct dist_room *m, int i, struct ghosts *g)
{
    const struct input *in = &m->d->split->problem->input[i];
    const struct boundary *edge = boundary_of(m, i);
    const struct rows r = rows_of(m, &in->array);
    const int64_t bytes = r.outer * r.inner;
    void *memory = NULL;
    g->in = strips_of(m, i, m->d->comm->rank, -1, &g->nin, &g->in_rows);
    if (!g->in)
        return PTXGEN_NO_MEMORY;
    if (!g->nin)
        return PTXGEN_OK;
    char *row = calloc(1, (size_t)bytes + 1);
    ptxgen_status status = row ? machine_of(m->d)->alloc(s, m->d, (size_t)bytes, &memory) : PTXGEN_NO_MEMORY;
    m->edge[i] = memory;
    for (int k = 0; k < g->nin; k++) {
        g->in[k].to -= m->begin;
        g->in[k].from = 0;
    }
    for (int64_t at = 0; at < bytes && status == PTXGEN_OK; at += in->array.stride)
        for (int f = 0; f < in->array.nfields; f++)
            value_store(in->array.field[f].type, row + at + in->array.field[f].offset, edge->constant[f]);
    if (status == PTXGEN_OK)
        status = machine_of(m->d)->write(s, m->d, memory, row, (size_t)bytes);
    free(row);
    return status;
}

static struct ghosts *ghosts_of(const struct dist_room *m, int i) { return m->ghosts + i * (m->d->comm->size + 1); }

ptxgen_status ghosts_make(struct ptxgen_session *s, struct dist_room *m, int i)
{
    const int size = m->d->comm->size;
    ptxgen_status status = PTXGEN_OK;
    if (!has_ghosts(m, i))
        return PTXGEN_OK;
    for (int shift = 0; shift < size && status == PTXGEN_OK; shift++)
        status = shift_make(s, m, i, shift, &ghosts_of(m, i)[shift]);
    return status == PTXGEN_OK ? edge_make(s, m, i, &ghosts_of(m, i)[size]) : status;
}

void ghosts_free(struct dist_room *m, int i)
{
    for (int k = 0; m->ghosts && k <= m->d->comm->size; k++) {
        struct ghosts *g = &ghosts_of(m, i)[k];
        machine_of(m->d)->free(m->d, g->send);
        machine_of(m->d)->free(m->d, g->get);
        free(g->in);
        free(g->out);
    }
    machine_of(m->d)->free(m->d, m->edge[i]);
}

/* ---- moving them ------------------------------------------------------------------------------------------------- */

/* Rows of an array in memory; `at` is the first of them. */
struct place {
    char *array;
    int64_t extent, at;
};

/* Where row `row` of the room of input i is now. */
static struct place place_of(const struct launch *l, int i, int64_t row)
{
    const struct dist_room *m = l->room;
    const int rank = l->d->comm->rank;
    const int64_t count = part_of(m, rank), at = row - (m->first[rank] - m->begin);
    if (!l->direct)
        return (struct place){ l->array[i], m->extent, row };
    if (at >= 0 && at < count)
        return (struct place){ (char *)(uintptr_t)l->args->input[i], count, at };
    const struct side *side = &m->side[at >= count];
    return (struct place){ side->array[i], side->extent, at - side->begin };
}

/* `count` rows of input i. */
static void move(struct launch *l, int i, struct place to, struct place from, int64_t count)
{
    const struct rows r = rows_of(l->room, &l->d->split->problem->input[i].array);
    const struct strip strip = { to.at, from.at, count };
    did(l, copy_rows(l, &r, to.array, to.extent, from.array, from.extent, &strip));
}

/* Where `rows` rows of an exchange are: packed, or side by side in their array. */
static char *lies_at(const struct launch *l, int i, char *packed, int64_t rows, int64_t row)
{
    const struct rows r = rows_of(l->room, &l->d->split->problem->input[i].array);
    const struct place in = place_of(l, i, row);
    return packed || !rows ? packed : in.array + in.at * r.inner;
}

static struct exchange_message message_of(struct launch *l, int i, int shift)
{
    const struct ghosts *g = &ghosts_of(l->room, i)[shift];
    const int size = l->d->comm->size, rank = l->d->comm->rank;
    const struct rows r = rows_of(l->room, &l->d->split->problem->input[i].array);
    return (struct exchange_message){ .send = lies_at(l, i, g->send, g->out_rows, g->out[0].from),
                                      .get = lies_at(l, i, g->get, g->in_rows, g->in[0].to),
                                      .send_bytes = (size_t)(g->out_rows * r.outer * r.inner),
                                      .get_bytes = (size_t)(g->in_rows * r.outer * r.inner),
                                      .to = (rank + shift) % size,
                                      .from = (rank + size - shift) % size };
}

/* Those of one input that need no other rank, and what goes to others. */
static void pack(struct launch *l, int i)
{
    const struct ghosts *g = ghosts_of(l->room, i), *edge = g + l->d->comm->size;
    for (int k = 0; k < g->nin; k++)
        move(l, i, place_of(l, i, g->in[k].to), place_of(l, i, g->in[k].from), g->in[k].count);
    for (int k = 0; k < edge->nin; k++)
        move(l, i, place_of(l, i, edge->in[k].to), (struct place){ l->room->edge[i], 1, 0 }, 1);
    for (int shift = 1; shift < l->d->comm->size; shift++)
        for (int k = 0; g[shift].send && k < g[shift].nout; k++) {
            const struct strip *s = &g[shift].out[k];
            move(l, i, (struct place){ g[shift].send, g[shift].out_rows, s->to }, place_of(l, i, s->from), s->count);
        }
}

static void unpack(struct launch *l, int i)
{
    const struct ghosts *g = ghosts_of(l->room, i);
    for (int shift = 1; shift < l->d->comm->size; shift++)
        for (int k = 0; g[shift].get && k < g[shift].nin; k++) {
            const struct strip *s = &g[shift].in[k];
            move(l, i, place_of(l, i, s->to), (struct place){ g[shift].get, g[shift].in_rows, s->from }, s->count);
        }
}

ptxgen_status ghosts_fill(struct launch *l, const int *input, int n, const struct exchange_message *own, int nown)
{
    const int size = l->d->comm->size;
    struct exchange_message *message = calloc((size_t)(n * size + nown) + 1, sizeof *message);
    int messages = 0;
    if (!message)
        return PTXGEN_NO_MEMORY;
    for (int k = 0; k < n; k++) {
        pack(l, input[k]);
        for (int shift = 1; shift < size; shift++)
            if (ghosts_of(l->room, input[k])[shift].any)
                message[messages++] = message_of(l, input[k], shift);
    }
    for (int k = 0; k < nown; k++)
        message[messages++] = own[k];
    const ptxgen_status status = messages ? machine_of(l->d)->swap(l, message, messages) : PTXGEN_OK;
    for (int k = 0; k < n && status == PTXGEN_OK; k++)
        unpack(l, input[k]);
    free(message);
    return status;
}
