/* SPDX-License-Identifier: Apache-2.0 */
/* test_problem.c - specs to problems: what is understood, by lines of the canonical text; what is refused, by code and
 * place.  Every code of 2xxx stands in a row. */
#include "support/spec_fixture.h"

#include <stdio.h>
#include <stdlib.h>

enum { LINES = 6 };
struct good {
    const char *text;
    const char *line[LINES]; /* of the canonical text */
};

#define REDUCE "kind: reduce\n"
#define X      "inputs:\n  x: f32[n]\n"
#define XY     "inputs:\n  x: f32[n]\n  y: f32[n]\n"
#define SUM    "operator: add\noutputs:\n  r: f32\n"

static const struct good good[] = {
    { REDUCE X SUM,
      { "problem t: reduce, determinism any", "space [n] over n", "input x: f32[n]", "reduction r: add, commutative",
        "  map: f32 = x", "output r: f32[] per segment" } },
    /* default accumulators, and back to the element type */
    { REDUCE "inputs: {x: \"f16[n]\"}\noperator: add\noutputs: {s: f16}\n",
      { "  map: f32 = f32(x)", "  combine: f32 = (a + b)", "  value = f16(r)" } },
    { REDUCE "inputs: {x: \"u8[n]\"}\noperator: mul\noutputs: {s: u64}\n",
      { "reduction r: mul, commutative, exact", "  identity: u32 = u32(1)", "  value = u64(r)" } },
    { REDUCE "inputs: {x: \"i16[n]\"}\noperator: max\noutputs: {s: i16}\n",
      { "  identity: i16 = i16(-32768)", "  pad: i16 = i16(-32768)" } },
    { REDUCE X "operator: min\noutputs: {s: f32}\n",
      { "  identity: f32 = inf", "  pad: f32 = nan", "reduction r: min, commutative, exact" } },
    { REDUCE X "operator: add\naccumulator: f64\noutputs: {s: f32}\n", { "  map: f64 = f64(x)", "  value = f32(r)" } },
    { REDUCE X "map: x > 0\noperator: add\naccumulator: i64\noutputs: {s: i64}\n", { "  map: i64 = i64((x > 0.0))" } },
    /* lifting, default results, structures */
    { REDUCE X "operator: welford\noutputs: {mean: f32}\n",
      { "  map.n: f32 = 1.0", "  map.mean: f32 = x", "  value = r.mean" } },
    { REDUCE X "operator: logsumexp\naccumulator: f64\noutputs: {l: f64}\n",
      { "  map.max: f64 = f64(x)", "  identity.max: f64 = f64(-inf)", "  value = (r.max + log(r.sum))" } },
    { REDUCE X
      "map: {value: x, index: i32(index(n))}\noperator: argmax\noutputs: {p: {type: {value: f32, index: i32}}}\n",
      { "  map.index: i32 = i32(index(n))", "  identity.index: i32 = 2147483647",
        "output p: {value: f32, index: i32}[] per segment", "  value.index = r.index" } },
    { REDUCE "inputs: {z: {type: {a: i8, b: f64}, shape: [n]}}\nmap: {a: f64(z.a), b: z.b}\noperator: affine\noutputs: "
             "{e: {type: f64, "
             "value: r.b}}\n",
      { "input z: {a: i8, b: f64}[n]", "  map.a: f64 = f64(z.a)", "  combine.a: f64 = (b.a * a.a)",
        "  combine.b: f64 = ((b.a * a.b) + b.b)" } },
    { REDUCE
      "inputs: {z: {type: {a: f32, b: f32}, shape: [n]}}\noperator: affine\noutputs: {e: {type: {b: f32}, value: r}}\n",
      { "  map.a: f32 = z.a", "  map.b: f32 = z.b", "  value.b = r.b" } },
    /* the user's operators */
    { REDUCE X "params: {c: f32}\noperator:\n  state: f32\n  identity: c - c\n  let: {t: a * c, one: 1}\n  combine: t "
               "+ b + one\noutputs: {s: f32}\n",
      { "reduction r: user", "  identity: f32 = (c - c)", "  let t: f32 = (a * c)", "  let one: f32 = 1.0",
        "  combine: f32 = ((t + b) + one)" } },
    { REDUCE "inputs: {x: \"f32[m, n]\", w: \"f32[m]\"}\nmap: x\nover: n\noperator: {state: f32, combine: (a + b) * "
             "w}\noutputs: {s: \"f32[m]\"}\n",
      { "reduction r: user, commutative, identity-free", "  combine: f32 = ((a + b) * w)" } },
    { REDUCE X "operator: {state: f32, identity: 0, combine: a, commutative: true}\noutputs: {s: f32}\n",
      { "reduction r: user, commutative" } },
    /* broadcast by names; order of dimensions */
    { REDUCE "inputs: {v: \"f32[n]\", x: \"f32[m, n]\"}\nmap: x * v\nover: n\noperator: add\noutputs: {y: \"f32[m]\", "
             "p: {type: \"f32[n, m]\", value: x}}\n",
      { "space [m, n] over n", "output y: f32[m] per segment", "output p: f32[n, m] per element" } },
    { REDUCE
      "inputs: {x: \"f32[m, n]\"}\nover: n\noperator: max\noutputs: {y: {type: \"f32[m, n]\", value: \"x[0, 1] - r\"}, "
      "z: {type: \"f32[m, n]\", value: x}}\n",
      { "output y: f32[m, n] per element, from its segment's result", "  value = (x[0, 1] - r)",
        "output z: f32[m, n] per element" } },
    { REDUCE "inputs: {x: \"f32[n]\", y: \"f32[m]\"}\nmap: x * y\noperator: add\noutputs: {s: f32}\n",
      { "space [n, m] over n, m" } },
    { REDUCE
      "inputs: {x: \"f32[4, n]\", y: \"f32[4]\"}\nmap: x * y\nover: n\noperator: add\noutputs: {s: \"f32[4]\"}\n",
      { "space [4, n] over n", "output s: f32[4] per segment" } },
    { REDUCE
      "inputs: {x: \"f32[n]\", c: \"f32[]\"}\nmap: x * c\noperator: add\noutputs: {s: {type: f32, value: r / c}}\n",
      { "input c: f32[]", "  value = (r / c)" } },
    { REDUCE "inputs: {x: \"f32[m, n]\", c: \"f32[m]\"}\nlet: {k: 2 * c}\nmap: x\nover: n\noperator: add\noutputs: {s: "
             "{type: \"f32[m]\", value: r * k + "
             "f32(index(m))}}\n",
      { "let k: f32 = (2.0 * c)", "  value = ((r * k) + f32(index(m)))" } },
    /* several in one pass */
    { REDUCE X "reductions: {lo: {operator: min}, s: {map: x * x, operator: add}}\noutputs: {lo: f32, d: {type: f32, "
               "value: s - lo}}\n",
      { "reduction lo: min, commutative, exact", "reduction s: add, commutative", "  value = lo",
        "  value = (s - lo)" } },
    { REDUCE X "init: 1\nreductions: {lo: {operator: min}, s: {operator: add}}\noutputs: {lo: f32, s: f32}\n",
      { "  init: f32 = 1.0" } },
    { REDUCE X "params: {c: {type: f32, value: -0.1}, k: u8}\ninit: c + f32(k)\n" SUM,
      { "param c: f32 = -0.1", "param k: u8", "  init: f32 = (c + f32(k))" } },
    /* segments */
    { REDUCE "inputs: {x: \"f32[n]\", off: \"i64[k]\"}\nsegments: {offsets: off}\noperator: add\noutputs: {s: "
             "\"f32[k-1]\", e: {type: \"f32[n]\", value: x}}\n",
      { "space [n] over n segments from offsets off", "input off: i64[k] gives offsets",
        "output s: f32[k-1] per segment", "output e: f32[n] per element" } },
    { "kind: scan\ninputs: {x: \"f32[n]\", f: \"u8[n]\"}\nsegments: {flags: f}\noperator: add\ndirection: "
      "reverse\nmode: exclusive\noutputs: {y: \"f32[n]\"}\n",
      { "problem t: scan, exclusive, reverse, determinism any", "space [n] over n segments from flags f",
        "  value = s" } },
    { REDUCE X "map: x + 1e-50 + 1e-400\n" SUM, { "  map: f32 = ((x + 0.0) + 0.0)" } },
    /* scans */
    { "kind: scan\ninputs: {x: \"f32[m, n]\"}\noperator: add\noutputs: {y: \"f32[m, n]\", t: \"f32[m]\"}\n",
      { "space [m, n] over n", "output y: f32[m, n] per element", "output t: f32[m] per scan", "  value = total" } },
    { "kind: scan\ninputs: {x: \"f32[m, n]\"}\nover: m\noperator: welford\noutputs: {y: \"f32[m, n]\", t: {type: "
      "\"f32[n]\", value: total.m2}}\n",
      { "space [m, n] over m", "  value = s.mean", "  value = total.m2" } },
    { "kind: scan\n" X "scans: {a: {operator: add}, w: {operator: welford}}\noutputs: {a: \"f32[n]\", t: {type: f32, "
      "value: a.total + w.total.n}}\n",
      { "  value = a", "  value = (a.total + w.total.n)" } },
    { "kind: scan\n" X "map: x - x[-1]\nboundary: wrap\noperator: add\noutputs: {y: \"f32[n]\"}\n",
      { "input x: f32[n] boundary [wrap]", "  map: f32 = (x - x[-1])" } },
    /* stencils */
    { "kind: stencil\ninputs: {u: \"f32[m, n]\", v: \"f32[n]\"}\nboundary: {u: {m: mirror, n: {constant: -1}}, v: "
      "reflect}\n"
      "outputs: {o: {type: \"f32[m, n]\", value: \"u[1, 0] + v[-1] + u[0, 0]\"}}\n",
      { "input u: f32[m, n] boundary [mirror, constant -1.0]", "input v: f32[n] boundary [reflect]",
        "  value = ((u[1, 0] + v[-1]) + u)" } },
    { "kind: stencil\ninputs: {u: \"f32[n]\"}\nparams: {k: i32}\nboundary: interior\niterate: {steps: k, feedback: {u: "
      "o}}\n"
      "reductions: {e: {map: abs(o - u), operator: max}}\noutputs: {o: {type: \"f32[n]\", value: \"u[1]\"}, e: f32}\n",
      { "iterate k steps u <- o", "  map: f32 = abs((o - u))", "output e: f32[] per segment" } },
    { "kind: stencil\ninputs: {x: \"f32[n]\", off: \"i32[p]\"}\nlet: {g: \"gather(x, off, k, max, k * 2)\"}\noutputs: "
      "{o: {type: \"f32[n]\", value: g}}\n",
      { "problem t: stencil, dynamic, determinism any", "space [n]",
        "let g: f32 = gather(x, off, neighbour, max, (neighbour * 2.0))" } },
    { REDUCE
      "inputs: {t: {type: {re: f32, im: i8}, shape: [k, 4]}, x: \"u8[n]\"}\nboundary: {t: wrap}\nmap: at(t, x, 1).im\n"
      "operator: add\noutputs: {s: {type: i32, value: r}, b: {type: u8, value: \"at(x, r)\"}}\n",
      { "input t: {re: f32, im: i8}[k, 4] read with at() boundary [wrap, wrap]", "size k min 1", "space [n] over n",
        "  map: i32 = i32(at(t, i64(x), i64(1)).im)", "  value = at(x, i64(r))", "size n min 1" } },
    /* sums inside */
    { REDUCE "inputs: {x: \"f32[n, f]\", c: \"f32[k, f]\"}\nover: k\nmap: sum(f, x * c)\noperator: max\n"
             "outputs: {o: \"f32[n]\"}\n",
      { "space [n, k] over k", "input x: f32[n, f] read in sums boundary [clamp, clamp]",
        "  map: f32 = sum(f, (at(x, index(n), index(f)) * at(c, index(k), index(f))))" } },
    { "kind: map\ninputs: {a: \"i8[f, n, g]\", w: \"i8[n]\", v: \"i8[m, g]\"}\nboundary: {a: {g: wrap}}\nspace: [m, "
      "n]\n"
      "outputs: {o: {type: \"i8[m, n]\", value: \"least(f, product(g, a[0, 0, 1] - v) + w) * w\"}}\n",
      { "input a: i8[f, n, g] read in sums boundary [clamp, clamp, wrap]", "input w: i8[n]",
        "  value = (least(f, (product(g, (at(a, index(f), index(n), (index(g) + i64(1))) - at(v, index(m), index(g)))) "
        "+ "
        "w)) * w)" } },
    { "kind: map\ninputs: {x: \"i32[n]\", t: \"i32[f]\"}\nlet: {few: \"any(f, at(t, index(f)) == x) or all(f, index(f) "
      "< n)\"}\n"
      "outputs: {o: {type: \"bool[n]\", value: few}, p: {type: \"i32[n]\", value: \"sum(f, 1) + greatest(f, 2)\"}}\n",
      { "let few: bool = (any(f, (at(t, index(f)) == x)) or all(f, (index(f) < n)))",
        "  value = (sum(f, 1) + greatest(f, 2))", "size f" } },
    /* what does not vary with the running index is read before the sum, also where there are no terms */
    { "kind: map\ninputs: {x: \"i32[n]\", t: \"i32[f, g]\", u: \"i32[h]\"}\noutputs:\n"
      "  o: {type: \"i32[n]\", value: \"sum(f, sum(g, at(t, index(f), x) + t) + sum(h, at(u, index(h) + "
      "i64(x))))\"}\n",
      { "size f", "size g min 1", "size h" } },
    { "kind: map\ninputs: {x: \"i32[n]\", t: \"i32[f]\"}\noutputs:\n"
      "  o: {type: \"i32[n]\", value: \"at(t, sum(f, t))\"}\n",
      { "size f min 1" } },
    { "kind: stencil\ninputs: {x: \"i32[n]\", off: \"i32[p]\"}\noutputs:\n"
      "  all: {type: \"bool[n]\", value: \"gather(x, off, k, and, k > 0 and k < 9)\"}\n"
      "  any: {type: \"i32[n]\", value: \"gather(x, off, k, or, k)\"}\n",
      { "gather(x, off, neighbour, and, ((neighbour > 0) and (neighbour < 9)))",
        "gather(x, off, neighbour, or, neighbour)" } },
    /* operators of one's own; all fields of a let that is a state; what is lifted, and what is one structure */
    { "kind: stencil\ninputs: {x: \"f32[n]\", off: \"i32[p]\"}\noperators:\n"
      "  ours: {state: {v: f64, i: i64}, identity: {v: 0, i: 0}, let: {m: a.v + b.v}, combine: {v: m, i: a.i + "
      "b.i}}\n"
      "let: {g: \"gather(x, off, k, ours, k, index(p))\"}\noutputs:\n  o: {type: {v: f64, i: i64}, shape: [n], value: "
      "g}\n  q: {type: \"f64[n]\", value: \"g.v + gather(x, off, k, welford, f64(k)).mean\"}\n",
      { "operator ours: user", "  let m: f64 = (a.v + b.v)", "  combine.v: f64 = m",
        "let g.i: i64 = gather(x, off, neighbour, ours, f64(neighbour), index(p)).i", "  value.i = g.i",
        "  value = (g.v + gather(x, off, neighbour, welford, f64(1.0), f64(neighbour), f64(0.0)).mean)" } },
    { "kind: stencil\ninputs: {z: {type: {index: u8, value: i8}, shape: [n]}, off: \"i32[p]\"}\n"
      "outputs: {o: {type: {value: i8, index: u8}, shape: [n], value: \"gather(z, off, k, argmin, k)\"}}\n",
      { "  value.index = gather(z, off, neighbour, argmin, neighbour.value, neighbour.index).index" } },
    { REDUCE X "operators: {ours: {state: f32, combine: \"max(a, b)\"}}\nreductions: {r: {operator: ours}, t: {map: x "
               "* x, operator: ours}}\noutputs: {r: f32, t: f32}\n",
      { "reduction r: user, commutative, exact, identity-free", "reduction t: user, commutative, exact, identity-free",
        "  combine: f32 = max(a, b)" } },
    /* values beside a gather() whose rows are a dimension, too */
    { "kind: map\ninputs: {x: \"f32[n, p]\", off: \"i32[p, 2]\", c: \"f32[n]\"}\n"
      "outputs: {y: {type: \"f32[n, p]\", value: \"gather(x, off, k, add, k) * c\"}}\n",
      { "space [n, p]", "  value = (gather(x, off, neighbour, add, neighbour) * c)" } },
    { "kind: stencil\ninputs: {x: \"f32[n]\"}\noutputs: {o: {type: \"f32[n-1]\", value: \"x[1] - x\"}}\n",
      { "output o: f32[n-1] per element" } },
    /* facts and pins */
    { REDUCE X SUM
      "assume: {n: {min: 1, multiple_of: 4}}\ndeterminism: device\nstrategy: {name: reduce.block, threads: 128}\n",
      { "problem t: reduce, determinism device", "size n min 1 multiple of 4", "strategy reduce.block threads=128" } },
    { REDUCE X SUM "assume: {x: {aligned: 16}, r: {aligned: 8}}\n",
      { "array x aligned to 16", "array r aligned to 8", "size n" } },
    { REDUCE X SUM "assume: {n: {equals: 1024}}\nname: my_sum\nptxgen: 1\ndoc: free text\n",
      { "problem my_sum: reduce, determinism any", "size n min 1024 max 1024" } },
};

