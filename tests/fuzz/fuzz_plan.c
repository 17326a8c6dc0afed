/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_plan.c - any bytes as the text of a plan, for the spec of specs/ that it names.
 *
 * It is either refused, with an error at a place in the text, or is a plan that has the same text again, can be
 * explained, and is compiled.
 */
#include "fuzz.h"

/* What stands behind "problem: "; a spec's name, or "sum". */
static void problem_name(const char *text, char name[64])
{
    const char *at = strstr(text, "problem: ");
    size_t n = at ? strspn(at + 9, "abcdefghijklmnopqrstuvwxyz0123456789_") : 0;
    n = n < 64 ? n : 0;
    memcpy(name, at ? at + 9 : "", n);
    name[n] = 0;
}

static void use(ptxgen_session *s, const ptxgen_problem *problem, ptxgen_plan *plan)
{
    int64_t size[16];
    const ptxgen_compile_options options = { .struct_size = sizeof options, .threads = 1 };
    ptxgen_program *program = NULL;
    ptxgen_plan *again = NULL;
    char *text = ptxgen_plan_text(plan);
    promise(text && ptxgen_plan_from_string(s, problem, text, strlen(text), "again", &again) == PTXGEN_OK);
    char *same = ptxgen_plan_text(again);
    promise(same && !strcmp(text, same));
    for (int i = 0; i < 16; i++)
        size[i] = 1000;
    char *explained = ptxgen_plan_explain(s, plan, ptxgen_problem_size_count(problem) <= 16 ? size : NULL);
    promise(explained && explained[0]);
    promise(ptxgen_compile(s, plan, &options, &program) == PTXGEN_OK);
    char *manifest = ptxgen_program_manifest(program), *header = ptxgen_program_header(program);
    promise(manifest && header);
    ptxgen_program_destroy(program);
    ptxgen_free(manifest);
    ptxgen_free(header);
    ptxgen_free(explained);
    ptxgen_free(same);
    ptxgen_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ptxgen_session *s = NULL;
    ptxgen_plan *plan = NULL;
    char *text = fuzz_text(data, size), name[64];
    promise(ptxgen_session_create(&s) == PTXGEN_OK);
    problem_name(text, name);
    ptxgen_problem *problem = fuzz_spec(s, name);
    problem = problem ? problem : fuzz_spec(s, "sum");
    promise(problem != NULL);
    const ptxgen_status status = ptxgen_plan_from_string(s, problem, text, size, "fuzz", &plan);
    if (status == PTXGEN_OK) {
        use(s, problem, plan);
    } else {
        promise(status == PTXGEN_INVALID && !plan);
        fuzz_messages(s, data, size, 1);
    }
    fuzz_render(s);
    ptxgen_session_destroy(s);
    free(text);
    return 0;
}
