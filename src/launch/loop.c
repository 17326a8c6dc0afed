/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - stages that repeat until a condition holds, as nodes of a CUDA graph: the host takes no part in the loop.
 * Where the condition is read after each step:
 *
 *     step 0, decide
 *     while again:
 *         step 1, decide
 *         step 2, decide
 *     if odd: copy what step 1 has written last
 *
 * `decide` is a kernel of one thread: it reads the flag that the last stage has written, counts the step, and remembers
 * the end.  Steps 0 and 2 write the outputs, step 1 a second memory.  So step 2 need not wait for the decision about
 * step 1: where that one was the last, what step 2 has written is not used.  The decision is a branch of the graph
 * beside step 2, and only that about step 2 is waited for.
 *
 * Where the condition is read after every K steps, K > 1:
 *
 *     steps 0 to K - 1, decide
 *     while again:
 *         K steps, decide
 *     if the condition does not hold: the rest, as many steps as `steps` has beyond a multiple of K
 *
 * No other memory is needed then, and twins are copied where the last step has written them.  With an odd K, the body of
 * the loop copies them, so that it begins and ends alike.
 *
 * On several ranks the loop is such a graph on each of them, and they agree where a decision is waited for (loop_ranks.c).
 * All that is exchanged has its place in the order of the stream, so there are no branches.
 *
 * Conditional nodes need a driver of CUDA 12.4.  Where it is older, where an expression reads `step`, where K steps are
 * too many nodes, and where the driver refuses the graph, the launcher's walk (stages.c) reads the flag.
 */
#include <string.h>

#include "launch_graph.h"

enum { DRIVER_WITH_CONDITIONS = 12040, ALIGNMENT = 256, LAUNCHES_MAX = 1000 };

/* state[0]: decisions that count; state[1]: the loop has ended.
 * ptxgen_decide: first: state = {1, flag}; else, if it has not ended, ++state[0], and it ends with the flag or after
 * `most` decisions.  sets: again = not ended.  ptxgen_odd: odd = the last that counts is number 1, 3, ...
 * ptxgen_whether: condition = (the flag is set) == value.
 * The driver itself knows cudaGraphSetConditional. */
const char *const loop_code =
    ".version 8.4\n.target sm_75\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 condition, .param .b32 value);\n"
    ".visible .entry ptxgen_decide(.param .u64 flag, .param .u64 state, .param .u64 most, .param .u64 again,\n"
    "    .param .u32 sets, .param .u32 first)\n"
    "{\n"
    "    .reg .pred %first, %ended, %sets;\n    .reg .b16 %flag;\n    .reg .b32 %goes, %word;\n"
    "    .reg .b64 %at, %count, %end, %most, %condition;\n"
    "    ld.param.u64 %at, [flag];\n    ld.global.u8 %flag, [%at];\n"
    "    ld.param.u64 %at, [state];\n    ld.global.v2.u64 {%count, %end}, [%at];\n"
    "    ld.param.u32 %word, [first];\n    setp.ne.u32 %first, %word, 0;\n"
    "    selp.b64 %count, 0, %count, %first;\n    selp.b64 %end, 0, %end, %first;\n"
    "    setp.ne.u64 %ended, %end, 0;\n    @%ended bra SET;\n"
    "    add.u64 %count, %count, 1;\n    ld.param.u64 %most, [most];\n"
    "    setp.ge.s64 %ended, %count, %most;\n    setp.ne.or.u16 %ended, %flag, 0, %ended;\n"
    "    selp.b64 %end, 1, 0, %ended;\n    st.global.v2.u64 [%at], {%count, %end};\n"
    "SET:\n"
    "    ld.param.u32 %word, [sets];\n    setp.eq.u32 %sets, %word, 0;\n    @%sets bra DONE;\n"
    "    selp.b32 %goes, 0, 1, %ended;\n    ld.param.u64 %condition, [again];\n"
    "    { .param .b64 c; .param .b32 v; st.param.b64 [c], %condition; st.param.b32 [v], %goes;\n"
    "      call.uni cudaGraphSetConditional, (c, v); }\n"
    "DONE:\n    ret;\n}\n"
    ".visible .entry ptxgen_odd(.param .u64 state, .param .u64 odd)\n"
    "{\n"
    "    .reg .b32 %odd;\n    .reg .b64 %at, %count, %condition;\n"
    "    ld.param.u64 %at, [state];\n    ld.global.u64 %count, [%at];\n    sub.u64 %count, %count, 1;\n"
    "    and.b64 %count, %count, 1;\n    cvt.u32.u64 %odd, %count;\n    ld.param.u64 %condition, [odd];\n"
    "    { .param .b64 c; .param .b32 v; st.param.b64 [c], %condition; st.param.b32 [v], %odd;\n"
    "      call.uni cudaGraphSetConditional, (c, v); }\n"
    "    ret;\n}\n"
    ".visible .entry ptxgen_whether(.param .u64 flag, .param .u32 value, .param .u64 condition)\n"
    "{\n"
    "    .reg .pred %set, %same;\n    .reg .b16 %flag;\n    .reg .b32 %value, %goes;\n    .reg .b64 %at, %condition;\n"
    "    ld.param.u64 %at, [flag];\n    ld.global.u8 %flag, [%at];\n    setp.ne.u16 %set, %flag, 0;\n"
    "    ld.param.u32 %value, [value];\n    setp.eq.xor.u32 %same, %value, 0, %set;\n"
    "    selp.b32 %goes, 1, 0, %same;\n    ld.param.u64 %condition, [condition];\n"
    "    { .param .b64 c; .param .b32 v; st.param.b64 [c], %condition; st.param.b32 [v], %goes;\n"
    "      call.uni cudaGraphSetConditional, (c, v); }\n"
    "    ret;\n}\n";

