/* SPDX-License-Identifier: Apache-2.0 */
/* whole.c - planning of segments between offsets that are long on the average, whole ones by a block or a warp each.
 *
 * How the sizes are distributed is not known to the host, only their mean: it decides whether this strategy is taken,
 * and whether a segment has a warp or a block of its own.
 */
#include "segreduce.h"

#include "lower/results.h"
#include "lower/tuned.h"
#include "lower/work.h"

#include <string.h>

enum { ARG_WORDS = 3 /* a value and its index */, ARG_VECTOR = 8, ARG_BLOCKS = 4 };
enum whole_shape { WIDE, MIDDLE, WARPS_QUEUE, QUEUE, WARPS, SHORT, BLOCKS };

/* While a block waits for its offsets and then for its elements, others read: as many as the device holds.  Wider
 * states need the registers, and on smaller multiprocessors nobody has measured it. */
static void full_occupancy(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int threads = pl->plan->device.threads_per_sm;
    const bool narrow = segreduce_state_words(p) == 1 && access_vector_width(p) * c->tunable[TN_ITEMS] <= FEW_VALUES;
    if (narrow && threads >= LARGE_SM)
        plan_set(c, TN_MIN_BLOCKS, threads / c->tunable[TN_THREADS], "blocks that fill a multiprocessor");
    else
        plan_set(c, TN_MIN_BLOCKS, 1, "a bound keeps ptxas from spilling");
    if (segreduce_state_words(p) == ARG_WORDS && access_direct_fields(p) == 1 && access_vector_width(p) == ARG_VECTOR &&
        threads >= LARGE_SM)
        plan_set(c, TN_MIN_BLOCKS, ARG_BLOCKS, "H200, argmin of 2^26 bf16, 4232 segments: 86.9 us, left alone 122.7");
}

/* Names of cases; the rows of tuning.def, and for states of several words where there is another; a warp per segment, or
 * a block; a queue of parts. */
static const struct whole {
    const char *name, *row, *wide_row;
    int lanes;
    bool queue;
} shapes[] = {
    [WIDE] = { "wide", "offsets wide", NULL, 0, false },
    [MIDDLE] = { "middle", "offsets wide", NULL, 0, false },
    [WARPS_QUEUE] = { "warps_queue", "offsets warps_queue", NULL, SEG_WARP, true },
    [QUEUE] = { "queue", "offsets queue", NULL, 0, true },
    [WARPS] = { "warps", "offsets warps", NULL, SEG_WARP, false },
    [SHORT] = { "short", "offsets short", NULL, 0, false },
    [BLOCKS] = { "blocks", "offsets blocks", "offsets wide", 0, false },
};

static bool light(const struct problem *p) { return segreduce_state_words(p) <= 2 && !work_is_heavy(p); }

/* May blocks that map have 1024 threads?  Elsewhere ptxas spills, and the tree must not follow the device. */
static bool wide_fits(const struct planner *pl)
{
    enum { TUNED_SM = 90 };
    const struct problem *p = pl->plan->problem;
    return light(p) && pl->plan->device.sm == TUNED_SM && state_determinism(p) != DET_DEVICE;
}

/* Threads where the team also maps its segment.  Softmax of 2^26 f32 between offsets on an H200, lengths of any distribution
 * around 1024/2048/4096/8192/16384/32768: warps 231/278/303 us; blocks of 128 threads 305/231/235/265/286/505, of 256
 * 484/293/223/230/256/282, of 512 942/531/328/246/229/260, of 1024 -/-/474/284/226/230; reduced, then mapped by another kernel, 360/330/314/307/310/312. */
static void mapped_threads(struct planner *pl, struct plan_case *c, enum whole_shape shape)
{
    static const int threads[] = { [WIDE] = 1024, [MIDDLE] = 512, [WARPS] = 128, [SHORT] = 128, [BLOCKS] = 256 };
    plan_set(c, TN_THREADS, threads[shape], "H200, softmax between offsets: see whole.c");
    if (shape == MIDDLE)
        plan_set(c, TN_MIN_BLOCKS, 2, "two blocks of 512 threads fit");
    else if (shape == WIDE || !light(pl->plan->problem))
        plan_set(c, TN_MIN_BLOCKS, 1, "a bound keeps ptxas from spilling");
    else
        plan_set(c, TN_MIN_BLOCKS, 0,
                 "H200, softmax between offsets, warps: mean 128/512/1024 329/255/231 us, with a bound 383/277/246");
    plan_set(c, TN_EVICT_FIRST, 0, "elements are read again");
    if (c->tunable[TN_ITEMS] > WHOLE_WIDE_ITEMS)
        plan_set(c, TN_ITEMS, WHOLE_WIDE_ITEMS, "so many were measured");
}

