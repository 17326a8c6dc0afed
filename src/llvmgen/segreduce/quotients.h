/* SPDX-License-Identifier: Apache-2.0 */
/* quotients.h - values of a row's elements that are divided by the same number. */
#ifndef PTXGEN_QUOTIENTS_H
#define PTXGEN_QUOTIENTS_H

#include "seg_gen.h"

struct quotients {
    const struct expr *of; /* the division, of the value of an output; NULL: there is none */
    kb_val divisor, high, low;
    kb_val fits, small; /* bool: they may be taken; where the numerators are at least QUOTIENTS_LEAST */
};
#define QUOTIENTS_LEAST 0x1p-100

/* Of the row of the point, which has its results, for a thread with n of its points, or more. */
void quotients_begin(struct quotients *q, struct point *pt, int n);
/* The least of the magnitudes of n numerators and `least`. */
kb_val quotients_least(const struct quotients *q, struct point *pt, int n, kb_val least);
/* The values of n points take the quotients from here; where they fit. */
void quotients_take(const struct quotients *q, struct point *pt, int n);

#endif
