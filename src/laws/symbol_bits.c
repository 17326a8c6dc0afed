/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_bits.c - operations as terms over bit-vectors and IEEE floats: the meaning that docs/spec-language.md gives
 * them.
 *
 * Operations that SMT-LIB does not have (exp, popcount, fmod) are functions of which only this is known: equal operands
 * give equal results.  That is enough for some proofs, and counterexamples are checked by the oracle anyway.
 */
#include <stdio.h>

#include "terms.h"

/* The sort's parameters of a float type. */
static void float_format(enum ty t, int *exponent, int *digits)
{
    *exponent = t == TY_F16 ? 5 : t == TY_F64 ? 11 : 8;
    *digits = ty_bits(t) - *exponent;
}

static term unary(struct terms *t, const char *op, enum ty type, term x)
{
    return term_make(t, op, type, 1, x, NULL, NULL);
}
static term test(struct terms *t, const char *op, term x) { return term_make(t, op, TY_BOOL, 1, x, NULL, NULL); }
static term binary(struct terms *t, const char *op, enum ty type, term x, term y)
{
    return term_make(t, op, type, 2, x, y, NULL);
}

static term opaque(struct terms *t, const char *name, enum ty from, enum ty to, int nargs, const term *arg)
{
    return term_function(t, arena_printf(t->a, "%s.%s", name, ty_name(from)), to, nargs, arg[0], arg[1], arg[2]);
}

static term zero(struct terms *t, enum ty type) { return term_value(t, type, (union value){ .u = 0 }); }

static term int_binary(struct terms *t, const struct expr *e, term x, term y)
{
    const enum ty type = x->type;
    const bool is_signed = ty_is_signed(type);
    switch ((enum binary)e->op) {
    case BIN_ADD: return term_commuting(t, "bvadd", type, x, y);
    case BIN_SUB: return binary(t, "bvsub", type, x, y);
    case BIN_MUL: return term_commuting(t, "bvmul", type, x, y);
    case BIN_DIV:
        return term_if(t, term_equal(t, y, zero(t, type)), zero(t, type),
                       binary(t, is_signed ? "bvsdiv" : "bvudiv", type, x, y));
    case BIN_REM:
        return term_if(t, term_equal(t, y, zero(t, type)), zero(t, type),
                       binary(t, is_signed ? "bvsrem" : "bvurem", type, x, y));
    case BIN_AND: return term_commuting(t, "bvand", type, x, y);
    case BIN_OR: return term_commuting(t, "bvor", type, x, y);
    case BIN_XOR: return term_commuting(t, "bvxor", type, x, y);
    case BIN_SHL: return binary(t, "bvshl", type, x, y);
    case BIN_SHR: return binary(t, is_signed ? "bvashr" : "bvlshr", type, x, y);
    case BIN_EQ: return term_equal(t, x, y);
    case BIN_NE: return term_not(t, term_equal(t, x, y));
    case BIN_LT: return binary(t, is_signed ? "bvslt" : "bvult", TY_BOOL, x, y);
    case BIN_LE: return binary(t, is_signed ? "bvsle" : "bvule", TY_BOOL, x, y);
    case BIN_GT: return binary(t, is_signed ? "bvslt" : "bvult", TY_BOOL, y, x);
    default: return binary(t, is_signed ? "bvsle" : "bvule", TY_BOOL, y, x);
    }
}

static term bool_binary(struct terms *t, const struct expr *e, term x, term y)
{
    switch ((enum binary)e->op) {
    case BIN_AND: return term_and(t, x, y);
    case BIN_OR: return term_or(t, x, y);
    case BIN_NE:
    case BIN_XOR: return term_not(t, term_equal(t, x, y));
    default: return term_equal(t, x, y);
    }
}

