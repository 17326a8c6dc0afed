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
        const kb_val i = o->axis[d] < 0 ? pt->bin : point_index(pt, o->axis[d]);
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
    for (int d = 0; d < o->array.rank && !pt->bin.ir; d++)
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

static kb_val own_element(struct point *pt, int output)
{
    const bool known = pt->by_element && access_output_direct(pt->g->p, output);
    return known ? point_linear(pt) : output_element(pt, output);
}

static void store_ELEMENT(struct point *pt, int output)
{
    kb *k = pt->g->k;
    const struct output *o = &pt->g->p->output[output];
    kb_val x[STATE_FIELDS_MAX], written = kb_true(k);
    for (int f = 0; f < o->array.nfields; f++)
        x[f] = output_value(pt, output, f);
    if (pt->outputs && pt->outputs->keeps && pt->outputs->keeps(pt, output, x))
        return;
    if (pt->outputs)
        written = pt->outputs->written(pt, output);
    kb_if(k, kb_and(k, written, output_has(pt, output))) {
        store_fields(pt, output, own_element(pt, output), x);
    }
}

static void store_MAPPED(struct point *pt, int output) { store_ELEMENT(pt, output); }

static void store_SEGMENT(struct point *pt, int output)
{
    struct gen *g = pt->g;
    const struct prog_array *a = &g->p->output[output].array;
    const kb_val element = segment_element(pt, output);
    for (int f = 0; f < a->nfields; f++)
        gen_store_field(g, a, gen_output(g, output), element, f, output_value(pt, output, f));
}

/* Number, i64, of the element of a kept value at this place. */
static kb_val kept_element(struct point *pt, int output, kb_val place)
{
    kb *k = pt->g->k;
    const struct output *o = &pt->g->p->output[output];
    kb_val element = kb_imm(k, TY_I64, 0);
    bool kept = false;
    for (int d = 0; d < o->array.rank; d++)
        kept |= !pt->g->p->space[d].reduced;
    for (int d = 0; kept && d < o->array.rank; d++) {
        const kb_val i = pt->g->p->space[d].reduced ? place : point_index(pt, d);
        element = d == 0 ? i : kb_add(k, kb_mul(k, element, gen_extent(pt->g, &o->array.dim[d])), i);
    }
    return kept ? element : place;
}

static void store_KEPT(struct point *pt, int output)
{
    kb *k = pt->g->k;
    const struct output *o = &pt->g->p->output[output];
    kb_if(k, emit_expr(k, &pt->env, o->where)) {
        kb_val x[STATE_FIELDS_MAX];
        for (int f = 0; f < o->array.nfields; f++)
            x[f] = output_value(pt, output, f);
        store_fields(pt, output, kept_element(pt, output, emit_expr(k, &pt->env, o->place)), x);
    }
}

/* Number, i64, of the element where the point says that it belongs, and whether there is one. */
static kb_val placed_element(struct point *pt, const struct output *o, kb_val *inside)
{
    kb *k = pt->g->k;
    kb_val element = kb_imm(k, TY_I64, 0);
    for (int d = 0; d < o->array.rank; d++) {
        const kb_val i = emit_expr(k, &pt->env, o->index[d]), n = gen_extent(pt->g, &o->array.dim[d]);
        *inside = kb_and(k, *inside, kb_lt(k, kb_cast(k, i, TY_U64), kb_cast(k, n, TY_U64)));
        element = d == 0 ? i : kb_add(k, kb_mul(k, element, n), i);
    }
    return element;
}

static const enum ty word_of[] = { [1] = TY_U8, [2] = TY_U16, [4] = TY_U32, [8] = TY_U64 };

/* An element as one word, as it lies in memory. */
static kb_val element_word(kb *k, const struct prog_array *a, kb_tup x)
{
    kb_val word = kb_imm(k, a->stride == 8 ? TY_U64 : TY_U32, 0);
    for (int f = 0; f < x.n; f++)
        word = kb_or(k, word, kb_shl(k, kb_cast(k, field_bits(k, x.e[f]), word.ty), 8 * a->field[f].offset));
    return kb_cast(k, word, word_of[a->stride]);
}

