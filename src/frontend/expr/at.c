/* SPDX-License-Identifier: Apache-2.0 */
/* at.c - typing of at(x, i, j) and at(x, i, j).field: an input at computed places.
 *
 * An index may be any integer; the boundary of the input says what stands for a place outside of it.  An empty array
 * has no place at all, so the sizes that could make it empty where at() is evaluated have a minimum.
 */
#include "frontend/frontend_impl.h"

static struct ast *call_of(struct ast *e) { return e->kind == AST_FIELD ? e->arg[0] : e; }
static const char *field_of(const struct ast *e) { return e->kind == AST_FIELD ? e->name : ""; }

bool at_is(struct ast *e)
{
    e = call_of(e);
    return e->kind == AST_CALL && !strcmp(e->name, "at");
}

static int input_of(const struct scope *sc, struct ast *e)
{
    struct ast *call = call_of(e);
    return call->nargs > 0 && call->arg[0]->kind == AST_NAME ? input_find(sc->b, call->arg[0]->name) : -1;
}

/* The number of the field; -1: there is none of that name. */
static int find_field(const struct prog_array *x, const char *name)
{
    int f = x->nfields;
    while (--f >= 0 && strcmp(x->field[f].name, name) != 0)
        ;
    return f;
}

int at_peek(const struct scope *sc, struct ast *e)
{
    const int input = input_of(sc, e);
    const struct prog_array *x = input < 0 ? NULL : &sc->b->input[input].array;
    const int field = x ? find_field(x, field_of(e)) : -1;
    return field < 0 ? T_POISON : (int)x->field[field].type;
}

/* ---- messages ---- */

static const struct expr *no_input(const struct scope *sc, const struct ast *call)
{
    struct builder *b = sc->b;
    const char **names = arena_new(b->a, const char *, b->ninputs + 1);
    for (int i = 0; i < b->ninputs; i++)
        names[i] = b->input[i].array.name;
    const struct ast *first = call->nargs ? call->arg[0] : call;
    struct diag *m = diag_error(b->d, D_BAD_AT, first->at, "the first argument of at() is the name of an input");
    if (first->kind == AST_NAME)
        diag_suggest(b->d, m, first->name, names, b->ninputs);
    return NULL;
}

static const struct expr *no_field(const struct scope *sc, const struct ast *e, const struct prog_array *x)
{
    struct diags *d = sc->b->d;
    if (!x->nfields)
        return NULL; /* its type is in error */
    if (e->kind != AST_FIELD) {
        struct diag *m = diag_error(d, D_NEEDS_FIELD, e->at, "this has fields and is no scalar");
        diag_hint(d, m, "read one of them: at(…).%s", x->field[0].name);
        return NULL;
    }
    const bool scalar = !*x->field[0].name;
    struct diag *m = diag_error(d, D_UNKNOWN_FIELD, e->op_at,
                                scalar ? "a scalar has no field '%s'" : "there is no field '%s'", e->name);
    const char *names[STATE_FIELDS_MAX];
    for (int f = 0; f < x->nfields; f++)
        names[f] = x->field[f].name;
    if (!scalar)
        diag_suggest(d, m, e->name, names, x->nfields);
    return NULL;
}

static bool may_stand(const struct scope *sc, const struct ast *call, const struct prog_array *x)
{
    struct diags *d = sc->b->d;
    if (!(sc->allows & (SC_INPUT | SC_INVARIANT)) || (sc->allows & SC_OPERATOR)) {
        diag_error(d, D_BAD_AT, call->at, "%s cannot read at computed places", sc->place);
        return false;
    }
    if (!x->rank) {
        diag_error(d, D_BAD_AT, call->at, "'%s' is a single element, and is read by its name", x->name);
        return false;
    }
    if (call->nargs - 1 == x->rank)
        return true;
    struct diag *m =
        diag_error(d, D_ARGUMENT_COUNT, call->at, "'%s' has %d dimension%s, so at() takes as many indices, not %d",
                   x->name, x->rank, x->rank == 1 ? "" : "s", call->nargs - 1);
    if (x->rank > call->nargs - 1 && x->dim[0].size >= 0)
        diag_hint(d, m, "the element's own index along '%s' is index(%s)", sc->b->size[x->dim[0].size].name,
                  sc->b->size[x->dim[0].size].name);
    return false;
}

