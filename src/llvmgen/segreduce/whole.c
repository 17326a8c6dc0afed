/* SPDX-License-Identifier: Apache-2.0 */
/* whole.c - segments between offsets that are long on the average, one after the other: one launch, hardly a search.
 *
 * The array is cut into tiles.  A segment is *whole* where it ends in the tile that it begins in or in one of the next
 * `stay`, as all do that are no longer than a tile: a block of its own takes it, or a warp.  Others are left to further blocks,
 * which look after a tile each, several in turn, and find the segment that the tile's first element lies in:
 *
 *     segment that begins in tile t and is not whole:   its parts are of tiles t + 1, t + 2, … up to its last one,
 *     part of tile t + 1:                               from the segment's first element to the end of the tile
 *     part of a later tile:                             what of the segment lies in the tile
 *
 * So a tile has one part at most, and its number is the slot of the part's total.  The block that finishes the last
 * part combines them in order.  Parts are counted in slot t + 1, by a word that begins with the number of the launch,
 * so that nothing has to be cleared, and nothing that an earlier launch has left behind matters, whatever its offsets
 * were.
 *
 * Who finds a part either takes it at once, or (`queue` 1) appends it to a list, from which blocks take one
 * after the other when it is complete: those that look, and those that have the last segments.
 * See Note [Nobody has to wait].
 *
 * With a warp per segment (`lanes` 32) a block has as many segments as warps.  The block as a whole takes some of them,
 * one after the other, when its warps are done with the others: see block_takes().
 */
#include "whole.h"

#include "llvmgen/shared/last_block.h"

enum {
    WARP_ROUNDS = 8, /* of loads: what a segment that a warp takes has at most */
    COUNT_BITS = 20, /* of blocks and of parts; the word's others hold all launches that there will ever be */
    TILE_BITS = 20   /* of a listed part; its others hold the segment */
};

static const struct tickets tickets = { BUF_LAUNCH, COUNT_BITS };

kb_val tile_of(struct cut *c, kb_val element) { return kb_cast(c->g->k, kb_div(c->g->k, element, c->tile), TY_I32); }

kb_val tile_begin(struct cut *c, kb_val tile) { return kb_mul(c->g->k, kb_cast(c->g->k, tile, TY_I64), c->tile); }

/* The last tile of what ends in front of the element, which is not its first. */
static kb_val last_tile(struct cut *c, kb_val end) { return tile_of(c, kb_sub(c->g->k, end, 1)); }

/* ---- parts of segments that are not whole ------------------------------------------------------------------------ */

/* The part of segment `number` in tile `tile`, both the same for the block; it arrives as a whole.  After a barrier in
 * here no thread reads the totals of warps any more. */
static void take_part(struct cut *c, kb_val ticket_word, kb_val number, kb_val tile)
{
    struct gen *g = c->g;
    kb *k = g->k;
    struct segment seg;
    segment_at(g, &seg, number);
    /* From offsets that all threads read. */
    LET(slot, kb_assume_uniform(kb_add(k, tile_of(c, seg.first), 1), KB_UNI_BLOCK));
    LET(parts, kb_assume_uniform(kb_sub(k, kb_add(k, last_tile(c, seg.last), 1), slot), KB_UNI_BLOCK));
    LET(first, kb_select(k, kb_eq(k, tile, slot), seg.first, tile_begin(c, tile)));
    LET(last, kb_min(k, seg.last, tile_begin(c, kb_add(k, tile, 1))));
    const kb_tup total = block_stretch(g, &seg, first, last, c->aggregates);
    kb_if(k, kb_thread0(k)) {
        kb_store(k, gen_partials(g), tile, total);
    }
    kb_if(k,
          last_to_finish(g, &(struct count){ gen_buffer(g, BUF_COUNT, TY_U64), slot, parts, &tickets, ticket_word })) {
        const kb_tup all = reduce_partials(g, slot, parts);
        kb_if(k, kb_thread0(k)) {
            segment_store(g, &seg, all);
        }
    }
}

/* ---- which segment a tile belongs to ----------------------------------------------------------------------------- */

static kb_val begins_before(struct gen *g, const void *element, kb_val i)
{
    return kb_le(g->k, segment_offset(g, i), *(const kb_val *)element);
}

