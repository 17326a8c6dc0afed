/* SPDX-License-Identifier: Apache-2.0 */
/* array_type.c - texts of types: f32, f32[m, n], {type: {re: f32, im: f32}, shape: [n]}. */
#include "frontend/frontend_impl.h"

/* A stretch of a scalar that is being read as a type. */
struct cursor {
    const struct ynode *node;
    uint32_t at;
};

static void skip_space(struct cursor *c)
{
    while (c->at < c->node->length && (c->node->text[c->at] == ' ' || c->node->text[c->at] == '\n'))
        c->at++;
}

static uint32_t skip_word(const struct cursor *c)
{
    uint32_t i = c->at;
    while (i < c->node->length && (c->node->text[i] == '_' || (c->node->text[i] >= '0' && c->node->text[i] <= '9') ||
                                   (c->node->text[i] >= 'a' && c->node->text[i] <= 'z') ||
                                   (c->node->text[i] >= 'A' && c->node->text[i] <= 'Z')))
        i++;
    return i;
}

static bool take(struct cursor *c, char wanted)
{
    skip_space(c);
    if (c->at >= c->node->length || c->node->text[c->at] != wanted)
        return false;
    c->at++;
    return true;
}

static enum ty unknown_type(struct builder *b, struct span at, const char *name)
{
    const char *names[TY_COUNT];
    for (int t = 0; t < TY_COUNT; t++)
        names[t] = ty_name(t);
    struct diag *m = diag_error(b->d, D_BAD_TYPE, at, "there is no scalar type '%s'", name);
    static const char *const habits[][2] = { { "float", "f32" }, { "double", "f64" },   { "half", "f16" },
                                             { "int", "i32" },   { "float32", "f32" },  { "float64", "f64" },
                                             { "int32", "i32" }, { "int64", "i64" },    { "long", "i64" },
                                             { "char", "i8" },   { "bfloat16", "bf16" } };
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
        if (!strcmp(name, habits[i][0])) {
            diag_hint(b->d, m, "it is called %s", habits[i][1]);
            return TY_NONE;
        }
    diag_suggest(b->d, m, name, names, TY_COUNT);
    return TY_NONE;
}

enum ty parse_type_name(struct builder *b, const struct ynode *scalar)
{
    if (!node_is(b, scalar, Y_SCALAR, "a scalar type"))
        return TY_NONE;
    enum ty t = ty_by_name(scalar->text, (int)scalar->length);
    return t != TY_NONE ? t : unknown_type(b, scalar->at, scalar->text);
}

static bool bad_dim(struct builder *b, const struct cursor *c, uint32_t from, uint32_t to, const char *text)
{
    diag_error(b->d, D_BAD_SHAPE, ynode_span(c->node, from, to > from ? to : from + 1), "%s", text);
    return false;
}

/* The number at the cursor, up to 2^62. */
static bool take_number(struct cursor *c, int64_t *out)
{
    int64_t x = 0;
    uint32_t from = c->at;
    for (; c->at < c->node->length && c->node->text[c->at] >= '0' && c->node->text[c->at] <= '9'; c->at++)
        if (x > (INT64_MAX >> 1) / 10 - 1)
            return false;
        else
            x = x * 10 + (c->node->text[c->at] - '0');
    *out = x;
    return c->at > from && (c->node->text[from] != '0' || c->at == from + 1);
}

/* NAME, NAME-INTEGER (outputs) or a positive INTEGER. */
static bool take_dim(struct builder *b, struct cursor *c, bool is_output, struct prog_dim *out)
{
    skip_space(c);
    uint32_t from = c->at, to = skip_word(c);
    if (c->at < c->node->length && c->node->text[c->at] >= '0' && c->node->text[c->at] <= '9') {
        *out = (struct prog_dim){ .size = -1 };
        if (!take_number(c, &out->add) || out->add < 1 || c->at != to)
            return bad_dim(b, c, from, to, "a constant dimension is a positive decimal integer");
        return true;
    }
    const char *name = arena_strndup(b->a, c->node->text + from, to - from);
    c->at = to;
    if (!name_is_identifier(name) || name_is_keyword(name) || name_is_reserved(name))
        return bad_dim(b, c, from, to, "a dimension is a name or a positive integer, and no name of ptxgen's own");
    *out = (struct prog_dim){ .size = size_find(b, name) };
    if (out->size < 0 && is_output && !ynode_get(b->root, "by") && !b->open_sizes) {
        const char **names = arena_new(b->a, const char *, b->nsizes + 1);
        for (int i = 0; i < b->nsizes; i++)
            names[i] = b->size[i].name;
        struct diag *m =
            diag_error(b->d, D_BAD_SHAPE, ynode_span(c->node, from, to), "no input has a dimension '%s'", name);
        diag_suggest(b->d, m, name, names, b->nsizes);
        return false;
    }
    if (out->size < 0) {
        struct dimension d = { .name = name, .max = INT64_MAX, .multiple_of = 1, .at = ynode_span(c->node, from, to) };
        out->size = b->nsizes;
        ARENA_PUSH(b->a, b->size, b->nsizes, b->cap_sizes, d);
    }
    if (!take(c, '-'))
        return true;
    int64_t less = 0;
    skip_space(c);
    if (!is_output)
        return bad_dim(b, c, from, c->at, "only an output may be smaller than a dimension");
    if (!take_number(c, &less))
        return bad_dim(b, c, from, c->at + 1, "a number is expected after '-'");
    out->add = -less;
    return true;
}

static bool add_dim(struct builder *b, struct cursor *c, uint32_t from, struct prog_dim d, struct prog_array *out)
{
    for (int i = 0; i < out->rank; i++)
        if (d.size >= 0 && out->dim[i].size == d.size)
            return bad_dim(b, c, from, c->at, "a dimension stands only once in a shape");
    if (out->rank == PROG_RANK_MAX)
        return bad_dim(b, c, from, c->at, arena_printf(b->a, "an array has at most %d dimensions", PROG_RANK_MAX));
    out->dim[out->rank++] = d;
    return true;
}

