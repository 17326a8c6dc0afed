/* SPDX-License-Identifier: Apache-2.0 */
/* sums.c - windows of bytes whose points are sums of many reads, which share what they have in common.
 *
 *     for each plane that the window reads:
 *         load its words
 *         sums of a row's neighbouring columns: once for all points of the window whose terms they are
 *         sums of neighbouring rows of these: once for all planes of points that they are terms of
 *         add these, times a constant, to the points of each plane that reads them
 *         store the points whose last plane this was
 *
 * Rows of terms that are equal but for a constant have the same sum, and so have planes; a box of equal terms has one of
 * either.  A sum of a run of equal terms follows from that of the run one column, row or plane before: what enters is
 * added, what leaves is subtracted.  All of this is done with pairs of bytes (packed.c).
 */
#include "llvmgen/builder/kb_target.h"
#include "lower/stencil/taps.h"
#include "packed.h"

#include <stdlib.h>
#include <string.h>

enum { RUN_MIN = 4 }; /* shorter ones are added up as fast */

/* Terms at neighbouring columns, from the first to the last one that counts, divided by what all have in common. */
struct row {
    int from, n;
    bool run; /* all are equal */
    uint8_t times[TAPS_SPAN];
};

/* Rows, each times a constant, at so many rows from the point. */
struct line {
    int at, row;
    uint8_t times;
};

struct plane {
    int n;
    bool run; /* one row's pattern, at neighbouring rows */
    struct line line[TAPS_SPAN];
};

struct term {
    int input, at, plane;
    uint8_t times;
};

/* A row or plane of terms that has been added up for the points at a row and column of a plane, and two columns on. */
struct part {
    bool of_plane;
    int input, number, at[SPACE_MAX];
    struct pair v;
};

struct sums {
    struct window *w;
    kb *k;
    struct taps taps;
    int nrows, nplanes, nterms, nparts;
    int first, last; /* planes from the point's own that it reads */
    bool run; /* one plane's pattern, at neighbouring planes of which every row begins where that of the other does */
    struct row row[TAPS_MAX];
    struct plane plane[TAPS_MAX];
    struct term term[TAPS_MAX];
    struct part *part;
    int capacity;
};

typedef uint8_t table[TAPS_SPAN][TAPS_SPAN][TAPS_SPAN];

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

/* The terms of a row; false: it has none.  *times: what all have in common, which they are divided by. */
static bool row_of(const uint8_t *terms, struct row *r, uint8_t *times)
{
    bool equal = true;
    *r = (struct row){ .n = 0 };
    *times = 0;
    for (int x = 0; x < TAPS_SPAN; x++) {
        if (!terms[x])
            continue;
        r->from = *times ? r->from : x - TAPS_SPAN / 2;
        *times = *times ? *times : terms[x];
        equal &= terms[x] == *times;
        r->n = x - TAPS_SPAN / 2 - r->from + 1;
    }
    r->run = equal;
    for (int i = 0; i < r->n; i++) {
        r->times[i] = terms[r->from + TAPS_SPAN / 2 + i];
        r->run &= r->times[i] != 0;
        r->times[i] = equal && r->times[i] ? 1 : r->times[i];
    }
    *times = equal ? *times : 1;
    return r->n > 0;
}

static bool same_row(const struct row *a, const struct row *b)
{
    return a->from == b->from && a->n == b->n && a->run == b->run && !memcmp(a->times, b->times, sizeof a->times);
}

static int number_of_row(struct sums *s, const struct row *r)
{
    int i = 0;
    while (i < s->nrows && !same_row(&s->row[i], r))
        i++;
    if (i == s->nrows)
        s->row[s->nrows++] = *r;
    return i;
}

