/* SPDX-License-Identifier: Apache-2.0 */
/* test_launch.c - the launcher: devices, preflight, which code is loaded and what the driver is given. */
#include "support/launch_fixture.h"

TestSuite(launch, .init = setup, .fini = teardown);

/* ---- devices --------------------------------------------------------------------------------- */
Test(launch, without_a_driver_every_entry_says_so)
{
    int count = 7;

    setenv("PTXGEN_LIBCUDA", "/nonexistent/libcuda.so.1", 1);
    cr_expect_eq(ptxgen_gpu_count(&session, &count), PTXGEN_NO_DEVICE);
    cr_expect_eq(count, 0);
    cr_expect_eq(ptxgen_gpu_open(&session, 0, &gpu), PTXGEN_NO_DEVICE);
    cr_expect_null(gpu);
    cr_expect(strstr(last_message(), "no CUDA driver"), "%s", last_message());
    cr_expect_eq(ptxgen_gpu_open(NULL, 0, &gpu), PTXGEN_NO_DEVICE, "a missing session only loses the message");
}

Test(launch, devices_are_counted_and_described)
{
    ptxgen_gpu_info info;
    int count;

    fake->devices = 2;
    cr_expect_eq(ptxgen_gpu_count(&session, &count), PTXGEN_OK);
    cr_expect_eq(count, 2);
    cr_assert_eq(ptxgen_gpu_query(&session, 1, &info), PTXGEN_OK);
    cr_expect_str_eq(info.name, "Fake GPU 1");
    cr_expect_eq(info.sm, 90);
    cr_expect_eq(info.multiprocessors, 132);
    cr_expect_eq(info.ptx, 90);
    cr_expect_eq(ptxgen_gpu_query(&session, 2, &info), PTXGEN_USAGE);
    cr_expect_str_eq(last_message(), "device 2 does not exist: there are 2, counted from 0");
    fake->devices = 0;
    cr_expect_eq(ptxgen_gpu_count(&session, &count), PTXGEN_NO_DEVICE);
}

Test(launch, a_stream_says_its_device)
{
    ptxgen_gpu *gpu;
    int device;

    fake->devices = 2;
    cr_assert_eq(ptxgen_gpu_open(&session, 0, &gpu), PTXGEN_OK);
    cr_expect_eq(ptxgen_stream_device(&session, gpu, (ptxgen_stream)0x10510, &device), PTXGEN_OK);
    cr_expect_eq(device, 1);
    cr_expect_eq(ptxgen_stream_device(&session, gpu, (ptxgen_stream)0x510, &device), PTXGEN_OK);
    cr_expect_eq(device, 0);
    fake->fail = "cuStreamGetCtx", fake->fail_result = 400;
    cr_expect_eq(ptxgen_stream_device(&session, gpu, (ptxgen_stream)0x510, &device), PTXGEN_INTERNAL);
    cr_expect(strstr(last_message(), "cuStreamGetCtx(stream, &context) failed"), "%s", last_message());
    fake->fail = NULL;
    ptxgen_gpu_close(gpu);
}

Test(launch, the_context_is_the_current_one_or_the_primary_one_and_is_left_alone)
{
    struct driver cu;
    struct fault f;
    cu_context mine, now;

    fake->devices = 2;
    cr_assert(driver_open(&cu, &f));
    cu.PrimaryRetain(&mine, 1);
    cu.CtxPush(mine);
    cr_assert_eq(ptxgen_gpu_open(&session, PTXGEN_GPU_CURRENT, &gpu), PTXGEN_OK);
    cr_expect_eq(gpu->context, mine);
    cr_expect_str_eq(ptxgen_gpu_describe(gpu)->name, "Fake GPU 1");
    ptxgen_gpu_close(gpu);
    open_all();
    cr_expect_neq(gpu->context, mine);
    cr_assert_eq(launch(10, NULL, NULL), PTXGEN_OK);
    cr_expect_eq(nth_call("cuLaunchKernel", 0)->context, gpu->context);
    cu.CtxGetCurrent(&now);
    cr_expect_eq(now, mine);
    cu.PrimaryRelease(1);
    close_all();
    driver_close(&cu);
}

