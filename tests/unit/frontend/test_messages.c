/* SPDX-License-Identifier: Apache-2.0 */
/* test_messages.c - what messages and hints say, and all that a file gives cause for. */
#include "support/spec_fixture.h"

#include <stdio.h>

#define REDUCE      "kind: reduce\n"
#define STENCIL_OFF "kind: stencil\ninputs: {x: \"f32[n]\", o: \"i32[p]\"}\n"
#define STENCIL     "kind: stencil\ninputs: {x: \"f32[n]\"}\n"
#define MAP         "kind: map\ninputs: {x: \"i32[n]\"}\n"
#define TABLE       "kind: map\ninputs: {i: \"i32[n]\", t: \"f32[k, q]\"}\n"
#define LOSS        "kind: reduce\ninputs: {z: \"f32[b, v]\", label: \"i32[b]\"}\n"
#define PAIR                                                                                                           \
    "operator: {state: {first: f32, second: f32, n: i32}, combine: {first: a.first, second: b.second, n: a.n}}\n"      \
    "map: {first: x, second: x, n: 1}\n"

/* The messages of a spec as text. */
static const char *messages(struct spec *f, const char *text)
{
    spec_build(f, text);
    str_finish(&f->text);
    diags_render_text(&f->s.diags, &f->text, false);
    return spec_text(f);
}

