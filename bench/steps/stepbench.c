/* SPDX-License-Identifier: Apache-2.0 */
/* stepbench.c - time steps of stencils: plans beside each other, in updates per second and against one copy per step.
 *
 *     stepbench [--specs DIR] [--peers libpeers.so] [--samples N] [--no-graph] [--csv FILE]
 *               [--ours LABEL:NAME=VALUE,...]... SPEC:SIZE[xSIZE...]:STEPS...
 *
 * Inputs are random, of integer types 0 and 1; integer params are the number of steps, others 0.1.  "ptxgen" is the
 * plan that is chosen, "multi_write" runs the best kernel for one step once per step, --ours adds others.  Every plan
 * must produce the bits of stencil.global, a point per thread.  "%copy": the time of copying the first input once per
 * step over the plan's time, so that single steps of one array reach 100 at best.  In a stream the copies rotate
 * through a pool beyond the L2 cache; in a graph they stay on the same arrays, as the steps do.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../peers/peers.h"
#include "ptxgen/launch.h"

enum { PLANS_MAX = 40, SETTINGS_MAX = 8, ARRAYS_MAX = 8, SAMPLES_MAX = 101, PARAMS_MAX = 16, SPECS_MAX = 64 };
static const size_t pool_bytes = (size_t)1 << 30;
static const double sample_seconds = 1e-3;

struct plan {
    const char *label;
    ptxgen_setting setting[SETTINGS_MAX];
    int nsettings;
    ptxgen_loaded *loaded;
};

struct bench {
    ptxgen_session *s;
    ptxgen_gpu *gpu;
    ptxgen_stream stream;
    ptxgen_event begin, end;
    const char *specs, *peers;
    FILE *csv;
    int samples, nplans, npeers;
    bool graphs, failed;
    struct plan plan[PLANS_MAX];
    const struct peer *peer;
};

/* One problem at one size. */
struct subject {
    ptxgen_problem *problem;
    char name[64], sizes[64];
    int64_t size[3], elements, steps;
    int ninputs, noutputs;
    void *input[ARRAYS_MAX], *output[ARRAYS_MAX];
    char *expected[ARRAYS_MAX];
    size_t input_bytes[ARRAYS_MAX], output_bytes[ARRAYS_MAX];
    ptxgen_value param[PARAMS_MAX];
    double copy[2]; /* seconds, in a stream and in a graph */
};

/* ---- data ------------------------------------------------------------------------------------ */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void fill(ptxgen_type t, char *p, int64_t n, uint64_t seed)
{
    const size_t bytes = ptxgen_type_size(t);

    for (int64_t i = 0; i < n; i++) {
        const uint64_t r = mix(seed + (uint64_t)i);
        const float f = (float)(r >> 40) * 0x1p-24f;

        if (t == PTXGEN_F32)
            memcpy(p + i * 4, &f, 4);
        else if (t >= PTXGEN_F16)
            ptxgen_value_store(t, p + (size_t)i * bytes, (ptxgen_value){ .f = f });
        else
            ptxgen_value_store(t, p + (size_t)i * bytes, (ptxgen_value){ .u = r >> 40 & 1 });
    }
}

static bool make_input(struct bench *b, struct subject *x, int i)
{
    ptxgen_array_info a;
    char *host;
    bool ok = ptxgen_problem_input(x->problem, i, &a) == PTXGEN_OK && a.field_count == 1;

    x->input_bytes[i] = ok ? (size_t)ptxgen_array_elements(&a, x->size) * a.element_size : 0;
    host = malloc(x->input_bytes[i] + 1);
    ok = ok && host && ptxgen_gpu_alloc(b->s, b->gpu, x->input_bytes[i], &x->input[i]) == PTXGEN_OK;
    if (ok)
        fill(a.field_type[0], host, (int64_t)(x->input_bytes[i] / a.element_size), 77u * (unsigned)i);
    ok = ok && ptxgen_gpu_write(b->s, b->gpu, x->input[i], host, x->input_bytes[i]) == PTXGEN_OK;
    free(host);
    return ok;
}

