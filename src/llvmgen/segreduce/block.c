/* SPDX-License-Identifier: Apache-2.0 */
/* block.c - reductions of segments by a block, or several blocks, per segment.
 *
 *     one        segments round-robin over the grid
 *     several    `parts` blocks per segment take tickets and publish totals that carry their own validity; the block
 *                with the segment's last ticket gathers them (as reduce.gather does)
 *
 * This is the large case of Futhark's SegRed.  Blocks know their segment and part: no thread divides by the size of a
 * segment.  Segments between offsets: see whole.c.
 */
#include "seg_gen.h"
#include "llvmgen/shared/last_block.h"
#include "llvmgen/shared/tile_state.h"

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static kb_tup block_commutative(struct gen *g, struct stretch *s, kb_arr aggregates)
{
    kb *k = g->k;
    const struct team team = { kb_threads(k), kb_tid(k) };
    stretches_reduce(g, &team, 1, s, kb_sub(k, s->last, s->first));
    const struct valid_items f = g->padded ? valid_all() : valid_first(stretch_valid(g, &team, s));
    return block_reduce(g, kb_get(k, s->total.x), f, aggregates);
}

/* Every warp takes a range of whole rounds, the same for all but the last ones. */
static kb_tup block_ordered(struct gen *g, struct stretch *s, kb_arr aggregates)
{
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    const int64_t round = (int64_t)KB_WARP * gen_tunable(g, TN_ITEMS) * gen_tunable(g, TN_VECTOR);
    const struct team team = { KB_WARP, kb_lane(k) };
    LET(length, kb_sub(k, s->last, s->first));
    LET(range, kb_mul(k, kb_div(k, kb_add(k, length, round * warps - 1), round * warps), round));
    struct stretch own = *s;
    own.first = kb_min(k, kb_add(k, s->first, kb_mul(k, range, kb_cast(k, kb_warp(k), TY_I64))), s->last);
    own.last = kb_min(k, kb_add(k, own.first, range), s->last);
    stretches_reduce(g, &team, 1, &own, kb_sub(k, own.last, own.first));
    const kb_val some = kb_lt(k, kb_mul(k, range, kb_cast(k, kb_lane(k), TY_I64)), length);
    const kb_val valid = kb_cast(k, kb_popcount(k, kb_ballot(k, some)), TY_I32);
    return warps_combine(g, kb_get(k, own.total.x), valid_first(kb_max(k, kb_min(k, valid, warps), 1)), aggregates);
}

kb_tup block_stretch(struct gen *g, struct segment *seg, kb_val first, kb_val last, kb_arr aggregates)
{
    segment_enter(g, seg);
    /* Ends of a block's segment follow from arguments, the block's number and offsets that all threads read. */
    struct stretch s = { .seg = seg,
                         .first = kb_assume_uniform(first, KB_UNI_BLOCK),
                         .last = kb_assume_uniform(last, KB_UNI_BLOCK),
                         .total = partial_new(g, "total") };
    return state_commutative(g->p) ? block_commutative(g, &s, aggregates) : block_ordered(g, &s, aggregates);
}

static void emit_one(struct gen *g)
{
    kb *k = g->k;
    gen_wait_for_predecessor(g);
    const kb_arr aggregates = state_shared(g, KB_WARP, "warp_totals");
    kb_for(k, number, kb_cast(k, kb_block(k), TY_I64), gen_value(g, VAL_SEGMENTS), kb_cast(k, kb_blocks(k), TY_I64)) {
        struct segment seg;
        kb_barrier(k); /* the first warp has read the totals of the segment before */
        segment_at(g, &seg, number);
        const kb_tup total = block_stretch(g, &seg, seg.first, seg.last, aggregates);
        kb_if(k, kb_thread0(k)) {
            segment_store(g, &seg, total);
        }
    }
}

/* ---- several blocks per segment ---------------------------------------------------------------------------------- */

/* What thread 0 has taken: a ticket of the segment, and one of the launch. */
struct taken {
    kb_var ticket, launch; /* u32, u64 */
};

static struct taken take_tickets(struct gen *g, kb_val segment, kb_val parts)
{
    kb *k = g->k;
    struct taken d = { kb_var_new(k, kb_imm(k, TY_U32, 0), "ticket"), ticket_take_early(g, &word_tickets) };
    kb_if(k, kb_thread0(k)) {
        kb_ptr counter = place_in_slot(g, SEGMENTS_TICKET_WORDS, kb_mul(k, segment, parts)).words;
        counter.ty = TY_U32;
        const struct count count = { counter, kb_imm(k, TY_I32, 0), parts, .launch = NULL };
        kb_set(k, d.ticket, finish_ticket(g, &count).ticket);
    }
    return d;
}

/* Publish the part's total; *tag is the launch's.  In all threads: has this block the segment's last ticket? */
static kb_val publish(struct gen *g, const struct taken *d, kb_tup total, kb_val parts, kb_val *tag)
{
    kb *k = g->k;
    const kb_ptr shown = kb_shared_v(k, TY_U32, 2, "turn");
    kb_if(k, kb_thread0(k)) {
        const kb_val ticket_word = kb_get(k, d->launch);
        LET(own, ticket_tag(g, &word_tickets, ticket_word));
        words_publish(g, place_in_slot(g, SEGMENTS_TICKET_WORDS, kb_block(k)), total, own);
        ticket_last_begins_next(g, &word_tickets, ticket_word, kb_blocks(k));
        kb_store(k, shown, 0, kb_get(k, d->ticket));
        kb_store(k, shown, 1, own);
    }
    kb_barrier(k);
    /* Words that all threads read after a barrier. */
    *tag = kb_assume_uniform(kb_load(k, shown, 1), KB_UNI_BLOCK);
    const kb_val ticket = kb_assume_uniform(kb_load(k, shown, 0), KB_UNI_BLOCK);
    return kb_eq(k, kb_cast(k, ticket, TY_I32), kb_sub(k, parts, 1));
}

static void emit_several(struct gen *g)
{
    kb *k = g->k;
    gen_wait_for_predecessor(g);
    const kb_arr aggregates = state_shared(g, KB_WARP, "warp_totals");
    LET(parts, gen_value(g, VAL_PARTS));
    LET(segment, kb_div(k, kb_block(k), parts));
    LET(part, kb_sub(k, kb_block(k), kb_mul(k, segment, parts)));
    const struct taken taken = take_tickets(g, segment, parts);
    struct segment seg;
    segment_at(g, &seg, kb_cast(k, segment, TY_I64));
    LET(chunk, gen_value(g, VAL_CHUNK));
    LET(first, kb_min(k, kb_add(k, seg.first, kb_mul(k, chunk, kb_cast(k, part, TY_I64))), seg.last));
    const kb_tup total = block_stretch(g, &seg, first, kb_min(k, kb_add(k, first, chunk), seg.last), aggregates);
    kb_val tag;
    kb_if(k, publish(g, &taken, total, parts, &tag)) {
        const kb_tup all = words_gather(g, SEGMENTS_TICKET_WORDS, kb_mul(k, segment, parts), parts, tag);
        kb_if(k, kb_thread0(k)) {
            segment_store(g, &seg, all);
        }
    }
}

void emit_segreduce_block(struct gen *g)
{
    if (g->p->offsets >= 0)
        emit_whole(g);
    else if (gen_tunable(g, TN_PARTS) == 1)
        emit_one(g);
    else
        emit_several(g);
}
