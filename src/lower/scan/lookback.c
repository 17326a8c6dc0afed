/* SPDX-License-Identifier: Apache-2.0 */
/* lookback.c - planning of single-pass scans.
 *
 *   scan.resident      arrays of medium size: every block reads the totals of all tiles before its own
 *   scan.lookback      whole arrays, and segments that begin at flags or lie between offsets, without totals, by decoupled
 *                      look-back
 *
 * Rows: tiles cut across them (`across`), or each row has tiles of its own.  scan.resident reads totals back to the tile
 * in which a row begins; so it takes segments between offsets.  With look-back, tiles of all rows take turns, and every
 * row has as many as one that begins in the middle of a vector needs; its last tile may be empty.
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
#include "lower/segscan/segscan.h"
#include "lower/work.h"

enum { FEW_SEGMENTS = 8, WORDS_OF_TWO = 2 };

/* ---- fits -------------------------------------------------------------------------------------------------------- */

/* Segments follow one another, and nothing else depends on which one an element is of. */
static bool may_cut(const struct problem *p) { return scan_trailing(p) && !scan_operator_reads(p); }

static struct misfit cut_offsets(const struct problem *p)
{
    return (struct misfit){ p->offsets >= 0 && (scan_has_totals(p) || scan_operator_reads(p)),
                            "tiles cut across segments between offsets, so there are no totals, and operators read no "
                            "inputs" };
}

bool scan_resident_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    const struct misfit m[] = {
        { !scan_trailing(p) || p->flags >= 0, "it scans runs of elements; here segments begin at flags, or lie apart" },
        { state_determinism(p) == DET_DEVICE,
          "up to which size it is taken depends on the device; determinism: device forbids that" },
        cut_offsets(p),
        { 0 }
    };
    return plan_takes(why, m);
}

bool scan_lookback_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    const struct misfit m[] = { cut_offsets(p),
                                { scan_has_rows(p) && !scan_in_lines(p),
                                  "of segments it scans rows: here the last dimension is not scanned" },
                                segscan_determined(p),
                                { 0 } };
    return plan_takes(why, m);
}

/* ---- cases of scan.lookback -------------------------------------------------------------------------------------- */

/* Fewer rows than clusters that fill a device: tiles of one array, in effect.  Of small arrays, tiles that take turns are
 * fewer. */
static struct formula few_rows(const struct problem *p)
{
    return f_and(f_le(scan_segments(p), FEW_SEGMENTS), f_ge(access_count(p), 1 << 24));
}

/* Cases whose tiles are lines, across rows or not.  Without a pin, what the user sets for tiles of the other kinds leaves
 * them as they are. */
static void add_lines(struct planner *pl, const struct strategy *row, const char *variant, const char *name,
                      bool across)
{
    const int from = pl->plan->ncases;
    segscan_add_cases(pl, row, variant, name, (struct formula){ 0 }, false);
    for (int i = from; i < pl->plan->ncases; i++) {
        struct plan_case *c = &pl->plan->cases[i];
        plan_set(c, TN_ACROSS, across, NULL);
        if (plan_pinned(pl))
            continue;
        c->tunable[TN_ACROSS] = across;
        c->tunable[TN_SMEM_TRANSPOSE] = c->tunable[TN_STRIPED] = 0;
    }
}

static void add_turns(struct planner *pl, const struct strategy *row)
{
    const bool pieces = segments_in_pieces(pl->plan->problem) && !plan_pinned(pl);
    add_lines(pl, row, pieces ? "pieces" : "rows", "long_rows", false);
}

void scan_turns_plan(struct planner *pl)
{
    const struct problem *p = pl->plan->problem;
    const char *why;
    if (scan_has_rows(p) && scan_lookback_fits(p, &pl->plan->device, &pl->s->arena, &why))
        add_turns(pl, strategy_by_name("scan.lookback"));
}

bool scan_lookback_wide(const struct problem *p)
{
    enum { LEAST = 3, MOST = 4, WORDS = 6 /* of a position: what it has read, and its state */ };
    const int fields = state_fields(p, NULL);
    return fields >= LEAST && fields <= MOST && state_words(p, NULL) == fields && scan_items_in_words(p) <= WORDS;
}

#define HALVES_FROM                                                                                                    \
    "H200, extrema of 2^26 bf16 from the right between 1275, 100000 offsets, of 2^23: 259, 258, 35 us, 512x24 301, "   \
    "322, 45"

/* Elements of two bytes that are loaded one by one. */
static bool halves_between_offsets(const struct problem *p)
{
    return p->offsets >= 0 && access_vector_width(p) == 8 && state_words(p, NULL) == 1;
}

