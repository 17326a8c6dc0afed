/* SPDX-License-Identifier: Apache-2.0 */
/* stencil_window.c - the values around a window, each loaded once.
 *
 *     inside     address of the first point + row distance (in a register) + column (in the instruction); runs of a row in
 *                vectors where rows are aligned
 *     at edges   coordinates go through the boundary mode of their dimension, unless only columns can leave the array; the rows
 *                and columns of a window share theirs
 *
 * Coordinates are 64-bit at the first point only; distances are known when the kernel is generated.
 */
#include "stencil_gen.h"

#include <stdlib.h>
#include <string.h>

#include "kb_target.h"

/* ---- cells ------------------------------------------------------------------------------------------------------------------- */

static struct cell *find_cell(struct window *w, int input, int field, const int *at)
{
    for (int i = 0; i < w->ncells; i++) {
        struct cell *c = &w->cell[i];
        if (c->input == input && c->field == field && !memcmp(c->at, at, sizeof c->at))
            return c;
    }
    return NULL;
}

static void add_cell(struct window *w, int input, int field, const int *at)
{
    if (find_cell(w, input, field, at))
        return;
    if (w->ncells == w->capacity) {
        const int capacity = w->capacity ? 2 * w->capacity : 64;
        struct cell *more = realloc(w->cell, sizeof *more * (size_t)capacity);
        if (!more)
            return; /* the value is then loaded where it is used */
        w->cell = more;
        w->capacity = capacity;
    }
    struct cell *c = &w->cell[w->ncells++];
    *c = (struct cell){ .input = input, .field = field };
    memcpy(c->at, at, sizeof c->at);
}

/* The cells of one read from every point of the window. */
static void collect(const struct expr *e, void *user)
{
    struct window *w = user;
    if (e->kind != EX_INPUT || !access_input_direct(w->g->p, e->which))
        return;
    int n = 1;
    for (int d = 0; d < w->rank; d++)
        n *= w->points[d];
    for (int i = 0; i < n; i++) {
        int at[SPACE_MAX] = { 0 };
        for (int d = w->rank - 1, rest = i; d >= 0; rest /= w->points[d], d--)
            at[d] = rest % w->points[d] + (e->noffsets ? e->offset[d] : 0);
        add_cell(w, e->which, e->field, at);
    }
}

/* ---- addresses ----------------------------------------------------------------------------------------------------------------- */

kb_val window_index(struct window *w, const struct input *in, const struct reach *r, int d, int at, kb_val *beyond)
{
    kb *k = w->g->k;
    const kb_val i = kb_add(k, w->origin[in->axis[d]], at);
    beyond->ir = NULL;
    if (at == 0 || !window_leaves(w, in->axis[d]) || (w->vectors && in->axis[d] == w->rank - 1 && at > 0 && at < w->points[w->rank - 1]))
        return i;
    const kb_val extent = w->extent[in->axis[d]];
    if (r->lo[d] == 0 && r->hi[d] == 0) /* another point of the window, which may not exist */
        return kb_min(k, i, kb_sub(k, extent, 1));
    kb_val inside = kb_imm(k, TY_BOOL, 1);
    const kb_val element = boundary_index(k, in->boundary[d].mode, i, extent, &inside);
    if (in->boundary[d].mode == BOUND_CONSTANT)
        *beyond = kb_not(k, inside);
    return element;
}

static bool structure(const struct prog_array *a) { return *a->field[0].name != 0; }

bool window_leaves(const struct window *w, int axis)
{
    return w->place == PLACE_EDGE || (w->place == PLACE_ROWS && axis == w->rank - 1);
}

/* Elements between the first point and the row of `at`. */
static kb_val row_distance(struct window *w, const int *at)
{
    kb *k = w->g->k;
    kb_val row = kb_imm(k, TY_I64, 0);
    for (int d = 0; d < w->rank - 1; d++)
        row = kb_mul(k, kb_add(k, row, at[d]), w->extent[d + 1]);
    return row;
}

kb_ptr window_row(struct window *w, const struct prog_array *a, kb_ptr p, const int *at)
{
    kb *k = w->g->k;
    const int scale = structure(a) ? a->stride : 1;
    kb_val first = w->origin[0];
    for (int d = 1; d < w->rank; d++)
        first = kb_add(k, kb_mul(k, first, w->extent[d]), w->origin[d]);
    p = kb_advance(k, p, kb_mul(k, first, scale));
    return kb_advance(k, p, kb_mul(k, row_distance(w, at), scale));
}

static kb_val load_inside(struct window *w, int input, int field, const int *at)
{
    kb *k = w->g->k;
    const struct prog_array *a = &w->g->p->input[input].array;
    const int x = at[w->rank - 1];
    kb_ptr p = window_row(w, a, gen_input(w->g, input), at);
    if (!structure(a))
        return kb_load(k, p, kb_imm(k, TY_I64, x));
    p = kb_advance(k, p, kb_imm(k, TY_I64, (int64_t)x * a->stride + a->field[field].offset));
    p.ty = a->field[field].type;
    return kb_load(k, p, kb_imm(k, TY_I64, 0));
}

