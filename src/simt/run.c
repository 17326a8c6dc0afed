/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - what a launch does on the host: choose the case, lay out the workspace, walk the steps.
 *
 * The same walk as the GPU launcher's, over a simulated device: as many multiprocessors and resident blocks as the
 * options say, an sm_90 with its 227 KiB of shared memory per block.  Steps run one after the other; with `late`, a
 * kernel that is launched dependently runs together with its predecessor.
 */
#include "simt_impl.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICE_ARCH = 90, DEVICE_SHARED = 227 * 1024, WORKSPACE_ALIGN = 256 };

struct run {
    const struct simt_code *code;
    const struct program *p;
    const struct prog_case *taken;
    int case_index;
    const struct run_args *args;
    struct simt_control *control;
    struct exec *x;
    struct simt_report *report;
    struct formula_env env;
    int64_t sweep, sweeps; /* time steps: now, in all */
    /* one allocation: */
    const void **pointer; /* inputs, then outputs */
    int64_t *pointer_bytes;
    int64_t *param;
    int *resident;         /* per kernel */
    int64_t *offset;       /* per buffer */
    struct extent *extent; /* inputs and outputs, then buffers */
    struct grid *chain;
    void *memory;
    char *scratch;
    int64_t scratch_bytes;
};

static bool refuse(struct run *r, const char *why)
{
    report_plain(r->report, SIMT_CHECK, "%s", why);
    return false;
}

static bool no_memory(struct run *r)
{
    report_plain(r->report, SIMT_NO_MEMORY, "out of memory for the workspace of '%s'", r->p->name);
    return false;
}

/* ---- arrays ---------------------------------------------------------------------------------- */
size_t simt_array_bytes(const struct program *p, int i, const int64_t *size)
{
    const struct prog_array *a = i < p->ninputs ? &p->input[i] : &p->output[i - p->ninputs];
    const int64_t n = prog_array_elements(a, size);
    return n > 0 ? (size_t)n * (size_t)a->stride : 0;
}

/* What depends on the program alone, in one allocation. */
static bool allocate(struct run *r)
{
    const struct program *p = r->p;
    int kernels = 1, buffers = 1;
    for (int c = 0; c < p->ncases; c++) {
        kernels = p->cases[c].nkernels > kernels ? p->cases[c].nkernels : kernels;
        buffers = p->cases[c].nbuffers > buffers ? p->cases[c].nbuffers : buffers;
    }
    const size_t arrays = (size_t)(p->ninputs + p->noutputs) + 1, params = (size_t)p->nparams + 1;
    const size_t nb = (size_t)buffers, nk = (size_t)kernels;
    r->memory = calloc(1, CHAIN_MAX * sizeof *r->chain + (arrays + nb) * sizeof *r->extent +
                              arrays * (sizeof *r->pointer + sizeof *r->pointer_bytes) + params * sizeof *r->param +
                              nb * sizeof *r->offset + nk * sizeof *r->resident);
    if (!r->memory)
        return no_memory(r);
    r->chain = r->memory;
    r->extent = (struct extent *)(r->chain + CHAIN_MAX);
    r->pointer = (const void **)(r->extent + arrays + nb);
    r->pointer_bytes = (int64_t *)(r->pointer + arrays);
    r->param = r->pointer_bytes + arrays;
    r->offset = r->param + params;
    r->resident = (int *)(r->offset + nb);
    for (int k = 0; k < kernels; k++)
        r->resident[k] = r->x->options.resident;
    return true;
}

static bool take_arrays(struct run *r)
{
    const struct program *p = r->p;
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const bool input = i < p->ninputs;
        const struct prog_array *a = input ? &p->input[i] : &p->output[i - p->ninputs];
        if (prog_array_elements(a, r->args->size) < 0) {
            report_plain(r->report, SIMT_CHECK, "array '%s' has no valid shape at these sizes", a->name);
            return false;
        }
        r->pointer[i] = input ? r->args->input[i] : r->args->output[i - p->ninputs];
        r->pointer_bytes[i] = (int64_t)simt_array_bytes(p, i, r->args->size);
        if (!r->pointer[i] && r->pointer_bytes[i] > 0) {
            report_plain(r->report, SIMT_CHECK, "array '%s' is missing", a->name);
            return false;
        }
    }
    return true;
}

