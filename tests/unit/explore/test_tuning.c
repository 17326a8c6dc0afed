/* SPDX-License-Identifier: Apache-2.0 */
/* test_tuning.c - tuning files: read, written, merged, and what planning makes of them. */
#include "explore/tuning_file.h"
#include "support/spec_fixture.h"

#include <ptxgen/ptxgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SUM     "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\n"
#define VARIANT "reduce.block@threads=64,items=2"
#define ENTRY(key, gpu, n, variant)                                                                                    \
    "  - problem: \"" key "\"\n    name: t\n    gpu: \"" gpu "\"\n    arch: sm_90\n    sizes: {n: " n                  \
    "}\n    variant: \"" variant "\"\n    us: 10\n    default_us: 12.5\n    variants: 7\n"
#define FILE_HEAD "ptxgen_tuning: 1\nentries:\n"

static bool read_text(struct spec *f, const char *text, struct tuning_file *file)
{
    return tuning_read(&f->s, "tuning.yaml", text, strlen(text), file);
}

/* ---- the file ---- */

Test(tuning, a_file_comes_back_as_it_was)
{
    static const char text[] =
        FILE_HEAD ENTRY("0123456789abcdef", "NVIDIA \\\"H200\\\"", "4096", VARIANT) ENTRY("1", "B", "1", "default");
    struct tuning_file file, again;
    struct str out = { 0 }, second = { 0 };
    SPEC_BEGIN(f);
    cr_assert(read_text(&f, text, &file));
    cr_assert_eq(file.n, 2);
    cr_expect_str_eq(file.entry[0].gpu, "NVIDIA \"H200\"");
    cr_expect(file.entry[0].size[0] == 4096 && file.entry[0].default_us == 12.5 && file.entry[0].variants == 7);
    tuning_print(&file, &out);
    cr_assert(read_text(&f, out.text, &again));
    tuning_print(&again, &second);
    cr_expect_str_eq(out.text, second.text);
    str_finish(&out);
    str_finish(&second);
    spec_end(&f);
}

Test(tuning, malformed_files_are_reported_with_a_place)
{
    static const char *const wrong[] = {
        "",
        "a: [",
        "entries: []\n",
        "ptxgen_tuning: 2\nentries: []\n",
        FILE_HEAD "  - 3\n",
        FILE_HEAD "  - {problem: x}\n",
        FILE_HEAD ENTRY("1", "A", "many", VARIANT),
        FILE_HEAD ENTRY("1", "A", "[1]", VARIANT),
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct tuning_file file;
        SPEC_BEGIN(f);
        if (setjmp(f.oom) == 0) {
            cr_expect_not(read_text(&f, wrong[i], &file), "%s", wrong[i]);
            cr_expect(f.s.diags.errors > 0 || !*wrong[i]);
        }
        spec_end(&f);
    }
}

Test(tuning, an_entry_replaces_the_one_at_its_place)
{
    static const char text[] = FILE_HEAD ENTRY("1", "A", "64", VARIANT) ENTRY("1", "A", "128", VARIANT);
    static const char *const name[] = { "n" };
    static const int64_t size = 128, other = 256;
    struct tuning_file file;
    SPEC_BEGIN(f);
    cr_assert(read_text(&f, text, &file));
    struct tuning_entry e = { "1", "t", "A", "sm_90", "reduce.gather", 1, name, &size, 3, 4, 9 };
    tuning_put(&f.s, &file, &e);
    cr_expect_eq(file.n, 2);
    cr_expect_str_eq(file.entry[1].variant, "reduce.gather");
    e.size = &other;
    tuning_put(&f.s, &file, &e);
    cr_expect_eq(file.n, 3);
    spec_end(&f);
}

Test(tuning, keys_follow_what_is_computed_alone)
{
    static const char *const same[] = { SUM "name: other\n", SUM "doc: words\n",
                                        SUM "strategy: {name: reduce.block, threads: 64}\n" };
    static const char *const different[] = {
        "kind: reduce\ninputs: {x: 'f64[n]'}\noperator: add\noutputs: {sum: f64}\n",
        SUM "determinism: device\n",
        "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: max\noutputs: {sum: f32}\n",
    };
    SPEC_BEGIN(f);
    spec_build(&f, SUM);
    const char *key = tuning_key(&f.s, f.p);
    cr_expect_eq(strlen(key), 16);
    for (size_t i = 0; i < 3; i++) {
        str_finish(&f.text);
        spec_build(&f, same[i]);
        cr_expect_str_eq(tuning_key(&f.s, f.p), key);
        str_finish(&f.text);
        spec_build(&f, different[i]);
        cr_expect_str_neq(tuning_key(&f.s, f.p), key);
    }
    spec_end(&f);
}

