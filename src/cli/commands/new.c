/* SPDX-License-Identifier: Apache-2.0 */
/* new.c - a commented spec of a kind, to begin with. */
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define INPUTS                                                                                                         \
    "# Types: i8 to i64, u8 to u64, f16, bf16, f32, f64, bool. A size, as n, is open until launch.\n"                  \
    "inputs:\n"

static const struct {
    const char *kind, *text;
} specs[] = {
    { "reduce",
      "# A reduction: along a dimension, all elements become one value. `ptxgen reference` lists keys and functions.\n"
      "kind: reduce\n" INPUTS "  x: f32[n]\n"
      "  y: f32[n]\n"
      "# What an element contributes.\n"
      "map: x * y\n"
      "# How two contributions become one: add, mul, min, max, and others, or an operator of your own, such as\n"
      "# {state: f32, identity: 0, combine: a + b}.\n"
      "operator: add\n"
      "# For x: f32[m, n], `over: n` gives one result per row, and an output f32[m].\n"
      "# over: n\n"
      "outputs:\n"
      "  dot: f32\n"
      "  # A value made of the result r, or of the elements, needs a type and an expression.\n"
      "  root: {type: f32, value: sqrt(abs(r))}\n" },
    { "scan",
      "# A scan: each element becomes the combination of all elements up to it. `ptxgen reference` lists keys and\n"
      "# functions.\n"
      "kind: scan\n" INPUTS "  x: i32[n]\n"
      "# What an element contributes.\n"
      "map: x\n"
      "# How two contributions become one: add, min, max, and others, or an operator of your own, such as\n"
      "# {state: i32, identity: 0, combine: a + b}.\n"
      "operator: add\n"
      "# Without the element itself: exclusive. From the last element: direction: reverse.\n"
      "mode: inclusive\n"
      "outputs:\n"
      "  sums: i32[n]\n"
      "  # The result at the element is s, the result of all elements is total.\n"
      "  all: {type: i32, value: total}\n" },
    { "stencil",
      "# A stencil: each point gets a value of its neighbours. `ptxgen reference` lists keys and functions.\n"
      "kind: stencil\n" INPUTS "  u: f32[m, n]\n"
      "params:\n"
      "  c: {type: f32, value: 0.25}\n"
      "# What a read beyond the edge gives: clamp, wrap, reflect, mirror, {constant: 0.0}, or interior.\n"
      "boundary: clamp\n"
      "outputs:\n"
      "  # Offsets count from the point.\n"
      "  out:\n"
      "    type: f32[m, n]\n"
      "    value: u + c * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u)\n"
      "# Several steps in a launch: the output is the input of the next step.\n"
      "iterate:\n"
      "  steps: 1\n"
      "  feedback: {u: out}\n" },
    { "map", "# A map: each element gets a value of its own. `ptxgen reference` lists keys and functions.\n"
             "kind: map\n" INPUTS "  x: f32[n]\n"
             "  y: f32[n]\n"
             "params:\n"
             "  a: {type: f32, value: 2}\n"
             "outputs:\n"
             "  z: {type: \"f32[n]\", value: a * x + y}\n" },
    { "stages",
      "# A program: stages run one after the other, and read what earlier stages write. `ptxgen reference` lists keys\n"
      "# and functions.\n" INPUTS "  u: f32[m, n]\n"
      "# Params are for all stages.\n"
      "params:\n"
      "  steps: {type: i32, value: 100}\n"
      "  eps: {type: f32, value: 0.001}\n"
      "stages:\n"
      "  # Each stage is a spec without inputs and params.\n"
      "  sweep:\n"
      "    kind: stencil\n"
      "    boundary: clamp\n"
      "    outputs:\n"
      "      next: {type: \"f32[m, n]\", value: \"0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])\"}\n"
      "  # An output with one element is a scalar of later stages, and of `until`.\n"
      "  change:\n"
      "    kind: reduce\n"
      "    map: abs(next - u)\n"
      "    operator: max\n"
      "    outputs: {moved: f32}\n"
      "# What leaves the program; all else stays on the GPU.\n"
      "outputs: [next, moved]\n"
      "# All stages are repeated: at most so many steps, or until the condition holds. `step` counts from 0.\n"
      "iterate:\n"
      "  steps: steps\n"
      "  feedback: {u: next}\n"
      "  until: moved < eps\n" },
};
enum { KINDS = sizeof specs / sizeof *specs };

int cmd_new(const struct options *o)
{
    const char *names[KINDS], *kind = o->operands.n == 1 ? o->operands.item[0] : "", *out = o->out ? o->out : "-";
    for (int i = 0; i < KINDS; i++) {
        names[i] = specs[i].kind;
        if (strcmp(kind, specs[i].kind) != 0) {
            continue;
        }
        if (access(out, F_OK) == 0) {
            return fail(EXIT_USAGE, "-o %s: the file exists; a new spec needs a new name", out);
        }
        return write_file(out, specs[i].text, strlen(specs[i].text));
    }
    const char *near = nearest(kind, (int)strlen(kind), names, KINDS);
    return fail(EXIT_USAGE, "expected reduce, scan, stencil, map or stages%s%s%s", near ? "; did you mean '" : "",
                near ? near : "", near ? "'?" : "");
}
