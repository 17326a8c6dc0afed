/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - what tuning leaves: a report, an entry of the tuning file, a row for tuning.def, and JSON for other
 * tools: T1 describes the space, T4 the results (formats of Kernel Tuner and other frameworks).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tune.h"

enum { SHOWN = 10 };

/* ---- progress ---- */
void tune_progress(const struct tuner *t, int done, int all)
{
    enum { WIDTH = 24 };
    char bar[WIDTH + 1];
    int best = tune_best(t), filled = all > 0 ? done * WIDTH / all : WIDTH;
    double spent = progress_now() - t->begin, left = done > 0 && done < all ? spent / done * (all - done) : 0;
    if (!isatty(STDERR_FILENO)) {
        return;
    }
    for (int i = 0; i < WIDTH; i++) {
        bar[i] = i < filled ? '#' : '.';
    }
    bar[WIDTH] = 0;
    fprintf(stderr, "\r[%s] %d of %d, default %.2f us, best %.2f us, %d:%02d left \033[K", bar, done, all,
            t->trial[0].seconds * 1e6, best < 0 ? 0 : t->trial[best].seconds * 1e6, (int)left / 60, (int)left % 60);
    if (done >= all) {
        fputs("\r\033[K", stderr);
    }
}

/* ---- the report ---- */
static void count(const struct tuner *t, int *n)
{
    memset(n, 0, sizeof *n * OUT_COUNT);
    for (int i = 0; i < t->space.n; i++) {
        n[t->trial[i].outcome]++;
    }
}

static int by_time(const void *a, const void *b, void *user)
{
    const struct tuner *t = user;
    const struct trial *x = &t->trial[*(const int *)a], *y = &t->trial[*(const int *)b];
    return x->outcome != y->outcome ? (int)x->outcome - (int)y->outcome
                                    : (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* Those that are right, fastest first, those that were dropped after the others; malloc. */
static int *ranking(struct tuner *t, int *n)
{
    int *index = calloc((size_t)t->space.n + 1, sizeof *index);
    *n = 0;
    for (int i = 0; index && i < t->space.n; i++) {
        if ((t->trial[i].outcome == OUT_OK || t->trial[i].outcome == OUT_SLOW) && t->trial[i].seconds > 0) {
            index[(*n)++] = i;
        }
    }
    if (index) {
        qsort_r(index, (size_t)*n, sizeof *index, by_time, t);
    }
    return index;
}

/* The same reason but for its numbers. */
static bool same_reason(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, "0123456789.");
        b += strspn(b, "0123456789.");
        if (*a != *b || !*a) {
            return *a == *b;
        }
    }
}

/* Why variants are out of the race: each reason once, with a variant that it is about. */
static void show_reasons(const struct tuner *t)
{
    for (int i = 0; i < t->space.n; i++) {
        const struct trial *x = &t->trial[i];
        bool told = x->outcome < OUT_FAILED || !x->why;
        int same = 1;
        for (int k = 0; k < t->space.n && !told; k++) {
            bool alike =
                k != i && t->trial[k].outcome == x->outcome && t->trial[k].why && same_reason(t->trial[k].why, x->why);
            told = alike && k < i;
            same += alike;
        }
        if (!told) {
            printf("  %d %s: %s\n    as %s\n", same, outcome_name(x->outcome), x->why, t->space.item[i].id);
        }
    }
}

