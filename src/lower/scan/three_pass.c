/* SPDX-License-Identifier: Apache-2.0 */
/* three_pass.c - planning of scan.three_pass: totals of tiles, their scan by one block, the tiles again.
 *
 * Chosen where the bits must not depend on timing; it reads every element twice.  Tiles have a size
 * that does not depend on the device, so the result does not either.
 */
#include "lower/lower_impl.h"
#include "scan.h"

bool scan_three_pass_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    const struct misfit m[] = {
        { p->offsets >= 0, "its segments are given by flags or equal lengths; these are given by offsets" },
        { scan_keeps(p) && (!scan_trailing(p) || scan_operator_reads(p)),
          "tiles cut across segments, which must be rows, and the operator must not read inputs that differ "
          "between them" },
        { 0 }
    };
    return plan_takes(why, m);
}

void scan_three_pass_plan(struct planner *pl, const struct strategy *row)
{
    scan_add_cases(pl, row, "", "passes", (struct formula){ 0 }, true);
}

bool scan_three_pass_build(struct planner *pl, struct plan_case *c)
{
    static const char *const suffix[] = { "totals", "prefixes", "apply" };
    const struct problem *p = pl->plan->problem;
    struct formula tiles = { 0 };
    for (int i = 0; i < 3; i++)
        tiles = scan_tile_args(pl, c, scan_kernel(pl, c, suffix[i]));
    plan_partials_arg(pl, c, 0, tiles, 1);
    if (scan_keeps(p) || p->flags >= 0)
        plan_buffer_arg(pl, c, 0, BUF_CUTS, REGION_SCRATCH, f_mul(tiles, 4));
    plan_launch(pl, c, 0, tiles);
    plan_launch(pl, c, 1, f_min(tiles, 1));
    plan_launch(pl, c, 2, f_max(tiles, 1));
    return scan_check_tunables(pl, c);
}
