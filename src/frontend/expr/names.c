/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - what a name in an expression means, and whether it may stand there.
 *
 * Looking up goes from the inside out: the neighbour of a gather, the operator's lets and a, b, names of results, lets,
 * params, inputs, sizes.  A name that exists but has no value in the place at hand (r in a map, an input in a result)
 * is still found, so that the message can say why instead of "unknown".
 */
#include "frontend/frontend_impl.h"

int size_find(const struct builder *b, const char *name)
{
    for (int i = 0; i < b->nsizes; i++)
        if (!strcmp(b->size[i].name, name))
            return i;
    return -1;
}

int input_find(const struct builder *b, const char *name)
{
    for (int i = 0; i < b->ninputs; i++)
        if (!strcmp(b->input[i].array.name, name))
            return i;
    return -1;
}

int param_find(const struct builder *b, const char *name)
{
    for (int i = 0; i < b->nparams; i++)
        if (!strcmp(b->param[i].name, name))
            return i;
    return -1;
}

int output_find(const struct builder *b, const char *name)
{
    for (int i = 0; i < b->noutputs; i++)
        if (!strcmp(b->output[i].array.name, name))
            return i;
    return -1;
}

/* How many lets of the problem may be named: inside a let, those before it. */
static int lets_seen(const struct scope *sc)
{
    return sc->lets_seen && !sc->op ? sc->lets_seen - 1 : sc->b->lets.nslots;
}

static int slot_find(const struct scope *sc, const char *name)
{
    const struct builder *b = sc->b;
    for (int i = lets_seen(sc); i-- > 0;)
        if (!strcmp(b->lets.slot[i].name, name))
            return i;
    return -1;
}

static int reduction_find(const struct builder *b, const char *name)
{
    for (int i = 0; i < b->nreductions; i++)
        if (!strcmp(b->reduction[i].name, name))
            return i;
    return -1;
}

/* The symbol of an array's element. */
static struct symbol array_symbol(struct builder *b, enum symbol_kind kind, int which, const struct prog_array *array)
{
    struct symbol y = { .kind = kind, .which = which, .type = T_POISON };
    if (!array->nfields)
        return y;
    y.type = array->field[0].type;
    if (!*array->field[0].name)
        return y;
    const char **names = arena_new(b->a, const char *, array->nfields);
    enum ty *types = arena_new(b->a, enum ty, array->nfields);
    for (int i = 0; i < array->nfields; i++) {
        names[i] = array->field[i].name;
        types[i] = array->field[i].type;
    }
    y.type = T_ANY;
    y.nfields = array->nfields;
    y.field_name = names;
    y.field_type = types;
    return y;
}

/* The symbol of an operator's state. */
static struct symbol state_symbol(enum symbol_kind kind, int which, const struct op *op)
{
    struct symbol y = { .kind = kind, .which = which, .type = T_POISON };
    if (!op || !op->nfields)
        return y;
    y.type = op->field[0];
    if (!*op->field_name[0])
        return y;
    y.type = T_ANY;
    y.nfields = op->nfields;
    y.field_name = op->field_name;
    y.field_type = op->field;
    return y;
}

static struct symbol operator_lookup(const struct scope *sc, const char *name)
{
    const struct let_table *lets = sc->op_lets;
    for (int i = sc->lets_seen ? sc->lets_seen - 1 : lets->nslots; i-- > 0;)
        if (!strcmp(lets->slot[i].name, name))
            return (struct symbol){ .kind = SYM_OP_LET, .which = i, .type = lets->slot[i].type };
    if (!strcmp(name, "a"))
        return state_symbol(SYM_LEFT, 0, sc->op);
    if (!strcmp(name, "b"))
        return state_symbol(SYM_RIGHT, 0, sc->op);
    return (struct symbol){ .kind = SYM_NONE };
}

static struct symbol let_symbol(const struct let_table *lets, int which)
{
    const struct let_slot *slot = &lets->slot[which];
    return (struct symbol){ .kind = SYM_LET,
                            .which = which,
                            .type = slot->type,
                            .nfields = slot->nfields,
                            .field_name = slot->field_name,
                            .field_type = slot->field };
}

/* Names that only the rows of operators.def have: extremes of the type at hand. */
static const char *const extremes[] = { "zero", "ones", "lowest", "highest", "pad_lowest", "pad_highest" };

static struct symbol row_lookup(const struct scope *sc, const char *name)
{
    for (int i = 0; i < (int)(sizeof extremes / sizeof *extremes); i++)
        if (!strcmp(name, extremes[i]))
            return (struct symbol){ .kind = SYM_EXTREME, .which = i, .type = T_LIT_INT };
    if (sc->state >= 0 && !strcmp(name, "r"))
        return state_symbol(sc->allows & SC_TOTAL ? SYM_TOTAL : SYM_STATE, sc->state, sc->b->reduction[sc->state].op);
    return (struct symbol){ .kind = SYM_NONE };
}

