/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - a program on one gpu: checked at once, its code loaded case by case.
 *
 * The driver compiles the PTX when a module is loaded, which takes tens of milliseconds.  A code_source takes milliseconds
 * more to make the PTX.  So both wait until a launch (or ptxgen_prepare) takes the case.  `ready` is set with release
 * order after everything of the case is in place; the launch path reads it with acquire order and takes no lock.
 */
#include <stdlib.h>
#include <string.h>

#include "base/session.h"
#include "launch_stages.h"

/* ---- preflight ------------------------------------------------------------------------------- */
static bool check_driver(const struct ptxgen_gpu *gpu, const struct program *p, struct fault *f)
{
    const char *release = NULL;
    int cuda;

    if (p->ptx_version <= gpu->info.ptx)
        return true;
    cuda = driver_of_ptx(p->ptx_version, &release);
    if (cuda == 0)
        return fault_set(f, PTXGEN_NO_DEVICE, D_DRIVER_TOO_OLD,
                         "the program is PTX %d.%d, and the driver (CUDA %d.%d) loads PTX up to %d.%d",
                         p->ptx_version / 10, p->ptx_version % 10, gpu->info.driver / 1000,
                         gpu->info.driver % 1000 / 10, gpu->info.ptx / 10, gpu->info.ptx % 10);
    return fault_set(
        f, PTXGEN_NO_DEVICE, D_DRIVER_TOO_OLD,
        "the program is PTX %d.%d, which needs a driver for CUDA %d.%d (Linux: %s or newer); this one is for "
        "CUDA %d.%d, PTX up to %d.%d",
        p->ptx_version / 10, p->ptx_version % 10, cuda / 1000, cuda % 1000 / 10, release, gpu->info.driver / 1000,
        gpu->info.driver % 1000 / 10, gpu->info.ptx / 10, gpu->info.ptx % 10);
}

/* PTX for sm_N runs on N and later; with the suffix `a` only on N, with `f` on the family of N. */
static bool check_architecture(const struct ptxgen_gpu *gpu, const struct program *p, struct fault *f)
{
    char *suffix;
    int sm = strncmp(p->arch, "sm_", 3) == 0 ? (int)strtol(p->arch + 3, &suffix, 10) : 0, have = gpu->info.sm;
    bool fits = sm != 0 && (*suffix == 'a'   ? have == sm
                            : *suffix == 'f' ? have >= sm && have / 10 == sm / 10
                                             : have >= sm);

    return fits || fault_set(f, PTXGEN_NO_DEVICE, D_WRONG_DEVICE, "the program is for %s; %s is sm_%d", p->arch,
                             gpu->info.name, have);
}

static bool check_case(const struct ptxgen_gpu *gpu, const struct prog_case *c, struct fault *f)
{
    if (c->nkernels > LAUNCH_KERNELS_MAX || c->nbuffers > LAUNCH_BUFFERS_MAX)
        return fault_set(f, PTXGEN_UNSUPPORTED, D_WRONG_DEVICE,
                         "case %s has more kernels or buffers than can be launched", c->name);
    for (int k = 0; k < c->nkernels; k++) {
        const struct prog_kernel *kernel = &c->kernel[k];

        if (kernel->shared_static > gpu->info.shared_per_block)
            return fault_set(f, PTXGEN_NO_DEVICE, D_WRONG_DEVICE,
                             "kernel %s needs %d bytes of shared memory; a block on %s has %d", kernel->name,
                             kernel->shared_static, gpu->info.name, gpu->info.shared_per_block);
        if (kernel->nargs > PROG_ARG_MAX)
            return fault_set(f, PTXGEN_UNSUPPORTED, D_WRONG_DEVICE, "kernel %s has more arguments than can be launched",
                             kernel->name);
    }
    return true;
}

static bool preflight(const struct ptxgen_gpu *gpu, const struct program *p, struct fault *f)
{
    if (!check_architecture(gpu, p, f) || !check_driver(gpu, p, f))
        return false;
    if (p->ninputs + p->noutputs > LAUNCH_POINTERS_MAX || p->nparams > LAUNCH_PARAMS_MAX)
        return fault_set(f, PTXGEN_UNSUPPORTED, D_WRONG_DEVICE, "more than %d arrays or %d params cannot be launched",
                         LAUNCH_POINTERS_MAX, LAUNCH_PARAMS_MAX);
    for (int c = 0; c < p->ncases; c++)
        if (!check_case(gpu, &p->cases[c], f))
            return false;
    return true;
}

/* ---- what formulas ask for ------------------------------------------------------------------- */
static bool formula_reads(const struct formula *formula, enum formula_op op)
{
    for (int i = 0; i < formula->n; i++)
        if (formula->step[i].op == op)
            return true;
    return false;
}

