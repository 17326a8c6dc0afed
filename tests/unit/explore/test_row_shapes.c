/* SPDX-License-Identifier: Apache-2.0 */
/* test_row_shapes.c - which teams hold rows, and columns, that are mapped with their results. */
#include "support/variant_fixture.h"

#include <stdio.h>

#define SOFTMAX "operator: logsumexp\noutputs: {y: {type: 'f32[m, n]', value: exp(f32(x) - r.max) / r.sum}}\n"
#define MEAN    "operator: welford\noutputs: {y: {type: 'f32[m, n]', value: f32(x) - r.mean}}\n"
#define SQUARES "operator: add\noutputs: {y: {type: 'f32[m, n]', value: f32(x) * rsqrt(r)}}\n"

/* Half as many lanes for two bytes; 24 elements of a thread where states are combined field by field. */
Test(row_shapes, by_type_and_length)
{
    static const struct {
        const char *type, *rest;
        int64_t n[2];
        const char *name;
        int lanes, threads, held;
    } row[] = {
        { "bf16", SOFTMAX, { 4096, 128 }, "rows_8_lanes", 4, 128, 32 },
        { "f32", SOFTMAX, { 4096, 128 }, "rows_8_lanes", 8, 128, 16 },
        { "bf16", SQUARES, { 4096, 128 }, "rows_8_lanes", 8, 128, 16 },
        { "bf16", SOFTMAX, { 4096, 512 }, "rows_warp_short", 16, 128, 32 },
        { "f32", SOFTMAX, { 4096, 3072 }, "rows_block_3072", 0, 128, 24 },
        { "f32", MEAN, { 4096, 5120 }, "rows_block_6144", 0, 256, 24 },
        { "f32", SQUARES, { 4096, 5120 }, "rows_block_8192", 0, 256, 32 },
        { "f32", SOFTMAX, { 4096, 5001 }, "rows_block_8192_elements", 0, 512, 16 },
        { "f32", SOFTMAX, { 4096, 16384 }, "rows_block_16384", 0, 512, 32 },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char spec[300];
        snprintf(spec, sizeof spec, "kind: reduce\ninputs: {x: '%s[m, n]'}\nmap: f32(x)\nover: n\n%s", row[i].type,
                 row[i].rest);
        SPEC_BEGIN(f);
        const struct plan_case *c = case_taken(&f, spec, row[i].n);
        const int held = c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR];
        cr_expect_str_eq(c->code.name, row[i].name, "row %zu: %s", i, c->code.name);
        cr_expect(c->tunable[TN_LANES] == row[i].lanes && c->tunable[TN_THREADS] == row[i].threads &&
                      held == row[i].held,
                  "row %zu: %d lanes, %d threads, %d elements", i, c->tunable[TN_LANES], c->tunable[TN_THREADS], held);
        spec_end(&f);
    }
}

/* The fewest warps or blocks whose registers hold 32 columns; clusters where there are any. */
Test(row_shapes, columns_by_length)
{
    static const struct {
        const char *arch, *determinism;
        int64_t n[2];
        const char *name;
    } row[] = {
        { "sm_90", "any", { 3, 1 << 18 }, "columns_4_scalar" },
        { "sm_90", "any", { 128, 1 << 18 }, "columns_128" },
        { "sm_90", "any", { 129, 1 << 18 }, "columns_256" },
        { "sm_90", "any", { 128, 4095 }, "columns_128_scalar" }, /* rows are not whole vectors */
        { "sm_90", "run", { 512, 1 << 16 }, "columns_512_scalar" },
        { "sm_80", "any", { 512, 1 << 16 }, "columns_512" },
        { "sm_80", "any", { 1025, 1 << 16 }, "strips" },
        { "sm_80", "any", { 1024, 1 << 16 }, "columns_1024" },
        { "sm_90", "any", { 1024, 1 << 16 }, "columns_1024" },
        { "sm_90", "any", { 2048, 1 << 12 }, "columns_2048" },
        { "sm_90", "any", { 4096, 1 << 12 }, "columns_4096" },
        { "sm_90", "any", { 4096, 512 }, "columns_4096" }, /* however few columns there are */
        { "sm_90", "any", { 4097, 1 << 12 }, "strips" },
        { "sm_90", "device", { 128, 1 << 18 }, "strips" },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char spec[300];
        const struct device d = device_of(row[i].arch);
        snprintf(spec, sizeof spec, "kind: reduce\ninputs: {x: 'f32[m, n]'}\ndeterminism: %s\nover: m\n" SOFTMAX,
                 row[i].determinism);
        SPEC_BEGIN(f);
        spec_build(&f, spec);
        const struct plan *plan = plan_create(&f.s, f.p, &d, &(struct plan_options){ .size = row[i].n, .sms = 132 });
        cr_assert(plan && plan->ncases > 0, "row %zu", i);
        cr_expect_str_eq(plan->cases[0].code.name, row[i].name, "row %zu: %s", i, plan->cases[0].code.name);
        spec_end(&f);
    }
}

/* Twice as large tiles for rows above 120 elements, where the device has the shared memory; else the plan has none. */
Test(row_shapes, tiles_of_long_rows)
{
    static const struct {
        const char *arch;
        int64_t n;
        const char *name;
    } row[] = { { "sm_90", 255, "tile_long" },
                { "sm_90", 119, "tile" },
                { "sm_120", 255, "tile" },
                { "sm_75", 255, "tile_long" } };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const struct device d = device_of(row[i].arch);
        const int64_t size[] = { 100000, row[i].n };
        SPEC_BEGIN(f);
        spec_build(&f, "kind: reduce\ninputs: {x: 'i16[m, n]'}\nover: n\nreductions: {a: {map: x, operator: min}, b: "
                       "{map: x, operator: max}}\n"
                       "outputs: {a: 'i16[m]', b: 'i16[m]'}\n");
        const struct plan *plan = plan_create(&f.s, f.p, &d, &(struct plan_options){ .size = size, .sms = 132 });
        cr_assert(plan && plan->ncases > 0, "%s", row[i].arch);
        cr_expect_str_eq(plan->cases[0].code.name, row[i].name, "row %zu: %s", i, plan->cases[0].code.name);
        spec_end(&f);
    }
}
