/* SPDX-License-Identifier: Apache-2.0 */
/* stencil_temporal.c - planning of several time steps per launch.
 *
 * Strips of 32 x 4 columns belong to warps; a warp streams down its strip and keeps the last rows of every step in registers.  A
 * strip loses its outer columns step by step, so strips overlap; they are shifted inward at the ends of a row, so that none leaves
 * the array.  What is left over of the steps is done one at a time.
 *
 * Fits one array in two dimensions that is fed back, at boundaries that stay true while steps go by at fixed places of a strip: clamp,
 * constant and interior.
 */
#include "stencil_plan.h"

enum { LARGE = 1 << 22 };

static void count_read(const struct expr *e, void *user)
{
    if (e->kind == EX_INPUT)
        ++*(int *)user;
}

static int radius(const struct problem *p)
{
    const struct reach r = stencil_space_reach(p);
    int64_t most = 0;
    for (int d = 0; d < p->rank; d++) {
        most = -r.lo[d] > most ? -r.lo[d] : most;
        most = r.hi[d] > most ? r.hi[d] : most;
    }
    return most > 8 ? 9 : (int)most;
}

bool stencil_temporal_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d;
    const bool plain = p->ninputs == 1 && p->noutputs == 1 && p->nfeedback == 1 && p->nreductions == 0 && !p->dynamic;
    *why = "there are no time steps";
    if (!p->iterated)
        return false;
    *why = "it takes one array in two dimensions that is fed back, without structures";
    if (p->rank != 2 || !plain || *p->input[0].array.field[0].name || !access_input_direct(p, 0) || !access_output_direct(p, 0))
        return false;
    for (int k = 0; k < 2; k++)
        if (p->input[0].boundary[k].mode == BOUND_WRAP || p->input[0].boundary[k].mode == BOUND_REFLECT ||
            p->input[0].boundary[k].mode == BOUND_MIRROR) {
            *why = "what lies beyond the edge moves with the steps; it takes clamp, constant and interior";
            return false;
        }
    *why = arena_printf(a, "offsets reach %d; the limits are 1 and 2", radius(p));
    return radius(p) == 1 || radius(p) == 2;
}

/* Registers hold steps x (2 radius + 1) rows. */
static int default_steps(const struct problem *p)
{
    int reads = 0;
    stencil_each_read(p, count_read, &reads);
    const int steps = radius(p) == 1 ? (reads > 6 ? 4 : 8) : reads > 10 ? 2 : 4;
    return ty_bytes(p->input[0].array.field[0].type) > 4 && steps > 4 ? 4 : steps;
}

static struct plan_case *add_case(struct planner *pl, const struct strategy *row, const char *name, struct formula guard, bool aligned)
{
    static const char evidence[] = "hand-written kernels of this form on an H200: 3.4x single steps at 8192^2, five points";
    struct plan_case *c = plan_case_add(pl, row, name, guard);
    c->aligned = aligned;
    stencil_set(c, TN_STEPS, default_steps(pl->plan->problem), evidence);
    stencil_set(c, TN_THREADS, 128, evidence);
    stencil_set(c, TN_BLOCK_X, 32, "for single steps: a warp reads whole lines of a row");
    stencil_set(c, TN_BLOCK_Y, 1, "unused in two dimensions");
    stencil_set(c, TN_POINTS_X, aligned ? STENCIL_STRIP : 1, "for single steps");
    stencil_set(c, TN_POINTS_Y, 4, "for single steps");
    stencil_set(c, TN_POINTS_Z, 1, "unused in two dimensions");
    c->tunable[TN_VECTOR] = 0;
    return c;
}

void stencil_temporal_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    struct span at;
    const bool pinned = plan_pinned_name(pl, &at) != NULL;
    const int64_t wide = 32 * STENCIL_STRIP;
    if (!pinned && p->steps_param < 0 && p->steps < default_steps(p))
        return;
    stencil_checks(pl);
    const struct prog_dim *x = &p->space[1].extent;
    const struct formula columns = x->size < 0 ? f_const(x->add) : f_size(x->size);
    struct formula guard = f_le(f_const(wide), columns);
    if (!pinned) {
        const struct formula large = f_le(f_const(LARGE), access_count(p)), several = f_le(f_const(default_steps(p)), stencil_steps(p));
        guard = f_and(guard, f_and(large, several));
    }
    add_case(pl, row, "strips", f_and(guard, stencil_rows_aligned(p, STENCIL_STRIP)), true);
    add_case(pl, row, "strips_unaligned", guard, false);
    if (pinned) /* arrays narrower than a strip: single steps */
        add_case(pl, row, "narrow", (struct formula){ 0 }, false)->tunable[TN_STEPS] = 1;
}

int stencil_halo(const struct plan_case *c, const struct problem *p)
{
    return (c->tunable[TN_STEPS] * radius(p) + STENCIL_STRIP - 1) / STENCIL_STRIP * STENCIL_STRIP;
}

int stencil_radius(const struct problem *p) { return radius(p); }

/* Strips side by side, and how many rows a warp takes so that the device is filled once. */
static void strip_kernel(struct planner *pl, struct plan_case *c, const int *buffer)
{
    const struct problem *p = pl->plan->problem;
    const int warps = c->tunable[TN_THREADS] / 32, useful = 32 * STENCIL_STRIP - 2 * stencil_halo(c, p);
    const struct prog_dim *x = &p->space[1].extent, *y = &p->space[0].extent;
    const struct formula columns = x->size < 0 ? f_const(x->add) : f_size(x->size);
    const struct formula lines = y->size < 0 ? f_const(y->add) : f_size(y->size);
    const struct formula strips = f_cdiv(columns, f_const(useful));
    const struct formula resident = f_mul(f_sms(), f_mul(f_resident(0), f_const(warps)));
    const struct formula parts = f_max(f_div(resident, strips), f_const(1));
    const struct formula rows = f_max(f_cdiv(lines, parts), f_const(4 * c->tunable[TN_STEPS] * radius(p)));
    struct prog_kernel *k = plan_kernel(pl, c, "many");
    stencil_step_args(pl, k, buffer);
    plan_value_arg(k, "strips", TY_I32, strips);
    plan_value_arg(k, "rows", TY_I64, rows);
    struct prog_step *step = plan_launch(pl, c, 0, f_cdiv(f_mul(strips, f_cdiv(lines, rows)), f_const(warps)));
    step->repeat = f_div(stencil_steps(p), f_const(c->tunable[TN_STEPS]));
}

bool stencil_temporal_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int steps = c->tunable[TN_STEPS];
    enum stencil_role role[STENCIL_ROLES];
    int buffer[PROG_ARG_MAX];
    const int n = stencil_roles(p, role);
    if (32 * STENCIL_STRIP <= 2 * stencil_halo(c, p)) {
        diag_error(&pl->s->diags, D_BAD_TUNABLE, p->strategy_at, "%s: nothing is left of a strip after %d steps", c->code.strategy, steps);
        return false;
    }
    stencil_buffers(pl, c, buffer);
    if (steps > 1)
        strip_kernel(pl, c, buffer);
    for (int i = 0; i < n; i++)
        stencil_add_role(pl, c, role[i], buffer, steps > 1 ? f_mod(stencil_steps(p), f_const(steps)) : stencil_steps(p));
    return stencil_check_tunables(pl, c, STENCIL_STRIP);
}