void scan_lookback_plan(struct planner *pl, const struct strategy *row)
{
    enum { WIDE_ITEMS = 13 };
    const struct problem *p = pl->plan->problem;
    const bool rows = scan_has_rows(p), pinned = plan_pinned(pl);
    const int across = plan_setting(pl, TN_ACROSS, -1), from = pl->plan->ncases;
    const char *variant = p->offsets >= 0 ? "offsets" : p->flags >= 0 ? "flags" : rows ? "across" : "";
    const bool laborious = !*variant && scan_laborious(pl);
    const bool wide = p->flags >= 0 && scan_lookback_wide(p);
    const bool usual = !plan_overrides(pl, TN_THREADS) && !plan_overrides(pl, TN_VECTOR);
    if (wide)
        variant = "flags wide";
    const char *name = rows ? "flat" : p->flags >= 0 ? "flags" : *variant ? variant : "large";
    if (rows && pinned && across != 1) {
        add_turns(pl, row);
    } else if (!rows || (across != 0 && may_cut(p))) {
        scan_add_cases(pl, row, laborious ? "laborious" : variant, name,
                       rows && !pinned ? few_rows(p) : (struct formula){ 0 }, true);
        for (int i = from; i < pl->plan->ncases; i++)
            plan_set(&pl->plan->cases[i], TN_ACROSS, rows, NULL);
        for (int i = from; i < pl->plan->ncases && usual && halves_between_offsets(p); i++)
            if (!pl->plan->cases[i].aligned) {
                plan_set(&pl->plan->cases[i], TN_THREADS, 256, HALVES_FROM);
                plan_set(&pl->plan->cases[i], TN_ITEMS, 16, HALVES_FROM);
                plan_set(&pl->plan->cases[i], TN_MIN_BLOCKS, 4, HALVES_FROM);
            }
        for (int i = from; i < pl->plan->ncases && wide && usual; i++)
            plan_set(&pl->plan->cases[i], TN_ITEMS, WIDE_ITEMS, "ptxas keeps more in 64 registers than is counted on");
    }
}

/* ---- cases of scan.resident -------------------------------------------------------------------------------------- */

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

/* Few long rows; shorter rows must be fewer.  Rows of up to 2^14 elements take no longer with a block each than with tiles
 * that wait for one another.  The tiles of both strategies fit a device only if there are no more rows than
 * multiprocessors. */
static struct formula few_long_rows(const struct problem *p)
{
    enum { FROM = 1 << 13, SLOPE = 3 << 12 };
    const struct formula beyond = f_sub(scan_length(p), FROM);
    return f_lt(f_mul(scan_segments(p), SLOPE), f_mul(f_sms(), beyond));
}

/* The cases of a variant take what fits the device at once, and at most so many quarters of a tile per multiprocessor. */
static void add_own(struct planner *pl, const struct strategy *row, const char *variant, const char *name, int quarters)
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
            c->code.guard = f_and(few_long_rows(pl->plan->problem), c->code.guard);
    }
}

/* Operators that call functions take longer over the largest tiles than tiles that follow one another.  H200, welford of 2^20
 * f32: 23.9 us, scan.pipeline 13.6, scan.lookback 12.0. */
static bool calls_alone(const struct planner *pl)
{
    const struct problem *p = pl->plan->problem;
    return !scan_has_rows(p) && state_determinism(p) == DET_ANY && work_of(p, NULL, pl->plan->device.sm).special > 0;
}

/* Small tiles first, which spread a short array over the device. */
static void add_sizes(struct planner *pl, const struct strategy *row)
{
    enum { LARGE = 4 }; /* quarters */
    int64_t largest = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i].quarters > LARGE && calls_alone(pl))
            break;
        const int from = pl->plan->ncases;
        add_own(pl, row, sizes[i].variant, sizes[i].name, sizes[i].quarters);
        if (scan_marks_kept(pl->plan->problem, &pl->plan->cases[from])) {
            pl->plan->ncases = from;
            add_own(pl, row, sizes[i].kept, sizes[i].name, sizes[i].quarters);
        }
        /* Rows that begin anywhere are left to tiles across them. */
        if (!sizes[i].unaligned || scan_keeps(pl->plan->problem))
            plan_keep_first(pl, from);
        const struct plan_case *c = &pl->plan->cases[from];
        const int64_t fit = scan_tile_elements(c) * (c->tunable[TN_MIN_BLOCKS] > 1 ? SCAN_RESIDENT : 1);
        /* heavy elements: registers have room for no larger tile than before */
        const bool stands_behind = i > 0 && !sizes[i].unaligned && sizes[i].quarters == sizes[i - 1].quarters;
        if (fit < largest && (stands_behind || scan_keeps_some(pl->plan->problem)))
            pl->plan->ncases = from;
        else
            largest = fit;
    }
}

