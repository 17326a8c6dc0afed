/* SPDX-License-Identifier: Apache-2.0 */
/* shares.c - irregular segments: elements are cut into equal shares, one per warp, and staged in shared memory.
 *
 *     start copying the first tiles of my share; meanwhile find the segment that it begins in
 *     for tile in my share:
 *         for 32 segments at a time that have elements in the tile:
 *             combine what they have there, and write results of those that end; all lanes take as many elements
 *     the warps of a block show each other what they have left over, and finish the segments that end in the block
 *
 * Whatever sizes neighbouring segments have, lanes take the same number of steps, and loads are of whole tiles.  What
 * goes on beyond the block is its tail; the second kernel finishes the segments whose head a block has left.
 *
 * Segments without elements are written with the last segment of their 32 that has some; groups of 32 that have no
 * element at all are looked for by all warps together.
 */
#include "shares.h"

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

static bool copies_behind(const struct shares *s) { return kb_has_copy(s->g->k) && s->g->c->aligned; }

/* `count` elements of array i from `first` on, in vectors that every lane copies asynchronously. */
static void start_copies(struct shares *s, int i, kb_val stage, kb_val first, kb_val count)
{
    kb *k = s->g->k;
    const int bytes = s->stages.array[i].bytes, step = 16 * KB_WARP;
    const kb_ptr into = staged_memory(&s->stages, i, stage), source = staged_source(&s->stages, i, first);
    LET(all, kb_mul(k, count, staged_stride(&s->stages, i)));
    LET(whole, kb_and(k, all, -16));
    LET(own, kb_mul(k, kb_lane(k), 16));
    kb_if(k, kb_eq(k, all, bytes)) {
        for (int at = 0; at < bytes; at += step) {
            kb_if(k, at + step <= bytes ? kb_true(k) : kb_lt(k, own, bytes - at)) {
                kb_copy(k, 16, into, kb_add(k, own, at), source, kb_add(k, own, at));
            }
        }
    }
    kb_else
    {
        kb_for(k, at, own, whole, step) {
            kb_copy(k, 16, into, at, source, at);
        }
        staged_copy_words(&s->stages, into, source, TY_U8, 1, 1, whole, all);
    }
}

/* Tile number t of the share, if it has so many, on its way to a stage. */
static void tile_start(struct shares *s, kb_val t, kb_val stage)
{
    kb *k = s->g->k;
    LET(begin, kb_mul(k, t, s->tile));
    LET(count, kb_min(k, kb_sub(k, s->length, begin), s->tile));
    kb_if(k, kb_gt(k, count, 0)) {
        const kb_val first = kb_add(k, s->from, kb_cast(k, begin, TY_I64));
        for (int i = 0; i < s->stages.arrays; i++) {
            if (copies_behind(s))
                start_copies(s, i, stage, first, count);
            else
                staged_copy(&s->stages, i, stage, first, count);
        }
    }
    if (copies_behind(s))
        kb_copy_commit(k);
}

static void tile_await(struct shares *s)
{
    kb *k = s->g->k;
    if (copies_behind(s))
        kb_copy_wait(k, s->stages.count - 1);
    kb_warp_sync(k); /* what other lanes have copied is there */
}

/* ---- a share ----------------------------------------------------------------------------------------------------- */

/* What the warps of a block show each other. */
struct summary {
    kb_ptr head,
        head_first; /* i64: the segment that ends in the share and began before it, if any; its first element */
    kb_ptr ended;   /* u32: a segment ends in the share */
    kb_ptr open;    /* u32: something is left over; where the state has no padding element */
    kb_arr totals;  /* 2 w: of the head; 2 w + 1: of what is left over */
};
static struct summary summary_new(struct gen *g)
{
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    struct summary all = { .head = kb_shared_v(k, TY_I64, warps, "heads") };
    all.head_first = kb_shared_v(k, TY_I64, warps, "heads_first");
    all.ended = kb_shared_v(k, TY_U32, warps, "ended");
    if (!g->padded)
        all.open = kb_shared_v(k, TY_U32, warps, "open");
    all.totals = state_shared(g, 2 * warps, "left_over");
    return all;
}

static void keep_head(struct shares *s, kb_tup total)
{
    kb *k = s->g->k;
    kb_store(k, s->left_over, kb_mul(k, kb_warp(k), 2), total);
}

