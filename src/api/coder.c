/* SPDX-License-Identifier: Apache-2.0 */
/* coder.c - see coder.h; and the public API's compiling and cache.
 *
 * Planning takes microseconds and is always done; the text of a case in the plan, with the problem's, says everything
 * that the code of the case depends on, and so is the key.  An entry holds what planning does not give: the PTX of the
 * case, and the static shared memory of its kernels.
 *
 * Machine code is an entry of its own, named by the hash of the first entry's content and by the architecture.  Only
 * ptxgen_program_keep_code() writes one.  A process on a GPU looks for one beside each case that it finds or makes.
 */
#include "coder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api_stages.h"
#include "lower/plan.h"
#include "ptxgen/launch.h"
#include "source_id.h"

/* ---- the key ---------------------------------------------------------------------------------- */
/* The library's path, and what changes when its file does. */
static void key_library(struct cache_keying *k, const char *path)
{
    struct stat st;

    cache_key_text(k, path);
    if (path && stat(path, &st) == 0) {
        cache_key_number(k, st.st_size);
        cache_key_number(k, st.st_mtim.tv_sec);
        cache_key_number(k, st.st_mtim.tv_nsec);
    }
}

static bool key_common(struct coder *k, const ptxgen_problem *problem)
{
    char *text = ptxgen_problem_text(problem);
    const char *llvm = llvmgen_file();

    cache_key_begin(&k->common, "case 1");
    cache_key_text(&k->common, ptxgen_version());
    cache_key_text(&k->common, PTXGEN_SOURCE_ID);
    key_library(&k->common, llvm);
    cache_key_number(&k->common, llvm ? 0 : llvmgen_version());
    cache_key_text(&k->common, text);
    cache_key_number(&k->common, (int64_t)k->options.pipeline);
    key_library(&k->common, k->options.libdevice);
    free(text);
    return text != NULL;
}

static bool key_case(const struct coder *k, int c, struct cache_key *out)
{
    struct cache_keying keying = k->common;
    struct str text = { 0 };

    plan_print_case(k->plan, c, &text);
    const bool ok = !text.failed;
    cache_key_text(&keying, text.text);
    cache_key_end(&keying, out);
    str_finish(&text);
    return ok;
}

/* ---- the entry -------------------------------------------------------------------------------- */
/* Shared memory of each kernel, the length of the PTX, the PTX; false: memory is exhausted. */
static bool pack(const struct program *p, int c, struct str *entry)
{
    const struct prog_case *code = &p->cases[c];

    for (int i = 0; i < code->nkernels; i++)
        str_addn(entry, (const char *)&code->kernel[i].shared, sizeof code->kernel[i].shared);
    str_addn(entry, (const char *)&p->module[c].length, sizeof p->module[c].length);
    str_addn(entry, p->module[c].ptx, p->module[c].length);
    return !entry->failed;
}

static void key_machine_code(const struct cache_key *content, int sm, struct cache_key *out)
{
    struct cache_keying keying;

    cache_key_begin(&keying, "machine code 1");
    cache_key_data(&keying, content->digest, sizeof content->digest);
    cache_key_number(&keying, sm);
    cache_key_end(&keying, out);
}

/* For the device of the coder, if there is some.  content: of the case's entry. */
static void find_machine_code(const struct coder *k, struct program *p, int c, const struct cache_key *content)
{
    struct str code = { 0 };
    struct cache_key key;

    key_machine_code(content, k->sm, &key);
    if (k->sm > 0 && cache_get(&k->cache, &key, &code, NULL))
        program_add_code(p, c, k->sm, code.text, code.length);
    str_finish(&code);
}

static void to_cache(const struct coder *k, struct program *p, int c)
{
    struct str entry = { 0 };
    struct cache_key key, content;

    if (pack(p, c, &entry) && key_case(k, c, &key)) {
        cache_put(&k->cache, &key, entry.text, entry.length);
        cache_content(entry.text, entry.length, &content); /* less than the compiling before it by far */
        find_machine_code(k, p, c, &content);
    }
    str_finish(&entry);
}

