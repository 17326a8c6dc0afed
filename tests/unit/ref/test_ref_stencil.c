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

/* x lies at the places -2, 5, 1; what is beyond follows the boundary of the table, dimension by dimension. */
Test(ref_stencil, computed_places)
{
#define PLACES(mode)                                                                                                   \
    "kind: stencil\ninputs: {x: 'i32[n]', t: 'i32[k]'}\nboundary: {t: " mode "}\n"                                     \
    "outputs: {y: {type: 'i32[n]', value: 'at(t, x)'}}\n"
#define PLACES_ROW(mode, ...)                                                                                          \
    {                                                                                                                  \
        .name = mode, .spec = PLACES(mode), .size = { 3, 4 }, .input = { V(-2, 5, 1), V(10, 20, 30, 40) }, .output = { \
            V(__VA_ARGS__)                                                                                             \
        }                                                                                                              \
    }
    const struct row rows[] = {
        PLACES_ROW("clamp", 10, 40, 20),
        PLACES_ROW("wrap", 30, 20, 20),
        PLACES_ROW("reflect", 20, 30, 20),
        PLACES_ROW("mirror", 30, 20, 20),
        PLACES_ROW("{constant: 7}", 7, 7, 20),
        { .name = "a result is a place",
          .spec = "kind: reduce\ninputs: {x: 'i32[n]', t: 'i32[n]'}\nmap: {value: x, index: i32(index(n))}\n"
                  "operator: argmax\noutputs: {y: {type: i32, value: 'at(t, r.index)'}}\n",
          .size = { 3 },
          .input = { V(1, 9, 3), V(10, 20, 30) },
          .output = { V(20) } },
        { .name = "an empty table",
          .spec = PLACES("clamp"),
          .size = { 1, 0 },
          .input = { V(0), NOTHING },
          .error = "at() reads an array and needs that k is at least 1" },
        { .name = "values of the step before",
          .spec = "kind: stencil\ninputs: {x: 'i32[n]', to: 'i32[n]'}\niterate: {steps: 2, feedback: {x: y}}\n"
                  "outputs: {y: {type: 'i32[n]', value: 'x + at(x, to)'}}\n",
          .size = { 3 },
          .input = { V(1, 2, 4), V(1, 2, 0) },
          .output = { V(9, 11, 8) } },
        { .name = "two dimensions",
          .spec = "kind: stencil\ninputs: {x: 'u8[n]', t: 'i32[2, 3]'}\nboundary: {t: wrap}\n"
                  "outputs: {y: {type: 'i32[n]', value: 'at(t, x, index(n))'}}\n",
          .size = { 4 },
          .input = { V(1, 0, 3, 2), V(1, 2, 3, 4, 5, 6) },
          .output = { V(4, 2, 6, 1) } },
    };
    RUN(rows);
}

/* f is the running dimension: 2 points, 3 terms. */
Test(ref_stencil, sums)
{
#define SUMS(type, value)                                                                                              \
    "kind: map\ninputs: {x: 'i32[n, f]', y: 'i32[n]'}\nboundary: {x: {f: wrap}}\n"                                     \
    "outputs: {o: {type: '" type "[n]', value: '" value "'}}\n"
#define SUMS_ROW(type, expr, ...)                                                                                      \
    {                                                                                                                  \
        .name = expr, .spec = SUMS(type, expr), .size = { 2, 3 }, .input = { V(1, -2, 4, 0, 7, 3), V(10, 20) },        \
        .output = {                                                                                                    \
            V(__VA_ARGS__)                                                                                             \
        }                                                                                                              \
    }
    const struct row rows[] = {
        SUMS_ROW("i32", "sum(f, x)", 3, 10),
        SUMS_ROW("i32", "y - product(f, x + 1)", 20, -12),
        SUMS_ROW("i32", "least(f, x) + greatest(f, x * y)", 38, 140),
        SUMS_ROW("bool", "all(f, x < 5)", 1, 0),
        SUMS_ROW("bool", "any(f, x == 0)", 0, 1),
        SUMS_ROW("i32", "sum(f, x * i32(index(f)))", 6, 13),
        SUMS_ROW("i32", "sum(f, x[0, 1] * i32(index(f)))", 6, 3),
        { .name = "nothing to sum",
          .spec = "kind: map\ninputs: {x: 'f32[n, f]'}\noutputs:\n  a: {type: 'f32[n]', value: 'sum(f, x)'}\n"
                  "  b: {type: 'f32[n]', value: 'least(f, x)'}\n  c: {type: 'bool[n]', value: 'all(f, x > 0)'}\n",
          .size = { 1, 0 },
          .output = { V(0), V(INFINITY), V(1) } },
        { .name = "a sum in a sum",
          .spec = "kind: map\ninputs: {a: 'i32[n, f]', b: 'i32[f, g]'}\n"
                  "outputs: {o: {type: 'i32[n]', value: 'sum(f, a * sum(g, b) + greatest(g, a * b))'}}\n",
          .size = { 1, 2, 2 },
          .input = { V(3, 5), V(1, 2, 10, 20) },
          .output = { V(9 + 150 + 6 + 100) } },
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
        { .name = "gather the largest and its row, the first of equal ones",
          .size = { 4, 3 },
          .input = { V(3, 1, 3, 2), V(0, 1, 2) },
          .output = { V(3, 3, 3, 2), V(0, 1, 0, 0), V(14, 12, 14, 12) },
          .spec =
              "kind: stencil\ninputs: {x: 'i32[n]', off: 'i32[p]'}\nboundary: clamp\n"
              "operators: {both: {state: {s: i32, t: i32}, identity: {s: 0, t: 0}, combine: {s: a.s + b.s, t: a.t + "
              "b.t}}}\n"
              "let: {g: 'gather(x, off, k, argmax, k, i32(index(p)))', h: 'gather(x, off, k, both, k, k + 1)'}\n"
              "outputs:\n  y: {type: 'i32[n]', value: g.value}\n  i: {type: 'i32[n]', value: g.index}\n"
              "  s: {type: 'i32[n]', value: h.s + h.t - 3}\n" },
        { .name = "gather states of no rows",
          .size = { 2, 0 },
          .input = { V(12, 10), NOTHING },
          .output = { V(-7, -7) },
          .spec = "kind: stencil\ninputs: {x: 'i32[n]', off: 'i32[p]'}\n"
                  "operators: {ours: {state: i32, identity: -7, combine: a + b}}\n"
                  "outputs: {y: {type: 'i32[n]', value: 'gather(x, off, k, ours, k)'}}\n" },
        { .name = "three dimensions",
          .size = { 2, 1, 2 },
          .input = { V(1, 2, 3, 4) },
          .output = { V(4, 4, 4, 4) },
          .spec = "kind: stencil\ninputs: {x: 'i32[d, m, n]'}\nboundary: clamp\noutputs: {y: {type: 'i32[d, m, n]', "
                  "value: 'x[1, 0, 1]'}}\n" },
    };
    RUN(rows);
}
