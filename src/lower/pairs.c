/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.c - see pairs.h. */
#include "pairs.h"

#include "lower_impl.h"

enum { VECTOR_BYTES = 16, COPY_BYTES = 4 /* at least, of a thread's own copy */ };

struct search {
    const struct problem *p;
    struct pairs *pairs;
    int along; /* the dimension of all sums; -1: none seen yet */
    bool inside, let[LET_VALUES_MAX], several, many, other;
};

static bool same_extent(const struct prog_dim *a, const struct prog_dim *b)
{
    return a->size == b->size && a->add == b->add;
}

/* The axis of the space whose whole extent dimension d of a read follows, with the point's own index; else -1. */
static int follows(const struct problem *p, const struct expr *e, int d)
{
    const struct input *in = &p->input[e->which];
    const bool own = e->kind == EX_AT ? d < e->nargs && e->arg[d]->kind == EX_INDEX
                                      : e->kind == EX_INPUT && !(e->noffsets && e->offset[d]);
    const int axis = !own ? -1 : e->kind == EX_AT ? e->arg[d]->which : in->axis[d];
    return axis >= 0 && same_extent(&in->array.dim[d], &p->space[axis].extent) ? axis : -1;
}

/* Is it a table of a product: one dimension is reduced, the other one kept? */
static bool product_operand(const struct problem *p, const struct expr *e, struct pairs_operand *out)
{
    const struct prog_array *a = &p->input[e->which].array;
    if ((e->kind != EX_AT && e->kind != EX_INPUT) || a->rank != 2 || a->field[e->field].type == TY_BOOL ||
        p->input[e->which].spread)
        return false;
    const int axis[] = { follows(p, e, 0), follows(p, e, 1) };
    if (axis[0] < 0 || axis[1] < 0 || p->space[axis[0]].reduced == p->space[axis[1]].reduced)
        return false;
    const bool last = p->space[axis[1]].reduced;
    int side = 0;
    for (int d = 0; d < axis[!last]; d++)
        side += !p->space[d].reduced;
    *out = (struct pairs_operand){ e->which, e->field, side, last };
    return true;
}

/* Is it such a table, read at the point's own row? */
static bool operand(const struct problem *p, const struct expr *e, struct pairs_operand *out)
{
    const struct prog_array *a = &p->input[e->which].array;
    if (p->rank == PAIRS_PRODUCT_RANK)
        return product_operand(p, e, out);
    for (int last = 0; last < 2 && e->kind == EX_AT && e->nargs == 2; last++) {
        const struct expr *row = e->arg[1 - last], *term = e->arg[last];
        if (row->kind != EX_INDEX || term->kind != EX_RUN || a->field[e->field].type == TY_BOOL)
            continue;
        *out = (struct pairs_operand){ e->which, e->field, row->which, last == 1 };
        return a->dim[last].size == term->which && a->dim[last].add == 0 &&
               same_extent(&a->dim[1 - last], &p->space[row->which].extent);
    }
    return false;
}

bool pairs_is(const struct problem *p, const struct expr *e, const struct pairs_operand *o)
{
    struct pairs_operand own;
    return operand(p, e, &own) && own.input == o->input && own.field == o->field && own.axis == o->axis &&
           own.terms_last == o->terms_last;
}

static bool note_operand(struct search *s, const struct expr *e)
{
    struct pairs *x = s->pairs;
    struct pairs_operand o;
    if (!operand(s->p, e, &o))
        return false;
    for (int i = 0; i < x->noperands; i++)
        if (pairs_is(s->p, e, &x->operand[i]))
            return true;
    x->terms = s->p->input[o.input].array.dim[o.terms_last ? 1 : 0];
    if (x->noperands == PAIRS_OPERANDS_MAX)
        s->many = true;
    else
        x->operand[x->noperands++] = o;
    return true;
}

static void look(struct search *s, const struct expr *e)
{
    const bool outside = !s->inside;
    if (e->kind == EX_LET && !s->let[e->which]) {
        s->let[e->which] = true;
        look(s, s->p->let[e->which].value);
    }
    if (e->kind == EX_SUM) {
        s->pairs->words += ty_bytes(e->type) > 4 ? 2 : 1;
        s->several |= s->inside || (s->along >= 0 && s->along != e->which);
        s->along = e->which;
        s->inside = true;
    } else if (e->kind == EX_AT && s->inside) {
        note_operand(s, e);
    }
    for (int i = 0; i < e->nargs; i++)
        look(s, e->arg[i]);
    if (outside)
        s->inside = false;
}

/* Sums in the places of outputs are computed when those are stored, by threads that may have gone different ways. */
static bool sums_in_places(const struct problem *p)
{
    struct pairs none = { 0 };
    struct search s = { .p = p, .pairs = &none, .along = -1 };
    for (int o = 0; o < p->noutputs; o++)
        for (int d = 0; output_moment(&p->output[o]) == AT_POINT && d < PROG_RANK_MAX && p->output[o].index[d]; d++)
            look(&s, p->output[o].index[d]);
    return s.along >= 0;
}

static bool along_axis(const struct pairs *x, int axis)
{
    for (int i = 0; i < x->noperands; i++)
        if (x->operand[i].axis == axis)
            return true;
    return false;
}

/* Axes that an expression follows, as bits, but those of lets inside; all of them where that is not known. */
static unsigned axes_of(const struct problem *p, const struct expr *e)
{
    const unsigned all = (1u << PAIRS_PRODUCT_RANK) - 1;
    unsigned axes = e->kind == EX_INDEX ? 1u << e->which : e->kind == EX_GATHER || e->kind == EX_NEIGHBOUR ? all : 0;
    if (e->kind == EX_INPUT && p->input[e->which].spread)
        return all;
    for (int d = 0; e->kind == EX_INPUT && d < p->input[e->which].array.rank; d++)
        axes |= p->input[e->which].axis[d] >= 0 ? 1u << p->input[e->which].axis[d] : 0;
    if (e->kind == EX_LET)
        axes |= axes_of(p, p->let[e->which].value);
    for (int i = 0; i < e->nargs; i++)
        axes |= axes_of(p, e->arg[i]);
    return axes;
}

