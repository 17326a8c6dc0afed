/* SPDX-License-Identifier: Apache-2.0 */
/* offsets.c - irregular segments, the work cut evenly whatever their sizes.
 *
 * The ends of all segments and all elements are merged into one sequence, an end after its segment's elements.  Every
 * warp takes `share` consecutive items of it (the merge path of Merrill and Garland's sparse matrix products):
 *
 *     where my share begins and ends:               two searches in the offsets, by all lanes of the warp
 *     while segments end in my share:               32 by a lane each, or eight times 4 by 8 lanes each or one by the
 *                                                   whole warp, as their sizes suggest
 *     the segment that goes on beyond my share:     its elements so far are my tail
 *
 * A segment that began in an earlier share is finished by a second kernel, from the tails of the shares it began in and
 * went through, which follow from its offset without a search, and from the head that the share it ends in has left.
 *
 * Partials: 2 w is the head of share w, 2 w + 1 its tail.  carry[w]: -1, or 2 * segment + (the head has an element).
 */
#include "seg_gen.h"

enum { SHORT_VECTORS = 8, MEDIUM_VECTORS = 64, MEDIUM_LANES = 8, TAILS_AT_ONCE = 8 };

/* The share of a warp: ends [end0, end1), elements [from, to). */
struct share {
    struct gen *g;
    kb_val number;
    kb_val end0, end1, from, to; /* i64 */
    kb_val carried;              /* bool: the first of its segments began earlier */
};

/* ---- where shares begin ------------------------------------------------------------------------------------------ */

/* Does the end of segment i lie among the first `items` of the sequence? */
static kb_val end_before(struct gen *g, const void *items, kb_val i)
{
    kb *k = g->k;
    return kb_le(k, segment_offset(g, kb_add(k, i, 1)), kb_sub(k, kb_sub(k, *(const kb_val *)items, 1), i));
}

/* How many ends are among the first `items` of the sequence. */
static kb_val ends_before(struct gen *g, kb_val items)
{
    kb *k = g->k;
    const kb_val n = gen_extent(g, &g->p->space[0].extent);
    LET(first, kb_max(k, kb_sub(k, items, n), 0));
    LET(end, kb_min(k, items, gen_value(g, VAL_SEGMENTS)));
    return warp_search(g, first, end, warp_evenly(g, kb_sub(k, end, first)), end_before, &items);
}

static void share_open(struct gen *g, struct share *s, kb_val number)
{
    kb *k = g->k;
    const kb_val segments = gen_value(g, VAL_SEGMENTS);
    const kb_val items = kb_add(k, segments, gen_extent(g, &g->p->space[0].extent));
    LET(first, kb_mul(k, number, gen_value(g, VAL_SHARE)));
    LET(behind, kb_min(k, kb_add(k, first, gen_value(g, VAL_SHARE)), items));
    *s = (struct share){ .g = g, .number = number };
    s->end0 = ends_before(g, first);
    s->end1 = ends_before(g, behind);
    s->from = kb_sub(k, first, s->end0);
    s->to = kb_sub(k, behind, s->end1);
    s->carried = kb_lt(k, segment_offset(g, s->end0), s->from);
}

/* ---- segments that end in the share ------------------------------------------------------------------------------ */

static void put_carry(struct share *s, kb_val segment, kb_val has, kb_tup head)
{
    kb *k = s->g->k;
    const kb_val code = kb_add(k, kb_mul(k, segment, 2), kb_cast(k, has, TY_I64));
    kb_store(k, gen_buffer(s->g, BUF_CARRY, TY_I64), s->number, code);
    kb_store(k, gen_partials(s->g), kb_mul(k, s->number, 2), head);
}

