/* SPDX-License-Identifier: Apache-2.0 */
/* access.h - how the arrays of a problem are reached from the iteration space.
 *
 * A *direct* array has every axis of the space, in order: its element number is the linear index of the point, so a run
 * of points is a run of memory and can be moved with vector accesses.  Every other array is *general*: its
 * address is computed from the indices of the point.
 */
#ifndef PTXGEN_ACCESS_H
#define PTXGEN_ACCESS_H

#include "frontend/problem/problem.h"
#include "plan.h"

/* Fields of all direct inputs, whose values a thread loads before it uses them; inputs of more are general. */
enum { DIRECT_FIELDS_MAX = 64 };
int access_direct_fields(const struct problem *p);
bool access_input_direct(const struct problem *p, int input);
bool access_output_direct(const struct problem *p, int output);
/* Array number i, inputs first, where it is direct; else NULL. */
const struct prog_array *access_direct(const struct problem *p, int i);
/* Direct, of scalars: neighbouring points are neighbours in its memory, so that their values are a vector. */
bool access_output_vector(const struct problem *p, int output);
bool access_output_whole(const struct problem *p,
                         int output); /* per element, and no dimension is shorter than its axis (f32[n-1]) */
/* Bytes of an access that takes a structure whole: of fields of one type, side by side, a power of two up to 16; else
 * 0. */
int access_structure_bytes(const struct prog_array *a);
bool access_output_in_segments(const struct problem *p, const struct output *o); /* element i is of segment i */

/* Elements per 16-byte access of the widest direct array: 16 / its element size, within [1, 16]; 1 without direct
 * arrays. */
int access_vector_width(const struct problem *p);
/* Elements of `bytes` from row to row of a tile in shared memory, whose rows have n of them: an odd number of words, or
 * of larger elements, so that threads side by side, which have places in different rows, meet different banks. */
int access_tile_pitch(int n, int bytes);
int access_widest(const struct problem *p); /* bytes of the widest field of a direct array, at least 1 */
bool access_any_direct(const struct problem *p);
bool access_beside(const struct problem *p); /* a direct input is read beside the point, too */

/* Number of points: the product of the extents. */
struct formula access_count(const struct problem *p);
struct formula access_elements(const struct problem *p, const struct prog_array *a);
/* A size, which may be a product of those that a launch is given, and an extent. */
struct formula access_size(const struct problem *p, int size);
struct formula access_extent(const struct problem *p, const struct prog_dim *d);

/* Elements before the first vector boundary that all direct arrays share, and the condition that they share one.
 * `always_zero`: only head 0 will do (a fixed combination tree).  Returns false when no guard is needed. */
struct formula access_head(const struct problem *p, int vector);
bool access_aligned_guard(const struct problem *p, int vector, bool always_zero, struct formula *guard);

/* The condition that the pointers of set[b], inputs first, begin at multiples of b bytes, a power of two; absent where
 * no set has any. */
enum { ACCESS_BYTES = 16 /* of the widest access */ };
struct formula access_begin_at(const uint64_t set[ACCESS_BYTES + 1]);

/* Bytes that one evaluation reads and writes, for the roofline. */
void access_bytes(const struct problem *p, const int64_t *size, int64_t *read, int64_t *written);

/* The whole product of states as one operator: facts about all reductions together. */
int state_fields(const struct problem *p, enum ty *types /* or NULL */);
/* Where the fields of a reduction begin in it. */
int state_first(const struct problem *p, int reduction);
/* Bytes of the widest value that is kept, scalars alone; 0: none is. */
int kept_bytes(const struct problem *p);
int state_bytes(const struct problem *p); /* of all fields, in tables */
/* Words of 4 bytes that it takes between blocks, and the byte where each field lies (offset may be NULL): fields in
 * order, each at a multiple of its size, at most of 4 bytes. */
int state_words(const struct problem *p, int *offset);
/* The same of n fields of these types. */
int fields_words(const enum ty *type, int n, int *offset);
bool state_commutative(const struct problem *p);
bool state_pad(const struct problem *p);     /* every operator has a padding element */
bool state_pad_end(const struct problem *p); /* … one that is neutral on the right of others at least */
enum determinism state_determinism(const struct problem *p); /* DET_ANY when every operator is exact */

/* Is it the sum of integers that are single bytes of a direct input, as they are or converted to the state's type? */
bool reduction_sums_bytes(const struct problem *p, const struct reduction *r);
/* Is this a reduction, and are all of them such sums?  Four bytes are then added at a time. */
bool state_sums_bytes(const struct problem *p);

#endif
