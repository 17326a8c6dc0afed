/* SPDX-License-Identifier: Apache-2.0 */
/* tile.c - short segments of any size: every warp stages whole segments in shared memory.
 *
 *     for my tile of `per_tile` segments:
 *         copy it as it lies in memory, in the background while the tiles before it are reduced (sm_90: bulk copies)
 *         `lanes` lanes per segment, each `chunk` consecutive elements; a tree over them by shuffles
 *
 * Whole segments in a tile mean that positions follow from a lane's number by multiplication: nothing is divided by the
 * segment size and nothing is masked.  Lanes are the largest power of two that divides the size: chunks then have an
 * odd number of elements, so that the lanes of a warp read different banks of shared memory.  Where a tile has too few
 * segments to occupy the warp, more lanes share one.  Chunks are consecutive, so operators keep their order.  Tiles
 * belong to warps: no warp waits for another one.
 */
#include "seg_gen.h"
#include "stage.h"

enum { UNROLL = 4 };

struct tiles {
    struct gen *g;
    bool bulk;
    struct stages stages;
    kb_ptr landed;            /* mbarriers of this warp, one per stage */
    kb_val length, per_tile;  /* i32 */
    kb_val segments, count;   /* i64: of segments and of tiles */
    kb_val log, lanes, chunk; /* i32: log2 lanes per segment, lanes, elements of each */
    kb_val rank, from;        /* i32: this lane's place among those of its segment, and its first element, … */
    kb_val whole, rest;       /* … how many it takes UNROLL at a time, and how many more */
};

/* A tile in a stage. */
struct tile {
    kb_val first;    /* i64: its first segment */
    kb_val segments; /* i32 */
    kb_val stage;    /* i32 */
};

/* ---- staging ----------------------------------------------------------------------------------------------------- */

static void tiles_init(struct tiles *t, struct gen *g)
{
    kb *k = g->k;
    const int elements = gen_tunable(g, TN_ITEMS) * KB_WARP * gen_tunable(g, TN_VECTOR);
    *t = (struct tiles){ .g = g, .bulk = kb_has_bulk(k) && g->c->aligned && gen_tunable(g, TN_COPY_STAGES) > 0 };
    staged_init(&t->stages, g, t->bulk ? gen_tunable(g, TN_COPY_STAGES) : 1, elements, t->bulk);
    t->length = kb_cast(k, gen_value(g, VAL_LENGTH), TY_I32);
    t->per_tile = gen_value(g, VAL_PER_TILE);
    t->segments = gen_value(g, VAL_SEGMENTS);
    t->count = gen_value(g, VAL_TILES);
}

/* Lanes and chunks from the segment size and the number of segments in a tile. */
static void tiles_share(struct tiles *t)
{
    kb *k = t->g->k;
    const kb_val even = kb_min(k, kb_cast(k, kb_ctz(k, t->length), TY_I32), 5);
    const kb_val several = kb_cast(k, kb_clz(k, kb_sub(k, t->per_tile, 1)), TY_I32); /* 32 - log2, rounded up */
    const kb_val needed = kb_max(k, kb_sub(k, several, 32 - 5), 0);
    const kb_val split = kb_gt(k, needed, even);
    t->log = kb_max(k, even, needed);
    t->lanes = kb_shl(k, kb_imm(k, TY_I32, 1), t->log);
    t->chunk = kb_shr(k, kb_sub(k, kb_add(k, t->length, t->lanes), 1), t->log);
    t->chunk = kb_select(k, split, kb_or(k, t->chunk, 1), t->chunk);
    t->rank = kb_and(k, kb_lane(k), kb_sub(k, t->lanes, 1));
    t->from = kb_min(k, kb_mul(k, t->rank, t->chunk), t->length);
    const kb_val mine = kb_sub(k, kb_min(k, kb_add(k, t->from, t->chunk), t->length), t->from);
    t->whole = kb_and(k, mine, -UNROLL);
    t->rest = kb_and(k, mine, UNROLL - 1);
}

static struct tile tile_at(const struct tiles *t, kb_val number, kb_val stage)
{
    kb *k = t->g->k;
    struct tile x = { .first = kb_mul(k, number, kb_cast(k, t->per_tile, TY_I64)), .stage = stage };
    x.segments = kb_cast(k, kb_min(k, kb_sub(k, t->segments, x.first), kb_cast(k, t->per_tile, TY_I64)), TY_I32);
    return x;
}

static kb_val tile_element(const struct tiles *t, const struct tile *x)
{
    return kb_mul(t->g->k, x->first, gen_value(t->g, VAL_LENGTH));
}

/* Of array i, from the boundary before the tile on: bytes, and where they are. */
static kb_val tile_bytes(const struct tiles *t, int i, const struct tile *x)
{
    kb *k = t->g->k;
    const kb_val own = kb_mul(k, kb_mul(k, x->segments, t->length), staged_stride(&t->stages, i));
    return kb_add(k, own, staged_skew(&t->stages, i, tile_element(t, x)));
}

