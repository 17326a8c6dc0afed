/* SPDX-License-Identifier: Apache-2.0 */
/* results.c - the kernel that maps elements with the results of their segments.
 *
 * Threads take neighbouring vectors in the order of the space.  The indices of a vector's first element are divided out
 * once; those of the elements after it follow by carries.  The number of the segment follows from the indices along
 * the kept axes; the elements of a vector of one row share the row's state.  Between offsets, a warp takes a tile and
 * searches for its segments.
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

kb_tup results_read(struct gen *g, kb_val segment)
{
    kb_tup x = { .n = g->nfields };
    for (int f = 0; f < g->nfields; f++)
        x.e[f] = kb_load(g->k, field_at(g, segment, f), 0);
    return x;
}

void results_ahead(struct point *pt, const kb_tup *results)
{
    const struct problem *p = pt->g->p;
    const struct expr *e[PROBLEM_ARGS_MAX * STATE_FIELDS_MAX];
    unsigned axes = 0;
    int n = 0;
    for (int i = 0; i < p->rank; i++)
        axes |= p->space[i].reduced ? 1u << i : 0;
    for (int o = 0; o < p->noutputs; o++)
        for (int f = 0; output_moment(&p->output[o]) == AT_RESULT && f < p->output[o].array.nfields; f++)
            e[n++] = p->output[o].value[f];
    pt->state = results;
    point_ahead_of(pt, axes, n, e);
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
        state[j] = j && together ? state[0] : results_read(g, kept_number(g, pt[j].index));
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

/* ---- between offsets --------------------------------------------------------------------------------------------- */

static kb_val ends_before(struct gen *g, const void *element, kb_val i)
{
    return kb_le(g->k, segment_offset(g, kb_add(g->k, i, 1)), *(const kb_val *)element);
}

/* The first segment of [from, to) that ends after the element, or `to`. */
static kb_val search(struct gen *g, kb_val element, kb_val first, kb_val end)
{
    kb *k = g->k;
    kb_var from = kb_var_new(k, first, "from"), to = kb_var_new(k, end, "to");
    kb_loop(k) {
        const kb_val lo = kb_get(k, from), hi = kb_get(k, to);
        kb_break_if(k, kb_ge(k, lo, hi));
        LET(middle, kb_shr(k, kb_add(k, lo, hi), 1));
        const kb_val before = ends_before(g, &element, middle);
        kb_set(k, from, kb_select(k, before, kb_add(k, middle, 1), lo));
        kb_set(k, to, kb_select(k, before, hi, middle));
    }
    return kb_get(k, from);
}

/* n neighbouring elements and their segments, which exist, with what was loaded of them, or NULL. */
static void map_of_segments(struct gen *g, kb_val element, const kb_val *segment, int n, const struct direct *d)
{
    kb *k = g->k;
    struct point pt[GEN_VECTOR_MAX], *at[GEN_VECTOR_MAX];
    kb_tup state[GEN_VECTOR_MAX];
    for (int j = 0; j < n; j++) {
        if (j == 0) {
            state[j] = results_read(g, segment[j]);
        } else { /* most often that of the element before it */
            kb_tvar own = kb_var_new(k, state[j - 1], "state");
            kb_if(k, kb_ne(k, segment[j], segment[j - 1])) {
                kb_set(k, own, results_read(g, segment[j]));
            }
            state[j] = kb_get(k, own);
        }
        point_init(&pt[j], g, element, kb_imm(k, TY_I32, 0), j);
        pt[j].index[0] = kb_add(k, element, j);
        pt[j].segment = segment[j];
        pt[j].state = &state[j];
        pt[j].direct = d ? &d[j] : NULL;
        at[j] = &pt[j];
    }
    outputs_store_at(AT_RESULT, at, n, n > 1);
}

/* An element whose segment is one of [from, to], if any. */
static void map_between_offsets(struct gen *g, kb_val element, kb_val from, kb_val to)
{
    kb *k = g->k;
    const kb_val segments = gen_value(g, VAL_SEGMENTS);
    LET(segment, search(g, element, from, to));
    kb_if(k, kb_lt(k, segment, segments)) {
        kb_if(k, kb_le(k, segment_offset(g, segment), element)) {
            map_of_segments(g, element, &segment, 1, NULL);
        }
    }
}