static bool select_case(struct run *r)
{
    for (int i = 0; i < r->p->nparams; i++)
        r->param[i] = r->args->param[i].i;
    r->env = (struct formula_env){ .size = r->args->size,
                                   .param = r->param,
                                   .sms = r->x->options.sms,
                                   .arch = DEVICE_ARCH,
                                   .smem = DEVICE_SHARED,
                                   .resident = r->resident,
                                   .pointer = r->pointer };
    const char *why = NULL;
    r->case_index = program_select(r->p, &r->env, &why);
    r->report->case_index = r->case_index;
    if (r->case_index < 0) {
        char refusal[sizeof r->report->text];
        if (!why)
            program_refusal(r->p, &r->env, refusal, sizeof refusal);
        return refuse(r, why ? why : refusal);
    }
    r->taken = &r->p->cases[r->case_index];
    return true;
}

/* ---- workspace ------------------------------------------------------------------------------- */
bool simt_control_reserve(struct simt_control *c, int64_t bytes)
{
    if (c->dirty && c->memory)
        memset(c->memory, 0, (size_t)c->bytes);
    c->dirty = false;
    if (bytes <= c->bytes)
        return true;
    /* All zeros is a valid state, so that what other cases left there need not be kept. */
    const size_t rounded = ((size_t)bytes + WORKSPACE_ALIGN - 1) / WORKSPACE_ALIGN * WORKSPACE_ALIGN;
    char *memory = aligned_alloc(WORKSPACE_ALIGN, rounded);
    if (!memory)
        return false;
    memset(memory, 0, rounded);
    free(c->memory);
    c->memory = memory;
    c->bytes = (int64_t)rounded;
    return true;
}

static bool overlaps_input(const struct run *r, const struct extent *e)
{
    for (int i = 0; i < r->p->ninputs; i++) {
        const char *at = r->pointer[i];
        if (at < e->at + e->bytes && e->at < at + r->pointer_bytes[i])
            return true;
    }
    return false;
}

/* With `uninit`, outputs and scratch remember what was written. */
static bool track(struct run *r, struct extent *e, bool continued)
{
    if (!r->x->options.uninit || continued || (e->kind == EXTENT_OUTPUT && overlaps_input(r, e)))
        return true;
    e->written = calloc(1, e->bytes / 8 + 1);
    return e->written || no_memory(r);
}

/* Outputs come before inputs: memory that is both may be written. */
static bool make_extents(struct run *r)
{
    const struct program *p = r->p;
    struct exec *x = r->x;
    x->extent = r->extent;
    x->size = r->args->size;
    x->nextents = 0;
    for (int i = 0; i < p->noutputs; i++) {
        struct extent *e = &r->extent[x->nextents++];
        *e = (struct extent){ (char *)r->args->output[i],
                              (size_t)r->pointer_bytes[p->ninputs + i],
                              EXTENT_OUTPUT,
                              p->output[i].name,
                              NULL,
                              NULL,
                              &p->output[i] };
        if (!track(r, e, p->output[i].continued))
            return false;
    }
    for (int i = 0; i < p->ninputs; i++)
        r->extent[x->nextents++] = (struct extent){ (char *)(uintptr_t)r->pointer[i],
                                                    (size_t)r->pointer_bytes[i],
                                                    EXTENT_INPUT,
                                                    p->input[i].name,
                                                    NULL,
                                                    NULL,
                                                    NULL };
    for (int b = 0; b < r->taken->nbuffers; b++) {
        const struct prog_buffer *buffer = &r->taken->buffer[b];
        const bool control = buffer->region == REGION_CONTROL;
        struct extent *e = &r->extent[x->nextents++];
        *e = (struct extent){ (control ? r->control->memory : r->scratch) + r->offset[b],
                              (size_t)formula_eval(&buffer->bytes, &r->env),
                              control ? EXTENT_CONTROL : EXTENT_SCRATCH,
                              buffer->name,
                              NULL,
                              NULL,
                              NULL };
        if (!control && !track(r, e, false))
            return false;
    }
    memset(x->hit, 0, sizeof x->hit);
    return true;
}

