/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - diagnose specs, each in a session of its own, and judge their operators. */
#include <string.h>

#include "cli.h"
#include "progress.h"

enum { LAWS_PER_OPERATOR = 4 };

/* What the verdict means for the user, below the table; nothing where it speaks for itself. */
static void explain_law(const ptxgen_law_info *l)
{
    if (l->verdict != PTXGEN_REFUTED && l->example && (l->expected || l->law == PTXGEN_COMMUTATIVE)) {
        printf("      %s but for %s: %s\n", l->law_name, l->cause, l->example);
    }
    if (l->identity) {
        printf("      an identity: %s\n", l->identity);
    }
    if (l->law == PTXGEN_COMMUTATIVE && !l->expected && l->verdict == PTXGEN_PROVED) {
        printf("      'commutative: true' allows faster schedules\n");
    }
    if (l->expected && l->verdict == PTXGEN_UNDECIDED) {
        printf("      %s: neither proved nor refuted, so what is declared is believed\n", l->law_name);
    }
}

static void print_operator(const ptxgen_laws *laws, int first)
{
    ptxgen_law_info l;
    for (int i = 0; i < LAWS_PER_OPERATOR; i++) {
        ptxgen_laws_get(laws, first + i, &l);
        if (i == 0) {
            printf("  %s (%s)\n", l.reduction, l.operator_name);
        }
        printf("    %-12s %s%s\n", l.law_name, l.verdict_text,
               l.verdict == PTXGEN_UNDECIDED && l.expected ? ": declared" : "");
    }
    for (int i = 0; i < LAWS_PER_OPERATOR; i++) {
        ptxgen_laws_get(laws, first + i, &l);
        explain_law(&l);
    }
}

static void json_member(const char *name, const char *text)
{
    printf(", \"%s\": ", name);
    if (text) {
        json_text(stdout, text);
    } else {
        fputs("null", stdout);
    }
}

static void json_laws(const char *path, const ptxgen_laws *laws, bool good)
{
    ptxgen_law_info l;
    fputs("{\"spec\": ", stdout);
    json_text(stdout, path);
    printf(", \"ok\": %s, \"laws\": [", good ? "true" : "false");
    for (int i = 0; laws && i < ptxgen_laws_count(laws); i++) {
        ptxgen_laws_get(laws, i, &l);
        printf("%s\n  {\"expected\": %s", i ? "," : "", l.expected ? "true" : "false");
        json_member("reduction", l.reduction);
        json_member("operator", l.operator_name);
        json_member("law", l.law_name);
        json_member("verdict", l.verdict_text);
        json_member("example", l.example);
        json_member("cause", l.cause);
        json_member("method", l.method);
        json_member("identity", l.identity);
        putchar('}');
    }
    puts("]}");
}

/* The time left is that of the specs before, and of this one as if it took as long. */
static ptxgen_status check_laws(ptxgen_session *s, const struct options *o, const char *path, int number,
                                const ptxgen_problem *p, ptxgen_laws **laws)
{
    static double begin;
    char what[256];
    ptxgen_laws_options options = PTXGEN_LAWS_OPTIONS_INIT;
    laws_options(o, &options);
    warn_cache();
    begin = number == 0 ? progress_now() : begin;
    snprintf(what, sizeof what, "judging the operators of %s (%d of %d)", path, number + 1, o->operands.n);
    progress_begin(what, number ? (progress_now() - begin) / number * (o->operands.n - number) : 0);
    ptxgen_status status = ptxgen_laws_check(s, p, &options, laws);
    progress_end();
    return status;
}

static int judge(ptxgen_session *s, const struct options *o, const char *path, int number, const ptxgen_problem *p)
{
    ptxgen_laws *laws = NULL;
    ptxgen_status status = o->no_laws ? PTXGEN_OK : check_laws(s, o, path, number, p, &laws);
    if (status != PTXGEN_OK && status != PTXGEN_INVALID) {
        return fail_call(s, status, path);
    }
    if (o->json) {
        json_laws(path, laws, status == PTXGEN_OK);
    } else {
        printf("%s: %s\n", path, status == PTXGEN_OK ? "no errors" : "an operator breaks a law");
        for (int i = 0; laws && i < ptxgen_laws_count(laws); i += LAWS_PER_OPERATOR) {
            print_operator(laws, i);
        }
    }
    fflush(stdout);
    return status == PTXGEN_OK ? EXIT_OK : fail_call(s, status, path);
}

static int check(const struct options *o, const char *path, int number)
{
    ptxgen_session *s;
    ptxgen_problem *p;
    if (ptxgen_session_create(&s) != PTXGEN_OK) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    int status = load_problem(s, o, path, &p);
    if (status == EXIT_OK) {
        status = judge(s, o, path, number, p);
    }
    ptxgen_session_destroy(s);
    return status;
}

int cmd_check(const struct options *o)
{
    int worst = EXIT_OK;
    if (o->operands.n == 0) {
        return fail(EXIT_USAGE, "'check' takes specs: ptxgen check SPEC.yaml...");
    }
    for (int i = 0; i < o->operands.n; i++) {
        int status = check(o, o->operands.item[i], i);
        worst = status > worst ? status : worst;
    }
    return worst;
}
