/* SPDX-License-Identifier: Apache-2.0 */
/* turned.c - planning of outputs whose last dimension is another axis than the space's.
 *
 * Threads side by side have points along the space's last axis, whose values lie far apart in such an output.  So a
 * block's box is about as long along the output's last dimension as along the space's, and the values of the box go
 * through a tile in shared memory, from which they leave in the output's order.
 */
#include "lower/lower_impl.h"
#include "stencil_plan.h"

enum { SHARED_MAX = 48 * 1024 - 2048, WORD = 4 };

/* The axis of the output's last dimension, where that is not the space's; else -1. */
static int turn_of(const struct problem *p, int output)
{
    const struct output *o = &p->output[output];
    unsigned axes = 0;
    if (p->rank < 2 || o->role != OUT_ELEMENT || o->array.rank != p->rank || o->axis[p->rank - 1] == p->rank - 1)
        return -1;
    for (int d = 0; d < p->rank; d++)
        axes |= 1u << o->axis[d];
    return axes + 1 == 1u << p->rank ? o->axis[p->rank - 1] : -1;
}

int stencil_turn(const struct problem *p)
{
    int turn = -1;
    for (int o = 0; o < p->noutputs && turn < 0; o++)
        turn = turn_of(p, o);
    return turn;
}

bool stencil_turned(const struct problem *p, const struct plan_case *c, int output)
{
    return c->turns && turn_of(p, output) >= 0 && turn_of(p, output) == stencil_turn(p);
}

int stencil_turned_pitch(const struct problem *p, const struct plan_case *c, int bytes)
{
    return access_tile_pitch(stencil_box(c, p->rank, stencil_turn(p)), bytes);
}

static int64_t tile_bytes(const struct problem *p, const struct plan_case *c)
{
    int64_t bytes = 0;
    for (int o = 0; o < p->noutputs; o++)
        for (int f = 0; stencil_turned(p, c, o) && f < p->output[o].array.nfields; f++) {
            const int size = ty_bytes(p->output[o].array.field[f].type);
            int64_t n = (int64_t)size * stencil_turned_pitch(p, c, size);
            for (int d = 0; d < p->rank; d++)
                n *= d == stencil_turn(p) ? 1 : stencil_box(c, p->rank, d);
            bytes += n;
        }
    return bytes;
}

/* Do threads take whole rows of the tile, and is it always as far from a thread's row to its next one?  Rows are
 * numbered along the output's last dimension but one, then along its first. */
static bool rows_apart(const struct problem *p, const struct plan_case *c)
{
    const int turn = stencil_turn(p), along = stencil_box(c, p->rank, turn), threads = c->tunable[TN_THREADS];
    if (along == 0 || threads % along)
        return false;
    for (int d = 0, rows = threads / along; d < p->rank && p->rank > 2; d++) {
        const int box = stencil_box(c, p->rank, d);
        if (box == 0 || (d != turn && rows % box && box % rows))
            return false;
    }
    return true;
}

bool stencil_turns_fit(const struct problem *p, const struct plan_case *c)
{
    return stencil_turn(p) >= 0 && c->strategy->plan == stencil_multi_write_plan && !stencil_skewed(c) &&
           !stencil_linear(p) && rows_apart(p, c) && tile_bytes(p, c) <= SHARED_MAX;
}

/* H100, microseconds, with 16, 34 and 60 values: 83, 11.8, 529; row by row 100, 12.7, 365. */
bool stencil_turns_together(const struct problem *p, const struct plan_case *c)
{
    enum { FEW = 40 };
    return c->turns && stencil_case_cells(p, c) <= FEW;
}

/* Which rows of tuning.def the problem looks at. */
static const char *kind(const struct problem *p)
{
    enum { MANY = 16 };
    static const struct shape one = { .points_x = 1, .points_y = 1, .points_z = 1 };
    const struct reach r = stencil_space_reach(p);
    const bool far = r.lo[0] < -1 || r.hi[0] > 1;
    if (stencil_window_cells(p, &one) > MANY && !(far && p->rank > 2))
        return "many";
    return far ? "far" : "";
}

/* Two columns per thread in three dimensions halve what it computes before its first point; where its values fit into
 * registers.  H200, us, with 4 planes: 27 points of f32 at 50 x 189 x 191 25 -> 19, seven at 159 x 317 x 511 144 -> 109;
 * but 26 with 68 values per column are best with one. */
bool stencil_turns_by_pairs(struct planner *pl, const struct shape *s, struct formula *guard)
{
    enum { FEW = 72, FULL = 8 };
    const struct problem *p = pl->plan->problem;
    const struct formula n = stencil_extent(p, p->rank - 1);
    const int box = s->block_x * s->points_x;
    *guard = f_le(f_mul(box, f_cdiv(n, box)), f_add(n, f_div(n, FULL)));
    return p->rank > 2 && stencil_window_cells(p, s) <= FEW && plan_setting(pl, TN_POINTS_X, 0) == 0 &&
           plan_setting(pl, TN_BLOCK_X, 0) == 0;
}

/* Rows of tuning.def are for boxes along the outermost axis, and for elements of four bytes: of smaller ones a row of
 * the tile, which is stored as a piece of a line, has more.  In three dimensions half as many more (H200, f16: 27
 * points with 4 planes 255 us, with 8 383). */
struct shape stencil_turned_shape(struct planner *pl, const struct strategy *row)
{
    enum { LEAST = 4, MOST = 16 };
    const struct problem *p = pl->plan->problem;
    struct shape s = stencil_tuned(&pl->s->arena, p, &pl->plan->device, row->name, "turned", kind(p));
    int *const along = p->rank > 2 ? &s.points_z : &s.points_y, bytes = 0;
    for (int o = p->noutputs - 1; o >= 0; o--)
        bytes = turn_of(p, o) >= 0 ? ty_bytes(p->output[o].array.field[0].type) : bytes;
    *along = *along * WORD / (p->rank > 2 && bytes < WORD ? 2 * bytes : bytes);
    *along = *along < LEAST ? LEAST : *along > MOST ? MOST : *along;
    if (stencil_turn(p) > 0) {
        s.points_y = s.points_z;
        s.points_z = 1;
        s.block_y = s.threads / (s.block_x * s.block_y);
    }
    return s;
}

/* Boxes that would be less than half full along either axis are left to others. */
void stencil_keep_turned(const struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int axes[] = { stencil_turn(p), p->rank - 1 };
    for (int i = 0; i < 2; i++) {
        const int least = stencil_box(c, p->rank, axes[i]) / 2;
        int64_t lo, hi;
        plan_extent_range(pl, &p->space[axes[i]].extent, &lo, &hi);
        if (lo <= least)
            c->code.guard = f_and(c->code.guard, f_lt(least, stencil_extent(p, axes[i])));
    }
}
