/* SPDX-License-Identifier: Apache-2.0 */
/* resident_columns.c - planning of columns that are reduced, then mapped with their results, and stay in registers between.
 *
 * A block, or a cluster of blocks, has 32 neighbouring columns.  They are read element by element, a row of them by a warp,
 * so that one form serves all addresses.
 */
#include "resident.h"

#include <string.h>

/* 512 threads of 16 registers each leave a multiprocessor room for two blocks, one of which reads while the other one
 * writes (by the model, not measured). */
static const struct shape {
    const char *name;
    int threads, words, cluster; /* words: registers of a thread's places */
    bool alone;                  /* for devices without clusters */
} shapes[] = {
    { "columns_128", 256, 16, 1, false },          { "columns_256", 512, 16, 1, false },
    { "columns_512", 512, 32, 1, true },           { "columns_cluster_2", 512, 16, 2, false },
    { "columns_cluster_4", 512, 16, 4, false },    { "columns_cluster_8", 512, 16, 8, false },
    { "columns_cluster_long", 512, 32, 8, false },
};

bool resident_columns_fit(const struct problem *p, const char **why)
{
    const struct misfit m[] = {
        { !problem_writes(p, AT_RESULT), "no value per element uses the results, so columns are read once anyway" },
        { !segments_adjacent(p), "it keeps columns in registers, and here the reduced dimensions lie apart" },
        { state_determinism(p) == DET_DEVICE, "which blocks share a column depends on the device" },
        { !state_pad(p), "places after a column's end need a padding element, which built-in operators have" },
        { 0 }
    };
    return plan_takes(why, m);
}

/* Places of a column. */
static int64_t capacity(const struct plan_case *c)
{
    return (int64_t)c->tunable[TN_THREADS] / SEG_WARP * c->tunable[TN_ITEMS] * resident_cluster(c);
}

struct formula resident_columns_teams(const struct problem *p) { return f_cdiv(segments_count(p), SEG_WARP); }

/* The condition: columns that fit, of an element at least, and fill the device (by the model, not measured): else
 * segreduce.column shares a column among blocks.  Of a cluster they fill a fourth.  *never: there are none. */
static struct formula guard_of(const struct planner *pl, const struct plan_case *c, bool *never)
{
    enum { FILLED = 4 };
    const struct problem *p = pl->plan->problem;
    const int cluster = resident_cluster(c);
    const struct formula teams = resident_columns_teams(p);
    const int64_t least = cluster > 1 && !plan_pinned(pl) ? capacity(c) / FILLED + 1 : 1;
    struct formula guard = { 0 };
    int64_t lo, hi;
    segments_length_range(pl, &lo, &hi);
    *never = lo > capacity(c) || hi < least;
    if (hi > capacity(c))
        guard = f_le(segments_length(p), capacity(c));
    if (lo < least)
        guard = f_and(guard, f_ge(segments_length(p), least));
    return plan_pinned(pl) ? guard : f_and(guard, f_ge(cluster > 1 ? f_mul(teams, cluster) : teams, f_sms()));
}

/* Bytes of shared memory of a block. */
static int64_t shared_bytes(const struct problem *p, int threads, int cluster)
{
    const int warps = threads / SEG_WARP, shown = cluster > 1 ? 3 : 1;
    return (int64_t)state_bytes(p) * SEG_WARP * (warps + 1 + shown);
}

/* What is wrong with a case, and with which tunables; NULL: nothing. */
static const char *wrong(const struct planner *pl, const struct plan_case *c, unsigned *with)
{
    enum { SLACK = 512 }; /* each field's arrays begin at multiples of 16 bytes */
    const int threads = c->tunable[TN_THREADS], cluster = resident_cluster(c);
    *with = WITH_THREADS;
    if (!segreduce_power_of_two(threads))
        return "where columns stay, threads must be a power of two";
    *with = WITH_THREADS | WITH_CLUSTER;
    if (shared_bytes(pl->plan->problem, threads, cluster) + SLACK > pl->plan->device.shared_per_block)
        return "the states of all warps do not fit the shared memory of a block";
    if (threads < SEG_WARP * cluster)
        return "threads must be at least 32 for each block of the cluster";
    *with = WITH_LANES;
    if (c->tunable[TN_LANES])
        return "where columns stay, each lane has a column";
    *with = WITH_VECTOR;
    return c->tunable[TN_VECTOR] > 1 ? "columns that stay are read element by element" : NULL;
}

/* Where the user sets a tunable of another strategy, cases that it does not go with are left out. */
static bool possible(const struct planner *pl, const struct plan_case *c)
{
    unsigned with;
    const int threads = c->tunable[TN_THREADS], max_grid = c->tunable[TN_MAX_GRID];
    if (plan_pinned(pl) && (plan_overrides(pl, TN_THREADS) || plan_overrides(pl, TN_CLUSTER) ||
                            plan_overrides(pl, TN_LANES) || plan_overrides(pl, TN_VECTOR)))
        return true; /* resident_columns_check() says what is wrong */
    return !wrong(pl, c, &with) &&
           (plan_pinned(pl) || ((!max_grid || max_grid >= resident_cluster(c)) &&
                                c->tunable[TN_MIN_BLOCKS] * threads <= pl->plan->device.threads_per_sm));
}

static bool add_case(struct planner *pl, const struct strategy *row, const struct shape *s, int items)
{
    bool never;
    struct plan_case *c = plan_case_add(pl, row, s->name, (struct formula){ 0 });
    plan_set(c, TN_VECTOR, 1, "a warp reads a run of 32 elements");
    plan_set(c, TN_LANES, 0, "a block has 32 columns");
    plan_set(c, TN_THREADS, s->threads, "model: the fewest threads whose registers hold 32 columns");
    plan_set(c, TN_ITEMS, items, "model: registers of a thread");
    plan_set(c, TN_CLUSTER, s->cluster, "model: the fewest blocks whose registers hold 32 columns");
    plan_set(c, TN_EVICT_FIRST, 0, "as rows");
    plan_set_pdl(pl, c);
    plan_lighten(pl->plan->problem, c);
    c->code.guard = guard_of(pl, c, &never);
    never |= !possible(pl, c);
    if (never) {
        memset(c, 0, sizeof *c);
        pl->plan->ncases--;
    }
    return !never;
}

void resident_columns_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const int words = resident_element_words(p);
    const bool clusters = pl->plan->device.sm >= 90;
    int64_t lo, hi;
    segments_length_range(pl, &lo, &hi);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct shape *s = &shapes[i];
        const int items = s->words / words;
        if ((clusters ? !s->alone : s->cluster == 1) && add_case(pl, row, s, items > 1 ? items : 1) &&
            hi <= capacity(&pl->plan->cases[pl->plan->ncases - 1]))
            return;
    }
}

bool resident_columns_check(struct planner *pl, const struct plan_case *c)
{
    unsigned with;
    const char *why = wrong(pl, c, &with);
    return !why || plan_contradiction(pl, c, with, why);
}
