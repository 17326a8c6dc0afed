/* SPDX-License-Identifier: Apache-2.0 */
/* program_fixture.h - a program made by hand, with every kind of argument, buffer and step: `demo`, filled by
 * fill_demo(). */
#ifndef PTXGEN_TESTS_PROGRAM_FIXTURE_H
#define PTXGEN_TESTS_PROGRAM_FIXTURE_H

#include "program/program.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct prog_field plain_float = { "", TY_F32, 0 };
static const struct prog_field complex_fields[] = { { "re", TY_F32, 0 }, { "int", TY_F32, 4 } };
static const char *const sizes[] = { "n" };

static struct prog_array inputs[] = {
    { "x", 1, &plain_float, 4, 1, { { 0, 0 } }, false },
    { "y", 2, complex_fields, 8, 2, { { 0, -1 }, { -1, 3 } }, false },
};
static struct prog_array outputs[] = { { "x", 1, &plain_float, 4, 0, { { 0, 0 } }, false } }; /* shares its name */
static struct prog_param params[] = {
    { "scale", TY_F32, true, { .f = 0.1 } },
    { "memset", TY_I32, false, { .i = 0 } }, /* a name that the header itself uses */
};

/* Two cases: a small one with one kernel, and a large one with every kind of argument, buffer and step. */
static struct prog_arg small_args[] = {
    { .kind = ARG_INPUT, .index = 0, .name = "x" },        { .kind = ARG_INPUT, .index = 1, .name = "y" },
    { .kind = ARG_OUTPUT, .index = 0, .name = "out" },     { .kind = ARG_PARAM, .index = 0, .name = "scale" },
    { .kind = ARG_BUFFER, .index = 0, .name = "counter" },
};
static struct prog_arg large_args[7];
static struct prog_kernel small_kernels[] = {
    { .name = "demo_small", .threads = 128, .module = 0, .nargs = 5, .arg = small_args }
};
static struct prog_kernel large_kernels[] = {
    { .name = "demo_main", .threads = 256, .module = 1, .nargs = 7, .arg = large_args, .shared_static = 1024 },
    { .name = "demo_tail", .threads = 32, .module = 1, .cluster = 4, .nargs = 5, .arg = small_args },
};
static struct prog_buffer small_buffers[] = { { .name = "counter", .region = REGION_CONTROL } };
static struct prog_buffer large_buffers[] = {
    { .name = "counter", .region = REGION_CONTROL },  { .name = "states", .region = REGION_CONTROL },
    { .name = "partials", .region = REGION_SCRATCH }, { .name = "flags", .region = REGION_SCRATCH },
    { .name = "epochs", .region = REGION_CONTROL },
};
static struct prog_step small_steps[1], large_steps[2];
static struct prog_check checks[] = { { .message = "n must be 2 or more: \"add\" has no identity" } };
static char large_ptx[1 << 14]; /* too long for one string literal */
static struct prog_module modules[] = {
    { (char *)"//\n.version 8.0\n.target sm_90\n.address_size 64\n\n.visible .entry demo_small(\n)\n{\n\tret; // "
              "\"why?\\\"\n}\n",
      0, NULL },
    { large_ptx, 0, NULL },
};
static struct prog_case cases[] = {
    { .name = "small",
      .strategy = "reduce.one_block",
      .nkernels = 1,
      .nbuffers = 1,
      .nsteps = 1,
      .kernel = small_kernels,
      .buffer = small_buffers,
      .step = small_steps },
    { .name = "large",
      .strategy = "reduce.last_block",
      .nkernels = 2,
      .nbuffers = 5,
      .nsteps = 2,
      .kernel = large_kernels,
      .buffer = large_buffers,
      .step = large_steps },
};
static struct program demo = {
    .name = "demo",
    .kind = "reduce",
    .determinism = "any",
    .arch = "sm_90",
    .ptx_version = 80,
    .nsizes = 1,
    .size = sizes,
    .ninputs = 2,
    .noutputs = 1,
    .nparams = 2,
    .nchecks = 1,
    .ncases = 2,
    .nmodules = 2,
    .input = inputs,
    .output = outputs,
    .param = params,
    .check = checks,
    .cases = cases,
    .module = modules,
};

static struct formula parsed(const char *text)
{
    static const char *const param_names[] = { "scale", "memset" }, *const kernels[] = { "demo_main", "demo_tail" },
                             *const pointers[] = { "x", "y" };
    const struct formula_names names = { 1, 2, 2, 2, sizes, param_names, kernels, pointers };
    struct formula f;
    const char *error = formula_parse(text, &names, &f, NULL);
    cr_assert_null(error, "%s: %s", text, error);
    return f;
}

static void fill_demo(void)
{
    strcpy(large_ptx, ".version 8.1\n.target sm_90\n.address_size 64\n.visible .entry demo_main()\n{\n");
    for (int i = 0; i < 200; i++)
        strcat(large_ptx, "\tmov.b32 %r1, 0; // \"what?"
                          "?/\" \\\n");
    strcat(large_ptx, "}\n.visible .entry demo_tail()\n{\n\tret;\n}\n");
    checks[0].condition = parsed("n >= 2");
    cases[0].guard = parsed("n <= 1024 and misalign(x) == 0");
    cases[1].guard = parsed("n > 1024");
    small_buffers[0].bytes = parsed("4");
    large_buffers[0].bytes = parsed("8");
    large_buffers[1].bytes = parsed("cdiv(n, 1024) * 16 * 20");
    large_buffers[2].bytes = parsed("sms * resident(demo_main) * 4");
    large_buffers[3].bytes = parsed("10");
    large_buffers[4].bytes = parsed("n / 10");
    small_steps[0] = (struct prog_step){ .grid = parsed("1") };
    memcpy(large_args, small_args, sizeof small_args);
    large_args[5] = (struct prog_arg){ .kind = ARG_BUFFER, .index = 2, .name = "partials" };
    large_args[6] =
        (struct prog_arg){ .kind = ARG_VALUE, .type = TY_I64, .value = parsed("cdiv(n, 1024)"), .name = "tiles" };
    large_steps[0] = (struct prog_step){ .kernel = 0,
                                         .grid = parsed("min(cdiv(n, 1024), sms * resident(demo_main))"),
                                         .shared = parsed("2048"),
                                         .repeat = parsed("param(memset) - 1") };
    large_steps[1] =
        (struct prog_step){ .kernel = 1, .grid = parsed("4"), .dependent = true, .nonportable_cluster = true };
}

static struct formula_env environment(const int64_t *n, const int64_t *param)
{
    static const void *const pointers[] = { (void *)16, (void *)32, (void *)64 };
    static const int resident[] = { 2, 2 };
    return (struct formula_env){
        .size = n, .param = param, .sms = 132, .arch = 90, .smem = 1 << 16, .resident = resident, .pointer = pointers
    };
}

#endif
