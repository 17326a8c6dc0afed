/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - problems on all devices against the reference, bit for bit: all numbers are such that nothing rounds.
 *
 * Each is run with even, uneven and empty parts, or with blocks that ranks have in turn; on the stream and three times as
 * a graph.
 */
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

enum { SPLITS = 4, REPLAYS = 3 };

struct subject {
    const char *label, *spec, *split;
    int64_t size[3]; /* of the whole */
    int64_t steps;   /* of the param of that name; 0: there is none */
    int64_t block;   /* that ranks have in turn; 0: consecutive parts */
};

#define SCAN(rest) "kind: scan\ninputs: {x: 'i32[n]'}\noperator: add\n" rest "outputs: {y: 'i32[n]', t: i32}\n"
#define FIVE(boundary)                                                                                                 \
    "kind: stencil\ninputs: {u: 'f32[n, m]'}\nparams: {steps: {type: i32, value: 1}}\nboundary: " boundary             \
    "\noutputs: {v: {type: 'f32[n, m]', value: '0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])'}}\n"                 \
    "iterate: {steps: steps, feedback: {u: v}}\n"
static const char sum[] = "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {s: f32}\n";
static const char rows[] = "kind: reduce\ninputs: {x: 'i32[m, n]'}\nover: n\noperator: add\noutputs: {s: 'i32[m]'}\n";
static const char columns[] =
    "kind: reduce\ninputs: {x: 'i32[n, m]'}\nover: n\noperator: add\ninit: 5\noutputs: {s: 'i32[m]'}\n";
static const char pieces[] =
    "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {s: f32}\ndeterminism: run\n";
static const char seven[] =
    "kind: stencil\ninputs: {u: 'f64[n, m, l]'}\nboundary: clamp\noutputs: {v: {type: 'f64[n, m, l]', value: "
    "'u[-1, 0, 0] + u[1, 0, 1] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[2, 0, 1] - 6 * u[0, 0, 0]'}}\n";
#define CROSS(boundary)                                                                                                \
    "kind: stencil\ninputs: {u: 'i32[n, m]'}\nparams: {steps: {type: i32, value: 1}}\nboundary: " boundary             \
    "\noutputs: {v: {type: 'i32[n, m]', value: 'u[-1, 0] - 3 * u[1, 0] + u[0, -1] - u[0, 1]'}}\n"                      \
    "iterate: {steps: steps, feedback: {u: v}}\n"
static const char steps7[] =
    "kind: stencil\ninputs: {u: 'f32[n, m, l]'}\nparams: {steps: {type: i32, value: 1}}\nboundary: clamp\n"
    "outputs: {v: {type: 'f32[n, m, l]', value: '0.125 * (u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + "
    "u[0, 0, -1] + u[0, 0, 1]) + 0.25 * u[0, 0, 0]'}}\niterate: {steps: steps, feedback: {u: v}}\n";
static const char change[] =
    "kind: stencil\ninputs: {u: 'f64[n]'}\nboundary: {constant: 2.0}\n"
    "reductions: {change: {map: '(v - u) * (v - u)', operator: add}}\n"
    "outputs: {v: {type: 'f64[n]', value: '0.5 * (u[-2] + u[1])'}, norm: {type: f64, value: change}}\n";

/* What is greatest spreads until nothing changes; ends beside the part, or results that ranks combine. */
#define SPREADS "value: 'max(max(u[-1, 0], u[1, 0]), max(u, max(u[0, -1], u[0, 1])))'"
#define FLOOD(loop)                                                                                                    \
    "inputs: {u: 'i32[n, m]'}\nparams: {steps: {type: i32, value: 1}}\nstages:\n"                                      \
    "  grow: {kind: stencil, boundary: clamp, reductions: {r: {map: next - u, operator: add}},\n"                      \
    "         outputs: {next: {type: 'i32[n, m]', " SPREADS "}, grown: {type: i32, value: r}}}\n"                      \
    "outputs: [next, grown]\niterate: {steps: steps, feedback: {u: next}, until: grown == 0" loop "}\n"
