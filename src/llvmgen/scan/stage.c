/* SPDX-License-Identifier: Apache-2.0 */
/* stage.c - full tiles between memory and threads: vectors of consecutive lanes on one side, consecutive positions
 * of a lane on the other.
 *
 *     window of a warp   32 x n positions;  vector j of lane l is at place (32 j + l) x vector
 *     transpose          shared memory, private to the warp: written one way, read the other, so that no block barrier
 * is needed
 *
 * Like the warp-transpose loads of CUB, but with vectors on both sides: 16 bytes per access, and free of bank conflicts
 * when a lane holds an odd number of them.  Of 2, 4 or 8 vectors of 16 bytes, number u is at place u ^ (u / 8 % 2, 4 or
 * 8): both sides then meet all banks, too.  All arrays are loaded before the first one passes through the buffer, which
 * they share in turn.
 *
 * A reversed scan counts positions from the end of memory, so its vectors are taken in the opposite order.
 */
#include "ring.h"

#include <string.h>

static bool scalar(const struct prog_array *a) { return a->nfields == 1 && !*a->field[0].name; }

/* Inputs and outputs that go through it: direct arrays of scalars. */
static bool stage_has_input(const struct problem *p, int input)
{
    return access_input_direct(p, input) && scalar(&p->input[input].array);
}

static bool has_structures(const struct problem *p)
{
    for (int i = 0; i < p->ninputs; i++)
        if (access_input_direct(p, i) && !stage_has_input(p, i))
            return true;
    return false;
}

/* Bytes of the widest element that passes through; flags take one. */
static int widest(const struct problem *p)
{
    int bytes = p->flags >= 0;
    for (int i = 0; i < p->ninputs; i++)
        if (stage_has_input(p, i) && p->input[i].array.stride > bytes)
            bytes = p->input[i].array.stride;
    for (int o = 0; o < p->noutputs; o++)
        if (access_output_vector(p, o) && p->output[o].array.stride > bytes)
            bytes = p->output[o].array.stride;
    return bytes;
}

int stage_bytes(const struct gen *g, int n) { return kb_threads(g->k) * n * widest(g->p); }

kb_ptr stage_new(struct gen *g, int n, kb_ptr all)
{
    kb *k = g->k;
    if (!all.ir)
        all = kb_shared_v(k, TY_U8, stage_bytes(g, n), "stage");
    return kb_advance(k, all, kb_mul(k, kb_warp(k), KB_WARP * n * widest(g->p)));
}

/* The vector on the threads' side: as wide as divides what a lane holds. */
static int shared_vector(int n, int bytes)
{
    int v = 16 / bytes;
    while (n % v)
        v /= 2;
    return v;
}

/* Vectors of a lane, where their places are changed as above; or 0.  vector: elements of what memory's side moves. */
static int swizzled(const struct items *h, enum ty type, int vector)
{
    const int n = h->n / vector;
    return vector * ty_bytes(type) == 16 && (n == 2 || n == 4 || n == 8) ? n : 0;
}

/* Where vector i of the lane's own ones begins in the window, `v` elements each. */
static kb_val blocked(const struct items *h, enum ty type, int vector, int v, int i)
{
    kb *k = h->g->k;
    const int n = swizzled(h, type, vector);
    const kb_val own = kb_mul(k, kb_lane(k), h->n / v);
    if (!n)
        return kb_mul(k, kb_add(k, own, i), v);
    const kb_val turn = kb_and(k, kb_shr(k, own, 3), n - 1);
    return kb_mul(k, kb_xor(k, kb_or(k, own, turn), kb_imm(k, TY_I32, i)), v);
}

/* What memory's side wrote to the window becomes the lane's n consecutive values. */
static void get_blocked(const struct items *h, enum ty type, int vector, kb_val *x)
{
    kb *k = h->g->k;
    const int v = shared_vector(h->n, ty_bytes(type));
    for (int i = 0; i < h->n; i += v)
        kb_load_n(k, ptr_as(h->stage, type), blocked(h, type, vector, v, i / v), v, v * ty_bytes(type), &x[i]);
}

