/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.c - segments of one size: which strategy takes which sizes; and teams for shares of the merge path.
 *
 * All sizes are known at the launch only, so a plan has cases for ranges of the segment size L and the launcher chooses
 * by their guards.  Lengths are counted in vectors of 16 bytes, so that the limits hold for every element type:
 *
 *   segreduce.subwarp   a lane per vector where a warp's loads are packed with segments, else 1, 8 or 32 lanes per
 *                       segment; a lane for each of many segments whose elements are sums of what no element has alone
 *   segreduce.column    columns, and boxes of a middle dimension (column.c)
 *   segreduce.block     several blocks per segment, where there are too few segments to fill the device, else one
 *
 * Vector loads need arrays that begin at a vector boundary; other launches take the scalar cases that follow.  Where
 * results must be the same on every run, those have the same combination tree.
 */
#include "segreduce.h"

#include <string.h>

/* In place of a number of vectors. */
enum {
    PACKED = -1,
    EXACTLY = -2,
    PACKED_FEW = -3,   /* one or two vectors */
    EACH = -4,         /* a lane per segment, however long it is */
    SPLIT = -5,        /* several blocks per segment */
    REPEATED = -6,     /* a warp for several segments that share what they read, … */
    REPEATED_FEW = -7, /* … for fewer of them at a time */
    FEW = 2,
    PIECE_ITEMS = 8,
    PIECE_BYTES = 16,
    ONE_BY_ONE = 2048,
    ONE_BY_ONE_WARPS = 16, /* see one_by_one() */
    NARROW = 8,            /* elements of a vector of 8 and 16 bits */
    NARROW_BLOCK = 256
};
/* Segments for each multiprocessor from which on a lane each keeps it busy. */
enum { EACH_PER_SM = 256 };
/* The same of warps that share what segments read (by four, by two), and elements of a segment from which on what a warp
 * does once for all of its segments counts. */
enum { BOXES_INNER = 8, BOXES_LENGTH = 512, BOXES_LENGTH_MOST = 8192, BOXES_PER_SM = 64, BOXES_ITEMS = 16 };
enum { REPEATED_PER_SM = 64, REPEATED_FEW_PER_SM = 48, REPEATED_LENGTH = 256 };

/* Rows that are short for a warp, of narrow elements that take many instructions: four lanes each. */
#define SHORT "short"
#define BYTES "bytes" /* rows of bytes, so many that eight lanes each fill the device */
enum { ROWS_BYTES = 288, BYTES_PER_SM = 220, BYTES_BLOCKS = 4 };

/* ---- cases ------------------------------------------------------------------------------------------------------- */

/* Shapes of teams, in order of preference: their variants in tuning.def, and above and up to how many vectors a segment
 * has (0: any), or where it has 1, 2, 4, … 32, or where it has so many elements, which are the vector then. */
static const struct shape {
    const char *strategy, *name;
    int64_t above, up_to;
} shapes[] = {
    { "segreduce.subwarp", "each", 0, EACH },
    { "segreduce.subwarp", "repeated", 0, REPEATED },
    { "segreduce.subwarp", "repeated_few", 0, REPEATED_FEW },
    { "segreduce.subwarp", "single", 1, EXACTLY },
    { "segreduce.subwarp", "pair", 2, EXACTLY },
    { "segreduce.subwarp", "quad", 4, EXACTLY },
    { "segreduce.subwarp", "octet", 8, EXACTLY },
    { "segreduce.subwarp", "packed_few", 0, PACKED_FEW },
    { "segreduce.subwarp", "packed", 0, PACKED },
    { "segreduce.subwarp", "tiny", 0, 4 },
    { "segreduce.subwarp", BYTES, 16, ROWS_BYTES },
    { "segreduce.subwarp", "medium", 4, 32 },
    { "segreduce.subwarp", SHORT, 4, ROWS_SHORT },
    { "segreduce.subwarp", "warps", 4, ROWS_WARP },
    { "segreduce.block", "split", 0, SPLIT },
    { "segreduce.block", "rows", 0, ROWS_BLOCK },
    { "segreduce.block", "long", 0, 0 },
    { "segreduce.offsets", "offsets", 0, 0 },
};