static void show_text(const struct tuner *t, const int *index, int n)
{
    int outcomes[OUT_COUNT];
    const struct trial *base = &t->trial[0];
    count(t, outcomes);
    report_random(stdout, &t->job);
    printf("%s on %s", ptxgen_problem_name(t->job.problem), t->job.device);
    for (int i = 0; i < t->job.nsizes; i++) {
        printf(", %s = %lld", ptxgen_problem_size_name(t->job.problem, i), (long long)t->job.size[i]);
    }
    printf(": %d of %lld variants tried in %.1f s\n", t->measured, (long long)t->all, progress_now() - t->begin);
    for (int o = OUT_OK; o < OUT_COUNT; o++) {
        printf("%s%d %s", o == OUT_OK ? "  " : ", ", outcomes[o], outcome_name((enum outcome)o));
    }
    putchar('\n');
    show_reasons(t);
    printf("%10s  %7s  %s\n", "us", "default", "variant");
    for (int k = 0; k < n && k < SHOWN; k++) {
        printf("%10.3f  %6.3fx  %s\n", t->trial[index[k]].seconds * 1e6, base->seconds / t->trial[index[k]].seconds,
               t->space.item[index[k]].id);
    }
    if (n > 0) {
        printf("the default takes %.3f us, %.1f%% more than the best\n", base->seconds * 1e6,
               100 * (base->seconds / t->trial[index[0]].seconds - 1));
    }
    if (t->tuning && n > 0) {
        printf("written to %s\n", t->tuning);
    }
    printf("%skept in %s: the same command goes on from there, with a higher --limit\n",
           interrupted() ? "interrupted; what was measured is " : "", t->journal_path);
}

static void show_json(const struct tuner *t, const int *index, int n)
{
    report_json_head(&t->job, NULL);
    printf(", \"tried\": %d, \"space\": %lld, \"seconds\": %.3f, \"default_us\": %.4f, \"best\": ", t->measured,
           (long long)t->all, progress_now() - t->begin, t->trial[0].seconds * 1e6);
    n > 0 ? json_text(stdout, t->space.item[index[0]].id) : (void)fputs("null", stdout);
    fputs(", \"journal\": ", stdout);
    json_text(stdout, t->journal_path);
    fputs(", \"results\": [", stdout);
    bool any = false;
    for (int i = 0; i < t->space.n; i++) {
        const struct trial *x = &t->trial[i];
        if (x->outcome == OUT_NEW) {
            continue;
        }
        fputs(any ? ",\n  {\"id\": " : "\n  {\"id\": ", stdout);
        json_text(stdout, t->space.item[i].id);
        printf(", \"outcome\": \"%s\", \"us\": %.4f, \"samples\": %d", outcome_name(x->outcome), x->seconds * 1e6,
               x->samples);
        if (x->why) {
            fputs(", \"why\": ", stdout);
            json_text(stdout, x->why);
        }
        putchar('}');
        any = true;
    }
    fputs("\n]}\n", stdout);
}

int tune_report(struct tuner *t)
{
    int n, *index = ranking(t, &n);
    if (!index) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    t->options->json ? show_json(t, index, n) : show_text(t, index, n);
    free(index);
    return EXIT_OK;
}

/* ---- the tuning file ---- */
int tune_write_tuning(struct tuner *t, const char *path)
{
    int best = tune_best(t);
    size_t length;
    char *old = read_file(path, &length);
    if (!old && errno != ENOENT) {
        return fail(EXIT_WRONG, "cannot read %s: %s", path, strerror(errno));
    }
    const ptxgen_tuning_entry entry = { .gpu = t->job.device,
                                        .arch = t->arch,
                                        .variant = t->space.item[best].id,
                                        .size = t->job.size,
                                        .seconds = t->trial[best].seconds,
                                        .default_seconds = t->trial[0].seconds,
                                        .variants = t->measured };
    char *text = ptxgen_tuning_merge(t->job.session, t->job.problem, old, &entry);
    int status = text ? EXIT_OK : fail_call(t->job.session, PTXGEN_INVALID, path);
    if (text) {
        make_directories(path);
        status = write_file(path, text, strlen(text));
    }
    ptxgen_free(text);
    free(old);
    return status;
}