static bool kernel_reads(const struct prog_kernel *k, enum formula_op op)
{
    for (int a = 0; a < k->nargs; a++)
        if (k->arg[a].kind == ARG_VALUE && formula_reads(&k->arg[a].value, op))
            return true;
    return false;
}

/* Does anything of the case but its guard read `op`? */
static bool case_reads(const struct prog_case *c, enum formula_op op)
{
    for (int k = 0; k < c->nkernels; k++)
        if (kernel_reads(&c->kernel[k], op))
            return true;
    for (int b = 0; b < c->nbuffers; b++)
        if (formula_reads(&c->buffer[b].bytes, op))
            return true;
    for (int i = 0; i < c->nsteps; i++) {
        const struct prog_step *step = &c->step[i];

        if (formula_reads(&step->grid, op) || formula_reads(&step->shared, op) || formula_reads(&step->cluster, op) ||
            formula_reads(&step->repeat, op))
            return true;
    }
    return false;
}

static int array_alignment(const struct prog_array *a)
{
    int alignment = 1;

    for (int i = 0; i < a->nfields; i++)
        if (ty_bytes(a->field[i].type) > alignment)
            alignment = ty_bytes(a->field[i].type);
    return alignment;
}

/* ---- modules and kernels --------------------------------------------------------------------- */
bool load_outside_capture(struct ptxgen_loaded *l, cu_stream stream, const char *what, struct fault *f)
{
    int status = CU_CAPTURE_NONE;

    if (!CU(f, &l->gpu->cu, StreamIsCapturing(stream, &status)))
        return false;
    if (status == CU_CAPTURE_NONE)
        return true;
    return fault_set(f, PTXGEN_USAGE, D_CAPTURE, "%s during a stream capture; call ptxgen_prepare() before it begins",
                     what);
}

static bool load_module(struct ptxgen_loaded *l, int m, struct fault *f)
{
    return l->module[m] || code_load(l, &l->program->module[m], &l->module[m], f);
}

/* What the steps that launch the kernel ask for. */
static void kernel_needs(const struct prog_case *c, int kernel, bool *dynamic, bool *nonportable)
{
    *dynamic = *nonportable = false;
    for (int i = 0; i < c->nsteps; i++)
        if (c->step[i].kernel == kernel) {
            *dynamic |= c->step[i].shared.n != 0;
            *nonportable |= c->step[i].nonportable_cluster;
        }
}

/* Look the kernel up, and allow it what its steps ask for. */
static bool load_kernel(struct ptxgen_loaded *l, int c, int k, struct fault *f)
{
    const struct driver *cu = &l->gpu->cu;
    const struct prog_case *taken = &l->program->cases[c];
    struct kernel_state *state = &l->cases[c].kernel[k];
    bool dynamic, nonportable;
    int shared = 0;

    if (!load_module(l, taken->kernel[k].module, f) ||
        !CU(f, cu, ModuleGetFunction(&state->function, l->module[taken->kernel[k].module], taken->kernel[k].name)) ||
        !CU(f, cu, FuncGetAttribute(&shared, CU_FN_SHARED_STATIC, state->function)))
        return false;
    kernel_needs(taken, k, &dynamic, &nonportable);
    if (dynamic) {
        state->dynamic_limit = l->gpu->info.shared_per_block - shared;
        if (!CU(f, cu, FuncSetAttribute(state->function, CU_FN_MAX_DYNAMIC_SHARED, state->dynamic_limit)))
            return false;
    }
    return !nonportable || CU(f, cu, FuncSetAttribute(state->function, CU_FN_NONPORTABLE_CLUSTER, 1));
}

/* The case has code, and the code fits the device. */
static bool make_code(struct ptxgen_loaded *l, struct ptxgen_session *s, int c, struct fault *f)
{
    return !l->source.make || (l->source.make(l->source.user, s, c, f) && check_case(l->gpu, &l->program->cases[c], f));
}

bool load_case(struct ptxgen_loaded *l, struct ptxgen_session *s, int c, cu_stream stream, struct fault *f)
{
    struct case_state *state = &l->cases[c];
    bool ok = true;

    if (atomic_load_explicit(&state->ready, memory_order_acquire))
        return true;
    if (!load_outside_capture(l, stream, "the code of this case would be loaded", f) || !make_code(l, s, c, f))
        return false;
    pthread_mutex_lock(&l->lock);
    if (!atomic_load_explicit(&state->ready, memory_order_relaxed)) {
        for (int k = 0; ok && k < l->program->cases[c].nkernels; k++)
            ok = load_kernel(l, c, k, f);
        atomic_store_explicit(&state->ready, ok, memory_order_release);
    }
    pthread_mutex_unlock(&l->lock);
    return ok;
}

