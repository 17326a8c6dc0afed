/* SPDX-License-Identifier: Apache-2.0 */
/* segreduce.c - planning of reductions that keep dimensions or have segments: which strategy takes which sizes.
 *
 * All sizes are known at the launch only, so a plan has cases for ranges of the segment size L and the launcher chooses
 * by their guards.  Lengths are counted in vectors of 16 bytes, so that the limits hold for every element type:
 *
 *   segreduce.subwarp      a lane per vector where a warp's loads are packed with segments, else 1, 8 or 32 lanes per
 *                          segment
 *   segreduce.multi_block  several blocks per segment, where there are too few segments to fill the device
 *   segreduce.column       where segments are not runs of elements (column.c)
 *   segreduce.block        a block per segment
 *
 * Vector loads need arrays that begin at a vector boundary; other launches take the scalar cases that follow.  Where
 * results must be the same on every run, those have the same combination tree.
 */
#include "segreduce.h"

#include <string.h>

enum {
    WARP = 32,
    BLOCKS_PER_SM = 4,
    SPLIT_VECTORS = 8192,
    WARP_VECTORS = 400, /* 2048 elements: 61.9 by a block, 62.7 us by a warp */
    WIDE_VECTORS = 1024,
    PACKED = -1,
    EXACTLY = -2,
    PACKED_FEW = -3, /* one or two vectors */
    FEW = 2
};

/* ---- facts ------------------------------------------------------------------------------------------------------- */

bool segreduce_few_fields(const struct problem *p, struct arena *a, const char **why)
{
    const int fields = state_fields(p, NULL);
    if (fields > 32)
        *why = arena_printf(a, "the states of all reductions have %d fields; the limit is 32", fields);
    return fields <= 32;
}

bool segreduce_regular(const struct problem *p, struct arena *a, const char **why)
{
    if (p->offsets >= 0)
        *why = "its segments all have one size; this problem has offsets";
    else if (!segments_kept(p))
        *why = "it reduces segments; this problem keeps no dimension";
    else
        return segreduce_few_fields(p, a, why);
    return false;
}

bool segreduce_subwarp_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d;
    return segreduce_regular(p, a, why);
}

bool segreduce_block_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d;
    return segreduce_regular(p, a, why);
}

bool segreduce_multi_block_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d;
    return segreduce_regular(p, a, why);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

/* Shapes of teams, in order of preference: their variants in tuning.def, and above and up to how many vectors a segment
 * has (0: any), or where it has 1, 2, 4, … 32, or where it has so many elements, which are the vector then. */
static const struct shape {
    const char *strategy, *name;
    int64_t above, up_to;
} shapes[] = {
    { "segreduce.subwarp", "single", 1, EXACTLY },
    { "segreduce.subwarp", "pair", 2, EXACTLY },
    { "segreduce.subwarp", "packed_few", 0, PACKED_FEW },
    { "segreduce.subwarp", "packed", 0, PACKED },
    { "segreduce.subwarp", "tiny", 0, 4 },
    { "segreduce.subwarp", "medium", 4, 32 },
    { "segreduce.subwarp", "warps", 4, WARP_VECTORS },
    { "segreduce.multi_block", "split", 0, 0 },
    { "segreduce.block", "rows", 0, 2048 },
    { "segreduce.block", "wide", 0, 0 },
    { "segreduce.offsets", "offsets", 0, 0 },
};

static int lanes_of(const struct shape *shape)
{
    const struct tuning *t = tuning_lookup(shape->strategy, shape->name, 0);
    return t ? t->value[TN_LANES] : 0;
}

/* Do the lanes of a warp read consecutive vectors, whatever the size of a segment?  Then its vector is what a segment
 * is cut into, and cannot be another one where arrays begin anywhere. */
static bool packed(const struct shape *shape)
{
    return shape->up_to == EXACTLY || shape->up_to == PACKED || shape->up_to == PACKED_FEW;
}

struct formula segreduce_all(struct formula a, struct formula b) { return a.n && b.n ? f_and(a, b) : a.n ? a : b; }

void segreduce_set(struct plan_case *c, enum tunable_id t, int value, const char *from)
{
    if (c->overridden[t] || !(c->strategy->tunables & 1u << t))
        return;
    c->tunable[t] = value;
    c->tunable_from[t] = from;
}

bool segreduce_pinned(const struct planner *pl)
{
    struct span at;
    return plan_pinned_name(pl, &at) != NULL;
}

