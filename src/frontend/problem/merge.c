/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c - more dimensions than kernels know: neighbours that are treated alike become one; where that is not enough, all
 * that are kept and all that are combined.
 *
 * Axes i and i + 1 of the space are joined where both are kept or both are combined, where every array that has one of
 * them has both, side by side and whole, and where no expression reads at an offset along one of them.  index() of one
 * of them is computed from that of the whole.  The extent that they have together is a size like any other, whose number lies after those of the sizes
 * that a launch is given (struct dimension: part).  Arrays remember how the spec writes them.
 *
 * Where all that are kept become one, an array in which these are not side by side keeps its dimensions, and is read as a
 * table, at indices that are computed from that of the whole; an output per element is written so, too (spread).
 */
#include "frontend/frontend_impl.h"

#include <string.h>

/* Why an axis is joined with none, or two are not joined with each other; `what` NULL: nothing speaks against it. */
struct reason {
    const char *what;
    struct span at;
};

struct merging {
    struct builder *b;
    int rank;
    struct reason alone[PROG_RANK_MAX], apart[PROG_RANK_MAX]; /* apart[i]: from i + 1 */
    int first[PROG_RANK_MAX];                                 /* axis: the first of those that it becomes one with */
    struct prog_dim joined[PROG_RANK_MAX];                    /* at the first one: their extent */
    struct reason own;                                        /* … and why dimensions that are apart are not one */
};

static const char *name_of(const struct merging *m, int axis)
{
    struct str text = { 0 };
    dim_print(m->b, m->b->p->space[axis].extent, &text);
    const char *copy = arena_strdup(m->b->a, text.text ? text.text : "");
    str_finish(&text);
    return copy;
}

/* ---- what expressions tell apart --------------------------------------------------------------------------------- */

static void stands_alone(struct merging *m, int axis, const char *why, struct span at)
{
    if (axis >= 0 && !m->alone[axis].what)
        m->alone[axis] = (struct reason){ arena_printf(m->b->a, "'%s' is %s", name_of(m, axis), why), at };
}

/* The axes that the dimensions of an input follow. */
static void axes_of(const struct merging *m, int input, int *axis)
{
    for (int d = 0; d < PROG_RANK_MAX; d++)
        axis[d] = -1;
    match_axes(m->b, &m->b->input[input].array, axis);
}

/* Its dimensions are its own. */
static bool is_table(const struct input *in) { return in->role == ROLE_TABLE && !in->summed; }

static void input_alone(struct merging *m, int input, const char *why, struct span at)
{
    int axis[PROG_RANK_MAX];
    axes_of(m, input, axis);
    for (int d = 0; !is_table(&m->b->input[input]) && d < m->b->input[input].array.rank; d++)
        stands_alone(m, axis[d], why, at);
}

/* A name after a word and a parenthesis. */
static void called(struct merging *m, const char *function, const char *name, struct span at)
{
    const int input = input_find(m->b, name);
    if (input >= 0 && (!strcmp(function, "at") || !strcmp(function, "gather")))
        input_alone(m, input, arena_printf(m->b->a, "a dimension of '%s', which is read with %s()", name, function),
                    at);
}

/* x[-1, 0], from its bracket on: the numbers that are not zero. */
static void offsets_of(struct merging *m, struct lexer *l, int input)
{
    int axis[PROG_RANK_MAX], d = 0;
    axes_of(m, input, axis);
    for (struct token t = lex_next(l); t.kind != TOK_END && t.kind != TOK_BAD; t = lex_next(l)) {
        if (t.kind == TOK_OP && !strcmp(t.text, "]"))
            return;
        d += t.kind == TOK_OP && !strcmp(t.text, ",");
        if (t.kind == TOK_INT && t.integer && d < m->b->input[input].array.rank)
            stands_alone(m, axis[d], "read at an offset", source_span(&l->source, t.from, t.to));
    }
}