static bool plane_of(struct sums *s, uint8_t terms[TAPS_SPAN][TAPS_SPAN], struct plane *p, uint8_t *times)
{
    bool equal = true;
    memset(p, 0, sizeof *p);
    for (int y = 0; y < TAPS_SPAN; y++) {
        struct row r;
        struct line l = { .at = y - TAPS_SPAN / 2 };
        if (!row_of(terms[y], &r, &l.times))
            continue;
        l.row = number_of_row(s, &r);
        p->line[p->n++] = l;
        equal &= l.times == p->line[0].times;
    }
    *times = equal && p->n ? p->line[0].times : 1;
    p->run = equal;
    for (int i = 0; i < p->n; i++) {
        p->line[i].times = equal ? 1 : p->line[i].times;
        p->run &= p->line[i].row == p->line[0].row && p->line[i].at == p->line[0].at + i;
    }
    return p->n > 0;
}

static bool same_plane(const struct plane *a, const struct plane *b)
{
    bool same = a->n == b->n;
    for (int i = 0; i < a->n && same; i++)
        same =
            a->line[i].at == b->line[i].at && a->line[i].row == b->line[i].row && a->line[i].times == b->line[i].times;
    return same;
}

static int number_of_plane(struct sums *s, const struct plane *p)
{
    int i = 0;
    while (i < s->nplanes && !same_plane(&s->plane[i], p))
        i++;
    if (i == s->nplanes)
        s->plane[s->nplanes++] = *p;
    return i;
}

/* What one input is read for. */
static void terms_of(struct sums *s, int input)
{
    table *t = kb_scratch(s->k, sizeof *t);
    for (int i = 0; t && i < s->taps.n; i++) {
        const struct tap *tap = &s->taps.tap[i];
        const int half = TAPS_SPAN / 2;
        if (tap->input == input)
            (*t)[tap->at[0] + half][tap->at[1] + half][tap->at[2] + half] = tap->times;
    }
    for (int z = 0; t && z < TAPS_SPAN; z++) {
        struct plane p;
        struct term term = { .input = input, .at = z - TAPS_SPAN / 2 };
        if (!plane_of(s, (*t)[z], &p, &term.times))
            continue;
        term.plane = number_of_plane(s, &p);
        s->first = s->nterms == 0 || term.at < s->first ? term.at : s->first;
        s->last = s->nterms == 0 || term.at > s->last ? term.at : s->last;
        s->term[s->nterms++] = term;
    }
}

/* Do halves hold all sums? */
static bool never_cut(const struct taps *t)
{
    enum { NEGATIVE = 128, BYTE = 255 };
    int most = 0;
    for (int i = 0; i < t->n; i++)
        most += t->tap[i].times >= NEGATIVE ? HALF_MAX : t->tap[i].times * BYTE;
    return most <= HALF_MAX;
}

