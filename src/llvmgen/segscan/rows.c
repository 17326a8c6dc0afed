/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - scans of segments that lie one after the other, by teams that wait for no other team.
 *
 *     staged         a block takes as many whole rows as fit its tile: one sequence with cuts
 *     warp, block    a warp, or a block, takes a segment of any length, tile by tile with a running carry; or the blocks
 *                    of a cluster do, a part of each tile each, totals of blocks through distributed shared memory
 *
 * Where there is more than one tile, the loads of the next one are in flight while this one is scanned.  Tiles are
 * arranged in lines (scan/lines.h).  The host says how many rows a team takes and gives the reciprocal of their length,
 * so nothing divides. Futhark's SegRed has the small and the large case for reductions; here they scan.
 */
#include "llvmgen/scan/lines.h"
#include "llvmgen/scan/tile.h"

enum { BUFFERS = 2 };

/* Who takes a tile together. */
enum width { WARP, BLOCK, CLUSTER };
struct team {
    enum width width;
    int warps;     /* of the team */
    kb_val number; /* i64, of the team in the grid; as uniform as it is wide */
    kb_val own;    /* i32: this lane's first place in its first line */
    struct aggregates aggregates, blocks;
    kb_val rank; /* i32: of the block in its cluster */
    kb_ptr turn;
    struct turn leaving;
};

static int lines_of(const struct gen *g) { return gen_tunable(g, TN_ITEMS); }
static int vector_of(const struct gen *g) { return gen_tunable(g, TN_VECTOR); }
static int tile_of(const struct gen *g, const struct team *t)
{
    return t->warps * KB_WARP * lines_of(g) * vector_of(g);
}
static kb_uni uniformity(const struct team *t) { return t->width == WARP ? KB_UNI_WARP : KB_UNI_BLOCK; }

static struct team team_new(struct gen *g, enum width width, bool cuts)
{
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP, cluster = width == CLUSTER ? gen_tunable(g, TN_CLUSTER) : 1;
    const int lines = KB_WARP * lines_of(g) * vector_of(g);
    struct team t = { .width = width, .warps = width == WARP ? 1 : cluster * warps };
    t.number = kb_cast(k, kb_block(k), TY_I64);
    t.own = kb_mul(k, kb_lane(k), vector_of(g));
    t.turn = lines_turn_new(g);
    if (g->c->turns)
        lines_leaving_new(g, &t.leaving);
    if (width == WARP) {
        t.number = kb_add(k, kb_mul(k, t.number, warps), kb_cast(k, kb_warp(k), TY_I64));
        return t;
    }
    t.own = kb_add(k, t.own, kb_mul(k, kb_warp(k), lines));
    t.aggregates = aggregates_new(g, BUFFERS * KB_WARP, cuts, "warp_totals");
    if (width == CLUSTER) {
        t.number = kb_div(k, t.number, cluster);
        t.rank = kb_cluster_rank(k);
        t.own = kb_add(k, t.own, kb_mul(k, t.rank, lines * warps));
        t.blocks = aggregates_new(g, BUFFERS, cuts, "block_totals");
    }
    return t;
}

/* Teams of the grid. */
static kb_val teams(struct gen *g, const struct team *t)
{
    kb *k = g->k;
    const kb_val blocks = kb_cast(k, kb_blocks(k), TY_I64);
    if (t->width == CLUSTER)
        return kb_div(k, blocks, gen_tunable(g, TN_CLUSTER));
    return kb_mul(k, blocks, kb_threads(k) / KB_WARP / t->warps);
}

/* Places of shared aggregates from `slot` on. */
static struct aggregates aggregates_at(struct gen *g, struct aggregates aggregates, kb_val slot)
{
    for (int f = 0; f < aggregates.x.n; f++)
        aggregates.x.e[f] = kb_advance(g->k, aggregates.x.e[f], slot);
    if (aggregates.cuts)
        aggregates.cut = kb_advance(g->k, aggregates.cut, slot);
    return aggregates;
}

/* What comes before this block in the cluster's tile, and the tile's total: every block stores its total, every warp
 * reads all of them, one per lane.  All blocks arrive. */
