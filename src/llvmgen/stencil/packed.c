/* SPDX-License-Identifier: Apache-2.0 */
/* packed.c - rows of bytes, four points in two words.
 *
 * Bytes that are only added, subtracted, multiplied by constants and combined bit by bit need no more than their low
 * eight bits on the way: the points 0 and 2 of four are the halves of one word, 1 and 3 those of another, so that a
 * word's arithmetic serves two points.  A half must not overflow into the other: how large its value can be is known
 * when the kernel is generated, differences are lifted by a multiple of 256, and what would grow beyond 16 bits is cut
 * back to 8.  At the end the low bytes of both words are put together.
 *
 * Halves of what is read are made once for each column, out of the words of a row, by one instruction in most cases.
 */
#include "packed.h"

#include "llvmgen/builder/kb_impl.h"

static struct pair cut(kb *k, struct pair a) { return (struct pair){ kb_and(k, a.v, BYTES), 255 }; }

static uint32_t lifted(uint32_t most) { return (most + 255) / 256 * 256; }

static struct pair subtract(kb *k, struct pair a, struct pair b)
{
    if (a.most + lifted(b.most) > HALF_MAX) {
        a = cut(k, a);
        b = cut(k, b);
    }
    const uint32_t lift = lifted(b.most);
    const kb_val high = kb_add(k, a.v, (int64_t)lift * HALVES);
    return (struct pair){ kb_sub(k, high, b.v), a.most + lift };
}

/* Times a constant of which the low eight bits count: either way round is the same, the smaller one grows less. */
struct pair pair_scale(kb *k, struct pair a, uint32_t by)
{
    enum { NEGATIVE = 128 };
    by &= 255;
    const uint32_t times = by > NEGATIVE ? 256 - by : by;
    if (a.most * times > HALF_MAX)
        a = cut(k, a);
    a = (struct pair){ kb_mul(k, a.v, times), a.most * times };
    return by > NEGATIVE ? subtract(k, (struct pair){ kb_imm(k, TY_U32, 0), 0 }, a) : a;
}

/* Bits of a byte that a shift to the right by a constant drops: signed ones keep one for the sign. */
static int dropped(const struct expr *shift)
{
    const int by = (int)(shift->arg[1]->imm.i & 255), most = ty_is_signed(shift->type) ? 7 : 8;
    return by < most ? by : most;
}

/* Of signed values what is left of the sign bit becomes negative. */
static struct pair shift_right(kb *k, struct pair a, const struct expr *e)
{
    const int by = dropped(e), sign = ty_is_signed(e->type) ? 128 >> by : 0;
    const uint32_t left = 255 >> by;
    const kb_val v = kb_and(k, kb_shr(k, a.v, by), (int64_t)left * HALVES);
    if (!sign)
        return (struct pair){ v, left };
    return (struct pair){ kb_add(k, kb_xor(k, v, (int64_t)sign * HALVES), (int64_t)(256 - sign) * HALVES),
                          left + 256 - (uint32_t)sign };
}

static uint32_t all_ones(uint32_t most)
{
    uint32_t ones = 1;
    while (ones < most)
        ones = 2 * ones + 1;
    return ones;
}

struct pair pair_combine(kb *k, int op, struct pair a, struct pair b)
{
    if (op == BIN_SUB)
        return subtract(k, a, b);
    while (op == BIN_ADD && a.most + b.most > HALF_MAX)
        *(a.most > b.most ? &a : &b) = cut(k, a.most > b.most ? a : b);
    const uint32_t larger = a.most > b.most ? a.most : b.most;
    switch (op) {
    case BIN_ADD: return (struct pair){ kb_add(k, a.v, b.v), a.most + b.most };
    case BIN_AND: return (struct pair){ kb_and(k, a.v, b.v), all_ones(larger) };
    case BIN_OR: return (struct pair){ kb_or(k, a.v, b.v), all_ones(larger) };
    default: return (struct pair){ kb_xor(k, a.v, b.v), all_ones(larger) };
    }
}

static kb_val widened(kb *k, kb_val byte) { return kb_cast(k, kb_bitcast(k, byte, TY_U8), TY_U32); }

