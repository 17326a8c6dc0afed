/* SPDX-License-Identifier: Apache-2.0 */
/* test_launch_memory.c - the launcher: workspaces, failures, stream capture, threads. */
#include <pthread.h>

#include "support/launch_fixture.h"

TestSuite(launch_memory, .init = setup, .fini = teardown);

/* ---- workspace ------------------------------------------------------------------------------- */
Test(launch_memory, control_memory_is_zeroed_once_per_stream_and_kept)
{
    ptxgen_stream one, two;
    int fills;

    open_all();
    ptxgen_stream_create(&session, gpu, &one);
    ptxgen_stream_create(&session, gpu, &two);
    cr_assert_eq(launch(1000, one, NULL), PTXGEN_OK);
    cr_expect_eq(calls_of("cuMemAlloc"), 2);
    cr_expect_eq(nth_call("cuMemsetD8Async", 0)->a, nth_call("cuMemAlloc", 0)->a, "control is zeroed");
    fills = calls_of("cuMemsetD8Async");
    cr_assert_eq(launch(1000, one, NULL), PTXGEN_OK);
    cr_expect_eq(calls_of("cuMemAlloc"), 2);
    cr_expect_eq(calls_of("cuMemsetD8Async"), fills, "no second time");
    cr_assert_eq(launch(1000, two, NULL), PTXGEN_OK);
    cr_expect_eq(calls_of("cuMemAlloc"), 4);
    cr_assert_eq(launch(4000, one, NULL), PTXGEN_OK);
    cr_expect_eq(calls_of("cuMemAlloc"), 5, "only scratch grew");
    cr_expect_eq(calls_of("cuMemFree") + calls_of("cuMemFreeAsync"), 0,
                 "captured graphs may still use what was outgrown");
    cr_expect_eq(calls_of("cuStreamSynchronize") + calls_of("cuCtxSynchronize"), 0);
    cr_assert_eq(ptxgen_stream_release(&session, loaded, one), PTXGEN_OK);
    cr_expect_eq(calls_of("cuMemFree"), 3);
    cr_assert_eq(launch(1 << 22, two, NULL), PTXGEN_OK);
    cr_expect_eq(calls_of("cuMemAllocAsync"), 1, "much memory");
    cr_expect_eq(nth_call("cuMemAllocAsync", 0)->stream, two);
    cr_assert_eq(ptxgen_stream_release(&session, loaded, two), PTXGEN_OK);
    cr_expect_eq(calls_of("cuMemFreeAsync"), 1);
    cr_expect_eq(calls_of("cuMemFree"), 5);
    ptxgen_stream_destroy(gpu, one);
    ptxgen_stream_destroy(gpu, two);
    close_all();
}

Test(launch_memory, reset_zeroes_the_kept_control_memory)
{
    unsigned char *control;

    open_all();
    cr_assert_eq(launch(1000, NULL, NULL), PTXGEN_OK);
    control = (unsigned char *)(uintptr_t)nth_call("cuMemAlloc", 0)->a;
    cr_expect_eq(control[0], 0);
    control[0] = 9;
    cr_assert_eq(ptxgen_stream_reset(&session, loaded, NULL), PTXGEN_OK);
    cr_expect_eq(control[0], 0);
    close_all();
}

Test(launch_memory, a_driver_without_pools_allocates_plainly)
{
    fake->pools = 0;
    open_all();
    cr_assert_eq(launch(1000, NULL, NULL), PTXGEN_OK);
    cr_expect_eq(calls_of("cuMemAlloc"), 2);
    cr_expect_eq(calls_of("cuMemAllocAsync"), 0);
    close_all();
}

