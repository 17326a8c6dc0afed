/* SPDX-License-Identifier: Apache-2.0 */
/* test_stage_fusion.c - which stages become part of others, what these are then, and why the rest does not. */

#include "support/spec_fixture.h"

#define X    "inputs: {x: 'f32[n]', v: 'f32[n]'}\nstages:\n"
#define ROWS "inputs: {x: 'f32[m, n]', c: 'f32[n]', w: 'f32[m]', t: 'f32[n, m]'}\nstages:\n"
#define NORM "  a: {kind: reduce, over: n, map: x, operator: add, outputs: {s: {type: 'i16[m]', value: i16(r + 1)}}}\n"
#define HALF "  b: {kind: map, outputs: {z: {type: 'f32[m]', value: f32(s) / w}}}\n"
#define SQUARE(stage, to, from)                                                                                        \
    "  " stage ": {kind: map, outputs: {" to ": {type: 'f32[m]', value: " from " * " from " + w}}}\n"
#define DOUBLE "  a: {kind: map, outputs: {y: {type: 'f32[n]', value: x * 2}}}\n"
#define ADD    "  b: {kind: map, outputs: {z: {type: 'f32[n]', value: y + v}}}\n"
#define SUM    "  b: {kind: reduce, map: y, operator: add, outputs: {s: f32}}\n"
#define GRID   "  a: {kind: map, outputs: {y: {type: 'f32[m, n]', value: x * c}}}\n"

