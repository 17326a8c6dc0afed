/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_ideal.c - operations as terms over the integers and the real numbers.
 *
 * What an operation demands so that its type can follow (no overflow, no division by zero) is kept beside the terms: a
 * proof does without, a counterexample must respect it.  Infinities occur only as constants, in identities, and are
 * folded here.
 *
 * exp is followed through sums, differences and choices to the variables behind them, where exp(x) becomes a positive
 * variable, equal for equal x: then exp(a - m) exp(m - M) = exp(a - M) is arithmetic.  Other functions are unknown but
 * for equal operands.
 */
#include <math.h>

#include "terms.h"

static term arithmetic(struct terms *t, const char *op, enum ty type, term x, term y)
{
    return term_make(t, op, type, 2, x, y, NULL);
}
static term compare(struct terms *t, const char *op, term x, term y)
{
    return term_make(t, op, TY_BOOL, 2, x, y, NULL);
}
static term zero(struct terms *t, enum ty type) { return term_value(t, type, (union value){ .u = 0 }); }
static term one(struct terms *t, enum ty type)
{
    return ty_is_float(type) ? term_value(t, type, (union value){ .f = 1 }) : term_integer(t, type, 1);
}

static term negated(struct terms *t, term x)
{
    if (x->infinite)
        return term_value(t, x->type, (union value){ .f = x->infinite > 0 ? -HUGE_VAL : HUGE_VAL });
    return term_make(t, "-", x->type, 1, x, NULL, NULL);
}

static term opaque(struct terms *t, const char *name, enum ty from, enum ty to, int nargs, const term *arg)
{
    return term_function(t, arena_printf(t->a, "%s.%s", name, ty_name(from)), to, nargs, arg[0], arg[1], arg[2]);
}

/* An integer result stays in its type. */
static term in_range(struct terms *t, term x)
{
    if (ty_is_int(x->type)) {
        term_demand(
            t, compare(t, "<=", term_value(t, x->type, ref_cast(TY_F64, x->type, (union value){ .f = -0x1p64 })), x));
        term_demand(
            t, compare(t, "<=", x, term_value(t, x->type, ref_cast(TY_F64, x->type, (union value){ .f = 0x1p64 }))));
    }
    return x;
}

/* ---- order ---- */

static term less(struct terms *t, term x, term y)
{
    if (x->infinite || y->infinite)
        return term_true(t, x->infinite < y->infinite);
    return x == y ? term_true(t, false) : compare(t, "<", x, y);
}

static term extreme(struct terms *t, bool maximum, term first, term second)
{
    term x = first->id <= second->id ? first : second, y = x == first ? second : first;
    return term_if(t, less(t, x, y), maximum ? y : x, maximum ? x : y);
}

static term absolute(struct terms *t, term x) { return term_if(t, less(t, x, zero(t, x->type)), negated(t, x), x); }

/* ---- exp ---- */

static term exponential(struct terms *t, term x)
{
    const enum ty type = x->type;
    if (x->infinite)
        return x->infinite < 0 ? zero(t, type) : x;
    if (x == zero(t, type))
        return one(t, type);
    if (term_is(x, "+"))
        return arithmetic(t, "*", type, exponential(t, x->arg[0]), exponential(t, x->arg[1]));
    if (term_is(x, "-") && x->nargs == 2)
        return arithmetic(t, "/", type, exponential(t, x->arg[0]), exponential(t, x->arg[1]));
    if (term_is(x, "-"))
        return arithmetic(t, "/", type, one(t, type), exponential(t, x->arg[0]));
    if (term_is(x, "ite"))
        return term_if(t, x->arg[0], exponential(t, x->arg[1]), exponential(t, x->arg[2]));
    for (int i = 0; i < t->npowers; i++)
        if (t->exponent[i] == x)
            return t->power[i];
    term e = term_variable(t, arena_printf(t->a, "exp.%d", x->id), type);
    term_assume(t, less(t, zero(t, type), e));
    for (int i = 0; i < t->npowers; i++)
        term_assume(t, term_equal(t, term_equal(t, x, t->exponent[i]), term_equal(t, e, t->power[i])));
    int n = t->npowers;
    ARENA_PUSH(t->a, t->exponent, n, t->cap_exponents, x);
    ARENA_PUSH(t->a, t->power, t->npowers, t->cap_powers, e);
    return e;
}