/* Segments first, first + 1, … by teams of `lanes`. Their longest part in the share has `longest` elements. */
static void take_segments(struct share *s, kb_val first, int lanes, kb_val longest)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const struct team team = { lanes, kb_and(k, kb_lane(k), lanes - 1) };
    LET(number, kb_add(k, first, kb_cast(k, kb_div(k, kb_lane(k), lanes), TY_I64)));
    LET(exists, kb_lt(k, number, s->end1));
    struct segment seg;
    segment_at(g, &seg, kb_min(k, number, kb_sub(k, s->end1, 1)));
    segment_enter(g, &seg);
    struct stretch part = { .seg = &seg, .first = kb_max(k, seg.first, s->from), .total = partial_new(g, "total") };
    part.last = kb_select(k, exists, kb_max(k, seg.last, part.first), part.first);
    stretches_reduce(g, &team, 1, &part, longest);
    const kb_tup total = team_total(g, &team, &part);
    kb_if(k, kb_and(k, exists, kb_eq(k, team.rank, 0))) {
        kb_if(k, kb_and(k, s->carried, kb_eq(k, number, s->end0))) {
            put_carry(s, number, kb_lt(k, part.first, part.last), total);
        }
        kb_else { segment_store(g, &seg, total); }
    }
}

/* The largest x among groups of `lanes` lanes, in all lanes of the group. */
static kb_val largest(struct gen *g, kb_val x, int lanes)
{
    for (int d = 1; d < lanes; d *= 2)
        x = kb_max(g->k, x, kb_shfl_xor(g->k, x, d));
    return x;
}

/* What a lane has, for the whole warp. */
static kb_val of_lane(struct gen *g, kb_val x, kb_val lane)
{
    return kb_assume_uniform(kb_shfl_idx(g->k, x, lane), KB_UNI_WARP); /* the lane is the same for all */
}

/* Elements that segment `number` has in the share, as i32; 0 when it does not end there. */
static kb_val part_length(struct share *s, kb_val number)
{
    struct gen *g = s->g;
    kb *k = g->k;
    LET(exists, kb_lt(k, number, s->end1));
    LET(there, kb_min(k, number, kb_sub(k, s->end1, 1)));
    LET(from, kb_max(k, segment_offset(g, there), s->from));
    LET(length, kb_max(k, kb_sub(k, segment_offset(g, kb_add(k, there, 1)), from), 0));
    return kb_select(k, exists, kb_cast(k, kb_min(k, length, 1 << 30), TY_I32), kb_imm(k, TY_I32, 0));
}

/* Of the 32 segments from `first` on, whose lengths the lanes know: 4 by 8 lanes each, or one by the whole warp. */
static void take_longer(struct share *s, kb_val first, kb_val length)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const int at_once = KB_WARP / MEDIUM_LANES;
    LET(of_some, largest(g, length, at_once));
    kb_for(k, lane, kb_imm(k, TY_I32, 0), KB_WARP, at_once) {
        LET(i, kb_add(k, first, kb_cast(k, lane, TY_I64)));
        LET(some, of_lane(g, of_some, lane));
        kb_if(k, kb_lt(k, i, s->end1)) {
            kb_if(k, kb_le(k, some, MEDIUM_VECTORS * gen_tunable(g, TN_VECTOR))) {
                take_segments(s, i, MEDIUM_LANES, kb_cast(k, some, TY_I64));
            }
            kb_else
            {
                kb_for(k, one, lane, kb_add(k, lane, at_once), 1) {
                    LET(j, kb_add(k, first, kb_cast(k, one, TY_I64)));
                    LET(of_one, of_lane(g, length, one));
                    kb_if(k, kb_lt(k, j, s->end1)) {
                        take_segments(s, j, KB_WARP, kb_cast(k, of_one, TY_I64));
                    }
                }
            }
        }
    }
}

/* 32 segments at a time: the lanes look up their lengths, which decide how they are shared. */
static void take_ends(struct share *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const kb_val end0 = kb_assume_uniform(s->end0, KB_UNI_WARP),
                 end1 = kb_assume_uniform(s->end1, KB_UNI_WARP); /* see share_open() */
    kb_for(k, i, end0, end1, KB_WARP) {
        LET(length, part_length(s, kb_add(k, i, kb_cast(k, kb_lane(k), TY_I64))));
        LET(of_all, kb_assume_uniform(largest(g, length, KB_WARP), KB_UNI_WARP)); /* a maximum over the whole warp */
        kb_if(k, kb_le(k, of_all, SHORT_VECTORS * gen_tunable(g, TN_VECTOR))) {
            take_segments(s, i, 1, kb_cast(k, of_all, TY_I64));
        }
        kb_else { take_longer(s, i, length); }
    }
}