static int tuned(const struct shape *shape, enum tunable_id t)
{
    return tuning_lookup(shape->strategy, shape->name, 0)->value[t];
}

static int lanes_of(const struct shape *shape) { return tuned(shape, TN_LANES); }

/* Is the value of an element a sum over a further dimension, of inputs that other elements read, too?  A lane that has
 * several elements of a segment reads once what belongs to the segment; lanes of other segments read the rest with it. */
static bool sums_shared(const struct problem *p) { return p->sums && access_direct_fields(p) == 0; }

struct reads {
    const struct problem *p;
    bool repeated, other;
};

/* The axis of the space that dimension d of a read follows; -1: another index. */
static int axis_read(const struct problem *p, const struct expr *e, int d)
{
    if (e->kind == EX_AT)
        return e->arg[d]->kind == EX_INDEX ? e->arg[d]->which : -1;
    return p->input[e->which].axis[d];
}

static void note_read(const struct expr *e, void *user)
{
    struct reads *r = user;
    r->other |= e->kind == EX_GATHER || e->kind == EX_NEIGHBOUR || e->kind == EX_SUM;
    if (e->kind != EX_AT && e->kind != EX_INPUT)
        return;
    const struct input *in = &r->p->input[e->which];
    int reduced = 0, kept = 0;
    for (int d = 0; d < in->array.rank; d++) {
        const int axis = axis_read(r->p, e, d);
        reduced += axis >= 0 && r->p->space[axis].reduced;
        kept += axis >= 0 && !r->p->space[axis].reduced;
    }
    r->repeated |= reduced > 0;
    r->other |= in->spread || (reduced && kept) || reduced + kept < in->array.rank;
}

/* All pairs: is what elements read that of their segment, or of their place in all segments alike?  A warp that has
 * several segments side by side then reads the latter once for all of them. */
static bool repeated(const struct problem *p)
{
    struct reads r = { .p = p };
    const struct expr *map[STATE_FIELDS_MAX];
    int n = 0;
    for (int i = 0; i < p->nreductions; i++)
        for (int f = 0; f < p->reduction[i].op->nfields; f++)
            map[n++] = p->reduction[i].map[f];
    for (int i = 0; i < n; i++)
        problem_walk(p, map[i], note_read, &r);
    return r.repeated && !r.other && segments_trailing(p) && p->offsets < 0 && !problem_writes(p, AT_POINT) &&
           state_commutative(p) && state_pad(p) && segreduce_state_words(p) <= 2;
}

/* Do the lanes of a warp read consecutive vectors, whatever the size of a segment?  Then its vector is what a segment
 * is cut into, and cannot be another one where arrays begin anywhere. */
static bool packed(const struct shape *shape)
{
    return shape->up_to == EXACTLY || shape->up_to == PACKED || shape->up_to == PACKED_FEW;
}

/* Does the shape leave no lane of a warp without elements, where these take as long as their memory? */
static bool is_short(const struct shape *shape) { return strcmp(shape->name, SHORT) == 0; }
static bool is_bytes(const struct shape *shape) { return strcmp(shape->name, BYTES) == 0; }

static bool plain_bytes(const struct problem *p)
{
    return access_vector_width(p) == PIECE_BYTES && segments_trailing(p) && !access_beside(p) && state_commutative(p) &&
           access_direct_fields(p) == 1 && segreduce_state_words(p) <= 2;
}

/* Registers hold all positions that a lane has in flight; with offsets, where three sizes of teams are in one kernel,
 * wide states leave less room. */
