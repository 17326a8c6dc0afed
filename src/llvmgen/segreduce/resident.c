/* SPDX-License-Identifier: Apache-2.0 */
/* resident.c - reduce a row, then map it: a row is read once and stays in the registers of a team.
 *
 *     load all vectors of the row;   combine them in the thread, in the team;   every thread gets the results;   store
 *
 * A team is some lanes of a warp, a block, or a cluster of blocks, whose totals meet in distributed shared memory.
 * Vector i of thread r is number i * team + r of the row.
 */
#include "quotients.h"
#include "resident_gen.h"

#include <math.h>

struct rows {
    struct resident team;
    int lanes;                /* 0: the block, or the cluster */
    bool regular;             /* all segments are so long */
    kb_val rank;              /* i32, in the team */
    kb_val own;               /* i32: where the thread's first vector would begin */
    kb_val last;              /* i32: where the last vector of a row begins */
    kb_val room;              /* … after the thread's first one; negative: that is none */
    kb_val at;                /* i32: where the first one begins; the last one of the row where there is none */
    kb_val near;              /* … as an index, i64; ir NULL: a row has several dimensions, or is a cluster's */
    kb_arr aggregates, shown; /* of a block; of a cluster two `shown`, for the row and the one before */
    kb_var turn;              /* i32: which of them */
};

static const struct rows *rows_of(const struct resident *team) { return (const struct rows *)team; }
static int team_size(const struct rows *r) { return r->lanes ? r->lanes : r->team.blocks * kb_threads(r->team.g->k); }
static int behind_first(const struct rows *r, int i) { return i * team_size(r) * r->team.vector; }

/* Vector i.  Of vectors after the end of a row: the last one, so that all loads are under way together, as they depend on no
 * condition; of segments between offsets, which may be far shorter than the team: zeros, but for the first one, where
 * addresses are made that the other vectors share. */
static void vector_load(const struct rows *r, struct kept *w, int i)
{
    struct gen *g = r->team.g;
    kb *k = g->k;
    const int vector = r->team.vector;
    const bool aligned = g->c->aligned && vector > 1;
    struct direct *d = &w->d[i * vector];
    if (!r->regular && i > 0)
        direct_load_if(g, w->inside[i], w->seg.first, r->at, behind_first(r, i), vector, aligned, d);
    else
        direct_load(g, w->seg.first, kb_min(k, kb_add(k, r->own, behind_first(r, i)), r->last), 0, vector, aligned, d);
}

static void row_load(const struct rows *r, struct kept *w)
{
    kb *k = r->team.g->k;
    for (int i = 0; i < r->team.items; i++) {
        w->inside[i] = kb_and(k, w->exists, kb_ge(k, r->room, behind_first(r, i)));
        vector_load(r, w, i);
    }
}

/* The points of vector i. */
static void row_points(const struct resident *team, struct kept *w, int i, struct point *pt, struct point **at)
{
    const struct rows *r = rows_of(team);
    for (int j = 0; j < r->team.vector; j++) {
        segment_point(r->team.g, &pt[j], &w->seg, w->seg.first, r->at, behind_first(r, i) + j);
        pt[j].direct = &w->d[i * r->team.vector + j];
        pt[j].segment = w->seg.number;
        if (r->near.ir)
            point_is_near(&pt[j], r->team.g->p->rank - 1, r->near, behind_first(r, i) + j);
        point_is_of_vector(&pt[j], j, r->team.vector);
        at[j] = &pt[j];
    }
}

