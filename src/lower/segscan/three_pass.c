/* SPDX-License-Identifier: Apache-2.0 */
/* three_pass.c - planning of scans down few long columns by three kernels: totals of chunks, their scan, the chunks again.
 *
 * It reads every element twice.  Chunks are as many as give every thread of the device one; a state's size does not
 * matter, as no block waits for the totals of others.
 */
#include "segscan.h"

#include "lower/work.h"

bool segscan_three_pass_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    const bool columns = !scan_trailing(p) && p->rank > 1 && !p->space[p->rank - 1].reduced;
    const struct misfit m[] = {
        segscan_single(p),
        { p->offsets >= 0 || p->flags >= 0 || !columns,
          "it scans columns: the last dimension must be kept, and some other one scanned" },
        { scan_turn(p) >= 0, "its outputs have the order of its inputs" },
        { state_determinism(p) == DET_DEVICE,
          "how it cuts columns depends on the device; the problem asks for determinism over all of them" },
        { 0 }
    };
    return plan_takes(why, m);
}

/* Look-back of a strip takes a tile's states of all columns: wide ones, those that are slow to combine, or few columns
 * bound what segscan.strips does.  H200, us, in parentheses strips of 32 columns:
 *
 *   max segment sums of f64   2^25 in 19, 75, 287, 8191 columns 333, 301, 289, 306 (6789, 3036, 2296, 524)
 *                             2^20 in 33, 287, 1023 46, 30, 26 (76, 34, 25)
 *   welford of f32            2^26 in 45, 512, 2047 384, 241, 337 (1475, 680, 339); 2^22 in 1000 28 (26)
 *   logsumexp of f64          2^25 in 33, 128, 512 492, 407, 388 (-, 990, 972)
 *   sums of u8                2^27 in 19, 75 462, 511 (815, 625; of 16 columns 402)
 *   sums of i64, a neighbour  2^25 in 33 311 (510)
 *   sums of f32               2^26 in 75, 128, 1023 372, 230, 319 (268, 192, 187) */
static struct formula pays(const struct problem *p)
{
    enum { WIDE = 3, VERY_WIDE = 8, COLUMNS = 1024, FEW = 32, LEAST = 1 << 22, LEAST_WIDE = 1 << 20 };
    const int words = state_words(p, NULL), few = scan_items_in_words(p) > WIDE ? 2 * FEW : FEW;
    const struct formula large = f_le(words < VERY_WIDE ? LEAST : LEAST_WIDE, access_count(p));
    const bool divides = work_of(p, NULL, 0).special > 0; /* or calls a function */
    if (words >= VERY_WIDE)
        return f_and(f_lt(scan_segments(p), f_mul(f_sms(), COLUMNS)), large);
    return f_and(f_le(scan_segments(p), words >= WIDE && divides ? COLUMNS : few), large);
}

/* A thread holds what it has loaded, and one state.  H200, welford of f32, 2^26 in 128 columns: 8 items 241 us, 11 items in two
 * blocks at least 277; logsumexp of f64 in so few registers that ptxas spills 595, in two blocks at least 407. */
static void fit_registers(const struct problem *p, struct plan_case *c)
{
    enum { ITEMS = 16, ITEMS_BESIDE = 8 };
    if (segscan_calls_wide(p))
        plan_set(c, TN_MIN_BLOCKS, 2, "a bound keeps ptxas from spilling");
    else if (work_of(p, NULL, 0).special > 0)
        plan_set(c, TN_ITEMS, ITEMS_BESIDE, NULL);
    else if (!work_is_heavy(p) && !scan_loads_elsewhere(p))
        plan_set(c, TN_ITEMS, ITEMS, NULL);
}

void segscan_three_pass_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const int from = pl->plan->ncases;
    scan_add_cases(pl, row, "", "chunks", plan_pinned(pl) ? (struct formula){ 0 } : pays(p), false);
    for (int i = from; i < pl->plan->ncases; i++)
        fit_registers(p, &pl->plan->cases[i]);
}

/* Positions of a chunk: a multiple of what a thread takes at once. */
static struct formula chunk_of(const struct problem *p, const struct plan_case *c)
{
    const struct formula threads = f_mul(f_sms(), c->tunable[TN_BLOCKS_PER_SM] * c->tunable[TN_THREADS]);
    const struct formula chunks = f_max(f_div(threads, f_max(scan_segments(p), 1)), 1);
    return f_mul(f_max(f_cdiv(f_cdiv(scan_length(p), chunks), scan_degree(c)), 1), scan_degree(c));
}

bool segscan_three_pass_build(struct planner *pl, struct plan_case *c)
{
    static const char *const suffix[] = { "totals", "prefixes", "apply" };
    const struct problem *p = pl->plan->problem;
    const struct formula chunk = chunk_of(p, c), chunks = f_max(f_cdiv(scan_length(p), chunk), 1);
    const struct formula slots = f_mul(scan_segments(p), chunks), blocks = f_cdiv(slots, c->tunable[TN_THREADS]);
    for (int i = 0; i < 3; i++) {
        struct prog_kernel *k = scan_kernel(pl, c, suffix[i]);
        plan_value_arg(k, VAL_COUNT, TY_I64, access_count(p));
        plan_value_arg(k, VAL_PER_SEGMENT, TY_I32, chunks);
        plan_value_arg(k, VAL_CHUNK, TY_I64, chunk);
    }
    plan_partials_arg(pl, c, 0, slots, 1);
    plan_launch(pl, c, 0, blocks);
    plan_launch(pl, c, 1, scan_segments(p));
    plan_launch(pl, c, 2, f_max(blocks, 1));
    return scan_check_tunables(pl, c);
}