static void fit_registers(const struct problem *p, struct plan_case *c)
{
    if (p->offsets >= 0 && segreduce_state_words(p) > 2)
        plan_set(c, TN_ITEMS, c->tunable[TN_ITEMS] / 2, NULL);
    const int fields = access_direct_fields(p), most = fields > 1 ? ITEMS_MAX / 2 : ITEMS_MAX;
    while (plan_shrinks(c, TN_SEGMENTS) &&
           c->tunable[TN_SEGMENTS] * c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR] * fields > most)
        plan_set(c, TN_SEGMENTS, c->tunable[TN_SEGMENTS] / 2, NULL);
    if (access_beside(p) && c->tunable[TN_ITEMS] > 1 && c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR] > BESIDE_MAX)
        plan_set(c, TN_ITEMS, c->tunable[TN_ITEMS] / 2, "room for where rows begin");
    if (access_beside(p) && access_vector_width(p) >= NARROW && c->tunable[TN_THREADS] == 2 * NARROW_BLOCK)
        plan_set(c, TN_THREADS, NARROW_BLOCK, "H200, i8 [3069, 111, 767] with neighbours: 159 us, 512 threads 184");
    segreduce_fit_items(c);
    plan_lighten(p, c);
}

/* Left alone, ptxas spills a few words of heavy elements in flight for several segments to fit one more block. */
static void leave_registers(const struct problem *p, struct plan_case *c)
{
    const bool heavy =
        access_direct_fields(p) > 1 || (segreduce_state_words(p) > 2 && c->tunable[TN_LANES] != SEG_WARP);
    if (p->offsets >= 0)
        plan_set(c, TN_MIN_BLOCKS, segreduce_state_words(p) > 2 ? 2 : 4,
                 "H200 f32 2^26 by 1024, equal and by a power law: 87, 97 us; 2 blocks 96, 110");
    else if (heavy && c->tunable[TN_THREADS] <= 256 && c->tunable[TN_MIN_BLOCKS] == 0)
        plan_set(c, TN_MIN_BLOCKS, 2, "two blocks of heavy elements leave them the registers");
}

/* A warp's rounds of states of several words: how many vectors are in flight. */
static void fit_wide_state(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    enum ty type[STATE_FIELDS_MAX];
    const int fields = state_fields(p, type);
    bool doubles = false;
    for (int f = 0; f < fields; f++)
        doubles |= ty_bytes(type[f]) == 8;
    plan_set(c, TN_MIN_BLOCKS, 0, "ptxas is left alone, as when this was tuned");
    plan_case_tuned(pl, c, !state_pad(p) ? "warps ordered" : doubles ? "warps doubles" : "warps words");
}

/* Where lanes of a warp share vectors with one another, the first-level cache must keep them. */
static void set_stream(const struct problem *p, struct plan_case *c, const struct shape *shape)
{
    if (access_beside(p))
        plan_set(c, TN_EVICT_FIRST, 0, "what neighbours read again stays in the first-level cache");
    else if (problem_writes(p, AT_POINT))
        plan_set(c, TN_EVICT_FIRST, 0, "H200, a copy of 2^26 f32: 131.5 us, its loads with the hint 137.4");
    else if (shape->up_to == EXACTLY || shape->up_to == PACKED_FEW)
        plan_set(c, TN_EVICT_FIRST, 0,
                 "H200 f32 2^26 by 1/2/4/8: 128.5/94.3/78.6/70.7 us, with hints 132.5/100.7/83.1/73.1");
    else if (shape->up_to == PACKED)
        plan_set(c, TN_EVICT_FIRST, 1,
                 "H200, by hand, f32 2^26 by 16/32: 67.4/66.1 us, hints of loads alone 70.6/66.3, none 67.5/66.7");
    else
        plan_set(c, TN_EVICT_FIRST, lanes_of(shape) == 0 || lanes_of(shape) == SEG_WARP,
                 "where every vector is read once");
}

/* No more elements at once than a segment has. */
static void fit_length(struct planner *pl, struct plan_case *c)
{
    int64_t lo, hi;
    segments_length_range(pl, &lo, &hi);
    if (hi > 0 && hi < c->tunable[TN_ITEMS])
        plan_set(c, TN_ITEMS, (int)hi, "segments have no more");
}

