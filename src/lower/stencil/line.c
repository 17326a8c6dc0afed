/* SPDX-License-Identifier: Apache-2.0 */
/* line.c - planning of several time steps per launch in one dimension; see line.h.
 *
 * A case has a kernel of T steps and one for what is left of them, both with the number of steps as an argument, and
 * windows for the last step beside a reduction.
 */
#include "line.h"

#include "lower/work.h"
#include "stencil_plan.h"

/* ---- geometry ---------------------------------------------------------------------------------------------------- */

/* The largest power of two in n. */
static int power_in(int n) { return n & -n; }

int line_vector(const struct prog_array *a, int items) { return strip_vector_of(a, power_in(items)); }

static int pitch(int bytes) { return (bytes + ACCESS_BYTES - 1) / ACCESS_BYTES * ACCESS_BYTES + ACCESS_BYTES; }

static int largest(int a, int b) { return a > b ? a : b; }

struct line_shape line_shape(const struct plan_case *c, const struct problem *p)
{
    struct line_shape s = { .reach = strip_reach(p),
                            .items = c->tunable[TN_ITEMS],
                            .width = c->tunable[TN_ITEMS] * 32,
                            .vector = 1,
                            .warps = c->tunable[TN_THREADS] / 32 };
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const struct prog_array *a = access_direct(p, i);
        if (!a || *a->field[0].name)
            continue;
        s.pitch = largest(s.pitch, pitch(s.items * a->stride));
        if (c->aligned)
            s.vector = largest(s.vector, line_vector(a, s.items));
    }
    s.halo = (c->tunable[TN_STEPS] * s.reach + s.vector - 1) / s.vector * s.vector;
    s.useful = s.width - 2 * s.halo;
    return s;
}

void line_explain(const struct problem *p, const struct plan_case *c, struct str *out)
{
    const struct line_shape s = line_shape(c, p);
    str_printf(out, "    halo           %d of the %d points of a warp, for %d steps\n", 2 * s.halo, s.width,
               c->tunable[TN_STEPS]);
}

/* ---- tunables ---------------------------------------------------------------------------------------------------- */

/* Registers that a point takes: arrays that are fed back, and others, which stay in registers from step to step. */
static int words(const struct problem *p)
{
    int n = 0;
    for (int i = 0; i < p->ninputs; i++)
        if (access_input_direct(p, i) && !*p->input[i].array.field[0].name)
            n += p->input[i].array.stride > 4 ? 2 : 1;
    return n;
}

/* As many points as registers hold, and fewer copies of large expressions. */
static int default_items(const struct problem *p)
{
    enum { WORDS = 32, LEAST = 8, COPIED = 512 };
    int items = WORDS;
    while (items > LEAST && (items * words(p) > WORDS || items * work_operations(p) > COPIED))
        items /= 2;
    return items;
}

/* The most steps whose halo is at most an eighth of the tile. */
static int default_steps(const struct problem *p, int width)
{
    int steps = STRIP_STEPS_MAX;
    while (steps > 2 && 2 * steps * strip_reach(p) * 8 > width)
        steps /= 2;
    return steps;
}

static struct plan_case *add_case(struct planner *pl, const struct strategy *row, const char *name, bool aligned)
{
    static const char evidence[] = "model: registers of 32 values for each point of a lane; H200's arithmetic is what "
                                   "waits from 8 steps on";
    const struct problem *p = pl->plan->problem;
    struct plan_case *c = plan_case_add(pl, row, name, (struct formula){ 0 });
    c->aligned = aligned;
    plan_set(c, TN_ITEMS, default_items(p), evidence);
    plan_set(c, TN_STEPS, default_steps(p, 32 * c->tunable[TN_ITEMS]), evidence);
    stencil_set_shape(c, (struct shape){ .threads = 128,
                                         .block_x = 32,
                                         .block_y = 1,
                                         .points_x = aligned ? STRIP_COLUMNS : 1,
                                         .points_y = 1,
                                         .points_z = 1,
                                         .from = evidence });
    return c;
}

/* ---- guards ------------------------------------------------------------------------------------------------------ */

