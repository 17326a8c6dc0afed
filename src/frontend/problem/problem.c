/* SPDX-License-Identifier: Apache-2.0 */
/* problem.c - from a YAML tree to struct problem: the order of the parts.
 *
 * Every part reports what it finds and leaves the builder in a state that later parts can read, so that all errors
 * of a file are found.  The problem is handed out only when there were none.
 *
 *   inputs, roles -> sizes -> iteration space -> params -> what is reduced -> dimensions that are one -> lets -> types of the outputs
 *   -> reductions or scans -> values of the outputs (a stencil's points before its reductions) -> boundaries, steps,
 * facts
 */
#include "frontend/frontend_impl.h"

#include <stdlib.h>

static const struct ynode *top(const struct builder *b, const char *key) { return schema_get(b->root, ST_TOP, key); }

static int enumerated(struct builder *b, const struct ynode *n, const char *const *names, int count, int otherwise)
{
    if (!n)
        return otherwise;
    for (int i = 0; i < count; i++)
        if (!strcmp(n->text, names[i]))
            return i;
    struct diag *m = diag_error(b->d, D_BAD_VALUE, n->at, "'%s' is none of the values this key has", n->text);
    const char *way = n == top(b, "kind") ? way_out("kind", n->text) : NULL;
    if (way)
        diag_hint(b->d, m, "%s", way);
    else
        diag_suggest(b->d, m, n->text, names, count);
    const char *all = names[0];
    for (int i = 1; i < count; i++)
        all = arena_printf(b->a, "%s%s%s", all, i + 1 < count ? ", " : " or ", names[i]);
    if (!m->hint)
        diag_hint(b->d, m, "the value is %s", all);
    return -1;
}

