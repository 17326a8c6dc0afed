/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - planning of blocks that stream along the outermost dimension.
 *
 * A block has a tile of rows and columns, one place thick, and walks over a chunk of places; planes come through a ring
 * in shared memory.  Where every row begins at a vector boundary threads have vectors of a row, otherwise a column.
 */
#include "stencil_plan.h"

enum { WARP = 32, STAGES_MIN = 3, FAR = 30 };

int64_t stencil_ring_bytes(const struct problem *p, const struct plan_case *c)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->ninputs; i++) {
        if (!stencil_staged(p, i))
            continue;
        const struct ring_shape s = stencil_ring(p, c, i);
        bytes += (int64_t)s.depth * s.rows * s.pitch * p->input[i].array.stride + 16 * p->input[i].array.nfields;
    }
    return bytes;
}

/* The most accesses of a thread per plane, over all inputs that come through rings. */
static int most_copies(const struct planner *pl, const struct plan_case *c)
{
    enum { HAS_COPIES = 80 };
    const struct problem *p = pl->plan->problem;
    int most = 0;
    for (int i = 0; i < p->ninputs; i++) {
        const int copies = stencil_staged(p, i) ? stencil_ring_copies(p, c, i, pl->plan->device.sm >= HAS_COPIES) : 0;
        most = copies > most ? copies : most;
    }
    return most;
}

/* The smallest tile that rows of vectors are cut into. */
static struct plan_case least_tile(const struct problem *p)
{
    struct plan_case c = { .aligned = true };
    c.tunable[TN_THREADS] = c.tunable[TN_BLOCK_X] = WARP;
    c.tunable[TN_BLOCK_Y] = c.tunable[TN_POINTS_Y] = c.tunable[TN_POINTS_Z] = 1;
    c.tunable[TN_POINTS_X] = stencil_vector(p);
    c.tunable[TN_STAGES] = STAGES_MIN;
    return c;
}

bool stencil_stream_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    if (!stencil_multi_write_fits(p, d, a, why))
        return false;
    const struct reach r = stencil_space_reach(p);
    *why = "no offset leads along the outermost dimension, or there is only one";
    if (p->rank < 2 || (r.lo[0] == 0 && r.hi[0] == 0))
        return false;
    *why = arena_printf(a, "offsets along the outermost dimension span more than %d places", FAR);
    if (r.hi[0] - r.lo[0] > FAR)
        return false;
    *why = "how it cuts the space depends on the device; determinism: device forbids that for the reductions";
    if (stencil_one_tree(p) && state_determinism(p) == DET_DEVICE)
        return false;
    const struct plan_case least = least_tile(p);
    *why = "the planes of so many inputs do not fit shared memory";
    return stencil_ring_bytes(p, &least) <= d->shared_per_block;
}

/* No tile twice as wide or high as the space, as far as that is known. */
static struct shape fit_space(const struct planner *pl, struct shape s)
{
    const struct problem *p = pl->plan->problem;
    int64_t lo, hi;
    plan_extent_range(pl, &p->space[p->rank - 1].extent, &lo, &hi);
    for (; s.block_x > 32 && (int64_t)s.block_x / 2 * s.points_x >= hi; s.block_x /= 2)
        s.threads /= 2;
    if (p->rank < 3)
        return s;
    plan_extent_range(pl, &p->space[1].extent, &lo, &hi);
    for (; s.block_y > 1 && s.threads > 32 && (int64_t)s.block_y / 2 * s.points_y >= hi; s.block_y /= 2)
        s.threads /= 2;
    while (s.points_y > 1 && (int64_t)s.block_y * s.points_y / 2 >= hi)
        s.points_y /= 2;
    return s;
}

/* A tile of fewer threads, then of fewer points, then fewer planes; false: it is the smallest. */
static bool shrink(struct plan_case *c, struct shape *s)
{
    if (s->threads > WARP) {
        s->threads /= 2;
        *(s->block_y > 1 ? &s->block_y : &s->block_x) /= 2;
    } else if (s->points_y > 1) {
        s->points_y /= 2;
    } else if (c->tunable[TN_STAGES] > STAGES_MIN && !c->overridden[TN_STAGES]) {
        c->tunable[TN_STAGES]--;
    } else {
        return false;
    }
    return true;
}

/* Does what lies beyond an edge come back from inside the array, which a division finds far away? */
static bool comes_back(const struct problem *p)
{
    for (int i = 0; i < p->ninputs; i++)
        for (int d = 0; stencil_staged(p, i) && d < p->rank; d++) {
            const enum boundary_mode mode = p->input[i].boundary[d].mode;
            if (mode == BOUND_WRAP || mode == BOUND_REFLECT || mode == BOUND_MIRROR)
                return true;
        }
    return false;
}

