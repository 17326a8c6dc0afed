/* SPDX-License-Identifier: Apache-2.0 */
/* specs.c - one spec: compiled once with the default and once with each strategy that fits, all run at every size. */
#include <stdlib.h>
#include <string.h>

#include "gpu_tests.h"

/* Where a tool looks on, all takes long: a strategy is run on so many specs of each form of a shard, the first that it
 * fits. */
enum { TARGETS_MAX = 64, SANITIZED_SPECS = 1 };

/* The default, every strategy by name, and variants that the sizes here would not show. */
static const char *const strategies[] = {
    NULL,
#define STRATEGY(id, kind, name, reference, tunables, chain) name,
#include "lower/strategies.def"
#undef STRATEGY
    "reduce.block@cluster=8",
    "reduce.bins@lanes=1",
    "reduce.bins@bins=0",
    "reduce.bins@lanes=0,bins=96,parts=1024",
    "scan.resident@across=1",
    "scan.lookback@across=1",
    "segreduce.subwarp@lanes=1",
    "segreduce.block@parts=0",
    "segreduce.block@queue=1",
    "scan.block@cluster=2",
};

void expect_strategies(void)
{
    for (size_t i = 1; i < sizeof strategies / sizeof *strategies; i++)
        expect_strategy(strategies[i]);
    expect_forms();
}

/* ---- targets --------------------------------------------------------------------------------- */
bool promises_bits(const ptxgen_program *program)
{
    char *manifest = ptxgen_program_manifest(program);
    bool any =
        manifest == NULL || strstr(manifest, "\"determinism\": \"any\"") || strstr(manifest, "\"determinism\":\"any\"");

    ptxgen_free(manifest);
    return !any;
}

static ptxgen_status make_plan(struct suite *t, const ptxgen_problem *problem, const char *strategy, ptxgen_plan **plan)
{
    ptxgen_plan_options options = PTXGEN_PLAN_OPTIONS_INIT;
    char arch[16];

    snprintf(arch, sizeof arch, "sm_%d", t->gpu ? ptxgen_gpu_describe(t->gpu)->sm : 90);
    options.arch = arch;
    options.variant = strategy;
    return ptxgen_plan_create(t->s, problem, &options, plan);
}

static bool is_pinned(const ptxgen_plan *plan)
{
    char *variant = ptxgen_plan_variant(plan);
    const bool pinned = variant && strcmp(variant, "default") != 0;

    ptxgen_free(variant);
    return pinned;
}

/* PTXGEN_UNSUPPORTED and PTXGEN_USAGE: the strategy does not fit. */
static ptxgen_status make_target(struct suite *t, const ptxgen_problem *problem, const char *strategy,
                                 struct target *out)
{
    const double since = seconds_now();
    ptxgen_status status = make_plan(t, problem, strategy, &out->plan);

    out->name = strategy ? strategy : "default";
    out->pinned = status == PTXGEN_OK && is_pinned(out->plan);
    /* full: the parts of a spec after the first take programs from the cache */
    if (status == PTXGEN_OK)
        status = ptxgen_compile_cached(t->s, problem, out->plan, NULL, t->full ? NULL : "off", &out->program);
    if (status == PTXGEN_OK && t->gpu)
        status = ptxgen_load(t->s, t->gpu, out->program, &out->loaded);
    if (status == PTXGEN_OK && !t->gpu)
        status = ptxgen_host_create(t->s, out->plan, NULL, &out->host);
    out->same_bits = status == PTXGEN_OK && promises_bits(out->program);
    note_time(PHASE_PLAN, since);
    return status;
}

static void finish_target(struct target *target)
{
    begin_context_work();
    ptxgen_loaded_destroy(target->loaded);
    ptxgen_host_destroy(target->host);
    ptxgen_program_destroy(target->program);
    end_context_work();
}

