/* SPDX-License-Identifier: Apache-2.0 */
/* test_row_values.c - scans of rows that read a value per row, per column or per plane, or ask for indices: tiles across
 * rows know them from position to position, whatever lies in between, tiles of one row from the row. */
#include <criterion/criterion.h>

#include "support/harness.h"

#define DIRECTIONS(spec)                                                                                               \
    {                                                                                                                  \
        spec, spec "direction: reverse\n", spec "direction: reverse\nmode: exclusive\n"                                \
    }

static const char *const planes[] = DIRECTIONS(
    "kind: scan\ninputs: {x: 'i32[d, m, n]', w: 'i32[d]', v: 'i32[m]', u: 'i32[m, n]'}\nover: n\noperator: add\n"
    "map: w * x - v + u * i32(index(n))\noutputs: {r: {type: 'i32[d, m, n]', value: s + w}}\n");
static const char *const rows[] = DIRECTIONS(
    "kind: scan\ninputs: {x: 'f64[m, n]', w: 'f64[m]'}\nover: n\noperator: max\nmap: w * x\noutputs: {r: 'f64[m, n]', "
    "q: {type: {a: f64, b: i64}, shape: [m, n], value: {a: s - w, b: index(m)}}}\n");
static const char *const several[] =
    DIRECTIONS("kind: scan\ninputs: {x: 'u16[d, m, n]', w: 'u32[d]', v: 'u32[n]'}\nover: [m, n]\noperator: add\n"
               "map: w * u32(x) + v\noutputs: {r: {type: 'u32[d, m, n]', value: s}}\n");
/* Nothing but whole arrays of scalars is copied. */
static const char *const copied[] = DIRECTIONS("kind: scan\ninputs: {x: 'f32[m, n]', w: 'f32[m]'}\nover: n\noperator: "
                                               "max\nmap: w * x\noutputs: {r: 'f32[m, n]'}\n");

static const struct {
    const char *set[6];
    bool all; /* takes all specs, not only those of whole arrays */
} strategies[] = { { { NULL }, true },
                   { { "strategy", "scan.pipeline", "threads", "64", NULL }, false },
                   { { "strategy", "scan.lookback", "across", "1", NULL }, true },
                   { { "strategy", "scan.lookback", "across", "0", NULL }, true },
                   { { "strategy", "scan.block", NULL }, true } };

static const int64_t sizes[][3] = { { 3, 11, 7 },   { 2, 3, 301 }, { 5, 70, 1 },  { 1, 1, 1001 },
                                    { 1, 2, 1024 }, { 2, 44, 77 }, { 1, 12, 333 } };

static void check(const char *const *specs, int rank, bool whole)
{
    static const char *const modes[] = { "seed:1,race,uninit,guard", "seed:2,weak,race", "seed:3,stale,late,guard" };
    for (int i = 0; i < 3; i++)
        for (size_t s = 0; s < sizeof strategies / sizeof *strategies; s++) {
            struct harness h;
            if (!strategies[s].all && !whole)
                continue;
            cr_assert(harness_open(&h, "row values", specs[i], "sm_90", s ? strategies[s].set : NULL), "%s\n%s", h.text,
                      specs[i]);
            for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
                harness_data_at(&h, sizes[n] + 3 - rank, 5 + n, 0, 0);
                cr_expect(harness_check(&h, modes[i]) || (s == 1 && strstr(h.text, "no case of")),
                          "strategy %d, size %d: %s\n%s", (int)s, (int)n, h.text, specs[i]);
            }
            harness_close(&h);
        }
}

Test(row_values, of_planes) { check(planes, 3, false); }
Test(row_values, of_rows) { check(rows, 2, false); }
Test(row_values, of_rows_that_are_copied) { check(copied, 2, true); }
Test(row_values, of_several_dimensions) { check(several, 3, false); }
