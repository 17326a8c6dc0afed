/* SPDX-License-Identifier: Apache-2.0 */
/* type.c - syntax trees to typed expressions.
 *
 * Two walks over a tree.  type_peek() finds its type from the leaves without reporting anything; what consists of
 * literals only has no type yet.  type_build() then goes down from the wanted type: an operator's operands get the type
 * of the one that has a type, else the wanted one, else the default of literals (i32, i64, f32).  So a literal takes
 * the type it is used at, through any operator, `if` and let.  A part in error is poison: it is reported where it
 * stands and nothing above it complains again.
 */
#include "frontend/frontend_impl.h"

#include <math.h>

const char *type_text(int t)
{
    switch (t) {
    case T_LIT_INT:
    case T_LIT_LONG: return "an integer literal";
    case T_LIT_FLOAT: return "a float literal";
    default: return t >= 0 ? ty_name(t) : "nothing";
    }
}

enum ty type_default(int peeked)
{
    switch (peeked) {
    case T_LIT_INT: return TY_I32;
    case T_LIT_LONG: return TY_I64;
    case T_LIT_FLOAT: return TY_F32;
    default: return peeked >= 0 ? (enum ty)peeked : TY_NONE;
    }
}

bool type_widens(enum ty from, enum ty to)
{
    if (from == to || from == TY_BOOL)
        return true;
    /* bits of precision, and for floats of exponent */
    static const struct {
        int precision, exponent;
    } size[TY_COUNT] = {
        [TY_F16] = { 11, 5 },
        [TY_BF16] = { 8, 8 },
        [TY_F32] = { 24, 8 },
        [TY_F64] = { 53, 11 },
    };
    if (ty_is_float(from))
        return ty_is_float(to) && size[from].precision <= size[to].precision &&
               size[from].exponent <= size[to].exponent;
    if (ty_is_float(to))
        return ty_bits(from) - ty_is_signed(from) <= size[to].precision;
    if (ty_kind(from) == ty_kind(to))
        return ty_bits(from) <= ty_bits(to);
    return !ty_is_signed(from) && ty_is_signed(to) && ty_bits(from) < ty_bits(to);
}

int type_unify(int a, int b)
{
    if (a == T_POISON || b == T_POISON)
        return T_POISON;
    if (a >= 0 && b >= 0)
        return a == b ? a : T_POISON;
    if (a >= 0 || b >= 0)
        return a >= 0 ? a : b;
    return a < b ? a : b; /* T_LIT_FLOAT < T_LIT_LONG < T_LIT_INT */
}

/* ---- literals ---- */

const struct expr *literal_int(const struct scope *sc, struct span at, uint64_t magnitude, bool negative, enum ty t,
                               bool quiet)
{
    struct expr *e = expr_new(sc->b->a, EX_CONST, t, at);
    bool fits;
    if (ty_is_float(t)) {
        e->imm.f = negative ? -(double)magnitude : (double)magnitude;
        uint64_t image = 0;
        value_store(t, &image, e->imm);
        e->imm = value_load(t, &image);
        fits = isfinite(e->imm.f);
    } else {
        int bits = ty_bits(t) - ty_is_signed(t);
        uint64_t most = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
        fits = negative ? (ty_is_signed(t) ? magnitude <= most + 1 : magnitude == 0) : magnitude <= most;
        e->imm.u = negative ? 0 - magnitude : magnitude;
    }
    if (fits)
        return e;
    if (!quiet) {
        struct diag *m = diag_error(sc->b->d, D_LITERAL_RANGE, at, "%s%llu does not fit %s", negative ? "-" : "",
                                    (unsigned long long)magnitude, ty_name(t));
        if (ty_is_int(t))
            diag_hint(sc->b->d, m, "%s(%s%llu) wraps", ty_name(t), negative ? "-" : "", (unsigned long long)magnitude);
    }
    return NULL;
}

static const struct expr *literal_float(const struct scope *sc, const struct ast *e, enum ty t)
{
    struct expr *x = expr_new(sc->b->a, EX_CONST, t, e->at);
    uint64_t image = 0;
    value_store(t, &image, (union value){ .f = e->number });
    x->imm = value_load(t, &image);
    if (isinf(x->imm.f) && !isinf(e->number)) {
        diag_error(sc->b->d, D_LITERAL_RANGE, e->at, "the number is too large for %s", ty_name(t));
        return NULL;
    }
    return x;
}

/* ---- what is wrong with a type ---- */

static const struct expr *mismatch(const struct scope *sc, struct span at, int is, int want)
{
    struct diags *d = sc->b->d;
    struct diag *m = diag_error(d, D_WRONG_TYPE, at, "%s is expected here, this is %s", type_text(want), type_text(is));
    if (want == TY_BOOL)
        diag_hint(d, m, "compare it: … != 0");
    else
        diag_hint(d, m, "conversions are written: %s(…)", ty_name(want));
    return NULL;
}

