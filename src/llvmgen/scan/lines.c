/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - see lines.h.
 *
 * Loads take whole vectors: the first and the last one of a tile may hold positions of its neighbours, which nothing
 * uses, and lanes after the last vector read it again.  So no lane branches, and all loads of a tile are in flight
 * together.  Only where the arrays end in the middle of a vector, that warp reads one element at a time.  Stores are
 * exact: a vector that is partly outside is written element by element.
 *
 * Where rows begin follows by index arithmetic (Clausen, "Regular Segmented Single-pass Scan in Futhark"): a lane knows
 * the distance from its vector to the next beginning, from line to line it shrinks by the length of a line, modulo the
 * length of a row.
 */
#include "lines.h"

#include <string.h>

static int line_size(const struct lines *l) { return KB_WARP * l->v; }

kb_val lines_place(const struct lines *l, int i) { return kb_add(l->g->k, l->own, i / l->v * line_size(l) + i % l->v); }

static kb_val inside(void *of, int i)
{
    const struct lines *l = of;
    kb *k = l->g->k;
    const kb_val p = lines_place(l, i);
    return kb_and(k, kb_ge(k, p, l->from), kb_lt(k, p, l->to));
}

/* ---- points ------------------------------------------------------------------------------------------------------ */

/* Quotient of 0 <= x and the length of a row; exact while x * length < 2^32. */
static kb_val row_of(struct lines *l, kb_val x)
{
    kb *k = l->g->k;
    const kb_val wide = kb_mul(k, kb_cast(k, x, TY_U64), l->rows->reciprocal);
    return kb_cast(k, kb_shr(k, wide, 32), TY_I32);
}

/* Of the row that the place is in: its distance from the row that begins at `origin`, in rows; the one before is -1. */
static kb_val row_at(struct lines *l, kb_val at)
{
    kb *k = l->g->k;
    const kb_val distance = kb_sub(k, at, l->rows->origin);
    return kb_select(k, kb_lt(k, distance, 0), kb_imm(k, TY_I32, -1), row_of(l, kb_max(k, distance, 0)));
}

/* The row of the place, counted in the order of memory. */
static kb_val row_number(struct lines *l, kb_val at)
{
    kb *k = l->g->k;
    const kb_val number = kb_add(k, l->rows->first, kb_cast(k, row_at(l, at), TY_I64));
    return l->g->p->reverse ? kb_sub(k, kb_sub(k, gen_value(l->g, VAL_SEGMENTS), 1), number) : number;
}

/* Indices that follow without division: of the segment, or of a matrix. */
static void set_indices(struct lines *l, struct point *pt, kb_val at)
{
    struct gen *g = l->g;
    kb *k = g->k;
    const int rank = g->p->rank;
    if (segments_in_pieces(g->p))
        pt->index[1] = l->rows ? row_number(l, at) : l->segment->here.index[1];
    if (scan_axes(g->p) != 1 || g->p->offsets >= 0)
        return;
    kb_val position = kb_add(k, l->base, kb_cast(k, at, TY_I64));
    if (l->rows) {
        if (rank != 2)
            return;
        const kb_val row = row_at(l, at), distance = kb_sub(k, at, l->rows->origin);
        const kb_val begun = kb_add(k, l->rows->before, kb_cast(k, at, TY_I64));
        pt->index[0] = row_number(l, at);
        position = kb_cast(k, kb_sub(k, distance, kb_mul(k, row, l->rows->length)), TY_I64);
        position = kb_select(k, kb_lt(k, row, 0), begun, position);
    } else {
        memcpy(pt->index, l->segment->here.index, sizeof pt->index);
    }
    pt->index[rank - 1] = g->p->reverse ? kb_sub(k, kb_sub(k, gen_value(g, VAL_LENGTH), 1), position) : position;
}

kb_val lines_way(struct lines *l, kb_val at)
{
    kb_val far = l->base;
    for (int i = 0; i < l->ngaps; i++)
        far = kb_add(l->g->k, far, gaps_at(l->g, &l->gaps[i], at).skipped);
    return far;
}

