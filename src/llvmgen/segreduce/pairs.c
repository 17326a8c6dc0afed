/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.c - elements pair a row of one table with a row of another one; tiles of both in shared memory, as for a matrix
 * product by tiles in registers (pair_tiles.h).
 *
 *     for my tile of segments:
 *         for tiles of their elements:
 *             each thread: the sums of its segments x its elements, from `segments` + `items` values for each term
 *             each thread: combine its elements
 *         the `lanes` lanes that share segments: combine
 */
#include "llvmgen/shared/pair_tiles.h"
#include "seg_gen.h"

struct nearby {
    struct pair_tiles tiles;   /* first: environments lead to it */
    const struct point *point; /* of this thread: of segment i the elements i * items … */
    int kept, items;
};

static kb_val pair_leaf(kb *k, struct emit_env *env, const struct expr *e)
{
    const struct nearby *s = (const struct nearby *)env->tiles;
    const struct point *pt = env->user;
    const int number = (int)(pt - s->point);
    int row[2];
    kb_val x;
    row[s->kept] = number / s->items;
    row[!s->kept] = number % s->items;
    return pair_tiles_read(&s->tiles, e, row, &x) ? x : point_leaf(k, env, e);
}

/* The indices of a thread's element, from here on: in registers no earlier than they are used. */
static void set_index(struct nearby *s, struct point *pt, const struct segment *seg, int column)
{
    kb *k = s->tiles.g->k;
    const struct pair_side *side = &s->tiles.side[!s->kept];
    const kb_val index = pair_index(k, side, pair_place(k, side, column));
    pt->index[s->kept] = seg->number;
    pt->index[!s->kept] = kb_min(k, index, kb_sub(k, side->extent, 1));
}

static void pair_point(struct nearby *s, struct point *pt, const struct segment *seg, int column)
{
    segment_point(s->tiles.g, pt, seg, seg->first, kb_imm(s->tiles.g->k, TY_I32, 0), 0);
    set_index(s, pt, seg, column);
    pt->env.leaf = pair_leaf;
    pt->env.tiles = &s->tiles.hooks;
}

/* The elements of a segment; of the last tile only those that exist. */
static void take_elements(struct nearby *s, struct point *pt, struct partial *into)
{
    struct gen *g = s->tiles.g;
    kb *k = g->k;
    const struct pair_side *side = &s->tiles.side[!s->kept];
    kb_if(k, kb_le(k, kb_add(k, side->first, pair_rows(side)), side->extent)) {
        partial_take(g, into, state_of_tile(g, pt, s->items));
    }
    kb_else
    {
        for (int j = 0; j < s->items; j++) {
            const kb_val exists = kb_lt(k, pair_index(k, side, pair_place(k, side, j)), side->extent);
            partial_take(g, into, kb_select(k, exists, point_map(&pt[j]), state_pad_value(g)));
        }
    }
}

static void take_tile(struct nearby *s, struct segment *seg, struct partial *total)
{
    const int n = s->tiles.side[s->kept].each;
    struct point pt[PAIRS_MAX];
    s->point = pt;
    for (int i = 0; i < n * s->items; i++)
        pair_point(s, &pt[i], &seg[i / s->items], i % s->items);
    points_together(pt, n * s->items, sizeof *pt);
    for (int i = 0; i < n; i++) {
        segment_enter(s->tiles.g, &seg[i]);
        for (int j = 0; j < s->items; j++)
            set_index(s, &pt[i * s->items + j], &seg[i], j);
        take_elements(s, &pt[i * s->items], &total[i]);
    }
}

static void reduce_segments(struct nearby *s)
{
    struct gen *g = s->tiles.g;
    kb *k = g->k;
    struct pair_side *rows = &s->tiles.side[s->kept], *columns = &s->tiles.side[!s->kept];
    struct segment seg[PAIRS_MAX];
    struct partial total[PAIRS_MAX];
    kb_val exists[PAIRS_MAX];
    for (int i = 0; i < rows->each; i++) {
        const kb_val number = pair_index(k, rows, pair_place(k, rows, i));
        exists[i] = kb_lt(k, number, rows->extent);
        segment_at(g, &seg[i], kb_min(k, number, kb_sub(k, rows->extent, 1)));
        total[i] = partial_new(g, "total");
    }
    kb_for(k, first, kb_imm(k, TY_I64, 0), columns->extent, pair_rows(columns)) {
        columns->first = first;
        s->tiles.again[s->kept] = kb_ne(k, first, 0);
        take_tile(s, seg, total);
    }
    for (int i = 0; i < rows->each; i++) {
        segment_enter(g, &seg[i]);
        const kb_tup x = warp_reduce(g, kb_get(k, total[i].x), columns->teams, valid_all());
        kb_if(k, kb_and(k, exists[i], kb_eq(k, columns->rank, 0))) {
            segment_store(g, &seg[i], x);
        }
    }
}

void emit_segreduce_pairs(struct gen *g)
{
    kb *k = g->k;
    if (g->p->rank == PAIRS_PRODUCT_RANK) {
        emit_products(g);
        return;
    }
    const int lanes = gen_tunable(g, TN_LANES), kept = g->p->space[0].reduced ? 1 : 0, items = gen_tunable(g, TN_ITEMS);
    struct nearby s = { .kept = kept, .items = items };
    struct pair_side sides[2];
    gen_wait_for_predecessor(g);
    sides[kept] = pair_side_of(gen_tunable(g, TN_SEGMENTS), kb_threads(k) / lanes, kb_div(k, kb_tid(k), lanes),
                               gen_value(g, VAL_SEGMENTS));
    sides[!kept] = pair_side_of(items, lanes, kb_and(k, kb_lane(k), lanes - 1), gen_value(g, VAL_LENGTH));
    pair_tiles_init(&s.tiles, g, sides);
    struct pair_side *rows = &s.tiles.side[kept];
    const kb_val step = kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), pair_rows(rows));
    kb_for(k, first, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), pair_rows(rows)), rows->extent, step) {
        rows->first = first;
        reduce_segments(&s);
    }
}
