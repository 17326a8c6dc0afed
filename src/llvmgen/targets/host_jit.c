/* SPDX-License-Identifier: Apache-2.0 */
/* host_jit.c - LLJIT through the C API.
 *
 * Beside each kernel stands a thunk `void (void *const *args)` that loads the arguments by their types and calls it, so
 * that the executor needs no foreign-function interface.  A few passes and no optimisation in the code generator give host
 * code in a few milliseconds.  More would not pay: most of a run's time goes into compiling and into the executor's calls
 * (InstCombine takes as long as half of the code generator, and makes runs hardly faster).
 */
#include "host_jit.h"

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

static const char PIPELINE[] = "function(sroa,early-cse,simplifycfg)";

/* ---- errors ---------------------------------------------------------------------------------- */
/* Consumes an LLVM error; true when there was one. */
static bool failed(LLVMErrorRef error)
{
    LLVMConsumeError(error);
    return error != NULL;
}

/* ---- this machine ---------------------------------------------------------------------------- */
/* What LLVM says of it, asked once: it takes as long as compiling a small kernel. */
static struct {
    LLVMTargetRef target;
    char *triple, *cpu, *features, *layout;
    char failure[256];
} native;

/* Conversions to bf16 of these extensions take denormal numbers for zero. */
#if defined __x86_64__
#define WITHOUT ",-avx512bf16,-avxneconvert,-avx10.2"
#else
#define WITHOUT ""
#endif

static LLVMTargetMachineRef machine_create(void)
{
    return LLVMCreateTargetMachine(native.target, native.triple, native.cpu, native.features, LLVMCodeGenLevelNone,
                                   LLVMRelocPIC, LLVMCodeModelJITDefault);
}

static void native_initialize(void)
{
    LLVM_NATIVE_TARGETINFO();
    LLVM_NATIVE_TARGET();
    LLVM_NATIVE_TARGETMC();
    LLVM_NATIVE_ASMPRINTER();
    native.triple = LLVMGetDefaultTargetTriple();
    native.cpu = LLVMGetHostCPUName();
    char *features = LLVMGetHostCPUFeatures(), *message = NULL;
    const size_t bytes = strlen(features) + sizeof WITHOUT;
    native.features = malloc(bytes);
    if (native.features)
        snprintf(native.features, bytes, "%s%s", features, WITHOUT);
    else
        snprintf(native.failure, sizeof native.failure, "out of memory");
    LLVMDisposeMessage(features);
    if (LLVMGetTargetFromTriple(native.triple, &native.target, &message))
        snprintf(native.failure, sizeof native.failure, "no code generator for the host: %s", message);
    LLVMDisposeMessage(message);
    LLVMTargetMachineRef machine = native.failure[0] ? NULL : machine_create();
    if (machine) {
        LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
        native.layout = LLVMCopyStringRepOfTargetData(layout);
        LLVMDisposeTargetData(layout);
        LLVMDisposeTargetMachine(machine);
    }
}

bool host_jit_exists(struct ptxgen_session *s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, native_initialize);
    if (native.failure[0])
        diag_error(&s->diags, D_CODEGEN, span_none(), "%s", native.failure);
    return !native.failure[0];
}

void host_jit_prepare(LLVMModuleRef module)
{
    LLVMSetTarget(module, native.triple);
    LLVMSetDataLayout(module, native.layout);
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
    return !failed(error);
}

/* Takes the machine over. */
static LLVMOrcLLJITRef lljit_create(LLVMTargetMachineRef machine)
{
    LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
    LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(builder,
                                                  LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(machine));
    LLVMOrcLLJITRef lljit = NULL;
    return failed(LLVMOrcCreateLLJIT(&lljit, builder)) ? NULL : lljit;
}

static bool verified(struct ptxgen_session *s, LLVMModuleRef module)
{
    char *text = llvm_malformed(module);
    if (text)
        diag_error(&s->diags, D_CODEGEN, span_none(), "verifying the code for the host: %s", text);
    LLVMDisposeMessage(text);
    return !text;
}

static bool run_passes(LLVMModuleRef module, const char *passes, LLVMTargetMachineRef machine)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    const bool ok = !failed(LLVMRunPasses(module, passes, machine, options));
    LLVMDisposePassBuilderOptions(options);
    return ok;
}

/* ---- long blocks ----------------------------------------------------------------------------- */
/* The code generator takes time that grows with the square of a block, and minutes for a block of 30000 instructions. */
enum { BLOCK_MOST = 3000 };

static bool is_long(LLVMBasicBlockRef block)
{
    int n = 0;
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i && n <= BLOCK_MOST; i = LLVMGetNextInstruction(i))
        n++;
    return n > BLOCK_MOST;
}

/* Moves the beginning of a block, with all of its stack slots, to a block before it, until what is left is short.  No
 * block has a phi: the uses of a block are jumps to it. */
static void block_split(LLVMContextRef cx, LLVMBuilderRef b, LLVMBasicBlockRef block)
{
    while (is_long(block)) {
        LLVMBasicBlockRef head = LLVMInsertBasicBlockInContext(cx, block, "");
        LLVMReplaceAllUsesWith(LLVMBasicBlockAsValue(block), LLVMBasicBlockAsValue(head));
        LLVMPositionBuilderAtEnd(b, head);
        LLVMValueRef i = LLVMGetFirstInstruction(block);
        for (int n = 0; n < BLOCK_MOST || LLVMIsAAllocaInst(i); n++) {
            LLVMInstructionRemoveFromParent(i);
            LLVMInsertIntoBuilder(b, i);
            i = LLVMGetFirstInstruction(block);
        }
        LLVMBuildBr(b, block);
    }
}

static bool blocks_split(struct host_jit *jit, LLVMTargetMachineRef machine)
{
    bool any = false;
    for (LLVMValueRef f = LLVMGetFirstFunction(jit->module); f && !any; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block && !any; block = LLVMGetNextBasicBlock(block))
            any = is_long(block);
    if (!any)
        return true;
    LLVMBuilderRef b = LLVMCreateBuilderInContext(jit->context);
    const bool ok = run_passes(jit->module, "function(reg2mem)", machine);
    for (LLVMValueRef f = LLVMGetFirstFunction(jit->module); f && ok; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
            block_split(jit->context, b, block);
    LLVMDisposeBuilder(b);
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
        return !failed(error);
    }
    for (int i = 0; i < jit->nkernels; i++) {
        char name[32];
        thunk_name(i, name, sizeof name);
        LLVMOrcExecutorAddress address = 0;
        if (failed(LLVMOrcLLJITLookup(jit->lljit, &address, name)))
            return false;
        jit->entry[i] = (host_kernel)(uintptr_t)address;
    }
    return true;
}

/* FastISel takes a scalar in memory as an operand of a blend, which reads a vector there (LLVM 22): not where it is volatile. */
static void loads_alone(LLVMModuleRef module)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
            for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
                const LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(i));
                if (LLVMIsALoadInst(i) && (kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind))
                    LLVMSetVolatile(i, true);
            }
}

static bool compile(struct host_jit *jit)
{
    int nmath;
    const struct host_symbol *math = host_math_symbols(&nmath);
    LLVMTargetMachineRef machine = machine_create();
    if (!run_passes(jit->module, PIPELINE, machine) || !blocks_split(jit, machine)) {
        LLVMDisposeTargetMachine(machine);
        return false;
    }
    loads_alone(jit->module);
    jit->lljit = lljit_create(machine);
    return jit->lljit && define(jit->lljit, math, nmath) && define(jit->lljit, jit->symbols, jit->nsymbols) &&
           link_module(jit);
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