int segreduce_state_words(const struct problem *p)
{
    enum ty type[32];
    int words = 0;
    const int fields = state_fields(p, type);
    for (int f = 0; f < fields; f++)
        words += (ty_bytes(type[f]) + 3) / 4;
    return words;
}

static int direct_fields(const struct problem *p)
{
    int n = 0;
    for (int i = 0; i < p->ninputs; i++)
        n += access_input_direct(p, i) ? p->input[i].array.nfields : 0;
    return n;
}

void segreduce_fit_items(struct plan_case *c)
{
    while (c->tunable[TN_ITEMS] > 1 && c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR] > ITEMS_MAX &&
           !c->overridden[TN_ITEMS])
        c->tunable[TN_ITEMS] /= 2;
}

/* Registers hold all positions that a lane has in flight; with offsets, where three sizes of teams are in one kernel,
 * wide states leave less room. */
static void fit_registers(const struct problem *p, struct plan_case *c)
{
    if (p->offsets >= 0 && segreduce_state_words(p) > 2)
        segreduce_set(c, TN_ITEMS, c->tunable[TN_ITEMS] / 2, c->tunable_from[TN_ITEMS]);
    const int fields = direct_fields(p), most = fields > 1 ? ITEMS_MAX / 2 : ITEMS_MAX;
    while (c->tunable[TN_SEGMENTS] > 1 && !c->overridden[TN_SEGMENTS] &&
           c->tunable[TN_SEGMENTS] * c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR] * fields > most)
        segreduce_set(c, TN_SEGMENTS, c->tunable[TN_SEGMENTS] / 2, c->tunable_from[TN_SEGMENTS]);
    segreduce_fit_items(c);
    plan_lighten(p, c);
}

/* Left alone, ptxas spills a few words of heavy elements in flight for several segments to fit one more block. */
static void leave_registers(const struct problem *p, struct plan_case *c)
{
    const bool heavy = direct_fields(p) > 1 || (segreduce_state_words(p) > 2 && c->tunable[TN_LANES] != WARP);
    if (p->offsets >= 0)
        segreduce_set(c, TN_MIN_BLOCKS, segreduce_state_words(p) > 2 ? 2 : 4,
                      "H200 f32 2^26 by 1024, equal and by a power law: 87, 97 us; 2 blocks 96, 110");
    else if (heavy && c->tunable[TN_THREADS] <= 256 && c->tunable[TN_MIN_BLOCKS] == 0)
        segreduce_set(c, TN_MIN_BLOCKS, 2, "two blocks of heavy elements leave them the registers");
}

/* A warp's rounds of states of several words: how many vectors are in flight. */
static void fit_wide_state(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    enum ty type[32];
    const int fields = state_fields(p, type);
    bool doubles = false;
    for (int f = 0; f < fields; f++)
        doubles |= ty_bytes(type[f]) == 8;
    segreduce_set(c, TN_MIN_BLOCKS, 0, "ptxas is left alone, as when this was tuned");
    plan_case_tuned(pl, c, !state_pad(p) ? "warps ordered" : doubles ? "warps doubles" : "warps words");
}

/* Where lanes of a warp share vectors with one another, the first-level cache must keep them. */
static void set_stream(const struct problem *p, struct plan_case *c, const struct shape *shape)
{
    if (problem_writes(p, AT_POINT))
        segreduce_set(c, TN_EVICT_FIRST, 0, "H200, a copy of 2^26 f32: 131.5 us, its loads with the hint 137.4");
    else if (shape->up_to == EXACTLY || shape->up_to == PACKED_FEW)
        segreduce_set(c, TN_EVICT_FIRST, 0,
                      "H200 f32 2^26 by 1/2/4/8: 128.5/94.3/78.6/70.7 us, with hints 132.5/100.7/83.1/73.1");
    else if (shape->up_to == PACKED)
        segreduce_set(c, TN_EVICT_FIRST, 1,
                      "H200, by hand, f32 2^26 by 16/32: 67.4/66.1 us, hints of loads alone 70.6/66.3, none 67.5/66.7");
    else
        segreduce_set(c, TN_EVICT_FIRST, lanes_of(shape) == 0 || lanes_of(shape) == WARP,
                      "where every vector is read once");
}

