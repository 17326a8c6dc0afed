/* SPDX-License-Identifier: Apache-2.0 */
/* tune_journal.c - what is known from earlier runs, so that a tuning that was stopped goes on.
 *
 * A later line about a variant counts.  A variant is written down before it runs, so that one that ends the program is
 * not tried again.  The form is in journal.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "journal.h"
#include "ptxgen/launch.h"
#include "tune.h"

static const char *const outcome_names[] = {
#define X(id, name) [OUT_##id] = name,
    OUTCOMES(X)
#undef X
};

const char *outcome_name(enum outcome o) { return outcome_names[o]; }

static char *header(struct tuner *t)
{
    char *text = NULL, *key = ptxgen_problem_key(t->job.session, t->job.problem);
    size_t n;
    FILE *to = open_memstream(&text, &n);
    if (!to) {
        ptxgen_free(key);
        return NULL;
    }
    fprintf(to, JOURNAL_HEAD "%s\t%s\t%s\t%s", ptxgen_version(), key ? key : "", t->job.device, t->arch ? t->arch : "");
    for (int i = 0; i < t->job.nsizes; i++) {
        fprintf(to, "\t%s=%lld", ptxgen_problem_size_name(t->job.problem, i), (long long)t->job.size[i]);
    }
    fclose(to);
    ptxgen_free(key);
    return text;
}

static void take_line(struct tuner *t, const struct journal_line *line)
{
    int o = 0;
    while (o < OUT_COUNT && strcmp(line->outcome, outcome_names[o]) != 0) {
        o++;
    }
    int i = o < OUT_COUNT ? space_add(&t->space, line->id) : 0; /* what has been tried need not be drawn again */
    if (i <= 0 || tune_grow(t)) {                               /* the default is always measured again */
        return;
    }
    struct trial *x = &t->trial[i];
    x->outcome = (enum outcome)o;
    x->seconds = line->microseconds * 1e-6;
    x->samples = line->samples;
    free(x->why);
    x->why = line->why ? strdup(line->why) : NULL;
}

static int read_all(struct tuner *t, const char *path, char *text, const char *expected)
{
    struct journal j;
    struct journal_line line;
    journal_begin(&j, text);
    if (!j.head || !expected || strcmp(j.head, expected) != 0) {
        return fail(EXIT_USAGE, "%s is the journal of another tuning: name another with --journal, or remove it", path);
    }
    while (journal_next(&j, &line)) {
        take_line(t, &line);
    }
    journal_warn(&j, path);
    for (int i = 0; i < t->space.n; i++) {
        t->measured += t->trial[i].outcome != OUT_NEW && t->trial[i].outcome != OUT_SAME;
    }
    return EXIT_OK;
}

/* Of every tuning its own: CACHE/tune/NAME.m8192.n8192.HASH.journal; without a cache NAME.m8192.n8192.journal here. */
static char *usual_journal(const struct tuner *t, const char *head)
{
    ptxgen_cache_info cache;
    char *path = NULL;
    size_t n;
    FILE *to = open_memstream(&path, &n);
    ptxgen_cache_query(NULL, &cache);
    bool beside = warn_cache();
    if (!to) {
        return NULL;
    }
    fprintf(to, "%s%s%s", beside ? cache.path : "", beside ? "/tune/" : "", ptxgen_problem_name(t->job.problem));
    for (int i = 0; i < t->job.nsizes; i++) {
        fprintf(to, ".%s%lld", ptxgen_problem_size_name(t->job.problem, i), (long long)t->job.size[i]);
    }
    if (beside) {
        fprintf(to, ".%016llx", (unsigned long long)data_key(0, head));
    }
    fputs(".journal", to);
    fclose(to);
    return path;
}

int journal_open(struct tuner *t)
{
    size_t length = 0;
    char *expected = header(t);
    const char *path = t->journal_path = !expected             ? NULL
                                         : t->options->journal ? strdup(t->options->journal)
                                                               : usual_journal(t, expected);
    if (!path) {
        free(expected);
        return fail(EXIT_DEVICE, "out of memory");
    }
    make_directories(path);
    char *text = read_file(path, &length);
    bool missing = !text && errno == ENOENT, whole = text && length > 0 && text[length - 1] == '\n';
    int status = EXIT_OK;
    if (text && length > 0) {
        status = read_all(t, path, text, expected);
    } else if (!text && !missing) {
        status = fail(EXIT_WRONG, "cannot read %s: %s", path, strerror(errno));
    }
    t->journal = status == EXIT_OK ? fopen(path, "a") : NULL;
    if (status == EXIT_OK && !t->journal) {
        status = fail(EXIT_WRONG, "cannot write %s: %s", path, strerror(errno));
    }
    if (status == EXIT_OK && length == 0) {
        fprintf(t->journal, "%s\n", expected);
    } else if (status == EXIT_OK && !whole) {
        fputc('\n', t->journal);
    }
    free(expected);
    free(text);
    return status;
}

void journal_write(struct tuner *t, int i)
{
    const struct trial *x = &t->trial[i];
    fprintf(t->journal, "%s\t%s\t%.4f\t%d\t", t->space.item[i].id, outcome_name(x->outcome), x->seconds * 1e6,
            x->samples);
    for (const char *at = x->why; at && *at; at++) {
        fputc(*at == '\n' || *at == '\t' ? ' ' : *at, t->journal);
    }
    fputc('\n', t->journal);
    fflush(t->journal);
}
