/* SPDX-License-Identifier: Apache-2.0 */
/* gpubench.c - ptxgen's programs and their peers, on the same data in the same run.
 *
 *     gpubench [--specs DIR] [--peers libpeers.so] [--problem NAME]... [--size N]... [--segment N]... [--samples N]
 *              [--extent AxB[xC]]... [--quick] [--ours LABEL:NAME=VALUE,...]... [--no-graph] [--no-peers] [--device K]
 *              [--commit TEXT] [--csv FILE]
 *
 * Per problem and size: random data in a pool of at least 1 GiB, every implementation verified before and after it is
 * timed, stream times with the input rotated through the pool, graph times for small sizes, and as the limit the best
 * read of as many bytes, or the best copy where the output is as large as the input.  --ours adds a plan of ptxgen with
 * those tunables under that label. Exit status: 0, 1 when a result was wrong or something failed, 2 usage, 3 no device.
 */
#include "stencil_bench.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 64, VERIFIED_SLICES = 4 };
static const size_t pool_bytes = (size_t)1 << 30;
static const int64_t graph_size_max = (int64_t)1 << 22;

/* ---- memory ---------------------------------------------------------------------------------- */
void drop_inputs(struct bench *b)
{
    for (int i = 0; i < INPUTS_MAX; i++) {
        free(b->host[i]);
        ptxgen_gpu_free(b->a.gpu, b->a.input[i]);
        b->host[i] = b->a.input[i] = NULL;
    }
    b->pools = 0;
}

/* At least `bytes` of random inputs on both sides; those of the size or problem before serve when they can. */
static bool make_inputs(struct bench *b, const struct problem *p, size_t bytes)
{
    struct arena_gpu *a = &b->a;
    bool ok = true;

    if (b->pools >= p->ninputs && b->pool_type == p->type && b->input_bytes >= bytes)
        return true;
    drop_inputs(b);
    b->pool_type = p->type;
    b->input_bytes = bytes > pool_bytes ? bytes : pool_bytes;
    for (; b->pools < p->ninputs && ok; b->pools++) {
        void **host = &b->host[b->pools];

        *host = malloc(b->input_bytes);
        ok = *host && ptxgen_gpu_alloc(a->s, a->gpu, b->input_bytes, &a->input[b->pools]) == PTXGEN_OK;
        if (ok)
            fill_random(p->type, *host, (int64_t)(b->input_bytes / (size_t)scalar_bytes(p->type)),
                        1 + 77u * (unsigned)b->pools);
        ok = ok && ptxgen_gpu_write(a->s, a->gpu, a->input[b->pools], *host, b->input_bytes) == PTXGEN_OK;
    }
    return ok;
}

static void free_offsets(struct bench *b)
{
    ptxgen_gpu_free(b->a.gpu, b->a.offset);
    free(b->offset);
    b->a.offset = NULL;
    b->offset = NULL;
}

/* The offsets of irregular segments on the host; offsets or flags on the device. */
static bool make_offsets(struct bench *b, const struct problem *p, const struct peer_size *size)
{
    struct arena_gpu *a = &b->a;
    bool flags = p->layout == FLAGS_POWER, ok;
    size_t bytes = p->segmented ? (size_t)(segment_count(size) + 1) * sizeof *b->offset : 0;
    size_t sent = flags ? (size_t)size->n : bytes;
    uint8_t *flag = flags ? malloc(sent) : NULL;

    if (p->layout < OFFSETS_EQUAL)
        return true;
    b->offset = malloc(bytes);
    ok = b->offset && (flag || !flags) && fill_offsets(p->layout, size, b->offset);
    if (ok && flags)
        offsets_to_flags(b->offset, segment_count(size), size->n, flag);
    ok = ok && ptxgen_gpu_alloc(a->s, a->gpu, sent, &a->offset) == PTXGEN_OK &&
         ptxgen_gpu_write(a->s, a->gpu, a->offset, flags ? (void *)flag : b->offset, sent) == PTXGEN_OK;
    free(flag);
    return ok;
}

/* The sizes of the spec: rows and their length, or the other way round; elements and offsets; or elements alone. */
static void set_sizes(const struct problem *p, const struct peer_size *size, int64_t *psize)
{
    int64_t segments = p->segmented ? segment_count(size) : 0;

    if (!p->segmented || p->layout >= OFFSETS_EQUAL) {
        psize[0] = size->n;
        psize[1] = segments + 1;
    } else {
        psize[0] = p->layout == COLUMNS ? size->segment : segments;
        psize[1] = p->layout == COLUMNS ? segments : size->segment;
    }
}

