/* SPDX-License-Identifier: Apache-2.0 */
/* variants.c - the public API: variants. */
#include "api_stages.h"
#include "explore/variants.h"

char *ptxgen_plan_variant(const ptxgen_plan *plan)
{
    struct str out = { 0 };
    if (!plan)
        return NULL;
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
    gpu_model_unknown(&s->diags, gpu);
    return false;
}

/* What the options mean, with room for the structures that they point to. */
struct asked {
    struct device device;
    struct gpu_model room;
    struct variants_request request;
};

static bool find_request(ptxgen_session *s, const struct problem *p, const ptxgen_variant_options *options,
                         struct asked *a)
{
    ptxgen_variant_options taken;
    const ptxgen_variant_options *o = &taken;
    ptxgen_plan_options *plan = arena_new(&s->arena, ptxgen_plan_options, 1);
    if (!TAKE(s, options, &taken) || !TAKE(s, o->plan, plan))
        return false;
    a->request = (struct variants_request){ .illegal = o->illegal != 0,
                                            .main_only = o->main_only != 0,
                                            .draw = o->draw,
                                            .seed = o->seed,
                                            .part = o->part,
                                            .parts = o->parts };
    if (!api_fit_plan_options(s, p, plan) || !api_fit_number(s, "draw", o->draw, 0, INT64_MAX) ||
        !api_fit_number(s, "parts", o->parts, 0, 1 << 16) ||
        !api_fit_number(s, "part", o->part, 0, o->parts > 0 ? o->parts - 1 : 0))
        return false;
    if (!api_find_device(s, plan, &a->device) || !find_model(s, o->gpu, a->device.sm, &a->room, &a->request.model))
        return false;
    a->request.options = api_plan_options(s, plan);
    return true;
}

ptxgen_status ptxgen_variants(ptxgen_session *s, const ptxgen_problem *p, const ptxgen_variant_options *options,
                              int (*visit)(const ptxgen_variant *v, void *user), void *user)
{
    NEED(PTXGEN_USAGE, s, s, p, visit ? p : NULL);
    if (p->stages)
        return api_stage_variants(s, p, options, visit, user);
    struct asked a;
    ptxgen_status status = PTXGEN_USAGE;
    WITH_MEMORY(s, {
        if (find_request(s, p->problem, options, &a) &&
            variants_each(s, p->problem, &a.device, &a.request, visit, user))
            status = PTXGEN_OK;
    });
    return status;
}

ptxgen_status ptxgen_variants_count(ptxgen_session *s, const ptxgen_problem *p, const ptxgen_variant_options *options,
                                    int (*visit)(const ptxgen_variant_count *c, void *user), void *user)
{
    NEED(PTXGEN_USAGE, s, s, p, visit ? p : NULL);
    if (!api_is_single(s, p, "variants are of one problem"))
        return PTXGEN_UNSUPPORTED;
    struct asked a;
    ptxgen_status status = PTXGEN_USAGE;
    WITH_MEMORY(s, {
        if (find_request(s, p->problem, options, &a) &&
            variants_count(s, p->problem, &a.device, &a.request, visit, user))
            status = PTXGEN_OK;
    });
    return status;
}
