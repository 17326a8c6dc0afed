/* SPDX-License-Identifier: Apache-2.0 */
/* test_neighbours.c - maps of reductions and scans that read neighbours: those of a vector's elements come from the vector,
 * those of a tile's from the ring, and neither across the end of a row, nor after another thread has stored there.
 */
#include <criterion/criterion.h>

#include "support/harness.h"

#define REDUCE(inputs, over, map, output)                                                                              \
    "kind: reduce\ninputs: {" inputs "}\nover: " over "\nmap: '" map "'\noperator: add\noutputs: {y: '" output "'}\n"
#define SCAN(inputs, map, output)                                                                                      \
    "kind: scan\ninputs: {" inputs "}\nmap: '" map "'\noperator: add\noutputs: {y: '" output "'}\n"
#define BACKWARDS(inputs, map, output) SCAN(inputs, map, output) "direction: reverse\n"

static const struct {
    const char *spec, *strategy;
    int64_t size[3]; /* in the order of the spec */
} row[] = {
    { REDUCE("x: 'f32[r, a, b]'", "r", "x - x[0, 0, -1]", "f32[a, b]"), "segreduce.column", { 7, 16, 3 } },
    { REDUCE("x: 'f32[r, a, b]'", "r", "x - x[0, 0, -1]", "f32[a, b]"), "segreduce.column", { 50, 16, 6 } },
    { REDUCE("x: 'i8[r, a, b]'", "r", "x - x[0, 0, 1]", "i32[a, b]"), "segreduce.column", { 40, 7, 33 } },
    { REDUCE("x: 'i32[r, m, n]'", "m", "x * x[0, 0, 1]", "i32[r, n]"), "segreduce.column", { 3, 40, 12 } },
    { REDUCE("x: 'f16[m, n]'", "n", "x - x[0, -1]", "f32[m]"), "segreduce.subwarp", { 5, 300 } },
    { REDUCE("x: 'i32[m, n]'", "[m, n]", "x - x[0, -1]", "i32"), "reduce.gather", { 33, 77 } },
    { REDUCE("x: 'i32[n]'", "n", "x[-1] * x[1]", "i32"), "reduce.gather", { 9001 } },
    { SCAN("x: 'i32[n]'", "x - x[-1]", "i32[n]"), "scan.pipeline", { 70001 } },
    { SCAN("x: 'i32[n]'", "x - x[1]", "i32[n]"), "scan.pipeline", { 65536 } },
    { SCAN("x: 'i16[n]', z: 'i32[n]'", "z[-1] * i32(x[1])", "i32[n]"), "scan.pipeline", { 70001 } },
    { BACKWARDS("x: 'i64[n]'", "x - x[-1] + 3 * x[1]", "i64[n]"), "scan.pipeline", { 70001 } },
    { BACKWARDS("x: 'i32[n]'", "x - x[-1]", "i32[n]"), "scan.pipeline", { 65536 } },
    { BACKWARDS("x: 'i16[n]', z: 'i32[n]'", "z[1] * i32(x[-1])", "i32[n]") "mode: exclusive\n",
      "scan.pipeline",
      { 65539 } },
    { BACKWARDS("x: 'i32[n]'", "x[-2]", "i32[n]"), "scan.pipeline", { 20000 } },
    { BACKWARDS("v: 'i32[n]', x: 'i32[n]'", "x[1] - v", "i32[n]"), "scan.pipeline", { 20001 } },
    { BACKWARDS("x: 'i32[n]', v: 'i32[n]'", "x[1] - v", "i32[n]"), "scan.pipeline", { 20001 } },
    { BACKWARDS("x: 'i32[n]', f: 'u8[n]'", "x - x[-1]", "i32[n]") "segments: {flags: f}\n",
      "scan.pipeline",
      { 65536 } },
    { "kind: scan\ninputs: {x: 'i32[n]'}\ndirection: reverse\noutputs: {y: {type: 'i32[n]', value: x, where: 'x > "
      "x[-1] "
      "or x > x[1]'}}\n",
      "scan.pipeline",
      { 65536 } },
    { SCAN("x: 'i16[n]'", "x[-2] + x", "i32[n]"), "scan.lookback", { 20011 } },
};
enum { ROWS = sizeof row / sizeof *row };

Test(neighbours, of_vectors_and_tiles, .timeout = 200)
{
    static const char *const boundary[] = { "clamp", "wrap", "{constant: 5}" };
    for (int i = 0; i < ROWS * 3; i++) {
        char spec[400];
        const char *set[] = { "strategy", row[i / 3].strategy, NULL };
        struct harness h;
        snprintf(spec, sizeof spec, "%sboundary: %s\n", row[i / 3].spec, boundary[i % 3]);
        cr_assert(harness_open(&h, "beside", spec, "sm_90", set), "%s\n%s", h.text, spec);
        harness_data_at(&h, row[i / 3].size, 3, 0, false);
        cr_assert(harness_check(&h, "seed:1,race,uninit"), "%s: %s\n%s", row[i / 3].strategy, h.text, spec);
        harness_close(&h);
    }
}
