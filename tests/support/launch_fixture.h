/* SPDX-License-Identifier: Apache-2.0 */
/* launch_fixture.h - the launcher opened on a driver that only records (fake_cuda.c), and a program for it.
 *
 * The program has two cases: "small" (n <= 100, one kernel, no workspace) and "large" (a kernel with every
 * kind of argument, a cluster and dependent launch, then a second dependent kernel, twice).  The tests change what they
 * need otherwise; every test is a process of its own.
 */
#ifndef PTXGEN_LAUNCH_FIXTURE_H
#define PTXGEN_LAUNCH_FIXTURE_H

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/session.h"
#include "fake_cuda.h"
#include "launch/launch_impl.h"

static struct fake_cuda *fake;
static ptxgen_session session;

/* ---- the program ----------------------------------------------------------------------------- */
static struct prog_field f32_field[] = { { "", TY_F32, 0 } };
static const char *size_names[] = { "n" };
static struct prog_array input[] = { { "x", 1, f32_field, 4, 1, { { 0, 0 } }, false } };
static struct prog_array output[] = { { "y", 1, f32_field, 4, 0, { { 0, 0 } }, false } };
static struct prog_param param[] = { { "bias", TY_F16, true, { .f = 1.5 } }, { "k", TY_I32, true, { .i = -7 } } };
static struct prog_check check[1];
static struct prog_arg small_args[] = { { .kind = ARG_INPUT, .name = "x" }, { .kind = ARG_OUTPUT, .name = "y" } };
static struct prog_arg large_args[] = {
    { .kind = ARG_INPUT },
    { .kind = ARG_OUTPUT },
    { .kind = ARG_PARAM, .index = 0 },
    { .kind = ARG_PARAM, .index = 1 },
    { .kind = ARG_BUFFER, .index = 0 },
    { .kind = ARG_BUFFER, .index = 1 },
    { .kind = ARG_VALUE, .type = TY_I32 },
    { .kind = ARG_VALUE, .type = TY_I64 },
};
static struct prog_kernel small_kernel[] = {
    { .name = "k_small", .threads = 256, .module = 0, .nargs = 2, .arg = small_args }
};
static struct prog_kernel large_kernel[] = {
    { .name = "k_large", .threads = 512, .module = 1, .cluster = 4, .nargs = 8, .arg = large_args },
    { .name = "k_last", .threads = 32, .module = 1, .nargs = 2, .arg = small_args },
};
static struct prog_buffer large_buffer[] = { { .name = "counter", .region = REGION_CONTROL },
                                             { .name = "partials", .region = REGION_SCRATCH } };
static struct prog_step small_step[] = { { .kernel = 0 } };
static struct prog_step large_step[] = {
    { .kernel = 0, .dependent = true, .nonportable_cluster = true },
    { .kernel = 1, .dependent = true },
};
static struct prog_case cases[] = {
    { .name = "small",
      .strategy = "reduce.block",
      .nkernels = 1,
      .nsteps = 1,
      .kernel = small_kernel,
      .step = small_step },
    { .name = "large",
      .strategy = "reduce.two_kernel",
      .nkernels = 2,
      .nbuffers = 2,
      .nsteps = 2,
      .kernel = large_kernel,
      .buffer = large_buffer,
      .step = large_step },
};
static char ptx_small[] = "small code", ptx_large[] = "large code";
static struct prog_module module[2];
static struct program program;

static inline void make_program(void)
{
    module[0] = (struct prog_module){ .ptx = ptx_small, .length = sizeof ptx_small - 1 };
    module[1] = (struct prog_module){ .ptx = ptx_large, .length = sizeof ptx_large - 1 };
    check[0] = (struct prog_check){ f_ge(f_size(0), 1), "n must be at least 1" };
    cases[0].guard = f_le(f_size(0), 100);
    small_step[0].grid = f_const(1);
    large_args[6].value = f_sub(f_size(0), 2 * 1000);
    large_args[7].value = f_mul(f_size(0), f_resident(0));
    large_buffer[0].bytes = f_const(4);
    large_buffer[1].bytes = f_mul(f_size(0), 8);
    large_step[0].grid = f_mul(4, f_cdiv(f_size(0), 4096));
    large_step[0].shared = f_const(1000);
    large_step[1].grid = f_const(1);
    large_step[1].repeat = f_const(2);
    program = (struct program){ .name = "p",
                                .kind = "reduce",
                                .arch = "sm_90",
                                .ptx_version = 80,
                                .nsizes = 1,
                                .size = size_names,
                                .ninputs = 1,
                                .noutputs = 1,
                                .nparams = 2,
                                .nchecks = 1,
                                .ncases = 2,
                                .nmodules = 2,
                                .input = input,
                                .output = output,
                                .param = param,
                                .check = check,
                                .cases = cases,
                                .module = module };
}

