/* SPDX-License-Identifier: Apache-2.0 */
/* resident_columns.c - planning of columns that are reduced, then mapped with their results, and stay in registers between.
 *
 * Some warps, a block or a cluster of blocks have 32 neighbouring columns, which they read in vectors, or, where rows are not
 * whole vectors, element by element.
 */
#include "resident.h"

#include "lower/work.h"

#include <string.h>

static const struct shape {
    const char *name;
    bool vectors;       /* of columns */
    int threads, lanes; /* lanes: warps that share a column, 0: all of a block */
    int words, cluster; /* words: registers of a thread's places */
    int blocks;         /* of a multiprocessor; 0: as many as ptxas makes room for */
} shapes[] = {
    { "columns_4_scalar", false, 256, 1, 4, 1, 8 },    { "columns_8", true, 128, 1, 8, 1, 8 },
    { "columns_16", true, 256, 1, 16, 1, 5 },          { "columns_32", true, 256, 2, 16, 1, 5 },
    { "columns_64", true, 256, 4, 16, 1, 5 },          { "columns_128", true, 256, 0, 16, 1, 5 },
    { "columns_256", true, 256, 0, 32, 1, 4 },         { "columns_512", true, 512, 0, 32, 1, 2 },
    { "columns_1024", true, 1024, 0, 32, 1, 1 },       { "columns_cluster_1024", true, 512, 0, 32, 2, 2 },
    { "columns_2048", true, 512, 0, 32, 4, 2 },        { "columns_4096", true, 512, 0, 32, 8, 2 },
    { "columns_16_scalar", false, 256, 1, 16, 1, 4 },  { "columns_32_scalar", false, 256, 2, 16, 1, 5 },
    { "columns_64_scalar", false, 256, 4, 16, 1, 5 },  { "columns_128_scalar", false, 256, 0, 16, 1, 4 },
    { "columns_256_scalar", false, 512, 0, 16, 1, 2 }, { "columns_512_scalar", false, 1024, 0, 16, 1, 1 },
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

struct formula resident_columns_teams(const struct problem *p, const struct plan_case *c)
{
    return f_cdiv(segments_count(p), c->tunable[TN_THREADS] / sharing(c));
}

/* The condition: columns that fit, of an element at least; those of a cluster fill a fourth.  *never: there are none.  However
 * few columns there are, segreduce.column takes longer, as its results are read by a second kernel (H200, softmax of 128
 * channels by 1024 points, 1000 by 1024: 3.3, 9.7 us, and 7.0, 14.2). */
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

/* Bytes of shared memory of a block: per column an aggregate of each warp, one unused, and what is shown. */
static int64_t shared_bytes(const struct problem *p, const struct plan_case *c)
{
    const int warps = c->tunable[TN_THREADS] / SEG_WARP, teams = warps > sharing(c) ? warps / sharing(c) : 1;
    const int shown = resident_cluster(c) > 1 ? 4 : 1;
    return (int64_t)state_bytes(p) * SEG_WARP * (warps + teams + teams * shown);
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

/* Where the user sets a tunable of another strategy, cases that it does not go with are left out. */
static bool possible(const struct planner *pl, const struct plan_case *c)
{
    unsigned with;
    const int threads = c->tunable[TN_THREADS], max_grid = c->tunable[TN_MAX_GRID];
    if (resident_cluster(c) > 1 && !plan_overrides(pl, TN_CLUSTER) && wrong(pl, c, &with))
        return false; /* threads of the user's that suit the other shapes */
    if (plan_pinned(pl) && (plan_overrides(pl, TN_THREADS) || plan_overrides(pl, TN_CLUSTER) ||
                            plan_overrides(pl, TN_LANES) || plan_overrides(pl, TN_VECTOR)))
        return true; /* resident_columns_check() says what is wrong */
    return !wrong(pl, c, &with) &&
           (plan_pinned(pl) || ((!max_grid || max_grid >= resident_cluster(c)) &&
                                c->tunable[TN_MIN_BLOCKS] * threads <= pl->plan->device.threads_per_sm));
}

/* Columns wait for each other twice or more: the more blocks, the less does memory wait. */
static void bound_registers(struct planner *pl, struct plan_case *c, const struct shape *s)
{
    const struct problem *p = pl->plan->problem;
    const int room = pl->plan->device.threads_per_sm / s->threads;
    const int fit = s->cluster > 1 && pl->plan->device.sm >= 120 ? 1 : room; /* else sm_120 spills two words */
    if (resident_element_words(p) == 1 && segreduce_state_words(p) <= 3 && !work_is_heavy(p))
        plan_set(c, TN_MIN_BLOCKS, s->blocks < fit ? s->blocks : fit,
                 "H200, softmax of 128 channels, standardised columns of 128: 137, 148 us, without a bound 152, 150");
}

/* most: places that a column of the cases so far may have. */
static void add_case(struct planner *pl, const struct strategy *row, const struct shape *s, int64_t *most)
{
    enum { WHOLE = 1024, WIDE = 32, PAIR = 2 }; /* threads of a multiprocessor with 64 registers */
    bool never;
    struct plan_case *c = plan_case_add(pl, row, s->name, (struct formula){ 0 });
    int items = s->words / resident_element_words(pl->plan->problem);
    if (!s->vectors)
        plan_set(c, TN_VECTOR, 1, "rows are not whole vectors, or arrays begin anywhere");
    else if (s->threads * (s->blocks > 1 ? s->blocks : 1) == WHOLE && s->words == WIDE && c->tunable[TN_VECTOR] > PAIR)
        plan_set(c, TN_VECTOR, PAIR, "64 registers: of four columns a word or two would spill");
    while (c->tunable[TN_VECTOR] > items && plan_shrinks(c, TN_VECTOR))
        plan_set(c, TN_VECTOR, c->tunable[TN_VECTOR] / 2, "as many elements as registers");
    items = items > c->tunable[TN_VECTOR] ? items / c->tunable[TN_VECTOR] : 1;
    plan_set(c, TN_THREADS, s->threads, "model: the fewest threads whose registers hold 32 columns");
    plan_set(c, TN_LANES, s->lanes < c->tunable[TN_THREADS] / SEG_WARP ? s->lanes : 0,
             "model: the fewest warps whose registers hold 32 columns");
    plan_set(c, TN_ITEMS, items, "model: registers of a thread");
    plan_set(c, TN_CLUSTER, s->cluster, "model: the fewest blocks whose registers hold 32 columns");
    plan_set(c, TN_EVICT_FIRST, 0, "as rows");
    bound_registers(pl, c, s);
    plan_set_pdl(pl, c);
    plan_lighten(pl->plan->problem, c);
    c->aligned = c->tunable[TN_VECTOR] > 1;
    c->code.guard = guard_of(pl, c, &never);
    if (never || !possible(pl, c) || c->aligned != s->vectors || capacity(c) <= *most) {
        memset(c, 0, sizeof *c);
        pl->plan->ncases--;
        return;
    }
    *most = capacity(c);
}

void resident_columns_plan(struct planner *pl, const struct strategy *row)
{
    enum { BLOCK = 1024, FEW = 2 };
    const bool clusters = pl->plan->device.sm >= 90;
    int64_t lo, hi, most[2] = { 0 };
    segments_length_range(pl, &lo, &hi);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct shape *s = &shapes[i];
        const bool both = plan_setting(pl, TN_LANES, s->lanes) && plan_setting(pl, TN_CLUSTER, s->cluster) > 1;
        if (both && !(plan_overrides(pl, TN_LANES) && plan_overrides(pl, TN_CLUSTER)))
            continue;
        if (i == 0 && plan_pinned(pl))
            continue; /* with what the user sets it may take all columns, and no vectors would */
        if (s->vectors && s->threads == BLOCK && clusters && segreduce_state_words(pl->plan->problem) <= FEW)
            continue; /* softmax of 1024 channels by 1024 threads spills a word, and takes 187 us, by the cluster 180 */
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
