/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - planning of scans that need one launch and no communication between blocks.
 *
 *   scan.block      one block takes the whole array tile by tile, the carry in registers (also with flags)
 *   segscan.block   one block per segment does the same; segments come from kept axes or from offsets
 *   segscan.column  one thread per segment: neighbouring threads read neighbouring elements where the last axis is kept
 *
 * They take every scan of the language: any axes, directions, operators, sizes.  A tile has threads x items x vector elements, and a
 * thread holds items x vector consecutive ones.  The combination tree depends on the tunables alone, so results are the same on
 * every run and device.
 */
#include "lower_impl.h"
#include "scan.h"

enum { HELD_MAX = 64, BLOCK_LIMIT = 1 << 13, SHORT_SEGMENT = 32 };

/* ---- facts ----------------------------------------------------------------------------------------------------------------- */

bool scan_keeps(const struct problem *p)
{
    for (int d = 0; d < p->rank; d++)
        if (!p->space[d].reduced)
            return true;
    return false;
}

bool scan_trailing(const struct problem *p)
{
    for (int d = 1; d < p->rank; d++)
        if (p->space[d - 1].reduced && !p->space[d].reduced)
            return false;
    return true;
}

bool scan_has_totals(const struct problem *p)
{
    for (int o = 0; o < p->noutputs; o++)
        if (p->output[o].role == OUT_SEGMENT)
            return true;
    return false;
}

static void find_input(const struct expr *e, void *user)
{
    if (e->kind == EX_INPUT)
        *(bool *)user = true;
}

bool scan_operator_reads(const struct problem *p)
{
    bool found = false;
    for (int r = 0; r < p->nreductions; r++) {
        const struct op *op = p->reduction[r].op;
        for (int f = 0; f < op->nfields; f++)
            expr_walk(op->combine[f], find_input, &found);
        for (int l = 0; l < op->nlets; l++)
            expr_walk(op->let[l].value, find_input, &found);
    }
    return found;
}

static struct formula extents(const struct problem *p, bool scanned)
{
    struct formula n = f_const(1);
    bool any = false;
    for (int d = 0; d < p->rank; d++) {
        const struct prog_dim *e = &p->space[d].extent;
        if (p->space[d].reduced != scanned)
            continue;
        const struct formula extent = e->size < 0 ? f_const(e->add) : e->add ? f_add(f_size(e->size), f_const(e->add)) : f_size(e->size);
        n = any ? f_mul(n, extent) : extent;
        any = true;
    }
    return n;
}

struct formula scan_length(const struct problem *p) { return extents(p, true); }

struct formula scan_segments(const struct problem *p)
{
    if (p->offsets < 0)
        return extents(p, false);
    const struct prog_dim *k = &p->input[p->offsets].array.dim[0];
    return f_max(f_const(0), k->size < 0 ? f_const(k->add - 1) : f_sub(f_size(k->size), f_const(1 - k->add)));
}

static bool few_fields(const struct problem *p, struct arena *a, const char **why)
{
    const int fields = state_fields(p, NULL);
    if (fields > 32)
        *why = arena_printf(a, "the states of all scans have %d fields; the limit is 32", fields);
    return fields <= 32;
}

bool scan_block_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d;
    if (scan_keeps(p) || p->offsets >= 0) {
        *why = "it scans whole arrays; this problem has many segments";
        return false;
    }
    return few_fields(p, a, why);
}

bool segscan_block_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d;
    if (!scan_keeps(p) && p->offsets < 0) {
        *why = "it scans segments; this problem has a single one";
        return false;
    }
    return few_fields(p, a, why);
}

bool segscan_column_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    return segscan_block_fits(p, d, a, why);
}

/* ---- cases ----------------------------------------------------------------------------------------------------------------- */

