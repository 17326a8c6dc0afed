/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c - see ring.h.
 *
 *     empty -> (producer: ticket) numbered -> (copies) full -> (upsweep) combined -> (downsweep) scanned
 *           -> (storer: copies back) empty
 *     numbered -> (look-ahead) prefixed -> (downsweep)
 *
 * A stage holds a tile of every array that is copied, an output in the place of an input of the same width where there
 * is one: a thread reads its positions of all inputs before it writes.  Threads hold consecutive positions, an odd
 * number of vectors each, so that accesses to the plain layout that bulk copies leave are free of bank conflicts.
 *
 * Where conditions compare neighbours, a stage has room for what lies beside its tile too: the copies of a tile bring 16
 * bytes more on either side, or the producer's lanes bring one element, of the first tile and the last ones.  Values
 * that are kept go side by side into the stage (kept_ring.c).
 *
 * A reversed scan takes its tiles from the end of memory; inside a stage elements stand in the order of memory.
 */
#include "ring.h"
#include "ahead.h"
#include "llvmgen/segscan/few_columns.h"

#include <string.h>

enum { UNIT = 16 /* bytes of which bulk copies are made */ };

void scan_ring_new(struct gen *g, struct scan_ring *r)
{
    kb *k = g->k;
    const int warps = gen_tunable(g, TN_THREADS) / KB_WARP;
    *r = (struct scan_ring){ .g = g, .stages = gen_tunable(g, TN_STAGES), .warps = warps };
    r->looks = gen_tunable(g, TN_LOOKBACK_WARPS);
    r->each = gen_tunable(g, TN_ITEMS) * gen_tunable(g, TN_VECTOR);
    r->tile = gen_tunable(g, TN_THREADS) * r->each;
    scan_layout(g->p, r->tile, &r->layout);
    r->data = kb_shared_v(k, TY_U8, r->stages * r->layout.bytes, "stages");
    r->ticket = kb_shared_v(k, TY_U64, r->stages, "tickets");
    const int states =
        scan_few_columns(g->p) ? scan_columns_most(r->looks, gen_tunable(g, TN_VECTOR)) : 1; /* where others have one */
    r->prefix = state_shared(g, r->stages * states, "prefixes");
    r->aggregates = aggregates_new(g, r->stages * warps * states, scan_marked(g->p), "parts");
    if (scan_ring_keeps(g->p)) {
        r->kept_first = kb_shared_v(k, TY_I64, r->stages * g->p->noutputs, "kept_first");
        r->kept_count = kb_shared_v(k, TY_I32, r->stages * g->p->noutputs, "kept_count");
    }
    if (scan_marked(g->p))
        r->marks = kb_shared_v(k, TY_U32, r->stages * scan_mark_words(r->tile), "marks");
    if (r->looks) {
        r->total = state_shared(g, r->stages * states, "totals");
        r->seen = state_shared(g, r->stages * r->looks * KB_WARP, "seen_totals");
        r->ends = kb_shared_v(k, TY_U32, r->stages * r->looks, "seen_prefixes");
    }
    const struct {
        kb_ptr *bars;
        const char *name;
        int arrivals;
    } all[] = { { &r->empty, "empty", 1 },
                { &r->numbered, "numbered", 1 },
                { &r->full, "full", 1 + gen_tunable(g, TN_MARKER_WARPS) },
                { &r->combined, "combined", gen_tunable(g, TN_UPSWEEP_WARPS) },
                { &r->prefixed, "prefixed", 1 },
                { &r->scanned, "scanned", r->looks ? warps : warps + 1 },
                { &r->published, "published", 1 },
                { &r->looked, "looked", r->looks } };
    const size_t bars = sizeof all / sizeof *all - (r->looks ? 0 : 2);
    for (size_t b = 0; b < bars; b++)
        *all[b].bars = kb_mbarriers(k, r->stages, all[b].name);
    kb_if(k, kb_thread0(k)) {
        for (size_t b = 0; b < bars; b++)
            for (int s = 0; s < r->stages; s++)
                kb_mbar_init(k, *all[b].bars, kb_imm(k, TY_I32, s), all[b].arrivals);
        kb_mbar_ready(k);
    }
    segment_open_all(g, &r->all);
}

