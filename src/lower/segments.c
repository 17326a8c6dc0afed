/* SPDX-License-Identifier: Apache-2.0 */
/* segments.c - see segments.h. */
#include "segments.h"

#include "lower_impl.h"

bool segments_kept(const struct problem *p)
{
    for (int d = 0; d < p->rank; d++)
        if (!p->space[d].reduced)
            return true;
    return false;
}

/* First and last reduced axis. */
static void reduced_range(const struct problem *p, int *first, int *last)
{
    *first = p->rank;
    *last = -1;
    for (int d = 0; d < p->rank; d++)
        if (p->space[d].reduced) {
            *first = *first < d ? *first : d;
            *last = d;
        }
}

bool segments_adjacent(const struct problem *p)
{
    int first, last;
    reduced_range(p, &first, &last);
    for (int d = first; d <= last; d++)
        if (!p->space[d].reduced)
            return false;
    return true;
}

bool segments_trailing(const struct problem *p)
{
    int first, last;
    reduced_range(p, &first, &last);
    return segments_adjacent(p) && last == p->rank - 1;
}

int segments_behind(const struct problem *p)
{
    int first, last;
    reduced_range(p, &first, &last);
    return last + 1;
}

/* The product of the extents of axes from `from` on that are reduced, or kept. */
static struct formula product(const struct problem *p, int from, bool reduced)
{
    struct formula n = f_const(1);
    bool any = false;
    for (int d = from; d < p->rank; d++) {
        if (p->space[d].reduced != reduced)
            continue;
        n = any ? f_mul(n, access_extent(p, &p->space[d].extent)) : access_extent(p, &p->space[d].extent);
        any = true;
    }
    return n;
}

struct formula segments_count(const struct problem *p)
{
    struct formula n = p->nby && !segments_kept(p) ? access_extent(p, &p->bin[0]) : product(p, 0, false);
    for (int d = !segments_kept(p); d < p->nby; d++)
        n = f_mul(n, access_extent(p, &p->bin[d]));
    if (p->offsets < 0)
        return n;
    return f_max(0, f_sub(access_extent(p, &p->input[p->offsets].array.dim[0]), 1));
}

struct formula segments_elements(const struct problem *p)
{
    const struct formula n = access_count(p);
    return p->offsets < 0 ? n : f_mul(n, f_ge(access_extent(p, &p->input[p->offsets].array.dim[0]), 1));
}

struct formula segments_length(const struct problem *p) { return product(p, 0, true); }

struct formula segments_piece(const struct problem *p) { return access_extent(p, &p->space[2].extent); }

struct formula segments_inner(const struct problem *p) { return product(p, segments_behind(p), false); }

void segments_length_range(const struct planner *pl, int64_t *lo, int64_t *hi)
{
    const struct problem *p = pl->plan->problem;
    *lo = *hi = 1;
    for (int d = 0; d < p->rank; d++)
        if (p->space[d].reduced)
            plan_range_times(pl, &p->space[d].extent, lo, hi);
}

int segments_chunk(int items, int vector)
{
    /* Tiles of 29 x 32 x 4 bytes: seven blocks of four warps, with two tiles each, fit 227 KiB. */
    const int most = 29, n = items * vector < most ? items * vector : most;
    return n % 2 ? n : n - 1;
}
