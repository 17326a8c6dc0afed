/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_bench.c - time a spec on a GPU, in a stream and from a graph. */
#include <stdlib.h>
#include <string.h>

#include "copies.h"

enum { MODES = 2, COPIES_MAX = 16384 };
static const char *const mode_name[MODES] = { "stream", "graph" };

struct bench {
    struct job job;
    struct subject subject;
    struct copies copies;
    double bytes; /* that a perfect implementation moves per launch */
    int modes;
    struct timing time[MODES];
};

/* So many copies that a launch finds none of its arrays in the L2 cache, within half of the device's memory. */
static int64_t choose_copies(const struct job *j, const ptxgen_gpu_info *gpu)
{
    size_t one = copies_bytes(j);
    uint64_t wanted = one ? 4 * gpu->l2 / one + 1 : 1, fit = one ? gpu->memory / 2 / one : 1;
    wanted = wanted > fit ? fit : wanted;
    return wanted < 1 ? 1 : wanted > COPIES_MAX ? COPIES_MAX : (int64_t)wanted;
}

static double count_bytes(const struct job *j)
{
    double bytes = 0;
    for (int i = 0; i < j->ninputs; i++) {
        bytes += (double)j->input[i].bytes;
    }
    for (int i = 0; i < j->noutputs; i++) {
        bytes += (double)j->output[i].bytes;
    }
    return bytes;
}

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
    printf("%s on %s, ", ptxgen_problem_name(j->problem), j->device);
    print_sizes(j);
    printf("%scase %s: %.3f MB per launch, %lld copies\n", j->nsizes ? ", " : "", j->kase, b->bytes * 1e-6,
           (long long)b->copies.count);
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
    fputs("{\"name\": ", stdout);
    json_text(stdout, ptxgen_problem_name(j->problem));
    fputs(", \"device\": ", stdout);
    json_text(stdout, j->device);
    fputs(", \"case\": ", stdout);
    json_text(stdout, j->kase);
    fputs(", \"sizes\": {", stdout);
    for (int i = 0; i < j->nsizes; i++) {
        fputs(i ? ", " : "", stdout);
        json_text(stdout, ptxgen_problem_size_name(j->problem, i));
        printf(": %lld", (long long)j->size[i]);
    }
    printf("}, \"bytes\": %.0f, \"copies\": %lld, \"time_unit\": \"us\", \"results\": [", b->bytes,
           (long long)b->copies.count);
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
static ptxgen_status measure(struct bench *b)
{
    struct subject *x = &b->subject;
    ptxgen_session *s = b->job.session;
    void **data = copies_at(&b->copies, &b->job, 0);
    ptxgen_arguments args = { b->job.size, (const void *const *)data, data + b->job.ninputs, b->job.param };
    const char *kase = ptxgen_launch_case(s, x->loaded, &args);
    snprintf(b->job.kase, sizeof b->job.kase, "%s", kase ? kase : "");
    ptxgen_status status = ptxgen_prepare(s, x->loaded, &args, x->stream);
    status = status == PTXGEN_OK ? time_stream(x, &b->time[0]) : status;
    b->modes = 1;
    if (status == PTXGEN_OK && !b->job.options->no_graph) {
        status = time_graph(x, &b->time[1]);
        b->modes = 2;
    }
    return status;
}

/* Stream, events and copies around the measurement. */
static int measure_with(struct bench *b, ptxgen_gpu *gpu, ptxgen_loaded *loaded)
{
    struct subject *x = &b->subject;
    ptxgen_session *s = b->job.session;
    x->job = &b->job;
    x->gpu = gpu;
    x->loaded = loaded;
    x->copies = &b->copies;
    b->bytes = count_bytes(&b->job);
    ptxgen_status status = copies_create(&b->job, gpu, choose_copies(&b->job, ptxgen_gpu_describe(gpu)), &b->copies);
    status = status == PTXGEN_OK ? ptxgen_stream_create(s, gpu, &x->stream) : status;
    status = status == PTXGEN_OK ? ptxgen_event_create(s, gpu, &x->begin) : status;
    status = status == PTXGEN_OK ? ptxgen_event_create(s, gpu, &x->end) : status;
    status = status == PTXGEN_OK ? measure(b) : status;
    if (status == PTXGEN_OK) {
        (b->job.options->json ? show_json : show_text)(b);
    }
    ptxgen_event_destroy(gpu, x->end);
    ptxgen_event_destroy(gpu, x->begin);
    if (x->stream) {
        ptxgen_stream_release(NULL, loaded, x->stream);
        ptxgen_stream_destroy(gpu, x->stream);
    }
    copies_finish(&b->copies);
    return status == PTXGEN_OK ? EXIT_OK : fail_call(s, status, "measuring");
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
        return fail(EXIT_USAGE, "the host executor checks kernels, it is no device to measure");
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
        return fail(EXIT_USAGE, "measure one spec");
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
