/* SPDX-License-Identifier: Apache-2.0 */
/* tune_journal.c - what is known from earlier runs, so that a tuning that was stopped goes on.
 *
 * A text file: the first line says what is tuned, and every line after it is a variant with its outcome, fields
 * separated by tabs; a later line about a variant counts.  A variant is written down before it runs, so that one that
 * ends the program is not tried again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    fprintf(to, "ptxgen-tune 1\t%s\t%s\t%s\t%s", ptxgen_version(), key ? key : "", t->job.device,
            t->arch ? t->arch : "");
    for (int i = 0; i < t->job.nsizes; i++) {
        fprintf(to, "\t%s=%lld", ptxgen_problem_size_name(t->job.problem, i), (long long)t->job.size[i]);
    }
    fclose(to);
    ptxgen_free(key);
    return text;
}

/* "ID  OUTCOME  MICROSECONDS  SAMPLES  WHY" */
static void read_line(struct tuner *t, char *line)
{
    char *field[5] = { line };
    for (int k = 1; k < 5; k++) {
        char *tab = field[k - 1] ? strchr(field[k - 1], '\t') : NULL;
        if (tab) {
            *tab = 0;
        }
        field[k] = tab ? tab + 1 : NULL;
    }
    int i = field[3] ? space_add(&t->space, line) : 0; /* what has been tried need not be drawn again */
    if (i <= 0 || tune_grow(t)) {                      /* the default is always measured again */
        return;
    }
    struct trial *x = &t->trial[i];
    for (int o = 0; o < OUT_COUNT; o++) {
        if (!strcmp(field[1], outcome_names[o])) {
            x->outcome = (enum outcome)o;
        }
    }
    x->seconds = strtod(field[2], NULL) * 1e-6;
    x->samples = atoi(field[3]);
    free(x->why);
    x->why = field[4] && *field[4] ? strdup(field[4]) : NULL;
}

static int read_all(struct tuner *t, const char *path, char *text, const char *expected)
{
    char *line = text, *next;
    int number = 0;
    for (; line && *line; line = next, number++) {
        next = strchr(line, '\n');
        if (!next) {
            break; /* written half */
        }
        *next++ = 0;
        if (number == 0 && strcmp(line, expected) != 0) {
            return fail(EXIT_USAGE, "%s is the journal of another tuning: name another with --journal, or remove it",
                        path);
        }
        if (number > 0) {
            read_line(t, line);
        }
    }
    for (int i = 0; i < t->space.n; i++) {
        t->measured += t->trial[i].outcome != OUT_NEW && t->trial[i].outcome != OUT_SAME;
    }
    return EXIT_OK;
}

int journal_open(struct tuner *t, const char *path)
{
    size_t length = 0;
    char *expected = header(t), *text = read_file(path, &length);
    bool missing = !text && errno == ENOENT;
    int status = !expected ? fail(EXIT_DEVICE, "out of memory") : EXIT_OK;
    if (status == EXIT_OK && text && length > 0) {
        status = read_all(t, path, text, expected);
    } else if (status == EXIT_OK && !text && !missing) {
        status = fail(EXIT_WRONG, "cannot read %s: %s", path, strerror(errno));
    }
    t->journal = status == EXIT_OK ? fopen(path, "a") : NULL;
    if (status == EXIT_OK && !t->journal) {
        status = fail(EXIT_WRONG, "cannot write %s: %s", path, strerror(errno));
    }
    if (status == EXIT_OK && length == 0) {
        fprintf(t->journal, "%s\n", expected);
    } else if (status == EXIT_OK && text[length - 1] != '\n' && text[length - 1] != 0) {
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
