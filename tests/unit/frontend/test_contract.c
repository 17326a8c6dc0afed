/* SPDX-License-Identifier: Apache-2.0 */
/* test_contract.c - what `contract` makes of products and sums, and what is said where it is misused. */
#include "support/spec_fixture.h"

#define MAP(t)    "contract: true\nkind: map\ninputs: {x: '" t "[n]', y: '" t "[n]', z: '" t "[n]'}\n"
#define OUT(t, e) "outputs: {o: {type: '" t "[n]', value: " e "}}\n"
#define F32(e)    MAP("f32") OUT("f32", e)
#define SUM       "contract: true\nkind: reduce\ninputs: {x: 'f32[n]', y: 'f32[n]'}\noutputs: {o: f32}\n"
#define DOT       SUM "map: x * y\n"

static const struct spec_row rows[] = {
    { F32("x * y + z"), "  value = fma(x, y, z)\n" },
    { F32("z + x * y"), "  value = fma(x, y, z)\n" },
    { F32("x * y - z"), "  value = fma(x, y, (-z))\n" },
    { F32("z - x * y"), "  value = fma((-x), y, z)\n" },
    { F32("z - 2 * y"), "  value = fma(-2.0, y, z)\n" },
    { F32("x * y - 2"), "  value = fma(x, y, -2.0)\n" },
    { F32("x * y + y * z"), "  value = fma(y, z, (x * y))\n" },
    { F32("x * y + y * z + z * x"), "  value = fma(z, x, fma(y, z, (x * y)))\n" },
    { F32("(x + y) * z"), "  value = ((x + y) * z)\n" },
    { F32("x / y + z"), "  value = ((x / y) + z)\n" },
    { MAP("f32") "let: {p: x * y}\n" OUT("f32", "p + z"), "  value = (p + z)\n" }, /* a let is another expression */
    { MAP("f16") OUT("f32", "f32(x * y) + f32(z)"), "  value = (f32((x * y)) + f32(z))\n" },
    { F32("f32(x * y) + z"), "  value = (f32((x * y)) + z)\n" }, /* a conversion rounds, even to the same type */
    { F32("f32(x) * y + z"), "  value = fma(x, y, z)\n" },
    { MAP("bf16") OUT("bf16", "x * y + z"), "  value = fma(x, y, z)\n" },
    { MAP("i32") OUT("i32", "x * y + z"), "  value = ((x * y) + z)\n" },
    { F32("x * y + z"), "determinism any, contract\n" },
    { "contract: false\nkind: map\ninputs: {x: 'f32[n]'}\n" OUT("f32", "x * x + x"), "  value = ((x * x) + x)\n" },
    /* operators have no fixed order: their sums stay sums */
    { DOT "operator: add\n",
      "  map: f32 = (x * y)\n  identity: f32 = 0.0\n  pad: f32 = 0.0\n  combine: f32 = (a + b)\n" },
    { DOT "operator: {state: f32, combine: a * b + a}\n", "  combine: f32 = ((a * b) + a)\n" },
    { DOT "operator: max\ndeterminism: device\n", "determinism device, contract\n" },
    { SUM "map: x\ndeterminism: run\noperator: add\n", "determinism run, contract\n" }, /* there are no products */
    { SUM "map: f32(x * y)\ndeterminism: device\noperator: add\n", "  map: f32 = f32((x * y))\n" },
    { SUM "map: x\noperator: {state: f32, combine: f32(a * b) + a}\n", "  combine: f32 = (f32((a * b)) + a)\n" },
    /* what it cannot be */
    { SUM "map: x\ndeterminism: run\noperator: {state: f32, combine: a * b + a}\n",
      "operator: {state: f32, combine: a * b + a}" },
    { SUM "map: x\ndeterminism: run\noperator: {state: f32, combine: a * b + a}\n", "a converted product is rounded" },
    { "contract: yes\nkind: map\ninputs: {x: 'f32[n]'}\n" OUT("f32", "x * x + x"), "'yes' is not a truth value" },
    { DOT "operator: add\ndeterminism: run\n",
      "which products of 'r' are fused; `determinism` asks for the same bits" },
};

Test(contract, says) { spec_rows(rows, sizeof rows / sizeof *rows); }