static bool make_arrays(struct bench *b, struct subject *x)
{
    bool ok = x->ninputs <= ARRAYS_MAX && x->noutputs <= ARRAYS_MAX;

    for (int i = 0; i < x->ninputs && ok; i++)
        ok = make_input(b, x, i);
    for (int o = 0; o < x->noutputs && ok; o++) {
        ptxgen_array_info a;

        ok = ptxgen_problem_output(x->problem, o, &a) == PTXGEN_OK;
        x->output_bytes[o] = ok ? (size_t)ptxgen_array_elements(&a, x->size) * a.element_size : 0;
        ok = ok && ptxgen_gpu_alloc(b->s, b->gpu, x->output_bytes[o], &x->output[o]) == PTXGEN_OK;
    }
    return ok;
}

static bool read_params(struct subject *x)
{
    const int n = ptxgen_problem_param_count(x->problem);

    for (int i = 0; i < n; i++) {
        ptxgen_param_info p;

        if (i >= PARAMS_MAX || ptxgen_problem_param(x->problem, i, &p) != PTXGEN_OK)
            return false;
        if (p.type >= PTXGEN_F16)
            x->param[i].f = (float)0.1;
        else
            x->param[i].i = x->steps;
    }
    return true;
}

/* SPEC:SIZExSIZE:STEPS */
static bool read_subject(struct bench *b, const char *text, struct subject *x)
{
    char path[512], *at = x->sizes;
    long long steps;

    if (sscanf(text, "%63[^:]:%63[^:]:%lld", x->name, x->sizes, &steps) != 3)
        return false;
    snprintf(path, sizeof path, "%s/%s.yaml", b->specs, x->name);
    if (ptxgen_problem_from_file(b->s, path, &x->problem) != PTXGEN_OK)
        return false;
    x->ninputs = ptxgen_problem_input_count(x->problem);
    x->noutputs = ptxgen_problem_output_count(x->problem);
    x->steps = steps;
    x->elements = 1;
    for (int i = 0; i < ptxgen_problem_size_count(x->problem) && i < 3; i++) {
        x->elements *= x->size[i] = strtoll(at, &at, 10);
        at += *at == 'x';
    }
    return read_params(x);
}

static void free_subject(struct bench *b, struct subject *x)
{
    for (int i = 0; i < ARRAYS_MAX; i++) {
        ptxgen_gpu_free(b->gpu, x->input[i]);
        ptxgen_gpu_free(b->gpu, x->output[i]);
        free(x->expected[i]);
    }
}

/* ---- measuring ------------------------------------------------------------------------------- */
/* What is timed: a plan, a graph of one launch of it, or a copy. */
struct timed {
    const struct subject *x;
    ptxgen_loaded *loaded;
    ptxgen_graph graph;
    const struct peer *copy;
    void *from, *to;
    int64_t slices, next;
};

static bool launch_copy(struct bench *b, struct timed *t)
{
    const size_t bytes = t->x->input_bytes[0], at = (size_t)(t->next++ % t->slices) * ((bytes + 255) / 256 * 256);
    const struct peer_size size = { .n = (int64_t)bytes };
    const void *in[] = { (char *)t->from + at };
    void *out[] = { (char *)t->to + at };
    size_t none = 1;

    return t->copy->run(t->to, &none, in, out, &size, b->stream) == 0;
}

static bool launch(struct bench *b, struct timed *t)
{
    const struct subject *x = t->x;
    const ptxgen_arguments args = { x->size, (const void *const *)x->input, x->output, x->param };

    if (t->graph)
        return ptxgen_graph_launch(b->s, b->gpu, t->graph, b->stream) == PTXGEN_OK;
    return t->copy ? launch_copy(b, t) : ptxgen_launch(b->s, t->loaded, &args, b->stream, NULL) == PTXGEN_OK;
}

