/* SPDX-License-Identifier: Apache-2.0 */
/* bins.c - planning of reductions by computed indices.
 *
 *   shared   every block has tables in shared memory, which it adds to one in global memory at its end; for as many
 *            bins as `bins` says.  The table in global memory is control memory of a constant size: it is zero between
 *            launches, as the kernel that writes the outputs leaves it.  States of several words, whose bins would be locked
 *            there, are left apart, a table for each block, in scratch memory, and that kernel joins them
 *   private  the same with a table for every thread (`lanes` is 1): see bins_private.c
 *   rows     a block takes rows one after the other, each with tables of its own (`parts` is 1), and writes the outputs
 *   parts    as shared, but the tables of a block have a part of the bins (`parts` is 2 or more): blocks side by side have
 *            different parts and read the same elements.  The table in global memory is that of `global`, but for states of
 *            several words, which are left apart as those of `shared`
 *   global   one table in global memory, for any number of bins (`bins` is 0).  It lies in scratch memory, and a kernel
 *            clears it first: beside what such a table costs, that kernel is cheap
 */
#include "bins.h"

#include "lower/segments.h"
#include "reduce.h"

enum {
    THREADS = 512, /* as tuning.def has it */
    THREADS_MOST = 1024,
    TABLE_LANES = 32,
    TABLE_THREADS = 256,
    TABLE_GRID_MAX = 1 << 16,
    EVEN = 64, /* bins of a table are a multiple of */
    /* bytes of shared memory: of a block's tables where there are several, where there is one */
    SHARED_FEW = 32 * 1024,
    SHARED_USUAL = 48 * 1024
};

/* ---- tables ------------------------------------------------------------------------------------------------------ */

enum { LOCK = 4 };

int bins_words(const struct problem *p)
{
    int words = 0;
    for (int r = 0; r < p->nreductions; r++)
        words += op_words(p->reduction[r].op);
    return words;
}

bool bins_locked(const struct problem *p) { return bins_words(p) > p->nreductions; }

int bins_word_bytes(const struct problem *p, int word)
{
    int r = 0;
    for (; r < p->nreductions && word >= op_words(p->reduction[r].op); r++)
        word -= op_words(p->reduction[r].op);
    return r < p->nreductions ? op_word_bytes(p->reduction[r].op) : LOCK;
}

int bins_before(const struct problem *p, int word)
{
    int before = 0;
    const int own = bins_word_bytes(p, word);
    for (int w = 0; w < bins_words(p); w++) {
        const int bytes = bins_word_bytes(p, w);
        before += bytes > own || (bytes == own && w < word) ? bytes : 0;
    }
    return before;
}

int bins_bytes(const struct problem *p) { return bins_state_bytes(p) + (bins_locked(p) ? LOCK : 0); }

int bins_state_bytes(const struct problem *p)
{
    int bytes = 0;
    for (int w = 0; w < bins_words(p); w++)
        bytes += bins_word_bytes(p, w);
    return bytes;
}

bool bins_count(const struct problem *p)
{
    bool all = true;
    for (int r = 0; r < p->nreductions; r++) {
        const struct op *op = p->reduction[r].op;
        all &= op_native(op) == NATIVE_ADD && !ty_is_float(op->field[0]) && p->reduction[r].map[0]->kind == EX_CONST;
    }
    return all;
}

enum { COUNTER = 4 };

bool bins_counters(const struct problem *p) { return bins_count(p) && bins_bytes(p) > COUNTER; }

/* Of a bin in a table of a block. */
static int shared_bytes(const struct problem *p) { return bins_counters(p) ? COUNTER : bins_bytes(p); }

int bins_tables(const struct plan_case *c)
{
    return c->tunable[TN_LANES] ? c->tunable[TN_THREADS] / c->tunable[TN_LANES] : 1;
}

bool bins_private(const struct plan_case *c) { return c->tunable[TN_LANES] == 1; }

bool bins_of_rows(const struct plan_case *c) { return c->tunable[TN_PARTS] == 1; }

bool bins_parted(const struct plan_case *c) { return c->tunable[TN_PARTS] > 1; }

bool bins_apart(const struct plan_case *c, const struct problem *p)
{
    return bins_locked(p) && c->tunable[TN_BINS] > 0 && !bins_of_rows(c) && !bins_placed(p);
}

