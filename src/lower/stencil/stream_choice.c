/* SPDX-License-Identifier: Apache-2.0 */
/* stream_choice.c - where blocks that stream along the outermost dimension pay, and which tiles they have.
 *
 *   vector_cases()   rows begin at boundaries of vectors, or of half vectors: two widths, the one that fits the rows best
 *   wide_cases()     an element each, 256 or 128 columns, where these fill the rows
 *   fitting_cases()  an element each, as wide as fits the rows best, where rows begin anywhere
 *   many_cases()     what reads much: narrow values, bytes, others beside an array
 *
 * What none of them takes is left to windows (windows.c).
 */
#include "lower/work.h"
#include "stencil_plan.h"
#include "taps.h"

enum {
    POINTS = 1 << 23,
    NEIGHBOURS = 7,
    READS = 19,
    CROWD = 40,
    FAR_PLANES = 6,
    VERY_FAR_PLANES = 8,
    PLANE_BYTES = 6 << 20
};

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

/* How many planes away do points read, from the first to the last? */
static int64_t planes_of(const struct problem *p)
{
    const struct reach r = stencil_space_reach(p);
    return r.hi[0] - r.lo[0];
}

/* Of stars of radius 4 and more a thread has so many values that tiles need other shapes. */
static bool very_far(const struct problem *p) { return planes_of(p) >= VERY_FAR_PLANES; }

/* Columns that tiles of this width cover. */
static struct formula covered(const struct problem *p, int width)
{
    return f_mul(f_cdiv(stencil_extent(p, 2), width), width);
}

/* Do the tiles of a plane fill it but for an eighth?  H200, picoseconds a point, in parentheses windows: 9 points at 191 x 767 x 192
 * 4.3 (2.6), 13 points at 398 x 397 x 398 3.4 (3.2), 27 points at 400 x 400 x 192 3.6 (3.2), 7 points at 399 x 398 x 398
 * 3.0 (2.4), at 767 x 189 x 190 2.9 (3.6). */
static struct formula filled(const struct problem *p, struct shape s)
{
    const int64_t rows = (int64_t)s.block_y * s.points_y;
    const struct formula y = stencil_extent(p, 1), x = stencil_extent(p, 2);
    const struct formula area = f_mul(covered(p, s.block_x), f_mul(f_cdiv(y, rows), rows));
    return f_le(f_mul(7, area), f_mul(8, f_mul(x, y)));
}

/* As many blocks per multiprocessor as rings fit, up to this many: these tiles are small.  Two instead of four where most of
 * very many reads have a weight, with which ptxas spills: H200, 125 points at 191 x 190 x 398, 4 blocks 461 us, 3 412, 2 389, 1 423. */
static void several_blocks(struct planner *pl, struct plan_case *c, int blocks)
{
    enum { WEIGHTED = 2, MANY = 4 };
    const struct problem *p = pl->plan->problem;
    const int64_t fit = pl->plan->device.shared_per_block / stencil_ring_bytes(p, c);
    const int reads = stencil_reads(p);
    if (blocks >= MANY && reads > 2 * CROWD && 2 * work_operations(p) > 3 * reads)
        blocks = WEIGHTED;
    plan_set(c, TN_MIN_BLOCKS, fit < blocks ? (int)fit : blocks, "rings of small tiles, in shared memory");
}

/* Widths of tiles, of which one leaves little of the rows of nearly all arrays idle, and blocks of a multiprocessor: with
 * less than 96 registers for a thread ptxas spills of 125 points, and with 72 of 25 points and an array beside them.  H200, us,
 * 125 points at 400 x 399 x 399 by 208 and 112 columns 467, 511, with weights 832, 1042, and an array 912, 1135. */
