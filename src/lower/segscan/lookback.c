/* SPDX-License-Identifier: Apache-2.0 */
/* lookback.c - planning of scans of few long segments.
 *
 *   segscan.lookback    tiles of all segments take turns, and tiles of a segment pass their totals on
 *   segscan.resident      tiles cut across rows, and across segments between offsets; every block reads the totals of the
 * tiles since its first one began
 *
 * Control memory holds the ticket and the tile states, as in scan/lookback.c.  With look-back, every segment has as
 * many tiles as one that begins in the middle of a vector needs; its last tile may be empty.
 */
#include "segscan.h"

bool segscan_lookback_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    const struct misfit m[] = { { !scan_keeps(p) || !scan_in_lines(p),
                                  "it scans rows: some dimension must be kept, and the last one scanned" },
                                segscan_determined(p),
                                { 0 } };
    return plan_takes(why, m);
}

void segscan_lookback_plan(struct planner *pl, const struct strategy *row)
{
    const char *variant = segments_in_pieces(pl->plan->problem) && !plan_pinned(pl) ? "pieces" : "";
    segscan_add_cases(pl, row, variant, "long_rows", (struct formula){ 0 }, false);
}

bool segscan_lookback_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    struct prog_kernel *k = segscan_kernel(pl, c);
    const struct formula room = f_add(scan_length(p), segscan_lost(p, c->tunable[TN_VECTOR]));
    const struct formula per_segment = f_cdiv(room, scan_tile_elements(c));
    const struct formula tiles = f_mul(scan_segments(p), per_segment);
    plan_value_arg(k, VAL_PER_SEGMENT, TY_I32, per_segment);
    plan_value_arg(k, VAL_TILES, TY_I32, tiles);
    scan_control_args(pl, c, tiles);
    const struct formula blocks = f_min(tiles, f_mul(f_sms(), c->tunable[TN_BLOCKS_PER_SM]));
    plan_launch(pl, c, 0, f_max(blocks, 1));
    return segscan_check(pl, c);
}

bool segscan_resident_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    const struct misfit m[] = {
        { !scan_keeps(p) && p->offsets < 0,
          "it scans rows and segments between offsets; this problem has a single one" },
        { scan_operator_reads(p),
          "the operator reads inputs that differ between segments, and tiles cut across segments" },
        { p->offsets >= 0 && scan_has_totals(p), "tiles cut across segments between offsets, so there are no totals" },
        { 0 }
    };
    return plan_takes(why, m) && scan_grid_fits(p, why);
}

static struct formula tiles_across(const struct problem *p, const struct plan_case *c)
{
    return f_cdiv(segments_elements(p), scan_tile_elements(c));
}

enum { WORDS_OF_TWO = 2 };

/* At most so many tiles per multiprocessor; 0: one for every second one. */
static void add_across(struct planner *pl, const struct strategy *row, const char *variant, const char *name, int tiles)
{
    const struct problem *p = pl->plan->problem;
    const int from = pl->plan->ncases;
    segscan_add_cases(pl, row, variant, name, (struct formula){ 0 }, false);
    for (int i = from; i < pl->plan->ncases; i++) {
        struct plan_case *c = &pl->plan->cases[i];
        /* Wider states want all registers. */
        plan_set(c, TN_MIN_BLOCKS, scan_items_in_words(p) > WORDS_OF_TWO ? 1 : SCAN_RESIDENT,
                 "blocks that wait for one another are resident at once");
        const int blocks = c->tunable[TN_MIN_BLOCKS] < tiles ? c->tunable[TN_MIN_BLOCKS] : tiles;
        const struct formula all = tiles_across(p, c);
        const struct formula fit = blocks ? f_le(all, f_mul(f_sms(), blocks)) : f_le(f_mul(all, 2), f_sms());
        c->code.guard = f_and(fit, c->code.guard);
        if (!plan_pinned(pl) && p->offsets < 0)
            c->code.guard = f_and(scan_few_rows(p), c->code.guard);
    }
}

static void add_first(struct planner *pl, const struct strategy *row, const char *variant, const char *name, int tiles)
{
    const int from = pl->plan->ncases;
    add_across(pl, row, variant, name, tiles);
    plan_keep_first(pl, from);
}

/* Rows that scan.resident would take, of any length. */
void segscan_resident_plan(struct planner *pl, const struct strategy *row)
{
    if (!plan_pinned(pl) && pl->plan->problem->offsets >= 0)
        add_first(pl, row, "few", "few_across", 0);
    if (!plan_pinned(pl))
        add_first(pl, row, "short", "short_across", 1);
    add_across(pl, row, "", "across", SCAN_RESIDENT);
}

bool segscan_resident_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    struct prog_kernel *k = segscan_kernel(pl, c);
    const struct formula tiles = tiles_across(p, c);
    const int64_t more = scan_tile_elements(c) + 1; /* than a tile */
    const struct formula period = f_min(scan_length(p), more);
    plan_value_arg(k, VAL_TILES, TY_I32, tiles);
    if (p->offsets < 0)
        plan_value_arg(k, VAL_RECIPROCAL, TY_I64, f_add(f_div((int64_t)1 << 32, period), 1));
    scan_control_args(pl, c, tiles);
    plan_launch(pl, c, 0, f_max(tiles, 1));
    return segscan_check(pl, c);
}