static struct run cluster_scan(struct gen *g, const struct team *t, struct run own, kb_val slot, struct run *total)
{
    kb *k = g->k;
    const int cluster = gen_tunable(g, TN_CLUSTER);
    const kb_val zero = kb_imm(k, TY_I32, 0);
    struct aggregates mine = aggregates_at(g, t->blocks, slot);
    kb_if(k, kb_thread0(k)) {
        aggregates_store(g, &mine, zero, own);
    }
    kb_cluster_arrive(k);
    kb_cluster_wait(k);
    const kb_val rank = kb_min(k, kb_lane(k), cluster - 1); /* lanes after the last block repeat it */
    for (int f = 0; f < mine.x.n; f++)
        mine.x.e[f] = kb_cluster_map(k, mine.x.e[f], rank);
    const struct run aggregate = run_of(g, kb_load(k, mine.x, zero), kb_false(k));
    const struct run upto = warp_scan(g, aggregate, cluster, false);
    *total = run_of(g, kb_shfl_idx(k, upto.x, cluster - 1), kb_false(k));
    struct run before = *total;
    before.x = kb_shfl_idx(k, upto.x, kb_max(k, kb_sub(k, t->rank, 1), 0));
    before.some = kb_gt(k, t->rank, 0);
    return before;
}

/* What comes before this warp's lines in the tile, and the tile's total; `turn` is 0 and 1 alternately, for a team that
 * meets more than once.  The whole team arrives. */
static struct run team_scan(struct gen *g, const struct team *t, struct run own, kb_val turn, struct run *total)
{
    kb *k = g->k;
    if (t->width == WARP) {
        *total = own;
        return run_none(g);
    }
    const struct aggregates aggregates = aggregates_at(g, t->aggregates, kb_mul(k, turn, KB_WARP));
    const struct run in_block = block_scan_warps(g, own, &aggregates, total);
    if (t->width == BLOCK)
        return in_block;
    const struct run block = *total;
    return run_join(g, cluster_scan(g, t, block, turn, total), in_block);
}

/* ---- whole rows -------------------------------------------------------------------------------------------------- */

/* All rows as one sequence. */
static void open_all(struct gen *g, struct scan_segment *all)
{
    segment_open(g, all, kb_imm(g->k, TY_I64, 0));
    all->length = gen_value(g, VAL_COUNT);
    g->here = NULL; /* operators read nothing that differs between rows */
}

/* Positions [begin, end) of a segment, or of all rows, which a team takes. */
struct stretch_of {
    struct scan_segment *segment;
    kb_val begin, end; /* i64 */
};

/* The team's tile at `base`. */
static struct lines tile_at(struct gen *g, const struct team *t, const struct stretch_of *s, kb_val base)
{
    kb *k = g->k;
    struct lines l = {
        .g = g, .segment = s->segment, .n = lines_of(g), .v = vector_of(g), .base = base, .own = t->own, .turn = t->turn
    };
    const kb_val origin = kb_sub(k, s->begin, base);
    if (g->c->turns)
        l.leaving = &t->leaving;
    l.from = kb_cast(k, kb_max(k, origin, 0), TY_I32);
    l.to = kb_name(kb_cast(k, kb_min(k, kb_sub(k, s->end, base), tile_of(g, t)), TY_I32), "to");
    l.is_start = kb_ge(k, origin, 0);
    return l;
}

/* The tile of the rows [first, last), which begin in it. */
static struct lines tile_of_rows(struct gen *g, const struct team *t, const struct stretch_of *s, kb_val first,
                                 struct line_rows *rows)
{
    kb *k = g->k;
    struct lines l = tile_at(g, t, s, kb_sub(k, s->begin, lines_skew(g, s->segment, vector_of(g), s->begin)));
    *rows = (struct line_rows){ kb_cast(k, gen_value(g, VAL_LENGTH), TY_I32),
                                kb_cast(k, gen_value(g, VAL_RECIPROCAL), TY_U64), first,
                                kb_cast(k, kb_sub(k, s->begin, l.base), TY_I32), kb_imm(k, TY_I64, 0) };
    l.rows = rows;
    return l;
}

void emit_segscan_staged(struct gen *g)
{
    kb *k = g->k;
    gen_wait_for_predecessor(g);
    const struct team t = team_new(g, BLOCK, true);
    LET(first, kb_mul(k, t.number, gen_value(g, VAL_ROWS)));
    kb_if(k, kb_lt(k, first, gen_value(g, VAL_SEGMENTS))) {
        struct scan_segment all;
        struct line_rows rows;
        struct run total;
        const kb_val length = gen_value(g, VAL_LENGTH);
        const kb_val last = kb_min(k, kb_add(k, first, gen_value(g, VAL_ROWS)), gen_value(g, VAL_SEGMENTS));
        open_all(g, &all);
        const struct stretch_of s = { &all, kb_name(kb_mul(k, first, length), "begin"),
                                      kb_name(kb_mul(k, last, length), "end") };
        struct lines l = tile_of_rows(g, &t, &s, first, &rows);
        lines_load(&l);
        lines_scan(&l, team_scan(g, &t, lines_total(&l), kb_imm(k, TY_I32, 0), &total));
        lines_store(&l);
        if (scan_has_totals(g->p))
            lines_store_totals(&l);
    }
}

