/* SPDX-License-Identifier: Apache-2.0 */
/* stages.c - the public API: specs with stages, as plans, on the host, and as the reference.
 *
 * The handle of such a spec has handles of its stages, and a call on it is calls on these.
 */
#include "ptxgen/stages.h"

#include <stdlib.h>
#include <string.h>

#include "api_stages.h"
#include "explore/explain.h"
#include "lower/plan.h"
#include "ref/ref.h"

int ptxgen_stage_count(const ptxgen_problem *p) { return p && p->stages ? p->stages->data.nstages : 0; }

const char *ptxgen_stage_name(const ptxgen_problem *p, int stage)
{
    return stage >= 0 && stage < ptxgen_stage_count(p) ? p->stages->data.stage[stage].name : NULL;
}

const ptxgen_problem *ptxgen_stage_problem(const ptxgen_problem *p, int stage)
{
    return stage >= 0 && stage < ptxgen_stage_count(p) ? p->stage[stage] : NULL;
}

/* The number in stages->fusion of the stage that has become part of another as the fused-th, or -1. */
static int fusion_of(const ptxgen_problem *p, int fused)
{
    int i = p && p->stages && fused >= 0 ? 0 : -1;
    for (; i >= 0; i++) {
        if (i == p->stages->nfusions)
            return -1;
        if (p->stages->fusion[i].into && fused-- == 0)
            return i;
    }
    return i;
}

const char *ptxgen_fused_name(const ptxgen_problem *p, int stage)
{
    const int i = fusion_of(p, stage);
    return i < 0 ? NULL : p->stages->fusion[i].stage;
}

const char *ptxgen_fused_into(const ptxgen_problem *p, int stage)
{
    const int i = fusion_of(p, stage);
    return i < 0 ? NULL : p->stages->fusion[i].into;
}

const ptxgen_problem *ptxgen_fused_problem(const ptxgen_problem *p, int stage)
{
    const int i = fusion_of(p, stage);
    return i < 0 ? NULL : p->fused[i];
}

const ptxgen_plan *ptxgen_stage_plan(const ptxgen_plan *plan, int stage)
{
    return plan && plan->stages && stage >= 0 && stage < plan->stages->data.nstages ? plan->stage[stage] : NULL;
}

bool api_is_single(ptxgen_session *s, const ptxgen_problem *p, const char *what)
{
    if (p->stages && s)
        session_report(s, D_STAGED, what);
    return !p->stages;
}

