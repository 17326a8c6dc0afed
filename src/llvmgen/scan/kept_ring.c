/* SPDX-License-Identifier: Apache-2.0 */
/* kept_ring.c - outputs that some elements write, by a tile of a ring (ring.h).
 *
 *     mark     what counters and other fields of type bool get from a thread's positions are bits of words; what lies
 *              after the last position counts nothing
 *     count    bits; in a tile counters have 32 bits, and get the state's type where it ends
 *     gather   when all threads have read the stage, each puts the values that it keeps side by side into the stage,
 *              from the place on to which the threads before it come
 *     drain    the storer copies them from there as one piece
 *
 * Bulk copies begin at multiples of 16 bytes in memory and in shared memory.  So the distance of the first value from such
 * a multiple is the same in the stage as in memory.  Lanes store what stands before the first whole unit of 16 bytes and
 * after the last one.
 *
 * Note [Registers]
 * A thread holds what it has loaded, and bits.  A condition that lives until values are put would take a register per
 * position, and so would the number of values before each.  A position's state is used before the next one is made.
 */
#include "ring.h"

enum { BITS = 32 };

static bool counts(const struct problem *p, int r) { return p->reduction[r].counts; }

/* ---- bits -------------------------------------------------------------------------------------------------------- */

kb_val kept_bit(const struct items *h, int field, int i)
{
    kb *k = h->g->k;
    return kb_ne(k, kb_and(k, h->bits[field][i / BITS], (int64_t)1 << i % BITS), 0);
}

/* The bits of a field of positions from number `first` on. */
static kb_val bits_from(const struct items *h, int field, int first)
{
    kb *k = h->g->k;
    kb_val word = kb_imm(k, TY_U32, 0);
    for (int i = first; i < h->n && i < first + BITS; i++) {
        const kb_val x = h->x[i].e[field], set = kb_ne(k, x, kb_imm(k, x.ty, 0));
        word = kb_or(k, word, kb_select(k, set, kb_imm(k, TY_U32, (int64_t)1 << (i - first)), kb_imm(k, TY_U32, 0)));
    }
    return word;
}

/* Those of positions inside, of 32 from number `first` on. */
static kb_val inside_from(const struct items *h, int first)
{
    kb *k = h->g->k;
    const kb_val left = kb_sub(k, kb_sub(k, h->valid, h->own), first);
    const kb_val some = kb_sub(k, kb_shl(k, kb_imm(k, TY_U32, 1), kb_cast(k, kb_max(k, left, 0), TY_U32)), 1);
    return kb_select(k, kb_ge(k, left, BITS), kb_imm(k, TY_U32, 0xffffffff), some);
}

void kept_mark(struct items *h)
{
    struct gen *g = h->g;
    kb *k = g->k;
    for (int f = 0; f < g->nfields; f++)
        h->in_bits[f] = g->field[f] == TY_BOOL;
    for (int r = 0; r < g->p->nreductions; r++)
        h->in_bits[state_first(g->p, r)] |= counts(g->p, r);
    for (int f = 0; f < g->nfields; f++)
        for (int i = 0; h->in_bits[f] && i < h->n; i += BITS) {
            kb_var word = kb_var_new(k, bits_from(h, f, i), "bits");
            kb_if(k, kb_not(k, h->full)) {
                kb_set(k, word, kb_and(k, kb_get(k, word), inside_from(h, i)));
            }
            h->bits[f][i / BITS] = kb_get(k, word);
        }
    for (int i = 0; i < h->n; i++)
        for (int f = 0; f < g->nfields; f++)
            if (h->in_bits[f])
                h->x[i].e[f] = g->field[f] == TY_BOOL ? kept_bit(h, f, i) : kb_imm(k, TY_I32, 0);
}

struct run kept_run(struct items *h)
{
    struct gen *g = h->g;
    kb *k = g->k;
    struct run x = items_total(h);
    for (int r = 0; r < g->p->nreductions; r++) {
        kb_val *const sum = &x.x.e[state_first(g->p, r)];
        for (int i = 0; counts(g->p, r) && i < h->n; i += BITS)
            *sum = kb_add(k, *sum, kb_cast(k, kb_popcount(k, h->bits[state_first(g->p, r)][i / BITS]), TY_I32));
    }
    return x;
}

