/* SPDX-License-Identifier: Apache-2.0 */
/* reference.c - the public API: the reference, Markdown made of the same tables as the program: keys, types,
 * functions, operators, boundaries, strategies, tunables, messages.
 */
#include <string.h>

#include "api_impl.h"
#include "frontend/problem/schema.h"
#include "lower/plan.h"

static void heading(struct str *out, const char *title, const char *text, const char *columns)
{
    str_printf(out, "\n## %s\n\n%s\n\n|", title, text);
    int n = 0;
    for (const char *from = columns; *from; n++) {
        const size_t length = strcspn(from, ",");
        str_printf(out, " %.*s |", (int)length, from);
        from += length + (from[length] != '\0');
    }
    str_add(out, "\n|");
    while (n-- > 0)
        str_add(out, "---|");
    str_addc(out, '\n');
}

/* In a cell a '|' would end it, in code as well. */
static void escaped(struct str *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            str_addc(out, '\\');
        str_addc(out, *text);
    }
}

static void cell(struct str *out, const char *text)
{
    str_addc(out, ' ');
    escaped(out, text);
    str_add(out, " |");
}

static void code_cell(struct str *out, const char *text)
{
    str_add(out, " `");
    escaped(out, text);
    str_add(out, "` |");
}

/* ---- the language ---- */

static const char *kinds_text(unsigned kinds)
{
    static const char *const text[] = {
        "", "reduce", "scan", "reduce, scan", "stencil", "reduce, stencil", "scan, stencil", "all",
    };
    const unsigned bits = (kinds & K_REDUCE ? 1u : 0) | (kinds & K_SCAN ? 2u : 0) | (kinds & K_STENCIL ? 4u : 0);
    return text[bits];
}

static void keys(struct str *out)
{
    static const char *const table[ST_COUNT] = {
        [ST_TOP] = "spec",
        [ST_INPUT] = "input",
        [ST_PARAM] = "param",
        [ST_OPERATOR] = "operator",
        [ST_REDUCTION] = "reduction, scan",
        [ST_SEGMENTS] = "segments",
        [ST_ITERATE] = "iterate",
        [ST_OUTPUT] = "output",
        [ST_ASSUME] = "assume",
        [ST_STAGES] = "spec with stages",
        [ST_LOOP] = "iterate of stages",
    };
    heading(out, "Keys", "Every mapping of a spec, and what it may hold.", "mapping,key,kinds,required,value,meaning");
    for (int i = 0; i < schema_key_count; i++) {
        const struct schema_key *k = &schema_keys[i];
        str_addc(out, '|');
        cell(out, table[k->table]);
        code_cell(out, k->key);
        cell(out, kinds_text(k->kinds));
        cell(out, k->required ? "yes" : "");
        cell(out, schema_values[k->value].what);
        cell(out, k->doc);
        str_addc(out, '\n');
    }
}

static void types(struct str *out)
{
    heading(out, "Types", "Scalars of arrays, params and states.", "type,bits,bytes in memory,kind,in .npy files");
    for (int t = 0; t < TY_COUNT; t++) {
        const char kind = ty_kind((enum ty)t);
        str_printf(out, "| `%s` | %d | %d | %s | `%s` |\n", ty_name((enum ty)t), ty_bits((enum ty)t),
                   ty_bytes((enum ty)t),
                   kind == 'b'   ? "truth value"
                   : kind == 's' ? "signed integer"
                   : kind == 'u' ? "unsigned integer"
                                 : "float",
                   ty_npy((enum ty)t));
    }
}

static void functions(struct str *out)
{
    static const struct {
        const char *name;
        int arity;
        char types;
        const char *what;
    } row[] = {
#define FN(id, name, arity, types, what) { name, arity, types, what },
#include "frontend/expr/functions.def"
#undef FN
    };
    static const char *const arguments[] = { "", "x", "x, y", "x, y, z" };
    heading(out, "Functions",
            "All arguments have one type, which is the result's unless the last column says otherwise.",
            "function,of,meaning");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        str_printf(out, "| `%s(%s)` |", row[i].name, arguments[row[i].arity]);
        cell(out, row[i].types == 'N'   ? "numbers"
                  : row[i].types == 'F' ? "floats"
                  : row[i].types == 'I' ? "integers"
                                        : "any");
        cell(out, row[i].what);
        str_addc(out, '\n');
    }
}

/* "s" and "u" together are the integers. */
static void kinds_of_types(struct str *out, const char *types)
{
    static const struct {
        char letter;
        const char *name;
    } row[] = { { 'b', "bool" }, { 's', "signed" }, { 'u', "unsigned" }, { 'f', "float" } };
    int n = 0;
    str_addc(out, ' ');
    for (int i = 0; i < 4; i++)
        if (strchr(types, row[i].letter))
            str_printf(out, "%s%s", n++ ? ", " : "", row[i].name);
    str_add(out, " |");
}

