/* SPDX-License-Identifier: Apache-2.0 */
/* test_jit.c - from a spec to something to launch in one call, cases that are compiled when they are taken, and the disk
 * cache. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cache/cache.h"
#include "support/launch_fixture.h"

static char directory[64];
static ptxgen_session *s;

static void setup_jit(void) { s = open_with_cache(directory); }
static void teardown_jit(void) { close_with_cache(s, directory); }
TestSuite(jit, .init = setup_jit, .fini = teardown_jit);

static const char spec[] =
    "kind: reduce\ninputs: {x: 'f32[n]', y: 'f32[n]'}\nmap: x * y\noperator: add\noutputs: {dot: f32}\n";

static int64_t entries(void)
{
    ptxgen_cache_info info;

    cr_assert_eq(ptxgen_cache_query(NULL, &info), PTXGEN_OK);
    cr_expect_str_eq(info.path, directory);
    return info.entries;
}

static int cases_of_texts;

/* The PTX of all cases as the driver gets it, and everything that a launch reads. */
static char *texts_of(const char *text, const ptxgen_jit_options *options)
{
    struct str all = { 0 };

    cr_assert_eq(ptxgen_jit_string(s, gpu, text, strlen(text), "dot", options, &loaded), PTXGEN_OK, "%s",
                 message_of(s));
    cr_assert_eq(ptxgen_prepare(s, loaded, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
    cases_of_texts = loaded->program->ncases;
    for (int m = 0; m < loaded->program->nmodules; m++)
        str_printf(&all, "%s%zu\n", loaded->program->module[m].ptx, loaded->program->module[m].length);
    program_manifest(loaded->program, &all);
    ptxgen_loaded_destroy(loaded);
    return str_take(&all);
}

/* ---- the call --------------------------------------------------------------------------------- */
Test(jit, a_spec_becomes_something_to_launch)
{
    const int64_t n = 1000;
    const void *in[] = { x_memory, x_memory };
    void *out[] = { y_memory };
    ptxgen_arguments args = { .size = &n, .input = in, .output = out };

    cr_assert_eq(ptxgen_jit_string(s, gpu, spec, sizeof spec - 1, "dot", NULL, &loaded), PTXGEN_OK, "%s",
                 message_of(s));
    cr_expect_str_eq(loaded->program->arch, "sm_90");
    cr_expect_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(calls_of("cuLaunchKernel") + calls_of("cuLaunchKernelEx"), 1);
    ptxgen_loaded_destroy(loaded);
}

Test(jit, what_is_wrong_is_said)
{
    static const char wrong[] = "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: ad\noutputs: {s: f32}\n";
    ptxgen_plan_options plan = PTXGEN_PLAN_OPTIONS_INIT;
    ptxgen_jit_options options = { .struct_size = sizeof options, .plan = &plan };

    cr_expect_eq(ptxgen_jit_string(s, gpu, wrong, sizeof wrong - 1, "w", NULL, &loaded), PTXGEN_INVALID);
    cr_expect_null(loaded);
    cr_expect(strstr(message_of(s), "operator"), "%s", message_of(s));
    cr_expect_eq(ptxgen_jit_file(s, gpu, "/no/such/file.yaml", NULL, &loaded), PTXGEN_IO);
    plan.arch = "sm_100"; /* newer than the device */
    cr_expect_eq(ptxgen_jit_string(s, gpu, spec, sizeof spec - 1, "dot", &options, &loaded), PTXGEN_NO_DEVICE);
    cr_expect_null(loaded);
    cr_expect(strstr(message_of(s), "the program is for sm_100"), "%s", message_of(s));
    cr_expect_eq(fake->live, 1, "the context alone");
}

Test(jit, the_architecture_is_what_device_and_driver_take)
{
    static const struct {
        int sm, ptx;
        const char *arch;
    } rows[] = { { 90, 90, "sm_90" },   { 100, 90, "sm_100" }, { 100, 85, "sm_90" }, { 101, 90, "sm_100" },
                 { 121, 90, "sm_121" }, { 999, 90, "sm_121" }, { 80, 74, "sm_80" },  { 60, 90, NULL } };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ptxgen_gpu_info info = { .sm = rows[i].sm, .ptx = rows[i].ptx };
        const char *arch = ptxgen_gpu_arch(&info);

        cr_expect(rows[i].arch ? arch && strcmp(arch, rows[i].arch) == 0 : arch == NULL, "sm_%d with PTX %d: %s",
                  rows[i].sm, rows[i].ptx, arch ? arch : "none");
    }
}

Test(jit, a_launch_keeps_what_the_spec_assumes_of_arrays)
{
    static const char text[] = "kind: reduce\ninputs: {x: 'f32[n]', y: 'f32[n]'}\nmap: x * y\noperator: add\n"
                               "outputs: {dot: f32}\nassume: {y: {aligned: 16}}\n";
    const int64_t n = 1000;
    float *aligned = (float *)(((uintptr_t)x_memory + 15) / 16 * 16);
    const void *in[] = { aligned + 1, aligned };
    void *out[] = { y_memory };
    const ptxgen_arguments args = { .size = &n, .input = in, .output = out };

    cr_assert_eq(ptxgen_jit_string(s, gpu, text, sizeof text - 1, "dot", NULL, &loaded), PTXGEN_OK, "%s",
                 message_of(s));
    cr_expect_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
    in[1] = aligned + 2;
    cr_expect_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_USAGE);
    cr_expect(strstr(message_of(s), "`assume` promises that y is aligned to 16 bytes"), "%s", message_of(s));
    cr_expect_eq(calls_of("cuLaunchKernel") + calls_of("cuLaunchKernelEx"), 1);
    ptxgen_loaded_destroy(loaded);
}

