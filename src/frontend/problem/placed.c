/* SPDX-License-Identifier: Apache-2.0 */
/* placed.c - outputs whose elements say where they are written (`at`), and how elements meet there (`combine`), beginning with what
 * the output holds or with `initial`.
 *
 * The dimensions of such an output are its own: none follows an axis of the iteration space, and a name that no input
 * has is a size that the caller gives.  But where each place is what the shape of the output says already, the output is
 * one without `at`: its dimensions follow axes, in another order perhaps, so tiles of it are turned in shared memory.
 */
#include "frontend/frontend_impl.h"

bool output_has_place(const struct ynode *node) { return node->kind == Y_MAPPING && ynode_get(node, "at"); }

void build_output_arrays(struct builder *b)
{
    const struct ynode *node = schema_get(b->root, ST_TOP, "outputs");
    for (int i = 0; node && i < node->count; i++) {
        const struct ynode *key = node->pair[i].key, *value = node->pair[i].value;
        struct output out = { .at = key->at };
        int n = b->noutputs;
        node_name(b, key, "an output");
        const bool good = parse_array(b, value, key->text, true, &out.array);
        if (!good)
            out.array.nfields = 0;
        ARENA_PUSH(b->a, b->output_node, n, b->cap_output_nodes, good ? value : NULL);
        ARENA_PUSH(b->a, b->output, b->noutputs, b->cap_outputs, out);
    }
}

/* ---- places that the shape says already ---- */

/* The dimension of the space whose index this is, as written: index(NAME); -1: it is computed. */
static int plain_index(const struct builder *b, const struct ynode *n)
{
    struct lexer l = { .arena = b->a, .source = source_of(n) };
    struct token t[5];
    for (int i = 0; i < 5; i++)
        t[i] = n->kind == Y_SCALAR ? lex_next(&l) : (struct token){ .kind = TOK_BAD };
    if (t[0].kind != TOK_NAME || strcmp(t[0].text, "index") != 0 || t[1].kind != TOK_OP || *t[1].text != '(' ||
        t[2].kind != TOK_NAME || t[3].kind != TOK_OP || *t[3].text != ')' || t[4].kind != TOK_END)
        return -1;
    for (int i = 0; i < b->nown; i++)
        if (b->own[i].size >= 0 && !strcmp(b->size[b->own[i].size].name, t[2].text))
            return i;
    return -1;
}

/* Is each index that of the output's dimension, and has the output as many as the space?  Then it has each of them once,
 * because no dimension stands twice in a shape.  Not with `initial`, which elements keep that lie in no segment, nor beside
 * `by`, where a shape is that of bins. */
static bool is_shape(const struct builder *b, const struct output *out, const struct ynode *node)
{
    static const char *const more[] = { "combine", "initial", "where", "from", "count" };
    const struct ynode *at = schema_get(node, ST_OUTPUT, "at");
    const struct prog_array *a = &out->array;
    bool same = at && a->rank == b->nown && !b->p->nby;
    for (size_t i = 0; same && i < sizeof more / sizeof *more; i++)
        same = !ynode_get(node, more[i]);
    same = same && (at->kind == Y_SCALAR ? 1 : at->count) == a->rank;
    for (int d = 0; same && d < a->rank; d++) {
        const int own = plain_index(b, at->kind == Y_SCALAR ? at : at->item[d]);
        same = own >= 0 && a->dim[d].size == b->own[own].size && a->dim[d].add == b->own[own].add;
    }
    return same;
}

/* From the nodes of outputs, so that nothing that follows sees them. */
void drop_plain_places(struct builder *b)
{
    for (int o = 0; o < b->noutputs; o++) {
        const struct ynode *node = b->output_node[o];
        if (!node || !output_has_place(node) || !is_shape(b, &b->output[o], node))
            continue;
        struct ynode *shape = arena_new(b->a, struct ynode, 1);
        *shape = *node;
        shape->pair = arena_new(b->a, struct ypair, node->count);
        shape->count = 0;
        for (int i = 0; i < node->count; i++)
            if (strcmp(node->pair[i].key->text, "at") != 0)
                shape->pair[shape->count++] = node->pair[i];
        b->output_node[o] = shape;
    }
}

/* ---- places ---- */

static struct diag *bad_place(struct builder *b, struct span at, const char *what)
{
    return diag_error(b->d, D_BAD_PLACE, at, "%s", what);
}