/* See resident_gen.h.  Before a warp writes its aggregate, all have read those of the row before, as the block has met since. */
static void meet(const struct resident *team, int n, const struct field *at, int segments, kb_val *x)
{
    (void)segments; /* one */
    const struct rows *r = rows_of(team);
    struct gen *g = team->g;
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP, lanes = power_of_two_above(warps);
    for (int i = 0; i < n; i++)
        x[i] = resident_field_of_lanes(g, at[i], x[i], r->lanes ? r->lanes : KB_WARP);
    if (r->lanes || warps == 1)
        return;
    LET(lane, kb_lane(k));
    kb_if(k, kb_eq(k, lane, 0)) {
        for (int i = 0; i < n; i++)
            kb_store(k, r->aggregates.e[state_first(g->p, at[i].red) + at[i].f], kb_warp(k), x[i]);
    }
    kb_barrier(k);
    LET(of, kb_and(k, lane, lanes - 1)); /* as often as there is room: all lanes get the total */
    for (int i = 0; i < n; i++) {
        x[i] = kb_load(k, r->aggregates.e[state_first(g->p, at[i].red) + at[i].f], kb_min(k, of, warps - 1));
        if (warps < lanes)
            x[i] = kb_select(k, kb_lt(k, of, warps), x[i], state_field_pad(g, at[i].red, at[i].f));
        x[i] = resident_field_of_lanes(g, at[i], x[i], lanes);
    }
}

/* ---- whole states ------------------------------------------------------------------------------------------------ */

/* The total of the block of which `valid` threads have one, in all its threads. */
static kb_tup total_of_block(const struct rows *r, kb_tup x, kb_val valid)
{
    struct gen *g = r->team.g;
    kb *k = g->k;
    x = block_reduce(g, x, g->padded ? valid_all() : valid_first(valid), r->aggregates);
    kb_if(k, kb_thread0(k)) {
        kb_store(k, r->shown, 0, x);
    }
    kb_barrier(k);
    return kb_load(k, r->shown, 0);
}

/* The total of the cluster of which `valid` threads have elements, in all its threads, from those of blocks, which their
 * first threads have: every block shows its own, and every warp reads all of them, one per lane.  A block writes where it
 * wrote two rows ago: all have read that, as they have met since. */
static kb_tup total_of_cluster(const struct rows *r, kb_tup x, kb_val valid)
{
    struct gen *g = r->team.g;
    kb *k = g->k;
    const int threads = kb_threads(k);
    LET(turn, kb_get(k, r->turn));
    kb_arr shown = r->shown;
    for (int f = 0; f < shown.n; f++)
        shown.e[f] = kb_advance(k, shown.e[f], turn);
    kb_if(k, kb_thread0(k)) {
        kb_store(k, shown, 0, x);
    }
    kb_set(k, r->turn, kb_xor(k, turn, 1));
    kb_cluster_arrive(k);
    kb_cluster_wait(k);
    const kb_val rank = kb_min(k, kb_lane(k), r->team.blocks - 1); /* lanes after the last block repeat it */
    for (int f = 0; f < shown.n; f++)
        shown.e[f] = kb_cluster_map(k, shown.e[f], rank);
    const kb_val blocks = kb_div(k, kb_add(k, valid, threads - 1), threads);
    x = warp_reduce(g, kb_load(k, shown, 0), r->team.blocks, g->padded ? valid_all() : valid_first(blocks));
    return kb_shfl_idx(k, x, 0);
}

/* The row's total, in all threads of the team. */
static kb_tup row_total(const struct rows *r, struct kept *w)
{
    struct gen *g = r->team.g;
    kb *k = g->k;
    const bool fields = resident_by_fields(&r->team);
    kb_tup x;
    if (fields)
        resident_fields(&r->team, w, 1, &x);
    else
        x = resident_combine(&r->team, w);
    if (fields && r->team.blocks == 1)
        return x;
    const kb_val vectors = kb_add(k, kb_div(k, r->last, r->team.vector), 1), valid = kb_min(k, vectors, team_size(r));
    if (r->lanes) {
        const kb_val before = kb_sub(k, kb_lane(k), r->rank);
        const struct valid_items f = g->padded ? valid_all() : valid_first(kb_add(k, before, valid));
        return kb_shfl_idx(k, warp_reduce(g, x, r->lanes, f), before);
    }
    if (r->team.blocks == 1)
        return total_of_block(r, x, valid);
    if (!fields) {
        const kb_val own = kb_sub(k, valid, kb_mul(k, kb_cluster_rank(k), kb_threads(k)));
        const kb_val some = kb_max(k, kb_min(k, own, kb_threads(k)), 1);
        x = block_reduce(g, x, g->padded ? valid_all() : valid_first(some), r->aggregates);
    }
    return total_of_cluster(r, x, valid);
}

