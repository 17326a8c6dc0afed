/* SPDX-License-Identifier: Apache-2.0 */
/* traffic.c - what the loads and stores of a case take of memory and caches, see cost.h.
 *
 * Points run in row-major order, and neighbouring lanes take neighbouring points of the last axis.  An array that lacks
 * an axis is read again for each of its steps.  What lies between two reads of an element, the box of the axes inside,
 * says which cache still has it.  Lanes whose elements lie a sector or more apart take a sector each; the rest of it is
 * of use if the cache keeps it until the array's contiguous axis takes its next step.
 */
#include "cost.h"

#include "lower/pairs.h"
#include "lower/access.h"
#include "lower/reduce/bins.h"
#include "lower/scan/scan.h"
#include "lower/stencil/stencil.h"

#include <float.h>
#include <math.h>

enum { SECTOR = 32, LANES = 32, L1_BYTES = 128 << 10, L1_CYCLE_BYTES = 128 };

/* The arrays of a problem at known sizes. */
struct view {
    const struct problem *p;
    const int64_t *size;
    const struct plan_case *c;
    double cache; /* bytes of L2 that reuse can count on */
};
struct place {
    const struct prog_array *array;
    const int *axis;
    bool written, direct;
    double loads; /* per point */
};

static double extent(const struct view *v, const struct prog_dim *d)
{
    const double n = (double)problem_extent(v->p, d, v->size);
    return n > 0 ? n : 0;
}

/* Bytes between the elements of neighbours along an axis; 0: the array does not have it. */
static double step(const struct view *v, const struct place *a, int along)
{
    double inner = a->array->stride, bytes = 0;
    for (int d = a->array->rank - 1; d >= 0; d--) {
        bytes += a->axis[d] == along ? inner : 0;
        inner *= extent(v, &a->array->dim[d]);
    }
    return bytes;
}

static bool input_place(const struct view *v, int i, struct place *out)
{
    const struct input *in = &v->p->input[i];
    *out = (struct place){ .array = &in->array, .axis = in->axis, .loads = 1, .direct = access_input_direct(v->p, i) };
    if (in->role != ROLE_ELEMENT || v->p->kind != KIND_STENCIL)
        return in->role == ROLE_ELEMENT;
    const struct reach r = stencil_input_reach(v->p, i);
    for (int d = 0; in->neighbours && in->array.rank == v->p->rank && d < in->array.rank; d++)
        out->loads *=
            1 + (double)(r.hi[d] - r.lo[d]) / stencil_points(v->c, v->p->rank, d); /* a thread's points share */
    out->loads = out->loads < v->p->nreads ? out->loads : v->p->nreads;
    for (int k = 0; k < v->p->nreads; k++) {
        const struct expr *e = v->p->read[k].e;
        if (e->kind == EX_GATHER && e->which == i)
            out->loads += extent(v, &v->p->input[e->which2].array.dim[0]);
    }
    return true;
}

/* Bytes of the box of the axes from `from` on. */
static double box(const struct view *v, const struct place *a, int from)
{
    double n = 1, nearest = DBL_MAX;
    for (int d = from; d < v->p->rank; d++) {
        const double s = step(v, a, d);
        n *= s > 0 ? extent(v, &v->p->space[d].extent) : 1;
        nearest = s > 0 && s < nearest ? s : nearest;
    }
    return n * (nearest < SECTOR ? nearest : SECTOR);
}

static double boxes(const struct view *v, int from)
{
    double bytes = 0;
    for (int i = 0; i < v->p->ninputs; i++) {
        struct place a;
        bytes += input_place(v, i, &a) ? box(v, &a, from) : 0;
    }
    return bytes;
}

