/* SPDX-License-Identifier: Apache-2.0 */
/* column.c - planning of reductions along a dimension that is not the last.
 *
 * A vector is 16 bytes of neighbouring columns; of narrow types it is 8 bytes anywhere in a row, read as words and
 * shifted, where rows are not multiples of 16 bytes.  Other columns are read one by one, some of them per thread.  Where there are enough vectors of columns for all threads of the
 * device, a thread takes all places of its columns; otherwise row groups of a block share them, and several blocks do
 * where columns are few and long.
 */
#include "segreduce.h"
#include "settle.h"

#include "lower/work.h"

enum { WORD_BYTES = 4 };

bool segreduce_column_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    const struct misfit m[] = { { segments_trailing(p),
                                  "the reduced dimensions are the last ones, so that segments are runs of elements" },
                                { !segments_adjacent(p), "a kept dimension lies between the reduced ones" },
                                { 0 } };
    return segreduce_regular(p, why) && plan_takes(why, m);
}

/* No array is read in vectors: all pairs of points, say, whose map is the work. */
static bool shares_all(const struct problem *p) { return !access_any_direct(p); }

/* Columns that a thread may have: a vector of the widest array; where there is none, as many as share what the map
 * loads. */
static int most_columns(const struct problem *p) { return shares_all(p) ? COLUMNS_SHARING : access_vector_width(p); }

/* Are the widest arrays of one or two bytes? */
static bool narrow(const struct problem *p) { return access_vector_width(p) >= 8; }

/* Is an element's operation long beside its load?  Columns one by one then keep more warps than vectors of them do. */
static bool single_columns(const struct problem *p)
{
    return !shares_all(p) && !narrow(p) && access_vector_width(p) > 1 &&
           segreduce_state_words(p) >= COLUMN_WIDE_WORDS / 2;
}

/* Columns per thread: no more states than registers hold. */
static int columns_per_thread(const struct planner *pl)
{
    const struct problem *p = pl->plan->problem;
    int vector = most_columns(p);
    const int words = shares_all(p) ? COLUMN_STATE_WORDS_MAX / 2 : COLUMN_STATE_WORDS_MAX; /* maps need registers too */
    while (vector > 1 && vector * segreduce_state_words(p) > words)
        vector /= 2;
    return vector;
}

/* Columns per thread where rows begin anywhere in words: of narrow scalars, which nothing is written for element by
 * element; 0: none. */
static int columns_shifted(const struct planner *pl, int vector)
{
    const struct problem *p = pl->plan->problem;
    const int most = access_vector_width(p) / 2; /* 8 bytes */
    bool takes = narrow(p) && vector >= WORD_BYTES && !problem_writes(p, AT_POINT), any = false;
    for (int i = 0; i < p->ninputs; i++) {
        const struct prog_array *a = access_direct(p, i);
        any |= a != NULL;
        takes &= !a || !*a->field[0].name;
    }
    return !takes || !any ? 0 : vector < most ? vector : most;
}

/* Columns per thread where a block's threads lie between them; 1: not. */
static int columns_striped(const struct planner *pl, int vector)
{
    const struct problem *p = pl->plan->problem;
    const int rows = plan_setting(pl, TN_ROWS, 1), most = rows > 1 && rows < 4 ? rows : 4; /* see check_tunables() */
    if (shares_all(p) || problem_writes(p, AT_POINT) || p->sums)
        return 1;
    return vector < most ? vector : most;
}

/* Fewer leave row groups of strips idle.  H200, largest of 64 x 270001, 100 x 200001, 128 x 300001 f32, in strips and here:
 * 37/20, 33/25, 49/53 us; u8 24/18, 20/19, 24/31; f64 54/40, 51/53, 80/81. */
enum { FEW_ROWS = 112 };

/* Up to twice as many where columns are so many for a multiprocessor, and not narrow.  H200 f32, 128 rows of
 * 262144/393216/524288: 37/48/64 us, as strips 34/53/68; 192 rows 55/72/94, 50/75/95; 256 rows 72/95/128, 65/96/125. */
enum { FEW_ROWS_PER_SM = 2816 };

