/* SPDX-License-Identifier: Apache-2.0 */
/* refusals.h - problems that cannot be split along a dimension, as a list says: it must neither grow nor shrink unnoticed. */
#ifndef PTXGEN_TESTS_REFUSALS_H
#define PTXGEN_TESTS_REFUSALS_H

#include "support/ranks.h"

/* Spec, dimension, words of the message. */
struct refusal {
    const char *spec, *split, *why;
};

/* In the list, which ends with a row of NULLs; NULL: it is not there. */
static inline const struct refusal *refusal_of(const struct refusal *list, const char *spec, const char *split)
{
    for (; list->spec; list++)
        if (!strcmp(list->spec, spec) && !strcmp(list->split, split))
            return list;
    return NULL;
}

/* Refused alike on all ranks, at a place of the spec, for the reason that is listed. */
static inline void check_refusal(const struct refusal *list, const struct world *w, const struct rank *rank)
{
    const struct refusal *expected = refusal_of(list, w->name, w->split);
    for (int r = 0; r < w->ranks; r++) {
        cr_assert_eq(rank[r].status, PTXGEN_UNSUPPORTED, "%s, %s: %s", w->name, w->split, rank[r].text);
        cr_expect(expected, "not listed as refused: { \"%s\", \"%s\", … },\n%s", w->name, w->split, rank[r].text);
        if (!expected)
            return;
        cr_assert(strstr(rank[r].text, expected->why) && strstr(rank[r].text, "PTXG-3008") && strstr(rank[r].text, "^"),
                  "%s, %s: %s", w->name, w->split, rank[r].text);
    }
}

/* The whole problem of h, split along a dimension: it runs at the sizes of `check_sizes`, or is refused as the list says.
 * True when it is supported. */
static inline bool check_split(struct world w, const struct refusal *list,
                               void (*check_sizes)(struct world *w, struct rank *rank))
{
    struct rank rank[RANKS_MAX];
    w.modes = "seed:1";
    world_open(&w, rank);
    const bool supported = rank[0].status == PTXGEN_OK;
    if (supported)
        cr_expect(!refusal_of(list, w.name, w.split), "%s, %s is supported: take it off the list", w.name, w.split);
    if (supported)
        check_sizes(&w, rank);
    else
        check_refusal(list, &w, rank);
    world_close(&w, rank);
    return supported;
}

#endif
