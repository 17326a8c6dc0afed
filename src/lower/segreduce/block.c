/* SPDX-License-Identifier: Apache-2.0 */
/* block.c - planning of reductions by a block per segment (`parts` 1), or by several where there are too few segments to
 * fill the device: see shapes.c for which sizes, and whole.c for segments between offsets.
 */
#include "segreduce.h"

bool segreduce_block_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    return p->offsets >= 0 ? segreduce_between_offsets(p, why) : segreduce_regular(p, why);
}

void segreduce_block_plan(struct planner *pl, const struct strategy *row)
{
    if (pl->plan->problem->offsets >= 0)
        segreduce_whole_plan(pl, row);
    else
        segreduce_add_shapes(pl, row);
}

/* As many parts as there are places; where there are more segments than a quarter of these, twice as many, so that the
 * last round counts little. */
static struct formula wanted_parts(const struct problem *p, const struct plan_case *c)
{
    if (c->tunable[TN_PARTS])
        return f_const(c->tunable[TN_PARTS]);
    const struct formula segments = f_max(segments_count(p), 1);
    const struct formula fill = f_mul(plan_sms(p), c->tunable[TN_BLOCKS_PER_SM]);
    const struct formula many = f_lt(fill, f_mul(segments, 4));
    const struct formula parts = f_max(f_div(fill, segments), f_mul(many, f_cdiv(f_mul(fill, 2), segments)));
    return f_min(f_max(parts, 1), SEG_PARTS_MAX);
}

/* Parts of equal length, in whole vectors of all threads, each with a round at least, none empty. */
static struct formula several_blocks(struct planner *pl, struct plan_case *c, struct prog_kernel *k)
{
    const struct problem *p = pl->plan->problem;
    const int64_t step = (int64_t)c->tunable[TN_THREADS] * c->tunable[TN_VECTOR];
    const struct formula parts =
        segreduce_parts(k, segments_length(p), wanted_parts(p, c), step, step * c->tunable[TN_ITEMS]);
    const struct formula blocks = f_mul(segments_count(p), parts);
    plan_words_arg(pl, c, blocks, SEGMENTS_TICKET_WORDS);
    return blocks;
}

bool segreduce_block_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    if (p->offsets >= 0)
        return segreduce_whole_build(pl, c);
    if (c->tunable[TN_LANES] || c->tunable[TN_QUEUE])
        return plan_contradiction(pl, c, 0, "lanes and queue are for segments between offsets");
    struct prog_kernel *k = segreduce_team_kernel(pl, c, "");
    plan_launch(pl, c, 0,
                c->tunable[TN_PARTS] == 1 ? segreduce_bounded(c, segments_count(p)) : several_blocks(pl, c, k));
    return segreduce_check_tunables(pl, c, segreduce_runs(pl->plan->problem));
}