static kb_ptr tile_source(const struct tiles *t, int i, const struct tile *x)
{
    kb *k = t->g->k;
    const kb_val first = tile_element(t, x), skew = kb_cast(k, staged_skew(&t->stages, i, first), TY_I64);
    return kb_advance(k, staged_source(&t->stages, i, first), kb_sub(k, kb_imm(k, TY_I64, 0), skew));
}

/* One lane starts the copies of a tile: whole vectors, which is all but for the last tile. */
static void start_copies(const struct tiles *t, const struct tile *x)
{
    kb *k = t->g->k;
    kb_if(k, kb_lane0(k)) {
        kb_val all = kb_imm(k, TY_I32, 0);
        for (int i = 0; i < t->stages.arrays; i++)
            all = kb_add(k, all, kb_and(k, tile_bytes(t, i, x), -16));
        kb_mbar_expect(k, t->landed, x->stage, all);
        for (int i = 0; i < t->stages.arrays; i++) {
            const kb_val bytes = kb_and(k, tile_bytes(t, i, x), -16);
            kb_if(k, kb_gt(k, bytes, 0)) {
                kb_bulk_load(k, staged_memory(&t->stages, i, x->stage), tile_source(t, i, x), bytes, t->landed,
                             x->stage);
            }
        }
    }
}

/* What bulk copies have left over: less than a vector of each array, in the last tile. */
static void copy_rest(const struct tiles *t, const struct tile *x)
{
    kb *k = t->g->k;
    kb_val some = kb_false(k);
    for (int i = 0; i < t->stages.arrays; i++)
        some = kb_or(k, some, kb_ne(k, kb_and(k, tile_bytes(t, i, x), 15), 0));
    kb_if(k, some) {
        for (int i = 0; i < t->stages.arrays; i++) {
            const kb_val bytes = tile_bytes(t, i, x);
            staged_copy_words(&t->stages, staged_memory(&t->stages, i, x->stage), tile_source(t, i, x), TY_U8, 1, 1,
                              kb_and(k, bytes, -16), bytes);
        }
        kb_warp_sync(k);
    }
}

/* Without bulk copies: through registers. */
static void copy_tile(const struct tiles *t, const struct tile *x)
{
    kb *k = t->g->k;
    for (int i = 0; i < t->stages.arrays; i++)
        staged_copy(&t->stages, i, x->stage, tile_element(t, x), kb_mul(k, x->segments, t->length));
    kb_warp_sync(k);
}

/* ---- reducing ---------------------------------------------------------------------------------------------------- */

/* Where rows begin among n elements of this lane's chunk, from `at` of the stage and `position` of the segment on; and
 * the values beside them, which are staged, too. */
static kb_val load_beside(const struct tiles *t, const struct segment *seg, const struct tile *x, kb_val at,
                          kb_val position, int n, struct direct *beside)
{
    struct gen *g = t->g;
    kb *k = g->k;
    struct point first;
    if (!access_beside(g->p))
        return (kb_val){ .ir = NULL };
    segment_point(g, &first, seg, seg->first, position, 0);
    const kb_val edges = row_edges(g, &first, n);
    for (int side = 0; side < 2; side++) {
        const kb_val own = kb_imm(k, TY_I32, side ? n - 1 : 0), next = kb_imm(k, TY_I32, side ? n : -1);
        const kb_val there = kb_select(k, row_begins(k, edges, side * n), own, next);
        staged_load(&t->stages, x->stage, tile_element(t, x), kb_add(k, at, there), 1, &beside[side]);
    }
    return edges;
}

/* Elements `done`, …, done + n - 1 of this lane's chunk, which begins at element `at` of the stage. */
static void take_elements(const struct tiles *t, const struct segment *seg, const struct tile *x, kb_val at,
                          kb_val done, int n, struct partial *acc)
{
    struct gen *g = t->g;
    kb *k = g->k;
    struct direct d[UNROLL], beside[2];
    staged_load(&t->stages, x->stage, tile_element(t, x), kb_add(k, at, done), n, d);
    const kb_val edges = load_beside(t, seg, x, kb_add(k, at, done), kb_add(k, t->from, done), n, beside);
    for (int u = 0; u < n; u++) {
        struct point pt;
        segment_point(g, &pt, seg, seg->first, kb_add(k, t->from, done), u);
        pt.direct = &d[u];
        pt.beside = beside;
        point_is_of_vector(&pt, u, n);
        point_in_rows(&pt, u, n, edges);
        partial_take(g, acc, point_map(&pt));
    }
}

/* The lanes of a segment are combined in order; in its first lane. */
static void lanes_combine(const struct tiles *t, kb_tvar total)
{
    struct gen *g = t->g;
    kb *k = g->k;
    for (int d = 1; d < KB_WARP; d *= 2) {
        kb_if(k, kb_gt(k, t->lanes, d)) {
            const kb_tup mine = kb_get(k, total), other = kb_shfl_down(k, mine, d);
            if (g->padded) {
                kb_set(k, total, state_combine(g, mine, other));
            } else {
                kb_if(k, kb_lt(k, kb_mul(k, kb_add(k, t->rank, d), t->chunk), t->length)) {
                    kb_set(k, total, state_combine(g, mine, other));
                }
            }
        }
    }
}