/* A C identifier from the stem of a file name. */
static const char *identifier(struct arena *a, const char *stem)
{
    if (!stem || !*stem)
        return "spec";
    bool digit = *stem >= '0' && *stem <= '9';
    char *name = arena_printf(a, "%s%.*s", digit ? "_" : "", PROBLEM_NAME_MAX - digit, stem);
    for (char *c = name; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9')))
            *c = '_';
    return name;
}

void build_header(struct builder *b, const char *default_name)
{
    struct problem *p = b->p;
    const struct ynode *version = top(b, "ptxgen"), *name = top(b, "name"), *doc = top(b, "doc");
    if (version && strcmp(version->text, "1"))
        diag_error(b->d, D_VERSION, version->at, "this ptxgen reads version 1 of the format, not '%s'", version->text);
    p->name = name && node_name(b, name, "a spec") ? name->text : identifier(b->a, default_name);
    if (name && strlen(p->name) > PROBLEM_NAME_MAX)
        diag_error(b->d, D_BAD_NAME, name->at,
                   "the name of a spec has at most %d characters; kernels are called after it", PROBLEM_NAME_MAX);
    p->doc = doc ? doc->text : NULL;
    static const char *const levels[] = { "any", "run", "device" };
    static const char *const modes[] = { "inclusive", "exclusive" };
    static const char *const directions[] = { "forward", "reverse" };
    int level = enumerated(b, top(b, "determinism"), levels, 3, DET_ANY);
    p->determinism = level < 0 ? DET_ANY : (enum determinism)level;
    p->contract = node_bool(b, top(b, "contract"), false);
    p->exclusive = enumerated(b, top(b, "mode"), modes, 2, 0) == 1;
    p->reverse = enumerated(b, top(b, "direction"), directions, 2, 0) == 1;
}

/* A param's default is a literal. */
static void param_default(struct builder *b, const struct ynode *n, struct prog_param *param)
{
    const struct scope literals = { .b = b, .place = "the default of a param", .state = -1 };
    struct ast *ast = node_expr(b, n);
    const struct expr *e = ast && param->type != TY_NONE ? type_build(&literals, ast, param->type) : NULL;
    if (e && e->kind != EX_CONST) {
        diag_error(b->d, D_BAD_VALUE, n->at, "the default of a param is a literal");
        e = NULL;
    }
    param->has_default = e != NULL;
    if (e)
        param->value = e->imm;
}

void build_params(struct builder *b)
{
    const struct ynode *node = top(b, "params");
    for (int i = 0; node && i < node->count; i++) {
        const struct ynode *key = node->pair[i].key, *value = node->pair[i].value;
        struct prog_param param = { .name = key->text, .type = TY_NONE };
        node_name(b, key, "a param");
        if (value->kind == Y_MAPPING) {
            schema_check(b->d, ST_PARAM, value, K_ALL);
            const struct ynode *type = schema_get(value, ST_PARAM, "type"),
                               *literal = schema_get(value, ST_PARAM, "value");
            if (type)
                param.type = parse_type_name(b, type);
            if (literal)
                param_default(b, literal, &param);
        } else if (node_is(b, value, Y_SCALAR, "a scalar type, or {type, value}")) {
            param.type = parse_type_name(b, value);
        }
        if (input_find(b, key->text) >= 0)
            diag_error(b->d, D_DUPLICATE_NAME, key->at, "'%s' is an input already", key->text);
        if (size_find(b, key->text) >= 0)
            diag_error(b->d, D_DUPLICATE_NAME, key->at, "'%s' is a dimension already, and has its size as value",
                       key->text);
        int n = b->nparams;
        ARENA_PUSH(b->a, b->param_slot, n, b->cap_param_slots, ((struct param_slot){ .at = key->at }));
        ARENA_PUSH(b->a, b->param, b->nparams, b->cap_params, param);
    }
}

static void build_lets(struct builder *b)
{
    const struct ynode *node = top(b, "let");
    unsigned gather = b->p->kind == KIND_STENCIL ? SC_GATHER : 0;
    const struct scope sc = {
        .b = b, .place = "a let", .state = -1, .allows = SC_INPUT | SC_OFFSETS | SC_LET | SC_INDEX | SC_PARAM | gather
    };
    b->lets.kind = EX_LET;
    if (!node || !lets_fit(b, node))
        return;
    for (int i = 0; i < node->count; i++) {
        const struct ynode *key = node->pair[i].key;
        node_name(b, key, "a let");
        warn_hidden(b, key->text, key->at, "a let");
        let_define(&sc, &b->lets, key->text, node_expr(b, node->pair[i].value), key->at);
    }
}

static void assume_size(struct builder *b, struct dimension *size, const struct ynode *facts)
{
    const struct ynode *n;
    int64_t equals;
    if ((n = schema_get(facts, ST_ASSUME, "min")))
        node_integer(b, n, 0, INT64_MAX, &size->min);
    if ((n = schema_get(facts, ST_ASSUME, "max")))
        node_integer(b, n, 0, INT64_MAX, &size->max);
    if ((n = schema_get(facts, ST_ASSUME, "multiple_of")))
        node_integer(b, n, 1, INT64_MAX, &size->multiple_of);
    bool contradiction = size->max / size->multiple_of * size->multiple_of < size->min;
    if ((n = schema_get(facts, ST_ASSUME, "equals")) && node_integer(b, n, 0, INT64_MAX, &equals)) {
        contradiction |= equals < size->min || equals > size->max || equals % size->multiple_of;
        size->min = size->max = equals;
    }
    if (contradiction)
        diag_error(b->d, D_BAD_ASSUME, facts->at, "no size satisfies all of these");
}

/* An output may have the name of an input: then the fact is about both. */
static void assume_array(struct builder *b, const char *const *name, unsigned char *alignment, const struct ynode *key,
                         const struct ynode *facts)
{
    const struct ynode *n = schema_get(facts, ST_ASSUME, "aligned");
    int64_t bytes = 1;
    if (n && node_integer(b, n, 1, 16, &bytes) && bytes & (bytes - 1))
        diag_error(b->d, D_BAD_ASSUME, n->at, "an array is aligned to 1, 2, 4, 8 or 16 bytes");
    for (int i = 0; i < b->ninputs + b->noutputs; i++)
        if (!strcmp(name[i], key->text))
            alignment[i] = (unsigned char)bytes;
}

/* Are these facts about what the key names, a size or an array? */
static bool facts_fit(struct builder *b, const struct ynode *key, const struct ynode *facts, bool size)
{
    static const char *const fact[] = { "aligned", "min", "max", "multiple_of", "equals" };
    if (!node_is(b, facts, Y_MAPPING, size ? "a mapping of min, max, multiple_of, equals" : "{aligned: BYTES}"))
        return false;
    schema_check(b->d, ST_ASSUME, facts, K_ALL);
    for (int i = 0; i < 5; i++) {
        const struct ynode *n = schema_get(facts, ST_ASSUME, fact[i]);
        if (n && size == (i == 0)) {
            diag_error(b->d, D_BAD_ASSUME, n->at, "`%s` is a fact about %s, and '%s' is %s", fact[i],
                       size ? "an array" : "a dimension", key->text, size ? "a dimension" : "an array");
            return false;
        }
    }
    return true;
}

static void build_assume(struct builder *b)
{
    const struct ynode *node = top(b, "assume");
    const int narrays = b->ninputs + b->noutputs, nnames = narrays + b->nsizes;
    const char **name = arena_new(b->a, const char *, nnames + 1);
    unsigned char *alignment = arena_new(b->a, unsigned char, narrays + 1);
    for (int i = 0; i < nnames; i++)
        name[i] = i < b->ninputs ? b->input[i].array.name
                  : i < narrays  ? b->output[i - b->ninputs].array.name
                                 : b->size[i - narrays].name;
    memset(alignment, 1, (size_t)narrays);
    b->p->alignment = alignment;
    for (int i = 0; node && i < node->count; i++) {
        const struct ynode *key = node->pair[i].key, *facts = node->pair[i].value;
        const int size = size_find(b, key->text);
        bool array = false;
        for (int k = 0; k < narrays && size < 0; k++)
            array |= !strcmp(name[k], key->text);
        if (size < 0 && !array) {
            struct diag *m = diag_error(b->d, D_BAD_ASSUME, key->at, "no dimension or array is called '%s'", key->text);
            diag_suggest(b->d, m, key->text, name, nnames);
        } else if (facts_fit(b, key, facts, size >= 0)) {
            if (array)
                assume_array(b, name, alignment, key, facts);
            else
                assume_size(b, &b->size[size], facts);
        }
    }
}

static void build_strategy(struct builder *b)
{
    const struct ynode *node = top(b, "strategy");
    if (!node)
        return;
    struct tunable *t = arena_new(b->a, struct tunable, node->count + 1);
    b->p->strategy_at = node->at;
    for (int i = 0; i < node->count; i++) {
        const struct ynode *key = node->pair[i].key, *value = node->pair[i].value;
        if (!node_is(b, value, Y_SCALAR, "one value"))
            continue;
        if (!strcmp(key->text, "name"))
            b->p->strategy = value->text;
        else
            t[b->p->ntunables++] = (struct tunable){ key->text, value->text, value->at };
    }
    b->p->tunable = t;
}

/* A scan may be there for `where` alone. */
static void combine_nothing(struct builder *b)
{
    static const char *const unused[] = { "map", "accumulator", "init" };
    for (int i = 0; i < 3; i++)
        if (ynode_get(b->root, unused[i]))
            diag_error(b->d, D_CONFLICT, ynode_get(b->root, unused[i])->at,
                       "'%s' belongs to an operator, and this spec has none", unused[i]);
}

/* `operator` with map and accumulator, or several named ones: which of the two forms the spec has. */
static void build_combining(struct builder *b)
{
    static const char *const single[] = { "map", "operator", "accumulator" };
    const char *several = b->p->kind == KIND_SCAN ? "scans" : "reductions";
    const struct ynode *entries = top(b, several);
    bool stencil = b->p->kind == KIND_STENCIL;
    for (int i = 0; entries && !stencil && i < 3; i++) {
        const struct ynode *n = ynode_get(b->root, single[i]);
        if (n)
            diag_error(b->d, D_CONFLICT, n->at, "with '%s', each entry has its own '%s'", several, single[i]);
    }
    b->incomplete |= b->flat && ynode_get(b->root, "reductions"); /* reported */
    if (entries)
        build_reductions(b, entries);
    else if (!stencil && ynode_get(b->root, "operator"))
        build_reduction_single(b);
    else if (!stencil && !ynode_get(b->root, several) && b->p->kind == KIND_SCAN && keeps_some(b))
        combine_nothing(b);
    else if (!stencil && !ynode_get(b->root, several)) {
        diag_error(b->d, D_MISSING_KEY, (struct span){ b->root->at.begin, b->root->at.begin },
                   "a %s needs the key 'operator', or '%s'", b->p->kind == KIND_SCAN ? "scan" : "reduce", several);
        b->incomplete = true;
    }
}

static void build_parts(struct builder *b)
{
    build_output_arrays(b);
    build_bins(b);
    build_space(b);
    build_segments(b);
    build_params(b);
    build_over(b);
    build_by(b);
    if (!build_merged(b))
        return;
    if (b->p->nby)
        build_output_types(b); /* the other expressions may use the dimensions that they bring */
    build_operators(b);
    build_lets(b);
    build_starts(b);
    build_indices(b);
    build_scan_bin(b);
    if (!b->p->nby)
        build_output_types(b);
    build_boundary(b);
    if (b->p->kind == KIND_STENCIL)
        build_output_values(b, AT_POINT);
    build_combining(b);
    if (b->p->kind != KIND_STENCIL)
        build_output_values(b, AT_POINT);
    check_by(b);
    build_output_values(b, AT_TOTAL);
    check_scan_bins(b);
    build_where(b);
    build_placed(b);
    build_iterate(b);
    build_assume(b);
    build_least(b);
    build_joined(b);
    build_strategy(b);
}

static void check_limits(struct builder *b)
{
    int arguments = b->ninputs + b->noutputs + b->nparams + b->nsizes, fields = 0;
    if (arguments > SPEC_ARGS_MAX)
        diag_error(b->d, D_LIMIT, ynode_get(b->root, "inputs")->at,
                   "inputs, outputs, params and dimensions are %d; at most %d are possible", arguments, SPEC_ARGS_MAX);
    for (int i = 0; i < b->nreductions; i++)
        fields += b->reduction[i].op ? b->reduction[i].op->nfields : 0;
    if (fields > STATE_FIELDS_MAX)
        diag_error(b->d, D_LIMIT, b->reduction[0].at, "the states have %d fields together; at most %d are possible",
                   fields, STATE_FIELDS_MAX);
}

/* ---- what nothing uses ---- */

static void warn_unused(struct builder *b, struct span at, const char *what, const char *name)
{
    diag_warning(b->d, D_UNUSED, at, "nothing uses the %s '%s'", what, name);
}

void warn_unused_lets(struct builder *b, const struct let_table *t)
{
    for (int i = 0; i < t->nslots; i++)
        if (!t->slot[i].used && t->slot[i].type != T_POISON)
            warn_unused(b, t->slot[i].at, "let", t->slot[i].name);
}

/* Would the iteration space have each dimension of the input without the input?  Else the input may be there for its
 * shape.  A dimension of a table counts where `space` names the dimension. */
static bool shape_is_known(const struct builder *b, const struct prog_array *array)
{
    for (int d = 0; d < array->rank; d++) {
        bool known = array->dim[d].size < 0;
        for (int i = 0; i < b->ninputs && !known; i++) {
            const struct input *in = &b->input[i];
            const bool spans = in->used && (in->role != ROLE_TABLE || in->summed || b->p->space_given);
            for (int k = 0; spans && k < in->array.rank; k++)
                known |= in->array.dim[k].size == array->dim[d].size;
        }
        if (!known)
            return false;
    }
    return true;
}

/* A param that nothing uses has no influence, so it gets a default: a run needs no value for it. */
static void check_unused(struct builder *b)
{
    for (int i = 0; i < b->ninputs && !b->quiet; i++)
        if (!b->input[i].used && b->input[i].role == ROLE_ELEMENT && shape_is_known(b, &b->input[i].array))
            warn_unused(b, b->input[i].at, "input", b->input[i].array.name);
    for (int i = 0; i < b->nparams; i++)
        if (!b->param_slot[i].used) {
            b->param[i].has_default = true;
            warn_unused(b, b->param_slot[i].at, "param", b->param[i].name);
        }
    warn_unused_lets(b, &b->lets);
    warn_unused_operators(b);
}

static void publish(struct builder *b)
{
    struct problem *p = b->p;
    p->nsizes = b->nsizes;
    p->size = b->size;
    p->ninputs = b->ninputs;
    p->input = b->input;
    p->nparams = b->nparams;
    p->param = b->param;
    p->nlets = b->lets.nlets;
    p->let = b->lets.let;
    p->nreductions = b->nreductions;
    p->reduction = b->reduction;
    p->ngatherers = b->ngatherers;
    p->gatherer = b->gatherer;
    p->noutputs = b->noutputs;
    p->output = b->output;
    if (p->kind == KIND_STENCIL)
        build_reads(b);
    build_binned(b);
}

const struct problem *builder_problem(struct builder *b, const char *default_name)
{
    static const char *const kinds[] = { "reduce", "scan", "stencil", "map" };
    enum { MAP = 3 }; /* another word for a stencil */
    int errors = b->d->errors;
    struct problem *p = b->p;
    p->offsets = p->flags = p->steps_param = -1;
    p->steps = 1;
    const struct ynode *kind_node = top(b, "kind");
    int kind = kind_node ? enumerated(b, kind_node, kinds, MAP + 1, -1) : -1;
    kind = kept_kind(b, kind_node, kind == MAP ? KIND_STENCIL : kind);
    schema_check(b->d, ST_TOP, b->root, kind < 0 ? K_ALL : 1u << kind);
    p->kind = kind < 0 ? KIND_REDUCE : (enum problem_kind)kind;
    p->at = kind_node ? kind_node->at : b->root->at;
    build_header(b, default_name);
    build_inputs(b);
    if (kind >= 0)
        build_parts(b);
    if (ynode_get(b->root, "inputs"))
        check_limits(b);
    if (b->d->errors > errors)
        return NULL;
    check_unused(b);
    publish(b);
    return p;
}

/* Trees that are made of the user's nodes have names of their own, which no name of the user may be. */
static void refuse_reserved(struct diags *d, const struct ynode *of)
{
    static const char *const tables[] = { "inputs",  "params",     "let",   "operators",
                                          "outputs", "reductions", "scans", "stages" };
    for (size_t t = 0; of->kind == Y_MAPPING && t < sizeof tables / sizeof *tables; t++) {
        const struct ynode *names = ynode_get(of, tables[t]);
        for (int i = 0; names && names->kind == Y_MAPPING && i < names->count; i++) {
            if (name_is_reserved(names->pair[i].key->text))
                diag_error(d, D_BAD_NAME, names->pair[i].key->at, RESERVED);
            if (!strcmp(tables[t], "stages"))
                refuse_reserved(d, names->pair[i].value);
        }
    }
}

const struct ynode *builder_root(struct ptxgen_session *s, const char *file, const char *text, size_t length)
{
    diags_source(&s->diags, file, text, length);
    const struct ynode *root = yaml_parse(&s->diags, text, length);
    if (!root || root->kind != Y_MAPPING)
        return NULL;
    refuse_reserved(&s->diags, root);
    return root;
}

struct builder *builder_new(struct ptxgen_session *s, const struct ynode *root)
{
    struct builder *b = arena_new(&s->arena, struct builder, 1);
    b->s = s;
    b->a = &s->arena;
    b->d = &s->diags;
    b->root = root;
    b->p = arena_new(&s->arena, struct problem, 1);
    b->p->strategy_at = span_none();
    return b;
}

const struct problem *problem_build(struct ptxgen_session *s, const char *file, const char *text, size_t length,
                                    const char *default_name)
{
    const int errors = s->diags.errors;
    const struct ynode *root = builder_root(s, file, text, length);
    const struct problem *p = root ? builder_problem(builder_new(s, root), default_name) : NULL;
    return s->diags.errors > errors ? NULL : p;
}
