/* SPDX-License-Identifier: Apache-2.0 */
/* temporal.c - planning of several time steps per launch.
 *
 * Strips of 32 x 4 columns belong to warps; a warp streams along the first axis and keeps the last planes of every step
 * in registers.  In three dimensions a block's warps lie below each other.  What they compute loses its sides step by
 * step, so strips and blocks overlap; they are shifted inward at the ends of the array, so that none leaves it unless
 * the array wraps around.
 *
 * One dimension has no axis to stream along: line.c.
 *
 * A case has kernels of T, T/2, … 2 steps, and what is left of the steps is done one at a time, as is the last one
 * beside a reduction.
 */
#include <math.h>

#include "lower/work.h"
#include "line.h"
#include "stencil_plan.h"
#include "strip.h"

enum {
    ENOUGH = 1 << 17,
    ENOUGH_3D = 1 << 24,
    ENOUGH_FAR = 1 << 21, /* two dimensions, offsets of two, and a division */
    DEEP = 1 << 21 /* points from which on the most steps pay, half as many below */,
    SIDE_MAX = 1 << 30
};

bool stencil_temporal_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d;
    *why = strip_misfit(p, a);
    return !*why;
}

/* ---- tunables ---------------------------------------------------------------------------------------------------- */

static int count_reads(const struct problem *p)
{
    int n = 0;
    for (int i = 0; i < p->nreads; i++)
        n += p->read[i].e->kind == EX_INPUT ? p->read[i].uses : 0;
    return n;
}

/* Registers that a column of a plane takes, over all arrays that are fed back. */
static int words(const struct problem *p)
{
    int n = 0;
    for (int f = 0; f < p->nfeedback; f++)
        n += p->input[p->feedback[f].input].array.stride > 4 ? 2 : 1;
    return n;
}

enum { MANY_READS = 16 };

/* Do the values that a point reads take as many registers as the planes of several steps? */
static bool reads_many(const struct problem *p) { return p->rank == 2 && p->nreads > MANY_READS; }

/* As many steps as registers hold, 2 reach planes each. */
static int default_steps(const struct problem *p)
{
    if (p->rank == 3)
        return strip_reach(p) == 1 && words(p) == 1 ? 3 : 2;
    const int steps = 8 / (strip_reach(p) * words(p));
    return count_reads(p) > MANY_READS || steps < 2 ? 2 : steps;
}

int stencil_joined_steps(const struct problem *p) { return p->iterated ? default_steps(p) : 1; }

/* Are all arrays known to have too few points for the most steps, and the kernel of half as many to do without? */
static bool shallow(const struct planner *pl)
{
    int64_t least, most;
    plan_count_range(pl, &least, &most);
    return most < DEEP && default_steps(pl->plan->problem) >= 4;
}

/* Two halves of the lines that warps show each other. */
static int64_t border_bytes(const struct problem *p, const struct strip_shape *s)
{
    int64_t bytes = 0;
    for (int f = 0; f < p->nfeedback; f++)
        if (s->height && strip_sees_lines(p, p->feedback[f].input))
            bytes += (int64_t)2 * s->steps * 2 * s->reach * s->warps * STRIP_WIDTH *
                     p->input[p->feedback[f].input].array.stride;
    return bytes;
}

/* Does a point read few values, each once, and no extent is a product that takes a register more, so that 128 registers
 * hold what three steps need on rows that begin anywhere? */
static bool lean(const struct problem *p)
{
    enum { READS = 7 };
    return count_reads(p) <= READS && !p->njoined;
}

