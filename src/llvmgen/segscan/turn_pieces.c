/* SPDX-License-Identifier: Apache-2.0 */
/* turn_pieces.c - outputs of scans over two dimensions whose last dimension is the first one of these.
 *
 * A segment consists of pieces, runs of the second one: pieces that lie apart, or rows of a column.  Elements at the same
 * place of consecutive pieces are neighbours in such an output, and a tile has positions of several pieces.  So values
 * leave through shared memory:
 *
 *     keep      each thread puts its values;  barrier
 *     leave     a team of lanes takes a place of the pieces, each lane that of another piece, and stores neighbours; the
 *               team has as many lanes as the tile has pieces, rounded up to a power of two
 *
 * Tiles in lines leave an element free after every 32, for pieces whose length is a multiple of the banks.
 */
#include "llvmgen/scan/lines.h"

/* Positions of a tile, counted from its first one on, and where they belong. */
struct left {
    struct gen *g;
    kb_val from, count;  /* i32: the first position that is inside, and how many are */
    kb_val piece, place; /* i64, i32: of the first one in the order of memory: its piece, and its place in that */
    kb_val size, pieces; /* i32: places of a piece; at most so many elements at one of them */
    kb_val lanes, shift; /* i32: of a team, 2^shift */
    struct point here;   /* of the segment */
    const struct turn *turn;
    kb_val (*memory)(const struct left *t, kb_val position, int bytes); /* the place of a position in shared memory */
    kb_val column;                                                      /* i32: of several */
};

/* `base`, i64: the position of the tile's first one in a segment of so many; the axis is that of the pieces. */
static void left_set(struct left *t, kb_val base, kb_val length, int axis)
{
    struct gen *g = t->g;
    kb *k = g->k;
    const kb_val size = gen_extent(g, &g->p->space[axis].extent), zero = kb_imm(k, TY_I32, 0);
    kb_val begin = kb_add(k, base, kb_cast(k, t->from, TY_I64));
    if (g->p->reverse)
        begin = kb_sub(k, kb_sub(k, length, begin), kb_cast(k, t->count, TY_I64));
    t->piece = kb_name(kb_div(k, begin, size), "piece"); /* once per tile */
    t->place = kb_name(kb_cast(k, kb_sub(k, begin, kb_mul(k, t->piece, size)), TY_I32), "place");
    t->size = kb_cast(k, size, TY_I32); /* no longer than a tile, says the guard */
    t->pieces = kb_name(kb_div(k, kb_add(k, t->count, kb_sub(k, t->size, 1)), t->size), "pieces");
    const kb_val last = kb_cast(k, kb_sub(k, t->pieces, 1), TY_U32);
    const kb_val bits = kb_sub(k, kb_imm(k, TY_I32, KB_WARP), kb_cast(k, kb_clz(k, last), TY_I32));
    t->shift = kb_name(kb_max(k, kb_min(k, bits, 5), zero), "shift");
    t->lanes = kb_name(kb_shl(k, kb_imm(k, TY_I32, 1), t->shift), "lanes");
}

/* Elements at a place of consecutive pieces, which begins with number `r` of what is left. */
static void leave_place(const struct left *t, int output, kb_val r)
{
    struct gen *g = t->g;
    kb *k = g->k;
    const struct prog_array *a = &g->p->output[output].array;
    const int axis = g->p->space[2].reduced ? 2 : 1;
    struct point pt = t->here;
    LET(at, kb_add(k, t->place, r));
    const kb_val beyond = kb_ge(k, at, t->size);
    pt.index[axis] = kb_cast(k, kb_select(k, beyond, kb_sub(k, at, t->size), at), TY_I64);
    pt.index[0] = kb_add(k, t->piece, kb_cast(k, beyond, TY_I64));
    LET(element, output_element(&pt, output));
    kb_for(k, j, kb_and(k, kb_lane(k), kb_sub(k, t->lanes, 1)), t->pieces, t->lanes) {
        LET(number, kb_add(k, r, kb_mul(k, j, t->size)));
        kb_if(k, kb_lt(k, number, t->count)) {
            const kb_val to = kb_add(k, element, kb_cast(k, j, TY_I64));
            const kb_val scanned = g->p->reverse ? kb_sub(k, kb_sub(k, t->count, 1), number) : number;
            const kb_val position = kb_add(k, t->from, scanned);
            for (int f = 0; f < a->nfields; f++) {
                const kb_val from = t->memory(t, position, ty_bytes(a->field[f].type));
                gen_store_field(g, a, gen_output(g, output), to, f, kb_load(k, t->turn->output[output][f], from));
            }
        }
    }
}

