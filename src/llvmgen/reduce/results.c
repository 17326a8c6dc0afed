/* SPDX-License-Identifier: Apache-2.0 */
/* results.c - the kernel that maps elements with the results of their segments.
 *
 * Threads take neighbouring vectors in the order of the space.  The indices of a vector's first element are divided out
 * once; those of the elements after it follow by carries.  The number of the segment follows from the indices along
 * the kept axes; the elements of a vector of one row share the row's state.  Between offsets, a thread takes one element
 * and searches for the segment.
 */
#include "llvmgen/shared/output.h"

#include "lower/results.h"
#include "lower/segments.h"

#include <string.h>

static kb_ptr field_at(struct gen *g, kb_val segment, int f)
{
    int offset[KB_TUP_MAX];
    const int bytes = results_layout(g->p, offset);
    kb_ptr at = gen_buffer(g, BUF_RESULTS, TY_U8);
    at = kb_advance(g->k, at, kb_add(g->k, kb_mul(g->k, segment, bytes), offset[f]));
    at.ty = g->field[f];
    return at;
}

void results_leave(struct gen *g, const struct point *pt)
{
    if (!g->c->mapper)
        return;
    const kb_val segment = pt->segment.ir ? pt->segment : kb_imm(g->k, TY_I64, 0);
    for (int f = 0; f < g->nfields; f++)
        kb_store(g->k, field_at(g, segment, f), 0, pt->state->e[f]);
}

static kb_tup state_of(struct gen *g, kb_val segment)
{
    kb_tup x = { .n = g->nfields };
    for (int f = 0; f < g->nfields; f++)
        x.e[f] = kb_load(g->k, field_at(g, segment, f), 0);
    return x;
}

/* The number of the segment of a point whose indices are known. */
static kb_val kept_number(struct gen *g, const kb_val *index)
{
    kb *k = g->k;
    kb_val number = kb_imm(k, TY_I64, 0);
    for (int d = 0, kept = 0; d < g->p->rank; d++)
        if (!g->p->space[d].reduced)
            number = kept++ ? kb_add(k, kb_mul(k, number, gen_extent(g, &g->p->space[d].extent)), index[d]) : index[d];
    return number;
}

/* The indices of an element. */
static void split(struct gen *g, kb_val element, kb_val *index)
{
    kb *k = g->k;
    for (int d = g->p->rank - 1; d > 0; d--) {
        const kb_val extent = gen_extent(g, &g->p->space[d].extent), rest = kb_div(k, element, extent);
        index[d] = kb_sub(k, element, kb_mul(k, rest, extent));
        element = rest;
    }
    index[0] = element;
}

/* The indices one element further; after the last element, those of the first. */
static void next_index(struct gen *g, const kb_val *index, kb_val *next)
{
    kb *k = g->k;
    kb_val carry = kb_true(k);
    for (int d = g->p->rank - 1; d >= 0; d--) {
        const kb_val more = kb_add(k, index[d], kb_cast(k, carry, TY_I64));
        const kb_val wraps = kb_eq(k, more, gen_extent(g, &g->p->space[d].extent));
        next[d] = kb_select(k, wraps, kb_imm(k, TY_I64, 0), more);
        carry = wraps;
    }
}

/* n neighbouring elements, the first at `base` with these indices; `together`: of one segment, and of one run of the
 * last axis. */
static void map_vector(struct gen *g, kb_val base, const kb_val *index, int n, bool aligned, bool together)
{
    kb *k = g->k;
    struct point pt[GEN_VECTOR_MAX], *at[GEN_VECTOR_MAX];
    struct direct d[GEN_VECTOR_MAX];
    kb_tup state[GEN_VECTOR_MAX];
    const int last = g->p->rank - 1;
    direct_load(g, base, kb_imm(k, TY_I32, 0), 0, n, aligned, d);
    for (int j = 0; j < n; j++) {
        point_init(&pt[j], g, base, kb_imm(k, TY_I32, 0), j);
        if (j == 0 || together)
            memcpy(pt[j].index, index, sizeof pt->index);
        if (j && together)
            pt[j].index[last] = kb_add(k, index[last], j);
        else if (j)
            next_index(g, pt[j - 1].index, pt[j].index);
        state[j] = j && together ? state[0] : state_of(g, kept_number(g, pt[j].index));
        pt[j].direct = &d[j];
        pt[j].state = &state[j];
        at[j] = &pt[j];
    }
    outputs_store_at(AT_RESULT, at, n, aligned);
}

static void map_element(struct gen *g, kb_val element)
{
    kb_val index[SPACE_MAX] = { { .ir = NULL } };
    split(g, element, index);
    map_vector(g, element, index, 1, false, false);
}