/* The points sp[0] and sp[2], and the lets that have been evaluated for them. */
struct two {
    const struct stencil_point *sp;
    struct pair *let;
};

/* A value of a cell that is there already, its `four` or its `two`; else ir NULL. */
static kb_val known(kb *k, const struct cell *c, bool four)
{
    const struct emit_cached *v = !c ? NULL : four ? &c->four : &c->two;
    return v && v->value.ir && kb_reaches(k, v->place) ? v->value : (kb_val){ .ir = NULL };
}

static struct cell *beside(struct window *w, int input, const int *at, int columns)
{
    int there[SPACE_MAX] = { at[0], at[1], at[2] };
    there[w->rank - 1] += columns;
    return window_cell(w, input, 0, there);
}

enum { ODD_BYTES = 0x4341, MIDDLE = 0x5432 }; /* bytes 1 and 3, zeros between; upper half, lower half of the next */

/* Bytes 0 and 2 from the cell on, of two words, c's and the next: by one instruction of what is known, else by the four
 * bytes from it on, which the next column uses too. */
static kb_val across(struct window *w, struct cell *c, int input, const int *at, kb_val next)
{
    kb *k = w->g->k;
    const kb_val zero = kb_imm(k, TY_U32, 0);
    struct cell *const back = beside(w, input, at, -2), *const on = beside(w, input, at, 2),
                       *const before = beside(w, input, at, -1);
    const kb_val left = known(k, back, false), right = known(k, on, false), four = known(k, before, true);
    if (left.ir && right.ir)
        return kb_permute(k, left, right, MIDDLE);
    if (four.ir)
        return kb_permute(k, four, zero, ODD_BYTES);
    c->four = (struct emit_cached){ kb_permute(k, c->word, next, c->byte == 2 ? MIDDLE : 0x6543), kb_place(k) };
    return kb_and(k, c->four.value, BYTES);
}

/* Of one word, of two words, or loaded byte by byte. */
struct pair pair_read(struct window *w, int input, const int *at)
{
    kb *k = w->g->k;
    int on[SPACE_MAX] = { at[0], at[1], at[2] };
    on[w->rank - 1] += 2;
    struct cell *const c = window_cell(w, input, 0, at), *const other = window_cell(w, input, 0, on);
    kb_val two = known(k, c, false);
    if (two.ir)
        return (struct pair){ two, 255 };
    if (!c || !other || !c->word.ir || !other->word.ir)
        two = kb_permute(k, widened(k, window_read(w, input, 0, at)), widened(k, window_read(w, input, 0, on)), 0x5410);
    else if (c->word.ir != other->word.ir)
        two = across(w, c, input, at, other->word);
    else
        two = c->byte ? kb_permute(k, c->word, kb_imm(k, TY_U32, 0), ODD_BYTES) : kb_and(k, c->word, BYTES);
    if (c)
        c->two = (struct emit_cached){ two, kb_place(k) };
    return (struct pair){ two, 255 };
}

/* What the points sp[0] and sp[2] read. */
static struct pair read_pair(const struct stencil_point *sp, const struct expr *e)
{
    int at[SPACE_MAX] = { 0 };
    for (int d = 0; d < sp->w->rank; d++)
        at[d] = sp->at[d] + (e->noffsets ? e->offset[d] : 0);
    return pair_read(sp->w, e->which, at);
}

static struct pair evaluate(const struct two *t, const struct expr *e);

static struct pair evaluate_let(const struct two *t, int which)
{
    if (!t->let[which].v.ir)
        t->let[which] = evaluate(t, t->sp->w->g->p->let[which].value);
    return t->let[which];
}

