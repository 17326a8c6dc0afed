/* SPDX-License-Identifier: Apache-2.0 */
/* bulk_ring.c - the stages, an mbarrier for each that says when it is full, and places that go around. */
#include "bulk_ring.h"

struct bulk_ring bulk_ring_warp(kb *k, int stages, int bytes)
{
    const int warps = kb_threads(k) / KB_WARP;
    struct bulk_ring r = { .k = k, .stages = stages, .bytes = bytes, .first = kb_mul(k, kb_warp(k), stages) };
    r.memory = kb_shared_v(k, TY_U8, warps * stages * bytes, "stage");
    r.full = kb_mbarriers(k, warps * stages, "full");
    kb_if(k, kb_lane0(k)) {
        for (int s = 0; s < stages; s++)
            kb_mbar_init(k, r.full, kb_add(k, r.first, s), 1);
        kb_mbar_ready(k);
    }
    kb_warp_sync(k);
    return r;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

struct ring_place ring_start(const struct bulk_ring *r)
{
    const kb_val zero = kb_imm(r->k, TY_I32, 0);
    return (struct ring_place){ kb_var_new(r->k, zero, "stage"), kb_var_new(r->k, zero, "parity") };
}

void ring_advance(const struct bulk_ring *r, struct ring_place at)
{
    kb *k = r->k;
    const kb_val next = kb_add(k, kb_get(k, at.stage), 1), parity = kb_get(k, at.parity);
    if (r->stages == 1) {
        kb_set(k, at.parity, kb_xor(k, parity, 1));
        return;
    }
    LET(around, kb_eq(k, next, r->stages));
    kb_set(k, at.stage, kb_select(k, around, kb_imm(k, TY_I32, 0), next));
    kb_set(k, at.parity, kb_xor(k, parity, kb_cast(k, around, TY_I32)));
}

static kb_val number(const struct bulk_ring *r, struct ring_place at)
{
    return kb_add(r->k, r->first, kb_get(r->k, at.stage));
}

kb_ptr ring_stage(const struct bulk_ring *r, struct ring_place at, int byte, enum ty ty)
{
    kb *k = r->k;
    kb_ptr p = kb_advance(k, r->memory, kb_add(k, kb_mul(k, number(r, at), r->bytes), byte));
    p.ty = ty;
    return p;
}

/* ---- filling and using ------------------------------------------------------------------------------------------- */

void ring_announce(const struct bulk_ring *r, struct ring_place at, kb_val bytes)
{
    kb_mbar_expect(r->k, r->full, number(r, at), bytes);
}

void ring_copy(const struct bulk_ring *r, struct ring_place at, int to, kb_ptr from, kb_val bytes)
{
    kb_bulk_load(r->k, ring_stage(r, at, to, TY_U8), from, bytes, r->full, number(r, at));
}

void ring_await(const struct bulk_ring *r, struct ring_place at)
{
    kb_mbar_wait(r->k, r->full, number(r, at), kb_get(r->k, at.parity));
}

/* All lanes have read: a barrier alone does not wait for loads, and copies do not wait in line with them. */
void ring_release(const struct bulk_ring *r)
{
    kb_proxy_fence(r->k);
    kb_warp_sync(r->k);
}
