/* SPDX-License-Identifier: Apache-2.0 */
/* tile.c - scans of many short segments, a thread each, in shared memory.
 *
 *     fetch    the block's planes, a stretch of every input, arrive as whole words;  barrier
 *     scan     a thread walks along a segment from place to place of the tile, some positions at a time, then the next one
 *     leave    barrier;  the same stretch of every output leaves as whole words
 *
 * An output takes the place of an input of its width: a thread writes positions when it has read them.
 * Neighbouring threads have neighbouring columns of a plane, or neighbouring rows.  Their places lie a plane apart, so
 * planes of an even number of runs are a run further apart in the tile: lanes then meet few banks twice.  As in
 * segreduce.tile, memory sees neither the shape of segments nor the width of elements.
 */
#include "llvmgen/scan/scan_gen.h"

#include "lower/segscan/segscan.h"

enum { WORD = 4, AT_ONCE = 4 };

/* An array's part of the tile, in units: words, or elements that are wider. */
struct moved {
    kb_ptr tile, array;   /* as units; the array from the block's first element on */
    int per, bytes;       /* elements of a unit, its bytes */
    kb_val free;          /* i32: units after a plane */
    kb_ptr element, from; /* the same as elements, the former from the thread's own first one on */
};

struct tile {
    struct gen *g;
    struct moved of[2 * PROBLEM_ARGS_MAX];
    kb_val planes, inner, plane; /* i32: of a block; elements across a plane, and in it */
    kb_val first, count;         /* i64, i32: the block's first element, and how many it has */
};

/* What a thread scans of it; the items first, of which hooks get the address. */
struct part {
    struct items h;
    const struct tile *t;
    kb_val at; /* i32: elements from the beginning of the segment's part of the tile */
};

/* A plane of whole units has an even number of runs: one more is left free. */
static kb_val units_free(const struct tile *t, int per)
{
    kb *k = t->g->k;
    const kb_val zero = kb_imm(k, TY_I32, 0), one = kb_imm(k, TY_I32, 1);
    const kb_val whole = kb_eq(k, kb_rem(k, t->inner, per), 0); /* runs of whole units */
    const kb_val run = kb_select(k, whole, kb_div(k, t->inner, per), one);
    const kb_val length = kb_cast(k, gen_value(t->g, VAL_LENGTH), TY_I32);
    const kb_val runs = kb_select(k, whole, length, kb_div(k, t->plane, per));
    const kb_val even = kb_and(k, kb_eq(k, kb_rem(k, t->plane, per), 0), kb_eq(k, kb_rem(k, runs, 2), 0));
    return kb_select(k, even, run, zero);
}

static void moved_new(struct tile *t, int i)
{
    struct gen *g = t->g;
    kb *k = g->k;
    struct moved *m = &t->of[i];
    const int stride = segscan_tile_moved(g->p, i);
    const kb_ptr array = i < g->p->ninputs ? gen_input(g, i) : gen_output(g, i - g->p->ninputs);
    const enum ty unit = stride <= WORD ? TY_U32 : TY_U64;
    m->bytes = stride < WORD ? WORD : stride;
    m->per = m->bytes / stride;
    const int place = segscan_tile_place(g->p, i);
    m->tile = place < i ? t->of[place].tile
                        : kb_shared_v(k, unit, (int)scan_tile_elements(g->c) / m->per, problem_array(g->p, i)->name);
    m->from = kb_advance(k, array, t->first);
    m->array = ptr_as(m->from, unit);
    m->free = kb_name(units_free(t, m->per), "free");
}

/* The plane of the block's element number `e`; exact while the product of both is less than 2^32.  The reciprocal is an
 * argument of 32 bits: of one whose upper half is masked out LLVM makes a product of 64 bits, and ptxas 13.0 takes the upper
 * half of another product, where it is multiplied in a loop (seen on an H200: places outside shared memory). */
static kb_val plane_of(const struct tile *t, kb_val e)
{
    kb *k = t->g->k;
    const kb_val reciprocal = kb_cast(k, gen_value(t->g, VAL_RECIPROCAL), TY_U32);
    return kb_cast(k, kb_mul_high(k, kb_cast(k, e, TY_U32), reciprocal), TY_I32);
}

static kb_val place_of(const struct tile *t, const struct moved *m, kb_val unit)
{
    kb *k = t->g->k;
    return kb_add(k, unit, kb_mul(k, plane_of(t, kb_mul(k, unit, m->per)), m->free));
}

/* ---- between memory and the tile --------------------------------------------------------------------------------- */

typedef void move_fn(const struct tile *t, const struct moved *m, kb_val unit, int n);

