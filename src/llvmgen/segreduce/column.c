/* SPDX-License-Identifier: Apache-2.0 */
/* column.c - reductions along a dimension that is not the last: neighbouring threads take neighbouring columns.
 *
 * The space is a box [outer][place][column] (segments.h).  A block is `rows` row groups of threads; a thread takes
 * `vector` columns side by side, each a segment of its own, and the places of its row group:
 *
 *     commutative   every rows-th place of the block's part
 *     ordered       consecutive ones
 *
 * A *shifted* vector lies anywhere in a row, and the last one of a row is the row's last columns, some of which belong
 * to the vector before.  It is read as whole words, one more than it fills, and so not where these pass the array's end.
 * Columns that are *striped* are read one by one: so many loads are on their way that rows may begin anywhere, and be few.
 *
 *     for place in mine:   load `items` vectors, combine each column's
 *     row groups           of a warp meet by shuffles, those of the block in shared memory, where one thread per column
 *                          combines them in order
 *     parts                blocks write partials; the block with the columns' last ticket combines them in the same way
 */
#include "seg_gen.h"
#include "llvmgen/shared/last_block.h"
#include "lower/segreduce/settle.h"

enum { PARTS_AT_ONCE = 4 };

struct columns {
    struct gen *g;
    int rows, across; /* row groups, and threads of each */
    int items, vector;
    bool ordered, words;        /* words: vectors lie anywhere in rows and are read by whole words */
    bool striped;               /* its columns are `across` apart */
    kb_val row, x;              /* i32: of this thread */
    kb_val lo, hi, step;        /* i64: its places are lo, lo + step, … below hi */
    kb_val sure;                /* i64: below it nothing is read beyond an array; at most hi */
    kb_val exists;              /* bool: it has columns */
    kb_val own[GEN_VECTOR_MAX]; /* shifted, bool: the column belongs to no vector before */
    struct segment seg[GEN_VECTOR_MAX];
    kb_val edges[GEN_VECTOR_MAX]; /* see row_edges(): of the vector, or of each column if these are apart */
    struct partial acc[GEN_VECTOR_MAX];
    bool settles; /* see lower/segreduce/settle.h */
    kb_var settled[GEN_VECTOR_MAX];
};

/* ---- places ------------------------------------------------------------------------------------------------------ */

static void load_place(struct columns *c, kb_val place, bool aligned, struct direct *d)
{
    struct point pt;
    for (int j = 0; j < c->vector && c->striped; j++) {
        segment_point(c->g, &pt, &c->seg[j], place, kb_imm(c->g->k, TY_I32, 0), 0);
        direct_load(c->g, pt.base, pt.offset, pt.plus, 1, false, &d[j]);
    }
    if (c->striped)
        return;
    segment_point(c->g, &pt, &c->seg[0], place, kb_imm(c->g->k, TY_I32, 0), 0);
    direct_load(c->g, pt.base, pt.offset, pt.plus, c->vector, aligned, d);
}

/* The places of a round, by whole words; all of them exist if `full`, else the last one is loaded again. */
static void load_shifted(struct columns *c, const kb_val *place, bool full, struct direct *d)
{
    struct gen *g = c->g;
    kb *k = g->k;
    struct direct_shifted words[SEG_ITEMS_MAX / 4];
    const bool alike = full && !c->ordered && c->rows % 4 == 0; /* in all of them elements begin alike in words */
    for (int u = 0; u < c->items; u++) {
        struct point pt;
        const kb_val there = full ? place[alike ? 0 : u] : kb_min(k, place[u], kb_sub(k, c->hi, 1));
        segment_point(g, &pt, &c->seg[0], there, kb_imm(k, TY_I32, 0), 0);
        const kb_val further = kb_mul(k, space_stride(g), alike ? u * c->rows : 0);
        direct_load_shifted(g, point_linear(&pt), further, c->vector, &words[u]);
    }
    for (int u = 0; u < c->items; u++)
        direct_take_shifted(g, &words[u], c->vector, &d[u * c->vector]);
}

