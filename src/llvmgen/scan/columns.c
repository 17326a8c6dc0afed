/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c - scan.pipeline down a few columns: the tiles of one sequence of rows, all columns side by side.
 *
 *     tile      whole rows of V * q columns, q a power of two that a warp holds; a thread has V neighbouring columns of
 *               some consecutive rows, so threads whose numbers differ by q go on in the same columns
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
 * whatever q.  Backwards, rows are counted from the end; columns stay where they are.
 */
#include "columns.h"

enum { V_MAX = SCAN_COLUMNS_VECTOR, EACH = 2, WORDS_MAX = 2 * KB_TUP_MAX };

/* What all threads know of the shape. */
struct shape {
    int v, rows;    /* columns and rows of a thread */
    int states;     /* at least as many as columns */
    kb_val q, log;  /* i32: threads next to one another in a row, and its logarithm */
    kb_val column;  /* i32: number of the thread's first column, by V */
    kb_val columns; /* i32 */
};

static struct shape shape_of(struct gen *g)
{
    kb *k = g->k;
    struct shape s = { .v = gen_tunable(g, TN_VECTOR), .rows = gen_tunable(g, TN_ITEMS) };
    s.states = scan_columns_most(gen_tunable(g, TN_LOOKBACK_WARPS), s.v);
    s.q = gen_value(g, VAL_ACROSS);
    s.log = kb_name(kb_cast(k, kb_ctz(k, s.q), TY_I32), "log");
    s.column = kb_name(kb_and(k, kb_lane(k), kb_sub(k, s.q, 1)), "column");
    s.columns = kb_mul(k, s.q, s.v);
    return s;
}

/* Place of a state of the thread's columns, in number `of` of groups of states. */
static kb_val place_of(struct gen *g, const struct shape *s, kb_val of, int v)
{
    kb *k = g->k;
    return kb_add(k, kb_add(k, kb_mul(k, of, s->states), kb_mul(k, s->column, s->v)), v);
}

/* ---- lanes q apart ----------------------------------------------------------------------------------------------- */

/* Inclusive over the lanes of a warp that have the same columns; all arrive. */
static void lanes_scan(struct gen *g, const struct shape *s, kb_tup *x)
{
    kb *k = g->k;
    kb_tvar sum[V_MAX];
    for (int v = 0; v < s->v; v++)
        sum[v] = kb_var_new(k, x[v], "sum");
    kb_var apart = kb_var_new(k, s->q, "apart");
    apart.uni = KB_UNI_WARP;
    kb_loop(k) {
        LET(d, kb_get(k, apart));
        kb_break_if(k, kb_ge(k, d, KB_WARP));
        for (int v = 0; v < s->v; v++) {
            const kb_tup own = kb_get(k, sum[v]), left = kb_shfl(k, KB_SHFL_UP, own, d, KB_WARP);
            kb_if(k, kb_ge(k, kb_lane(k), d)) {
                kb_set(k, sum[v], state_combine(g, left, own));
            }
        }
        kb_set(k, apart, kb_add(k, d, d));
    }
    for (int v = 0; v < s->v; v++)
        x[v] = kb_get(k, sum[v]);
}

/* ---- a thread's part of a tile ----------------------------------------------------------------------------------- */

struct part {
    const struct scan_ring *r;
    const struct scan_ring_tile *t;
    const struct shape *s;
    kb_val row;                           /* i32: the first one, in the order of the scan */
    kb_val valid;                         /* i32: rows of the tile */
    kb_val at[SCAN_ITEMS_MAX];            /* i32: first element of row i, those outside stand for the last one */
    struct direct direct[SCAN_ITEMS_MAX]; /* V of row 0, V of row 1, … */
    kb_tup x[SCAN_ITEMS_MAX], state[SCAN_ITEMS_MAX];
};

static void part_point(void *of, struct point *pt, int i)
{
    const struct part *p = of;
    point_init(pt, p->r->g, p->t->start, p->at[i / p->s->v], i % p->s->v);
    pt->direct = &p->direct[i];
    pt->state = &p->state[i];
}

