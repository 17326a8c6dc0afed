/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.c - elements pair a row of one table with a row of another one; tiles of both in shared memory, as for a matrix
 * product by tiles in registers.
 *
 *     for my tile of segments:
 *         for tiles of their elements:
 *             for PAIRS_TERMS terms of the sums:
 *                 the block loads these terms of the rows of both tiles, transposed
 *                 each thread: its segments x its elements, from `segments` + `items` values
 *             each thread: combine its elements
 *         the `lanes` lanes that share segments: combine
 *
 * A thread's rows are vectors of four, neighbouring threads taking neighbouring ones, so that a load of a warp reads
 * consecutive words, each once.
 */
#include "lower/pairs.h"

#include "seg_gen.h"

enum { ROWS_MAX = PAIRS_MAX, VECTOR = 4, AT_ONCE = 8 };

/* Rows of a tile, along one axis: how many a thread has, and which. */
struct side {
    int each, teams;
    kb_val rank;   /* i32: of this thread among the teams */
    kb_val first;  /* i64: index of the tile's first row */
    kb_val extent; /* i64 */
};

struct tile {
    const struct pairs_operand *what;
    kb_ptr memory;
    int pitch;
    kb_val value[ROWS_MAX]; /* of this thread's rows, for the term at hand */
};

struct pair_tiles {
    struct emit_tiles hooks;
    struct gen *g;
    struct pairs pairs;
    struct side side[2]; /* by axis */
    struct tile tile[PAIRS_OPERANDS_MAX];
    const struct point *point; /* of this thread: of segment i the elements i * items … */
    int kept, items;
};

static int rows_of(const struct side *s) { return s->each * s->teams; }

static int vector_of(const struct side *s) { return s->each < VECTOR ? s->each : VECTOR; }

/* Place in the tile of the thread's row number i; i32. */
static kb_val row_place(kb *k, const struct side *s, int i)
{
    const int n = vector_of(s);
    return kb_add(k, kb_mul(k, s->rank, n), i / n * s->teams * n + i % n);
}

