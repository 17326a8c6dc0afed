/* SPDX-License-Identifier: Apache-2.0 */
/* test_ref_stencil.c - the oracle's boundaries and stencils against results worked out by hand, row by row. */
#include "support/ref_fixture.h"

Test(ref_stencil, boundary)
{
#define EDGE(mode, offset)                                                                                             \
    "kind: stencil\ninputs: {x: 'i32[n]'}\nboundary: " mode "\noutputs: {y: {type: 'i32[n]', value: 'x[" offset "]'}}" \
    "\n"
    const struct row rows[] = {
        { .name = "clamp",
          .spec = EDGE("clamp", "-2"),
          .size = { 4 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(1, 1, 1, 2) } },
        { .name = "wrap",
          .spec = EDGE("wrap", "-2"),
          .size = { 4 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(3, 4, 1, 2) } },
        { .name = "reflect",
          .spec = EDGE("reflect", "-2"),
          .size = { 4 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(2, 1, 1, 2) } },
        { .name = "mirror",
          .spec = EDGE("mirror", "-2"),
          .size = { 4 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(3, 2, 1, 2) } },
        { .name = "constant",
          .spec = EDGE("{constant: 9}", "2"),
          .size = { 4 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(3, 4, 9, 9) } },
        { .name = "interior",
          .spec = EDGE("interior", "1"),
          .size = { 3 },
          .input = { V(1, 2, 3) },
          .output = { V(2, 3, 0) } },
        { .name = "wrap, one point", .spec = EDGE("wrap", "-3"), .size = { 1 }, .input = { V(7) }, .output = { V(7) } },
        { .name = "mirror, one point",
          .spec = EDGE("mirror", "5"),
          .size = { 1 },
          .input = { V(7) },
          .output = { V(7) } },
        { .name = "mirror, two points",
          .spec = EDGE("mirror", "5"),
          .size = { 2 },
          .input = { V(7, 8) },
          .output = { V(8, 7) } },
        { .name = "reflect, halo beyond twice the extent",
          .spec = EDGE("reflect", "5"),
          .size = { 2 },
          .input = { V(7, 8) },
          .output = { V(8, 8) } },
        { .name = "per dimension",
          .size = { 2, 2 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(2, 1, 2, 1) },
          .spec = "kind: stencil\ninputs: {x: 'i32[m, n]'}\nboundary: {x: {m: clamp, n: wrap}}\n"
                  "outputs: {y: {type: 'i32[m, n]', value: 'x[-1, 1]'}}\n" },
        { .name = "outside in any constant dimension",
          .size = { 2, 2 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(-1, -1, 2, 1) },
          .spec = "kind: stencil\ninputs: {x: 'i32[m, n]'}\nboundary: {x: {m: {constant: -1}, n: wrap}}\n"
                  "outputs: {y: {type: 'i32[m, n]', value: 'x[-1, 1]'}}\n" },
    };
    RUN(rows);
}

