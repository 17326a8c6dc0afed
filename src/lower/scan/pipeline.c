/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c - planning of scan.pipeline: blocks that stay, a ring of tiles in shared memory.
 *
 * Bulk copies move multiples of 16 bytes from and to multiples of 16, so all arrays must be aligned; other pointers are
 * left to look-back.  Kept values have the same distance from a multiple of 16 in a stage as in memory, so their outputs
 * must be aligned, too.  For rows with tiles of their own the length must be a multiple as well.  The tiles of a reversed
 * scan begin at the end of memory: where nothing else depends on how many elements come before a tile, the first one takes
 * what is left over, else the length must be a multiple.
 */
#include "lower/lower_impl.h"
#include "lower/work.h"
#include "pipeline.h"

enum {
    UNIT = 16,
    LINE = 128,
    LOOKS = 4,  /* warps that look back */
    UPSWEEP = 4 /* warps that combine */
};

static bool scalar(const struct prog_array *a) { return a->nfields == 1 && !*a->field[0].name && a->stride <= UNIT; }

static bool plain_arrays(const struct problem *p)
{
    int inputs = 0;
    for (int i = 0; i < p->ninputs; i++) {
        if (p->input[i].role != ROLE_ELEMENT)
            continue;
        if ((p->input[i].neighbours && !scan_ring_beside(p)) ||
            (access_input_direct(p, i) && !scalar(&p->input[i].array)))
            return false;
        inputs += access_input_direct(p, i);
    }
    for (int o = 0; o < p->noutputs; o++)
        if (output_moment(&p->output[o]) == AT_POINT &&
            (!(access_output_direct(p, o) || p->output[o].role == OUT_KEPT) || !scalar(&p->output[o].array)))
            return false;
    return inputs > 0;
}

bool scan_marked(const struct problem *p)
{
    const bool plain = !scan_has_totals(p) && !scan_operator_reads(p) && scan_summed_bytes(p) < 0;
    const bool rows = scan_keeps(p) && scan_trailing(p) && plain;
    return p->offsets >= 0 || p->flags >= 0 || rows;
}

bool scan_few_columns(const struct problem *p)
{
    const bool columns = scan_keeps(p) && segments_adjacent(p) && p->space[0].reduced;
    return columns && !scan_has_totals(p) && !scan_operator_reads(p);
}

enum {
    STAGES = 4,
    LONG_ROW = 1 << 16,
    CUT_ROW = 40000,
    ROWS_FROM = 1 << 23,
    CUT_ROWS_FROM = 1 << 21,
    MARKED_FROM = 1 << 19,
    LONG_COLUMN = 1 << 19,
    LOOKED_COLUMN = 1 << 16,
    WHOLE_ROWS_FROM = 1 << 23, /* H200 f32 of 2^24/2^22/2^20 by 4: 140/43.6/18.0 us, with look-back 149/43.3/15.4 */
    LOOKED_FROM = 1 << 19,
    WORDS_ACROSS = 16, /* of a row's states */
    WORDS_LOOKED = 3   /* of a state */
};

/* Columns of a thread are side by side as states too. */
static int widest_vector(const struct problem *p)
{
    const int vector = access_vector_width(p);
    return scan_few_columns(p) && vector > SCAN_COLUMNS_VECTOR ? SCAN_COLUMNS_VECTOR : vector;
}

/* H200, exclusive maxima of 2^27 u8: 11 vectors of 4 by 256 threads 137 us, 5 of 8 150; minima and maxima of 2^28 i8: 5 of 8
 * 434 us, one of 16 by 544 670. */
static int best_vector(const struct problem *p)
{
    const int vector = widest_vector(p);
    return scan_compares_bytes(p) && vector > 4 ? 4 : vector;
}

bool scan_pipeline_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)a;
    const bool columns = scan_few_columns(p);
    const struct misfit m[] = {
        { d->sm < 90, "bulk copies begin with sm_90" },
        { !scan_trailing(p) && !columns,
          "it scans runs of elements, and a few columns; here elements lie apart in another way" },
        { columns && widest_vector(p) * state_words(p, NULL) > WORDS_ACROSS,
          "states of several columns are side by side in a thread, and these are too large" },
        { p->offsets >= 0 && (scan_has_totals(p) || scan_operator_reads(p)),
          "tiles cut across segments, so there are no totals, and operators read no inputs" },
        { scan_keeps_some(p) && !scan_ring_keeps(p),
          "the values that a tile keeps go to memory side by side, as one piece; here they go to rows" },
        { state_determinism(p) == DET_DEVICE,
          "its tiles depend on the device's shared memory; determinism: device forbids that" },
        { !plain_arrays(p), "bulk copies move arrays of scalars whose elements are used where they stand" },
        { 0 }
    };
    if (!plan_takes(why, m))
        return false;
    *why = "the ring has no room for a vector per thread";
    return pipeline_most_items(p, d, 256, UPSWEEP, widest_vector(p), STAGES, 0) > 0;
}

