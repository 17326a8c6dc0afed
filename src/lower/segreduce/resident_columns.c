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
 * segreduce.column shares a column among blocks.  *never: there are none. */
static struct formula guard_of(const struct planner *pl, const struct plan_case *c, bool *never)
{
    const struct problem *p = pl->plan->problem;
    struct formula guard = { 0 };
    int64_t lo, hi;
    segments_length_range(pl, &lo, &hi);
    *never = lo > capacity(c) || hi < 1;
    if (hi > capacity(c))
        guard = f_le(segments_length(p), capacity(c));
    if (lo < 1)
        guard = f_and(guard, f_ge(segments_length(p), 1));
    return plan_pinned(pl) ? guard : f_and(guard, f_ge(f_mul(resident_columns_teams(p), resident_cluster(c)), f_sms()));
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
    const struct misfit m[] = { { !segreduce_power_of_two(c->tunable[TN_THREADS]),
                                  "where columns stay, threads must be a power of two" },
                                { c->tunable[TN_THREADS] < SEG_WARP * resident_cluster(c),
                                  "threads take 32 columns from each block of a cluster" },
                                { c->tunable[TN_LANES] != 0, "where columns stay, each lane has a column" },
                                { 0 } };
    return plan_consistent(pl, c, m);
}
