/* SPDX-License-Identifier: Apache-2.0 */
/* graphs.c - stages in CUDA graphs: a loop that ends on a condition, started by launches and captured, and branches.
 *
 * A one spreads from a corner of a grid of zeros to the neighbours, a step at a time, until nothing changes; the steps
 * are counted by the program itself.  So everything is exact, and known for every number of steps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_tests.h"

static const char spread[] =
    "inputs: {u: 'i32[m, n]', count: 'i32[one]'}\nparams: {steps: i32}\nstages:\n"
    "  spread:\n    kind: stencil\n    boundary: clamp\n"
    "    outputs: {next: {type: 'i32[m, n]', value: 'max(max(u, u[-1, 0]), max(max(u[1, 0], u[0, -1]), u[0, 1]))'}}\n"
    "  changes: {kind: reduce, map: 'if next != u then 1 else 0', operator: add, outputs: {changed: i32}}\n"
    "  tick: {kind: map, outputs: {more: {type: 'i32[one]', value: count + 1}}}\n"
    "outputs: [next, more, changed]\n"
    "iterate: {steps: steps, feedback: {u: next, count: more}, until: changed == 0, check_every: %d}\n";

static const char fork[] = "inputs: {x: 'i32[n]'}\nfuse: false\nstages:\n"
                           "  a: {kind: map, outputs: {p: {type: 'i32[n]', value: x * 2}}}\n"
                           "  b: {kind: scan, map: x, operator: add, outputs: {q: 'i32[n]'}}\n"
                           "  c: {kind: map, outputs: {y: {type: 'i32[n]', value: p + q}}}\n"
                           "  d: {kind: reduce, map: p, operator: max, outputs: {most: i32}}\n"
                           "outputs: [y, most]\niterate: {steps: 7, feedback: {x: y}}\n";

/* Arrays of a program on the device: inputs, then outputs. */
enum { GRAPH_ARRAYS = 5, LAUNCHES = 3 };
struct subject {
    struct suite *t;
    ptxgen_loaded *loaded;
    int ninputs, narrays;
    size_t bytes[GRAPH_ARRAYS];
    void *device[GRAPH_ARRAYS];
    ptxgen_arguments args;
};

static bool subject_begin(struct subject *x, const char *spec, const void *const *in)
{
    struct suite *t = x->t;
    bool ok = ptxgen_jit_string(t->s, t->gpu, spec, strlen(spec), "graphs", NULL, &x->loaded) == PTXGEN_OK;

    for (int i = 0; i < x->narrays && ok; i++)
        ok = ptxgen_gpu_alloc(t->s, t->gpu, x->bytes[i], &x->device[i]) == PTXGEN_OK &&
             (i >= x->ninputs || ptxgen_gpu_write(t->s, t->gpu, x->device[i], in[i], x->bytes[i]) == PTXGEN_OK);
    x->args.input = (const void *const *)x->device;
    x->args.output = x->device + x->ninputs;
    return ok && ptxgen_prepare(t->s, x->loaded, &x->args, t->stream[0]) == PTXGEN_OK;
}

static void subject_end(struct subject *x)
{
    for (int i = 0; i < x->narrays; i++)
        ptxgen_gpu_free(x->t->gpu, x->device[i]);
    ptxgen_loaded_destroy(x->loaded);
}

static bool poison(struct subject *x)
{
    struct suite *t = x->t;
    bool ok = true;

    for (int i = x->ninputs; i < x->narrays && ok; i++)
        ok = ptxgen_gpu_fill(t->s, t->gpu, x->device[i], POISON, x->bytes[i], t->stream[0]) == PTXGEN_OK;
    return ok;
}

/* Outputs are those of `expected`, which follow each other. */
static bool same(struct subject *x, const char *expected)
{
    struct suite *t = x->t;
    bool ok = ptxgen_stream_wait(t->s, t->gpu, t->stream[0]) == PTXGEN_OK;

    for (int i = x->ninputs; i < x->narrays && ok; i++) {
        char *host = malloc(x->bytes[i]);

        ok = host && ptxgen_gpu_read(t->s, t->gpu, host, x->device[i], x->bytes[i]) == PTXGEN_OK &&
             memcmp(host, expected, x->bytes[i]) == 0;
        expected += x->bytes[i];
        free(host);
    }
    return ok;
}

static bool launched(struct subject *x, const char *expected)
{
    bool ok = true;

    for (int i = 0; i < LAUNCHES && ok; i++)
        ok = poison(x) && ptxgen_launch(x->t->s, x->loaded, &x->args, x->t->stream[0], NULL) == PTXGEN_OK &&
             same(x, expected);
    return ok;
}

