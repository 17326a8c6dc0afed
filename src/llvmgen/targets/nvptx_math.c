/* SPDX-License-Identifier: Apache-2.0 */
/* nvptx_math.c - float functions on NVIDIA GPUs: the rows of math.def. */
#include "nvptx_impl.h"

#include <stdio.h>
#include <string.h>

#include "caps.h"
#include "frontend/expr/expr.h"

struct math_row {
    int fn, arity;
    const char *intrinsic, *library, *clc;
};

static const struct math_row rows[] = {
#define MATH(id, arity, intrinsic, library, clc) { FN_##id, arity, intrinsic, library, clc },
#include "math.def"
#undef MATH
    { KB_FN_FMOD, 2, NULL, "fmod", "fmod" },
};
enum { NROWS = sizeof rows / sizeof *rows };

/* exp(x), x <= 0:  t = x / ln 2, rounded;  2^t (1 + (x - t ln 2)).  The remainder makes up for the rounding of t, which 2^t
 * multiplies by up to 126; Cody and Waite, "Software Manual for the Elementary Functions", 1980, have the other order.
 * Within 4 units in the last place of the result, 2 above exp(-20).  Below LEAST 2^t is 0, and infinity times 0 is avoided. */
static LLVMValueRef exp_falling(kb *k, LLVMValueRef x)
{
    static const double LEAST = -128, LN2 = 0x1.62e43p-1; /* rounded to f32 */
    LLVMTypeRef f32 = kb_llvm_ty(k, TY_F32);
    LLVMBuilderRef b = kb_builder(k);
    LLVMValueRef d = kb_call(k, "llvm.maximum.f32", f32, 2, (LLVMValueRef[]){ x, LLVMConstReal(f32, LEAST) }, false);
    LLVMValueRef t = LLVMBuildFMul(b, d, LLVMConstReal(f32, 1 / LN2), "");
    LLVMValueRef power = kb_call(k, "llvm.nvvm.ex2.approx.ftz.f32", f32, 1, &t, false);
    LLVMValueRef rest = kb_call(k, "llvm.fma.f32", f32, 3, (LLVMValueRef[]){ t, LLVMConstReal(f32, -LN2), d }, false);
    return kb_call(k, "llvm.fma.f32", f32, 3, (LLVMValueRef[]){ power, rest, power }, false);
}

LLVMValueRef nv_math(kb *k, int fn, enum ty ty, int n, LLVMValueRef *args)
{
    char name[48];
    const struct math_row *r = rows;
    if (fn == KB_FN_EXP_FALLING && ty == TY_F32 && cap_has(CAP_NAN_MAX, kb_sm(k), kb_ptx(k)))
        return exp_falling(k, args[0]);
    fn = fn == KB_FN_EXP_FALLING ? FN_EXP : fn;
    while (r < rows + NROWS && r->fn != fn)
        r++;
    if (r == rows + NROWS || r->arity != n || (ty != TY_F32 && ty != TY_F64)) {
        kb_misuse(k, "no math function %d of %d arguments of type %s", fn, n, ty_name(ty));
        return args[0];
    }
    if (r->intrinsic)
        snprintf(name, sizeof name, "%s.f%d", r->intrinsic, ty_bits(ty));
    else
        snprintf(name, sizeof name, "__nv_%s%s", r->library, ty == TY_F32 ? "f" : "");
    LLVMValueRef call = kb_call(k, name, kb_llvm_ty(k, ty), n, args, false);
    return r->intrinsic ? call : kb_pure(k, call);
}

LLVMValueRef nv_extreme(kb *k, bool maximum, enum ty ty, LLVMValueRef a, LLVMValueRef b)
{
    char name[32];
    if (ty_bits(ty) == 16 && !cap_has(CAP_NARROW_MIN, kb_sm(k), kb_ptx(k)))
        return NULL;
    snprintf(name, sizeof name, "llvm.%simumnum.%s%d", maximum ? "max" : "min", ty == TY_BF16 ? "bf" : "f",
             ty_bits(ty));
    return kb_call(k, name, kb_llvm_ty(k, ty), 2, (LLVMValueRef[]){ a, b }, false);
}

LLVMValueRef nv_narrow_fma(kb *k, enum ty ty, LLVMValueRef *args)
{
    if (ty == TY_BF16 && !cap_has(CAP_FMA_BF16, kb_sm(k), kb_ptx(k)))
        return NULL;
    return kb_call(k, ty == TY_BF16 ? "llvm.fma.bf16" : "llvm.fma.f16", kb_llvm_ty(k, ty), 3, args, false);
}

const char *nv_libclc_name(const char *libdevice_name, char *buffer, int size)
{
    for (const struct math_row *r = rows; r < rows + NROWS; r++) {
        const size_t n = r->library ? strlen(r->library) : 0;
        if (!n || strncmp(libdevice_name, "__nv_", 5) != 0 || strncmp(libdevice_name + 5, r->library, n) != 0)
            continue;
        const char *rest = libdevice_name + 5 + n;
        const char *kind = *rest ? "f" : "d";
        if (*rest && strcmp(rest, "f") != 0)
            continue;
        snprintf(buffer, (size_t)size, "_Z%d%s%s%s", (int)strlen(r->clc), r->clc, kind, r->arity == 2 ? kind : "");
        return buffer;
    }
    return NULL;
}
