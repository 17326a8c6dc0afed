/* SPDX-License-Identifier: Apache-2.0 */
/* lines_pieces.c - tiles in lines of segments that consist of pieces.
 *
 * Gaps lie between the pieces.  A lane takes places of equal distances, so from one to the next it adds one of two numbers.
 * Vectors are moved as such where pieces consist of whole ones.  Elsewhere consecutive positions are moved one by one, and
 * lanes exchange them:
 *
 *     memory's side     lane after lane has neighbouring elements: place 32 j + lane of a line
 *     the lanes' side   place v x lane + j
 *
 * Every warp has shared memory of its own, in which elements change sides.  An element after every 32 is left free, so
 * that neither side meets a bank twice, with whatever power of two v.
 */
#include "lines.h"

enum { ROW = KB_WARP + 1 };

bool lines_turned(const struct gen *g)
{
    return segments_in_pieces(g->p) && !g->c->aligned && gen_tunable(g, TN_VECTOR) > 1;
}

static int lines_elements(const struct gen *g) { return gen_tunable(g, TN_ITEMS) * gen_tunable(g, TN_VECTOR); }

kb_ptr lines_turn_new(struct gen *g)
{
    kb *k = g->k;
    if (!lines_turned(g))
        return (kb_ptr){ .ir = NULL };
    const int each = ROW * lines_elements(g) * access_widest(g->p);
    const kb_ptr all = kb_shared_v(k, TY_U8, kb_threads(k) / KB_WARP * each, "turn");
    return kb_advance(k, all, kb_mul(k, kb_warp(k), each));
}

/* Value i of memory's side, of the lanes' side; from the line's beginning. */
static kb_val memory_side(const struct lines *l, int i) { return kb_add(l->g->k, kb_lane(l->g->k), ROW * i); }
static kb_val lanes_side(const struct lines *l, int i)
{
    kb *k = l->g->k;
    const kb_val first = kb_mul(k, kb_lane(k), l->v);
    return kb_add(k, kb_add(k, first, kb_div(k, first, KB_WARP)), ROW * (i - i % l->v) + i % l->v);
}

/* Slots are as wide as the widest value, so that a lane has the same ones whatever the type: then it may write those of a
 * side that it has just read, without waiting for others. */
static kb_ptr slot(const struct lines *l, kb_val number, enum ty type)
{
    kb *k = l->g->k;
    return ptr_as(kb_advance(k, l->turn, kb_mul(k, number, access_widest(l->g->p))), type);
}

/* Place of value i of memory's side. */
static kb_val memory_place(const struct lines *l, int i)
{
    kb *k = l->g->k;
    return kb_add(k, kb_sub(k, l->own, kb_mul(k, kb_lane(k), l->v - 1)), KB_WARP * i);
}

/* n values, of whole lines from value `first` on, change sides.  The warp arrives. */
static void turn(const struct lines *l, bool to_memory, int first, int n, kb_val *x)
{
    kb *k = l->g->k;
    const enum ty type = x[0].ty;
    for (int i = 0; i < n; i++)
        kb_store(k, slot(l, to_memory ? lanes_side(l, first + i) : memory_side(l, first + i), type), 0, x[i]);
    kb_warp_sync(k); /* all values are there */
    for (int i = 0; i < n; i++)
        x[i] = kb_load(k, slot(l, to_memory ? memory_side(l, first + i) : lanes_side(l, first + i), type), 0);
}

void lines_turn_direct(struct lines *l)
{
    const int n = l->n * l->v;
    kb_val x[SCAN_ITEMS_MAX];
    l->turned = false;
    for (int f = 0; f < access_direct_fields(l->g->p); f++) {
        if (f > 0)
            kb_warp_sync(l->g->k); /* all lanes have read the field before */
        for (int i = 0; i < n; i++)
            x[i] = l->direct[i].v[f];
        turn(l, false, 0, n, x);
        for (int i = 0; i < n; i++)
            l->direct[i].v[f] = x[i];
    }
}

/* ---- gaps -------------------------------------------------------------------------------------------------------- */

void lines_find_gaps(struct lines *l)
{
    struct gen *g = l->g;
    kb *k = g->k;
    l->ngaps = segments_in_pieces(g->p) ? 1 + (l->rows != NULL) : 0;
    if (!l->ngaps)
        return;
    l->gaps[0] = pieces_from(g, l->base);
    if (!l->rows)
        return;
    const kb_val size = gen_extent(g, &g->p->space[2].extent);
    /* Rows begin with a piece, which lies before the last piece of the row before. */
    l->gaps[0].skipped = kb_sub(k, kb_mul(k, l->rows->first, size), l->base);
    l->gaps[0].next = l->gaps[0].every;
    l->gaps[1] = (struct gaps){ .every = l->rows->length,
                                .reciprocal = l->rows->reciprocal,
                                .size = kb_sub(k, size, gen_value(g, VAL_COUNT)),
                                .skipped = kb_imm(k, TY_I64, 0),
                                .next = l->rows->length };
}

/* Elements at places of equal distances, where segments consist of pieces. */
struct walk {
    struct lines *l;
    struct gaps gaps[LINE_GAPS_MAX];
    kb_val at, element;
    int distance;
};
static struct walk walk_new(struct lines *l, kb_val at, int distance)
{
    struct walk w = { .l = l, .at = at, .distance = distance };
    for (int n = 0; n < l->ngaps; n++)
        w.gaps[n] = gaps_at(l->g, &l->gaps[n], at);
    w.element = lines_element(l, kb_add(l->g->k, lines_way(l, at), kb_cast(l->g->k, at, TY_I64)));
    return w;
}

static void walk_on(struct walk *w)
{
    kb *k = w->l->g->k;
    for (int n = 0; n < w->l->ngaps; n++) {
        const kb_val on = gaps_pass(w->l->g, &w->gaps[n], w->distance, n == 0 ? w->distance : 0);
        w->element = w->l->g->p->reverse ? kb_sub(k, w->element, on) : kb_add(k, w->element, on);
    }
    w->at = kb_add(k, w->at, w->distance);
}

void lines_load_pieces(struct lines *l)
{
    struct gen *g = l->g;
    kb *k = g->k;
    const bool turned = lines_turned(g);
    const int v = turned ? 1 : l->v;
    struct walk w = walk_new(l, turned ? memory_place(l, 0) : l->own, KB_WARP * v);
    LET(outside, lines_element(l, lines_way(l, kb_imm(k, TY_I32, 0))));
    for (int i = 0; i < l->n * l->v; i += v) {
        const kb_val there = kb_select(k, kb_lt(k, w.at, l->to), w.element, outside);
        direct_load(g, g->p->reverse ? kb_sub(k, there, v - 1) : there, kb_imm(k, TY_I32, 0), 0, v, g->c->aligned,
                    &l->direct[i]);
        lines_reverse(l, i, v);
        walk_on(&w);
    }
}

void lines_store_across(struct lines *l, kb_ptr out, int i, kb_val *x)
{
    kb *k = l->g->k;
    struct walk w = walk_new(l, memory_place(l, i), KB_WARP);
    if (l->turned && l->n == 1)
        kb_warp_sync(k); /* all lanes have read the output before; of several lines, another one was turned since */
    l->turned = true;
    turn(l, true, i, l->v, x);
    for (int j = 0; j < l->v; j++) {
        kb_if(k, kb_lt(k, w.at, l->to)) {
            kb_store(k, out, w.element, x[j]);
        }
        walk_on(&w);
    }
}
