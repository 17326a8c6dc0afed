/* SPDX-License-Identifier: Apache-2.0 */
/* ideal.c - operations over the integers and the real numbers, as far as the declared types could follow.
 *
 * Integers and truth values are computed by the oracle and refused where its wrapped result is not the mathematical
 * one.  Floats are fractions of 128-bit integers; what has no such value (roots, exponentials) or outgrows them is an
 * interval, and a comparison that an interval leaves open is refused.  So two results that differ here differ in
 * mathematics.
 */
#include <float.h>
#include <math.h>

#include "laws_impl.h"

/* ---- numbers ---- */

static const long double unit = 4 * LDBL_EPSILON; /* of one operation on intervals, generously */

static wide wide_abs(wide x) { return x < 0 ? -x : x; }

static wide gcd(wide a, wide b)
{
    while (b) {
        wide r = a % b;
        a = b;
        b = r;
    }
    return wide_abs(a);
}

static struct real fraction(wide n, wide d)
{
    const wide g = n == 0 ? wide_abs(d) : d == 1 ? 1 : gcd(n, d);
    if (d < 0)
        n = -n, d = -d;
    struct real x = { .kind = REAL_EXACT, .n = n / g, .d = d / g };
    x.v = (long double)x.n / (long double)x.d;
    return x;
}

static struct real near(long double v, long double err)
{
    return (struct real){ .kind = REAL_NEAR, .v = v, .err = err + fabsl(v) * unit + LDBL_MIN };
}

static struct real infinite(bool negative)
{
    return (struct real){ .kind = negative ? REAL_MINUS_INF : REAL_PLUS_INF, .v = negative ? -HUGE_VALL : HUGE_VALL };
}

static bool is_finite(const struct real *x) { return x->kind == REAL_EXACT || x->kind == REAL_NEAR; }
static bool is_exact(const struct real *x) { return x->kind == REAL_EXACT; }
static long double error_of(const struct real *x) { return x->kind == REAL_NEAR ? x->err : fabsl(x->v) * unit; }

/* -1, 0, 1; 2 where the intervals overlap. */
static int compare(const struct real *a, const struct real *b)
{
    wide x, y;
    if (!is_finite(a) || !is_finite(b))
        return (a->v > b->v) - (a->v < b->v);
    if (is_exact(a) && is_exact(b) && !__builtin_mul_overflow(a->n, b->d, &x) &&
        !__builtin_mul_overflow(b->n, a->d, &y))
        return (x > y) - (x < y);
    const long double gap = 16 * (error_of(a) + error_of(b));
    return fabsl(a->v - b->v) <= gap ? 2 : a->v > b->v ? 1 : -1;
}

bool ideal_from_bits(enum ty t, union value v, struct cell *out)
{
    (void)t;
    if (isnan(v.f))
        return false;
    if (isinf(v.f)) {
        out->real = infinite(v.f < 0);
        return true;
    }
    int exponent;
    wide n = (wide)ldexp(frexp(v.f, &exponent), 53);
    exponent -= 53;
    for (; n && n % 2 == 0; exponent++)
        n /= 2;
    if (n == 0 || (exponent >= 0 && exponent <= 60))
        out->real = fraction(n == 0 ? 0 : n * ((wide)1 << exponent), 1);
    else if (exponent < 0 && exponent >= -60)
        out->real = fraction(n, (wide)1 << -exponent);
    else
        out->real = (struct real){ .kind = REAL_NEAR, .v = (long double)v.f };
    return true;
}

int ideal_compare_equal(enum ty t, const struct cell *a, const struct cell *b)
{
    if (!ty_is_float(t))
        return a->bits.i == b->bits.i ? 1 : -1;
    const int order = compare(&a->real, &b->real);
    return order == 0 ? 1 : order == 2 ? 0 : -1;
}

/* ---- arithmetic ---- */