static int make_targets(struct suite *t, const char *path, const ptxgen_problem *problem, struct target *targets)
{
    /* sanitize, so one thread: run with this one so far */
    static int specs[sizeof strategies / sizeof *strategies][FORMS];
    int n = 0;

    for (size_t i = 0; i < sizeof strategies / sizeof *strategies && n < TARGETS_MAX; i++) {
        ptxgen_status status;

        if ((strategies[i] && t->without && strcmp(strategies[i], t->without) == 0) ||
            (t->sanitize && specs[i][t->form] == SANITIZED_SPECS))
            continue;
        targets[n] = (struct target){ 0 };
        status = make_target(t, problem, strategies[i], &targets[n]);
        if (status == PTXGEN_OK) {
            specs[i][t->form] += t->sanitize;
            note_fits(t, targets[n].name);
            n++;
            continue;
        }
        finish_target(&targets[n]);
        if (status != PTXGEN_UNSUPPORTED && status != PTXGEN_USAGE && status != PTXGEN_INVALID) {
            note_failure(t, "%s %s: %s", path, targets[n].name, ptxgen_status_text(status));
        }
        ptxgen_diagnostics_clear(t->s);
        if (i == 0)
            break; /* not supported at all */
    }
    return n;
}

/* ---- in place -------------------------------------------------------------------------------- */
/* Scans each of whose results depends on elements up to its own in the scan's order, and on nothing at other places. */
static const char *const in_place_specs[] = { "scan_sum.yaml",  "scan_exclusive.yaml", "scan_from_right.yaml",
                                              "scan_rows.yaml", "scan_columns.yaml",   "scan_planes.yaml",
                                              "scan_i32.yaml",  "scan_f32.yaml",       "scan_i64.yaml",
                                              "scan_f64.yaml",  "segscan.yaml",        "colscan.yaml",
                                              "scan_i8.yaml",   "scan_channels.yaml" };

static bool same_arrays(const ptxgen_array_info *a, const ptxgen_array_info *b)
{
    bool same = a->rank == b->rank && a->field_count == b->field_count && a->element_size == b->element_size;

    for (int i = 0; i < a->rank && same; i++)
        same = a->size_index[i] == b->size_index[i] && a->size_add[i] == b->size_add[i];
    for (int f = 0; f < a->field_count && same; f++)
        same = a->field_type[f] == b->field_type[f] && a->field_offset[f] == b->field_offset[f];
    return same;
}

static int in_place_input(const char *path, const ptxgen_problem *problem)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    ptxgen_array_info in, out;

    for (size_t i = 0; i < sizeof in_place_specs / sizeof *in_place_specs; i++)
        if (strcmp(name, in_place_specs[i]) == 0 && ptxgen_problem_input(problem, 0, &in) == PTXGEN_OK &&
            ptxgen_problem_output(problem, 0, &out) == PTXGEN_OK && same_arrays(&in, &out))
            return 0;
    return -1;
}

/* ---- sizes ----------------------------------------------------------------------------------- */
/* A spec with what was compiled of it. */
struct compiled {
    struct suite *t;
    const char *path;
    const ptxgen_problem *problem;
    int n, visited;
    struct target target[TARGETS_MAX];
};

static void sizes_text(const struct sample *x, char *text, size_t length)
{
    text[0] = 0;
    for (int k = 0; k < x->nsizes; k++)
        snprintf(text + strlen(text), length - strlen(text), " %s=%lld", ptxgen_problem_size_name(x->problem, k),
                 (long long)x->size[k]);
}

static void run_size(void *context, const int64_t *size)
{
    struct compiled *c = context;
    struct suite *t = c->t;
    struct sample x;
    const double since = seconds_now();
    char sizes[200];
    bool ok;

    if (c->visited++ % t->parts != t->part)
        return;
    ok = sample_create(t, c->problem, size, &x);
    note_time(PHASE_REFERENCE, since);
    sizes_text(&x, sizes, sizeof sizes);
    for (int i = 0; i < c->n; i++) {
        char why[400] = "";
        enum outcome outcome;

        watch(t, "%s %s%s", c->path, c->target[i].name, sizes);
        outcome = ok ? run_target(t, &c->target[i], &x, why, sizeof why) : OUTCOME_FAILED;
        unwatch(t);
        if (outcome != OUTCOME_FAILED)
            note_outcome(t, c->target[i].name, outcome);
        else
            note_failure(t, "%s %s%s: %s", c->path, c->target[i].name, sizes, ok ? why : "no reference");
        if (outcome == OUTCOME_FAILED)
            leave_if_lost(t);
    }
    sample_finish(&x);
}