Test(problem, canonical_text)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        SPEC_BEGIN(f);
        spec_build(&f, good[i].text);
        for (int k = 0; k < LINES && good[i].line[k]; k++) {
            char line[256];
            snprintf(line, sizeof line, "%s\n", good[i].line[k]);
            cr_expect(f.p && strstr(spec_text(&f), line), "%s\nwants the line '%s' in\n%s", good[i].text,
                      good[i].line[k], spec_text(&f));
        }
        cr_expect_eq(f.s.diags.warnings, 0, "%s", spec_text(&f));
        spec_end(&f);
    }
}

struct bad {
    int code, line, column; /* of the first message */
    int count;              /* errors */
    const char *text;
};

static const struct bad bad[] = {
    /* keys and slots */
    { 2001, 7, 1, 1, REDUCE X SUM "outptus: {}\n" },
    { 2001, 7, 14, 1, REDUCE X SUM "assume: {n: {minimum: 1}}\n" },
    { 2002, 1, 1, 1, REDUCE X "outputs:\n  r: f32\n" },
    { 2002, 1, 1, 2, "name: t\nkind: reduce\noperator: add\n" },
    { 2002, 4, 11, 1, REDUCE X "operator: {state: f32, identity: 0}\noutputs: {r: f32}\n" },
    { 2002, 6, 10, 1, "kind: stencil\n" X "outputs:\n  o: {type: \"f32[n]\", value: x}\niterate: {steps: 1}\n" },
    { 2003, 4, 6, 1, REDUCE X "map: [x]\n" SUM },
    { 2003, 2, 9, 1, REDUCE "inputs: f32[n]\n" SUM },
    { 2003, 4, 16, 1, REDUCE X "map: {b: x, a: {b: c}}\noperator: affine\noutputs: {r: {type: f32, value: r.a}}\n" },
    { 2004, 4, 1, 1, REDUCE X "mode: inclusive\n" SUM },
    { 2004, 4, 1, 1,
      "kind: scan\n" X "reductions: {r: {operator: add}}\nscans: {r: {operator: add}}\noutputs: {r: \"f32[n]\"}\n" },
    { 2005, 1, 7, 1, "kind: fold\n" X SUM },
    { 2005, 4, 14, 1, REDUCE X "determinism: always\n" SUM },
    { 2005, 4, 32, 1, REDUCE X "params: {c: {type: f32, value: \"1 + 1\"}}\n" SUM },
    { 2006, 3, 3, 1, REDUCE "inputs:\n  2x: f32[n]\n" SUM },
    { 2006, 4, 7, 1, REDUCE X "let: {if: 1}\n" SUM },
    { 2007, 4, 10, 1, REDUCE X "params: {x: f32}\n" SUM },
    { 2007, 4, 10, 1, REDUCE X "params: {n: i32}\n" SUM },
    { 2007, 4, 3, 1, REDUCE "inputs:\n  x: f32[n]\n  n: f32[m]\nmap: x\n" SUM },
    { 2008, 4, 27, 1, REDUCE X "assume: {n: {multiple_of: 010}}\n" SUM },
    { 2008, 4, 27, 1, REDUCE X "assume: {n: {multiple_of: 0}}\n" SUM },
    { 2009, 4, 49, 1, REDUCE X "operator: {state: f32, combine: a, commutative: yes}\noutputs: {r: f32}\n" },
    { 2010, 3, 6, 1, REDUCE "inputs:\n  x: float[n]\n" SUM },
    { 2010, 4, 14, 1, REDUCE X "accumulator: f3\n" SUM },
    { 2011, 3, 13, 1, REDUCE "inputs:\n  x: f32[n, n]\n" SUM },
    { 2011, 3, 10, 1, REDUCE "inputs:\n  x: f32[0]\n" SUM },
    { 2011, 3, 11, 1, REDUCE "inputs:\n  x: f32[n\n" SUM },
    { 2011, 3, 6, 1, REDUCE "inputs:\n  x: f32\n" SUM },
    { 2011, 3, 10, 1, REDUCE "inputs:\n  x: f32[n-1]\n" SUM },
    { 2011, 6, 10, 1, REDUCE X "operator: add\noutputs:\n  r: f32[m]\n" },
    { 2012, 4, 19, 1, REDUCE X "operator: {state: {}, combine: a}\noutputs: {r: f32}\n" },
    { 2013, 1, 9, 1, "ptxgen: 2\n" REDUCE X SUM },
    { 2014, 4, 11, 1, REDUCE X "operator: add\nreductions: {s: {operator: add}}\noutputs: {s: f32}\n" },
    { 2014, 5, 14, 1, REDUCE X "operator: {state: f32, combine: a + b}\naccumulator: f32\noutputs: {s: f32}\n" },
    { 2015, 5, 33, 0,
      REDUCE "inputs:\n  a: f32[n]\n"
             "outputs: {s: f32}\noperator: {state: f32, combine: a + b}\n" },
    { 2015, 4, 11, 0, "kind: scan\ninputs:\n  s: f32[n]\noperator: add\noutputs: {y: \"f32[n]\"}\n" },
    /* expressions; test_expr.c has more */
    { 2101, 4, 9, 1, REDUCE X "map: x +\n" SUM },
    { 2102, 4, 8, 1, REDUCE X "map: x = 1\n" SUM },
    { 2103, 4, 6, 1, REDUCE X "map: 1.0f\n" SUM },
    { 2105, 4, 12, 1, REDUCE X "map: 0 < x < 1\n" SUM },
    { 2201, 4, 6, 1, REDUCE X "map: w\n" SUM },
    /* a let of literals sees what it sees where it stands: neither itself, nor what comes later */
    { 2201, 4, 14, 1, REDUCE X "let: {h: \"if h > 0 then 1 else 0\"}\nmap: h\n" SUM },
    { 2201, 4, 14, 1, REDUCE X "let: {h: \"if g > 0 then 1 else 0\", g: 2 * x}\nmap: h * g\n" SUM },
    { 2201, 4, 50, 1,
      REDUCE X "operator: {state: f32, identity: 0, let: {t: \"if t > 0 then 1 else 0\"}, combine: a + b + t}\n"
               "outputs: {r: f32}\n" },
    { 2205, 6, 33, 1,
      REDUCE X "let: {h: \"if x > 0 then 1 else 0\"}\noperator: add\noutputs: {r: {type: f32, value: h}}\n" },
    { 2202, 4, 6, 1, REDUCE X "map: foo(x)\n" SUM },
    { 2203, 6, 27, 1, REDUCE X "operator: welford\noutputs:\n  v: {type: f32, value: r.m3}\n" },
    { 2204, 4, 7, 1, REDUCE X "init: x\n" SUM },
    { 2204, 4, 46, 1, REDUCE X "operator: {state: f32, combine: a, identity: x}\noutputs: {r: f32}\n" },
    { 2204, 6, 30, 1, "kind: scan\n" X "operator: add\noutputs:\n  v: {type: \"f32[n]\", value: total}\n" },
    { 2204, 4, 6, 1,
      REDUCE "inputs: {x: \"f32[n]\", off: \"i32[k]\"}\nsegments: {offsets: off}\nmap: off\noperator: add\noutputs: "
             "{s: \"i32[k-1]\"}\n" },
    { 2205, 6, 25, 1, REDUCE X "operator: add\noutputs:\n  v: {type: f32, value: x}\n" },
    { 2205, 4, 37, 1, REDUCE X "operator: {state: f32, combine: a * x}\noutputs: {r: f32}\n" },
    { 2206, 6, 25, 1, REDUCE X "operator: add\noutputs:\n  v: {type: f64, value: r}\n" },
    { 2207, 4, 8, 1, REDUCE X "map: x * n\n" SUM },
    { 2208, 4, 8, 1, REDUCE X "map: x & 1\n" SUM },
    { 2209, 4, 10, 1, REDUCE "inputs:\n  x: u8[n]\nmap: x + 256\noperator: add\noutputs: {s: u32}\n" },
    { 2210, 4, 6, 1, REDUCE X "map: sqrt(x, x)\n" SUM },
    { 2211, 6, 25, 1, REDUCE X "operator: welford\noutputs:\n  v: {type: f32, value: r}\n" },
    { 2212, 4, 6, 1, REDUCE X "map: x[1, 1]\n" SUM },
    { 2213, 4, 6, 1, REDUCE X "map: x\noperator: {state: i32, combine: a}\noutputs: {r: i32}\n" },
    { 2213, 4, 11, 1, REDUCE "inputs: {x: \"f64[n]\"}\noperator: add\noutputs: {r: f32}\n" },
    { 2214, 4, 7, 1,
      REDUCE "inputs: {x: \"f32[n]\", off: \"i32[k]\"}\noperator: add\nmap: \"gather(x, off, k, add, k)\"\noutputs: "
             "{r: f32}\n" },
    { 2214, 3, 52, 1,
      "kind: stencil\ninputs: {x: \"f32[m, n]\", off: \"i32[p]\"}\noutputs: {o: {type: \"f32[m, n]\", value: "
      "\"gather(x, off, k, add, k)\"}}\n" },
    { 2217, 4, 9, 1, REDUCE X "map: at(y, 0)\n" SUM },
    { 2217, 7, 30, 1,
      "kind: stencil\n" X "boundary: clamp\nreductions: {r: {map: x, operator: add}}\noutputs:\n"
      "  t: {type: f32, value: \"r * at(x, 0)\"}\n  y: {type: \"f32[n]\", value: \"x[1]\"}\n"
      "iterate: {steps: 2, feedback: {x: y}}\n" },
    { 2217, 4, 47, 1, REDUCE X "operator: {state: f32, combine: a, identity: \"at(x, 0)\"}\noutputs: {r: f32}\n" },
    { 2210, 4, 10, 1, REDUCE X "map: x + at(x, 0, 1)\n" SUM },
    { 2206, 4, 12, 1, REDUCE X "map: at(x, x)\n" SUM },
    { 2211, 3, 11, 1, REDUCE "inputs: {x: \"f32[n]\", t: {type: {re: f32}, shape: [n]}}\nmap: \"x + at(t, 0)\"\n" SUM },
    { 2203, 3, 20, 1,
      REDUCE "inputs: {x: \"f32[n]\", t: {type: {re: f32}, shape: [n]}}\nmap: \"x + at(t, 0).im\"\n" SUM },
#include "gathers.def"
#include "sums.def"
    { 2101, 3, 57, 1,
      "kind: stencil\ninputs: {x: \"i32[n]\", off: \"i32[p]\"}\noutputs: {o: {type: \"i32[n]\", value: \"gather(x, "
      "off, "
      "k, &&, k)\"}}\n" },
    { 2209, 4, 10, 1, REDUCE X "map: x + 1e309\n" SUM },
    { 2209, 4, 11, 1, REDUCE X "map: x + -1.5e400\n" SUM },
    { 2209, 4, 10, 1, REDUCE X "map: x + 1e39\n" SUM },
    { 2209, 4, 10, 1, REDUCE "inputs:\n  x: f64[n]\nmap: x + 1e309\noperator: add\noutputs: {s: f64}\n" },
    { 2209, 4, 10, 1, REDUCE "inputs:\n  x: f16[n]\nmap: x + 70000.0\noperator: add\noutputs: {s: f32}\n" },
    { 2209, 4, 10, 1, REDUCE "inputs:\n  x: f16[n]\nmap: x + 65520\noperator: add\noutputs: {s: f32}\n" },
    { 2101, 4, 13, 1, REDUCE X "map: max(x, and)\n" SUM },
    { 2215, 4, 16, 1, REDUCE X "map: f32(index(m))\n" SUM },
    { 2216, 4, 10, 0, REDUCE X "params: {k: f32}\n" SUM },
    /* the problem */
    { 2301, 2, 9, 1, REDUCE "inputs: {x: \"f32[]\"}\n" SUM },
    { 2301, 2, 9, 1, REDUCE "inputs: {x: \"f32[a, b, c, d]\", y: \"f32[e, f, g]\"}\nmap: x * y\n" SUM },
    { 2301, 2, 9, 1, REDUCE "inputs: {}\n" SUM },
    { 2302, 4, 7, 1, REDUCE X "over: m\n" SUM },
    { 2302, 4, 11, 1, REDUCE X "over: [n, n]\n" SUM },
    { 2303, 4, 11, 1, REDUCE X "operator: plus\noutputs: {r: f32}\n" },
    { 2304, 4, 11, 1, REDUCE X "operator: and\noutputs: {r: f32}\n" },
    { 2304, 5, 11, 1, REDUCE X "map: x > 0\noperator: add\noutputs: {r: i32}\n" },
    { 2305, 4, 11, 1, REDUCE X "operator: argmin\noutputs: {r: {type: f32, value: r.value}}\n" },
    { 2305, 4, 6, 1,
      REDUCE X "map: x\noperator: {state: {p: f32, q: f32}, combine: {p: a.p, q: a.q}}\noutputs: {r: {type: f32, "
               "value: r.p}}\n" },
    { 2306, 4, 11, 1,
      REDUCE "inputs: {x: \"f32[n]\", off: \"i32[k]\"}\nsegments: {offsets: off}\noperator: first\noutputs: {r: "
             "\"f32[k-1]\"}\n" },
    { 2306, 5, 11, 1,
      "kind: scan\n" X "mode: exclusive\noperator: {state: f32, combine: a + b}\noutputs: {r: \"f32[n]\"}\n" },
    { 2307, 4, 21, 1, REDUCE X "segments: {offsets: of}\n" SUM },
    { 2307, 5, 19, 1, REDUCE "inputs:\n  x: f32[n]\n  f: u8[n]\nsegments: {flags: f}\n" SUM },
    { 2307, 4, 11, 1, REDUCE X "segments: {}\n" SUM },
    { 2319, 5, 50, 1, "kind: map\n" X "boundary: wrap\noutputs: {o: {type: \"f32[n]\", value: x, combine: add}}\n" },
    { 2318, 4, 47, 1,
      "kind: scan\noperator: add\ninputs: {x: \"i32[n]\"}\noutputs: {y: {type: \"i32[n]\", value: x, from: end}}\n" },
    { 2320, 4, 5, 1, REDUCE X "by: x\noperator: add\noutputs: {r: \"f32[k]\"}\n" },
    { 2320, 4, 9, 1, REDUCE X "by: [1, x > 0]\noperator: add\noutputs: {r: \"f32[k, 2]\"}\n" },
    { 2320, 5, 11, 1, REDUCE X "by: 1\noperator: first\noutputs: {r: \"f32[k]\"}\n" },
    { 2320, 6, 24, 1, REDUCE X "by: 1\noperator: add\noutputs: {r: \"f32[k]\", s: \"f32[k, 2]\"}\n" },
    { 2320, 6, 14, 1, REDUCE X "by: 1\noperator: add\ndeterminism: run\noutputs: {r: \"f32[k]\"}\n" },
    { 2308, 6, 11, 1, REDUCE "inputs:\n  x: f32[m, n]\nover: n\noperator: add\noutputs: {r: \"f32[n]\"}\n" },
    { 2308, 3, 11, 1, "kind: stencil\ninputs: {x: \"f32[m, n]\"}\noutputs: {o: {type: \"f32[n]\", value: \"x\"}}\n" },
    { 2309, 5, 3, 1, REDUCE X "outputs:\n  y: f32[n]\noperator: add\n" },
    { 2309, 5, 3, 1, REDUCE X "outputs:\n  y: f32\nreductions: {s: {operator: add}}\n" },
    { 2309, 5, 3, 1, REDUCE X "outputs:\n  y: f32\noperator: affine\nmap: {a: x, b: x}\n" },
    { 2310, 4, 11, 1, "kind: stencil\n" X "boundary: clmp\noutputs: {o: {type: \"f32[n]\", value: x}}\n" },
    { 2310, 4, 16, 1, "kind: stencil\n" X "boundary: {x: {m: wrap}}\noutputs: {o: {type: \"f32[n]\", value: x}}\n" },
    { 2310, 4, 11, 1, REDUCE X "boundary: interior\n" SUM },
    { 2311, 4, 18, 1,
      "kind: stencil\n" X "iterate: {steps: t, feedback: {x: o}}\noutputs: {o: {type: \"f32[n]\", value: x}}\n" },
    { 2311, 4, 35, 1,
      "kind: stencil\n" X "iterate: {steps: 2, feedback: {x: o}}\noutputs: {o: {type: \"f64[n]\", value: f64(x)}}\n" },
    { 2311, 4, 18, 1,
      "kind: stencil\n" X "iterate: {steps: 0, feedback: {x: o}}\noutputs: {o: {type: \"f32[n]\", value: x}, p: {type: "
      "\"f32[n]\", value: x}}\n" },
    { 2312, 4, 10, 1, REDUCE X "assume: {m: {min: 1}}\n" SUM },
    { 2001, 4, 14, 1, REDUCE X "assume: {x: {alined: 16}}\n" SUM },
    { 2003, 4, 13, 1, REDUCE X "assume: {x: 16}\n" SUM },
    { 2008, 4, 23, 1, REDUCE X "assume: {x: {aligned: 32}}\n" SUM },
    { 2312, 4, 23, 1, REDUCE X "assume: {x: {aligned: 12}}\n" SUM },
    { 2312, 4, 19, 1, REDUCE X "assume: {x: {min: 1}}\n" SUM },
    { 2312, 4, 31, 1, REDUCE X "assume: {n: {min: 1, aligned: 8}}\n" SUM },
    { 2312, 4, 13, 1, REDUCE X "assume: {n: {min: 3, max: 2}}\n" SUM },
    { 2312, 4, 13, 1, REDUCE X "assume: {n: {min: 5, max: 7, multiple_of: 8}}\n" SUM },
    { 2313, 4, 7, 1,
      REDUCE X "map: {vaule: x, index: index(n)}\noperator: argmin\noutputs: {r: {type: f32, value: r.value}}\n" },
    { 2313, 4, 6, 1, REDUCE X "map: {p: x}\n" SUM },
    { 2314, 5, 11, 1, REDUCE XY SUM },
    { 2315, 5, 11, 0,
      REDUCE "inputs: {a: \"f32[m, k]\", b: \"f32[k, n]\"}\nover: k\nmap: a * b\noperator: add\noutputs: {c: \"f32[m, "
             "n]\"}\n" },
};

