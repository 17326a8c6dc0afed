/* SPDX-License-Identifier: Apache-2.0 */
/* test_chunks.c - scans down columns by segscan.three_pass: chunks of columns, whose totals are scanned between two passes.
 *
 * Chunks of which the last one is in part outside, a single one, more chunks than a block that scans totals has threads;
 * wide and ordered states, totals, columns without elements.
 */
#include "kernels/once.h"

static const char *const spec[] = {
    "inputs: {x: 'i32[d, m, n]'}\nover: m\noperator: add\noutputs: {y: 'i32[d, m, n]', t: 'i32[d, n]'}\n",
    "inputs: {x: 'f32[d, m, n]'}\nover: m\noperator: welford\nmode: exclusive\n"
    "outputs: {y: {type: 'f32[d, m, n]', value: s.mean}, v: {type: 'f32[d, n]', value: total.m2 / total.n}}\n",
    "inputs: {x: 'u8[d, m, n]', w: 'u8[m]'}\nover: [d, m]\ndirection: reverse\nmap: x * w + x[0, 1, 0]\noperator: max\n"
    "outputs: {y: {type: 'u8[d, m, n]', value: s}}\n",
    "inputs: {x: 'i32[d, m, n]'}\nover: m\nmap: {a: x, b: 1}\n"
    "operator: {state: {a: i32, b: i32}, identity: {a: 1, b: 0}, combine: {a: a.a * b.a, b: a.b * b.a + b.b}}\n"
    "init: {a: 3, b: 5}\nmode: exclusive\noutputs: {y: {type: 'i32[d, m, n]', value: s.b}}\n",
    "inputs: {x: 'i64[d, m, n]'}\nover: d\noperator: {state: i64, combine: 'select(b == 0, a, b)'}\n"
    "outputs: {y: 'i64[d, m, n]', t: 'i64[m, n]'}\n",
};

Test(chunks, of_columns)
{
    static const int64_t sizes[][3] = { { 1, 500, 3 },  { 2, 37, 33 }, { 129, 5, 7 },
                                        { 1, 1, 70 },   { 3, 0, 5 },   { 1, 1301, 2 },
                                        { 37, 11, 13 }, { 2, 2, 2 } };
    for (size_t i = 0; i < sizeof spec / sizeof *spec; i++)
        for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
            const char *set[] = { "strategy", "segscan.three_pass", "threads", n % 2 ? "64" : "32", "items",
                                  n % 3 ? "3" : "4", "blocks_per_sm", n % 3 ? "1" : "8", NULL };
            char text[700];
            if (sizes[n][1] == 0 && strstr(spec[i], "total."))
                continue; /* a mean of nothing */
            snprintf(text, sizeof text, "kind: scan\n%s", spec[i]);
            run_once(text, set, sizes[n], (int)n % 3, "seed:1,race,uninit,guard,sms:2", "chunks");
            run_once(text, set, sizes[n], 0, "seed:2,weak,race,sms:9", "chunks");
        }
}
