/* SPDX-License-Identifier: Apache-2.0 */
/* scan_bins.c - scans by a computed index: how many bins there are, what totals look like, and operators that know
 * whether anything has come to a bin yet.
 *
 * Kernels begin with a neutral state in every bin.  An operator that has none that is sure to be one, or whose neutral
 * state is not what no elements come to (the infinity of `min`), gets a field `some`, true once there is an element; the
 * combination of a state without elements and another one is the other one.
 */
#include "frontend/frontend_impl.h"

static const struct ynode *by_node(const struct builder *b)
{
    return b->p->kind == KIND_SCAN ? schema_get(b->root, ST_TOP, "by") : NULL;
}

bool scans_bins(const struct builder *b) { return by_node(b) != NULL; }

static bool bins_known(const struct builder *b) { return b->p->keys.size >= 0 || b->p->keys.add > 0; }

void build_bins(struct builder *b)
{
    const struct ynode *bins = b->p->kind == KIND_SCAN ? schema_get(b->root, ST_TOP, "bins") : NULL;
    b->p->keys = (struct prog_dim){ .size = -1 };
    if (bins && !by_node(b))
        diag_error(b->d, D_BAD_BY, bins->at, "'bins' says how many values the index of 'by' has, and there is no 'by'");
    else if (bins && !parse_dimension(b, bins, &b->p->keys))
        b->incomplete = true;
}

/* A bin of a scan is one number. */
static const struct ynode *single_index(struct builder *b, const struct ynode *by)
{
    if (by->kind != Y_SEQUENCE || by->count == 1)
        return by->kind == Y_SEQUENCE ? by->item[0] : by;
    if (by->count == 0)
        diag_error(b->d, D_BAD_BY, by->at, "an index is needed");
    else
        diag_hint(b->d, diag_error(b->d, D_BAD_BY, by->item[1]->at, "not yet: a scan by more than one index"),
                  "make them one: write i * m + j, where j has m values");
    return NULL;
}

void build_scan_bin(struct builder *b)
{
    const struct ynode *by = by_node(b), *segments = ynode_get(b->root, "segments"), *index;
    if (!by)
        return;
    if (segments)
        diag_hint(b->d,
                  diag_error(b->d, D_CONFLICT, segments->at, "not yet: a scan with 'by' along irregular segments"),
                  "without 'segments', each row, or the whole array, is scanned by itself");
    for (int o = 0; o < b->noutputs; o++) {
        const struct ynode *node = b->output_node[o],
                           *where = node && node->kind == Y_MAPPING ? ynode_get(node, "where") : NULL;
        if (where)
            diag_hint(b->d, diag_error(b->d, D_BAD_BY, where->at, "not yet: 'where' in a scan with 'by'"),
                      "write a value for each element, and select from these in a stage of its own");
    }
    if ((index = single_index(b, by)))
        b->p->key = bin_index(b, index);
}

/* ---- totals ------------------------------------------------------------------------------------------------------ */

static bool same(struct prog_dim x, struct prog_dim y) { return x.size == y.size && x.add == y.add; }

/* Has the array the kept dimensions in their order, and dimension `bins` besides?  Then axes are set. */
static bool has_bins_at(const struct builder *b, const struct prog_array *array, int bins, int *axis)
{
    int d = 0;
    for (int i = 0; i < b->p->rank; i++) {
        if (b->p->space[i].reduced)
            continue;
        d += d == bins;
        if (d >= array->rank || !same(array->dim[d], b->p->space[i].extent))
            return false;
        axis[d++] = i;
    }
    axis[bins] = -1;
    return d + (d == bins) == array->rank && (!bins_known(b) || same(array->dim[bins], b->p->keys));
}

