/* SPDX-License-Identifier: Apache-2.0 */
/* tile.c - planning of short segments of any size, staged as a whole in shared memory.
 *
 * A tile of a warp has `items` vectors per lane and stage of the widest array.  It begins at a multiple of 16 bytes of
 * every array, so the number of its segments is a multiple of what the narrowest one has in 16 bytes.
 */
#include "segreduce.h"

enum { WARP = 32, LINE_BYTES = 128, VECTOR_BYTES = 16, SEGMENTS_MIN = 8, STAGES = 2, STAGED_MAX = 72 * 1024 };

static int common_divisor(int a, int b) { return b ? common_divisor(b, a % b) : a; }

int segreduce_quantum(const struct problem *p)
{
    int n = 0;
    for (int i = 0; i < p->ninputs; i++) {
        const int stride = p->input[i].array.stride;
        if (access_input_direct(p, i) && VECTOR_BYTES / common_divisor(VECTOR_BYTES, stride) > n)
            n = VECTOR_BYTES / common_divisor(VECTOR_BYTES, stride);
    }
    return n;
}

bool segreduce_tile_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d;
    if (!segreduce_regular(p, a, why))
        return false;
    if (!segments_trailing(p))
        *why = "it stages runs of elements, and here the reduced dimensions are not the last ones";
    else if (!segreduce_quantum(p))
        *why = "no input is read element by element, so there is nothing to stage";
    else if (problem_writes(p, AT_POINT))
        *why = "it writes a value per element, which other strategies store as vectors";
    else
        return true;
    return false;
}

/* ---- how large a tile is ----------------------------------------------------------------------------------------- */

static int tuned(const struct planner *pl, enum tunable_id t)
{
    const int sm = state_determinism(pl->plan->problem) == DET_DEVICE ? 0 : pl->plan->device.sm;
    return plan_setting(pl, t, tuning_lookup("segreduce.tile", "", sm)->value[t]);
}

static int vector_width(const struct planner *pl)
{
    return plan_setting(pl, TN_VECTOR, access_vector_width(pl->plan->problem));
}

/* Bytes that a block of that many vectors per lane stages; bulk copies may begin up to a line before a tile. */
static int64_t staged_bytes(const struct planner *pl, int threads, int items, int stages, int slack)
{
    const struct problem *p = pl->plan->problem;
    int64_t bytes = 0;
    for (int i = 0; i < p->ninputs; i++)
        if (access_input_direct(p, i))
            bytes += WARP * items * vector_width(pl) * p->input[i].array.stride + slack;
    return bytes * stages * threads / WARP;
}

/* As tuned, unless several inputs or wide elements would leave no room for several blocks. */
static int tile_items(const struct planner *pl)
{
    int items = tuned(pl, TN_ITEMS);
    while (items > 1 && !plan_overrides(pl, TN_ITEMS) &&
           staged_bytes(pl, tuned(pl, TN_THREADS), items, plan_setting(pl, TN_COPY_STAGES, STAGES), LINE_BYTES) >
               STAGED_MAX)
        items /= 2;
    return items;
}

static int64_t tile_elements(const struct planner *pl, int items) { return (int64_t)items * WARP * vector_width(pl); }

/* The longest segments of which a tile has enough. */
static int64_t length_max(const struct planner *pl)
{
    const int q = segreduce_quantum(pl->plan->problem);
    return tile_elements(pl, tile_items(pl)) / (q > SEGMENTS_MIN ? q : SEGMENTS_MIN);
}

static bool has_room(const struct planner *pl, int threads)
{
    const int stages = pl->plan->device.sm >= 90 ? plan_setting(pl, TN_COPY_STAGES, STAGES) : 0;
    const int64_t bytes = staged_bytes(pl, threads, tile_items(pl), stages ? stages : 1, stages ? LINE_BYTES : 0);
    return bytes <= pl->plan->device.shared_per_block;
}

/* As tuned, but fewer where the tiles of many inputs outgrow shared memory. */
static int tile_threads(const struct planner *pl)
{
    int threads = tuned(pl, TN_THREADS);
    while (threads > WARP && !plan_overrides(pl, TN_THREADS) && !has_room(pl, threads))
        threads = threads / 2 / WARP * WARP;
    return threads;
}

int64_t segreduce_tile_length(const struct planner *pl)
{
    const char *why;
    return segreduce_tile_fits(pl->plan->problem, &pl->plan->device, &pl->s->arena, &why) &&
                   has_room(pl, tuned(pl, TN_THREADS))
               ? length_max(pl)
               : 0;
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static struct plan_case *add_case(struct planner *pl, const struct strategy *row, const char *name, bool aligned)
{
    int64_t lo, hi;
    struct plan_case *c = plan_case_add(pl, row, name, (struct formula){ 0 });
    segments_length_range(pl, &lo, &hi);
    if (hi > length_max(pl))
        c->code.guard = f_le(segments_length(pl->plan->problem), f_const(length_max(pl)));
    segreduce_set(c, TN_THREADS, tile_threads(pl), c->tunable_from[TN_THREADS]);
    segreduce_set(c, TN_ITEMS, tile_items(pl), c->tunable_from[TN_ITEMS]);
    segreduce_set(c, TN_PDL, pl->plan->device.sm >= 90, "on where the architecture has it");
    segreduce_set(c, TN_COPY_STAGES, pl->plan->device.sm >= 90 && aligned ? STAGES : 0,
                  "where the architecture has bulk copies");
    c->aligned = aligned;
    return c;
}

void segreduce_tile_plan(struct planner *pl, const struct strategy *row)
{
    const int widest = VECTOR_BYTES; /* elements of one byte: every array begins at 16 bytes */
    struct formula aligned = { 0 };
    int64_t lo, hi;
    segments_length_range(pl, &lo, &hi);
    if (!segreduce_pinned(pl) && (lo > length_max(pl) || !has_room(pl, tuned(pl, TN_THREADS))))
        return;
    const bool any = access_aligned_guard(pl->plan->problem, widest, true, &aligned);
    struct plan_case *c = add_case(pl, row, "tile", true);
    if (any) {
        c->code.guard = segreduce_all(c->code.guard, aligned);
        add_case(pl, row, "tile_unaligned", false);
    }
}

bool segreduce_tile_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int64_t elements = tile_elements(pl, c->tunable[TN_ITEMS]);
    const int q = segreduce_quantum(p), warps = c->tunable[TN_THREADS] / WARP;
    const struct formula length = f_max(segments_length(p), f_const(1));
    const struct formula per_tile = f_mul(f_const(q), f_div(f_const(elements / q), length));
    const struct formula tiles = f_cdiv(segments_count(p), per_tile);
    if (c->tunable[TN_THREADS] % WARP)
        return segreduce_contradiction(pl, c, "threads must be a multiple of 32");
    const int stages = c->tunable[TN_COPY_STAGES];
    if (staged_bytes(pl, c->tunable[TN_THREADS], c->tunable[TN_ITEMS], stages ? stages : 1, stages ? LINE_BYTES : 0) >
        pl->plan->device.shared_per_block)
        return segreduce_contradiction(pl, c, "the tiles do not fit shared memory");
    struct prog_kernel *k = segreduce_kernel(pl, c, "");
    plan_value_arg(k, "per_tile", TY_I32, per_tile);
    plan_value_arg(k, "tiles", TY_I64, tiles);
    plan_launch(pl, c, 0,
                f_min(f_cdiv(tiles, f_const(warps)), f_mul(segreduce_sms(p), f_const(c->tunable[TN_BLOCKS_PER_SM]))));
    return true;
}
