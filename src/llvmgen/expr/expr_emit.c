/* SPDX-License-Identifier: Apache-2.0 */
/* expr_emit.c - see expr_emit.h.
 *
 * Everything is total: no operand makes LLVM's poison, so values may be computed for lanes whose value is not used, and `if`
 * is a select.  Guards fold away where an operand is known while generating: a division by a nonzero constant is one
 * division.
 */
#include "expr_emit.h"

#include <math.h>

#include "llvmgen/builder/kb_impl.h"

/* ---- environments ------------------------------------------------------------------------------------------------ */

void emit_env_init(struct emit_env *env, emit_leaf leaf, void *user, const struct problem *p)
{
    *env = (struct emit_env){ .leaf = leaf, .user = user, .p = p };
    if (p) {
        env->let = p->let;
        env->nlets = p->nlets;
    }
}

static kb_val emit_let(kb *k, struct emit_env *env, const struct let *let, int nlets, int which)
{
    if (!env->cache && !(env->cache = kb_scratch(k, sizeof *env->cache * (size_t)nlets)))
        return kb_imm(k, let[which].value->type, 0); /* out of memory, which has been noted */
    struct emit_cached *c = &env->cache[which];
    if (!c->value.ir || !kb_reaches(k, c->place)) {
        const kb_val v = kb_name(emit_expr(k, env, let[which].value), let[which].name);
        *c = (struct emit_cached){ v, kb_place(k) };
    }
    return c->value;
}

