/* SPDX-License-Identifier: Apache-2.0 */
/* dots.c - windows of bytes whose points are sums of many reads, each times a constant of its own.
 *
 *     for each plane that the window reads:
 *         load its words
 *         for each row of points that reads the plane, each word that covers terms (lower/stencil/dots.h), each point:
 *             add the products of its bytes and the constants to the point's sum
 *         store the points whose last plane this was
 *
 * Only the low eight bits of a sum count, so all bytes are taken without sign.  Words that begin anywhere are made of
 * those that were loaded, once for all points: of columns of a row by one permutation, of rows of a column by two, as two
 * columns share the first one.
 */
#include "llvmgen/builder/kb_target.h"
#include "lower/stencil/dots.h"
#include "packed.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 4, POINTS = 4 };

enum kind {
    LOADED, /* columns loaded one by one, in a word that begins where those of the row do */
    ACROSS, /* four columns of a row */
    PAIR,   /* two columns of a row, and of the next */
    DOWN,   /* four rows of a column */
};

/* A word of the plane, from a place on. */
struct made {
    enum kind kind;
    int input, at[SPACE_MAX];
    kb_val v;
};

/* A byte of a word; ir NULL: no point reads it. */
struct byte {
    kb_val word;
    int in;
};

struct products {
    struct window *w;
    kb *k;
    struct taps taps;
    struct dots *dots; /* of each row of the window */
    int first, last;   /* planes from the point's own that it reads */
    struct made *made;
    int nmade, capacity;
};

/* ---- words ------------------------------------------------------------------------------------------------------- */

static const struct made *find(const struct products *d, enum kind kind, int input, const int *at)
{
    for (int i = d->nmade - 1; i >= 0; i--) {
        const struct made *m = &d->made[i];
        if (m->kind == kind && m->input == input && !memcmp(m->at, at, sizeof m->at))
            return m;
    }
    return NULL;
}

static kb_val keep(struct products *d, enum kind kind, int input, const int *at, kb_val v)
{
    if (d->nmade == d->capacity) {
        const int capacity = d->capacity ? 2 * d->capacity : 64;
        struct made *more = realloc(d->made, sizeof *more * (size_t)capacity);
        if (!more)
            return v; /* made again where it is used next */
        d->made = more;
        d->capacity = capacity;
    }
    struct made *m = &d->made[d->nmade++];
    *m = (struct made){ .kind = kind, .input = input, .v = v };
    memcpy(m->at, at, sizeof m->at);
    return v;
}

/* A word of these bytes, by as few permutations as the words that they are in. */
static kb_val together(kb *k, struct byte b[WORD])
{
    kb_val all = { .ir = NULL };
    for (int i = 0; i < WORD && !all.ir; i++)
        all = b[i].word;
    if (!all.ir)
        return kb_imm(k, TY_U32, 0);
    const LLVMValueRef first = all.ir;
    int where[WORD]; /* of byte i in `all` */
    bool in_place = true, done[WORD];
    for (int i = 0; i < WORD; i++) {
        done[i] = !b[i].word.ir || b[i].word.ir == first;
        where[i] = b[i].word.ir == first ? b[i].in : i;
        in_place &= where[i] == i;
    }
    for (bool more = true; more;) {
        kb_val other = { .ir = NULL };
        unsigned which = 0;
        for (int i = 0; i < WORD; i++) {
            other = !done[i] && !other.ir ? b[i].word : other;
            const bool taken = !done[i] && b[i].word.ir == other.ir;
            which |= (unsigned)(taken ? WORD + b[i].in : where[i]) << 4 * i;
            done[i] |= taken;
        }
        more = other.ir != NULL;
        if (more || !in_place)
            all = kb_permute(k, all, more ? other : all, which);
        for (int i = 0; i < WORD; i++)
            where[i] = i;
        in_place = true;
    }
    return all;
}

static void moved(const struct window *w, const int *at, int rows, int columns, int to[SPACE_MAX])
{
    memcpy(to, at, SPACE_MAX * sizeof *to);
    if (w->rank > 1)
        to[w->rank - 2] += rows;
    to[w->rank - 1] += columns;
}

static kb_val widened(kb *k, kb_val byte) { return kb_cast(k, kb_bitcast(k, byte, TY_U8), TY_U32); }

