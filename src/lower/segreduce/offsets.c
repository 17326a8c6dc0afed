/* SPDX-License-Identifier: Apache-2.0 */
/* offsets.c - planning of segments between offsets.
 *
 * Staged: elements are cut into equal shares, one per warp, and come through a ring of tiles in shared memory.  What
 * cannot be staged - values per element, problems that read no array element by element - has shares of the merge path of
 * ends and elements, read by teams of lanes.
 */
#include "segreduce.h"

FITS_WHAT(segreduce_offsets, segreduce_between_offsets)

/* ---- cases ------------------------------------------------------------------------------------------------------- */

/* Bytes of a warp's tile. */
static int64_t tile_bytes(const struct problem *p, int items, int vector)
{
    return segreduce_staged_bytes(p, (int64_t)SEG_WARP * segments_chunk(items, vector), 0);
}

/* What all warps of a block stage, in so many tiles each. */
static int64_t shared_bytes(const struct problem *p, int threads, int stages, int items, int vector)
{
    return (int64_t)(threads / SEG_WARP) *
           (stages * tile_bytes(p, items, vector) + SEG_WARP * (4 + 8 * state_fields(p, NULL)));
}

static bool stageable(const struct planner *pl)
{
    const struct problem *p = pl->plan->problem;
    const struct tuning *tuned = tuning_lookup("segreduce.offsets", "", pl->plan->device.sm);
    const int threads = plan_setting(pl, TN_THREADS, tuned->value[TN_THREADS]);
    const int stages = plan_setting(pl, TN_COPY_STAGES, SHARE_STAGES);
    const int64_t least = shared_bytes(p, threads, stages, 1, plan_setting(pl, TN_VECTOR, access_vector_width(p)));
    return segreduce_quantum(p) && !problem_writes(p, AT_POINT) && least <= pl->plan->device.shared_per_block;
}

/* Does a map read at places that it computes? */
static bool gathers(const struct problem *p)
{
    for (int i = 0; i < p->ninputs; i++)
        if (p->input[i].placed)
            return true;
    return false;
}

static struct plan_case *staged_case(struct planner *pl, const struct strategy *row, const void *what, const char *name,
                                     struct formula guard, bool aligned)
{
    const struct problem *p = pl->plan->problem;
    struct plan_case *c = plan_case_add(pl, row, name, guard);
    (void)what;
    plan_set(c, TN_COPY_STAGES, SHARE_STAGES, "one tile arrives while one is reduced");
    plan_set_pdl(pl, c);
    if (gathers(p)) {
        static const char *measured = "H200 sparse matrix of 2^22 rows of 16, columns in a band/at random: 182/511 us; "
                                      "28 blocks 185/516, 4 items "
                                      "181/521, 128 threads, 2 items, 2 stages 230/667, cuSPARSE 208/517";
        plan_set(c, TN_THREADS, 256, measured);
        plan_set(c, TN_ITEMS, 3, measured);
        plan_set(c, TN_BLOCKS_PER_SM, 6, measured);
        plan_set(c, TN_COPY_STAGES, 1, measured);
    }
    const int stages = c->tunable[TN_COPY_STAGES] > 0 ? c->tunable[TN_COPY_STAGES] : 1;
    while (plan_shrinks(c, TN_ITEMS) &&
           stages * tile_bytes(p, c->tunable[TN_ITEMS], c->tunable[TN_VECTOR]) > SHARE_STAGES * SHARE_TILE_MAX)
        plan_set(c, TN_ITEMS, c->tunable[TN_ITEMS] / 2, "the tiles of a warp stay near 8 KiB");
    c->aligned = aligned;
    return c;
}