/* The number of offsets at `element` or in front of it, by the whole warp.  The search begins where it would end if all
 * segments had the same size, in tile `tile`. */
static kb_val offsets_before(struct cut *c, kb_val tile, kb_val element)
{
    struct gen *g = c->g;
    kb *k = g->k;
    const kb_val zero = kb_imm(k, TY_I64, 0);
    LET(offsets, kb_add(k, c->segments, 1));
    LET(even, kb_shr(k, kb_mul(k, kb_cast(k, tile, TY_I64), gen_value(g, VAL_PACE)), SEGMENTS_PACE_BITS));
    LET(near, kb_max(k, kb_min(k, kb_sub(k, even, KB_WARP / 2), kb_sub(k, offsets, KB_WARP)), 0));
    kb_var place = kb_var_new(k, warp_search(g, near, offsets, kb_imm(k, TY_I64, 1), begins_before, &element), "place");
    LET(first, kb_assume_uniform(kb_get(k, place), KB_UNI_WARP)); /* as a search's result is */
    kb_if(k, kb_and(k, kb_eq(k, first, near), kb_gt(k, near, 0))) {
        kb_set(k, place, warp_search(g, zero, near, warp_evenly(g, near), begins_before, &element));
    }
    return kb_assume_uniform(kb_get(k, place), KB_UNI_WARP);
}

/* The segment that has a part in the tile, or -1; by the whole warp. */
static kb_val tile_segment(struct cut *c, kb_val tile)
{
    struct gen *g = c->g;
    kb *k = g->k;
    kb_var number = kb_var_new(k, kb_imm(k, TY_I64, -1), "number");
    kb_if(k, kb_lt(k, tile, c->tiles)) {
        LET(behind, offsets_before(c, tile, tile_begin(c, tile)));
        kb_if(k, kb_and(k, kb_gt(k, behind, 0), kb_le(k, behind, c->segments))) {
            LET(there, kb_sub(k, behind, 1));
            LET(begin, tile_of(c, segment_offset(g, there)));
            const kb_val cut =
                kb_gt(k, segment_offset(g, behind), tile_begin(c, kb_add(k, kb_add(k, begin, c->stay), 1)));
            kb_if(k, kb_and(k, kb_lt(k, begin, tile), cut)) {
                kb_set(k, number, there);
            }
        }
    }
    return kb_get(k, number);
}

/* Every warp looks for the segment of a tile of its own; bit i: warp i has found one.  The whole block arrives. */
static kb_val look(struct cut *c, kb_val tile)
{
    struct gen *g = c->g;
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    const kb_val number = tile_segment(c, kb_add(k, tile, kb_mul(k, c->watching, kb_warp(k))));
    kb_if(k, kb_lane0(k)) {
        kb_store(k, c->found, kb_warp(k), number);
    }
    kb_barrier(k); /* all warps have looked */
    const kb_val there = kb_load(k, c->found, kb_min(k, kb_lane(k), warps - 1));
    return kb_ballot(k, kb_and(k, kb_lt(k, kb_lane(k), warps), kb_ge(k, there, 0)));
}

/* Tiles 1, 2, … of the array go round the watching blocks; in tile 0 no segment goes on that began before. */
#define FOR_TILES(c, tile)                                                                                             \
    kb_for((c)->g->k, tile, kb_add((c)->g->k, kb_block((c)->g->k), 1), (c)->tiles,                                     \
           kb_mul((c)->g->k, (c)->watching, kb_threads((c)->g->k) / KB_WARP))

void watch_tiles(struct cut *c, part_taker *take)
{
    kb *k = c->g->k;
    FOR_TILES(c, tile)
    {
        kb_var left = kb_var_new(k, look(c, tile), "left");
        kb_loop(k) {
            LET(now, kb_assume_uniform(kb_get(k, left), KB_UNI_BLOCK)); /* from words that all threads read */
            kb_break_if(k, kb_eq(k, now, 0));
            LET(warp, kb_cast(k, kb_ctz(k, now), TY_I32));
            LET(number, kb_assume_uniform(kb_load(k, c->found, warp), KB_UNI_BLOCK)); /* such a word */
            take(c, number, kb_add(k, tile, kb_mul(k, c->watching, warp)));
            kb_set(k, left, kb_and(k, now, kb_sub(k, now, 1)));
        }
        kb_barrier(k); /* all threads have read what was found */
    }
}