static void place_points(struct columns *c, kb_val place, bool sure, const struct direct *d, struct point *pt)
{
    for (int j = 0; j < c->vector; j++) {
        segment_point(c->g, &pt[j], &c->seg[j], place, kb_imm(c->g->k, TY_I32, 0), 0);
        pt[j].direct = &d[j];
        pt[j].inside = sure;
        if (c->striped) {
            point_in_rows(&pt[j], 0, 1, c->edges[j]);
            continue;
        }
        point_is_of_vector(&pt[j], j, c->vector);
        point_in_rows(&pt[j], j, c->vector, c->edges[0]);
    }
}

static void take_points(struct columns *c, struct point *pt)
{
    points_store(pt, c->vector, c->g->c->aligned);
    for (int j = 0; j < c->vector; j++) {
        segment_enter(c->g, &c->seg[j]);
        if (c->settles)
            state_take_element(c->g, c->acc[j].x, c->acc[j].have, c->settled[j], point_map(&pt[j]));
        else
            partial_take(c->g, &c->acc[j], point_map(&pt[j]));
    }
}

/* `items` places from the first on, all of which exist. */
static void take_sure(struct columns *c, kb_val first)
{
    kb *k = c->g->k;
    kb_val place[SEG_ITEMS_MAX];
    struct direct d[SEG_ITEMS_MAX];
    struct point pt[GEN_VECTOR_MAX];
    for (int u = 0; u < c->items; u++) {
        place[u] = kb_add(k, first, kb_mul(k, c->step, u));
        load_place(c, place[u], c->g->c->aligned, &d[u * c->vector]);
    }
    for (int u = 0; u < c->items; u++) {
        place_points(c, place[u], true, &d[u * c->vector], pt);
        take_points(c, pt);
    }
}

/* `items` places from the first on; those after the end are the last one again, and do not count. */
static void take_round(struct columns *c, kb_val first)
{
    kb *k = c->g->k;
    kb_val place[SEG_ITEMS_MAX];
    struct direct d[SEG_ITEMS_MAX];
    for (int u = 0; u < c->items; u++) {
        place[u] = kb_add(k, first, kb_mul(k, c->step, u));
        if (!c->words)
            load_place(c, kb_min(k, place[u], kb_sub(k, c->hi, 1)), c->g->c->aligned, &d[u * c->vector]);
    }
    kb_if(k, kb_lt(k, place[c->items - 1], c->sure)) {
        if (c->words)
            load_shifted(c, place, true, d);
        struct point pt[SEG_ITEMS_MAX];
        for (int u = 0; u < c->items && c->g->p->sums; u++)
            place_points(c, place[u], true, &d[u * c->vector], &pt[u * c->vector]);
        if (c->g->p->sums)
            points_together(pt, c->items * c->vector, sizeof *pt);
        for (int u = 0; u < c->items; u++) {
            if (!c->g->p->sums)
                place_points(c, place[u], true, &d[u * c->vector], &pt[u * c->vector]);
            take_points(c, &pt[u * c->vector]);
        }
    }
    kb_else
    {
        if (c->words)
            load_shifted(c, place, false, d);
        for (int u = 0; u < c->items; u++) {
            kb_if(k, kb_lt(k, place[u], c->hi)) {
                struct point pt[GEN_VECTOR_MAX];
                place_points(c, place[u], false, &d[u * c->vector], pt);
                take_points(c, pt);
            }
        }
    }
}

/* The same where places follow each other and none of a map's is beyond an array: whole rounds, a power of two, then half
 * of one, a quarter, …, so that few places are not loaded as if they were a round. */
static void take_few(struct columns *c)
{
    kb *k = c->g->k;
    const int items = c->items;
    LET(count, kb_sub(k, c->hi, c->lo));
    LET(whole, kb_add(k, c->lo, kb_and(k, count, -items)));
    kb_for(k, first, c->lo, whole, items) {
        take_sure(c, first);
    }
    kb_val rest = whole;
    for (c->items = items / 2; c->items > 0; c->items /= 2) {
        const kb_val some = kb_ne(k, kb_and(k, count, c->items), 0);
        kb_if(k, some) {
            take_sure(c, rest);
        }
        rest = kb_add(k, rest, kb_and(k, count, c->items));
    }
    c->items = items;
}

