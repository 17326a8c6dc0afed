/* SPDX-License-Identifier: Apache-2.0 */
/* variant_fixture.h - a spec of each kind, and devices by name. */
#ifndef PTXGEN_TESTS_VARIANT_FIXTURE_H
#define PTXGEN_TESTS_VARIANT_FIXTURE_H

#include "lower/lower_impl.h"
#include "spec_fixture.h"

#define SUM    "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {sum: f32}\n"
#define AFFINE "kind: scan\ninputs: {x: 'i32[n]'}\noperator: {state: i32, combine: a * b + b}\noutputs: {y: 'i32[n]'}\n"
#define STENCIL                                                                                                        \
    "kind: stencil\ninputs: {x: 'f32[m, n]'}\noutputs: {y: {type: 'f32[m, n]', value: 'x[0, 1] + x[0, -1]'}}\n"

static inline struct device device_of(const char *arch)
{
    struct device d;
    cr_assert(device_by_name(arch, 0, &d));
    return d;
}

/* Of the spec, the case that takes these sizes on an H200. */
static inline const struct plan_case *case_taken(struct spec *f, const char *spec, const int64_t *size)
{
    const struct device d = device_of("sm_90");
    const struct plan_options o = { .size = size, .only_these = true, .sms = 132 };
    spec_build(f, spec);
    const struct plan *plan = plan_create(&f->s, f->p, &d, &o);
    cr_assert(plan && plan->ncases > 0, "%s", spec);
    return &plan->cases[0];
}

#endif
