/* SPDX-License-Identifier: Apache-2.0 */
/* outputs.c - outputs: what their shapes mean, their values and what they are by default. */
#include "frontend/frontend_impl.h"

static bool has_axis(const struct output *out, int axis)
{
    for (int d = 0; d < out->array.rank; d++)
        if (out->axis[d] == axis)
            return true;
    return false;
}

static bool dims_equal(struct prog_dim x, struct prog_dim y) { return x.size == y.size && x.add == y.add; }

/* Is the shape the number of irregular segments? */
static bool per_irregular_segment(const struct builder *b, const struct output *out)
{
    return b->p->offsets >= 0 && out->array.rank == 1 && dims_equal(out->array.dim[0], b->segments);
}

static bool has_dim(const struct prog_array *array, struct prog_dim dim)
{
    for (int d = 0; d < array->rank; d++)
        if (array->dim[d].size == dim.size)
            return true;
    return false;
}

/* The names of the dimensions of the space that the output has (or has not). */
static const char *dims_text(const struct builder *b, const struct output *out, bool has)
{
    const char *text = "";
    for (int i = 0; i < b->nown; i++)
        if (b->own[i].size >= 0 && has_dim(&out->array, b->own[i]) == has)
            text = arena_printf(b->a, "%s%s%s", text, *text ? ", " : "", b->size[b->own[i].size].name);
    return text;
}

/* A map has a value for each of [all]: how to do without a dimension that the output lacks. */
static void map_shape_hint(struct builder *b, struct diag *m, const struct output *out, const char *all)
{
    for (int i = 0; i < b->nown; i++) {
        const struct prog_dim *dim = &b->own[i];
        const char *name = dim->size < 0 ? "" : b->size[dim->size].name;
        const struct input *from = NULL;
        for (int k = b->ninputs; k-- > 0;)
            if (b->input[k].role == ROLE_ELEMENT && has_dim(&b->input[k].array, *dim))
                from = &b->input[k];
        if (dim->size < 0) {
            diag_hint(b->d, m, "one value per point has the shape [%s]; %s", all, way_out("kind", "weights"));
            return;
        }
        if (!from || has_dim(&out->array, *dim))
            continue;
        if (mentioned(b, name) & AS_FOLDED)
            diag_hint(b->d, m,
                      "sum, product, least, greatest, all and any go over a dimension, as in least(%s, %s); a mean is "
                      "sum(%s, "
                      "%s) / f32(%s), and argmin is the operator of a reduce",
                      name, from->array.name, name, from->array.name, name);
        else
            diag_hint(
                b->d, m,
                "one value per point has the shape [%s]; to do without '%s', read '%s' in a sum, sum(%s, %s), or at "
                "computed places, at(%s, …)",
                all, name, from->array.name, name, from->array.name, from->array.name);
        return;
    }
    diag_hint(b->d, m, "one value per point has the shape [%s]; the result of a reduction is a scalar", all);
}

/* Is the text of the output's value well formed?  Reports; a shape may be wrong because of what is not. */
static bool value_parses(struct builder *b, const struct output *out)
{
    const struct ynode *node = b->output_node[out - b->output],
                       *value = node && node->kind == Y_MAPPING ? ynode_get(node, "value") : NULL;
    bool good = true;
    for (int i = 0; value && value->kind == Y_MAPPING && i < value->count; i++)
        good &= value->pair[i].value->kind != Y_SCALAR || node_expr(b, value->pair[i].value);
    return good && (!value || value->kind != Y_SCALAR || node_expr(b, value));
}

static void wrong_shape(struct builder *b, const struct output *out)
{
    const struct problem *p = b->p;
    const char *all = space_text(b), *without = dims_text(b, out, false), *with = dims_text(b, out, true);
    bool kept = false;
    for (int i = 0; i < p->rank; i++)
        kept |= !p->space[i].reduced;
    if (!value_parses(b, out))
        return;
    struct diag *m = diag_error(b->d, D_BAD_OUTPUT, out->at, "the shape of '%s' fits no kind of output",
                                kept_own_name(out->array.name));
    if (p->kind == KIND_STENCIL)
        map_shape_hint(b, m, out, all);
    else if (b->flat && *with && *without && !ynode_get(b->root, "over"))
        diag_hint(b->d, m,
                  "a map with 'where' goes over the whole array; with over: %s%s%s, elements are kept and counted for "
                  "each of [%s]",
                  strchr(without, ',') ? "[" : "", without, strchr(without, ',') ? "]" : "", with);
    else if (p->offsets >= 0)
        diag_hint(b->d, m, "one value per element has the shape [%s], one per segment the number of offsets less 1",
                  all);
    else
        diag_hint(b->d, m,
                  "one value per element has all of [%s], one per %s exactly the dimensions that are not in over", all,
                  kept ? "segment" : "whole array");
    for (int d = 0; d < out->array.rank; d++)
        if (out->array.dim[d].size >= 0)
            space_hint(b, m, b->size[out->array.dim[d].size].name);
    sum_hint_unknown(b, m);
}

