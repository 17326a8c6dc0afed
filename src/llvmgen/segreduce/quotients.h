/* SPDX-License-Identifier: Apache-2.0 */
/* quotients.h - values of a row's elements that are divided by the same number. */
#ifndef PTXGEN_QUOTIENTS_H
#define PTXGEN_QUOTIENTS_H

#include "seg_gen.h"

struct quotients {
    const struct expr *of; /* the division, of the value of an output; NULL: there is none */
    bool falls;            /* the numerators are exponentials of at most 0 */
    kb_val divisor, high, low;
    kb_val fits, small; /* bool: the divisor is in range; … if numerators are not too small */
};
/* Of the row of the point, which has its results, for a thread with n of its points, or more. */
void quotients_begin(struct quotients *q, struct point *pt, int n);
/* The magnitudes of the numerators of n points: the least of these and `least`, the greatest of these and `most`. */
void quotients_range(const struct quotients *q, struct point *pt, int n, kb_val *least, kb_val *most);
/* May all elements take quotients, of whose numerators these are the least and the greatest? */
kb_val quotients_fit(kb *k, const struct quotients *q, kb_val least, kb_val most);
/* The values of n points take the quotients from here. */
void quotients_take(const struct quotients *q, struct point *pt, int n);

#endif
