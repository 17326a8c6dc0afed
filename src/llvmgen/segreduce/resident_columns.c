/* SPDX-License-Identifier: Apache-2.0 */
/* resident_columns.c - reduce a column, then map it: a column is read once and stays in the registers of a team.
 *
 *     load all places of mine;   combine them in the thread, in the team;   every thread gets its columns' results;   store
 *
 * A team is some warps of a block, a block, or a cluster of blocks, and has 32 neighbouring columns.  A thread has a vector
 * of them, so 32 / vector lanes read a run of 32 elements.  These lanes are a *group*; group i of the team has places
 * i, i + groups, … of all its columns.
 */
#include "resident_gen.h"

#include <string.h>

struct columns {
    struct resident team;
    int across, lanes; /* columns of a thread, lanes of a group */
    int warps, teams;  /* of a team in a block; teams of a block */
    kb_val group;      /* i32: of this thread, in the team */
    kb_val column;     /* i32: the thread's first one, of those of the block */
    kb_val step;       /* i64: elements between two places of a thread */
    kb_arr aggregates; /* per column, of each warp, and one unused so that lanes meet in no bank */
    kb_arr totals;     /* per column: of the block */
    kb_arr shown;      /* … for the other blocks of the cluster, of these columns and the ones before */
    kb_arr cluster;    /* … of the cluster */
    kb_var turn;       /* i32: which of `shown`; 0 or 1 */
};

static const struct columns *columns_of(const struct resident *team) { return (const struct columns *)team; }

static int place_after(const struct columns *c, int i) { return i * c->warps * c->across * c->team.blocks; }
static kb_val place_of(const struct columns *c, int i)
{
    kb *k = c->team.g->k;
    return kb_cast(k, kb_cast(k, kb_add(k, c->group, place_after(c, i)), TY_U32), TY_I64);
}

static kb_val element_of(const struct columns *c, const struct kept *w, int i)
{
    kb *k = c->team.g->k;
    return kb_add(k, w->seg.element, kb_mul(k, place_of(c, i), space_stride(c->team.g)));
}

static void columns_load(const struct columns *c, struct kept *w)
{
    kb *k = c->team.g->k;
    kb_val element = element_of(c, w, 0);
    for (int i = 0; i < c->team.items; i++) {
        struct direct d[GEN_VECTOR_MAX];
        direct_load_if(c->team.g, w->inside[i], element, kb_imm(k, TY_I32, 0), 0, c->across, c->across > 1, d);
        for (int s = 0; s < c->across; s++)
            w[s].d[i] = d[s];
        element = kb_add(k, element, c->step);
    }
}

static void place_point(const struct resident *team, struct kept *w, int i, struct point *pt, struct point **at)
{
    segment_point(team->g, pt, &w->seg, place_of(columns_of(team), i), kb_imm(team->g->k, TY_I32, 0), 0);
    pt->direct = &w->d[i];
    pt->segment = w->seg.number;
    *at = pt;
}

/* ---- where threads meet ------------------------------------------------------------------------------------------ */

/* Some fields of a state, or all of them (NULL). */
struct joined {
    const struct field *at;
    int n;
};

static int number_of(const struct columns *c, const struct joined *j, int i)
{
    return j->at ? state_first(c->team.g->p, j->at[i].red) + j->at[i].f : i;
}

static kb_tup join(const struct columns *c, const struct joined *j, kb_tup a, kb_tup b)
{
    if (!j->at)
        return state_combine(c->team.g, a, b);
    for (int i = 0; i < j->n; i++)
        a.e[i] = state_field_join(c->team.g, j->at[i].red, j->at[i].f, a.e[i], b.e[i]);
    return a;
}

static kb_arr arrays_of(const struct columns *c, const struct joined *j, kb_arr all)
{
    kb_arr some = { .n = j->n };
    for (int i = 0; i < j->n; i++)
        some.e[i] = all.e[number_of(c, j, i)];
    return some;
}

static kb_tup join_lanes(const struct columns *c, const struct joined *j, kb_tup x, int from, int to)
{
    for (int d = from; d < to; d *= 2)
        x = join(c, j, x, kb_shfl_xor(c->team.g->k, x, d));
    return x;
}

/* Group 0 of a warp stores its columns at `from`, one after the other. */
static void show(const struct columns *c, kb_arr to, kb_val from, int pitch, const kb_tup *x)
{
    kb *k = c->team.g->k;
    kb_if(k, kb_lt(k, kb_lane(k), c->lanes)) {
        for (int s = 0; s < c->across; s++)
            kb_store(k, to, kb_add(k, from, s * pitch), x[s]);
    }
}

/* x[s] := the total of column s over all threads of the block that share it.  As many lanes as a team has warps take a column.
 * Between the two barriers all read, and nobody writes what others read. */
