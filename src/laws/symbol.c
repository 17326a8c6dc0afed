/* SPDX-License-Identifier: Apache-2.0 */
/* symbol.c - expressions as terms.
 *
 * A leaf is a variable, named after what it is and, where it varies along what is combined, after its element.
 * Neighbours at different offsets and what a gather gives are variables of their own: that they may be related is not
 * said, which can cost a proof and never makes a wrong one.
 */
#include <stdlib.h>
#include <string.h>

#include "terms.h"

static term symbol(struct symbols *s, const struct expr *e);

void symbols_begin(struct symbols *s, struct terms *t, const struct problem *p, const struct reduction *red)
{
    *s = (struct symbols){ .t = t, .p = p, .red = red, .element = -1 };
    s->let = arena_new(t->a, term, p->nlets ? p->nlets : 1);
    s->op_let = arena_new(t->a, term, red->op->nlets ? red->op->nlets : 1);
}

/* Naturals among the integers; that what a type cannot hold does not occur is said only on demand. */
static term leaf(struct symbols *s, const char *name, enum ty t)
{
    const int before = s->t->n;
    term x = term_variable(s->t, name, t);
    if (s->t->n == before || s->t->level != LEVEL_IDEAL || !ty_is_int(t))
        return x;
    term low = term_value(s->t, t, ref_cast(TY_F64, t, (union value){ .f = -0x1p64 }));
    term high = term_value(s->t, t, ref_cast(TY_F64, t, (union value){ .f = 0x1p64 }));
    if (!ty_is_signed(t))
        term_assume(s->t, term_make(s->t, "<=", TY_BOOL, 2, low, x, NULL));
    else
        term_demand(s->t, term_make(s->t, "<=", TY_BOOL, 2, low, x, NULL));
    term_demand(s->t, term_make(s->t, "<=", TY_BOOL, 2, x, high, NULL));
    return x;
}

static term at_most(struct symbols *s, term x, term y)
{
    return term_make(s->t, s->t->level == LEVEL_IDEAL ? "<=" : "bvsle", TY_BOOL, 2, x, y, NULL);
}

/* Positions and sizes are not negative, and sizes keep what the spec promises. */
static term natural(struct symbols *s, const char *name, int64_t least, int64_t most)
{
    const int before = s->t->n;
    term x = leaf(s, name, TY_I64);
    if (s->t->n != before) {
        term_assume(s->t, at_most(s, term_integer(s->t, TY_I64, least), x));
        term_assume(s->t, at_most(s, x, term_integer(s->t, TY_I64, most)));
    }
    return x;
}

static bool axis_varies(const struct problem *p, int axis)
{
    return axis < 0 || p->space[axis].reduced || p->kind == KIND_STENCIL;
}

static term input_symbol(struct symbols *s, const struct expr *e)
{
    const struct input *x = &s->p->input[e->which];
    struct str name = { 0 };
    bool varies = false;
    str_printf(&name, "%s.%d", x->array.name, e->field);
    for (int d = 0; d < x->array.rank; d++) {
        varies |= axis_varies(s->p, x->axis[d]);
        if (e->noffsets && e->offset[d])
            str_printf(&name, ".by%d.%s%d", d, e->offset[d] < 0 ? "m" : "", abs(e->offset[d]));
    }
    if (varies)
        str_printf(&name, ".of%d", s->element);
    term made = leaf(s, name.text, e->type);
    str_finish(&name);
    return made;
}

static term leaf_symbol(struct symbols *s, const struct expr *e)
{
    struct arena *a = s->t->a;
    switch (e->kind) {
    case EX_INPUT: return input_symbol(s, e);
    case EX_NEIGHBOUR: return leaf(s, arena_printf(a, "neighbour.%d.%d.of%d", e->which, e->field, s->element), e->type);
    case EX_RUN: return natural(s, arena_printf(a, "row.%d.of%d", e->which, s->element), 0, INT64_MAX);
    case EX_PARAM: return leaf(s, arena_printf(a, "param.%s", s->p->param[e->which].name), e->type);
    case EX_SIZE: {
        const struct dimension *d = &s->p->size[e->which];
        return natural(s, arena_printf(a, "size.%s", d->name), d->min, d->max);
    }
    case EX_INDEX: {
        const int of = axis_varies(s->p, e->which) ? s->element : -1;
        return natural(s, arena_printf(a, "index.%d.of%d", e->which, of), 0, INT64_MAX);
    }
    default: /* gathers and reads at computed places: anything, wherever they are written */
        return leaf(s, arena_printf(a, "any.%d.%u.of%d", e->which, e->at.begin, s->element), e->type);
    }
}