static const struct diag *first_by_place(const struct diags *d)
{
    const struct diag *first = d->first;
    for (const struct diag *m = first; m; m = m->next)
        if (m->at.begin < first->at.begin)
            first = m;
    return first;
}

Test(problem, errors)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int line = 0, column = 0;
        SPEC_BEGIN(f);
        spec_build(&f, bad[i].text);
        const struct diag *m = first_by_place(&f.s.diags);
        str_finish(&f.text);
        diags_render_text(&f.s.diags, &f.text, false);
        cr_assert(m, "no message for\n%s", bad[i].text);
        diags_position(&f.s.diags, m->at.begin, &line, &column);
        cr_expect(m->code == (enum diag_code)bad[i].code && line == bad[i].line && column == bad[i].column &&
                      f.s.diags.errors == bad[i].count && (f.p != NULL) == !bad[i].count,
                  "wanted %d at %d:%d, %d errors for\n%s%s", bad[i].code, bad[i].line, bad[i].column, bad[i].count,
                  bad[i].text, spec_text(&f));
        spec_end(&f);
    }
}

/* Too deep an expression does not fit into a row; 24xx are about laws, which `check` says and test_laws sees. */
Test(problem, every_code_has_a_row)
{
    for (int code = 2000; code < 3000; code++) {
        const char *title, *explanation;
        bool found = code == 2104 || code / 100 == 24;
        found |= code == D_BAD_STAGES || code == D_UNWRITTEN; /* of test_stage_messages */
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
            found |= bad[i].code == code;
        if (diag_explain(code, &title, &explanation)) {
            cr_expect(found, "no row for %d, %s", code, title);
            cr_expect_gt(strlen(explanation), 80, "%d", code);
        }
    }
}

