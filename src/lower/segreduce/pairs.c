/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.c - planning of reductions over pairs of rows of two tables, tile by tile in shared memory.
 *
 * A block takes `threads / lanes * segments` segments and goes over all of their elements, `lanes * items` at a time.  Of a
 * product, which has two kept axes, it takes so many rows and columns of results, and goes over all terms.
 */
#include "lower/pairs.h"

#include "segreduce.h"

static bool takes(const struct problem *p, const char **why)
{
    struct pairs pairs;
    const struct misfit m[] = {
        { access_direct_fields(p) > 0 || problem_writes(p, AT_POINT) || problem_writes(p, AT_RESULT),
          "it keeps rows of tables in shared memory, and here elements have values of their own" },
        { p->rank != PAIRS_PRODUCT_RANK && (!state_commutative(p) || !state_pad(p)),
          "lanes take elements by turns: the operator has to be commutative" },
        { 0 }
    };
    return segreduce_regular(p, why) && plan_takes(why, m) && pairs_of(p, &pairs, why);
}

FITS_WHAT(segreduce_pairs, takes)

static int tile_rows(const struct plan_case *c, bool reduced)
{
    const int lanes = c->tunable[TN_LANES];
    return reduced ? lanes * c->tunable[TN_ITEMS] : c->tunable[TN_THREADS] / lanes * c->tunable[TN_SEGMENTS];
}

/* Segments for each multiprocessor, and elements of a segment, from which on a shape is faster than lanes that have
 * segments of their own.  Tiles of few elements have all of them, or read a segment again for the next ones: that costs
 * little where its terms stay in the tile.  H200, us, the nearest of k points of f f32, k/f: 5/34 42, 8/16 37, 24/8 61,
 * 64/16 188, 1000/64 646; segreduce.subwarp 55, 55, 95, 426, 3077; 10/128 with 16 elements 79, with 8 112; 24/8 with 32
 * elements 87; of 1000 points of 3: 1792, segreduce.column 1657. */
enum {
    TERMS_MIN = 4,
    DIRECT_WORDS = 64,
    HALF_BLOCKS_WORDS = 48,
    PAIRS_PINNED = 2 /* of the shapes */,
    AGAIN = 40 /* elements: fewer are read by tiles of 8 */,
    WIDE_LENGTH = 512,
    WIDE_BELOW = 256 /* segments of a multiprocessor */
};
static const struct shape {
    const char *name, *variant;
    int per_sm, length, most; /* most: elements, of more than PAIRS_TERMS terms; 0: any */
} shapes[] = { { "pairs_few", "few", 1024, 5, 8 },
               { "pairs_few_16", "few 16", 1024, 9, 16 },
               { "pairs", "", 64, 17, 0 },
               { "pairs_wide", "wide", 8, WIDE_LENGTH, 0 } };

static struct formula shape_guard(const struct problem *p, const struct pairs *pairs, const struct shape *s)
{
    const struct formula length = segments_length(p), terms = access_extent(p, &pairs->terms);
    struct formula guard = f_and(f_ge(segments_count(p), f_mul(plan_sms(p), s->per_sm)),
                                 f_and(f_ge(length, s->length), f_ge(terms, TERMS_MIN)));
    if (s->most == 8)
        guard = f_and(guard, f_or(f_le(length, s->most), f_and(f_le(terms, PAIRS_TERMS), f_lt(length, AGAIN))));
    else if (s->most)
        guard = f_and(guard, f_le(length, s->most));
    else if (s->length < WIDE_LENGTH) /* blocks of 128 segments leave multiprocessors with a block or two */
        guard = f_and(guard, f_or(f_ge(segments_count(p), f_mul(plan_sms(p), WIDE_BELOW)), f_lt(length, WIDE_LENGTH)));
    return guard;
}

static int64_t shared_bytes(const struct planner *pl, const struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const bool product = p->rank == PAIRS_PRODUCT_RANK;
    const int rows[] = { tile_rows(c, !product && p->space[0].reduced), tile_rows(c, product || p->space[1].reduced) };
    return pairs_shared(p, &pl->plan->device, rows);
}

/* Registers hold all sums of a thread.  Without tiles they hold addresses of its rows and columns, too. */
static void fit_registers(const struct pairs *pairs, struct plan_case *c)
{
    while (pairs->product && c->tunable[TN_VECTOR] == 1 && plan_shrinks(c, TN_SEGMENTS) &&
           pairs->words * c->tunable[TN_ITEMS] * c->tunable[TN_SEGMENTS] > DIRECT_WORDS)
        plan_set(c, TN_SEGMENTS, c->tunable[TN_SEGMENTS] / 2, "registers for all sums and addresses of a thread");
    while (pairs->words * c->tunable[TN_ITEMS] * c->tunable[TN_SEGMENTS] > PAIRS_WORDS && plan_shrinks(c, TN_ITEMS))
        plan_set(c, TN_ITEMS, c->tunable[TN_ITEMS] / 2, "registers for all sums of a thread");
    if (pairs->words * c->tunable[TN_ITEMS] * c->tunable[TN_SEGMENTS] > HALF_BLOCKS_WORDS &&
        plan_shrinks(c, TN_MIN_BLOCKS))
        plan_set(c, TN_MIN_BLOCKS, c->tunable[TN_MIN_BLOCKS] / 2, "registers for all sums of a thread");
}

