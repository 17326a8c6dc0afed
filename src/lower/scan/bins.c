/* SPDX-License-Identifier: Apache-2.0 */
/* bins.c - planning of scans by a computed index.
 *
 * A block takes a segment, tile by tile; where there are fewer segments than multiprocessors, it takes one tile, and finds
 * what each bin had before by look-back.  Of many bins, tiles would publish more than they read; so a block takes a stretch
 * of tiles, first for their totals alone.  Every warp has a table with a state per bin in shared memory, and the block has
 * one more, so the bins that a case takes follow from its warps and what a block has.
 */
#include "lower/lower_impl.h"
#include "lower/reduce/bins.h"
#include "scan.h"

#include <string.h>

enum {
    WARP = 32,
    HELD_WORDS = 32,    /* registers for the elements of a thread, half of what it has */
    RESERVED = 1024,    /* bytes of shared memory that the system has */
    STATIC = 48 * 1024, /* what every device has, without asking for it */
    SLOT = 4,           /* bytes of a place in a tile */
    FEW_BINS = 256,
    STRETCH_BLOCKS = 4, /* per multiprocessor; shared memory holds fewer */
    EVEN = 64,          /* bins of a table are a multiple of */
    GRID_MAX = 1 << 20
};

bool scan_bins_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    return plan_takes(why, (struct misfit[]){ { !p->key, "it scans by an index; this problem has no `by`" }, { 0 } });
}

int scan_bins_staged(const struct problem *p)
{
    int bytes = SLOT;
    bool placed = p->nreductions == 1 && bins_count(p) && p->reduction[0].map[0]->imm.i == 1 &&
                  ty_bytes(p->reduction[0].op->field[0]) == SLOT && problem_writes(p, AT_POINT);
    for (int i = 0; i < p->ninputs; i++)
        bytes += access_input_direct(p, i) ? p->input[i].array.stride : 0;
    for (int o = 0; o < p->noutputs; o++)
        placed &= output_moment(&p->output[o]) != AT_POINT || output_is_placed(&p->output[o]);
    return placed ? bytes : 0;
}

static void find_position(const struct expr *e, void *user)
{
    const struct {
        const struct problem *p;
        bool *found;
    } *s = user;
    const bool input = e->kind == EX_INPUT && (!access_input_direct(s->p, e->which) || e->noffsets);
    *s->found |= input || (e->kind == EX_INDEX && s->p->space[e->which].reduced);
}

bool scan_bins_positions(const struct problem *p)
{
    bool found = false;
    struct {
        const struct problem *p;
        bool *found;
    } s = { p, &found };
    problem_walk(p, p->key, find_position, &s);
    for (int o = 0; o < p->noutputs; o++) {
        for (int f = 0; f < p->output[o].array.nfields; f++)
            problem_walk(p, p->output[o].value[f], find_position, &s);
        for (int d = 0; d < p->output[o].array.rank && p->output[o].index[d]; d++)
            problem_walk(p, p->output[o].index[d], find_position, &s);
    }
    return found;
}

/* Of a bin, in all tables of a block. */
static int64_t bin_bytes(const struct problem *p, int threads)
{
    return (int64_t)(threads / WARP + 1) * state_bytes(p) + (scan_bins_staged(p) ? SLOT : 0);
}

static int most_bytes(const struct planner *pl) { return pl->plan->device.shared_per_block - RESERVED; }

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static int64_t stage_bytes(const struct problem *p, const struct plan_case *c)
{
    return (int64_t)c->tunable[TN_THREADS] * c->tunable[TN_ITEMS] * scan_bins_staged(p);
}

/* How the blocks share the segments: tunable `parts`. */
enum { SHARED_SEGMENTS, OWN_SEGMENTS };

bool scan_bins_stretches(const struct plan_case *c)
{
    return c->tunable[TN_PARTS] == SHARED_SEGMENTS && c->tunable[TN_BINS] > FEW_BINS;
}

/* What a case takes, and for how many bytes and bins of shared memory. */
struct room {
    const char *name, *variant;
    int64_t bytes, bins;
    bool last;
};

/* Its bins are set later. */
static struct plan_case *add_case(struct planner *pl, const struct strategy *row, const struct room *r, int parts)
{
    const struct problem *p = pl->plan->problem;
    const char *name = parts == OWN_SEGMENTS ? r->name : arena_printf(&pl->s->arena, "%s_shared", r->name);
    struct plan_case *c = plan_case_add(pl, row, name, (struct formula){ 0 });
    plan_case_row(c, tuning_lookup(row->name, r->variant, pl->plan->device.sm));
    plan_set(c, TN_VECTOR, 1, NULL);
    plan_set(c, TN_PARTS, parts, parts == OWN_SEGMENTS ? "a block for each segment" : "few segments");
    plan_set_pdl(pl, c);
    const int words = scan_items_in_words(p) + !scan_bins_staged(p);
    while (plan_shrinks(c, TN_ITEMS) && c->tunable[TN_ITEMS] * words > HELD_WORDS)
        c->tunable[TN_ITEMS] /= 2;
    if (parts == SHARED_SEGMENTS && !plan_overrides(pl, TN_PARTS) && scan_keeps(p))
        c->code.guard = f_lt(scan_segments(p), f_sms());
    return c;
}

/* Each case takes what bins it has room for, unless all that there may be are fewer.  If none has room for what is asked
 * for, building the last one says why. */