/* The points of vector i, for values. */
static void value_points(const struct rows *r, struct kept *w, int i, const kb_tup *results,
                         const struct emit_sum *ahead, struct point *pt, struct point **at)
{
    row_points(&r->team, w, i, pt, at);
    for (int j = 0; j < r->team.vector; j++)
        pt[j].state = results, pt[j].env.sum = ahead;
}

static void vectors_map(const struct rows *r, struct kept *w, const kb_tup *results, const struct emit_sum *ahead,
                        const struct quotients *q)
{
    struct point pt[GEN_VECTOR_MAX], *at[GEN_VECTOR_MAX];
    const bool aligned = r->team.g->c->aligned && r->team.vector > 1;
    for (int i = 0; i < r->team.items; i++) {
        kb_if(r->team.g->k, w->inside[i]) {
            value_points(r, w, i, results, ahead, pt, at);
            quotients_take(q, pt, r->team.vector);
            outputs_store_at(AT_POINT, at, r->team.vector, aligned);
            outputs_store_at(AT_RESULT, at, r->team.vector, aligned);
        }
    }
}

/* May all elements of the thread take quotients? */
static kb_val fit(const struct rows *r, struct kept *w, const kb_tup *results, const struct emit_sum *ahead,
                  const struct quotients *q)
{
    kb *k = r->team.g->k;
    struct point pt[GEN_VECTOR_MAX], *at[GEN_VECTOR_MAX];
    kb_val least = kb_immf(k, TY_F32, INFINITY), most = kb_immf(k, TY_F32, 0);
    if (!q->of || q->falls)
        return q->fits;
    for (int i = 0; i < r->team.items; i++) {
        value_points(r, w, i, results, ahead, pt, at);
        quotients_range(q, pt, r->team.vector, &least, &most);
    }
    return quotients_fit(k, q, least, most);
}

static void row_map(const struct rows *r, struct kept *w, const kb_tup *results)
{
    struct point pt[GEN_VECTOR_MAX], *at[GEN_VECTOR_MAX];
    struct quotients q;
    row_points(&r->team, w, 0, pt, at);
    results_ahead(pt, results);
    const struct emit_sum *ahead = pt->env.sum;
    quotients_begin(&q, pt, r->team.items * r->team.vector);
    kb_if(r->team.g->k, fit(r, w, results, ahead, &q)) {
        vectors_map(r, w, results, ahead, &q);
    }
    kb_else
    {
        q.of = NULL;
        vectors_map(r, w, results, ahead, &q);
    }
}

/* The row whose segment is known. */
static void take_segment(const struct rows *r, struct kept *w)
{
    struct gen *g = r->team.g;
    kb *k = g->k;
    segment_enter(g, &w->seg);
    row_load(r, w);
    const kb_tup results = state_results(g, row_total(r, w), kb_false(k));
    if (problem_writes(g->p, AT_TOTAL)) {
        kb_if(k, kb_and(k, w->exists, kb_eq(k, r->rank, 0))) {
            state_store(g, &results);
        }
    }
    row_map(r, w, &results);
}

static void take_row(const struct rows *r, kb_val number, kb_val exists)
{
    struct direct d[SEG_ITEMS_MAX];
    struct kept w = { .exists = exists, .d = d };
    segment_at(r->team.g, &w.seg, number);
    take_segment(r, &w);
}

