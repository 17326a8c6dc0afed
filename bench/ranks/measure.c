/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - what distributed launches cost: sums, scans, stencils and loops, against each device alone and against NCCL's own
 * reduction of what each device has.
 *
 * Microseconds per launch: medians of samples; of each sample, the slowest rank counts.  Launches of one sample read
 * different memory, of more than an L2 in all.
 */
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

/* LAUNCHES of a sample, at least: ranks do not begin at the same microsecond, and the first exchange waits for the last rank. */
enum { BATCH_MOST = 256, BATCH_LEAST = 4, LAUNCHES = 48 };
static const size_t pool_bytes = (size_t)192 << 20;

static const char *const way_names[WAYS] = { "alone", "ptxgen over NCCL", "alone + ncclAllReduce",
                                             "by hand over NCCL" };
enum { LARGE = 1 << 30, MANY_STEPS = 64, FEW_LAUNCHES = 4 }; /* points, or steps, of a launch that takes milliseconds */

static bool launch(struct rank *r, const struct trial *t, struct state *m, int slice, bool prepares)
{
    ptxgen_value steps = { .i = t->steps };
    const void *in[] = { m->in + (size_t)slice * m->stride };
    void *out[] = { m->out, m->out + (t->maps ? m->stride : 0) };
    const ptxgen_arguments args = { t->size, in, out, &steps };
    if (t->way == HAND)
        return hand_launch(r, t, m, m->in + (size_t)slice * m->stride, m->out, prepares);
    if (t->way == DIST && r->number == 0)
        r->world->transport = ptxgen_dist_transport(m->dist);
    if (t->way == DIST)
        return (prepares ? ptxgen_dist_prepare(r->s, m->dist, &args, r->stream)
                         : ptxgen_dist_launch_on(r->s, m->dist, &args, r->stream)) == PTXGEN_OK;
    if (prepares)
        return ptxgen_prepare(r->s, m->loaded, &args, r->stream) == PTXGEN_OK;
    return ptxgen_launch(r->s, m->loaded, &args, r->stream, NULL) == PTXGEN_OK &&
           (t->way != NCCL ||
            r->world->AllReduce(m->out, m->out, 1, NCCL_FLOAT32, NCCL_SUM, r->nccl, r->stream) == NCCL_OK);
}

/* Of an array. */
static size_t bytes_of(const struct trial *t)
{
    const int64_t more = t->way == HAND && t->size[0] ? 2 * (t->elements / t->size[0]) : 0;
    return (size_t)(t->elements + more) * 4;
}

static bool open_trial(struct rank *r, const struct trial *t, struct state *m)
{
    const size_t bytes = bytes_of(t);
    void *in = NULL, *out = NULL;
    m->stride = (bytes + 255) / 256 * 256;
    m->batch = (int)(pool_bytes / m->stride);
    m->batch = m->batch > BATCH_MOST ? BATCH_MOST : m->batch < BATCH_LEAST ? BATCH_LEAST : m->batch;
    if (t->steps > 1)
        m->batch = 1;
    const bool is_long = t->steps >= MANY_STEPS || t->elements * (t->steps ? t->steps : 1) > LARGE;
    const int launches = is_long ? FEW_LAUNCHES : LAUNCHES;
    m->repeats = (launches + m->batch - 1) / m->batch;
    const size_t slices = bytes > pool_bytes ? 1 : (size_t)m->batch;
    ptxgen_problem *p = read_spec(r, t->spec);
    ptxgen_dist_options o = PTXGEN_DIST_OPTIONS_INIT;
    o.block = t->block;
    const bool ok = p &&
                    (t->way == DIST ? ptxgen_dist_load(r->s, r->comm, p, &o, &m->dist) == PTXGEN_OK
                                    : ptxgen_jit(r->s, r->gpu, p, NULL, &m->loaded) == PTXGEN_OK) &&
                    ptxgen_gpu_alloc(r->s, r->gpu, m->stride * slices, &in) == PTXGEN_OK &&
                    ptxgen_gpu_alloc(r->s, r->gpu, (t->maps ? m->stride : 0) + 256, &out) == PTXGEN_OK &&
                    ptxgen_gpu_fill(r->s, r->gpu, in, 0, m->stride * slices, r->stream) == PTXGEN_OK;
    m->in = in;
    m->out = out;
    return ok && (t->way != HAND || hand_open(r, m)) && launch(r, t, m, 0, true) &&
           ptxgen_stream_wait(r->s, r->gpu, r->stream) == PTXGEN_OK;
}

static void close_trial(struct rank *r, struct state *m)
{
    ptxgen_stream_wait(r->s, r->gpu, r->stream);
    hand_close(r, m);
    ptxgen_dist_destroy(m->dist);
    if (m->loaded)
        ptxgen_stream_release(r->s, m->loaded, r->stream);
    ptxgen_loaded_destroy(m->loaded);
    ptxgen_gpu_free(r->gpu, m->in);
    ptxgen_gpu_free(r->gpu, m->out);
}

