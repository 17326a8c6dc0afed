/* SPDX-License-Identifier: Apache-2.0 */
/* ref_scalar.c - one operation on scalars, as docs/spec-language.md defines it.
 *
 * Integers: computed modulo 2^64 and wrapped to the type.  Floats: computed in double and rounded once to the type,
 * which is the correctly rounded result for + - * / and sqrt, because double has more than twice the digits of f32 plus
 * two; fma and conversions from 64-bit integers, where that does not hold, go through rounding to odd.
 */
#include <math.h>

#include "ref_internal.h"

double ref_round(enum ty t, double x)
{
    switch (t) {
    case TY_F16: return f16_to_double(f16_from_double(x));
    case TY_BF16: return bf16_to_double(bf16_from_double(x));
    case TY_F32: return (double)(float)x;
    default: return x;
    }
}

static union value of_float(enum ty t, double x) { return (union value){ .f = ref_round(t, x) }; }
static union value of_bool(bool x) { return (union value){ .i = x }; }

/* x modulo 2^bits, sign- or zero-extended. */
static union value of_bits(enum ty t, uint64_t x)
{
    int spare = 64 - ty_bits(t);
    if (ty_is_signed(t)) {
        return (union value){ .i = (int64_t)(x << spare) >> spare };
    }
    return (union value){ .u = x << spare >> spare };
}

/* The double beside the exact value hi + lo (|lo| below half a unit of hi) whose last digit is odd: rounding it
 * again to a format with at least two digits fewer rounds the exact value. */
static double to_odd(double hi, double lo)
{
    union {
        double d;
        uint64_t u;
    } x = { hi };
    if (lo == 0 || !isfinite(hi) || (x.u & 1)) {
        return hi;
    }
    if (hi == 0) {
        return lo;
    }
    return nextafter(hi, lo > 0 ? INFINITY : -INFINITY);
}

static double fma_once(enum ty t, double a, double b, double c)
{
    if (t == TY_F64) {
        return fma(a, b, c);
    }
    double product = a * b; /* exact: at most 48 digits */
    double sum = product + c;
    double back = sum - product;
    double lo = (product - (sum - back)) + (c - back);
    return ref_round(t, isfinite(sum) ? to_odd(sum, lo) : sum);
}

static double from_integer(enum ty from, enum ty to, union value a)
{
    bool is_signed = ty_is_signed(from);
    bool negative = is_signed && a.i < 0;
    uint64_t magnitude = negative ? -a.u : a.u;
    double hi = (double)magnitude;
    if (to != TY_F64 && magnitude >> 53) {
        double lo = hi >= 0x1p64 ? -(double)(0 - magnitude) : (double)(int64_t)(magnitude - (uint64_t)hi);
        hi = to_odd(hi, lo);
    }
    return ref_round(to, negative ? -hi : hi);
}

static union value to_integer(enum ty to, double x)
{
    int bits = ty_bits(to);
    if (isnan(x)) {
        return (union value){ .i = 0 };
    }
    double t = trunc(x);
    if (!ty_is_signed(to)) {
        return (union value){ .u = t <= 0 ? 0 : t >= ldexp(1, bits) ? ~UINT64_C(0) >> (64 - bits) : (uint64_t)t };
    }
    int64_t max = (int64_t)(~UINT64_C(0) >> (65 - bits));
    if (t >= ldexp(1, bits - 1)) {
        return (union value){ .i = max };
    }
    return (union value){ .i = t <= -ldexp(1, bits - 1) ? -max - 1 : (int64_t)t };
}

union value ref_cast(enum ty from, enum ty to, union value a)
{
    if (to == TY_BOOL) {
        return of_bool(ty_is_float(from) ? a.f != 0 : a.i != 0);
    }
    if (ty_is_float(from)) {
        return ty_is_float(to) ? of_float(to, a.f) : to_integer(to, a.f);
    }
    return ty_is_float(to) ? (union value){ .f = from_integer(from, to, a) } : of_bits(to, a.u);
}