void kept_narrow(struct gen *g, bool narrow)
{
    for (int r = 0; r < g->p->nreductions; r++)
        if (counts(g->p, r))
            g->field[state_first(g->p, r)] = narrow ? TY_I32 : g->p->reduction[r].op->field[0];
}

kb_tup kept_widen(struct gen *g, kb_tup x)
{
    for (int f = 0; f < x.n; f++)
        x.e[f] = kb_cast(g->k, x.e[f], g->field[f]);
    return x;
}

/* The same without counters, which are not needed between positions. */
static kb_tup uncounted(struct gen *g, kb_tup x)
{
    for (int r = 0; r < g->p->nreductions; r++)
        if (counts(g->p, r))
            x.e[state_first(g->p, r)] = kb_imm(g->k, TY_I32, 0);
    return x;
}

kb_val kept_counted(struct gen *g, int r, const struct run *x, enum ty type)
{
    kb *k = g->k;
    const kb_val n = x->x.e[state_first(g->p, r)];
    return kb_cast(k, kb_select(k, x->some, n, kb_imm(k, n.ty, 0)), type);
}

/* Where the kept values of a tile lie: the first one of an output in memory (i64) and in its part of the stage (i32),
 * and how many there are (i32). */
struct kept_span {
    kb_val first, shift, n;
};

static struct kept_span span_of(const struct scan_ring *r, const struct scan_ring_tile *t, int output)
{
    kb *k = r->g->k;
    const kb_val slot = kb_add(k, kb_mul(k, t->stage, r->g->p->noutputs), output);
    struct kept_span s = { .first = kb_load(k, r->kept_first, slot), .n = kb_load(k, r->kept_count, slot) };
    s.shift = kb_and(k, kb_cast(k, s.first, TY_I32), scan_ring_unit(r->g->p, output) - 1);
    return s;
}

/* The team's first thread says so to the storer, and all threads know it. */
static struct kept_span span_new(const struct items *h, int output)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const struct scan_ring *r = h->ring;
    const struct output *o = &g->p->output[output];
    struct kept_span s = { .n = kept_counted(g, o->counter, &h->total, TY_I32) };
    s.first = kept_counted(g, o->counter, &h->outside, TY_I64);
    if (o->from_end)
        s.first = kb_sub(k, kb_sub(k, h->segment->length, s.first), kb_cast(k, s.n, TY_I64));
    s.shift = kb_and(k, kb_cast(k, s.first, TY_I32), scan_ring_unit(g->p, output) - 1);
    const kb_val slot = kb_add(k, kb_mul(k, h->ring_tile->stage, g->p->noutputs), output);
    kb_if(k, kb_thread0(k)) {
        kb_store(k, r->kept_first, slot, s.first);
        kb_store(k, r->kept_count, slot, s.n);
    }
    return s;
}

/* The first output whose values lie as this one's do, but for where the array begins. */
static int alike(const struct problem *p, int output)
{
    const struct output *o = &p->output[output];
    for (int i = 0; i < output; i++)
        if (kept_with(p, i, o->counter) && p->output[i].array.stride == o->array.stride &&
            p->output[i].from_end == o->from_end)
            return i;
    return output;
}

/* Where the thread's next value of the output goes: bytes from the output's part of the stage on. */
static kb_var place_new(const struct items *h, int output, kb_val rank)
{
    kb *k = h->g->k;
    const struct output *o = &h->g->p->output[output];
    const struct kept_span s = span_new(h, output);
    const kb_val last = kb_sub(k, kb_add(k, s.shift, s.n), 1);
    const kb_val at = o->from_end ? kb_sub(k, last, rank) : kb_add(k, s.shift, rank);
    return kb_var_new(k, kb_mul(k, at, o->array.stride), "place");
}

