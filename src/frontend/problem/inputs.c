/* SPDX-License-Identifier: Apache-2.0 */
/* inputs.c - inputs, their roles, and the iteration space that they span.
 *
 * Axes are found by the names of dimensions; constant dimensions are matched in order with axes of the same extent.
 */
#include "frontend/frontend_impl.h"

/* ---- roles ---- */

static enum input_role role_of(const struct builder *b, const char *name)
{
    const struct ynode *segments = schema_get(b->root, ST_TOP, "segments");
    const struct ynode *offsets = segments ? schema_get(segments, ST_SEGMENTS, "offsets") : NULL;
    const struct ynode *flags = segments ? schema_get(segments, ST_SEGMENTS, "flags") : NULL;
    if (offsets && !strcmp(offsets->text, name))
        return ROLE_OFFSETS;
    if (flags && !strcmp(flags->text, name))
        return ROLE_FLAGS;
    const unsigned as = mentioned(b, name);
    return as & AS_OFFSETS ? ROLE_GATHER : as == AS_TABLE ? ROLE_TABLE : ROLE_ELEMENT;
}

/* An input with one value per row of offsets is read inside gather(), as in a sum over the rows; unless rows are all that
 * there is to go over, or a dimension of what is gathered. */
static void build_weights(struct builder *b)
{
    for (int g = 0; g < b->ninputs; g++) {
        const int rows =
            b->input[g].role == ROLE_GATHER && b->input[g].array.rank > 0 ? b->input[g].array.dim[0].size : -1;
        bool *const has = arena_new(b->a, bool, b->ninputs + 1), other = false, gathered = false;
        for (int i = 0; rows >= 0 && i < b->ninputs; i++) {
            has[i] = false;
            for (int d = 0; d < b->input[i].array.rank; d++)
                has[i] |= b->input[i].role == ROLE_ELEMENT && b->input[i].array.dim[d].size == rows;
            other |= b->input[i].role == ROLE_ELEMENT && b->input[i].array.rank > 0 && !has[i];
            gathered |= has[i] && mentioned(b, b->input[i].array.name) & AS_GATHERED;
        }
        for (int i = 0; other && !gathered && i < b->ninputs; i++)
            if (has[i]) {
                mention(b, b->size[rows].name, AS_SUMMED);
                b->input[i].summed = b->input[i].placed = true;
                b->input[i].role = ROLE_TABLE;
            }
    }
}

void build_inputs(struct builder *b)
{
    const struct ynode *node = schema_get(b->root, ST_TOP, "inputs");
    find_mentions(b);
    if (node && !node->count)
        diag_error(b->d, D_BAD_SPACE, node->at, "there is no input");
    for (int i = 0; node && i < node->count; i++) {
        const struct ynode *key = node->pair[i].key;
        struct input in = { .at = key->at };
        node_name(b, key, "an input");
        if (!parse_array(b, node->pair[i].value, key->text, false, &in.array))
            b->incomplete = true;
        in.role = role_of(b, key->text);
        if (in.role == ROLE_FLAGS && in.array.rank > 1)
            in.role = ROLE_ELEMENT;
        for (int d = 0; d < in.array.rank; d++)
            in.summed |= in.role == ROLE_ELEMENT && sum_takes(b, in.array.dim[d]);
        if (in.summed) {
            in.role = ROLE_TABLE;
            in.placed = true;
        }
        for (int d = 0; d < PROG_RANK_MAX; d++)
            in.axis[d] = -1;
        ARENA_PUSH(b->a, b->input, b->ninputs, b->cap_inputs, in);
    }
    build_weights(b);
}

/* ---- the iteration space ---- */

static bool same_dim(struct prog_dim x, struct prog_dim y)
{
    return x.size == y.size && (x.size >= 0 || x.add == y.add);
}

/* Matches dims with those of `space`; unmatched ones get -1. Returns how many were matched. */
static int match(const struct prog_array *array, const struct prog_dim *space, int rank, int *axis)
{
    bool used[2 * PROG_RANK_MAX] = { false };
    int n = 0;
    for (int d = 0; d < array->rank; d++) {
        axis[d] = -1;
        for (int i = 0; i < rank && axis[d] < 0; i++)
            if (!used[i] && same_dim(array->dim[d], space[i])) {
                axis[d] = i;
                used[i] = true;
                n++;
            }
    }
    return n;
}

bool match_axes(const struct builder *b, const struct prog_array *array, int *axis)
{
    struct prog_dim space[PROG_RANK_MAX];
    for (int i = 0; i < b->p->rank; i++)
        space[i] = b->p->space[i].extent;
    return match(array, space, b->p->rank, axis) == array->rank;
}

bool match_own(const struct builder *b, const struct prog_array *array, int *axis)
{
    return match(array, b->own, b->nown, axis) == array->rank;
}

