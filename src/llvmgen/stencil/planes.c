/* SPDX-License-Identifier: Apache-2.0 */
/* planes.c - the ring of planes in shared memory of blocks that stream.
 *
 * What is beyond the edge of the array is put in place by the copies, so that all blocks run the same code.  An element is copied
 * on its own where rows begin anywhere, so that their alignment does not matter; else a vector, and what lies around the ends of
 * rows element by element.
 */
#include "planes.h"

#include <string.h>

/* ---- tiles of planes --------------------------------------------------------------------------------------------- */

/* Where elements that begin in a row of the tile and in column x of the array (i32) are read. */
static void locate(struct planes *pl, int input, kb_val row, kb_val x, struct part *p)
{
    struct gen *g = pl->g;
    kb *k = g->k;
    const struct input *in = &g->p->input[input];
    const struct ring *r = &pl->ring[input];
    const int last = g->p->rank - 1;
    p->element = kb_imm(k, TY_I32, 0);
    for (int d = 1; d <= last; d++) {
        const kb_val at = d < last ? kb_add(k, kb_add(k, kb_cast(k, pl->box[d], TY_I32), row), r->is.reach.lo[d]) : x;
        kb_val inside = kb_true(k);
        const kb_val i = d == last && p->elements > 1
                             ? kb_min(k, at, kb_sub(k, pl->inner[d], p->elements))
                             : boundary_index(k, in->boundary[d].mode, at, pl->inner[d], &inside);
        p->element = d == 1 ? i : kb_add(k, kb_mul(k, p->element, pl->inner[d]), i);
        p->beyond[d].ir = NULL;
        if (in->boundary[d].mode == BOUND_CONSTANT && (d < last || p->elements == 1))
            p->beyond[d] = kb_not(k, inside);
    }
    p->element = kb_cast(k, p->element, TY_U32);
}

/* The first column of the tile, in the array: i32. */
static kb_val first_column(const struct planes *pl, int input)
{
    kb *k = pl->g->k;
    return kb_sub(k, kb_cast(k, pl->box[pl->g->p->rank - 1], TY_I32), pl->ring[input].is.before);
}

/* Elements that begin in a row and a column of the tile, whose number is `first` and `number`. */
static void add_part(struct planes *pl, int input, kb_val row, kb_val column, struct part is)
{
    kb *k = pl->g->k;
    struct part *p = &pl->part[input][pl->parts[input]++];
    *p = is;
    locate(pl, input, row, kb_add(k, first_column(pl, input), column), p);
}

/* The columns around the array that its points read, for which the boundary stands, element by element: with vectors these are
 * none, nor parts of any. */
static void locate_ends(struct planes *pl, int input)
{
    struct gen *g = pl->g;
    kb *k = g->k;
    const struct ring *r = &pl->ring[input];
    const int threads = kb_threads(k), last = g->p->rank - 1, ends = r->is.before + r->is.after,
              parts = ends * r->is.rows;
    for (int i = 0; i * threads < parts; i++) {
        const kb_val number = kb_add(k, kb_tid(k), i * threads), row = kb_div(k, number, ends),
                     end = kb_sub(k, kb_rem(k, number, ends), r->is.before);
        const kb_val x = kb_select(k, kb_lt(k, end, 0), end, kb_add(k, pl->inner[last], end));
        const kb_val column = kb_sub(k, x, first_column(pl, input));
        const kb_val inside = kb_and(k, kb_ge(k, column, 0), kb_lt(k, column, r->is.pitch));
        const kb_val first = kb_add(k, kb_mul(k, row, r->is.pitch), column);
        add_part(pl, input, row, column,
                 (struct part){ .elements = 1,
                                .first = first,
                                .at = kb_advance(k, r->field[0], first),
                                .exists = kb_and(k, kb_lt(k, number, parts), inside) });
    }
}