static struct plan_case *add_case(struct planner *pl, const struct strategy *row, const char *name,
                                  struct formula guard, bool aligned)
{
    static const char flat[] = "H200, 48 steps of five points at 8192^2, percent of a copy per step: 8 steps x 128 "
                               "524, 4 342, 6 457, 10 427; 98 singly";
    static const char tall[] = "H200, seven points at 512^3, percent of a copy per step: 3 steps x 512 x 2 lines 131, "
                               "2 x 384 x 4 111, 4 x 512 x 2 107; 80 singly";
    static const char many[] =
        "H200, 48 steps of 25 points, us: 3 blocks of 168 registers 6791, 4 of 128 5935 at 8192^2; "
        "1899, 1844 at 4096^2; single steps 6412, 1807";
    const struct problem *p = pl->plan->problem;
    const int sm = pl->plan->device.sm;
    const bool deep = p->rank == 3;
    const char *const evidence = deep ? tall : flat;
    struct plan_case *c = plan_case_add(pl, row, name, guard);
    c->aligned = aligned;
    plan_set(c, TN_STEPS, shallow(pl) ? default_steps(p) / 2 : default_steps(p), evidence);
    plan_set(c, TN_ITEMS, deep ? strip_reach(p) + 1 : 1, evidence);
    if (aligned && reads_many(p) && words(p) == 1 && !p->joins)
        plan_set(c, TN_MIN_BLOCKS, 4, many);
    /* registers: longer offsets, and rows that are moved in registers, leave room for fewer warps (ptxas spills for
     * older architectures where it does not for sm_90, and for sm_120 where an extent is a product); so does little
     * shared memory */
    const bool wide = aligned ? (sm < 120 || !p->njoined) && (sm >= 90 || !p->joins) : sm >= 90 && lean(p);
    int threads = !deep ? 128 : strip_reach(p) > 1 || words(p) > 1 ? 256 : wide ? 512 : 384;
    for (bool room = false; !room; threads /= 2) {
        stencil_set_shape(c, (struct shape){ .threads = threads,
                                             .block_x = 32,
                                             .block_y = deep ? 2 : 4,
                                             .points_x = aligned ? STRIP_COLUMNS : 1,
                                             .points_y = deep ? 1 : 4,
                                             .points_z = deep ? 4 : 1,
                                             .from = evidence });
        const struct strip_shape s = strip_shape(c, p, c->tunable[TN_STEPS]);
        room = threads <= 128 || border_bytes(p, &s) <= pl->plan->device.shared_per_block;
    }
    return c;
}

/* ---- guards ------------------------------------------------------------------------------------------------------ */

static struct formula extent(const struct problem *p, int axis) { return access_extent(p, &p->space[axis].extent); }

/* Large enough for a strip and a block of warps, and for what stands for planes beyond the edge. */
static struct formula room(const struct problem *p, const struct plan_case *c)
{
    const struct strip_shape s = strip_shape(c, p, c->tunable[TN_STEPS]);
    struct formula guard = f_and(f_le(s.places, extent(p, 0)), f_le(STRIP_WIDTH, extent(p, p->rank - 1)));
    if (s.height)
        guard = f_and(guard, f_le(s.height, extent(p, 1)));
    struct formula longest = extent(p, 0);
    for (int d = 1; d < p->rank; d++)
        longest = f_max(longest, extent(p, d));
    return f_and(guard, f_le(longest, SIDE_MAX));
}

/* Divisions by what is no power of two. */
static void count_divisions(const struct expr *e, void *user)
{
    int exponent;
    if (e->kind == EX_BINARY && e->op == BIN_DIV)
        *(int *)user += e->arg[1]->kind != EX_CONST || frexp(fabs(e->arg[1]->imm.f), &exponent) != 0.5;
}

static void count_slow(const struct expr *e, void *user)
{
    int *operations = user;
    *operations += e->kind == EX_CALL && e->op != FN_FMA;
    if (e->kind != EX_BINARY || (e->op != BIN_DIV && e->op != BIN_REM))
        return;
    int exponent;
    const bool constant = ty_is_float(e->type) && e->arg[1]->kind == EX_CONST;
    const double c = constant ? fabs(e->arg[1]->imm.f) : 0;
    /* a power of two is a multiplication, and odd whole numbers divide without a branch */
    *operations += !constant || (frexp(c, &exponent) != 0.5 && fmod(c, 2) != 1);
}

/* Memory is what waits in single steps, and temporal blocking trades it for computing the halo: with several divisions
 * or functions per point there is nothing to gain.  H200, percent of a copy per step, in parentheses single steps:
 * HotSpot at 8192^2 with three divisions 39 (68), the 25 points of a Gaussian 93 (88), five points f64 328 (100), bytes
 * of the Game of Life 56 (47); seven points at 256^3 118 (72), 512^3 145 (91), 511^3 117 (82); thirteen points at 512^3
 * 58 (73); nine points divided by 9 at 8192^2 229 (93). */
