/* SPDX-License-Identifier: Apache-2.0 */
/* specs.c - the walk over specs, strategies and sizes, by several threads.
 *
 * Most of the time goes to the sequential reference and to compilers, so every spec is a piece of work of its own, with
 * a session and streams of the thread that takes it.  The host executor works in child processes: it gets one thread.
 */
#include "gpu_tests.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TARGETS_MAX = 64, SPECS_MAX = 512 };

/* The default, and every strategy by name. */
static const char *const strategies[] = {
    NULL,
#define STRATEGY(id, kind, name, reference, tunables) name,
#include "lower/strategies.def"
#undef STRATEGY
};

/* ---- targets --------------------------------------------------------------------------------- */
static bool promises_bits(const ptxgen_program *program)
{
    char *manifest = ptxgen_program_manifest(program);
    bool any =
        manifest == NULL || strstr(manifest, "\"determinism\": \"any\"") || strstr(manifest, "\"determinism\":\"any\"");

    ptxgen_free(manifest);
    return !any;
}

static ptxgen_status make_plan(struct suite *t, const ptxgen_problem *problem, const char *strategy, ptxgen_plan **plan)
{
    ptxgen_plan_options options = PTXGEN_PLAN_OPTIONS_INIT;
    ptxgen_setting pin = { "strategy", strategy };
    char arch[16];

    snprintf(arch, sizeof arch, "sm_%d", t->gpu ? ptxgen_gpu_describe(t->gpu)->sm : 90);
    options.arch = arch;
    options.setting_count = strategy != NULL;
    options.setting = &pin;
    return ptxgen_plan_create(t->s, problem, &options, plan);
}

/* PTXGEN_UNSUPPORTED and PTXGEN_USAGE: the strategy does not fit. */
static ptxgen_status make_target(struct suite *t, const ptxgen_problem *problem, const char *strategy,
                                 struct target *out)
{
    ptxgen_status status = make_plan(t, problem, strategy, &out->plan);

    out->name = strategy ? strategy : "default";
    if (status == PTXGEN_OK)
        status = ptxgen_compile(t->s, out->plan, NULL, &out->program);
    if (status == PTXGEN_OK && t->gpu)
        status = ptxgen_load(t->s, t->gpu, out->program, &out->loaded);
    if (status == PTXGEN_OK && !t->gpu)
        status = ptxgen_host_create(t->s, out->plan, NULL, &out->host);
    out->same_bits = status == PTXGEN_OK && promises_bits(out->program);
    return status;
}

static void finish_target(struct target *target)
{
    begin_context_work();
    ptxgen_loaded_destroy(target->loaded);
    ptxgen_host_destroy(target->host);
    ptxgen_program_destroy(target->program);
    end_context_work();
}

static int make_targets(struct suite *t, const char *path, const ptxgen_problem *problem, struct target *targets)
{
    int n = 0;

    for (size_t i = 0; i < sizeof strategies / sizeof *strategies && n < TARGETS_MAX; i++) {
        ptxgen_status status;

        targets[n] = (struct target){ 0 };
        status = make_target(t, problem, strategies[i], &targets[n]);
        if (status == PTXGEN_OK) {
            n++;
            continue;
        }
        finish_target(&targets[n]);
        if (status != PTXGEN_UNSUPPORTED && status != PTXGEN_USAGE && status != PTXGEN_INVALID) {
            note_failure(t, "%s %s: %s", path, targets[n].name, ptxgen_status_text(status));
        }
        ptxgen_diagnostics_clear(t->s);
        if (i == 0)
            break; /* not supported at all */
    }
    return n;
}

/* ---- sizes ----------------------------------------------------------------------------------- */
static const int64_t quick_sizes[] = { 0,    1,    31,   32,   33,    255,   256,    257,
                                       1000, 4095, 4096, 4097, 16385, 65537, 131075, 1000003 };
static const int64_t full_sizes[] = { 0,     1,     2,      3,      7,      15,      16,           17,    31,
                                      32,    33,    63,     65,     127,    128,     129,          255,   256,
                                      257,   511,   512,    513,    1000,   1023,    1025,         2047,  2049,
                                      4095,  4096,  4097,   8191,   8192,   8193,    9999,         16383, 16385,
                                      32769, 65537, 123457, 131075, 262147, 1000003, (1 << 20) + 7 };
static const int64_t sanitize_sizes[] = { 0, 1, 33, 257, 4097, 40003 };
static const int64_t side_sizes[] = { 1, 7, 33, 256, 1001 };
static const int64_t pair_sizes[] = { 1, 3, 7, 33, 100, 256, 1001, 4096, 70001 }; /* of two dimensions */

static void sizes_text(const struct sample *x, char *text, size_t length)
{
    text[0] = 0;
    for (int k = 0; k < x->nsizes; k++)
        snprintf(text + strlen(text), length - strlen(text), " %s=%lld", ptxgen_problem_size_name(x->problem, k),
                 (long long)x->size[k]);
}

static void run_size(struct suite *t, const char *path, const ptxgen_problem *problem, const int64_t *size,
                     struct target *targets, int ntargets)
{
    struct sample x;
    bool ok = sample_create(t, problem, size, &x);
    char sizes[200];

