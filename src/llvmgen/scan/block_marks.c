/* SPDX-License-Identifier: Apache-2.0 */
/* block_marks.c - where segments between offsets begin in the only tile of a block.  The block has no other work while it
 * waits for the offsets, so it requests at once all that it may need:
 *
 *     guess     a batch of offsets from the place on where they would be if all segments were alike, some per thread,
 *               and every warp 32 of them farther and farther from there
 *     search    between the 32, if the batch does not hold the first offset in the tile (segments of different sizes),
 *               until a batch holds all that is left: loads that are not needed cost less than another round
 *     mark      in a map of the tile's places, while the next batch is being loaded, until an offset lies after the tile
 *
 * The map has a byte per place, so that neighbouring offsets seldom meet in a word.  Backwards, a segment begins in
 * front of the next one's offset.  Note [Empty segments] of marks.c holds here too.
 */
#include "scan_gen.h"

enum { AT_ONCE = BLOCK_MARKS_AT_ONCE, LEAST_AT_ONCE = 2, PER_WORD = 4, BITS = 8, SLACK = 16 };

static kb_val offset_below(struct gen *g, const void *least, kb_val i)
{
    return kb_lt(g->k, segment_offset(g, i), *(const kb_val *)least);
}

/* So many offsets and some more on both sides, rounded up to whole threads. */
static kb_val batch_size(struct block_marks *m, kb_val wanted)
{
    kb *k = m->g->k;
    const int threads = kb_threads(k);
    const kb_val passes = kb_div(k, kb_add(k, wanted, 2 * SLACK + threads - 1), kb_imm(k, TY_I64, threads));
    return kb_mul(k, kb_max(k, kb_min(k, passes, AT_ONCE), LEAST_AT_ONCE), threads);
}

void block_marks_new(struct gen *g, struct block_marks *m, int tile, kb_val base)
{
    kb *k = g->k;
    const kb_val n = gen_value(g, VAL_COUNT);
    *m = (struct block_marks){ .g = g, .tile = tile, .map = kb_shared_v(k, TY_U32, tile / PER_WORD, "marks") };
    m->offsets = kb_name(kb_add(k, gen_value(g, VAL_SEGMENTS), 1), "offsets");
    m->least = kb_name(g->p->reverse ? kb_add(k, kb_sub(k, kb_sub(k, n, base), tile), 1) : base, "least");
    LET(pace, kb_div(k, kb_cast(k, m->offsets, TY_F32), kb_cast(k, n, TY_F32)));
    m->in_tile = kb_name(kb_cast(k, kb_mul(k, pace, kb_immf(k, TY_F32, tile)), TY_I64), "in_tile");
    const kb_val expected = kb_cast(k, kb_mul(k, kb_cast(k, m->least, TY_F32), pace), TY_I64);
    m->expected = kb_name(kb_max(k, kb_min(k, expected, kb_sub(k, m->offsets, 1)), 0), "expected");
    LET(batch, batch_size(m, m->in_tile));
    const kb_val margin = kb_max(k, kb_shr(k, kb_sub(k, batch, m->in_tile), 1), SLACK);
    m->size = kb_var_new(k, batch, "batch_size");
    m->begin = kb_var_new(k, kb_max(k, kb_sub(k, m->expected, margin), 0), "batch_begin");
    kb_for(k, i, kb_tid(k), kb_imm(k, TY_I32, tile / PER_WORD), kb_threads(k)) {
        kb_store(k, m->map, i, kb_imm(k, TY_U32, 0));
    }
}

/* The m->size offsets from m->begin on; the last offset stands for those after it. */
static void batch_load(struct block_marks *m)
{
    kb *k = m->g->k;
    const int threads = kb_threads(k);
    const kb_ptr p = gen_input(m->g, m->g->p->offsets);
    const kb_val begin = kb_get(k, m->begin), size = kb_get(k, m->size), end = kb_sub(k, m->offsets, 1);
    LET(own, kb_add(k, begin, kb_cast(k, kb_tid(k), TY_I64)));
    for (int i = 0; i < AT_ONCE; i++)
        kb_if(k, kb_lt(k, kb_imm(k, TY_I64, (int64_t)i * threads), size)) {
            kb_set(k, m->at[i], kb_load(k, p, kb_min(k, kb_add(k, own, i * threads), end)));
        }
    kb_set(k, m->first, kb_cast(k, kb_load(k, p, kb_min(k, begin, end)), TY_I64));
    const kb_val last = kb_min(k, kb_sub(k, kb_add(k, begin, size), 1), end);
    kb_set(k, m->last, kb_cast(k, kb_load(k, p, last), TY_I64));
}

void block_marks_fetch(struct block_marks *m)
{
    kb *k = m->g->k;
    const kb_val zero = kb_imm(k, TY_I64, 0), end = kb_sub(k, m->offsets, 1);
    m->first = kb_var_new(k, zero, "batch_first");
    m->last = kb_var_new(k, zero, "batch_last");
    for (int i = 0; i < AT_ONCE; i++)
        m->at[i] = kb_var_new(k, kb_imm(k, gen_input(m->g, m->g->p->offsets).ty, 0), "at");
    batch_load(m);
    m->place = kb_name(warp_around(m->g, m->expected), "place");
    m->probe = kb_name(segment_offset(m->g, kb_max(k, kb_min(k, m->place, end), 0)), "probe");
    m->from = segment_offset(m->g, zero);
    m->to = segment_offset(m->g, end);
}