/* Inputs in slices, outputs in slots. */
static bool make_pools(struct bench *b, const struct problem *p, const struct peer_size *size)
{
    struct arena_gpu *a = &b->a;
    size_t bytes = (size_t)size->n * (size_t)scalar_bytes(p->type);
    bool ok;

    for (int i = 0; i < INPUTS_MAX; i++)
        a->input_stride[i] = (bytes + 255) / 256 * 256;
    ok = make_inputs(b, p, a->input_stride[0]) && make_offsets(b, p, size);
    a->slices = (int64_t)(b->input_bytes / a->input_stride[0]);
    a->slots = p->per_element || p->segmented ? 1 : SLOTS;
    a->ninputs = p->ninputs;
    a->noutputs = p->noutputs;
    a->next = 0;
    for (int o = 0; o < p->noutputs && ok; o++) {
        a->output_stride[o] = ((size_t)output_elements(p, o, size) * (size_t)scalar_bytes(p->out[o]) + 255) / 256 * 256;
        ok = ptxgen_gpu_alloc(a->s, a->gpu, a->output_stride[o] * (size_t)a->slots, &a->output[o]) == PTXGEN_OK;
    }
    return ok;
}

/* ---- verification ---------------------------------------------------------------------------- */
struct references {
    const struct problem *problem;
    bool known[VERIFIED_SLICES];
    struct expected slice[VERIFIED_SLICES];
};

static bool check_slot(struct bench *b, const struct problem *p, struct references *refs, int64_t k, char *why,
                       size_t length)
{
    struct arena_gpu *a = &b->a;
    const void *in[INPUTS_MAX] = { NULL };
    void *out[OUTPUTS_MAX] = { NULL };
    bool ok = true;

    for (int i = 0; i < p->ninputs; i++)
        in[i] = (char *)b->host[i] + k * (int64_t)a->input_stride[i];
    for (int o = 0; o < p->noutputs && ok; o++) {
        out[o] = malloc(a->output_stride[o]);
        ok = out[o] &&
             ptxgen_gpu_read(a->s, a->gpu, out[o], (char *)a->output[o] + k % a->slots * (int64_t)a->output_stride[o],
                             a->output_stride[o]) == PTXGEN_OK;
    }
    if (ok && p->keep) {
        ok = check_kept(p, in, a->size.n, (const void *const *)out, why, length);
    } else if (ok && p->segmented && !p->per_element) {
        ok = check_segments(p, in, &a->size, b->offset, (const void *const *)out, why, length);
    } else if (ok && p->reference) {
        if (!refs->known[k])
            p->reference(p, in, a->size.n, &refs->slice[k]);
        refs->known[k] = true;
        ok = check_scalars(p, &refs->slice[k], (const void *const *)out, why, length);
    } else {
        for (int o = 0; o < (p->step ? 1 : p->noutputs) && ok; o++) /* sums: output o is that of input o */
            ok = check_array(p, in + o, &a->size, b->offset, out[o], why, length);
    }
    for (int o = 0; o < p->noutputs; o++)
        free(out[o]);
    return ok;
}

/* Run on the first slices into poisoned outputs, and compare. */
static bool verify(struct bench *b, void *of, struct impl *impl, char *why, size_t length)
{
    struct references *refs = of;
    const struct problem *p = refs->problem;
    struct arena_gpu *a = &b->a;
    int64_t slices = a->slots == 1 || a->slices < 2 ? 1 : a->slices < VERIFIED_SLICES ? a->slices : VERIFIED_SLICES;
    bool ok = true;

    for (int o = 0; o < p->noutputs && ok; o++)
        ok = ptxgen_gpu_fill(a->s, a->gpu, a->output[o], 0xa5, a->output_stride[o] * (size_t)a->slots, a->stream) ==
             PTXGEN_OK;
    a->next = 0;
    for (int64_t k = 0; k < slices && ok; k++)
        ok = impl_launch(a, impl);
    ok = ok && ptxgen_stream_wait(a->s, a->gpu, a->stream) == PTXGEN_OK;
    if (!ok)
        snprintf(why, length, "it did not run");
    for (int64_t k = 0; k < slices && ok; k++)
        ok = check_slot(b, p, refs, k, why, length);
    return ok;
}