Test(launch_memory, with_the_callers_workspace_nothing_is_allocated)
{
    static _Alignas(256) char control[4096], scratch[65536];
    int64_t n = 1000;
    ptxgen_arguments args = { .size = &n };
    ptxgen_workspace need, w = { control, sizeof control, scratch, sizeof scratch };

    open_all();
    cr_assert_eq(ptxgen_workspace_query(&session, loaded, &args, &need), PTXGEN_OK, "%s", last_message());
    cr_expect_geq(need.control_bytes, 4);
    cr_expect_geq(need.scratch_bytes, 8000);
    cr_expect_null(need.control);
    control[0] = 1;
    cr_assert_eq(ptxgen_workspace_reset(&session, loaded, &w, NULL), PTXGEN_OK);
    cr_expect_eq(control[0], 0);
    cr_assert_eq(launch(1000, NULL, &w), PTXGEN_OK);
    cr_expect_eq(nth_call("cuLaunchKernelEx", 0)->param[4], (uintptr_t)control);
    cr_expect_eq(nth_call("cuLaunchKernelEx", 0)->param[5], (uintptr_t)scratch);
    cr_expect_eq(calls_of("cuMemAlloc") + calls_of("cuMemAllocAsync"), 0);
    w.scratch_bytes = need.scratch_bytes - 1;
    cr_expect_eq(launch(1000, NULL, &w), PTXGEN_USAGE);
    cr_expect(strstr(last_message(), "scratch bytes; this launch needs"), "%s", last_message());
    w = (ptxgen_workspace){ control + 8, sizeof control - 8, scratch, sizeof scratch };
    cr_expect_eq(launch(1000, NULL, &w), PTXGEN_USAGE);
    cr_expect(strstr(last_message(), "not aligned to 256"), "%s", last_message());
    close_all();
}

/* ---- refusals and failures ------------------------------------------------------------------- */
Test(launch_memory, wrong_arguments_are_named)
{
    int64_t n = 10, negative = -1, zero = 0;
    const void *null_in[] = { NULL }, *odd[] = { (char *)x_memory + 1 }, *in[] = { x_memory };
    void *out[] = { y_memory };
    const struct {
        ptxgen_arguments args;
        const char *words;
    } rows[] = {
        { { .size = &n, .input = null_in, .output = out }, "array 'x' is null" },
        { { .size = &n, .input = NULL, .output = out }, "array 'x' is null" },
        { { .size = &n, .input = in, .output = NULL }, "array 'y' is null" },
        { { .size = &n, .input = odd, .output = out }, "array 'x' is not aligned to its element type" },
        { { .size = &negative, .input = in, .output = out }, "size 'n' is negative" },
        { { .size = &zero, .input = in, .output = out }, "n must be at least 1" },
    };
    open_all();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_eq(ptxgen_launch(&session, loaded, &rows[i].args, NULL, NULL), PTXGEN_USAGE, "row %zu", i);
        cr_expect_str_eq(last_message(), rows[i].words);
    }
    program.param[1].has_default = false;
    cr_expect_eq(launch(10, NULL, NULL), PTXGEN_USAGE);
    cr_expect_str_eq(last_message(), "param 'k' has no default and no value");
    program.param[1].has_default = true;
    cr_expect_eq(calls_of("cuLaunchKernel"), 0);
    close_all();
}

Test(launch_memory, a_failing_call_is_quoted_with_place_and_the_drivers_words)
{
    open_all();
    fake->fail = "cuLaunchKernel";
    fake->fail_result = CU_ILLEGAL_ADDRESS;
    cr_expect_eq(launch(10, NULL, NULL), PTXGEN_INTERNAL);
    cr_expect(strstr(last_message(), "cuLaunchKernel(kernel, config->grid_x"), "%s", last_message());
    cr_expect(strstr(last_message(), "the driver's words (FAKE_ERROR, 700) at exec.c:"), "%s", last_message());
    fake->fail = "cuMemAlloc";
    fake->fail_result = CU_OUT_OF_MEMORY;
    cr_expect_eq(launch(1000, NULL, NULL), PTXGEN_NO_DEVICE);
    cr_expect(strstr(last_message(), "the words for memory"), "%s", last_message());
    fake->fail = NULL;
    cr_expect_eq(launch(1000, NULL, NULL), PTXGEN_OK, "a failure leaves nothing behind");
    cr_expect_eq(ptxgen_launch(NULL, loaded, &(ptxgen_arguments){ .size = (int64_t[]){ -1 } }, NULL, NULL),
                 PTXGEN_USAGE);
    close_all();
}

