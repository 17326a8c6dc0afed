/* SPDX-License-Identifier: Apache-2.0 */
/* reductions.c - `operator` with `map`, and the named entries of `reductions` and `scans`.
 *
 * A built-in operator takes its types from the map: T from the field of that type (or a scalar map, which some
 * operators lift to their state), widened to the accumulator.  A user's operator has its types; the map is widened to
 * them.
 */
#include "frontend/frontend_impl.h"

/* A map as written: one expression, or one per field of a state. */
struct map {
    struct ast *scalar;
    struct ast *field[STATE_FIELDS_MAX];
    struct span at;
};

struct entry {
    const char *name;
    struct span at;
    const struct ynode *map, *operator, * accumulator;
};

static struct scope map_scope(struct builder *b)
{
    unsigned output = b->p->kind == KIND_STENCIL ? SC_OUTPUT : 0;
    return (struct scope){ .b = b,
                           .place = b->p->kind == KIND_SCAN ? "the 'map' of a scan" : "the 'map' of a reduction",
                           .state = -1,
                           .allows = SC_INPUT | SC_OFFSETS | SC_LET | SC_INDEX | SC_PARAM | output };
}

static struct ast *name_ast(struct builder *b, const char *name, struct span at)
{
    struct ast *e = arena_new(b->a, struct ast, 1);
    *e = (struct ast){ .kind = AST_NAME, .at = at, .op_at = at, .depth = 1, .peeked = T_UNKNOWN, .name = name };
    return e;
}

static struct ast *field_ast(struct builder *b, struct ast *base, const char *field)
{
    struct ast *e = arena_new(b->a, struct ast, 1);
    *e = (struct ast){
        .kind = AST_FIELD, .at = base->at, .op_at = base->at, .depth = 2, .peeked = T_UNKNOWN, .name = field
    };
    ARENA_PUSH(b->a, e->arg, e->nargs, e->cap_args, base);
    return e;
}

bool structure_fields(const struct scope *sc, struct ast *e, int nfields, const char *const *names, struct ast **out)
{
    struct reference ref;
    int gathered;
    const char *const *of;
    const bool state = e && gather_names(sc, e, &gathered, &of);
    if (!state && (!e || (e->kind != AST_NAME && e->kind != AST_OFFSET && e->kind != AST_FIELD) ||
                   !reference_of(sc, e, &ref, true) || !ref.symbol.nfields || ref.field >= 0))
        return false;
    for (int i = 0; i < nfields; i++)
        out[i] = field_ast(sc->b, e, names[i]);
    return true;
}

/* The single input, where no map is given; one that only says where segments begin is no other. */
static struct ast *default_map(struct builder *b, struct span at)
{
    const struct ynode *starts = b->ninputs > 1 ? starts_node(b) : NULL;
    int only = -1, n = 0;
    if (b->incomplete) /* the single input may be another one than it seems */
        return NULL;
    for (int i = 0; i < b->ninputs; i++)
        if ((b->input[i].role == ROLE_ELEMENT || b->input[i].spread) &&
            !(starts && !strcmp(starts->text, b->input[i].array.name))) {
            only = i;
            n++;
        }
    if (n == 1 && b->p->kind != KIND_STENCIL)
        return name_ast(b, b->input[only].array.name, at);
    diag_error(b->d, D_NO_MAP, at,
               b->p->kind == KIND_STENCIL ? "a reduction beside a stencil needs a map"
                                          : "with several inputs, a map must say what an element contributes");
    return NULL;
}

/* Reads a map for a state with these fields (names[0] empty: a scalar); out->field is filled for tuples that are given
 * field by field, out->scalar otherwise.  false: reported. */
static bool map_read(const struct scope *sc, const struct entry *entry, int nfields, const char *const *names,
                     struct map *out)
{
    struct builder *b = sc->b;
    bool tuple = *names[0] != '\0';
    *out = (struct map){ .at = entry->map ? entry->map->at : entry->at };
    if (entry->map && entry->map->kind == Y_MAPPING) {
        if (tuple)
            return fields_parse(sc, entry->map, "map", "state", names, nfields, out->field);
        struct diag *m =
            diag_error(b->d, D_FIELDS, entry->map->at, "the operator combines scalars, and this map has fields");
        diag_hint(b->d, m, "several results in one pass are written under %s",
                  b->p->kind == KIND_SCAN ? "scans" : "reductions");
        return false;
    }
    out->scalar = entry->map ? node_expr(b, entry->map) : default_map(b, entry->at);
    if (tuple && structure_fields(sc, out->scalar, nfields, names, out->field))
        out->scalar = NULL;
    return out->scalar || out->field[0];
}