static bool light(const struct problem *p)
{
    int operations = 0;
    for (int f = 0; f < p->nfeedback; f++) {
        const enum ty type = p->input[p->feedback[f].input].array.field[0].type;
        if (type == TY_F16 || type == TY_BF16 || (p->rank == 3 && type != TY_F32))
            return false;
        problem_walk(p, p->output[p->feedback[f].output].value[0], count_slow, &operations);
    }
    if (work_is_heavy(p))
        return false;
    return p->rank == 2 ? operations <= 1 : operations == 0 && strip_reach(p) == 1 && p->ninputs == 1;
}

/* Where it pays: enough points, and more than one step.  H200, in a graph, microseconds for 48 steps, in parentheses
 * single steps: nine points 511^2 159 (166), 1023^2 211 (230); divided by 9 197 (159), 266 (241), 2047^2 422 (446). */
static struct formula worthwhile(const struct problem *p)
{
    int divisions = 0;
    for (int f = 0; f < p->nfeedback; f++)
        problem_walk(p, p->output[p->feedback[f].output].value[0], count_divisions, &divisions);
    const int flat = strip_reach(p) > 1 && divisions > 0 ? ENOUGH_FAR : ENOUGH;
    return f_and(f_le(p->rank == 3 ? ENOUGH_3D : flat, access_count(p)), f_le(2, stencil_steps(p)));
}

void stencil_temporal_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const bool pinned = plan_pinned(pl);
    if (p->rank == 1) {
        line_plan(pl, row);
        return;
    }
    if (!pinned && ((p->steps_param < 0 && p->steps < 2) || !light(p)))
        return;
    /* H200, 48 steps of 25 points at 8191^2, us: 6982; single steps 6779 */
    const bool anywhere = pinned || p->joins || !reads_many(p);
    for (int aligned = 1; aligned >= !anywhere; aligned--) {
        struct plan_case *c = add_case(pl, row, aligned ? "strips" : "strips_shifted", (struct formula){ 0 }, aligned);
        struct formula guard = strip_bases_aligned(p, STRIP_COLUMNS, room(p, c));
        if (!pinned)
            guard = f_and(guard, worthwhile(p));
        if (aligned)
            guard = f_and(guard, f_eq(f_mod(extent(p, p->rank - 1), STRIP_COLUMNS), 0));
        c->code.guard = guard;
    }
    if (pinned) /* arrays narrower than a strip: single steps */
        add_case(pl, row, "narrow", (struct formula){ 0 }, false)->tunable[TN_STEPS] = 1;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* Two dimensions: strips side by side, and how many rows a warp takes so that the device is filled once. */
static struct formula strip_grid(struct prog_kernel *k, const struct problem *p, const struct strip_shape *s,
                                 int kernel)
{
    const struct formula strips = f_cdiv(extent(p, 1), s->useful), lines = extent(p, 0);
    const struct formula resident = f_mul(f_sms(), f_mul(f_resident(kernel), s->warps));
    const struct formula parts = f_max(f_div(resident, strips), 1);
    const struct formula rows = f_max(f_cdiv(lines, parts), 2 * s->steps * s->reach);
    plan_value_arg(k, VAL_STRIPS, TY_I32, strips);
    plan_value_arg(k, VAL_ROWS, TY_I32, rows);
    return f_cdiv(f_mul(strips, f_cdiv(lines, rows)), s->warps);
}

/* The same with rows of other ranks (src/llvmgen/stencil/strip_joined.c): some parts are shorter, and there are two at least,
 * but three where that takes no more than full waves. */
static struct formula joined_strip_grid(struct prog_kernel *k, const struct problem *p, const struct strip_shape *s,
                                        int kernel)
{
    enum { LEAST = 3, WAVES = 4, SHORTER = 2 * STRIP_GIVES + STRIP_GIVES / 3 };
    const struct formula strips = f_cdiv(extent(p, 1), s->useful), lines = extent(p, 0);
    const struct formula resident = f_mul(f_sms(), f_mul(f_resident(kernel), s->warps));
    const struct formula once = f_div(resident, strips), more = f_max(f_div(f_mul(WAVES, resident), strips), LEAST);
    const struct formula parts = f_max(once, f_mul(f_lt(once, LEAST), more));
    const struct formula rows = f_max(f_cdiv(f_add(lines, SHORTER), parts), 2 * s->steps * s->reach);
    plan_value_arg(k, VAL_STRIPS, TY_I32, strips);
    plan_value_arg(k, VAL_ROWS, TY_I32, rows);
    return f_cdiv(f_mul(strips, f_max(2, f_cdiv(f_add(lines, 2 * STRIP_GIVES), rows))), s->warps);
}