static void meet_in_block(const struct columns *c, const struct joined *j, kb_tup *x)
{
    kb *k = c->team.g->k;
    const int pitch = c->warps + 1;
    for (int s = 0; s < c->across; s++)
        x[s] = join_lanes(c, j, x[s], c->lanes, KB_WARP);
    if (c->warps == 1)
        return;
    const kb_arr aggregates = arrays_of(c, j, c->aggregates), totals = arrays_of(c, j, c->totals);
    LET(from, kb_and(k, kb_tid(k), c->warps - 1));
    LET(column, kb_div(k, kb_tid(k), c->warps));
    show(c, aggregates, kb_add(k, kb_mul(k, c->column, pitch), kb_and(k, kb_warp(k), c->warps - 1)), pitch, x);
    kb_barrier(k);
    const kb_tup own = kb_load(k, aggregates, kb_add(k, kb_mul(k, column, pitch), from));
    const kb_tup total = join_lanes(c, j, own, 1, c->warps);
    kb_if(k, kb_eq(k, from, 0)) {
        kb_store(k, totals, column, total);
    }
    kb_barrier(k);
    for (int s = 0; s < c->across; s++)
        x[s] = kb_load(k, totals, kb_add(k, c->column, s));
}

static void meet(const struct resident *team, int n, const struct field *at, int segments, kb_val *x)
{
    const struct joined j = { at, n };
    kb_tup all[GEN_VECTOR_MAX];
    for (int s = 0; s < segments; s++)
        all[s].n = n;
    for (int i = 0; i < n * segments; i++)
        all[i % segments].e[i / segments] = x[i];
    meet_in_block(columns_of(team), &j, all);
    for (int i = 0; i < n * segments; i++)
        x[i] = all[i % segments].e[i / segments];
}

/* From the totals of blocks, which every block shows, those of the cluster: threads take a column's from all blocks.  A block
 * writes where it wrote two turns ago: all have read that, as they have met since. */
static void meet_in_cluster(const struct columns *c, kb_tup *x)
{
    struct gen *g = c->team.g;
    kb *k = g->k;
    const int blocks = c->team.blocks;
    kb_arr shown = c->shown;
    for (int f = 0; f < shown.n; f++)
        shown.e[f] = kb_advance(k, shown.e[f], kb_mul(k, kb_get(k, c->turn), KB_WARP));
    kb_if(k, kb_eq(k, kb_warp(k), 0)) {
        show(c, shown, c->column, 1, x);
    }
    kb_set(k, c->turn, kb_xor(k, kb_get(k, c->turn), 1));
    kb_cluster_arrive(k);
    kb_cluster_wait(k);
    LET(rank, kb_and(k, kb_tid(k), blocks - 1));
    LET(column, kb_min(k, kb_div(k, kb_tid(k), blocks), KB_WARP - 1)); /* threads after the last column repeat it */
    for (int f = 0; f < shown.n; f++)
        shown.e[f] = kb_cluster_map(k, shown.e[f], rank);
    const kb_tup total = warp_reduce(g, kb_load(k, shown, column), blocks, valid_all());
    kb_if(k, kb_and(k, kb_eq(k, rank, 0), kb_lt(k, kb_tid(k), KB_WARP * blocks))) {
        kb_store(k, c->cluster, column, total);
    }
    kb_barrier(k);
    for (int s = 0; s < c->across; s++)
        x[s] = kb_load(k, c->cluster, kb_add(k, c->column, s));
}