/* ---- built-in operators ---- */

/* The type that a letter of the row stands for, from the values of the fields with that letter. */
static int letter_type(const struct scope *sc, struct ast *const *field, int nfields, const char *letters, char letter)
{
    int t = T_ANY;
    for (int i = 0; i < nfields; i++)
        if (letters[i] == letter) {
            int next = type_peek(sc, field[i]);
            t = t == T_ANY ? next : type_unify(t, next);
        }
    return t;
}

bool op_row_misfit(const struct scope *sc, const struct op_row *row, struct ast *const *field)
{
    struct builder *b = sc->b;
    const char *names[STATE_FIELDS_MAX];
    char letters[STATE_FIELDS_MAX];
    const int n = op_row_fields(row, b->a, names, letters);
    enum ty first = TY_NONE;
    for (int i = 0; i < n; i++) {
        const struct expr *e = type_build(sc, field[i], T_ANY);
        if (e && letters[i] == 'I' && !ty_is_int(e->type))
            diag_error(b->d, D_OPERATOR_TYPE, field[i]->at, "field '%s' of %s is an integer", names[i], row->name);
        if (!e || letters[i] != 'T')
            continue;
        if (first != TY_NONE && e->type != first)
            diag_error(b->d, D_OPERANDS_DIFFER, e->at, "the fields of the map have types %s and %s", ty_name(first),
                       ty_name(e->type));
        first = e->type;
    }
    return false;
}

bool op_row_types(const struct scope *sc, const struct op_row *row, struct ast *const *field, enum ty accumulator,
                  enum ty *type)
{
    const char *names[STATE_FIELDS_MAX];
    char letters[STATE_FIELDS_MAX];
    const int n = op_row_fields(row, sc->b->a, names, letters);
    const int t = letter_type(sc, field, n, letters, 'T'), index = letter_type(sc, field, n, letters, 'I');
    if (t == T_POISON || index == T_POISON)
        return false;
    enum ty value = accumulator != TY_NONE ? accumulator : op_default_accumulator(row, type_default(t));
    if (t == T_LIT_INT && !strchr(row->types, 's'))
        value = accumulator != TY_NONE ? accumulator : TY_F32;
    for (int i = 0; i < n; i++) {
        type[i] = letters[i] == 'T' ? value : index < 0 ? TY_I64 : type_default(index);
        if (letters[i] == 'I' && !ty_is_int(type[i]))
            return false;
    }
    return true;
}

static bool builtin_tuple(const struct scope *sc, const struct op_row *row, const struct entry *entry,
                          const struct map *map, enum ty accumulator, struct reduction *r)
{
    enum ty field[STATE_FIELDS_MAX];
    if (!op_row_types(sc, row, map->field, accumulator, field))
        return op_row_misfit(sc, row, map->field);
    r->op = op_builtin(sc->b, row, field, entry->operator->at);
    if (!r->op)
        return false;
    bool good = true;
    for (int i = 0; i < r->op->nfields; i++) {
        r->map[i] = type_build_widened(sc, map->field[i], field[i]);
        good &= r->map[i] != NULL;
    }
    return good;
}

bool op_row_lift(const struct scope *sc, const struct op_row *row, int nfields, struct ast *scalar, enum ty t,
                 const struct expr **out)
{
    struct builder *b = sc->b;
    const struct scope literals = { .b = b, .allows = SC_ROW, .place = "an operator", .state = -1 };
    for (int i = 0; i < nfields; i++) {
        struct source item = op_row_item(row->lift, i, scalar->at);
        struct ast *e = expr_parse(b->a, b->d, &item);
        bool is_x = e && e->kind == AST_NAME && !strcmp(e->name, "x");
        out[i] = is_x ? type_build_widened(sc, scalar, t) : type_build(&literals, e, t);
        if (!out[i])
            return false;
    }
    return true;
}

