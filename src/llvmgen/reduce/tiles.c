/* SPDX-License-Identifier: Apache-2.0 */
/* tiles.c - the share of one thread in a commutative reduction.
 *
 *     elements:   | head |  vector  vector  vector  …  vector | tail |
 *     tile:       items x threads vectors; vector (u, t) of a tile belongs to thread t, and is its vector u * threads +
 * t, or
 *                 (`over_threads` tiled) t * items + u
 *
 *     for tile = block; tile < full tiles; tile += blocks:    load all, combine each vector as a tree, the vectors in
 * turn
 *     (`over_blocks` tiled: the block's consecutive tiles, as many for each block)
 *     the rest of a tile goes to the block whose turn it is (or the last one), vector by vector
 *     head and tail, fewer elements than two vectors, go one by one to the first threads of block 0
 *
 * With `copy_stages` stages (sm_90) a warp's vectors of a tile are consecutive, and bulk copies bring them into a ring of the
 * warp's own, several tiles ahead: vector (u, lane) of warp w is its w * 32 * items + u * 32 + lane.
 *
 * Loads of a tile come before its first use, so a thread has items x 16 bytes in flight.  Loads in partly filled tiles
 * are clamped into the array and issued unconditionally for the same reason; what is out of place is replaced by the
 * padding element, or, when the state has none, never combined.
 */
#include "input_ring.h"
#include "llvmgen/shared/output.h"

struct share {
    struct gen *g;
    int threads, items, vector;
    bool aligned;
    kb_val tid;
    kb_val head, vectors, count; /* arguments: i32, i64, i64 */
    int stride;                  /* between a thread's vectors in a tile, in vectors */
    kb_val place;                /* of its first one, in vectors … */
    kb_val offset;               /* … and in elements */
    kb_tvar acc;
    kb_var have; /* only without padding */
    int bulk;    /* stages of the ring; 0: none */
    struct input_ring ring;
};