static kb_tup element_fields(kb *k, const struct prog_array *a, kb_val word)
{
    kb_tup x = { .n = a->nfields };
    for (int f = 0; f < x.n; f++) {
        const enum ty type = a->field[f].type;
        x.e[f] = field_from_bits(k, kb_cast(k, kb_shr(k, word, 8 * a->field[f].offset), word_of[ty_bytes(type)]), type);
    }
    return x;
}

/* An element that is a word, or, where f is not -1, its field f at p. */
static void combine_by_swap(struct point *pt, const struct output *o, kb_ptr p, kb_tup x, int f)
{
    kb *k = pt->g->k;
    const struct prog_array *a = &o->array;
    p.ty = word_of[f < 0 ? a->stride : ty_bytes(a->field[f].type)];
    kb_var old = kb_var_new(k, kb_load_relaxed(k, p, 0), "old");
    kb_loop(k) {
        const kb_val seen = kb_get(k, old);
        kb_tup before = f < 0 ? element_fields(k, a, seen) : x;
        if (f >= 0)
            before.e[f] = field_from_bits(k, seen, a->field[f].type);
        const kb_tup both = emit_combine(k, o->combine, &pt->env, before, x);
        const kb_val word = f < 0 ? element_word(k, a, both) : kb_cast(k, field_bits(k, both.e[f]), p.ty);
        LET(got, kb_cas(k, p, kb_imm(k, TY_I32, 0), seen, word));
        kb_break_if(k, kb_eq(k, got, seen));
        kb_set(k, old, got);
    }
}

/* Elements meet in memory, in any order: by an instruction, or as often as another thread comes in between. */
static void combine_in_memory(struct point *pt, const struct output *o, kb_ptr p, kb_tup x)
{
    const struct op *op = o->combine;
    static const enum kb_rmw rmw[] = {
        [NATIVE_ADD] = KB_RMW_ADD, [NATIVE_MIN] = KB_RMW_MIN, [NATIVE_MAX] = KB_RMW_MAX,
        [NATIVE_AND] = KB_RMW_AND, [NATIVE_OR] = KB_RMW_OR,   [NATIVE_XOR] = KB_RMW_XOR
    };
    kb *k = pt->g->k;
    const bool word = output_meets_as_word(o);
    if (word && !op_native(op))
        combine_by_swap(pt, o, p, x, -1);
    else if (word)
        kb_atomic(k, rmw[op_native(op)], p, 0, x.e[0]);
    for (int f = 0; f < x.n && !word; f++) {
        kb_ptr field = kb_advance(k, p, kb_imm(k, TY_I32, o->array.field[f].offset));
        field.ty = x.e[f].ty;
        if (op_field_native(op, f))
            kb_atomic(k, rmw[op_field_native(op, f)], field, 0, x.e[f]);
        else
            combine_by_swap(pt, o, field, x, f);
    }
}

static kb_ptr element_at(struct gen *g, int output, kb_val element)
{
    const struct prog_array *a = &g->p->output[output].array;
    return kb_advance(g->k, gen_output(g, output), kb_mul(g->k, element, *a->field[0].name ? a->stride : 1));
}

void outputs_combine(struct gen *g, kb_val element, kb_tup x)
{
    struct point pt;
    env_init(&pt, g, NULL);
    for (int o = 0, first = 0; o < g->p->noutputs; first += g->p->output[o++].array.nfields) {
        kb_tup own = { .n = g->p->output[o].array.nfields };
        for (int f = 0; f < own.n; f++)
            own.e[f] = x.e[first + f];
        combine_in_memory(&pt, &g->p->output[o], element_at(g, o, element), own);
    }
}

