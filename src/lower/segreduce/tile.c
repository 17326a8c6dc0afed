/* SPDX-License-Identifier: Apache-2.0 */
/* tile.c - planning of short segments of any size, staged as a whole in shared memory.
 *
 * A tile of a warp has `items` vectors per lane and stage of the widest array.  It begins at a multiple of 16 bytes of
 * every array, so the number of its segments is a multiple of what the narrowest one has in 16 bytes.
 */
#include "segreduce.h"

enum { LINE_BYTES = 128 };

bool segreduce_tile_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    const struct misfit m[] = {
        { !segments_trailing(p), "it stages runs of elements, and here the reduced dimensions are not the last ones" },
        { !segreduce_quantum(p), "no input is read element by element, so there is nothing to stage" },
        { problem_writes(p, AT_POINT), "it writes a value per element, which other strategies store as vectors" },
        { 0 }
    };
    return segreduce_regular(p, why) && plan_takes(why, m);
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
static int64_t staged_bytes(const struct planner *pl, int threads, int items, int stages)
{
    const int64_t each = segreduce_staged_bytes(pl->plan->problem, (int64_t)SEG_WARP * items * vector_width(pl),
                                                stages ? LINE_BYTES : 0);
    return each * (stages ? stages : 1) * threads / SEG_WARP;
}

/* As tuned, unless several inputs or wide elements would leave no room for several blocks. */
static int tile_items(const struct planner *pl)
{
    int items = tuned(pl, TN_ITEMS);
    while (items > 1 && !plan_overrides(pl, TN_ITEMS) &&
           staged_bytes(pl, tuned(pl, TN_THREADS), items, plan_setting(pl, TN_COPY_STAGES, TILE_STAGES)) >
               TILE_STAGED_MAX)
        items /= 2;
    return items;
}

static int64_t tile_elements(const struct planner *pl, int items)
{
    return (int64_t)items * SEG_WARP * vector_width(pl);
}

/* The longest segments of which a tile has enough. */
static int64_t length_max(const struct planner *pl)
{
    const int q = segreduce_quantum(pl->plan->problem);
    return tile_elements(pl, tile_items(pl)) / (q > TILE_SEGMENTS_MIN ? q : TILE_SEGMENTS_MIN);
}

static bool has_room(const struct planner *pl, int threads)
{
    const int stages = pl->plan->device.sm >= 90 ? plan_setting(pl, TN_COPY_STAGES, TILE_STAGES) : 0;
    return staged_bytes(pl, threads, tile_items(pl), stages) <= pl->plan->device.shared_per_block;
}

/* As tuned, but fewer where the tiles of many inputs outgrow shared memory. */
static int tile_threads(const struct planner *pl)
{
    int threads = tuned(pl, TN_THREADS);
    while (threads > SEG_WARP && !plan_overrides(pl, TN_THREADS) && !has_room(pl, threads))
        threads = threads / 2 / SEG_WARP * SEG_WARP;
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

enum { LONG = 120, LONG_BLOCKS = 12, HALVES = 8 };

static struct plan_case *tile_case(struct planner *pl, const struct strategy *row, const void *what, const char *name,
                                   struct formula guard, bool aligned)
{
    struct plan_case *c = plan_case_add(pl, row, name, guard);
    const int *items = what;
    plan_set(c, TN_THREADS, tile_threads(pl), NULL);
    plan_set(c, TN_ITEMS, items ? *items : tile_items(pl), NULL);
    if (items)
        plan_set(c, TN_BLOCKS_PER_SM, LONG_BLOCKS, "as many as fit");
    plan_set_pdl(pl, c);
    plan_set(c, TN_COPY_STAGES, pl->plan->device.sm >= 90 && aligned ? TILE_STAGES : 0,
             "where the architecture has bulk copies");
    c->aligned = aligned;
    return c;
}

/* Twice as large tiles, of which a round has segments for all lanes.  H200, minima and maxima of i16, rows of 255, 127: 2^22 elements
 * 5.6, 4.7 us, 2^24.5 24.0, 19.1, 2^27 95, 71; 8 vectors 9.5, 6.4, 30.2, 18.1, 145, 79; but rows of 63 4.8, 20.2, 73 and 5.0, 14.7, 70. */
static void add_long(struct planner *pl, const struct strategy *row, int64_t longest)
{
    static const int items = 16;
    const struct problem *p = pl->plan->problem;
    const struct formula length = segments_length(p);
    int64_t lo, hi;
    segments_length_range(pl, &lo, &hi);
    if (staged_bytes(pl, tile_threads(pl), items, pl->plan->device.sm >= 90 ? TILE_STAGES : 0) >
        pl->plan->device.shared_per_block)
        return;
    if (access_vector_width(p) < HALVES || p->nreductions < 2 || access_direct_fields(p) > 1 ||
        tile_items(pl) * 2 != items || hi < LONG || plan_overrides(pl, TN_ITEMS))
        return;
    segreduce_add(pl, row, tile_case, &items, "tile_long", SEG_VECTOR_BYTES,
                  f_and(f_ge(length, LONG), f_le(length, longest)), false);
}

void segreduce_tile_plan(struct planner *pl, const struct strategy *row)
{
    const struct formula length = segments_length(pl->plan->problem), any = { 0 };
    int64_t lo, hi;
    segments_length_range(pl, &lo, &hi);
    if (!plan_pinned(pl) &&
        (lo > length_max(pl) || !has_room(pl, tuned(pl, TN_THREADS)) || segreduce_resident_takes(pl->plan->problem)))
        return;
    if (!plan_pinned(pl))
        add_long(pl, row, length_max(pl));
    /* Elements of one byte: every array begins at 16 bytes. */
    segreduce_add(pl, row, tile_case, NULL, "tile", SEG_VECTOR_BYTES,
                  hi > length_max(pl) ? f_le(length, length_max(pl)) : any, true);
}

bool segreduce_tile_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int64_t elements = tile_elements(pl, c->tunable[TN_ITEMS]);
    const int q = segreduce_quantum(p), warps = c->tunable[TN_THREADS] / SEG_WARP;
    const struct formula length = f_max(segments_length(p), 1);
    const struct formula per_tile = f_mul(q, f_div(elements / q, length));
    const struct formula tiles = f_cdiv(segments_count(p), per_tile);
    if (c->tunable[TN_THREADS] % SEG_WARP)
        return plan_contradiction(pl, c, 0, "threads must be a multiple of 32");
    if (staged_bytes(pl, c->tunable[TN_THREADS], c->tunable[TN_ITEMS], c->tunable[TN_COPY_STAGES]) >
        pl->plan->device.shared_per_block)
        return plan_contradiction(pl, c, 0, "the tiles do not fit shared memory");
    struct prog_kernel *k = segreduce_kernel(pl, c, "");
    plan_value_arg(k, VAL_PER_TILE, TY_I32, per_tile);
    plan_value_arg(k, VAL_TILES, TY_I64, tiles);
    plan_launch(pl, c, 0, f_min(f_cdiv(tiles, warps), f_mul(plan_sms(p), c->tunable[TN_BLOCKS_PER_SM])));
    return true;
}