/* ---- arithmetic ---- */

static term sum(struct terms *t, enum ty type, term x, term y)
{
    if (x->infinite || y->infinite) {
        t->lost |= x->infinite * y->infinite < 0;
        return x->infinite ? x : y;
    }
    return x == zero(t, type) ? y : y == zero(t, type) ? x : in_range(t, term_commuting(t, "+", type, x, y));
}

static term product(struct terms *t, enum ty type, term x, term y)
{
    if (x == zero(t, type) || y == zero(t, type)) {
        t->lost |= x->infinite || y->infinite;
        return zero(t, type);
    }
    return x == one(t, type) ? y : y == one(t, type) ? x : in_range(t, term_commuting(t, "*", type, x, y));
}

static term difference(struct terms *t, enum ty type, term x, term y)
{
    if (x->infinite || y->infinite)
        return sum(t, type, x, negated(t, y));
    return y == zero(t, type) ? x : in_range(t, arithmetic(t, "-", type, x, y));
}

/* Toward zero; by zero it is zero. */
static term int_quotient(struct terms *t, enum ty type, term x, term y)
{
    term whole = arithmetic(t, "div", type, x, y);
    if (ty_is_signed(type)) {
        whole = arithmetic(t, "div", type, absolute(t, x), absolute(t, y));
        term opposite = term_not(t, term_equal(t, less(t, x, zero(t, type)), less(t, y, zero(t, type))));
        whole = term_if(t, opposite, negated(t, whole), whole);
    }
    return in_range(t, term_if(t, term_equal(t, y, zero(t, type)), zero(t, type), whole));
}

static term int_remainder(struct terms *t, enum ty type, term x, term y)
{
    term rest = arithmetic(t, "mod", type, ty_is_signed(type) ? absolute(t, x) : x, y);
    if (ty_is_signed(type))
        rest = term_if(t, less(t, x, zero(t, type)), negated(t, rest), rest);
    return term_if(t, term_equal(t, y, zero(t, type)), zero(t, type), rest);
}

static term shift(struct terms *t, const struct expr *e, const term *arg)
{
    const enum ty type = arg[0]->type;
    const struct expr *by = e->arg[1];
    if (by->kind != EX_CONST || by->imm.u >= (uint64_t)ty_bits(type) || by->imm.u > 61)
        return opaque(t, e->op == BIN_SHL ? "shl" : "shr", type, type, 2, arg);
    term power = term_integer(t, TY_I64, (int64_t)(UINT64_C(1) << by->imm.u));
    return e->op == BIN_SHL ? in_range(t, arithmetic(t, "*", type, arg[0], power))
                            : arithmetic(t, "div", type, arg[0], power);
}

static term bitwise(struct terms *t, const struct expr *e, const term *arg)
{
    static const char *const name[] = { "and", "or", "xor" };
    const enum ty type = arg[0]->type;
    const bool sorted = arg[0]->id <= arg[1]->id;
    if (type == TY_BOOL)
        return e->op == BIN_AND  ? term_and(t, arg[0], arg[1])
               : e->op == BIN_OR ? term_or(t, arg[0], arg[1])
                                 : term_not(t, term_equal(t, arg[0], arg[1]));
    return opaque(t, name[e->op - BIN_AND], type, type, 2, (const term[]){ arg[!sorted], arg[sorted], NULL });
}

static term binary(struct terms *t, const struct expr *e, const term *arg)
{
    const enum ty type = arg[0]->type;
    term x = arg[0], y = arg[1];
    switch ((enum binary)e->op) {
    case BIN_ADD: return sum(t, type, x, y);
    case BIN_SUB: return difference(t, type, x, y);
    case BIN_MUL: return product(t, type, x, y);
    case BIN_DIV:
        if (!ty_is_float(type))
            return int_quotient(t, type, x, y);
        term_demand(t, term_not(t, term_equal(t, y, zero(t, type))));
        return y == one(t, type) ? x : arithmetic(t, "/", type, x, y);
    case BIN_REM: return ty_is_float(type) ? opaque(t, "fmod", type, type, 2, arg) : int_remainder(t, type, x, y);
    case BIN_AND:
    case BIN_OR:
    case BIN_XOR: return bitwise(t, e, arg);
    case BIN_SHL:
    case BIN_SHR: return shift(t, e, arg);
    case BIN_EQ: return term_equal(t, x, y);
    case BIN_NE: return term_not(t, term_equal(t, x, y));
    case BIN_LT: return less(t, x, y);
    case BIN_LE: return term_not(t, less(t, y, x));
    case BIN_GT: return less(t, y, x);
    default: return term_not(t, less(t, x, y));
    }
}

