/* SPDX-License-Identifier: Apache-2.0 */
/* util.c - small services on typed expressions: making, walking, comparing, printing.
 *
 * Printing is canonical: every binary operation and `if` stands in parentheses, constants carry their type where it is
 * not i32, f32 or bool, implicit conversions are shown.  Two expressions print alike exactly when they are equal, but for
 * what `contract` marks.
 */
#include "frontend/frontend_impl.h"

#include <stdio.h>
#include <stdlib.h>

const char *fn_name(enum fn f)
{
    static const char *const names[] = {
#define FN(id, name, arity, types, what) name,
#include "functions.def"
#undef FN
    };
    return f >= 0 && f < FN_COUNT ? names[f] : "?";
}

struct expr *expr_new(struct arena *a, enum expr_kind kind, enum ty type, struct span at)
{
    struct expr *e = arena_new(a, struct expr, 1);
    e->kind = kind;
    e->type = type;
    e->at = at;
    return e;
}

struct expr *expr_cast(struct arena *a, const struct expr *e, enum ty to)
{
    struct expr *cast = expr_new(a, EX_CAST, to, e->at);
    cast->nargs = 1;
    cast->arg[0] = e;
    return cast;
}

struct expr *expr_binary(struct arena *a, enum binary op, enum ty type, const struct expr *left,
                         const struct expr *right)
{
    struct expr *e = expr_new(a, EX_BINARY, type, left->at);
    e->op = op;
    e->nargs = 2;
    e->arg[0] = left;
    e->arg[1] = right;
    return e;
}

struct expr *expr_leaf(struct arena *a, enum expr_kind kind, enum ty type, int which, int field, struct span at)
{
    struct expr *e = expr_new(a, kind, type, at);
    e->which = which;
    e->field = field;
    return e;
}

struct expr *expr_choose(struct arena *a, const struct expr *condition, const struct expr *yes, const struct expr *no)
{
    struct expr *e = expr_new(a, EX_IF, yes->type, yes->at);
    e->nargs = 3;
    e->arg[0] = condition;
    e->arg[1] = yes;
    e->arg[2] = no;
    return e;
}

void expr_walk(const struct expr *e, void (*f)(const struct expr *e, void *user), void *user)
{
    if (!e)
        return;
    f(e, user);
    for (int i = 0; i < e->nargs; i++)
        expr_walk(e->arg[i], f, user);
}

struct let_walk {
    const struct problem *p;
    void (*f)(const struct expr *e, void *user);
    void *user;
    bool seen[LET_VALUES_MAX];
};

static void walk_through(const struct expr *e, void *user)
{
    struct let_walk *w = user;
    w->f(e, w->user);
    if (e->kind != EX_LET || w->seen[e->which])
        return;
    w->seen[e->which] = true;
    expr_walk(w->p->let[e->which].value, walk_through, w);
}

void problem_walk(const struct problem *p, const struct expr *e, void (*f)(const struct expr *e, void *user),
                  void *user)
{
    struct let_walk w = { .p = p, .f = f, .user = user };
    expr_walk(e, walk_through, &w);
}

bool expr_equal(const struct expr *a, const struct expr *b)
{
    if (!a || !b)
        return a == b;
    if (a->kind != b->kind || a->type != b->type || a->op != b->op || a->which != b->which || a->which2 != b->which2 ||
        a->field != b->field || a->noffsets != b->noffsets || a->imm.u != b->imm.u || a->nargs != b->nargs)
        return false;
    for (int i = 0; i < a->noffsets; i++)
        if (a->offset[i] != b->offset[i])
            return false;
    for (int i = 0; i < a->nargs; i++)
        if (!expr_equal(a->arg[i], b->arg[i]))
            return false;
    return true;
}

bool expr_same_state(const struct expr *a, const struct expr *b)
{
    struct expr other = *b;
    other.field = a->field;
    other.type = a->type;
    return expr_equal(a, &other);
}

unsigned input_axes(const struct builder *b, const struct input *in)
{
    unsigned axes = 0;
    int axis[PROG_RANK_MAX];
    memcpy(axis, in->axis, sizeof axis);
    if (in->summed || in->spread)
        (in->spread ? match_own : match_axes)(b, &in->array, axis);
    for (int i = 0; i < in->array.rank; i++)
        if (axis[i] >= 0)
            axes |= 1u << (in->spread ? b->own_axis[axis[i]] : axis[i]);
    return axes;
}

unsigned reduced_axes(const struct builder *b)
{
    unsigned axes = 0;
    for (int i = 0; i < b->p->rank; i++)
        if (b->p->space[i].reduced || b->p->kind == KIND_STENCIL)
            axes |= 1u << i;
    return axes;
}

struct axes_walk {
    const struct builder *b;
    unsigned axes;
};

static void collect_axes(const struct expr *e, void *user)
{
    struct axes_walk *w = user;
    if (e->kind == EX_INPUT || e->kind == EX_GATHER)
        w->axes |= input_axes(w->b, &w->b->input[e->which]);
    else if (e->kind == EX_INDEX)
        w->axes |= 1u << e->which;
    else if (e->kind == EX_LET)
        w->axes |= w->b->lets.axes[e->which];
}

unsigned expr_axes(const struct builder *b, const struct expr *e)
{
    struct axes_walk w = { b, 0 };
    expr_walk(e, collect_axes, &w);
    return w.axes;
}

/* ---- printing ---- */