bool scan_leads(const struct problem *p)
{
    return p->reverse && !scan_own_tiles(p) && !scan_marked(p) && !scan_ring_keeps(p);
}

/* Bulk copies of whole lines are faster; rows of columns begin anywhere in them. */
int scan_lead_most(const struct problem *p, int tile)
{
    const int unit = pipeline_unit(p), of_line = LINE / UNIT * unit;
    return scan_few_columns(p) || tile < of_line ? unit : of_line;
}

static bool units(const struct problem *p, struct formula *guard)
{
    const int unit = pipeline_unit(p);
    if (!access_aligned_guard(p, unit, true, guard))
        return false;
    const struct formula length = scan_own_tiles(p) ? scan_length(p) : access_count(p);
    uint64_t kept[UNIT + 1] = { 0 };
    for (int o = 0; o < p->noutputs; o++)
        if (p->output[o].role == OUT_KEPT)
            kept[UNIT] |= f_pointer(p->ninputs + o);
    if (kept[UNIT])
        *guard = f_and(*guard, access_begin_at(kept));
    if ((p->reverse && !scan_leads(p)) || scan_own_tiles(p))
        *guard = f_and(f_eq(f_mod(length, unit), 0), *guard);
    return true;
}

/* Rows that are long; with tiles of their own, and fewer than multiprocessors.  So many that blocks take them one by one are
 * better off where operators call functions.  H200, logsumexp of 767 rows of 79358 f32: 342 us, a block each 317. */
static struct formula long_rows(const struct problem *p)
{
    enum { CALLS = 2 };
    const struct formula large = f_ge(access_count(p), scan_own_tiles(p) ? ROWS_FROM : CUT_ROWS_FROM);
    const struct formula rows = f_and(f_ge(scan_length(p), scan_own_tiles(p) ? LONG_ROW : CUT_ROW), large);
    if (work_of(p, NULL, 0).special >= CALLS)
        return f_and(f_lt(f_mul(scan_segments(p), 8), f_mul(f_sms(), 7)), rows);
    return scan_own_tiles(p) ? f_and(f_lt(scan_segments(p), f_sms()), rows) : rows;
}

/* Columns are published one by one: the more there are, the more words are read per tile, and strips that each wait for
 * their own are ahead. */
static struct formula few_long_columns(const struct problem *p)
{
    const struct formula few = f_le(segments_inner(p), WORDS_ACROSS / state_words(p, NULL));
    return f_and(few, f_ge(scan_length(p), LONG_COLUMN));
}

/* Look-back takes as many columns as lanes.  Large arrays whose operators call functions are left to segscan.three_pass.
 * H200, logsumexp of 2^25 f32 in 4, 8, 16, 32 columns: 293, 289, 279, 271 us, in three passes 290, 221, 185, 167; of 2^21 31, 28,
 * 27, 27 and 149, 91, 49, 35. */
static struct formula looked_columns(const struct problem *p)
{
    enum { CALLS = 2, CALLED_COLUMNS = 4, CALLED_MOST = 1 << 24 };
    const struct formula large = f_and(f_ge(scan_length(p), LOOKED_COLUMN), f_ge(access_count(p), LOOKED_FROM));
    if (work_of(p, NULL, 0).special < CALLS || state_determinism(p) == DET_DEVICE)
        return large;
    return f_and(large, f_or(f_le(segments_inner(p), CALLED_COLUMNS), f_lt(access_count(p), CALLED_MOST)));
}

/* Lanes side by side in a row of a few columns, and how many times as many a warp has. */
static struct formula lanes_across(const struct problem *p, const struct plan_case *c)
{
    return f_div(segments_inner(p), c->tunable[TN_VECTOR]);
}

static struct formula rows_of_warp(const struct problem *p, const struct plan_case *c)
{
    return f_max(f_div(32, f_max(lanes_across(p, c), 1)), 1);
}

