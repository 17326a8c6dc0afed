/* SPDX-License-Identifier: Apache-2.0 */
/* arguments.c - the public API: what a run is given, checked, and made from names; one call from a text to results. */
#include <stdio.h>
#include <string.h>

#include "api_impl.h"

static bool refuse(ptxgen_session *s, const char *what, const char *name, const char *why)
{
    char text[300];
    snprintf(text, sizeof text, "%s '%s' %s", what, name, why);
    session_report(s, D_BAD_ARGUMENT, text);
    return false;
}

static const struct prog_array *array_of(const struct program *p, int i)
{
    return i < p->ninputs ? &p->input[i] : &p->output[i - p->ninputs];
}

static bool take_arrays(ptxgen_session *s, const struct program *p, const ptxgen_arguments *args)
{
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const void *data = i < p->ninputs ? args->input ? args->input[i] : NULL
                           : args->output ? args->output[i - p->ninputs]
                                          : NULL;
        if (!data && prog_array_elements(array_of(p, i), args->size) > 0)
            return refuse(s, "array", array_of(p, i)->name, "is missing");
    }
    return true;
}

bool api_fit_arguments(ptxgen_session *s, const struct program *p, const ptxgen_arguments *args,
                       struct fit_arguments *to)
{
    memset(to, 0, sizeof *to);
    if (p->nsizes && !args->size)
        return refuse(s, "size", p->size[0], "is missing");
    if (!take_arrays(s, p, args))
        return false;
    for (int i = 0; i < p->nparams && !args->param; i++) {
        if (!p->param[i].has_default)
            return refuse(s, "param", p->param[i].name, "has no default and no value");
        to->param[i] = p->param[i].value;
    }
    to->args = (struct run_args){ .size = args->size,
                                  .input = args->input ? args->input : to->none,
                                  .output = args->output ? args->output : (void *const *)(uintptr_t)to->none,
                                  .param = args->param ? (const union value *)args->param : to->param };
    return true;
}

/* ---- by name ----------------------------------------------------------------------------------------------------- */

/* What arguments by name are made into; their pointers point to the arrays behind them. */
struct named {
    ptxgen_arguments args;
    int64_t size[PROBLEM_ARGS_MAX];
    ptxgen_value param[PROBLEM_ARGS_MAX];
    void *data[PROBLEM_ARGS_MAX];
    size_t bytes[PROBLEM_ARGS_MAX];
    bool given[PROBLEM_ARGS_MAX]; /* in the order of name_of() */
};

/* Sizes, then inputs, outputs and params. */
static const char *name_of(const struct program *p, int i)
{
    const int arrays = p->ninputs + p->noutputs;
    return i < p->nsizes            ? p->size[i]
           : i < p->nsizes + arrays ? array_of(p, i - p->nsizes)->name
                                    : p->param[i - p->nsizes - arrays].name;
}

static ptxgen_value param_value(enum ty t, const ptxgen_argument *a)
{
    unsigned char image[8];
    if (ty_is_float(t))
        ptxgen_value_store((ptxgen_type)t, image,
                           (ptxgen_value){ .f = a->kind == PTXGEN_KIND_REAL ? a->real : (double)a->integer });
    else
        ptxgen_value_store((ptxgen_type)t, image, (ptxgen_value){ .i = a->integer });
    return ptxgen_value_load((ptxgen_type)t, image);
}

static bool put(ptxgen_session *s, const struct program *p, const ptxgen_argument *a, int i, struct named *to)
{
    const int arrays = p->ninputs + p->noutputs, param = i - p->nsizes - arrays;
    const bool array = i >= p->nsizes && param < 0;
    if (array != (a->kind == PTXGEN_KIND_ARRAY))
        return refuse(s, array ? "array" : "argument", a->name, array ? "is given a number" : "is no array");
    if (a->kind == PTXGEN_KIND_REAL && (param < 0 || !ty_is_float(p->param[param].type)))
        return refuse(s, "argument", a->name, "is an integer");
    if (to->given[i])
        return refuse(s, "argument", a->name, "is given twice");
    to->given[i] = true;
    if (i < p->nsizes)
        to->size[i] = a->integer;
    else if (array)
        to->data[i - p->nsizes] = a->data, to->bytes[i - p->nsizes] = a->bytes;
    else
        to->param[param] = param_value(p->param[param].type, a);
    return true;
}