union value ref_unary(enum unary op, enum ty t, union value a)
{
    switch (op) {
    case UN_NEG: return ty_is_float(t) ? (union value){ .f = -a.f } : of_bits(t, 0 - a.u);
    case UN_NOT: return of_bool(!a.i);
    case UN_COMPL: return of_bits(t, ~a.u);
    }
    return a;
}

static union value divide(enum binary op, enum ty t, union value a, union value b)
{
    if (b.u == 0) {
        return (union value){ .u = 0 };
    }
    if (!ty_is_signed(t)) {
        return (union value){ .u = op == BIN_DIV ? a.u / b.u : a.u % b.u };
    }
    if (b.i == -1) { /* MIN / -1 wraps, and is a trap in C */
        return op == BIN_DIV ? of_bits(t, 0 - a.u) : (union value){ .i = 0 };
    }
    return (union value){ .i = op == BIN_DIV ? a.i / b.i : a.i % b.i };
}

/* A negative count is a large one. */
static union value shift(enum binary op, enum ty t, union value a, union value b)
{
    bool all = b.u >= (uint64_t)ty_bits(t);
    if (op == BIN_SHL) {
        return of_bits(t, all ? 0 : a.u << b.u);
    }
    if (ty_is_signed(t)) {
        return (union value){ .i = a.i >> (all ? 63 : b.u) };
    }
    return (union value){ .u = all ? 0 : a.u >> b.u };
}

static bool compare(enum binary op, int order, bool ordered)
{
    switch (op) {
    case BIN_EQ: return ordered && order == 0;
    case BIN_NE: return !ordered || order != 0;
    case BIN_LT: return ordered && order < 0;
    case BIN_LE: return ordered && order <= 0;
    case BIN_GT: return ordered && order > 0;
    default: return ordered && order >= 0;
    }
}

static union value float_binary(enum binary op, enum ty t, double a, double b)
{
    switch (op) {
    case BIN_ADD: return of_float(t, a + b);
    case BIN_SUB: return of_float(t, a - b);
    case BIN_MUL: return of_float(t, a * b);
    case BIN_DIV: return of_float(t, a / b);
    case BIN_REM: return of_float(t, fmod(a, b));
    default: return of_bool(compare(op, (a > b) - (a < b), !isnan(a) && !isnan(b)));
    }
}

static int int_order(enum ty t, union value a, union value b)
{
    return ty_is_signed(t) ? (a.i > b.i) - (a.i < b.i) : (a.u > b.u) - (a.u < b.u);
}

union value ref_binary(enum binary op, enum ty t, union value a, union value b)
{
    if (ty_is_float(t)) {
        return float_binary(op, t, a.f, b.f);
    }
    switch (op) {
    case BIN_ADD: return of_bits(t, a.u + b.u);
    case BIN_SUB: return of_bits(t, a.u - b.u);
    case BIN_MUL: return of_bits(t, a.u * b.u);
    case BIN_DIV:
    case BIN_REM: return divide(op, t, a, b);
    case BIN_AND: return of_bits(t, a.u & b.u);
    case BIN_OR: return of_bits(t, a.u | b.u);
    case BIN_XOR: return of_bits(t, a.u ^ b.u);
    case BIN_SHL:
    case BIN_SHR: return shift(op, t, a, b);
    case BIN_LAND: return of_bool(a.i && b.i);
    case BIN_LOR: return of_bool(a.i || b.i);
    default: return of_bool(compare(op, int_order(t, a, b), true));
    }
}

/* minNum and maxNum, with -0 below +0. */
static double float_extreme(bool maximum, double a, double b)
{
    if (isnan(a) || isnan(b)) {
        return isnan(a) ? b : a;
    }
    bool a_below = a < b || (a == b && signbit(a));
    return a_below != maximum ? a : b;
}

