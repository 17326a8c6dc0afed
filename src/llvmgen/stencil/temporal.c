/* SPDX-License-Identifier: Apache-2.0 */
/* temporal.c - several time steps per launch, in registers.
 *
 *     a warp has 128 columns, 4 per lane, and in three dimensions some lines; it streams along the first axis
 *     queue[l]: the last 2R + 1 planes of step l
 *     for each plane r, from T R before the first plane that is written to T R after the last one:
 *         queue[0] takes plane r, which was loaded rounds earlier
 *         for l = 0 ... T-1: queue[l] holds planes r - l R - 2R ... r - l R, so step l + 1 of plane r - (l+1) R can be
 * computed: columns beside the lane's come by shuffles, lines beside the warp's from shared memory; the result goes to
 * queue[l+1], or to memory for l = T-1 in three dimensions: the outer lines of what will be the middle planes go to
 * shared memory; a barrier
 *
 * The loop takes 2R + 1 planes at a time, so that the place of a plane in its queue is known when the kernel is
 * generated.  What a warp or block computes goes wrong from its sides inward, R more with each step, so they overlap:
 * N.5-dimensional blocking as in AN5D (Matsumura et al., CGO 2020), with a warp's registers in place of shared memory
 * but for the lines between warps.  One dimension has no axis to stream along: line.c.
 */
#include "strip_gen.h"

#include "lower/stencil/line.h"

/* ---- the stream -------------------------------------------------------------------------------------------------- */

static kb_val row_of(const struct strip *s, const struct queue *q, kb_val z, int line, kb_val *outside)
{
    return kb_add(s->g->k, strip_plane(s, q->input, z, outside), s->line[line]);
}

/* Plane z of the inputs, as it lies in memory. */
static void fetch(const struct strip *s, int place, kb_val z)
{
    kb *k = s->g->k;
    for (int n = 0; n < s->nqueues; n++) {
        const struct queue *q = &s->queue[n];
        for (int j = 0; j < s->is.lines; j++) {
            kb_val v[V], outside;
            const kb_val row = row_of(s, q, z, j, &outside);
            if (s->joined && s->ends) {
                strip_joined_fetch(s, q, place, j, row);
                continue;
            }
            strip_load(s, q->input, row, v);
            for (int i = 0; i < V; i++)
                kb_set(k, q->ahead[place][j][i], v[i]);
        }
    }
}

/* Plane z, fetched earlier, becomes the newest one of step 0. */
static void take(const struct strip *s, int from, int place, kb_val z)
{
    kb *k = s->g->k;
    for (int n = 0; n < s->nqueues; n++) {
        const struct queue *q = &s->queue[n];
        const struct input *in = &s->g->p->input[q->input];
        for (int j = 0; j < s->is.lines; j++) {
            kb_val v[V], outside;
            const kb_val row = row_of(s, q, z, j, &outside);
            if (s->joined && s->ends)
                strip_joined_take(s, q, from, j, row);
            for (int i = 0; i < V; i++)
                v[i] = kb_get(k, q->ahead[from][j][i]);
            strip_shift(s, q->input, row, v);
            for (int i = 0; i < V; i++) {
                if (outside.ir)
                    v[i] = kb_select(k, outside, kb_const(k, v[i].ty, in->boundary[0].constant[0]), v[i]);
                kb_set(k, q->at[0][place][j][i], v[i]);
            }
        }
    }
}

/* The outer lines of the planes that are in the middle next round, for the warps beside. */
static void publish(const struct strip *s, int place)
{
    kb *k = s->g->k;
    LET(half, kb_sub(k, kb_imm(k, TY_I32, s->half_size), kb_get(k, s->half)));
    for (int n = 0; n < s->nqueues; n++) {
        const struct queue *q = &s->queue[n];
        const int bytes = V * ty_bytes(q->border.ty), middle = strip_place(s, place + 1, s->is.reach);
        for (int at = 0; q->lines && at < s->is.steps * 2 * s->is.reach; at++) {
            const int step = at / (2 * s->is.reach), side = at / s->is.reach % 2, d = at % s->is.reach + 1;
            kb_val v[V];
            for (int i = 0; i < V; i++)
                v[i] = kb_get(k, q->at[step][middle][side == 0 ? s->is.lines - d : d - 1][i]);
            const kb_val line = kb_mul(k, kb_add(k, s->warp, at * s->is.warps), STRIP_WIDTH);
            const kb_val to = kb_add(k, kb_add(k, line, kb_mul(k, s->lane, V)), half);
            kb_store_n(k, kb_advance(k, q->border, to), kb_imm(k, TY_I32, 0), V, bytes < 16 ? bytes : 16, v);
        }
    }
    kb_set(k, s->half, half);
    kb_barrier(k);
}