/* Kernels count the elements of a plane in 32 bits, also twice as many, and bytes of structures. */
static struct formula small_planes(const struct problem *p)
{
    int widest = 4;
    struct formula elements = f_const(1);
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const struct prog_array *a = access_direct(p, i);
        widest = a && a->stride > widest ? a->stride : widest;
    }
    for (int d = 1; d < p->rank; d++)
        elements = f_mul(elements, stencil_extent(p, d));
    return f_le(elements, INT32_MAX / widest);
}

struct shape stencil_stream_shape(struct planner *pl, const char *what)
{
    return stencil_tuned(&pl->s->arena, pl->plan->problem, &pl->plan->device, "stencil.stream", what, "");
}

struct plan_case *stencil_stream_case(struct planner *pl, const struct strategy *row, const char *name,
                                      struct formula guard, struct shape s)
{
    const struct problem *p = pl->plan->problem;
    struct plan_case *c = plan_case_add(pl, row, name, plan_pinned(pl) ? guard : f_and(guard, small_planes(p)));
    s = fit_space(pl, s);
    s.threads = c->overridden[TN_THREADS] ? c->tunable[TN_THREADS] : s.threads;
    s.block_x = c->overridden[TN_BLOCK_X] ? c->tunable[TN_BLOCK_X] : p->rank < 3 ? s.threads : s.block_x;
    s.block_y = s.threads > s.block_x ? s.threads / s.block_x : 1;
    c->aligned = s.points_x > 1;
    plan_set(c, TN_STAGES, 5, s.from);
    plan_set(c, TN_MIN_BLOCKS, 1, s.from);
    do
        stencil_set_shape(c, s);
    while ((stencil_ring_bytes(p, c) > pl->plan->device.shared_per_block || most_copies(pl, c) > STREAM_COPIES_MAX) &&
           shrink(c, &s));
    const bool spills = s.block_y > 2 ? stencil_tight(p, c) : comes_back(p) && stencil_full(p, c);
    if (s.points_y > 4 &&
        spills) { /* a few bytes in higher tiles; H200, 14 points at 767^3, reflect: 1437 us, 6 rows 1192 */
        s.points_y--;
        stencil_set_shape(c, s);
    }
    return c;
}

struct plan_case *stencil_stream_vectors(struct planner *pl, const struct strategy *row, const char *name,
                                         struct formula guard, struct shape s, int vector)
{
    const struct problem *p = pl->plan->problem;
    const struct formula aligned = stencil_rows_aligned(p, vector);
    const int shorter = p->rank > 2 ? stencil_vector(p) / vector : 1;
    if (aligned.n == 0)
        return NULL;
    s.points_x = vector;
    s.block_x *= shorter;
    s.points_y *= shorter;
    struct plan_case *c = stencil_stream_case(pl, row, name, f_and(guard, aligned), s);
    if (vector % c->tunable[TN_POINTS_X] == 0 || vector == stencil_vector(p))
        return c;
    plan_case_drop(pl); /* it asks for longer ones */
    return NULL;
}

/* Tiles of vectors, the longest at whose boundaries rows begin; as many columns and points with shorter ones. */
static void vectors_cases(struct planner *pl, const struct strategy *row)
{
    const int longest = stencil_vector(pl->plan->problem);
    for (int vector = longest; vector > 1; vector /= 2) {
        const char *name = vector == longest ? "vectors" : arena_printf(&pl->s->arena, "vectors_%d", vector);
        stencil_stream_vectors(pl, row, name, (struct formula){ 0 }, stencil_stream_shape(pl, "vectors"), vector);
    }
}

void stencil_stream_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    if (!plan_pinned(pl)) {
        stencil_stream_choose(pl, row);
        return;
    }
    plan_check(pl, small_planes(p), "stencil.stream counts the elements of a plane in 32 bits, and there are too many");
    if (!stencil_one_tree(p))
        vectors_cases(pl, row);
    stencil_stream_case(pl, row, "columns", (struct formula){ 0 }, stencil_stream_shape(pl, "planes"));
}

bool stencil_stream_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    if (!stencil_global_build(pl, c))
        return false;
    const int64_t bytes = stencil_ring_bytes(p, c), most = pl->plan->device.shared_per_block;
    if (most_copies(pl, c) > STREAM_COPIES_MAX)
        return plan_contradiction(pl, c, 0,
                                  arena_printf(&pl->s->arena, "a thread copies %d pieces of a plane; the limit is %d",
                                               most_copies(pl, c), STREAM_COPIES_MAX));
    return bytes <= most ||
           plan_contradiction(pl, c, 0,
                              arena_printf(&pl->s->arena,
                                           "the planes in shared memory take %lld bytes; the limit is %lld",
                                           (long long)bytes, (long long)most));
}
