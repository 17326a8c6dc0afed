/* SPDX-License-Identifier: Apache-2.0 */
/* marks.c - where segments begin in a tile of a ring: a bitmap of its positions, made by one warp.
 *
 *     offsets   all lanes search for the first offset in the tile, around the place where it is expected to be; from
 *               there on each lane marks offsets, the next batch on its way, until one lies after the tile
 *     flags     a lane makes a word of 32 flags, and several of them at once
 *     rows      one remainder, and from there on the lanes mark one row each
 *
 * Backwards, a segment begins in front of the next one's offset, and a flag stands on the element after.
 *
 * Note [Empty segments]
 * Any number of offsets may be the same.  When all that a warp has read are, it searches for the first one that is not.
 */
#include "ring.h"

enum { BITS = 32, AT_ONCE = 16 /* offsets of a lane */, BATCH = AT_ONCE * KB_WARP };

void items_take_marks(struct items *h, kb_ptr map)
{
    kb *k = h->g->k;
    LET(word, kb_div(k, h->own, BITS));
    LET(shift, kb_cast(k, kb_rem(k, h->own, BITS), TY_U64));
    for (int first = 0; first < h->n; first += BITS) {
        const kb_val low = kb_cast(k, kb_load(k, map, kb_add(k, word, first / BITS)), TY_U64);
        const kb_val high = kb_cast(k, kb_load(k, map, kb_add(k, word, first / BITS + 1)), TY_U64);
        const kb_val both = kb_or(k, low, kb_shl(k, high, BITS));
        LET(bits, kb_cast(k, kb_shr(k, both, shift), TY_U32));
        for (int i = first; i < h->n && i < first + BITS; i++)
            h->head[i] = kb_ne(k, kb_and(k, bits, kb_imm(k, TY_U32, (int64_t)1 << (i - first))), 0);
    }
}

kb_ptr scan_ring_marks(const struct scan_ring *r, const struct scan_ring_tile *t)
{
    return kb_advance(r->g->k, r->marks, kb_mul(r->g->k, t->stage, scan_mark_words(r->tile)));
}

/* All lanes. */
static void map_clear(const struct scan_ring *r, kb_ptr map)
{
    kb *k = r->g->k;
    kb_for(k, i, kb_lane(k), kb_imm(k, TY_I32, scan_mark_words(r->tile)), KB_WARP) {
        kb_store(k, map, i, kb_imm(k, TY_U32, 0));
    }
    kb_warp_sync(k);
}

static void map_mark(kb *k, kb_ptr map, kb_val place /* u32 */)
{
    LET(bit, kb_shl(k, kb_imm(k, TY_U32, 1), kb_and(k, place, BITS - 1)));
    kb_atomic(k, KB_RMW_OR, map, kb_shr(k, place, 5), bit);
}

/* ---- offsets ----------------------------------------------------------------------------------------------------- */

void scan_marker_new(const struct scan_ring *r, struct scan_marker *m)
{
    kb *k = r->g->k;
    *m = (struct scan_marker){ .r = r };
    if (r->g->p->offsets < 0)
        return;
    const kb_val zero = kb_imm(k, TY_I64, 0);
    const kb_val offsets = kb_cast(k, kb_add(k, gen_value(r->g, VAL_SEGMENTS), 1), TY_F32);
    m->first = kb_var_new(k, zero, "first");
    m->least = kb_var_new(k, zero, "least");
    m->density = kb_var_new(k, kb_div(k, offsets, kb_cast(k, r->all.length, TY_F32)), "density");
}

static kb_val offset_below(struct gen *g, const void *least, kb_val i)
{
    return kb_lt(g->k, segment_offset(g, i), *(const kb_val *)least);
}

/* A place that is not after the first offset that is at least `least`, and no more than BATCH before it.  One round
 * of places around the expected one, closer the nearer to it, leaves little to be searched. */
static kb_val find_first(struct scan_marker *m, kb_val least, kb_val offsets)
{
    struct gen *g = m->r->g;
    kb *k = g->k;
    const kb_val passed = kb_cast(k, kb_sub(k, least, kb_get(k, m->least)), TY_F32);
    LET(expected, kb_add(k, kb_get(k, m->first), kb_cast(k, kb_mul(k, passed, kb_get(k, m->density)), TY_I64)));
    const kb_val last = kb_sub(k, offsets, 1);
    LET(place, warp_around(g, kb_max(k, kb_min(k, expected, last), 0)));
    kb_val lo, hi;
    warp_enclose(g, place, offsets, offset_below(g, &least, kb_max(k, kb_min(k, place, last), 0)), &lo, &hi);
    return warp_narrow(g, lo, hi, warp_evenly(g, kb_sub(k, hi, lo)), BATCH, offset_below, &least);
}

