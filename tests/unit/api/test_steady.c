/* SPDX-License-Identifier: Apache-2.0 */
/* test_steady.c - compiling 500 times in one thread and 500 times in eight, and beside processes that are killed: the
 * same bytes, and no more memory. */
#include <criterion/criterion.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ptxgen/launch.h"
#include "ptxgen/ptxgen.h"

enum { COMPILES = 500, THREADS = 8, WARM = 64 };

/* A kind each. */
static const char *const spec[] = {
    "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: max\noutputs: {m: f32}\n",
    "kind: scan\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {y: 'i32[n]'}\n",
    "kind: reduce\ninputs: {x: 'f32[m, n]'}\noperator: add\nover: n\noutputs: {s: 'f32[m]'}\n",
    /* the last: left out where no math library is found */
    "kind: stencil\ninputs: {x: 'f32[n]'}\noutputs: {y: {type: 'f32[n]', value: 'x[-1] + sin(x[1])'}}\n",
};
static const int64_t size[] = { 500, 40 };
static char *expected[sizeof spec / sizeof *spec];
static int specs = sizeof spec / sizeof *spec;

/* From text to PTX; owned by the caller.  The case of one launch, or all cases by way of the cache at `place`. */
static char *compile(int which, const char *place)
{
    const bool whole = strcmp(place, "off") != 0;
    const ptxgen_plan_options how = { sizeof how, .size = whole ? NULL : size, .only_these = !whole };
    const ptxgen_compile_options options = { .struct_size = sizeof options, .threads = 1 };
    ptxgen_session *s;
    ptxgen_problem *problem;
    ptxgen_plan *plan;
    ptxgen_program *program = NULL;
    char *text = NULL;

    if (ptxgen_session_create(&s) == PTXGEN_OK &&
        ptxgen_problem_from_string(s, spec[which], strlen(spec[which]), "m", &problem) == PTXGEN_OK &&
        ptxgen_plan_create(s, problem, &how, &plan) == PTXGEN_OK &&
        ptxgen_compile_cached(s, problem, plan, &options, place, &program) == PTXGEN_OK)
        text = ptxgen_program_ptx(program);
    ptxgen_program_destroy(program);
    ptxgen_session_destroy(s);
    return text;
}

/* How many had the expected bytes. */
static int compile_each(int count)
{
    int same = 0;

    for (int i = 0; i < count; i++) {
        char *text = compile(i % specs, "off");

        same += text && strcmp(text, expected[i % specs]) == 0;
        ptxgen_free(text);
    }
    return same;
}

static void *compile_some(void *count)
{
    *(int *)count -= compile_each(*(int *)count);
    return NULL;
}

static void compile_in_threads(int count)
{
    pthread_t thread[THREADS];
    int left[THREADS];

    for (int i = 0; i < THREADS; i++) {
        left[i] = (count + i) / THREADS;
        cr_assert_eq(pthread_create(&thread[i], NULL, compile_some, &left[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        cr_expect_eq(left[i], 0, "thread %d: %d compiles have other bytes", i, left[i]);
    }
}

/* Bytes that are allocated; and those that the process has in memory, allocated or not. */
struct memory {
    long allocated, resident;
};

static struct memory memory(void)
{
    const struct mallinfo2 m = mallinfo2();
    long pages = 0, size;
    FILE *f = fopen("/proc/self/statm", "re");

    cr_assert(f && fscanf(f, "%ld %ld", &size, &pages) == 2);
    fclose(f);
    return (struct memory){ (long)(m.uordblks + m.hblkhd), pages * sysconf(_SC_PAGESIZE) };
}

static void expect_steady(const char *what, struct memory before)
{
#if defined(__SANITIZE_ADDRESS__)
    enum { ALLOCATED = 1, RESIDENT = 512 << 20 }; /* it keeps what was freed, and tells no allocations */
#else
    enum { ALLOCATED = 128 << 10, RESIDENT = 8 << 20 }; /* of a compile: 260 bytes, 16 KiB */
#endif
    const struct memory now = memory();

    cr_expect_lt(now.allocated, before.allocated + ALLOCATED, "%s: %ld bytes allocated, then %ld", what,
                 before.allocated, now.allocated);
    cr_expect_lt(now.resident, before.resident + RESIDENT, "%s: %ld bytes resident, then %ld", what, before.resident,
                 now.resident);
}

Test(steady, the_same_bytes_and_no_more_memory, .timeout = 300)
{
    struct memory before;

    for (int i = 0; i < specs; i++)
        if (!(expected[i] = compile(i, "off")))
            specs = i;
    cr_assert_geq(specs, 3);
    compile_each(WARM);
    before = memory();
    cr_expect_eq(compile_each(COMPILES), COMPILES);
    expect_steady("one thread", before);
    compile_in_threads(2 * WARM);
    before = memory();
    compile_in_threads(COMPILES);
    expect_steady("threads", before);
    for (int i = 0; i < specs; i++)
        ptxgen_free(expected[i]);
}

/* The processes are killed at any number of entries, or at whatever moment the killer comes to see it.  The next start is
 * right, with what is left and with what it adds. */
Test(steady, a_process_killed_while_it_fills_the_cache, .timeout = 300)
{
    enum { KILLS = 30, SCAN = 1 };
    char place[] = "/tmp/ptxgen-killed-XXXXXX";
    ptxgen_cache_info now;
    int cases, halves = 0;

    cr_assert_not_null(mkdtemp(place));
    char *text = compile(SCAN, place);
    cr_assert(text && ptxgen_cache_query(place, &now) == PTXGEN_OK);
    cases = (int)now.entries;
    for (int k = 0; k < KILLS; k++) {
        cr_assert_eq(ptxgen_cache_clear(place), PTXGEN_OK);
        const pid_t child = fork();
        if (child == 0)
            _exit(!compile(SCAN, place));
        siginfo_t ended = { .si_pid = 0 };
        do
            ptxgen_cache_query(place, &now);
        while (now.entries < k % cases && waitid(P_PID, (id_t)child, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               ended.si_pid == 0);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        ptxgen_cache_query(place, &now);
        halves += now.entries > 0 && now.entries < cases;
        for (int start = 0; start < 2; start++) {
            char *again = compile(SCAN, place);
            cr_expect(again && strcmp(again, text) == 0, "kill %d, start %d: other bytes", k, start);
            ptxgen_free(again);
        }
        ptxgen_cache_query(place, &now);
        cr_expect_eq((int)now.entries, cases);
    }
    cr_expect_gt(halves, 0);
    cr_assert(ptxgen_cache_clear(place) == PTXGEN_OK && rmdir(place) == 0);
    ptxgen_free(text);
}
