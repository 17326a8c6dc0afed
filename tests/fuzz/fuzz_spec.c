/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_spec.c - any bytes as a spec: never a crash, and the promises about messages hold.
 *
 * A text is either a problem, which has a canonical text and goes on into planning, or it is refused with at least one
 * error, and every error of the frontend has a place inside the text.  A broken promise traps, which a fuzzer reports
 * like a crash.
 */
#include "ptxgen/ptxgen.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void promise(int holds)
{
    if (!holds)
        __builtin_trap();
}

static int lines_of(const uint8_t *data, size_t size)
{
    int lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n' || data[i] == '\r';
    return lines;
}

/* A refusal must come with an error, and each message with a place in the text and with words. */
static void check_messages(const ptxgen_session *s, const uint8_t *data, size_t size)
{
    int errors = 0;
    for (int i = 0; i < ptxgen_diagnostic_count(s); i++) {
        ptxgen_diagnostic d;
        promise(ptxgen_diagnostic_get(s, i, &d) == PTXGEN_OK);
        promise(d.message && d.message[0]);
        errors += d.severity == PTXGEN_ERROR;
        /* "\r\n", NEL and the like: a line may end in more than one byte, never in less. */
        promise(d.line >= 1 && d.column >= 1 && d.line <= lines_of(data, size));
    }
    promise(errors > 0);
}

/* Messages can be rendered in both forms whatever the text held. */
static void render_messages(const ptxgen_session *s)
{
    char *text = ptxgen_diagnostics_text(s, 0), *json = ptxgen_diagnostics_json(s);
    promise(text && json && json[0] == '{');
    ptxgen_free(text);
    ptxgen_free(json);
}

static void plan(ptxgen_session *s, const ptxgen_problem *problem)
{
    ptxgen_plan *p = NULL;
    if (ptxgen_plan_create(s, problem, NULL, &p) == PTXGEN_OK) {
        char *text = ptxgen_plan_text(p);
        promise(text != NULL);
        ptxgen_free(text);
    } else {
        promise(ptxgen_diagnostic_count(s) > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ptxgen_session *s = NULL;
    ptxgen_problem *problem = NULL;
    promise(ptxgen_session_create(&s) == PTXGEN_OK);
    ptxgen_status status = ptxgen_problem_from_string(s, (const char *)data, size, "fuzz", &problem);
    if (status == PTXGEN_OK) {
        promise(problem && ptxgen_problem_name(problem)[0]);
        char *text = ptxgen_problem_text(problem);
        promise(text && text[0]);
        ptxgen_free(text);
        plan(s, problem);
    } else {
        promise(status == PTXGEN_INVALID && !problem);
        check_messages(s, data, size);
    }
    render_messages(s);
    ptxgen_session_destroy(s);
    return 0;
}