static term float_binary(struct terms *t, const struct expr *e, const term *arg)
{
    const enum ty type = arg[0]->type;
    term x = arg[0], y = arg[1];
    switch ((enum binary)e->op) {
    case BIN_ADD: return term_commuting(t, "fp.add RNE", type, x, y);
    case BIN_SUB: return binary(t, "fp.sub RNE", type, x, y);
    case BIN_MUL: return term_commuting(t, "fp.mul RNE", type, x, y);
    case BIN_DIV: return binary(t, "fp.div RNE", type, x, y);
    case BIN_REM: return opaque(t, "fmod", type, type, 2, arg);
    case BIN_EQ: return term_commuting(t, "fp.eq", TY_BOOL, x, y);
    case BIN_NE: return term_not(t, term_commuting(t, "fp.eq", TY_BOOL, x, y));
    case BIN_LT: return binary(t, "fp.lt", TY_BOOL, x, y);
    case BIN_LE: return binary(t, "fp.leq", TY_BOOL, x, y);
    case BIN_GT: return binary(t, "fp.lt", TY_BOOL, y, x);
    default: return binary(t, "fp.leq", TY_BOOL, y, x);
    }
}

/* NaN loses, and -0 is below +0. */
static term float_extreme(struct terms *t, bool maximum, term x, term y)
{
    term below = term_or(t, binary(t, "fp.lt", TY_BOOL, x, y),
                         term_and(t, term_commuting(t, "fp.eq", TY_BOOL, x, y), test(t, "fp.isNegative", x)));
    term among = term_if(t, below, maximum ? y : x, maximum ? x : y);
    return term_if(t, test(t, "fp.isNaN", x), y, term_if(t, test(t, "fp.isNaN", y), x, among));
}

/* Commutes in every bit, so the operands have an order of their own. */
static term extreme(struct terms *t, bool maximum, term first, term second)
{
    term x = first->id <= second->id ? first : second, y = x == first ? second : first;
    if (ty_is_float(x->type))
        return float_extreme(t, maximum, x, y);
    term below = binary(t, ty_is_signed(x->type) ? "bvslt" : "bvult", TY_BOOL, x, y);
    return term_if(t, below, maximum ? y : x, maximum ? x : y);
}

static term float_call(struct terms *t, const struct expr *e, const term *arg)
{
    const enum ty type = arg[0]->type;
    term x = arg[0], nought = zero(t, type);
    switch ((enum fn)e->op) {
    case FN_ABS: return unary(t, "fp.abs", type, x);
    case FN_SIGN:
        return term_if(
            t, binary(t, "fp.lt", TY_BOOL, nought, x), term_value(t, type, (union value){ .f = 1 }),
            term_if(t, binary(t, "fp.lt", TY_BOOL, x, nought), term_value(t, type, (union value){ .f = -1 }), x));
    case FN_SQRT: return unary(t, "fp.sqrt RNE", type, x);
    case FN_FMA:
        return x->id <= arg[1]->id ? term_make(t, "fp.fma RNE", type, 3, x, arg[1], arg[2])
                                   : term_make(t, "fp.fma RNE", type, 3, arg[1], x, arg[2]);
    case FN_FLOOR: return unary(t, "fp.roundToIntegral RTN", type, x);
    case FN_CEIL: return unary(t, "fp.roundToIntegral RTP", type, x);
    case FN_TRUNC: return unary(t, "fp.roundToIntegral RTZ", type, x);
    case FN_ROUND: return unary(t, "fp.roundToIntegral RNE", type, x);
    case FN_ISNAN: return test(t, "fp.isNaN", x);
    case FN_ISINF: return test(t, "fp.isInfinite", x);
    default: return opaque(t, fn_name((enum fn)e->op), type, e->type, e->nargs, arg);
    }
}

