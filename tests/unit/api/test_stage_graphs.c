/* SPDX-License-Identifier: Apache-2.0 */
/* test_stage_graphs.c - stages in CUDA graphs: loops that end on a condition, and branches; on a driver that records,
 * and goes through graphs as the real one does. */
#include "ptxgen/stages.h"

#include "support/launch_fixture.h"

/* x becomes y, and its twin, in turn. */
static const char settle[] =
    "inputs: {x: 'f32[n]'}\nparams: {steps: i32}\nstages:\n"
    "  move: {kind: stencil, boundary: clamp, outputs: {y: {type: 'f32[n]', value: '(x[-1] + x[1]) * 0.5'}}}\n"
    "  far: {kind: reduce, map: y, operator: max, outputs: {most: f32}, fuse: false}\n"
    "outputs: [y, most]\niterate: {steps: steps, feedback: {x: y}, until: most < 1}\n";

enum { N = 2048 };
static ptxgen_session *s;
static float x[N], y[N], most;
static const int64_t n = N;
static ptxgen_value steps[] = { { .i = 5 } };
static const void *in[] = { x };
static void *out[] = { y, &most };
static const ptxgen_arguments args = { &n, in, out, steps };

static void begin_graphs(void)
{
    setup();
    cr_assert_eq(ptxgen_session_create(&s), PTXGEN_OK);
    open_gpu(s);
}

/* At the end of each test, not in .fini: what fails there does not count. */
static void end_graphs(void)
{
    close_all();
    ptxgen_session_destroy(s);
    teardown();
}
TestSuite(stage_graphs, .init = begin_graphs);

static void load(const char *spec)
{
    cr_assert_eq(ptxgen_jit_string(s, gpu, spec, strlen(spec), "t", NULL, &loaded), PTXGEN_OK, "%s", message_of(s));
}

/* What has run since the call number `from`: a letter for each kernel, the first of its stage's name. */
static const char *ran(int from)
{
    static char text[FAKE_CALLS + 1];
    int length = 0;
    for (int i = from; i < fake->ncalls; i++)
        if (strcmp(fake->call[i].name, "run") == 0 && strncmp(fake->call[i].kernel, "t_", 2) == 0)
            text[length++] = fake->call[i].kernel[2];
    text[length] = 0;
    return text;
}

