/* SPDX-License-Identifier: Apache-2.0 */
/* stencil_plan.c - planning of stencils.
 *
 * All strategies here are windows: a thread computes points_x x points_y x points_z neighbouring points from values
 * that it loads once into registers; a block is a box of such windows, and the grid a row of boxes.
 *
 *   stencil.global       a point per thread, the caches do the rest: for arrays that could not fill the device with
 *                        windows, and for offsets that are read at launch
 *
 * Windows of several points: windows.c.
 *
 * Time steps: the kernel runs once per step, each result feeding the next (ARG_FED, ARG_NEXT), so that the last one
 * lands in the output and the user's input stays as it is.  With reductions the last step has a kernel of its own.
 */
#include "lower/lower_impl.h"
#include "line.h"
#include "stencil_plan.h"
#include "strip.h"

/* H200, 12 reads of f64 at 351 x 509: 3.2 us, windows 6.1.  But where outputs turn, H100, f32 at 512^2: 7.3, windows
 * that turn 4.7. */
enum { SMALL = 1 << 18, SMALL_TURNED = 1 << 16 };

/* ---- fits -------------------------------------------------------------------------------------------------------- */

FITS_WHAT(stencil_global, plan_takes_all)

/* ---- tunables ---------------------------------------------------------------------------------------------------- */

struct shape stencil_tuned(struct arena *a, const struct problem *p, const struct device *d, const char *strategy,
                           const char *what, const char *kind)
{
    const char *variant = arena_printf(a, "%s%s%s %dd", what, *kind ? " " : "", kind, p->rank);
    const struct tuning *t = tuning_lookup(strategy, variant, d->sm);
    if (!t)
        return stencil_tuned(a, p, d, strategy, what, "");
    return (struct shape){ t->value[TN_THREADS],  t->value[TN_BLOCK_X],  t->value[TN_BLOCK_Y], t->value[TN_POINTS_X],
                           t->value[TN_POINTS_Y], t->value[TN_POINTS_Z], t->evidence };
}

void stencil_set_shape(struct plan_case *c, struct shape s)
{
    plan_set(c, TN_THREADS, s.threads, s.from);
    while (s.block_x > c->tunable[TN_THREADS])
        s.block_x /= 2;
    plan_set(c, TN_BLOCK_X, s.block_x, s.from);
    while (s.block_y > 1 && c->tunable[TN_BLOCK_X] * s.block_y > c->tunable[TN_THREADS])
        s.block_y /= 2;
    plan_set(c, TN_BLOCK_Y, s.block_y, s.from);
    plan_set(c, TN_POINTS_X, s.points_x, s.from);
    plan_set(c, TN_POINTS_Y, s.points_y, s.from);
    plan_set(c, TN_POINTS_Z, s.points_z, s.from);
    plan_set(c, TN_PDL, 0, "off: steps are long, and their loads go unhinted with it");
    c->tunable[TN_VECTOR] = 0;
}