static struct sums *new_sums(struct window *w)
{
    const int planes[] = { 1, 0, 0 };
    struct sums *s = kb_scratch(w->g->k, sizeof *s);
    if (!s)
        return NULL;
    s->w = w;
    s->k = w->g->k;
    stencil_taps(w->g->p, &s->taps);
    for (int i = 0; i < w->g->p->ninputs; i++)
        terms_of(s, i);
    s->run = s->nterms >= RUN_MIN && never_cut(&s->taps) && !(w->skewed && stencil_skew(w->g->c, w->rank, planes));
    for (int i = 0; i < s->nterms; i++) {
        const struct term *t = &s->term[i], *first = s->term;
        s->run &= t->input == first->input && t->plane == first->plane && t->times == 1 && t->at == first->at + i;
    }
    return s;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static const struct pair nothing = { .v = { .ir = NULL } };

static struct pair plus(kb *k, struct pair a, struct pair b)
{
    return !a.v.ir ? b : !b.v.ir ? a : pair_combine(k, BIN_ADD, a, b);
}

static struct pair times(kb *k, struct pair a, uint8_t by) { return by == 1 ? a : pair_scale(k, a, by); }

/* The sum of a run from that of the one before; what leaves is part of it, so no half borrows from the other. */
static struct pair follow(kb *k, struct pair before, struct pair enters, struct pair leaves)
{
    return (struct pair){ kb_sub(k, kb_add(k, before.v, enters.v), leaves.v), before.most };
}

static struct part *find_part(struct sums *s, const struct part *like)
{
    for (int i = s->nparts - 1; i >= 0; i--) {
        struct part *p = &s->part[i];
        if (p->of_plane == like->of_plane && p->input == like->input && p->number == like->number &&
            !memcmp(p->at, like->at, sizeof p->at))
            return p;
    }
    return NULL;
}

/* The same sum so many rows and columns on, if it is there and has never been cut back to bytes. */
static const struct part *beside(struct sums *s, const struct part *like, int rows, int columns, uint32_t most)
{
    struct part there = *like;
    there.at[1] += rows;
    there.at[2] += columns;
    const struct part *p = find_part(s, &there);
    return p && p->v.most == most ? p : NULL;
}

static struct pair keep(struct sums *s, const struct part *p)
{
    if (s->nparts == s->capacity) {
        const int capacity = s->capacity ? 2 * s->capacity : 64;
        struct part *more = realloc(s->part, sizeof *more * (size_t)capacity);
        if (!more)
            return p->v; /* added up again where it is read next */
        s->part = more;
        s->capacity = capacity;
    }
    s->part[s->nparts++] = *p;
    return p->v;
}

static struct pair term_at(struct sums *s, const struct part *row, int column)
{
    const int at[SPACE_MAX] = { row->at[0], row->at[1], row->at[2] + column };
    return pair_read(s->w, row->input, at);
}

static struct pair row_value(struct sums *s, int input, int number, const int *at)
{
    enum { BYTE = 255 };
    const struct row *r = &s->row[number];
    struct part p = { false, input, number, { at[0], at[1], at[2] }, nothing };
    const struct part *known = find_part(s, &p);
    if (known)
        return known->v;
    const uint32_t most = BYTE * (uint32_t)r->n;
    const bool slides = r->run && r->n >= RUN_MIN;
    const int last = r->from + r->n - 1;
    const struct part *before = slides ? beside(s, &p, 0, -1, most) : NULL,
                      *behind = slides ? beside(s, &p, 0, 1, most) : NULL;
    if (before)
        p.v = follow(s->k, before->v, term_at(s, &p, last), term_at(s, &p, r->from - 1));
    else if (behind)
        p.v = follow(s->k, behind->v, term_at(s, &p, r->from), term_at(s, &p, last + 1));
    for (int i = 0; i < r->n && !before && !behind; i++)
        if (r->times[i])
            p.v = plus(s->k, p.v, times(s->k, term_at(s, &p, r->from + i), r->times[i]));
    return keep(s, &p);
}

static struct pair line_value(struct sums *s, const struct part *plane, const struct line *l, int rows)
{
    const int at[SPACE_MAX] = { plane->at[0], plane->at[1] + l->at + rows, plane->at[2] };
    return row_value(s, plane->input, l->row, at);
}

static struct pair plane_value(struct sums *s, int input, int number, const int *at)
{
    const struct plane *plane = &s->plane[number];
    struct part p = { true, input, number, { at[0], at[1], at[2] }, nothing };
    const struct part *known = find_part(s, &p);
    if (known)
        return known->v;
    if (plane->run && plane->n >= RUN_MIN) {
        const struct pair enters = line_value(s, &p, &plane->line[plane->n - 1], 0);
        const struct part *before = beside(s, &p, -1, 0, enters.most * (uint32_t)plane->n);
        if (before) {
            const struct pair v = before->v; /* parts move when there are more */
            p.v = follow(s->k, v, enters, line_value(s, &p, &plane->line[0], -1));
        }
    }
    const bool follows = p.v.v.ir;
    for (int i = 0; i < plane->n && !follows; i++)
        p.v = plus(s->k, p.v, times(s->k, line_value(s, &p, &plane->line[i], 0), plane->line[i].times));
    return keep(s, &p);
}

/* Rows of terms have no use beyond their plane, nor have planes but where sums of planes slide. */
static void forget(struct sums *s)
{
    int n = 0;
    for (int i = 0; i < s->nparts; i++)
        if (s->run && s->part[i].of_plane)
            s->part[n++] = s->part[i];
    s->nparts = n;
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

void packed_plane(struct window *w, int z)
{
    for (int i = 0; i < w->ncells; i++)
        if (w->cell[i].at[0] == z)
            w->cell[i].late = false;
    window_fill(w);
}

static struct pair term_value(struct sums *s, const struct stencil_point *sp, const struct term *t)
{
    const int at[SPACE_MAX] = { sp->at[0] + t->at, sp->at[1], sp->at[2] };
    return times(s->k, plane_value(s, t->input, t->plane, at), t->times);
}

/* Adds what plane z holds for the points sp[0] and sp[2].  before: the sum of the same points one plane before, which
 * follow from it. */
static void add_plane(struct sums *s, const struct stencil_point *sp, int z, const struct pair *before,
                      struct pair *sum)
{
    const struct term *last = &s->term[s->nterms - 1];
    if (s->run && before) {
        struct term gone = s->term[0];
        gone.at--;
        if (z == sp->at[0] + last->at)
            *sum = follow(s->k, *before, term_value(s, sp, last), term_value(s, sp, &gone));
        return;
    }
    for (int i = 0; i < s->nterms; i++)
        if (sp->at[0] + s->term[i].at == z)
            *sum = plus(s->k, *sum, term_value(s, sp, &s->term[i]));
}

static void store_row(struct sums *s, struct stencil_point *sp, int n, const struct pair *sum)
{
    const struct problem *p = s->w->g->p;
    const uint8_t constant = s->taps.plus;
    const struct pair more = { kb_imm(s->k, TY_U32, constant * (int64_t)HALVES), constant };
    kb_val word[GEN_VECTOR_MAX / 4];
    for (int o = 0; o < p->noutputs; o++) {
        if (output_moment(&p->output[o]) != AT_POINT)
            continue;
        for (int i = 0; i < n / 4; i++) {
            const struct pair even = plus(s->k, constant ? more : nothing, sum[2 * i]),
                              odd = plus(s->k, constant ? more : nothing, sum[2 * i + 1]);
            word[i] = pairs_finish(s->k, p->output[o].value[0], s->taps.sum, pairs_four(s->k, even, odd));
        }
        packed_store(sp, n, o, word);
    }
}

/* What plane z holds, for all rows of the window, and those for which it is the last one that they read. */
static void take_plane(struct sums *s, struct stencil_point *sp, struct pair *sum, int z)
{
    struct window *w = s->w;
    const int n = w->points[2], rows = w->points[1], pairs = n / 2;
    for (int y = 0; y < rows; y++)
        for (int of = 0; of < w->points[0]; of++) {
            const int row = of * rows + y;
            for (int i = 0; i < pairs; i++)
                add_plane(s, &sp[row * n + 4 * (i / 2) + i % 2], z, of > 0 ? &sum[(row - rows) * pairs + i] : NULL,
                          &sum[row * pairs + i]);
            if (z == of + s->last)
                store_row(s, &sp[row * n], n, &sum[row * pairs]);
        }
}

void packed_sums(struct window *w, struct stencil_point *sp)
{
    struct sums *s = new_sums(w);
    struct pair *sum = kb_scratch(w->g->k, sizeof *sum * (size_t)(w->points[0] * w->points[1] * w->points[2] / 2));
    if (!s || !sum)
        return;
    for (int i = 0; i < w->ncells; i++)
        w->cell[i].late = true;
    for (int z = s->first; z < w->points[0] + s->last; z++) {
        packed_plane(w, z);
        take_plane(s, sp, sum, z);
        forget(s);
    }
    free(s->part);
}