struct widths {
    int n, width[4], blocks[4];
};
static struct widths widths_of(const struct problem *p)
{
    static const struct widths one = { 4, { 208, 192, 160, 112 }, { 2, 2, 2, 4 } },
                               two = { 3, { 192, 160, 112 }, { 2, 2, 3 } },
                               crowd = { 4, { 208, 160, 112, 96 }, { 2, 2, 2, 3 } },
                               wide = { 4, { 208, 160, 112, 96 }, { 1, 1, 2, 2 } },
                               doubles = { 4, { 208, 160, 112, 96 }, { 1, 1, 2, 3 } },
                               light = { 2, { 192, 112 }, { 2, 4 } };
    const int reads = stencil_reads(p);
    if (reads > CROWD && stencil_beside(p))
        return wide;
    if (reads > CROWD && p->output[0].array.stride > 4)
        return doubles;
    return reads > CROWD ? crowd : reads <= NEIGHBOURS ? light : stencil_beside(p) ? two : one;
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
        struct shape s = stencil_stream_shape(pl, "planes_fitting");
        if (!may_fit_best(pl, w.width[i]))
            continue;
        s.block_x = w.width[i];
        s.threads = s.block_x * s.block_y;
        if (very_far(p)) /* H200, star of radius 4 at 400 x 399 x 399, us: 4 rows and 2 blocks 436, 8 and one 305 */
            s.points_y *= 2;
        const struct formula best = f_le(covered(p, s.block_x), covered_best(p));
        struct plan_case *c =
            stencil_stream_case(pl, row, arena_printf(&pl->s->arena, "planes_%d", s.block_x), f_and(guard, best), s);
        if (c->tunable[TN_BLOCK_X] != w.width[i] ||
            c->tunable[TN_THREADS] != 2 * w.width[i]) { /* it has been made smaller */
            plan_case_drop(pl);
            continue;
        }
        several_blocks(pl, c, very_far(p) ? 1 : w.blocks[i]);
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
    struct plan_case *c = stencil_stream_case(pl, row, "planes", f_and(guard, best), s);
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
    const bool packs = stencil_packs(p) && !stencil_shares_sums(p), away = planes_of(p) >= FAR_PLANES;
    const bool heavy = work_is_heavy(p); /* windows would be a point */
    if ((stencil_narrow(p) || packs) && reads > CROWD && (plain(p, 1, heavy) || plain(p, 2, heavy))) {
        /* ptxas spills bytes of 125 points where a thread has 128 registers */
        const bool bytes = plain(p, 1, heavy) && reads > 2 * CROWD;
        const struct formula guard = packs && whole.n ? f_not(&whole) : (struct formula){ 0 };
        case_or_fitting(pl, row, f_and(enough(p, usual), guard), f_and(enough(p, packs ? any : finer), guard),
                        stencil_stream_shape(pl, bytes ? "planes_tall" : "planes_crowd"));
        return true;
    }
    if (reads <= (away ? CROWD : READS) || plain(p, 4, false) || !plain(p, 4, true) || !aligned.n)
        return false;
    const struct formula guard = f_and(enough(p, usual), f_not(&aligned));
    if (away) {
        stencil_stream_case(pl, row, "planes", guard, stencil_stream_shape(pl, "planes_tall"));
        return true;
    }
    struct plan_case *c = case_or_fitting(pl, row, guard, f_and(enough(p, finer), f_not(&aligned)),
                                          stencil_stream_shape(pl, "planes_beside"));
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
    const struct shape wide = stencil_stream_shape(pl, "planes"), narrow = stencil_stream_shape(pl, "planes_narrow");
    int64_t points, most, columns, last;
    plan_count_range(pl, &points, &most);
    plan_extent_range(pl, &p->space[2].extent, &columns, &last);
    if (most < usual.points)
        return;
    const bool known = columns == last, fits = (last - 1) % wide.block_x >= narrow.block_x;
    const struct formula over = f_mod(f_sub(stencil_extent(p, 2), 1), wide.block_x);
    if (!known || fits)
        stencil_stream_case(pl, row, "planes", f_and(f_and(guard, f_le(narrow.block_x, over)), filled(p, wide)), wide);
    if (!known || !fits)
        stencil_stream_case(pl, row, "planes_narrow", f_and(guard, filled(p, narrow)), narrow);
}

/* Tiles of vectors: how many threads wide, and of how many threads, the best one first; number `half` serves rows of half
 * vectors too. */
