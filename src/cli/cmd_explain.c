/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_explain.c - what was chosen and why; or what a message's code means. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* The number of "PTXG-1203", or -1. */
static int code_number(const char *text)
{
    char *end;
    if (strncmp(text, "PTXG-", 5) != 0 || text[5] < '0' || text[5] > '9') {
        return -1;
    }
    long number = strtol(text + 5, &end, 10);
    return *end || number > 9999 ? -1 : (int)number;
}

static int explain_code(int code)
{
    const char *title, *text;
    if (!ptxgen_explain_code(code, &title, &text)) {
        return fail(EXIT_USAGE, "there is no message PTXG-%04d", code);
    }
    printf("PTXG-%04d: %s\n\n%s\n", code, title, text);
    return EXIT_OK;
}

static int explain_problem(ptxgen_session *s, const struct options *o, const ptxgen_problem *p, int64_t *size)
{
    ptxgen_plan *plan;
    int status = parse_sizes(o, p, size);
    /* The plan covers every size; the explanation is of these. */
    status = status ? status : make_plan(s, o, p, NULL, &plan);
    if (status != EXIT_OK) {
        return status;
    }
    char *text = ptxgen_plan_explain(s, plan, o->size.n ? size : NULL);
    if (!text) {
        return fail_call(s, PTXGEN_NO_MEMORY, "explaining");
    }
    status = write_file("-", text, strlen(text));
    ptxgen_free(text);
    return status;
}

int cmd_explain(const struct options *o)
{
    if (o->operands.n != 1) {
        return fail(EXIT_USAGE, "explain one spec, or one message like PTXG-3001");
    }
    if (o->html) {
        return fail(EXIT_USAGE, "--html is not implemented yet");
    }
    int code = code_number(o->operands.item[0]);
    if (code >= 0) {
        return explain_code(code);
    }
    ptxgen_session *s;
    ptxgen_problem *p;
    if (ptxgen_session_create(&s) != PTXGEN_OK) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    int status = load_problem(s, o, o->operands.item[0], &p);
    if (status == EXIT_OK) {
        int64_t *size = calloc((size_t)ptxgen_problem_size_count(p) + 1, sizeof *size);
        status = size ? explain_problem(s, o, p, size) : fail(EXIT_DEVICE, "out of memory");
        free(size);
    }
    ptxgen_session_destroy(s);
    return status;
}