static void take_now(struct cut *c, kb_val number, kb_val tile) { take_part(c, c->ticket_word, number, tile); }

static void watch(struct cut *c)
{
    struct gen *g = c->g;
    kb *k = g->k;
    const kb_var ticket_word = ticket_take_early(g, &tickets);
    c->ticket_word = kb_get(k, ticket_word);
    watch_tiles(c, take_now);
    kb_if(k, kb_thread0(k)) {
        ticket_last_begins_next(g, &tickets, kb_get(k, ticket_word), c->watching);
    }
}

/* ---- whole segments --------------------------------------------------------------------------------------------- */

/* Which of the block's segments, from `first` on, does the block take as a whole?  A bit each; every warp looks at all
 * of them.  They are those too long for a warp.  In large arrays, where the device has other blocks meanwhile, they are
 * all segments if one is too long: 2 to 6 % faster on an H200, of 2^25 and 2^26 f32 by a power law. */
static kb_val block_takes(struct cut *c, kb_val first)
{
    struct gen *g = c->g;
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    const int64_t rounds = (int64_t)WARP_ROUNDS * KB_WARP * gen_tunable(g, TN_ITEMS) * gen_tunable(g, TN_VECTOR);
    const kb_val most = kb_min(k, c->tile, rounds); /* what is longer than a tile may not be whole */
    LET(one, kb_add(k, first, kb_cast(k, kb_min(k, kb_lane(k), warps - 1), TY_I64)));
    LET(there, kb_min(k, one, kb_sub(k, c->segments, 1)));
    const kb_val length = kb_sub(k, segment_offset(g, kb_add(k, there, 1)), segment_offset(g, there));
    const kb_val own = kb_and(k, kb_lt(k, kb_lane(k), warps), kb_lt(k, one, c->segments));
    const kb_val lengthy = kb_ballot(k, kb_and(k, own, kb_gt(k, length, most)));
    if (!gen_tunable(g, TN_QUEUE))
        return lengthy;
    return kb_select(k, kb_ne(k, lengthy, 0), kb_ballot(k, own), kb_imm(k, TY_U32, 0));
}

/* By the warp, which reads it again where it is mapped. */
static void take_by_turns(struct gen *g, struct segment *seg)
{
    kb *k = g->k;
    const struct team team = { KB_WARP, kb_lane(k) };
    /* Offsets that the whole warp reads. */
    struct stretch all = { .seg = seg,
                           .first = kb_assume_uniform(seg->first, KB_UNI_WARP),
                           .last = kb_assume_uniform(seg->last, KB_UNI_WARP),
                           .total = partial_new(g, "total") };
    stretches_reduce(g, &team, 1, &all, kb_sub(k, all.last, all.first));
    const kb_tup total = team_total(g, &team, &all);
    kb_if(k, kb_lane0(k)) {
        segment_store(g, seg, total);
    }
    if (g->c->maps)
        map_by_warp(g, seg, total);
}

static void take_short(struct cut *c, kb_val number)
{
    static const int shapes[] = { 2, 8 }; /* elements of a lane that stay in registers */
    struct gen *g = c->g;
    kb *k = g->k;
    kb_if(k, kb_lt(k, number, c->segments)) {
        struct segment seg;
        segment_at(g, &seg, number);
        segment_enter(g, &seg);
        if (!g->c->maps || !state_commutative(g->p) || !access_direct_fields(g->p)) {
            take_by_turns(g, &seg);
        } else {
            LET(length, kb_assume_uniform(kb_sub(k, seg.last, seg.first), KB_UNI_WARP));
            kb_var left = kb_var_new(k, kb_true(k), "left");
            for (int i = 0, least = 1; i < 2; least = shapes[i++] * KB_WARP + 1) {
                kb_if(k, kb_and(k, kb_ge(k, length, least), kb_le(k, length, shapes[i] * KB_WARP))) {
                    resident_by_warp(g, &seg, shapes[i]);
                    kb_set(k, left, kb_false(k));
                }
            }
            kb_if(k, kb_assume_uniform(kb_get(k, left), KB_UNI_WARP)) { /* as the length is */
                take_by_turns(g, &seg);
            }
        }
    }
}