/* The first of the names that is meant, and is not taken; n: none. */
static int name_meant(const char *const *names, int n, const bool *taken, const char *text)
{
    int i = 0;
    while (i < n && ((taken && taken[i]) || strcmp(names[i], text) != 0))
        i++;
    return i;
}

static const char *dim_name(const struct builder *b, struct prog_dim d)
{
    return d.size < 0 ? arena_printf(b->a, "%lld", (long long)d.add) : b->size[d.size].name;
}

/* The input with a dimension of this name that is read with at() alone, or, `other`, that gives offsets or flags; NULL:
 * there is none. */
static const struct input *apart_from_space(const struct builder *b, const char *name, bool other, struct prog_dim *dim)
{
    for (int i = 0; i < b->ninputs; i++)
        for (int d = 0; d < b->input[i].array.rank; d++) {
            const enum input_role role = b->input[i].role;
            *dim = b->input[i].array.dim[d];
            if (role != ROLE_ELEMENT && (role != ROLE_TABLE) == other && !sum_takes(b, *dim) &&
                !strcmp(dim_name(b, *dim), name))
                return &b->input[i];
        }
    return NULL;
}

/* Dimensions that `space` names, of inputs that are read with at() alone, join the n dimensions that there are. */
static int add_named(const struct builder *b, struct prog_dim *all, int n)
{
    const struct ynode *node = schema_get(b->root, ST_TOP, "space");
    for (int k = 0; node && k < node->count && n <= PROG_RANK_MAX; k++) {
        struct prog_dim dim;
        bool there = node->item[k]->kind != Y_SCALAR || !apart_from_space(b, node->item[k]->text, false, &dim);
        for (int i = 0; i < n && !there; i++)
            there = same_dim(all[i], dim);
        if (!there)
            all[n++] = dim;
    }
    return n;
}

static void not_in_space(struct builder *b, const struct ynode *item, const char *const *names, int n)
{
    struct prog_dim dim;
    const struct input *in = apart_from_space(b, item->text, true, &dim);
    struct diag *m = in ? diag_error(b->d, D_BAD_SPACE, item->at,
                                     "'%s' is a dimension of '%s' alone, which gives segments or positions", item->text,
                                     in->array.name)
                        : diag_error(b->d, D_BAD_SPACE, item->at, "no input has a dimension '%s'", item->text);
    if (!in)
        diag_suggest(b->d, m, item->text, names, n);
    sum_hint(b, m, item->text);
}

const char *space_text(const struct builder *b)
{
    const char *all = "";
    for (int i = 0; i < b->nown; i++)
        all = arena_printf(b->a, "%s%s%s", all, i ? ", " : "", dim_name(b, b->own[i]));
    return all;
}

void space_hint(const struct builder *b, struct diag *m, const char *name)
{
    struct prog_dim dim;
    const struct input *in = apart_from_space(b, name, false, &dim);
    sum_hint(b, m, name);
    for (int i = 0; in && i < b->nown; i++)
        if (same_dim(b->own[i], dim))
            return;
    if (in && ynode_get(b->root, "operator") && !ynode_get(b->root, "map"))
        diag_hint(b->d, m, "'%s' is read with at() alone, so that its dimensions do not count: write map: %s",
                  in->array.name, in->array.name);
    else if (in)
        diag_hint(b->d, m, "'%s', which is read with at() alone, has the dimension '%s': write space: [%s, %s]",
                  in->array.name, name, space_text(b), name);
}

/* `space` puts the n dimensions that there are into an order. */
static void order_space(struct builder *b, struct prog_dim *all, int n)
{
    const struct ynode *node = schema_get(b->root, ST_TOP, "space");
    const char *names[PROG_RANK_MAX];
    struct prog_dim order[PROG_RANK_MAX];
    bool taken[PROG_RANK_MAX] = { false };
    for (int i = 0; i < n; i++)
        names[i] = dim_name(b, all[i]);
    if (!node || node->kind != Y_SEQUENCE || !n)
        return;
    b->p->space_given = true;
    for (int k = 0; k < node->count; k++) {
        const struct ynode *item = node->item[k];
        if (!node_is(b, item, Y_SCALAR, "a dimension"))
            return;
        const int d = name_meant(names, n, taken, item->text);
        if (d == n && name_meant(names, n, NULL, item->text) < n) {
            diag_error(b->d, D_BAD_SPACE, item->at, "'%s' stands here twice", item->text);
            return;
        }
        if (d == n) {
            not_in_space(b, item, names, n);
            return;
        }
        taken[d] = true;
        order[k] = all[d];
    }
    for (int i = 0; i < n; i++)
        if (!taken[i]) {
            diag_error(b->d, D_BAD_SPACE, node->at, "the inputs have the dimension '%s', too; it must stand here",
                       names[i]);
            return;
        }
    memcpy(all, order, sizeof *all * (size_t)n);
}