struct row {
    const char *text, *says;
};
static const struct row rows[] = {
    /* maps, reductions, scans, stencils read them */
    { X DOUBLE ADD "outputs: [z]\n", "# stage b\n# reads: x v\n# writes: z\n# with: a\n" },
    { X DOUBLE ADD "outputs: [z]\n", "let y: f32 = (x * 2.0)\noutput z: f32[n] per element\n  value = (y + v)" },
    { X DOUBLE SUM "outputs: [s]\n", "map: f32 = y" },
    { X DOUBLE "  b: {kind: reduce, operator: add, outputs: {s: f32}, inputs: [y]}\noutputs: [s]\n", "map: f32 = y" },
    { X DOUBLE "  b: {kind: reduce, inputs: [y], reductions: {s: {operator: add}, q: {operator: max}}, "
               "outputs: {s: f32, q: f32}}\noutputs: [s, q]\n",
      "reduction q: max, commutative, exact\n  map: f32 = y" },
    { X DOUBLE "  b: {kind: scan, map: y, operator: add, outputs: {s: 'f32[n]'}}\noutputs: [s]\n", "# with: a" },
    { X DOUBLE "  b: {kind: stencil, outputs: {z: {type: 'f32[n]', value: 'v[1] - y'}}}\noutputs: [z]\n", "# with: a" },
    { X DOUBLE ADD "  c: {kind: map, outputs: {w: {type: 'f32[n]', value: z * z}}}\noutputs: [w]\n",
      "let y: f32 = (x * 2.0)\nlet z: f32 = (y + v)" },
    { X DOUBLE ADD "  c: {kind: map, outputs: {w: {type: 'f32[n]', value: z * z}}}\noutputs: [w]\n", "# with: a b" },
    { X DOUBLE ADD "  c: {kind: map, outputs: {w: {type: 'f32[n]', value: z * y}}}\noutputs: [w]\n", "# with: a b" },
    { X "  a: {kind: map, outputs: {y: {type: 'f32[n]', value: x}, q: {type: 'f32[n]', value: v}}}\n"
        "  b: {kind: map, outputs: {z: {type: 'f32[n]', value: y / q}}}\noutputs: [z]\n",
      "value = (y / q)" },
    { ROWS GRID "  b: {kind: reduce, over: n, map: y, operator: max, outputs: {s: 'f32[m]'}}\noutputs: [s]\n",
      "input c: f32[n]\nlet y: f32 = (x * c)" },
    /* types: what would have been stored */
    { X "  a: {kind: map, outputs: {y: {type: 'u8[n]', value: 200}}, inputs: [x]}\n"
        "  b: {kind: map, outputs: {z: {type: 'u8[n]', value: y + y}}}\noutputs: [z]\n",
      "let y: u8 = u8(200)" },
    { X "  a: {kind: map, outputs: {y: {type: 'u8[n]', value: 200}}, inputs: [x]}\n"
        "  b: {kind: map, outputs: {z: {type: 'i32[n]', value: i32(y + y)}}}\noutputs: [z]\n",
      "let y: u8 = u8(200)\noutput z: i32[n] per element\n  value = i32((y + y))" },
    { X "  a: {kind: map, outputs: {y: {type: 'f64[n]', value: 1 / 3}}, inputs: [x]}\n"
        "  b: {kind: reduce, map: y, operator: add, outputs: {s: f64}}\noutputs: [s]\n",
      "let y: f64 = (f64(1.0) / f64(3.0))" },
    { X "  a: {kind: map, outputs: {y: {type: 'i8[n]', value: if x > 0 then 1 else -1}}}\n"
        "  b: {kind: reduce, map: y, operator: add, outputs: {s: i32}}\noutputs: [s]\n",
      "# with: a\n" },
    { X "  a: {kind: map, outputs: {y: {type: 'f16[n]', value: f16(x)}}}\n"
        "  b: {kind: map, outputs: {z: {type: 'f32[n]', value: f32(y) + v}}}\noutputs: [z]\n",
      "let y: f16 = f16(x)" },
    /* lets, params and facts of both */
    { "params: {k: f32}\nlet: {d: x * k}\n" X
      "  a: {kind: map, let: {e: d + 1}, outputs: {y: {type: 'f32[n]', value: e}}}\n"
      "  b: {kind: map, let: {g: y * 3}, outputs: {z: {type: 'f32[n]', value: d + g + k}}}\noutputs: [z]\n",
      "let d: f32 = (x * k)\nlet e: f32 = (d + 1.0)\nlet y: f32 = e\nlet g: f32 = (y * 3.0)" },
    { "assume: {y: {aligned: 16}, x: {aligned: 8}}\n" X DOUBLE ADD "outputs: [z]\n", "# with: a\n" },
    /* maps of results, in the reduction that has them */
    { ROWS NORM HALF "outputs: [s, z]\n", "# writes: s z\n# with: b\n" },
    { ROWS NORM HALF "outputs: [s, z]\n", "output z: f32[m] per segment\n  value = (f32(i16((r + 1.0))) / w)" },
    { ROWS NORM HALF "  d: {kind: map, outputs: {q: {type: 'f32[m]', value: z * z}}}\noutputs: [q, z]\n",
      "# writes: s z q\n# with: b d\n" },
    { ROWS "  a: {kind: reduce, over: n, map: x, operator: add, outputs: {p: 'f32[m]'}}\n" SQUARE("b", "q", "p")
          SQUARE("c", "y", "q") SQUARE("d", "z", "y") SQUARE("e", "v", "z") SQUARE("g", "u", "v") SQUARE("h", "o", "u")
              SQUARE("k", "j", "o") "outputs: [p, q, y, z, v, u, o, j]\n",
      "# with: b c d e g h\n" },
    { ROWS NORM "  d: {kind: map, outputs: {q: {type: 'f32[m, n]', value: x * f32(s)}}}\n" HALF "outputs: [z, q]\n",
      "# writes: s z\n# with: b\n" },
    { ROWS NORM "  d: {kind: map, outputs: {q: {type: 'f32[m, n]', value: x * w}}}\n" HALF
                "outputs: [z, q]\niterate: {steps: 2, feedback: {w: z}}\n",
      "# apart: b, 'z' is used outside of the stages" },
    { ROWS NORM HALF "outputs: [z]\niterate: {steps: 2, feedback: {w: z}}\n", "# with: b\n" },
    { ROWS NORM "  b: {kind: map, outputs: {z: {type: 'f32[m]', value: f32(s) + f32(index(m))}}}\noutputs: [z]\n",
      "# with: b\n" },
    { ROWS "  a: {kind: reduce, over: m, map: x, operator: add, outputs: {s: 'f32[n]'}}\n"
           "  b: {kind: map, outputs: {z: {type: 'f32[n]', value: s + f32(index(n))}}}\noutputs: [z]\n",
      "# stage b\n" },
    { ROWS NORM "  b: {kind: map, fuse: false, outputs: {z: {type: 'f32[m]', value: f32(s)}}}\noutputs: [z]\n",
      "# apart: b, `fuse: false`\n" },
    { ROWS "  a: {kind: reduce, over: n, map: x, operator: add, fuse: false, outputs: {s: 'f32[m]'}}\n"
           "  b: {kind: map, outputs: {z: {type: 'f32[m]', value: s + w}}}\noutputs: [z]\n",
      "# stage b\n" },
    { ROWS "  a: {kind: reduce, over: n, map: x, operator: add, outputs: {s: 'f32[m]'}}\n"
           "  b: {kind: map, outputs: {z: {type: 'f32[m]', value: 's + at(s, 0)'}}}\noutputs: [z]\n",
      "# stage b\n" },
    { ROWS "  a: {kind: reduce, over: n, inputs: [x], operator: add, outputs: {s: 'f32[m]'}}\n"
           "  b: {kind: map, outputs: {z: {type: 'f32[m]', value: s + w}}}\noutputs: [z]\n",
      "output z: f32[m] per segment\n  value = (r + w)" },
    { "inputs: {x: 'f32[m, n]', r: 'f32[m]'}\nstages:\n"
      "  a: {kind: reduce, over: n, map: x, operator: add, outputs: {s: 'f32[m]'}}\n"
      "  b: {kind: map, outputs: {z: {type: 'f32[m]', value: s + r}}}\noutputs: [z]\n",
      "# stage b\n" },
    /* why not: the map */
    { X DOUBLE ADD "outputs: [y, z]\n", "# apart: a, 'y' is used outside of the stages" },
    { X DOUBLE ADD "outputs: [z]\niterate: {steps: 2, feedback: {x: y}}\n", "# apart: a, 'y' is used outside" },
    { X DOUBLE ADD "outputs: [z]\nfuse: false\n", "# apart: a, `fuse: false`\n" },
    { X "  a: {kind: map, fuse: false, outputs: {y: {type: 'f32[n]', value: x}}}\n" ADD "outputs: [z]\n",
      "# apart: a, `fuse: false`\n" },
    { X "  a: {kind: map, strategy: {name: stencil.global}, outputs: {y: {type: 'f32[n]', value: x}}}\n" ADD
        "outputs: [z]\n",
      "# apart: a, its strategy is given" },
    { X "  a: {kind: map, outputs: {y: {type: {re: f32, im: f32}, shape: [n], value: {re: x, im: v}}}}\n"
        "  b: {kind: map, outputs: {z: {type: 'f32[n]', value: y.re}}}\noutputs: [z]\n",
      "# apart: a, 'y' has fields" },
    { X "  a: {kind: stencil, outputs: {y: {type: 'f32[n]', value: 'x[1]'}}}\n" ADD "outputs: [z]\n",
      "# apart: a, it reads neighbours of 'x'" },
    { ROWS "  a: {kind: map, outputs: {y: {type: 'f32[m]', value: 'sum(n, x)'}}}\n"
           "  b: {kind: map, outputs: {z: {type: 'f32[m]', value: y}}}\noutputs: [z]\n",
      "# apart: a, it has sums" },
    { ROWS "  a: {kind: map, outputs: {y: {type: 'f32[n, m]', value: x}}}\n"
           "  b: {kind: reduce, map: y, operator: add, outputs: {s: f32}}\noutputs: [s]\n",
      "# apart: a, 'y' has another shape than" },
    { ROWS "  a: {kind: map, outputs: {y: {type: 'f32[m, n]', value: x + t}}}\n"
           "  b: {kind: reduce, map: y, operator: add, outputs: {s: f32}}\noutputs: [s]\n",
      "# apart: a, it reads 't' in another order" },
    { X DOUBLE ADD "  c: {kind: map, outputs: {w: {type: 'f32[n]', value: y}}}\noutputs: [z, w]\n",
      "# apart: a, 'b' and 'c' read it" },
    { X DOUBLE "  b: {kind: map, outputs: {z: {type: 'f32[n]', value: x}}}\noutputs: [z]\n",
      "# apart: a, nothing reads it" },
    /* why not: the reader */
    { X DOUBLE "  b: {kind: map, fuse: false, outputs: {z: {type: 'f32[n]', value: y}}}\noutputs: [z]\n",
      "# apart: a, `fuse: false` of 'b'" },
    { X DOUBLE
      "  b: {kind: map, strategy: {name: stencil.global}, outputs: {z: {type: 'f32[n]', value: y}}}\noutputs: [z]\n",
      "# apart: a, the strategy of 'b' is given" },
    { X DOUBLE "  b: {kind: stencil, outputs: {z: {type: 'f32[n]', value: 'y[-1] + y'}}}\noutputs: [z]\n",
      "# apart: a, 'b' reads neighbours of 'y'" },
    { X DOUBLE "  b: {kind: map, outputs: {z: {type: 'f32[n]', value: 'y + at(y, 0)'}}}\noutputs: [z]\n",
      "# apart: a, 'b' does not read 'y' element by element" },
    { X "  a: {kind: map, outputs: {y: {type: 'i32[n]', value: i32(x)}}}\n"
        "  b: {kind: reduce, segments: {offsets: y}, map: v, operator: add, outputs: {s: 'f32[n-1]'}}\noutputs: [s]\n",
      "# apart: a, 'b' does not read 'y' element by element" },
    { ROWS "  a: {kind: map, outputs: {y: {type: 'f32[n]', value: c * 2}}}\n"
           "  b: {kind: map, outputs: {z: {type: 'f32[m, n]', value: x + y}}}\noutputs: [z]\n",
      "# apart: a, 'b' reads elements of 'y' more than once" },
    { ROWS GRID
      "  b: {kind: reduce, inputs: [t], map: y * t, operator: add, space: [n, m], outputs: {s: f32}}\noutputs: [s]\n",
      "# apart: a, 'b' reads 'y' in another order" },
    { X DOUBLE "  b: {kind: map, iterate: {steps: 3, feedback: {v: z}}, "
               "outputs: {z: {type: 'f32[n]', value: y + v}}}\noutputs: [z]\n",
      "# apart: a, 'b' reads it in every step of its own" },
    { X "  a: {kind: map, outputs: {y: {type: 'f32[n]', value: x + v}}}\n"
        "  b: {kind: scan, map: y, operator: add, outputs: {s: 'f32[n]'}}\noutputs: [s]\n",
      "# apart: a, 'b' may take several passes, and each would read more" },
    { X "  a: {kind: map, outputs: {y: {type: 'f32[n]', value: exp(x)}}}\n"
        "  b: {kind: reduce, map: y, operator: add, outputs: {p: {type: 'f32[n]', value: y / r}}}\noutputs: [p]\n",
      "# apart: a, 'b' may take several passes, and each would compute it anew" },
    { ROWS GRID "  b: {kind: reduce, map: y, operator: max, outputs: {s: f32}}\noutputs: [s]\n",
      "# apart: a, 'b' goes over 'y' as one row, and would have to compute indices" },
    { ROWS "  a: {kind: map, outputs: {y: {type: 'f32[m, n]', value: x + f32(index(n))}}}\n"
           "  b: {kind: reduce, map: y, operator: max, outputs: {s: f32}}\noutputs: [s]\n",
      "# apart: a, 'b' goes over 'y' as one row" },
    { ROWS GRID "  b: {kind: reduce, map: y - c, operator: max, outputs: {s: f32}}\noutputs: [s]\n", "# with: a\n" },
    { X "  a: {kind: map, outputs: {y: {type: 'i8[n]', value: i8(x)}}}\n"
        "  k: {kind: map, outputs: {w: {type: 'f32[n]', value: v}}}\n"
        "  b: {kind: map, outputs: {z: {type: 'i8[n]', value: y + i8(w)}}}\n"
        "outputs: [z, w]\niterate: {steps: 2, feedback: {x: w}}\n",
      "# apart: a, 'x' is overwritten before 'b'" },
    /* … and where the new values take what the map gives back */
    { X DOUBLE ADD "outputs: [z]\niterate: {steps: 2, feedback: {x: z}}\n",
      "# feedback: z -> x, in two memories\n# apart: b" },
    { X DOUBLE ADD "outputs: [z]\nfuse: false\niterate: {steps: 2, feedback: {x: z}}\n",
      "# feedback: z -> x\n# apart" },
    /* a gather takes a map of what it reads at the element; its operator may need a param */
    { "inputs: {x: 'f32[n]', off: 'i32[p]'}\nparams: {s: f32}\nstages:\n"
      "  a: {kind: map, outputs: {y: {type: 'f32[n]', value: 2 * x}}}\n"
      "  b: {kind: map, outputs: {z: {type: 'f32[n]', value: 'gather(x, off, k, o, k) * y'}}}\noutputs: [z]\n"
      "operators: {o: {state: f32, identity: s, combine: 'a + b'}}\n",
      "operator o: user\n  identity: f32 = s\n  combine: f32 = (a + b)\nlet y: f32" },
    /* names */
    { X "  a: {kind: map, let: {e: x + 1}, outputs: {y: {type: 'f32[n]', value: e}}}\n"
        "  b: {kind: map, let: {e: v + 1}, outputs: {z: {type: 'f32[n]', value: e + y}}}\noutputs: [z]\n",
      "# apart: a, 'b' has another 'e'" },
    { X "  a: {kind: map, let: {v: x + 1}, outputs: {y: {type: 'f32[n]', value: v}}}\n"
        "  b: {kind: map, inputs: [v], outputs: {z: {type: 'f32[n]', value: y * v}}}\noutputs: [z]\n",
      "# apart: a, in one stage with 'b', names or dimensions would mean something else" },
    { X "  a: {kind: map, outputs: {y: {type: 'f32[n]', value: 'at(x, 2 * index(n)) + v'}}}\n"
        "  b: {kind: map, boundary: wrap, outputs: {z: {type: 'f32[n]', value: y + v}}}\noutputs: [z]\n",
      "# apart: a, in one stage with 'b', names or dimensions would mean something else" },
    { "inputs: {c: 'f32[n]', r: 'f32[m]'}\nstages:\n"
      "  a: {kind: map, space: [m, n], outputs: {y: {type: 'f32[m, n]', value: c * r}}}\n"
      "  b: {kind: reduce, over: n, map: y, operator: add, outputs: {s: 'f32[m]'}}\noutputs: [s]\n",
      "# apart: a, in one stage with 'b', names or dimensions would mean something else" },
};

