/* SPDX-License-Identifier: Apache-2.0 */
/* summary.c - what the threads found, printed when all are done: failures first, at most 40 lines. */
#include "gpu_tests.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>

enum { STRATEGIES_MAX = 64, LINES_MAX = 30, LINE_LENGTH = 300, SKIPS_LENGTH = 1500 };

static struct {
    pthread_mutex_t lock;
    int passed, failed, skipped, refused, out_of_range;
    int nstrategies;
    struct {
        const char *name;
        int passed;
        bool expected;
    } strategy[STRATEGIES_MAX];
    char line[LINES_MAX][LINE_LENGTH]; /* the first failures */
    char skips[SKIPS_LENGTH];
} found = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* What the session says first, on the line; its messages are gone then. */
static void add_message(struct suite *t, char *line)
{
    ptxgen_diagnostic d;
    size_t n = strlen(line);

    if (t->s == NULL)
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
    pthread_mutex_lock(&found.lock);
    if (found.failed < LINES_MAX)
        memcpy(found.line[found.failed], line, sizeof line);
    found.failed++;
    pthread_mutex_unlock(&found.lock);
}

/* The entry of a strategy, made on first sight; the lock is held. */
static int entry_of(const char *strategy)
{
    for (int i = 0; i < found.nstrategies; i++)
        if (strcmp(found.strategy[i].name, strategy) == 0)
            return i;
    if (found.nstrategies == STRATEGIES_MAX)
        return STRATEGIES_MAX - 1;
    found.strategy[found.nstrategies].name = strategy;
    return found.nstrategies++;
}

void expect_strategy(const char *strategy)
{
    pthread_mutex_lock(&found.lock);
    found.strategy[entry_of(strategy)].expected = true;
    pthread_mutex_unlock(&found.lock);
}

void note_outcome(struct suite *t, const char *strategy, enum outcome outcome)
{
    if (t->s)
        ptxgen_diagnostics_clear(t->s);
    pthread_mutex_lock(&found.lock);
    found.strategy[entry_of(strategy)].passed += outcome == OUTCOME_PASSED;
    found.passed += outcome == OUTCOME_PASSED;
    found.refused += outcome == OUTCOME_REFUSED;
    found.out_of_range += outcome == OUTCOME_OUT_OF_RANGE;
    pthread_mutex_unlock(&found.lock);
}

void note_skip(struct suite *t, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n;

    ptxgen_diagnostics_clear(t->s);
    pthread_mutex_lock(&found.lock);
    n = strlen(found.skips);
    snprintf(found.skips + n, SKIPS_LENGTH - n, " %s", slash ? slash + 1 : path);
    found.skipped++;
    pthread_mutex_unlock(&found.lock);
}

int show_summary(FILE *to)
{
    for (int i = 0; i < found.failed && i < LINES_MAX; i++)
        fprintf(to, "FAIL %s\n", found.line[i]);
    if (found.failed > LINES_MAX)
        fprintf(to, "FAIL and %d more\n", found.failed - LINES_MAX);
    if (found.skipped)
        fprintf(to, "not supported yet:%s\n", found.skips);
    for (int i = 0; i < found.nstrategies; i++) {
        bool missing = found.strategy[i].expected && found.strategy[i].passed == 0;
        fprintf(to, "%s%s: %d passed\n", missing ? "FAIL " : "", found.strategy[i].name, found.strategy[i].passed);
        found.failed += missing;
    }
    fprintf(to, "refused as by the reference: %d; outside the range of a strategy asked for by name: %d\n",
            found.refused, found.out_of_range);
    fprintf(to, "%d passed, %d failed, %d specs skipped\n", found.passed, found.failed, found.skipped);
    return found.failed;
}
