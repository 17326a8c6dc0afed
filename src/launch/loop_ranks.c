/* SPDX-License-Identifier: Apache-2.0 */
/* loop_ranks.c - a loop that ends on a condition, on several ranks: a graph on each of them (loop.c).
 *
 * What a rank tells the others is two flags, of one step and of the next, and whether it has failed; there the stages write
 * the condition.  Where a decision is waited for, the ranks exchange this, and each decides by the flags of rank 0: either
 * all begin another step, or none does.  The loop ends, too, where a rank says that it has failed, and after a wait for
 * another rank that was too long, as then exchanges do nothing.
 *
 * A graph is made for the arguments of a launch and kept.  While the caller captures, the nodes of the loop become part of
 * the caller's graph.
 */
#include <stdlib.h>

#include "base/session.h"
#include "exchange.h"
#include "launch_graph.h"

struct rank_loop {
    ptxgen_gpu *gpu;
    const struct prog_stages *p;
    char *memory; /* of the caller */
    struct kept kept;
    struct loop_code code;
    cu_module module;
    cu_function agree;
};

/* Where in what a rank tells. */
enum { FLAG_FIRST = 0, FAILED = 8, FLAG_SECOND = 16 };
_Static_assert(FLAG_SECOND + 16 == RANK_LOOP_TELLS, "flags are aligned to 16, as other arrays are");

/* state[0]: decisions that count; state[1]: 0, or why the loop has ended: 1: the condition holds, 2: there were `most`
 * decisions, 4: a rank in `all` says that it has failed, or *error is set; then *fault is set.
 * first: state = {0, 0}.  Then for each of `flags` flags of the first rank: if the loop has not ended, ++state[0], and it ends
 * with the flag, or after `most` decisions.  flag: the loop has ended by its condition or a failure.  again = not ended. */
const char *const loop_agree_code =
    ".version 8.4\n.target sm_75\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 condition, .param .b32 value);\n"
    ".visible .entry ptxgen_agree(.param .u64 all, .param .u32 ranks, .param .u64 state, .param .u64 flag,\n"
    "    .param .u64 error, .param .u64 fault, .param .u64 again, .param .u64 most, .param .u32 flags,\n"
    "    .param .u32 first)\n"
    "{\n"
    "    .reg .pred %p, %failed;\n    .reg .b16 %flag, %second;\n    .reg .b32 %ranks, %flags, %word, %goes;\n"
    "    .reg .b64 %at, %count, %end, %other, %late, %most, %condition;\n"
    "    ld.param.u64 %at, [all];\n    ld.param.u32 %ranks, [ranks];\n    mov.u64 %late, 0;\n"
    "    ld.global.u8 %flag, [%at];\n    ld.global.u8 %second, [%at + 16];\n"
    "RANK:\n"
    "    ld.global.u64 %other, [%at + 8];\n    or.b64 %late, %late, %other;\n    add.u64 %at, %at, 32;\n"
    "    sub.u32 %ranks, %ranks, 1;\n    setp.ne.u32 %p, %ranks, 0;\n    @%p bra RANK;\n"
    "    ld.param.u64 %at, [error];\n    ld.volatile.global.u32 %word, [%at];\n    setp.ne.u32 %p, %word, 0;\n"
    "    setp.ne.or.u64 %failed, %late, 0, %p;\n"
    "    ld.param.u64 %at, [state];\n    ld.global.v2.u64 {%count, %end}, [%at];\n    ld.param.u64 %most, [most];\n"
    "    ld.param.u32 %word, [first];\n    setp.ne.u32 %p, %word, 0;\n    selp.b64 %count, 0, %count, %p;\n"
    "    selp.b64 %end, 0, %end, %p;\n    ld.param.u32 %flags, [flags];\n"
    "FLAG:\n"
    "    setp.ne.u64 %p, %end, 0;\n    @%p bra DECIDED;\n    add.u64 %count, %count, 1;\n"
    "    setp.ge.s64 %p, %count, %most;\n    selp.b64 %end, 2, 0, %p;\n"
    "    setp.ne.u16 %p, %flag, 0;\n    selp.b64 %end, 1, %end, %p;\n"
    "    mov.b16 %flag, %second;\n    sub.u32 %flags, %flags, 1;\n    setp.ne.u32 %p, %flags, 0;\n    @%p bra FLAG;\n"
    "DECIDED:\n"
    "    selp.b64 %end, 4, %end, %failed;\n    st.global.v2.u64 [%at], {%count, %end};\n"
    "    ld.param.u64 %at, [fault];\n    @%failed st.volatile.global.u32 [%at], 1;\n"
    "    and.b64 %other, %end, 5;\n    setp.ne.u64 %p, %other, 0;\n    selp.b32 %word, 1, 0, %p;\n"
    "    ld.param.u64 %at, [flag];\n    st.global.u8 [%at], %word;\n"
    "    setp.eq.u64 %p, %end, 0;\n    selp.b32 %goes, 1, 0, %p;\n    ld.param.u64 %condition, [again];\n"
    "    { .param .b64 c; .param .b32 v; st.param.b64 [c], %condition; st.param.b32 [v], %goes;\n"
    "      call.uni cudaGraphSetConditional, (c, v); }\n"
    "    ret;\n}\n";

