/* SPDX-License-Identifier: Apache-2.0 */
/* test_stage_messages.c - what specs with stages become, and what is said where they are misused. */

#include "support/spec_fixture.h"

#define X      "inputs: {x: 'f32[n]'}\n"
#define DOUBLE "  a: {kind: map, outputs: {y: {type: 'f32[n]', value: x * 2}}}\n"
#define TOP    "  b: {kind: reduce, map: y, operator: max, outputs: {top: f32}}\n"
#define BOTH   X "stages:\n" DOUBLE TOP
#define SINGLE X "kind: stencil\nreductions: {top: {map: abs(y - x), operator: max}}\noutputs: {y: {type: 'f32[n]', "
#define FIXED  X "kind: map\noutputs: {y: {type: 'f32[n]', value: x}"
#define AGAIN  "iterate: {steps: 3, feedback: {x: y}}\n"
#define SUM    X "kind: scan\noperator: add\n"
#define KEPT   X "stages:\n  a: {kind: scan, outputs: {y: {type: 'f32[n]', where: x > 0, value: x}"
#define PLACED X "stages:\n  a: {kind: map, outputs: {y: {value: x, type: 'f32"
#define LOOP   BOTH "outputs: [y, top]\niterate: {steps: 3, feedback: {x: y}"

static const struct {
    const char *text, *says;
} rows[] = {
    /* what they become */
    { BOTH "outputs: [y, top]\nfuse: false\n", "# stage b\n# reads: y\n# writes: top\nproblem t_b: reduce" },
    { BOTH "outputs: [top]\nfuse: false\n", "input y: f32[n]" },
    { "contract: true\n" X
      "stages:\n  a: {kind: map, outputs: {y: {type: 'f32[n]', value: x * x + x}}}\noutputs: [y]\n",
      "  value = fma(x, x, x)\n" },
    { "contract: true\ninputs: {x: 'f32[m, n]', g: 'f32[m]'}\nstages:\n" /* fused, and the same bits */
      "  a: {kind: reduce, over: n, map: x, operator: add, outputs: {q: {type: 'f32[m]', value: r * 2}}}\n"
      "  b: {kind: map, outputs: {o: {type: 'f32[m]', value: q + g}}}\noutputs: [o]\n",
      "  value = (f32((r * 2.0)) + g)\n" },
    { X "stages:\n  a: {kind: map, contract: true, outputs: {y: {type: 'f32[n]', value: x}}}\noutputs: [y]\n",
      "a stage has no 'contract': that of the whole is for all stages" },
    { LOOP "}\n", "# stages of t, 3 times\n# feedback: y -> x, in two memories" },
    { LOOP ", until: top > 5}\n", "or until the last stage says so" },
    { LOOP ", until: top > 5}\n", "output ptxgen_until: bool[1] per element\n  value = (top > 5.0)" },
    { X "stages:\n  until: {kind: reduce, operator: max, outputs: {top: f32}}\noutputs: [top]\n"
        "iterate: {steps: 2, until: top > 5}\n",
      "problem t_until_: " },
    { X "params: {k: i32, unseen: {type: i32, value: 1}}\nlet: {d: x * f32(k), e: d + 1}\nstages:\n"
        "  a: {kind: map, outputs: {y: {type: 'f32[n]', value: e}}}\noutputs: [y]\n",
      "nothing uses the param 'unseen'" },
    { X "let: {d: x + 1, unseen: nothing + d}\nstages:\n  a: {kind: map, outputs: {y: {type: 'f32[n]', value: d}}}\n"
        "outputs: [y]\n",
      "nothing uses the let 'unseen'" },
    { X "assume: {n: {min: 2}, y: {aligned: 8}, q: {min: 3}}\nstages:\n"
        "  a: {kind: map, outputs: {y: {type: 'f32[n]', value: x}}}\noutputs: [y]\n",
      "no dimension or array is called 'q'" },
    { X "stages:\n  a: {kind: map, outputs: {y: {type: 'f32[n]', value: x + f32(step)}}}\noutputs: [y]\n"
        "iterate: {steps: 2, feedback: {x: y}}\n",
      "param step: i64" },
    { X "stages:\n  a: {kind: reduce, operator: add, outputs: {s: f32}}\noutputs: [s]\n", "input x: f32[n]" },
    { X "determinism: run\nstages:\n" DOUBLE TOP "outputs: [top]\n", "problem t_b: reduce, determinism run" },
    { X "assume: {n: {min: 7}}\nstages:\n" DOUBLE TOP "outputs: [top]\n", "size n min 7" },
    { X "assume: {k: {min: 50}, z: {aligned: 16}}\nkind: reduce\noperator: add\noutputs:\n  s: f32\n"
        "  z: {type: 'f32[k]', value: x, at: index(n), combine: max, initial: 0}\n"
        "  kept: {type: 'f32[n]', value: x - r, where: x > r}\n  many: {type: i32, count: kept}\n",
      "size n\nsize k min 50\n" },
    { X "stages:\n" DOUBLE "  b: {kind: map, inputs: [x, y], outputs: {z: {type: 'f32[n]', value: y}}}\noutputs: [z]\n"
        "fuse: false\n",
      "input x: f32[n]\ninput y: f32[n]" },
    { LOOP ", until: top > 5, check_every: 4}\n", "or until the last stage says so, which runs in every 4th step\n" },
    /* a single spec with until */
    { SINGLE "value: '0.5 * (x[1] + x[-1])'}, top: f32}\niterate: {steps: 9, feedback: {x: y}, until: top < 1}\n",
      "# stages of t, 9 times, or until the last stage says so\n# feedback: y -> x, in two memories\n" },
    { SINGLE "value: x * k}, top: f32}\nparams: {k: f32}\niterate: {steps: 9, feedback: {x: y}, until: top < k}\n",
      "# stage loop\n# reads: x\n# writes: y top\nproblem t_loop: stencil" },
    { SINGLE "value: x}, top: f32}\niterate: {steps: 9, feedback: {x: y}, until: y < 1}\n", "'y' has many elements" },
    { X "kind: map\noutputs: {y: {type: 'f32[n]', value: x * f32(step)}}\niterate: {steps: 9, feedback: {x: y}}\n",
      "param step: i64" },
    { X "kind: map\noutputs: {y: {type: 'f32[n]', value: x}}\niterate: {steps: 9, feedback: {x: y}, check_every: 2}\n",
      "there is no `until`" },
    { SINGLE "value: x}, top: f32}\niterate: {feedback: {x: y}, until: top < 1}\n", "iterate needs the key 'steps'" },
    { SINGLE "value: x}, top: f32}\nover: n\niterate: {steps: 1, feedback: {x: y}, until: top < 1}\n",
      "a stencil has no 'over'" },
    { SINGLE "value: x}, top: f32}\nboundary: {x: interior}\niterate: {steps: 1, feedback: {x: y}, until: top < 1}\n",
      "iterate 1 steps x <- y" },
    { X "kind: reduce\noperator: add\noutputs: {top: f32}\niterate: {steps: 1, until: top < 1}\n",
      "a reduce has no 'iterate'" },
    /* `where` with results: two stages */
    { SUM "outputs: {y: {type: 'f32[n]', where: s > 1, value: x}, t: f32, c: {type: i64, count: y}}\n",
      "# stage scan\n# reads: x\n# writes: ptxgen_where_y t\n" },
    { SUM "direction: reverse\noutputs: {y: {type: 'f32[n]', where: s > 1, from: end}, "
          "z: {type: 'f32[n]', where: s > 1, value: x}}\n",
      "# reads: x ptxgen_where_y ptxgen_value_y\n# writes: y z\nproblem t_scan_kept: scan, inclusive, reverse" },
    { SUM "outputs: {y: {type: 'f32[n]', where: s > 1, value: x}, s: {type: 'f32[n]', where: s > 2}}\n",
      "input ptxgen_value_s: f32[n]" },
    { "inputs: {x: 'f32[m, n]'}\nkind: reduce\noperator: max\noutputs: {y: {type: 'f32[m, n]', where: x > r, value: "
      "x}}\n",
      "problem t_reduce_kept: scan, inclusive, forward, determinism any\nsize m\nsize n\nspace [m, n] over m, n\n" },
    { "inputs: {x: 'f32[m, n]', y: 'f32[n, m]'}\nkind: scan\noperator: add\nmap: x\noutputs: {z: {type: 'f32[m, n]', "
      "where: s > 1, value: y}}\n", /* of the second stage's inputs y comes first */
      "problem t_scan_kept: scan, inclusive, forward, determinism any\nsize n\nsize m\nspace [m, n] over n\n" },
    { "inputs: {x: 'f32[n]', o: 'i32[k]'}\nkind: reduce\noperator: max\nsegments: {offsets: o}\n"
      "outputs: {y: {type: 'f32[n]', where: x > r, value: x}}\n",
      "  initial false\n" },
    { X "stages:\n  a: {kind: reduce, operator: max, outputs: {y: {type: 'f32[n]', where: x < r, value: x}}}\n"
        "  a_kept: {kind: map, outputs: {z: {type: 'f32[n]', value: y}}}\noutputs: [z]\n",
      "# stage a_kept_\n" },
    { SUM "let: {s: x + 1000}\noutputs: {y: {type: 'f32[n]', where: s > 1, value: x}}\n",
      "# writes: ptxgen_where_y\n" },
    { "inputs: {x: 'f32[s]'}\nkind: scan\noperator: add\noutputs: {y: {type: 'f32[s]', where: s > 1, value: x}}\n",
      "# writes: ptxgen_where_y\n" },
    { "kind: map\ninputs: {x: 'f32[n]'}\niterate: {steps: 3, feedback: {x: y}}\n"
      "outputs: {y: {type: 'f32[n]', at: 'index(n) - i64(step)', value: x}}\n",
      "'iterate' with an output that has 'at'" },
    { SUM "outputs: {y: {type: 'f32[n]', where: s + q > 1, value: x, from: 3}}\n", "t.yaml:4:42: error" },
    { SUM "outputs: {y: {type: 'f33[n]', where: s > 1}}\n", "f33" },
    { SUM "outputs: {y: {type: 'f32[n]', where: s > 1, from: 3}}\n", "'from' is start or end" },
    { "inputs: {x: 'f32[m, n]'}\nkind: reduce\nover: n\noperator: max\n"
      "outputs: {y: {type: 'f32[n, m]', where: x > r, value: x}}\n",
      "all dimensions in their order" },
    /* what they cannot be */
    { BOTH "outputs: [top]\nfuse: no\n", "'no' is not a truth value" },
    { X "stages:\n  a: {kind: map, fuse: 3, outputs: {y: {type: 'f32[n]', value: x}}}\noutputs: [y]\n",
      "'3' is not a truth value" },
    { X "stages:\n  a: {kind: map, fuse: {}, outputs: {y: {type: 'f32[n]', value: x}}}\noutputs: [y]\n",
      "true or false" },
    { X "stages:\n  a: {kind: map, outputs: {y: {type: 'f32[n]', value: x * true}}}\n" TOP "outputs: [top]\n",
      "t.yaml:3:57: error" },
    { X "stages: {}\noutputs: [y]\n", "a spec has 1 to 31 stages" },
    { X "stages:\n" DOUBLE "outputs: []\n", "nothing is written" },
    { X "stages:\n" DOUBLE "outputs: [z]\n", "no stage writes 'z'" },
    { X "stages:\n" DOUBLE "outputs: [y, y]\n", "'y' stands here twice" },
    { X "stages:\n" DOUBLE "outputs: [x]\n", "no stage writes 'x'" },
    { X "stages:\n" DOUBLE "outputs: {y: f32}\n", "'outputs' is a list of names" },
    { X "stages:\n" DOUBLE "outputs: [y]\nkind: map\n", "a spec with stages has no key 'kind'" },
    { X "stages:\n  a: 3\noutputs: [y]\n", "a stage, as {kind" },
    { X "stages:\n" TOP DOUBLE "outputs: [top]\n", "'y' is written by stage 'a', which comes later" },
    { X "stages:\n  a: {kind: map, name: q, outputs: {y: {type: 'f32[n]', value: x}}}\noutputs: [y]\n",
      "a stage has no 'name'" },
    { X "stages:\n  a: {kind: map, inputs: {x: 'f32[n]'}, outputs: {y: {type: 'f32[n]', value: x}}}\noutputs: [y]\n",
      "the inputs of a stage are a list of names" },
    { X "stages:\n  a: {kind: map, inputs: [q], outputs: {y: {type: 'f32[n]', value: x}}}\noutputs: [y]\n",
      "no input, and no output of an earlier stage, has this name" },
    { X "stages:\n" DOUBLE "  b: {kind: map, outputs: {x: {type: 'f32[n]', value: y}}}\noutputs: [y]\n",
      "'x' is an input, or an output of a stage, already" },
    { X "params: {y: f32}\nstages:\n" DOUBLE "outputs: [y]\n", "'y' is a param already" },
    { X "stages:\n  a: {kind: map, outputs: {y: {type: 'f32[n]', value: x + z}}}\noutputs: [y]\n",
      "nothing is called 'z'" },
    { X "stages:\n" DOUBLE "  b: {kind: map, outputs: {z: {type: 'f32[n]', value: x}}}\noutputs: [z]\n",
      "nothing uses 'y'" },
    { X "stages:\n  a: {kind: stencil, boundary: interior, outputs: {y: {type: 'f32[n]', value: 'x[-1] + x[1]'}}}\n" TOP
        "outputs: [top]\n",
      "t.yaml:3:52: warning: the points at the edges of 'y' are not computed, and stage 'b' reads them" },
    { X "stages:\n  a: {kind: stencil, boundary: interior, outputs: {y: {type: 'f32[n]', value: 'x[-1] + x[1]'}}}\n"
        "outputs: [y]\n" AGAIN,
      "the points at the edges of 'y' are not computed, and stage 'a' of the next step reads them" },
    { KEPT "}}\n" TOP "outputs: [top]\n",
      "t.yaml:3:29: warning: the elements of 'y' after the kept ones are not written, and stage 'b' reads them" },
    { KEPT ", many: {type: i64, count: y}}}\n" TOP "outputs: [top, many]\n", "after the kept ones are not written" },
    { KEPT "}}\noutputs: [y]\n" AGAIN,
      "after the kept ones are not written, and stage 'a' of the next step reads them" },
    { X "stages:\n  a: {kind: reduce, operator: max, outputs: {y: {type: 'f32[n]', where: x > r / 2, value: x}}}\n" TOP
        "outputs: [top]\n",
      "after the kept ones are not written, and stage 'b' reads them" },
    { PLACED "[n]', at: 'if x > 0 then index(n) else -1'}}}\n" TOP "outputs: [top]\n",
      "t.yaml:3:28: warning: some elements of 'y' get no value, and stage 'b' reads them" },
    { PLACED "[n, 2]', at: [index(n), 'if x > 0 then 1 else 0']}}}\n" TOP "outputs: [top]\n",
      "some elements of 'y' get no value, and stage 'b' reads them" },
    { LOOP ", until: top}\n", "bool" },
    { LOOP ", until: top > 5, check_every: 0}\n", "check_every" },
    { LOOP ", until: top > 5, check_every: top}\n", "'top'" },
    { LOOP ", check_every: 4}\n", "there is no `until`" },
    { LOOP ", until: nothing > 1}\n", "nothing is called 'nothing'" },
    { LOOP ", until: y > 1}\n", "'y' has many elements" },
    { X "stages:\n  a: {kind: stencil, iterate: {steps: 2, feedback: {x: y}, until: y > 1}, outputs: {y: {type: "
        "'f32[n]', "
        "value: x}}}\noutputs: [y]\n",
      "is the iterate of the program, beside `stages`" },
    { X "stages:\n  a: {kind: stencil, iterate: {steps: 2, feedback: {x: y}}, outputs: {y: {type: 'f32[n]', "
        "value: x * f32(step)}}}\noutputs: [y]\n",
      "a loop inside a stage has none" },
    /* names that hide the step of the loop */
    { "params: {step: i64}\n" LOOP "}\n", "t.yaml:1:10: error: 'step' is the number of the step" },
    { "let: {step: 3}\n" LOOP "}\n", "t.yaml:1:7: error: 'step' is the number of the step" },
    { "inputs: {x: 'f32[n]', step: 'f32[n]'}\nstages:\n" DOUBLE "outputs: [y]\niterate: {steps: 3, feedback: {x: y}}\n",
      "t.yaml:1:23: error: 'step' is the number of the step" },
    { "inputs: {x: 'f32[step]'}\nstages:\n  a: {kind: map, outputs: {y: {type: 'f32[step]', value: x * 2}}}\n"
      "outputs: [y]\niterate: {steps: 3, feedback: {x: y}}\n",
      "t.yaml:1:18: error: 'step' is the number of the step" },
    { X "stages:\n  a: {kind: map, let: {step: x}, outputs: {y: {type: 'f32[n]', value: step}}}\noutputs: [y]\n"
        "iterate: {steps: 3, feedback: {x: y}}\n",
      "t.yaml:3:24: error: 'step' is the number of the step" },
    { X "stages:\n  a: {kind: map, outputs: {step: {type: 'f32[n]', value: x}}}\noutputs: [step]\n"
        "iterate: {steps: 3, feedback: {x: step}}\n",
      "t.yaml:3:28: error: 'step' is the number of the step" },
    { "params: {step: f32}\n" X
      "stages:\n  step: {kind: map, outputs: {y: {type: 'f32[n]', value: x * step}}}\noutputs: [y]\n",
      "param step: f32" },
    /* words that are no step of the loop: it stays one problem, and its stages read no such param */
    { "name: step\ndoc: one step after another\n" FIXED "}\n" AGAIN, "problem step: stencil" },
    { FIXED "}\n" AGAIN "let: {step: 'x * 2', a: step}\n", "let step: f32 = " },
    { FIXED
      ", top: f32}\nreductions: {top: {map: y, operator: {state: f32, let: {step: a + b}, combine: step}}}\n" AGAIN,
      "problem t: stencil" },
    { X "stages:\n  a: {kind: reduce, operator: {state: f32, let: {step: a + b}, combine: step}, outputs: {t: "
        "f32}}\noutputs: [t]\niterate: {steps: 3}\n",
      "input x: f32[n]\nreduction r" },
    { FIXED "}\n" AGAIN "let: {a: step, step: 'x * 2'}\n", "the let 'step' comes later: a let sees those before it" },
    /* names of the compiler's own */
    { "inputs: {ptxgen_where_y: 'f32[n]'}\nkind: map\noutputs: {y: {type: 'f32[n]', value: ptxgen_where_y}}\n",
      "t.yaml:1:10: error: names that begin with ptxgen_ are ptxgen's own" },
    { SUM "outputs: {y: {type: 'f32[n]', where: s > 1}, ptxgen_where_y: {type: 'f32[n]', value: s}}\n",
      "t.yaml:4:46: error: names that begin with ptxgen_ are ptxgen's own" },
    { X "stages:\n  a: {kind: map, let: {ptxgen_one: 3}, outputs: {y: {type: 'f32[n]', value: x}}}\noutputs: [y]\n",
      "t.yaml:3:24: error: names that begin with ptxgen_ are ptxgen's own" },
    { "inputs: {x: 'f32[ptxgen_where_y]'}\nkind: scan\noperator: add\noutputs: {y: {type: 'f32[ptxgen_where_y]', "
      "where: "
      "s > 1}}\n",
      "t.yaml:1:18: error: a dimension is a name or a positive integer, and no name of ptxgen's own" },
    /* a result that a condition reads through a let */
    { SUM "let: {big: s > 1}\noutputs: {y: {type: 'f32[n]', where: big, value: x}}\n",
      "'s' is a result, which lets and maps come before" },
    { X "kind: scan\nscans: {up: {map: x, operator: max}}\nlet: {big: up > 1}\n"
        "outputs: {y: {type: 'f32[n]', where: big, value: x}}\n",
      "'up' is a result, which lets and maps come before" },
    { BOTH "outputs: [y]\niterate: {steps: 3, feedback: {q: y}}\n", "no input is called 'q'" },
    { BOTH "outputs: [y]\niterate: {steps: 3, feedback: {x: q}}\n", "no stage writes 'q'" },
    { BOTH "outputs: [y]\niterate: {steps: 3, feedback: {x: top}}\n", "'x' and 'top' differ in type or shape" },
    { BOTH "outputs: [y]\niterate: {steps: many, feedback: {x: y}}\n", "no param is called 'many'" },
    { BOTH "outputs: [y]\niterate: {feedback: {x: y}}\n", "iterate needs the key 'steps'" },
    { X "stages:\n" DOUBLE "  b: {kind: map, outputs: {z: {type: 'f32[n]', value: y + step}}}\noutputs: [z]\n",
      "nothing is called 'step'" },
    { "inputs: {x: 'f32[n]', z: 'f32[n]'}\nstages:\n" DOUBLE TOP
      "outputs: [y, top]\niterate: {steps: 3, feedback: {x: y, z: y}}\n",
      "'y' is fed back twice" },
    { X "stages:\n  a: {kind: map, outputs: {y: {type: 'f32[n-1]', value: x}}}\n" TOP "outputs: [top]\n",
      "only an output may be smaller than a dimension" },
};

