/* SPDX-License-Identifier: Apache-2.0 */
/* few_columns.c - scan.pipeline down a few columns: the tiles of one sequence of rows, all columns side by side.
 *
 *     tile      whole rows of V * q columns, q at most a warp; a thread has V neighbouring columns of some consecutive
 *               rows, so lanes q apart go on in the same columns; where q is no power of two, the last lanes of a warp
 *               have nothing
 *     upsweep, downsweep, look-ahead as for one column, but that lanes meet q apart, and every total is that of all
 *               columns: V of each of q lanes
 *     look-back where the combination may depend on timing: several warps, a column per lane, each at some tiles before
 *               this one, in place of the look-ahead
 *
 * The look-ahead reads the totals of all tiles, and of many columns that takes longer than the tiles themselves; so
 * with look-back tiles publish prefixes too.  It waits for totals alone and never for a prefix, as the look-ahead does.
 * One warp would be too slow: the number of tiles that are read in the time of one look bounds how fast tiles can follow
 * one another.
 *
 * A thread has an odd number of rows, which makes accesses to the plain layout of bulk copies free of bank conflicts
 * where q is a power of two.  Backwards, rows are counted from the end; columns stay where they are.
 */
#include "few_columns.h"

enum { V_MAX = SCAN_COLUMNS_VECTOR, EACH = 2 };

kb_val columns_lanes(struct gen *g)
{
    return gen_has_value(g, VAL_ACROSS) ? gen_value(g, VAL_ACROSS) : kb_imm(g->k, TY_I32, 1);
}

kb_val columns_groups(struct gen *g)
{
    return gen_has_value(g, VAL_PER_WARP) ? gen_value(g, VAL_PER_WARP) : kb_imm(g->k, TY_I32, KB_WARP);
}

struct columns_shape columns_shape_of(struct gen *g)
{
    kb *k = g->k;
    struct columns_shape s = { .v = gen_tunable(g, TN_VECTOR), .rows = gen_tunable(g, TN_ITEMS) };
    s.states = scan_columns_most(gen_tunable(g, TN_LOOKBACK_WARPS), s.v);
    s.q = columns_lanes(g);
    s.columns = kb_mul(k, s.q, s.v);
    s.groups = columns_groups(g);
    s.group = kb_name(kb_div(k, kb_lane(k), s.q), "group");
    s.column = kb_name(kb_sub(k, kb_lane(k), kb_mul(k, s.group, s.q)), "column");
    return s;
}

/* Place of a state of the thread's columns, in number `of` of groups of states. */
static kb_val place_of(struct gen *g, const struct columns_shape *s, kb_val of, int v)
{
    kb *k = g->k;
    return kb_add(k, kb_add(k, kb_mul(k, of, s->states), kb_mul(k, s->column, s->v)), v);
}

/* ---- lanes q apart ----------------------------------------------------------------------------------------------- */

/* Takes what the lane d before has. */
static void lanes_step(struct gen *g, const struct columns_shape *s, kb_tvar *sum, kb_val d)
{
    kb *k = g->k;
    for (int v = 0; v < s->v; v++) {
        const kb_tup own = kb_get(k, sum[v]), left = kb_shfl(k, KB_SHFL_UP, own, d, KB_WARP);
        kb_if(k, kb_ge(k, kb_lane(k), d)) {
            kb_set(k, sum[v], state_combine(g, left, own));
        }
    }
}

/* Inclusive over the lanes of a warp that have the same columns; all arrive. */
static void lanes_scan(struct gen *g, const struct columns_shape *s, kb_tup *x)
{
    kb *k = g->k;
    kb_tvar sum[V_MAX];
    for (int v = 0; v < s->v; v++)
        sum[v] = kb_var_new(k, x[v], "sum");
    if (gen_has_value(g, VAL_ACROSS)) {
        kb_var apart = kb_var_new(k, s->q, "apart");
        apart.uni = KB_UNI_WARP;
        kb_loop(k) {
            LET(d, kb_get(k, apart));
            kb_break_if(k, kb_ge(k, d, KB_WARP));
            lanes_step(g, s, sum, d);
            kb_set(k, apart, kb_add(k, d, d));
        }
    } else {
        for (int d = 1; d < KB_WARP; d *= 2)
            lanes_step(g, s, sum, kb_imm(k, TY_I32, d));
    }
    for (int v = 0; v < s->v; v++)
        x[v] = kb_get(k, sum[v]);
}

