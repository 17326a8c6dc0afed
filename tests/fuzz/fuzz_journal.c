/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_journal.c - any bytes as a journal of `ptxgen tune`: what it says is planned as a variant, and plotted; no text
 * of it becomes markup of a page. */
#include "fuzz.h"

#include "cli/page/html.h"
#include "cli/tune/journal.h"

#include <math.h>

enum { LINES_MAX = 64 };

/* Planned or refused, with a message. */
static void plan(ptxgen_session *s, const ptxgen_problem *problem, const char *id)
{
    ptxgen_plan *p = NULL;
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    o.variant = id;
    o.arch = "sm_90";
    promise(ptxgen_plan_create(s, problem, &o, &p) == PTXGEN_OK || ptxgen_diagnostic_count(s) > 0);
    ptxgen_diagnostics_clear(s);
}

static void plot(const struct plot_point *point, int n)
{
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    promise(to != NULL);
    plot_write(to, point, n, "fuzzed");
    fclose(to);
    int tags = 0, ends = 0;
    for (const char *at = text; *at; at++) {
        tags += *at == '<';
        ends += *at == '>';
    }
    promise(tags == ends && !strstr(text, "<script") && !strstr(text, "\"nan") && !strstr(text, "\"-nan") &&
            !strstr(text, "\"inf"));
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ptxgen_session *s = NULL;
    struct plot_point point[LINES_MAX];
    struct journal j;
    struct journal_line line;
    int n = 0;
    char *text = fuzz_text(data, size);
    promise(ptxgen_session_create(&s) == PTXGEN_OK);
    ptxgen_problem *problem = fuzz_spec(s, "sum");
    journal_begin(&j, text);
    for (int lines = 0; lines < LINES_MAX && journal_next(&j, &line); lines++) {
        promise(line.id[0] && line.microseconds >= 0 && isfinite(line.microseconds) && line.samples >= 0);
        plan(s, problem, line.id);
        if (line.microseconds > 0)
            point[n++] = (struct plot_point){ line.id, line.id, line.microseconds, !strcmp(line.id, "default") };
    }
    if (n > 0)
        plot(point, n);
    ptxgen_session_destroy(s);
    free(text);
    return 0;
}
