/* SPDX-License-Identifier: Apache-2.0 */
/* stage.h - elements of all direct inputs, as they lie in memory, staged in shared memory that belongs to one warp.
 *
 * A stage has room for a number of elements of every direct array.  Copies move bytes: structures and several arrays
 * need nothing else.  What is staged is read back field by field.
 *
 * Bulk copies that begin at the boundary of a cache line before the first element read whole sectors; then that element
 * lies up to STAGED_LINE - 1 bytes after the stage's beginning (`lines`).
 */
#ifndef PTXGEN_SEG_STAGE_H
#define PTXGEN_SEG_STAGE_H

#include "llvmgen/shared/gen.h"

enum { STAGED_ARRAYS = 64, STAGED_LINE = 128 };

/* One array that is read element by element, and the warp's stages of it. */
struct staged {
    int input, bytes; /* of a stage */
    kb_ptr memory;    /* u8: stage after stage */
};

struct stages {
    struct gen *g;
    int count, arrays;
    bool lines;
    struct staged array[STAGED_ARRAYS];
};

/* `count` stages of so many elements for every warp; their bytes of each array are a multiple of 16. */
void staged_init(struct stages *s, struct gen *g, int count, int elements, bool lines);
/* Bytes from the boundary of a line to element `first` (i64) of array i, as i32: 0 without `lines`. */
kb_val staged_skew(const struct stages *s, int i, kb_val first);
/* Bytes of array i from one element to the next. */
int staged_stride(const struct stages *s, int i);
/* Where array i begins in a stage (i32), and element `first` (i64) of it in global memory; both as bytes. */
kb_ptr staged_memory(const struct stages *s, int i, kb_val stage);
kb_ptr staged_source(const struct stages *s, int i, kb_val first);
/* The warp copies words of `n` values of a type from byte `from` on, below byte `to`, through registers; `items` of
 * each lane in flight.  The caller synchronises the warp. */
void staged_copy_words(const struct stages *s, kb_ptr into, kb_ptr source, enum ty ty, int n, int items, kb_val from,
                       kb_val to);
/* The same for `elements` (i32) of array i from element `first` on: as vectors when the arrays are aligned, else the
 * largest words that their elements allow. */
void staged_copy(const struct stages *s, int i, kb_val stage, kb_val first, kb_val elements);
/* The fields of `n` elements, the first one number `at` (i32) of the stage, whose first one is element `first`. */
void staged_load(const struct stages *s, kb_val stage, kb_val first, kb_val at, int n, struct direct *out);

#endif
