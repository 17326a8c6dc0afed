/* SPDX-License-Identifier: Apache-2.0 */
/* cost.c - the host's time for one launch: the driver's own call, and ptxgen's around it.
 *
 * A sample is a batch that fits the device's queue, so that the host never waits in it.  Programs of stages: ten maps
 * that read what the one before has written, as launches and as a graph; and a loop that ends on a condition.
 */
#include "launch_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 101, BATCH = 200, STAGES_BATCH = 20, SMALL = 4096, STAGES = 10 };

static const char empty_ptx[] = ".version 6.3\n.target sm_70\n.address_size 64\n"
                                ".visible .entry empty(.param .u64 x, .param .u64 y, .param .u64 out, .param .u64 n)\n"
                                "{\n    ret;\n}\n";

struct costing {
    struct bench_device *d;
    struct raw_driver cu;
    ptxgen_loaded *loaded, *stages, *loop;
    ptxgen_graph graph; /* of stages */
    ptxgen_arguments args, maps;
    ptxgen_workspace workspace;
    ptxgen_stream stream;
    void *empty;
};

static bool driver_alone(struct costing *x)
{
    long long n = SMALL;
    void *params[] = { &x->d->x, &x->d->y, &x->d->out, &n };

    return x->cu.launch(x->empty, 1, 1, 1, 512, 1, 1, 0, x->stream, params, NULL) == 0;
}

static bool stream_questions(struct costing *x)
{
    unsigned long long id;
    int status;

    return x->cu.capturing(x->stream, &status) == 0 && x->cu.stream_id(x->stream, &id) == 0;
}

static bool kept_memory(struct costing *x)
{
    return ptxgen_launch(x->d->s, x->loaded, &x->args, x->stream, NULL) == PTXGEN_OK;
}

static bool own_workspace(struct costing *x)
{
    return ptxgen_launch(x->d->s, x->loaded, &x->args, x->stream, &x->workspace) == PTXGEN_OK;
}

static bool ten_stages(struct costing *x)
{
    return ptxgen_launch(x->d->s, x->stages, &x->maps, x->stream, NULL) == PTXGEN_OK;
}

static bool ten_stages_in_a_graph(struct costing *x)
{
    return ptxgen_graph_launch(x->d->s, x->d->gpu, x->graph, x->stream) == PTXGEN_OK;
}

