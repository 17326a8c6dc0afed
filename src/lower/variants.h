/* SPDX-License-Identifier: Apache-2.0 */
/* variants.h - the space of plans as data: every strategy with every combination of its tunables' usual values.
 *
 * Nothing here knows a strategy: rows of strategies.def and TUNABLES are walked, and what is legal is what a strategy
 * plans and builds.  Ids are described in ptxgen.h.
 */
#ifndef PTXGEN_VARIANTS_H
#define PTXGEN_VARIANTS_H

#include "plan.h"

enum { CANDIDATES_MAX = 80 };

/* Values of a tunable that are worth trying for the problem; `usual`: what the default plan has, always among them. */
int tunable_candidates(enum tunable_id t, const struct problem *p, int usual, int *value /* CANDIDATES_MAX */);

/* The settings that an id stands for; none for "default".  False after a diagnostic. */
bool variant_parse(struct ptxgen_session *s, const char *id, const struct tunable **set, int *nset);
/* Of the first case of a plan with one strategy; of others "default". */
void variant_print(const struct plan *plan, struct str *out);

/* Calls visit for each, until it gives something else than 0.  False after a diagnostic. */
bool variants_each(struct ptxgen_session *s, const struct problem *p, const struct device *d,
                   const struct plan_options *o, const struct gpu_model *model /* or NULL */, bool illegal,
                   int (*visit)(const ptxgen_variant *v, void *user), void *user);

#endif
