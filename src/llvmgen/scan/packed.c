/* SPDX-License-Identifier: Apache-2.0 */
/* packed.c - running sums of single bytes, four positions to a word.
 *
 *     word              x3 x2 x1 x0
 *     even, odd         0 x2 0 x0,  0 x3 0 x1         two lanes of 16 bits each
 *     pairs             even + odd
 *     upto, odd ones    (pairs + before) * 0x10001    x0 + x1 in the low lane, all four in the high one
 *     upto, even ones   the same - odd
 *     before, the next  before + x0 + x1 + x2 + x3    one dot product with ones
 *
 * What comes before an even position is upto - pairs, before an odd one the even ones' upto.  Only the lowest byte of
 * any state is used, so bytes count as unsigned, whatever the types; a lane holds no more than SCAN_ITEMS_MAX bytes and
 * what comes before them, which is less than 2^16, so nothing is carried from lane to lane.
 */
#include "scan_gen.h"

enum { LOW_BYTES = 0x00ff00ff, BOTH = 0x10001 };

bool packed_fits(const struct problem *p, int n, int stretch)
{
    return scan_summed_bytes(p) >= 0 && n % 4 == 0 && stretch % 4 == 0;
}

/* The lowest byte of an integer. */
static kb_val from_byte(kb *k, kb_val x) { return kb_cast(k, kb_cast(k, x, TY_U8), TY_U32); }

int packed_slot(const struct problem *p)
{
    int slot = 0;
    for (int i = 0; i < scan_summed_bytes(p); i++)
        slot += access_input_direct(p, i) ? p->input[i].array.nfields : 0;
    return slot;
}

kb_val packed_word(const struct items *h, int slot, int w)
{
    kb *k = h->g->k;
    kb_val word = kb_imm(k, TY_U32, 0);
    for (int i = 0; i < 4; i++)
        word = kb_or(k, word, kb_shl(k, from_byte(k, h->direct[4 * w + i].v[slot]), 8 * i));
    return word;
}

static kb_ptr words_at(kb *k, kb_ptr bytes, kb_val i)
{
    kb_ptr p = kb_advance(k, bytes, i);
    p.ty = TY_U32;
    return p;
}

/* Whole words are loaded as such; the one that the tile ends in is the same for all threads. */
void packed_load_part(struct items *h, kb_ptr from)
{
    kb *k = h->g->k;
    const kb_val whole = kb_and(k, h->valid, -4);
    kb_val last = kb_imm(k, TY_U32, 0);
    for (int i = 0; i < 4; i++) {
        const kb_val at = kb_min(k, kb_add(k, whole, i), kb_sub(k, h->valid, 1));
        last = kb_or(k, last, kb_shl(k, from_byte(k, kb_load(k, from, at)), 8 * i));
    }
    for (int w = 0; w < h->n / 4; w++) {
        kb_var word = kb_var_new(k, last, "word");
        LET(at, kb_add(k, h->own, items_distance(h, 4 * w)));
        kb_if(k, kb_lt(k, at, whole)) {
            kb_set(k, word, kb_load(k, words_at(k, from, at), 0));
        }
        h->word[w] = kb_get(k, word);
    }
}

/* Of the word that the tile ends in, the thread that holds it stores its bytes one by one. */
void packed_store_part(struct items *h, kb_ptr to)
{
    kb *k = h->g->k;
    LET(whole, kb_and(k, h->valid, -4));
    kb_val last = h->state_word[0], mine = kb_false(k);
    for (int w = 0; w < h->n / 4; w++) {
        LET(at, kb_add(k, h->own, items_distance(h, 4 * w)));
        kb_if(k, kb_lt(k, at, whole)) {
            kb_store(k, words_at(k, to, at), 0, h->state_word[w]);
        }
        const kb_val here = kb_eq(k, at, whole);
        last = kb_select(k, here, h->state_word[w], last);
        mine = kb_or(k, mine, here);
    }
    for (int i = 0; i < 3; i++)
        kb_if(k, kb_and(k, mine, kb_gt(k, kb_sub(k, h->valid, whole), i))) {
            kb_store(k, to, kb_add(k, whole, i), kb_extract(k, &last, i, to.ty));
        }
}

static kb_tup state_of(struct gen *g, kb_val x) { return (kb_tup){ .n = 1, .e = { kb_cast(g->k, x, g->field[0]) } }; }

/* As a state: its users take the lowest byte. */
static kb_val byte_of(struct gen *g, const kb_val *word, int i)
{
    return kb_cast(g->k, kb_extract(g->k, word, i, TY_U8), g->field[0]);
}

static kb_val with_low_byte(kb *k, kb_val word, kb_val x) { return kb_or(k, kb_and(k, word, -256), from_byte(k, x)); }

void packed_contribute(struct items *h)
{
    struct gen *g = h->g;
    if (!g->p->reduction[0].init[0])
        return;
    const kb_tup first = { .n = 1, .e = { byte_of(g, h->word, 0) } };
    h->word[0] = with_low_byte(g->k, h->word[0], state_with_init(g, h->is_start, first).e[0]);
}

struct run packed_total(struct items *h, int first, int n)
{
    kb *k = h->g->k;
    kb_val sum = kb_imm(k, TY_I32, 0);
    for (int w = first / 4; w < (first + n) / 4; w++)
        sum = kb_sum_bytes(k, h->word[w], false, sum);
    return run_of(h->g, state_of(h->g, sum), kb_false(k));
}

static kb_val merge(kb *k, kb_val even, kb_val odd)
{
    return kb_or(k, kb_and(k, even, LOW_BYTES), kb_shl(k, kb_and(k, odd, LOW_BYTES), 8));
}

void packed_scan(struct items *h, int first, int n, struct run before)
{
    struct gen *g = h->g;
    kb *k = g->k;
    kb_val sum = kb_cast(k, from_byte(k, before.x.e[0]), TY_I32);
    sum = kb_select(k, before.some, sum, kb_imm(k, TY_I32, 0));
    for (int w = first / 4; w < (first + n) / 4; w++) {
        const kb_val odd = kb_and(k, kb_shr(k, h->word[w], 8), LOW_BYTES);
        const kb_val pairs = kb_add(k, kb_and(k, h->word[w], LOW_BYTES), odd);
        const kb_val upto = kb_mul(k, kb_add(k, pairs, kb_cast(k, sum, TY_U32)), BOTH);
        const kb_val upto_even = kb_sub(k, upto, odd);
        h->state_word[w] = g->p->exclusive ? merge(k, kb_sub(k, upto, pairs), upto_even) : merge(k, upto_even, upto);
        sum = kb_sum_bytes(k, h->word[w], false, sum);
    }
    if (g->p->exclusive && first == 0) {
        const kb_val start = kb_select(k, before.some, byte_of(g, h->state_word, 0), state_start(g).e[0]);
        h->state_word[0] = with_low_byte(k, h->state_word[0], start);
    }
    for (int i = first; i < first + n && !g->c->aligned; i++)
        h->state[i] = (kb_tup){ .n = 1, .e = { byte_of(g, h->state_word, i) } };
}

bool items_store_words(const struct items *h, int output)
{
    return h->packed && h->g->c->aligned && scan_stores_byte(h->g->p, output);
}