static const struct {
    const char *text, *says;
} rows[] = {
    /* defaults that do not fit */
    { REDUCE "inputs: {x: \"f32[n]\"}\n" PAIR "outputs: {second: f32}\n", "value: r.second\n" },
    { REDUCE "inputs: {x: \"f32[n]\"}\n" PAIR "outputs: {count: i32}\n", "value: r.n\n" },
    { REDUCE "inputs: {x: \"f32[n]\"}\n" PAIR "outputs: {sum: f32}\n", "the fields r.first, r.second, r.n\n" },
    { "kind: scan\ninputs: {x: \"f32[n]\"}\n" PAIR "outputs: {sum: \"f32[n]\", n: i32}\n", "value: total.n\n" },
    /* what nothing uses */
    { STENCIL "params: {k: f32}\noutputs: {y: {type: \"f32[n]\", value: x}}\n",
      "nothing uses the param 'k' [PTXG-2216]" },
    { STENCIL "let: {t: x + 1}\noutputs: {y: {type: \"f32[n]\", value: x}}\n", "nothing uses the let 't'" },
    { REDUCE "inputs: {x: \"f32[n]\", y: \"f32[n]\"}\nmap: x\noperator: add\noutputs: {s: f32}\n",
      "nothing uses the input 'y'" },
    { REDUCE "inputs: {x: \"f32[n]\"}\noperator: {state: f32, let: {t: a * 2}, combine: a + b}\noutputs: {s: f32}\n",
      "nothing uses the let 't'" },
    { "kind: map\ninputs: {t: \"i32[b]\", w: \"f32[v, h]\", shape: \"u8[h]\"}\nspace: [b, h]\n"
      "outputs: {y: {type: \"f32[b, h]\", value: \"at(w, t, index(h))\"}}\n",
      "nothing uses the input 'shape'" },
    /* what the language lacks */
    { "kind: elementwise\ninputs: {x: \"f32[n]\"}\n", "kind: map" },
    /* a map is a stencil; messages use the spec's word */
    { "kind: map\ninputs: {x: \"f32[n]\"}\noutputs: {y: \"f32[n]\"}\n", "'y' needs a value" },
    { "kind: map\ninputs: {x: \"f32[n]\"}\noperator: add\noutputs: {y: {type: \"f32[n]\", value: x}}\n",
      "a map has no 'operator'" },
    { "kind: softmax\ninputs: {x: \"f32[m, n]\"}\n", "value: exp(x - r.max) / r.sum" },
    { "kind: filter\ninputs: {x: \"f32[n]\"}\n", "where: x > 0, value: x}" },
    { "kind: topk\ninputs: {x: \"f32[n]\"}\n", "specs/apps/nearest4.yaml" },
    { "kind: layernorm\ninputs: {x: \"f32[m, n]\"}\n", "(x - r.mean) / sqrt(r.m2 / r.n + 1e-5)" },
    { "kind: partition\ninputs: {x: \"f32[n]\"}\n", "from: end" },
    { "kind: groupby\ninputs: {x: \"f32[n]\"}\n", "by: key" },
    { "kind: weights\ninputs: {x: \"f32[n]\"}\n", "0.25 * x[-1]" },
    { "kind: joint\ninputs: {x: \"f32[n]\"}\n", "the value is reduce, scan, stencil or map" },
    { STENCIL "at: x\n", "this key belongs to an output" },
    { STENCIL "count: y\n", "many: {type: i64, count: y}" },
    { STENCIL "groupby: x\n", "by: key" },
    { STENCIL "outputs: {y: {type: \"f32[n]\", value: x, filter: x > 0}}\n", "with `where`" },
    { STENCIL "outputs: {y: {type: \"f32[n]\", value: x, if: x > 0}}\n", "with `where`" },
    { STENCIL "outputs: {y: {type: \"f32[n]\", value: x, scatter: x}}\n", "with `at`" },
    { STENCIL "outputs: {y: {type: \"f32[n]\", value: softmax(x)}}\n", "value: exp(x - r.max) / r.sum" },
    { STENCIL "outputs: {y: {type: \"f32[n]\", value: sort(x)}}\n", "specs/apps/radix_sort.yaml" },
    { STENCIL "outputs: {y: {type: \"f32[n]\", value: cumsum(x)}}\n", "running sums are a scan" },
    { STENCIL "outputs: {y: {type: \"f32[n]\", value: mean(x)}}\n", "r / f32(n)" },
    { STENCIL "outputs: {y: {type: \"f32[n]\", value: max(x)}}\n", "operator: max" },
    { STENCIL "outputs: {y: {type: \"f32[n]\", value: sum(x)}}\n", "operator: add" },
    { STENCIL "outputs: {y: {type: \"f32[n]\", value: count(x)}}\n", "accumulator: i64" },
    { STENCIL "outputs: {y: {type: \"f32[n]\", value: \"where(x > 0, x, 0)\"}}\n", "if x > 0 then x else 0" },
    { "kind: sort\ninputs: {x: \"f32[n]\"}\n", "specs/apps/radix_sort.yaml" },
    { STENCIL "histogram: x\n", "accumulator: u32, by: x" },
    { REDUCE "inputs: {x: \"f32[n]\"}\noperator: softmax\noutputs: {s: f32}\n", "value: exp(x - r.max) / r.sum" },
    { REDUCE "inputs: {x: \"f32[n]\"}\noperator: mean\noutputs: {s: f32}\n", "r / f32(n)" },
    /* results per element: of reductions alone, and with the results' own types */
    { STENCIL "reductions: {r: {map: y, operator: add}}\noutputs: {y: {type: \"f32[n]\", value: x / r}}\n",
      "nothing is called 'r'" },
    { REDUCE "inputs: {x: \"f32[n]\"}\noperator: logsumexp\noutputs: {y: {type: \"f32[n]\", value: x - r.most}}\n",
      "there is no field 'most'" },
    { REDUCE "inputs: {x: \"i32[n]\"}\noperator: add\naccumulator: i64\n"
             "outputs: {y: {type: \"i32[n]\", value: x - r}}\n",
      "i64" },
    /* a map with `where`, and one without */
    { MAP "outputs: {y: {type: \"i32[n]\", value: x}, c: {type: i64, count: y}}\n",
      "'count' needs an output with 'where', and this map has none [PTXG-2004]" },
    { MAP "outputs: {y: {type: \"i32[n]\", value: x, from: end}}\n", "'from' needs an output with 'where'" },
    { MAP "outputs: {c: {type: i64, count: x > 0}}\n", "map: x > 0, operator: add, accumulator: i64" },
    { MAP "iterate: {steps: 3, feedback: {x: y}}\noutputs: {y: {type: \"i32[n]\", where: x > 0, value: x}}\n",
      "a map with 'where' has no 'iterate' [PTXG-2004]" },
    { MAP
      "reductions: {t: {map: x, operator: add}}\noutputs: {y: {type: \"i32[n]\", where: x > 0, value: x}, t: i32}\n",
      "hint: write two stages: a map with 'reductions', and a map with 'where'" },
    { MAP "outputs: {y: {type: i32, where: x > 0, value: x}}\n", "the shape is [n]; how many are kept is" },
    { MAP "outputs: {y: {type: \"i32[n]\", where: x > 0, value: x}, t: {type: i32, value: x}}\n",
      "so it has no value in one value of all elements" },
    { "kind: map\ninputs: {x: \"i32[m, n]\"}\noutputs: {y: {type: \"i32[m, n]\", where: x > 0, value: x}, "
      "c: {type: \"i64[m]\", count: y}}\n",
      "with over: n, elements are kept and counted for each of [m]" },
    /* fields of results; a map that is missing */
    { LOSS "map: z\noperator: logsumexp\nover: v\noutputs: {y: {type: \"f32[b, v]\", value: exp(z - max) / sum}}\n",
      "hint: a field of the result is read by name: r.sum" },
    { LOSS
      "operator: logsumexp\nover: v\noutputs: {y: {type: \"f32[b]\", value: \"r.max - at(z, index(b), label)\"}}\n",
      "hint: 'z' is read with at() alone, so that its dimensions do not count: write map: z\n" },
    { "kind: scan\ninputs: {x: \"f32[n]\"}\nscans: {a: {map: x, operator: welford}, b: {map: x, operator: add}}\n"
      "outputs: {y: {type: f32, value: mean}}\n",
      "read by name: a.total.mean" },
    { REDUCE
      "inputs: {x: \"f32[n]\", o: \"i32[p]\"}\nmap: \"gather(x, o, k, add, k)\"\noperator: add\noutputs: {s: f32}\n",
      "the 'map' of a reduction cannot gather [PTXG-2214]" },
    { STENCIL_OFF "outputs: {y: {type: \"f32[n]\", value: \"gather(x, o, k, argmax, k).index\"}}\n",
      "'argmax' combines states of 2 fields, and gather() takes an expression for each, not 1 [PTXG-2210]" },
    { STENCIL_OFF "outputs: {y: {type: \"f32[n]\", value: \"gather(x, o, k, argmax, k).index\"}}\n",
      "hint: in the order of the state: value, index" },
    { STENCIL_OFF "outputs: {y: {type: \"f32[n]\", value: \"gather(x, o, k, sum, k)\"}}\n", "hint: it is called add" },
    { STENCIL_OFF "operators: {ours: {state: f32, identity: 0, combine: a - b}}\n"
                  "outputs: {y: {type: \"f32[n]\", value: \"gather(x, o, k, ours, k)\"}}\n",
      "the operator of a gather must commute, and 'ours' does not [PTXG-2214]" },
    { STENCIL_OFF "operators: {ours: {state: f32, identity: 0, combine: a - b}}\n"
                  "outputs: {y: {type: \"f32[n]\", value: \"gather(x, o, k, ours, k)\"}}\n",
      "say so in the operator: commutative: true" },
    /* indices, and functions over a dimension */
    { MAP "outputs: {y: {type: \"i32[n]\", value: \"x[x]\"}}\n", "the element at an index is at(x, x)" },
    { TABLE "outputs: {y: {type: \"f32[n]\", value: \"t[i, 0]\"}}\n", "the element at an index is at(t, i)" },
    { TABLE "outputs: {y: {type: \"f32[n]\", value: \"t[0, 0]\"}}\n",
      "to do without 'k', read 't' in a sum, sum(k, t), or at computed places, at(t, …)" },
    { TABLE "outputs: {y: {type: \"f32[n]\", value: \"at(t, i)\"}}\n", "own index along 'k' is index(k)" },
    { "kind: map\ninputs: {a: \"f32[n, f]\"}\noutputs: {y: {type: \"f32[n]\", value: \"min(f, a)\"}}\n",
      "as in least(f, a); a mean is sum(f, a) / f32(f)" },
    { "kind: matmul\ninputs: {x: \"f32[n]\"}\n", "BLAS" },
    { STENCIL "weights: [1, 2]\n", "0.25 * x[-1]" },
    { "kind: stencil\ninputs: {x: \"f32[n]\", w: \"f32[3]\"}\noutputs: {y: {type: \"f32[n]\", value: x * w}}\n",
      "0.25 * x[-1]" },
    { STENCIL "outputs: {y: {type: \"f32[n]\", value: \"x[i-1]\"}}\n", "not x[i-1]" },
    { REDUCE "inputs: {x: \"f32[n]\", k: \"i32[n]\"}\nsegments: {keys: k}\n", "sort by key and give offsets" },
    { REDUCE "inputs: {a: \"f32[m, k]\", b: \"f32[k, n]\"}\nover: k\nmap: a * b\noperator: add\n"
             "outputs: {c: \"f32[m, n]\"}\n",
      "BLAS" },
};

