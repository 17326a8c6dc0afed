/* SPDX-License-Identifier: Apache-2.0 */
/* header_case.c - a case as C: how much workspace it needs and where its buffers lie, and its steps.
 *
 * Each case becomes two functions:
 *     NAME_place_C   offsets of the buffers; bytes of control and scratch
 *     NAME_run_C     the steps
 */
#include "header_impl.h"
#include "workspace.h"

/* ---- formulas ------------------------------------------------------------------------------------- */

static int subtree_begin(const struct formula *f, int last)
{
    for (int missing = 1; missing > 0; last--)
        missing += f->step[last].op < FO_ADD ? -1 : f->step[last].op == FO_NOT ? 0 : 1;
    return last + 1;
}

/* misalign and apart: what the addresses, or their differences from the first one, have in their low bits. */
static void low_bits(const struct header *h, const struct formula_step *s)
{
    const int first = __builtin_ctzll((uint64_t)s->imm);
    str_add(h->out, "(int64_t)((0");
    for (uint64_t set = (uint64_t)s->imm; set; set &= set - 1) {
        header_emit(h, " | ");
        if (s->op == FO_APART)
            header_emit(h, "(v->pointer[%d] ^ v->pointer[%d])", __builtin_ctzll(set), first);
        else
            header_emit(h, "v->pointer[%d]", __builtin_ctzll(set));
    }
    str_add(h->out, ") % 16)");
}

static void leaf(const struct header *h, const struct formula_step *s, bool in_guard)
{
    const int i = (int)s->imm;
    switch (s->op) {
    case FO_CONST:
        if (s->imm == INT64_MIN)
            str_add(h->out, "INT64_MIN");
        else
            header_emit(h, "INT64_C(%lld)", (long long)s->imm);
        break;
    case FO_SIZE: header_emit(h, "v->size[%d]", i); break;
    case FO_PARAM: header_emit(h, "v->param[%d]", i); break;
    case FO_SMS: str_add(h->out, "handle->sms"); break;
    case FO_SM_ARCH: str_add(h->out, "handle->arch"); break;
    case FO_SMEM: str_add(h->out, "handle->smem"); break;
    case FO_RESIDENT:
        if (in_guard)
            str_add(h->out, "0");
        else
            header_emit(h, "v->resident[%d]", i);
        break;
    default: low_bits(h, s); break;
    }
}

/* Operators that C has, with its meaning; NULL: a function. */
static const char *c_operator(enum formula_op op)
{
    static const char *const operators[FO_COUNT] = {
        [FO_LT] = "<",  [FO_LE] = "<=", [FO_EQ] = "==",  [FO_NE] = "!=",
        [FO_GE] = ">=", [FO_GT] = ">",  [FO_AND] = "&&", [FO_OR] = "||",
    };
    return operators[op];
}

static const char *c_function(enum formula_op op)
{
    static const char *const functions[FO_COUNT] = {
        [FO_ADD] = "add",   [FO_SUB] = "sub", [FO_MUL] = "mul", [FO_DIV] = "div",   [FO_MOD] = "mod",
        [FO_CDIV] = "cdiv", [FO_MIN] = "min", [FO_MAX] = "max", [FO_POW2] = "pow2",
    };
    return functions[op];
}

static void tree(const struct header *h, const struct formula *f, int last, bool in_guard)
{
    const enum formula_op op = f->step[last].op;
    if (op < FO_ADD) {
        leaf(h, &f->step[last], in_guard);
    } else if (op == FO_NOT) {
        str_add(h->out, "!(");
        tree(h, f, last - 1, in_guard);
        str_addc(h->out, ')');
    } else {
        const char *infix = c_operator(op);
        if (infix != NULL)
            str_addc(h->out, '(');
        else
            header_emit(h, "ptxgen_%s(", c_function(op));
        tree(h, f, subtree_begin(f, last - 1) - 1, in_guard);
        if (infix != NULL)
            header_emit(h, " %s ", infix);
        else
            str_add(h->out, ", ");
        tree(h, f, last - 1, in_guard);
        str_addc(h->out, ')');
    }
}