static struct pair evaluate(const struct two *t, const struct expr *e)
{
    kb *k = t->sp->w->g->k;
    switch (e->kind) {
    case EX_CONST: return (struct pair){ kb_imm(k, TY_U32, (e->imm.i & 255) * HALVES), (uint32_t)e->imm.i & 255 };
    case EX_INPUT: return read_pair(t->sp, e);
    case EX_LET: return evaluate_let(t, e->which);
    case EX_CAST: return evaluate(t, e->arg[0]);
    case EX_UNARY: return subtract(k, (struct pair){ kb_imm(k, TY_U32, 0), 0 }, evaluate(t, e->arg[0]));
    default: break;
    }
    const bool first = e->arg[0]->kind == EX_CONST;
    switch (e->op) {
    case BIN_MUL: return pair_scale(k, evaluate(t, e->arg[first]), (uint32_t)e->arg[!first]->imm.i & 255);
    case BIN_SHL:
        return pair_scale(k, evaluate(t, e->arg[0]), (e->arg[1]->imm.i & 255) < 8 ? 1U << e->arg[1]->imm.i : 0);
    case BIN_SHR: return shift_right(k, evaluate(t, e->arg[0]), e);
    default: return pair_combine(k, e->op, evaluate(t, e->arg[0]), evaluate(t, e->arg[1]));
    }
}

/* A shift comes last: it then serves all four. */
kb_val pairs_finish(kb *k, const struct expr *e, const struct expr *sum, kb_val four)
{
    enum { TOP = 128 };
    if (e == sum)
        return four;
    four = pairs_finish(k, e->arg[0], sum, four);
    if (e->kind == EX_CAST)
        return four;
    const int by = dropped(e);
    const int64_t each = 0x01010101, left = (255 >> by) * each, sign = (TOP >> by) * each;
    const kb_val v = kb_and(k, kb_shr(k, four, by), left);
    if (!ty_is_signed(e->type) || by == 0)
        return v;
    /* with the top bits set nothing is borrowed from the next byte */
    return kb_xor(k, kb_sub(k, kb_xor(k, v, sign | TOP * each), sign), TOP * each);
}

kb_val pairs_four(kb *k, struct pair even, struct pair odd) { return kb_permute(k, even.v, odd.v, 0x6240); }

/* The four points from sp[0] on, in a word. */
static kb_val evaluate_four(const struct two *even, const struct two *odd, const struct expr *e)
{
    kb *k = even->sp->w->g->k;
    const struct expr *below = e;
    while (below->kind == EX_CAST || (below->kind == EX_BINARY && below->op == BIN_SHR))
        below = below->arg[0];
    return pairs_finish(k, e, below, pairs_four(k, evaluate(even, below), evaluate(odd, below)));
}

void packed_store(struct stencil_point *sp, int n, int o, const kb_val *word)
{
    struct window *w = sp->w;
    struct gen *g = w->g;
    kb *k = g->k;
    const kb_ptr bytes = sp->pt.outputs->at(&sp->pt, o);
    kb_ptr words = bytes;
    words.ty = TY_U32;
    kb_val all = kb_and(k, sp[0].exists, sp[n - 1].exists);
    for (int i = 0; i < n && sp[0].skip.ir; i++)
        all = kb_and(k, all, kb_not(k, sp[i].skip));
    kb_if(k, all) {
        kb_store_n(k, words, kb_imm(k, TY_I32, 0), n / 4, n < 16 ? n : 16, word);
    }
    kb_else
    {
        for (int i = 0; i < n && (w->skewed || sp[0].skip.ir); i++) { /* else all of a row or nothing exists */
            kb_if(k, stencil_written(&sp[i].pt, o)) {
                kb_store(k, bytes, i, kb_extract(k, word, i, bytes.ty));
            }
        }
    }
}

void packed_row(struct stencil_point *sp, int n)
{
    const struct problem *p = sp->w->g->p;
    kb *k = sp->w->g->k;
    struct pair *lets = kb_scratch(k, sizeof *lets * (size_t)(p->nlets * n / 2));
    for (int o = 0; o < p->noutputs; o++) {
        const struct output *out = &p->output[o];
        kb_val word[GEN_VECTOR_MAX / 4];
        if (output_moment(out) != AT_POINT || !lets)
            continue;
        for (int i = 0; i < n / 4; i++) {
            const struct two evens = { &sp[4 * i], lets + 2 * i * p->nlets },
                             odds = { &sp[4 * i + 1], lets + (2 * i + 1) * p->nlets };
            word[i] = evaluate_four(&evens, &odds, out->value[0]);
        }
        packed_store(sp, n, o, word);
    }
}