/* ---- memory ---------------------------------------------------------------------------------- */
static bool is_fed(const struct prog_stages *p, int array)
{
    bool fed = false;

    for (int i = 0; i < p->nfeedback; i++)
        fed |= p->feedback[i].output == array;
    return fed;
}

static int64_t take(int64_t *bytes, int64_t more)
{
    const int64_t at = *bytes;

    *bytes += (more + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

static int64_t output_bytes(const struct prog_stages *p, int output, const int64_t *size)
{
    const struct prog_array *a = &p->shape->output[output];

    return prog_array_elements(a, size) * a->stride;
}

bool loop_lay_out(const struct prog_stages *p, const struct run_args *args, int ranks, struct loop_place *out)
{
    const bool each = p->check_every == 1;
    struct stages_layout walked = { 0 }; /* the host walks there, too, and leaves the words alone that are told */
    const char *why;
    const int64_t steps = stages_steps(p, args->param, &why);

    out->p = *p;
    out->p.feedback = out->feedback;
    for (int i = 0; i < p->nfeedback; i++) {
        out->feedback[i] = p->feedback[i];
        out->feedback[i].twin |= each;
    }
    out->decisions = steps / p->check_every;
    out->rest = (int)(steps % p->check_every);
    if (!stages_place(&out->p, args->size, &out->layout))
        return false;
    if (ranks && !stages_place(p, args->size, &walked))
        return false;
    out->bytes = walked.bytes > out->layout.bytes ? walked.bytes : out->layout.bytes;
    out->state = take(&out->bytes, LOOP_STATE_BYTES);
    out->told = take(&out->bytes, (ranks + (ranks > 0)) * (int64_t)RANK_LOOP_TELLS);
    memset(out->output, -1, sizeof out->output);
    for (int i = 0; i < p->narrays; i++) {
        const struct stage_array *a = &p->array[i];

        if (each && a->place == PLACE_OUTPUT && !is_fed(p, i))
            out->output[a->index] = take(&out->bytes, output_bytes(p, a->index, args->size));
        if (out->bytes > INT64_MAX / 2)
            return false;
    }
    return true;
}

/* ---- nodes ----------------------------------------------------------------------------------- */
/* all: the condition's stage, too. */
static bool step(struct staging *m, const struct loop_place *place, int number, bool all)
{
    const struct stages_doer doer = { m, staging_run, staging_copy, NULL, all };
    void *output[STAGE_ARRAYS_MAX];
    struct run_args args = *m->args;

    for (int i = 0; i < place->p.shape->noutputs; i++) {
        const bool second = number % 2 && place->output[i] >= 0;

        output[i] = second ? m->memory + place->output[i] : args.output[i];
    }
    args.output = output;
    return stages_step(&place->p, &args, &place->layout, m->memory, number, &doer);
}

bool loop_single(const struct staging *m, cu_function f, void **params)
{
    return CU(m->f, &m->gpu->cu, LaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, m->stream, params, NULL));
}

void *loop_flag(const struct staging *m, const struct loop_place *place)
{
    return m->memory + place->layout.offset[place->p.until];
}

/* sets: what follows waits for the decision. */
static bool decide(struct staging *m, const struct loop_place *place, bool is_first, bool is_waited_for,
                   cu_condition again)
{
    void *flag = loop_flag(m, place), *state = m->memory + place->state;
    const struct touched memory[] = { { flag, 1, false }, { state, LOOP_STATE_BYTES, true } };
    int64_t most = place->decisions;
    unsigned sets = is_waited_for, first = is_first;

    if (m->ranks)
        return ++m->told > 0 && (!is_waited_for || loop_agree(m, place, is_first, again));
    return branches_before(m->branches, BRANCH_DECIDE, memory, 2, m->f) &&
           loop_single(m, m->code->decide, (void *[]){ &flag, &state, &most, &again, &sets, &first }) &&
           branches_after(m->branches, BRANCH_DECIDE, m->f);
}

/* Twins into the outputs, where an odd step was the last. */
static bool bring_twins(struct staging *m, const struct loop_place *place)
{
    const struct stages_doer doer = { m, staging_run, staging_copy, NULL, false };

    return stages_twins_home(&place->p, m->args, &place->layout, m->memory, &doer);
}

/* What follows each other in one capture. */
struct batch {
    int first, count; /* steps */
    bool decides;     /* after those steps that are checked */
    bool brings;      /* the twins home, after the last step */
};

static bool add_batch(struct staging *m, const struct loop_place *place, struct growing *g, const struct batch *b,
                      cu_condition again)
{
    const int every = place->p.check_every;
    bool ok;

    m->stream = g->stream;
    if (!graph_open(g, m->f))
        return false;
    m->branches = m->ranks ? NULL : branches_new(g->cu, g->stream, m->f);
    m->told = 0;
    ok = m->branches || m->ranks;
    for (int i = b->first; i < b->first + b->count && ok; i++) {
        const bool decides = b->decides && (i + 1) % every == 0, last = i == b->first + b->count - 1;

        ok = step(m, place, i, false) && (!decides || decide(m, place, b->first == 0, last, again));
    }
    ok = ok && (!b->brings || bring_twins(m, place)) && (!m->branches || branches_join(m->branches, m->f));
    branches_free(m->branches);
    m->branches = NULL;
    return graph_close(g, ok, m->f);
}

static bool add_condition(struct staging *m, struct growing *g, int kind, cu_condition condition, struct growing *body)
{
    *body = (struct growing){ .cu = g->cu, .stream = m->inner };
    return graph_add_condition(g, kind, condition, m->gpu->context, &body->graph, m->f);
}

static bool condition_new(const struct staging *m, cu_graph graph, cu_condition *out)
{
    return CU(m->f, &m->gpu->cu, ConditionCreate(out, graph, m->gpu->context, 0, 0));
}

/* What step 1 has written goes where the caller wants it. */
static bool copy_second(struct staging *m, const struct loop_place *place)
{
    const struct prog_stages *p = &place->p;

    if (!bring_twins(m, place))
        return false;
    for (int i = 0; i < p->shape->noutputs; i++) {
        const int64_t bytes = output_bytes(p, i, m->args->size);

        if (place->output[i] >= 0 && bytes > 0 &&
            !staging_copy(m, m->args->output[i], m->memory + place->output[i], bytes))
            return false;
    }
    return true;
}

static bool bring_home(struct staging *m, const struct loop_place *place, struct growing *g)
{
    void *state = m->memory + place->state;
    struct growing body;
    cu_condition odd;

    m->stream = g->stream;
    if (!condition_new(m, g->graph, &odd) || !graph_open(g, m->f) ||
        !graph_close(g, loop_single(m, m->code->odd, (void *[]){ &state, &odd }), m->f) ||
        !add_condition(m, g, CU_CONDITION_IF, odd, &body))
        return false;
    m->stream = body.stream;
    return graph_open(&body, m->f) && graph_close(&body, copy_second(m, place), m->f);
}

static bool fill_each(struct staging *m, const struct loop_place *place, struct growing *g, cu_condition again)
{
    struct growing body;

    return add_batch(m, place, g, &(struct batch){ 0, 1, true, false }, again) &&
           add_condition(m, g, CU_CONDITION_WHILE, again, &body) &&
           add_batch(m, place, &body, &(struct batch){ 1, 2, true, false }, again) && bring_home(m, place, g);
}

/* A batch where the condition's byte, as the loop has left it, is `value`. */
static bool add_batch_if(struct staging *m, const struct loop_place *place, struct growing *g, unsigned value,
                         const struct batch *b)
{
    void *flag = loop_flag(m, place);
    struct growing body;
    cu_condition whether;

    m->stream = g->stream;
    return condition_new(m, g->graph, &whether) && graph_open(g, m->f) &&
           graph_close(g, loop_single(m, m->code->whether, (void *[]){ &flag, &value, &whether }), m->f) &&
           add_condition(m, g, CU_CONDITION_IF, whether, &body) && add_batch(m, place, &body, b, whether);
}

static bool has_twins(const struct loop_place *place)
{
    bool has = false;

    for (int i = 0; i < place->p.nfeedback; i++)
        has |= place->feedback[i].twin;
    return has;
}

/* The rest comes last: it may use the byte's memory. */
static bool fill_every(struct staging *m, const struct loop_place *place, struct growing *g, cu_condition again)
{
    const int every = place->p.check_every, rest = place->rest;
    const bool twins = has_twins(place), even = every % 2 == 0;
    const struct batch home = { every, 0, false, true },
                       after = { every, rest, false, twins && (every + rest - 1) % 2 };
    struct growing body;

    return add_batch(m, place, g, &(struct batch){ 0, every, true, false }, again) &&
           add_condition(m, g, CU_CONDITION_WHILE, again, &body) &&
           add_batch(m, place, &body, &(struct batch){ every, every, true, twins && !even }, again) &&
           (!twins || !even || (rest ? add_batch_if(m, place, g, 1, &home) : add_batch(m, place, g, &home, again))) &&
           (!rest || add_batch_if(m, place, g, 0, &after));
}

bool loop_fill(struct staging *m, const struct loop_place *place, struct growing *g)
{
    cu_condition again;

    return condition_new(m, g->graph, &again) &&
           (place->p.check_every == 1 ? fill_each : fill_every)(m, place, g, again);
}

bool loop_prepare(struct staging *m, const struct loop_place *place)
{
    bool ok = true;

    for (int i = 0; i <= 2 && ok; i++)
        ok = step(m, place, i, true);
    return ok;
}

bool loop_first_steps(struct staging *m, const struct loop_place *place)
{
    bool ok = true;

    for (int i = 0; i < place->p.check_every && ok; i++)
        ok = step(m, place, i, false);
    return ok;
}

/* ---- the driver ------------------------------------------------------------------------------ */
static bool reads_step(const struct prog_stages *p)
{
    for (int i = 0; i < p->nstages; i++)
        for (int k = 0; k < p->stage[i].nparams; k++)
            if (p->stage[i].param[k] < 0)
                return true;
    return false;
}

static bool driver_can(const struct driver *cu)
{
    return cu->version >= DRIVER_WITH_CONDITIONS && cu->GraphCreate && cu->GraphAddNode && cu->ConditionCreate &&
           cu->BeginCaptureTo && cu->GetCaptureInfo && cu->UpdateCapture;
}

const char *loop_refuses(const struct ptxgen_gpu *gpu, const struct prog_stages *p)
{
    if (reads_step(p))
        return "an expression reads `step`";
    if (p->check_every > LAUNCHES_MAX / p->nstages)
        return "a graph has at most 1000 kernels of stages between two decisions";
    return driver_can(&gpu->cu) ? NULL : "loops inside of a graph need a driver of CUDA 12.4";
}

/* A driver may know the call and refuse it. */
static bool conditions_work(const struct ptxgen_gpu *gpu, struct fault *f)
{
    const struct driver *cu = &gpu->cu;
    cu_condition condition;
    cu_graph graph;
    bool ok;

    if (!CU(f, cu, GraphCreate(&graph, 0)))
        return false;
    ok = CU(f, cu, ConditionCreate(&condition, graph, gpu->context, 0, 0));
    cu->GraphDestroy(graph);
    return ok;
}

bool loop_load(const struct ptxgen_gpu *gpu, struct loop_code *c, struct fault *f)
{
    const struct driver *cu = &gpu->cu;

    return c->module || (conditions_work(gpu, f) && CU(f, cu, ModuleLoadDataEx(&c->module, loop_code, 0, NULL, NULL)) &&
                         CU(f, cu, ModuleGetFunction(&c->decide, c->module, "ptxgen_decide")) &&
                         CU(f, cu, ModuleGetFunction(&c->odd, c->module, "ptxgen_odd")) &&
                         CU(f, cu, ModuleGetFunction(&c->whether, c->module, "ptxgen_whether")));
}