void output_store_initial(struct gen *g, int output, kb_val element, const kb_val *x)
{
    const struct output *o = &g->p->output[output];
    const struct prog_array *a = &o->array;
    kb_tup fields = { .n = a->nfields };
    for (int f = 0; f < a->nfields; f++)
        fields.e[f] = x[f];
    if (fields.n > 1 && o->combine && output_meets_as_word(o)) {
        kb_ptr p = element_at(g, output, element);
        p.ty = word_of[a->stride];
        kb_store(g->k, p, 0, element_word(g->k, a, fields));
    } else {
        for (int f = 0; f < a->nfields; f++)
            gen_store_field(g, a, gen_output(g, output), element, f, x[f]);
    }
}

static void store_PLACED(struct point *pt, int output)
{
    struct gen *g = pt->g;
    kb *k = g->k;
    const struct output *o = &g->p->output[output];
    kb_tup x = { .n = o->array.nfields };
    kb_val index[SPACE_MAX], inside = pt->outputs ? pt->outputs->written(pt, output) : kb_true(k);
    const kb_val element = placed_element(pt, o, &inside);
    for (int f = 0; f < o->array.nfields; f++)
        x.e[f] = output_value(pt, output, f);
    for (int d = 0; d < g->p->rank && !o->combine && kb_checks_places(k); d++)
        index[d] = point_index(pt, d);
    kb_if(k, inside) {
        const kb_ptr p = element_at(g, output, element);
        if (o->combine) {
            combine_in_memory(pt, o, p, x);
        } else {
            kb_placed(k, p, o->array.stride, g->p->rank, index);
            store_fields(pt, output, element, x.e);
        }
    }
}

static void store_SETTLED(struct point *pt, int output) { store_PLACED(pt, output); }

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

void output_store_kept(struct gen *g, int output, kb_ptr from, kb_val n, kb_val before, kb_val length)
{
    kb *k = g->k;
    const bool back = g->p->output[output].from_end;
    const kb_ptr to = kb_advance(k, gen_output(g, output), back ? kb_sub(k, kb_sub(k, length, 1), before) : before);
    enum { AT_ONCE = 4 };
    kb_for(k, i, kb_tid(k), n, AT_ONCE * kb_threads(k)) {
        kb_val x[AT_ONCE];
        for (int j = 0; j < AT_ONCE; j++)
            x[j] = kb_load(k, from, kb_min(k, kb_add(k, i, j * kb_threads(k)), kb_sub(k, n, 1)));
        for (int j = 0; j < AT_ONCE; j++) {
            LET(at, kb_add(k, i, j * kb_threads(k)));
            kb_if(k, kb_lt(k, at, n)) {
                kb_store(k, to, back ? kb_neg(k, at) : at, x[j]);
            }
        }
    }
}

static kb_ptr vector_at(struct point *pt, int output)
{
    struct gen *g = pt->g;
    if (pt->outputs)
        return pt->outputs->at(pt, output);
    return point_address(pt, &g->p->output[output].array, gen_output(g, output));
}

void outputs_store_at(enum moment moment, struct point *const *pt, int n, bool aligned)
{
    struct gen *g = pt[0]->g;
    for (int o = 0; o < g->p->noutputs; o++) {
        kb_val x[GEN_VECTOR_MAX];
        if (output_moment(&g->p->output[o]) != moment)
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

void outputs_store(struct point *const *pt, int n, bool aligned) { outputs_store_at(AT_POINT, pt, n, aligned); }

void points_store(struct point *pt, int n, bool aligned)
{
    struct point *at[GEN_VECTOR_MAX];
    for (int j = 0; j < n; j++)
        at[j] = &pt[j];
    outputs_store(at, n, aligned);
}

static void store_all(struct point *pt, enum moment moment)
{
    for (int o = 0; o < pt->g->p->noutputs; o++)
        if (output_moment(&pt->g->p->output[o]) == moment)
            output_store(pt, o);
}

void point_store(struct point *pt) { store_all(pt, AT_POINT); }

void outputs_store_total(struct point *pt) { store_all(pt, AT_TOTAL); }