/* A whole vector. False, emitted as a bool: its elements are of several segments, and are still to be mapped. */
static kb_val map_whole(struct gen *g, kb_val at, int vector)
{
    kb *k = g->k;
    kb_val index[SPACE_MAX] = { { .ir = NULL } };
    split(g, at, index);
    if (!segments_trailing(g->p)) {
        map_vector(g, at, index, vector, true, false);
        return kb_true(k);
    }
    const int last = g->p->rank - 1;
    LET(together, kb_le(k, kb_add(k, index[last], vector), gen_extent(g, &g->p->space[last].extent)));
    kb_if(k, together) {
        map_vector(g, at, index, vector, true, true);
    }
    return together;
}

/* The vector at `at`, of which some elements may lie outside.  There is one loop over single elements: ptxas 13.0 was
 * seen to run a loop from `at` to at + 16 beyond its end. */
static void map_vector_at(struct gen *g, kb_val at, int vector, kb_val elements)
{
    kb *k = g->k;
    kb_var done = kb_var_new(k, kb_false(k), "done");
    kb_if(k, kb_and(k, kb_ge(k, at, 0), kb_le(k, kb_add(k, at, vector), elements))) {
        kb_set(k, done, map_whole(g, at, vector));
    }
    kb_if(k, kb_not(k, kb_get(k, done))) {
        kb_for(k, i, kb_max(k, at, 0), kb_min(k, kb_add(k, at, vector), elements), 1) {
            map_element(g, i);
        }
    }
}

/* The first segment that ends after the element, or the number of segments. */
static kb_val search(struct gen *g, kb_val element, kb_val segments)
{
    kb *k = g->k;
    kb_var from = kb_var_new(k, kb_imm(k, TY_I64, 0), "from"), to = kb_var_new(k, segments, "to");
    kb_loop(k) {
        const kb_val lo = kb_get(k, from), hi = kb_get(k, to);
        kb_break_if(k, kb_ge(k, lo, hi));
        LET(middle, kb_shr(k, kb_add(k, lo, hi), 1));
        const kb_val before = kb_le(k, segment_offset(g, kb_add(k, middle, 1)), element);
        kb_set(k, from, kb_select(k, before, kb_add(k, middle, 1), lo));
        kb_set(k, to, kb_select(k, before, hi, middle));
    }
    return kb_get(k, from);
}

static void map_between_offsets(struct gen *g, kb_val element)
{
    kb *k = g->k;
    const kb_val segments = gen_value(g, VAL_SEGMENTS);
    LET(segment, search(g, element, segments));
    kb_if(k, kb_lt(k, segment, segments)) {
        kb_if(k, kb_le(k, segment_offset(g, segment), element)) {
            struct point pt, *at = &pt;
            const kb_tup state = state_of(g, segment);
            point_init(&pt, g, element, kb_imm(k, TY_I32, 0), 0);
            pt.index[0] = element;
            pt.segment = segment;
            pt.state = &state;
            outputs_store_at(AT_RESULT, &at, 1, false);
        }
    }
}

void emit_results(struct gen *g)
{
    kb *k = g->k;
    const int vector = results_vector(g->p, g->c);
    gen_wait_for_predecessor(g);
    const kb_val elements = gen_value(g, VAL_ELEMENTS), head = gen_value(g, VAL_HEAD);
    const int64_t threads = kb_threads(k);
    LET(own, kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), threads), kb_cast(k, kb_tid(k), TY_I64)));
    LET(first, vector > 1 ? kb_sub(k, kb_add(k, kb_mul(k, own, vector), head), vector) : own);
    LET(step, kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), threads * vector));
    kb_for(k, at, first, elements, step) {
        if (g->p->offsets >= 0) {
            map_between_offsets(g, at);
        } else if (vector == 1) {
            map_element(g, at);
        } else {
            map_vector_at(g, at, vector, elements);
        }
    }
}

void emit_initials(struct gen *g)
{
    kb *k = g->k;
    gen_wait_for_predecessor(g);
    const int64_t threads = kb_threads(k);
    LET(own, kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), threads), kb_cast(k, kb_tid(k), TY_I64)));
    LET(step, kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), threads));
    for (int o = 0; o < g->p->noutputs; o++) {
        const struct output *out = &g->p->output[o];
        struct point pt;
        kb_val n = kb_imm(k, TY_I64, 1);
        if (!out->initial[0])
            continue;
        for (int d = 0; d < out->array.rank; d++)
            n = kb_mul(k, n, gen_extent(g, &out->array.dim[d]));
        env_init(&pt, g, NULL);
        kb_val x[STATE_FIELDS_MAX];
        for (int f = 0; f < out->array.nfields; f++)
            x[f] = emit_expr(k, &pt.env, out->initial[f]);
        kb_for(k, i, own, n, step) {
            output_store_initial(g, o, i, x);
        }
    }
}
