/* SPDX-License-Identifier: Apache-2.0 */
/* resident.c - planning of rows that are reduced, then mapped with their results, and stay in registers between; of columns
 * see resident_columns.c.
 *
 * Teams of a few lanes take short rows, a warp, a block or a cluster of blocks longer ones.  A thread holds as many elements as fit into
 * `words` registers.  Where vectors do not fit, because rows are not whole vectors or arrays begin anywhere, threads
 * load elements.
 */
#include "resident.h"

#include "lower/work.h"

enum { SMALL_BLOCK = 256, FEW_WORDS = 16 };
static const struct shape {
    const char *name, *elements; /* of the cases by vectors, and by elements (NULL: other shapes take them) */
    int lanes, threads, words, cluster;
} shapes[] = {
    { "rows_4_lanes", NULL, 4, 128, 8, 1 },
    { "rows_8_lanes", "rows_8_lanes_elements", 8, 128, 16, 1 },
    { "rows_16_lanes", "rows_16_lanes_elements", 16, 128, 16, 1 },
    { "rows_warp_short", "rows_warp_short_elements", 32, 128, 16, 1 },
    { "rows_block_1024", NULL, 0, 64, 16, 1 },
    { "rows_warp", "rows_warp_elements", 32, 128, 32, 1 },
    { "rows_block_2048", "rows_block_2048_elements", 0, 128, 16, 1 },
    { "rows_block_3072", NULL, 0, 128, 24, 1 },
    { "rows_block_4096_wide", "rows_block_4096_elements", 0, 256, 16, 1 },
    { "rows_block_4096", NULL, 0, 128, 32, 1 },
    { "rows_block_6144", NULL, 0, 256, 24, 1 },
    { "rows_block_8192_wide", "rows_block_8192_elements", 0, 512, 16, 1 },
    { "rows_block_8192", NULL, 0, 256, 32, 1 },
    { "rows_block_12288", NULL, 0, 512, 24, 1 },
    { "rows_block_16384", "rows_block_16384_elements", 0, 512, 32, 1 },
    { "rows_cluster_2", NULL, 0, 512, 32, 2 },
    { "rows_cluster_small", NULL, 0, SMALL_BLOCK, 32, 8 },
    { "rows_cluster_4", NULL, 0, 512, 32, 4 },
    { "rows_cluster_8", NULL, 0, 512, 32, 8 },
    { "rows_cluster_long", NULL, 0, 1024, 32, 8 },
    { "rows_cluster_halves", NULL, 0, 512, 64, 8 },
};

enum { TUNED_SM = 90 };

/* Does a reduction take many states at once? */
static bool takes_many(const struct problem *p)
{
    for (int i = 0; i < p->nreductions; i++)
        if (p->reduction[i].takes_many)
            return true;
    return false;
}

/* … where the first field of an element is not known when generating? */
static bool gains_by_elements(const struct problem *p)
{
    for (int i = 0; i < p->nreductions; i++)
        if (p->reduction[i].takes_many && p->reduction[i].map[0]->kind != EX_CONST)
            return true;
    return false;
}

bool segreduce_resident_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    const struct misfit m[] = {
        { !problem_writes(p, AT_RESULT) && !gains_by_elements(p),
          "no value per element uses the results, and no operator takes many elements at once" },
        { !access_direct_fields(p), "no input is read element by element, so there is nothing to keep" },
        { !state_commutative(p), "threads take elements of a segment by turns, and the operator is ordered" },
        { 0 }
    };
    return segreduce_regular(p, why) && plan_takes(why, m) && (segments_trailing(p) || resident_columns_fit(p, why));
}

bool segreduce_resident_takes(const struct problem *p)
{
    const char *why;
    return problem_writes(p, AT_RESULT) && segments_trailing(p) && segreduce_resident_fits(p, NULL, NULL, &why);
}

int resident_element_words(const struct problem *p)
{
    int words = 0;
    for (int i = 0; i < p->ninputs; i++)
        for (int f = 0; access_input_direct(p, i) && f < p->input[i].array.nfields; f++)
            words += ty_bytes(p->input[i].array.field[f].type) > 4 ? 2 : 1;
    return words;
}

/* Bytes that a register of an element holds, at least. */
static int narrowest(const struct problem *p)
{
    int bytes = 4;
    for (int i = 0; i < p->ninputs; i++)
        for (int f = 0; access_input_direct(p, i) && f < p->input[i].array.nfields; f++) {
            const int own = ty_bytes(p->input[i].array.field[f].type);
            bytes = own < bytes ? own : bytes;
        }
    return bytes;
}

