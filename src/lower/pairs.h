/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.h - problems whose elements pair a row of one table with a row of another one, as distances do: the value at
 * [n, k] is made of sums over f of x[n, f] and c[k, f].  Or the problem reduces the third dimension itself, as a product of matrices
 * does: r[i, j] reduces f(a[i, k], b[j, k]) over k.  Terms are then the elements of a segment, and the two sides of a tile
 * are the kept axes, in order.
 */
#ifndef PTXGEN_PAIRS_H
#define PTXGEN_PAIRS_H

#include "access.h"

enum {
    PAIRS_SHARED_MAX = 48 * 1024, /* bytes of tiles that a plan chooses by itself, on every device */
    PAIRS_OPERANDS_MAX = 8,
    PAIRS_TERMS = 16, /* of a tile in shared memory */
    PAIRS_VECTOR = 4, /* columns of a product side by side, whose terms are in tiles */
    PAIRS_MAX = 64,   /* of a thread, … */
    PAIRS_WORDS = 64  /* … and registers for their sums */
};

/* A field of a table of two dimensions: one follows a side of the tiles, along the other one the sums run. */
struct pairs_operand {
    int input, field;
    int axis;        /* of the space; of a product the number of the kept axis among such */
    bool terms_last; /* the sums run along its last dimension */
};
enum { PAIRS_PRODUCT_RANK = 3 };

struct pairs {
    struct prog_dim terms; /* of the sums */
    bool product;          /* the problem reduces what the sums would run over */
    int kept[2], reduced;  /* of a product: axes of the space */
    int words;             /* registers that a pair holds: its sums, or states, and what is read for it alone */
    int noperands;
    struct pairs_operand operand[PAIRS_OPERANDS_MAX];
};

/* What the sums of a reduction's elements read, or those of a map's outputs.  False, and *why: there are no pairs. */
bool pairs_of(const struct problem *p, struct pairs *out, const char **why);
/* Does e, inside a sum, read this operand? */
bool pairs_is(const struct problem *p, const struct expr *e, const struct pairs_operand *o);
/* Elements between the rows of a tile of so many, for one term: lanes that store a column of it use different banks. */
int pairs_pitch(const struct problem *p, const struct pairs_operand *o, int rows);

/* 2, tiles of the terms at hand and of the next ones, where threads can copy values while they compute (copies: the
 * device can) and memory suffices; else 1.  rows: of a tile, by axis. */
int pairs_stages(const struct problem *p, bool copies, const int *rows);
/* Bytes of shared memory of all tiles. */
int64_t pairs_shared(const struct problem *p, const struct device *d, const int *rows);

#endif