/* Segment `number`, if it is whole, by the block; it arrives as a whole. */
static void take_whole(struct cut *c, kb_val number)
{
    struct gen *g = c->g;
    kb *k = g->k;
    struct segment seg;
    segment_at(g, &seg, number);
    kb_var whole = kb_var_new(k, kb_true(k), "whole");
    kb_if(k, kb_gt(k, kb_sub(k, seg.last, seg.first), c->tile)) {
        kb_set(k, whole, kb_le(k, kb_sub(k, last_tile(c, seg.last), tile_of(c, seg.first)), c->stay));
    }
    /* From offsets that all threads read. */
    kb_if(k, kb_assume_uniform(kb_get(k, whole), KB_UNI_BLOCK)) {
        const kb_tup total = block_stretch(g, &seg, seg.first, seg.last, c->aggregates);
        kb_if(k, kb_thread0(k)) {
            segment_store(g, &seg, total);
        }
        if (g->c->maps)
            map_by_block(c, &seg, total);
    }
}

/* As many segments as the block has warps. */
static void take_several(struct cut *c, kb_val block)
{
    struct gen *g = c->g;
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    LET(first, kb_mul(k, block, warps));
    LET(whole, kb_assume_uniform(block_takes(c, first), KB_UNI_BLOCK)); /* all warps look at the same offsets */
    kb_var left = kb_var_new(k, whole, "left");
    const kb_val mine = kb_shl(k, kb_imm(k, TY_U32, 1), kb_cast(k, kb_warp(k), TY_U32));
    kb_if(k, kb_eq(k, kb_and(k, whole, mine), 0)) {
        take_short(c, kb_add(k, first, kb_cast(k, kb_warp(k), TY_I64)));
    }
    kb_loop(k) {
        LET(now, kb_assume_uniform(kb_get(k, left), KB_UNI_BLOCK)); /* which began as such */
        kb_break_if(k, kb_eq(k, now, 0));
        take_whole(c, kb_add(k, first, kb_cast(k, kb_ctz(k, now), TY_I64)));
        kb_barrier(k); /* the first warp has read the totals of this segment */
        kb_set(k, left, kb_and(k, now, kb_sub(k, now, 1)));
    }
}

/* ---- a queue of parts -------------------------------------------------------------------------------------------- */

/* Note [Nobody has to wait]
 *
 * Parts are taken once all watching blocks have looked, for only then their number is known.  A block that comes before
 * that waits, but no longer than POLLS times, and leaves: it may run while a watching block has not begun, and blocks
 * are promised no order.  The watching block that is the last to have looked knows that the list is complete and takes
 * parts until none is left.  So no part is forgotten, whichever blocks help.
 *
 * The words are cleared by the launch before, which uses others: see queue_words(). */
enum queue_word {
    LISTED, /* parts, below, and watching blocks that have looked, above */
    TAKEN,  /* parts */
    QUEUE_WORDS = SEGMENTS_QUEUE_WORDS
};
enum { LOOKED_BIT = 32, POLLS = 200 };

/* Thread 0: where the words of this launch begin, or those of the next one. */
static kb_val queue_words(struct cut *c, kb_val ticket_word, int ahead)
{
    kb *k = c->g->k;
    const kb_val odd = kb_and(k, kb_add(k, ticket_launch(c->g, &tickets, ticket_word), ahead), 1);
    return kb_mul(k, kb_cast(k, odd, TY_I32), QUEUE_WORDS);
}