/* The row of tuning.def for the shape and a kind of problem, where there is one. */
static void variant(struct planner *pl, struct plan_case *c, const struct shape *shape, const char *kind)
{
    const char *name = arena_printf(&pl->s->arena, "%s %s", shape->name, kind);
    if (tuning_lookup(shape->strategy, name, 0))
        plan_case_tuned(pl, c, name);
}

static void fit_vector(const struct planner *pl, struct plan_case *c, const struct shape *shape, bool aligned)
{
    const struct problem *p = pl->plan->problem;
    if (!segreduce_runs(p))
        plan_set(c, TN_VECTOR, 1, "segments are not runs of elements");
    else if (!aligned && !packed(shape) && state_determinism(p) == DET_ANY)
        plan_set(c, TN_VECTOR, 1, "arrays do not begin at a vector boundary");
    else if (segments_in_pieces(p) && lanes_of(shape) && lanes_of(shape) < SEG_WARP)
        plan_set(c, TN_VECTOR, 1, "H200 f32, [4, 1000000, 16] over [d, n]: 87 us; vectors of four 116");
    if (segments_in_pieces(p) && aligned && pl->plan->device.sm < 90 && segreduce_state_words(p) > 2)
        plan_set(c, TN_MIN_BLOCKS, 1, "addresses take more registers before sm_90");
    const bool bytes = access_vector_width(p) == PIECE_BYTES && !lanes_of(shape) && segreduce_state_words(p) <= 2;
    if (segments_in_pieces(p) && !aligned && c->tunable[TN_VECTOR] == 1)
        plan_set(c, TN_ITEMS, bytes ? 2 * PIECE_ITEMS : PIECE_ITEMS,
                 "H200 f32, [64, 64, 16383], [79102, 77, 22] over [d, n]: 88, 186 us; 4 items 116, 231; u8, "
                 "[4352, 8, 7678]: 16 items 279, 8 379, 32 368");
    if (segments_in_pieces(p) && !aligned && c->tunable[TN_VECTOR] == 1 && bytes)
        plan_set(c, TN_MIN_BLOCKS, 2, "left alone, ptxas spills some words to fit a third block of 512 threads");
}

/* A warp that reads a segment element by element takes as long for each of them as for a vector: where segments are few,
 * long ones of narrow types are for blocks.  H200, argmin of u8 [1533, 510, 5] over [d, n]: 26.8 us, blocks 14.6. */
static void one_by_one(const struct planner *pl, struct plan_case *c, const struct shape *shape)
{
    const struct problem *p = pl->plan->problem;
    if (plan_pinned(pl) || shape->up_to != ROWS_WARP || c->tunable[TN_VECTOR] > 1 || access_vector_width(p) == 1)
        return;
    c->code.guard = f_and(c->code.guard, f_or(f_le(segments_length(p), ONE_BY_ONE),
                                              f_ge(segments_count(p), f_mul(plan_sms(p), ONE_BY_ONE_WARPS))));
}

/* Has a state several fields that belong together? */
static bool wide_states(const struct problem *p)
{
    bool wide = false;
    for (int r = 0; r < p->nreductions; r++)
        wide |= p->reduction[r].op->nfields > 1;
    return wide;
}

/* Bounds and threads that were measured for elements of one and of two bytes.  Where bits may not depend on addresses, arrays that begin
 * anywhere have the same threads. */
static void fit_narrow(const struct problem *p, struct plan_case *c, const struct shape *shape, bool aligned)
{
    if (is_bytes(shape))
        plan_set(c, TN_MIN_BLOCKS, BYTES_BLOCKS, "a bound lets ptxas hold more loads");
    if (strcmp(shape->name, "long") == 0 && (aligned || state_determinism(p) != DET_ANY) &&
        access_vector_width(p) == NARROW && segreduce_state_words(p) == 1)
        plan_set(c, TN_THREADS, NARROW_BLOCK,
                 "H200, products of f16 [7000, 18429], [1792, 18432]: 60.6, 17.8 us, 512 threads 68.1, 20.5");
}

