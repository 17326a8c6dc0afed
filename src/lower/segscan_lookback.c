/* SPDX-License-Identifier: Apache-2.0 */
/* segscan_lookback.c - planning of scans of few long segments: tiles of all segments take turns, and tiles of a segment
 * pass their totals on.
 *
 * Control memory holds the ticket and the tile states, as in scan_lookback.c.  Every segment has as many tiles as one
 * that begins in the middle of a vector needs; its last tile may be empty.
 */
#include "segscan.h"

bool segscan_lookback_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d;
    if (!scan_keeps(p) || !scan_trailing(p)) {
        *why = "it scans rows: some dimension must be kept, and those behind it scanned";
        return false;
    }
    if (state_determinism(p) != DET_ANY) {
        *why = "how prefixes are combined depends on timing; the problem asks for determinism";
        return false;
    }
    return segscan_has_segments(p, a, why);
}

void segscan_lookback_plan(struct planner *pl, const struct strategy *row)
{
    if (segscan_pinned(pl))
        scan_check_empty(pl);
    segscan_add_cases(pl, row, "", "long", (struct formula){ 0 }, false, true);
}

bool segscan_lookback_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    struct prog_kernel *k = segscan_kernel(pl, c);
    const int vector = c->tunable[TN_VECTOR];
    const int64_t tile = (int64_t)c->tunable[TN_THREADS] * c->tunable[TN_ITEMS] * vector;
    const struct formula lost = f_mul(f_ne(f_mod(scan_length(p), f_const(vector)), f_const(0)), f_const(vector - 1));
    const struct formula per_segment = f_cdiv(f_add(scan_length(p), lost), f_const(tile));
    const struct formula tiles = f_mul(scan_segments(p), per_segment);
    plan_value_arg(k, "per_segment", TY_I32, per_segment);
    plan_value_arg(k, "tiles", TY_I32, tiles);
    scan_control_args(pl, c, k, tiles);
    const struct formula blocks = f_min(tiles, f_mul(f_sms(), f_const(c->tunable[TN_BLOCKS_PER_SM])));
    plan_launch(pl, c, 0, f_max(blocks, f_const(1)));
    return segscan_check(pl, c);
}