/* What was found goes to the list, by the first warp: bit i of `found` stands for tile `tile` + i * watching. */
static void list_parts(struct cut *c, kb_val ticket_word, kb_val tile, kb_val found)
{
    struct gen *g = c->g;
    kb *k = g->k;
    kb_if(k, kb_and(k, kb_eq(k, kb_warp(k), 0), kb_ne(k, found, 0))) {
        kb_var place = kb_var_new(k, kb_imm(k, TY_U32, 0), "place");
        kb_if(k, kb_lane0(k)) {
            const kb_val at = kb_add(k, queue_words(c, ticket_word, 0), LISTED);
            const kb_val several = kb_cast(k, kb_popcount(k, found), TY_U64);
            kb_set(k, place,
                   kb_cast(k, kb_atomic(k, KB_RMW_ADD, gen_buffer(g, BUF_QUEUE, TY_U64), at, several), TY_U32));
        }
        LET(first, kb_shfl_idx(k, kb_get(k, place), 0));
        const kb_val bit = kb_shl(k, kb_imm(k, TY_U32, 1), kb_cast(k, kb_lane(k), TY_U32));
        const kb_val before = kb_popcount(k, kb_and(k, found, kb_sub(k, bit, 1)));
        kb_if(k, kb_ne(k, kb_and(k, found, bit), 0)) {
            const kb_val number = kb_cast(k, kb_load(k, c->found, kb_lane(k)), TY_U64);
            const kb_val there = kb_add(k, tile, kb_mul(k, c->watching, kb_lane(k)));
            kb_store(k, gen_buffer(g, BUF_PARTS, TY_U64), kb_add(k, first, before),
                     kb_or(k, kb_shl(k, number, TILE_BITS), kb_cast(k, there, TY_U64)));
        }
    }
}

/* Thread 0: the number of parts once the list is complete, or 0.  `watches`: this block has looked at its tiles. */
static kb_val parts_listed(struct cut *c, kb_val ticket_word, kb_val watches)
{
    struct gen *g = c->g;
    kb *k = g->k;
    const kb_ptr queue = gen_buffer(g, BUF_QUEUE, TY_U64);
    const kb_val all = kb_cast(k, c->watching, TY_U64), at = kb_add(k, queue_words(c, ticket_word, 0), LISTED);
    kb_var seen = kb_var_new(k, kb_imm(k, TY_U64, 0), "seen"), polls = kb_var_new(k, kb_imm(k, TY_I32, 0), "polls");
    kb_if(k, watches) {
        kb_fence(k, KB_RELEASE, KB_SCOPE_DEVICE); /* pairs with the acquire below, through the count */
        const kb_val one = kb_imm(k, TY_U64, (int64_t)1 << LOOKED_BIT);
        kb_set(k, seen, kb_add(k, kb_atomic(k, KB_RMW_ADD, queue, at, one), one));
    }
    kb_loop(k) {
        const kb_val complete = kb_eq(k, kb_shr(k, kb_get(k, seen), LOOKED_BIT), all);
        kb_break_if(k, kb_or(k, complete, kb_eq(k, kb_get(k, polls), POLLS)));
        kb_set(k, seen, kb_load_relaxed(k, queue, at));
        kb_backoff(k, POLL_NANOSECONDS);
        kb_set(k, polls, kb_add(k, kb_get(k, polls), 1));
    }
    const kb_val complete = kb_eq(k, kb_shr(k, kb_get(k, seen), LOOKED_BIT), all);
    LET(listed, kb_select(k, complete, kb_cast(k, kb_get(k, seen), TY_U32), kb_imm(k, TY_U32, 0)));
    kb_if(k, kb_ne(k, listed, 0)) {
        kb_fence(k, KB_ACQUIRE, KB_SCOPE_DEVICE); /* what the examining blocks have listed is visible now */
    }
    return listed;
}

/* Thread 0: a part of the list that no block has taken, or -1. */
static kb_val next_part(struct cut *c, kb_val ticket_word, kb_val listed)
{
    struct gen *g = c->g;
    kb *k = g->k;
    kb_var part = kb_var_new(k, kb_imm(k, TY_I64, -1), "part");
    kb_if(k, kb_ne(k, listed, 0)) {
        const kb_val at = kb_add(k, queue_words(c, ticket_word, 0), TAKEN);
        LET(place, kb_atomic(k, KB_RMW_ADD, gen_buffer(g, BUF_QUEUE, TY_U64), at, kb_imm(k, TY_U64, 1)));
        kb_if(k, kb_lt(k, place, kb_cast(k, listed, TY_U64))) {
            kb_set(k, part, kb_load(k, gen_buffer(g, BUF_PARTS, TY_I64), place));
        }
    }
    return kb_get(k, part);
}

