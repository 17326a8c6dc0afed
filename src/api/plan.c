/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - the public API: plans and programs. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_stages.h"
#include "coder.h"
#include "ptxgen/launch.h"
#include "explore/explain.h"
#include "llvmgen/llvmgen.h"
#include "explore/variants.h"

const struct program *ptxgen_program_data(const ptxgen_program *p) { return p->program; }

/* ---- plans ------------------------------------------------------------------------------------------------------- */

/* What has a place stands in the spec or in a tuning file, which is then to be mended; the rest came with the call. */
static ptxgen_status plan_failure(const ptxgen_session *s)
{
    const struct diag *last = s->diags.last;
    if (last && last->code == D_NO_STRATEGY)
        return PTXGEN_UNSUPPORTED;
    if (last && last->code == D_FILE)
        return PTXGEN_IO;
    return last && last->at.begin != SPAN_NONE ? PTXGEN_INVALID : PTXGEN_USAGE;
}

struct plan_options *api_plan_options(ptxgen_session *s, const ptxgen_plan_options *o)
{
    struct plan_options *to = arena_new(&s->arena, struct plan_options, 1);
    struct tunable *set = arena_new(&s->arena, struct tunable, o->setting_count);
    for (int i = 0; i < o->setting_count; i++)
        set[i] = (struct tunable){ arena_strdup(&s->arena, o->setting[i].name),
                                   arena_strdup(&s->arena, o->setting[i].value), span_none() };
    to->nset = o->setting_count;
    to->set = set;
    to->size = o->size;
    to->only_these = o->only_these != 0;
    to->sms = o->multiprocessors;
    return to;
}

/* The architecture that is asked for, or that of the known GPU that is named. */
static const char *arch_of(ptxgen_session *s, const ptxgen_plan_options *o)
{
    struct gpu_model m;
    if (o->arch)
        return o->arch;
    return o->gpu && gpu_model_find(o->gpu, 0, NULL, &m) ? arena_printf(&s->arena, "sm_%d", m.sm) : "sm_80";
}

bool api_find_device(ptxgen_session *s, const ptxgen_plan_options *o, struct device *device)
{
    const char *arch = arch_of(s, o);
    if (device_by_name(arch, o->ptx, device))
        return true;
    if (device_by_name(arch, 0, device)) {
        diag_error(&s->diags, D_BAD_TARGET, span_none(), "%s needs PTX %d.%d or newer, not %d.%d", arch,
                   device->ptx_min / 10, device->ptx_min % 10, o->ptx / 10, o->ptx % 10);
        return false;
    }
    const char *const *names;
    const int count = device_names(&names);
    struct diag *m = diag_error(&s->diags, D_BAD_TARGET, span_none(), "unknown architecture '%s'", arch);
    diag_suggest(&s->diags, m, arch, names, count);
    return false;
}

/* A handle for a plan, or the failure. */
static ptxgen_status plan_handle(ptxgen_session *s, const struct plan *plan, ptxgen_plan **out)
{
    if (!plan)
        return plan_failure(s);
    *out = arena_new(&s->arena, ptxgen_plan, 1);
    (*out)->plan = plan;
    return PTXGEN_OK;
}

/* A variant stands in place of the spec's own pin, and before the settings. */
static bool pin_variant(ptxgen_session *s, const char *id, const struct problem **p, struct plan_options *o)
{
    const struct tunable *pinned;
    int n;
    if (!variant_parse(s, id, &pinned, &n))
        return false;
    struct problem *bare = arena_new(&s->arena, struct problem, 1);
    *bare = **p;
    bare->strategy = NULL;
    bare->strategy_at = span_none();
    bare->ntunables = 0;
    struct tunable *set = arena_new(&s->arena, struct tunable, n + o->nset + 1);
    memcpy(set, pinned, sizeof *set * (size_t)n);
    memcpy(set + n, o->set, sizeof *set * (size_t)o->nset);
    o->set = set;
    o->nset += n;
    *p = bare;
    return true;
}

/* "dot: small reduce.block, large reduce.gather for sm_90" */
static void log_plan(ptxgen_session *s, double begin, const struct plan *plan)
{
    char cases[600] = "";
    for (int c = 0, n = 0; c < plan->ncases && n < (int)sizeof cases; c++)
        n += snprintf(cases + n, sizeof cases - (size_t)n, "%s%s %s", c ? ", " : "", plan->cases[c].code.name,
                      plan->cases[c].code.strategy);
    session_log(s, PTXGEN_LOG_INFO, begin, "%s: planned for %s: %s", plan->problem->name, plan->device.arch, cases);
}