/* ---- row groups -------------------------------------------------------------------------------------------------- */

/* Row groups that share a warp: `across` lanes each. Their total is in the first one. */
static void warp_rows(struct gen *g, struct partial *acc, int across)
{
    kb *k = g->k;
    for (int d = across; d < KB_WARP; d *= 2) {
        const kb_tup other = kb_shfl_down(k, kb_get(k, acc->x), d);
        const kb_val has = kb_shfl_down(k, kb_cast(k, kb_get(k, acc->have), TY_U32), d);
        const kb_val inside = kb_lt(k, kb_add(k, kb_lane(k), d), KB_WARP);
        partial_join(g, acc, other, kb_and(k, inside, kb_ne(k, has, 0)));
    }
}

/* Totals of `n` columns per thread of a row group, in thread t < across * n for column t, all groups having been
 * combined in order.  The columns of a thread belong to seg[0 … n).  The whole block arrives. */
static struct partial block_rows(struct gen *g, struct partial *acc, struct segment *seg, int n, int across,
                                 struct segment *mine)
{
    kb *k = g->k;
    const int threads = kb_threads(k);
    const int per_warp = across < KB_WARP ? KB_WARP / across : 1, groups = threads / across / per_warp;
    struct partial total = partial_new(g, "column");
    const kb_arr aggregates = state_shared(g, groups * across * n, "rows");
    const kb_ptr aggregates_has = kb_shared_v(k, TY_U32, groups * across * n, "rows_have");
    LET(group, kb_div(k, kb_tid(k), across * per_warp));
    LET(x, kb_and(k, kb_tid(k), across - 1));
    for (int j = 0; j < n; j++) {
        segment_enter(g, &seg[j]);
        warp_rows(g, &acc[j], across);
    }
    kb_if(k, kb_eq(k, kb_and(k, kb_div(k, kb_tid(k), across), per_warp - 1), 0)) {
        LET(slot, kb_mul(k, kb_add(k, kb_mul(k, group, across), x), n));
        for (int j = 0; j < n; j++) {
            kb_store(k, aggregates, kb_add(k, slot, j), kb_get(k, acc[j].x));
            kb_store(k, aggregates_has, kb_add(k, slot, j), kb_cast(k, kb_get(k, acc[j].have), TY_U32));
        }
    }
    kb_barrier(k);
    segment_enter(g, mine);
    kb_if(k, kb_lt(k, kb_tid(k), across * n)) {
        for (int i = 0; i < groups; i++) {
            const kb_val slot = kb_add(k, kb_tid(k), i * across * n);
            partial_join(g, &total, kb_load(k, aggregates, slot), kb_ne(k, kb_load(k, aggregates_has, slot), 0));
        }
    }
    return total;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* The segment of column j of vector q; vectors are numbered through the whole space.  Does it belong to no vector before? */
static kb_val open_column(struct gen *g, struct segment *seg, kb_val q, kb_val j)
{
    kb *k = g->k;
    const enum columns_of of = g->c->shift[0];
    const int width = of == COLUMNS_STRIPED ? 1 : gen_tunable(g, TN_VECTOR), last = g->p->rank - 1;
    if (of != COLUMNS_SHIFTED && segments_behind(g->p) == last && last > 1) { /* a reciprocal is there */
        kb_val number = kb_mul(k, q, width);
        const kb_val column = index_along(g, last, &number);
        segment_column(g, seg, number, kb_add(k, column, kb_cast(k, j, TY_I64)));
        return kb_true(k);
    }
    const kb_val per_outer = gen_value(g, VAL_VECTORS_ACROSS);
    const kb_val outer = kb_div(k, q, per_outer);
    const kb_val vector = kb_sub(k, q, kb_mul(k, outer, per_outer));
    if (of != COLUMNS_SHIFTED) {
        segment_column(g, seg, outer, kb_add(k, kb_mul(k, vector, width), kb_cast(k, j, TY_I64)));
        return kb_true(k);
    }
    const kb_val from = kb_mul(k, vector, width);
    const kb_val column = kb_add(k, kb_min(k, from, kb_sub(k, space_stride(g), width)), kb_cast(k, j, TY_I64));
    segment_column(g, seg, outer, column);
    return kb_ge(k, column, from);
}

/* The places of this thread in the part [from, to): all row groups have the same number, but for the last ones. */
static void my_places(struct columns *c, kb_val from, kb_val to)
{
    kb *k = c->g->k;
    const kb_val row = kb_cast(k, c->row, TY_I64);
    if (!c->ordered) {
        c->lo = kb_add(k, from, row);
        c->hi = to;
        c->step = kb_imm(k, TY_I64, c->rows);
        return;
    }
    LET(each, kb_div(k, kb_add(k, kb_sub(k, to, from), c->rows - 1), c->rows));
    c->lo = kb_min(k, kb_add(k, from, kb_mul(k, each, row)), to);
    c->hi = kb_min(k, kb_add(k, c->lo, each), to);
    c->step = kb_imm(k, TY_I64, 1);
}

static void columns_init(struct columns *c, struct gen *g)
{
    kb *k = g->k;
    *c = (struct columns){ .g = g,
                           .rows = gen_tunable(g, TN_ROWS),
                           .items = gen_tunable(g, TN_ITEMS),
                           .vector = gen_tunable(g, TN_VECTOR),
                           .ordered = !state_commutative(g->p),
                           .words = g->c->shift[0] == COLUMNS_SHIFTED && g->c->aligned,
                           .striped = g->c->shift[0] == COLUMNS_STRIPED,
                           .settles = settle_find(g->p, &(struct settle){ 0 }) };
    c->across = kb_threads(k) / c->rows;
    c->row = kb_div(k, kb_tid(k), c->across);
    c->x = kb_and(k, kb_tid(k), c->across - 1);
}

/* If words of the last place pass the end of the arrays, no round takes this place.  Is it this thread's? */
static kb_val hold_back(struct columns *c)
{
    enum { WORD = 4 }; /* elements, at most */
    struct gen *g = c->g;
    kb *k = g->k;
    const kb_val length = gen_value(g, VAL_LENGTH), last = kb_sub(k, length, 1);
    const kb_val element = kb_add(k, c->seg[0].element, kb_mul(k, last, space_stride(g)));
    const kb_val end = kb_mul(k, gen_value(g, VAL_SEGMENTS), length);
    const kb_val passes = kb_and(k, kb_eq(k, c->hi, length), kb_gt(k, kb_add(k, element, c->vector + WORD), end));
    const kb_val turn = kb_and(k, kb_sub(k, last, c->lo), kb_sub(k, c->step, 1)); /* steps are powers of two */
    LET(mine, kb_and(k, passes, kb_and(k, kb_lt(k, c->lo, c->hi), kb_eq(k, turn, 0))));
    c->hi = kb_sub(k, c->hi, kb_cast(k, passes, TY_I64));
    return mine;
}

/* Element by element. */
static void take_last(struct columns *c)
{
    struct direct d[GEN_VECTOR_MAX];
    struct point pt[GEN_VECTOR_MAX];
    const kb_val place = kb_sub(c->g->k, gen_value(c->g, VAL_LENGTH), 1);
    load_place(c, place, false, d);
    place_points(c, place, false, d, pt);
    take_points(c, pt);
}

/* All places of this thread. */
static void take_places(struct columns *c)
{
    struct gen *g = c->g;
    kb *k = g->k;
    const kb_val last = c->words ? hold_back(c) : kb_false(k);
    c->sure = points_inside(g, c->hi);
    /* Where columns are loaded one by one, places may be few.  Wide ones wait for memory, not for instructions. */
    enum { NARROW = 8 };
    const bool placed = c->sure.ir != c->hi.ir, alone = c->rows == 1 && !g->c->aligned && !c->words;
    const bool halves = (c->items & (c->items - 1)) == 0;
    if (alone && halves && access_vector_width(g->p) >= NARROW && !g->p->sums && !placed) {
        take_few(c);
        return;
    }
    kb_for(k, first, c->lo, c->hi, kb_mul(k, c->step, c->items)) {
        take_round(c, first);
    }
    if (c->words) {
        kb_if(k, last) {
            take_last(c);
        }
    }
}

/* Combine the places [from, to) of the columns of vector q0 + x; striped, of columns q0 * V + x, … + across + x, … */
static void columns_reduce(struct columns *c, kb_val q0, kb_val from, kb_val to)
{
    struct gen *g = c->g;
    kb *k = g->k;
    LET(vectors, gen_value(g, VAL_VECTORS));
    LET(q, kb_add(k, c->striped ? kb_mul(k, q0, c->vector) : q0, kb_cast(k, c->x, TY_I64)));
    c->exists = kb_lt(k, q, vectors);
    for (int j = 0; j < c->vector; j++) {
        const kb_val number = kb_add(k, q, c->striped ? j * c->across : 0),
                     of = kb_min(k, number, kb_sub(k, vectors, 1));
        c->own[j] = open_column(g, &c->seg[j], of, kb_imm(k, TY_I32, c->striped ? 0 : j));
        if (c->striped)
            c->own[j] = kb_lt(k, number, vectors);
        segment_enter(g, &c->seg[j]);
        c->acc[j] = partial_new(g, "acc");
        if (c->settles)
            c->settled[j] = kb_var_new(g->k, kb_false(g->k), "settled");
        if (!access_any_direct(g->p))
            segment_ahead(g, &c->seg[j]);
    }
    for (int j = 0; j < (c->striped ? c->vector : 1); j++)
        c->edges[j] = row_edges(g, &c->seg[j].here, c->striped ? 1 : c->vector);
    my_places(c, from, kb_select(k, c->exists, to, from));
    take_places(c);
}

/* The partials base + i * width of the parts that are this thread's, several of them in flight. */
static struct partial join_partials(struct columns *all, kb_val base, int width)
{
    struct gen *g = all->g;
    kb *k = g->k;
    const kb_arr partial = gen_partials(g);
    struct partial acc = partial_new(g, "parts");
    kb_for(k, i, all->lo, all->hi, PARTS_AT_ONCE) {
        kb_tup x[PARTS_AT_ONCE];
        for (int u = 0; u < PARTS_AT_ONCE; u++) {
            const kb_val there = kb_min(k, kb_add(k, i, u), kb_sub(k, all->hi, 1));
            x[u] = kb_load(k, partial, kb_add(k, base, kb_mul(k, there, width)));
        }
        for (int u = 0; u < PARTS_AT_ONCE; u++) {
            kb_if(k, kb_lt(k, kb_add(k, i, u), all->hi)) {
                partial_take(g, &acc, x[u]);
            }
        }
    }
    return acc;
}

/* The block with the last ticket of the columns combines the partials of all parts. */
static void combine_parts(struct columns *c, struct partial *total, kb_val group, kb_val part, kb_val parts,
                          struct segment *mine, kb_val has_column)
{
    struct gen *g = c->g;
    kb *k = g->k;
    const int width = c->across * c->vector;
    const kb_arr partial = gen_partials(g);
    const kb_val base = kb_mul(k, kb_mul(k, kb_cast(k, group, TY_I64), kb_cast(k, parts, TY_I64)), width);
    kb_if(k, kb_lt(k, kb_tid(k), width)) {
        const kb_val slot = kb_add(k, kb_mul(k, part, width), kb_tid(k));
        kb_store(k, partial, kb_add(k, base, kb_cast(k, slot, TY_I64)), kb_get(k, total->x));
    }
    kb_barrier(k); /* the first thread's ticket covers what all threads have written */
    kb_if(k, last_of_group(g, group, parts)) {
        struct columns all = { .g = g, .rows = kb_threads(k) / width, .ordered = true };
        all.row = kb_div(k, kb_tid(k), width);
        my_places(&all, kb_imm(k, TY_I64, 0), kb_cast(k, parts, TY_I64));
        segment_enter(g, mine);
        LET(x, kb_cast(k, kb_and(k, kb_tid(k), width - 1), TY_I64));
        struct partial acc = join_partials(&all, kb_add(k, base, x), width);
        struct partial sum = block_rows(g, &acc, mine, 1, width, mine);
        kb_if(k, has_column) {
            segment_store(g, mine, kb_get(k, sum.x));
        }
    }
}

/* A block per group of neighbouring columns, a thread for all places of its columns. */
static void whole_columns(struct columns *c)
{
    struct gen *g = c->g;
    kb *k = g->k;
    LET(q0, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), c->across));
    columns_reduce(c, q0, kb_imm(k, TY_I64, 0), gen_value(g, VAL_LENGTH));
    kb_if(k, c->exists) {
        for (int j = 0; j < c->vector; j++) {
            kb_if(k, c->own[j]) {
                segment_store(g, &c->seg[j], kb_get(k, c->acc[j].x));
            }
        }
    }
}