/* All places, by so many warps, of which the thread's is number `warp`. */
static void leave_places(const struct left *t, kb_val warp, int warps)
{
    struct gen *g = t->g;
    kb *k = g->k;
    const kb_val teams = kb_shr(k, kb_imm(k, TY_I32, KB_WARP), t->shift);
    const kb_val own = kb_add(k, kb_mul(k, warp, teams), kb_shr(k, kb_lane(k), t->shift));
    kb_for(k, r, own, kb_min(k, t->size, t->count), kb_mul(k, teams, warps)) {
        for (int o = 0; o < g->p->noutputs; o++)
            if (scan_turns_pieces(g->p, o))
                leave_place(t, o, r);
    }
}

/* ---- tiles in lines ---------------------------------------------------------------------------------------------- */

void lines_leaving_new(struct gen *g, struct turn *t)
{
    const int elements = scan_tile_turned(g->c);
    for (int o = 0; o < g->p->noutputs; o++) {
        const struct prog_array *a = &g->p->output[o].array;
        for (int f = 0; scan_turns_pieces(g->p, o) && f < a->nfields; f++)
            t->output[o][f] = kb_shared_v(g->k, a->field[f].type, elements, a->name);
    }
}

static kb_val spread(kb *k, kb_val place) { return kb_add(k, place, kb_shr(k, place, 5)); }

static kb_val in_line(const struct left *t, kb_val position, int bytes)
{
    (void)bytes;
    return spread(t->g->k, position);
}

void lines_keep(void *of, int output, int i, const kb_val *x)
{
    const struct lines *l = of;
    kb *k = l->g->k;
    const kb_val at = spread(k, lines_place(l, i));
    for (int f = 0; f < l->g->p->output[output].array.nfields; f++)
        kb_store(k, l->leaving->output[output][f], at, x[f]);
}

void lines_leave(const struct lines *l)
{
    struct gen *g = l->g;
    kb *k = g->k;
    struct left t = { .g = g, .from = l->from, .count = kb_sub(k, l->to, l->from), .here = l->segment->here };
    t.turn = l->leaving;
    t.memory = in_line;
    left_set(&t, l->base, l->segment->length, 2);
    kb_barrier(k); /* all values are there */
    leave_places(&t, kb_warp(k), kb_threads(k) / KB_WARP);
}

/* ---- tiles of strips --------------------------------------------------------------------------------------------- */

static int columns_of(const struct gen *g) { return kb_threads(g->k) / gen_tunable(g, TN_ROWS); }

static kb_val in_column(const struct left *t, kb_val position, int bytes)
{
    const int rows = gen_tunable(t->g, TN_ROWS) * scan_degree(t->g->c);
    return kb_add(t->g->k, kb_mul(t->g->k, t->column, access_tile_pitch(rows, bytes)), position);
}

/* The threads of a warp have as many columns as there are, or all of them: what a thread knows of its own is asked of it. */
void turn_leave_pieces(const struct items *h, kb_val exists)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP, columns = columns_of(g), each = warps > columns ? warps / columns : 1;
    struct left t = { .g = g, .from = kb_imm(k, TY_I32, 0), .count = h->valid, .here = h->segment->here };
    t.turn = h->turn;
    t.memory = in_column;
    left_set(&t, h->base, h->segment->length, 1);
    const kb_val own = kb_select(k, exists, h->segment->here.index[2], kb_imm(k, TY_I64, -1));
    LET(warp, kb_warp(k));
    kb_for(k, column, kb_div(k, warp, each), kb_imm(k, TY_I32, columns), warps / each) {
        const kb_val index = kb_assume_uniform(kb_shfl_idx(k, own, column), KB_UNI_WARP); /* of one lane */
        kb_if(k, kb_ge(k, index, 0)) {
            t.here.index[2] = index;
            t.column = column;
            leave_places(&t, kb_rem(k, warp, each), each);
        }
    }
}