/* Indices of an element: its own along dimensions of the space. */
static const char *some_indices(const struct builder *b, const struct prog_array *array)
{
    const char *text = "";
    for (int d = 0; d < array->rank; d++) {
        const char *index = "i";
        for (int i = 0; i < b->nown; i++)
            if (b->own[i].size >= 0 && b->own[i].size == array->dim[d].size)
                index = arena_printf(b->a, "index(%s)", b->size[b->own[i].size].name);
        text = arena_printf(b->a, "%s%s%s", text, d ? ", " : "", index);
    }
    return text;
}

static void build_index(const struct scope *sc, struct output *out, const struct ynode *at)
{
    struct builder *b = sc->b;
    const int n = at->kind == Y_SCALAR ? 1 : at->count, rank = out->array.rank;
    if (at->kind == Y_SCALAR && *at->text == '[') {
        node_expr(b, at); /* which says that it is a list */
        return;
    }
    if (n != rank || !rank) {
        struct diag *m = diag_error(b->d, D_BAD_PLACE, at->at, "'%s' has %d dimension%s, so 'at' has as many indices",
                                    out->array.name, rank, rank == 1 ? "" : "s");
        if (rank > 1)
            diag_hint(b->d, m, "one for each dimension, as at: [%s]", some_indices(b, &out->array));
    }
    for (int d = 0; d < n && n == rank; d++) {
        struct ast *e = node_expr(b, at->kind == Y_SCALAR ? at : at->item[d]);
        out->index[d] = e ? index_build(sc, e) : NULL;
    }
}

/* Has the state exactly the fields of an element, in their order?  A scalar is one without a name. */
static bool same_fields(const struct prog_array *a, int nfields, const char *const *name)
{
    bool same = a->nfields == nfields;
    for (int f = 0; same && f < nfields; f++)
        same = !strcmp(a->field[f].name, name[f]);
    return same;
}

/* Atomic operations update words: an element with the bytes between its fields, or each of its fields by itself. */
static bool is_word(const struct prog_array *a) { return a->stride <= 8 && !(a->stride & (a->stride - 1)); }

bool output_meets_as_word(const struct output *o) { return !op_fieldwise(o->combine) && is_word(&o->array); }

/* What an operator must be where threads in any order combine with memory. */
static const char *combine_misfit(const struct builder *b, const struct op *op, const struct prog_array *a)
{
    bool types = true;
    for (int f = 0; f < op->nfields; f++)
        types &= op->field[f] == a->field[f].type;
    if (!types)
        return "the state of this operator is not of the output's type";
    if (op_reads_inputs(op))
        return "the operator of 'combine' reads no inputs";
    if (!op->commutative)
        return "elements meet in any order, so the operator of 'combine' must commute";
    if (!op->exact && b->p->determinism != DET_ANY)
        return "elements meet in any order, which changes the last bits: 'determinism' must be any here";
    return NULL;
}

/* Says which fields the operator has; false. */
static const struct op *other_fields(struct builder *b, const struct prog_array *a, int n, const char *const *name,
                                     struct span at)
{
    struct str fields = { 0 };
    for (int f = 0; f < n && *name[0]; f++)
        str_printf(&fields, "%s%s", f ? ", " : "", name[f]);
    const char *list = arena_strdup(b->a, fields.text ? fields.text : "");
    str_finish(&fields);
    if (!*list)
        diag_hint(b->d,
                  bad_place(b, at, "the operator of 'combine' has a single field, and the elements are structures"),
                  "write an operator with the element's fields: {state: {…}, combine: {…}}");
    else
        diag_hint(b->d,
                  diag_error(b->d, D_BAD_PLACE, at, "the fields of this operator are %s, and those of '%s' are %s",
                             list, a->name, *a->field[0].name ? "others" : "none"),
                  "the elements are structures with these fields in this order: type: {%s: …}, shape: […]", name[0]);
    return NULL;
}

/* A built-in operator whose state is an element. */
static const struct op *combine_builtin(struct builder *b, const struct op_row *row, const struct prog_array *a,
                                        struct span at)
{
    const char *name[STATE_FIELDS_MAX];
    char letter[STATE_FIELDS_MAX];
    enum ty type[STATE_FIELDS_MAX];
    const int n = op_row_fields(row, b->a, name, letter);
    if (!same_fields(a, n, name))
        return other_fields(b, a, n, name, at);
    for (int f = 0; f < n; f++) {
        type[f] = a->field[f].type;
        if (letter[f] == 'I' ? !ty_is_int(type[f]) : type[f] != type[0])
            return diag_error(b->d, D_OPERATOR_TYPE, at,
                              letter[f] == 'I' ? "field '%s' of %s is an integer" : "field '%s' of %s has another type",
                              name[f], row->name),
                   NULL;
    }
    return op_builtin(b, row, type, at);
}

