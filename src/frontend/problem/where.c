/* SPDX-License-Identifier: Apache-2.0 */
/* where.c - outputs that some elements write (`where`), how many these are (`count`), and segments that begin where an
 * expression holds (`starts`).  All of them become parts of plain scans, which the other folders know already:
 *
 *   where    a scan that counts the elements for which the condition holds; outputs with equal conditions share one
 *   count    the total of this scan
 *   starts   the user's operators start anew: their states get a field `begins`, true after such an element, and
 *            the combination of two states whose right one begins is the right one
 *
 * The counters know no segments, so places go on from one segment to the next.
 */
#include "frontend/frontend_impl.h"

static const struct expr *number(struct builder *b, int64_t x, struct span at)
{
    struct expr *e = expr_new(b->a, EX_CONST, TY_I64, at);
    e->imm.i = x;
    return e;
}

static const struct expr *extent(struct builder *b, int axis, struct span at)
{
    const struct prog_dim *d = &b->p->space[axis].extent;
    const struct expr *add = number(b, d->add, at);
    if (d->size < 0)
        return add;
    const struct expr *size = expr_leaf(b->a, EX_SIZE, TY_I64, d->size, 0, at);
    return d->add ? expr_binary(b->a, BIN_ADD, TY_I64, size, add) : size;
}

static struct diag *not_yet(struct builder *b, struct span at, const char *what)
{
    return diag_error(b->d, D_BAD_WHERE, at, "not yet: %s", what);
}

static struct scope condition_scope(struct builder *b, const char *place)
{
    return (struct scope){
        .b = b, .place = place, .state = -1, .allows = SC_INPUT | SC_OFFSETS | SC_LET | SC_INDEX | SC_PARAM | SC_LAST
    };
}

static const char along_one[] =
    "dimensions in over are one where they are neighbours, all arrays have both side by side or neither, and no "
    "expression reads at an offset along one of them";

/* ---- segments ---- */

void build_starts(struct builder *b)
{
    const struct ynode *node = starts_node(b);
    if (!node || b->p->kind != KIND_SCAN)
        return;
    struct scope sc = condition_scope(b, "the beginning of segments");
    sc.allows &= ~(unsigned)SC_LAST;
    struct ast *ast = node_expr(b, node);
    const int t = ast ? type_peek(&sc, ast) : T_POISON;
    const bool flags = ynode_get(schema_get(b->root, ST_TOP, "segments"), "flags") && t >= 0 && ty_is_int((enum ty)t);
    b->starts = type_build(&sc, ast, flags ? T_ANY : TY_BOOL);
    if (b->starts && flags)
        b->starts = expr_cast(b->a, b->starts, TY_BOOL);
    b->p->starts = true;
    int scanned = 0;
    for (int d = 0; d < b->p->rank; d++)
        scanned += b->p->space[d].reduced;
    if (scanned > 1)
        diag_hint(b->d, not_yet(b, node->at, "segments that are given by 'starts' along several dimensions"),
                  along_one);
}

/* The axis that scans go along, the last one of several. */
static int scanned_axis(const struct problem *p)
{
    int axis = p->rank - 1;
    while (axis > 0 && !p->space[axis].reduced)
        axis--;
    return axis;
}

/* An input one element further along the axis. */
static void shift(struct input *in, int axis, struct expr *e)
{
    bool moved = false;
    for (int d = 0; d < in->array.rank; d++) {
        e->offset[d] = (e->noffsets ? e->offset[d] : 0) + (in->axis[d] == axis);
        moved |= e->offset[d] != 0;
    }
    e->noffsets = moved ? in->array.rank : 0;
    in->neighbours |= moved;
}

