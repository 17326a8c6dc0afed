/* SPDX-License-Identifier: Apache-2.0 */
/* test_wide_states.c - which shapes take rows, columns and scans of operators whose states have several words or call functions, and
 * elements of one and two bytes beside wider results. */
#include "support/variant_fixture.h"

#include <stdio.h>

#define REDUCE(type, over) "kind: reduce\ninputs: {x: '" type "'}\nover: " over "\nmap: x\n"
#define WELFORD            "operator: welford\noutputs: {r: {type: 'f32[m]', value: r.mean}}\n"
#define SEGMENT_SUM                                                                                                    \
    "operator: {state: {best: i32, left: i32, right: i32, total: i32}, identity: {best: 0, left: 0, right: 0, total: " \
    "0}, combine: {best: 'max(max(a.best, b.best), a.right + b.left)', left: 'max(a.left, a.total + b.left)', right: " \
    "'max(b.right, a.right + b.total)', total: a.total + b.total}}\n"
#define OF_X               "map: {best: x, left: x, right: x, total: x}\n"
#define SUMS(type, result) REDUCE(type "[d, m, n]", "m") "operator: add\noutputs: {r: '" result "[d, n]'}\n"
#define FLAGS(op, map, value)                                                                                          \
    "kind: scan\ninputs: {x: 'f32[n]', f: 'u8[n]'}\n" op map                                                           \
    "segments: {flags: f}\noutputs: {y: {type: 'f32[n]', value: " value "}}\n"

#define SUM_DOWN   REDUCE("f32[m, n]", "m") "operator: add\noutputs: {r: 'f32[n]'}\n"
#define BYTES_DOWN REDUCE("u8[m, n]", "m") "operator: add\naccumulator: u32\noutputs: {r: 'u32[n]'}\n"
#define SUM_ROWS   REDUCE("f32[m, n]", "n") "operator: add\noutputs: {r: 'f32[m]'}\n"
#define MEAN_ROWS  REDUCE("f32[m, n]", "n") WELFORD
#define MEANS      FLAGS("operator: welford\n", "map: x\n", "s.mean")
#define LEAST      FLAGS("operator: argmin\n", "map: {value: x, index: i32(index(n))}\n", "s.value")
#define LSE_DOWN                                                                                                       \
    "kind: scan\ninputs: {x: 'f32[m, n]'}\nover: m\noperator: logsumexp\nmap: x\noutputs: {y: {type: 'f32[m, n]', "    \
    "value: "                                                                                                          \
    "s.max + log(s.sum)}}\n"
#define RECURRENCE                                                                                                     \
    "kind: reduce\ninputs: {x: 'f64[n]'}\noperator: {state: {p: f64, q: f64}, identity: {p: 1, q: 0}, combine: {p: "   \
    "a.p * "                                                                                                           \
    "b.p, q: a.q * b.p + b.q}}\nmap: {p: x, q: 1}\noutputs: {r: {type: f64, value: r.q}}\n"

Test(wide_states, by_size)
{
    static const struct {
        const char *spec;
        int64_t size[3]; /* in the order of the names in the spec */
        const char *name;
        int threads, items, vector;
    } row[] = {
        /* 64 threads for each of many rows, and no more of a block than that is worth */
        { MEAN_ROWS, { 14573, 4608 }, "rows", 64, 4, 4 },
        { MEAN_ROWS, { 3591, 18688 }, "rows", 64, 4, 4 },
        { MEAN_ROWS, { 500, 4608 }, "long", 512, 4, 4 },
        { SUM_ROWS, { 14573, 4608 }, "rows", 256, 4, 4 },
        { REDUCE("f64[m, n]", "n") "operator: add\noutputs: {r: 'f64[m]'}\n", { 1000, 2000 }, "rows", 256, 4, 2 },
        /* four columns of a thread where places are few */
        { SUMS("i8", "i32"), { 26214, 5, 2048 }, "short", 256, 4, 4 },
        { SUMS("i8", "i32"), { 3276, 40, 2048 }, "columns", 128, 4, 16 },
        { REDUCE("u8[d, m, n]", "m") "operator: max\noutputs: {r: 'u8[d, n]'}\n",
          { 26214, 5, 2048 },
          "columns",
          128,
          4,
          16 },
        { SUMS("f32", "f32"), { 6553, 5, 2048 }, "columns", 128, 8, 4 },
        /* columns one by one where they are many, up to twice as many rows */
        { SUM_DOWN, { 128, 524288 }, "columns_scalar", 128, 4, 4 },
        { SUM_DOWN, { 128, 262144 }, "strips", 256, 4, 4 },
        { SUM_DOWN, { 256, 524288 }, "strips", 256, 4, 4 },
        { BYTES_DOWN, { 349525, 192 }, "some", 256, 4, 16 }, /* as many blocks as fit */
        /* scans between flags, by more positions of a thread */
        { MEANS, { 1 << 24 }, "flags", 256, 13, 1 },
        { "determinism: run\n" MEANS, { 1 << 24 }, "pipeline", 416, 5, 4 },
        { LEAST, { 1 << 24 }, "pipeline", 416, 5, 4 },
        /* functions down several columns of large arrays */
        { LSE_DOWN, { 1 << 21, 16 }, "chunks", 256, 8, 1 },
        { LSE_DOWN, { 1 << 17, 16 }, "columns_pipeline", 320, 9, 4 },
        { RECURRENCE, { 1 << 24 }, "large", 256, 9, 2 }, /* ordered f64 through bulk copies */
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        SPEC_BEGIN(f);
        const struct plan_case *c = case_taken(&f, row[i].spec, row[i].size);
        const int *t = c->tunable;
        cr_expect_str_eq(c->code.name, row[i].name, "row %zu: %s", i, c->code.name);
        cr_expect(t[TN_THREADS] == row[i].threads && t[TN_ITEMS] == row[i].items && t[TN_VECTOR] == row[i].vector,
                  "row %zu: %d threads, %d items, %d elements", i, t[TN_THREADS], t[TN_ITEMS], t[TN_VECTOR]);
        spec_end(&f);
    }
}