static bool put_named(ptxgen_session *s, const struct program *p, const ptxgen_argument *a, struct named *to)
{
    const char *names[PROBLEM_ARGS_MAX];
    const int n = p->nsizes + p->ninputs + p->noutputs + p->nparams;
    for (int i = 0; i < n; i++) {
        names[i] = name_of(p, i);
        if (a->name && !strcmp(a->name, names[i]))
            return put(s, p, a, i, to);
    }
    const char *name = a->name ? a->name : "(null)";
    diag_suggest(&s->diags,
                 diag_error(&s->diags, D_BAD_ARGUMENT, span_none(), "the spec has no size, array or param '%s'", name),
                 name, names, n);
    return false;
}

/* All that is needed is there, and large enough. */
static bool complete(ptxgen_session *s, const struct program *p, struct named *to)
{
    const int arrays = p->ninputs + p->noutputs;
    for (int i = 0; i < p->nsizes; i++)
        if (!to->given[i] || to->size[i] < 0)
            return refuse(s, "size", p->size[i], to->given[i] ? "is negative" : "is missing");
    for (int i = 0; i < p->nparams; i++) {
        if (!to->given[p->nsizes + arrays + i] && !p->param[i].has_default)
            return refuse(s, "param", p->param[i].name, "has no default and no value");
        if (!to->given[p->nsizes + arrays + i])
            to->param[i] = (ptxgen_value){ .u = p->param[i].value.u };
    }
    for (int i = 0; i < arrays; i++) {
        const struct prog_array *a = array_of(p, i);
        const int64_t elements = prog_array_elements(a, to->size);
        char why[100];
        if (elements < 0)
            return refuse(s, "array", a->name, "has no valid shape at these sizes");
        if (elements > 0 && !to->data[i])
            return refuse(s, "array", a->name, "is missing");
        snprintf(why, sizeof why, "has %zu bytes; at these sizes it needs %lld", to->bytes[i],
                 (long long)elements * a->stride);
        if (to->bytes[i] && (int64_t)to->bytes[i] / a->stride < elements)
            return refuse(s, "array", a->name, why);
    }
    return true;
}

static const ptxgen_arguments *make(ptxgen_session *s, const struct program *p, const ptxgen_argument *list, int count)
{
    struct named *to = arena_new(&s->arena, struct named, 1);
    bool ok = api_fit_number(s, "count", count, 0, PROBLEM_ARGS_MAX);
    for (int i = 0; i < count && ok; i++)
        ok = put_named(s, p, &list[i], to);
    to->args = (ptxgen_arguments){ to->size, (const void *const *)to->data, to->data + p->ninputs, to->param };
    return ok && complete(s, p, to) ? &to->args : NULL;
}

ptxgen_status ptxgen_arguments_create(ptxgen_session *s, const ptxgen_problem *p, const ptxgen_argument *list,
                                      int count, const ptxgen_arguments **out)
{
    CLEAR(out);
    NEED(PTXGEN_USAGE, s, s, p, list, out);
    WITH_MEMORY(s, *out = make(s, p->shape, list, count));
    return *out ? PTXGEN_OK : PTXGEN_USAGE;
}

ptxgen_status ptxgen_run_string(ptxgen_session *s, const char *text, size_t length, const char *name,
                                const ptxgen_argument *list, int count)
{
    ptxgen_plan_options o = PTXGEN_PLAN_OPTIONS_INIT;
    ptxgen_problem *p = NULL;
    ptxgen_plan *plan = NULL;
    ptxgen_host *host = NULL;
    const ptxgen_arguments *args = NULL;
    NEED(PTXGEN_USAGE, s, s, text, list);
    ptxgen_status status = ptxgen_problem_from_string(s, text, length, name, &p);
    if (status == PTXGEN_OK)
        status = ptxgen_arguments_create(s, p, list, count, &args);
    o.size = args ? args->size : NULL;
    if (status == PTXGEN_OK)
        status = ptxgen_plan_create(s, p, &o, &plan);
    if (status == PTXGEN_OK)
        status = ptxgen_host_create(s, plan, NULL, &host);
    if (status == PTXGEN_OK)
        status = ptxgen_host_run(s, host, args, NULL);
    ptxgen_host_destroy(host);
    return status;
}
