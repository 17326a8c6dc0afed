/* SPDX-License-Identifier: Apache-2.0 */
/* test_stage_workspace.c - launches of stages in the caller's memory, on a driver that records. */
#include "ptxgen/stages.h"

#include <stdio.h>

#include "support/launch_fixture.h"

/* Two sums of the same size, whose kernels share tickets between blocks, and arrays between the stages. */
static const char sums[] = "inputs: {x: 'f32[n]'}\nparams: {steps: i32}\nfuse: false\nstages:\n"
                           "  a: {kind: map, outputs: {p: {type: 'f32[n]', value: x + 1}}}\n"
                           "  b: {kind: reduce, map: p, operator: max, outputs: {most: f32}}\n"
                           "  c: {kind: reduce, map: p, operator: min, outputs: {least: f32}}\n"
                           "  d: {kind: map, outputs: {y: {type: 'f32[n]', value: p + most - least}}}\n"
                           "outputs: [y]\niterate: {steps: steps, feedback: {x: y}%s}\n";

enum { N = 1 << 22, EDGE = 256 };
static ptxgen_session *s;
static float x[N], y[N];
static const int64_t n = N;
static ptxgen_value steps[] = { { .i = 5 } };
static const ptxgen_arguments args = { &n, (const void *[]){ x }, (void *[]){ y }, steps };

static void begin_workspace(void)
{
    setup();
    cr_assert_eq(ptxgen_session_create(&s), PTXGEN_OK);
    open_gpu(s);
}
TestSuite(stage_workspace, .init = begin_workspace);

static void end_workspace(void)
{
    close_all();
    ptxgen_session_destroy(s);
    teardown();
}

static void load(const char *more)
{
    char spec[1000];
    snprintf(spec, sizeof spec, sums, more);
    cr_assert_eq(ptxgen_jit_string(s, gpu, spec, strlen(spec), "t", NULL, &loaded), PTXGEN_OK, "%s", message_of(s));
}

/* Zeros, with a mark after the last byte. */
static char *region(size_t bytes)
{
    char *at = aligned_alloc(EDGE, (bytes + EDGE - 1) / EDGE * EDGE + EDGE);
    memset(at, 0, bytes);
    memset(at + bytes, 0x5a, EDGE);
    return at;
}

static ptxgen_workspace workspace(void)
{
    ptxgen_workspace w;
    cr_assert_eq(ptxgen_workspace_query(s, loaded, &args, &w), PTXGEN_OK, "%s", message_of(s));
    cr_assert(w.control_bytes > 0 && w.scratch_bytes >= sizeof x, "%zu, %zu", w.control_bytes, w.scratch_bytes);
    w.control = region(w.control_bytes);
    w.scratch = region(w.scratch_bytes);
    return w;
}

static void free_workspace(const ptxgen_workspace *w)
{
    cr_expect_eq(((char *)w->control)[w->control_bytes], 0x5a);
    cr_expect_eq(((char *)w->scratch)[w->scratch_bytes], 0x5a);
    free(w->control);
    free(w->scratch);
}

static int allocations(void)
{
    return calls_of("cuMemAllocAsync") + calls_of("cuMemAlloc") + calls_of("cuGraphCreate");
}

static bool within(uint64_t address, const void *region, size_t bytes)
{
    return address >= (uintptr_t)region && address < (uintptr_t)region + bytes;
}

static void nothing(const struct fake_call *c) { (void)c; }

Test(stage_workspace, a_launch_works_in_the_workspace_alone)
{
    fake->runs = nothing; /* so that it learns what params kernels have */
    load("");
    const ptxgen_workspace w = workspace();
    const int before = allocations();
    uint64_t of[2][FAKE_PARAMS] = { { 0 } };
    int between = 0, many[2] = { 0 };
    for (int i = 0; i < 4; i++)
        cr_assert_eq(ptxgen_launch(s, loaded, &args, NULL, &w), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(allocations(), before, "nothing is allocated, and no graph made");
    for (int i = 0; i < fake->ncalls; i++) {
        const struct fake_call *c = &fake->call[i];
        const int sum = c->kernel && (c->kernel[2] == 'b' || c->kernel[2] == 'c') ? c->kernel[2] - 'b' : -1;
        for (int k = 0; k < FAKE_PARAMS; k++) {
            between += c->kernel && within(c->param[k], w.scratch, w.scratch_bytes);
            if (sum >= 0 && within(c->param[k], w.control, w.control_bytes))
                of[sum][many[sum]++ % FAKE_PARAMS] = c->param[k];
        }
    }
    cr_expect_geq(between, 4 * 5 * 4); /* launches, steps, stages */
    cr_assert(many[0] > 0 && many[1] > 0);
    for (int i = 0; i < many[0] && i < FAKE_PARAMS; i++)
        for (int k = 0; k < many[1] && k < FAKE_PARAMS; k++)
            cr_expect_neq(of[0][i], of[1][k], "each stage has its own tickets");
    free_workspace(&w);
    end_workspace();
}

Test(stage_workspace, memory_that_is_too_small_or_not_aligned_is_refused)
{
    load("");
    const ptxgen_workspace good = workspace();
    ptxgen_workspace small[] = { good, good, good, good };
    small[0].control_bytes--;
    small[1].scratch_bytes--;
    small[2].scratch = (char *)good.scratch + 16;
    small[3].control = NULL;
    for (int i = 0; i < 4; i++) {
        const int before = fake->ncalls;
        static const char *const says[] = { "control and", "this launch needs", "not aligned to 256", "no memory" };
        cr_expect_eq(ptxgen_launch(s, loaded, &args, NULL, &small[i]), PTXGEN_USAGE);
        cr_expect(strstr(message_of(s), says[i]), "%s", message_of(s));
        for (int c = before; c < fake->ncalls; c++)
            cr_expect_null(strstr(fake->call[c].name, "cuLaunch"), "nothing was launched");
    }
    ptxgen_workspace none;
    cr_expect_eq(ptxgen_workspace_query(s, loaded, &(ptxgen_arguments){ NULL, NULL, NULL, steps }, &none),
                 PTXGEN_USAGE);
    cr_expect(none.control_bytes == 0 && none.scratch_bytes == 0);
    free_workspace(&good);
    end_workspace();
}

Test(stage_workspace, the_host_reads_a_condition_so_a_capture_needs_a_loop_without)
{
    for (int ends = 0; ends < 2; ends++) {
        load(ends ? ", until: most < 1" : "");
        const ptxgen_workspace w = workspace();
        cr_assert_eq(ptxgen_launch(s, loaded, &args, NULL, &w), PTXGEN_OK, "%s", message_of(s));
        cr_expect_eq(calls_of("cuStreamSynchronize") > 0, ends);
        fake->capturing = 1;
        cr_expect_eq(ptxgen_launch(s, loaded, &args, NULL, &w), ends ? PTXGEN_USAGE : PTXGEN_OK, "%s", message_of(s));
        cr_expect_eq(strstr(message_of(s), "the workspace is NULL") != NULL, ends, "%s", message_of(s));
        fake->capturing = 0;
        free_workspace(&w);
        ptxgen_loaded_destroy(loaded);
        loaded = NULL;
    }
    end_workspace();
}
