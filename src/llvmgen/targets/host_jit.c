/* SPDX-License-Identifier: Apache-2.0 */
/* host_jit.c - LLJIT through the C API.
 *
 * Beside each kernel stands a thunk `void (void *const *args)` that loads the arguments by their types and calls it, so
 * that the executor needs no foreign-function interface.  The lean pipeline and no optimisation in the code generator
 * give host code in a few milliseconds that is within some percent of -O2: most time goes into the executor's calls.
 */
#include "host_jit.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct host_jit {
    LLVMContextRef context; /* with the module, until a kernel is asked for */
    LLVMModuleRef module;
    LLVMOrcLLJITRef lljit;
    const struct host_symbol *symbols;
    int nsymbols, nkernels;
    host_kernel entry[];
};

static const char PIPELINE[] = "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)";

/* ---- errors ---------------------------------------------------------------------------------- */
/* Reports (s: where to, or NULL) and consumes an LLVM error; true when there was one. */
static bool failed(struct ptxgen_session *s, LLVMErrorRef error, const char *doing)
{
    if (!error)
        return false;
    char *message = LLVMGetErrorMessage(error);
    if (s)
        diag_error(&s->diags, D_CODEGEN, span_none(), "%s for the host: %s", doing, message);
    LLVMDisposeErrorMessage(message);
    return true;
}

/* The same for functions that return a message. */
static bool failed_with(struct ptxgen_session *s, int status, char *message, const char *doing)
{
    if (status && s)
        diag_error(&s->diags, D_CODEGEN, span_none(), "%s for the host: %s", doing,
                   message ? message : "no reason given");
    LLVMDisposeMessage(message);
    return status != 0;
}

/* ---- this machine ---------------------------------------------------------------------------- */
static pthread_once_t native_once = PTHREAD_ONCE_INIT;

static void native_initialize(void)
{
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
}

/* Conversions to bf16 of these extensions take denormal numbers for zero. */
#if defined __x86_64__
#define WITHOUT ",-avx512bf16,-avxneconvert,-avx10.2"
#else
#define WITHOUT ""
#endif

static LLVMTargetMachineRef machine_create(struct ptxgen_session *s)
{
    pthread_once(&native_once, native_initialize);
    char *triple = LLVMGetDefaultTargetTriple(), *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
    char *kept = malloc(strlen(features) + sizeof WITHOUT);
    LLVMTargetRef target;
    char *message = NULL;
    LLVMTargetMachineRef machine = NULL;
    const LLVMBool bad = LLVMGetTargetFromTriple(triple, &target, &message);
    if (!failed_with(s, bad, message, "no code generator") && kept) {
        strcat(strcpy(kept, features), WITHOUT);
        machine = LLVMCreateTargetMachine(target, triple, cpu, kept, LLVMCodeGenLevelNone, LLVMRelocPIC,
                                          LLVMCodeModelJITDefault);
    }
    if (!kept)
        diag_error(&s->diags, D_CODEGEN, span_none(), "out of memory");
    free(kept);
    LLVMDisposeMessage(triple);
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
    return machine;
}

bool host_jit_prepare(struct ptxgen_session *s, LLVMModuleRef module)
{
    LLVMTargetMachineRef machine = machine_create(s);
    if (!machine)
        return false;
    char *triple = LLVMGetTargetMachineTriple(machine);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    LLVMSetTarget(module, triple);
    LLVMSetModuleDataLayout(module, layout);
    LLVMDisposeTargetData(layout);
    LLVMDisposeMessage(triple);
    LLVMDisposeTargetMachine(machine);
    return true;
}

/* ---- thunks ---------------------------------------------------------------------------------- */
static void thunk_name(int i, char *name, size_t size) { snprintf(name, size, "simt.thunk.%d", i); }

/* Adds the thunk of a kernel; the kernel itself becomes internal. */
static void thunk_add(LLVMContextRef cx, LLVMModuleRef module, LLVMValueRef kernel, int i)
{
    char name[32];
    thunk_name(i, name, sizeof name);
    LLVMTypeRef pointer = LLVMPointerTypeInContext(cx, 0), word = LLVMInt64TypeInContext(cx);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(cx), &pointer, 1, false);
    LLVMValueRef thunk = LLVMAddFunction(module, name, type);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(cx);
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(cx, thunk, ""));

    LLVMValueRef args[PROG_ARG_MAX];
    const unsigned n = LLVMCountParams(kernel);
    for (unsigned p = 0; p < n; p++) {
        LLVMValueRef index = LLVMConstInt(word, p, 0);
        LLVMValueRef slot = LLVMBuildInBoundsGEP2(b, pointer, LLVMGetParam(thunk, 0), &index, 1, "");
        LLVMValueRef at = LLVMBuildLoad2(b, pointer, slot, "");
        args[p] = LLVMBuildLoad2(b, LLVMTypeOf(LLVMGetParam(kernel, p)), at, "");
    }
    LLVMValueRef call = LLVMBuildCall2(b, LLVMGlobalGetValueType(kernel), kernel, args, n, "");
    LLVMSetInstructionCallConv(call, LLVMGetFunctionCallConv(kernel));
    LLVMBuildRetVoid(b);
    LLVMDisposeBuilder(b);
    LLVMSetLinkage(kernel, LLVMInternalLinkage);
}