/* reductions of what another stage writes */
#define GOES "  a: {kind: stencil, outputs: {y: {type: 'f32[n]', value: 'x[1] - x[-1]'}}}\n"
#define TOP  "  b: {kind: reduce, map: abs(y - x), operator: max, outputs: {top: f32}}\n"
static const struct row joined[] = {
    { X GOES TOP "outputs: [y, top]\n", "# stage a\n# reads: x\n# writes: y top\n# with: b\n" },
    { X GOES TOP "outputs: [y, top]\n", "reduction r: max, commutative, exact\n  map: f32 = abs((y - x))" },
    { X GOES "  b: {kind: reduce, inputs: [y], operator: add, outputs: {s: {type: f32, value: r / f32(n)}}}\noutputs: "
             "[y, s]\n",
      "map: f32 = y\n" },
    { X GOES "  b: {kind: reduce, reductions: {s: {map: y * v, operator: add}, q: {map: y, operator: max}}, "
             "outputs: {s: f32, q: f32}}\noutputs: [y, s, q]\n",
      "# with: b\n" },
    { X GOES TOP
      "  c: {kind: reduce, reductions: {l: {map: y, operator: min}}, outputs: {low: {type: f32, value: l}}}\n"
      "outputs: [y, top, low]\n",
      "# with: b c\n" },
    { X "  a: {kind: map, outputs: {y: {type: 'i8[n]', value: i8(x)}}}\n"
        "  b: {kind: reduce, map: y, operator: max, outputs: {top: i8}}\noutputs: [y, top]\n",
      "map: i8 = y\n" },
    { X GOES "  q: {kind: reduce, map: v, operator: max, outputs: {o: f32}}\n"
             "  b: {kind: reduce, map: y + o, operator: max, outputs: {top: f32}}\noutputs: [y, top]\n",
      "# apart: b, 'q' cannot reduce as it writes" },
    { X GOES "  b: {kind: reduce, map: y, operator: add, determinism: run, outputs: {s: f32}}\noutputs: [y, s]\n",
      "# apart: b, it needs an order of the elements" },
    { X GOES "  b: {kind: reduce, map: 'y[1]', operator: add, outputs: {s: f32}}\noutputs: [y, s]\n",
      "# apart: b, it reads 'y' at other places" },
    { X GOES "  b: {kind: reduce, fuse: false, map: y, operator: add, outputs: {s: f32}}\noutputs: [y, s]\n",
      "# apart: b, `fuse: false`" },
    { X GOES "  b: {kind: reduce, strategy: {name: reduce.block}, map: y, operator: add, outputs: {s: f32}}\noutputs: "
             "[y, s]\n",
      "# apart: b, its strategy is given" },
    { X "  a: {kind: map, fuse: false, outputs: {y: {type: 'f32[n]', value: x}}}\n" TOP "outputs: [y, top]\n",
      "# apart: b, `fuse: false` of 'a'" },
    { X "  a: {kind: stencil, boundary: interior, outputs: {y: {type: 'f32[n]', value: 'x[1]'}}}\n" TOP
        "outputs: [y, top]\n",
      "# apart: b, 'a' cannot reduce as it writes" },
    { X "  a: {kind: scan, map: x, operator: add, outputs: {y: 'f32[n]'}}\n" TOP "outputs: [y, top]\n",
      "# apart: b, 'a' cannot reduce as it writes" },
    { ROWS "  a: {kind: map, outputs: {y: {type: 'f32[n, m]', value: x}}}\n"
           "  b: {kind: reduce, map: y, operator: max, outputs: {s: f32}}\noutputs: [y, s]\n",
      "# apart: b, 'a' does not write 'y' element by element" },
    { X "  a: {kind: map, let: {e: x + 1}, outputs: {y: {type: 'f32[n]', value: e}}}\n"
        "  b: {kind: reduce, let: {e: v + 1}, map: y + e, operator: max, outputs: {s: f32}}\noutputs: [y, s]\n",
      "# apart: b, 'a' has another 'e'" },
    { X "  a: {kind: map, operators: {o: {state: f32, combine: 'max(a, b)'}}, reductions: {t: {map: x, operator: o}}, "
        "outputs: {y: {type: 'f32[n]', value: x}, t: f32}}\n"
        "  b: {kind: reduce, operators: {o: {state: f32, combine: 'min(a, b)'}}, map: y, operator: o, outputs: {s: "
        "f32}}\n"
        "outputs: [y, s, t]\n",
      "# apart: b, 'a' has another 'o'" },
    { X GOES "  b: {kind: reduce, map: y, operator: o, outputs: {s: f32}}\noutputs: [y, s]\n"
             "operators: {o: {state: f32, combine: 'max(a, b)'}}\n",
      "reduction r: user, commutative, exact, identity-free\n  map: f32 = y\n  combine: f32 = max(a, b)\n" },
    { X GOES
      "  b: {kind: reduce, map: y, operator: o, operators: {o: {state: f32, combine: 'min(a, b)'}}, outputs: {s: "
      "f32}}\noutputs: [y, s]\noperators: {o: {state: f32, combine: 'max(a, b)'}}\n",
      "  combine: f32 = min(a, b)\n" },
    { X GOES "  b: {kind: reduce, let: {e: y + 1}, map: e, operator: max, outputs: {s: f32}}\noutputs: [y, s]\n",
      "# apart: b, in one stage, " },
    { X DOUBLE "  b: {kind: reduce, let: {x: v + 1}, map: y + x, operator: max, outputs: {s: f32}}\noutputs: [y, s]\n",
      "# apart: b, in one stage with 'a', names or dimensions" },
};

