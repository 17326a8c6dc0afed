/* SPDX-License-Identifier: Apache-2.0 */
/* stages.c - a spec with stages on one gpu: launches of its stages, in the order of the stream.
 *
 * Each stage is a loaded program of its own, with its own code and kept memory.  Arrays between stages lie in scratch
 * memory that the program keeps for the stream; its lock is held while the stages of one launch are enqueued.  In a
 * capture, stages that do not depend on each other are branches (branches.c).  Repeated launches, and loops that end on
 * a condition, are graphs where the driver has conditional nodes (kept_graphs.c, loop.c); elsewhere the host reads the
 * condition.
 */
#include <stdlib.h>

#include "launch_graph.h"

/* ---- life ------------------------------------------------------------------------------------ */
struct ptxgen_loaded *launch_new_stages(struct ptxgen_gpu *gpu, const struct prog_stages *p)
{
    struct loaded_stages *of = calloc(1, sizeof *of + sizeof of->stage[0] * (size_t)p->nstages);
    struct ptxgen_loaded *l = of ? launch_new(gpu, p->shape) : NULL;

    if (!l) {
        free(of);
        return NULL;
    }
    of->p = p;
    l->stages = of;
    return l;
}

void launch_destroy_stages(struct ptxgen_loaded *l)
{
    struct loaded_stages *of = l->stages;
    struct fault f;
    bool pushed;

    if (gpu_enter(l->gpu, &pushed, &f)) {
        l->gpu->cu.CtxSynchronize();
        control_destroy(l);
        if (of->loop.module)
            l->gpu->cu.ModuleUnload(of->loop.module);
        gpu_leave(l->gpu, pushed);
    }
    for (int i = 0; i < of->p->nstages; i++)
        ptxgen_loaded_destroy(of->stage[i]);
    if (of->end)
        of->end(of->user);
    free(of);
}

/* ---- a walk ---------------------------------------------------------------------------------- */
struct stage_walk {
    struct ptxgen_loaded *l;
    struct ptxgen_session *s;
    cu_stream stream;
    bool prepares;                     /* loads what a launch needs, and launches nothing */
    const ptxgen_workspace *workspace; /* of the caller, or NULL */
    struct stages_pieces pieces;       /* of that */
    ptxgen_stage_visitor *visit;
    void *user;
    struct branches *branches; /* in a capture, else NULL */
    int64_t step;              /* -1: before the first */
    ptxgen_status status;
};

static bool fails(struct stage_walk *w, const struct fault *f)
{
    w->status = fault_report(w->s, f);
    return false;
}

/* The driver has done all that was asked in the stream. */
static bool wait(struct stage_walk *w)
{
    const struct driver *cu = &w->l->gpu->cu;
    struct fault f;

    return CU(&f, cu, StreamSynchronize(w->stream)) || fails(w, &f);
}

static bool walk_run(void *user, int stage, const struct run_args *given)
{
    struct stage_walk *w = user;
    struct ptxgen_loaded *l = w->l->stages->stage[stage];
    const ptxgen_arguments args = { given->size, given->input, given->output, (const ptxgen_value *)given->param };
    struct fault f;

    w->step += stage == 0;
    if (w->branches && !branches_before_stage(w->branches, stage, l->program, given, &f))
        return fails(w, &f);
    w->status = w->prepares ? ptxgen_prepare(w->s, l, &args, w->stream)
                            : ptxgen_launch(w->s, l, &args, w->stream, w->workspace ? &w->pieces.piece[stage] : NULL);
    if (w->status == PTXGEN_OK && w->branches && !branches_after(w->branches, stage, &f))
        return fails(w, &f);
    if (w->status != PTXGEN_OK || (w->visit && !wait(w)))
        return false;
    if (w->visit && w->visit(stage, w->step, &args, w->user) != 0)
        return false;
    /* After three steps every memory has been an argument. */
    return !w->prepares || w->step < 2 || stage < w->l->stages->p->nstages - 1;
}

static bool walk_copy(void *user, void *to, const void *from, int64_t bytes)
{
    struct stage_walk *w = user;
    struct fault f;

    if (w->branches && !branches_join(w->branches, &f))
        return fails(w, &f);
    branches_free(w->branches); /* copies are the last */
    w->branches = NULL;
    if (!w->prepares)
        w->status = ptxgen_gpu_copy(w->s, w->l->gpu, to, from, (size_t)bytes, w->stream);
    return w->status == PTXGEN_OK;
}

static bool walk_holds(void *user, const void *flag, bool *holds)
{
    struct stage_walk *w = user;
    const struct driver *cu = &w->l->gpu->cu;
    unsigned char value = 0;
    struct fault f;

    *holds = false;
    if (w->prepares)
        return true;
    if (!wait(w))
        return false;
    if (!CU(&f, cu, MemcpyDtoH(&value, (cu_pointer)(uintptr_t)flag, 1)))
        return fails(w, &f);
    *holds = value != 0;
    return true;
}

