/* SPDX-License-Identifier: Apache-2.0 */
/* test_by.c - what `by` becomes, and what is said where it is misused. */
#include "support/spec_fixture.h"

#define IN   "kind: reduce\ninputs: {x: 'f32[n]', key: 'i32[n]'}\n"
#define SUM  IN "map: x\noperator: add\n"
#define BY   SUM "by: key\n"
#define MANY "map: 1\noperator: add\n"
#define OWN  "operator: {state: f32, combine: "

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
    { IN "map: x\ninit: 1\n" OWN "a * b}\nby: key\noutputs: {y: 'f32[k]'}\n",
      "not yet: with 'by', an operator without" },
    { IN "map: x\noperator: welford\nby: key\noutputs: {y: 'f32[k]'}\n", "this one has 12" },
    { BY "determinism: run\noutputs: {y: 'f32[k]'}\n", "not yet: the same bits on every run" },
    { "kind: scan\ninputs: {x: 'f32[n]'}\noperator: add\nby: x\noutputs: {y: 'f32[n]'}\n", "'by'" },
    { "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\nbins: x\noutputs: {y: 'f32[k]'}\n", "by: x, and outputs" },
    { "kind: histogram\ninputs: {x: 'f32[n]'}\n", "by: x, and outputs" },
    { SUM "outputs: {y: 'f32[k]'}\n", "no input has a dimension 'k'" },
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
