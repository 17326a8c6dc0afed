/* SPDX-License-Identifier: Apache-2.0 */
/* test_stages.c - specs with stages through the public API: on the host, as the reference, and on a GPU that records. */
#include <math.h>
#include <stdio.h>

#include "stages_fixture.h"

TestSuite(stages, .init = begin_stages, .fini = end_stages);

enum { N = 100 };
struct relaxed {
    float x[N], y[N], moved;
    int64_t when[N];
};

static int64_t by_hand(const struct relaxed *in, int steps, float eps, float *y)
{
    double x[N], moved = 1e9;
    int t = 0;
    for (int i = 0; i < N; i++)
        x[i] = (double)in->x[i];
    for (; t < steps && moved >= (double)eps; t++) {
        double mean = 0;
        moved = 0;
        for (int i = 0; i < N; i++)
            mean += x[i] / N;
        for (int i = 0; i < N; i++) {
            const double next = x[i] + (mean - x[i]) * 0.5;
            moved = fmax(moved, fabs(next - x[i]));
            x[i] = next;
        }
    }
    for (int i = 0; i < N; i++)
        y[i] = (float)x[i];
    return t - 1;
}

static void fill(struct relaxed *r)
{
    for (int i = 0; i < N; i++)
        r->x[i] = (float)(i * 37 % 101);
}

static ptxgen_status run_relaxed(struct relaxed *r, int steps, float eps, bool reference, const char *modes)
{
    const int64_t n = N;
    const void *in[] = { r->x };
    void *out[] = { r->y, &r->moved, r->when };
    const ptxgen_value param[] = { { .i = steps }, { .f = (double)eps } };
    const ptxgen_arguments args = { &n, in, out, param };
    ptxgen_plan *plan;
    ptxgen_host *host;
    if (reference)
        return ptxgen_evaluate(s, p, &args);
    cr_assert_eq(ptxgen_plan_create(s, p, NULL, &plan), PTXGEN_OK, "%s", message_of(s));
    cr_assert_eq(ptxgen_host_create(s, plan, NULL, &host), PTXGEN_OK, "%s", message_of(s));
    const ptxgen_status status = ptxgen_host_run(s, host, &args, modes);
    ptxgen_host_destroy(host);
    return status;
}

Test(stages, a_loop_ends_where_its_condition_holds)
{
    static const struct {
        int steps;
        float eps;
    } rows[] = { { 1, 1 }, { 4, 1e-9f }, { 5, 1e-9f }, { 100, 1.0f }, { 100, 0.3f }, { 100, 100 } };
    read_spec(relax);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int way = 0; way < 3; way++) {
            struct relaxed r = { 0 };
            float y[N];
            fill(&r);
            const int64_t last = by_hand(&r, rows[i].steps, rows[i].eps, y);
            cr_assert_eq(run_relaxed(&r, rows[i].steps, rows[i].eps, way == 0, way == 1 ? NULL : "seed:3,all"),
                         PTXGEN_OK, "%s", message_of(s));
            cr_expect_eq(r.when[7], last, "row %zu, way %d: %d instead of %d", i, way, (int)r.when[7], (int)last);
            for (int k = 0; k < N; k++)
                cr_assert_float_eq(r.y[k], y[k], 1e-3f, "row %zu, way %d, element %d", i, way, k);
        }
}

Test(stages, wrong_numbers_of_steps_are_refused)
{
    struct relaxed r = { 0 };
    read_spec(relax);
    cr_expect_eq(run_relaxed(&r, 0, 1, false, NULL), PTXGEN_INVALID);
    cr_expect(strstr(message_of(s), "without a step there is no value for every output"), "%s", message_of(s));
    cr_expect_eq(run_relaxed(&r, -2, 1, true, NULL), PTXGEN_INVALID);
    cr_expect(strstr(message_of(s), "the number of steps is negative"), "%s", message_of(s));
}

Test(stages, a_host_outlives_its_session)
{
    ptxgen_plan *plan;
    ptxgen_host *host;
    struct relaxed r = { 0 };
    const int64_t n = N;
    const ptxgen_value param[] = { { .i = 1 }, { .f = 1 } };
    const ptxgen_arguments args = { &n, (const void *[]){ r.x }, (void *[]){ r.y, &r.moved, r.when }, param };
    fill(&r);
    read_spec(relax);
    cr_assert_eq(ptxgen_plan_create(s, p, NULL, &plan), PTXGEN_OK);
    cr_assert_eq(ptxgen_host_create(s, plan, NULL, &host), PTXGEN_OK);
    ptxgen_session_destroy(s);
    cr_assert_eq(ptxgen_session_create(&s), PTXGEN_OK);
    cr_expect_eq(ptxgen_host_run(s, host, &args, NULL), PTXGEN_OK, "%s", message_of(s));
    cr_expect_float_eq(r.moved, 25, 2, "%g", r.moved);
    ptxgen_host_destroy(host);
}

