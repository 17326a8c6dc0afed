/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - what a kernel stores.
 *
 * An emitter knows when values are known: those of these points, or the state of this segment.  The form of each output
 * (output.def) says what is stored then, and where; only this file knows the forms.  A new form is a row of output.def
 * and the function of output.c that this row asks for.  Storing one point at a time then works in every strategy.
 *
 * Emitters that move whole tiles (through shared memory, as words, by bulk copies) take vector outputs
 * (access_output_vector) differently: they ask for values with output_value(), and store values that lie side by side
 * in memory with output_store_vector().
 */
#ifndef PTXGEN_OUTPUT_H
#define PTXGEN_OUTPUT_H

#include "gen.h"

/* What differs at points that are not plain elements (stencils); struct point has NULL for all that do not. */
struct point_outputs {
    kb_val (*value)(struct point *pt, int output, int field);
    kb_val (*written)(struct point *pt, int output);              /* bool: the point has a value for this output */
    kb_ptr (*at)(struct point *pt, int output);                   /* where the value lies in a vector output */
    bool (*keeps)(struct point *pt, int output, const kb_val *x); /* takes the values, so that nothing is stored here */
    bool structures; /* in a case with aligned arrays, structures of equal fields begin at multiples of their size */
};

/* ---- at points --------------------------------------------------------------------------------------------------- */

/* Field f of an output at the point. */
kb_val output_value(struct point *pt, int output, int f);
/* One output AT_POINT, whatever its form and the order of its dimensions; nothing where the output is shorter than the
 * space.  Any threads. */
void output_store(struct point *pt, int output);
/* All outputs AT_POINT of n points that have values and are neighbours in the order of the space; `aligned`: the first one begins a
 * vector of n in every vector output.  outputs_store: the points lie anywhere; points_store: in an array. */
void outputs_store(struct point *const *pt, int n, bool aligned);
void outputs_store_at(enum moment moment, struct point *const *pt, int n, bool aligned);
void points_store(struct point *pt, int n, bool aligned);
/* The same for one point that may have no value. */
void point_store(struct point *pt);
/* The fields of an element of each output, one after the other, meet what these hold there.  Any threads. */
void outputs_combine(struct gen *g, kb_val element, kb_tup x);
/* What an element of an output holds before; the bytes between fields of a word that is combined, too. */
void output_store_initial(struct gen *g, int output, kb_val element, const kb_val *x);
/* Values of n neighbouring points of a vector output, in the order of memory, of which the first lies at `at`. */
void output_store_vector(struct gen *g, int output, kb_ptr at, int n, bool aligned, const kb_val *x);
/* The whole block arrives, after a barrier.  Stores n (i32) kept values from shared memory, after the `before` (i64)
 * values that are stored already; the whole array has `length` elements. */
void output_store_kept(struct gen *g, int output, kb_ptr from, kb_val n, kb_val before, kb_val length);
/* The element number of the point, i64, and whether the output, which may be shorter than the space, has it. */
kb_val output_element(struct point *pt, int output);
kb_val output_has(struct point *pt, int output);

/* ---- with a total ------------------------------------------------------------------------------------------------ */

/* All outputs AT_TOTAL.  One thread; pt->state is the total, and pt has the number of the segment and the indices along
 * the kept axes. */
void outputs_store_total(struct point *pt);

/* ---- with results (results.c), see lower/results.h ---------------------------------------------------------------- */

/* One thread: leaves the state of the segment in the buffer "results", where the case has one.  pt->state is the state,
 * and pt->segment the segment's number (absent: there is a single segment). */
void results_leave(struct gen *g, const struct point *pt);
/* What was left there. */
kb_tup results_read(struct gen *g, kb_val segment);
/* The point's values take these results of its segment.  What follows from them alone is computed here, once; other points of
 * the segment use that if they have its `env.sum`. */
void results_ahead(struct point *pt, const kb_tup *results);
/* The last kernel of the case: any segments, any order of dimensions; every element is read again. */
void emit_results(struct gen *g);
/* … where segments between offsets were mapped but for those that several blocks reduced (segreduce/mapped.c). */
void emit_whole_rest(struct gen *g);
/* The first launch of the case: the initial values of outputs. */
void emit_initials(struct gen *g);

#endif