static bool thunks_add(struct ptxgen_session *s, LLVMContextRef cx, LLVMModuleRef module, int n,
                       const char *const *kernel)
{
    for (int i = 0; i < n; i++) {
        LLVMValueRef f = LLVMGetNamedFunction(module, kernel[i]);
        if (!f || LLVMIsDeclaration(f) || LLVMCountParams(f) > PROG_ARG_MAX) {
            diag_error(&s->diags, D_CODEGEN, span_none(), "kernel '%s' is missing from the host module", kernel[i]);
            return false;
        }
        thunk_add(cx, module, f, i);
    }
    return true;
}

/* ---- linking --------------------------------------------------------------------------------- */
/* Makes symbols known to the module, by name. */
static bool define(LLVMOrcLLJITRef lljit, const struct host_symbol *symbols, int n)
{
    LLVMOrcCSymbolMapPair *map = calloc((size_t)n + 1, sizeof *map);
    if (!map)
        return false;
    for (int i = 0; i < n; i++) {
        map[i].Name = LLVMOrcLLJITMangleAndIntern(lljit, symbols[i].name);
        map[i].Sym.Address = (LLVMOrcExecutorAddress)(uintptr_t)symbols[i].address;
        map[i].Sym.Flags.GenericFlags = LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable;
    }
    LLVMErrorRef error =
        LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(lljit), LLVMOrcAbsoluteSymbols(map, (size_t)n));
    free(map);
    return !failed(NULL, error, "binding the runtime");
}

static LLVMOrcLLJITRef lljit_create(void)
{
    LLVMTargetMachineRef machine = machine_create(NULL);
    if (!machine)
        return NULL;
    LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
    LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(builder,
                                                  LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(machine));
    LLVMOrcLLJITRef lljit = NULL;
    return failed(NULL, LLVMOrcCreateLLJIT(&lljit, builder), "creating a compiler") ? NULL : lljit;
}

static bool verified(struct ptxgen_session *s, LLVMModuleRef module)
{
    char *message = NULL;
    const LLVMBool bad = LLVMVerifyModule(module, LLVMReturnStatusAction, &message);
    return !failed_with(s, bad, message, "verifying the code");
}

static bool optimize(LLVMModuleRef module)
{
    LLVMTargetMachineRef machine = machine_create(NULL);
    if (!machine)
        return false;
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    const bool ok = !failed(NULL, LLVMRunPasses(module, PIPELINE, machine, options), "optimising");
    LLVMDisposePassBuilderOptions(options);
    LLVMDisposeTargetMachine(machine);
    return ok;
}

/* Hands the module to the JIT, which owns it and the context from here on. */
static bool link_module(struct host_jit *jit)
{
    LLVMOrcThreadSafeContextRef owner = LLVMOrcCreateNewThreadSafeContextFromLLVMContext(jit->context);
    LLVMOrcThreadSafeModuleRef safe = LLVMOrcCreateNewThreadSafeModule(jit->module, owner);
    LLVMOrcDisposeThreadSafeContext(owner);
    jit->context = NULL;
    jit->module = NULL;
    LLVMErrorRef error = LLVMOrcLLJITAddLLVMIRModule(jit->lljit, LLVMOrcLLJITGetMainJITDylib(jit->lljit), safe);
    if (error) {
        LLVMOrcDisposeThreadSafeModule(safe);
        return !failed(NULL, error, "adding the code");
    }
    for (int i = 0; i < jit->nkernels; i++) {
        char name[32];
        thunk_name(i, name, sizeof name);
        LLVMOrcExecutorAddress address = 0;
        if (failed(NULL, LLVMOrcLLJITLookup(jit->lljit, &address, name), "generating code"))
            return false;
        jit->entry[i] = (host_kernel)(uintptr_t)address;
    }
    return true;
}

static bool compile(struct host_jit *jit)
{
    int nmath;
    const struct host_symbol *math = host_math_symbols(&nmath);
    return optimize(jit->module) && (jit->lljit = lljit_create()) != NULL && define(jit->lljit, math, nmath) &&
           define(jit->lljit, jit->symbols, jit->nsymbols) && link_module(jit);
}

struct host_jit *host_jit_create(struct ptxgen_session *s, LLVMContextRef context, LLVMModuleRef module, int nkernels,
                                 const char *const *kernel, const struct host_symbol *symbols, int nsymbols)
{
    struct host_jit *jit = calloc(1, sizeof *jit + sizeof(host_kernel) * (size_t)nkernels);
    if (!jit) {
        diag_error(&s->diags, D_CODEGEN, span_none(), "out of memory");
        LLVMDisposeModule(module);
        LLVMContextDispose(context);
        return NULL;
    }
    *jit = (struct host_jit){
        .context = context, .module = module, .symbols = symbols, .nsymbols = nsymbols, .nkernels = nkernels
    };
    if (thunks_add(s, context, module, nkernels, kernel) && verified(s, module))
        return jit;
    host_jit_destroy(jit);
    return NULL;
}

host_kernel host_jit_entry(struct host_jit *jit, int i)
{
    if (jit->module && !jit->lljit)
        compile(jit);
    return jit->entry[i];
}

void host_jit_destroy(struct host_jit *jit)
{
    if (!jit)
        return;
    if (jit->lljit)
        LLVMConsumeError(LLVMOrcDisposeLLJIT(jit->lljit));
    if (jit->module)
        LLVMDisposeModule(jit->module);
    if (jit->context)
        LLVMContextDispose(jit->context);
    free(jit);
}
