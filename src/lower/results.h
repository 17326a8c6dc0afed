/* SPDX-License-Identifier: Apache-2.0 */
/* results.h - reduce, then map: the kernel that writes the outputs that use the results of their segment.
 *
 * Any strategy for reductions may come first.  Where the strategy finishes a segment's state, it also leaves that in the
 * buffer "results", and a last kernel of the case reads the inputs again.  A strategy that writes such outputs itself
 * sets `maps` of its cases.
 */
#ifndef PTXGEN_RESULTS_H
#define PTXGEN_RESULTS_H

#include "access.h"

struct planner;
/* Builds a case: the strategy's part, and the last kernel where the problem needs one.  False after a diagnostic. */
bool plan_case_build(struct planner *pl, struct plan_case *c);
/* Is it the kernel "fill"?  Where an output has an initial value, the first launch of every case writes it. */
bool initials_kernel(const struct plan_case *c, const struct prog_kernel *kernel);
/* Is it that last kernel? */
bool results_kernel(const struct plan_case *c, const struct prog_kernel *kernel);
/* Between offsets, how many vectors a thread takes for each search of its warp. */
enum { RESULTS_ROUNDS = 4 };
/* Elements of a thread's vector there. */
int results_vector(const struct problem *p, const struct plan_case *c);
/* A state in the buffer: where its fields lie, and how many bytes it has. */
int results_layout(const struct problem *p, int *offset);

#endif
