/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite.c - copies of a problem's expressions, as a stage on a part or a fold of states has them. */
#include "derive_impl.h"

struct expr *derive_node(struct derive *d, const struct expr *like, enum expr_kind kind, int which)
{
    struct expr *e = arena_new(d->a, struct expr, 1);
    *e = (struct expr){ .kind = kind, .type = like->type, .at = like->at, .which = which };
    return e;
}

/* a op b, of the type and place of `like`. */
static const struct expr *binary(struct derive *d, const struct expr *like, enum binary op, const struct expr *a,
                                 const struct expr *b)
{
    struct expr *e = derive_node(d, like, EX_BINARY, 0);
    e->op = op;
    e->nargs = 2;
    e->arg[0] = a;
    e->arg[1] = b;
    return e;
}

/* On a part: positions and the size that expressions see are those in the whole.  In rows, axis 0 counts the blocks. */
static const struct expr *in_whole(struct derive *d, const struct expr *e)
{
    const int first = d->from->nparams, total = first + 1, stride = first + 5;
    if (e->kind == EX_SIZE)
        return e->which == d->sp->size ? derive_node(d, e, EX_PARAM, total) : e;
    const struct expr *at = d->rows ? derive_node(d, e, EX_INDEX, e->which + 1) : e;
    if (e->which != d->sp->axis)
        return at;
    d->sp->indexed = true;
    at = binary(d, e, BIN_ADD, at, derive_node(d, e, EX_PARAM, first));
    if (!d->rows)
        return at;
    const struct expr *block = derive_node(d, e, EX_INDEX, 0);
    return binary(d, e, BIN_ADD, at, binary(d, e, BIN_MUL, block, derive_node(d, e, EX_PARAM, stride)));
}

/* In a fold: what varies along the split axis is gone; no result depends on it. */
static const struct expr *in_fold(struct derive *d, const struct expr *e, int which)
{
    struct expr *copy = derive_node(d, e, which < 0 ? EX_CONST : e->kind, which < 0 ? 0 : which);
    copy->field = which < 0 ? 0 : e->field;
    return copy;
}

const struct expr *derive_expr(struct derive *d, const struct expr *e)
{
    if (!e)
        return NULL;
    if (!d->folds && (e->kind == EX_SIZE || e->kind == EX_INDEX))
        return in_whole(d, e);
    if (d->folds && e->kind == EX_INDEX)
        return in_fold(d, e, d->axis[e->which]);
    if (d->folds && e->kind == EX_INPUT)
        return in_fold(d, e, d->input[e->which]);
    if (d->folds && e->kind == EX_AT && d->table[e->which] < 0)
        return in_fold(d, e, -1);
    struct expr *copy = arena_new(d->a, struct expr, 1);
    *copy = *e;
    if (d->folds && e->kind == EX_AT)
        copy->which = d->table[e->which];
    if (d->folds && !d->scans && e->kind == EX_TOTAL)
        copy->kind = EX_STATE;
    if (d->rows && e->kind == EX_INPUT)
        copy->noffsets = 0; /* there are no neighbours, and one more dimension */
    if (d->swapped && (e->kind == EX_LEFT || e->kind == EX_RIGHT))
        copy->kind = e->kind == EX_LEFT ? EX_RIGHT : EX_LEFT;
    for (int i = 0; i < e->nargs; i++)
        if (d->folds || e->kind != EX_AT || !dist_own_place(d->sp, e, i))
            copy->arg[i] = derive_expr(d, e->arg[i]);
    return copy;
}

void derive_all(struct derive *d, const struct expr *const *from, const struct expr **to, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = derive_expr(d, from[i]);
}

static const struct let *lets(struct derive *d, const struct let *from, int n)
{
    struct let *to = arena_new(d->a, struct let, n + 1);
    for (int i = 0; i < n; i++)
        to[i] = (struct let){ from[i].name, derive_expr(d, from[i].value) };
    return to;
}

static const struct op *operator(struct derive *d, const struct op *from)
{
    struct op *to = arena_new(d->a, struct op, 1);
    *to = *from;
    to->let = lets(d, from->let, from->nlets);
    derive_all(d, from->identity, to->identity, from->nfields);
    derive_all(d, from->pad, to->pad, from->nfields);
    derive_all(d, from->combine, to->combine, from->nfields);
    return to;
}

void derive_named(struct derive *d, struct problem *p)
{
    struct gatherer *to = arena_new(d->a, struct gatherer, d->from->ngatherers + 1);
    for (int i = 0; i < d->from->ngatherers; i++) {
        to[i] = d->from->gatherer[i];
        to[i].op = operator(d, to[i].op);
    }
    p->let = lets(d, d->from->let, d->from->nlets);
    p->gatherer = to;
}

struct reduction *derive_reductions(struct derive *d)
{
    struct reduction *to = arena_new(d->a, struct reduction, d->from->nreductions + 1);
    for (int i = 0; i < d->from->nreductions; i++) {
        const struct reduction *r = &d->from->reduction[i];
        to[i] = *r;
        to[i].op = operator(d, r->op);
        derive_all(d, r->map, to[i].map, r->op->nfields);
        derive_all(d, r->init, to[i].init, r->op->nfields);
    }
    return to;
}

struct output derive_output(struct derive *d, const struct output *from)
{
    struct output to = *from;
    derive_all(d, from->value, to.value, from->array.nfields);
    to.where = derive_expr(d, from->where);
    to.place = derive_expr(d, from->place);
    return to;
}