/* The role that the shape of an output gives it. */
static bool shape_role(struct builder *b, struct output *out)
{
    const struct problem *p = b->p;
    bool all = true, kept = true, some_reduced = false;
    if (p->nby)
        return by_shape(b, out);
    if (per_irregular_segment(b, out)) {
        out->role = OUT_SEGMENT;
        out->axis[0] = -1;
        return true;
    }
    bool known = match_axes(b, &out->array, out->axis);
    for (int i = 0; i < p->rank; i++) {
        bool has = has_axis(out, i), reduced = p->space[i].reduced || p->kind == KIND_STENCIL;
        all &= has;
        kept &= has || reduced;
        some_reduced |= has && reduced;
    }
    out->role = all ? OUT_ELEMENT : OUT_SEGMENT;
    if (!all && scans_bins(b))
        return bin_totals_shape(b, out);
    if (known && (all || (kept && !some_reduced && p->offsets < 0)))
        return true;
    if (!b->incomplete)
        wrong_shape(b, out);
    return false;
}

void build_output_types(struct builder *b)
{
    const struct ynode *all = schema_get(b->root, ST_TOP, "outputs");
    bool beside_stencil = b->p->kind == KIND_STENCIL && ynode_get(b->root, "reductions");
    if (all && !all->count)
        diag_error(b->d, D_BAD_OUTPUT, all->at, "there is no output");
    for (int i = 0; i < b->noutputs; i++) {
        const struct ynode *node = b->output_node[i];
        struct output *out = &b->output[i];
        if (beside_stencil)
            warn_hidden(b, out->array.name, out->at, "an output");
        if (!node)
            continue;
        if (output_has_place(node) || out->spread) {
            out->role = OUT_PLACED;
            for (int d = 0; out->spread && d < out->array.rank; d++)
                out->index[d] = own_index(b, out->axis[d], out->at);
            for (int d = 0; d < PROG_RANK_MAX; d++)
                out->axis[d] = -1;
        } else if (!shape_role(b, out) || !kept_shape(b, out, node)) {
            b->output_node[i] = NULL;
        } else if (output_moment(out) == AT_TOTAL && (b->p->flags >= 0 || b->p->starts) && !output_counts(node)) {
            diag_error(b->d, D_BAD_OUTPUT, out->at, "the number of segments is not known, so they have no totals");
        }
    }
}

enum moment output_moment(const struct output *o)
{
    static const enum moment known[] = {
#define OUTPUT(id, moment, what) [OUT_##id] = moment,
#include "output.def"
#undef OUTPUT
    };
    return known[o->role];
}

bool problem_writes(const struct problem *p, enum moment moment)
{
    for (int o = 0; o < p->noutputs; o++)
        if (output_moment(&p->output[o]) == moment)
            return true;
    return false;
}

bool problem_shows_totals(const struct problem *p)
{
    for (int o = 0; o < p->noutputs; o++) {
        const struct expr *e = p->output[o].value[0];
        e = e->kind == EX_CAST ? e->arg[0] : e;
        if (output_moment(&p->output[o]) == AT_TOTAL && !(e->kind == EX_TOTAL && p->reduction[e->which].counts))
            return true;
    }
    return false;
}

void output_walk(const struct output *o, void (*f)(const struct expr *e, void *user), void *user)
{
    for (int i = 0; i < o->array.nfields; i++)
        if (o->value[i])
            expr_walk(o->value[i], f, user);
    for (int d = 0; d < PROG_RANK_MAX; d++)
        if (o->index[d])
            expr_walk(o->index[d], f, user);
}

/* ---- values ---- */

static struct scope value_scope(struct builder *b, enum moment moment)
{
    enum problem_kind kind = b->p->kind;
    struct scope sc = { .b = b, .state = -1 };
    if (moment == AT_POINT) {
        sc.allows = SC_INPUT | SC_OFFSETS | SC_LET | SC_INDEX | SC_PARAM;
        sc.allows |= kind == KIND_STENCIL ? SC_GATHER : kind == KIND_SCAN ? SC_STATE | SC_LAST : SC_STATE;
        sc.place = "an output per element";
    } else {
        sc.allows = SC_INVARIANT | SC_LET | SC_INDEX | SC_PARAM;
        sc.allows |= kind == KIND_SCAN ? SC_TOTAL : SC_STATE;
        sc.place = b->flat ? "one value of all elements" : kind == KIND_SCAN ? "the total of a scan" : "a result";
    }
    return sc;
}