/* The part of the tile [begin, end) from the position on that belongs to the current group of segments. */
static void take_part(struct shares *s, kb_val stage, kb_val begin, kb_val end)
{
    kb *k = s->g->k;
    LET(pos, share_uniform(kb_get(k, s->pos)));
    kb_if(k, kb_le(k, share_uniform(kb_get(k, s->now.last)), pos)) {
        group_advance(s, pos);
    }
    const kb_val last = share_uniform(kb_get(k, s->now.last)), own = kb_get(k, s->now.end);
    struct batch b = { .stage = stage, .pos = pos, .at = kb_sub(k, pos, begin) };
    b.end = kb_select(k, kb_gt(k, last, pos), kb_min(k, last, end), end); /* offsets that do not ascend end, too */
    b.mine = kb_and(k, kb_gt(k, own, pos), kb_le(k, own, b.end));
    b.ends = share_uniform(kb_ballot(k, b.mine));
    tile_await(s);
    kb_if(k, kb_eq(k, b.ends, 0)) {
        batch_inside(s, &b);
    }
    kb_else
    {
        batch_ends(s, &b, keep_head);
        kb_set(k, s->ended, kb_true(k));
    }
    kb_set(k, s->pos, b.end);
}

static void take_tiles(struct shares *s)
{
    kb *k = s->g->k;
    kb_var stage = kb_var_new(k, kb_imm(k, TY_I32, 0), "stage");
    const kb_val tiles = kb_div(k, kb_add(k, s->stop, s->tile - 1), s->tile);
    kb_for(k, t, kb_imm(k, TY_I32, 0), tiles, 1) {
        LET(now, share_uniform(kb_get(k, stage))); /* counted the same by all lanes */
        LET(begin, kb_mul(k, t, s->tile));
        LET(end, kb_min(k, kb_add(k, begin, s->tile), s->stop));
        kb_loop(k) {
            kb_break_if(k, kb_ge(k, share_uniform(kb_get(k, s->pos)), end));
            take_part(s, now, begin, end);
        }
        if (copies_behind(s)) /* of a tile before the first segment nothing was read, so no thread has waited for it */
            kb_copy_wait(k, s->stages.count - 1);
        kb_warp_sync(k); /* all lanes have read the stage */
        tile_start(s, kb_add(k, t, s->stages.count), now);
        LET(last, kb_eq(k, now, s->stages.count - 1));
        kb_set(k, stage, kb_select(k, last, kb_imm(k, TY_I32, 0), kb_add(k, now, 1)));
    }
}

static void take_share(struct shares *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    for (int t = 0; t < s->stages.count; t++)
        tile_start(s, kb_imm(k, TY_I32, t), kb_imm(k, TY_I32, t));
    /* On their way during the search. */
    const kb_val first = share_offset(s, kb_imm(k, TY_I64, 0)), last = share_offset(s, s->segments);
    group_first(s);
    const kb_val start = share_position(s, first);
    s->stop = share_uniform(share_position(s, last));
    kb_set(k, s->pos, start);
    kb_if(k, share_uniform(kb_lt(k, start, s->stop))) {
        take_tiles(s);
        share_gather_open(s);
    }
    if (copies_behind(s)) /* also of what lies after the last segment: a block does not end before its copies */
        kb_copy_wait(k, 0);
}

/* ---- a block ----------------------------------------------------------------------------------------------------- */

static void show(struct shares *s, const struct summary *all)
{
    kb *k = s->g->k;
    kb_if(k, kb_lane0(k)) {
        kb_store(k, all->head, kb_warp(k), kb_get(k, s->head));
        kb_store(k, all->head_first, kb_warp(k), kb_get(k, s->head_first));
        kb_store(k, all->ended, kb_warp(k), kb_cast(k, kb_get(k, s->ended), TY_U32));
        if (!s->g->padded)
            kb_store(k, all->open, kb_warp(k), kb_cast(k, kb_get(k, s->open.have), TY_U32));
        kb_store(k, all->totals, kb_add(k, kb_mul(k, kb_warp(k), 2), 1), kb_get(k, s->open.x));
    }
}

/* What is left over and then x, of which `has` says whether it is anything. */
static kb_tup after_left(struct gen *g, const struct partial *left, kb_tup x, kb_val has)
{
    kb *k = g->k;
    const kb_tup old = kb_get(k, left->x), both = state_combine(g, old, x);
    if (g->padded)
        return both;
    return kb_select(k, has, kb_select(k, kb_get(k, left->have), both, x), old);
}

/* What share w, whose totals begin at the slot, has left over is left over, after what was before or alone. */
static void leave_over(struct gen *g, struct partial *left, const struct summary *all, kb_val slot, kb_val w,
                       bool after)
{
    kb *k = g->k;
    const kb_val open = g->padded ? kb_true(k) : kb_ne(k, kb_load(k, all->open, w), 0);
    const kb_tup x = kb_load(k, all->totals, kb_add(k, slot, 1));
    kb_set(k, left->x, after ? after_left(g, left, x, open) : x);
    if (!g->padded)
        kb_set(k, left->have, after ? kb_or(k, kb_get(k, left->have), open) : open);
}

