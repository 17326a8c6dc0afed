/* SPDX-License-Identifier: Apache-2.0 */
/* turned.c - planning of scans whose outputs' last dimension is another axis than the space's.
 *
 * Strips of columns, which lie side by side in one of both orders, and a tile in shared memory for the other one:
 *
 *   the scanned axis is the output's last    lanes follow the space's last axis, and values leave through the tile
 *   a kept axis is                           lanes follow that axis, and what is loaded arrives through the tile
 *
 * The tile's room, which devices differ in, decides how many positions a thread combines: determinism: device forbids it.
 */
#include "segscan.h"

#include <string.h>

enum { LEAST = 8, WARP = 32 };

bool scan_turn_several(const struct problem *p)
{
    return p->rank == 3 && p->space[0].reduced && p->space[1].reduced && !p->space[2].reduced;
}

static int scanned_axis(const struct problem *p)
{
    int axis = -1, n = 0;
    for (int d = 0; d < p->rank; d++)
        if (p->space[d].reduced) {
            axis = d;
            n++;
        }
    if (scan_turn_several(p)) {
        axis = 0;
        n = 1;
    }
    return n == 1 && p->offsets < 0 && p->flags < 0 && !p->key && state_determinism(p) != DET_DEVICE ? axis : -1;
}

/* The axis of the output's last dimension, where each dimension has one; else -1. */
static int last_axis(const struct problem *p, int output)
{
    const struct output *o = &p->output[output];
    unsigned axes = 0;
    for (int d = 0; d < o->array.rank && o->role == OUT_ELEMENT; d++)
        axes |= 1u << o->axis[d];
    return axes + 1 == 1u << p->rank && access_output_whole(p, output) ? o->axis[p->rank - 1] : -1;
}

/* Lanes that follow a kept axis store all outputs along it. */
int scan_turn(const struct problem *p)
{
    const int scanned = scanned_axis(p), last = p->rank - 1;
    int turn = -1;
    bool all = true;
    for (int o = 0; o < p->noutputs && scanned >= 0; o++) {
        if (output_moment(&p->output[o]) != AT_POINT)
            continue;
        const int axis = last_axis(p, o);
        all &= axis >= 0 && axis != last && axis != scanned && (turn < 0 || axis == turn);
        turn = axis >= 0 && axis != last && (turn < 0 || axis == scanned) ? axis : turn;
    }
    return turn == scanned || (all && !scan_turn_several(p)) ? turn : -1;
}

bool scan_turns_inputs(const struct problem *p) { return scan_turn(p) >= 0 && !p->space[scan_turn(p)].reduced; }

bool scan_turns_output(const struct problem *p, int output)
{
    return scan_turn(p) >= 0 && !scan_turns_inputs(p) && last_axis(p, output) == scan_turn(p);
}

bool scan_turn_planes(const struct problem *p, const struct plan_case *c)
{
    return c->turns && scan_turns_inputs(p) && !scan_trailing(p);
}

int scan_turn_elements(const struct problem *p, const struct plan_case *c, int bytes)
{
    const int threads = c->tunable[TN_THREADS], rows = c->tunable[TN_ROWS], n = scan_degree(c);
    if (scan_turn_planes(p, c))
        return n * WARP * access_tile_pitch(threads / WARP, bytes);
    return threads / rows * access_tile_pitch(rows * n, bytes);
}

bool scan_turns_pieces(const struct problem *p, int output)
{
    return (segments_in_pieces(p) || scan_turn_several(p)) && p->rank == 3 && last_axis(p, output) == 0;
}

int scan_tile_turned(const struct plan_case *c)
{
    const int elements = (int)scan_tile_elements(c);
    return elements + elements / WARP;
}

bool segscan_pieces_fit(const struct planner *pl, const struct plan_case *c)
{
    enum { ROOM = 64 << 10 }; /* three blocks, beside what lanes exchange */
    const struct problem *p = pl->plan->problem;
    int64_t bytes = 0;
    for (int o = 0; o < p->noutputs; o++)
        for (int f = 0; scan_turns_pieces(p, o) && f < p->output[o].array.nfields; f++)
            bytes += (int64_t)scan_tile_turned(c) * ty_bytes(p->output[o].array.field[f].type);
    return bytes > 0 && bytes <= ROOM && !c->tunable[TN_LANES] && c->tunable[TN_CLUSTER] <= 1;
}

