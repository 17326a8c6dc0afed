/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c - more dimensions than kernels know: neighbours that are treated alike become one.
 *
 * Axes i and i + 1 of the space are joined where both are kept or both are combined, where every array that has one of
 * them has both, side by side and whole, and where no expression reads at an offset along one of them.  index() of one
 * of them is computed from that of the whole.  The extent that they have together is a size like any other, whose number lies after those of the sizes
 * that a launch is given (struct dimension: part).  Arrays remember how the spec writes them.
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

/* The extent of axes first … last; false: their numbers are too large together. */
static bool product_of(struct merging *m, int first, int last, struct prog_dim *out)
{
    struct builder *b = m->b;
    struct dimension size = { .max = INT64_MAX, .multiple_of = 1, .times = 1, .at = span_none() };
    for (int i = first; i <= last; i++) {
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

static void join(struct merging *m)
{
    struct builder *b = m->b;
    struct dimension *sizes = arena_new(b->a, struct dimension, b->nsizes + PROG_RANK_MAX);
    if (b->nsizes)
        memcpy(sizes, b->size, sizeof *sizes * (size_t)b->nsizes);
    b->size = sizes; /* all are known: nothing is added to them any more */
    for (int i = 0, last; i < m->rank; i = last + 1) {
        for (last = i; last + 1 < m->rank && alike(m, last);)
            last++;
        if (last > i && !product_of(m, i, last, &m->joined[i]))
            last = i;
        if (last == i)
            m->joined[i] = b->p->space[i].extent;
        for (int k = i; k <= last; k++)
            m->first[k] = i;
    }
}

/* The array with its joined dimensions; within: where each of those that it had has gone, or NULL. */
static const struct prog_array *rewrite(const struct merging *m, struct prog_array *array, const int *axis, int *within)
{
    struct prog_array *written = arena_new(m->b->a, struct prog_array, 1);
    *written = *array;
    array->rank = 0;
    for (int d = 0; d < written->rank; d++) {
        const int i = axis[d];
        const bool one = i >= 0 && m->first[i] != i, many = i >= 0 && !one && i + 1 < m->rank && m->first[i + 1] == i;
        if (!one)
            array->dim[array->rank++] = many ? m->joined[i] : written->dim[d];
        if (within)
            within[d] = array->rank - 1;
    }
    return written;
}

static void rewrite_all(struct merging *m)
{
    struct builder *b = m->b;
    int axis[PROG_RANK_MAX], rank = 0;
    for (int i = 0; i < b->ninputs; i++)
        if (b->input[i].role == ROLE_ELEMENT || b->input[i].summed) {
            axes_of(m, i, axis);
            b->input[i].written = rewrite(m, &b->input[i].array, axis, b->input[i].within);
        }
    for (int o = 0; o < b->noutputs; o++)
        if (output_axes(m, o, axis))
            b->output[o].written = rewrite(m, &b->output[o].array, axis, NULL);
    for (int i = 0; i < m->rank; i++)
        if (m->first[i] == i)
            b->p->space[rank++] = (struct axis){ m->joined[i], b->p->space[i].reduced };
    b->p->rank = rank;
    for (int i = 0, axis_of = -1; i < m->rank; i++)
        b->own_axis[i] = axis_of += m->first[i] == i;
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
    diag_hint(b->d, d,
              "neighbours are one where both are kept or both are combined, each array has both side by side or "
              "neither, and no expression reads at an offset along one of them");
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
    if (m->rank <= SPACE_MAX)
        return true;
    const struct ynode *segments = ynode_get(b->root, "segments");
    if (segments && !(segments->kind == Y_MAPPING && ynode_get(segments, "starts")))
        return false; /* reported: these need one dimension */
    find_reasons(m);
    join(m);
    int left = 0;
    for (int i = 0; i < m->rank; i++)
        left += m->first[i] == i;
    if (left > SPACE_MAX) {
        refuse(m, left);
        return false;
    }
    rewrite_all(m);
    return true;
}

/* ---- indices ------------------------------------------------------------------------------------------------------ */

static struct expr *number_of(struct builder *b, struct prog_dim dim, struct span at)
{
    struct expr *e = expr_new(b->a, dim.size < 0 ? EX_CONST : EX_SIZE, TY_I64, at);
    e->which = dim.size < 0 ? 0 : dim.size;
    e->imm.i = dim.size < 0 ? dim.add : 0;
    return e;
}

static struct expr *binary(struct builder *b, enum binary op, const struct expr *x, const struct expr *y)
{
    struct expr *e = expr_new(b->a, EX_BINARY, TY_I64, x->at);
    e->op = op;
    e->nargs = 2;
    e->arg[0] = x;
    e->arg[1] = y;
    return e;
}

const struct expr *own_index(struct builder *b, int own, struct span at)
{
    const int axis = b->own_axis[own];
    struct expr *index = expr_new(b->a, EX_INDEX, TY_I64, at), *inner = NULL;
    index->which = axis;
    for (int i = own + 1; i < b->nown && b->own_axis[i] == axis; i++) {
        struct expr *n = number_of(b, b->own[i], at);
        inner = inner ? binary(b, BIN_MUL, inner, n) : n;
    }
    if (inner)
        index = binary(b, BIN_DIV, index, inner);
    if (own > 0 && b->own_axis[own - 1] == axis)
        index = binary(b, BIN_REM, index, number_of(b, b->own[own], at));
    return index;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static int64_t product(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

void build_joined(struct builder *b)
{
    for (int i = b->nsizes; i < b->nsizes + b->p->njoined; i++) {
        struct dimension *d = &b->size[i];
        int64_t multiple;
        d->min = d->max = d->multiple_of = d->times;
        for (int k = 0; k < d->nparts; k++) {
            const struct dimension *part = &b->size[d->part[k]];
            d->min = product(d->min, part->min);
            d->max = product(d->max, part->max);
            if (!__builtin_mul_overflow(d->multiple_of, part->multiple_of, &multiple))
                d->multiple_of = multiple;
        }
    }
}

int64_t problem_size(const struct problem *p, int i, const int64_t *size)
{
    if (i < p->nsizes)
        return size[i];
    int64_t n = p->size[i].times;
    for (int k = 0; k < p->size[i].nparts; k++) {
        const int64_t part = size[p->size[i].part[k]];
        if (part < 0)
            return -1;
        n = product(n, part);
    }
    return n;
}

int64_t problem_elements(const struct problem *p, const struct prog_array *a, const int64_t *size)
{
    int64_t elements = 1, bytes;
    for (int d = 0; d < a->rank; d++) {
        const int64_t extent = problem_extent(p, &a->dim[d], size);
        if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements))
            return -1;
    }
    return __builtin_mul_overflow(elements, (int64_t)a->stride, &bytes) ? -1 : elements;
}