static struct formula room(const struct problem *p, const struct plan_case *c)
{
    return f_le(line_shape(c, p).width, stencil_extent(p, 0));
}

/* Arithmetic that is what waits in single steps gains nothing, and large expressions are copied for every point. */
static bool light(const struct problem *p) { return !work_is_heavy(p); }

void line_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const bool pinned = plan_pinned(pl);
    if (!pinned && ((p->steps_param < 0 && p->steps < 2) || !light(p)))
        return;
    for (int aligned = 1; aligned >= 0; aligned--) {
        struct plan_case *c = add_case(pl, row, aligned ? "line" : "line_shifted", aligned);
        struct formula guard = room(p, c);
        if (aligned) /* for its own vectors and those of the windows */
            guard = strip_bases_aligned(p, largest(power_in(c->tunable[TN_ITEMS]), STRIP_COLUMNS), guard);
        if (!pinned)
            guard = f_and(guard, f_le(2, stencil_steps(p)));
        c->code.guard = guard;
    }
    if (pinned) /* arrays shorter than a tile: single steps */
        add_case(pl, row, "short", false)->tunable[TN_STEPS] = 1;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* Steps that the last one is not beside a reduction. */
static struct formula plain_steps(const struct problem *p)
{
    const struct formula all = stencil_steps(p);
    return problem_writes(p, AT_TOTAL) ? f_max(f_sub(all, 1), 0) : all;
}

int line_kernels(const struct plan_case *c, const struct problem *p, bool rest[LINE_KERNELS])
{
    const int steps = c->tunable[TN_STEPS];
    const int64_t left = p->steps - (problem_writes(p, AT_TOTAL) ? 1 : 0);
    int n = 0;
    if (steps < 2)
        return 0;
    if (p->steps_param >= 0 || left >= steps)
        rest[n++] = false;
    if (p->steps_param >= 0 || left % steps > 0)
        rest[n++] = true;
    return n;
}

int line_roles(const struct plan_case *c, const struct problem *p, enum stencil_role role[STENCIL_ROLES])
{
    enum stencil_role all[STENCIL_ROLES];
    const int count = stencil_roles(p, all);
    int n = 0;
    for (int i = 0; i < count; i++)
        if (all[i] != STENCIL_STEP || c->tunable[TN_STEPS] < 2)
            role[n++] = all[i];
    return n;
}

static bool check_shape(struct planner *pl, const struct plan_case *c, const struct line_shape *s)
{
    const struct misfit m[] = { { s->useful <= 0, "nothing is left of a warp's points after so many steps" },
                                { s->items <= s->reach, "a lane holds more points than offsets reach" },
                                { (int64_t)32 * s->pitch * s->warps > pl->plan->device.shared_per_block,
                                  "the tiles of a block's warps take more shared memory than a block has" },
                                { 0 } };
    return c->tunable[TN_STEPS] < 2 || plan_consistent(pl, c, m);
}

bool line_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const struct line_shape s = line_shape(c, p);
    const struct formula left = plain_steps(p);
    enum stencil_role role[STENCIL_ROLES];
    bool rest[LINE_KERNELS];
    int buffer[PROG_ARG_MAX];
    if (!check_shape(pl, c, &s))
        return false;
    stencil_buffers(pl, c, buffer);
    const int several = line_kernels(c, p, rest), n = line_roles(c, p, role), steps = c->tunable[TN_STEPS];
    for (int i = 0; i < several; i++) {
        struct prog_kernel *k = plan_kernel(pl, c, rest[i] ? "rest" : "steps");
        const struct formula more = f_mod(left, steps), tiles = f_cdiv(stencil_extent(p, 0), s.useful);
        stencil_step_args(p, k, buffer);
        plan_value_arg(k, VAL_STEPS, TY_I32, rest[i] ? more : f_const(steps));
        plan_launch(pl, c, i, f_cdiv(tiles, s.warps))->repeat = rest[i] ? f_lt(0, more) : f_div(left, steps);
    }
    for (int i = 0; i < n; i++)
        stencil_add_role(pl, c, role[i], buffer, role[i] == STENCIL_LAST ? f_le(1, stencil_steps(p)) : left);
    return stencil_check_tunables(pl, c, STRIP_COLUMNS);
}
