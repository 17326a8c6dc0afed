/* SPDX-License-Identifier: Apache-2.0 */
/* inputs.c - inputs, their roles, and the iteration space that they span.
 *
 * Axes are found by the names of dimensions; constant dimensions are matched in order with axes of the same extent.
 */
#include "frontend/frontend_impl.h"

/* ---- roles ---- */

/* Collects the names that stand as offsets in gather(x, NAME, …), by the tokens alone. */
static void collect_gathers(struct builder *b, const struct ynode *n, const char ***names, int *count, int *capacity)
{
    for (int i = 0; n->kind != Y_SCALAR && i < n->count; i++)
        collect_gathers(b, n->kind == Y_MAPPING ? n->pair[i].value : n->item[i], names, count, capacity);
    if (n->kind != Y_SCALAR || !strstr(n->text, "gather"))
        return;
    static const char *const pattern[] = { "gather", "(", NULL, ",", NULL };
    struct lexer l = { .arena = b->a, .source = source_of(n) };
    int matched = 0;
    for (struct token t = lex_next(&l); t.kind != TOK_END; t = lex_next(&l)) {
        bool named = t.kind == TOK_NAME || t.kind == TOK_OP;
        if (named && !strcmp(t.text, "gather"))
            matched = 1;
        else if (matched && named && (pattern[matched] ? !strcmp(t.text, pattern[matched]) : t.kind == TOK_NAME))
            matched++;
        else
            matched = 0;
        if (matched == 5) {
            ARENA_PUSH(b->a, *names, *count, *capacity, t.text);
            matched = 0;
        }
    }
}

static void find_gathers(struct builder *b)
{
    static const char *const places[] = { "let", "map", "outputs", "reductions", "scans" };
    const char **names = NULL;
    int capacity = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const struct ynode *n = ynode_get(b->root, places[i]);
        if (n)
            collect_gathers(b, n, &names, &b->ngather_names, &capacity);
    }
    b->gather_name = names;
}

static enum input_role role_of(const struct builder *b, const char *name)
{
    const struct ynode *segments = schema_get(b->root, ST_TOP, "segments");
    const struct ynode *offsets = segments ? schema_get(segments, ST_SEGMENTS, "offsets") : NULL;
    const struct ynode *flags = segments ? schema_get(segments, ST_SEGMENTS, "flags") : NULL;
    if (offsets && !strcmp(offsets->text, name))
        return ROLE_OFFSETS;
    if (flags && !strcmp(flags->text, name))
        return ROLE_FLAGS;
    for (int i = 0; i < b->ngather_names; i++)
        if (!strcmp(b->gather_name[i], name))
            return ROLE_GATHER;
    return ROLE_ELEMENT;
}

void build_inputs(struct builder *b)
{
    const struct ynode *node = schema_get(b->root, ST_TOP, "inputs");
    find_gathers(b);
    if (node && !node->count)
        diag_error(b->d, D_BAD_SPACE, node->at, "there is no input");
    for (int i = 0; node && i < node->count; i++) {
        const struct ynode *key = node->pair[i].key;
        struct input in = { .at = key->at };
        node_name(b, key, "an input");
        if (!parse_array(b, node->pair[i].value, key->text, false, &in.array))
            b->incomplete = true;
        in.role = role_of(b, key->text);
        for (int d = 0; d < PROG_RANK_MAX; d++)
            in.axis[d] = -1;
        ARENA_PUSH(b->a, b->input, b->ninputs, b->cap_inputs, in);
    }
    for (int i = 0; i < b->ninputs; i++)
        if (size_find(b, b->input[i].array.name) >= 0)
            diag_error(b->d, D_DUPLICATE_NAME, b->input[i].at, "'%s' is a dimension already, and has its size as value",
                       b->input[i].array.name);
}

/* ---- the iteration space ---- */

static bool same_dim(struct prog_dim x, struct prog_dim y)
{
    return x.size == y.size && (x.size >= 0 || x.add == y.add);
}

/* Matches dims with those of `space`; unmatched ones get -1. Returns how many were matched. */
static int match(const struct prog_array *array, const struct prog_dim *space, int rank, int *axis)
{
    bool used[SPACE_MAX * 8] = { false };
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
    struct prog_dim space[SPACE_MAX];
    for (int i = 0; i < b->p->rank; i++)
        space[i] = b->p->space[i].extent;
    return match(array, space, b->p->rank, axis) == array->rank;
}

