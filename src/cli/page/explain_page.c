/* SPDX-License-Identifier: Apache-2.0 */
/* explain_page.c - gathers what the page of `ptxgen explain --html` shows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "explain_page.h"
#include "html.h"
#include "tune/journal.h"
#include "tune/space.h"

enum { POINTS_MAX = 1500 }; /* more do not fit a column */

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

/* The times that the model predicts for a random selection of variants. */
static int points_from_model(const struct explaining *x, struct points *p)
{
    struct options plain = *x->options;
    struct space space = { 0 };
    plain.plan = plain.variant = NULL;
    plain.set.n = 0;
    plain.arch = x->arch;
    const struct selection selection = { .main_only = true, .draw = POINTS_MAX };
    int status = space_gather(x->session, &plain, x->problem, x->explain->size, &selection, &space);
    for (int i = 0; status == EXIT_OK && i < space.n; i++) {
        struct plot_point *point = space.item[i].predicted > 0 ? point_of(p, space.item[i].id) : NULL;
        if (point) {
            point->us = space.item[i].predicted * 1e6;
        }
    }
    space_finish(&space);
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

int explain_page(const struct explaining *x, const char *path)
{
    ptxgen_explain_options e = *x->explain;
    ptxgen_compile_options options;
    size_t length;
    compile_options(x->options, &options);
    e.form = PTXGEN_FORM_HTML;
    char *sections = ptxgen_explain(x->session, x->plan, &e), *plan = ptxgen_plan_text(x->plan),
         *ptx = ptxgen_program_ptx(x->program);
    char *ir = ptxgen_plan_ir(x->session, x->plan, &options), *spec = read_file(x->path, &length),
         *sass = ptx ? sass_of(ptx) : NULL, *plot = NULL;
    int status =
        sections && plan && ptx && spec ? make_plot(x, &plot) : fail_call(x->session, PTXGEN_USAGE, "explaining");
    if (status == EXIT_OK) {
        const struct page page = { .name = ptxgen_problem_name(x->problem),
                                   .arch = x->arch ? x->arch : "sm_80",
                                   .version = ptxgen_version(),
                                   .sections = sections,
                                   .spec = spec,
                                   .plan = plan,
                                   .ir = ir,
                                   .ptx = ptx,
                                   .sass = sass,
                                   .plot = plot };
        status = write_page(&page, path);
    }
    ptxgen_free(sections);
    ptxgen_free(plan);
    ptxgen_free(ptx);
    ptxgen_free(ir);
    free(spec);
    free(sass);
    free(plot);
    return status;
}
