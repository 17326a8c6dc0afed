/* SPDX-License-Identifier: Apache-2.0 */
/* point.c - what a stencil reads and gives at one point.
 *
 * Direct inputs come from the window.  Inputs with fewer or permuted dimensions, and neighbours whose offsets are known
 * at launch only, are loaded where they are used.
 */
#include "stencil_gen.h"

#include <string.h>

#include "llvmgen/builder/kb_impl.h"

/* ---- reads ------------------------------------------------------------------------------------------------------- */

/* An input that is not direct. */
static kb_val read_general(struct stencil_point *sp, const struct expr *e)
{
    struct gen *g = sp->w->g;
    kb *k = g->k;
    struct input in = g->p->input[e->which];
    const struct reach r = stencil_input_reach(g->p, e->which);
    kb_val element = kb_imm(k, TY_I64, 0), beyond[PROG_RANK_MAX];
    for (int d = 0; d < in.array.rank; d++) {
        in.axis[d] = in.axis[d] < 0 ? d : in.axis[d];
        const int at = sp->at[in.axis[d]] + (e->noffsets ? e->offset[d] : 0);
        const kb_val i = window_index(sp->w, &in, &r, d, at, &beyond[d]);
        element = d == 0 ? i : kb_add(k, kb_mul(k, element, gen_extent(g, &in.array.dim[d])), i);
    }
    kb_val x = gen_load_field(g, &in.array, gen_input(g, e->which), element, e->field);
    for (int d = 0; d < in.array.rank; d++)
        if (beyond[d].ir)
            x = kb_select(k, beyond[d], kb_const(k, x.ty, in.boundary[d].constant[e->field]), x);
    return x;
}

