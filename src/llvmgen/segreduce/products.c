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

enum { UNROLL = 4, LARGE = 512 /* nodes of expressions in a term */, WRITTEN_OUT = 8, FEW_RESULTS = 32 };

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

/* Term number i + plus of the tile, i64, whose index is `term`. */
static void take_term(struct product *s, kb_val i, int plus, kb_val term)
{
    struct gen *g = s->tiles.g;
    const int n = s->rows * s->columns;
    struct point pt[PAIRS_MAX];
    struct segment seg;
    s->point = pt;
    s->tiles.hooks.term(g->k, &s->tiles.hooks, i, plus);
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
        for (int u = 0; u < unroll; u++)
            take_term(s, i, u, kb_add(k, first, kb_add(k, i, u)));
    }
}

/* `own` terms of a tile, i64.  Many results of a thread are in other registers after each loop, where those of several
 * loops meet: then all terms of whole tiles are written out. */
static void take_tile(struct product *s, kb_val first, kb_val own)
{
    kb *k = s->tiles.g->k;
    kb_val from = kb_imm(k, TY_I64, 0);
    if (s->unroll == PAIRS_TERMS) {
        kb_if(k, kb_eq(k, own, PAIRS_TERMS)) {
            for (int u = 0; u < PAIRS_TERMS; u++)
                take_term(s, from, u, kb_add(k, first, u));
        }
        kb_else { take_terms(s, first, from, own, 1); }
        return;
    }
    for (int n = s->unroll; n > 0; n = n > UNROLL ? UNROLL : n > 1 ? 1 : 0) {
        const kb_val to = kb_and(k, own, -n);
        take_terms(s, first, from, to, n);
        from = to;
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
            take_term(s, term, 0, term);
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
        take_tile(s, first, kb_min(k, kb_sub(k, length, first), PAIRS_TERMS));
    }
}

/* ---- stores ------------------------------------------------------------------------------------------------------ */

/* Have all outputs one value for each result, in the order of results?  A thread's vector of columns is one there, where
 * rows of results are whole vectors. */
static bool stores_vectors(const struct product *s)
{
    const struct problem *p = s->tiles.g->p;
    bool fits = !s->direct && !s->tiles.g->c->mapper && s->tiles.side[1].vector > 1;
    for (int o = 0; o < p->noutputs; o++)
        fits = fits && output_moment(&p->output[o]) == AT_TOTAL && access_output_in_segments(p, &p->output[o]) &&
               !*p->output[o].array.field[0].name;
    return fits;
}

/* Do vectors of results begin at multiples of their size?  Bool, the same for all threads. */
static kb_val vectors_aligned(const struct product *s)
{
    struct gen *g = s->tiles.g;
    kb *k = g->k;
    const struct pair_side *columns = &s->tiles.side[1];
    kb_val aligned = kb_eq(k, kb_rem(k, columns->extent, columns->vector), 0);
    for (int o = 0; o < g->p->noutputs; o++) {
        const int bytes = gen_vector_alignment(columns->vector * g->p->output[o].array.stride);
        aligned = kb_and(k, aligned, kb_eq(k, kb_and(k, kb_address(k, gen_output(g, o)), bytes - 1), 0));
    }
    return aligned;
}

/* Results number i, i + 1, … of a vector of columns, the first of which is segment `number`; `none`: of no terms. */
static void store_vector(const struct product *s, int i, kb_val number, kb_val none)
{
    struct gen *g = s->tiles.g;
    kb *k = g->k;
    const int n = s->tiles.side[1].vector;
    for (int o = 0; o < g->p->noutputs; o++) {
        kb_val x[GEN_VECTOR_MAX];
        for (int j = 0; j < n; j++) {
            struct segment seg;
            struct point pt;
            kb_val index[SPACE_MAX];
            set_indices(s, i + j, kb_imm(k, TY_I64, 0), index);
            segment_named(g, &seg, kb_add(k, number, j), index);
            segment_enter(g, &seg);
            const kb_tup result = state_results(g, kb_get(k, s->total[i + j].x), none);
            state_env(&pt, g);
            pt.state = &result;
            x[j] = output_value(&pt, o, 0);
        }
        output_store_vector(g, o, kb_advance(k, gen_output(g, o), number), n, true, x);
    }
}

static void store_one(const struct product *s, int i, kb_val number, kb_val none)
{
    struct gen *g = s->tiles.g;
    struct segment seg;
    kb_val index[SPACE_MAX];
    set_indices(s, i, kb_imm(g->k, TY_I64, 0), index);
    segment_named(g, &seg, number, index);
    segment_store_known(g, &seg, kb_get(g->k, s->total[i].x), none);
}