void header_formula(const struct header *h, const struct formula *f, bool in_guard)
{
    if (f->n <= 0)
        str_add(h->out, f->n == 0 ? "1" : "0");
    else
        tree(h, f, f->n - 1, in_guard);
}

void header_condition(const struct header *h, const struct formula *f)
{
    const char *infix = f->n > 0 ? c_operator(f->step[f->n - 1].op) : NULL;
    str_add(h->out, "if (");
    if (infix == NULL) {
        header_formula(h, f, true);
    } else { /* without parentheses around it: compilers take `if ((a == b))` for a slip */
        tree(h, f, subtree_begin(f, f->n - 2) - 1, true);
        header_emit(h, " %s ", infix);
        tree(h, f, f->n - 2, true);
    }
    str_addc(h->out, ')');
}

bool header_uses(const struct formula *f, enum formula_op op)
{
    for (int i = 0; i < f->n; i++)
        if (f->step[i].op == op)
            return true;
    return false;
}

/* The infix text beside generated code. A comment's end cannot be in it: there is no such operator. */
void header_comment(const struct header *h, int c, const struct formula *f)
{
    struct formula_names names = program_names(h->p, c);
    formula_print(f, &names, h->out);
    program_names_finish(&names);
}

/* ---- names and numbers ---------------------------------------------------------------------------- */

int header_kernel_number(const struct program *p, int c, int kernel)
{
    for (int k = 0; k < c; k++)
        kernel += p->cases[k].nkernels;
    return kernel;
}

int header_kernel_count(const struct program *p) { return header_kernel_number(p, p->ncases, 0); }

const char *header_c_type(enum ty t)
{
    static const char *const types[TY_COUNT] = {
        [TY_BOOL] = "uint8_t", [TY_I8] = "int8_t",    [TY_I16] = "int16_t",   [TY_I32] = "int32_t",
        [TY_I64] = "int64_t",  [TY_U8] = "uint8_t",   [TY_U16] = "uint16_t",  [TY_U32] = "uint32_t",
        [TY_U64] = "uint64_t", [TY_F16] = "uint16_t", [TY_BF16] = "uint16_t", [TY_F32] = "float",
        [TY_F64] = "double",
    };
    return types[t];
}

/* ---- workspace ------------------------------------------------------------------------------------ */

static void place_buffer(const struct header *h, int c, int b)
{
    const struct prog_buffer *x = &h->p->cases[c].buffer[b];
    header_emit(h, "    /* %s: ", x->name);
    header_comment(h, c, &x->bytes);
    str_add(h->out, " bytes */\n    bytes = ");
    if (x->bytes.n == 0)
        str_addc(h->out, '0');
    else
        header_formula(h, &x->bytes, false);
    str_add(h->out, ";\n");
    if (x->region == REGION_SCRATCH) {
        header_emit(h, "    offset[%d] = *scratch;\n    *scratch = ptxgen_add(*scratch, ptxgen_align(bytes));\n", b);
        return;
    }
    const struct control_place at = program_control_place(h->p, c, b);
    int64_t fixed;
    int slots;
    program_control_layout(h->p, &fixed, &slots);
    if (at.slot < 0)
        header_emit(h, "    offset[%d] = %lld;\n    end = ptxgen_add(offset[%d], ptxgen_align(bytes));\n", b,
                    (long long)at.offset, b);
    else
        header_emit(h, "    offset[%d] = ptxgen_slot(%lld, %d, %d, bytes, &end);\n", b, (long long)fixed, slots,
                    at.slot);
    str_add(h->out, "    *control = ptxgen_max(*control, end);\n");
}

static bool has_control(const struct prog_case *k)
{
    bool has = false;
    for (int b = 0; b < k->nbuffers; b++)
        has = has || k->buffer[b].region == REGION_CONTROL;
    return has;
}