    sizes_text(&x, sizes, sizeof sizes);
    for (int i = 0; i < ntargets; i++) {
        char why[400] = "";

        enum outcome outcome = ok ? run_target(t, &targets[i], &x, why, sizeof why) : OUTCOME_FAILED;
        if (outcome != OUTCOME_FAILED)
            note_outcome(t, targets[i].name, outcome);
        else
            note_failure(t, "%s %s%s: %s", path, targets[i].name, sizes, ok ? why : "no reference");
    }
    sample_finish(&x);
}

/* One size: the list. More: all combinations of a short list, up to a million points. */
static void run_sizes(struct suite *t, const char *path, const ptxgen_problem *problem, struct target *targets,
                      int ntargets)
{
    const int64_t *list = t->sanitize ? sanitize_sizes : t->full ? full_sizes : quick_sizes;
    size_t n = t->sanitize ? sizeof sanitize_sizes : t->full ? sizeof full_sizes : sizeof quick_sizes;
    int nsizes = ptxgen_problem_size_count(problem), combinations = 1;
    const int64_t *side = nsizes == 2 ? pair_sizes : side_sizes;
    const size_t sides = nsizes == 2 ? sizeof pair_sizes / sizeof *pair_sizes : sizeof side_sizes / sizeof *side_sizes;

    n /= sizeof *list;
    if (nsizes <= 1) {
        for (size_t i = 0; i < (nsizes ? n : 1); i++)
            if (t->gpu || list[i] <= 4097)
                run_size(t, path, problem, &list[i], targets, ntargets);
        return;
    }
    for (int k = 0; k < nsizes; k++)
        combinations *= (int)sides;
    for (int i = 0; i < combinations; i++) {
        int64_t size[SIZES_MAX] = { 0 }, points = 1;

        for (int k = 0, rest = i; k < nsizes && k < SIZES_MAX; k++, rest /= (int)sides) {
            size[k] = side[rest % (int)sides];
            points *= size[k];
        }
        if (points <= (t->gpu && !t->sanitize ? 1100000 : 10000))
            run_size(t, path, problem, size, targets, ntargets);
    }
}

/* ---- specs ----------------------------------------------------------------------------------- */
static void run_spec(struct suite *t, const char *path)
{
    struct target targets[TARGETS_MAX];
    ptxgen_problem *problem;
    int n;

    if (ptxgen_problem_from_file(t->s, path, &problem) != PTXGEN_OK) {
        note_failure(t, "%s: not a valid spec", path);
        return;
    }
    n = make_targets(t, path, problem, targets);
    if (n == 0)
        note_skip(t, path);
    else
        run_sizes(t, path, problem, targets, n);
    for (int i = 0; i < n; i++)
        finish_target(&targets[i]);
}

/* Which specs there are, and which one is next. */
static struct {
    pthread_mutex_t lock;
    int n, next;
    char *path[SPECS_MAX];
} work = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const char *take(void)
{
    const char *path;

    pthread_mutex_lock(&work.lock);
    path = work.next < work.n ? work.path[work.next++] : NULL;
    pthread_mutex_unlock(&work.lock);
    return path;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

void add_folder(struct suite *t, const char *folder)
{
    struct dirent *entry;
    DIR *dir = opendir(folder);
    int first = work.n;

    if (dir == NULL) {
        note_failure(t, "%s: no such folder", folder);
        return;
    }
    while (work.n < SPECS_MAX && (entry = readdir(dir)) != NULL) {
        size_t length = strlen(entry->d_name);
        char path[1024];

        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (length > 5 && strcmp(entry->d_name + length - 5, ".yaml") == 0 &&
            (t->filter == NULL || strstr(path, t->filter)))
            work.path[work.n++] = strdup(path);
    }
    closedir(dir);
    qsort(work.path + first, (size_t)(work.n - first), sizeof *work.path, by_name);
}

/* Take specs until none is left, each with a session of its own. */
static void *worker(void *common)
{
    struct suite mine = *(const struct suite *)common;
    const char *path;

    mine.s = NULL;
    memset(mine.stream, 0, sizeof mine.stream);
    for (int i = 0; i < STREAMS && mine.gpu; i++)
        if (ptxgen_stream_create(NULL, mine.gpu, &mine.stream[i]) != PTXGEN_OK)
            note_failure(&mine, "no stream");
    while ((path = take()) != NULL) {
        if (ptxgen_session_create(&mine.s) != PTXGEN_OK)
            exit(3);
        run_spec(&mine, path);
        ptxgen_session_destroy(mine.s);
        mine.s = NULL;
    }
    for (int i = 0; i < STREAMS && mine.gpu; i++)
        ptxgen_stream_destroy(mine.gpu, mine.stream[i]);
    return NULL;
}

void run_specs(struct suite *t, int threads)
{
    pthread_t thread[THREADS_MAX];
    int started = 0;

    for (size_t i = 1; i < sizeof strategies / sizeof *strategies && work.n && t->gpu && !t->sanitize && !t->filter;
         i++)
        expect_strategy(strategies[i]);
    while (started < threads - 1 && pthread_create(&thread[started], NULL, worker, t) == 0)
        started++;
    worker(t);
    while (started > 0)
        pthread_join(thread[--started], NULL);
    while (work.n > 0)
        free(work.path[--work.n]);
}
