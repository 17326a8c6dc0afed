/* SPDX-License-Identifier: Apache-2.0 */
/* explain_page.c - gathers what the page of `ptxgen explain --html` shows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "explain_page.h"
#include "html.h"
#include "ptxgen/stages.h"
#include "tune/journal.h"
#include "tune/space.h"

enum { POINTS_MAX = 320 }; /* of some 200 bytes each */

struct points {
    int n, capacity;
    struct plot_point *at;
};

/* A point for `id`, which is copied: the one that there is, or a new one. */
static struct plot_point *point_of(struct points *p, const char *id)
{
    for (int i = 0; i < p->n; i++) {
        if (!strcmp(p->at[i].id, id)) {
            return &p->at[i];
        }
    }
    if (p->n == p->capacity) {
        int capacity = p->capacity ? 2 * p->capacity : 256;
        struct plot_point *grown = realloc(p->at, sizeof *grown * (size_t)capacity);
        if (!grown) {
            return NULL;
        }
        p->at = grown;
        p->capacity = capacity;
    }
    struct plot_point *x = &p->at[p->n];
    *x = (struct plot_point){ .id = strdup(id),
                              .strategy = strndup(id, strcspn(id, "@")),
                              .standing = !strcmp(id, "default") };
    p->n += x->id && x->strategy;
    return x->id && x->strategy ? x : NULL;
}

static void points_finish(struct points *p)
{
    for (int i = 0; i < p->n; i++) {
        free((char *)p->at[i].id);
        free((char *)p->at[i].strategy);
    }
    free(p->at);
}

/* Variants of one strategy stand together. */
static int by_strategy(const void *a, const void *b)
{
    const struct plot_point *x = a, *y = b;
    int order = strcmp(x->strategy, y->strategy);
    return order ? order : strcmp(x->id, y->id);
}

/* Times that were measured; the last line about a variant counts. */
static void read_journal(struct points *p, struct journal *j)
{
    struct journal_line line;
    while (journal_next(j, &line)) {
        struct plot_point *x = line.microseconds > 0 ? point_of(p, line.id) : NULL;
        if (x) {
            x->us = line.microseconds;
        }
    }
}

static int points_from_journal(const struct options *o, struct points *p)
{
    size_t length;
    char *text = read_file(o->journal, &length);
    if (!text) {
        return fail(EXIT_WRONG, "cannot read %s: %s", o->journal, strerror(errno));
    }
    struct journal j;
    journal_begin(&j, text);
    if (!j.head || strncmp(j.head, JOURNAL_HEAD, strlen(JOURNAL_HEAD)) != 0) {
        free(text);
        return fail(EXIT_WRONG, "%s is no journal of ptxgen tune", o->journal);
    }
    read_journal(p, &j);
    journal_warn(&j, o->journal);
    free(text);
    return EXIT_OK;
}

/* The text of the next `"key": value` after `at`, without quotes; malloc, or NULL. */
static char *value_of(const char *at, const char *key)
{
    at = at ? strstr(at, key) : NULL;
    at = at ? at + strlen(key) + strspn(at + strlen(key), "\": ") : NULL;
    return at ? strndup(at, strcspn(at, "\",\n")) : NULL;
}

/* What the model says about the plan itself. */
static void add_chosen(const struct explaining *x, struct points *p)
{
    ptxgen_explain_options e = *x->explain;
    e.form = PTXGEN_FORM_JSON;
    char *json = ptxgen_explain(x->session, x->plan, &e);
    const char *at = json ? strstr(json, "\"at\": {") : NULL;
    char *strategy = value_of(at, "\"strategy\""), *time = value_of(at, "\"predicted_us\"");
    struct plot_point *point = strategy && time && atof(time) > 0 ? point_of(p, "default") : NULL;
    if (point) {
        free((char *)point->strategy);
        point->strategy = strategy;
        point->us = atof(time);
        strategy = NULL;
    }
    free(strategy);
    free(time);
    ptxgen_free(json);
}

/* The times that the model predicts for a random selection of variants. */
static int points_from_model(const struct explaining *x, struct points *p)
{
    struct options plain = *x->options;
    struct space space = { 0 };
    plain.plan = plain.variant = NULL;
    plain.set.n = 0;
    plain.arch = x->arch;
    const struct selection selection = { .main_only = true, .draw = POINTS_MAX / (x->stages ? x->stages : 1) };
    int status = space_gather(x->session, &plain, x->problem, x->explain->size, &selection, &space);
    for (int i = 0; status == EXIT_OK && i < space.n; i++) {
        struct plot_point *point = space.item[i].predicted > 0 ? point_of(p, space.item[i].id) : NULL;
        if (point) {
            point->us = space.item[i].predicted * 1e6;
        }
    }
    space_finish(&space);
    if (p->n > 0) {
        add_chosen(x, p);
    }
    return status;
}

