/* SPDX-License-Identifier: Apache-2.0 */
/* strip_rows.c - a warp's 128 columns of a row, to and from memory.
 *
 * Rows whose length is no multiple of a vector begin anywhere.  A warp then reads the vectors from the boundary before
 * its columns on, and moves all values m columns down, m being the same for the warp: two rounds of shuffles and
 * selects, for m's two bits.  Results are moved up by the m of the output's row and written in whole vectors.  What is
 * lost on the right is in the halo.  At the right edge of the array, where there is no halo, lane 0, whose columns are
 * in the halo on the left, reads the vector after those of lane 31 for it.  What whole vectors leave of the first and
 * the last columns of a row is written one by one.  Rows that wrap around, and all in two dimensions, are read and
 * written so at their ends.
 */
#include "strip_gen.h"

static int bytes_of(const struct strip *s, const struct prog_array *a)
{
    const int bytes = (s->aligned ? V : strip_vector(a)) * a->stride;
    return bytes < 16 ? bytes : 16;
}

bool strip_sides_by_element(const struct strip *s)
{
    return !s->aligned && (!s->is.height || strip_wraps(s->g->p, s->g->p->rank - 1));
}

/* How far after a vector boundary the warp's columns of the row begin, i32. */
static kb_val misplaced(const struct strip *s, const struct prog_array *a, kb_val row)
{
    kb *k = s->g->k;
    const kb_val from = kb_cast(k, row, TY_I32);
    return kb_and(k, s->sides ? kb_add(k, from, s->begin) : from, strip_vector(a) - 1);
}

static bool moves(const struct strip *s, const struct prog_array *a) { return !s->aligned && strip_vector(a) > 1; }

/* Whole vectors at column x of a row that begins at p, element `row` of the array, whose end may be in one of them. */
static void load_to_the_end(const struct strip *s, int input, kb_ptr p, kb_val row, kb_val x, kb_val v[V])
{
    kb *k = s->g->k;
    const struct prog_array *a = &s->g->p->input[input].array;
    const kb_val first = kb_add(k, row, kb_cast(k, x, TY_I64)),
                 count = kb_mul(k, s->pitch, kb_cast(k, s->planes, TY_I64));
    const kb_var *column = s->moving[input];
    kb_if(k, kb_le(k, kb_add(k, first, V), count)) {
        kb_load_n(k, kb_advance(k, p, x), kb_imm(k, TY_I32, 0), V, bytes_of(s, a), v);
        for (int i = 0; i < V; i++)
            kb_set(k, column[i], v[i]);
    }
    kb_else
    {
        for (int i = 0; i < V - 1; i++)
            kb_if(k, kb_lt(k, kb_add(k, first, i), count)) {
                kb_set(k, column[i], kb_load(k, p, kb_add(k, x, i)));
            }
    }
    for (int i = 0; i < V; i++)
        v[i] = kb_get(k, column[i]);
}

/* The column that the lane's vector begins at, counted from element *row; from the vector boundary before on, where rows move. */
static kb_val first_column(const struct strip *s, const struct prog_array *a, kb_val *row)
{
    kb *k = s->g->k;
    const kb_val x = s->sides && s->aligned ? s->column[0] : s->x;
    if (!moves(s, a))
        return x;
    const kb_val m = misplaced(s, a, *row);
    *row = kb_sub(k, *row, kb_cast(k, m, TY_I64));
    if (!s->sides)
        return x;
    return kb_select(k, kb_and(k, kb_and(k, s->right, kb_ne(k, m, 0)), kb_eq(k, s->lane, 0)),
                     kb_add(k, s->begin, STRIP_WIDTH), x);
}

void strip_elements(const struct strip *s, int input, kb_val row, kb_val e[V])
{
    kb *k = s->g->k;
    const bool each = s->by_element;
    const kb_val x = each ? s->x : first_column(s, &s->g->p->input[input].array, &row);
    for (int i = 0; i < V; i++)
        e[i] = kb_add(k, row, kb_cast(k, each ? s->column[i] : kb_add(k, x, i), TY_I64));
}

