/* SPDX-License-Identifier: Apache-2.0 */
/* dots.h - sums of bytes, each times a constant of its own, as products of words of four bytes.
 *
 * GPUs have one instruction that multiplies four bytes by four others and adds the products up.  What a point reads is
 * covered by words: four neighbouring columns of a row, or, of what is left over, four neighbouring rows of a column.
 */
#ifndef PTXGEN_DOTS_H
#define PTXGEN_DOTS_H

#include "lower/stencil/taps.h"

/* Four bytes from a place on, and what each is multiplied by, 0 where it does not count; the first one is the lowest. */
struct dot {
    int input, at[SPACE_MAX];
    bool down; /* rows of a column, else columns of a row */
    uint32_t times;
};

struct dots {
    int n;
    struct dot dot[TAPS_MAX];
};

/* Words that cover all terms, of points in row number `row` of a window whose rows share the words. */
void stencil_dots(const struct taps *t, int rank, int row, struct dots *d);
/* Takes the sum fewer instructions so than with two points to a word? */
bool stencil_dots_pay(const struct taps *t, int rank);

#endif
