/* SPDX-License-Identifier: Apache-2.0 */
/* test_doors.c - numbers that come from outside, by every way that they come in: settings, pins of specs, ids of
 * variants, texts of plans, tuning files.  What is out of range is refused with a message, at its place where it has
 * one. */
#include "ptxgen/ptxgen.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUM "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\n"

struct door {
    ptxgen_session *s;
    ptxgen_problem *p;
    ptxgen_plan *plan;
};

static void begin(struct door *d, const char *spec)
{
    *d = (struct door){ 0 };
    cr_assert_eq(ptxgen_session_create(&d->s), PTXGEN_OK);
    cr_assert_eq(ptxgen_problem_from_string(d->s, spec, strlen(spec), "t", &d->p), PTXGEN_OK);
}

static void end(struct door *d) { ptxgen_session_destroy(d->s); }

/* The last message is an error, speaks of `word`, and has a place or not. */
static void says(const struct door *d, const char *word, bool placed, const char *what)
{
    ptxgen_diagnostic m = { 0 };
    const int count = ptxgen_diagnostic_count(d->s);
    cr_assert_gt(count, 0, "%s: no message", what);
    cr_assert_eq(ptxgen_diagnostic_get(d->s, count - 1, &m), PTXGEN_OK);
    cr_expect_eq(m.severity, PTXGEN_ERROR, "%s", what);
    cr_expect(strstr(m.message, word) != NULL, "%s: %s", what, m.message);
    cr_expect_eq(m.line > 0, placed, "%s: line %d", what, m.line);
}

static ptxgen_status plan_set(struct door *d, const char *name, const char *value)
{
    const ptxgen_setting set = { name, value };
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    o.setting_count = 1;
    o.setting = &set;
    return ptxgen_plan_create(d->s, d->p, &o, &d->plan);
}

/* ---- tunables ---------------------------------------------------------------------------------------------------- */

static const struct wrong_setting {
    const char *name, *value;
} wrong_setting[] = {
    { "items", "2147483647" },
    { "items", "0" },
    { "items", "-3" },
    { "vector", "0" },
    { "vector", "32" },
    { "items", "" },
    { "threads", "abc" },
    { "threads", "64x" },
    { "threads", "4294967328" },
    { "threads", "+64" },
    { "combine", "forest" },
    { "combine", "6" },
    { "threads", "99999999999999999999999" },
    { "unroll", "5" },
};
enum { WRONG_SETTINGS = sizeof wrong_setting / sizeof *wrong_setting };

Test(doors, settings_are_checked_without_a_strategy)
{
    for (int i = 0; i < WRONG_SETTINGS; i++) {
        struct door d;
        begin(&d, SUM);
        cr_expect_eq(plan_set(&d, wrong_setting[i].name, wrong_setting[i].value), PTXGEN_USAGE, "%s=%s",
                     wrong_setting[i].name, wrong_setting[i].value);
        says(&d, wrong_setting[i].name, false, wrong_setting[i].value);
        end(&d);
    }
}

Test(doors, pins_of_a_spec_are_checked_without_a_strategy)
{
    for (int i = 0; i < WRONG_SETTINGS; i++) {
        struct door d;
        char spec[512];
        snprintf(spec, sizeof spec, SUM "strategy: {%s: \"%s\"}\n", wrong_setting[i].name, wrong_setting[i].value);
        begin(&d, spec);
        cr_expect_eq(ptxgen_plan_create(d.s, d.p, NULL, &d.plan), PTXGEN_INVALID, "%s", spec);
        says(&d, wrong_setting[i].name, true, spec);
        end(&d);
    }
}

Test(doors, variants_are_checked)
{
    for (int i = 0; i < WRONG_SETTINGS; i++) {
        struct door d;
        char id[256];
        ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
        snprintf(id, sizeof id, "reduce.block@%s=%s", wrong_setting[i].name, wrong_setting[i].value);
        o.variant = id;
        begin(&d, SUM);
        cr_expect_eq(ptxgen_plan_create(d.s, d.p, &o, &d.plan), PTXGEN_USAGE, "%s", id);
        says(&d, wrong_setting[i].name, false, id);
        end(&d);
    }
}

static int never(const ptxgen_variant *v, void *user)
{
    (void)v;
    (void)user;
    return 0;
}

Test(doors, lists_of_values_are_checked)
{
    for (int i = 0; i < WRONG_SETTINGS; i++) {
        struct door d;
        char list[256];
        snprintf(list, sizeof list, "%s%s", i % 2 ? "2," : "", wrong_setting[i].value);
        const ptxgen_setting set[] = { { "strategy", "reduce.block" }, { wrong_setting[i].name, list } };
        ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
        o.setting_count = 2;
        o.setting = set;
        const ptxgen_variant_options v = { .struct_size = sizeof v, .plan = &o };
        begin(&d, SUM);
        cr_expect_eq(ptxgen_variants(d.s, d.p, &v, never, NULL), PTXGEN_USAGE, "%s=%s", set[1].name, list);
        says(&d, wrong_setting[i].name, false, list);
        end(&d);
    }
}

