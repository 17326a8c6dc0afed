/* SPDX-License-Identifier: Apache-2.0 */
/* tile.c - planning of scans of many short segments by a thread each, in shared memory.
 *
 * A *plane* is what lies between two neighbouring outer segments: a box of scanned positions x inner kept elements, or a
 * row.  Planes follow one another, so a block's are a stretch of memory, whatever their shape: it moves as whole words.
 *
 *   few inner columns        lanes that load columns from memory touch a sector each for a few bytes
 *   short rows of elements   that take more to exchange between lanes than to scan: bytes, halves, wide states
 */
#include "segscan.h"

enum {
    WORD = 4,
    THREADS = 128,
    AT_ONCE = 4,
    SECTORS = 64, /* bytes: longer runs of inner elements lanes may as well load from memory */
    SHORT = 4,
    EACH = 512,       /* segments per multiprocessor from which blocks fill it */
    SMALL = 12 << 10, /* bytes: with 128 threads as many warps as a multiprocessor has */
    LARGE = 40 << 10,
    HALF = 2,
    HEAVY = 3 /* words of state */
};

static bool moves(const struct problem *p, int i)
{
    const int o = i - p->ninputs;
    return o < 0 ? access_input_direct(p, i) : output_moment(&p->output[o]) == AT_POINT;
}

int segscan_tile_moved(const struct problem *p, int i) { return moves(p, i) ? problem_array(p, i)->stride : 0; }

int segscan_tile_place(const struct problem *p, int i)
{
    const int bytes = segscan_tile_moved(p, i);
    int before = 0, place = i;
    for (int o = p->ninputs; o < i; o++)
        before += segscan_tile_moved(p, o) == bytes;
    for (int a = p->ninputs - 1; a >= 0 && i >= p->ninputs; a--)
        if (segscan_tile_moved(p, a) == bytes && before-- == 0)
            place = a;
    return place;
}

/* Bytes of a position, of all arrays that have a place in shared memory. */
static int bytes_of(const struct problem *p)
{
    int bytes = 0;
    for (int i = 0; i < p->ninputs + p->noutputs; i++)
        bytes += segscan_tile_place(p, i) == i ? segscan_tile_moved(p, i) : 0;
    return bytes;
}

/* Elements of the narrowest array in a word. */
static int in_word(const struct problem *p)
{
    int narrowest = WORD;
    for (int i = 0; i < p->ninputs + p->noutputs; i++)
        if (moves(p, i) && segscan_tile_moved(p, i) < narrowest)
            narrowest = segscan_tile_moved(p, i);
    return WORD / narrowest;
}

static bool scalars(const struct problem *p)
{
    bool any = false, all = true;
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const int o = i - p->ninputs;
        any |= o < 0 && moves(p, i);
        all &= !moves(p, i) || !*problem_array(p, i)->field[0].name;
        all &= o < 0 || !moves(p, i) || (access_output_vector(p, o) && access_output_whole(p, o));
        all &= o < 0 || output_moment(&p->output[o]) != AT_RESULT;
    }
    return any && all;
}

bool segscan_tile_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)a;
    const struct misfit m[] = {
        segscan_single(p),
        { p->offsets >= 0 || p->flags >= 0 || p->key, "segments have sizes of their own" },
        { !segments_adjacent(p), "a kept dimension lies between the scanned ones" },
        { !scalars(p), "arrays that pass through shared memory are of scalars, in the order of the space" },
        { bytes_of(p) * THREADS * AT_ONCE > d->shared_per_block, "so many arrays do not fit shared memory" },
        { 0 }
    };
    return plan_takes(why, m);
}

static struct formula inner(const struct problem *p) { return scan_trailing(p) ? f_const(1) : segments_inner(p); }

/* Of so many planes, or positions of one. */
static struct formula across(const struct problem *p, struct formula n)
{
    return scan_trailing(p) ? n : f_mul(n, inner(p));
}

static struct formula plane(const struct problem *p) { return across(p, scan_length(p)); }

/* Planes that the tile has room for, with what is left free after each. */
static struct formula fitting(const struct problem *p, const struct plan_case *c)
{
    return f_div(scan_tile_elements(c),
                 f_add(plane(p), scan_trailing(p) ? f_const(in_word(p)) : f_max(inner(p), in_word(p))));
}

