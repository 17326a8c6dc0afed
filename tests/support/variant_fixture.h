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

#endif