static void no_space(struct builder *b, const struct ynode *node)
{
    struct diag *m =
        diag_error(b->d, D_BAD_SPACE, node->at, "no input has a dimension, so there is nothing to go over");
    for (int i = 0; i < b->ninputs && !m->hint; i++)
        if (b->input[i].summed)
            diag_hint(b->d, m,
                      "sums inside expressions go over all dimensions of '%s'; without a dimension that is left, "
                      "write a reduce: operator: add",
                      b->input[i].array.name);
        else if (b->input[i].role == ROLE_TABLE)
            diag_hint(
                b->d, m,
                "'%s' is read with at() alone: a dimension of '%s' counts where `space` names the dimension, as in "
                "space: [%s]",
                b->input[i].array.name, b->input[i].array.name, dim_name(b, b->input[i].array.dim[0]));
}

/* The dimensions of an input that the iteration space has. */
static struct prog_array spanned(const struct builder *b, const struct input *in)
{
    struct prog_array array = { .rank = 0 };
    for (int d = 0; (in->role == ROLE_ELEMENT || in->summed) && d < in->array.rank; d++)
        if (!sum_takes(b, in->array.dim[d]))
            array.dim[array.rank++] = in->array.dim[d];
    return array;
}

static void check_names(struct builder *b)
{
    for (int i = 0; i < b->ninputs; i++)
        if (size_find(b, b->input[i].array.name) >= 0)
            diag_error(b->d, D_DUPLICATE_NAME, b->input[i].at, "'%s' is a dimension already, and has its size as value",
                       b->input[i].array.name);
}

void build_space(struct builder *b)
{
    struct prog_dim all[2 * PROG_RANK_MAX], own[PROG_RANK_MAX];
    int n = 0, axis[PROG_RANK_MAX];
    check_names(b);
    for (int i = 0; i < b->ninputs && n <= PROG_RANK_MAX; i++) {
        const struct prog_array array = spanned(b, &b->input[i]);
        match(&array, all, n, axis);
        for (int d = 0; d < array.rank; d++)
            if (axis[d] < 0)
                all[n++] = array.dim[d];
    }
    n = add_named(b, all, n);
    if (n > PROG_RANK_MAX || (!n && !b->incomplete)) {
        const struct ynode *node = ynode_get(b->root, "inputs");
        if (n)
            diag_error(b->d, D_BAD_SPACE, node->at, "the inputs have %d dimensions together; at most %d are possible",
                       n, PROG_RANK_MAX);
        else if (b->ninputs)
            no_space(b, node);
        b->incomplete = true;
        n = 0;
    }
    b->p->rank = n;
    memcpy(own, all, sizeof *own * (size_t)n);
    for (int i = b->ninputs; n && i-- > 0;) { /* the first that has all of them */
        const struct prog_array array = spanned(b, &b->input[i]);
        if (array.rank == n)
            memcpy(own, array.dim, sizeof *own * (size_t)n);
    }
    order_space(b, own, n);
    b->nown = n;
    for (int i = 0; i < n; i++)
        b->p->space[i].extent = b->own[i] = own[i];
    for (int i = 0; i < b->ninputs; i++)
        if (b->input[i].role == ROLE_ELEMENT)
            match_axes(b, &b->input[i].array, b->input[i].axis);
}

/* ---- what is reduced or scanned ---- */

static void mark_over(struct builder *b, const struct ynode *n)
{
    if (!node_is(b, n, Y_SCALAR, "a dimension"))
        return;
    const char *names[PROG_RANK_MAX];
    int count = 0;
    for (int i = 0; i < b->p->rank; i++) {
        int size = b->p->space[i].extent.size;
        if (size < 0)
            continue;
        if (!strcmp(b->size[size].name, n->text)) {
            if (b->p->space[i].reduced)
                diag_error(b->d, D_BAD_OVER, n->at, "'%s' stands here twice", n->text);
            b->p->space[i].reduced = true;
            return;
        }
        names[count++] = b->size[size].name;
    }
    if (!b->incomplete) {
        struct diag *m = diag_error(b->d, D_BAD_OVER, n->at, "'%s' is not a dimension of the iteration space", n->text);
        diag_suggest(b->d, m, n->text, names, count);
        space_hint(b, m, n->text);
    }
    b->incomplete = true;
}

void build_over(struct builder *b)
{
    const struct ynode *node = schema_get(b->root, ST_TOP, "over");
    struct problem *p = b->p;
    if (p->kind == KIND_STENCIL)
        return;
    if (node && node->kind == Y_SEQUENCE && !node->count)
        diag_error(b->d, D_BAD_OVER, node->at, "at least one dimension is needed");
    if (node && node->kind == Y_SCALAR)
        mark_over(b, node);
    for (int i = 0; node && node->kind == Y_SEQUENCE && i < node->count; i++)
        mark_over(b, node->item[i]);
    for (int i = 0; !node && i < p->rank; i++)
        p->space[i].reduced = p->kind == KIND_REDUCE || b->flat || i == p->rank - 1;
}

