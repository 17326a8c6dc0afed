/* SPDX-License-Identifier: Apache-2.0 */
/* bins.h - tables of states: for each bin the words of each reduction (op_words), of 4 or 8 bytes, and a word that locks the
 * bin where a state has several words.  Each word has a table by itself, those of 8 bytes first.  All bits zero are a state
 * that no element has come to (atomic_state.c). */
#ifndef PTXGEN_BINS_H
#define PTXGEN_BINS_H

#include "lower/access.h"

struct planner;
struct strategy;

/* The kernels of a case, by number: elements into the table; the outputs from the table; where the table lies in scratch
 * memory, zeros into the table, which is launched first. */
enum { BINS_ADD, BINS_FINISH, BINS_CLEAR };

enum { BINS_WORDS_MAX = STATE_FIELDS_MAX + 1 };
/* Words of a bin, in the order of the reductions, without the lock; is there one, after them?  Bytes of a word. */
int bins_words(const struct problem *p);
bool bins_locked(const struct problem *p);
int bins_word_bytes(const struct problem *p, int word);
/* Bytes of a bin in all tables, in all but that of the lock, and in those that lie before the table of a word. */
int bins_bytes(const struct problem *p);
int bins_state_bytes(const struct problem *p);
int bins_before(const struct problem *p, int word);
/* Do elements only count, by constants?  The machine adds these up where they meet. */
bool bins_count(const struct problem *p);
/* Is that more than a word of 4 bytes?  Then tables of a block have counters of 4 bytes in place of it. */
bool bins_counters(const struct problem *p);
/* Do blocks combine their tables with the outputs, at computed places (problem.binned)? */
static inline bool bins_placed(const struct problem *p) { return p->nby && p->output[0].combine; }
/* How many tables a block has in shared memory; is each that of a thread alone? */
int bins_tables(const struct plan_case *c);
bool bins_private(const struct plan_case *c);
/* Of tables of threads: is each that of one column, the dimensions that are kept after those that are reduced? */
bool bins_columns(const struct problem *p);
/* Has each row tables of its own, in the block that takes it?  Then `bins` are those of a row, and the block writes the
 * outputs. */
bool bins_of_rows(const struct plan_case *c);
/* Have the blocks tables of a part of the bins each, so that all parts read all elements?  `bins` are those of a part, and
 * there are as many parts as the launch's bins need, up to `parts`. */
bool bins_parted(const struct plan_case *c);
/* Do blocks leave their tables apart, for the kernel that writes the outputs to join?  Where bins are locked, blocks would wait
 * for each other at every bin. */
bool bins_apart(const struct plan_case *c, const struct problem *p);
/* Lanes that join what tables which lie apart have of a bin. */
static inline int bins_joined_by(const struct plan_case *c) { return bins_parted(c) ? 1 : 32; }
/* Bins that the table in global memory of a case with tables in shared memory has room for. */
int bins_capacity(const struct plan_case *c, const struct problem *p);

/* ---- what the planning of the strategies shares (bins.c) --------------------------------------------------------- */
enum { BINS_SHARED_RESERVED = 1024 /* bytes of shared memory that are left over */ };
/* A case and its sizes; lanes, bins: of its tables, where it has them in shared memory. */
struct bins_shape {
    const char *name, *variant;
    int lanes, bins;
    int64_t most; /* bins that there may be: of a row, if rows have tables of their own */
    int parts;    /* 1: rows have; more: of the bins, at most */
    struct formula guard;
};
/* Loads of vectors, and loads of elements for arrays that share no boundary; where bins are locked, the latter alone. */
void bins_add_cases(struct planner *pl, const struct strategy *row, const struct bins_shape *s);
/* Cases with a table for every thread, where guard holds; does the problem allow them? */
void bins_private_plan(struct planner *pl, const struct strategy *row, struct formula guard);
bool bins_private_takes(const struct problem *p, const char **why);

#endif