static int visit(int stage, int64_t step, const ptxgen_arguments *args, void *user)
{
    int *seen = user;
    cr_expect_eq(seen[0], (int)step * 4 + stage);
    if (stage == 1)
        cr_expect_eq(args->size[0], N);
    return ++seen[0] == 7; /* ends the run in the second step */
}

Test(stages, visits_see_every_stage_and_may_end_the_run)
{
    ptxgen_plan *plan;
    ptxgen_host *host;
    struct relaxed r = { 0 };
    const int64_t n = N;
    int seen = 0;
    const ptxgen_value param[] = { { .i = 9 }, { .f = 0 } };
    const ptxgen_arguments args = { &n, (const void *[]){ r.x }, (void *[]){ r.y, &r.moved, r.when }, param };
    fill(&r);
    read_spec(relax);
    cr_expect_eq(ptxgen_stage_count(p), 4); /* far is a part of move */
    cr_expect_str_eq(ptxgen_stage_name(p, 1), "move");
    cr_expect_str_eq(ptxgen_stage_name(p, 3), "until");
    cr_expect_null(ptxgen_stage_problem(p, 4));
    cr_assert_eq(ptxgen_plan_create(s, p, NULL, &plan), PTXGEN_OK);
    cr_assert_eq(ptxgen_host_create(s, plan, NULL, &host), PTXGEN_OK);
    cr_expect_eq(ptxgen_host_run_stages(s, host, &args, NULL, visit, &seen), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(seen, 7);
    ptxgen_host_destroy(host);
}

Test(stages, what_needs_one_problem_says_so)
{
    ptxgen_plan *plan;
    ptxgen_setting setting = { "items", "2" };
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    read_spec(relax);
    o.setting = &setting;
    o.setting_count = 1;
    cr_expect_eq(ptxgen_plan_create(s, p, &o, &plan), PTXGEN_USAGE);
    cr_assert_eq(ptxgen_plan_create(s, p, NULL, &plan), PTXGEN_OK);
    cr_expect_null(ptxgen_problem_key(s, p));
    cr_expect(strstr(message_of(s), "a key is of one problem"), "%s", message_of(s));
    cr_expect_eq(ptxgen_error_bound(s, p, &(ptxgen_arguments){ 0 }, NULL), PTXGEN_USAGE);
}

Test(stages, a_plan_reads_back_and_what_is_wrong_has_its_line)
{
    ptxgen_plan *plan, *again;
    ptxgen_host *host;
    read_spec(relax);
    cr_assert_eq(ptxgen_plan_create(s, p, NULL, &plan), PTXGEN_OK);
    char *text = ptxgen_plan_text(plan);
    cr_assert_eq(ptxgen_plan_from_string(s, p, text, strlen(text), "relax.plan", &again), PTXGEN_OK, "%s",
                 message_of(s));
    char *same = ptxgen_plan_text(again);
    cr_expect_str_eq(same, text);
    cr_expect_eq(ptxgen_host_create(s, again, NULL, &host), PTXGEN_OK, "%s", message_of(s));
    ptxgen_host_destroy(host);
    char *key = strstr(strstr(text, "# stage move"), "arch:");
    int line = 1;
    for (const char *c = text; c < key; c++)
        line += *c == '\n';
    key[0] = 'o';
    char place[40];
    snprintf(place, sizeof place, "relax.plan:%d:", line);
    cr_expect_eq(ptxgen_plan_from_string(s, p, text, strlen(text), "relax.plan", &again), PTXGEN_INVALID);
    cr_expect(strstr(message_of(s), place), "%s: %s", place, message_of(s));
    strstr(text, "# stage move")[3] = ' ';
    cr_expect_eq(ptxgen_plan_from_string(s, p, text, strlen(text), "relax.plan", &again), PTXGEN_INVALID);
    cr_expect(strstr(message_of(s), "`# stage move` is missing"), "%s", message_of(s));
    ptxgen_free(same);
    ptxgen_free(text);
}

/* ---- on a GPU that records --------------------------------------------------------------------------------------- */

static const char two[] = "inputs: {x: 'f32[n]'}\nstages:\n"
                          "  a: {kind: map, outputs: {y: {type: 'f32[n]', value: x * 2}}}\n"
                          "  b: {kind: map, outputs: {z: {type: 'f32[n]', value: y + 1}}}\n"
                          "  c: {kind: map, outputs: {w: {type: 'f32[n]', value: z + x}}}\n"
                          "outputs: [w]\nfuse: false\niterate: {steps: 3, feedback: {x: w}}\n";

static const char chain[] = "inputs: {x: 'f32[n]'}\nstages:\n"
                            "  a: {kind: map, outputs: {y: {type: 'f32[n]', value: x * 2}}}\n"
                            "  b: {kind: map, outputs: {z: {type: 'f32[n]', value: y + 1}}}\n"
                            "  c: {kind: map, outputs: {w: {type: 'f32[n]', value: z + x}}}\n"
                            "outputs: [w]\niterate: {steps: 3, feedback: {x: w}}\n";

static char *explained(ptxgen_plan *plan, int form)
{
    const int64_t n = 1024;
    ptxgen_explain_options o = PTXGEN_EXPLAIN_OPTIONS_INIT;
    o.size = &n;
    o.form = form;
    char *text = ptxgen_explain(s, plan, &o);
    cr_assert(text, "%s", message_of(s));
    return text;
}

Test(stages, maps_that_became_part_of_a_stage_are_not_counted_and_are_explained)
{
    ptxgen_plan *plan;
    read_spec(chain);
    cr_expect_eq(ptxgen_stage_count(p), 1);
    cr_expect_str_eq(ptxgen_stage_name(p, 0), "c");
    cr_assert_eq(ptxgen_plan_create(s, p, NULL, &plan), PTXGEN_OK, "%s", message_of(s));
    char *text = explained(plan, PTXGEN_FORM_TEXT), *json = explained(plan, PTXGEN_FORM_JSON);
    cr_expect(strstr(text, "# stage c: reads x; writes w\n# fused into it: a, b\n"), "%s", text);
    cr_expect(strstr(text, "Not fused:\n  c: 'w' is used outside of the stages\n"), "%s", text);
    cr_expect(
        strstr(json,
               "\"fusion\": [{\"stage\":\"a\",\"into\":\"c\"},{\"stage\":\"b\",\"into\":\"c\"},"
               "{\"stage\":\"c\",\"apart\":\"'w' is used outside of the stages\"}], \"all\": {\"repeated\":true,"),
        "%s", json);
    ptxgen_free(text);
    ptxgen_free(json);
    cr_expect_str_eq(ptxgen_fused_name(p, 1), "b");
    cr_expect_str_eq(ptxgen_fused_into(p, 1), "c");
    cr_expect_str_eq(ptxgen_problem_name(ptxgen_fused_problem(p, 1)), "t_b");
    cr_expect_eq(ptxgen_problem_input_count(ptxgen_fused_problem(p, 1)), 1);
    cr_expect_null(ptxgen_fused_name(p, 2)); /* c is not part of another */
    read_spec(two);
    cr_expect_eq(ptxgen_stage_count(p), 3);
}

Test(stages, a_chain_of_maps_gives_what_its_stages_give)
{
    static const char *const specs[] = { two, chain };
    enum { M = 777 };
    static float x[M], w[2][M];
    const int64_t n = M;
    for (int i = 0; i < M; i++)
        x[i] = (float)i / 7;
    for (int k = 0; k < 2; k++) {
        const ptxgen_arguments args = { &n, (const void *[]){ x }, (void *[]){ w[k] }, NULL };
        ptxgen_plan *plan;
        ptxgen_host *host;
        read_spec(specs[k]);
        cr_assert_eq(ptxgen_plan_create(s, p, NULL, &plan), PTXGEN_OK, "%s", message_of(s));
        cr_assert_eq(ptxgen_host_create(s, plan, NULL, &host), PTXGEN_OK, "%s", message_of(s));
        cr_expect_eq(ptxgen_host_run(s, host, &args, "seed:2,all"), PTXGEN_OK, "%s", message_of(s));
        ptxgen_host_destroy(host);
    }
    cr_expect_float_eq(w[1][3], 27 * x[3] + 13, 1e-3f);
    cr_expect_eq(memcmp(w[0], w[1], sizeof w[0]), 0);
}

/* Runs a spec with x: f32[n] and outputs y and moved. */
static void run_spec(const char *text, float *y, float *moved)
{
    static float x[N];
    const int64_t n = N;
    const ptxgen_arguments args = { &n, (const void *[]){ x }, (void *[]){ y, moved }, NULL };
    ptxgen_plan *plan;
    ptxgen_host *host;
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 10);
    read_spec(text);
    cr_assert_eq(ptxgen_plan_create(s, p, NULL, &plan), PTXGEN_OK, "%s", message_of(s));
    cr_assert_eq(ptxgen_host_create(s, plan, NULL, &host), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(ptxgen_host_run(s, host, &args, "seed:4,all"), PTXGEN_OK, "%s", message_of(s));
    ptxgen_host_destroy(host);
}

#define SMOOTH                                                                                                         \
    "kind: stencil, reductions: {r: {map: abs(y - x), operator: max}}, outputs: {y: {type: 'f32[n]', "                 \
    "value: 'x + 0.25 * (x[1] + x[-1] - 2 * x)'}, moved: {type: f32, value: r}}"

Test(stages, a_single_stencil_ends_where_its_condition_holds)
{
    float y[2][N], moved[2];
    run_spec("{inputs: {x: 'f32[n]'}, " SMOOTH ", iterate: {steps: 500, feedback: {x: y}, until: moved < 0.5}}", y[0],
             &moved[0]);
    run_spec("inputs: {x: 'f32[n]'}\nstages:\n  a: {" SMOOTH "}\noutputs: [y, moved]\n"
             "iterate: {steps: 500, feedback: {x: y}, until: moved < 0.5}\n",
             y[1], &moved[1]);
    cr_expect(moved[0] < 0.5f && moved[0] > 0.1f, "%g", (double)moved[0]);
    cr_expect(moved[0] == moved[1] && !memcmp(y[0], y[1], sizeof y[0]));
}

/* As many steps without a condition. */
Test(stages, the_rim_of_a_stencil_keeps_its_values_until_the_condition_holds)
{
    static const char interior[] = "{inputs: {x: 'f32[n]'}, " SMOOTH ", boundary: interior, iterate: {steps: %d, "
                                   "feedback: {x: y}%s}}";
    float y[2][N], moved[2] = { 0, 1 };
    char text[500];
    snprintf(text, sizeof text, interior, 500, ", until: moved < 0.5");
    run_spec(text, y[0], &moved[0]);
    for (int steps = 1; steps < 500 && moved[1] >= 0.5f; steps++) {
        snprintf(text, sizeof text, interior, steps, "");
        run_spec(text, y[1], &moved[1]);
    }
    cr_expect(moved[0] < 0.5f && moved[0] > 0.1f, "%g", (double)moved[0]);
    cr_expect(moved[0] == moved[1] && !memcmp(y[0], y[1], sizeof y[0]));
    cr_expect(y[0][0] == 0 && y[0][N - 1] == (float)((N - 1) % 10));
}

static const struct fake_call *kernel(int n) { return nth_call("cuLaunchKernel", n); }

Test(stages, launches_follow_each_other_and_share_memory)
{
    static float x[4096], w[4096];
    const int64_t n = 1024;
    const ptxgen_arguments args = { &n, (const void *[]){ x }, (void *[]){ w }, NULL };
    open_gpu(s);
    cr_assert_eq(ptxgen_jit_string(s, gpu, two, strlen(two), "t", NULL, &loaded), PTXGEN_OK, "%s", message_of(s));
    cr_assert_eq(ptxgen_prepare(s, loaded, &(ptxgen_arguments){ &n, NULL, NULL, NULL }, NULL), PTXGEN_OK, "%s",
                 message_of(s));
    cr_expect_eq(calls_of("cuModuleLoadDataEx"), 3, "a case of each stage");
    cr_assert_eq(ptxgen_prepare(s, loaded, &args, NULL), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(calls_of("cuLaunchKernel") + calls_of("cuLaunchKernelEx"), 0);
    const int allocated = calls_of("cuMemAllocAsync") + calls_of("cuMemAlloc");
    fake->capturing = 1; /* everything is there, so a capture may follow */
    cr_assert_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(calls_of("cuLaunchKernel"), 9);
    cr_expect_eq(calls_of("cuMemAllocAsync") + calls_of("cuMemAlloc"), allocated);
    for (int i = 0; i < 9; i++) {
        static const char *const name[] = { "t_a", "t_b", "t_c" };
        cr_expect(!strncmp(kernel(i)->kernel, name[i % 3], 3), "launch %d is %s", i, kernel(i)->kernel);
    }
    fake->capturing = 0;
    cr_expect_eq(ptxgen_stream_reset(s, loaded, NULL), PTXGEN_OK);
    cr_expect_eq(ptxgen_stream_release(s, loaded, NULL), PTXGEN_OK);
    cr_expect_eq(ptxgen_launch(s, loaded, &args, NULL, &(ptxgen_workspace){ 0 }), PTXGEN_USAGE);
    cr_expect_eq(ptxgen_launch(s, loaded, &(ptxgen_arguments){ &n, NULL, NULL, NULL }, NULL, NULL), PTXGEN_USAGE);
    cr_expect(strstr(message_of(s), "array 'x' is null"), "%s", message_of(s));
    close_all();
}

Test(stages, a_compiled_program_outlives_its_session_and_is_loaded)
{
    static float x[4096], w[4096];
    const int64_t n = 1024;
    const ptxgen_arguments args = { &n, (const void *[]){ x }, (void *[]){ w }, NULL };
    ptxgen_plan *plan;
    ptxgen_program *compiled;
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    o.arch = "sm_90";
    read_spec(two);
    cr_assert_eq(ptxgen_plan_create(s, p, &o, &plan), PTXGEN_OK);
    cr_assert_eq(ptxgen_compile(s, plan, NULL, &compiled), PTXGEN_OK, "%s", message_of(s));
    ptxgen_session_destroy(s);
    cr_assert_eq(ptxgen_session_create(&s), PTXGEN_OK);
    char *ptx = ptxgen_program_ptx(compiled), *manifest = ptxgen_program_manifest(compiled);
    cr_expect(strstr(ptx, ".entry t_a") && strstr(ptx, ".entry t_b") && strstr(ptx, ".entry t_c"));
    cr_expect_null(strstr(strstr(ptx, ".version") + 1, ".version"), "one header");
    const int cases = ptxgen_program_case_count(compiled);
    for (int i = 0; i < cases; i++) {
        const char *name = ptxgen_program_case_name(compiled, i), stage[] = { "abc"[i * 3 / cases], '.', 0 };
        char entry[] = ".entry t_?_";
        entry[9] = stage[0];
        cr_expect(!strncmp(name, stage, 2), "case %d is %s", i, name);
        cr_expect(strstr(ptxgen_program_case_ptx(compiled, i), entry), "%s has no %s", name, entry);
        cr_expect_eq(ptxgen_program_add_code(compiled, i, "sm_90", "code", 5), PTXGEN_OK);
    }
    cr_expect(cases > 3 && cases % 3 == 0 && !ptxgen_program_case_name(compiled, cases));
    cr_expect_eq(ptxgen_program_add_code(compiled, cases, "sm_90", "code", 5), PTXGEN_USAGE);
    char *header = ptxgen_program_header(compiled), bytes[64];
    snprintf(bytes, sizeof bytes, "sm_90, %d bytes", 5 * cases);
    cr_expect(strstr(header, bytes), "%s", bytes);
    ptxgen_free(header);
    cr_expect(strstr(manifest, "\"manifest\": 2") && strstr(manifest, "\"twin\": true"), "%s", manifest);
    ptxgen_free(ptx);
    ptxgen_free(manifest);
    open_gpu(s);
    cr_assert_eq(ptxgen_load(s, gpu, compiled, &loaded), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(calls_of("cuLaunchKernel"), 9);
    ptxgen_loaded_destroy(loaded);
    ptxgen_program_destroy(compiled);
    ptxgen_gpu_close(gpu);
    cr_expect_eq(fake->live, 0);
}

Test(stages, a_condition_is_read_after_each_step)
{
    struct relaxed r = { 0 };
    const int64_t n = N;
    ptxgen_value param[] = { { .i = 4 }, { .f = 1 } };
    const ptxgen_arguments args = { &n, (const void *[]){ r.x }, (void *[]){ r.y, &r.moved, r.when }, param };
    open_gpu(s);
    cr_assert_eq(ptxgen_jit_string(s, gpu, relax, strlen(relax), "t", NULL, &loaded), PTXGEN_OK, "%s", message_of(s));
    cr_assert_eq(ptxgen_prepare(s, loaded, &args, NULL), PTXGEN_OK, "%s", message_of(s));
    const int waited = calls_of("cuStreamSynchronize");
    cr_assert_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
    const int steps = calls_of("cuStreamSynchronize") - waited;
    cr_expect(steps >= 1 && steps <= 4, "%d steps", steps); /* the driver runs nothing: memory is what it was */
    fake->capturing = 1;
    cr_expect_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_USAGE);
    cr_expect(strstr(message_of(s), "has `until`") && strstr(message_of(s), "an expression reads `step`"), "%s",
              message_of(s));
    fake->capturing = 0;
    close_all();
}
