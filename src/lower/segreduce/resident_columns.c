/* SPDX-License-Identifier: Apache-2.0 */
/* resident_columns.c - planning of columns that are reduced, then mapped with their results, and stay in registers between.
 *
 * Some warps, a block or a cluster of blocks have 32 neighbouring columns, which they read in vectors, or, where rows are not
 * whole vectors, element by element.
 */
#include "resident.h"

#include "lower/work.h"

/* In the order of choice.  Of those of vectors, and of the others, each holds longer columns than the ones before, or it is no
 * case.  The names say how many places of one f32 array. */
static const struct shape {
    const char *name;
    bool vectors; /* of columns */
    int threads;
    int lanes;   /* warps of a block that share a column; 0: all of them */
    int words;   /* registers of a thread's elements */
    int cluster; /* blocks that share a column */
    int blocks;  /* of a multiprocessor, for which ptxas leaves registers */
} shapes[] = {
    { "columns_4_scalar", false, 256, 1, 4, 1, 8 },     { "columns_8", true, 128, 1, 8, 1, 8 },
    { "columns_16", true, 256, 1, 16, 1, 5 },           { "columns_32", true, 256, 2, 16, 1, 5 },
    { "columns_64", true, 256, 4, 16, 1, 5 },           { "columns_128", true, 256, 0, 16, 1, 5 },
    { "columns_16_scalar", false, 256, 1, 16, 1, 4 },   { "columns_32_scalar", false, 256, 2, 16, 1, 5 },
    { "columns_64_scalar", false, 256, 4, 16, 1, 5 },   { "columns_128_scalar", false, 256, 0, 16, 1, 4 },
    { "columns_256", true, 256, 0, 32, 1, 4 },          { "columns_512", true, 512, 0, 32, 1, 2 },
    { "columns_1024", true, 1024, 0, 32, 1, 1 },        { "columns_2048", true, 512, 0, 32, 4, 2 },
    { "columns_4096", true, 512, 0, 32, 8, 2 },         { "columns_256_scalar", false, 512, 0, 16, 1, 2 },
    { "columns_512_scalar", false, 1024, 0, 16, 1, 1 },
};

bool resident_columns_fit(const struct problem *p, const char **why)
{
    const struct misfit m[] = {
        { !problem_writes(p, AT_RESULT), "no value per element uses the results, so columns are read once anyway" },
        { !segments_adjacent(p), "it keeps columns in registers, and here the reduced dimensions lie apart" },
        { state_determinism(p) == DET_DEVICE, "how many threads share a column depends on the device" },
        { !state_pad(p), "places after a column's end need a padding element, which built-in operators have" },
        { 0 }
    };
    return plan_takes(why, m);
}

/* Warps of a block that share a column. */
static int sharing(const struct plan_case *c)
{
    return c->tunable[TN_LANES] ? c->tunable[TN_LANES] : c->tunable[TN_THREADS] / SEG_WARP;
}

/* Places of a column. */
static int64_t capacity(const struct plan_case *c)
{
    return (int64_t)sharing(c) * c->tunable[TN_VECTOR] * c->tunable[TN_ITEMS] * resident_cluster(c);
}

struct formula resident_columns_blocks(const struct problem *p, const struct plan_case *c)
{
    return f_cdiv(segments_count(p), c->tunable[TN_THREADS] / sharing(c));
}

/* The condition: columns that fit, of an element at least; a cluster's are longer than a fourth of what it holds.  *never: there
 * are none.  It asks for no number of columns: segreduce.column, whose second kernel reads them again, takes longer for few,
 * too (H200, softmax over 128 channels of 1024 points 7.0 us, here 3.3; over 1000 channels 14.2 and 9.7). */