struct scan_ring_place scan_ring_begin(const struct scan_ring *r, int parity, kb_uni uni)
{
    kb *k = r->g->k;
    struct scan_ring_place at = { kb_var_new(k, kb_imm(k, TY_I32, 0), "stage"),
                                  kb_var_new(k, kb_imm(k, TY_I32, parity), "parity") };
    at.stage.uni = at.parity.uni = uni;
    return at;
}

void scan_ring_advance(const struct scan_ring *r, struct scan_ring_place at)
{
    kb *k = r->g->k;
    LET(next, kb_add(k, kb_get(k, at.stage), 1));
    LET(around, kb_eq(k, next, r->stages));
    kb_set(k, at.parity, kb_xor(k, kb_get(k, at.parity), kb_cast(k, around, TY_I32)));
    kb_set(k, at.stage, kb_select(k, around, kb_imm(k, TY_I32, 0), next));
}

/* Segments have tiles of their own, one segment's after another's. */
static void open_segment(const struct scan_ring *r, struct scan_ring_tile *t)
{
    struct gen *g = r->g;
    kb *k = g->k;
    t->segment = r->all;
    t->index = t->ticket.tile;
    if (!scan_own_tiles(g->p))
        return;
    const kb_val each = gen_value(g, VAL_PER_SEGMENT);
    LET(number, kb_div(k, kb_cast(k, t->ticket.tile, TY_U32), kb_cast(k, each, TY_U32))); /* once per tile */
    segment_open(g, &t->segment, kb_cast(k, number, TY_I64));
    g->here = NULL;
    t->index = kb_name(kb_sub(k, t->ticket.tile, kb_mul(k, kb_cast(k, number, TY_I32), each)), "index");
}

/* i64: of a tile; of a few columns, of whole rows where warps may have lanes to spare. */
static kb_val tile_elements(const struct scan_ring *r)
{
    struct gen *g = r->g;
    kb *k = g->k;
    if (!scan_few_columns(g->p))
        return kb_imm(k, TY_I64, r->tile);
    const kb_val lanes = kb_mul(k, columns_groups(g), columns_lanes(g));
    return kb_cast(k, kb_mul(k, lanes, r->warps * r->each), TY_I64);
}

/* i64: of the first tile of a scan that leads. */
static kb_val lead_elements(const struct scan_ring *r)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const int most = scan_lead_most(g->p, r->tile);
    const kb_val lead = kb_add(k, kb_and(k, kb_sub(k, gen_value(g, VAL_LENGTH), 1), most - 1), 1);
    return scan_few_columns(g->p) ? kb_mul(k, lead, gen_value(g, VAL_SEGMENTS)) : lead;
}

struct scan_ring_tile scan_ring_tile(const struct scan_ring *r, kb_val word, kb_val stage)
{
    kb *k = r->g->k;
    struct scan_ring_tile t = { .stage = stage };
    t.ticket.tile = kb_name(kb_cast(k, word, TY_I32), "tile");
    t.ticket.epoch = kb_name(kb_cast(k, kb_shr(k, word, 32), TY_U32), "epoch");
    t.exists = kb_lt(k, t.ticket.tile, gen_value(r->g, VAL_TILES));
    open_segment(r, &t);
    kb_val most = tile_elements(r);
    t.base = kb_mul(k, kb_cast(k, t.index, TY_I64), most);
    if (scan_leads(r->g->p)) {
        LET(lead, lead_elements(r));
        t.base = kb_max(k, kb_sub(k, t.base, kb_sub(k, most, lead)), 0);
        most = kb_select(k, kb_eq(k, t.index, 0), lead, most);
    }
    const kb_val left = kb_sub(k, t.segment.length, t.base);
    t.valid = kb_cast(k, kb_min(k, left, most), TY_I32);
    t.start = r->g->p->reverse ? kb_sub(k, left, kb_cast(k, t.valid, TY_I64)) : t.base;
    t.start = kb_add(k, t.segment.first, t.start);
    t.data = kb_advance(k, r->data, kb_mul(k, stage, r->layout.bytes));
    return t;
}

