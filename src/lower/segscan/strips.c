/* SPDX-License-Identifier: Apache-2.0 */
/* strips.c - planning of scans down few long columns: strips of neighbouring columns, tiles that pass their
 * totals on.
 *
 * A strip has threads / rows columns: 32, or 8 or 16 where there are few: narrow ones keep all lanes busy, and their
 * look-back takes fewer columns of longer tiles.  Control memory is as for scan.lookback.
 */
#include "segscan.h"

#include "lower/work.h"

enum {
    NARROW = 8,
    MEDIUM = 16,
    TURNED =
        16, /* columns: longer runs are stored.  H200, argmin of 131328 x 511: 411 us, 32 columns 594; i16 482, 499 */
    TILES = 16,
    FEW_TILES = 3,
    FEW_TURNED = 4,
    WORDS = 20,
    WORDS_OF_FEW = 28,
    WORDS_OF_HALF = 56,
    WORDS_OF_STATES = 44,
    WORDS_OF_MEDIUM = 84,
    MEDIUM_COLUMNS = 128,
    MEDIUM_WORDS = 3, /* of an element */
    MEDIUM_LEAST = 1 << 22,
    ITEMS_OF_MEDIUM = 28,
    BACKWARDS = 4, /* so many fewer: addresses take registers */
    OF_ADDRESSES = 6,
    OF_FUNCTIONS = 12,
    HALF = 512,
    ITEMS_OF_HALF = 14,
    ITEMS_OF_THREE =
        24, /* of three words, in registers: H200, logsumexp f32 2^25 up in 384/1536/13312 columns 157/136/141 us, 14
                          * items 229/167/203; longest runs u8 2^28 down them 700/568/591, 1746/745/707 */
    WORDS_OF_THREE = 72,
    HEAVY = 3, /* words of an element: 9 items by 768 threads are tiles of half the size */
    HEAVY_TURNED = 4,
    WIDE = 2,
    SEVERAL = 4 /* pieces of a tile */
};

bool segscan_strips_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    const bool rows = scan_trailing(p) || p->space[p->rank - 1].reduced;
    const struct misfit m[] = { { rows && !scan_turns_inputs(p),
                                  "it scans columns: the last dimension must be kept, and some other one scanned" },
                                segscan_determined(p),
                                segscan_single(p),
                                { 0 } };
    return plan_takes(why, m);
}

static struct formula rows_of(const struct plan_case *c)
{
    return f_const((int64_t)c->tunable[TN_ROWS] * scan_degree(c));
}

static struct formula strips(const struct problem *p, const struct plan_case *c)
{
    return f_cdiv(scan_segments(p), c->tunable[TN_THREADS] / c->tunable[TN_ROWS]);
}

/* Elements of three words whose tiles are as large as registers allow. */
static bool of_three_words(const struct problem *p)
{
    return scan_items_in_words(p) == HEAVY && !scan_stores_by_index(p) && !scan_loads_elsewhere(p);
}

/* Strips that are too few for the device one by one, and that have enough tiles to share: the more of them there are, the
 * less a block of its own for each leaves without work.  H200, runs of 383 x 2670: 7.9 us, a block each 10.6; welford of
 * 2302 x 431 that turns: 14, 67 us. */
static struct formula few(const struct problem *p, const struct plan_case *c)
{
    const bool large = !c->turns && of_three_words(p) && c->tunable[TN_ITEMS] > ITEMS_OF_HALF;
    const struct formula across = strips(p, c), share = f_le(across, f_mul(f_sms(), large ? 4 : 2));
    const struct formula beside = f_div(f_mul(f_sub(f_max(across, f_sms()), f_sms()), TILES), f_sms());
    const struct formula above = c->turns ? f_div(f_mul(across, TILES / 2), f_sms())
                                 : large  ? f_min(beside, TILES / 2)
                                          : beside;
    const struct formula tiles = f_max(above, c->turns ? FEW_TURNED : FEW_TILES);
    return f_and(share, f_le(f_mul(rows_of(c), tiles), scan_length(p)));
}

/* Are there divisions, or calls of the mathematical library, of eight bytes, whose own values take registers? */
bool segscan_calls_wide(const struct problem *p)
{
    bool wide = false;
    for (int r = 0; r < p->nreductions; r++)
        for (int f = 0; f < p->reduction[r].op->nfields; f++)
            wide |= p->reduction[r].op->field[f] == TY_F64;
    return wide && work_of(p, NULL, 0).special > 0;
}

bool scan_stores_by_index(const struct problem *p)
{
    bool any = false;
    for (int o = 0; o < p->noutputs; o++)
        any |= output_moment(&p->output[o]) == AT_POINT && !access_output_direct(p, o);
    return any;
}

/* Two tiles are held at a time, by 1024 threads per multiprocessor or by 768, or by 512 where elements are wide: tiles that
 * wait for one another are better large, and what a tile takes beside its elements grows with states.  Addresses take more
 * registers before sm_90, and stay in them from loads elsewhere to stores. */