/* False: it is for something else, or memory is exhausted. */
static bool unpack(struct program *p, int c, const struct str *entry)
{
    enum { SHARED_MAX = 1 << 20 /* bytes of a block: more than any device has */ };
    struct prog_case *code = &p->cases[c];
    const size_t numbers = sizeof code->kernel[0].shared * (size_t)code->nkernels, head = numbers + sizeof(size_t);
    size_t length = 0;
    int shared = 0;

    if (entry->length > head)
        memcpy(&length, entry->text + numbers, sizeof length);
    if (length == 0 || length != entry->length - head || memchr(entry->text + head, 0, length))
        return false;
    for (int i = 0; i < 2 * code->nkernels; i++) { /* all are looked at before any is used */
        memcpy(&shared, entry->text + sizeof shared * (size_t)(i % code->nkernels), sizeof shared);
        if (shared < 0 || shared > SHARED_MAX)
            return false;
        if (i >= code->nkernels)
            program_place_shared(code, i - code->nkernels, shared);
    }
    p->module[c] = (struct prog_module){ .ptx = strdup(entry->text + head), .length = length };
    return p->module[c].ptx != NULL;
}

static bool from_cache(const struct coder *k, struct program *p, int c)
{
    struct str entry = { 0 };
    struct cache_key key, content;
    bool ok = k->cache.enabled && key_case(k, c, &key) && cache_get(&k->cache, &key, &entry, &content);

    if (ok && !unpack(p, c, &entry)) {
        cache_drop(&k->cache, &key);
        ok = false;
    }
    if (ok)
        find_machine_code(k, p, c, &content);
    str_finish(&entry);
    return ok;
}

/* ---- code ------------------------------------------------------------------------------------- */
bool coder_begin(struct coder *k, ptxgen_session *s, const ptxgen_problem *problem, const ptxgen_plan *plan,
                 const ptxgen_compile_options *o, const char *place)
{
    *k = (struct coder){ .plan = plan->plan };
    if (!api_compile_options(s, o, &k->options))
        return false;
    if (problem)
        cache_locate(&k->cache, place);
    k->cache.enabled = k->cache.enabled && key_common(k, problem);
    return true;
}

/* "dot", or "dot, case small" */
static void tell(const struct coder *k, ptxgen_session *log, int only, ptxgen_log_level level, double begin,
                 const char *what, const char *where)
{
    if (log)
        session_log(log, level, begin, "%s%s%s: %s%s", k->plan->problem->name, only < 0 ? "" : ", case ",
                    only < 0 ? "" : k->plan->cases[only].code.name, what, where);
}

bool coder_fill(const struct coder *k, ptxgen_session *log, ptxgen_session *s, struct program *program, int only)
{
    const int first = only < 0 ? 0 : only, behind = only < 0 ? program->ncases : only + 1;
    const double begin = session_now();
    uint64_t made = 0; /* bit c: of case c */
    int found = 0, count = 0;
    char what[40];

    _Static_assert(PLAN_CASES_MAX <= 64, "a bit for each case");
    for (int c = first; c < behind; c++)
        if (!program->module[c].ptx && from_cache(k, program, c))
            found++;
        else if (!program->module[c].ptx)
            made |= (uint64_t)1 << c;
    if (found)
        tell(k, log, only, PTXGEN_LOG_INFO, begin,
             only >= 0 && program->module[only].code ? "taken with machine code from the cache "
                                                     : "taken from the cache ",
             k->cache.path);
    if (!made)
        return true;
    if (!llvmgen_fill(s, k->plan, &k->options, program, only))
        return false;
    count = __builtin_popcountll(made);
    snprintf(what, sizeof what, "compiled %d case%s", count, count == 1 ? "" : "s");
    tell(k, log, only, PTXGEN_LOG_INFO, begin, what, "");
    for (int c = first; k->cache.enabled && c < behind; c++)
        if (made >> c & 1)
            to_cache(k, program, c);
    if (k->cache.enabled)
        tell(k, log, only, PTXGEN_LOG_DEBUG, 0, "kept in the cache ", k->cache.path);
    return true;
}

