/* SPDX-License-Identifier: Apache-2.0 */
/* derive_impl.h - what derive.c, rewrite.c and derive_rows.c share: copies of expressions with other numbers in them. */
#ifndef PTXGEN_DIST_DERIVE_IMPL_H
#define PTXGEN_DIST_DERIVE_IMPL_H

#include "derive.h"

/* What the copy of an expression has in place of the original's. */
struct derive {
    struct arena *a;
    struct dist_split *sp;
    const struct problem *from;
    bool folds;                  /* the space is the states' and the kept axes; else that of the part */
    bool scans;                  /* folds: all states, each with those before it */
    bool rows;                   /* not folds: the part is rows, each a block: see derive_rows.c */
    bool swapped;                /* operators take their operands in the other order */
    int axis[SPACE_MAX];         /* folds: new numbers, -1: gone */
    int input[PROBLEM_ARGS_MAX]; /* of what is read at the element: new numbers, -1: gone */
    int table[PROBLEM_ARGS_MAX]; /* of what at() and sums read; -1: gone */
};

/* A new expression of the type and place of another one. */
struct expr *derive_node(struct derive *d, const struct expr *like, enum expr_kind kind, int which);
/* Copies; NULL stays NULL. */
const struct expr *derive_expr(struct derive *d, const struct expr *e);
void derive_all(struct derive *d, const struct expr *const *from, const struct expr **to, int n);
/* p's lets, and its operators of gathers. */
void derive_named(struct derive *d, struct problem *p);
struct reduction *derive_reductions(struct derive *d);
struct output derive_output(struct derive *d, const struct output *from);
/* p, on a part, becomes the same on rows. */
void derive_as_rows(struct derive *d, struct problem *p);
/* p, on a part, takes neighbours from other ranks itself. */
void derive_joined(struct derive *d, struct problem *p);
/* Can whole blocks be rows?  Else each is computed by itself. */
bool dist_has_rows(const struct dist_split *sp);

#endif
