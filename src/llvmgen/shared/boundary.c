/* SPDX-License-Identifier: Apache-2.0 */
/* boundary.c - which element stands for one beyond the edge, and neighbours along the last axis of points that are side
 * by side.
 *
 * Any distance beyond the edge has an answer; within one period of it, which is all that kernels meet on ordinary
 * extents, no division is executed.
 */
#include "gen.h"
#include "lower/access.h"

/* i mod n in [0, n). */
static kb_val wrap(kb *k, kb_val i, kb_val n)
{
    const kb_val lifted = kb_select(k, kb_lt(k, i, 0), kb_add(k, i, n), i);
    const kb_val near = kb_select(k, kb_ge(k, lifted, n), kb_sub(k, lifted, n), lifted);
    kb_var m = kb_var_new(k, near, "wrapped");
    kb_if(k, kb_or(k, kb_lt(k, near, 0), kb_ge(k, near, n))) {
        const kb_val r = kb_rem(k, i, n);
        kb_set(k, m, kb_select(k, kb_lt(k, r, 0), kb_add(k, r, n), r));
    }
    return kb_get(k, m);
}

kb_val boundary_index(kb *k, enum boundary_mode mode, kb_val i, kb_val n, kb_val *inside)
{
    const kb_val last = kb_sub(k, n, 1);
    const kb_val clamped = kb_min(k, kb_max(k, i, 0), last);
    switch (mode) {
    case BOUND_WRAP: return wrap(k, i, n);
    case BOUND_REFLECT: { /* period 2n: d c b a | a b c d | d c b a */
        const kb_val m = wrap(k, i, kb_add(k, n, n));
        return kb_min(k, m, kb_sub(k, kb_sub(k, kb_add(k, n, n), 1), m));
    }
    case BOUND_MIRROR: { /* period 2n - 2: d c b | a b c d | c b a */
        const kb_val period = kb_max(k, kb_add(k, last, last), 1);
        const kb_val m = wrap(k, i, period);
        return kb_min(k, m, kb_sub(k, period, m));
    }
    case BOUND_CONSTANT: *inside = kb_and(k, *inside, kb_eq(k, clamped, i)); return clamped;
    case BOUND_CLAMP:
    case BOUND_INTERIOR: break;
    }
    return clamped;
}

/* ---- neighbours of points that are side by side ------------------------------------------------------------------ */

enum { BITS = 32 };

/* Do segments, or columns, go on from one row of the arrays to the next?  Otherwise a vector lies inside a row. */
static bool rows_go_on(const struct problem *p)
{
    return p->rank > 1 && p->space[p->rank - 1].reduced == p->space[p->rank - 2].reduced;
}

void point_is_of_vector(struct point *pt, int j, int n)
{
    if (rows_go_on(pt->g->p))
        return;
    pt->before = j;
    pt->after = n - 1 - j;
}

/* Bits 0, extent, 2 extent, … up to n at least. */
static kb_val multiples(kb *k, kb_val extent, int n)
{
    const kb_val apart = kb_cast(k, kb_min(k, extent, BITS - 1), TY_U32);
    kb_val bits = kb_imm(k, TY_U32, 1);
    for (int many = 1; many <= n; many *= 2)
        bits = kb_or(k, bits, kb_shl(k, bits, kb_min(k, kb_mul(k, apart, many), BITS - 1)));
    return bits;
}

kb_val row_edges(struct gen *g, struct point *pt, int n)
{
    kb *k = g->k;
    if (!access_beside(g->p) || g->p->rank == 1 || g->p->offsets >= 0 || g->p->kind != KIND_REDUCE)
        return (kb_val){ .ir = NULL };
    const kb_val index = point_index(pt, g->p->rank - 1);
    const kb_val extent = gen_extent(g, &g->p->space[g->p->rank - 1].extent), none = kb_imm(k, TY_U32, 0);
    const kb_val begins = kb_eq(k, index, 0), ends = kb_eq(k, kb_add(k, index, n), extent);
    if (!rows_go_on(g->p)) /* nowhere but at both ends; which are not asked for are not computed */
        return kb_or(k, kb_select(k, begins, kb_imm(k, TY_U32, 1), none),
                     kb_select(k, ends, kb_imm(k, TY_U32, INT64_C(1) << n), none));
    const kb_val left = kb_select(k, begins, kb_imm(k, TY_I64, 0), kb_sub(k, extent, index));
    const kb_val next = kb_cast(k, kb_min(k, left, BITS - 1), TY_U32);
    return kb_name(kb_shl(k, multiples(k, extent, n), next), "edges");
}

void point_in_rows(struct point *pt, int j, int n, kb_val edges)
{
    pt->edges = edges;
    pt->at = j;
    pt->of = n;
}

kb_val row_begins(kb *k, kb_val edges, int i) { return kb_ne(k, kb_and(k, edges, INT64_C(1) << i), 0); }

/* The place next to the points, before (-1) or after (1) them: loaded from the point itself where a row ends. */
static kb_val load_next(struct point *pt, const struct expr *e, int away, kb_val edge)
{
    struct gen *g = pt->g;
    kb *k = g->k;
    const kb_val own = point_linear(pt),
                 further = kb_add(k, own, kb_select(k, edge, kb_imm(k, TY_I64, 0), kb_imm(k, TY_I64, away)));
    const kb_val count = kb_mul(k, gen_value(g, VAL_SEGMENTS), gen_value(g, VAL_LENGTH));
    /* A vector that counts for nothing may end beyond the arrays. */
    const kb_val there = away < 0 ? further : kb_min(k, further, kb_sub(k, count, 1));
    return gen_load_field(g, &g->p->input[e->which].array, gen_input(g, e->which), there, e->field);
}

bool point_beside(struct point *pt, const struct expr *e, int slot, kb_val *x)
{
    kb *k = pt->g->k;
    const struct input *in = &pt->g->p->input[e->which];
    const int last = in->array.rank - 1, away = e->noffsets ? e->offset[last] : 0, to = pt->at + away;
    const enum boundary_mode mode = in->boundary[last].mode;
    bool fits = pt->edges.ir && pt->direct && away != 0 && (mode == BOUND_CLAMP || mode == BOUND_CONSTANT);
    for (int d = 0; d < last && fits; d++)
        fits &= e->offset[d] == 0;
    const bool among = fits && to >= 0 && to < pt->of;
    if (!fits || (!among && (to < -1 || to > pt->of || (away != 1 && away != -1))))
        return false;
    const struct direct *own = pt->direct, *beside = pt->beside;
    const int side = away < 0 ? -1 : 1, ahead = away < 0 ? 0 : 1;
    if (among)
        *x = own[away].v[slot];
    else if (beside)
        *x = beside[ahead].v[slot];
    else
        *x = load_next(pt, e, away, row_begins(k, pt->edges, pt->at + ahead));
    /* From the far edge to the near one, which counts. */
    for (int t = away * side - 1; t >= 0; t--) {
        const kb_val outside =
            mode == BOUND_CLAMP ? own[side * t].v[slot] : kb_const(k, x->ty, in->boundary[last].constant[e->field]);
        *x = kb_select(k, row_begins(k, pt->edges, pt->at + side * t + ahead), outside, *x);
    }
    return true;
}
