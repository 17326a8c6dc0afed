/* SPDX-License-Identifier: Apache-2.0 */
/* batch.c - staged elements of irregular segments are combined; see shares.h.
 *
 * Every lane has a chunk of consecutive elements.  Where segments end, they are marked by bits, of which a lane cuts
 * out those of its chunk.  It walks along the chunk and leaves a total at every end.  What lanes have left over is
 * joined by a segmented scan (Sengupta et al. 2007), shortened to the distance of the nearest end, and completes the
 * first total of each chunk.
 *
 * Where no segment has gone on, the padding element stands, if the operator has one.  Otherwise partials know that they
 * have nothing (`have`), and what is combined with them is chosen away: a user's operator sees more pairs then, but no
 * result depends on those.
 */
#include "shares.h"

enum { UNROLL = 4 };

/* A lane's chunk of a batch. */
struct chunk {
    kb_val stage;
    kb_val first; /* i32: position of the first element */
    kb_val at;    /* i32: its place in the stage */
    kb_val count; /* i32 */
};

/* May a state stand where an element of the first array has been? */
static bool fits_element(const struct shares *s)
{
    const struct gen *g = s->g;
    const struct prog_array *a = &g->p->input[s->stages.array[0].input].array;
    return g->nfields == 1 && a->nfields == 1 && a->stride == ty_bytes(g->field[0]);
}

void batch_init(struct shares *s)
{
    kb *k = s->g->k;
    const int warps = kb_threads(k) / KB_WARP;
    const kb_val own = kb_mul(k, kb_warp(k), KB_WARP);
    s->marks = kb_advance(k, kb_shared_v(k, TY_U32, warps * KB_WARP, "marks"), own);
    s->in_place = fits_element(s);
    if (s->in_place)
        return;
    s->totals = state_shared(s->g, warps * KB_WARP, "totals");
    for (int f = 0; f < s->totals.n; f++)
        s->totals.e[f] = kb_advance(k, s->totals.e[f], own);
}

/* The lane's chunk, and elements per chunk: an odd number, so that lanes read different banks. */
static struct chunk chunk_of(struct shares *s, const struct batch *b, kb_val *each)
{
    kb *k = s->g->k;
    LET(length, kb_sub(k, b->end, b->pos));
    *each = kb_or(k, kb_shr(k, kb_add(k, length, KB_WARP - 1), 5), 1);
    LET(mine, kb_mul(k, kb_lane(k), *each));
    return (struct chunk){ .stage = b->stage,
                           .first = kb_add(k, b->pos, mine),
                           .at = kb_add(k, b->at, mine),
                           .count = kb_max(k, kb_min(k, kb_sub(k, length, mine), *each), 0) };
}

/* Elements done, …, done + n - 1 of the chunk. */
static void chunk_points(struct shares *s, const struct chunk *c, kb_val done, int n, struct direct *d,
                         struct point *pt)
{
    kb *k = s->g->k;
    staged_load(&s->stages, c->stage, s->from, kb_add(k, c->at, done), n, d);
    for (int u = 0; u < n; u++) {
        segment_point(s->g, &pt[u], &s->here, s->from, kb_add(k, c->first, done), u);
        pt[u].direct = &d[u];
    }
}

/* All of the chunk's elements in order, UNROLL at a time and then one by one; `user` is take's. */
static void chunk_walk(struct shares *s, const struct chunk *c,
                       void (*take)(struct shares *s, const struct chunk *c, kb_val done, int n, void *user),
                       void *user)
{
    kb *k = s->g->k;
    LET(whole, kb_and(k, c->count, -UNROLL));
    kb_for(k, done, kb_imm(k, TY_I32, 0), whole, UNROLL) {
        take(s, c, done, UNROLL, user);
    }
    for (int u = 0; u + 1 < UNROLL; u++) {
        kb_if(k, kb_gt(k, kb_and(k, c->count, UNROLL - 1), u)) {
            take(s, c, kb_add(k, whole, u), 1, user);
        }
    }
}

static kb_val has(struct gen *g, const struct partial *p) { return g->padded ? kb_true(g->k) : kb_get(g->k, p->have); }