static struct plan_case *shape_case(struct planner *pl, const struct strategy *row, const struct shape *shape,
                                    const char *name, struct formula guard, bool aligned)
{
    const struct problem *p = pl->plan->problem;
    struct plan_case *c = plan_case_add(pl, row, name, guard);
    plan_case_tuned(pl, c, shape->name);
    if (lanes_of(shape) == WARP && segreduce_state_words(p) > 2)
        fit_wide_state(pl, c);
    segreduce_set(c, TN_PDL, pl->plan->device.sm >= 90, "on where the architecture has it");
    set_stream(p, c, shape);
    const bool runs = segments_trailing(p) || p->offsets >= 0;
    if (shape->up_to == EXACTLY) {
        segreduce_set(c, TN_VECTOR, (int)shape->above, "as many as a segment has");
        if (direct_fields(p) <= 1) /* more of them need the registers */
            segreduce_set(c, TN_MIN_BLOCKS, 3, "H200 f32 2^26 by 1/2: 134.3/101.9 us, without the bound 137.2/102.8");
    }
    if (!runs)
        segreduce_set(c, TN_VECTOR, 1, "segments are not runs of elements");
    else if (!aligned && !packed(shape) && state_determinism(p) == DET_ANY)
        segreduce_set(c, TN_VECTOR, 1, "arrays do not begin at a vector boundary");
    c->aligned = aligned && c->tunable[TN_VECTOR] > 1;
    fit_registers(p, c);
    leave_registers(p, c);
    return c;
}

/* Does the user ask for teams of so many lanes where the shape is packed, or the reverse?  The lengths that a packed
 * shape takes are those of whole vectors alone. */
static bool other_lanes(const struct planner *pl, const struct shape *shape)
{
    return plan_overrides(pl, TN_LANES) && (plan_setting(pl, TN_LANES, 0) == 0) != packed(shape);
}

/* A lane per segment: where segreduce.tile does not take short segments, or when asked for. */
static bool no_lane_each(const struct planner *pl, const struct shape *shape)
{
    return lanes_of(shape) == 1 &&
           (segreduce_pinned(pl) ? plan_setting(pl, TN_LANES, 0) != 1 : segreduce_tile_length(pl) > 0);
}

/* Has a segment 1, 2, 4, … or 32 vectors, and at most so many? */
static struct formula packed_guard(const struct planner *pl, int vector, int vectors, bool *never)
{
    const struct formula length = segments_length(pl->plan->problem);
    const struct formula divides = f_eq(f_mod(f_const((int64_t)WARP * vector), length), f_const(0));
    const int64_t most = (int64_t)vectors * vector;
    int64_t lo, hi;
    segments_length_range(pl, &lo, &hi);
    *never = !segments_trailing(pl->plan->problem) || hi < vector || lo > most || (lo == hi && WARP * vector % lo);
    if (lo == hi && !*never)
        return (struct formula){ 0 };
    const struct formula whole = f_and(f_ge(length, f_const(vector)), divides);
    return vectors < WARP ? f_and(whole, f_le(length, f_const(most))) : whole;
}

/* Segments of fewer elements than a vector, their number a vector. */
static struct formula exact_guard(const struct planner *pl, int length, bool *never)
{
    int64_t lo, hi;
    segments_length_range(pl, &lo, &hi);
    *never = !segments_trailing(pl->plan->problem) || plan_overrides(pl, TN_VECTOR) || lo > length || hi < length ||
             length >= access_vector_width(pl->plan->problem);
    return lo == hi ? (struct formula){ 0 } : f_eq(segments_length(pl->plan->problem), f_const(length));
}

/* The condition that the shape puts on the length; absent: it takes all that are possible. */
static struct formula length_guard(const struct planner *pl, const struct shape *shape, bool *never)
{
    const struct problem *p = pl->plan->problem;
    const int vector = access_vector_width(p);
    const int64_t above = segreduce_tile_length(pl) ? segreduce_tile_length(pl) : shape->above * vector;
    const int64_t least = shape->above && !segreduce_pinned(pl) ? above + 1 : 0;
    /* A warp's tree costs wide states less than a block's. */
    const bool wide = segreduce_state_words(p) > 2 && shape->up_to == WARP_VECTORS;
    const int64_t most = (wide ? WIDE_VECTORS : shape->up_to) * vector;
    struct formula guard = { 0 };
    int64_t lo, hi;
    *never = false;
    if (!shape->up_to || p->offsets >= 0)
        return guard;
    if (shape->up_to == EXACTLY)
        return exact_guard(pl, (int)shape->above, never);
    if (shape->up_to == PACKED || shape->up_to == PACKED_FEW)
        return packed_guard(pl, plan_setting(pl, TN_VECTOR, vector), shape->up_to == PACKED ? WARP : FEW, never);
    segments_length_range(pl, &lo, &hi);
    *never = lo > most || hi < least || least > most;
    if (lo < least && !segreduce_pinned(pl))
        guard = f_ge(segments_length(p), f_const(least));
    return hi <= most ? guard : segreduce_all(guard, f_le(segments_length(p), f_const(most)));
}

