/* SPDX-License-Identifier: Apache-2.0 */
/* turn.c - strips whose arrays lie in two orders: a tile in shared memory between them.
 *
 * A thread has consecutive positions of one column, and lanes have neighbouring columns.  The tile has a row for each
 * column, with all positions of the threads that share it:
 *
 *     inputs     neighbouring threads load neighbouring positions of a column;  barrier;  each takes its own
 *     outputs    each thread puts its own;  barrier;  neighbouring threads store neighbouring positions of a column
 *
 *     a block    has a strip of columns; between two uses of the tile lies the barrier at which it combines them
 *     a warp     has a column per lane, and a tile of its own
 *     planes     lanes have columns along one axis, warps along the space's last one, along which inputs are loaded, position
 *                by position: of another column than the thread's own
 */
#include "llvmgen/scan/scan_gen.h"

static bool planes(const struct gen *g) { return scan_turn_planes(g->p, g->c); }
static bool alone(const struct gen *g) { return gen_tunable(g, TN_ROWS) == 1 && !planes(g); }

/* Threads that share a tile, and their numbers. */
static int sharing(const struct gen *g) { return alone(g) ? KB_WARP : kb_threads(g->k); }
static kb_val number_of(const struct gen *g) { return alone(g) ? kb_lane(g->k) : kb_tid(g->k); }

static void meet(const struct gen *g)
{
    if (alone(g))
        kb_warp_sync(g->k);
    else
        kb_barrier(g->k);
}

/* Nothing else keeps threads with columns of their own from what others still read. */
static void wait_for_readers(const struct gen *g)
{
    if (gen_tunable(g, TN_ROWS) == 1)
        meet(g);
}

static kb_ptr tile_of(struct gen *g, const struct prog_array *a, int f)
{
    kb *k = g->k;
    const enum ty type = a->field[f].type;
    const int elements = scan_turn_elements(g->p, g->c, ty_bytes(type));
    const kb_ptr all = kb_shared_v(k, type, elements, a->name);
    return alone(g) ? kb_advance(k, all, kb_mul(k, kb_warp(k), elements / kb_threads(k) * KB_WARP)) : all;
}

void turn_new(struct gen *g, struct turn *t)
{
    const struct problem *p = g->p;
    for (int i = 0, slot = 0; i < p->ninputs && scan_turns_inputs(p); i++)
        for (int f = 0; access_input_direct(p, i) && f < p->input[i].array.nfields; f++)
            t->input[slot++] = tile_of(g, &p->input[i].array, f);
    for (int o = 0; o < p->noutputs; o++)
        for (int f = 0; scan_turns_output(p, o) && f < p->output[o].array.nfields; f++)
            t->output[o][f] = tile_of(g, &p->output[o].array, f);
}

kb_val turn_segment(struct gen *g, kb_val number)
{
    kb *k = g->k;
    const struct problem *p = g->p;
    const int turn = scan_turn(p);
    int after = turn + 1;
    while (after < p->rank && p->space[after].reduced)
        after++;
    if (!scan_turns_inputs(p) || after == p->rank) /* segments are numbered along this axis */
        return number;
    const kb_val extent = gen_extent(g, &p->space[turn].extent);
    LET(other, kb_div(k, number, extent));
    const kb_val along = kb_sub(k, number, kb_mul(k, other, extent));
    return kb_add(k, kb_mul(k, along, gen_extent(g, &p->space[after].extent)), other);
}

/* ---- places of the tile ------------------------------------------------------------------------------------------ */

/* Columns that share a tile, and positions in a row of it. */
static int columns_of(const struct gen *g) { return sharing(g) / gen_tunable(g, TN_ROWS); }
static int rows_of(const struct items *h) { return gen_tunable(h->g, TN_ROWS) * h->n; }

/* A distance known when generating beyond one that is not, so that addresses fold. */
static kb_ptr beyond(const struct gen *g, kb_ptr p, kb_val far, int more)
{
    return kb_advance(g->k, kb_advance(g->k, p, far), kb_imm(g->k, TY_I32, more));
}

/* The thread's own position i in a tile. */
static kb_ptr own_place(const struct items *h, kb_ptr tile, int i)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const int bytes = ty_bytes(tile.ty);
    if (planes(g)) {
        const kb_val row = kb_mul(k, kb_lane(k), access_tile_pitch(kb_threads(k) / KB_WARP, bytes));
        return beyond(g, tile, kb_add(k, row, kb_warp(k)), i * scan_turn_elements(g->p, g->c, bytes) / h->n);
    }
    const kb_val row = kb_mul(k, kb_rem(k, number_of(g), columns_of(g)), access_tile_pitch(rows_of(h), bytes));
    return beyond(g, tile, kb_add(k, row, h->own), i);
}

