/* SPDX-License-Identifier: Apache-2.0 */
/* column.c - planning of reductions along a dimension that is not the last.
 *
 * A vector is 16 bytes of neighbouring columns.  Where there are enough vectors of columns for all threads of the
 * device, a thread takes all places of its columns; otherwise row groups of a block share them, and several blocks do
 * where columns are few and long.
 */
#include "segreduce.h"

enum { STATE_WORDS_MAX = 32, WIDE_WORDS = 8, FILL_THREADS = 1024, PARTS_MAX = 1 << 16, SHAPES = 5 };

bool segreduce_column_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d;
    if (!segreduce_regular(p, a, why))
        return false;
    if (segments_trailing(p))
        *why = "the reduced dimensions are the last ones, so that segments are runs of elements";
    else if (!segments_adjacent(p))
        *why = "a kept dimension lies between the reduced ones";
    else
        return true;
    return false;
}

/* Columns per thread: a vector of the widest array, and no more states than registers hold. */
static int columns_per_thread(const struct planner *pl)
{
    const struct problem *p = pl->plan->problem;
    int vector = access_vector_width(p);
    while (vector > 1 && vector * segreduce_state_words(p) > STATE_WORDS_MAX)
        vector /= 2;
    return vector;
}

static const struct shape {
    const char *name;
    int threads, rows, items;
    int up_to; /* so many vectors of columns; 0: any number */
    const char *evidence;
} shapes[SHAPES] = {
    { "columns", 128, 1, 8, 0, "model: eight vectors in flight per thread" },
    { "narrow", 256, 128, 4, 2, "model: two vectors across, 128 row groups" },
    { "few", 256, 64, 4, 4, "H200 f32 2^26, 2^22 rows: four vectors across 69.6 us, two 106" },
    { "some", 256, 32, 4, 32, "H200 f32 2^26, 2^19/2^21 rows: 70.0/71.1 us; 16 groups 71.6/83.7, 64 108/80.3" },
    { "strips", 256, 16, 4, 0,
      "H200 f32 2^26, 2^9/2^11/2^15/2^17 rows: 63.1/65.7/66.9/67.7 us; 32 groups 64.1/67.5/68.3/69.6, 8 groups "
      "66.7/66.3/68.0/71.3; read 61.2" },
};

static void add_case(struct planner *pl, const struct strategy *row, const struct shape *shape, const char *suffix,
                     int vector, bool aligned, bool beside, struct formula guard)
{
    struct plan_case *c = plan_case_add(pl, row, arena_printf(&pl->s->arena, "%s%s", shape->name, suffix), guard);
    segreduce_set(c, TN_THREADS, shape->threads, shape->evidence);
    segreduce_set(c, TN_ROWS, shape->rows < c->tunable[TN_THREADS] ? shape->rows : c->tunable[TN_THREADS],
                  shape->evidence);
    segreduce_set(c, TN_ITEMS, shape->items, shape->evidence);
    segreduce_set(c, TN_VECTOR, vector, "16 bytes of the widest array, as far as states fit registers");
    if (beside)
        c->tunable[TN_VECTOR] = vector; /* whatever the user sets for the vectors beside it */
    segreduce_set(c, TN_PDL, pl->plan->device.sm >= 90, "on where the architecture has it");
    segreduce_set(c, TN_EVICT_FIRST, !problem_writes(pl->plan->problem, AT_POINT),
                  "every vector is read once, and few are written");
    /* Registers hold what is loaded and the states of all columns. */
    if (segreduce_state_words(pl->plan->problem) * c->tunable[TN_VECTOR] >= WIDE_WORDS)
        segreduce_set(c, TN_ITEMS, 4, "wide states leave room for four vectors");
    while (c->tunable[TN_ITEMS] > 1 && !c->overridden[TN_ITEMS] &&
           c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR] > ITEMS_MAX)
        c->tunable[TN_ITEMS] /= 2;
    c->aligned = aligned && c->tunable[TN_VECTOR] > 1;
}

/* Vectors of columns, as far as sizes are multiples of a vector. */
static struct formula vectors(const struct problem *p, int vector)
{
    return vector == 1 ? segments_count(p) : f_div(segments_count(p), f_const(vector));
}

