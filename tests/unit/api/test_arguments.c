/* SPDX-License-Identifier: Apache-2.0 */
/* test_arguments.c - what a run is given, by place and by name; options of other sizes; roles; the log. */
#include "ptxgen/ptxgen.h"
#include "ptxgen/stages.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char spec[] = "kind: reduce\ninputs: {x: 'f32[n]'}\nparams: {k: {type: f32, value: 2}, m: i32}\n"
                           "map: k * x + f32(m)\noperator: add\noutputs: {y: f32}\n";
enum { N = 3 };

static ptxgen_session *s;
static ptxgen_problem *problem;
static const float x[N] = { 1, 2, 3 };
static float y;

static void begin(void)
{
    cr_assert_eq(ptxgen_session_create(&s), PTXGEN_OK);
    cr_assert_eq(ptxgen_problem_from_string(s, spec, sizeof spec - 1, "t", &problem), PTXGEN_OK);
    y = 0;
}
static void end(void) { ptxgen_session_destroy(s); }
TestSuite(arguments, .init = begin, .fini = end);

/* The last message has the words, and is the only one since the last time. */
static void says(const char *words)
{
    ptxgen_diagnostic d = { 0 };
    cr_expect_eq(ptxgen_diagnostic_count(s), 1, "%s: %d messages", words, ptxgen_diagnostic_count(s));
    if (ptxgen_diagnostic_get(s, 0, &d) == PTXGEN_OK)
        cr_expect(strstr(d.message, words) || (d.hint && strstr(d.hint, words)), "%s: %s", words, d.message);
    ptxgen_diagnostics_clear(s);
}

Test(arguments, a_text_becomes_a_result)
{
    const ptxgen_argument list[] = { PTXGEN_ARRAY("y", &y, sizeof y), PTXGEN_INT("m", 10), PTXGEN_INT("n", N),
                                     PTXGEN_ARRAY("x", x, 0), PTXGEN_REAL("k", 0.5) };
    cr_expect_eq(ptxgen_run_string(s, spec, sizeof spec - 1, "t", list, 5), PTXGEN_OK);
    cr_expect_eq(y, 33);
    cr_expect_eq(ptxgen_run_string(s, spec, sizeof spec - 1, "t", list, 4), PTXGEN_OK);
    cr_expect_eq(y, 42, "k is 2 by default");
}

Test(arguments, what_is_wrong_with_them_is_said)
{
    const ptxgen_argument fine[] = { PTXGEN_INT("n", N), PTXGEN_INT("m", 0), PTXGEN_ARRAY("x", x, sizeof x),
                                     PTXGEN_ARRAY("y", &y, sizeof y) };
    const struct {
        const char *words;
        int place;
        ptxgen_argument in_place;
    } row[] = {
        { "'x' has 12 bytes; at these sizes it needs 16", 0, PTXGEN_INT("n", N + 1) },
        { "'y' has 2 bytes", 3, PTXGEN_ARRAY("y", &y, 2) },
        { "did you mean 'x'", 2, PTXGEN_ARRAY("xx", x, 0) },
        { "array 'x' is missing", 2, PTXGEN_ARRAY("x", NULL, 0) },
        { "array 'x' is given a number", 2, PTXGEN_INT("x", 1) },
        { "'n' is no array", 0, PTXGEN_ARRAY("n", x, 0) },
        { "'n' is an integer", 0, PTXGEN_REAL("n", 3) },
        { "size 'n' is negative", 0, PTXGEN_INT("n", -1) },
        { "param 'm' has no default", 1, PTXGEN_REAL("k", 1) },
        { "'x' is given twice", 3, PTXGEN_ARRAY("x", x, 0) },
        { "'x' has no valid shape", 0, PTXGEN_INT("n", INT64_MAX) },
    };
    const ptxgen_arguments *out;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        ptxgen_argument list[4];
        memcpy(list, fine, sizeof list);
        list[row[i].place] = row[i].in_place;
        cr_expect_eq(ptxgen_arguments_create(s, problem, list, 4, &out), PTXGEN_USAGE, "%s", row[i].words);
        cr_expect_null(out);
        says(row[i].words);
    }
    cr_expect_eq(ptxgen_arguments_create(s, problem, fine, 4, &out), PTXGEN_OK);
    cr_expect_eq(out->param[0].f, 2);
}