/* ---- a row for tuning.def ---- */
int tune_emit_row(struct tuner *t, const char *path)
{
    int best = tune_best(t);
    ptxgen_plan *plan;
    ptxgen_plan_options pin = PTXGEN_PLAN_OPTIONS_INIT;
    char evidence[512];
    pin.variant = t->space.item[best].id;
    pin.arch = t->arch;
    ptxgen_status status = ptxgen_plan_create(t->job.session, t->job.problem, &pin, &plan);
    if (status != PTXGEN_OK) {
        return fail_call(t->job.session, status, pin.variant);
    }
    int n = snprintf(evidence, sizeof evidence, "%s %s", t->job.device, ptxgen_problem_name(t->job.problem));
    for (int i = 0; i < t->job.nsizes && n < (int)sizeof evidence; i++) {
        n += snprintf(evidence + n, sizeof evidence - (size_t)n, " %s=%lld",
                      ptxgen_problem_size_name(t->job.problem, i), (long long)t->job.size[i]);
    }
    if (n < (int)sizeof evidence) {
        snprintf(evidence + n, sizeof evidence - (size_t)n, ": %.4g us, best of %d; the default before it %.4g",
                 t->trial[best].seconds * 1e6, t->measured, t->trial[0].seconds * 1e6);
    }
    char *row = ptxgen_tuning_row(plan, evidence);
    FILE *to = !strcmp(path, "-") ? stdout : fopen(path, "a");
    int result = row && to ? EXIT_OK : fail(EXIT_WRONG, "cannot write %s: %s", path, strerror(errno));
    if (result == EXIT_OK) {
        fputs(row, to);
    }
    if (to && to != stdout && fclose(to) != 0) {
        result = fail(EXIT_WRONG, "cannot write %s: %s", path, strerror(errno));
    }
    ptxgen_free(row);
    return result;
}

/* ---- T1 and T4 ---- */
/* All values that a tunable, or the strategy, has in the space. */
static void t1_values(FILE *to, const struct space *sp, const char *name)
{
    bool any = false;
    fputs("[", to);
    for (int i = 0; i < sp->n; i++) {
        for (int k = 0; k < sp->item[i].ntunables; k++) {
            bool seen = strcmp(sp->item[i].name[k], name) != 0;
            for (int j = 0; j < i && !seen; j++) {
                const struct variant_item *v = &sp->item[j];
                for (int m = 0; m < v->ntunables && !seen; m++) {
                    seen = !strcmp(v->name[m], name) && v->value[m] == sp->item[i].value[k];
                }
            }
            if (!seen) {
                fprintf(to, "%s%d", any ? ", " : "", sp->item[i].value[k]);
                any = true;
            }
        }
    }
    fputs("]", to);
}

static bool named_before(const struct space *sp, int i, int k)
{
    const char *name = sp->item[i].name[k];
    for (int j = 0; j < i; j++) {
        if (sp->item[j].ntunables && !strcmp(sp->item[j].strategy, sp->item[i].strategy)) {
            return true; /* the same strategy has the same tunables */
        }
        for (int m = 0; m < sp->item[j].ntunables; m++) {
            if (!strcmp(sp->item[j].name[m], name)) {
                return true;
            }
        }
    }
    return false;
}

/* For each strategy of the tuning a variant with all that differ from it in one tunable, legal or not: all values. */
static int t1_space(const struct tuner *t, struct space *sp)
{
    int status = EXIT_OK;
    for (int i = 1; i < t->space.n && status == EXIT_OK; i++) {
        bool known = false;
        for (int j = 0; j < sp->n; j++) {
            known |= !strcmp(sp->item[j].strategy, t->space.item[i].strategy);
        }
        int added = known ? -1 : space_add(sp, t->space.item[i].id);
        status = added < 0
                     ? EXIT_OK
                     : space_gather_beside(t->job.session, t->native, t->job.problem, t->job.size, added, true, sp);
    }
    return status;
}

static void t1_parameters(FILE *to, const struct space *sp)
{
    const char *last = "";
    fputs("      {\"Name\": \"strategy\", \"Type\": \"string\", \"Values\": \"[", to);
    for (int i = 0; i < sp->n; i++) {
        if (strcmp(sp->item[i].strategy, last) != 0) {
            fprintf(to, "%s'%s'", *last ? ", " : "", sp->item[i].strategy);
            last = sp->item[i].strategy;
        }
    }
    fputs("]\"}", to);
    for (int i = 0; i < sp->n; i++) {
        for (int k = 0; k < sp->item[i].ntunables; k++) {
            if (!named_before(sp, i, k)) {
                fprintf(to, ",\n      {\"Name\": \"%s\", \"Type\": \"int\", \"Values\": \"", sp->item[i].name[k]);
                t1_values(to, sp, sp->item[i].name[k]);
                fputs("\"}", to);
            }
        }
    }
}

