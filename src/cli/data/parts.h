/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - the parts that ranks have of a job's arrays. */
#ifndef PTXGEN_CLI_PARTS_H
#define PTXGEN_CLI_PARTS_H

#include "cli.h"
#include "ptxgen/dist.h"

/* Number of the size that is split. */
int parts_split(const struct job *j, const ptxgen_dist *dist);
struct array *parts_array(struct job *j, int i); /* inputs, and then outputs */
/* The array with the split dimension is `outer` times `extent` rows of `inner` bytes; false: it has not the dimension, and
 * every rank has all of it. */
bool parts_rows(const struct job *j, int split, const struct array *a, int64_t *outer, int64_t *inner);
/* What a rank has: `count` rows from `first` on; where blocks are dealt out, from one to the next are `step` rows. */
struct part {
    int64_t first, count, block, step;
};
/* EXIT_OK, or the exit status after a message: the elements of a block, as the options say; 0: parts are consecutive. */
int parts_block(const struct options *o, int64_t *block);
/* The part of a rank, of so many rows. */
ptxgen_status parts_share(ptxgen_session *s, const struct job *j, const ptxgen_dist *dist, int64_t total, int rank,
                          int ranks, struct part *out);
/* Between the whole array and a part of it. */
void parts_copy(const struct job *j, int split, const struct array *a, char *here, const struct part *of, bool out);
enum { PARTS_WHOLE = -2 }; /* the number of no size, nor of a constant extent */
/* A stage of a program as a job of its own, with whole arrays, which ranks fill with what a visit shows of their parts. */
struct parts_stage {
    struct job of;
    int split; /* number of its size that is split, or PARTS_WHOLE: it has none, and every rank has all */
    const ptxgen_arguments *shown;
};
/* False: out of memory; also then parts_stage_finish() frees. */
bool parts_stage_begin(struct parts_stage *p, struct job *j, const ptxgen_dist *dist, int stage,
                       const ptxgen_arguments *shown);
/* What the rank has of array i. */
void *parts_stage_shown(const struct parts_stage *p, int i, const ptxgen_arguments *shown);
/* The stage against the reference, where stages_checked() said so: EXIT_OK, or another value after a message. */
int parts_stage_verify(const struct parts_stage *p, struct job *j, int stage, int64_t step);
void parts_stage_finish(struct parts_stage *p);
/* Sizes of a part, one per size of the problem; malloc; NULL: out of memory. */
int64_t *parts_sizes(const struct job *j, int split, int64_t count);

#endif