/* What a hint shows is a part of a spec: with what stands before that part, and with all closed, there is nothing to say of
 * the spec. */
static const char *const shown[][2] = {
#define HINT(place, words, says, starts, shows) { starts, shows },
#define ADVICE(place, words, says)
#include "frontend/hints.def"
#undef HINT
#undef ADVICE
};

/* The starts and the part in the braces of flow style, and what closes them. */
static void complete(const char *const *part, char *text, size_t room)
{
    const bool quoted = *part[0] && part[0][strlen(part[0]) - 1] == '"';
    snprintf(text, room, "{%s%s%s", part[0], part[1], quoted ? "\"" : "");
    int open = 0;
    for (const char *c = text; *c; c++)
        open += (*c == '{') - (*c == '}');
    while (open-- > 0)
        strncat(text, "}", room - strlen(text) - 1);
}

Test(messages, show_specs)
{
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        char text[600];
        complete(shown[i], text, sizeof text);
        SPEC_BEGIN(f);
        const char *says = messages(&f, text);
        cr_expect(f.p && !*says, "%s\n%s", text, says);
        spec_end(&f);
    }
}

Test(messages, say)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SPEC_BEGIN(f);
        const char *text = messages(&f, rows[i].text);
        cr_expect(strstr(text, rows[i].says), "wanted '%s' for\n%s%s", rows[i].says, rows[i].text, text);
        spec_end(&f);
    }
}

