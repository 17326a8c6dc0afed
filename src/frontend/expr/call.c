/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - typing of what is written like a call: functions, conversions, index(). */
#include "frontend/frontend_impl.h"

static const struct {
    const char *name;
    int arity;
    char types; /* N numeric, F float, I integer, A any */
} functions[] = {
#define FN(id, name, arity, types, what) { name, arity, types },
#include "functions.def"
#undef FN
};

static int function_find(const char *name)
{
    for (int i = 0; i < FN_COUNT; i++)
        if (!strcmp(functions[i].name, name))
            return i;
    return -1;
}

/* First argument that has the function's type; select's first is its condition. */
static int first_typed(int f) { return f == FN_SELECT ? 1 : 0; }

static bool accepts(char types, int t)
{
    bool literal = t < 0;
    switch (types) {
    case 'F': return literal || ty_is_float(t);
    case 'I': return literal ? t != T_LIT_FLOAT : ty_is_int(t);
    case 'N': return literal || t != TY_BOOL;
    default: return true;
    }
}

static const char *types_text(char types)
{
    return types == 'F' ? "a float" : types == 'I' ? "an integer" : types == 'N' ? "a number" : "a scalar";
}

/* The one type of the arguments; T_POISON when an argument is in error or they differ. */
static int arguments_peek(const struct scope *sc, struct ast *e, int f)
{
    int t = T_ANY;
    for (int i = first_typed(f); i < e->nargs; i++) {
        int next = type_peek(sc, e->arg[i]);
        t = i == first_typed(f) ? next : type_unify(t, next);
    }
    return t;
}

int call_peek(const struct scope *sc, struct ast *e)
{
    enum ty to = ty_by_name(e->name, (int)strlen(e->name));
    if (to != TY_NONE)
        return to;
    if (!strcmp(e->name, "index"))
        return TY_I64;
    if (gather_is(e))
        return gather_peek(sc, e);
    if (at_is(e))
        return at_peek(sc, e);
    if (sum_is(e->name))
        return sum_peek(sc, e);
    int f = function_find(e->name);
    if (f == FN_ISNAN || f == FN_ISINF)
        return TY_BOOL;
    if (f < 0 || e->nargs != functions[f].arity)
        return T_POISON;
    int t = arguments_peek(sc, e, f);
    if (functions[f].types == 'F' && (t == T_LIT_INT || t == T_LIT_LONG))
        return T_LIT_FLOAT;
    return t == T_ANY || !accepts(functions[f].types, t) ? T_POISON : t;
}

static void unknown_function(const struct scope *sc, const struct ast *e)
{
    const char *names[FN_COUNT + TY_COUNT + FOLD_COUNT + 3];
    int n = 0;
    for (int i = 0; i < FN_COUNT; i++)
        names[n++] = functions[i].name;
    for (int t = 0; t < TY_COUNT; t++)
        names[n++] = ty_name(t);
    names[n++] = "index";
    names[n++] = "gather";
    names[n++] = "at";
    for (int i = 0; i < FOLD_COUNT; i++)
        names[n++] = sum_name(i);
    struct diag *m = diag_error(sc->b->d, D_UNKNOWN_FUNCTION, e->op_at, "there is no function '%s'", e->name);
    const char *way = way_out("a function", e->name);
    if (way)
        diag_hint(sc->b->d, m, "%s", way);
    else
        diag_suggest(sc->b->d, m, e->name, names, n);
}

static bool arity(const struct scope *sc, const struct ast *e, int n)
{
    if (e->nargs == n)
        return true;
    struct diag *m = diag_error(sc->b->d, D_ARGUMENT_COUNT, e->at, "%s() takes %d argument%s, not %d", e->name, n,
                                n == 1 ? "" : "s", e->nargs);
    if (way_out("a function", e->name))
        diag_hint(sc->b->d, m, "%s", way_out("a function", e->name));
    return false;
}

static bool literals_take(const struct scope *sc, const struct ast *e, enum ty t);

