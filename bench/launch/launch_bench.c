/* SPDX-License-Identifier: Apache-2.0 */
/* launch_bench.c - how long until the first result, and what a launch costs the host.
 *
 *     launch_bench [--reps N] [--json FILE] [--specs DIR] [--cache DIR]
 *
 * First result: the dot product of two vectors on the device, from the source text to the value on the host.  Every
 * repetition is a process of its own whose context exists already, so that nothing but the disk is shared: cold ones
 * get empty caches (ptxgen's and the driver's), warm ones those that an earlier process filled.  The peers are kernels
 * for NVRTC with and without CUB's block reduction, compiled to machine code; without NVRTC they are left out.  With
 * --specs the same for k-means, a program of four stages.
 *
 * --cache: every process has this cache of ptxgen, and only the driver's is empty or filled.  With kept machine code:
 *
 *     launch_bench --print-spec > dot.yaml && ptxgen dot.yaml --arch=native --keep --cache=$PWD/kept -o dot.ptx
 *     launch_bench --cache $PWD/kept
 */
#define _GNU_SOURCE
#include "launch_bench.h"

#include <dlfcn.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../latency/kernels.h"

enum { REPS_MAX = 101 };

double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double median_of(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, ascending);
    return values[n / 2];
}

/* ---- the device ------------------------------------------------------------------------------ */
bool raw_open(struct raw_driver *cu)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
    int (*retain)(void **, int) = NULL, (*set)(void *) = NULL;
    const struct {
        const char *name;
        void *slot;
    } entry[] = { { "cuModuleLoadData", &cu->load },   { "cuModuleGetFunction", &cu->function },
                  { "cuLaunchKernel", &cu->launch },   { "cuStreamIsCapturing", &cu->capturing },
                  { "cuStreamGetId", &cu->stream_id }, { "cuDevicePrimaryCtxRetain", &retain },
                  { "cuCtxSetCurrent", &set } };

    for (size_t i = 0; i < sizeof entry / sizeof *entry; i++) {
        *(void **)entry[i].slot = library ? dlsym(library, entry[i].name) : NULL;
        if (*(void **)entry[i].slot == NULL)
            return false;
    }
    return retain(&context, 0) == 0 && set(context) == 0;
}

static bool fill(struct bench_device *d, void **to, float value)
{
    float *host = malloc(N * sizeof *host);
    bool ok = host != NULL;

    for (int i = 0; i < N && ok; i++)
        host[i] = value;
    ok = ok && ptxgen_gpu_alloc(d->s, d->gpu, N * sizeof *host, to) == PTXGEN_OK &&
         ptxgen_gpu_write(d->s, d->gpu, *to, host, N * sizeof *host) == PTXGEN_OK;
    free(host);
    return ok;
}

bool device_open(struct bench_device *d)
{
    const char *arch;

    if (ptxgen_session_create(&d->s) != PTXGEN_OK || ptxgen_gpu_open(d->s, 0, &d->gpu) != PTXGEN_OK)
        return false;
    arch = ptxgen_gpu_arch(ptxgen_gpu_describe(d->gpu));
    snprintf(d->arch, sizeof d->arch, "%s", arch ? arch : "sm_80");
    return fill(d, &d->x, 1) && fill(d, &d->y, 2) &&
           ptxgen_gpu_alloc(d->s, d->gpu, sizeof(float), &d->out) == PTXGEN_OK &&
           ptxgen_gpu_fill(d->s, d->gpu, d->out, 0, sizeof(float), NULL) == PTXGEN_OK &&
           ptxgen_stream_wait(d->s, d->gpu, NULL) == PTXGEN_OK;
}

/* ---- processes ------------------------------------------------------------------------------- */
static const char *const subject_name[SUBJECTS] = { "ptxgen, empty caches",          "ptxgen, filled caches",
                                                    "NVRTC, kernel without headers", "NVRTC, cub::BlockReduce",
                                                    "k-means, empty caches",         "k-means, filled caches" };
static const char *specs, *kept;

static bool is_cold(enum subject subject) { return subject == PTXGEN_COLD || subject == KMEANS_COLD; }

struct measured {
    bool ok;
    double loaded, result;
};

static void use_caches(const char *directory)
{
    char path[300];

    snprintf(path, sizeof path, "%s/ptxgen", directory);
    setenv("PTXGEN_CACHE", kept ? kept : path, 1);
    snprintf(path, sizeof path, "%s/driver", directory);
    setenv("CUDA_CACHE_PATH", path, 1);
}

/* One measurement in a child process with these caches. */
static struct measured in_child(enum subject subject, const char *directory)
{
    struct measured m = { false, 0, 0 };
    int pipes[2];
    pid_t child;