/* After '[': m, n]. */
static bool dims_text(struct builder *b, struct cursor *c, bool is_output, struct prog_array *out)
{
    do {
        struct prog_dim d;
        skip_space(c);
        uint32_t begin = c->at;
        if (!take_dim(b, c, is_output, &d) || !add_dim(b, c, begin, d, out))
            return false;
    } while (take(c, ','));
    if (!take(c, ']'))
        return bad_dim(b, c, c->at, c->at + 1, "',' or ']' is expected in a shape");
    skip_space(c);
    return c->at >= c->node->length || bad_dim(b, c, c->at, c->node->length, "the type ends before this");
}

/* f32[m, n] */
static bool array_text(struct builder *b, const struct ynode *node, bool is_output, struct prog_array *out)
{
    struct cursor c = { node, 0 };
    skip_space(&c);
    uint32_t from = c.at, to = skip_word(&c);
    struct prog_field *field = arena_new(b->a, struct prog_field, 1);
    const char *name = arena_strndup(b->a, node->text + from, to - from);
    field->name = "";
    field->type = ty_by_name(name, (int)strlen(name));
    if (field->type == TY_NONE)
        field->type = unknown_type(b, to > from ? ynode_span(node, from, to) : node->at, name);
    c.at = to;
    if (!take(&c, '[')) {
        skip_space(&c);
        if (c.at < node->length)
            return bad_dim(b, &c, c.at, node->length, "a type is written like f32 or f32[m, n]");
        if (!is_output) {
            struct diag *m = diag_error(b->d, D_BAD_SHAPE, node->at, "an input is an array");
            diag_hint(b->d, m,
                      "write %s[n]; one element in memory is %s[]; a scalar given at launch belongs under params", name,
                      name);
            return false;
        }
    } else if (!take(&c, ']') && !dims_text(b, &c, is_output, out)) {
        return false;
    }
    if (field->type == TY_NONE)
        return false;
    out->field = field;
    out->nfields = 1;
    out->stride = ty_bytes(field->type);
    return true;
}

/* Fields of a structure, laid out as in C. */
static bool structure(struct builder *b, const struct ynode *type, struct prog_array *out)
{
    if (!type->count || type->count > STATE_FIELDS_MAX) {
        diag_error(b->d, D_LIMIT, type->at, "a structure has 1 to %d fields", STATE_FIELDS_MAX);
        return false;
    }
    struct prog_field *field = arena_new(b->a, struct prog_field, type->count);
    int offset = 0, align = 1;
    bool good = true;
    for (int i = 0; i < type->count; i++) {
        field[i].name = type->pair[i].key->text;
        good &= node_name(b, type->pair[i].key, "a field");
        field[i].type = parse_type_name(b, type->pair[i].value);
        if (field[i].type == TY_NONE) {
            good = false;
            continue;
        }
        int bytes = ty_bytes(field[i].type);
        offset = (offset + bytes - 1) / bytes * bytes;
        field[i].offset = offset;
        offset += bytes;
        align = bytes > align ? bytes : align;
    }
    out->field = field;
    out->nfields = good ? type->count : 0;
    out->stride = (offset + align - 1) / align * align;
    return good;
}

bool parse_dimension(struct builder *b, const struct ynode *scalar, struct prog_dim *out)
{
    struct cursor c = { scalar, 0 };
    if (!take_dim(b, &c, false, out))
        return false;
    skip_space(&c);
    return c.at >= c.node->length || bad_dim(b, &c, c.at, c.node->length, "the dimension ends before this");
}

bool parse_array(struct builder *b, const struct ynode *node, const char *name, bool is_output, struct prog_array *out)
{
    *out = (struct prog_array){ .name = name };
    b->open_sizes = false;
    if (node->kind == Y_SCALAR)
        return array_text(b, node, is_output, out);
    enum schema_table table = is_output ? ST_OUTPUT : ST_INPUT;
    if (!node_is(b, node, Y_MAPPING, is_output ? "a type, or {type, value}" : "a type such as f32[n]"))
        return false;
    schema_check(b->d, table, node, K_ALL);
    b->open_sizes = is_output && output_has_place(node);
    const struct ynode *type = schema_get(node, table, "type"), *shape = schema_get(node, table, "shape");
    if (!type)
        return false;
    if (type->kind == Y_SCALAR) {
        if (shape || !is_output) {
            struct diag *m =
                diag_error(b->d, D_BAD_TYPE, type->at, "only an array of structures has its shape beside the type");
            diag_hint(b->d, m, "write %s: f32[n]", kept_own_name(name));
            return false;
        }
        return array_text(b, type, is_output, out);
    }
    bool good = structure(b, type, out);
    for (int i = 0; shape && i < shape->count; i++) {
        struct cursor c = { shape->item[i], 0 };
        struct prog_dim d;
        if (!node_is(b, shape->item[i], Y_SCALAR, "a dimension") || !take_dim(b, &c, is_output, &d) ||
            !add_dim(b, &c, 0, d, out))
            return false;
        skip_space(&c);
        if (c.at < c.node->length)
            return bad_dim(b, &c, c.at, c.node->length, "the dimension ends before this");
    }
    return good;
}

void dim_print(const struct builder *b, struct prog_dim d, struct str *out)
{
    if (d.size < 0)
        str_printf(out, "%lld", (long long)d.add);
    else if (d.add)
        str_printf(out, "%s-%lld", b->size[d.size].name, (long long)-d.add);
    else
        str_add(out, b->size[d.size].name);
}
