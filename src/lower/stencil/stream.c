/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - planning of blocks that stream along the outermost dimension.
 *
 * A block has a tile of rows and columns, one place thick, and walks over a chunk of places; planes come through a ring
 * in shared memory.  Where every row begins at a vector boundary threads have vectors of a row, otherwise a column.
 */
#include "lower/work.h"
#include "stencil_plan.h"
#include "taps.h"

#include <string.h>

enum {
    WARP = 32,
    STAGES_MIN = 3,
    FAR = 30,
    POINTS = 1 << 23,
    NEIGHBOURS = 7,
    READS = 19,
    CROWD = 40,
    PLANE_BYTES = 6 << 20
};

/* Bytes of all rings. */
static int64_t ring_bytes(const struct problem *p, const struct plan_case *c)
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
    return ring_bytes(p, &least) <= d->shared_per_block;
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

/* Smaller tiles where rings would not fit. */
static struct plan_case *stream_case(struct planner *pl, const struct strategy *row, const char *name,
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
    while ((ring_bytes(p, c) > pl->plan->device.shared_per_block || most_copies(pl, c) > STREAM_COPIES_MAX) &&
           shrink(c, &s));
    const bool spills = s.block_y > 2 ? stencil_tight(p, c) : comes_back(p) && stencil_full(p, c);
    if (s.points_y > 4 &&
        spills) { /* a few bytes in higher tiles; H200, 14 points at 767^3, reflect: 1437 us, 6 rows 1192 */
        s.points_y--;
        stencil_set_shape(c, s);
    }
    return c;
}

/* ---- where it pays ----------------------------------------------------------------------------------------------- */

/* One array of elements of so many bytes that is read around the point, and one that is written; `beside`: and others
 * that are read at the point alone. */
static bool plain(const struct problem *p, int bytes, bool beside)
{
    int inputs = 0;
    for (int i = 0; i < p->ninputs; i++) {
        const struct prog_array *a = &p->input[i].array;
        if (p->input[i].role != ROLE_ELEMENT)
            continue;
        if (a->nfields != 1 || a->stride != bytes || (!stencil_staged(p, i) && !beside))
            return false;
        inputs += stencil_staged(p, i);
    }
    return inputs == 1 && p->noutputs == 1 && p->nreductions == 0 && access_output_direct(p, 0) &&
           p->output[0].array.stride == bytes;
}

/* The least arrays whose chunks keep all multiprocessors busy: points, and places, rows and columns. */
struct least {
    int points, places, rows, columns;
};
static const struct least usual = { POINTS, 32, 32, 128 }, finer = { 1 << 22, 32, 32, 80 },
                          any = { 1 << 19, 16, 16, 64 };

static struct formula enough(const struct problem *p, struct least n)
{
    const struct formula rows = f_and(f_le(n.rows, stencil_extent(p, 1)), f_le(n.columns, stencil_extent(p, 2)));
    return f_and(f_le(n.points, access_count(p)), f_and(f_le(n.places, stencil_extent(p, 0)), rows));
}

/* Do points read planes that lie three or more away? */
static bool far(const struct problem *p)
{
    enum { PLANES = 6 };
    const struct reach r = stencil_space_reach(p);
    return r.hi[0] - r.lo[0] >= PLANES;
}

/* Columns that tiles of this width cover. */
static struct formula covered(const struct problem *p, int width)
{
    return f_mul(f_cdiv(stencil_extent(p, 2), width), width);
}

/* Do the tiles of a plane fill it but for an eighth?  Points far along the first axis stay with tiles all the same, since
 * windows read as many planes again.  H200, picoseconds a point, in parentheses windows: 9 points at 191 x 767 x 192 4.3
 * (2.6), 13 points at 398 x 397 x 398 3.4 (3.2), 27 points at 400 x 400 x 192 3.6 (3.2), 7 points at 399 x 398 x 398 3.0
 * (2.4), at 767 x 189 x 190 2.9 (3.6); but stars of radius 3 at 397 x 768 x 191 4.3 (6.7), of radius 4 at 767 x 398 x 767
 * 3.6 (5.4). */
