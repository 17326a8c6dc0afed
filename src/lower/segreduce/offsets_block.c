/* SPDX-License-Identifier: Apache-2.0 */
/* offsets_block.c - planning of segments between offsets that are long on the average, in one launch.
 *
 * How the sizes are distributed is not known to the host, only their mean: it decides whether this strategy is taken,
 * and whether a segment has a warp or a block of its own.
 */
#include "segreduce.h"

#include <string.h>

enum {
    WARP = 32,
    /* Vectors of a segment in the mean: */
    LEAST_VECTORS = 128,       /* shorter ones are better staged, … */
    LEAST_VECTORS_OF_FEW = 64, /* … but not where that takes two launches of next to nothing */
    WARP_VECTORS = 400,        /* up to here a warp each, … */
    BLOCK_VECTORS = 2048,      /* … up to here too where warps fill the device, and small blocks elsewhere */
    MOST_VECTORS = 20000,      /* longer ones are shared by all blocks */
    QUEUE_VECTORS = 1024,      /* warps up to here and blocks beyond, beside a queue of parts: */
    LARGE = 1 << 17,           /* elements per multiprocessor from which on the queue costs less than it saves */
    WARPS_PER_SM = 32,         /* that fill the device */
    SMS_PER_SEGMENT = 16,      /* where a segment has more of them, all blocks share it too */
    WIDE_ITEMS = 4,            /* loads in flight beside states of several words */
    LARGE_SM = 2048,           /* threads */
    FEW_VALUES = 16,           /* of a thread's loads, that fit into the registers of a full multiprocessor */
    /* Tiles: */
    TILES = 4096, /* of the array, … */
    TILE_ROUNDS_MIN = 2,
    TILE_ROUNDS_MAX = 16, /* … of so many rounds of loads of a block, … */
    TILES_MAX = 1 << 16,  /* … more where these were too many */
    TILES_EACH = 2,       /* that a block looks after at least */
    LOOKING_WARPS = 8     /* per multiprocessor, beside a queue */
};

bool segreduce_offsets_block_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    return segreduce_offsets_fits(p, d, a, why);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

/* While a block waits for its offsets and then for its elements, others read: as many as the device holds.  Wider
 * states need the registers, and on smaller multiprocessors nobody has measured it. */
static void full_occupancy(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int threads = pl->plan->device.threads_per_sm;
    const bool narrow = segreduce_state_words(p) == 1 && access_vector_width(p) * c->tunable[TN_ITEMS] <= FEW_VALUES;
    if (narrow && threads >= LARGE_SM)
        segreduce_set(c, TN_MIN_BLOCKS, threads / c->tunable[TN_THREADS], "blocks that fill a multiprocessor");
    else
        segreduce_set(c, TN_MIN_BLOCKS, 1, "a bound keeps ptxas from spilling");
}

/* `shape` names the row of tuning.def too.  There is a warp per segment where it begins with "warps", and a queue where
 * it ends with "queue". */
static struct plan_case *add_case(struct planner *pl, const struct strategy *row, const char *shape, const char *suffix,
                                  struct formula guard, bool aligned)
{
    const struct problem *p = pl->plan->problem;
    struct plan_case *c = plan_case_add(pl, row, arena_printf(&pl->s->arena, "%s%s", shape, suffix), guard);
    const int lanes = strncmp(shape, "warps", 5) == 0 ? WARP : 0;
    const bool queue = strstr(shape, "queue") != NULL;
    plan_case_variant(pl, c, shape);
    segreduce_set(c, TN_LANES, lanes, lanes ? "a warp per segment" : "a block per segment");
    segreduce_set(c, TN_QUEUE, queue, queue ? "large arrays" : "a queue takes longer than small arrays do");
    segreduce_set(c, TN_PDL, pl->plan->device.sm >= 90, "on where the architecture has it");
    segreduce_set(c, TN_EVICT_FIRST, !queue || lanes, "every vector is read once");
    if (!aligned && state_determinism(p) == DET_ANY)
        segreduce_set(c, TN_VECTOR, 1, "arrays do not begin at a vector boundary");
    if (queue)
        full_occupancy(pl, c);
    if (segreduce_state_words(p) > 2 && c->tunable[TN_ITEMS] > WIDE_ITEMS)
        segreduce_set(c, TN_ITEMS, WIDE_ITEMS,
                      "H200 2^26, max segment sums of 1024/4096/16384/65536: 73.7/70.9/73.2/72.8 us; 2 vectors "
                      "79.2/86.8/73.9/78.1; segreduce.offsets 120/113/112/109");
    segreduce_fit_items(c);
    if (c->tunable[TN_THREADS] >= 512)
        segreduce_set(c, TN_MIN_BLOCKS, 2, "left alone, ptxas spills two words to fit a third block");
    c->aligned = aligned && c->tunable[TN_VECTOR] > 1;
    return c;
}