static kb_val row_index(kb *k, const struct side *s, kb_val place)
{
    return kb_add(k, s->first, kb_cast(k, place, TY_I64));
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

/* The terms first, first + 1, … of a tile that exist, and a power of two that holds them. */
struct terms {
    kb_val first, last; /* i64: and the last one of all */
    kb_val bits, most;  /* i32: log2 of the power; the last one within the tile */
};

static struct terms terms_at(kb *k, kb_val first, kb_val count)
{
    const kb_val own = kb_cast(k, kb_min(k, kb_sub(k, count, first), PAIRS_TERMS), TY_I32), most = kb_sub(k, own, 1);
    const kb_val bits = kb_sub(k, kb_imm(k, TY_I32, 32), kb_cast(k, kb_clz(k, most), TY_I32));
    return (struct terms){ first, kb_sub(k, count, 1), bits, most };
}

/* Number i of what is loaded: consecutive threads read consecutive elements of the table.  Rows and terms that do not
 * exist repeat the last one. */
struct loaded {
    kb_val exists; /* bool */
    kb_val at;     /* i32: in the tile */
    kb_val x;
};

static struct loaded load_one(struct pair_tiles *s, const struct tile *t, const struct terms *terms, kb_val i)
{
    kb *k = s->g->k;
    const struct side *side = &s->side[t->what->axis];
    const struct prog_array *a = &s->g->p->input[t->what->input].array;
    const int rows = rows_of(side);
    kb_val row = kb_rem(k, i, rows), term = kb_div(k, i, rows);
    if (t->what->terms_last) {
        row = kb_shr(k, i, terms->bits);
        term = kb_sub(k, i, kb_shl(k, row, terms->bits));
    }
    const kb_val index = kb_min(k, row_index(k, side, row), kb_sub(k, side->extent, 1));
    const kb_val along = kb_add(k, terms->first, kb_cast(k, kb_min(k, term, terms->most), TY_I64));
    const kb_val element = t->what->terms_last ? kb_add(k, kb_mul(k, index, kb_add(k, terms->last, 1)), along)
                                               : kb_add(k, kb_mul(k, along, side->extent), index);
    return (struct loaded){ kb_lt(k, i, kb_shl(k, kb_imm(k, TY_I32, rows), terms->bits)),
                            kb_add(k, kb_mul(k, term, t->pitch), row),
                            gen_load_field(s->g, a, gen_input(s->g, t->what->input), element, t->what->field) };
}

static void tile_load(struct pair_tiles *s, const struct tile *t, const struct terms *terms)
{
    kb *k = s->g->k;
    const int threads = kb_threads(k), all = rows_of(&s->side[t->what->axis]) * PAIRS_TERMS;
    const int each = all > threads ? all / threads : 1, at_once = each < AT_ONCE ? each : AT_ONCE;
    const kb_val count = kb_shl(k, kb_imm(k, TY_I32, all / PAIRS_TERMS), terms->bits);
    kb_for(k, base, kb_imm(k, TY_I32, 0), count, at_once * threads) {
        struct loaded x[AT_ONCE];
        for (int u = 0; u < at_once; u++)
            x[u] = load_one(s, t, terms, kb_add(k, kb_add(k, base, kb_tid(k)), u * threads));
        for (int u = 0; u < at_once; u++)
            kb_if(k, x[u].exists) {
                kb_store(k, t->memory, x[u].at, x[u].x);
            }
    }
}

/* The whole block arrives. */
static void tiles_load(kb *k, struct emit_tiles *hooks, kb_val first, kb_val count)
{
    struct pair_tiles *s = (struct pair_tiles *)hooks;
    const struct terms terms = terms_at(k, first, count);
    kb_barrier(k); /* all have read the tiles before */
    for (int o = 0; o < s->pairs.noperands; o++)
        tile_load(s, &s->tile[o], &terms);
    kb_barrier(k);
}

static void tiles_term(kb *k, struct emit_tiles *hooks, kb_val i)
{
    struct pair_tiles *s = (struct pair_tiles *)hooks;
    for (int o = 0; o < s->pairs.noperands; o++) {
        struct tile *t = &s->tile[o];
        const struct side *side = &s->side[t->what->axis];
        const int n = vector_of(side);
        const kb_ptr column = kb_advance(k, t->memory, kb_mul(k, kb_cast(k, i, TY_I32), t->pitch));
        for (int at = 0; at < side->each; at += n)
            kb_load_n(k, column, row_place(k, side, at), n, gen_vector_alignment(n * ty_bytes(t->memory.ty)),
                      &t->value[at]);
    }
}

static kb_val pair_leaf(kb *k, struct emit_env *env, const struct expr *e)
{
    const struct pair_tiles *s = (const struct pair_tiles *)env->tiles;
    const struct point *pt = env->user;
    for (int o = 0; o < s->pairs.noperands; o++) {
        const struct pairs_operand *what = s->tile[o].what;
        const int number = (int)(pt - s->point);
        if (pairs_is(s->g->p, e, what))
            return s->tile[o].value[what->axis == s->kept ? number / s->items : number % s->items];
    }
    return point_leaf(k, env, e);
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

/* The indices of a thread's element, from here on: in registers no earlier than they are used. */
static void pair_index(struct pair_tiles *s, struct point *pt, const struct segment *seg, int column)
{
    kb *k = s->g->k;
    const struct side *side = &s->side[!s->kept];
    const kb_val index = row_index(k, side, row_place(k, side, column));
    pt->index[s->kept] = seg->number;
    pt->index[!s->kept] = kb_min(k, index, kb_sub(k, side->extent, 1));
}

static void pair_point(struct pair_tiles *s, struct point *pt, const struct segment *seg, int column)
{
    segment_point(s->g, pt, seg, seg->first, kb_imm(s->g->k, TY_I32, 0), 0);
    pair_index(s, pt, seg, column);
    pt->env.leaf = pair_leaf;
    pt->env.tiles = &s->hooks;
}

/* The elements of a segment; of the last tile only those that exist. */
static void take_elements(struct pair_tiles *s, struct point *pt, struct partial *into)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const struct side *side = &s->side[!s->kept];
    kb_if(k, kb_le(k, kb_add(k, side->first, rows_of(side)), side->extent)) {
        partial_take(g, into, state_of_points(g, pt, 0, s->items));
    }
    kb_else
    {
        for (int j = 0; j < s->items; j++) {
            const kb_val exists = kb_lt(k, row_index(k, side, row_place(k, side, j)), side->extent);
            partial_take(g, into, kb_select(k, exists, point_map(&pt[j]), state_pad_value(g)));
        }
    }
}

static void take_tile(struct pair_tiles *s, struct segment *seg, struct partial *total)
{
    const int n = s->side[s->kept].each;
    struct point pt[ROWS_MAX];
    s->point = pt;
    for (int i = 0; i < n * s->items; i++)
        pair_point(s, &pt[i], &seg[i / s->items], i % s->items);
    points_together(pt, n * s->items, sizeof *pt);
    for (int i = 0; i < n; i++) {
        segment_enter(s->g, &seg[i]);
        for (int j = 0; j < s->items; j++)
            pair_index(s, &pt[i * s->items + j], &seg[i], j);
        take_elements(s, &pt[i * s->items], &total[i]);
    }
}

static void reduce_segments(struct pair_tiles *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    struct side *rows = &s->side[s->kept], *columns = &s->side[!s->kept];
    struct segment seg[ROWS_MAX];
    struct partial total[ROWS_MAX];
    kb_val exists[ROWS_MAX];
    for (int i = 0; i < rows->each; i++) {
        const kb_val number = row_index(k, rows, row_place(k, rows, i));
        exists[i] = kb_lt(k, number, rows->extent);
        segment_at(g, &seg[i], kb_min(k, number, kb_sub(k, rows->extent, 1)));
        total[i] = partial_new(g, "total");
    }
    kb_for(k, first, kb_imm(k, TY_I64, 0), columns->extent, rows_of(columns)) {
        columns->first = first;
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

static void tiles_init(struct pair_tiles *s, struct gen *g)
{
    kb *k = g->k;
    const char *why;
    const int lanes = gen_tunable(g, TN_LANES);
    *s = (struct pair_tiles){ .hooks = { PAIRS_TERMS, tiles_load, tiles_term }, .g = g };
    s->kept = g->p->space[0].reduced ? 1 : 0;
    s->items = gen_tunable(g, TN_ITEMS);
    s->side[s->kept] = (struct side){ .each = gen_tunable(g, TN_SEGMENTS),
                                      .teams = kb_threads(k) / lanes,
                                      .rank = kb_div(k, kb_tid(k), lanes),
                                      .extent = gen_value(g, VAL_SEGMENTS) };
    s->side[!s->kept] = (struct side){
        .each = s->items, .teams = lanes, .rank = kb_and(k, kb_lane(k), lanes - 1), .extent = gen_value(g, VAL_LENGTH)
    };
    pairs_of(g->p, &s->pairs, &why);
    for (int o = 0; o < s->pairs.noperands; o++) {
        const struct pairs_operand *what = &s->pairs.operand[o];
        const enum ty ty = g->p->input[what->input].array.field[what->field].type;
        const int pitch = pairs_pitch(g->p, what, rows_of(&s->side[what->axis]));
        s->tile[o] = (struct tile){ what, kb_shared_v(k, ty, PAIRS_TERMS * pitch, "tile"), pitch, { { 0 } } };
    }
}

void emit_segreduce_pairs(struct gen *g)
{
    kb *k = g->k;
    struct pair_tiles s;
    gen_wait_for_predecessor(g);
    tiles_init(&s, g);
    struct side *rows = &s.side[s.kept];
    const kb_val step = kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), rows_of(rows));
    kb_for(k, first, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), rows_of(rows)), rows->extent, step) {
        rows->first = first;
        reduce_segments(&s);
    }
}
