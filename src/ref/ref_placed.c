/* SPDX-License-Identifier: Apache-2.0 */
/* ref_placed.c - outputs at computed places: where an element goes, which element came there before, and how the two meet.
 *
 * Elements meet in the order of the walk, while kernels combine them in any.  In tracked mode the value that has come
 * together is kept in double beside memory, and the bound covers every order: a sum of n terms is off by at most
 * n u times the sum of their magnitudes; for other operators that round, the unit of rounding grows with the count.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ref_internal.h"

static void *per_element(struct ref *r, int output, size_t bytes)
{
    const int64_t n = problem_elements(r->p, &r->p->output[output].array, r->args->size);
    return arena_new(r->scratch, char, (n > 0 ? n : 1) * (int64_t)bytes);
}

void ref_initials(struct ref *r)
{
    for (int o = 0; o < r->p->noutputs; o++) {
        const struct output *out = &r->p->output[o];
        const int64_t n = out->initial[0] ? problem_elements(r->p, &out->array, r->args->size) : 0;
        for (int64_t i = 0; i < n; i++) {
            struct tuple value;
            ref_eval_tuple(r, out->initial, out->array.nfields, &value);
            ref_output_store(r, o, i, &value);
        }
    }
}

/* A place that is not certain: nothing is known of any element of the output. */
static void forget(struct ref *r, int output)
{
    const struct prog_array *a = &r->p->output[output].array;
    const int64_t n = problem_elements(r->p, a, r->args->size) * a->nfields;
    for (int64_t i = 0; i < n && !r->unsure[output] && r->bound && r->bound[output]; i++) {
        r->bound[output][i] = INFINITY;
    }
    r->unsure[output] = true;
}

int64_t ref_placed(struct ref *r, int output)
{
    const struct output *o = &r->p->output[output];
    int64_t element = 0;
    bool inside = true;
    for (int d = 0; d < o->array.rank; d++) {
        const int64_t n = ref_dim(r, &o->array.dim[d]);
        const struct num i = ref_eval(r, o->index[d]);
        if (i.err > 0) {
            forget(r, output);
        }
        inside = inside && i.v.i >= 0 && i.v.i < n;
        element = inside ? element * n + i.v.i : -1;
    }
    return element;
}

/* ---- elements that must not meet ---- */

static const char *point_text(const struct ref *r, int64_t point, char text[80])
{
    int64_t at[SPACE_MAX] = { 0 };
    int used = 0;
    for (int d = r->p->rank - 1; d >= 0; d--) {
        at[d] = point % r->extent[d];
        point /= r->extent[d];
    }
    for (int d = 0; d < r->p->rank; d++) {
        used += snprintf(text + used, 80 - (size_t)used, "%s%lld", d ? ", " : "", (long long)at[d]);
    }
    return text;
}

/* The point writes there: it must be the only one. */
static void claim(struct ref *r, int output, int64_t element)
{
    int64_t point = 0, **by = &r->met[output].by;
    for (int d = 0; d < r->p->rank; d++) {
        point = point * r->extent[d] + r->at[d];
    }
    *by = *by ? *by : per_element(r, output, sizeof **by);
    if ((*by)[element] && !r->wrong && !r->unsure[output]) {
        char first[80], second[80];
        r->session->blamed = &r->p->output[output].at;
        r->wrong = ref_message(r,
                               "the elements [%s] and [%s] both have their place at element %lld of '%s'; `combine` "
                               "says how elements meet",
                               point_text(r, (*by)[element] - 1, first), point_text(r, point, second),
                               (long long)element, r->p->output[output].array.name);
    }
    (*by)[element] = point + 1;
}

/* ---- elements that meet ---- */

/* x comes to what has come together in m, a row of it for each field. */
static void combined(struct ref *r, const struct output *o, struct met *m, struct tuple *x)
{
    const struct op *op = o->combine;
    const bool sum = op->builtin && !strcmp(op->name, "add");
    const double count = (double)++m->count;
    struct tuple all;
    for (int f = 0; f < op->nfields; f++) {
        all.field[f] = m[f].value;
        m[f].magnitude += ty_is_float(op->field[f]) ? fabs(x->field[f].v.f) + x->field[f].err : 0;
    }
    r->combine_factor = sum ? 1 : 2 * count;
    ref_combine_bounded(r, op, &all, x, &all);
    r->combine_factor = 0;
    for (int f = 0; f < op->nfields; f++) {
        x->field[f] = m[f].value = all.field[f];
        if (ty_is_float(op->field[f]) && !op->exact) {
            x->field[f].err += (count + 1) * ref_unit(op->field[f]) * m[f].magnitude;
        }
    }
}

void ref_meet(struct ref *r, int output, int64_t element, struct tuple *value)
{
    const struct output *o = &r->p->output[output];
    const struct prog_array *a = &o->array;
    const char *memory = (const char *)r->args->output[output] + element * a->stride;
    if (!o->combine) {
        claim(r, output, element);
        return;
    }
    struct tuple before = { { { { 0 }, 0 } } };
    for (int f = 0; f < a->nfields; f++) {
        before.field[f].v = value_load(a->field[f].type, memory + a->field[f].offset);
    }
    if (!r->tracked) {
        ref_combine(r, o->combine, &before, value, value);
        return;
    }
    struct met **all = &r->met[output].value;
    *all = *all ? *all : per_element(r, output, sizeof **all * (size_t)a->nfields);
    struct met *m = &(*all)[element * a->nfields];
    for (int f = 0; f < a->nfields && !m->count; f++) {
        const double magnitude = ty_is_float(a->field[f].type) ? fabs(before.field[f].v.f) : 0;
        m[f] = (struct met){ .value = before.field[f], .magnitude = magnitude };
    }
    combined(r, o, m, value);
}