static struct plan_case *whole_case(struct planner *pl, const struct strategy *row, const void *what, const char *name,
                                    struct formula guard, bool aligned)
{
    const struct problem *p = pl->plan->problem;
    const struct whole *shape = what;
    struct plan_case *c = plan_case_add(pl, row, name, guard);
    const bool wide = shape->wide_row && strcmp(tuning_variant(p), "wide") == 0;
    plan_case_variant(pl, c, wide ? shape->wide_row : shape->row);
    plan_set(c, TN_LANES, shape->lanes, shape->lanes ? "a warp per segment" : "a block per segment");
    plan_set(c, TN_QUEUE, shape->queue, shape->queue ? "large arrays" : "a queue takes longer than small arrays do");
    plan_set_pdl(pl, c);
    plan_set(c, TN_EVICT_FIRST, !shape->queue || shape->lanes, "every vector is read once");
    if (!aligned && state_determinism(p) == DET_ANY)
        plan_set(c, TN_VECTOR, 1, "arrays do not begin at a vector boundary");
    if (shape->queue && !shape->lanes && segreduce_state_words(p) > 2)
        plan_set(c, TN_THREADS, WHOLE_WIDE_THREADS,
                 "H200, max segment sums of 2^26 i32, 2000, 8464 segments: 84, 85 us; 256 threads 86, 114");
    if (shape->queue)
        full_occupancy(pl, c);
    if (segreduce_state_words(p) > 2 && c->tunable[TN_ITEMS] > WHOLE_WIDE_ITEMS)
        plan_set(c, TN_ITEMS, WHOLE_WIDE_ITEMS,
                 "H200 2^26, max segment sums of 1024/4096/16384/65536: 73.7/70.9/73.2/72.8 us; 2 vectors "
                 "79.2/86.8/73.9/78.1; segreduce.offsets 120/113/112/109");
    segreduce_fit_items(c);
    if (c->tunable[TN_THREADS] >= 512)
        plan_set(c, TN_MIN_BLOCKS, 2, "left alone, ptxas spills two words to fit a third block");
    if (problem_writes(p, AT_RESULT) && !shape->queue)
        mapped_threads(pl, c, shape == &shapes[WIDE] && !wide_fits(pl) ? MIDDLE : (enum whole_shape)(shape - shapes));
    c->aligned = aligned && c->tunable[TN_VECTOR] > 1;
    return c;
}

/* Arrays that begin anywhere: where this strategy is pinned. */
static void add_shape(struct planner *pl, const struct strategy *row, enum whole_shape shape, struct formula guard)
{
    segreduce_add(pl, row, whole_case, &shapes[shape], shapes[shape].name, 0, guard, plan_pinned(pl));
}

/* Has a segment so many vectors in the mean, or fewer? */
static struct formula lengthy(const struct problem *p, struct formula vectors)
{
    return f_ge(access_count(p), f_mul(f_mul(segments_count(p), access_vector_width(p)), vectors));
}

static struct formula shorter(const struct problem *p, struct formula vectors)
{
    return f_lt(access_count(p), f_mul(f_mul(segments_count(p), access_vector_width(p)), vectors));
}

static struct formula small_array(const struct problem *p)
{
    return f_le(access_count(p), f_mul(plan_sms(p), WHOLE_SMALL));
}

/* Where warps for a segment each, or blocks, fill the device. */
static void add_queue_shapes(struct planner *pl, const struct strategy *row, struct formula warps,
                             struct formula blocks)
{
    const struct problem *p = pl->plan->problem;
    const struct formula least = f_const(plan_pinned(pl) ? 0 : WHOLE_LEAST);
    const struct formula parted = f_const(WHOLE_QUEUE);
    add_shape(pl, row, WARPS_QUEUE, f_and(warps, f_and(lengthy(p, least), shorter(p, parted))));
    if (plan_pinned(pl))
        add_shape(pl, row, QUEUE, blocks);
    else
        add_shape(pl, row, QUEUE, f_and(blocks, f_and(lengthy(p, parted), shorter(p, f_const(WHOLE_MOST)))));
}

