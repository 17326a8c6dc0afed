/* SPDX-License-Identifier: Apache-2.0 */
/* column.c - planning of scans over dimensions that are not the last.
 *
 * Where there are segments for all threads of the device, a thread takes one; else a block takes 32 neighbouring ones,
 * its warps sharing their length.  The latter for whatever number of segments, as long as neighbours are neighbours in
 * memory.
 */
#include "segscan.h"

bool segscan_column_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    return plan_takes(why, (struct misfit[]){ segscan_single(p), { 0 } });
}

static void add_case(struct planner *pl, const struct strategy *row, const char *variant, const char *name,
                     struct formula guard)
{
    const int from = pl->plan->ncases;
    scan_add_cases(pl, row, variant, name, guard, false);
    for (int i = from; i < pl->plan->ncases; i++) {
        struct plan_case *c = &pl->plan->cases[i];
        plan_set(c, TN_ROWS, *variant ? c->tunable[TN_THREADS] / 32 : 1, NULL);
    }
}

/* Segments that keep every multiprocessor's threads busy one by one. */
static struct formula many(const struct problem *p) { return f_le(f_mul(plan_sms(p), 1024), scan_segments(p)); }

void segscan_column_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const bool neighbours = p->offsets < 0 && p->rank > 0 && !p->space[p->rank - 1].reduced;
    if (plan_pinned(pl)) {
        add_case(pl, row, p->offsets < 0 ? "strips" : "", "column", (struct formula){ 0 });
        return;
    }
    if (scan_in_lines(p))
        return;
    add_case(pl, row, "", "column", many(p));
    if (neighbours)
        add_case(pl, row, "strips", "strips", (struct formula){ 0 });
}

bool segscan_column_build(struct planner *pl, struct plan_case *c)
{
    const bool strips = c->tunable[TN_ROWS] > 1;
    const int each = strips ? 32 : c->tunable[TN_THREADS];
    const struct formula blocks = f_cdiv(scan_segments(pl->plan->problem), each);
    scan_kernel(pl, c, "");
    plan_launch(pl, c, 0, f_max(strips ? blocks : f_min(blocks, 1 << 20), 1));
    const struct misfit m[] = { { strips && pl->plan->problem->offsets >= 0,
                                  "segments between offsets have lengths of their own, and a thread each (rows: 1)" },
                                { strips && c->tunable[TN_ROWS] != c->tunable[TN_THREADS] / 32,
                                  "rows: one per warp, or a single one" },
                                { 0 } };
    return scan_consistent(pl, c, m) && scan_check_tunables(pl, c);
}
