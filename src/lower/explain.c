/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - why a plan is as it is: strategies chosen and not, tunables and their origin, and the roofline. */
#include "lower_impl.h"
#include "stencil.h"

#include <string.h>

static bool used(const struct plan *plan, const struct strategy *row)
{
    for (int c = 0; c < plan->ncases; c++)
        if (plan->kase[c].strategy == row)
            return true;
    return false;
}

static void explain_strategies(struct ptxgen_session *s, const struct plan *plan, struct str *out)
{
    str_add(out, "strategies\n");
    for (int i = 0; i < strategy_count(); i++) {
        const struct strategy *row = strategy_row(i);
        const char *why = "it fits, but the other cases take every size, or another one is pinned";
        if (row->kind != plan->problem->kind)
            continue;
        if (used(plan, row))
            why = "chosen";
        else
            row->fits(plan->problem, &plan->device, &s->arena, &why);
        str_printf(out, "  %-20s %s  (%s)\n", row->name, why, row->reference);
    }
}

static void explain_case(struct arena *a, const struct problem *p, const struct plan_case *c, const struct formula_names *names, struct str *out)
{
    str_printf(out, "  %s: %s when ", c->code.name, c->code.strategy);
    if (c->code.guard.n)
        formula_print(&c->code.guard, names, out);
    else
        str_add(out, "no earlier case holds");
    str_addc(out, '\n');
    for (int t = 0; t < TN_COUNT; t++)
        if (c->strategy->tunables & 1u << t)
            str_printf(out, "    %-14s %-6d %s\n", tunable_name(t), c->tunable[t], c->tunable_from[t] ? c->tunable_from[t] : "default");
    for (int i = 0; i < c->code.nsteps; i++)
        if (c->code.step[i].kind == STEP_LAUNCH) {
            str_add(out, "    grid           ");
            formula_print(&c->code.step[i].grid, names, out);
            str_addc(out, '\n');
        }
    if (p->kind == KIND_STENCIL)
        stencil_explain(a, p, c, out);
}

static void explain_operators(const struct problem *p, struct str *out)
{
    str_add(out, "operators\n");
    for (int r = 0; r < p->nreductions; r++) {
        const struct op *op = p->reduction[r].op;
        str_printf(out, "  %-10s %s: %d field%s, %s, %s%s\n", p->reduction[r].name, op->name, op->nfields, op->nfields == 1 ? "" : "s",
                   op->commutative ? "commutative" : "ordered", op->identity[0] ? "with identity" : "identity-free",
                   op->exact ? ", exact in any order" : "");
    }
}

static void explain_bytes(const struct plan *plan, const int64_t *size, struct str *out)
{
    const struct problem *p = plan->problem;
    for (int i = 0; i < p->nsizes; i++)
        if (!size || size[i] < 0)
            return;
    int64_t read, written;
    access_bytes(p, size, &read, &written);
    str_add(out, "at");
    for (int i = 0; i < p->nsizes; i++)
        str_printf(out, " %s=%lld", p->size[i].name, (long long)size[i]);
    str_printf(out, "\n  reads %lld bytes, writes %lld bytes\n", (long long)read, (long long)written);
}

void plan_explain(struct ptxgen_session *s, const struct plan *plan, const int64_t *size, struct str *out)
{
    str_printf(out, "%s on %s, PTX %d.%d\n", plan->problem->name, plan->device.arch, plan->device.ptx / 10, plan->device.ptx % 10);
    explain_operators(plan->problem, out);
    explain_strategies(s, plan, out);
    str_add(out, "cases, the first whose condition holds is taken\n");
    for (int c = 0; c < plan->ncases; c++) {
        const struct formula_names names = plan_names(&s->arena, plan, &plan->kase[c].code);
        explain_case(&s->arena, plan->problem, &plan->kase[c], &names, out);
    }
    explain_bytes(plan, size, out);
}
