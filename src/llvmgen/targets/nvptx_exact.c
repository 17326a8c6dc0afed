/* SPDX-License-Identifier: Apache-2.0 */
/* nvptx_exact.c - after the passes: what LLVM's code generation or ptxas would compute wrongly gets another form.
 *
 *     abs(x) of an integer          ptxas takes the result of abs for not negative and drops what depends on its sign;
 *                                   the least number's is negative (seen: rem after abs.s32, shr after abs.s16)
 *     -x of 16 bits                 ptxas negates x, extended to 32 bits, and takes the result for extended: the least
 *                                   number becomes 32768 (seen: div, shr, cvt, setp after neg.s16)
 *     -x of 32 bits under min       where ptxas makes VIMNMX3 of two minima or maxima it drops the negation of one
 *                                   operand, whatever x is (sm_90, ptxas 13.0: the encoding holds no negation)
 *     x < 0 ? x : 0 of floats       LLVM makes min of it where one side is no NaN, and min takes -0 before +0
 *                                   (SelectionDAGBuilder::visitSelect, seen in LLVM 22)
 *     b ? -0.0 : -1.0 of f32        ptxas converts an integer 0 or -1, and loses the sign of zero
 *     bf16(b ? -1 : 0)              LLVM 22 takes 1 for true where the architecture converts to bf16 (sm_90)
 *
 * The passes make these forms from others (abs from a select, say), so they are found here and not where an expression
 * is emitted. */
#include <stdio.h>
#include <string.h>

#include "llvmgen/ptx.h"

enum { MAX_ASM = 160 };

static bool is_call_of(LLVMValueRef v, const char *intrinsic)
{
    if (!LLVMIsACallInst(v))
        return false;
    const unsigned id = LLVMGetIntrinsicID(LLVMGetCalledValue(v));
    return id != 0 && id == LLVMLookupIntrinsicID(intrinsic, strlen(intrinsic));
}

/* `text` computes $0 from $1, both of type ty in a register of the constraint's class. */
static LLVMValueRef build_asm(LLVMBuilderRef b, LLVMTypeRef ty, const char *text, int bits, LLVMValueRef x)
{
    char constraints[8];
    const char class = bits == 64 ? 'l' : bits == 32 ? 'r' : 'h';
    snprintf(constraints, sizeof constraints, "=%c,%c", class, class);
    LLVMTypeRef type = LLVMFunctionType(ty, &ty, 1, false);
    LLVMValueRef code = LLVMGetInlineAsm(type, text, strlen(text), constraints, strlen(constraints), false, false,
                                         LLVMInlineAsmDialectATT, false);
    return LLVMBuildCall2(b, type, code, &x, 1, "");
}

/* -x as ~(x - 1), which nothing takes for a negation. */
#define NEGATE "{ .reg .b%d n; add.s%d n, $1, -1; not.b%d n, n; "

static LLVMValueRef exact_abs(LLVMBuilderRef b, LLVMValueRef i)
{
    LLVMTypeRef ty = LLVMTypeOf(i);
    const int bits = LLVMGetTypeKind(ty) == LLVMIntegerTypeKind ? (int)LLVMGetIntTypeWidth(ty) : 0;
    char text[MAX_ASM];
    if (!is_call_of(i, "llvm.abs") || (bits != 16 && bits != 32 && bits != 64))
        return NULL; /* narrower ones are computed in 16 bits, where their least number is not the least */
    snprintf(text, sizeof text, NEGATE "max.s%d $0, n, $1; }", bits, bits, bits, bits);
    return build_asm(b, ty, text, bits, LLVMGetOperand(i, 0));
}

static LLVMTypeRef scalar_of(LLVMTypeRef ty)
{
    return LLVMGetTypeKind(ty) == LLVMVectorTypeKind ? LLVMGetElementType(ty) : ty;
}

static bool reaches_extreme(LLVMValueRef v)
{
    for (LLVMUseRef use = LLVMGetFirstUse(v); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef u = LLVMGetUser(use);
        if (is_call_of(u, "llvm.smin") || is_call_of(u, "llvm.smax") || is_call_of(u, "llvm.umin") ||
            is_call_of(u, "llvm.umax") || LLVMIsAPHINode(u) || LLVMIsASelectInst(u))
            return true;
    }
    return false;
}

static LLVMValueRef negate(LLVMBuilderRef b, LLVMTypeRef ty, LLVMValueRef x)
{
    const int bits = (int)LLVMGetIntTypeWidth(ty);
    char text[MAX_ASM];
    snprintf(text, sizeof text, NEGATE "mov.b%d $0, n; }", bits, bits, bits, bits);
    return build_asm(b, ty, text, bits, x);
}