/* The axis that neighbouring lanes walk along, and the array's contiguous one. */
static void axes_of(const struct view *v, const struct place *a, int *lanes, int *contiguous)
{
    double nearest = DBL_MAX;
    *lanes = v->p->rank - 1;
    *contiguous = -1;
    for (int d = 0; d < v->p->rank; d++) {
        const double s = step(v, a, d);
        if (s > 0 && s < nearest) {
            nearest = s;
            *contiguous = s < SECTOR ? d : -1;
        }
    }
    while (a->written && *lanes > 0 && step(v, a, *lanes) <= 0) /* written once per segment */
        --*lanes;
}

/* An array whose elements are not those of the points in order. */
static void add_general(const struct view *v, const struct place *a, double elements, struct traffic *t)
{
    int lanes, contiguous;
    double once = elements * a->array->stride, touches = 1, l2 = once, memory = once;
    axes_of(v, a, &lanes, &contiguous);
    for (int d = 0; d < v->p->rank; d++) {
        const double n = extent(v, &v->p->space[d].extent), s = step(v, a, d);
        touches *= a->written && s <= 0 ? 1 : n;
        if (s <= 0 && !a->written) {
            l2 *= boxes(v, d + 1) > L1_BYTES ? n : 1;
            memory *= boxes(v, d + 1) > v->cache ? n : 1;
        }
    }
    const double apart = step(v, a, lanes), between = contiguous < 0 ? DBL_MAX : boxes(v, contiguous + 1);
    if (apart >= SECTOR) {
        t->l2_sectors += a->written || between > L1_BYTES ? touches : 0;
        t->memory_sectors += !a->written && between > v->cache ? touches : 0;
        /* A sector that lanes fill one by one is fetched and written back. */
        const double partial = a->written && once > v->cache ? touches * SECTOR : once;
        t->read += a->written ? partial - once : memory;
        t->written += a->written ? partial : 0;
    } else {
        t->l2 += l2;
        *(a->written ? &t->written : &t->read) += memory;
    }
    if (!(apart <= 0 && v->p->space[lanes].reduced)) /* else a register keeps it */
        t->l1_cycles += touches / LANES * fmax(fmin(apart / 4, fmin(LANES, extent(v, &v->p->space[lanes].extent))), 1);
}

enum { READS_MAX = 32 };
struct placed {
    const struct view *v;
    struct traffic *t;
    int nreads;
    const struct expr *read[READS_MAX]; /* inside sums, each once */
};

/* Lanes of a warp along the last axis; the others follow the axis before. */
static int lanes_along(const struct view *v)
{
    const struct problem *p = v->p;
    const int lanes = v->c->strategy->tunables & WITH_LANES ? v->c->tunable[TN_LANES] : 0;
    const bool rows = p->kind == KIND_REDUCE && !p->nby && p->rank > 1 && p->space[p->rank - 1].reduced;
    return rows && lanes > 0 && lanes < LANES ? lanes : LANES;
}

/* Elements of a thread along an axis whose sums go together. */
static double together(const struct view *v, int axis)
{
    const struct plan_case *c = v->c;
    if (v->p->kind == KIND_STENCIL)
        return c->tunable[TN_POINTS_X] > 0 ? stencil_points(c, v->p->rank, axis) : 1;
    if (c->tiled && !v->p->space[axis].reduced)
        return fmax(c->tunable[TN_SEGMENTS], 1);
    return v->p->kind == KIND_REDUCE && v->p->space[axis].reduced ? fmax(c->tunable[TN_ITEMS], 1) : 1;
}

/* Points with those that lanes and items have beyond the end of a row. */
static double padded_points(const struct view *v, double points)
{
    const int last = v->p->rank - 1, lanes = lanes_along(v);
    const double n = extent(v, &v->p->space[last].extent), turn = lanes * together(v, last);
    return lanes < LANES && n > 0 ? points * ceil(n / turn) * turn / n : points;
}

/* Cycles of L1 for lanes whose elements lie so many bytes apart: one for each 128 bytes, up to one for two lanes. */
static double cycles_of(double apart, int lanes) { return fmax(1, lanes * fmin(apart, 64) / L1_CYCLE_BYTES); }

