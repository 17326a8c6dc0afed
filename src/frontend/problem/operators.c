/* SPDX-License-Identifier: Apache-2.0 */
/* operators.c - operators from the rows of operators.def and from the user's own text, by the same parser and typing.
 */
#include "frontend/frontend_impl.h"

static const struct op_row rows[] = {
#define OP(...) { __VA_ARGS__ },
#include "operators.def"
#undef OP
};

int op_row_count(void) { return (int)(sizeof rows / sizeof *rows); }
const struct op_row *op_row(int i) { return &rows[i]; }

const struct op_row *op_row_by_name(const char *name)
{
    for (int i = 0; i < op_row_count(); i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    return NULL;
}

enum ty op_default_accumulator(const struct op_row *row, enum ty element)
{
    if (!row->widen)
        return element;
    switch (element) {
    case TY_F16:
    case TY_BF16: return TY_F32;
    case TY_I8:
    case TY_I16: return TY_I32;
    case TY_U8:
    case TY_U16: return TY_U32;
    default: return element;
    }
}

struct source op_row_item(const char *list, int i, struct span at)
{
    for (; i > 0; i--)
        list = strchr(list, ';') + 1;
    return source_row(list, (uint32_t)strcspn(list, ";"), at);
}

static int item_count(const char *list)
{
    int n = list && *list;
    for (const char *c = list; c && *c; c++)
        n += *c == ';';
    return n;
}

int op_row_fields(const struct op_row *row, struct arena *a, const char **name, char *type)
{
    int n = item_count(row->state);
    for (int i = 0; i < n; i++) {
        struct source item = op_row_item(row->state, i, span_none());
        name[i] = arena_strndup(a, item.text, item.length - 2);
        type[i] = item.text[item.length - 1];
    }
    if (!n) {
        name[0] = "";
        type[0] = 'T';
    }
    return n ? n : 1;
}

/* ---- rows ---- */

static const struct expr *row_expr(const struct scope *sc, const char *list, int i, struct span at, int want)
{
    struct source text = op_row_item(list, i, at);
    return type_build(sc, expr_parse(sc->b->a, sc->b->d, &text), want);
}

static void row_lets(const struct scope *sc, const struct op_row *row, struct span at)
{
    for (int i = 0; i < item_count(row->let); i++) {
        struct source item = op_row_item(row->let, i, at);
        uint32_t name = (uint32_t)strcspn(item.text, "=");
        struct source value = source_row(item.text + name + 1, item.length - name - 1, at);
        let_define(sc, sc->op_lets, arena_strndup(sc->b->a, item.text, name), expr_parse(sc->b->a, sc->b->d, &value),
                   at);
    }
}

const struct op *op_builtin(struct builder *b, const struct op_row *row, const enum ty *field, struct span at)
{
    struct op *op = arena_new(b->a, struct op, 1);
    char letter[STATE_FIELDS_MAX];
    op->name = row->name;
    op->nfields = op_row_fields(row, b->a, op->field_name, letter);
    memcpy(op->field, field, sizeof *field * (size_t)op->nfields);
    if (!strchr(row->types, ty_kind(field[0]))) {
        struct diag *m =
            diag_error(b->d, D_OPERATOR_TYPE, at, "'%s' does not combine %s", row->name, ty_name(field[0]));
        if (field[0] == TY_BOOL && strchr(row->types, 's'))
            diag_hint(b->d, m, "count with accumulator: i64, or combine with and, or, xor");
        else if (strchr(row->types, 'f'))
            diag_hint(b->d, m, "give it floats: map: f32(…), or accumulator: f64");
        return NULL;
    }
    struct let_table lets = { .kind = EX_OP_LET };
    struct scope sc = {
        .b = b, .allows = SC_ROW | SC_OPERATOR, .place = "an operator", .op = op, .op_lets = &lets, .state = -1
    };
    row_lets(&sc, row, at);
    op->finite = row->finite && ty_kind(field[0]) == 'f';
    const char *pad = row->pad || op->finite ? row->pad : row->identity;
    for (int i = 0; i < op->nfields; i++) {
        op->identity[i] = row->identity ? row_expr(&sc, row->identity, i, at, field[i]) : NULL;
        op->pad[i] = pad ? row_expr(&sc, pad, i, at, field[i]) : NULL;
        op->combine[i] = row_expr(&sc, row->combine, i, at, field[i]);
        if (row->many && op_row_item(row->many, i, at).length)
            op->many[i] = row_expr(&sc, row->many, i, at, field[i]);
    }
    op->let = lets.let;
    op->nlets = lets.nlets;
    op->commutative = row->commutative;
    op->exact = row->exact && strchr(row->exact, ty_kind(field[0]));
    op->builtin = true;
    return op;
}

/* ---- the user's own ---- */

static bool user_state(struct builder *b, const struct ynode *node, struct op *op)
{
    if (!node)
        return false;
    if (node->kind == Y_SCALAR) {
        op->nfields = 1;
        op->field_name[0] = "";
        return (op->field[0] = parse_type_name(b, node)) != TY_NONE;
    }
    if (!node_is(b, node, Y_MAPPING, "a type or a mapping of fields to types"))
        return false;
    if (!node->count || node->count > STATE_FIELDS_MAX) {
        diag_error(b->d, D_LIMIT, node->at, "a state has 1 to %d fields", STATE_FIELDS_MAX);
        return false;
    }
    bool good = true;
    for (int i = 0; i < node->count; i++) {
        good &= node_name(b, node->pair[i].key, "a field");
        op->field_name[i] = node->pair[i].key->text;
        op->field[i] = parse_type_name(b, node->pair[i].value);
        good &= op->field[i] != TY_NONE;
    }
    op->nfields = node->count;
    return good;
}

bool fields_parse(const struct scope *sc, const struct ynode *node, const char *what, const char *of,
                  const char *const *names, int nfields, struct ast **out)
{
    struct builder *b = sc->b;
    bool good = true, unknown = false, seen[STATE_FIELDS_MAX] = { false };
    for (int i = 0; i < node->count; i++) {
        const struct ynode *key = node->pair[i].key;
        struct ast *e = node_expr(b, node->pair[i].value);
        int field = nfields;
        while (--field >= 0 && strcmp(names[field], key->text) != 0)
            continue;
        good &= e != NULL;
        if (field >= 0) {
            out[field] = e;
            seen[field] = true;
            continue;
        }
        struct diag *m = diag_error(b->d, D_FIELDS, key->at, "the %s has no field '%s'", of, key->text);
        diag_suggest(b->d, m, key->text, names, nfields);
        if (e)
            type_build(sc, e, T_ANY); /* what is wrong in it is said, too */
        unknown = true;
    }
    for (int f = 0; f < nfields && !unknown; f++)
        if (!seen[f]) {
            diag_error(b->d, D_FIELDS, node->at, "the %s has no field '%s' of the %s", what, names[f], of);
            good = false;
        }
    return good && !unknown;
}

static const struct expr *field_value(const struct scope *sc, struct ast *e, enum ty type, bool widened)
{
    return !e ? NULL : widened ? type_build_widened(sc, e, type) : type_build(sc, e, type);
}

/* Typed expressions of a scalar or of a mapping with exactly the state's fields. */
bool fields_build(const struct scope *sc, const struct op *op, const struct ynode *node, bool widened,
                  const struct expr **out)
{
    struct builder *b = sc->b;
    bool tuple = *op->field_name[0] != '\0', good;
    struct ast *e[STATE_FIELDS_MAX] = { NULL };
    if (!node)
        return false;
    if ((node->kind == Y_MAPPING) != tuple || node->kind == Y_SEQUENCE) {
        struct diag *m = diag_error(b->d, D_FIELDS, node->at,
                                    tuple ? "the state has fields, so this is a mapping of them to expressions"
                                          : "the state is a scalar, so this is one expression");
        if (tuple)
            diag_hint(b->d, m, "the first field is '%s'", op->field_name[0]);
        return false;
    }
    if (!tuple) {
        out[0] = field_value(sc, node_expr(b, node), op->field[0], widened);
        return out[0] != NULL;
    }
    good = fields_parse(sc, node, "mapping", "state", op->field_name, op->nfields, e);
    for (int f = 0; f < op->nfields; f++) {
        out[f] = field_value(sc, e[f], op->field[f], widened);
        good &= out[f] != NULL;
    }
    return good;
}

static void user_lets(const struct scope *sc, const struct ynode *node)
{
    if (!node || !lets_fit(sc->b, node))
        return;
    for (int i = 0; i < node->count; i++) {
        const struct ynode *key = node->pair[i].key;
        node_name(sc->b, key, "a let");
        warn_hidden(sc->b, key->text, key->at, "a let of the operator");
        let_define(sc, sc->op_lets, key->text, node_expr(sc->b, node->pair[i].value), key->at);
    }
}

static void find_input(const struct expr *e, void *user) { *(bool *)user |= e->kind == EX_INPUT || e->kind == EX_AT; }

bool op_reads_inputs(const struct op *op)
{
    bool reads = false;
    for (int i = 0; i < op->nlets; i++)
        expr_walk(op->let[i].value, find_input, &reads);
    for (int f = 0; f < op->nfields; f++)
        expr_walk(op->combine[f], find_input, &reads);
    return reads;
}

static const struct op *op_written(struct builder *b, const struct ynode *node)
{
    schema_check(b->d, ST_OPERATOR, node, K_ALL);
    struct op *op = arena_new(b->a, struct op, 1);
    op->name = "user";
    if (!user_state(b, schema_get(node, ST_OPERATOR, "state"), op))
        return NULL;
    const struct ynode *identity = schema_get(node, ST_OPERATOR, "identity");
    const struct ynode *combine = schema_get(node, ST_OPERATOR, "combine");
    struct scope constant = { .b = b, .allows = SC_PARAM, .place = "an identity", .state = -1 };
    bool good = !identity || fields_build(&constant, op, identity, false, op->identity);
    struct let_table lets = { .kind = EX_OP_LET };
    struct scope sc = { .b = b,
                        .allows = SC_OPERATOR | SC_PARAM | SC_INVARIANT,
                        .place = "the combine of an operator",
                        .op = op,
                        .op_lets = &lets,
                        .state = -1 };
    if (combine) {
        warn_hidden(b, "a", combine->at, "the left operand");
        warn_hidden(b, "b", combine->at, "the right operand");
    }
    user_lets(&sc, schema_get(node, ST_OPERATOR, "let"));
    good &= fields_build(&sc, op, combine, false, op->combine);
    if (!good)
        return op; /* its fields are known, so that what uses them is still checked */
    warn_unused_lets(b, &lets);
    op->let = lets.let;
    op->nlets = lets.nlets;
    const struct ynode *declared = schema_get(node, ST_OPERATOR, "commutative");
    op->commutative = declared ? node_bool(b, declared, false) : op_is_commutative(b->a, op);
    op->exact = op->commutative && op_is_exact(op);
    return op;
}

/* ---- by names ---- */

void build_operators(struct builder *b)
{
    const struct ynode *node = schema_get(b->root, ST_TOP, "operators");
    for (int i = 0; node && i < node->count; i++) {
        const struct ynode *key = node->pair[i].key, *value = node->pair[i].value;
        struct own_op own = { .name = key->text, .at = key->at };
        node_name(b, key, "an operator");
        if (op_row_by_name(key->text))
            diag_error(b->d, D_DUPLICATE_NAME, key->at, "'%s' is a built-in operator already", key->text);
        if (node_is(b, value, Y_MAPPING, "an operator, as {state: …, identity: …, combine: …}"))
            own.op = op_written(b, value);
        ARENA_PUSH(b->a, b->own_op, b->nown_ops, b->cap_own_ops, own);
    }
}

struct own_op *own_op_find(const struct builder *b, const char *name)
{
    for (int i = 0; i < b->nown_ops; i++)
        if (!strcmp(b->own_op[i].name, name)) {
            b->own_op[i].used = true;
            return &b->own_op[i];
        }
    return NULL;
}

void warn_unused_operators(struct builder *b)
{
    for (int i = 0; i < b->nown_ops; i++)
        if (!b->own_op[i].used)
            diag_warning(b->d, D_UNUSED, b->own_op[i].at, "nothing uses the operator '%s'", b->own_op[i].name);
}

bool op_is_own(const struct builder *b, const struct ynode *n)
{
    return n->kind != Y_SCALAR || own_op_find(b, n->text);
}

const struct op *op_user(struct builder *b, const struct ynode *node)
{
    return node->kind == Y_SCALAR ? own_op_find(b, node->text)->op : op_written(b, node);
}
