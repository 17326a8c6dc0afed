/* SPDX-License-Identifier: Apache-2.0 */
/* let.c - lets, of the problem and of operators.  A let has the type of its expression; one of literals is typed where it
 * is used, once for each type, and sees what it sees where it stands: conditions within it may be about inputs. */
#include "frontend/frontend_impl.h"

static void add(struct builder *b, struct let_table *t, const char *name, const struct expr *value)
{
    int n = t->nlets;
    ARENA_PUSH(b->a, t->axes, n, t->cap_axes, expr_axes(b, value));
    ARENA_PUSH(b->a, t->let, t->nlets, t->cap_lets, ((struct let){ name, value }));
}

/* Adds the value of a slot at one type to the table. */
static void instantiate(const struct scope *sc, struct let_table *t, struct let_slot *slot, const struct expr *value)
{
    struct builder *b = sc->b;
    bool first = true;
    for (int i = 0; i < TY_COUNT; i++)
        first &= !slot->instance[i];
    add(b, t, first ? slot->name : arena_printf(b->a, "%s:%s", slot->name, ty_name(value->type)), value);
    slot->instance[value->type] = t->nlets;
}

/* Adds the fields of a state, a let of the table each. */
static void instantiate_fields(const struct scope *sc, struct let_table *t, struct let_slot *slot, struct ast *ast)
{
    struct builder *b = sc->b;
    const struct expr *field[STATE_FIELDS_MAX];
    const struct op *op = gather_state(sc, ast, field);
    if (!op)
        return;
    slot->type = T_ANY;
    slot->nfields = op->nfields;
    slot->field_name = op->field_name;
    slot->field = op->field;
    slot->first = t->nlets;
    for (int f = 0; f < op->nfields; f++)
        add(b, t, arena_printf(b->a, "%s.%s", slot->name, op->field_name[f]), field[f]);
}

static int written_out_depth(const struct scope *sc, const struct ast *e)
{
    int deepest = 0;
    if (e->kind == AST_NAME) {
        const struct symbol y = scope_lookup(sc, e->name);
        if (y.kind == SYM_LET)
            deepest = sc->b->lets.slot[y.which].depth;
        else if (y.kind == SYM_OP_LET)
            deepest = sc->op_lets->slot[y.which].depth;
    }
    for (int i = 0; i < e->nargs; i++) {
        const int depth = written_out_depth(sc, e->arg[i]);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

static bool is_shallow(const struct scope *sc, struct let_slot *slot)
{
    slot->depth = written_out_depth(sc, slot->ast);
    if (slot->depth <= LET_DEPTH_MAX)
        return true;
    diag_error(sc->b->d, D_TOO_DEEP, slot->at, "with the lets in it written out, '%s' is more than %d operators deep",
               slot->name, LET_DEPTH_MAX);
    slot->depth = 0; /* what uses it is not reported as well */
    return false;
}

void let_define(const struct scope *sc, struct let_table *t, const char *name, struct ast *ast, struct span at)
{
    struct let_slot slot = { .name = name, .ast = ast, .type = T_POISON, .at = at, .allows = sc->allows };
    if (ast && !is_shallow(sc, &slot))
        ast = NULL;
    int nfields;
    const char *const *names;
    const bool state = ast && gather_names(sc, ast, &nfields, &names);
    int type = ast && !state ? type_peek(sc, ast) : T_POISON;
    if (state) {
        instantiate_fields(sc, t, &slot, ast);
    } else if (ast && (type >= 0 || type == T_POISON)) {
        const struct expr *value = type_build(sc, ast, T_ANY);
        if (value) {
            slot.type = (int)value->type;
            instantiate(sc, t, &slot, value);
        }
    } else if (ast) {
        slot.type = type; /* of literals, apart from conditions: typed where it is used */
    }
    ARENA_PUSH(sc->b->a, t->slot, t->nslots, t->cap_slots, slot);
}

/* Does a let of literals vary along what is combined, by its conditions, where that has no value?  That is an error. */
static bool let_varies(const struct scope *sc, const struct let_table *t, const struct let_slot *slot, enum ty type,
                       struct span at)
{
    const struct builder *b = sc->b;
    if (t->kind != EX_LET || sc->allows & SC_INPUT || !(t->axes[slot->instance[type] - 1] & reduced_axes(b)))
        return false;
    diag_error(b->d, D_NOT_INVARIANT, at, "'%s' varies along a dimension that is combined, so it has no value in %s",
               slot->name, sc->place);
    return true;
}

const struct expr *let_field(const struct scope *sc, int which, int field, struct span at)
{
    const int let = sc->b->lets.slot[which].first + field;
    return expr_leaf(sc->b->a, EX_LET, sc->b->lets.let[let].value->type, let, 0, at);
}

/* The value of a let where type `want` is wanted; lets of literals get one instance per type they are used at. */
const struct expr *let_use(const struct scope *sc, struct let_table *t, int which, int want, struct span at)
{
    struct let_slot *slot = &t->slot[which];
    enum ty type = slot->type >= 0 ? (enum ty)slot->type : want >= 0 ? (enum ty)want : type_default(slot->type);
    if (type == TY_NONE)
        return NULL;
    if (!slot->instance[type]) {
        struct scope literals = {
            .b = sc->b, .state = -1, .lets_seen = which + 1, .place = t->kind == EX_LET ? "a let" : sc->place
        };
        literals.allows = t->kind == EX_LET ? slot->allows : SC_OPERATOR;
        literals.op = t->kind == EX_LET ? NULL : sc->op;
        literals.op_lets = t->kind == EX_LET ? NULL : t;
        const struct expr *value = type_build(&literals, slot->ast, type);
        if (!value)
            return NULL;
        instantiate(sc, t, slot, value);
    }
    if (let_varies(sc, t, slot, type, at))
        return NULL;
    struct expr *e = expr_new(sc->b->a, t->kind, type, at);
    e->which = slot->instance[type] - 1;
    return e;
}