/* Pairs of which neither can take the other. */
#define SCAN "  a: {kind: scan, map: x, operator: add, outputs: {y: 'f32[n]'}}\n"
#define SUMS                                                                                                           \
    "  a: {kind: map, reductions: {q: {map: x, operator: max}}, outputs: {y: {type: 'f32[n]', value: x}, q: f32}}\n"
#define EDGE "  a: {kind: stencil, outputs: {y: {type: 'f32[m, n]', value: 'x[0, 1] - x'}}}\n"
static const struct row pairs[] = {
    { X SCAN "  b: {kind: scan, map: y, operator: max, outputs: {z: 'f32[n]'}}\noutputs: [z]\n",
      "# apart: b, 'a', which writes 'y', is a scan; only plain maps become part of what reads them\n" },
    { X SCAN ADD "outputs: [z]\n",
      "# apart: b, 'z' is used outside of the stages; not part of 'a': it is a scan, which takes no maps\n" },
    { X SCAN "  b: {kind: reduce, map: y, operator: add, outputs: {s: f32}}\noutputs: [s]\n",
      "# apart: b, 'a' cannot reduce as it writes" },
    { X SCAN "  b: {kind: scan, fuse: false, map: y, operator: max, outputs: {z: 'f32[n]'}}\noutputs: [z]\n",
      "# apart: b, `fuse: false`\n" },
    { ROWS NORM "  b: {kind: scan, map: f32(s), operator: add, outputs: {z: 'f32[m]'}}\noutputs: [z]\n",
      "# apart: b, 'a', which writes 's', is a reduction; only plain maps" },
    { ROWS "  a: {kind: reduce, over: n, map: x, operator: add, fuse: false, outputs: {s: 'f32[m]'}}\n"
           "  b: {kind: map, outputs: {z: {type: 'f32[m]', value: s + w}}}\noutputs: [z]\n",
      "# apart: b, 'z' is used outside of the stages; not part of 'a': `fuse: false` of 'a'\n" },
    { X SUMS "  b: {kind: scan, map: y, operator: add, outputs: {z: 'f32[n]'}}\noutputs: [z, q]\n",
      "# apart: b, 'a', which writes 'y', has `reductions`; only plain maps" },
    { X "  a: {kind: map, iterate: {steps: 2, feedback: {x: y}}, outputs: {y: {type: 'f32[n]', value: x * 2}}}\n"
        "  b: {kind: scan, map: y, operator: add, outputs: {z: 'f32[n]'}}\noutputs: [z]\n",
      "# apart: b, 'a', which writes 'y', has a loop; only plain maps" },
    { X "  a: {kind: map, outputs: {y: {type: 'f32[n]', at: n - 1 - index(n), value: x}}}\n"
        "  b: {kind: scan, map: y, operator: add, outputs: {z: 'f32[n]'}}\noutputs: [z]\n",
      "# apart: b, 'a', which writes 'y', writes at computed places; only plain maps" },
    { X GOES "  b: {kind: reduce, map: y, operator: add, init: 3, outputs: {s: f32}}\noutputs: [y, s]\n",
      "# apart: b, it has `init`, and 'a' takes reductions of all elements alone\n" },
    { X GOES "  b: {kind: reduce, by: i32(v), map: y, operator: add, outputs: {s: 'f32[k]'}}\noutputs: [y, s]\n",
      "# apart: b, it has `by`, and 'a' takes" },
    { ROWS EDGE "  b: {kind: reduce, over: n, map: y, operator: add, outputs: {s: 'f32[m]'}}\noutputs: [y, s]\n",
      "# apart: b, it keeps a dimension, and 'a' takes" },
    { ROWS EDGE "  b: {kind: reduce, map: y, operator: add, outputs: {s: {type: 'f32[m, n]', value: y / r}}}\n"
                "outputs: [y, s]\n",
      "# apart: b, it writes elements, too, and 'a' takes" },
};

