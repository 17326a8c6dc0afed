/* SPDX-License-Identifier: Apache-2.0 */
/* ptx.h - a module for the GPU, from empty to PTX text.
 *
 *     struct codegen *cg = codegen_begin(device, options, "dot");
 *     kb *k = codegen_builder(cg);
 *     … kernels …
 *     program text = codegen_ptx(cg, &length);
 *     bool ok = codegen_end(cg, session);      // false: the first error is in the session
 *
 * After the first error everything is a no-op until codegen_end().  The session's arena is not used while LLVM's
 * objects are held, because it may jump out when memory is exhausted.
 */
#ifndef PTXGEN_PTX_H
#define PTXGEN_PTX_H

#include "base/session.h"
#include "llvmgen/builder/kb_target.h"
#include "llvm_guard.h"
#include "llvmgen.h"

struct codegen;

/* NULL when memory is exhausted. */
struct codegen *codegen_begin(const struct device *d, const struct llvmgen_options *o, const char *module_name);
kb *codegen_builder(struct codegen *cg);
void codegen_fail(struct codegen *cg, enum diag_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* NUL-terminated text, owned by the caller (free); NULL after an error. */
char *codegen_ptx(struct codegen *cg, size_t *length);
char *codegen_ir(struct codegen *cg);
/* Releases everything. False when there was an error, which is reported to s (which may be NULL). */
bool codegen_end(struct codegen *cg, struct ptxgen_session *s);

/* How many target machines this process has made so far. */
int codegen_machines(void);

/* nvptx_exact.c, ptx_exact.c: forms that code generation or ptxas would compute wrongly get others; of a module, and of
 * its PTX (malloc'd; NULL when out of memory). */
void nvptx_rewrite(LLVMModuleRef module);
char *ptx_keep_exact(const char *text, size_t length, size_t *out_length);

/* nvptx_ranges.c, part of nvptx_rewrite(): an instruction for which the range of an operand allows a shorter form gets
 * it. */
void nvptx_use_range(LLVMBuilderRef b, LLVMValueRef i);
/* Is v a call of an intrinsic ("llvm.fma"), of any type? */
bool nvptx_calls(LLVMValueRef v, const char *intrinsic);

/* ptx_layout.c: the same statements in fewer bytes, in place; how many.  The text ends with a newline. */
size_t ptx_lay_out(char *text, size_t length);

#endif