/* All that is read is there, or the reader can know where it ends, or the caller has it. */
static const char *const written[] = {
    X "stages:\n  a: {kind: stencil, boundary: interior, iterate: {steps: 1, feedback: {x: y}}, outputs: {y: {type: "
      "'f32[n]', value: 'x[-1] + x[1]'}}}\noutputs: [y]\n" AGAIN,
    X "stages:\n  a: {kind: map, boundary: interior, outputs: {y: {type: 'f32[n]', value: x}}}\n" TOP
      "outputs: [top]\n",
    KEPT ", many: {type: i64, count: y}}}\n"
         "  b: {kind: reduce, map: 'if index(n) < many then y else 0', operator: max, outputs: {top: f32}}\n"
         "outputs: [top]\n",
    "inputs: {x: 'f32[n]', left: 'i64[]'}\nstages:\n  a: {kind: scan, outputs: {y: {type: 'f32[n]', where: x > 0 and "
    "index(n) < left, value: x}, many: {type: i64, count: y}}}\noutputs: [y, many]\n"
    "iterate: {steps: 3, feedback: {x: y, left: many}}\n",
    KEPT "}}\n" TOP "outputs: [y, top]\n",
    KEPT "}}\n  b: {kind: map, inputs: [x, y], outputs: {z: {type: 'f32[n]', value: 'at(y, 0) + x'}}}\noutputs: [z]\n",
    PLACED "[n]', at: n - 1 - index(n)}}}\n" TOP "outputs: [top]\n",
    PLACED "[k]', at: index(n)}}}\n" TOP "outputs: [top]\n",
    PLACED "[n]', at: 'if x > 0 then index(n) else -1', combine: max, initial: 0}}}\n" TOP "outputs: [top]\n",
};

Test(stage_messages, nothing_is_said_of_what_is_written_or_need_not_be)
{
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        struct str text = { 0 };
        build_stages(written[i], &text);
        cr_expect(strstr(text.text, "# stage") && !strstr(text.text, "reads them"), "row %zu:\n%s\ngives\n%s", i,
                  written[i], text.text);
        str_finish(&text);
    }
}

Test(stage_messages, each_row_says_it)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct str text = { 0 };
        build_stages(rows[i].text, &text);
        cr_expect(strstr(text.text, rows[i].says), "row %zu:\n%s\ngives\n%s\nwithout: %s", i, rows[i].text, text.text,
                  rows[i].says);
        str_finish(&text);
    }
}