static bool sum(const struct real *a, const struct real *b, struct real *out)
{
    wide x, y, n, d;
    if (!is_finite(a) || !is_finite(b)) {
        if (!is_finite(a) && !is_finite(b) && a->kind != b->kind)
            return false;
        *out = is_finite(a) ? *b : *a;
    } else if (is_exact(a) && is_exact(b) && !__builtin_mul_overflow(a->n, b->d, &x) &&
               !__builtin_mul_overflow(b->n, a->d, &y) && !__builtin_add_overflow(x, y, &n) &&
               !__builtin_mul_overflow(a->d, b->d, &d)) {
        *out = fraction(n, d);
    } else {
        *out = near(a->v + b->v, error_of(a) + error_of(b));
    }
    return true;
}

static struct real negated(const struct real *a)
{
    struct real x = *a;
    x.n = -x.n;
    x.v = -x.v;
    if (!is_finite(a))
        x = infinite(a->kind == REAL_PLUS_INF);
    return x;
}

static bool product(const struct real *a, const struct real *b, struct real *out)
{
    wide n, d;
    if (!is_finite(a) || !is_finite(b)) {
        if (fabsl(a->v) <= error_of(a) || fabsl(b->v) <= error_of(b))
            return false;
        *out = infinite((a->v < 0) != (b->v < 0));
    } else if (is_exact(a) && is_exact(b) && !__builtin_mul_overflow(a->n, b->n, &n) &&
               !__builtin_mul_overflow(a->d, b->d, &d)) {
        *out = fraction(n, d);
    } else {
        *out = near(a->v * b->v, fabsl(a->v) * error_of(b) + fabsl(b->v) * error_of(a) + error_of(a) * error_of(b));
    }
    return true;
}

static bool reciprocal(const struct real *a, struct real *out)
{
    if (!is_finite(a)) {
        *out = fraction(0, 1);
        return true;
    }
    if (is_exact(a)) {
        if (a->n == 0)
            return false;
        *out = fraction(a->d, a->n);
        return true;
    }
    if (fabsl(a->v) <= 2 * a->err)
        return false;
    *out = near(1 / a->v, 2 * a->err / (a->v * a->v));
    return true;
}

static bool quotient(const struct real *a, const struct real *b, struct real *out)
{
    struct real r;
    return reciprocal(b, &r) && (is_finite(a) || is_finite(b)) && product(a, &r, out);
}

/* How a fraction becomes an integer. */
static bool rounded(enum fn how, const struct real *a, struct real *out)
{
    if (!is_exact(a))
        return false;
    wide whole = a->n / a->d, rest = a->n % a->d; /* toward zero */
    const int sign = a->n < 0 ? -1 : 1;
    if (how == FN_FLOOR && rest < 0)
        whole--;
    else if (how == FN_CEIL && rest > 0)
        whole++;
    else if (how == FN_ROUND &&
             (wide_abs(rest) > a->d - wide_abs(rest) || (wide_abs(rest) == a->d - wide_abs(rest) && whole % 2)))
        whole += sign;
    *out = fraction(whole, 1);
    return true;
}

static bool root(const struct real *a, struct real *out)
{
    if (!is_finite(a) || a->v < 0)
        return false;
    const long double y = sqrtl(a->v);
    if (is_exact(a)) {
        const wide n = (wide)sqrtl((long double)a->n), d = (wide)sqrtl((long double)a->d);
        if (n < (wide)1 << 60 && d < (wide)1 << 60 && n * n == a->n && d * d == a->d) {
            *out = fraction(n, d);
            return true;
        }
    }
    *out = near(y, y > 0 ? error_of(a) / y : sqrtl(error_of(a)));
    return true;
}