void strip_load(const struct strip *s, int input, kb_val row, kb_val v[V])
{
    kb *k = s->g->k;
    const struct prog_array *a = &s->g->p->input[input].array;
    const kb_ptr array = gen_input(s->g, input);
    if (s->by_element) {
        const kb_ptr p = kb_advance(k, array, row);
        for (int i = 0; i < V; i++)
            v[i] = kb_load(k, p, s->column[i]);
        return;
    }
    const kb_val x = first_column(s, a, &row);
    const kb_ptr p = kb_advance(k, array, row);
    if (moves(s, a) && s->sides && s->ends)
        load_to_the_end(s, input, p, row, x, v);
    else
        kb_load_n(k, kb_advance(k, p, x), kb_imm(k, TY_I32, 0), V, bytes_of(s, a), v);
}

/* v[i] = v[i + n] of the row, if the bit is set. */
static void move_down(const struct strip *s, kb_val bit, int n, kb_val v[V])
{
    kb *k = s->g->k;
    kb_val next[V];
    for (int i = 0; i < n; i++)
        next[i] =
            s->sides ? kb_shfl_idx(k, v[i], kb_and(k, kb_add(k, s->lane, 1), KB_WARP - 1)) : kb_shfl_down(k, v[i], 1);
    for (int i = 0; i < V; i++)
        v[i] = kb_select(k, bit, i + n < V ? v[i + n] : next[i + n - V], v[i]);
}

static void move_up(kb *k, kb_val bit, int n, kb_val v[V])
{
    kb_val before[V];
    for (int i = 0; i < n; i++)
        before[i] = kb_shfl_up(k, v[V - n + i], 1);
    for (int i = V - 1; i >= 0; i--)
        v[i] = kb_select(k, bit, i >= n ? v[i - n] : before[i], v[i]);
}

/* All values so many columns up, fewer than a vector. */
static void up_by(const struct strip *s, const struct prog_array *a, kb_val m, kb_val v[V])
{
    kb *k = s->g->k;
    for (int n = 1; n < strip_vector(a); n *= 2)
        move_up(k, kb_ne(k, kb_and(k, m, n), 0), n, v);
}

void strip_shift(const struct strip *s, int input, kb_val row, kb_val v[V])
{
    kb *k = s->g->k;
    const struct prog_array *a = &s->g->p->input[input].array;
    if (s->by_element || !moves(s, a))
        return;
    const kb_val m = misplaced(s, a, row);
    for (int n = strip_vector(a) / 2; n > 0; n /= 2)
        move_down(s, kb_ne(k, kb_and(k, m, n), 0), n, v);
}

/* The columns of a row that whole vectors of its strip cover, where strips meet at vector boundaries, and those that
 * they leave: before them in a row's first strip, behind them in its last one. */
struct part {
    kb_val first, last, rest_first, rest_last;
};

static struct part part_of(const struct strip *s, const struct prog_array *a, kb_val row)
{
    kb *k = s->g->k;
    const int n = strip_vector(a) - 1;
    const kb_val from = kb_cast(k, row, TY_I32), m = kb_and(k, from, n), zero = kb_imm(k, TY_I32, 0);
    const kb_val begins = kb_eq(k, s->first, 0), ends = kb_eq(k, s->last, s->columns);
    const kb_val before = kb_and(k, kb_sub(k, zero, m), n),
                 behind = kb_sub(k, s->columns, kb_and(k, kb_add(k, from, s->columns), n));
    return (struct part){ .first = kb_select(k, begins, before, kb_sub(k, s->first, m)),
                          .last = kb_select(k, ends, behind, kb_sub(k, s->last, m)),
                          .rest_first = kb_select(k, begins, zero, behind),
                          .rest_last = kb_select(k, begins, before, kb_select(k, ends, s->columns, behind)) };
}