static bool lay_out(struct run *r)
{
    int64_t control = 0;
    program_workspace(r->p, r->case_index, &r->env, &control, &r->scratch_bytes, r->offset);
    if (control < 0 || r->scratch_bytes < 0)
        return refuse(r, "the workspace at these sizes is too large");
    /* A gap after each scratch buffer, so that running over one is not running into the next. */
    for (int b = 0; b < r->taken->nbuffers; b++)
        if (r->taken->buffer[b].region == REGION_SCRATCH)
            r->offset[b] += (int64_t)b * WORKSPACE_ALIGN;
    const size_t rounded =
        ((size_t)r->scratch_bytes / WORKSPACE_ALIGN + 1 + (size_t)r->taken->nbuffers) * WORKSPACE_ALIGN;
    r->scratch = aligned_alloc(WORKSPACE_ALIGN, rounded);
    if (!r->scratch || !simt_control_reserve(r->control, control + 1))
        return no_memory(r);
    memset(r->scratch, (int)(0x80 | exec_random(r->x, 0x80)), rounded); /* no content that a kernel may rely on */
    return make_extents(r);
}

static char *buffer_at(const struct run *r, int b) { return r->extent[r->p->noutputs + r->p->ninputs + b].at; }

/* ---- steps ----------------------------------------------------------------------------------- */
static void marshal(const struct run *r, const struct prog_kernel *k, struct grid *g)
{
    for (int i = 0; i < k->nargs; i++) {
        const struct prog_arg *a = &k->arg[i];
        int index;
        g->argument[i] = &g->value[i];
        switch (prog_arg_in_sweep(a, r->sweep, r->sweeps, &index)) {
        case ARG_INPUT: g->value[i].p = (void *)(uintptr_t)r->pointer[index]; break;
        case ARG_OUTPUT: g->value[i].p = r->args->output[index]; break;
        case ARG_BUFFER: g->value[i].p = buffer_at(r, index); break;
        case ARG_PARAM: value_store(r->p->param[index].type, &g->value[i], r->args->param[index]); break;
        case ARG_VALUE: g->value[i].i = formula_eval(&a->value, &r->env); break; /* little-endian: also as i32 */
        default: break;                                                          /* resolved above */
        }
    }
}

static bool check_launch(struct run *r, const struct prog_kernel *k, const struct grid *g, int64_t shared)
{
    const char *wrong = NULL;
    if (k->threads <= 0 || k->threads > 1024 || k->threads % WARP_LANES)
        wrong = "threads must be a multiple of 32 up to 1024";
    else if (shared < 0 || shared > DEVICE_SHARED)
        wrong = "too much shared memory";
    else if (g->cluster > CLUSTER_MAX || (g->cluster > 1 && g->nblocks % g->cluster))
        wrong = "the grid is not a multiple of the cluster, or the cluster is too large";
    else if (g->nblocks > INT32_MAX)
        wrong = "too many blocks";
    else if (!g->entry)
        wrong = "LLVM has no code for it on this machine";
    if (wrong)
        report_plain(r->report, SIMT_CHECK, "kernel %s: %s", k->name, wrong);
    return !wrong;
}

/* Fills the grid of a launch step; a grid of no blocks is skipped by the caller. */
static bool make_grid(struct run *r, const struct prog_step *step, struct grid *g)
{
    const struct prog_kernel *k = &r->taken->kernel[step->kernel];
    /* First of all: the shared memory is known when the kernel has been emitted. */
    const host_kernel entry = r->code->entry(r->code->user, r->case_index, step->kernel);
    const int64_t dynamic = step->shared.n ? formula_eval(&step->shared, &r->env) : 0;
    *g = (struct grid){ .kernel = k->name,
                        .entry = entry,
                        .nblocks = formula_eval(&step->grid, &r->env),
                        .threads = k->threads,
                        .cluster = step->cluster.n ? (int)formula_eval(&step->cluster, &r->env) : k->cluster,
                        .dependent = step->dependent };
    if (g->nblocks <= 0)
        return true;
    if (!check_launch(r, k, g, k->shared_static + dynamic))
        return false;
    g->shared_bytes = k->shared_static + (int)dynamic;
    marshal(r, k, g);
    return true;
}

