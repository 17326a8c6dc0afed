/* SPDX-License-Identifier: Apache-2.0 */
/* settle.h - conditions on a state and an element under which the element does not decide what the two combine to. */
#ifndef PTXGEN_SETTLE_H
#define PTXGEN_SETTLE_H

#include "frontend/problem/problem.h"

enum { SETTLE_MAX = 8 };
struct settle {
    int n;
    const struct expr *condition[SETTLE_MAX]; /* of the operator: a is the state, b the element */
    bool holds[SETTLE_MAX];                   /* how it has to come out */
};
/* Has the only reduction such conditions for elements as its maps make them, and costs its operator more than they do?
 * Only where no array is read in vectors, so that threads have long rows of elements and wait for arithmetic: H100, four
 * largest of 2^16 rows of 1000 in memory, 31 to a lane: 99 us, 142 in this way. */
bool settle_find(const struct problem *p, struct settle *found);

#endif