static int make_plot(const struct explaining *x, char **out)
{
    struct points p = { 0 };
    size_t length;
    int status = x->options->journal ? points_from_journal(x->options, &p) : points_from_model(x, &p);
    FILE *to = status == EXIT_OK && p.n > 1 ? open_memstream(out, &length) : NULL;
    if (to) {
        qsort(p.at, (size_t)p.n, sizeof *p.at, by_strategy);
        plot_write(to, p.at, p.n, x->options->journal ? "measured by ptxgen tune" : "times predicted by the model");
        fclose(to);
    }
    points_finish(&p);
    return status;
}

static int write_page(const struct page *page, const char *path)
{
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    if (!to) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    page_write(to, page);
    fclose(to);
    int status = write_file(path, text, length);
    free(text);
    return status;
}

/* The plan of the cases that take the sizes, where these are known: *own, else x->plan. */
static int plan_at_sizes(const struct explaining *x, ptxgen_plan **own)
{
    struct options plain = *x->options;
    bool known = !plain.plan;
    for (int i = 0; i < ptxgen_problem_size_count(x->problem); i++) {
        known = known && x->explain->size[i] >= 0;
    }
    plain.arch = x->arch;
    *own = NULL;
    return known ? make_plan(x->session, &plain, x->problem, x->explain->size, own) : EXIT_OK;
}

static int code_of(const struct explaining *x, const ptxgen_plan *plan, struct page_code *code)
{
    ptxgen_program *program = NULL;
    ptxgen_compile_options options;
    compile_options(x->options, &options);
    const ptxgen_status made = ptxgen_compile(x->session, plan, &options, &program);
    code->plan = ptxgen_plan_text(plan);
    code->ir = ptxgen_plan_ir(x->session, plan, &options);
    code->ptx = made == PTXGEN_OK ? ptxgen_program_ptx(program) : NULL;
    code->sass = code->ptx ? sass_of(code->ptx) : NULL;
    ptxgen_program_destroy(program);
    if (made != PTXGEN_OK) {
        return fail_call(x->session, made, "compiling");
    }
    return code->plan && code->ptx ? make_plot(x, &code->plot) : fail(EXIT_DEVICE, "out of memory");
}

/* Stage i as a spec of its own. */
static int code_of_stage(const struct explaining *x, const ptxgen_plan *plan, int i, struct page_code *code)
{
    ptxgen_explain_options e = *x->explain;
    struct explaining of = *x;
    struct options own = *x->options;
    char *journal = own.journal ? stage_journal(own.journal, ptxgen_stage_name(x->problem, i)) : NULL;
    of.problem = ptxgen_stage_problem(x->problem, i);
    of.plan = ptxgen_stage_plan(x->plan, i);
    of.explain = &e;
    of.options = &own;
    /* What is not tuned has none. */
    const bool tuned = !stage_is_condition(x->problem, i) && ptxgen_problem_tunable(of.problem);
    own.journal = tuned ? journal : NULL;
    code->stage = ptxgen_stage_name(x->problem, i);
    int64_t *size = stage_sizes(x->problem, x->explain->size, of.problem);
    e.size = size;
    e.param = NULL;
    const bool fine = size && (journal || !x->options->journal);
    const int status = fine ? code_of(&of, ptxgen_stage_plan(plan, i), code) : fail(EXIT_DEVICE, "out of memory");
    free(size);
    free(journal);
    return status;
}

static int code_of_all(const struct explaining *x, struct page *page)
{
    ptxgen_plan *own;
    int status = plan_at_sizes(x, &own);
    const ptxgen_plan *plan = own ? own : x->plan;
    for (int i = 0; i < page->parts && status == EXIT_OK; i++) {
        status = x->stages ? code_of_stage(x, plan, i, &page->code[i]) : code_of(x, plan, &page->code[i]);
    }
    return status;
}

static void code_finish(struct page_code *c)
{
    ptxgen_free(c->plan);
    ptxgen_free(c->ptx);
    ptxgen_free(c->ir);
    free(c->sass);
    free(c->plot);
}

int explain_page(const struct explaining *x, const char *path)
{
    ptxgen_explain_options e = *x->explain;
    size_t length;
    struct page page = { .name = ptxgen_problem_name(x->problem),
                         .version = ptxgen_version(),
                         .parts = x->stages ? x->stages : 1 };
    page.code = calloc((size_t)page.parts, sizeof *page.code);
    e.form = PTXGEN_FORM_HTML;
    char *sections = ptxgen_explain(x->session, x->plan, &e), *spec = read_file(x->path, &length), *arch = NULL;
    int status = !sections || !spec ? fail_call(x->session, PTXGEN_USAGE, "explaining")
                 : !page.code       ? fail(EXIT_DEVICE, "out of memory")
                                    : code_of_all(x, &page);
    if (status == EXIT_OK) {
        page.sections = sections;
        page.spec = spec;
        page.arch = arch = value_of(page.code[0].plan, "\narch");
        status = arch ? write_page(&page, path) : fail(EXIT_DEVICE, "out of memory");
    }
    for (int i = 0; page.code && i < page.parts; i++) {
        code_finish(&page.code[i]);
    }
    ptxgen_free(sections);
    free(page.code);
    free(arch);
    free(spec);
    return status;
}
