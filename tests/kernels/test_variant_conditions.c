/* SPDX-License-Identifier: Apache-2.0 */
/* test_variant_conditions.c - kernels that rely on lengths, widths or operators run where these are so: a pinned variant
 * keeps the conditions of its kernel, or is refused, and so does the default plan where a size is promised.
 *
 * Each row was wrong once, or wrote beyond its arrays; variant_sweep looks for others.
 */
#include "support/harness.h"

#include <criterion/criterion.h>

#define BETWEEN(type)                                                                                                  \
    "kind: reduce\ninputs: {x: '" type "[n]', off: 'i32[k]'}\nsegments: {offsets: off}\noperator: add\n"
#define ROWS    "kind: reduce\ninputs: {x: 'i32[m, n]'}\noperator: add\nover: n\noutputs: {s: 'i32[m]'}\n"
#define COLUMNS "kind: reduce\ninputs: {x: 'i32[m, n]'}\noperator: max\nover: m\noutputs: {s: 'i32[n]'}\n"
#define MIDDLE  "kind: reduce\ninputs: {x: 'f32[d, m, n]'}\noperator: add\nover: m\noutputs: {s: 'f32[d, n]'}\n"
#define SCANNED                                                                                                        \
    "kind: scan\ninputs: {x: 'i32[n]', off: 'i32[k]'}\nsegments: {offsets: off}\noperator: add\noutputs: {y: "         \
    "'i32[n]'}\n"
#define ORDERED                                                                                                        \
    "kind: reduce\ninputs: {x: 'i32[n]', off: 'i32[k]'}\nsegments: {offsets: off}\ninit: 1\n"                          \
    "operator: {state: i32, combine: if b % 3 == 0 then a else b}\noutputs: {s: 'i32[k-1]'}\n"
/* In any order; and of two fields, which do not fit in the place of an element. */
#define UNORDERED                                                                                                      \
    "kind: reduce\ninputs: {x: 'i32[n]', off: 'i64[k]'}\nsegments: {offsets: off}\ninit: 7\n"                          \
    "operator: {state: i32, combine: a + b + 1, commutative: true}\noutputs: {s: 'i32[k-1]'}\n"
#define OF_TWO(commutative, combined)                                                                                  \
    "kind: reduce\ninputs: {x: 'i32[n]', off: 'i64[k]'}\nsegments: {offsets: off}\nmap: {a: x, b: x * x}\n"            \
    "operator: {state: {a: i32, b: i32}, identity: {a: 0, b: 0}, commutative: " commutative                            \
    ", combine: {a: a.a + b.a, b: a.b + b.b + " combined "}}\noutputs: {s: {type: 'i32[k-1]', value: r.b}}\n"

static const struct row {
    const char *name, *spec, *arch;
    const char *set[7]; /* settings, as harness_open() takes them */
    bool refused;       /* the plan is; else results are right, or no case takes the launch */
    int64_t size[4][3];
} rows[] = {
    { "bytes between offsets",
      BETWEEN("u8") "outputs: {s: 'u32[k-1]'}\n",
      "sm_90",
      { NULL },
      false,
      { { 1000, 9 }, { 7001, 33 }, { 64, 2 } } },
    { "signed bytes between offsets",
      BETWEEN("i8") "outputs: {s: 'i32[k-1]'}\n",
      "sm_75",
      { NULL },
      false,
      { { 1000, 9 }, { 7001, 33 } } },
    { "rows of a promised length",
      ROWS "assume: {n: {equals: 128}}\n",
      "sm_90",
      { NULL },
      false,
      { { 37, 128 }, { 1, 128 } } },
    { "rows of a shorter promised length",
      ROWS "assume: {n: {equals: 64}}\n",
      "sm_80",
      { NULL },
      false,
      { { 37, 64 } } },
    { "columns in pairs",
      COLUMNS,
      "sm_90",
      { "strategy", "segreduce.column", "vector", "2" },
      false,
      { { 5, 5 }, { 31, 63 }, { 700, 9 }, { 64, 64 } } },
    { "columns in fours",
      COLUMNS,
      "sm_80",
      { "strategy", "segreduce.column", "vector", "4" },
      false,
      { { 5, 5 }, { 31, 66 }, { 700, 9 } } },
    { "middle dimension in pairs",
      MIDDLE,
      "sm_90",
      { "strategy", "segreduce.column", "vector", "2" },
      false,
      { { 3, 33, 5 }, { 2, 9, 63 } } },
    { "packed rows",
      ROWS,
      "sm_90",
      { "strategy", "segreduce.subwarp", "lanes", "0" },
      false,
      { { 33, 31 }, { 33, 33 }, { 5, 32 }, { 9, 1 } } },
    { "tiles of values per element",
      BETWEEN("f32") "outputs: {s: 'f32[k-1]', e: {type: 'f32[n]', value: x * 2}}\n",
      "sm_90",
      { "strategy", "segreduce.offsets", "copy_stages", "2" },
      true,
      { { 0 } } },
    { "tiles without an identity",
      ORDERED,
      "sm_90",
      { "strategy", "segreduce.offsets", "copy_stages", "3", "threads", "64" },
      false,
      { { 5000, 61 }, { 9001, 700 }, { 3, 9 }, { 60001, 5 } } },
    { "tiles without an identity, any order",
      UNORDERED,
      "sm_90",
      { "strategy", "segreduce.offsets", "items", "2", "threads", "64" },
      false,
      { { 5000, 61 }, { 9001, 700 }, { 3, 9 }, { 60001, 5 } } },
    { "tiles of states of two fields",
      OF_TWO("false", "a.a * b.a"),
      "sm_80",
      { "strategy", "segreduce.offsets", "items", "1", "threads", "128" },
      false,
      { { 5000, 61 }, { 9001, 700 }, { 3, 9 }, { 60001, 5 } } },
    { "tiles of states of two fields, any order",
      OF_TWO("true", "2 * a.a * b.a"),
      "sm_90",
      { "strategy", "segreduce.offsets", "items", "3", "threads", "64" },
      false,
      { { 5000, 61 }, { 9001, 700 }, { 3, 9 }, { 60001, 5 } } },
    { "rows of segments between offsets",
      SCANNED,
      "sm_90",
      { "strategy", "segscan.column", "rows", "4" },
      true,
      { { 0 } } },
};

static void check_row(const struct row *r)
{
    struct harness h;
    const bool open = harness_open(&h, "row", r->spec, r->arch, r->set[0] ? r->set : NULL);
    cr_expect_eq(open, !r->refused, "%s: %s", r->name, open ? "planned and compiled" : h.text);
    cr_expect(open || strstr(h.text, "plan: ") == h.text, "%s: %s", r->name, h.text);
    for (int i = 0; open && i < 4 && r->size[i][0]; i++)
        for (int skew = 0; skew < 4; skew++) {
            harness_data_at(&h, r->size[i], 5 + (uint64_t)i, skew, 0);
            cr_expect(harness_check(&h, "seed:1,race") || (r->set[0] && strstr(h.text, "no case of ")),
                      "%s, sizes %lld %lld %lld, %d elements on: %s", r->name, (long long)r->size[i][0],
                      (long long)r->size[i][1], (long long)r->size[i][2], skew, h.text);
        }
    harness_close(&h);
}

Test(variant_conditions, hold_or_are_refused)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(&rows[i]);
}
