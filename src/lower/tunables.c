/* SPDX-License-Identifier: Apache-2.0 */
/* tunables.c - the rows of TUNABLES: names, ranges, values worth trying, and the one check of what is given for a
 * tunable, whichever way it comes in: a spec's pin, --set, the id of a variant, the text of a plan. */
#include "lower_impl.h"

#include <stdlib.h>
#include <string.h>

static const char *const tunable_names[] = {
#define X(id, name, ...) [TN_##id] = name,
    TUNABLES(X)
#undef X
};
static const struct {
    int lo, hi;
} tunable_range[] = {
#define X(id, name, lo, hi, ...) [TN_##id] = { lo, hi },
    TUNABLES(X)
#undef X
};

const char *tunable_name(enum tunable_id t) { return tunable_names[t]; }

int tunable_least(enum tunable_id t) { return tunable_range[t].lo; }

bool tunable_used(const struct plan_case *c, enum tunable_id t)
{
    return c->strategy->tunables & 1u << t && c->tunable[t] >= tunable_range[t].lo;
}

/* A value as it may be written: a number, or its name where values have names.  NULL: it has none. */
static const char *tunable_value_name(enum tunable_id t, int value)
{
    static const char *const combine[] = { "shuffle", "tree",        "shared_atomic_all", "shared_atomic_leaders",
                                           "redux",   "tree_leaders" };
    static const char *const distribution[] = { "strided", "tiled" };
    if (t != TN_COMBINE && t != TN_OVER_BLOCKS && t != TN_OVER_THREADS)
        return NULL;
    if (value < tunable_range[t].lo || value > tunable_range[t].hi)
        return NULL;
    return t == TN_COMBINE ? combine[value] : distribution[value];
}

/* A whole number: digits, perhaps after a sign.  What does not fit a long is its limit, which no range holds. */
static bool read_number(const char *text, size_t length, long *value)
{
    const size_t sign = length > 0 && text[0] == '-';
    for (size_t i = sign; i < length; i++)
        if (text[i] < '0' || text[i] > '9')
            return false;
    *value = length > sign ? strtol(text, NULL, 10) : 0;
    return length > sign;
}

static bool in_range(enum tunable_id t, long value)
{
    return value >= tunable_range[t].lo && value <= tunable_range[t].hi;
}

bool tunable_value(enum tunable_id t, const char *text, size_t length, int *value)
{
    long number;
    if (read_number(text, length, &number) && in_range(t, number)) {
        *value = (int)number;
        return true;
    }
    for (int v = tunable_range[t].lo; v <= tunable_range[t].hi; v++) {
        const char *name = tunable_value_name(t, v);
        if (name && strlen(name) == length && !memcmp(text, name, length)) {
            *value = v;
            return true;
        }
    }
    return false;
}

/* ---- the door ---------------------------------------------------------------------------------------------------- */

const char *name_now(const struct alias *alias, const char *name)
{
    while (alias->old && strcmp(alias->old, name) != 0)
        alias++;
    return alias->old ? alias->now : name;
}

int tunable_by_name(const char *name)
{
    static const struct alias old[] = { { "bulk", "copy_stages" },
                                        { "looks", "lookback_warps" },
                                        { "markers", "marker_warps" },
                                        { "staged", "smem_transpose" },
                                        { "stream", "evict_first" },
                                        { "upsweep", "upsweep_warps" },
                                        { NULL, NULL } };
    name = name_now(old, name);
    for (int t = 0; t < TN_COUNT; t++)
        if (!strcmp(name, tunable_names[t]))
            return t;
    return -1;
}

static void report_name(struct diags *d, const struct strategy *row, const struct tunable *set)
{
    const char *usable[TN_COUNT];
    int n = 0;
    struct diag *m = row ? diag_error(d, D_BAD_TUNABLE, set->at, "%s has no tunable '%s'", row->name, set->name)
                         : diag_error(d, D_BAD_TUNABLE, set->at, "there is no tunable '%s'", set->name);
    for (int i = 0; i < TN_COUNT; i++)
        if (!row || row->tunables & 1u << i)
            usable[n++] = tunable_names[i];
    diag_suggest(d, m, set->name, usable, n);
}