/* Used by steps, by segments, by a gather, by a let that is used, for its shape alone; a matrix times a vector. */
static const char *const quiet[] = {
    STENCIL "params: {k: i32}\niterate: {steps: k, feedback: {x: y}}\noutputs: {y: {type: \"f32[n]\", value: x}}\n",
    REDUCE
    "inputs: {x: \"f32[n]\", o: \"i64[k]\"}\nsegments: {offsets: o}\noperator: add\noutputs: {s: \"f32[k-1]\"}\n",
    "kind: stencil\ninputs: {x: \"f32[n]\", o: \"i32[p]\"}\nlet: {g: \"gather(x, o, k, max, k)\"}\n"
    "outputs: {y: {type: \"f32[n]\", value: g}}\n",
    "kind: stencil\ninputs: {x: \"f32[n]\", o: \"i32[p]\"}\noutputs: {y: {type: \"f32[n]\", value: \"gather(x, o, k, "
    "add, 1.0)\"}}\n",
    STENCIL "outputs: {y: {type: \"i64[n]\", value: index(n)}}\n",
    REDUCE "inputs: {a: \"f32[m, k]\", b: \"f32[k]\"}\nover: k\nmap: a * b\noperator: add\noutputs: {c: \"f32[m]\"}\n",
    "kind: map\ninputs: {t: \"i32[b]\", w: \"f32[v, h]\", shape: \"u8[h]\"}\n"
    "outputs: {y: {type: \"f32[b, h]\", value: \"at(w, t, index(h))\"}}\n",
    REDUCE "inputs: {a: \"f32[m]\", b: \"f32[k]\"}\nmap: a * b\noperator: add\noutputs: {c: f32}\n",
};

Test(messages, are_absent)
{
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++) {
        SPEC_BEGIN(f);
        cr_expect_str_empty(messages(&f, quiet[i]), "for\n%s%s", quiet[i], spec_text(&f));
        spec_end(&f);
    }
}

/* A param that nothing uses needs no value. */
Test(messages, unused_param_has_a_default)
{
    SPEC_BEGIN(f);
    spec_build(&f, STENCIL "params: {k: f32}\noutputs: {y: {type: \"f32[n]\", value: x}}\n");
    cr_assert(f.p && f.p->nparams == 1 && f.p->param[0].has_default && f.p->param[0].value.u == 0);
    spec_end(&f);
}

/* What follows from another mistake is not reported: a label that seems to be the map, a shape beside a list in quotes. */
Test(messages, come_alone)
{
    static const char *const rows_of_one[] = {
        LOSS
        "operator: logsumexp\nover: v\noutputs: {y: {type: \"f32[b]\", value: \"r.max - at(z, index(b), label)\"}}\n",
        REDUCE "inputs: {x: \"i32[n]\"}\nmap: 1\noperator: add\nby: \"[x, x]\"\noutputs: {y: \"i32[p, q]\"}\n",
        TABLE "outputs: {y: {type: \"f32[n]\", value: \"t[i, 0]\"}}\n",
    };
    for (size_t i = 0; i < sizeof rows_of_one / sizeof *rows_of_one; i++) {
        SPEC_BEGIN(f);
        const char *text = messages(&f, rows_of_one[i]);
        cr_expect_eq(f.s.diags.errors, 1, "%s%s", rows_of_one[i], text);
        spec_end(&f);
    }
}

/* Every error of a file is reported, each once. */
Test(problem, all_errors_of_a_file)
{
    static const char text[] = "kind: reduce\n"
                               "inputs:\n"
                               "  x: f23[n]\n"
                               "  y: f32[n]\n"
                               "params: {c: f31}\n"
                               "let: {t: yy * 2, u: t + x}\n"
                               "map: u * y + t * c\n"
                               "operator: ad\n"
                               "outputs:\n"
                               "  a: f32\n"
                               "  b: {type: f32, value: r + q}\n"
                               "asume: {}\n";
    static const int codes[] = { 2001, 2010, 2010, 2201, 2303, 2201 };
    SPEC_BEGIN(f);
    spec_build(&f, text);
    cr_expect_eq(f.s.diags.errors, 6, "%s", spec_text(&f));
    int i = 0;
    for (const struct diag *m = f.s.diags.first; m && i < 6; m = m->next, i++)
        cr_expect_eq((int)m->code, codes[i], "message %d\n%s", i, spec_text(&f));
    spec_end(&f);
}