static bool launch_batch(struct rank *r, const struct trial *t, struct state *m)
{
    const size_t bytes = bytes_of(t);
    bool ok = true;
    for (int i = 0; i < m->batch && ok; i++)
        ok = launch(r, t, m, bytes > pool_bytes ? 0 : i, false);
    return ok;
}

/* Seconds of a launch; all ranks begin together. */
static double sample(struct rank *r, const struct trial *t, struct state *m, ptxgen_graph graph)
{
    double seconds = 0;
    pthread_barrier_wait(&r->world->barrier);
    bool ok = ptxgen_event_record(r->s, r->gpu, r->begin, r->stream) == PTXGEN_OK;
    for (int i = 0; i < m->repeats && ok; i++)
        ok = graph ? ptxgen_graph_launch(r->s, r->gpu, graph, r->stream) == PTXGEN_OK : launch_batch(r, t, m);
    ok = ok && ptxgen_event_record(r->s, r->gpu, r->end, r->stream) == PTXGEN_OK &&
         ptxgen_event_seconds(r->s, r->gpu, r->begin, r->end, &seconds) == PTXGEN_OK;
    return ok ? seconds / (m->batch * m->repeats) : -1;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The rank's median, as rank->seconds; two samples warm up. */
static bool measure(struct rank *r, const struct trial *t, struct state *m, ptxgen_graph graph)
{
    double all[SAMPLES];
    for (int i = -2; i < SAMPLES; i++)
        all[i < 0 ? 0 : i] = sample(r, t, m, graph);
    qsort(all, SAMPLES, sizeof *all, ascending);
    r->seconds = all[SAMPLES / 2];
    return all[0] > 0;
}

/* Has no rank failed?  So none waits for another that has given up. */
static bool agree(struct rank *r, bool ok)
{
    if (!ok)
        __atomic_store_n(&r->world->bad, 1, __ATOMIC_SEQ_CST);
    pthread_barrier_wait(&r->world->barrier);
    return !__atomic_load_n(&r->world->bad, __ATOMIC_SEQ_CST);
}

static bool in_stream(struct rank *r)
{
    struct state m = { .batch = 0 };
    const bool opened = agree(r, open_trial(r, r->job, &m)), ok = opened && measure(r, r->job, &m, NULL);
    if (!ok)
        say(r, ((struct trial *)r->job)->label);
    close_trial(r, &m);
    return ok;
}

static bool in_graph(struct rank *r)
{
    struct state m = { .batch = 0 };
    ptxgen_graph graph = NULL;
    bool ok = agree(r, open_trial(r, r->job, &m));
    ok = agree(r, ok && launch_batch(r, r->job, &m) && ptxgen_stream_wait(r->s, r->gpu, r->stream) == PTXGEN_OK);
    if (ok && (ok = ptxgen_capture_begin(r->s, r->gpu, r->stream) == PTXGEN_OK)) {
        ok = launch_batch(r, r->job, &m);
        ok = ptxgen_capture_end(r->s, r->gpu, r->stream, &graph) == PTXGEN_OK && ok;
    }
    ok = agree(r, ok) && measure(r, r->job, &m, graph);
    if (!ok)
        say(r, ((struct trial *)r->job)->label);
    ptxgen_stream_wait(r->s, r->gpu, r->stream);
    ptxgen_graph_destroy(r->gpu, graph);
    close_trial(r, &m);
    return ok;
}

double measure_one(struct world *w, struct trial *t, bool graph)
{
    double slowest = 0;
    w->bad = 0;
    const bool ok = all_ranks(w, graph ? in_graph : in_stream, t);
    for (int i = 0; i < w->ranks && ok; i++)
        slowest = w->rank[i].seconds > slowest ? w->rank[i].seconds : slowest;
    w->failed += !ok;
    if (w->csv && ok)
        fprintf(w->csv, "%s,%lld,%s,%s,%.3f\n", t->label, (long long)t->elements, graph ? "graph" : "stream",
                way_names[t->way], slowest * 1e6);
    if (w->csv)
        fflush(w->csv);
    return slowest * 1e6;
}

/* ---- tables ------------------------------------------------------------------------------------- */
static const char sum[] = "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {s: f32}\n";
static const char scan[] = "kind: scan\ninputs: {x: 'i32[n]'}\noperator: add\noutputs: {y: 'i32[n]'}\n";
static void sums(struct world *w)
{
    puts("\nf32 sum, us: elements per device, mode, alone, of all ranks, alone + ncclAllReduce; added by both");
    for (int e = 16; e <= 28; e += 4)
        for (int graph = 1; graph >= 0; graph--) {
            double us[HAND];
            for (int way = 0; way < HAND; way++)
                us[way] = measure_one(w,
                                      &(struct trial){ .label = "sum_f32",
                                                       .spec = sum,
                                                       .size = { (int64_t)1 << e },
                                                       .elements = (int64_t)1 << e,
                                                       .way = (enum way)way },
                                      graph);
            printf("2^%-3d %-6s %9.2f %9.2f %9.2f   +%.2f +%.2f\n", e, graph ? "graph" : "stream", us[ALONE], us[DIST],
                   us[NCCL], us[DIST] - us[ALONE], us[NCCL] - us[ALONE]);
            fflush(stdout);
        }
}

static void scans(struct world *w)
{
    puts("\ni32 scan, us: elements per device, mode, one device alone, one device with twice as many, both; "
         "speedup; both with blocks of 8 MiB in turn");
    for (int e = 20; e <= 28; e += e < 24 ? 2 : 4)
        for (int graph = 1; graph >= 0; graph--) {
            struct trial t = { .label = "scan_i32", .spec = scan, .maps = true };
            double us[4];
            for (int i = 0; i < 4; i++) {
                t.size[0] = t.elements = (int64_t)(i == 1 ? 2 : 1) << e;
                t.way = i >= 2 ? DIST : ALONE;
                t.block = i == 3 ? (int64_t)1 << (e < 21 ? e : 21) : 0;
                t.label = i == 3 ? "scan_i32 in blocks" : "scan_i32";
                us[i] = measure_one(w, &t, graph);
            }
            printf("2^%-3d %-6s %9.2f %9.2f %9.2f   %.2fx %9.2f\n", e, graph ? "graph" : "stream", us[0], us[1], us[2],
                   us[1] / us[2], us[3]);
            fflush(stdout);
        }
}

/* Heat on a plate that never ends early.  Where the condition reads `step`, the host decides. */
#define HEAT(loop)                                                                                                     \
    "inputs: {u: 'f32[n, m]'}\nparams: {steps: {type: i32, value: 1}}\nstages:\n  sweep:\n    kind: stencil\n"         \
    "    boundary: clamp\n    reductions: {r: {map: abs(next - u), operator: max}}\n    outputs:\n"                    \
    "      next: {type: 'f32[n, m]', value: 'u + 0.2 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u)'}\n"          \
    "      moved: {type: f32, value: r}\noutputs: [next, moved]\n"                                                     \
    "iterate: {steps: steps, feedback: {u: next}" loop "}\n"

static void loops(struct world *w)
{
    static const struct {
        const char *name, *spec;
        enum way way;
        bool graph;
    } row[] = {
        { "one device, until", HEAT(", until: moved < 0"), ALONE, false },
        { "fixed steps, graph", HEAT(""), DIST, true },
        { "until", HEAT(", until: moved < 0"), DIST, false },
        { "until, graph", HEAT(", until: moved < 0"), DIST, true },
        { "until, check_every 8", HEAT(", until: moved < 0, check_every: 8"), DIST, false },
        { "until, host", HEAT(", until: moved < 0 or step < 0"), DIST, false },
        { "until, host, check_every 8", HEAT(", until: moved < 0 or step < 0, check_every: 8"), DIST, false },
    };
    enum { STEPS = MANY_STEPS, ROWS = sizeof row / sizeof *row };
    puts("\nheat, m^2 f32 per device, us per step: m, then");
    for (int i = 0; i < ROWS; i++)
        printf("  %s", row[i].name);
    puts("");
    for (int64_t m = 1024; m <= 4096; m *= 2) {
        printf("%-5lld", (long long)m);
        for (int i = 0; i < ROWS; i++) {
            struct trial t = { .label = row[i].name,
                               .spec = row[i].spec,
                               .size = { m, m },
                               .elements = m * m,
                               .maps = true,
                               .steps = STEPS,
                               .way = row[i].way };
            const bool refused = row[i].graph && strstr(row[i].spec, "until") && strcmp(w->transport, "peers") != 0;
            printf(" %9.2f", refused ? 0 : measure_one(w, &t, row[i].graph) / STEPS);
            fflush(stdout);
        }
        puts("");
    }
}

void measure_all(struct world *w, const char *only)
{
    printf("\n%d x %s\n", w->ranks, ptxgen_gpu_describe(w->rank[0].gpu)->name);
    if (!only || !strcmp(only, "sums"))
        sums(w);
    if (!only || !strcmp(only, "scans"))
        scans(w);
    if (!only || !strcmp(only, "stencils"))
        measure_stencils(w);
    if (!only || !strcmp(only, "loops"))
        loops(w);
    printf("\nbytes travelled over: %s\n", w->transport);
}
