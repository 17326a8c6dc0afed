/* SPDX-License-Identifier: Apache-2.0 */
/* window.c - the values around a window, each loaded once.
 *
 *     inside     address of the first point + row distance (in a register) + column (in the instruction); runs of a row
 *                in vectors where rows begin at vector boundaries
 *     columns    the same, but what is read sideways goes through the boundary mode of the columns; or it is loaded like the
 *                rest, and put right where it lies beyond an end of its row (ends.c)
 *     at edges   coordinates go through the boundary mode of their dimension, once for all rows and columns of a window
 *                that share them
 *
 * Coordinates are 64-bit at the first point only; distances are known when the kernel is generated.
 */
#include "stencil_gen.h"

#include <stdlib.h>
#include <string.h>

#include "llvmgen/builder/kb_target.h"

/* ---- cells ------------------------------------------------------------------------------------------------------- */

static struct cell *find_cell(struct window *w, int input, int field, const int *at)
{
    for (int i = 0; i < w->ncells; i++) {
        struct cell *c = &w->cell[i];
        if (c->input == input && c->field == field && !memcmp(c->at, at, sizeof c->at))
            return c;
    }
    return NULL;
}

static void add_cell(struct window *w, int input, int field, const int *at, bool sideways)
{
    struct cell *known = find_cell(w, input, field, at);
    if (known) {
        known->sideways |= sideways;
        return;
    }
    if (w->ncells == w->capacity) {
        const int capacity = w->capacity ? 2 * w->capacity : 64;
        struct cell *more = realloc(w->cell, sizeof *more * (size_t)capacity);
        if (!more)
            return; /* the value is then loaded where it is used */
        w->cell = more;
        w->capacity = capacity;
    }
    struct cell *c = &w->cell[w->ncells++];
    *c = (struct cell){ .input = input, .field = field, .sideways = sideways };
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
            at[d] = rest % w->points[d];
        at[w->rank - 1] += w->skewed ? stencil_skew(w->g->c, w->rank, at) : 0;
        for (int d = 0; d < e->noffsets; d++)
            at[d] += e->offset[d];
        at[0] = w->partial ? 0 : at[0];
        if (w->partial && !w->ring[e->which].staged)
            continue; /* loaded where it is needed */
        add_cell(w, e->which, e->field, at, e->noffsets && e->offset[w->rank - 1]);
    }
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static kb_val compute_index(struct window *w, int axis, int mode, int at, kb_val *beyond)
{
    kb *k = w->g->k;
    const kb_val i = kb_add(k, w->origin[axis], at), extent = w->extent[axis];
    beyond->ir = NULL;
    if (mode < 0) /* another point of the window, which may not exist */
        return kb_min(k, (w->skewed && axis == w->rank - 1) || (w->partial && axis == 0) ? kb_max(k, i, 0) : i,
                      kb_sub(k, extent, 1));
    kb_val inside = kb_true(k);
    const kb_val element = boundary_index(k, (enum boundary_mode)mode, i, extent, &inside);
    if (mode == BOUND_CONSTANT)
        *beyond = kb_not(k, inside);
    return element;
}

/* Is the coordinate known to lie inside?  The first place along an axis exists, but for columns where rows skew, and
 * in blocks that stream, which stay together. */
static bool within(const struct window *w, int axis, int at)
{
    const int last = w->rank - 1;
    if (w->place == PLACE_INSIDE || (w->place == PLACE_ROWS && axis < last))
        return true;
    return at == 0 && !(w->ring && axis > 0) && !(w->skewed && axis == last) && !w->partial;
}

kb_val window_index(struct window *w, const struct input *in, const struct reach *r, int d, int at, kb_val *beyond)
{
    const int axis = in->axis[d], mode = r->lo[d] == 0 && r->hi[d] == 0 ? -1 : (int)in->boundary[d].mode;
    beyond->ir = NULL;
    if (within(w, axis, at))
        return kb_add(w->g->k, w->origin[axis], at);
    for (int i = 0; i < w->nspots; i++)
        if (w->spot[i].axis == axis && w->spot[i].at == at && w->spot[i].mode == mode) {
            *beyond = w->spot[i].beyond;
            return kb_cast(w->g->k, w->spot[i].index, TY_I64);
        }
    return compute_index(w, axis, mode, at, beyond);
}

