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
#include "progress.h"
#include "space.h"

/* Of this thread: other programs, and other threads, do not count. */
static double core_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- items ---- */
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

static int append(struct space *sp, const ptxgen_variant *v)
{
    if (sp->n == sp->capacity) {
        int capacity = sp->capacity ? 2 * sp->capacity : 256;
        struct variant_item *grown = realloc(sp->item, sizeof *grown * (size_t)capacity);
        if (!grown) {
            return -1;
        }
        sp->item = grown;
        sp->capacity = capacity;
    }
    return copy_variant(&sp->item[sp->n++], v);
}

/* The number of an id, or -1. */
static int space_find(const struct space *sp, const char *id)
{
    for (int i = 0; i < sp->n; i++) {
        if (!strcmp(sp->item[i].id, id)) {
            return i;
        }
    }
    return -1;
}

int space_add(struct space *sp, const char *id)
{
    enum { MOST = 64 };
    const char *name[MOST];
    int value[MOST], n = 0, found = space_find(sp, id);
    char *text = found < 0 ? strdup(id) : NULL, *rest = text ? strchr(text, '@') : NULL;
    if (!text) {
        return found;
    }
    while (rest && n < MOST) {
        *rest++ = 0;
        name[n] = rest;
        char *equals = strchr(rest, '=');
        if (!equals) {
            break;
        }
        *equals = 0;
        value[n++] = (int)strtol(equals + 1, &rest, 10);
        rest = *rest == ',' ? rest : NULL;
    }
    const ptxgen_variant v = { .id = id, .strategy = text, .tunable_count = n, .tunable = name, .value = value };
    int failed = append(sp, &v);
    free(text);
    return failed ? -1 : sp->n - 1;
}

/* ---- gathering ---- */
struct gathering {
    struct space *space;
    int before; /* that many items were there */
    bool illegal;
};

static int gather(const ptxgen_variant *v, void *user)
{
    struct gathering *g = user;
    if ((v->why_not && !g->illegal) || (g->before && space_find(g->space, v->id) >= 0)) {
        return 0;
    }
    return append(g->space, v) != 0;
}

/* What the options say, as options of the library; the settings are copied into `setting` and `names`. */
struct asked {
    ptxgen_plan_options plan;
    ptxgen_variant_options variants;
    ptxgen_setting setting[2 * SETTINGS_MAX];
    char names[4096];
};

static int ask(ptxgen_session *s, const struct options *o, const int64_t *size, const struct selection *selection,
               struct asked *a)
{
    a->plan = (ptxgen_plan_options)PTXGEN_PLAN_OPTIONS_INIT;
    if (o->plan || o->variant) {
        return fail(EXIT_USAGE, "%s pins one variant; --set restricts them", o->plan ? "--plan" : "--variant");
    }
    int status = plan_settings(o, a->setting, a->names, sizeof a->names);
    status = status ? status : choose_arch(s, o, &a->plan.arch);
    a->plan.setting_count = o->set.n;
    if (o->strategy) {
        a->setting[a->plan.setting_count++] = (ptxgen_setting){ "strategy", o->strategy };
    }
    a->plan.setting = a->setting;
    a->plan.size = size;
    a->plan.gpu = o->gpu;
    a->variants = (ptxgen_variant_options){ .struct_size = sizeof a->variants,
                                            .plan = &a->plan,
                                            .gpu = o->gpu,
                                            .illegal = selection->illegal,
                                            .main_only = selection->main_only,
                                            .draw = selection->draw,
                                            .seed = selection->seed };
    return status;
}

static int gather_asked(ptxgen_session *s, const ptxgen_problem *p, const struct asked *a, struct space *sp)
{
    struct gathering g = { sp, sp->n, a->variants.illegal != 0 };
    ptxgen_status made = ptxgen_variants(s, p, &a->variants, gather, &g);
    return made == PTXGEN_OK ? EXIT_OK : fail_call(s, made, "listing variants");
}

int space_gather(ptxgen_session *s, const struct options *o, const ptxgen_problem *p, const int64_t *size,
                 const struct selection *selection, struct space *sp)
{
    struct asked a;
    int status = ask(s, o, size, selection, &a);
    return status ? status : gather_asked(s, p, &a, sp);
}

/* Of the user's lists only that of tunable `free` stays; the others get the values of item i. */
static void restrict_to(struct asked *a, const struct variant_item *v, int free_one, char (*text)[16])
{
    int n = 0;
    for (int i = 0; i < a->plan.setting_count; i++) {
        if (!strcmp(a->setting[i].name, v->name[free_one])) {
            a->setting[n++] = a->setting[i];
        }
    }
    a->setting[n++] = (ptxgen_setting){ "strategy", v->strategy };
    for (int k = 0; k < v->ntunables && k < SETTINGS_MAX; k++) {
        if (k != free_one) {
            snprintf(text[k], sizeof text[k], "%d", v->value[k]);
            a->setting[n++] = (ptxgen_setting){ v->name[k], text[k] };
        }
    }
    a->plan.setting_count = n;
}

