/* SPDX-License-Identifier: Apache-2.0 */
/* seg_stretches.c - a team of lanes reduces stretches of consecutive positions, whatever their ends.
 *
 *     positions:   |  vector  |  vector  |  vector  |  vector  |
 *     stretch:             first ^^^^^^^^^^^^^^^^^^^^^^ last
 *
 * A stretch is covered by whole vectors from the vector that holds its first position, so that stretches of any size are read with
 * vector loads without peeling; what is loaded beyond the ends is masked.  A round is lanes x items vectors:
 *
 *     for round:   load the vectors of all stretches, clamped into the array;   combine what is inside
 *
 * Commutative: vector i of lane r is number i * lanes + r, and lanes keep running totals.  Ordered: a lane has consecutive vectors,
 * the team's tree runs over them in order, and lane 0 keeps the running total.  A last vector that the array does not fill is never
 * loaded: lane 0 takes those few positions one by one.  Neighbouring stretches read the vectors at their common end twice; the second
 * time it comes from a cache.
 */
#include "seg_gen.h"

struct round {
    struct gen *g;
    const struct team *team;
    struct stretch *stretch;
    int items, vector;
    bool ordered, aligned;
    kb_val base, safe;             /* i64 positions: of the round, and of the loads, which stay inside the array */
    kb_val lo, hi;                 /* i32, relative to base: what is inside the stretch */
    kb_val own[SEG_HELD_MAX];      /* i32 per vector: where it begins, relative to base, … */
    kb_val at[SEG_HELD_MAX];       /* … and where it is loaded from, relative to safe */
    struct direct d[SEG_HELD_MAX]; /* per position */
};

struct partial partial_new(struct gen *g, const char *name)
{
    return (struct partial){ kb_var_new(g->k, g->padded ? state_pad_value(g) : state_zero(g), name),
                             kb_var_new(g->k, kb_imm(g->k, TY_BOOL, 0), "have") };
}

void partial_take(struct gen *g, struct partial *p, kb_tup x)
{
    if (g->padded)
        kb_set(g->k, p->x, state_combine(g, kb_get(g->k, p->x), x));
    else
        state_accumulate(g, p->x, p->have, x);
}

void partial_join(struct gen *g, struct partial *p, kb_tup x, kb_val have)
{
    if (g->padded) {
        partial_take(g, p, x);
        return;
    }
    kb_if (g->k, have) {
        state_accumulate(g, p->x, p->have, x);
    }
}

/* Positions from here on are not loaded as vectors. */
static kb_val vectors_end(struct gen *g) { return gen_value(g, "vector_end"); }

static kb_val stretch_start(struct gen *g, const struct stretch *s)
{
    return kb_and(g->k, s->first, -(int64_t)gen_tunable(g, TN_VECTOR));
}

static kb_val stretch_covered(struct gen *g, const struct stretch *s) { return kb_min(g->k, s->last, vectors_end(g)); }

static void round_load(struct round *r, kb_val round)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const int tile = r->team->lanes * r->items * r->vector;
    const kb_val final = kb_sub(k, vectors_end(g), r->vector);
    r->base = kb_add(k, stretch_start(g, r->stretch), round);
    r->safe = kb_min(k, r->base, final);
    r->lo = kb_cast(k, kb_max(k, kb_sub(k, r->stretch->first, r->base), 0), TY_I32);
    const kb_val to = kb_min(k, kb_sub(k, stretch_covered(g, r->stretch), r->base), tile);
    r->hi = kb_max(k, kb_cast(k, kb_max(k, to, 0), TY_I32), r->lo);
    /* Lanes behind the end load its last vector once more. */
    const kb_val room = kb_max(k, kb_and(k, kb_sub(k, r->hi, 1), -r->vector), 0);
    for (int i = 0; i < r->items; i++) {
        const kb_val number = r->ordered ? kb_add(k, kb_mul(k, r->team->rank, r->items), i) : kb_add(k, r->team->rank, i * r->team->lanes);
        r->own[i] = kb_mul(k, number, r->vector);
        r->at[i] = kb_min(k, r->own[i], room);
        struct point pt;
        seg_point(g, &pt, r->stretch->seg, r->safe, r->at[i], 0);
        direct_load(g, pt.base, pt.offset, pt.plus, r->vector, r->aligned, &r->d[i * r->vector]);
    }
}

static void round_point(struct round *r, struct point *pt, int i, int j)
{
    seg_point(r->g, pt, r->stretch->seg, r->safe, r->at[i], j);
    pt->direct = &r->d[i * r->vector + j];
}

/* The same for a position that may lie outside the segment: what the map reads by index is read inside. */
static void masked_point(struct round *r, struct point *pt, int i, int j)
{
    kb *k = r->g->k;
    const struct seg *s = r->stretch->seg;
    struct point inside;
    const kb_val position = kb_add(k, kb_add(k, r->safe, kb_cast(k, r->at[i], TY_I64)), j);
    const kb_val clamped = kb_max(k, kb_min(k, position, kb_sub(k, s->last, 1)), s->first);
    round_point(r, pt, i, j);
    seg_point(r->g, &inside, s, clamped, kb_imm(k, TY_I32, 0), 0);
    for (int d = 0; d < r->g->p->rank; d++)
        pt->index[d] = inside.index[d];
}

static kb_tup tree(struct gen *g, struct point *pt, int lo, int hi)
{
    if (hi - lo == 1)
        return point_map(&pt[lo]);
    const int mid = lo + (hi - lo) / 2;
    const kb_tup left = tree(g, pt, lo, mid);
    return state_combine(g, left, tree(g, pt, mid, hi));
}