struct vector_tiles {
    int n, threads[3], block_x[3], half;
};
static struct vector_tiles vector_tiles_of(const struct problem *p)
{
    static const struct vector_tiles usual = { 2, { 256, 224 }, { 32, 28 }, 1 }, roomy = { 1, { 192 }, { 24 }, 0 },
                                     crowd = { 3, { 320, 320, 320 }, { 20, 16, 32 }, 0 };
    /* with 128 registers ptxas spills, H200, us: star of radius 4 and an array at 400^3 28 x 8 threads 401, 24 x 8 329 */
    const bool spills = very_far(p) && (stencil_beside(p) || p->output[0].array.stride > 4);
    return stencil_reads(p) > CROWD && planes_of(p) < FAR_PLANES ? crowd : spills ? roomy : usual;
}

/* A block walks over several times as many planes as its points read around them.  H200, us, in parentheses windows: stars of radius 3
 * at 192^3, where blocks of f64 have 26 planes, 54 (52), of f32 beside an array 13, 55 (41), of f16 7, 57 (31); but 27
 * points of f16 34 (32), of f32 25 (31), and 125 points 73 (166), but with weights 249 (136). */
static struct formula long_chunks(const struct problem *p, struct shape s, int vector)
{
    enum { BLOCKS = 2 };
    const int64_t tile = (int64_t)s.threads * s.points_y * vector, planes = planes_of(p);
    const int64_t least = (work_is_heavy(p) ? 20 : stencil_reads(p) > CROWD ? 4 : 15) * planes;
    return f_le(f_mul(plan_sms(p), least * tile * BLOCKS), f_mul(4, access_count(p)));
}

/* Of half vectors, with 128 registers ptxas spills 8 bytes of far stars and of 27 points that are not computed at the edges.
 * H200, star of radius 4 at 400 x 399 x 398, 4 and 3 rows: 236, 225 us. */
static bool four_rows_spill(const struct problem *p)
{
    enum { BOX = 27 };
    return very_far(p) || (stencil_reads(p) >= BOX && stencil_skips(p));
}

/* Where rows begin at boundaries of vectors, or of halves of them: tiles as wide as fits the rows best.  H200, us, such tiles, those
 * of single elements, windows: stars of radius 3 at 400^3 185, 375, 233, of radius 4 222, 482, 345, at 767 x 191 x 320 145,
 * 348; 27 points at 400^3 170, 218 (windows), of f64 341, 416 (windows); 125 points 396, 1310; but 7 points 168, 144
 * (windows), and at 512^3 a star of radius 3 361, 335. */
static void vector_cases(struct planner *pl, const struct strategy *row)
{
    static const struct least crowd = { 1 << 21, 32, 32, 64 };
    const struct problem *p = pl->plan->problem;
    if (planes_of(p) >= FAR_PLANES && stencil_beside(p) &&
        (stencil_skips(p) || !ty_is_float(p->output[0].array.field[0].type)))
        return; /* ptxas spills.  H200, four steps of a star of radius 3 of i32 and an array at 512^3: 3571 us, windows 2086 */
    const struct vector_tiles t = vector_tiles_of(p);
    const int longest = stencil_vector(p);
    struct formula least = covered(p, t.block_x[0] * longest);
    for (int i = 1; i < t.n; i++)
        least = f_min(least, covered(p, t.block_x[i] * longest));
    if (work_is_heavy(p) && !stencil_beside(p)) /* else windows; idle columns cost more than what vectors gain */
        least = f_min(least, covered_best(p));
    /* ptxas spills up to 24 bytes of half vectors beside an array */
    const int shortest = stencil_beside(p) ? longest : longest / 2;
    for (int vector = longest; vector > 1 && vector >= shortest; vector /= 2)
        for (int i = vector < longest ? t.half : 0; i < (vector < longest ? t.half + 1 : t.n); i++) {
            struct shape s = stencil_stream_shape(pl, "vectors_fitting");
            s.threads = t.threads[i];
            s.block_x = t.block_x[i];
            const int wide = s.block_x * longest;
            const struct formula large =
                f_and(enough(p, stencil_reads(p) > CROWD ? crowd : finer), long_chunks(p, s, longest));
            const bool any_fit = vector < longest && !work_is_heavy(p);
            const struct formula guard = any_fit ? large : f_and(large, f_le(covered(p, wide), least));
            struct plan_case *c = stencil_stream_vectors(
                pl, row, arena_printf(&pl->s->arena, "vectors_%d_%d", vector, wide), guard, s, vector);
            if (c && vector < longest && four_rows_spill(p))
                plan_set(c, TN_POINTS_Y, c->tunable[TN_POINTS_Y] - 1, s.from);
            /* ptxas spills up to 32 bytes in two blocks; H200, 125 weights and an array at 400^3 1412, 1539 us, windows 2104 */
            if (c)
                several_blocks(pl, c, work_is_heavy(p) && stencil_beside(p) ? 1 : 2);
        }
}