/* ---- around every test ----------------------------------------------------------------------- */
static ptxgen_gpu *gpu;
static ptxgen_loaded *loaded;
static float x_memory[4096], y_memory[1];

static inline void begin_session(ptxgen_session *s)
{
    memset(s, 0, sizeof *s);
    arena_init(&s->arena);
    diags_init(&s->diags, &s->arena);
}

static inline void setup(void)
{
    void *driver = dlopen(FAKE_CUDA, RTLD_NOW);

    cr_assert_not_null(driver, "%s", dlerror());
    fake = (*(fake_cuda_state_fn **)(void *[]){ dlsym(driver, "fake_cuda_state") })();
    fake->kernel[0] = (struct fake_kernel){ "k_small", 2, { 8, 8 } };
    fake->kernel[1] = (struct fake_kernel){ "k_large", 8, { 8, 8, 2, 4, 8, 8, 4, 8 } };
    fake->kernel[2] = (struct fake_kernel){ "k_last", 2, { 8, 8 } };
    setenv("PTXGEN_LIBCUDA", FAKE_CUDA, 1);
    setenv("PTXGEN_CACHE", "off", 1);
    begin_session(&session);
    make_program();
}

static inline void teardown(void) { arena_finish(&session.arena); }
/* The messages of a session of the test's own. */
static inline const char *message_of(ptxgen_session *s)
{
    static char text[2000];
    char *all = ptxgen_diagnostics_text(s, 0);
    snprintf(text, sizeof text, "%s", all ? all : "");
    ptxgen_free(all);
    return text;
}

/* The GPU, for kernels of any names, in a session of the test's own; close_all() closes it. */
static inline void open_gpu(ptxgen_session *s)
{
    cr_assert_eq(ptxgen_gpu_open(s, 0, &gpu), PTXGEN_OK);
    memset(fake->kernel, 0, sizeof fake->kernel);
}

/* Session and GPU, with the disk cache in a new folder. */
static inline ptxgen_session *open_with_cache(char directory[64])
{
    ptxgen_session *s;
    setup();
    snprintf(directory, 64, "%s", "/tmp/ptxgen-test-XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
    setenv("PTXGEN_CACHE", directory, 1);
    cr_assert_eq(ptxgen_session_create(&s), PTXGEN_OK);
    open_gpu(s);
    return s;
}

static inline void close_with_cache(ptxgen_session *s, const char *directory)
{
    ptxgen_gpu_close(gpu);
    ptxgen_session_destroy(s);
    ptxgen_cache_clear(directory);
    cr_expect_eq(remove(directory), 0);
    teardown();
}

static inline void open_all(void)
{
    cr_assert_eq(ptxgen_gpu_open(&session, 0, &gpu), PTXGEN_OK);
    cr_assert_eq(launch_load(&session, gpu, &program, &loaded), PTXGEN_OK);
}

static inline void close_all(void)
{
    ptxgen_loaded_destroy(loaded);
    ptxgen_gpu_close(gpu);
    cr_assert_eq(fake->live, 0, "%d objects of the driver were not given back", fake->live);
}

static inline ptxgen_status launch(int64_t n, ptxgen_stream stream, const ptxgen_workspace *workspace)
{
    const void *in[] = { x_memory };
    void *out[] = { y_memory };
    ptxgen_arguments args = { .size = &n, .input = in, .output = out };

    return ptxgen_launch(&session, loaded, &args, stream, workspace);
}

static inline const char *last_message(void) { return session.diags.last ? session.diags.last->text : ""; }

static inline int calls_of(const char *name)
{
    int n = 0;

    for (int i = 0; i < fake->ncalls; i++)
        n += strcmp(fake->call[i].name, name) == 0;
    return n;
}

static inline const struct fake_call *nth_call(const char *name, int n)
{
    for (int i = 0; i < fake->ncalls; i++)
        if (strcmp(fake->call[i].name, name) == 0 && n-- == 0)
            return &fake->call[i];
    cr_assert_fail("there is no such call of %s", name);
    return NULL;
}

#endif