static const struct expr *state_expr(struct builder *b, int which, int field, bool total, struct span at)
{
    struct expr *e = expr_new(b->a, total ? EX_TOTAL : EX_STATE, b->reduction[which].op->field[field], at);
    e->which = which;
    e->field = field;
    return e;
}

/* A default result in the output's type: value-preserving, or back to what the accumulator was widened from. */
static const struct expr *convert_default(struct builder *b, const struct expr *e, enum ty to, int map_type,
                                          struct span at)
{
    if (!e || e->type == to)
        return e;
    if (type_widens(e->type, to) || (map_type >= 0 && type_widens(map_type, to)))
        return expr_cast(b->a, e, to);
    struct diag *m = diag_error(b->d, D_NARROWING, at, "the result is %s, and %s does not hold every value of it",
                                ty_name(e->type), ty_name(to));
    diag_hint(b->d, m, "give the output a value that converts it: %s(…)", ty_name(to));
    return NULL;
}

static int default_reduction(struct builder *b, const struct output *out)
{
    for (int i = 0; i < b->nreductions; i++)
        if (!b->named || !strcmp(b->reduction[i].name, kept_own_name(out->array.name)))
            return i;
    return -1;
}

static bool default_fields(struct builder *b, struct output *out, int which, bool total)
{
    const struct op *op = b->reduction[which].op;
    for (int f = 0; f < out->array.nfields; f++) {
        int state = -1;
        for (int i = 0; i < op->nfields; i++)
            if (!strcmp(op->field_name[i], out->array.field[f].name))
                state = i;
        if (state < 0)
            return false;
        const struct expr *e = state_expr(b, which, state, total, out->at);
        out->value[f] = convert_default(b, e, out->array.field[f].type, T_ANY, out->at);
    }
    return true;
}

/* The field that an output means: that of its name, else the only one of its type; -1: not known. */
static int likely_field(const struct op *op, const struct output *out)
{
    int typed = -1, same = 0;
    if (*out->array.field[0].name)
        return -1;
    for (int f = 0; f < op->nfields; f++) {
        if (!strcmp(op->field_name[f], kept_own_name(out->array.name)))
            return f;
        if (op->field[f] == out->array.field[0].type) {
            typed = f;
            same++;
        }
    }
    return same == 1 ? typed : -1;
}

static void hint_fields(struct builder *b, struct diag *m, const struct output *out, int which, bool total)
{
    const struct op *op = b->reduction[which].op;
    const char *suffix = total && b->nreductions > 1 ? ".total" : "",
               *of = total && !*suffix ? "total" : b->reduction[which].name;
    int likely = likely_field(op, out);
    struct str text = { 0 };
    for (int f = 0; f < op->nfields; f++)
        if (likely < 0 || likely == f)
            str_printf(&text, "%s%s%s.%s", text.length ? ", " : "", of, suffix, op->field_name[f]);
    if (likely >= 0)
        diag_hint(b->d, m, "value: %s", text.text);
    else
        diag_hint(b->d, m, "write a value of the fields %s", text.text ? text.text : "");
    str_finish(&text);
}

static void default_value(struct builder *b, struct output *out)
{
    bool at_total = output_moment(out) == AT_TOTAL, has_state = at_total || b->p->kind == KIND_SCAN,
         total = at_total && b->p->kind == KIND_SCAN;
    int which = has_state ? default_reduction(b, out) : -1;
    if (which >= 0 && !b->reduction[which].op)
        return; /* reported */
    const struct op *op = which >= 0 ? b->reduction[which].op : NULL;
    const struct op_row *row = op && op->builtin ? op_row_by_name(op->name) : NULL;
    bool structure = *out->array.field[0].name != '\0', tuple = op && *op->field_name[0];
    if (op && structure && tuple && default_fields(b, out, which, total))
        return;
    const struct expr *e = NULL;
    if (op && !structure && !tuple) {
        e = state_expr(b, which, 0, total, out->at);
    } else if (op && !structure && row && row->result) {
        struct scope sc = {
            .b = b, .allows = SC_ROW | (total ? SC_TOTAL : SC_STATE), .place = "a result", .state = which
        };
        struct source text = source_row(row->result, (uint32_t)strlen(row->result), out->at);
        e = type_build(&sc, expr_parse(b->a, b->d, &text), T_ANY);
    }
    if (e) {
        out->value[0] = convert_default(b, e, out->array.field[0].type, b->map_type[which], out->at);
        return;
    }
    if (b->incomplete)
        return;
    struct diag *m = diag_error(b->d, D_NO_VALUE, out->at, "'%s' needs a value", kept_own_name(out->array.name));
    if (tuple)
        hint_fields(b, m, out, which, total);
    else if (has_state && b->named)
        diag_hint(b->d, m, "an output takes the result of its own name by default");
    else
        diag_hint(b->d, m, "write %s: {type: …, value: …}", kept_own_name(out->array.name));
}

