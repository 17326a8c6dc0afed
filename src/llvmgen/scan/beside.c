/* SPDX-License-Identifier: Apache-2.0 */
/* beside.c - neighbours that conditions compare, without reading memory again: a thread has those of its own positions,
 * the lanes beside it have those of its first and last one, and what lies beside a warp sets out before the tile does. */
#include "ring.h"

#include <string.h>

bool items_know_neighbours(const struct items *h)
{
    const struct problem *p = h->g->p;
    bool any = false;
    for (int i = 0; i < p->ninputs; i++)
        any |= p->input[i].neighbours;
    return any && scan_keeps_some(p) && p->rank == 1 && !h->stretch && !p->reverse;
}

/* What lies beside a warp's positions, before lane 0 and behind the others. */
void beside_load(struct items *h, kb_val *edge)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const int of_warp = KB_WARP * h->n;
    const kb_val away = kb_select(k, kb_eq(k, kb_lane(k), 0), kb_imm(k, TY_I32, -1), kb_imm(k, TY_I32, of_warp));
    const kb_val place = kb_add(k, kb_mul(k, kb_warp(k), of_warp), away);
    LET(at, kb_add(k, h->base, kb_cast(k, place, TY_I64)));
    for (int i = 0; i < g->p->ninputs; i++)
        if (g->p->input[i].neighbours)
            edge[i] = gen_load_beside(g, i, at);
}

/* The neighbours of a thread's first and last positions: those of the lanes beside it. */
void beside_take(struct items *h, const kb_val *edge)
{
    struct gen *g = h->g;
    kb *k = g->k;
    memmove(h->direct + 1, h->direct, sizeof *h->direct * (size_t)h->n);
    h->beside = 1;
    for (int i = 0, slot = 0; i < g->p->ninputs;
         slot += access_input_direct(g->p, i) ? g->p->input[i].array.nfields : 0, i++)
        if (g->p->input[i].neighbours) {
            const kb_val left = kb_shfl_up(k, h->direct[h->n].v[slot], 1),
                         right = kb_shfl_down(k, h->direct[1].v[slot], 1);
            h->direct[0].v[slot] = kb_select(k, kb_eq(k, kb_lane(k), 0), edge[i], left);
            h->direct[h->n + 1].v[slot] = kb_select(k, kb_eq(k, kb_lane(k), KB_WARP - 1), edge[i], right);
        }
}

/* Neighbours are those of scalars, and come from other lanes. */
bool beside_fits(const struct items *h)
{
    const struct problem *p = h->g->p;
    bool all = h->counted && items_know_neighbours(h);
    for (int i = 0; i < p->ninputs; i++)
        all &= !p->input[i].neighbours || stage_has_input(p, i);
    return all;
}