/* The same through pointers; a null one among them is told before anything is read. */
Test(arguments, what_is_missing_is_an_error_and_no_fault)
{
    const int64_t size[] = { N };
    const void *input[] = { x };
    void *output[] = { &y };
    ptxgen_value param[] = { { .f = 1 }, { .i = 1 } };
    const struct {
        const char *words;
        ptxgen_arguments args;
    } row[] = {
        { "size 'n' is missing", { NULL, input, output, param } },
        { "array 'x' is missing", { size, NULL, output, param } },
        { "array 'x' is missing", { size, (const void *[]){ NULL }, output, param } },
        { "array 'y' is missing", { size, input, NULL, param } },
        { "array 'y' is missing", { size, input, (void *[]){ NULL }, param } },
        { "param 'm' has no default", { size, input, output, NULL } },
    };
    ptxgen_plan *plan;
    ptxgen_host *host;
    cr_assert_eq(ptxgen_plan_create(s, problem, NULL, &plan), PTXGEN_OK);
    cr_assert_eq(ptxgen_host_create(s, plan, NULL, &host), PTXGEN_OK);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        cr_expect_eq(ptxgen_host_run(s, host, &row[i].args, NULL), PTXGEN_USAGE);
        says(row[i].words);
        cr_expect_eq(ptxgen_evaluate(s, problem, &row[i].args), PTXGEN_USAGE);
        says(row[i].words);
        cr_expect_eq(ptxgen_error_bound(s, problem, &row[i].args, NULL), PTXGEN_USAGE);
        says(row[i].words);
    }
    cr_expect_eq(ptxgen_host_run(s, host, &(ptxgen_arguments){ size, input, output, param }, NULL), PTXGEN_OK);
    cr_expect_eq(y, 9);
    const int64_t none[] = { 0 };
    cr_expect_eq(ptxgen_evaluate(s, problem, &(ptxgen_arguments){ none, NULL, output, param }), PTXGEN_OK);
    cr_expect_eq(y, 0);
    ptxgen_host_destroy(host);
}

/* A program of another release has structures of another size. */
Test(arguments, options_may_be_shorter_or_longer)
{
    struct {
        ptxgen_plan_options known;
        int later;
    } o = { PTXGEN_PLAN_OPTIONS_INIT, 0 };
    ptxgen_plan *plan;
    o.known.struct_size = offsetof(ptxgen_plan_options, ptx);
    o.known.arch = "sm_90";
    o.known.ptx = -1; /* is not looked at */
    cr_expect_eq(ptxgen_plan_create(s, problem, &o.known, &plan), PTXGEN_OK);
    o.known.ptx = 0;
    o.known.struct_size = sizeof o;
    cr_expect_eq(ptxgen_plan_create(s, problem, &o.known, &plan), PTXGEN_OK);
    o.later = 1;
    cr_expect_eq(ptxgen_plan_create(s, problem, &o.known, &plan), PTXGEN_USAGE);
    cr_expect_null(plan);
    says("a field is set that this library does not know");
    cr_expect_eq(ptxgen_plan_create(s, problem, &(ptxgen_plan_options){ 0 }, &plan), PTXGEN_USAGE);
    says("struct_size is 0");
}

Test(arguments, arrays_are_found_by_name)
{
    const ptxgen_array_info *a = ptxgen_problem_array(problem, "x"), *b = ptxgen_problem_array(problem, "y");
    cr_assert(a && b);
    cr_expect(a->rank == 1 && !a->is_output && a->index == 0 && a->role == PTXGEN_ROLE_ELEMENTS);
    cr_expect(b->is_output && b->index == 0 && b->role == PTXGEN_ROLE_SEGMENT_RESULTS);
    cr_expect_null(ptxgen_problem_array(problem, "k"));
}

static void listen(ptxgen_log_level level, const char *text, void *user)
{
    snprintf((char *)user + strlen(user), 1000 - strlen(user), "%d %s\n", (int)level, text);
}