/* What the thread moves between the tile and memory as its number j: a column, and a position from h->base on. */
struct moved {
    kb_val column, position; /* i32, plus … */
    int columns, positions;  /* … */
};

/* Lines of 32 positions of a column, where rows consist of such; warps take them in turns.  0: they do not. */
static int lines_of(const struct items *h) { return rows_of(h) % KB_WARP ? 0 : rows_of(h) / KB_WARP; }

/* How many of them, one after the other, are of one column. */
static int of_column(const struct items *h)
{
    return lines_of(h) && columns_of(h->g) % (sharing(h->g) / KB_WARP) == 0 ? lines_of(h) : 1;
}

static struct moved moved_at(const struct items *h, int j)
{
    kb *k = h->g->k;
    const int rows = rows_of(h), threads = sharing(h->g), lines = lines_of(h), each = of_column(h);
    const kb_val number = number_of(h->g), warp = kb_div(k, number, KB_WARP);
    if (lines == each)
        return (struct moved){ warp, kb_lane(k), j / each * (threads / KB_WARP), j % each * KB_WARP };
    if (lines) {
        LET(line, kb_add(k, warp, j * (threads / KB_WARP)));
        return (struct moved){ kb_div(k, line, lines),
                               kb_add(k, kb_mul(k, kb_rem(k, line, lines), KB_WARP), kb_lane(k)), 0, 0 };
    }
    if (threads % rows == 0)
        return (struct moved){ kb_div(k, number, rows), kb_rem(k, number, rows), j * (threads / rows), 0 };
    LET(at, kb_add(k, number, j * threads));
    return (struct moved){ kb_div(k, at, rows), kb_rem(k, at, rows), 0, 0 };
}

static kb_ptr moved_place(const struct items *h, kb_ptr tile, int j)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP, bytes = ty_bytes(tile.ty);
    if (planes(g)) {
        const kb_val row = kb_mul(k, kb_div(k, kb_tid(k), warps), access_tile_pitch(warps, bytes));
        return beyond(g, tile, kb_add(k, row, kb_rem(k, kb_tid(k), warps)),
                      j * scan_turn_elements(g->p, g->c, bytes) / h->n);
    }
    const struct moved m = moved_at(h, j);
    const int pitch = access_tile_pitch(rows_of(h), bytes);
    return beyond(g, tile, kb_add(k, kb_mul(k, m.column, pitch), m.position), m.columns * pitch + m.positions);
}

/* What the thread has of its own column, of the column of what it moves. */
static kb_val of_moved(const struct items *h, kb_val own, int j, kb_val before)
{
    kb *k = h->g->k;
    const struct moved m = moved_at(h, j);
    return j % of_column(h) ? before : kb_shfl_idx(k, own, kb_add(k, m.column, m.columns));
}

/* Along the scan, from the tile's first position on. */
static kb_val distance(const struct items *h, kb_val position)
{
    return h->g->p->reverse ? kb_neg(h->g->k, position) : position;
}

/* The index along the scanned axis where the tile begins. */
static kb_val index_of_base(const struct items *h)
{
    kb *k = h->g->k;
    return h->g->p->reverse ? kb_sub(k, kb_sub(k, h->segment->length, 1), h->base) : h->base;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

/* Position by position, of the thread's other column. */
static void load_plane(struct items *h, kb_val start, kb_val stride, int j)
{
    kb *k = h->g->k;
    kb_val at = kb_imm(k, TY_I32, j);
    if (!h->whole)
        at = kb_min(k, at, kb_sub(k, h->valid, 1));
    const kb_val far = kb_mul(k, kb_cast(k, distance(h, at), TY_I64), stride);
    direct_load(h->g, kb_add(k, start, far), kb_imm(k, TY_I32, 0), 0, 1, false, &h->direct[j]);
}

static void load_row(struct items *h, kb_val start, int j)
{
    kb *k = h->g->k;
    const struct moved m = moved_at(h, j);
    kb_val at = m.position;
    if (!h->whole)
        at = kb_min(k, kb_add(k, at, m.positions), kb_sub(k, h->valid, 1));
    const int more = !h->whole ? 0 : h->g->p->reverse ? -m.positions : m.positions;
    direct_load(h->g, start, distance(h, at), more, 1, false, &h->direct[j]);
}

static void load(struct items *h, struct direct_vars *ahead)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const kb_val stride = planes(g) ? space_stride(g) : kb_imm(k, TY_I64, 1), base = index_of_base(h);
    const kb_val first = planes(g) ? h->turn->first : h->segment->first;
    LET(own, kb_add(k, first, kb_mul(k, base, stride)));
    kb_val start = own;
    for (int j = 0; j < h->n; j++) {
        if (!planes(g))
            start = of_moved(h, own, j, start);
        if (planes(g))
            load_plane(h, own, stride, j);
        else
            load_row(h, start, j);
    }
    direct_keep(g, ahead, h->direct, h->n);
}