/* One vector of points beginning at base[offset + plus], its direct inputs in d. */
static void vector_points(struct share *s, struct point *pt, const struct direct *d, kb_val base, kb_val offset,
                          int64_t plus)
{
    for (int j = 0; j < s->vector; j++) {
        point_init(&pt[j], s->g, base, offset, plus + j);
        pt[j].direct = &d[j];
        point_is_of_vector(&pt[j], j, s->vector);
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

/* The full tiles of a block: first, after the last, step. i64 */
struct tiles {
    kb_val from, to, step;
};

/* ---- the ring ---------------------------------------------------------------------------------------------------- */

/* The first element of the warp's part of tile t. */
static kb_val part_first(const void *user, kb_val t)
{
    const struct share *s = user;
    kb *k = s->g->k;
    const int part = KB_WARP * s->items * s->vector;
    const kb_val tile =
        kb_add(k, kb_cast(k, s->head, TY_I64), kb_mul(k, t, (int64_t)s->threads * s->items * s->vector));
    return kb_add(k, tile, kb_cast(k, kb_mul(k, kb_warp(k), part), TY_I64));
}

static kb_val part_place(const void *user, int u)
{
    const struct share *s = user;
    kb *k = s->g->k;
    const kb_val place = kb_sub(k, s->place, kb_mul(k, kb_warp(k), KB_WARP * s->items));
    return kb_mul(k, kb_add(k, place, u * s->stride), s->vector);
}

static void start_ring(struct share *s, const struct tiles *mine)
{
    s->ring = (struct input_ring){ .g = s->g,
                                   .elements = KB_WARP * s->items * s->vector,
                                   .to = mine->to,
                                   .step = mine->step,
                                   .user = s,
                                   .first = part_first,
                                   .place = part_place };
    input_ring_new(&s->ring, s->bulk);
    input_ring_start(&s->ring, mine->from);
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

/* Sums of bytes: four at a time out of whole words; a thread's part of a tile does not overflow 32 bits. */
static bool packed(const struct share *s)
{
    return s->aligned && !s->bulk && s->vector % 4 == 0 && state_sums_bytes(s->g->p) &&
           !problem_writes(s->g->p, AT_POINT);
}

static void packed_tile(struct share *s, kb_val base)
{
    enum { WORDS_MAX = 64 };
    struct gen *g = s->g;
    kb *k = g->k;
    const int row = s->stride * s->vector, words = s->vector / 4;
    kb_tup total = { .n = g->nfields };
    for (int f = 0; f < g->nfields; f++) {
        const struct expr *e = g->p->reduction[f].map[0], *input = e->kind == EX_CAST ? e->arg[0] : e;
        kb_val word[WORDS_MAX], sum = kb_imm(k, TY_I32, 0);
        for (int u = 0; u < s->items; u++)
            direct_words(g, input->which, base, s->offset, (int64_t)u * row, s->vector, &word[u * words]);
        for (int u = 0; u < s->items; u++) {
            kb_val part = kb_imm(k, TY_I32, 0);
            for (int w = 0; w < words; w++)
                part = kb_sum_bytes(k, word[u * words + w], input->type == TY_I8, part);
            sum = kb_add(k, sum, part);
        }
        total.e[f] = kb_cast(k, sum, g->field[f]);
    }
    take(s, total);
}

/* Vectors are folded one after the other, so that few mapped values are held at once. */
static void full_tile(struct share *s, kb_val t, kb_val base)
{
    struct gen *g = s->g;
    const int row = s->stride * s->vector;
    struct direct d[64];
    if (s->bulk)
        input_ring_take(&s->ring, t, s->items, s->vector, d);
    for (int u = 0; u < s->items && !s->bulk; u++)
        direct_load(g, base, s->offset, (int64_t)u * row, s->vector, s->aligned, &d[u * s->vector]);
    kb_tup total = { .n = 0 };
    for (int u = 0; u < s->items; u++) {
        struct point pt[GEN_VECTOR_MAX];
        vector_points(s, pt, &d[u * s->vector], base, s->offset, (int64_t)u * row);
        points_store(pt, s->vector, s->aligned);
        const kb_tup x = state_of_points(g, pt, 0, s->vector);
        total = u == 0 ? x : state_combine(g, total, x);
    }
    take(s, total);
}

/* The contribution of a vector or element that is there only if `valid`. */
static void take_if(struct share *s, kb_val valid, struct point *pt, int n, bool aligned)
{
    struct gen *g = s->g;
    kb *k = g->k;
    if (g->padded && !problem_writes(g->p, AT_POINT)) {
        take(s, kb_select(k, valid, state_of_points(g, pt, 0, n), state_pad_value(g)));
        return;
    }
    kb_if(k, valid) {
        points_store(pt, n, aligned);
        take(s, state_of_points(g, pt, 0, n));
    }
}

/* The last tile: `rest` of its vectors are there, at least one. */
static void partial_tile(struct share *s, kb_val base, kb_val rest)
{
    kb *k = s->g->k;
    struct direct d[64];
    kb_val at[64];
    for (int u = 0; u < s->items; u++) {
        const kb_val place = kb_add(k, s->place, u * s->stride);
        at[u] = kb_mul(k, kb_min(k, place, kb_sub(k, rest, 1)), s->vector);
        direct_load(s->g, base, at[u], 0, s->vector, s->aligned, &d[u * s->vector]);
    }
    for (int u = 0; u < s->items; u++) {
        struct point pt[GEN_VECTOR_MAX];
        vector_points(s, pt, &d[u * s->vector], base, at[u], 0);
        take_if(s, kb_lt(k, kb_add(k, s->place, u * s->stride), rest), pt, s->vector, s->aligned);
    }
}

/* Element tid of the `extra` ones before the first and after the last vector. */
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
    *s = (struct share){ .g = g,
                         .threads = kb_threads(k),
                         .items = gen_tunable(g, TN_ITEMS),
                         .vector = gen_tunable(g, TN_VECTOR),
                         .aligned = g->c->aligned,
                         .tid = kb_tid(k) };
    s->head = gen_value(g, VAL_HEAD);
    s->vectors = gen_value(g, VAL_VECTORS);
    s->count = gen_value(g, VAL_COUNT);
    const bool tiled = gen_tunable(g, TN_OVER_THREADS);
    s->bulk = gen_tunable(g, TN_COPY_STAGES);
    s->stride = tiled ? 1 : s->bulk ? KB_WARP : s->threads;
    s->place = tiled ? kb_mul(k, s->tid, s->items) : s->tid;
    if (s->bulk && !tiled)
        s->place = kb_add(k, kb_mul(k, kb_warp(k), KB_WARP * s->items), kb_lane(k));
    s->offset = kb_mul(k, s->place, s->vector);
    s->acc = kb_var_new(k, g->padded ? state_pad_value(g) : state_zero(g), "acc");
    s->have = kb_var_new(k, kb_false(k), "have");
}

/* How many threads have one of the first `rest` vectors of a tile. */
static kb_val threads_of(const struct share *s, kb_val rest)
{
    kb *k = s->g->k;
    if (s->stride == 1)
        return kb_div(k, kb_add(k, rest, s->items - 1), s->items);
    if (s->stride == s->threads)
        return kb_min(k, rest, s->threads);
    LET(warps, kb_div(k, rest, KB_WARP * s->items));
    LET(lanes, kb_min(k, kb_rem(k, rest, KB_WARP * s->items), KB_WARP));
    return kb_add(k, kb_mul(k, warps, KB_WARP), lanes);
}

/* Tiles of a block when they are `over_blocks` tiled. */
static kb_val tiles_each(kb *k, kb_val full, kb_val blocks)
{
    LET(all, kb_cast(k, blocks, TY_I64));
    LET(each, kb_div(k, kb_add(k, full, kb_sub(k, all, 1)), all));
    return kb_max(k, each, 1);
}

/* How many of the first blocks have full tiles; i64.  Made where it is used: it would be held in a register through the
 * loop. */
static kb_val blocks_with_tiles(struct gen *g, kb_val full, kb_val blocks)
{
    kb *k = g->k;
    if (!gen_tunable(g, TN_OVER_BLOCKS))
        return kb_min(k, full, kb_cast(k, blocks, TY_I64));
    LET(each, tiles_each(k, full, blocks));
    return kb_div(k, kb_add(k, full, kb_sub(k, each, 1)), each);
}

static struct tiles tiles_of(struct gen *g, kb_val full, kb_val block, kb_val blocks)
{
    kb *k = g->k;
    LET(me, kb_cast(k, block, TY_I64));
    if (!gen_tunable(g, TN_OVER_BLOCKS))
        return (struct tiles){ me, full, kb_cast(k, blocks, TY_I64) };
    LET(each, tiles_each(k, full, blocks));
    LET(from, kb_min(k, kb_mul(k, me, each), full));
    return (struct tiles){ from, kb_min(k, kb_add(k, from, each), full), kb_imm(k, TY_I64, 1) };
}

kb_val tiles_valid_blocks(struct gen *g, kb_val blocks)
{
    kb *k = g->k;
    const int64_t tile = (int64_t)kb_threads(k) * gen_tunable(g, TN_ITEMS);
    const kb_val vectors = gen_value(g, VAL_VECTORS);
    LET(rest, kb_cast(k, kb_ne(k, kb_rem(k, vectors, tile), 0), TY_I64));
    LET(some,
        kb_min(k, kb_add(k, blocks_with_tiles(g, kb_div(k, vectors, tile), blocks), rest), kb_cast(k, blocks, TY_I64)));
    return kb_cast(k, kb_max(k, some, 1), TY_I32); /* block 0 has the ends */
}

/* Bulk copies and prefetches take multiples of 16 bytes from such addresses on. */
static bool prefetchable(const struct gen *g, int input)
{
    const struct prog_array *a = &g->p->input[input].array;
    return access_input_direct(g->p, input) && !*a->field[0].name && gen_tunable(g, TN_VECTOR) * a->stride % 16 == 0;
}

/* Note [Prefetching before the wait]
 * While the last blocks of the kernel before reduce and hand over, the memory has nothing to do, and blocks of this one
 * that already have a place wait.  An eighth of a tile is about what it moves in that time; whole tiles take it from
 * the other kernel's last loads. */
void tiles_prefetch(struct gen *g, kb_val block)
{
    enum { PART = 8 };
    kb *k = g->k;
    const int vector = gen_tunable(g, TN_VECTOR);
    const int64_t tile = (int64_t)kb_threads(k) * gen_tunable(g, TN_ITEMS);
    if (!kb_has_bulk(k) || !g->c->aligned || gen_tunable(g, TN_COPY_STAGES))
        return;
    LET(end, kb_mul(k, kb_add(k, kb_cast(k, block, TY_I64), 1), tile));
    kb_if(k, kb_and(k, kb_thread0(k), kb_le(k, end, gen_value(g, VAL_VECTORS)))) {
        const kb_val head = kb_cast(k, gen_value(g, VAL_HEAD), TY_I64);
        const kb_val first = kb_add(k, head, kb_mul(k, kb_sub(k, end, tile), vector));
        for (int i = 0; i < g->p->ninputs; i++)
            if (prefetchable(g, i))
                kb_prefetch(k, kb_advance(k, gen_input(g, i), first),
                            tile / PART * vector * g->p->input[i].array.stride);
    }
}

kb_tup tiles_reduce(struct gen *g, kb_val block, kb_val blocks, struct valid_items *threads)
{
    kb *k = g->k;
    struct share s;
    share_init(&s, g);
    const int64_t tile = (int64_t)s.threads * s.items;
    kb_section(k, "tiles");
    LET(full, kb_div(k, s.vectors, tile));
    LET(first, kb_cast(k, s.head, TY_I64));
    const struct tiles mine = tiles_of(g, full, block, blocks);
    if (s.bulk)
        start_ring(&s, &mine);
    kb_for(k, t, mine.from, mine.to, mine.step) {
        const kb_val base = kb_add(k, first, kb_mul(k, t, tile * s.vector));
        if (packed(&s))
            packed_tile(&s, base);
        else
            full_tile(&s, t, base);
    }
    kb_section(k, "rest");
    LET(whole, kb_mul(k, full, tile));
    LET(rest, kb_cast(k, kb_sub(k, s.vectors, whole), TY_I32));
    LET(turn,
        kb_cast(k, kb_min(k, blocks_with_tiles(g, full, blocks), kb_cast(k, kb_sub(k, blocks, 1), TY_I64)), TY_I32));
    kb_if(k, kb_and(k, kb_eq(k, block, turn), kb_gt(k, rest, 0))) {
        partial_tile(&s, kb_add(k, first, kb_mul(k, whole, s.vector)), rest);
    }
    kb_section(k, "ends");
    LET(body, kb_mul(k, s.vectors, s.vector));
    LET(extra, kb_cast(k, kb_sub(k, s.count, body), TY_I32));
    kb_if(k, kb_and(k, kb_eq(k, block, 0), kb_gt(k, extra, 0))) {
        ends(&s, extra);
    }
    *threads = valid_all();
    if (!g->padded) {
        const kb_val none = kb_imm(k, TY_I32, 0), all = kb_imm(k, TY_I32, s.threads);
        LET(by_rest, kb_select(k, kb_eq(k, block, turn), threads_of(&s, rest), none));
        LET(by_ends, kb_select(k, kb_eq(k, block, 0), extra, none));
        LET(some, kb_max(k, by_rest, by_ends));
        *threads = valid_first(kb_select(k, kb_lt(k, mine.from, mine.to), all, some));
    }
    return kb_get(k, s.acc);
}