/* Offsets [first, first + BATCH), AT_ONCE of them for each lane; after the last one it again. */
static void batch_load(struct gen *g, kb_val first, kb_val offsets, kb_var *at)
{
    kb *k = g->k;
    const kb_ptr p = gen_input(g, g->p->offsets);
    LET(own, kb_add(k, first, kb_cast(k, kb_lane(k), TY_I64)));
    kb_if(k, kb_assume_uniform(kb_le(k, kb_add(k, first, BATCH), offsets), KB_UNI_WARP)) { /* as `first` is */
        const kb_ptr lanes = kb_advance(k, p, own);
        kb_val x[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++)
            x[i] = kb_load(k, lanes, i * KB_WARP);
        for (int i = 0; i < AT_ONCE; i++)
            kb_set(k, at[i], x[i]);
    }
    kb_else
    {
        for (int i = 0; i < AT_ONCE; i++)
            kb_set(k, at[i], kb_load(k, p, kb_min(k, kb_add(k, own, i * KB_WARP), kb_sub(k, offsets, 1))));
    }
}

/* Mark those that lie in the tile; a position and an offset add up to the number of elements where the scan runs
 * backwards. */
static void batch_mark(const struct scan_ring *r, const struct scan_ring_tile *t, kb_ptr map, const kb_val *at)
{
    kb *k = r->g->k;
    const kb_val end = kb_sub(k, t->segment.length, t->base);
    for (int i = 0; i < AT_ONCE; i++) {
        const kb_val x = kb_cast(k, at[i], TY_I64);
        const kb_val place = kb_cast(k, r->g->p->reverse ? kb_sub(k, end, x) : kb_sub(k, x, t->base), TY_U64);
        kb_if(k, kb_lt(k, place, r->tile)) {
            map_mark(k, map, kb_cast(k, place, TY_U32));
        }
    }
}

static void expect_next(struct scan_marker *m, kb_val first, kb_val least)
{
    kb *k = m->r->g->k;
    const kb_val offsets = kb_cast(k, kb_sub(k, first, kb_get(k, m->first)), TY_F32);
    LET(apart, kb_max(k, kb_sub(k, least, kb_get(k, m->least)), 1)); /* 0: the first tile lies where the array begins */
    kb_set(k, m->density, kb_div(k, offsets, kb_cast(k, apart, TY_F32)));
    kb_set(k, m->first, first);
    kb_set(k, m->least, least);
}

static void mark_offsets(struct scan_marker *m, const struct scan_ring_tile *t, kb_ptr map)
{
    struct gen *g = m->r->g;
    kb *k = g->k;
    const kb_val tile = kb_imm(k, TY_I64, m->r->tile);
    LET(offsets, kb_add(k, gen_value(g, VAL_SEGMENTS), 1));
    LET(least, g->p->reverse ? kb_add(k, kb_sub(k, kb_sub(k, t->segment.length, t->base), tile), 1) : t->base);
    LET(behind, kb_add(k, least, tile));
    kb_var from = kb_var_new(k, find_first(m, least, offsets), "from"), at[AT_ONCE];
    expect_next(m, kb_get(k, from), least);
    for (int i = 0; i < AT_ONCE; i++)
        at[i] = kb_var_new(k, kb_imm(k, gen_input(g, g->p->offsets).ty, 0), "at");
    batch_load(g, kb_get(k, from), offsets, at);
    map_clear(m->r, map);
    kb_loop(k) {
        kb_val x[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++)
            x[i] = kb_get(k, at[i]);
        LET(last, kb_cast(k, kb_shfl_idx(k, x[AT_ONCE - 1], KB_WARP - 1), TY_I64));
        LET(next, kb_add(k, kb_get(k, from), BATCH));
        /* Searches, votes and one lane's value agree. */
        LET(more, kb_assume_uniform(kb_and(k, kb_lt(k, last, behind), kb_lt(k, next, offsets)), KB_UNI_WARP));
        kb_if(k, more) {
            LET(least_new, kb_add(k, kb_max(k, last, 0), 1));
            kb_set(k, from, next);
            kb_if(k, kb_all(k, kb_eq(k, kb_cast(k, x[0], TY_I64), last))) {
                kb_set(k, from, warp_search(g, next, offsets, kb_imm(k, TY_I64, BATCH), offset_below, &least_new));
            }
            batch_load(g, kb_get(k, from), offsets, at);
        }
        batch_mark(m->r, t, map, x);
        kb_break_if(k, kb_not(k, more));
    }
}

/* ---- flags ------------------------------------------------------------------------------------------------------- */

enum { UNIT = 16, BYTES = 4, WORDS_AT_ONCE = 4 };

/* 32 flags from element `first` on as they are in memory, at a multiple of 16 bytes. */
static void flags_load(kb *k, kb_ptr flags, kb_val first, kb_val *x)
{
    if (ty_bytes(flags.ty) > 1)
        kb_load_n(k, flags, first, BITS, UNIT, x);
    else
        kb_load_words(k, flags, first, BITS, UNIT, x);
}

