/* SPDX-License-Identifier: Apache-2.0 */
/* tuned.h - what planning knows of measurements: rows of tuning.def, and the sizes around a tuned one. */
#ifndef PTXGEN_TUNED_H
#define PTXGEN_TUNED_H

#include "plan.h"

/* The sizes that an entry for `size` counts for: within a factor of the square root of 2. */
void tuning_range(int64_t size, int64_t *lo, int64_t *hi);

/* Which rows of tuning.def a problem looks at: its operator decides how many registers an element costs. */
const char *tuning_variant(const struct problem *p);
/* A row that makes the tunables of a plan's first case the default. */
void tuning_row(const struct plan *plan, const char *evidence, struct str *out);

#endif