Test(doors, a_name_is_a_value_where_values_have_names)
{
    struct door d;
    begin(&d, SUM);
    cr_assert_eq(plan_set(&d, "combine", "tree"), PTXGEN_OK);
    char *text = ptxgen_plan_text(d.plan);
    cr_expect(strstr(text, "combine: 1") != NULL);
    ptxgen_free(text);
    end(&d);
}

Test(doors, a_pin_that_no_case_uses_is_an_error)
{
    struct door d;
    begin(&d, SUM "strategy: {lanes: 4}\n");
    cr_expect_eq(ptxgen_plan_create(d.s, d.p, NULL, &d.plan), PTXGEN_INVALID);
    says(&d, "lanes", true, "lanes");
    end(&d);
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

/* The text with the first `from` replaced. */
static void replaced(const char *text, const char *from, const char *to, char *out, size_t size)
{
    const char *at = strstr(text, from);
    cr_assert(at != NULL, "'%s' is not in the plan", from);
    const int n = snprintf(out, size, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    cr_assert(n > 0 && (size_t)n < size);
}

enum { TEXT_MAX = 1 << 16 };

static void refuse_plan(const char *spec, const char *strategy, const char *from, const char *to, const char *word)
{
    static char text[TEXT_MAX];
    struct door d;
    begin(&d, spec);
    if (strategy)
        cr_assert_eq(plan_set(&d, "strategy", strategy), PTXGEN_OK);
    else
        cr_assert_eq(ptxgen_plan_create(d.s, d.p, NULL, &d.plan), PTXGEN_OK);
    char *plan = ptxgen_plan_text(d.plan);
    replaced(plan, from, to, text, sizeof text);
    ptxgen_free(plan);
    cr_expect_eq(ptxgen_plan_from_string(d.s, d.p, text, strlen(text), "p.plan", &d.plan), PTXGEN_INVALID, "%s", to);
    says(&d, word, true, to);
    ptxgen_diagnostic m;
    cr_assert_eq(ptxgen_diagnostic_get(d.s, ptxgen_diagnostic_count(d.s) - 1, &m), PTXGEN_OK);
    cr_expect_str_eq(m.file, "p.plan");
    end(&d);
}

Test(doors, what_a_plan_says_is_checked)
{
    static const struct {
        const char *from, *to, *word;
    } row[] = {
        { "items: 4", "items: 2147483647", "items" },
        { "items: 4", "items: 0", "items" },
        { "vector: 4", "vector: 0", "vector" },
        { "vector: 4", "vector: 3", "vector" },
        { "threads: 256", "threads: 4294967552", "threads" },
        { "threads: 256", "threads: 0", "threads" },
        { "min_blocks: 1", "min_blocks: 32", "min_blocks" },
        { "pdl: 0", "pdl: 1", "pdl" },
        { "combine: 0", "combine: 77", "combine" },
        { "combine: 0", "forest: 0", "forest" },
        { "name: small", "name: 'small; }'", "name" },
        { "name: small", "name: 'a\"b'", "name" },
        { "name: small_wide", "name: small", "name" },
        { "guard: \"n <= 4096\"", "gaurd: \"n <= 4096\"", "gaurd" },
        { "aligned: true", "aligned: perhaps", "aligned" },
        { "aligned: true", "aligned: true\n    shift0: 16", "shift0" },
        { "ptx: 74", "ptx: 4294967370", "ptx" },
        { "ptxgen_plan: 2", "ptxgen_plan: 1", "version" },
        { "cluster: 0", "cluster: 1000000", "cluster" },
        { "grid: \"1\"", "gird: \"1\"", "gird" },
        { "launch: t_small", "launch: t_large", "expected" },
        { "    kernels:\n", "    kernels: []\n    steps_:\n", "steps_" },
        { "strategy: reduce.block", "strategy: scan.block", "strategy" },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        refuse_plan(SUM, NULL, row[i].from, row[i].to, row[i].word);
}

Test(doors, a_plan_of_rows_none_is_refused)
{
    static const char columns[] =
        "kind: reduce\ninputs: {x: 'f32[m, n]'}\nover: [m]\noperator: add\noutputs: {s: 'f32[n]'}\n";
    refuse_plan(columns, "segreduce.column", "rows: 1", "rows: 0", "rows");
}

Test(doors, a_plan_with_an_endless_ring_is_refused)
{
    refuse_plan(SUM, "reduce.gather", "copy_stages: 0", "copy_stages: 1048576", "copy_stages");
}

/* A message of a check may hold a quote, and comes back. */
Test(doors, every_plan_reads_back_as_it_was)
{
    glob_t found;
    cr_assert_eq(glob(PTXGEN_SOURCE_DIR "/specs/*.yaml", 0, NULL, &found), 0);
    cr_assert_gt(found.gl_pathc, 50);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct door d = { 0 };
        ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
        o.arch = i % 2 ? "sm_80" : "sm_90";
        cr_assert_eq(ptxgen_session_create(&d.s), PTXGEN_OK);
        cr_assert_eq(ptxgen_problem_from_file(d.s, found.gl_pathv[i], &d.p), PTXGEN_OK);
        cr_assert_eq(ptxgen_plan_create(d.s, d.p, &o, &d.plan), PTXGEN_OK);
        char *text = ptxgen_plan_text(d.plan);
        cr_expect_eq(ptxgen_plan_from_string(d.s, d.p, text, strlen(text), "p.plan", &d.plan), PTXGEN_OK, "%s",
                     found.gl_pathv[i]);
        char *again = ptxgen_plan_text(d.plan);
        cr_expect_str_eq(again, text, "%s", found.gl_pathv[i]);
        ptxgen_free(again);
        ptxgen_free(text);
        end(&d);
    }
    globfree(&found);
}

/* ---- tuning files ------------------------------------------------------------------------------------------------ */

#define ENTRY                                                                                                          \
    "ptxgen_tuning: 1\nentries:\n  - problem: \"1\"\n    name: t\n    gpu: \"A\"\n    arch: sm_90\n    sizes: {n: "    \
    "4096}\n    variant: \"reduce.block@threads=64\"\n    us: 10\n    default_us: 12.5\n    variants: 7\n"

Test(doors, numbers_of_a_tuning_file_are_checked)
{
    static const struct {
        const char *from, *to, *word;
    } row[] = {
        { "variants: 7", "variants: 1e300", "variants" },
        { "us: 10", "us: inf", "us" },
        { "us: 10", "us: -1", "us" },
        { "us: 10", "us: nan", "us" },
        { "4096", "99999999999999999999", "size" },
        { "4096", "-4", "size" },
        { "4096", "'4096 '", "size" },
        { "us: 10", "us: ''", "us" },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        static char text[TEXT_MAX];
        struct door d;
        const int64_t size[] = { 4096 };
        const ptxgen_tuning_entry entry = { "A", "sm_90", "default", size, 1e-6, 1e-6, 1 };
        replaced(ENTRY, row[i].from, row[i].to, text, sizeof text);
        begin(&d, SUM);
        char *merged = ptxgen_tuning_merge(d.s, d.p, text, &entry);
        cr_expect_null(merged, "%s", row[i].to);
        says(&d, row[i].word, true, row[i].to);
        ptxgen_free(merged);
        end(&d);
    }
}

Test(doors, a_wrong_tuning_file_is_wrong_data)
{
    char path[] = "/tmp/ptxgen-doors-XXXXXX";
    struct door d;
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    const int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, "entries: 3\n", 11), 11);
    close(fd);
    o.tuning = path;
    begin(&d, SUM);
    cr_expect_eq(ptxgen_plan_create(d.s, d.p, &o, &d.plan), PTXGEN_INVALID);
    says(&d, "tuning file", true, path);
    unlink(path);
    cr_expect_eq(ptxgen_plan_create(d.s, d.p, &o, &d.plan), PTXGEN_IO);
    end(&d);
}