/* The segment of an element, from that of an element before it, or `to`: most often the same, or one of the next. */
static kb_val walk(struct gen *g, kb_val element, kb_val segment, kb_val to)
{
    enum { STEPS = 4 };
    kb *k = g->k;
    kb_var at = kb_var_new(k, segment, "segment"), steps = kb_var_new(k, kb_imm(k, TY_I32, 0), "steps");
    kb_loop(k) {
        const kb_val here = kb_get(k, at);
        kb_break_if(k, kb_or(k, kb_ge(k, here, to), kb_eq(k, kb_get(k, steps), STEPS)));
        kb_break_if(k, kb_not(k, ends_before(g, &element, here)));
        kb_set(k, at, kb_add(k, here, 1));
        kb_set(k, steps, kb_add(k, kb_get(k, steps), 1));
    }
    kb_if(k, kb_eq(k, kb_get(k, steps), STEPS)) {
        kb_set(k, at, search(g, element, kb_get(k, at), to));
    }
    return kb_get(k, at);
}

/* The elements of the vector at `at` that exist.  A whole one is loaded before its segments are looked for. */
static void map_vector_between(struct gen *g, kb_val at, int vector, kb_val elements, kb_val from, kb_val to)
{
    kb *k = g->k;
    const kb_val segments = gen_value(g, VAL_SEGMENTS);
    kb_var done = kb_var_new(k, kb_false(k), "done");
    kb_if(k, kb_and(k, kb_ge(k, at, 0), kb_le(k, kb_add(k, at, vector), elements))) {
        struct direct d[GEN_VECTOR_MAX];
        kb_val segment[GEN_VECTOR_MAX];
        direct_load(g, at, kb_imm(k, TY_I32, 0), 0, vector, true, d);
        for (int j = 0; j < vector; j++)
            segment[j] = j ? walk(g, kb_add(k, at, j), segment[j - 1], to) : search(g, at, from, to);
        kb_if(k, kb_lt(k, segment[vector - 1], segments)) {
            kb_if(k, kb_le(k, segment_offset(g, segment[0]), at)) {
                map_of_segments(g, at, segment, vector, d);
                kb_set(k, done, kb_true(k));
            }
        }
    }
    kb_if(k, kb_not(k, kb_get(k, done))) {
        kb_for(k, i, kb_max(k, at, 0), kb_min(k, kb_add(k, at, vector), elements), 1) {
            map_between_offsets(g, i, from, to);
        }
    }
}

/* A warp looks for the segments of a tile's first and last elements; its threads look between these. */
static void map_tiles(struct gen *g, int vector, kb_val head)
{
    kb *k = g->k;
    const kb_val elements = gen_value(g, VAL_ELEMENTS), segments = gen_value(g, VAL_SEGMENTS);
    const int64_t tile = (int64_t)RESULTS_ROUNDS * KB_WARP * vector, warps = kb_threads(k) / KB_WARP;
    const kb_val zero = kb_imm(k, TY_I64, 0);
    LET(warp, kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), warps), kb_cast(k, kb_warp(k), TY_I64)));
    LET(first, kb_assume_uniform(kb_sub(k, kb_add(k, kb_mul(k, warp, tile), head), vector > 1 ? vector : 0),
                                 KB_UNI_WARP)); /* from the warp's number */
    kb_for(k, begin, first, elements, kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), warps * tile)) {
        LET(own, kb_max(k, begin, 0));
        LET(last, kb_sub(k, kb_min(k, kb_add(k, begin, tile), elements), 1));
        LET(from, warp_search(g, zero, segments, warp_evenly(g, segments), ends_before, &own));
        LET(to, warp_search(g, from, segments, kb_imm(k, TY_I64, 1), ends_before, &last));
        LET(lane, kb_add(k, begin, kb_cast(k, kb_mul(k, kb_lane(k), vector), TY_I64)));
        kb_for(k, round, zero, RESULTS_ROUNDS, 1) {
            LET(at, kb_add(k, lane, kb_mul(k, round, KB_WARP * vector)));
            if (vector > 1) {
                map_vector_between(g, at, vector, elements, from, to);
            } else {
                kb_if(k, kb_lt(k, at, elements)) {
                    map_between_offsets(g, at, from, to);
                }
            }
        }
    }
}

void emit_results(struct gen *g)
{
    kb *k = g->k;
    const int vector = results_vector(g->p, g->c);
    if (g->c->maps) {
        emit_whole_rest(g);
        return;
    }
    gen_wait_for_predecessor(g);
    if (g->p->offsets >= 0) {
        map_tiles(g, vector, gen_value(g, VAL_HEAD));
        return;
    }
    const kb_val elements = gen_value(g, VAL_ELEMENTS), head = gen_value(g, VAL_HEAD);
    const int64_t threads = kb_threads(k);
    LET(own, kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), threads), kb_cast(k, kb_tid(k), TY_I64)));
    LET(first, vector > 1 ? kb_sub(k, kb_add(k, kb_mul(k, own, vector), head), vector) : own);
    LET(step, kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), threads * vector));
    kb_for(k, at, first, elements, step) {
        if (vector == 1)
            map_element(g, at);
        else
            map_vector_at(g, at, vector, elements);
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
