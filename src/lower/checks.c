/* SPDX-License-Identifier: Apache-2.0 */
/* checks.c - what a launch must satisfy, whichever strategies compute it; otherwise it is refused with the message.
 *
 * Sizes and addresses are what `assume` promises, and sizes what the plan was made for; a result of no elements needs a value; a
 * number of time steps is not negative.
 */
#include "lower_impl.h"
#include "lower/scan/scan.h"
#include "segments.h"
#include "lower/stencil/stencil_plan.h"

#include <string.h>

/* `condition` besides what is promised already, and its words. */
static void also(struct formula *all, struct formula condition, struct str *words, const char *what, int64_t value)
{
    *all = f_and(*all, condition);
    str_printf(words, "%s%s %lld", words->length ? ", " : "", what, (long long)value);
}

/* What `assume` promises of a size, as a condition, and in words. */
static struct formula promise(const struct dimension *size, int number, struct str *words)
{
    const struct formula n = f_size(number);
    struct formula all = { 0 };
    if (size->min == size->max) {
        also(&all, f_eq(n, size->min), words, "equal to", size->min);
        return all;
    }
    if (size->min > 0)
        also(&all, f_ge(n, size->min), words, "at least", size->min);
    if (size->max < INT64_MAX)
        also(&all, f_le(n, size->max), words, "at most", size->max);
    if (size->multiple_of > 1)
        also(&all, f_eq(f_mod(n, size->multiple_of), 0), words, "a multiple of", size->multiple_of);
    return all;
}

static void promises(struct planner *pl)
{
    const struct problem *p = pl->plan->problem;
    for (int i = 0; i < p->nsizes; i++) {
        const int64_t given = pl->options && pl->options->size ? pl->options->size[i] : -1;
        struct str words = { 0 };
        const struct formula promised = promise(&p->size[i], i, &words);
        if (promised.n)
            plan_check(pl, promised,
                       arena_printf(&pl->s->arena, "%s that %s is %s",
                                    p->size[i].elements ? "at() reads an array and needs" : "`assume` promises",
                                    p->size[i].name, words.text));
        if (given >= 0 && p->size[i].min != p->size[i].max)
            plan_check(pl, f_eq(f_size(i), given),
                       arena_printf(&pl->s->arena, "this was compiled for %s = %lld alone", p->size[i].name,
                                    (long long)given));
        str_finish(&words);
    }
    for (int i = 0; i < p->ninputs + p->noutputs; i++)
        if (p->alignment[i] > 1)
            plan_check(pl, f_eq(f_mod(f_misalign(f_pointer(i)), p->alignment[i]), 0),
                       arena_printf(&pl->s->arena, "`assume` promises that %s is aligned to %d bytes",
                                    problem_array(p, i)->name, p->alignment[i]));
}

void plan_drop_repeated_checks(struct plan *plan, int before)
{
    int n = before;
    for (int i = before; i < plan->nchecks; i++) {
        bool known = false;
        for (int k = 0; k < n; k++)
            known |= !strcmp(plan->check[k].message, plan->check[i].message);
        if (!known)
            plan->check[n++] = plan->check[i];
    }
    plan->nchecks = n;
}

/* ---- results of no elements -------------------------------------------------------------------------------------- */

/* The result of no elements would have no value. */
static bool without_value(const struct problem *p)
{
    for (int r = 0; r < p->nreductions; r++)
        if (!p->reduction[r].op->identity[0] && !p->reduction[r].init[0])
            return true;
    return false;
}

/* Segments of one length: it is 0, and there are some.  Where segments lie between offsets, the spec is an error. */
static void reductions_of_none(struct planner *pl)
{
    const struct problem *p = pl->plan->problem;
    const char *message = "a reduction of no elements needs an `init`, or an operator with an `identity`";
    if (!without_value(p) || p->offsets >= 0)
        return;
    if (p->kind == KIND_STENCIL || !segments_kept(p))
        plan_check(pl, f_ge(access_count(p), 1), message);
    else
        plan_check(pl, f_or(f_ge(segments_length(p), 1), f_eq(segments_count(p), 0)), message);
}

static void totals_of_none(struct planner *pl)
{
    const struct problem *p = pl->plan->problem;
    if (problem_shows_totals(p) && without_value(p))
        plan_check(pl, f_or(f_ge(scan_length(p), 1), f_eq(scan_segments(p), 0)),
                   "the total of no elements needs an `init`, or an operator with an `identity`");
}

/* ---- time steps -------------------------------------------------------------------------------------------------- */

static void steps(struct planner *pl)
{
    const struct problem *p = pl->plan->problem;
    if (!p->iterated || p->steps_param < 0)
        return;
    plan_check(pl, f_le(0, stencil_steps(p)), "the number of steps is negative");
    if (p->nfeedback < p->noutputs)
        plan_check(pl, f_le(1, stencil_steps(p)),
                   "without a step there is no value for an output that is not fed back");
}

/* A structure that is updated as one word must lie as one. */
static void words(struct planner *pl)
{
    const struct problem *p = pl->plan->problem;
    for (int o = 0; o < p->noutputs; o++) {
        const struct output *out = &p->output[o];
        if (out->combine && out->array.nfields > 1 && output_meets_as_word(out))
            plan_check(pl, f_eq(f_mod(f_misalign(f_pointer(p->ninputs + o)), f_const(out->array.stride)), f_const(0)),
                       arena_printf(&pl->s->arena,
                                    "the elements of %s are updated as words, and begin at multiples of %d",
                                    out->array.name, out->array.stride));
    }
}

void plan_launch_checks(struct planner *pl)
{
    promises(pl);
    words(pl);
    switch (pl->plan->problem->kind) {
    case KIND_REDUCE: reductions_of_none(pl); break;
    case KIND_SCAN: totals_of_none(pl); break;
    case KIND_STENCIL:
        steps(pl);
        reductions_of_none(pl);
        break;
    }
}