static long double transcendental(enum fn op, long double x, long double y)
{
    switch (op) {
    case FN_CBRT: return cbrtl(x);
    case FN_EXP: return expl(x);
    case FN_EXP2: return exp2l(x);
    case FN_EXP10: return powl(10, x);
    case FN_EXPM1: return expm1l(x);
    case FN_LOG: return logl(x);
    case FN_LOG2: return log2l(x);
    case FN_LOG10: return log10l(x);
    case FN_LOG1P: return log1pl(x);
    case FN_SIN: return sinl(x);
    case FN_COS: return cosl(x);
    case FN_TAN: return tanl(x);
    case FN_ASIN: return asinl(x);
    case FN_ACOS: return acosl(x);
    case FN_ATAN: return atanl(x);
    case FN_ATAN2: return atan2l(x, y);
    case FN_SINH: return sinhl(x);
    case FN_COSH: return coshl(x);
    case FN_TANH: return tanhl(x);
    case FN_ERF: return erfl(x);
    case FN_POW: return powl(x, y);
    case FN_HYPOT: return hypotl(x, y);
    default: return NAN;
    }
}

/* The error is the largest change over the corners of the operands' box: an estimate where the function is not
 * monotone. */
static bool smooth(const struct expr *e, const struct cell *arg, struct real *out)
{
    const struct real *x = &arg[0].real, *y = &arg[e->nargs > 1].real;
    const enum fn op = (enum fn)e->op;
    if (op == FN_EXP && x->kind == REAL_MINUS_INF) {
        *out = fraction(0, 1);
        return true;
    }
    if (!is_finite(x) || !is_finite(y))
        return false;
    const long double v = transcendental(op, x->v, y->v), ex = error_of(x), ey = e->nargs > 1 ? error_of(y) : 0;
    long double err = 0;
    for (int corner = 0; corner < 4; corner++) {
        const long double at = transcendental(op, x->v + (corner & 1 ? ex : -ex), y->v + (corner & 2 ? ey : -ey));
        err = fmaxl(err, fabsl(at - v));
    }
    if (!isfinite(v) || !isfinite(err))
        return false;
    *out = is_exact(x) && x->n == 0 && op == FN_EXP ? fraction(1, 1) : near(v, 2 * err + 8 * unit * fabsl(v));
    return true;
}

/* ---- floats ---- */

static bool extreme(bool maximum, const struct real *a, const struct real *b, struct real *out)
{
    const int order = compare(a, b);
    if (order == 2)
        return false;
    *out = (order < 0) != maximum ? *a : *b;
    return true;
}

static bool float_call(const struct expr *e, const struct cell *arg, struct real *out)
{
    const struct real *x = &arg[0].real, zero = fraction(0, 1);
    const int sign = compare(x, &zero);
    struct real t;
    switch ((enum fn)e->op) {
    case FN_MIN:
    case FN_MAX: return extreme(e->op == FN_MAX, x, &arg[1].real, out);
    case FN_CLAMP: return extreme(true, x, &arg[1].real, &t) && extreme(false, &t, &arg[2].real, out);
    case FN_ABS: *out = x->v < 0 ? negated(x) : *x; return sign != 2;
    case FN_SIGN: *out = fraction(sign, 1); return sign != 2;
    case FN_SQRT: return root(x, out);
    case FN_RSQRT: return root(x, &t) && reciprocal(&t, out);
    case FN_FMA: return product(x, &arg[1].real, &t) && sum(&t, &arg[2].real, out);
    case FN_FLOOR:
    case FN_CEIL:
    case FN_ROUND:
    case FN_TRUNC: return rounded((enum fn)e->op, x, out);
    default: return smooth(e, arg, out);
    }
}

static bool float_binary(const struct expr *e, const struct cell *arg, struct cell *out)
{
    const struct real *a = &arg[0].real, *b = &arg[1].real;
    struct real t = negated(b), whole;
    switch ((enum binary)e->op) {
    case BIN_ADD: return sum(a, b, &out->real);
    case BIN_SUB: return sum(a, &t, &out->real);
    case BIN_MUL: return product(a, b, &out->real);
    case BIN_DIV: return quotient(a, b, &out->real);
    case BIN_REM:
        if (!quotient(a, b, &t) || !rounded(FN_TRUNC, &t, &whole) || !product(&whole, b, &t))
            return false;
        t = negated(&t);
        return sum(a, &t, &out->real);
    default: break;
    }
    const int order = compare(a, b);
    out->bits = ref_binary((enum binary)e->op, TY_I32, (union value){ .i = order }, (union value){ .i = 0 });
    return order != 2;
}

