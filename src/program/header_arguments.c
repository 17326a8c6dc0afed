/* SPDX-License-Identifier: Apache-2.0 */
/* header_arguments.c - the arguments of the functions that users of a generated header call: names, types, defaults. */
#include "header_impl.h"

#include <stdlib.h>
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

static int arguments(const struct program *p) { return first_param(p) + p->nparams; }

/* Words of C and C++, macros of the included headers and of compilers, and what the functions with these arguments use
 * beside them. */
static bool taken(const char *name)
{
    static const char words[] =
        " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class "
        "co_await co_return co_yield compl complex concept const const_cast consteval constexpr constinit continue "
        "decltype default delete do double dynamic_cast else enum errno explicit export extern false final float for "
        "fortran friend goto huge if imaginary import inline int long module mutable namespace near far new noexcept "
        "noreturn not not_eq nullptr operator or or_eq override private protected public register reinterpret_cast "
        "requires restrict return short signed sizeof static static_assert static_cast struct switch template this "
        "thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void "
        "volatile wchar_t while xor xor_eq handle stream workspace workspace_bytes values size_t ptrdiff_t int8_t "
        "int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t offsetof math_errhandling "
        "CUresult CUstream stdin stdout stderr signgam linux unix i386 ";
    const char *at = strstr(words, name);
    const size_t n = strlen(name);
    for (; at != NULL; at = strstr(at + 1, name))
        if (at > words && at[-1] == ' ' && at[n] == ' ')
            return true;
    return false;
}

/* Macros have names without small letters: I, NULL, M_PI, INT_MAX, CUDA_VERSION. */
static bool like_macro(const char *name)
{
    bool capital = false;
    for (; *name; name++) {
        if (*name >= 'a' && *name <= 'z')
            return false;
        capital |= *name >= 'A' && *name <= 'Z';
    }
    return capital;
}

/* A name that C and C++ accept: what begins with _ or has two of them belongs to the compiler, _Bool among it. */
static void usable_name(const char *name, struct str *out)
{
    const bool reserved = name[0] == '_' || strstr(name, "__");
    str_printf(out, "%s%s%s", reserved ? "a" : "", name, taken(name) || like_macro(name) ? "_" : "");
}

static bool named_before(const struct header *h, int i, const char *name)
{
    for (int k = 0; k < i; k++)
        if (!strcmp(h->argument[k].text, name))
            return true;
    return false;
}

/* Is it how another argument is called in the spec, and may be called here? */
static bool named_later(const struct header *h, int i, const char *name)
{
    for (int k = i + 1; k < arguments(h->p); k++)
        if (!strcmp(argument(h->p, k), name))
            return true;
    return false;
}

bool header_name_arguments(struct header *h)
{
    const int n = arguments(h->p);
    h->argument = calloc((size_t)n + 1, sizeof *h->argument);
    bool ok = h->argument != NULL;
    for (int i = 0; ok && i < n; i++) {
        struct str *name = &h->argument[i];
        usable_name(argument(h->p, i), name);
        while (!name->failed && (named_before(h, i, name->text) ||
                                 (strcmp(name->text, argument(h->p, i)) && named_later(h, i, name->text))))
            str_addc(name, '_');
        ok = !name->failed;
    }
    h->out->failed = h->out->failed || !ok;
    return ok;
}

void header_forget_arguments(struct header *h)
{
    for (int i = 0; h->argument && i < arguments(h->p); i++)
        str_finish(&h->argument[i]);
    free(h->argument);
}

static void argument_name(const struct header *h, int i) { str_add(h->out, h->argument[i].text); }

const struct prog_array *header_array_of(const struct program *p, int pointer)
{
    return pointer < p->ninputs ? &p->input[pointer] : &p->output[pointer - p->ninputs];
}

static void element_type(const struct header *h, const struct prog_array *a)
{
    if (a->nfields == 1 && a->field[0].name[0] == '\0')
        str_add(h->out, header_c_type(a->field[0].type));
    else
        header_emit(h, "@_%s_element", a->name);
}

/* "int64_t n, const float *x, float *y, float alpha"; pointers: with the arrays. */
void header_parameters(const struct header *h, bool pointers)
{
    const struct program *p = h->p;
    for (int i = 0; i < arguments(p); i++) {
        const int pointer = i - p->nsizes;
        const bool is_pointer = pointer >= 0 && i < first_param(p);
        if (is_pointer && !pointers)
            continue;
        str_add(h->out, pointers && i == 0 ? ",\n    " : ", ");
        if (is_pointer) {
            str_add(h->out, pointer < p->ninputs ? "const " : "");
            element_type(h, header_array_of(p, pointer));
            str_add(h->out, " *");
        } else {
            header_emit(h, "%s ", i < p->nsizes ? "int64_t" : header_c_type(p->param[i - first_param(p)].type));
        }
        argument_name(h, i);
    }
}

