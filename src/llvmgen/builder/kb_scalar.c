/* SPDX-License-Identifier: Apache-2.0 */
/* kb_scalar.c - constants and scalar operations.
 *
 * Small floats: f16 arithmetic is native on every target that is supported; bf16 goes through f32 and back, which is
 * correctly rounded for + - * / and sqrt (24 >= 2 * 11 + 2 bits of significand: Figueroa, "When is double rounding
 * innocuous?", 1995) and the same bits on every architecture.  So it is for denormal results: sums are exact then,
 * products as exact as what they are rounded to allows, and a quotient of significands A and B below 2^11 is at least
 * 1 / (2^11 B) of itself away from what lies halfway between two numbers of the format, which f32 resolves.
 */
#include "kb_impl.h"

#include <string.h>

#include "frontend/expr/expr.h"

kb_val kb_imm(kb *k, enum ty ty, int64_t x)
{
    if (ty_is_float(ty))
        return kb_immf(k, ty, (double)x);
    const uint64_t mask = UINT64_MAX >> (64 - ty_bits(ty));
    return kb_make(LLVMConstInt(k->ty[ty], (uint64_t)x & mask, false), ty, KB_UNI_GRID);
}

/* The conversion to the type is made here, so that it rounds as the language's conversion does. */
kb_val kb_immf(kb *k, enum ty ty, double x)
{
    if (ty == TY_F16 || ty == TY_BF16) {
        const uint16_t bits = ty == TY_F16 ? f16_from_double(x) : bf16_from_double(x);
        LLVMValueRef word = LLVMConstInt(kb_int_ty(k, 16), bits, false);
        return kb_make(LLVMConstBitCast(word, k->ty[ty]), ty, KB_UNI_GRID);
    }
    if (ty == TY_F32)
        x = (double)(float)x;
    return kb_make(LLVMConstReal(k->ty[ty], x), ty, KB_UNI_GRID);
}

kb_val kb_const(kb *k, enum ty ty, union value v) { return ty_is_float(ty) ? kb_immf(k, ty, v.f) : kb_imm(k, ty, v.i); }

bool kb_is_const(kb_val v, int64_t *x)
{
    if (ty_is_float(v.ty) || !v.ir || !LLVMIsAConstantInt(v.ir))
        return false;
    *x = ty_is_signed(v.ty) ? LLVMConstIntGetSExtValue(v.ir) : (int64_t)LLVMConstIntGetZExtValue(v.ir);
    return true;
}

/* ---- binary operations ------------------------------------------------------------------------------------------- */

/* Every operation is rounded by itself, as the language says and the oracle does: a * b + c is fused only where a spec
 * says fma, or with kb_fusing(). */
static LLVMValueRef float_op(kb *k, enum kb_bin op, enum ty ty, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef args[] = { a, b };
    switch (op) {
    case KB_ADD: return LLVMBuildFAdd(k->b, a, b, "");
    case KB_SUB: return LLVMBuildFSub(k->b, a, b, "");
    case KB_MUL: return LLVMBuildFMul(k->b, a, b, "");
    case KB_DIV: return LLVMBuildFDiv(k->b, a, b, "");
    case KB_MIN:
    case KB_MAX: return k->target->extreme(k, op == KB_MAX, ty, a, b);
    case KB_REM: return k->target->math(k, KB_FN_FMOD, ty, 2, args);
    default: break;
    }
    kb_misuse(k, "operation %d on type %s", (int)op, ty_name(ty));
    return a;
}

static LLVMOpcode opcode(LLVMValueRef v) { return LLVMIsAInstruction(v) ? LLVMGetInstructionOpcode(v) : 0; }

static bool is_fusing_product(LLVMValueRef v)
{
    return opcode(v) == LLVMFMul && (LLVMGetFastMathFlags(v) & LLVMFastMathAllowContract);
}

/* The sum, with the product among its operands unrounded; of two the right one. */
static kb_val with_product(kb *k, kb_val sum)
{
    const bool right = is_fusing_product(LLVMGetOperand(sum.ir, 1)), minus = opcode(sum.ir) == LLVMFSub;
    LLVMValueRef product = LLVMGetOperand(sum.ir, right);
    kb_val x[3];
    if ((sum.ty != TY_F32 && sum.ty != TY_F64) || !is_fusing_product(product))
        return sum;
    for (int i = 0; i < 3; i++)
        x[i] = kb_make(i < 2 ? LLVMGetOperand(product, (unsigned)i) : LLVMGetOperand(sum.ir, !right), sum.ty, sum.uni);
    if (minus)
        x[right ? 0 : 2] = kb_neg(k, x[right ? 0 : 2]);
    return kb_math(k, FN_FMA, 3, x);
}