void scan_ring_enter(const struct scan_ring *r, struct scan_ring_tile *t)
{
    if (scan_own_tiles(r->g->p))
        r->g->here = &t->segment.here;
}

kb_ptr scan_ring_array(const struct scan_ring *r, const struct scan_ring_tile *t, int offset, enum ty type)
{
    return ptr_as(kb_advance(r->g->k, t->data, kb_imm(r->g->k, TY_I32, offset)), type);
}

/* An array's part of a tile, in the stage and in memory, and how many elements of it bulk copies can take. */
struct part {
    kb_ptr stage, memory;
    kb_val bulk; /* i32 */
    int stride;
    bool beside; /* neighbours are read */
};

static struct part part_of(const struct scan_ring *r, const struct scan_ring_tile *t, const struct prog_array *a,
                           kb_ptr memory, int offset)
{
    kb *k = r->g->k;
    const int unit = UNIT / a->stride;
    return (struct part){ scan_ring_array(r, t, offset, a->field[0].type), kb_advance(k, memory, t->start),
                          kb_and(k, t->valid, -unit), a->stride, false };
}

/* The inputs' or the outputs' parts; how many. */
static int input_parts(const struct scan_ring *r, const struct scan_ring_tile *t, struct part *part)
{
    int n = 0;
    for (int i = 0; i < r->g->p->ninputs; i++)
        if (r->layout.input[i] >= 0) {
            part[n] = part_of(r, t, &r->g->p->input[i].array, gen_input(r->g, i), r->layout.input[i]);
            part[n++].beside = scan_ring_beside(r->g->p) && r->g->p->input[i].neighbours;
        }
    return n;
}

static int output_parts(const struct scan_ring *r, const struct scan_ring_tile *t, struct part *part)
{
    int n = 0;
    for (int o = 0; o < r->g->p->noutputs; o++)
        if (r->layout.output[o] >= 0 && r->g->p->output[o].role != OUT_KEPT)
            part[n++] = part_of(r, t, &r->g->p->output[o].array, gen_output(r->g, o), r->layout.output[o]);
    return n;
}

/* All lanes: elements [begin, end) one by one. */
static void copy_rest(const struct scan_ring *r, kb_ptr to, kb_ptr from, kb_val begin, kb_val end)
{
    kb *k = r->g->k;
    kb_for(k, i, kb_add(k, begin, kb_lane(k)), end, KB_WARP) {
        kb_store(k, to, i, kb_load(k, from, i));
    }
}

/* bool: do whole units lie on either side of the tile, so that its bulk copies bring them too? */
static kb_val is_inner(const struct scan_ring *r, const struct scan_ring_tile *t)
{
    kb *k = r->g->k;
    const kb_val behind = kb_add(k, t->start, r->tile + UNIT);
    return kb_and(k, kb_gt(k, t->start, 0), kb_le(k, behind, t->segment.length));
}

void scan_ring_fill_rest(const struct scan_ring *r, const struct scan_ring_tile *t)
{
    struct part part[PROBLEM_ARGS_MAX];
    const int n = input_parts(r, t, part);
    if (scan_ring_beside(r->g->p))
        kb_if(r->g->k, kb_not(r->g->k, is_inner(r, t))) {
            scan_ring_fill_beside(r, t);
        }
    for (int i = 0; i < n; i++)
        copy_rest(r, part[i].stage, part[i].memory, part[i].bulk, t->valid); /* after the last whole unit */
}

