/* SPDX-License-Identifier: Apache-2.0 */
/* windows.c - the share of one warp in an ordered (non-commutative) reduction.
 *
 * The places 0 … lead + count are cut into windows of 32 x items x vector; place p holds element p - lead, so that
 * windows begin at a vector boundary.  Every warp of the grid takes one consecutive range of windows and keeps a
 * running total in lane 0:
 *
 *     for window in range:   lane i reduces its items x vector consecutive elements
 *                            warp tree over the lanes in order;  carry := carry * total
 *
 * After Futhark's SegRed for non-commutative operators, with windows of a warp instead of a block, so that no window
 * needs a block barrier.  Consecutive elements per lane come either straight from memory (vectors, `smem_transpose` 0), or
 * through a warp-private transpose in shared memory: coalesced loads in, consecutive vectors out.  An odd number of
 * 16-byte vectors per lane makes both sides of the transpose free of bank conflicts without padding.  Or (`copy_stages`
 * stages, sm_90) through a ring of the warp's own in shared memory, which bulk copies fill several windows ahead.
 */
#include "input_ring.h"
#include "llvmgen/shared/output.h"

struct windows {
    struct gen *g;
    int items, vector, per_lane;
    kb_val lead, count;         /* i32, i64 */
    kb_ptr stage[PROG_ARG_MAX]; /* per direct input: this warp's part of the transpose buffer */
    int bulk;                   /* stages of the ring; 0: none */
    struct input_ring ring;
};

/* Calls f for every direct input with its first slot in struct direct. */
static void each_direct(struct windows *w, void (*f)(struct windows *w, int input, int slot, int q, struct direct *d),
                        int q, struct direct *d)
{
    for (int i = 0, slot = 0; i < w->g->p->ninputs; i++)
        if (access_input_direct(w->g->p, i)) {
            f(w, i, slot, q, d);
            slot += w->g->p->input[i].array.nfields;
        }
}

static void make_stage(struct windows *w, int input, int slot, int q, struct direct *d)
{
    (void)slot, (void)q, (void)d;
    kb *k = w->g->k;
    const int count = KB_WARP * w->per_lane;
    const kb_ptr all =
        kb_shared_v(k, w->g->p->input[input].array.field[0].type, kb_threads(k) / KB_WARP * count, "stage");
    w->stage[input] = kb_advance(k, all, kb_mul(k, kb_warp(k), count));
}

/* Vector q of the lane in the striped arrangement goes to its place in the window. */
static void put_vector(struct windows *w, int input, int slot, int q, struct direct *d)
{
    kb *k = w->g->k;
    kb_val x[GEN_VECTOR_MAX];
    for (int j = 0; j < w->vector; j++)
        x[j] = d[j].v[slot];
    const kb_val place = kb_add(k, kb_mul(k, kb_lane(k), w->vector), q * KB_WARP * w->vector);
    kb_store_n(k, w->stage[input], place, w->vector, w->vector * w->g->p->input[input].array.stride, x);
}

/* Where vector q of the lane is in the blocked arrangement. */
static kb_val vector_place(const void *user, int q)
{
    const struct windows *w = user;
    kb *k = w->g->k;
    return kb_add(k, kb_mul(k, kb_lane(k), w->per_lane), q * w->vector);
}

/* Vector q of the lane in the blocked arrangement. */
static void get_vector(struct windows *w, int input, int slot, int q, struct direct *d)
{
    kb *k = w->g->k;
    kb_val x[GEN_VECTOR_MAX];
    kb_load_n(k, w->stage[input], vector_place(w, q), w->vector, w->vector * w->g->p->input[input].array.stride, x);
    for (int j = 0; j < w->vector; j++)
        d[j].v[slot] = x[j];
}

/* ---- the ring ---------------------------------------------------------------------------------------------------- */

static kb_val window_base(const void *user, kb_val i)
{
    const struct windows *w = user;
    kb *k = w->g->k;
    return kb_sub(k, kb_mul(k, kb_cast(k, i, TY_I64), KB_WARP * w->per_lane), kb_cast(k, w->lead, TY_I64));
}

