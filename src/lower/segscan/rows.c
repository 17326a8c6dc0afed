/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - planning of scans of segments by teams that wait for no other team.
 *
 *   segscan.staged    a block takes as many whole rows as fit its tile
 *   scan.block        a warp, a block or a cluster of blocks takes a segment of any length, tile by tile; a block
 *                     takes columns too, one element at a time, and whole arrays (scan/scan.c)
 *
 * They take segments of pieces as if those followed one another.
 *
 * A tile has (threads or 32) x items x vector elements.  Whole rows begin anywhere, and a tile begins where a vector
 * does; so a tile loses up to a vector less one element where rows are no multiple of a vector.  No strategy here asks
 * how rows are aligned, only whether the arrays are: with arrays that begin anywhere, vectors are loaded element by
 * element, and results are the same.
 */
#include "lower/work.h"
#include "segscan.h"

/* A row of several in a tile is found by a reciprocal of 32 bits. */
enum {
    WARP = 32,
    HELD_WORDS = 64,
    STAYING_WORDS = 72,
    STAGED_WORDS = 48, /* three blocks of 256 threads per multiprocessor, with four states besides */
    VAST = 28,         /* words of which more than one position would spill */
    TILE_MAX = 1 << 14,
    NARROW_ROW = 1 << 12,
    SHORT_ROW = 10 << 10,
    LONG_ROW = 1 << 14,
    CLUSTER_ROW = 1 << 10,
    SHORT_SEGMENT = 1 << 9,
    SHORT_PIECES = 1 << 10, /* of segments of pieces; longer ones are better off with a block each */
    FILLED = 77             /* percent of a tile */
};

/* ---- facts ------------------------------------------------------------------------------------------------------- */

bool segscan_staged_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    const struct misfit m[] = {
        { !scan_keeps(p) || !scan_in_lines(p), "it scans rows: some dimension must be kept, and the last one scanned" },
        { scan_operator_reads(p),
          "the operator reads inputs that differ between segments, and tiles hold several of them" },
        { 0 }
    };
    return plan_takes(why, m);
}

/* May a cluster of blocks take a segment? */
static bool clusters_fit(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    if (d->sm < 90)
        *why = arena_printf(a, "thread-block clusters need sm_90; the target is %s", d->arch);
    else if (state_determinism(p) != DET_ANY)
        *why = "arrays that begin anywhere are not for clusters; the problem asks for determinism";
    else
        *why = scan_in_lines(p) ? NULL : "clusters scan along the last dimension";
    return !*why;
}

FITS_WHAT(scan_block, plan_takes_all)

/* ---- cases ------------------------------------------------------------------------------------------------------- */

/* Teams that take tile after tile have the inputs of the next one on their way. */
static bool stays(const struct strategy *row)
{
    return row->plan == scan_block_plan || row->plan == scan_lookback_plan;
}

/* Words of registers per position, with what such teams hold; functions have values of their own, and what lies elsewhere
 * has addresses, more of them in pieces.  Stores that are scattered are worth the largest tiles. */
static int words_held(const struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const int words = scan_items_in_words(p), inputs = words - state_words(p, NULL);
    if (!stays(row) || words >= VAST || scan_stores_by_index(p))
        return words;
    const int addresses = !scan_loads_elsewhere(p) ? 0 : segments_in_pieces(p) ? 2 : 1;
    return words + inputs + addresses + (work_of(p, NULL, pl->plan->device.sm).special > 0);
}

/* Registers for as many threads as hide latency: bytes are taken out of their words; look-back with addresses of pieces. */
static void bound_registers(const struct problem *p, const struct strategy *row, struct plan_case *c)
{
    enum { MOST = 4 };
    const bool elsewhere = scan_loads_elsewhere(p);
    if (c->tunable[TN_MIN_BLOCKS] > 0)
        return;
    if (row->plan == scan_block_plan && scan_compares_bytes(p))
        plan_set(c, TN_MIN_BLOCKS, (elsewhere ? 512 : 768) / c->tunable[TN_THREADS],
                 "bytes are taken out of their words");
    /* totals beside the elements take registers, too */
    if (row->plan == scan_lookback_plan && segments_in_pieces(p) && elsewhere && !problem_writes(p, AT_TOTAL)) {
        plan_set(c, TN_BLOCKS_PER_SM, MOST, "small tiles that wait for one another");
        plan_set(c, TN_MIN_BLOCKS, c->tunable[TN_BLOCKS_PER_SM], "blocks that stay are resident at once");
    }
}

