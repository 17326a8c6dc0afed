/* SPDX-License-Identifier: Apache-2.0 */
/* derive_rows.c - blocks that are dealt out, as rows: one launch computes all whole blocks of a rank.
 *
 * The blocks of a rank follow each other in memory.  So an array `x[n, m]` with the split dimension n is `x[blocks, block,
 * m]`, where `block` is a constant, and the size n is the number of blocks.  This axis, the first one, is kept.
 */
#include "derive_impl.h"

#include <string.h>

static bool is_split(const struct dist_split *sp, const struct prog_array *a)
{
    return a->rank && a->dim[0].size == sp->size;
}

/* The one rule which blocks are rows:
 *   - the bits of the result depend on no grouping, because the tree of a row may depend on the number of rows, which is
 *     another one on other numbers of ranks;
 *   - there is room for one more axis, and the split axis is the first one;
 *   - no table of bins, for a row would need its own; no reductions beside a map, which combine everything;
 *   - no element needs others than those at its own place: no neighbours, computed places, kept elements;
 *   - no strategy is pinned, which need not fit rows.  (A pin of a scan is for its LOCAL alone.) */
bool dist_has_rows(const struct dist_split *sp)
{
    const struct problem *p = sp->problem;
    bool good = sp->block && (p->determinism == DET_ANY || dist_exact(p)) && p->rank < SPACE_MAX && sp->axis == 0 &&
                !p->nby && !(p->kind == KIND_STENCIL && p->nreductions) && !p->dynamic &&
                (!p->strategy || (p->kind == KIND_SCAN && sp->combined));
    for (int i = 0; i < p->ninputs && good; i++) {
        const struct input *in = &p->input[i];
        good = !in->neighbours && !in->written && !(is_split(sp, &in->array) && in->placed);
    }
    for (int o = 0; o < p->noutputs && good; o++)
        good = !p->output[o].written && p->output[o].role != OUT_KEPT && !output_is_placed(&p->output[o]);
    return good;
}

/* axis: of each dimension; boundary: likewise, or NULL. */
static void as_rows(const struct dist_split *sp, struct prog_array *a, int *axis, struct boundary *boundary)
{
    for (int k = 0; k < a->rank; k++)
        axis[k] += axis[k] >= 0;
    if (!is_split(sp, a))
        return;
    memmove(a->dim + 1, a->dim, sizeof *a->dim * (size_t)a->rank);
    memmove(axis + 1, axis, sizeof *axis * (size_t)a->rank);
    if (boundary)
        memmove(boundary + 1, boundary, sizeof *boundary * (size_t)a->rank);
    a->dim[1] = (struct prog_dim){ -1, sp->block };
    axis[0] = 0;
    a->rank++;
}

void derive_as_rows(struct derive *d, struct problem *p)
{
    struct input *in = arena_new(d->a, struct input, p->ninputs + 1);
    if (p->ninputs)
        memcpy(in, p->input, sizeof *in * (size_t)p->ninputs);
    for (int i = 0; i < p->ninputs; i++)
        as_rows(d->sp, &in[i].array, in[i].axis, in[i].boundary);
    struct output *out = (struct output *)(uintptr_t)p->output;
    for (int o = 0; o < p->noutputs; o++)
        as_rows(d->sp, &out[o].array, out[o].axis, NULL);
    p->input = in;
    memmove(p->space + 1, p->space, sizeof *p->space * (size_t)p->rank);
    p->space[0] = (struct axis){ { d->sp->size, 0 }, false };
    p->space[1].extent = (struct prog_dim){ -1, d->sp->block };
    p->rank++;
    p->name = arena_printf(d->a, "%s_rows", p->name); /* its kernels have other arguments than those of pieces */
}