/* The value that e has at the next element of the scan; *left: how much may be written out. */
static const struct expr *at_next(struct builder *b, const struct expr *e, int *left)
{
    const int axis = scanned_axis(b->p);
    if (--*left < 0)
        return e;
    if (e->kind == EX_LET)
        return at_next(b, b->lets.let[e->which].value, left);
    if (e->kind == EX_INDEX && e->which == axis)
        return expr_binary(b->a, BIN_ADD, TY_I64, e, number(b, 1, e->at));
    struct expr *copy = arena_new(b->a, struct expr, 1);
    *copy = *e;
    if (e->kind == EX_AT)
        copy->op = 0; /* the next one may be beyond */
    if (e->kind == EX_INPUT)
        shift(&b->input[e->which], axis, copy);
    for (int i = 0; i < e->nargs; i++)
        copy->arg[i] = at_next(b, e->arg[i], left);
    return copy;
}

const struct expr *last_build(struct builder *b, struct span at)
{
    const struct problem *p = b->p;
    const struct expr *last = NULL;
    int left = WRITTEN_OUT;
    if (p->offsets >= 0 || p->flags >= 0) {
        struct diag *m = not_yet(b, at, "'last' where segments are given by offsets or flags");
        if (p->flags >= 0)
            diag_hint(b->d, m, "write segments: {starts: %s != 0}", b->input[p->flags].array.name);
        return NULL;
    }
    for (int d = 0; d < p->rank; d++) {
        if (!p->space[d].reduced)
            continue;
        const struct expr *end =
            p->reverse ? number(b, 0, at) : expr_binary(b->a, BIN_SUB, TY_I64, extent(b, d, at), number(b, 1, at));
        const struct expr *ends = expr_binary(b->a, BIN_EQ, TY_BOOL, expr_leaf(b->a, EX_INDEX, TY_I64, d, 0, at), end);
        last = last ? expr_binary(b->a, BIN_LAND, TY_BOOL, last, ends) : ends;
    }
    if (last && b->starts)
        last = expr_binary(b->a, BIN_LOR, TY_BOOL, last, p->reverse ? b->starts : at_next(b, b->starts, &left));
    if (left < 0)
        diag_error(b->d, D_LIMIT, b->starts->at, "with its lets written out, this is too long for 'last'");
    return left < 0 ? NULL : last;
}

static void count(const struct expr *e, void *left)
{
    (void)e;
    --*(int *)left;
}

const struct expr *with_states(const struct builder *b, const struct op *op, const struct expr *e,
                               const struct expr *const *x, const struct expr *const *y, int *left)
{
    if (--*left < 0)
        return e;
    if (e->kind == EX_LEFT || e->kind == EX_RIGHT) {
        const struct expr *state = (e->kind == EX_LEFT ? x : y)[e->field];
        expr_walk(state, count, left);
        return state;
    }
    if (e->kind == EX_OP_LET)
        return with_states(b, op, op->let[e->which].value, x, y, left);
    struct expr *copy = arena_new(b->a, struct expr, 1);
    *copy = *e;
    for (int i = 0; i < e->nargs; i++)
        copy->arg[i] = with_states(b, op, e->arg[i], x, y, left);
    return copy;
}

/* The first element of a segment brings the init; that of the first segment may not be one of `starts`, and has it from
 * the scan. */
static bool begin_with_init(struct builder *b, struct reduction *r, const struct expr *begins)
{
    const struct op *op = r->op;
    const struct expr *map[STATE_FIELDS_MAX];
    int left = WRITTEN_OUT;
    for (int f = 0; f < op->nfields; f++)
        if (!r->init[f] || !r->map[f] || !op->combine[f])
            return true; /* none, or reported */
    for (int f = 0; f < op->nfields; f++)
        map[f] = expr_choose(b->a, begins, with_states(b, op, op->combine[f], r->init, r->map, &left), r->map[f]);
    memcpy(r->map, map, sizeof *map * (size_t)op->nfields);
    return left >= 0;
}

/* A running state that does not include its element: at the first one of a segment, it is the state of none. */
static const struct expr *before_none(struct builder *b, const struct expr *e, const struct expr *begins)
{
    const struct reduction *r = e->kind == EX_STATE ? &b->reduction[e->which] : NULL;
    const struct expr *none = r ? (r->init[0] ? r->init : r->op->identity)[e->field] : NULL;
    if (r)
        return none ? expr_choose(b->a, begins, none, e) : e;
    struct expr *copy = arena_new(b->a, struct expr, 1);
    *copy = *e;
    for (int i = 0; i < e->nargs; i++)
        copy->arg[i] = before_none(b, e->arg[i], begins);
    return copy;
}