static int64_t capacity(const struct plan_case *c)
{
    const int team = c->tunable[TN_LANES] ? c->tunable[TN_LANES] : c->tunable[TN_THREADS] * resident_cluster(c);
    return (int64_t)team * c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR];
}

/* Where many states are combined by sums, as many blocks as have registers for their share of a row, `words`, and a few for
 * each thread, up to three quarters of the threads that fit.  Warps of large blocks wait for each other, so there are more
 * of those blocks. */
static void bound_registers(const struct planner *pl, struct plan_case *c, const struct shape *s)
{
    enum { LARGE = 256, BESIDE = 16, BESIDE_SMALL = 24, REGISTERS = 128, REGISTERS_ELSEWHERE = 144 };
    const struct problem *p = pl->plan->problem;
    const struct device *d = &pl->plan->device;
    const bool sums = p->nreductions == 1 && takes_many(p) && !gains_by_elements(p);
    const int own = s->words + s->words / 2 + (s->threads < LARGE ? BESIDE_SMALL : BESIDE);
    const int fit = d->registers_per_sm / own, most = d->threads_per_sm * 3 / 4, threads = fit < most ? fit : most;
    if (sums && !s->lanes && c->tunable[TN_VECTOR] > 1 && threads >= c->tunable[TN_THREADS])
        plan_set(c, TN_MIN_BLOCKS, threads / c->tunable[TN_THREADS],
                 "H200 layer norm, rows of 2048, 4096, 8192, 16384: 142/152/174/202 us, so bounded 138/140/148/152");
    else if (!problem_writes(p, AT_RESULT) && segreduce_state_words(p) <= 3)
        return; /* H200, cross-entropy of 2^26 f32 in rows of 512, 1024: 62, 62 us, 4 blocks 67, 69, 8 63 of 1024 */
    else if (p->nreductions > 1 && takes_many(p) && c->tunable[TN_VECTOR] > 1)
        plan_set(c, TN_MIN_BLOCKS,
                 d->registers_per_sm / ((d->sm == TUNED_SM ? REGISTERS : REGISTERS_ELSEWHERE) * c->tunable[TN_THREADS]),
                 "what maps have computed stays in registers, and ptxas takes more than it gains by");
    else if (segreduce_state_words(p) > 2)
        plan_set(c, TN_MIN_BLOCKS, 1, "a bound keeps ptxas from spilling");
}

static struct plan_case *shape_case(struct planner *pl, const struct strategy *row, const struct shape *s,
                                    const char *name, bool vectors)
{
    enum { LANES = 4, WORDS = 32 };
    const struct problem *p = pl->plan->problem;
    struct plan_case *c = plan_case_add(pl, row, name, (struct formula){ 0 });
    /* H200, softmax of bf16 in rows of 128, 256, 512: 75, 74, 74 us, twice as many lanes 83, 83, 80 */
    const bool fewer = vectors && s->lanes && s->words < WORDS && s->lanes > LANES && takes_many(p) && narrowest(p) < 4;
    const int lanes = fewer ? s->lanes / 2 : s->lanes, words = fewer ? WORDS : s->words;
    int items = words / resident_element_words(p);
    if (!vectors)
        plan_set(c, TN_VECTOR, 1, "rows are not whole vectors, or arrays begin anywhere");
    while (c->tunable[TN_VECTOR] > items && plan_shrinks(c, TN_VECTOR))
        plan_set(c, TN_VECTOR, c->tunable[TN_VECTOR] / 2, "as many elements as registers");
    items /= c->tunable[TN_VECTOR];
    plan_set(c, TN_LANES, lanes, "model: the fewest threads whose registers hold a row");
    plan_set(c, TN_THREADS, s->threads, "model: the fewest threads whose registers hold a row");
    plan_set(c, TN_ITEMS, items > 0 ? items : 1, "model: registers of a thread");
    plan_set(c, TN_CLUSTER, s->cluster, "model: the fewest blocks whose registers hold a row");
    plan_set(c, TN_EVICT_FIRST, 0, "H200, a copy of 2^26 f32: 131.5 us, its loads with the hint 137.4");
    bound_registers(pl, c, s);
    plan_set_pdl(pl, c);
    plan_lighten(p, c);
    c->aligned = c->tunable[TN_VECTOR] > 1;
    return c;
}

/* The condition: rows that fit, of whole vectors, of an element at least; where no value needs them again, of the eighth part of
 * a block that is the last (H200, cross-entropy of 2^26 in rows of 3072, 4096 by 256 threads 81, 65 us, by segreduce.block 70,
 * 68).  `*never`: no row does. */