Test(arguments, the_log_says_what_happens)
{
    char heard[1000] = "";
    const ptxgen_argument list[] = { PTXGEN_INT("n", N), PTXGEN_INT("m", 0), PTXGEN_ARRAY("x", x, 0),
                                     PTXGEN_ARRAY("y", &y, 0) };
    ptxgen_session_log(s, PTXGEN_LOG_INFO, listen, heard);
    cr_assert_eq(ptxgen_run_string(s, spec, sizeof spec - 1, "t", list, 4), PTXGEN_OK);
    cr_expect(strstr(heard, "0 t: planned for sm_80: small reduce.block in "), "%s", heard);
    cr_expect(strstr(heard, "0 t: prepared 1 case for the host in "), "%s", heard);
    cr_expect_null(strstr(heard, "\n1 "), "%s", heard);
    ptxgen_session_log(s, PTXGEN_LOG_DEBUG, listen, heard);
    cr_assert_eq(ptxgen_run_string(s, spec, sizeof spec - 1, "t", list, 4), PTXGEN_OK);
    cr_expect(strstr(heard, "1 t: read from t in "), "%s", heard);
    cr_expect(strstr(heard, "1 t: ran on the host, case small in "), "%s", heard);
    ptxgen_session_log(s, PTXGEN_LOG_DEBUG, NULL, NULL);
    heard[0] = '\0';
    cr_assert_eq(ptxgen_run_string(s, spec, sizeof spec - 1, "t", list, 4), PTXGEN_OK);
    cr_expect_str_eq(heard, "");
}

Test(arguments, params_that_are_null_have_their_defaults)
{
    static const char defaults[] = "kind: reduce\ninputs: {x: 'f32[n]'}\nparams: {k: {type: f32, value: 2}}\n"
                                   "map: k * x\noperator: add\noutputs: {y: f32}\n";
    const int64_t size[] = { N };
    const ptxgen_arguments args = { size, (const void *[]){ x }, (void *[]){ &y }, NULL };
    ptxgen_plan *plan;
    ptxgen_host *host;
    cr_assert_eq(ptxgen_problem_from_string(s, defaults, sizeof defaults - 1, "t", &problem), PTXGEN_OK);
    cr_assert_eq(ptxgen_plan_create(s, problem, NULL, &plan), PTXGEN_OK);
    cr_assert_eq(ptxgen_host_create(s, plan, NULL, &host), PTXGEN_OK);
    cr_expect_eq(ptxgen_host_run(s, host, &args, NULL), PTXGEN_OK);
    cr_expect_eq(y, 12);
    y = 0;
    cr_expect_eq(ptxgen_evaluate(s, problem, &args), PTXGEN_OK);
    cr_expect_eq(y, 12);
    ptxgen_host_destroy(host);
}

/* ---- watchers ---------------------------------------------------------------------------------------------------- */
struct watched {
    int calls, last; /* the call that ends the run; 0: none */
};

static int count_call(void *user)
{
    struct watched *w = user;
    if (++w->calls <= 3)
        nanosleep(&(struct timespec){ .tv_nsec = 25000000 },
                  NULL); /* so the next call is due at once, on any machine */
    return w->calls == w->last;
}

Test(arguments, a_watcher_ends_a_run)
{
    enum { MANY = 1 << 26 }; /* some 100 ms */
    float *many = malloc(sizeof *many * MANY);
    const ptxgen_arguments args = { (int64_t[]){ MANY }, (const void *[]){ many }, (void *[]){ &y },
                                    (ptxgen_value[]){ { .f = 2 }, { .i = 1 } } };
    ptxgen_plan *plan;
    ptxgen_host *host;
    for (int i = 0; i < MANY; i++)
        many[i] = 1;
    cr_assert_eq(ptxgen_plan_create(s, problem, NULL, &plan), PTXGEN_OK);
    cr_assert_eq(ptxgen_host_create(s, plan, NULL, &host), PTXGEN_OK);
    static const char *const modes[] = { NULL, "seed:3" };
    for (int m = 0; m < 2; m++)
        for (int last = 0; last < 4; last++) {
            struct watched w = { 0, last };
            ptxgen_host_watch(host, count_call, &w);
            cr_expect_eq(ptxgen_host_run(s, host, &args, modes[m]), last ? PTXGEN_STOPPED : PTXGEN_OK);
            cr_expect(last ? w.calls == last : w.calls > 3 && y == 3.0 * MANY, "%d calls, %g", w.calls, (double)y);
        }
    ptxgen_host_watch(host, NULL, NULL);
    cr_expect_eq(ptxgen_host_run(s, host, &args, NULL), PTXGEN_OK);
    cr_expect_eq(y, 3.0 * MANY);
    cr_expect_eq(ptxgen_diagnostic_count(s), 0);
    ptxgen_host_destroy(host);
    free(many);
}