static struct plan_case *shape_case(struct planner *pl, const struct strategy *row, const void *what, const char *name,
                                    struct formula guard, bool aligned)
{
    const struct problem *p = pl->plan->problem;
    const struct shape *shape = what;
    struct plan_case *c = plan_case_add(pl, row, name, guard);
    plan_case_tuned(pl, c, shape->name);
    if (shape->up_to == EACH)
        fit_length(pl, c);
    if (p->offsets < 0 && !access_any_direct(p))
        variant(pl, c, shape, "shared"); /* what elements read is read by those of other segments, too */
    else if (access_vector_width(p) >= NARROW)
        variant(pl, c, shape, "narrow");
    else if (wide_states(p))
        variant(pl, c, shape, "wide");
    if (!plan_pinned(pl) && segreduce_runs(p) && !tuned(shape, TN_LANES) && !packed(shape))
        c->tunable[TN_LANES] = c->overridden[TN_LANES] = 0; /* the user sets those of other strategies */
    if (lanes_of(shape) == SEG_WARP && segreduce_state_words(p) > 2)
        fit_wide_state(pl, c);
    if (lanes_of(shape) == SEG_WARP && segreduce_state_words(p) > 2 && p->nreductions > 1 && !aligned)
        plan_set(c, TN_MIN_BLOCKS, 4, "with fewer registers several states, element by element, spill");
    plan_set_pdl(pl, c);
    set_stream(p, c, shape);
    if (shape->up_to == EXACTLY) {
        plan_set(c, TN_VECTOR, (int)shape->above, "as many as a segment has");
        if (access_direct_fields(p) <= 1) /* more of them need the registers */
            plan_set(c, TN_MIN_BLOCKS, 3, "H200 f32 2^26 by 1/2: 134.3/101.9 us, without the bound 137.2/102.8");
    }
    fit_vector(pl, c, shape, aligned);
    if (!aligned && p->offsets < 0)
        one_by_one(pl, c, shape);
    c->aligned = aligned && c->tunable[TN_VECTOR] > 1;
    fit_registers(p, c);
    leave_registers(p, c);
    fit_narrow(p, c, shape, aligned);
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
           (plan_pinned(pl) ? plan_setting(pl, TN_LANES, 0) != 1 : segreduce_tile_length(pl) > 0);
}

static bool heavy_narrow(const struct problem *p)
{
    return access_vector_width(p) >= NARROW && segments_trailing(p) &&
           (access_beside(p) || segreduce_state_words(p) > 1 || !state_commutative(p));
}

/* Has a segment 1, 2, 4, … or 32 vectors, and at most so many? */
static struct formula packed_guard(const struct planner *pl, int vector, int vectors, bool *never)
{
    const struct formula length = segments_length(pl->plan->problem);
    const struct formula divides = f_eq(f_mod((int64_t)SEG_WARP * vector, length), 0);
    const int64_t most = (int64_t)vectors * vector;
    int64_t lo, hi;
    segments_length_range(pl, &lo, &hi);
    *never = !segments_trailing(pl->plan->problem) || hi < vector || lo > most || (lo == hi && SEG_WARP * vector % lo);
    if (lo == hi && !*never)
        return (struct formula){ 0 };
    const struct formula whole = f_and(f_ge(length, vector), divides);
    return vectors < SEG_WARP ? f_and(whole, f_le(length, most)) : whole;
}

/* Segments of fewer elements than a vector, their number a vector. */
static struct formula exact_guard(const struct planner *pl, int length, bool *never)
{
    int64_t lo, hi;
    segments_length_range(pl, &lo, &hi);
    *never = !segments_trailing(pl->plan->problem) || plan_overrides(pl, TN_VECTOR) || lo > length || hi < length ||
             length >= access_vector_width(pl->plan->problem);
    return lo == hi ? (struct formula){ 0 } : f_eq(segments_length(pl->plan->problem), length);
}

/* Do rounds of `width` segments leave more than an eighth of all their slots empty? */
static struct formula leaves_gaps(struct formula segments, struct formula width)
{
    return f_lt(f_mul(segments, 8), f_mul(f_mul(f_cdiv(segments, width), width), 7));
}

