/* SPDX-License-Identifier: Apache-2.0 */
/* ref.h - the oracle: plain sequential evaluation of any problem of the language. */
#ifndef PTXGEN_REF_H
#define PTXGEN_REF_H

#include "frontend/problem/problem.h"

/* Evaluate into the outputs.  args as for a launch, pointers on the host.  NULL on success, else a message in the
 * session's arena (a size of zero without identity or init, negative steps, …). */
const char *ref_run(struct ptxgen_session *s, const struct problem *p, const struct run_args *args);

/* Like ref_run with floating-point state and maps carried in double, beside an error bound per output element
 * (absolute): what any order of combination in the declared types may differ by, from n, the types and the depth of the
 * tree.  bound[o] has one double per element and field of output o, or is NULL. */
const char *ref_bound(struct ptxgen_session *s, const struct problem *p, const struct run_args *args,
                      double *const *bound);

/* Evaluate one expression without element context (init, identity, params). */
union value ref_const(const struct problem *p, const struct expr *e, const struct run_args *args);

/* One operation on scalars, as the language defines it.  t is the type of the operands; ref_call's t is that of the
 * value operands (select: of the arms).  Integer results are wrapped to t; comparisons, isnan and isinf give 0 or 1. */
union value ref_unary(enum unary op, enum ty t, union value a);
union value ref_binary(enum binary op, enum ty t, union value a, union value b);
union value ref_call(enum fn op, enum ty t, const union value *arg);
union value ref_cast(enum ty from, enum ty to, union value a);
double ref_round(enum ty t, double x);

/* out = a combined with b by one operator on its own; nfields values each, out may be a or b.  args gives what the
 * operator reads: params, sizes, and element 0 of inputs. */
void ref_operate(const struct problem *p, const struct op *op, const struct run_args *args, const union value *a,
                 const union value *b, union value *out);

#endif