/* ---- the calls ------------------------------------------------------------------------------- */
/* What an ordinary launch says of each stage: here of the whole, before the first stage begins. */
static bool check(const struct program *shape, const ptxgen_arguments *args, bool must, struct fault *f)
{
    if (shape->nsizes && !args->size)
        return fault_set(f, PTXGEN_USAGE, D_LAUNCH_ARGUMENT, "the arguments have no sizes");
    for (int i = 0; i < shape->nsizes; i++)
        if (args->size[i] < 0)
            return fault_set(f, PTXGEN_USAGE, D_LAUNCH_ARGUMENT, "size '%s' is negative", shape->size[i]);
    for (int i = 0; must && i < shape->ninputs + shape->noutputs; i++) {
        const bool output = i >= shape->ninputs;
        const struct prog_array *a = output ? &shape->output[i - shape->ninputs] : &shape->input[i];
        const void *p =
            !output ? (args->input ? args->input[i] : NULL) : (args->output ? args->output[i - shape->ninputs] : NULL);
        if (!p && prog_array_elements(a, args->size) > 0)
            return fault_set(f, PTXGEN_USAGE, D_LAUNCH_ARGUMENT, "array '%s' is null", a->name);
    }
    for (int i = 0; !args->param && i < shape->nparams; i++)
        if (!shape->param[i].has_default)
            return fault_set(f, PTXGEN_USAGE, D_LAUNCH_ARGUMENT, "param '%s' has no default and no value",
                             shape->param[i].name);
    return true;
}

static bool begin(struct stage_walk *w, const ptxgen_arguments *args, union value *defaults, struct run_args *run,
                  struct stages_layout *layout, struct fault *f)
{
    static const void *const nothing[LAUNCH_POINTERS_MAX]; /* what is prepared may have no arrays */
    const struct prog_stages *p = w->l->stages->p;
    const char *why = "the arrays between stages are too large at these sizes";

    if (!check(p->shape, args, !w->prepares, f))
        return false;
    for (int i = 0; i < p->shape->nparams; i++)
        defaults[i] = p->shape->param[i].value;
    *run = (struct run_args){ args->size, args->input ? args->input : nothing,
                              args->output ? args->output : (void *const *)(uintptr_t)nothing,
                              args->param ? (const union value *)(const void *)args->param : defaults };
    return (stages_place(p, args->size, layout) && stages_steps(p, run->param, &why) >= 0) ||
           fault_set(f, PTXGEN_USAGE, D_LAUNCH_ARGUMENT, "%s: %s", p->shape->name, why);
}

static const char *refuses(const struct ptxgen_loaded *l)
{
    return l->stages->refused ? "the driver has refused to make a graph of the loop"
                              : loop_refuses(l->gpu, l->stages->p);
}

/* Does the number of steps depend on the condition? */
static bool decides(const struct prog_stages *p, int64_t steps) { return stages_checks(p, p->check_every - 1, steps); }

/* In a capture: branches begin.  There the host cannot wait, and so neither read a condition nor visit. */
static bool begin_branches(struct stage_walk *w, int64_t steps, struct fault *f)
{
    const struct driver *cu = &w->l->gpu->cu;
    const char *why =
        w->workspace ? "loops inside of a graph work in memory of their own, so the workspace is NULL" : refuses(w->l);
    const char *loop = decides(w->l->stages->p, steps) ? why : NULL;
    int status = CU_CAPTURE_NONE;

    if (!CU(f, cu, StreamIsCapturing(w->stream, &status)))
        return false;
    if (status == CU_CAPTURE_NONE || w->prepares)
        return true;
    if (w->visit)
        return fault_set(f, PTXGEN_USAGE, D_CAPTURE, "visits to stages need a stream that is not captured");
    if (loop)
        return fault_set(f, PTXGEN_USAGE, D_CAPTURE,
                         "'%s' has `until`, and the host would read the condition after steps, which a stream "
                         "capture does not allow: %s",
                         w->l->program->name, loop);
    if (!cu->GetCaptureInfo || !cu->UpdateCapture)
        return true; /* one after the other */
    w->branches = branches_new(cu, w->stream, f);
    return w->branches != NULL;
}

/* The stream's memory for a launch.  Where a loop's second memory is too much, *place becomes NULL. */
static bool acquire(struct stage_walk *w, const struct stages_layout *layout, const struct loop_place **place,
                    struct control_block **block, struct fault *f)
{
    if (*place && control_acquire(w->l, w->stream, 0, (size_t)(*place)->bytes, block, f))
        return true;
    if (*place && f->status == PTXGEN_USAGE)
        return false; /* a capture, and nothing is prepared */
    *place = NULL;
    return !layout->bytes || control_acquire(w->l, w->stream, 0, (size_t)layout->bytes, block, f);
}