/* Elements for each multiprocessor, and rows, which several blocks do not share.  H200, products of complex f32
 * [79, 765, 17] over d: 6.7 us, four columns of a thread 10.6; but sums of f32[500, 2001] 8.0 and 6.5. */
enum { SMALL = 8192, SMALL_ROWS = 128 };

/* Columns of states of several words that are read one by one.  H200, max segment sums of i32[1524990, 44] and [128, 500000]:
 * 90, 65 us, four columns of a thread 111, 80; but [2048, 32768] and [65536, 1001], as strips, 86, 86 and 69, 80. */
enum { SINGLE_LEAST = 33, SINGLE_MOST = 128 };

/* Their variants in tuning.def, and up to how many vectors of columns they are for, or narrower ones; 0: any number. */
static const struct shape {
    const char *name;
    int up_to, up_to_shifted;
} shapes[] = { { "columns", 0, 0 }, { "two", 2, 2 }, { "few", 4, 4 }, { "some", 32, 64 }, { "strips", 0, 0 } };
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* What a case is of: a shape, and `vector` columns per thread. */
struct columns {
    const struct shape *shape;
    int vector;
    bool beside; /* cases of more columns */
    enum columns_of of;
    bool deep; /* many places of a column at once */
};

/* H200, us, columns that are loaded one by one, in parentheses 4 places at once in 16 groups: sums of i32 [13617, 77], [54471, 77],
 * [585, 1791], [2341, 1791] 5.7, 11.3, 5.5, 10.4 (10.1, 16.5, 6.8, 12.8), longest runs 7.5, 13.5, 6.6, 10.3 (13.9, 25.8, 9.4,
 * 17.1), welford [585, 1791] 8.2 (10.4); but [871543, 77] 82 (95), runs [74940, 1791] 164 (155), [6710, 20001] 209 (157). */
enum { DEEP_ITEMS = 16, DEEP_ROWS = 8, DEEP_MOST = 1 << 17 /* elements for each multiprocessor */ };

/* Registers hold what is loaded and the states of all columns; all blocks that share columns are there at once. */
static void fit_registers(const struct problem *p, const struct columns *of, struct plan_case *c)
{
    const int vector = c->tunable[TN_VECTOR], words = segreduce_state_words(p) * vector;
    const bool wide = words >= COLUMN_WIDE_WORDS;
    if (of->of == COLUMNS_STRIPED)
        plan_set(c, TN_ITEMS, of->deep ? DEEP_ITEMS : 4, "as many loads in flight as fit registers");
    if (of->deep)
        return;
    if (work_of(p, NULL, 0).periodic) {
        plan_set(c, TN_ITEMS, 1,
                 "H200, MRI-Q, 32768 and 262144 voxels: 150 and 725 us, ptxas 0.4 s; 4 items 154 and 719, 1.2 s");
        return;
    }
    if (of->of == COLUMNS_SHIFTED) {
        plan_set(c, TN_ITEMS, 8,
                 "H100 f16, u8, bf16, bf16 twice by 117/397/49/28: 50/59/47/73 us, 4 items 52/62/46/73");
        plan_set(c, TN_BLOCKS_PER_SM, wide ? 3 : 4, "H100, as above: 4 blocks 47/55/42/68 us, 8 50/59/47/73; 3: model");
        return;
    }
    if (settle_find(p, &(struct settle){ 0 })) /* the longer a thread's row of elements, the rarer those that matter */
        plan_set(c, TN_BLOCKS_PER_SM, 2, "H100, four nearest of 2^21 points, 1024 queries: 5149 us; 8 blocks 5843");
    if (narrow(p) && vector == 1 && of->shape != &shapes[0])
        plan_set(c, TN_ITEMS, access_vector_width(p), "H100 i16[10000000, 3]: 8 items 40 us, 4 50; bytes: model");
    if (!narrow(p) && vector == 1 && words == 1 && of->shape == &shapes[SHAPES - 2])
        plan_set(c, TN_ITEMS, 16, "H200 f32[1863936, 9]: 29.3 us, 8 items 33.0");
    if (vector == 1 && single_columns(p))
        plan_set(c, TN_ITEMS, 8, "H200, max segment sums of i32[1524990, 44]: 90 us, four columns of 4 items 115");
    if (wide)
        plan_set(c, TN_ITEMS, 4, "wide states leave room for four vectors");
    if (access_beside(p) && c->tunable[TN_ITEMS] * vector > BESIDE_MAX / 2) /* beside a state per column */
        plan_set(c, TN_ITEMS, BESIDE_MAX / 2 / vector, "room for where rows begin");
    if (narrow(p) && words >= 2 * COLUMN_WIDE_WORDS && of->shape == &shapes[SHAPES - 2])
        plan_set(c, TN_BLOCKS_PER_SM, 3,
                 "H200 sums of 2^26 u8 in 96, 192 columns: 30, 28 us; 4 blocks, of which 3 fit, 40, 38");
    else if (narrow(p) && words >= 2 * COLUMN_WIDE_WORDS)
        plan_set(c, TN_BLOCKS_PER_SM, 4, "H100 i16 twice by 1024, i8 by 64768: 96/121 us, 8 blocks 106/125");
}

