/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_tiles.c - the share of one thread in a commutative reduction.
 *
 *     elements:   | head |  vector  vector  vector  …  vector | tail |
 *     tile:       items x threads vectors; vector (u, t) of a tile belongs to thread t
 *
 *     rounds      every block takes one tile per round: load all, combine each vector as a tree, the vectors in turn
 *     rest        what is left, less than a round, is cut evenly: every block takes the same number of vectors, at most a tile
 *     ends        head and tail, fewer elements than two vectors, go one by one to the first threads of block 0
 *
 * Loads of a tile come before its first use, so a thread has items x 16 bytes in flight.  Loads of the rest are clamped into the
 * array and issued unconditionally for the same reason; what is out of place is replaced by the padding element, or, when the
 * state has none, never combined.
 */
#include "gen.h"

struct share {
    struct gen *g;
    int threads, items, vector;
    bool aligned;
    kb_val tid;
    kb_val head, vectors, count; /* arguments: i32, i64, i64 */
    kb_val offset;               /* of this thread's vector in a tile, in elements */
    kb_tvar acc;
    kb_var have;                 /* only without padding */
};

/* The balanced tree over the contributions of elements [lo, hi) of one thread. */
static kb_tup tree(struct gen *g, struct point *pt, int lo, int hi)
{
    if (hi - lo == 1)
        return point_map(&pt[lo]);
    const int mid = lo + (hi - lo) / 2;
    const kb_tup left = tree(g, pt, lo, mid);
    return state_combine(g, left, tree(g, pt, mid, hi));
}

/* One vector of points beginning at base[offset + plus], its direct inputs in d. */
static void vector_points(struct share *s, struct point *pt, const struct direct *d, kb_val base, kb_val offset, int64_t plus)
{
    for (int j = 0; j < s->vector; j++) {
        point_init(&pt[j], s->g, base, offset, plus + j);
        pt[j].direct = &d[j];
    }
}

static void take(struct share *s, kb_tup x)
{
    kb *k = s->g->k;
    if (s->g->padded)
        kb_set(k, s->acc, state_combine(s->g, kb_get(k, s->acc), x));
    else
        state_accumulate(s->g, s->acc, s->have, x);
}

/* Vectors are folded one after the other, so that few mapped values are held at once. */
static void full_tile(struct share *s, kb_val base)
{
    struct gen *g = s->g;
    const int row = s->threads * s->vector;
    struct direct d[64];
    for (int u = 0; u < s->items; u++)
        direct_load(g, base, s->offset, (int64_t)u * row, s->vector, s->aligned, &d[u * s->vector]);
    kb_tup total = { .n = 0 };
    for (int u = 0; u < s->items; u++) {
        struct point pt[GEN_VECTOR_MAX];
        vector_points(s, pt, &d[u * s->vector], base, s->offset, (int64_t)u * row);
        points_store(pt, s->vector, s->aligned);
        const kb_tup x = tree(g, pt, 0, s->vector);
        total = u == 0 ? x : state_combine(g, total, x);
    }
    take(s, total);
}

/* The contribution of a vector or element that is there only if `valid`. */
static void take_if(struct share *s, kb_val valid, struct point *pt, int n, bool aligned)
{
    struct gen *g = s->g;
    kb *k = g->k;
    if (g->padded && !access_writes_elements(g->p)) {
        take(s, kb_select(k, valid, tree(g, pt, 0, n), state_pad_value(g)));
        return;
    }
    kb_if (k, valid) {
        points_store(pt, n, aligned);
        take(s, tree(g, pt, 0, n));
    }
}

/* Less than a tile: `rest` vectors from base on, at least one. */
static void partial_tile(struct share *s, kb_val base, kb_val rest)
{
    kb *k = s->g->k;
    struct direct d[64];
    kb_val at[64];
    for (int u = 0; u < s->items; u++) {
        const kb_val place = kb_add(k, s->tid, u * s->threads);
        at[u] = kb_mul(k, kb_min(k, place, kb_sub(k, rest, 1)), s->vector);
        direct_load(s->g, base, at[u], 0, s->vector, s->aligned, &d[u * s->vector]);
    }
    for (int u = 0; u < s->items; u++) {
        struct point pt[GEN_VECTOR_MAX];
        vector_points(s, pt, &d[u * s->vector], base, at[u], 0);
        take_if(s, kb_lt(k, kb_add(k, s->tid, u * s->threads), rest), pt, s->vector, s->aligned);
    }
}

/* Element tid of the `extra` ones before the first and behind the last vector. */
static void ends(struct share *s, kb_val extra)
{
    kb *k = s->g->k;
    LET(before, kb_cast(k, kb_min(k, s->tid, kb_sub(k, extra, 1)), TY_I64));
    LET(behind, kb_add(k, kb_sub(k, s->count, kb_cast(k, extra, TY_I64)), before));
    LET(element, kb_select(k, kb_lt(k, s->tid, s->head), before, behind));
    struct direct d;
    struct point pt;
    const kb_val zero = kb_imm(k, TY_I32, 0);
    direct_load(s->g, element, zero, 0, 1, false, &d);
    point_init(&pt, s->g, element, zero, 0);
    pt.direct = &d;
    take_if(s, kb_lt(k, s->tid, extra), &pt, 1, false);
}

