/* SPDX-License-Identifier: Apache-2.0 */
/* halo.c - elements of other ranks that a rank reads as neighbours.
 *
 * Arrays with the split dimension get room for `before` and `after` more elements of it, ghosts.  What an element beyond
 * the whole is follows from the boundary, so ghosts at the ends of the whole are filled as well, and a stage sees no edge
 * along the split dimension.  Only with `interior` there are no ghosts beyond the whole: points there are not computed.
 * Points at ghosts are computed along with the others, and thrown away: results are cut out of room of their own.
 *
 * All ranks know all parts.  So each knows who owns what it needs, and who needs what it owns, and sends just that: parts
 * may be thinner than the reach of a stencil.
 */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

/* An array as rows of `inner` bytes, one for each element of the split dimension, `outer` times. */
struct rows {
    bool split; /* has the dimension */
    int64_t outer, inner;
};

static struct rows rows_of(const struct launch *l, const struct prog_array *a)
{
    struct prog_array before = { .stride = 1 }, after = { .stride = a->stride };
    struct rows r = { false, 0, 0 };
    for (int d = 0; d < a->rank; d++) {
        struct prog_array *side = r.split ? &after : &before;
        if (a->dim[d].size == l->d->split->size)
            r.split = true;
        else
            side->dim[side->rank++] = a->dim[d];
    }
    r.outer = prog_array_elements(&before, l->args->size);
    r.inner = prog_array_elements(&after, l->args->size) * a->stride;
    return r;
}

/* Row `at` of an array with `extent` of them, to or from `outer` consecutive ones. */
static void copy_row(const struct rows *r, char *array, int64_t extent, int64_t at, char *packed, bool from_array)
{
    for (int64_t i = 0; i < r->outer; i++) {
        char *here = array + (i * extent + at) * r->inner, *there = packed + i * r->inner;
        memcpy(from_array ? there : here, from_array ? here : there, (size_t)r->inner);
    }
}