kb_val kb_fusing(kb *k, kb_val v)
{
    const LLVMOpcode op = opcode(v.ir);
    if (op == LLVMFAdd || op == LLVMFSub || op == LLVMFMul)
        LLVMSetFastMathFlags(v.ir, LLVMFastMathAllowContract);
    return k->target->fuses && (op == LLVMFAdd || op == LLVMFSub) ? with_product(k, v) : v;
}

/* In the type itself, or in f32 and back. */
static LLVMValueRef float_arith(kb *k, enum kb_bin op, kb_val a, kb_val b)
{
    LLVMValueRef native = NULL;
    if (op == KB_MIN || op == KB_MAX)
        native = k->target->extreme(k, op == KB_MAX, a.ty, a.ir, b.ir);
    if (native)
        return native;
    const bool small = a.ty == TY_BF16 || (a.ty == TY_F16 && op != KB_ADD && op != KB_SUB && op != KB_MUL);
    if (!small)
        return float_op(k, op, a.ty, a.ir, b.ir);
    LLVMTypeRef f32 = k->ty[TY_F32];
    LLVMValueRef r = float_op(k, op, TY_F32, LLVMBuildFPExt(k->b, a.ir, f32, ""), LLVMBuildFPExt(k->b, b.ir, f32, ""));
    return LLVMBuildFPTrunc(k->b, r, k->ty[a.ty], "");
}

static LLVMValueRef int_arith(kb *k, enum kb_bin op, kb_val a, kb_val b)
{
    const bool s = ty_is_signed(a.ty);
    LLVMValueRef args[] = { a.ir, b.ir };
    if (k->target->division_traps && (op == KB_DIV || op == KB_REM) && !LLVMIsConstant(b.ir)) {
        LLVMValueRef one = LLVMConstInt(LLVMTypeOf(b.ir), 1, false);
        b.ir = LLVMBuildSelect(k->b, LLVMBuildIsNull(k->b, b.ir, ""), one, b.ir, "");
    }
    switch (op) {
    case KB_ADD: return LLVMBuildAdd(k->b, a.ir, b.ir, "");
    case KB_SUB: return LLVMBuildSub(k->b, a.ir, b.ir, "");
    case KB_MUL: return LLVMBuildMul(k->b, a.ir, b.ir, "");
    case KB_DIV: return (s ? LLVMBuildSDiv : LLVMBuildUDiv)(k->b, a.ir, b.ir, "");
    case KB_REM: return (s ? LLVMBuildSRem : LLVMBuildURem)(k->b, a.ir, b.ir, "");
    case KB_AND: return LLVMBuildAnd(k->b, a.ir, b.ir, "");
    case KB_OR: return LLVMBuildOr(k->b, a.ir, b.ir, "");
    case KB_XOR: return LLVMBuildXor(k->b, a.ir, b.ir, "");
    case KB_SHL: return LLVMBuildShl(k->b, a.ir, b.ir, "");
    case KB_SHR: return (s ? LLVMBuildAShr : LLVMBuildLShr)(k->b, a.ir, b.ir, "");
    case KB_MIN: return kb_overloaded(k, s ? "llvm.smin" : "llvm.umin", a.ty, 2, args);
    case KB_MAX: return kb_overloaded(k, s ? "llvm.smax" : "llvm.umax", a.ty, 2, args);
    default: return a.ir;
    }
}

