/* SPDX-License-Identifier: Apache-2.0 */
/* llvm_guard.c - see llvm_guard.h.
 *
 * Jumping out of the fatal handler skips destructors of LLVM's frames: memory leaks, but nothing global is held at the
 * places that report (instruction selection, symbol names, target options).  The capability table keeps this from
 * happening at all; this is the second line.
 */
#include "llvm_guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct guard {
    jmp_buf back;
    struct llvm_errors *errors;
    struct guard *outer;
};
static _Thread_local struct guard *innermost;

static void on_fatal(const char *reason)
{
    struct guard *g = innermost;
    if (!g)
        return; /* not our call: LLVM's own behaviour */
    llvm_error(g->errors, "%s", reason);
    longjmp(g->back, 1);
}

static void install(void)
{
    llvm_open();
    LLVMInstallFatalErrorHandler(on_fatal);
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
}

void llvm_init_nvptx(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
}

bool llvm_guard(void (*body)(void *user), void *user, struct llvm_errors *e)
{
    struct guard g = { .errors = e, .outer = innermost };
    volatile bool returned = false;
    innermost = &g;
    if (setjmp(g.back) == 0) {
        body(user);
        returned = true;
    }
    innermost = g.outer;
    return returned;
}

void llvm_error(struct llvm_errors *e, const char *format, ...)
{
    if (e->count++ > 0)
        return;
    va_list ap;
    va_start(ap, format);
    vsnprintf(e->first, sizeof e->first, format, ap);
    va_end(ap);
    for (char *c = e->first; *c; c++) /* messages are one line */
        if (*c == '\n')
            *c = ' ';
}

/* Remarks and warnings come in floods and say nothing to a user. */
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *user)
{
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    llvm_error(user, "%s", text);
    LLVMDisposeMessage(text);
}

char *llvm_malformed(LLVMModuleRef module)
{
    char *text = NULL;
#if !defined NDEBUG || defined PTXGEN_VERIFY_IR
    if (!LLVMVerifyModule(module, LLVMReturnStatusAction, &text)) {
        LLVMDisposeMessage(text);
        text = NULL;
    }
#else
    (void)module;
#endif
    return text;
}

LLVMContextRef llvm_context(struct llvm_errors *e)
{
    llvm_open();
    LLVMContextRef cx = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(cx, on_diagnostic, e);
    return cx;
}