/* Is a row of columns one vector, which is known when code is made?  No look-back then: totals of so few columns are soon
 * read. */
static bool one_vector_a_row(const struct plan_case *c) { return c->shift[0] == COLUMNS_WHOLE_ROW; }

static int least_tile_rows(const struct plan_case *c) { return c->tunable[TN_THREADS] / 32 * c->tunable[TN_ITEMS]; }

static struct formula tile_elements(const struct problem *p, const struct plan_case *c)
{
    if (!scan_few_columns(p) || one_vector_a_row(c))
        return f_const(scan_tile_elements(c));
    return f_mul(f_mul(rows_of_warp(p, c), least_tile_rows(c)), f_max(segments_inner(p), 1));
}

/* No more columns than the threads of a warp have; of look-back, than its lanes.  Tiles are whole units, and hold the one
 * that leads. */
static struct formula whole_warps(const struct problem *p, const struct plan_case *c)
{
    const struct formula columns = segments_inner(p);
    const int vector = c->tunable[TN_VECTOR], unit = pipeline_unit(p);
    if (one_vector_a_row(c))
        return f_eq(columns, vector);
    struct formula fit = f_le(columns, scan_columns_most(c->tunable[TN_LOOKBACK_WARPS], vector));
    if (c->tunable[TN_THREADS] / 32 % unit)
        fit = f_and(fit, f_eq(f_mod(tile_elements(p, c), unit), 0));
    if (scan_leads(p) && least_tile_rows(c) < unit)
        fit = f_and(fit, f_ge(f_mul(rows_of_warp(p, c), least_tile_rows(c)), unit));
    if (vector > 1)
        fit = f_and(fit, f_eq(f_mod(columns, vector), 0));
    return f_and(f_ge(columns, 1), fit);
}

/* Tiles of marked segments: smaller ones are dealt out to all multiprocessors where there are fewer elements. */
static const struct size {
    const char *variant, *name;
    int log; /* of the most elements; 0: any number */
    int stages, looks;
} sizes[] = {
    { "short", "short_pipeline", 21, 6, 0 },
    { "medium", "medium_pipeline", 23, STAGES, 0 },
    { "", "pipeline", 0, STAGES, 0 },
}, looked = { "columns", "columns_pipeline", 0, STAGES, LOOKS },
  whole_row = { "columns", "whole_row_pipeline", 0, STAGES, 0 },
  looked_one = { "one column", "odd_columns_pipeline", 0, STAGES, LOOKS }, kept = { "kept", "pipeline", 0, STAGES, 0 },
  kept_wide = { "kept wide", "pipeline", 0, STAGES, 0 };

/* Where some elements are kept, what else a stage has room for beside the widest input decides how large tiles are. */
static const struct size *last_size(const struct problem *p)
{
    enum { TILE = 1024 };
    struct scan_layout l;
    if (!scan_ring_keeps(p))
        return &sizes[sizeof sizes / sizeof *sizes - 1];
    scan_layout(p, TILE, &l);
    return l.bytes / TILE * widest_vector(p) < 2 * UNIT ? &kept : &kept_wide;
}

static struct plan_case *add_case(struct planner *pl, const struct strategy *row, const struct size *size,
                                  struct formula guard)
{
    const struct problem *p = pl->plan->problem;
    struct plan_case *c = plan_case_add(pl, row, size->name, guard);
    plan_case_variant(pl, c, size->variant);
    if (c->tunable[TN_VECTOR] > best_vector(p))
        plan_set(c, TN_VECTOR, best_vector(p), NULL);
    plan_set(c, TN_STAGES, c->tunable[TN_STAGES] ? c->tunable[TN_STAGES] : size->stages, NULL);
    plan_set(c, TN_UPSWEEP_WARPS,
             c->tunable[TN_UPSWEEP_WARPS] ? c->tunable[TN_UPSWEEP_WARPS]
             : pipeline_takes_bytes(p)    ? 2 * UPSWEEP
                                          : UPSWEEP,
             NULL);
    plan_set(c, TN_MARKER_WARPS, pipeline_markers(p), "for segments that begin anywhere");
    plan_set(c, TN_LOOKBACK_WARPS, size->looks, NULL);
    plan_set(c, TN_MIN_BLOCKS, scan_ring_keeps(p) ? c->tunable[TN_BLOCKS_PER_SM] : 1,
             "the ring takes a multiprocessor's shared memory");
    plan_set(c, TN_PDL, 1, NULL);
    c->shift[0] = size == &whole_row ? COLUMNS_WHOLE_ROW : COLUMNS_ALIGNED;
    const bool free_shape = !c->overridden[TN_ITEMS] && !c->overridden[TN_THREADS] && !c->overridden[TN_VECTOR];
    const int most = pipeline_most_items(p, &pl->plan->device, c->tunable[TN_THREADS], c->tunable[TN_UPSWEEP_WARPS],
                                         c->tunable[TN_VECTOR], c->tunable[TN_STAGES], c->tunable[TN_LOOKBACK_WARPS]);
    if (free_shape && !c->overridden[TN_UPSWEEP_WARPS] && !*size->variant && pipeline_waits(p, pl->plan->device.sm))
        pipeline_shorten_chains(p, &pl->plan->device, c);
    else if (c->tunable[TN_ITEMS] > most && free_shape)
        pipeline_largest_tile(p, &pl->plan->device, c);
    else if (c->tunable[TN_ITEMS] > most && most > 0)
        plan_set(c, TN_ITEMS, most, NULL);
    c->aligned = true;
    if (scan_few_columns(p))
        c->code.guard = f_and(c->code.guard, whole_warps(p, c));
    return c;
}