/* As many segments as the warp has room for, from number `first` of the tile on. */
static void take_segments(const struct tiles *t, const struct tile *x, kb_val first)
{
    struct gen *g = t->g;
    kb *k = g->k;
    LET(own, kb_add(k, first, kb_shr(k, kb_lane(k), t->log)));
    LET(exists, kb_lt(k, own, x->segments));
    LET(which, kb_min(k, own, kb_sub(k, x->segments, 1)));
    struct segment seg;
    segment_at(g, &seg, kb_add(k, x->first, kb_cast(k, which, TY_I64)));
    segment_enter(g, &seg);
    LET(at, kb_add(k, kb_mul(k, which, t->length), t->from));
    struct partial acc = partial_new(g, "chunk");
    kb_for(k, done, kb_imm(k, TY_I32, 0), t->whole, UNROLL) {
        take_elements(t, &seg, x, at, done, UNROLL, &acc);
    }
    for (int u = 0; u + 1 < UNROLL; u++) {
        kb_if(k, kb_gt(k, t->rest, u)) {
            take_elements(t, &seg, x, at, kb_add(k, t->whole, u), 1, &acc);
        }
    }
    kb_if(k, kb_gt(k, t->lanes, 1)) {
        lanes_combine(t, acc.x);
    }
    kb_if(k, kb_and(k, exists, kb_eq(k, t->rank, 0))) {
        segment_store_known(g, &seg, kb_get(k, acc.x), kb_eq(k, t->length, 0));
    }
}

static void take_tile(const struct tiles *t, const struct tile *x)
{
    kb *k = t->g->k;
    const kb_val per_round = kb_shr(k, kb_imm(k, TY_I32, KB_WARP), t->log);
    kb_for(k, first, kb_imm(k, TY_I32, 0), x->segments, per_round) {
        take_segments(t, x, first);
    }
}

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

static void mbarriers_init(struct tiles *t)
{
    kb *k = t->g->k;
    const int count = kb_threads(k) / KB_WARP * t->stages.count;
    const kb_ptr bars = kb_mbarriers(k, count, "landed");
    kb_if(k, kb_thread0(k)) {
        for (int i = 0; i < count; i++)
            kb_mbar_init(k, bars, kb_imm(k, TY_I32, i), 1);
        kb_mbar_ready(k);
    }
    kb_barrier(k);
    t->landed = kb_advance(k, bars, kb_mul(k, kb_warp(k), t->stages.count));
}

/* Tiles number, number + step, … through a ring of stages that lane 0 refills once the warp has read one. */
static void bulk_tiles(struct tiles *t, kb_val number, kb_val step)
{
    kb *k = t->g->k;
    for (int s = 0; s < t->stages.count; s++) {
        const kb_val ahead = kb_add(k, number, kb_mul(k, step, s));
        kb_if(k, kb_lt(k, ahead, t->count)) {
            const struct tile x = tile_at(t, ahead, kb_imm(k, TY_I32, s));
            start_copies(t, &x);
        }
    }
    kb_var stage = kb_var_new(k, kb_imm(k, TY_I32, 0), "stage");
    kb_var parity = kb_var_new(k, kb_imm(k, TY_I32, 0), "parity");
    kb_for(k, i, number, t->count, step) {
        LET(now, kb_assume_uniform(kb_get(k, stage), KB_UNI_WARP)); /* counted the same by all lanes */
        const struct tile x = tile_at(t, i, now);
        kb_mbar_wait(k, t->landed, now, kb_assume_uniform(kb_get(k, parity), KB_UNI_WARP));
        copy_rest(t, &x);
        take_tile(t, &x);
        kb_proxy_fence(k); /* all lanes have read the stage … */
        kb_warp_sync(k);   /* … before it is filled again */
        const kb_val ahead = kb_add(k, i, kb_mul(k, step, t->stages.count));
        kb_if(k, kb_lt(k, ahead, t->count)) {
            const struct tile next = tile_at(t, ahead, now);
            start_copies(t, &next);
        }
        LET(last, kb_eq(k, now, t->stages.count - 1));
        kb_set(k, stage, kb_select(k, last, kb_imm(k, TY_I32, 0), kb_add(k, now, 1)));
        kb_set(k, parity, kb_xor(k, kb_get(k, parity), kb_cast(k, last, TY_I32)));
    }
}

void emit_segreduce_tile(struct gen *g)
{
    kb *k = g->k;
    struct tiles t;
    const int warps = kb_threads(k) / KB_WARP;
    tiles_init(&t, g);
    if (t.bulk)
        mbarriers_init(&t);
    gen_wait_for_predecessor(g);
    tiles_share(&t);
    LET(number, kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), warps), kb_cast(k, kb_warp(k), TY_I64)));
    LET(step, kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), warps));
    if (t.bulk) {
        bulk_tiles(&t, number, step);
        return;
    }
    kb_for(k, i, number, t.count, step) {
        const struct tile x = tile_at(&t, i, kb_imm(k, TY_I32, 0));
        copy_tile(&t, &x);
        take_tile(&t, &x);
        kb_warp_sync(k); /* all lanes have read the tile */
    }
}