/* ---- the segment that goes on ------------------------------------------------------------------------------------ */

static void take_tail(struct share *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const struct team team = { KB_WARP, kb_lane(k) };
    kb_if(k, kb_lt(k, s->end1, gen_value(g, VAL_SEGMENTS))) {
        struct segment seg;
        segment_at(g, &seg, s->end1);
        segment_enter(g, &seg);
        const kb_val first = kb_assume_uniform(kb_max(k, seg.first, s->from), KB_UNI_WARP);
        struct stretch part = { .seg = &seg, .first = first, .total = partial_new(g, "tail") };
        part.last = kb_max(k, first, s->to);
        stretches_reduce(g, &team, 1, &part, kb_sub(k, part.last, first));
        const kb_tup total = team_total(g, &team, &part);
        kb_if(k, kb_and(k, kb_lane0(k), kb_lt(k, first, part.last))) {
            kb_store(k, gen_partials(g), kb_add(k, kb_mul(k, s->number, 2), 1), total);
        }
    }
}

static void emit_shares(struct gen *g)
{
    kb *k = g->k;
    gen_wait_for_predecessor(g);
    const int warps = kb_threads(k) / KB_WARP;
    LET(number, kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), warps), kb_cast(k, kb_warp(k), TY_I64)));
    kb_if(k, kb_lt(k, number, gen_value(g, VAL_SHARES))) {
        struct share s;
        share_open(g, &s, number);
        kb_if(k, kb_lane0(k)) { /* which is also the lane that replaces the mark */
            kb_store(k, gen_buffer(g, BUF_CARRY, TY_I64), number, kb_imm(k, TY_I64, -1));
        }
        take_ends(&s);
        take_tail(&s);
    }
}

/* ---- the second kernel ------------------------------------------------------------------------------------------- */

/* The tails of the shares [from, to) in order, by the whole warp, in lane 0; there is one at least. */
static kb_tup combine_tails(struct gen *g, kb_val from, kb_val to)
{
    kb *k = g->k;
    const kb_arr partial = gen_partials(g);
    struct partial acc = partial_new(g, "tails");
    LET(each, kb_div(k, kb_add(k, kb_sub(k, to, from), KB_WARP - 1), KB_WARP));
    LET(own, kb_add(k, from, kb_mul(k, each, kb_cast(k, kb_lane(k), TY_I64))));
    const kb_val end = kb_min(k, kb_add(k, own, each), to);
    kb_if(k, kb_lt(k, own, end)) {
        partial_take(g, &acc, kb_load(k, partial, kb_add(k, kb_mul(k, own, 2), 1)));
    }
    kb_for(k, w, kb_add(k, own, 1), end, TAILS_AT_ONCE) {
        kb_tup x[TAILS_AT_ONCE];
        for (int u = 0; u < TAILS_AT_ONCE; u++) {
            const kb_val there = kb_min(k, kb_add(k, w, u), kb_sub(k, end, 1));
            x[u] = kb_load(k, partial, kb_add(k, kb_mul(k, there, 2), 1));
        }
        for (int u = 0; u < TAILS_AT_ONCE; u++) {
            kb_if(k, kb_lt(k, kb_add(k, w, u), end)) {
                partial_take(g, &acc, x[u]);
            }
        }
    }
    const kb_val valid = kb_cast(k, kb_popcount(k, kb_ballot(k, kb_lt(k, own, to))), TY_I32);
    return warp_reduce(g, kb_get(k, acc.x), KB_WARP, g->padded ? valid_all() : valid_first(valid));
}

/* The segment, which has been entered, ends in share `number`, whose head is its last part: its outputs from the total
 * of its tails, which lane 0 has, and, if there is one, the head. */