/* x after acc, or x alone where acc has nothing; no branch per element. */
static kb_tup appended(struct gen *g, kb_tup acc, kb_val have, kb_tup x)
{
    const kb_tup both = state_combine(g, acc, x);
    return g->padded ? both : kb_select(g->k, have, both, x);
}

static void set_have(struct gen *g, struct partial *p, kb_val have)
{
    if (!g->padded)
        kb_set(g->k, p->have, have);
}

/* The partial has x in lane 0, if `has` holds there, and nothing in the other lanes. */
static void set_in_lane0(struct gen *g, struct partial *p, kb_tup x, kb_val has)
{
    kb *k = g->k;
    kb_set(k, p->x, g->padded ? kb_select(k, kb_lane0(k), x, state_pad_value(g)) : x);
    set_have(g, p, kb_and(k, kb_lane0(k), has));
}

/* The partials of all lanes in order, in lane 0. */
static void gather(struct gen *g, struct partial *p)
{
    if (g->padded)
        kb_set(g->k, p->x, warp_reduce(g, kb_get(g->k, p->x), KB_WARP, valid_all()));
    else
        warp_reduce_some(g, p->x, p->have);
}

/* ---- no segment ends --------------------------------------------------------------------------------------------- */

static void take_elements(struct shares *s, const struct chunk *c, kb_val done, int n, void *into)
{
    struct direct d[UNROLL];
    struct point pt[UNROLL];
    chunk_points(s, c, done, n, d, pt);
    struct partial *p = into;
    kb_tup x = kb_get(s->g->k, p->x);
    for (int u = 0; u < n; u++)
        x = appended(s->g, x, u ? kb_true(s->g->k) : has(s->g, p), point_map(&pt[u]));
    kb_set(s->g->k, p->x, x);
    set_have(s->g, p, kb_true(s->g->k));
}

void batch_inside(struct shares *s, const struct batch *b)
{
    struct gen *g = s->g;
    kb *k = g->k;
    kb_val each;
    const struct chunk c = chunk_of(s, b, &each);
    if (state_commutative(g->p)) {
        chunk_walk(s, &c, take_elements, &s->open);
        kb_set(k, s->spread, kb_true(k));
        return;
    }
    struct partial part = partial_new(g, "part");
    chunk_walk(s, &c, take_elements, &part);
    gather(g, &part);
    kb_if(k, kb_lane0(k)) {
        partial_take(g, &s->open, kb_get(k, part.x));
    }
}

void share_gather_open(struct shares *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    if (!state_commutative(g->p))
        return;
    kb_if(k, share_uniform(kb_get(k, s->spread))) {
        gather(g, &s->open);
        set_in_lane0(g, &s->open, kb_get(k, s->open.x), has(g, &s->open));
        kb_set(k, s->spread, kb_false(k));
    }
}

/* ---- where segments end ------------------------------------------------------------------------------------------ */

/* Bit i: a segment ends with element i of the lane's chunk. */
static kb_val mark_ends(struct shares *s, const struct batch *b, kb_val each)
{
    kb *k = s->g->k;
    kb_store(k, s->marks, kb_lane(k), kb_imm(k, TY_U32, 0));
    kb_warp_sync(k); /* cleared before lanes mark each other's chunks */
    kb_if(k, b->mine) {
        LET(last, kb_sub(k, kb_sub(k, kb_get(k, s->now.end), 1), b->pos));
        const kb_val bit = kb_cast(k, kb_and(k, last, KB_WARP - 1), TY_U32);
        kb_atomic(k, KB_RMW_OR, s->marks, kb_shr(k, last, 5), kb_shl(k, kb_imm(k, TY_U32, 1), bit));
    }
    kb_warp_sync(k); /* all ends are marked */
    LET(first, kb_mul(k, kb_lane(k), each));
    LET(word, kb_shr(k, first, 5));
    const kb_val low = kb_cast(k, kb_load(k, s->marks, word), TY_U64);
    const kb_val high = kb_cast(k, kb_load(k, s->marks, kb_min(k, kb_add(k, word, 1), KB_WARP - 1)), TY_U64);
    const kb_val both = kb_or(k, kb_shl(k, high, 32), low);
    const kb_val own = kb_cast(k, kb_shr(k, both, kb_cast(k, kb_and(k, first, KB_WARP - 1), TY_U64)), TY_U32);
    return kb_and(k, own, kb_sub(k, kb_shl(k, kb_imm(k, TY_U32, 1), kb_cast(k, each, TY_U32)), 1));
}

