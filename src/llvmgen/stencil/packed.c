/* SPDX-License-Identifier: Apache-2.0 */
/* packed.c - rows of bytes, four points in two words.
 *
 * Bytes that are only added, subtracted, multiplied by constants and combined bit by bit need no more than their low
 * eight bits on the way: the points 0 and 2 of four are the halves of one word, 1 and 3 those of another, so that a
 * word's arithmetic serves two points.  A half must not overflow into the other: how large its value can be is known
 * when the kernel is generated, differences are lifted by a multiple of 256, and what would grow beyond 16 bits is cut
 * back to 8. At the end the low bytes of both words are put together.
 */
#include "stencil_gen.h"

#include "llvmgen/builder/kb_target.h"

enum { BYTES = 0x00ff00ff, HALVES = 0x00010001, HALF_MAX = 0xffff };

/* Two points, one per half, and the largest value that a half can have. */
struct pair {
    kb_val v; /* u32 */
    uint32_t most;
};

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

static struct pair scale(kb *k, struct pair a, uint32_t by)
{
    if (a.most * by > HALF_MAX)
        a = cut(k, a);
    return (struct pair){ kb_mul(k, a.v, by), a.most * by };
}

static uint32_t all_ones(uint32_t most)
{
    uint32_t ones = 1;
    while (ones < most)
        ones = 2 * ones + 1;
    return ones;
}

static struct pair combine(kb *k, int op, struct pair a, struct pair b)
{
    if (op == BIN_SUB)
        return subtract(k, a, b);
    if (op == BIN_ADD && a.most + b.most > HALF_MAX) {
        a = cut(k, a);
        b = cut(k, b);
    }
    const uint32_t larger = a.most > b.most ? a.most : b.most;
    switch (op) {
    case BIN_ADD: return (struct pair){ kb_add(k, a.v, b.v), a.most + b.most };
    case BIN_AND: return (struct pair){ kb_and(k, a.v, b.v), all_ones(larger) };
    case BIN_OR: return (struct pair){ kb_or(k, a.v, b.v), all_ones(larger) };
    default: return (struct pair){ kb_xor(k, a.v, b.v), all_ones(larger) };
    }
}

static kb_val widened(kb *k, kb_val byte) { return kb_cast(k, kb_bitcast(k, byte, TY_U8), TY_U32); }

/* Bytes 0 and 2 of the cell's word, or 1 and 3. */
static kb_val every_other(kb *k, const struct cell *c)
{
    return kb_and(k, c->byte % 2 ? kb_shr(k, c->word, 8) : c->word, BYTES);
}

/* The points sp[0] and sp[2], and the lets that have been evaluated for them. */
struct two {
    const struct stencil_point *sp;
    struct pair *let;
};

/* What the points sp[0] and sp[2] read: of one word, of two words, or loaded byte by byte. */
static struct pair read_pair(const struct stencil_point *sp, const struct expr *e)
{
    kb *k = sp->w->g->k;
    const struct cell *cell[2];
    kb_val half[2];
    for (int i = 0; i < 2; i++) {
        int at[SPACE_MAX] = { 0 };
        for (int d = 0; d < sp->w->rank; d++)
            at[d] = sp[2 * i].at[d] + (e->noffsets ? e->offset[d] : 0);
        half[i] = widened(k, window_read(sp->w, e->which, 0, at));
        cell[i] = window_cell(sp->w, e->which, 0, at);
    }
    const bool words = cell[0] && cell[1] && cell[0]->word.ir && cell[1]->word.ir;
    if (words && cell[0]->word.ir == cell[1]->word.ir)
        return (struct pair){ every_other(k, cell[0]), 255 };
    if (words)
        return (struct pair){ kb_or(k, kb_shr(k, every_other(k, cell[0]), 16), kb_shl(k, every_other(k, cell[1]), 16)),
                              255 };
    return (struct pair){ kb_or(k, half[0], kb_shl(k, half[1], 16)), 255 };
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
    if (e->op != BIN_MUL)
        return combine(k, e->op, evaluate(t, e->arg[0]), evaluate(t, e->arg[1]));
    const bool first = e->arg[0]->kind == EX_CONST;
    return scale(k, evaluate(t, e->arg[first]), (uint32_t)e->arg[!first]->imm.i & 255);
}

/* Words at once where all points exist, else byte by byte. */
static void store_words(struct stencil_point *sp, int n, int o, const kb_val *word)
{
    struct window *w = sp->w;
    struct gen *g = w->g;
    kb *k = g->k;
    const kb_ptr bytes = sp->pt.outputs->at(&sp->pt, o);
    kb_ptr words = bytes;
    words.ty = TY_U32;
    kb_if(k, kb_and(k, sp[0].exists, sp[n - 1].exists)) {
        kb_store_n(k, words, kb_imm(k, TY_I32, 0), n / 4, n < 16 ? n : 16, word);
    }
    kb_else
    {
        for (int i = 0; i < n && w->skewed; i++) { /* else all of a row or nothing exists */
            kb_if(k, sp[i].exists) {
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
            const kb_val even = kb_and(k, evaluate(&evens, out->value[0]).v, BYTES),
                         odd = kb_and(k, evaluate(&odds, out->value[0]).v, BYTES);
            word[i] = kb_or(k, even, kb_shl(k, odd, 8));
        }
        store_words(sp, n, o, word);
    }
}