Test(launch_memory, the_drivers_compiler_is_quoted)
{
    char bad[] = "bad code";

    module[0].ptx = bad;
    open_all();
    cr_expect_eq(launch(10, NULL, NULL), PTXGEN_INTERNAL);
    cr_expect(strstr(last_message(), "its log: ptxas line 7: a log"), "%s", last_message());
    cr_expect_eq(session.diags.last->code, D_JIT);
    module[0].ptx = ptx_small;
    cr_expect_eq(launch(10, NULL, NULL), PTXGEN_OK, "a failed load may be tried again");
    close_all();
}

Test(launch_memory, shared_memory_beyond_the_device_is_refused_in_words)
{
    large_step[0].shared = f_const(232449);
    open_all();
    cr_expect_eq(launch(1000, NULL, NULL), PTXGEN_NO_DEVICE);
    cr_expect(
        strstr(last_message(), "kernel k_large would need 232449 bytes of dynamic shared memory; 232448 are left"),
        "%s", last_message());
    close_all();
}

/* ---- capture --------------------------------------------------------------------------------- */
Test(launch_memory, capture_needs_preparation_and_then_only_launches)
{
    int64_t n = 1000;
    ptxgen_arguments args = { .size = &n };
    ptxgen_graph graph;
    ptxgen_stream stream;
    int before;

    open_all();
    ptxgen_stream_create(&session, gpu, &stream);
    cr_assert_eq(ptxgen_capture_begin(&session, gpu, stream), PTXGEN_OK);
    cr_expect_eq(launch(n, stream, NULL), PTXGEN_USAGE);
    cr_expect(strstr(last_message(), "call ptxgen_prepare()"), "%s", last_message());
    fake->capturing = 0;
    cr_assert_eq(ptxgen_prepare(&session, loaded, NULL, stream), PTXGEN_OK);
    cr_expect_eq(calls_of("cuModuleLoadDataEx"), 2, "all cases");
    cr_expect_eq(calls_of("cuMemAlloc"), 0);
    fake->capturing = 1;
    cr_expect_eq(launch(n, stream, NULL), PTXGEN_USAGE, "the memory is not there yet");
    fake->capturing = 0;
    cr_assert_eq(ptxgen_prepare(&session, loaded, &args, stream), PTXGEN_OK);
    cr_expect_eq(calls_of("cuLaunchKernelEx"), 0);
    cr_assert_eq(ptxgen_capture_begin(&session, gpu, stream), PTXGEN_OK);
    before = fake->ncalls;
    cr_assert_eq(launch(n, stream, NULL), PTXGEN_OK, "%s", last_message());
    cr_expect_eq(fake->ncalls, before + 3, "only the steps");
    cr_assert_eq(ptxgen_capture_end(&session, gpu, stream, &graph), PTXGEN_OK);
    cr_expect_eq(fake->graph_flags, CU_GRAPH_NODE_PRIORITY);
    cr_expect_eq(ptxgen_graph_launch(&session, gpu, graph, stream), PTXGEN_OK);
    ptxgen_graph_destroy(gpu, graph);
    fake->no_flags = CU_GRAPH_NODE_PRIORITY; /* a driver before CUDA 11.7 */
    cr_assert_eq(ptxgen_capture_begin(&session, gpu, stream), PTXGEN_OK);
    cr_assert_eq(launch(n, stream, NULL), PTXGEN_OK, "%s", last_message());
    cr_assert_eq(ptxgen_capture_end(&session, gpu, stream, &graph), PTXGEN_OK);
    cr_expect_eq(fake->graph_flags, 0);
    ptxgen_graph_destroy(gpu, graph);
    ptxgen_stream_destroy(gpu, stream);
    close_all();
}