/* Where only columns may leave, a value that points read in their own column lies inside if they exist; if they do not,
 * it lies in the rows around.  Rows that do not skew exist as whole vectors. */
static bool loads_inside(const struct window *w, const struct cell *c)
{
    const int x = c->at[w->rank - 1];
    if (w->ring && w->ring[c->input].staged)
        return true;
    if (w->place != PLACE_ROWS)
        return w->place == PLACE_INSIDE;
    return !c->sideways || ends_mended(w, c->input) ||
           (w->vectors && !w->skewed && x >= 0 && x < w->points[w->rank - 1]);
}

/* Coordinates of all cells, before anything that is emitted under a condition. */
static void find_spots(struct window *w)
{
    const int most = w->rank * w->ncells;
    w->spot = most ? calloc((size_t)most, sizeof *w->spot) : NULL;
    for (int i = 0; w->spot && i < w->ncells; i++) {
        const struct cell *c = &w->cell[i];
        const struct input *in = &w->g->p->input[c->input];
        const struct reach r = stencil_input_reach(w->g->p, c->input);
        for (int d = 0; d < w->rank && !loads_inside(w, c); d++) {
            const int n = w->nspots;
            kb_val beyond;
            if (within(w, d, c->at[d]))
                continue;
            kb_val index = window_index(w, in, &r, d, c->at[d], &beyond);
            const int mode = r.lo[d] == 0 && r.hi[d] == 0 ? -1 : (int)in->boundary[d].mode;
            bool known = false;
            for (int k = 0; k < n; k++)
                known |= w->spot[k].axis == d && w->spot[k].at == c->at[d] && w->spot[k].mode == mode;
            if (w->vectors && w->rank > 1) /* the guard keeps extents short */
                index = kb_cast(w->g->k, index, TY_I32);
            if (!known)
                w->spot[w->nspots++] = (struct spot){ d, c->at[d], mode, index, beyond };
        }
    }
}

static bool structure(const struct prog_array *a) { return *a->field[0].name != 0; }

/* Elements between the first point and the row of `at`; 32 bits hold those of a plane in blocks that stream. */
static kb_val row_distance(struct window *w, const int *at)
{
    kb *k = w->g->k;
    const enum ty ty = w->ring && at[0] == 0 ? TY_I32 : TY_I64;
    kb_val row = kb_imm(k, ty, 0);
    for (int d = 0; d < w->rank - 1; d++)
        row = kb_mul(k, kb_add(k, row, at[d]), kb_cast(k, w->extent[d + 1], ty));
    return row;
}

static kb_val first_element(struct window *w)
{
    kb_val first = w->origin[0];
    for (int d = 1; d < w->rank; d++)
        first = kb_add(w->g->k, kb_mul(w->g->k, first, w->extent[d]), w->origin[d]);
    return first;
}