/* Aligned arrays, and others where this strategy is pinned or results must not depend on addresses. */
static void add_shape(struct planner *pl, const struct strategy *row, const char *shape, struct formula guard)
{
    const struct problem *p = pl->plan->problem;
    struct formula aligned = { 0 };
    struct plan_case *c = add_case(pl, row, shape, "", guard, true);
    if (!access_aligned_guard(p, c->tunable[TN_VECTOR], true, &aligned)) {
        c->aligned = false;
        return;
    }
    c->code.guard = segreduce_all(guard, aligned);
    if (segreduce_pinned(pl) || state_determinism(p) != DET_ANY)
        add_case(pl, row, shape, "_unaligned", guard, false);
}

/* Has a segment so many vectors in the mean, or fewer? */
static struct formula lengthy(const struct problem *p, struct formula vectors)
{
    return f_ge(access_count(p), f_mul(f_mul(segments_count(p), f_const(access_vector_width(p))), vectors));
}

static struct formula shorter(const struct problem *p, struct formula vectors)
{
    return f_lt(access_count(p), f_mul(f_mul(segments_count(p), f_const(access_vector_width(p))), vectors));
}

/* Where warps for a segment each, or blocks, fill the device. */
static void add_queue_shapes(struct planner *pl, const struct strategy *row, struct formula warps,
                             struct formula blocks)
{
    const struct problem *p = pl->plan->problem;
    const struct formula least = f_const(segreduce_pinned(pl) ? 0 : LEAST_VECTORS);
    const struct formula parted = f_const(QUEUE_VECTORS);
    add_shape(pl, row, "warps_queue", f_and(warps, f_and(lengthy(p, least), shorter(p, parted))));
    if (segreduce_pinned(pl))
        add_shape(pl, row, "queue", blocks);
    else
        add_shape(pl, row, "queue", f_and(blocks, f_and(lengthy(p, parted), shorter(p, f_const(MOST_VECTORS)))));
}

void segreduce_offsets_block_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const struct formula segments = segments_count(p), sms = segreduce_sms(p), any = { 0 };
    const struct formula many = f_le(f_mul(sms, f_const(WARPS_PER_SM)), segments), few = f_le(segments, sms);
    const bool pinned = segreduce_pinned(pl);
    if (pinned)
        plan_check(pl, f_lt(segments, f_const((int64_t)1 << 30)),
                   "segreduce.offsets_block takes fewer than 2^30 segments");
    if (plan_overrides(pl, TN_LANES)) {
        const char *name = plan_setting(pl, TN_LANES, 0) > 0 ? "warps" : "blocks";
        const struct formula within = f_and(lengthy(p, f_const(LEAST_VECTORS)), shorter(p, f_const(MOST_VECTORS)));
        add_shape(pl, row, name, pinned ? any : within);
        return;
    }
    const struct formula large = f_le(f_mul(sms, f_const(LARGE)), access_count(p)), above_few = f_not(F_(few));
    add_queue_shapes(pl, row, f_and(large, many), f_and(large, above_few));
    const struct formula least =
        f_add(f_const(LEAST_VECTORS_OF_FEW), f_mul(many, f_const(LEAST_VECTORS - LEAST_VECTORS_OF_FEW)));
    const struct formula warps =
        shorter(p, f_add(f_const(WARP_VECTORS), f_mul(many, f_const(BLOCK_VECTORS - WARP_VECTORS))));
    const struct formula blocks = shorter(p, f_const(BLOCK_VECTORS));
    const struct formula any_warps = pinned ? warps : f_and(lengthy(p, least), warps);
    add_shape(pl, row, "warps", any_warps);
    add_shape(pl, row, "short", pinned ? blocks : f_and(lengthy(p, f_const(WARP_VECTORS)), blocks));
    const struct formula enough = f_le(sms, f_mul(segments, f_const(SMS_PER_SEGMENT)));
    const struct formula long_ones = f_and(lengthy(p, f_const(BLOCK_VECTORS)), shorter(p, f_const(MOST_VECTORS)));
    add_shape(pl, row, "wide", pinned ? few : f_and(f_and(long_ones, few), enough));
    add_shape(pl, row, "blocks", pinned ? any : f_and(long_ones, above_few));
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