/* ---- a thread's part of a tile ----------------------------------------------------------------------------------- */

struct part {
    const struct scan_ring *r;
    const struct scan_ring_tile *t;
    const struct columns_shape *s;
    kb_val row;                           /* i32: the first one, in the order of the scan */
    kb_val valid;                         /* i32: rows of the tile */
    kb_val at[SCAN_ITEMS_MAX];            /* i32: first element of row i, those outside stand for the last one */
    kb_val first;                         /* i64: the tile's first row in memory */
    kb_val number[SCAN_ITEMS_MAX];        /* i32: of row i in memory, from that one on */
    struct direct direct[SCAN_ITEMS_MAX]; /* V of row 0, V of row 1, … */
    kb_tup x[SCAN_ITEMS_MAX], state[SCAN_ITEMS_MAX];
};

/* The indices of a point, from its row and its column: dividing the number of the element would take more than all else.
 * What nothing asks for leaves no code. */
static void part_indices(const struct part *p, struct point *pt, int i)
{
    struct gen *g = p->r->g;
    kb *k = g->k;
    const int v = p->s->v;
    const kb_val row = kb_add(k, p->first, kb_cast(k, p->number[i / v], TY_I64));
    const kb_val column = kb_add(k, kb_cast(k, kb_mul(k, p->s->column, v), TY_I64), i % v);
    space_split(g, row, 0, g->p->rank, true, pt->index);
    space_split(g, column, 0, g->p->rank, false, pt->index);
}

static void part_point(void *of, struct point *pt, int i)
{
    const struct part *p = of;
    point_init(pt, p->r->g, p->t->start, p->at[i / p->s->v], i % p->s->v);
    part_indices(p, pt, i);
    pt->direct = &p->direct[i];
    pt->state = &p->state[i];
}

/* The first row of the lane in warp `warp`; the last lanes stay in the warp's part. */
static kb_val row_of(struct gen *g, const struct columns_shape *s, kb_val warp)
{
    kb *k = g->k;
    const kb_val group = kb_min(k, s->group, kb_sub(k, s->groups, 1));
    return kb_name(kb_mul(k, kb_add(k, kb_mul(k, warp, s->groups), group), s->rows), "row");
}

/* The lane's columns of s->rows rows from number `row` on. */
static void part_load(const struct scan_ring *r, const struct columns_shape *s, const struct scan_ring_tile *t,
                      kb_val row, struct part *p)
{
    struct gen *g = r->g;
    kb *k = g->k;
    *p = (struct part){ .r = r, .t = t, .s = s, .row = row };
    p->valid = kb_name(kb_div(k, t->valid, s->columns), "rows");
    p->first = kb_div(k, t->start, kb_cast(k, s->columns, TY_I64)); /* once per tile */
    for (int i = 0; i < s->rows; i++) {
        const kb_val last = kb_sub(k, p->valid, 1), at = kb_min(k, kb_add(k, p->row, i), last);
        p->number[i] = g->p->reverse ? kb_sub(k, last, at) : at;
        p->at[i] = kb_mul(k, kb_add(k, kb_mul(k, p->number[i], s->q), s->column), s->v);
    }
    for (int in = 0, slot = 0; in < g->p->ninputs; in++) {
        if (r->layout.input[in] < 0)
            continue;
        const kb_ptr from = scan_ring_array(r, t, r->layout.input[in], g->p->input[in].array.field[0].type);
        for (int i = 0; i < s->rows; i++) {
            kb_val x[V_MAX];
            kb_load_n(k, from, p->at[i], s->v, s->v * ty_bytes(from.ty), x);
            for (int v = 0; v < s->v; v++)
                p->direct[i * s->v + v].v[slot] = x[v];
        }
        slot++;
    }
    const kb_val begins = kb_and(k, kb_eq(k, t->index, 0), kb_eq(k, p->row, 0));
    for (int i = 0; i < s->rows * s->v; i++) {
        struct point pt;
        part_point(p, &pt, i);
        p->x[i] = point_map(&pt);
        if (i < s->v)
            p->x[i] = state_with_init(g, begins, p->x[i]);
    }
}

