/* SPDX-License-Identifier: Apache-2.0 */
/* ref_bins.c - reduce by computed indices: elements are sorted by their bins, and every bin is folded in the order of
 * its elements. */
#include "ref_internal.h"

#include <string.h>

/* The point with this number. */
static void go_to(struct ref *r, int64_t number)
{
    for (int d = r->p->rank - 1; d >= 0; d--) {
        r->at[d] = number % r->extent[d];
        number /= r->extent[d];
    }
    ref_next_element(r);
}

/* The bin of the current point; -1: none.  *unsure: it may be another. */
static int64_t bin_here(struct ref *r, bool *unsure)
{
    int64_t bin = 0;
    bool inside = true;
    for (int d = 0; d < r->p->nby; d++) {
        const struct num i = ref_eval(r, r->p->by[d]);
        const int64_t n = ref_dim(r, &r->p->bin[d]);
        *unsure |= i.err > 0;
        inside = inside && i.v.i >= 0 && i.v.i < n;
        bin = inside ? bin * n + i.v.i : 0;
    }
    for (int d = 0; d < r->p->rank; d++)
        bin = r->p->space[d].reduced ? bin : bin * r->extent[d] + r->at[d];
    return inside ? bin : -1;
}

/* Fold the elements order[0 … n) of bin `bin`, and write its outputs. */
static void fold_bin(struct ref *r, struct ref_fold *fold, int64_t bin, const int64_t *order, int64_t n, int64_t kept)
{
    for (int i = 0; i < r->p->nreductions; i++) {
        const struct reduction *red = &r->p->reduction[i];
        fold_begin(fold, r, i, n, false);
        for (int64_t e = 0; e < n; e++) {
            struct tuple x;
            go_to(r, order[e]);
            ref_eval_tuple(r, red->map, red->op->nfields, &x);
            fold_push(fold, &x);
        }
        fold_value(fold, &r->state[i]);
    }
    r->segment = bin;
    int64_t rest = bin % kept; /* values see the indices along the kept axes */
    for (int d = r->p->rank - 1; d >= 0; d--) {
        r->at[d] = r->p->space[d].reduced ? 0 : rest % r->extent[d];
        rest /= r->p->space[d].reduced ? 1 : r->extent[d];
    }
    ref_next_element(r);
    ref_write_outputs(r, AT_TOTAL);
}

/* The numbers of all points, bin after bin; end[b]: after those of bin b.  *unsure: a point may be in another. */
static int64_t *sort_points(struct ref *r, int64_t points, int64_t bins, int64_t *end, bool *unsure)
{
    int64_t *bin = arena_new(r->scratch, int64_t, points + 1), *order = arena_new(r->scratch, int64_t, points + 1);
    int64_t used = 0;
    for (int64_t i = 0; i < points; i++) {
        go_to(r, i);
        bin[i] = bin_here(r, unsure);
        end[bin[i] < 0 ? bins : bin[i]]++;
    }
    for (int64_t b = 0; b < bins; b++) {
        const int64_t first = used;
        used += end[b];
        end[b] = first;
    }
    for (int64_t i = 0; i < points; i++)
        if (bin[i] >= 0)
            order[end[bin[i]]++] = i;
    return order;
}

const char *ref_bins(struct ref *r)
{
    int64_t points = 1, bins = 1, kept = 1;
    bool unsure = false;
    for (int d = 0; d < r->p->rank; d++) {
        points *= r->extent[d];
        kept *= r->p->space[d].reduced ? 1 : r->extent[d];
    }
    for (int d = 0; d < r->p->nby; d++)
        bins *= ref_dim(r, &r->p->bin[d]);
    bins *= kept;
    int64_t *end = arena_new(r->scratch, int64_t, bins + 1);
    const int64_t *order = sort_points(r, points, bins, end, &unsure);
    struct ref_fold *fold = arena_new(r->scratch, struct ref_fold, 1);
    memset(r->unsure, unsure, sizeof *r->unsure * (size_t)r->p->noutputs);
    for (int64_t b = 0; b < bins; b++) {
        const int64_t first = b ? end[b - 1] : 0;
        fold_bin(r, fold, b, order + first, end[b] - first, kept);
    }
    return NULL;
}