static bool builtin_scalar(const struct scope *sc, const struct op_row *row, const struct entry *entry,
                           const struct map *map, enum ty accumulator, struct reduction *r, int *map_type)
{
    struct builder *b = sc->b;
    enum ty field[STATE_FIELDS_MAX];
    if (row->state && !row->lift) {
        struct diag *m = diag_error(b->d, D_OPERATOR_MAP, map->at,
                                    "%s combines several fields, and this map is one value", row->name);
        const char *names[STATE_FIELDS_MAX];
        char letters[STATE_FIELDS_MAX];
        int n = op_row_fields(row, b->a, names, letters);
        diag_hint(b->d, m, "write map: {%s: …, %s: …}", names[0], names[n - 1]);
        return false;
    }
    int t = type_peek(sc, map->scalar);
    if (t == T_POISON) {
        type_build(sc, map->scalar, T_ANY);
        return false;
    }
    *map_type = t >= 0 ? t : T_ANY;
    bool float_only = !strchr(row->types, 's');
    enum ty own = t < 0 && float_only && row->lift ? TY_F32 : type_default(t);
    enum ty value = accumulator != TY_NONE ? accumulator : op_default_accumulator(row, own);
    for (int i = 0; i < STATE_FIELDS_MAX; i++)
        field[i] = value;
    r->op = op_builtin(b, row, field, entry->operator->at);
    if (!r->op)
        return false;
    if (row->lift) {
        r->takes_many = row->many;
        return op_row_lift(sc, row, r->op->nfields, map->scalar, value, r->map);
    }
    r->map[0] = type_build_widened(sc, map->scalar, value);
    return r->map[0] != NULL;
}

const struct op_row *op_row_find(struct builder *b, const char *name, struct span at)
{
    const struct op_row *row = op_row_by_name(name);
    if (row)
        return row;
    const int n = op_row_count();
    const char **names = arena_new(b->a, const char *, n + b->nown_ops);
    for (int i = 0; i < n + b->nown_ops; i++)
        names[i] = i < n ? op_row(i)->name : b->own_op[i - n].name;
    struct diag *m = diag_error(b->d, D_UNKNOWN_OPERATOR, at, "there is no operator '%s'", name);
    static const char *const habits[][2] = { { "sum", "add" },  { "+", "add" },       { "*", "mul" },
                                             { "prod", "mul" }, { "product", "mul" }, { "plus", "add" },
                                             { "all", "and" },  { "any", "or" } };
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
        if (!strcmp(name, habits[i][0])) {
            diag_hint(b->d, m, "it is called %s", habits[i][1]);
            return NULL;
        }
    const char *way = way_out("operator", name);
    if (way)
        diag_hint(b->d, m, "%s", way);
    else
        diag_suggest(b->d, m, name, names, n + b->nown_ops);
    return NULL;
}

static void build_builtin(struct builder *b, const struct entry *entry, struct reduction *r, int *map_type)
{
    const struct op_row *row = op_row_find(b, entry->operator->text, entry->operator->at);
    enum ty accumulator = entry->accumulator ? parse_type_name(b, entry->accumulator) : TY_NONE;
    if (!row)
        return;
    const char *names[STATE_FIELDS_MAX];
    char letters[STATE_FIELDS_MAX];
    int n = op_row_fields(row, b->a, names, letters);
    struct scope sc = map_scope(b);
    struct map map;
    if (!map_read(&sc, entry, n, names, &map))
        return;
    bool good = map.scalar ? builtin_scalar(&sc, row, entry, &map, accumulator, r, map_type)
                           : builtin_tuple(&sc, row, entry, &map, accumulator, r);
    if (!good)
        r->op = NULL;
}

/* ---- the user's operators ---- */

static void build_user(struct builder *b, const struct entry *entry, struct reduction *r)
{
    r->op = op_user(b, entry->operator);
    if (entry->accumulator)
        diag_error(b->d, D_CONFLICT, entry->accumulator->at,
                   "only a built-in operator has an accumulator; this one has its state");
    if (!r->op)
        return;
    struct scope sc = map_scope(b);
    struct map map;
    if (!map_read(&sc, entry, r->op->nfields, r->op->field_name, &map))
        return;
    if (map.scalar && *r->op->field_name[0]) {
        struct diag *m = diag_error(b->d, D_OPERATOR_MAP, map.at, "the state has fields, and this map is one value");
        diag_hint(b->d, m, "write map: {%s: …}", r->op->field_name[0]);
        return;
    }
    for (int i = 0; i < r->op->nfields; i++)
        r->map[i] = type_build_widened(&sc, map.scalar ? map.scalar : map.field[i], r->op->field[i]);
}