static LLVMValueRef compare(kb *k, enum kb_bin op, kb_val a, kb_val b)
{
    static const struct {
        LLVMIntPredicate s, u;
        LLVMRealPredicate f;
    } pred[] = {
        [KB_EQ - KB_EQ] = { LLVMIntEQ, LLVMIntEQ, LLVMRealOEQ },
        [KB_NE - KB_EQ] = { LLVMIntNE, LLVMIntNE, LLVMRealUNE },
        [KB_LT - KB_EQ] = { LLVMIntSLT, LLVMIntULT, LLVMRealOLT },
        [KB_LE - KB_EQ] = { LLVMIntSLE, LLVMIntULE, LLVMRealOLE },
        [KB_GT - KB_EQ] = { LLVMIntSGT, LLVMIntUGT, LLVMRealOGT },
        [KB_GE - KB_EQ] = { LLVMIntSGE, LLVMIntUGE, LLVMRealOGE },
    };
    const int p = (int)op - KB_EQ;
    if (!ty_is_float(a.ty))
        return LLVMBuildICmp(k->b, ty_is_signed(a.ty) ? pred[p].s : pred[p].u, a.ir, b.ir, "");
    if (a.ty == TY_BF16) { /* widening is exact */
        a.ir = LLVMBuildFPExt(k->b, a.ir, k->ty[TY_F32], "");
        b.ir = LLVMBuildFPExt(k->b, b.ir, k->ty[TY_F32], "");
    }
    return LLVMBuildFCmp(k->b, pred[p].f, a.ir, b.ir, "");
}

kb_val kb_bin(kb *k, enum kb_bin op, kb_val a, kb_arg rhs)
{
    const kb_val b = rhs.v.ir ? rhs.v : kb_imm(k, a.ty, rhs.imm);
    const bool compares = op >= KB_EQ;
    kb_ready(k);
    if (a.ty != b.ty) {
        kb_misuse(k, "operand types differ: %s and %s (operation %d)", ty_name(a.ty), ty_name(b.ty), (int)op);
        return kb_imm(k, compares ? TY_BOOL : a.ty, 0);
    }
    const kb_uni uni = kb_uni_max(a.uni, b.uni);
    if (compares)
        return kb_make(compare(k, op, a, b), TY_BOOL, uni);
    return kb_make(ty_is_float(a.ty) ? float_arith(k, op, a, b) : int_arith(k, op, a, b), a.ty, uni);
}

/* ---- unary operations -------------------------------------------------------------------------------------------- */

kb_val kb_not(kb *k, kb_val a)
{
    if (ty_is_float(a.ty)) {
        kb_misuse(k, "bitwise not of type %s", ty_name(a.ty));
        return a;
    }
    return kb_make(LLVMBuildNot(k->b, a.ir, ""), a.ty, a.uni);
}

kb_val kb_neg(kb *k, kb_val a)
{
    return kb_make(ty_is_float(a.ty) ? LLVMBuildFNeg(k->b, a.ir, "") : LLVMBuildNeg(k->b, a.ir, ""), a.ty, a.uni);
}

kb_val kb_popcount(kb *k, kb_val a) { return kb_make(kb_overloaded(k, "llvm.ctpop", a.ty, 1, &a.ir), a.ty, a.uni); }

kb_val kb_mul_high(kb *k, kb_val a, kb_val b)
{
    const unsigned bits = 8 * (unsigned)ty_bytes(a.ty);
    const LLVMTypeRef wide = LLVMIntTypeInContext(k->cx, 2 * bits);
    if (a.ty != b.ty || (a.ty != TY_U32 && a.ty != TY_U64)) {
        kb_misuse(k, "the upper half of a product of %s and %s", ty_name(a.ty), ty_name(b.ty));
        return a;
    }
    const LLVMValueRef product =
        LLVMBuildMul(k->b, LLVMBuildZExt(k->b, a.ir, wide, ""), LLVMBuildZExt(k->b, b.ir, wide, ""), "");
    const LLVMValueRef upper = LLVMBuildLShr(k->b, product, LLVMConstInt(wide, bits, false), "");
    return kb_make(LLVMBuildTrunc(k->b, upper, k->ty[a.ty], ""), a.ty, kb_uni_max(a.uni, b.uni));
}

kb_val kb_funnel(kb *k, kb_val low, kb_val high, kb_val bits)
{
    LLVMValueRef args[] = { high.ir, low.ir, bits.ir };
    return kb_make(kb_overloaded(k, "llvm.fshr", TY_U32, 3, args), TY_U32,
                   kb_uni_max(kb_uni_max(low.uni, high.uni), bits.uni));
}