/* Seconds per launch; 0: failed. */
static double batch(struct bench *b, struct timed *t, int count)
{
    double seconds = 0;
    bool ok = ptxgen_event_record(b->s, b->gpu, b->begin, b->stream) == PTXGEN_OK;

    for (int i = 0; i < count && ok; i++)
        ok = launch(b, t);
    ok = ok && ptxgen_event_record(b->s, b->gpu, b->end, b->stream) == PTXGEN_OK &&
         ptxgen_event_seconds(b->s, b->gpu, b->begin, b->end, &seconds) == PTXGEN_OK;
    return ok ? seconds / count : 0;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median of the samples; 0: failed. */
static double measure(struct bench *b, struct timed *t)
{
    double sample[SAMPLES_MAX], first = batch(b, t, 2) > 0 ? batch(b, t, 3) : 0;
    const int count = first <= 0 ? 1 : first > sample_seconds ? 1 : (int)(sample_seconds / first) + 1;

    for (int i = 0; i < b->samples; i++)
        sample[i] = first > 0 ? batch(b, t, count) : 0;
    qsort(sample, (size_t)b->samples, sizeof *sample, ascending);
    return sample[b->samples / 2];
}

/* One launch as a graph; NULL: it failed. */
static ptxgen_graph capture(struct bench *b, struct timed *t)
{
    ptxgen_graph graph = NULL;
    bool ok;

    if (ptxgen_capture_begin(b->s, b->gpu, b->stream) != PTXGEN_OK)
        return NULL;
    ok = launch(b, t);
    for (int i = 1; t->copy && i < t->x->steps; i++)
        ok = ok && launch(b, t);
    if (ptxgen_capture_end(b->s, b->gpu, b->stream, &graph) != PTXGEN_OK || !ok)
        return NULL;
    return graph;
}

static double measure_graph(struct bench *b, struct timed *t)
{
    double seconds = 0;

    t->graph = capture(b, t);
    if (t->graph)
        seconds = measure(b, t);
    ptxgen_graph_destroy(b->gpu, t->graph);
    t->graph = NULL;
    return seconds;
}

static void better(double *best, double x)
{
    if (x > 0 && (*best == 0 || x < *best))
        *best = x;
}

/* The best copies of the first input. */
static void measure_copies(struct bench *b, struct subject *x)
{
    const size_t stride = (x->input_bytes[0] + 255) / 256 * 256,
                 bytes = stride > pool_bytes ? stride : pool_bytes / stride * stride;
    struct timed t = { .x = x };

    if (ptxgen_gpu_alloc(b->s, b->gpu, bytes, &t.from) == PTXGEN_OK &&
        ptxgen_gpu_alloc(b->s, b->gpu, bytes, &t.to) == PTXGEN_OK)
        for (int i = 0; i < b->npeers; i++)
            if (strcmp(b->peer[i].problem, "copy") == 0) {
                t.copy = &b->peer[i];
                t.slices = (int64_t)(bytes / stride);
                better(&x->copy[0], measure(b, &t));
                t.slices = 1;
                if (b->graphs)
                    better(&x->copy[1], measure_graph(b, &t) / (double)x->steps);
            }
    ptxgen_gpu_free(b->gpu, t.from);
    ptxgen_gpu_free(b->gpu, t.to);
}

/* ---- plans ----------------------------------------------------------------------------------- */
static void say(struct bench *b, const char *what, const char *label)
{
    char *text = ptxgen_diagnostics_text(b->s, 0);

    fprintf(stderr, "stepbench: %s: %s\n%s", what, label, text ? text : "");
    ptxgen_free(text);
    ptxgen_diagnostics_clear(b->s);
}

static ptxgen_loaded *load(struct bench *b, const struct subject *x, const struct plan *p)
{
    ptxgen_plan_options options = PTXGEN_PLAN_OPTIONS_INIT;
    ptxgen_program *program = NULL;
    ptxgen_loaded *loaded = NULL;
    ptxgen_plan *plan;
    char arch[16];

    snprintf(arch, sizeof arch, "sm_%d", ptxgen_gpu_describe(b->gpu)->sm);
    options.arch = arch;
    options.setting_count = p->nsettings;
    options.setting = p->setting;
    if (ptxgen_plan_create(b->s, x->problem, &options, &plan) != PTXGEN_OK ||
        ptxgen_compile(b->s, plan, NULL, &program) != PTXGEN_OK ||
        ptxgen_load(b->s, b->gpu, program, &loaded) != PTXGEN_OK)
        say(b, x->name, p->label);
    return loaded;
}

/* Runs once and reads the outputs; they become what is expected, or must be that. */
static bool verify(struct bench *b, struct subject *x, ptxgen_loaded *loaded, bool expect)
{
    struct timed t = { .x = x, .loaded = loaded };
    bool ok = true;

    for (int o = 0; o < x->noutputs && ok; o++)
        ok = ptxgen_gpu_fill(b->s, b->gpu, x->output[o], 0xa5, x->output_bytes[o], b->stream) == PTXGEN_OK;
    ok = ok && launch(b, &t) && ptxgen_stream_wait(b->s, b->gpu, b->stream) == PTXGEN_OK;
    for (int o = 0; o < x->noutputs && ok; o++) {
        char *got = malloc(x->output_bytes[o] + 1);

        ok = got && ptxgen_gpu_read(b->s, b->gpu, got, x->output[o], x->output_bytes[o]) == PTXGEN_OK;
        if (expect) {
            x->expected[o] = got;
            continue;
        }
        ok = ok && memcmp(got, x->expected[o], x->output_bytes[o]) == 0;
        free(got);
    }
    return ok;
}

static void report(struct bench *b, const struct subject *x, const char *label, int mode, double seconds, bool ok)
{
    static const char *const modes[] = { "stream", "graph" };
    const double updates = (double)x->elements * (double)x->steps / seconds,
                 copy = 100 * x->copy[mode] * (double)x->steps / seconds;

    printf("%-18s %-14s %5lld %-7s %-24s %11.2f %9.3f %9.1f %8.1f  %s\n", x->name, x->sizes, (long long)x->steps,
           modes[mode], label, seconds * 1e6, seconds * 1e6 / (double)x->steps, updates * 1e-9, copy,
           ok ? "ok" : "WRONG");
    if (b->csv)
        fprintf(b->csv, "%s,%s,%lld,%s,%s,%.4f,%.4f,%.3f,%.2f,%d\n", x->name, x->sizes, (long long)x->steps,
                modes[mode], label, seconds * 1e6, x->copy[mode] * 1e6, updates * 1e-9, copy, ok);
}

static void run_plan(struct bench *b, struct subject *x, const struct plan *p)
{
    struct timed t = { .x = x, .loaded = load(b, x, p) };
    bool ok = t.loaded && verify(b, x, t.loaded, false);

    b->failed |= !ok;
    if (!ok)
        say(b, "it failed, or its bits differ from single steps", p->label);
    for (int mode = 0; t.loaded && mode < (b->graphs ? 2 : 1); mode++) {
        const double seconds = mode ? measure_graph(b, &t) : measure(b, &t);

        if (seconds > 0)
            report(b, x, p->label, mode, seconds, ok);
    }
    fflush(stdout);
    if (t.loaded)
        ptxgen_stream_release(b->s, t.loaded, b->stream);
    ptxgen_loaded_destroy(t.loaded);
}

static void run_subject(struct bench *b, const char *text)
{
    const struct plan plain = { .label = "stencil.global",
                                .setting = { { "strategy", "stencil.global" } },
                                .nsettings = 1 };
    struct subject x = { .problem = NULL };
    ptxgen_loaded *reference = NULL;
    bool ok = read_subject(b, text, &x) && make_arrays(b, &x);

    if (ok)
        reference = load(b, &x, &plain);
    ok = ok && reference && verify(b, &x, reference, true);
    ptxgen_loaded_destroy(reference);
    if (!ok) {
        say(b, "cannot run", text);
        b->failed = true;
    } else {
        measure_copies(b, &x);
        for (int mode = 0; mode < (b->graphs ? 2 : 1); mode++)
            report(b, &x, "limit: copy per step", mode, x.copy[mode] * (double)x.steps, true);
        for (int i = 0; i < b->nplans; i++)
            run_plan(b, &x, &b->plan[i]);
    }
    free_subject(b, &x);
}

/* ---- the run --------------------------------------------------------------------------------- */
/* LABEL:name=value,name=value, cut up in place. */
static bool add_plan(struct bench *b, char *text)
{
    struct plan *p = &b->plan[b->nplans++];
    char *at = strchr(text, ':'), *save = NULL;

    *p = (struct plan){ .label = text };
    if (at == NULL)
        return true;
    *at++ = 0;
    for (char *part = strtok_r(at, ",", &save); part; part = strtok_r(NULL, ",", &save)) {
        char *equals = strchr(part, '=');

        if (equals == NULL || p->nsettings == SETTINGS_MAX)
            return false;
        *equals = 0;
        p->setting[p->nsettings++] = (ptxgen_setting){ part, equals + 1 };
    }
    return true;
}

static bool parse(struct bench *b, int argc, char **argv, const char **subject, int *n)
{
    for (int i = 1; i < argc; i++) {
        char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(argv[i], "--no-graph") == 0)
            b->graphs = false;
        else if (argv[i][0] != '-' && *n < SPECS_MAX)
            subject[(*n)++] = argv[i];
        else if (value == NULL)
            return false;
        else if (i++, strcmp(argv[i - 1], "--specs") == 0 || strcmp(argv[i - 1], "--peers") == 0)
            *(argv[i - 1][2] == 's' ? &b->specs : &b->peers) = value;
        else if (strcmp(argv[i - 1], "--samples") == 0)
            b->samples = atoi(value) < 3 ? 3 : atoi(value) < SAMPLES_MAX ? atoi(value) : SAMPLES_MAX;
        else if (strcmp(argv[i - 1], "--csv") == 0)
            b->csv = fopen(value, "w");
        else if (strcmp(argv[i - 1], "--ours") != 0 || b->nplans == PLANS_MAX || !add_plan(b, value))
            return false;
    }
    return *n > 0;
}