/* The names in a tuning file are whatever someone wrote: they come back as they were. */
Test(doors, names_of_a_tuning_file_are_quoted)
{
    static char text[TEXT_MAX];
    struct door d;
    const int64_t size[] = { 4096 };
    const ptxgen_tuning_entry entry = { "A", "sm_90", "default", size, 1e-6, 1e-6, 1 };
    replaced(ENTRY, "name: t", "name: \"a: b # c\"", text, sizeof text);
    begin(&d, SUM);
    char *merged = ptxgen_tuning_merge(d.s, d.p, text, &entry);
    cr_assert_not_null(merged);
    cr_expect(strstr(merged, "name: \"a: b # c\"") != NULL, "%s", merged);
    char *again = ptxgen_tuning_merge(d.s, d.p, merged, &entry);
    cr_expect_not_null(again);
    ptxgen_free(again);
    ptxgen_free(merged);
    end(&d);
}

/* ---- numbers of a caller ----------------------------------------------------------------------------------------- */

static ptxgen_status plan_as(struct door *d, const ptxgen_plan_options *o)
{
    return ptxgen_plan_create(d->s, d->p, o, &d->plan);
}

Test(doors, numbers_of_plan_options_are_checked)
{
    static const int64_t negative[] = { -2 };
    static const ptxgen_setting nameless = { NULL, "1" };
    const struct {
        const char *word;
        ptxgen_plan_options o;
    } row[] = {
        { "setting_count", { sizeof(row->o), .setting_count = -1 } },
        { "setting_count", { sizeof(row->o), .setting_count = 1 } },
        { "setting_count", { sizeof(row->o), .setting_count = INT32_MAX, .setting = &nameless } },
        { "setting", { sizeof(row->o), .setting_count = 1, .setting = &nameless } },
        { "ptx", { sizeof(row->o), .ptx = -80 } },
        { "multiprocessors", { sizeof(row->o), .multiprocessors = -1 } },
        { "multiprocessors", { sizeof(row->o), .multiprocessors = INT32_MAX } },
        { "n", { sizeof(row->o), .size = negative } },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct door d;
        begin(&d, SUM);
        cr_expect_eq(plan_as(&d, &row[i].o), PTXGEN_USAGE, "%s", row[i].word);
        says(&d, row[i].word, false, row[i].word);
        end(&d);
    }
}