static LLVMValueRef exact_negation(LLVMBuilderRef b, LLVMValueRef i)
{
    LLVMTypeRef ty = LLVMTypeOf(i);
    LLVMTypeRef element = scalar_of(ty);
    if (LLVMGetInstructionOpcode(i) != LLVMSub || LLVMGetTypeKind(element) != LLVMIntegerTypeKind ||
        !LLVMIsNull(LLVMGetOperand(i, 0)))
        return NULL;
    const unsigned bits = LLVMGetIntTypeWidth(element);
    if (bits != 16 && (bits != 32 || !reaches_extreme(i)))
        return NULL;
    LLVMValueRef x = LLVMGetOperand(i, 1), all = LLVMGetUndef(ty);
    if (element == ty)
        return negate(b, ty, x);
    for (unsigned lane = 0; lane < LLVMGetVectorSize(ty); lane++) {
        LLVMValueRef at = LLVMConstInt(LLVMInt32TypeInContext(LLVMGetTypeContext(ty)), lane, false);
        all = LLVMBuildInsertElement(b, all, negate(b, element, LLVMBuildExtractElement(b, x, at, "")), at, "");
    }
    return all;
}

static bool is_constant_but_zero(LLVMValueRef v)
{
    LLVMBool inexact;
    return LLVMIsAConstantFP(v) && LLVMConstRealGetDouble(v, &inexact) != 0;
}

static LLVMTypeRef integer_like(LLVMTypeRef ty)
{
    LLVMContextRef cx = LLVMGetTypeContext(ty);
    switch (LLVMGetTypeKind(ty)) {
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind: return LLVMInt16TypeInContext(cx);
    case LLVMFloatTypeKind: return LLVMInt32TypeInContext(cx);
    case LLVMDoubleTypeKind: return LLVMInt64TypeInContext(cx);
    case LLVMVectorTypeKind: {
        LLVMTypeRef element = integer_like(LLVMGetElementType(ty));
        return element ? LLVMVectorType(element, LLVMGetVectorSize(ty)) : NULL;
    }
    default: return NULL;
    }
}

/* A selection between the two sides of its own comparison, one of which may be a zero, or between two constants: made
 * on their bits. */
static LLVMValueRef exact_select(LLVMBuilderRef b, LLVMValueRef i)
{
    if (!LLVMIsASelectInst(i))
        return NULL;
    LLVMValueRef c = LLVMGetOperand(i, 0), x = LLVMGetOperand(i, 1), y = LLVMGetOperand(i, 2);
    LLVMTypeRef ty = LLVMTypeOf(i), bits = integer_like(ty);
    if (!bits)
        return NULL;
    if (!LLVMIsConstant(x) || !LLVMIsConstant(y)) {
        if (!LLVMIsAFCmpInst(c) || is_constant_but_zero(x) || is_constant_but_zero(y))
            return NULL;
        LLVMValueRef left = LLVMGetOperand(c, 0), right = LLVMGetOperand(c, 1);
        if ((left != x || right != y) && (left != y || right != x))
            return NULL;
    } else if (LLVMIsNull(x) || LLVMIsNull(y)) {
        return NULL; /* 0, and not -0 */
    }
    LLVMValueRef r = LLVMBuildSelect(b, c, LLVMBuildBitCast(b, x, bits, ""), LLVMBuildBitCast(b, y, bits, ""), "");
    return LLVMBuildBitCast(b, r, ty, "");
}

static LLVMValueRef exact_conversion(LLVMBuilderRef b, LLVMValueRef i)
{
    LLVMTypeRef to = LLVMTypeOf(i);
    if (LLVMGetInstructionOpcode(i) != LLVMSIToFP || LLVMGetTypeKind(scalar_of(to)) != LLVMBFloatTypeKind)
        return NULL;
    LLVMValueRef x = LLVMGetOperand(i, 0);
    if (LLVMGetIntTypeWidth(scalar_of(LLVMTypeOf(x))) != 1)
        return NULL;
    return LLVMBuildSelect(b, x, LLVMConstReal(to, -1), LLVMConstNull(to), "");
}

static void keep_exact(LLVMBuilderRef b, LLVMValueRef i)
{
    LLVMPositionBuilderBefore(b, i);
    LLVMValueRef r = exact_abs(b, i);
    if (!r)
        r = exact_negation(b, i);
    if (!r)
        r = exact_select(b, i);
    if (!r)
        r = exact_conversion(b, i);
    if (r) {
        LLVMReplaceAllUsesWith(i, r);
        LLVMInstructionEraseFromParent(i);
    }
}

void nvptx_keep_exact(LLVMModuleRef module)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
            for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
                next = LLVMGetNextInstruction(i);
                keep_exact(b, i);
            }
    LLVMDisposeBuilder(b);
}