/* The total of no elements needs a value. */
static void check_empty(struct planner *pl)
{
    const struct problem *p = pl->plan->problem;
    for (int r = 0; scan_has_totals(p) && r < p->nreductions; r++) {
        const struct reduction *red = &p->reduction[r];
        if (!red->op->identity[0] && !red->init[0]) {
            plan_check(pl, f_or(f_ge(scan_length(p), f_const(1)), f_eq(scan_segments(p), f_const(0))),
                       "the total of no elements needs an `init`, or an operator with an `identity`");
            return;
        }
    }
}

static void add_case(struct planner *pl, const struct strategy *row, const char *name, struct formula guard)
{
    struct plan_case *c = plan_case_add(pl, row, name, guard);
    if (!c->overridden[TN_VECTOR]) {
        c->tunable[TN_VECTOR] = 1;
        c->tunable_from[TN_VECTOR] = "elements one by one";
    }
    if (!c->overridden[TN_PDL]) {
        c->tunable[TN_PDL] = pl->plan->device.sm >= 90;
        c->tunable_from[TN_PDL] = "on where the architecture has it";
    }
}

void scan_block_plan(struct planner *pl, const struct strategy *row)
{
    check_empty(pl);
    add_case(pl, row, "block", (struct formula){ 0 });
}

/* Short segments, and columns with many neighbours, go to threads. */
void segscan_column_plan(struct planner *pl, const struct strategy *row)
{
    struct span at;
    const struct problem *p = pl->plan->problem;
    check_empty(pl);
    if (plan_pinned_name(pl, &at)) {
        add_case(pl, row, "column", (struct formula){ 0 });
        return;
    }
    if (p->offsets >= 0)
        return;
    const struct formula length = scan_length(p);
    const struct formula enough = f_le(f_mul(f_sms(), f_const(64)), scan_segments(p));
    add_case(pl, row, "column", scan_trailing(p) ? f_le(length, f_const(SHORT_SEGMENT)) : enough);
}

void segscan_block_plan(struct planner *pl, const struct strategy *row)
{
    struct span at;
    if (plan_pinned_name(pl, &at))
        check_empty(pl);
    add_case(pl, row, "segments", (struct formula){ 0 });
}

/* ---- kernels ------------------------------------------------------------------------------------------------------------- */

static bool contradiction(struct planner *pl, const struct plan_case *c, const char *what)
{
    diag_error(&pl->s->diags, D_BAD_TUNABLE, pl->plan->problem->strategy_at, "%s: %d threads x %d items x %d elements: %s",
               c->code.strategy, c->tunable[TN_THREADS], c->tunable[TN_ITEMS], c->tunable[TN_VECTOR], what);
    return false;
}

static bool check_tunables(struct planner *pl, const struct plan_case *c)
{
    if (c->tunable[TN_THREADS] % 32)
        return contradiction(pl, c, "threads must be a multiple of 32");
    if (c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR] > HELD_MAX)
        return contradiction(pl, c, "a thread holds at most 64 elements");
    return true;
}

static bool build(struct planner *pl, struct plan_case *c, struct formula blocks)
{
    const struct problem *p = pl->plan->problem;
    struct prog_kernel *k = plan_kernel(pl, c, "");
    plan_problem_args(pl, k);
    plan_value_arg(k, "length", TY_I64, scan_length(p));
    plan_value_arg(k, "segments", TY_I64, scan_segments(p));
    plan_launch(pl, c, 0, blocks);
    return check_tunables(pl, c);
}

bool scan_block_build(struct planner *pl, struct plan_case *c) { return build(pl, c, f_const(1)); }

/* A block takes segments in turns once there are more than blocks to start at once. */
bool segscan_block_build(struct planner *pl, struct plan_case *c)
{
    return build(pl, c, f_min(scan_segments(pl->plan->problem), f_const(1 << 20)));
}

bool segscan_column_build(struct planner *pl, struct plan_case *c)
{
    const struct formula blocks = f_cdiv(scan_segments(pl->plan->problem), f_const(c->tunable[TN_THREADS]));
    return build(pl, c, f_min(blocks, f_const(1 << 20)));
}
