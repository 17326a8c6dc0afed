/* SPDX-License-Identifier: Apache-2.0 */
/* space.c - see space.h.
 *
 * A variant is compiled in a session of its own, which reads the spec again: that takes microseconds, and shares
 * nothing.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parallel.h"
#include "space.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- gathering ---- */
static int copy_variant(struct variant_item *to, const ptxgen_variant *v)
{
    *to = (struct variant_item){ .id = strdup(v->id),
                                 .strategy = strdup(v->strategy),
                                 .why_not = v->why_not ? strdup(v->why_not) : NULL,
                                 .ntunables = v->tunable_count,
                                 .name = calloc((size_t)v->tunable_count + 1, sizeof *to->name),
                                 .value = calloc((size_t)v->tunable_count + 1, sizeof *to->value),
                                 .predicted = v->predicted_seconds,
                                 .compiled.same_as = -1 };
    bool fine = to->id && to->strategy && to->name && to->value && (to->why_not || !v->why_not);
    for (int i = 0; fine && i < v->tunable_count; i++) {
        to->name[i] = strdup(v->tunable[i]);
        to->value[i] = v->value[i];
        fine = to->name[i] != NULL;
    }
    return fine ? 0 : -1;
}

static int gather(const ptxgen_variant *v, void *user)
{
    struct space *sp = user;
    if (v->why_not && sp->part != SPACE_ALL && v->tunable_count > 0) {
        return 0;
    }
    if (sp->n == sp->capacity) {
        int capacity = sp->capacity ? 2 * sp->capacity : 256;
        struct variant_item *grown = realloc(sp->item, sizeof *grown * (size_t)capacity);
        if (!grown) {
            return 1;
        }
        sp->item = grown;
        sp->capacity = capacity;
    }
    return copy_variant(&sp->item[sp->n++], v) != 0;
}

int space_gather(ptxgen_session *s, const struct options *o, const ptxgen_problem *p, const int64_t *size,
                 enum space_part part, struct space *out)
{
    ptxgen_plan_options plan = PTXGEN_PLAN_OPTIONS_INIT;
    ptxgen_setting setting[SETTINGS_MAX];
    char names[4096];
    *out = (struct space){ .part = part };
    if (o->plan || o->variant) {
        return fail(EXIT_USAGE, "%s pins one variant; --set restricts them", o->plan ? "--plan" : "--variant");
    }
    int status = plan_settings(o, setting, names, sizeof names);
    status = status ? status : choose_arch(s, o, &plan.arch);
    if (status != EXIT_OK) {
        return status;
    }
    plan.setting_count = o->set.n;
    plan.setting = setting;
    plan.size = size;
    plan.gpu = o->gpu;
    const ptxgen_variant_options options = { .plan = &plan, .gpu = o->gpu, .illegal = part != SPACE_LEGAL };
    ptxgen_status made = ptxgen_variants(s, p, &options, gather, out);
    return made == PTXGEN_OK ? EXIT_OK : fail_call(s, made, "listing variants");
}

int space_add_default(struct space *sp)
{
    static const char *const name[] = { NULL };
    static const int value[] = { 0 };
    const ptxgen_variant v = { .id = "default", .strategy = "default", .tunable = name, .value = value };
    if (gather(&v, sp)) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    struct variant_item last = sp->item[sp->n - 1];
    memmove(sp->item + 1, sp->item, sizeof *sp->item * (size_t)(sp->n - 1));
    sp->item[0] = last;
    return EXIT_OK;
}

static void finish_item(struct variant_item *v)
{
    for (int i = 0; v->name && i < v->ntunables; i++) {
        free(v->name[i]);
    }
    free(v->name);
    free(v->value);
    free(v->id);
    free(v->strategy);
    free(v->why_not);
    free(v->compiled.failure);
    ptxgen_program_destroy(v->compiled.program);
}

void space_finish(struct space *sp)
{
    for (int i = 0; i < sp->n; i++) {
        finish_item(&sp->item[i]);
    }
    free(sp->item);
    *sp = (struct space){ 0 };
}

/* ---- compiling ---- */
static uint64_t hash(uint64_t h, const char *text)
{
    for (; *text; text++) {
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    }
    return h;
}

struct batch {
    struct space *space;
    const int *index;
    const struct compiling *how;
};

/* The session's first error as the reason. */
static void note_failure(ptxgen_session *s, struct compiled *c, ptxgen_status status)
{
    ptxgen_diagnostic d;
    bool any = ptxgen_diagnostic_count(s) > 0 && ptxgen_diagnostic_get(s, 0, &d) == PTXGEN_OK;
    c->failure = strdup(any ? d.message : ptxgen_status_text(status));
}

static void figures(struct compiled *c)
{
    char *ptx = ptxgen_program_ptx(c->program), *manifest = ptxgen_program_manifest(c->program);
    c->bytes = ptx ? strlen(ptx) : 0;
    c->code = ptx && manifest ? hash(hash(0xcbf29ce484222325u, ptx), manifest) : 0;
    ptxgen_free(ptx);
    ptxgen_free(manifest);
}

static void compile_one(int i, void *user)
{
    struct batch *b = user;
    struct variant_item *v = &b->space->item[b->index ? b->index[i] : i];
    struct compiled *c = &v->compiled;
    ptxgen_session *s;
    ptxgen_problem *p;
    ptxgen_plan *plan;
    ptxgen_compile_options options;
    if (v->why_not || ptxgen_session_create(&s) != PTXGEN_OK) {
        return;
    }
    ptxgen_plan_options pin = PTXGEN_PLAN_OPTIONS_INIT;
    pin.variant = v->id;
    pin.arch = b->how->arch;
    compile_options(b->how->options, &options);
    options.threads = 1;
    double begin = now();
    ptxgen_status status = ptxgen_problem_from_file(s, b->how->path, &p);
    status = status == PTXGEN_OK ? ptxgen_plan_create(s, p, &pin, &plan) : status;
    status = status == PTXGEN_OK ? ptxgen_compile(s, plan, &options, &c->program) : status;
    c->seconds = now() - begin;
    if (status != PTXGEN_OK) {
        note_failure(s, c, status);
    } else {
        figures(c);
        if (!b->how->keep) {
            ptxgen_program_destroy(c->program);
            c->program = NULL;
        }
    }
    ptxgen_session_destroy(s);
}

void space_compile(struct space *sp, const int *index, int n, const struct compiling *how)
{
    struct batch b = { sp, index, how };
    int64_t threads = 0;
    if (how->options->jobs && parse_count(how->options->jobs, &threads)) {
        threads = 0;
    }
    parallel_for(n, (int)threads, compile_one, &b);
}

struct by_code {
    uint64_t code;
    int index;
};

static int by_code(const void *a, const void *b)
{
    const struct by_code *x = a, *y = b;
    return x->code != y->code ? (x->code > y->code) - (x->code < y->code) : x->index - y->index;
}

void space_duplicates(struct space *sp)
{
    struct by_code *order = calloc((size_t)sp->n + 1, sizeof *order);
    int n = 0;
    for (int i = 0; order && i < sp->n; i++) {
        if (sp->item[i].compiled.code) {
            order[n++] = (struct by_code){ sp->item[i].compiled.code, i };
        }
    }
    if (order) {
        qsort(order, (size_t)n, sizeof *order, by_code);
    }
    for (int i = 1, first = 0; i < n; i++) {
        first = order[i].code == order[first].code ? first : i;
        sp->item[order[i].index].compiled.same_as = first == i ? -1 : order[first].index;
    }
    free(order);
}