/* ---- names ---- */

static const struct expr *extreme(const struct scope *sc, int which, enum ty t, struct span at)
{
    struct expr *e = expr_new(sc->b->a, EX_CONST, t, at);
    enum { ZERO, ONES, LOWEST, HIGHEST, PAD_LOWEST, PAD_HIGHEST };
    if (which == ZERO)
        return e;
    if (ty_is_float(t)) {
        e->imm.f = which == LOWEST ? -INFINITY : which == HIGHEST ? INFINITY : NAN;
        return e;
    }
    int bits = ty_bits(t) - ty_is_signed(t);
    uint64_t most = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    bool low = which == LOWEST || which == PAD_LOWEST;
    if (which == ONES)
        e->imm.u = ty_is_signed(t) ? UINT64_MAX : most;
    else if (low)
        e->imm.i = ty_is_signed(t) ? -(int64_t)most - 1 : 0;
    else
        e->imm.u = most;
    return e;
}

static const struct expr *symbol_expr(const struct scope *sc, const struct reference *ref, enum expr_kind kind,
                                      struct span at)
{
    const struct symbol *y = &ref->symbol;
    int field = ref->field < 0 ? 0 : ref->field;
    struct expr *e = expr_new(sc->b->a, kind, y->nfields ? y->field_type[field] : (enum ty)y->type, at);
    e->which = y->which;
    e->field = field;
    e->noffsets = ref->noffsets;
    memcpy(e->offset, ref->offset, sizeof e->offset);
    if (kind == EX_INPUT && (sc->b->input[y->which].summed || sc->b->input[y->which].spread))
        return sum_read(sc, e);
    if (ref->noffsets)
        sc->b->input[y->which].neighbours = true;
    return e;
}

static const struct expr *reference_build(const struct scope *sc, const struct ast *e, int want)
{
    struct reference ref;
    if (!reference_of(sc, e, &ref, false) || ref.symbol.type == T_POISON)
        return NULL;
    const struct symbol *y = &ref.symbol;
    if (y->nfields && ref.field < 0) {
        struct diag *m = diag_error(sc->b->d, D_NEEDS_FIELD, e->at, "this has fields and is no scalar");
        diag_hint(sc->b->d, m, "read one of them: .%s", y->field_name[0]);
        return NULL;
    }
    switch (y->kind) {
    case SYM_LET:
        return y->nfields ? let_field(sc, y->which, ref.field, e->at)
                          : let_use(sc, &sc->b->lets, y->which, want, e->at);
    case SYM_OP_LET: return let_use(sc, sc->op_lets, y->which, want, e->at);
    case SYM_EXTREME: return extreme(sc, y->which, want >= 0 ? (enum ty)want : TY_I32, e->at);
    case SYM_INPUT: return symbol_expr(sc, &ref, EX_INPUT, e->at);
    case SYM_PARAM: return symbol_expr(sc, &ref, EX_PARAM, e->at);
    case SYM_SIZE: return symbol_expr(sc, &ref, EX_SIZE, e->at);
    case SYM_LEFT: return symbol_expr(sc, &ref, EX_LEFT, e->at);
    case SYM_RIGHT: return symbol_expr(sc, &ref, EX_RIGHT, e->at);
    case SYM_STATE: return symbol_expr(sc, &ref, EX_STATE, e->at);
    case SYM_TOTAL: return symbol_expr(sc, &ref, EX_TOTAL, e->at);
    case SYM_OUTPUT: return symbol_expr(sc, &ref, EX_OUTPUT, e->at);
    case SYM_NEIGHBOUR: return symbol_expr(sc, &ref, EX_NEIGHBOUR, e->at);
    case SYM_LAST: return last_build(sc->b, e->at);
    case SYM_NONE: break;
    }
    return NULL;
}

static int reference_peek(const struct scope *sc, const struct ast *e)
{
    struct reference ref;
    if (!reference_of(sc, e, &ref, true))
        return T_POISON;
    if (!ref.symbol.nfields)
        return ref.symbol.type;
    return ref.field < 0 ? T_POISON : (int)ref.symbol.field_type[ref.field];
}

/* ---- operators ---- */

static bool compares(int op) { return op >= BIN_EQ && op <= BIN_GE; }
static bool is_logical(int op) { return op == BIN_LAND || op == BIN_LOR; }