/* ---- entries ---- */

static void check_empty(struct builder *b, const struct reduction *r)
{
    if (!r->op || r->op->identity[0] || r->init[0] || !r->op->combine[0])
        return;
    const char *why = b->p->offsets >= 0                ? "a segment may be empty"
                      : b->p->nby && r->op->commutative ? "a bin may be empty"
                      : b->p->kind == KIND_SCAN && b->p->exclusive
                          ? "the first element of an exclusive scan has nothing before it"
                          : NULL;
    if (!why)
        return;
    struct diag *m = diag_error(b->d, D_NO_IDENTITY, r->at, "the operator has no identity, but %s", why);
    diag_hint(b->d, m, "give it an identity, or an init");
}

/* Sums of products of two inputs that each lack a dimension which the other one has. */
static void warn_product(struct builder *b, const struct reduction *r)
{
    const struct expr *e = r->map[0];
    unsigned all = (1u << b->p->rank) - 1;
    if (!r->op || !e || strcmp(r->op->name, "add") || e->kind != EX_BINARY || e->op != BIN_MUL)
        return;
    unsigned left = expr_axes(b, e->arg[0]), right = expr_axes(b, e->arg[1]);
    if (left == all || right == all || (left | right) != all || !(left & right & reduced_axes(b)))
        return;
    struct diag *m =
        diag_warning(b->d, D_PRODUCT, r->at, "this is a matrix product, for which ptxgen uses no tensor cores");
    diag_hint(b->d, m, "%s", way_out("kind", "matmul"));
}

static void build_init(struct builder *b, struct reduction *r)
{
    const struct ynode *node = schema_get(b->root, ST_TOP, "init");
    const struct scope sc = { .b = b, .allows = SC_PARAM, .place = "an init", .state = -1 };
    if (node && r->op && b->p->kind != KIND_STENCIL)
        fields_build(&sc, r->op, node, false, r->init);
}

static void build_entry(struct builder *b, const struct entry *entry)
{
    struct reduction r = { .name = entry->name, .at = entry->operator->at };
    int map_type = T_ANY;
    if (op_is_own(b, entry->operator))
        build_user(b, entry, &r);
    else
        build_builtin(b, entry, &r, &map_type);
    contract_maps(b, &r);
    build_init(b, &r);
    check_empty(b, &r);
    warn_product(b, &r);
    int n = b->nreductions;
    ARENA_PUSH(b->a, b->map_type, n, b->cap_map_types, map_type);
    ARENA_PUSH(b->a, b->reduction, b->nreductions, b->cap_reductions, r);
}

void build_reduction_single(struct builder *b)
{
    struct entry entry = {
        .name = b->p->kind == KIND_SCAN ? "s" : "r",
        .map = schema_get(b->root, ST_TOP, "map"),
        .operator= schema_get(b->root, ST_TOP, "operator"),
        .accumulator = schema_get(b->root, ST_TOP, "accumulator"),
    };
    if (!entry.operator) {
        b->incomplete = true;
        return;
    }
    entry.at = entry.operator->at;
    warn_hidden(b, entry.name, entry.at, "the result");
    build_entry(b, &entry);
}

void build_reductions(struct builder *b, const struct ynode *entries)
{
    b->named = true;
    if (!entries->count)
        diag_error(b->d, D_WRONG_SORT, entries->at, "at least one entry is needed");
    for (int i = 0; i < entries->count; i++) {
        const struct ynode *key = entries->pair[i].key, *value = entries->pair[i].value;
        node_name(b, key, "a result");
        if (!node_is(b, value, Y_MAPPING, "a mapping of map, operator, accumulator")) {
            b->incomplete = true;
            continue;
        }
        schema_check(b->d, ST_REDUCTION, value, K_ALL);
        struct entry entry = { key->text, key->at, schema_get(value, ST_REDUCTION, "map"),
                               schema_get(value, ST_REDUCTION, "operator"),
                               schema_get(value, ST_REDUCTION, "accumulator") };
        if (!entry.operator) {
            b->incomplete = true;
            continue;
        }
        warn_hidden(b, key->text, key->at, "a result");
        build_entry(b, &entry);
    }
}
