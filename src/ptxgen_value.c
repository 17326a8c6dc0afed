/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen_value.c - the public API: scalars to and from memory. */
#include "base/types.h"
#include "ptxgen/ptxgen.h"

ptxgen_value ptxgen_value_load(ptxgen_type t, const void *p) { return (ptxgen_value){ .u = value_load((enum ty)t, p).u }; }

void ptxgen_value_store(ptxgen_type t, void *p, ptxgen_value v) { value_store((enum ty)t, p, (union value){ .u = v.u }); }
