/* SPDX-License-Identifier: Apache-2.0 */
/* ref_element.c - where things lie: inputs at the current point with boundaries, outputs, and their bounds. */
#include <math.h>
#include <stdarg.h>

#include "ref_internal.h"

const char *ref_message(struct ref *r, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    const char *text = arena_vprintf(&r->session->arena, format, ap);
    va_end(ap);
    return text;
}

void ref_next_element(struct ref *r) { r->stamp++; }

int64_t ref_dim(const struct ref *r, const struct prog_dim *d) { return problem_extent(r->p, d, r->args->size); }

static int64_t modulo(int64_t i, int64_t n) { return i % n + (i % n < 0 ? n : 0); }

/* The index that stands for i outside of [0, n), n >= 1. */
static int64_t fold_index(enum boundary_mode mode, int64_t i, int64_t n)
{
    int64_t m;
    switch (mode) {
    case BOUND_WRAP: return modulo(i, n);
    case BOUND_REFLECT: m = modulo(i, 2 * n); return m < n ? m : 2 * n - 1 - m;
    case BOUND_MIRROR: m = n == 1 ? 0 : modulo(i, 2 * n - 2); return m < n ? m : 2 * n - 2 - m;
    case BOUND_CLAMP:
    case BOUND_CONSTANT:
    case BOUND_INTERIOR: break;
    }
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static struct num read_field(const struct ref *r, int input, int64_t element, int field)
{
    const struct prog_array *a = &r->p->input[input].array;
    if (r->fed && r->fed[input]) {
        return r->fed[input][element * a->nfields + field];
    }
    const char *base = r->args->input[input];
    const struct prog_field *f = &a->field[field];
    return (struct num){ value_load(f->type, base + element * a->stride + f->offset), 0 };
}

/* The axis that dimension d of an input follows; flags and offsets follow the only axis when read per element. */
static int input_axis(const struct input *x, int d) { return x->axis[d] >= 0 ? x->axis[d] : d; }

struct num ref_input_at(const struct ref *r, int input, int field, const int64_t *at)
{
    const struct input *x = &r->p->input[input];
    int64_t element = 0;
    const union value *outside = NULL;
    for (int d = 0; d < x->array.rank; d++) {
        int64_t n = ref_dim(r, &x->array.dim[d]);
        int64_t i = at[d];
        if (i < 0 || i >= n) {
            if (x->boundary[d].mode == BOUND_CONSTANT) {
                outside = x->boundary[d].constant;
            }
            i = fold_index(x->boundary[d].mode, i, n);
        }
        element = element * n + i;
    }
    return outside ? (struct num){ outside[field], 0 } : read_field(r, input, element, field);
}

struct num ref_input(const struct ref *r, int input, int field, const int64_t *offset)
{
    const struct input *x = &r->p->input[input];
    int64_t at[PROG_RANK_MAX] = { 0 };
    for (int d = 0; d < x->array.rank; d++) {
        at[d] = r->at[input_axis(x, d)] + (offset ? offset[d] : 0);
    }
    return ref_input_at(r, input, field, at);
}

int64_t ref_input_number(const struct ref *r, int input, int64_t index)
{
    const struct prog_array *a = &r->p->input[input].array;
    const char *base = r->args->input[input];
    return value_load(a->field[0].type, base + index * a->stride + a->field[0].offset).i;
}

int64_t ref_place(const struct ref *r, const struct prog_array *a, const int *axis)
{
    int64_t element = 0;
    for (int d = 0; d < a->rank; d++) {
        int64_t n = ref_dim(r, &a->dim[d]);
        int64_t i = axis[d] < 0 ? r->segment : r->at[axis[d]];
        if (i < 0 || i >= n) {
            return -1;
        }
        element = element * n + i;
    }
    return element;
}

/* The next place of an output with a condition: the counters of the kernels have no part in it. */
static int64_t kept_place(struct ref *r, int output)
{
    const struct output *o = &r->p->output[output];
    int64_t scanned = 1, element = 0, i = r->kept[output]++;
    for (int d = 0; d < r->p->rank; d++) {
        scanned *= r->p->space[d].reduced ? r->extent[d] : 1;
    }
    i = o->from_end ? scanned - 1 - i : i;
    for (int d = 0; d < r->p->rank; d++) {
        bool row = r->p->space[d].reduced;
        if (row && scanned != r->extent[d]) {
            return i; /* several scanned dimensions are all there are */
        }
        element = element * r->extent[d] + (row ? i : r->at[d]);
    }
    return element;
}

/* What is stored is rounded once more; the bound takes that in. */
static void store_bound(struct ref *r, int output, int64_t index, enum ty t, struct num x)
{
    if (!r->bound || !r->bound[output]) {
        return;
    }
    double rounding = 0;
    if (ty_is_float(t) && isfinite(x.v.f)) {
        double stored = ref_round(t, x.v.f);
        rounding = isfinite(stored) ? fabs(stored - x.v.f) : 0;
    }
    x = ref_limit(t, (struct num){ x.v, x.err + rounding });
    r->bound[output][index] = isnan(x.err) ? INFINITY : x.err;
}

void ref_output_write(struct ref *r, int output, const struct tuple *value)
{
    const struct output *o = &r->p->output[output];
    const bool placed = output_is_placed(o);
    struct tuple held = *value;
    int64_t element = o->role == OUT_KEPT ? kept_place(r, output)
                      : placed            ? ref_placed(r, output)
                      : r->p->nby         ? r->segment
                                          : ref_place(r, &o->array, o->axis);
    if (element < 0) {
        return;
    }
    if (placed) {
        ref_meet(r, output, element, &held);
    }
    ref_output_store(r, output, element, &held);
}

void ref_output_store(struct ref *r, int output, int64_t element, const struct tuple *value)
{
    const struct output *o = &r->p->output[output];
    char *base = (char *)r->args->output[output] + element * o->array.stride;
    for (int f = 0; f < o->array.nfields; f++) {
        const struct prog_field *field = &o->array.field[f];
        struct num x = value->field[f];
        x.err = r->unsure[output] ? INFINITY : x.err;
        store_bound(r, output, element * o->array.nfields + f, field->type, x);
        if (ty_is_float(field->type)) {
            x.v.f = ref_round(field->type, x.v.f);
        }
        value_store(field->type, base + field->offset, x.v);
    }
}

void ref_output_read(const struct ref *r, int output, struct tuple *value)
{
    const struct output *o = &r->p->output[output];
    int64_t element = ref_place(r, &o->array, o->axis);
    for (int f = 0; f < o->array.nfields; f++) {
        const struct prog_field *field = &o->array.field[f];
        const char *base = (const char *)r->args->output[output] + element * o->array.stride;
        value->field[f] = (struct num){ { 0 }, 0 };
        if (element >= 0) {
            value->field[f].v = value_load(field->type, base + field->offset);
        }
    }
}

/* Where the condition is not certain, nothing is known of what follows. */
static bool keeps(struct ref *r, int output)
{
    const struct output *out = &r->p->output[output];
    if (out->role != OUT_KEPT) {
        return true;
    }
    struct num where = ref_eval(r, out->where);
    r->unsure[output] |= where.err > 0;
    return where.v.i;
}

void ref_write_outputs(struct ref *r, enum moment moment)
{
    for (int o = 0; o < r->p->noutputs; o++) {
        if (output_moment(&r->p->output[o]) == moment && keeps(r, o)) {
            ref_eval_tuple(r, r->p->output[o].value, r->p->output[o].array.nfields, &r->output[o]);
            ref_output_write(r, o, &r->output[o]);
        }
    }
}
