/* SPDX-License-Identifier: Apache-2.0 */
/* mathlib.h - device math functions from bitcode. */
#ifndef PTXGEN_MATHLIB_H
#define PTXGEN_MATHLIB_H

#include <stdbool.h>

#include "llvmgen/llvm_guard.h"

/* Does the module call functions of the library? */
bool mathlib_needed(LLVMModuleRef mod);
/* Link the functions that the module calls, and what they call.  path: a .bc file, or NULL: searched.  False: nothing
 * was found, or what was is of no use; the text is in e. */
bool mathlib_link(LLVMModuleRef mod, const char *path, struct llvm_errors *e);

#endif
