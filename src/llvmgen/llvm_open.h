/* SPDX-License-Identifier: Apache-2.0 */
/* llvm_open.h - LLVM's C interface, opened when the first case is compiled.
 *
 * A process that finds its code in the cache never loads LLVM, which takes longer than all else that such a process
 * does.  Every file of this folder sees LLVM through this header: the names of its functions are those of a table's
 * fields (cmake/llvm_functions.cmake).  With LLVM's archives inside (PTXGEN_LLVM_FILE is not defined) they are the
 * functions.
 */
#ifndef PTXGEN_LLVM_OPEN_H
#define PTXGEN_LLVM_OPEN_H

#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#ifdef PTXGEN_LLVM_FILE
#include "llvm_functions.h"
#endif

/* NULL: LLVM is there; else why it is not.  Comes before every other call. */
const char *llvm_open(void);

#endif
