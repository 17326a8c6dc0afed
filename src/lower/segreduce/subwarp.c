/* SPDX-License-Identifier: Apache-2.0 */
/* subwarp.c - planning of reductions by teams of lanes: see shapes.c for which sizes. */
#include "segreduce.h"

FITS_WHAT(segreduce_subwarp, segreduce_regular)

/* Chosen for runs of elements, and for boxes of few columns: elsewhere columns read whole vectors. */
void segreduce_subwarp_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    if (plan_pinned(pl) || (segreduce_runs(p) && !segreduce_resident_takes(p)))
        segreduce_add_shapes(pl, row);
    else if (!segreduce_runs(p))
        segreduce_add_boxes(pl, row);
}

/* Every team takes its segments once, unless the grid becomes too large; where loads are packed with segments, a warp
 * takes as many vectors at a time as its lanes load. */
bool segreduce_subwarp_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int lanes = c->tunable[TN_LANES];
    const int64_t each = lanes ? (int64_t)c->tunable[TN_THREADS] / lanes * c->tunable[TN_SEGMENTS]
                               : (int64_t)c->tunable[TN_THREADS] * c->tunable[TN_ITEMS];
    if (!segreduce_check_tunables(pl, c, segreduce_runs(pl->plan->problem)))
        return false;
    if (lanes)
        segreduce_team_kernel(pl, c, "");
    else
        segreduce_kernel(pl, c, "");
    const struct formula vectors = f_div(segments_length(p), c->tunable[TN_VECTOR]);
    const struct formula all = lanes ? segments_count(p) : f_mul(segments_count(p), vectors);
    plan_launch(pl, c, 0, segreduce_bounded(c, f_cdiv(all, each)));
    return true;
}