static void build_combine(struct builder *b, struct output *out, const struct ynode *n)
{
    const struct prog_array *a = &out->array;
    const bool own = op_is_own(b, n);
    const struct op_row *row = own ? NULL : op_row_find(b, n->text, n->at);
    if (!own && !row)
        return;
    const struct op *op = row ? combine_builtin(b, row, a, n->at) : op_user(b, n);
    if (op && !row && op->nfields && !same_fields(a, op->nfields, op->field_name))
        op = other_fields(b, a, op->nfields, op->field_name, n->at);
    if (!op_is_whole(op))
        return;
    const char *misfit = combine_misfit(b, op, a);
    if (misfit)
        bad_place(b, n->at, misfit);
    else if (!is_word(a) && !op_separate(op))
        diag_hint(
            b->d,
            diag_error(b->d, D_BAD_PLACE, n->at,
                       "not yet: elements of %d bytes whose fields depend on each other; an atomic operation updates "
                       "1, 2, 4 or 8 bytes",
                       a->stride),
            "fields that are combined without the others, as a.f + b.f, may be any number; a reduce with `by` "
            "takes states of any size");
    else
        out->combine = op;
}

void build_places(const struct scope *sc, struct output *out, const struct ynode *node)
{
    struct builder *b = sc->b;
    const struct ynode *at = schema_get(node, ST_OUTPUT, "at"), *combine = schema_get(node, ST_OUTPUT, "combine");
    const struct ynode *initial = schema_get(node, ST_OUTPUT, "initial");
    const struct scope constant = { .b = b, .allows = SC_PARAM, .place = "an initial", .state = -1 };
    struct scope places = *sc;
    places.place = "an at";
    if (at)
        build_index(&places, out, at);
    if (combine)
        build_combine(b, out, combine);
    const bool structure = *out->array.field[0].name != '\0';
    if (initial && structure != (initial->kind == Y_MAPPING))
        diag_error(b->d, D_FIELDS, initial->at,
                   structure ? "'%s' is an array of structures, so its initial value is a mapping of their fields"
                             : "'%s' is no array of structures, so its initial value is one expression",
                   out->array.name);
    else if (initial && structure)
        structure_values(&constant, out, initial, "initial value", out->initial);
    else if (initial)
        out->initial[0] = type_build(&constant, node_expr(b, initial), out->array.field[0].type);
    out->array.continued = combine && !initial;
}

/* ---- what they cannot be together with ---- */

static const struct ynode *interior(const struct ynode *n)
{
    const struct ynode *found = NULL;
    if (n->kind == Y_SCALAR)
        return strcmp(n->text, "interior") ? NULL : n;
    for (int i = 0; n->kind == Y_MAPPING && i < n->count && !found; i++)
        found = interior(n->pair[i].value);
    return found;
}

const struct ynode *interior_of(const struct builder *b)
{
    const struct ynode *boundary = ynode_get(b->root, "boundary");
    return boundary ? interior(boundary) : NULL;
}

void build_placed(struct builder *b)
{
    static const char *const others[] = { "where", "from", "count" }, *const own[] = { "combine", "initial" };
    const struct ynode *iterate = ynode_get(b->root, "iterate"), *skips = interior_of(b);
    for (int o = 0; o < b->noutputs; o++) {
        const struct ynode *node = b->output_node[o];
        if (!node || !output_has_place(node)) {
            for (int i = 0; i < 2 && node && node->kind == Y_MAPPING; i++)
                if (ynode_get(node, own[i]))
                    diag_error(b->d, D_BAD_PLACE, ynode_get(node, own[i])->at, "'%s' belongs to an output with 'at'",
                               own[i]);
            continue;
        }
        for (int i = 0; i < 3; i++)
            if (ynode_get(node, others[i]))
                diag_error(b->d, D_BAD_PLACE, ynode_get(node, "at")->at, "an output has 'at' or '%s', not both",
                           others[i]);
        if (b->p->nby)
            bad_place(b, ynode_get(node, "at")->at, "not yet: an output with 'at' beside 'by'");
        if (iterate && b->p->kind == KIND_STENCIL)
            bad_place(b, iterate->at, "not yet: 'iterate' with an output that has 'at'");
        if (skips)
            bad_place(b, skips->at, "not yet: points that are left out, with an output that has 'at'");
    }
}