/* Three dimensions: the planes of all tiles are dealt out evenly to the blocks that the device holds. */
static struct formula tile_grid(struct prog_kernel *k, const struct problem *p, const struct strip_shape *s, int kernel)
{
    const struct formula strips = f_cdiv(extent(p, 2), s->useful);
    const struct formula tiles = f_mul(strips, f_cdiv(extent(p, 1), s->useful_height));
    const struct formula planes = f_mul(tiles, extent(p, 0)), resident = f_max(f_mul(f_sms(), f_resident(kernel)), 1);
    const struct formula rows = f_max(f_cdiv(planes, resident), 2 * s->steps * s->reach);
    plan_value_arg(k, VAL_STRIPS, TY_I32, strips);
    plan_value_arg(k, VAL_TILES, TY_I64, tiles);
    plan_value_arg(k, VAL_ROWS, TY_I64, rows);
    return f_cdiv(planes, rows);
}

/* And blocks that send to other ranks, before those that compute. */
static struct formula joined_tile_grid(struct prog_kernel *k, const struct problem *p, const struct strip_shape *s,
                                       int kernel)
{
    const struct formula plane = f_mul(extent(p, 1), extent(p, 2));
    const int64_t each = (int64_t)s->warps * 32 * 2 * s->steps;
    const struct formula senders =
        f_min(f_cdiv(f_mul(plane, (int64_t)2 * s->steps * s->reach), each), JOINED_SENDERS_MOST);
    plan_value_arg(k, VAL_SENDERS, TY_I32, senders);
    return f_add(tile_grid(k, p, s, kernel), senders);
}

static bool check_strip(struct planner *pl, const struct plan_case *c, const struct strip_shape *s)
{
    const struct misfit m[] = { { s->useful <= 0 || (s->height && s->useful_height <= 0),
                                  "nothing is left of a strip or block after so many steps" },
                                { s->lines > STRIP_LINES_MAX || (s->height && s->lines <= s->reach),
                                  "a lane holds more lines than offsets reach, and at most 8" },
                                { border_bytes(pl->plan->problem, s) > pl->plan->device.shared_per_block,
                                  "the lines between warps take more shared memory than a block has" },
                                { 0 } };
    return plan_consistent(pl, c, m);
}

static bool strip_kernel(struct planner *pl, struct plan_case *c, const int *buffer, int kernel, struct formula times)
{
    const struct problem *p = pl->plan->problem;
    const struct strip_shape s = strip_shape(c, p, strip_steps(c, kernel));
    if (!check_strip(pl, c, &s))
        return false;
    struct prog_kernel *k = plan_kernel(pl, c, arena_printf(&pl->s->arena, "steps%d", s.steps));
    stencil_step_args(p, k, buffer);
    const struct formula grid = p->joins   ? (s.height ? joined_tile_grid : joined_strip_grid)(k, p, &s, kernel)
                                : s.height ? tile_grid(k, p, &s, kernel)
                                           : strip_grid(k, p, &s, kernel);
    plan_launch(pl, c, kernel, grid)->repeat = times;
    return true;
}

bool stencil_temporal_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const struct formula all = stencil_steps(p);
    if (p->rank == 1)
        return line_build(pl, c);
    struct formula left = problem_writes(p, AT_TOTAL) ? f_max(f_sub(all, 1), 0) : all;
    enum stencil_role role[STENCIL_ROLES];
    int buffer[PROG_ARG_MAX];
    const int n = stencil_roles(p, role);
    stencil_buffers(pl, c, buffer);
    for (int i = 0; strip_steps(c, i); i++) {
        const int steps = strip_steps(c, i);
        struct formula times = f_div(left, steps);
        /* ranks that join take the same kernels, however many points each has */
        if (i == 0 && strip_steps(c, 1) && !c->overridden[TN_STEPS] && !shallow(pl) && !p->joins)
            times = f_mul(f_le(DEEP, access_count(p)), times);
        if (!strip_kernel(pl, c, buffer, i, times))
            return false;
        left = i == 0 ? f_sub(left, f_mul(times, steps)) : f_mod(left, steps);
    }
    for (int i = 0; i < n; i++)
        stencil_add_role(pl, c, role[i], buffer, role[i] == STENCIL_LAST ? f_le(1, all) : left);
    return stencil_check_tunables(pl, c, STRIP_COLUMNS);
}