kb_val kb_permute_by(kb *k, kb_val low, kb_val high, kb_val which)
{
    if (low.ty != TY_U32 || high.ty != TY_U32 || which.ty != TY_U32) {
        kb_misuse(k, "bytes of %s and %s by %s", ty_name(low.ty), ty_name(high.ty), ty_name(which.ty));
        return low;
    }
    if (k->target->permute)
        return kb_make(k->target->permute(k, low.ir, high.ir, which.ir), TY_U32,
                       kb_uni_max(kb_uni_max(low.uni, high.uni), which.uni));
    const kb_val both = kb_or(k, kb_cast(k, low, TY_U64), kb_shl(k, kb_cast(k, high, TY_U64), 32));
    kb_val all = kb_imm(k, TY_U32, 0);
    for (int i = 0; i < 4; i++) {
        const kb_val from = kb_and(k, kb_shr(k, which, 4 * i), 7),
                     byte = kb_shr(k, both, kb_cast(k, kb_mul(k, from, 8), TY_U64));
        all = kb_or(k, all, kb_shl(k, kb_and(k, kb_cast(k, byte, TY_U32), 255), 8 * i));
    }
    return all;
}

kb_val kb_permute(kb *k, kb_val low, kb_val high, unsigned which)
{
    return kb_permute_by(k, low, high, kb_imm(k, TY_U32, which));
}

kb_val kb_sum_bytes(kb *k, kb_val word, bool is_signed, kb_val plus)
{
    const kb_uni uni = kb_uni_max(word.uni, plus.uni);
    if (word.ty != TY_U32 || plus.ty != TY_I32) {
        kb_misuse(k, "bytes of %s added to %s", ty_name(word.ty), ty_name(plus.ty));
        return plus;
    }
    if (k->target->sum_bytes)
        return kb_make(k->target->sum_bytes(k, word.ir, is_signed, plus.ir), TY_I32, uni);
    for (int i = 0; i < 4; i++)
        plus = kb_add(k, plus, kb_cast(k, kb_extract(k, &word, i, is_signed ? TY_I8 : TY_U8), TY_I32));
    return plus;
}

kb_val kb_dot_bytes(kb *k, kb_val word, kb_val times, kb_val plus)
{
    const kb_uni uni = kb_uni_max(kb_uni_max(word.uni, times.uni), plus.uni);
    if (word.ty != TY_U32 || times.ty != TY_U32 || plus.ty != TY_U32) {
        kb_misuse(k, "bytes of %s times those of %s, and %s", ty_name(word.ty), ty_name(times.ty), ty_name(plus.ty));
        return plus;
    }
    if (k->target->dot_bytes)
        return kb_make(k->target->dot_bytes(k, word.ir, times.ir, plus.ir), TY_U32, uni);
    for (int i = 0; i < 4; i++)
        plus =
            kb_add(k, plus, kb_mul(k, kb_and(k, kb_shr(k, word, 8 * i), 255), kb_and(k, kb_shr(k, times, 8 * i), 255)));
    return plus;
}

static kb_val count_zeros(kb *k, const char *intrinsic, kb_val a)
{
    LLVMValueRef args[] = { a.ir, LLVMConstNull(k->ty[TY_BOOL]) /* zero is defined */ };
    return kb_make(kb_overloaded(k, intrinsic, a.ty, 2, args), a.ty, a.uni);
}
kb_val kb_ctz(kb *k, kb_val a) { return count_zeros(k, "llvm.cttz", a); }
kb_val kb_clz(kb *k, kb_val a) { return count_zeros(k, "llvm.ctlz", a); }

kb_val kb_select_v(kb *k, kb_val c, kb_val a, kb_val b)
{
    int64_t known;
    if (a.ty != b.ty || c.ty != TY_BOOL) {
        kb_misuse(k, "select of %s and %s by %s", ty_name(a.ty), ty_name(b.ty), ty_name(c.ty));
        return a;
    }
    if (kb_is_const(c, &known))
        return known ? a : b;
    kb_ready(k);
    return kb_make(LLVMBuildSelect(k->b, c.ir, a.ir, b.ir, ""), a.ty, kb_uni_max(c.uni, kb_uni_max(a.uni, b.uni)));
}

/* ---- conversions ------------------------------------------------------------------------------------------------- */

kb_val kb_bitcast(kb *k, kb_val a, enum ty to)
{
    if (ty_bits(a.ty) != ty_bits(to)) {
        kb_misuse(k, "bits of %s taken as %s", ty_name(a.ty), ty_name(to));
        return kb_imm(k, to, 0);
    }
    return kb_make(LLVMBuildBitCast(k->b, a.ir, k->ty[to], ""), to, a.uni);
}