/* ---- specs ----------------------------------------------------------------------------------- */
static int most_fields(const ptxgen_problem *problem)
{
    int most = 1;

    for (int o = 0; o < ptxgen_problem_output_count(problem); o++) {
        ptxgen_array_info a;

        if (ptxgen_problem_output(problem, o, &a) == PTXGEN_OK && a.field_count > most)
            most = a.field_count;
    }
    return most;
}

/* Of a problem's text, the line "space [m, n] over n": the dimensions, and those that are combined. */
static enum form form_of_space(const char *text)
{
    const char *space = strstr(text, "\nspace ["), *end = space ? strchr(space, ']') : NULL;
    const char *over = end && strncmp(end, "] over ", 7) == 0 ? end + 7 : NULL, *last = end;
    size_t dimensions, combined, length;

    if (over == NULL)
        return FORM_WHOLE;
    space += strlen("\nspace [");
    dimensions = (size_t)(end - space);
    combined = strcspn(over, "\n");
    if (dimensions == combined && strncmp(space, over, combined) == 0)
        return FORM_WHOLE;
    while (last > space && last[-1] != ' ')
        last--;
    length = (size_t)(end - last);
    return length <= combined && strncmp(over + combined - length, last, length) == 0 &&
                   (length == combined || over[combined - length - 1] == ' ')
               ? FORM_ROWS
               : FORM_COLUMNS;
}

static enum form form_of(const ptxgen_problem *problem)
{
    char *text = ptxgen_problem_text(problem);
    enum form form = text ? form_of_space(text) : FORM_WHOLE;

    ptxgen_free(text);
    for (int i = 0; i < ptxgen_problem_input_count(problem); i++) {
        ptxgen_array_info a;

        if (ptxgen_problem_input(problem, i, &a) == PTXGEN_OK &&
            (a.role == PTXGEN_ROLE_SEGMENT_OFFSETS || a.role == PTXGEN_ROLE_SEGMENT_FLAGS))
            form = a.role == PTXGEN_ROLE_SEGMENT_OFFSETS ? FORM_OFFSETS : FORM_FLAGS;
    }
    return form;
}

void run_spec(struct suite *t, const char *path)
{
    struct compiled c = { .t = t, .path = path };
    const double since = seconds_now();
    ptxgen_problem *problem;

    if (ptxgen_problem_from_file(t->s, path, &problem) != PTXGEN_OK) {
        note_failure(t, "%s: not a valid spec", path);
        return;
    }
    c.problem = problem;
    t->fields = most_fields(problem);
    t->form = form_of(problem);
    watch(t, "%s, compiling", path);
    c.n = make_targets(t, path, problem, c.target);
    unwatch(t);
    for (int i = 0; i < c.n; i++)
        c.target[i].in_place = in_place_input(path, problem);
    if (c.n > 0)
        for_sizes(t, ptxgen_problem_size_count(problem), run_size, &c);
    else if (t->part == 0 && !t->sanitize)
        note_skip(t, path);
    for (int i = 0; i < c.n; i++)
        finish_target(&c.target[i]);
    note_spec_time(path, seconds_now() - since);
}

static bool load_problem(struct suite *t, const ptxgen_problem *problem, const char *strategy, ptxgen_program **program,
                         ptxgen_loaded **loaded)
{
    ptxgen_plan *plan;

    return make_plan(t, problem, strategy, &plan) == PTXGEN_OK &&
           ptxgen_compile(t->s, plan, NULL, program) == PTXGEN_OK &&
           ptxgen_load(t->s, t->gpu, *program, loaded) == PTXGEN_OK;
}

bool load_spec(struct suite *t, const char *path, const char *strategy, ptxgen_program **program,
               ptxgen_loaded **loaded)
{
    ptxgen_problem *problem;

    return ptxgen_problem_from_file(t->s, path, &problem) == PTXGEN_OK &&
           load_problem(t, problem, strategy, program, loaded);
}

bool load_text(struct suite *t, const char *text, const char *strategy, ptxgen_program **program,
               ptxgen_loaded **loaded)
{
    ptxgen_problem *problem;

    return ptxgen_problem_from_string(t->s, text, strlen(text), "text", &problem) == PTXGEN_OK &&
           load_problem(t, problem, strategy, program, loaded);
}