/* One thread: what the shares of the block have left over, in order.  The head of the first one in which a segment ends
 * is that of the block, if its segment began before the block. */
static void join_shares(struct shares *s, const struct summary *all, kb_val first)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const kb_val block = kb_cast(k, kb_block(k), TY_I64);
    const kb_ptr carry = gen_buffer(g, BUF_CARRY, TY_I64);
    const kb_val span = kb_mul(k, gen_value(g, VAL_SHARE), kb_threads(k) / KB_WARP);
    const kb_tup none = g->padded ? state_pad_value(g) : state_zero(g);
    struct partial left = { .x = kb_var_new(k, none, "left") };
    if (!g->padded)
        left.have = kb_var_new(k, kb_false(k), "left_have");
    kb_var segment = kb_var_new(k, kb_imm(k, TY_I64, SHARE_NONE), "segment");
    kb_var begin = kb_var_new(k, block, "begin");
    kb_tvar block_head = kb_var_new(k, none, "block_head");
    kb_for(k, w, kb_imm(k, TY_I32, 0), kb_threads(k) / KB_WARP, 1) {
        LET(slot, kb_mul(k, w, 2));
        kb_if(k, kb_ne(k, kb_load(k, all->ended, w), 0)) {
            LET(head, kb_load(k, all->head, w));
            kb_if(k, kb_ge(k, head, 0)) {
                const kb_tup total = after_left(g, &left, kb_load(k, all->totals, slot), kb_true(k));
                LET(began, kb_load(k, all->head_first, w));
                kb_if(k, kb_lt(k, began, first)) {
                    kb_set(k, segment, head);
                    kb_set(k, begin, kb_div(k, kb_max(k, began, 0), span));
                    kb_set(k, block_head, total);
                }
                kb_else { share_finish(s, head, total, false); }
            }
            leave_over(g, &left, all, slot, w, false);
        }
        kb_else { leave_over(g, &left, all, slot, w, true); }
    }
    kb_store(k, gen_partials(g), kb_mul(k, block, 2), kb_get(k, block_head)); /* read before it is known to be one */
    kb_store(k, gen_partials(g), kb_add(k, kb_mul(k, block, 2), 1), kb_get(k, left.x));
    const kb_val words[] = { kb_get(k, segment), kb_get(k, begin) };
    kb_store_n(k, carry, kb_mul(k, block, 2), 2, 16, words);
}

static void shares_init(struct shares *s, struct gen *g, kb_val number)
{
    kb *k = g->k;
    const kb_val n = gen_extent(g, &g->p->space[0].extent);
    s->segments = gen_value(g, VAL_SEGMENTS);
    LET(share, gen_value(g, VAL_SHARE));
    s->from = kb_min(k, kb_mul(k, number, share), n);
    s->length = kb_cast(k, kb_min(k, kb_sub(k, n, s->from), share), TY_I32);
    group_init(s);
    s->head = kb_var_new(k, kb_imm(k, TY_I64, SHARE_NONE), "head");
    s->head_first = kb_var_new(k, kb_imm(k, TY_I64, 0), "head_first");
    s->ended = kb_var_new(k, kb_false(k), "ended");
    s->pos = kb_var_new(k, kb_imm(k, TY_I32, 0), "pos");
    s->open = partial_new(g, "open");
    s->spread = kb_var_new(k, kb_false(k), "spread");
    segment_known(g, &s->here, kb_imm(k, TY_I64, 0), s->from);
    segment_enter(g, &s->here);
}

void emit_staged_shares(struct gen *g)
{
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    struct shares *s = &(struct shares){ .g = g };
    s->tile = KB_WARP * segments_chunk(gen_tunable(g, TN_ITEMS), gen_tunable(g, TN_VECTOR));
    staged_init(&s->stages, g, gen_tunable(g, TN_COPY_STAGES), s->tile, false);
    batch_init(s);
    const struct summary all = summary_new(g);
    s->left_over = all.totals;
    gen_wait_for_predecessor(g);
    LET(first, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), warps));
    LET(number, kb_add(k, first, kb_cast(k, kb_warp(k), TY_I64)));
    shares_init(s, g, number);
    take_share(s);
    groups_finish_empty(s, number, kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), warps));
    show(s, &all);
    kb_barrier(k); /* the block's shares are there */
    kb_if(k, kb_thread0(k)) {
        join_shares(s, &all, kb_mul(k, first, gen_value(g, VAL_SHARE)));
    }
}
