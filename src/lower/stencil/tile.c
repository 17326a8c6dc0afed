/* SPDX-License-Identifier: Apache-2.0 */
/* tile.c - planning of tiles in shared memory: stencil.big_tile with several points per thread.
 *
 * It is for comparison and for machines whose caches do less: on recent ones the caches serve windows in registers at
 * least as well, so it is taken only when it is asked for.
 */
#include "stencil_plan.h"

enum { SHARED_MAX = 48 * 1024 - 2048 };

static int64_t tile_bytes(const struct problem *p, const int64_t *box)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->ninputs; i++) {
        const struct reach r = stencil_input_reach(p, i);
        int64_t n = stencil_staged(p, i) ? p->input[i].array.stride : 0;
        for (int d = 0; n > 0 && d < p->rank; d++)
            n *= box[d] + r.hi[d] - r.lo[d];
        bytes += n;
    }
    return bytes;
}

bool stencil_big_tile_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    const struct shape s = stencil_tuned(a, p, d, "stencil.big_tile", "tile", "");
    const int64_t x = (int64_t)s.block_x * s.points_x, y = (int64_t)s.block_y * s.points_y;
    const int64_t z = (int64_t)s.threads / (s.block_x * s.block_y) * s.points_z;
    const int64_t box[3][SPACE_MAX] = { { x }, { y, x }, { z, y, x } };
    if (!stencil_multi_write_fits(p, d, a, why))
        return false;
    *why = arena_printf(a, "a tile takes %lld bytes of shared memory; the limit is %d",
                        (long long)tile_bytes(p, box[p->rank - 1]), SHARED_MAX);
    return tile_bytes(p, box[p->rank - 1]) <= SHARED_MAX;
}

void stencil_big_tile_plan(struct planner *pl, const struct strategy *row)
{
    if (!plan_pinned(pl))
        return;
    struct plan_case *c = plan_case_add(pl, row, "tile", (struct formula){ 0 });
    const struct plan *plan = pl->plan;
    stencil_set_shape(c, stencil_tuned(&pl->s->arena, plan->problem, &plan->device, row->name, "tile", ""));
}

bool stencil_big_tile_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    int64_t box[SPACE_MAX];
    if (!stencil_multi_write_build(pl, c))
        return false;
    for (int d = 0; d < p->rank; d++)
        box[d] = (int64_t)stencil_threads(c, p->rank, d) * stencil_points(c, p->rank, d);
    const int64_t bytes = tile_bytes(p, box);
    return bytes <= SHARED_MAX ||
           plan_contradiction(pl, c, 0,
                              arena_printf(&pl->s->arena, "a tile takes %lld bytes of shared memory; the limit is %d",
                                           (long long)bytes, SHARED_MAX));
}
