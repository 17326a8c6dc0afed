/* SPDX-License-Identifier: Apache-2.0 */
/* bins.c - scans by a computed index: each bin is scanned by itself.
 *
 *     for segment in my segments:                          or: take a ticket, which is a tile, or a stretch of them
 *         carry[all bins] := init
 *         for tile of the segment:
 *             each warp, for its own elements, 32 at a time:
 *                 peers := the lanes with my bin
 *                 before := table[bin], and what peers before me have
 *                 the last peer: table[bin] := table[bin] and what all peers have
 *             each bin, by a thread: of a ticket, carry[bin] := what the tiles before have, by look-back;
 *                 scan the tables of all warps, from the carry on
 *             each element: its warp's table[bin], then `before`
 *         each bin: its total (by the last tile)
 *
 * Constants are not exchanged among peers, only counted.  Elements whose index is out of range are the only ones of their
 * bins.  A warp's elements lie side by side, so their order is that of the items, then that of the lanes.
 */
#include "llvmgen/shared/lookback.h"
#include "lower/reduce/bins.h"

#include <string.h>

struct bins {
    struct gen *g;
    kb_val count; /* i32 */
    int capacity, warps;
    kb_arr carry, all, own; /* tables: of the block, of all warps, of this warp */
    struct scan_segment segment;
    /* Where tiles have blocks of their own: the ticket, the number of the tile in its segment (u32), and of its first bin
     * among the states of all tiles (i64). */
    bool shared, stretches;
    struct ticket ticket;
    kb_val number, first;
    /* Where elements are finished bin after bin: a slot for each, and what stands in them. */
    kb_ptr slots;    /* i32, see scan_and_arrange() */
    kb_ptr others;   /* i32: elements of the tile that have no bin */
    kb_arr stage;    /* direct inputs … */
    kb_ptr position; /* … and i32 in the tile, where it is asked for; ir NULL: it is not */
    struct aggregates totals;
};

/* Of an element's bin (i32; -1: none): is it one, and where is its state, or where may one look? */
static kb_val is_bin(kb *k, kb_val bin) { return kb_ge(k, bin, 0); }
static kb_val place(kb *k, kb_val bin) { return kb_max(k, bin, 0); }

/* What is there before any element. */
static kb_tup start(struct gen *g) { return state_with_init(g, kb_true(g->k), state_pad_value(g)); }

/* Where only totals are wanted, and these are counts. */
static void count_alone(const struct bins *b, kb_val bin, kb_tup x)
{
    kb *k = b->g->k;
    kb_if(k, is_bin(k, bin)) {
        for (int f = 0; f < x.n; f++)
            kb_atomic(k, KB_RMW_ADD, b->own.e[f], bin, x.e[f]);
    }
}