Test(doors, numbers_of_variant_options_are_checked)
{
    static const struct {
        const char *word;
        ptxgen_variant_options o;
    } row[] = { { "draw", { sizeof(row->o), .draw = -1 } },
                { "part", { sizeof(row->o), .part = 2, .parts = 2 } },
                { "part", { sizeof(row->o), .part = -1, .parts = 2 } },
                { "parts", { sizeof(row->o), .parts = INT32_MAX } },
                { "parts", { sizeof(row->o), .parts = -1 } } };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct door d;
        begin(&d, SUM);
        cr_expect_eq(ptxgen_variants(d.s, d.p, &row[i].o, never, NULL), PTXGEN_USAGE, "%s", row[i].word);
        says(&d, row[i].word, false, row[i].word);
        end(&d);
    }
}

Test(doors, numbers_of_explanations_are_checked)
{
    static const int64_t negative[] = { -5 };
    static const struct {
        const char *word;
        ptxgen_explain_options o;
    } row[] = { { "n", { sizeof(row->o), .size = negative } },
                { "resource_count", { sizeof(row->o), .resource_count = 7 } },
                { "stream_seconds", { sizeof(row->o), .stream_seconds = -1 } },
                { "graph_seconds", { sizeof(row->o), .graph_seconds = 1e308 } },
                { "sm", { sizeof(row->o), .sm = -1, .device = "x" } },
                { "l2", { sizeof(row->o), .l2 = UINT64_MAX, .device = "x" } } };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct door d;
        begin(&d, SUM);
        cr_assert_eq(plan_as(&d, NULL), PTXGEN_OK);
        cr_expect_null(ptxgen_explain(d.s, d.plan, &row[i].o), "%s", row[i].word);
        says(&d, row[i].word, false, row[i].word);
        end(&d);
    }
}

Test(doors, numbers_of_tuning_entries_are_checked)
{
    static const int64_t negative[] = { -1 }, fine[] = { 5 };
    const struct {
        const char *word;
        ptxgen_tuning_entry e;
    } row[] = { { "n", { "A", "sm_90", "default", negative, 1, 1, 1 } },
                { "seconds", { "A", "sm_90", "default", fine, -1, 1, 1 } },
                { "seconds", { "A", "sm_90", "default", fine, 0.0 / 0.0, 1, 1 } },
                { "default_seconds", { "A", "sm_90", "default", fine, 1, 1e300, 1 } },
                { "variants", { "A", "sm_90", "default", fine, 1, 1, -1 } } };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct door d;
        begin(&d, SUM);
        cr_expect_null(ptxgen_tuning_merge(d.s, d.p, NULL, &row[i].e), "%s", row[i].word);
        says(&d, row[i].word, false, row[i].word);
        end(&d);
    }
}

/* A negative size is no crash, and runs nowhere. */
Test(doors, negative_sizes_do_not_run)
{
    static const int64_t sizes[] = { -1, INT64_MIN, INT64_MAX };
    struct door d;
    ptxgen_host *host = NULL;
    float x[4] = { 0 }, sum = 0;
    const void *const input[] = { x };
    void *const output[] = { &sum };
    begin(&d, SUM);
    cr_assert_eq(plan_as(&d, NULL), PTXGEN_OK);
    cr_assert_eq(ptxgen_host_create(d.s, d.plan, NULL, &host), PTXGEN_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const ptxgen_arguments args = { &sizes[i], input, output, NULL };
        cr_expect_eq(ptxgen_evaluate(d.s, d.p, &args), PTXGEN_INVALID, "evaluate %zu", i);
        cr_expect_eq(ptxgen_host_run(d.s, host, &args, NULL), PTXGEN_INVALID, "run %zu", i);
    }
    ptxgen_host_destroy(host);
    end(&d);
}
