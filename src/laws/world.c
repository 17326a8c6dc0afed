/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - what names stand for in a trial.
 *
 * Inputs are endless arrays: the value at a point follows from the seed, the input and the point, so that neighbours
 * and inputs that are repeated along a dimension agree with each other, and nothing is stored.  A palette says how wild
 * the values are: tiny ones make examples that people can check, special ones find NaN, infinities, signs of zero and
 * the ends of the types.
 */
#include <float.h>
#include <math.h>

#include "laws_impl.h"

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t key_of(uint64_t key, uint64_t part) { return mix(key * UINT64_C(0x9e3779b97f4a7c15) + part + 1); }

static union value integer(enum ty t, uint64_t bits) { return ref_cast(TY_U64, t, (union value){ .u = bits }); }

static double largest(enum ty t)
{
    return t == TY_F16 ? 65504 : t == TY_BF16 ? 0x1.fep127 : t == TY_F32 ? (double)FLT_MAX : DBL_MAX;
}

/* Beyond it not every integer is a float: adding 1 is lost. */
static double whole_limit(enum ty t) { return t == TY_F16 ? 2048 : t == TY_BF16 ? 256 : t == TY_F32 ? 0x1p24 : 0x1p53; }

static int special_integers(enum ty t, union value *out)
{
    const uint64_t top = UINT64_C(1) << (ty_bits(t) - 1);
    const uint64_t value[] = { 0,       1,   2,       3,       4,      5, -UINT64_C(1), -UINT64_C(2), -UINT64_C(3),
                               top - 1, top, top / 2, top - 2, top + 1 };
    const int n = sizeof value / sizeof *value;
    for (int i = 0; i < n; i++)
        out[i] = integer(t, value[i]);
    return n;
}

int world_specials(enum level level, enum ty t, union value *out)
{
    static const double value[] = { 0, 1, 2, 3, -1, -2, 0.5, 4, NAN, -0.0, INFINITY, -INFINITY };
    if (t == TY_BOOL) {
        out[0].i = 0;
        out[1].i = 1;
        return 2;
    }
    if (!ty_is_float(t))
        return special_integers(t, out);
    const int n = level == LEVEL_IDEAL ? 8 : 12;
    for (int i = 0; i < n; i++)
        out[i].f = value[i];
    if (level == LEVEL_BITS) {
        out[n].f = largest(t);
        out[n + 1].f = ref_round(t, 0.1);
        out[n + 2].f = whole_limit(t);
        return n + 3;
    }
    return n;
}

static union value float_value(const struct world *w, enum ty t, uint64_t key)
{
    union value special[SPECIALS_MAX];
    const int tiny = (int)(key % 17) - 8;
    if (w->level == LEVEL_IDEAL || w->palette == PALETTE_TINY) {
        const int digits = w->palette == PALETTE_TINY ? 0 : (int)(key >> 32 & 3);
        return (union value){ .f = ldexp(w->palette <= PALETTE_SPECIAL ? tiny : tiny + (int)(key >> 8 & 63), -digits) };
    }
    if (w->palette == PALETTE_SPECIAL) {
        const int n = world_specials(w->level, t, special);
        return special[key % (uint64_t)n];
    }
    const double fraction = ldexp((double)(key >> 11), -52) - 1;
    const int scale = w->palette == PALETTE_MEDIUM ? (int)(key & 7) - 3 : (int)(key & 63) - 32;
    return (union value){ .f = ref_round(t, ldexp(fraction, scale)) };
}

/* A value of type t that follows from key. */
static union value world_value(const struct world *w, enum ty t, uint64_t key)
{
    union value special[SPECIALS_MAX];
    key = key_of(w->seed, key);
    if (t == TY_BOOL)
        return (union value){ .i = (int64_t)(key & 1) };
    if (ty_is_float(t))
        return float_value(w, t, key);
    switch (w->palette) {
    case PALETTE_TINY: return integer(t, key % 9 - (ty_is_signed(t) ? 4 : 0));
    case PALETTE_SPECIAL: return special[key % (uint64_t)world_specials(w->level, t, special)];
    case PALETTE_MEDIUM: return integer(t, key % 101 - (ty_is_signed(t) ? 50 : 0));
    default: return integer(t, key);
    }
}

/* ---- places ---- */

/* Segments run along the last dimension that is combined; all of them, beside a stencil. */
static int running_axis(const struct problem *p)
{
    for (int d = p->rank - 1; d >= 0; d--)
        if (p->space[d].reduced)
            return d;
    return p->rank - 1;
}