static void part_totals(const struct part *p, kb_tup *total)
{
    const struct columns_shape *s = p->s;
    for (int v = 0; v < s->v; v++) {
        total[v] = p->x[v];
        for (int i = 1; i < s->rows; i++)
            total[v] = state_combine(p->r->g, total[v], p->x[i * s->v + v]);
    }
}

/* ---- the upsweep ------------------------------------------------------------------------------------------------- */

struct place columns_words_at(struct gen *g, kb_val number)
{
    const kb_val at = kb_mul(g->k, number, fields_words(g->field, g->nfields, NULL));
    return place_at(g, at, kb_imm(g->k, TY_I64, 1));
}

/* In place of the last warp's part, which no warp asks for: the totals of the tile that leads, its few rows one by one. */
static void combine_lead(const struct scan_ring *r, const struct scan_ring_tile *t, const struct columns_shape *s,
                         kb_val warp, kb_tup *total)
{
    struct gen *g = r->g;
    kb *k = g->k;
    struct columns_shape one = *s;
    kb_tvar x[V_MAX];
    one.rows = 1;
    for (int v = 0; v < s->v; v++)
        x[v] = kb_var_new(k, total[v], "part");
    kb_if(k, kb_and(k, kb_eq(k, t->index, 0), kb_eq(k, warp, r->warps - 1))) {
        kb_for(k, row, kb_imm(k, TY_I32, 0), kb_div(k, t->valid, s->columns), 1) {
            struct part *p = &(struct part){ 0 };
            part_load(r, &one, t, row, p);
            for (int v = 0; v < s->v; v++) {
                const struct run upto = { kb_gt(k, row, 0), kb_false(k), kb_get(k, x[v]) };
                kb_set(k, x[v], run_join(g, upto, run_of(g, p->x[v], kb_false(k))).x);
            }
        }
    }
    for (int v = 0; v < s->v; v++)
        total[v] = kb_get(k, x[v]);
}

void columns_combine(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val warp)
{
    struct gen *g = r->g;
    kb *k = g->k;
    struct part *p = &(struct part){ 0 };
    const struct columns_shape s = columns_shape_of(g);
    kb_tup total[V_MAX];
    part_load(r, &s, t, row_of(g, &s, warp), p);
    part_totals(p, total);
    lanes_scan(g, &s, total);
    if (scan_leads(g->p))
        combine_lead(r, t, &s, warp, total);
    kb_if(k, kb_eq(k, s.group, kb_sub(k, s.groups, 1))) {
        for (int v = 0; v < s.v; v++) {
            const kb_val at = place_of(g, &s, kb_add(k, kb_mul(k, t->stage, r->warps), warp), v);
            kb_store(k, r->aggregates.x, at, total[v]);
        }
    }
}

/* The totals of warp w's part in the lane's columns. */
static kb_tup stored(const struct scan_ring *r, const struct columns_shape *s, kb_val stage, int w, int v)
{
    kb *k = r->g->k;
    return kb_load(k, r->aggregates.x, place_of(r->g, s, kb_add(k, kb_mul(k, stage, r->warps), w), v));
}

void columns_publish(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val parity)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const struct columns_shape s = columns_shape_of(g);
    kb_mbar_wait(k, r->combined, t->stage, parity);
    const kb_val first = kb_mul(k, kb_cast(k, t->ticket.tile, TY_I64), kb_cast(k, s.columns, TY_I64));
    kb_if(k, kb_lt(k, kb_lane(k), s.q)) {
        for (int v = 0; v < s.v; v++) {
            kb_tup total = stored(r, &s, t->stage, 0, v), last = total;
            for (int w = 1; w < r->warps; w++) {
                last = stored(r, &s, t->stage, w, v);
                total = state_combine(g, total, last);
            }
            if (scan_leads(g->p)) /* see combine_lead() */
                total = kb_select(k, kb_eq(k, t->index, 0), last, total);
            const kb_val column = kb_add(k, kb_mul(k, s.column, s.v), v);
            const kb_val number = kb_add(k, first, kb_cast(k, column, TY_I64));
            if (r->looks)
                kb_store(k, r->total, place_of(g, &s, t->stage, v), total);
            state_publish(g, t->ticket, columns_words_at(g, number), total,
                          r->looks ? kb_eq(k, t->index, 0) : kb_false(k));
        }
    }
    /* Look-back waits for the totals, and `scanned` waits for look-back. */
    kb_mbar_arrive(k, r->looks ? r->published : r->scanned, t->stage);
}

