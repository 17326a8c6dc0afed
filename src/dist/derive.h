/* SPDX-License-Identifier: Apache-2.0 */
/* derive.h - the problems that each rank solves so that all ranks together solve one.
 *
 * One dimension is split: each rank has consecutive elements of it, in the order of the ranks; or blocks of elements are
 * dealt to the ranks in turn, and each block is a piece of its rank's part.  A stage is a problem of
 * its own, made of the expressions of the user's problem, and is planned and compiled like any other:
 *
 *     LOCAL    the problem itself on the rank's part, where nothing is combined across ranks, and scans that begin
 *     INNER    a stencil's LOCAL without the elements whose neighbours along the dimension are on other ranks
 *     JOINED   the same with these elements, whose neighbours its kernel gets from the ranks beside it: derive_joined.c
 *     STEPS    a stencil's time steps one after the other, as many as one more param says, with the user's boundaries
 *     JOINED_STEPS
 *              the same on the whole part, as JOINED: each kernel of several steps exchanges rows for all of them
 *     PARTIAL  a reduction's or scan's states of the rank's part, without `init`, with `by` one for each bin; a
 *              reduction's outputs per element
 *     TOTAL    folds the states of all ranks in their order, begins with `init`, and writes the results
 *     CARRY    the same for the ranks before this one; writes the state
 *     NEXT     the scan of the rank's part, which begins with that state
 *     LOCAL_ROWS, PARTIAL_ROWS, NEXT_ROWS
 *              the same for all whole blocks of the rank at once, as rows of one array: derive_rows.c
 *     CARRIES  with rows, in place of TOTAL and CARRY of a scan: the fold of the states up to each block, and the totals
 *
 * On a rank's part, sizes count the part.  Expressions see the whole size and positions in the whole: these are two more
 * params.  States travel as structures in memory, with all fields of all reductions.
 */
#ifndef PTXGEN_DERIVE_H
#define PTXGEN_DERIVE_H

#include "frontend/problem/problem.h"

enum dist_stage {
    STAGE_LOCAL,
    STAGE_INNER,
    STAGE_JOINED,
    STAGE_STEPS,
    STAGE_JOINED_STEPS,
    STAGE_PARTIAL,
    STAGE_TOTAL,
    STAGE_CARRY,
    STAGE_NEXT,
    STAGE_LOCAL_ROWS,
    STAGE_PARTIAL_ROWS,
    STAGE_NEXT_ROWS,
    STAGE_CARRIES,
    DIST_STAGES
};

/* Do its kernels take rows of other ranks themselves? */
static inline bool dist_stage_joins(enum dist_stage stage)
{
    return stage == STAGE_JOINED || stage == STAGE_JOINED_STEPS;
}

/* A stage and where its arguments come from. */
struct dist_derived {
    const struct problem *problem; /* NULL: not needed */
    bool folds;                   /* TOTAL, CARRY, CARRIES: sizes are the whole ones; one more size counts the states */
    int input[PROBLEM_ARGS_MAX];  /* per input of the stage: the user's, or -1: states */
    int output[PROBLEM_ARGS_MAX]; /* likewise */
};

struct dist_split {
    const struct problem *problem; /* the user's */
    int size, axis;                /* the dimension that is split */
    bool combined;                 /* it is reduced or scanned */
    int64_t before, after;         /* neighbours along it that an element reads */
    bool alike;                    /* nothing of it is split: each rank solves all of it, with the same bits */
    bool interior;                 /* points that read beyond the whole are not computed */
    bool wraps, only_wraps;        /* some, all neighbours beyond the whole are those at its other end */
    bool indexed;                  /* expressions read positions along it */
    int64_t block;                 /* elements of the blocks that ranks have in turn; 0: consecutive parts */
    bool pieces;     /* a part is computed in pieces: blocks, or what the whole size alone decides; see piece_of() */
    bool rows;       /* whole blocks are computed together */
    int state_bytes; /* of the states of all reductions, one element */
    struct dist_derived stage[DIST_STAGES];
};

/* split: name of a dimension, or NULL: the first of the iteration space that has a size.  NULL after a message that
 * says what cannot be distributed, and where it stands. */
const struct dist_split *dist_derive(struct ptxgen_session *s, const struct problem *p, const char *split,
                                     int64_t block);

/* Can the problem be split along sp->axis?  False after a message.  Decides about pieces. */
bool dist_supported(struct ptxgen_session *s, struct dist_split *sp);

/* Can a kernel on the part take neighbours from other ranks itself? */
bool dist_joins(const struct dist_split *sp);
/* And one of several time steps?  a: for a reason that is not read. */
bool dist_joins_steps(const struct dist_split *sp, struct arena *a);
/* How many steps such a kernel computes at most; 0: there is none. */
int dist_joined_steps(const struct dist_split *sp);

/* at(): is its place along dimension k of the array that of the element, along the split dimension? */
bool dist_own_place(const struct dist_split *sp, const struct expr *at, int k);

/* Does the axis disappear: is it reduced, scanned, or beside a stencil's reductions? */
bool dist_reduced(const struct problem *p, int axis);

/* Do all its operators give the same bits in any order? */
bool dist_exact(const struct problem *p);

#endif
