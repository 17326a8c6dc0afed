/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - the operations of one point of a problem. */
#ifndef PTXGEN_WORK_H
#define PTXGEN_WORK_H

#include "frontend/problem/problem.h"

/* Operations per point, counted in the typed expressions: maps, one combination, values per element; each `let` once. */
struct work {
    int flops;   /* floating-point additions, multiplications, comparisons, ...; fma counts twice */
    int special; /* calls of the mathematical library, divisions */
    int periodic; /* of those, sin, cos and tan: reducing a large argument is long code, and keeps an array in local memory */
    int integer;  /* integer, logical and selecting operations */
    int products; /* those of the floating-point ones that `contract: true` takes off */
    double slots; /* all of it in f32 additions' issue slots of the target */
    double
        least; /* the fewest: additions are fused with multiplications, functions run beside them, the rest is free */
};
struct work work_of(const struct problem *p, const int64_t *size, int sm);

/* The operations of a point alone. */
int work_operations(const struct problem *p);
/* So many of them that arithmetic is what waits, not memory: nothing is gained by wider code. */
bool work_is_heavy(const struct problem *p);

#endif