/* `count` rows of one array to another. */
static void copy_rows(const struct rows *r, char *to, int64_t to_extent, int64_t to_at, const char *from,
                      int64_t from_extent, int64_t from_at, int64_t count)
{
    for (int64_t i = 0; i < r->outer; i++)
        memcpy(to + (i * to_extent + to_at) * r->inner, from + (i * from_extent + from_at) * r->inner,
               (size_t)(count * r->inner));
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

/* What a rank needs beside [from, to). */
static void reach(const struct launch *l, int64_t from, int64_t to, int64_t *begin, int64_t *end)
{
    const struct dist_split *sp = l->d->split;
    *begin = from - sp->before;
    *end = to + sp->after;
    if (sp->interior) {
        *begin = *begin < 0 ? 0 : *begin;
        *end = *end > l->total ? l->total : *end;
    }
}

static const struct boundary *boundary_of(const struct launch *l, int i)
{
    const struct input *in = &l->d->split->problem->input[i];
    for (int d = 0; d < in->array.rank; d++)
        if (in->axis[d] == l->d->split->axis)
            return &in->boundary[d];
    return NULL;
}

/* f for each ghost of rank `needs` that rank `owns` has (-1: a constant), in order; gives their number. */
static int64_t each_ghost(const struct launch *l, int i, int needs, int owns,
                          void (*f)(struct launch *l, int64_t ghost, int64_t row, void *user), void *user)
{
    const int64_t from = l->first[needs], to = from + l->hello[needs].count;
    const int64_t mine = owns < 0 ? 0 : l->first[owns], behind = owns < 0 ? 0 : mine + l->hello[owns].count;
    int64_t begin, end, n = 0;
    reach(l, from, to, &begin, &end);
    for (int64_t at = begin; at < end && from < to; at = at + 1 == from ? to : at + 1) {
        if (at == from) /* no ghosts before */
            at = to;
        if (at >= end)
            break;
        const int64_t row = element_at(boundary_of(l, i)->mode, at, l->total);
        if (owns < 0 ? row >= 0 : row < mine || row >= behind)
            continue;
        n++;
        if (f)
            f((struct launch *)(uintptr_t)l, at, row, user);
    }
    return n;
}

/* ---- moving them ------------------------------------------------------------------------------------------------- */

struct move {
    struct rows rows;
    int input;
    char *array;    /* with ghosts */
    int64_t begin;  /* position in the whole of its first row */
    int64_t extent; /* rows of it */
    char *packed;   /* where the next row goes, or comes from */
    bool pack;
};

static void move_row(struct launch *l, int64_t ghost, int64_t row, void *user)
{
    (void)l;
    struct move *m = user;
    copy_row(&m->rows, m->array, m->extent, (m->pack ? row : ghost) - m->begin, m->packed, m->pack);
    m->packed += m->rows.outer * m->rows.inner;
}

static void fill_row(struct launch *l, int64_t ghost, int64_t row, void *user)
{
    (void)row;
    struct move *m = user;
    const struct prog_array *a = &l->d->split->problem->input[m->input].array;
    const struct boundary *edge = boundary_of(l, m->input);
    for (int64_t i = 0; i < m->rows.outer; i++)
        for (int64_t k = 0; k < m->rows.inner; k += a->stride)
            for (int f = 0; f < a->nfields; f++)
                value_store(a->field[f].type,
                            m->array + (i * m->extent + ghost - m->begin) * m->rows.inner + k + a->field[f].offset,
                            edge->constant[f]);
}

/* All ranks do the same shift: rank r sends to r + shift what that one needs of it. */
static ptxgen_status shift_by(struct launch *l, struct move *m, int shift)
{
    struct ptxgen_comm *comm = l->d->comm;
    const int to = (comm->rank + shift) % comm->size, from = (comm->rank + comm->size - shift) % comm->size;
    const int64_t bytes = m->rows.outer * m->rows.inner;
    const int64_t out = each_ghost(l, m->input, to, comm->rank, NULL, NULL) * bytes;
    const int64_t in = each_ghost(l, m->input, comm->rank, from, NULL, NULL) * bytes;
    char *send = malloc((size_t)out + 1), *get = shift ? malloc((size_t)in + 1) : send;
    ptxgen_status status = send && get ? PTXGEN_OK : PTXGEN_NO_MEMORY;
    if (status == PTXGEN_OK) {
        m->packed = send;
        m->pack = true;
        each_ghost(l, m->input, to, comm->rank, move_row, m);
        status = shift ? dist_sendrecv(l->s, comm, send, (size_t)out, to, get, (size_t)in, from) : PTXGEN_OK;
    }
    if (status == PTXGEN_OK) {
        m->packed = get;
        m->pack = false;
        each_ghost(l, m->input, comm->rank, from, move_row, m);
    }
    free(send);
    if (shift)
        free(get);
    return status;
}

/* Does any rank need something of the one `shift` before it? */
static bool shifted(const struct launch *l, int input, int shift)
{
    const int size = l->d->comm->size;
    for (int r = 0; r < size; r++)
        if (each_ghost(l, input, (r + shift) % size, r, NULL, NULL))
            return true;
    return false;
}

/* The ghosts of input i. */
static ptxgen_status fill_ghosts(struct launch *l, int i)
{
    const struct input *in = &l->d->split->problem->input[i];
    struct move m = { .rows = rows_of(l, &in->array), .input = i, .array = l->room[i], .begin = l->begin };
    ptxgen_status status = PTXGEN_OK;
    m.extent = l->extent;
    if (!m.rows.split || !in->neighbours)
        return PTXGEN_OK;
    each_ghost(l, i, l->d->comm->rank, -1, fill_row, &m);
    for (int shift = 0; shift < l->d->comm->size && status == PTXGEN_OK; shift++)
        if (shifted(l, i, shift))
            status = shift_by(l, &m, shift);
    return status;
}

/* ---- for a launch ------------------------------------------------------------------------------------------------ */

static const struct prog_array *array_of(const struct problem *p, int i)
{
    return i < p->ninputs ? &p->input[i].array : &p->output[i - p->ninputs].array;
}

ptxgen_status halo_open(struct launch *l)
{
    const struct problem *p = l->d->split->problem;
    const int rank = l->d->comm->rank;
    const int64_t first = l->first[rank], count = l->hello[rank].count;
    int64_t end;
    ptxgen_status status = PTXGEN_OK;
    reach(l, first, first + count, &l->begin, &end);
    l->extent = end - l->begin;
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const struct rows r = rows_of(l, array_of(p, i));
        int64_t row, bytes;
        if (!r.split)
            continue;
        if (__builtin_mul_overflow(r.outer, r.inner, &row) || __builtin_mul_overflow(row, l->extent, &bytes) ||
            !(l->room[i] = calloc(1, (size_t)bytes + 1)))
            return PTXGEN_NO_MEMORY;
        if (i < p->ninputs)
            copy_rows(&r, l->room[i], l->extent, first - l->begin, l->args->input[i], count, 0, count);
    }
    for (int i = 0; i < p->ninputs && status == PTXGEN_OK; i++)
        status = fill_ghosts(l, i);
    return status;
}

