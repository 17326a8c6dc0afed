/* SPDX-License-Identifier: Apache-2.0 */
/* jit.c - the public API: from a problem to something to launch, through the disk cache.
 *
 * Planning takes microseconds and is always done; its text, with the problem's, says everything that the code depends
 * on, and so is the key.  An entry holds what planning does not give: the PTX of every module, and the static shared
 * memory of every kernel.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api_impl.h"
#include "cache/cache.h"
#include "launch/launch_impl.h"
#include "llvmgen/llvmgen.h"
#include "lower/plan.h"
#include "source_id.h"

/* ---- the target ------------------------------------------------------------------------------- */
/* Is this row an architecture of its own, not a variant like sm_90a, that device and driver take? */
static bool takes(const ptxgen_gpu_info *info, const char *name, struct device *row)
{
    const char last = name[strlen(name) - 1];

    return last >= '0' && last <= '9' && device_by_name(name, 0, row) && row->sm <= info->sm &&
           row->ptx_min <= info->ptx;
}

const char *ptxgen_gpu_arch(const ptxgen_gpu_info *info)
{
    const char *const *names;
    const int count = info ? device_names(&names) : 0;
    const char *best = NULL;
    struct device row;
    int sm = 0;

    for (int i = 0; i < count; i++)
        if (takes(info, names[i], &row) && row.sm > sm) {
            best = names[i];
            sm = row.sm;
        }
    return best;
}

/* A PTX version for the architecture where the usual one is newer than the driver; else 0. */
static int older_ptx(const ptxgen_gpu_info *info, const char *arch)
{
    struct device row;

    return device_by_name(arch, 0, &row) && row.ptx > info->ptx ? info->ptx : 0;
}

static ptxgen_status plan_for(ptxgen_session *s, const ptxgen_gpu *gpu, const ptxgen_problem *problem,
                              const ptxgen_plan_options *given, ptxgen_plan **out)
{
    const ptxgen_gpu_info *info = ptxgen_gpu_describe(gpu);
    ptxgen_plan_options o;

    if (!TAKE(s, given, &o))
        return PTXGEN_USAGE;
    if (o.arch == NULL) {
        o.arch = ptxgen_gpu_arch(info);
        if (o.arch == NULL) {
            WITH_MEMORY(s, diag_error(&s->diags, D_BAD_TARGET, span_none(),
                                      "no code can be generated for %s, sm_%d with PTX up to %d.%d", info->name,
                                      info->sm, info->ptx / 10, info->ptx % 10));
            return PTXGEN_NO_DEVICE;
        }
        if (o.ptx == 0)
            o.ptx = older_ptx(info, o.arch);
    }
    if (o.gpu == NULL)
        o.gpu = info->name;
    char *path = o.tuning == NULL ? ptxgen_tuning_path() : NULL;
    if (path && access(path, R_OK) == 0)
        o.tuning = path;
    const ptxgen_status status = ptxgen_plan_create(s, problem, &o, out);
    free(path);
    return status;
}

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

static bool program_key(const ptxgen_problem *problem, const ptxgen_plan *plan, const ptxgen_compile_options *o,
                        struct cache_key *out)
{
    char *problem_text = ptxgen_problem_text(problem), *plan_text = ptxgen_plan_text(plan);
    struct cache_keying k;

    cache_key_begin(&k, "program 2");
    cache_key_text(&k, ptxgen_version());
    cache_key_text(&k, PTXGEN_SOURCE_ID);
    cache_key_number(&k, llvmgen_version());
    cache_key_text(&k, problem_text);
    cache_key_text(&k, plan_text);
    cache_key_number(&k, o->pipeline);
    cache_key_number(&k, o->assertions != 0);
    key_library(&k, o->math_library);
    cache_key_end(&k, out);
    free(problem_text);
    free(plan_text);
    return problem_text && plan_text;
}

/* ---- the entry -------------------------------------------------------------------------------- */
static void pack_number(struct str *out, uint64_t x) { str_addn(out, (const char *)&x, sizeof x); }

static void pack(const struct program *p, struct str *out)
{
    for (int c = 0; c < p->ncases; c++)
        for (int i = 0; i < p->cases[c].nkernels; i++)
            pack_number(out, (uint64_t)p->cases[c].kernel[i].shared);
    for (int m = 0; m < p->nmodules; m++) {
        pack_number(out, p->module[m].length);
        str_addn(out, p->module[m].ptx, p->module[m].length);
    }
}

/* What is left of an entry that is being read. */
struct unpacking {
    const char *at;
    size_t left;
};

static bool unpack_number(struct unpacking *u, uint64_t *x)
{
    if (u->left < sizeof *x)
        return false;
    memcpy(x, u->at, sizeof *x);
    u->at += sizeof *x;
    u->left -= sizeof *x;
    return true;
}

static bool unpack_module(struct unpacking *u, struct arena *arena, struct prog_module *m)
{
    uint64_t length;

    if (!unpack_number(u, &length) || length == 0 || length > u->left || memchr(u->at, 0, (size_t)length))
        return false;
    m->ptx = arena_strndup(arena, u->at, (size_t)length);
    m->length = (size_t)length;
    u->at += length;
    u->left -= (size_t)length;
    return true;
}