static void add_cases(struct planner *pl, const struct strategy *row, int parts)
{
    const struct problem *p = pl->plan->problem;
    const struct room rooms[] = { { "few", "", STATIC, FEW_BINS, plan_overrides(pl, TN_BINS) },
                                  { "many", "many", most_bytes(pl), INT32_MAX, true } };
    int64_t lo, hi;
    plan_extent_range(pl, &p->keys, &lo, &hi);
    for (int i = 0, ends = 0; !ends; i++) {
        struct plan_case *c = add_case(pl, row, &rooms[i], parts);
        const int64_t fit = (rooms[i].bytes - stage_bytes(p, c)) / bin_bytes(p, c->tunable[TN_THREADS]);
        const int64_t even = fit > EVEN ? fit / EVEN * EVEN : fit, most = even < rooms[i].bins ? even : rooms[i].bins;
        const int64_t least = lo > 1 ? lo : 1, room = rooms[i].last && most < least ? least : most;
        plan_set(c, TN_BINS, (int)(hi > room ? room < INT32_MAX ? room : INT32_MAX : hi > 1 ? hi : 1), NULL);
        if (scan_bins_stretches(c))
            plan_set(c, TN_MIN_BLOCKS, STRETCH_BLOCKS, "what a block stays with takes registers");
        ends = hi <= c->tunable[TN_BINS] || rooms[i].last;
        if (c->tunable[TN_BINS] < least && !ends)
            memset(&pl->plan->cases[--pl->plan->ncases], 0, sizeof *c);
        else if (c->tunable[TN_BINS] >= least && c->tunable[TN_BINS] < hi)
            c->code.guard = f_and(c->code.guard, f_le(access_extent(p, &p->keys), c->tunable[TN_BINS]));
    }
}

void scan_bins_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const bool determined = state_determinism(p) != DET_ANY;
    const int asked = plan_setting(pl, TN_PARTS, -1);
    if (asked >= 0 ? asked != OWN_SEGMENTS : !determined)
        add_cases(pl, row, SHARED_SEGMENTS);
    if (asked >= 0 ? asked == OWN_SEGMENTS : determined || scan_keeps(p))
        add_cases(pl, row, OWN_SEGMENTS);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* Every segment has a tile, since its totals are written by the last one.  Stretches fill the device, and all have as many
 * tiles. */
static void share_segments(struct planner *pl, struct plan_case *c, struct prog_kernel *k)
{
    enum { STRETCHES_PER_SM = 2 };
    const struct problem *p = pl->plan->problem;
    const int64_t tile = scan_tile_elements(c);
    struct formula each = f_max(f_cdiv(scan_length(p), tile), 1); /* tiles, or stretches, of a segment */
    if (scan_bins_stretches(c)) {
        const struct formula most = f_cdiv(f_mul(f_sms(), STRETCHES_PER_SM), f_max(scan_segments(p), 1));
        const struct formula chunk = f_cdiv(each, f_min(each, most));
        plan_value_arg(k, VAL_CHUNK, TY_I64, f_mul(chunk, tile));
        each = f_cdiv(each, chunk);
    }
    const struct formula tiles = f_mul(scan_segments(p), each);
    plan_value_arg(k, VAL_PER_SEGMENT, TY_I32, each);
    plan_value_arg(k, VAL_TILES, TY_I32, tiles);
    scan_control_args(pl, c, f_mul(tiles, access_extent(p, &p->keys)));
    plan_launch(pl, c, 0, f_max(tiles, 1));
}

static bool check(struct planner *pl, const struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int threads = c->tunable[TN_THREADS], parts = c->tunable[TN_PARTS];
    const int64_t bytes = c->tunable[TN_BINS] * bin_bytes(p, threads) + stage_bytes(p, c);
    int64_t least, most;
    plan_extent_range(pl, &p->keys, &least, &most);
    const struct misfit m[] = {
        { threads % WARP, "threads must be a multiple of 32" },
        { c->tunable[TN_BINS] < (least > 1 ? least : 1), "the tables have fewer bins than there are" },
        { c->tunable[TN_VECTOR] != 1, "the lanes of a warp take elements side by side" },
        { c->tunable[TN_ITEMS] > ITEMS_MAX, "a thread holds at most 64 elements" },
        { parts > OWN_SEGMENTS, "a segment has one block, or parts: 0, blocks for all of its tiles" },
        { parts == SHARED_SEGMENTS && state_determinism(p) != DET_ANY,
          "with parts: 0, how prefixes are combined depends on timing; the problem asks for determinism" },
        { bytes > most_bytes(pl),
          arena_printf(&pl->s->arena, "%d bins take %lld bytes of shared memory; a block of %s has %d",
                       c->tunable[TN_BINS], (long long)bytes, pl->plan->device.arch,
                       pl->plan->device.shared_per_block) },
        { 0 }
    };
    return plan_consistent(pl, c, m);
}

bool scan_bins_build(struct planner *pl, struct plan_case *c)
{
    struct prog_kernel *k = scan_kernel(pl, c, "");
    if (c->tunable[TN_PARTS] == OWN_SEGMENTS)
        plan_launch(pl, c, 0, f_max(f_min(scan_segments(pl->plan->problem), GRID_MAX), 1));
    else
        share_segments(pl, c, k);
    return check(pl, c);
}
