/* SPDX-License-Identifier: Apache-2.0 */
/* grid.c - how many blocks a whole-array reduction has. */
#include "reduce.h"

/* Blocks: one per tile (ordered: one per window of each warp, the same number of elements), but no more than the device
 * holds at once.  Of those numbers the smallest that needs no more rounds, so that all finish together; one where its
 * loop is shorter than a ticket takes.
 *
 * `blocks_per_sm` may ask for several waves of blocks, so that those go on that are early.  That pays where every block
 * still has several tiles, and where the last wave counts little: 683 blocks where 264 are held took a tenth longer.
 * Below, there is an eighth as many. */
struct formula reduce_grid(struct planner *pl, const struct plan_case *c)
{
    enum { GATHERED = 4, FIXED_GRID = 1024, WAVES_FROM = 4, FEWER = 8 };
    const struct problem *p = pl->plan->problem;
    const struct formula count = access_count(p);
    const struct formula tiles =
        f_cdiv(count, (int64_t)c->tunable[TN_THREADS] * c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR]);
    const int per_sm = c->tunable[TN_BLOCKS_PER_SM];
    const bool waves = per_sm * c->tunable[TN_THREADS] >= WAVES_FROM * pl->plan->device.threads_per_sm;
    const struct formula wanted = f_mul(f_sms(), !waves ? per_sm : per_sm > FEWER ? per_sm / FEWER : 1);
    /* What the blocks leave is gathered by the threads of one. */
    const struct formula gathered = f_const((int64_t)GATHERED * c->tunable[TN_THREADS]);
    struct formula most = state_determinism(p) == DET_DEVICE ? f_const(FIXED_GRID) : f_min(wanted, gathered);
    if (waves && state_determinism(p) != DET_DEVICE) {
        const struct formula all = f_min(f_mul(f_sms(), per_sm), gathered);
        most = f_max(most, f_mul(f_lt(all, tiles), all));
    }
    if (c->tunable[TN_MAX_GRID])
        most = f_min(most, c->tunable[TN_MAX_GRID]);
    /* Whole clusters, of which the last may have blocks without a tile. */
    const int cluster = c->tunable[TN_CLUSTER];
    const bool clusters = cluster > 1;
    if (clusters)
        most = f_mul(f_max(1, f_div(most, cluster)), cluster);
    const struct formula rounds = f_cdiv(tiles, most);
    const struct formula many = f_le(REDUCE_BLOCK_LIMIT + 1, count);
    const struct formula blocks = f_max(1, f_mul(many, f_cdiv(tiles, rounds)));
    return clusters ? f_mul(f_cdiv(blocks, cluster), cluster) : blocks;
}
