/* SPDX-License-Identifier: Apache-2.0 */
/* stages_fixture.h - a session on the GPU that records, a program in it, and one whose loop ends by itself. */
#ifndef PTXGEN_STAGES_FIXTURE_H
#define PTXGEN_STAGES_FIXTURE_H

#include "ptxgen/stages.h"

#include "support/launch_fixture.h"

static ptxgen_session *s;
static ptxgen_problem *p;

static void begin_stages(void)
{
    setup();
    cr_assert_eq(ptxgen_session_create(&s), PTXGEN_OK);
}

static void end_stages(void)
{
    ptxgen_session_destroy(s);
    teardown();
}

static void read_spec(const char *text)
{
    cr_assert_eq(ptxgen_problem_from_string(s, text, strlen(text), "t", &p), PTXGEN_OK, "%s", message_of(s));
}

/* Values go towards their mean; the loop ends when the largest step is small. */
static const char relax[] =
    "inputs: {x: 'f32[n]'}\nparams: {steps: i32, eps: f32}\nstages:\n"
    "  mean: {kind: reduce, map: x, operator: add, outputs: {mu: {type: f32, value: r / f32(n)}}}\n"
    "  move: {kind: map, outputs: {y: {type: 'f32[n]', value: x + (mu - x) * 0.5}}}\n"
    "  far: {kind: reduce, map: abs(y - x), operator: max, outputs: {moved: f32}}\n"
    "  late: {kind: map, inputs: [y], outputs: {when: {type: 'i64[n]', value: step}}}\n"
    "outputs: [y, moved, when]\n"
    "iterate: {steps: steps, feedback: {x: y}, until: moved < eps}\n";

#endif