/* The same as bits of a word. */
static kb_val flags_word(kb *k, kb_ptr flags, const kb_val *x)
{
    kb_val word = kb_imm(k, TY_U32, 0);
    for (int i = 0; ty_bytes(flags.ty) > 1 && i < BITS; i++)
        word = kb_or(k, word, kb_shl(k, kb_cast(k, kb_ne(k, x[i], 0), TY_U32), i));
    for (int i = 0; ty_bytes(flags.ty) == 1 && i < BITS / BYTES; i++) {
        /* The top bit of every byte that is not zero, then four of them side by side. */
        const kb_val low = kb_add(k, kb_and(k, x[i], 0x7f7f7f7f), 0x7f7f7f7f);
        const kb_val top = kb_and(k, kb_shr(k, kb_or(k, low, x[i]), 7), 0x01010101);
        const kb_val four = kb_and(k, kb_shr(k, kb_mul(k, top, 1 << 21 | 1 << 14 | 1 << 7 | 1), 21), 15);
        word = kb_or(k, word, kb_shl(k, four, BYTES * i));
    }
    return word;
}

/* A full tile; the flags' address is a multiple of 16 bytes. */
static void mark_by_vectors(const struct scan_ring *r, const struct scan_ring_tile *t, kb_ptr flags, kb_ptr map)
{
    kb *k = r->g->k;
    const int words = r->tile / BITS, n = ty_bytes(flags.ty) == 1 ? WORDS_AT_ONCE : 1;
    kb_for(k, i, kb_lane(k), kb_imm(k, TY_I32, words), n * KB_WARP) {
        kb_val x[WORDS_AT_ONCE][BITS];
        for (int w = 0; w < n; w++) {
            const kb_val word = kb_min(k, kb_add(k, i, w * KB_WARP), words - 1);
            flags_load(k, flags, kb_add(k, t->base, kb_cast(k, kb_mul(k, word, BITS), TY_I64)), x[w]);
        }
        for (int w = 0; w < n; w++)
            kb_if(k, kb_lt(k, kb_add(k, i, w * KB_WARP), words)) {
                kb_store(k, map, kb_add(k, i, w * KB_WARP), flags_word(k, flags, x[w]));
            }
    }
}

/* Any tile; positions outside stand for the last one. */
static void mark_one_by_one(const struct scan_ring *r, const struct scan_ring_tile *t, kb_ptr flags, kb_ptr map)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const kb_val n = t->segment.length, last = kb_sub(k, n, 1);
    kb_for(k, i, kb_lane(k), kb_imm(k, TY_I32, r->tile / BITS), KB_WARP) {
        LET(first, kb_add(k, t->base, kb_cast(k, kb_mul(k, i, BITS), TY_I64)));
        kb_val x[BITS], word = kb_imm(k, TY_U32, 0);
        for (int b = 0; b < BITS; b++) {
            const kb_val at = kb_add(k, first, b);
            const kb_val element = g->p->reverse ? kb_max(k, kb_sub(k, n, at), 0) : at;
            x[b] = kb_load(k, flags, kb_min(k, element, last));
        }
        for (int b = 0; b < BITS; b++)
            word = kb_or(k, word, kb_shl(k, kb_cast(k, kb_ne(k, x[b], 0), TY_U32), b));
        kb_store(k, map, i, word);
    }
}

static void mark_flags(const struct scan_ring *r, const struct scan_ring_tile *t, kb_ptr map)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const int words = r->tile / BITS;
    kb_ptr flags = gen_input(g, g->p->flags);
    if (flags.ty == TY_BOOL)
        flags.ty = TY_U8;
    kb_if(k, kb_lt(k, kb_lane(k), scan_mark_words(r->tile) - words)) {
        kb_store(k, map, kb_add(k, kb_lane(k), words), kb_imm(k, TY_U32, 0));
    }
    if (g->p->reverse) {
        mark_one_by_one(r, t, flags, map);
        return;
    }
    kb_if(k, kb_and(k, kb_ne(k, gen_value(g, VAL_FLAGS_ALIGNED), 0), kb_eq(k, t->valid, r->tile))) {
        mark_by_vectors(r, t, flags, map);
    }
    kb_else { mark_one_by_one(r, t, flags, map); }
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void mark_rows(const struct scan_ring *r, const struct scan_ring_tile *t, kb_ptr map)
{
    kb *k = r->g->k;
    LET(length, gen_value(r->g, VAL_LENGTH));
    LET(into, kb_rem(k, t->base, length)); /* once per tile */
    LET(first, kb_select(k, kb_eq(k, into, 0), into, kb_sub(k, length, into)));
    LET(own, kb_add(k, first, kb_mul(k, length, kb_cast(k, kb_lane(k), TY_I64))));
    map_clear(r, map);
    kb_for(k, at, own, kb_imm(k, TY_I64, r->tile), kb_mul(k, length, KB_WARP)) {
        map_mark(k, map, kb_cast(k, at, TY_U32));
    }
}

void scan_ring_mark(struct scan_marker *m, const struct scan_ring_tile *t)
{
    const kb_ptr map = scan_ring_marks(m->r, t);
    if (m->r->g->p->offsets >= 0)
        mark_offsets(m, t, map);
    else if (m->r->g->p->flags >= 0)
        mark_flags(m->r, t, map);
    else
        mark_rows(m->r, t, map);
}
