/* SPDX-License-Identifier: Apache-2.0 */
/* consumer.c - the shortest program that makes PTX through the public API; exit status 0 when there is a kernel in it.
 */
#include <ptxgen/ptxgen.h>

#include <stdio.h>
#include <string.h>

static const char spec[] = "kind: reduce\n"
                           "inputs: {x: 'f32[n]'}\n"
                           "operator: add\n"
                           "outputs: {total: f32}\n";

int main(void)
{
    ptxgen_session *s = NULL;
    ptxgen_problem *problem = NULL;
    ptxgen_plan *plan = NULL;
    ptxgen_program *program = NULL;
    if (ptxgen_session_create(&s) != PTXGEN_OK)
        return 2;
    ptxgen_status status = ptxgen_problem_from_string(s, spec, strlen(spec), "total", &problem);
    if (status == PTXGEN_OK)
        status = ptxgen_plan_create(s, problem, NULL, &plan);
    if (status == PTXGEN_OK)
        status = ptxgen_compile(s, plan, NULL, &program);
    char *text = status == PTXGEN_OK ? ptxgen_program_ptx(program) : ptxgen_diagnostics_text(s, 0);
    int found = text && strstr(text, ".entry") != NULL;
    if (!found)
        fprintf(stderr, "%s: %s\n", ptxgen_status_text(status), text ? text : "");
    else
        printf("ptxgen %s: %zu bytes of PTX\n", ptxgen_version(), strlen(text));
    ptxgen_free(text);
    ptxgen_program_destroy(program);
    ptxgen_session_destroy(s);
    return !found;
}