static struct formula enough(const struct problem *p, struct formula vectors)
{
    return f_ge(vectors, f_mul(segreduce_sms(p), f_const(FILL_THREADS)));
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
static struct formula shape_guard(const struct planner *pl, const struct shape *shape, int vector, bool *never)
{
    const struct problem *p = pl->plan->problem;
    struct formula f = { 0 };
    if (vector > 1)
        f = f_eq(f_mod(segments_inner(p), f_const(vector)), f_const(0));
    if (shape->rows == 1)
        return segreduce_all(settle(pl, f, never), enough(p, vectors(p, vector)));
    return settle(pl, shape->up_to ? segreduce_all(f, f_le(vectors(p, vector), f_const(shape->up_to))) : f, never);
}

/* The shape with vectors, where arrays and rows begin at a boundary; the same tree without that, where it must not
 * depend on addresses; and one column per thread for all other sizes. */
static void add_shape(struct planner *pl, const struct strategy *row, const struct shape *shape, int vector)
{
    const struct problem *p = pl->plan->problem;
    struct formula aligned = { 0 };
    bool never = false;
    const struct formula sizes = shape_guard(pl, shape, vector, &never);
    const bool vectors = access_aligned_guard(p, vector, true, &aligned);
    if (!never && vectors) {
        add_case(pl, row, shape, "", vector, true, false, segreduce_all(sizes, aligned));
        if (state_determinism(p) != DET_ANY)
            add_case(pl, row, shape, "_unaligned", vector, false, false, sizes);
    }
    never = false;
    const struct formula single = shape_guard(pl, shape, 1, &never);
    if (!never)
        add_case(pl, row, shape, "_scalar", 1, false, vectors, single);
}

void segreduce_column_plan(struct planner *pl, const struct strategy *row)
{
    const struct plan *plan = pl->plan;
    const int vector = plan_setting(pl, TN_VECTOR, columns_per_thread(pl));
    /* Shapes differ in rows; who sets them leaves one shape for all sizes. */
    for (size_t i = plan_overrides(pl, TN_ROWS) ? SHAPES - 1 : 0; i < SHAPES; i++) {
        add_shape(pl, row, &shapes[i], vector);
        if (plan->ncases && !plan->cases[plan->ncases - 1].code.guard.n)
            return;
    }
}

static bool power_of_two(int x) { return (x & (x - 1)) == 0; }

static bool check_tunables(struct planner *pl, const struct plan_case *c)
{
    const int threads = c->tunable[TN_THREADS], rows = c->tunable[TN_ROWS], vector = c->tunable[TN_VECTOR];
    if (threads < 32 || rows > threads || !power_of_two(threads) || !power_of_two(rows))
        return segreduce_contradiction(pl, c, "threads and rows must be powers of two, and rows not above threads");
    if (rows > 1 && rows < vector)
        return segreduce_contradiction(pl, c, "several rows must be no fewer than the elements of a vector");
    if (c->tunable[TN_ITEMS] * vector > ITEMS_MAX)
        return segreduce_contradiction(pl, c, "a thread holds at most 64 elements");
    if (vector > access_vector_width(pl->plan->problem) || !power_of_two(vector))
        return segreduce_contradiction(pl, c,
                                       "the vector must be a power of two, no wider than 16 bytes of the widest array");
    return true;
}

/* Several blocks for a group of columns, each with a round of all row groups at least, none without a place. */
static void split_blocks(struct planner *pl, struct plan_case *c, struct prog_kernel *k, struct formula groups)
{
    const struct problem *p = pl->plan->problem;
    const int width = c->tunable[TN_THREADS] / c->tunable[TN_ROWS] * c->tunable[TN_VECTOR];
    const struct formula length = segments_length(p),
                         round = f_const((int64_t)c->tunable[TN_ROWS] * c->tunable[TN_ITEMS]);
    const struct formula fill = f_mul(segreduce_sms(p), f_const(c->tunable[TN_BLOCKS_PER_SM]));
    const struct formula wanted = f_min(f_max(f_div(fill, f_max(groups, f_const(1))), f_const(1)), f_const(PARTS_MAX));
    const struct formula chunk = f_max(f_mul(f_cdiv(f_cdiv(length, wanted), round), round), round);
    const struct formula parts = f_max(f_cdiv(length, chunk), f_const(1)), blocks = f_mul(groups, parts);
    plan_value_arg(k, "parts", TY_I32, parts);
    plan_value_arg(k, "chunk", TY_I64, chunk);
    segreduce_partials(pl, c, k, groups, f_mul(blocks, f_const(width)));
    plan_launch(pl, c, 0, blocks);
}

bool segreduce_column_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    if (!check_tunables(pl, c))
        return false;
    const struct formula vector = f_const(c->tunable[TN_VECTOR]), all = vectors(p, c->tunable[TN_VECTOR]);
    const struct formula groups = f_cdiv(all, f_const(c->tunable[TN_THREADS] / c->tunable[TN_ROWS]));
    struct prog_kernel *k = segreduce_kernel(pl, c, "");
    plan_value_arg(k, "vectors", TY_I64, all);
    plan_value_arg(k, "vectors_across", TY_I64, f_div(segments_inner(p), vector));
    if (c->tunable[TN_ROWS] == 1)
        plan_launch(pl, c, 0, groups);
    else
        split_blocks(pl, c, k, groups);
    return true;
}
