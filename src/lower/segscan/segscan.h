/* SPDX-License-Identifier: Apache-2.0 */
/* segscan.h - what the planning of segmented scans shares. */
#ifndef PTXGEN_SEGSCAN_H
#define PTXGEN_SEGSCAN_H

#include "lower/lower_impl.h"
#include "lower/scan/scan.h"

/* Misfits of problems with a single segment, and of those that ask for determinism. */
static inline struct misfit segscan_single(const struct problem *p)
{
    return (struct misfit){ scan_single(p), "it scans segments; this problem has a single one" };
}
static inline struct misfit segscan_determined(const struct problem *p)
{
    return (struct misfit){ state_determinism(p) != DET_ANY,
                            "how prefixes are combined depends on timing; the problem asks for determinism" };
}
/* A case for arrays that begin where a vector does, and one for others.  `whole`: for rows that fit a tile. */
void segscan_add_cases(struct planner *pl, const struct strategy *row, const char *variant, const char *name,
                       struct formula guard, bool whole);
/* Elements that a tile may lose because a row begins within a vector. */
struct formula segscan_lost(const struct problem *p, int vector);
/* A kernel with the arguments that all of them have: those of scans, count. */
struct prog_kernel *segscan_kernel(struct planner *pl, struct plan_case *c);
/* Cases whose outputs leave in another order (plan_case.turns); they come before those of all strategies. */
void segscan_strips_turned(struct planner *pl, const struct strategy *row);
void segscan_column_turned(struct planner *pl, const struct strategy *row);
/* (strips.c) Are there divisions, or calls of the mathematical library, of eight bytes, whose own values take registers? */
bool segscan_calls_wide(const struct problem *p);
/* Such a case, with fewer items where its tile is too large, or no such case where that is not enough. */
void segscan_turn(const struct planner *pl, struct plan_case *c);
bool segscan_turns_fit(const struct planner *pl, const struct plan_case *c);
/* The same for segments of pieces: in front of the cases from number `from` on. */
void segscan_turn_pieces(struct planner *pl, int from);
bool segscan_pieces_fit(const struct planner *pl, const struct plan_case *c);
/* segscan.tile: bytes of the elements of array number i, inputs first, if it passes through shared memory; else 0. */
int segscan_tile_moved(const struct problem *p, int i);
/* The array in whose place of shared memory it lies: its own, or that of an input as wide, which is read before. */
int segscan_tile_place(const struct problem *p, int i);
bool segscan_check(struct planner *pl, const struct plan_case *c);

#endif
