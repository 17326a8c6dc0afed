/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_tests.c - every spec and strategy at edge sizes on a GPU, against the sequential reference.
 *
 *     gpu_tests [quick|full|sanitize] [--specs DIR]... [--large DIR] [--filter TEXT] [--device K] [--host [MODES]]
 *
 * quick: a few minutes at most; full: more sizes, more alignments, 1000 repetitions at one size, the giant sizes;
 * sanitize: a smaller set for compute-sanitizer.  Every spec is compiled for the device, once with the default strategy
 * and once with each strategy by name that fits; a spec or strategy that is not supported yet counts as skipped. Exit
 * status: 0, 1 when something failed, 2 usage, 3 no device.
 */
#include "gpu_tests.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { TARGETS_MAX = 16, SPECS_MAX = 256 };

static const char *const strategies[] = {
    NULL, "reduce.block", "reduce.cluster", "reduce.last_block", "reduce.two_kernel", "reduce.atomic", "reduce.ordered",
};

void say_diagnostics(struct suite *t)
{
    char *text = ptxgen_diagnostics_text(t->s, 0);

    if (text)
        fputs(text, stdout);
    ptxgen_free(text);
    ptxgen_diagnostics_clear(t->s);
}

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
    ptxgen_loaded_destroy(target->loaded);
    ptxgen_host_destroy(target->host);
    ptxgen_program_destroy(target->program);
}

