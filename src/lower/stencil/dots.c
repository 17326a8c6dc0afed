/* SPDX-License-Identifier: Apache-2.0 */
/* dots.c - covers of sums by words of four bytes; see dots.h.
 *
 * The word with the most terms that are not covered yet is taken next.  Words of a row cost less than those of a column,
 * which are made of two others.  Of 5 x 5 terms, five words have four columns each, one has four rows of the fifth column,
 * and one the corner: 7 instructions, where 6.25 would be the least.
 */
#include "dots.h"

#include <string.h>

enum { HALF = TAPS_SPAN / 2, WORD = 4, STARTS = TAPS_SPAN - WORD + 1 };

/* The terms of a plane of an input, by rows and columns; what is covered becomes 0. */
typedef uint8_t table[TAPS_SPAN][TAPS_SPAN];

static bool table_of(const struct taps *t, int rank, int input, int plane, table terms)
{
    bool any = false;
    memset(terms, 0, sizeof(table));
    for (int i = 0; i < t->n; i++) {
        const struct tap *tap = &t->tap[i];
        if (tap->input != input || (rank > 2 && tap->at[0] != plane))
            continue;
        terms[(rank > 1 ? tap->at[rank - 2] : 0) + HALF][tap->at[rank - 1] + HALF] = tap->times;
        any = true;
    }
    return any;
}

/* Where the byte number i of a word lies in the table. */
static uint8_t *byte_of(table terms, bool down, int y, int x, int i)
{
    return down ? &terms[y + i][x] : &terms[y][x + i];
}

static int terms_in(table terms, bool down, int y, int x)
{
    int n = 0;
    for (int i = 0; i < WORD; i++)
        n += *byte_of(terms, down, y, x, i) != 0;
    return n;
}

struct found {
    bool down;
    int y, x, terms, far;
};

/* Are there terms of its column both before and after a word?  They would be in two words. */
static bool amid(table terms, int y, int x)
{
    bool before = false, after = false;
    for (int i = 0; i < TAPS_SPAN; i++) {
        before |= i < y && terms[i][x];
        after |= i >= y + WORD && terms[i][x];
    }
    return before && after;
}

/* How little a word shares with others: one that begins near those of its row has most words in common with them, as the
 * points are neighbours; words of columns are shared by two rows of points if they begin one row earlier in the second. */
static int far_from(table terms, const struct dots *d, int from, int rank, int row, const struct found *f)
{
    enum { AMID = 2 };
    int far = f->down ? AMID * amid(terms, f->y, f->x) + ((f->y + row % 2 + 1 - HALF) % WORD != 0) : f->x;
    for (int i = from; i < d->n && !f->down; i++) {
        const int apart = d->dot[i].at[rank - 1] + HALF - f->x, away = apart < 0 ? -apart : apart;
        if (!d->dot[i].down && (rank < 2 || d->dot[i].at[rank - 2] + HALF == f->y) && away < far)
            far = away;
    }
    return far;
}

static void try_word(table terms, const struct dots *d, int from, int rank, int row, struct found f, struct found *best)
{
    f.terms = terms_in(terms, f.down, f.y, f.x);
    if (f.terms == 0 || f.terms < best->terms)
        return;
    f.far = far_from(terms, d, from, rank, row, &f);
    if (f.terms > best->terms || (f.down == best->down && f.far < best->far))
        *best = f;
}

static struct found best_word(table terms, const struct dots *d, int from, int rank, int row)
{
    struct found best = { .terms = 0 };
    for (int y = 0; y < TAPS_SPAN; y++)
        for (int x = 0; x < STARTS; x++)
            try_word(terms, d, from, rank, row, (struct found){ false, y, x, 0, 0 }, &best);
    for (int y = 0; y < STARTS && rank > 1; y++)
        for (int x = 0; x < TAPS_SPAN; x++)
            try_word(terms, d, from, rank, row, (struct found){ true, y, x, 0, 0 }, &best);
    return best;
}

static void cover(table terms, int input, int plane, int rank, int row, struct dots *d)
{
    const int from = d->n;
    for (struct found f; (f = best_word(terms, d, from, rank, row)).terms;) {
        struct dot *dot = &d->dot[d->n++];
        *dot = (struct dot){ .input = input, .down = f.down };
        dot->at[0] = plane;
        if (rank > 1)
            dot->at[rank - 2] = f.y - HALF;
        dot->at[rank - 1] = f.x - HALF;
        for (int i = 0; i < WORD; i++) {
            uint8_t *const times = byte_of(terms, f.down, f.y, f.x, i);
            dot->times |= (uint32_t)*times << 8 * i;
            *times = 0;
        }
    }
}

void stencil_dots(const struct taps *t, int rank, int row, struct dots *d)
{
    int inputs = 0;
    d->n = 0;
    for (int i = 0; i < t->n; i++)
        inputs = t->tap[i].input >= inputs ? t->tap[i].input + 1 : inputs;
    for (int input = 0; input < inputs; input++)
        for (int plane = rank > 2 ? -HALF : 0; plane < (rank > 2 ? HALF : 1); plane++) {
            table terms;
            if (table_of(t, rank, input, plane, terms))
                cover(terms, input, plane, rank, row, d);
        }
}

/* Instructions for four points, with what two rows of a window share.  So: a product for each point and, of each row's
 * word, half of three permutations, of a column's eight.  Two points to a word: two products and one that takes the
 * halves, or cuts them back. */
bool stencil_dots_pay(const struct taps *t, int rank)
{
    enum { ACROSS = 6, DOWN = 10, PACKED = 3 };
    struct dots d;
    int cost = 0;
    stencil_dots(t, rank, 0, &d);
    for (int i = 0; i < d.n; i++)
        cost += d.dot[i].down ? DOWN : ACROSS;
    return cost < PACKED * t->n;
}
