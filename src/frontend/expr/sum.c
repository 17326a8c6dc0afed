/* SPDX-License-Identifier: Apache-2.0 */
/* sum.c - typing of sum(f, EXPR), product(), least(), greatest(), all() and any(): a sequential fold over dimension f,
 * which is then no dimension of the iteration space.
 *
 * An input that has such a dimension is a table: inside the sum, its name means the element at the point's indices and
 * the running ones, which is a read at computed places like at().
 */
#include "frontend/frontend_impl.h"

static const char *const sum_names[FOLD_COUNT] = {
    [FOLD_ADD] = "sum",      [FOLD_MUL] = "product", [FOLD_MIN] = "least",
    [FOLD_MAX] = "greatest", [FOLD_AND] = "all",     [FOLD_OR] = "any"
};

const char *sum_name(int fold) { return sum_names[fold]; }

static int fold_of(const char *function)
{
    for (int fold = 0; fold < FOLD_COUNT; fold++)
        if (strcmp(sum_names[fold], function) == 0)
            return fold;
    return -1;
}

bool sum_is(const char *function) { return fold_of(function) >= 0; }

bool sum_takes(const struct builder *b, struct prog_dim dim)
{
    return dim.size >= 0 && (mentioned(b, b->size[dim.size].name) & AS_SUMMED);
}

void sum_hint(const struct builder *b, struct diag *m, const char *dimension)
{
    const int size = size_find(b, dimension);
    if (size >= 0 && sum_takes(b, (struct prog_dim){ .size = size }))
        diag_hint(b->d, m, "sums inside expressions go over '%s', so it is no dimension of the iteration space",
                  dimension);
}

void sum_hint_unknown(const struct builder *b, struct diag *m)
{
    for (int i = 0; i < b->nmentions; i++)
        if ((b->mention[i].as & AS_SUMMED) && size_find(b, b->mention[i].name) < 0)
            diag_hint(b->d, m, "a sum goes over '%s', which is no dimension", b->mention[i].name);
}

bool sum_runs(const struct scope *sc, int size)
{
    const struct summing *s = sc->sums;
    while (s && s->size != size)
        s = s->outer;
    return s != NULL;
}

bool sum_permits(const struct scope *sc, int input, struct span at, bool quiet)
{
    const struct builder *b = sc->b;
    const struct prog_array *x = &b->input[input].array;
    for (int d = 0; d < x->rank; d++) {
        if (!sum_takes(b, x->dim[d]) || sum_runs(sc, x->dim[d].size))
            continue;
        const char *f = b->size[x->dim[d].size].name;
        if (!quiet)
            diag_hint(b->d,
                      diag_error(b->d, D_BAD_SUM, at,
                                 "'%s' has the dimension '%s', which a sum goes over, and has no "
                                 "value outside of such a sum",
                                 x->name, f),
                      "write it inside, as in sum(%s, %s)", f, x->name);
        return false;
    }
    return true;
}

static const struct expr *add_offset(struct arena *a, const struct expr *index, int32_t offset)
{
    if (!offset)
        return index;
    struct expr *number = expr_new(a, EX_CONST, TY_I64, index->at), *sum = expr_new(a, EX_BINARY, TY_I64, index->at);
    number->imm.i = offset;
    sum->op = BIN_ADD;
    sum->nargs = 2;
    sum->arg[0] = index;
    sum->arg[1] = number;
    return sum;
}

const struct expr *sum_read(const struct scope *sc, const struct expr *read)
{
    struct builder *b = sc->b;
    const struct prog_array *x = &b->input[read->which].array;
    const bool spread = b->input[read->which].spread;
    int axis[PROG_RANK_MAX];
    struct expr *e = expr_new(b->a, EX_AT, read->type, read->at);
    (spread ? match_own : match_axes)(b, x, axis);
    e->which = read->which;
    e->field = read->field;
    e->nargs = x->rank;
    for (int d = 0; d < x->rank; d++) {
        const int32_t offset = read->noffsets ? read->offset[d] : 0;
        struct expr *index = expr_new(b->a, axis[d] < 0 ? EX_RUN : EX_INDEX, TY_I64, read->at);
        index->which = axis[d] < 0 ? x->dim[d].size : axis[d];
        e->arg[d] = add_offset(b->a, spread && axis[d] >= 0 ? own_index(b, axis[d], read->at) : index, offset);
        e->op |= spread && axis[d] >= 0 && !offset ? 1 << d : 0;
    }
    return e;
}

