/* SPDX-License-Identifier: Apache-2.0 */
/* input_ring.c - see input_ring.h. */
#include "input_ring.h"

static int part_bytes(const struct input_ring *r, int input)
{
    return access_input_direct(r->g->p, input) ? r->elements * r->g->p->input[input].array.stride : 0;
}

static int stage_bytes(const struct input_ring *r)
{
    int bytes = 0;
    for (int i = 0; i < r->g->p->ninputs; i++)
        bytes += part_bytes(r, i);
    return bytes;
}

/* Lane 0 starts the copies of a part into the stage at the place, if the warp has that part. */
static void fill(const struct input_ring *r, kb_val part, struct ring_place at)
{
    struct gen *g = r->g;
    kb *k = g->k;
    kb_if(k, kb_and(k, kb_lane0(k), kb_lt(k, part, r->to))) {
        ring_announce(&r->ring, at, kb_imm(k, TY_I32, stage_bytes(r)));
        for (int i = 0, byte = 0; i < g->p->ninputs; byte += part_bytes(r, i++))
            if (access_input_direct(g->p, i))
                ring_copy(&r->ring, at, byte, kb_advance(k, gen_input(g, i), r->first(r->user, part)),
                          kb_imm(k, TY_I32, part_bytes(r, i)));
    }
}

void input_ring_new(struct input_ring *r, int stages)
{
    r->ring = bulk_ring_warp(r->g->k, stages, stage_bytes(r));
    r->here = ring_start(&r->ring);
}

void input_ring_start(struct input_ring *r, kb_val from)
{
    kb *k = r->g->k;
    const struct ring_place ahead = ring_start(&r->ring);
    for (int i = 0; i < r->ring.stages; i++) {
        fill(r, kb_add(k, from, kb_mul(k, r->step, i)), ahead);
        ring_advance(&r->ring, ahead);
    }
}

void input_ring_take(struct input_ring *r, kb_val part, int vectors, int vector, struct direct *d)
{
    struct gen *g = r->g;
    kb *k = g->k;
    kb_ptr stage[PROG_ARG_MAX];
    int slots = 0;
    ring_await(&r->ring, r->here);
    for (int i = 0, byte = 0; i < g->p->ninputs; byte += part_bytes(r, i++))
        if (access_input_direct(g->p, i))
            stage[slots++] = ring_stage(&r->ring, r->here, byte, g->p->input[i].array.field[0].type);
    for (int q = 0; q < vectors; q++)
        for (int slot = 0; slot < slots; slot++) {
            kb_val x[GEN_VECTOR_MAX];
            kb_load_n(k, stage[slot], r->place(r->user, q), vector, vector * ty_bytes(stage[slot].ty), x);
            for (int j = 0; j < vector; j++)
                d[q * vector + j].v[slot] = x[j];
        }
    ring_release(&r->ring);
    fill(r, kb_add(k, part, kb_mul(k, r->step, r->ring.stages)), r->here);
    ring_advance(&r->ring, r->here);
}