/* Unit number j of those that a thread moves at once, whose first one is number `unit`. */
static kb_val unit_place(const struct tile *t, const struct moved *m, kb_val unit, int j)
{
    kb *k = t->g->k;
    return place_of(t, m, kb_add(k, unit, j * kb_threads(k)));
}

static void fetch_units(const struct tile *t, const struct moved *m, kb_val unit, int n)
{
    kb *k = t->g->k;
    const kb_ptr from = kb_advance(k, m->array, unit);
    kb_val x[AT_ONCE];
    for (int j = 0; j < n; j++) {
        const kb_val at = kb_imm(k, TY_I32, j * kb_threads(k));
        if (kb_has_copy(k))
            kb_copy(k, m->bytes, m->tile, unit_place(t, m, unit, j), from, at);
        else
            x[j] = kb_load(k, from, at);
    }
    for (int j = 0; j < n && !kb_has_copy(k); j++)
        kb_store(k, m->tile, unit_place(t, m, unit, j), x[j]);
}

static void leave_units(const struct tile *t, const struct moved *m, kb_val unit, int n)
{
    kb *k = t->g->k;
    const kb_ptr to = kb_advance(k, m->array, unit);
    kb_val x[AT_ONCE];
    for (int j = 0; j < n; j++)
        x[j] = kb_load(k, m->tile, unit_place(t, m, unit, j));
    for (int j = 0; j < n; j++)
        kb_store(k, to, j * kb_threads(k), x[j]);
}

/* All whole units of the block's stretch. */
static void move_units(const struct tile *t, const struct moved *m, move_fn *move)
{
    kb *k = t->g->k;
    const int threads = kb_threads(k);
    const kb_val units = kb_div(k, t->count, m->per);
    const kb_val rounds = kb_div(k, units, AT_ONCE * threads);
    LET(whole, kb_mul(k, rounds, AT_ONCE * threads));
    kb_for(k, unit, kb_imm(k, TY_I32, 0), whole, AT_ONCE * threads) {
        move(t, m, kb_add(k, unit, kb_tid(k)), AT_ONCE);
    }
    kb_for(k, unit, kb_add(k, whole, kb_tid(k)), units, threads) {
        move(t, m, unit, 1);
    }
}

/* The elements after the last whole unit, which only the last block may have: a thread each. */
static void move_rest(const struct tile *t, const struct moved *m, bool in)
{
    kb *k = t->g->k;
    if (m->per == 1)
        return;
    const kb_val whole = kb_mul(k, kb_div(k, t->count, m->per), m->per), e = kb_add(k, whole, kb_tid(k));
    kb_if(k, kb_lt(k, e, t->count)) {
        const kb_ptr tile = ptr_as(m->tile, m->from.ty);
        const kb_val place = kb_add(k, e, kb_mul(k, kb_mul(k, plane_of(t, e), m->free), m->per));
        if (in)
            kb_store(k, tile, place, kb_load(k, m->from, e));
        else
            kb_store(k, m->from, e, kb_load(k, tile, place));
    }
}

static void fetch(const struct tile *t)
{
    kb *k = t->g->k;
    for (int i = 0; i < t->g->p->ninputs; i++)
        if (segscan_tile_moved(t->g->p, i)) {
            move_units(t, &t->of[i], fetch_units);
            move_rest(t, &t->of[i], true);
        }
    if (kb_has_copy(k)) {
        kb_copy_commit(k);
        kb_copy_wait(k, 0);
    }
}

static void leave(const struct tile *t)
{
    const struct problem *p = t->g->p;
    for (int i = p->ninputs; i < p->ninputs + p->noutputs; i++)
        if (segscan_tile_moved(p, i)) {
            move_units(t, &t->of[i], leave_units);
            move_rest(t, &t->of[i], false);
        }
}

/* ---- a segment --------------------------------------------------------------------------------------------------- */

static kb_val place_at(const struct part *s, int i)
{
    kb *k = s->t->g->k;
    const kb_val far = kb_mul(k, s->t->inner, i);
    return s->t->g->p->reverse ? kb_sub(k, s->at, far) : kb_add(k, s->at, far);
}

static enum store_way kept_way(void *of, int output)
{
    (void)of, (void)output;
    return STORE_KEPT;
}

static void keep(void *of, int output, int i, const kb_val *x)
{
    const struct part *s = of;
    const struct moved *m = &s->t->of[s->t->g->p->ninputs + output];
    kb_store(s->t->g->k, m->element, place_at(s, i), x[0]);
}

