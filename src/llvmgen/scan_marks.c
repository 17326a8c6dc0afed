/* SPDX-License-Identifier: Apache-2.0 */
/* scan_marks.c - where segments begin in a tile of a ring: a bitmap of its positions, made by one warp.
 *
 *     offsets   all lanes search for the first offset in the tile; from there on each lane marks offsets, several of
 *               them on their way at once, until one lies behind the tile
 *     flags     a lane makes a word of 32 flags
 *
 * Backwards, a segment begins in front of the next one's offset, and a flag stands on the element behind.
 *
 * Note [Empty segments]
 * Any number of offsets may be the same.  When all that a warp has read are, it searches for the first one that is not.
 */
#include "scan_ring.h"

enum { BITS = 32, AT_ONCE = 8 /* offsets of a lane */ };

void held_take_marks(struct held *h, kb_ptr map)
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

/* ---- offsets ----------------------------------------------------------------------------------------------------- */

static kb_val offset_below(struct gen *g, const void *least, kb_val i)
{
    return kb_lt(g->k, segment_offset(g, i), *(const kb_val *)least);
}

/* Mark offset `at`, where it lies in the tile; a position and an offset add up to the number of elements where the scan
 * runs backwards. */
static void mark_offset(const struct scan_ring *r, const struct scan_ring_tile *t, kb_ptr map, kb_val at)
{
    kb *k = r->g->k;
    const kb_val place =
        r->g->p->reverse ? kb_sub(k, kb_sub(k, t->segment.length, t->base), at) : kb_sub(k, at, t->base);
    kb_if(k, kb_lt(k, kb_cast(k, place, TY_U64), r->tile)) {
        LET(bit, kb_cast(k, place, TY_U32));
        kb_atomic(k, KB_RMW_OR, map, kb_shr(k, bit, 5), kb_shl(k, kb_imm(k, TY_U32, 1), kb_and(k, bit, BITS - 1)));
    }
}

static void mark_offsets(const struct scan_ring *r, const struct scan_ring_tile *t, kb_ptr map)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const kb_val tile = kb_imm(k, TY_I64, r->tile), none = kb_imm(k, TY_I64, 0);
    LET(offsets, kb_add(k, gen_value(g, "segments"), 1));
    LET(least, g->p->reverse ? kb_add(k, kb_sub(k, kb_sub(k, t->segment.length, t->base), tile), 1) : t->base);
    LET(behind, kb_add(k, least, tile));
    kb_var from = kb_var_new(k, warp_search(g, none, offsets, warp_evenly(g, offsets), offset_below, &least), "from");
    kb_for(k, i, kb_lane(k), kb_imm(k, TY_I32, scan_mark_words(r->tile)), KB_WARP) {
        kb_store(k, map, i, kb_imm(k, TY_U32, 0));
    }
    kb_warp_sync(k);
    kb_loop(k) {
        kb_val at[AT_ONCE];
        LET(first, kb_assume_uniform(kb_get(k, from), KB_UNI_WARP)); /* searches and votes agree */
        kb_break_if(k, kb_ge(k, first, offsets));
        for (int i = 0; i < AT_ONCE; i++) {
            const kb_val place = kb_add(k, first, kb_cast(k, kb_add(k, kb_lane(k), i * KB_WARP), TY_I64));
            at[i] = segment_offset(g, kb_min(k, place, kb_sub(k, offsets, 1)));
        }
        for (int i = 0; i < AT_ONCE; i++)
            mark_offset(r, t, map, at[i]);
        LET(last, kb_shfl_idx(k, at[AT_ONCE - 1], kb_imm(k, TY_I32, KB_WARP - 1)));
        kb_break_if(k, kb_assume_uniform(kb_ge(k, last, behind), KB_UNI_WARP)); /* one lane's */
        kb_set(k, from, kb_add(k, first, AT_ONCE * KB_WARP));
        LET(more, kb_add(k, last, 1));
        kb_if(k, kb_all(k, kb_eq(k, at[0], last))) {
            kb_set(k, from,
                   warp_search(g, kb_get(k, from), offsets, kb_imm(k, TY_I64, AT_ONCE * KB_WARP), offset_below, &more));
        }
    }
}