/* ---- implementations ------------------------------------------------------------------------- */
void say_diagnostics(struct bench *b, const char *what)
{
    char *text = ptxgen_diagnostics_text(b->a.s, 0);

    fprintf(stderr, "gpubench: %s\n%s", what, text ? text : "");
    ptxgen_free(text);
    ptxgen_diagnostics_clear(b->a.s);
}

bool load_ours(struct bench *b, const char *name, const struct ours *ours, ptxgen_problem **problem,
               ptxgen_program **program, ptxgen_loaded **loaded)
{
    ptxgen_plan_options options = PTXGEN_PLAN_OPTIONS_INIT;
    char path[512], arch[16];
    ptxgen_problem *p = NULL;
    ptxgen_plan *plan;

    snprintf(path, sizeof path, "%s/%s.yaml", b->o.specs, name);
    if (access(path, R_OK) != 0) /* one of the examples */
        snprintf(path, sizeof path, "%s/../../specs/%s.yaml", b->o.specs, name);
    snprintf(arch, sizeof arch, "sm_%d", ptxgen_gpu_describe(b->a.gpu)->sm);
    options.arch = arch;
    options.setting_count = ours->nsettings;
    options.setting = ours->setting;
    *program = NULL;
    *loaded = NULL;
    if (ptxgen_problem_from_file(b->a.s, path, &p) == PTXGEN_OK &&
        ptxgen_plan_create(b->a.s, p, &options, &plan) == PTXGEN_OK &&
        ptxgen_compile(b->a.s, plan, NULL, program) == PTXGEN_OK &&
        ptxgen_load(b->a.s, b->a.gpu, *program, loaded) == PTXGEN_OK) {
        if (problem)
            *problem = p;
        return true;
    }
    say_diagnostics(b, path);
    ptxgen_program_destroy(*program);
    *program = NULL;
    return false;
}

/* ---- one problem at one size ----------------------------------------------------------------- */
/* What the problem's memory traffic takes at least: reading its inputs, or copying where it writes as much. */
static double memory_limit(struct bench *b, const struct problem *p, const struct subject *s, bool graph)
{
    struct arena_gpu a = b->a;

    a.size.n = s->size.n * scalar_bytes(p->type);
    double read = subject_limit(b, s, &a, "read", graph);

    if (p->keep || (p->per_element && p->ninputs == p->noutputs && scalar_bytes(p->out[0]) == scalar_bytes(p->type)))
        return subject_limit(b, s, &a, "copy", graph) * s->bytes / (2.0 * (double)a.size.n);
    /* Results of segments are bytes that go at the same speed. */
    if (p->segmented && !p->per_element)
        return read * s->bytes / (double)a.size.n;
    return read * p->ninputs;
}

static void run_size(struct bench *b, const struct problem *p, const struct peer_size *size, ptxgen_loaded **loaded)
{
    struct impl impl[IMPLS_MAX];
    struct references refs = { .problem = p };
    struct subject s = { p->name, *size, problem_bytes(p, size), verify, &refs };

    b->a.size = *size;
    set_sizes(p, size, b->a.psize);
    if (make_pools(b, p, size)) {
        int n = subject_open(b, &s, loaded, impl);

        subject_time(b, &s, impl, n, memory_limit(b, p, &s, false), false);
        if (b->o.graph && size->n <= graph_size_max)
            subject_time(b, &s, impl, n, memory_limit(b, p, &s, true), true);
        subject_close(b, impl, n);
    } else {
        say_diagnostics(b, "no memory for the data");
        b->failed = true;
    }
    free_outputs(b);
    free_offsets(b);
}

/* The sizes of a problem: those asked for, or its own. */
static int sizes_of(const struct bench *b, const struct problem *p, int64_t *out)
{
    static const int few[] = { 20, 24, 28 }, quick[] = { 10, 16, 20, 24 };
    int n = 0;

    if (b->o.nsizes) {
        memcpy(out, b->o.size, (size_t)b->o.nsizes * sizeof *out);
        return b->o.nsizes;
    }
    if (b->o.quick) {
        for (size_t i = 0; i < sizeof quick / sizeof *quick; i++)
            out[n++] = (int64_t)1 << quick[i];
    } else if (strcmp(p->name, "sum_f32") == 0) {
        for (int e = 6; e <= 30; e += 2)
            out[n++] = (int64_t)1 << e;
    } else {
        for (size_t i = 0; i < sizeof few / sizeof *few; i++)
            out[n++] = (int64_t)1 << few[i];
    }
    return n;
}