/* ---- cases are compiled when they are taken --------------------------------------------------- */
static ptxgen_status launch_n(ptxgen_session *by, int64_t n, ptxgen_stream stream)
{
    const void *in[] = { x_memory, x_memory };
    void *out[] = { y_memory };

    return ptxgen_launch(by, loaded, &(ptxgen_arguments){ .size = &n, .input = in, .output = out }, stream, NULL);
}

static void jit(const ptxgen_jit_options *options)
{
    cr_assert_eq(ptxgen_jit_string(s, gpu, spec, sizeof spec - 1, "dot", options, &loaded), PTXGEN_OK, "%s",
                 message_of(s));
}

Test(jit, a_launch_compiles_the_case_that_it_takes)
{
    jit(NULL);
    cr_assert_gt(loaded->program->ncases, 1);
    cr_expect_eq(entries(), 0);
    cr_assert_eq(launch_n(s, 100, NULL), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(entries(), 1);
    cr_assert_eq(launch_n(s, 101, NULL), PTXGEN_OK);
    cr_expect_eq(entries(), 1);
    cr_assert_eq(launch_n(s, 1 << 24, NULL), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(entries(), 2);
    cr_expect_eq(calls_of("cuModuleLoadDataEx"), 2);
    ptxgen_loaded_destroy(loaded);
}

Test(jit, a_capture_compiles_nothing)
{
    ptxgen_stream stream;
    const int64_t n = 100;
    const void *in[] = { x_memory, x_memory };
    void *out[] = { y_memory };

    cr_assert_eq(ptxgen_stream_create(s, gpu, &stream), PTXGEN_OK);
    jit(NULL);
    fake->capturing = 1;
    cr_expect_eq(launch_n(s, n, stream), PTXGEN_USAGE);
    cr_expect(strstr(message_of(s), "call ptxgen_prepare() before"), "%s", message_of(s));
    cr_expect_eq(ptxgen_prepare(s, loaded, NULL, stream), PTXGEN_USAGE);
    cr_expect_eq(entries(), 0);
    fake->capturing = 0;
    cr_expect_eq(ptxgen_prepare(s, loaded, &(ptxgen_arguments){ .size = &n, .input = in, .output = out }, stream),
                 PTXGEN_OK);
    cr_expect_eq(entries(), 1);
    fake->capturing = 1;
    cr_expect_eq(launch_n(s, n, stream), PTXGEN_OK, "%s", message_of(s));
    fake->capturing = 0;
    ptxgen_loaded_destroy(loaded);
    ptxgen_stream_destroy(gpu, stream);
}

Test(jit, the_session_may_be_destroyed_before_a_case_is_compiled)
{
    jit(NULL);
    ptxgen_session_destroy(s);
    cr_assert_eq(ptxgen_session_create(&s), PTXGEN_OK);
    cr_expect_eq(launch_n(NULL, 100, NULL), PTXGEN_OK);
    cr_expect_eq(launch_n(s, 1 << 24, NULL), PTXGEN_OK, "%s", message_of(s));
    ptxgen_loaded_destroy(loaded);
}

static _Atomic int compiled;
static void count_compiled(ptxgen_log_level level, const char *text, void *user)
{
    (void)level, (void)user;
    compiled += strstr(text, "compiled") != NULL;
}

static void *launch_first(void *user)
{
    ptxgen_session *mine;

    (void)user;
    ptxgen_session_create(&mine);
    ptxgen_session_log(mine, PTXGEN_LOG_INFO, count_compiled, NULL);
    const bool ok = launch_n(mine, 100, NULL) == PTXGEN_OK;
    ptxgen_session_destroy(mine);
    return ok ? mine : NULL;
}

Test(jit, threads_compile_a_case_once)
{
    enum { THREADS = 8 };
    ptxgen_jit_options off = { .struct_size = sizeof off, .cache = "off" };
    pthread_t thread[THREADS];

    jit(&off);
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, launch_first, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *fine;

        pthread_join(thread[i], &fine);
        cr_expect_not_null(fine);
    }
    cr_expect_eq(compiled, 1);
    ptxgen_loaded_destroy(loaded);
}

Test(jit, what_fails_is_said_by_every_launch_that_takes_it)
{
    static const char sine[] = "kind: reduce\ninputs: {x: 'f32[n]'}\nmap: sin(x)\noperator: add\noutputs: {dot: f32}\n";
    const ptxgen_compile_options compile = { sizeof compile, .math_library = "/no/such/library.bc" };
    ptxgen_jit_options options = { .struct_size = sizeof options, .compile = &compile };

    cr_assert_eq(ptxgen_jit_string(s, gpu, sine, sizeof sine - 1, "sine", &options, &loaded), PTXGEN_OK);
    for (int i = 0; i < 2; i++) {
        ptxgen_diagnostics_clear(s);
        cr_expect_eq(launch_n(s, 100, NULL), PTXGEN_UNSUPPORTED);
        cr_expect(strstr(message_of(s), "sine, case ") && strstr(message_of(s), "/no/such/library.bc"), "%s",
                  message_of(s));
    }
    cr_expect_eq(launch_n(NULL, 100, NULL), PTXGEN_UNSUPPORTED);
    cr_expect_eq(entries(), 0);
    ptxgen_loaded_destroy(loaded);
}

Test(jit, a_thread_compiles_all_cases_where_that_is_asked)
{
    ptxgen_jit_options options = { .struct_size = sizeof options, .background = 1 };

    for (int i = 0; i < 5; i++) { /* destroyed on the way */
        jit(&options);
        usleep((useconds_t)(1000 * i));
        ptxgen_loaded_destroy(loaded);
    }
    jit(&options);
    for (int i = 0; i < 10000 && entries() < loaded->program->ncases; i++)
        usleep(1000);
    cr_expect_eq(entries(), loaded->program->ncases);
    ptxgen_session_log(s, PTXGEN_LOG_INFO, count_compiled, NULL);
    cr_expect_eq(launch_n(s, 100, NULL), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(compiled, 0);
    ptxgen_loaded_destroy(loaded);
}

/* ---- the cache -------------------------------------------------------------------------------- */
static void expect_same_twice(const char *text, const char *part)
{
    ptxgen_jit_options off = { .struct_size = sizeof off, .cache = "off" };
    const int64_t before = entries();
    int64_t cases;
    char *plain = texts_of(text, &off), *first, *second;

    cr_expect_eq(entries(), before);
    cases = cases_of_texts;
    first = texts_of(text, NULL);
    cr_expect_eq(entries(), before + cases);
    second = texts_of(text, NULL);
    cr_expect_eq(entries(), before + cases);
    cr_expect_str_eq(first, plain);
    cr_expect_str_eq(second, plain);
    cr_expect(strstr(plain, part), "no %s", part);
    free(plain);
    free(first);
    free(second);
}

Test(jit, the_second_start_gives_the_same_program) { expect_same_twice(spec, ".target sm_90"); }

/* More shared memory than a kernel can have by itself is asked for by its launches, known only when code was made. */
Test(jit, the_second_start_launches_with_as_much_shared_memory)
{
    static const char scan[] = "kind: scan\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {y: 'i32[n]'}\n"
                               "strategy: {name: scan.pipeline}\n";

    expect_same_twice(scan, "\"shared\":");
}

Test(jit, what_the_code_depends_on_makes_another_entry)
{
    static const char other[] =
        "kind: reduce\ninputs: {x: 'f32[n]', y: 'f32[n]'}\nmap: x + y\noperator: add\noutputs: {dot: f32}\n";
    const ptxgen_setting threads = { "threads", "128" };
    const ptxgen_plan_options plan[] = { { sizeof *plan, .arch = "sm_80" },
                                         { sizeof *plan, .ptx = 81 },
                                         { sizeof *plan, .setting_count = 1, .setting = &threads } };
    const ptxgen_compile_options compile = { sizeof compile, .pipeline = 3 };
    int64_t expected;

    free(texts_of(spec, NULL));
    expected = cases_of_texts;
    free(texts_of(other, NULL));
    cr_expect_eq(entries(), expected += cases_of_texts, "another map");
    for (size_t i = 0; i < sizeof plan / sizeof *plan; i++) {
        free(texts_of(spec, &(ptxgen_jit_options){ .struct_size = sizeof(ptxgen_jit_options), .plan = &plan[i] }));
        cr_expect_eq(entries(), expected += cases_of_texts, "plan %zu", i);
    }
    free(texts_of(spec, &(ptxgen_jit_options){ .struct_size = sizeof(ptxgen_jit_options), .compile = &compile }));
    cr_expect_eq(entries(), expected += cases_of_texts, "the pipeline");
    free(texts_of(spec, NULL));
    cr_expect_eq(entries(), expected, "the first is still there");
}

/* A plan for one size has fewer cases, and their code is the same. */
Test(jit, what_the_code_does_not_depend_on_finds_the_entry)
{
    static const int64_t size[] = { 100 };
    const ptxgen_plan_options plan = { sizeof plan, .size = size, .only_these = 1 };
    int64_t before;

    free(texts_of(spec, NULL));
    before = entries();
    free(texts_of(spec, &(ptxgen_jit_options){ .struct_size = sizeof(ptxgen_jit_options), .plan = &plan }));
    cr_expect_lt(cases_of_texts, before);
    cr_expect_eq(entries(), before);
}

static void hear(ptxgen_log_level level, const char *text, void *user)
{
    const size_t n = strlen(user);

    snprintf((char *)user + n, 2000 - n, "%d %s\n", (int)level, text);
}

Test(jit, the_log_tells_what_came_from_the_cache)
{
    char heard[2000] = "";

    ptxgen_session_log(s, PTXGEN_LOG_DEBUG, hear, heard);
    free(texts_of(spec, NULL));
    cr_expect(strstr(heard, "0 dot: compiled ") && strstr(heard, "1 dot: kept in the cache /"), "%s", heard);
    heard[0] = '\0';
    free(texts_of(spec, NULL));
    cr_expect(strstr(heard, "0 dot: taken from the cache /") && !strstr(heard, "compiled"), "%s", heard);
}

/* An entry that is whole, and of something else. */
Test(jit, an_entry_of_another_form_is_replaced)
{
    char path[400] = "", *first = texts_of(spec, NULL), *again;
    DIR *d = opendir(directory);
    struct cache cache;
    struct cache_key key;
    struct str entry = { 0 };

    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.')
            snprintf(path, sizeof path, "%s", e->d_name);
    closedir(d);
    for (int i = 0; i < SHA256_BYTES; i++) {
        unsigned byte;

        cr_assert_eq(sscanf(path + 2 * i, "%2x", &byte), 1);
        key.digest[i] = (unsigned char)byte;
    }
    cache_locate(&cache, NULL);
    cr_assert(cache_get(&cache, &key, &entry, NULL));
    for (size_t cut = 0; cut < entry.length; cut += entry.length / 7 + 1) {
        cache_put(&cache, &key, entry.text, cut);
        again = texts_of(spec, NULL);
        cr_expect_str_eq(again, first, "cut at %zu", cut);
        free(again);
    }
    str_addc(&entry, 'x');
    cache_put(&cache, &key, entry.text, entry.length);
    again = texts_of(spec, NULL);
    cr_expect_str_eq(again, first);
    free(again);
    str_finish(&entry);
    free(first);
}

static bool has_llvm(void)
{
    char line[600];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");

    while (fgets(line, sizeof line, maps))
        found |= strstr(line, "libLLVM") != NULL;
    fclose(maps);
    return found;
}

/* Loading it takes longer than everything else that such a process does. */
Test(jit, the_second_start_loads_no_llvm)
{
    const pid_t child = fork();
    int status;

    if (child == 0) {
        free(texts_of(spec, NULL));
        _exit(has_llvm() ? 0 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    free(texts_of(spec, NULL));
    cr_expect_not(has_llvm());
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A generous bound, for slow machines and sanitizers: code generation takes several times as long. */
Test(jit, the_second_start_generates_no_code)
{
    double cold, warm = 1e9, begin = now();

    free(texts_of(spec, NULL));
    cold = now() - begin;
    for (int i = 0; i < 5; i++) {
        begin = now();
        free(texts_of(spec, NULL));
        warm = now() - begin < warm ? now() - begin : warm;
    }
    cr_expect_lt(warm, cold / 3, "first %.2f ms, then %.2f ms", 1e3 * cold, 1e3 * warm);
}