/* Runs the launches collected in the chain. */
static bool run_chain(struct run *r, int *n)
{
    for (int i = 0; i < *n; i++)
        r->chain[i].previous = i > 0 ? &r->chain[i - 1] : NULL;
    r->report->launches += (uint64_t)*n;
    const bool ok = *n == 0 || exec_run(r->x, r->chain, *n);
    *n = 0;
    return ok;
}

static bool run_steps(struct run *r)
{
    int n = 0; /* launches in the chain */
    r->sweep = 0;
    r->sweeps = prog_sweeps(r->taken, &r->env);
    for (int s = 0; s < r->taken->nsteps; s++) {
        const struct prog_step *step = &r->taken->step[s];
        const int64_t times = step->repeat.n ? formula_eval(&step->repeat, &r->env) : 1;
        for (int64_t t = 0; t < times; t++) {
            const bool joins = step->dependent && r->x->options.late && n < CHAIN_MAX;
            if (!joins && !run_chain(r, &n))
                return false;
            if (!make_grid(r, step, &r->chain[n]))
                return false;
            n += r->chain[n].nblocks > 0;
            r->sweep += step->repeat.n > 0;
        }
    }
    return run_chain(r, &n);
}

/* ---- the whole ------------------------------------------------------------------------------- */
static void finish(struct run *r)
{
    for (int i = 0; r->extent && i < r->x->nextents; i++)
        free(r->extent[i].written), free(r->extent[i].writer);
    r->x->nextents = 0;
    r->x->extent = NULL;
    free(r->scratch);
    free(r->memory);
}

static int run_with(const struct simt_code *code, const struct run_args *args, struct simt_control *control,
                    const struct simt_options *o, struct simt_report *out)
{
    struct exec *x = &control->exec;
    struct run r = { .code = code, .p = code->program, .args = args, .control = control, .x = x, .report = out };
    x->options = *o;
    x->report = out;
    x->random = (o->seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    x->now = 1;
    if (allocate(&r) && take_arrays(&r) && select_case(&r) && lay_out(&r))
        control->dirty = !run_steps(&r);
    finish(&r);
    return out->what;
}

void simt_ask_entries(const struct simt_code *code, const struct run_args *args, struct simt_control *control,
                      const struct simt_options *o)
{
    struct simt_report unread = { .what = SIMT_OK };
    struct run r = { .code = code, .p = code->program, .args = args, .control = control, .x = &control->exec };
    r.report = &unread;
    r.x->options = *o;
    if (allocate(&r) && take_arrays(&r) && select_case(&r))
        for (int s = 0; s < r.taken->nsteps; s++)
            code->entry(code->user, r.case_index, r.taken->step[s].kernel);
    free(r.memory);
}

int simt_run_code(const struct simt_code *code, const struct run_args *args, struct simt_control *control,
                  const struct simt_options *o, struct simt_report *out)
{
    *out = (struct simt_report){ .what = SIMT_OK };
    if (control)
        return run_with(code, args, control, o, out);
    control = simt_control_create();
    if (!control) {
        report_plain(out, SIMT_NO_MEMORY, "out of memory");
        return out->what;
    }
    run_with(code, args, control, o, out);
    simt_control_destroy(control);
    return out->what;
}

struct simt_control *simt_control_create(void)
{
    struct simt_control *c = aligned_alloc(_Alignof(struct simt_control), sizeof *c);
    if (c)
        memset(c, 0, sizeof *c);
    return c;
}

void simt_control_destroy(struct simt_control *c)
{
    if (!c)
        return;
    exec_free(&c->exec);
    free(c->memory);
    free(c);
}