/* Of wide states a tile has half as many threads with twice the positions.  H200, f32 maximum segment sum, rows of 13: 197 us,
 * 256 threads of 4 232, of 8 210. */
static void fewer_threads(const struct problem *p, struct plan_case *c)
{
    enum { WIDE = 5, MOST = 40 };
    const int words = scan_items_in_words(p);
    if (words < WIDE || words >= VAST || scan_stores_by_index(p) || 2 * scan_degree(c) * words > MOST ||
        c->overridden[TN_ITEMS])
        return;
    plan_set(c, TN_THREADS, c->tunable[TN_THREADS] / 2, "half as many threads with twice the positions");
    c->tunable[TN_ITEMS] *= 2;
}

/* ptxas takes registers for two blocks, where states that carry an index, or reads of neighbours, leave room for three.  H200, us:
 * argmin of rows of 3 x 21, 5 x 111 310, 393, left alone 402, 500; products of u8 with neighbours in rows of 15, 62 779, 801,
 * with half the positions 744, 767, left alone 981, 1010. */
static void three_blocks(const struct problem *p, struct plan_case *c)
{
    enum { THREADS = 256, INDEXED = 3 };
    if (c->tunable[TN_THREADS] != THREADS || c->tunable[TN_MIN_BLOCKS] || p->nreductions != 1)
        return;
    if (state_words(p, NULL) == INDEXED && p->reduction[0].op->nfields == 2 && access_vector_width(p) <= 4)
        plan_set(c, TN_MIN_BLOCKS, 3, "H200, argmin of f32 in rows: see rows.c");
    else if (access_beside(p) && c->tunable[TN_VECTOR] == 4 && c->tunable[TN_ITEMS] == 4)
        plan_set(c, TN_ITEMS, 2, "H200, products of bytes with neighbours: see rows.c");
}

/* A case whose threads hold what fits their registers. */
static struct plan_case *add_case(struct planner *pl, const struct strategy *row, const char *variant, const char *name,
                                  struct formula guard)
{
    const struct problem *p = pl->plan->problem;
    const int words = scan_items_in_words(p);
    const int each = words_held(pl, row);
    const bool bytes = scan_compares_bytes(p) && state_words(p, NULL) == 1; /* whose vectors are long */
    const int staged = STAGED_WORDS - (bytes ? 0 : 4 * words);
    const int held = row->plan == segscan_staged_plan ? staged : each > words ? STAYING_WORDS : HELD_WORDS;
    const int most = words < VAST ? held : VAST;
    struct plan_case *c = scan_add_variant(pl, row, variant, name, guard);
    plan_set_pdl(pl, c);
    while (plan_shrinks(c, TN_ITEMS) && (scan_degree(c) > ITEMS_MAX || scan_degree(c) * each > most))
        c->tunable[TN_ITEMS] -= c->tunable[TN_ITEMS] % 2 ? 1 : c->tunable[TN_ITEMS] / 2;
    while (plan_shrinks(c, TN_VECTOR) && scan_degree(c) * each > most)
        c->tunable[TN_VECTOR] /= 2;
    bound_registers(p, row, c);
    if (row->plan == segscan_staged_plan) {
        fewer_threads(p, c);
        three_blocks(p, c);
    }
    return c;
}

struct formula segscan_lost(const struct problem *p, int vector)
{
    return f_mul(f_ne(f_mod(scan_length(p), vector), 0), vector - 1);
}

/* Rows that fit the tiles of the case. */
static struct formula fitting(const struct problem *p, const struct plan_case *c)
{
    const int vector = c->tunable[TN_VECTOR];
    const struct formula length = scan_length(p);
    const struct formula room = vector == 1 ? length : f_add(length, segscan_lost(p, vector));
    return f_and(f_ge(length, 1), f_le(room, scan_tile_elements(c)));
}

/* Pieces begin within vectors, so lanes exchange elements in shared memory (lines_pieces.c): then a lane may as well have
 * all of its positions side by side, which costs operators the least. */