/* The same problem in block style, flow style, quotes, another order of keys: the same text. */
Test(problem, canonical_text_is_canonical)
{
    static const char *const texts[] = {
        "kind: reduce\ninputs:\n  x: f32[n]\n  y: f32[ n ]\nmap: x*y+1\noperator: add\noutputs:\n  dot: f32\n",
        "# a comment\noutputs: {dot: {type: f32, value: r}}\noperator: \"add\"\nmap: >\n  (x * y)\n  + 1.0\n"
        "inputs: {x: \"f32[n]\", y: 'f32[n]'}\ndoc: text\nkind: reduce\ndeterminism: any\n",
    };
    SPEC_BEGIN(f);
    SPEC_BEGIN(g);
    spec_build(&f, texts[0]);
    spec_build(&g, texts[1]);
    cr_expect_str_eq(spec_text(&f), spec_text(&g));
    spec_end(&f);
    spec_end(&g);
}

/* A name that is no identifier is made one. */
Test(problem, names)
{
    static const char *const rows[][2] = {
        { "dot", "dot" }, { "3d-x", "_3d_x" }, { "a b.c", "a_b_c" }, { "", "spec" }, { NULL, "spec" }
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SPEC_BEGIN(f);
        spec_build_named(&f, REDUCE X SUM, rows[i][0]);
        cr_assert(f.p != NULL);
        cr_expect_str_eq(f.p->name, rows[i][1]);
        spec_end(&f);
    }
}

