/* SPDX-License-Identifier: Apache-2.0 */
/* mathlib.c - lazy linking of libdevice, or of libclc where there is no CUDA toolkit.
 *
 *     open     the bitcode lazily: function bodies are read when they are linked
 *     linkonce every definition of the library, so that the linker takes only what the module reaches
 *     internal what was taken, so that nothing of it is left after inlining
 *
 * A sine and a cosine of one value become one call, which reduces the value once.
 *
 * 3.5 ms instead of 377 for parsing and linking all of libdevice.  libclc has the same functions under OpenCL's mangled
 * names.
 */
#include "mathlib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvptx_impl.h"

enum { PATH_SIZE = 1024 };
static const char PREFIX[] = "__nv_";

static const char *name_of(LLVMValueRef f)
{
    size_t length;
    return LLVMGetValueName2(f, &length);
}

static bool of_library(LLVMValueRef f)
{
    return LLVMIsDeclaration(f) && strncmp(name_of(f), PREFIX, sizeof PREFIX - 1) == 0;
}

bool mathlib_needed(LLVMModuleRef mod)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(mod); f; f = LLVMGetNextFunction(f))
        if (of_library(f))
            return true;
    return false;
}

/* ---- where it is ------------------------------------------------------------------------------------------------- */

static bool readable(char *path, const char *dir, const char *file)
{
    if (!dir || !*dir || snprintf(path, PATH_SIZE, "%s%s", dir, file) >= PATH_SIZE)
        return false;
    return access(path, R_OK) == 0;
}

static bool search(char *path)
{
    static const char device[] = "/nvvm/libdevice/libdevice.10.bc";
    static const char *const roots[] = { "/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda",
                                         "/usr/lib/nvidia-cuda-toolkit" };
    static const char *const clc[] = { "/usr/lib/clc/nvptx64--.bc", "/usr/share/clc/nvptx64--.bc",
                                       "/usr/local/share/clc/nvptx64--.bc" };
    if (readable(path, getenv("PTXGEN_LIBDEVICE"), "") || readable(path, getenv("CUDA_HOME"), device) ||
        readable(path, getenv("CUDA_PATH"), device))
        return true;
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
        if (readable(path, roots[i], device) || readable(path, roots[i], "/libdevice/libdevice.10.bc"))
            return true;
    for (size_t i = 0; i < sizeof clc / sizeof *clc; i++)
        if (readable(path, clc[i], ""))
            return true;
    return false;
}

/* ---- linking ----------------------------------------------------------------------------------------------------- */

/* libclc's names for what the module calls, when the library is not libdevice. */
static void rename_for_clc(LLVMModuleRef mod, LLVMModuleRef lib)
{
    char buffer[64];
    for (LLVMValueRef f = LLVMGetFirstFunction(mod); f; f = LLVMGetNextFunction(f)) {
        if (!of_library(f) || LLVMGetNamedFunction(lib, name_of(f)))
            continue;
        const char *name = nv_libclc_name(name_of(f), buffer, sizeof buffer);
        if (name)
            LLVMSetValueName2(f, name, strlen(name));
    }
}

static LLVMModuleRef open_library(LLVMModuleRef mod, const char *path, struct llvm_errors *e)
{
    LLVMMemoryBufferRef buffer;
    LLVMModuleRef lib;
    char *text = NULL;
    if (LLVMCreateMemoryBufferWithContentsOfFile(path, &buffer, &text)) {
        llvm_error(e, "the math library %s: %s", path, text);
        LLVMDisposeMessage(text);
        return NULL;
    }
    if (LLVMGetBitcodeModuleInContext2(LLVMGetModuleContext(mod), buffer, &lib)) { /* takes the buffer */
        e->count = 0; /* LLVM's own message does not name the file */
        llvm_error(e, "the math library %s is not a bitcode file that this LLVM reads", path);
        return NULL;
    }
    LLVMSetTarget(lib, LLVMGetTarget(mod)); /* it names a generic target of its own */
    LLVMSetDataLayout(lib, LLVMGetDataLayoutStr(mod));
    for (LLVMValueRef f = LLVMGetFirstFunction(lib); f; f = LLVMGetNextFunction(f)) {
        const LLVMLinkage l = LLVMGetLinkage(f);
        if (!LLVMIsDeclaration(f) && l != LLVMInternalLinkage && l != LLVMPrivateLinkage)
            LLVMSetLinkage(f, LLVMLinkOnceODRLinkage);
    }
    return lib;
}

/* ---- sines and cosines ------------------------------------------------------------------------------------------- */

/* A call of f with the value in the block. */
static LLVMValueRef call_of(LLVMValueRef f, LLVMValueRef value, LLVMBasicBlockRef block)
{
    for (LLVMUseRef u = LLVMGetFirstUse(value); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);
        if (LLVMIsACallInst(user) && LLVMGetCalledValue(user) == f && LLVMGetInstructionParent(user) == block)
            return user;
    }
    return NULL;
}