static void locate_parts(struct planes *pl, int input)
{
    struct gen *g = pl->g;
    kb *k = g->k;
    const struct ring *r = &pl->ring[input];
    const int last = g->p->rank - 1, columns = r->is.pitch / r->vector, parts = columns * r->is.rows,
              threads = kb_threads(k);
    const kb_val first = kb_mul(k, kb_tid(k), r->vector);
    const kb_ptr at = kb_advance(k, r->field[0], first);
    for (int i = 0; i * threads < parts; i++) {
        const kb_val number = kb_add(k, kb_tid(k), i * threads), row = kb_div(k, number, columns),
                     column = kb_mul(k, kb_rem(k, number, columns), r->vector);
        kb_val exists = { .ir = NULL };
        if ((i + 1) * threads > parts)
            exists = kb_lt(k, number, parts);
        if (r->vector > 1) { /* no end; what lies behind them is read by no point that exists */
            const kb_val x = kb_add(k, first_column(pl, input), column), n = pl->inner[last];
            const kb_val end =
                kb_or(k, kb_lt(k, x, 0), kb_and(k, kb_ge(k, x, n), kb_lt(k, x, kb_add(k, n, r->is.after))));
            exists = exists.ir ? kb_and(k, exists, kb_not(k, end)) : kb_not(k, end);
        }
        add_part(
            pl, input, row, column,
            (struct part){
                .elements = r->vector, .first = first, .at = at, .number = i * threads * r->vector, .exists = exists });
    }
    if (r->vector > 1)
        locate_ends(pl, input);
}

/* Where a plane is read; what a constant stands for in *outside (ir NULL: nothing).  Most planes lie inside, where nothing is
 * to be computed. */
static kb_val plane_at(struct planes *pl, int input, kb_val place, kb_val *outside)
{
    struct gen *g = pl->g;
    kb *k = g->k;
    const enum boundary_mode mode = g->p->input[input].boundary[0].mode;
    kb_val inside = kb_true(k);
    outside->ir = NULL;
    if (mode == BOUND_CONSTANT) {
        const kb_val z = boundary_index(k, mode, place, pl->extent[0], &inside);
        *outside = kb_not(k, inside);
        return z;
    }
    kb_var z = kb_var_new(k, place, "plane");
    kb_if(k, kb_or(k, kb_lt(k, place, 0), kb_ge(k, place, pl->extent[0]))) {
        kb_set(k, z, boundary_index(k, mode, place, pl->extent[0], &inside));
    }
    return kb_get(k, z);
}

/* Do zeros stand for a scalar input beyond the array? */
static bool zeros_beyond(const struct planes *pl, int input)
{
    const struct gen *g = pl->g;
    const struct input *in = &g->p->input[input];
    for (int d = 0; d < g->p->rank; d++)
        if (in->boundary[d].mode == BOUND_CONSTANT &&
            !LLVMIsNull(kb_const(g->k, in->array.field[0].type, in->boundary[d].constant[0]).ir))
            return false;
    return true;
}

/* What stands for an element beyond the array: the constant of the last axis along which it is, or x if it is inside. */
static kb_val constant_or(struct planes *pl, int input, int field, const struct part *p, kb_val outside, kb_val x)
{
    struct gen *g = pl->g;
    const struct input *in = &g->p->input[input];
    for (int d = 0; d < g->p->rank; d++) {
        const kb_val here = d == 0 ? outside : p->beyond[d];
        if (here.ir)
            x = kb_select(g->k, here, kb_const(g->k, x.ty, in->boundary[d].constant[field]), x);
    }
    return x;
}

/* Copied, or what stands for it. `plane`: of the array; to: of the ring.  A constant is stored at once, so that no load is
 * waited for. */
static void copy_part(struct planes *pl, int input, const struct part *p, kb_ptr plane, kb_val outside, int to)
{
    struct gen *g = pl->g;
    kb *k = g->k;
    const struct input *in = &g->p->input[input];
    const struct ring *r = &pl->ring[input];
    const int bytes = p->elements * in->array.stride;
    kb_val beyond = outside;
    for (int d = 1; d < g->p->rank; d++)
        if (p->beyond[d].ir)
            beyond = beyond.ir ? kb_or(k, beyond, p->beyond[d]) : p->beyond[d];
    const kb_val place = kb_imm(k, TY_I32, p->number + to);
    const bool copies = r->copies || p->elements > 1;
    if (copies && (!beyond.ir || zeros_beyond(pl, input))) {
        const kb_val exists = beyond.ir ? kb_not(k, beyond) : beyond;
        kb_copy_or_zero(k, bytes, p->at, place, plane, p->element, exists);
        return;
    }
    if (copies) {
        kb_if(k, kb_not(k, beyond)) {
            kb_copy(k, bytes, p->at, place, plane, p->element);
        }
        kb_else
        {
            const kb_val any = kb_imm(k, in->array.field[0].type, 0);
            for (int i = 0; i < p->elements; i++)
                kb_store(k, p->at, kb_add(k, place, i), constant_or(pl, input, 0, p, outside, any));
        }
        return;
    }
    for (int f = 0; f < in->array.nfields; f++) {
        const kb_val x = gen_load_field(g, &in->array, plane, p->element, f);
        kb_store(k, kb_advance(k, r->field[f], p->first), place, constant_or(pl, input, f, p, outside, x));
    }
}

