/* SPDX-License-Identifier: Apache-2.0 */
/* joined.c - dimensions that are one to kernels (merge.c): the index along each of them, and sizes that are products. */
#include "frontend/frontend_impl.h"

/* ---- indices ------------------------------------------------------------------------------------------------------ */

static struct expr *number_of(struct builder *b, struct prog_dim dim, struct span at)
{
    struct expr *e = expr_new(b->a, dim.size < 0 ? EX_CONST : EX_SIZE, TY_I64, at);
    e->which = dim.size < 0 ? 0 : dim.size;
    e->imm.i = dim.size < 0 ? dim.add : 0;
    return e;
}

/* By an extent, which is at least 1; kernels have the reciprocals of sizes. */
static struct expr *part(struct builder *b, enum binary op, const struct expr *index, struct prog_dim extent)
{
    struct expr *e = expr_binary(b->a, op, TY_I64, index, number_of(b, extent, index->at));
    e->which2 = extent.size >= 0;
    b->p->divisors |= extent.size >= 0 ? UINT64_C(1) << extent.size : 0;
    return e;
}

const struct expr *own_index(struct builder *b, int own, struct span at)
{
    const int axis = b->own_axis[own];
    struct expr *index = expr_new(b->a, EX_INDEX, TY_I64, at);
    bool outer = false;
    index->which = axis;
    for (int i = b->nown; i-- > own + 1;)
        index = b->own_axis[i] == axis ? part(b, BIN_DIV, index, b->own[i]) : index;
    for (int i = 0; i < own; i++)
        outer |= b->own_axis[i] == axis;
    return outer ? part(b, BIN_REM, index, b->own[own]) : index;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static int64_t product(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

void build_joined(struct builder *b)
{
    for (int i = b->nsizes; i < b->nsizes + b->p->njoined; i++) {
        struct dimension *d = &b->size[i];
        int64_t multiple;
        d->min = d->max = d->multiple_of = d->times;
        for (int k = 0; k < d->nparts; k++) {
            const struct dimension *part = &b->size[d->part[k]];
            d->min = product(d->min, part->min);
            d->max = product(d->max, part->max);
            if (!__builtin_mul_overflow(d->multiple_of, part->multiple_of, &multiple))
                d->multiple_of = multiple;
        }
    }
}

int64_t problem_size(const struct problem *p, int i, const int64_t *size)
{
    if (i < p->nsizes)
        return size[i];
    int64_t n = p->size[i].times;
    for (int k = 0; k < p->size[i].nparts; k++) {
        const int64_t part = size[p->size[i].part[k]];
        if (part < 0)
            return -1;
        n = product(n, part);
    }
    return n;
}

int64_t problem_elements(const struct problem *p, const struct prog_array *a, const int64_t *size)
{
    int64_t elements = 1, bytes;
    for (int d = 0; d < a->rank; d++) {
        const int64_t extent = problem_extent(p, &a->dim[d], size);
        if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements))
            return -1;
    }
    return __builtin_mul_overflow(elements, (int64_t)a->stride, &bytes) ? -1 : elements;
}