void scan_ring_fill(const struct scan_ring *r, const struct scan_ring_tile *t)
{
    kb *k = r->g->k;
    struct part part[PROBLEM_ARGS_MAX];
    kb_val bytes = kb_imm(k, TY_I32, 0);
    const int n = input_parts(r, t, part);
    for (int i = 0; i < n; i++) {
        const int unit = UNIT / part[i].stride;
        if (part[i].beside) { /* a unit on either side */
            const kb_val more = kb_cast(k, is_inner(r, t), TY_I32), back = kb_mul(k, more, -unit);
            part[i].stage = kb_advance(k, part[i].stage, back);
            part[i].memory = kb_advance(k, part[i].memory, back);
            part[i].bulk = kb_add(k, part[i].bulk, kb_mul(k, more, 2 * unit));
        }
        bytes = kb_add(k, bytes, kb_mul(k, part[i].bulk, part[i].stride));
    }
    kb_mbar_expect(k, r->full, t->stage, bytes);
    for (int i = 0; i < n; i++)
        kb_if(k, kb_gt(k, part[i].bulk, 0)) {
            kb_bulk_load(k, part[i].stage, part[i].memory, kb_mul(k, part[i].bulk, part[i].stride), r->full, t->stage);
        }
}

void scan_ring_bounds(struct scan_ring *r)
{
    kb *k = r->g->k;
    if (r->g->p->offsets < 0)
        return;
    r->begin = segment_offset(r->g, kb_imm(k, TY_I64, 0));
    r->end = segment_offset(r->g, gen_value(r->g, VAL_SEGMENTS));
}

int scan_ring_unit(const struct problem *p, int output) { return UNIT / p->output[output].array.stride; }

void scan_ring_drain_piece(const struct scan_ring *r, kb_ptr stage, kb_ptr memory, kb_val from, kb_val to, int lane)
{
    kb *k = r->g->k;
    const int stride = ty_bytes(stage.ty), unit = UNIT / stride;
    LET(first, kb_min(k, kb_and(k, kb_add(k, from, unit - 1), -unit), to));
    LET(last, kb_max(k, kb_and(k, to, -unit), first));
    kb_if(k, kb_and(k, kb_eq(k, kb_lane(k), lane), kb_gt(k, last, first))) {
        kb_bulk_store(k, kb_advance(k, memory, first), kb_advance(k, stage, first),
                      kb_mul(k, kb_sub(k, last, first), stride));
        kb_bulk_commit(k);
    }
    copy_rest(r, memory, stage, from, first);
    copy_rest(r, memory, stage, last, to);
}

/* A tile of which some elements may lie outside of all segments: those inside, whole units of them as bulk copies. */
static void drain_inside(const struct scan_ring *r, const struct scan_ring_tile *t, const struct part *part, int n)
{
    kb *k = r->g->k;
    const kb_val zero = kb_imm(k, TY_I64, 0), all = kb_cast(k, t->valid, TY_I64);
    LET(from, kb_cast(k, kb_max(k, kb_min(k, kb_sub(k, r->begin, t->start), all), zero), TY_I32));
    LET(to, kb_max(k, kb_cast(k, kb_max(k, kb_min(k, kb_sub(k, r->end, t->start), all), zero), TY_I32), from));
    for (int i = 0; i < n; i++)
        scan_ring_drain_piece(r, part[i].stage, part[i].memory, from, to, i);
}