static bool comes_before(LLVMValueRef a, LLVMValueRef b)
{
    while (a && a != b)
        a = LLVMGetNextInstruction(a);
    return a == b;
}

static void join(LLVMBuilderRef b, LLVMValueRef both, LLVMValueRef sine, LLVMValueRef cosine)
{
    LLVMValueRef x = LLVMGetOperand(sine, 0), call[] = { sine, cosine }, at[2], result[2];
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(LLVMGetBasicBlockParent(LLVMGetInstructionParent(sine)));
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(entry));
    for (int i = 0; i < 2; i++)
        at[i] = LLVMBuildAlloca(b, type, "");
    LLVMPositionBuilderBefore(b, comes_before(sine, cosine) ? sine : cosine);
    LLVMBuildCall2(b, LLVMGlobalGetValueType(both), both, (LLVMValueRef[]){ x, at[0], at[1] }, 3, "");
    for (int i = 0; i < 2; i++)
        result[i] = LLVMBuildLoad2(b, type, at[i], "");
    for (int i = 0; i < 2; i++) {
        LLVMReplaceAllUsesWith(call[i], result[i]);
        LLVMInstructionEraseFromParent(call[i]);
    }
}

static void join_all(LLVMModuleRef mod, LLVMValueRef f, LLVMValueRef other, const char *name)
{
    LLVMTypeRef type = LLVMGetReturnType(LLVMGlobalGetValueType(f));
    LLVMContextRef cx = LLVMGetModuleContext(mod);
    LLVMTypeRef pointer = LLVMPointerTypeInContext(cx, 0);
    LLVMTypeRef of_both =
        LLVMFunctionType(LLVMVoidTypeInContext(cx), (LLVMTypeRef[]){ type, pointer, pointer }, 3, false);
    LLVMValueRef both = LLVMAddFunction(mod, name, of_both);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(cx);
    LLVMUseRef next;
    for (LLVMUseRef u = LLVMGetFirstUse(f); u; u = next) {
        LLVMValueRef call = LLVMGetUser(u);
        LLVMValueRef pair = call_of(other, LLVMGetOperand(call, 0), LLVMGetInstructionParent(call));
        next = LLVMGetNextUse(u); /* before the call goes */
        if (pair)
            join(b, both, call, pair);
    }
    LLVMDisposeBuilder(b);
    LLVMValueRef all[] = { f, other, both };
    for (int i = 0; i < 3; i++)
        if (!LLVMGetFirstUse(all[i]))
            LLVMDeleteFunction(all[i]);
}

static const struct {
    const char *sine, *cosine, *both;
} waves[] = { { "__nv_sinf", "__nv_cosf", "__nv_sincosf" }, { "__nv_sin", "__nv_cos", "__nv_sincos" } };
enum { NWAVES = sizeof waves / sizeof *waves };

/* libclc's takes other arguments. */
static void join_waves(LLVMModuleRef mod, LLVMModuleRef lib)
{
    for (int i = 0; i < NWAVES; i++) {
        LLVMValueRef sine = LLVMGetNamedFunction(mod, waves[i].sine),
                     cosine = LLVMGetNamedFunction(mod, waves[i].cosine);
        if (sine && cosine && LLVMGetNamedFunction(lib, waves[i].both))
            join_all(mod, sine, cosine, waves[i].both);
    }
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* Only the library's functions were linkonce. */
static void internalise(LLVMModuleRef mod)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(mod); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f) && LLVMGetLinkage(f) == LLVMLinkOnceODRLinkage)
            LLVMSetLinkage(f, LLVMInternalLinkage);
}

bool mathlib_link(LLVMModuleRef mod, const char *path, struct llvm_errors *e)
{
    char found[PATH_SIZE];
    if (!path && !search(found)) {
        llvm_error(e, "neither libdevice.10.bc of a CUDA toolkit nor libclc's nvptx64--.bc was found");
        return false;
    }
    if (!path)
        path = found;
    LLVMModuleRef lib = open_library(mod, path, e);
    if (!lib)
        return false;
    join_waves(mod, lib);
    rename_for_clc(mod, lib);
    if (LLVMLinkModules2(mod, lib)) { /* takes the library */
        llvm_error(e, "linking the math library %s failed", path);
        return false;
    }
    internalise(mod);
    for (LLVMValueRef f = LLVMGetFirstFunction(mod); f; f = LLVMGetNextFunction(f))
        if (of_library(f) && LLVMGetFirstUse(f) && strcmp(name_of(f), "__nvvm_reflect") != 0)
            llvm_error(e, "the math library %s has no function %s", path, name_of(f));
    return e->count == 0;
}
