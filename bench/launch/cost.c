/* SPDX-License-Identifier: Apache-2.0 */
/* cost.c - the host's time for one launch: the driver's own call, and ptxgen's around it.
 *
 * A sample is a batch that fits the device's queue, so that the host never waits in it.
 */
#include "launch_bench.h"

#include <stdlib.h>

enum { SAMPLES = 101, BATCH = 200, SMALL = 4096 };

static const char empty_ptx[] = ".version 6.3\n.target sm_70\n.address_size 64\n"
                                ".visible .entry empty(.param .u64 x, .param .u64 y, .param .u64 out, .param .u64 n)\n"
                                "{\n    ret;\n}\n";

struct costing {
    struct bench_device *d;
    struct raw_driver cu;
    ptxgen_loaded *loaded;
    ptxgen_arguments args;
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

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static bool measure(struct costing *x, bool (*call)(struct costing *), struct cost *out)
{
    double us[SAMPLES];
    bool ok = true;

    for (int i = -2; i < SAMPLES && ok; i++) {
        double begin = now_ms();

        for (int k = 0; k < BATCH && ok; k++)
            ok = call(x);
        if (i >= 0)
            us[i] = (now_ms() - begin) * 1e3 / BATCH;
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

bool launch_costs(struct bench_device *d, struct cost cost[COSTS])
{
    static const struct {
        const char *what;
        bool (*call)(struct costing *);
    } rows[COSTS] = { { "cuLaunchKernel of an empty kernel", driver_alone },
                      { "ptxgen_launch, memory kept for the stream", kept_memory },
                      { "ptxgen_launch, the caller's workspace", own_workspace },
                      { "cuStreamIsCapturing and cuStreamGetId", stream_questions } };
    const int64_t n = SMALL;
    const void *in[] = { d->x, d->y };
    struct costing x = { .d = d };
    bool ok = make_ready(&x, &n, in);

    for (int i = 0; i < COSTS && ok; i++) {
        cost[i].what = rows[i].what;
        ok = measure(&x, rows[i].call, &cost[i]);
    }
    ptxgen_gpu_free(d->gpu, x.workspace.control);
    ptxgen_gpu_free(d->gpu, x.workspace.scratch);
    ptxgen_loaded_destroy(x.loaded);
    ptxgen_stream_destroy(d->gpu, x.stream);
    return ok;
}