/* Tables of a product; anything else that is read follows kept axes only, or the reduced one. */
static void look_product(struct search *s, const struct expr *e)
{
    const struct pairs *x = s->pairs;
    if (e->kind == EX_LET && !s->let[e->which]) {
        s->let[e->which] = true;
        look_product(s, s->p->let[e->which].value);
    }
    const bool reads = e->kind == EX_AT || e->kind == EX_INPUT || e->kind == EX_GATHER || e->kind == EX_NEIGHBOUR;
    if (reads && !note_operand(s, e)) {
        const unsigned axes = axes_of(s->p, e), reduced = 1u << x->reduced;
        s->other |= axes & reduced && axes & ~reduced;
    }
    for (int i = 0; i < e->nargs; i++)
        look_product(s, e->arg[i]);
}

static bool product_of(const struct problem *p, struct pairs *out, const char **why)
{
    struct search s = { .p = p, .pairs = out, .along = -1 };
    enum ty type[STATE_FIELDS_MAX];
    int kept = 0;
    out->product = true;
    for (int d = 0; d < p->rank; d++) {
        if (p->space[d].reduced)
            out->reduced = d;
        else if (kept < 2)
            out->kept[kept] = d;
        kept += !p->space[d].reduced;
    }
    out->terms = p->space[out->reduced].extent;
    for (int f = state_fields(p, type) - 1; f >= 0; f--)
        out->words += ty_bytes(type[f]) > 4 ? 2 : 1;
    for (int r = 0; r < p->nreductions; r++)
        for (int f = 0; f < p->reduction[r].op->nfields; f++)
            look_product(&s, p->reduction[r].map[f]);
    const struct misfit m[] = {
        { kept != 2, "of three dimensions it reduces one" },
        { p->sums, "of three dimensions it takes elements without sums of their own" },
        { s.other, "elements read values that are in no row of a table, and vary along several dimensions" },
        { s.many, "elements read too many tables" },
        { !along_axis(out, 0) || !along_axis(out, 1),
          "no row of a table is read by elements of several rows, or columns" },
        { 0 }
    };
    return plan_takes(why, m);
}

bool pairs_of(const struct problem *p, struct pairs *out, const char **why)
{
    struct search s = { .p = p, .pairs = out, .along = -1 };
    *out = (struct pairs){ 0 };
    if (p->kind == KIND_REDUCE && p->rank == PAIRS_PRODUCT_RANK)
        return product_of(p, out, why);
    for (int r = 0; p->kind == KIND_REDUCE && r < p->nreductions; r++)
        for (int f = 0; f < p->reduction[r].op->nfields; f++)
            look(&s, p->reduction[r].map[f]);
    for (int o = 0; p->kind == KIND_STENCIL && o < p->noutputs; o++)
        for (int f = 0; output_moment(&p->output[o]) == AT_POINT && f < p->output[o].array.nfields; f++)
            look(&s, p->output[o].value[f]);
    for (int i = 0; i < p->ninputs; i++)
        for (int f = 0; access_input_direct(p, i) && f < p->input[i].array.nfields; f++)
            out->words += ty_bytes(p->input[i].array.field[f].type) > 4 ? 2 : 1;
    const struct misfit m[] = {
        { p->rank != 2, "it takes spaces of two dimensions, and reductions of one of three" },
        { s.along < 0, "it takes sums over rows of tables, and here elements have none" },
        { s.several, "it takes sums over one dimension, and here there are others inside or beside them" },
        { sums_in_places(p), "it takes sums in values, and here the places of outputs have some" },
        { s.many, "the sums read too many tables" },
        { !along_axis(out, 0) || !along_axis(out, 1),
          "no row of a table is read by elements of several rows, or columns" },
        { 0 }
    };
    return plan_takes(why, m);
}

static int operand_bytes(const struct problem *p, const struct pairs_operand *o)
{
    return ty_bytes(p->input[o->input].array.field[o->field].type);
}

int pairs_pitch(const struct problem *p, const struct pairs_operand *o, int rows)
{
    return rows + VECTOR_BYTES / operand_bytes(p, o);
}

static int64_t tiles_bytes(const struct problem *p, const struct pairs *x, const int *rows)
{
    int64_t bytes = 0;
    for (int i = 0; i < x->noperands; i++) {
        const struct pairs_operand *o = &x->operand[i];
        bytes += (int64_t)PAIRS_TERMS * pairs_pitch(p, o, rows[o->axis]) * operand_bytes(p, o);
    }
    return bytes;
}

int pairs_stages(const struct problem *p, bool copies, const int *rows)
{
    struct pairs x;
    const char *why;
    pairs_of(p, &x, &why);
    for (int i = 0; i < x.noperands && copies; i++)
        copies = operand_bytes(p, &x.operand[i]) >= COPY_BYTES && !*p->input[x.operand[i].input].array.field[0].name;
    return copies && 2 * tiles_bytes(p, &x, rows) <= PAIRS_SHARED_MAX ? 2 : 1;
}

int64_t pairs_shared(const struct problem *p, const struct device *d, const int *rows)
{
    struct pairs x;
    const char *why;
    pairs_of(p, &x, &why);
    return tiles_bytes(p, &x, rows) * pairs_stages(p, d->sm >= 80, rows);
}
