/* SPDX-License-Identifier: Apache-2.0 */
/* llvm_open.c - see llvm_open.h.  LLVM is never closed: its exit handlers would run beside threads that compile. */
#include "llvm_open.h"

#include "llvmgen.h"

#ifdef PTXGEN_LLVM_FILE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct llvm_functions llvm_functions;
static const char *const name[] = { LLVM_NAMES };
_Static_assert(sizeof name / sizeof *name == sizeof llvm_functions / sizeof(void (*)(void)), "a field for each name");

static char failure[512];

/* Where it was when ptxgen was built, else wherever the system finds that version. */
static void open_once(void)
{
    void *library = dlopen(PTXGEN_LLVM_FILE, RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        library = dlopen(PTXGEN_LLVM_SONAME, RTLD_LAZY | RTLD_LOCAL);
    bool found = library != NULL;
    for (size_t i = 0; found && i < sizeof name / sizeof *name; i++) {
        void *function = dlsym(library, name[i]);
        memcpy((char *)&llvm_functions + i * sizeof function, &function, sizeof function);
        found = function != NULL;
    }
    if (!found)
        snprintf(failure, sizeof failure, "%s", dlerror());
}

const char *llvm_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return failure[0] ? failure : NULL;
}

const char *llvmgen_file(void) { return access(PTXGEN_LLVM_FILE, R_OK) == 0 ? PTXGEN_LLVM_FILE : NULL; }

#else
const char *llvm_open(void) { return NULL; }
const char *llvmgen_file(void) { return NULL; }
#endif