/* Planes of a block, so many that each block's begin at a word.  Of short segments threads take several, which share what a
 * thread does once, and none takes one more than others. */
static struct formula planes(const struct problem *p, const struct plan_case *c)
{
    const int unit = in_word(p), threads = c->tunable[TN_THREADS];
    const struct formula rounds = f_max(f_div(across(p, fitting(p, c)), threads), 1), whole = f_mul(rounds, threads);
    const struct formula most = f_min(scan_trailing(p) ? whole : f_div(whole, inner(p)), fitting(p, c));
    return unit == 1 ? most : f_mul(f_div(most, unit), unit);
}

/* Three of four threads have a segment, and there are segments for all multiprocessors. */
static struct formula worth(const struct problem *p, const struct plan_case *c)
{
    const struct formula busy = f_le(3 * c->tunable[TN_THREADS], f_mul(across(p, planes(p, c)), 4));
    const struct formula enough = f_and(f_le(f_mul(plan_sms(p), EACH), scan_segments(p)), f_le(SHORT, scan_length(p)));
    const struct formula all = f_and(busy, enough);
    return scan_trailing(p) ? all : f_and(f_lt(f_mul(inner(p), access_widest(p)), SECTORS), all);
}

/* Rows whose lanes exchange what they scan at the speed of memory are left to others, those of which neighbours are read, side
 * by side, and matrices, which have one plane.  SASS for sm_90, instructions per element: maxima of bytes in rows of 27 are 79 in
 * lines and 25 in a tile, of which memory has time for 22; the maximum segment sum in rows of 13 over 100, and 42 of 57. */
static bool wanted(const struct problem *p)
{
    if (scan_trailing(p))
        return !scan_loads_elsewhere(p) && (access_widest(p) <= HALF || state_words(p, NULL) >= HEAVY);
    return !p->space[0].reduced;
}

static void add_case(struct planner *pl, const struct strategy *row, const char *name, int bytes)
{
    const struct problem *p = pl->plan->problem;
    if (!plan_pinned(pl) && bytes_of(p) * THREADS * AT_ONCE > bytes)
        return; /* so many arrays */
    struct plan_case *c = plan_case_add(pl, row, name, (struct formula){ 0 });
    struct formula aligned = { 0 };
    plan_case_variant(pl, c, "");
    plan_set(c, TN_VECTOR, AT_ONCE, "positions that are combined at a time");
    plan_set_pdl(pl, c);
    const int positions = bytes / (bytes_of(p) * c->tunable[TN_THREADS] * c->tunable[TN_VECTOR]);
    if (!c->overridden[TN_ITEMS])
        plan_set(c, TN_ITEMS, positions < 1 ? 1 : positions > 64 ? 64 : positions, "shared memory");
    c->code.guard = plan_pinned(pl) ? f_and(f_lt(2, plane(p)), f_lt(0, planes(p, c))) : worth(p, c);
    if (access_aligned_guard(p, in_word(p), true, &aligned))
        c->code.guard = f_and(c->code.guard, aligned);
}

void segscan_tile_plan(struct planner *pl, const struct strategy *row)
{
    if (!plan_pinned(pl) && !wanted(pl->plan->problem))
        return;
    if (!plan_pinned(pl))
        add_case(pl, row, "tile_small", SMALL);
    add_case(pl, row, "tile", LARGE);
}

bool segscan_tile_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int64_t bytes = scan_tile_elements(c) * bytes_of(p);
    struct prog_kernel *k = scan_kernel(pl, c, "");
    plan_value_arg(k, VAL_COUNT, TY_I64, access_count(p));
    plan_value_arg(k, VAL_PER_TILE, TY_I32, planes(p, c));
    plan_value_arg(k, VAL_COLUMNS, TY_I32, inner(p));
    plan_value_arg(k, VAL_RECIPROCAL, TY_I32, f_add(f_div((int64_t)1 << 32, plane(p)), 1));
    plan_launch(pl, c, 0, f_max(f_cdiv(scan_segments(p), across(p, planes(p, c))), 1));
    const struct misfit m[] = { { c->tunable[TN_THREADS] % 32, "threads must be a multiple of 32" },
                                { bytes > pl->plan->device.shared_per_block, "the tile does not fit shared memory" },
                                { 0 } };
    return plan_consistent(pl, c, m);
}
