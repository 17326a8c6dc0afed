/* SPDX-License-Identifier: Apache-2.0 */
/* gather.c - neighbours whose offsets are an input: their states are combined row by row. */
#include "stencil_gen.h"

#include "llvmgen/builder/kb_impl.h"

/* Offset of row `row` along dimension d, i64. */
static kb_val row_offset(struct gen *g, const struct expr *e, kb_val row, int d)
{
    kb *k = g->k;
    const struct prog_array *off = &g->p->input[e->which2].array;
    const int rank = g->p->input[e->which].array.rank;
    const kb_val x = gen_load_field(g, off, gen_input(g, e->which2), kb_add(k, kb_mul(k, row, rank), d), 0);
    return kb_cast(k, x, TY_I64);
}

/* All fields of the neighbour that a row leads to. */
static void neighbour(struct stencil_point *sp, const struct expr *e, kb_val row, kb_val *field)
{
    struct gen *g = sp->w->g;
    kb *k = g->k;
    const struct input *in = &g->p->input[e->which];
    kb_val element = kb_imm(k, TY_I64, 0), inside[PROG_RANK_MAX];
    for (int d = 0; d < in->array.rank; d++) {
        const kb_val extent = gen_extent(g, &in->array.dim[d]);
        const kb_val at = kb_add(k, sp->pt.index[in->axis[d]], row_offset(g, e, row, d));
        inside[d] = kb_true(k);
        const kb_val i = boundary_index(k, in->boundary[d].mode, at, extent, &inside[d]);
        element = d == 0 ? i : kb_add(k, kb_mul(k, element, extent), i);
    }
    for (int f = 0; f < in->array.nfields; f++) {
        field[f] = gen_load_field(g, &in->array, gen_input(g, e->which), element, f);
        for (int d = 0; d < in->array.rank; d++)
            if (in->boundary[d].mode == BOUND_CONSTANT)
                field[f] = kb_select(k, inside[d], field[f], kb_const(k, field[f].ty, in->boundary[d].constant[f]));
    }
}

/* The combined state of all rows; the identity where there are none. */
static kb_tup combined(struct stencil_point *sp, const struct expr *e)
{
    struct gen *g = sp->w->g;
    kb *k = g->k;
    const struct op *op = g->p->gatherer[e->op].op;
    struct emit_env *env = &sp->pt.env;
    const kb_val *outer = sp->neighbour;
    kb_tvar sum = kb_var_new(k, emit_identity(k, op, env), "gathered");
    kb_for(k, row, kb_imm(k, TY_I64, 0), gen_extent(g, &g->p->input[e->which2].array.dim[0]), 1) {
        kb_val field[STATE_FIELDS_MAX];
        neighbour(sp, e, row, field);
        sp->neighbour = field;
        const struct emit_sum *const around = env->sum;
        const struct emit_sum rows = { .dimension = g->p->input[e->which2].array.dim[0].size, .index = row };
        env->sum = &rows; /* for weights; no sum is around a gather */
        const kb_tup term = emit_exprs(k, env, op->nfields, e->arg);
        env->sum = around;
        const kb_tup next = emit_combine(k, op, env, kb_get(k, sum), term);
        kb_set(k, sum, kb_select(k, kb_eq(k, row, 0), term, next));
    }
    sp->neighbour = outer;
    return kb_get(k, sum);
}

/* All fields of a state have one loop. */
kb_val stencil_gather(struct stencil_point *sp, const struct expr *e)
{
    kb *k = sp->w->g->k;
    struct gathered *known = sp->gathered;
    while (known && !(expr_same_state(known->e, e) && kb_reaches(k, known->place)))
        known = known->older;
    if (!known && !(known = kb_scratch(k, sizeof *known)))
        return kb_imm(k, e->type, 0); /* out of memory, which has been noted */
    if (!known->e) {
        const kb_tup x = combined(sp, e);
        *known = (struct gathered){ sp->gathered, e, x, kb_place(k) };
        sp->gathered = known;
    }
    return known->x.e[e->field];
}

/* ---- how far gathers reach --------------------------------------------------------------------------------------- */

struct collect {
    struct gen *g;
    kb_var lo[SPACE_MAX], hi[SPACE_MAX];
    bool any, emit;
};

static void extend(const struct expr *e, void *user)
{
    struct collect *c = user;
    kb *k = c->g->k;
    const struct input *in = &c->g->p->input[e->which];
    for (int d = 0; e->kind == EX_GATHER && d < in->array.rank; d++) {
        if (in->boundary[d].mode != BOUND_INTERIOR)
            continue;
        c->any = true;
        if (!c->emit)
            continue;
        kb_for(k, row, kb_imm(k, TY_I64, 0), gen_extent(c->g, &c->g->p->input[e->which2].array.dim[0]), 1) {
            const kb_val offset = row_offset(c->g, e, row, d);
            const kb_var lo = c->lo[in->axis[d]], hi = c->hi[in->axis[d]];
            kb_set(k, lo, kb_min(k, kb_get(k, lo), offset));
            kb_set(k, hi, kb_max(k, kb_get(k, hi), offset));
        }
    }
}

struct gather_reach gather_reach(struct gen *g)
{
    struct collect c = { .g = g };
    struct gather_reach r = { .any = false };
    stencil_each_read(g->p, extend, &c);
    if (!c.any)
        return r;
    c.emit = true;
    for (int d = 0; d < g->p->rank; d++) {
        c.lo[d] = kb_var_new(g->k, kb_imm(g->k, TY_I64, 0), "gather_lo");
        c.hi[d] = kb_var_new(g->k, kb_imm(g->k, TY_I64, 0), "gather_hi");
    }
    stencil_each_read(g->p, extend, &c);
    r.any = true;
    for (int d = 0; d < g->p->rank; d++) {
        r.lo[d] = kb_get(g->k, c.lo[d]);
        r.hi[d] = kb_get(g->k, c.hi[d]);
    }
    return r;
}
