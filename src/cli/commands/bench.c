/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c - time a spec on a GPU, in a stream and from a graph. */
#include <stdlib.h>
#include <string.h>

#include "data/copies.h"

enum { MODES = 2 };
static const char *const mode_name[MODES] = { "stream", "graph" };

struct bench {
    struct job job;
    struct subject subject;
    double bytes; /* that a perfect implementation moves per launch */
    int modes;
    bool verified;
    struct timing time[MODES];
};

/* ---- results ---- */
static double rate(const struct bench *b, int mode) { return b->bytes / b->time[mode].median * 1e-9; }

static void print_sizes(const struct job *j)
{
    for (int i = 0; i < j->nsizes; i++) {
        printf("%s%s = %lld", i ? ", " : "", ptxgen_problem_size_name(j->problem, i), (long long)j->size[i]);
    }
}

static void show_text(const struct bench *b)
{
    const struct job *j = &b->job;
    report_random(stdout, j);
    printf("%s on %s, ", ptxgen_problem_name(j->problem), j->device);
    print_sizes(j);
    printf("%scase %s: %.3f MB per launch, %lld copies\n", j->nsizes ? ", " : "", j->case_name, b->bytes * 1e-6,
           (long long)b->subject.copies.count);
    printf("%-8s %11s %11s %11s %9s %9s %9s\n", "", "median us", "p10", "p90", "GB/s", "host us", "samples");
    for (int m = 0; m < b->modes; m++) {
        const struct timing *t = &b->time[m];
        printf("%-8s %11.3f %11.3f %11.3f %9.1f %9.3f %5dx%d\n", mode_name[m], t->median * 1e6, t->p10 * 1e6,
               t->p90 * 1e6, rate(b, m), t->host * 1e6, t->samples, t->launches);
    }
}

static void show_json(const struct bench *b)
{
    const struct job *j = &b->job;
    report_json_head(j, j->case_name);
    printf(", \"verified\": %s, \"bytes\": %.0f, \"copies\": %lld, \"time_unit\": \"us\", \"results\": [",
           b->verified ? "true" : "false", b->bytes, (long long)b->subject.copies.count);
    for (int m = 0; m < b->modes; m++) {
        const struct timing *t = &b->time[m];
        printf("%s{\"mode\": \"%s\", \"median\": %.4f, \"p10\": %.4f, \"p90\": %.4f, \"host\": %.4f, "
               "\"bytes_per_second\": %.6g, \"samples\": %d, \"launches\": %d}",
               m ? ", " : "", mode_name[m], t->median * 1e6, t->p10 * 1e6, t->p90 * 1e6, t->host * 1e6,
               rate(b, m) * 1e9, t->samples, t->launches);
    }
    fputs("]}\n", stdout);
}

/* ---- measuring ---- */
static ptxgen_status measure(struct bench *b, ptxgen_loaded *loaded)
{
    struct subject *x = &b->subject;
    ptxgen_status status = subject_load(x, loaded);
    status = status == PTXGEN_OK ? time_stream(x, &b->time[0]) : status;
    b->modes = 1;
    if (status == PTXGEN_OK && !b->job.options->no_graph) {
        status = time_graph(x, &b->time[1]);
        b->modes = 2;
    }
    return status == PTXGEN_OK ? subject_results(x) : status;
}

static int measure_with(struct bench *b, ptxgen_gpu *gpu, ptxgen_loaded *loaded)
{
    b->bytes = job_bytes(&b->job);
    ptxgen_status status = subject_open(&b->job, gpu, &b->subject);
    status = status == PTXGEN_OK ? measure(b, loaded) : status;
    int result = status == PTXGEN_OK ? EXIT_OK : fail_call(b->job.session, status, "measuring");
    subject_unload(&b->subject);
    subject_close(&b->subject);
    if (result == EXIT_OK && !b->job.options->no_verify) {
        result = verify_job(&b->job, NULL);
        b->verified = result == EXIT_OK;
    }
    if (result == EXIT_OK || result == EXIT_DIFFERENT) {
        (b->job.options->json ? show_json : show_text)(b);
    }
    return result;
}

static int bench_on(struct bench *b, int ordinal)
{
    ptxgen_gpu *gpu = NULL;
    ptxgen_program *program = NULL;
    ptxgen_loaded *loaded = NULL;
    int status = device_open(&b->job, ordinal, &gpu);
    status = status ? status : device_load(&b->job, gpu, &program, &loaded);
    status = status ? status : measure_with(b, gpu, loaded);
    ptxgen_loaded_destroy(loaded);
    ptxgen_program_destroy(program);
    ptxgen_gpu_close(gpu);
    return status;
}

static int bench(struct bench *b)
{
    const struct options *o = b->job.options;
    const char *device = o->device && strcmp(o->device, "auto") != 0 ? o->device : "cuda";
    int64_t samples = 31;
    int ordinal;
    if (o->samples && (parse_count(o->samples, &samples) || samples < 1 || samples > SAMPLES_MAX)) {
        return fail(EXIT_USAGE, "--samples=%s: expected 1 to %d", o->samples, SAMPLES_MAX);
    }
    if (!strcmp(device, "cpu")) {
        return fail(EXIT_USAGE, "the host executor checks kernels; bench measures on a GPU");
    }
    int status = device_ordinal(device, &ordinal);
    status = status ? status : load_problem(b->job.session, o, o->operands.item[0], &b->job.problem);
    status = status ? status : job_prepare(&b->job);
    b->subject.samples = (int)samples;
    return status ? status : bench_on(b, ordinal);
}

int cmd_bench(const struct options *o)
{
    if (o->operands.n != 1) {
        return fail(EXIT_USAGE, "'bench' takes one spec: ptxgen bench SPEC.yaml");
    }
    struct bench b = { .job = { .options = o } };
    if (ptxgen_session_create(&b.job.session) != PTXGEN_OK) {
        return fail(EXIT_DEVICE, "out of memory");
    }
    int status = bench(&b);
    job_finish(&b.job);
    ptxgen_session_destroy(b.job.session);
    return status;
}