/* Bytes that came alone are put into words first, which several others are made of. */
static struct byte loaded_alone(struct products *d, int input, const int *at)
{
    const struct window *w = d->w;
    const int skew = stencil_skew(w->g->c, w->rank, at), in = ((at[w->rank - 1] - skew) % WORD + WORD) % WORD;
    struct byte b[WORD];
    int from[SPACE_MAX];
    moved(w, at, 0, -in, from);
    const struct made *known = find(d, LOADED, input, from);
    if (known)
        return (struct byte){ known->v, in };
    for (int i = 0; i < WORD; i++) {
        int there[SPACE_MAX];
        moved(w, from, 0, i, there);
        const struct cell *c = window_cell(d->w, input, 0, there);
        b[i] = !c || !c->v.ir ? (struct byte){ .in = 0 }
               : c->word.ir   ? (struct byte){ c->word, c->byte }
                              : (struct byte){ widened(d->k, c->v), 0 };
    }
    return (struct byte){ keep(d, LOADED, input, from, together(d->k, b)), in };
}

static struct byte byte_at(struct products *d, int input, const int *at, int column)
{
    int there[SPACE_MAX];
    moved(d->w, at, 0, column, there);
    const struct cell *c = window_cell(d->w, input, 0, there);
    if (!c || !c->v.ir)
        return (struct byte){ .in = 0 };
    return c->word.ir ? (struct byte){ c->word, c->byte } : loaded_alone(d, input, there);
}

static kb_val across(struct products *d, int input, const int *at)
{
    const struct made *known = find(d, ACROSS, input, at);
    if (known)
        return known->v;
    struct byte b[WORD];
    for (int i = 0; i < WORD; i++)
        b[i] = byte_at(d, input, at, i);
    return keep(d, ACROSS, input, at, together(d->k, b));
}

/* Two columns of a row: where they are in two words, in one that has been made of these, if there is one. */
static void two_columns(struct products *d, int input, const int *at, struct byte b[2])
{
    b[0] = byte_at(d, input, at, 0);
    b[1] = byte_at(d, input, at, 1);
    for (int back = 0; back <= 2 && b[0].word.ir && b[1].word.ir && b[0].word.ir != b[1].word.ir; back++) {
        int from[SPACE_MAX];
        moved(d->w, at, 0, -back, from);
        const struct made *known = find(d, ACROSS, input, from);
        if (known) {
            b[0] = (struct byte){ known->v, back };
            b[1] = (struct byte){ known->v, back + 1 };
        }
    }
}

static kb_val pair(struct products *d, int input, const int *at)
{
    const struct made *known = find(d, PAIR, input, at);
    if (known)
        return known->v;
    struct byte b[WORD];
    int next[SPACE_MAX];
    moved(d->w, at, 1, 0, next);
    two_columns(d, input, at, b);
    two_columns(d, input, next, b + 2);
    return keep(d, PAIR, input, at, together(d->k, b));
}

