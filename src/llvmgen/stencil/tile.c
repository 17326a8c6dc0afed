/* SPDX-License-Identifier: Apache-2.0 */
/* tile.c - boxes of inputs in shared memory.
 *
 *     box of the block, and the halo that its points read: elements in row-major order go round-robin to the threads
 *     coordinates from the element's number by constant divisions; beyond the edge through the boundary modes
 *     barrier
 *
 * Blocks that lie inside with their halo load without boundaries.
 */
#include "stencil_gen.h"

/* Element number `i` of the tile, i32, at its place in the input. */
static void load_element(struct gen *g, int input, const kb_val *box, const struct tile *t, kb_val i, bool inside)
{
    kb *k = g->k;
    const struct input *in = &g->p->input[input];
    const struct reach r = stencil_input_reach(g->p, input);
    kb_val at[SPACE_MAX], beyond[SPACE_MAX], element = kb_imm(k, TY_I64, 0), rest = i;
    for (int d = g->p->rank - 1; d >= 0; d--) {
        at[d] = d > 0 ? kb_rem(k, rest, t->extent[d]) : rest;
        rest = d > 0 ? kb_div(k, rest, t->extent[d]) : rest;
    }
    for (int d = 0; d < g->p->rank; d++) {
        const kb_val extent = gen_extent(g, &g->p->space[d].extent);
        kb_val c = kb_add(k, kb_add(k, box[d], kb_cast(k, at[d], TY_I64)), r.lo[d]);
        beyond[d] = kb_true(k);
        if (!inside)
            c = boundary_index(k, in->boundary[d].mode, c, extent, &beyond[d]);
        element = d == 0 ? c : kb_add(k, kb_mul(k, element, extent), c);
    }
    for (int f = 0; f < in->array.nfields; f++) {
        kb_val x = gen_load_field(g, &in->array, gen_input(g, input), element, f);
        for (int d = 0; !inside && d < g->p->rank; d++)
            if (in->boundary[d].mode == BOUND_CONSTANT)
                x = kb_select(k, beyond[d], x, kb_const(k, x.ty, in->boundary[d].constant[f]));
        kb_store(k, t->field[f], i, x);
    }
}

static int elements(const struct gen *g, const struct tile *t)
{
    int n = 1;
    for (int d = 0; d < g->p->rank; d++)
        n *= t->extent[d];
    return n;
}

static void load_all(struct gen *g, const kb_val *box, const struct tile *tile, bool inside)
{
    kb *k = g->k;
    for (int i = 0; i < g->p->ninputs; i++) {
        if (!tile[i].staged)
            continue;
        kb_for(k, e, kb_tid(k), elements(g, &tile[i]), kb_threads(k)) {
            load_element(g, i, box, &tile[i], e, inside);
        }
    }
}

static void declare_tiles(struct gen *g, struct tile *tile)
{
    for (int i = 0; i < g->p->ninputs; i++) {
        const struct prog_array *a = &g->p->input[i].array;
        const struct reach r = stencil_input_reach(g->p, i);
        tile[i] = (struct tile){ .staged = stencil_staged(g->p, i) };
        for (int d = 0; d < g->p->rank; d++)
            tile[i].extent[d] =
                (int)(stencil_threads(g->c, g->p->rank, d) * stencil_points(g->c, g->p->rank, d) + r.hi[d] - r.lo[d]);
        for (int f = 0; tile[i].staged && f < a->nfields; f++)
            tile[i].field[f] = kb_shared_v(g->k, a->field[f].type, elements(g, &tile[i]), a->name);
    }
}

void tiles_load(struct gen *g, const kb_val *box, struct tile *tile)
{
    kb *k = g->k;
    const struct reach r = stencil_space_reach(g->p);
    kb_val inside = kb_true(k), any = inside;
    declare_tiles(g, tile);
    for (int d = 0; d < g->p->rank; d++) {
        const kb_val extent = gen_extent(g, &g->p->space[d].extent);
        const int64_t far =
            (int64_t)stencil_threads(g->c, g->p->rank, d) * stencil_points(g->c, g->p->rank, d) + r.hi[d];
        inside = kb_and(k, inside, kb_and(k, kb_ge(k, box[d], -r.lo[d]), kb_le(k, kb_add(k, box[d], far), extent)));
        any = kb_and(k, any, kb_gt(k, extent, 0));
    }
    kb_section(k, "tile");
    kb_if(k, inside) {
        load_all(g, box, tile, true);
    }
    kb_else
    {
        kb_if(k, any) {
            load_all(g, box, tile, false);
        }
    }
    kb_barrier(k);
}

kb_val tile_read(struct window *w, int input, int field, const int *at)
{
    kb *k = w->g->k;
    const struct tile *t = &w->tile[input];
    const struct reach r = stencil_input_reach(w->g->p, input);
    kb_val element = kb_imm(k, TY_I32, 0);
    int64_t distance = 0;
    for (int d = 0; d < w->rank; d++) {
        const kb_val c = kb_cast(k, kb_sub(k, w->origin[d], w->box[d]), TY_I32);
        element = d == 0 ? c : kb_add(k, kb_mul(k, element, t->extent[d]), c);
        distance = distance * t->extent[d] + at[d] - r.lo[d];
    }
    return kb_load(k, kb_advance(k, t->field[field], element), distance);
}
