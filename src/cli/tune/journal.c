/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c - see journal.h. */
#include "journal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { ID_MAX = 1024, MICROSECONDS_MAX = 1000000000, SAMPLES_MAX = 1000000 };

/* The line at the beginning of the rest, which it is cut off from; NULL: there is no whole one. */
static char *cut_line(struct journal *j)
{
    char *line = j->rest, *end = strchr(line, '\n');
    if (!end) {
        return NULL;
    }
    *end = 0;
    j->rest = end + 1;
    return line;
}

void journal_begin(struct journal *j, char *text)
{
    *j = (struct journal){ 0 };
    j->rest = text;
    j->head = cut_line(j);
}

static bool is_id(const char *text)
{
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || (text[n] && strchr("_.@=,-", text[n]))) {
        n++;
    }
    return n > 0 && n <= ID_MAX && !text[n];
}

/* A number that begins with a digit, from 0 to `most`. */
static bool number(const char *text, double most, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return isdigit((unsigned char)*text) && !*end && *out >= 0 && *out <= most;
}

static bool parse(char *line, struct journal_line *out)
{
    char *field[5] = { line };
    double samples;
    for (int k = 1; k < 5; k++) {
        char *tab = field[k - 1] ? strchr(field[k - 1], '\t') : NULL;
        if (tab) {
            *tab = 0;
        }
        field[k] = tab ? tab + 1 : NULL;
    }
    if (!field[3] || !is_id(line) || !number(field[2], MICROSECONDS_MAX, &out->microseconds) ||
        !number(field[3], SAMPLES_MAX, &samples)) {
        return false;
    }
    out->id = line;
    out->outcome = field[1];
    out->samples = (int)samples;
    out->why = field[4] && *field[4] ? field[4] : NULL;
    return true;
}

bool journal_next(struct journal *j, struct journal_line *out)
{
    for (char *line; (line = cut_line(j)) != NULL; j->skipped++) {
        if (parse(line, out)) {
            return true;
        }
    }
    return false;
}

void journal_warn(const struct journal *j, const char *path)
{
    if (j->skipped) {
        say("warning", "%s: %d line%s ignored that %s no variant with its outcome", path, j->skipped,
            j->skipped == 1 ? " is" : "s are", j->skipped == 1 ? "is" : "are");
    }
}