/* All positions of the lane are inside. */
static void round_full(struct round *r, struct partial *into)
{
    struct gen *g = r->g;
    kb_tup total = { .n = 0 };
    for (int i = 0; i < r->items; i++) {
        struct point pt[GEN_VECTOR_MAX];
        for (int j = 0; j < r->vector; j++)
            round_point(r, &pt[j], i, j);
        points_store(pt, r->vector, r->aligned);
        const kb_tup x = tree(g, pt, 0, r->vector);
        total = i == 0 ? x : state_combine(g, total, x);
    }
    partial_take(g, into, total);
}

static void take_masked(struct round *r, struct partial *into, int i, int j)
{
    struct gen *g = r->g;
    kb *k = g->k;
    struct point pt;
    const kb_val at = kb_add(k, r->own[i], j);
    const kb_val inside = kb_and(k, kb_ge(k, at, r->lo), kb_lt(k, at, r->hi));
    if (g->padded && !access_writes_elements(g->p)) {
        masked_point(r, &pt, i, j);
        partial_take(g, into, kb_select(k, inside, point_map(&pt), state_pad_value(g)));
        return;
    }
    kb_if (k, inside) {
        round_point(r, &pt, i, j);
        points_store(&pt, 1, false);
        partial_take(g, into, point_map(&pt));
    }
}

static void round_masked(struct round *r, struct partial *into)
{
    for (int i = 0; i < r->items; i++)
        for (int j = 0; j < r->vector; j++)
            take_masked(r, into, i, j);
}

static void round_lanes(struct round *r, struct partial *into)
{
    kb *k = r->g->k;
    const int tile = r->team->lanes * r->items * r->vector;
    kb_if (k, kb_and(k, kb_eq(k, r->lo, 0), kb_eq(k, r->hi, tile))) {
        round_full(r, into);
    } kb_else {
        round_masked(r, into);
    }
}

/* In order: the lanes' shares meet in lane 0, which joins them to what came before. */
static void round_ordered(struct round *r)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const int share = r->items * r->vector;
    struct partial part = partial_new(g, "part");
    round_lanes(r, &part);
    /* Lanes are filled from the first one on: `lo` is less than a vector. */
    const kb_val filled = kb_div(k, kb_add(k, r->hi, share - 1), share);
    const kb_val before = kb_sub(k, kb_lane(k), r->team->rank);
    const kb_tup x = warp_reduce(g, kb_get(k, part.x), r->team->lanes, filled_first(kb_add(k, before, filled)));
    kb_if (k, kb_gt(k, r->hi, r->lo)) {
        partial_take(g, &r->stretch->total, x);
    }
}

/* Positions behind the last whole vector of the array, fewer than a vector. */
static void stretch_tail(struct gen *g, const struct team *team, struct stretch *s)
{
    kb *k = g->k;
    const kb_val from = kb_max(k, s->first, vectors_end(g));
    kb_if (k, kb_and(k, kb_lt(k, from, s->last), kb_eq(k, team->rank, 0))) {
        kb_for (k, position, from, s->last, 1) {
            struct point pt;
            struct direct d;
            seg_point(g, &pt, s->seg, position, kb_imm(k, TY_I32, 0), 0);
            direct_load(g, pt.base, pt.offset, pt.plus, 1, false, &d);
            pt.direct = &d;
            points_store(&pt, 1, false);
            partial_take(g, &s->total, point_map(&pt));
        }
    }
}

void stretches_reduce(struct gen *g, const struct team *team, int n, struct stretch *stretch, kb_val longest)
{
    kb *k = g->k;
    const int items = gen_tunable(g, TN_ITEMS), vector = gen_tunable(g, TN_VECTOR);
    struct round r[SEG_AT_ONCE_MAX];
    for (int u = 0; u < n; u++)
        r[u] = (struct round){ .g = g, .team = team, .stretch = &stretch[u], .items = items, .vector = vector,
                               .ordered = !state_commutative(g->p), .aligned = g->c->aligned };
    const kb_val zero = kb_imm(k, TY_I64, 0);
    /* Nothing to load: no elements, or not even one vector of them. */
    const kb_val none = kb_or(k, kb_le(k, longest, 0), kb_le(k, vectors_end(g), 0));
    const kb_val to = kb_select(k, none, zero, kb_add(k, longest, vector - 1));
    kb_for (k, round, zero, to, (int64_t)team->lanes * items * vector) {
        for (int u = 0; u < n; u++)
            round_load(&r[u], round);
        for (int u = 0; u < n; u++) {
            seg_enter(g, stretch[u].seg);
            if (r[u].ordered)
                round_ordered(&r[u]);
            else
                round_lanes(&r[u], &stretch[u].total);
        }
    }
    for (int u = 0; u < n && vector > 1; u++) {
        seg_enter(g, stretch[u].seg);
        stretch_tail(g, team, &stretch[u]);
    }
}

kb_val stretch_filled(struct gen *g, const struct team *team, const struct stretch *s)
{
    kb *k = g->k;
    const int vector = gen_tunable(g, TN_VECTOR);
    const kb_val vectors = kb_div(k, kb_add(k, kb_sub(k, stretch_covered(g, s), stretch_start(g, s)), vector - 1), vector);
    return kb_cast(k, kb_max(k, kb_min(k, vectors, team->lanes), 1), TY_I32);
}

kb_tup team_total(struct gen *g, const struct team *team, struct stretch *s)
{
    kb *k = g->k;
    seg_enter(g, s->seg);
    const kb_tup x = kb_get(k, s->total.x);
    if (!state_commutative(g->p))
        return x;
    const kb_val before = kb_sub(k, kb_lane(k), team->rank);
    const struct filled f = g->padded ? filled_all() : filled_first(kb_add(k, before, stretch_filled(g, team, s)));
    return warp_reduce(g, x, team->lanes, f);
}
