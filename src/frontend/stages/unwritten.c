/* SPDX-License-Identifier: Apache-2.0 */
/* unwritten.c - elements of arrays that no stage writes, and that a later stage or the next step reads.
 *
 *   gaps      points at edges (`interior`), what follows kept elements (`where`), places that surely get no value (`at`)
 *   memory    what the caller has stays as it was; between stages, and where steps write two buffers, anything is there
 *   readers   stages that read the array element by element, or in sums
 *   knowing   a reader may stop where the elements end: it reads how many there are, or what was computed from that
 *
 * These are warnings: a stage may read what it does not use.  Places that may or may not be all are taken to be all, as
 * those of a sort.
 */
#include "stages_impl.h"

/* What is not there: "the points at the edges of " 'y' " are not computed". */
struct gap {
    const char *of, *is, *hint;
};

/* ---- what is not written ----------------------------------------------------------------------------------------- */

/* Are points left as they are, without the values of an input that is fed back? */
static bool leaves_edges(const struct problem *p)
{
    bool any = false;
    for (int i = 0; i < p->ninputs && p->nfeedback == 0; i++)
        for (int d = 0; d < p->input[i].array.rank && p->input[i].neighbours; d++)
            any |= p->input[i].boundary[d].mode == BOUND_INTERIOR;
    return any;
}

/* Has an index a branch that is never in range, as in `if x > 0 then s else -1`? */
static bool drops(const struct problem *p, const struct expr *e)
{
    switch (e->kind) {
    case EX_LET: return drops(p, p->let[e->which].value);
    case EX_CAST: return drops(p, e->arg[0]);
    case EX_IF: return drops(p, e->arg[1]) || drops(p, e->arg[2]);
    case EX_CONST: return ty_kind(e->type) == 's' && e->imm.i < 0;
    case EX_UNARY: return e->op == UN_NEG && e->arg[0]->kind == EX_CONST && e->arg[0]->imm.i > 0;
    default: return false;
    }
}

/* Are there surely elements without a value: more elements than points, or as many, of which some are dropped?  Dimensions
 * that both have are left out; other ones may be the same number. */
static bool lacks_values(const struct problem *p, const struct output *o)
{
    const struct prog_array *a = problem_array(p, p->ninputs + (int)(o - p->output));
    bool taken[PROG_RANK_MAX] = { false }, some_dropped = false;
    const struct prog_dim *more = NULL;
    int nmore = 0, left = p->rank, last = 0;
    for (int d = 0; d < a->rank; d++) {
        int axis = 0;
        while (axis < p->rank && (taken[axis] || p->space[axis].extent.size != a->dim[d].size ||
                                  p->space[axis].extent.add != a->dim[d].add))
            axis++;
        if (axis < p->rank) {
            taken[axis] = true;
            left--;
        } else if (a->dim[d].size >= 0 || a->dim[d].add != 1) {
            more = &a->dim[d];
            nmore++;
        }
    }
    for (int d = 0; d < a->rank; d++)
        some_dropped |= o->index[d] && drops(p, o->index[d]);
    if (!left)
        return nmore > 0 || some_dropped;
    while (taken[last])
        last++;
    return left == 1 && nmore == 1 && more->size == p->space[last].extent.size && more->add > p->space[last].extent.add;
}

static const struct gap *gap_of(const struct problem *p, const struct output *o)
{
    static const struct gap edges = { "the points at the edges of", "are not computed",
                                      "another boundary, as clamp, computes all points; a loop of the stage's own, "
                                      "iterate: {steps: 1, feedback: …}, gives them the values of its input" },
                            tail = { "the elements of", "after the kept ones are not written",
                                     "give the stage the number of elements, an output with `count`, as in: if "
                                     "index(n) < many then x else 0" },
                            holes = { "some elements of", "get no value",
                                      "with combine and initial, every element has a value" };
    if (o->role == OUT_KEPT)
        return &tail;
    if (output_is_placed(o))
        return !o->combine && !o->initial[0] && lacks_values(p, o) ? &holes : NULL;
    return leaves_edges(p) && output_moment(o) == AT_POINT ? &edges : NULL;
}

/* ---- who reads it ------------------------------------------------------------------------------------------------ */