static void add_buffer(struct planner *pl, struct plan_case *c, struct prog_kernel *k, const char *name,
                       enum prog_region region, struct formula bytes)
{
    const int index = plan_buffer(pl, c, name, region, bytes);
    plan_arg(k, (struct prog_arg){ .kind = ARG_BUFFER, .name = name, .index = index });
}

/* The launch's number; finished parts and a total of each tile; the queue. */
static void add_buffers(struct planner *pl, struct plan_case *c, struct prog_kernel *k, struct formula tiles)
{
    enum ty type[32];
    const int fields = state_fields(pl->plan->problem, type);
    add_buffer(pl, c, k, "launch", REGION_CONTROL, f_const(8));
    add_buffer(pl, c, k, "count", REGION_CONTROL, f_mul(tiles, f_const(8)));
    for (int f = 0; f < fields; f++)
        add_buffer(pl, c, k, arena_printf(&pl->s->arena, "partial%d", f), REGION_SCRATCH,
                   f_mul(tiles, f_const(ty_bytes(type[f]))));
    if (c->tunable[TN_QUEUE]) {
        add_buffer(pl, c, k, "queue", REGION_CONTROL, f_const(2 * SEGMENTS_QUEUE_WORDS * 8));
        add_buffer(pl, c, k, "parts", REGION_SCRATCH, f_mul(tiles, f_const(8)));
    }
}

bool segreduce_offsets_block_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const struct formula n = access_count(p), segments = segments_count(p);
    const int64_t round = (int64_t)c->tunable[TN_THREADS] * c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR];
    if (c->tunable[TN_LANES] != 0 && c->tunable[TN_LANES] != WARP)
        return segreduce_contradiction(pl, c, "a segment has a warp (lanes 32) or a block (lanes 0)");
    /* Segments that are no longer than twice the mean are whole. */
    const struct formula wanted = f_max(f_cdiv(f_mul(n, f_const(2)), f_max(segments, f_const(1))),
                                        f_max(f_cdiv(n, f_const(TILES)), f_const(TILE_ROUNDS_MIN * round)));
    const struct formula length = f_max(f_min(wanted, f_const(TILE_ROUNDS_MAX * round)), f_cdiv(n, f_const(TILES_MAX)));
    const struct formula tile = f_mul(f_cdiv(length, f_const(round)), f_const(round));
    const struct formula tiles = f_cdiv(n, tile);
    /* The first tile needs nobody to look after it. */
    const bool queue = c->tunable[TN_QUEUE];
    const struct formula all = f_mul(segreduce_sms(p), f_const(c->tunable[TN_BLOCKS_PER_SM]));
    const struct formula wanted_watching = f_cdiv(f_max(f_sub(tiles, f_const(1)), f_const(0)), f_const(TILES_EACH));
    const int64_t lookers = LOOKING_WARPS * WARP / c->tunable[TN_THREADS];
    const struct formula looking = f_mul(segreduce_sms(p), f_const(lookers > 1 ? lookers : 1));
    const struct formula watching = f_min(wanted_watching, queue ? looking : all);
    const int64_t each = c->tunable[TN_LANES] ? c->tunable[TN_THREADS] / WARP : 1;
    const struct formula helping = queue ? f_min(f_cdiv(segments, f_const(each)), all) : f_const(0);
    const struct formula pace = f_div(f_mul(f_mul(segments, tile), f_const((int64_t)1 << SEGMENTS_PACE_BITS)), n);
    struct prog_kernel *k = segreduce_team_kernel(pl, c, "");
    plan_value_arg(k, "tile", TY_I64, tile);
    plan_value_arg(k, "tiles", TY_I32, tiles);
    plan_value_arg(k, "pace", TY_I64, pace);
    plan_value_arg(k, "watching", TY_I32, watching);
    plan_value_arg(k, "helping", TY_I32, helping);
    add_buffers(pl, c, k, tiles);
    const struct formula any = f_ge(segments, f_const(1));
    plan_launch(pl, c, 0, f_mul(any, f_add(watching, f_cdiv(segments, f_const(each)))));
    return segreduce_check_tunables(pl, c);
}