static void mark(struct block_marks *m, kb_val place /* i32 */)
{
    kb *k = m->g->k;
    const kb_val shift = kb_cast(k, kb_mul(k, kb_rem(k, kb_cast(k, place, TY_U32), PER_WORD), BITS), TY_U32);
    kb_atomic(k, KB_RMW_OR, m->map, kb_shr(k, place, 2), kb_shl(k, kb_imm(k, TY_U32, 1), shift));
}

/* Those of a thread's that lie in the tile; a place and an offset add up to the same where the scan runs backwards. */
static void batch_mark(struct block_marks *m, const kb_val *at, kb_val size)
{
    kb *k = m->g->k;
    const kb_val behind = kb_add(k, m->least, m->tile - 1);
    for (int i = 0; i < AT_ONCE; i++) {
        const kb_val x = kb_cast(k, at[i], TY_I64);
        const kb_val place = kb_cast(k, m->g->p->reverse ? kb_sub(k, behind, x) : kb_sub(k, x, m->least), TY_U64);
        const kb_val loaded = kb_lt(k, kb_imm(k, TY_I64, (int64_t)i * kb_threads(k)), size);
        kb_if(k, kb_and(k, loaded, kb_lt(k, place, m->tile))) {
            mark(m, kb_cast(k, place, TY_I32));
        }
    }
}

/* Does the guessed batch hold the first offset in the tile? */
static kb_val guessed_right(struct block_marks *m)
{
    kb *k = m->g->k;
    const kb_val begin = kb_get(k, m->begin);
    const kb_val early = kb_or(k, kb_eq(k, begin, 0), kb_lt(k, kb_get(k, m->first), m->least));
    const kb_val all = kb_ge(k, kb_add(k, begin, kb_get(k, m->size)), m->offsets);
    return kb_and(k, early, kb_or(k, all, kb_ge(k, kb_get(k, m->last), m->least)));
}

/* The batch after this one begins at `next`.  Or where a search finds the first offset in the tile, if it is not `found`
 * yet; or the first offset that differs, if all offsets of this batch are the same. */
static void next_batch(struct block_marks *m, kb_val found, kb_val next)
{
    struct gen *g = m->g;
    kb *k = g->k;
    const int enough = (AT_ONCE - 1) * kb_threads(k); /* for one batch, with what the tile has */
    kb_val lo, hi;
    warp_enclose(g, m->place, m->offsets, kb_lt(k, m->probe, m->least), &lo, &hi);
    LET(last, kb_get(k, m->last));
    const kb_val same = kb_eq(k, kb_get(k, m->first), last);
    LET(least, kb_select(k, found, kb_add(k, last, 1), m->least));
    LET(from, kb_select(k, found, next, lo));
    LET(to, kb_select(k, found, kb_select(k, same, m->offsets, next), hi));
    LET(left, kb_sub(k, to, from));
    const kb_val apart = kb_select(k, found, kb_get(k, m->size), warp_evenly(g, left));
    kb_set(k, m->begin, warp_narrow(g, from, to, apart, enough, offset_below, &least));
    kb_set(k, m->size, batch_size(m, kb_add(k, kb_min(k, left, enough), m->in_tile)));
}

void block_marks_finish(struct block_marks *m, kb_val first, kb_val is_start)
{
    kb *k = m->g->k;
    kb_barrier(k); /* the map is empty */
    kb_if(k, kb_and(k, is_start, kb_thread0(k))) {
        mark(m, first);
    }
    kb_var right = kb_var_new(k, guessed_right(m), "right");
    kb_loop(k) {
        kb_val x[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++)
            x[i] = kb_get(k, m->at[i]);
        LET(found, kb_get(k, right));
        LET(size, kb_get(k, m->size));
        LET(next, kb_add(k, kb_get(k, m->begin), size));
        const kb_val inside = kb_lt(k, kb_get(k, m->last), kb_add(k, m->least, m->tile));
        const kb_val left = kb_and(k, inside, kb_lt(k, next, m->offsets));
        /* All threads read the same words, and searches agree. */
        LET(more, kb_assume_uniform(kb_or(k, kb_not(k, found), left), KB_UNI_BLOCK));
        kb_if(k, more) {
            next_batch(m, found, next);
            batch_load(m);
            kb_set(k, right, kb_true(k));
        }
        batch_mark(m, x, size);
        kb_break_if(k, kb_not(k, more));
    }
    kb_barrier(k); /* the map is full */
}

kb_val block_marked(struct gen *g, kb_ptr map, kb_val place, int i, int v)
{
    kb *k = g->k;
    const kb_val word = kb_load(k, map, kb_add(k, kb_shr(k, place, 2), i / PER_WORD));
    kb_val shift = kb_imm(k, TY_I32, i % PER_WORD * BITS);
    if (v < PER_WORD)
        shift = kb_add(k, shift, kb_mul(k, kb_and(k, place, PER_WORD - 1), BITS));
    return kb_ne(k, kb_and(k, kb_shr(k, word, kb_cast(k, shift, TY_U32)), 1), 0);
}