static void exclude_first(struct builder *b, struct output *out, const struct expr *begins)
{
    for (int f = 0; f < out->array.nfields; f++)
        out->value[f] = out->value[f] ? before_none(b, out->value[f], begins) : NULL;
    for (int d = 0; d < PROG_RANK_MAX; d++)
        out->index[d] = out->index[d] ? before_none(b, out->index[d], begins) : NULL;
}

/* The operator that starts anew where the right state begins. */
static void start_anew(struct builder *b, struct reduction *r, const struct expr *begins_here)
{
    const int n = r->op ? r->op->nfields : 0;
    if (!r->op || !r->op->combine[0])
        return;
    if (n == STATE_FIELDS_MAX) {
        diag_error(b->d, D_LIMIT, r->at, "with segments that are given by 'starts', a state has at most %d fields",
                   STATE_FIELDS_MAX - 1);
        return;
    }
    if (!begin_with_init(b, r, begins_here))
        diag_error(b->d, D_LIMIT, r->at,
                   "with its lets and the map written out, this is too long for an init of segments by 'starts'");
    struct op *op = arena_new(b->a, struct op, 1);
    *op = *r->op;
    const struct expr *left = expr_leaf(b->a, EX_LEFT, TY_BOOL, 0, n, r->at),
                      *begins = expr_leaf(b->a, EX_RIGHT, TY_BOOL, 0, n, r->at);
    for (int f = 0; f < n; f++) {
        if (op->combine[f])
            op->combine[f] =
                expr_choose(b->a, begins, expr_leaf(b->a, EX_RIGHT, op->field[f], 0, f, r->at), op->combine[f]);
        op->pad[f] = NULL;
    }
    op->nfields++;
    op->field_name[n] = "begins";
    op->field[n] = TY_BOOL;
    op->combine[n] = expr_binary(b->a, BIN_LOR, TY_BOOL, left, begins);
    op->identity[n] = op->identity[0] ? expr_new(b->a, EX_CONST, TY_BOOL, r->at) : NULL;
    r->init[n] = r->init[0] ? expr_new(b->a, EX_CONST, TY_BOOL, r->at) : NULL;
    op->commutative = op->builtin = false;
    r->op = op;
    r->map[n] = begins_here;
}

/* In the order of the scan, a reverse one begins a segment where the next element begins one in the order of indices. */
static void build_anew(struct builder *b)
{
    int left = WRITTEN_OUT;
    const struct expr *begins = b->p->reverse && b->starts ? at_next(b, b->starts, &left) : b->starts;
    if (left < 0)
        diag_error(b->d, D_LIMIT, b->starts->at, "with its lets written out, this is too long for a reverse scan");
    for (int o = 0; begins && b->p->exclusive && left >= 0 && o < b->noutputs; o++)
        exclude_first(b, &b->output[o], begins);
    for (int r = 0; begins && r < b->nreductions; r++)
        start_anew(b, &b->reduction[r], begins);
}

/* ---- counters ---- */

static int counter_of(struct builder *b, const struct expr *where)
{
    for (int o = 0; o < b->noutputs; o++)
        if (b->output[o].place && expr_equal(b->output[o].where, where))
            return b->output[o].counter;
    const enum ty type = TY_I64;
    struct reduction r = { .name = "kept", .counts = true, .at = where->at };
    r.op = op_builtin(b, op_row_by_name("add"), &type, where->at);
    r.map[0] = expr_cast(b->a, where, TY_I64);
    int n = b->nreductions;
    ARENA_PUSH(b->a, b->map_type, n, b->cap_map_types, T_ANY);
    ARENA_PUSH(b->a, b->reduction, b->nreductions, b->cap_reductions, r);
    return b->nreductions - 1;
}