static struct formula tiles_across(const struct problem *p, const struct plan_case *c)
{
    return f_cdiv(segments_elements(p), scan_tile_elements(c));
}

/* At most so many tiles per multiprocessor; 0: one for every second one.  Arrays that begin anywhere go with the most. */
static void add_across(struct planner *pl, const struct strategy *row, const char *variant, const char *name, int tiles)
{
    const struct problem *p = pl->plan->problem;
    const int from = pl->plan->ncases;
    add_lines(pl, row, variant, name, p->offsets < 0);
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
            c->code.guard = f_and(few_long_rows(p), c->code.guard);
    }
    if (tiles < SCAN_RESIDENT)
        plan_keep_first(pl, from);
}

/* Tiles across rows take what is left of them, of any length.  When pinned, what does not fit at once is refused. */
void scan_resident_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const int across = plan_setting(pl, TN_ACROSS, -1);
    const bool pinned = plan_pinned(pl), offsets = p->offsets >= 0, cut = offsets || (scan_has_rows(p) && may_cut(p));
    if (pinned && !offsets && across != 1) {
        add_own(pl, row, "", "long", 4 * SCAN_RESIDENT);
        return;
    }
    if (!pinned && !offsets && across != 1)
        add_sizes(pl, row);
    if (!pinned && offsets)
        add_across(pl, row, "few across", "few_across", 0);
    if (!pinned && cut && across != 0)
        add_across(pl, row, "short across", "short_across", 1);
    if (cut && across != 0)
        add_across(pl, row, "across", "across", SCAN_RESIDENT);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

void scan_control_args(struct planner *pl, struct plan_case *c, struct formula tiles)
{
    const struct formula words = f_mul(tiles, 8 * state_words(pl->plan->problem, NULL));
    plan_buffer_arg(pl, c, 0, BUF_STATES, REGION_CONTROL, f_add(words, LAUNCH_LINE_BYTES));
}

static bool build_tiles(struct planner *pl, struct plan_case *c, bool own)
{
    struct prog_kernel *k = scan_kernel(pl, c, "");
    const struct formula tiles = own ? scan_row_tile_args(pl, c, k) : scan_tile_args(pl, c, k);
    scan_control_args(pl, c, tiles);
    plan_launch(pl, c, 0, f_max(tiles, 1));
    return scan_check_tunables(pl, c);
}

bool scan_takes_turns(const struct problem *p, const struct plan_case *c)
{
    return scan_has_rows(p) && !c->tunable[TN_ACROSS];
}

static bool build_turns(struct planner *pl, struct plan_case *c)
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

static bool build_across(struct planner *pl, struct plan_case *c)
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

/* Tunables of tiles across rows, and of tiles in lines, which are not transposed. */
static bool check_rows(struct planner *pl, const struct plan_case *c, bool lines)
{
    const struct problem *p = pl->plan->problem;
    const bool across = c->tunable[TN_ACROSS];
    const struct misfit m[] = {
        { across && !scan_has_rows(p), "tiles cut across rows; this problem has none" },
        { across && !may_cut(p),
          "the operator reads inputs that differ between rows, or rows do not follow one another" },
        { lines && (c->tunable[TN_SMEM_TRANSPOSE] || c->tunable[TN_STRIPED]), "tiles of this kind are not transposed" },
        { 0 }
    };
    const char *why;
    return plan_takes(&why, m) || plan_contradiction(pl, c, WITH_ACROSS | WITH_SMEM_TRANSPOSE | WITH_STRIPED, why);
}

bool scan_lookback_build(struct planner *pl, struct plan_case *c)
{
    const bool turns = scan_takes_turns(pl->plan->problem, c);
    if (!turns)
        c->tunable[TN_BLOCKS_PER_SM] = 0; /* a block for each tile */
    return check_rows(pl, c, turns) && (turns ? build_turns(pl, c) : build_tiles(pl, c, false));
}

bool scan_resident_build(struct planner *pl, struct plan_case *c)
{
    const bool across = pl->plan->problem->offsets >= 0 || c->tunable[TN_ACROSS];
    return check_rows(pl, c, across) && (across ? build_across(pl, c) : build_tiles(pl, c, true));
}