ptxgen_status ptxgen_plan_create(ptxgen_session *s, const ptxgen_problem *p, const ptxgen_plan_options *options,
                                 ptxgen_plan **out)
{
    ptxgen_plan_options o;
    CLEAR(out);
    if (LACKS(s, s, p, out) || !TAKE(s, options, &o))
        return PTXGEN_USAGE;
    if (p->stages)
        return api_plan_stages(s, p, &o, out);
    const double begin = session_now();
    struct device device;
    ptxgen_status status = PTXGEN_USAGE;
    WITH_MEMORY(s, {
        const struct problem *problem = p->problem;
        struct plan_options *with = api_fit_plan_options(s, problem, &o) ? api_plan_options(s, &o) : NULL;
        if (with && api_find_device(s, &o, &device) && (!o.variant || pin_variant(s, o.variant, &problem, with))) {
            const bool tuned = api_apply_tuning(s, &o, problem, &device, with);
            status = plan_handle(s, tuned ? plan_create(s, problem, &device, with) : NULL, out);
        }
    });
    if (*out)
        log_plan(s, begin, (*out)->plan);
    return status;
}

ptxgen_status ptxgen_plan_from_string(ptxgen_session *s, const ptxgen_problem *p, const char *text, size_t length,
                                      const char *name, ptxgen_plan **out)
{
    ptxgen_status status = PTXGEN_INVALID;
    CLEAR(out);
    NEED(PTXGEN_USAGE, s, s, p, text, out);
    WITH_MEMORY(s, {
        const char *file = arena_strdup(&s->arena, name ? name : "<plan>");
        const struct plan *plan =
            p->stages ? NULL : plan_read(s, p->problem, file, arena_strndup(&s->arena, text, length), length);
        if (p->stages)
            status = api_read_stages(s, p, text, (int64_t)length, file, out);
        else if (plan)
            status = plan_handle(s, plan, out);
    });
    return status;
}

static char *text_of_stage(const ptxgen_plan *plan, void *user)
{
    (void)user;
    return ptxgen_plan_text(plan);
}

char *ptxgen_plan_text(const ptxgen_plan *plan)
{
    if (!plan)
        return NULL;
    if (plan->stages)
        return api_join(plan, text_of_stage, NULL);
    struct str out = { 0 };
    plan_print(plan->plan, &out);
    return str_take(&out);
}

bool api_fit_explain(ptxgen_session *s, const struct problem *p, const ptxgen_explain_options *o)
{
    return api_fit_sizes(s, p, o->size, -1) &&
           api_fit_count(s, "resource_count", o->resource_count, 1 << 16, o->resource) &&
           api_fit_number(s, "sm", o->sm, 0, 9999) &&
           api_fit_number(s, "multiprocessors", o->multiprocessors, 0, 1 << 20) &&
           api_fit_number(s, "memory_clock_khz", o->memory_clock_khz, 0, INT32_MAX) &&
           api_fit_number(s, "bus_bits", o->bus_bits, 0, 1 << 20) &&
           api_fit_number(s, "l2", o->l2 > INT64_MAX ? -1 : (int64_t)o->l2, 0, INT64_MAX) &&
           api_fit_seconds(s, "stream_seconds", o->stream_seconds) &&
           api_fit_seconds(s, "graph_seconds", o->graph_seconds);
}

char *ptxgen_explain(ptxgen_session *s, const ptxgen_plan *plan, const ptxgen_explain_options *options)
{
    ptxgen_explain_options o;
    if (LACKS(s, s, plan) || !TAKE(s, options, &o))
        return NULL;
    if (plan->stages)
        return api_explain_stages(s, plan, &o);
    struct str out = { 0 };
    jmp_buf oom;
    s->arena.oom = &oom;
    if (setjmp(oom) || !api_fit_explain(s, plan->plan->problem, &o) || !plan_explain(s, plan->plan, &o, &out)) {
        str_finish(&out);
        return NULL;
    }
    return str_take(&out);
}

char *ptxgen_plan_explain(ptxgen_session *s, const ptxgen_plan *plan, const int64_t *size)
{
    const ptxgen_explain_options options = { .struct_size = sizeof options, .size = size };
    return ptxgen_explain(s, plan, &options);
}