void scan_ring_drain(const struct scan_ring *r, const struct scan_ring_tile *t)
{
    kb *k = r->g->k;
    struct part part[PROBLEM_ARGS_MAX];
    if (r->g->p->offsets >= 0) {
        drain_inside(r, t, part, output_parts(r, t, part));
        return;
    }
    const int n = output_parts(r, t, part);
    for (int i = 0; i < n; i++)
        kb_if(k, kb_and(k, kb_eq(k, kb_lane(k), i), kb_gt(k, part[i].bulk, 0))) {
            kb_bulk_store(k, part[i].memory, part[i].stage, kb_mul(k, part[i].bulk, part[i].stride));
            kb_bulk_commit(k);
        }
    for (int i = 0; i < n; i++)
        copy_rest(r, part[i].memory, part[i].stage, part[i].bulk, t->valid);
    if (scan_ring_keeps(r->g->p))
        kept_ring_drain(r, t);
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

void scan_ring_publish_part(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val warp, struct run total)
{
    kb *k = r->g->k;
    kb_if(k, kb_lane0(k)) {
        aggregates_store(r->g, &r->aggregates, kb_add(k, kb_mul(k, t->stage, r->warps), warp), total);
    }
}

struct run scan_ring_parts(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val parity, struct run *total)
{
    kb *k = r->g->k;
    kb_mbar_wait(k, r->combined, t->stage, parity);
    return aggregates_before(r->g, &r->aggregates, kb_mul(k, t->stage, r->warps), r->warps, total);
}

void scan_ring_publish(const struct scan_ring *r, const struct scan_ring_tile *t, kb_val parity)
{
    kb *k = r->g->k;
    struct run total;
    scan_ring_parts(r, t, parity, &total);
    if (scan_leads(r->g->p)) { /* the total of the tile that leads takes the place of its last part */
        const kb_val part = kb_add(k, kb_mul(k, t->stage, r->warps), r->warps - 1);
        const kb_tup last = aggregates_load(r->g, &r->aggregates, part).x;
        total.x = kb_select(k, kb_eq(k, t->index, 0), last, total.x);
    }
    kb_if(k, kb_lane0(k)) {
        total_publish(r->g, t->ticket, scan_ahead_each(r->g->p), total);
    }
    kb_mbar_arrive(k, r->scanned, t->stage);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* Where the thread's positions of a full tile lie in the stage. */
static kb_val first_place(const struct scan_ring *r, const struct items *h)
{
    return r->g->p->reverse ? kb_sub(r->g->k, kb_imm(r->g->k, TY_I32, r->tile - h->n), h->own) : h->own;
}

/* Where position i lies in the stage of any tile; those from `most` on stand for that one. */
static kb_val place_below(const struct items *h, int i, kb_val most)
{
    kb *k = h->g->k;
    const kb_val at = kb_min(k, kb_add(k, h->own, i), most);
    return h->g->p->reverse ? kb_sub(k, kb_sub(k, h->valid, 1), at) : at;
}

/* Positions outside stand for the last one, … */
static kb_val place(const struct items *h, int i) { return place_below(h, i, kb_sub(h->g->k, h->valid, 1)); }

/* Widest access that keeps to a thread's own elements. */
static int alignment(const struct items *h, int stride)
{
    int bytes = UNIT;
    while (h->n * stride % bytes)
        bytes /= 2;
    return bytes;
}

/* From an array of the stage what the thread's positions have, or, with `words`, what the words of them have.  `beside`: … or,
 * in a reversed scan, for what lies before it in memory. */
static void load_array(struct scan_ring *r, struct items *h, kb_ptr from, bool words, bool beside, kb_val *out)
{
    kb *k = r->g->k;
    kb_val x[SCAN_ITEMS_MAX];
    kb_var var[SCAN_ITEMS_MAX];
    const int n = words ? h->n / 4 : h->n;
    kb_if(k, h->full) {
        if (words)
            kb_load_n(k, ptr_as(from, TY_U32), kb_div(k, h->own, 4), n, alignment(h, 1), x);
        else
            kb_load_n(k, from, first_place(r, h), n, alignment(h, ty_bytes(from.ty)), x);
        turn_values(r->g, x, n); /* words go forwards */
        for (int i = 0; i < n; i++)
            var[i] = kb_var_new(k, x[i], "element");
    }
    kb_else
    {
        const kb_val most = kb_sub(k, h->valid, beside && r->g->p->reverse ? 0 : 1);
        if (words)
            packed_load_part(h, from);
        for (int i = 0; i < n; i++)
            kb_set(k, var[i], words ? h->word[i] : kb_load(k, from, place_below(h, i, most)));
    }
    for (int i = 0; i < n; i++)
        out[i] = kb_get(k, var[i]);
}

/* What lies beside the thread's positions; forwards, after the last one of the array it again. */
static void load_beside(struct items *h, kb_ptr from, int slot)
{
    kb *k = h->g->k;
    const kb_val whole = h->g->p->reverse ? kb_true(k) : h->full,
                 most = kb_add(k, h->valid, kb_sub(k, kb_cast(k, whole, TY_I32), 1));
    h->direct[0].v[slot] = kb_load(k, from, place_below(h, -1, most));
    h->direct[h->n + 1].v[slot] = kb_load(k, from, place_below(h, h->n, most));
}

void scan_ring_load(struct scan_ring *r, struct scan_ring_tile *t, kb_val thread, int n, struct items *h)
{
    struct gen *g = r->g;
    kb *k = g->k;
    scan_ring_enter(r, t);
    h->ring = r;
    h->ring_tile = t;
    h->segment = &t->segment;
    h->n = n;
    h->base = t->base;
    h->own = kb_mul(k, thread, h->n);
    h->valid = t->valid;
    h->full = kb_assume_uniform(kb_eq(k, t->valid, r->tile), KB_UNI_BLOCK); /* as the ticket is */
    h->is_start = kb_and(k, kb_eq(k, t->index, 0), kb_eq(k, thread, 0));
    h->packed = !scan_marked(g->p) && packed_fits(g->p, h->n, h->n);
    if (scan_keeps(g->p) && !scan_few_columns(g->p))
        items_know_indices(h, scan_own_tiles(g->p));
    h->beside = scan_ring_beside(g->p);
    for (int i = 0; i < h->n; i++)
        h->head[i] = kb_false(k);
    h->marked = scan_marked(g->p);
    if (h->marked)
        items_take_marks(h, scan_ring_marks(r, t));
    for (int i = 0, slot = 0; i < g->p->ninputs; i++) {
        if (r->layout.input[i] < 0)
            continue;
        kb_val x[SCAN_ITEMS_MAX];
        const bool words = h->packed && i == scan_summed_bytes(g->p);
        const kb_ptr from = scan_ring_array(r, t, r->layout.input[i], g->p->input[i].array.field[0].type);
        const bool beside = h->beside && g->p->input[i].neighbours;
        load_array(r, h, from, words, beside, words ? h->word : x);
        for (int e = 0; !words && e < h->n; e++)
            h->direct[e + h->beside].v[slot] = x[e];
        if (beside)
            load_beside(h, from, slot);
        slot++;
    }
}

static enum store_way ring_way(void *of, int output)
{
    const struct items *h = of;
    if (h->g->p->output[output].role == OUT_KEPT)
        return STORE_DONE;
    return items_store_words(of, output) ? STORE_PACKED : STORE_TOGETHER;
}

static void ring_store(void *of, int output, int first, kb_val *x)
{
    struct items *h = of;
    const struct scan_ring *r = h->ring;
    kb *k = r->g->k;
    const enum ty type = r->g->p->output[output].array.field[0].type;
    const kb_ptr to = scan_ring_array(r, h->ring_tile, r->layout.output[output], type);
    kb_if(k, h->full) {
        if (!x) {
            kb_store_n(k, ptr_as(to, TY_U32), kb_div(k, h->own, 4), h->n / 4, alignment(h, 1), h->state_word);
        } else {
            turn_values(r->g, x, h->n);
            kb_store_n(k, to, first_place(r, h), h->n, alignment(h, ty_bytes(type)), x);
            turn_values(r->g, x, h->n);
        }
    }
    kb_else
    {
        if (!x)
            packed_store_part(h, to);
        for (int i = first; x && i < h->n; i++)
            kb_if(k, items_inside(h, i)) {
                kb_store(k, to, place(h, i), x[i]);
            }
    }
}

void scan_ring_store(struct items *h)
{
    struct places places = items_places(h);
    places.way = ring_way;
    places.store = ring_store;
    places_store(&places);
    kb_proxy_fence(h->g->k);
}