static bool arguments_take(const struct scope *sc, const struct ast *e, int first, enum ty t)
{
    for (int i = first; i < e->nargs; i++)
        if (!literals_take(sc, e->arg[i], t))
            return false;
    return true;
}

/* A let is asked once for each type: lets may be nested deeply, and used often. */
static bool let_takes(const struct scope *sc, const struct ast *e, enum ty t)
{
    struct reference ref;
    if (!reference_of(sc, e, &ref, true) || (ref.symbol.kind != SYM_LET && ref.symbol.kind != SYM_OP_LET))
        return t != TY_BOOL;
    struct let_table *table = ref.symbol.kind == SYM_LET ? &sc->b->lets : sc->op_lets;
    struct let_slot *slot = &table->slot[ref.symbol.which];
    if (!(slot->tried >> t & 1)) {
        slot->tried |= 1u << t;
        slot->takes |= (unsigned)literals_take(sc, slot->ast, t) << t;
    }
    return slot->takes >> t & 1;
}

/* Has an expression of literals a value where each of them has type t?  Their values must fit, and what is for integers
 * or for floats alone must be for t.  Where not, the literals of a conversion have their default types, and u8(300)
 * wraps. */
static bool literals_take(const struct scope *sc, const struct ast *e, enum ty t)
{
    const bool negative = e->kind == AST_UNARY && e->op == UN_NEG && e->arg[0]->kind == AST_INT;
    const struct ast *literal = negative ? e->arg[0] : e;
    if (literal->kind == AST_INT)
        return t != TY_BOOL && literal_int(sc, e->at, literal->integer, negative, t, true) != NULL;
    if (e->kind == AST_FLOAT)
        return ty_is_float(t);
    if (e->kind == AST_UNARY && e->op == UN_COMPL && ty_is_float(t))
        return false;
    if (e->kind == AST_BINARY && e->op >= BIN_AND && e->op <= BIN_SHR && ty_is_float(t))
        return false;
    if (e->kind == AST_NAME)
        return let_takes(sc, e, t);
    const int f = e->kind == AST_CALL ? function_find(e->name) : -1;
    if (f >= 0 && !accepts(functions[f].types, t))
        return false;
    const bool condition = e->kind == AST_IF || f == FN_SELECT;
    return e->kind == AST_BOOL || arguments_take(sc, e, condition, t);
}

static const struct expr *build_cast(const struct scope *sc, struct ast *e, enum ty to)
{
    if (!arity(sc, e, 1))
        return NULL;
    struct ast *arg = e->arg[0];
    const int from = type_peek(sc, arg);
    const bool literal = from == T_LIT_INT || from == T_LIT_LONG || from == T_LIT_FLOAT;
    if (literal && literals_take(sc, arg, to))
        return type_build(sc, arg, to);
    const struct expr *x = type_build(sc, arg, T_ANY);
    if (x && x->type == to)
        return contract_converted(sc->b, x);
    return x ? expr_cast(sc->b->a, x, to) : NULL;
}

static const struct expr *build_index(const struct scope *sc, const struct ast *e)
{
    struct builder *b = sc->b;
    if (!arity(sc, e, 1))
        return NULL;
    if (!(sc->allows & SC_INDEX)) {
        diag_error(b->d, D_NOT_HERE, e->at, "index() has no value in %s", sc->place);
        return NULL;
    }
    const struct ast *dim = e->arg[0];
    const char *names[PROG_RANK_MAX];
    const int running = dim->kind == AST_NAME ? size_find(b, dim->name) : -1;
    int n = 0;
    if (running >= 0 && sum_runs(sc, running)) {
        struct expr *x = expr_new(b->a, EX_RUN, TY_I64, e->at);
        x->which = running;
        return x;
    }
    for (int i = 0; i < b->nown; i++) {
        const int size = b->own[i].size;
        if (size < 0)
            continue;
        names[n++] = b->size[size].name;
        if (dim->kind != AST_NAME || strcmp(dim->name, b->size[size].name))
            continue;
        if (!(sc->allows & SC_INPUT) && b->p->space[b->own_axis[i]].reduced) {
            diag_error(b->d, D_NOT_INVARIANT, e->at, "index(%s) varies along a dimension that is combined", dim->name);
            return NULL;
        }
        return own_index(b, i, e->at);
    }
    struct diag *m = diag_error(b->d, D_BAD_INDEX, dim->at, "index() takes a dimension of the iteration space");
    if (dim->kind == AST_NAME) {
        diag_suggest(b->d, m, dim->name, names, n);
        space_hint(b, m, dim->name);
    }
    if (!m->hint && n)
        diag_hint(b->d, m, "write index(%s)", names[0]);
    return NULL;
}

