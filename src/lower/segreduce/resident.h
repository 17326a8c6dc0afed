/* SPDX-License-Identifier: Apache-2.0 */
/* resident.h - what the planning of rows and of columns that stay in registers shares. */
#ifndef PTXGEN_RESIDENT_H
#define PTXGEN_RESIDENT_H

#include "segreduce.h"

/* Registers of an element of every direct array. */
int resident_element_words(const struct problem *p);
/* Blocks of a team. */
static inline int resident_cluster(const struct plan_case *c)
{
    return c->tunable[TN_CLUSTER] > 1 ? c->tunable[TN_CLUSTER] : 1;
}

/* ---- columns (resident_columns.c) --------------------------------------------------------------------------------- */
/* Can columns stay?  Else *why. */
bool resident_columns_fit(const struct problem *p, const char **why);
void resident_columns_plan(struct planner *pl, const struct strategy *row);
bool resident_columns_check(struct planner *pl, const struct plan_case *c); /* false after a diagnostic */
/* How many blocks, or clusters, take all columns, 32 to a team. */
struct formula resident_columns_blocks(const struct problem *p, const struct plan_case *c);

#endif
