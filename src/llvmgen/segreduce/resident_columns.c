/* SPDX-License-Identifier: Apache-2.0 */
/* resident_columns.c - reduce a column, then map it: a column is read once and stays in the registers of a team.
 *
 *     load all places of mine;   combine them in the thread, in the team;   every thread gets its column's results;   store
 *
 * A team is a block, or a cluster of blocks, and has 32 neighbouring columns, one of each lane.  Warp w of the team has
 * places w, w + warps, … of all of them, so a warp reads a run of 32 elements, wherever this begins.
 */
#include "seg_gen.h"

struct columns {
    struct gen *g;
    int warps, items, cluster; /* of a block; places of a thread; blocks of the team */
    kb_val warp;               /* i64: of this thread, in the team */
    kb_val step;               /* i64: elements between two places of a thread */
    kb_arr aggregates;         /* per column, of each warp, and one unused so that lanes meet in no bank */
    kb_arr shown, totals; /* per column: of the block, for this group of columns and the one before; of the cluster */
    kb_var turn;          /* i32: which of `shown`; 0 or 1 */
};

struct column {
    struct segment seg;
    kb_val places; /* i32: of the column from this warp's first one on; 0 where there is no column */
    struct direct d[SEG_ITEMS_MAX];
};

static int place_after(const struct columns *c, int i) { return i * c->warps * c->cluster; }
static kb_val place_of(const struct columns *c, int i) { return kb_add(c->g->k, c->warp, place_after(c, i)); }

static kb_val has_place(const struct columns *c, kb_val places, int i)
{
    return kb_gt(c->g->k, places, place_after(c, i));
}

/* Place i, which is that element, or zeros. */
static void place_load(const struct columns *c, struct column *w, int i, kb_val element)
{
    struct gen *g = c->g;
    kb *k = g->k;
    const int fields = access_direct_fields(g->p);
    kb_var x[DIRECT_FIELDS_MAX];
    for (int f = 0; f < fields; f++)
        x[f] = kb_var_new(k, kb_imm(k, direct_type(g, f), 0), "x");
    kb_if(k, has_place(c, w->places, i)) {
        direct_load(g, element, kb_imm(k, TY_I32, 0), 0, 1, false, &w->d[i]);
        for (int f = 0; f < fields; f++)
            kb_set(k, x[f], w->d[i].v[f]);
    }
    for (int f = 0; f < fields; f++)
        w->d[i].v[f] = kb_get(k, x[f]);
}

static void column_load(const struct columns *c, struct column *w)
{
    kb *k = c->g->k;
    kb_val element = kb_add(k, w->seg.element, kb_mul(k, c->warp, space_stride(c->g)));
    for (int i = 0; i < c->items; i++) {
        place_load(c, w, i, element);
        element = kb_add(k, element, c->step);
    }
}

static struct point *place_point(const struct columns *c, struct column *w, int i, struct point *pt)
{
    segment_point(c->g, pt, &w->seg, place_of(c, i), kb_imm(c->g->k, TY_I32, 0), 0);
    pt->direct = &w->d[i];
    pt->segment = w->seg.number;
    return pt;
}

/* What the thread's places come to. */
static kb_tup places_combine(const struct columns *c, struct column *w)
{
    struct gen *g = c->g;
    kb *k = g->k;
    const bool guarded = resident_maps_read(g->p);
    kb_tup all[SEG_ITEMS_MAX];
    struct point pt;
    for (int i = 0; i < c->items; i++) {
        if (!guarded) {
            all[i] = kb_select(k, has_place(c, w->places, i), point_map(place_point(c, w, i, &pt)), state_pad_value(g));
            continue;
        }
        kb_tvar x = kb_var_new(k, state_pad_value(g), "x");
        kb_if(k, has_place(c, w->places, i)) {
            kb_set(k, x, point_map(place_point(c, w, i, &pt)));
        }
        all[i] = kb_get(k, x);
    }
    return state_combine_many(g, all, c->items);
}

static kb_arr advanced(kb *k, kb_arr p, kb_val by)
{
    for (int f = 0; f < p.n; f++)
        p.e[f] = kb_advance(k, p.e[f], by);
    return p;
}

/* From the totals of blocks at `own`, which every block shows, those of the cluster: threads take a column's from `cluster`
 * blocks.  A block writes where it wrote two groups ago: all have read that, as they have met since. */
static kb_tup total_of_cluster(const struct columns *c, kb_arr own)
{
    struct gen *g = c->g;
    kb *k = g->k;
    kb_cluster_arrive(k);
    kb_cluster_wait(k);
    LET(rank, kb_and(k, kb_tid(k), c->cluster - 1));
    LET(column, kb_min(k, kb_div(k, kb_tid(k), c->cluster), KB_WARP - 1)); /* threads after the last column repeat it */
    for (int f = 0; f < own.n; f++)
        own.e[f] = kb_cluster_map(k, own.e[f], rank);
    const kb_tup x = warp_reduce(g, kb_load(k, own, column), c->cluster, valid_all());
    kb_if(k, kb_and(k, kb_eq(k, rank, 0), kb_lt(k, kb_tid(k), KB_WARP * c->cluster))) {
        kb_store(k, c->totals, column, x);
    }
    kb_barrier(k);
    return kb_load(k, c->totals, kb_lane(k));
}