#define FLOOD_APART(loop)                                                                                              \
    "inputs: {u: 'i32[n, m]'}\nparams: {steps: {type: i32, value: 1}}\nfuse: false\nstages:\n"                         \
    "  grow: {kind: stencil, boundary: clamp, outputs: {next: {type: 'i32[n, m]', " SPREADS "}}}\n"                    \
    "  count: {kind: reduce, inputs: [u, next], map: next - u, operator: add, outputs: {grown: i32}}\n"                \
    "outputs: [next, grown]\niterate: {steps: steps, feedback: {u: next}, until: grown == 0" loop "}\n"

static const struct subject subjects[] = {
    { "sum", sum, "n", { 1000003 }, 0, 0 },
    { "sum, determinism: run", pieces, "n", { 100003 }, 0, 0 },
    { "mss", "mss", "n", { 200001 }, 0, 0 },
    { "argmin", "argmin", "n", { 200001 }, 0, 0 },
    { "rows", rows, "n", { 33, 5001 }, 0, 0 },
    { "columns", columns, "n", { 5001, 33 }, 0, 0 },
    { "kept rows", rows, "m", { 501, 333 }, 0, 0 },
    { "scan_sum", "scan_sum", "n", { 300007 }, 0, 0 },
    { "scan", SCAN(""), "n", { 1000003 }, 0, 0 },
    { "scan, reverse, exclusive", SCAN("direction: reverse\nmode: exclusive\ninit: 7\n"), "n", { 1000003 }, 0, 0 },
    { "5 points, clamp", FIVE("clamp"), "n", { 203, 517 }, 4, 0 },
    { "5 points, wrap", FIVE("wrap"), "n", { 203, 517 }, 5, 0 },
    { "5 points, wide", FIVE("wrap"), "n", { 67, 40001 }, 5, 0 },
    { "5 points, wrap, 1 step", FIVE("wrap"), "n", { 515, 2048 }, 1, 0 },
    { "5 points, clamp, 1 step, odd rows", FIVE("clamp"), "n", { 203, 4099 }, 1, 0 },
    { "5 points, clamp, 15 steps, odd rows", CROSS("clamp"), "n", { 1203, 2051 }, 15, 0 },
    { "5 points, wrap, 24 steps", CROSS("wrap"), "n", { 1502, 4096 }, 24, 0 },
    { "7 points, clamp, 5 steps", steps7, "n", { 530, 256, 256 }, 5, 0 },
    { "7 points, 1 step", seven, "n", { 150, 67, 132 }, 0, 0 },
    { "5 points, interior", FIVE("interior"), "n", { 203, 517 }, 3, 0 },
    { "5 points, constant", FIVE("{constant: 3.0}"), "n", { 203, 517 }, 4, 0 },
    { "5 points along rows", FIVE("wrap"), "m", { 103, 217 }, 3, 0 },
    { "stencil with a sum", change, "n", { 5001 }, 0, 0 },
    { "scan, blocks", SCAN(""), "n", { 1000003 }, 0, 65536 },
    { "scan, reverse, exclusive, blocks",
      SCAN("direction: reverse\nmode: exclusive\ninit: 7\n"),
      "n",
      { 300007 },
      0,
      16 * 1024 },
    { "mss, blocks", "mss", "n", { 200001 }, 0, 4096 },
    { "columns, blocks", columns, "n", { 5001, 33 }, 0, 64 },
    { "sum, determinism: run, blocks", pieces, "n", { 100003 }, 0, 1024 },
    { "until", FLOOD(""), "n", { 5001, 3 }, 500, 0 },
    { "until, after 7 steps", FLOOD(""), "n", { 5001, 3 }, 7, 0 },
    { "until, ends beside the part", FLOOD_APART(""), "n", { 5001, 3 }, 500, 0 },
    { "until, every third step", FLOOD(", check_every: 3"), "n", { 5001, 3 }, 500, 0 },
    { "until, every fourth step, 7 steps", FLOOD_APART(", check_every: 4"), "n", { 5001, 3 }, 7, 0 },
    { "until, the host decides", FLOOD(" or step < 0"), "n", { 5001, 3 }, 500, 0 },
};