/* Position i, for the outputs of counter r. */
static void put(struct items *h, kb_var *place, int r, int i)
{
    struct gen *g = h->g;
    kb *k = g->k;
    const struct scan_ring *ring = h->ring;
    kb_if(k, kept_bit(h, state_first(g->p, r), i)) {
        for (int o = 0; o < g->p->noutputs; o++) {
            struct point pt;
            if (!kept_with(g->p, o, r))
                continue;
            item_point(h, &pt, i);
            const kb_ptr part = scan_ring_array(ring, h->ring_tile, ring->layout.output[o], TY_U8);
            const kb_ptr to =
                ptr_as(kb_advance(k, part, kb_get(k, place[alike(g->p, o)])), g->p->output[o].array.field[0].type);
            kb_store(k, to, 0, output_value(&pt, o, 0));
        }
        for (int o = 0; o < g->p->noutputs; o++) {
            const int stride = g->p->output[o].from_end ? -g->p->output[o].array.stride : g->p->output[o].array.stride;
            if (kept_with(g->p, o, r) && alike(g->p, o) == o)
                kb_set(k, place[o], kb_add(k, kb_get(k, place[o]), stride));
        }
    }
}

/* The state after the tile, if the thread holds the last position of the array. */
static void finish(const struct items *h)
{
    struct gen *g = h->g;
    kb *k = g->k;
    kb_tup last = h->last;
    for (int r = 0; r < g->p->nreductions; r++)
        if (counts(g->p, r))
            last.e[state_first(g->p, r)] =
                kb_add(k, kept_counted(g, r, &h->outside, TY_I64), kept_counted(g, r, &h->total, TY_I64));
    segment_finish(g, h->segment, last, kb_false(k));
}

void kept_finish(const struct items *h)
{
    if (scan_has_totals(h->g->p))
        kb_if(h->g->k, items_have_last(h)) {
            finish(h);
        }
}

void kept_scan(struct items *h, struct run outside, struct run inside, kb_var *place, kept_put *put_one)
{
    struct gen *g = h->g;
    kb *k = g->k;
    outside.x = uncounted(g, outside.x);
    inside.x = uncounted(g, inside.x);
    struct run before = run_join(g, outside, inside);
    kb_tup last = before.x;
    for (int i = 0; i < h->n; i++) {
        const struct run upto = run_join(g, before, run_of(g, h->x[i], kb_false(k)));
        h->state[i] = upto.x;
        if (g->p->exclusive)
            h->state[i] = kb_select(k, before.some, before.x, uncounted(g, state_start(g)));
        for (int r = 0; r < g->p->nreductions; r++)
            if (counts(g->p, r))
                put_one(h, place, r, i);
        last = kb_select(k, items_inside(h, i), upto.x, last);
        before = upto;
    }
    h->last = last;
}

void kept_ring_scan(struct items *h, struct run outside, const struct run *inside)
{
    const struct problem *p = h->g->p;
    kb_var place[PROBLEM_ARGS_MAX];
    h->outside = outside;
    for (int o = 0; o < p->noutputs; o++)
        if (p->output[o].role == OUT_KEPT)
            place[o] = place_new(h, o, kept_counted(h->g, p->output[o].counter, inside, TY_I32));
    kept_scan(h, outside, *inside, place, put);
    kept_finish(h);
}

void kept_ring_drain(const struct scan_ring *r, const struct scan_ring_tile *t)
{
    struct gen *g = r->g;
    kb *k = g->k;
    for (int o = 0, lane = 0; o < g->p->noutputs; o++) {
        if (g->p->output[o].role != OUT_KEPT)
            continue;
        const struct kept_span s = span_of(r, t, o);
        const kb_ptr stage = scan_ring_array(r, t, r->layout.output[o], g->p->output[o].array.field[0].type);
        const kb_ptr memory = kb_advance(k, gen_output(g, o), kb_sub(k, s.first, kb_cast(k, s.shift, TY_I64)));
        scan_ring_drain_piece(r, stage, memory, s.shift, kb_add(k, s.shift, s.n), lane++);
    }
}
