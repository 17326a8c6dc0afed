/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - why a plan is as it is, and what it costs: the facts, and their text.  The other forms have files of
 * their own. */
#include "explain.h"
#include "lower/scan/scan.h"
#include "lower/stencil/stencil.h"

#include <string.h>

/* Where sizes are known, the case that takes them; else the last, which takes what comes to it. */
static const struct plan_case *preferred(const struct explained *x)
{
    const int c = x->at_size && x->prediction.case_index >= 0 ? x->prediction.case_index : x->plan->ncases - 1;
    return &x->plan->cases[c];
}

/* The strategy has cases: the one that is taken, or why none of them is. */
static enum choice choice_of_cases(const struct explained *x, const struct strategy *row, const char **why)
{
    struct arena *a = &x->s->arena;
    const struct plan_case *taken = preferred(x), *own = NULL;
    struct str unmet = { 0 };
    if (!x->at_size) {
        *why = "chosen";
        return CHOICE_CHOSEN;
    }
    if (x->prediction.case_index >= 0 && taken->strategy == row) {
        *why = arena_printf(a, "chosen: case '%s' takes these sizes", taken->code.name);
        return CHOICE_CHOSEN;
    }
    for (int c = 0; c < x->plan->ncases; c++) {
        const struct formula_names names = plan_names(a, x->plan, &x->plan->cases[c].code);
        if (x->plan->cases[c].strategy != row)
            continue;
        own = &x->plan->cases[c];
        str_finish(&unmet);
        if (case_takes(x->plan, c, x->options->size, x->param, &x->model, &names, &unmet))
            break;
    }
    *why = unmet.length > 0 ? arena_printf(a, "not at these sizes: case '%s' needs %s", own->code.name, unmet.text)
                            : arena_printf(a, "not at these sizes: case '%s' comes first", taken->code.name);
    str_finish(&unmet);
    return CHOICE_ELSEWHERE;
}

/* The strategy fits and has no case. */
static const char *why_unused(const struct explained *x, const struct strategy *row)
{
    struct arena *a = &x->s->arena;
    const struct plan_case *other = preferred(x), *last = &x->plan->cases[x->plan->ncases - 1];
    const char *evidence = other->tunable_from[TN_THREADS];
    if (x->plan->origin == PLAN_PINNED)
        return arena_printf(a, "it fits, but %s was asked for", last->code.strategy);
    if (x->plan->origin == PLAN_READ)
        return "it fits, but the plan that was read has no case of it";
    const char *why = row > last->strategy && last->code.guard.n == 0
                          ? arena_printf(a, "it fits, but ranks behind %s, which takes every launch that is left",
                                         last->code.strategy)
                          : "it fits, but has cases here only when it is asked for";
    if (!x->at_size || x->prediction.case_index < 0)
        return why;
    return arena_printf(a, "%s; at these sizes selection prefers case '%s' of %s (%s)", why, other->code.name,
                        other->code.strategy, evidence ? evidence : "default");
}

enum choice explain_choice(const struct explained *x, const struct strategy *row, const char **why)
{
    const struct plan *plan = x->plan;
    for (int c = 0; c < plan->ncases; c++)
        if (plan->cases[c].strategy == row)
            return choice_of_cases(x, row, why);
    const char *misfit = NULL; /* only means something where it does not fit */
    if (!row->fits(plan->problem, &plan->device, &x->s->arena, &misfit)) {
        *why = misfit;
        return CHOICE_UNFIT;
    }
    *why = why_unused(x, row);
    return CHOICE_FITS;
}

const ptxgen_kernel_resources *explain_kernel(const struct explained *x, const struct prog_kernel *k,
                                              struct occupancy *o)
{
    const ptxgen_kernel_resources *known = resources_find(&x->resources, k->name);
    *o = occupancy_of(&x->plan->device, k->threads, known ? known->registers : 0, known ? known->shared : 0);
    return known;
}