static void open_peers(struct bench *b)
{
    void *library = dlopen(b->peers, RTLD_NOW);
    ptxgen_peers_fn *table = NULL;

    if (library)
        *(void **)&table = dlsym(library, "ptxgen_peers");
    if (table)
        b->peer = table(&b->npeers);
}

static bool open_device(struct bench *b)
{
    return ptxgen_session_create(&b->s) == PTXGEN_OK && ptxgen_gpu_open(b->s, 0, &b->gpu) == PTXGEN_OK &&
           ptxgen_stream_create(b->s, b->gpu, &b->stream) == PTXGEN_OK &&
           ptxgen_event_create(b->s, b->gpu, &b->begin) == PTXGEN_OK &&
           ptxgen_event_create(b->s, b->gpu, &b->end) == PTXGEN_OK;
}

int main(int argc, char **argv)
{
    static struct bench b = {
        .specs = "specs",
        .peers = "lib/libpeers.so",
        .samples = 11,
        .graphs = true,
        .nplans = 2,
        .plan = { { .label = "ptxgen" },
                  { .label = "multi_write", .setting = { { "strategy", "stencil.multi_write" } }, .nsettings = 1 } }
    };
    const char *subject[SPECS_MAX];
    int n = 0;

    if (!parse(&b, argc, argv, subject, &n)) {
        fputs("usage: stepbench [--specs DIR] [--peers LIB] [--samples N] [--no-graph] [--csv FILE]\n"
              "                 [--ours LABEL:NAME=VALUE,...]... SPEC:SIZExSIZE:STEPS...\n",
              stderr);
        return 2;
    }
    if (!open_device(&b)) {
        say(&b, "no device", "");
        return 3;
    }
    open_peers(&b);
    printf("%-18s %-14s %5s %-7s %-24s %11s %9s %9s %8s\n", "spec", "sizes", "steps", "mode", "plan", "us", "us/step",
           "Gupd/s", "%copy");
    if (b.csv)
        fputs("spec,sizes,steps,mode,plan,us,copy_us,gupdates,percent_of_copy,verified\n", b.csv);
    for (int i = 0; i < n; i++)
        run_subject(&b, subject[i]);
    if (b.csv)
        fclose(b.csv);
    ptxgen_event_destroy(b.gpu, b.begin);
    ptxgen_event_destroy(b.gpu, b.end);
    ptxgen_stream_destroy(b.gpu, b.stream);
    ptxgen_gpu_close(b.gpu);
    ptxgen_session_destroy(b.s);
    return b.failed;
}
