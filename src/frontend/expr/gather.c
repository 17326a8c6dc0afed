/* SPDX-License-Identifier: Apache-2.0 */
/* gather.c - typing of gather(x, off, k, OPERATOR, EXPR, …) and gather(…).field: neighbours at offsets that are given at
 * launch, combined.
 *
 * The expressions say what a neighbour contributes to the operator's state, as a map does: one for each field in the
 * order of the state, or one structure that has the fields, or a scalar that the operator lifts.  Rows are combined one
 * after the other.  That the operator commutes is asked for all the same: then what a gather means does not hang on the
 * order in which somebody lists offsets.
 */
#include "frontend/frontend_impl.h"

enum { OPERATOR = 3, FIRST = 4 }; /* arguments: the operator, the first expression */

struct gather {
    struct ast *call;
    int input, offsets;
    struct own_op *own;       /* the user's, or … */
    const struct op_row *row; /* … a built-in operator */
    int nfields;              /* of the state; names[0] is empty for a scalar */
    const char *const *names;
};

static struct ast *call_of(struct ast *e) { return e->kind == AST_FIELD ? e->arg[0] : e; }

bool gather_is(const struct ast *e)
{
    e = e->kind == AST_FIELD ? e->arg[0] : e;
    return e->kind == AST_CALL && !strcmp(e->name, "gather");
}

static bool has_fields(const struct gather *g) { return g->nfields && *g->names[0]; }

/* What the names in the call mean; false: they do not fit. */
static bool parts(const struct scope *sc, struct ast *call, struct gather *g)
{
    struct builder *b = sc->b;
    *g = (struct gather){ .call = call, .input = -1, .offsets = -1 };
    for (int i = 0; i < FIRST && i < call->nargs; i++)
        if (call->arg[i]->kind != AST_NAME)
            return false;
    if (call->nargs <= FIRST)
        return false;
    g->input = input_find(b, call->arg[0]->name);
    g->offsets = input_find(b, call->arg[1]->name);
    g->own = own_op_find(b, call->arg[OPERATOR]->name);
    g->row = g->own ? NULL : op_row_by_name(call->arg[OPERATOR]->name);
    if (g->row) {
        const char **names = arena_new(b->a, const char *, STATE_FIELDS_MAX);
        char letters[STATE_FIELDS_MAX];
        g->nfields = op_row_fields(g->row, b->a, names, letters);
        g->names = names;
    } else if (g->own && g->own->op) {
        g->nfields = g->own->op->nfields;
        g->names = g->own->op->field_name;
    }
    return g->input >= 0 && g->offsets >= 0 && (g->row || g->own);
}

static struct scope inside(const struct scope *sc, const struct gather *g, struct summing *rows)
{
    struct scope inner = *sc;
    *rows = (struct summing){ sc->b->input[g->offsets].array.dim[0].size, NULL };
    inner.neighbour = g->call->arg[2]->name;
    inner.neighbour_input = g->input;
    inner.sums = rows;
    return inner;
}

/* One expression for each field, where they are given so: the others are lifted, or do not fit. */
static bool by_fields(const struct scope *inner, const struct gather *g, struct ast **field)
{
    const int n = g->call->nargs - FIRST;
    struct ast *first = g->call->arg[FIRST];
    for (int f = 0; f < n && n == g->nfields; f++)
        field[f] = g->call->arg[FIRST + f];
    return n == g->nfields || (n == 1 && has_fields(g) && structure_fields(inner, first, g->nfields, g->names, field));
}

static bool is_lifted(const struct gather *g) { return g->row && g->row->lift && g->call->nargs == FIRST + 1; }

/* The type that an operator lifts the expression from. */
static enum ty lifted_type(const struct gather *g, int peeked)
{
    return peeked < 0 && peeked != T_POISON && !strchr(g->row->types, 's') ? TY_F32 : type_default(peeked);
}

/* ---- types ---- */

bool gather_names(const struct scope *sc, const struct ast *e, int *nfields, const char *const **names)
{
    struct gather g;
    if (e->kind != AST_CALL || !gather_is(e) || !parts(sc, (struct ast *)(uintptr_t)e, &g) || !has_fields(&g))
        return false;
    *nfields = g.nfields;
    *names = g.names;
    return true;
}