/* A read inside sums: bytes between the elements of neighbouring lanes, 0: all read one; cycles of L1; how often an
 * element reads; and how often the lanes of a row, and its turns, read the same, which L1 keeps. */
struct summed {
    double apart, cycles, times, again;
};

static struct summed summed_read(const struct view *v, const struct expr *e)
{
    enum { TOGETHER = 8 };
    const double TILED = 0.5; /* vectors of four in two cycles */
    const struct prog_array *a = &v->p->input[e->which].array;
    const int last = v->p->rank - 1, lanes = lanes_along(v);
    struct summed r = { .times = 1, .again = 1 };
    double inner = a->stride, shared = 1, along = 0, across = 0;
    unsigned varies = 0;
    for (int d = a->rank - 1; d >= 0; inner *= extent(v, &a->dim[d--])) {
        const struct expr *i = e->arg[d]->kind == EX_BINARY ? e->arg[d]->arg[0] : e->arg[d]; /* without the offset */
        varies |= i->kind == EX_INDEX ? 1u << i->which : 0;
        along += i->kind == EX_INDEX && i->which == last && lanes > 1 ? inner : 0;
        across += i->kind == EX_INDEX && i->which == last - 1 && lanes < LANES ? inner : 0;
        r.times *= i->kind == EX_RUN ? extent(v, &a->dim[d]) : 1;
    }
    for (int d = 0; d < v->p->rank; d++)
        shared *= varies >> d & 1 ? 1 : together(v, d);
    r.times /= fmin(shared, TOGETHER);
    if (lanes < LANES && !(varies >> last & 1))
        r.again = padded_points(v, extent(v, &v->p->space[last].extent)) / together(v, last);
    r.apart = v->c->tiled ? 0 : fmax(along, across);
    r.cycles = v->c->tiled ? TILED : cycles_of(along, lanes) * cycles_of(across, LANES / lanes);
    return r;
}

/* A read inside a sum: what lanes have in common is one access of the warp; the first-level cache keeps an array that
 * fits it, and the rest of a sector for the next terms. */
static void add_summed(struct placed *w, const struct expr *e, double points, double bytes)
{
    const struct summed r = summed_read(w->v, e);
    for (int i = 0; i < w->nreads; i++)
        if (expr_equal(w->read[i], e))
            return;
    if (w->nreads < READS_MAX)
        w->read[w->nreads++] = e;
    const double accesses = padded_points(w->v, points) * r.times / LANES, sectors = fmax(1, fmin(r.apart, SECTOR));
    w->t->l1_cycles += accesses * r.cycles;
    w->t->l2_sectors += bytes > L1_BYTES ? accesses / r.again * sectors / (r.apart < SECTOR ? 1 : SECTOR / 4) : 0;
}

/* Is every place the index along an axis, so that the array follows axes of the space as others do? */
static bool follows_axes(const struct expr *e, int *axis)
{
    bool all = true;
    for (int d = 0; d < e->nargs; d++) {
        all &= e->arg[d]->kind == EX_INDEX;
        axis[d] = e->arg[d]->kind == EX_INDEX ? e->arg[d]->which : -1;
    }
    return all;
}

/* Other places of at() are taken as scattered: a sector for each point, from the nearest cache that holds the array. */
static void add_placed(const struct expr *e, void *user)
{
    struct placed *w = user;
    int axis[PROG_RANK_MAX];
    if (e->kind != EX_AT)
        return;
    const double points = point_count(w->v->p, w->v->size);
    const struct prog_array *a = &w->v->p->input[e->which].array;
    const double bytes = (double)problem_elements(w->v->p, a, w->v->size) * a->stride;
    if (w->v->p->input[e->which].summed) {
        add_summed(w, e, points, bytes);
        return;
    }
    if (w->v->p->input[e->which].spread) {
        w->t->l2_sectors += bytes > L1_BYTES ? points * a->stride / SECTOR : 0;
        w->t->l1_cycles += points / LANES;
        return;
    }
    if (follows_axes(e, axis)) {
        add_general(w->v, &(struct place){ .array = a, .axis = axis, .loads = 1 }, bytes / a->stride, w->t);
        return;
    }
    w->t->l2_sectors += bytes > L1_BYTES ? points : 0;
    w->t->memory_sectors += bytes > w->v->cache ? points : 0;
    w->t->l1_cycles += points; /* a lane each */
}