int space_gather_beside(ptxgen_session *s, const struct options *o, const ptxgen_problem *p, const int64_t *size, int i,
                        bool illegal, struct space *sp)
{
    const struct selection all = { .illegal = illegal };
    const struct variant_item v = sp->item[i]; /* the array moves when it grows */
    char text[SETTINGS_MAX][16];
    int status = EXIT_OK;
    for (int k = 0; k < v.ntunables && status == EXIT_OK; k++) {
        struct asked a;
        status = ask(s, o, size, &all, &a);
        restrict_to(&a, &v, k, text);
        status = status ? status : gather_asked(s, p, &a, sp);
    }
    return status;
}

/* ---- counting ---- */
enum { PARTS_PER_CORE = 4 };

struct counting {
    const struct options *options;
    const char *path;
    const struct asked *asked;
    int parts;
    struct census *census; /* per part */
};

static char *copied(const char *text) { return text ? strdup(text) : NULL; }

static int count_row(const ptxgen_variant_count *c, void *user)
{
    struct census *to = user;
    if (to->n < STRATEGIES_MAX) {
        to->row[to->n].strategy = copied(c->strategy);
        to->row[to->n].why_not = copied(c->why_not);
        to->row[to->n].legal = c->legal;
        to->row[to->n++].illegal = c->illegal;
    }
    return 0;
}

static void count_part(int i, void *user)
{
    struct counting *c = user;
    ptxgen_variant_options variants = c->asked->variants;
    ptxgen_session *s;
    ptxgen_problem *p;
    variants.part = i;
    variants.parts = c->parts;
    if (ptxgen_session_create(&s) == PTXGEN_OK) {
        if (problem_of(s, c->options, c->path, &p) == PTXGEN_OK) {
            (void)ptxgen_variants_count(s, p, &variants, count_row, &c->census[i]); /* gathering tells what is wrong */
        }
        ptxgen_session_destroy(s);
    }
}

/* Every part has met the same strategies. */
static void add_parts(struct counting *c, struct census *out)
{
    *out = c->census[0];
    c->census[0] = (struct census){ 0 };
    for (int i = 1; i < c->parts; i++) {
        for (int k = 0; k < out->n && k < c->census[i].n; k++) {
            out->row[k].legal += c->census[i].row[k].legal;
            out->row[k].illegal += c->census[i].row[k].illegal;
        }
        census_finish(&c->census[i]);
    }
}

static int jobs_of(const struct options *o)
{
    int64_t threads = 0;
    return o->jobs && !parse_count(o->jobs, &threads) && threads > 0 && threads < 1024 ? (int)threads : 0;
}

int space_count(ptxgen_session *s, const struct options *o, const char *path, const int64_t *size,
                const struct selection *selection, struct census *out)
{
    struct asked a;
    int status = ask(s, o, size, selection, &a);
    *out = (struct census){ 0 };
    if (status != EXIT_OK) {
        return status;
    }
    struct counting c = { o, path, &a, PARTS_PER_CORE * core_count(), NULL };
    c.census = calloc((size_t)c.parts, sizeof *c.census);
    if (!c.census) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    progress_begin("counting variants", 0);
    parallel_for(c.parts, jobs_of(o), count_part, &c);
    progress_end();
    add_parts(&c, out);
    free(c.census);
    return EXIT_OK;
}

int64_t census_legal(const struct census *c)
{
    int64_t n = 0;
    for (int i = 0; i < c->n; i++) {
        n += c->row[i].legal;
    }
    return n;
}

void census_finish(struct census *c)
{
    for (int i = 0; i < c->n; i++) {
        free(c->row[i].strategy);
        free(c->row[i].why_not);
    }
    *c = (struct census){ 0 };
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

ptxgen_plan_options space_pin(const struct compiling *how, const char *id)
{
    ptxgen_plan_options pin = PTXGEN_PLAN_OPTIONS_INIT;
    pin.variant = id;
    pin.arch = how->arch;
    pin.size = how->size;
    pin.only_these = how->size != NULL;
    pin.multiprocessors = how->multiprocessors;
    return pin;
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
    const ptxgen_plan_options pin = space_pin(b->how, v->id);
    compile_options(b->how->options, &options);
    options.threads = 1;
    double begin = core_time();
    ptxgen_status status = problem_of(s, b->how->options, b->how->path, &p);
    status = status == PTXGEN_OK ? ptxgen_plan_create(s, p, &pin, &plan) : status;
    status = status == PTXGEN_OK ? ptxgen_compile(s, plan, &options, &c->program) : status;
    c->seconds = core_time() - begin;
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
    progress_begin("compiling variants", 0);
    parallel_for(n, jobs_of(how->options), compile_one, &b);
    progress_end();
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
