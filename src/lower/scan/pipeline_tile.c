/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_tile.c - how many threads scan.pipeline has, and how many positions each: what registers and shared memory have
 * room for, and what operators need. */
#include "lower/lower_impl.h"
#include "lower/work.h"
#include "pipeline.h"

enum {
    UNIT = 16,
    SIDE_WARPS = 2, /* producer, storer */
    MARKERS = 4,    /* warps that mark where segments begin */
    THREADS_MAX = PIPELINE_THREADS_MAX,
    WIDE_STATE = 8 /* words */
};

/* Bytes of shared memory for everything but the tiles: mbarriers and tickets, stored totals and cuts, prefixes,
 * alignment. */
int pipeline_reserved(const struct problem *p, int threads, int stages, int vector, int looks)
{
    enum { MBARRIERS = 6, ALIGNMENT = 16, ARRAYS = 9, OF_MARKS = 2, LOOK_BARRIERS = 2 };
    const int fields = state_fields(p, NULL), warps = threads / 32;
    const int states = scan_few_columns(p) ? scan_columns_most(looks, vector) : 1;
    const int cuts = scan_marked(p) ? stages * warps * 4 + ALIGNMENT * OF_MARKS : 0;
    const int words = state_words(p, NULL);
    const int of_looks = stages * (8 * LOOK_BARRIERS + (looks * 32 + states) * 4 * words + looks * 4);
    const int of_kept = scan_ring_keeps(p) ? stages * p->noutputs * (8 + 4) + 2 * ALIGNMENT : 0;
    return of_kept + stages * 8 * (MBARRIERS + 1) + stages * (warps + 1) * states * 4 * words + cuts +
           ALIGNMENT * (ARRAYS + 2 * fields) + (looks ? of_looks + ALIGNMENT * (LOOK_BARRIERS + 1 + 2 * fields) : 0);
}

int pipeline_stage_bytes(const struct problem *p, int tile)
{
    struct scan_layout l;
    scan_layout(p, tile, &l);
    return l.bytes + (scan_marked(p) ? 4 * scan_mark_words(tile) : 0);
}

/* Halves are taken out of their registers while they are combined: a register each.  So are bytes that are compared or kept
 * one by one.  Bytes that are summed stay in words. */
static int bytes_held(const struct problem *p, int stride)
{
    const bool one_by_one = scan_ring_keeps(p) ? scan_summed_bytes(p) < 0 : scan_compares_bytes(p);
    return stride == 2 || (stride == 1 && one_by_one) ? 4 : stride;
}

/* Bytes of registers that a position takes: its inputs, in whose place its results come; states come and go one after
 * the other, but for a part of them where the last one is written too. */
static int bytes_per_position(const struct problem *p)
{
    int in = 0, out = 0;
    for (int i = 0; i < p->ninputs; i++)
        in += access_input_direct(p, i) ? bytes_held(p, p->input[i].array.stride) : 0;
    for (int o = 0; o < p->noutputs; o++)
        out += access_output_direct(p, o) ? bytes_held(p, p->output[o].array.stride) : 0;
    return (in > out ? in : out) + (scan_has_totals(p) && !scan_ring_keeps(p) ? state_words(p, NULL) : 0);
}

/* Rows at equal distances take one remainder per tile. */
int pipeline_markers(const struct problem *p) { return !scan_marked(p) ? 0 : scan_keeps(p) ? 1 : MARKERS; }

int pipeline_threads(int threads, int upsweep, int markers, int looks)
{
    return threads + 32 * (upsweep + SIDE_WARPS + (looks ? looks : 1) + markers);
}

/* Bytes are summed by words where nothing but their sum is asked for (scan_items_most()). */
int pipeline_positions_most(const struct problem *p, int vector)
{
    return scan_marked(p) || scan_few_columns(p) || scan_ring_keeps(p) ? ITEMS_MAX : scan_items_most(p, vector);
}

bool pipeline_takes_bytes(const struct problem *p)
{
    return scan_marked(p) && scan_compares_bytes(p) && scan_loads_elsewhere(p);
}