Test(launch_memory, memory_of_a_stream_leaves_the_captures_of_other_threads_alone)
{
    ptxgen_stream stream;

    open_all();
    ptxgen_stream_create(&session, gpu, &stream);
    cr_assert_eq(ptxgen_prepare(&session, loaded, NULL, stream), PTXGEN_OK);
    fake->foreign_capture = 1;
    cr_assert_eq(launch(1000, stream, NULL), PTXGEN_OK, "%s", last_message());
    cr_expect_eq(calls_of("cuMemAlloc"), 2);
    cr_assert_eq(ptxgen_stream_release(&session, loaded, stream), PTXGEN_OK);
    cr_expect_eq(calls_of("cuMemFree"), 2);
    cr_expect_eq(fake->capture_spoiled, 0);
    fake->foreign_capture = 0;
    ptxgen_stream_destroy(gpu, stream);
    close_all();
}

/* A graph keeps the memory of the stream that it captured, also when that stream is gone and another has its handle. */
Test(launch_memory, a_stream_with_a_used_handle_gets_memory_of_its_own)
{
    int64_t n = 1000;
    ptxgen_arguments args = { .size = &n };
    ptxgen_graph graph;
    ptxgen_stream stream;
    uint64_t captured;

    open_all();
    ptxgen_stream_create(&session, gpu, &stream);
    cr_assert_eq(launch(n, stream, NULL), PTXGEN_OK);
    fake->next_handle = stream;
    cr_assert_eq(ptxgen_stream_create(&session, gpu, &stream), PTXGEN_OK);
    cr_assert_eq((void *)stream, fake->next_handle);
    cr_assert_eq(ptxgen_prepare(&session, loaded, &args, stream), PTXGEN_OK);
    cr_expect_eq(calls_of("cuMemAlloc"), 4, "the other stream's memory is not taken");
    cr_assert_eq(ptxgen_capture_begin(&session, gpu, stream), PTXGEN_OK);
    cr_assert_eq(launch(n, stream, NULL), PTXGEN_OK);
    captured = nth_call("cuLaunchKernelEx", calls_of("cuLaunchKernelEx") - 3)->param[4];
    cr_expect_eq(captured, nth_call("cuMemAlloc", 2)->a, "the capture takes the memory that was prepared");
    cr_assert_eq(ptxgen_capture_end(&session, gpu, stream, &graph), PTXGEN_OK);
    ptxgen_graph_destroy(gpu, graph);
    ptxgen_stream_destroy(gpu, stream);
    fake->live--; /* the first stream, whose handle went to the second */
    close_all();
}

/* ---- threads --------------------------------------------------------------------------------- */
enum { THREADS = 8, LAUNCHES = 51, SIZES = 3 }; /* each thread launches with each size equally often */

static void *launch_many(void *stream)
{
    ptxgen_session mine;
    const void *in[] = { x_memory };
    void *out[] = { y_memory };
    int64_t n;
    ptxgen_arguments args = { .size = &n, .input = in, .output = out };

    begin_session(&mine);
    for (int i = 0; i < LAUNCHES; i++) {
        n = 1000 - i % SIZES;
        if (ptxgen_launch(&mine, loaded, &args, stream, NULL) != PTXGEN_OK)
            return stream;
    }
    arena_finish(&mine.arena);
    return NULL;
}