static void run_problem(struct bench *b, const struct problem *p)
{
    static const int64_t own_segments[] = { 4, 32, 256, 1000, 4096, 1 << 18 };
    ptxgen_program *program[LIST_MAX];
    ptxgen_loaded *loaded[LIST_MAX];
    int64_t size[LIST_MAX];
    const int64_t *segment = b->o.nsegments ? b->o.segment : own_segments;
    int nsizes = sizes_of(b, p, size), nsegments = 1;
    bool any = false;

    if (p->segmented)
        nsegments = b->o.nsegments ? b->o.nsegments : (int)(sizeof own_segments / sizeof *own_segments);
    for (int i = 0; i < b->o.nours; i++)
        any |= load_ours(b, p->spec ? p->spec : p->name, &b->o.ours[i], NULL, &program[i], &loaded[i]);
    for (int i = 0; i < nsizes && (any || b->o.nproblems); i++)
        for (int k = 0; k < nsegments; k++) {
            int64_t length = p->segmented ? segment[k] : 0;
            struct peer_size at = { .n = length ? size[i] / length * length : size[i], .segment = length };

            if (at.n > 0)
                run_size(b, p, &at, loaded);
        }
    for (int i = 0; i < b->o.nours; i++) {
        ptxgen_loaded_destroy(loaded[i]);
        ptxgen_program_destroy(program[i]);
    }
}

/* ---- the run --------------------------------------------------------------------------------- */
bool asked_for(const struct options *o, const char *name)
{
    for (int i = 0; i < o->nproblems; i++)
        if (strcmp(o->problem[i], name) == 0)
            return true;
    return o->nproblems == 0;
}

static void open_peers(struct bench *b)
{
    void *library = dlopen(b->o.peers, RTLD_NOW);
    ptxgen_peers_fn *table = NULL;

    if (library)
        *(void **)&table = dlsym(library, "ptxgen_peers");
    if (table)
        b->peer = table(&b->npeers);
    else
        fprintf(stderr, "gpubench: no peers: %s\n", dlerror());
}

static bool open_device(struct bench *b)
{
    struct arena_gpu *a = &b->a;

    return ptxgen_gpu_open(a->s, b->o.device, &a->gpu) == PTXGEN_OK &&
           ptxgen_stream_create(a->s, a->gpu, &a->stream) == PTXGEN_OK &&
           ptxgen_event_create(a->s, a->gpu, &a->begin) == PTXGEN_OK &&
           ptxgen_event_create(a->s, a->gpu, &a->end) == PTXGEN_OK && cache_open(a);
}

static void write_reports(struct bench *b)
{
    FILE *csv = b->o.csv ? fopen(b->o.csv, "w") : NULL;

    report_tables(&b->report, stdout);
    if (csv)
        report_csv(&b->report, ptxgen_gpu_describe(b->a.gpu), b->o.commit, csv);
    b->failed |= b->o.csv && !csv;
    if (csv)
        fclose(csv);
}

int main(int argc, char **argv)
{
    static struct bench b;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!parse_options(argc, argv, &b.o)) {
        fprintf(
            stderr,
            "usage: gpubench [--specs DIR] [--peers LIB] [--problem NAME] [--size N] [--segment N] [--extent AxB[xC]]\n"
            "  [--samples N] [--quick] [--ours LABEL:NAME=VALUE,...] [--no-graph] [--no-peers] [--device K] [--commit "
            "TEXT] [--csv FILE]\n");
        return 2;
    }
    if (ptxgen_session_create(&b.a.s) != PTXGEN_OK)
        return 3;
    if (!open_device(&b)) {
        say_diagnostics(&b, "no device");
        return 3;
    }
    open_peers(&b);
    for (int i = 0; i < nproblems; i++)
        if (asked_for(&b.o, problems[i].name))
            run_problem(&b, &problems[i]);
    run_stencils(&b);
    write_reports(&b);
    drop_inputs(&b);
    cache_close(&b.a);
    ptxgen_event_destroy(b.a.gpu, b.a.begin);
    ptxgen_event_destroy(b.a.gpu, b.a.end);
    ptxgen_stream_destroy(b.a.gpu, b.a.stream);
    ptxgen_gpu_close(b.a.gpu);
    ptxgen_session_destroy(b.a.s);
    free(b.report.row);
    return b.failed;
}
