/* SPDX-License-Identifier: Apache-2.0 */
/* lookback.c - planning of single-pass scans.
 *
 *   scan.resident      whole arrays and rows of medium size: every block reads the totals of all tiles before its own
 *   scan.lookback      whole arrays, by decoupled look-back; tiles that cut across few rows, segments that begin at flags,
 *                      and segments between offsets, without totals
 *
 * One launch, every element read and written once.  Control memory holds the counter of tickets and, per tile, 8
 * bytes for every 4 bytes of the state; it is zeroed once, and epochs tell the launches apart.  With look-back, how a
 * prefix is combined depends on which tiles have published theirs, so rounding differs from run to run; scan.resident
 * combines in a fixed order.
 *
 * scan.resident needs its whole grid resident at once: as many blocks per multiprocessor as its launch bounds promise,
 * and no more than SCAN_RESIDENT, which every device and the host executor have.  Blocks wait for earlier blocks only, so
 * a grid that shares the device still makes progress as long as blocks start in order.
 */
#include "lower/lower_impl.h"
#include "scan.h"

enum { FEW_SEGMENTS = 8 };

bool scan_grid_fits(const struct problem *p, const char **why)
{
    const struct misfit m[] = {
        { !scan_trailing(p) || p->flags >= 0, "it scans runs of elements; here segments begin at flags, or lie apart" },
        { state_determinism(p) == DET_DEVICE,
          "up to which size it is taken depends on the device; determinism: device forbids that" },
        { 0 }
    };
    return plan_takes(why, m);
}

bool scan_resident_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    *why = "it scans whole arrays and rows; here segments begin anywhere";
    return p->offsets < 0 && scan_grid_fits(p, why);
}

bool scan_lookback_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    const bool rows = p->offsets < 0 && p->flags < 0 && scan_keeps(p);
    const struct misfit m[] = {
        { p->offsets >= 0 && (scan_has_totals(p) || scan_operator_reads(p)),
          "tiles cut across segments between offsets, so there are no totals, and operators read no inputs" },
        { rows && !scan_trailing(p), "of segments it scans rows: here they are not runs of elements" },
        { rows && scan_operator_reads(p),
          "the operator reads inputs that differ between segments, and tiles cut across segments" },
        { state_determinism(p) != DET_ANY,
          "how prefixes are combined depends on timing; the problem asks for determinism" },
        { 0 }
    };
    return plan_takes(why, m);
}

/* Fewer rows than clusters that fill a device: tiles of one array, in effect.  Of small arrays, tiles that take turns are
 * fewer. */
static struct formula few_rows(const struct problem *p)
{
    return f_and(f_le(scan_segments(p), FEW_SEGMENTS), f_ge(access_count(p), 1 << 24));
}

void scan_lookback_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const bool marked = p->flags >= 0 || p->offsets >= 0, rows = !marked && scan_keeps(p);
    const char *variant = p->offsets >= 0 ? "offsets" : p->flags >= 0 ? "flags" : rows ? "across" : "";
    const char *name = rows ? "flat" : *variant ? variant : "large";
    scan_add_cases(pl, row, variant, name, rows && !plan_pinned(pl) ? few_rows(p) : (struct formula){ 0 }, true);
}

/* Sizes at which a variant's tiles are the best: quarters of a tile per multiprocessor. */
static const struct {
    const char *variant, *kept, *name; /* kept: of tiles that put what they keep by bits */
    int quarters;
    bool unaligned; /* takes pointers off the vectors' alignment too */
} sizes[] = {
    { "short", "short", "short", 1, false },
    { "medium", "kept medium", "medium", 4, false },
    { "upper", "kept", "upper", 4 * SCAN_RESIDENT, true },
    { "", "", "long", 4 * SCAN_RESIDENT, false },
};

struct formula scan_few_rows(const struct problem *p)
{
    enum { FROM = 1 << 13, SLOPE = 3 << 12 };
    const struct formula beyond = f_sub(scan_length(p), FROM);
    return f_lt(f_mul(scan_segments(p), SLOPE), f_mul(f_sms(), beyond));
}

/* The cases of a variant take what fits the device at once, and at most so many quarters of a tile per multiprocessor.
 */
static void plan_resident(struct planner *pl, const struct strategy *row, const char *variant, const char *name,
                          int quarters)
{
    const int from = pl->plan->ncases;
    scan_add_cases(pl, row, variant, name, (struct formula){ 0 }, true);
    for (int i = from; i < pl->plan->ncases; i++) {
        struct plan_case *c = &pl->plan->cases[i];
        const struct formula tiles = scan_row_tiles(pl->plan->problem, c);
        const int resident = c->tunable[TN_MIN_BLOCKS] < SCAN_RESIDENT ? c->tunable[TN_MIN_BLOCKS] : SCAN_RESIDENT;
        const int most = quarters < 4 * resident ? quarters : resident > 1 ? 4 * resident : 4;
        const struct formula fit = f_le(f_mul(tiles, 4), f_mul(f_sms(), most));
        c->code.guard = f_and(fit, c->code.guard);
        if (scan_keeps(pl->plan->problem) && !plan_pinned(pl))
            c->code.guard = f_and(scan_few_rows(pl->plan->problem), c->code.guard);
    }
}

/* Small tiles first, which spread a short array over the device.  When pinned, what does not fit at once is refused. */
void scan_resident_plan(struct planner *pl, const struct strategy *row)
{
    if (plan_pinned(pl)) {
        plan_resident(pl, row, "", "long", 4 * SCAN_RESIDENT);
        return;
    }
    int64_t largest = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int from = pl->plan->ncases;
        plan_resident(pl, row, sizes[i].variant, sizes[i].name, sizes[i].quarters);
        if (scan_marks_kept(pl->plan->problem, &pl->plan->cases[from])) {
            pl->plan->ncases = from;
            plan_resident(pl, row, sizes[i].kept, sizes[i].name, sizes[i].quarters);
        }
        /* Rows that begin anywhere are left to tiles across them. */
        if (!sizes[i].unaligned || scan_keeps(pl->plan->problem))
            plan_keep_first(pl, from);
        const struct plan_case *c = &pl->plan->cases[from];
        const int64_t fit = scan_tile_elements(c) * (c->tunable[TN_MIN_BLOCKS] > 1 ? SCAN_RESIDENT : 1);
        if (scan_keeps_some(pl->plan->problem) && fit < largest)
            pl->plan->ncases = from; /* heavy elements: registers have room for no larger tile than before */
        else
            largest = fit;
    }
}

void scan_control_args(struct planner *pl, struct plan_case *c, struct formula tiles)
{
    const struct formula words = f_mul(tiles, 8 * state_words(pl->plan->problem, NULL));
    plan_buffer_arg(pl, c, 0, BUF_STATES, REGION_CONTROL, f_add(words, LAUNCH_LINE_BYTES));
}

static bool build(struct planner *pl, struct plan_case *c, bool own_tiles)
{
    struct prog_kernel *k = scan_kernel(pl, c, "");
    const struct formula tiles = own_tiles ? scan_row_tile_args(pl, c, k) : scan_tile_args(pl, c, k);
    scan_control_args(pl, c, tiles);
    plan_launch(pl, c, 0, f_max(tiles, 1));
    return scan_check_tunables(pl, c);
}

bool scan_lookback_build(struct planner *pl, struct plan_case *c) { return build(pl, c, false); }
bool scan_resident_build(struct planner *pl, struct plan_case *c) { return build(pl, c, true); }