static void look_at(struct merging *m, const struct ynode *n)
{
    for (int i = 0; n->kind != Y_SCALAR && i < n->count; i++)
        look_at(m, n->kind == Y_MAPPING ? n->pair[i].value : n->item[i]);
    if (n->kind != Y_SCALAR)
        return;
    struct lexer l = { .arena = m->b->a, .source = source_of(n) };
    const char *before = "", *earlier = "";
    for (struct token t = lex_next(&l); t.kind != TOK_END && t.kind != TOK_BAD; t = lex_next(&l)) {
        const char *text = t.kind == TOK_NAME || t.kind == TOK_OP ? t.text : "";
        if (t.kind == TOK_NAME && !strcmp(before, "("))
            called(m, earlier, text, source_span(&l.source, t.from, t.to));
        if (t.kind == TOK_OP && !strcmp(text, "[") && input_find(m->b, before) >= 0)
            offsets_of(m, &l, input_find(m->b, before));
        earlier = before;
        before = text;
    }
}

static void look_everywhere(struct merging *m)
{
    static const char *const places[] = { "by", "let", "map", "outputs", "reductions", "scans", "segments" };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const struct ynode *n = ynode_get(m->b->root, places[i]);
        if (n)
            look_at(m, n);
    }
}

/* ---- what arrays tell apart -------------------------------------------------------------------------------------- */

static int where(const struct prog_array *array, const int *axis, int of)
{
    for (int d = 0; d < array->rank; d++)
        if (axis[d] == of)
            return d;
    return -1;
}

static bool whole(const struct merging *m, const struct prog_array *array, int d, int axis)
{
    const struct prog_dim *extent = &m->b->p->space[axis].extent;
    return array->dim[d].size == extent->size && array->dim[d].add == extent->add;
}

static void keep_apart(struct merging *m, const struct prog_array *array, const int *axis, struct span at)
{
    for (int i = 0; i + 1 < m->rank; i++) {
        const int d = where(array, axis, i), e = where(array, axis, i + 1);
        const char *why = (d < 0) != (e < 0)     ? "has only one of them"
                          : d >= 0 && e != d + 1 ? "does not have them side by side"
                          : d >= 0 && !(whole(m, array, d, i) && whole(m, array, e, i + 1)) ? "is smaller"
                                                                                            : NULL;
        if (why && !m->apart[i].what)
            m->apart[i] = (struct reason){ arena_printf(m->b->a, "'%s' %s", array->name, why), at };
    }
}

static bool reduced(const struct merging *m, int axis) { return m->b->p->space[axis].reduced; }

/* Dimensions of an output that follow axes; false: its places are its own, or its shape is an error to be reported. */
static bool output_axes(const struct merging *m, int output, int *axis)
{
    const struct output *out = &m->b->output[output];
    const struct ynode *node = m->b->output_node[output];
    struct prog_array array = out->array;
    bool all = true, kept = true;
    if (!node || output_has_place(node))
        return false;
    for (int d = 0; d < PROG_RANK_MAX; d++)
        axis[d] = -1;
    for (int d = 0; d < m->b->p->nby && d < array.rank; d++)
        array.dim[d] = (struct prog_dim){ -1, 0 }; /* no axis has this extent */
    match_axes(m->b, &array, axis);
    for (int i = 0; i < m->rank; i++) {
        const bool has = where(&array, axis, i) >= 0;
        all &= has;
        kept &= has == (!reduced(m, i) && m->b->p->kind != KIND_STENCIL);
    }
    return all || kept;
}