static void add_all_placed(const struct view *v, struct traffic *t)
{
    struct placed w = { .v = v, .t = t };
    for (int r = 0; r < v->p->nreductions; r++)
        for (int f = 0; f < v->p->reduction[r].op->nfields; f++)
            problem_walk(v->p, v->p->reduction[r].map[f], add_placed, &w);
    for (int d = 0; d < v->p->nby; d++)
        problem_walk(v->p, v->p->by[d], add_placed, &w);
    if (v->p->key)
        problem_walk(v->p, v->p->key, add_placed, &w);
    for (int o = 0; o < v->p->noutputs; o++) {
        const struct output *out = &v->p->output[o];
        for (int f = 0; output_moment(out) == AT_POINT && f < out->array.nfields; f++)
            problem_walk(v->p, out->value[f], add_placed, &w);
        for (int d = 0; output_moment(out) == AT_POINT && d < PROG_RANK_MAX && out->index[d]; d++)
            problem_walk(v->p, out->index[d], add_placed, &w);
    }
}

/* An output at computed places: one write for each point, taken as scattered. What no cache holds is fetched, as a sector
 * of others' elements, and written back. */
static void add_scattered(const struct view *v, const struct prog_array *array, struct traffic *t)
{
    const int64_t n = problem_elements(v->p, array, v->size);
    const double elements = n > 0 ? (double)n : 0, points = point_count(v->p, v->size);
    t->l1_cycles += points;
    t->l2_sectors += points;
    if (elements * array->stride > v->cache)
        t->memory_sectors += 2 * points;
    else
        t->written += (elements < points ? elements : points) * array->stride;
}

static void add_place(const struct view *v, const struct place *a, int vector, struct traffic *t)
{
    const int64_t n = problem_elements(v->p, a->array, v->size);
    const double elements = n > 0 ? (double)n : 0;
    if (!a->direct) {
        add_general(v, a, elements, t);
        return;
    }
    const double bytes = elements * a->array->stride, wide = (double)a->array->stride * LANES / L1_CYCLE_BYTES;
    *(a->written ? &t->written : &t->read) += bytes;
    t->l1_cycles += elements * a->loads / LANES * (wide > 1.0 / vector ? wide : 1.0 / vector);
}

/* The tables of bins, between the elements and the outputs; updates in memory take a sector each, those in shared
 * memory meet now and then. */
static void add_bins(const struct view *v, int kernel, struct traffic *t)
{
    enum { MEET = 4 };
    const struct problem *p = v->p;
    const bool shared = v->c->tunable[TN_BINS] > 0, control = shared && !bins_parted(v->c);
    double bins = 1, points = 1, bytes = 0;
    for (int d = 0; d < p->nby; d++)
        bins *= extent(v, &p->bin[d]);
    for (int d = 0; d < p->rank; d++) {
        bins *= p->space[d].reduced ? 1 : extent(v, &p->space[d].extent);
        points *= extent(v, &p->space[d].extent);
    }
    for (int o = 0; o < p->noutputs; o++)
        bytes += bins * p->output[o].array.stride;
    const double table = bins * bins_bytes(p), passes = bins_parted(v->c) ? ceil(bins / v->c->tunable[TN_BINS]) : 1;
    if (kernel == BINS_ADD) {
        t->l2_sectors += shared ? 0 : points * p->nreductions;
        t->memory_sectors += shared || table < v->cache ? 0 : points * p->nreductions;
        t->l1_cycles += points / LANES * (MEET * p->nreductions + passes - 1);
        t->written += bins_placed(p) || bins_of_rows(v->c) ? bytes : 0;
    } else {
        t->read += kernel == BINS_FINISH ? table : 0;
        t->written += (kernel == BINS_FINISH ? bytes : 0) + (kernel == BINS_CLEAR || control ? table : 0);
    }
}