static term call(struct terms *t, const struct expr *e, const term *arg)
{
    const enum ty type = arg[0]->type;
    term x = arg[0];
    if (e->op == FN_MIN || e->op == FN_MAX)
        return extreme(t, e->op == FN_MAX, x, arg[1]);
    if (e->op == FN_CLAMP)
        return extreme(t, false, extreme(t, true, x, arg[1]), arg[2]);
    if (ty_is_float(type))
        return float_call(t, e, arg);
    term negative = ty_is_signed(type) ? binary(t, "bvslt", TY_BOOL, x, zero(t, type)) : term_true(t, false);
    if (e->op == FN_ABS)
        return term_if(t, negative, unary(t, "bvneg", type, x), x);
    if (e->op == FN_SIGN)
        return term_if(t, negative, term_integer(t, type, -1),
                       term_if(t, term_equal(t, x, zero(t, type)), x, term_integer(t, type, 1)));
    return opaque(t, fn_name((enum fn)e->op), type, e->type, e->nargs, arg);
}

static term int_from_float(struct terms *t, enum ty to, term x)
{
    const enum ty from = x->type;
    const union value low = ref_cast(TY_F64, to, (union value){ .f = -0x1p64 }),
                      high = ref_cast(TY_F64, to, (union value){ .f = 0x1p64 });
    char op[40];
    snprintf(op, sizeof op, "(_ fp.to_%cbv %d) RTZ", ty_is_signed(to) ? 's' : 'u', ty_bits(to));
    /* the first float beyond either end; of a range that the float type does not leave there is none but infinity */
    const double above = ref_round(from, ty_is_signed(to) ? (double)high.i + 1 : (double)high.u + 1);
    const double below = ref_round(from, ty_is_signed(to) ? (double)low.i : 0);
    term too_high = binary(t, "fp.leq", TY_BOOL, term_value(t, from, (union value){ .f = above }), x);
    term too_low = binary(t, "fp.leq", TY_BOOL, x, term_value(t, from, (union value){ .f = below }));
    return term_if(t, test(t, "fp.isNaN", x), zero(t, to),
                   term_if(t, too_high, term_value(t, to, high),
                           term_if(t, too_low, term_value(t, to, low), unary(t, op, to, x))));
}

static term cast(struct terms *t, enum ty to, term x)
{
    const enum ty from = x->type;
    char op[48];
    int exponent, digits;
    if (from == to)
        return x;
    if (to == TY_BOOL)
        return term_not(t, ty_is_float(from) ? term_commuting(t, "fp.eq", TY_BOOL, x, zero(t, from))
                                             : term_equal(t, x, zero(t, from)));
    if (from == TY_BOOL)
        return term_if(t, x, term_value(t, to, ref_cast(TY_I32, to, (union value){ .i = 1 })), zero(t, to));
    if (ty_is_float(to)) {
        float_format(to, &exponent, &digits);
        const bool naturals = !ty_is_float(from) && !ty_is_signed(from);
        snprintf(op, sizeof op, "(_ to_fp%s %d %d) RNE", naturals ? "_unsigned" : "", exponent, digits);
        return unary(t, op, to, x);
    }
    if (ty_is_float(from))
        return int_from_float(t, to, x);
    const int more = ty_bits(to) - ty_bits(from);
    if (more == 0) /* the same sort under another type */
        return unary(t, "(_ zero_extend 0)", to, x);
    if (more > 0)
        snprintf(op, sizeof op, "(_ %s_extend %d)", ty_is_signed(from) ? "sign" : "zero", more);
    else
        snprintf(op, sizeof op, "(_ extract %d 0)", ty_bits(to) - 1);
    return unary(t, op, to, x);
}

term bits_term(struct terms *t, const struct expr *e, const term *arg)
{
    const enum ty type = arg[0]->type;
    if (e->kind == EX_CAST)
        return cast(t, e->type, arg[0]);
    if (e->kind == EX_CALL)
        return call(t, e, arg);
    if (e->kind == EX_UNARY)
        return unary(t, e->op == UN_COMPL ? "bvnot" : ty_is_float(type) ? "fp.neg" : "bvneg", type, arg[0]);
    if (type == TY_BOOL)
        return bool_binary(t, e, arg[0], arg[1]);
    return ty_is_float(type) ? float_binary(t, e, arg) : int_binary(t, e, arg[0], arg[1]);
}
