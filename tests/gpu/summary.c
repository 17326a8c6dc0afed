/* SPDX-License-Identifier: Apache-2.0 */
/* summary.c - what was found, by all threads of all processes, printed when they are done.
 *
 * Failures first, at most 40 lines; then what was not run at all, by name; then what passed per strategy, what was
 * refused and by whom, and where the time went.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "gpu_tests.h"

enum { STRATEGIES_MAX = 64, LINES_MAX = 30, LINE_LENGTH = 400, TEXT_LENGTH = 3000, SPECS_MAX = 512, SPECS_SHOWN = 8 };

static struct found {
    pthread_mutex_t lock;
    int passed, failed, skipped, refused, out_of_range, refused_shifts, not_run, undecided;
    int64_t values, undecided_values;
    int nstrategies;
    struct {
        const char *name; /* a constant: at the same address in all processes, which are forks of one */
        int passed[FORMS], out_of_range;
        bool fits[FORMS]; /* a spec of this form */
        bool expected;
    } strategy[STRATEGIES_MAX];
    bool expect_forms;
    char line[LINES_MAX][LINE_LENGTH]; /* the first failures */
    char skips[TEXT_LENGTH], omissions[TEXT_LENGTH], device[160];
    double seconds[PHASES];
    int nspecs;
    struct spec_time {
        double seconds;
        char name[80];
    } spec[SPECS_MAX];
} * found;

bool summary_create(void)
{
    pthread_mutexattr_t attributes;

    found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED)
        return false;
    /* Robust: a process may die with the lock held. */
    return pthread_mutexattr_init(&attributes) == 0 &&
           pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
           pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
           pthread_mutex_init(&found->lock, &attributes) == 0;
}

static void lock(void)
{
    if (pthread_mutex_lock(&found->lock) != 0) /* its owner died; what it left is counters and text */
        pthread_mutex_consistent(&found->lock);
}

static void unlock(void) { pthread_mutex_unlock(&found->lock); }

/* ---- noting ---------------------------------------------------------------------------------- */
/* What the session says first, on the line; its messages are gone then. */
static void add_message(struct suite *t, char *line)
{
    ptxgen_diagnostic d;
    size_t n = strlen(line);

    if (t == NULL || t->s == NULL)
        return;
    if (ptxgen_diagnostic_get(t->s, 0, &d) == PTXGEN_OK && ptxgen_diagnostic_count(t->s) > 0)
        snprintf(line + n, LINE_LENGTH - n, "; %s", d.message);
    ptxgen_diagnostics_clear(t->s);
}

void note_failure(struct suite *t, const char *format, ...)
{
    char line[LINE_LENGTH];
    va_list ap;

    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    add_message(t, line);
    for (char *c = line; *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    lock();
    if (found->failed < LINES_MAX)
        memcpy(found->line[found->failed], line, sizeof line);
    found->failed++;
    unlock();
}

/* The entry of a strategy, made on first sight; the lock is held. */
static int entry_of(const char *strategy)
{
    for (int i = 0; i < found->nstrategies; i++)
        if (strcmp(found->strategy[i].name, strategy) == 0)
            return i;
    if (found->nstrategies == STRATEGIES_MAX)
        return STRATEGIES_MAX - 1;
    found->strategy[found->nstrategies].name = strategy;
    return found->nstrategies++;
}

void expect_strategy(const char *strategy)
{
    lock();
    found->strategy[entry_of(strategy)].expected = true;
    unlock();
}

void expect_forms(void)
{
    lock();
    found->expect_forms = true;
    unlock();
}

void note_fits(const struct suite *t, const char *strategy)
{
    lock();
    found->strategy[entry_of(strategy)].fits[t->form] = true;
    unlock();
}

void note_outcome(struct suite *t, const char *strategy, enum outcome outcome)
{
    int k;

    if (t->s)
        ptxgen_diagnostics_clear(t->s);
    lock();
    k = entry_of(strategy);
    found->strategy[k].passed[t->form] += outcome == OUTCOME_PASSED;
    found->strategy[k].out_of_range += outcome == OUTCOME_OUT_OF_RANGE;
    found->passed += outcome == OUTCOME_PASSED;
    found->undecided += outcome == OUTCOME_UNDECIDED;
    found->refused += outcome == OUTCOME_REFUSED;
    found->out_of_range += outcome == OUTCOME_OUT_OF_RANGE;
    unlock();
}

void note_values(int64_t values, int64_t undecided)
{
    lock();
    found->values += values;
    found->undecided_values += undecided;
    unlock();
}

void note_refused_shift(void)
{
    lock();
    found->refused_shifts++;
    unlock();
}

static void append(char *text, const char *word)
{
    const size_t n = strlen(text);

    snprintf(text + n, TEXT_LENGTH - n, " %s", word);
}

void note_skip(struct suite *t, const char *path)
{
    const char *slash = strrchr(path, '/');

    ptxgen_diagnostics_clear(t->s);
    lock();
    append(found->skips, slash ? slash + 1 : path);
    found->skipped++;
    unlock();
}

void note_not_run(const char *format, ...)
{
    char line[LINE_LENGTH];
    va_list ap;

    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    lock();
    append(found->omissions, found->not_run++ ? ";" : "");
    append(found->omissions, line);
    unlock();
}

void note_device(const char *text)
{
    lock();
    snprintf(found->device, sizeof found->device, "%s", text);
    unlock();
}

double note_time(enum phase phase, double since)
{
    const double now = seconds_now();

    lock();
    found->seconds[phase] += now - since;
    unlock();
    return now;
}

void note_spec_time(const char *path, double seconds)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int at = 0;

    lock();
    while (at < found->nspecs && strcmp(found->spec[at].name, name) != 0)
        at++;
    if (at == found->nspecs && at < SPECS_MAX)
        snprintf(found->spec[found->nspecs++].name, sizeof found->spec[at].name, "%s", name);
    if (at < SPECS_MAX)
        found->spec[at].seconds += seconds;
    unlock();
}

