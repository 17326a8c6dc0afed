/* SPDX-License-Identifier: Apache-2.0 */
/* input_ring.h - a warp's parts of all direct inputs, brought into a ring of its own by bulk copies, some ahead of the
 * one that is used.  The whole warp arrives everywhere. */
#ifndef PTXGEN_INPUT_RING_H
#define PTXGEN_INPUT_RING_H

#include "llvmgen/shared/bulk_ring.h"
#include "llvmgen/shared/gen.h"

struct input_ring {
    struct gen *g;
    int elements; /* of a part, of each input */
    kb_val to;    /* parts before this one come through the ring */
    kb_val step;  /* from one part of the warp to its next one */
    const void *user;
    kb_val (*first)(const void *user, kb_val part); /* its first element, i64 */
    kb_val (*place)(const void *user, int vector);  /* in a part: the first element of the lane's vector, i32 */
    struct bulk_ring ring;
    struct ring_place here; /* where the next part is */
};

/* Sets ring and here; the caller sets what is above them. */
void input_ring_new(struct input_ring *r, int stages);
/* The copies of the first parts, from part `from` on, are then under way. */
void input_ring_start(struct input_ring *r, kb_val from);
/* The lane's vectors of this part, and the copy of the part that comes into its stage next. */
void input_ring_take(struct input_ring *r, kb_val part, int vectors, int vector, struct direct *d);

#endif