/* The memory of a total: the element that the segment ends with, or a slot. */
static kb_arr total_memory(struct shares *s, kb_val stage)
{
    if (!s->in_place)
        return s->totals;
    kb_ptr p = staged_memory(&s->stages, 0, stage);
    p.ty = s->g->field[0];
    return (kb_arr){ .n = 1, .e = { p } };
}

/* Where a lane's walk is: ends of its chunk that are ahead, and the slot of the next one. */
struct walk {
    struct partial acc;
    kb_var marks, slot;
};

static void walk_elements(struct shares *s, const struct chunk *c, kb_val done, int n, void *user)
{
    struct walk *w = user;
    struct gen *g = s->g;
    kb *k = g->k;
    struct direct d[UNROLL];
    struct point pt[UNROLL];
    chunk_points(s, c, done, n, d, pt);
    const kb_val marks = kb_get(k, w->marks);
    kb_arr memory = total_memory(s, c->stage);
    for (int f = 0; f < memory.n && s->in_place; f++)
        memory.e[f] = kb_advance(k, memory.e[f], kb_add(k, c->at, done));
    kb_val have = has(g, &w->acc);
    for (int u = 0; u < n; u++) {
        const kb_tup total = appended(g, kb_get(k, w->acc.x), have, point_map(&pt[u]));
        const kb_val ends = kb_ne(k, kb_and(k, marks, 1 << u), 0), slot = kb_get(k, w->slot);
        kb_if(k, ends) {
            kb_store(k, memory, s->in_place ? kb_imm(k, TY_I32, u) : slot, total);
        }
        kb_set(k, w->acc.x, g->padded ? kb_select(k, ends, state_pad_value(g), total) : total);
        have = g->padded ? have : kb_not(k, ends);
        if (!s->in_place)
            kb_set(k, w->slot, kb_add(k, slot, kb_cast(k, ends, TY_I32)));
    }
    kb_set(k, w->marks, kb_shr(k, marks, n));
    set_have(g, &w->acc, have);
}

/* Has the lane d before this one something? */
static kb_val have_above(kb *k, const struct partial *p, int d)
{
    return kb_ne(k, kb_shfl_up(k, kb_cast(k, kb_get(k, p->have), TY_U32), d), 0);
}

static kb_val lane_has(kb *k, const struct partial *p, int lane)
{
    return kb_ne(k, kb_shfl_idx(k, kb_cast(k, kb_get(k, p->have), TY_U32), lane), 0);
}

/* What lanes have left over, joined up to the nearest end before them.  `cut`: lanes with an end. */
static void join_chunks(struct shares *s, kb_val cut, struct partial *acc)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const kb_val up_to = kb_sub(k, kb_shl(k, kb_imm(k, TY_U32, 2), kb_cast(k, kb_lane(k), TY_U32)), 1);
    const kb_val behind = kb_cast(k, kb_clz(k, kb_or(k, kb_and(k, cut, up_to), 1)), TY_I32);
    LET(reach, kb_add(k, kb_sub(k, kb_lane(k), KB_WARP - 1), behind));
    for (int d = 1; d < KB_WARP; d *= 2) {
        const kb_tup mine = kb_get(k, acc->x), other = kb_shfl_up(k, mine, d);
        kb_val reached = kb_ge(k, reach, d);
        if (!g->padded)
            reached = kb_and(k, reached, have_above(k, acc, d));
        kb_if(k, reached) {
            const kb_tup both = state_combine(g, other, mine);
            kb_set(k, acc->x, g->padded ? both : kb_select(k, kb_get(k, acc->have), both, other));
            set_have(g, acc, kb_true(k));
        }
    }
}

void share_finish(struct shares *s, kb_val number, kb_tup total, bool empty)
{
    struct gen *g = s->g;
    struct segment seg;
    segment_known(g, &seg, number, s->from);
    segment_store_known(g, &seg, total, kb_imm(g->k, TY_BOOL, empty));
    segment_enter(g, &s->here);
}