static void columns_total(const struct columns *c, struct kept *w, kb_tup *total)
{
    struct gen *g = c->team.g;
    if (resident_by_fields(&c->team)) {
        resident_fields(&c->team, w, c->across, total);
    } else {
        for (int s = 0; s < c->across; s++) {
            segment_enter(g, &w[s].seg);
            total[s] = resident_combine(&c->team, &w[s]);
        }
        meet_in_block(c, &(const struct joined){ NULL, total[0].n }, total);
    }
    if (c->team.blocks > 1)
        meet_in_cluster(c, total);
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

/* From the last place to the first: going up, elements would have the numbers that loads had, and ptxas would keep them. */
static void columns_map(const struct columns *c, struct kept *w, const kb_tup *results)
{
    struct gen *g = c->team.g;
    kb *k = g->k;
    struct point pt[GEN_VECTOR_MAX], *at[GEN_VECTOR_MAX];
    const struct emit_sum *ahead[GEN_VECTOR_MAX];
    for (int s = 0; s < c->across; s++) {
        place_point(&c->team, &w[s], 0, pt, at);
        results_ahead(pt, &results[s]);
        ahead[s] = pt->env.sum;
    }
    kb_val element = element_of(c, w, c->team.items - 1);
    for (int i = c->team.items - 1; i >= 0; i--) {
        kb_if(k, w->inside[i]) {
            for (int s = 0; s < c->across; s++) {
                place_point(&c->team, &w[s], i, &pt[s], &at[s]);
                pt[s].base = element, pt[s].plus = s;
                pt[s].state = &results[s], pt[s].env.sum = ahead[s];
            }
            outputs_store_at(AT_POINT, at, c->across, c->across > 1);
            outputs_store_at(AT_RESULT, at, c->across, c->across > 1);
        }
        element = kb_sub(k, element, c->step);
    }
}

/* The thread's columns of this round (i64) of all blocks, and which of its places they have.  Where there are none, the
 * columns are the last ones. */
static kb_val columns_at(const struct columns *c, kb_val round, struct kept *w, struct direct *d)
{
    struct gen *g = c->team.g;
    kb *k = g->k;
    const kb_val segments = gen_value(g, VAL_SEGMENTS);
    LET(number, kb_add(k, kb_mul(k, round, KB_WARP * c->teams), kb_cast(k, c->column, TY_I64)));
    LET(exists, kb_lt(k, number, segments));
    LET(there, kb_min(k, number, kb_sub(k, segments, c->across)));
    const kb_val left = kb_sub(k, kb_cast(k, c->team.length, TY_I32), c->group);
    LET(places, kb_select(k, exists, left, kb_imm(k, TY_I32, 0)));
    const bool within_row =
        g->p->rank - segments_behind(g->p) == 1; /* else a vector may go on in the next row of an array */
    kb_val index[SPACE_MAX];
    for (int s = 0; s < c->across; s++) {
        w[s] = (struct kept){ .exists = exists, .d = &d[s * c->team.items] };
        if (s == 0 || !within_row) {
            segment_at(g, &w[s].seg, kb_add(k, there, s));
        } else { /* nothing is divided again */
            memcpy(index, w[0].seg.here.index, sizeof index);
            index[g->p->rank - 1] = kb_add(k, index[g->p->rank - 1], s);
            segment_named(g, &w[s].seg, kb_add(k, there, s), index);
        }
        for (int i = 0; i < c->team.items; i++)
            w[s].inside[i] = kb_gt(k, places, place_after(c, i));
    }
    return exists;
}

/* 32 columns for each team of the block.  The whole block arrives, or the cluster. */
static void take_columns(const struct columns *c, kb_val number)
{
    struct gen *g = c->team.g;
    kb *k = g->k;
    struct direct d[SEG_ITEMS_MAX];
    struct kept w[GEN_VECTOR_MAX];
    kb_tup results[GEN_VECTOR_MAX];
    const kb_val exists = columns_at(c, number, w, d);
    columns_load(c, w);
    columns_total(c, w, results);
    for (int s = 0; s < c->across; s++) {
        segment_enter(g, &w[s].seg);
        results[s] = state_results(g, results[s], kb_false(k));
        if (problem_writes(g->p, AT_TOTAL)) {
            kb_if(k, kb_and(k, exists, kb_eq(k, c->group, 0))) {
                state_store(g, &results[s]);
            }
        }
    }
    columns_map(c, w, results);
}

/* Which columns of the block, and which places of theirs, a thread has. */
static void team_begin(struct columns *c)
{
    struct gen *g = c->team.g;
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP, blocks = c->team.blocks;
    c->lanes = KB_WARP / c->across;
    c->warps = gen_tunable(g, TN_LANES) ? gen_tunable(g, TN_LANES) : warps;
    c->teams = warps / c->warps;
    c->team.length = gen_value(g, VAL_LENGTH);
    const kb_val team = kb_mul(k, kb_div(k, kb_warp(k), c->warps), KB_WARP), warp = kb_and(k, kb_warp(k), c->warps - 1);
    c->column = kb_add(k, team, kb_mul(k, kb_and(k, kb_lane(k), c->lanes - 1), c->across));
    c->group = kb_add(k, kb_mul(k, warp, c->across), kb_div(k, kb_lane(k), c->lanes));
    if (blocks > 1)
        c->group = kb_add(k, c->group, kb_mul(k, kb_cluster_rank(k), warps * c->across));
    c->step = kb_mul(k, space_stride(g), place_after(c, 1));
    if (c->warps > 1) {
        c->aggregates = state_shared(g, KB_WARP * c->teams * (c->warps + 1), "warps_totals");
        c->totals = state_shared(g, KB_WARP * c->teams, "block_totals");
    }
    if (blocks > 1) {
        c->shown = state_shared(g, KB_WARP * 2, "shown_totals");
        c->cluster = state_shared(g, KB_WARP, "column_totals");
        c->turn = kb_var_new(k, kb_imm(k, TY_I32, 0), "turn");
    }
}

void emit_resident_columns(struct gen *g)
{
    kb *k = g->k;
    const int blocks = gen_tunable(g, TN_CLUSTER) > 1 ? gen_tunable(g, TN_CLUSTER) : 1;
    struct columns c = { .team = { .g = g,
                                   .items = gen_tunable(g, TN_ITEMS),
                                   .vector = 1,
                                   .blocks = blocks,
                                   .points = place_point,
                                   .meet = meet },
                         .across = gen_tunable(g, TN_VECTOR) };
    gen_wait_for_predecessor(g);
    team_begin(&c);
    const int columns = KB_WARP * c.teams;
    LET(numbers, kb_div(k, kb_add(k, gen_value(g, VAL_SEGMENTS), columns - 1), columns));
    const kb_val first = kb_cast(k, kb_div(k, kb_block(k), blocks), TY_I64);
    kb_for(k, number, first, numbers, kb_cast(k, kb_div(k, kb_blocks(k), blocks), TY_I64)) {
        take_columns(&c, number);
    }
    if (blocks > 1) { /* no block leaves while others read what it shows */
        kb_cluster_arrive(k);
        kb_cluster_wait(k);
    }
}