static void find_reasons(struct merging *m)
{
    int axis[PROG_RANK_MAX];
    struct builder *b = m->b;
    look_everywhere(m);
    for (int i = 0; i < b->ninputs; i++)
        if (b->input[i].role == ROLE_ELEMENT || b->input[i].summed) {
            axes_of(m, i, axis);
            keep_apart(m, &b->input[i].array, axis, b->input[i].at);
        }
    for (int o = 0; o < b->noutputs; o++)
        if (output_axes(m, o, axis))
            keep_apart(m, &b->output[o].array, axis, b->output[o].at);
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

/* The axis of the same group that comes next; rank: there is none. */
static int next_of(const struct merging *m, int i)
{
    int k = i + 1;
    while (k < m->rank && m->first[k] != m->first[i])
        k++;
    return k;
}

/* The extent of a group; false: its numbers are too large together. */
static bool product_of(struct merging *m, int first, struct prog_dim *out)
{
    struct builder *b = m->b;
    struct dimension size = { .max = INT64_MAX, .multiple_of = 1, .times = 1, .at = span_none() };
    for (int i = first; i < m->rank; i = next_of(m, i)) {
        const struct prog_dim *e = &b->p->space[i].extent;
        if (e->size >= 0)
            size.part[size.nparts++] = e->size;
        else if (__builtin_mul_overflow(size.times, e->add, &size.times))
            return false;
        size.name = arena_printf(b->a, "%s%s%s", size.name ? size.name : "", size.name ? "*" : "", name_of(m, i));
    }
    *out = (struct prog_dim){ size.nparts ? b->nsizes + b->p->njoined : -1, size.nparts ? 0 : size.times };
    if (size.nparts)
        b->size[b->nsizes + b->p->njoined++] = size;
    return true;
}

static bool alike(const struct merging *m, int i)
{
    return !m->apart[i].what && !m->alone[i].what && !m->alone[i + 1].what && reduced(m, i) == reduced(m, i + 1);
}

/* Groups of neighbours that are treated alike.  How many. */
static int group(struct merging *m)
{
    int groups = 0;
    for (int i = 0; i < m->rank; i++) {
        m->first[i] = i > 0 && alike(m, i - 1) ? m->first[i - 1] : i;
        groups += m->first[i] == i;
    }
    return groups;
}

/* How many groups are left: one whose extent is too large is none. */
static int join(struct merging *m)
{
    struct builder *b = m->b;
    int groups = 0;
    struct dimension *sizes = arena_new(b->a, struct dimension, b->nsizes + PROG_RANK_MAX);
    if (b->nsizes)
        memcpy(sizes, b->size, sizeof *sizes * (size_t)b->nsizes);
    b->size = sizes; /* all are known: nothing is added to them any more */
    for (int i = 0; i < m->rank; i++) {
        m->joined[i] = b->p->space[i].extent;
        if (m->first[i] == i && next_of(m, i) < m->rank && !product_of(m, i, &m->joined[i]))
            for (int k = m->rank; k-- > i;)
                m->first[k] = m->first[k] == i ? k : m->first[k];
        groups += m->first[i] == i;
    }
    return groups;
}

/* Does an array have each group whole and side by side, or not at all, so that it has the group's dimension in its
 * place? */
static bool has_groups(const struct merging *m, const struct prog_array *array, const int *axis)
{
    bool has = true;
    for (int i = 0; i < m->rank; i++) {
        const int next = next_of(m, i), d = where(array, axis, i), e = next < m->rank ? where(array, axis, next) : -1;
        if (next < m->rank)
            has = has && (d < 0) == (e < 0) &&
                  (d < 0 || (e == d + 1 && whole(m, array, d, i) && whole(m, array, e, next)));
    }
    return has;
}

/* What needs dimensions as the spec has them, so that none are computed from an index along several that are apart. */
static struct reason needs_its_own(const struct merging *m)
{
    const struct builder *b = m->b;
    const struct ynode *by = ynode_get(b->root, "by"), *iterate = ynode_get(b->root, "iterate"),
                       *skips = interior_of(b);
    int axis[PROG_RANK_MAX];
    if (by)
        return (struct reason){ "'by'", by->at };
    if (keeps_some(b))
        return (struct reason){ "'where'", ynode_get(b->root, "outputs")->at };
    for (int i = 0; b->p->kind == KIND_STENCIL && i < b->ninputs; i++)
        if (b->input[i].role == ROLE_GATHER)
            return (struct reason){ "gather()", b->input[i].at };
    if (b->p->kind == KIND_STENCIL && (iterate || skips))
        return iterate ? (struct reason){ "'iterate'", iterate->at } : (struct reason){ "the boundary", skips->at };
    for (int o = 0; o < b->noutputs; o++)
        if (output_axes(m, o, axis) && b->output[o].array.rank < m->rank && !has_groups(m, &b->output[o].array, axis))
            return (struct reason){
                arena_printf(b->a, "'%s', which is smaller than the space,", b->output[o].array.name), b->output[o].at
            };
    return (struct reason){ NULL, span_none() };
}

/* Groups of all dimensions that are kept, and of all that are combined, in their order: arrays that do not have these are
 * read, and written per element, at places that are computed.  False: that is not possible. */
static bool spread(struct merging *m)
{
    int first[2] = { -1, -1 };
    for (int i = 0; i < m->rank; i++) {
        int *own = &first[reduced(m, i)];
        *own = *own < 0 ? i : *own;
        m->first[i] = *own;
    }
    m->own = needs_its_own(m);
    return !m->own.what;
}

/* The array with its joined dimensions; within: where each of those that it had has gone, or NULL. */
static const struct prog_array *rewrite(const struct merging *m, struct prog_array *array, const int *axis, int *within)
{
    struct prog_array *written = arena_new(m->b->a, struct prog_array, 1);
    *written = *array;
    array->rank = 0;
    for (int d = 0; d < written->rank; d++) {
        const int i = axis[d];
        const bool one = i >= 0 && m->first[i] != i, many = i >= 0 && !one && next_of(m, i) < m->rank;
        if (!one)
            array->dim[array->rank++] = many ? m->joined[i] : written->dim[d];
        if (within)
            within[d] = array->rank - 1;
    }
    return written;
}

/* Groups are axes of the space in the order of their last dimensions. */
static void rewrite_space(struct merging *m)
{
    struct builder *b = m->b;
    int rank = 0;
    for (int i = 0; i < m->rank; i++) {
        if (next_of(m, i) < m->rank)
            continue;
        for (int k = 0; k < m->rank; k++)
            if (m->first[k] == m->first[i])
                b->own_axis[k] = rank;
        b->p->space[rank++] = (struct axis){ m->joined[m->first[i]], b->p->space[i].reduced };
    }
    b->p->rank = rank;
}

static void rewrite_input(struct merging *m, struct input *in)
{
    int axis[PROG_RANK_MAX];
    match_axes(m->b, &in->array, axis);
    bool one_by_one = false;
    for (int i = 0; i < m->rank; i++)
        one_by_one |=
            where(&in->array, axis, i) >= 0 && m->alone[i].what && (m->first[i] != i || next_of(m, i) < m->rank);
    if (has_groups(m, &in->array, axis) && !one_by_one) {
        in->written = rewrite(m, &in->array, axis, in->within);
        return;
    }
    in->role = ROLE_TABLE;
    in->spread = in->placed = true;
    for (int d = 0; d < PROG_RANK_MAX; d++)
        in->axis[d] = -1;
}

static void rewrite_output(struct merging *m, struct output *out, const int *axis)
{
    out->spread = !has_groups(m, &out->array, axis);
    if (!out->spread)
        out->written = rewrite(m, &out->array, axis, NULL);
    memcpy(out->axis, axis, sizeof out->axis); /* of the space as the spec has it, until the types are known */
}

static void rewrite_all(struct merging *m)
{
    struct builder *b = m->b;
    int axis[PROG_RANK_MAX];
    for (int i = 0; i < b->ninputs; i++)
        if (b->input[i].role == ROLE_ELEMENT || b->input[i].summed)
            rewrite_input(m, &b->input[i]);
    for (int o = 0; o < b->noutputs; o++)
        if (output_axes(m, o, axis))
            rewrite_output(m, &b->output[o], axis);
    rewrite_space(m);
    for (int i = 0; i < b->ninputs; i++)
        if (b->input[i].role == ROLE_ELEMENT)
            match_axes(b, &b->input[i].array, b->input[i].axis);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void refuse(const struct merging *m, int left)
{
    struct builder *b = m->b;
    const struct ynode *node = ynode_get(b->root, "inputs");
    struct str text = { 0 };
    for (int i = 0; i < m->rank; i++)
        str_printf(&text, "%s%s", i == 0 ? "" : m->first[i] == i ? "], [" : ", ", name_of(m, i));
    struct diag *d = diag_error(b->d, D_BAD_SPACE, node->at,
                                "the dimensions become [%s], which are %d; at most %d are possible once those that are "
                                "treated alike are one",
                                text.text ? text.text : "", left, SPACE_MAX);
    str_finish(&text);
    for (int i = 0; i + 1 < m->rank; i++) {
        const struct ynode *over = ynode_get(b->root, "over");
        const struct reason combined = { "only one of them is combined", over ? over->at : node->at };
        const struct reason *why = reduced(m, i) != reduced(m, i + 1) ? &combined
                                   : m->alone[i].what                 ? &m->alone[i]
                                   : m->alone[i + 1].what             ? &m->alone[i + 1]
                                                                      : &m->apart[i];
        if (m->first[i + 1] != m->first[i] && why->what)
            diag_note(b->d, d, why->at, "'%s' and '%s' are two: %s", name_of(m, i), name_of(m, i + 1), why->what);
    }
    if (m->own.what)
        diag_note(b->d, d, m->own.at, "dimensions that are apart are not one: %s needs them as they are", m->own.what);
    diag_hint(b->d, d,
              "neighbours are one where both are kept or both are combined, each array has both side by side or "
              "neither, and no expression reads at an offset along one of them");
}

/* Places of kept elements, and beginnings of segments, go along one dimension, or along all. */
static bool goes_along_one(const struct builder *b)
{
    int along = 0;
    for (int i = 0; i < b->p->rank; i++)
        along += b->p->space[i].reduced;
    return b->p->kind == KIND_SCAN && along > 1 && (starts_node(b) || (keeps_some(b) && along < b->p->rank));
}

/* Are these groups what kernels know? */
static bool suffice(const struct merging *m, int groups)
{
    int along = 0;
    for (int i = 0; i < m->rank; i++)
        along += m->first[i] == i && reduced(m, i);
    return groups <= SPACE_MAX && !(along > 1 && goes_along_one(m->b));
}

bool build_merged(struct builder *b)
{
    struct merging *m = arena_new(b->a, struct merging, 1);
    m->b = b;
    m->rank = b->p->rank;
    for (int i = 0; i < b->ninputs; i++)
        for (int d = 0; d < PROG_RANK_MAX; d++)
            b->input[i].within[d] = d;
    b->nown = m->rank;
    for (int i = 0; i < m->rank; i++) {
        b->own[i] = b->p->space[i].extent;
        b->own_axis[i] = i;
    }
    if (m->rank <= SPACE_MAX && !goes_along_one(b)) {
        drop_plain_places(b);
        return true;
    }
    if (ynode_get(b->root, "segments") && !starts_node(b))
        return false; /* reported: these need one dimension */
    if (spread(m))    /* else the order of an output could leave too many dimensions, and places do not */
        drop_plain_places(b);
    find_reasons(m);
    if (!suffice(m, group(m)) && !spread(m))
        group(m);
    if (join(m) > SPACE_MAX) {
        refuse(m, group(m));
        return false;
    }
    rewrite_all(m);
    return true;
}
