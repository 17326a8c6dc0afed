/* SPDX-License-Identifier: Apache-2.0 */
/* schema_json.c - the JSON Schema (2020-12) of the language, from the rows that the checker uses.
 *
 * Editors that know YAML schemas complete and check specs with it.  It describes the structure; what is inside an
 * expression, and how the parts must agree, is checked by ptxgen alone.
 */
#include "schema.h"

static void text(struct str *out, const char *s)
{
    struct json j;
    json_init(&j, out, false);
    json_string(&j, s);
}

static void property(struct str *out, const struct schema_key *row, bool first)
{
    str_add(out, first ? "\n      " : ",\n      ");
    text(out, row->key);
    str_add(out, ": {\"description\": ");
    text(out, row->doc);
    str_printf(out, ", \"allOf\": [%s]}", schema_values[row->value].json);
}

/* Of a spec on its own, or of one that is a stage: its inputs are names, and some keys are the whole's. */
static bool has(const struct schema_key *row, enum schema_table t, bool stage)
{
    static const char *const of_whole[] = { "ptxgen", "name", "params", "inputs" };
    for (size_t i = 0; stage && i < sizeof of_whole / sizeof *of_whole; i++)
        if (!strcmp(row->key, of_whole[i]))
            return false;
    return row->table == t;
}

/* properties, required and closedness of one table */
static void table(struct str *out, enum schema_table t, bool stage)
{
    static const struct schema_key of_stage[] = {
        { ST_TOP, "inputs", K_ALL, false, V_NAMES, "Arrays that are read; those that the stage mentions when absent." },
        { ST_TOP, "fuse", K_ALL, false, V_BOOL, "Whether the stage may become one with others; true when absent." },
    };
    bool first = true;
    str_add(out, "\"type\": \"object\", \"additionalProperties\": false,\n    \"properties\": {");
    for (int i = 0; i < schema_key_count; i++)
        if (has(&schema_keys[i], t, stage)) {
            property(out, &schema_keys[i], first);
            first = false;
        }
    for (size_t i = 0; stage && i < sizeof of_stage / sizeof *of_stage; i++)
        property(out, &of_stage[i], false);
    str_add(out, "\n    },\n    \"required\": [");
    first = true;
    for (int i = 0; i < schema_key_count; i++)
        if (has(&schema_keys[i], t, stage) && schema_keys[i].required) {
            str_add(out, first ? "" : ", ");
            text(out, schema_keys[i].key);
            first = false;
        }
    str_add(out, "]");
}

/* For each kind: the keys that it does not have. */
static void kinds(struct str *out)
{
    static const struct {
        const char *name;
        unsigned kind;
    } of[] = { { "reduce", K_REDUCE }, { "scan", K_SCAN }, { "stencil", K_STENCIL }, { "map", K_STENCIL } };
    str_add(out, "    \"allOf\": [");
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        str_printf(out,
                   "%s\n      {\"if\": {\"properties\": {\"kind\": {\"const\": \"%s\"}}}, \"then\": {\"properties\": {",
                   k ? "," : "", of[k].name);
        bool first = true;
        for (int i = 0; i < schema_key_count; i++)
            if (schema_keys[i].table == ST_TOP && !(schema_keys[i].kinds & of[k].kind)) {
                str_printf(out, "%s\"%s\": false", first ? "" : ", ", schema_keys[i].key);
                first = false;
            }
        str_add(out, "}}}");
    }
    str_add(out, "\n    ]");
}

static void name_list(struct str *out, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        str_printf(out, "%s\"%s\"", i ? "," : "", names[i]);
}

static void vocabulary(struct str *out)
{
    const char *names[64];
    int n = 0;
    for (int t = 0; t < TY_COUNT; t++)
        names[n++] = ty_name(t);
    str_add(out, ",\n    \"scalar_type\": {\"enum\": [");
    name_list(out, names, n);
    for (n = 0; n < op_row_count(); n++)
        names[n] = op_row(n)->name;
    str_add(out, "]},\n    \"operator_name\": {\"enum\": [");
    name_list(out, names, n);
    str_add(out, "]},\n    \"own_name\": {\"type\": \"string\", \"pattern\": \"^[A-Za-z_][A-Za-z0-9_]*$\"},\n    "
                 "\"boundary_mode\": {\"enum\": [");
    name_list(out, boundary_names, boundary_count());
    str_add(
        out,
        "]},\n    \"boundary\": {\"anyOf\": [{\"$ref\": \"#/$defs/boundary_mode\"}, "
        "{\"type\": \"object\", \"additionalProperties\": true}]},\n"
        "    \"expression\": {\"type\": [\"string\", \"number\", \"boolean\"]},\n"
        "    \"expressions\": {\"anyOf\": [{\"$ref\": \"#/$defs/expression\"}, {\"type\": \"object\", "
        "\"additionalProperties\": {\"$ref\": \"#/$defs/expression\"}}]},\n"
        "    \"array_type\": {\"type\": \"string\"},\n"
        "    \"structure\": {\"type\": \"object\", \"minProperties\": 1, \"additionalProperties\": {\"$ref\": "
        "\"#/$defs/scalar_type\"}},\n"
        "    \"element_type\": {\"anyOf\": [{\"$ref\": \"#/$defs/array_type\"}, {\"$ref\": \"#/$defs/structure\"}]}");
}

void problem_schema(struct str *out)
{
    static const struct {
        enum schema_table table;
        const char *name;
    } tables[] = {
        { ST_INPUT, "input" },         { ST_PARAM, "param" },       { ST_OPERATOR, "operator" },
        { ST_REDUCTION, "reduction" }, { ST_SEGMENTS, "segments" }, { ST_ITERATE, "iterate" },
        { ST_ASSUME, "assume" },       { ST_STAGES, "staged" },     { ST_LOOP, "loop" },
        { ST_OUTPUT, "output" },
    };
    str_add(out, "{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
                 "  \"title\": \"ptxgen spec\",\n"
                 "  \"if\": {\"required\": [\"stages\"]}, \"then\": {\"$ref\": \"#/$defs/staged\"},\n  \"else\": {");
    table(out, ST_TOP, false);
    str_add(out, ",\n");
    kinds(out);
    str_add(out, "},\n  \"$defs\": {\n    \"stage\": {");
    table(out, ST_TOP, true);
    str_add(out, ",\n");
    kinds(out);
    str_add(out, "}");
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        str_printf(out, ",\n    \"%s\": {", tables[i].name);
        table(out, tables[i].table, false);
        str_add(out, "}");
    }
    vocabulary(out);
    str_add(out, "\n  }\n}\n");
}
