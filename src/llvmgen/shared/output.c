/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - see output.h. */
#include "output.h"

static kb_val plain_value(struct point *pt, int output, int f)
{
    return emit_expr(pt->g->k, &pt->env, pt->g->p->output[output].value[f]);
}

kb_val output_value(struct point *pt, int output, int f)
{
    return (pt->outputs ? pt->outputs->value : plain_value)(pt, output, f);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

kb_val output_element(struct point *pt, int output)
{
    kb *k = pt->g->k;
    const struct output *o = &pt->g->p->output[output];
    kb_val element = kb_imm(k, TY_I64, 0);
    for (int d = 0; d < o->array.rank; d++) {
        const kb_val i = point_index(pt, o->axis[d]);
        element = d == 0 ? i : kb_add(k, kb_mul(k, element, gen_extent(pt->g, &o->array.dim[d])), i);
    }
    return element;
}

kb_val output_has(struct point *pt, int output)
{
    kb *k = pt->g->k;
    const struct output *o = &pt->g->p->output[output];
    kb_val has = kb_true(k);
    for (int d = 0; d < o->array.rank && !access_output_whole(pt->g->p, output); d++)
        has = kb_and(k, has, kb_lt(k, point_index(pt, o->axis[d]), gen_extent(pt->g, &o->array.dim[d])));
    return has;
}

/* Element number in an output with kept dimensions, or one per irregular segment. */
static kb_val segment_element(struct point *pt, int output)
{
    const struct output *o = &pt->g->p->output[output];
    if (pt->g->p->kind == KIND_REDUCE && pt->segment.ir && access_output_in_segments(pt->g->p, o))
        return pt->segment;
    for (int d = 0; d < o->array.rank; d++)
        if (o->axis[d] < 0)
            return pt->segment;
    return output_element(pt, output);
}

/* ---- stores ------------------------------------------------------------------------------------------------------ */

static void store_fields(struct point *pt, int output, kb_val element, const kb_val *x)
{
    struct gen *g = pt->g;
    const struct prog_array *a = &g->p->output[output].array;
    if (pt->outputs && pt->outputs->structures && g->c->aligned && access_output_direct(g->p, output) &&
        access_structure_bytes(a)) {
        kb_ptr to = kb_advance(g->k, gen_output(g, output), kb_mul(g->k, element, a->stride));
        to.ty = a->field[0].type;
        kb_store_n(g->k, to, kb_imm(g->k, TY_I32, 0), a->nfields, a->stride, x);
        return;
    }
    for (int f = 0; f < a->nfields; f++)
        gen_store_field(g, a, gen_output(g, output), element, f, x[f]);
}

static void store_ELEMENT(struct point *pt, int output)
{
    kb *k = pt->g->k;
    const struct output *o = &pt->g->p->output[output];
    kb_val x[STATE_FIELDS_MAX], written = kb_true(k);
    for (int f = 0; f < o->array.nfields; f++)
        x[f] = output_value(pt, output, f);
    if (pt->outputs)
        written = pt->outputs->written(pt, output);
    kb_if(k, kb_and(k, written, output_has(pt, output))) {
        store_fields(pt, output, output_element(pt, output), x);
    }
}

static void store_SEGMENT(struct point *pt, int output)
{
    struct gen *g = pt->g;
    const struct prog_array *a = &g->p->output[output].array;
    const kb_val element = segment_element(pt, output);
    for (int f = 0; f < a->nfields; f++)
        gen_store_field(g, a, gen_output(g, output), element, f, output_value(pt, output, f));
}

void output_store(struct point *pt, int output)
{
    static void (*const store[])(struct point * pt, int output) = {
#define OUTPUT(id, moment, what) [OUT_##id] = store_##id,
#include "frontend/problem/output.def"
#undef OUTPUT
    };
    store[pt->g->p->output[output].role](pt, output);
}

void output_store_vector(struct gen *g, int output, kb_ptr at, int n, bool aligned, const kb_val *x)
{
    const int stride = g->p->output[output].array.stride;
    kb_store_n(g->k, at, kb_imm(g->k, TY_I32, 0), n, aligned ? gen_vector_alignment(n * stride) : stride, x);
}

static kb_ptr vector_at(struct point *pt, int output)
{
    struct gen *g = pt->g;
    if (pt->outputs)
        return pt->outputs->at(pt, output);
    return point_address(pt, &g->p->output[output].array, gen_output(g, output));
}

void outputs_store(struct point *const *pt, int n, bool aligned)
{
    struct gen *g = pt[0]->g;
    for (int o = 0; o < g->p->noutputs; o++) {
        kb_val x[GEN_VECTOR_MAX];
        if (output_moment(&g->p->output[o]) != AT_POINT)
            continue;
        for (int j = 0; j < n; j++)
            if (access_output_vector(g->p, o))
                x[j] = output_value(pt[j], o, 0);
            else
                output_store(pt[j], o);
        if (access_output_vector(g->p, o))
            output_store_vector(g, o, vector_at(pt[0], o), n, aligned, x);
    }
}

void points_store(struct point *pt, int n, bool aligned)
{
    struct point *at[GEN_VECTOR_MAX];
    for (int j = 0; j < n; j++)
        at[j] = &pt[j];
    outputs_store(at, n, aligned);
}

void point_store(struct point *pt)
{
    for (int o = 0; o < pt->g->p->noutputs; o++)
        if (output_moment(&pt->g->p->output[o]) == AT_POINT)
            output_store(pt, o);
}

void outputs_store_total(struct point *pt)
{
    for (int o = 0; o < pt->g->p->noutputs; o++)
        if (output_moment(&pt->g->p->output[o]) == AT_TOTAL)
            output_store(pt, o);
}