/* ---- showing --------------------------------------------------------------------------------- */
static int slowest_first(const void *a, const void *b)
{
    const double x = ((const struct spec_time *)a)->seconds, y = ((const struct spec_time *)b)->seconds;

    return (x < y) - (x > y);
}

static void show_time(FILE *to)
{
    qsort(found->spec, (size_t)found->nspecs, sizeof *found->spec, slowest_first);
    fprintf(to,
            "seconds of all threads: plans and code %.1f, driver's compiler %.1f, reference %.1f, device %.1f, "
            "reading and comparing %.1f\nslowest specs:",
            found->seconds[PHASE_PLAN], found->seconds[PHASE_LOAD], found->seconds[PHASE_REFERENCE],
            found->seconds[PHASE_DEVICE], found->seconds[PHASE_COMPARE]);
    for (int i = 0; i < SPECS_SHOWN && i < found->nspecs; i++)
        fprintf(to, " %s %.1f", found->spec[i].name, found->spec[i].seconds);
    fprintf(to, "\n");
}

/* What it passed on each form that it fits; a form that it fits and never passed is a failure. */
static void show_strategy(FILE *to, int i)
{
    static const char *const names[FORMS] = { "whole arrays", "rows", "columns", "offsets", "flags" };
    int passed = 0;
    bool missing;

    for (int f = 0; f < FORMS; f++)
        passed += found->strategy[i].passed[f];
    missing = found->strategy[i].expected && passed == 0;
    fprintf(to, "%s%s: %d passed", missing ? "FAIL " : "", found->strategy[i].name, passed);
    for (int f = 0; f < FORMS; f++)
        if (found->strategy[i].fits[f])
            fprintf(to, ", %s %d", names[f], found->strategy[i].passed[f]);
    if (found->strategy[i].out_of_range)
        fprintf(to, ", %d out of its range", found->strategy[i].out_of_range);
    fprintf(to, "\n");
    found->failed += missing;
    for (int f = 0; f < FORMS && found->expect_forms; f++)
        if (found->strategy[i].fits[f] && found->strategy[i].passed[f] == 0) {
            fprintf(to, "FAIL %s never ran on %s, though it fits a spec of them\n", found->strategy[i].name, names[f]);
            found->failed++;
        }
}

int show_summary(FILE *to)
{
    for (int i = 0; i < found->failed && i < LINES_MAX; i++)
        fprintf(to, "FAIL %s\n", found->line[i]);
    if (found->failed > LINES_MAX)
        fprintf(to, "FAIL and %d more\n", found->failed - LINES_MAX);
    if (found->skipped)
        fprintf(to, "not supported yet:%s\n", found->skips);
    if (found->not_run)
        fprintf(to, "NOT RUN:%s\n", found->omissions);
    for (int i = 0; i < found->nstrategies; i++)
        show_strategy(to, i);
    fprintf(to,
            "refused as by the reference: %d; outside the range of a strategy asked for by name: %d, and pointers that "
            "it refused as not aligned: %d\n",
            found->refused, found->out_of_range, found->refused_shifts);
    fprintf(to, "not decided, as they outgrow their types: %lld of %lld expected values, and %d whole results\n",
            (long long)found->undecided_values, (long long)found->values, found->undecided);
    show_time(to);
    if (*found->device)
        fprintf(to, "%s\n", found->device);
    fprintf(to, "%d passed, %d failed, %d specs skipped, %d not run\n", found->passed, found->failed, found->skipped,
            found->not_run);
    return found->failed;
}
