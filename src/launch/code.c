/* SPDX-License-Identifier: Apache-2.0 */
/* code.c - from the code of a case to a loaded module.
 *
 * Machine code that the program has for the device is loaded as it is.  Without such code, and where the driver refuses
 * the machine code, the driver compiles the PTX.  The driver keeps what it made in a disk cache of its own, under the text
 * of the PTX.  No linker makes machine code here, neither the driver's nor nvJitLink: they compile for later linking,
 * with more registers.  On an H200 reductions lost 3 to 15 % that way (docs/machine-code.md).
 */
#include "base/session.h"
#include "launch_impl.h"

/* Machine code runs on devices of its architecture, and on later ones of the same generation: the newest comes first. */
static bool load_machine_code(const struct ptxgen_loaded *l, const struct prog_code *code, cu_module *out)
{
    const int sm = l->gpu->info.sm;

    for (; code; code = code->next)
        if (code->arch / 10 == sm / 10 && code->arch <= sm &&
            l->gpu->cu.ModuleLoadDataEx(out, code->data, 0, NULL, NULL) == CU_OK)
            return true;
    return false;
}

bool code_load(struct ptxgen_loaded *l, const struct prog_module *code, cu_module *out, struct fault *f)
{
    enum { LOG_BYTES = 3000 };
    char log[LOG_BYTES] = "";
    int option[] = { CU_JITOPT_ERROR_LOG, CU_JITOPT_ERROR_LOG_BYTES };
    void *value[] = { log, (void *)(uintptr_t)LOG_BYTES };
    const struct driver *cu = &l->gpu->cu;
    const char *name = NULL, *text = NULL;
    int result;

    if (load_machine_code(l, code->code, out))
        return true;
    result = cu->ModuleLoadDataEx(out, code->ptx, 2, option, value);
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