static void put_blocked(const struct items *h, enum ty type, int vector, const kb_val *x)
{
    kb *k = h->g->k;
    const int v = shared_vector(h->n, ty_bytes(type));
    for (int i = 0; i < h->n; i += v)
        kb_store_n(k, ptr_as(h->stage, type), blocked(h, type, vector, v, i / v), v, v * ty_bytes(type), &x[i]);
}

/* Place of vector j of the lane in the window. */
static kb_val striped(const struct items *h, enum ty type, int vector, int j)
{
    kb *k = h->g->k;
    const int n = swizzled(h, type, vector);
    if (n) {
        const kb_val turn = kb_or(k, kb_and(k, kb_shr(k, kb_lane(k), 3), n - 1), 4 * j & (n - 1));
        return kb_mul(k, kb_add(k, kb_xor(k, kb_lane(k), turn), j * KB_WARP), vector);
    }
    return kb_add(k, kb_mul(k, kb_lane(k), vector), j * KB_WARP * vector);
}

/* Where the window's vector j lies in an array. */
static kb_ptr vector_address(const struct items *h, kb_ptr p, int vector, int j)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const struct scan_segment *s = h->segment;
    const kb_val lane = kb_add(k, kb_mul(k, kb_warp(k), KB_WARP * h->n), kb_mul(k, kb_lane(k), vector));
    const int64_t plus = (int64_t)j * KB_WARP * vector;
    if (!g->p->reverse) {
        p = kb_advance(k, p, kb_add(k, s->first, h->base));
        return kb_advance(k, kb_advance(k, p, lane), kb_imm(k, TY_I64, plus));
    }
    const kb_val last = kb_sub(k, kb_add(k, s->first, s->length), vector);
    p = kb_advance(k, p, kb_sub(k, last, h->base));
    return kb_advance(k, kb_advance(k, p, kb_neg(k, lane)), kb_imm(k, TY_I64, -plus));
}

/* Bytes that a vector in memory is aligned to. */
static int memory_alignment(const struct gen *g, int vector, int stride)
{
    return g->c->aligned ? vector * stride : stride;
}

static void load_striped(const struct items *h, int input, kb_val *x)
{
    struct gen *g = h->g;
    const int vector = gen_tunable(g, TN_VECTOR), stride = g->p->input[input].array.stride;
    for (int j = 0; j < h->n / vector; j++) {
        const kb_ptr at = vector_address(h, gen_input(g, input), vector, j);
        kb_load_n(g->k, at, kb_imm(g->k, TY_I32, 0), vector, memory_alignment(g, vector, stride), &x[j * vector]);
        turn_values(g, &x[j * vector], vector);
    }
}

/* Flags stand on the element itself, or, reversed, on the one after it. */
static void load_flags(const struct items *h, kb_val *x)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const kb_ptr flags = gen_input(g, g->p->flags);
    const kb_val window = kb_mul(k, kb_warp(k), KB_WARP * h->n);
    for (int j = 0; j < h->n; j++) {
        const kb_val place = striped(h, TY_U8, 1, j);
        const kb_val position = kb_add(k, h->base, kb_cast(k, kb_add(k, window, place), TY_I64));
        kb_val element = position;
        if (g->p->reverse) {
            const kb_val last = kb_sub(k, h->segment->length, 1);
            element = kb_min(k, kb_sub(k, h->segment->length, position), last);
        }
        x[j] = kb_cast(k, kb_ne(k, kb_load(k, flags, element), kb_imm(k, flags.ty, 0)), TY_U8);
    }
}

/* The window may be written: every lane has read what was in it. */
static void claim(struct items *h)
{
    if (h->stage_used)
        kb_warp_sync(h->g->k);
    h->stage_used = true;
}

/* Vectors in memory are what the lane holds. */
static bool same_arrangement(const struct items *h, int vector) { return h->stretch == vector || vector == h->n; }

/* From vectors of the window to the lane's own values. */
static void transpose_in(struct items *h, enum ty type, int vector, const kb_val *x, kb_val *own)
{
    kb *k = h->g->k;
    if (same_arrangement(h, vector)) {
        memcpy(own, x, sizeof *x * (size_t)h->n);
        return;
    }
    claim(h);
    for (int j = 0; j < h->n / vector; j++)
        kb_store_n(k, ptr_as(h->stage, type), striped(h, type, vector, j), vector, vector * ty_bytes(type),
                   &x[j * vector]);
    kb_warp_sync(k); /* the window is complete */
    get_blocked(h, type, vector, own);
}

