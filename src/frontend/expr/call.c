/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - typing of what is written like a call: functions, conversions, index(), gather(). */
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

static const char *const fold_names[] = { "add", "mul", "min", "max", "and", "or", "xor" };

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

static int gather_peek(const struct scope *sc, struct ast *e)
{
    struct scope inner = *sc;
    if (e->nargs != 5 || e->arg[0]->kind != AST_NAME || e->arg[2]->kind != AST_NAME)
        return T_POISON;
    inner.neighbour = e->arg[2]->name;
    inner.neighbour_input = input_find(sc->b, e->arg[0]->name);
    if (inner.neighbour_input < 0)
        return T_POISON;
    sc->b->input[inner.neighbour_input].used = true;
    const int offsets = e->arg[1]->kind == AST_NAME ? input_find(sc->b, e->arg[1]->name) : -1;
    const struct summing rows = { offsets < 0 ? -1 : sc->b->input[offsets].array.dim[0].size, NULL };
    inner.sums = &rows;
    return type_peek(&inner, e->arg[4]);
}

int call_peek(const struct scope *sc, struct ast *e)
{
    enum ty to = ty_by_name(e->name, (int)strlen(e->name));
    if (to != TY_NONE)
        return to;
    if (!strcmp(e->name, "index"))
        return TY_I64;
    if (!strcmp(e->name, "gather"))
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
    for (int i = 0; sum_name(i); i++)
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

/* gather(INPUT, OFFSETS, NAME, OPERATOR, EXPR) */
struct gather {
    int input, offsets;
    const char *name;
    int fold;
};

static bool gather_parts(const struct scope *sc, const struct ast *e, struct gather *out)
{
    struct builder *b = sc->b;
    static const char *const what[] = { "an input", "an input of offsets", "a name for the neighbour's value",
                                        "an operator" };
    for (int i = 0; i < 4; i++)
        if (e->arg[i]->kind != AST_NAME) {
            diag_error(b->d, D_BAD_GATHER, e->arg[i]->at, "argument %d of gather() is %s", i + 1, what[i]);
            return false;
        }
    out->input = input_find(b, e->arg[0]->name);
    out->offsets = input_find(b, e->arg[1]->name);
    out->name = e->arg[2]->name;
    out->fold = -1;
    for (int i = 0; i < FOLD_COUNT; i++)
        if (!strcmp(e->arg[3]->name, fold_names[i]))
            out->fold = i;
    for (int i = 0; i < 2; i++)
        if ((i ? out->offsets : out->input) < 0) {
            diag_error(b->d, D_BAD_GATHER, e->arg[i]->at, "argument %d of gather() is %s", i + 1, what[i]);
            return false;
        }
    if (out->fold < 0) {
        struct diag *m =
            diag_error(b->d, D_BAD_GATHER, e->arg[3]->at, "gather() folds with a built-in scalar operator");
        diag_suggest(b->d, m, e->arg[3]->name, fold_names, FOLD_COUNT);
        return false;
    }
    return true;
}

static bool gather_shapes(const struct scope *sc, const struct ast *e, const struct gather *g)
{
    struct builder *b = sc->b;
    const struct prog_array *x = &b->input[g->input].array, *off = &b->input[g->offsets].array;
    if (b->input[g->input].role != ROLE_ELEMENT) {
        diag_error(b->d, D_BAD_GATHER, e->arg[0]->at, "'%s' gives positions and has no neighbours", x->name);
        return false;
    }
    bool flat = off->rank == 1 && x->rank == 1;
    bool pairs = off->rank == 2 && off->dim[1].size < 0 && off->dim[1].add == x->rank;
    bool integers = off->nfields == 1 && !*off->field[0].name && off->field[0].type == TY_I32;
    if (integers && (flat || pairs))
        return true;
    struct diag *m =
        diag_error(b->d, D_BAD_GATHER, e->arg[1]->at, "'%s' has %d dimension%s, so '%s' must be i32[p, %d]", x->name,
                   x->rank, x->rank == 1 ? "" : "s", off->name, x->rank);
    diag_note(b->d, m, b->input[g->offsets].at, "it is declared here");
    return false;
}

static bool fold_accepts(int fold, enum ty t)
{
    if (fold == FOLD_AND || fold == FOLD_OR || fold == FOLD_XOR)
        return !ty_is_float(t);
    return t != TY_BOOL;
}

static const struct expr *build_gather(const struct scope *sc, struct ast *e, int want)
{
    struct builder *b = sc->b;
    struct gather g;
    if (!arity(sc, e, 5) || !gather_parts(sc, e, &g) || !gather_shapes(sc, e, &g))
        return NULL;
    if (!(sc->allows & SC_GATHER) || sc->neighbour || sc->sums) {
        struct diag *m = diag_error(b->d, D_BAD_GATHER, e->at, "%s cannot gather",
                                    sc->neighbour ? "a gather inside a gather"
                                    : sc->sums    ? "a sum"
                                                  : sc->place);
        if (!sc->neighbour && !sc->sums && b->p->kind != KIND_STENCIL)
            diag_hint(b->d, m, "only maps and stencils gather: let a stage before this one write what it gathers");
        return NULL;
    }
    struct scope inner = *sc;
    inner.neighbour = g.name;
    inner.neighbour_input = g.input;
    const struct summing rows = { b->input[g.offsets].array.dim[0].size, NULL };
    inner.sums = &rows;
    warn_hidden(b, g.name, e->arg[2]->at, "the neighbour's value");
    const struct expr *x = type_build(&inner, e->arg[4], type_peek(&inner, e->arg[4]) < 0 ? want : T_ANY);
    if (!x)
        return NULL;
    if (!fold_accepts(g.fold, x->type)) {
        diag_error(b->d, D_OPERATOR_TYPE, e->arg[3]->at, "'%s' does not combine %s", fold_names[g.fold],
                   ty_name(x->type));
        return NULL;
    }
    struct expr *fold = expr_new(b->a, EX_GATHER, x->type, e->at);
    fold->op = g.fold;
    fold->which = g.input;
    fold->which2 = g.offsets;
    fold->nargs = 1;
    fold->arg[0] = x;
    b->input[g.input].neighbours = true;
    b->p->dynamic = true;
    return fold;
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
    if (!strcmp(e->name, "gather"))
        return build_gather(sc, e, want);
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