static LLVMValueRef float_to_float(kb *k, LLVMValueRef x, enum ty from, enum ty to)
{
    if (ty_bits(from) == 16 && to != TY_F32) { /* f32 holds both small formats */
        x = LLVMBuildFPExt(k->b, x, k->ty[TY_F32], "");
        from = TY_F32;
    }
    return ty_bits(from) < ty_bits(to) ? LLVMBuildFPExt(k->b, x, k->ty[to], "")
                                       : LLVMBuildFPTrunc(k->b, x, k->ty[to], "");
}

/* Saturates; NaN gives 0. */
static LLVMValueRef float_to_int(kb *k, LLVMValueRef x, enum ty from, enum ty to)
{
    char name[64] = "llvm.fptosi.sat.i";
    if (ty_bits(from) == 16) {
        x = LLVMBuildFPExt(k->b, x, k->ty[TY_F32], "");
        from = TY_F32;
    }
    if (!ty_is_signed(to))
        name[9] = 'u';
    size_t n = strlen(name);
    const int bits = ty_bits(to);
    if (bits >= 10)
        name[n++] = (char)('0' + bits / 10);
    name[n++] = (char)('0' + bits % 10);
    memcpy(name + n, from == TY_F64 ? ".f64" : ".f32", 5);
    return kb_call(k, name, k->ty[to], 1, &x, false);
}

/* A 64-bit integer of more than 53 bits loses its low 11, and is made odd where they were not zero: rounding it to at
 * most 51 bits is then what rounding the integer is ("rounding to odd", Boldo and Melquiond, 2008). */
static LLVMValueRef short_integer(kb *k, LLVMValueRef x, bool is_signed)
{
    enum { LOST = 11 };
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMValueRef zero = LLVMConstInt(type, 0, false), limit = LLVMConstInt(type, UINT64_C(1) << 53, false);
    LLVMValueRef low = LLVMBuildAnd(k->b, x, LLVMConstInt(type, (1u << LOST) - 1, false), "");
    LLVMValueRef some = LLVMBuildZExt(k->b, LLVMBuildICmp(k->b, LLVMIntNE, low, zero, ""), type, "");
    LLVMValueRef odd = LLVMBuildShl(k->b, some, LLVMConstInt(type, LOST, false), "");
    LLVMValueRef shorter = LLVMBuildOr(k->b, LLVMBuildSub(k->b, x, low, ""), odd, "");
    LLVMValueRef from = is_signed ? LLVMBuildAdd(k->b, x, limit, "") : x; /* within [0, 2 limit), as unsigned */
    LLVMValueRef most = LLVMConstInt(type, UINT64_C(1) << (is_signed ? 54 : 53), false);
    return LLVMBuildSelect(k->b, LLVMBuildICmp(k->b, LLVMIntULT, from, most, ""), x, shorter, "");
}

/* To the small formats by way of f64, which holds every 32-bit integer: rounded once.  What f64 does not hold is beyond
 * f16. */
static LLVMValueRef int_to_float(kb *k, LLVMValueRef x, enum ty from, enum ty to)
{
    if (ty_bits(from) == 64 && to == TY_BF16)
        x = short_integer(k, x, ty_is_signed(from));
    const bool small = ty_bits(to) == 16;
    const enum ty via = !small ? to : ty_bits(from) <= 16 ? TY_F32 : TY_F64;
    LLVMValueRef r = (ty_is_signed(from) ? LLVMBuildSIToFP : LLVMBuildUIToFP)(k->b, x, k->ty[via], "");
    return small ? LLVMBuildFPTrunc(k->b, r, k->ty[to], "") : r;
}

kb_val kb_cast(kb *k, kb_val a, enum ty to)
{
    LLVMValueRef r;
    kb_ready(k);
    if (a.ty == to)
        return a;
    if (to == TY_BOOL)
        return kb_bin(k, KB_NE, a, kb_arg_v(kb_imm(k, a.ty, 0)));
    if (ty_is_float(a.ty))
        r = ty_is_float(to) ? float_to_float(k, a.ir, a.ty, to) : float_to_int(k, a.ir, a.ty, to);
    else if (ty_is_float(to))
        r = int_to_float(k, a.ir, a.ty, to);
    else
        r = LLVMBuildIntCast2(k->b, a.ir, k->ty[to], ty_is_signed(a.ty), "");
    return kb_make(r, to, a.uni);
}

/* ---- math functions ---------------------------------------------------------------------------------------------- */