/* ---- building ---- */

/* The dimension that the call goes over; -1: none. */
static int dimension_of(const struct scope *sc, const struct ast *e)
{
    return e->nargs == 2 && e->arg[0]->kind == AST_NAME ? size_find(sc->b, e->arg[0]->name) : -1;
}

static struct scope inside(const struct scope *sc, const struct summing *sums)
{
    struct scope inner = *sc;
    inner.sums = sums;
    return inner;
}

int sum_peek(const struct scope *sc, struct ast *e)
{
    const struct summing sums = { dimension_of(sc, e), sc->sums };
    const struct scope inner = inside(sc, &sums);
    const int fold = fold_of(e->name);
    if (sums.size < 0)
        return T_POISON;
    if (fold == FOLD_AND || fold == FOLD_OR)
        return TY_BOOL;
    const int t = type_peek(&inner, e->arg[1]);
    return t == T_POISON ? t : (int)type_default(t);
}

static bool no_dimension(const struct scope *sc, const struct ast *e)
{
    struct builder *b = sc->b;
    const char **names = arena_new(b->a, const char *, b->nsizes + 1);
    for (int i = 0; i < b->nsizes; i++)
        names[i] = b->size[i].name;
    if (e->nargs != 2) {
        struct diag *m = diag_error(b->d, D_ARGUMENT_COUNT, e->at, "%s() takes a dimension and an expression", e->name);
        const char *way = way_out("a function", e->name);
        if (way)
            diag_hint(b->d, m, "%s", way);
        return false;
    }
    struct diag *m =
        diag_error(b->d, D_BAD_SUM, e->arg[0]->at, "the first argument of %s() is the name of a dimension", e->name);
    if (e->arg[0]->kind == AST_NAME)
        diag_suggest(b->d, m, e->arg[0]->name, names, b->nsizes);
    return false;
}

static bool may_stand(const struct scope *sc, const struct ast *e)
{
    struct diags *d = sc->b->d;
    const int size = dimension_of(sc, e);
    const bool place = (sc->allows & (SC_INPUT | SC_INVARIANT)) && !(sc->allows & SC_OPERATOR);
    if (!place || sc->neighbour) {
        diag_error(d, D_BAD_SUM, e->at, "%s cannot sum over a dimension", place ? "a gather" : sc->place);
        return false;
    }
    if (size < 0)
        return no_dimension(sc, e);
    if (!sum_runs(sc, size))
        return true;
    diag_error(d, D_BAD_SUM, e->arg[0]->at, "a sum around this one goes over '%s' already", e->arg[0]->name);
    return false;
}

const struct expr *sum_build(const struct scope *sc, struct ast *e)
{
    struct builder *b = sc->b;
    const struct summing sums = { dimension_of(sc, e), sc->sums };
    const struct scope inner = inside(sc, &sums);
    const int fold = fold_of(e->name);
    const bool logical = fold == FOLD_AND || fold == FOLD_OR;
    if (!may_stand(sc, e))
        return NULL;
    const struct expr *x = type_build(&inner, e->arg[1], logical ? TY_BOOL : T_ANY);
    if (!x)
        return NULL;
    if (!logical && x->type == TY_BOOL) {
        struct diag *m = diag_error(b->d, D_OPERAND_KIND, e->arg[1]->at, "%s() needs a number, not bool", e->name);
        diag_hint(b->d, m, "convert it: %s(%s, i32(…))", e->name, e->arg[0]->name);
        return NULL;
    }
    struct expr *count = expr_new(b->a, EX_SIZE, TY_I64, e->arg[0]->at), *sum = expr_new(b->a, EX_SUM, x->type, e->at);
    count->which = sum->which = sums.size;
    sum->op = fold;
    sum->nargs = 2;
    sum->arg[0] = x;
    sum->arg[1] = count;
    b->p->sums = true;
    contract_sum(b, sum);
    return sum;
}