static struct formula guard_of(const struct planner *pl, const struct plan_case *c, bool *never)
{
    enum { FILLED = 4 };
    const struct problem *p = pl->plan->problem;
    const int cluster = resident_cluster(c), vector = c->tunable[TN_VECTOR];
    const int64_t least = cluster > 1 && !plan_pinned(pl) ? capacity(c) / FILLED + 1 : 1;
    struct formula guard = { 0 }, aligned = { 0 };
    int64_t lo, hi;
    segments_length_range(pl, &lo, &hi);
    *never = lo > capacity(c) || hi < least;
    if (vector > 1)
        guard = f_eq(f_mod(segments_inner(p), vector), 0);
    if (vector > 1 && access_aligned_guard(p, vector, true, &aligned))
        guard = f_and(guard, aligned);
    if (hi > capacity(c))
        guard = f_and(guard, f_le(segments_length(p), capacity(c)));
    if (lo < least)
        guard = f_and(guard, f_ge(segments_length(p), least));
    return guard;
}

/* Bytes of shared memory of a block.  Per column: an aggregate of each warp, one unused, and a total; in a cluster two that other
 * blocks read, and the cluster's. */
static int64_t shared_bytes(const struct problem *p, const struct plan_case *c)
{
    const int warps = c->tunable[TN_THREADS] / SEG_WARP, teams = warps > sharing(c) ? warps / sharing(c) : 1;
    const int totals = resident_cluster(c) > 1 ? 4 : 1;
    return (int64_t)state_bytes(p) * SEG_WARP * (warps + teams + teams * totals);
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
    if (shared_bytes(pl->plan->problem, c) + SLACK > pl->plan->device.shared_per_block)
        return "the states of all warps do not fit the shared memory of a block";
    if (threads < SEG_WARP * cluster)
        return "threads must be at least 32 for each block of the cluster";
    *with = WITH_LANES | WITH_THREADS;
    if (c->tunable[TN_LANES] > threads / SEG_WARP)
        return "lanes, which share a column, are of different warps, and there are not so many warps";
    return NULL;
}

/* Is it a case?  Where the user has asked for its threads, cluster, lanes or vector it is one, even where they do not fit: then
 * resident_columns_check() says why.  Settings that do not suit clusters leave those out that the user has not asked for. */
static bool possible(const struct planner *pl, const struct plan_case *c)
{
    static const enum tunable_id asked[] = { TN_THREADS, TN_CLUSTER, TN_LANES, TN_VECTOR };
    unsigned with;
    const int max_grid = c->tunable[TN_MAX_GRID], cluster = resident_cluster(c);
    const bool fits = !wrong(pl, c, &with) && (!max_grid || max_grid >= cluster);
    if (cluster > 1 && !plan_overrides(pl, TN_CLUSTER) && !fits)
        return false;
    for (size_t i = 0; i < sizeof asked / sizeof *asked && plan_pinned(pl); i++)
        if (plan_overrides(pl, asked[i]))
            return true;
    return fits &&
           (plan_pinned(pl) || c->tunable[TN_MIN_BLOCKS] * c->tunable[TN_THREADS] <= pl->plan->device.threads_per_sm);
}

/* Warps of a team wait for each other, while those of other blocks use memory: many blocks, so few registers for each thread. */
static void bound_registers(struct planner *pl, struct plan_case *c, const struct shape *s)
{
    const struct problem *p = pl->plan->problem;
    enum { SHORT = 8 }; /* words */
    const int room = pl->plan->device.threads_per_sm / c->tunable[TN_THREADS], sm = pl->plan->device.sm;
    int most = room;
    if (sm < 90 && !s->vectors && s->words > SHORT)
        most = 4; /* sm_80 spills a word else */
    if (sm >= 120 && s->cluster > 1)
        most = 1; /* … and sm_120 two */
    const int fit = most < room ? most : room;
    if (resident_element_words(p) == 1 && segreduce_state_words(p) <= 3 && !work_is_heavy(p))
        plan_set(c, TN_MIN_BLOCKS, s->blocks < fit ? s->blocks : fit,
                 "H200, softmax of 128 channels, standardised columns of 128: 137, 148 us, without a bound 152, 150");
}

