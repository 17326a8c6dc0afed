/* SPDX-License-Identifier: Apache-2.0 */
/* test_by.c - what `by` becomes in reductions and scans, and what is said where it is misused. */
#include "support/spec_fixture.h"

#define IN   "kind: reduce\ninputs: {x: 'f32[n]', key: 'i32[n]'}\n"
#define SUM  IN "map: x\noperator: add\n"
#define BY   SUM "by: key\n"
#define MANY "map: 1\noperator: add\n"
#define OWN  "operator: {state: f32, combine: "
#define ROWS "kind: scan\ninputs: {x: 'f32[m, n]', key: 'i16[m, n]'}\nmap: x\n"
#define SCAN ROWS "operator: add\n"

static const struct spec_row rows[] = {
    /* what it becomes */
    { BY "outputs: {y: 'f32[k]'}\n", "over n\nby [k] i64(key)\n" },
    { BY "outputs: {y: 'f32[k]'}\n", "output y: f32[k] per segment\n  value = r\n" },
    { BY "outputs: {y: 'f32[256]'}\n", "by [256] i64(key)\n" },
    { BY "outputs: {y: 'f32[n]'}\n", "by [n] i64(key)\n" },
    { SUM "by: [key, index(n) / 2]\noutputs: {y: 'f32[k, 3]'}\n", "by [k] i64(key)\nby [3] (index(n) / i64(2))\n" },
    { SUM "let: {h: key * i32(k)}\nby: h / i32(k)\noutputs: {y: 'f32[k]'}\n", "by [k] i64((h / i32(k)))\n" },
    { SUM "by: clz(8)\noutputs: {y: 'f32[k]'}\n", "by [k] i64(clz(8))\n" }, /* of i32 */
    { SUM "by: 3\noutputs: {y: 'f32[k]'}\n", "by [k] i64(3)\n" },
    { SUM "by: key - key[-1]\noutputs: {y: 'f32[k]'}\n", "by [k] i64((key - key[-1]))\n" },
    { IN "reductions: {s: {map: x, operator: add}, many: {map: 1, operator: add}}\nby: key\n"
         "outputs: {mean: {type: 'f32[k]', value: s / f32(many)}, many: 'i32[k]'}\n",
      "value = (s / f32(many))\n" },
    { "kind: reduce\ninputs: {x: 'f32[n, f]', key: 'i32[n]'}\nmap: x\noperator: add\nover: n\nby: key\n"
      "outputs: {y: 'f32[k, f]'}\n",
      "over n\nby [k] i64(key)\n" },
    { "kind: reduce\ninputs: {x: 'i32[n]', start: 'i32[b]'}\n" MANY "by: at(start, x)\noutputs: {y: 'i32[k]'}\n",
      "input start: i32[b] read with at()" },
    /* what it cannot be */
    { "kind: reduce\ninputs: {x: 'f32[n]', c: 'i32[n]'}\nmap: x\noperator: first\nby: c\noutputs: {y: 'f32[k]'}\n",
      "the first element of a bin has the least index: map: i32(index(n)), operator: min" },
    { SUM "by: x\noutputs: {y: 'f32[k]'}\n", "an index is an integer, and this is f32" },
    { SUM "by: x > 0\noutputs: {y: 'f32[2]'}\n", "write i32(…)" },
    { SUM "by: []\noutputs: {y: 'f32[k]'}\n", "at least one index is needed" },
    { SUM "by: [key, key, key, key, key, key, key]\noutputs: {y: 'f32[k]'}\n", "at most 6 dimensions" },
    { SUM "by: {a: key}\noutputs: {y: 'f32[k]'}\n", "an index, or a list of indices" },
    { SUM "by: r\noutputs: {y: 'f32[k]'}\n", "'r'" },
    { BY "segments: {offsets: key}\noutputs: {y: 'f32[k]'}\n", "'segments' gives each its segment" },
    { BY "outputs: {y: f32}\n", "'y' has fewer dimensions than 'by' has indices" },
    { SUM "by: [key, key]\noutputs: {y: 'f32[k]'}\n", "'y' has fewer dimensions than 'by' has indices" },
    { BY "outputs: {y: 'f32[k]', z: 'f32[j]'}\n", "'z' has the shape [k] and not [j]" },
    { BY "outputs: {y: 'f32[k, n]'}\n", "'y' has the shape [k] and not [k, n]" },
    { BY "outputs: {y: 'f32[key]'}\n", "the dimension 'key' has the name of an input" },
    { "kind: reduce\ninputs: {x: 'f32[n, f]', key: 'i32[n]'}\nmap: x\noperator: add\nover: n\nby: key\n"
      "outputs: {y: 'f32[k]'}\n",
      "'y' has the shape [k, f] and not [k]" },
    { BY "outputs: {y: {type: 'f32[k]', value: x}}\n", "'x'" },
    { IN "map: x\n" OWN "b}\nby: key\noutputs: {y: 'f32[k]'}\n", "this operator does not commute" },
    { IN "map: x\n" OWN "a * b}\nby: key\noutputs: {y: 'f32[k]'}\n", "a bin may be empty" },
    { "kind: reduce\ninputs: {x: 'f32[n, m]', key: 'i32[n]', s: 'f32[m]'}\nover: n\nby: key\nmap: x\n"
      "operator: {state: f32, identity: 0, combine: a + b + s, commutative: true}\noutputs: {y: 'f32[k, m]'}\n",
      "an operator that reads an array" },
    { IN "map: x\ninit: 1\n" OWN "a * b}\nby: key\noutputs: {y: 'f32[k]'}\n",
      "not yet: with 'by', an operator without" },
    { BY "determinism: run\noutputs: {y: 'f32[k]'}\n", "not yet: the same bits on every run" },
    { "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\nbins: x\noutputs: {y: 'f32[k]'}\n",
      "accumulator: u32, by: x, outputs" },
    { "kind: histogram\ninputs: {x: 'f32[n]'}\n", "accumulator: u32, by: x, outputs" },
    { SUM "outputs: {y: 'f32[k]'}\n", "no input has a dimension 'k'" },
    /* scans */
    { SCAN "by: key\nbins: k\noutputs: {y: 'f32[m, n]'}\n", "size k\nspace [m, n] over n\nby [k] i64(key)\n" },
    { SCAN "by: [key]\nbins: 7\noutputs: {y: 'f32[m, n]'}\n", "by [7] i64(key)\n" },
    { SCAN "by: key\noutputs: {y: 'f32[m, k]'}\n", "output y: f32[m, k] per scan and bin\n  value = total\n" },
    { SCAN "by: key % i16(k)\noutputs: {y: 'f32[k, m]'}\n", "by [k] i64((key % i16(k)))\n" },
    { SCAN "by: key\nover: m\noutputs: {y: 'f32[n, 7]', z: {type: 'f32[7, n]', value: 2 * total}}\n",
      "by [7] i64(key)\n" },
    { SCAN "by: key\nover: [m, n]\noutputs: {y: 'f32[k]', z: 'f32[m, n]'}\n", "over m, n\nby [k] i64(key)\n" },
    { SCAN "by: key\nbins: k\noutputs: {y: 'f32[m, n]'}\n", "add, commutative\n  map: f32 = x\n  identity: f32 = 0" },
    { ROWS "operator: min\nby: key\nbins: k\noutputs: {y: 'f32[m, n]'}\n", "map: f32 = x\n  identity: f32 = inf" },
    { ROWS "operator: min\nby: key\noutputs: {y: 'f32[m, k]'}\n", "map.some: bool = true\n" },
    { ROWS "operator: last\nby: key\nbins: k\noutputs: {y: 'f32[m, n]'}\n", "identity.some: bool = false\n" },
    { "kind: scan\ninputs: {x: 'f32[m, n]', key: 'i16[m, n]'}\nmap: {a: x, b: x}\noperator: affine\nby: key\nbins: k\n"
      "mode: exclusive\noutputs: {y: {type: 'f32[m, n]', value: s.b}}\n", /* zero times NaN */
      "identity.some: bool = false\n" },
    { ROWS OWN "a * b}\nby: key\nbins: k\noutputs: {y: 'f32[m, n]'}\n",
      "combine: f32 = (if b.some then (if a.some then (a * b) else b) else a)\n" },
    { SCAN "by: key\noutputs: {y: 'f32[m, n]'}\n", "nothing says how many bins there are" },
    { SCAN "bins: k\noutputs: {y: 'f32[m, n]'}\n", "there is no 'by'" },
    { SCAN "by: key\nbins: k-1\noutputs: {y: 'f32[m, n]'}\n", "only an output may be smaller" },
    { SCAN "by: key\nbins: x\noutputs: {y: 'f32[m, n]'}\n", "'x' is a dimension already" },
    { SCAN "by: key\nbins: 0\noutputs: {y: 'f32[m, n]'}\n", "a positive decimal integer" },
    { SCAN "by: key\nbins: k\noutputs: {y: 'f32[m, j]'}\n", "one for the bins, which is the same everywhere" },
    { SCAN "by: key\noutputs: {y: 'f32[m]'}\n", "the shape of 'y' fits no output of a scan" },
    { SCAN "by: x\nbins: k\noutputs: {y: 'f32[m, n]'}\n", "an index is an integer, and this is f32" },
    { SCAN "by: []\nbins: k\noutputs: {y: 'f32[m, n]'}\n", "an index is needed" },
    { SCAN "by: [key, key]\nbins: k\noutputs: {y: 'f32[m, n]'}\n", "write i * m + j" },
    { SCAN "by: s\nbins: k\noutputs: {y: 'f32[m, n]'}\n", "'s'" },
    { SCAN "by: key\nbins: k\nsegments: {starts: key > 0}\noutputs: {y: 'f32[m, n]'}\n", "along irregular segments" },
    { SCAN "by: key\nbins: k\noutputs: {y: {type: 'f32[m, n]', where: x > 0, value: x}}\n",
      "not yet: 'where' in a scan with 'by'" },
    { ROWS OWN "a * b}\nby: key\noutputs: {y: 'f32[m, k]'}\n", "a bin may be empty" },
    { ROWS OWN "a * b}\nmode: exclusive\nby: key\nbins: k\noutputs: {y: 'f32[m, n]'}\n", "has no identity" },
    { SCAN "by: key\nbins: k\ndeterminism: device\noutputs: {y: 'f32[m, n]'}\n", "the same bits on every device" },
};

Test(by, says) { spec_rows(rows, sizeof rows / sizeof *rows); }

/* Integers have the same bits in any order. */
Test(by, keeps_promises_of_determinism_for_integers)
{
    SPEC_BEGIN(f);
    spec_build(&f, "kind: reduce\ninputs: {key: 'u8[n]'}\n" MANY
                   "by: key\ndeterminism: device\noutputs: {y: 'i32[256]'}\n");
    cr_expect(f.p, "%s", spec_text(&f));
    spec_end(&f);
}