static void part_load(const struct scan_ring *r, const struct shape *s, const struct scan_ring_tile *t, kb_val thread,
                      struct part *p)
{
    struct gen *g = r->g;
    kb *k = g->k;
    *p = (struct part){ .r = r, .t = t, .s = s };
    p->row = kb_name(kb_mul(k, kb_shr(k, thread, s->log), s->rows), "row");
    p->valid = kb_name(kb_shr(k, kb_div(k, t->valid, s->v), s->log), "rows");
    for (int i = 0; i < s->rows; i++) {
        const kb_val last = kb_sub(k, p->valid, 1), row = kb_min(k, kb_add(k, p->row, i), last);
        const kb_val in_memory = g->p->reverse ? kb_sub(k, last, row) : row;
        p->at[i] = kb_mul(k, kb_add(k, kb_shl(k, in_memory, s->log), s->column), s->v);
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
    const struct shape *s = p->s;
    for (int v = 0; v < s->v; v++) {
        total[v] = p->x[v];
        for (int i = 1; i < s->rows; i++)
            total[v] = state_combine(p->r->g, total[v], p->x[i * s->v + v]);
    }
}

/* ---- the upsweep ------------------------------------------------------------------------------------------------- */

/* The words of a state lie side by side; states have numbers (i64). */
static struct place words_at(struct gen *g, kb_val number)
{
    const kb_val at = kb_mul(g->k, number, fields_words(g->field, g->nfields, NULL));
    return place_at(g, at, kb_imm(g->k, TY_I64, 1));
}

void columns_combine(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val warp)
{
    struct gen *g = r->g;
    kb *k = g->k;
    struct part *p = &(struct part){ 0 };
    const struct shape s = shape_of(g);
    kb_tup total[V_MAX];
    part_load(r, &s, t, kb_add(k, kb_mul(k, warp, KB_WARP), kb_lane(k)), p);
    part_totals(p, total);
    lanes_scan(g, &s, total);
    kb_if(k, kb_ge(k, kb_lane(k), kb_sub(k, kb_imm(k, TY_I32, KB_WARP), s.q))) {
        for (int v = 0; v < s.v; v++) {
            const kb_val at = place_of(g, &s, kb_add(k, kb_mul(k, t->stage, r->warps), warp), v);
            kb_store(k, r->aggregates.x, at, total[v]);
        }
    }
}

/* The totals of warp w's part in the lane's columns. */
static kb_tup stored(const struct scan_ring *r, const struct shape *s, kb_val stage, int w, int v)
{
    kb *k = r->g->k;
    return kb_load(k, r->aggregates.x, place_of(r->g, s, kb_add(k, kb_mul(k, stage, r->warps), w), v));
}

void columns_publish(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val parity)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const struct shape s = shape_of(g);
    kb_mbar_wait(k, r->combined, t->stage, parity);
    const kb_val first = kb_mul(k, kb_cast(k, t->ticket.tile, TY_I64), kb_cast(k, s.columns, TY_I64));
    kb_if(k, kb_lt(k, kb_lane(k), s.q)) {
        for (int v = 0; v < s.v; v++) {
            kb_tup total = stored(r, &s, t->stage, 0, v);
            for (int w = 1; w < r->warps; w++)
                total = state_combine(g, total, stored(r, &s, t->stage, w, v));
            const kb_val column = kb_add(k, kb_mul(k, s.column, s.v), v);
            const kb_val number = kb_add(k, first, kb_cast(k, column, TY_I64));
            if (r->looks)
                kb_store(k, r->total, place_of(g, &s, t->stage, v), total);
            state_publish(g, t->ticket, words_at(g, number), total, r->looks ? kb_eq(k, t->index, 0) : kb_false(k));
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
static void load_window(struct gen *g, const struct shape *s, kb_val first, kb_val own, kb_val count,
                        kb_val (*word)[V_MAX][WORDS_MAX])
{
    kb *k = g->k;
    for (int i = 0; i < EACH; i++) {
        const kb_val tile = kb_add(k, first, kb_min(k, kb_add(k, own, i), kb_sub(k, count, 1)));
        const kb_val begin = kb_mul(k, kb_cast(k, tile, TY_I64), kb_cast(k, s->columns, TY_I64));
        for (int v = 0; v < s->v; v++) {
            const kb_val column = kb_add(k, kb_mul(k, s->column, s->v), v);
            state_load(g, words_at(g, kb_add(k, begin, kb_cast(k, column, TY_I64))), word[i][v]);
        }
    }
}

/* The totals of the first `count` tiles (at least one) of the window that begins at tile `first`, EACH consecutive ones
 * per lane, in the lane's columns.  All lanes. */
static void window_totals(struct gen *g, const struct shape *s, struct ticket t, kb_val first, kb_val count,
                          struct run *total)
{
    kb *k = g->k;
    kb_tvar seen[EACH][V_MAX];
    kb_tup x[V_MAX];
    for (int i = 0; i < EACH; i++)
        for (int v = 0; v < s->v; v++)
            seen[i][v] = kb_var_new(k, state_zero(g), "seen");
    LET(own, kb_mul(k, kb_shr(k, kb_lane(k), s->log), EACH));
    kb_loop(k) {
        kb_val word[EACH][V_MAX][WORDS_MAX], all = kb_true(k);
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
    const kb_val lane = kb_add(k, kb_shl(k, last, s->log), s->column);
    for (int v = 0; v < s->v; v++)
        total[v] = run_of(g, kb_shfl_idx(k, x[v], lane), kb_false(k));
}

void columns_prefix(struct columns_ahead *a, const struct scan_ring *r, const struct scan_ring_tile *t)
{
    struct gen *g = a->g;
    kb *k = g->k;
    const struct shape s = shape_of(g);
    LET(window, kb_shr(k, kb_imm(k, TY_I32, KB_WARP * EACH), s.log));
    LET(begin, kb_and(k, t->ticket.tile, kb_neg(k, window)));
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

/* ---- look-back --------------------------------------------------------------------------------------------------- */

enum { TILES = 8, LOADS = 16 };

/* Tiles that a warp looks at, all of them in flight: fewer where their words would take too many registers. */
static int tiles_at_once(const struct gen *g)
{
    const int words = state_words(g->p, NULL), fit = words < LOADS ? LOADS / words : 1;
    return fit < TILES ? fit : TILES;
}

/* A lane has a column; the last one stands for those that do not exist. */
static kb_val lane_column(struct gen *g, const struct shape *s)
{
    return kb_min(g->k, kb_lane(g->k), kb_sub(g->k, s->columns, 1));
}

static kb_val number_of(struct gen *g, const struct shape *s, kb_val tile, kb_val column)
{
    kb *k = g->k;
    const kb_val first = kb_mul(k, kb_cast(k, tile, TY_I64), kb_cast(k, s->columns, TY_I64));
    return kb_add(k, first, kb_cast(k, column, TY_I64));
}

/* What the lane sees of its column in the tiles `back` (at least 1), back + 1, … before this one, up to the nearest
 * prefix; *ends: there is one.  Waits for these tiles.  All lanes. */
static kb_tup glance(struct gen *g, const struct scan_ring_tile *t, const struct shape *s, kb_val back, kb_var ends)
{
    kb *k = g->k;
    const int n = tiles_at_once(g);
    const kb_val column = lane_column(g, s);
    kb_tvar seen = kb_var_new(k, state_zero(g), "seen");
    kb_loop(k) {
        kb_val word[TILES][WORDS_MAX], missing = kb_false(k), end = missing;
        kb_tup x = { 0 };
        for (int i = 0; i < n; i++) { /* the first tile stands for those before it: it has a prefix */
            const kb_val tile = kb_max(k, kb_sub(k, t->ticket.tile, kb_add(k, back, i)), 0);
            state_load(g, words_at(g, number_of(g, s, tile, column)), word[i]);
        }
        for (int i = 0; i < n; i++) {
            const struct published of = state_of_words(g, t->ticket, word[i]);
            const kb_val prefix = kb_eq(g->k, of.kind, TILE_PREFIX);
            missing = kb_or(k, missing, kb_not(k, kb_or(k, end, of.there)));
            x = i ? kb_select(k, end, x, state_combine(g, of.x, x)) : of.x;
            end = kb_or(k, end, prefix);
        }
        kb_set(k, seen, x);
        kb_set(k, ends, end);
        kb_break_if(k, kb_not(k, kb_any(k, missing)));
        kb_backoff(k, BACKOFF_NANOSECONDS);
    }
    return kb_get(k, seen);
}

void columns_look(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val own)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const struct shape s = shape_of(g);
    LET(of, kb_add(k, kb_mul(k, t->stage, r->looks), own));
    kb_var ends = kb_var_new(k, kb_false(k), "ends");
    const kb_tup seen = glance(g, t, &s, kb_add(k, kb_mul(k, own, tiles_at_once(g)), 1), ends);
    const kb_val end = kb_ballot(k, kb_get(k, ends));
    kb_store(k, r->seen, kb_add(k, kb_mul(k, of, KB_WARP), kb_lane(k)), seen);
    kb_if(k, kb_lane0(k)) {
        kb_store(k, r->ends, of, end);
    }
}

/* All that comes before the tile in the lane's column: what the warps have seen, and further back one of them looks
 * alone. */
static kb_tup before_tile(const struct scan_ring *r, const struct scan_ring_tile *t, const struct shape *s)
{
    struct gen *g = r->g;
    kb *k = g->k;
    kb_var done = kb_var_new(k, kb_false(k), "done"), ends = kb_var_new(k, kb_get(k, done), "ends");
    kb_tvar before = kb_var_new(k, state_zero(g), "before");
    for (int w = 0; w < r->looks; w++) {
        const kb_val of = kb_add(k, kb_mul(k, t->stage, r->looks), w);
        const kb_tup seen = kb_load(k, r->seen, kb_add(k, kb_mul(k, of, KB_WARP), kb_lane(k)));
        const kb_tup x = w ? state_combine(g, seen, kb_get(k, before)) : seen;
        const kb_val end = kb_shr(k, kb_load(k, r->ends, of), kb_cast(k, kb_lane(k), TY_U32));
        kb_set(k, before, kb_select(k, kb_get(k, done), kb_get(k, before), x));
        kb_set(k, done, kb_or(k, kb_get(k, done), kb_ne(k, kb_and(k, end, 1), 0)));
    }
    kb_var back = kb_var_new(k, kb_imm(k, TY_I32, r->looks * tiles_at_once(g) + 1), "back");
    back.uni = KB_UNI_WARP;
    kb_loop(k) {
        kb_break_if(k, kb_all(k, kb_get(k, done)));
        const kb_tup x = state_combine(g, glance(g, t, s, kb_get(k, back), ends), kb_get(k, before));
        kb_set(k, before, kb_select(k, kb_get(k, done), kb_get(k, before), x));
        kb_set(k, done, kb_or(k, kb_get(k, done), kb_get(k, ends)));
        kb_set(k, back, kb_add(k, kb_get(k, back), tiles_at_once(g)));
    }
    return kb_get(k, before);
}

void columns_before(const struct scan_ring *r, const struct scan_ring_tile *t)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const struct shape s = shape_of(g);
    const kb_tup before = before_tile(r, t, &s);
    kb_if(k, kb_lt(k, kb_lane(k), s.columns)) {
        const kb_val at = kb_add(k, kb_mul(k, t->stage, s.states), kb_lane(k));
        kb_if(k, kb_gt(k, t->index, 0)) {
            const kb_tup upto = state_combine(g, before, kb_load(k, r->total, at));
            const kb_val number = number_of(g, &s, t->ticket.tile, kb_lane(k));
            state_publish(g, t->ticket, words_at(g, number), upto, kb_true(k));
        }
        kb_store(k, r->prefix, at, before);
    }
}

/* ---- the downsweep ----------------------------------------------------------------------------------------------- */

/* What comes before the thread in its columns; waits for the tile's prefix. */
static void before_part(const struct part *p, kb_val parity, struct run *before)
{
    const struct scan_ring *r = p->r;
    const struct scan_ring_tile *t = p->t;
    const struct shape *s = p->s;
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
    kb_if(k, kb_gt(k, kb_sub(k, p->valid, p->row), row)) {
        kb_store_n(k, to, p->at[row], v, v * ty_bytes(to.ty), x);
    }
}

void columns_scan(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val parity)
{
    struct gen *g = r->g;
    kb *k = g->k;
    struct part *p = &(struct part){ 0 };
    const struct shape s = shape_of(g);
    struct run before[V_MAX];
    part_load(r, &s, t, kb_tid(k), p);
    before_part(p, parity, before);
    kb_if(k, kb_assume_uniform(kb_lt(k, t->valid, r->tile), KB_UNI_BLOCK)) { /* as the ticket is */
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
    const struct places places = { g, p, s.rows * s.v, s.v, part_point, NULL, part_way, part_store };
    places_store(&places);
    kb_proxy_fence(k);
    kb_mbar_arrive(k, r->scanned, t->stage);
}