/* Products: rows and columns of results, and results for each multiprocessor, from which on tiles of a shape are worth
 * it.  Few rows, or columns, have tiles that are no wider; few results have small tiles, so that there are enough.
 * Of few terms results are stored side by side, by tiles that are as wide as rows of results, or cover wider ones. */
enum { LARGE = 97, FEW_TERMS = 8, ANY = 0, COVERED = -1, PRODUCT_PINNED = 7 /* of the shapes */, THIN_PRODUCTS = 64 };
static const struct product_shape {
    const char *name, *variant;
    int rows, columns, rows_most, columns_most, per_sm, terms_most, words_most /* 0: any */,
        products /* of a row, or a column, at least */;
} product_shapes[] = { { "product_few", "product few", 32, 97, ANY, COVERED, 1024, FEW_TERMS, 0, 0 },
                       { "product_few_96", "product few 96", 32, 65, ANY, 96, 1024, FEW_TERMS, 0, 0 },
                       { "product_few_64", "product few 64", 32, 33, ANY, ANY, 1024, FEW_TERMS, 0, 0 },
                       { "product_few_32", "product few 32", 32, 17, ANY, ANY, 1024, FEW_TERMS, 0, 0 },
                       { "product_few_16", "product few 16", 32, 8, ANY, ANY, 1024, FEW_TERMS, 0, 0 },
                       { "product_huge", "product huge", 97, LARGE, COVERED, COVERED, 24576, 0, 1, 0 },
                       { "product_large", "product large", 97, LARGE, COVERED, COVERED, 7168, 0, 0, 0 },
                       { "product", "product", 49, 49, COVERED, COVERED, 2048, 0, 0, 0 },
                       { "product_tall", "product tall", 97, 8, COVERED, 16, 10240, 0, 0, 0 },
                       { "product_tall_128", "product tall 128", 97, 8, COVERED, 16, 2048, 0, 0, 0 },
                       { "product_medium", "product medium", 49, 17, COVERED, ANY, 2048, 0, 0, 0 },
                       { "product_wide", "product wide", 8, 49, ANY, COVERED, 2048, 0, 0, 0 },
                       { "product_thin", "product thin", 97, 3, ANY, 8, 256, 0, 0, THIN_PRODUCTS },
                       { "product_flat", "product flat", 3, 97, 8, ANY, 256, 0, 0, THIN_PRODUCTS },
                       { "product_small", "product small", 8, 8, ANY, ANY, 1024, 0, 0, 0 } };

/* A case of a tuned shape; NULL where its tiles need more shared memory than a block may have, unless it is pinned. */
static struct plan_case *add_case(struct planner *pl, const struct strategy *row, const char *name, const char *variant,
                                  const struct pairs *pairs)
{
    struct plan_case *c = plan_case_add(pl, row, name, (struct formula){ 0 });
    plan_case_tuned(pl, c, variant);
    plan_set_pdl(pl, c);
    fit_registers(pairs, c); /* a term's code is the same for any number of terms */
    if (plan_pinned(pl) || (pairs->product && c->tunable[TN_VECTOR] == 1) || shared_bytes(pl, c) <= PAIRS_SHARED_MAX)
        return c;
    plan_case_drop(pl);
    return NULL;
}

/* Do tiles of so many rows, or columns, cover them without a quarter of all that they compute being beside them? */
static struct formula covered(struct formula extent, int64_t tile)
{
    return f_ge(f_mul(extent, 4), f_mul(f_cdiv(extent, tile), 3 * tile));
}

/* … a sixth?  H200, distances of 64 terms, 65536 points to 192 and 65535 to 191: 112, 123 us by smaller tiles, 148, 140 by
 * those that cover 256. */
static struct formula covered_well(struct formula extent, int64_t tile)
{
    return f_ge(f_mul(extent, 6), f_mul(f_cdiv(extent, tile), 5 * tile));
}

static struct formula product_guard(const struct problem *p, const struct pairs *pairs, const struct product_shape *s,
                                    const struct plan_case *c)
{
    const struct formula rows = access_extent(p, &p->space[pairs->kept[0]].extent),
                         columns = access_extent(p, &p->space[pairs->kept[1]].extent),
                         terms = access_extent(p, &pairs->terms);
    struct formula guard = f_and(f_ge(rows, s->rows), f_ge(columns, s->columns));
    if (s->rows_most == COVERED)
        guard = f_and(guard, covered(rows, tile_rows(c, false)));
    else if (s->rows_most != ANY)
        guard = f_and(guard, f_le(rows, s->rows_most));
    if (s->columns_most == COVERED)
        guard =
            f_and(guard, (s->columns == LARGE && !s->terms_most ? covered_well : covered)(columns, tile_rows(c, true)));
    else if (s->columns_most != ANY)
        guard = f_and(guard, f_le(columns, s->columns_most));
    guard = f_and(guard, s->terms_most ? f_and(f_ge(terms, 1), f_le(terms, s->terms_most)) : f_ge(terms, TERMS_MIN));
    if (s->products)
        guard = f_and(guard, f_ge(f_mul(f_min(rows, columns), terms), s->products));
    return f_and(guard, f_ge(segments_count(p), f_mul(plan_sms(p), s->per_sm)));
}