/* The warp's table takes in x; what the element's bin has before it in the warp, or up to it. */
static kb_tup take(const struct bins *b, kb_val bin, kb_tup x)
{
    struct gen *g = b->g;
    kb *k = g->k;
    LET(peers, peers_of(k, bin, b->capacity));
    LET(before, peers_below(k, peers));
    const bool exclusive = g->p->exclusive, count = bins_count(g->p);
    const kb_tup old = kb_load(k, b->own, place(k, bin));
    kb_tup upto, own;
    if (count) {
        upto = state_combine(g, old, state_times(k, x, kb_popcount(k, peers)));
        own = state_combine(g, old, state_times(k, x, kb_add(k, kb_popcount(k, before), exclusive ? 0 : 1)));
    } else {
        LET(last, kb_sub(k, kb_imm(k, TY_I32, KB_WARP - 1), kb_cast(k, kb_clz(k, before), TY_I32)));
        const kb_tup sum = peers_combine(g, last, false, x);
        upto = state_combine(g, old, sum);
        own = upto;
        if (exclusive)
            own = kb_select(k, kb_lt(k, last, 0), old, kb_shfl_idx(k, upto, kb_max(k, last, 0)));
    }
    kb_warp_sync(k); /* all peers have read the table */
    kb_if(k, kb_and(k, is_bin(k, bin), kb_eq(k, peers_above(k, peers), 0))) {
        kb_store(k, b->own, bin, upto);
    }
    return own;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static void clear_own(const struct bins *b)
{
    kb *k = b->g->k;
    const kb_tup none = state_pad_value(b->g);
    kb_for(k, bin, kb_lane(k), kb_max(k, b->count, 1), KB_WARP) {
        kb_store(k, b->own, bin, none);
    }
    kb_warp_sync(k);
}

/* The tables of warps become what is before each of them; the bin's carry before the tile, and after it. */
static void scan_tables(const struct bins *b, kb_val bin, kb_tup *before, kb_tup *after)
{
    kb *k = b->g->k;
    kb_tup run = *before = kb_load(k, b->carry, bin);
    for (int w = 0; w < b->warps; w++) {
        const kb_val at = kb_add(k, bin, w * b->capacity);
        const kb_tup x = kb_load(k, b->all, at);
        kb_store(k, b->all, at, run);
        run = state_combine(b->g, run, x);
    }
    kb_store(k, b->carry, bin, run);
    *after = run;
}

static kb_tup table_total(const struct bins *b, kb_val bin)
{
    struct gen *g = b->g;
    kb_tup total = kb_load(g->k, b->all, bin);
    for (int w = 1; w < b->warps; w++)
        total = state_combine(g, total, kb_load(g->k, b->all, kb_add(g->k, bin, w * b->capacity)));
    return total;
}

/* The carries of a tile, or a stretch, that has a block of its own.  The totals of all bins, which the tables have, or of a
 * stretch the carries, are published before the first wait. */
static void look_back(const struct bins *b)
{
    struct gen *g = b->g;
    kb *k = g->k;
    LET(bins, kb_cast(k, b->count, TY_I64));
    const kb_val is_first = kb_eq(k, b->number, 0), all = kb_mul(k, bins, kb_cast(k, gen_value(g, VAL_TILES), TY_I64));
    kb_for(k, bin, kb_tid(k), b->count, kb_threads(k)) {
        const kb_tup init = start(g);
        kb_tup total = b->stretches ? kb_load(k, b->carry, bin) : table_total(b, bin);
        kb_store(k, b->carry, bin, kb_select(k, is_first, init, total));
        total = kb_select(k, is_first, state_combine(g, init, total), total);
        state_publish(g, b->ticket, place_at(g, kb_add(k, b->first, kb_cast(k, bin, TY_I64)), all), total, is_first);
    }
    kb_if(k, kb_not(k, is_first)) {
        kb_for(k, bin, kb_tid(k), b->count, kb_threads(k)) {
            const struct place own = place_at(g, kb_add(k, b->first, kb_cast(k, bin, TY_I64)), all);
            const kb_tup before = states_before(g, b->ticket, own, bins), total = kb_load(k, b->carry, bin);
            state_publish(g, b->ticket, own, state_combine(g, before, total), kb_true(k));
            kb_store(k, b->carry, bin, before);
        }
    }
}

/* Of all bins.  The whole block arrives at the end. */
static void scan_all_tables(const struct bins *b)
{
    kb *k = b->g->k;
    kb_for(k, bin, kb_tid(k), b->count, kb_threads(k)) {
        kb_tup before, after;
        scan_tables(b, bin, &before, &after);
    }
    kb_barrier(k);
}

/* The same, and where the elements of each bin begin among those of the tile, bin after bin: slots[bin] is that place
 * less the bin's count before the tile.  How many elements there are, i32. */
static kb_val scan_and_arrange(const struct bins *b)
{
    struct gen *g = b->g;
    kb *k = g->k;
    kb_tvar filled = kb_var_new(k, state_zero(g), "filled");
    kb_if(k, kb_thread0(k)) {
        kb_store(k, b->others, 0, kb_imm(k, TY_I32, 0));
    }
    LET(slots, kb_max(k, b->count, 1)); /* elements of no bin look at the first one, too */
    kb_for(k, first, kb_imm(k, TY_I32, 0), slots, kb_threads(k)) {
        struct run total;
        kb_tup before, after;
        kb_tvar carry = kb_var_new(k, state_zero(g), "carry"), own = kb_var_new(k, state_zero(g), "own");
        LET(bin, kb_add(k, first, kb_tid(k)));
        kb_if(k, kb_lt(k, bin, b->count)) {
            scan_tables(b, bin, &before, &after);
            kb_set(k, carry, before);
            after.e[0] = kb_sub(k, after.e[0], before.e[0]);
            kb_set(k, own, after);
        }
        const struct run in_block = block_scan(g, run_of(g, kb_get(k, own), kb_false(k)), &b->totals, &total);
        kb_if(k, kb_lt(k, bin, slots)) {
            const kb_val at = kb_select(k, in_block.some, in_block.x.e[0], state_zero(g).e[0]);
            const kb_val slot = kb_sub(k, kb_add(k, kb_get(k, filled).e[0], at), kb_get(k, carry).e[0]);
            kb_store(k, b->slots, bin, kb_cast(k, slot, TY_I32));
        }
        kb_set(k, filled, state_combine(g, kb_get(k, filled), total.x));
        kb_barrier(k); /* all have read the totals, and see the slots */
    }
    return kb_cast(k, kb_get(k, filled).e[0], TY_I32);
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

/* Position i, with its state and what has been loaded there.  Its indices are known: the segment's, and the position. */
static void bin_point(struct items *h, struct point *pt, int i)
{
    kb *k = h->g->k;
    const struct scan_segment *s = h->segment;
    const kb_val at = kb_min(k, kb_add(k, h->own, items_distance(h, i)), kb_sub(k, h->valid, 1));
    kb_val position = kb_add(k, h->base, kb_cast(k, at, TY_I64));
    if (h->g->p->reverse)
        position = kb_sub(k, kb_sub(k, s->length, 1), position);
    item_point(h, pt, i);
    memcpy(pt->index, s->here.index, sizeof pt->index);
    space_split(h->g, position, 0, h->g->p->rank, true, pt->index);
}

static kb_val bin_of(const struct bins *b, struct items *h, int i)
{
    kb *k = b->g->k;
    struct point pt;
    kb_val inside;
    bin_point(h, &pt, i);
    const kb_val number = point_bin(&pt, b->g->p->key, &b->g->p->keys, &inside);
    return kb_select(k, kb_and(k, inside, items_inside(h, i)), number, kb_imm(k, TY_I32, -1));
}

static void store(struct items *h, int i)
{
    struct point pt;
    bin_point(h, &pt, i);
    point_store(&pt);
}

/* The state of an element that is the only one of its bin. */
static kb_tup alone(const struct items *h, int i)
{
    return h->g->p->exclusive ? state_start(h->g) : state_with_init(h->g, kb_true(h->g->k), h->x[i]);
}

static void store_in_order(const struct bins *b, struct items *h, const kb_val *bin)
{
    kb *k = b->g->k;
    for (int i = 0; i < h->n; i++) {
        const kb_tup state = state_combine(b->g, kb_load(k, b->own, place(k, bin[i])), h->state[i]);
        h->state[i] = kb_select(k, is_bin(k, bin[i]), state, alone(h, i));
        kb_if(k, items_inside(h, i)) {
            store(h, i);
        }
    }
    if (!b->shared || b->stretches)
        kb_warp_sync(k); /* all lanes have read the table, which the next tile clears */
}

/* ---- elements bin after bin -------------------------------------------------------------------------------------- */

/* What an element needs, to and from slot `at` of the stage. */
static void slot_put(const struct bins *b, const struct items *h, int i, kb_val at)
{
    kb *k = b->g->k;
    for (int f = 0; f < b->stage.n; f++)
        kb_store(k, b->stage.e[f], at, h->direct[i].v[f]);
    if (b->position.ir)
        kb_store(k, b->position, at, kb_add(k, h->own, items_distance(h, i)));
}

static void slot_take(const struct bins *b, struct items *one, kb_val at)
{
    kb *k = b->g->k;
    for (int f = 0; f < b->stage.n; f++)
        one->direct[0].v[f] = kb_load(k, b->stage.e[f], at);
    one->own = b->position.ir ? kb_load(k, b->position, at) : kb_imm(k, TY_I32, 0);
}

/* A bin and a count of a warp's elements in one register. */
enum { COUNT_BITS = 16 };

static kb_val pack(kb *k, kb_val bin, kb_tup count)
{
    return kb_or(k, kb_shl(k, bin, COUNT_BITS), kb_cast(k, count.e[0], TY_I32));
}

static kb_val unpack(kb *k, kb_val packed, kb_val *count)
{
    *count = kb_and(k, packed, (1 << COUNT_BITS) - 1);
    return kb_shr(k, packed, COUNT_BITS);
}

/* Elements of bins get the slots from the first one on, the others those from the last one on.  The whole block arrives. */
static void put_all(const struct bins *b, struct items *h, const kb_val *packed)
{
    kb *k = b->g->k;
    const int tile = kb_threads(k) * h->n;
    for (int i = 0; i < h->n; i++) {
        kb_var slot = kb_var_new(k, kb_imm(k, TY_I32, 0), "slot");
        kb_if(k, is_bin(k, packed[i])) {
            kb_val count;
            const kb_val bin = unpack(k, packed[i], &count);
            const kb_val before = kb_cast(k, kb_load(k, b->own.e[0], bin), TY_I32);
            const kb_val at = kb_add(k, kb_add(k, before, count), kb_load(k, b->slots, bin));
            kb_set(k, slot, b->g->p->exclusive ? at : kb_sub(k, at, 1));
        }
        kb_else
        {
            kb_if(k, items_inside(h, i)) {
                const kb_val others = kb_atomic(k, KB_RMW_ADD, b->others, 0, kb_imm(k, TY_I32, 1));
                kb_set(k, slot, kb_sub(k, kb_imm(k, TY_I32, tile - 1), others));
            }
        }
        kb_if(k, items_inside(h, i)) {
            slot_put(b, h, i, kb_get(k, slot));
        }
    }
    kb_barrier(k);
}

/* Neighbouring lanes then have neighbours of a bin, which write, and read tables, side by side. */
static void store_by_bins(const struct bins *b, struct items *h, const kb_val *packed, kb_val filled)
{
    enum { AT_ONCE = 4 };
    struct gen *g = b->g;
    kb *k = g->k;
    const int tile = kb_threads(k) * h->n;
    struct items one = *h;
    one.n = 1;
    one.stretch = 0;
    put_all(b, h, packed);
    LET(rest, kb_sub(k, kb_imm(k, TY_I32, tile), kb_load(k, b->others, 0)));
    LET(end, kb_select(k, kb_lt(k, rest, tile), kb_imm(k, TY_I32, tile), filled));
    kb_for(k, first, kb_tid(k), end, AT_ONCE * kb_threads(k)) {
        for (int i = 0; i < AT_ONCE; i++) {
            LET(at, kb_add(k, first, i * kb_threads(k)));
            kb_if(k, kb_and(k, kb_lt(k, at, end), kb_or(k, kb_lt(k, at, filled), kb_ge(k, at, rest)))) {
                slot_take(b, &one, at);
                LET(bin, bin_of(b, &one, 0));
                const kb_val slot = kb_load(k, b->slots, place(k, bin));
                const kb_val count = kb_sub(k, kb_add(k, at, g->p->exclusive ? 0 : 1), slot);
                const kb_tup state = { .n = 1, .e = { kb_cast(k, count, g->field[0]) } };
                one.state[0] = kb_select(k, is_bin(k, bin), state, alone(&one, 0));
                store(&one, 0);
            }
        }
    }
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

/* totals: the carries alone take the tile in. */
static void tile(struct bins *b, kb_val base, bool totals)
{
    struct gen *g = b->g;
    kb *k = g->k;
    const int n = gen_tunable(g, TN_ITEMS);
    const bool values = problem_writes(g->p, AT_POINT) && !totals, count = !values && bins_count(g->p),
               staged = scan_bins_staged(g->p) && values;
    kb_val bin[SCAN_ITEMS_MAX];
    struct items *h = &(struct items){ .g = g, .segment = &b->segment, .n = n, .stretch = 1, .base = base };
    h->own = kb_add(k, kb_mul(k, kb_warp(k), KB_WARP * n), kb_lane(k));
    h->valid = kb_cast(k, kb_min(k, kb_sub(k, b->segment.length, base), kb_threads(k) * n), TY_I32);
    h->is_start = kb_false(k); /* the carry begins with init */
    items_load(h);
    clear_own(b);
    for (int i = 0; i < n; i++) {
        bin[i] = bin_of(b, h, i);
        if (i > 0 && !count)
            kb_warp_sync(k); /* the table has taken in the elements before */
        if (count)
            count_alone(b, bin[i], h->x[i]);
        else
            h->state[i] = take(b, bin[i], h->x[i]);
        if (staged)
            bin[i] = pack(k, bin[i], h->state[i]);
    }
    kb_barrier(k); /* the tables are complete */
    if (b->shared && !b->stretches)
        look_back(b);
    if (staged) {
        store_by_bins(b, h, bin, scan_and_arrange(b));
    } else {
        scan_all_tables(b);
        if (values)
            store_in_order(b, h, bin);
    }
}

/* Every bin by the thread that has its carry. */
static void store_totals(struct bins *b)
{
    kb *k = b->g->k;
    kb_for(k, bin, kb_tid(k), b->count, kb_threads(k)) {
        struct point pt = b->segment.here;
        const kb_tup total = kb_load(k, b->carry, bin);
        pt.env.user = &pt;
        pt.state = &total;
        pt.bin = kb_cast(k, bin, TY_I64);
        outputs_store_total(&pt);
    }
}

/* A state for each carry. */
static void carry_all(const struct bins *b, kb_tup state)
{
    kb *k = b->g->k;
    kb_for(k, bin, kb_tid(k), b->count, kb_threads(k)) {
        kb_store(k, b->carry, bin, state);
    }
}

/* Tiles from position `from` (i64) to position `to`, the same in all threads. */
static void tiles(struct bins *b, kb_val from, kb_val to, bool totals)
{
    kb *k = b->g->k;
    const int64_t size = (int64_t)kb_threads(k) * gen_tunable(b->g, TN_ITEMS);
    kb_for(k, base, kb_assume_uniform(from, KB_UNI_BLOCK), kb_assume_uniform(to, KB_UNI_BLOCK), size) {
        tile(b, base, totals);
    }
}

static void segment(struct bins *b)
{
    struct gen *g = b->g;
    kb *k = g->k;
    carry_all(b, start(g));
    tiles(b, kb_imm(k, TY_I64, 0), b->segment.length, false);
    if (scan_has_totals(g->p))
        store_totals(b);
}

static void slots_new(struct bins *b)
{
    struct gen *g = b->g;
    kb *k = g->k;
    const int tile = kb_threads(k) * gen_tunable(g, TN_ITEMS);
    enum ty type[DIRECT_FIELDS_MAX];
    int n = 0;
    for (int i = 0; i < g->p->ninputs; i++)
        for (int f = 0; access_input_direct(g->p, i) && f < g->p->input[i].array.nfields; f++)
            type[n++] = g->p->input[i].array.field[f].type;
    b->stage = kb_shared(k, n, type, tile, "stage");
    b->slots = kb_shared_v(k, TY_I32, b->capacity, "slots");
    b->others = kb_shared_v(k, TY_I32, 1, "others");
    b->totals = aggregates_new(g, KB_WARP, false, "warp_totals");
    if (scan_bins_positions(g->p) || kb_checks_places(k))
        b->position = kb_shared_v(k, TY_I32, tile, "positions");
}

/* A tile, or a stretch, for each block; those of all segments take turns, so that two of one are far apart in time. */
static void take_part(struct bins *b)
{
    struct gen *g = b->g;
    kb *k = g->k;
    const int64_t size = (int64_t)kb_threads(k) * gen_tunable(g, TN_ITEMS);
    const kb_val segments = kb_cast(k, gen_value(g, VAL_SEGMENTS), TY_U32),
                 each = kb_cast(k, gen_value(g, VAL_PER_SEGMENT), TY_U32),
                 chunk = b->stretches ? gen_value(g, VAL_CHUNK) : kb_imm(k, TY_I64, size);
    b->ticket = ticket_take_tile(g, gen_value(g, VAL_TILES));
    LET(number, kb_cast(k, b->ticket.tile, TY_U32));
    b->number = kb_div(k, number, segments);
    LET(own, kb_sub(k, number, kb_mul(k, b->number, segments)));
    const kb_val place = kb_cast(k, kb_add(k, kb_mul(k, own, each), b->number), TY_I64);
    b->first = kb_name(kb_mul(k, place, kb_cast(k, b->count, TY_I64)), "first_state");
    segment_open(g, &b->segment, kb_cast(k, own, TY_I64));
    LET(from, kb_mul(k, kb_cast(k, b->number, TY_I64), chunk));
    if (b->stretches) {
        LET(to, kb_min(k, kb_add(k, from, chunk), b->segment.length));
        carry_all(b, state_pad_value(g));
        tiles(b, from, to, true);
        look_back(b);
        tiles(b, from, to, false);
    } else {
        kb_if(k,
              kb_assume_uniform(kb_lt(k, from, b->segment.length), KB_UNI_BLOCK)) { /* of the ticket, and an argument */
            tile(b, from, false);
        }
        kb_else { carry_all(b, start(g)); }
    }
    if (scan_has_totals(g->p)) {
        kb_if(k, kb_eq(k, kb_add(k, b->number, 1), each)) {
            store_totals(b);
        }
    }
}

void emit_scan_bins(struct gen *g)
{
    kb *k = g->k;
    struct bins b = { .g = g, .capacity = gen_tunable(g, TN_BINS), .warps = kb_threads(k) / KB_WARP };
    gen_wait_for_predecessor(g);
    b.count = kb_name(kb_cast(k, gen_extent(g, &g->p->keys), TY_I32), "bins");
    b.carry = state_shared(g, b.capacity, "carry");
    b.all = state_shared(g, b.capacity * b.warps, "warp_tables");
    b.own = b.all;
    for (int f = 0; f < b.own.n; f++)
        b.own.e[f] = kb_advance(k, b.own.e[f], kb_mul(k, kb_warp(k), b.capacity));
    if (scan_bins_staged(g->p))
        slots_new(&b);
    b.stretches = scan_bins_stretches(g->c);
    if ((b.shared = gen_tunable(g, TN_PARTS) == 0)) {
        kb_if(k, kb_gt(k, gen_value(g, VAL_TILES), 0)) {
            take_part(&b);
        }
        return;
    }
    kb_for(k, number, kb_cast(k, kb_block(k), TY_I64), gen_value(g, VAL_SEGMENTS), kb_cast(k, kb_blocks(k), TY_I64)) {
        segment_open(g, &b.segment, number);
        segment(&b);
    }
}