static bool walk_branches(struct stage_walk *w, const struct run_args *run, const struct stages_layout *layout,
                          void *memory, const struct stages_doer *doer, int64_t steps, struct fault *f)
{
    bool ok = begin_branches(w, steps, f);

    if (ok)
        stages_walk(w->l->stages->p, run, layout, memory, doer);
    if (w->branches && w->status == PTXGEN_OK)
        ok = branches_join(w->branches, f);
    branches_free(w->branches);
    return ok;
}

static bool go(struct stage_walk *w, const struct run_args *run, const struct stages_layout *layout, struct fault *f)
{
    const struct prog_stages *p = w->l->stages->p;
    const struct stages_doer doer = { w, walk_run, walk_copy, walk_holds, w->prepares };
    const char *why;
    const int64_t steps = stages_steps(p, run->param, &why);
    const bool decided = decides(p, steps), loops = decided && !w->visit && !refuses(w->l);
    struct loop_place lay;
    const struct loop_place *place = loops && loop_lay_out(p, run, 0, &lay) ? &lay : NULL;
    struct control_block *block = NULL;
    bool ok = acquire(w, layout, &place, &block, f);
    void *memory = block ? (void *)(uintptr_t)block->scratch : NULL;

    const struct kept_launch x = { w->s, w->l, run, layout, place, block, w->stream, w->prepares };
    if (ok && (w->visit || (decided && !place) || !kept_launch(&x, &w->status))) {
        ok = walk_branches(w, run, layout, memory, &doer, steps, f);
    }
    if (block)
        control_release(block);
    return ok;
}

/* In memory of the caller: stages one by one, or as branches of a capture. */
static bool go_in_workspace(struct stage_walk *w, const struct run_args *run, const struct stages_layout *layout,
                            struct fault *f)
{
    const struct prog_stages *p = w->l->stages->p;
    const struct stages_doer doer = { w, walk_run, walk_copy, walk_holds, false };
    const char *why;

    w->status = stages_measure(w->s, w->l, run, layout, w->workspace, &w->pieces);
    if (w->status != PTXGEN_OK)
        return true;
    return launch_check_workspace(w->workspace, w->pieces.control_bytes, w->pieces.scratch_bytes, f) &&
           walk_branches(w, run, layout, w->workspace->scratch, &doer, stages_steps(p, run->param, &why), f);
}

static ptxgen_status walk(struct stage_walk *w, const ptxgen_arguments *args)
{
    union value defaults[LAUNCH_PARAMS_MAX];
    struct stages_layout layout;
    struct run_args run;
    struct fault f;
    bool pushed;

    if (!gpu_enter(w->l->gpu, &pushed, &f))
        return fault_report(w->s, &f);
    if (!begin(w, args, defaults, &run, &layout, &f) || !(w->workspace ? go_in_workspace : go)(w, &run, &layout, &f))
        fails(w, &f);
    gpu_leave(w->l->gpu, pushed);
    return w->status;
}

ptxgen_status launch_stages(struct ptxgen_session *s, struct ptxgen_loaded *l, const ptxgen_arguments *args,
                            cu_stream stream, const ptxgen_workspace *workspace)
{
    return walk(&(struct stage_walk){ .l = l, .s = s, .stream = stream, .workspace = workspace, .step = -1 }, args);
}

ptxgen_status launch_prepare_stages(struct ptxgen_session *s, struct ptxgen_loaded *l, const ptxgen_arguments *args,
                                    cu_stream stream)
{
    return walk(&(struct stage_walk){ .l = l, .s = s, .stream = stream, .prepares = true, .step = -1 }, args);
}

ptxgen_status launch_measure_stages(struct ptxgen_session *s, struct ptxgen_loaded *l, const ptxgen_arguments *args,
                                    ptxgen_workspace *out)
{
    struct stage_walk w = { .l = l, .s = s, .prepares = true, .step = -1 };
    union value defaults[LAUNCH_PARAMS_MAX];
    struct stages_layout layout;
    struct stages_pieces pieces;
    struct run_args run;
    struct fault f;

    if (!begin(&w, args, defaults, &run, &layout, &f))
        return fault_report(s, &f);
    w.status = stages_measure(s, l, &run, &layout, NULL, &pieces);
    out->control_bytes = w.status == PTXGEN_OK ? pieces.control_bytes : 0;
    out->scratch_bytes = w.status == PTXGEN_OK ? pieces.scratch_bytes : 0;
    return w.status;
}

ptxgen_status ptxgen_launch_stages(ptxgen_session *s, ptxgen_loaded *loaded, const ptxgen_arguments *args,
                                   ptxgen_stream stream, ptxgen_stage_visitor *visit, void *user)
{
    NEED(PTXGEN_USAGE, s, loaded, args, visit ? loaded : NULL);
    if (!loaded->stages)
        return ptxgen_launch(s, loaded, args, stream, NULL);
    return walk(&(struct stage_walk){ .l = loaded, .s = s, .stream = stream, .visit = visit, .user = user, .step = -1 },
                args);
}