int ptxgen_plan_case(ptxgen_session *s, const ptxgen_plan *plan, const ptxgen_explain_options *options)
{
    ptxgen_explain_options o;
    if (LACKS(s, s, plan, options) || !TAKE(s, options, &o) || plan->stages)
        return -1;
    struct explained x = { 0 };
    bool known = false;
    WITH_MEMORY_OR(s, -1, known = api_fit_explain(s, plan->plan->problem, &o) && explain_gather(s, plan->plan, &o, &x));
    return known && x.at_size ? x.prediction.case_index : -1;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

bool api_compile_options(ptxgen_session *s, const ptxgen_compile_options *options, struct llvmgen_options *to)
{
    ptxgen_compile_options o;
    bool fits = TAKE(s, options, &o);
    if (fits)
        WITH_MEMORY_OR(s, false,
                       fits = api_fit_number(s, "pipeline", o.pipeline, 0, 3) &&
                              api_fit_number(s, "threads", o.threads, 0, INT32_MAX));
    *to = (struct llvmgen_options){ .pipeline = o.pipeline == 3   ? PIPELINE_O3
                                                : o.pipeline == 2 ? PIPELINE_O2
                                                                  : PIPELINE_LEAN,
                                    .threads = o.threads,
                                    .libdevice = o.math_library };
    return fits;
}

ptxgen_status api_codegen_failure(const ptxgen_session *s)
{
    const struct diag *last = s->diags.last;
    if (last && last->code == D_NO_ROOM)
        return PTXGEN_NO_MEMORY;
    return last && (last->code == D_NO_MATH_LIBRARY || last->code == D_NO_LLVM) ? PTXGEN_UNSUPPORTED : PTXGEN_INTERNAL;
}

void ptxgen_program_destroy(ptxgen_program *program)
{
    if (!program)
        return;
    if (program->stages)
        api_program_stages_destroy(program->stages);
    program_destroy(program->program);
    free(program);
}

static char *program_text(const ptxgen_program *p, void (*print)(const struct program *, struct str *))
{
    struct str out = { 0 };
    if (!p)
        return NULL;
    print(p->program, &out);
    return str_take(&out);
}

char *ptxgen_program_ptx(const ptxgen_program *p)
{
    return p && p->stages ? api_stages_text(p, stages_ptx) : program_text(p, program_ptx);
}

char *ptxgen_program_manifest(const ptxgen_program *p)
{
    return p && p->stages ? api_stages_text(p, stages_manifest) : program_text(p, program_manifest);
}

char *ptxgen_program_header(const ptxgen_program *p)
{
    return p && p->stages ? api_stages_text(p, stages_header) : program_text(p, program_header);
}

char *ptxgen_program_tvm_ffi(const ptxgen_program *p)
{
    return p && p->stages ? api_stages_text(p, stages_tvm_ffi) : program_text(p, program_tvm_ffi);
}

/* One, or that of each stage. */
static int programs_of(const ptxgen_program *p) { return p->stages ? p->stages->stages->data.nstages : 1; }
static struct program *program_number(const ptxgen_program *p, int i)
{
    return p->stages ? p->stages->stage[i]->program : p->program;
}

/* The program that case *i belongs to, and its number there: cases of stages are counted through.  NULL: none. */
static struct program *program_of_case(const ptxgen_program *p, int *i)
{
    for (int k = 0; p && *i >= 0 && k < programs_of(p); k++) {
        struct program *one = program_number(p, k);
        if (*i < one->ncases)
            return one;
        *i -= one->ncases;
    }
    return NULL;
}

ptxgen_status ptxgen_program_add_code(ptxgen_program *p, int i, const char *arch, const void *code, size_t bytes)
{
    struct program *one = program_of_case(p, &i);
    if (!one || !arch || !code || bytes == 0 || bytes > INT_MAX)
        return PTXGEN_USAGE;
    const int number = !strncmp(arch, "sm_", 3) ? atoi(arch + 3) : 0;
    if (number <= 0)
        return PTXGEN_USAGE;
    return program_add_code(one, one->cases[i].kernel[0].module, number, code, bytes) ? PTXGEN_OK : PTXGEN_NO_MEMORY;
}

ptxgen_status ptxgen_program_keep_code(const ptxgen_program *p, const char *place)
{
    struct cache cache;
    ptxgen_status status = p ? PTXGEN_OK : PTXGEN_USAGE;
    cache_locate(&cache, place);
    for (int i = 0; cache.enabled && status == PTXGEN_OK && i < programs_of(p); i++)
        status = coder_keep_code(program_number(p, i), &cache);
    return status;
}

int ptxgen_program_case_count(const ptxgen_program *p)
{
    int count = 0;
    for (int i = 0; p && i < programs_of(p); i++)
        count += program_number(p, i)->ncases;
    return count;
}

const char *ptxgen_program_case_name(const ptxgen_program *p, int i)
{
    int number = i;
    const struct program *one = program_of_case(p, &number);
    return !one ? NULL : p->stages ? p->stages->case_name[i] : one->cases[number].name;
}

const char *ptxgen_program_case_ptx(const ptxgen_program *p, int i)
{
    const struct program *one = program_of_case(p, &i);
    return one ? one->module[one->cases[i].kernel[0].module].ptx : NULL;
}

struct ir_of {
    ptxgen_session *s;
    const ptxgen_compile_options *options;
};

static char *ir_of_stage(const ptxgen_plan *plan, void *user)
{
    const struct ir_of *of = user;
    return ptxgen_plan_ir(of->s, plan, of->options);
}

char *ptxgen_plan_ir(ptxgen_session *s, const ptxgen_plan *plan, const ptxgen_compile_options *options)
{
    struct llvmgen_options o;
    if (LACKS(s, s, plan) || !api_compile_options(s, options, &o))
        return NULL;
    if (plan->stages)
        return api_join(plan, ir_of_stage, &(struct ir_of){ s, options });
    struct str out = { 0 };
    jmp_buf oom;
    s->arena.oom = &oom;
    if (setjmp(oom) || !llvmgen_ir(s, plan->plan, &o, &out)) {
        str_finish(&out);
        return NULL;
    }
    return str_take(&out);
}
