/* SPDX-License-Identifier: Apache-2.0 */
/* turn_pieces.c - outputs of segments of pieces whose last dimension is the one along which pieces follow one another.
 *
 * Elements at the same place of consecutive pieces are neighbours in such an output, and a tile has positions of several
 * pieces.  So values leave through shared memory, where they lie in the order of memory: backwards the tile's last
 * position comes first.
 *
 *     keep      each thread puts its values;  barrier
 *     leave     a team of lanes takes a place of the pieces, each lane that of another piece, and stores neighbours; the
 *               team has as many lanes as the tile has pieces, rounded up to a power of two
 *
 * An element after every 32 is left free, for pieces whose length is a multiple of the banks.
 */
#include "llvmgen/scan/lines.h"

static kb_val tile_of(const struct lines *l) { return kb_imm(l->g->k, TY_I32, kb_threads(l->g->k) * l->n * l->v); }

void lines_leaving_new(struct gen *g, struct turn *t)
{
    const int elements = scan_tile_turned(g->c);
    for (int o = 0; o < g->p->noutputs; o++) {
        const struct prog_array *a = &g->p->output[o].array;
        for (int f = 0; scan_turns_pieces(g->p, o) && f < a->nfields; f++)
            t->output[o][f] = kb_shared_v(g->k, a->field[f].type, elements, a->name);
    }
}

static kb_val slot(kb *k, kb_val number) { return kb_add(k, number, kb_shr(k, number, 5)); }

void lines_keep(void *of, int output, int i, const kb_val *x)
{
    const struct lines *l = of;
    kb *k = l->g->k;
    const kb_val place = lines_place(l, i);
    const kb_val at = slot(k, l->g->p->reverse ? kb_sub(k, kb_sub(k, tile_of(l), 1), place) : place);
    for (int f = 0; f < l->g->p->output[output].array.nfields; f++)
        kb_store(k, l->leaving->output[output][f], at, x[f]);
}

/* What the tile has, in the order of memory. */
struct left {
    kb_val first, count; /* i32: the number of the first one in shared memory, and how many there are */
    kb_val piece, place; /* i64, i32: the piece of the first one, and its place in it */
    kb_val size, pieces; /* i32: places of a piece; at most so many elements at one of them */
    kb_val lanes, shift; /* i32: of a team, 2^shift */
};

static struct left left_of(const struct lines *l)
{
    struct gen *g = l->g;
    kb *k = g->k;
    const kb_val size = gen_extent(g, &g->p->space[2].extent), zero = kb_imm(k, TY_I32, 0);
    const bool reverse = g->p->reverse;
    struct left t = { .first = reverse ? kb_sub(k, tile_of(l), l->to) : l->from, .count = kb_sub(k, l->to, l->from) };
    const kb_val behind = kb_add(k, l->base, kb_cast(k, reverse ? l->to : l->from, TY_I64));
    LET(begin, reverse ? kb_sub(k, l->segment->length, behind) : behind);
    t.piece = kb_name(kb_div(k, begin, size), "piece"); /* once per tile */
    t.place = kb_name(kb_cast(k, kb_sub(k, begin, kb_mul(k, t.piece, size)), TY_I32), "place");
    t.size = kb_cast(k, size, TY_I32); /* no longer than a tile, says the guard */
    t.pieces = kb_name(kb_div(k, kb_add(k, t.count, kb_sub(k, t.size, 1)), t.size), "pieces");
    const kb_val last = kb_cast(k, kb_sub(k, t.pieces, 1), TY_U32);
    const kb_val bits = kb_sub(k, kb_imm(k, TY_I32, KB_WARP), kb_cast(k, kb_clz(k, last), TY_I32));
    t.shift = kb_name(kb_max(k, kb_min(k, bits, 5), zero), "shift");
    t.lanes = kb_name(kb_shl(k, kb_imm(k, TY_I32, 1), t.shift), "lanes");
    return t;
}

/* Elements at a place of consecutive pieces, which begins with number `r` of what is left. */
static void leave_place(const struct lines *l, const struct left *t, int output, kb_val r)
{
    struct gen *g = l->g;
    kb *k = g->k;
    const struct prog_array *a = &g->p->output[output].array;
    struct point pt = l->segment->here;
    LET(at, kb_add(k, t->place, r));
    const kb_val beyond = kb_ge(k, at, t->size);
    pt.index[2] = kb_cast(k, kb_select(k, beyond, kb_sub(k, at, t->size), at), TY_I64);
    pt.index[0] = kb_add(k, t->piece, kb_cast(k, beyond, TY_I64));
    LET(element, output_element(&pt, output));
    kb_for(k, j, kb_and(k, kb_lane(k), kb_sub(k, t->lanes, 1)), t->pieces, t->lanes) {
        LET(number, kb_add(k, r, kb_mul(k, j, t->size)));
        kb_if(k, kb_lt(k, number, t->count)) {
            const kb_val from = slot(k, kb_add(k, t->first, number)), to = kb_add(k, element, kb_cast(k, j, TY_I64));
            for (int f = 0; f < a->nfields; f++)
                gen_store_field(g, a, gen_output(g, output), to, f, kb_load(k, l->leaving->output[output][f], from));
        }
    }
}

void lines_leave(const struct lines *l)
{
    struct gen *g = l->g;
    kb *k = g->k;
    const struct left t = left_of(l);
    kb_barrier(k); /* all values are there */
    kb_for(k, r, kb_shr(k, kb_tid(k), t.shift), kb_min(k, t.size, t.count),
           kb_shr(k, kb_imm(k, TY_I32, kb_threads(k)), t.shift)) {
        for (int o = 0; o < g->p->noutputs; o++)
            if (scan_turns_pieces(g->p, o))
                leave_place(l, &t, o, r);
    }
}
