/* SPDX-License-Identifier: Apache-2.0 */
/* llvm_guard.h - no LLVM error ends the process.
 *
 * LLVM reports what it considers a fault of its user through a process-wide fatal error handler and ends the process
 * when that returns; everything else goes to the context's diagnostic handler, whose default also exits.  Both are
 * caught here: the fatal handler, installed once, jumps back to the thread's innermost llvm_guard(); diagnostics are
 * kept per context.
 */
#ifndef PTXGEN_LLVM_GUARD_H
#define PTXGEN_LLVM_GUARD_H

#include <stdbool.h>

#include "llvm_open.h"

enum { LLVM_ERROR_TEXT = 512 };

/* Errors of one context. */
struct llvm_errors {
    int count;
    char first[LLVM_ERROR_TEXT];
};

/* A context whose errors are collected in *e, which must live as long as the context. */
LLVMContextRef llvm_context(struct llvm_errors *e);
void llvm_error(struct llvm_errors *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* body(user), and true if it returned.  After a fatal error of LLVM: false, with the text as the first error of e (if
 * none was before); what body was working on (context, module) is then in an unknown state and must be abandoned, not
 * disposed of. */
bool llvm_guard(void (*body)(void *user), void *user, struct llvm_errors *e);

/* What is wrong with the IR of a module, for LLVMDisposeMessage(); NULL: nothing.  Finds faults of emitters alone, and takes 3 %
 * of the time to PTX: builds for tests look, others find nothing. */
char *llvm_malformed(LLVMModuleRef module);

/* Once per process: the NVPTX target and the fatal error handler. */
void llvm_init_nvptx(void);

#endif
