/* SPDX-License-Identifier: Apache-2.0 */
/* odometer.c - see odometer.h. */
#include "odometer.h"

void odometer_clear(struct odometer *o) { o->naxes = o->nnogoods = 0; }

/* ---- turning ----------------------------------------------------------------------------------------------------- */

static int turns(const struct tunable_axis *a) { return a->still ? 1 : a->n; }

int64_t odometer_settings(const struct odometer *o)
{
    int64_t all = 1;
    for (int i = 0; i < o->naxes; i++)
        all *= turns(&o->axis[i]);
    return all;
}

void odometer_go_to(struct odometer *o, int64_t number)
{
    for (int i = o->naxes - 1; i >= 0; i--) {
        o->axis[i].at = (int)(number % turns(&o->axis[i]));
        number /= turns(&o->axis[i]);
    }
}

bool odometer_turn(struct odometer *o)
{
    for (int i = o->naxes - 1; i >= 0; i--) {
        if (++o->axis[i].at < turns(&o->axis[i]))
            return true;
        o->axis[i].at = 0;
    }
    return false;
}

int64_t odometer_pass(struct odometer *o, int axes)
{
    int64_t all = 1, before = 0;
    for (int i = o->naxes - 1; i >= axes; i--) {
        before += all * o->axis[i].at;
        all *= turns(&o->axis[i]);
        o->axis[i].at = turns(&o->axis[i]) - 1;
    }
    return all - before;
}

int odometer_deal(const struct odometer *o, int parts)
{
    enum { EACH = 4 };
    int axes = 0;
    if (parts < 2)
        return 0;
    for (int64_t all = 1; axes < o->naxes && all < (int64_t)EACH * parts; axes++)
        all *= turns(&o->axis[axes]);
    return axes;
}

int64_t odometer_number(const struct odometer *o, int axes)
{
    int64_t number = 0;
    for (int i = 0; i < axes; i++)
        number = number * turns(&o->axis[i]) + o->axis[i].at;
    return number;
}

/* ---- what is known to be illegal --------------------------------------------------------------------------------- */

/* How many axes there are up to the last one that a nogood looks at. */
static int up_to(unsigned axes) { return axes ? 32 - __builtin_clz(axes) : 0; }

int odometer_learn(struct odometer *o, unsigned tunables)
{
    struct nogood *g = &o->nogood[o->nnogoods % NOGOODS_MAX];
    g->axes = 0;
    for (int i = 0; i < o->naxes; i++)
        if (tunables & 1u << o->axis[i].tunable) {
            g->axes |= 1u << i;
            g->at[i] = o->axis[i].at;
        }
    o->nnogoods += g->axes != 0;
    return up_to(g->axes);
}

static bool matches(const struct odometer *o, const struct nogood *g)
{
    for (int i = 0; i < o->naxes; i++)
        if (g->axes & 1u << i && g->at[i] != o->axis[i].at)
            return false;
    return true;
}

int odometer_illegal(const struct odometer *o)
{
    for (int k = 0; k < o->nnogoods && k < NOGOODS_MAX; k++)
        if (matches(o, &o->nogood[k]))
            return up_to(o->nogood[k].axes);
    return 0;
}