static void exchange(const struct planner *pl, struct plan_case *c, bool whole)
{
    enum { ROOM = 40 << 10, MOST = 16, LIGHT = 4, WORDS = 2 };
    const struct problem *p = pl->plan->problem;
    /* Addresses take registers. */
    const bool addresses = scan_stores_by_index(p) && (scan_loads_elsewhere(p) || scan_items_in_words(p) > WORDS);
    const bool states = state_words(p, NULL) > WORDS; /* of which 16 beside their elements do not fit 80 registers */
    const bool heavy = whole || addresses || states || scan_items_in_words(p) > LIGHT || pl->plan->device.sm < 90;
    const int threads = whole && scan_has_totals(p) ? 256 : heavy ? 512 : 768;
    int n = 1;
    while (2 * n <= MOST && 2 * n * scan_items_in_words(p) <= HELD_WORDS &&
           2 * n * c->tunable[TN_THREADS] * access_widest(p) <= ROOM)
        n *= 2;
    if (c->overridden[TN_VECTOR] || c->overridden[TN_ITEMS])
        return;
    c->tunable[TN_ITEMS] = 1;
    c->tunable[TN_VECTOR] = n;
    plan_set(c, TN_MIN_BLOCKS, threads / c->tunable[TN_THREADS], "registers that most operators need");
}

static void add_cases(struct planner *pl, const struct strategy *row, const char *variant, const char *name,
                      struct formula guard, bool whole)
{
    const struct problem *p = pl->plan->problem;
    struct formula aligned = { 0 };
    struct plan_case *c = add_case(pl, row, variant, name, guard);
    const bool exchanges = segments_in_pieces(p) && state_determinism(p) == DET_ANY;
    const bool only =
        exchanges && (whole || state_words(p, NULL) > 2); /* combining, or gaps, cost more than vectors save */
    if (only)
        exchange(pl, c, whole);
    if (whole)
        guard = f_and(fitting(p, c), guard);
    c->code.guard = guard;
    if (only || c->tunable[TN_VECTOR] > access_vector_width(p) ||
        !access_aligned_guard(p, c->tunable[TN_VECTOR], true, &aligned))
        return;
    c->aligned = true;
    if (segments_in_pieces(p))
        aligned = f_and(f_eq(f_mod(segments_piece(p), c->tunable[TN_VECTOR]), 0), aligned);
    c->code.guard = f_and(guard, aligned);
    c = add_case(pl, row, variant, arena_printf(&pl->s->arena, "%s_unaligned", name), guard);
    if (exchanges)
        exchange(pl, c, whole);
}

void segscan_add_cases(struct planner *pl, const struct strategy *row, const char *variant, const char *name,
                       struct formula guard, bool whole)
{
    const int from = pl->plan->ncases;
    add_cases(pl, row, variant, name, guard, whole);
    if (!whole)
        segscan_turn_pieces(pl, from);
}

/* But for rows that leave much of the tile empty. */
void segscan_staged_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const struct formula length = scan_length(p);
    const int from = pl->plan->ncases;
    segscan_add_cases(pl, row, "", "staged", (struct formula){ 0 }, true);
    for (int i = from; i < pl->plan->ncases && !plan_pinned(pl); i++) {
        struct plan_case *c = &pl->plan->cases[i];
        const int64_t size = scan_tile_elements(c);
        const struct formula valid = f_mul(f_div(size, length), length);
        const struct formula fills = f_le(size * FILLED / 100, valid);
        c->code.guard = f_and(segments_in_pieces(p) ? f_le(length, SHORT_PIECES) : fills, c->code.guard);
    }
}

/* A warp per segment, where those between offsets are short on average, or where the user asks for it.  True when no
 * other cases are asked for. */
static bool add_warps(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const bool asked = plan_overrides(pl, TN_LANES);
    const int from = pl->plan->ncases;
    struct formula guard = { 0 };
    if (!plan_setting(pl, TN_LANES, !plan_pinned(pl) && p->offsets >= 0))
        return false;
    if (!asked)
        guard = f_le(access_count(p), f_mul(scan_segments(p), SHORT_SEGMENT));
    segscan_add_cases(pl, row, "warps", "warps", guard, false);
    for (int i = from; i < pl->plan->ncases; i++)
        plan_set(&pl->plan->cases[i], TN_LANES, WARP, "a warp per short segment");
    return asked;
}

/* Segments that keep seven of eight multiprocessors busy, with so many blocks each; or two blocks on each of them, where
 * look-back is hardly slower. */
static struct formula enough(const struct problem *p, int blocks)
{
    if (segments_in_pieces(p))
        return f_le(f_mul(plan_sms(p), 2), scan_segments(p));
    return f_le(f_mul(plan_sms(p), 7), f_mul(scan_segments(p), (int64_t)8 * blocks));
}

