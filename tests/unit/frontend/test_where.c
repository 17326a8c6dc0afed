/* SPDX-License-Identifier: Apache-2.0 */
/* test_where.c - what `where`, `count`, `from`, `starts` and `last` become, and what is said where they are misused. */
#include "support/spec_fixture.h"

#define SCAN "kind: scan\ninputs: {x: 'i32[n]', h: 'u8[n]'}\n"
#define SUM  SCAN "operator: add\nmap: x\n"
#define ROWS "kind: scan\ninputs: {x: 'i32[m, n]'}\noperator: add\n"
#define KEPT "kept: {type: 'i32[n]', where: x > 0, value: x}"
#define ROWS2                                                                                                          \
    "kind: scan\ninputs: {x: 'i32[m, n]', h: 'u8[m, n]', f: 'f32[m, n]'}\nmap: x + 0 * i32(f)\noperator: add\n"

static const struct spec_row rows[] = {
    /* what they become */
    { SCAN "outputs: {" KEPT ", many: {type: i64, count: kept}}\n",
      "output kept: i32[n] per kept element\n  where (x > 0) at (kept - i64(1))\n  value = x\n"
      "output many: i64[] per scan\n  value = kept.total\n" },
    { SCAN "mode: exclusive\noutputs: {" KEPT "}\n", "at kept\n" },
    { SCAN "outputs: {kept: {type: 'i32[n]', where: x > 0, value: x, from: end}}\n", "at (n - kept)\n" },
    { SCAN "mode: exclusive\noutputs: {kept: {type: 'i32[n]', where: x > 0, value: x, from: end}}\n",
      "at (n - (kept + i64(1)))\n" },
    { SCAN "outputs: {" KEPT ", many: {type: i32, count: kept}}\n", "value = i32(kept.total)\n" },
    { SUM "segments: {starts: \"x != x[-1]\"}\noutputs: {y: {type: 'i32[n]', where: last, value: s}}\n",
      "  combine: i32 = (if b.begins then b else (a + b))\n  combine.begins: bool = (a.begins or b.begins)\n" },
    { SUM "segments: {starts: \"x != x[-1]\"}\noutputs: {y: {type: 'i32[n]', where: last, value: s}}\n",
      "where ((index(n) == (n - i64(1))) or (x[1] != x))" },
    { SUM "let: {d: \"x - x[-2]\"}\nsegments: {starts: index(n) == 3 or d > 0}\n"
          "outputs: {y: {type: bool, shape: [n], value: s}}\n",
      "only an array of structures" },
    { SUM "let: {d: \"x - x[-2]\"}\nsegments: {starts: index(n) == 3 or d > 0}\n"
          "outputs: {y: {type: 'i32[n]', value: if last then s else 0}}\n",
      "(((index(n) + i64(1)) == i64(3)) or ((x[1] - x[-1]) > 0))" },
    { SUM "direction: reverse\noutputs: {y: {type: 'i32[n]', where: last, value: s}}\n",
      "where (index(n) == i64(0)) at" },
    { SUM "outputs: {y: {type: 'i32[n]', where: last, value: s}}\n", "where (index(n) == (n - i64(1))) at" },
    { SUM "segments: {starts: x > 0}\nmode: exclusive\noutputs: {y: 'i32[n]'}\n",
      "value = (if (x > 0) then 0 else s)\n" },
    { SUM "segments: {starts: x > 0}\nmode: exclusive\ninit: 3\noutputs: {y: 'i32[n]'}\n",
      "value = (if (x > 0) then 3 else s)\n" },
    { SUM "segments: {starts: x > 0}\ninit: 3\noutputs: {y: 'i32[n]'}\n", "(if (x > 0) then (3 + x) else x)\n" },
    { SUM "segments: {starts: x > 0}\ndirection: reverse\noutputs: {y: {type: 'i32[n]', where: last, value: s}}\n",
      "where ((index(n) == i64(0)) or (x > 0))" },
    { SUM "segments: {starts: x > 0}\ndirection: reverse\noutputs: {y: 'i32[n]'}\n", "(x[1] > 0)\n" },
    { ROWS2 "segments: {flags: h}\noutputs: {y: 'i32[m, n]'}\n", "map.begins: bool = bool(h)\n" },
    { ROWS "over: [m, n]\nsegments: {starts: x > 0}\noutputs: {y: 'i32[m, n]'}\n", "space [m*n] over m*n segments" },
    { ROWS2 "over: [m, n]\nsegments: {flags: h}\noutputs: {y: 'i32[m, n]'}\n", "over m*n segments by starts" },
    { ROWS "over: [m, n]\nsegments: {starts: 'x > x[0, -1]'}\noutputs: {y: 'i32[m, n]'}\n",
      "(at(x, (index(m*n) / n), (index(m*n) % n)) > at(x, (index(m*n) / n), ((index(m*n) % n) + i64(-1))))" },
    { "kind: scan\ninputs: {x: 'i32[m, n, k]'}\nover: [n, k]\noutputs: {kept: {type: 'i32[m, n, k]', where: x > 0, "
      "value: x}, many: {type: 'i64[m]', count: kept}}\n",
      "space [m, n*k] over n*k\n" },
    /* what they cannot be */
    { ROWS2 "segments: {flags: f}\noutputs: {y: 'i32[m, n]'}\n", "bool is expected here, this is f32" },
    { ROWS2 "segments: {starts: h}\noutputs: {y: 'i32[m, n]'}\n", "bool is expected here, this is u8" },
    { "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\nby: x\noutputs: {h: 'i32[k]', " KEPT "}\n",
      "with this 'by', 'kept' has the shape [k] and not [n]" },
    { "kind: stencil\ninputs: {x: 'i32[n]'}\noutputs: {" KEPT "}\n", "outputs of a stencil have no 'where'" },
    { "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {s: i32, c: {type: i64, count: s}}\n",
      "outputs of a reduce have no 'count'" },
    { "kind: reduce\ninputs: {x: 'i32[n]'}\nsegments: {starts: x > 0}\noperator: add\noutputs: {y: i32}\n",
      "only a scan can have starts" },
    { SCAN "segments: {starts: x > 0, flags: h}\noperator: add\nmap: x\noutputs: {y: 'i32[n]'}\n",
      "by offsets, by flags or by starts" },
    { SCAN "outputs: {y: {type: 'i32[n]', where: x, value: x}}\n", "bool" },
    { SUM "outputs: {y: {type: 'i32[n]', where: s > 0, value: x}}\n", "'s' has no value in a where" },
    { SUM "outputs: {y: {type: 'i32[n]', from: end}}\n", "'from' belongs to an output with 'where'" },
    { SCAN "outputs: {y: {type: 'i32[n]', where: x > 0, value: x, from: back}}\n", "'from' is start or end" },
    { SCAN "outputs: {" KEPT ", many: {type: i64, count: many}}\n", "'many' is no output with 'where'" },
    { SCAN "outputs: {" KEPT ", many: {type: f32, count: kept}}\n", "a count is an i64 or an i32" },
    { SCAN "outputs: {" KEPT ", many: {type: 'i64[n]', count: kept}}\n", "one count per scan" },
    { SCAN "outputs: {" KEPT ", many: {type: i64, count: kept, value: 1}}\n",
      ":90: error: an output has 'count' or 'value', not both" },
    { SCAN "outputs: {" KEPT ", many: {type: i64, count: kept, where: x > 0}}\n", "'count' or 'where', not both" },
    { SCAN "outputs: {" KEPT ", many: {type: i64, count: kept, from: end}}\n", "'count' or 'from', not both" },
    { SCAN "map: x\noutputs: {" KEPT "}\n", "'map' belongs to an operator, and this spec has none" },
    { SCAN "init: 1\noutputs: {" KEPT "}\n", "'init' belongs to an operator" },
    { "kind: map\ninputs: {x: 'i32[n]'}\naccumulator: i64\noutputs: {" KEPT "}\n",
      "'accumulator' belongs to an operator" },
    { SCAN "outputs: {kept: {type: 'i32[n-1]', where: x > 0, value: x}}\n", "all dimensions in their order" },
    { SUM "segments: {flags: h}\noutputs: {" KEPT "}\n", "segments: {starts: h != 0}" },
    { SUM "segments: {flags: h}\noutputs: {y: {type: 'i32[n]', value: if last then s else 0}}\n", "not yet: 'last'" },
    { SUM "segments: {starts: x > 0}\noutputs: {y: 'i32[n]', t: i32}\n", "so they have no totals" },
    { ROWS "segments: {starts: 'x[0, -1] < x'}\noutputs: {y: {type: 'i32[m, n]', where: last, value: s}}\n",
      "((index(n) == (n - i64(1))) or (x < x[0, 1]))" },
    { ROWS "over: m\nsegments: {starts: 'i64(x) < index(m) - index(n)'}\noutputs: {y: {type: 'i32[m, n]', where: last, "
           "value: s}}\n",
      "(i64(x[1, 0]) < ((index(m) + i64(1)) - index(n)))" },
    { ROWS
      "over: [m, n]\nsegments: {starts: 'x > x[0, -1]'}\noutputs: {y: {type: 'i32[m, n]', where: x > 0, value: s}}\n",
      "not yet: segments that are given by 'starts' along several dimensions" },
    { ROWS "segments: {starts: x > 0}\noutputs: {y: 'i32[m, n]', t: 'i32[m]'}\n", "so they have no totals" },
    { "kind: scan\ninputs: {x: 'i32[m, n]', h: 'u8[n]'}\noperator: add\nmap: x\nsegments: {flags: h}\noutputs: {y: "
      "'i32[m, n]'}\n",
      "may have segments: {starts: …}, or flags of several dimensions" },
    { SUM "segments: {starts: last}\noutputs: {y: 'i32[n]'}\n", "nothing is called 'last'" },
    { "kind: scan\ninputs: {x: 'i32[m, n, k]'}\nover: [m, k]\noutputs: {kept: {type: 'i32[m, n, k]', where: x > 0, "
      "value: x}}\n",
      "not yet: 'where' along several dimensions" },
    { "kind: scan\ninputs: {x: 'i32[n]'}\noutputs: {y: {type: 'i32[n]', value: x}}\n", "needs the key 'operator'" },
};

Test(where, says) { spec_rows(rows, sizeof rows / sizeof *rows); }

/* Outputs with equal conditions are counted once. */
Test(where, equal_conditions_share_a_scan)
{
    SPEC_BEGIN(f);
    spec_build(&f, SCAN "let: {c: x > 0}\noutputs: {a: {type: 'i32[n]', where: c, value: x}, "
                        "b: {type: 'i64[n]', where: c, value: index(n)}, "
                        "c: {type: 'i32[n]', where: not c, value: x, from: end}}\n");
    cr_assert(f.p, "%s", spec_text(&f));
    cr_expect_eq(f.p->nreductions, 2);
    cr_expect_eq(f.p->output[0].counter, f.p->output[1].counter);
    cr_expect_neq(f.p->output[0].counter, f.p->output[2].counter);
    spec_end(&f);
}
