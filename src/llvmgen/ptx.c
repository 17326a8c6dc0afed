/* SPDX-License-Identifier: Apache-2.0 */
/* ptx.c - LLVM context, target machine, passes and PTX text of one module.
 *
 * The emitters have already unrolled, vectorised and qualified everything, so the default pipeline only cleans up, and
 * code generation runs at level None: its optimisations (straight-line strength reduction among them, quadratic and
 * worse) are what ptxas does again anyway.  2 ms per kernel instead of 20, and no worse machine code.
 */
#include "ptx.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "llvmgen/targets/mathlib.h"

#define TRIPLE "nvptx64-nvidia-cuda"

/* A target machine, and what it was made for. */
struct machine {
    struct machine *next;
    LLVMTargetMachineRef tm;
    struct device device;
    LLVMCodeGenOptLevel level;
    int modules; /* compiled with it */
};

struct codegen {
    struct device device;
    struct llvmgen_options options;
    LLVMContextRef cx;
    LLVMModuleRef mod;
    struct machine *machine;
    kb *k;
    struct llvm_errors errors;
    enum diag_code code; /* of the first error */
    bool finished, abandoned;
    double since; /* when the present stage began */
};

static double cpu_ms(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) ? 0 : (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* The stage ends here, and the next one begins. */
static void stage_end(struct codegen *cg, enum llvmgen_stage stage)
{
    if (!cg->options.stage)
        return;
    const double now = cpu_ms();
    cg->options.stage[stage] += now - cg->since;
    cg->since = now;
}

/* ---- target machines --------------------------------------------------------------------------------------------- */

/* A machine that no module uses waits here for the next module of its architecture, whatever the session.  A machine is
 * one module's at a time, because LLVM writes into it.  Its table of symbol names grows, so it ends after some modules. */
static struct {
    pthread_mutex_t lock;
    struct machine *idle; /* newest first */
    atomic_int made;
} machines = { .lock = PTHREAD_MUTEX_INITIALIZER };

int codegen_machines(void) { return machines.made; }

static struct machine *machine_idle(const struct device *d, LLVMCodeGenOptLevel level)
{
    struct machine **at = &machines.idle, *m;
    pthread_mutex_lock(&machines.lock);
    while ((m = *at) && (m->level != level || m->device.ptx != d->ptx || strcmp(m->device.arch, d->arch) != 0))
        at = &m->next;
    if (m)
        *at = m->next;
    pthread_mutex_unlock(&machines.lock);
    return m;
}

/* NULL: memory is exhausted.  Runs under llvm_guard(). */
static struct machine *machine_take(LLVMTargetRef target, const struct device *d, LLVMCodeGenOptLevel level)
{
    char features[16];
    struct machine *m = machine_idle(d, level);
    if (m || !(m = calloc(1, sizeof *m)))
        return m;
    *m = (struct machine){ .device = *d, .level = level };
    machines.made++;
    snprintf(features, sizeof features, "+ptx%d", d->ptx);
    m->tm = LLVMCreateTargetMachine(target, TRIPLE, d->arch, features, level, LLVMRelocDefault, LLVMCodeModelDefault);
    LLVMSetTargetMachineAsmVerbosity(m->tm, true); /* block names are comments in the PTX */
    return m;
}

static void machine_give(struct machine *m)
{
    enum { KEPT = 16, MODULES = 256 };
    struct machine **at = &machines.idle, *ends = m;
    pthread_mutex_lock(&machines.lock);
    if (++m->modules < MODULES) {
        m->next = machines.idle;
        machines.idle = m;
        for (int i = 0; i < KEPT && *at; i++)
            at = &(*at)->next;
        ends = *at; /* the one that was used longest ago, or none */
        *at = NULL;
    }
    pthread_mutex_unlock(&machines.lock);
    if (ends)
        LLVMDisposeTargetMachine(ends->tm);
    free(ends);
}

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

static void create(void *user)
{
    struct codegen *cg = user;
    LLVMTargetRef target;
    char *text = NULL;
    if (LLVMGetTargetFromTriple(TRIPLE, &target, &text)) {
        llvm_error(&cg->errors, "%s", text);
        LLVMDisposeMessage(text);
        return;
    }
    const bool o3 = cg->options.pipeline == PIPELINE_O3;
    cg->machine = machine_take(target, &cg->device, o3 ? LLVMCodeGenLevelAggressive : LLVMCodeGenLevelNone);
    if (!cg->machine) {
        llvm_error(&cg->errors, "out of memory");
        return;
    }
    LLVMSetTarget(cg->mod, TRIPLE);
    LLVMTargetDataRef layout =
        LLVMCreateTargetDataLayout(cg->machine->tm); /* before anything is built: it decides alignments */
    LLVMSetModuleDataLayout(cg->mod, layout);
    LLVMDisposeTargetData(layout);
}

struct codegen *codegen_begin(const struct device *d, const struct llvmgen_options *o, const char *module_name)
{
    struct codegen *cg = calloc(1, sizeof *cg);
    if (!cg)
        return NULL;
    cg->device = *d;
    cg->options = *o;
    cg->since = cpu_ms();
    llvm_init_nvptx();
    cg->code = D_CODEGEN;
    cg->cx = llvm_context(&cg->errors);
    cg->mod = LLVMModuleCreateWithNameInContext(module_name, cg->cx);
    if (!llvm_guard(create, cg, &cg->errors))
        cg->abandoned = true;
    stage_end(cg, STAGE_MACHINE);
    const struct kb_options ko = {
        .sm = d->sm, .ptx = d->ptx, .omit_point = o->omit_point, .shared_max = d->shared_per_block
    };
    cg->k = kb_new(cg->cx, cg->mod, &kb_target_nvptx, &ko);
    if (cg->k)
        return cg;
    codegen_end(cg, NULL);
    return NULL;
}

kb *codegen_builder(struct codegen *cg) { return cg->k; }

void codegen_fail(struct codegen *cg, enum diag_code code, const char *format, ...)
{
    char text[LLVM_ERROR_TEXT];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (cg->errors.count == 0)
        cg->code = code;
    llvm_error(&cg->errors, "%s", text);
}

bool codegen_end(struct codegen *cg, struct ptxgen_session *s)
{
    cg->since = cpu_ms(); /* the other cases may have been in between */
    const bool ok = cg->errors.count == 0;
    const enum diag_code code = cg->code;
    char text[LLVM_ERROR_TEXT];
    snprintf(text, sizeof text, "%s", cg->errors.first);
    if (!cg->abandoned) { /* after a fatal error LLVM's objects are in an unknown state: leave them */
        kb_free(cg->k);
        LLVMDisposeModule(cg->mod);
        if (cg->machine)
            machine_give(cg->machine);
        LLVMContextDispose(cg->cx);
        stage_end(cg, STAGE_END);
        free(cg);
    }
    if (!ok && s)
        diag_error(&s->diags, code, span_none(), "%s", text);
    return ok;
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

#define CLEAN "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)"
#define INLINE                                                                                                         \
    "nvvm-reflect,always-inline,function(sroa,instcombine<no-verify-fixpoint>,simplifycfg),cgscc(inline),globaldce,"

/* Addresses are computed ahead of loops, but for constant distances, which are part of loads. */
#define ROWS "function(separate-const-offset-from-gep,early-cse,loop-mssa(licm))"

/* `library`: functions of a math library are to be inlined first. */
static const char *pass_pipeline(int pipeline, bool library)
{
    static const char *const text[][2] = {
        [PIPELINE_LEAN] = { CLEAN, INLINE CLEAN },
        [PIPELINE_O2] = { "default<O2>", "default<O2>" },
        [PIPELINE_O3] = { "default<O3>", "default<O3>" },
    };
    return text[pipeline][library];
}

static bool verify(struct codegen *cg, const char *when)
{
    char *text = llvm_malformed(cg->mod);
    if (text)
        codegen_fail(cg, D_CODEGEN, "module is malformed %s: %s", when, text);
    LLVMDisposeMessage(text);
    return !text;
}

static void run_passes(struct codegen *cg, const char *passes)
{
    LLVMPassBuilderOptionsRef po = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(cg->mod, passes, cg->machine->tm, po);
    LLVMDisposePassBuilderOptions(po);
    if (error) {
        char *text = LLVMGetErrorMessage(error);
        codegen_fail(cg, D_CODEGEN, "%s", text);
        LLVMDisposeErrorMessage(text);
    }
}

static void finish(void *user)
{
    struct codegen *cg = user;
    if (!verify(cg, "as emitted"))
        return;
    const bool library = mathlib_needed(cg->mod);
    if (library) /* while calls are calls: of equal ones one is left */
        run_passes(cg, "function(sroa,early-cse<memssa>)");
    if (library && !mathlib_link(cg->mod, cg->options.libdevice, &cg->errors)) {
        cg->code = D_NO_MATH_LIBRARY;
        return;
    }
    run_passes(cg, pass_pipeline((int)cg->options.pipeline, library));
    if (kb_sums_tight(cg->k))
        run_passes(cg, ROWS);
    nvptx_rewrite(cg->mod);
    verify(cg, "after the passes");
}

/* Verified, linked with the math library where needed, and optimised, when it has not been. */
static bool codegen_finish(struct codegen *cg)
{
    if (kb_error(cg->k)[0] && cg->errors.count == 0)
        codegen_fail(cg, D_CODEGEN, "%s", kb_error(cg->k));
    if (cg->finished || cg->errors.count > 0)
        return cg->errors.count == 0;
    cg->finished = true;
    stage_end(cg, STAGE_EMIT);
    if (!llvm_guard(finish, cg, &cg->errors))
        cg->abandoned = true;
    stage_end(cg, STAGE_PASSES);
    return cg->errors.count == 0;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

struct emission {
    struct codegen *cg;
    LLVMMemoryBufferRef buffer;
};

static void emit(void *user)
{
    struct emission *em = user;
    char *text = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(em->cg->machine->tm, em->cg->mod, LLVMAssemblyFile, &text, &em->buffer)) {
        codegen_fail(em->cg, D_CODEGEN, "%s", text);
        LLVMDisposeMessage(text);
        em->buffer = NULL;
    }
}

/* Errors may have been diagnosed although the emission says that it succeeded. */
char *codegen_ptx(struct codegen *cg, size_t *length)
{
    struct emission em = { cg, NULL };
    char *text = NULL;
    if (!codegen_finish(cg))
        return NULL;
    if (!llvm_guard(emit, &em, &cg->errors))
        cg->abandoned = true;
    stage_end(cg, STAGE_CODEGEN);
    if (em.buffer && cg->errors.count == 0) {
        text = ptx_keep_exact(LLVMGetBufferStart(em.buffer), LLVMGetBufferSize(em.buffer), length);
        if (text)
            *length = ptx_lay_out(text, *length);
        else
            codegen_fail(cg, D_NO_ROOM, "out of memory");
    }
    if (em.buffer && !cg->abandoned)
        LLVMDisposeMemoryBuffer(em.buffer);
    stage_end(cg, STAGE_TEXT);
    return text;
}

char *codegen_ir(struct codegen *cg)
{
    if (!codegen_finish(cg))
        return NULL;
    char *llvm_text = LLVMPrintModuleToString(cg->mod);
    char *text = strdup(llvm_text);
    LLVMDisposeMessage(llvm_text);
    if (!text)
        codegen_fail(cg, D_INTERNAL, "out of memory");
    return text;
}