void halo_close(struct launch *l)
{
    for (int i = 0; i < PROBLEM_ARGS_MAX; i++)
        free(l->room[i]);
}

ptxgen_status halo_feed(struct launch *l)
{
    const struct problem *p = l->d->split->problem;
    const int rank = l->d->comm->rank;
    const int64_t first = l->first[rank], count = l->hello[rank].count;
    ptxgen_status status = PTXGEN_OK;
    for (int k = 0; k < p->nfeedback; k++) {
        const int i = p->feedback[k].input;
        const struct rows r = rows_of(l, &p->input[i].array);
        if (r.split)
            copy_rows(&r, l->room[i], l->extent, first - l->begin, l->args->output[p->feedback[k].output], count, 0,
                      count);
        if (status == PTXGEN_OK)
            status = fill_ghosts(l, i);
    }
    return status;
}

/* Outputs between the caller's array and the room in which a stage computes them. */
static void cut(struct launch *l, const struct dist_run *run, int64_t begin, int64_t extent, bool back)
{
    const struct problem *p = l->d->split->problem;
    for (int o = 0; o < p->noutputs; o++) {
        const struct rows r = rows_of(l, &p->output[o].array);
        char *user = l->args->output[o], *room = l->room[p->ninputs + o];
        if (!r.split)
            continue;
        if (back)
            copy_rows(&r, user, l->hello[l->d->comm->rank].count, run->behind, room, extent, run->first - begin,
                      run->count);
        else
            copy_rows(&r, room, extent, run->first - begin, user, l->hello[l->d->comm->rank].count, run->behind,
                      run->count);
    }
}

ptxgen_status halo_run(struct launch *l, enum dist_stage stage, const struct dist_run *run)
{
    const struct problem *p = l->d->split->problem;
    const void *input[PROBLEM_ARGS_MAX];
    void *output[PROBLEM_ARGS_MAX];
    int64_t begin, end;
    if (run->count == 0)
        return PTXGEN_OK;
    reach(l, run->first, run->first + run->count, &begin, &end);
    for (int i = 0; i < p->ninputs; i++) {
        const struct rows r = rows_of(l, &p->input[i].array);
        input[i] = r.split ? l->room[i] + (begin - l->begin) * r.inner : l->args->input[i];
    }
    for (int o = 0; o < p->noutputs; o++)
        output[o] = l->room[p->ninputs + o] ? l->room[p->ninputs + o] : l->args->output[o];
    const struct run_args args = { l->args->size, input, output, l->args->param };
    struct dist_run with = *run;
    with.args = &args;
    with.first = begin;
    with.count = end - begin;
    with.behind = 0;
    with.own_first = run->first;
    with.own_count = run->count;
    cut(l, run, begin, end - begin, false);
    const ptxgen_status status = dist_run_stage(l->s, l->d, stage, &with);
    if (status == PTXGEN_OK)
        cut(l, run, begin, end - begin, true);
    return status;
}