/* n positions from `base` on. */
static void scan_part(struct part *s, struct scan_segment *segment, kb_val base, int n, struct run_var carry)
{
    struct gen *g = s->t->g;
    kb *k = g->k;
    const kb_val own = kb_imm(k, TY_I32, 0);
    const kb_val number = kb_cast(k, base, TY_I32), length = kb_cast(k, segment->length, TY_I32);
    const kb_val position = g->p->reverse ? kb_sub(k, kb_sub(k, length, 1), number) : number;
    s->h = (struct items){ .g = g, .segment = segment, .n = n, .base = base, .own = own, .whole = true };
    s->h.valid = kb_imm(k, TY_I32, n);
    s->h.full = kb_true(k);
    s->h.is_start = kb_eq(k, base, 0);
    s->at = kb_mul(k, position, s->t->inner);
    for (int i = 0; i < n; i++) {
        s->h.head[i] = kb_false(k);
        for (int a = 0, slot = 0; a < g->p->ninputs; a++)
            if (segscan_tile_moved(g->p, a))
                s->h.direct[i].v[slot++] = kb_load(k, s->t->of[a].element, place_at(s, i));
    }
    if (scan_trailing(g->p))
        items_know_indices(&s->h, true);
    items_contribute(&s->h);
    items_scan(&s->h, run_get(g, carry), NULL);
    struct places places = items_places(&s->h);
    places.of = s;
    places.way = kept_way;
    places.keep = keep;
    places_store(&places);
    run_set(g, carry, run_of(g, items_last(&s->h), kb_false(k)));
}

/* One of the block's. */
static void scan_segment(struct tile *t, kb_val number, kb_val row, kb_val column)
{
    struct gen *g = t->g;
    kb *k = g->k;
    const int n = gen_tunable(g, TN_VECTOR);
    struct scan_segment segment;
    struct part s = { .t = t };
    const kb_val zero = kb_imm(k, TY_I64, 0);
    segment_open(g, &segment, number);
    for (int i = 0; i < g->p->ninputs + g->p->noutputs; i++)
        if (segscan_tile_moved(g->p, i)) {
            struct moved *m = &t->of[i];
            const kb_val pitch = kb_add(k, t->plane, kb_mul(k, m->free, m->per));
            m->element = kb_advance(k, ptr_as(m->tile, m->from.ty), kb_add(k, kb_mul(k, row, pitch), column));
        }
    struct run_var carry = run_var_new(g, run_none(g));
    LET(whole, kb_mul(k, kb_div(k, segment.length, n), n));
    kb_for(k, base, zero, whole, n) {
        scan_part(&s, &segment, base, n, carry);
    }
    if (n > 1)
        kb_for(k, base, whole, segment.length, 1) {
            scan_part(&s, &segment, base, 1, carry);
        }
    if (scan_has_totals(g->p))
        segment_finish(g, &segment, run_get(g, carry).x, kb_eq(k, segment.length, 0));
}

void emit_segscan_tile(struct gen *g)
{
    kb *k = g->k;
    gen_wait_for_predecessor(g);
    struct tile t = { .g = g };
    LET(inner, gen_value(g, VAL_COLUMNS));
    LET(planes, gen_value(g, VAL_PER_TILE));
    LET(plane, kb_mul(k, inner, kb_cast(k, gen_value(g, VAL_LENGTH), TY_I32)));
    t.inner = inner;
    t.planes = planes;
    t.plane = plane;
    const kb_val before = kb_mul(k, kb_cast(k, kb_block(k), TY_I64), kb_cast(k, planes, TY_I64));
    const kb_val segments = kb_mul(k, before, kb_cast(k, inner, TY_I64));
    LET(first, kb_mul(k, before, kb_cast(k, plane, TY_I64)));
    LET(left, kb_sub(k, gen_value(g, VAL_COUNT), first));
    t.first = first;
    t.count = kb_name(kb_cast(k, kb_min(k, left, kb_cast(k, kb_mul(k, planes, plane), TY_I64)), TY_I32), "count");
    kb_if(k, kb_gt(k, left, 0)) {
        for (int i = 0; i < g->p->ninputs + g->p->noutputs; i++)
            if (segscan_tile_moved(g->p, i))
                moved_new(&t, i);
        fetch(&t);
        kb_barrier(k);
        const kb_val columns = kb_cast(k, kb_mul(k, planes, inner), TY_I64);
        const kb_val mine = kb_min(k, kb_sub(k, gen_value(g, VAL_SEGMENTS), segments), columns);
        kb_for(k, q, kb_tid(k), kb_cast(k, mine, TY_I32), kb_threads(k)) {
            LET(row, kb_div(k, q, inner));
            const kb_val column = kb_sub(k, q, kb_mul(k, row, inner));
            scan_segment(&t, kb_add(k, segments, kb_cast(k, q, TY_I64)), row, column);
        }
        kb_barrier(k);
        leave(&t);
    }
}
