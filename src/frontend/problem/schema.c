/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - which keys a mapping may have, from the rows of schema.def: the checker. */
#include "schema.h"

const struct schema_value schema_values[] = {
#define VALUE(id, sorts, what, json) { sorts, what, json },
#include "schema.def"
#undef VALUE
};

const struct schema_key schema_keys[] = {
#define REDUCE                                       K_REDUCE
#define SCAN                                         K_SCAN
#define STENCIL                                      K_STENCIL
#define ALL                                          K_ALL
#define KEY(table, key, kinds, required, value, doc) { ST_##table, key, kinds, required, V_##value, doc },
#include "schema.def"
#undef KEY
#undef REDUCE
#undef SCAN
#undef STENCIL
#undef ALL
};
const int schema_key_count = (int)(sizeof schema_keys / sizeof *schema_keys);

static const char *const table_names[ST_COUNT] = {
    [ST_TOP] = "a spec",
    [ST_INPUT] = "an input",
    [ST_PARAM] = "a param",
    [ST_OPERATOR] = "an operator",
    [ST_REDUCTION] = "a reduction",
    [ST_SEGMENTS] = "segments",
    [ST_ITERATE] = "iterate",
    [ST_OUTPUT] = "an output",
    [ST_ASSUME] = "a fact about a size or an array",
    [ST_STAGES] = "a spec with stages",
    [ST_LOOP] = "iterate",
};

static const struct schema_key *find(enum schema_table table, const char *key)
{
    for (int i = 0; i < schema_key_count; i++)
        if (schema_keys[i].table == table && !strcmp(schema_keys[i].key, key))
            return &schema_keys[i];
    return NULL;
}

static bool allows(const struct schema_key *row, const struct ynode *n)
{
    static const char sort[] = { [Y_SCALAR] = 'S', [Y_SEQUENCE] = 'Q', [Y_MAPPING] = 'M' };
    return strchr(schema_values[row->value].sorts, sort[n->kind]) != NULL;
}

static void unknown(struct diags *d, enum schema_table table, const struct ynode *key)
{
    const char *names[32];
    int n = 0;
    for (int i = 0; i < schema_key_count; i++)
        if (schema_keys[i].table == table)
            names[n++] = schema_keys[i].key;
    struct diag *m = diag_error(d, D_UNKNOWN_KEY, key->at, "%s has no key '%s'", table_names[table], key->text);
    const char *way = way_out(table_names[table], key->text);
    if (way)
        diag_hint(d, m, "%s", way);
    else
        diag_suggest(d, m, key->text, names, n);
}

static void not_for_kind(struct diags *d, enum schema_table table, const struct ynode *key, const char *kind)
{
    struct diag *m = diag_error(d, D_KEY_NOT_FOR_KIND, key->at, "a %s has no '%s'", kind, key->text);
    const char *way = way_out(table_names[table], key->text);
    if (!strcmp(kind, "map with 'where'"))
        diag_hint(d, m, "write two stages: a map with '%s', and a map with 'where'", key->text);
    else if (!strcmp(key->text, "reductions"))
        diag_hint(d, m, "several scans are called scans");
    else if (!strcmp(key->text, "scans"))
        diag_hint(d, m, "several results are called reductions");
    else if (way)
        diag_hint(d, m, "%s", way);
}

/* kind: the spec's word for what it is. */
static void check_pair(struct diags *d, enum schema_table table, const struct ypair *pair, unsigned kinds,
                       const struct ynode *kind)
{
    const struct schema_key *row = find(table, pair->key->text);
    if (!row) {
        unknown(d, table, pair->key);
        return;
    }
    if (!(row->kinds & kinds))
        not_for_kind(d, table, pair->key,
                     kinds == K_SCAN && !strcmp(kind->text, "map") ? "map with 'where'" : kind->text);
    if (!allows(row, pair->value)) {
        struct diag *m =
            diag_error(d, D_WRONG_SORT, pair->value->at, "'%s' is %s", row->key, schema_values[row->value].what);
        if (pair->value->kind != Y_SCALAR && row->value == V_EXPR)
            diag_hint(d, m, "quote an expression that begins with [ or {");
    }
}

void schema_check(struct diags *d, enum schema_table table, const struct ynode *mapping, unsigned kinds)
{
    for (int i = 0; i < mapping->count; i++)
        check_pair(d, table, &mapping->pair[i], kinds, ynode_get(mapping, "kind"));
    for (int i = 0; i < schema_key_count; i++)
        if (schema_keys[i].table == table && schema_keys[i].required && !ynode_get(mapping, schema_keys[i].key))
            diag_error(d, D_MISSING_KEY,
                       table == ST_TOP ? (struct span){ mapping->at.begin, mapping->at.begin } : mapping->at,
                       "%s needs the key '%s': %s", table_names[table], schema_keys[i].key,
                       schema_values[schema_keys[i].value].what);
}

const struct ynode *schema_get(const struct ynode *mapping, enum schema_table table, const char *key)
{
    const struct schema_key *row = find(table, key);
    const struct ynode *n = ynode_get(mapping, key);
    return n && row && allows(row, n) ? n : NULL;
}