/* Long segments of which a block each would keep some multiprocessors waiting for others: too few to occupy each of
 * them, or unevenly many, or a last round of blocks that is not full. */
static struct formula split_guard(const struct problem *p)
{
    const struct formula segments = segments_count(p), sms = plan_sms(p), places = f_mul(sms, ROWS_BLOCKS_PER_SM);
    const struct formula few = f_lt(f_mul(segments, 4), f_mul(sms, 7));
    const struct formula rounds = f_and(f_lt(places, segments), leaves_gaps(segments, places));
    const struct formula uneven = f_or(few, f_or(leaves_gaps(segments, sms), rounds));
    return f_and(uneven, f_ge(segments_length(p), ROWS_SPLIT * access_vector_width(p)));
}

/* Up to how many vectors: trees of wide states cost a warp less than a block, and a block of 64 threads less than others. */
static int64_t most_vectors(const struct problem *p, const struct shape *shape)
{
    if (shape->up_to == ROWS_WARP && segreduce_state_words(p) > 2)
        return ROWS_WARP_WIDE;
    if (shape->up_to == ROWS_BLOCK && wide_states(p))
        return state_commutative(p) ? ROWS_BLOCK_WIDE : ROWS_BLOCK_ORDERED;
    return shape->up_to;
}

/* The condition that the shape puts on the length; absent: it takes all that are possible. */
static struct formula length_guard(const struct planner *pl, const struct shape *shape, bool *never)
{
    const struct problem *p = pl->plan->problem;
    const int vector = access_vector_width(p);
    const int64_t above = segreduce_tile_length(pl) ? segreduce_tile_length(pl) : shape->above * vector;
    const int64_t least = shape->above && !plan_pinned(pl) ? above + 1 : 0;
    const bool wide = shape->up_to == ROWS_BLOCK && wide_states(p);
    const int64_t most = most_vectors(p, shape) * vector;
    struct formula guard = { 0 };
    int64_t lo, hi;
    *never = false;
    if (shape->up_to == EACH)
        return f_ge(segments_count(p), f_mul(plan_sms(p), EACH_PER_SM));
    if (shape->up_to == REPEATED || shape->up_to == REPEATED_FEW) {
        const int per_sm = shape->up_to == REPEATED ? REPEATED_PER_SM : REPEATED_FEW_PER_SM;
        segments_length_range(pl, &lo, &hi);
        *never = hi < REPEATED_LENGTH;
        return f_and(f_ge(segments_count(p), f_mul(plan_sms(p), per_sm)), f_ge(segments_length(p), REPEATED_LENGTH));
    }
    if (shape->up_to == SPLIT)
        return plan_overrides(pl, TN_PARTS) ? guard : split_guard(p);
    if (!shape->up_to || p->offsets >= 0)
        return guard;
    if (shape->up_to == EXACTLY)
        return exact_guard(pl, (int)shape->above, never);
    if (shape->up_to == PACKED || shape->up_to == PACKED_FEW)
        return packed_guard(pl, plan_setting(pl, TN_VECTOR, vector), shape->up_to == PACKED ? SEG_WARP : FEW, never);
    segments_length_range(pl, &lo, &hi);
    *never = lo > most || hi < least || least > most;
    if (wide && !plan_pinned(pl))
        guard = f_ge(segments_count(p), f_mul(plan_sms(p), ROWS_WIDE_PER_SM));
    if (is_short(shape) || is_bytes(shape)) /* others need all warps that there are */
        guard = f_ge(segments_count(p), f_mul(plan_sms(p), is_short(shape) ? EACH_PER_SM : BYTES_PER_SM));
    if (lo < least && !plan_pinned(pl))
        guard = f_and(guard, f_ge(segments_length(p), least));
    return hi <= most ? guard : f_and(guard, f_le(segments_length(p), most));
}