/* Shapes for rows of some lengths: few threads that all have something, more of them for longer ones. */
static const struct {
    const char *variant, *name;
    int above, upto;
    bool few;       /* for no more rows than multiprocessors */
    bool unaligned; /* takes pointers off the vectors' alignment too */
    bool pieces;    /* also for segments of pieces */
} shapes[] = {
    { "tight", "tight_rows", 0, NARROW_ROW, false, false, false },
    { "narrow", "narrow_rows", 0, NARROW_ROW, false, true, true },
    { "few", "few_rows", SHORT_ROW, LONG_ROW, true, false, false },
    { "short", "short_rows", 0, LONG_ROW - 1, false, true, false },
};

/* Elements of the tiles that a row takes. */
static struct formula tiled(const struct problem *p, const struct plan_case *c)
{
    const int64_t size = scan_tile_elements(c);
    return f_mul(f_cdiv(f_add(scan_length(p), c->tunable[TN_VECTOR] - 1), size), size);
}

/* Of two shapes that differ in nothing else, the first one takes rows that leave less of its tiles empty. */
static void prefer_fuller(const struct problem *p, struct plan_case *c, const struct plan_case *other)
{
    c->code.guard = f_and(f_lt(tiled(p, c), tiled(p, other)), c->code.guard);
}

static void add_shapes(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const int tight = pl->plan->ncases;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (segments_in_pieces(p) && !shapes[i].pieces)
            continue;
        const int from = pl->plan->ncases;
        struct formula guard = f_le(scan_length(p), shapes[i].upto);
        if (shapes[i].above)
            guard = f_and(f_lt(shapes[i].above, scan_length(p)), guard);
        if (shapes[i].few)
            guard = f_and(f_le(scan_segments(p), plan_sms(p)), guard);
        segscan_add_cases(pl, row, shapes[i].variant, shapes[i].name, guard, false);
        if (!shapes[i].unaligned)
            plan_keep_first(pl, from);
    }
    if (!segments_in_pieces(p))
        prefer_fuller(p, &pl->plan->cases[tight], &pl->plan->cases[tight + 1]);
}

/* A pair of blocks per segment where those keep the multiprocessors busy; not for rows that would leave most threads
 * without work. Arrays that begin anywhere are left to look-back. */
static void add_pairs(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const struct formula guard = f_and(f_ge(scan_length(p), CLUSTER_ROW), enough(p, 2));
    const int from = pl->plan->ncases;
    segscan_add_cases(pl, row, "pairs", "cluster", guard, false);
    plan_keep_first(pl, from);
}

/* Rows that are short, where segments are enough to keep every multiprocessor busy, and whatever the other strategies
 * cannot do.  Small tiles fit most lengths well; long segments are worth larger ones. */
void scan_block_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const char *why;
    if (scan_single(p)) {
        if (plan_pinned(pl)) /* else: scan_small_plan() */
            scan_add_cases(pl, row, "whole", "block", (struct formula){ 0 }, true);
        return;
    }
    if (!scan_in_lines(p)) {
        scan_add_cases(pl, row, "", "segments", (struct formula){ 0 }, false);
        return;
    }
    if (add_warps(pl, row))
        return;
    if (!plan_pinned(pl) && p->offsets < 0)
        add_shapes(pl, row);
    const bool spreads = !plan_pinned(pl) && scan_spreads(pl);
    segscan_add_cases(pl, row, "", "rows", spreads ? enough(p, 1) : (struct formula){ 0 }, false);
    if (spreads && !segments_in_pieces(p) && clusters_fit(p, &pl->plan->device, &pl->s->arena, &why))
        add_pairs(pl, row);
    if (spreads)
        scan_turns_plan(pl);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

bool segscan_check(struct planner *pl, const struct plan_case *c)
{
    const int vector = c->tunable[TN_VECTOR];
    const bool exchanged = segments_in_pieces(pl->plan->problem) && !c->aligned;
    const int widest = exchanged ? WARP : access_vector_width(pl->plan->problem);
    /* A warp exchanges rows of one more than its lanes; the rest of shared memory is for aggregates. */
    const int64_t bytes = (int64_t)scan_tile_elements(c) * access_widest(pl->plan->problem) * (WARP + 1) / WARP;
    const struct misfit m[] = { { c->tunable[TN_THREADS] % 32, "threads must be a multiple of 32" },
                                { scan_degree(c) > ITEMS_MAX, "a thread holds at most 64 elements" },
                                { vector > widest || (vector & (vector - 1)),
                                  "the vector must be a power of two, no wider than 16 bytes of the widest array" },
                                { c->turns && !segscan_pieces_fit(pl, c), "a tile that turns does not fit" },
                                { exchanged && vector > 1 && bytes > pl->plan->device.shared_per_block - (8 << 10),
                                  "what lanes exchange does not fit shared memory" },
                                { 0 } };
    return plan_consistent(pl, c, m);
}