struct gaps {
    struct stages_builder *sb;
    const struct ynode *feedback; /* or NULL */
};

/* The input that an output is fed back to, or NULL. */
static const char *fed_input(const struct gaps *g, const char *output)
{
    for (int i = 0; g->feedback && i < g->feedback->count; i++)
        if (g->feedback->pair[i].value->kind == Y_SCALAR && !strcmp(g->feedback->pair[i].value->text, output))
            return g->feedback->pair[i].key->text;
    return NULL;
}

static void know(const struct gaps *g, struct names *known, const char *output)
{
    const char *input = fed_input(g, output);
    names_add(known, output, span_none());
    if (input)
        names_add(known, input, span_none());
}

/* Numbers that say how many elements there are, as far as that can be told: integers that the writer (for places, any
 * stage) has of segments; and what has fewer dimensions and is computed from these. */
static void find_known(const struct gaps *g, int writer, const struct output *o, struct names *known)
{
    const struct part *part = g->sb->part;
    for (int i = 0; i < g->sb->nparts; i++)
        for (int k = 0; (i == writer || output_is_placed(o)) && k < part[i].own->noutputs; k++) {
            const struct output *total = &part[i].own->output[k];
            if (output_moment(total) == AT_TOTAL && total->array.nfields == 1 && ty_is_int(total->array.field[0].type))
                know(g, known, total->array.name);
        }
    for (int before = -1; before < known->n;) {
        before = known->n;
        for (int i = 0; i < g->sb->nparts; i++) {
            bool knows = false;
            for (int k = 0; k < part[i].own->ninputs; k++)
                knows |= names_find(known, part[i].own->input[k].array.name) >= 0;
            for (int k = 0; knows && k < part[i].own->noutputs; k++)
                if (part[i].own->output[k].array.rank < o->array.rank)
                    know(g, known, part[i].own->output[k].array.name);
        }
    }
}

/* Does a problem read elements of the array that may not be there? */
static bool reads_gaps(const struct problem *p, const char *array, const struct names *known)
{
    const int in = problem_input(p, array);
    if (in < 0 || !p->input[in].used || (p->input[in].role != ROLE_ELEMENT && !p->input[in].summed) || p->offsets >= 0)
        return false;
    for (int i = 0; i < p->ninputs; i++)
        if (names_find(known, p->input[i].array.name) >= 0)
            return false;
    return true;
}

/* The first stage of `from` and those after it that does; NULL: none. */
static const char *reader_of(const struct gaps *g, int from, const char *array, const struct names *known)
{
    for (int i = from; i < g->sb->nparts; i++)
        if (reads_gaps(g->sb->part[i].own, array, known))
            return g->sb->part[i].name;
    return NULL;
}

static void check_output(const struct gaps *g, int writer, const struct output *o)
{
    const struct gap *gap = gap_of(g->sb->part[writer].own, o);
    const int m = made_find(g->sb, o->array.name);
    struct names known = { .arena = g->sb->b->a };
    if (!gap || m < 0)
        return;
    if (o->role == OUT_KEPT || output_is_placed(o))
        find_known(g, writer, o, &known);
    const struct made *made = &g->sb->made[m];
    const char *fed = fed_input(g, made->name), *when = "";
    const char *reader = made->leaves ? NULL : reader_of(g, writer + 1, made->name, &known);
    if (!reader && fed) {
        reader = reader_of(g, 0, fed, &known);
        when = " of the next step";
    }
    if (reader)
        diag_hint(g->sb->b->d,
                  diag_warning(g->sb->b->d, D_UNWRITTEN, made->at, "%s '%s' %s, and stage '%s'%s reads them", gap->of,
                               made->name, gap->is, reader, when),
                  "%s", gap->hint);
}

void unwritten_check(struct stages_builder *sb)
{
    const struct ynode *iterate = schema_get(sb->b->root, ST_STAGES, "iterate");
    const bool again = sb->b->p->steps_param >= 0 || sb->b->p->steps > 1;
    const struct gaps g = { sb, iterate && again ? schema_get(iterate, ST_LOOP, "feedback") : NULL };
    for (int i = 0; i < sb->nparts; i++)
        for (int o = 0; o < sb->part[i].own->noutputs; o++)
            check_output(&g, i, &sb->part[i].own->output[o]);
}