/* Where teams map what they have reduced: the shorter segments are, the smaller the team. */
static void add_mapping_shapes(struct planner *pl, const struct strategy *row)
{
    static const struct {
        enum whole_shape shape;
        int least; /* vectors of a segment in the mean */
    } by_length[] = { { WIDE, 6000 }, { MIDDLE, 3000 }, { BLOCKS, 750 }, { SHORT, 375 }, { WARPS, 20 } };
    const struct problem *p = pl->plan->problem;
    struct formula most = f_const(WHOLE_MOST);
    for (size_t i = wide_fits(pl) ? 0 : 1; i < sizeof by_length / sizeof *by_length; i++) {
        const struct formula least = f_const(by_length[i].least);
        add_shape(pl, row, by_length[i].shape, f_and(lengthy(p, least), shorter(p, most)));
        most = least;
    }
}

void segreduce_whole_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const struct formula segments = segments_count(p), sms = plan_sms(p), any = { 0 };
    const struct formula many = f_le(f_mul(sms, WHOLE_WARPS_PER_SM), segments), few = f_le(segments, sms);
    const bool pinned = plan_pinned(pl);
    if (pinned)
        plan_check(pl, f_lt(segments, (int64_t)1 << 30),
                   "segreduce.block takes fewer than 2^30 segments between offsets");
    if (plan_overrides(pl, TN_LANES)) {
        const enum whole_shape shape = plan_setting(pl, TN_LANES, 0) > 0 ? WARPS : BLOCKS;
        const struct formula within = f_and(lengthy(p, f_const(WHOLE_LEAST)), shorter(p, f_const(WHOLE_MOST)));
        add_shape(pl, row, shape, pinned ? any : within);
        return;
    }
    if (problem_writes(p, AT_RESULT) && !pinned) {
        add_mapping_shapes(pl, row);
        return;
    }
    const struct formula large = f_le(f_mul(sms, QUEUE_LARGE), access_count(p)), above_few = f_not(F_(few));
    const struct formula enough = f_le(sms, f_mul(segments, segreduce_state_words(p) > 2 ? 1 : WHOLE_SMS_PER_SEGMENT));
    const struct formula long_ones = f_and(lengthy(p, f_const(WHOLE_BLOCK)), shorter(p, f_const(WHOLE_MOST)));
    const struct formula wide = f_or(few, lengthy(p, f_const(WHOLE_WIDE)));
    add_shape(pl, row, WIDE, pinned ? few : f_and(f_and(long_ones, wide), enough));
    add_queue_shapes(pl, row, f_and(large, many), f_and(large, above_few));
    const struct formula least = f_add(WHOLE_LEAST_FEW, f_mul(many, WHOLE_LEAST - WHOLE_LEAST_FEW));
    const struct formula warps = shorter(p, f_add(WHOLE_WARP, f_mul(many, WHOLE_BLOCK - WHOLE_WARP)));
    const struct formula blocks = shorter(p, f_const(WHOLE_BLOCK));
    const struct formula any_warps = pinned ? warps : f_and(lengthy(p, least), warps);
    add_shape(pl, row, WARPS, any_warps);
    const struct formula filled = f_and(small_array(p), f_and(lengthy(p, f_const(WHOLE_FILLED)), blocks));
    add_shape(pl, row, SHORT,
              pinned ? blocks : f_and(f_not(F_(filled)), f_and(lengthy(p, f_const(WHOLE_WARP)), blocks)));
    add_shape(pl, row, BLOCKS, pinned ? any : f_or(filled, f_and(long_ones, above_few)));
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

/* The launch's number; finished parts and a total of each tile; the queue. */
static void add_buffers(struct planner *pl, struct plan_case *c, struct formula tiles)
{
    plan_buffer_arg(pl, c, 0, BUF_LAUNCH, REGION_CONTROL, f_const(8));
    plan_buffer_arg(pl, c, 0, BUF_COUNT, REGION_CONTROL, f_mul(tiles, 8));
    plan_partials_arg(pl, c, 0, tiles, 1);
    if (c->tunable[TN_QUEUE]) {
        plan_buffer_arg(pl, c, 0, BUF_QUEUE, REGION_CONTROL, f_const(2 * SEGMENTS_QUEUE_WORDS * 8));
        plan_buffer_arg(pl, c, 0, BUF_PARTS, REGION_SCRATCH, f_mul(tiles, 8));
    }
}

