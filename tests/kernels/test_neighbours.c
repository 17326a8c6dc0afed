/* SPDX-License-Identifier: Apache-2.0 */
/* test_neighbours.c - maps of reductions and scans that read neighbours: those of a vector's elements come from the vector,
 * those of a tile's from the ring, and neither across the end of a row, nor after another thread has stored there.
 * Segments and columns that go on from row to row, and rows that are shorter than a vector.
 */
#include <criterion/criterion.h>

#include "kernels/once.h"

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
        snprintf(spec, sizeof spec, "%sboundary: %s\n", row[i / 3].spec, boundary[i % 3]);
        run_once(spec, set, row[i / 3].size, 0, "seed:1,race,uninit", NULL);
    }
}

#define BESIDE        "i32(x) - 3 * i32(x[0, 0, -1]) + 5 * i32(x[0, 0, 2]) - 7 * i32(x[0, 0, 1])"
#define PLANES        REDUCE("x: 'i8[d, m, n]'", "[m, n]", BESIDE, "i32[d]")
#define ROWS_OF(type) REDUCE("x: '" type "[m, n]'", "n", "i32(x) - 3 * i32(x[0, -1]) + i32(x[0, 1])", "i32[m]")
#define LINES(type)   REDUCE("x: '" type "[d, m, n]'", "m", BESIDE, "i32[d, n]")

/* What the planner chooses for sizes, at which rows end anywhere in vectors. */
static const struct {
    const char *spec, *name;
    int64_t size[3];
} chosen[] = {
    { PLANES, "long", { 2, 111, 303 } },
    { PLANES, "rows", { 2, 531, 15 } },
    { PLANES, "warps", { 3, 700, 1 } },
    { PLANES, "warps", { 3, 300, 3 } },
    { PLANES, "warps", { 2, 100, 16 } },
    { PLANES, "short", { 260, 37, 17 } },
    { PLANES, "medium", { 3, 7, 37 } },
    { PLANES, "packed", { 5, 8, 8 } },
    { PLANES, "tile", { 40, 11, 5 } },
    { ROWS_OF("i8"), "short", { 300, 1023 } },
    { ROWS_OF("i16"), "short", { 257, 260 } },
    { ROWS_OF("i8"), "quad", { 77, 4 } },
    { ROWS_OF("u8"), "octet", { 70, 8 } },
    { ROWS_OF("i16"), "tile", { 70, 9 } },
    { LINES("u8"), "columns_scalar", { 130, 5, 9 } },
    { LINES("i16"), "columns_scalar", { 1030, 7, 1 } },
    { LINES("i32"), "columns", { 300, 5, 16 } },
    { REDUCE("x: 'i32[d, m, n]'", "d", BESIDE, "i32[m, n]"), "columns", { 7, 94, 46 } },
    { REDUCE("x: 'i32[d, m, n]'", "d", BESIDE, "i32[m, n]"), "strips", { 70, 28, 5 } },
};

Test(neighbours, of_chosen_sizes, .timeout = 200)
{
    static const char *const boundary[] = { "clamp", "{constant: 5}", "reflect" };
    for (size_t i = 0; i < 3 * sizeof chosen / sizeof *chosen; i++) {
        char spec[400];
        snprintf(spec, sizeof spec, "%sboundary: %s\n", chosen[i / 3].spec, boundary[i % 3]);
        run_once(spec, NULL, chosen[i / 3].size, 0, "seed:1,race,uninit,guard,sms:1", chosen[i / 3].name);
    }
}

/* An ordered state of two fields by four lanes each. */
Test(neighbours, short_rows_of_a_state)
{
    static const char spec[] =
        "kind: reduce\ninputs: {x: 'i16[m, n]'}\nover: n\nmap: {length: 'if x > 0 then 1 else 0', all: x > 0}\n"
        "operator:\n  state: {length: i32, all: bool}\n  identity: {length: 0, all: true}\n"
        "  combine: {length: 'if b.all then a.length + b.length else b.length', all: a.all and b.all}\n"
        "outputs: {r: {type: 'i32[m]', value: r.length}}\n";
    run_once(spec, NULL, (int64_t[]){ 259, 415, 0 }, 0, "seed:1,race,uninit,guard,sms:1", "short");
}