static struct symbol state_lookup(const struct builder *b, const char *name)
{
    int i = reduction_find(b, name);
    if (i >= 0)
        return state_symbol(SYM_STATE, i, b->reduction[i].op);
    return (struct symbol){ .kind = SYM_NONE };
}

static bool is_total(const struct builder *b, const char *name)
{
    return b->p->kind == KIND_SCAN && b->nreductions == 1 && !strcmp(name, "total");
}

static struct symbol outer_lookup(const struct scope *sc, const char *name)
{
    struct builder *b = sc->b;
    int i = slot_find(sc, name);
    if (i >= 0)
        return let_symbol(&b->lets, i);
    i = param_find(b, name);
    if (i >= 0)
        return (struct symbol){ .kind = SYM_PARAM,
                                .which = i,
                                .type = b->param[i].type == TY_NONE ? T_POISON : (int)b->param[i].type };
    i = input_find(b, name);
    if (i >= 0)
        return array_symbol(b, SYM_INPUT, i, &b->input[i].array);
    i = size_find(b, name);
    if (i >= 0)
        return (struct symbol){ .kind = SYM_SIZE, .which = i, .type = TY_I64 };
    return (struct symbol){ .kind = SYM_NONE };
}

struct symbol scope_lookup(const struct scope *sc, const char *name)
{
    struct builder *b = sc->b;
    struct symbol y = { .kind = SYM_NONE };
    if (sc->neighbour && !strcmp(name, sc->neighbour))
        return array_symbol(b, SYM_NEIGHBOUR, sc->neighbour_input, &b->input[sc->neighbour_input].array);
    if (sc->op && (sc->allows & SC_OPERATOR))
        y = operator_lookup(sc, name);
    if (sc->allows & SC_ROW)
        return y.kind ? y : row_lookup(sc, name);
    int output = output_find(b, name);
    if (!y.kind && (sc->allows & SC_OUTPUT) && output >= 0)
        return array_symbol(b, SYM_OUTPUT, output, &b->output[output].array);
    if (!y.kind && (sc->allows & (SC_STATE | SC_TOTAL)))
        y = state_lookup(b, name);
    if (!y.kind && (sc->allows & SC_TOTAL) && is_total(b, name))
        y = state_symbol(SYM_TOTAL, 0, b->reduction[0].op);
    if (!y.kind)
        y = outer_lookup(sc, name);
    if (!y.kind && is_total(b, name))
        y = state_symbol(SYM_TOTAL, 0, b->reduction[0].op);
    if (!y.kind)
        y = state_lookup(b, name);
    if (!y.kind && (sc->allows & SC_LAST) && !strcmp(name, "last"))
        y = (struct symbol){ .kind = SYM_LAST, .type = TY_BOOL };
    if (!y.kind && output >= 0)
        y = array_symbol(b, SYM_OUTPUT, output, &b->output[output].array);
    return y;
}

static bool invariant(const struct scope *sc, const struct symbol *y)
{
    const struct builder *b = sc->b;
    if (y->kind == SYM_INPUT)
        return !(input_axes(b, &b->input[y->which]) & reduced_axes(b));
    if (y->kind == SYM_LET && y->nfields)
        return !(b->lets.axes[b->lets.slot[y->which].first] & reduced_axes(b));
    if (y->kind == SYM_LET && y->type >= 0)
        return !(b->lets.axes[b->lets.slot[y->which].instance[y->type] - 1] & reduced_axes(b));
    return true;
}

static unsigned needed(enum symbol_kind kind)
{
    switch (kind) {
    case SYM_INPUT: return SC_INPUT | SC_INVARIANT;
    case SYM_PARAM:
    case SYM_SIZE: return SC_PARAM;
    case SYM_LET: return SC_LET;
    case SYM_STATE: return SC_STATE;
    case SYM_TOTAL: return SC_TOTAL;
    case SYM_OUTPUT: return SC_OUTPUT;
    default: return ~0u;
    }
}