/* Parts of the list until all are taken, by a block that has nothing else to do; it arrives as a whole. */
static void take_listed(struct cut *c, kb_val ticket_word, kb_val watches)
{
    struct gen *g = c->g;
    kb *k = g->k;
    const kb_ptr next = kb_shared_v(k, TY_I64, 1, "next");
    kb_var listed = kb_var_new(k, kb_imm(k, TY_U32, 0), "listed");
    kb_if(k, kb_thread0(k)) {
        kb_if(k, kb_eq(k, ticket_number(g, &tickets, ticket_word), 0)) {
            for (int w = 0; w < QUEUE_WORDS; w++)
                if (kb_point(k, "next queue"))
                    kb_store(k, gen_buffer(g, BUF_QUEUE, TY_U64), kb_add(k, queue_words(c, ticket_word, 1), w),
                             kb_imm(k, TY_U64, 0));
        }
        kb_set(k, listed, parts_listed(c, ticket_word, watches));
    }
    kb_loop(k) {
        kb_if(k, kb_thread0(k)) {
            kb_store(k, next, 0, next_part(c, ticket_word, kb_get(k, listed)));
        }
        kb_barrier(k);
        /* One word read by all threads after a barrier. */
        LET(part, kb_assume_uniform(kb_load(k, next, 0), KB_UNI_BLOCK));
        kb_break_if(k, kb_lt(k, part, 0));
        const kb_val tile = kb_cast(k, kb_and(k, part, ((int64_t)1 << TILE_BITS) - 1), TY_I32);
        take_part(c, ticket_word, kb_shr(k, part, TILE_BITS), tile); /* with barriers after this read */
    }
    kb_if(k, kb_thread0(k)) {
        ticket_last_begins_next(g, &tickets, ticket_word, kb_add(k, c->watching, c->helping));
    }
}

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

static void take_segments(struct cut *c)
{
    kb *k = c->g->k;
    LET(block, kb_cast(k, kb_sub(k, kb_block(k), c->watching), TY_I64));
    if (gen_tunable(c->g, TN_LANES) > 0)
        take_several(c, block);
    else
        take_whole(c, block);
}

/* Long segments' parts are listed, and taken by the blocks that looked and by the last `helping` of the others. */
static void watch_and_queue(struct cut *c, kb_val watches)
{
    struct gen *g = c->g;
    kb *k = g->k;
    LET(helps, kb_or(k, watches, kb_ge(k, kb_block(k), kb_sub(k, kb_blocks(k), c->helping))));
    kb_var ticket_word = kb_var_new(k, kb_imm(k, TY_U64, 0), "drawn_here");
    kb_if(k, helps) {
        kb_set(k, ticket_word, kb_get(k, ticket_take_early(g, &tickets)));
    }
    kb_if(k, watches) {
        FOR_TILES(c, tile)
        {
            list_parts(c, kb_get(k, ticket_word), tile, look(c, tile));
            kb_barrier(k); /* all threads have read what was found */
        }
    }
    kb_else { take_segments(c); }
    kb_if(k, helps) {
        take_listed(c, kb_get(k, ticket_word), watches);
    }
}

struct cut cut_of(struct gen *g)
{
    return (struct cut){ .g = g,
                         .tile = gen_value(g, VAL_TILE),
                         .tiles = gen_value(g, VAL_TILES),
                         .stay = gen_value(g, VAL_STAY),
                         .watching = gen_value(g, VAL_WATCHING),
                         .segments = gen_value(g, VAL_SEGMENTS) };
}

void emit_whole(struct gen *g)
{
    kb *k = g->k;
    struct cut cut = cut_of(g), *c = &cut;
    cut.helping = gen_value(g, VAL_HELPING);
    cut.aggregates = state_shared(g, KB_WARP, "warp_totals");
    cut.found = kb_shared_v(k, TY_I64, kb_threads(k) / KB_WARP, "found");
    if (g->c->maps)
        cut.shown = state_shared(g, 1, "segment_total");
    gen_wait_for_predecessor(g);
    LET(watches, kb_lt(k, kb_block(k), cut.watching));
    if (gen_tunable(g, TN_QUEUE)) {
        watch_and_queue(c, watches);
        return;
    }
    kb_if(k, watches) {
        watch(c);
    }
    kb_else { take_segments(c); }
}