/* ---- the look-ahead ---------------------------------------------------------------------------------------------- */

void columns_ahead_new(struct gen *g, struct columns_ahead *a)
{
    kb *k = g->k;
    *a = (struct columns_ahead){ .g = g, .from = kb_var_new(k, kb_imm(k, TY_I32, 0), "from") };
    a->from.uni = KB_UNI_WARP;
    for (int v = 0; v < gen_tunable(g, TN_VECTOR); v++)
        a->whole[v] = run_var_new(g, run_none(g));
}

/* The words of the lane's tiles of a window, from tile `own` of it on; the last of `count` in place of those after it. */
static void load_window(struct gen *g, const struct columns_shape *s, kb_val first, kb_val own, kb_val count,
                        kb_val (*word)[V_MAX][COLUMNS_WORDS_MAX])
{
    kb *k = g->k;
    for (int i = 0; i < EACH; i++) {
        const kb_val tile = kb_add(k, first, kb_min(k, kb_add(k, own, i), kb_sub(k, count, 1)));
        const kb_val begin = kb_mul(k, kb_cast(k, tile, TY_I64), kb_cast(k, s->columns, TY_I64));
        for (int v = 0; v < s->v; v++) {
            const kb_val column = kb_add(k, kb_mul(k, s->column, s->v), v);
            state_load(g, columns_words_at(g, kb_add(k, begin, kb_cast(k, column, TY_I64))), word[i][v]);
        }
    }
}

/* The totals of the first `count` tiles (at least one) of the window that begins at tile `first`, EACH consecutive ones
 * per lane, in the lane's columns.  All lanes. */
static void window_totals(struct gen *g, const struct columns_shape *s, struct ticket t, kb_val first, kb_val count,
                          struct run *total)
{
    kb *k = g->k;
    kb_tvar seen[EACH][V_MAX];
    kb_tup x[V_MAX];
    for (int i = 0; i < EACH; i++)
        for (int v = 0; v < s->v; v++)
            seen[i][v] = kb_var_new(k, state_zero(g), "seen");
    LET(own, kb_mul(k, s->group, EACH));
    kb_loop(k) {
        kb_val word[EACH][V_MAX][COLUMNS_WORDS_MAX], all = kb_true(k);
        load_window(g, s, first, own, count, word);
        for (int i = 0; i < EACH; i++)
            for (int v = 0; v < s->v; v++) {
                const struct published of = state_of_words(g, t, word[i][v]);
                all = kb_and(k, all, of.there);
                kb_set(k, seen[i][v], of.x);
            }
        kb_break_if(k, all);
        kb_backoff(k, 0);
    }
    for (int v = 0; v < s->v; v++) {
        for (int i = 1; i < EACH; i++)
            kb_if(k, kb_lt(k, kb_add(k, own, i), count)) {
                kb_set(k, seen[0][v], state_combine(g, kb_get(k, seen[0][v]), kb_get(k, seen[i][v])));
            }
        x[v] = kb_get(k, seen[0][v]);
    }
    lanes_scan(g, s, x);
    const kb_val last = kb_div(k, kb_sub(k, count, 1), EACH); /* among the lanes of the same columns */
    const kb_val lane = kb_add(k, kb_mul(k, last, s->q), s->column);
    for (int v = 0; v < s->v; v++)
        total[v] = run_of(g, kb_shfl_idx(k, x[v], lane), kb_false(k));
}

void columns_prefix(struct columns_ahead *a, const struct scan_ring *r, const struct scan_ring_tile *t)
{
    struct gen *g = a->g;
    kb *k = g->k;
    const struct columns_shape s = columns_shape_of(g);
    LET(window, kb_mul(k, s.groups, EACH));
    LET(begin, kb_mul(k, kb_div(k, t->ticket.tile, window), window));
    LET(rest, kb_sub(k, t->ticket.tile, begin));
    struct run total[V_MAX];
    kb_for(k, first, kb_get(k, a->from), begin, window) {
        window_totals(g, &s, t->ticket, first, window, total);
        for (int v = 0; v < s.v; v++)
            run_set(g, a->whole[v], run_join(g, run_get(g, a->whole[v]), total[v]));
    }
    kb_set(k, a->from, begin);
    struct run_var prefix[V_MAX];
    for (int v = 0; v < s.v; v++)
        prefix[v] = run_var_new(g, run_get(g, a->whole[v]));
    kb_if(k, kb_gt(k, rest, 0)) {
        window_totals(g, &s, t->ticket, begin, rest, total);
        for (int v = 0; v < s.v; v++)
            run_set(g, prefix[v], run_join(g, run_get(g, a->whole[v]), total[v]));
    }
    kb_if(k, kb_lt(k, kb_lane(k), s.q)) {
        for (int v = 0; v < s.v; v++)
            kb_store(k, r->prefix, place_of(g, &s, t->stage, v), run_get(g, prefix[v]).x);
    }
}