static bool of_columns(const struct plan_case *c, const struct problem *p)
{
    return bins_private(c) && bins_columns(p);
}

int bins_capacity(const struct plan_case *c, const struct problem *p)
{
    return c->tunable[TN_BINS] * (of_columns(c, p) ? c->tunable[TN_THREADS] : 1);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

bool reduce_bins_fits(const struct problem *p, const struct device *d, struct arena *a, const char **why)
{
    (void)d, (void)a;
    *why = "it reduces by indices; this problem has no `by`";
    return p->nby > 0;
}

/* A few elements of a thread at once: each has its own code, and more of it where it locks a bin.  Of parts few elements are
 * the block's own: the more of them a lane looks through at once, the more alike are the numbers that lanes find. */
static void choose_items(struct plan_case *c, const struct problem *p)
{
    enum { AT_ONCE = 8, LOCKED_AT_ONCE = 4, OWN_AT_ONCE = 16 };
    const int tuned = c->tunable[TN_ITEMS], vector = c->tunable[TN_VECTOR], own = OWN_AT_ONCE / vector;
    const int locked = bins_parted(c) ? OWN_AT_ONCE : LOCKED_AT_ONCE,
              met = (bins_locked(p) ? locked : AT_ONCE) / vector;
    const int items = !bins_private(c) ? met : tuned < own ? tuned : own;
    plan_set(c, TN_ITEMS, items > 1 ? items : 1, NULL);
}

/* Combinations of the kept dimensions. */
static struct formula kept_rows(const struct problem *p)
{
    struct formula rows = f_const(1);
    for (int d = 0; d < p->rank; d++)
        rows = p->space[d].reduced ? rows : f_mul(rows, access_extent(p, &p->space[d].extent));
    return rows;
}

/* Bins of a row. */
static struct formula row_bins(const struct problem *p)
{
    struct formula bins = f_const(1);
    for (int d = 0; d < p->nby; d++)
        bins = f_mul(bins, access_extent(p, &p->bin[d]));
    return bins;
}

void bins_add_cases(struct planner *pl, const struct strategy *row, const struct bins_shape *s)
{
    const struct problem *p = pl->plan->problem;
    const bool rows = s->parts == 1;
    /* vectors save little beside locks (by the model, not measured) */
    const bool locks = bins_locked(p) && s->lanes != 1 && !plan_pinned(pl);
    const char *names[] = { s->name, locks ? s->name : arena_printf(&pl->s->arena, "%s_unaligned", s->name) };
    for (int unaligned = locks ? 1 : 0; unaligned < 2; unaligned++) {
        struct plan_case *c = plan_case_add(pl, row, names[unaligned], s->guard);
        struct formula aligned = { 0 };
        plan_case_variant(pl, c, s->variant);
        if (unaligned)
            plan_set(c, TN_VECTOR, 1, NULL);
        plan_set(c, TN_LANES, s->lanes, NULL);
        plan_set(c, TN_BINS, s->bins, NULL);
        plan_set(c, TN_PARTS, s->parts, NULL);
        if (!plan_pinned(pl)) /* the user's `parts` are those of a strategy that the user has chosen */
            c->tunable[TN_PARTS] = s->parts;
        choose_items(c, p);
        if (bins_parted(c))
            plan_set(c, TN_MIN_BLOCKS, 1,
                     "left alone, ptxas spills to fit a second block, for which there is no shared memory");
        else if (bins_locked(p))
            plan_set(c, TN_MIN_BLOCKS, 1, "left alone, ptxas spills states of several words to fit a third block");
        reduce_usual(pl, c);
        c->aligned = !unaligned && c->tunable[TN_VECTOR] > 1;
        const int64_t room = (int64_t)c->tunable[TN_BINS] * (bins_parted(c) ? c->tunable[TN_PARTS] : 1);
        if (room && room < s->most)
            c->code.guard = f_and(s->guard, f_le(rows ? row_bins(p) : segments_count(p), room));
        if (unaligned || !c->aligned)
            return;
        if (rows) /* each begins with a vector */
            c->code.guard = f_and(c->code.guard, f_eq(f_mod(segments_length(p), c->tunable[TN_VECTOR]), 0));
        if (!access_aligned_guard(p, c->tunable[TN_VECTOR], rows, &aligned) && !rows)
            return;
        c->code.guard = f_and(c->code.guard, aligned);
    }
}

/* What is known about the number of bins of a row. */
static void row_bins_range(struct planner *pl, int64_t *lo, int64_t *hi)
{
    const struct problem *p = pl->plan->problem;
    *lo = *hi = 1;
    for (int d = 0; d < p->nby; d++)
        plan_range_times(pl, &p->bin[d], lo, hi);
}

/* The same of all bins; checks that their number fits. */
static void bins_range(struct planner *pl, int64_t *lo, int64_t *hi)
{
    const struct problem *p = pl->plan->problem;
    row_bins_range(pl, lo, hi);
    for (int d = 0; d < p->rank; d++)
        if (!p->space[d].reduced)
            plan_range_times(pl, &p->space[d].extent, lo, hi);
    if (!bins_placed(p)) /* of outputs, few bins have tables at all */
        plan_check(pl, f_le(segments_count(p), INT32_MAX), "there are more than 2^31 - 1 bins");
}

/* Tables of more bins than there are elements are not worth clearing.  Where elements may as well meet in the outputs,
 * each bin must spare several of them that (by the model, not measured). */
static struct formula worthwhile(const struct problem *p)
{
    enum { SPARED = 16 };
    const struct formula count = access_count(p);
    return f_le(segments_count(p), bins_placed(p) ? f_div(count, f_const(SPARED)) : count);
}

/* All parts of the bins read all elements, and each block adds its tables to the one in global memory.  H200, by 65536 random
 * keys, the one table in parentheses: counts of 2^26, 2^24, 2^22 elements 110, 36, 22 us (752, 193, 52), sums of f32 382, 103, 56
 * (779, 202, 54); more keys are in docs/design/reduce-bins.md. */
static struct formula parts_pay(const struct planner *pl, struct formula guard)
{
    enum { COUNTED = 64, ELEMENTS = 128 }; /* of a bin */
    const struct problem *p = pl->plan->problem;
    const int least = bins_count(p) ? COUNTED : ELEMENTS;
    return plan_pinned(pl) ? guard : f_and(guard, f_ge(access_count(p), f_mul(segments_count(p), least)));
}

/* What a block's tables take: lanes that share one (0: all), bytes of shared memory, parts of the bins at most. */
struct room {
    const char *name, *variant;
    int threads, lanes, bytes, parts;
};

/* So many bins have room in `bytes` of shared memory: of a table for the block (lanes 0), or of one for so many lanes. */
static int64_t bins_of_room(const struct problem *p, int bytes, int threads, int lanes, int64_t most)
{
    const int room = bytes / (shared_bytes(p) * (lanes > 0 && lanes < threads ? threads / lanes : 1));
    return most < room ? (most > 1 ? most : 1) : room > EVEN ? room / EVEN * EVEN : room > 1 ? room : 1;
}

/* The cases of a room; true where it has room for all bins that there may be, or the user says how many it has. */
static bool plan_room(struct planner *pl, const struct strategy *row, const struct room *of, int64_t lo, int64_t hi,
                      struct formula guard)
{
    const struct problem *p = pl->plan->problem;
    const int lanes = plan_setting(pl, TN_LANES, of->lanes), threads = plan_setting(pl, TN_THREADS, of->threads);
    const int64_t bins = bins_of_room(p, of->bytes, threads, lanes, hi);
    if (lo <= bins * (of->parts ? of->parts : 1))
        bins_add_cases(pl, row, &(struct bins_shape){ of->name, of->variant, lanes, (int)bins, hi, of->parts, guard });
    return hi <= bins || plan_overrides(pl, TN_BINS);
}

static int most_bytes(const struct planner *pl) { return pl->plan->device.shared_per_block - BINS_SHARED_RESERVED; }

/* A block that has all of shared memory: states that are locked take more registers than 1024 threads have. */
static struct room room_of_most(const struct planner *pl, const char *name, int parts)
{
    const int most = most_bytes(pl);
    return bins_locked(pl->plan->problem) ? (struct room){ name, "", THREADS, 0, most, parts }
                                          : (struct room){ name, "most", THREADS_MOST, 0, most, parts };
}

/* A table per warp for few bins, a table per block for more, and one of all that a block can have.  States that are locked skip
 * the tables of warps: for as few bins there are tables of threads (not measured). */
static bool plan_shared(struct planner *pl, const struct strategy *row, int64_t lo, int64_t hi, struct formula guard)
{
    const int most = most_bytes(pl);
    const struct room rooms[] = { { "few", "", THREADS, TABLE_LANES, SHARED_FEW, 0 },
                                  { "many", "", THREADS, 0, SHARED_USUAL < most ? SHARED_USUAL : most, 0 },
                                  room_of_most(pl, "most", 0) };
    bool all = false;
    const char *why;
    const bool of_threads = bins_locked(pl->plan->problem) && bins_private_takes(pl->plan->problem, &why);
    for (int i = of_threads && !plan_pinned(pl); i < 3 && !all; i++)
        all = plan_room(pl, row, &rooms[i], lo, hi, guard);
    return all;
}

/* Several such parts. */
static void plan_parts(struct planner *pl, const struct strategy *row, int64_t lo, int64_t hi, struct formula guard)
{
    enum { PARTS = 6 };
    const int asked = plan_setting(pl, TN_PARTS, PARTS);
    const struct room room = room_of_most(pl, "parts", asked);
    plan_room(pl, row, &room, lo, hi, parts_pay(pl, guard));
}

static bool rows_fit(const struct problem *p) { return !bins_placed(p) && segments_kept(p) && segments_trailing(p); }

/* Rows with tables of their own, a table for each block.  Some multiprocessors may have no row (by the model, not
 * measured). */
static void plan_rows(struct planner *pl, const struct strategy *row, struct formula guard)
{
    enum { ROWS = 8 }; /* at least a row for so many multiprocessors */
    const struct problem *p = pl->plan->problem;
    const int lanes = plan_setting(pl, TN_LANES, 0), threads = plan_setting(pl, TN_THREADS, THREADS);
    int64_t lo, hi;
    row_bins_range(pl, &lo, &hi);
    const int64_t bins = bins_of_room(p, SHARED_USUAL, threads, lanes, hi);
    const bool asked = plan_overrides(pl, TN_PARTS);
    guard = asked ? (struct formula){ 0 } : f_and(guard, f_ge(f_mul(kept_rows(p), ROWS), f_sms()));
    if (bins_counters(p))
        guard = f_and(guard, f_le(segments_length(p), UINT32_MAX));
    if (lo <= bins || asked)
        bins_add_cases(pl, row, &(struct bins_shape){ "rows", "", lanes, (int)bins, hi, 1, guard });
}

/* One table in global memory takes whatever the user sets for the others. */
static void plan_global(struct planner *pl, const struct strategy *row)
{
    const int from = pl->plan->ncases;
    bins_add_cases(pl, row, &(struct bins_shape){ .name = "global", .variant = "" });
    for (int i = from; i < pl->plan->ncases && !plan_pinned(pl); i++)
        pl->plan->cases[i].tunable[TN_LANES] = pl->plan->cases[i].tunable[TN_BINS] = 0;
}

/* Tables of threads, of blocks, and the one in global memory take more bins each than the ones before; the user's
 * `lanes` and `bins` choose among them. */
void reduce_bins_plan(struct planner *pl, const struct strategy *row)
{
    const struct problem *p = pl->plan->problem;
    const int lanes = plan_setting(pl, TN_LANES, -1), bins = plan_setting(pl, TN_BINS, -1);
    const int parts = plan_setting(pl, TN_PARTS, -1);
    const bool chosen = lanes >= 0 || bins >= 0, pinned = plan_pinned(pl), placed = bins_placed(p);
    const bool always = pinned && (chosen || placed || parts == 1);
    const struct formula guard = always ? (struct formula){ 0 } : worthwhile(p);
    const char *why;
    int64_t lo, hi;
    bins_range(pl, &lo, &hi);
    const bool rows = rows_fit(p) && (parts < 0 || parts == 1) && lanes != 1 && bins != 0;
    if (parts == 1 && (pinned || rows))
        plan_rows(pl, row, guard);
    if (parts == 1 && pinned)
        return;
    if (chosen ? lanes == 1 && bins != 0 : parts < 2 && bins_private_takes(p, &why))
        bins_private_plan(pl, row, guard);
    const bool all = lanes != 1 && bins != 0 && parts < 2 && plan_shared(pl, row, lo, hi, guard);
    if (rows && parts < 0 && (!pinned || !chosen))
        plan_rows(pl, row, guard);
    if (lanes != 1 && bins != 0 && (parts > 1 || (parts < 0 && !all && !placed && !segments_kept(p))))
        plan_parts(pl, row, lo, hi, guard);
    if (!placed && (!pinned || (!chosen && parts < 2) || bins == 0))
        plan_global(pl, row);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* A kernel that goes over the bins, so many lanes for each. */
static struct formula table_kernel(struct planner *pl, struct plan_case *c, const char *suffix, int lanes)
{
    plan_kernel(pl, c, suffix)->threads = TABLE_THREADS;
    return f_max(1, f_min(f_cdiv(segments_count(pl->plan->problem), TABLE_THREADS / lanes), TABLE_GRID_MAX));
}

/* How many the bins of a launch need. */
static struct formula parts_of(const struct problem *p, const struct plan_case *c)
{
    return bins_parted(c) ? f_max(1, f_cdiv(segments_count(p), c->tunable[TN_BINS])) : f_const(1);
}

/* Blocks that fill the device, as many for each part; each takes at least as many elements as it has bins to add in the
 * end, and no more than counters can count. */
static struct formula grid(const struct problem *p, const struct plan_case *c, bool tables)
{
    const struct formula count = access_count(p);
    const int64_t tile = (int64_t)c->tunable[TN_THREADS] * c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR];
    struct formula blocks = f_min(f_cdiv(count, tile), f_mul(f_sms(), c->tunable[TN_BLOCKS_PER_SM]));
    if (tables)
        blocks = f_min(blocks, f_div(count, f_max(1, segments_count(p))));
    if (bins_parted(c))
        blocks = f_div(blocks, parts_of(p, c));
    blocks = f_max(tables && bins_counters(p) ? f_cdiv(count, INT64_C(1) << 31) : f_const(1), blocks);
    return bins_parted(c) ? f_mul(blocks, parts_of(p, c)) : blocks;
}

/* Do the tables fit shared memory? */
static bool check_tables(struct planner *pl, const struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int lanes = c->tunable[TN_LANES], each = bins_private(c) ? bins_state_bytes(p) : shared_bytes(p);
    const int64_t bytes = (int64_t)c->tunable[TN_BINS] * each * bins_tables(c);
    const char *why;
    int64_t least, most;
    row_bins_range(pl, &least, &most);
    if (bins_of_rows(c) && c->tunable[TN_BINS] < least)
        return plan_contradiction(pl, c, WITH_PARTS | WITH_BINS, "a row has more bins than the tables of a block");
    if (bins_parted(c) && bins_private(c))
        return plan_contradiction(pl, c, WITH_PARTS | WITH_LANES, "tables of threads have all bins");
    if (lanes & (lanes - 1))
        return plan_contradiction(pl, c, WITH_LANES, "the lanes that share a table are a power of two");
    if (bins_of_rows(c) && !rows_fit(p))
        return plan_contradiction(pl, c, WITH_PARTS,
                                  "rows have tables of their own where rows are kept, and results are written once");
    if (bins_of_rows(c) && bins_private(c))
        return plan_contradiction(pl, c, WITH_PARTS | WITH_LANES, "tables of threads are of all rows");
    if (bins_private(c) && !bins_private_takes(p, &why))
        return plan_contradiction(pl, c, WITH_LANES, why);
    if (of_columns(c, p) && c->tunable[TN_VECTOR] > 1)
        return plan_contradiction(pl, c, WITH_LANES | WITH_VECTOR, "the elements of a column are taken one by one");
    if (bytes > pl->plan->device.shared_per_block - BINS_SHARED_RESERVED)
        return plan_contradiction(
            pl, c, WITH_THREADS | WITH_LANES | WITH_BINS,
            arena_printf(&pl->s->arena, "%d tables of %d bins take %lld bytes of shared memory; a block of %s has %d",
                         bins_tables(c), c->tunable[TN_BINS], (long long)bytes, pl->plan->device.arch,
                         pl->plan->device.shared_per_block));
    return true;
}

static bool check_one_table(struct planner *pl, const struct plan_case *c)
{
    if (c->tunable[TN_PARTS])
        return plan_contradiction(pl, c, WITH_PARTS | WITH_BINS,
                                  "neither rows nor parts of the bins have tables of their own in global memory");
    if (c->tunable[TN_LANES])
        return plan_contradiction(pl, c, WITH_LANES | WITH_BINS, "no lanes share the table in global memory");
    if (bins_placed(pl->plan->problem))
        return plan_contradiction(pl, c, WITH_BINS, "where elements meet in the outputs, blocks have tables");
    return true;
}

/* Tables of blocks that lie apart. */
static void build_apart(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const struct formula over = table_kernel(pl, c, "finish", bins_joined_by(c)), blocks = grid(p, c, true),
                         tables = bins_parted(c) ? f_div(blocks, parts_of(p, c)) : blocks;
    plan_value_arg(&c->code.kernel[BINS_ADD], VAL_BINS, TY_I64, segments_count(p));
    plan_value_arg(&c->code.kernel[BINS_FINISH], VAL_BINS, TY_I64, segments_count(p));
    plan_value_arg(&c->code.kernel[BINS_FINISH], VAL_PARTS, TY_I32, tables);
    plan_buffer_arg(pl, c, 0, BUF_TABLE, REGION_SCRATCH, f_mul(f_mul(tables, segments_count(p)), bins_state_bytes(p)));
    plan_launch(pl, c, BINS_ADD, blocks);
    plan_launch(pl, c, BINS_FINISH, over);
}

/* A table that all blocks share. */
static void build_common(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const bool shared = c->tunable[TN_BINS] > 0;
    const struct formula over = table_kernel(pl, c, "finish", 1);
    const bool control = shared && !bins_parted(c);
    if (!control)
        table_kernel(pl, c, "clear", 1);
    for (int i = 0; i < c->code.nkernels; i++)
        plan_value_arg(&c->code.kernel[i], VAL_BINS, TY_I64, segments_count(p));
    const struct formula bins = control ? f_const(bins_capacity(c, p)) : segments_count(p);
    plan_buffer_arg(pl, c, 0, BUF_TABLE, control ? REGION_CONTROL : REGION_SCRATCH, f_mul(bins, bins_bytes(p)));
    if (!control)
        plan_launch(pl, c, BINS_CLEAR, over);
    plan_launch(pl, c, BINS_ADD, grid(p, c, shared));
    plan_launch(pl, c, BINS_FINISH, over);
}

bool reduce_bins_build(struct planner *pl, struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const bool shared = c->tunable[TN_BINS] > 0; /* elements come to tables in shared memory first */
    if (!(shared ? check_tables : check_one_table)(pl, c))
        return false;
    struct prog_kernel *add = reduce_kernel(pl, c, "");
    if (of_columns(c, p)) {
        plan_value_arg(add, VAL_COLUMNS, TY_I32, segments_inner(p));
        plan_value_arg(add, VAL_ROWS, TY_I64, f_mul(segments_length(p), f_ge(segments_inner(p), 1)));
    }
    if (bins_of_rows(c)) {
        plan_value_arg(add, VAL_BINS, TY_I64, row_bins(p));
        plan_value_arg(add, VAL_ROWS, TY_I64, kept_rows(p));
        plan_value_arg(add, VAL_LENGTH, TY_I64, segments_length(p));
        plan_launch(pl, c, BINS_ADD, f_max(1, f_min(kept_rows(p), f_mul(f_sms(), c->tunable[TN_BLOCKS_PER_SM]))));
        return reduce_check_tunables(pl, c);
    }
    if (bins_parted(c))
        plan_value_arg(add, VAL_PARTS, TY_I32, parts_of(p, c));
    if (bins_placed(p)) {
        plan_value_arg(add, VAL_BINS, TY_I64, segments_count(p));
        plan_launch(pl, c, BINS_ADD, grid(p, c, true));
        return reduce_check_tunables(pl, c);
    }
    if (bins_apart(c, p))
        build_apart(pl, c);
    else
        build_common(pl, c);
    return reduce_check_tunables(pl, c);
}
