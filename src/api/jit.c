/* SPDX-License-Identifier: Apache-2.0 */
/* jit.c - the public API: from a problem to something to launch, through the disk cache.
 *
 * A launch takes one of the cases of a plan, and only its code is made, when the launch takes it.  What that needs is
 * kept: the plan, in the arena of the session that planned, which lives on after its destruction until the last
 * program of this kind is destroyed.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coder.h"
#include "api_stages.h"
#include "launch/launch_stages.h"
#include "lower/plan.h"

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
    if (o.multiprocessors == 0)
        o.multiprocessors = info->multiprocessors;
    char *path = o.tuning == NULL ? ptxgen_tuning_path() : NULL;
    if (path && access(path, R_OK) == 0)
        o.tuning = path;
    const ptxgen_status status = ptxgen_plan_create(s, problem, &o, out);
    free(path);
    return status;
}

/* ---- cases that are compiled when they are taken ---------------------------------------------- */
struct lazy {
    ptxgen_session *holds; /* its arena */
    struct coder coder;
    struct program *program;
    _Atomic bool ends;
    bool threaded;
    pthread_t thread;       /* makes the code of all cases, beside launches */
    pthread_mutex_t lock[]; /* per case: of its module, and of its kernels' shared memory */
};

/* Why code generation failed, from the last message of s. */
static bool lazy_fault(const struct lazy *z, const ptxgen_session *s, int only, struct fault *f)
{
    const struct diag *last = s->diags.last;
    const char *name = only < 0 ? NULL : z->program->cases[only].name;

    return fault_set(f, last ? api_codegen_failure(s) : PTXGEN_NO_MEMORY, last ? last->code : D_NO_ROOM,
                     "%s%s%s: %s%s%s", z->program->name, name ? ", case " : "", name ? name : "",
                     last ? last->text : "out of memory", last && last->hint ? "; " : "",
                     last && last->hint ? last->hint : "");
}

static bool lazy_fill(struct lazy *z, ptxgen_session *log, ptxgen_session *s, int only)
{
    bool ok = false;

    WITH_MEMORY_OR(s, false, ok = coder_fill(&z->coder, log, s, z->program, only));
    return ok;
}

static bool lazy_make(void *user, ptxgen_session *log, int only, struct fault *f)
{
    struct lazy *z = user;
    const int first = only < 0 ? 0 : only, behind = only < 0 ? z->program->ncases : only + 1;
    ptxgen_session *s; /* messages of its own: any thread may be here, without a session */
    bool ok = ptxgen_session_create(&s) == PTXGEN_OK;

    if (!ok)
        return fault_set(f, PTXGEN_NO_MEMORY, D_NO_ROOM, "out of memory");
    for (int c = first; c < behind; c++)
        pthread_mutex_lock(&z->lock[c]);
    ok = lazy_fill(z, log, s, only) || lazy_fault(z, s, only, f);
    for (int c = first; c < behind; c++)
        pthread_mutex_unlock(&z->lock[c]);
    ptxgen_session_destroy(s);
    return ok;
}

/* What fails here is reported by the launch that takes the case. */
static void *lazy_thread(void *user)
{
    struct lazy *z = user;
    struct fault f;

    for (int c = 0; c < z->program->ncases && !z->ends; c++)
        lazy_make(z, NULL, c, &f);
    return NULL;
}

static void lazy_end(void *user)
{
    struct lazy *z = user;

    z->ends = true;
    if (z->threaded)
        pthread_join(z->thread, NULL);
    for (int c = 0; c < z->program->ncases; c++)
        pthread_mutex_destroy(&z->lock[c]);
    ptxgen_session_destroy(z->holds);
    free(z);
}

/* Takes the program; NULL: memory is exhausted. */
static struct lazy *lazy_new(ptxgen_session *s, const struct coder *coder, struct program *program)
{
    struct lazy *z = program ? calloc(1, sizeof *z + sizeof z->lock[0] * (size_t)program->ncases) : NULL;

