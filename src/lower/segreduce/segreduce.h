/* SPDX-License-Identifier: Apache-2.0 */
/* segreduce.h - what the planning of segmented reductions shares. */
#ifndef PTXGEN_SEGREDUCE_H
#define PTXGEN_SEGREDUCE_H

#include "lower/lower_impl.h"
#include "lower/segments.h"

/* Has it segments of one size? Else *why. */
bool segreduce_regular(const struct problem *p, struct arena *a, const char **why);
/* A strategy is pinned, so its cases must take every launch. */
bool segreduce_pinned(const struct planner *pl);
/* A tunable of the case, unless the strategy has none of that name or the user sets it. */
void segreduce_set(struct plan_case *c, enum tunable_id t, int value, const char *from);
/* Fewer items, where a thread would hold too many elements and the user sets none. */
void segreduce_fit_items(struct plan_case *c);
struct formula segreduce_all(struct formula a, struct formula b); /* `and`, where an absent one is true */
int64_t segreduce_tile_length(const struct planner *pl); /* up to where segreduce.tile takes segments; 0: not at all */
struct formula segreduce_sms(const struct problem *p);   /* multiprocessors that grids are sized for */
int segreduce_state_words(const struct problem *p);      /* registers of one state */
/* The problem's arguments, and what every kernel of segments is given. */
struct prog_kernel *segreduce_kernel(struct planner *pl, struct plan_case *c, const char *suffix);
/* Tickets, one per group of blocks, and the partials of all blocks. */
void segreduce_partials(struct planner *pl, struct plan_case *c, struct prog_kernel *k, struct formula groups,
                        struct formula blocks);
/* Are the states of all reductions small enough? Else *why. */
bool segreduce_few_fields(const struct problem *p, struct arena *a, const char **why);
/* The shapes of a strategy, up to one that takes all lengths; `extra`: a condition for them besides the length. */
void segreduce_add_shapes(struct planner *pl, const struct strategy *row, struct formula extra);
/* Elements after which every direct array is at a multiple of 16 bytes again; 0: there is no direct array. */
int segreduce_quantum(const struct problem *p);
/* A kernel of teams of lanes that read stretches, and what its tunables have to obey. */
struct prog_kernel *segreduce_team_kernel(struct planner *pl, struct plan_case *c, const char *suffix);
bool segreduce_check_tunables(struct planner *pl, const struct plan_case *c);
bool segreduce_contradiction(struct planner *pl, const struct plan_case *c, const char *what);

#endif
