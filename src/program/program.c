/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - life of a program, shapes, names, and the choice of a case.  Workspace is in workspace.c, text
 * forms in ptx_text.c, manifest.c and header.c.
 */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program *program_create(void)
{
    struct program *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->arena = malloc(sizeof *p->arena);
    if (p->arena == NULL) {
        free(p);
        return NULL;
    }
    arena_init(p->arena);
    return p;
}

void program_destroy(struct program *p)
{
    if (p == NULL)
        return;
    for (int m = 0; m < p->nmodules && p->module; m++) {
        free(p->module[m].ptx);
        for (struct prog_code *code = p->module[m].code, *next; code; code = next) {
            next = code->next;
            free(code);
        }
    }
    arena_finish(p->arena);
    free(p->arena);
    free(p);
}

bool program_add_code(struct program *p, int module, int arch, const void *data, size_t length)
{
    struct prog_code *code = malloc(sizeof *code + length + 1), **at = &p->module[module].code;
    if (code == NULL)
        return false;
    while (*at && (*at)->arch > arch)
        at = &(*at)->next;
    *code = (struct prog_code){ .next = *at, .arch = arch, .length = length };
    memcpy(code->data, data, length);
    code->data[length] = 0; /* what is no machine code is text to the driver */
    *at = code;
    return true;
}

void program_place_shared(struct prog_case *code, int kernel, int bytes)
{
    const bool dynamic = bytes > PROG_SHARED_STATIC;
    code->kernel[kernel].shared = bytes;
    code->kernel[kernel].shared_static = dynamic ? 0 : bytes;
    for (int s = 0; dynamic && s < code->nsteps; s++)
        if (code->step[s].kernel == kernel)
            code->step[s].shared = f_const(bytes);
}

int64_t prog_array_elements(const struct prog_array *a, const int64_t *size)
{
    int64_t elements = 1, bytes;
    for (int d = 0; d < a->rank; d++) {
        int64_t extent = a->dim[d].add;
        if (a->dim[d].size >= 0 && __builtin_add_overflow(size[a->dim[d].size], extent, &extent))
            return -1;
        if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements))
            return -1;
    }
    return __builtin_mul_overflow(elements, (int64_t)a->stride, &bytes) ? -1 : elements;
}

int program_select(const struct program *p, const struct formula_env *env, const char **why)
{
    *why = NULL;
    for (int i = 0; i < p->nchecks; i++)
        if (!formula_eval(&p->check[i].condition, env)) {
            *why = p->check[i].message;
            return -1;
        }
    for (int c = 0; c < p->ncases; c++)
        if (formula_eval(&p->cases[c].guard, env))
            return c;
    return -1;
}

static bool strategy_repeats(const struct program *p, int c)
{
    for (int k = 0; k < c; k++)
        if (strcmp(p->cases[k].strategy, p->cases[c].strategy) == 0)
            return true;
    return false;
}

static void print_refusal(const struct program *p, const struct formula_env *env, struct str *out)
{
    enum { CASES_TOLD = 4 };
    str_printf(out, "no case of '%s' covers these arguments; it was compiled for", p->name);
    for (int c = 0; c < p->ncases; c++)
        if (!strategy_repeats(p, c))
            str_printf(out, "%s %s", c > 0 ? "," : "", p->cases[c].strategy);
    str_add(out, " alone");
    for (int c = 0; c < p->ncases && c < CASES_TOLD; c++) {
        struct formula_names names = program_names(p, c);
        str_printf(out, "%s case '%s' needs ", c > 0 ? ";" : ":", p->cases[c].name);
        formula_print_unmet(&p->cases[c].guard, &names, env, out);
        program_names_finish(&names);
    }
    if (p->ncases > CASES_TOLD)
        str_printf(out, "; and %d more cases", p->ncases - CASES_TOLD);
}

void program_refusal(const struct program *p, const struct formula_env *env, char *text, size_t size)
{
    struct str out = { 0 };
    print_refusal(p, env, &out);
    snprintf(text, size, "%s", out.failed ? "no case covers these arguments" : out.text);
    str_finish(&out);
}

int64_t prog_sweeps(const struct prog_case *c, const struct formula_env *env)
{
    int64_t sweeps = 0;
    for (int i = 0; i < c->nsteps; i++)
        if (c->step[i].repeat.n > 0)
            sweeps += formula_eval(&c->step[i].repeat, env);
    return sweeps;
}

enum prog_arg_kind prog_arg_in_sweep(const struct prog_arg *a, int64_t sweep, int64_t sweeps, int *index)
{
    const int64_t written = a->kind == ARG_FED ? sweep - 1 : sweep; /* the sweep whose result it is */
    *index = a->index;
    if (a->kind < ARG_FED)
        return a->kind;
    if (written < 0)
        return ARG_INPUT;
    const bool in_output = (sweeps - 1 - written) % 2 == 0;
    *index = in_output ? a->output : a->buffer;
    return in_output ? ARG_OUTPUT : ARG_BUFFER;
}

struct formula_names program_names(const struct program *p, int c)
{
    const int nkernels = c < 0 ? 0 : p->cases[c].nkernels, npointers = p->ninputs + p->noutputs;
    const char **all = malloc(sizeof *all * (size_t)(p->nparams + nkernels + npointers + 1));
    if (all == NULL)
        return (struct formula_names){ 0 };
    const char **param = all, **kernel = param + p->nparams, **pointer = kernel + nkernels;
    for (int i = 0; i < p->nparams; i++)
        param[i] = p->param[i].name;
    for (int i = 0; i < nkernels; i++)
        kernel[i] = p->cases[c].kernel[i].name;
    for (int i = 0; i < npointers; i++)
        pointer[i] = i < p->ninputs ? p->input[i].name : p->output[i - p->ninputs].name;
    return (struct formula_names){ .nsizes = p->nsizes,
                                   .nparams = p->nparams,
                                   .nkernels = nkernels,
                                   .npointers = npointers,
                                   .size = p->size,
                                   .param = param,
                                   .kernel = kernel,
                                   .pointer = pointer };
}

void program_names_finish(struct formula_names *names)
{
    free((void *)names->param); /* the block that holds all three */
    memset(names, 0, sizeof *names);
}