static struct formula filled(const struct problem *p, struct shape s)
{
    const int64_t rows = (int64_t)s.block_y * s.points_y;
    if (far(p))
        return (struct formula){ 0 };
    const struct formula y = stencil_extent(p, 1), x = stencil_extent(p, 2);
    const struct formula area = f_mul(covered(p, s.block_x), f_mul(f_cdiv(y, rows), rows));
    return f_le(f_mul(7, area), f_mul(8, f_mul(x, y)));
}

static struct shape shape_of(struct planner *pl, const char *what)
{
    return stencil_tuned(&pl->s->arena, pl->plan->problem, &pl->plan->device, "stencil.stream", what, "");
}

/* Tiles of vectors, the longest at whose boundaries rows begin; as many columns and points with shorter ones. */
static void vectors_cases(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const int longest = stencil_vector(p);
    for (int vector = longest; vector > 1; vector /= 2) {
        const struct formula aligned = stencil_rows_aligned(p, vector);
        struct shape s = shape_of(pl, "vectors");
        s.points_x = vector;
        s.block_x *= p->rank > 2 ? longest / vector : 1;
        s.points_y *= p->rank > 2 ? longest / vector : 1;
        const char *name = vector == longest ? "vectors" : arena_printf(&pl->s->arena, "vectors_%d", vector);
        if (aligned.n == 0)
            continue;
        struct plan_case *c = stream_case(pl, row, name, aligned, s);
        if (vector < longest && vector % c->tunable[TN_POINTS_X]) { /* it asks for longer ones */
            memset(c, 0, sizeof *c);
            pl->plan->ncases--;
        }
    }
}

/* As many blocks per multiprocessor as rings fit, up to this many: these tiles are small.  Two instead of four where most of
 * very many reads have a weight, with which ptxas spills: H200, 125 points at 191 x 190 x 398, 4 blocks 461 us, 3 412, 2 389, 1 423. */
static void several_blocks(struct planner *pl, struct plan_case *c, int blocks)
{
    enum { WEIGHTED = 2, MANY = 4 };
    const struct problem *p = pl->plan->problem;
    const int64_t fit = pl->plan->device.shared_per_block / ring_bytes(p, c);
    const int reads = stencil_reads(p);
    if (blocks >= MANY && reads > 2 * CROWD && 2 * work_operations(p) > 3 * reads)
        blocks = WEIGHTED;
    plan_set(c, TN_MIN_BLOCKS, fit < blocks ? (int)fit : blocks, "rings of small tiles, in shared memory");
}

/* Are there arrays that are read at the point alone? */
static bool has_beside(const struct problem *p)
{
    for (int i = 0; i < p->ninputs; i++)
        if (p->input[i].role == ROLE_ELEMENT && !stencil_staged(p, i))
            return true;
    return false;
}

/* Widths of tiles, of which one leaves little of the rows of nearly all arrays idle, and threads of a multiprocessor: with
 * less than 96 registers for a thread ptxas spills of 125 points, and with 72 of 25 points and an array beside them. */
struct widths {
    int n, threads, width[4];
};
static struct widths widths_of(const struct problem *p)
{
    static const struct widths one = { 4, 896, { 208, 192, 160, 112 } }, two = { 3, 768, { 192, 160, 112 } },
                               crowd = { 3, 640, { 160, 112, 96 } }, wide = { 3, 448, { 160, 112, 96 } },
                               light = { 2, 896, { 192, 112 } };
    const int reads = stencil_reads(p);
    if (reads > CROWD && has_beside(p))
        return wide;
    return reads > CROWD ? crowd : reads <= NEIGHBOURS ? light : has_beside(p) ? two : one;
}

/* The fewest columns that tiles of these widths cover. */
static struct formula covered_best(const struct problem *p)
{
    const struct widths w = widths_of(p);
    struct formula least = covered(p, w.width[0]);
    for (int i = 1; i < w.n; i++)
        least = f_min(least, covered(p, w.width[i]));
    return least;
}

/* Columns of the last tile behind the end of n. */
static int64_t padding(int64_t n, int width) { return (width - n % width) % width; }

/* Can a tile of this width be the one that fits best, as far as the length of rows is known? */
static bool may_fit_best(const struct planner *pl, int width)
{
    const struct widths w = widths_of(pl->plan->problem);
    int64_t least, most;
    plan_extent_range(pl, &pl->plan->problem->space[2].extent, &least, &most);
    if (least != most)
        return true;
    for (int i = 0; i < w.n; i++)
        if (padding(most, w.width[i]) < padding(most, width))
            return false;
    return true;
}

