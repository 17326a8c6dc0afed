/* SPDX-License-Identifier: Apache-2.0 */
/* nvptx_ranges.c - after the passes: what the range of an operand makes shorter.
 *
 *     rsqrt(x), x >= 2^-126      ptxas scales operands of rsqrt.approx below that, and the result: three instructions of
 *                                four.  The form with .ftz takes them for zero, and gives the same bits for all others,
 *                                infinities and NaN.
 *
 * What is known of x follows from its own operations: squares and absolute values, sums of such, and constants, as in
 * 1 / sqrt(distance^2 + softening).  Each of these operations is rounded to nearest, which keeps the order. */
#include <float.h>
#include <string.h>

#include "llvmgen/ptx.h"

enum { DEPTH = 8 };

static bool constant_from(LLVMValueRef v, double least)
{
    LLVMBool inexact;
    return LLVMIsAConstantFP(v) && LLVMConstRealGetDouble(v, &inexact) >= least;
}

static bool square(LLVMValueRef a, LLVMValueRef b) { return a == b; }

/* x >= 0, or NaN. */
static bool not_negative(LLVMValueRef x, int depth)
{
    if (depth == 0 || constant_from(x, 0))
        return depth > 0;
    if (nvptx_calls(x, "llvm.fabs"))
        return true;
    if (nvptx_calls(x, "llvm.fma"))
        return square(LLVMGetOperand(x, 0), LLVMGetOperand(x, 1)) && not_negative(LLVMGetOperand(x, 2), depth - 1);
    const LLVMOpcode op = LLVMIsAInstruction(x) ? LLVMGetInstructionOpcode(x) : LLVMRet;
    if (op == LLVMFMul && square(LLVMGetOperand(x, 0), LLVMGetOperand(x, 1)))
        return true;
    return (op == LLVMFAdd || op == LLVMFMul) && not_negative(LLVMGetOperand(x, 0), depth - 1) &&
           not_negative(LLVMGetOperand(x, 1), depth - 1);
}

/* x >= 2^-126, the least normal number, or NaN. */
static bool normal(LLVMValueRef x, int depth)
{
    if (depth == 0 || constant_from(x, (double)FLT_MIN))
        return depth > 0;
    if (nvptx_calls(x, "llvm.fma"))
        return square(LLVMGetOperand(x, 0), LLVMGetOperand(x, 1)) && normal(LLVMGetOperand(x, 2), depth - 1);
    if (!LLVMIsAInstruction(x) || LLVMGetInstructionOpcode(x) != LLVMFAdd)
        return false;
    LLVMValueRef a = LLVMGetOperand(x, 0), b = LLVMGetOperand(x, 1);
    return (normal(a, depth - 1) && not_negative(b, depth - 1)) || (not_negative(a, depth - 1) && normal(b, depth - 1));
}

void nvptx_use_range(LLVMBuilderRef b, LLVMValueRef i)
{
    static const char ftz[] = "llvm.nvvm.rsqrt.approx.ftz.f";
    if (!nvptx_calls(i, "llvm.nvvm.rsqrt.approx.f") || !normal(LLVMGetOperand(i, 0), DEPTH))
        return;
    LLVMModuleRef module = LLVMGetGlobalParent(LLVMGetBasicBlockParent(LLVMGetInstructionParent(i)));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(module, LLVMLookupIntrinsicID(ftz, strlen(ftz)), NULL, 0);
    LLVMValueRef x = LLVMGetOperand(i, 0);
    LLVMPositionBuilderBefore(b, i);
    LLVMReplaceAllUsesWith(i, LLVMBuildCall2(b, LLVMGlobalGetValueType(f), f, &x, 1, ""));
    LLVMInstructionEraseFromParent(i);
}