/* ---- the same as a reduction --------------------------------------------------------------------------------------- */

/* Does each element combine something there, where it does so with the first output, by states for tables of bins? */
static bool meets_first(const struct problem *p, const struct output *o)
{
    const struct output *first = &p->output[0];
    bool same =
        o->role == OUT_PLACED && o->combine && o->array.rank == first->array.rank &&
        (op_fieldwise(o->combine) || (o->combine->identity[0] && (o->array.stride <= 8 || op_separate(o->combine))));
    for (int d = 0; same && d < o->array.rank; d++)
        same = o->array.dim[d].size == first->array.dim[d].size && o->array.dim[d].add == first->array.dim[d].add &&
               expr_equal(o->index[d], first->index[d]);
    return same;
}

/* What combines a field that is combined without the others; NULL: with the lets written out, it is too long. */
static const struct op *field_op(struct builder *b, const struct op *op, int field)
{
    struct op *one = arena_new(b->a, struct op, 1);
    struct expr *left = expr_new(b->a, EX_LEFT, op->field[field], span_none()),
                *right = expr_new(b->a, EX_RIGHT, op->field[field], span_none());
    const struct expr *x[STATE_FIELDS_MAX] = { NULL }, *y[STATE_FIELDS_MAX] = { NULL };
    int room = WRITTEN_OUT;
    x[field] = left;
    y[field] = right;
    *one = (struct op){ .name = op->name, .nfields = 1, .commutative = true, .exact = op->exact };
    one->field_name[0] = "";
    one->field[0] = op->field[field];
    one->identity[0] = op->identity[field];
    one->combine[0] = with_states(b, op, op->combine[field], x, y, &room);
    return room < 0 ? NULL : one;
}

/* Reductions to the states of an output: one, or one for each field that is combined without the others.  How many. */
static int reductions_of(struct builder *b, const struct output *o, struct reduction *r)
{
    static const char *const name[] = { [NATIVE_ADD] = "add", [NATIVE_MIN] = "min", [NATIVE_MAX] = "max",
                                        [NATIVE_AND] = "and", [NATIVE_OR] = "or",   [NATIVE_XOR] = "xor" };
    const bool each = op_fieldwise(o->combine) || o->array.stride > 8;
    for (int f = 0; each && f < o->array.nfields; f++) {
        const enum native native = op_field_native(o->combine, f);
        r[f] = (struct reduction){ .name = o->array.name,
                                   .op = native ? op_builtin(b, op_row_by_name(name[native]), &o->array.field[f].type,
                                                             o->at)
                                                : field_op(b, o->combine, f),
                                   .map = { o->value[f] },
                                   .at = o->at };
    }
    if (each)
        return o->array.nfields;
    *r = (struct reduction){ .name = o->array.name, .op = o->combine, .at = o->at };
    memcpy(r->map, o->value, sizeof r->map);
    return 1;
}

void build_binned(struct builder *b)
{
    struct problem *p = b->p, *binned = arena_new(b->a, struct problem, 1);
    struct reduction *r = arena_new(b->a, struct reduction, STATE_FIELDS_MAX);
    bool all = p->kind == KIND_STENCIL && !p->nreductions && !p->dynamic;
    int fields = 0;
    for (int o = 0; all && o < p->noutputs; o++) {
        fields += p->output[o].array.nfields;
        all = meets_first(p, &p->output[o]) && fields <= STATE_FIELDS_MAX;
    }
    if (!all)
        return;
    *binned = *p;
    binned->kind = KIND_REDUCE;
    binned->nreads = 0;
    binned->reduction = r;
    for (int o = 0; o < p->noutputs; o++)
        binned->nreductions += reductions_of(b, &p->output[o], &r[binned->nreductions]);
    for (int i = 0; i < binned->nreductions; i++)
        if (!r[i].op)
            return;
    for (int d = 0; d < p->rank; d++)
        binned->space[d].reduced = true;
    binned->nby = p->output[0].array.rank;
    memcpy(binned->by, p->output[0].index, sizeof binned->by);
    memcpy(binned->bin, p->output[0].array.dim, sizeof binned->bin);
    p->binned = binned;
}

void problem_unpin(struct problem *p, struct problem *room)
{
    p->strategy = NULL;
    p->ntunables = 0;
    if (p->binned) {
        *room = *p->binned;
        p->binned = room;
        room->strategy = NULL;
        room->ntunables = 0;
    }
}