/* Thread `rank` of the team has vectors of a row so long. */
static void share(struct rows *r, kb_val length)
{
    kb *k = r->team.g->k;
    r->team.length = length;
    r->last = kb_sub(k, kb_cast(k, length, TY_I32), r->team.vector);
    r->own = kb_mul(k, r->rank, r->team.vector);
    r->room = kb_sub(k, r->last, r->own);
    r->at = kb_min(k, r->own, r->last);
}

static void team_begin(struct rows *r, struct gen *g, int items, int vector, int blocks)
{
    r->team = (struct resident){
        .g = g, .items = items, .vector = vector, .blocks = blocks, .points = row_points, .meet = meet
    };
}

void resident_by_warp(struct gen *g, const struct segment *seg, int items)
{
    struct rows r = { .lanes = KB_WARP };
    team_begin(&r, g, items, 1, 1);
    struct direct d[SEG_ITEMS_MAX];
    struct kept w = { .seg = *seg, .exists = kb_true(g->k), .d = d };
    r.rank = kb_lane(g->k);
    share(&r, kb_sub(g->k, seg->last, seg->first));
    take_segment(&r, &w);
}

static void lanes_take_rows(const struct rows *r)
{
    kb *k = r->team.g->k;
    const kb_val segments = gen_value(r->team.g, VAL_SEGMENTS);
    const int64_t teams = kb_threads(k) / r->lanes;
    const kb_val own = kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), teams),
                              kb_cast(k, kb_div(k, kb_tid(k), r->lanes), TY_I64));
    /* All lanes of a warp go on as long as its first team does. */
    const kb_val before = kb_cast(k, kb_div(k, kb_sub(k, kb_lane(k), r->rank), r->lanes), TY_I64);
    LET(first, kb_assume_uniform(kb_sub(k, own, before), KB_UNI_WARP));
    kb_for(k, number, first, segments, kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), teams)) {
        LET(mine, kb_add(k, number, before));
        take_row(r, kb_min(k, mine, kb_sub(k, segments, 1)), kb_lt(k, mine, segments));
    }
}

void emit_segreduce_resident(struct gen *g)
{
    kb *k = g->k;
    if (!segments_trailing(g->p)) {
        emit_resident_columns(g);
        return;
    }
    struct rows r = { .lanes = gen_tunable(g, TN_LANES) };
    const int blocks = gen_tunable(g, TN_CLUSTER) > 1 ? gen_tunable(g, TN_CLUSTER) : 1;
    team_begin(&r, g, gen_tunable(g, TN_ITEMS), gen_tunable(g, TN_VECTOR), blocks);
    gen_wait_for_predecessor(g);
    r.rank = r.lanes ? kb_and(k, kb_lane(k), r.lanes - 1) : kb_tid(k);
    if (blocks > 1)
        r.rank = kb_add(k, r.rank, kb_mul(k, kb_cluster_rank(k), kb_threads(k)));
    r.regular = true;
    share(&r, gen_value(g, VAL_LENGTH));
    if (blocks == 1 && (g->p->rank == 1 || !g->p->space[g->p->rank - 2].reduced))
        r.near = kb_cast(k, r.at, TY_I64);
    if (r.lanes) {
        lanes_take_rows(&r);
        return;
    }
    r.aggregates = state_shared(g, KB_WARP, "warp_totals");
    r.shown = state_shared(g, blocks > 1 ? 2 : 1, "row_total");
    if (blocks > 1)
        r.turn = kb_var_new(k, kb_imm(k, TY_I32, 0), "turn");
    const kb_val team = kb_cast(k, kb_div(k, kb_block(k), blocks), TY_I64);
    const kb_val teams = kb_cast(k, kb_div(k, kb_blocks(k), blocks), TY_I64);
    kb_for(k, number, team, gen_value(g, VAL_SEGMENTS), teams) {
        take_row(&r, number, kb_true(k));
    }
    if (blocks > 1) { /* no block leaves while others read what it shows */
        kb_cluster_arrive(k);
        kb_cluster_wait(k);
    }
}
