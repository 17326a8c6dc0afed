/* SPDX-License-Identifier: Apache-2.0 */
/* gen_point.c - the values at a point: inputs (preloaded, or loaded through computed addresses), indices, maps, and
 * the outputs that are written per element.
 *
 * An index along an axis is made from the linear number by division when an expression or a general array asks for
 * it; a problem of rank one never divides.  Neighbours outside the array follow the boundary mode (boundary_index()).
 */
#include "gen.h"
#include "llvmgen/builder/kb_target.h"
#include "lower/segments.h"

#include <string.h>

/* ---- indices ----------------------------------------------------------------------------------------------------- */

kb_val point_linear(struct point *pt)
{
    kb *k = pt->g->k;
    const kb_val at = kb_no_wrap(kb_add(k, pt->base, kb_cast(k, pt->offset, TY_I64)));
    return kb_no_wrap(kb_add(k, at, pt->plus)); /* so that comparing indices of neighbours folds */
}

/* number / extent with a reciprocal that the host made: (2^63 - 1) / extent, for numbers below 2^62.  The upper half of
 * the product is the quotient or one less.  A division takes some seventy instructions. */
static kb_val quotient(struct gen *g, kb_val number, kb_val extent, kb_val reciprocal)
{
    kb *k = g->k;
    const kb_val twice = kb_shl(k, kb_cast(k, number, TY_U64), 1);
    const kb_val low = kb_cast(k, kb_mul_high(k, twice, kb_cast(k, reciprocal, TY_U64)), TY_I64);
    const kb_val rest = kb_sub(k, number, kb_mul(k, low, extent));
    return kb_add(k, low, kb_cast(k, kb_ge(k, rest, extent), TY_I64));
}

kb_val index_along(struct gen *g, int axis, kb_val *number)
{
    kb *k = g->k;
    const kb_val whole = *number, extent = gen_extent(g, &g->p->space[axis].extent);
    const enum kernel_value reciprocal = axis == 1 ? VAL_RECIPROCAL1 : VAL_RECIPROCAL2;
    int64_t known;
    if (kb_is_const(extent, &known) || !gen_has_value(g, reciprocal))
        *number = kb_div(k, whole, extent);
    else
        *number = quotient(g, whole, extent, gen_value(g, reciprocal));
    return kb_sub(k, whole, kb_mul(k, *number, extent));
}