/* Which combinations are legal is not a formula: `ptxgen variants` decides. */
static int write_t1(FILE *to, const struct tuner *t)
{
    struct space sp = { 0 };
    int status = t1_space(t, &sp);
    fputs("{\n  \"General\": {\"FormatVersion\": 1, \"TimeUnit\": \"Milliseconds\"},\n  \"ConfigurationSpace\": {\n"
          "    \"TuningParameters\": [\n",
          to);
    t1_parameters(to, &sp);
    space_finish(&sp);
    fputs("\n    ],\n    \"Conditions\": []\n  },\n  \"Search\": {\"Name\": \"RandomThenNeighbours\"},\n"
          "  \"Budget\": [{\"Type\": \"ConfigurationCount\", \"BudgetValue\": ",
          to);
    fprintf(to, "%lld}],\n  \"KernelSpecification\": {\"Language\": \"CUDA\", \"KernelName\": ", (long long)t->limit);
    json_text(to, ptxgen_problem_name(t->job.problem));
    fputs(", \"KernelFile\": ", to);
    json_text(to, t->path);
    fputs(
        ", \"GlobalSize\": {\"X\": \"grid of the plan\"}, \"LocalSize\": {\"X\": \"threads\"}, \"Device\": {\"Name\": ",
        to);
    json_text(to, t->job.device);
    fputs("}}\n}\n", to);
    return status;
}

static const char *invalidity(enum outcome o)
{
    switch (o) {
    case OUT_OK:
    case OUT_SLOW:
    case OUT_SAME: return "correct";
    case OUT_WRONG: return "correctness";
    case OUT_BITS: return "constraints";
    default: return "runtime";
    }
}

static void t4_result(FILE *to, const struct tuner *t, int i, const char *stamp)
{
    const struct trial *x = &t->trial[i];
    const struct variant_item *v = &t->space.item[i];
    bool compile = x->outcome == OUT_FAILED && v->compiled.failure;
    fprintf(to, "    {\"timestamp\": \"%s\", \"configuration\": {\"strategy\": \"%s\"", stamp, v->strategy);
    for (int k = 0; k < v->ntunables; k++) {
        fprintf(to, ", \"%s\": %d", v->name[k], v->value[k]);
    }
    fprintf(to, "}, \"objectives\": [\"time\"], \"times\": {\"compilation_time\": %.4f, \"runtimes\": [",
            v->compiled.seconds * 1e3);
    if (x->seconds > 0) {
        fprintf(to, "%.6f", x->seconds * 1e3);
    }
    fprintf(to, "]}, \"invalidity\": \"%s\", \"correctness\": %d, \"measurements\": [",
            compile ? "compile" : invalidity(x->outcome),
            x->outcome == OUT_OK || x->outcome == OUT_SLOW || x->outcome == OUT_SAME);
    if (x->seconds > 0) {
        fprintf(to, "{\"name\": \"time\", \"value\": %.6f, \"unit\": \"ms\"}", x->seconds * 1e3);
    }
    fputs("]}", to);
}

static int write_t4(FILE *to, const struct tuner *t)
{
    char stamp[32] = "";
    time_t now = time(NULL);
    struct tm when;
    bool any = false;
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &when));
    fputs("{\n  \"schema_version\": \"1.0.0\",\n  \"results\": [\n", to);
    for (int i = 0; i < t->space.n; i++) {
        if (t->trial[i].outcome != OUT_NEW) {
            fputs(any ? ",\n" : "", to);
            t4_result(to, t, i, stamp);
            any = true;
        }
    }
    fputs("\n  ]\n}\n", to);
    return EXIT_OK;
}

int tune_export(struct tuner *t, const char *form)
{
    char path[512], *text = NULL;
    size_t n;
    FILE *to = open_memstream(&text, &n);
    if (!to) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    int status = (!strcmp(form, "t1") ? write_t1 : write_t4)(to, t);
    fclose(to);
    snprintf(path, sizeof path, "%s.%s.json", ptxgen_problem_name(t->job.problem), form);
    status = status ? status : write_file(path, text, n);
    free(text);
    return status;
}