/* May the strategy's plan have this shape?  Several blocks are chosen for runs of elements, or asked for. */
static bool eligible(const struct planner *pl, const struct strategy *row, const struct shape *shape)
{
    const bool parts = plan_overrides(pl, TN_PARTS), split = shape->up_to == SPLIT;
    if (strcmp(shape->strategy, row->name) != 0 || no_lane_each(pl, shape))
        return false;
    if (shape->up_to == EACH && (!sums_shared(pl->plan->problem) || plan_pinned(pl)))
        return false;
    if ((shape->up_to == REPEATED || shape->up_to == REPEATED_FEW) && (plan_pinned(pl) || !repeated(pl->plan->problem)))
        return false;
    if (is_bytes(shape) && (plan_pinned(pl) || !plain_bytes(pl->plan->problem)))
        return false;
    if (is_short(shape) && (plan_pinned(pl) || !heavy_narrow(pl->plan->problem)))
        return false;
    if (packed(shape) && !plan_pinned(pl) && !access_any_direct(pl->plan->problem))
        return false; /* nothing is read in vectors, and each lane would find its segment for one element */
    if (row->tunables & WITH_SEGMENTS)
        return !other_lanes(pl, shape);
    if (!(row->tunables & WITH_PARTS))
        return true;
    return parts ? (plan_setting(pl, TN_PARTS, 0) != 1) == split : !split || segreduce_runs(pl->plan->problem);
}

/* Cases for arrays that begin anywhere follow where no later one takes them, and those of short segments. */
void segreduce_add_shapes(struct planner *pl, const struct strategy *row)
{
    const bool pinned = plan_pinned(pl);
    const struct shape *shape[sizeof shapes / sizeof *shapes];
    int n = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (eligible(pl, row, &shapes[i]))
            shape[n++] = &shapes[i];
    for (int i = 0; i < n; i++) {
        bool never;
        const bool all = i + 1 == n && !packed(shape[i]); /* takes what is left */
        struct formula guard = length_guard(pl, shape[i], &never);
        if (pinned && all)
            guard = (struct formula){ 0 };
        else if (never)
            continue;
        const bool last = all || !guard.n;
        segreduce_add(pl, row, shape_case, shape[i], shape[i]->name, 0, guard,
                      last || shape[i]->up_to == SPLIT || lanes_of(shape[i]) == 1 ||
                          (segments_in_pieces(pl->plan->problem) && lanes_of(shape[i]) == SEG_WARP));
        if (last)
            return;
    }
}

/* Boxes of few narrow columns: lanes of a warp read places of one column, and the warps of a block, which have the columns
 * beside it, find the same lines in the first-level cache.  Not where columns are whole words of segreduce.column.  H200,
 * over the middle, f16 [43519, 512, 6], [20000, 1024, 3], u8 [20000, 2048, 5]: 90, 34, 82 us, segreduce.column 152, 58,
 * 115; but u8 [40000, 300, 8] 122 and 59. */
void segreduce_add_boxes(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const bool apart = segments_adjacent(p) && !segments_trailing(p) && p->offsets < 0 && !p->space[0].reduced;
    const struct shape *shape = shapes;
    while (shape->up_to != ROWS_WARP)
        shape++;
    if (!apart || access_vector_width(p) < NARROW || !access_any_direct(p) || problem_writes(p, AT_POINT) ||
        segreduce_state_words(p) > 2 || p->sums)
        return;
    const struct formula inner = segments_inner(p), covered = f_eq(f_mod(inner, access_vector_width(p) / 2), 0);
    const struct formula few = f_and(f_and(f_ge(inner, 2), f_le(inner, BOXES_INNER)), f_not(F_(covered)));
    const struct formula length = segments_length(p);
    const struct formula guard = f_and(few, f_and(f_and(f_ge(length, BOXES_LENGTH), f_le(length, BOXES_LENGTH_MOST)),
                                                  f_ge(segments_count(p), f_mul(plan_sms(p), BOXES_PER_SM))));
    struct plan_case *c = shape_case(pl, row, shape, "boxes", guard, false);
    plan_set(c, TN_ITEMS, BOXES_ITEMS, "narrow elements in flight, one by one");
    plan_set(c, TN_EVICT_FIRST, 0, "other columns read the same lines");
}