void header_names(const struct header *h, bool pointers)
{
    for (int i = 0; i < arguments(h->p); i++)
        if (pointers || i < h->p->nsizes || i >= first_param(h->p))
            header_emit(h, ", %s", h->argument[i].text);
}

/* Fields keep their names where C and C++ let them, macros or not: a program that uses them says them. */
static void field_declaration(const struct header *h, const struct prog_array *a, int f)
{
    const char *name = a->field[f].name;
    header_emit(h, "    %s %s%s", header_c_type(a->field[f].type), name[0] == '_' ? "a" : "", name);
    if (taken(name) || !strcmp(name, "NULL") || !strcmp(name, "I"))
        str_addc(h->out, '_');
    for (int k = 0; k < a->nfields; k++) /* int and int_ */
        if (taken(name) && !strncmp(a->field[k].name, name, strlen(name)) &&
            !strcmp(a->field[k].name + strlen(name), "_"))
            str_addc(h->out, '_');
    str_add(h->out, ";\n");
}

void header_structures(const struct header *h)
{
    const struct program *p = h->p;
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const struct prog_array *a = header_array_of(p, i);
        if (a->nfields == 1 && a->field[0].name[0] == '\0')
            continue;
        header_emit(h, "/* An element of %s. */\ntypedef struct @_%s_element {\n", a->name, a->name);
        for (int f = 0; f < a->nfields; f++)
            field_declaration(h, a, f);
        header_emit(h, "} @_%s_element;\n\n", a->name);
    }
}

void header_defaults(const struct header *h)
{
    for (int i = 0; i < h->p->nparams; i++) {
        const struct prog_param *x = &h->p->param[i];
        if (!x->has_default)
            continue;
        header_emit(h, "#define @_DEFAULT_%s ", x->name);
        if (x->type == TY_F16 || x->type == TY_BF16) {
            uint16_t bits;
            value_store(x->type, &bits, x->value);
            header_emit(h, "((uint16_t)0x%04x)\n", bits);
        } else if (ty_is_float(x->type) && (x->value.f != x->value.f || x->value.f - x->value.f != 0)) {
            header_emit(h, "((%s)%s)\n", header_c_type(x->type),
                        x->value.f != x->value.f ? "(HUGE_VAL - HUGE_VAL)"
                        : x->value.f < 0         ? "-HUGE_VAL"
                                                 : "HUGE_VAL");
        } else if (ty_is_float(x->type)) {
            header_emit(h, "((%s)", header_c_type(x->type));
            str_double(h->out, x->value.f);
            str_add(h->out, ")\n");
        } else if (x->value.i == INT64_MIN && x->type == TY_I64) {
            str_add(h->out, "INT64_MIN\n");
        } else if (ty_kind(x->type) == 'u') {
            header_emit(h, "((%s)UINT64_C(%llu))\n", header_c_type(x->type), (unsigned long long)x->value.u);
        } else {
            header_emit(h, "((%s)INT64_C(%lld))\n", header_c_type(x->type), (long long)x->value.i);
        }
    }
}

/* The functions that users call only collect their arguments, so that nothing else can clash with the arguments' names. */
void header_collect_arguments(const struct header *h, bool pointers)
{
    const struct program *p = h->p;
    header_emit(h, "    struct @_values values = { { 0 }, { 0 }, { 0 }, { 0 }, { 0 }");
    for (int i = 0; i < p->nparams; i++)
        str_add(h->out, ", 0");
    str_add(h->out, " };\n");
    for (int i = 0; i < arguments(p); i++) {
        const int pointer = i - p->nsizes, param = i - first_param(p);
        if (i < p->nsizes)
            header_emit(h, "    values.size[%d] = ", i);
        else if (param >= 0 && ty_is_float(p->param[param].type))
            header_emit(h, "    values.value%d = ", param);
        else if (param >= 0)
            header_emit(h, "    values.param[%d] = (int64_t)(values.value%d = ", param, param);
        else if (pointers)
            header_emit(h, "    values.pointer[%d] = (uint64_t)(uintptr_t)", pointer);
        else
            continue;
        argument_name(h, i);
        str_add(h->out, param >= 0 && !ty_is_float(p->param[param].type) ? ");\n" : ";\n");
    }
}