static struct formula guard_of(const struct planner *pl, const struct plan_case *c, bool *never)
{
    const struct problem *p = pl->plan->problem;
    const struct formula length = segments_length(p);
    const bool filled = !problem_writes(p, AT_RESULT) && !c->tunable[TN_LANES] && !plan_pinned(pl);
    const int64_t least = filled ? capacity(c) / 8 * 7 : 1;
    struct formula guard = { 0 }, aligned = { 0 };
    int64_t lo, hi;
    segments_length_range(pl, &lo, &hi);
    *never = lo > capacity(c) || hi < least;
    if (hi > capacity(c))
        guard = f_le(length, capacity(c));
    if (lo < least)
        guard = f_and(guard, f_ge(length, least));
    if (!c->aligned)
        return guard;
    guard = f_and(guard, f_eq(f_mod(length, c->tunable[TN_VECTOR]), 0));
    if (access_aligned_guard(p, c->tunable[TN_VECTOR], true, &aligned))
        guard = f_and(guard, aligned);
    return guard;
}

static void add_case(struct planner *pl, const struct strategy *row, const struct shape *s, const char *name,
                     bool vectors, int64_t *most)
{
    struct plan_case *c = shape_case(pl, row, s, name, vectors);
    bool never;
    c->code.guard = guard_of(pl, c, &never);
    if (never || capacity(c) <= *most || c->aligned != vectors)
        plan_case_drop(pl);
    else
        *most = capacity(c);
}

/* Are there arrays along a row beside the elements that stay, such as weights? */
static bool has_weights(const struct problem *p)
{
    for (int i = 0; i < p->ninputs; i++)
        for (int d = 0; d < p->input[i].array.rank && !access_input_direct(p, i); d++)
            if (p->input[i].axis[d] >= 0 && p->space[p->input[i].axis[d]].reduced)
                return true;
    return false;
}

/* Of shapes that hold equally long rows, the one that is faster; H200, 2^23, 2^26 elements.  Rows of 1024 by two warps, and by
 * one: f32 softmax 17.6, 130 us and 18.0, 131; RMS norm 18.8, 130 and 20.9, 134; bf16 softmax 11.2, 81 and 10.7, 66.  Rows of
 * 4096 by 256 threads, and by 128: f32 softmax 18.0, 132.8 and 17.9, 132.3; RMS norm, which has weights, 19.2, 132.8 and 21.9,
 * 133.2; layer norm of 8192 by 512 threads 24.1, 147, and by 256 24.5, 140.  Cross-entropy of 2^26 in rows of 2048, 4096, 8192
 * 62, 65, 68, by segreduce.block 72, 68, 72, with 32 words a thread 71, 76, 82. */
static bool suits(const struct problem *p, const struct shape *s)
{
    enum { PAIR = 64, LARGE = 512 };
    const bool keeps = problem_writes(p, AT_RESULT), sums = takes_many(p) && !gains_by_elements(p);
    if (s->lanes || s->words != FEW_WORDS || s->cluster > 1 || s->elements == NULL)
        return s->threads != PAIR || (keeps && narrowest(p) == 4);
    if (!keeps || s->threads < SMALL_BLOCK)
        return true;
    return narrowest(p) == 4 && has_weights(p) && !(sums && s->threads == LARGE);
}

/* Which shapes are worth a case, measured on an H200.  Softmax f32 of 2^26 in rows of 32768/65536/131072/262144 by
 * clusters: 165/169/184/217 us, read twice 239/238/249/252; bf16 in rows of 262144 197, read twice 182.  Without results
 * per element a row is not kept, and lanes of a warp alone gain: cross-entropy of 2^26 f32 in rows of 128/1024 takes
 * 95/91 us by these and 186/99 by segreduce.subwarp, in rows of 4096 by a block 108 and 88. */