/* A product by tiles: memory is read once, L2 by every tile, and shared memory for each result's turn of the thread. */
static void add_product(const struct view *v, const struct pairs *x, struct traffic *t)
{
    const double VECTOR_CYCLES = 0.5, points = point_count(v->p, v->size); /* vectors of four in two cycles */
    const int *tunable = v->c->tunable, each[] = { tunable[TN_SEGMENTS], tunable[TN_ITEMS] },
              teams[] = { tunable[TN_THREADS] / tunable[TN_LANES], tunable[TN_LANES] };
    for (int i = 0; i < x->noperands; i++) {
        const struct pairs_operand *o = &x->operand[i];
        const int across = !o->axis;
        const double n = extent(v, &v->p->space[x->kept[across]].extent), rows = each[across] * teams[across];
        const double bytes = (double)problem_elements(v->p, &v->p->input[o->input].array, v->size) *
                             ty_bytes(v->p->input[o->input].array.field[o->field].type);
        t->read += bytes;
        t->l2 += bytes * ceil(n / rows);
        t->l1_cycles += points / LANES * VECTOR_CYCLES / each[across];
    }
}

struct traffic traffic_of(const struct problem *p, const int64_t *size, const struct gpu_model *m,
                          const struct plan_case *c, int kernel)
{
    const struct view v = { p, size, c, (double)m->l2 / 2 };
    struct traffic t = { 0 };
    const bool by_points = (c->strategy->tunables & WITH_POINTS_X) != 0;
    int vector = by_points ? c->aligned ? c->tunable[TN_POINTS_X] : 1 : c->tunable[TN_VECTOR];
    vector = vector > 1 ? vector : 1;
    if (p->nby)
        add_bins(&v, kernel, &t);
    if (p->nby && kernel != BINS_ADD)
        return t;
    struct pairs pairs = { 0 };
    const char *why;
    if (c->tiled && p->kind == KIND_REDUCE)
        pairs_of(p, &pairs, &why);
    if (pairs.product)
        add_product(&v, &pairs, &t);
    for (int i = 0; i < p->ninputs && !pairs.product; i++) {
        struct place a;
        if (input_place(&v, i, &a))
            add_place(&v, &a, vector, &t);
        else if (problem_elements(p, a.array, size) > 0)
            t.read += (double)problem_elements(p, a.array, size) * a.array->stride;
    }
    if (!pairs.product)
        add_all_placed(&v, &t);
    for (int o = 0; o < p->noutputs; o++) {
        const struct output *out = &p->output[o];
        bool follows = true;
        if (p->nby || (c->mapper && !c->maps && (output_moment(out) == AT_RESULT) != (kernel == c->mapper)))
            continue;
        if (out->spread || (output_is_placed(out) && p->key && scan_bins_staged(p))) {
            /* in the order of memory, but for the ends of rows, or of bins */
            const double elements = (double)problem_elements(p, &out->array, size);
            t.written += elements * out->array.stride;
            t.l1_cycles += elements / LANES;
            continue;
        }
        if (output_is_placed(out)) {
            add_scattered(&v, &out->array, &t);
            continue;
        }
        for (int d = 0; d < out->array.rank; d++)
            follows &= out->axis[d] >= 0;
        const struct place a = { &out->array, out->axis, true,
                                 access_output_direct(p, o) || stencil_turned(p, c, o) || !follows ||
                                     out->array.rank == 0,
                                 1 };
        add_place(&v, &a, vector, &t);
    }
    return t;
}
