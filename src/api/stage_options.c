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

/* The names of the stages that run, with commas between them, into `name` as well. */
static const char *stages_that_run(ptxgen_session *s, const struct prog_stages *p, const char **name)
{
    const char *all = "";
    for (int i = 0; i < p->nstages; i++) {
        name[i] = p->stage[i].name;
        all = arena_printf(&s->arena, "%s%s%s", all, i ? ", " : "", name[i]);
    }
    return all;
}

/* The message about an option `STAGE:REST` of no stage that runs, or without a stage. */
static bool of_no_stage(ptxgen_session *s, const ptxgen_problem *p, const char *what, const char *option)
{
    const char *names[2 * STAGES_MAX], *all = stages_that_run(s, &p->stages->data, names), *file = s->diags.file;
    const char *colon = strchr(option, ':'), *in = NULL;
    const char *stage = arena_strndup(&s->arena, option, colon ? (size_t)(colon - option) : 0);
    int n = p->stages->data.nstages;
    struct diag *m;
    for (int i = 0; i < p->stages->nfusions && !in; i++) {
        in = strcmp(p->stages->fusion[i].stage, stage) != 0 ? NULL : p->stages->fusion[i].into;
        if (p->stages->fusion[i].into)
            names[n++] = p->stages->fusion[i].stage;
    }
    s->diags.file = NULL; /* it is not about the spec */
    if (!colon) {
        m = diag_error(&s->diags, D_STAGED, span_none(), "a %s is of one stage: write STAGE:%s", what, option);
        diag_hint(&s->diags, m, "the stages that run are %s", all);
    } else if (in) {
        m = diag_error(&s->diags, D_STAGED, span_none(), "%s: stage '%s' is part of '%s'", option, stage, in);
        diag_hint(&s->diags, m, "a %s of both is of '%s'", what, in);
    } else {
        m = diag_error(&s->diags, D_STAGED, span_none(), "%s: no stage is called '%s'; those that run are %s", option,
                       stage, all);
        diag_suggest(&s->diags, m, stage, names, n);
    }
    s->diags.file = file;
    return false;
}

/* Of the settings `STAGE:NAME` those of a stage, without its name; false after a message: one is of no stage. */
static bool settings_of_stage(ptxgen_session *s, const ptxgen_problem *p, int stage, ptxgen_plan_options *o)
{
    ptxgen_setting *own = arena_new(&s->arena, ptxgen_setting, o->setting_count + 1);
    int n = 0;
    for (int i = 0; i < o->setting_count; i++) {
        const int of = stage_of(&p->stages->data, o->setting[i].name);
        if (of < 0)
            return of_no_stage(s, p, "tunable", o->setting[i].name);
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
    if (o->variant && pinned < 0) {
        WITH_MEMORY(s, of_no_stage(s, p, "variant", o->variant));
        return PTXGEN_USAGE;
    }
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