/* May both operands of `op` be of type t (or literals)? */
static bool operates(int op, int t)
{
    switch (op) {
    case BIN_EQ:
    case BIN_NE: return true;
    case BIN_AND:
    case BIN_OR:
    case BIN_XOR: return t < 0 ? t != T_LIT_FLOAT : !ty_is_float(t);
    case BIN_SHL:
    case BIN_SHR: return t < 0 ? t != T_LIT_FLOAT : ty_is_int(t);
    default: return t != TY_BOOL;
    }
}

static int binary_peek(const struct scope *sc, struct ast *e)
{
    if (is_logical(e->op) || compares(e->op))
        return TY_BOOL;
    int t = type_unify(type_peek(sc, e->arg[0]), type_peek(sc, e->arg[1]));
    return operates(e->op, t) ? t : T_POISON;
}

static int unary_peek(const struct scope *sc, struct ast *e)
{
    if (e->op == UN_NOT)
        return TY_BOOL;
    struct ast *arg = e->arg[0];
    if (e->op == UN_NEG && arg->kind == AST_INT)
        return arg->integer <= UINT64_C(1) << 31 ? T_LIT_INT : T_LIT_LONG;
    int t = type_peek(sc, arg);
    if (t == TY_BOOL || (e->op == UN_COMPL && (t == T_LIT_FLOAT || (t >= 0 && ty_is_float(t)))))
        return T_POISON;
    return t;
}

int type_peek(const struct scope *sc, struct ast *e)
{
    if (e->peeked != T_UNKNOWN)
        return e->peeked;
    int t = T_POISON;
    switch (e->kind) {
    case AST_INT: t = e->integer <= INT32_MAX ? T_LIT_INT : T_LIT_LONG; break;
    case AST_FLOAT: t = T_LIT_FLOAT; break;
    case AST_BOOL: t = TY_BOOL; break;
    case AST_NAME:
    case AST_FIELD:
    case AST_OFFSET: t = at_is(e) ? at_peek(sc, e) : gather_is(e) ? gather_peek(sc, e) : reference_peek(sc, e); break;
    case AST_CALL: t = call_peek(sc, e); break;
    case AST_UNARY: t = unary_peek(sc, e); break;
    case AST_BINARY: t = binary_peek(sc, e); break;
    case AST_IF: t = type_unify(type_peek(sc, e->arg[1]), type_peek(sc, e->arg[2])); break;
    }
    return e->peeked = t;
}

static const struct expr *build_unary(const struct scope *sc, struct ast *e, int want)
{
    struct builder *b = sc->b;
    struct ast *arg = e->arg[0];
    if (e->op == UN_NOT)
        want = TY_BOOL;
    else if (e->op == UN_NEG && arg->kind == AST_INT && want != TY_BOOL)
        return literal_int(sc, e->at, arg->integer, true, want >= 0 ? (enum ty)want : type_default(type_peek(sc, e)),
                           false);
    int is = type_peek(sc, arg);
    const struct expr *x = type_build(sc, arg, e->op == UN_NOT ? TY_BOOL : is < 0 ? want : T_ANY);
    if (!x)
        return NULL;
    if (e->op != UN_NOT && (x->type == TY_BOOL || (e->op == UN_COMPL && ty_is_float(x->type)))) {
        struct diag *m =
            diag_error(b->d, D_OPERAND_KIND, e->at, "'%s' does not apply to %s", unary_text(e->op), ty_name(x->type));
        if (x->type == TY_BOOL)
            diag_hint(b->d, m, "write not");
        return NULL;
    }
    if (e->op == UN_NEG && x->kind == EX_CONST && ty_is_float(x->type)) {
        struct expr *negated = expr_new(b->a, EX_CONST, x->type, e->at);
        negated->imm.f = -x->imm.f;
        return negated;
    }
    struct expr *y = expr_new(b->a, EX_UNARY, x->type, e->at);
    y->op = e->op;
    y->nargs = 1;
    y->arg[0] = x;
    return y;
}

static const struct expr *operand_kind(const struct scope *sc, const struct ast *e, int t)
{
    struct diag *m =
        diag_error(sc->b->d, D_OPERAND_KIND, e->op_at, "'%s' does not apply to %s", binary_text(e->op), type_text(t));
    if (t == TY_BOOL)
        diag_hint(sc->b->d, m, "convert it: i32(…)");
    return NULL;
}