/* The total of this thread's column, of which x is what the thread has.  As many lanes as a block has warps combine what
 * these have of a column. */
static kb_tup column_total(const struct columns *c, kb_tup x)
{
    struct gen *g = c->g;
    kb *k = g->k;
    const int pitch = c->warps + 1;
    LET(turn, kb_mul(k, kb_get(k, c->turn), KB_WARP));
    const kb_arr shown = c->cluster > 1 ? advanced(k, c->shown, turn) : c->shown;
    kb_store(k, c->aggregates, kb_add(k, kb_mul(k, kb_lane(k), pitch), kb_warp(k)), x);
    kb_set(k, c->turn, kb_xor(k, kb_get(k, c->turn), 1));
    kb_barrier(k);
    LET(column, kb_div(k, kb_tid(k), c->warps));
    LET(from, kb_and(k, kb_tid(k), c->warps - 1));
    x = warp_reduce(g, kb_load(k, c->aggregates, kb_add(k, kb_mul(k, column, pitch), from)), c->warps, valid_all());
    kb_if(k, kb_eq(k, from, 0)) {
        kb_store(k, shown, column, x);
    }
    if (c->cluster > 1)
        return total_of_cluster(c, shown);
    kb_barrier(k);
    return kb_load(k, shown, kb_lane(k));
}

/* From the last place to the first: going up, elements would have the numbers that loads had, and ptxas would keep them. */
static void column_map(const struct columns *c, struct column *w, const kb_tup *results)
{
    kb *k = c->g->k;
    struct point pt, *at = &pt;
    kb_val element = kb_add(k, w->seg.element, kb_mul(k, place_of(c, c->items - 1), space_stride(c->g)));
    for (int i = c->items - 1; i >= 0; i--) {
        kb_if(k, has_place(c, w->places, i)) {
            place_point(c, w, i, &pt)->state = results;
            pt.base = element;
            outputs_store_at(AT_POINT, &at, 1, false);
            outputs_store_at(AT_RESULT, &at, 1, false);
        }
        element = kb_sub(k, element, c->step);
    }
}

/* 32 columns.  The whole team arrives. */
static void take_group(const struct columns *c, kb_val group)
{
    struct gen *g = c->g;
    kb *k = g->k;
    const kb_val segments = gen_value(g, VAL_SEGMENTS);
    LET(number, kb_add(k, kb_mul(k, group, KB_WARP), kb_cast(k, kb_lane(k), TY_I64)));
    const kb_val exists = kb_lt(k, number, segments), places = kb_sub(k, gen_value(g, VAL_LENGTH), c->warp);
    struct column w = { .places = kb_select(k, exists, kb_cast(k, places, TY_I32), kb_imm(k, TY_I32, 0)) };
    segment_at(g, &w.seg, kb_min(k, number, kb_sub(k, segments, 1)));
    segment_enter(g, &w.seg);
    column_load(c, &w);
    const kb_tup results = state_results(g, column_total(c, places_combine(c, &w)), kb_false(k));
    if (problem_writes(g->p, AT_TOTAL)) {
        kb_if(k, kb_and(k, exists, kb_eq(k, c->warp, 0))) {
            state_store(g, &results);
        }
    }
    column_map(c, &w, &results);
}

void emit_resident_columns(struct gen *g)
{
    kb *k = g->k;
    const int cluster = gen_tunable(g, TN_CLUSTER) > 1 ? gen_tunable(g, TN_CLUSTER) : 1;
    struct columns c = {
        .g = g, .warps = kb_threads(k) / KB_WARP, .items = gen_tunable(g, TN_ITEMS), .cluster = cluster
    };
    gen_wait_for_predecessor(g);
    c.warp = kb_cast(k, kb_warp(k), TY_I64);
    if (cluster > 1)
        c.warp = kb_add(k, c.warp, kb_mul(k, kb_cast(k, kb_cluster_rank(k), TY_I64), c.warps));
    c.step = kb_mul(k, space_stride(g), place_after(&c, 1));
    c.aggregates = state_shared(g, KB_WARP * (c.warps + 1), "warps_totals");
    c.shown = state_shared(g, KB_WARP * (cluster > 1 ? 2 : 1), "block_totals");
    if (cluster > 1)
        c.totals = state_shared(g, KB_WARP, "column_totals");
    c.turn = kb_var_new(k, kb_imm(k, TY_I32, 0), "turn");
    LET(groups, kb_div(k, kb_add(k, gen_value(g, VAL_SEGMENTS), KB_WARP - 1), KB_WARP));
    const kb_val team = kb_cast(k, kb_div(k, kb_block(k), cluster), TY_I64);
    kb_for(k, group, team, groups, kb_cast(k, kb_div(k, kb_blocks(k), cluster), TY_I64)) {
        take_group(&c, group);
    }
    if (cluster > 1) { /* no block leaves while others read what it shows */
        kb_cluster_arrive(k);
        kb_cluster_wait(k);
    }
}