static void share_init(struct share *s, struct gen *g)
{
    kb *k = g->k;
    *s = (struct share){ .g = g, .threads = kb_threads(k), .items = gen_tunable(g, TN_ITEMS), .vector = gen_tunable(g, TN_VECTOR),
                         .aligned = g->c->aligned, .tid = kb_tid(k) };
    s->head = gen_value(g, "head");
    s->vectors = gen_value(g, "vectors");
    s->count = gen_value(g, "count");
    s->offset = kb_mul(k, s->tid, s->vector);
    s->acc = kb_var_new(k, g->padded ? state_pad_value(g) : state_zero(g), "acc");
    s->have = kb_var_new(k, kb_imm(k, TY_BOOL, 0), "have");
}

/* How the vectors are dealt to the blocks; the same in all of them. */
struct deal {
    kb_val rounds; /* i64: full tiles of every block */
    kb_val dealt;  /* i64: vectors in them */
    kb_val rest;   /* i64: vectors that are left, less than a tile for each block */
    kb_val share;  /* i64: of them for a block, in order of the blocks, until there are none */
};

static struct deal deal(struct gen *g, kb_val blocks)
{
    kb *k = g->k;
    const int64_t tile = (int64_t)kb_threads(k) * gen_tunable(g, TN_ITEMS);
    const kb_val vectors = gen_value(g, "vectors");
    LET(round, kb_mul(k, kb_cast(k, blocks, TY_I64), tile));
    LET(rounds, kb_div(k, vectors, round));
    LET(dealt, kb_mul(k, rounds, round));
    LET(rest, kb_sub(k, vectors, dealt));
    LET(even, kb_div(k, kb_add(k, rest, kb_cast(k, kb_sub(k, blocks, 1), TY_I64)), kb_cast(k, blocks, TY_I64)));
    /* Whole cache lines: 8 vectors of 16 bytes. */
    LET(share, kb_and(k, kb_add(k, even, 7), ~7));
    return (struct deal){ rounds, dealt, rest, share };
}

kb_val tiles_filled_blocks(struct gen *g, kb_val blocks)
{
    kb *k = g->k;
    const struct deal d = deal(g, blocks);
    LET(by_rest, kb_div(k, kb_add(k, d.rest, kb_sub(k, d.share, 1)), kb_max(k, d.share, 1)));
    LET(some, kb_cast(k, kb_max(k, by_rest, 1), TY_I32)); /* block 0 has the ends */
    return kb_select(k, kb_gt(k, d.rounds, 0), blocks, some);
}

kb_tup tiles_reduce(struct gen *g, kb_val block, kb_val blocks, struct filled *threads)
{
    kb *k = g->k;
    struct share s;
    share_init(&s, g);
    const int64_t tile = (int64_t)s.threads * s.items;
    const struct deal d = deal(g, blocks);
    LET(first, kb_cast(k, s.head, TY_I64));
    LET(block64, kb_cast(k, block, TY_I64));
    kb_section(k, "rounds");
    LET(begin, kb_mul(k, block64, tile));
    kb_for (k, at, begin, d.dealt, kb_mul(k, kb_cast(k, blocks, TY_I64), tile)) {
        full_tile(&s, kb_add(k, first, kb_mul(k, at, s.vector)));
    }
    kb_section(k, "rest");
    LET(skip, kb_mul(k, block64, d.share));
    LET(mine, kb_cast(k, kb_min(k, kb_sub(k, d.rest, skip), d.share), TY_I32));
    kb_if (k, kb_gt(k, mine, 0)) {
        partial_tile(&s, kb_add(k, first, kb_mul(k, kb_add(k, d.dealt, skip), s.vector)), mine);
    }
    kb_section(k, "ends");
    LET(body, kb_mul(k, s.vectors, s.vector));
    LET(extra, kb_cast(k, kb_sub(k, s.count, body), TY_I32));
    kb_if (k, kb_and(k, kb_eq(k, block, 0), kb_gt(k, extra, 0))) {
        ends(&s, extra);
    }
    *threads = filled_all();
    if (!g->padded) {
        const kb_val none = kb_imm(k, TY_I32, 0), all = kb_imm(k, TY_I32, s.threads);
        LET(by_ends, kb_select(k, kb_eq(k, block, 0), extra, none));
        LET(some, kb_max(k, kb_min(k, mine, all), by_ends));
        *threads = filled_first(kb_select(k, kb_gt(k, d.rounds, 0), all, some));
    }
    return kb_get(k, s.acc);
}
