/* SPDX-License-Identifier: Apache-2.0 */
/* bins.h - tables of states, a word of 4 or 8 bytes for each bin and reduction: those of 8 bytes first, each reduction's
 * by itself. All bits zero is a word that no element has come to (atomic_state.c). */
#ifndef PTXGEN_BINS_H
#define PTXGEN_BINS_H

#include "lower/access.h"

struct planner;

/* The kernels of a case, by number: elements into the table; the outputs from the table; where the table lies in scratch
 * memory, zeros into the table, which is launched first. */
enum { BINS_ADD, BINS_FINISH, BINS_CLEAR };

/* Bytes of a bin in all tables, and in those that lie before the table of reduction r. */
int bins_bytes(const struct problem *p);
int bins_before(const struct problem *p, int r);
/* Do elements only count, by constants?  The machine adds these up where they meet. */
bool bins_count(const struct problem *p);
/* Is that more than a word of 4 bytes?  Then tables of a block have counters of 4 bytes in place of it. */
bool bins_counters(const struct problem *p);
/* Do blocks combine their tables with the outputs, at computed places (problem.binned)? */
static inline bool bins_placed(const struct problem *p) { return p->nby && p->output[0].combine; }
/* How many tables a block has in shared memory. */
int bins_tables(const struct plan_case *c);
/* Of tables of threads: is each that of one column, the dimensions that are kept after those that are reduced? */
bool bins_columns(const struct problem *p);
/* Bins that the table in global memory of a case with tables in shared memory has room for. */
int bins_capacity(const struct plan_case *c, const struct problem *p);

/* ---- what the planning of the strategies shares (bins.c) --------------------------------------------------------- */
enum { BINS_SHARED_RESERVED = 1024 /* bytes of shared memory that are left over */ };
/* What is known about the number of bins, of the dimensions of `by` and the kept ones; checks that it fits. */
void bins_range(struct planner *pl, int64_t *lo, int64_t *hi);
/* Are there so many elements that tables in shared memory pay? */
struct formula bins_worthwhile(const struct problem *p);
/* Kernels, the table and steps of a case; `shared`: elements come to tables in shared memory first. */
bool bins_build(struct planner *pl, struct plan_case *c, struct formula table, bool shared);

#endif