/* Blocks of 128 threads with a queue; those of sums have 256. */
Test(wide_states, between_offsets)
{
    static const int64_t size[] = { 1 << 26, 8465 };
    static const struct {
        const char *spec;
        int threads;
    } row[] = {
        { "kind: reduce\ninputs: {x: 'i32[n]', o: 'i32[k]'}\n" SEGMENT_SUM OF_X
          "segments: {offsets: o}\noutputs: {r: {type: 'i32[k-1]', value: r.best}}\n",
          128 },
        { "kind: reduce\ninputs: {x: 'i32[n]', o: 'i32[k]'}\noperator: add\nmap: x\nsegments: {offsets: o}\noutputs: "
          "{r: 'i32[k-1]'}\n",
          256 },
    };
    for (int i = 0; i < 2; i++) {
        SPEC_BEGIN(f);
        const struct plan_case *c = case_taken(&f, row[i].spec, size);
        cr_expect_str_eq(c->code.name, "queue");
        cr_expect_eq(c->tunable[TN_THREADS], row[i].threads, "row %d: %d threads", i, c->tunable[TN_THREADS]);
        spec_end(&f);
    }
}

/* Rows with a table each read once. */
Test(wide_states, rows_before_parts)
{
    static const int64_t size[] = { 1024, 65536, 256 };
    SPEC_BEGIN(f);
    const struct plan_case *c = case_taken(&f,
                                           "kind: reduce\ninputs: {x: 'i32[m, n]'}\nover: n\nby: x\nmap: 1\noperator: "
                                           "add\noutputs: {r: 'i32[k, m]'}\n",
                                           size);
    cr_expect_str_eq(c->code.name, "rows");
    spec_end(&f);
}

/* Bins that fit no block: as many parts as they need, where elements are many more. */
Test(wide_states, parts_of_bins)
{
    static const struct {
        const char *map;
        int64_t size[2];
        const char *name;
        int64_t blocks;
    } row[] = {
        { "1", { 1 << 26, 50000 }, "most", 132 },    { "1", { 1 << 26, 131072 }, "parts", 132 },
        { "1", { 1 << 22, 65536 }, "parts", 64 },    { "x", { 1 << 22, 65536 }, "global", 0 },
        { "x", { 1 << 26, 1 << 17 }, "parts", 132 }, { "1", { 1 << 26, 400000 }, "global", 0 },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char spec[200];
        snprintf(spec, sizeof spec,
                 "kind: reduce\ninputs: {x: 'i32[n]'}\nby: x\nmap: %s\noperator: add\noutputs: {r: 'i32[k]'}\n",
                 row[i].map);
        SPEC_BEGIN(f);
        const struct plan_case *c = case_taken(&f, spec, row[i].size);
        cr_expect_str_eq(c->code.name, row[i].name, "row %zu: %s", i, c->code.name);
        for (int s = 0; s < c->code.nsteps && row[i].blocks; s++) {
            const struct formula_env env = { .size = row[i].size, .sms = 132 };
            if (c->code.step[s].kernel == 0)
                cr_expect_eq(formula_eval(&c->code.step[s].grid, &env), row[i].blocks, "row %zu: %lld blocks", i,
                             (long long)formula_eval(&c->code.step[s].grid, &env));
        }
        spec_end(&f);
    }
}