void *api_alloc(ptxgen_session *s, size_t bytes)
{
    void *memory = NULL;
    WITH_MEMORY_OR(s, NULL, memory = arena_alloc(&s->arena, bytes));
    return memory;
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static ptxgen_status plan_stage(ptxgen_session *s, const ptxgen_problem *p, int stage, ptxgen_plan_options o,
                                ptxgen_plan *to)
{
    const ptxgen_status status = api_stage_options(s, p, stage, &o);
    return status == PTXGEN_OK ? ptxgen_plan_create(s, p->stage[stage], &o, &to->stage[stage]) : status;
}

ptxgen_status api_plan_stages(ptxgen_session *s, const ptxgen_problem *p, const ptxgen_plan_options *o,
                              ptxgen_plan **out)
{
    const struct prog_stages *data = &p->stages->data;
    ptxgen_status status = PTXGEN_OK;
    ptxgen_plan *plan = api_alloc(s, sizeof *plan), **stage = api_alloc(s, sizeof *stage * (size_t)data->nstages);
    if (!plan || !stage)
        return PTXGEN_NO_MEMORY;
    plan->stages = p->stages;
    plan->stage = stage;
    for (int i = 0; i < data->nstages && status == PTXGEN_OK; i++)
        status = plan_stage(s, p, i, *o, plan);
    if (status == PTXGEN_OK)
        *out = plan;
    return status;
}

/* Where the part of a stage begins in the text of a plan, from `from` on; -1: there is none. */
static int64_t part_of(const char *text, int64_t from, int64_t length, const char *name)
{
    static const char head[] = "# stage ";
    const int64_t nhead = sizeof head - 1, nname = (int64_t)strlen(name);
    for (int64_t i = from; i + nhead + nname <= length; i++)
        if ((i == 0 || text[i - 1] == '\n') && !memcmp(text + i, head, (size_t)nhead) &&
            !memcmp(text + i + nhead, name, (size_t)nname) &&
            (i + nhead + nname == length || strchr("\r\n", text[i + nhead + nname])))
            return i;
    return -1;
}

/* The text with blanks in all lines but [begin, end): so that places in messages are those of the whole. */
static char *only(ptxgen_session *s, const char *text, int64_t length, int64_t begin, int64_t end)
{
    char *part = arena_strndup(&s->arena, text, (size_t)length);
    for (int64_t i = 0; i < length; i++)
        if ((i < begin || i >= end) && part[i] != '\n')
            part[i] = ' ';
    return part;
}

ptxgen_status api_read_stages(ptxgen_session *s, const ptxgen_problem *p, const char *text, int64_t length,
                              const char *name, ptxgen_plan **out)
{
    const struct prog_stages *data = &p->stages->data;
    int64_t at[STAGES_MAX + 1];
    at[data->nstages] = length;
    for (int i = 0; i < data->nstages; i++) {
        at[i] = part_of(text, i ? at[i - 1] + 1 : 0, length, data->stage[i].name);
        if (at[i] < 0) {
            diag_error(&s->diags, D_BAD_PLAN, span_none(),
                       "a plan of stages has a part for each; the line `# stage %s` is missing, or not in its place",
                       data->stage[i].name);
            return PTXGEN_INVALID;
        }
    }
    ptxgen_plan *plan = arena_new(&s->arena, ptxgen_plan, 1);
    *plan = (ptxgen_plan){ .stages = p->stages, .stage = arena_new(&s->arena, ptxgen_plan *, data->nstages) };
    for (int i = 0; i < data->nstages; i++) {
        const char *part = only(s, text, length, i ? at[i] : 0, at[i + 1]);
        plan->stage[i] = arena_new(&s->arena, ptxgen_plan, 1);
        plan->stage[i]->plan = plan_read(s, p->stage[i]->problem, name, part, (size_t)length);
        if (!plan->stage[i]->plan)
            return PTXGEN_INVALID;
    }
    *out = plan;
    return PTXGEN_OK;
}

/* ---- files of code ----------------------------------------------------------------------------------------------- */

static ptxgen_status name_cases(ptxgen_session *s, const ptxgen_program *program)
{
    struct program_stages *of = program->stages;
    int n = 0;
    WITH_MEMORY(s, {
        of->case_name = arena_new(&s->arena, const char *, ptxgen_program_case_count(program) + 1);
        for (int i = 0; i < of->stages->data.nstages; i++)
            for (int c = 0; c < of->stage[i]->program->ncases; c++)
                of->case_name[n++] = arena_printf(&s->arena, "%s.%s", of->stages->data.stage[i].name,
                                                  of->stage[i]->program->cases[c].name);
    });
    return PTXGEN_OK;
}

ptxgen_status api_compile_stages(ptxgen_session *s, const ptxgen_problem *problem, const ptxgen_plan *plan,
                                 const ptxgen_compile_options *options, const char *place, ptxgen_program **out)
{
    const int count = plan->stages->data.nstages;
    ptxgen_program *handle = calloc(1, sizeof *handle);
    struct program_stages *of = calloc(1, sizeof *of + sizeof of->stage[0] * (size_t)count);
    ptxgen_status status = handle && of ? PTXGEN_OK : PTXGEN_NO_MEMORY;
    if (status != PTXGEN_OK) {
        free(handle);
        free(of);
        return status;
    }
    *of = (struct program_stages){ .stages = plan->stages, .holds = s };
    handle->stages = of;
    s->holders++;
    for (int i = 0; i < count && status == PTXGEN_OK; i++)
        status = problem ? ptxgen_compile_cached(s, problem->stage[i], plan->stage[i], options, place, &of->stage[i])
                         : ptxgen_compile(s, plan->stage[i], options, &of->stage[i]);
    if (status == PTXGEN_OK)
        status = name_cases(s, handle);
    if (status == PTXGEN_OK)
        *out = handle;
    else
        ptxgen_program_destroy(handle);
    return status;
}

const struct prog_stages *ptxgen_program_stages(const ptxgen_program *program, ptxgen_program *const **stage)
{
    if (!program->stages)
        return NULL;
    *stage = program->stages->stage;
    return &program->stages->stages->data;
}

void api_program_stages_destroy(struct program_stages *of)
{
    for (int i = 0; i < of->stages->data.nstages; i++)
        ptxgen_program_destroy(of->stage[i]);
    ptxgen_session_destroy(of->holds);
    free(of);
}

char *api_stages_text(const ptxgen_program *p,
                      void (*print)(const struct prog_stages *p, const struct program *const *stage, struct str *out))
{
    const struct program *stage[STAGES_MAX];
    struct str out = { 0 };
    for (int i = 0; i < p->stages->stages->data.nstages; i++)
        stage[i] = p->stages->stage[i]->program;
    print(&p->stages->stages->data, stage, &out);
    return str_take(&out);
}

char *api_join(const ptxgen_plan *plan, char *(*text)(const ptxgen_plan *stage, void *user), void *user)
{
    const struct prog_stages *data = &plan->stages->data;
    struct str out = { 0 };
    bool good = true;
    for (int i = 0; i < data->nstages && good; i++) {
        char *of = text(plan->stage[i], user);
        str_printf(&out, "%s# stage %s\n%s", i ? "\n" : "", data->stage[i].name, of ? of : "");
        good = of != NULL;
        free(of);
    }
    if (good)
        return str_take(&out);
    str_finish(&out);
    return NULL;
}

char *api_explain_stages(ptxgen_session *s, const ptxgen_plan *plan, const ptxgen_explain_options *o)
{
    const struct plan *of[STAGES_MAX];
    struct str out = { 0 };
    jmp_buf oom;
    s->arena.oom = &oom;
    if (setjmp(oom)) {
        str_finish(&out);
        return NULL;
    }
    for (int i = 0; i < plan->stages->data.nstages; i++) {
        const ptxgen_explain_options own = explain_stage_options(s, &plan->stages->data.stage[i], *o);
        of[i] = plan->stage[i]->plan;
        if (!api_fit_explain(s, of[i]->problem, &own))
            return NULL;
    }
    if (stages_explain(s, plan->stages, of, o, &out))
        return str_take(&out);
    str_finish(&out);
    return NULL;
}

/* ---- on the host ------------------------------------------------------------------------------------------------- */

/* A walk on host memory. */
struct host_walk {
    ptxgen_session *s;
    const struct stages *stages;
    struct host_stages *host; /* NULL: the reference */
    const struct simt_options *modes;
    ptxgen_stage_visitor *visit;
    void *user;
    int64_t step; /* -1: before the first */
    ptxgen_status status;
};

static ptxgen_status run_one(struct host_walk *w, int stage, const struct run_args *args)
{
    if (!w->host) {
        const char *wrong = NULL;
        WITH_MEMORY(w->s, {
            wrong = ref_run(w->s, w->stages->problem[stage], args);
            if (wrong)
                diag_error(&w->s->diags, D_RUN_DATA, span_none(), "stage %s: %s", w->stages->data.stage[stage].name,
                           wrong);
        });
        return wrong ? PTXGEN_INVALID : PTXGEN_OK;
    }
    ptxgen_status status = PTXGEN_OK;
    struct simt_report report;
    simt_run(w->host->stage[stage]->code, args, w->host->stage[stage]->control, w->modes, &report);
    WITH_MEMORY(w->s, status = simt_status(w->s, &report));
    return status;
}

static bool walk_run(void *user, int stage, const struct run_args *args)
{
    struct host_walk *w = user;
    const ptxgen_arguments shown = { args->size, args->input, args->output, (const ptxgen_value *)args->param };
    w->step += stage == 0;
    w->status = run_one(w, stage, args);
    const bool goes_on = w->status == PTXGEN_OK && (!w->visit || w->visit(stage, w->step, &shown, w->user) == 0);
    return goes_on;
}

static bool walk_copy(void *user, void *to, const void *from, int64_t bytes)
{
    (void)user;
    memmove(to, from, (size_t)bytes);
    return true;
}

static bool walk_holds(void *user, const void *flag, bool *holds)
{
    (void)user;
    *holds = *(const unsigned char *)flag;
    return true;
}

static ptxgen_status walk(struct host_walk *w, const struct run_args *args)
{
    const struct prog_stages *p = &w->stages->data;
    const struct stages_doer doer = { w, walk_run, walk_copy, walk_holds, false };
    const char *why = "the arrays between stages are too large at these sizes";
    struct stages_layout layout;
    if (!stages_place(p, args->size, &layout) || stages_steps(p, args->param, &why) < 0) {
        WITH_MEMORY(w->s, diag_error(&w->s->diags, D_RUN_DATA, span_none(), "%s: %s", w->stages->name, why));
        return PTXGEN_INVALID;
    }
    void *memory = aligned_alloc(256, (size_t)layout.bytes + 256);
    if (!memory)
        return PTXGEN_NO_MEMORY;
    stages_walk(p, args, &layout, memory, &doer);
    free(memory);
    return w->status;
}

ptxgen_status api_evaluate_stages(ptxgen_session *s, const ptxgen_problem *p, const struct run_args *args)
{
    return walk(&(struct host_walk){ .s = s, .stages = p->stages, .step = -1 }, args);
}

ptxgen_status api_host_stages(ptxgen_session *s, const ptxgen_plan *plan, const ptxgen_compile_options *o,
                              ptxgen_host **out)
{
    const int count = plan->stages->data.nstages;
    ptxgen_host *host = calloc(1, sizeof *host);
    struct host_stages *of = calloc(1, sizeof *of + sizeof of->stage[0] * (size_t)count);
    ptxgen_status status = host && of ? PTXGEN_OK : PTXGEN_NO_MEMORY;
    if (status != PTXGEN_OK) {
        free(host);
        free(of);
        return status;
    }
    host->case_index = -1;
    host->stages = of;
    of->stages = plan->stages;
    of->holds = s;
    s->holders++;
    for (int i = 0; i < count && status == PTXGEN_OK; i++)
        status = ptxgen_host_create(s, plan->stage[i], o, &of->stage[i]);
    if (status == PTXGEN_OK)
        *out = host;
    else
        ptxgen_host_destroy(host);
    return status;
}

void api_host_stages_destroy(struct host_stages *of)
{
    for (int i = 0; i < of->stages->data.nstages; i++)
        ptxgen_host_destroy(of->stage[i]);
    ptxgen_session_destroy(of->holds);
    free(of);
}

ptxgen_status ptxgen_host_run_stages(ptxgen_session *s, ptxgen_host *host, const ptxgen_arguments *args,
                                     const char *modes, ptxgen_stage_visitor *visit, void *user)
{
    NEED(PTXGEN_USAGE, s, s, host, args, visit ? host : NULL);
    if (!host->stages)
        return ptxgen_host_run(s, host, args, modes);
    return api_host_run_stages(s, host, args, modes, visit, user);
}

ptxgen_status api_host_run_stages(ptxgen_session *s, ptxgen_host *host, const ptxgen_arguments *args, const char *modes,
                                  ptxgen_stage_visitor *visit, void *user)
{
    struct fit_arguments a;
    struct simt_options o;
    const ptxgen_status status = api_read_modes(s, modes, &o);
    if (status != PTXGEN_OK)
        return status;
    if (!api_fit_arguments(s, host->stages->stages->data.shape, args, &a))
        return PTXGEN_USAGE;
    o.watch = o.guard ? NULL : host->watch;
    o.watch_user = host->watch_user;
    return walk(&(struct host_walk){ s, host->stages->stages, host->stages, &o, visit, user, -1, PTXGEN_OK }, &a.args);
}