kb_ptr window_row(struct window *w, const struct prog_array *a, kb_ptr p, const int *at)
{
    kb *k = w->g->k;
    const int scale = structure(a) ? a->stride : 1;
    const kb_val first = w->first.ir ? w->first : first_element(w);
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

/* In a row that may be one of another rank.  The first place along axis 0 exists. */
static kb_val load_joined(struct window *w, int input, const int *at, kb_val *beyond)
{
    kb *k = w->g->k;
    const struct input *in = &w->g->p->input[input];
    const struct reach r = stencil_input_reach(w->g->p, input);
    kb_val first = window_index(w, in, &r, 0, at[0], beyond), rest = kb_imm(k, TY_I64, 0), outside;
    for (int d = 1; d < w->rank; d++) {
        first = kb_mul(k, first, w->extent[d]);
        rest = kb_add(k, kb_mul(k, rest, w->extent[d]), window_index(w, in, &r, d, at[d], &outside));
    }
    return joined_take(w->joined, at[0] > 0, kb_add(k, w->origin[0], at[0]), rest,
                       kb_advance(k, gen_input(w->g, input), first), beyond);
}

/* Everything through the boundaries. */
static kb_val load_edge(struct window *w, int input, int field, const int *at)
{
    kb *k = w->g->k;
    const struct input *in = &w->g->p->input[input];
    const struct reach r = stencil_input_reach(w->g->p, input);
    kb_val row = kb_imm(k, TY_I64, 0), beyond[SPACE_MAX], taken;
    const int last = w->rank - 1;
    const bool from_row = w->place == PLACE_ROWS && w->by_distance;
    for (int d = 0; d < last; d++)
        row = kb_mul(k, kb_add(k, row, window_index(w, in, &r, d, at[d], &beyond[d])), w->extent[d + 1]);
    const kb_ptr array = gen_input(w->g, input);
    const kb_ptr p = from_row ? window_row(w, &in->array, array, at)
                              : kb_advance(k, array, kb_mul(k, row, structure(&in->array) ? in->array.stride : 1));
    kb_val column = window_index(w, in, &r, last, at[last], &beyond[last]);
    column = from_row ? kb_sub(k, column, w->origin[last]) : column;
    const bool joined = w->joined && w->place == PLACE_EDGE && at[0] && input == w->joined->input;
    kb_val x = joined ? load_joined(w, input, at, &taken) : gen_load_field(w->g, &in->array, p, column, field);
    if (joined && beyond[0].ir)
        beyond[0] = kb_and(k, beyond[0], kb_not(k, taken));
    for (int d = 0; d <= last; d++)
        if (beyond[d].ir)
            x = kb_select(k, beyond[d], kb_const(k, x.ty, in->boundary[d].constant[field]), x);
    return x;
}

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

static int floor_multiple(int x, int of) { return x >= 0 ? x / of * of : -((-x + of - 1) / of * of); }

/* Is the cell with this column wanted and not loaded? */
static struct cell *waiting(struct window *w, const struct cell *like, int x)
{
    int at[SPACE_MAX];
    memcpy(at, like->at, sizeof at);
    at[w->rank - 1] = x;
    struct cell *c = find_cell(w, like->input, like->field, at);
    return c && !c->v.ir && loads_inside(w, c) ? c : NULL;
}

/* A run of columns of a row of an input. */
struct run {
    int from, n;
};

/* Are bytes loaded as whole words, because several columns of each are computed with in packed form? */
static bool whole_words(const struct window *w, const struct cell *c)
{
    const struct reach r = stencil_input_reach(w->g->p, c->input);
    const int last = w->rank - 1;
    return (w->skewed || r.hi[last] - r.lo[last] > 2) && w->points[last] % 4 == 0 && stencil_packs(w->g->p);
}

/* The smallest aligned run of columns that holds all wanted ones among the vector of column x. */
static struct run run_around(struct window *w, const struct cell *c)
{
    const struct prog_array *a = &w->g->p->input[c->input].array;
    const int least = whole_words(w, c) ? 4 : 1;
    const int skew = stencil_skew(w->g->c, w->rank, c->at);
    struct run r = { .n = w->points[w->rank - 1] };
    while (r.n * a->stride > 16)
        r.n /= 2;
    r.from = floor_multiple(c->at[w->rank - 1] - skew, r.n) + skew;
    for (bool halved = true; r.n > least && halved;) {
        bool low = false, high = false;
        for (int j = 0; j < r.n; j++)
            *(j < r.n / 2 ? &low : &high) |= waiting(w, c, r.from + j) != NULL;
        halved = !(low && high);
        r.n /= halved ? 2 : 1;
        r.from += halved && high ? r.n : 0;
    }
    return r;
}

static void take_run(struct window *w, const struct cell *c, struct run r, const kb_val *v)
{
    for (int j = 0; j < r.n; j++) {
        struct cell *to = waiting(w, c, r.from + j);
        if (to)
            to->v = v[j];
    }
}

static void load_run(struct window *w, const struct cell *c, struct run r)
{
    kb *k = w->g->k;
    const struct prog_array *a = &w->g->p->input[c->input].array;
    const bool staged = w->ring && w->ring[c->input].staged;
    const kb_ptr row =
        staged ? ring_row(w, c->input, c->field, c->at) : window_row(w, a, gen_input(w->g, c->input), c->at);
    kb_val v[GEN_VECTOR_MAX];
    if (a->stride == 1 && r.n % 4 == 0) { /* as words, which stay whole where bytes are computed with in packed form */
        kb_val word[GEN_VECTOR_MAX / 4];
        kb_load_words(k, row, kb_imm(k, TY_I64, r.from), r.n, r.n, word);
        for (int j = 0; j < r.n; j++) {
            struct cell *to = waiting(w, c, r.from + j);
            v[j] = kb_extract(k, word, j, a->field[0].type);
            if (to) {
                to->word = word[j / 4];
                to->byte = j % 4;
            }
        }
        take_run(w, c, r, v);
        return;
    }
    kb_load_n(k, row, kb_imm(k, staged ? TY_I32 : TY_I64, r.from), r.n, r.n * a->stride, v);
    take_run(w, c, r, v);
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

void window_init(struct window *w, struct gen *g, const kb_val *origin, const int *points, enum placement place)
{
    *w = (struct window){
        .g = g, .rank = g->p->rank, .place = place, .vectors = g->c->aligned, .skewed = stencil_skewed(g->c)
    };
    for (int d = 0; d < w->rank; d++) {
        w->points[d] = points[d];
        w->origin[d] = origin[d];
        w->extent[d] = gen_extent(g, &g->p->space[d].extent);
    }
}

static kb_val load_cell(struct window *w, int input, int field, const int *at, bool inside)
{
    if (w->tile && w->tile[input].staged)
        return tile_read(w, input, field, at);
    if (w->ring && w->ring[input].staged)
        return kb_load(w->g->k, ring_row(w, input, field, at), kb_imm(w->g->k, TY_I32, at[w->rank - 1]));
    return (inside ? load_inside : load_edge)(w, input, field, at);
}

static bool in_vector(const struct window *w, const struct cell *c)
{
    const int x = c->at[w->rank - 1];
    if (w->ring && w->ring[c->input].staged)
        return w->points[w->rank - 1] > 1 && !structure(&w->g->p->input[c->input].array);
    if (!w->vectors || (w->tile && w->tile[c->input].staged) || structure(&w->g->p->input[c->input].array))
        return false;
    return w->rank > 1 || (x >= 0 && x < w->points[0]);
}

struct cell *window_cell(struct window *w, int input, int field, const int *at)
{
    return find_cell(w, input, field, at);
}

/* By rows, so that what addresses have in common is short-lived. */
static int in_order(const void *a, const void *b)
{
    const struct cell *x = a, *y = b;
    if (x->input != y->input)
        return x->input - y->input;
    for (int d = 0; d < SPACE_MAX; d++)
        if (x->at[d] != y->at[d])
            return x->at[d] - y->at[d];
    return x->field - y->field;
}

void window_collect(struct window *w)
{
    stencil_each_read(w->g->p, collect, w);
    if (w->ncells)
        qsort(w->cell, (size_t)w->ncells, sizeof *w->cell, in_order);
}

/* A cell, with what is wanted of the vector around it. */
static void load(struct window *w, struct cell *c, bool inside)
{
    const struct run r = inside && in_vector(w, c) ? run_around(w, c) : (struct run){ .n = 1 };
    if (r.n == 1)
        c->v = load_cell(w, c->input, c->field, c->at, inside);
    else
        load_run(w, c, r);
}

void window_fill(struct window *w)
{
    if (w->place != PLACE_INSIDE && !w->spot)
        find_spots(w);
    for (int i = 0; i < w->ncells; i++) {
        struct cell *c = &w->cell[i];
        if (!c->v.ir && !c->late)
            load(w, c, loads_inside(w, c));
    }
    ends_mend(w);
}

void window_load(struct window *w)
{
    window_collect(w);
    window_fill(w);
}

void window_free(struct window *w)
{
    free(w->cell);
    free(w->spot);
}

kb_val window_read(struct window *w, int input, int field, const int *at)
{
    int there[SPACE_MAX];
    memcpy(there, at, sizeof there);
    there[0] = !w->partial ? at[0] : w->ring[input].staged ? 0 : w->away;
    struct cell *c = find_cell(w, input, field, there);
    if (c && c->v.ir)
        return c->v;
    if (c && c->late && w->ring && w->ring[input].staged) {
        load(w, c, true);
        return c->v;
    }
    const kb_val v = load_cell(w, input, field, there, w->place == PLACE_INSIDE);
    if (c && c->late)
        c->v = v;
    return v;
}