/* One row after the other, so that a result's number is a sum. */
static void store_tile(struct product *s, bool vectors)
{
    struct gen *g = s->tiles.g;
    kb *k = g->k;
    const struct pair_side *rows = &s->tiles.side[0], *columns = &s->tiles.side[1];
    const kb_val none = kb_le(k, gen_value(g, VAL_LENGTH), 0);
    const int together = vectors ? columns->vector : 1;
    LET(column, pair_first(k, columns));
    LET(left, kb_sub(k, columns->extent, column));
    for (int i = 0; i < s->rows; i++) {
        const kb_val row = kb_add(k, pair_first(k, rows), pair_away(rows, i));
        kb_if(k, kb_lt(k, row, rows->extent)) {
            LET(first, kb_add(k, kb_mul(k, row, columns->extent), column));
            for (int j = 0; j < s->columns; j += together)
                kb_if(k, kb_gt(k, left, pair_away(columns, j))) {
                    (vectors ? store_vector : store_one)(s, i * s->columns + j, kb_add(k, first, pair_away(columns, j)),
                                                         none);
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

/* Where in the tile a thread's rows and columns are, i32: threads have neighbouring columns, by `lanes`.  Of tiles in
 * shared memory lanes 2 i and 2 i + 1 share columns, and lanes that differ by 2 share rows: then vectors of both come in
 * half as many accesses, as eight lanes that all read others take one for themselves. */
struct ranks {
    kb_val row, column;
};

static struct ranks ranks_of(kb *k, int lanes, bool direct)
{
    const kb_val tid = kb_tid(k);
    if (direct || lanes == KB_WARP || lanes == 1)
        return (struct ranks){ kb_div(k, tid, lanes), kb_and(k, tid, lanes - 1) };
    const kb_val row = kb_mul(k, kb_div(k, tid, 2 * lanes), 2);
    return (struct ranks){ kb_or(k, row, kb_and(k, tid, 1)), kb_and(k, kb_div(k, tid, 2), lanes - 1) };
}

void emit_products(struct gen *g)
{
    kb *k = g->k;
    const int lanes = gen_tunable(g, TN_LANES);
    struct product s = { .rows = gen_tunable(g, TN_SEGMENTS), .columns = gen_tunable(g, TN_ITEMS) };
    struct pairs pairs;
    const char *why;
    pairs_of(g->p, &pairs, &why);
    const int nodes = nodes_of_maps(g->p) * s.rows * s.columns;
    if (s.rows * s.columns > FEW_RESULTS)
        s.unroll = nodes > 2 * LARGE ? 1 : PAIRS_TERMS;
    else
        s.unroll = nodes > LARGE ? 1 : nodes > LARGE / 2 ? UNROLL : 2 * UNROLL;
    s.direct = gen_tunable(g, TN_VECTOR) == 1;
    gen_wait_for_predecessor(g);
    const kb_val extent[] = { gen_extent(g, &g->p->space[pairs.kept[0]].extent),
                              gen_extent(g, &g->p->space[pairs.kept[1]].extent) };
    const int vector = s.direct ? 1 : PAIRS_VECTOR, down_vector = lanes < KB_WARP ? vector : PAIRS_VECTOR;
    const struct ranks rank = ranks_of(k, lanes, s.direct);
    const struct pair_side sides[] = { pair_side_by(s.rows, down_vector, kb_threads(k) / lanes, rank.row, extent[0]),
                                       pair_side_by(s.columns, vector, lanes, rank.column, extent[1]) };
    (s.direct ? pair_tables_init : pair_tiles_init)(&s.tiles, g, sides);
    struct pair_side *rows = &s.tiles.side[0], *columns = &s.tiles.side[1];
    const int down = pair_rows(rows), across = pair_rows(columns);
    LET(tiles_across, kb_div(k, kb_add(k, extent[1], across - 1), across));
    LET(tiles, kb_mul(k, tiles_across, kb_div(k, kb_add(k, extent[0], down - 1), down)));
    LET(vectors, stores_vectors(&s) ? vectors_aligned(&s) : kb_false(k));
    kb_for(k, tile, kb_cast(k, kb_block(k), TY_I64), tiles, kb_cast(k, kb_blocks(k), TY_I64)) {
        const kb_val row = row_of_tiles(k, tile, tiles_across), column = kb_sub(k, tile, kb_mul(k, row, tiles_across));
        rows->first = kb_mul(k, row, down);
        columns->first = kb_mul(k, column, across);
        reduce_tile(&s);
        kb_if(k, vectors) {
            store_tile(&s, true);
        }
        kb_else { store_tile(&s, false); }
    }
}