/* Plane r arrives at `place`; every step moves on by a plane. */
static void round_of(const struct strip *s, int place, kb_val r)
{
    kb *k = s->g->k;
    const int reach = s->is.reach, last = s->is.steps - 1;
    take(s, place % s->ahead, place, r);
    fetch(s, place % s->ahead, kb_add(k, r, s->ahead));
    for (int l = 0; l <= last; l++) {
        kb_val v[STRIP_FED_MAX][STRIP_LINES_MAX][V];
        const kb_val z = kb_sub(k, r, (l + 1) * reach);
        strip_compute(s, l, place, z, v);
        if (l == last) {
            strip_store_plane(s, z, v);
            continue;
        }
        for (int n = 0; n < s->nqueues; n++) {
            for (int j = 0; j < s->is.lines; j++)
                for (int i = 0; i < V; i++)
                    kb_set(k, s->queue[n].at[l + 1][place][j][i], v[n][j][i]);
            strip_planes_beyond(s, &s->queue[n], l + 1, place, z);
        }
    }
    if (s->is.height)
        publish(s, place);
}

/* Rounds from r = from on, a turn of the queues at a time. */
static void turns(struct strip *s, kb_val from, kb_val to, bool ends)
{
    kb *k = s->g->k;
    s->ends = ends;
    kb_for(k, r, from, to, s->is.places) {
        for (int u = 0; u < s->is.places; u++)
            round_of(s, u, kb_add(k, r, u));
    }
}

/* x, not below 0, up or down to whole turns. */
static kb_val whole_turns(const struct strip *s, kb_val x, int up)
{
    kb *k = s->g->k;
    const kb_val n = kb_div(k, kb_add(k, kb_max(k, x, 0), up ? s->is.places - 1 : 0), s->is.places);
    return kb_mul(k, n, s->is.places);
}

/* Rounds from `begin` to `away`, and from `near_last` to `end`, meet planes beyond the array. */
struct stretches {
    kb_val begin, away, near_last, end;
};

static struct stretches stretches_of(const struct strip *s)
{
    kb *k = s->g->k;
    const int lost = s->is.steps * s->is.reach;
    const kb_val begin = kb_sub(k, s->from, lost), end = kb_add(k, s->to, lost);
    const kb_val near_first = whole_turns(s, kb_sub(k, kb_imm(k, TY_I32, lost + s->is.reach + 1), begin), 1);
    const kb_val away = kb_add(k, begin, near_first);
    const kb_val room =
        whole_turns(s, kb_sub(k, kb_sub(k, s->planes, s->ahead + 1), away), 0); /* until the last plane is read */
    const kb_val turn = kb_add(k, away, kb_min(k, whole_turns(s, kb_sub(k, end, away), 1), room));
    LET(near_last, kb_select(k, kb_lt(k, away, end), turn, end));
    return (struct stretches){ begin, kb_min(k, away, end), near_last, kb_max(k, near_last, end) };
}