static void finish_cut(struct gen *g, struct segment *seg, kb_tup tails, kb_val has_head, kb_tup head)
{
    kb *k = g->k;
    struct partial total = partial_new(g, "carried");
    kb_if(k, kb_lane0(k)) {
        partial_take(g, &total, tails);
        kb_if(k, has_head) {
            partial_take(g, &total, head);
        }
        segment_store_known(g, seg, kb_get(k, total.x), kb_false(k));
    }
}

/* Merge path: where the segment began, its offset says. */
static void finish_merged(struct gen *g, kb_val number)
{
    kb *k = g->k;
    struct segment seg;
    LET(code, kb_assume_uniform(kb_load(k, gen_buffer(g, BUF_CARRY, TY_I64), number), KB_UNI_WARP)); /* one word */
    kb_if(k, kb_ge(k, code, 0)) {
        segment_at(g, &seg, kb_shr(k, code, 1));
        segment_enter(g, &seg);
        const kb_val begin = kb_div(k, kb_add(k, seg.number, seg.first), gen_value(g, VAL_SHARE));
        const kb_tup tails = combine_tails(g, begin, number);
        const kb_val has_head = kb_ne(k, kb_and(k, code, 1), 0);
        kb_tvar head = kb_var_new(k, state_zero(g), "head");
        kb_if(k, has_head) {
            kb_set(k, head, kb_load(k, gen_partials(g), kb_mul(k, number, 2)));
        }
        finish_cut(g, &seg, tails, has_head, kb_get(k, head));
    }
}

/* Staged: the first kernel has noted segment and beginning.  What is likely to be needed is loaded along with that: the
 * head, and the tails of the 32 shares before. */
static void finish_staged(struct gen *g, kb_val number)
{
    kb *k = g->k;
    struct segment seg;
    kb_val word[2];
    LET(own, kb_sub(k, kb_add(k, number, kb_cast(k, kb_lane(k), TY_I64)), KB_WARP));
    kb_load_n(k, gen_buffer(g, BUF_CARRY, TY_I64), kb_mul(k, number, 2), 2, 16, word);
    const kb_tup tail = kb_load(k, gen_partials(g), kb_add(k, kb_mul(k, kb_max(k, own, 0), 2), 1));
    const kb_tup head = kb_load(k, gen_partials(g), kb_mul(k, number, 2));
    /* Words that are the same for the warp. */
    LET(segment, kb_assume_uniform(word[0], KB_UNI_WARP));
    LET(begin, kb_assume_uniform(word[1], KB_UNI_WARP));
    kb_if(k, kb_ge(k, segment, 0)) {
        segment_known(g, &seg, segment, segment);
        segment_enter(g, &seg);
        const kb_val some = kb_ge(k, own, begin);
        kb_tvar tails = kb_var_new(k, g->padded ? kb_select(k, some, tail, state_pad_value(g)) : tail, "tails");
        kb_if(k, kb_gt(k, kb_sub(k, number, begin), KB_WARP)) {
            kb_set(k, tails, combine_tails(g, begin, number));
        }
        kb_else
        {
            if (g->padded)
                kb_set(k, tails, warp_reduce(g, kb_get(k, tails), KB_WARP, valid_all()));
            else
                warp_reduce_some(g, tails, kb_var_new(k, some, "some"));
        }
        finish_cut(g, &seg, kb_get(k, tails), kb_true(k), head);
    }
}

/* A warp per share that ends a segment which began earlier. */
static void emit_carries(struct gen *g)
{
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    gen_wait_for_predecessor(g);
    LET(other, kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), warps), kb_cast(k, kb_warp(k), TY_I64)));
    LET(number, kb_add(k, other, 1)); /* nothing began before the first share */
    kb_if(k, kb_lt(k, number, gen_value(g, VAL_SHARES))) {
        if (gen_tunable(g, TN_COPY_STAGES) > 0)
            finish_staged(g, number);
        else
            finish_merged(g, number);
    }
}

void emit_segreduce_offsets(struct gen *g)
{
    if (g->kernel != &g->c->code.kernel[0])
        emit_carries(g);
    else if (gen_tunable(g, TN_COPY_STAGES) > 0)
        emit_staged_shares(g);
    else
        emit_shares(g);
}
