/* SPDX-License-Identifier: Apache-2.0 */
/* test_library.c - the public API as a long-running, threaded program uses it: many compilations, many threads, no
 * stale state. */
#define _GNU_SOURCE
#include "ptxgen/ptxgen.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, COMPILES = 200, WARM_UP = 20 };

struct source {
    const char *name, *text;
    const char *arch;
};

static const struct source sources[] = {
    { "sum", "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {s: f32}\n", "sm_90" },
    { "dot",
      "kind: reduce\ninputs: {x: 'f16[n]', y: 'f16[n]'}\nmap: f32(x) * f32(y)\noperator: add\noutputs: {s: f32}\n",
      "sm_75" },
    { "best",
      "kind: reduce\ninputs: {x: 'i32[n]'}\nmap: {value: x, index: index(n)}\noperator: argmax\n"
      "outputs: {at: {type: i64, value: r.index}}\n",
      "sm_80" },
    { "spread",
      "kind: reduce\ninputs: {x: 'f64[n]'}\nreductions:\n  lo: {map: x, operator: min}\n  hi: {map: x, operator: max}\n"
      "outputs: {range: {type: f64, value: hi - lo}}\n",
      "sm_120" },
    { "mss",
      "kind: reduce\ninputs: {x: 'i32[n]'}\n"
      "operator:\n  state: {best: i32, left: i32, right: i32, total: i32}\n"
      "  identity: {best: 0, left: 0, right: 0, total: 0}\n"
      "  combine:\n    best: max(max(a.best, b.best), a.right + b.left)\n    left: max(a.left, a.total + b.left)\n"
      "    right: max(b.right, a.right + b.total)\n    total: a.total + b.total\n"
      "map: {best: 'max(x, 0)', left: 'max(x, 0)', right: 'max(x, 0)', total: x}\n"
      "outputs: {mss: {type: i32, value: r.best}}\n",
      "sm_86" },
};
enum { SOURCES = sizeof sources / sizeof *sources };

/* PTX followed by the manifest, owned by the caller; NULL after printing the messages. */
static char *compile(const struct source *source)
{
    ptxgen_session *s = NULL;
    ptxgen_problem *problem = NULL;
    ptxgen_plan *plan = NULL;
    ptxgen_program *program = NULL;
    ptxgen_plan_options options = PTXGEN_PLAN_OPTIONS_INIT;
    options.arch = source->arch;
    char *both = NULL;
    if (ptxgen_session_create(&s) != PTXGEN_OK)
        return NULL;
    if (ptxgen_problem_from_string(s, source->text, strlen(source->text), source->name, &problem) == PTXGEN_OK &&
        ptxgen_plan_create(s, problem, &options, &plan) == PTXGEN_OK &&
        ptxgen_compile(s, plan, NULL, &program) == PTXGEN_OK) {
        char *ptx = ptxgen_program_ptx(program), *manifest = ptxgen_program_manifest(program);
        if (!ptx || !manifest || asprintf(&both, "%s\n%s", ptx, manifest) < 0)
            both = NULL;
        ptxgen_free(ptx);
        ptxgen_free(manifest);
    } else {
        char *messages = ptxgen_diagnostics_text(s, 0);
        fprintf(stderr, "%s: %s\n", source->name, messages ? messages : "");
        ptxgen_free(messages);
    }
    ptxgen_program_destroy(program);
    ptxgen_session_destroy(s);
    return both;
}

/* ---- what leaves the caches first -------------------------------------------------------------------------------- */

/* Loads with the hint, of a spec without times: of arrays whose elements one point reads, and of others. */
Test(library, what_is_read_again_stays_in_the_cache)
{
    static const struct {
        struct source source;
        bool hinted;
    } row[] = {
        { { "once", "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {s: f32}\n", "sm_90" }, true },
        { { "shared",
            "kind: reduce\ninputs: {p: 'f32[k]', q: 'f32[n]'}\nspace: [k, n]\nmap: abs(p - q)\noperator: add\n"
            "outputs: {s: f32}\n",
            "sm_90" },
          false },
        { { "placed",
            "kind: reduce\ninputs: {x: 'f32[n]'}\nmap: x * at(x, index(n) / 2)\noperator: add\noutputs: {s: f32}\n",
            "sm_90" },
          false },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char *ptx = compile(&row[i].source);
        cr_assert_not_null(ptx, "%s", row[i].source.name);
        cr_expect_eq(strstr(ptx, "L1::no_allocate") != NULL, row[i].hinted, "%s", row[i].source.name);
        free(ptx);
    }
}