static term symbol(struct symbols *s, const struct expr *e)
{
    term arg[OPERANDS_MAX] = { NULL };
    switch (e->kind) {
    case EX_CONST: return term_value(s->t, e->type, e->imm);
    case EX_LET:
        if (!s->let[e->which])
            s->let[e->which] = symbol(s, s->p->let[e->which].value);
        return s->let[e->which];
    case EX_OP_LET:
        if (!s->op_let[e->which])
            s->op_let[e->which] = symbol(s, s->red->op->let[e->which].value);
        return s->op_let[e->which];
    case EX_LEFT: return s->left[e->field];
    case EX_RIGHT: return s->right[e->field];
    case EX_OUTPUT: return symbol(s, s->p->output[e->which].value[e->field]);
    case EX_UNARY:
    case EX_BINARY:
    case EX_CALL:
    case EX_CAST:
    case EX_IF: break;
    default: return leaf_symbol(s, e);
    }
    for (int i = 0; i < e->nargs; i++)
        arg[i] = symbol(s, e->arg[i]);
    if (e->kind == EX_IF || (e->kind == EX_CALL && e->op == FN_SELECT))
        return term_if(s->t, arg[0], arg[1], arg[2]);
    if (e->kind == EX_BINARY && e->op == BIN_LAND)
        return term_and(s->t, arg[0], arg[1]);
    if (e->kind == EX_BINARY && e->op == BIN_LOR)
        return term_or(s->t, arg[0], arg[1]);
    if (e->kind == EX_UNARY && e->op == UN_NOT)
        return term_not(s->t, arg[0]);
    return s->t->level == LEVEL_BITS ? bits_term(s->t, e, arg) : ideal_term(s->t, e, arg);
}

void symbols_element(struct symbols *s, int k, term *out)
{
    s->element = k;
    memset(s->let, 0, sizeof *s->let * (size_t)s->p->nlets);
    for (int f = 0; f < s->red->op->nfields; f++)
        out[f] = symbol(s, s->red->map[f]);
    s->element = -1;
}

void symbols_state(struct symbols *s, const char *name, term *out)
{
    const struct op *op = s->red->op;
    for (int f = 0; f < op->nfields; f++)
        out[f] = leaf(s, arena_printf(s->t->a, "%s.%d", name, f), op->field[f]);
}

void symbols_identity(struct symbols *s, const struct state *given, term *out)
{
    const struct op *op = s->red->op;
    for (int f = 0; f < op->nfields; f++)
        out[f] = given ? term_value(s->t, op->field[f], given->field[f].bits) : symbol(s, op->identity[f]);
}

void symbols_combine(struct symbols *s, const term *a, const term *b, term *out)
{
    const struct op *op = s->red->op;
    term result[STATE_FIELDS_MAX];
    memset(s->op_let, 0, sizeof *s->op_let * (size_t)op->nlets);
    memset(s->let, 0, sizeof *s->let * (size_t)s->p->nlets);
    s->left = a;
    s->right = b;
    for (int f = 0; f < op->nfields; f++)
        result[f] = symbol(s, op->combine[f]);
    memcpy(out, result, sizeof *out * (size_t)op->nfields);
}

term symbols_claim(struct symbols *s, const struct expr *claim, const term *of)
{
    s->left = of;
    return symbol(s, claim);
}

term symbols_fixed(struct symbols *s, const struct fixed *which)
{
    const int before = s->t->n;
    struct expr e = { .kind = which->kind, .which = which->which, .field = which->field, .type = TY_I64 };
    if (e.kind == EX_PARAM)
        e.type = s->p->param[e.which].type;
    if (e.kind == EX_INPUT)
        e.type = s->p->input[e.which].array.field[e.field].type;
    term x = leaf_symbol(s, &e);
    return s->t->n == before ? x : NULL;
}
