/* SPDX-License-Identifier: Apache-2.0 */
/* bins.h - tables of states, a word of 4 or 8 bytes for each bin and reduction: those of 8 bytes first, each reduction's
 * by itself. All bits zero is a word that no element has come to (atomic_state.c). */
#ifndef PTXGEN_BINS_H
#define PTXGEN_BINS_H

#include "lower/access.h"

/* The kernels of a case, by number: elements into the table; the outputs from the table; where the table lies in scratch
 * memory, zeros into the table, which is launched first. */
enum { BINS_ADD, BINS_FINISH, BINS_CLEAR };

/* Bytes of a bin in all tables, and in those that lie before the table of reduction r. */
int bins_bytes(const struct problem *p);
int bins_before(const struct problem *p, int r);
/* Do elements only count, by constants?  The machine adds these up where they meet. */
bool bins_count(const struct problem *p);
/* How many tables a block has in shared memory. */
int bins_tables(const struct plan_case *c);

#endif