/* May columns be scanned by look-back? */
static bool looks_fit(const struct planner *pl)
{
    const struct problem *p = pl->plan->problem;
    return scan_few_columns(p) && state_determinism(p) == DET_ANY && state_words(p, NULL) <= WORDS_LOOKED &&
           pipeline_most_items(p, &pl->plan->device, 256, UPSWEEP, widest_vector(p), STAGES, LOOKS) > 0;
}

/* Rows of one vector, rows of whole vectors, and any rows.  True where no other case is wanted: those of a variant would have
 * as many warps that look back. */
static bool add_looked(struct planner *pl, const struct strategy *row, struct formula guard)
{
    const struct problem *p = pl->plan->problem;
    const int vector = plan_setting(pl, TN_VECTOR, widest_vector(p));
    const bool pinned = plan_pinned(pl), whole_rows = vector * access_widest(p) == UNIT;
    if (whole_rows && (!pinned || plan_setting(pl, TN_LOOKBACK_WARPS, LOOKS) == 0))
        add_case(pl, row, &whole_row, pinned ? guard : f_and(f_ge(scan_length(p), WHOLE_ROWS_FROM), guard));
    if (pinned)
        return add_case(pl, row, &looked, guard)->overridden[TN_LOOKBACK_WARPS];
    guard = f_and(looked_columns(p), guard);
    add_case(pl, row, &looked, guard);
    if (widest_vector(p) > 1)
        add_case(pl, row, &looked_one, guard);
    return true;
}

void scan_pipeline_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const bool pinned = plan_pinned(pl);
    if (!pinned && scan_laborious(pl) && !scan_keeps(p) && !scan_marked(p) && !scan_ring_keeps(p))
        return;
    const bool divides = work_of(p, NULL, 0).special > 0;
    if (!pinned && scan_few_columns(p) && state_words(p, NULL) == WORDS_LOOKED && divides &&
        state_determinism(p) != DET_DEVICE)
        return; /* H200, welford f32 2^26 in 4, 8, 16, 32 columns 732, 3126, 2972, 3013 us, segscan.three_pass 561, 364, 333, 304 */
    if (!pinned && p->flags >= 0 && scan_lookback_wide(p) && divides && state_determinism(p) == DET_ANY)
        return; /* H200, welford between flags, 2^24 f32: 156 us, scan.lookback 93 */
    const int last = sizeof sizes / sizeof *sizes - 1;
    const bool sizes_matter = scan_marked(p) || scan_ring_keeps(p);
    /* scan.resident takes small rows, and small arrays of which some elements are kept */
    const int smallest = scan_keeps(p) || scan_ring_keeps(p) ? last - 1 : 0;
    const int first = pinned || !sizes_matter ? last : smallest;
    struct formula guard = { 0 };
    units(p, &guard);
    if (looks_fit(pl) && add_looked(pl, row, guard))
        return;
    if (!pinned && (scan_keeps(p) || scan_marked(p))) {
        const struct formula large = f_ge(access_count(p), MARKED_FROM);
        const struct formula worth = scan_few_columns(p) ? few_long_columns(p) : scan_keeps(p) ? long_rows(p) : large;
        guard = f_and(worth, guard);
    }
    for (int i = first; i <= last; i++) {
        const struct formula few = f_le(access_count(p), (int64_t)1 << sizes[i].log);
        add_case(pl, row, i == last ? last_size(p) : &sizes[i], i == last ? guard : f_and(few, guard));
    }
}

