/* SPDX-License-Identifier: Apache-2.0 */
/* host_jit.h - a module that was built through kb_target_host as native code of this machine.
 *
 *     host_jit_exists(session)         first of all
 *     host_jit_prepare(module)         before the first instruction is built: triple and data layout
 *     … kernels are emitted …
 *     jit = host_jit_create(…)         verifies the module; takes it and its context over
 *     host_jit_entry(jit, i)(args)     runs one thread of kernel i, on a fiber of the host executor; the first call
 *                                      for a module runs passes, generates code and links, so that cases that no
 *                                      launch takes cost next to nothing
 */
#ifndef PTXGEN_HOST_JIT_H
#define PTXGEN_HOST_JIT_H

#include "base/session.h"
#include "llvmgen/llvm_guard.h"
#include "llvmgen/llvmgen.h"

struct host_jit;

/* Has LLVM a code generator for this machine?  False after a diagnostic. */
bool host_jit_exists(struct ptxgen_session *s);
/* Gives an empty module the triple and data layout of this machine; alignments would be wrong if set later. */
void host_jit_prepare(LLVMModuleRef module);

/* For kernel[0..nkernels), functions of the module by name.  Owns context and module from here on, also when it fails
 * (NULL with a diagnostic).  The runtime's functions are bound to `symbols`, which must stay, math functions and
 * conversions to host_math's.  Nothing of the session is kept. */
struct host_jit *host_jit_create(struct ptxgen_session *s, LLVMContextRef context, LLVMModuleRef module, int nkernels,
                                 const char *const *kernel, const struct host_symbol *symbols, int nsymbols);

/* Entry point of kernel i in the order given; it takes one pointer per argument, like cuLaunchKernel.  NULL: LLVM has
 * refused the module.  One thread at a time. */
host_kernel host_jit_entry(struct host_jit *jit, int i);
void host_jit_destroy(struct host_jit *jit);

/* The functions that host code may call besides the runtime: libm by its own names, rsqrt, exp10, and the compiler's
 * conversions of half and bfloat.  Complete for what host.c and the code generator can emit. */
const struct host_symbol *host_math_symbols(int *count);

#endif