/* Where the element goes along the scanned axes. */
static const struct expr *place_of(struct builder *b, const struct output *out)
{
    const struct expr *before = expr_leaf(b->a, EX_STATE, TY_I64, out->counter, 0, out->at), *end = NULL;
    const struct expr *one = number(b, 1, out->at);
    for (int d = 0; out->from_end && d < b->p->rank; d++)
        if (b->p->space[d].reduced)
            end = end ? expr_binary(b->a, BIN_MUL, TY_I64, end, extent(b, d, out->at)) : extent(b, d, out->at);
    if (end && b->p->exclusive)
        before = expr_binary(b->a, BIN_ADD, TY_I64, before, one);
    if (end)
        return expr_binary(b->a, BIN_SUB, TY_I64, end, before);
    return b->p->exclusive ? before : expr_binary(b->a, BIN_SUB, TY_I64, before, one);
}

static struct diag *not_in_order(struct builder *b, const struct output *out)
{
    return diag_error(b->d, D_BAD_WHERE, out->at,
                      "an output with 'where' has all dimensions in their order, as all elements may be kept");
}

/* A shape in which kept elements lie side by side. */
static bool shape_fits(struct builder *b, const struct output *out)
{
    const struct problem *p = b->p;
    int scanned = 0;
    bool in_order = out->array.rank == p->rank;
    for (int d = 0; d < p->rank; d++)
        scanned += p->space[d].reduced;
    for (int d = 0; in_order && d < p->rank; d++)
        in_order = out->axis[d] == d && out->array.dim[d].size == p->space[d].extent.size &&
                   out->array.dim[d].add == p->space[d].extent.add;
    if (p->offsets >= 0 || p->flags >= 0) {
        struct diag *m = not_yet(b, out->at, "'where' with segments that are given by offsets or flags");
        if (p->flags >= 0)
            diag_hint(b->d, m, "write segments: {starts: %s != 0}", b->input[p->flags].array.name);
        return false;
    }
    if (scanned > 1 && scanned < p->rank) {
        diag_hint(b->d, not_yet(b, out->at, "'where' along several dimensions beside others"), along_one);
        return false;
    }
    if (!in_order)
        not_in_order(b, out);
    return in_order;
}

bool kept_shape(struct builder *b, const struct output *out, const struct ynode *node)
{
    const bool keeps = node->kind == Y_MAPPING && ynode_get(node, "where") && !output_counts(node);
    const bool part = keeps && b->p->kind == KIND_SCAN && out->role == OUT_SEGMENT;
    if (part)
        diag_hint(b->d, not_in_order(b, out),
                  "the shape is [%s]; how many are kept is an output {type: i64, count: %s}", space_text(b),
                  out->array.name);
    return !part;
}

static void build_kept(struct builder *b, struct output *out, const struct ynode *node)
{
    const struct ynode *where = schema_get(node, ST_OUTPUT, "where"), *from = schema_get(node, ST_OUTPUT, "from");
    out->from_end = from && !strcmp(from->text, "end");
    if (from && !out->from_end && strcmp(from->text, "start"))
        diag_error(b->d, D_BAD_VALUE, from->at, "'from' is start or end");
    if (!where) {
        if (from)
            diag_error(b->d, D_BAD_WHERE, from->at, "'from' belongs to an output with 'where'");
        return;
    }
    const struct scope sc = condition_scope(b, "a where");
    struct ast *ast = node_expr(b, where);
    out->where = ast ? type_build(&sc, ast, TY_BOOL) : NULL;
    if (!out->where || out->role != OUT_ELEMENT || !shape_fits(b, out))
        return;
    out->role = OUT_KEPT;
    out->counter = counter_of(b, out->where);
    out->place = place_of(b, out);
}

/* A count is written as it is, and for all elements that the other output keeps. */
static void refuse_beside_count(struct builder *b, const struct ynode *node)
{
    static const char *const others[] = { "value", "where", "from" };
    for (int i = 0; i < node->count; i++)
        for (int k = 0; k < 3; k++)
            if (!strcmp(node->pair[i].key->text, others[k]))
                diag_hint(
                    b->d,
                    diag_error(b->d, D_BAD_WHERE, node->pair[i].key->at, "an output has 'count' or '%s', not both",
                               others[k]),
                    "a count has a type and the name of the output with `where` that it counts: {type: i64, count: "
                    "OUTPUT}");
}

