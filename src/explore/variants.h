/* SPDX-License-Identifier: Apache-2.0 */
/* variants.h - the space of plans as data: every strategy with every combination of its tunables' values.
 *
 * Nothing here knows a strategy: rows of strategies.def and TUNABLES are walked, and what is legal is what a strategy
 * plans and builds.  Ids are described in ptxgen.h.
 */
#ifndef PTXGEN_VARIANTS_H
#define PTXGEN_VARIANTS_H

#include "lower/plan.h"

enum { CANDIDATES_MAX = 80 };

/* Values of a tunable that are worth trying for the problem; `usual`: what the default plan has, always among them. */
int tunable_candidates(enum tunable_id t, const struct problem *p, int usual, int *value /* CANDIDATES_MAX */);
/* A tunable may be left alone by a value below its range, which cannot be set. */
bool tunable_settable(enum tunable_id t, int value);
/* Does an id name it?  Not what cannot be set, and not a cluster of one block where that is what all ids without the
 * tunable mean. */
bool tunable_in_id(const struct strategy *row, enum tunable_id t, int value);

/* The settings that an id stands for; none for "default".  False after a diagnostic. */
bool variant_parse(struct ptxgen_session *s, const char *id, const struct tunable **set, int *nset);
/* Of the first case of a plan with one strategy; of others "default". */
void variant_print(const struct plan *plan, struct str *out);

/* Which variants. */
struct variants_request {
    const struct plan_options *options; /* sizes; settings restrict tunables, and "strategy", to lists of values */
    const struct gpu_model *model;      /* of predictions; NULL: none */
    bool illegal;                       /* also what is not legal; strategies that do not fit are told once */
    bool main_only;                     /* tunables of other classes than TUNABLE_MAIN keep their usual values */
    int64_t draw;                       /* so many legal ones at most, at random, shared among strategies; 0: all */
    uint64_t seed;                      /* of these */
    int part, parts;                    /* number `part` of that many parts of about the same size; 0: all */
};
/* Calls visit for each, until it gives something else than 0.  False after a diagnostic. */
bool variants_each(struct ptxgen_session *s, const struct problem *p, const struct device *d,
                   const struct variants_request *request, int (*visit)(const ptxgen_variant *v, void *user),
                   void *user);
/* Calls visit for each strategy of the request, with how many variants it has.  Takes a fraction of the time. */
bool variants_count(struct ptxgen_session *s, const struct problem *p, const struct device *d,
                    const struct variants_request *request, int (*visit)(const ptxgen_variant_count *c, void *user),
                    void *user);

#endif