static kb_val load_edge(struct window *w, int input, int field, const int *at)
{
    struct gen *g = w->g;
    kb *k = g->k;
    const struct input *in = &g->p->input[input];
    const struct reach r = stencil_input_reach(g->p, input);
    kb_ptr p = gen_input(g, input);
    kb_val element = kb_imm(k, TY_I64, 0), beyond[SPACE_MAX];
    for (int d = 0; d < w->rank; d++) {
        const kb_val i = window_index(w, in, &r, d, at[d], &beyond[d]);
        element = d == 0 ? i : kb_add(k, kb_mul(k, element, w->extent[d]), i);
    }
    if (w->place == PLACE_ROWS) { /* rows share the distance of a column */
        const int x = w->rank - 1;
        element = kb_sub(k, window_index(w, in, &r, x, at[x], &beyond[x]), w->origin[x]);
        p = window_row(w, &in->array, p, at);
    }
    kb_val x = gen_load_field(g, &in->array, p, element, field);
    for (int d = 0; d < w->rank; d++)
        if (beyond[d].ir)
            x = kb_select(k, beyond[d], kb_const(k, x.ty, in->boundary[d].constant[field]), x);
    return x;
}

/* ---- vectors --------------------------------------------------------------------------------------------------------------------- */

static int floor_multiple(int x, int of) { return x >= 0 ? x / of * of : -((-x + of - 1) / of * of); }

/* Is the cell with this column wanted and not loaded? */
static struct cell *waiting(struct window *w, const struct cell *like, int x)
{
    int at[SPACE_MAX];
    memcpy(at, like->at, sizeof at);
    at[w->rank - 1] = x;
    struct cell *c = find_cell(w, like->input, like->field, at);
    return c && !c->v.ir ? c : NULL;
}

/* The smallest aligned run of columns that holds all wanted ones among the vector of column x. Runs lie in the row: its length is a
 * multiple of the vector. */
static void load_run(struct window *w, const struct cell *c)
{
    kb *k = w->g->k;
    const struct prog_array *a = &w->g->p->input[c->input].array;
    const int x = c->at[w->rank - 1];
    int n = w->points[w->rank - 1];
    while (n * a->stride > 16)
        n /= 2;
    int from = floor_multiple(x, n);
    for (bool halved = true; n > 1 && halved;) {
        bool low = false, high = false;
        for (int j = 0; j < n; j++)
            *(j < n / 2 ? &low : &high) |= waiting(w, c, from + j) != NULL;
        halved = !(low && high);
        n /= halved ? 2 : 1;
        from += halved && high ? n : 0;
    }
    kb_val v[GEN_VECTOR_MAX];
    kb_load_n(k, window_row(w, a, gen_input(w->g, c->input), c->at), kb_imm(k, TY_I64, from), n, n * a->stride, v);
    for (int j = 0; j < n; j++) {
        struct cell *to = waiting(w, c, from + j);
        if (to)
            to->v = v[j];
    }
}

/* ---- windows --------------------------------------------------------------------------------------------------------------------- */

void window_init(struct window *w, struct gen *g, const kb_val *origin, const int *points, enum placement place)
{
    *w = (struct window){ .g = g, .rank = g->p->rank, .place = place, .vectors = g->c->aligned };
    if (place == PLACE_EDGE || (place == PLACE_ROWS && w->rank == 1)) /* a single row may end anywhere */
        w->vectors = false;
    for (int d = 0; d < w->rank; d++) {
        w->points[d] = points[d];
        w->origin[d] = origin[d];
        w->extent[d] = gen_extent(g, &g->p->space[d].extent);
    }
}

static kb_val load_cell(struct window *w, int input, int field, const int *at)
{
    if (w->tile && w->tile[input].staged)
        return tile_read(w, input, field, at);
    return (w->place == PLACE_INSIDE ? load_inside : load_edge)(w, input, field, at);
}

/* Halos are read in vectors too where these lie inside: rows hold whole ones. */
static bool in_vector(const struct window *w, const struct cell *c)
{
    const int x = c->at[w->rank - 1];
    if (!w->vectors || (w->tile && w->tile[c->input].staged) || structure(&w->g->p->input[c->input].array))
        return false;
    return (w->place == PLACE_INSIDE && w->rank > 1) || (x >= 0 && x < w->points[w->rank - 1]);
}

void window_load(struct window *w)
{
    stencil_each_read(w->g->p, collect, w);
    for (int i = 0; i < w->ncells; i++) {
        struct cell *c = &w->cell[i];
        if (c->v.ir)
            continue;
        if (in_vector(w, c))
            load_run(w, c);
        else
            c->v = load_cell(w, c->input, c->field, c->at);
    }
}

void window_free(struct window *w) { free(w->cell); }

kb_val window_read(struct window *w, int input, int field, const int *at)
{
    const struct cell *c = find_cell(w, input, field, at);
    if (c && c->v.ir)
        return c->v;
    return load_cell(w, input, field, at);
}