/* ---- irregular segments ---- */

static int segment_input(struct builder *b, const struct ynode *n)
{
    int i = input_find(b, n->text);
    if (i < 0) {
        const char **names = arena_new(b->a, const char *, b->ninputs + 1);
        for (int k = 0; k < b->ninputs; k++)
            names[k] = b->input[k].array.name;
        struct diag *m = diag_error(b->d, D_BAD_SEGMENTS, n->at, "no input is called '%s'", n->text);
        diag_suggest(b->d, m, n->text, names, b->ninputs);
        return -1;
    }
    const struct prog_array *array = &b->input[i].array;
    return array->nfields == 1 && !*array->field[0].name ? i : -2;
}

static void offsets(struct builder *b, const struct ynode *n)
{
    int i = segment_input(b, n);
    if (i == -1)
        return;
    enum ty t = i < 0 ? TY_NONE : b->input[i].array.field[0].type;
    if (i < 0 || b->input[i].array.rank != 1 || (t != TY_I32 && t != TY_U32 && t != TY_I64)) {
        if (!b->incomplete)
            diag_error(b->d, D_BAD_SEGMENTS, n->at, "offsets are an i32[k], u32[k] or i64[k]");
        return;
    }
    bool elements = false;
    for (int k = 0; k < b->ninputs; k++)
        elements |= b->input[k].role == ROLE_ELEMENT;
    if (!elements && b->p->rank)
        diag_error(b->d, D_BAD_SEGMENTS, n->at,
                   "not yet: segments between offsets where every input is read in sums; one of them must have an "
                   "element for each place");
    b->p->offsets = i;
    b->segments = b->input[i].array.dim[0];
    b->segments.add--;
}

static void flags(struct builder *b, const struct ynode *n)
{
    int i = segment_input(b, n);
    if (i == -1)
        return;
    const struct prog_array *array = i < 0 ? NULL : &b->input[i].array;
    bool good = array && array->rank == 1 && !ty_is_float(array->field[0].type) &&
                (b->p->rank != 1 || same_dim(array->dim[0], b->p->space[0].extent));
    if (!good && !b->incomplete)
        diag_error(b->d, D_BAD_SEGMENTS, n->at, "flags are integers or bools, one for each element");
    else if (b->p->kind != KIND_SCAN)
        diag_error(b->d, D_BAD_SEGMENTS, n->at, "only a scan can have flags; a reduce needs offsets");
    else if (good)
        b->p->flags = i;
}

const struct ynode *starts_node(const struct builder *b)
{
    const struct ynode *segments = schema_get(b->root, ST_TOP, "segments"),
                       *flags = segments ? schema_get(segments, ST_SEGMENTS, "flags") : NULL;
    const int input = flags ? input_find(b, flags->text) : -1;
    const struct input *in = input >= 0 ? &b->input[input] : NULL;
    if (in && (in->written ? in->written : &in->array)->rank > 1)
        return flags;
    return segments ? schema_get(segments, ST_SEGMENTS, "starts") : NULL;
}

void build_segments(struct builder *b)
{
    const struct ynode *node = schema_get(b->root, ST_TOP, "segments");
    if (!node || b->p->kind == KIND_STENCIL)
        return;
    schema_check(b->d, ST_SEGMENTS, node, K_ALL);
    const struct ynode *by_offsets = schema_get(node, ST_SEGMENTS, "offsets"),
                       *by_flags = schema_get(node, ST_SEGMENTS, "flags"), *by_starts = starts_node(b);
    if (!!ynode_get(node, "offsets") + !!ynode_get(node, "flags") + !!ynode_get(node, "starts") != 1) {
        diag_error(b->d, D_BAD_SEGMENTS, node->at, "segments are given by offsets, by flags or by starts");
        return;
    }
    if (by_starts && b->p->kind != KIND_SCAN)
        diag_hint(b->d,
                  diag_error(b->d, D_BAD_SEGMENTS, by_starts->at, "only a scan can have %s; a reduce needs offsets",
                             by_starts == by_flags ? "flags" : "starts"),
                  "a scan has one result per segment side by side in an output with `where: last`");
    if (b->p->rank > 1 && !by_starts)
        diag_hint(
            b->d,
            diag_error(b->d, D_BAD_SEGMENTS, node->at,
                       "irregular segments need one dimension; regular ones are kept dimensions, see over"),
            "scans along one dimension of several may have segments: {starts: …}, or flags of several dimensions");
    if (by_offsets)
        offsets(b, by_offsets);
    if (by_flags && !by_starts)
        flags(b, by_flags);
}