/* Tiles as wide as fits the rows best, which count more than anything else.  H200, us, such tiles, those of 256 or 128
 * columns: 27 points at 399 x 400 x 398 256, 317; f16, 125 points at 399 x 399 x 191 494, 681; and windows: 13 points at
 * 400 x 190 x 190 43, 66; 25 points of i32 at 189 x 398 x 191 62, 119; 27 points and an array at 192 x 189 x 189 42, 55. */
static void fitting_cases(struct planner *pl, const struct strategy *row, struct formula guard)
{
    const struct problem *p = pl->plan->problem;
    const struct widths w = widths_of(p);
    for (int i = 0; i < w.n; i++) {
        struct shape s = shape_of(pl, "planes_fitting");
        if (!may_fit_best(pl, w.width[i]))
            continue;
        s.block_x = w.width[i];
        s.threads = s.block_x * s.block_y;
        const struct formula best = f_le(covered(p, s.block_x), covered_best(p));
        struct plan_case *c =
            stream_case(pl, row, arena_printf(&pl->s->arena, "planes_%d", s.block_x), f_and(guard, best), s);
        if (c->tunable[TN_BLOCK_X] != w.width[i] ||
            c->tunable[TN_THREADS] != 2 * w.width[i]) { /* it has been made smaller */
            memset(c, 0, sizeof *c);
            pl->plan->ncases--;
            continue;
        }
        several_blocks(pl, c, w.threads / c->tunable[TN_THREADS]);
        if (w.width[i] == w.width[0] && stencil_reads(p) <= NEIGHBOURS && stencil_skips(p))
            plan_set(c, TN_STAGES, 4,
                     "points that are left out take registers; with 5 stages ptxas 13 spilled 20 bytes");
    }
}

/* Tiles of this shape, or narrower ones that fit rows better. */
static struct plan_case *case_or_fitting(struct planner *pl, const struct strategy *row, struct formula guard,
                                         struct formula smaller, struct shape s)
{
    const struct problem *p = pl->plan->problem;
    const struct formula best = f_le(covered(p, s.block_x), covered_best(p));
    struct plan_case *c = stream_case(pl, row, "planes", f_and(guard, best), s);
    fitting_cases(pl, row, smaller);
    return c;
}

/* Many reads: of narrow values, which windows hold more of but for a crowd; of bytes whose sums share nothing, where rows
 * begin anywhere; of others where there is an array beside them, for which windows are better where rows begin at
 * boundaries, and where few points lie far away.  True: these are the cases. */
static bool many_cases(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const int reads = stencil_reads(p);
    const struct formula aligned = stencil_rows_aligned(p, stencil_vector(p)), whole = stencil_rows_aligned(p, 4);
    const bool packs = stencil_packs(p) && !stencil_shares_sums(p), away = far(p);
    const bool heavy = work_is_heavy(p); /* windows would be a point */
    if ((stencil_narrow(p) || packs) && reads > CROWD && (plain(p, 1, heavy) || plain(p, 2, heavy))) {
        /* ptxas spills bytes of 125 points where a thread has 128 registers */
        const bool bytes = plain(p, 1, heavy) && reads > 2 * CROWD;
        const struct formula guard = packs && whole.n ? f_not(&whole) : (struct formula){ 0 };
        case_or_fitting(pl, row, f_and(enough(p, usual), guard), f_and(enough(p, packs ? any : finer), guard),
                        shape_of(pl, bytes ? "planes_tall" : "planes_crowd"));
        return true;
    }
    if (reads <= (away ? CROWD : READS) || plain(p, 4, false) || !plain(p, 4, true) || !aligned.n)
        return false;
    const struct formula guard = f_and(enough(p, usual), f_not(&aligned));
    if (away) {
        stream_case(pl, row, "planes", guard, shape_of(pl, "planes_tall"));
        return true;
    }
    struct plan_case *c =
        case_or_fitting(pl, row, guard, f_and(enough(p, finer), f_not(&aligned)), shape_of(pl, "planes_beside"));
    several_blocks(pl, c, 4);
    return true;
}

