/* SPDX-License-Identifier: Apache-2.0 */
/* header_stages.c - a program of several stages as one C header.
 *
 * The code of each stage is what the header of its program would have, under the stage's name.  Tables say which stage
 * has which arrays; the walk over them is the same for all headers (header_walk.c).  The workspace is that of each
 * stage, then the arrays between stages.
 */
#include "header_impl.h"

#include <stdlib.h>
#include <string.h>

struct header header_of_stage(const struct header *h, int stage)
{
    return (struct header){ .p = h->program[stage], .out = h->out, .name = h->program[stage]->name };
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static int pointer_of(const struct header *h, const struct stage_array *a)
{
    return a->place == PLACE_BETWEEN ? -1 : a->index + (a->place == PLACE_OUTPUT ? h->p->ninputs : 0);
}

static void array_row(const struct header *h, const struct stage_array *a, int pointer)
{
    const struct prog_array *x = &a->array;
    header_emit(h, "    { %d, %d, %d, %d, %d, {", pointer, a->first, a->last, x->rank, x->stride);
    for (int d = 0; d < PROG_RANK_MAX; d++)
        header_emit(h, "%s%d", d ? ", " : " ", d < x->rank ? x->dim[d].size : -1);
    str_add(h->out, " }, {");
    for (int d = 0; d < PROG_RANK_MAX; d++)
        header_emit(h, "%s%lld", d ? ", " : " ", d < x->rank ? (long long)x->dim[d].add : 0);
    header_emit(h, " } }, /* %s%s */\n", x->name, pointer < 0 && a->place != PLACE_BETWEEN ? ", its twin" : "");
}

static int arrays_table(const struct header *h)
{
    const struct prog_stages *p = h->stages;
    int count = p->narrays;
    header_emit(h, "static const struct ptxgen_array @_arrays[] = {\n");
    for (int i = 0; i < p->narrays; i++)
        array_row(h, &p->array[i], pointer_of(h, &p->array[i]));
    for (int i = 0; i < p->nfeedback; i++) {
        struct stage_array twin = p->array[p->feedback[i].output];
        twin.first = 0;
        twin.last = p->nstages - 1;
        if (p->feedback[i].twin)
            array_row(h, &twin, -1);
        count += p->feedback[i].twin;
    }
    str_add(h->out, "};\n");
    return count;
}

static void feedback_table(const struct header *h)
{
    const struct prog_stages *p = h->stages;
    int twin = p->narrays;
    header_emit(h, "static const struct ptxgen_feedback @_feedback[] = {\n");
    for (int i = 0; i < p->nfeedback; i++)
        header_emit(h, "    { %d, %d, %d },\n", p->feedback[i].input, p->feedback[i].output,
                    p->feedback[i].twin ? twin++ : -1);
    str_add(h->out, "    { -1, -1, -1 },\n};\n");
}

static bool reads_step(const struct prog_stage *s, const struct formula *f)
{
    for (int i = 0; i < f->n; i++)
        if (f->step[i].op == FO_PARAM && s->param[f->step[i].imm] < 0)
            return true;
    return false;
}

/* Does a stage's workspace depend on the number of the step, as where that says how often the stage repeats itself? */
static bool varies(const struct prog_stage *s, const struct program *program)
{
    bool varies = false;
    for (int c = 0; c < program->ncases; c++) {
        varies |= reads_step(s, &program->cases[c].guard);
        for (int b = 0; b < program->cases[c].nbuffers; b++)
            varies |= reads_step(s, &program->cases[c].buffer[b].bytes);
    }
    return varies;
}

static void stages_table(const struct header *h)
{
    const struct prog_stages *p = h->stages;
    for (int i = 0; i < p->nstages; i++) {
        const struct prog_stage *s = &p->stage[i];
        header_emit(h, "static const int @_arrays_%d[] = {", i);
        for (int k = 0; k < s->ninputs + s->noutputs; k++)
            header_emit(h, "%s%d", k ? ", " : " ", k < s->ninputs ? s->input[k] : s->output[k - s->ninputs]);
        str_add(h->out, " };\n");
    }
    header_emit(h, "static const struct ptxgen_stage @_stage[] = {\n");
    for (int i = 0; i < p->nstages; i++)
        header_emit(h, "    { @_call_%d, %d, %d, @_arrays_%d }, /* %s */\n", i,
                    p->stage[i].ninputs + p->stage[i].noutputs, varies(&p->stage[i], h->program[i]), i,
                    p->stage[i].name);
    str_add(h->out, "};\n");
    const int arrays = arrays_table(h);
    feedback_table(h);
    header_emit(
        h, "static const struct ptxgen_stages @_stages = { %d, %d, %d, %d, %d, @_stage, @_arrays, @_feedback };\n\n",
        p->nstages, arrays, p->nfeedback, p->until, p->check_every);
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

static void call_param(const struct header *h, const struct prog_stage *s, const struct prog_param *x, int i)
{
    const char *type = header_c_type(x->type);
    if (s->param[i] < 0)
        header_emit(h, "    values.param[%d] = step;\n    values.value%d = (%s)step;\n", i, i, type);
    else
        header_emit(h, "    values.param[%d] = v->param[%d];\n    values.value%d = v->value%d;\n", i, s->param[i], i,
                    s->param[i]);
}

/* Measures or launches a stage, with the sizes and params that it has of the whole. */
static void call_function(const struct header *h, int number)
{
    const struct prog_stage *s = &h->stages->stage[number];
    const struct program *program = h->program[number];
    header_emit(h,
                "static inline CUresult @_call_%d(void *whole, const void *given, const uint64_t *pointer, int64_t "
                "step,\n    CUstream stream, void *workspace, size_t bytes, size_t *need)\n{\n    @_program *handle = "
                "(@_program *)whole;\n    const struct @_values *v = (const struct @_values *)given;\n    struct "
                "%s_values values;\n    CUresult result;\n    memset(&values, 0, sizeof values);\n",
                number, program->name);
    for (int i = 0; i < s->nsizes; i++)
        header_emit(h, "    values.size[%d] = v->size[%d];\n", i, s->size[i]);
    for (int i = 0; i < s->nparams; i++)
        call_param(h, s, &program->param[i], i);
    header_emit(
        h,
        "    if (pointer != NULL)\n        memcpy(values.pointer, pointer, %d * sizeof *pointer);\n    result = "
        "need != NULL ? %s_measure(&handle->stage%d, &values, need)\n                          : "
        "%s_start(&handle->stage%d, stream, &values, workspace, bytes);\n    if (result != CUDA_SUCCESS)\n     "
        "   handle->message = handle->stage%d.message;\n    (void)v;\n    (void)step;\n    return "
        "result;\n}\n\n",
        s->ninputs + s->noutputs, program->name, number, program->name, number, number);
}

static void load_functions(const struct header *h)
{
    header_emit(h, "static inline void @_unload(@_program *handle)\n{\n");
    for (int i = 0; i < h->stages->nstages; i++)
        header_emit(h, "    %s_unload(&handle->stage%d);\n", h->program[i]->name, i);
    header_emit(h,
                "    memset(handle, 0, sizeof *handle);\n}\n\nstatic inline CUresult @_load(@_program *handle)\n{\n  "
                "  CUresult result = CUDA_SUCCESS;\n    memset(handle, 0, sizeof *handle);\n");
    for (int i = 0; i < h->stages->nstages; i++)
        header_emit(h,
                    "    if (result == CUDA_SUCCESS && (result = %s_load(&handle->stage%d)) != CUDA_SUCCESS) {\n"
                    "        handle->message = handle->stage%d.message;\n        memcpy(handle->log, "
                    "handle->stage%d.log, sizeof handle->log);\n    }\n",
                    h->program[i]->name, i, i, i);
    header_emit(h, "    return result;\n}\n\nstatic inline void @_reset(@_program *handle)\n{\n");
    for (int i = 0; i < h->stages->nstages; i++)
        header_emit(h, "    %s_reset(&handle->stage%d);\n", h->program[i]->name, i);
    str_add(h->out, "}\n\n");
}

static void measure_function(const struct header *h)
{
    header_emit(h, "static inline CUresult @_lay_out(@_program *handle, struct @_values *v, struct ptxgen_walk *w)\n{\n"
                   "    CUresult result = @_check(handle, v);\n    memset(w, 0, sizeof *w);\n    w->p = &@_stages;\n   "
                   " w->handle = handle;\n    w->values = v;\n    w->pointer = v->pointer;\n    w->message = "
                   "&handle->message;\n    return result == CUDA_SUCCESS ? ptxgen_place(w, v->size) : result;\n}\n\n");
    header_emit(h, "static inline CUresult @_measure(@_program *handle, struct @_values *v, size_t "
                   "*workspace_bytes)\n{\n    struct ptxgen_walk walk;\n    CUresult result = @_lay_out(handle, v, "
                   "&walk);\n    if (result == CUDA_SUCCESS)\n        *workspace_bytes = (size_t)walk.total;\n    "
                   "return result;\n}\n\n");
}

/* What is refused before the first stage begins. */
static void start_checks(const struct header *h)
{
    const struct prog_stages *p = h->stages;
    const union value none[STAGE_ARGS_MAX] = { { .i = 0 } };
    const char *why;
    if (p->steps_param < 0)
        header_emit(h, "    walk.steps = %lld;\n", (long long)p->steps);
    else
        header_emit(h, "    walk.steps = v->param[%d];\n", p->steps_param);
    header_emit(h, "    if (walk.steps < 0)\n        return @_refuse(handle, CUDA_ERROR_INVALID_VALUE, \"the number of "
                   "steps is negative\");\n");
    if (p->steps_param >= 0 && stages_steps(p, none, &why) < 0)
        header_emit(h, "    if (walk.steps == 0)\n        return @_refuse(handle, CUDA_ERROR_INVALID_VALUE, \"%s\");\n",
                    why);
    if (p->until >= 0)
        header_emit(h, "    result = cuStreamIsCapturing(stream, &capturing);\n    if (result != CUDA_SUCCESS || "
                       "capturing != CU_STREAM_CAPTURE_STATUS_NONE)\n        return @_refuse(handle, result != "
                       "CUDA_SUCCESS ? result : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,\n                       \"the "
                       "host reads the condition of the loop, which a stream capture does not allow\");\n");
}

static void start_function(const struct header *h)
{
    header_emit(h,
                "static inline CUresult @_start(@_program *handle, CUstream stream, struct @_values *v, void "
                "*workspace,\n    size_t workspace_bytes)\n{\n    struct ptxgen_walk walk;\n%s    CUresult result = "
                "@_lay_out(handle, v, &walk);\n    if (result == CUDA_SUCCESS)\n        result = "
                "@_check_pointers(handle, v);\n    if (result != CUDA_SUCCESS)\n        return result;\n",
                h->stages->until < 0 ? "" : "    CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;\n");
    start_checks(h);
    header_emit(h, "    walk.workspace = (uint64_t)(uintptr_t)workspace;\n    if ((uint64_t)walk.total > "
                   "workspace_bytes || walk.workspace %% 256 != 0)\n        return @_refuse(handle, "
                   "CUDA_ERROR_INVALID_VALUE, \"the workspace is too small or not aligned to 256 bytes\");\n    result "
                   "= ptxgen_walk_stages(&walk, stream);\n    if (result != CUDA_SUCCESS)\n        @_reset(handle);\n  "
                   "  return result;\n}\n\n");
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static void write_stages(const struct header *h)
{
    header_api(h);
    header_support(h->out);
    header_walk(h->out);
    for (int i = 0; i < h->stages->nstages; i++) {
        const struct header stage = header_of_stage(h, i);
        header_emit(h, "/* ---- stage %s */\n", h->stages->stage[i].name);
        header_values(&stage);
        header_code(&stage);
        call_function(h, i);
    }
    str_add(h->out, "/* ---- all stages */\n");
    header_refuse(h);
    stages_table(h);
    load_functions(h);
    header_checks(h);
    measure_function(h);
    start_function(h);
    header_typed_functions(h);
    str_add(h->out, "#endif\n");
}

/* The shape, with modules and cases of all stages, for what users read. */
static bool gather(struct program *whole, const struct prog_stages *p, const struct program *const *stage)
{
    int cases = 0, modules = 0;
    for (int i = 0; i < p->nstages; i++) {
        cases += stage[i]->ncases;
        modules += stage[i]->nmodules;
    }
    whole->cases = calloc((size_t)cases + 1, sizeof *whole->cases);
    whole->module = calloc((size_t)modules + 1, sizeof *whole->module);
    for (int i = 0; i < p->nstages && whole->cases && whole->module; i++) {
        memcpy(whole->cases + whole->ncases, stage[i]->cases, (size_t)stage[i]->ncases * sizeof *whole->cases);
        memcpy(whole->module + whole->nmodules, stage[i]->module, (size_t)stage[i]->nmodules * sizeof *whole->module);
        whole->ncases += stage[i]->ncases;
        whole->nmodules += stage[i]->nmodules;
    }
    return whole->cases && whole->module;
}

void stages_header(const struct prog_stages *p, const struct program *const *stage, struct str *out)
{
    struct program whole = *p->shape;
    struct header h = { .p = &whole, .out = out, .name = whole.name, .stages = p, .program = stage };
    whole.kind = "program of stages";
    whole.ptx_version = stage[0]->ptx_version;
    memcpy(whole.arch, stage[0]->arch, sizeof whole.arch);
    const bool gathered = gather(&whole, p, stage);
    out->failed = out->failed || !gathered;
    if (gathered && header_name_arguments(&h))
        write_stages(&h);
    header_forget_arguments(&h);
    free(whole.cases);
    free(whole.module);
}