/* Do other loads read from the same lines of the first-level cache?  Those of neighbours do, of narrow columns one by one,
 * and of the next places where boxes are small. */
static bool read_again(const struct problem *p, const struct columns *of)
{
    const bool one_by_one = of->of == COLUMNS_STRIPED || of->vector == 1;
    if (problem_writes(p, AT_POINT) || shares_all(p) || of->of == COLUMNS_SHIFTED || access_beside(p))
        return true;
    return one_by_one && (narrow(p) || (of->shape == &shapes[0] && !p->space[0].reduced));
}

static struct plan_case *columns_case(struct planner *pl, const struct strategy *row, const void *what,
                                      const char *name, struct formula guard, bool aligned)
{
    const struct columns *of = what;
    struct plan_case *c = plan_case_add(pl, row, name, guard);
    plan_case_tuned(pl, c, of->shape->name);
    if (of->deep)
        plan_set(c, TN_ROWS, DEEP_ROWS, "H200, columns that are loaded one by one: see column.c");
    if (c->tunable[TN_ROWS] > c->tunable[TN_THREADS])
        plan_set(c, TN_ROWS, c->tunable[TN_THREADS], NULL);
    plan_set(c, TN_VECTOR, of->vector, "16 bytes of the widest array, or 4 columns, as far as states fit registers");
    c->shift[0] = of->of;
    if (of->beside)
        c->tunable[TN_VECTOR] = of->vector; /* whatever the user sets for the vectors beside it */
    plan_set_pdl(pl, c);
    plan_set(c, TN_EVICT_FIRST, !read_again(pl->plan->problem, of), "every vector is read once, and few are written");
    fit_registers(pl->plan->problem, of, c);
    segreduce_fit_items(c);
    c->aligned = aligned && c->tunable[TN_VECTOR] > 1;
    return c;
}

/* Vectors of columns: of rows that are multiples of a vector, or of all rows. */
static struct formula vectors(const struct problem *p, int vector, bool shifted)
{
    if (shifted)
        return f_mul(f_div(segments_count(p), f_max(segments_inner(p), 1)), f_cdiv(segments_inner(p), vector));
    return vector == 1 ? segments_count(p) : f_div(segments_count(p), vector);
}

static struct formula enough(const struct problem *p, struct formula vectors)
{
    return f_ge(vectors, f_mul(plan_sms(p), COLUMN_FILL_THREADS));
}

/* A condition on the sizes where they are known; absent: it holds. */
static struct formula settle(const struct planner *pl, struct formula f, bool *never)
{
    const int64_t *size = pl->options ? pl->options->size : NULL;
    for (int i = 0; size && i < pl->plan->problem->nsizes; i++)
        if (size[i] < 0)
            size = NULL;
    if (!size || !f.n)
        return f;
    *never |= !formula_eval(&f, &(const struct formula_env){ .size = size });
    return (struct formula){ 0 };
}

/* When a shape is taken, `vector` columns being side by side: one for no columns too many or too few, and whole
 * vectors. */