/* The shortest decimal text that is x in type t. */
static void print_float(enum ty t, double x, struct str *out)
{
    char text[40];
    if (x != x || x - x != 0) {
        str_double(out, x);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        uint64_t image = 0;
        snprintf(text, sizeof text, "%.*g", digits, x);
        value_store(t, &image, (union value){ .f = strtod(text, NULL) });
        if (value_load(t, &image).f == x)
            break;
    }
    str_printf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static void print_constant(const struct expr *e, struct str *out)
{
    bool typed = e->type != TY_I32 && e->type != TY_F32 && e->type != TY_BOOL;
    if (typed)
        str_printf(out, "%s(", ty_name(e->type));
    if (e->type == TY_BOOL)
        str_add(out, e->imm.i ? "true" : "false");
    else if (ty_is_float(e->type))
        print_float(e->type, e->imm.f, out);
    else if (ty_is_signed(e->type))
        str_printf(out, "%lld", (long long)e->imm.i);
    else
        str_printf(out, "%llu", (unsigned long long)e->imm.u);
    if (typed)
        str_addc(out, ')');
}

static void print_field(struct str *out, const char *field)
{
    if (field && *field)
        str_printf(out, ".%s", field);
}

static void print_offsets(const struct expr *e, struct str *out)
{
    for (int i = 0; i < e->noffsets; i++)
        str_printf(out, "%s%d", i ? ", " : "[", e->offset[i]);
    if (e->noffsets)
        str_addc(out, ']');
}

static void print_state(const struct problem *p, const struct expr *e, struct str *out)
{
    const struct reduction *r = &p->reduction[e->which];
    bool total = e->kind == EX_TOTAL;
    if (!total || p->nreductions > 1 || (strcmp(r->name, "s") && strcmp(r->name, "r")))
        str_printf(out, "%s%s", r->name, total ? ".total" : "");
    else
        str_add(out, "total");
    if (r->op)
        print_field(out, r->op->field_name[e->field]);
}

static void print_leaf(const struct problem *p, const struct op *op, const struct expr *e, struct str *out)
{
    switch (e->kind) {
    case EX_CONST: print_constant(e, out); break;
    case EX_INPUT:
        str_add(out, p->input[e->which].array.name);
        print_offsets(e, out);
        print_field(out, p->input[e->which].array.field[e->field].name);
        break;
    case EX_PARAM: str_add(out, p->param[e->which].name); break;
    case EX_SIZE: str_add(out, p->size[e->which].name); break;
    case EX_INDEX:
        if (p->space[e->which].extent.size >= 0)
            str_printf(out, "index(%s)", p->size[p->space[e->which].extent.size].name);
        else
            str_printf(out, "index(#%d)", e->which);
        break;
    case EX_RUN: str_printf(out, "index(%s)", p->size[e->which].name); break;
    case EX_LET: str_add(out, p->let[e->which].name); break;
    case EX_OP_LET: str_add(out, op ? op->let[e->which].name : "?"); break;
    case EX_LEFT:
    case EX_RIGHT:
        str_addc(out, e->kind == EX_LEFT ? 'a' : 'b');
        if (op)
            print_field(out, op->field_name[e->field]);
        break;
    case EX_STATE:
    case EX_TOTAL: print_state(p, e, out); break;
    case EX_OUTPUT:
        str_add(out, p->output[e->which].array.name);
        print_field(out, p->output[e->which].array.field[e->field].name);
        break;
    case EX_NEIGHBOUR:
        str_add(out, "neighbour");
        print_field(out, p->input[e->which].array.field[e->field].name);
        break;
    default: break;
    }
}

static void print_if(const struct problem *p, const struct op *op, const struct expr *e, struct str *out)
{
    static const char *const before[] = { "(if ", " then ", " else " };
    for (int i = 0; i < 3; i++) {
        str_add(out, before[i]);
        expr_print(p, op, e->arg[i], out);
    }
    str_addc(out, ')');
}

static void print_arguments(const struct problem *p, const struct op *op, const struct expr *e, int n, struct str *out)
{
    for (int i = 0; i < n; i++) {
        str_add(out, i ? ", " : "");
        expr_print(p, op, e->arg[i], out);
    }
    str_addc(out, ')');
}

void expr_print(const struct problem *p, const struct op *op, const struct expr *e, struct str *out)
{
    switch (e->kind) {
    case EX_UNARY:
        str_printf(out, "(%s%s", unary_text(e->op), e->op == UN_NOT ? " " : "");
        expr_print(p, op, e->arg[0], out);
        str_addc(out, ')');
        break;
    case EX_BINARY:
        str_addc(out, '(');
        expr_print(p, op, e->arg[0], out);
        str_printf(out, " %s ", binary_text(e->op));
        expr_print(p, op, e->arg[1], out);
        str_addc(out, ')');
        break;
    case EX_IF: print_if(p, op, e, out); break;
    case EX_CALL:
    case EX_CAST:
        str_printf(out, "%s(", e->kind == EX_CALL ? fn_name(e->op) : ty_name(e->type));
        print_arguments(p, op, e, e->nargs, out);
        break;
    case EX_AT:
        str_printf(out, "at(%s, ", p->input[e->which].array.name);
        print_arguments(p, op, e, e->nargs, out);
        print_field(out, p->input[e->which].array.field[e->field].name);
        break;
    case EX_SUM:
        str_printf(out, "%s(%s, ", sum_name(e->op), p->size[e->which].name);
        print_arguments(p, op, e, 1, out);
        break;
    case EX_GATHER:
        str_printf(out, "gather(%s, %s, neighbour, %s, ", p->input[e->which].array.name, p->input[e->which2].array.name,
                   p->gatherer[e->op].name);
        print_arguments(p, op, e, e->nargs, out);
        print_field(out, p->gatherer[e->op].op->field_name[e->field]);
        break;
    default: print_leaf(p, op, e, out); break;
    }
}
