/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - times of launches back to back in a stream, and of graph replays.
 *
 * A sample is a batch of launches between two events, long enough (BATCH_SECONDS) that the events' resolution and the
 * first launch's latency do not count.  Each launch reads the next slice of the input, so that the data comes from
 * memory and not from the L2 cache.  The implementations take turns sample by sample, and each begins with a cache full
 * of other data: what the one before has left there does not leave for reads that are first to leave themselves, and
 * made such a kernel 7 % faster than when it was alone.
 */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH_SECONDS 400e-6
enum {
    BATCH_MAX = 800,
    LONG_BATCH = 16, /* launches, of 25 us or more: no host takes as long */
    GRAPH_LAUNCHES = 20,
    WARM_UP = 3,
    CACHE_BYTES = 256 << 20 /* several times the cache */
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- one launch ------------------------------------------------------------------------------ */
static void next_pointers(struct arena_gpu *a, const void **in, void **out)
{
    int64_t slice = a->next % a->slices, slot = a->next % a->slots;

    for (int i = 0; i < a->ninputs; i++)
        in[i] = (char *)a->input[i] + slice * (int64_t)a->input_stride[i];
    if (a->offset)
        in[a->ninputs] = a->offset;
    for (int o = 0; o < a->noutputs; o++)
        out[o] = (char *)a->output[o] + slot * (int64_t)a->output_stride[o];
    a->next++;
}

bool impl_launch(struct arena_gpu *a, struct impl *impl)
{
    const void *in[INPUTS_MAX] = { NULL };
    void *out[OUTPUTS_MAX] = { NULL };
    ptxgen_arguments args = { .size = a->psize, .input = in, .output = out, .param = a->param };

    next_pointers(a, in, out);
    if (impl->loaded)
        return ptxgen_launch(a->s, impl->loaded, &args, a->stream, NULL) == PTXGEN_OK;
    return impl->peer->run(impl->temp, &impl->temp_bytes, in, out, &a->size, a->stream) == 0;
}

bool impl_prepare(struct arena_gpu *a, struct impl *impl)
{
    const void *in[INPUTS_MAX] = { NULL };
    void *out[OUTPUTS_MAX] = { NULL };
    ptxgen_arguments args = { .size = a->psize, .input = in, .output = out, .param = a->param };

    next_pointers(a, in, out);
    if (impl->loaded)
        return ptxgen_prepare(a->s, impl->loaded, &args, a->stream) == PTXGEN_OK;
    impl->temp = NULL;
    if (impl->peer->run(NULL, &impl->temp_bytes, in, out, &a->size, a->stream) != 0)
        return false;
    impl->temp_bytes += impl->temp_bytes == 0;
    return ptxgen_gpu_alloc(a->s, a->gpu, impl->temp_bytes, &impl->temp) == PTXGEN_OK;
}

/* ---- batches --------------------------------------------------------------------------------- */
/* Seconds per launch on the device (0: failed), and of the host. A graph stands for GRAPH_LAUNCHES launches. */
static double run_batch(struct arena_gpu *a, struct impl *impl, ptxgen_graph graph, int count, double *host)
{
    bool ok = ptxgen_event_record(a->s, a->gpu, a->begin, a->stream) == PTXGEN_OK;
    double seconds = 0, start = now();

    for (int i = 0; i < count && ok; i++)
        ok = graph ? ptxgen_graph_launch(a->s, a->gpu, graph, a->stream) == PTXGEN_OK : impl_launch(a, impl);
    *host = (now() - start) / count;
    ok = ok && ptxgen_event_record(a->s, a->gpu, a->end, a->stream) == PTXGEN_OK &&
         ptxgen_event_seconds(a->s, a->gpu, a->begin, a->end, &seconds) == PTXGEN_OK;
    return ok ? seconds / count / (graph ? GRAPH_LAUNCHES : 1) : 0;
}

/* How many launches (or replays) make a batch long enough; 0: it fails. */
static int batch_size(struct arena_gpu *a, struct impl *impl, ptxgen_graph graph)
{
    double host, seconds = 0;
    int count;

    for (int i = 0; i < WARM_UP; i++)
        if (run_batch(a, impl, graph, 1, &host) == 0)
            return 0;
    seconds = run_batch(a, impl, graph, 5, &host) * (graph ? GRAPH_LAUNCHES : 1);
    if (seconds == 0)
        return 0;
    count = (int)ceil(BATCH_SECONDS / seconds);
    return count < 1 ? 1 : count > BATCH_MAX ? BATCH_MAX : count;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double quantile(const double *sorted, int n, double q)
{
    double at = q * (n - 1);
    int low = (int)at;

    return low + 1 < n ? sorted[low] + (at - low) * (sorted[low + 1] - sorted[low]) : sorted[n - 1];
}

static void summarise(double *sample, double *host, int n, int batch, bool synchronous, struct timing *out)
{
    qsort(sample, (size_t)n, sizeof *sample, compare);
    qsort(host, (size_t)n, sizeof *host, compare);
    *out = (struct timing){ .median = quantile(sample, n, 0.5),
                            .p10 = quantile(sample, n, 0.1),
                            .p90 = quantile(sample, n, 0.9),
                            .host = synchronous ? 0 : quantile(host, n, 0.5),
                            .samples = n,
                            .batch = batch };
}

struct samples {
    double device[SAMPLES_MAX], host[SAMPLES_MAX];
};

/* ---- what the cache holds -------------------------------------------------------------------- */
/* Reads, so that nothing of it has to be written back while others are measured, and stays where it can. */
static const char reader[] = "kind: reduce\ninputs: {x: 'u32[n]'}\noperator: max\noutputs: {most: u32}\n";

bool cache_open(struct arena_gpu *a)
{
    ptxgen_plan_options options = PTXGEN_PLAN_OPTIONS_INIT;
    struct cache *c = &a->cache;
    ptxgen_problem *problem = NULL;
    ptxgen_plan *plan = NULL;
    char arch[16];

    snprintf(arch, sizeof arch, "sm_%d", ptxgen_gpu_describe(a->gpu)->sm);
    options.arch = arch;
    options.variant = "reduce.last_block@evict_first=0";
    return ptxgen_problem_from_string(a->s, reader, strlen(reader), "reader", &problem) == PTXGEN_OK &&
           ptxgen_plan_create(a->s, problem, &options, &plan) == PTXGEN_OK &&
           ptxgen_compile(a->s, plan, NULL, &c->program) == PTXGEN_OK &&
           ptxgen_load(a->s, a->gpu, c->program, &c->reader) == PTXGEN_OK &&
           ptxgen_gpu_alloc(a->s, a->gpu, CACHE_BYTES, &c->other) == PTXGEN_OK &&
           ptxgen_gpu_alloc(a->s, a->gpu, sizeof(uint32_t), &c->most) == PTXGEN_OK;
}

void cache_close(struct arena_gpu *a)
{
    ptxgen_loaded_destroy(a->cache.reader);
    ptxgen_program_destroy(a->cache.program);
    ptxgen_gpu_free(a->gpu, a->cache.other);
    ptxgen_gpu_free(a->gpu, a->cache.most);
}

/* Fill the L2 cache with other data.  ahead: the host may give launches to the device meanwhile. */
static bool occupy_cache(struct arena_gpu *a, bool ahead)
{
    const int64_t n = CACHE_BYTES / (int64_t)sizeof(uint32_t);
    const void *in[] = { a->cache.other };
    void *out[] = { a->cache.most };
    ptxgen_arguments args = { .size = &n, .input = in, .output = out };

    return ptxgen_launch(a->s, a->cache.reader, &args, a->stream, NULL) == PTXGEN_OK &&
           (ahead || ptxgen_stream_wait(a->s, a->gpu, a->stream) == PTXGEN_OK);
}

/* graph[i] NULL: plain launches. */
static void measure(struct arena_gpu *a, struct impl *impl, ptxgen_graph *graph, int n, int samples,
                    struct timing *time)
{
    struct samples *s = calloc((size_t)n, sizeof *s);
    int *batch = calloc((size_t)n, sizeof *batch);
    bool ahead = true;

    for (int i = 0; s && batch && i < n; i++)
        batch[i] = graph && !graph[i] ? 0 : batch_size(a, &impl[i], graph ? graph[i] : NULL);
    /* Where all launches take long, what the host needs for the first one does not count, as it does not for those that
     * follow.  Of short ones it is part of the time. */
    for (int i = 0; s && batch && i < n; i++)
        ahead &= batch[i] <= LONG_BATCH;
    for (int k = 0; s && batch && k < samples; k++)
        for (int i = 0; i < n; i++)
            if (batch[i] && (graph || occupy_cache(a, ahead)))
                s[i].device[k] = run_batch(a, &impl[i], graph ? graph[i] : NULL, batch[i], &s[i].host[k]);
    for (int i = 0; i < n; i++) {
        time[i].samples = 0;
        if (s && batch && batch[i])
            summarise(s[i].device, s[i].host, samples, batch[i], impl[i].synchronous, &time[i]);
    }
    free(s);
    free(batch);
}

void measure_stream(struct arena_gpu *a, struct impl *impl, int n, int samples, struct timing *time)
{
    measure(a, impl, NULL, n, samples, time);
}

/* GRAPH_LAUNCHES launches on one slice; NULL where the implementation cannot be captured. */
static ptxgen_graph capture(struct arena_gpu *a, struct impl *impl)
{
    ptxgen_graph graph = NULL;
    bool ok = true;

    if (impl->synchronous || ptxgen_capture_begin(a->s, a->gpu, a->stream) != PTXGEN_OK)
        return NULL;
    for (int i = 0; i < GRAPH_LAUNCHES && ok; i++) {
        a->next = 0;
        ok = impl_launch(a, impl);
    }
    if (ptxgen_capture_end(a->s, a->gpu, a->stream, &graph) != PTXGEN_OK)
        return NULL;
    if (!ok)
        ptxgen_graph_destroy(a->gpu, graph);
    return ok ? graph : NULL;
}

void measure_graph(struct arena_gpu *a, struct impl *impl, int n, int samples, struct timing *time)
{
    ptxgen_graph *graph = calloc((size_t)n, sizeof *graph);

    if (graph == NULL)
        return;
    for (int i = 0; i < n; i++)
        graph[i] = capture(a, &impl[i]);
    measure(a, impl, graph, n, samples, time);
    for (int i = 0; i < n; i++)
        ptxgen_graph_destroy(a->gpu, graph[i]);
    free(graph);
}