static struct formula shape_guard(const struct planner *pl, const struct shape *shape, int vector, bool shifted,
                                  bool *never)
{
    const struct problem *p = pl->plan->problem;
    struct formula f = { 0 };
    if (shifted) /* a warp's whole columns lie in one row: those in several use the first-level cache better one by one */
        f = f_ge(segments_inner(p), shape == &shapes[0] ? SEG_WARP * vector : vector);
    else if (vector > 1)
        f = f_eq(f_mod(segments_inner(p), vector), 0);
    if (shape == &shapes[0]) /* a thread takes all places of its columns */
        return f_and(settle(pl, f, never), enough(p, vectors(p, vector, shifted)));
    const int most = shifted ? shape->up_to_shifted : shape->up_to;
    return settle(pl, most ? f_and(f, f_le(vectors(p, vector, shifted), most)) : f, never);
}

/* The shape with vectors anywhere in rows. */
static void add_shifted(struct planner *pl, const struct strategy *row, const struct shape *shape, int vector)
{
    bool never = false;
    const struct formula sizes = shape_guard(pl, shape, vector, true, &never);
    if (!never)
        segreduce_add(pl, row, columns_case, &(struct columns){ shape, vector, true, COLUMNS_SHIFTED, false },
                      arena_printf(&pl->s->arena, "%s_shifted", shape->name), WORD_BYTES, sizes, false);
}

/* When a shape is taken with columns that are loaded one by one, beside vectors of `vector`, and of `shifted` if there are
 * any.  Columns of FEW_ROWS places and more go to strips where threads of several columns each would not fill the device. */
static struct formula single_guard(const struct planner *pl, const struct columns *of, int vector, int shifted,
                                   bool *never)
{
    const struct problem *p = pl->plan->problem;
    struct formula f = shape_guard(pl, of->shape, 1, false, never);
    if (of->shape != &shapes[0])
        return f;
    const struct formula inner = segments_inner(p), length = segments_length(p);
    const struct formula many = f_ge(segments_count(p), f_mul(plan_sms(p), FEW_ROWS_PER_SM));
    struct formula few = f_lt(length, FEW_ROWS);
    if (!narrow(p) && segreduce_state_words(p) == 1)
        few = f_or(few, f_and(f_lt(length, 2 * FEW_ROWS), many));
    if (of->vector > 1)
        f = f_and(f, f_or(enough(p, vectors(p, of->vector, false)), few));
    if (shifted || (shares_all(p) && vector > 1))
        f = f_and(f, f_or(shifted ? f_lt(inner, shifted) : f_ne(f_mod(inner, vector), 0), few));
    return f;
}

/* Small arrays, whose columns one by one occupy more multiprocessors than several of a thread do: a block has 16 of them. */
static void add_small(struct planner *pl, const struct strategy *row, const struct shape *shape, bool vectors)
{
    const struct problem *p = pl->plan->problem;
    bool never = false;
    const struct columns of = { shape, 1, vectors, COLUMNS_ALIGNED, false };
    const struct formula few = f_le(segments_length(p), SMALL_ROWS);
    const struct formula small = f_and(f_le(access_count(p), f_mul(plan_sms(p), SMALL)), few);
    const struct formula guard = settle(pl, small, &never);
    if (!never && !plan_overrides(pl, TN_ROWS))
        columns_case(pl, row, &of, arena_printf(&pl->s->arena, "%s_small", shape->name), guard, false);
}

/* Arrays that are not large, of columns that are loaded one by one. */
static void add_deep(struct planner *pl, const struct strategy *row, const struct columns *like)
{
    const struct problem *p = pl->plan->problem;
    struct columns of = *like;
    bool never = false;
    of.deep = true;
    of.beside = true;
    const struct formula guard = settle(pl, f_le(access_count(p), f_mul(plan_sms(p), DEEP_MOST)), &never);
    if (!never && !plan_overrides(pl, TN_ROWS) && !plan_overrides(pl, TN_ITEMS) && !access_beside(p) &&
        !work_of(p, NULL, 0).periodic && !work_is_heavy(p))
        columns_case(pl, row, &of, arena_printf(&pl->s->arena, "%s_deep", like->shape->name), guard, false);
}