void turn_fetch(struct items *h, struct direct_vars *ahead)
{
    kb_if(h->g->k, h->full) {
        h->whole = true;
        load(h, ahead);
        h->whole = false;
    }
    kb_else { load(h, ahead); }
}

void turn_take(struct items *h, const struct direct_vars *ahead)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const int fields = access_direct_fields(g->p);
    const kb_val zero = kb_imm(k, TY_I32, 0);
    direct_take(g, ahead, h->direct, h->n);
    wait_for_readers(g);
    for (int j = 0; j < h->n; j++)
        for (int f = 0; f < fields; f++)
            kb_store(k, moved_place(h, h->turn->input[f], j), zero, h->direct[j].v[f]);
    meet(g);
    for (int i = 0; i < h->n; i++)
        for (int f = 0; f < fields; f++)
            h->direct[i].v[f] = kb_load(k, own_place(h, h->turn->input[f], i), zero);
}

/* ---- outputs ----------------------------------------------------------------------------------------------------- */

void turn_keep(void *of, int output, int i, const kb_val *x)
{
    const struct items *h = of;
    kb *k = h->g->k;
    for (int f = 0; f < h->g->p->output[output].array.nfields; f++)
        kb_store(k, own_place(h, h->turn->output[output][f], i), kb_imm(k, TY_I32, 0), x[f]);
}

/* The output's element at the tile's first position in the thread's column, or -1: there is no such column. */
static kb_val first_element(const struct items *h, int output, kb_val exists)
{
    kb *k = h->g->k;
    struct point pt = h->segment->here;
    pt.index[scan_turn(h->g->p)] = index_of_base(h);
    return kb_select(k, exists, output_element(&pt, output), kb_imm(k, TY_I64, -1));
}

static void leave(const struct items *h, int output, kb_val exists)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const struct prog_array *a = &g->p->output[output].array;
    const int unit = *a->field[0].name ? a->stride : 1;
    LET(own, first_element(h, output, exists));
    kb_val start = own;
    for (int j = 0; j < h->n; j++) {
        const struct moved m = moved_at(h, j);
        const kb_val far = kb_mul(k, kb_cast(k, distance(h, m.position), TY_I64), unit);
        start = of_moved(h, own, j, start);
        const kb_val inside = h->whole ? kb_true(k) : kb_lt(k, m.position, kb_sub(k, h->valid, m.positions));
        kb_if(k, kb_and(k, kb_ge(k, start, 0), inside)) {
            const kb_ptr to = kb_advance(k, kb_advance(k, gen_output(g, output), kb_mul(k, start, unit)), far);
            const kb_val more = kb_imm(k, TY_I64, g->p->reverse ? -m.positions : m.positions);
            for (int f = 0; f < a->nfields; f++) {
                const kb_val x = kb_load(k, moved_place(h, h->turn->output[output][f], j), kb_imm(k, TY_I32, 0));
                gen_store_field(g, a, to, more, f, x);
            }
        }
    }
}

static void leave_all(const struct items *h, kb_val exists)
{
    for (int o = 0; o < h->g->p->noutputs; o++)
        if (scan_turns_output(h->g->p, o))
            leave(h, o, exists);
}

void turn_leave(struct items *h, kb_val exists)
{
    if (scan_turns_inputs(h->g->p))
        return;
    meet(h->g);
    if (scan_turn_several(h->g->p)) {
        turn_leave_pieces(h, exists);
        return;
    }
    kb_if(h->g->k, h->full) {
        h->whole = true;
        leave_all(h, exists);
        h->whole = false;
    }
    kb_else { leave_all(h, exists); }
    wait_for_readers(h->g);
}