static int make_targets(struct suite *t, const char *path, const ptxgen_problem *problem, struct target *targets)
{
    int n = 0;

    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        ptxgen_status status;

        targets[n] = (struct target){ 0 };
        status = make_target(t, problem, strategies[i], &targets[n]);
        if (status == PTXGEN_OK) {
            n++;
            continue;
        }
        finish_target(&targets[n]);
        if (status != PTXGEN_UNSUPPORTED && status != PTXGEN_USAGE && status != PTXGEN_INVALID) {
            printf("FAIL %s %s: %s\n", path, targets[n].name, ptxgen_status_text(status));
            say_diagnostics(t);
            t->failed++;
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

static bool run_size(struct suite *t, const char *path, const ptxgen_problem *problem, const int64_t *size,
                     struct target *targets, int ntargets)
{
    struct sample x;
    bool ok = sample_create(t, problem, size, &x);

    for (int i = 0; i < ntargets; i++) {
        char why[400] = "";
        bool passed = ok && run_target(t, &targets[i], &x, why, sizeof why);

        t->passed += passed;
        t->failed += !passed;
        if (!passed) {
            printf("FAIL %s %s", path, targets[i].name);
            for (int k = 0; k < x.nsizes; k++)
                printf(" %s=%lld", ptxgen_problem_size_name(problem, k), (long long)x.size[k]);
            printf(": %s\n", ok ? why : "no reference");
            say_diagnostics(t);
        }
    }
    sample_finish(&x);
    return ok;
}

/* One size: the list. More: all combinations of a short list, up to a million points. */
static void run_sizes(struct suite *t, const char *path, const ptxgen_problem *problem, struct target *targets,
                      int ntargets)
{
    const int64_t *list = t->sanitize ? sanitize_sizes : t->full ? full_sizes : quick_sizes;
    size_t n = t->sanitize ? sizeof sanitize_sizes : t->full ? sizeof full_sizes : sizeof quick_sizes;
    const size_t sides = sizeof side_sizes / sizeof *side_sizes;
    int nsizes = ptxgen_problem_size_count(problem), combinations = 1;

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
            size[k] = side_sizes[rest % (int)sides];
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
    int before = t->failed, passed = t->passed, n;

    if (ptxgen_problem_from_file(t->s, path, &problem) != PTXGEN_OK) {
        printf("FAIL %s: not a valid spec\n", path);
        say_diagnostics(t);
        t->failed++;
        return;
    }
    n = make_targets(t, path, problem, targets);
    if (n == 0) {
        t->skipped++;
        printf("skip %s\n", path);
        return;
    }
    run_sizes(t, path, problem, targets, n);
    for (int i = 0; i < n; i++)
        finish_target(&targets[i]);
    printf("%s %s: %d strategies, %d checks\n", t->failed > before ? "FAIL" : "ok  ", path, n, t->passed - passed);
    fflush(stdout);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Every .yaml file of a folder, in order of name, each with a session of its own. */
static void run_folder(struct suite *t, const char *folder)
{
    char *name[SPECS_MAX];
    struct dirent *entry;
    DIR *dir = opendir(folder);
    int n = 0;

    while (dir && n < SPECS_MAX && (entry = readdir(dir)) != NULL) {
        size_t length = strlen(entry->d_name);

        if (length > 5 && strcmp(entry->d_name + length - 5, ".yaml") == 0)
            name[n++] = strdup(entry->d_name);
    }
    if (dir == NULL) {
        printf("FAIL %s: no such folder\n", folder);
        t->failed++;
        return;
    }
    closedir(dir);
    qsort(name, (size_t)n, sizeof *name, by_name);
    for (int i = 0; i < n; i++) {
        char path[512];

        snprintf(path, sizeof path, "%s/%s", folder, name[i]);
        free(name[i]);
        if (t->filter && strstr(path, t->filter) == NULL)
            continue;
        ptxgen_session_destroy(t->s);
        if (ptxgen_session_create(&t->s) != PTXGEN_OK)
            exit(3);
        run_spec(t, path);
    }
}

/* ---- the run --------------------------------------------------------------------------------- */
struct options {
    const char *folder[16], *large;
    int nfolders, device;
    bool host;
};

static bool parse(int argc, char **argv, struct suite *t, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(argv[i], "quick") == 0) {
            continue;
        } else if (strcmp(argv[i], "full") == 0) {
            t->full = true;
        } else if (strcmp(argv[i], "sanitize") == 0) {
            t->sanitize = true;
        } else if (strcmp(argv[i], "--host") == 0) {
            o->host = true;
            if (value && strncmp(value, "--", 2) != 0)
                t->modes = argv[++i];
        } else if (value && strcmp(argv[i], "--specs") == 0 && o->nfolders < 16) {
            o->folder[o->nfolders++] = argv[++i];
        } else if (value && strcmp(argv[i], "--large") == 0) {
            o->large = argv[++i];
        } else if (value && strcmp(argv[i], "--filter") == 0) {
            t->filter = argv[++i];
        } else if (value && strcmp(argv[i], "--device") == 0) {
            o->device = atoi(argv[++i]);
        } else {
            return false;
        }
    }
    return true;
}

static bool open_device(struct suite *t, int device)
{
    bool ok = ptxgen_gpu_open(t->s, device, &t->gpu) == PTXGEN_OK;

    for (int i = 0; i < STREAMS && ok; i++)
        ok = ptxgen_stream_create(t->s, t->gpu, &t->stream[i]) == PTXGEN_OK;
    if (ok)
        printf("%s, driver for CUDA %d.%d\n", ptxgen_gpu_describe(t->gpu)->name,
               ptxgen_gpu_describe(t->gpu)->driver / 1000, ptxgen_gpu_describe(t->gpu)->driver % 1000 / 10);
    return ok;
}

int main(int argc, char **argv)
{
    struct suite t = { 0 };
    struct options o = { 0 };

    if (!parse(argc, argv, &t, &o)) {
        fprintf(stderr,
                "usage: gpu_tests [quick|full|sanitize] [--specs DIR]... [--large DIR] [--filter TEXT] [--device K] "
                "[--host [MODES]]\n");
        return 2;
    }
    if (ptxgen_session_create(&t.s) != PTXGEN_OK || (!o.host && !open_device(&t, o.device))) {
        say_diagnostics(&t);
        return 3;
    }
    for (int i = 0; i < o.nfolders; i++)
        run_folder(&t, o.folder[i]);
    if (o.large && t.gpu)
        t.failed += run_large(&t, o.large);
    printf("%d passed, %d failed, %d specs skipped\n", t.passed, t.failed, t.skipped);
    for (int i = 0; i < STREAMS && t.gpu; i++)
        ptxgen_stream_destroy(t.gpu, t.stream[i]);
    ptxgen_gpu_close(t.gpu);
    ptxgen_session_destroy(t.s);
    return t.failed != 0;
}