/* Of each case, one that turns in front of it, for pieces of which a tile has several. */
void segscan_turn_pieces(struct planner *pl, int from)
{
    enum { MOST_BY_INDEX = 8 };
    struct plan *plan = pl->plan;
    const int n = plan->ncases - from;
    struct plan_case *c = &plan->cases[from];
    bool any = false;
    for (int o = 0; o < plan->problem->noutputs; o++)
        any |= segments_in_pieces(plan->problem) && scan_turns_pieces(plan->problem, o);
    if (!any || plan->ncases + n > PLAN_CASES_MAX)
        return;
    for (int i = n - 1; i >= 0; i--) {
        const struct formula several = f_le(f_mul(segments_piece(plan->problem), LEAST), scan_tile_elements(&c[i]));
        c[n + i] = c[i];
        if (!c[i].aligned && !c[i].overridden[TN_VECTOR] && c[i].tunable[TN_VECTOR] > MOST_BY_INDEX)
            plan_set(&c[n + i], TN_VECTOR, MOST_BY_INDEX, "addresses of elements that lie apart take registers");
        c[i].turns = segscan_pieces_fit(pl, &c[i]);
        c[i].code.name = arena_printf(&pl->s->arena, "%s_turned", c[i].code.name);
        c[i].code.guard = f_and(several, c[i].code.guard);
    }
    if (c[0].turns && c[n - 1].turns)
        plan->ncases += n;
    else
        memmove(c, c + n, sizeof *c * (size_t)n);
}

static int64_t tile_bytes(const struct problem *p, const struct plan_case *c)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const int o = i - p->ninputs;
        const struct prog_array *a = o < 0 ? &p->input[i].array : &p->output[o].array;
        const bool through = o < 0 ? scan_turns_inputs(p) && access_input_direct(p, i) : scan_turns_output(p, o);
        for (int f = 0; through && f < a->nfields; f++)
            bytes += (int64_t)ty_bytes(a->field[f].type) * scan_turn_elements(p, c, ty_bytes(a->field[f].type));
    }
    return bytes;
}

/* Planes are not for threads that share columns, several axes for none that do not. */
static bool may_turn(const struct problem *p, const struct plan_case *c)
{
    const bool alone = c->tunable[TN_ROWS] == 1;
    return scan_turn(p) >= 0 && (!scan_turn_planes(p, c) || alone) && !(scan_turn_several(p) && alone);
}

/* Beside what blocks combine; all but the largest leave room for others. */
static int64_t room(const struct planner *pl, const struct plan_case *c)
{
    enum { EACH = 176, USUAL = 256, COMBINED = 3, RESERVED = 2 * 1024 };
    const int threads = c->tunable[TN_THREADS], words = state_words(pl->plan->problem, NULL);
    const int64_t most = (int64_t)EACH * (threads > USUAL ? threads : USUAL);
    const int64_t left = pl->plan->device.shared_per_block - RESERVED - (int64_t)COMBINED * threads * 4 * words;
    return left < most ? left : most;
}

bool segscan_turns_fit(const struct planner *pl, const struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    return !c->turns || (may_turn(p, c) && tile_bytes(p, c) <= room(pl, c));
}

/* Rows of the tile are whole lines where registers permit, so that warps move a column at a time. */
void segscan_turn(const struct planner *pl, struct plan_case *c)
{
    enum { WORDS = 96 };
    const int rows = c->tunable[TN_ROWS], line = rows > 1 && rows < WARP ? WARP / rows : 1;
    int *const items = &c->tunable[TN_ITEMS];
    const bool few = *items < line && line * scan_items_in_words(pl->plan->problem) <= WORDS;
    if ((few || *items > line) && !c->overridden[TN_ITEMS])
        *items = few ? line : (*items + line / 2) / line * line;
    c->turns = true;
    while (may_turn(pl->plan->problem, c) && !segscan_turns_fit(pl, c) && !c->overridden[TN_ITEMS] && *items > 1)
        *items -= *items > line ? line : 1;
    c->turns = segscan_turns_fit(pl, c);
}

/* Few lanes with something to store, and tiles too large for shared memory, are left to others. */
bool segscan_turned_plan(struct planner *pl)
{
    const struct problem *p = pl->plan->problem;
    const int from = pl->plan->ncases;
    int n = from;
    if (p->kind != KIND_SCAN || scan_turn(p) < 0)
        return false;
    const bool rows = scan_turns_inputs(p) && scan_trailing(p); /* lanes follow all kept axes */
    const struct formula along = rows ? scan_segments(p) : access_extent(p, &p->space[scan_turn(p)].extent);
    segscan_strips_turned(pl, strategy_by_name("segscan.strips"));
    segscan_column_turned(pl, strategy_by_name("segscan.column"));
    for (int i = n; i < pl->plan->ncases; i++) {
        struct plan_case *c = &pl->plan->cases[i];
        c->code.guard = f_and(f_le(LEAST, along), c->code.guard);
        if (c->turns)
            pl->plan->cases[n++] = *c;
    }
    memset(&pl->plan->cases[n], 0, sizeof *pl->plan->cases * (size_t)(pl->plan->ncases - n));
    pl->plan->ncases = n;
    return n > from;
}