/* The planes that the next rounds take. */
static void fetch_ahead(struct strip *s, kb_val from, bool ends)
{
    s->ends = ends;
    for (int u = 0; u < s->ahead; u++)
        fetch(s, u, kb_add(s->g->k, from, u));
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* The first of `size` columns or lines that are computed for [first, last), and whether they are away from the ends of
 * the array. */
static kb_val shifted_inward(struct strip *s, bool wraps, kb_val first, int lost, int size, kb_val extent, kb_val *away)
{
    kb *k = s->g->k;
    LET(wanted, kb_sub(k, first, lost));
    const kb_val last = kb_sub(k, extent, size);
    *away = kb_and(k, kb_gt(k, wanted, 0), kb_lt(k, wanted, last));
    return wraps ? wanted : kb_max(k, kb_min(k, wanted, last), 0);
}

/* Strip `column` of a row; the strips of a row meet. */
static kb_val place_columns(struct strip *s, kb_val column)
{
    kb *k = s->g->k;
    kb_val away;
    const bool wraps = strip_wraps(s->g->p, s->g->p->rank - 1);
    s->first = kb_mul(k, column, s->is.useful);
    s->last = kb_min(k, kb_add(k, s->first, s->is.useful), s->columns);
    const kb_val begin = shifted_inward(s, wraps, s->first, s->is.halo, STRIP_WIDTH, s->columns, &away);
    s->x = kb_add(k, begin, kb_mul(k, s->lane, V));
    s->begin = begin;
    s->right = kb_eq(k, kb_add(k, begin, STRIP_WIDTH), s->columns);
    return away;
}

static kb_val place_lines(struct strip *s, kb_val part)
{
    kb *k = s->g->k;
    kb_val away;
    const int lost = s->is.steps * s->is.reach;
    s->top = kb_mul(k, part, s->is.useful_height);
    s->bottom = kb_min(k, kb_add(k, s->top, s->is.useful_height), s->lines);
    const kb_val begin = shifted_inward(s, strip_wraps(s->g->p, 1), s->top, lost, s->is.height, s->lines, &away);
    s->y = kb_add(k, begin, kb_mul(k, s->warp, s->is.lines));
    return away;
}

/* Where lines and columns are read; at the edge they may wrap around. */
static void place_reads(struct strip *s)
{
    kb *k = s->g->k;
    for (int i = 0; i < V; i++)
        s->column[i] = strip_wrapped(s, s->sides, s->g->p->rank - 1, kb_add(k, s->x, i), s->columns);
    for (int j = 0; j < s->is.lines; j++) {
        s->line[j] = kb_imm(k, TY_I64, 0);
        if (s->is.height) {
            const kb_val y = strip_wrapped(s, s->sides, 1, kb_add(k, s->y, j), s->lines);
            s->line[j] = kb_mul(k, kb_cast(k, y, TY_I64), kb_cast(k, s->columns, TY_I64));
        }
    }
}

static void at_sides(struct strip *s, bool sides, bool by_element)
{
    s->sides = sides;
    s->by_element = by_element;
    place_reads(s);
}

/* Rounds from `from` on between the ends, away from the sides.  What was fetched for code that reads element by element,
 * and what that takes next, lies another way in registers. */
static void between_inside(struct strip *s, const struct stretches *at, kb_val from, bool elements)
{
    kb *k = s->g->k;
    const kb_val some = kb_lt(k, from, at->near_last);
    at_sides(s, false, false);
    if (elements)
        kb_if(k, some) {
            fetch_ahead(s, from, false);
        }
    turns(s, from, at->near_last, false);
    at_sides(s, true, elements);
    if (elements)
        kb_if(k, kb_and(k, some, kb_lt(k, at->near_last, at->end))) {
            fetch_ahead(s, at->near_last, true);
        }
}

/* Write planes [from, to) of the columns and lines that are placed.  What lies beyond the sides is lost in the halo away
 * from them, so near the first and the last plane the code for the sides serves all.  Loops without a round stand for
 * conditions, around which the planes in registers would be copied. */
static void stream(struct strip *s, kb_val away)
{
    kb *k = s->g->k;
    const struct stretches at = stretches_of(s);
    const bool elements = strip_sides_by_element(s);
    const kb_var from = kb_var_new(k, at.begin, "from"), to = kb_var_new(k, at.away, "to");
    at_sides(s, true, elements);
    if (s->joined)
        strip_joined_await(s, at.begin);
    /* else rounds between the ends come first */
    const kb_val at_end = kb_or(k, kb_lt(k, at.begin, at.away), kb_eq(k, at.away, at.near_last));
    kb_if(k, elements ? kb_or(k, kb_not(k, away), at_end) : kb_true(k)) {
        fetch_ahead(s, at.begin, true);
    }
    kb_for(k, stretch, kb_imm(k, TY_I32, 0), 2, 1) {
        const kb_val until = kb_assume_uniform(kb_get(k, to), at.end.uni); /* it is one of those of `at` */
        turns(s, kb_assume_uniform(kb_get(k, from), at.begin.uni), until, true);
        turns(s, kb_select(k, away, at.near_last, until), at.near_last, false);
        between_inside(s, &at, kb_select(k, away, until, at.near_last), elements);
        kb_set(k, from, at.near_last);
        kb_set(k, to, at.end);
    }
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static void make_queue(struct strip *s, int n)
{
    struct gen *g = s->g;
    kb *k = g->k;
    struct queue *q = &s->queue[n];
    q->input = g->p->feedback[n].input;
    q->output = g->p->feedback[n].output;
    q->lines = strip_sees_lines(g->p, q->input);
    const enum ty type = g->p->input[q->input].array.field[0].type;
    const kb_val zero = kb_imm(k, type, 0);
    for (int at = 0; at < s->is.places * s->is.lines * V; at++) {
        const int u = at / (s->is.lines * V), j = at / V % s->is.lines, i = at % V;
        if (u < s->ahead)
            q->ahead[u][j][i] = kb_var_new(k, zero, "ahead");
        for (int l = 0; l < s->is.steps; l++)
            q->at[l][u][j][i] = kb_var_new(k, zero, "queue");
        if (s->joined && u < s->ahead && i == 0)
            q->came[u][j] = kb_var_new(k, kb_true(k), "came");
    }
    if (q->lines)
        q->border = kb_shared_v(k, type, 2 * s->half_size, "border");
}

static void begin_strip(struct strip *s, struct gen *g, int steps, struct joined *j)
{
    kb *k = g->k;
    *s = (struct strip){ .g = g,
                         .is = strip_shape(g->c, g->p, steps),
                         .aligned = g->c->aligned,
                         .nqueues = g->p->nfeedback,
                         .joined = g->p->joins ? j : NULL,
                         .lane = kb_lane(k),
                         .warp = kb_warp(k) };
    s->ahead = s->is.height ? 1 : s->is.places;
    s->pitch = kb_imm(k, TY_I64, 1);
    for (int d = 1; d < g->p->rank; d++)
        s->pitch = kb_mul(k, s->pitch, gen_extent(g, &g->p->space[d].extent));
    s->planes = kb_cast(k, gen_extent(g, &g->p->space[0].extent), TY_I32);
    s->lines = kb_cast(k, gen_extent(g, &g->p->space[g->p->rank - 2].extent), TY_I32);
    s->columns = kb_cast(k, gen_extent(g, &g->p->space[g->p->rank - 1].extent), TY_I32);
    s->half_size = steps * 2 * s->is.reach * s->is.warps * STRIP_WIDTH;
    s->half = kb_var_new(k, kb_imm(k, TY_I32, 0), "half");
    for (int n = 0; n < s->nqueues; n++)
        make_queue(s, n);
    for (int at = 0; !s->aligned && at < g->p->ninputs * V; at++)
        s->moving[at / V][at % V] = kb_var_new(k, kb_imm(k, g->p->input[at / V].array.field[0].type, 0), "moving");
    if (s->is.height) /* the first round reads before any plane has been there */
        publish(s, 0);
}

/* Two dimensions: a warp has a strip and a part of its rows. */
static void rows_of_warp(struct strip *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    LET(number, kb_add(k, kb_mul(k, kb_block(k), kb_threads(k) / KB_WARP), s->warp));
    const kb_val strips = gen_value(g, VAL_STRIPS), rows = gen_value(g, VAL_ROWS);
    const kb_val away = place_columns(s, kb_rem(k, number, strips));
    s->from = kb_mul(k, kb_div(k, number, strips), rows);
    s->to = kb_min(k, kb_add(k, s->from, rows), s->planes);
    kb_if(k, kb_lt(k, s->from, s->planes)) {
        stream(s, away);
    }
}

void strip_stream_rows(struct strip *s, kb_val strip)
{
    kb *k = s->g->k;
    const kb_val away = place_columns(s, strip);
    kb_if(k, kb_lt(k, s->from, s->planes)) {
        stream(s, away);
    }
}

/* Three dimensions: the planes of all tiles one after another are dealt out evenly; a block goes through its share tile
 * by tile. */
void strip_planes_of_block(struct strip *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const kb_val strips = gen_value(g, VAL_STRIPS), rows = gen_value(g, VAL_ROWS),
                 planes = kb_cast(k, s->planes, TY_I64);
    LET(all, kb_mul(k, gen_value(g, VAL_TILES), planes));
    LET(begin, kb_mul(k, kb_cast(k, s->block, TY_I64), rows));
    LET(end, kb_min(k, kb_add(k, begin, rows), all));
    LET(tiles, kb_cast(k, kb_div(k, kb_add(k, end, kb_sub(k, planes, 1)), planes), TY_I32));
    kb_for(k, tile, kb_cast(k, kb_div(k, begin, planes), TY_I32), tiles, 1) {
        LET(first, kb_mul(k, kb_cast(k, tile, TY_I64), planes));
        s->from = kb_cast(k, kb_max(k, kb_sub(k, begin, first), 0), TY_I32);
        s->to = kb_cast(k, kb_min(k, kb_sub(k, end, first), planes), TY_I32);
        const kb_val sides = place_columns(s, kb_rem(k, tile, strips)), ends = place_lines(s, kb_div(k, tile, strips));
        stream(s, kb_and(k, sides, ends));
    }
}

/* The kernels of several steps, and the roles of the windows after them. */
static int several_of(const struct gen *g, enum stencil_role role[STENCIL_ROLES])
{
    bool rest[LINE_KERNELS];
    int several = 0;
    if (g->p->rank == 1) {
        line_roles(g->c, g->p, role);
        return line_kernels(g->c, g->p, rest);
    }
    while (strip_steps(g->c, several))
        several++;
    stencil_roles(g->p, role);
    return several;
}

void emit_stencil_temporal(struct gen *g)
{
    enum stencil_role role[STENCIL_ROLES];
    const int kernel = (int)(g->kernel - g->c->code.kernel), several = several_of(g, role);
    struct strip s;
    if (kernel >= several) {
        emit_windows(g, role[kernel - several], false);
        return;
    }
    gen_wait_for_predecessor(g);
    if (g->p->rank == 1) {
        emit_line(g);
        return;
    }
    struct joined j = joined_of(g, strip_steps(g->c, kernel));
    begin_strip(&s, g, strip_steps(g->c, kernel), &j);
    s.block = kb_block(g->k);
    if (g->p->joins)
        strip_joined(&s, &j);
    else
        (s.is.height ? strip_planes_of_block : rows_of_warp)(&s);
}