/* The double next to sum = a + b whose last digit is odd, where they do not add up to it exactly; by Knuth's two-sum. */
static LLVMValueRef to_odd(kb *k, LLVMValueRef sum, LLVMValueRef a, LLVMValueRef b)
{
    LLVMBuilderRef at = k->b;
    LLVMTypeRef bits = k->ty[TY_U64];
    LLVMValueRef one = LLVMConstInt(bits, 1, false), zero = LLVMConstNull(k->ty[TY_F64]);
    LLVMValueRef b_in = LLVMBuildFSub(at, sum, a, ""), a_in = LLVMBuildFSub(at, sum, b_in, "");
    LLVMValueRef lost = LLVMBuildFAdd(at, LLVMBuildFSub(at, a, a_in, ""), LLVMBuildFSub(at, b, b_in, ""), "");
    LLVMValueRef word = LLVMBuildBitCast(at, sum, bits, "");
    LLVMValueRef more = LLVMBuildICmp(at, LLVMIntEQ, LLVMBuildFCmp(at, LLVMRealOGT, lost, zero, ""),
                                      LLVMBuildFCmp(at, LLVMRealOGT, sum, zero, ""), "");
    LLVMValueRef beside =
        LLVMBuildSelect(at, more, LLVMBuildAdd(at, word, one, ""), LLVMBuildSub(at, word, one, ""), "");
    LLVMValueRef even = LLVMBuildNot(at, LLVMBuildTrunc(at, word, k->ty[TY_BOOL], ""), "");
    LLVMValueRef off = LLVMBuildAnd(at, even, LLVMBuildFCmp(at, LLVMRealONE, lost, zero, ""), "");
    return LLVMBuildBitCast(at, LLVMBuildSelect(at, off, beside, word, ""), k->ty[TY_F64], "");
}

/* Note [fma of narrow types]
 *
 * Where no instruction does it, f64 holds the product exactly.  The sum is rounded to 53 bits, and then to the type.
 *
 * f16: rounding to 53 bits loses something only where one of the two is more than 2^30 times the other.  A product that
 * is so much larger than an addend, which is a multiple of 2^-24, is beyond f16.  An addend that is so much larger is
 * an f16 itself, and what is lost does not take it halfway to a neighbour.
 *
 * bf16: a product of 16 bits may lie halfway between two neighbours, and an addend that is lost decides where it goes.
 * So the sum is rounded to odd (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). */
static LLVMValueRef narrow_fma(kb *k, enum ty ty, LLVMValueRef *args)
{
    LLVMValueRef native = k->target->narrow_fma ? k->target->narrow_fma(k, ty, args) : NULL, x[3];
    if (native)
        return native;
    for (int i = 0; i < 3; i++)
        x[i] = float_to_float(k, args[i], ty, TY_F64);
    LLVMValueRef product = LLVMBuildFMul(k->b, x[0], x[1], ""), sum = LLVMBuildFAdd(k->b, product, x[2], "");
    return LLVMBuildFPTrunc(k->b, ty == TY_BF16 ? to_odd(k, sum, product, x[2]) : sum, k->ty[ty], "");
}

kb_val kb_math(kb *k, int fn, int n, const kb_val *args)
{
    enum { ARGS_MAX = 4 };
    LLVMValueRef x[ARGS_MAX];
    kb_uni uni = KB_UNI_GRID;
    const enum ty ty = args[0].ty;
    const bool small = ty_bits(ty) == 16;
    kb_ready(k);
    if (!ty_is_float(ty) || n > ARGS_MAX) {
        kb_misuse(k, "math function %d of type %s", fn, ty_name(ty));
        return args[0];
    }
    for (int i = 0; i < n; i++) {
        x[i] = args[i].ir;
        uni = kb_uni_max(uni, args[i].uni);
    }
    if (small && fn == FN_FMA)
        return kb_make(narrow_fma(k, ty, x), ty, uni);
    for (int i = 0; i < n && small; i++)
        x[i] = LLVMBuildFPExt(k->b, x[i], k->ty[TY_F32], "");
    LLVMValueRef r = k->target->math(k, fn, small ? TY_F32 : ty, n, x);
    return kb_make(small ? LLVMBuildFPTrunc(k->b, r, k->ty[ty], "") : r, ty, uni);
}

kb_val kb_no_wrap(kb_val sum)
{
    if (LLVMIsABinaryOperator(sum.ir))
        LLVMSetNSW(sum.ir, true);
    return sum;
}