/* ---- the agreement --------------------------------------------------------------------------- */
static char *told(const struct staging *m) { return m->memory + m->place->told; }

/* The last stage writes the condition. */
bool loop_run_rank(struct staging *m, int stage, const struct run_args *given)
{
    struct run_args args = *given;
    void *flag = told(m) + (m->told ? FLAG_SECOND : FLAG_FIRST);

    if (stage == m->place->p.nstages - 1)
        args.output = &flag;
    m->status = m->ranks->run(m->ranks->user, stage, &args, m->stream, m->prepares);
    return m->status == PTXGEN_OK;
}

static bool tell(struct staging *m)
{
    m->status = m->ranks->gather(m->ranks->user, told(m), told(m) + RANK_LOOP_TELLS, RANK_LOOP_TELLS, m->stream);
    return m->status == PTXGEN_OK;
}

bool loop_agree(struct staging *m, const struct loop_place *place, bool is_first, cu_condition again)
{
    void *all = told(m) + RANK_LOOP_TELLS, *state = m->memory + place->state, *flag = loop_flag(m, place);
    unsigned ranks = (unsigned)m->ranks->ranks, flags = (unsigned)m->told, first = is_first;
    int64_t most = place->decisions;
    uint64_t error, fault;

    m->told = 0;
    exchange_late_at(m->ranks->exchange, &error, &fault);
    return tell(m) &&
           loop_single(m, m->agree,
                       (void *[]){ &all, &ranks, &state, &flag, &error, &fault, &again, &most, &flags, &first });
}

/* ---- what a rank keeps ----------------------------------------------------------------------- */
int64_t rank_loop_bytes(const ptxgen_gpu *gpu, const struct prog_stages *p, const struct run_args *args, int ranks)
{
    struct loop_place place;

    return !loop_refuses(gpu, p) && loop_lay_out(p, args, ranks, &place) ? place.bytes : 0;
}

static struct staging staging_of(struct rank_loop *x, struct ptxgen_session *s, const struct run_args *args,
                                 const struct loop_rank *how, const struct loop_place *place, struct fault *f)
{
    return (struct staging){ .s = s,
                             .gpu = x->gpu,
                             .code = &x->code,
                             .ranks = how,
                             .agree = x->agree,
                             .place = place,
                             .args = args,
                             .memory = x->memory,
                             .inner = x->kept.inner,
                             .f = f };
}

/* The graph for these arguments; NULL: it cannot be made, as *m->f or m->status says. */
static struct kept_graph *graph_for(struct rank_loop *x, struct staging *m, const struct loop_place *place,
                                    cu_stream stream)
{
    struct kept_graph *g = kept_find(&x->kept, &x->gpu->cu, x->p->shape, m->args, stream);

    return g && (g->exec || kept_make(m, place, CU_GRAPH_NODE_PRIORITY, &g->exec)) ? g : NULL;
}

/* In the gpu's context. */
static bool load(struct rank_loop *x, struct fault *f)
{
    const struct driver *cu = &x->gpu->cu;

    return loop_load(x->gpu, &x->code, f) && CU(f, cu, ModuleLoadDataEx(&x->module, loop_agree_code, 0, NULL, NULL)) &&
           CU(f, cu, ModuleGetFunction(&x->agree, x->module, "ptxgen_agree")) &&
           CU(f, cu, StreamCreate(&x->kept.inner, CU_STREAM_FLAG_NON_BLOCKING));
}

