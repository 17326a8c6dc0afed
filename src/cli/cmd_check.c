/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_check.c - diagnose specs, each in a session of its own. */
#include "cli.h"

static int check(const struct options *o, const char *path)
{
    ptxgen_session *s;
    ptxgen_problem *p;
    if (ptxgen_session_create(&s) != PTXGEN_OK) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    int status = load_problem(s, o, path, &p);
    if (status == EXIT_OK) {
        printf("%s: no errors\n", path);
    }
    ptxgen_session_destroy(s);
    return status;
}

int cmd_check(const struct options *o)
{
    int worst = EXIT_OK;
    if (o->operands.n == 0) {
        return fail(EXIT_USAGE, "which specs?");
    }
    for (int i = 0; i < o->operands.n; i++) {
        int status = check(o, o->operands.item[i]);
        worst = status > worst ? status : worst;
    }
    if (worst == EXIT_OK) {
        say("note", "the laws of operators (associative, commutative, identity) are not checked yet");
    }
    return worst;
}