static bool loop_until(struct costing *x)
{
    return ptxgen_launch(x->d->s, x->loop, &x->maps, x->stream, NULL) == PTXGEN_OK;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static bool measure(struct costing *x, bool (*call)(struct costing *), int batch, struct cost *out)
{
    double us[SAMPLES];
    bool ok = true;

    for (int i = -2; i < SAMPLES && ok; i++) {
        double begin = now_ms();

        for (int k = 0; k < batch && ok; k++)
            ok = call(x);
        if (i >= 0)
            us[i] = (now_ms() - begin) * 1e3 / batch;
        ok = ptxgen_stream_wait(x->d->s, x->d->gpu, x->stream) == PTXGEN_OK && ok;
    }
    if (!ok)
        return false;
    qsort(us, SAMPLES, sizeof *us, ascending);
    out->median = us[SAMPLES / 2];
    out->p90 = us[SAMPLES * 9 / 10];
    return true;
}

/* A program whose launch works in memory of its own: the strategy of large sizes at a small one. */
static bool make_ready(struct costing *x, const int64_t *n, const void *const *in)
{
    static const char spec[] = "kind: reduce\ninputs: {x: 'f32[n]', y: 'f32[n]'}\nmap: x * y\noperator: add\n"
                               "outputs: {dot: f32}\n";
    const ptxgen_setting pin = { "strategy", "reduce.last_block" };
    const ptxgen_plan_options plan = { .struct_size = sizeof plan, .setting_count = 1, .setting = &pin };
    const ptxgen_jit_options options = { .struct_size = sizeof options, .plan = &plan };
    struct bench_device *d = x->d;
    void *module;

    x->args = (ptxgen_arguments){ n, in, &d->out, NULL };
    return ptxgen_stream_create(d->s, d->gpu, &x->stream) == PTXGEN_OK && raw_open(&x->cu) &&
           x->cu.load(&module, empty_ptx) == 0 && x->cu.function(&x->empty, module, "empty") == 0 &&
           ptxgen_jit_string(d->s, d->gpu, spec, sizeof spec - 1, "dot", &options, &x->loaded) == PTXGEN_OK &&
           ptxgen_workspace_query(d->s, x->loaded, &x->args, &x->workspace) == PTXGEN_OK &&
           ptxgen_gpu_alloc(d->s, d->gpu, x->workspace.control_bytes, &x->workspace.control) == PTXGEN_OK &&
           ptxgen_gpu_alloc(d->s, d->gpu, x->workspace.scratch_bytes, &x->workspace.scratch) == PTXGEN_OK &&
           ptxgen_workspace_reset(d->s, x->loaded, &x->workspace, x->stream) == PTXGEN_OK;
}

static bool load_maps(struct costing *x, const char *spec, ptxgen_loaded **out)
{
    struct bench_device *d = x->d;

    return ptxgen_jit_string(d->s, d->gpu, spec, strlen(spec), "maps", NULL, out) == PTXGEN_OK &&
           ptxgen_prepare(d->s, *out, &x->maps, x->stream) == PTXGEN_OK;
}

static bool make_stages(struct costing *x, const int64_t *n)
{
    static const char loop[] = "inputs: {x: 'f32[n]'}\nstages:\n"
                               "  a: {kind: map, outputs: {y: {type: 'f32[n]', value: x + 1}}}\n"
                               "  b: {kind: reduce, map: y, operator: max, outputs: {most: f32}}\n"
                               "outputs: [y]\niterate: {steps: 9, feedback: {x: y}, until: most > 0}\n";
    static const void *in[1];
    struct bench_device *d = x->d;
    char spec[2000];
    int length = sprintf(spec, "inputs: {x0: 'f32[n]'}\nfuse: false\nstages:\n");

    for (int i = 0; i < STAGES; i++)
        length += sprintf(spec + length, "  s%d: {kind: map, outputs: {x%d: {type: 'f32[n]', value: x%d + 1}}}\n", i,
                          i + 1, i);
    sprintf(spec + length, "outputs: [x%d]\n", STAGES);
    in[0] = d->x;
    x->maps = (ptxgen_arguments){ n, in, &d->y, NULL };
    return load_maps(x, spec, &x->stages) && load_maps(x, loop, &x->loop) &&
           ptxgen_capture_begin(d->s, d->gpu, x->stream) == PTXGEN_OK && ten_stages(x) &&
           ptxgen_capture_end(d->s, d->gpu, x->stream, &x->graph) == PTXGEN_OK;
}

bool launch_costs(struct bench_device *d, struct cost cost[COSTS])
{
    static const struct {
        const char *what;
        bool (*call)(struct costing *);
        int batch;
    } rows[COSTS] = { { "cuLaunchKernel of an empty kernel", driver_alone, BATCH },
                      { "ptxgen_launch, memory kept for the stream", kept_memory, BATCH },
                      { "ptxgen_launch, the caller's workspace", own_workspace, BATCH },
                      { "cuStreamIsCapturing and cuStreamGetId", stream_questions, BATCH },
                      { "ptxgen_launch of ten stages", ten_stages, STAGES_BATCH },
                      { "cuGraphLaunch of ten stages", ten_stages_in_a_graph, STAGES_BATCH },
                      { "ptxgen_launch of a loop with until", loop_until, STAGES_BATCH } };
    const int64_t n = SMALL;
    const void *in[] = { d->x, d->y };
    struct costing x = { .d = d };
    bool ok = make_ready(&x, &n, in) && make_stages(&x, &n);

    for (int i = 0; i < COSTS && ok; i++) {
        cost[i].what = rows[i].what;
        ok = measure(&x, rows[i].call, rows[i].batch, &cost[i]);
    }
    ptxgen_gpu_free(d->gpu, x.workspace.control);
    ptxgen_gpu_free(d->gpu, x.workspace.scratch);
    ptxgen_graph_destroy(d->gpu, x.graph);
    ptxgen_loaded_destroy(x.stages);
    ptxgen_loaded_destroy(x.loop);
    ptxgen_loaded_destroy(x.loaded);
    ptxgen_stream_destroy(d->gpu, x.stream);
    return ok;
}
