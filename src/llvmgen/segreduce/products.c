/* SPDX-License-Identifier: Apache-2.0 */
/* products.c - a product of matrices, and what has its form: r[i, j] reduces f(a[i, k], b[j, k]) over k, with any
 * operator; tiles of both tables in shared memory (pair_tiles.h).
 *
 *     for my tile of rows x columns of results:
 *         for tiles of terms, each term:
 *             each thread: its `segments` rows x `items` columns take the term
 *
 * A thread takes all terms of its results one after the other, so the operator may be an ordered one.
 *
 * Results of few terms take longer to store than to compute.  With a vector of 1 the columns of a thread lie `lanes`
 * apart, so that the lanes store results side by side, and each thread reads its terms from the tables: no barrier, no
 * tile, and the first terms are written out.
 */
#include "llvmgen/shared/pair_tiles.h"
#include "seg_gen.h"

enum { UNROLL = 4, LARGE = 512 /* nodes of expressions in a loop */, WRITTEN_OUT = 8 };

struct product {
    struct pair_tiles tiles; /* first: environments lead to it */
    const struct point *point;
    int rows, columns; /* of this thread */
    int unroll;
    bool direct;
    kb_val index[2][PAIRS_MAX]; /* i64, of its rows and columns; the last one again where there are no more */
    struct partial total[PAIRS_MAX];
};

static void count_node(const struct expr *e, void *user)
{
    (void)e;
    ++*(int *)user;
}

static int nodes_of_maps(const struct problem *p)
{
    const struct expr *map[KB_TUP_MAX];
    int nodes = 0;
    for (int i = point_maps(p, map) - 1; i >= 0; i--)
        problem_walk(p, map[i], count_node, &nodes);
    for (int r = 0; r < p->nreductions; r++)
        for (int f = 0; f < p->reduction[r].op->nfields; f++)
            problem_walk(p, p->reduction[r].op->combine[f], count_node, &nodes);
    return nodes;
}

static kb_val product_leaf(kb *k, struct emit_env *env, const struct expr *e)
{
    const struct product *s = (const struct product *)env->tiles;
    const int number = (int)((const struct point *)env->user - s->point);
    const int row[] = { number / s->columns, number % s->columns };
    kb_val x;
    return pair_tiles_read(&s->tiles, e, row, &x) ? x : point_leaf(k, env, e);
}

/* The indices of result number i; along the reduced axis: `term`. */
static void set_indices(const struct product *s, int i, kb_val term, kb_val *index)
{
    const struct pairs *pairs = &s->tiles.pairs;
    index[pairs->kept[0]] = s->index[0][i / s->columns];
    index[pairs->kept[1]] = s->index[1][i % s->columns];
    index[pairs->reduced] = term;
}

/* Term number i of the tile, i64, whose index is `term`. */
static void take_term(struct product *s, kb_val i, kb_val term)
{
    struct gen *g = s->tiles.g;
    const int n = s->rows * s->columns;
    struct point pt[PAIRS_MAX];
    struct segment seg;
    s->point = pt;
    s->tiles.hooks.term(g->k, &s->tiles.hooks, i);
    for (int r = 0; r < n; r++) {
        point_init(&pt[r], g, kb_imm(g->k, TY_I64, 0), kb_imm(g->k, TY_I32, 0), 0);
        set_indices(s, r, term, pt[r].index);
        pt[r].env.leaf = product_leaf;
        pt[r].env.tiles = &s->tiles.hooks;
        segment_of(g, &seg, pt[r].index);
        segment_enter(g, &seg);
        partial_take(g, &s->total[r], point_map(&pt[r]));
    }
}

static void take_terms(struct product *s, kb_val first, kb_val from, kb_val to, int unroll)
{
    kb *k = s->tiles.g->k;
    kb_for(k, i, from, to, unroll) {
        for (int u = 0; u < unroll; u++) {
            const kb_val here = kb_add(k, i, u);
            take_term(s, here, kb_add(k, first, here));
        }
    }
}

/* From the tables: those that have numbers below WRITTEN_OUT are found by constant offsets. */
static void take_few_terms(struct product *s, kb_val length)
{
    kb *k = s->tiles.g->k;
    int64_t known;
    const int out = kb_is_const(length, &known) && known < WRITTEN_OUT ? (int)known : WRITTEN_OUT;
    pair_tables_open(&s->tiles, s->index);
    for (int i = 0; i < out; i++) {
        const kb_val term = kb_imm(k, TY_I64, i);
        kb_if(k, kb_lt(k, term, length)) {
            take_term(s, term, term);
        }
    }
    if (out == WRITTEN_OUT)
        take_terms(s, kb_imm(k, TY_I64, 0), kb_imm(k, TY_I64, out), length, 1);
}