/* The arguments do not have the type the function wants: say so at the first that has not. */
static const struct expr *wrong_arguments(const struct scope *sc, struct ast *e, int f)
{
    struct builder *b = sc->b;
    int first = first_typed(f), t = T_ANY;
    bool reported = false;
    for (int i = first; i < e->nargs; i++) {
        int next = type_peek(sc, e->arg[i]);
        if (next == T_POISON) {
            type_build(sc, e->arg[i], T_ANY);
        } else if (!reported && !accepts(functions[f].types, next)) {
            struct diag *m = diag_error(b->d, D_OPERAND_KIND, e->arg[i]->at, "%s() needs %s, not %s", e->name,
                                        types_text(functions[f].types), type_text(next));
            if (functions[f].types == 'F')
                diag_hint(b->d, m, "convert it: %s(f32(…))", e->name);
            reported = true;
        } else if (!reported && t >= 0 && type_unify(t, next) == T_POISON) {
            diag_error(b->d, D_OPERANDS_DIFFER, e->arg[i]->at, "the arguments of %s() have types %s and %s", e->name,
                       type_text(t), type_text(next));
            reported = true;
        }
        if (next >= 0 && t < 0)
            t = next;
    }
    return NULL;
}

static const struct expr *build_function(const struct scope *sc, struct ast *e, int f, int want)
{
    struct builder *b = sc->b;
    if (!arity(sc, e, functions[f].arity))
        return NULL;
    int t = arguments_peek(sc, e, f);
    const struct expr *condition = f == FN_SELECT ? type_build(sc, e->arg[0], TY_BOOL) : NULL;
    if (t == T_POISON || !accepts(functions[f].types, t))
        return wrong_arguments(sc, e, f);
    bool predicate = f == FN_ISNAN || f == FN_ISINF;
    if (t < 0) {
        int literal = functions[f].types == 'F' ? T_LIT_FLOAT : t;
        t = want >= 0 && !predicate && accepts(functions[f].types, want) ? want : (int)type_default(literal);
    }
    struct expr *call = expr_new(b->a, EX_CALL, predicate ? TY_BOOL : (enum ty)t, e->at);
    call->op = f;
    call->nargs = e->nargs;
    bool good = f != FN_SELECT || condition;
    call->arg[0] = condition;
    for (int i = first_typed(f); i < e->nargs; i++) {
        call->arg[i] = type_build(sc, e->arg[i], t);
        good &= call->arg[i] != NULL;
    }
    return good ? call : NULL;
}

const struct expr *call_build(const struct scope *sc, struct ast *e, int want)
{
    enum ty to = ty_by_name(e->name, (int)strlen(e->name));
    if (to != TY_NONE)
        return build_cast(sc, e, to);
    if (!strcmp(e->name, "index"))
        return build_index(sc, e);
    if (gather_is(e))
        return gather_build(sc, e, want);
    if (at_is(e))
        return at_build(sc, e);
    if (sum_is(e->name))
        return sum_build(sc, e);
    int f = function_find(e->name);
    if (f >= 0)
        return build_function(sc, e, f, want);
    unknown_function(sc, e);
    for (int i = 0; i < e->nargs; i++)
        type_build(sc, e->arg[i], T_ANY);
    return NULL;
}