static union value extreme(bool maximum, enum ty t, union value a, union value b)
{
    if (ty_is_float(t)) {
        return (union value){ .f = float_extreme(maximum, a.f, b.f) };
    }
    return (int_order(t, a, b) < 0) != maximum ? a : b;
}

static union value int_call(enum fn op, enum ty t, union value a)
{
    int bits = ty_bits(t);
    uint64_t low = bits == 64 ? a.u : a.u & ((UINT64_C(1) << bits) - 1);
    bool negative = ty_is_signed(t) && a.i < 0;
    switch (op) {
    case FN_ABS: return negative ? of_bits(t, 0 - a.u) : a;
    case FN_SIGN: return (union value){ .i = negative ? -1 : a.i != 0 };
    case FN_POPCOUNT: return of_bits(t, (uint64_t)__builtin_popcountll(low));
    case FN_CLZ: return of_bits(t, (uint64_t)(low ? __builtin_clzll(low) - (64 - bits) : bits));
    case FN_CTZ: return of_bits(t, (uint64_t)(low ? __builtin_ctzll(low) : bits));
    default: return a;
    }
}

static double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

/* Ties to even in every rounding mode of the process but the exotic ones. */
static double round_even(double x)
{
    double r = round(x);
    return fabs(x - trunc(x)) == 0.5 ? 2 * round(x / 2) : r;
}

static double transcendental(enum fn op, const union value *arg)
{
    double x = arg[0].f;
    switch (op) {
    case FN_CBRT: return cbrt(x);
    case FN_EXP: return exp(x);
    case FN_EXP2: return exp2(x);
    case FN_EXP10: return pow(10, x);
    case FN_EXPM1: return expm1(x);
    case FN_LOG: return log(x);
    case FN_LOG2: return log2(x);
    case FN_LOG10: return log10(x);
    case FN_LOG1P: return log1p(x);
    case FN_SIN: return sin(x);
    case FN_COS: return cos(x);
    case FN_TAN: return tan(x);
    case FN_ASIN: return asin(x);
    case FN_ACOS: return acos(x);
    case FN_ATAN: return atan(x);
    case FN_ATAN2: return atan2(x, arg[1].f);
    case FN_SINH: return sinh(x);
    case FN_COSH: return cosh(x);
    case FN_TANH: return tanh(x);
    case FN_ERF: return erf(x);
    case FN_POW: return pow(x, arg[1].f);
    case FN_HYPOT: return hypot(x, arg[1].f);
    default: return NAN;
    }
}

static union value float_call(enum fn op, enum ty t, const union value *arg)
{
    double x = arg[0].f;
    switch (op) {
    case FN_ABS: return of_float(t, fabs(x));
    case FN_SIGN: return of_float(t, sign(x));
    case FN_SQRT: return of_float(t, sqrt(x));
    case FN_RSQRT: return of_float(t, 1 / sqrt(x));
    case FN_FMA: return (union value){ .f = fma_once(t, x, arg[1].f, arg[2].f) };
    case FN_FLOOR: return of_float(t, floor(x));
    case FN_CEIL: return of_float(t, ceil(x));
    case FN_ROUND: return of_float(t, round_even(x));
    case FN_TRUNC: return of_float(t, trunc(x));
    case FN_ISNAN: return of_bool(isnan(x));
    case FN_ISINF: return of_bool(isinf(x));
    default: return of_float(t, transcendental(op, arg));
    }
}

union value ref_call(enum fn op, enum ty t, const union value *arg)
{
    switch (op) {
    case FN_MIN:
    case FN_MAX: return extreme(op == FN_MAX, t, arg[0], arg[1]);
    case FN_CLAMP: return extreme(false, t, extreme(true, t, arg[0], arg[1]), arg[2]);
    case FN_SELECT: return arg[0].i ? arg[1] : arg[2];
    default: return ty_is_float(t) ? float_call(op, t, arg) : int_call(op, t, arg[0]);
    }
}
