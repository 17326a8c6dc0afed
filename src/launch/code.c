/* SPDX-License-Identifier: Apache-2.0 */
/* code.c - from PTX to a loaded module: the driver's compiler, and the cache of what it made.
 *
 * cuModuleLoadData compiles and loads at once and keeps the machine code to itself.  The driver's linker, given one PTX
 * file, is the same compiler and hands the cubin out; that is what the cache keeps, by PTX, architecture and driver.
 * Whatever goes wrong on this way is tried again without cache and linker, which also gives the driver's log of PTX
 * that does not compile.
 */
#include "base/session.h"
#include "launch_impl.h"

static void code_key(const struct ptxgen_loaded *l, const struct prog_module *code, struct cache_key *key)
{
    struct cache_keying k;

    cache_key_begin(&k, "cubin 1");
    cache_key_number(&k, l->gpu->info.sm);
    cache_key_number(&k, l->gpu->info.driver);
    cache_key_data(&k, code->ptx, code->length);
    cache_key_end(&k, key);
}

/* Load an image without a word about failure. */
static bool load_quietly(const struct driver *cu, const void *image, cu_module *out)
{
    return cu->ModuleLoadDataEx(out, image, 0, NULL, NULL) == CU_OK;
}

static bool load_cached(struct ptxgen_loaded *l, const struct cache_key *key, cu_module *out)
{
    struct str cubin = { 0 };
    bool ok = cache_get(&l->cache, key, &cubin);

    if (ok && !load_quietly(&l->gpu->cu, cubin.text, out)) {
        cache_drop(&l->cache, key);
        ok = false;
    }
    str_finish(&cubin);
    return ok;
}

/* Compile, keep, load. */
static bool load_and_keep(struct ptxgen_loaded *l, const struct prog_module *code, const struct cache_key *key,
                          cu_module *out)
{
    const struct driver *cu = &l->gpu->cu;
    cu_link link;
    void *cubin = NULL;
    size_t bytes = 0;
    bool ok;

    if (!cu->LinkCreate || !cu->LinkAddData || !cu->LinkComplete || !cu->LinkDestroy ||
        cu->LinkCreate(0, NULL, NULL, &link) != CU_OK)
        return false;
    ok = cu->LinkAddData(link, CU_JITINPUT_PTX, code->ptx, code->length + 1, "ptxgen", 0, NULL, NULL) == CU_OK &&
         cu->LinkComplete(link, &cubin, &bytes) == CU_OK && load_quietly(cu, cubin, out);
    if (ok)
        cache_put(&l->cache, key, cubin, bytes);
    cu->LinkDestroy(link); /* the cubin is its */
    return ok;
}

/* Compile and load, with the compiler's log in the fault when it cannot. */
static bool load_ptx(struct ptxgen_loaded *l, const struct prog_module *code, cu_module *out, struct fault *f)
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

bool code_load(struct ptxgen_loaded *l, const struct prog_module *code, cu_module *out, struct fault *f)
{
    struct cache_key key;

    if (!l->cache.enabled)
        return load_ptx(l, code, out, f);
    code_key(l, code, &key);
    return load_cached(l, &key, out) || load_and_keep(l, code, &key, out) || load_ptx(l, code, out, f);
}
