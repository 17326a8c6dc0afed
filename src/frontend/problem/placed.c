/* SPDX-License-Identifier: Apache-2.0 */
/* placed.c - outputs whose elements say where they are written (`at`), and how elements meet there (`combine`), beginning with what
 * the output holds or with `initial`.
 *
 * The dimensions of such an output are its own: none follows an axis of the iteration space, and a name that no input
 * has is a size that the caller gives.
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

/* ---- places ---- */

static struct diag *bad_place(struct builder *b, struct span at, const char *what)
{
    return diag_error(b->d, D_BAD_PLACE, at, "%s", what);
}

static void build_index(const struct scope *sc, struct output *out, const struct ynode *at)
{
    struct builder *b = sc->b;
    const int n = at->kind == Y_SCALAR ? 1 : at->count, rank = out->array.rank;
    if (n != rank || !rank) {
        struct diag *m = diag_error(b->d, D_BAD_PLACE, at->at, "'%s' has %d dimension%s, so 'at' has as many indices",
                                    out->array.name, rank, rank == 1 ? "" : "s");
        if (rank > 1)
            diag_hint(b->d, m, "one for each dimension: at: [%s]", rank == 2 ? "y, x" : "z, y, x");
    }
    for (int d = 0; d < n && n == rank; d++) {
        struct ast *e = node_expr(b, at->kind == Y_SCALAR ? at : at->item[d]);
        out->index[d] = e ? index_build(sc, e) : NULL;
    }
}

static void find_input(const struct expr *e, void *user) { *(bool *)user |= e->kind == EX_INPUT || e->kind == EX_AT; }

/* What an operator must be where threads in any order combine with memory, one word at a time. */
static const char *combine_misfit(const struct builder *b, const struct op *op, enum ty type)
{
    bool reads = false;
    for (int i = 0; i < op->nlets; i++)
        expr_walk(op->let[i].value, find_input, &reads);
    if (op->nfields == 1 && op->combine[0])
        expr_walk(op->combine[0], find_input, &reads);
    if (op->nfields != 1)
        return "the operator of 'combine' has a single field: an element of the output";
    if (op->field[0] != type)
        return "the state of this operator is not of the output's type";
    if (reads)
        return "the operator of 'combine' reads no inputs";
    if (!op->commutative)
        return "elements meet in any order, so the operator of 'combine' must commute";
    if (!op->exact && b->p->determinism != DET_ANY)
        return "elements meet in any order, which changes the last bits: 'determinism' must be any here";
    return NULL;
}

static void build_combine(struct builder *b, struct output *out, const struct ynode *n)
{
    const enum ty type = out->array.field[0].type;
    const struct op_row *row = n->kind == Y_SCALAR ? op_row_find(b, n) : NULL;
    if (*out->array.field[0].name || (row && row->state)) {
        diag_hint(b->d,
                  bad_place(b, n->at,
                            *out->array.field[0].name ? "not yet: 'combine' for arrays of structures"
                                                      : "the operator of 'combine' has a single field"),
                  "a reduce with `by` combines states of several fields, such as argmin");
        return;
    }
    if (n->kind == Y_SCALAR && !row)
        return;
    const struct op *op = row ? op_builtin(b, row, &type, n->at) : op_user(b, n);
    const char *misfit = op && (op->combine[0] || op->nfields != 1) ? combine_misfit(b, op, type) : NULL;
    if (misfit)
        bad_place(b, n->at, misfit);
    out->combine = misfit ? NULL : op;
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
    if (initial && *out->array.field[0].name)
        bad_place(b, initial->at, "not yet: 'initial' for arrays of structures");
    else if (initial)
        out->initial = type_build(&constant, node_expr(b, initial), out->array.field[0].type);
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

void build_placed(struct builder *b)
{
    static const char *const others[] = { "where", "from", "count" }, *const own[] = { "combine", "initial" };
    const struct ynode *iterate = ynode_get(b->root, "iterate"), *boundary = ynode_get(b->root, "boundary"),
                       *skips = boundary ? interior(boundary) : NULL;
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
        if (iterate && b->p->kind == KIND_STENCIL)
            bad_place(b, iterate->at, "not yet: 'iterate' with an output that has 'at'");
        if (skips)
            bad_place(b, skips->at, "not yet: points that are left out, with an output that has 'at'");
    }
}

/* ---- the same as a reduction --------------------------------------------------------------------------------------- */

/* Does each element combine something there, where it does so with the first output? */
static bool meets_first(const struct problem *p, const struct output *o)
{
    const struct output *first = &p->output[0];
    bool same = o->role == OUT_PLACED && o->combine && o->combine->identity[0] && o->array.rank == first->array.rank;
    for (int d = 0; same && d < o->array.rank; d++)
        same = o->array.dim[d].size == first->array.dim[d].size && o->array.dim[d].add == first->array.dim[d].add &&
               expr_equal(o->index[d], first->index[d]);
    return same;
}

void build_binned(struct builder *b)
{
    struct problem *p = b->p, *binned = arena_new(b->a, struct problem, 1);
    bool all = p->kind == KIND_STENCIL && !p->nreductions && !p->dynamic && p->noutputs <= STATE_FIELDS_MAX;
    for (int o = 0; all && o < p->noutputs; o++)
        all = meets_first(p, &p->output[o]);
    if (!all)
        return;
    struct reduction *r = arena_new(b->a, struct reduction, p->noutputs);
    *binned = *p;
    binned->kind = KIND_REDUCE;
    binned->nreads = 0;
    binned->nreductions = p->noutputs;
    binned->reduction = r;
    for (int o = 0; o < p->noutputs; o++)
        r[o] = (struct reduction){ .name = p->output[o].array.name,
                                   .op = p->output[o].combine,
                                   .map = { p->output[o].value[0] },
                                   .at = p->output[o].at };
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
