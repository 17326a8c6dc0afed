/* SPDX-License-Identifier: Apache-2.0 */
/* bins_walk.c - elements that are no array's: pairs, say, whose indices of bins are computed from a few values of each
 * partner.
 *
 *     space:   [outer][walk][last]           a column is the elements with the same indices but that along `walk`
 *     strip:   as many neighbouring columns as a block has threads, ROUNDS rounds of places along `walk`
 *
 * Strips go round-robin to the blocks.  Where there are fewer columns than threads, several places are side by side.  A
 * thread computes once what belongs to its column; the threads of a warp mostly share the place, hence loads of what
 * belongs to that.  No element's number is divided.  Small tables, such as the limits of the bins, lie in shared memory:
 * addresses of 32 bits.
 */
#include "bins.h"

#include <string.h>

enum { ROUNDS = 4, TABLE_MOST = 256 };

struct walk {
    struct bins *b;
    int axis;              /* that threads walk along */
    kb_val columns;        /* i64: of the space */
    kb_val width, at_once; /* i32: columns of a strip, places side by side */
    kb_val place, x;       /* i32: this thread's, of these places, and its column in the strip */
    kb_val works, exists;  /* bool: it has such a place; a column too */
    struct point column;   /* element of the column at hand */
};

/* Elements of a table that at() reads and whose size is known; 0: it is none, or too large. */
static int table_elements(const struct input *in)
{
    int64_t n = in->placed && !*in->array.field[0].name ? 1 : 0;
    for (int d = 0; d < in->array.rank && n <= TABLE_MOST; d++)
        n *= in->array.dim[d].size < 0 ? in->array.dim[d].add : 0;
    return n <= TABLE_MOST ? (int)n : 0;
}

void bins_share_tables(struct gen *g)
{
    kb *k = g->k;
    for (int i = 0; i < g->p->ninputs && bins_walks(g->p); i++) {
        const int n = table_elements(&g->p->input[i]);
        if (!n)
            continue;
        const kb_ptr shared = kb_shared_v(k, g->pointer[i].ty, n, "values");
        kb_for(k, at, kb_tid(k), n, kb_threads(k)) {
            kb_store(k, shared, at, kb_load(k, g->pointer[i], at));
        }
        g->pointer[i] = shared;
    }
}

bool bins_walks(const struct problem *p) { return p->rank > 1 && !access_any_direct(p); }

static void walk_begin(struct walk *w, struct bins *b)
{
    struct gen *g = b->g;
    kb *k = g->k;
    const kb_val threads = kb_imm(k, TY_I32, kb_threads(k));
    *w = (struct walk){ .b = b, .axis = g->p->rank - 2, .columns = kb_imm(k, TY_I64, 1) };
    for (int d = 0; d < g->p->rank; d++)
        w->columns = d == w->axis ? w->columns : kb_mul(k, w->columns, gen_extent(g, &g->p->space[d].extent));
    w->width = kb_name(kb_cast(k, kb_max(k, kb_min(k, w->columns, kb_threads(k)), 1), TY_I32), "width");
    w->at_once = kb_name(kb_div(k, threads, w->width), "at_once");
    LET(place, kb_div(k, kb_tid(k), w->width));
    w->x = kb_sub(k, kb_tid(k), kb_mul(k, place, w->width));
    w->works = kb_lt(k, place, w->at_once);
    w->place = kb_select(k, w->works, place, kb_imm(k, TY_I32, 0)); /* where threads without one may read */
}

/* The thread's column of group number `group`; those that do not exist repeat the last one. */
static void open_column(struct walk *w, kb_val group)
{
    struct gen *g = w->b->g;
    kb *k = g->k;
    LET(own, kb_add(k, kb_mul(k, group, kb_cast(k, w->width, TY_I64)), kb_cast(k, w->x, TY_I64)));
    kb_val index[SPACE_MAX], number = kb_min(k, own, kb_sub(k, w->columns, 1));
    w->exists = kb_and(k, w->works, kb_lt(k, own, w->columns));
    for (int d = g->p->rank - 1; d >= 0; d--) {
        if (d == w->axis)
            index[d] = kb_imm(k, TY_I64, 0);
        else if (d == 0 || (d == 1 && w->axis == 0))
            index[d] = number;
        else
            index[d] = index_along(g, d, &number);
    }
    point_init(&w->column, g, kb_imm(k, TY_I64, 0), kb_imm(k, TY_I32, 0), 0);
    memcpy(w->column.index, index, sizeof index);
    point_ahead(&w->column, 1u << w->axis);
}

static void add_place(struct walk *w, kb_val place, kb_val valid, int turn)
{
    struct gen *g = w->b->g;
    struct point pt;
    kb_val index[SPACE_MAX];
    memcpy(index, w->column.index, sizeof index);
    index[w->axis] = place;
    point_init(&pt, g, space_linear(g, index), kb_imm(g->k, TY_I32, 0), 0);
    memcpy(pt.index, index, sizeof index);
    pt.env.sum = w->column.env.sum;
    bins_add_point(w->b, &pt, kb_and(g->k, w->exists, valid), turn);
}

/* The places [from, to) of the columns at hand, `items` of each thread at once if there are `chunk` of them. */
static void add_places(struct walk *w, kb_val from, kb_val to, kb_val chunk)
{
    kb *k = w->b->g->k;
    const int items = gen_tunable(w->b->g, TN_ITEMS);
    const kb_val at_once = kb_cast(k, w->at_once, TY_I64), own = kb_cast(k, w->place, TY_I64);
    LET(whole, kb_select(k, kb_eq(k, kb_sub(k, to, from), chunk), to, from));
    kb_for(k, first, from, whole, kb_mul(k, at_once, items)) {
        for (int u = 0; u < items; u++)
            add_place(w, kb_add(k, kb_add(k, first, own), kb_mul(k, at_once, u)), kb_true(k),
                      u ? BINS_NEXT : BINS_FIRST);
    }
    kb_for(k, first, whole, to, at_once) {
        LET(place, kb_add(k, first, own));
        add_place(w, kb_min(k, place, kb_sub(k, to, 1)), kb_lt(k, place, to), BINS_NEXT);
    }
}

void bins_walk(struct bins *b)
{
    struct gen *g = b->g;
    kb *k = g->k;
    struct walk w;
    kb_val block, blocks;
    walk_begin(&w, b);
    bins_blocks(b, &block, &blocks);
    const kb_val extent = gen_extent(g, &g->p->space[w.axis].extent), width = kb_cast(k, w.width, TY_I64);
    LET(chunk, kb_cast(k, kb_mul(k, w.at_once, ROUNDS * gen_tunable(g, TN_ITEMS)), TY_I64));
    LET(chunks, kb_div(k, kb_add(k, extent, kb_sub(k, chunk, 1)), chunk));
    LET(groups, kb_div(k, kb_add(k, w.columns, kb_sub(k, width, 1)), width));
    kb_section(k, "strips");
    kb_for(k, t, block, kb_mul(k, groups, chunks), blocks) {
        LET(group, kb_div(k, t, chunks));
        LET(from, kb_mul(k, kb_sub(k, t, kb_mul(k, group, chunks)), chunk));
        open_column(&w, group);
        add_places(&w, from, kb_min(k, kb_add(k, from, chunk), extent), chunk);
    }
}