/* Is the symbol usable in this scope?  Reports why not at `at` unless quiet. */
static bool scope_permits(const struct scope *sc, const struct symbol *y, const char *name, struct span at, bool quiet)
{
    struct diags *d = sc->b->d;
    if (y->kind == SYM_INPUT && (sc->b->input[y->which].summed || sc->b->input[y->which].spread)) {
        if (!sum_permits(sc, y->which, at, quiet))
            return false;
        if (sc->allows & SC_OPERATOR && !quiet)
            diag_error(d, D_NOT_HERE, at, "not yet: '%s' in an operator, where its dimensions are apart in the space",
                       name);
        if (sc->allows & SC_OPERATOR)
            return false;
    } else if (y->kind == SYM_INPUT && sc->b->input[y->which].role != ROLE_ELEMENT) {
        if (!quiet)
            diag_error(d, D_NOT_HERE, at, "'%s' gives segments or positions and has no value at an element", name);
        return false;
    }
    if (!(sc->allows & needed(y->kind))) {
        if (!quiet) {
            struct diag *m = diag_error(d, D_NOT_HERE, at, "'%s' has no value in %s", name, sc->place);
            if (y->kind == SYM_STATE && (sc->allows & SC_TOTAL))
                diag_hint(d, m, "the result of a whole scan is its total");
            else if (y->kind == SYM_STATE)
                diag_hint(d, m, "a result is known only when every element has been combined");
        }
        return false;
    }
    if (!(sc->allows & SC_INPUT) && !invariant(sc, y)) {
        if (!quiet)
            diag_error(d, D_NOT_INVARIANT, at,
                       "'%s' varies along a dimension that is combined, so it has no value in %s", name, sc->place);
        return false;
    }
    return true;
}

/* Will this name be a result of the spec's operators? */
static bool is_result(const struct builder *b, const char *name)
{
    const bool scan = b->p->kind == KIND_SCAN;
    const struct ynode *several = ynode_get(b->root, scan ? "scans" : "reductions");
    if (several && several->kind == Y_MAPPING && ynode_get(several, name))
        return true;
    return !several && ynode_get(b->root, "operator") && !strcmp(name, scan ? "s" : "r");
}

/* The result, of those that have values here, with a field of this name; NULL: there is none. */
static const char *result_with(const struct scope *sc, const char *field)
{
    const struct builder *b = sc->b;
    for (int i = 0; i < b->nreductions && sc->allows & (SC_STATE | SC_TOTAL); i++)
        for (int f = 0; b->reduction[i].op && f < b->reduction[i].op->nfields; f++)
            if (!strcmp(b->reduction[i].op->field_name[f], field))
                return sc->allows & SC_STATE ? b->reduction[i].name
                       : b->nreductions == 1 ? "total"
                                             : arena_printf(b->a, "%s.total", b->reduction[i].name);
    return NULL;
}

static void scope_unknown(const struct scope *sc, const char *name, struct span at)
{
    const struct builder *b = sc->b;
    const struct ynode *lets = ynode_get(b->root, "let");
    int n = 0, most = b->lets.nslots + b->nparams + b->ninputs + b->nsizes + b->nreductions + b->noutputs + 4;
    const char **names = arena_new(b->a, const char *, most);
    for (int i = 0; i < lets_seen(sc); i++)
        names[n++] = b->lets.slot[i].name;
    for (int i = 0; i < b->nparams; i++)
        names[n++] = b->param[i].name;
    for (int i = 0; i < b->ninputs; i++)
        names[n++] = b->input[i].array.name;
    for (int i = 0; i < b->nsizes; i++)
        names[n++] = b->size[i].name;
    for (int i = 0; (sc->allows & (SC_STATE | SC_TOTAL)) && i < b->nreductions; i++)
        names[n++] = b->reduction[i].name;
    for (int i = 0; (sc->allows & SC_OUTPUT) && i < b->noutputs; i++)
        names[n++] = b->output[i].array.name;
    struct diag *m = diag_error(b->d, D_UNKNOWN_NAME, at, "nothing is called '%s'", name);
    if (ty_by_name(name, (int)strlen(name)) != TY_NONE)
        diag_hint(b->d, m, "a conversion is written %s(…)", name);
    else if (result_with(sc, name))
        diag_hint(b->d, m, "a field of the result is read by name: %s.%s", result_with(sc, name), name);
    else if (is_result(b, name))
        diag_hint(b->d, m, "'%s' is a result, which lets and maps come before: write it in an output's value or where",
                  name);
    else if (lets && lets->kind == Y_MAPPING && ynode_get(lets, name))
        diag_hint(b->d, m, "the let '%s' comes later: a let sees those before it", name);
    else if (!strcmp(name, "step"))
        diag_hint(
            b->d, m,
            "`step` is the number of the step where the whole spec has `iterate`; a loop inside a stage has none");
    else
        diag_suggest(b->d, m, name, names, n);
}

/* ---- references: NAME, NAME[offsets], NAME.field, NAME[offsets].field, NAME.total, NAME.total.field ---- */

static bool reject(const struct scope *sc, bool quiet, enum diag_code code, struct span at, const char *text)
{
    if (!quiet)
        diag_error(sc->b->d, code, at, "%s", text);
    return false;
}

