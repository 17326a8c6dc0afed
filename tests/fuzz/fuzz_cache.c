/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_cache.c - any bytes as an entry of the disk cache: as a whole file when the first byte is odd, else as the
 * content behind a header that is right.  An entry is no entry, or the code of a case. */
#define _GNU_SOURCE /* mkdtemp */
#include "fuzz.h"

#include <unistd.h>

#include "cache/cache_impl.h"
#include "api/coder.c"

static char directory[] = "/tmp/ptxgen-fuzz-cache-XXXXXX";

static void remove_directory(void)
{
    struct cache cache;
    cache_locate(&cache, directory);
    cache_clear(&cache);
    rmdir(directory);
}

static void prepare(void)
{
    static int done;
    if (done++)
        return;
    promise(mkdtemp(directory) != NULL);
    atexit(remove_directory);
}

/* The entry's file, whose name cache_put() knows, with these bytes in place of its own. */
static void write_raw(const struct cache *cache, const struct cache_key *key, const uint8_t *data, size_t size)
{
    char path[sizeof cache->path + 2 * SHA256_BYTES + 16];
    size_t n = (size_t)snprintf(path, sizeof path, "%s/", cache->path);
    for (int i = 0; i < SHA256_BYTES; i++)
        n += (size_t)snprintf(path + n, sizeof path - n, "%02x", key->digest[i]);
    snprintf(path + n, sizeof path - n, "%s", CACHE_SUFFIX);
    FILE *to = fopen(path, "wb");
    promise(to && fwrite(data, 1, size, to) == size);
    fclose(to);
}

static void use(const struct coder *k)
{
    struct program *program = program_from_plan(k->plan);
    struct ptxgen_program handle = { .program = program };
    promise(program != NULL);
    promise(from_cache(k, program, 0) == (program->module[0].ptx != NULL));
    char *ptx = ptxgen_program_ptx(&handle), *manifest = ptxgen_program_manifest(&handle),
         *header = ptxgen_program_header(&handle);
    promise(ptx && manifest && header);
    ptxgen_free(ptx);
    ptxgen_free(manifest);
    ptxgen_free(header);
    program_destroy(program);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ptxgen_setting set = { "strategy", "reduce.two_kernel" };
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    ptxgen_session *s = NULL;
    ptxgen_plan *plan = NULL;
    struct coder k;
    struct cache_key key;
    if (size == 0)
        return 0;
    prepare();
    o.setting_count = 1;
    o.setting = &set;
    promise(ptxgen_session_create(&s) == PTXGEN_OK);
    ptxgen_problem *problem = fuzz_spec(s, "sum");
    promise(problem && ptxgen_plan_create(s, problem, &o, &plan) == PTXGEN_OK);
    promise(coder_begin(&k, s, problem, plan, NULL, directory) && key_case(&k, 0, &key));
    if (data[0] & 1)
        write_raw(&k.cache, &key, data + 1, size - 1);
    else
        cache_put(&k.cache, &key, data + 1, size - 1);
    use(&k);
    cache_drop(&k.cache, &key);
    ptxgen_session_destroy(s);
    return 0;
}