void tunable_report(struct diags *d, enum tunable_id t, const struct tunable *set)
{
    struct diag *m = diag_error(d, D_BAD_TUNABLE, set->at, "%s: '%s' is not within %d … %d", set->name, set->value,
                                tunable_range[t].lo, tunable_range[t].hi);
    for (int i = tunable_range[t].lo; i <= tunable_range[t].hi && tunable_value_name(t, i); i++)
        diag_note(d, m, span_none(), "%d is called %s", i, tunable_value_name(t, i));
}

bool tunable_given(struct diags *d, const struct strategy *row, const struct tunable *set, enum tunable_id *t,
                   int *value)
{
    const int found = tunable_by_name(set->name);
    if (found < 0 || (row && !(row->tunables & 1u << found))) {
        if (d)
            report_name(d, row, set);
        return false;
    }
    *t = (enum tunable_id)found;
    const bool fine = tunable_value(*t, set->value, strlen(set->value), value);
    if (d && !fine)
        tunable_report(d, *t, set);
    return fine;
}

static bool is_strategy(const struct tunable *set) { return !strcmp(set->name, "strategy"); }

bool plan_settings_check(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    struct diags *d = &pl->s->diags;
    enum tunable_id t;
    int value;
    bool ok = true;
    for (int i = 0; i < p->ntunables; i++)
        ok &= tunable_given(d, row, &p->tunable[i], &t, &value);
    for (int i = 0; pl->options && i < pl->options->nset; i++)
        if (!is_strategy(&pl->options->set[i]))
            ok &= tunable_given(d, row, &pl->options->set[i], &t, &value);
    return ok;
}

bool plan_contradiction(struct planner *pl, const struct plan_case *c, unsigned tunables, const char *why)
{
    const unsigned usual = WITH_THREADS | WITH_ITEMS | WITH_VECTOR | WITH_STAGES | WITH_BLOCK_X | WITH_BLOCK_Y;
    const char *values = "";
    for (int t = 0; t < TN_COUNT; t++)
        if ((tunables ? tunables : usual) & 1u << t && tunable_used(c, (enum tunable_id)t))
            values = arena_printf(&pl->s->arena, "%s, %s %d", values, tunable_names[t], c->tunable[t]);
    if (pl->options && pl->options->clash)
        *pl->options->clash = tunables;
    diag_error(&pl->s->diags, D_BAD_TUNABLE, pl->plan->problem->strategy_at, "%s%s: %s", c->code.strategy, values, why);
    return false;
}

bool plan_consistent(struct planner *pl, const struct plan_case *c, const struct misfit *m)
{
    const char *why;
    return plan_takes(&why, m) || plan_contradiction(pl, c, 0, why);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

void tunable_limits(enum tunable_id t, int *lo, int *hi)
{
    *lo = tunable_range[t].lo;
    *hi = tunable_range[t].hi;
}

int tunable_class(enum tunable_id t)
{
    static const int class_of[] = {
#define X(id, name, lo, hi, what, class, ...) [TN_##id] = (class),
        TUNABLES(X)
#undef X
    };
    return class_of[t];
}

int tunable_values(enum tunable_id t, const int **value)
{
#define X(id, name, lo, hi, what, class, ...) static const int values_##id[] = { __VA_ARGS__ };
    TUNABLES(X)
#undef X
    static const struct {
        int n;
        const int *value;
    } list[] = {
#define X(id, ...) [TN_##id] = { (int)(sizeof values_##id / sizeof *values_##id), values_##id },
        TUNABLES(X)
#undef X
    };
    *value = list[t].value;
    return list[t].n;
}
