/* SPDX-License-Identifier: Apache-2.0 */
/* nvptx_exact.c - after the passes: what LLVM's code generation would compute wrongly, and what ptxas would where only
 * the uses tell, gets another form.  ptx_exact.c has the rest of what ptxas gets wrong.
 *
 *     -x of 32 bits under min       where ptxas makes VIMNMX3 of two minima or maxima it drops the negation of one
 *                                   operand, whatever x is (sm_90, ptxas 13.0: the encoding holds no negation)
 *     x < 0 ? x : 0 of floats       LLVM makes min of it where one side is no NaN, and min takes -0 before +0
 *                                   (SelectionDAGBuilder::visitSelect, seen in LLVM 22)
 *     bf16(b ? -1 : 0)              LLVM 22 takes 1 for true where the architecture converts to bf16 (sm_90)
 *
 * The passes make these forms from others, so they are found here and not where an expression is emitted. */
#include <string.h>

#include "llvmgen/ptx.h"

bool nvptx_calls(LLVMValueRef v, const char *intrinsic)
{
    if (!LLVMIsACallInst(v))
        return false;
    const unsigned id = LLVMGetIntrinsicID(LLVMGetCalledValue(v));
    return id != 0 && id == LLVMLookupIntrinsicID(intrinsic, strlen(intrinsic));
}

static bool reaches_extreme(LLVMValueRef v)
{
    for (LLVMUseRef use = LLVMGetFirstUse(v); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef u = LLVMGetUser(use);
        if (nvptx_calls(u, "llvm.smin") || nvptx_calls(u, "llvm.smax") || nvptx_calls(u, "llvm.umin") ||
            nvptx_calls(u, "llvm.umax") || LLVMIsAPHINode(u) || LLVMIsASelectInst(u))
            return true;
    }
    return false;
}

/* -x as ~(x - 1), which nothing takes for a negation. */
static LLVMValueRef exact_negation(LLVMBuilderRef b, LLVMValueRef i)
{
    static const char text[] = "{ .reg .b32 n; add.s32 n, $1, -1; not.b32 $0, n; }", constraints[] = "=r,r";
    LLVMTypeRef ty = LLVMTypeOf(i);
    if (LLVMGetInstructionOpcode(i) != LLVMSub || LLVMGetTypeKind(ty) != LLVMIntegerTypeKind ||
        LLVMGetIntTypeWidth(ty) != 32 || !LLVMIsNull(LLVMGetOperand(i, 0)) || !reaches_extreme(i))
        return NULL;
    LLVMTypeRef type = LLVMFunctionType(ty, &ty, 1, false);
    LLVMValueRef code = LLVMGetInlineAsm(type, text, strlen(text), constraints, strlen(constraints), false, false,
                                         LLVMInlineAsmDialectATT, false);
    LLVMValueRef x = LLVMGetOperand(i, 1);
    return LLVMBuildCall2(b, type, code, &x, 1, "");
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

/* A selection between the two sides of its own comparison, one of which may be a zero: made on their bits. */
static LLVMValueRef exact_select(LLVMBuilderRef b, LLVMValueRef i)
{
    if (!LLVMIsASelectInst(i))
        return NULL;
    LLVMValueRef c = LLVMGetOperand(i, 0), x = LLVMGetOperand(i, 1), y = LLVMGetOperand(i, 2);
    LLVMTypeRef ty = LLVMTypeOf(i), bits = integer_like(ty);
    if (!bits || !LLVMIsAFCmpInst(c) || is_constant_but_zero(x) || is_constant_but_zero(y))
        return NULL;
    LLVMValueRef left = LLVMGetOperand(c, 0), right = LLVMGetOperand(c, 1);
    if ((left != x || right != y) && (left != y || right != x))
        return NULL;
    LLVMValueRef r = LLVMBuildSelect(b, c, LLVMBuildBitCast(b, x, bits, ""), LLVMBuildBitCast(b, y, bits, ""), "");
    return LLVMBuildBitCast(b, r, ty, "");
}

static LLVMTypeRef scalar_of(LLVMTypeRef ty)
{
    return LLVMGetTypeKind(ty) == LLVMVectorTypeKind ? LLVMGetElementType(ty) : ty;
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

/* True: another instruction stands in its place. */
static bool keep_exact(LLVMBuilderRef b, LLVMValueRef i)
{
    LLVMPositionBuilderBefore(b, i);
    LLVMValueRef r = exact_negation(b, i);
    if (!r)
        r = exact_select(b, i);
    if (!r)
        r = exact_conversion(b, i);
    if (r) {
        LLVMReplaceAllUsesWith(i, r);
        LLVMInstructionEraseFromParent(i);
    }
    return r != NULL;
}

void nvptx_rewrite(LLVMModuleRef module)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
            for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
                next = LLVMGetNextInstruction(i);
                if (!keep_exact(b, i))
                    nvptx_use_range(b, i);
            }
    LLVMDisposeBuilder(b);
}
