/* SPDX-License-Identifier: Apache-2.0 */
/* ref_bound.c - operations on values that carry an error bound: a running forward error analysis.
 *
 * A tracked number v +- err stands for the quantity that a kernel computes in the declared types, whatever its order of
 * combination: |kernel - v| <= err.  Every operation passes on the errors of its operands and adds its own rounding:
 *
 *   exact operands, a correctly rounded operation, a fixed order     v is the rounded result, err = 0
 *   otherwise                                                        v is computed in double; err grows by u |v|
 *
 * with u half a unit in the last place of the type (8 times that for functions that no library rounds correctly), and
 * half the smallest subnormal beside it, which is what rounding costs below the smallest normal number.  While an
 * operator is evaluated both are multiplied by combine_factor, because the tree of the kernel may be deeper than ours:
 * a product of factors below 1 that is combined one by one comes to rest several subnormals above zero.  Sums grow by
 * u (|a| + |b|), because their operands may cancel later than ours.  What underflows in another order alone and is then
 * multiplied by large factors is not accounted for.
 *
 * Errors of operands go through + - * analytically and through everything else by evaluating the corners of the box of
 * operands, which is exact for what is monotone in each operand.  Comparisons and selections are discrete: where the
 * operands' intervals overlap the outcome is not known, and both are kept, as a value whose error spans them.
 *
 * This knows nothing of operands that depend on each other; see ref_spread.c for how operators on states do better.
 *
 * Source: N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.3 (running error) and 4.2
 * (trees).
 */
#include <float.h>
#include <math.h>

#include "ref_internal.h"

/* Half a unit in the last place of 1, half the smallest subnormal, the largest finite number. */
double ref_unit(enum ty t)
{
    switch (t) {
    case TY_F16: return 0x1p-11;
    case TY_BF16: return 0x1p-8;
    case TY_F32: return 0x1p-24;
    default: return 0x1p-52; /* twice: the double beside it is rounded as well */
    }
}

static double tiny(enum ty t)
{
    switch (t) {
    case TY_F16: return 0x1p-25;
    case TY_BF16: return 0x1p-134;
    case TY_F32: return 0x1p-150;
    default: return 0x1p-1074;
    }
}

static double largest(enum ty t)
{
    switch (t) {
    case TY_F16: return 65504;
    case TY_BF16: return 0x1.fep127;
    case TY_F32: return (double)FLT_MAX;
    default: return DBL_MAX;
    }
}

/* Type of the operands that decide what the operation means. */
static enum ty operand_type(const struct expr *e)
{
    bool selects = e->kind == EX_CALL && e->op == FN_SELECT;
    return e->arg[selects ? 1 : 0]->type;
}

/* The operation itself.  wide: floats in double. */
static union value compute(const struct expr *e, const union value *arg, bool wide)
{
    enum ty t = operand_type(e), to = e->type;
    if (wide) {
        t = ty_is_float(t) ? TY_F64 : t;
        to = ty_is_float(to) ? TY_F64 : to;
    }
    switch (e->kind) {
    case EX_UNARY: return ref_unary((enum unary)e->op, t, arg[0]);
    case EX_BINARY: return ref_binary((enum binary)e->op, t, arg[0], arg[1]);
    case EX_CAST: return ref_cast(t, to, arg[0]);
    default: return ref_call((enum fn)e->op, t, arg);
    }
}

enum rounding { ROUND_NONE, ROUND_CORRECT, ROUND_LIBRARY };

