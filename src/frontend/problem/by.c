/* SPDX-License-Identifier: Apache-2.0 */
/* by.c - reductions by computed indices: the indices, the shapes that outputs then have, and what is asked of the
 * operators. */
#include "frontend/frontend_impl.h"

/* An index, of any integer type, as i64: what a u64 has beyond becomes negative, and is out of range either way. */
const struct expr *bin_index(struct builder *b, const struct ynode *node)
{
    const struct scope sc = {
        .b = b, .place = "a by", .state = -1, .allows = SC_INPUT | SC_OFFSETS | SC_LET | SC_INDEX | SC_PARAM
    };
    struct ast *ast = node_is(b, node, Y_SCALAR, "an index") ? node_expr(b, node) : NULL;
    const struct expr *e = ast ? type_build(&sc, ast, T_ANY) : NULL;
    if (e && (ty_is_float(e->type) || e->type == TY_BOOL)) {
        struct diag *m =
            diag_error(b->d, D_BAD_BY, node->at, "an index is an integer, and this is %s", ty_name(e->type));
        diag_hint(b->d, m, ty_is_float(e->type) ? "write i32(floor(…))" : "write i32(…)");
        return NULL;
    }
    return e && e->type != TY_I64 ? expr_cast(b->a, e, TY_I64) : e;
}

void build_by(struct builder *b)
{
    const struct ynode *node = schema_get(b->root, ST_TOP, "by"), *segments = ynode_get(b->root, "segments");
    struct problem *p = b->p;
    if (!node || p->kind != KIND_REDUCE)
        return;
    const bool list = node->kind == Y_SEQUENCE;
    b->incomplete |= !list && *node->text == '['; /* a list in quotes, which is reported */
    p->nby = list ? node->count : 1;
    if (!p->nby)
        diag_error(b->d, D_BAD_BY, node->at, "at least one index is needed");
    if (segments)
        diag_error(b->d, D_CONFLICT, node->at,
                   "'by' gives each element its bin, and 'segments' gives each its segment");
    if (p->nby > PROG_RANK_MAX)
        diag_error(b->d, D_LIMIT, node->at, "an array has at most %d dimensions", PROG_RANK_MAX);
    p->nby = p->nby > PROG_RANK_MAX ? PROG_RANK_MAX : p->nby;
}

void build_indices(struct builder *b)
{
    const struct ynode *node = schema_get(b->root, ST_TOP, "by");
    for (int d = 0; d < b->p->nby; d++)
        b->p->by[d] = bin_index(b, node->kind == Y_SEQUENCE ? node->item[d] : node);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* The shape of every output, or of this one. */
static const char *shape_text(struct builder *b, const struct prog_array *array)
{
    const struct problem *p = b->p;
    struct str text = { 0 };
    for (int d = 0; d < (array ? array->rank : p->nby); d++) {
        str_add(&text, d ? ", " : "");
        dim_print(b, array ? array->dim[d] : p->bin[d], &text);
    }
    for (int i = 0; !array && i < p->rank; i++)
        if (!p->space[i].reduced) {
            str_add(&text, ", ");
            dim_print(b, p->space[i].extent, &text);
        }
    const char *copy = arena_strdup(b->a, text.text ? text.text : "");
    str_finish(&text);
    return copy;
}

static bool same(struct prog_dim x, struct prog_dim y) { return x.size == y.size && x.add == y.add; }

/* The first output says what the new dimensions are. */
static void new_dimensions(struct builder *b, const struct output *out)
{
    for (int d = 0; d < b->p->nby; d++) {
        const struct prog_dim dim = b->p->bin[d] = out->array.dim[d];
        const char *name = dim.size < 0 ? "" : b->size[dim.size].name;
        if (input_find(b, name) >= 0 || param_find(b, name) >= 0)
            diag_error(b->d, D_DUPLICATE_NAME, out->at, "the dimension '%s' has the name of %s", name,
                       input_find(b, name) >= 0 ? "an input" : "a param");
    }
    b->binned = true;
}

bool by_shape(struct builder *b, struct output *out)
{
    const struct problem *p = b->p;
    const struct prog_array *array = &out->array;
    int rank = p->nby;
    if (!b->binned && array->rank >= p->nby)
        new_dimensions(b, out);
    bool fits = array->rank >= p->nby;
    for (int d = 0; d < p->nby && fits; d++)
        fits = same(p->bin[d], array->dim[d]);
    for (int i = 0; i < p->rank; i++)
        if (!p->space[i].reduced) {
            fits = fits && rank < array->rank && same(array->dim[rank], p->space[i].extent);
            rank++;
        }
    fits = fits && rank == array->rank;
    out->role = OUT_SEGMENT;
    for (int d = 0; d < PROG_RANK_MAX; d++)
        out->axis[d] = -1;
    if (fits || b->incomplete)
        return fits;
    struct diag *m =
        b->binned ? diag_error(b->d, D_BAD_BY, out->at, "with this 'by', '%s' has the shape [%s] and not [%s]",
                               array->name, shape_text(b, NULL), shape_text(b, array))
                  : diag_error(b->d, D_BAD_BY, out->at, "'%s' has fewer dimensions than 'by' has indices", array->name);
    diag_hint(b->d, m, "an output has a dimension for each index of 'by', and then those that 'over' leaves");
    return false;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static void not_commutative(struct builder *b, const struct reduction *r)
{
    struct diag *m = diag_error(b->d, D_BAD_BY, r->at,
                                "the elements of a bin are combined in any order, and this operator does not commute");
    const char *way = r->op->builtin ? way_out("by", r->op->name) : "write commutative: true if it does";
    if (way)
        diag_hint(b->d, m, "%s", way);
}

struct array_read {
    const struct builder *b;
    bool any;
};

static void find_array(const struct expr *e, void *user)
{
    struct array_read *r = user;
    r->any |= (e->kind == EX_INPUT || e->kind == EX_AT) && r->b->input[e->which].array.rank > 0;
}

/* Does it read what differs from one kept element to the next?  States of bins are combined without knowing theirs. */
static bool reads_arrays(const struct builder *b, const struct op *op)
{
    struct array_read r = { b, false };
    for (int i = 0; i < op->nlets; i++)
        expr_walk(op->let[i].value, find_array, &r);
    for (int f = 0; f < op->nfields; f++)
        expr_walk(op->combine[f], find_array, &r);
    return r.any;
}

void check_by(struct builder *b)
{
    const struct ynode *level = ynode_get(b->root, "determinism");
    for (int i = 0; b->p->nby && i < b->nreductions; i++) {
        const struct reduction *r = &b->reduction[i];
        if (!r->op || !r->op->combine[0])
            continue;
        if (!r->op->commutative)
            not_commutative(b, r);
        else if (reads_arrays(b, r->op))
            diag_error(b->d, D_BAD_BY, r->at, "not yet: with 'by', an operator that reads an array");
        else if (!r->op->identity[0] && r->init[0])
            diag_error(b->d, D_BAD_BY, r->at, "not yet: with 'by', an operator without an identity, even with an init");
        else if (b->p->determinism != DET_ANY && !r->op->exact)
            diag_error(b->d, D_BAD_BY, level->at,
                       "not yet: the same bits on every run with 'by'; '%s' rounds, and elements of a bin are combined "
                       "in any order",
                       r->name);
    }
}
