/* SPDX-License-Identifier: Apache-2.0 */
/* taps.h - an output of bytes as a sum of what its points read, each times a constant.
 *
 * Such sums share parts: rows and planes of them have the same value for several points of a window.
 */
#ifndef PTXGEN_TAPS_H
#define PTXGEN_TAPS_H

#include "lower/stencil/stencil.h"

enum { TAPS_MAX = 256, TAPS_SPAN = 16 };

/* A read at a distance from the point, and the low eight bits of what it is multiplied by, not 0. */
struct tap {
    int input, at[SPACE_MAX];
    uint8_t times;
};

struct taps {
    int n;
    struct tap tap[TAPS_MAX]; /* each place once */
    uint8_t plus;             /* a constant */
    int visited;              /* terms, with lets written out */
    const struct expr *sum;   /* what they add up to; above it are casts and shifts to the right by constants */
};

/* False: stencil_packs() does not hold, there is more than one output, or its value is no such sum, or of more or farther
 * reads than TAPS_MAX and TAPS_SPAN. */
bool stencil_taps(const struct problem *p, struct taps *t);
/* Are points sums of so many reads, alike but for their places, that windows of them share parts of these? */
bool stencil_shares_sums(const struct problem *p);
/* And are these parts words of four bytes (dots.h), not sums of rows and planes? */
bool stencil_by_dots(const struct problem *p);

/* Does what points read of each row of an input lie around their own column, none missing, at most so far away? */
bool stencil_symmetric_rows(const struct problem *p, int input, int most);

#endif
