/* SPDX-License-Identifier: Apache-2.0 */
/* test_merge.c - four to six dimensions: which of them become one, what expressions then mean, and what is said where
 * too many are left. */
#include "support/spec_fixture.h"

#define IMAGES "inputs: {x: 'f32[b, c, h, w]'}\n"
#define MAP    "kind: map\n" IMAGES
#define STEPS  "iterate: {steps: 2, feedback: {x: y}}\n"
#define SIX    "inputs: {x: 'f32[a, b, c, d, e, f]'}\n"
#define SUM    "kind: reduce\n" IMAGES "operator: add\n"
#define Y(v)   "outputs: {y: {type: 'f32[b, c, h, w]', value: '" v "'}}\n"

static const struct spec_row rows[] = {
    /* what they become */
    { MAP Y("x + 1"), "size w\ndimensions b, c, h, w are one: b*c*h*w\nspace [b*c*h*w]\ninput x: f32[b, c, h, w]\n" },
    { MAP Y("x + 1"), "output y: f32[b, c, h, w] per element\n" },
    { "kind: map\n" SIX "outputs: {y: {type: 'f32[a, b, c, d, e, f]', value: x}}\n", "space [a*b*c*d*e*f]\n" },
    { "kind: map\ninputs: {x: 'f32[b, c, h]'}\noutputs: {y: {type: 'f32[b, c, h]', value: x}}\n", "space [b, c, h]\n" },
    { "kind: map\ninputs: {x: 'f32[2, b, 3, h]'}\noutputs: {y: {type: 'f32[2, b, 3, h]', value: x}}\n",
      "space [2*b*3*h]\n" },
    { "kind: map\ninputs: {x: 'f32[2, 3, 4, 5]', v: 'f32[5]'}\noutputs: {y: {type: 'f32[2, 3, 4, 5]', value: x + v}}\n",
      "space [24, 5]\n" },
    { "kind: map\ninputs: {x: 'f32[b, c, h, w]', g: 'f32[c]'}\n" Y("x * g"), "space [b, c, h*w]\n" },
    { "kind: map\ninputs: {x: 'f32[b, c, h, w]', t: 'f32[h, w, b, c]'}\n" Y("x * t"), "space [b*c, h*w]\n" },
    { SUM "over: [b, h, w]\noutputs: {s: 'f32[c]'}\n", "space [b, c, h*w] over b, h*w\n" },
    { SUM "over: w\noutputs: {s: 'f32[b, c, h]', y: {type: 'f32[b, c, h, w]', value: x / r}}\n",
      "space [b*c*h, w] over w\n" },
    { SUM "outputs: {s: f32}\n", "space [b*c*h*w] over b*c*h*w\n" },
    { "kind: reduce\n" SIX "operator: add\nover: [b, c, f]\noutputs: {s: 'f32[a, d, e]'}\n"
      "space: [a, d, e, b, c, f]\n",
      "space [a*d*e, b*c*f] over b*c*f\n" },
    { "kind: scan\n" IMAGES "operator: add\noutputs: {s: 'f32[b, c, h, w]'}\n", "space [b*c*h, w] over w\n" },
    { "kind: reduce\ninputs: {x: 'i32[n, f, g, h]', key: 'i32[n]'}\nmap: x\noperator: add\nover: n\nby: key\n"
      "outputs: {s: 'i32[k, f, g, h]'}\n",
      "dimensions f, g, h are one: f*g*h\nspace [n, f*g*h] over n\nby [k] i64(key)\n" },
    { "kind: map\ninputs: {a: 'f32[b, h, m, f]', c: 'f32[b, h, f, n]'}\n"
      "outputs: {y: {type: 'f32[b, h, m, n]', value: 'sum(f, a * c)'}}\n",
      "space [b*h, m, n]\n" },
    { MAP "assume: {b: {max: 8}, h: {multiple_of: 16}, c: {equals: 3}, w: {min: 2}}\n" Y("x"), "size c min 3 max 3\n" },
    /* offsets, boundaries and indices */
    { MAP Y("x[0, 0, -1, 0] + x[0, 0, 0, 2]"), "  value = (x[0, -1, 0] + x[0, 0, 2])\n" },
    { MAP "boundary: {x: {b: reflect, h: wrap, w: {constant: 1}}}\n" Y("x[0, 0, -1, 0]"),
      " boundary [reflect, wrap, constant 1.0]\n" },
    { MAP Y("f32(index(b))"), "  value = f32((((index(b*c*h*w) / w) / h) / c))\n" },
    { MAP Y("f32(index(h))"), "  value = f32(((index(b*c*h*w) / w) % h))\n" },
    { MAP Y("f32(index(w))"), "  value = f32((index(b*c*h*w) % w))\n" },
    { "kind: map\ninputs: {x: 'f32[b, 3, h, w]'}\noutputs: {y: {type: 'f32[b, 3, h, w]', value: f32(index(b))}}\n",
      "  value = f32((((index(b*3*h*w) / w) / h) / i64(3)))\n" },
    { MAP "outputs: {y: {type: 'f32[w, b, c, h]', at: [w - 1 - index(w), index(b), index(c), index(h)], value: x}}\n",
      "space [b*c*h*w]\ninput x: f32[b, c, h, w]\noutput y: f32[w, b, c, h] per element, at a computed place\n" },
    { MAP "outputs: {y: {type: 'f32[w, b, c, h]', at: [index(w), index(b), index(c), index(h)], value: x}}\n",
      "space [b*c*h, w]\ninput x: f32[b, c, h, w]\noutput y: f32[w, b, c, h] per element\n" },
    { "kind: map\ninputs: {i: 'i32[n]', t: 'f32[a, b, c, d]'}\n"
      "outputs: {y: {type: 'f32[n]', value: 'at(t, i, 0, i, 1)'}}\n",
      "value = at(t, i64(i), i64(0), i64(i), i64(1))\n" },
    /* apart: computed from an index along all that are kept, or combined */
    { SUM "over: [b, h]\noutputs: {s: 'f32[c, w]'}\n", "space [b*h, c*w] over b*h\n" },
    { SUM "over: [b, h]\noutputs: {s: 'f32[c, w]'}\n",
      "input x: f32[b, c, h, w] read at its dimensions boundary [clamp, " },
    { SUM "over: [b, h]\noutputs: {s: 'f32[c, w]'}\n",
      "map: f32 = at(x, (index(b*h) / h), (index(c*w) / w), (index(b*h) % h), (index(c*w) % w))\n" },
    { SUM "over: [c, w]\noutputs: {y: {type: 'f32[b, c, h, w]', value: x / r}}\n",
      "output y: f32[b, c, h, w] per element, from its segment's result, at a computed place\n  at (index(b*h) / h), "
      "(index(c*w) / w), (index(b*h) % h), (index(c*w) % w)\n" },
    { MAP Y("x[0, -1, 1, 0] + x[0, 0, 0, 2]"), "((((index(b*c*h*w) / w) / h) % c) + i64(-1))" },
    { "kind: map\ninputs: {x: 'f32[b, c, h, w]', g: 'f32[b, h]'}\n" Y("x * g"),
      "value = (x * at(g, (((index(b*c*h*w) / w) / h) / c), ((index(b*c*h*w) / w) % h)))\n" },
    { "kind: map\ninputs: {x: 'f32[b, c, h, w]', g: 'f32[w, h, c, b]'}\n" Y("x * g"),
      "input x: f32[b, c, h, w]\ninput g" },
    { MAP "outputs: {y: {type: 'f32[b, c-1, h-1, w]', value: x}}\n", "output y: f32[b, c-1, h-1, w] per element, at" },
    { MAP Y("x + at(x, 0, 0, 0, 0)"), "at(x, i64(0), i64(0), i64(0), i64(0))" },
    /* too many */
    { MAP STEPS Y("x[0, -1, 1, 0] + x[0, 0, 0, 2]"),
      "t.yaml:2:9: error: the dimensions become [b], [c], [h], [w], which "
      "are 4; at most 3 are possible" },
    { MAP STEPS Y("x[0, -1, 1, 0] + x[0, 0, 0, 2]"), "note: 'b' and 'c' are two: 'c' is read at an offset" },
    { MAP STEPS Y("x[0, -1, 1, 0] + x[0, 0, 0, 2]"), "hint: neighbours are one where both are kept" },
    { MAP STEPS Y("x[0, -1, 1, 0] + x[0, 0, 0, 2]"),
      "t.yaml:3:10: note: dimensions that are apart are not one: 'iterate' needs them as they are" },
    { MAP "boundary: interior\n" Y("x[0, -1, 1, 0] + x[0, 0, 0, 2]"), "not one: the boundary needs them" },
    { "kind: map\ninputs: {x: 'f32[b, c, h, w]', g: 'f32[b, h]'}\n" STEPS Y("x * g"),
      "note: 'h' and 'w' are two: 'g' has only one of them" },
    { "kind: map\ninputs: {x: 'f32[b, c, h, w]', g: 'f32[w, h, c, b]'}\n" STEPS Y("x * g"),
      "note: 'b' and 'c' are two: 'g' does not have them side by side" },
    { SUM "over: [b, h]\noutputs: {s: 'f32[w, c]'}\n", "note: 'b' and 'c' are two: only one of them is combined" },
    { SUM "over: [b, h]\noutputs: {s: 'f32[w, c]'}\n", "not one: 's', which is smaller than the space, needs them" },
    { SUM "over: [b, h]\noutputs: {y: {type: 'f32[b, c, h, w]', where: x > r, value: x}}\n", "'where' needs them" },
    { "kind: reduce\ninputs: {x: 'f32[b, c, h, w]', k: 'i32[b]'}\nmap: x\noperator: max\nover: [b, h]\nby: k\n"
      "outputs: {y: 'f32[n, c, w]'}\n",
      "'by' needs them" },
    { MAP STEPS "outputs: {y: {type: 'f32[b, c-1, h-1, w]', value: x}}\n", "'c' and 'h' are two: 'y' is smaller" },
    { MAP STEPS Y("x + at(x, 0, 0, 0, 0)"), "'b' is a dimension of 'x', which is read with at()" },
    { "kind: reduce\ninputs: {x: 'f32[b, c, h, w]', g: 'f32[c]'}\noperator: {state: f32, combine: a + b * g}\nmap: x\n"
      "over: [b, h]\noutputs: {s: 'f32[c, w]'}\n",
      "not yet: 'g' in an operator, where its dimensions are apart" },
    { MAP Y("x[0, -1]"), "'x' has 4 dimensions, so it needs as many offsets" },
    { SUM "segments: {offsets: off}\noutputs: {s: 'f32[k-1]'}\n", "irregular segments need one dimension" },
    { "kind: map\ninputs: {x: 'f32[a, b, c, d, e, f, g]'}\noutputs: {y: {type: f32, value: x}}\n",
      "an array has at most 6 dimensions" },
    { "kind: reduce\ninputs: {x: 'f32[a, b, c, d]', y: 'f32[e, f, g]'}\nmap: x * y\noperator: add\noutputs: {s: f32}\n",
      "the inputs have 7 dimensions together; at most 6 are possible" },
};

Test(merge, says) { spec_rows(rows, sizeof rows / sizeof *rows); }