static void plan_products(struct planner *pl, const struct strategy *row, const struct pairs *pairs)
{
    const bool pinned = plan_pinned(pl);
    int64_t lo, hi;
    segments_length_range(pl, &lo, &hi);
    const int n = pinned ? 1 : (int)(sizeof product_shapes / sizeof *product_shapes);
    for (int i = 0; i < n; i++) {
        const struct product_shape *s = &product_shapes[pinned ? PRODUCT_PINNED : i];
        if (!pinned && ((s->terms_most && lo > s->terms_most) || (s->words_most && pairs->words > s->words_most)))
            continue;
        struct plan_case *c = add_case(pl, row, s->name, s->variant, pairs);
        if (pinned)
            return;
        if (!c)
            continue;
        c->code.guard = product_guard(pl->plan->problem, pairs, s, c);
    }
}

void segreduce_pairs_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const bool pinned = plan_pinned(pl);
    struct pairs pairs;
    const char *why;
    int64_t lo, hi;
    segments_length_range(pl, &lo, &hi);
    pairs_of(p, &pairs, &why);
    if (pairs.product) {
        plan_products(pl, row, &pairs);
        return;
    }
    for (int i = 0; i < (pinned ? 1 : (int)(sizeof shapes / sizeof *shapes)); i++) {
        const struct shape *s = &shapes[pinned ? PAIRS_PINNED : i];
        if (!pinned && (hi < s->length || (s->most && lo >= AGAIN)))
            continue;
        struct plan_case *c = add_case(pl, row, s->name, s->variant, &pairs);
        if (pinned)
            return;
        if (!c)
            continue;
        c->code.guard = shape_guard(p, &pairs, s);
    }
}

static struct formula tiles(const struct problem *p, const struct plan_case *c)
{
    struct pairs pairs;
    const char *why;
    pairs_of(p, &pairs, &why);
    if (!pairs.product)
        return f_cdiv(segments_count(p), tile_rows(c, false));
    return f_mul(f_cdiv(access_extent(p, &p->space[pairs.kept[0]].extent), tile_rows(c, false)),
                 f_cdiv(access_extent(p, &p->space[pairs.kept[1]].extent), tile_rows(c, true)));
}

/* Sums of 4 bytes, and states of an index and its value at most: else registers for fewer blocks. */
static bool keeps_four_blocks(const struct problem *p, const struct plan_case *c)
{
    struct pairs pairs;
    const char *why;
    pairs_of(p, &pairs, &why);
    return c->tunable[TN_THREADS] == 128 && segreduce_state_words(p) <= 3 &&
           pairs.words * c->tunable[TN_ITEMS] * c->tunable[TN_SEGMENTS] <= PAIRS_WORDS / 2;
}

bool segreduce_pairs_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int threads = c->tunable[TN_THREADS], lanes = c->tunable[TN_LANES];
    if (threads % SEG_WARP || !lanes || lanes > SEG_WARP || !segreduce_power_of_two(lanes))
        return plan_contradiction(pl, c, 0, "threads must be a multiple of 32, and lanes a power of two up to 32");
    const bool product = p->rank == PAIRS_PRODUCT_RANK, direct = product && c->tunable[TN_VECTOR] == 1;
    if (c->tunable[TN_VECTOR] != 1 && (!product || c->tunable[TN_VECTOR] != PAIRS_VECTOR))
        return plan_contradiction(pl, c, 0, "the vector is 1, or 4 of products: whose terms tiles hold");
    if (c->tunable[TN_ITEMS] * c->tunable[TN_SEGMENTS] > PAIRS_MAX)
        return plan_contradiction(pl, c, 0, "a thread holds at most 64 pairs");
    if ((!segreduce_power_of_two(c->tunable[TN_ITEMS]) && !direct) || !segreduce_power_of_two(c->tunable[TN_SEGMENTS]))
        return plan_contradiction(pl, c, 0, "items and segments must be powers of two");
    if (!direct && shared_bytes(pl, c) > pl->plan->device.shared_per_block)
        return plan_contradiction(pl, c, 0, "the tiles do not fit shared memory");
    c->tiled = !direct;
    if (!product && keeps_four_blocks(p, c))
        plan_set(c, TN_MIN_BLOCKS, pl->plan->device.sm > 100 ? 3 : 4,
                 "registers for 32 sums of a thread, and what they read; of argmin ptxas 13 takes 133 for sm_120");
    segreduce_kernel(pl, c, "");
    plan_launch(pl, c, 0, segreduce_bounded(c, tiles(p, c)));
    return true;
}