/* Fill in what pack() wrote for the same plan. */
static bool unpack_program(struct unpacking *u, struct program *p)
{
    enum { SHARED_MAX = 1 << 20 /* bytes of a block: more than any device has */ };
    bool ok = true;

    for (int c = 0; c < p->ncases && ok; c++)
        for (int i = 0; i < p->cases[c].nkernels && ok; i++) {
            uint64_t shared = 0;

            ok = unpack_number(u, &shared) && shared <= SHARED_MAX;
            if (ok)
                llvmgen_place_shared(&p->cases[c], i, (int)shared);
        }
    for (int m = 0; m < p->nmodules && ok; m++)
        ok = unpack_module(u, p->arena, &p->module[m]);
    return ok && u->left == 0;
}

/* The same of an entry of the cache; false: it is not for this plan, or memory is exhausted. */
static bool unpack(struct program *p, struct unpacking *u)
{
    jmp_buf oom;

    p->arena->oom = &oom;
    if (setjmp(oom))
        return false;
    const bool ok = unpack_program(u, p);
    p->arena->oom = NULL;
    return ok;
}

static struct program *from_cache(const struct cache *cache, const struct cache_key *key, const ptxgen_plan *plan)
{
    struct str entry = { 0 };
    struct program *p = cache_get(cache, key, &entry) ? program_from_plan(plan->plan) : NULL;
    struct unpacking from = { entry.text, entry.length };

    if (p && !unpack(p, &from)) {
        cache_drop(cache, key);
        program_destroy(p);
        p = NULL;
    }
    str_finish(&entry);
    return p;
}

static void to_cache(const struct cache *cache, const struct cache_key *key, const struct program *p)
{
    struct str entry = { 0 };

    pack(p, &entry);
    if (!entry.failed)
        cache_put(cache, key, entry.text, entry.length);
    str_finish(&entry);
}

/* ---- the call --------------------------------------------------------------------------------- */
/* A handle for the entry's program, which it takes; NULL: out of memory. */
static ptxgen_program *handle_of(struct program *program)
{
    ptxgen_program *handle = malloc(sizeof *handle);

    if (handle)
        handle->program = program;
    else
        program_destroy(program);
    return handle;
}

ptxgen_status ptxgen_compile_cached(ptxgen_session *s, const ptxgen_problem *problem, const ptxgen_plan *plan,
                                    const ptxgen_compile_options *options, const char *place, ptxgen_program **out)
{
    const double begin = session_now();
    ptxgen_compile_options o;
    struct program *found;
    struct cache cache;
    struct cache_key key;
    ptxgen_status status;
    bool keyed;

    CLEAR(out);
    if (LACKS(s, s, problem, plan, out) || !TAKE(s, options, &o))
        return PTXGEN_USAGE;
    cache_locate(&cache, place);
    keyed = cache.enabled && program_key(problem, plan, &o, &key);
    found = keyed ? from_cache(&cache, &key, plan) : NULL;
    if (found) {
        session_log(s, PTXGEN_LOG_INFO, begin, "%s: taken from the cache %s", found->name, cache.path);
        *out = handle_of(found);
        return *out ? PTXGEN_OK : PTXGEN_NO_MEMORY;
    }
    status = ptxgen_compile(s, plan, &o, out);
    if (status == PTXGEN_OK && keyed) {
        to_cache(&cache, &key, (*out)->program);
        session_log(s, PTXGEN_LOG_DEBUG, 0, "%s: kept in the cache %s", (*out)->program->name, cache.path);
    }
    return status;
}

ptxgen_status ptxgen_jit(ptxgen_session *s, ptxgen_gpu *gpu, const ptxgen_problem *problem,
                         const ptxgen_jit_options *options, ptxgen_loaded **out)
{
    ptxgen_jit_options o;
    ptxgen_program *program = NULL;
    ptxgen_plan *plan;
    ptxgen_status status;

    CLEAR(out);
    if (LACKS(s, s, gpu, problem, out) || !TAKE(s, options, &o))
        return PTXGEN_USAGE;
    status = plan_for(s, gpu, problem, o.plan, &plan);
    if (status == PTXGEN_OK)
        status = ptxgen_compile_cached(s, problem, plan, o.compile, o.cache, &program);
    if (status == PTXGEN_OK)
        status = ptxgen_load(s, gpu, program, out);
    if (status != PTXGEN_OK) {
        ptxgen_program_destroy(program);
        return status;
    }
    launch_own(*out, program->program);
    free(program); /* the handle alone */
    return PTXGEN_OK;
}

ptxgen_status ptxgen_jit_string(ptxgen_session *s, ptxgen_gpu *gpu, const char *text, size_t length, const char *name,
                                const ptxgen_jit_options *options, ptxgen_loaded **out)
{
    ptxgen_problem *problem;
    ptxgen_status status;

    CLEAR(out);
    NEED(PTXGEN_USAGE, s, s, gpu, text, out);
    status = ptxgen_problem_from_string(s, text, length, name, &problem);
    return status == PTXGEN_OK ? ptxgen_jit(s, gpu, problem, options, out) : status;
}

ptxgen_status ptxgen_jit_file(ptxgen_session *s, ptxgen_gpu *gpu, const char *path, const ptxgen_jit_options *options,
                              ptxgen_loaded **out)
{
    ptxgen_problem *problem;
    ptxgen_status status;

    CLEAR(out);
    NEED(PTXGEN_USAGE, s, s, gpu, path, out);
    status = ptxgen_problem_from_file(s, path, &problem);
    return status == PTXGEN_OK ? ptxgen_jit(s, gpu, problem, options, out) : status;
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