bool load_occupancy(struct ptxgen_loaded *l, int c, int kernel, size_t dynamic_shared, int *blocks, struct fault *f)
{
    struct kernel_state *state = &l->cases[c].kernel[kernel];
    uint64_t known = atomic_load_explicit(&state->occupancy, memory_order_relaxed);

    if (known >> 16 == dynamic_shared + 1) {
        *blocks = (int)(known & 0xffff);
        return true;
    }
    if (!CU(f, &l->gpu->cu,
            Occupancy(blocks, state->function, l->program->cases[c].kernel[kernel].threads, dynamic_shared)))
        return false;
    atomic_store_explicit(&state->occupancy, (uint64_t)(dynamic_shared + 1) << 16 | (uint64_t)*blocks,
                          memory_order_relaxed);
    return true;
}

/* ---- life ------------------------------------------------------------------------------------ */
static void loaded_free(struct ptxgen_loaded *l)
{
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->blocks_lock);
    free(l->alignment);
    free(l->cases);
    free(l->module);
    program_destroy(l->owned);
    free(l);
}

struct ptxgen_loaded *launch_new(struct ptxgen_gpu *gpu, const struct program *p)
{
    struct ptxgen_loaded *l = calloc(1, sizeof *l);

    if (l == NULL)
        return NULL;
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->blocks_lock, NULL);
    l->gpu = gpu;
    l->program = p;
    l->alignment = calloc((size_t)(p->ninputs + p->noutputs + 1), sizeof *l->alignment);
    l->cases = calloc((size_t)p->ncases + 1, sizeof *l->cases);
    l->module = calloc((size_t)p->nmodules + 1, sizeof *l->module);
    if (l->alignment && l->cases && l->module)
        return l;
    loaded_free(l);
    return NULL;
}

ptxgen_status launch_load(struct ptxgen_session *s, struct ptxgen_gpu *gpu, const struct program *program,
                          struct ptxgen_loaded **out)
{
    struct fault f;
    struct ptxgen_loaded *l;

    *out = NULL;
    if (!preflight(gpu, program, &f))
        return fault_report(s, &f);
    l = launch_new(gpu, program);
    if (l == NULL)
        return PTXGEN_NO_MEMORY;
    for (int i = 0; i < program->ninputs; i++)
        l->alignment[i] = array_alignment(&program->input[i]);
    for (int i = 0; i < program->noutputs; i++)
        l->alignment[program->ninputs + i] = array_alignment(&program->output[i]);
    for (int c = 0; c < program->ncases; c++)
        l->cases[c].uses_resident = case_reads(&program->cases[c], FO_RESIDENT);
    *out = l;
    return PTXGEN_OK;
}

void launch_own(struct ptxgen_loaded *l, struct program *program, const struct code_source *source)
{
    l->owned = program;
    l->source = *source;
}

void ptxgen_loaded_destroy(ptxgen_loaded *l)
{
    struct fault f;
    bool pushed;

    if (l == NULL)
        return;
    if (l->stages)
        launch_destroy_stages(l);
    if (l->source.end)
        l->source.end(l->source.user);
    if (gpu_enter(l->gpu, &pushed, &f)) {
        l->gpu->cu.CtxSynchronize();
        control_destroy(l);
        for (int m = 0; m < l->program->nmodules; m++)
            if (l->module[m])
                l->gpu->cu.ModuleUnload(l->module[m]);
        gpu_leave(l->gpu, pushed);
    }
    loaded_free(l);
}

ptxgen_status ptxgen_kernel_query(ptxgen_session *s, ptxgen_loaded *loaded, int c, int kernel, ptxgen_kernel_info *out)
{
    NEED(PTXGEN_USAGE, s, loaded, out);
    const struct driver *cu = &loaded->gpu->cu;
    struct fault f;
    bool pushed, ok;
    if (c < 0 || c >= loaded->program->ncases || kernel < 0 || kernel >= loaded->program->cases[c].nkernels)
        return PTXGEN_USAGE;
    memset(out, 0, sizeof *out);
    out->name = loaded->program->cases[c].kernel[kernel].name;
    out->threads = loaded->program->cases[c].kernel[kernel].threads;
    if (!gpu_enter(loaded->gpu, &pushed, &f))
        return fault_report(s, &f);
    ok = load_case(loaded, s, c, NULL, &f);
    if (ok) {
        cu_function function = loaded->cases[c].kernel[kernel].function;

        ok = CU(&f, cu, FuncGetAttribute(&out->registers, CU_FN_REGISTERS, function)) &&
             CU(&f, cu, FuncGetAttribute(&out->shared_static, CU_FN_SHARED_STATIC, function)) &&
             CU(&f, cu, FuncGetAttribute(&out->local, CU_FN_LOCAL, function)) &&
             load_occupancy(loaded, c, kernel, 0, &out->resident, &f);
    }
    gpu_leave(loaded->gpu, pushed);
    return ok ? PTXGEN_OK : fault_report(s, &f);
}
