/* SPDX-License-Identifier: Apache-2.0 */
/* strip_rows.c - a warp's 128 columns of a row, to and from memory.
 *
 * Rows whose length is no multiple of a vector begin anywhere.  A warp then reads the vectors from the boundary before
 * its columns on, and moves all values m columns down, m being the same for the warp: two rounds of shuffles and
 * selects, for m's two bits.  Results are moved up by the m of the output's row and written in whole vectors.  What is
 * lost on the right is in the halo.  At the edges of the array, where there is no halo, columns go one by one.
 */
#include "strip_gen.h"

static int bytes_of(const struct strip *s, const struct prog_array *a)
{
    const int bytes = (s->aligned ? V : strip_vector(a)) * a->stride;
    return bytes < 16 ? bytes : 16;
}

static bool by_element(const struct strip *s) { return s->sides && !s->aligned; }

/* How far behind a vector boundary the row begins, i32. */
static kb_val misplaced(const struct strip *s, const struct prog_array *a, kb_val row)
{
    kb *k = s->g->k;
    return kb_and(k, kb_cast(k, row, TY_I32), strip_vector(a) - 1);
}

static bool moves(const struct strip *s, const struct prog_array *a) { return !s->aligned && strip_vector(a) > 1; }

void strip_load(const struct strip *s, kb_ptr array, const struct prog_array *a, kb_val row, kb_val v[V])
{
    kb *k = s->g->k;
    if (by_element(s)) {
        const kb_ptr p = kb_advance(k, array, row);
        for (int i = 0; i < V; i++)
            v[i] = kb_load(k, p, s->column[i]);
        return;
    }
    if (moves(s, a))
        row = kb_sub(k, row, kb_cast(k, misplaced(s, a, row), TY_I64));
    const kb_val x = s->sides ? s->column[0] : s->x;
    kb_load_n(k, kb_advance(k, kb_advance(k, array, row), x), kb_imm(k, TY_I32, 0), V, bytes_of(s, a), v);
}

/* v[i] = v[i + n] of the row, if the bit is set. */
static void move_down(kb *k, kb_val bit, int n, kb_val v[V])
{
    kb_val next[V];
    for (int i = 0; i < n; i++)
        next[i] = kb_shfl_down(k, v[i], 1);
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

void strip_shift(const struct strip *s, const struct prog_array *a, kb_val row, kb_val v[V])
{
    kb *k = s->g->k;
    if (by_element(s) || !moves(s, a))
        return;
    const kb_val m = misplaced(s, a, row);
    for (int n = strip_vector(a) / 2; n > 0; n /= 2)
        move_down(k, kb_ne(k, kb_and(k, m, n), 0), n, v);
}

static void store_elements(const struct strip *s, kb_ptr p, kb_val m, const kb_val v[V])
{
    kb *k = s->g->k;
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
    if (by_element(s)) {
        store_elements(s, kb_advance(k, array, row), misplaced(s, a, row), v);
        return;
    }
    for (int i = 0; i < V; i++)
        w[i] = v[i];
    if (moves(s, a)) {
        const kb_val m = misplaced(s, a, row);
        row = kb_sub(k, row, kb_cast(k, m, TY_I64));
        for (int n = 1; n < strip_vector(a); n *= 2)
            move_up(k, kb_ne(k, kb_and(k, m, n), 0), n, w);
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
    kb_val inside = kb_imm(k, TY_BOOL, 1);
    outside->ir = NULL;
    if (s->ends)
        z = boundary_index(k, mode, z, s->planes, &inside);
    if (s->ends && mode == BOUND_CONSTANT)
        *outside = kb_not(k, inside);
    return kb_mul(k, kb_cast(k, z, TY_I64), s->pitch);
}
