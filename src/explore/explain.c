/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - why a plan is as it is, and what it costs: the facts.  Their forms have files of their own. */
#include "explain.h"

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
    const char *why =
        row > last->strategy && last->code.guard.n == 0
            ? arena_printf(a, "it fits, but %s comes first and takes all remaining launches", last->code.strategy)
            : "it fits, but has cases here only when it is asked for";
    if (!x->at_size || x->prediction.case_index < 0)
        return why;
    return arena_printf(a, "%s; at these sizes selection prefers case '%s' of %s (%s)", why, other->code.name,
                        other->code.strategy, evidence ? evidence : "default");
}

const struct op *explain_operator(const struct problem *p, int i, const char **name)
{
    if (i < p->nreductions) {
        *name = p->reduction[i].name;
        return p->reduction[i].op;
    }
    i -= p->nreductions;
    for (int o = 0; o < p->noutputs; o++)
        if (p->output[o].combine && i-- == 0) {
            *name = p->output[o].array.name;
            return p->output[o].combine;
        }
    if (i < p->ngatherers) {
        *name = p->gatherer[i].name;
        return p->gatherer[i].op;
    }
    return NULL;
}

enum choice explain_choice(const struct explained *x, const struct strategy *row, const char **why)
{
    const struct plan *plan = x->plan;
    for (int c = 0; c < plan->ncases; c++)
        if (plan->cases[c].strategy == row)
            return choice_of_cases(x, row, why);
    const char *misfit = NULL; /* only means something where it does not fit */
    if (!strategy_fits(row, strategy_problem(row, plan->problem), &plan->device, &x->s->arena, &misfit)) {
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

/* ---- gathering --------------------------------------------------------------------------------------------------- */

bool explain_model(struct ptxgen_session *s, const struct plan *plan, const ptxgen_explain_options *o,
                   struct gpu_model *model, bool *known)
{
    const struct gpu_facts facts = { .name = o->device,
                                     .sm = o->sm,
                                     .sms = o->multiprocessors,
                                     .l2 = (int64_t)o->l2,
                                     .memory_clock_khz = o->memory_clock_khz,
                                     .bus_bits = o->bus_bits };
    *known = gpu_model_find(o->gpu, plan->device.sm, o->device && !o->gpu ? &facts : NULL, model);
    if (o->gpu && !*known) {
        gpu_model_unknown(&s->diags, o->gpu);
        return false;
    }
    return true;
}

bool explain_gather(struct ptxgen_session *s, const struct plan *plan, const ptxgen_explain_options *options,
                    struct explained *x)
{
    *x = (struct explained){
        .s = s, .plan = plan, .options = options, .resources = { options->resource_count, options->resource }
    };
    if (!explain_model(s, plan, options, &x->model, &x->has_model))
        return false;
    x->work = work_of(plan->problem, options->size, plan->device.sm);
    x->at_size = x->has_model && options->size && sizes_known(plan->problem, options->size);
    if (x->at_size) {
        union value *param = arena_new(&s->arena, union value, plan->problem->nparams + 1);
        for (int i = 0; options->param && i < plan->problem->nparams; i++)
            param[i].u = options->param[i].u;
        x->param = options->param ? param : NULL;
        x->least = roofline_of(plan->problem, options->size, &x->model);
        x->prediction = predict(plan, options->size, x->param, &x->model, &x->resources);
    }
    return true;
}

void explain_print(const struct explained *x, struct str *out)
{
    (x->options->form == PTXGEN_FORM_JSON   ? explain_json
     : x->options->form == PTXGEN_FORM_HTML ? explain_html
                                            : explain_text)(x, out);
}

bool plan_explain(struct ptxgen_session *s, const struct plan *plan, const ptxgen_explain_options *options,
                  struct str *out)
{
    struct explained x;
    if (!explain_gather(s, plan, options, &x))
        return false;
    explain_print(&x, out);
    return true;
}