struct formula stencil_steps(const struct problem *p)
{
    return p->steps_param >= 0 ? f_leaf(FO_PARAM, p->steps_param) : f_const(p->steps);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

struct formula stencil_extent(const struct problem *p, int axis) { return access_extent(p, &p->space[axis].extent); }

void stencil_keep_wide(const struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int last = p->rank - 1, least = stencil_threads(c, p->rank, last) * stencil_points(c, p->rank, last) / 2;
    const bool pinned = c->overridden[TN_POINTS_X] || c->overridden[TN_BLOCK_X] || c->overridden[TN_BLOCK_Y];
    int64_t lo, hi;
    plan_extent_range(pl, &p->space[last].extent, &lo, &hi);
    if (p->rank > 1 && lo <= least && !pinned && !stencil_one_tree(p))
        c->code.guard = f_and(c->code.guard, f_lt(least, stencil_extent(p, last)));
}

static struct plan_case *global_case(struct planner *pl, const struct strategy *row, const char *name,
                                     struct formula guard)
{
    const struct plan *plan = pl->plan;
    struct plan_case *c = plan_case_add(pl, row, name, guard);
    stencil_set_shape(c, stencil_tuned(&pl->s->arena, plan->problem, &plan->device, "stencil.global", "points", ""));
    return c;
}

/* A point per thread where windows would leave multiprocessors idle, and where windows do not fit. */
void stencil_global_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const int small = stencil_turn(p) >= 0 ? SMALL_TURNED : p->rank == 1 ? SMALL / 4 : SMALL;
    int64_t lo, hi;
    plan_count_range(pl, &lo, &hi);
    if (p->dynamic)
        global_case(pl, row, "dynamic", (struct formula){ 0 });
    else if (plan_pinned(pl) || stencil_linear(p) || hi <= small)
        global_case(pl, row, "global", (struct formula){ 0 });
    else if (lo <= small)
        stencil_keep_wide(pl, global_case(pl, row, "small", f_le(access_count(p), small)));
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

bool stencil_check_tunables(struct planner *pl, const struct plan_case *c, int promised)
{
    const struct problem *p = pl->plan->problem;
    int threads = 1, points = 1;
    for (int d = 0; d < p->rank; d++) {
        threads *= stencil_threads(c, p->rank, d);
        points *= stencil_points(c, p->rank, d);
    }
    if (threads != c->tunable[TN_THREADS] || threads % 32)
        return plan_contradiction(pl, c, WITH_THREADS | WITH_BLOCK_X | WITH_BLOCK_Y,
                                  "threads must be a multiple of 32, and of block_x times block_y");
    if (points > 64)
        return plan_contradiction(pl, c, WITH_POINTS_X | WITH_POINTS_Y | WITH_POINTS_Z,
                                  "a thread computes at most 64 points at once");
    const int x = stencil_points(c, p->rank, p->rank - 1);
    const struct misfit m[] = {
        { stencil_skewed(c) && (!c->aligned || x & (x - 1)),
          "rows that begin at boundaries of their own are read in vectors" },
        { c->aligned && promised % x, "points_x must divide the vector that the guard promises" },
        { points > 1 && stencil_linear(p), "a reduction that does not commute takes a point per thread" },
        { c->turns && !stencil_turns_fit(p, c), "the tile that outputs leave through does not fit the block" },
        { stencil_streams(c) && stencil_points(c, p->rank, 0) * stencil_threads(c, p->rank, 0) > 1,
          "a block that streams is one place thick along the outermost dimension" },
        { 0 }
    };
    return plan_consistent(pl, c, m);
}

/* Places along an axis. Windows with skewed rows begin up to a vector before their columns. */
static struct formula places(const struct problem *p, const struct plan_case *c, int axis)
{
    const struct formula extent = stencil_extent(p, axis);
    if (axis < p->rank - 1 || !stencil_skewed(c))
        return extent;
    return f_add(extent,
                 stencil_lead(c, p->rank) + stencil_points(c, p->rank, axis) - 1 - stencil_skews(c, p->rank).lo);
}

static bool power_of_two(int n) { return (n & (n - 1)) == 0; }

/* May the array be narrower than a block along the axis? */
static bool may_be_narrow(const struct planner *pl, const struct plan_case *c, int axis)
{
    const struct problem *p = pl->plan->problem;
    int64_t lo, hi;
    plan_extent_range(pl, &p->space[axis].extent, &lo, &hi);
    return lo < (int64_t)stencil_points(c, p->rank, axis) * stencil_threads(c, p->rank, axis);
}

/* Does a launch choose the threads of a block along each axis?  Where the array is narrow they go to the axes outside.
 * Windows a point wide do so, to which narrow arrays come; in others the arithmetic would cost up to 7 %. */
static bool adapts(const struct planner *pl, const struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int last = p->rank - 1;
    if (p->rank < 2 || c->strategy->plan != stencil_multi_write_plan || c->aligned || c->turns || stencil_one_tree(p) ||
        stencil_points(c, p->rank, last) > 1 || !power_of_two(stencil_threads(c, p->rank, last)) ||
        (p->rank > 2 && !power_of_two(stencil_threads(c, p->rank, 1))))
        return false;
    return may_be_narrow(pl, c, last) || (p->rank > 2 && may_be_narrow(pl, c, 1));
}

/* Threads of a block along an axis: along the inner ones no more than the least power of two whose windows cover the
 * array. */
static struct formula lanes(const struct planner *pl, const struct plan_case *c, int axis)
{
    const struct problem *p = pl->plan->problem;
    const int last = p->rank - 1, usual = stencil_threads(c, p->rank, axis);
    if (!adapts(pl, c))
        return f_const(usual);
    if (axis == 0 && p->rank > 2)
        return f_div(c->tunable[TN_THREADS], f_mul(lanes(pl, c, 1), lanes(pl, c, 2)));
    if (axis == 0)
        return f_div(c->tunable[TN_THREADS], lanes(pl, c, 1));
    const struct formula most =
        axis == last ? f_const(usual) : f_div(usual * stencil_threads(c, p->rank, last), lanes(pl, c, last));
    return f_min(most, f_pow2(places(p, c, axis), stencil_points(c, p->rank, axis)));
}

/* Boxes of a block along an axis; their product is the grid, but for blocks that stream. */
static struct formula boxes(const struct planner *pl, const struct plan_case *c, int axis)
{
    const struct problem *p = pl->plan->problem;
    const int points = stencil_points(c, p->rank, axis);
    if (!adapts(pl, c))
        return f_cdiv(places(p, c, axis), (int64_t)points * stencil_threads(c, p->rank, axis));
    return f_cdiv(places(p, c, axis), points > 1 ? f_mul(points, lanes(pl, c, axis)) : lanes(pl, c, axis));
}

static struct formula grid(const struct planner *pl, const struct plan_case *c, enum stencil_role role)
{
    const struct problem *p = pl->plan->problem;
    struct formula blocks = boxes(pl, c, 0);
    for (int d = 1; d < p->rank; d++)
        blocks = f_mul(blocks, boxes(pl, c, d));
    if (role == STENCIL_COPY || stencil_linear(p))
        blocks = f_cdiv(access_count(p), c->tunable[TN_THREADS]);
    return role == STENCIL_LAST ? f_max(1, blocks) : blocks;
}

/* What blocks ask of the grid whose kernel takes rows of other ranks (src/llvmgen/stencil/joined.c): the rows of boxes,
 * those of them at either end that read such rows, and the blocks that should send. */
static void joined_args(const struct planner *pl, const struct plan_case *c, struct prog_kernel *k)
{
    const struct problem *p = pl->plan->problem;
    const int points = stencil_points(c, p->rank, 0);
    const struct reach reach = stencil_input_reach(p, stencil_joined_input(p));
    struct formula row = f_const(1);
    for (int d = 1; d < p->rank; d++)
        row = f_mul(row, access_extent(p, &p->space[d].extent));
    const struct formula extent = access_extent(p, &p->space[0].extent), height = f_mul(points, lanes(pl, c, 0)),
                         rows = f_max(1, boxes(pl, c, 0));
    plan_value_arg(k, VAL_BOXES0, TY_I32, rows);
    plan_value_arg(k, VAL_ENDS_BEFORE, TY_I32, f_min(f_cdiv(-reach.lo[0], height), rows));
    plan_value_arg(k, VAL_ENDS_AFTER, TY_I32, f_sub(rows, f_div(f_max(f_sub(extent, reach.hi[0]), 0), height)));
    plan_value_arg(k, VAL_SENDERS, TY_I32,
                   f_min(f_cdiv(f_mul(row, reach.hi[0] - reach.lo[0]), c->tunable[TN_THREADS]), JOINED_SENDERS_MOST));
}

/* Places that a block streams over, as argument `places`; the number of chunks.  As many blocks as the device holds,
 * where that leaves few multiprocessors idle, else four times as many; but chunks are not so short that their first
 * planes count. */
static struct formula chunks(const struct planner *pl, const struct plan_case *c, struct prog_kernel *k, int kernel)
{
    const struct problem *p = pl->plan->problem;
    const struct reach r = stencil_space_reach(p);
    const struct formula resident = f_mul(f_sms(), f_resident(kernel));
    struct formula tiles = boxes(pl, c, 1);
    for (int d = 2; d < p->rank; d++)
        tiles = f_mul(tiles, boxes(pl, c, d));
    const struct formula busy = f_mul(tiles, f_div(resident, tiles));
    const struct formula idle = f_lt(f_mul(8, busy), f_mul(7, resident));
    const struct formula waves = f_add(1, f_mul(3, idle));
    const struct formula parts = f_max(f_div(f_mul(waves, resident), tiles), 1);
    const struct formula each = f_max(f_cdiv(stencil_extent(p, 0), parts), 8 * (r.hi[0] - r.lo[0]));
    plan_value_arg(k, VAL_PLACES, TY_I64, each);
    return f_cdiv(stencil_extent(p, 0), each);
}

void stencil_step_args(const struct problem *p, struct prog_kernel *k, const int *buffer)
{
    for (int i = 0; i < k->nargs; i++) {
        struct prog_arg *a = (struct prog_arg *)&k->arg[i];
        const int f = a->kind == ARG_INPUT    ? stencil_feeds(p, a->index)
                      : a->kind == ARG_OUTPUT ? stencil_fed(p, a->index)
                                              : -1;
        if (f < 0)
            continue;
        a->kind = a->kind == ARG_INPUT ? ARG_FED : ARG_NEXT;
        a->output = p->feedback[f].output;
        a->buffer = buffer[f];
    }
}

void stencil_buffers(struct planner *pl, struct plan_case *c, int *buffer)
{
    const struct problem *p = pl->plan->problem;
    for (int f = 0; f < p->nfeedback; f++) {
        const struct prog_array *a = &p->output[p->feedback[f].output].array;
        const struct formula several = f_le(2, stencil_steps(p));
        const struct formula bytes = f_mul(access_count(p), a->stride);
        buffer[f] =
            plan_buffer(pl, c, arena_printf(&pl->s->arena, "next_%s", a->name), REGION_SCRATCH, f_mul(several, bytes));
    }
}

/* How often a role's kernel runs. */
static struct formula times(const struct problem *p, enum stencil_role role)
{
    const struct formula s = stencil_steps(p);
    if (role == STENCIL_LAST)
        return f_le(1, s);
    return problem_writes(p, AT_TOTAL) ? f_max(f_sub(s, 1), 0) : s;
}

void stencil_add_role(struct planner *pl, struct plan_case *c, enum stencil_role role, const int *buffer,
                      struct formula times)
{
    static const char *const suffix[] = { [STENCIL_STEP] = "", [STENCIL_LAST] = "last", [STENCIL_COPY] = "copy" };
    const struct problem *p = pl->plan->problem;
    const int kernel = c->code.nkernels;
    struct prog_kernel *k = plan_kernel(pl, c, suffix[role]);
    struct formula blocks = grid(pl, c, role);
    if (p->iterated && role != STENCIL_COPY)
        stencil_step_args(p, k, buffer);
    for (int d = 1; d < p->rank; d++)
        plan_value_arg(k, d == 1 ? VAL_BOXES1 : VAL_BOXES2, TY_I32, boxes(pl, c, d));
    if (p->joins)
        joined_args(pl, c, k);
    if (role != STENCIL_COPY && adapts(pl, c)) {
        plan_value_arg(k, VAL_LANES_X, TY_I32, lanes(pl, c, p->rank - 1));
        if (p->rank > 2)
            plan_value_arg(k, VAL_LANES_Y, TY_I32, lanes(pl, c, 1));
    }
    if (role != STENCIL_COPY && stencil_streams(c)) {
        blocks = chunks(pl, c, k, kernel);
        for (int d = 1; d < p->rank; d++)
            blocks = f_mul(blocks, boxes(pl, c, d));
        blocks = role == STENCIL_LAST ? f_max(1, blocks) : blocks;
    }
    if (role == STENCIL_LAST) { /* by these the last block to finish combines the others */
        plan_buffer_arg(pl, c, kernel, BUF_COUNTER, REGION_CONTROL, f_const(4));
        plan_partials_arg(pl, c, kernel, blocks, 1);
    }
    if (role == STENCIL_COPY)
        blocks = f_mul(f_eq(stencil_steps(p), 0), blocks);
    struct prog_step *step = plan_launch(pl, c, kernel, blocks);
    if (p->iterated && role != STENCIL_COPY)
        step->repeat = times;
}

bool stencil_global_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    enum stencil_role role[STENCIL_ROLES];
    int buffer[PROG_ARG_MAX];
    const int n = stencil_roles(p, role);
    if (p->iterated)
        stencil_buffers(pl, c, buffer);
    for (int i = 0; i < n; i++)
        stencil_add_role(pl, c, role[i], buffer, times(p, role[i]));
    return stencil_check_tunables(pl, c, stencil_vector(p));
}

/* ---- explaining -------------------------------------------------------------------------------------------------- */

void stencil_explain(const struct problem *p, const struct plan_case *c, struct str *out)
{
    const struct shape one = { .points_x = 1, .points_y = 1, .points_z = 1 };
    int n = 1;
    for (int d = 0; d < p->rank; d++)
        n *= stencil_points(c, p->rank, d);
    const int64_t reads = stencil_window_cells(p, &one), loads = stencil_case_loads(p, c);
    str_printf(out,
               "    window         %d point%s of %lld reads each from %lld loaded values: each is used %.1f times\n", n,
               n == 1 ? "" : "s", (long long)reads, (long long)loads, loads ? (double)(n * reads) / (double)loads : 0);
    if (c->tunable[TN_STEPS] > 1)
        (p->rank == 1 ? line_explain : strip_explain)(p, c, out);
}