static void fit_registers(const struct problem *p, struct plan_case *c, int sm, bool medium, bool turns)
{
    const int each = scan_items_in_words(p);
    const bool by_index = !turns && scan_stores_by_index(p), wide = turns || each - state_words(p, NULL) >= WIDE;
    const bool heavy = turns ? each >= HEAVY_TURNED : each >= HEAVY || by_index || scan_loads_elsewhere(p);
    const bool three = !turns && !medium && of_three_words(p);
    if (heavy && !medium && c->tunable[TN_THREADS] <= HALF) {
        if (c->tunable[TN_THREADS] == HALF)
            plan_set(c, TN_THREADS, HALF / 2, NULL);
        plan_set(c, TN_BLOCKS_PER_SM, HALF / c->tunable[TN_THREADS], NULL);
        plan_set(c, TN_ITEMS, three ? ITEMS_OF_THREE : ITEMS_OF_HALF, NULL);
        plan_lighten(p, c);
    }
    if (medium)
        plan_set(c, TN_ITEMS, ITEMS_OF_MEDIUM - (p->reverse ? BACKWARDS : 0), NULL);
    const int threads = c->tunable[TN_THREADS] * c->tunable[TN_BLOCKS_PER_SM];
    const int of_half = by_index ? WORDS_OF_FEW
                        : medium ? WORDS_OF_MEDIUM
                        : three  ? WORDS_OF_THREE
                        : wide   ? WORDS_OF_HALF
                                 : WORDS_OF_STATES;
    const int room = threads > 768 ? WORDS : threads > HALF ? WORDS_OF_FEW : of_half;
    const int words = room - (scan_has_totals(p) ? 4 : 0) - (sm < 90 ? (threads > 768 ? 6 : 4) : 0) -
                      (scan_loads_elsewhere(p) ? OF_ADDRESSES : 0) -
                      (segscan_calls_wide(p) && !turns ? OF_FUNCTIONS : 0);
    while (plan_shrinks(c, TN_ITEMS) && scan_degree(c) * each > words)
        c->tunable[TN_ITEMS]--;
}

static void add_case(struct planner *pl, const struct strategy *row, const char *variant, const char *name, int width,
                     bool turns)
{
    const struct problem *p = pl->plan->problem;
    const int from = pl->plan->ncases;
    const bool medium = width == MEDIUM && !turns;
    scan_add_cases(pl, row, variant, name, (struct formula){ 0 }, false);
    for (int i = from; i < pl->plan->ncases; i++) {
        struct plan_case *c = &pl->plan->cases[i];
        if (turns && scan_turn_several(p)) { /* the largest tiles, which have the longest runs */
            plan_set(c, TN_THREADS, HALF, NULL);
            plan_set(c, TN_BLOCKS_PER_SM, 1, NULL);
        }
        fit_registers(p, c, pl->plan->device.sm, medium, turns);
        plan_set(c, TN_ROWS, c->tunable[TN_THREADS] / width, NULL);
        if (turns)
            segscan_turn(pl, c);
        plan_set(c, TN_MIN_BLOCKS, c->tunable[TN_BLOCKS_PER_SM], NULL);
        if (c->turns && scan_turn_several(p)) /* runs of so many elements are stored */
            c->code.guard = f_le(f_mul(access_extent(p, &p->space[1].extent), SEVERAL), rows_of(c));
        if (plan_pinned(pl))
            continue;
        c->code.guard = f_and(few(p, c), c->code.guard);
        if (width == NARROW)
            c->code.guard = f_and(f_le(segments_inner(p), 2 * width), c->code.guard);
        if (medium)
            c->code.guard = f_and(f_and(f_le(segments_inner(p), MEDIUM_COLUMNS), f_le(MEDIUM_LEAST, access_count(p))),
                                  c->code.guard);
    }
}

void segscan_strips_turned(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const char *why;
    if (!segscan_strips_fits(p, &pl->plan->device, &pl->s->arena, &why))
        return;
    if (!scan_turns_inputs(p))
        add_case(pl, row, "narrow", "turned_narrow", NARROW, true);
    add_case(pl, row, "turned", "turned_strips", TURNED, true);
}

void segscan_strips_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const bool several = scan_turn_several(p), turns = plan_pinned(pl) && scan_turn(p) >= 0 && !several;
    if (plan_pinned(pl) && scan_turn(p) >= 0 && several)
        add_case(pl, row, "turned", "turned_strips", TURNED, true);
    if (!plan_pinned(pl) && scan_turn(p) >= 0 && !several && (scan_trailing(p) || !scan_turns_inputs(p)))
        return; /* what is left is too short */
    if (!plan_pinned(pl))
        add_case(pl, row, "narrow", "narrow_strips", NARROW, false);
    if (!plan_pinned(pl) && scan_items_in_words(p) <= MEDIUM_WORDS && !scan_loads_elsewhere(p))
        add_case(pl, row, "medium", "medium_strips", MEDIUM, false);
    add_case(pl, row, turns ? "turned" : "", "shared_strips", turns ? TURNED : 32, turns);
}

bool segscan_strips_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    struct prog_kernel *k = scan_kernel(pl, c, "");
    const int rows = c->tunable[TN_ROWS], threads = c->tunable[TN_THREADS];
    const struct formula each = f_cdiv(scan_length(p), rows_of(c)), across = strips(p, c), tiles = f_mul(across, each);
    plan_value_arg(k, VAL_COUNT, TY_I64, access_count(p));
    plan_value_arg(k, VAL_STRIPS, TY_I32, across);
    plan_value_arg(k, VAL_PER_SEGMENT, TY_I32, each);
    plan_value_arg(k, VAL_TICKETS, TY_I32, tiles);
    const struct formula states = f_mul(tiles, threads / rows);
    plan_value_arg(k, VAL_TILES, TY_I32, states); /* states of columns, for look-back */
    scan_control_args(pl, c, states);
    const struct formula blocks = f_min(tiles, f_mul(f_sms(), c->tunable[TN_BLOCKS_PER_SM]));
    plan_launch(pl, c, 0, f_max(blocks, 1));
    const int columns = threads / rows;
    const struct misfit m[] = { { threads % 32 || threads % rows || columns > 32 || (columns & (columns - 1)),
                                  "a strip has threads / rows columns: 1, 2, 4 … or 32" },
                                { !segscan_turns_fit(pl, c), "a tile that turns does not fit" },
                                { 0 } };
    return plan_consistent(pl, c, m) && scan_check_tunables(pl, c);
}