/* Vectors per thread: an odd number, as many as registers and the ring have room for; 0: not even one. */
int pipeline_most_items(const struct problem *p, const struct device *d, int threads, int upsweep, int vector,
                        int stages, int looks)
{
    enum { REGISTERS_MAX = 128, OVERHEAD = 36, OF_MARKER = 80, OF_FLAGS = 64, OF_LOOK = 96 };
    const int of_marker = p->flags >= 0 && state_words(p, NULL) >= WIDE_STATE ? OF_FLAGS : OF_MARKER;
    const int room = (d->shared_per_block - pipeline_reserved(p, threads, stages, vector, looks)) / stages /
                     pipeline_stage_bytes(p, threads * vector);
    const int all = d->registers_per_sm /
                    ((pipeline_threads(threads, upsweep, pipeline_markers(p), looks) + 127) / 128 * 128) / 8 * 8;
    /* Less than what a warp that marks takes, or one that looks back. */
    if ((scan_marked(p) && all < of_marker) || (looks && all < OF_LOOK))
        return 0;
    const int states = scan_few_columns(p) ? vector : 1; /* that a thread carries along */
    const int registers = (all < REGISTERS_MAX ? all : REGISTERS_MAX) - OVERHEAD - 2 * states * state_words(p, NULL);
    /* A part for what is on its way, which is more of states of several fields, and of bytes with their neighbours; marks
     * are two registers that every position asks. */
    const bool bytes = pipeline_takes_bytes(p), light = state_words(p, NULL) == 1 && !bytes;
    const int twentieths = looks             ? (state_fields(p, NULL) > 1 ? 17 : 20)
                           : !scan_marked(p) ? 16
                           : light           ? 18
                           : bytes           ? 14
                                             : 12;
    /* Results that are made of several fields come after the states of all positions. */
    const int words = state_words(p, NULL), held = bytes_per_position(p);
    const int each = words > 2 || vector == 1 ? 4 : 2, fields = state_fields(p, NULL) > 1 ? each * words : 0;
    const int fit = registers * 4 * twentieths / 20 / (looks && fields > held ? fields : held);
    const int most = pipeline_positions_most(p, vector), positions = fit < most ? fit : most;
    const int items = room < positions / vector ? room : positions / vector;
    return items % 2 ? items : items > 0 ? items - 1 : 0;
}

/* Operators whose chains wait, and not memory: many threads with few positions each. */
bool pipeline_waits(const struct problem *p, int sm)
{
    enum { CALLS = 2 };
    const bool wide = p->flags >= 0 && state_words(p, NULL) >= WIDE_STATE;
    return !scan_few_columns(p) && !scan_ring_keeps(p) && (wide || work_of(p, NULL, sm).special >= CALLS);
}

/* Elements of the narrowest array in 16 bytes. */
int pipeline_unit(const struct problem *p)
{
    int unit = 1;
    for (int i = 0; i < p->ninputs; i++)
        if (access_input_direct(p, i) && UNIT / p->input[i].array.stride > unit)
            unit = UNIT / p->input[i].array.stride;
    for (int o = 0; o < p->noutputs; o++)
        if (output_moment(&p->output[o]) == AT_POINT && UNIT / p->output[o].array.stride > unit)
            unit = UNIT / p->output[o].array.stride;
    return unit;
}

/* Tiles of a few columns are whole units whatever the number of columns, where warps are as many as a vector of them has
 * parts in a unit; eight, which all tiles have, are enough for all but odd numbers of columns of bytes. */
static int warps_in_units(const struct problem *p, const struct plan_case *c)
{
    enum { MOST = 8 };
    const int parts = pipeline_unit(p) / c->tunable[TN_VECTOR], warps = parts < MOST ? parts : MOST;
    return scan_few_columns(p) && warps > 1 ? warps : 1;
}

/* The largest tile, where the tuned one does not fit: by more threads with fewer vectors or the other way round. */
void pipeline_largest_tile(const struct problem *p, const struct device *d, struct plan_case *c)
{
    enum { FROM = 256 };
    int best = 0;
    for (int threads = FROM; pipeline_threads(threads, c->tunable[TN_UPSWEEP_WARPS], pipeline_markers(p),
                                              c->tunable[TN_LOOKBACK_WARPS]) <= THREADS_MAX;
         threads += 32 * warps_in_units(p, c)) {
        const int items = pipeline_most_items(p, d, threads, c->tunable[TN_UPSWEEP_WARPS], c->tunable[TN_VECTOR],
                                              c->tunable[TN_STAGES], c->tunable[TN_LOOKBACK_WARPS]);
        if (threads * items <= best)
            continue;
        best = threads * items;
        c->tunable[TN_THREADS] = threads;
        c->tunable[TN_ITEMS] = items;
    }
    c->tunable_from[TN_THREADS] = c->tunable_from[TN_ITEMS] =
        "the largest tile that registers and shared memory have room for";
}

/* H200, logsumexp of f32: 2^24 76.1 us, by 512 x 5 73.4, 767 rows of 79358 432, 342; maximum segment sum of 2^24 f64 between
 * flags: 288 x 5 339 us, 384 x 3 249. */
void pipeline_shorten_chains(const struct problem *p, const struct device *d, struct plan_case *c)
{
    enum { WARPS = 8, MOST = 512, LEAST = 256, STEP = 128, ITEMS = 5 };
    static const char why[] = "chains of operators wait";
    int best = 0;
    for (int threads = MOST; threads >= LEAST; threads -= STEP) {
        const int room = pipeline_most_items(p, d, threads, WARPS, c->tunable[TN_VECTOR], c->tunable[TN_STAGES], 0);
        const int items = room < ITEMS ? room : ITEMS;
        if (threads * items <= best)
            continue;
        best = threads * items;
        plan_set(c, TN_THREADS, threads, why);
        plan_set(c, TN_ITEMS, items, why);
        plan_set(c, TN_UPSWEEP_WARPS, WARPS, why);
    }
}