/* An aligned case, and after it one for arrays that begin anywhere: for every case where the tree must stay, else for
 * the last one of the strategy and of short segments. */
static void add_shape(struct planner *pl, const struct strategy *row, const struct shape *shape, struct formula guard,
                      bool last)
{
    const struct problem *p = pl->plan->problem;
    struct formula aligned = { 0 };
    struct plan_case *c = shape_case(pl, row, shape, shape->name, guard, true);
    if (!access_aligned_guard(p, c->tunable[TN_VECTOR], true, &aligned)) {
        c->aligned = false;
        return;
    }
    c->code.guard = segreduce_all(guard, aligned);
    if (last || lanes_of(shape) == 1 || state_determinism(p) != DET_ANY)
        shape_case(pl, row, shape, arena_printf(&pl->s->arena, "%s_unaligned", shape->name), guard, false);
}

void segreduce_add_shapes(struct planner *pl, const struct strategy *row, struct formula extra)
{
    const int n = sizeof shapes / sizeof *shapes;
    const bool pinned = segreduce_pinned(pl);
    for (int i = 0; i < n; i++) {
        bool never;
        if (strcmp(shapes[i].strategy, row->name) || no_lane_each(pl, &shapes[i]) ||
            ((row->tunables & WITH_LANES) && other_lanes(pl, &shapes[i])))
            continue;
        struct formula guard = length_guard(pl, &shapes[i], &never);
        const bool final = i + 1 == n || strcmp(shapes[i + 1].strategy, row->name) != 0;
        if (pinned && final)
            guard = (struct formula){ 0 };
        else if (never)
            continue;
        const bool last = final || !guard.n;
        add_shape(pl, row, &shapes[i], pinned ? guard : segreduce_all(guard, extra), last);
        if (last)
            return;
    }
}

/* Chosen for runs of elements only: elsewhere columns read whole vectors. */
static bool skips(struct planner *pl)
{
    const struct problem *p = pl->plan->problem;
    return !segreduce_pinned(pl) && !(segments_trailing(p) || p->offsets >= 0);
}

void segreduce_subwarp_plan(struct planner *pl, const struct strategy *row)
{
    if (skips(pl))
        return;
    segreduce_add_shapes(pl, row, (struct formula){ 0 });
}

/* Multiprocessors that a grid is sized for. */
struct formula segreduce_sms(const struct problem *p)
{
    return state_determinism(p) == DET_DEVICE ? f_const(128) : f_sms();
}

/* Would groups of `width` leave more than an eighth of the last one empty? */
static struct formula leaves_gaps(struct formula segments, struct formula width)
{
    return f_lt(f_mul(segments, f_const(8)), f_mul(f_mul(f_cdiv(segments, width), width), f_const(7)));
}

/* Would a block per segment keep some multiprocessors waiting for others: too few segments to occupy each of them, or
 * unevenly many, or a last round of blocks that is not full? */
static struct formula uneven(const struct problem *p)
{
    const struct formula segments = segments_count(p), sms = segreduce_sms(p),
                         places = f_mul(sms, f_const(BLOCKS_PER_SM));
    const struct formula few = f_lt(f_mul(segments, f_const(4)), f_mul(sms, f_const(7)));
    const struct formula rounds = f_and(f_lt(places, segments), leaves_gaps(segments, places));
    return f_or(few, f_or(leaves_gaps(segments, sms), rounds));
}

void segreduce_multi_block_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    if (skips(pl))
        return;
    segreduce_add_shapes(pl, row,
                         f_and(uneven(p), f_ge(segments_length(p), f_const(SPLIT_VECTORS * access_vector_width(p)))));
}

void segreduce_block_plan(struct planner *pl, const struct strategy *row)
{
    segreduce_add_shapes(pl, row, (struct formula){ 0 });
}