/* second: it is the second one of the two columns that are made together. */
static kb_val down(struct products *d, int input, const int *at, int second)
{
    enum { UPPER = 0x6420, LOWER = 0x7531 };
    const struct made *known = find(d, DOWN, input, at);
    if (known)
        return known->v;
    int low[SPACE_MAX], high[SPACE_MAX];
    moved(d->w, at, 0, -second, low);
    moved(d->w, at, 2, -second, high);
    const kb_val two = pair(d, input, low), other = pair(d, input, high);
    return keep(d, DOWN, input, at, kb_permute(d->k, two, other, second ? LOWER : UPPER));
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

static struct products *new_products(struct window *w)
{
    const int rows = w->rank > 1 ? w->points[w->rank - 2] : 1;
    struct products *d = kb_scratch(w->g->k, sizeof *d);
    struct dots *dots = kb_scratch(w->g->k, sizeof *dots * (size_t)rows);
    if (!d || !dots)
        return NULL;
    *d = (struct products){ .w = w, .k = w->g->k, .dots = dots };
    stencil_taps(w->g->p, &d->taps);
    for (int y = 0; y < rows; y++)
        stencil_dots(&d->taps, w->rank, y, &dots[y]);
    for (int i = 0; i < d->taps.n; i++) {
        const int at = d->taps.tap[i].at[0];
        d->first = at < d->first ? at : d->first;
        d->last = at > d->last ? at : d->last;
    }
    return d;
}

/* Adds what plane z holds for a row of n points. */
static void add_row(struct products *d, const struct dots *dots, const struct stencil_point *sp, int n, int z,
                    kb_val *sum)
{
    const int rank = d->w->rank;
    for (int i = 0; i < dots->n; i++) {
        const struct dot *dot = &dots->dot[i];
        for (int x = 0; x < n && (rank < 3 || sp->at[0] + dot->at[0] == z); x++) {
            int at[SPACE_MAX] = { 0 };
            for (int a = 0; a < rank; a++)
                at[a] = sp[x].at[a] + dot->at[a];
            const kb_val word = dot->down ? down(d, dot->input, at, x % 2) : across(d, dot->input, at);
            sum[x] = kb_dot_bytes(d->k, word, kb_imm(d->k, TY_U32, dot->times), sum[x]);
        }
    }
}

static void store_row(struct products *d, struct stencil_point *sp, int n, const kb_val *sum)
{
    const struct problem *p = d->w->g->p;
    kb_val word[GEN_VECTOR_MAX / POINTS];
    for (int o = 0; o < p->noutputs; o++) {
        if (output_moment(&p->output[o]) != AT_POINT)
            continue;
        for (int i = 0; i < n / POINTS; i++) {
            const kb_val *const v = &sum[POINTS * i], low = kb_permute(d->k, v[0], v[1], 0x0040),
                                high = kb_permute(d->k, v[2], v[3], 0x0040);
            word[i] = pairs_finish(d->k, p->output[o].value[0], d->taps.sum, kb_permute(d->k, low, high, 0x5410));
        }
        packed_store(sp, n, o, word);
    }
}

/* Adds what plane z holds, for all rows of the window. */
static void add_plane(struct products *d, const struct stencil_point *sp, int z, kb_val *sum)
{
    const struct window *w = d->w;
    const int n = w->points[w->rank - 1], rows = w->rank > 1 ? w->points[w->rank - 2] : 1,
              planes = w->rank > 2 ? w->points[0] : 1;
    for (int i = 0; i < planes * rows; i++)
        add_row(d, &d->dots[i % rows], &sp[i * n], n, z, &sum[i * n]);
    d->nmade = 0; /* words have no use beyond their plane */
}

/* The same where points exist.  Else LLVM would move the products to where a row is stored, if nothing else uses it, and
 * the words of all planes would live until there: ptxas 13 took 188 registers for 16 points of 125 terms, and takes 96 so. */
static void add_plane_where(struct products *d, const struct stencil_point *sp, int z, kb_val exist, kb_val *sum, int n)
{
    kb *k = d->k;
    kb_var *var = kb_scratch(k, sizeof *var * (size_t)n);
    for (int i = 0; var && i < n; i++)
        var[i] = kb_var_new(k, sum[i], "sum");
    kb_if(k, exist) {
        add_plane(d, sp, z, sum);
        for (int i = 0; var && i < n; i++)
            kb_set(k, var[i], sum[i]);
    }
    for (int i = 0; var && i < n; i++)
        sum[i] = kb_get(k, var[i]);
}

void packed_dots(struct window *w, struct stencil_point *sp)
{
    const int n = w->points[w->rank - 1], rows = w->rank > 1 ? w->points[w->rank - 2] : 1,
              planes = w->rank > 2 ? w->points[0] : 1, points = planes * rows * n;
    struct products *d = new_products(w);
    kb_val *sum = kb_scratch(w->g->k, sizeof *sum * (size_t)points);
    if (!d || !sum)
        return;
    kb_val exist = sp[0].exists;
    for (int i = 0; i < points; i++) {
        sum[i] = kb_imm(d->k, TY_U32, d->taps.plus);
        exist = kb_or(d->k, exist, sp[i].exists);
    }
    for (int i = 0; i < w->ncells; i++)
        w->cell[i].late = true;
    for (int z = d->first; z < planes + d->last; z++) {
        packed_plane(w, z);
        if (w->place == PLACE_INSIDE)
            add_plane(d, sp, z, sum);
        else
            add_plane_where(d, sp, z, exist, sum, points);
        for (int i = 0; i < planes * rows; i++)
            if (z == i / rows + d->last)
                store_row(d, &sp[i * n], n, &sum[i * n]);
    }
    free(d->made);
}
