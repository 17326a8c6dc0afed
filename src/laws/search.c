/* SPDX-License-Identifier: Apache-2.0 */
/* search.c - counterexamples by trial.
 *
 * Scalar states whose map is free are tried with every combination of values worth trying, and with all values of the
 * type where these are few.  Then come random elements of every palette, one at a time and in short runs, so that
 * states made of several elements occur as well.  Of what is found the example with the least weight is kept.
 */
#include <math.h>

#include "laws_impl.h"

enum { ROUNDS = 240, ENOUGH = 12, TRIED = 60, ALL_MAX = 1 << 17, IDENTITY_TRIES = 60000 };

/* One trial at one level; true when its sides differ and the oracle agrees. */
static bool try_one(struct evaluator *v, struct trial *t, struct example *best, int *defined)
{
    struct example x;
    int field;
    const enum outcome outcome = trial_run(v, t, &field);
    *defined += outcome != OUTCOME_UNDEFINED;
    if (outcome != OUTCOME_DIFFERENT || !trial_replay(v, t, &x))
        return false;
    if (!best->found || x.weight < best->weight)
        *best = x;
    return true;
}

static bool try_sides(struct evaluator *v, struct trial *t, struct example *best, int *defined)
{
    bool found = try_one(v, t, best, defined);
    t->right = true;
    if (t->law == LAW_IDENTITY)
        found |= try_one(v, t, best, defined);
    t->right = false;
    return found;
}

/* ---- all of a small set ---- */

/* Values of the state's fields in turn: digit i of a counter in base n. */
static void try_all(struct evaluator *v, struct trial *t, const union value *set, int n, struct example *best,
                    int *defined)
{
    const int places = law_operands(t->law);
    union value direct[3] = { { 0 } };
    int64_t total = 1;
    for (int i = 0; i < places; i++)
        total *= n;
    t->world.direct = direct;
    t->count[0] = t->count[1] = t->count[2] = 1;
    for (int64_t at = 0; at < total; at++) {
        int64_t rest = at;
        for (int i = 0; i < places; i++, rest /= n)
            direct[i] = set[rest % n];
        try_sides(v, t, best, defined);
    }
    t->world.direct = NULL;
    best->trial.world.direct = NULL;
}

/* Every value of a narrow type; true when that were all states there are. */
static bool try_type(struct evaluator *v, struct trial *t, struct example *best)
{
    const struct op *op = t->world.red->op;
    const enum ty type = op->field[0];
    const int n = ty_bits(type) <= 8 && !ty_is_float(type) ? 1 << ty_bits(type) : 0;
    int64_t total = 1;
    int defined = 0;
    for (int i = 0; i < law_operands(t->law); i++)
        total *= n;
    if (op->nfields != 1 || n == 0 || total > ALL_MAX || t->world.level != LEVEL_BITS)
        return false;
    union value *set = arena_new(v->a, union value, n);
    for (int i = 0; i < n; i++)
        set[i] = ref_cast(TY_I64, type, (union value){ .i = i });
    try_all(v, t, set, n, best, &defined);
    return true;
}

/* ---- random ---- */

static void try_random(struct evaluator *v, struct trial *t, struct example *best, int *defined)
{
    int found = 0;
    for (int i = 0; i < ROUNDS && found < ENOUGH; i++) {
        const uint64_t bits = ((uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        t->world.palette = (enum palette)(i % PALETTE_COUNT);
        t->world.seed = bits ^ 77;
        for (int k = 0; k < 3; k++)
            t->count[k] = i % 8 < 4 ? 1 : 1 + (int)(bits >> (20 + 8 * k) & 3);
        found += try_sides(v, t, best, defined);
    }
}

static void search_level(struct evaluator *v, enum level level, enum law law, const struct state *identity,
                         struct example *best, int *defined, bool *complete)
{
    const struct world *w = v->w;
    struct trial t = { .law = law, .identity = identity, .world = *w };
    union value special[SPECIALS_MAX];
    const struct op *op = w->red->op;
    t.world.level = level;
    t.world.seed = 1;
    if (op->nfields == 1 && world_map_is_free(w->p, w->red)) {
        *complete = try_type(v, &t, best);
        const int n = world_specials(level, op->field[0], special);
        if (!*complete)
            try_all(v, &t, special, n, best, defined);
    }
    if (!best->found)
        try_random(v, &t, best, defined);
    v->w = w;
}

void search_law(struct evaluator *v, enum law law, const struct state *identity, struct search_result *out)
{
    bool complete = false, ignored = false;
    int defined[2] = { 0, 0 };
    *out = (struct search_result){ .complete = false };
    search_level(v, LEVEL_BITS, law, identity, &out->bits, &defined[0], &complete);
    search_level(v, LEVEL_IDEAL, law, identity, &out->ideal, &defined[1], &ignored);
    out->complete = complete && !out->bits.found;
    out->tried = defined[1] >= TRIED;
}

/* ---- identities ---- */

enum { CANDIDATES = 7 };

static int candidates(enum ty t, union value *out)
{
    static const double value[] = { 0, 1, -1 };
    union value limit[2] = { { .f = -HUGE_VAL }, { .f = HUGE_VAL } };
    int n = 0;
    if (t == TY_BOOL) {
        out[0].i = 0;
        out[1].i = 1;
        return 2;
    }
    if (ty_is_float(t)) {
        for (int i = 0; i < 3; i++)
            out[n++].f = value[i];
    } else {
        for (int i = 0; i < (ty_is_signed(t) ? 3 : 2); i++)
            out[n++] = ref_cast(TY_F64, t, (union value){ .f = value[i] });
        limit[0] = ref_cast(TY_F64, t, limit[0]);
        limit[1] = ref_cast(TY_F64, t, limit[1]);
    }
    if (limit[0].u != out[0].u)
        out[n++] = limit[0];
    out[n++] = limit[1];
    return n;
}

/* Does e, in declared types, leave a few elements alone?  NaN elements do not count: they may lose against an identity. */
static bool serves(struct evaluator *v, struct trial *t, const struct state *e)
{
    t->identity = e;
    for (int i = 0; i < 24; i++) {
        t->world.seed = (uint64_t)i * 7919 + 3;
        t->world.palette = i % 2 ? PALETTE_MEDIUM : PALETTE_TINY;
        for (int side = 0; side < 2; side++) {
            int field;
            t->right = side;
            if (trial_run(v, t, &field) == OUTCOME_DIFFERENT) {
                const union value l = t->l.field[field].bits, r = t->r.field[field].bits;
                if (!ty_is_float(t->world.red->op->field[field]) || l.f != r.f)
                    return false;
            }
        }
    }
    return true;
}

bool search_identity(struct evaluator *v, struct state *out)
{
    const struct world *w = v->w;
    const struct op *op = w->red->op;
    union value set[STATE_FIELDS_MAX][CANDIDATES];
    int n[STATE_FIELDS_MAX], digit[STATE_FIELDS_MAX] = { 0 };
    struct trial t = { .law = LAW_IDENTITY, .count = { 1, 1, 1 }, .world = *w };
    bool found = false;
    for (int f = 0; f < op->nfields; f++)
        n[f] = candidates(op->field[f], set[f]);
    for (int tries = 0; tries < IDENTITY_TRIES && !found; tries++) {
        for (int f = 0; f < op->nfields; f++)
            out->field[f].bits = set[f][digit[f]];
        found = serves(v, &t, out);
        int f = 0;
        while (f < op->nfields && ++digit[f] == n[f])
            digit[f++] = 0;
        if (f == op->nfields)
            break;
    }
    v->w = w;
    return found;
}
