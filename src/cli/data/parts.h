/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - the parts that ranks have of a job's arrays. */
#ifndef PTXGEN_CLI_PARTS_H
#define PTXGEN_CLI_PARTS_H

#include "cli.h"
#include "ptxgen/dist.h"

/* Can ranks verify what they compute?  EXIT_OK where --verify is not asked for. */
int parts_verify(const struct job *j);
/* Number of the size that is split. */
int parts_split(const struct job *j, const ptxgen_dist *dist);
struct array *parts_array(struct job *j, int i); /* inputs, and then outputs */
/* The array with the split dimension is `outer` times `extent` rows of `inner` bytes; false: it has not the dimension, and
 * every rank has all of it. */
bool parts_rows(const struct job *j, int split, const struct array *a, int64_t *outer, int64_t *inner);
/* Between the whole array and `count` of its rows from `first` on. */
void parts_copy(const struct job *j, int split, const struct array *a, char *part, int64_t first, int64_t count,
                bool out);
/* Sizes of a part, one per size of the problem; malloc; NULL: out of memory. */
int64_t *parts_sizes(const struct job *j, int split, int64_t count);

#endif