static const struct expr *build_binary(const struct scope *sc, struct ast *e, int want)
{
    struct builder *b = sc->b;
    int left = type_peek(sc, e->arg[0]), right = type_peek(sc, e->arg[1]);
    int t = is_logical(e->op) ? TY_BOOL : type_unify(left, right);
    if (!is_logical(e->op) && t == T_POISON) {
        const struct expr *x = type_build(sc, e->arg[0], T_ANY), *y = type_build(sc, e->arg[1], T_ANY);
        if (x && y) {
            struct diag *m = diag_error(b->d, D_OPERANDS_DIFFER, e->op_at, "the operands of '%s' have types %s and %s",
                                        binary_text(e->op), ty_name(x->type), ty_name(y->type));
            bool to_right = type_widens(x->type, y->type) || (ty_is_float(y->type) && !ty_is_float(x->type));
            diag_hint(b->d, m, "convert one of them: %s(…)", ty_name(to_right ? y->type : x->type));
        }
        return NULL;
    }
    if (!is_logical(e->op) && !operates(e->op, t))
        return operand_kind(sc, e, t);
    if (t < 0)
        t = want >= 0 && !compares(e->op) ? want : (int)type_default(t);
    if (!is_logical(e->op) && !operates(e->op, t))
        return mismatch(sc, e->at, type_default(binary_peek(sc, e)), want);
    const struct expr *x = type_build(sc, e->arg[0], t), *y = type_build(sc, e->arg[1], t);
    if (!x || !y)
        return NULL;
    struct expr *z = expr_new(b->a, EX_BINARY, compares(e->op) ? TY_BOOL : (enum ty)t, e->at);
    z->op = e->op;
    z->nargs = 2;
    z->arg[0] = x;
    z->arg[1] = y;
    return contract_binary(sc, z);
}

static const struct expr *build_if(const struct scope *sc, struct ast *e, int want)
{
    struct builder *b = sc->b;
    int then = type_peek(sc, e->arg[1]), other = type_peek(sc, e->arg[2]);
    int t = type_unify(then, other);
    const struct expr *condition = type_build(sc, e->arg[0], TY_BOOL);
    int arm = t >= 0 || t == T_POISON ? T_ANY : want >= 0 ? want : (int)type_default(t);
    const struct expr *x = type_build(sc, e->arg[1], then < 0 && t >= 0 ? t : arm);
    const struct expr *y = type_build(sc, e->arg[2], other < 0 && t >= 0 ? t : arm);
    if (!condition || !x || !y)
        return NULL;
    if (x->type != y->type) {
        diag_error(b->d, D_OPERANDS_DIFFER, e->arg[2]->at, "the arms of if have types %s and %s", ty_name(x->type),
                   ty_name(y->type));
        return NULL;
    }
    struct expr *z = expr_new(b->a, EX_IF, x->type, e->at);
    z->nargs = 3;
    z->arg[0] = condition;
    z->arg[1] = x;
    z->arg[2] = y;
    return z;
}

static const struct expr *build_leaf(const struct scope *sc, struct ast *e, int want)
{
    if (e->kind == AST_BOOL) {
        struct expr *x = expr_new(sc->b->a, EX_CONST, TY_BOOL, e->at);
        x->imm.i = e->op;
        return x;
    }
    int t = type_peek(sc, e);
    if (want == TY_BOOL || (e->kind == AST_FLOAT && want >= 0 && !ty_is_float(want)))
        return mismatch(sc, e->at, t, want);
    enum ty to = want >= 0 ? (enum ty)want : type_default(t);
    return e->kind == AST_INT ? literal_int(sc, e->at, e->integer, false, to, false) : literal_float(sc, e, to);
}

const struct expr *type_build(const struct scope *sc, struct ast *e, int want)
{
    if (!e)
        return NULL;
    const struct expr *x = NULL;
    switch (e->kind) {
    case AST_INT:
    case AST_FLOAT:
    case AST_BOOL: x = build_leaf(sc, e, want); break;
    case AST_NAME:
    case AST_FIELD:
    case AST_OFFSET:
        x = at_is(e) ? at_build(sc, e) : gather_is(e) ? gather_build(sc, e, want) : reference_build(sc, e, want);
        break;
    case AST_CALL: x = call_build(sc, e, want); break;
    case AST_UNARY: x = build_unary(sc, e, want); break;
    case AST_BINARY: x = build_binary(sc, e, want); break;
    case AST_IF: x = build_if(sc, e, want); break;
    }
    return x && want >= 0 && (int)x->type != want ? mismatch(sc, e->at, x->type, want) : x;
}

const struct expr *type_build_widened(const struct scope *sc, struct ast *e, enum ty want)
{
    if (!e)
        return NULL;
    int t = type_peek(sc, e);
    if (t < 0 && t != T_POISON)
        return type_build(sc, e, want);
    const struct expr *x = type_build(sc, e, T_ANY);
    if (!x || x->type == want)
        return x;
    if (type_widens(x->type, want))
        return expr_cast(sc->b->a, x, want);
    struct diag *m =
        diag_error(sc->b->d, D_NARROWING, e->at, "%s does not hold every value of %s", ty_name(want), ty_name(x->type));
    diag_hint(sc->b->d, m, "convert it: %s(…)", ty_name(want));
    return NULL;
}