/* ---- tile by tile ------------------------------------------------------------------------------------------------ */

/* The total of a segment, by the lane that holds its last position. */
static void store_total(struct lines *l, const struct stretch_of *s)
{
    struct gen *g = l->g;
    kb *k = g->k;
    kb_val mine;
    const kb_tup last = lines_last(l, &mine);
    kb_if(k, kb_and(k, mine, kb_eq(k, kb_add(k, l->base, kb_cast(k, l->to, TY_I64)), s->end))) {
        segment_finish(g, s->segment, last, kb_false(k));
    }
}

/* Scan a tile whose inputs have been taken, from the carry on. */
static void tile_scan(struct lines *l, const struct team *t, const struct stretch_of *s, kb_val turn,
                      struct run_var carry)
{
    struct gen *g = l->g;
    struct run total;
    const struct run in_tile = team_scan(g, t, lines_total(l), turn, &total);
    const struct run before = run_get(g, carry);
    lines_scan(l, run_join(g, before, in_tile));
    lines_store(l);
    if (scan_has_totals(g->p))
        store_total(l, s);
    run_set(g, carry, run_join(g, before, total));
}

/* All tiles of a stretch that is not empty. */
static void stretch_tiles(struct gen *g, const struct team *t, const struct stretch_of *s, kb_var turn)
{
    kb *k = g->k;
    struct direct_vars ahead = { .declared = false };
    struct run_var carry = run_var_new(g, run_none(g));
    const int64_t size = tile_of(g, t);
    /* The same for the whole team: arguments, its number, or offsets that all of its threads have read. */
    const kb_val begin = kb_sub(k, s->begin, lines_skew(g, s->segment, vector_of(g), s->begin));
    LET(start, kb_assume_uniform(begin, uniformity(t)));
    LET(end, kb_assume_uniform(s->end, uniformity(t)));
    struct lines l = tile_at(g, t, s, start);
    lines_fetch(&l, &ahead);
    kb_for(k, base, start, end, size) {
        l = tile_at(g, t, s, base);
        lines_take(&l, &ahead);
        LET(after, kb_add(k, base, size));
        kb_if(k, kb_lt(k, after, end)) {
            struct lines next = tile_at(g, t, s, after);
            lines_fetch(&next, &ahead);
        }
        tile_scan(&l, t, s, kb_get(k, turn), carry);
        if (t->width != WARP && kb_point(k, "alternation of buffers"))
            kb_set(k, turn, kb_xor(k, kb_get(k, turn), 1));
    }
}

static void segment_each(struct gen *g, enum width width)
{
    kb *k = g->k;
    gen_wait_for_predecessor(g);
    const struct team t = team_new(g, width, false);
    /* Aggregates alternate between two places: a thread that writes one has passed the barrier after which all have
     * read it. */
    kb_var turn = kb_var_new(k, kb_imm(k, TY_I32, 0), "turn");
    kb_for(k, number, t.number, gen_value(g, VAL_SEGMENTS), teams(g, &t)) {
        struct scan_segment s;
        segment_open(g, &s, number);
        const struct stretch_of all = { .segment = &s, .begin = kb_imm(k, TY_I64, 0), .end = s.length };
        kb_if(k, kb_gt(k, kb_assume_uniform(s.length, uniformity(&t)), 0)) { /* as in stretch_tiles */
            stretch_tiles(g, &t, &all, turn);
        }
        kb_else { segment_finish_empty(g, &s, kb_eq(k, t.own, 0)); /* one lane of the team */ }
    }
}

/* No block leaves a cluster while others may read its shared memory. */
void scan_by_teams(struct gen *g)
{
    kb *k = g->k;
    const bool cluster = gen_tunable(g, TN_CLUSTER) > 1;
    segment_each(g, gen_tunable(g, TN_LANES) ? WARP : cluster ? CLUSTER : BLOCK);
    if (cluster) {
        kb_cluster_arrive(k);
        kb_cluster_wait(k);
    }
}