static void build_count(struct builder *b, struct output *out, const struct ynode *node)
{
    refuse_beside_count(b, node);
    const struct ynode *count = schema_get(node, ST_OUTPUT, "count");
    const int of = output_find(b, count->text);
    const enum ty t = out->array.nfields == 1 && !*out->array.field[0].name ? out->array.field[0].type : TY_NONE;
    if (of < 0 || !b->output_node[of] || b->output_node[of]->kind != Y_MAPPING ||
        !ynode_get(b->output_node[of], "where")) {
        diag_hint(b->d, diag_error(b->d, D_BAD_WHERE, count->at, "'%s' is no output with 'where'", count->text), "%s",
                  way_out("kind", of < 0 ? "count" : "filter"));
        return;
    }
    if (t != TY_I32 && t != TY_I64)
        diag_error(b->d, D_BAD_WHERE, out->at, "a count is an i64 or an i32");
    else if (output_moment(out) != AT_TOTAL)
        diag_error(b->d, D_BAD_WHERE, out->at,
                   "there is one count per scan: it has the dimensions that are not scanned");
    else if (b->output[of].place)
        out->value[0] = expr_leaf(b->a, EX_TOTAL, TY_I64, b->output[of].counter, 0, out->at);
    if (out->value[0] && t == TY_I32)
        out->value[0] = expr_cast(b->a, out->value[0], t);
}

bool keeps_some(const struct builder *b)
{
    const struct ynode *outputs = schema_get(b->root, ST_TOP, "outputs");
    for (int i = 0; outputs && i < outputs->count; i++)
        if (outputs->pair[i].value->kind == Y_MAPPING && ynode_get(outputs->pair[i].value, "where"))
            return true;
    return false;
}

int kept_kind(struct builder *b, const struct ynode *node, int kind)
{
    b->flat = node && !strcmp(node->text, "map") && keeps_some(b);
    return b->flat ? KIND_SCAN : kind;
}

static void refuse_key(struct builder *b, const struct ypair *pair)
{
    const char *kind = ynode_get(b->root, "kind")->text, *key = pair->key->text;
    const bool other = !strcmp(key, "count") && pair->value->kind == Y_SCALAR && output_find(b, pair->value->text) < 0;
    if (!strcmp(kind, "map"))
        diag_hint(b->d,
                  diag_error(b->d, D_KEY_NOT_FOR_KIND, pair->key->at,
                             "'%s' needs an output with 'where', and this map has none", key),
                  "%s", way_out("kind", other ? "count" : "filter"));
    else
        diag_hint(b->d, diag_error(b->d, D_KEY_NOT_FOR_KIND, pair->key->at, "outputs of a %s have no '%s'", kind, key),
                  "kind: map and kind: scan have it, without an operator, too; a reduce has it beside an output "
                  "with 'where', and without 'by'");
}

/* Keys of scans in the outputs of another kind. */
static void refuse_keys(struct builder *b, const struct ynode *node)
{
    static const char *const keys[] = { "where", "from", "count" };
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < node->count; k++)
            if (!strcmp(node->pair[k].key->text, keys[i]))
                refuse_key(b, &node->pair[k]);
}

bool output_counts(const struct ynode *node) { return node && node->kind == Y_MAPPING && ynode_get(node, "count"); }

void build_where(struct builder *b)
{
    const bool scan = b->p->kind == KIND_SCAN;
    build_anew(b);
    for (int o = 0; o < b->noutputs; o++)
        if (!b->output_node[o] || b->output_node[o]->kind != Y_MAPPING || output_has_place(b->output_node[o]))
            continue; /* `where` beside `at` is refused by itself */
        else if (scan && !output_counts(b->output_node[o]))
            build_kept(b, &b->output[o], b->output_node[o]);
        else if (!scan)
            refuse_keys(b, b->output_node[o]);
    for (int o = 0; scan && o < b->noutputs; o++)
        if (output_counts(b->output_node[o]))
            build_count(b, &b->output[o], b->output_node[o]);
}
