/* SPDX-License-Identifier: Apache-2.0 */
/* traffic.c - what the loads and stores of a case take of memory and caches, see cost.h.
 *
 * Points run in row-major order, and neighbouring lanes take neighbouring points of the last axis.  An array that lacks
 * an axis is read again for each of its steps.  What lies between two reads of an element, the box of the axes inside,
 * says which cache still has it.  Lanes whose elements lie a sector or more apart take a sector each; the rest of it is
 * of use if the cache keeps it until the array's contiguous axis takes its next step.
 */
#include "cost.h"

#include "lower/access.h"
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
    const double n = (double)(d->add + (d->size < 0 ? 0 : v->size[d->size]));
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

static void add_place(const struct view *v, const struct place *a, int vector, struct traffic *t)
{
    const int64_t n = prog_array_elements(a->array, v->size);
    const double elements = n > 0 ? (double)n : 0;
    if (!a->direct) {
        add_general(v, a, elements, t);
        return;
    }
    const double bytes = elements * a->array->stride, wide = (double)a->array->stride * LANES / L1_CYCLE_BYTES;
    *(a->written ? &t->written : &t->read) += bytes;
    t->l1_cycles += elements * a->loads / LANES * (wide > 1.0 / vector ? wide : 1.0 / vector);
}

struct traffic traffic_of(const struct problem *p, const int64_t *size, const struct gpu_model *m,
                          const struct plan_case *c)
{
    const struct view v = { p, size, c, (double)m->l2 / 2 };
    struct traffic t = { 0 };
    const bool by_points = (c->strategy->tunables & WITH_POINTS_X) != 0;
    int vector = by_points ? c->aligned ? c->tunable[TN_POINTS_X] : 1 : c->tunable[TN_VECTOR];
    vector = vector > 1 ? vector : 1;
    for (int i = 0; i < p->ninputs; i++) {
        struct place a;
        if (input_place(&v, i, &a))
            add_place(&v, &a, vector, &t);
        else if (prog_array_elements(a.array, size) > 0)
            t.read += (double)prog_array_elements(a.array, size) * a.array->stride;
    }
    for (int o = 0; o < p->noutputs; o++) {
        const struct output *out = &p->output[o];
        bool follows = true;
        for (int d = 0; d < out->array.rank; d++)
            follows &= out->axis[d] >= 0;
        const struct place a = { &out->array, out->axis, true,
                                 access_output_direct(p, o) || !follows || out->array.rank == 0, 1 };
        add_place(&v, &a, vector, &t);
    }
    return t;
}