/* ---- the downsweep ----------------------------------------------------------------------------------------------- */

/* What comes before the thread in its columns; waits for the tile's prefix. */
static void before_part(const struct part *p, kb_val parity, struct run *before)
{
    const struct scan_ring *r = p->r;
    const struct scan_ring_tile *t = p->t;
    const struct columns_shape *s = p->s;
    struct gen *g = r->g;
    kb *k = g->k;
    const kb_val never = kb_false(k);
    kb_tup total[V_MAX];
    struct run in_tile[V_MAX];
    part_totals(p, total);
    lanes_scan(g, s, total);
    kb_mbar_wait(k, r->combined, t->stage, parity);
    for (int v = 0; v < s->v; v++) {
        const struct run lanes = { .some = kb_ge(k, kb_lane(k), s->q),
                                   .cut = never,
                                   .x = kb_shfl(k, KB_SHFL_UP, total[v], s->q, KB_WARP) };
        struct run warps = run_none(g);
        for (int w = 0; w < r->warps - 1; w++) {
            struct run part = run_of(g, stored(r, s, t->stage, w, v), never);
            part.some = kb_gt(k, kb_warp(k), w);
            warps = run_join(g, warps, part);
        }
        in_tile[v] = run_join(g, warps, lanes);
    }
    kb_mbar_wait(k, r->prefixed, t->stage, parity);
    for (int v = 0; v < s->v; v++) {
        const struct run tiles = { kb_gt(k, t->index, 0), never, kb_load(k, r->prefix, place_of(g, s, t->stage, v)) };
        before[v] = run_join(g, tiles, in_tile[v]);
    }
}

static enum store_way part_way(void *of, int output)
{
    (void)of;
    (void)output;
    return STORE_TOGETHER;
}

static void part_store(void *of, int output, int first, kb_val *x)
{
    const struct part *p = of;
    kb *k = p->r->g->k;
    const int v = p->s->v, row = first / v;
    const kb_ptr to = scan_ring_array(p->r, p->t, p->r->layout.output[output], x[0].ty);
    const kb_val has_columns = kb_lt(k, p->s->group, p->s->groups);
    kb_if(k, kb_and(k, has_columns, kb_gt(k, kb_sub(k, p->valid, p->row), row))) {
        kb_store_n(k, to, p->at[row], v, v * ty_bytes(to.ty), x);
    }
}

void columns_scan(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val parity)
{
    struct gen *g = r->g;
    kb *k = g->k;
    struct part *p = &(struct part){ 0 };
    const struct columns_shape s = columns_shape_of(g);
    struct run before[V_MAX];
    part_load(r, &s, t, row_of(g, &s, kb_warp(k)), p);
    kb_warp_sync(k); /* the last lanes have read what others overwrite */
    before_part(p, parity, before);
    const kb_val rows = kb_mul(k, s.groups, r->warps * s.rows);
    kb_if(k, kb_assume_uniform(kb_lt(k, p->valid, rows), KB_UNI_BLOCK)) { /* as the ticket is */
        kb_barrier(k); /* threads without rows have read the last one, which is overwritten now */
    }
    for (int i = 0; i < s.rows; i++)
        for (int v = 0; v < s.v; v++) {
            const struct run upto = run_join(g, before[v], run_of(g, p->x[i * s.v + v], kb_false(k)));
            p->state[i * s.v + v] = upto.x;
            if (g->p->exclusive)
                p->state[i * s.v + v] = kb_select(k, before[v].some, before[v].x, state_start(g));
            before[v] = upto;
        }
    const struct places places = { g, p, s.rows * s.v, s.v, part_point, NULL, part_way, part_store, NULL };
    places_store(&places);
    kb_proxy_fence(k);
    kb_mbar_arrive(k, r->scanned, t->stage);
}