/* ---- functions ---- */

static term root(struct terms *t, term x)
{
    const enum ty type = x->type;
    const int before = t->n;
    term y = term_function(t, "sqrt", type, 1, x, NULL, NULL);
    if (t->n != before) {
        term defined = term_not(t, less(t, x, zero(t, type)));
        term is_root =
            term_and(t, term_not(t, less(t, y, zero(t, type))), term_equal(t, arithmetic(t, "*", type, y, y), x));
        term_assume(t, term_or(t, term_not(t, defined), is_root));
        term_demand(t, defined);
    }
    return y;
}

static term to_whole(struct terms *t, enum ty type, term x)
{
    term down = term_make(t, "to_int", TY_I64, 1, absolute(t, x), NULL, NULL);
    term whole = term_if(t, less(t, x, zero(t, x->type)), negated(t, down), down);
    return ty_is_float(type) ? term_make(t, "to_real", type, 1, whole, NULL, NULL) : whole;
}

static term call(struct terms *t, const struct expr *e, const term *arg)
{
    const enum ty type = arg[0]->type;
    term x = arg[0];
    switch ((enum fn)e->op) {
    case FN_MIN:
    case FN_MAX: return extreme(t, e->op == FN_MAX, x, arg[1]);
    case FN_CLAMP: return extreme(t, false, extreme(t, true, x, arg[1]), arg[2]);
    case FN_ABS: return in_range(t, absolute(t, x));
    case FN_SIGN:
        return term_if(t, less(t, x, zero(t, type)), negated(t, one(t, type)),
                       term_if(t, less(t, zero(t, type), x), one(t, type), zero(t, type)));
    case FN_EXP: return exponential(t, x);
    case FN_SQRT: return root(t, x);
    case FN_RSQRT: return arithmetic(t, "/", type, one(t, type), root(t, x));
    case FN_HYPOT: return root(t, sum(t, type, product(t, type, x, x), product(t, type, arg[1], arg[1])));
    case FN_FMA: return sum(t, type, product(t, type, x, arg[1]), arg[2]);
    case FN_TRUNC: return to_whole(t, type, x);
    case FN_FLOOR:
        return term_make(t, "to_real", type, 1, term_make(t, "to_int", TY_I64, 1, x, NULL, NULL), NULL, NULL);
    case FN_ISNAN: return term_true(t, false);
    case FN_ISINF: return term_true(t, x->infinite != 0);
    default: return opaque(t, fn_name((enum fn)e->op), type, e->type, e->nargs, arg);
    }
}

static term cast(struct terms *t, enum ty to, term x)
{
    const enum ty from = x->type;
    if (from == to || (ty_is_float(from) && ty_is_float(to) && x->infinite))
        return x;
    if (to == TY_BOOL)
        return term_not(t, term_equal(t, x, zero(t, from)));
    if (from == TY_BOOL)
        return term_if(t, x, one(t, to), zero(t, to));
    if (ty_is_float(from) == ty_is_float(to)) /* one sort; the terms differ in their type alone */
        return in_range(t, term_make(t, "+", to, 2, x, zero(t, from), NULL));
    if (ty_is_float(to))
        return term_make(t, "to_real", to, 1, x, NULL, NULL);
    term whole = to_whole(t, to, x);
    return in_range(t, to == TY_I64 ? whole : term_make(t, "+", to, 2, whole, zero(t, TY_I64), NULL));
}

term ideal_term(struct terms *t, const struct expr *e, const term *arg)
{
    if (e->kind == EX_CAST)
        return cast(t, e->type, arg[0]);
    if (e->kind == EX_CALL)
        return call(t, e, arg);
    if (e->kind == EX_BINARY)
        return binary(t, e, arg);
    if (e->op == UN_NEG)
        return in_range(t, negated(t, arg[0]));
    return opaque(t, "not", arg[0]->type, arg[0]->type, 1, arg);
}