/* The ring, with the first full windows of [from, to) under way. */
static void start_ring(struct windows *w, kb_val from, kb_val to)
{
    kb *k = w->g->k;
    const int size = KB_WARP * w->per_lane;
    w->ring = (struct input_ring){ .g = w->g,
                                   .elements = size,
                                   .step = kb_imm(k, TY_U32, 1),
                                   .user = w,
                                   .first = window_base,
                                   .place = vector_place };
    input_ring_new(&w->ring, w->bulk);
    LET(places, kb_add(k, kb_cast(k, w->lead, TY_I64), w->count));
    w->ring.to = kb_min(k, to, kb_cast(k, kb_div(k, places, size), TY_U32));
    const kb_val partial_first = kb_and(k, kb_eq(k, from, 0), kb_gt(k, w->lead, 0));
    LET(first, kb_add(k, from, kb_cast(k, partial_first, TY_U32)));
    input_ring_start(&w->ring, first);
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

/* The lane's consecutive elements of full window i, which begins at element base. */
static void load_blocked(struct windows *w, kb_val i, kb_val base, struct direct *d)
{
    struct gen *g = w->g;
    kb *k = g->k;
    if (w->bulk) {
        input_ring_take(&w->ring, i, w->items, w->vector, d);
        return;
    }
    if (!gen_tunable(g, TN_SMEM_TRANSPOSE)) {
        const kb_val own = kb_mul(k, kb_lane(k), w->per_lane);
        for (int q = 0; q < w->items; q++)
            direct_load(g, base, own, (int64_t)q * w->vector, w->vector, g->c->aligned, &d[q * w->vector]);
        return;
    }
    const kb_val lane_vector = kb_mul(k, kb_lane(k), w->vector);
    struct direct striped[64];
    for (int q = 0; q < w->items; q++)
        direct_load(g, base, lane_vector, (int64_t)q * KB_WARP * w->vector, w->vector, g->c->aligned,
                    &striped[q * w->vector]);
    kb_warp_sync(k); /* every lane has read the previous window */
    for (int q = 0; q < w->items; q++)
        each_direct(w, put_vector, q, &striped[q * w->vector]);
    kb_warp_sync(k); /* the window is complete */
    for (int q = 0; q < w->items; q++)
        each_direct(w, get_vector, q, &d[q * w->vector]);
}

/* Elements of one lane, one after the other: a balanced tree would hold log(items) states in registers. */
static kb_tup fold(struct gen *g, struct point *pt, int n)
{
    kb_tup x = point_map(&pt[0]);
    for (int i = 1; i < n; i++)
        x = state_combine(g, x, point_map(&pt[i]));
    return x;
}

static kb_tup full_window(struct windows *w, kb_val i, kb_val base)
{
    struct gen *g = w->g;
    const kb_val own = kb_mul(g->k, kb_lane(g->k), w->per_lane);
    struct direct d[64];
    struct point pt[64];
    load_blocked(w, i, base, d);
    for (int j = 0; j < w->per_lane; j++) {
        point_init(&pt[j], g, base, own, j);
        pt[j].direct = &d[j];
        point_is_of_vector(&pt[j], j, w->per_lane);
    }
    for (int q = 0; q < w->items; q++)
        points_store(&pt[q * w->vector], w->vector, g->c->aligned && !gen_tunable(g, TN_SMEM_TRANSPOSE));
    return warp_reduce(g, fold(g, pt, w->per_lane), KB_WARP, valid_all());
}

/* A window that begins before the first element or ends after the last one: its places [lo, hi) are inside.  Loads are
 * clamped into them, and only what is inside counts. */
static kb_tup partial_window(struct windows *w, kb_val base)
{
    struct gen *g = w->g;
    kb *k = g->k;
    const int size = KB_WARP * w->per_lane;
    const kb_val own = kb_mul(k, kb_lane(k), w->per_lane);
    LET(lo, kb_cast(k, kb_max(k, kb_neg(k, base), 0), TY_I32));
    LET(hi, kb_cast(k, kb_min(k, kb_sub(k, w->count, base), size), TY_I32));
    struct direct d[64];
    kb_val at[64];
    for (int i = 0; i < w->per_lane; i++) {
        at[i] = kb_min(k, kb_max(k, kb_add(k, own, i), lo), kb_sub(k, hi, 1));
        direct_load(g, base, at[i], 0, 1, false, &d[i]);
    }
    kb_tvar acc = kb_var_new(k, g->padded ? state_pad_value(g) : state_zero(g), "part");
    kb_var have = kb_var_new(k, kb_false(k), "have_part");
    for (int i = 0; i < w->per_lane; i++) {
        kb_if(k, kb_eq(k, at[i], kb_add(k, own, i))) {
            struct point pt;
            point_init(&pt, g, base, at[i], 0);
            pt.direct = &d[i];
            points_store(&pt, 1, false);
            state_accumulate(g, acc, have, point_map(&pt));
        }
    }
    /* Lanes are valid from the first one on: a window has an element, and `lead` is shorter than a lane's share. */
    LET(lanes, kb_div(k, kb_add(k, hi, w->per_lane - 1), w->per_lane));
    return warp_reduce(g, kb_get(k, acc), KB_WARP, valid_first(lanes));
}

/* This warp's windows [from, to): the same number for all warps, one more for the first ones. */
static void my_range(struct gen *g, kb_val windows, kb_val block, kb_val blocks, kb_val *from, kb_val *to,
                     struct valid_items *valid)
{
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    LET(all, kb_cast(k, kb_mul(k, blocks, warps), TY_U32));
    LET(me, kb_cast(k, kb_add(k, kb_mul(k, block, warps), kb_warp(k)), TY_U32));
    LET(each, kb_div(k, windows, all));
    LET(more, kb_rem(k, windows, all));
    LET(begin, kb_add(k, kb_mul(k, me, each), kb_min(k, me, more)));
    LET(extra, kb_cast(k, kb_lt(k, me, more), TY_U32));
    *from = begin;
    *to = kb_add(k, kb_add(k, begin, each), extra);
    /* Warps with a window are the first ones of the grid. */
    LET(valid_warps, kb_cast(k, kb_min(k, windows, all), TY_I32));
    LET(before, kb_mul(k, block, warps));
    *valid = valid_first(kb_min(k, kb_max(k, kb_sub(k, valid_warps, before), 0), warps));
}

kb_tup windows_reduce(struct gen *g, kb_val block, kb_val blocks, struct valid_items *warps)
{
    kb *k = g->k;
    struct windows w = { .g = g,
                         .items = gen_tunable(g, TN_ITEMS),
                         .vector = gen_tunable(g, TN_VECTOR),
                         .bulk = gen_tunable(g, TN_COPY_STAGES) };
    w.per_lane = w.items * w.vector;
    w.lead = gen_value(g, VAL_LEAD);
    w.count = gen_value(g, VAL_COUNT);
    const int size = KB_WARP * w.per_lane;
    if (gen_tunable(g, TN_SMEM_TRANSPOSE))
        each_direct(&w, make_stage, 0, NULL);
    kb_tvar carry = kb_var_new(k, state_zero(g), "carry");

    kb_section(k, "windows");
    LET(lead, kb_cast(k, w.lead, TY_I64));
    LET(places, kb_add(k, lead, w.count));
    LET(windows, kb_cast(k, kb_div(k, kb_add(k, places, size - 1), size), TY_U32));
    kb_val from, to;
    my_range(g, windows, block, blocks, &from, &to, warps);
    if (w.bulk)
        start_ring(&w, from, to);
    kb_for(k, i, from, to, 1) {
        LET(base, window_base(&w, i));
        LET(full, kb_and(k, kb_ge(k, base, 0), kb_le(k, kb_add(k, base, size), w.count)));
        kb_tvar total = kb_var_new(k, state_zero(g), "total");
        kb_if(k, full) {
            kb_set(k, total, full_window(&w, i, base));
        }
        kb_else { kb_set(k, total, partial_window(&w, base)); }
        kb_if(k, kb_eq(k, i, from)) {
            kb_set(k, carry, kb_get(k, total));
        }
        kb_else { kb_set(k, carry, state_combine(g, kb_get(k, carry), kb_get(k, total))); }
    }
    return kb_get(k, carry);
}
