/* SPDX-License-Identifier: Apache-2.0 */
/* program_from_plan.c - a program outlives the session that planned it: deep copies into its own arena. */
#include "plan.h"

#include <stdio.h>
#include <string.h>

static const char *const kind_names[] = { "reduce", "scan", "stencil" };
static const char *const determinism_names[] = { "any", "run", "device" };

static void *copy(struct arena *a, const void *from, size_t bytes)
{
    return bytes ? memcpy(arena_alloc(a, bytes), from, bytes) : NULL;
}

static const char *text(struct arena *a, const char *s) { return s ? arena_strdup(a, s) : NULL; }

static struct prog_array copy_array(struct arena *a, const struct prog_array *from)
{
    struct prog_array to = *from;
    to.name = text(a, from->name);
    struct prog_field *field = copy(a, from->field, sizeof *field * (size_t)from->nfields);
    for (int f = 0; f < from->nfields; f++)
        field[f].name = text(a, from->field[f].name);
    to.field = field;
    return to;
}

static void copy_arrays(struct program *to, const struct problem *p)
{
    struct arena *a = to->arena;
    to->ninputs = p->ninputs;
    to->input = arena_new(a, struct prog_array, p->ninputs);
    for (int i = 0; i < p->ninputs; i++)
        to->input[i] = copy_array(a, problem_array(p, i));
    to->noutputs = p->noutputs;
    to->output = arena_new(a, struct prog_array, p->noutputs);
    for (int i = 0; i < p->noutputs; i++)
        to->output[i] = copy_array(a, problem_array(p, p->ninputs + i));
    to->nparams = p->nparams;
    to->param = arena_new(a, struct prog_param, p->nparams);
    for (int i = 0; i < p->nparams; i++) {
        to->param[i] = p->param[i];
        to->param[i].name = text(a, p->param[i].name);
    }
    const char **size = arena_new(a, const char *, p->nsizes);
    for (int i = 0; i < p->nsizes; i++)
        size[i] = text(a, p->size[i].name);
    to->nsizes = p->nsizes;
    to->size = size;
}

static struct prog_case copy_case(struct arena *a, const struct prog_case *from, int module)
{
    struct prog_case to = *from;
    to.name = text(a, from->name);
    to.strategy = text(a, from->strategy);
    to.kernel = copy(a, from->kernel, sizeof *from->kernel * (size_t)from->nkernels);
    for (int i = 0; i < from->nkernels; i++) {
        to.kernel[i].name = text(a, from->kernel[i].name);
        to.kernel[i].module = module;
        struct prog_arg *arg = copy(a, from->kernel[i].arg, sizeof *arg * (size_t)from->kernel[i].nargs);
        for (int j = 0; j < from->kernel[i].nargs; j++)
            arg[j].name = text(a, arg[j].name);
        to.kernel[i].arg = arg;
    }
    to.buffer = copy(a, from->buffer, sizeof *from->buffer * (size_t)from->nbuffers);
    for (int i = 0; i < from->nbuffers; i++)
        to.buffer[i].name = text(a, from->buffer[i].name);
    to.step = copy(a, from->step, sizeof *from->step * (size_t)from->nsteps);
    return to;
}

static void copy_plan(struct program *to, const struct plan *plan)
{
    struct arena *a = to->arena;
    const struct problem *p = plan->problem;
    to->name = text(a, p->name);
    to->kind = kind_names[p->kind];
    to->determinism = determinism_names[p->determinism];
    snprintf(to->arch, sizeof to->arch, "%s", plan->device.arch);
    to->ptx_version = plan->device.ptx;
    copy_arrays(to, p);
    to->nchecks = plan->nchecks;
    to->check = copy(a, plan->check, sizeof *plan->check * (size_t)plan->nchecks);
    for (int i = 0; i < plan->nchecks; i++)
        to->check[i].message = text(a, to->check[i].message);
    to->ncases = plan->ncases;
    to->cases = arena_new(a, struct prog_case, plan->ncases);
    for (int i = 0; i < plan->ncases; i++)
        to->cases[i] = copy_case(a, &plan->cases[i].code, i);
    to->nmodules = plan->ncases;
    to->module = arena_new(a, struct prog_module, plan->ncases);
}

struct program *program_from_plan(const struct plan *plan)
{
    struct program *program = program_create();
    jmp_buf oom;
    if (!program)
        return NULL;
    program->arena->oom = &oom;
    if (setjmp(oom)) {
        program_destroy(program);
        return NULL;
    }
    copy_plan(program, plan);
    program->arena->oom = NULL;
    return program;
}
