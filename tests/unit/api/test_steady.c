/* SPDX-License-Identifier: Apache-2.0 */
/* test_steady.c - compiling again and again, in one thread and in several: the same bytes, and no more memory. */
#include <criterion/criterion.h>
#include <malloc.h>
#include <pthread.h>
#include <string.h>

#include "ptxgen/ptxgen.h"

enum { COMPILES = 60, THREADS = 8 };

static const char spec[] = "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: max\noutputs: {m: f32}\n";

/* From text to PTX; owned by the caller. */
static char *compile(void)
{
    const ptxgen_compile_options options = { .struct_size = sizeof options, .threads = 1 };
    ptxgen_session *s;
    ptxgen_problem *problem;
    ptxgen_plan *plan;
    ptxgen_program *program = NULL;
    char *text = NULL;

    if (ptxgen_session_create(&s) == PTXGEN_OK &&
        ptxgen_problem_from_string(s, spec, sizeof spec - 1, "m", &problem) == PTXGEN_OK &&
        ptxgen_plan_create(s, problem, NULL, &plan) == PTXGEN_OK &&
        ptxgen_compile(s, plan, &options, &program) == PTXGEN_OK)
        text = ptxgen_program_ptx(program);
    ptxgen_program_destroy(program);
    ptxgen_session_destroy(s);
    return text;
}

static void *compile_some(void *expected)
{
    int same = 0;

    for (int i = 0; i < COMPILES / THREADS; i++) {
        char *text = compile();

        same += text && strcmp(text, expected) == 0;
        ptxgen_free(text);
    }
    return same == COMPILES / THREADS ? expected : NULL;
}

static void compile_in_threads(char *expected)
{
    pthread_t thread[THREADS];

    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, compile_some, expected), 0);
    for (int i = 0; i < THREADS; i++) {
        void *same;

        pthread_join(thread[i], &same);
        cr_expect_not_null(same, "a thread got other bytes");
    }
}

/* Bytes in use: of the main heap, and of blocks that the system maps; arenas of threads are not told apart. */
static size_t held(void)
{
    const struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

Test(steady, the_same_bytes_and_no_more_memory)
{
    enum { SLACK = 64 << 10 };
    char *expected = compile();
    size_t before, after;

    cr_assert_not_null(expected);
    for (int i = 0; i < 5; i++)
        ptxgen_free(compile());
    before = held();
    cr_expect_not_null(compile_some(expected));
    for (int i = COMPILES / THREADS; i < COMPILES; i++)
        ptxgen_free(compile());
    after = held();
    cr_expect_lt(after, before + SLACK, "%zu bytes, then %zu", before, after);
    compile_in_threads(expected);
    before = held();
    compile_in_threads(expected);
    after = held();
    cr_expect_lt(after, before + SLACK, "threads: %zu bytes, then %zu", before, after);
    ptxgen_free(expected);
}
