/* SPDX-License-Identifier: Apache-2.0 */
/* column.c - planning of scans over dimensions that are not the last.
 *
 * Where there are segments for all threads of the device, a thread takes one; else a block takes 32 neighbouring ones,
 * its warps sharing their length.  The latter for whatever number of segments, as long as neighbours are neighbours in
 * memory.
 */
#include "segscan.h"

#include <string.h>

bool segscan_column_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    const bool cut = p->offsets >= 0 && scan_reads_neighbours(p);
    return plan_takes(why,
                      (struct misfit[]){ segscan_single(p), { cut, "it reads no neighbours between offsets" }, { 0 } });
}

/* Of states of three words ptxas takes 64 registers by itself, and spills; held to as many it does not.  Of wider ones it
 * takes more.  The lightest need 32, of which it takes twice as many. */
static void bound_states(struct planner *pl, struct plan_case *c)
{
    enum { WORDS = 3, REGISTERS = 64, LIGHT = 2, FEW = 32 };
    const struct problem *p = pl->plan->problem;
    const struct device *d = &pl->plan->device;
    const bool light = scan_items_in_words(p) <= LIGHT && !p->reverse && !scan_loads_elsewhere(p) && d->sm >= 90 &&
                       d->threads_per_sm * FEW >= d->registers_per_sm;
    const int blocks = d->registers_per_sm / ((light ? FEW : REGISTERS) * c->tunable[TN_THREADS]);
    if ((light || state_words(p, NULL) == WORDS) && c->tunable[TN_MIN_BLOCKS] == 0)
        plan_set(c, TN_MIN_BLOCKS, blocks,
                 "as many registers as ptxas takes by itself, and then spills, or twice as many");
}

static int widest_input(const struct problem *p)
{
    int bytes = 0;
    for (int i = 0; i < p->ninputs; i++)
        if (access_input_direct(p, i) && p->input[i].array.stride > bytes)
            bytes = p->input[i].array.stride;
    return bytes;
}

/* H200, exclusive maxima of x - y, i16 1792 x 70655: 16 items 322 us, 8 438. */
static bool narrow_pairs(const struct problem *p)
{
    enum { HALF = 2, PAIR = 3 };
    const bool light = state_words(p, NULL) == 1 && !p->reverse && !scan_loads_elsewhere(p);
    return light && widest_input(p) <= HALF && scan_items_in_words(p) == PAIR;
}

static void add_case(struct planner *pl, const struct strategy *row, const char *variant, const char *name,
                     struct formula guard)
{
    const int from = pl->plan->ncases;
    scan_add_cases(pl, row, variant, name, guard, false);
    for (int i = from; i < pl->plan->ncases; i++) {
        struct plan_case *c = &pl->plan->cases[i];
        plan_set(c, TN_ROWS, *variant ? c->tunable[TN_THREADS] / 32 : 1, NULL);
        if (strcmp(variant, "strips"))
            continue;
        if (narrow_pairs(pl->plan->problem))
            plan_set(c, TN_ITEMS, 2 * c->tunable[TN_ITEMS], "two narrow inputs");
        bound_states(pl, c);
    }
}

/* Segments that keep every multiprocessor's threads busy one by one. */
static struct formula many(const struct problem *p) { return f_le(f_mul(plan_sms(p), 1024), scan_segments(p)); }

/* A thread per segment: planes, or short segments, of which lanes move sectors. */
static void add_turned(struct planner *pl, const struct strategy *row, bool planes)
{
    enum { SHORT = 16, SECTOR = 32, LEAST = 128 };
    const struct problem *p = pl->plan->problem;
    const int sector = SECTOR / access_widest(p), items = planes ? sector / 2 : sector, n = pl->plan->ncases;
    const struct formula guard =
        planes ? f_le(f_mul(plan_sms(p), LEAST), scan_segments(p)) : f_le(scan_length(p), SHORT);
    add_case(pl, row, "", planes ? "turned_planes" : "turned_few", plan_pinned(pl) ? (struct formula){ 0 } : guard);
    struct plan_case *c = &pl->plan->cases[n];
    if (planes)
        plan_set(c, TN_THREADS, 256, NULL);
    plan_set(c, TN_ITEMS, items < 8 ? items : 8, NULL);
}