const char *explain_source(const struct explained *x)
{
    if (x->model.measured)
        return "measured";
    return x->options->device && !x->options->gpu ? "as its driver reports" : "by its data sheet";
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void text_strategies(const struct explained *x, struct str *out)
{
    str_add(out, "strategies\n");
    for (int i = 0; i < strategy_count(); i++) {
        const struct strategy *row = strategy_row(i);
        const char *why;
        if (row->kind != x->plan->problem->kind)
            continue;
        explain_choice(x, row, &why);
        str_printf(out, "  %-20s %s  (%s)\n", row->name, why, row->reference);
    }
}

/* The same evidence often stands behind several tunables: it is said once. */
static void text_tunables(const struct plan_case *c, struct str *out)
{
    const char *last = NULL;
    for (int t = 0; t < TN_COUNT; t++) {
        if (!(c->strategy->tunables & 1u << t))
            continue;
        const char *from = c->tunable_from[t] ? c->tunable_from[t] : "default";
        str_printf(out, "    %-14s %-6d %s\n", tunable_name(t), c->tunable[t],
                   last && !strcmp(last, from) ? "as above" : from);
        last = from;
    }
}

/* Scans: elements per thread, as tuned and as the published model has it. */
static void text_degree(const struct explained *x, const struct plan_case *c, struct str *out)
{
    const struct problem *p = x->plan->problem;
    if (p->kind == KIND_SCAN && state_fields(p, NULL) <= 32)
        str_printf(out, "    %-14s %-6d elements per thread; %d by Clausen's model of registers and shared memory\n",
                   "degree", scan_degree(c), scan_model_degree(p, &x->plan->device, c));
}

static void text_kernel(const struct explained *x, const struct prog_kernel *k, struct str *out)
{
    struct occupancy o;
    const ptxgen_kernel_resources *known = explain_kernel(x, k, &o);
    str_printf(out, "    kernel         %s: %d threads, ", k->name, k->threads);
    if (known && known->registers)
        str_printf(out, "%d registers, %d bytes shared, %d local (%s)", known->registers, known->shared, known->local,
                   x->options->resource_source);
    else
        str_add(out, "registers unknown (neither an assembler nor a GPU has seen it)");
    str_printf(out, "; %s%d block%s per multiprocessor, %.0f%% of its warps, limited by %s\n",
               known && known->registers ? "" : "at most ", o.blocks, o.blocks == 1 ? "" : "s", 100 * o.warps, o.limit);
}

static void text_case(const struct explained *x, const struct plan_case *c, const struct formula_names *names,
                      struct str *out)
{
    str_printf(out, "  %s: %s when ", c->code.name, c->code.strategy);
    if (c->code.guard.n)
        formula_print(&c->code.guard, names, out);
    else
        str_add(out, "no earlier case holds");
    str_addc(out, '\n');
    text_tunables(c, out);
    text_degree(x, c, out);
    for (int i = 0; i < c->code.nkernels; i++)
        text_kernel(x, &c->code.kernel[i], out);
    for (int i = 0; i < c->code.nsteps; i++)
        if (c->code.step[i].kind == STEP_LAUNCH) {
            str_add(out, "    grid           ");
            formula_print(&c->code.step[i].grid, names, out);
            str_addc(out, '\n');
        }
    if (x->plan->problem->kind == KIND_STENCIL)
        stencil_explain(&x->s->arena, x->plan->problem, c, out);
}

static void text_operators(const struct problem *p, struct str *out)
{
    str_add(out, "operators\n");
    for (int r = 0; r < p->nreductions; r++) {
        const struct op *op = p->reduction[r].op;
        str_printf(out, "  %-10s %s: %d field%s, %s, %s%s\n", p->reduction[r].name, op->name, op->nfields,
                   op->nfields == 1 ? "" : "s", op->commutative ? "commutative" : "ordered",
                   op->identity[0] ? "with identity" : "identity-free", op->exact ? ", exact in any order" : "");
    }
}

static void text_work(const struct explained *x, struct str *out)
{
    const struct work *w = &x->work;
    str_printf(out,
               "work\n  per element    %d floating-point operation%s, %d integer or logical, %d division%s or library "
               "call%s\n",
               w->flops, w->flops == 1 ? "" : "s", w->integer, w->special, w->special == 1 ? "" : "s",
               w->special == 1 ? "" : "s");
    if (!x->has_model) {
        str_printf(out, "  no roofline: no GPU with %s is known\n", x->plan->device.arch);
        return;
    }
    str_printf(
        out,
        "  target         %s (%s): reads %.0f GB/s, writes %.0f, copies %.0f; %.1f TFLOP/s f32; %.1f us per launch\n",
        x->model.name, explain_source(x), x->model.read * 1e-9, x->model.write * 1e-9, x->model.copy * 1e-9,
        x->model.flops * 1e-12, x->model.launch * 1e6);
}

static void text_measured(const struct explained *x, const char *how, double seconds, struct str *out)
{
    const double predicted = x->prediction.seconds;
    if (seconds > 0)
        str_printf(out, "  measured       %.2f us in a %s: %.2f of the prediction, %.2f of the roofline\n",
                   seconds * 1e6, how, seconds / predicted, seconds / x->least.seconds);
}

static void text_at(const struct explained *x, struct str *out)
{
    const struct problem *p = x->plan->problem;
    const struct roofline *l = &x->least;
    const struct prediction *t = &x->prediction;
    if (!x->at_size)
        return;
    str_add(out, "at");
    for (int i = 0; i < p->nsizes; i++)
        str_printf(out, " %s=%lld", p->size[i].name, (long long)x->options->size[i]);
    str_printf(out, "\n  reads %lld bytes, writes %lld bytes", (long long)l->read, (long long)l->written);
    if (l->points > 0)
        str_printf(out, "; %.3g bytes and %.3g operations per element", (double)(l->read + l->written) / l->points,
                   (double)(x->work.flops + x->work.integer + x->work.special));
    str_printf(out, "\n  roofline       %.2f us: memory %.2f, arithmetic %.2f, one launch %.2f%s\n", l->seconds * 1e6,
               l->memory * 1e6, l->arithmetic * 1e6, x->model.launch * 1e6, p->iterated ? "; of one step" : "");
    if (t->case_index < 0) {
        str_add(out, "  no case takes these sizes\n");
        return;
    }
    str_printf(out,
               "  case           %s (%s): %d launch%s, %.3g pass%s over the arrays, %.0f%% of the loads in flight that "
               "memory wants\n",
               x->plan->cases[t->case_index].code.name, x->plan->cases[t->case_index].code.strategy, t->launches,
               t->launches == 1 ? "" : "es", t->passes, t->passes == 1 ? "" : "es", 100 * t->in_flight);
    str_printf(out, "  predicted      %.2f us, %.2f of the roofline\n", t->seconds * 1e6, t->seconds / l->seconds);
    text_measured(x, "stream", x->options->stream_seconds, out);
    text_measured(x, "graph", x->options->graph_seconds, out);
}

void explain_text(const struct explained *x, struct str *out)
{
    const struct plan *plan = x->plan;
    str_printf(out, "%s on %s, PTX %d.%d\n", plan->problem->name, plan->device.arch, plan->device.ptx / 10,
               plan->device.ptx % 10);
    text_operators(plan->problem, out);
    text_strategies(x, out);
    if (plan->set && state_determinism(plan->problem) == DET_DEVICE)
        str_add(out, "determinism: device holds among plans with the same --set or --variant: a tree that is asked for "
                     "has bits of its own\n");
    str_add(out, "cases, the first whose condition holds is taken\n");
    for (int c = 0; c < plan->ncases; c++) {
        const struct formula_names names = plan_names(&x->s->arena, plan, &plan->cases[c].code);
        text_case(x, &plan->cases[c], &names, out);
    }
    text_work(x, out);
    text_at(x, out);
}

/* ---- gathering --------------------------------------------------------------------------------------------------- */

/* False: the user's name is no known GPU. */
static bool find_model(struct explained *x)
{
    const ptxgen_explain_options *o = x->options;
    const struct gpu_facts facts = { .name = o->device,
                                     .sm = o->sm,
                                     .sms = o->multiprocessors,
                                     .l2 = (int64_t)o->l2,
                                     .memory_clock_khz = o->memory_clock_khz,
                                     .bus_bits = o->bus_bits };
    x->has_model = gpu_model_find(o->gpu, x->plan->device.sm, o->device && !o->gpu ? &facts : NULL, &x->model);
    if (o->gpu && !x->has_model) {
        gpu_model_unknown(&x->s->diags, o->gpu);
        return false;
    }
    return true;
}

bool plan_explain(struct ptxgen_session *s, const struct plan *plan, const ptxgen_explain_options *options,
                  struct str *out)
{
    struct explained x = {
        .s = s, .plan = plan, .options = options, .resources = { options->resource_count, options->resource }
    };
    if (!find_model(&x))
        return false;
    x.work = work_of(plan->problem, options->size, plan->device.sm);
    x.at_size = x.has_model && options->size && sizes_known(plan->problem, options->size);
    if (x.at_size) {
        union value *param = arena_new(&s->arena, union value, plan->problem->nparams + 1);
        for (int i = 0; options->param && i < plan->problem->nparams; i++)
            param[i].u = options->param[i].u;
        x.param = options->param ? param : NULL;
        x.least = roofline_of(plan->problem, options->size, &x.model);
        x.prediction = predict(plan, options->size, x.param, &x.model, &x.resources);
    }
    (options->form == PTXGEN_FORM_JSON   ? explain_json
     : options->form == PTXGEN_FORM_HTML ? explain_html
                                         : explain_text)(&x, out);
    return true;
}
