/* SPDX-License-Identifier: Apache-2.0 */
/* resident_gen.h - segments that stay in the registers of a team between being reduced and being mapped: what rows (resident.c)
 * and columns (resident_columns.c) share.
 */
#ifndef PTXGEN_RESIDENT_GEN_H
#define PTXGEN_RESIDENT_GEN_H

#include "seg_gen.h"

/* What a thread has of a segment: vectors of elements. */
struct kept {
    struct segment seg;
    kb_val exists, inside[SEG_ITEMS_MAX]; /* bool, of the segment and of each vector */
    struct direct *d;                     /* per element */
};

/* A field of a reduction's state. */
struct field {
    int red, f;
};

/* A team's view of its segments; what rows and columns have beside it follows this structure. */
struct resident {
    struct gen *g;
    int items, vector; /* vectors that a thread has of a segment, elements of a vector */
    int blocks;        /* of a team */
    kb_val length;     /* i64, of a segment */
    /* The points of vector i. */
    void (*points)(const struct resident *r, struct kept *w, int i, struct point *pt, struct point **at);
    /* x := n fields of the totals of the threads' segments, all fields of a segment side by side: of those threads of the block
     * that share it, in all these threads.  They arrive twice at least for a segment, so that none of them still reads what
     * another one writes for the next. */
    void (*meet)(const struct resident *r, int n, const struct field *at, int segments, kb_val *x);
};

/* Are the fields of a state reduced one after another (resident_fields())? */
bool resident_by_fields(const struct resident *r);
/* The total of each of the thread's segments: of those threads of the block that share it, in all of them. */
void resident_fields(const struct resident *r, struct kept *w, int segments, kb_tup *total);
/* The total of a field of `lanes` neighbouring lanes, in all of them. */
kb_val resident_field_of_lanes(struct gen *g, struct field at, kb_val x, int lanes);
/* What the thread's own elements come to; without padding, in threads that have none it is no state. */
kb_tup resident_combine(const struct resident *r, struct kept *w);
/* Does an expression read memory along the segment, which places after its end do not have?  Do maps? */
bool resident_reads(const struct problem *p, const struct expr *e);
bool resident_maps_read(const struct problem *p);

/* segreduce.resident where segments are columns. */
void emit_resident_columns(struct gen *g);

#endif
