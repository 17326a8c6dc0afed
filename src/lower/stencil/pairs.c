/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.c - planning of maps over pairs of rows of two tables, as distances of all points: windows whose sums take their
 * terms from tiles in shared memory.
 */
#include "lower/pairs.h"

#include "stencil_plan.h"

bool stencil_pairs_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    struct pairs pairs;
    const struct misfit m[] = { { p->nreductions > 0, "it is for maps, and here a reduction goes beside it" },
                                { p->nfeedback > 0, "it is for maps, and here steps repeat" },
                                { stencil_skips(p), "it is for maps, and here the boundary leaves points out" },
                                { 0 } };
    return pairs_of(p, &pairs, why) && plan_takes(why, m) && stencil_multi_write_fits(p, d, a, why);
}

/* H200, us: see tuning.def.  Smaller maps leave multiprocessors without a block. */
enum { ROWS_MIN = 32, TERMS_MIN = 4, POINTS_PER_SM = 2048, LARGE_POINTS_PER_SM = 24576, LARGE_BLOCKS = 2 };

/* Are there so many rows of points that at most a quarter of what tiles cover lies beyond them? */
static struct formula covered(struct formula extent, int64_t tile)
{
    return f_ge(f_mul(extent, 4), f_mul(f_cdiv(extent, tile), 3 * tile));
}

static struct formula guard_of(const struct planner *pl, const struct pairs *pairs, const struct shape *s, bool large)
{
    const struct problem *p = pl->plan->problem;
    const struct formula m = stencil_extent(p, 0), n = stencil_extent(p, 1);
    struct formula guard = f_and(f_ge(m, ROWS_MIN), f_ge(n, ROWS_MIN));
    if (large)
        guard = f_and(covered(m, s->threads / s->block_x * s->points_y), covered(n, s->block_x * s->points_x));
    guard = f_and(guard, f_ge(access_extent(p, &pairs->terms), TERMS_MIN));
    return f_and(guard, f_ge(f_mul(m, n), f_mul(plan_sms(p), large ? LARGE_POINTS_PER_SM : POINTS_PER_SM)));
}

static void add_case(struct planner *pl, const struct strategy *row, const char *name, bool aligned, bool large)
{
    const struct problem *p = pl->plan->problem;
    struct plan_case *c = plan_case_add(pl, row, name, (struct formula){ 0 });
    struct pairs pairs;
    const char *why;
    struct shape shape = stencil_tuned(&pl->s->arena, p, &pl->plan->device, row->name, "pairs", large ? "large" : "");
    pairs_of(p, &pairs, &why);
    while (pairs.words * shape.points_x * shape.points_y > PAIRS_WORDS && shape.points_y > 1)
        shape.points_y /= 2;
    stencil_set_shape(c, shape);
    c->aligned = aligned;
    if (!plan_pinned(pl))
        c->code.guard = guard_of(pl, &pairs, &shape, large);
    if (aligned)
        c->code.guard = f_and(c->code.guard, stencil_rows_aligned(p, c->tunable[TN_POINTS_X]));
}

void stencil_pairs_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const struct shape s = stencil_tuned(&pl->s->arena, p, &pl->plan->device, row->name, "pairs", "");
    const int x = plan_setting(pl, TN_POINTS_X, s.points_x);
    const int rows[] = { s.threads / s.block_x * s.points_y, s.block_x * s.points_x };
    struct pairs pairs;
    const char *why;
    pairs_of(p, &pairs, &why);
    if (!plan_pinned(pl) && pairs_shared(p, &pl->plan->device, rows) > PAIRS_SHARED_MAX)
        return;
    /* of other architectures ptxas 13 spills */
    if (!plan_pinned(pl) && pl->plan->device.sm == 90 && pairs.words == 1 && stencil_vector(p) % x == 0)
        add_case(pl, row, "pairs_large", true, true);
    if (x > 1 && stencil_vector(p) % x == 0)
        add_case(pl, row, "pairs", true, false);
    add_case(pl, row, "pairs_anywhere", false, false);
}

bool stencil_pairs_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    int rows[2];
    c->tiled = true;
    if (stencil_points(c, 2, 0) * stencil_points(c, 2, 1) == PAIRS_MAX)
        plan_set(c, TN_MIN_BLOCKS, LARGE_BLOCKS, "128 registers hold 64 sums of a thread, and what they read");
    for (int d = 0; d < 2; d++)
        rows[d] = stencil_threads(c, 2, d) * stencil_points(c, 2, d);
    const struct misfit m[] = { { stencil_points(c, 2, 0) * stencil_points(c, 2, 1) > PAIRS_MAX,
                                  "a thread has at most 64 points" },
                                { pairs_shared(p, &pl->plan->device, rows) > pl->plan->device.shared_per_block,
                                  "the tiles do not fit shared memory" },
                                { 0 } };
    return plan_consistent(pl, c, m) && stencil_global_build(pl, c);
}