    if (!z) {
        program_destroy(program);
        return NULL;
    }
    z->holds = s;
    s->holders++;
    z->coder = *coder;
    z->program = program;
    for (int c = 0; c < program->ncases; c++)
        pthread_mutex_init(&z->lock[c], NULL);
    return z;
}

/* Where no thread can be had, launches compile what they take. */
static void lazy_start(struct lazy *z)
{
    enum { STACK = 8 << 20 }; /* emitters hold the values of a tile on it */
    pthread_attr_t attributes;

    if (pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setstacksize(&attributes, STACK);
    z->threaded = pthread_create(&z->thread, &attributes, lazy_thread, z) == 0;
    pthread_attr_destroy(&attributes);
}

/* ---- the call --------------------------------------------------------------------------------- */
static ptxgen_status load_lazily(ptxgen_session *s, ptxgen_gpu *gpu, const struct coder *coder, bool background,
                                 ptxgen_loaded **out)
{
    struct lazy *z = lazy_new(s, coder, program_from_plan(coder->plan));

    if (!z)
        return PTXGEN_NO_MEMORY;
    const ptxgen_status status = launch_load(s, gpu, z->program, out);
    if (status != PTXGEN_OK) {
        struct program *program = z->program;
        lazy_end(z);
        program_destroy(program);
        return status;
    }
    launch_own(*out, z->program, &(struct code_source){ z, lazy_make, lazy_end });
    if (background)
        lazy_start(z);
    return PTXGEN_OK;
}

static void release_session(void *user) { ptxgen_session_destroy(user); }

/* A loaded program for each stage. */
static ptxgen_status load_stages(ptxgen_session *s, ptxgen_gpu *gpu, const ptxgen_problem *problem,
                                 const ptxgen_jit_options *o, ptxgen_loaded **out)
{
    const struct prog_stages *p = &problem->stages->data;
    ptxgen_loaded *whole = launch_new_stages(gpu, p);
    ptxgen_status status = whole ? PTXGEN_OK : PTXGEN_NO_MEMORY;
    ptxgen_jit_options with = *o;
    ptxgen_plan_options plan;

    if (!whole)
        return status;
    with.plan = &plan;
    whole->stages->user = s;
    whole->stages->end = release_session;
    s->holders++;
    for (int i = 0; i < p->nstages && status == PTXGEN_OK; i++) {
        status = TAKE(s, o->plan, &plan) ? api_stage_options(s, problem, i, &plan) : PTXGEN_USAGE;
        if (status == PTXGEN_OK)
            status = ptxgen_jit(s, gpu, problem->stage[i], &with, &whole->stages->stage[i]);
    }
    if (status == PTXGEN_OK)
        *out = whole;
    else
        ptxgen_loaded_destroy(whole);
    return status;
}

ptxgen_status ptxgen_jit(ptxgen_session *s, ptxgen_gpu *gpu, const ptxgen_problem *problem,
                         const ptxgen_jit_options *options, ptxgen_loaded **out)
{
    ptxgen_jit_options o;
    struct coder coder;
    ptxgen_plan *plan;
    ptxgen_status status;

    CLEAR(out);
    if (LACKS(s, s, gpu, problem, out) || !TAKE(s, options, &o))
        return PTXGEN_USAGE;
    if (problem->stages)
        return load_stages(s, gpu, problem, &o, out);
    status = plan_for(s, gpu, problem, o.plan, &plan);
    if (status != PTXGEN_OK)
        return status;
    if (!coder_begin(&coder, s, problem, plan, o.compile, o.cache))
        return PTXGEN_USAGE;
    coder.sm = ptxgen_gpu_describe(gpu)->sm;
    if (coder.options.libdevice) /* the options are the caller's */
        WITH_MEMORY(s, coder.options.libdevice = arena_strdup(&s->arena, coder.options.libdevice));
    return load_lazily(s, gpu, &coder, o.background != 0, out);
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