/* The whole block arrives. */
static void reduce_tile(struct product *s)
{
    struct gen *g = s->tiles.g;
    kb *k = g->k;
    const kb_val zero = kb_imm(k, TY_I64, 0), length = gen_value(g, VAL_LENGTH);
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < s->tiles.side[d].each; i++) {
            const struct pair_side *side = &s->tiles.side[d];
            s->index[d][i] = kb_min(k, pair_index(k, side, pair_place(k, side, i)), kb_sub(k, side->extent, 1));
        }
    for (int i = 0; i < s->rows * s->columns; i++)
        s->total[i] = partial_new(g, "total");
    if (s->direct) {
        take_few_terms(s, length);
        return;
    }
    kb_for(k, first, zero, length, PAIRS_TERMS) {
        s->tiles.hooks.load(k, &s->tiles.hooks, first, length);
        const kb_val own = kb_min(k, kb_sub(k, length, first), PAIRS_TERMS), most = kb_and(k, own, -s->unroll);
        take_terms(s, first, zero, most, s->unroll);
        if (s->unroll > 1)
            take_terms(s, first, most, own, 1);
    }
}

/* One row after the other, so that a result's number is a sum. */
static void store_tile(struct product *s)
{
    struct gen *g = s->tiles.g;
    kb *k = g->k;
    const struct pair_side *rows = &s->tiles.side[0], *columns = &s->tiles.side[1];
    const kb_val none = kb_le(k, gen_value(g, VAL_LENGTH), 0);
    kb_val column[PAIRS_MAX];
    for (int j = 0; j < s->columns; j++)
        column[j] = pair_index(k, columns, pair_place(k, columns, j));
    for (int i = 0; i < s->rows; i++) {
        const kb_val row = pair_index(k, rows, pair_place(k, rows, i));
        kb_if(k, kb_lt(k, row, rows->extent)) {
            LET(first, kb_add(k, kb_mul(k, row, columns->extent), column[0]));
            for (int j = 0; j < s->columns; j++)
                kb_if(k, kb_lt(k, column[j], columns->extent)) {
                    struct segment seg;
                    kb_val index[SPACE_MAX];
                    const int away = j / columns->vector * columns->teams * columns->vector + j % columns->vector;
                    set_indices(s, i * s->columns + j, kb_imm(k, TY_I64, 0), index);
                    segment_named(g, &seg, kb_add(k, first, away), index);
                    segment_store_known(g, &seg, kb_get(k, s->total[i * s->columns + j].x), none);
                }
        }
    }
}

/* The row of tiles that tile number `tile` is in. */
static kb_val row_of_tiles(kb *k, kb_val tile, kb_val across)
{
    kb_var row = kb_var_new(k, tile, "row");
    kb_if(k, kb_gt(k, across, 1)) { /* a division takes as long as many results of few terms */
        kb_set(k, row, kb_div(k, tile, across));
    }
    return kb_get(k, row);
}

void emit_products(struct gen *g)
{
    kb *k = g->k;
    const int lanes = gen_tunable(g, TN_LANES);
    struct product s = { .rows = gen_tunable(g, TN_SEGMENTS), .columns = gen_tunable(g, TN_ITEMS) };
    struct pairs pairs;
    const char *why;
    pairs_of(g->p, &pairs, &why);
    s.unroll = nodes_of_maps(g->p) * s.rows * s.columns > LARGE ? 1 : UNROLL;
    s.direct = gen_tunable(g, TN_VECTOR) == 1;
    gen_wait_for_predecessor(g);
    const kb_val extent[] = { gen_extent(g, &g->p->space[pairs.kept[0]].extent),
                              gen_extent(g, &g->p->space[pairs.kept[1]].extent) };
    const int vector = s.direct ? 1 : PAIRS_VECTOR, down_vector = lanes < KB_WARP ? vector : PAIRS_VECTOR;
    const struct pair_side sides[] = {
        pair_side_by(s.rows, down_vector, kb_threads(k) / lanes, kb_div(k, kb_tid(k), lanes), extent[0]),
        pair_side_by(s.columns, vector, lanes, kb_and(k, kb_tid(k), lanes - 1), extent[1])
    };
    (s.direct ? pair_tables_init : pair_tiles_init)(&s.tiles, g, sides);
    struct pair_side *rows = &s.tiles.side[0], *columns = &s.tiles.side[1];
    const int down = pair_rows(rows), across = pair_rows(columns);
    LET(tiles_across, kb_div(k, kb_add(k, extent[1], across - 1), across));
    LET(tiles, kb_mul(k, tiles_across, kb_div(k, kb_add(k, extent[0], down - 1), down)));
    kb_for(k, tile, kb_cast(k, kb_block(k), TY_I64), tiles, kb_cast(k, kb_blocks(k), TY_I64)) {
        const kb_val row = row_of_tiles(k, tile, tiles_across), column = kb_sub(k, tile, kb_mul(k, row, tiles_across));
        rows->first = kb_mul(k, row, down);
        columns->first = kb_mul(k, column, across);
        reduce_tile(&s);
        store_tile(&s);
    }
}