/* Segments that are no longer than twice the mean are whole.  `round`: what a block loads at once. */
static struct formula tile_length(const struct problem *p, int64_t round)
{
    const struct formula n = access_count(p), segments = segments_count(p);
    const struct formula wanted =
        f_max(f_cdiv(f_mul(n, 2), f_max(segments, 1)), f_max(f_cdiv(n, WHOLE_TILES), TILE_ROUNDS_MIN * round));
    const struct formula length = f_max(f_min(wanted, TILE_ROUNDS_MAX * round), f_cdiv(n, WHOLE_TILES_MAX));
    return f_mul(f_cdiv(length, round), round);
}

/* Tiles and who watches them. */
static void add_cut(struct prog_kernel *k, struct formula tile, struct formula tiles, struct formula pace,
                    struct formula stay, struct formula watching)
{
    plan_value_arg(k, VAL_TILE, TY_I64, tile);
    plan_value_arg(k, VAL_TILES, TY_I32, tiles);
    plan_value_arg(k, VAL_PACE, TY_I64, pace);
    plan_value_arg(k, VAL_STAY, TY_I32, stay);
    plan_value_arg(k, VAL_WATCHING, TY_I32, watching);
}

/* The kernel that maps what several blocks have reduced, and its launch. */
static struct prog_kernel *add_rest(struct planner *pl, struct plan_case *c, struct formula blocks)
{
    const struct problem *p = pl->plan->problem;
    c->mapper = c->code.nkernels;
    struct prog_kernel *k = segreduce_team_kernel(pl, c, "map");
    plan_buffer_arg(pl, c, 0, BUF_RESULTS, REGION_SCRATCH, f_mul(segments_count(p), results_layout(p, NULL)));
    plan_launch(pl, c, c->mapper, blocks);
    return k;
}

bool segreduce_whole_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const struct formula n = access_count(p), segments = segments_count(p);
    const int64_t round = (int64_t)c->tunable[TN_THREADS] * c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR];
    if (c->tunable[TN_LANES] != 0 && c->tunable[TN_LANES] != SEG_WARP)
        return plan_contradiction(pl, c, 0, "a segment has a warp (lanes 32) or a block (lanes 0)");
    if (c->tunable[TN_PARTS])
        return plan_contradiction(pl, c, 0, "parts is for segments of one size");
    const struct formula tile = tile_length(p, round);
    const struct formula tiles = f_cdiv(n, tile);
    /* Where all blocks run at once, latency counts: no two parts one after the other, and none at all where a block
     * reads the segment sooner than parts are combined. */
    const bool queue = c->tunable[TN_QUEUE];
    const struct formula small = queue ? f_const(0) : f_and(small_array(p), shorter(p, f_const(WHOLE_PARTED)));
    const struct formula each_watched = f_sub(TILES_EACH, f_mul(small, TILES_EACH - 1));
    /* The first tile needs nobody to look after it. */
    const struct formula all = f_mul(plan_sms(p), c->tunable[TN_BLOCKS_PER_SM]);
    const struct formula wanted_watching = f_cdiv(f_max(f_sub(tiles, 1), 0), each_watched);
    const int64_t lookers = LOOKING_WARPS * SEG_WARP / c->tunable[TN_THREADS];
    const struct formula looking = f_mul(plan_sms(p), lookers > 1 ? lookers : 1);
    const struct formula watching = f_min(wanted_watching, queue ? looking : all);
    const int64_t each = c->tunable[TN_LANES] ? c->tunable[TN_THREADS] / SEG_WARP : 1;
    const struct formula helping = queue ? f_min(f_cdiv(segments, each), all) : f_const(0);
    const struct formula pace = f_div(f_mul(f_mul(segments, tile), (int64_t)1 << SEGMENTS_PACE_BITS), n);
    const struct formula any = f_ge(segments, 1);
    struct prog_kernel *k = segreduce_team_kernel(pl, c, "");
    add_cut(k, tile, tiles, pace, f_add(small, 1), watching);
    plan_value_arg(k, VAL_HELPING, TY_I32, helping);
    add_buffers(pl, c, tiles);
    plan_launch(pl, c, 0, f_mul(any, f_add(watching, f_cdiv(segments, each))));
    c->maps = problem_writes(p, AT_RESULT);
    if (c->maps)
        add_cut(add_rest(pl, c, f_mul(any, f_min(wanted_watching, all))), tile, tiles, pace, f_add(small, 1),
                f_min(wanted_watching, all));
    return segreduce_check_tunables(pl, c, segreduce_runs(pl->plan->problem));
}