/* ---- flags ------------------------------------------------------------------------------------------------------- */

/* 32 flags from element `first` on as a word; their address is a multiple of 16 bytes. */
static kb_val word_of_flags(struct gen *g, kb_ptr flags, kb_val first)
{
    kb *k = g->k;
    enum { UNIT = 16, BYTES = 4 };
    kb_val x[BITS], word = kb_imm(k, TY_U32, 0);
    if (ty_bytes(flags.ty) > 1) {
        kb_load_n(k, flags, first, BITS, UNIT, x);
        for (int i = 0; i < BITS; i++)
            word = kb_or(k, word, kb_shl(k, kb_cast(k, kb_ne(k, x[i], 0), TY_U32), i));
        return word;
    }
    kb_load_words(k, flags, first, BITS, UNIT, x);
    for (int i = 0; i < BITS / BYTES; i++) {
        /* The top bit of every byte that is not zero, then four of them side by side. */
        const kb_val low = kb_add(k, kb_and(k, x[i], 0x7f7f7f7f), 0x7f7f7f7f);
        const kb_val top = kb_and(k, kb_shr(k, kb_or(k, low, x[i]), 7), 0x01010101);
        const kb_val four = kb_and(k, kb_shr(k, kb_mul(k, top, 1 << 21 | 1 << 14 | 1 << 7 | 1), 21), 15);
        word = kb_or(k, word, kb_shl(k, four, BYTES * i));
    }
    return word;
}

/* The same for any positions of the scan, from `first` on; those outside stand for the last one. */
static kb_val word_one_by_one(const struct scan_ring *r, const struct scan_ring_tile *t, kb_ptr flags, kb_val first)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const kb_val n = t->segment.length, last = kb_sub(k, n, 1);
    kb_val word = kb_imm(k, TY_U32, 0), x[BITS];
    for (int i = 0; i < BITS; i++) {
        const kb_val at = kb_add(k, first, i);
        x[i] = kb_load(k, flags, g->p->reverse ? kb_max(k, kb_min(k, kb_sub(k, n, at), last), 0) : kb_min(k, at, last));
    }
    for (int i = 0; i < BITS; i++)
        word = kb_or(k, word, kb_shl(k, kb_cast(k, kb_ne(k, x[i], 0), TY_U32), i));
    return word;
}

static void mark_flags(const struct scan_ring *r, const struct scan_ring_tile *t, kb_ptr map)
{
    struct gen *g = r->g;
    kb *k = g->k;
    kb_ptr flags = gen_input(g, g->p->flags);
    if (flags.ty == TY_BOOL)
        flags.ty = TY_U8;
    const kb_val vectors = kb_and(k, kb_ne(k, gen_value(g, "flags_aligned"), 0), kb_eq(k, t->valid, r->tile));
    kb_if(k, kb_lt(k, kb_lane(k), scan_mark_words(r->tile) - r->tile / BITS)) {
        kb_store(k, map, kb_add(k, kb_lane(k), r->tile / BITS), kb_imm(k, TY_U32, 0));
    }
    kb_for(k, i, kb_lane(k), kb_imm(k, TY_I32, r->tile / BITS), KB_WARP) {
        LET(first, kb_add(k, t->base, kb_cast(k, kb_mul(k, i, BITS), TY_I64)));
        kb_if(k, g->p->reverse ? kb_imm(k, TY_BOOL, 0) : vectors) {
            kb_store(k, map, i, word_of_flags(g, flags, first));
        }
        kb_else { kb_store(k, map, i, word_one_by_one(r, t, flags, first)); }
    }
}

void scan_ring_mark(const struct scan_ring *r, const struct scan_ring_tile *t)
{
    const kb_ptr map = scan_ring_marks(r, t);
    if (r->g->p->offsets >= 0)
        mark_offsets(r, t, map);
    else
        mark_flags(r, t, map);
}