/* ---- building ---- */

const struct expr *index_build(const struct scope *sc, struct ast *e)
{
    struct builder *b = sc->b;
    const struct expr *i = type_build(sc, e, type_peek(sc, e) < 0 ? TY_I64 : T_ANY);
    if (!i || i->type == TY_I64)
        return i;
    if (ty_is_int(i->type))
        return expr_cast(b->a, i, TY_I64);
    struct diag *m = diag_error(b->d, D_WRONG_TYPE, e->at, "an index is an integer, this is %s", ty_name(i->type));
    diag_hint(b->d, m, "conversions are written: i64(…)");
    return NULL;
}

/* Is the size this one, or does it consist of it and others? */
static bool is_or_has(const struct builder *b, int size, int this)
{
    bool has = size == this;
    for (int k = 0; size >= b->nsizes && k < b->size[size].nparts; k++)
        has |= b->size[size].part[k] == this;
    return has;
}

/* Is the dimension at least 1 wherever the value is asked for?  Points exist only where all axes of the space do; what
 * varies along nothing that is combined may also be part of a result of no points. */
static bool never_empty(const struct builder *b, struct prog_dim dim, bool at_points)
{
    for (int i = 0; i < b->p->rank; i++) {
        const struct prog_dim *axis = &b->p->space[i].extent;
        const bool kept = !(reduced_axes(b) >> i & 1);
        if (is_or_has(b, axis->size, dim.size) && axis->add <= dim.add && (kept || at_points))
            return true;
    }
    return dim.size < 0 || dim.add > 0;
}

/* Does the value vary with the running index of a sum around it?  What does not is computed before the sum's loop. */
static bool runs_along(const struct expr *e, int size)
{
    bool does = e->kind == EX_RUN && e->which == size;
    for (int i = 0; i < e->nargs && !does && !(e->kind == EX_SUM && e->which == size); i++)
        does = runs_along(e->arg[i], size);
    return does;
}

static void require_elements(struct builder *b, const struct expr *e)
{
    const struct prog_array *x = &b->input[e->which].array;
    const bool at_points = (expr_axes(b, e) & reduced_axes(b)) != 0;
    for (int d = 0; d < x->rank; d++)
        if (!never_empty(b, x->dim[d], at_points) && !runs_along(e, x->dim[d].size)) {
            const struct least least = { x->dim[d].size, 1 - x->dim[d].add };
            ARENA_PUSH(b->a, b->least, b->nleast, b->cap_least, least);
        }
}

const struct expr *at_build(const struct scope *sc, struct ast *e)
{
    struct builder *b = sc->b;
    struct ast *call = call_of(e);
    const int input = input_of(sc, e);
    if (input < 0)
        return no_input(sc, call);
    const struct prog_array *x = &b->input[input].array;
    b->input[input].used = b->input[input].placed = true;
    const int field = find_field(x, field_of(e));
    if (field < 0)
        return no_field(sc, e, x);
    if (!may_stand(sc, call, x))
        return NULL;
    struct expr *read = expr_new(b->a, EX_AT, x->field[field].type, e->at);
    read->which = input;
    read->field = field;
    read->nargs = x->rank;
    for (int d = 0; d < x->rank; d++)
        if (!(read->arg[d] = index_build(sc, call->arg[d + 1])))
            return NULL;
    require_elements(b, read);
    return read;
}

void build_least(struct builder *b)
{
    for (int i = 0; i < b->nleast; i++) {
        struct dimension *d = &b->size[b->least[i].size];
        if (d->min >= b->least[i].value)
            continue;
        d->min = b->least[i].value;
        d->elements = true;
    }
}