/* At the side of the array: whole vectors, and the columns that they leave. */
static void store_at_side(const struct strip *s, kb_ptr array, const struct prog_array *a, kb_val row,
                          const kb_val v[V])
{
    kb *k = s->g->k;
    const struct part part = part_of(s, a, row);
    const kb_ptr to = kb_advance(k, array, row);
    const kb_val m = misplaced(s, a, row), x = kb_sub(k, s->x, m);
    const int n = strip_vector(a);
    kb_val w[V];
    for (int i = 0; i < V; i++)
        w[i] = v[i];
    up_by(s, a, m, w);
    for (int i = 0; i < V; i += n) {
        const kb_val at = kb_add(k, x, i);
        kb_if(k, kb_and(k, kb_ge(k, at, part.first), kb_lt(k, at, part.last))) {
            kb_store_n(k, kb_advance(k, to, at), kb_imm(k, TY_I32, 0), n, bytes_of(s, a), w + i);
        }
    }
    for (int i = 0; i < V; i++) {
        const kb_val at = kb_add(k, s->x, i);
        kb_if(k, kb_and(k, kb_ge(k, at, part.rest_first), kb_lt(k, at, part.rest_last))) {
            kb_store(k, kb_advance(k, to, s->x), i, v[i]);
        }
    }
}

static void store_elements(const struct strip *s, kb_ptr p, const struct prog_array *a, kb_val row, const kb_val v[V])
{
    kb *k = s->g->k;
    const kb_val m = kb_and(k, kb_cast(k, row, TY_I32), strip_vector(a) - 1);
    const kb_val first = kb_select(k, kb_eq(k, s->first, 0), s->first, kb_sub(k, s->first, m));
    const kb_val last = kb_select(k, kb_eq(k, s->last, s->columns), s->last, kb_sub(k, s->last, m));
    for (int i = 0; i < V; i++) {
        const kb_val x = kb_add(k, s->x, i);
        kb_if(k, kb_and(k, kb_ge(k, x, first), kb_lt(k, x, last))) {
            kb_store(k, p, x, v[i]);
        }
    }
}

void strip_store(const struct strip *s, kb_ptr array, const struct prog_array *a, kb_val row, const kb_val v[V])
{
    kb *k = s->g->k;
    kb_val w[V];
    if (s->by_element) {
        store_elements(s, kb_advance(k, array, row), a, row, v);
        return;
    }
    if (s->sides && moves(s, a)) {
        store_at_side(s, array, a, row, v);
        return;
    }
    for (int i = 0; i < V; i++)
        w[i] = v[i];
    if (moves(s, a)) {
        const kb_val m = misplaced(s, a, row);
        row = kb_sub(k, row, kb_cast(k, m, TY_I64));
        up_by(s, a, m, w);
    }
    kb_if(k, kb_and(k, kb_ge(k, s->x, s->first), kb_lt(k, s->x, s->last))) {
        kb_store_n(k, kb_advance(k, kb_advance(k, array, row), s->x), kb_imm(k, TY_I32, 0), V, bytes_of(s, a), w);
    }
}

kb_val strip_plane(const struct strip *s, int input, kb_val z, kb_val *outside)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const enum boundary_mode mode = g->p->input[input].boundary[0].mode;
    kb_val inside = kb_true(k), at = z, other = kb_false(k);
    outside->ir = NULL;
    if (s->ends)
        z = boundary_index(k, mode, z, s->planes, &inside);
    if (s->ends && s->joined)
        z = strip_joined_plane(s, at, z, &other);
    if (s->ends && mode == BOUND_CONSTANT)
        *outside = kb_not(k, s->joined ? kb_or(k, inside, other) : inside);
    return kb_mul(k, kb_cast(k, z, TY_I64), s->pitch);
}