static int field_find(const struct gather *g, const char *name)
{
    int f = g->nfields;
    while (--f >= 0 && strcmp(g->names[f], name) != 0)
        ;
    return f;
}

static bool row_types(const struct scope *inner, const struct gather *g, enum ty *type)
{
    struct ast *field[STATE_FIELDS_MAX];
    if (by_fields(inner, g, field))
        return op_row_types(inner, g->row, field, TY_NONE, type);
    const enum ty t = is_lifted(g) ? lifted_type(g, type_peek(inner, g->call->arg[FIRST])) : TY_NONE;
    for (int f = 0; f < g->nfields; f++)
        type[f] = t;
    return t != TY_NONE;
}

int gather_peek(const struct scope *sc, struct ast *e)
{
    struct gather g;
    struct summing rows;
    enum ty type[STATE_FIELDS_MAX];
    if (!parts(sc, call_of(e), &g))
        return T_POISON;
    sc->b->input[g.input].used = true;
    const struct scope inner = inside(sc, &g, &rows);
    const int field = field_find(&g, e->kind == AST_FIELD ? e->name : "");
    if (field < 0)
        return T_POISON;
    if (g.own)
        return (int)g.own->op->field[field];
    if (!has_fields(&g))
        return type_peek(&inner, g.call->arg[FIRST]);
    return row_types(&inner, &g, type) ? (int)type[field] : T_POISON;
}

/* ---- messages ---- */

static bool wrong(const struct scope *sc, const struct ast *at, const char *what, const char *hint)
{
    struct diag *m = diag_error(sc->b->d, D_BAD_GATHER, at->at, "%s", what);
    if (hint)
        diag_hint(sc->b->d, m, "%s", hint);
    return false;
}

/* The names are not what the call needs. */
static bool wrong_parts(const struct scope *sc, const struct gather *g)
{
    struct builder *b = sc->b;
    const struct ast *call = g->call;
    static const char *const what[] = { "an input", "an input of offsets", "a name for the neighbour's value",
                                        "an operator" };
    if (call->nargs <= FIRST) {
        diag_error(b->d, D_ARGUMENT_COUNT, call->at, "gather() takes 5 arguments, not %d", call->nargs);
        return false;
    }
    for (int i = 0; i < FIRST; i++)
        if (call->arg[i]->kind != AST_NAME || (i == 0 && g->input < 0) || (i == 1 && g->offsets < 0))
            return wrong(sc, call->arg[i], arena_printf(b->a, "argument %d of gather() is %s", i + 1, what[i]), NULL);
    op_row_find(b, call->arg[OPERATOR]->name, call->arg[OPERATOR]->at);
    return false;
}

static bool wrong_count(const struct scope *sc, const struct gather *g)
{
    struct builder *b = sc->b;
    const struct ast *call = g->call;
    const char *names = "";
    if (!has_fields(g)) {
        diag_error(b->d, D_ARGUMENT_COUNT, call->at, "gather() takes 5 arguments, not %d", call->nargs);
        return false;
    }
    for (int f = 0; f < g->nfields; f++)
        names = arena_printf(b->a, "%s%s%s", names, f ? ", " : "", g->names[f]);
    struct diag *m = diag_error(b->d, D_ARGUMENT_COUNT, call->at,
                                "'%s' combines states of %d fields, and gather() takes an expression for each, not %d",
                                call->arg[OPERATOR]->name, g->nfields, call->nargs - FIRST);
    diag_hint(b->d, m, "in the order of the state: %s", names);
    return false;
}

/* ---- what is asked of it ---- */

static bool shapes_fit(const struct scope *sc, const struct gather *g)
{
    struct builder *b = sc->b;
    const struct prog_array *x = &b->input[g->input].array, *off = &b->input[g->offsets].array;
    if (b->input[g->input].role != ROLE_ELEMENT)
        return wrong(sc, g->call->arg[0], arena_printf(b->a, "'%s' gives positions and has no neighbours", x->name),
                     NULL);
    bool flat = off->rank == 1 && x->rank == 1;
    bool pairs = off->rank == 2 && off->dim[1].size < 0 && off->dim[1].add == x->rank;
    bool integers = off->nfields == 1 && !*off->field[0].name && off->field[0].type == TY_I32;
    if (integers && (flat || pairs))
        return true;
    struct diag *m =
        diag_error(b->d, D_BAD_GATHER, g->call->arg[1]->at, "'%s' has %d dimension%s, so '%s' must be i32[p, %d]",
                   x->name, x->rank, x->rank == 1 ? "" : "s", off->name, x->rank);
    diag_note(b->d, m, b->input[g->offsets].at, "it is declared here");
    return false;
}

