/* SPDX-License-Identifier: Apache-2.0 */
/* stage_options.c - options for a spec with stages, of one stage each; and the variants of stages. */
#include <string.h>

#include "api_stages.h"

/* Sizes of a stage among those of the whole; NULL: not known. */
static int64_t *stage_sizes(ptxgen_session *s, const struct prog_stage *stage, const int64_t *size)
{
    int64_t *of = size ? arena_new(&s->arena, int64_t, stage->nsizes + 1) : NULL;
    for (int i = 0; of && i < stage->nsizes; i++)
        of[i] = size[stage->size[i]];
    return of;
}

/* The stage that a variant `STAGE:ID` is of, or -1. */
static int stage_of(const struct prog_stages *p, const char *variant)
{
    const char *end = variant ? strchr(variant, ':') : NULL;
    int i = end ? p->nstages - 1 : -1;
    while (i >= 0 && (strlen(p->stage[i].name) != (size_t)(end - variant) ||
                      memcmp(p->stage[i].name, variant, (size_t)(end - variant))))
        i--;
    return i;
}

/* Of the settings `STAGE:NAME` those of a stage, without its name; false after a message: one is of no stage. */
static bool settings_of_stage(ptxgen_session *s, const ptxgen_problem *p, int stage, ptxgen_plan_options *o)
{
    ptxgen_setting *own = arena_new(&s->arena, ptxgen_setting, o->setting_count + 1);
    int n = 0;
    for (int i = 0; i < o->setting_count; i++) {
        const int of = stage_of(&p->stages->data, o->setting[i].name);
        if (of < 0)
            return api_is_single(s, p, "a tunable is of one stage: write STAGE:NAME for it");
        own[n] = o->setting[i];
        own[n].name += of == stage ? strlen(p->stages->data.stage[stage].name) + 1 : 0;
        n += of == stage;
    }
    o->setting = own;
    o->setting_count = n;
    return true;
}

ptxgen_status api_stage_options(ptxgen_session *s, const ptxgen_problem *p, int stage, ptxgen_plan_options *o)
{
    const struct prog_stages *data = &p->stages->data;
    const int pinned = stage_of(data, o->variant);
    bool fine = o->setting_count == 0;
    if (o->variant && pinned < 0 && !api_is_single(s, p, "a variant is of one stage: write STAGE:ID for it"))
        return PTXGEN_USAGE;
    if (!api_fit_count(s, "setting_count", o->setting_count, 1 << 16, o->setting))
        return PTXGEN_USAGE;
    o->variant = pinned == stage ? strchr(o->variant, ':') + 1 : NULL;
    WITH_MEMORY(s, {
        o->size = stage_sizes(s, &data->stage[stage], o->size);
        fine = fine || settings_of_stage(s, p, stage, o);
    });
    return fine ? PTXGEN_OK : PTXGEN_USAGE;
}

struct in_stage {
    const char *name;
    int (*visit)(const ptxgen_variant *v, void *user);
    void *user;
    bool stopped;
};

static int visit_in_stage(const ptxgen_variant *v, void *user)
{
    struct in_stage *in = user;
    struct str id = { 0 };
    ptxgen_variant named = *v;
    str_printf(&id, "%s:%s", in->name, v->id);
    named.id = id.text;
    in->stopped = id.failed || in->visit(&named, in->user) != 0;
    str_finish(&id);
    return in->stopped;
}

ptxgen_status api_stage_variants(ptxgen_session *s, const ptxgen_problem *p, const ptxgen_variant_options *options,
                                 int (*visit)(const ptxgen_variant *v, void *user), void *user)
{
    struct in_stage in = { .visit = visit, .user = user };
    ptxgen_variant_options o;
    ptxgen_plan_options plan;
    ptxgen_status status = PTXGEN_OK;
    for (int i = 0; i < ptxgen_stage_count(p) && status == PTXGEN_OK && !in.stopped; i++) {
        if (!TAKE(s, options, &o) || !TAKE(s, o.plan, &plan))
            return PTXGEN_USAGE;
        o.plan = &plan;
        in.name = ptxgen_stage_name(p, i);
        status = api_stage_options(s, p, i, &plan);
        if (status == PTXGEN_OK)
            status = ptxgen_variants(s, p->stage[i], &o, visit_in_stage, &in);
    }
    return status;
}
