/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c - one launch.
 *
 *     check     sizes, pointers, the problem's conditions, unless an earlier launch had the same
 *     select    the first case whose guard holds
 *     load      its code, if this is the first time
 *     place     its workspace buffers, in the caller's memory or the stream's
 *     walk      per step: evaluate the grid, marshal the arguments, launch
 *
 * Values of formulas are those of an earlier launch where sizes are the same (formula_values.c).  All of it works on one
 * `struct launch` on the stack: the path of a second launch allocates nothing, and takes one uncontended lock (none with
 * the caller's workspace) to keep the steps of concurrent launches on a stream apart.
 */
#include <string.h>

#include "base/session.h"
#include "launch_stages.h"

enum { BLOCKS_MAX = 0x7fffffff, BUFFER_ALIGNMENT = 256 };

struct launch {
    struct ptxgen_loaded *l;
    struct ptxgen_session *s; /* for the log; may be NULL */
    const struct program *p;
    const ptxgen_arguments *args;
    cu_stream stream;
    struct formula_env env;
    struct launch_values values;
    const union value *param;
    int c;                                    /* the case */
    int64_t control, scratch;                 /* bytes */
    cu_pointer buffer[LAUNCH_BUFFERS_MAX];    /* addresses */
    int64_t offset[LAUNCH_BUFFERS_MAX];       /* in their regions */
    const void *pointer[LAUNCH_POINTERS_MAX]; /* inputs, then outputs */
    union value defaults[LAUNCH_PARAMS_MAX];
    int resident[LAUNCH_KERNELS_MAX];
    int64_t sweep, sweeps; /* time steps: now, in all */
};

/* ---- checking -------------------------------------------------------------------------------- */
static bool argument_fault(struct fault *f, const char *what, const char *name, const char *why)
{
    return fault_set(f, PTXGEN_USAGE, D_LAUNCH_ARGUMENT, "%s '%s' %s", what, name, why);
}

static bool check_sizes(const struct launch *x, struct fault *f)
{
    if (x->p->nsizes && !x->args->size)
        return fault_set(f, PTXGEN_USAGE, D_LAUNCH_ARGUMENT, "the arguments have no sizes");
    for (int i = 0; i < x->p->nsizes; i++)
        if (x->args->size[i] < 0)
            return argument_fault(f, "size", x->p->size[i], "is negative");
    return true;
}

/* Of pointer number i, of array `a`. `must`: it will be dereferenced. */
static bool check_pointer(const struct launch *x, int i, const struct prog_array *a, bool must, struct fault *f)
{
    int64_t elements = prog_array_elements(a, x->args->size), bytes;

    if (elements < 0)
        return argument_fault(f, "array", a->name, "has a negative or too large extent at these sizes");
    if (must && elements > 0 && x->pointer[i] == NULL)
        return argument_fault(f, "array", a->name, "is null");
    if ((uintptr_t)x->pointer[i] % (unsigned)x->l->alignment[i] != 0)
        return argument_fault(f, "array", a->name, "is not aligned to its element type");
    return !__builtin_mul_overflow(elements, (int64_t)a->stride, &bytes) ||
           argument_fault(f, "array", a->name, "has too large an extent at these sizes");
}

static bool check(const struct launch *x, bool must, struct fault *f)
{
    const struct program *p = x->p;

    if (!check_sizes(x, f))
        return false;
    for (int i = 0; i < p->ninputs; i++)
        if (!check_pointer(x, i, &p->input[i], must, f))
            return false;
    for (int i = 0; i < p->noutputs; i++)
        if (!check_pointer(x, p->ninputs + i, &p->output[i], must, f))
            return false;
    for (int i = 0; i < p->nparams && x->param == x->defaults; i++)
        if (!p->param[i].has_default)
            return argument_fault(f, "param", p->param[i].name, "has no default and no value");
    return true;
}

/* False: one of them is NULL. */
static bool take_pointers(struct launch *x)
{
    const int inputs = x->p->ninputs, outputs = x->p->noutputs;
    bool all = true;

    for (int i = 0; i < inputs; i++)
        all &= (x->pointer[i] = x->args->input ? x->args->input[i] : NULL) != NULL;
    for (int i = 0; i < outputs; i++)
        all &= (x->pointer[inputs + i] = x->args->output ? x->args->output[i] : NULL) != NULL;
    return all;
}

/* The caller's params, or all defaults.  False: one has none. */
static bool take_params(struct launch *x)
{
    bool all = true;

    _Static_assert(sizeof(ptxgen_value) == sizeof(union value), "the public form of a value is the internal one");
    x->param = (const union value *)(const void *)x->args->param;
    if (x->param)
        return true;
    for (int i = 0; i < x->p->nparams; i++) {
        all &= x->p->param[i].has_default;
        x->defaults[i] = x->p->param[i].value;
    }
    x->param = x->defaults;
    return all;
}

static bool select_case(struct launch *x, struct fault *f)
{
    const char *why = NULL;
    char refusal[sizeof f->text];

    x->c =
        (int)(x->values.known ? values_next(&x->values) : values_put(&x->values, program_select(x->p, &x->env, &why)));
    if (x->c >= 0)
        return true;
    if (why)
        return fault_set(f, PTXGEN_USAGE, D_LAUNCH_ARGUMENT, "%s", why);
    program_refusal(x->p, &x->env, refusal, sizeof refusal);
    return fault_set(f, PTXGEN_UNSUPPORTED, D_LAUNCH_ARGUMENT, "%s", refusal);
}

/* Everything that needs no code and no memory. must_point: pointers are needed, not optional.  Sizes, integer params and
 * low bits of addresses that an earlier launch had need no second check, where no address is NULL. */
static bool launch_begin(struct launch *x, struct ptxgen_session *s, struct ptxgen_loaded *l,
                         const ptxgen_arguments *args, cu_stream stream, bool must_point, struct fault *f)
{
    const ptxgen_gpu_info *info = &l->gpu->info;

    x->l = l;
    x->s = s;
    x->p = l->program;
    x->args = args;
    x->stream = stream;
    const bool points = take_pointers(x), complete = take_params(x) && (args->size || x->p->nsizes == 0);
    x->env = (struct formula_env){
        .size = args->size,
        .param = &x->param->i,
        .sms = info->multiprocessors,
        .arch = info->sm,
        .smem = info->shared_per_block,
        .resident = NULL,
        .pointer = x->pointer,
    };
    values_open(&x->values, complete ? &l->kept : NULL, x->p, &x->env);
    return ((x->values.known && points) || check(x, must_point, f)) && select_case(x, f);
}

static int64_t evaluate(struct launch *x, const struct formula *f) { return values_formula(&x->values, f, &x->env); }

/* ---- loading and placing --------------------------------------------------------------------- */
/* The dynamic shared memory that the case's steps give kernel k. */
static int64_t dynamic_shared(const struct launch *x, int k)
{
    const struct prog_case *taken = &x->p->cases[x->c];

    for (int i = 0; i < taken->nsteps; i++)
        if (taken->step[i].kernel == k && taken->step[i].shared.n)
            return formula_eval(&taken->step[i].shared, &x->env);
    return 0;
}

static bool take_occupancies(struct launch *x, struct fault *f)
{
    for (int k = 0; k < x->p->cases[x->c].nkernels; k++)
        if (!load_occupancy(x->l, x->c, k, (size_t)dynamic_shared(x, k), &x->resident[k], f))
            return false;
    x->env.resident = x->resident;
    return true;
}

static void lay_out(struct launch *x)
{
    const int n = x->p->cases[x->c].nbuffers;

    if (x->values.known) {
        x->control = values_next(&x->values);
        x->scratch = values_next(&x->values);
    } else {
        program_workspace(x->p, x->c, &x->env, &x->control, &x->scratch, x->offset);
        values_put(&x->values, x->control);
        values_put(&x->values, x->scratch);
    }
    for (int b = 0; b < n; b++)
        x->offset[b] = x->values.known ? values_next(&x->values) : values_put(&x->values, x->offset[b]);
}

/* Load what formulas need, and lay the workspace out. */
static bool launch_measure(struct launch *x, struct fault *f)
{
    const bool asks = x->l->cases[x->c].uses_resident && !x->values.known;

    if (asks && (!load_case(x->l, x->s, x->c, x->stream, f) || !take_occupancies(x, f)))
        return false;
    lay_out(x);
    if (x->control < 0 || x->scratch < 0)
        return fault_set(f, PTXGEN_USAGE, D_LAUNCH_ARGUMENT, "the workspace at these sizes is too large");
    return true;
}

static void place_buffers(struct launch *x, cu_pointer control, cu_pointer scratch)
{
    const struct prog_case *taken = &x->p->cases[x->c];

    for (int b = 0; b < taken->nbuffers; b++)
        x->buffer[b] = (taken->buffer[b].region == REGION_CONTROL ? control : scratch) + (cu_pointer)x->offset[b];
}

bool launch_check_workspace(const ptxgen_workspace *w, size_t control, size_t scratch, struct fault *f)
{
    if ((control && !w->control) || (scratch && !w->scratch))
        return fault_set(f, PTXGEN_USAGE, D_LAUNCH_ARGUMENT, "the workspace has no memory");
    if (w->control_bytes < control || w->scratch_bytes < scratch)
        return fault_set(f, PTXGEN_USAGE, D_LAUNCH_ARGUMENT,
                         "the workspace has %zu control and %zu scratch bytes; this launch needs %zu and %zu",
                         w->control_bytes, w->scratch_bytes, control, scratch);
    if (((uintptr_t)w->control | (uintptr_t)w->scratch) % BUFFER_ALIGNMENT != 0)
        return fault_set(f, PTXGEN_USAGE, D_LAUNCH_ARGUMENT, "the workspace is not aligned to %d bytes",
                         BUFFER_ALIGNMENT);
    return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */
/* The memory images of a kernel's arguments and pointers to them, as the driver wants them. */
struct marshalled {
    union {
        char bytes[8];
        cu_pointer pointer;
        int32_t i32;
        int64_t i64;
    } value[PROG_ARG_MAX];
    void *param[PROG_ARG_MAX];
};

/* What the argument is now; nearly all are the same in every sweep. */
static inline enum prog_arg_kind argument_now(const struct launch *x, const struct prog_arg *a, int *index)
{
    *index = a->index;
    return a->kind < ARG_FED ? a->kind : prog_arg_in_sweep(a, x->sweep, x->sweeps, index);
}

static void marshal(struct launch *x, const struct prog_kernel *k, struct marshalled *m)
{
    for (int i = 0; i < k->nargs; i++) {
        const struct prog_arg *a = &k->arg[i];
        int index;

        m->param[i] = &m->value[i];
        switch (argument_now(x, a, &index)) {
        case ARG_INPUT: m->value[i].pointer = (cu_pointer)(uintptr_t)x->pointer[index]; break;
        case ARG_OUTPUT: m->value[i].pointer = (cu_pointer)(uintptr_t)x->pointer[x->p->ninputs + index]; break;
        case ARG_BUFFER: m->value[i].pointer = x->buffer[index]; break;
        case ARG_PARAM: value_store(x->p->param[index].type, m->value[i].bytes, x->param[index]); break;
        case ARG_VALUE:
            m->value[i].i64 = evaluate(x, &a->value);
            if (a->type == TY_I32)
                m->value[i].i32 = (int32_t)m->value[i].i64;
            break;
        default: break; /* resolved above */
        }
    }
}

/* Launch attributes of a step; their number. */
static unsigned step_attributes(const struct launch *x, const struct prog_step *step, unsigned cluster,
                                struct cu_attribute *attribute)
{
    unsigned n = 0;

    if (step->dependent && x->l->gpu->info.sm >= 90) {
        attribute[n].id = CU_ATTR_PROGRAMMATIC;
        attribute[n++].value.programmatic = 1;
    }
    if (cluster) {
        attribute[n].id = CU_ATTR_CLUSTER;
        attribute[n].value.cluster.x = cluster;
        attribute[n].value.cluster.y = attribute[n].value.cluster.z = 1;
        n++;
    }
    return n;
}

static bool start_kernel(const struct launch *x, const struct prog_step *step, const struct cu_launch_config *config,
                         void **params, struct fault *f)
{
    const struct driver *cu = &x->l->gpu->cu;
    cu_function kernel = x->l->cases[x->c].kernel[step->kernel].function;

    if (config->attribute_count == 0)
        return CU(f, cu,
                  LaunchKernel(kernel, config->grid_x, 1, 1, config->block_x, 1, 1, config->shared_bytes, x->stream,
                               params, NULL));
    if (cu->LaunchKernelEx == NULL)
        return fault_set(f, PTXGEN_NO_DEVICE, D_DRIVER_TOO_OLD,
                         "this program needs cuLaunchKernelEx, a driver for CUDA 11.8 (Linux: 520.61 or newer)");
    return CU(f, cu, LaunchKernelEx(config, kernel, params, NULL));
}

/* Grid, shared memory and cluster of a step, with what the hardware refuses refused in words. */
static bool configure(struct launch *x, const struct prog_step *step, struct cu_launch_config *config,
                      unsigned *cluster, struct fault *f)
{
    const struct prog_kernel *k = &x->p->cases[x->c].kernel[step->kernel];
    int64_t grid = evaluate(x, &step->grid);
    int64_t shared = step->shared.n ? evaluate(x, &step->shared) : 0;
    int64_t blocks = step->cluster.n ? evaluate(x, &step->cluster) : k->cluster;

    if (grid < 0 || grid > BLOCKS_MAX)
        return fault_set(f, PTXGEN_UNSUPPORTED, D_LAUNCH_ARGUMENT, "kernel %s would need %lld blocks", k->name,
                         (long long)grid);
    if (shared < 0 || shared > x->l->cases[x->c].kernel[step->kernel].dynamic_limit)
        return fault_set(f, PTXGEN_NO_DEVICE, D_WRONG_DEVICE,
                         "kernel %s would need %lld bytes of dynamic shared memory; %d are left for a block", k->name,
                         (long long)shared, x->l->cases[x->c].kernel[step->kernel].dynamic_limit);
    if (blocks < 0 || (blocks > 0 && grid % blocks != 0))
        return fault_set(f, PTXGEN_INTERNAL, D_LAUNCH_ARGUMENT,
                         "kernel %s: %lld blocks are no whole number of clusters of %lld", k->name, (long long)grid,
                         (long long)blocks);
    *cluster = (unsigned)blocks;
    *config = (struct cu_launch_config){
        .grid_x = (unsigned)grid,
        .grid_y = 1,
        .grid_z = 1,
        .block_x = (unsigned)k->threads,
        .block_y = 1,
        .block_z = 1,
        .shared_bytes = (unsigned)shared,
        .stream = x->stream,
    };
    return true;
}

static bool launch_step(struct launch *x, const struct prog_step *step, struct fault *f)
{
    int64_t repeat = step->repeat.n ? evaluate(x, &step->repeat) : 1;
    struct cu_attribute attribute[2];
    struct cu_launch_config config;
    struct marshalled m;
    unsigned cluster = 0;

    if (!configure(x, step, &config, &cluster, f))
        return false;
    config.attribute = attribute;
    config.attribute_count = step_attributes(x, step, cluster, attribute);
    for (int64_t i = 0; i < repeat && config.grid_x > 0; i++) {
        marshal(x, &x->p->cases[x->c].kernel[step->kernel], &m);
        if (!start_kernel(x, step, &config, m.param, f))
            return false;
        x->sweep += step->repeat.n > 0;
    }
    return true;
}

static bool walk_steps(struct launch *x, struct fault *f)
{
    const struct prog_case *taken = &x->p->cases[x->c];

    x->sweep = 0;
    x->sweeps = x->values.known ? values_next(&x->values) : values_put(&x->values, prog_sweeps(taken, &x->env));

    for (int i = 0; i < taken->nsteps; i++)
        if (!launch_step(x, &taken->step[i], f))
            return false;
    values_keep(&x->values);
    return true;
}

/* ---- the calls ------------------------------------------------------------------------------- */
/* With the caller's workspace, or the stream's. walk: launch, not only prepare. */
static bool launch_in(struct launch *x, const ptxgen_workspace *workspace, bool walk, struct fault *f)
{
    struct control_block *block;
    bool ok;

    if (!launch_measure(x, f) || !load_case(x->l, x->s, x->c, x->stream, f))
        return false;
    if (workspace) {
        if (!launch_check_workspace(workspace, (size_t)x->control, (size_t)x->scratch, f))
            return false;
        place_buffers(x, (uintptr_t)workspace->control, (uintptr_t)workspace->scratch);
        return walk_steps(x, f);
    }
    if (x->control == 0 && x->scratch == 0)
        return !walk || walk_steps(x, f);
    if (!control_acquire(x->l, x->stream, (size_t)x->control, (size_t)x->scratch, &block, f))
        return false;
    place_buffers(x, block->control, block->scratch);
    ok = !walk || walk_steps(x, f);
    control_release(block);
    return ok;
}

ptxgen_status ptxgen_launch(ptxgen_session *s, ptxgen_loaded *loaded, const ptxgen_arguments *args,
                            ptxgen_stream stream, const ptxgen_workspace *workspace)
{
    struct launch x;
    struct fault f;
    bool pushed, ok;

    NEED(PTXGEN_USAGE, s, loaded, args);
    if (loaded->stages)
        return launch_stages(s, loaded, args, stream, workspace);
    if (!launch_begin(&x, s, loaded, args, stream, true, &f) || !gpu_enter(loaded->gpu, &pushed, &f))
        return fault_report(s, &f);
    ok = launch_in(&x, workspace, true, &f);
    gpu_leave(loaded->gpu, pushed);
    return ok ? PTXGEN_OK : fault_report(s, &f);
}

static bool load_all(struct ptxgen_loaded *l, struct ptxgen_session *s, cu_stream stream, struct fault *f)
{
    if (l->source.make && (!load_outside_capture(l, stream, "the code of all cases would be loaded", f) ||
                           !l->source.make(l->source.user, s, -1, f)))
        return false;
    for (int c = 0; c < l->program->ncases; c++)
        if (!load_case(l, s, c, stream, f))
            return false;
    return true;
}

/* The code of all stages. */
static ptxgen_status prepare_stages(struct ptxgen_session *s, struct ptxgen_loaded *l, cu_stream stream)
{
    ptxgen_status status = PTXGEN_OK;

    for (int i = 0; i < l->stages->p->nstages && status == PTXGEN_OK; i++)
        status = ptxgen_prepare(s, l->stages->stage[i], NULL, stream);
    return status;
}

ptxgen_status ptxgen_prepare(ptxgen_session *s, ptxgen_loaded *loaded, const ptxgen_arguments *args,
                             ptxgen_stream stream)
{
    struct launch x;
    struct fault f;
    bool pushed, ok;

    NEED(PTXGEN_USAGE, s, loaded);
    if (loaded->stages)
        return args ? launch_prepare_stages(s, loaded, args, stream) : prepare_stages(s, loaded, stream);
    if ((args && !launch_begin(&x, s, loaded, args, stream, false, &f)) || !gpu_enter(loaded->gpu, &pushed, &f))
        return fault_report(s, &f);
    ok = args ? launch_in(&x, NULL, false, &f) : load_all(loaded, s, stream, &f);
    gpu_leave(loaded->gpu, pushed);
    return ok ? PTXGEN_OK : fault_report(s, &f);
}

ptxgen_status ptxgen_workspace_query(ptxgen_session *s, ptxgen_loaded *loaded, const ptxgen_arguments *args,
                                     ptxgen_workspace *out)
{
    struct launch x;
    struct fault f;
    bool pushed, ok;

    NEED(PTXGEN_USAGE, s, loaded, args, out);
    memset(out, 0, sizeof *out);
    if (loaded->stages)
        return launch_measure_stages(s, loaded, args, out);
    if (!launch_begin(&x, s, loaded, args, NULL, false, &f) || !gpu_enter(loaded->gpu, &pushed, &f))
        return fault_report(s, &f);
    ok = launch_measure(&x, &f);
    gpu_leave(loaded->gpu, pushed);
    if (!ok)
        return fault_report(s, &f);
    out->control_bytes = (size_t)x.control;
    out->scratch_bytes = (size_t)x.scratch;
    return PTXGEN_OK;
}

ptxgen_status ptxgen_workspace_reset(ptxgen_session *s, ptxgen_loaded *loaded, const ptxgen_workspace *workspace,
                                     ptxgen_stream stream)
{
    NEED(PTXGEN_USAGE, s, loaded, workspace);
    return ptxgen_gpu_fill(s, loaded->gpu, workspace->control, 0, workspace->control_bytes, stream);
}

const char *ptxgen_launch_case(ptxgen_session *s, ptxgen_loaded *loaded, const ptxgen_arguments *args)
{
    struct launch x;
    struct fault f;

    NEED(NULL, s, loaded, args);
    if (loaded->stages)
        return "stages";
    if (launch_begin(&x, s, loaded, args, NULL, false, &f))
        return x.p->cases[x.c].name;
    fault_report(s, &f);
    return NULL;
}