static bool possible(const struct planner *pl, const struct shape *s, bool vectors)
{
    enum { UNCOMMON = 24, SMALL = 256, MOST_WORDS = 64 };
    const struct problem *p = pl->plan->problem;
    const bool keeps = problem_writes(p, AT_RESULT);
    const int cluster = plan_setting(pl, TN_CLUSTER, s->cluster), lanes = plan_setting(pl, TN_LANES, s->lanes);
    const int max_grid = plan_setting(pl, TN_MAX_GRID, 0);
    if (s->words == UNCOMMON && !takes_many(p)) /* RMS norm in rows of 5120 133 us, by the next shape 131 */
        return false;
    const bool beside = s->words > UNCOMMON && !lanes && p->nreductions > 1 && takes_many(p) && !plan_pinned(pl);
    if (beside && (!vectors || (s->threads > SMALL && pl->plan->device.sm != TUNED_SM)))
        return false; /* 512 threads have 128 registers each, and cross-entropy with its gradient would spill */
    if (vectors && !suits(p, s))
        return false;
    if (cluster <=
        1) /* places after a row's end cost what elements cost: softmax in rows of 256 takes 130 us, and 176 */
        return (keeps || lanes || (vectors && s->words <= FEW_WORDS) || plan_overrides(pl, TN_LANES)) &&
               (!vectors || lanes != 16 || takes_many(p)); /* by 32 lanes; RMS norm 132 and 129 */
    if (plan_setting(pl, TN_CLUSTER, 0)) /* pinned: check_clusters() says what does not go with the cluster */
        return !s->lanes || plan_setting(pl, TN_LANES, 0);
    if (max_grid && max_grid < cluster)
        return false;
    /* H200, rows of 65536, 512 threads in 4 blocks: softmax f32, bf16 163, 126 us; layer norm 194, and 202 */
    if (s->threads == SMALL_BLOCK && !gains_by_elements(p))
        return false;
    if (s->words == MOST_WORDS &&
        (narrowest(p) == 4 || !takes_many(p) || segreduce_state_words(p) > 2 || p->nreductions > 1))
        return false;
    if (s->threads == 1024 && (narrowest(p) < 4 || segreduce_state_words(p) > 2 || work_is_heavy(p)))
        return false; /* 64 registers are few: layer norm would spill */
    return pl->plan->device.sm >= 90 && keeps && !lanes;
}

/* By vectors, then what is left by elements.  Where bits may not depend on addresses, all rows are loaded by elements. */
void segreduce_resident_plan(struct planner *pl, const struct strategy *row)
{
    int64_t vectors = 0, elements = 0;
    if (!segments_trailing(pl->plan->problem)) {
        resident_columns_plan(pl, row);
        return;
    }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (shapes[i].name && state_determinism(pl->plan->problem) == DET_ANY && possible(pl, &shapes[i], true))
            add_case(pl, row, &shapes[i], shapes[i].name, true, &vectors);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (shapes[i].elements && possible(pl, &shapes[i], false))
            add_case(pl, row, &shapes[i], shapes[i].elements, false, &elements);
}

static bool check_clusters(struct planner *pl, const struct plan_case *c)
{
    enum { PORTABLE = 8 };
    const int cluster = resident_cluster(c), max_grid = c->tunable[TN_MAX_GRID];
    const struct misfit m[] = { { cluster > 1 && pl->plan->device.sm < 90, "thread-block clusters need sm_90" },
                                { cluster > 1 && c->tunable[TN_LANES],
                                  "a cluster has whole rows, or whole blocks of columns: lanes must be 0" },
                                { cluster > 1 && max_grid && max_grid < cluster, "max_grid is less than a cluster" },
                                { !segreduce_power_of_two(cluster) || cluster > PORTABLE,
                                  "the cluster must be 1, 2, 4 or 8 blocks" },
                                { 0 } };
    const char *why;
    return plan_takes(&why, m) || plan_contradiction(pl, c, WITH_CLUSTER | WITH_LANES | WITH_MAX_GRID, why);
}

bool segreduce_resident_build(struct planner *pl, struct plan_case *c)
{
    enum { CLUSTERS = 1 << 16 };
    const struct problem *p = pl->plan->problem;
    const int lanes = c->tunable[TN_LANES], cluster = resident_cluster(c);
    c->maps = problem_writes(p, AT_RESULT);
    struct prog_kernel *k = segreduce_kernel(pl, c, "");
    const struct formula rows = lanes ? f_cdiv(segments_count(p), c->tunable[TN_THREADS] / lanes) : segments_count(p),
                         teams = segments_trailing(p) ? rows : resident_columns_blocks(p, c);
    k->cluster = cluster > 1 ? cluster : 0;
    const int bound = c->tunable[TN_MAX_GRID] ? c->tunable[TN_MAX_GRID] / cluster : CLUSTERS; /* see check_clusters() */
    plan_launch(pl, c, 0, cluster > 1 ? f_mul(f_min(teams, bound), cluster) : segreduce_bounded(c, teams));
    return check_clusters(pl, c) && (segments_trailing(p) || resident_columns_check(pl, c)) &&
           segreduce_check_tunables(pl, c, true);
}
