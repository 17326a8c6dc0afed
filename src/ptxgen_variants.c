/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen_variants.c - the public API: variants. */
#include "api_impl.h"
#include "lower/variants.h"

char *ptxgen_plan_variant(const ptxgen_plan *plan)
{
    struct str out = { 0 };
    variant_print(plan->plan, &out);
    return str_take(&out);
}

/* The model of the prediction; NULL where nothing is known. False after a diagnostic. */
static bool find_model(ptxgen_session *s, const char *gpu, int sm, struct gpu_model *room,
                       const struct gpu_model **model)
{
    *model = gpu_model_find(gpu, sm, NULL, room) ? room : NULL;
    if (!gpu || *model)
        return true;
    struct diag *m = diag_error(&s->diags, D_BAD_TARGET, span_none(), "unknown GPU '%s'", gpu);
    const char *names[GPU_MODELS_MAX];
    diag_suggest(&s->diags, m, gpu, names, gpu_model_names(names));
    return false;
}

ptxgen_status ptxgen_variants(ptxgen_session *s, const ptxgen_problem *p, const ptxgen_variant_options *options,
                              int (*visit)(const ptxgen_variant *v, void *user), void *user)
{
    static const ptxgen_variant_options plain = { 0 };
    static const ptxgen_plan_options default_plan = PTXGEN_PLAN_OPTIONS_INIT;
    const ptxgen_variant_options *o = options ? options : &plain;
    const ptxgen_plan_options *plan = o->plan ? o->plan : &default_plan;
    struct device device;
    struct gpu_model room;
    const struct gpu_model *model;
    ptxgen_status status = PTXGEN_USAGE;
    WITH_MEMORY(s, {
        if (api_find_device(s, plan, &device) && find_model(s, o->gpu, device.sm, &room, &model) &&
            variants_each(s, p->problem, &device, api_plan_options(s, plan), model, o->illegal != 0, visit, user))
            status = PTXGEN_OK;
    });
    return status;
}