/* How far the result of a float operation may be from the real one. */
static enum rounding rounding_of(const struct expr *e)
{
    if (!ty_is_float(e->type)) {
        return ROUND_NONE;
    }
    if (e->kind == EX_UNARY) {
        return ROUND_NONE;
    }
    if (e->kind == EX_CAST) {
        enum ty from = e->arg[0]->type;
        bool widens = ty_is_float(from) && ty_bytes(from) < ty_bytes(e->type);
        return widens || from == e->type || from == TY_BOOL ? ROUND_NONE : ROUND_CORRECT;
    }
    if (e->kind == EX_BINARY) {
        return e->op == BIN_REM ? ROUND_NONE : ROUND_CORRECT;
    }
    switch (e->op) {
    case FN_MIN:
    case FN_MAX:
    case FN_ABS:
    case FN_SIGN:
    case FN_CLAMP:
    case FN_SELECT:
    case FN_FLOOR:
    case FN_CEIL:
    case FN_ROUND:
    case FN_TRUNC: return ROUND_NONE;
    case FN_SQRT:
    case FN_FMA: return ROUND_CORRECT;
    default: return ROUND_LIBRARY;
    }
}

/* |a - b| for two outcomes of one type: 0 when both are the same special value. */
double ref_distance(enum ty t, union value a, union value b)
{
    if (!ty_is_float(t)) {
        return ty_is_signed(t) ? fabs((double)a.i - (double)b.i) : fabs((double)a.u - (double)b.u);
    }
    if (isnan(a.f) || isnan(b.f)) {
        return isnan(a.f) && isnan(b.f) ? 0 : INFINITY;
    }
    return a.f == b.f ? 0 : fabs(a.f - b.f);
}

/* The operand's upper or lower end. */
union value ref_corner(enum ty t, struct num x, bool upper)
{
    if (x.err == 0) {
        return x.v;
    }
    if (t == TY_BOOL) {
        return (union value){ .i = upper };
    }
    if (ty_is_float(t)) {
        return (union value){ .f = x.v.f + (upper ? x.err : -x.err) };
    }
    double centre = ty_is_signed(t) ? (double)x.v.i : (double)x.v.u;
    return ref_cast(TY_F64, t, (union value){ .f = centre + (upper ? ceil(x.err) : -ceil(x.err)) });
}

/* The largest deviation of the result over the corners of the operands' box. */
static double corner_spread(const struct expr *e, const struct num *arg, union value centre)
{
    double spread = 0;
    for (int mask = 0; mask < 1 << e->nargs; mask++) {
        union value at[OPERANDS_MAX];
        for (int i = 0; i < e->nargs; i++) {
            at[i] = ref_corner(e->arg[i]->type, arg[i], mask >> i & 1);
        }
        spread = fmax(spread, ref_distance(e->type, compute(e, at, true), centre));
    }
    return spread;
}

static bool crosses_zero(struct num x) { return !(fabs(x.v.f) > x.err); }

/* Wrapping or bitwise integer results of inexact operands may be anything. */
static bool is_chaotic(const struct expr *e)
{
    return e->kind == EX_BINARY && !ty_is_float(e->arg[0]->type) &&
           ((e->op >= BIN_REM && e->op <= BIN_SHR) || e->op == BIN_DIV) && e->type != TY_BOOL;
}

/* What the operands' errors do to the result `v`. */
static double propagate(const struct expr *e, const struct num *arg, union value v)
{
    double err = 0;
    for (int i = 0; i < e->nargs; i++) {
        err = fmax(err, arg[i].err);
    }
    if (err == 0) {
        return 0;
    }
    if (isinf(err) || is_chaotic(e)) {
        return INFINITY;
    }
    if (e->kind == EX_BINARY && ty_is_float(e->arg[0]->type)) {
        struct num a = arg[0], b = arg[1];
        switch (e->op) {
        case BIN_ADD:
        case BIN_SUB: return isfinite(v.f) ? a.err + b.err : 0;
        case BIN_MUL:
            if (isfinite(v.f)) {
                return fabs(a.v.f) * b.err + fabs(b.v.f) * a.err + a.err * b.err;
            }
            break;
        case BIN_DIV:
        case BIN_REM:
            if (b.err > 0 && crosses_zero(b)) {
                return INFINITY;
            }
            break;
        case BIN_EQ:
        case BIN_NE: return fabs(a.v.f - b.v.f) <= a.err + b.err;
        default: break;
        }
    }
    double spread = corner_spread(e, arg, v);
    bool wave = e->kind == EX_CALL && (e->op == FN_SIN || e->op == FN_COS);
    return wave ? fmin(err, 2) : spread;
}

