/* SPDX-License-Identifier: Apache-2.0 */
/* header_arguments.c - the arguments of the functions that users of a generated header call: names, types, defaults. */
#include "header_impl.h"

#include <string.h>

/* ---- names ---------------------------------------------------------------------------------------- */

/* Sizes, inputs, outputs, params: the arguments of the launch function in order. */
static const char *argument(const struct program *p, int i)
{
    if (i < p->nsizes)
        return p->size[i];
    i -= p->nsizes;
    if (i < p->ninputs)
        return p->input[i].name;
    i -= p->ninputs;
    return i < p->noutputs ? p->output[i].name : p->param[i - p->noutputs].name;
}

static int first_param(const struct program *p) { return p->nsizes + p->ninputs + p->noutputs; }

/* Words of C and C++, macros of the included headers, and what the functions with these arguments use beside them. */
static bool taken(const char *name)
{
    static const char words[] = " alignas alignof and and_eq asm auto bitand bitor bool break case catch char class "
                                "compl concept const constexpr const_cast "
                                "continue decltype default delete do double dynamic_cast else enum explicit export "
                                "extern false float for friend goto if "
                                "inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq "
                                "private protected public register "
                                "reinterpret_cast requires restrict return short signed sizeof static static_assert "
                                "static_cast struct switch template this "
                                "thread_local throw true try typedef typeid typename typeof union unsigned using "
                                "virtual void volatile wchar_t while xor "
                                "xor_eq handle stream workspace workspace_bytes values size_t int64_t uint64_t "
                                "uintptr_t CUresult CUstream NULL NAN INFINITY "
                                "HUGE_VAL linux unix ";
    const char *at = strstr(words, name);
    const size_t n = strlen(name);
    for (; at != NULL; at = strstr(at + 1, name))
        if (at > words && at[-1] == ' ' && at[n] == ' ')
            return true;
    return false;
}

/* A name for argument i that C accepts and no earlier argument has. */
static void argument_name(const struct header *h, int i)
{
    const char *name = argument(h->p, i);
    str_add(h->out, name);
    if (taken(name))
        str_addc(h->out, '_');
    for (int k = 0; k < i; k++)
        if (strcmp(argument(h->p, k), name) == 0)
            str_addc(h->out, '_');
}

const struct prog_array *header_array_of(const struct program *p, int pointer)
{
    return pointer < p->ninputs ? &p->input[pointer] : &p->output[pointer - p->ninputs];
}

static void element_type(const struct header *h, const struct prog_array *a)
{
    if (a->nfields == 1 && a->field[0].name[0] == '\0')
        str_add(h->out, header_c_type(a->field[0].type));
    else
        str_printf(h->out, "%s_%s_element", h->name, a->name);
}

/* "int64_t n, const float *x, float *y, float alpha"; pointers: with the arrays. */
void header_parameters(const struct header *h, bool pointers)
{
    const struct program *p = h->p;
    for (int i = 0; i < first_param(p) + p->nparams; i++) {
        const int pointer = i - p->nsizes;
        const bool is_pointer = pointer >= 0 && i < first_param(p);
        if (is_pointer && !pointers)
            continue;
        str_add(h->out, ", ");
        if (is_pointer) {
            str_add(h->out, pointer < p->ninputs ? "const " : "");
            element_type(h, header_array_of(p, pointer));
            str_add(h->out, " *");
        } else {
            str_printf(h->out, "%s ", i < p->nsizes ? "int64_t" : header_c_type(p->param[i - first_param(p)].type));
        }
        argument_name(h, i);
    }
}

void header_structures(const struct header *h)
{
    const struct program *p = h->p;
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const struct prog_array *a = header_array_of(p, i);
        if (a->nfields == 1 && a->field[0].name[0] == '\0')
            continue;
        str_printf(h->out, "/* An element of %s. */\ntypedef struct %s_%s_element {\n", a->name, h->name, a->name);
        for (int f = 0; f < a->nfields; f++)
            str_printf(h->out, "    %s %s%s;\n", header_c_type(a->field[f].type), a->field[f].name,
                       taken(a->field[f].name) ? "_" : "");
        str_printf(h->out, "} %s_%s_element;\n\n", h->name, a->name);
    }
}

void header_defaults(const struct header *h)
{
    for (int i = 0; i < h->p->nparams; i++) {
        const struct prog_param *x = &h->p->param[i];
        if (!x->has_default)
            continue;
        str_printf(h->out, "#define %s_DEFAULT_%s ", h->name, x->name);
        if (x->type == TY_F16 || x->type == TY_BF16) {
            uint16_t bits;
            value_store(x->type, &bits, x->value);
            str_printf(h->out, "((uint16_t)0x%04x)\n", bits);
        } else if (ty_is_float(x->type) && (x->value.f != x->value.f || x->value.f - x->value.f != 0)) {
            str_printf(h->out, "((%s)%s)\n", header_c_type(x->type),
                       x->value.f != x->value.f ? "(HUGE_VAL - HUGE_VAL)"
                       : x->value.f < 0         ? "-HUGE_VAL"
                                                : "HUGE_VAL");
        } else if (ty_is_float(x->type)) {
            str_printf(h->out, "((%s)", header_c_type(x->type));
            str_double(h->out, x->value.f);
            str_add(h->out, ")\n");
        } else if (x->value.i == INT64_MIN && x->type == TY_I64) {
            str_add(h->out, "INT64_MIN\n");
        } else if (ty_kind(x->type) == 'u') {
            str_printf(h->out, "((%s)UINT64_C(%llu))\n", header_c_type(x->type), (unsigned long long)x->value.u);
        } else {
            str_printf(h->out, "((%s)INT64_C(%lld))\n", header_c_type(x->type), (long long)x->value.i);
        }
    }
}

/* The functions that users call only collect their arguments, so that nothing else can clash with the arguments' names.
 */
void header_collect_arguments(const struct header *h, bool pointers)
{
    const struct program *p = h->p;
    str_printf(h->out, "    struct %s_values values = { { 0 }, { 0 }, { 0 }, { 0 }, { 0 }", h->name);
    for (int i = 0; i < p->nparams; i++)
        str_add(h->out, ", 0");
    str_add(h->out, " };\n");
    for (int i = 0; i < first_param(p) + p->nparams; i++) {
        const int pointer = i - p->nsizes, param = i - first_param(p);
        if (i < p->nsizes)
            str_printf(h->out, "    values.size[%d] = ", i);
        else if (param >= 0 && ty_is_float(p->param[param].type))
            str_printf(h->out, "    values.value%d = ", param);
        else if (param >= 0)
            str_printf(h->out, "    values.param[%d] = (int64_t)(values.value%d = ", param, param);
        else if (pointers)
            str_printf(h->out, "    values.pointer[%d] = (uint64_t)(uintptr_t)", pointer);
        else
            continue;
        argument_name(h, i);
        str_add(h->out, param >= 0 && !ty_is_float(p->param[param].type) ? ");\n" : ";\n");
    }
}