/* Two launches in one graph, which runs again and again. */
static bool captured(struct subject *x, const char *expected)
{
    struct suite *t = x->t;
    ptxgen_graph graph = NULL;
    bool ok = ptxgen_capture_begin(t->s, t->gpu, t->stream[0]) == PTXGEN_OK;

    for (int i = 0; i < 2 && ok; i++)
        ok = ptxgen_launch(t->s, x->loaded, &x->args, t->stream[0], NULL) == PTXGEN_OK;
    ok = ptxgen_capture_end(t->s, t->gpu, t->stream[0], &graph) == PTXGEN_OK && ok;
    for (int i = 0; i < LAUNCHES && ok; i++)
        ok = poison(x) && ptxgen_graph_launch(t->s, t->gpu, graph, t->stream[0]) == PTXGEN_OK && same(x, expected);
    ptxgen_graph_destroy(t->gpu, graph);
    return ok;
}

static void judge(struct subject *x, const char *spec, const void *const *in, const char *expected, const char *what,
                  int size)
{
    if (!subject_begin(x, spec, in))
        note_failure(x->t, "%s, size %d: cannot be prepared", what, size);
    else if (!launched(x, expected))
        note_failure(x->t, "%s, size %d: launched", what, size);
    else if (!captured(x, expected))
        note_failure(x->t, "%s, size %d: captured", what, size);
    else
        note_outcome(x->t, what, OUTCOME_PASSED);
    subject_end(x);
}

/* After so many steps at most, and where a multiple of `every` finds that nothing changes. */
static void run_loop(struct suite *t, int m, int n, int steps, int every)
{
    char spec[sizeof spread + 16];
    const int64_t size[] = { m, n, 1 };
    const ptxgen_value param = { .i = steps };
    const size_t grid = sizeof(int32_t) * (size_t)(m * n), word = sizeof(int32_t);
    const int enough = (m + n - 1 + every - 1) / every * every, taken = steps < enough ? steps : enough;
    struct subject x = { .t = t, .ninputs = 2, .narrays = 5, .bytes = { grid, word, grid, word, word } };
    int32_t *in = calloc(1, grid), *out = calloc(1, grid + 2 * word), none = 0;

    snprintf(spec, sizeof spec, spread, every);
    x.args.size = size;
    x.args.param = &param;
    if (in && out) {
        in[0] = 1;
        out[m * n] = taken;
        for (int i = 0; i < m; i++)
            for (int k = 0; k < n; k++) {
                out[i * n + k] = i + k <= taken;
                out[m * n + 1] += i + k == taken;
            }
        judge(&x, spec, (const void *const[]){ in, &none }, (const char *)out, "a loop until nothing changes", m * n);
    }
    free(in);
    free(out);
}

static void run_branches(struct suite *t, int n)
{
    const int64_t size = n;
    const size_t bytes = sizeof(int32_t) * (size_t)n;
    struct subject x = { .t = t, .ninputs = 1, .narrays = 3, .bytes = { bytes, bytes, sizeof(int32_t) } };
    int32_t *in = calloc(1, bytes), *out = calloc(1, bytes + sizeof *out);

    x.args.size = &size;
    for (int i = 0; i < n && in && out; i++)
        out[i] = in[i] = i * 7 % 11 - 5;
    for (int step = 0; step < 7 && in && out; step++) {
        uint32_t sum = 0;

        out[n] = INT32_MIN;
        for (int i = 0; i < n; i++) {
            const uint32_t twice = 2 * (uint32_t)out[i];

            sum += (uint32_t)out[i];
            out[n] = (int32_t)twice > out[n] ? (int32_t)twice : out[n];
            out[i] = (int32_t)(twice + sum);
        }
    }
    if (in && out)
        judge(&x, fork, (const void *const[]){ in }, (const char *)out, "branches", n);
    free(in);
    free(out);
}

void run_graphs(struct suite *t)
{
    static const struct {
        int m, n;
    } grids[] = { { 1, 1 }, { 3, 2 }, { 17, 23 }, { 64, 64 }, { 130, 257 } };

    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++)
        for (int steps = 1; steps < 8; steps++)
            for (int every = 1; every < 5; every++)
                run_loop(t, grids[i].m, grids[i].n, steps < 6 ? steps : 100000 + steps, every);
    run_branches(t, 1);
    run_branches(t, 1000);
    run_branches(t, 1000003);
}