/* Have segments more bytes of results than an element has? */
static bool wider_results(const struct problem *p)
{
    int results = 0, elements = 0;
    for (int o = 0; o < p->noutputs; o++)
        results += output_moment(&p->output[o]) == AT_TOTAL ? (int)p->output[o].array.stride : 0;
    for (int i = 0; i < p->ninputs; i++)
        elements += access_direct(p, i) ? (int)access_direct(p, i)->stride : 0;
    return results > elements || segreduce_state_words(p) > 1;
}

/* Few places of narrow elements, whose results are wider, or of states that are read one by one where places are many: four
 * columns of a thread, whose results are 16 bytes.  H200, us, in parentheses the other shapes: [d, 5, 2048] and [d, 12, 2048],
 * sums of 2^28 i8 159, 105 (545, 214), minima and maxima of 2^27 i16 127, 82 (248, 107), max segment sums of 2^26 i32 81, 69
 * (149, 96); with 40 places 93, 73, 69 (111, 79, 68). */
static void add_short(struct planner *pl, const struct strategy *row)
{
    enum { COLUMNS = 4, PLACES = 24 };
    static const struct shape shape = { "short", 0, 0 };
    const struct problem *p = pl->plan->problem;
    const struct columns of = { &shape, COLUMNS, true, COLUMNS_ALIGNED, false };
    const struct formula columns = f_eq(f_mod(segments_inner(p), COLUMNS), 0);
    bool never = false;
    struct formula aligned;
    const struct formula sizes = settle(pl, f_and(columns, f_le(segments_length(p), PLACES)), &never);
    if (!never && access_aligned_guard(p, COLUMNS, true, &aligned))
        segreduce_add(pl, row, columns_case, &of, shape.name, COLUMNS,
                      f_and(sizes, enough(p, vectors(p, COLUMNS, false))), false);
}

/* The shape with vectors, and one column per thread for all other sizes and addresses. */
static void add_shape(struct planner *pl, const struct strategy *row, const struct shape *shape, int vector)
{
    struct formula aligned;
    bool never = false;
    const struct formula sizes = shape_guard(pl, shape, vector, false, &never);
    const struct problem *p = pl->plan->problem;
    const bool strips = shape == &shapes[SHAPES - 1];
    const bool vectors = shares_all(p) ? vector > 1 && strips : access_aligned_guard(p, vector, true, &aligned);
    if (!never && vectors)
        segreduce_add(pl, row, columns_case, &(struct columns){ shape, vector, false, COLUMNS_ALIGNED, false },
                      shape->name, vector, sizes, false);
    const int shifted = vectors ? columns_shifted(pl, vector) : 0;
    if (shifted)
        add_shifted(pl, row, shape, shifted);
    never = false;
    const bool may = (shape == &shapes[0] || strips) && !plan_overrides(pl, TN_VECTOR);
    const int width = may ? columns_striped(pl, vector) : 1;
    if (strips && width > 1)
        add_small(pl, row, shape, vectors);
    const struct columns of = { shape, width, vectors, width > 1 ? COLUMNS_STRIPED : COLUMNS_ALIGNED, false };
    if (strips && width > 1)
        add_deep(pl, row, &of);
    const struct formula single = single_guard(pl, &of, vector, shifted, &never);
    if (!never)
        columns_case(pl, row, &of, arena_printf(&pl->s->arena, "%s_scalar", shape->name), single, false);
}

/* Some columns, whose elements take long: one by one, in row groups of 16. */
static void add_single(struct planner *pl, const struct strategy *row)
{
    const struct formula n = segments_count(pl->plan->problem);
    const struct columns of = { &shapes[SHAPES - 1], 1, true, COLUMNS_ALIGNED, false };
    bool never = false;
    const struct formula guard = settle(pl, f_and(f_ge(n, SINGLE_LEAST), f_le(n, SINGLE_MOST)), &never);
    if (!never)
        columns_case(pl, row, &of, "single", guard, false);
}

