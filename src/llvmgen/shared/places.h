/* SPDX-License-Identifier: Apache-2.0 */
/* places.h - the one way in which scans store results.  What is stored follows from the problem; where a thread's results
 * lie, and which of them go to memory together, follows from an arrangement of places.
 */
#ifndef PTXGEN_PLACES_H
#define PTXGEN_PLACES_H

#include "output.h"

enum { PLACES_AT_ONCE_MAX = 128 };

/* How an output reaches memory. */
enum store_way {
    STORE_ALONE,    /* each place by itself, if it is inside: any output per element */
    STORE_TOGETHER, /* values of `at_once` places go to `store`: an output of scalars, which lies as the elements do */
    STORE_KEPT,     /* the fields at each place, inside or not, go to `keep`, which has them stored later */
    STORE_DONE,     /* it has been stored */
    STORE_PACKED    /* `store` has the values in another form; called once, without values */
};

/* Places whose results a thread stores.  The functions get `of`. */
struct places {
    struct gen *g;
    void *of;
    int n, at_once;                                   /* at_once divides n */
    void (*point)(void *of, struct point *pt, int i); /* place i, with its state and what has been loaded there */
    kb_val (*inside)(void *of, int i);                /* bool: may place i be written? */
    enum store_way (*way)(void *of, int output);
    void (*store)(void *of, int output, int i, kb_val *x); /* places i, i + 1, …; stores no more than is inside */
    void (*keep)(void *of, int output, int i, const kb_val *x); /* NULL: no output is stored in this way */
};
/* Store all outputs per element. */
void places_store(const struct places *p);

#endif
