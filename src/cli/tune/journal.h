/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h - the lines of a journal of `ptxgen tune`, which may come from anywhere.
 *
 * The first line says what is tuned, and every line after it is a variant with its outcome, fields separated by tabs:
 * ID, outcome, microseconds, samples, and why it failed.  What follows the last newline was written half.
 */
#ifndef PTXGEN_CLI_JOURNAL_H
#define PTXGEN_CLI_JOURNAL_H

#include "cli.h"

#define JOURNAL_HEAD "ptxgen-tune 1\t"

struct journal_line {
    const char *id; /* of a variant, by its characters: [A-Za-z0-9_.@=,-] */
    const char *outcome;
    double microseconds; /* finite, from 0 on; 0: none */
    int samples;
    const char *why; /* NULL: nothing */
};

struct journal {
    const char *head; /* NULL: there is not even a first line */
    char *rest;       /* what is still to be read */
    int skipped;      /* lines that were of another form, as one that was written half */
};

/* Begins to read a text, which is cut into pieces on the way. */
void journal_begin(struct journal *j, char *text);
/* The next line that is one; false: there is none. */
bool journal_next(struct journal *j, struct journal_line *out);
/* After the last: says how many lines were skipped, if any were. */
void journal_warn(const struct journal *j, const char *path);

#endif