static void check(const struct row *row, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct str text = { 0 };
        build_stages(row[i].text, &text);
        cr_expect(strstr(text.text, row[i].says), "row %zu:\n%s\ngives\n%s\nwithout: %s", i, row[i].text, text.text,
                  row[i].says);
        str_finish(&text);
    }
}

Test(stage_fusion, maps_in_their_readers) { check(rows, sizeof rows / sizeof *rows); }

Test(stage_fusion, reductions_in_their_writers) { check(joined, sizeof joined / sizeof *joined); }

Test(stage_fusion, pairs_that_cannot_be_one) { check(pairs, sizeof pairs / sizeof *pairs); }

/* The halves of a stage with `where` are no pair. */
Test(stage_fusion, halves_of_a_stage_have_no_reasons)
{
    struct str text = { 0 };
    build_stages(
        X "  a: {kind: reduce, operator: max, map: x, outputs: {k: {type: 'f32[n]', where: x > r, value: x}, many: "
          "{type: i64, count: k}}}\noutputs: [k, many]\n",
        &text);
    cr_expect(strstr(text.text, "# stage a_kept") && !strstr(text.text, "apart"), "%s", text.text);
    str_finish(&text);
}

/* What is said of a stage is said of it alone: of no stage that it has become part of, and once. */
Test(stage_fusion, messages_are_of_what_was_written)
{
    struct str text = { 0 };
    build_stages(
        X "  a: {kind: map, let: {unseen: x}, outputs: {y: {type: 'f32[n]', value: x}}}\n" ADD "outputs: [z]\n", &text);
    const char *warning = strstr(text.text, "t.yaml:3:24: warning: nothing uses the let 'unseen'");
    cr_assert(warning, "%s", text.text);
    cr_expect_null(strstr(warning + 40, "nothing uses"), "%s", text.text);
    str_finish(&text);
}
