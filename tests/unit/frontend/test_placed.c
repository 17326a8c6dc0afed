/* SPDX-License-Identifier: Apache-2.0 */
/* test_placed.c - what `at` and `combine` of outputs become, and what is said where they are misused. */
#include "support/spec_fixture.h"

#include <stdio.h>

#define MAP      "kind: map\ninputs: {x: 'f32[m, n]', i: 'u8[m, n]'}\n"
#define ROWS     "kind: reduce\ninputs: {x: 'f32[m, n]'}\nover: n\noperator: max\n"
#define OUT(out) "outputs: {y: {" out "}}\n"
#define BEST     "type: {value: f32, index: i32}, shape: [k], at: i, value: {value: x, index: i32(i)}, "
#define AT       "type: 'f32[k]', at: i, value: x"

static const struct spec_row rows[] = {
    /* what they become */
    { MAP OUT("type: 'f32[n, m]', at: [index(n), index(m) - 1], value: x"),
      "output y: f32[n, m] per element, at a computed place\n  at index(n), (index(m) - i64(1))\n  value = x\n" },
    { MAP OUT(AT ", combine: add"), "  at i64(i)\n  combine add\n  combine: f32 = (a + b)\n  value = x\n" },
    { MAP OUT(AT ", combine: add"), "size k\nspace [m, n]\n" },
    { MAP OUT("type: 'u64[k]', at: i, value: 1, combine: max"), "  combine max, exact\n" },
    { MAP OUT(AT ", combine: {state: f32, let: {t: a + b}, combine: t + t}"), "  let t: f32 = (a + b)\n" },
    { MAP "params: {p: f32}\n" OUT(AT ", combine: add, initial: p + 1"), "  initial (p + 1.0)\n" },
    { MAP "let: {j: k - i64(i)}\n" OUT("type: 'f32[k]', at: j, value: x"), "let j: i64 = (k - i64(i))\n" },
    { MAP "assume: {k: {equals: 256}}\n" OUT(AT), "size k min 256 max 256\n" },
    { MAP "reductions: {t: {map: y, operator: max}}\noutputs: {y: {" AT "}, t: f32}\n", "  map: f32 = y\n" },
    { MAP "determinism: device\n" OUT("type: 'i32[k]', at: i, value: 1, combine: add"), "determinism device" },
    { ROWS OUT("type: 'f32[n, m]', at: [index(n), m - 1 - index(m)], value: x / r"),
      "per element, from its segment's result, at a computed place\n" },
    { ROWS OUT("type: 'f32[k]', at: i64(r), value: x, combine: max"),
      "from its segment's result, at a computed place" },
    { ROWS OUT("type: 'f32[k]', at: i64(x), value: x"), "per element, at a computed place" },
    { "kind: scan\ninputs: {x: 'i32[n]'}\noperator: add\n" OUT("type: 'i32[k]', at: s"), "  at i64(s)\n  value = s\n" },
    /* what they cannot be */
    { "kind: reduce\ninputs: {x: 'u8[n]'}\nby: x\nmap: 1\noperator: add\noutputs: {c: 'i32[k]', y: {type: 'u8[n]', at: "
      "x, value: x}}\n",
      "not yet: an output with 'at' beside 'by'" },
    { ROWS OUT("type: 'f32[m]', at: index(m), value: r"),
      "all elements of a segment would write the same to one place" },
    { ROWS OUT("type: 'f32[m]', at: i64(r), value: 1, combine: add"),
      "hint: results go to computed places in a second stage" },
    { ROWS OUT("type: 'f32[n]', at: index(n), value: r, combine: max"),
      "from its segment's result, at a computed place" },
    { MAP OUT("type: 'f32[n, m]', at: index(n), value: x"), "'y' has 2 dimensions, so 'at' has as many indices" },
    { MAP OUT("type: 'f32[n, m]', at: index(n), value: x"), "at: [index(n), index(m)]" },
    { MAP OUT("type: 'f32[n, m]', at: '[index(n), index(m)]', value: x"),
      "hint: without quotes around it: [index(n), index(m)];" },
    { MAP OUT("type: f32, at: i, value: x"), "'y' has 0 dimensions" },
    { MAP OUT("type: f32, at: [], value: x"), "'y' has 0 dimensions" },
    { MAP OUT("type: 'f32[k]', at: x, value: x"), "an index is an integer, this is f32" },
    { MAP OUT("type: 'f32[k]', at: [], value: x"), "'y' has 1 dimension, so" },
    { MAP OUT("type: 'f32[k]', at: {x: i}, value: x"), "'at' is an expression, or a list of one for each dimension" },
    { MAP OUT("type: 'f32[k]', value: x"), "no input has a dimension 'k'" },
    { MAP OUT("type: 'f32[x]', at: i, value: x"), "'x' is a dimension already" },
    { MAP "params: {k: i32}\n" OUT(AT), "'k' is a dimension already" },
    { MAP OUT("type: 'f32[k]', at: i"), "'y' needs a value" },
    { ROWS "outputs: {y: {type: 'f32[m]', value: r, combine: add}}\n", "'combine' belongs to an output with 'at'" },
    { "kind: scatter\ninputs: {x: 'u8[n]'}\noutputs: {y: 'u32[k]'}\n", "at: x, value: 1, combine: add, initial: 0" },
    { MAP OUT(AT ", combine: plus"), "there is no operator 'plus'" },
    { MAP OUT(AT ", combine: argmax"), "the fields of this operator are value, index, and those of 'y' are none" },
    { MAP OUT(AT ", combine: argmax"), "hint: the elements are structures with these fields in this order" },
    { MAP OUT(AT ", combine: last"), "the operator of 'combine' must commute" },
    { MAP OUT(AT ", combine: xor"), "'xor' does not combine f32" },
    { MAP OUT(AT ", combine: {state: f64, combine: a + b}"), "the state of this operator is not of the output's type" },
    { MAP OUT(AT ", combine: {state: {p: f32, q: f32}, combine: {p: a.p, q: a.q}}"), "operator are p, q, and those" },
    { MAP OUT(AT ", combine: {state: f32, combine: a}"), "the operator of 'combine' must commute" },
    { "kind: map\ninputs: {x: 'f32[n]', i: 'u8[n]', c: 'f32[]'}\n" OUT(AT
                                                                       ", combine: {state: f32, combine: (a + b) * c}"),
      "the operator of 'combine' reads no inputs" },
    { MAP OUT("type: 'f16[k]', at: i, value: f16(x), combine: add"), "combine add" },
    { MAP OUT("type: {u: i32}, shape: [k], at: i, value: {u: 1}, combine: add"), "and the elements are structures" },
    { MAP OUT("type: {u: i32}, shape: [k], at: i, value: {u: 1}, combine: add"), "hint: write an operator with" },
    { MAP OUT(BEST "combine: argmax"), "  combine argmax, exact\n" },
    { MAP OUT(BEST "combine: argmax, initial: {index: 7, value: -1}"),
      "  initial value = -1.0\n  initial index = 7\n" },
    { MAP OUT("type: {index: i32, value: f32}, shape: [k], at: i, value: {value: x, index: 0}, combine: argmax"),
      "those of 'y' are others" },
    { MAP OUT("type: {value: f32, index: f32}, shape: [k], at: i, value: {value: x, index: 0}, combine: argmax"),
      "field 'index' of argmax is an integer" },
    { MAP OUT("type: {max: f32, sum: f64}, shape: [k], at: i, value: {max: x, sum: 0}, combine: logsumexp"),
      "field 'sum' of logsumexp has another type" },
    { MAP OUT("type: {n: f32, mean: f32, m2: f32}, shape: [k], at: i, value: {n: 1, mean: x, m2: 0}, combine: welford"),
      "not yet: elements of 12 bytes whose fields depend on each other" },
    { MAP OUT("type: {value: f64, index: i16}, shape: [k], at: i, value: {value: f64(x), index: 0}, combine: argmax"),
      "may be any number; a reduce with `by` takes states of any size" },
    { MAP OUT("type: {value: f32, index: i16}, shape: [k], at: i, value: {value: x, index: 0}, combine: argmax"),
      "  combine argmax, exact\n" },
    { MAP OUT("type: {a: f64, b: u8, c: f32}, shape: [k], at: i, value: {a: 1, b: i, c: x}, combine: {state: {a: f64, "
              "b: u8, c: f32}, let: {t: a.c * b.c}, combine: {a: a.a + b.a, b: 'max(a.b, b.b)', c: t}}"),
      "  combine.c: f32 = t\n" },
    { MAP OUT("type: {a: f64, b: u8, c: f32}, shape: [k], at: i, value: {a: 1, b: i, c: x}, combine: {state: {a: f64, "
              "b: u8, c: f32}, let: {t: f32(a.b ^ b.b)}, combine: {a: a.a + b.a, b: a.b ^ b.b, c: t}}"),
      "not yet: elements of 16 bytes whose fields depend on each other" },
    { MAP OUT(BEST "combine: {state: {value: f64, index: i32}, combine: {value: a.value + b.value, index: a.index}}"),
      "not of the output's type" },
    { MAP "determinism: run\n" OUT(BEST "combine: logsumexp"), "are others" },
    { MAP OUT(BEST "combine: argmax, initial: 0"), "is an array of structures, so its initial value is a mapping" },
    { MAP OUT(BEST "combine: argmax, initial: {value: 0}"), "the initial value has no field 'index'" },
    { MAP OUT(BEST "combine: argmax, initial: {value: 0, indx: 1}"), "the output has no field 'indx'" },
    { MAP OUT(AT ", initial: {a: 0}"), "'y' is no array of structures, so its initial value is one expression" },
    { MAP "determinism: run\n" OUT(AT ", combine: add"), "'determinism' must be any here" },
    { MAP "determinism: device\n" OUT(AT ", combine: mul"), "'determinism' must be any here" },
    { MAP OUT(AT ", initial: x, combine: add"), "'x' has no value in an initial" },
    { MAP OUT("type: {a: f32}, shape: [k], at: i, value: {a: x}, initial: 0"), "its initial value is a mapping" },
    { ROWS "outputs: {y: {type: 'f32[m]', value: r, initial: 0}}\n", "'initial' belongs to an output with 'at'" },
    { "kind: scan\ninputs: {x: 'i32[n]'}\n" OUT("type: 'i32[n]', at: x, where: x > 0, value: x"),
      "'at' or 'where', not both" },
    { "kind: stencil\ninputs: {x: 'f32[n]'}\nboundary: interior\n" OUT(
          "type: 'f32[n]', at: index(n) - 1, value: 'x[1]'"),
      "not yet: points that are left out" },
    { "kind: stencil\ninputs: {x: 'f32[n]'}\nboundary: {x: {n: interior}}\n" OUT(
          "type: 'f32[n]', at: index(n) - 1, value: x"),
      "not yet: points that are left out" },
    { "kind: stencil\ninputs: {x: 'f32[n]'}\niterate: {steps: 2, feedback: {x: y}}\n" OUT(
          "type: 'f32[n]', at: n - 1 - index(n), value: x"),
      "not yet: 'iterate' with an output that has 'at'" },
    /* where the shape says less than the places */
    { MAP OUT("type: 'f32[n, m]', at: [index(n), index(n)], value: x"), "computed place\n  at index(n), index(n)\n" },
    { MAP OUT("type: 'f32[n, m]', at: [index(m), index(n)], value: x"), "computed place\n  at index(m), index(n)\n" },
    { MAP OUT("type: 'f32[n-1, m]', at: [index(n), index(m)], value: x"), "computed place\n  at index(n), index(m)\n" },
    { MAP OUT("type: 'f32[n, k]', at: [index(n), index(m)], value: x"), "computed place\n  at index(n), index(m)\n" },
    { MAP OUT("type: 'f32[n, m, k]', at: [index(n), index(m), 0], value: x"),
      "computed place\n  at index(n), index(m), " },
    { MAP OUT("type: 'f32[n, m]', at: [index(n), index(m)], value: x, combine: add"),
      "computed place\n  at index(n), " },
    { MAP OUT("type: 'f32[n, m]', at: [index(n), index(m)], value: x, initial: 7"), "\n  initial 7.0\n" },
    { MAP OUT("type: 'f32[n, m]', at: [index(n), index(k)], value: x"), "index() takes a dimension of the iteration" },
    { MAP OUT("type: 'f32[n, m]', at: [index(n), index(m)], value: z"), "nothing is called 'z'" },
    { "kind: reduce\ninputs: {x: 'u8[n]'}\nby: x\nmap: 1\noperator: add\n" OUT(
          "type: 'i32[n]', at: index(n), value: r"),
      "not yet: an output with 'at' beside 'by'" },
    { "kind: scan\ninputs: {x: 'i32[n]'}\n" OUT("type: 'i32[n]', at: index(n), where: x > 0, value: x"),
      "'at' or 'where', not both" },
    /* beside `where`, dimensions that are apart cannot become one, as this order would need */
    { "kind: scan\ninputs: {x: 'i32[a, b, c, d]'}\nover: [c, d]\noperator: add\noutputs: {k: {type: 'i32[a, b, c, d]', "
      "where: x > 0, value: x}, y: {type: 'i32[d, c, b, a]', at: [index(d), index(c), index(b), index(a)], value: "
      "s}}\n",
      "output y: i32[d, c, b, a] per element, at a computed place\n" },
};