ptxgen_status coder_keep_code(const struct program *p, const struct cache *cache)
{
    bool kept = true;

    for (int c = 0; c < p->ncases && kept; c++) {
        struct str entry = { 0 };
        struct cache_key content, key;

        if (pack(p, c, &entry))
            cache_content(entry.text, entry.length, &content);
        kept = !entry.failed;
        for (const struct prog_code *code = p->module[c].code; code && kept; code = code->next) {
            key_machine_code(&content, code->arch, &key);
            cache_put(cache, &key, code->data, code->length);
            kept = cache_get(cache, &key, &entry, NULL) && entry.length == code->length &&
                   memcmp(entry.text, code->data, code->length) == 0;
        }
        str_finish(&entry);
    }
    return kept ? PTXGEN_OK : PTXGEN_IO;
}

/* ---- the calls -------------------------------------------------------------------------------- */
static ptxgen_status compile(ptxgen_session *s, const struct coder *k, ptxgen_program *handle)
{
    jmp_buf oom;

    s->arena.oom = &oom;
    if (setjmp(oom))
        return PTXGEN_NO_MEMORY;
    handle->program = program_from_plan(k->plan);
    if (!handle->program)
        return PTXGEN_NO_MEMORY;
    return coder_fill(k, s, s, handle->program, -1) ? PTXGEN_OK : api_codegen_failure(s);
}

static ptxgen_status compile_all(ptxgen_session *s, const struct coder *k, ptxgen_program **out)
{
    ptxgen_program *handle = calloc(1, sizeof *handle);
    const ptxgen_status status = handle ? compile(s, k, handle) : PTXGEN_NO_MEMORY;

    if (status == PTXGEN_OK)
        *out = handle;
    else
        ptxgen_program_destroy(handle);
    return status;
}

ptxgen_status ptxgen_compile(ptxgen_session *s, const ptxgen_plan *plan, const ptxgen_compile_options *options,
                             ptxgen_program **out)
{
    struct coder k;

    CLEAR(out);
    if (LACKS(s, s, plan, out))
        return PTXGEN_USAGE;
    if (plan->stages)
        return api_compile_stages(s, NULL, plan, options, NULL, out);
    if (!coder_begin(&k, s, NULL, plan, options, NULL))
        return PTXGEN_USAGE;
    return compile_all(s, &k, out);
}

ptxgen_status ptxgen_compile_cached(ptxgen_session *s, const ptxgen_problem *problem, const ptxgen_plan *plan,
                                    const ptxgen_compile_options *options, const char *place, ptxgen_program **out)
{
    struct coder k;

    CLEAR(out);
    if (LACKS(s, s, problem, plan, out))
        return PTXGEN_USAGE;
    if (plan->stages)
        return api_compile_stages(s, problem, plan, options, place, out);
    if (!coder_begin(&k, s, problem, plan, options, place))
        return PTXGEN_USAGE;
    return compile_all(s, &k, out);
}

/* ---- the cache itself ------------------------------------------------------------------------- */
ptxgen_status ptxgen_cache_query(const char *place, ptxgen_cache_info *out)
{
    struct cache cache;
    struct cache_stats stats;

    _Static_assert(sizeof out->path == sizeof cache.path, "every path fits");
    if (!out)
        return PTXGEN_USAGE;
    cache_locate(&cache, place);
    cache_count(&cache, &stats);
    *out = (ptxgen_cache_info){
        .enabled = cache.enabled, .entries = stats.entries, .bytes = stats.bytes, .limit = (int64_t)cache.limit
    };
    memcpy(out->path, cache.path, sizeof cache.path);
    return PTXGEN_OK;
}

ptxgen_status ptxgen_cache_clear(const char *place)
{
    struct cache cache;

    cache_locate(&cache, place);
    return cache_clear(&cache) ? PTXGEN_OK : PTXGEN_IO;
}