void structure_values(const struct scope *sc, const struct output *out, const struct ynode *node, const char *what,
                      const struct expr **value)
{
    const char *names[STATE_FIELDS_MAX];
    struct ast *e[STATE_FIELDS_MAX] = { NULL };
    for (int f = 0; f < out->array.nfields; f++)
        names[f] = out->array.field[f].name;
    fields_parse(sc, node, what, "output", names, out->array.nfields, e);
    for (int f = 0; f < out->array.nfields; f++)
        if (e[f])
            value[f] = type_build(sc, e[f], out->array.field[f].type);
}

static void explicit_value(struct builder *b, struct output *out, const struct ynode *node)
{
    struct scope sc = value_scope(b, output_moment(out));
    bool structure = *out->array.field[0].name != '\0';
    if (node->kind == Y_MAPPING) {
        if (structure) {
            structure_values(&sc, out, node, "value", out->value);
            return;
        }
        struct diag *m =
            diag_error(b->d, D_FIELDS, node->at, "'%s' is no array of structures, so its value is one expression",
                       kept_own_name(out->array.name));
        diag_hint(b->d, m, "fields in memory are declared by type: {FIELD: TYPE, …} and shape: […]");
        return;
    }
    struct ast *e = node_expr(b, node);
    if (!structure) {
        out->value[0] = type_build(&sc, e, out->array.field[0].type);
        return;
    }
    const char *names[STATE_FIELDS_MAX];
    struct ast *field[STATE_FIELDS_MAX];
    for (int f = 0; f < out->array.nfields; f++)
        names[f] = out->array.field[f].name;
    if (structure_fields(&sc, e, out->array.nfields, names, field)) {
        for (int f = 0; f < out->array.nfields; f++)
            out->value[f] = type_build(&sc, field[f], out->array.field[f].type);
    } else if (e && (type_peek(&sc, e) != T_POISON || type_build(&sc, e, T_ANY))) {
        diag_error(b->d, D_FIELDS, node->at, "the value of an array of structures is a mapping of its fields");
    }
}

static void find_state(const struct expr *e, void *user) { *(bool *)user |= e->kind == EX_STATE; }

/* A value per element of a reduction that uses the results waits for them. */
static void wait_for_results(const struct problem *p, struct output *out)
{
    bool waits = false;
    output_walk(out, find_state, &waits);
    if (p->kind == KIND_REDUCE && output_moment(out) == AT_POINT && waits)
        out->role = out->role == OUT_PLACED ? OUT_SETTLED : OUT_MAPPED;
}

/* Each element of a reduction writes to its place.  All of a segment would write the same to one place where nothing tells them
 * apart; who writes that means the segment. */
static void check_elements_differ(struct builder *b, const struct output *out)
{
    unsigned axes = 0;
    for (int d = 0; d < out->array.rank; d++)
        axes |= out->index[d] ? expr_axes(b, out->index[d]) : ~0u;
    for (int f = 0; f < out->array.nfields; f++)
        axes |= out->value[f] ? expr_axes(b, out->value[f]) : ~0u;
    if (b->p->kind != KIND_REDUCE || b->p->nby || b->incomplete || (axes & reduced_axes(b)))
        return;
    struct diag *m =
        diag_error(b->d, D_BAD_PLACE, out->at,
                   "with 'at', each element writes, and all elements of a segment would write the same to one place");
    diag_hint(b->d, m, "results go to computed places in a second stage: a map of the results, with 'at'");
}

void build_output_values(struct builder *b, enum moment moment)
{
    for (int i = 0; i < b->noutputs; i++) {
        struct output *out = &b->output[i];
        const struct ynode *node = b->output_node[i];
        if (!node || output_moment(out) != moment || output_counts(node))
            continue;
        const struct ynode *value = node->kind == Y_MAPPING ? ynode_get(node, "value") : NULL;
        if (value && value->kind != Y_SEQUENCE)
            explicit_value(b, out, value);
        else if (!value)
            default_value(b, out);
        if (output_has_place(node)) {
            const struct scope sc = value_scope(b, moment);
            build_places(&sc, out, node);
            check_elements_differ(b, out);
        }
        wait_for_results(b->p, out);
    }
}