static void operators(struct str *out)
{
    static const struct {
        const char *name, *types;
        bool widen;
        const char *state, *identity, *pad, *let, *combine, *lift, *result;
        bool commutative, finite;
        const char *many, *exact;
    } row[] = {
#define OP(...) { __VA_ARGS__ },
#include "frontend/problem/operators.def"
#undef OP
    };
    heading(out, "Operators",
            "The rows that emitters and the reference read. Fields of the state are separated by semicolons; `T` is "
            "the type of the map, `I` an integer type; "
            "`zero`, `ones`, `lowest` and `highest` are those of `T`. What is proved of them is in [laws.md](laws.md).",
            "operator,types,state,identity,combine,commutative");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct str combine = { 0 };
        str_printf(&combine, "%s%s%s", row[i].let ? "let " : "", row[i].let ? row[i].let : "",
                   row[i].let ? " in " : "");
        str_add(&combine, row[i].combine);
        str_addc(out, '|');
        code_cell(out, row[i].name);
        kinds_of_types(out, row[i].types);
        code_cell(out, row[i].state ? row[i].state : "T");
        row[i].identity ? code_cell(out, row[i].identity) : cell(out, "none");
        code_cell(out, combine.text ? combine.text : "");
        cell(out, row[i].commutative ? "yes" : "no");
        str_addc(out, '\n');
        str_finish(&combine);
    }
}

static void boundaries(struct str *out)
{
    static const struct {
        const char *name, *what;
    } row[] = {
#define BOUNDARY(id, name, what) { name, what },
#include "frontend/problem/boundary.def"
#undef BOUNDARY
    };
    heading(out, "Boundaries", "What a read beyond the edge of an array gives.", "mode,meaning");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        str_addc(out, '|');
        code_cell(out, row[i].name);
        cell(out, row[i].what);
        str_addc(out, '\n');
    }
}

/* ---- lowering ---- */

static void strategies(struct str *out)
{
    static const char *const kind[] = { [KIND_REDUCE] = "reduce", [KIND_SCAN] = "scan", [KIND_STENCIL] = "stencil" };
    heading(out, "Strategies",
            "In order of preference within their kind; [strategies.md](strategies.md) describes them.",
            "strategy,kind,algorithm,tunables");
    for (int i = 0; i < strategy_count(); i++) {
        const struct strategy *s = strategy_row(i);
        int n = 0;
        str_addc(out, '|');
        code_cell(out, s->name);
        cell(out, kind[s->kind]);
        cell(out, s->reference);
        str_addc(out, ' ');
        for (int t = 0; t < TN_COUNT; t++)
            if (s->tunables >> t & 1)
                str_printf(out, "%s`%s`", n++ ? " " : "", tunable_name((enum tunable_id)t));
        str_add(out, " |\n");
    }
}

static void tunables(struct str *out)
{
    static const struct {
        const char *name;
        int least, most;
        const char *what;
    } row[] = {
#define X(id, name, lo, hi, what, ...) { name, lo, hi, what },
        TUNABLES(X)
#undef X
    };
    heading(
        out, "Tunables",
        "Pinned with `strategy: {NAME: VALUE}` or `--set NAME=VALUE`. Variants combine the candidates and the value "
        "that a strategy would have by itself; *fine* ones matter seldom, and a search tries them last.",
        "tunable,from,to,candidates,meaning");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const int *value, n = tunable_values((enum tunable_id)i, &value);
        const bool fine = (tunable_class((enum tunable_id)i) & TUNABLE_FINE) != 0;
        str_printf(out, "| `%s`%s | %d | %d |", row[i].name, fine ? " *fine*" : "", row[i].least, row[i].most);
        for (int k = 0; k < n; k++)
            str_printf(out, " %d", value[k]);
        str_add(out, " |");
        cell(out, row[i].what);
        str_addc(out, '\n');
    }
}

static void messages(struct str *out)
{
    static const struct {
        int number;
        const char *title, *text;
    } row[] = {
#define DIAG(id, number, title, explanation) { number, title, explanation },
#include "base/diag.def"
#undef DIAG
    };
    str_add(out, "\n## Messages\n\n`ptxgen explain PTXG-nnnn` prints the same.\n");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        str_printf(out, "\n### PTXG-%04d: %s\n\n%s\n", row[i].number, row[i].title, row[i].text);
}

char *ptxgen_reference(void)
{
    struct str out = { 0 };
    str_add(&out,
            "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
            "<!-- Printed by `ptxgen reference` from its tables; a test compares docs/reference.md. -->\n"
            "# Reference\n\n"
            "The tables that ptxgen itself is made of. [spec-language.md](spec-language.md) explains the language, "
            "[cli.md](cli.md) the commands, [strategies.md](strategies.md) the strategies.\n");
    keys(&out);
    types(&out);
    functions(&out);
    operators(&out);
    boundaries(&out);
    strategies(&out);
    tunables(&out);
    messages(&out);
    return str_take(&out);
}