    if (pipe(pipes) != 0)
        return m;
    child = fork();
    if (child == 0) {
        struct bench_device d = { .specs = specs };

        use_caches(directory);
        m.ok = device_open(&d) && first_result(subject, &d, &m.loaded, &m.result);
        _exit(write(pipes[1], &m, sizeof m) != sizeof m);
    }
    close(pipes[1]);
    if (child < 0 || read(pipes[0], &m, sizeof m) != sizeof m)
        m.ok = false;
    close(pipes[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return m;
}

struct first {
    int n;
    double loaded[REPS_MAX], result[REPS_MAX];
};

static void measure_first(enum subject subject, const char *directory, int reps, struct first *out)
{
    char caches[200];

    out->n = 0;
    for (int i = is_cold(subject) ? 0 : -1; i < reps; i++) { /* -1 fills the caches */
        struct measured m;

        snprintf(caches, sizeof caches, "%s/%d-%d", directory, (int)subject, is_cold(subject) ? i : 0);
        m = in_child(subject, caches);
        if (!m.ok)
            return;
        if (i >= 0) {
            out->loaded[out->n] = m.loaded;
            out->result[out->n++] = m.result;
        }
    }
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

/* ---- the run --------------------------------------------------------------------------------- */
static void report_first(struct first *x, int reps, FILE *json)
{
    printf("from source text to the first result, ms; %d processes each, medians\n", reps);
    printf("%-40s %10s %10s %10s %10s\n", "", "loaded", "result", "least", "most");
    for (int i = 0; i < SUBJECTS; i++) {
        double loaded, result;

        if (x[i].n == 0) {
            printf("%-40s not measured\n", subject_name[i]);
            continue;
        }
        loaded = median_of(x[i].loaded, x[i].n);
        result = median_of(x[i].result, x[i].n);
        printf("%-40s %10.2f %10.2f %10.2f %10.2f\n", subject_name[i], loaded, result, x[i].result[0],
               x[i].result[x[i].n - 1]);
        if (json)
            fprintf(json, "%s\n  {\"name\": \"%s\", \"loaded_ms\": %.4f, \"result_ms\": %.4f}", i ? "," : "",
                    subject_name[i], loaded, result);
    }
}

static void report_costs(const struct cost *cost, FILE *json)
{
    printf("\nthe host's time per call, us\n%-46s %10s %10s\n", "", "median", "p90");
    for (int i = 0; i < COSTS; i++) {
        printf("%-46s %10.3f %10.3f\n", cost[i].what, cost[i].median, cost[i].p90);
        if (json)
            fprintf(json, "%s\n  {\"name\": \"%s\", \"median_us\": %.4f, \"p90_us\": %.4f}", i ? "," : "", cost[i].what,
                    cost[i].median, cost[i].p90);
    }
}

/* The parent opens the device only after all children: a context does not survive a fork. */
static int run(int reps, const char *directory, FILE *json)
{
    static struct first first[SUBJECTS];
    struct cost cost[COSTS];
    struct bench_device d = { 0 };

    for (int i = 0; i < SUBJECTS; i++)
        measure_first((enum subject)i, directory, reps, &first[i]);
    if (json)
        fputs("{\"benchmark\": \"launch\", \"first_result\": [", json);
    report_first(first, reps, json);
    if (!device_open(&d) || !launch_costs(&d, cost)) {
        char *text = d.s ? ptxgen_diagnostics_text(d.s, 0) : NULL;

        fprintf(stderr, "launch_bench: %s\n", text && *text ? text : "the driver lacks an entry point");
        return 3;
    }
    if (json)
        fputs("],\n \"host_cost\": [", json);
    report_costs(cost, json);
    if (json)
        fputs("]}\n", json);
    return first[PTXGEN_COLD].n == 0 || first[PTXGEN_WARM].n == 0;
}

int main(int argc, char **argv)
{
    char directory[] = "/tmp/ptxgen-launch-bench-XXXXXX";
    int reps = 5, status;
    FILE *json = NULL;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--reps") && i + 1 < argc)
            reps = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--json") && i + 1 < argc && (json = fopen(argv[i + 1], "w")))
            i++;
        else if (!strcmp(argv[i], "--specs") && i + 1 < argc)
            specs = argv[++i];
        else if (!strcmp(argv[i], "--cache") && i + 1 < argc)
            kept = argv[++i];
        else if (!strcmp(argv[i], "--print-spec"))
            return puts(spec_dot) < 0;
        else
            return 2;
    }
    if (reps < 1 || reps > REPS_MAX || !mkdtemp(directory))
        return 2;
    status = run(reps, directory, json);
    if (json && fclose(json) != 0)
        status = 1;
    nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return status;
}