bool bin_totals_shape(struct builder *b, struct output *out)
{
    int bins = out->array.rank - 1;
    while (bins >= 0 && !has_bins_at(b, &out->array, bins, out->axis))
        bins--;
    out->role = OUT_SEGMENT;
    if (bins >= 0)
        b->p->keys = out->array.dim[bins];
    else if (!b->incomplete)
        diag_hint(
            b->d,
            diag_error(b->d, D_BAD_BY, out->at, "with 'by', the shape of '%s' fits no output of a scan",
                       out->array.name),
            "a value per element has all dimensions of the inputs; totals have those that are not scanned, and one "
            "for the bins%s",
            bins_known(b) ? ", which is the same everywhere" : "");
    return bins >= 0;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static bool shows_empty_bins(const struct builder *b)
{
    bool shows = b->p->exclusive;
    for (int o = 0; o < b->noutputs; o++)
        shows |= output_moment(&b->output[o]) == AT_TOTAL;
    return shows;
}

/* The combination of the states of elements, of which either may have none. */
static void know_some(struct builder *b, struct reduction *r)
{
    const int n = r->op->nfields;
    const struct span at = r->at;
    struct op *op = arena_new(b->a, struct op, 1);
    if (n == STATE_FIELDS_MAX) {
        diag_error(b->d, D_LIMIT, at,
                   "with 'by', this operator has at most %d fields: one more says whether the bin has an element",
                   STATE_FIELDS_MAX - 1);
        return;
    }
    *op = *r->op;
    const struct expr *left = expr_leaf(b->a, EX_LEFT, TY_BOOL, 0, n, at),
                      *right = expr_leaf(b->a, EX_RIGHT, TY_BOOL, 0, n, at);
    struct expr *yes = expr_new(b->a, EX_CONST, TY_BOOL, at);
    yes->imm.i = 1;
    for (int f = 0; f < n; f++) {
        const enum ty type = op->field[f];
        const struct expr *x = expr_leaf(b->a, EX_LEFT, type, 0, f, at), *y = expr_leaf(b->a, EX_RIGHT, type, 0, f, at);
        op->combine[f] = expr_choose(b->a, right, expr_choose(b->a, left, op->combine[f], y), x);
        op->identity[f] = op->identity[f] ? op->identity[f] : expr_new(b->a, EX_CONST, type, at);
        op->pad[f] = NULL;
    }
    op->field_name[n] = "some";
    op->field[n] = TY_BOOL;
    op->combine[n] = expr_binary(b->a, BIN_LOR, TY_BOOL, left, right);
    op->identity[n] = expr_new(b->a, EX_CONST, TY_BOOL, at);
    r->init[n] = r->init[0] ? yes : NULL;
    r->map[n] = yes;
    op->nfields++;
    op->builtin = false;
    r->op = op;
}

/* Is the state of no elements neutral, too, where it is shown?  Of a built-in operator that is known. */
static bool begins_neutral(const struct op *op, bool shown)
{
    bool neutral = op->builtin && op->identity[0] && !op->finite;
    for (int f = 0; f < op->nfields && shown; f++)
        neutral = neutral && (!op->pad[f] || expr_equal(op->pad[f], op->identity[f]));
    return neutral;
}

void check_scan_bins(struct builder *b)
{
    const struct ynode *by = by_node(b), *level = ynode_get(b->root, "determinism");
    const bool shows = by && shows_empty_bins(b);
    if (by && !bins_known(b) && !b->incomplete)
        diag_hint(b->d, diag_error(b->d, D_BAD_BY, by->at, "nothing says how many bins there are"),
                  "write bins: k beside 'by', or give an output the totals of all bins");
    for (int i = 0; by && i < b->nreductions; i++) {
        struct reduction *r = &b->reduction[i];
        if (!r->op || !r->op->combine[0])
            continue;
        if (b->p->determinism == DET_DEVICE && !r->op->exact)
            diag_error(b->d, D_BAD_BY, level->at,
                       "not yet: the same bits on every device in a scan with 'by'; '%s' rounds, and the tree of "
                       "combinations depends on the shared memory of the device",
                       r->name);
        if (shows && !b->p->exclusive && !r->op->identity[0] && !r->init[0])
            diag_hint(b->d,
                      diag_error(b->d, D_NO_IDENTITY, r->at, "the operator has no identity, but a bin may be empty"),
                      "give it an identity, or an init");
        else if (!begins_neutral(r->op, shows && !r->init[0]))
            know_some(b, r);
    }
}