struct prog_kernel *segscan_kernel(struct planner *pl, struct plan_case *c)
{
    struct prog_kernel *k = scan_kernel(pl, c, "");
    const struct problem *p = pl->plan->problem;
    plan_value_arg(k, VAL_COUNT, TY_I64, segments_elements(p));
    plan_piece_arg(k, p);
    return k;
}

/* Rows per tile: where there are many of them, a multiple of a vector, so that tiles begin with one, or backwards all
 * at the same distance from one. */
static struct formula rows_per_tile(const struct problem *p, int64_t size, int vector)
{
    const struct formula length = scan_length(p);
    if (vector == 1)
        return f_div(size, length);
    const struct formula rows = f_div(f_sub(size, segscan_lost(p, vector)), length);
    return f_max(f_min(rows, 8 * vector - 1), f_mul(f_div(rows, vector), vector));
}

bool segscan_staged_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int64_t size = scan_tile_elements(c);
    const struct formula rows = f_max(rows_per_tile(p, size, c->tunable[TN_VECTOR]), 1);
    struct prog_kernel *k = segscan_kernel(pl, c);
    plan_value_arg(k, VAL_ROWS, TY_I64, rows);
    plan_value_arg(k, VAL_RECIPROCAL, TY_I64, f_add(f_div((int64_t)1 << 32, scan_length(p)), 1));
    plan_launch(pl, c, 0, f_max(f_cdiv(scan_segments(p), rows), 1));
    const struct misfit m[] = { { size > TILE_MAX, "a tile has at most 16384 elements" }, { 0 } };
    return plan_consistent(pl, c, m) && segscan_check(pl, c);
}

static bool check_team(struct planner *pl, const struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int cluster = c->tunable[TN_CLUSTER], lanes = c->tunable[TN_LANES];
    const char *why = NULL;
    const bool fits = cluster <= 1 || clusters_fit(p, &pl->plan->device, &pl->s->arena, &why);
    const struct misfit m[] = { { !fits, fits ? "" : why },
                                { cluster & (cluster - 1), "the cluster must be a power of two" },
                                { lanes && lanes != WARP, "a segment has a warp (lanes 32) or a block (lanes 0)" },
                                { lanes && cluster > 1, "a warp has no cluster" },
                                { lanes && !scan_in_lines(p), "warps scan along the last dimension" },
                                { c->tunable[TN_STRIPED] && scan_in_lines(p), "only a whole array may be striped" },
                                { segments_in_pieces(p) && scan_tile_elements(c) * cluster > SEGMENTS_PIECE_MOST,
                                  "a cluster has at most 65536 elements of segments that lie in pieces" },
                                { 0 } };
    return plan_consistent(pl, c, m);
}

/* Warps, blocks or clusters take segments in turns once there are more than are started at once. */
bool scan_block_build(struct planner *pl, struct plan_case *c)
{
    enum { GRID = 1 << 20, CLUSTERS = 1 << 16 };
    const struct problem *p = pl->plan->problem;
    if (scan_single(p))
        return scan_whole_build(pl, c);
    const int cluster = c->tunable[TN_CLUSTER] > 1 ? c->tunable[TN_CLUSTER] : 0;
    const int warps = c->tunable[TN_LANES] ? c->tunable[TN_THREADS] / WARP : 1;
    const struct formula segments = warps > 1 ? f_cdiv(scan_segments(p), warps) : scan_segments(p);
    const struct formula teams = f_max(f_min(segments, cluster ? CLUSTERS : GRID), 1);
    struct prog_kernel *k = segscan_kernel(pl, c);
    k->cluster = cluster;
    struct prog_step *step = plan_launch(pl, c, 0, cluster ? f_mul(teams, cluster) : teams);
    step->nonportable_cluster = cluster > 8;
    return check_team(pl, c) && (scan_in_lines(p) ? segscan_check(pl, c) : scan_check_tunables(pl, c));
}