Test(ref_stencil, stencil)
{
#define HEAT(steps, boundary)                                                                                          \
    "kind: stencil\ninputs: {u: 'i32[n]'}\nparams: {t: i32}\nboundary: " boundary "\n"                                 \
    "outputs: {v: {type: 'i32[n]', value: 'u[-1] + u[1]'}}\niterate: {steps: " steps ", feedback: {u: v}}\n"
    const struct row rows[] = {
        { .name = "one step",
          .spec = HEAT("1", "clamp"),
          .size = { 3 },
          .input = { V(1, 2, 3) },
          .output = { V(3, 4, 5) } },
        { .name = "two steps",
          .spec = HEAT("2", "clamp"),
          .size = { 3 },
          .input = { V(1, 2, 3) },
          .output = { V(7, 8, 9) } },
        { .name = "three steps of a param",
          .spec = HEAT("t", "clamp"),
          .size = { 3 },
          .param = { 3 },
          .input = { V(1, 2, 3) },
          .output = { V(15, 16, 17) } },
        { .name = "no step",
          .spec = HEAT("t", "clamp"),
          .size = { 3 },
          .param = { 0 },
          .input = { V(1, 2, 3) },
          .output = { V(1, 2, 3) } },
        { .name = "negative steps",
          .spec = HEAT("t", "clamp"),
          .size = { 3 },
          .param = { -1 },
          .input = { V(1, 2, 3) },
          .error = "negative" },
        { .name = "interior keeps what is fed back",
          .spec = HEAT("2", "interior"),
          .size = { 4 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(1, 7, 8, 4) } },
        { .name = "no points", .spec = HEAT("2", "clamp"), .input = { NOTHING }, .output = { NOTHING } },
        { .name = "two pairs that swap",
          .size = { 2 },
          .input = { V(1, 2), V(10, 20) },
          .output = { V(10, 20), V(1, 2) },
          .spec = "kind: stencil\ninputs: {p: 'i32[n]', q: 'i32[n]'}\n"
                  "outputs: {r1: {type: 'i32[n]', value: q}, r2: {type: 'i32[n]', value: p}}\niterate: {steps: 3, "
                  "feedback: {p: r1, q: r2}}\n" },
        { .name = "residual of the last step",
          .size = { 3 },
          .input = { V(1, 2, 3) },
          .output = { V(7, 8, 9), V(12) },
          .spec = "kind: stencil\ninputs: {u: 'i32[n]'}\nboundary: clamp\nreductions: {d: {map: abs(v - u), operator: "
                  "add}}\n"
                  "outputs: {v: {type: 'i32[n]', value: 'u[-1] + u[1]'}, d: i32}\niterate: {steps: 2, feedback: {u: "
                  "v}}\n" },
        { .name = "gather",
          .size = { 4, 2 },
          .input = { V(1, 2, 3, 4), V(-1, 2) },
          .output = { V(4, 5, 6, 7) },
          .spec = "kind: stencil\ninputs: {x: 'i32[n]', off: 'i32[p, 1]'}\nboundary: clamp\n"
                  "outputs: {y: {type: 'i32[n]', value: 'gather(x, off, k, add, k)'}}\n" },
        { .name = "gather the largest",
          .size = { 3, 2 },
          .input = { V(3, 1, 2), V(0, 1) },
          .output = { V(3, 2, 2) },
          .spec = "kind: stencil\ninputs: {x: 'i32[n]', off: 'i32[p, 1]'}\nboundary: clamp\n"
                  "outputs: {y: {type: 'i32[n]', value: 'gather(x, off, k, max, k)'}}\n" },
        { .name = "gather with words of the language",
          .size = { 3, 2 },
          .input = { V(12, 10, 6), V(0, 1) },
          .output = { V(8, 2, 6), V(14, 14, 6), V(0, 0, 1) },
          .spec = "kind: stencil\ninputs: {x: 'i32[n]', off: 'i32[p]'}\nboundary: clamp\noutputs:\n"
                  "  all: {type: 'i32[n]', value: 'gather(x, off, k, and, k)'}\n"
                  "  any: {type: 'i32[n]', value: 'gather(x, off, k, or, k)'}\n"
                  "  below: {type: 'bool[n]', value: 'gather(x, off, k, and, k < 10)'}\n" },
        { .name = "gather of no rows",
          .size = { 2, 0 },
          .input = { V(12, 10), NOTHING },
          .output = { V(-1, -1), V(0, 0), V(1, 1) },
          .spec = "kind: stencil\ninputs: {x: 'i32[n]', off: 'i32[p]'}\noutputs:\n"
                  "  all: {type: 'i32[n]', value: 'gather(x, off, k, and, k)'}\n"
                  "  any: {type: 'i32[n]', value: 'gather(x, off, k, or, k)'}\n"
                  "  none: {type: 'bool[n]', value: 'gather(x, off, k, and, k > 10)'}\n" },
        { .name = "three dimensions",
          .size = { 2, 1, 2 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(4, 4, 4, 4) },
          .spec = "kind: stencil\ninputs: {x: 'i32[d, m, n]'}\nboundary: clamp\noutputs: {y: {type: 'i32[d, m, n]', "
                  "value: 'x[1, 0, 1]'}}\n" },
    };
    RUN(rows);
}
