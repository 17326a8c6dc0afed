/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_spec.c - any bytes as a spec: never a crash, and the promises about messages hold.
 *
 * A text is either a problem, which has a canonical text and goes on into planning and back from the plan's text, or it
 * is refused with at least one error, and every error of the frontend has a place inside the text.  A broken promise
 * traps, which a fuzzer reports like a crash.
 */
#include "fuzz.h"

static void plan(ptxgen_session *s, const ptxgen_problem *problem)
{
    ptxgen_plan *p = NULL;
    if (ptxgen_plan_create(s, problem, NULL, &p) == PTXGEN_OK) {
        char *text = ptxgen_plan_text(p);
        promise(text && ptxgen_plan_from_string(s, problem, text, strlen(text), "again", &p) == PTXGEN_OK);
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
        text = ptxgen_problem_dot(problem);
        promise(text && text[0]);
        ptxgen_free(text);
        plan(s, problem);
    } else {
        promise(status == PTXGEN_INVALID && !problem);
        fuzz_messages(s, data, size, 1);
    }
    fuzz_render(s);
    ptxgen_session_destroy(s);
    return 0;
}
