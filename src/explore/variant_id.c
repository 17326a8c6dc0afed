/* SPDX-License-Identifier: Apache-2.0 */
/* variant_id.c - ids of variants, STRATEGY@TUNABLE=VALUE,...: printed from a plan, and read. */
#include "variants.h"

#include "lower/lower_impl.h"

#include <string.h>

bool tunable_settable(enum tunable_id t, int value)
{
    int lo, hi;
    tunable_limits(t, &lo, &hi);
    return value >= lo;
}

bool tunable_in_id(const struct strategy *row, enum tunable_id t, int value)
{
    const struct tuning *usual = tuning_lookup(row->name, "", 0);
    return tunable_settable(t, value) && !(t == TN_CLUSTER && value == 1 && usual && usual->value[t] == 1);
}

void variant_print(const struct plan *plan, struct str *out)
{
    const struct plan_case *c = &plan->cases[0];
    for (int i = 1; i < plan->ncases; i++)
        if (plan->cases[i].strategy != c->strategy) {
            str_add(out, "default");
            return;
        }
    str_add(out, c->strategy->name);
    for (int t = 0, n = 0; t < TN_COUNT; t++)
        if (c->strategy->tunables & 1u << t && tunable_in_id(c->strategy, (enum tunable_id)t, c->tunable[t]))
            str_printf(out, "%c%s=%d", n++ ? ',' : '@', tunable_name(t), c->tunable[t]);
}

static bool bad_id(struct ptxgen_session *s, const char *id)
{
    struct diag *m = diag_error(&s->diags, D_BAD_TUNABLE, span_none(), "'%s' is no variant", id);
    diag_note(&s->diags, m, span_none(),
              "an id is STRATEGY@TUNABLE=VALUE,TUNABLE=VALUE,... or default; `ptxgen variants` lists them");
    return false;
}

bool variant_parse(struct ptxgen_session *s, const char *id, const struct tunable **out, int *nset)
{
    struct tunable *set = arena_new(&s->arena, struct tunable, TN_COUNT + 1);
    char *text = arena_strdup(&s->arena, id), *at = strchr(text, '@');
    int n = 0;
    *out = set;
    *nset = 0;
    if (!strcmp(id, "default"))
        return true;
    if (at)
        *at++ = 0;
    set[n++] = (struct tunable){ "strategy", text, span_none() };
    while (at && *at) {
        char *value = strchr(at, '='), *next = strchr(at, ',');
        if (!value || (next && value > next) || n > TN_COUNT)
            return bad_id(s, id);
        *value = 0;
        if (next)
            *next = 0;
        set[n++] = (struct tunable){ at, value + 1, span_none() };
        at = next ? next + 1 : NULL;
    }
    *nset = n;
    return *text ? true : bad_id(s, id);
}