void planes_copy(struct planes *pl, kb_val place, kb_val end, int position)
{
    struct gen *g = pl->g;
    kb *k = g->k;
    kb_if(k, kb_lt(k, place, end)) {
        for (int i = 0; i < g->p->ninputs; i++) {
            const struct ring *r = &pl->ring[i];
            kb_val outside;
            if (!r->staged)
                continue;
            const struct prog_array *a = &g->p->input[i].array;
            const kb_val first = kb_mul(k, plane_at(pl, i, place, &outside), pl->plane);
            const kb_ptr plane = kb_advance(k, gen_input(g, i), kb_mul(k, first, *a->field[0].name ? a->stride : 1));
            for (int n = 0; n < pl->parts[i]; n++) {
                const struct part *p = &pl->part[i][n];
                kb_if(k, p->exists.ir ? p->exists : kb_true(k)) {
                    copy_part(pl, i, p, plane, outside, position * r->is.rows * r->is.pitch);
                }
            }
        }
    }
    if (kb_has_copy(k))
        kb_copy_commit(k);
}

kb_ptr ring_row(struct window *w, int input, int field, const int *at)
{
    kb *k = w->g->k;
    const struct ring *r = &w->ring[input];
    const int last = w->rank - 1, lo = (int)r->is.lo;
    const int position = (w->turn + at[0] - lo) % r->is.depth;
    int64_t distance = (int64_t)position * r->is.rows * r->is.pitch + r->is.before;
    for (int d = 1; d < last; d++)
        distance += (at[d] - r->is.reach.lo[d]) * r->is.pitch;
    return kb_advance(k, kb_advance(k, r->field[field], r->at), kb_imm(k, TY_I32, distance));
}

void planes_init(struct planes *pl, struct gen *g, const kb_val *box)
{
    pl->g = g;
    pl->box = box;
    pl->plane = kb_imm(g->k, TY_I64, 1);
    for (int d = 0; d < g->p->rank; d++) {
        pl->extent[d] = gen_extent(g, &g->p->space[d].extent);
        pl->inner[d] = kb_cast(g->k, pl->extent[d], TY_I32);
        pl->plane = d > 0 ? kb_mul(g->k, pl->plane, pl->extent[d]) : pl->plane;
    }
}

/* ---- rings ------------------------------------------------------------------------------------------------------- */

static void declare_ring(struct planes *pl, int input)
{
    struct gen *g = pl->g;
    kb *k = g->k;
    const int rank = g->p->rank, x = stencil_threads(g->c, rank, rank - 1);
    const struct prog_array *a = &g->p->input[input].array;
    struct ring *r = &pl->ring[input];
    *r = (struct ring){ .staged = stencil_staged(g->p, input),
                        .vector = stencil_ring_vector(g->p, g->c, input, kb_has_copy(k)) };
    if (!r->staged)
        return;
    r->is = stencil_ring(g->p, g->c, input);
    const bool scalar = *a->field[0].name == 0;
    const int points = stencil_points(g->c, rank, rank - 1);
    r->copies = kb_has_copy(k) && scalar && (a->stride == 4 || a->stride == 8);
    for (int f = 0; f < a->nfields; f++)
        r->field[f] = kb_shared_v(k, a->field[f].type, r->is.depth * r->is.rows * r->is.pitch, a->name);
    const kb_val column = kb_mul(k, kb_rem(k, kb_tid(k), x), points),
                 row = kb_mul(k, kb_div(k, kb_tid(k), x), rank > 2 ? stencil_points(g->c, rank, 1) : 0);
    r->at = kb_add(k, kb_mul(k, row, r->is.pitch), column);
    locate_parts(pl, input);
}

void planes_declare(struct planes *pl)
{
    for (int i = 0; i < pl->g->p->ninputs; i++)
        declare_ring(pl, i);
}
