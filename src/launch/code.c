/* SPDX-License-Identifier: Apache-2.0 */
/* code.c - from PTX to a loaded module, by the driver's compiler.
 *
 * The driver keeps the machine code in a disk cache of its own; the key is the text of the PTX.  A cache of ours would need
 * the driver's linker, which gives out machine code.  But the linker compiles for later linking, with more registers: on
 * an H200 reductions lost 3 to 15 % that way.
 */
#include "base/session.h"
#include "launch_impl.h"

/* Compile and load, with the compiler's log in the fault when it cannot. */
bool code_load(struct ptxgen_loaded *l, const struct prog_module *code, cu_module *out, struct fault *f)
{
    enum { LOG_BYTES = 3000 };
    char log[LOG_BYTES] = "";
    int option[] = { CU_JITOPT_ERROR_LOG, CU_JITOPT_ERROR_LOG_BYTES };
    void *value[] = { log, (void *)(uintptr_t)LOG_BYTES };
    const struct driver *cu = &l->gpu->cu;
    const char *name = NULL, *text = NULL;
    int result = cu->ModuleLoadDataEx(out, code->ptx, 2, option, value);

    if (result == CU_OK)
        return true;
    *out = NULL;
    if (result != CU_INVALID_PTX && result != CU_UNSUPPORTED_PTX && result != CU_NO_BINARY_FOR_GPU)
        return driver_check(f, cu, result, "cuModuleLoadDataEx(module)", __FILE__, __LINE__);
    cu->GetErrorName(result, &name);
    cu->GetErrorString(result, &text);
    return fault_set(f, PTXGEN_INTERNAL, D_JIT, "the driver could not compile the PTX: %s (%s, %d); its log: %s",
                     text ? text : "unknown", name ? name : "no name", result, log[0] ? log : "empty");
}