/* The block's group of columns, and its part of them.  Neighbouring blocks have neighbouring groups where these begin
 * anywhere, hence in the middle of what memory is read in. */
static void block_place(struct columns *c, kb_val parts, kb_val *group, kb_val *part)
{
    kb *k = c->g->k;
    const bool beside = access_any_direct(c->g->p) && (!c->g->c->aligned || c->words);
    const kb_val inner = beside ? kb_div(k, kb_blocks(k), parts) : parts;
    kb_val *high = beside ? part : group, *low = beside ? group : part;
    *high = kb_name(kb_div(k, kb_block(k), inner), beside ? "part" : "group");
    *low = kb_name(kb_sub(k, kb_block(k), kb_mul(k, *high, inner)), beside ? "group" : "part");
}

static void split_columns(struct columns *c)
{
    struct gen *g = c->g;
    kb *k = g->k;
    const int width = c->across * c->vector;
    LET(parts, gen_value(g, VAL_PARTS));
    kb_val group, part;
    block_place(c, parts, &group, &part);
    LET(q0, kb_mul(k, kb_cast(k, group, TY_I64), c->across));
    LET(length, gen_value(g, VAL_LENGTH));
    LET(from, kb_min(k, kb_mul(k, kb_cast(k, part, TY_I64), gen_value(g, VAL_CHUNK)), length));
    columns_reduce(c, q0, from, kb_min(k, kb_add(k, from, gen_value(g, VAL_CHUNK)), length));
    struct segment mine; /* the column that this thread finishes */
    LET(own, kb_div(k, kb_and(k, kb_tid(k), width - 1), c->vector));
    LET(j, kb_and(k, kb_tid(k), c->vector - 1));
    const kb_val x = c->striped ? kb_add(k, own, kb_mul(k, j, c->across)) : own;
    LET(q, kb_add(k, c->striped ? kb_mul(k, q0, c->vector) : q0, kb_cast(k, x, TY_I64)));
    LET(in_vector, kb_and(k, kb_lt(k, kb_tid(k), width), kb_lt(k, q, gen_value(g, VAL_VECTORS))));
    const kb_val first = open_column(g, &mine, kb_min(k, q, kb_sub(k, gen_value(g, VAL_VECTORS), 1)),
                                     c->striped ? kb_imm(k, TY_I32, 0) : j);
    const kb_val has_column = g->c->shift[0] == COLUMNS_SHIFTED ? kb_and(k, in_vector, first) : in_vector;
    struct partial total = block_rows(g, c->acc, c->seg, c->vector, c->across, &mine);
    kb_if(k, kb_eq(k, parts, 1)) {
        kb_if(k, has_column) {
            segment_store(g, &mine, kb_get(k, total.x));
        }
    }
    kb_else { combine_parts(c, &total, group, part, parts, &mine, has_column); }
}

void emit_segreduce_column(struct gen *g)
{
    struct columns *c = &(struct columns){ 0 };
    gen_wait_for_predecessor(g);
    columns_init(c, g);
    if (c->settles)
        kb_tighten_sums(g->k);
    if (c->rows == 1)
        whole_columns(c);
    else
        split_columns(c);
}