/* A finite double may be beyond the type: certainly, then it is an infinity there; or perhaps.  Errors come
 * from roundings of what is larger by 1 / unit: where that is beyond the type, another order of combination may have
 * had an infinity on its way. */
struct num ref_limit(enum ty t, struct num x)
{
    if (!ty_is_float(t) || !isfinite(x.v.f)) {
        return x;
    }
    double max = largest(t);
    if (fabs(x.v.f) - x.err > max * (1 + ref_unit(t))) {
        return (struct num){ { .f = copysign(INFINITY, x.v.f) }, 0 };
    }
    if (fabs(x.v.f) + x.err > max || x.err > max * fmin(0.25, 64 * ref_unit(t))) {
        x.err = INFINITY;
    }
    return x;
}

/* What is rounded: the result, or for sums in operators what another order of combination might have had in its place,
 * where ours cancels. */
static double rounded_magnitude(const struct ref *r, const struct expr *e, const struct num *arg, union value v)
{
    const bool sum = e->kind == EX_BINARY && (e->op == BIN_ADD || e->op == BIN_SUB);
    return r->combine_factor > 0 && sum ? fabs(arg[0].v.f) + fabs(arg[1].v.f) : fabs(v.f);
}

/* Has a sum or product of an operator outgrown the type? In another order of combination it may not have; nor has a product
 * that is not rounded, as those of maps that are marked. */
static bool outgrew(const struct ref *r, const struct expr *e, const struct num *arg, struct num out)
{
    const bool grows = e->kind == EX_BINARY && (e->op == BIN_ADD || e->op == BIN_SUB || e->op == BIN_MUL);
    return grows && (r->combine_factor > 0 || e->field == FUSES) && ty_is_float(e->type) && !isfinite(out.v.f) &&
           isfinite(arg[0].v.f) && isfinite(arg[1].v.f);
}

struct num ref_apply(const struct ref *r, const struct expr *e, const struct num *arg)
{
    union value plain[OPERANDS_MAX] = { { 0 } };
    bool exact = true;
    for (int i = 0; i < e->nargs; i++) {
        plain[i] = arg[i].v;
        exact = exact && arg[i].err == 0;
    }
    if (!r->tracked || r->quiet) {
        return (struct num){ compute(e, plain, r->quiet), 0 };
    }
    enum rounding rounding = rounding_of(e);
    const bool fuses = e->kind == EX_BINARY && e->field == FUSES; /* rounded, or not */
    if (exact && !fuses && (rounding == ROUND_NONE || (rounding == ROUND_CORRECT && r->combine_factor == 0))) {
        return (struct num){ compute(e, plain, false), 0 };
    }
    struct num out = { compute(e, plain, true), 0 };
    out.err = exact ? 0 : propagate(e, arg, out.v);
    if (rounding != ROUND_NONE && isfinite(out.v.f)) {
        double times = (rounding == ROUND_LIBRARY ? 8 : 1) * fmax(1, r->combine_factor);
        out.err += times * (ref_unit(e->type) * (rounded_magnitude(r, e, arg, out.v) + out.err) + tiny(e->type));
        if (e->type != TY_F64 && problem_exp_falls(r->p, NULL, e))
            out.err += FLT_MIN;
    }
    out = ref_limit(e->type, out);
    if (outgrew(r, e, arg, out))
        out.err = INFINITY;
    return out;
}

/* condition ? yes : no, which spans both when the condition is not certain. */
struct num ref_choose(const struct expr *e, struct num condition, struct num yes, struct num no)
{
    struct num out = condition.v.i ? yes : no;
    if (condition.err > 0) {
        out.err = fmax(out.err, ref_distance(e->type, yes.v, no.v) + fmax(yes.err, no.err));
    }
    return out;
}
