/* SPDX-License-Identifier: Apache-2.0 */
/* llvmgen.h - from a plan to code.  What the rest of the library sees of this folder: no LLVM type. */
#ifndef PTXGEN_LLVMGEN_H
#define PTXGEN_LLVMGEN_H

#include "lower/plan.h"

/* What compiling a case consists of, in this order. */
enum llvmgen_stage { STAGE_MACHINE, STAGE_EMIT, STAGE_PASSES, STAGE_CODEGEN, STAGE_TEXT, STAGE_END, LLVMGEN_STAGES };

struct llvmgen_options {
    enum { PIPELINE_LEAN, PIPELINE_O2, PIPELINE_O3 } pipeline;
    int threads;    /* 1: compile on the caller's thread alone; 0: a thread per case */
    int omit_point; /* mutation tests */
    double
        *stage; /* bench/latency: CPU milliseconds of a thread are added, LLVMGEN_STAGES of them; NULL: not measured */
    const char *libdevice; /* path of libdevice.10.bc or a libclc .bc; NULL: searched */
};

/* PTX for case `only` of the plan's program, or with a negative number for all: a module for each that has none yet.
 * False with diagnostics; the cases that have code then keep it. */
bool llvmgen_fill(struct ptxgen_session *s, const struct plan *plan, const struct llvmgen_options *o,
                  struct program *program, int only);
/* LLVM IR text of all modules, after the passes. */
bool llvmgen_ir(struct ptxgen_session *s, const struct plan *plan, const struct llvmgen_options *o, struct str *out);

/* The same kernels as native code of this machine, for the host executor.  Calls to the runtime (simt/simt_rt.h) are
 * bound to `symbols`.  The program has no PTX; entry points by case and kernel.  A case is emitted and compiled when its
 * entry is first asked for: until host_destroy() the plan must stay. */
struct host_symbol {
    const char *name;
    void *address;
};
typedef void (*host_kernel)(void *const *args); /* like cuLaunchKernel: one pointer per argument */
struct host_code;
struct host_code *llvmgen_host(struct ptxgen_session *s, const struct plan *plan, const struct llvmgen_options *o,
                               const struct host_symbol *symbols, int nsymbols);
const struct program *host_program(const struct host_code *h);
host_kernel host_entry(struct host_code *h, int case_index, int kernel); /* NULL: it has no code */
const char *host_failure(const struct host_code *h, int case_index);     /* why, or NULL; -1: no case */
int host_points(struct host_code *h);                                    /* ordering points, over all cases */
const char *host_point_text(const struct host_code *h, int i);           /* 1 … */
void host_destroy(struct host_code *h);

/* Whose code generator this is: the file of LLVM, where it is known before LLVM is loaded, or NULL. */
const char *llvmgen_file(void);
/* major * 10000 + minor * 100 + patch of LLVM, which is loaded for that; 0: it cannot be. */
int llvmgen_version(void);

#endif