/* The element in the direction of the scan at the beginning of the segment, or of all of them. */
static kb_val start(struct lines *l)
{
    struct gen *g = l->g;
    kb *k = g->k;
    const struct scan_segment *s = l->segment;
    if (!g->p->reverse)
        return s->first;
    if (segments_in_pieces(g->p) && !l->rows)
        return kb_sub(k, kb_add(k, s->first, kb_sub(k, gen_value(g, VAL_COUNT), 1)), pieces_between(g));
    return kb_sub(k, kb_add(k, s->first, s->length), 1);
}

kb_val lines_element(struct lines *l, kb_val steps)
{
    kb *k = l->g->k;
    return l->g->p->reverse ? kb_sub(k, start(l), steps) : kb_add(k, start(l), steps);
}

/* The element at the place is this one plus the place, or minus it backwards. */
static kb_val element_base(struct lines *l, kb_val at) { return lines_element(l, lines_way(l, at)); }

static void line_point(void *of, struct point *pt, int i)
{
    struct lines *l = of;
    struct gen *g = l->g;
    point_init(pt, g, element_base(l, l->at[i]), g->p->reverse ? kb_neg(g->k, l->at[i]) : l->at[i], 0);
    set_indices(l, pt, l->at[i]);
    pt->direct = &l->direct[i];
    pt->state = &l->state[i];
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

kb_val lines_skew(struct gen *g, const struct scan_segment *s, int v, kb_val position)
{
    kb *k = g->k;
    if (segments_in_pieces(g->p))
        return kb_imm(k, TY_I64, 0);
    const kb_val element =
        g->p->reverse ? kb_sub(k, position, kb_add(k, s->first, s->length)) : kb_add(k, s->first, position);
    return kb_and(k, element, v - 1);
}

/* Number of the first element in memory of the vector at a place: base and offset. */
static kb_val vector_base(struct lines *l, kb_val at)
{
    kb *k = l->g->k;
    const struct scan_segment *s = l->segment;
    if (!l->g->p->reverse)
        return element_base(l, at);
    if (l->ngaps)
        return kb_sub(k, element_base(l, at), l->v - 1);
    return kb_sub(k, kb_sub(k, kb_add(k, s->first, s->length), l->v), l->base);
}

static kb_val vector_offset(struct lines *l, kb_val at) { return l->g->p->reverse ? kb_neg(l->g->k, at) : at; }

/* Place of the last vector that has a position inside. */
static kb_val last_vector(struct lines *l)
{
    kb *k = l->g->k;
    return kb_and(k, kb_sub(k, l->to, 1), -l->v);
}

/* Do all vectors of the tile lie within the arrays? */
static kb_val whole_vectors(struct lines *l)
{
    kb *k = l->g->k;
    LET(low, vector_base(l, kb_imm(k, TY_I32, 0)));
    LET(span, kb_cast(k, last_vector(l), TY_I64));
    const kb_val count = kb_sub(k, gen_value(l->g, VAL_COUNT), l->v);
    if (l->g->p->reverse)
        return kb_and(k, kb_ge(k, kb_sub(k, low, span), 0), kb_le(k, low, count));
    return kb_and(k, kb_ge(k, low, 0), kb_le(k, kb_add(k, low, span), count));
}

void lines_reverse(struct lines *l, int i, int v)
{
    for (int j = 0; l->g->p->reverse && j < v / 2; j++) {
        const struct direct t = l->direct[i + j];
        l->direct[i + j] = l->direct[i + v - 1 - j];
        l->direct[i + v - 1 - j] = t;
    }
}

static void load_vectors(struct lines *l)
{
    struct gen *g = l->g;
    kb *k = g->k;
    LET(last, last_vector(l));
    for (int i = 0; i < l->n * l->v; i += l->v) {
        const kb_val at = kb_min(k, lines_place(l, i), last);
        direct_load(g, vector_base(l, at), vector_offset(l, at), 0, l->v, g->c->aligned, &l->direct[i]);
        lines_reverse(l, i, l->v);
    }
}

static void load_elements(struct lines *l)
{
    for (int i = 0; i < l->n * l->v; i++) {
        struct point pt;
        line_point(l, &pt, i);
        direct_load(l->g, pt.base, pt.offset, pt.plus, 1, false, &l->direct[i]);
    }
}

static void places(struct lines *l)
{
    kb *k = l->g->k;
    for (int i = 0; i < l->n * l->v; i++)
        l->at[i] = kb_max(k, kb_min(k, lines_place(l, i), kb_sub(k, l->to, 1)), l->from);
    lines_find_gaps(l);
}

void lines_fetch(struct lines *l, struct direct_vars *ahead)
{
    kb *k = l->g->k;
    places(l);
    if (segments_in_pieces(l->g->p)) {
        lines_load_pieces(l);
        direct_keep(l->g, ahead, l->direct, l->n * l->v);
        return;
    }
    kb_if(k, whole_vectors(l)) {
        load_vectors(l);
        direct_keep(l->g, ahead, l->direct, l->n * l->v);
    }
    kb_else
    {
        load_elements(l);
        direct_keep(l->g, ahead, l->direct, l->n * l->v);
    }
}

void lines_take(struct lines *l, const struct direct_vars *ahead)
{
    places(l);
    direct_take(l->g, ahead, l->direct, l->n * l->v);
    if (lines_turned(l->g))
        lines_turn_direct(l);
}

void lines_load(struct lines *l)
{
    struct direct_vars inputs = { .declared = false };
    lines_fetch(l, &inputs);
    lines_take(l, &inputs);
}

/* ---- where segments begin ---------------------------------------------------------------------------------------- */

/* A tile of one segment: at its first place, if at all. */
static void single_head(struct lines *l)
{
    kb *k = l->g->k;
    for (int i = 0; i < l->n * l->v; i++) {
        l->head[i] = l->tail[i] = kb_false(k);
        if (i < l->v)
            l->head[i] = kb_and(k, l->is_start, kb_eq(k, lines_place(l, i), l->from));
    }
}

/* Beginnings in the vector of line u, the first one at distance `next`, and the ends before them. */
static void vector_heads(struct lines *l, int u, kb_val next)
{
    kb *k = l->g->k;
    for (int j = 0; j <= l->v; j++) {
        const kb_val begins = kb_eq(k, next, j);
        if (j < l->v)
            l->head[u * l->v + j] = begins;
        if (j > 0)
            l->tail[u * l->v + j - 1] = begins;
        next = kb_select(k, begins, kb_add(k, next, l->rows->length), next);
    }
}

/* Heads of all lines; first[u]: distance from the lane's vector in line u to the next one. */
static void row_heads(struct lines *l, kb_val *first)
{
    kb *k = l->g->k;
    const kb_val length = l->rows->length, size = kb_imm(k, TY_I32, line_size(l));
    LET(beyond, kb_sub(k, l->own, l->rows->origin));
    LET(before, kb_lt(k, beyond, 0)); /* the first row begins within the vector */
    const kb_val distance = kb_select(k, before, kb_neg(k, beyond), beyond);
    LET(rest, kb_sub(k, distance, kb_mul(k, row_of(l, distance), length)));
    const kb_val wait = kb_select(k, kb_eq(k, rest, 0), rest, kb_sub(k, length, rest));
    LET(step, kb_sub(k, size, kb_mul(k, row_of(l, size), length)));
    kb_val next = kb_select(k, before, rest, wait);
    first[0] = kb_select(k, before, distance, wait);
    for (int u = 0; u < l->n; u++) {
        if (u > 0) {
            const kb_val less = kb_sub(k, next, step);
            first[u] = next = kb_select(k, kb_lt(k, less, 0), kb_add(k, less, length), less);
        }
        vector_heads(l, u, first[u]);
    }
}

/* By the map of the tile's places. */
static void marked_heads(struct lines *l)
{
    kb *k = l->g->k;
    const int v = l->v;
    for (int i = 0; i < l->n * v; i++) {
        const kb_val p = lines_place(l, i / v * v);
        l->head[i] = block_marked(l->g, *l->marks, p, i % v, v);
        l->tail[i] = kb_false(k);
    }
}

/* ---- scanning ---------------------------------------------------------------------------------------------------- */

struct run lines_total(struct lines *l)
{
    struct gen *g = l->g;
    kb *k = g->k;
    const bool cuts = l->rows || l->marks;
    kb_val first[SCAN_ITEMS_MAX];
    if (l->rows)
        row_heads(l, first);
    else if (l->marks)
        marked_heads(l);
    else
        single_head(l);
    struct run total = run_none(g);
    for (int u = 0; u < l->n; u++) {
        struct run own = run_none(g);
        for (int j = 0; j < l->v; j++) {
            struct point pt;
            const int i = u * l->v + j;
            line_point(l, &pt, i);
            l->x[i] = point_map(&pt);
            if (cuts || u == 0)
                l->x[i] = state_with_init(g, l->head[i], l->x[i]);
            own = run_join(g, own, run_of(g, l->x[i], l->head[i]));
            if (l->rows)
                own.cut = kb_le(k, first[u], j);
            else if (!l->marks)
                own.cut = kb_false(k); /* what precedes the first place belongs to no lane */
            l->upto[i] = own;
        }
        l->in_line[u] = warp_scan_exclusive(g, own, cuts, &l->line[u]);
        total = run_join(g, total, l->line[u]);
    }
    return total;
}

void lines_scan(struct lines *l, struct run before)
{
    struct gen *g = l->g;
    kb *k = g->k;
    for (int u = 0; u < l->n; u++) {
        const struct run own = run_join(g, before, l->in_line[u]);
        for (int j = 0; j < l->v; j++) {
            const int i = u * l->v + j;
            const kb_tup left = j ? l->result[i - 1] : own.x;
            l->result[i] = l->state[i] = run_join(g, own, l->upto[i]).x;
            if (g->p->exclusive) {
                const kb_val begins = j ? l->head[i] : kb_or(k, l->head[i], kb_not(k, own.some));
                l->state[i] = kb_select(k, begins, state_start(g), left);
            }
        }
        before = run_join(g, before, l->line[u]);
    }
}

/* ---- storing ----------------------------------------------------------------------------------------------------- */

static enum store_way line_way(void *of, int output)
{
    const struct lines *l = of;
    if (l->leaving && scan_turns_pieces(l->g->p, output))
        return STORE_KEPT;
    return access_output_vector(l->g->p, output) ? STORE_TOGETHER : STORE_ALONE;
}

/* The vector from position i on. */
static void store_vector(void *of, int output, int i, kb_val *x)
{
    struct lines *l = of;
    struct gen *g = l->g;
    kb *k = g->k;
    const kb_ptr out = gen_output(g, output);
    const kb_val at = lines_place(l, i);
    if (lines_turned(g)) {
        lines_store_across(l, out, i, x);
        return;
    }
    kb_if(k, kb_and(k, kb_ge(k, at, l->from), kb_le(k, kb_add(k, at, l->v), l->to))) {
        turn_values(g, x, l->v);
        const kb_ptr p = kb_advance(k, kb_advance(k, out, vector_base(l, at)), vector_offset(l, at));
        output_store_vector(g, output, p, l->v, g->c->aligned, x);
        turn_values(g, x, l->v);
    }
    kb_else
    {
        for (int j = 0; j < l->v && l->v > 1; j++)
            kb_if(k, inside(l, i + j)) {
                struct point pt;
                line_point(l, &pt, i + j);
                kb_store(k, out, point_linear(&pt), x[j]);
            }
    }
}

void lines_store(struct lines *l)
{
    const struct places places = { l->g, l, l->n * l->v, l->v, line_point, inside, line_way, store_vector, lines_keep };
    places_store(&places);
    if (l->leaving)
        lines_leave(l);
}

void lines_store_totals(struct lines *l)
{
    struct gen *g = l->g;
    kb *k = g->k;
    for (int i = 0; i < l->n * l->v; i++)
        kb_if(k, kb_and(k, l->tail[i], inside(l, i))) {
            struct scan_segment s;
            segment_open(g, &s, row_number(l, l->at[i]));
            segment_finish(g, &s, l->result[i], kb_false(k));
            g->here = NULL; /* operators read nothing that differs between rows */
        }
}

kb_tup lines_last(struct lines *l, kb_val *mine)
{
    kb *k = l->g->k;
    const kb_val last = kb_sub(k, l->to, 1);
    kb_tup x = l->result[0];
    *mine = kb_eq(k, lines_place(l, 0), last);
    for (int i = 1; i < l->n * l->v; i++) {
        const kb_val here = kb_eq(k, lines_place(l, i), last);
        x = kb_select(k, here, l->result[i], x);
        *mine = kb_or(k, *mine, here);
    }
    return x;
}