/* most: places that a column of the cases so far may have. */
static void add_case(struct planner *pl, const struct strategy *row, const struct shape *s, int64_t *most)
{
    enum { WIDE = 32, PAIR = 2 }; /* words of threads that have 64 registers; columns of a vector */
    const int lanes = plan_setting(pl, TN_LANES, s->lanes);
    bool never;
    struct plan_case *c = plan_case_add(pl, row, s->name, (struct formula){ 0 });
    int items = s->words / resident_element_words(pl->plan->problem);
    if (!s->vectors)
        plan_set(c, TN_VECTOR, 1, "rows are not whole vectors, or arrays begin anywhere");
    else if (s->words == WIDE && c->tunable[TN_VECTOR] > PAIR)
        plan_set(c, TN_VECTOR, PAIR, "64 registers: of four columns a word or two would spill");
    while (c->tunable[TN_VECTOR] > items && plan_shrinks(c, TN_VECTOR))
        plan_set(c, TN_VECTOR, c->tunable[TN_VECTOR] / 2, "as many elements as registers");
    items = items > c->tunable[TN_VECTOR] ? items / c->tunable[TN_VECTOR] : 1;
    plan_set(c, TN_THREADS, lanes * SEG_WARP > s->threads ? lanes * SEG_WARP : s->threads,
             "model: the fewest threads whose registers hold 32 columns");
    plan_set(c, TN_LANES, s->lanes < c->tunable[TN_THREADS] / SEG_WARP ? s->lanes : 0,
             "model: the fewest warps whose registers hold 32 columns");
    plan_set(c, TN_ITEMS, items, "model: registers of a thread");
    plan_set(c, TN_CLUSTER, s->cluster, "model: the fewest blocks whose registers hold 32 columns");
    plan_set(c, TN_EVICT_FIRST, 0, "as rows: H200, a copy of 2^26 f32: 131.5 us, its loads with the hint 137.4");
    bound_registers(pl, c, s);
    plan_set_pdl(pl, c);
    plan_lighten(pl->plan->problem, c);
    c->aligned = c->tunable[TN_VECTOR] > 1;
    c->code.guard = guard_of(pl, c, &never);
    if (never || !possible(pl, c) || c->aligned != s->vectors || capacity(c) <= *most)
        plan_case_drop(pl);
    else
        *most = capacity(c);
}

void resident_columns_plan(struct planner *pl, const struct strategy *row)
{
    enum { BLOCK = 1024, FEW = 2 }; /* threads; words of a state */
    const bool clusters = pl->plan->device.sm >= 90;
    int64_t lo, hi, most[2] = { 0 }; /* of cases of vectors, and of others */
    segments_length_range(pl, &lo, &hi);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct shape *s = &shapes[i];
        const bool both = plan_setting(pl, TN_LANES, s->lanes) && plan_setting(pl, TN_CLUSTER, s->cluster) > 1;
        if (both && !(plan_overrides(pl, TN_LANES) && plan_overrides(pl, TN_CLUSTER)))
            continue; /* some warps of each block of a cluster: only where the user sets both, which then is refused */
        if (i == 0 && plan_pinned(pl))
            continue; /* with what the user sets it may take all columns, and no vectors would */
        if (s->threads == BLOCK && s->vectors && pl->plan->device.sm >= 120 &&
            segreduce_state_words(pl->plan->problem) <= FEW)
            continue; /* softmax would spill a word */
        if (s->vectors && state_determinism(pl->plan->problem) != DET_ANY)
            continue; /* which threads share a column would depend on addresses */
        if ((clusters || s->cluster == 1) && most[s->vectors] < hi)
            add_case(pl, row, s, &most[s->vectors]);
    }
}

bool resident_columns_check(struct planner *pl, const struct plan_case *c)
{
    unsigned with;
    const char *why = wrong(pl, c, &with);
    return !why || plan_contradiction(pl, c, with, why);
}