void world_point(const struct world *w, int k, int64_t *at)
{
    const int run = running_axis(w->p);
    for (int d = 0; d < w->p->rank; d++)
        at[d] = (int64_t)(key_of(w->seed, 900 + (uint64_t)d) % 8) + (d == run && w->p->reverse ? 40 : 0);
    at[run] += w->p->reverse ? -k : k;
}

static const struct fixed *fixed_value(const struct world *w, enum expr_kind kind, int which, int field)
{
    for (int i = 0; i < w->nfixed; i++)
        if (w->fixed[i].kind == kind && w->fixed[i].which == which && w->fixed[i].field == field)
            return &w->fixed[i];
    return NULL;
}

static int64_t joined_size(const struct world *w, const struct dimension *d)
{
    int64_t n = d->times;
    for (int k = 0; k < d->nparts; k++)
        if (__builtin_mul_overflow(n, world_size(w, d->part[k]), &n))
            return INT64_MAX;
    return n;
}

int64_t world_size(const struct world *w, int size)
{
    const struct fixed *fixed = fixed_value(w, EX_SIZE, size, 0);
    if (fixed)
        return fixed->value.i;
    const struct dimension *d = &w->p->size[size];
    if (size >= w->p->nsizes)
        return joined_size(w, d);
    int64_t n = 64 + (int64_t)(key_of(w->seed, 800 + (uint64_t)size) % 64);
    n -= n % d->multiple_of;
    n = n < d->multiple_of ? d->multiple_of : n;
    return n < d->min ? d->min : n > d->max ? d->max : n;
}

union value world_param(const struct world *w, int param)
{
    const struct fixed *fixed = fixed_value(w, EX_PARAM, param, 0);
    return fixed ? fixed->value : world_value(w, w->p->param[param].type, 700 + (uint64_t)param);
}

static union value input_value(const struct world *w, const int64_t *at, const struct expr *e)
{
    const struct fixed *fixed = fixed_value(w, EX_INPUT, e->which, e->field);
    if (fixed)
        return fixed->value;
    const struct input *x = &w->p->input[e->which];
    uint64_t key = key_of((uint64_t)e->which, (uint64_t)e->field);
    for (int d = 0; d < x->array.rank; d++) {
        const int axis = x->axis[d] >= 0 ? x->axis[d] : 0;
        key = key_of(key, (uint64_t)(at[axis] + (e->noffsets ? e->offset[d] : 0)));
    }
    return world_value(w, x->array.field[e->field].type, key);
}

union value world_leaf(const struct world *w, const int64_t *at, const struct expr *e)
{
    switch (e->kind) {
    case EX_INPUT:
    case EX_NEIGHBOUR: return input_value(w, at, e); /* another element gathers another neighbour, of another row */
    case EX_RUN: return (union value){ .i = at[running_axis(w->p)] };
    case EX_PARAM: return world_param(w, e->which);
    case EX_SIZE: return (union value){ .i = world_size(w, e->which) };
    case EX_INDEX: return (union value){ .i = at[e->which] };
    default: break;
    }
    /* A gather, or a read at a computed place, may give anything of its type, and wherever it is written something else. */
    uint64_t key = key_of(600 + (uint64_t)e->which, e->at.begin);
    for (int d = 0; d < w->p->rank; d++)
        key = key_of(key, (uint64_t)at[d]);
    return world_value(w, e->type, key);
}

/* ---- free maps ---- */

static bool varies(const struct problem *p, const struct input *x)
{
    const int run = running_axis(p);
    for (int d = 0; d < x->array.rank; d++)
        if (x->axis[d] == run || (x->axis[d] < 0 && p->rank == 1))
            return true;
    return false;
}

static const struct expr *behind_lets(const struct problem *p, const struct expr *e)
{
    while (e->kind == EX_LET)
        e = p->let[e->which].value;
    return e;
}

/* A conversion that keeps every value distinct does not reach every value of its type, so it is not free. */
bool world_map_is_free(const struct problem *p, const struct reduction *red)
{
    for (int f = 0; f < red->op->nfields; f++) {
        const struct expr *e = behind_lets(p, red->map[f]);
        if (e->kind != EX_INPUT || !varies(p, &p->input[e->which]))
            return false;
        for (int g = 0; g < f; g++) {
            const struct expr *other = behind_lets(p, red->map[g]);
            if (other->which == e->which && other->field == e->field)
                return false;
        }
    }
    return true;
}