/* ---- blocks of memory that are in use ------------------------------------------------------------------------------
 * Counted here, in front of glibc's allocator, because its own statistics call blocks used that it keeps for the next
 * caller. AddressSanitizer, which is such a front itself, can be asked. */
#if defined(__SANITIZE_ADDRESS__)
size_t __sanitizer_get_current_allocated_bytes(void);
static long in_use(void) { return (long)__sanitizer_get_current_allocated_bytes(); }
#else
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static _Atomic long blocks;
static void *counted(void *p)
{
    blocks += p != NULL;
    return p;
}
static long in_use(void) { return blocks; }

#pragma GCC visibility push(default) /* seen by all libraries of the process */
void *malloc(size_t size) { return counted(__libc_malloc(size)); }
void *calloc(size_t n, size_t size) { return counted(__libc_calloc(n, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }
void *memalign(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }
int posix_memalign(void **out, size_t alignment, size_t size)
{
    *out = counted(__libc_memalign(alignment, size));
    return *out ? 0 : ENOMEM;
}
void free(void *p)
{
    blocks -= p != NULL;
    __libc_free(p);
}
void *realloc(void *p, size_t size)
{
    void *q = __libc_realloc(p, size);
    blocks += (!p && q) - (p && !q && size == 0);
    return q;
}
#pragma GCC visibility pop
#endif

/* LLVM makes some tables when it first sees something; after that a compilation gives back all that it took. */
Test(library, compiling_again_and_again_takes_no_memory, .timeout = 300)
{
    long before = 0;
    for (int i = 0; i < COMPILES + WARM_UP; i++) {
        if (i == WARM_UP)
            before = in_use();
        char *text = compile(&sources[i % SOURCES]);
        cr_assert(text != NULL);
        free(text);
    }
    cr_expect(before > 0);
    cr_expect(in_use() == before, "%ld in use before, %ld after %d compilations", before, in_use(), COMPILES);
}

struct worker {
    pthread_t thread;
    int first;
    char *const *expected;
    int wrong;
};

static void *work(void *argument)
{
    struct worker *w = argument;
    for (int i = 0; i < 3 * SOURCES; i++) {
        int k = (w->first + i) % SOURCES;
        char *text = compile(&sources[k]);
        w->wrong += !text || strcmp(text, w->expected[k]) != 0;
        free(text);
    }
    return NULL;
}

Test(library, eight_threads_give_the_bytes_of_one, .timeout = 300)
{
    char *expected[SOURCES];
    for (int k = 0; k < SOURCES; k++) {
        expected[k] = compile(&sources[k]);
        cr_assert(expected[k] != NULL);
    }
    struct worker worker[THREADS];
    for (int t = 0; t < THREADS; t++) {
        worker[t] = (struct worker){ .first = t, .expected = expected };
        cr_assert(pthread_create(&worker[t].thread, NULL, work, &worker[t]) == 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(worker[t].thread, NULL);
        cr_expect(worker[t].wrong == 0, "thread %d: %d texts differ", t, worker[t].wrong);
    }
    for (int k = 0; k < SOURCES; k++)
        free(expected[k]);
}

/* An error in one session is no business of another, nor of the next problem of the same one once cleared. */
Test(library, messages_stay_in_their_session)
{
    static const char broken[] = "kind: reduse\n";
    ptxgen_session *bad = NULL, *good = NULL;
    ptxgen_problem *problem = NULL;
    cr_assert(ptxgen_session_create(&bad) == PTXGEN_OK && ptxgen_session_create(&good) == PTXGEN_OK);
    cr_expect(ptxgen_problem_from_string(bad, broken, strlen(broken), "broken", &problem) == PTXGEN_INVALID);
    cr_expect(ptxgen_diagnostic_count(bad) > 0);
    cr_expect(ptxgen_diagnostic_count(good) == 0);
    cr_expect(ptxgen_problem_from_string(good, sources[0].text, strlen(sources[0].text), "good", &problem) ==
              PTXGEN_OK);
    cr_expect(ptxgen_diagnostic_count(good) == 0);
    ptxgen_diagnostics_clear(bad);
    cr_expect(ptxgen_diagnostic_count(bad) == 0);
    cr_expect(ptxgen_problem_from_string(bad, sources[0].text, strlen(sources[0].text), "good", &problem) == PTXGEN_OK);
    ptxgen_session_destroy(bad);
    ptxgen_session_destroy(good);
    ptxgen_session_destroy(NULL);
}

Test(library, a_file_that_cannot_be_read_is_named)
{
    ptxgen_session *s;
    ptxgen_problem *p;
    cr_assert_eq(ptxgen_session_create(&s), PTXGEN_OK);
    cr_expect_eq(ptxgen_problem_from_file(s, "no-such.yaml", &p), PTXGEN_IO);
    char *text = ptxgen_diagnostics_text(s, 0);
    cr_expect_str_eq(text, "no-such.yaml: error: cannot be read: No such file or directory [PTXG-5001]\n");
    ptxgen_free(text);
    ptxgen_session_destroy(s);
}

Test(library, a_host_compiles_its_case_when_its_session_has_gone)
{
    static const char text[] = "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {y: i32}\n";
    ptxgen_session *s, *other;
    ptxgen_problem *p;
    ptxgen_plan *plan;
    ptxgen_host *host;
    const int64_t n = 3;
    const int32_t x[] = { 1, 2, 4 };
    int32_t y = 0;
    const ptxgen_arguments args = { &n, (const void *[]){ x }, (void *[]){ &y }, NULL };
    cr_assert_eq(ptxgen_session_create(&s), PTXGEN_OK);
    cr_assert_eq(ptxgen_problem_from_string(s, text, strlen(text), "t", &p), PTXGEN_OK);
    cr_assert_eq(ptxgen_plan_create(s, p, NULL, &plan), PTXGEN_OK);
    cr_assert_eq(ptxgen_host_create(s, plan, NULL, &host), PTXGEN_OK);
    ptxgen_session_destroy(s);
    cr_assert_eq(ptxgen_session_create(&other), PTXGEN_OK);
    cr_expect_eq(ptxgen_host_run(other, host, &args, "seed:1,race,guard"), PTXGEN_OK);
    cr_expect_eq(y, 7);
    ptxgen_host_destroy(host);
    ptxgen_session_destroy(other);
}

Test(library, the_case_of_a_plan_is_the_one_that_a_run_takes)
{
    enum { MOST = 1 << 16 };
    static const int64_t sizes[] = { 100, 5000, MOST };
    static int32_t x[MOST];
    ptxgen_explain_options o = PTXGEN_EXPLAIN_OPTIONS_INIT;
    ptxgen_session *s;
    ptxgen_problem *p;
    ptxgen_plan *plan;
    ptxgen_program *program;
    ptxgen_host *host;
    int32_t y;
    int taken = -1, different = 0;
    cr_assert_eq(ptxgen_session_create(&s), PTXGEN_OK);
    cr_assert_eq(ptxgen_problem_from_string(s, sources[4].text, strlen(sources[4].text), "mss", &p), PTXGEN_OK);
    cr_assert_eq(ptxgen_plan_create(s, p, NULL, &plan), PTXGEN_OK);
    cr_assert_eq(ptxgen_compile(s, plan, NULL, &program), PTXGEN_OK);
    cr_assert_eq(ptxgen_host_create(s, plan, NULL, &host), PTXGEN_OK);
    cr_expect_eq(ptxgen_plan_case(s, plan, &o), -1, "sizes are open");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const ptxgen_arguments args = { &sizes[i], (const void *[]){ x }, (void *[]){ &y }, NULL };
        o.size = &sizes[i];
        cr_assert_eq(ptxgen_host_run(s, host, &args, NULL), PTXGEN_OK);
        different += ptxgen_plan_case(s, plan, &o) != taken;
        taken = ptxgen_plan_case(s, plan, &o);
        cr_expect_str_eq(ptxgen_program_case_name(program, taken), ptxgen_host_case(host), "%d", (int)sizes[i]);
    }
    cr_expect_gt(different, 1, "sizes of one case alone");
    ptxgen_host_destroy(host);
    ptxgen_program_destroy(program);
    ptxgen_session_destroy(s);
}
