/* SPDX-License-Identifier: Apache-2.0 */
/* bins_private.c - planning of reductions by computed indices with a table for every thread.
 *
 * No other thread touches a thread's words, so an element costs a load, the operator and a store, whatever the
 * operator is and however often indices are the same.  Shared memory limits it: threads that share a multiprocessor
 * have at most 227 KiB, so tables of more bins mean fewer threads, each with more loads in flight.
 *
 * Where dimensions are kept after the reduced ones (the columns of rows), a thread stays in one column and has a table
 * for the indices alone.  The threads of a block are as many whole rows as fit, so they read consecutive elements.
 */
#include "bins.h"

#include "lower/segments.h"
#include "reduce.h"

/* ---- cases ------------------------------------------------------------------------------------------------------- */

bool bins_columns(const struct problem *p) { return segments_kept(p); }

bool bins_private_takes(const struct problem *p, const char **why)
{
    *why = "a thread stays in one column; this problem keeps dimensions before those that it reduces";
    return !segments_kept(p) || (segments_adjacent(p) && p->space[0].reduced);
}

/* What a block has: threads as tuning.def says of the variant, and bytes of each one's table at most; 0: all that there
 * is. */
struct room {
    const char *name, *variant;
    int threads, bytes;
};

static const struct room of_elements[] = { { "own", "", 512, 64 },
                                           { "own_more", "own more", 256, 256 },
                                           { "own_most", "own most", 224, 0 } };
static const struct room of_columns[] = { { "columns", "columns", 512, 64 },
                                          { "columns_more", "more columns", 256, 256 },
                                          { "columns_most", "most columns", 448, 0 } };
enum { ROOMS = 3, WORD = 4 };

/* Bins of a thread's table; 0: shared memory has not room for one. */
static int room_for(const struct planner *pl, const struct room *of)
{
    const int most = pl->plan->device.shared_per_block - BINS_SHARED_RESERVED;
    const int threads = plan_setting(pl, TN_THREADS, of->threads), each = most / threads;
    const int bytes = of->bytes && of->bytes < each ? of->bytes : each;
    const int bins = bytes / bins_state_bytes(pl->plan->problem);
    return bins > 1 ? bins : each >= bins_state_bytes(pl->plan->problem);
}

/* The extents that indices are compared with, not those of columns: what is known, and their product. */
static struct formula index_range(struct planner *pl, int64_t *lo, int64_t *hi)
{
    const struct problem *p = pl->plan->problem;
    struct formula n = access_extent(p, &p->bin[0]);
    *lo = *hi = 1;
    for (int d = 0; d < p->nby; d++) {
        plan_range_times(pl, &p->bin[d], lo, hi);
        n = d ? f_mul(n, access_extent(p, &p->bin[d])) : n;
    }
    return n;
}

/* A column's elements come one by one.  Indices stay in the caches: all columns read them. */
static void add_columns(struct planner *pl, const struct strategy *row, const struct room *of, int bins,
                        struct formula guard)
{
    struct plan_case *c = plan_case_add(pl, row, of->name, guard);
    plan_case_variant(pl, c, of->variant);
    plan_set(c, TN_VECTOR, 1, NULL);
    plan_set(c, TN_LANES, 1, NULL);
    plan_set(c, TN_BINS, bins, NULL);
    if (!plan_pinned(pl))
        c->tunable[TN_PARTS] = 0;
    plan_set_pdl(pl, c);
    c->code.guard = f_and(guard, f_le(segments_inner(pl->plan->problem), c->tunable[TN_THREADS]));
}

/* Counts meet in shared memory at no cost, so they need no tables of threads unless columns are kept: there a number of
 * a column's thread is cheaper than an index that is made by division.  Bins of a word meet there nearly at the rate of
 * memory where they are more than a few (docs/design/reduce-bins.md). */
void bins_private_plan(struct planner *pl, const struct strategy *row, struct formula guard)
{
    const struct problem *p = pl->plan->problem;
    const bool columns = bins_columns(p), all = columns || plan_overrides(pl, TN_LANES);
    const int rooms = all || bins_state_bytes(p) > WORD ? ROOMS : 1;
    const bool few = !all && bins_locked(p); /* bins of the first room have the second (by the model, not measured) */
    int64_t lo, hi;
    if (!all && bins_count(p))
        return;
    const struct formula indices = index_range(pl, &lo, &hi);
    for (int i = few; i < rooms; i++) {
        const struct room *of = columns ? &of_columns[i] : &of_elements[i];
        const int room = plan_setting(pl, TN_BINS, room_for(pl, of)), bins = hi < room ? (hi > 1 ? (int)hi : 1) : room;
        if (!room) /* there is less for others, of more threads each */
            continue;
        if (lo <= bins && columns)
            add_columns(pl, row, of, bins, hi <= bins ? guard : f_and(guard, f_le(indices, bins)));
        else if (lo <= bins)
            bins_add_cases(pl, row, &(struct bins_shape){ of->name, of->variant, 1, bins, hi, 0, guard });
        if (hi <= bins || plan_overrides(pl, TN_BINS))
            return;
    }
}