/* ---- preflight ------------------------------------------------------------------------------- */
Test(launch, preflight_names_what_is_missing)
{
    static const struct {
        const char *arch;
        int ptx, sm, driver, shared;
        ptxgen_status status;
        const char *words;
    } rows[] = {
        { "sm_90", 80, 90, 12000, 0, PTXGEN_OK, NULL },
        { "sm_80", 70, 90, 13000, 0, PTXGEN_OK, NULL },
        { "sm_90", 80, 80, 13000, 0, PTXGEN_NO_DEVICE, "the program is for sm_90; Fake GPU 0 is sm_80" },
        { "sm_90a", 80, 100, 13000, 0, PTXGEN_NO_DEVICE, "is for sm_90a" },
        { "sm_90a", 80, 90, 13000, 0, PTXGEN_OK, NULL },
        { "sm_100f", 88, 103, 13000, 0, PTXGEN_OK, NULL },
        { "sm_100f", 88, 120, 13000, 0, PTXGEN_NO_DEVICE, "is for sm_100f" },
        { "sm_90", 87, 90, 12040, 0, PTXGEN_NO_DEVICE, "needs a driver for CUDA 12.8 (Linux: 570.26 or newer)" },
        { "sm_90", 87, 90, 12040, 0, PTXGEN_NO_DEVICE, "this one is for CUDA 12.4, PTX up to 8.4" },
        { "sm_90", 85, 90, 12060, 0, PTXGEN_OK, NULL },
        { "sm_90", 999, 90, 13000, 0, PTXGEN_NO_DEVICE, "PTX up to 9.0" },
        { "sm_90", 80, 90, 13000, 300000, PTXGEN_NO_DEVICE, "kernel k_small needs 300000 bytes of shared memory" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strcpy(program.arch, rows[i].arch);
        program.ptx_version = rows[i].ptx;
        small_kernel[0].shared_static = rows[i].shared;
        fake->sm = rows[i].sm;
        fake->version = rows[i].driver;
        cr_assert_eq(ptxgen_gpu_open(&session, 0, &gpu), PTXGEN_OK);
        cr_expect_eq(launch_load(&session, gpu, &program, &loaded), rows[i].status, "row %zu: %s", i, last_message());
        if (rows[i].words)
            cr_expect(strstr(last_message(), rows[i].words), "row %zu: %s", i, last_message());
        close_all();
    }
}

Test(launch, a_driver_without_an_entry_point_is_too_old)
{
    setenv("PTXGEN_LIBCUDA", "libm.so.6", 1);
    cr_expect_eq(ptxgen_gpu_open(&session, 0, &gpu), PTXGEN_NO_DEVICE);
    cr_expect_str_eq(last_message(), "libm.so.6 has no entry point cuInit: the driver is too old");
}

/* ---- selecting, loading, marshalling --------------------------------------------------------- */
Test(launch, a_case_is_loaded_when_it_is_first_taken)
{
    open_all();
    cr_expect_eq(calls_of("cuModuleLoadDataEx"), 0);
    cr_assert_eq(launch(100, NULL, NULL), PTXGEN_OK);
    cr_expect_eq(calls_of("cuModuleLoadDataEx"), 1);
    cr_assert_eq(launch(1, NULL, NULL), PTXGEN_OK);
    cr_expect_eq(calls_of("cuModuleLoadDataEx"), 1);
    cr_assert_eq(launch(101, NULL, NULL), PTXGEN_OK);
    cr_assert_eq(launch(102, NULL, NULL), PTXGEN_OK);
    cr_expect_eq(calls_of("cuModuleLoadDataEx"), 2);
    cr_expect_eq(nth_call("cuModuleLoadDataEx", 1)->a, (uintptr_t)ptx_large);
    close_all();
}

Test(launch, without_a_case_the_conditions_are_named)
{
    open_all();
    program.ncases = 1;
    cr_expect_eq(launch(101, NULL, NULL), PTXGEN_UNSUPPORTED);
    cr_expect_str_eq(last_message(),
                     "no case of 'p' covers these arguments; it was compiled for reduce.block alone: case "
                     "'small' needs n <= 100 (n = 101)");
    close_all();
}

Test(launch, arguments_arrive_in_their_own_types)
{
    const struct fake_call *c, *alloc;

    open_all();
    cr_assert_eq(launch(1000, NULL, NULL), PTXGEN_OK, "%s", last_message());
    c = nth_call("cuLaunchKernelEx", 0);
    cr_expect_str_eq(c->kernel, "k_large");
    cr_expect_eq(c->grid, 4);
    cr_expect_eq(c->block, 512);
    cr_expect_eq(c->shared, 1000);
    cr_expect_eq(c->cluster, 4);
    cr_expect_eq(c->programmatic, 1);
    cr_expect_eq(c->param[0], (uintptr_t)x_memory);
    cr_expect_eq(c->param[1], (uintptr_t)y_memory);
    cr_expect_eq(c->param[2], 0x3e00, "1.5 as f16");
    cr_expect_eq(c->param[3], (uint32_t)-7);
    alloc = nth_call("cuMemAlloc", 0);
    cr_expect_eq(c->param[4], alloc->a, "the counter is in the control region");
    alloc = nth_call("cuMemAlloc", 1);
    cr_expect_eq(c->param[5], alloc->a);
    cr_expect_geq(alloc->b, 8000);
    cr_expect_eq(c->param[6], (uint32_t)-1000);
    cr_expect_eq(c->param[7], 4000, "n times the resident blocks");
    close_all();
}

Test(launch, steps_are_walked_in_order_and_repeated)
{
    static const char *const expected[] = { "k_large", "k_last", "k_last" };
    const struct fake_call *last;

    open_all();
    cr_assert_eq(launch(1000, NULL, NULL), PTXGEN_OK);
    cr_assert_geq(fake->ncalls, 3);
    for (int i = 0; i < 3; i++) {
        const struct fake_call *c = &fake->call[fake->ncalls - 3 + i];
        cr_expect_str_eq(c->name, "cuLaunchKernelEx");
        cr_expect_str_eq(c->kernel, expected[i]);
    }
    last = &fake->call[fake->ncalls - 1];
    cr_expect_eq(last->programmatic, 1);
    cr_expect_eq(last->cluster, 0);
    close_all();
}

Test(launch, kernels_are_allowed_what_their_steps_ask)
{
    const struct fake_call *shared, *cluster;

    fake->shared_static = 1024;
    open_all();
    cr_assert_eq(launch(1000, NULL, NULL), PTXGEN_OK);
    shared = nth_call("cuFuncSetAttribute", 0);
    cr_expect_eq(shared->a, CU_FN_MAX_DYNAMIC_SHARED);
    cr_expect_eq(shared->b, 232448 - 1024);
    cluster = nth_call("cuFuncSetAttribute", 1);
    cr_expect_eq(cluster->a, CU_FN_NONPORTABLE_CLUSTER);
    cr_expect_eq(calls_of("cuFuncSetAttribute"), 2, "k_last asks for nothing");
    cr_expect_eq(nth_call("cuOccupancy", 0)->b, 1000, "occupancy with the dynamic shared memory of the step");
    cr_assert_eq(launch(2000, NULL, NULL), PTXGEN_OK);
    cr_expect_eq(calls_of("cuOccupancy"), 2, "asked once per kernel");
    close_all();
}

Test(launch, the_programmatic_attribute_needs_its_architecture)
{
    strcpy(program.arch, "sm_80");
    fake->sm = 80;
    large_kernel[0].cluster = 0;
    open_all();
    cr_assert_eq(launch(1000, NULL, NULL), PTXGEN_OK);
    cr_expect_eq(calls_of("cuLaunchKernelEx"), 0);
    cr_expect_eq(calls_of("cuLaunchKernel"), 3);
    close_all();
}

Test(launch, a_step_without_blocks_is_skipped)
{
    small_step[0].grid = f_const(0);
    open_all();
    cr_assert_eq(launch(10, NULL, NULL), PTXGEN_OK);
    cr_expect_eq(calls_of("cuLaunchKernel"), 0);
    close_all();
}

/* ---- values of formulas ---------------------------------------------------------------------- */
static uint64_t last_number(int64_t n)
{
    cr_assert_eq(launch(n, NULL, NULL), PTXGEN_OK, "%s", last_message());
    return nth_call("cuLaunchKernelEx", calls_of("cuLaunchKernelEx") - 3)->param[7];
}

Test(launch, formulas_are_evaluated_again_where_anything_differs)
{
    open_all();
    cr_expect_eq(last_number(1000), 4000);
    cr_expect_eq(last_number(2000), 8000);
    cr_expect_eq(last_number(2000), 8000);
    large_args[7].value = f_const(5); /* which no program does: so one sees whether it is evaluated */
    cr_expect_eq(last_number(2000), 8000, "read back");
    cr_expect_eq(last_number(1000), 4000, "that of a launch before it, too");
    cr_expect_eq(last_number(3000), 5, "another size");
    for (int i = 1; i < VALUES_KEPT; i++)
        last_number(3000 + i);
    cr_expect_eq(last_number(1000), 5, "as many other sizes later");
    param[1].value.i = 8;
    large_args[7].value = f_leaf(FO_PARAM, 1);
    cr_expect_eq(last_number(1000), 8, "another integer param");
    param[0].value.f = 2.5;
    large_args[7].value = f_const(9);
    cr_expect_eq(last_number(1000), 8, "no formula reads a float");
    ptxgen_loaded_destroy(loaded);
    cr_assert_eq(launch_load(&session, gpu, &program, &loaded), PTXGEN_OK);
    cr_expect_eq(last_number(1000), 9, "another program, perhaps at the same address");
    close_all();
}

Test(launch, formulas_are_evaluated_again_for_another_alignment)
{
    const void *in[] = { x_memory };
    void *out[] = { y_memory };
    int64_t n = 10;
    const ptxgen_arguments args = { .size = &n, .input = in, .output = out };

    small_step[0].grid = f_add(f_misalign(1), 1);
    open_all();
    for (int i = 0; i < 3; i++) {
        in[0] = x_memory + (i == 1);
        cr_assert_eq(ptxgen_launch(&session, loaded, &args, NULL, NULL), PTXGEN_OK);
    }
    cr_expect_neq(nth_call("cuLaunchKernel", 1)->grid, nth_call("cuLaunchKernel", 0)->grid);
    cr_expect_eq(nth_call("cuLaunchKernel", 2)->grid, nth_call("cuLaunchKernel", 0)->grid);
    for (int i = 0; i < 2; i++) {
        in[0] = x_memory + i;
        out[0] = x_memory + 64 + !i;
        cr_assert_eq(ptxgen_launch(&session, loaded, &args, NULL, NULL), PTXGEN_OK);
    }
    cr_expect_neq(nth_call("cuLaunchKernel", 4)->grid, nth_call("cuLaunchKernel", 3)->grid, "whose it is counts");
    close_all();
}

Test(launch, what_fits_an_earlier_launch_in_all_but_what_is_refused_is_refused)
{
    const void *in[] = { x_memory };
    void *out[] = { y_memory };
    int64_t n = 10;
    const ptxgen_value zeros[2] = { { .i = 0 } };
    ptxgen_arguments args = { .size = &n, .input = in, .output = out, .param = zeros };

    param[1] = (struct prog_param){ "k", TY_I32, false, { .i = 0 } };
    open_all();
    for (int i = 0; i < 2; i++)
        cr_assert_eq(ptxgen_launch(&session, loaded, &args, NULL, NULL), PTXGEN_OK);
    args.param = NULL;
    cr_expect_eq(ptxgen_launch(&session, loaded, &args, NULL, NULL), PTXGEN_USAGE);
    cr_expect_str_eq(last_message(), "param 'k' has no default and no value");
    args.param = zeros, args.size = NULL;
    cr_expect_eq(ptxgen_launch(&session, loaded, &args, NULL, NULL), PTXGEN_USAGE);
    cr_expect_str_eq(last_message(), "the arguments have no sizes");
    args.size = &n, in[0] = NULL;
    cr_expect_eq(ptxgen_launch(&session, loaded, &args, NULL, NULL), PTXGEN_USAGE);
    cr_expect_str_eq(last_message(), "array 'x' is null");
    args.input = NULL;
    cr_expect_eq(ptxgen_launch(&session, loaded, &args, NULL, NULL), PTXGEN_USAGE);
    args.input = in, in[0] = (const char *)x_memory + 2;
    cr_expect_eq(ptxgen_launch(&session, loaded, &args, NULL, NULL), PTXGEN_USAGE);
    cr_expect_str_eq(last_message(), "array 'x' is not aligned to its element type");
    in[0] = x_memory;
    cr_expect_eq(ptxgen_launch(&session, loaded, &args, NULL, NULL), PTXGEN_OK);
    cr_expect_eq(calls_of("cuLaunchKernel"), 3);
    close_all();
}

/* ---- threads --------------------------------------------------------------------------------- */
enum { THREADS = 4, EACH = 150 };

/* Sizes of one's own and of all, in turns: more than are kept. */
static void *launches(void *number)
{
    const int64_t own = (intptr_t)number;
    ptxgen_session s;
    begin_session(&s);
    for (int i = 0; i < EACH; i++) {
        int64_t n = i % 3 ? 1000 * (i % 4 + 1) : 5000 + own;
        const void *in[] = { x_memory };
        void *out[] = { y_memory };
        const ptxgen_arguments args = { .size = &n, .input = in, .output = out };
        if (ptxgen_launch(&s, loaded, &args, (ptxgen_stream)(intptr_t)(0x100 + own), NULL) != PTXGEN_OK)
            return "failed";
    }
    arena_finish(&s.arena);
    return NULL;
}

Test(launch, threads_with_different_sizes_get_values_of_their_own)
{
    pthread_t thread[THREADS];
    void *wrong;
    int seen = 0;

    open_all();
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, launches, (void *)(intptr_t)i), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &wrong);
        cr_expect_null(wrong);
    }
    for (int i = 0; i < fake->ncalls; i++) {
        const struct fake_call *c = &fake->call[i];
        const int64_t n = (int32_t)c->param[6] + 2000;
        if (!c->kernel || strcmp(c->kernel, "k_large") != 0 || strcmp(c->name, "cuLaunchKernelEx") != 0)
            continue;
        cr_expect_eq(c->param[7], (uint64_t)(4 * n));
        cr_expect_eq(c->grid, 4 * ((n + 4095) / 4096));
        seen++;
    }
    cr_expect_eq(seen, THREADS * EACH);
    close_all();
}