/* ---- integers: what the oracle says, where that is the mathematical result ---- */

static wide of_integer(enum ty t, union value v) { return ty_is_signed(t) ? (wide)v.i : (wide)v.u; }

static bool int_binary(const struct expr *e, const struct cell *arg, struct cell *out)
{
    const enum ty t = e->arg[0]->type;
    const wide a = of_integer(t, arg[0].bits), b = of_integer(t, arg[1].bits);
    out->bits = ref_binary((enum binary)e->op, t, arg[0].bits, arg[1].bits);
    const wide r = of_integer(e->type, out->bits);
    switch ((enum binary)e->op) {
    case BIN_ADD: return r == a + b;
    case BIN_SUB: return r == a - b;
    case BIN_MUL: return a == 0 || b == 0 || (r / b == a && r % b == 0 && r != 0);
    case BIN_DIV: return b == 0 || r == a / b;
    case BIN_SHL: return b >= 0 && b < ty_bits(t) && r >> (int)b == a;
    default: return true;
    }
}

static bool int_unary(const struct expr *e, const struct cell *arg, struct cell *out)
{
    const enum ty t = e->type;
    out->bits =
        e->kind == EX_UNARY ? ref_unary((enum unary)e->op, t, arg[0].bits) : ref_call((enum fn)e->op, t, &arg[0].bits);
    const wide a = of_integer(t, arg[0].bits), r = of_integer(t, out->bits);
    if (e->kind == EX_UNARY)
        return e->op != UN_NEG || r == -a;
    return e->op != FN_ABS || r == wide_abs(a);
}

static bool cast(const struct expr *e, const struct cell *arg, struct cell *out)
{
    const enum ty from = e->arg[0]->type, to = e->type;
    struct real whole;
    if (ty_is_float(from)) {
        if (ty_is_float(to)) {
            *out = arg[0];
            return true;
        }
        if (to == TY_BOOL) {
            const struct real zero = fraction(0, 1);
            const int order = compare(&arg[0].real, &zero);
            out->bits.i = order != 0;
            return order != 2;
        }
        if (!rounded(FN_TRUNC, &arg[0].real, &whole))
            return false;
        out->bits.i = (int64_t)whole.n;
        out->bits = ref_cast(TY_I64, to, out->bits);
        return of_integer(to, out->bits) == whole.n;
    }
    if (ty_is_float(to)) {
        out->real = fraction(of_integer(from, arg[0].bits), 1);
        return true;
    }
    out->bits = ref_cast(from, to, arg[0].bits);
    return to == TY_BOOL || of_integer(to, out->bits) == of_integer(from, arg[0].bits);
}

bool ideal_apply(const struct expr *e, const struct cell *arg, struct cell *out)
{
    const enum ty t = e->arg[0]->type;
    if (e->kind == EX_CAST)
        return cast(e, arg, out);
    if (!ty_is_float(t)) {
        if (e->kind == EX_BINARY)
            return int_binary(e, arg, out);
        if (e->nargs == 1)
            return int_unary(e, arg, out);
        const union value x[OPERANDS_MAX] = { arg[0].bits, arg[1].bits, arg[2].bits };
        out->bits = ref_call((enum fn)e->op, t, x);
        return true;
    }
    if (e->kind == EX_UNARY) {
        out->real = negated(&arg[0].real);
        return true;
    }
    if (e->kind == EX_BINARY)
        return float_binary(e, arg, out);
    if (e->op == FN_ISNAN || e->op == FN_ISINF) {
        out->bits.i = e->op == FN_ISINF && !is_finite(&arg[0].real);
        return true;
    }
    return float_call(e, arg, &out->real);
}