static bool vectors_pay(const struct problem *p, const struct shape *one)
{
    const bool light = stencil_window_cells(p, one) <= NEIGHBOURS + stencil_beside(p);
    if (light || stencil_packs(p) || (stencil_narrow(p) && stencil_reads(p) > CROWD))
        return false;
    return plain(p, 2, true) || plain(p, 4, true) || plain(p, 8, true);
}

/* Rows of halves and doubles that begin anywhere, an element each.  H200, 400 x 399 x 399, us, in parentheses windows: 27 points of
 * f64 295 (517), of f16 210 (244), but 13 points 422 (356), 206 (166), a star of radius 3 545 (549), 256 (228). */
static void unaligned_cases(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const int longest = stencil_vector(p);
    const struct formula half = stencil_rows_aligned(p, longest > 2 ? longest / 2 : 2);
    if (planes_of(p) <= 2 && stencil_reads(p) >= READS && half.n && (plain(p, 2, false) || plain(p, 8, false)))
        fitting_cases(pl, row, f_and(enough(p, finer), f_not(&half)));
}

/* In three dimensions windows read the L2 cache nearly three times over, and where rows are short most warps have an end of
 * one: planes where rows begin anywhere, and where a point reads more than its direct neighbours.  Tiles are as wide as loses less
 * at the ends of rows.  H200, microseconds, in parentheses windows: 13 points at 512^3 329 (354), 19 points 324 (343),
 * but 7 points 310 (291), and of f64 574 (573); with a second array at the point 473 (404).  Windows read
 * planes several times, which are no longer in the L2 cache when they are large: 7 points of f64 at 512 x 768^2 1381
 * (1294), at 512 x 1024^2 2294 (2909), at 511 x 1023^2 2407 (2983). */
void stencil_stream_choose(struct planner *pl, const struct strategy *row)
{
    enum { SHORT = 192 }; /* a tile has whole rows, and most windows an end of one */
    const struct problem *p = pl->plan->problem;
    const struct shape one = { .points_x = 1, .points_y = 1, .points_z = 1 };
    const bool four = plain(p, 4, false), heavy = work_is_heavy(p);
    if (p->rank < 3 || pl->plan->device.sm < 80)
        return;
    const bool light = stencil_window_cells(p, &one) <= NEIGHBOURS, vectors = vectors_pay(p, &one);
    if (vectors && (!four || very_far(p)))
        vector_cases(pl, row);
    if (vectors && !four)
        unaligned_cases(pl, row);
    if (many_cases(pl, row))
        return;
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
    /* H200, us, tiles of 256 single elements and of vectors at 320 x 1280 x 240: 13 points 270, 250, 27 points 303, 252; at 512^3 320, 336,
     * and 328, 346; a star of radius 3 at 384^3, 128 wide 151, 172 */
    const struct formula whole = f_eq(f_mod(stencil_extent(p, 2), planes_of(p) < FAR_PLANES ? 256 : 128), 0);
    if (vectors)
        guard = f_or(f_not(&aligned), whole);
    wide_cases(pl, row, f_and(enough(p, usual), guard));
    if (vectors && !very_far(p))
        vector_cases(pl, row);
    if (four && (heavy || may_be_unaligned(pl)))
        fitting_cases(pl, row, smaller);
}