/* The first of the names that is meant, and is not taken; n: none. */
static int name_meant(const char *const *names, int n, const bool *taken, const char *text)
{
    int i = 0;
    while (i < n && ((taken && taken[i]) || strcmp(names[i], text) != 0))
        i++;
    return i;
}

/* `space` puts the n dimensions that there are into an order. */
static void order_space(struct builder *b, struct prog_dim *all, int n)
{
    const struct ynode *node = schema_get(b->root, ST_TOP, "space");
    const char *names[SPACE_MAX];
    struct prog_dim order[SPACE_MAX];
    bool taken[SPACE_MAX] = { false };
    for (int i = 0; i < n; i++)
        names[i] = all[i].size < 0 ? arena_printf(b->a, "%lld", (long long)all[i].add) : b->size[all[i].size].name;
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
            struct diag *m = diag_error(b->d, D_BAD_SPACE, item->at, "no input has a dimension '%s'", item->text);
            diag_suggest(b->d, m, item->text, names, n);
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

void build_space(struct builder *b)
{
    struct prog_dim all[SPACE_MAX + PROG_RANK_MAX], own[SPACE_MAX];
    int n = 0, axis[PROG_RANK_MAX];
    const struct prog_dim *order = all;
    for (int i = 0; i < b->ninputs && n <= SPACE_MAX; i++) {
        if (b->input[i].role != ROLE_ELEMENT)
            continue;
        const struct prog_array *array = &b->input[i].array;
        match(array, all, n, axis);
        for (int d = 0; d < array->rank; d++)
            if (axis[d] < 0)
                all[n++] = array->dim[d];
    }
    if (n > SPACE_MAX || (!n && !b->incomplete)) {
        const struct ynode *node = ynode_get(b->root, "inputs");
        if (n)
            diag_error(b->d, D_BAD_SPACE, node->at, "the inputs have %d dimensions together; at most %d are possible",
                       n, SPACE_MAX);
        else if (b->ninputs)
            diag_error(b->d, D_BAD_SPACE, node->at, "no input has a dimension, so there is nothing to go over");
        b->incomplete = true;
        n = 0;
    }
    for (int i = 0; i < b->ninputs; i++)
        if (b->input[i].role == ROLE_ELEMENT && b->input[i].array.rank == n && n) {
            order = b->input[i].array.dim;
            break;
        }
    b->p->rank = n;
    memcpy(own, order, sizeof *own * (size_t)n);
    order_space(b, own, n);
    for (int i = 0; i < n; i++)
        b->p->space[i].extent = own[i];
    for (int i = 0; i < b->ninputs; i++)
        if (b->input[i].role == ROLE_ELEMENT)
            match_axes(b, &b->input[i].array, b->input[i].axis);
}

/* ---- what is reduced or scanned ---- */

static void mark_over(struct builder *b, const struct ynode *n)
{
    if (!node_is(b, n, Y_SCALAR, "a dimension"))
        return;
    const char *names[SPACE_MAX];
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
        p->space[i].reduced = p->kind == KIND_REDUCE || i == p->rank - 1;
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

void build_segments(struct builder *b)
{
    const struct ynode *node = schema_get(b->root, ST_TOP, "segments");
    if (!node || b->p->kind == KIND_STENCIL)
        return;
    schema_check(b->d, ST_SEGMENTS, node, K_ALL);
    const struct ynode *by_offsets = schema_get(node, ST_SEGMENTS, "offsets"),
                       *by_flags = schema_get(node, ST_SEGMENTS, "flags");
    if (ynode_get(node, "offsets") ? ynode_get(node, "flags") != NULL : !ynode_get(node, "flags")) {
        diag_error(b->d, D_BAD_SEGMENTS, node->at, "segments are given by offsets or by flags");
        return;
    }
    if (b->p->rank > 1)
        diag_error(b->d, D_BAD_SEGMENTS, node->at,
                   "irregular segments need one dimension; regular ones are kept dimensions, see over");
    if (by_offsets)
        offsets(b, by_offsets);
    if (by_flags)
        flags(b, by_flags);
}