void stage_load(struct items *h)
{
    struct gen *g = h->g;
    const struct problem *p = g->p;
    const int vector = gen_tunable(g, TN_VECTOR);
    kb_val x[PROBLEM_ARGS_MAX][SCAN_ITEMS_MAX], own[SCAN_ITEMS_MAX], flag[SCAN_ITEMS_MAX];
    struct point pt;
    int slot = 0;
    for (int i = 0; i < p->ninputs; i++)
        if (stage_has_input(p, i))
            load_striped(h, i, x[slot++]);
    if (p->flags >= 0)
        load_flags(h, flag);
    for (int i = 0; i < h->n && has_structures(p);
         i++) { /* they come to their lane directly; scalars are overwritten below */
        items_point(h, &pt, i);
        direct_load(g, pt.base, pt.offset, pt.plus, 1, false, &h->direct[i]);
    }
    for (int i = 0, from = 0, to = 0; i < p->ninputs; i++) {
        if (stage_has_input(p, i)) {
            transpose_in(h, p->input[i].array.field[0].type, vector, x[from++], own);
            for (int e = 0; e < h->n; e++)
                h->direct[e].v[to] = own[e];
        }
        to += access_input_direct(p, i) ? p->input[i].array.nfields : 0;
    }
    if (p->flags >= 0) {
        transpose_in(h, TY_U8, 1, flag, own);
        for (int e = 0; e < h->n; e++)
            h->head[e] = kb_ne(g->k, own[e], 0);
    }
}

void stage_store(struct items *h, int output, const kb_val *x)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const struct prog_array *a = &g->p->output[output].array;
    const enum ty type = a->field[0].type;
    const int vector = gen_tunable(g, TN_VECTOR);
    const bool same = same_arrangement(h, vector);
    if (!same) {
        claim(h);
        put_blocked(h, type, vector, x);
        kb_warp_sync(k); /* the window is complete */
    }
    for (int j = 0; j < h->n / vector; j++) {
        kb_val v[GEN_VECTOR_MAX];
        const kb_ptr at = vector_address(h, gen_output(g, output), vector, j);
        if (items_store_words(h, output)) {
            kb_store_n(k, ptr_as(at, TY_U32), kb_imm(k, TY_I32, 0), vector / 4, vector, &h->state_word[j * vector / 4]);
            continue;
        }
        if (same)
            memcpy(v, &x[j * vector], sizeof *x * (size_t)vector);
        else
            kb_load_n(k, ptr_as(h->stage, type), striped(h, type, vector, j), vector, vector * ty_bytes(type), v);
        turn_values(g, v, vector);
        output_store_vector(g, output, at, vector, g->c->aligned, v);
    }
}

/* ---- neighbours -------------------------------------------------------------------------------------------------- */

/* Conditions compare them, and memory is not read again: a thread has those of its own positions, the lanes beside it
 * have those of its first and last one, and what lies beside a warp sets out before the tile does. */
bool items_know_neighbours(const struct items *h)
{
    const struct problem *p = h->g->p;
    bool any = false;
    for (int i = 0; i < p->ninputs; i++)
        any |= p->input[i].neighbours;
    return any && p->rank == 1 && !h->stretch && (!p->reverse || h->ring);
}

/* What lies beside a warp's positions, before lane 0 and after the others. */
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

void scan_ring_fill_beside(const struct scan_ring *r, const struct scan_ring_tile *t)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const kb_val before = kb_lane0(k), beyond = kb_cast(k, t->valid, TY_I64);
    LET(at, kb_add(k, t->start, kb_select(k, before, kb_imm(k, TY_I64, -1), beyond)));
    LET(place, kb_select(k, before, kb_imm(k, TY_I32, -1), t->valid));
    kb_if(k, kb_lt(k, kb_lane(k), 2)) {
        for (int i = 0; i < g->p->ninputs; i++)
            if (r->layout.input[i] >= 0 && g->p->input[i].neighbours) {
                const kb_ptr to = scan_ring_array(r, t, r->layout.input[i], g->p->input[i].array.field[0].type);
                kb_store(k, to, place, gen_load_beside(g, i, at));
            }
    }
}