/* Results of the batch's segments; with the last one of the group that has elements, of those that have none. */
static void finish(struct shares *s, const struct batch *b, kb_val slot,
                   void (*take_head)(struct shares *s, kb_tup total))
{
    struct gen *g = s->g;
    kb *k = g->k;
    LET(number, kb_add(k, kb_get(k, s->now.base), kb_cast(k, kb_lane(k), TY_I64)));
    kb_if(k, b->mine) {
        const kb_tup total = kb_load(k, total_memory(s, b->stage), slot);
        kb_if(k, kb_eq(k, number, kb_get(k, s->head))) {
            take_head(s, total);
        }
        kb_else { share_finish(s, number, total, false); }
    }
    LET(none, kb_lt(k, kb_get(k, s->now.end), 0));
    const kb_val last = kb_sub(k, kb_imm(k, TY_U32, KB_WARP - 1), kb_clz(k, kb_ballot(k, kb_not(k, none))));
    kb_if(k, share_uniform(kb_ne(k, kb_and(k, kb_shr(k, b->ends, last), 1), 0))) {
        kb_if(k, kb_and(k, none, kb_lt(k, number, s->segments))) {
            share_finish(s, number, state_zero(g), true);
        }
    }
}

/* The lanes before this one whose bits are set. */
static kb_val set_before(kb *k, kb_val bits)
{
    const kb_val before = kb_sub(k, kb_shl(k, kb_imm(k, TY_U32, 1), kb_cast(k, kb_lane(k), TY_U32)), 1);
    return kb_cast(k, kb_popcount(k, kb_and(k, bits, before)), TY_I32);
}

/* How many segments end in the chunks before the lane's. */
static kb_val ends_before(kb *k, kb_val marks)
{
    const kb_val own = kb_popcount(k, marks);
    kb_val sum = own;
    for (int d = 1; d < KB_WARP; d *= 2)
        sum = kb_add(k, sum, kb_select(k, kb_ge(k, kb_lane(k), d), kb_shfl_up(k, sum, d), kb_imm(k, TY_U32, 0)));
    return kb_cast(k, kb_sub(k, sum, own), TY_I32);
}

void batch_ends(struct shares *s, const struct batch *b, void (*take_head)(struct shares *s, kb_tup total))
{
    struct gen *g = s->g;
    kb *k = g->k;
    kb_val each;
    const struct chunk c = chunk_of(s, b, &each);
    LET(marks, mark_ends(s, b, each));
    share_gather_open(s);
    const kb_arr memory = total_memory(s, b->stage);
    const kb_val ahead = s->in_place ? kb_add(k, c.at, kb_cast(k, kb_ctz(k, marks), TY_I32)) : ends_before(k, marks);
    struct walk w = { .acc = { .x = kb_var_new(k, kb_get(k, s->open.x), "acc") },
                      .marks = kb_var_new(k, marks, "marks"),
                      .slot = kb_var_new(k, ahead, "slot") };
    if (!g->padded)
        w.acc.have = kb_var_new(k, kb_get(k, s->open.have), "acc_have");
    chunk_walk(s, &c, walk_elements, &w);
    LET(cut, kb_ne(k, marks, 0));
    join_chunks(s, kb_ballot(k, cut), &w.acc);
    const kb_tup before = kb_shfl_up(k, kb_get(k, w.acc.x), 1);
    const kb_val has_before = g->padded ? kb_true(k) : have_above(k, &w.acc, 1);
    kb_if(k, kb_and(k, kb_and(k, cut, has_before), kb_gt(k, kb_lane(k), 0))) {
        kb_store(k, memory, ahead, state_combine(g, before, kb_load(k, memory, ahead)));
    }
    const kb_tup left = kb_shfl_idx(k, kb_get(k, w.acc.x), KB_WARP - 1);
    set_in_lane0(g, &s->open, left, g->padded ? kb_true(k) : lane_has(k, &w.acc, KB_WARP - 1));
    kb_warp_sync(k); /* totals are complete */
    const kb_val last = kb_add(k, b->at, kb_sub(k, kb_sub(k, kb_get(k, s->now.end), 1), b->pos));
    finish(s, b, s->in_place ? last : set_before(k, b->ends), take_head);
}