bool rank_loop_open(ptxgen_session *s, ptxgen_gpu *gpu, const struct prog_stages *p, const struct run_args *args,
                    void *memory, const struct loop_rank *how, struct rank_loop **out)
{
    struct rank_loop *x = *out = calloc(1, sizeof *x);
    struct fault f = { .text = "out of host memory" };
    struct loop_place place;
    bool pushed, ok = false;

    if (!x)
        return false;
    *x = (struct rank_loop){ .gpu = gpu, .p = p, .memory = memory };
    if (gpu_enter(gpu, &pushed, &f)) {
        if (load(x, &f) && loop_lay_out(p, args, how->ranks, &place)) {
            struct staging m = staging_of(x, NULL, args, how, &place, &f);

            ok = graph_for(x, &m, &place, NULL) != NULL;
        }
        gpu_leave(gpu, pushed);
    }
    if (!ok)
        session_log(s, PTXGEN_LOG_INFO, 0, "%s: the host reads the condition: %s", p->shape->name, f.text);
    return ok;
}

ptxgen_stream rank_loop_stream(const struct rank_loop *x) { return x->kept.inner; }

void rank_loop_close(struct rank_loop *x)
{
    struct fault f;
    bool pushed;

    if (x && gpu_enter(x->gpu, &pushed, &f)) {
        const struct driver *cu = &x->gpu->cu;

        cu->CtxSynchronize(); /* graphs that run in streams of the caller */
        kept_forget(&x->kept, cu);
        if (x->kept.inner)
            cu->StreamDestroy(x->kept.inner);
        if (x->code.module)
            cu->ModuleUnload(x->code.module);
        if (x->module)
            cu->ModuleUnload(x->module);
        gpu_leave(x->gpu, pushed);
    }
    free(x);
}

/* ---- launches -------------------------------------------------------------------------------- */
static bool launch(struct rank_loop *x, struct staging *m, const struct loop_place *place, cu_stream stream)
{
    const struct driver *cu = &x->gpu->cu;
    const struct kept_graph *graph;
    int capturing = CU_CAPTURE_NONE;
    struct growing g;

    if (!CU(m->f, cu, StreamIsCapturing(stream, &capturing)))
        return false;
    if (capturing != CU_CAPTURE_NONE)
        return graph_of_capture(&g, cu, stream, m->f) && loop_fill(m, place, &g);
    graph = graph_for(x, m, place, stream);
    return graph && CU(m->f, cu, GraphLaunch(graph->exec, stream));
}

ptxgen_status rank_loop_launch(ptxgen_session *s, struct rank_loop *x, const struct run_args *args,
                               const struct loop_rank *how, ptxgen_stream stream)
{
    struct fault f = { .status = PTXGEN_NO_MEMORY, .code = D_LAUNCH_ARGUMENT, .text = "out of host memory" };
    struct loop_place place = { 0 };
    struct staging m = staging_of(x, s, args, how, &place, &f);
    bool pushed, ok;

    if (!gpu_enter(x->gpu, &pushed, &f))
        return fault_report(s, &f);
    ok = loop_lay_out(x->p, args, how->ranks, &place) && launch(x, &m, &place, stream);
    gpu_leave(x->gpu, pushed);
    return ok ? PTXGEN_OK : m.status != PTXGEN_OK ? m.status : fault_report(s, &f);
}

void rank_loop_give_up(struct rank_loop *x, const struct run_args *args, const struct loop_rank *how,
                       ptxgen_stream stream)
{
    const struct driver *cu = &x->gpu->cu;
    struct fault f;
    struct loop_place place = { 0 };
    struct staging m = staging_of(x, NULL, args, how, &place, &f);
    bool pushed;

    m.stream = stream;
    if (!gpu_enter(x->gpu, &pushed, &f))
        return;
    if (loop_lay_out(x->p, args, how->ranks, &place) && loop_first_steps(&m, &place)) {
        const cu_pointer failed = (uintptr_t)(told(&m) + FAILED);

        cu->MemsetD8Async(failed, 1, 1, stream);
        tell(&m);
        cu->MemsetD8Async(failed, 0, 1, stream);
    }
    gpu_leave(x->gpu, pushed);
}