/* Structures are laid out as in C. */
Test(problem, layout)
{
    SPEC_BEGIN(f);
    spec_build(
        &f, REDUCE
        "inputs: {z: {type: {a: i8, b: f64, c: u16}, shape: [n]}}\nmap: z.b\noperator: add\noutputs: {s: f64}\n");
    cr_assert(f.p != NULL, "%s", spec_text(&f));
    const struct prog_array *z = &f.p->input[0].array;
    cr_expect(z->field[0].offset == 0 && z->field[1].offset == 8 && z->field[2].offset == 16 && z->stride == 24);
    spec_end(&f);
}

/* The JSON Schema is balanced and knows every key of the specs. */
Test(problem, schema)
{
    struct str out = { 0 };
    int depth = 0;
    bool quoted = false;
    problem_schema(&out);
    for (const char *c = out.text; *c; c++) {
        if (*c == '"' && c[-1] != '\\')
            quoted = !quoted;
        if (!quoted)
            depth += (*c == '{' || *c == '[') - (*c == '}' || *c == ']');
        cr_assert_geq(depth, 0);
    }
    cr_expect(depth == 0 && !quoted);
    static const char *const words[] = { "\"reductions\": {", "\"welford\"", "\"mirror\"", "\"multiple_of\": {",
                                         "2020-12" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        cr_expect(strstr(out.text, words[i]), "no %s", words[i]);
    str_finish(&out);
}