Test(placed, says) { spec_rows(rows, sizeof rows / sizeof *rows); }

/* What else would be wrong with such a 'where' is not said. */
Test(placed, at_beside_where_is_one_error)
{
    static const char *const specs[] = {
        "kind: scan\ninputs: {x: 'i32[n]'}\noperator: add\n" OUT("type: 'i32[n]', at: s, where: s > 0, value: x"),
        "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: add\n" OUT("type: 'i32[n]', at: x, where: r > 0, value: x"),
    };
    for (int i = 0; i < 2; i++) {
        SPEC_BEGIN(f);
        spec_build(&f, specs[i]);
        cr_expect_eq(f.s.diags.errors, 1, "%s", spec_text(&f));
        cr_expect(strstr(spec_text(&f), "an output has 'at' or 'where', not both"), "%s", spec_text(&f));
        spec_end(&f);
    }
}

/* Where the shape says the places, the problem is the one without `at`. */
Test(placed, shapes_that_say_the_places)
{
    static const struct {
        const char *spec, *out, *at, *more;
    } rows[] = {
        { MAP, "type: 'f32[n, m]', value: x", "[index(n), index(m)]", "" },
        { MAP, "type: 'f32[m, n]', value: x", "[ index( m ), 'index(n)' ]", "" },
        { "kind: map\ninputs: {x: 'i8[n]'}\n", "type: 'i8[n]', value: x", "index(n)", "" },
        { "kind: map\ninputs: {x: 'i8[a, b, c]'}\n", "type: 'i8[c, a, b]', value: x", "[index(c), index(a), index(b)]",
          ", z: {type: 'i8[k]', at: x, value: 1, combine: add}" },
        { "kind: map\ninputs: {p: 'u8[b, t]', v: 'u8[k, h]'}\nspace: [b, t, h]\n",
          "type: 'u8[h, b, t]', value: 'at(v, p, index(h))'", "[index(h), index(b), index(t)]", "" },
        { MAP, "type: {p: f32, q: u8}, shape: [n, m], value: {p: x, q: i}", "[index(n), index(m)]",
          ", z: {type: 'f32[m, n]', value: x}" },
        { ROWS, "type: 'f32[n, m]', value: x / r", "[index(n), index(m)]", ", z: {type: 'f32[m]', value: r}" },
        { ROWS, "type: 'f32[n, m]', value: x + 1", "[index(n), index(m)]", ", z: {type: 'f32[m]', value: r}" },
        { "kind: scan\ninputs: {x: 'i32[m, n]'}\noperator: add\n", "type: 'i32[n, m]'", "[index(n), index(m)]",
          ", t: 'i32[m]'" },
        { "kind: scan\ninputs: {x: 'i32[n]', f: 'u8[n]'}\nsegments: {flags: f}\noperator: add\n", "type: 'i32[n]'",
          "index(n)", "" },
        { "kind: reduce\ninputs: {x: 'i32[n]', off: 'i32[k]'}\nsegments: {offsets: off}\noperator: add\n",
          "type: 'i32[n]', value: x - r", "index(n)", "" },
        { "kind: map\ninputs: {x: 'f32[b, c, h, w]'}\n", "type: 'f32[h, w, b, c]', value: x",
          "[index(h), index(w), index(b), index(c)]", "" },
        { "kind: map\ninputs: {x: 'f32[b, c, h, w]'}\n", "type: 'f32[w, c, h, b]', value: x",
          "[index(w), index(c), index(h), index(b)]", "" },
        { "kind: stencil\ninputs: {x: 'f32[n]'}\nboundary: interior\n", "type: 'f32[n]', value: 'x[1]'", "index(n)",
          "" },
        { "kind: stencil\ninputs: {x: 'f32[n]'}\niterate: {steps: 2, feedback: {x: y}}\n",
          "type: 'f32[n]', value: 'x[1]'", "index(n)", "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[2][1024];
        SPEC_BEGIN(f);
        SPEC_BEGIN(g);
        snprintf(text[0], sizeof text[0], "%soutputs: {y: {%s}%s}\n", rows[i].spec, rows[i].out, rows[i].more);
        snprintf(text[1], sizeof text[1], "%soutputs: {y: {%s, at: %s}%s}\n", rows[i].spec, rows[i].out, rows[i].at,
                 rows[i].more);
        spec_build(&f, text[0]);
        spec_build(&g, text[1]);
        cr_expect(f.p && g.p && f.s.diags.warnings == g.s.diags.warnings, "%s%s", text[1], spec_text(&g));
        cr_expect_str_eq(spec_text(&f), spec_text(&g));
        spec_end(&g);
        spec_end(&f);
    }
}