static bool may_stand(const struct scope *sc, const struct gather *g)
{
    struct builder *b = sc->b;
    if ((sc->allows & SC_GATHER) && !sc->neighbour && !sc->sums)
        return true;
    const char *place = sc->neighbour ? "a gather inside a gather" : sc->sums ? "a sum" : sc->place;
    const bool other_kind = !sc->neighbour && !sc->sums && b->p->kind != KIND_STENCIL;
    return wrong(sc, g->call, arena_printf(b->a, "%s cannot gather", place),
                 other_kind ? "only maps and stencils gather: let a stage before this one write what it gathers"
                            : NULL);
}

/* op: NULL for an operator in error. */
static bool operator_fits(const struct scope *sc, const struct gather *g, const struct op *op)
{
    struct builder *b = sc->b;
    const struct ast *at = g->call->arg[OPERATOR];
    if (!op_is_whole(op))
        return false; /* reported */
    if (!op->commutative)
        return wrong(sc, at, arena_printf(b->a, "the operator of a gather must commute, and '%s' does not", at->name),
                     g->own ? "if a and b may be exchanged, say so in the operator: commutative: true" : NULL);
    if (op_reads_inputs(op))
        return wrong(sc, at, "the operator of a gather reads no inputs",
                     "what a neighbour contributes may read them: gather(x, off, k, OPERATOR, EXPR)");
    if (op->identity[0])
        return true;
    diag_hint(b->d,
              diag_error(b->d, D_NO_IDENTITY, at->at,
                         "a gather over no offsets gives the identity, and the operator '%s' has none", at->name),
              "give it one, as in identity: 0");
    return false;
}

/* ---- building ---- */

/* The operator and what a neighbour contributes to its fields. */
struct built {
    const struct op *op;
    const struct expr *map[STATE_FIELDS_MAX];
};

static const struct op *row_operator(const struct scope *sc, const struct gather *g, const enum ty *type)
{
    const struct ast *at = g->call->arg[OPERATOR];
    if (strchr(g->row->types, ty_kind(type[0])))
        return op_builtin(sc->b, g->row, type, at->at);
    diag_error(sc->b->d, D_OPERATOR_TYPE, at->at, "'%s' does not combine %s", g->row->name, ty_name(type[0]));
    return NULL;
}

/* A built-in operator takes its types from the expressions, which are not widened. */
static bool build_row(const struct scope *inner, const struct gather *g, int want, struct built *out)
{
    struct ast *field[STATE_FIELDS_MAX], *first = g->call->arg[FIRST];
    enum ty type[STATE_FIELDS_MAX];
    if (!by_fields(inner, g, field) && !is_lifted(g))
        return wrong_count(inner, g);
    if (!has_fields(g)) {
        out->map[0] = type_build(inner, first, type_peek(inner, first) < 0 ? want : T_ANY);
        if (out->map[0])
            type[0] = out->map[0]->type;
        out->op = out->map[0] ? row_operator(inner, g, type) : NULL;
        return out->op;
    }
    if (!row_types(inner, g, type))
        return is_lifted(g) ? type_build(inner, first, T_ANY) && false : op_row_misfit(inner, g->row, field);
    out->op = row_operator(inner, g, type);
    if (out->op && is_lifted(g))
        return op_row_lift(inner, g->row, g->nfields, first, type[0], out->map);
    bool good = out->op;
    for (int f = 0; out->op && f < g->nfields; f++)
        good &= (out->map[f] = type_build_widened(inner, field[f], type[f])) != NULL;
    return good;
}