/* ---- plans ---- */

/* A session with the problem and a tuning file whose entries are for it. */
struct tuned_session {
    ptxgen_session *s;
    ptxgen_problem *p;
    char path[64];
};

static void tuned_begin(struct tuned_session *t, const char *spec, const char *format)
{
    snprintf(t->path, sizeof t->path, "/tmp/ptxgen-tuning-XXXXXX");
    const int fd = mkstemp(t->path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(ptxgen_session_create(&t->s), PTXGEN_OK);
    cr_assert_eq(ptxgen_problem_from_string(t->s, spec, strlen(spec), "t", &t->p), PTXGEN_OK);
    char *key = ptxgen_problem_key(t->s, t->p);
    FILE *to = fdopen(fd, "w");
    for (const char *at = format; *at; at++) {
        if (strncmp(at, "@KEY", 4) != 0) {
            fputc(*at, to);
            continue;
        }
        fputs(key, to);
        at += 3;
    }
    fclose(to);
    ptxgen_free(key);
}

static void tuned_end(struct tuned_session *t)
{
    unlink(t->path);
    ptxgen_session_destroy(t->s);
}

/* The plan's text, or NULL. */
static char *plan_text(struct tuned_session *t, ptxgen_plan_options o)
{
    ptxgen_plan *plan;
    o.tuning = t->path;
    o.arch = o.arch ? o.arch : "sm_90";
    return ptxgen_plan_create(t->s, t->p, &o, &plan) == PTXGEN_OK ? ptxgen_plan_text(plan) : NULL;
}

static void expect_tuned(struct tuned_session *t, ptxgen_plan_options o, bool tuned)
{
    char *text = plan_text(t, o);
    cr_assert_not_null(text);
    cr_expect_eq(strstr(text, "tuned0_") != NULL, tuned, "%s", text);
    ptxgen_free(text);
}

static const char two_entries[] = FILE_HEAD ENTRY("@KEY", "NVIDIA H200", "100000", VARIANT)
    ENTRY("@KEY", "NVIDIA H200", "64", "default") ENTRY("feedfeedfeedfeed", "NVIDIA H200", "7", VARIANT);

Test(tuning, an_entry_is_a_case_for_sizes_near_it)
{
    struct tuned_session t;
    const ptxgen_plan_options plain = PTXGEN_PLAN_OPTIONS_INIT;
    tuned_begin(&t, SUM, two_entries);
    char *text = plan_text(&t, plain);
    cr_assert_not_null(text);
    const char *tuned = strstr(text, "tuned0_block\n"), *small = strstr(text, "name: small");
    cr_expect(tuned && small && tuned < small, "%s", text);
    cr_expect(strstr(text, "70711 <= n") && strstr(text, "n <= 141421"), "%s", text);
    cr_expect(strstr(text, "threads: 64, items: 2"), "%s", text);
    cr_expect_null(strstr(text, "tuned1_"), "the default is no case, nor is another problem's entry");
    ptxgen_free(text);
    tuned_end(&t);
}

Test(tuning, pins_sizes_and_devices_decide_whether_it_counts)
{
    struct tuned_session t;
    tuned_begin(&t, SUM, two_entries);
    const ptxgen_setting threads = { "threads", "128" };
    const int64_t near = 80000, far = 200000;
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    expect_tuned(&t, o, true);
    o.size = &near;
    expect_tuned(&t, o, true);
    o.size = &far;
    expect_tuned(&t, o, false);
    o = (ptxgen_plan_options)PTXGEN_PLAN_OPTIONS_INIT;
    o.gpu = "H200";
    expect_tuned(&t, o, true);
    o.gpu = "NVIDIA H100";
    expect_tuned(&t, o, false);
    o.gpu = NULL;
    o.arch = "sm_80";
    expect_tuned(&t, o, false);
    o.arch = "sm_90";
    o.setting = &threads;
    o.setting_count = 1;
    expect_tuned(&t, o, false);
    o.setting_count = 0;
    o.variant = "reduce.gather";
    expect_tuned(&t, o, false);
    tuned_end(&t);
}

/* What was measured must not choose the tree of combinations there; an exact operator has the same bits by all. */
Test(tuning, determinism_device_takes_no_entry)
{
    static const char *const spec[] = {
        SUM "determinism: device\n",
        "kind: scan\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {y: 'f32[n]'}\ndeterminism: device\n",
        "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {sum: i32}\ndeterminism: device\n",
        SUM "determinism: run\n",
    };
    static const char *const variant[] = { VARIANT, "scan.block@threads=64", VARIANT, VARIANT };
    const ptxgen_plan_options plain = PTXGEN_PLAN_OPTIONS_INIT;
    for (int i = 0; i < 4; i++) {
        struct tuned_session t;
        ptxgen_diagnostic d;
        struct str text = { 0 };
        str_printf(&text,
                   FILE_HEAD "  - {problem: '@KEY', name: t, gpu: A, arch: sm_90, sizes: {n: 100000}, variant: "
                             "'%s', us: 1, default_us: 1, variants: 1}\n",
                   variant[i]);
        tuned_begin(&t, spec[i], text.text);
        expect_tuned(&t, plain, i >= 2);
        cr_expect_eq(ptxgen_problem_tunable(t.p), i >= 2);
        cr_expect_eq(ptxgen_diagnostic_count(t.s), i >= 2 ? 0 : 1);
        if (i < 2) {
            cr_assert_eq(ptxgen_diagnostic_get(t.s, 0, &d), PTXGEN_OK);
            cr_expect(d.severity == PTXGEN_WARNING && strstr(d.message, "determinism: device"), "%s", d.message);
        }
        tuned_end(&t);
        str_finish(&text);
    }
}

Test(tuning, a_variant_that_does_not_fit_any_more_is_a_warning)
{
    struct tuned_session t;
    tuned_begin(&t, SUM,
                FILE_HEAD ENTRY("@KEY", "A", "100", "reduce.block@threads=100") ENTRY("@KEY", "A", "100", "reduce.gone")
                    ENTRY("@KEY", "A", "100", "nonsense="));
    const ptxgen_plan_options plain = PTXGEN_PLAN_OPTIONS_INIT;
    expect_tuned(&t, plain, false);
    ptxgen_diagnostic d;
    cr_assert_geq(ptxgen_diagnostic_count(t.s), 2);
    cr_assert_eq(ptxgen_diagnostic_get(t.s, 0, &d), PTXGEN_OK);
    cr_expect_eq(d.severity, PTXGEN_WARNING);
    cr_expect(strstr(d.message, "threads=100"), "%s", d.message);
    tuned_end(&t);
}

Test(tuning, files_that_are_missing_or_broken_are_errors)
{
    struct tuned_session t;
    tuned_begin(&t, SUM, "entries: 3\n");
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    ptxgen_plan *plan;
    o.tuning = t.path;
    cr_expect_neq(ptxgen_plan_create(t.s, t.p, &o, &plan), PTXGEN_OK);
    o.tuning = "/no/such/file";
    cr_expect_neq(ptxgen_plan_create(t.s, t.p, &o, &plan), PTXGEN_OK);
    o.tuning = "off";
    cr_expect_eq(ptxgen_plan_create(t.s, t.p, &o, &plan), PTXGEN_OK);
    tuned_end(&t);
}

/* Many entries leave room for the usual cases, which take the other sizes. */
Test(tuning, entries_beyond_the_room_are_left_out)
{
    struct str text = { 0 };
    str_add(&text, FILE_HEAD);
    for (int i = 0; i < 40; i++)
        str_printf(&text,
                   "  - {problem: '@KEY', name: t, gpu: A, arch: sm_90, sizes: {n: %lld}, variant: "
                   "'reduce.gather@threads=64', us: 1, default_us: 1, "
                   "variants: 1}\n",
                   1ll << i);
    struct tuned_session t;
    tuned_begin(&t, SUM, text.text);
    const ptxgen_plan_options plain = PTXGEN_PLAN_OPTIONS_INIT;
    char *plan = plan_text(&t, plain);
    cr_assert_not_null(plan);
    cr_expect(strstr(plan, "name: large"), "%s", plan);
    ptxgen_free(plan);
    str_finish(&text);
    tuned_end(&t);
}

/* The tuned case computes what the usual ones do, on the host executor, and other sizes still work. */
Test(tuning, tuned_plans_run)
{
    struct tuned_session t;
    tuned_begin(&t, SUM, two_entries);
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    ptxgen_plan *plan;
    ptxgen_host *host;
    o.tuning = t.path;
    o.arch = "sm_90";
    cr_assert_eq(ptxgen_plan_create(t.s, t.p, &o, &plan), PTXGEN_OK);
    cr_assert_eq(ptxgen_host_create(t.s, plan, NULL, &host), PTXGEN_OK);
    static const struct {
        int64_t n;
        const char *case_name;
    } run[] = { { 100000, "tuned0_block" }, { 1000, "small" }, { 70711, "tuned0_block" }, { 70710, "medium" } };
    float *x = aligned_alloc(256, 100352 * sizeof *x), sum;
    for (int i = 0; i < 100000; i++)
        x[i] = 1;
    for (size_t i = 0; i < sizeof run / sizeof *run; i++) {
        const void *input[] = { x };
        void *output[] = { &sum };
        const ptxgen_arguments args = { &run[i].n, input, output, NULL };
        sum = 0;
        cr_assert_eq(ptxgen_host_run(t.s, host, &args, NULL), PTXGEN_OK);
        cr_expect_eq(sum, (float)run[i].n);
        cr_expect_str_eq(ptxgen_host_case(host), run[i].case_name);
    }
    free(x);
    ptxgen_host_destroy(host);
    tuned_end(&t);
}

Test(tuning, merged_text_and_rows)
{
    struct tuned_session t;
    tuned_begin(&t, SUM, two_entries);
    const int64_t n = 4096;
    const ptxgen_tuning_entry e = { "NVIDIA H200", "sm_90", "reduce.gather@threads=512", &n, 5e-6, 6e-6, 99 };
    char *text = ptxgen_tuning_merge(t.s, t.p, NULL, &e);
    cr_assert_not_null(text);
    cr_expect(strstr(text, "sizes: {n: 4096}") && strstr(text, "us: 5\n") && strstr(text, "variants: 99"), "%s", text);
    char *again = ptxgen_tuning_merge(t.s, t.p, text, &e);
    cr_expect_str_eq(again, text);
    ptxgen_free(again);
    ptxgen_free(text);
    cr_expect_null(ptxgen_tuning_merge(t.s, t.p, "nonsense", &e));
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    ptxgen_plan *plan;
    o.variant = "reduce.gather@threads=512,items=3,blocks_per_sm=6";
    o.arch = "sm_90";
    cr_assert_eq(ptxgen_plan_create(t.s, t.p, &o, &plan), PTXGEN_OK);
    char *row = ptxgen_tuning_row(plan, "H200: \"fast\"");
    cr_expect(strstr(row, "TUNE(\"reduce.gather\", \"\", 90, \"H200: fast\",\n     [TN_THREADS] = 512, [TN_ITEMS] = 3, "
                          "[TN_BLOCKS_PER_SM] = 6") == row &&
                  strstr(row, ")\n"),
              "%s", row);
    ptxgen_free(row);
    tuned_end(&t);
}

Test(tuning, the_place_of_the_file)
{
    setenv("PTXGEN_TUNING", "/a/b.yaml", 1);
    char *path = ptxgen_tuning_path();
    cr_expect_str_eq(path, "/a/b.yaml");
    ptxgen_free(path);
    setenv("PTXGEN_TUNING", "off", 1);
    cr_expect_null(ptxgen_tuning_path());
    unsetenv("PTXGEN_TUNING");
    setenv("XDG_DATA_HOME", "/data", 1);
    path = ptxgen_tuning_path();
    cr_expect_str_eq(path, "/data/ptxgen/tuning.yaml");
    ptxgen_free(path);
    unsetenv("XDG_DATA_HOME");
    setenv("HOME", "/home/x", 1);
    path = ptxgen_tuning_path();
    cr_expect_str_eq(path, "/home/x/.local/share/ptxgen/tuning.yaml");
    ptxgen_free(path);
}
