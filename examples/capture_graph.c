/* SPDX-License-Identifier: Apache-2.0 */
/* capture_graph.c - a reduction inside a CUDA graph, with memory of the caller's.
 *
 *     cc capture_graph.c $(pkg-config --cflags --libs ptxgen) -o capture_graph && ./capture_graph specs/dot.yaml
 *
 * Takes any reduction of one size over f32 arrays to one f32.  Two things matter for a capture: the code must be loaded
 * before it begins (ptxgen_prepare), and a workspace of one's own belongs to the graph for as long as it lives.
 */
#include <stdio.h>
#include <stdlib.h>

#include <ptxgen/launch.h>

enum { INPUTS_MAX = 4, N = 1 << 20, REPLAYS = 3 };

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        ptxgen_status status_ = (call);                                                                                \
        if (status_ != PTXGEN_OK)                                                                                      \
            return status_;                                                                                            \
    } while (0)

struct state {
    ptxgen_session *s;
    ptxgen_gpu *gpu;
    ptxgen_loaded *loaded;
    ptxgen_stream stream;
    ptxgen_graph graph;
    ptxgen_workspace workspace;
    void *in[INPUTS_MAX], *out;
    int ninputs;
};

static ptxgen_status compile(struct state *x, const char *path)
{
    ptxgen_problem *problem;

    TRY(ptxgen_problem_from_file(x->s, path, &problem));
    x->ninputs = ptxgen_problem_input_count(problem);
    if (x->ninputs > INPUTS_MAX || ptxgen_problem_size_count(problem) != 1)
        return PTXGEN_USAGE;
    return ptxgen_jit(x->s, x->gpu, problem, NULL, &x->loaded);
}

/* Inputs of ones, and the workspace that a launch needs, with its control part zeroed once. */
static ptxgen_status allocate(struct state *x, const ptxgen_arguments *args)
{
    static float ones[N];

    for (int i = 0; i < N; i++)
        ones[i] = 1;
    for (int i = 0; i < x->ninputs; i++) {
        TRY(ptxgen_gpu_alloc(x->s, x->gpu, sizeof ones, &x->in[i]));
        TRY(ptxgen_gpu_write(x->s, x->gpu, x->in[i], ones, sizeof ones));
    }
    TRY(ptxgen_gpu_alloc(x->s, x->gpu, sizeof(float), &x->out));
    TRY(ptxgen_workspace_query(x->s, x->loaded, args, &x->workspace));
    TRY(ptxgen_gpu_alloc(x->s, x->gpu, x->workspace.control_bytes, &x->workspace.control));
    TRY(ptxgen_gpu_alloc(x->s, x->gpu, x->workspace.scratch_bytes, &x->workspace.scratch));
    return ptxgen_workspace_reset(x->s, x->loaded, &x->workspace, x->stream);
}

static ptxgen_status run(struct state *x, const char *path, float *result)
{
    const int64_t n = N;
    ptxgen_arguments args = { &n, (const void *const *)x->in, &x->out, NULL };

    TRY(ptxgen_gpu_open(x->s, PTXGEN_GPU_CURRENT, &x->gpu));
    TRY(ptxgen_stream_create(x->s, x->gpu, &x->stream));
    TRY(compile(x, path));
    TRY(allocate(x, &args));
    TRY(ptxgen_prepare(x->s, x->loaded, &args, x->stream));

    TRY(ptxgen_capture_begin(x->s, x->gpu, x->stream));
    TRY(ptxgen_launch(x->s, x->loaded, &args, x->stream, &x->workspace));
    TRY(ptxgen_capture_end(x->s, x->gpu, x->stream, &x->graph));

    for (int i = 0; i < REPLAYS; i++)
        TRY(ptxgen_graph_launch(x->s, x->gpu, x->graph, x->stream));
    TRY(ptxgen_stream_wait(x->s, x->gpu, x->stream));
    return ptxgen_gpu_read(x->s, x->gpu, result, x->out, sizeof *result);
}

static void finish(struct state *x)
{
    if (x->gpu) {
        ptxgen_graph_destroy(x->gpu, x->graph);
        ptxgen_loaded_destroy(x->loaded);
        for (int i = 0; i < INPUTS_MAX; i++)
            ptxgen_gpu_free(x->gpu, x->in[i]);
        ptxgen_gpu_free(x->gpu, x->out);
        ptxgen_gpu_free(x->gpu, x->workspace.control);
        ptxgen_gpu_free(x->gpu, x->workspace.scratch);
        ptxgen_stream_destroy(x->gpu, x->stream);
    }
    ptxgen_gpu_close(x->gpu);
    ptxgen_session_destroy(x->s);
}

int main(int argc, char **argv)
{
    struct state x = { 0 };
    ptxgen_status status;
    float result = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: capture_graph SPEC\n");
        return 2;
    }
    if (ptxgen_session_create(&x.s) != PTXGEN_OK)
        return EXIT_FAILURE;
    status = run(&x, argv[1], &result);
    if (status == PTXGEN_OK) {
        printf("after %d replays: %g\n", REPLAYS, result);
    } else {
        char *text = ptxgen_diagnostics_text(x.s, 0);

        fprintf(stderr, "%s\n%s", ptxgen_status_text(status), text ? text : "");
        ptxgen_free(text);
    }
    finish(&x);
    return status == PTXGEN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