/* Calls that would wait, allocate or load, since the call number `from`. */
static int not_launches(int from)
{
    static const char *const names[] = { "cuStreamSynchronize", "cuMemAlloc", "cuMemAllocAsync", "cuModuleLoadDataEx" };
    int count = 0;
    for (int i = from; i < fake->ncalls; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            count += strcmp(fake->call[i].name, names[k]) == 0;
    return count;
}

/* The byte that the loop reads: the only byte that a condition's kernel writes, in memory of the launcher. */
static void condition(bool holds)
{
    for (int i = 0; i < fake->nnodes; i++)
        if (strcmp(fake->node[i].what, "ptxgen_decide") == 0)
            *(char *)(uintptr_t)fake->node[i].call.param[0] = holds;
}

static int nodes_of(const char *what)
{
    int count = 0;
    for (int i = 0; i < fake->nnodes; i++)
        count += strcmp(fake->node[i].what, what) == 0;
    return count;
}

Test(stage_graphs, a_launch_starts_the_graph_that_was_prepared)
{
    load(settle);
    cr_assert_eq(ptxgen_prepare(s, loaded, &args, NULL), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(calls_of("cuGraphLaunch"), 0);
    for (int holds = 0; holds < 2; holds++) {
        const int before = fake->ncalls;
        condition(holds);
        cr_expect_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
        cr_expect_eq(calls_of("cuGraphLaunch"), holds + 1);
        cr_expect_eq(not_launches(before), 0);
        cr_expect_str_eq(ran(before), holds ? "mfu" : "mfumfumfumfumfu", "%s", ran(before));
    }
    cr_expect_eq(nodes_of("while"), 1);
    end_graphs();
}

/* What the kernels of `settle` would do, on whole numbers: x grows by one a step, `most` is what it has become, and the
 * loop ends when that is `last`.  Arguments are inputs, then outputs; the condition has an input for its shape alone. */
static float last;
static void grow(const struct fake_call *c)
{
    const float *from = (const float *)(uintptr_t)c->param[0];
    float *to = (float *)(uintptr_t)c->param[1];
    switch (c->kernel[2]) {
    case 'c': memcpy(to, from, sizeof x); break;
    case 'm':
        for (int i = 0; i < N; i++)
            to[i] = from[i] + 1;
        break;
    case 'f': to[0] = from[N - 1]; break;
    case 'u': *(char *)(uintptr_t)c->param[2] = from[0] >= last; break;
    default: cr_assert_fail("%s", c->kernel);
    }
}

Test(stage_graphs, the_last_step_that_counts_is_in_the_outputs)
{
    ptxgen_stream stream;
    ptxgen_graph graph;
    load(settle);
    cr_assert_eq(ptxgen_stream_create(s, gpu, &stream), PTXGEN_OK);
    fake->runs = grow;
    for (steps[0].i = 1; steps[0].i < 7; steps[0].i++)
        for (int ends = 1; ends < 8; ends++) {
            const float want = (float)(steps[0].i < ends ? steps[0].i : ends);
            last = (float)ends;
            cr_assert_eq(ptxgen_prepare(s, loaded, &args, stream), PTXGEN_OK, "%s", message_of(s));
            y[0] = y[N - 1] = most = -1;
            cr_assert_eq(ptxgen_launch(s, loaded, &args, stream, NULL), PTXGEN_OK, "%s", message_of(s));
            cr_expect(y[0] == want && y[N - 1] == want && most == want, "launched: %g, %g, not %g", (double)y[0],
                      (double)most, (double)want);
            cr_assert_eq(ptxgen_capture_begin(s, gpu, stream), PTXGEN_OK);
            cr_assert_eq(ptxgen_launch(s, loaded, &args, stream, NULL), PTXGEN_OK, "%s", message_of(s));
            cr_assert_eq(ptxgen_capture_end(s, gpu, stream, &graph), PTXGEN_OK);
            y[0] = y[N - 1] = most = -1;
            cr_assert_eq(ptxgen_graph_launch(s, gpu, graph, stream), PTXGEN_OK);
            cr_expect(y[0] == want && y[N - 1] == want && most == want, "captured: %g, %g, not %g", (double)y[0],
                      (double)most, (double)want);
            ptxgen_graph_destroy(gpu, graph);
            cr_expect(x[0] == 0 && x[N - 1] == 0, "the input is what it was");
        }
    ptxgen_stream_release(s, loaded, stream);
    ptxgen_stream_destroy(gpu, stream);
    end_graphs();
}

/* settle, where the condition is read after every few steps; in place: y has one memory. */
static const char *seldom(int every, bool in_place)
{
    static char spec[1000];
    snprintf(spec, sizeof spec,
             "inputs: {x: 'f32[n]'}\nparams: {steps: i32}\nfuse: false\nstages:\n%s"
             "  far: {kind: reduce, map: y, operator: max, outputs: {most: f32}}\n"
             "outputs: [y, most]\niterate: {steps: steps, feedback: {x: y}, until: most < 1, check_every: %d}\n",
             in_place ? "  copy: {kind: map, outputs: {z: {type: 'f32[n]', value: x}}}\n"
                        "  move: {kind: map, outputs: {y: {type: 'f32[n]', value: z + 1}}}\n"
                      : "  move: {kind: map, outputs: {y: {type: 'f32[n]', value: x + 1}}}\n",
             every);
    return spec;
}

static void seldom_ends(ptxgen_stream stream, int every, int ends)
{
    const int checked = (ends + every - 1) / every * every;
    const float want = (float)(checked < steps[0].i ? checked : steps[0].i);
    ptxgen_graph graph;
    last = (float)ends;
    cr_assert_eq(ptxgen_prepare(s, loaded, &args, stream), PTXGEN_OK, "%s", message_of(s));
    for (int captured = 0; captured < 2; captured++) {
        y[0] = y[N - 1] = most = -1;
        if (captured)
            cr_assert_eq(ptxgen_capture_begin(s, gpu, stream), PTXGEN_OK);
        cr_assert_eq(ptxgen_launch(s, loaded, &args, stream, NULL), PTXGEN_OK, "%s", message_of(s));
        if (captured) {
            cr_assert_eq(ptxgen_capture_end(s, gpu, stream, &graph), PTXGEN_OK);
            cr_assert_eq(ptxgen_graph_launch(s, gpu, graph, stream), PTXGEN_OK);
            ptxgen_graph_destroy(gpu, graph);
        }
        cr_expect(y[0] == want && y[N - 1] == want && most == want, "every %d of %d, ends %d: %g, %g, not %g", every,
                  (int)steps[0].i, ends, (double)y[0], (double)most, (double)want);
        cr_expect(x[0] == 0 && x[N - 1] == 0, "the input is what it was");
    }
}

Test(stage_graphs, a_condition_that_is_read_seldom_ends_the_loop_after_such_a_step)
{
    ptxgen_stream stream;
    cr_assert_eq(ptxgen_stream_create(s, gpu, &stream), PTXGEN_OK);
    fake->runs = grow;
    for (int every = 2; every < 5; every++)
        for (int in_place = 0; in_place < 2; in_place++) {
            load(seldom(every, in_place));
            for (steps[0].i = 1; steps[0].i < 3 * every + 2; steps[0].i++) {
                for (int ends = 1; ends < 12; ends += 2)
                    seldom_ends(stream, every, ends);
                cr_expect_eq(nodes_of("while") > 0, steps[0].i > every);
                cr_assert_lt(fake->nnodes, FAKE_NODES);
                ptxgen_stream_release(s, loaded, stream); /* with its graphs: there is room for others */
                fake->nnodes = 0;
            }
            ptxgen_loaded_destroy(loaded);
            loaded = NULL;
        }
    ptxgen_stream_destroy(gpu, stream);
    end_graphs();
}

Test(stage_graphs, the_condition_s_kernel_runs_only_where_it_is_read)
{
    load(seldom(3, false));
    for (steps[0].i = 2; steps[0].i < 9; steps[0].i += 6) {
        cr_assert_eq(ptxgen_prepare(s, loaded, &args, NULL), PTXGEN_OK, "%s", message_of(s));
        const int before = fake->ncalls;
        condition(false);
        cr_assert_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
        cr_expect_eq(not_launches(before), 0);
        if (steps[0].i == 8)
            cr_expect_str_eq(ran(before), "mfmfmfumfmfmfumfmf", "%s", ran(before));
        else
            cr_expect_eq(calls_of("cuLaunchKernel") + calls_of("cuLaunchKernelEx"), 4);
    }
    end_graphs();
}

Test(stage_graphs, each_set_of_arguments_has_a_graph_and_few_are_kept)
{
    load(settle);
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < 40; i++) {
            steps[0].i = 10 + i;
            cr_expect_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
            condition(true);
            cr_expect_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
        }
    cr_expect_eq(nodes_of("while"), 80);
    steps[0].i = 49 - 31;
    cr_expect_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(nodes_of("while"), 80, "thirty-two are kept");
    cr_expect_eq(ptxgen_stream_reset(s, loaded, NULL), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(nodes_of("while"), 80);
    cr_expect_eq(ptxgen_stream_release(s, loaded, NULL), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(nodes_of("while"), 81);
    end_graphs();
}

Test(stage_graphs, a_loop_becomes_part_of_the_graph_that_the_caller_captures)
{
    ptxgen_stream stream;
    ptxgen_graph graph;
    load(settle);
    cr_assert_eq(ptxgen_stream_create(s, gpu, &stream), PTXGEN_OK);
    cr_assert_eq(ptxgen_capture_begin(s, gpu, stream), PTXGEN_OK);
    cr_expect_eq(ptxgen_launch(s, loaded, &args, stream, NULL), PTXGEN_USAGE);
    cr_expect(strstr(message_of(s), "ptxgen_prepare"), "%s", message_of(s));
    ptxgen_capture_end(s, gpu, stream, &graph);
    ptxgen_graph_destroy(gpu, graph);
    cr_assert_eq(ptxgen_prepare(s, loaded, &args, stream), PTXGEN_OK, "%s", message_of(s));

    const int before = fake->ncalls;
    cr_assert_eq(ptxgen_capture_begin(s, gpu, stream), PTXGEN_OK, "%s", message_of(s));
    for (int i = 0; i < 2; i++)
        cr_assert_eq(ptxgen_launch(s, loaded, &args, stream, NULL), PTXGEN_OK, "%s", message_of(s));
    cr_assert_eq(ptxgen_capture_end(s, gpu, stream, &graph), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(not_launches(before), 0);
    cr_expect_eq(calls_of("cuGraphLaunch"), 0);
    condition(false);
    cr_assert_eq(ptxgen_graph_launch(s, gpu, graph, stream), PTXGEN_OK, "%s", message_of(s));
    cr_expect_str_eq(ran(before), "mfumfumfumfumfumfumfumfumfumfu", "%s", ran(before));
    ptxgen_graph_destroy(gpu, graph);
    cr_expect_eq(ptxgen_stream_release(s, loaded, stream), PTXGEN_OK);
    ptxgen_stream_destroy(gpu, stream);
    end_graphs();
}

Test(stage_graphs, where_the_driver_refuses_the_host_walks)
{
    static const struct {
        const char *fails;
        int version;
        const char *says;
    } rows[] = { { "cuGraphAddNode", 13000, "the driver has refused" },
                 { "cuGraphConditionalHandleCreate", 13000, "the driver has refused" },
                 { NULL, 12030, "a driver of CUDA 12.4" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ptxgen_gpu_close(gpu);
        fake->version = rows[i].version;
        cr_assert_eq(ptxgen_gpu_open(s, 0, &gpu), PTXGEN_OK);
        load(settle);
        fake->fail = rows[i].fails;
        fake->fail_result = 801;
        steps[0].i = 3;
        cr_expect_eq(ptxgen_prepare(s, loaded, &args, NULL), PTXGEN_OK, "%s", message_of(s));
        const int before = fake->ncalls;
        cr_expect_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
        cr_expect_eq(calls_of("cuGraphLaunch"), 0);
        cr_expect_gt(not_launches(before), 0, "the host waits");
        fake->capturing = 1;
        cr_expect_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_USAGE);
        cr_expect(strstr(message_of(s), "has `until`") && strstr(message_of(s), rows[i].says), "%s", message_of(s));
        fake->capturing = 0;
        fake->fail = NULL;
        ptxgen_loaded_destroy(loaded);
        loaded = NULL;
    }
    end_graphs();
}

/* ---- branches ---------------------------------------------------------------------------------------------------- */

/* Stages a, b, c and d; b does not read what a writes. */
static const char fork[] = "inputs: {x: 'f32[n]'}\nparams: {steps: i32}\nstages:\n"
                           "  a: {kind: map, outputs: {p: {type: 'f32[n]', value: x * 2}}}\n"
                           "  b: {kind: map, outputs: {q: {type: 'f32[n]', value: x + 1}}}\n"
                           "  c: {kind: map, outputs: {y: {type: 'f32[n]', value: p * q}}}\n"
                           "  d: {kind: reduce, map: p, operator: max, outputs: {most: f32}}\n"
                           "outputs: [y, most]\nfuse: false\niterate: {steps: steps, feedback: {x: y}}\n";

/* Kernels of the graph, in order, each with those that it follows: "a b c:ab d:a". */
static const char *edges(void)
{
    static char text[1000];
    int length = 0;
    for (int i = 0; i < fake->nnodes; i++) {
        const struct fake_node *k = &fake->node[i];
        length += sprintf(text + length, "%s%c%s", length ? " " : "", k->what[2], k->nafter ? ":" : "");
        for (int j = 0; j < k->nafter; j++)
            length += sprintf(text + length, "%c", fake->node[k->after[j] - 1].what[2]);
    }
    return text;
}

Test(stage_graphs, stages_that_do_not_need_each_other_are_branches)
{
    load(fork);
    steps[0].i = 2;
    cr_assert_eq(ptxgen_prepare(s, loaded, &args, NULL), PTXGEN_OK, "%s", message_of(s));
    fake->capturing = 1;
    cr_assert_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
    /* In the second step a overwrites what d has read. */
    cr_expect_str_eq(edges(), "a b c:ab d:a a:cd b:c c:ab d:a", "%s", edges());
    cr_assert_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
    cr_expect_str_eq(edges() + strlen("a b c:ab d:a a:cd b:c c:ab d:a "), "a:cd b:cd c:ab d:a a:cd b:c c:ab d:a",
                     "the next launch follows all branches: %s", edges());
    fake->capturing = 0;
    end_graphs();
}

/* ---- launches that come again ------------------------------------------------------------------------------------ */

Test(stage_graphs, the_third_launch_with_the_same_arguments_starts_a_graph)
{
    load(fork);
    steps[0].i = 2;
    for (int launch = 1; launch < 6; launch++) {
        const int before = fake->ncalls;
        cr_assert_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
        cr_expect_eq(calls_of("cuGraphLaunch"), launch < 3 ? 0 : launch - 2);
        if (launch > 3)
            cr_expect_eq(not_launches(before), 0);
        if (launch >= 3)
            cr_expect_str_eq(ran(before), "abcdabcd", "%s", ran(before));
        if (launch == 3)
            cr_expect_str_eq(edges(), "a b c:ab d:a a:cd b:c c:ab d:a", "%s", edges());
    }
    steps[0].i = 1000; /* a large graph */
    fake->ncalls = 0;
    for (int launch = 1; launch < 6; launch++)
        cr_assert_eq(ptxgen_launch(s, loaded, &args, NULL, NULL), PTXGEN_OK, "%s", message_of(s));
    cr_expect_eq(calls_of("cuGraphLaunch"), 0);
    end_graphs();
}