/* May rows begin at no boundary, as far as their length is known? */
static bool may_be_unaligned(const struct planner *pl)
{
    const struct problem *p = pl->plan->problem;
    int64_t least, most;
    plan_extent_range(pl, &p->space[2].extent, &least, &most);
    return least != most || most % stencil_vector(p) != 0;
}

/* Tiles of 256 columns, or of 128 where rows leave those half empty. */
static void wide_cases(struct planner *pl, const struct strategy *row, struct formula guard)
{
    const struct problem *p = pl->plan->problem;
    const struct shape wide = shape_of(pl, "planes"), narrow = shape_of(pl, "planes_narrow");
    int64_t points, most, columns, last;
    plan_count_range(pl, &points, &most);
    plan_extent_range(pl, &p->space[2].extent, &columns, &last);
    if (most < usual.points)
        return;
    const bool known = columns == last, fits = (last - 1) % wide.block_x >= narrow.block_x;
    const struct formula over = f_mod(f_sub(stencil_extent(p, 2), 1), wide.block_x);
    if (!known || fits)
        stream_case(pl, row, "planes", f_and(f_and(guard, f_le(narrow.block_x, over)), filled(p, wide)), wide);
    if (!known || !fits)
        stream_case(pl, row, "planes_narrow", f_and(guard, filled(p, narrow)), narrow);
}

/* In three dimensions windows read the L2 cache nearly three times over, and where rows are short most warps have an end of
 * one: planes where rows begin anywhere, and where a point reads more than its direct neighbours.  Tiles are as wide as loses less
 * at the ends of rows.  H200, microseconds, in parentheses windows: 13 points at 512^3 329 (354), 19 points 324 (343),
 * but 7 points 310 (291), and of f64 574 (573); with a second array at the point 473 (404).  Windows read
 * planes several times, which are no longer in the L2 cache when they are large: 7 points of f64 at 512 x 768^2 1381
 * (1294), at 512 x 1024^2 2294 (2909), at 511 x 1023^2 2407 (2983). */
static void chosen_cases(struct planner *pl, const struct strategy *row)
{
    enum { SHORT = 192 }; /* a tile has whole rows, and most windows an end of one */
    const struct problem *p = pl->plan->problem;
    const struct shape one = { .points_x = 1, .points_y = 1, .points_z = 1 };
    const bool four = plain(p, 4, false), heavy = work_is_heavy(p);
    if (p->rank < 3 || pl->plan->device.sm < 80 || many_cases(pl, row))
        return;
    const bool light = stencil_window_cells(p, &one) <= NEIGHBOURS;
    const struct formula aligned = stencil_rows_aligned(p, stencil_vector(p));
    struct formula guard = { 0 }, smaller = enough(p, heavy ? any : finer);
    if (!heavy) /* H200, us, fitting tiles and windows: 25 points at 398 x 192 x 400 140, 134, at 766 x 399 x 400 573, 601 */
        smaller = f_and(smaller, f_not(&aligned));
    if (!four && heavy && plain(p, 8, true)) /* else a window would be a point, or spill */
        fitting_cases(pl, row, smaller);
    if (!four && !(light && plain(p, 8, false)))
        return;
    if (light) {
        const bool unaligned = four && may_be_unaligned(pl);
        const struct formula large =
            f_le(PLANE_BYTES / p->output[0].array.stride, f_mul(stencil_extent(p, 1), stencil_extent(p, 2)));
        guard = unaligned ? f_or(large, f_not(&aligned)) : large;
        smaller = f_and(smaller, f_le(stencil_extent(p, 2), SHORT));
    }
    wide_cases(pl, row, f_and(enough(p, usual), guard));
    if (four && (heavy || (!far(p) && may_be_unaligned(pl))))
        fitting_cases(pl, row, smaller);
}

void stencil_stream_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    if (!plan_pinned(pl)) {
        chosen_cases(pl, row);
        return;
    }
    plan_check(pl, small_planes(p), "stencil.stream counts the elements of a plane in 32 bits, and there are too many");
    if (!stencil_one_tree(p))
        vectors_cases(pl, row);
    stream_case(pl, row, "columns", (struct formula){ 0 }, shape_of(pl, "planes"));
}

bool stencil_stream_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    if (!stencil_global_build(pl, c))
        return false;
    const int64_t bytes = ring_bytes(p, c), most = pl->plan->device.shared_per_block;
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