/* A subject on the host, and what ranks share of it. */
struct job {
    const struct subject *of;
    ptxgen_problem *problem; /* of rank 0 */
    int64_t size[3];
    ptxgen_value param[4];
    void *input[ARRAYS_MAX], *output[ARRAYS_MAX]; /* the reference's results */
    int ninputs, noutputs, split;
    int64_t first[RANKS_MAX + 1];
    ptxgen_dist *dist[RANKS_MAX];
};

/* ---- the whole ---------------------------------------------------------------------------------- */
static ptxgen_array_info array_of(const struct job *j, int i)
{
    ptxgen_array_info a;
    if (i < j->ninputs)
        ptxgen_problem_input(j->problem, i, &a);
    else
        ptxgen_problem_output(j->problem, i - j->ninputs, &a);
    return a;
}

static size_t bytes_of(const ptxgen_array_info *a, const int64_t *size)
{
    return (size_t)ptxgen_array_elements(a, size) * a->element_size;
}

/* Small integers: sums and products by powers of two are exact. */
static void *make_data(const ptxgen_array_info *a, const int64_t *size, uint64_t seed)
{
    const size_t bytes = bytes_of(a, size);
    char *data = calloc(1, bytes + 1);
    for (size_t at = 0; at < bytes; at += a->element_size)
        for (int f = 0; f < a->field_count; f++) {
            const int64_t x = (int64_t)((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 60) - 8;
            ptxgen_value_store(a->field_type[f], data + at + a->field_offset[f],
                               a->field_type[f] >= PTXGEN_F16 ? (ptxgen_value){ .f = (double)x }
                                                              : (ptxgen_value){ .i = x });
        }
    return data;
}

static bool begin(struct world *w, struct job *j, const struct subject *of)
{
    struct rank *r = &w->rank[0];
    *j = (struct job){ .of = of, .problem = read_spec(r, of->spec) };
    if (!j->problem)
        return false;
    memcpy(j->size, of->size, sizeof j->size);
    j->ninputs = ptxgen_problem_input_count(j->problem);
    j->noutputs = ptxgen_problem_output_count(j->problem);
    j->param[0].i = of->steps;
    for (int i = 0; i < ptxgen_problem_size_count(j->problem); i++)
        if (!strcmp(ptxgen_problem_size_name(j->problem, i), of->split))
            j->split = i;
    for (int i = 0; i < j->ninputs + j->noutputs; i++) {
        const ptxgen_array_info a = array_of(j, i);
        *(i < j->ninputs ? &j->input[i] : &j->output[i - j->ninputs]) = make_data(&a, j->size, 99u + (unsigned)i);
    }
    const ptxgen_arguments args = { j->size, (const void *const *)j->input, j->output, j->param };
    return ptxgen_evaluate(r->s, j->problem, &args) == PTXGEN_OK;
}

/* Even, uneven, an empty first and an empty last part. */
static void cut(const struct world *w, struct job *j, int way)
{
    const int64_t n = j->size[j->split], block = j->of->block;
    for (int r = 0; r <= w->ranks; r++) {
        int64_t at = n * r / w->ranks;
        if (way == 1)
            at = r == 0 ? 0 : r == w->ranks ? n : at / 3 + 1;
        if (way == 2)
            at = r < 2 ? 0 : n * (r - 1) / (w->ranks - 1);
        if (way == 3)
            at = r >= w->ranks - 1 ? n : n * r / (w->ranks - 1);
        if (block && r) /* what rank r - 1 has */
            at = j->first[r - 1] + n / block / w->ranks * block +
                 (n / block % w->ranks >= r       ? block
                  : n / block % w->ranks == r - 1 ? n % block
                                                  : 0);
        j->first[r] = at;
    }
}

/* Between an array of the whole and that of a part; out: compare what the part has.  False: they differ. */
static bool part(const struct rank *r, const ptxgen_array_info *a, char *whole, char *of_part, bool out)
{
    const struct job *j = r->job;
    const int ranks = r->world->ranks;
    int64_t outer = 1, inner = (int64_t)a->element_size, extent = 1, first = 0, count = 1;
    bool seen = false, same = true;
    for (int d = 0; d < a->rank; d++) {
        const int64_t n = (a->size_index[d] < 0 ? 0 : j->size[a->size_index[d]]) + a->size_add[d];
        if (a->size_index[d] == j->split) {
            seen = true;
            extent = n;
            first = j->of->block ? j->of->block * r->number : j->first[r->number];
            count = j->first[r->number + 1] - j->first[r->number];
        } else if (seen) {
            inner *= n;
        } else {
            outer *= n;
        }
    }
    const int64_t block = seen && j->of->block ? j->of->block : count;
    for (int64_t i = 0; i < outer; i++)
        for (int64_t at = 0, row = first; at < count; at += block, row += block * ranks) {
            const size_t bytes = (size_t)((count - at < block ? count - at : block) * inner);
            char *from = whole + (i * extent + row) * inner, *to = of_part + (i * count + at) * inner;
            if (out)
                same &= !memcmp(from, to, bytes);
            else
                memcpy(to, from, bytes);
        }
    return same;
}

/* ---- a rank ------------------------------------------------------------------------------------- */
static bool load(struct rank *r)
{
    struct job *j = r->job;
    ptxgen_dist_options o = PTXGEN_DIST_OPTIONS_INIT;
    o.split = j->of->split;
    o.block = j->of->block;
    ptxgen_problem *p = r->number ? read_spec(r, j->of->spec) : j->problem;
    const bool ok = p && ptxgen_dist_load(r->s, r->comm, p, &o, &j->dist[r->number]) == PTXGEN_OK;
    if (!ok)
        say(r, j->of->label);
    return ok;
}

static bool unload(struct rank *r)
{
    ptxgen_dist_destroy(((struct job *)r->job)->dist[r->number]);
    return true;
}

struct arrays {
    void *host[2 * ARRAYS_MAX], *device[2 * ARRAYS_MAX]; /* inputs, then outputs */
    size_t bytes[2 * ARRAYS_MAX];
    int64_t size[3];
};

static bool make_arrays(struct rank *r, struct arrays *m)
{
    const struct job *j = r->job;
    bool ok = true;
    memcpy(m->size, j->size, sizeof m->size);
    m->size[j->split] = j->first[r->number + 1] - j->first[r->number];
    for (int i = 0; i < j->ninputs + j->noutputs && ok; i++) {
        const ptxgen_array_info a = array_of(j, i);
        m->bytes[i] = bytes_of(&a, m->size);
        m->host[i] = calloc(1, m->bytes[i] + 1);
        if (i < j->ninputs)
            part(r, &a, j->input[i], m->host[i], false);
        ok = ptxgen_gpu_alloc(r->s, r->gpu, m->bytes[i], &m->device[i]) == PTXGEN_OK &&
             (i >= j->ninputs || ptxgen_gpu_write(r->s, r->gpu, m->device[i], m->host[i], m->bytes[i]) == PTXGEN_OK);
    }
    return ok;
}

/* Where `interior` leaves points alone, they hold what the reference's outputs held, which was data of their own. */
static bool fill_outputs(struct rank *r, struct arrays *m)
{
    const struct job *j = r->job;
    bool ok = true;
    for (int i = j->ninputs; i < j->ninputs + j->noutputs && ok; i++) {
        const ptxgen_array_info a = array_of(j, i);
        void *before = make_data(&a, j->size, 99u + (unsigned)i);
        part(r, &a, before, m->host[i], false);
        free(before);
        ok = ptxgen_gpu_write(r->s, r->gpu, m->device[i], m->host[i], m->bytes[i]) == PTXGEN_OK;
    }
    return ok;
}

static bool compare(struct rank *r, struct arrays *m, const char *how)
{
    struct job *j = r->job;
    bool ok = ptxgen_stream_wait(r->s, r->gpu, r->stream) == PTXGEN_OK;
    for (int i = j->ninputs; i < j->ninputs + j->noutputs && ok; i++) {
        const ptxgen_array_info a = array_of(j, i);
        ok = ptxgen_gpu_read(r->s, r->gpu, m->host[i], m->device[i], m->bytes[i]) == PTXGEN_OK;
        if (ok && !part(r, &a, j->output[i - j->ninputs], m->host[i], true)) {
            fprintf(stderr, "FAIL %s, rank %d, %s: '%s' differs from the reference\n", j->of->label, r->number, how,
                    a.name);
            return false;
        }
    }
    return ok;
}

static bool launch(struct rank *r, struct arrays *m, bool prepares)
{
    const struct job *j = r->job;
    const ptxgen_arguments args = { m->size, (const void *const *)m->device, m->device + j->ninputs, j->param };
    ptxgen_dist *dist = j->dist[r->number];
    if (r->number == 0)
        r->world->transport = ptxgen_dist_transport(dist);
    return (prepares ? ptxgen_dist_prepare(r->s, dist, &args, r->stream)
                     : ptxgen_dist_launch_on(r->s, dist, &args, r->stream)) == PTXGEN_OK;
}

/* Loops that end on a condition are graphs in the memory of the other devices alone; and where nothing reads `step`. */
static bool has_graphs(const struct rank *r)
{
    const struct job *j = r->job;
    const bool until = strstr(j->of->spec, "until: ") != NULL;
    return !until || (!strcmp(ptxgen_dist_transport(j->dist[r->number]), "peers") && !strstr(j->of->spec, "step < 0"));
}

static bool replay(struct rank *r, struct arrays *m)
{
    ptxgen_graph graph = NULL;
    if (!has_graphs(r))
        return true;
    bool ok = ptxgen_capture_begin(r->s, r->gpu, r->stream) == PTXGEN_OK;
    ok = launch(r, m, false) && ok;
    ok = ptxgen_capture_end(r->s, r->gpu, r->stream, &graph) == PTXGEN_OK && ok;
    for (int i = 0; i < REPLAYS && ok; i++)
        ok = fill_outputs(r, m) && ptxgen_graph_launch(r->s, r->gpu, graph, r->stream) == PTXGEN_OK &&
             compare(r, m, "graph");
    ptxgen_graph_destroy(r->gpu, graph);
    return ok;
}

static bool run(struct rank *r)
{
    struct arrays m = { .host = { NULL } };
    bool ok = make_arrays(r, &m) && fill_outputs(r, &m) && launch(r, &m, true) && launch(r, &m, false) &&
              compare(r, &m, "stream") && replay(r, &m);
    if (!ok)
        say(r, ((struct job *)r->job)->of->label);
    for (int i = 0; i < 2 * ARRAYS_MAX; i++) {
        free(m.host[i]);
        ptxgen_gpu_free(r->gpu, m.device[i]);
    }
    return ok;
}

static bool check(struct world *w, const struct subject *of)
{
    struct job j;
    bool ok = begin(w, &j, of) && all_ranks(w, load, &j);
    for (int way = 0; way < (of->block ? 1 : SPLITS) && ok; way++) {
        cut(w, &j, way);
        ok = all_ranks(w, run, &j);
        if (!ok)
            fprintf(stderr, "FAIL %s: parts %d\n", of->label, way);
    }
    all_ranks(w, unload, &j);
    for (int i = 0; i < ARRAYS_MAX; i++) {
        free(j.input[i]);
        free(j.output[i]);
    }
    return ok;
}

void check_all(struct world *w)
{
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        const bool ok = check(w, &subjects[i]);
        printf("%-4s %s (%s)\n", ok ? "ok" : "FAIL", subjects[i].label, w->transport);
        fflush(stdout);
        w->failed += !ok;
    }
}