void segreduce_column_plan(struct planner *pl, const struct strategy *row)
{
    const struct plan *plan = pl->plan;
    const int vector = plan_setting(pl, TN_VECTOR, columns_per_thread(pl));
    const bool single = single_columns(plan->problem) && !plan_overrides(pl, TN_VECTOR) && !plan_overrides(pl, TN_ROWS);
    if ((single || (narrow(plan->problem) && wider_results(plan->problem))) && vector >= 4 && !plan_pinned(pl) &&
        !plan->problem->space[0].reduced && !access_beside(plan->problem) && !shares_all(plan->problem))
        add_short(pl, row);
    /* Shapes differ in rows; a user who sets them leaves one shape for all sizes. */
    for (int i = plan_overrides(pl, TN_ROWS) ? SHAPES - 1 : 0; i < SHAPES; i++) {
        if (single && i == 1)
            add_single(pl, row);
        add_shape(pl, row, &shapes[i], single && i == 0 ? 1 : vector);
        if (plan->ncases && !plan->cases[plan->ncases - 1].code.guard.n)
            return;
    }
}

static bool check_tunables(struct planner *pl, const struct plan_case *c)
{
    const int threads = c->tunable[TN_THREADS], rows = c->tunable[TN_ROWS], vector = c->tunable[TN_VECTOR];
    const struct misfit m[] = {
        { threads < 32 || rows > threads || !segreduce_power_of_two(threads) || !segreduce_power_of_two(rows),
          "threads and rows must be powers of two, and rows not above threads" },
        { rows > 1 && rows < vector, "several rows must be no fewer than the elements of a vector" },
        { c->shift[0] == COLUMNS_SHIFTED && columns_shifted(pl, vector) != vector,
          "vectors anywhere in a row have 4 to 8 bytes of narrow scalars" },
        { c->shift[0] == COLUMNS_STRIPED && columns_striped(pl, vector) != vector,
          "columns that lie apart are loaded one by one, and nothing is written for their elements" },
        { c->shift[0] > COLUMNS_STRIPED, "there is no such layout of columns" },
        { c->tunable[TN_ITEMS] * vector > ITEMS_MAX, "a thread holds at most 64 elements" },
        { vector > most_columns(pl->plan->problem) || !segreduce_power_of_two(vector),
          "the vector must be a power of two, no wider than 16 bytes of the widest array; at most 4 where no array "
          "follows all dimensions" },
        { 0 }
    };
    return plan_consistent(pl, c, m);
}

/* Several blocks for a group of columns, each with a round of all row groups at least, none without a place. */
static struct formula several_blocks(struct planner *pl, struct plan_case *c, struct prog_kernel *k,
                                     struct formula groups)
{
    const struct problem *p = pl->plan->problem;
    const int width = c->tunable[TN_THREADS] / c->tunable[TN_ROWS] * c->tunable[TN_VECTOR];
    const int64_t round = (int64_t)c->tunable[TN_ROWS] * c->tunable[TN_ITEMS];
    const struct formula fill = f_mul(plan_sms(p), c->tunable[TN_BLOCKS_PER_SM]);
    const struct formula wanted = f_min(f_max(f_div(fill, f_max(groups, 1)), 1), SEG_PARTS_MAX);
    const struct formula blocks = f_mul(groups, segreduce_parts(k, segments_length(p), wanted, round, round));
    plan_buffer_arg(pl, c, 0, BUF_COUNTER, REGION_CONTROL, f_mul(groups, 4));
    plan_partials_arg(pl, c, 0, blocks, width);
    return blocks;
}

bool segreduce_column_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    if (!check_tunables(pl, c))
        return false;
    const int vector = c->tunable[TN_VECTOR];
    const bool shifted = c->shift[0] == COLUMNS_SHIFTED, striped = c->shift[0] == COLUMNS_STRIPED;
    const struct formula all = vectors(p, striped ? 1 : vector, shifted), inner = segments_inner(p);
    const int across = c->tunable[TN_THREADS] / c->tunable[TN_ROWS];
    const struct formula groups = f_cdiv(all, striped ? across * vector : across);
    struct prog_kernel *k = segreduce_kernel(pl, c, "");
    plan_value_arg(k, VAL_VECTORS, TY_I64, all);
    plan_value_arg(k, VAL_VECTORS_ACROSS, TY_I64, shifted ? f_cdiv(inner, vector) : f_div(inner, striped ? 1 : vector));
    plan_launch(pl, c, 0, c->tunable[TN_ROWS] == 1 ? groups : several_blocks(pl, c, k, groups));
    return true;
}