static void place_function(const struct header *h, int c)
{
    const struct prog_case *k = &h->p->cases[c];
    header_emit(h,
                "static inline void @_place_%d(const @_program *handle, const struct @_values *v, int64_t *offset,\n   "
                " int64_t *control, int64_t *scratch)\n{\n%s%s    *control = *scratch = 0;\n",
                c, k->nbuffers > 0 ? "    int64_t bytes;\n" : "", has_control(k) ? "    int64_t end;\n" : "");
    for (int b = 0; b < k->nbuffers; b++)
        place_buffer(h, c, b);
    str_add(h->out, "    (void)handle;\n    (void)v;\n    (void)offset;\n}\n\n");
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void argument(const struct header *h, const struct prog_arg *a, int number)
{
    header_emit(h, "        ");
    switch (a->kind) {
    case ARG_INPUT: header_emit(h, "uint64_t a%d = v->pointer[%d];", number, a->index); break;
    case ARG_OUTPUT: header_emit(h, "uint64_t a%d = v->pointer[%d];", number, h->p->ninputs + a->index); break;
    case ARG_BUFFER: header_emit(h, "uint64_t a%d = buffer[%d];", number, a->index); break;
    case ARG_FED: /* of the sweep at hand; see sweep_arguments() */
    case ARG_NEXT: header_emit(h, "uint64_t a%d = 0;", number); break;
    case ARG_PARAM:
        header_emit(h, "%s a%d = v->value%d;", header_c_type(h->p->param[a->index].type), number, a->index);
        break;
    case ARG_VALUE:
        header_emit(h, "%s a%d = (%s)", header_c_type(a->type), number, header_c_type(a->type));
        header_formula(h, &a->value, false);
        str_addc(h->out, ';');
        break;
    }
    header_emit(h, " /* %s */\n", a->name != NULL ? a->name : "");
}

/* Which array an argument of a time step is: the user's or the buffer, by the number of sweeps that follow. */
static void sweep_arguments(const struct header *h, const struct prog_kernel *k)
{
    for (int i = 0; i < k->nargs; i++) {
        const struct prog_arg *a = &k->arg[i];
        if (a->kind != ARG_FED && a->kind != ARG_NEXT)
            continue;
        header_emit(h, "            a%d = ", i);
        if (a->kind == ARG_FED)
            header_emit(h, "sweep == 0 ? v->pointer[%d] : ", a->index);
        header_emit(h, "(sweeps - sweep) %% 2 == %d ? v->pointer[%d] : buffer[%d];\n", a->kind == ARG_NEXT,
                    h->p->ninputs + a->output, a->buffer);
    }
}

static bool counts_sweeps(const struct prog_case *k)
{
    for (int i = 0; i < k->nkernels; i++)
        for (int j = 0; j < k->kernel[i].nargs; j++)
            if (k->kernel[i].arg[j].kind >= ARG_FED)
                return true;
    return false;
}

static void assign(const struct header *h, const char *name, const struct formula *f, int64_t absent)
{
    header_emit(h, "        %s = ", name);
    if (f->n == 0)
        header_emit(h, "%lld", (long long)absent);
    else
        header_formula(h, f, false);
    str_add(h->out, ";\n");
}

static void launch_step(const struct header *h, int c, const struct prog_step *s)
{
    const struct prog_kernel *k = &h->p->cases[c].kernel[s->kernel];
    header_emit(h, "    { /* %s on ", k->name);
    header_comment(h, c, &s->grid);
    str_add(h->out, " blocks */\n");
    for (int i = 0; i < k->nargs; i++)
        argument(h, &k->arg[i], i);
    header_emit(h, "        void *args[%d];\n        int64_t grid, shared, cluster, repeat;\n", k->nargs + 1);
    for (int i = 0; i < k->nargs; i++)
        header_emit(h, "        args[%d] = &a%d;\n", i, i);
    header_emit(h, "        args[%d] = NULL;\n", k->nargs);
    assign(h, "grid", &s->grid, 1);
    assign(h, "shared", &s->shared, 0);
    assign(h, "cluster", &s->cluster, k->cluster);
    assign(h, "repeat", &s->repeat, 1);
    header_emit(h,
                "        if (grid < 0 || grid > 0x7fffffff || shared < 0 || shared > handle->smem)\n            return "
                "@_refuse(handle, CUDA_ERROR_INVALID_VALUE, \"%s: too many blocks, or too much shared memory\");\n     "
                "   for (; result == CUDA_SUCCESS && grid > 0 && repeat > 0; repeat--) {\n",
                k->name);
    sweep_arguments(h, k);
    header_emit(h,
                "            result = ptxgen_start(handle->kernel[%d], grid, %d, shared, cluster, %s, stream, "
                "args);\n%s        }\n        if (result != CUDA_SUCCESS)\n            return @_refuse(handle, result, "
                "\"launching %s failed\");\n    }\n",
                header_kernel_number(h->p, c, s->kernel), k->threads, s->dependent ? "handle->arch >= 90" : "0",
                s->repeat.n > 0 && counts_sweeps(&h->p->cases[c]) ? "            sweep++;\n" : "", k->name);
}

/* Dynamic shared memory of a kernel's first launch, which its occupancy depends on. */
static const struct formula *shared_of(const struct prog_case *k, int kernel)
{
    static const struct formula none;
    for (int i = 0; i < k->nsteps; i++)
        if (k->step[i].kernel == kernel)
            return &k->step[i].shared;
    return &none;
}

static bool case_uses_resident(const struct prog_case *k)
{
    bool uses = false;
    for (int b = 0; b < k->nbuffers; b++)
        uses = uses || header_uses(&k->buffer[b].bytes, FO_RESIDENT);
    for (int i = 0; i < k->nsteps; i++) {
        const struct prog_step *s = &k->step[i];
        uses = uses || header_uses(&s->grid, FO_RESIDENT) || header_uses(&s->cluster, FO_RESIDENT) ||
               header_uses(&s->repeat, FO_RESIDENT);
    }
    for (int i = 0; i < k->nkernels; i++)
        for (int j = 0; j < k->kernel[i].nargs; j++)
            uses =
                uses || (k->kernel[i].arg[j].kind == ARG_VALUE && header_uses(&k->kernel[i].arg[j].value, FO_RESIDENT));
    return uses;
}

static void measure_function(const struct header *h, int c)
{
    const struct prog_case *k = &h->p->cases[c];
    header_emit(h,
                "static inline CUresult @_measure_%d(@_program *handle, struct @_values *v)\n{\n    CUresult result = "
                "CUDA_SUCCESS;\n",
                c);
    for (int i = 0; case_uses_resident(k) && i < k->nkernels; i++) {
        header_emit(
            h,
            "    if (result == CUDA_SUCCESS)\n"
            "        result = cuOccupancyMaxActiveBlocksPerMultiprocessor(&v->resident[%d], handle->kernel[%d], "
            "%d, (size_t)",
            i, header_kernel_number(h->p, c, i), k->kernel[i].threads);
        const struct formula *shared = shared_of(k, i);
        str_addc(h->out, '(');
        if (shared->n == 0)
            str_addc(h->out, '0');
        else
            header_formula(h, shared, false);
        str_add(h->out, "));\n");
    }
    str_add(h->out, "    (void)handle;\n    (void)v;\n    return result;\n}\n\n");
}

static void run_function(const struct header *h, int c)
{
    const struct prog_case *k = &h->p->cases[c];
    header_emit(h,
                "static inline CUresult @_run_%d(@_program *handle, CUstream stream, const struct @_values *v,\n    "
                "const uint64_t *buffer)\n{\n    CUresult result = CUDA_SUCCESS;\n%s",
                c, counts_sweeps(k) ? "    int64_t sweep = 0, sweeps = 0;\n" : "");
    for (int i = 0; counts_sweeps(k) && i < k->nsteps; i++)
        if (k->step[i].repeat.n > 0) {
            str_add(h->out, "    sweeps = ptxgen_add(sweeps, ");
            header_formula(h, &k->step[i].repeat, false);
            str_add(h->out, ");\n");
        }
    for (int i = 0; i < k->nsteps; i++)
        launch_step(h, c, &k->step[i]);
    str_add(h->out, "    (void)handle;\n    (void)stream;\n    (void)v;\n    (void)buffer;\n    return result;\n}\n\n");
}

void header_case(const struct header *h, int c)
{
    header_emit(h, "/* ---- case %s: %s */\n/* guard: ", h->p->cases[c].name, h->p->cases[c].strategy);
    header_comment(h, c, &h->p->cases[c].guard);
    str_add(h->out, " */\n");
    measure_function(h, c);
    place_function(h, c);
    run_function(h, c);
}