/* Inputs that arrive through shared memory are waited for by the whole block; rows of 256 bytes of them are long enough.
 * H200, sums of 1789 x 176 x 205 f32 with a neighbour: 278 us, by 512 threads 333; of 262141 x 512 f16 459, 511, by 256 x 8
 * 510. */
static void fewer_warps(const struct problem *p, struct plan_case *c)
{
    enum { THREADS = 256, ITEMS = 16, HALF = 2, WORDS = 3 };
    if (!scan_turns_inputs(p) || c->tunable[TN_ROWS] == 1 || c->tunable[TN_THREADS] <= THREADS)
        return;
    plan_set(c, TN_THREADS, THREADS, NULL);
    plan_set(c, TN_ROWS, c->tunable[TN_THREADS] / 32, NULL);
    if (widest_input(p) <= HALF && scan_items_in_words(p) <= WORDS)
        plan_set(c, TN_ITEMS, ITEMS, NULL);
}

/* Neither order of the last dimensions is that of all arrays. */
void segscan_column_turned(struct planner *pl, const struct strategy *row)
{
    enum { SHORT = 128 };
    const struct problem *p = pl->plan->problem;
    const int from = pl->plan->ncases;
    const bool planes = scan_turns_inputs(p) && !scan_trailing(p);
    if (scan_turn_several(p))
        return; /* tiles of strips hold several pieces */
    if (planes || !plan_pinned(pl))
        add_turned(pl, row, planes);
    if (!planes && !plan_pinned(pl))
        add_case(pl, row, "turned short", "turned_short", f_le(scan_length(p), SHORT));
    if (!planes)
        add_case(pl, row, "turned", "turned", (struct formula){ 0 });
    for (int i = from; i < pl->plan->ncases; i++) {
        fewer_warps(p, &pl->plan->cases[i]);
        segscan_turn(pl, &pl->plan->cases[i]);
    }
}

void segscan_column_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const bool neighbours = p->offsets < 0 && p->rank > 0 && !p->space[p->rank - 1].reduced;
    if (plan_pinned(pl) && scan_turn(p) >= 0 && !scan_turn_several(p)) {
        segscan_column_turned(pl, row);
        return;
    }
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

static struct formula blocks_of(const struct problem *p, const struct plan_case *c)
{
    const int threads = c->tunable[TN_THREADS];
    if (!scan_turn_planes(p, c))
        return f_cdiv(scan_segments(p), c->tunable[TN_ROWS] > 1 ? 32 : threads);
    const struct formula rows = access_extent(p, &p->space[scan_turn(p)].extent);
    return f_mul(f_cdiv(rows, 32), f_cdiv(access_extent(p, &p->space[p->rank - 1].extent), threads / 32));
}

bool segscan_column_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const bool strips = c->tunable[TN_ROWS] > 1;
    const struct formula blocks = blocks_of(p, c);
    scan_kernel(pl, c, "");
    plan_launch(
        pl, c, 0,
        f_max(strips || c->turns ? blocks : f_min(plan_blocks_in_turns(p, scan_length(p), blocks), 1 << 20), 1));
    const struct misfit m[] = { { strips && p->offsets >= 0,
                                  "segments between offsets have lengths of their own, and a thread each (rows: 1)" },
                                { strips && c->tunable[TN_ROWS] != c->tunable[TN_THREADS] / 32,
                                  "rows: one per warp, or a single one" },
                                { !segscan_turns_fit(pl, c), "a tile that turns does not fit" },
                                { 0 } };
    return plan_consistent(pl, c, m) && scan_check_tunables(pl, c);
}
