/* SPDX-License-Identifier: Apache-2.0 */
/* packed.h - two bytes in the halves of a word: what packed.c and sums.c share. */
#ifndef PTXGEN_PACKED_H
#define PTXGEN_PACKED_H

#include "stencil_gen.h"

enum { BYTES = 0x00ff00ff, HALVES = 0x00010001, HALF_MAX = 0xffff };

/* Two points, one per half, and the largest value that a half can have. */
struct pair {
    kb_val v; /* u32 */
    uint32_t most;
};

/* The bytes of an input `at` from the window's first point and two columns on; cells remember theirs. */
struct pair pair_read(struct window *w, int input, const int *at);
/* By an operator of enum binary that is neither a product nor a shift. */
struct pair pair_combine(kb *k, int op, struct pair a, struct pair b);
/* Times a constant of which the low eight bits count. */
struct pair pair_scale(kb *k, struct pair a, uint32_t by);
/* The low bytes of the points 0 and 2, and of 1 and 3, in a word; what the casts and shifts of e above `sum`, whose
 * value these are, make of them. */
kb_val pairs_four(kb *k, struct pair even, struct pair odd);
kb_val pairs_finish(kb *k, const struct expr *e, const struct expr *sum, kb_val four);
/* Values of a row of n points: words at once where all points exist, else byte by byte. */
void packed_store(struct stencil_point *sp, int n, int o, const kb_val *word);

#endif