/* The steps of one launch stay together on their stream: k_large, k_last twice. Its numbers are of its size. */
static void expect_whole_launches(const void *stream)
{
    static const char *const order[] = { "k_large", "k_last", "k_last" };
    int at = 0, of_size[SIZES] = { 0 };

    for (int i = 0; i < fake->ncalls; i++) {
        const struct fake_call *c = &fake->call[i];

        if (c->stream != stream || c->kernel == NULL)
            continue;
        if (strcmp(c->kernel, "k_large") == 0) {
            const int n = (int)c->param[6] + 2000;
            cr_assert_eq(c->param[7], 4 * n, "call %d: numbers of two launches are mixed", i);
            cr_assert(n > 1000 - SIZES && n <= 1000, "call %d: nobody asked for %d", i, n);
            of_size[1000 - n]++;
        }
        cr_assert_str_eq(c->kernel, order[at % 3], "call %d: steps of two launches are mixed", i);
        at++;
    }
    cr_expect_eq(at, 3 * LAUNCHES * THREADS / 2);
    for (int i = 0; i < SIZES; i++)
        cr_expect_eq(of_size[i], LAUNCHES * THREADS / 2 / SIZES);
}

Test(launch_memory, threads_share_a_loaded_program)
{
    ptxgen_stream stream[2];
    pthread_t thread[THREADS];
    void *failed;

    open_all();
    for (int i = 0; i < 2; i++)
        ptxgen_stream_create(&session, gpu, &stream[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, launch_many, stream[i % 2]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &failed);
        cr_expect_null(failed);
    }
    cr_expect_eq(calls_of("cuModuleLoadDataEx"), 1, "one case, loaded by whoever came first");
    cr_expect_eq(calls_of("cuMemAlloc"), 4, "two regions per stream");
    for (int i = 0; i < 2; i++)
        expect_whole_launches(stream[i]);
    for (int i = 0; i < 2; i++)
        ptxgen_stream_destroy(gpu, stream[i]);
    close_all();
}

/* ---- the rest -------------------------------------------------------------------------------- */
Test(launch_memory, memory_and_events_reach_the_driver)
{
    char in[3] = "ab", out[3] = "";
    void *p, *q;
    ptxgen_event a, b;
    double seconds;

    open_all();
    cr_assert_eq(ptxgen_gpu_alloc(&session, gpu, 0, &p), PTXGEN_OK);
    cr_expect_not_null(p);
    ptxgen_gpu_free(gpu, p);
    ptxgen_gpu_alloc(&session, gpu, 3, &p);
    ptxgen_gpu_alloc(&session, gpu, 3, &q);
    ptxgen_gpu_write(&session, gpu, p, in, 3);
    ptxgen_gpu_copy(&session, gpu, q, p, 3, NULL);
    ptxgen_gpu_fill(&session, gpu, q, 'z', 1, NULL);
    ptxgen_gpu_read(&session, gpu, out, q, 3);
    cr_expect_str_eq(out, "zb");
    ptxgen_gpu_free(gpu, p);
    ptxgen_gpu_free(gpu, q);
    ptxgen_event_create(&session, gpu, &a);
    ptxgen_event_create(&session, gpu, &b);
    cr_assert_eq(ptxgen_event_seconds(&session, gpu, a, b, &seconds), PTXGEN_OK);
    cr_expect_float_eq(seconds, 0.0025, 1e-9);
    ptxgen_event_destroy(gpu, a);
    ptxgen_event_destroy(gpu, b);
    close_all();
}

Test(launch_memory, kernels_are_described)
{
    ptxgen_kernel_info info;

    open_all();
    cr_assert_eq(ptxgen_kernel_query(&session, loaded, 1, 1, &info), PTXGEN_OK);
    cr_expect_str_eq(info.name, "k_last");
    cr_expect_eq(info.threads, 32);
    cr_expect_eq(info.registers, 32);
    cr_expect_eq(info.resident, 4);
    cr_expect_eq(ptxgen_kernel_query(&session, loaded, 1, 2, &info), PTXGEN_USAGE);
    cr_expect_str_eq(ptxgen_launch_case(&session, loaded, &(ptxgen_arguments){ .size = (int64_t[]){ 101 } }), "large");
    close_all();
}