static bool find_field(const struct scope *sc, const struct symbol *y, const struct ast *e, int *field, bool quiet)
{
    for (int i = 0; i < y->nfields; i++)
        if (!strcmp(y->field_name[i], e->name)) {
            *field = i;
            return true;
        }
    if (quiet || y->type == T_POISON)
        return false;
    struct diags *d = sc->b->d;
    if (!y->nfields) {
        diag_error(d, D_UNKNOWN_FIELD, e->op_at, "a scalar has no field '%s'", e->name);
    } else {
        struct diag *m = diag_error(d, D_UNKNOWN_FIELD, e->op_at, "there is no field '%s'", e->name);
        diag_suggest(d, m, e->name, y->field_name, y->nfields);
        if (!m->hint)
            diag_hint(d, m, "the first field is '%s'", y->field_name[0]);
    }
    return false;
}

static bool take_offsets(const struct scope *sc, const struct ast *e, struct reference *out, bool quiet)
{
    if (out->symbol.kind != SYM_INPUT)
        return reject(sc, quiet, D_BAD_OFFSET, e->at, "only an input can be read at an offset");
    if (!(sc->allows & SC_OFFSETS))
        return reject(sc, quiet, D_BAD_OFFSET, e->at, arena_printf(sc->b->a, "%s cannot read neighbours", sc->place));
    const struct input *in = &sc->b->input[out->symbol.which];
    const int rank = in->written ? in->written->rank : in->array.rank;
    if (e->noffsets != rank)
        return reject(sc, quiet, D_BAD_OFFSET, e->at,
                      arena_printf(sc->b->a, "'%s' has %d dimension%s, so it needs as many offsets", in->array.name,
                                   rank, rank == 1 ? "" : "s"));
    bool any = false;
    for (int i = 0; i < rank; i++)
        any |= e->offset[i] != 0;
    for (int i = 0; any && i < rank; i++) /* where dimensions are one, all offsets along them are zero */
        out->offset[in->within[i]] += e->offset[i];
    out->noffsets = any ? in->array.rank : 0;
    return true;
}

/* The parts of a reference, outermost first peeled off. */
struct peeled {
    const struct ast *name, *offsets, *field, *total;
};

static bool peel(const struct scope *sc, const struct ast *e, struct peeled *out, bool quiet)
{
    if (e->kind == AST_FIELD) {
        out->field = e;
        e = e->arg[0];
    }
    if (e->kind == AST_FIELD) {
        out->total = e;
        e = e->arg[0];
    }
    if (e->kind == AST_OFFSET) {
        out->offsets = e;
        e = e->arg[0];
    }
    out->name = e;
    if (e->kind == AST_FIELD && out->offsets)
        return reject(sc, quiet, D_BAD_OFFSET, out->offsets->at, "offsets come before the field: x[1].re");
    if (e->kind != AST_NAME)
        return reject(sc, quiet, D_UNKNOWN_FIELD, e->at, "only a name can have fields or offsets");
    return true;
}

static void mark_used(const struct scope *sc, const struct symbol *y)
{
    struct builder *b = sc->b;
    if (y->kind == SYM_INPUT)
        b->input[y->which].used = true;
    else if (y->kind == SYM_PARAM)
        b->param_slot[y->which].used = true;
    else if (y->kind == SYM_LET || y->kind == SYM_OP_LET)
        (y->kind == SYM_LET ? &b->lets : sc->op_lets)->slot[y->which].used = true;
}

bool reference_of(const struct scope *sc, const struct ast *e, struct reference *out, bool quiet)
{
    struct peeled part = { 0 };
    *out = (struct reference){ .field = -1 };
    if (!peel(sc, e, &part, quiet))
        return false;
    const char *name = part.name->name;
    out->symbol = scope_lookup(sc, name);
    struct symbol *y = &out->symbol;
    if (!y->kind) {
        if (!quiet)
            scope_unknown(sc, name, part.name->at);
        return false;
    }
    if (!part.total && y->kind == SYM_STATE && (sc->allows & SC_TOTAL) && part.field &&
        !strcmp(part.field->name, "total")) {
        part.total = part.field;
        part.field = NULL;
    }
    if (part.total) {
        if (y->kind != SYM_STATE || !(sc->allows & SC_TOTAL) || strcmp(part.total->name, "total"))
            return reject(sc, quiet, D_UNKNOWN_FIELD, part.total->op_at, "fields are scalars and have no fields");
        y->kind = SYM_TOTAL;
    }
    if (!scope_permits(sc, y, name, part.name->at, quiet))
        return false;
    mark_used(sc, y);
    if (part.offsets && !take_offsets(sc, part.offsets, out, quiet))
        return false;
    return !part.field || find_field(sc, y, part.field, &out->field, quiet);
}