/* A tuple of the operator's own operands, or whatever the surroundings supply. */
static kb_val emit_leaf_value(kb *k, struct emit_env *env, const struct expr *e)
{
    const kb_tup *own = e->kind == EX_LEFT ? env->left : e->kind == EX_RIGHT ? env->right : NULL;
    kb_val v;
    if (own)
        v = own->e[e->field];
    else if (env->outer)
        v = emit_expr(k, env->outer, e);
    else if (env->leaf)
        v = env->leaf(k, env, e);
    else {
        kb_misuse(k, "an expression reads what its place does not supply (kind %d)", (int)e->kind);
        return kb_imm(k, e->type, 0);
    }
    if (v.ty != e->type) {
        kb_misuse(k, "leaf of kind %d has type %s, not %s", (int)e->kind, ty_name(v.ty), ty_name(e->type));
        return kb_imm(k, e->type, 0);
    }
    return v;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* x / 0 and x % 0 are 0; MIN / -1 is MIN and x % -1 is 0.  The divisor that the hardware sees is never 0 nor, where
 * that overflows, -1. */
static kb_val divide(kb *k, bool remainder, kb_val a, kb_val b)
{
    const enum kb_bin op = remainder ? KB_REM : KB_DIV;
    const bool is_signed = ty_is_signed(a.ty);
    const kb_val zero = kb_imm(k, a.ty, 0), one = kb_imm(k, a.ty, 1);
    int64_t known;
    if (kb_is_const(b, &known)) {
        if (known == 0)
            return zero;
        if (!is_signed || known != -1)
            return kb_bin(k, op, a, kb_arg_v(b));
        return remainder ? zero : kb_neg(k, a);
    }
    const kb_val by_zero = kb_eq(k, b, zero);
    if (!is_signed)
        return kb_select(k, by_zero, zero, kb_bin(k, op, a, kb_arg_v(kb_select(k, by_zero, one, b))));
    const kb_val by_minus = kb_eq(k, b, -1);
    const kb_val safe = kb_select(k, kb_or(k, by_zero, by_minus), one, b);
    const kb_val r = kb_bin(k, op, a, kb_arg_v(safe)); /* a, or 0 for the remainder, when b is 0 or -1 */
    return remainder ? r : kb_select(k, by_zero, zero, kb_select(k, by_minus, kb_neg(k, a), r));
}

/* Note [Division by an odd whole number]
 *
 * The hardware's division branches to a slow path, which keeps the divisions of neighbouring points apart.  For an odd
 * whole number c up to WHOLE_MAX, y = 1/c rounded and q = x * y rounded, q is at most one and a half units in its last
 * place from x / c.  r = x - c * q is a multiple of that unit and a small one, so fma gives it exactly, and
 * q + r * y = x / c + (x / c - q) * (c * y - 1) differs from x / c by less than 2^-22 units.  x / c is a multiple of
 * 1 / c units, and c is odd, so it is no midpoint between two neighbours and at least 1 / (2 c) units from one:
 * rounding gives what rounding x / c gives.  This holds for denormal numbers too, whose unit is fixed.  Where r is 0 q
 * is right, sign and all, and where x is infinite r is no number. */
enum { WHOLE_MAX = 1023 };

static bool odd_whole(kb_val b, double *c)
{
    LLVMBool inexact;
    if ((b.ty != TY_F32 && b.ty != TY_F64) || !LLVMIsAConstantFP(b.ir))
        return false;
    *c = LLVMConstRealGetDouble(b.ir, &inexact);
    return *c >= 3 && *c <= WHOLE_MAX && fmod(*c, 2) == 1;
}

static kb_val divide_by_whole(kb *k, kb_val x, kb_val b, double c)
{
    const kb_val y = kb_immf(k, x.ty, 1 / c), q = kb_mul(k, x, y);
    const kb_val r = kb_math(k, FN_FMA, 3, (kb_val[]){ kb_neg(k, b), q, x });
    const kb_val corrected = kb_math(k, FN_FMA, 3, (kb_val[]){ r, y, q });
    const kb_val zero = kb_immf(k, x.ty, 0), some = kb_or(k, kb_lt(k, r, zero), kb_gt(k, r, zero));
    return kb_select(k, some, corrected, q);
}

/* By the width or more, or by less than nothing: 0, or the sign for an arithmetic shift to the right.
 *
 * GPUs clamp the amount, of 32 bits, so that for narrow types the comparison folds into the shift.  LLVM folds it where
 * the amount has 64 bits, too, and drops the upper half (performSELECTShiftCombine of its NVPTX target, seen in 22):
 * there the shift's amount is another value than what is compared. */
static kb_val shift(kb *k, enum kb_bin op, kb_val a, kb_val b)
{
    static const enum ty unsigned_of[] = { [TY_I8] = TY_U8, [TY_I16] = TY_U16, [TY_I32] = TY_U32, [TY_I64] = TY_U64,
                                           [TY_U8] = TY_U8, [TY_U16] = TY_U16, [TY_U32] = TY_U32, [TY_U64] = TY_U64 };
    const int width = ty_bits(a.ty);
    const kb_val count = kb_bitcast(k, b, unsigned_of[b.ty]); /* negative counts are large ones */
    if (op == KB_SHR && ty_is_signed(a.ty))
        return kb_bin(k, op, a, kb_arg_v(kb_bitcast(k, kb_min(k, count, width - 1), a.ty)));
    const kb_val inside = kb_lt(k, count, width);
    const kb_val safe =
        width == 64 ? kb_bitcast(k, kb_min(k, count, width - 1), b.ty) : kb_select(k, inside, b, kb_imm(k, b.ty, 0));
    return kb_select(k, inside, kb_bin(k, op, a, kb_arg_v(safe)), kb_imm(k, a.ty, 0));
}

static const enum kb_bin plain[] = {
    [BIN_ADD] = KB_ADD, [BIN_SUB] = KB_SUB,  [BIN_MUL] = KB_MUL, [BIN_DIV] = KB_DIV, [BIN_REM] = KB_REM,
    [BIN_AND] = KB_AND, [BIN_OR] = KB_OR,    [BIN_XOR] = KB_XOR, [BIN_SHL] = KB_SHL, [BIN_SHR] = KB_SHR,
    [BIN_EQ] = KB_EQ,   [BIN_NE] = KB_NE,    [BIN_LT] = KB_LT,   [BIN_LE] = KB_LE,   [BIN_GT] = KB_GT,
    [BIN_GE] = KB_GE,   [BIN_LAND] = KB_AND, [BIN_LOR] = KB_OR,
};

/* bool: false < true. */
kb_val emit_binary(kb *k, enum binary op, kb_val a, kb_val b)
{
    if (a.ty != b.ty) {
        kb_misuse(k, "operands of types %s and %s", ty_name(a.ty), ty_name(b.ty));
        return a;
    }
    if (ty_is_int(a.ty) && (op == BIN_DIV || op == BIN_REM))
        return divide(k, op == BIN_REM, a, b);
    if (ty_is_int(a.ty) && (op == BIN_SHL || op == BIN_SHR))
        return shift(k, plain[op], a, b);
    double whole;
    if (op == BIN_DIV && odd_whole(b, &whole))
        return divide_by_whole(k, a, b, whole);
    return kb_bin(k, plain[op], a, kb_arg_v(b));
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

static kb_val absolute(kb *k, kb_val x)
{
    if (ty_is_int(x.ty) && ty_is_signed(x.ty) && ty_bits(x.ty) < 32) /* LLVM has an instruction for words alone */
        return kb_cast(k, absolute(k, kb_cast(k, x, TY_I32)), x.ty);
    LLVMValueRef args[] = { x.ir, LLVMConstNull(kb_llvm_ty(k, TY_BOOL)) /* MIN is defined */ };
    if (ty_bits(x.ty) == 16 && ty_is_float(x.ty)) /* without the sign bit */
        return kb_bitcast(k, kb_and(k, kb_bitcast(k, x, TY_U16), 0x7fff), x.ty);
    if (ty_is_float(x.ty))
        return kb_make(kb_overloaded(k, "llvm.fabs", x.ty, 1, args), x.ty, x.uni);
    return ty_is_signed(x.ty) ? kb_make(kb_overloaded(k, "llvm.abs", x.ty, 2, args), x.ty, x.uni) : x;
}

/* What is neither above nor below zero is its own sign: 0, -0, NaN. */
static kb_val sign(kb *k, kb_val x)
{
    const kb_val zero = kb_imm(k, x.ty, 0), one = kb_imm(k, x.ty, 1);
    kb_val r = kb_select(k, kb_gt(k, x, zero), one, x);
    if (ty_kind(x.ty) != 'u')
        r = kb_select(k, kb_lt(k, x, zero), kb_imm(k, x.ty, -1), r);
    return r;
}

kb_val emit_function(kb *k, enum fn f, int n, const kb_val *arg)
{
    const kb_val x = arg[0];
    switch (f) {
    case FN_MIN: return kb_min(k, x, arg[1]);
    case FN_MAX: return kb_max(k, x, arg[1]);
    case FN_ABS: return absolute(k, x);
    case FN_SIGN: return sign(k, x);
    case FN_CLAMP: return kb_min(k, kb_max(k, x, arg[1]), arg[2]);
    case FN_SELECT: return kb_select(k, x, arg[1], arg[2]);
    case FN_ISNAN: return kb_ne(k, x, x);
    case FN_ISINF: return kb_eq(k, absolute(k, x), kb_immf(k, x.ty, INFINITY));
    case FN_POPCOUNT: return kb_popcount(k, x);
    case FN_CLZ: return kb_clz(k, x);
    case FN_CTZ: return kb_ctz(k, x);
    default: return kb_math(k, (int)f, n, arg);
    }
}

/* ---- expressions ------------------------------------------------------------------------------------------------- */

static kb_val emit_if(kb *k, struct emit_env *env, const struct expr *e)
{
    const kb_val c = emit_expr(k, env, e->arg[0]);
    int64_t known;
    if (kb_is_const(c, &known))
        return emit_expr(k, env, e->arg[known ? 1 : 2]);
    const kb_val yes = emit_expr(k, env, e->arg[1]), no = emit_expr(k, env, e->arg[2]);
    return kb_select(k, c, yes, no);
}

static kb_val emit_operation(kb *k, struct emit_env *env, const struct expr *e)
{
    kb_val arg[OPERANDS_MAX];
    if (env->is_index && e->kind == EX_BINARY && e->op == BIN_EQ && e->arg[0]->kind == EX_INDEX &&
        e->arg[0]->which == env->indexed)
        return env->is_index(k, env, emit_expr(k, env, e->arg[1]));
    for (int i = 0; i < e->nargs; i++)
        arg[i] = emit_expr(k, env, e->arg[i]);
    if (env->quotient && e->kind == EX_BINARY && e->which2) {
        const kb_val q = env->quotient(k, env, arg[0], e->arg[1]->which);
        return e->op == BIN_DIV ? q : kb_sub(k, arg[0], kb_mul(k, q, arg[1]));
    }
    switch (e->kind) {
    case EX_UNARY: return e->op == UN_NEG ? kb_neg(k, arg[0]) : kb_not(k, arg[0]);
    case EX_BINARY: {
        const kb_val v = emit_binary(k, (enum binary)e->op, arg[0], arg[1]);
        return e->field == FUSES ? kb_fusing(k, v) : v;
    }
    case EX_CALL:
        if (problem_exp_falls(env->outer ? env->outer->p : env->p, env->op, e))
            return kb_math(k, KB_FN_EXP_FALLING, e->nargs, arg);
        return emit_function(k, (enum fn)e->op, e->nargs, arg);
    default: return kb_cast(k, arg[0], e->type);
    }
}

kb_val emit_expr(kb *k, struct emit_env *env, const struct expr *e)
{
    kb_val held;
    if (e == env->known)
        return env->known_value;
    if (sum_held(k, env, e, &held))
        return held;
    switch (e->kind) {
    case EX_CONST: return kb_const(k, e->type, e->imm);
    case EX_IF: return emit_if(k, env, e);
    case EX_UNARY:
    case EX_BINARY:
    case EX_CALL:
    case EX_CAST: return emit_operation(k, env, e);
    case EX_LET:
        if (env->outer) /* the problem's, not the operator's */
            return emit_expr(k, env->outer, e);
        if (e->which < env->nlets)
            return emit_let(k, env, env->let, env->nlets, e->which);
        break;
    case EX_OP_LET:
        if (env->op && e->which < env->op->nlets)
            return emit_let(k, env, env->op->let, env->op->nlets, e->which);
        break;
    case EX_SUM: return sum_emit(k, env->outer ? env->outer : env, e);
    case EX_RUN: return sum_index(k, env, e);
    default: return emit_leaf_value(k, env, e);
    }
    kb_misuse(k, "let %d does not exist here", e->which);
    return kb_imm(k, e->type, 0);
}

kb_tup emit_exprs(kb *k, struct emit_env *env, int n, const struct expr *const *e)
{
    kb_tup x = { .n = n };
    for (int i = 0; i < n; i++)
        x.e[i] = emit_expr(k, env, e[i]);
    return x;
}