void segreduce_offsets_plan(struct planner *pl, const struct strategy *row)
{
    if (stageable(pl) && plan_setting(pl, TN_COPY_STAGES, SHARE_STAGES) > 0)
        segreduce_add(pl, row, staged_case, NULL, "staged", SEG_VECTOR_BYTES, (struct formula){ 0 }, true);
    else
        segreduce_add_shapes(pl, row);
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

/* What the first kernel leaves over: a head and a tail of each of `spans` pieces of work, `span` items long; the second
 * kernel combines these, a warp per piece. */
static void add_kernels(struct planner *pl, struct plan_case *c, struct formula blocks, struct formula span,
                        struct formula spans)
{
    const struct problem *p = pl->plan->problem;
    const int warps = c->tunable[TN_THREADS] / SEG_WARP;
    const struct formula any = f_ge(segments_count(p), 1);
    const int words = c->tunable[TN_COPY_STAGES] ? 2 : 1;                /* a segment, and where it began */
    const struct formula second = f_div(f_add(spans, warps - 2), warps); /* all but the first */
    for (int i = 0; i < 2; i++) {
        const char *suffix = i ? "carry" : "";
        struct prog_kernel *k =
            c->tunable[TN_COPY_STAGES] ? segreduce_kernel(pl, c, suffix) : segreduce_team_kernel(pl, c, suffix);
        plan_value_arg(k, VAL_SHARE, TY_I64, i || !c->tunable[TN_COPY_STAGES] ? span : f_div(span, warps));
        plan_value_arg(k, VAL_SHARES, TY_I64, spans);
        plan_launch(pl, c, i, f_mul(any, i ? second : blocks));
    }
    plan_buffer_arg(pl, c, 0, BUF_CARRY, REGION_SCRATCH, f_mul(spans, 8 * words));
    plan_partials_arg(pl, c, 0, spans, 2);
}

/* Warps of all blocks: where segments are long, a share is looked up in no time, and a quarter more of them is better
 * for the last round. */
static struct formula warps_wanted(const struct problem *p, const struct plan_case *c)
{
    const int64_t each = (int64_t)c->tunable[TN_BLOCKS_PER_SM] * (c->tunable[TN_THREADS] / SEG_WARP);
    const struct formula lengthy = f_ge(access_count(p), f_mul(segments_count(p), SHARE_LONG));
    if (c->overridden[TN_BLOCKS_PER_SM])
        return f_mul(plan_sms(p), each);
    return f_mul(plan_sms(p), f_add(each, f_mul(lengthy, each / 4)));
}

/* Equal numbers of elements, and of segments where these are far more. */
static bool build_staged(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int warps = c->tunable[TN_THREADS] / SEG_WARP;
    const int64_t shared = shared_bytes(p, c->tunable[TN_THREADS], c->tunable[TN_COPY_STAGES], c->tunable[TN_ITEMS],
                                        c->tunable[TN_VECTOR]);
    if (c->tunable[TN_THREADS] % SEG_WARP)
        return plan_contradiction(pl, c, 0, "threads must be a multiple of 32");
    if (!stageable(pl))
        return plan_contradiction(pl, c, 0,
                                  "copy_stages must be 0: tiles are staged of inputs read element by element, "
                                  "without outputs per element");
    if (shared > pl->plan->device.shared_per_block)
        return plan_contradiction(pl, c, 0, "the tiles do not fit shared memory");
    const struct formula n = access_count(p);
    const struct formula wanted = warps_wanted(p, c);
    const struct formula share = f_max(f_mul(f_cdiv(f_cdiv(n, wanted), SEG_WARP), SEG_WARP), SHARE_MIN);
    const struct formula span = f_mul(share, warps);
    const struct formula blocks = f_max(f_cdiv(n, span), f_cdiv(segments_count(p), (int64_t)SHARE_ENDS * warps));
    add_kernels(pl, c, blocks, span, blocks);
    return true;
}

bool segreduce_offsets_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    if (c->tunable[TN_COPY_STAGES])
        return build_staged(pl, c);
    /* Shares of equal length for all warps that the device holds, but none so short that finding it takes longer than
     * its work. */
    const struct formula items = f_add(access_count(p), segments_count(p));
    const struct formula warps = f_mul(plan_sms(p), MERGED_PER_SM);
    const struct formula share = f_max(f_cdiv(items, warps), MERGED_MIN);
    const struct formula shares = f_cdiv(items, share);
    add_kernels(pl, c, f_cdiv(shares, c->tunable[TN_THREADS] / SEG_WARP), share, shares);
    return segreduce_check_tunables(pl, c, segreduce_runs(pl->plan->problem));
}