static bool check(struct planner *pl, const struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int held = scan_degree(c), threads = c->tunable[TN_THREADS], vector = c->tunable[TN_VECTOR];
    const int looks = c->tunable[TN_LOOKBACK_WARPS], stages = c->tunable[TN_STAGES], tile = threads * held;
    const int all = pipeline_threads(threads, c->tunable[TN_UPSWEEP_WARPS], c->tunable[TN_MARKER_WARPS], looks);
    const struct misfit m[] = {
        { scan_marked(p) != (c->tunable[TN_MARKER_WARPS] > 0),
          "markers are for segments that begin anywhere, and those need one" },
        { threads % 32 || all > PIPELINE_THREADS_MAX,
          "threads must be a multiple of 32, and the other warps fit a block with them" },
        { held > pipeline_positions_most(p, vector),
          "a thread holds at most 64 elements, 128 where it sums bytes by words" },
        { vector > widest_vector(p), "the vector must be no wider than 16 bytes of the widest array, or four columns" },
        { c->shift[0] && (c->shift[0] != COLUMNS_WHOLE_ROW || !scan_few_columns(p) || looks),
          "a row that is one vector is of a few columns without look-back" },
        { looks && (!scan_few_columns(p) || state_determinism(p) != DET_ANY),
          "look-back is for columns, whose prefixes it combines as timing has it" },
        { tile % UNIT || stages * pipeline_stage_bytes(p, tile) + pipeline_reserved(p, threads, stages, vector, looks) >
                             pl->plan->device.shared_per_block,
          "the ring does not fit shared memory" },
        { 0 }
    };
    return plan_consistent(pl, c, m);
}

/* Where tiles cut across all segments, as scan_tile_args(): a few columns have tiles of whole rows, and a scan that leads
 * a first tile of what is more than whole units of its length, or of a unit. */
static struct formula tile_args(struct planner *pl, struct plan_case *c, struct prog_kernel *k)
{
    const struct problem *p = pl->plan->problem;
    const int unit = scan_lead_most(p, (int)scan_tile_elements(c));
    const struct formula count = segments_elements(p), tile = tile_elements(p, c);
    struct formula tiles = f_cdiv(count, tile);
    if (scan_leads(p)) {
        const struct formula units = f_div(f_sub(f_max(scan_length(p), 1), 1), unit);
        tiles = f_add(f_cdiv(f_mul(f_mul(units, unit), scan_segments(p)), tile), 1);
    }
    plan_value_arg(k, VAL_COUNT, TY_I64, count);
    plan_value_arg(k, VAL_TILES, TY_I32, tiles);
    return tiles;
}

bool scan_pipeline_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    if (!check(pl, c))
        return false;
    struct prog_kernel *k = scan_kernel(pl, c, "");
    k->threads = pipeline_threads(c->tunable[TN_THREADS], c->tunable[TN_UPSWEEP_WARPS], c->tunable[TN_MARKER_WARPS],
                                  c->tunable[TN_LOOKBACK_WARPS]);
    if (p->flags >= 0)
        plan_value_arg(k, VAL_FLAGS_ALIGNED, TY_I32, f_eq(f_mod(f_misalign(f_pointer(p->flags)), UNIT), 0));
    const struct formula tiles = scan_own_tiles(p) ? scan_row_tile_args(pl, c, k) : tile_args(pl, c, k);
    const int window = 32 * scan_ahead_each(p);
    if (scan_few_columns(p) && !one_vector_a_row(c)) {
        plan_value_arg(k, VAL_ACROSS, TY_I32, lanes_across(p, c));
        plan_value_arg(k, VAL_PER_WARP, TY_I32, rows_of_warp(p, c));
    }
    if (scan_few_columns(p)) {
        scan_control_args(pl, c, f_mul(tiles, segments_inner(p)));
    } else {
        scan_control_args(pl, c, scan_own_tiles(p) ? tiles : f_mul(f_cdiv(tiles, window), window));
    }
    plan_launch(pl, c, 0, f_max(f_min(tiles, f_mul(f_sms(), c->tunable[TN_BLOCKS_PER_SM])), 1));
    return true;
}