static bool build_own(const struct scope *inner, const struct gather *g, struct built *out)
{
    struct ast *field[STATE_FIELDS_MAX];
    bool good = true;
    out->op = g->own->op;
    if (!op_is_whole(out->op))
        return false;
    if (!by_fields(inner, g, field))
        return wrong_count(inner, g);
    for (int f = 0; f < g->nfields; f++)
        good &= (out->map[f] = type_build_widened(inner, field[f], out->op->field[f])) != NULL;
    return good;
}

/* The same operator, of the same types? */
static bool is_same(const struct op *x, const struct op *y)
{
    return x == y || (x->builtin && y->builtin && !strcmp(x->name, y->name) && x->nfields == y->nfields &&
                      !memcmp(x->field, y->field, sizeof *x->field * (size_t)x->nfields));
}

/* The number of the operator among those of gathers. */
static int gatherer(struct builder *b, const struct ast *name, const struct reduction *r)
{
    int i = 0;
    while (i < b->ngatherers && !is_same(b->gatherer[i].op, r->op))
        i++;
    const struct expr **map = arena_new(b->a, const struct expr *, r->op->nfields);
    memcpy(map, r->map, sizeof *map * (size_t)r->op->nfields);
    const struct gatherer own = { name->name, r->op, map, name->at };
    if (i == b->ngatherers)
        ARENA_PUSH(b->a, b->gatherer, b->ngatherers, b->cap_gatherers, own);
    return i;
}

/* All fields of a gather; NULL: reported. */
static const struct op *build(const struct scope *sc, struct ast *call, int want, const struct expr **field)
{
    struct builder *b = sc->b;
    struct gather g;
    struct summing rows;
    struct built x = { NULL, { NULL } };
    if (!parts(sc, call, &g))
        return wrong_parts(sc, &g), NULL;
    if (!shapes_fit(sc, &g) || !may_stand(sc, &g))
        return NULL;
    const struct scope inner = inside(sc, &g, &rows);
    warn_hidden(b, inner.neighbour, call->arg[2]->at, "the neighbour's value");
    if (!(g.own ? build_own(&inner, &g, &x) : build_row(&inner, &g, want, &x)) || !operator_fits(sc, &g, x.op))
        return NULL;
    struct reduction r = { .name = call->arg[OPERATOR]->name, .op = x.op, .at = call->at };
    contract_maps(b, &r); /* of the operator alone: what a neighbour contributes is rounded, the same in all kernels */
    memcpy(r.map, x.map, sizeof r.map);
    const int number = gatherer(b, call->arg[OPERATOR], &r);
    for (int f = 0; f < x.op->nfields; f++) {
        struct expr *e = expr_leaf(b->a, EX_GATHER, x.op->field[f], g.input, f, call->at);
        e->op = number;
        e->which2 = g.offsets;
        e->nargs = x.op->nfields;
        memcpy(e->arg, r.map, sizeof *e->arg * (size_t)e->nargs);
        field[f] = e;
    }
    b->input[g.input].used = b->input[g.input].neighbours = b->p->dynamic = true;
    return x.op;
}

const struct op *gather_state(const struct scope *sc, struct ast *e, const struct expr **field)
{
    return build(sc, e, T_ANY, field);
}

const struct expr *gather_build(const struct scope *sc, struct ast *e, int want)
{
    const struct expr *field[STATE_FIELDS_MAX];
    const struct op *op = build(sc, call_of(e), want, field);
    if (!op)
        return NULL;
    const bool scalar = !*op->field_name[0];
    const struct gather g = { .nfields = op->nfields, .names = op->field_name };
    const int f = field_find(&g, e->kind == AST_FIELD ? e->name : "");
    if (f >= 0)
        return field[f];
    struct diags *d = sc->b->d;
    if (e->kind != AST_FIELD)
        diag_hint(d, diag_error(d, D_NEEDS_FIELD, e->at, "this has fields and is no scalar"),
                  "read one of them: gather(…).%s", op->field_name[0]);
    else if (scalar)
        diag_error(d, D_UNKNOWN_FIELD, e->op_at, "a scalar has no field '%s'", e->name);
    else
        diag_suggest(d, diag_error(d, D_UNKNOWN_FIELD, e->op_at, "there is no field '%s'", e->name), e->name,
                     op->field_name, op->nfields);
    return NULL;
}