kb_val point_index(struct point *pt, int axis)
{
    struct gen *g = pt->g;
    if (pt->index[axis].ir)
        return pt->index[axis];
    kb_val rest = point_linear(pt);
    for (int d = g->p->rank - 1; d > 0; d--)
        pt->index[d] = index_along(g, d, &rest);
    pt->index[0] = rest;
    return pt->index[axis];
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static bool structure(const struct prog_array *a) { return *a->field[0].name != 0; }

/* An element of an input, made from its indices dimension by dimension. */
struct element {
    kb_val number;
    kb_val
        inside[PROG_RANK_MAX]; /* of dimensions beyond which constants stand for it; the last one that is left counts */
    const union value *outside[PROG_RANK_MAX];
    int constants;
};

/* Where it is noted whether the index lies inside; neighbouring dimensions with equal constants share a place. */
static kb_val *element_inside(struct gen *g, const struct boundary *edge, int field, struct element *at)
{
    const union value *outside = &edge->constant[field];
    if (at->constants == 0 || at->outside[at->constants - 1]->u != outside->u) {
        at->inside[at->constants] = kb_true(g->k);
        at->outside[at->constants++] = outside;
    }
    return &at->inside[at->constants - 1];
}

/* Index i along dimension d, which may lie beyond the edge, by the boundary's mode. */
static kb_val index_inside(struct gen *g, const struct expr *e, int d, kb_val i, struct element *at)
{
    const struct input *in = &g->p->input[e->which];
    const kb_val extent = gen_extent(g, &in->array.dim[d]);
    kb_val *inside = NULL;
    if (in->boundary[d].mode == BOUND_CONSTANT)
        inside = element_inside(g, &in->boundary[d], e->field, at);
    return boundary_index(g->k, in->boundary[d].mode, i, extent, inside);
}

/* Index i along dimension d; `anywhere`: it may lie beyond the edge. */
static void element_index(struct gen *g, const struct expr *e, int d, kb_val i, bool anywhere, struct element *at)
{
    kb *k = g->k;
    const kb_val extent = gen_extent(g, &g->p->input[e->which].array.dim[d]);
    if (anywhere)
        i = index_inside(g, e, d, i, at);
    at->number = d == 0 ? i : kb_add(k, kb_mul(k, at->number, extent), i);
}

static kb_val element_load(struct gen *g, const struct expr *e, const struct element *at)
{
    kb_val x = gen_load_field(g, &g->p->input[e->which].array, gen_input(g, e->which), at->number, e->field);
    for (int c = 0; c < at->constants; c++)
        x = kb_select(g->k, at->inside[c], x, kb_const(g->k, x.ty, *at->outside[c]));
    return x;
}

/* Down columns, the dimension of the only offset of an element; -1: there are more, or none.  The element's distance from
 * the point's own follows from that dimension's index alone; the others may take divisions. */
static int only_offset(const struct point *pt, const struct expr *e)
{
    const struct problem *p = pt->g->p;
    int only = -1;
    if (p->kind != KIND_SCAN || segments_trailing(p) || !pt->direct || !access_input_direct(p, e->which))
        return -1;
    for (int d = 0; d < e->noffsets; d++) {
        if (e->offset[d] && only >= 0)
            return -1;
        only = e->offset[d] ? d : only;
    }
    return only;
}

static kb_val number_beside(struct point *pt, const struct expr *e, int d, struct element *at)
{
    struct gen *g = pt->g;
    kb *k = g->k;
    const struct prog_array *a = &g->p->input[e->which].array;
    const kb_val own = point_index(pt, d);
    kb_val away = kb_sub(k, index_inside(g, e, d, kb_add(k, own, e->offset[d]), at), own);
    for (int after = d + 1; after < a->rank; after++)
        away = kb_mul(k, away, gen_extent(g, &a->dim[after]));
    return kb_add(k, point_linear(pt), away);
}

/* Any input at the point plus constant offsets. */
static kb_val load_general(struct point *pt, const struct expr *e)
{
    struct gen *g = pt->g;
    const struct input *in = &g->p->input[e->which];
    const int only = only_offset(pt, e);
    struct element at = { .number = kb_imm(g->k, TY_I64, 0) };
    if (only >= 0)
        at.number = number_beside(pt, e, only, &at);
    for (int d = 0; only < 0 && d < in->array.rank; d++) {
        const bool beside = e->noffsets && e->offset[d];
        const kb_val i = point_index(pt, in->axis[d]);
        element_index(g, e, d, beside ? kb_add(g->k, i, e->offset[d]) : i, beside, &at);
    }
    return element_load(g, e, &at);
}

kb_val gen_load_beside(struct gen *g, int input, kb_val i)
{
    const struct expr e = { .kind = EX_INPUT, .which = input };
    struct element at = { .number = kb_imm(g->k, TY_I64, 0) };
    element_index(g, &e, 0, i, true, &at);
    return element_load(g, &e, &at);
}

/* Does the index stay between the ends of dimension d of the input?  Stencils also compute beside the space. */
static bool runs_along(const struct gen *g, const struct expr *e, int d)
{
    const struct expr *i = e->arg[d];
    const struct prog_dim *dim = &g->p->input[e->which].array.dim[d];
    if (i->kind == EX_INDEX && g->p->input[e->which].summed && g->p->kind != KIND_STENCIL)
        return g->p->space[i->which].extent.size == dim->size && g->p->space[i->which].extent.add == dim->add;
    if (e->op >> d & 1 && g->p->kind != KIND_STENCIL)
        return true;
    return i->kind == EX_RUN && i->which == dim->size;
}

/* Is it an index of the space, which is never negative, so that a clamp has one side? */
static bool starts_inside(const struct gen *g, const struct expr *e, int d)
{
    const enum boundary_mode mode = g->p->input[e->which].boundary[d].mode;
    return e->arg[d]->kind == EX_INDEX && !runs_along(g, e, d) && mode == BOUND_CLAMP && g->p->kind != KIND_STENCIL;
}

/* Is it the index along the only axis that is reduced? */
static bool clamps_reduced(const struct gen *g, const struct expr *e, int d)
{
    int reduced = 0;
    for (int i = 0; i < g->p->rank; i++)
        reduced += g->p->space[i].reduced;
    return reduced == 1 && starts_inside(g, e, d) && g->p->space[e->arg[d]->which].reduced;
}

struct limit {
    struct gen *g;
    kb_val value;
};

static void note_limit(const struct expr *e, void *user)
{
    struct limit *l = user;
    for (int d = 0; e->kind == EX_AT && d < e->nargs; d++)
        if (clamps_reduced(l->g, e, d))
            l->value = kb_min(l->g->k, l->value, gen_extent(l->g, &l->g->p->input[e->which].array.dim[d]));
}

static void walk_output(const struct problem *p, const struct output *o, void (*visit)(const struct expr *, void *),
                        void *user)
{
    for (int f = 0; f < o->array.nfields; f++)
        problem_walk(p, o->value[f], visit, user);
    for (int d = 0; d < PROG_RANK_MAX; d++)
        problem_walk(p, o->index[d], visit, user);
    problem_walk(p, o->where, visit, user);
}

kb_val points_inside(struct gen *g, kb_val end)
{
    struct limit l = { g, end };
    const struct expr *map[KB_TUP_MAX];
    for (int i = point_maps(g->p, map) - 1; i >= 0; i--)
        problem_walk(g->p, map[i], note_limit, &l);
    for (int o = 0; o < g->p->noutputs; o++)
        if (output_moment(&g->p->output[o]) == AT_POINT)
            walk_output(g->p, &g->p->output[o], note_limit, &l);
    return l.value;
}

/* An input at the place that the arguments of at() compute. */
static kb_val load_placed(struct point *pt, struct emit_env *env, const struct expr *e)
{
    struct gen *g = pt->g;
    const struct input *in = &g->p->input[e->which];
    struct element at = { .number = kb_imm(g->k, TY_I64, 0) };
    for (int d = 0; d < e->nargs; d++) {
        const kb_val i = emit_expr(g->k, env, e->arg[d]);
        if (pt->inside && clamps_reduced(g, e, d))
            element_index(g, e, d, i, false, &at);
        else if (starts_inside(g, e, d))
            element_index(g, e, d, kb_min(g->k, i, kb_sub(g->k, gen_extent(g, &in->array.dim[d]), 1)), false, &at);
        else
            element_index(g, e, d, i, !runs_along(g, e, d), &at);
    }
    return element_load(g, e, &at);
}

/* Place of a direct input's field in struct direct; -1: not direct. */
static int direct_slot(const struct problem *p, int input, int field)
{
    int slot = 0;
    for (int i = 0; i < p->ninputs; i++) {
        if (!access_input_direct(p, i))
            continue;
        if (i == input)
            return slot + field;
        slot += p->input[i].array.nfields;
    }
    return -1;
}

/* Is the input loaded where the expression reads it, `*away` places from the point? */
static bool is_loaded(const struct point *pt, const struct expr *e, int *away)
{
    const struct input *in = &pt->g->p->input[e->which];
    *away = e->noffsets ? e->offset[e->noffsets - 1] : 0;
    for (int d = 0; d + 1 < e->noffsets; d++)
        if (e->offset[d])
            return false;
    /* Places after the last one of an array repeat it; of a reversed tile the one before it is the last one that is right. */
    const bool right =
        pt->towards > 0 ? *away <= 0 || in->boundary[in->array.rank - 1].mode == BOUND_CLAMP : *away >= -1;
    return *away >= -pt->before && *away <= pt->after && right;
}

kb_val point_leaf(kb *k, struct emit_env *env, const struct expr *e)
{
    struct point *pt = env->user;
    struct gen *g = pt->g;
    switch (e->kind) {
    case EX_INPUT: {
        const int slot = direct_slot(g->p, e->which, e->field);
        int away;
        if (slot >= 0 && pt->direct && is_loaded(pt, e, &away))
            return pt->direct[away * pt->towards].v[slot];
        kb_val x;
        return slot >= 0 && point_beside(pt, e, slot, &x) ? x : load_general(pt, e);
    }
    case EX_AT: return load_placed(pt, env, e);
    case EX_PARAM: return gen_param(g, e->which);
    case EX_SIZE: return gen_size(g, e->which);
    case EX_INDEX: return point_index(pt, e->which);
    case EX_STATE:
    case EX_TOTAL: return pt->state->e[state_first(g->p, e->which) + e->field];
    default: break;
    }
    kb_misuse(k, "expression kind %d has no value in a reduction", (int)e->kind);
    return kb_imm(k, e->type, 0);
}

static kb_val point_quotient(kb *k, struct emit_env *env, kb_val index, int size)
{
    struct gen *g = ((struct point *)env->user)->g;
    const kb_val n = gen_size(g, size);
    const int before = __builtin_popcountll(g->p->divisors & ((UINT64_C(1) << size) - 1));
    const enum kernel_value reciprocal = VAL_DIVISOR0 + before;
    int64_t known;
    if (kb_is_const(n, &known) || !gen_has_value(g, reciprocal))
        return kb_div(k, index, n);
    return quotient(g, index, n, gen_value(g, reciprocal));
}

void point_init(struct point *pt, struct gen *g, kb_val base, kb_val offset, int64_t plus)
{
    memset(pt->index, 0, sizeof pt->index);
    pt->segment = pt->bin = (kb_val){ .ir = NULL };
    pt->direct = NULL;
    pt->before = pt->after = 0;
    pt->towards = 1;
    pt->edges = (kb_val){ .ir = NULL };
    pt->beside = NULL;
    pt->inside = pt->by_element = false;
    pt->state = NULL;
    pt->outputs = NULL;
    pt->g = g;
    emit_env_init(&pt->env, point_leaf, pt, g->p);
    pt->env.quotient = point_quotient;
    pt->base = base;
    pt->offset = offset;
    pt->plus = plus;
}

/* What lies far away from `first` is no distance. */
static kb_val point_is_index(kb *k, struct emit_env *env, kb_val i)
{
    enum { FAR = 1 << 16 };
    const struct point *pt = env->user;
    const kb_val away = kb_sub(k, i, pt->near);
    const kb_val is_near = kb_lt(k, kb_cast(k, away, TY_U64), FAR);
    return kb_eq(k, kb_select(k, is_near, kb_cast(k, away, TY_I32), kb_imm(k, TY_I32, -1)), pt->distance);
}

void point_is_near(struct point *pt, int dimension, kb_val first, int distance)
{
    pt->env.indexed = dimension;
    pt->near = first;
    pt->distance = distance;
    pt->env.is_index = point_is_index;
}

void env_init(struct point *pt, struct gen *g, const kb_tup *state)
{
    point_init(pt, g, kb_imm(g->k, TY_I64, 0), kb_imm(g->k, TY_I32, 0), 0);
    pt->state = state;
}

int point_maps(const struct problem *p, const struct expr **map)
{
    int n = 0;
    for (int r = 0; r < p->nreductions; r++)
        for (int f = 0; f < p->reduction[r].op->nfields; f++)
            map[n++] = p->reduction[r].map[f];
    return n;
}

struct along {
    const struct problem *p;
    unsigned axes;
};

/* Does it stay the same along these axes, if its arguments do? */
static bool same_along(const void *what, const struct expr *e)
{
    const struct along *a = what;
    const struct input *in = e->kind == EX_INPUT ? &a->p->input[e->which] : NULL;
    bool same = !in || !in->spread;
    for (int d = 0; in && d < in->array.rank && same; d++)
        same = in->axis[d] >= 0 && !(a->axes >> in->axis[d] & 1);
    if (e->kind == EX_INDEX)
        return !(a->axes >> e->which & 1);
    return same && e->kind != EX_GATHER && e->kind != EX_NEIGHBOUR;
}

void point_ahead_of(struct point *pt, unsigned axes, int n, const struct expr *const *e)
{
    const struct along along = { pt->g->p, axes };
    emit_ahead(pt->g->k, &pt->env, same_along, &along, n, e);
}

void point_ahead(struct point *pt, unsigned axes)
{
    const struct problem *p = pt->g->p;
    const struct expr *e[KB_TUP_MAX + PROG_RANK_MAX];
    int n = point_maps(p, e);
    for (int d = 0; d < p->nby; d++)
        e[n++] = p->by[d];
    point_ahead_of(pt, axes, n, e);
}

void points_together(struct point *pt, int n, size_t size)
{
    enum { MOST = 64 };
    const struct problem *p = pt->g->p;
    struct emit_env *env[MOST];
    const struct expr *e[(1 + PROBLEM_ARGS_MAX) * STATE_FIELDS_MAX];
    int m;
    if (!p->sums || n > MOST)
        return;
    for (int i = 0; i < n; i++)
        env[i] = &((struct point *)((char *)pt + (size_t)i * size))->env;
    m = p->kind == KIND_REDUCE ? point_maps(p, e) : 0;
    for (int o = 0; o < p->noutputs; o++)
        for (int f = 0; output_moment(&p->output[o]) == AT_POINT && f < p->output[o].array.nfields; f++)
            e[m++] = p->output[o].value[f];
    emit_together(pt->g->k, n, env, m, e);
}

kb_tup point_map(struct point *pt)
{
    const struct expr *map[KB_TUP_MAX];
    const int n = point_maps(pt->g->p, map);
    return emit_exprs(pt->g->k, &pt->env, n, map);
}

/* Indices of 32 bits are compared as such. */
kb_val point_bin(struct point *pt, const struct expr *e, const struct prog_dim *bins, kb_val *inside)
{
    struct gen *g = pt->g;
    kb *k = g->k;
    const kb_val n = gen_extent(g, bins);
    if (e->kind == EX_CAST && ty_is_int(e->arg[0]->type) && ty_bytes(e->arg[0]->type) <= 4) {
        const kb_val i = kb_cast(k, kb_cast(k, emit_expr(k, &pt->env, e->arg[0]), TY_I32), TY_U32);
        *inside = kb_lt(k, i, kb_cast(k, n, TY_U32));
        return kb_cast(k, i, TY_I32);
    }
    const kb_val i = emit_expr(k, &pt->env, e);
    *inside = kb_lt(k, kb_cast(k, i, TY_U64), kb_cast(k, n, TY_U64));
    return kb_cast(k, i, TY_I32);
}

/* ---- direct inputs ----------------------------------------------------------------------------------------------- */

/* n structures as 32-bit words, taken apart. */
static void load_structures(struct gen *g, const struct prog_array *a, kb_ptr at, int n, bool aligned,
                            struct direct *out, int slot)
{
    enum { WORDS_MAX = 64 };
    kb_val word[WORDS_MAX];
    const int bytes = n * a->stride;
    for (int j = 0; j < n; j++)
        for (int f = 0; f < a->nfields; f++) {
            if (!aligned || bytes > 4 * WORDS_MAX) {
                out[j].v[slot + f] = gen_load_field(g, a, at, kb_imm(g->k, TY_I64, j), f);
                continue;
            }
            if (j == 0 && f == 0)
                kb_load_words(g->k, at, kb_imm(g->k, TY_I32, 0), bytes, gen_vector_alignment(bytes), word);
            out[j].v[slot + f] = kb_extract(g->k, word, j * a->stride + a->field[f].offset, a->field[f].type);
        }
}

static kb_ptr address(struct gen *g, const struct prog_array *a, kb_ptr p, kb_val base, kb_val offset, int64_t plus)
{
    const int scale = structure(a) ? a->stride : 1;
    p = kb_advance(g->k, p, kb_mul(g->k, base, scale));
    p = kb_advance(g->k, p, kb_mul(g->k, offset, scale));
    return plus ? kb_advance(g->k, p, kb_imm(g->k, TY_I64, plus * scale)) : p;
}

kb_ptr point_address(const struct point *pt, const struct prog_array *a, kb_ptr p)
{
    return address(pt->g, a, p, pt->base, pt->offset, pt->plus);
}

void direct_load(struct gen *g, kb_val base, kb_val offset, int64_t plus, int n, bool aligned, struct direct *out)
{
    for (int i = 0, slot = 0; i < g->p->ninputs; i++) {
        const struct prog_array *a = &g->p->input[i].array;
        if (!access_input_direct(g->p, i))
            continue;
        const kb_ptr at = address(g, a, gen_input(g, i), base, offset, plus);
        if (structure(a)) {
            load_structures(g, a, at, n, aligned, out, slot);
        } else {
            kb_val x[GEN_VECTOR_MAX];
            kb_load_n(g->k, at, kb_imm(g->k, TY_I32, 0), n, aligned ? gen_vector_alignment(n * a->stride) : a->stride,
                      x);
            for (int j = 0; j < n; j++)
                out[j].v[slot] = x[j];
        }
        slot += a->nfields;
    }
}

void direct_words(struct gen *g, int input, kb_val base, kb_val offset, int64_t plus, int n, kb_val *word)
{
    const struct prog_array *a = &g->p->input[input].array;
    const int bytes = n * a->stride;
    const kb_ptr at = address(g, a, gen_input(g, input), base, offset, plus);
    kb_load_words(g->k, at, kb_imm(g->k, TY_I32, 0), bytes, gen_vector_alignment(bytes), word);
}
