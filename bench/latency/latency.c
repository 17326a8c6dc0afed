/* SPDX-License-Identifier: Apache-2.0 */
/* latency.c - how long from source text to PTX, in one process: ptxgen beside NVRTC.
 *
 *     latency [--reps N] [--arch sm_90] [--json FILE] [SPEC.yaml...]
 *
 * Every repetition runs each subject once, in turn, so that what disturbs the machine disturbs all of them.  The first
 * repetition is the cold one and is reported apart.  Without NVRTC only ptxgen is measured, and the output says so.
 */
#define _GNU_SOURCE
#include "kernels.h"
#include "nvrtc.h"
#include "ptxgen/ptxgen.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUBJECTS_MAX = 32, REPS_MAX = 1001 };

enum subject_kind { OF_PTXGEN, OF_NVRTC, OF_NVRTC_WITH_HEADERS };

struct subject {
    char name[64];
    enum subject_kind kind;
    const char *source;
    double cold, ms[REPS_MAX]; /* sorted after the run */
};

struct settings {
    int reps;
    const char *arch, *json;
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Bytes of PTX, or 0 after printing the messages. All that a caller pays: session, problem, plan, code, text, and their
 * end. */
static size_t ptxgen_to_ptx(const struct subject *subject, const char *arch)
{
    ptxgen_session *s = NULL;
    ptxgen_problem *problem;
    ptxgen_plan *plan;
    ptxgen_program *program = NULL;
    ptxgen_plan_options options = PTXGEN_PLAN_OPTIONS_INIT;
    options.arch = arch;
    size_t size = 0;
    if (ptxgen_session_create(&s) != PTXGEN_OK)
        return 0;
    if (ptxgen_problem_from_string(s, subject->source, strlen(subject->source), "bench", &problem) == PTXGEN_OK &&
        ptxgen_plan_create(s, problem, &options, &plan) == PTXGEN_OK &&
        ptxgen_compile(s, plan, NULL, &program) == PTXGEN_OK) {
        char *ptx = ptxgen_program_ptx(program);
        size = ptx ? strlen(ptx) : 0;
        ptxgen_free(ptx);
    } else {
        char *text = ptxgen_diagnostics_text(s, 0);
        fputs(text ? text : "no memory\n", stderr);
        ptxgen_free(text);
    }
    ptxgen_program_destroy(program);
    ptxgen_session_destroy(s);
    return size;
}

static size_t nvrtc_to_ptx(const struct subject *subject, const char *arch)
{
    size_t size = 0;
    char *ptx = nvrtc_compile(subject->source, arch, subject->kind == OF_NVRTC_WITH_HEADERS, false, &size);
    free(ptx);
    return ptx ? size : 0;
}

/* Milliseconds of one compilation, or a negative number when it failed. */
static double measure(const struct subject *subject, const char *arch)
{
    double begin = now_ms();
    size_t size = subject->kind == OF_PTXGEN ? ptxgen_to_ptx(subject, arch) : nvrtc_to_ptx(subject, arch);
    return size > 0 ? now_ms() - begin : -1.0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool measure_all(struct subject *subject, int subjects, const struct settings *set)
{
    for (int r = -1; r < set->reps; r++)
        for (int i = 0; i < subjects; i++) {
            double ms = measure(&subject[i], set->arch);
            if (ms < 0) {
                fprintf(stderr, "latency: %s failed\n", subject[i].name);
                return false;
            }
            *(r < 0 ? &subject[i].cold : &subject[i].ms[r]) = ms;
        }
    for (int i = 0; i < subjects; i++)
        qsort(subject[i].ms, (size_t)set->reps, sizeof(double), by_value);
    return true;
}

static double quantile(const struct subject *s, int reps, double q) { return s->ms[(int)((reps - 1) * q + 0.5)]; }

static void print_table(const struct subject *subject, int subjects, const struct settings *set)
{
    double base = quantile(&subject[0], set->reps, 0.5);
    printf("source text to PTX for %s in one process, ms; %d repetitions after a cold one\n", set->arch, set->reps);
    printf("%-36s %9s %9s %9s %9s %9s %12s\n", "", "cold", "min", "median", "p90", "max", "x ptxgen dot");
    for (int i = 0; i < subjects; i++) {
        const struct subject *s = &subject[i];
        double median = quantile(s, set->reps, 0.5);
        printf("%-36s %9.2f %9.2f %9.2f %9.2f %9.2f %12.1f\n", s->name, s->cold, s->ms[0], median,
               quantile(s, set->reps, 0.9), s->ms[set->reps - 1], median / base);
    }
}

static bool write_json(const struct subject *subject, int subjects, const struct settings *set, const char *nvrtc)
{
    FILE *f = fopen(set->json, "w");
    if (!f)
        return false;
    fprintf(f,
            "{\"benchmark\": \"latency\", \"ptxgen\": \"%s\", \"nvrtc\": \"%s\", \"arch\": \"%s\", \"repetitions\": "
            "%d, \"unit\": \"ms\",\n",
            ptxgen_version(), nvrtc, set->arch, set->reps);
    fprintf(f, " \"subjects\": [");
    for (int i = 0; i < subjects; i++) {
        const struct subject *s = &subject[i];
        fprintf(
            f,
            "%s\n  {\"name\": \"%s\", \"cold\": %.4f, \"min\": %.4f, \"median\": %.4f, \"p90\": %.4f, \"max\": %.4f}",
            i ? "," : "", s->name, s->cold, s->ms[0], quantile(s, set->reps, 0.5), quantile(s, set->reps, 0.9),
            s->ms[set->reps - 1]);
    }
    fprintf(f, "]}\n");
    return fclose(f) == 0;
}

static void add(struct subject *subject, int *count, enum subject_kind kind, const char *name, const char *source)
{
    if (*count == SUBJECTS_MAX)
        return;
    struct subject *s = &subject[(*count)++];
    s->kind = kind;
    s->source = source;
    snprintf(s->name, sizeof s->name, "%s", name);
}

/* The whole file, or NULL; lives until the process ends. */
static char *read_source(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t size = 0;
    if (!f || getdelim(&text, &size, '\0', f) < 0)
        perror(path);
    if (f)
        fclose(f);
    return text;
}

static bool add_spec(struct subject *subject, int *count, const char *path)
{
    char name[64];
    const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path;
    snprintf(name, sizeof name, "ptxgen %.*s", (int)strcspn(stem, "."), stem);
    char *source = read_source(path);
    if (source)
        add(subject, count, OF_PTXGEN, name, source);
    return source != NULL;
}

int main(int argc, char **argv)
{
    static struct subject subject[SUBJECTS_MAX];
    struct settings set = { .reps = 11, .arch = "sm_90" };
    int subjects = 0;
    add(subject, &subjects, OF_PTXGEN, "ptxgen dot", spec_dot);
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (!strcmp(argv[i], "--reps") && has_value)
            set.reps = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--arch") && has_value)
            set.arch = argv[++i];
        else if (!strcmp(argv[i], "--json") && has_value)
            set.json = argv[++i];
        else if (argv[i][0] == '-' || !add_spec(subject, &subjects, argv[i]))
            return 2;
    }
    if (set.reps < 1 || set.reps > REPS_MAX || strncmp(set.arch, "sm_", 3) != 0)
        return 2;
    bool peer = nvrtc_open();
    if (peer) {
        add(subject, &subjects, OF_NVRTC, "NVRTC dot, no headers", kernel_plain);
        add(subject, &subjects, OF_NVRTC_WITH_HEADERS, "NVRTC dot, cub::BlockReduce", kernel_cub);
    }
    if (!measure_all(subject, subjects, &set))
        return 1;
    printf("ptxgen %s, NVRTC %s\n", ptxgen_version(),
           peer ? nvrtc_version_text() : "not found: ptxgen alone is measured");
    print_table(subject, subjects, &set);
    if (set.json && !write_json(subject, subjects, &set, peer ? nvrtc_version_text() : "")) {
        perror(set.json);
        return 1;
    }
    return 0;
}