static kb_val read_input(struct stencil_point *sp, const struct expr *e)
{
    int at[SPACE_MAX] = { 0 };
    if (!access_input_direct(sp->w->g->p, e->which))
        return read_general(sp, e);
    for (int d = 0; d < sp->w->rank; d++)
        at[d] = sp->at[d] + (e->noffsets ? e->offset[d] : 0);
    return window_read(sp->w, e->which, e->field, at);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* What the memory of an output keeps at a skipped point; 0 at others. */
static kb_val kept(struct stencil_point *sp, int o, int f)
{
    struct gen *g = sp->w->g;
    kb *k = g->k;
    const struct output *out = &g->p->output[o];
    kb_var x = kb_var_new(k, kb_imm(k, out->array.field[f].type, 0), "kept");
    kb_if(k, kb_and(k, kb_and(k, sp->exists, sp->skip), output_has(&sp->pt, o))) {
        kb_set(k, x, gen_load_field(g, &out->array, gen_output(g, o), output_element(&sp->pt, o), f));
    }
    return kb_get(k, x);
}

/* Number of the field among those of all outputs. */
static int value_slot(const struct problem *p, int o, int f)
{
    for (int i = 0; i < o; i++)
        f += p->output[i].array.nfields;
    return f;
}

kb_val stencil_value(struct stencil_point *sp, int o, int f)
{
    kb *k = sp->w->g->k;
    const int slot = value_slot(sp->w->g->p, o, f);
    struct emit_cached *c = slot < VALUES_MAX ? &sp->value[slot] : NULL;
    if (c && c->value.ir && kb_reaches(k, c->place))
        return c->value;
    kb_val v = emit_expr(k, &sp->pt.env, sp->w->g->p->output[o].value[f]);
    const int fed = stencil_fed(sp->w->g->p, o);
    if (sp->skip.ir && fed >= 0) {
        const int input = sp->w->g->p->feedback[fed].input;
        const struct expr e = { .kind = EX_INPUT, .type = v.ty, .which = input, .field = f };
        v = kb_select(k, sp->skip, read_input(sp, &e), v);
    }
    if (c)
        *c = (struct emit_cached){ v, kb_place(k) };
    return v;
}

static void count_reads(const struct expr *e, void *user) { *(int *)user += e->kind == EX_INPUT || e->kind == EX_LET; }

/* Each operation of the expression for all points, then the next. */
static void together(struct stencil_point *sp, int n, const struct expr *e)
{
    const struct expr *below = NULL;                              /* the operand that reads most: sums grow there */
    const bool folds = e->kind == EX_SUM || e->kind == EX_GATHER; /* the operand has a value within the fold alone */
    if (sp->pt.env.known == e)
        return;
    for (int i = 0, most = 1; !folds && i < e->nargs; i++) {
        int reads = 0;
        expr_walk(e->arg[i], count_reads, &reads);
        if (reads > most) {
            most = reads;
            below = e->arg[i];
        }
    }
    if (below)
        together(sp, n, below);
    for (int i = 0; i < n; i++) {
        struct emit_env *env = &sp[i].pt.env;
        env->known_value = emit_expr(sp->w->g->k, env, e);
    }
    for (int i = 0; i < n; i++)
        sp[i].pt.env.known = e;
}

static void each_value(struct stencil_point *sp, int n, kb_var *var,
                       void (*does)(struct stencil_point *sp, int o, int f, kb_var *var))
{
    const struct problem *p = sp->w->g->p;
    for (int o = 0; o < p->noutputs; o++)
        for (int f = 0; output_moment(&p->output[o]) == AT_POINT && f < p->output[o].array.nfields; f++)
            for (int i = 0; i < n; i++)
                does(&sp[i], o, f, var++);
}

static void begin_value(struct stencil_point *sp, int o, int f, kb_var *var)
{
    kb *k = sp->w->g->k;
    *var = kb_var_new(k, kb_imm(k, sp->w->g->p->output[o].array.field[f].type, 0), "value");
}

static void set_value(struct stencil_point *sp, int o, int f, kb_var *var)
{
    kb_set(sp->w->g->k, *var, stencil_value(sp, o, f));
}

static void keep_value(struct stencil_point *sp, int o, int f, kb_var *var)
{
    kb *k = sp->w->g->k;
    const int slot = value_slot(sp->w->g->p, o, f);
    if (slot < VALUES_MAX)
        sp->value[slot] = (struct emit_cached){ kb_get(k, *var), kb_place(k) };
    sp->pt.env.known = NULL;
}

static void values_together(struct stencil_point *sp, int n)
{
    const struct problem *p = sp->w->g->p;
    points_together(&sp->pt, n, sizeof *sp);
    for (int o = 0; o < p->noutputs; o++)
        for (int f = 0; output_moment(&p->output[o]) == AT_POINT && f < p->output[o].array.nfields; f++) {
            together(sp, n, p->output[o].value[f]);
            for (int i = 0; i < n; i++)
                stencil_value(&sp[i], o, f);
        }
}

void stencil_grow(struct stencil_point *sp, int n, const struct expr *before, const struct expr *part, kb_val *value)
{
    points_together(&sp->pt, n, sizeof *sp);
    for (int i = 0; i < n; i++) {
        sp[i].pt.env.known = before;
        sp[i].pt.env.known_value = value[i];
    }
    together(sp, n, part);
    for (int i = 0; i < n; i++)
        value[i] = sp[i].pt.env.known_value;
}

void stencil_values(struct stencil_point *sp, int n, kb_val any)
{
    kb *k = sp->w->g->k;
    if (!any.ir) {
        values_together(sp, n);
        return;
    }
    kb_var *var = kb_scratch(k, sizeof *var * (size_t)(value_slot(sp->w->g->p, sp->w->g->p->noutputs, 0) * n + 1));
    if (!var)
        return; /* out of memory, which has been noted */
    each_value(sp, n, var, begin_value);
    kb_if(k, any) {
        values_together(sp, n);
        each_value(sp, n, var, set_value);
    }
    each_value(sp, n, var, keep_value);
}

/* What maps see of an output. */
static kb_val seen_value(struct stencil_point *sp, int o, int f)
{
    const kb_val v = stencil_value(sp, o, f);
    if (!sp->skip.ir || stencil_fed(sp->w->g->p, o) >= 0)
        return v;
    return kb_select(sp->w->g->k, sp->skip, kept(sp, o, f), v);
}

/* ---- outputs ----------------------------------------------------------------------------------------------------- */

static kb_val value_of(struct point *pt, int output, int f) { return stencil_value(pt->env.user, output, f); }

kb_val stencil_written(struct point *pt, int output)
{
    const struct stencil_point *sp = pt->env.user;
    if (!sp->skip.ir || stencil_fed(pt->g->p, output) >= 0)
        return sp->exists;
    return kb_and(pt->g->k, sp->exists, kb_not(pt->g->k, sp->skip));
}

static kb_ptr place_of(struct point *pt, int output)
{
    struct stencil_point *sp = pt->env.user;
    struct gen *g = pt->g;
    const kb_ptr row = window_row(sp->w, &g->p->output[output].array, gen_output(g, output), sp->at);
    return kb_advance(g->k, row, kb_imm(g->k, TY_I64, sp->at[sp->w->rank - 1]));
}

static const struct point_outputs outputs = { value_of, stencil_written, place_of, turned_keep, true };

/* ---- points ------------------------------------------------------------------------------------------------------ */

static kb_val leaf(kb *k, struct emit_env *env, const struct expr *e)
{
    struct stencil_point *sp = env->user;
    kb_val x;
    switch (e->kind) {
    case EX_AT: return sp->w->pairs && pair_tiles_read(sp->w->pairs, e, sp->at, &x) ? x : point_leaf(k, env, e);
    case EX_INPUT: return read_input(sp, e);
    case EX_OUTPUT: return seen_value(sp, e->which, e->field);
    case EX_GATHER: return stencil_gather(sp, e);
    case EX_NEIGHBOUR: return sp->neighbour[e->field];
    default: return point_leaf(k, env, e);
    }
}

/* Dimension d of an input leaves the array from this point. */
static kb_val leaves(struct stencil_point *sp, int input, int d, const struct gather_reach *gr)
{
    kb *k = sp->w->g->k;
    const int axis = sp->w->g->p->input[input].axis[d];
    const struct reach r = stencil_input_reach(sp->w->g->p, input);
    kb_val lo = kb_imm(k, TY_I64, r.lo[d]), hi = kb_imm(k, TY_I64, r.hi[d]);
    if (gr->any) {
        lo = kb_min(k, lo, gr->lo[axis]);
        hi = kb_max(k, hi, gr->hi[axis]);
    }
    const kb_val before = kb_lt(k, kb_add(k, sp->pt.index[axis], lo), 0);
    return kb_or(k, before, kb_ge(k, kb_add(k, sp->pt.index[axis], hi), sp->w->extent[axis]));
}

bool stencil_keeps_skipped(const struct problem *p)
{
    for (int o = 0; o < p->noutputs && stencil_skips(p); o++)
        if (stencil_fed(p, o) >= 0)
            return true;
    return false;
}

static kb_val skipped(struct stencil_point *sp, const struct gather_reach *gr)
{
    const struct window *w = sp->w;
    const struct problem *p = w->g->p;
    kb_val skip = kb_imm(w->g->k, TY_BOOL, 0);
    for (int i = 0; i < p->ninputs; i++)
        for (int d = 0; p->input[i].role == ROLE_ELEMENT && d < p->input[i].array.rank; d++)
            if (p->input[i].boundary[d].mode == BOUND_INTERIOR &&
                (w->place != PLACE_ROWS || !w->vectors || gr->any || p->input[i].axis[d] == w->rank - 1))
                skip = kb_or(sp->w->g->k, skip, leaves(sp, i, d, gr));
    return skip;
}

void stencil_point_init(struct stencil_point *sp, struct window *w, const int *at, const struct gather_reach *gr)
{
    struct gen *g = w->g;
    kb *k = g->k;
    memset(sp, 0, sizeof *sp);
    env_init(&sp->pt, g, NULL);
    sp->pt.env.leaf = leaf;
    sp->pt.env.user = sp;
    sp->pt.env.tiles = w->pairs ? &w->pairs->hooks : NULL;
    sp->pt.outputs = &outputs;
    sp->w = w;
    sp->exists = w->exists.ir ? w->exists : kb_true(k);
    for (int d = 0; d < w->rank; d++) {
        sp->at[d] = at[d];
        sp->pt.index[d] = kb_add(k, w->origin[d], at[d]);
        if (w->place == PLACE_INSIDE || (w->place == PLACE_ROWS && d < w->rank - 1) || (w->ring && d == 0) || w->whole)
            continue;
        sp->exists = kb_and(k, sp->exists, kb_lt(k, sp->pt.index[d], w->extent[d]));
        if (w->skewed && d == w->rank - 1)
            sp->exists = kb_and(k, sp->exists, kb_ge(k, sp->pt.index[d], 0));
    }
    if (stencil_skips(g->p) && !w->whole && (w->place != PLACE_INSIDE || gr->any))
        sp->skip = skipped(sp, gr);
}
