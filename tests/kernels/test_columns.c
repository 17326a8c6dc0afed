/* SPDX-License-Identifier: Apache-2.0 */
/* test_columns.c - reductions and scans along a dimension that is not the last, by the host executor: the cases that random
 * specs of that size seldom reach.
 */
#include <criterion/criterion.h>

#include "support/harness.h"

/* Narrow columns whose rows begin anywhere in words: no byte after the arrays is read, and what the last vectors share is
 * stored once; ordered and not, in one part and in several, all places by a thread, boxes of a middle dimension. */
Test(columns, narrow_columns)
{
    static const int64_t sizes[][3] = { { 1, 5, 9 },   { 1, 700, 13 }, { 1, 129, 17 }, { 1, 1500, 70 },
                                        { 3, 37, 11 }, { 1, 3, 8209 }, { 1, 1, 15 },   { 2, 260, 33 } };
    static const char *const spec[] = {
        "kind: reduce\ninputs: {x: 'u8[d, m, n]'}\nover: m\noperator: max\noutputs: {r: 'u8[d, n]'}\n",
        "kind: reduce\ninputs: {x: 'i16[d, m, n]', y: 'i8[d, m, n]'}\nover: m\nmap: i32(x) * i32(y)\noperator: add\n"
        "outputs: {r: 'i32[d, n]'}\n",
        "kind: reduce\ninputs: {x: 'i8[d, m, n]'}\nover: m\nmap: i32(x)\n"
        "operator: {state: i32, identity: 0, combine: 'select(b == 0, a, b)'}\n"
        "outputs: {r: 'i32[d, n]'}\n",
    };
    for (int i = 0; i < 3 * 8; i++) {
        struct harness h;
        cr_assert(harness_open(&h, "narrow", spec[i / 8], "sm_90", NULL), "%s", h.text);
        harness_data_at(&h, sizes[i % 8], 3, 0, false);
        cr_assert(harness_check(&h, i % 2 ? "seed:1,race,uninit,sms:1" : "seed:2,race,uninit,sms:3"), "%d: %s\n%s",
                  i % 8, h.text, spec[i / 8]);
        cr_expect(strstr(ptxgen_host_case(h.host), "_shifted"), "%d: case %s", i, ptxgen_host_case(h.host));
        harness_close(&h);
    }
}

/* Columns of a thread that lie a block's threads apart: the last block's are there in part, rows begin anywhere, and places
 * are no multiple of what a round takes; all places of them, or what a row group has, in one part and in several. */
Test(columns, striped_columns)
{
    static const int64_t sizes[][3] = { { 1, 3, 1031 }, { 1, 1, 1025 },  { 2, 5, 1501 }, { 1, 9, 2049 }, { 3, 2, 701 },
                                        { 1, 700, 70 }, { 1, 131, 397 }, { 2, 65, 99 },  { 3, 1000, 45 } };
    static const char *const spec[] = {
        "kind: reduce\ninputs: {x: 'f32[d, m, n]', w: 'f32[m]', v: 'f32[n]'}\nover: m\nmap: x * w + v\noperator: add\n"
        "outputs: {r: 'f32[d, n]'}\n",
        "kind: reduce\ninputs: {x: {type: {a: i16, b: f64}, shape: [d, m, n]}}\nover: m\n"
        "reductions:\n  s: {map: x.b, operator: max}\n  i: {map: {value: x.a, index: index(m)}, operator: argmin}\n"
        "outputs: {s: 'f64[d, n]', at: {type: 'i64[d, n]', value: i.index}}\n",
        "kind: reduce\ninputs: {x: 'i32[d, m, n]'}\nover: m\n"
        "operator: {state: i32, identity: 0, combine: 'select(b == 0, a, b)'}\noutputs: {r: 'i32[d, n]'}\n",
    };
    const int n = sizeof sizes / sizeof *sizes;
    for (int i = 0; i < 3 * n; i++) {
        struct harness h;
        const char *name = i % n < 5 ? "columns_scalar" : "strips_scalar";
        cr_assert(harness_open(&h, "striped", spec[i / n], "sm_90", NULL), "%s", h.text);
        harness_data_at(&h, sizes[i % n], 3, i % 4, false);
        cr_assert(harness_check(&h, "seed:1,race,uninit,guard,sms:1"), "%d: %s\n%s", i % n, h.text, spec[i / n]);
        cr_expect(strcmp(ptxgen_host_case(h.host), name) == 0, "%d: case %s", i, ptxgen_host_case(h.host));
        harness_close(&h);
    }
}

/* So many columns of two places that blocks take several groups of them. */
Test(columns, columns_in_turns)
{
    static const char spec[] =
        "kind: scan\ninputs: {x: 'i32[m, n]'}\nover: m\noperator: add\noutputs: {y: 'i32[m, n]'}\n";
    struct harness h;
    cr_assert(harness_open(&h, "turns", spec, "sm_90", NULL), "%s", h.text);
    harness_data_at(&h, (int64_t[]){ 2, 256 * 128 + 130 }, 3, 1, false);
    cr_assert(harness_check(&h, "seed:1,race,uninit,sms:1"), "%s", h.text);
    cr_expect(strcmp(ptxgen_host_case(h.host), "column") == 0, "case %s", ptxgen_host_case(h.host));
    harness_close(&h);
}

/* Rows of columns that are one vector: four f32, two f64, backwards too. */
Test(columns, rows_of_one_vector)
{
    static const struct {
        const char *type, *more;
        int64_t m, n;
    } row[] = { { "f32", "", 1501, 4 },
                { "f64", "mode: exclusive\n", 3001, 2 },
                { "i32", "direction: reverse\n", 1777, 4 } };
    const char *set[] = { "strategy", "scan.pipeline", "lookback_warps", "0", "threads", "64", "items", "1", NULL };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char spec[256];
        struct harness h;
        snprintf(spec, sizeof spec,
                 "kind: scan\ninputs: {x: '%s[m, n]'}\nover: m\noperator: add\n%soutputs: {y: '%s[m, n]'}\n",
                 row[i].type, row[i].more, row[i].type);
        cr_assert(harness_open(&h, "vector", spec, "sm_90", set), "%s", h.text);
        harness_data_at(&h, (int64_t[]){ row[i].m, row[i].n }, 3, 0, false);
        for (int seed = 0; seed < 3; seed++) {
            static const char *const modes[] = { "seed:1,race,uninit", "seed:2,late,stale", "seed:3,late,sms:2" };
            cr_assert(harness_check(&h, modes[seed]), "%s: %s", spec, h.text);
        }
        cr_expect(strcmp(ptxgen_host_case(h.host), "whole_row_pipeline") == 0, "case %s", ptxgen_host_case(h.host));
        harness_close(&h);
    }
}
