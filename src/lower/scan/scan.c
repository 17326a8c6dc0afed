/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - facts about scans, and planning of the strategies without communication between blocks.
 *
 *   scan.block      one block takes the whole array tile by tile, the carry in registers (also with flags)
 *
 * It takes every scan of the language: any axes, directions, operators, sizes.  A tile has threads x items x vector
 * elements, and a thread holds items x vector consecutive ones.  The combination tree depends on the tunables alone, so
 * results are the same on every run and device.
 *
 * Cases of all strategies come in pairs.  One has vectors, and needs pointers (with segments or reversal also lengths)
 * that are multiples of a vector.  The other has single elements in the same arrangement, and so the same results.
 */
#include "lower/lower_impl.h"
#include "lower/work.h"
#include "scan.h"

enum { STAGE_MAX = 40 * 1024, SHARED_MAX = 68 * 1024, RESERVED = 2 * 1024, BLOCK_LIMIT = 1 << 12, VAST = 28 };

/* ---- facts ------------------------------------------------------------------------------------------------------- */

bool scan_has_totals(const struct problem *p) { return problem_writes(p, AT_TOTAL); }

struct search {
    const struct problem *p;
    bool found;
};

static void find_input(const struct expr *e, void *user)
{
    struct search *s = user;
    if (e->kind == EX_INPUT && s->p->input[e->which].array.rank > 0)
        s->found = true;
}

bool scan_operator_reads(const struct problem *p)
{
    struct search s = { .p = p };
    for (int r = 0; r < p->nreductions; r++) {
        const struct op *op = p->reduction[r].op;
        for (int f = 0; f < op->nfields; f++)
            expr_walk(op->combine[f], find_input, &s), expr_walk(p->reduction[r].init[f], find_input, &s);
        for (int l = 0; l < op->nlets; l++)
            expr_walk(op->let[l].value, find_input, &s);
    }
    return s.found;
}

/* With field sizes t, and t' of them in whole registers: m = max(sum t, shared memory per thread) / max t, as far as
 * registers go: (registers - 1 - sum t') / (2 sum t' + 3). */
int scan_model_degree(const struct problem *p, const struct device *d, const struct plan_case *c)
{
    enum ty type[STATE_FIELDS_MAX];
    const int fields = state_fields(p, type), blocks = c->tunable[TN_MIN_BLOCKS] > 0 ? c->tunable[TN_MIN_BLOCKS] : 1;
    const int resident = c->tunable[TN_THREADS] * blocks;
    int sum = 0, largest = 1, words = 0;
    for (int f = 0; f < fields; f++) {
        sum += ty_bytes(type[f]);
        words += (ty_bytes(type[f]) + 3) / 4;
        largest = ty_bytes(type[f]) > largest ? ty_bytes(type[f]) : largest;
    }
    const int shared = d->shared_per_sm / resident, registers = d->registers_per_sm / resident;
    const int by_memory = (shared > sum ? shared : sum) / largest,
              by_registers = (registers - 1 - words) / (2 * words + 3);
    const int m = by_memory < by_registers ? by_memory : by_registers;
    return m > 1 ? m : 1;
}

int scan_degree(const struct plan_case *c) { return c->tunable[TN_ITEMS] * c->tunable[TN_VECTOR]; }

int64_t scan_tile_elements(const struct plan_case *c) { return (int64_t)c->tunable[TN_THREADS] * scan_degree(c); }

/* ---- cases ------------------------------------------------------------------------------------------------------- */

/* Bytes per position of what passes through the transpose; 0: nothing does. */
static int widest(const struct problem *p)
{
    int bytes = 0;
    for (int i = 0; i < p->ninputs + p->noutputs; i++) {
        const struct prog_array *a = access_direct(p, i);
        if (a && !*a->field[0].name && a->stride > bytes)
            bytes = a->stride;
    }
    return bytes;
}

bool scan_keeps_some(const struct problem *p)
{
    bool any = false;
    for (int o = 0; o < p->noutputs; o++)
        any |= p->output[o].role == OUT_KEPT;
    return any;
}

bool scan_counts(const struct problem *p)
{
    bool all = p->nreductions > 0;
    for (int r = 0; r < p->nreductions; r++)
        all &= p->reduction[r].counts;
    return all;
}

static int input_words(const struct problem *p)
{
    int words = 0;
    for (int i = 0; i < p->ninputs; i++)
        words += access_input_direct(p, i) ? (p->input[i].array.stride + 3) / 4 : p->input[i].role == ROLE_FLAGS;
    return words;
}

int scan_items_in_words(const struct problem *p)
{
    enum ty type[STATE_FIELDS_MAX];
    int words = 0;
    state_fields(p, type);
    for (int r = 0; r < p->nreductions; r++)
        for (int f = 0; f < p->reduction[r].op->nfields; f++)
            words += p->reduction[r].counts ? 1 : (ty_bytes(type[state_first(p, r) + f]) + 3) / 4;
    return words + input_words(p);
}

bool scan_stores_byte(const struct problem *p, int output)
{
    const struct expr *e = p->output[output].value[0];
    if (e->kind == EX_CAST)
        e = e->arg[0];
    const enum ty type = p->output[output].array.field[0].type;
    return p->output[output].array.nfields == 1 && e->kind == EX_STATE && ty_is_int(type) && ty_bytes(type) == 1;
}

int scan_summed_bytes(const struct problem *p)
{
    const struct reduction *r = &p->reduction[0];
    if (p->nreductions != 1 || p->reverse || p->flags >= 0 || p->offsets >= 0 || !reduction_sums_bytes(p, r))
        return -1;
    for (int o = 0; o < p->noutputs; o++)
        if (!access_output_direct(p, o) || !scan_stores_byte(p, o))
            return -1;
    const struct expr *e = r->map[0];
    return e->kind == EX_CAST ? e->arg[0]->which : e->which;
}

bool scan_compares_bytes(const struct problem *p)
{
    bool bytes = false;
    for (int o = 0; o < p->noutputs; o++) {
        if (access_output_direct(p, o) && p->output[o].array.stride > 1)
            return false;
        bytes |= access_output_direct(p, o);
    }
    return bytes && !scan_ring_keeps(p) && scan_summed_bytes(p) < 0;
}

int scan_items_most(const struct problem *p, int vector)
{
    enum { POSITIONS = 64, BYTES = 128, KEPT = 32 };
    if (kept_bytes(p) && !scan_keeps(p))
        return KEPT;
    return vector % 4 == 0 && scan_summed_bytes(p) >= 0 ? BYTES : POSITIONS;
}

static int items_most(const struct problem *p, const struct plan_case *c)
{
    return scan_items_most(p, c->tunable[TN_STRIPED] ? c->tunable[TN_VECTOR] : 1);
}

/* Rows whose tiles are their own are arrays of their own; elsewhere tiles cut across them. */
static bool own_tiles(const struct plan_case *c) { return c->strategy->plan == scan_resident_plan; }

/* Registers that hold a thread's positions. */
static int registers_held(const struct problem *p, const struct plan_case *c)
{
    int words = scan_degree(c) * scan_items_in_words(p);
    if (own_tiles(c) && scan_marks_kept(p, c)) /* bits, and a state at a time */
        words = scan_degree(c) * input_words(p);
    return items_most(p, c) > items_most(p, &(struct plan_case){ 0 }) ? words / 4 : words;
}

bool scan_loads_elsewhere(const struct problem *p)
{
    bool any = false;
    for (int i = 0; i < p->ninputs; i++)
        any |= p->input[i].placed ||
               (p->input[i].role == ROLE_ELEMENT && (p->input[i].neighbours || !access_input_direct(p, i)));
    return any;
}

static void note_index(const struct expr *e, void *any) { *(bool *)any |= e->kind == EX_INDEX; }

bool scan_asks_indices(const struct problem *p)
{
    bool any = scan_loads_elsewhere(p) || scan_stores_by_index(p);
    for (int r = 0; r < p->nreductions; r++)
        for (int f = 0; f < p->reduction[r].op->nfields; f++)
            problem_walk(p, p->reduction[r].map[f], note_index, &any);
    for (int o = 0; o < p->noutputs; o++)
        for (int f = 0; f < p->output[o].array.nfields; f++)
            problem_walk(p, p->output[o].value[f], note_index, &any);
    return p->rank > 1 && any;
}

/* Their addresses take registers. */
bool scan_reads_neighbours(const struct problem *p)
{
    bool any = false;
    for (int i = 0; i < p->ninputs; i++)
        any |= p->input[i].neighbours;
    return any;
}

/* Shared memory of the transpose: striped vectors need none. */
static int transpose_bytes(const struct problem *p, const struct plan_case *c)
{
    return c->tunable[TN_STRIPED] ? 0 : c->tunable[TN_THREADS] * scan_degree(c) * widest(p);
}

bool scan_marks_kept(const struct problem *p, const struct plan_case *c)
{
    bool all = scan_ring_keeps(p) && p->flags < 0 && p->offsets < 0 && !c->tunable[TN_STRIPED];
    for (int o = 0; o < p->noutputs; o++)
        if (output_moment(&p->output[o]) == AT_POINT)
            all &= p->output[o].role == OUT_KEPT && !*p->output[o].array.field[0].name;
    return all && c->strategy->plan != scan_block_plan;
}

int scan_kept_bytes(const struct problem *p)
{
    int bytes = 0;
    for (int o = 0; o < p->noutputs; o++)
        bytes += p->output[o].role == OUT_KEPT ? p->output[o].array.stride : 0;
    return bytes;
}

/* The same of the values that a tile keeps. */
static int gather_bytes(const struct problem *p, const struct plan_case *c)
{
    const int bytes = scan_marks_kept(p, c) ? scan_kept_bytes(p) : kept_bytes(p);
    return scan_keeps(p) ? 0 : c->tunable[TN_THREADS] * scan_degree(c) * bytes;
}

/* Of both; what is put by bits takes the transpose's place. */
static int staged_bytes(const struct problem *p, const struct plan_case *c)
{
    const int kept = gather_bytes(p, c), transpose = transpose_bytes(p, c);
    if (!scan_marks_kept(p, c))
        return kept + transpose;
    return kept > transpose ? kept : transpose;
}

/* Kept values leave room for as many blocks as registers do. */
static bool too_wide(const struct problem *p, const struct plan_case *c, const struct device *d)
{
    const int blocks = c->tunable[TN_MIN_BLOCKS] > 0 ? c->tunable[TN_MIN_BLOCKS] : 1, kept = gather_bytes(p, c);
    const int each = d->shared_per_sm / blocks - RESERVED, room = each < SHARED_MAX ? each : SHARED_MAX;
    return kept && staged_bytes(p, c) > room;
}

/* Whole arrays of scalars, and states whose shuffles cost less than two passes through shared memory. */
static bool may_stripe(const struct problem *p, const struct plan_case *c)
{
    return widest(p) > 0 && !scan_reads_neighbours(p) && scan_trailing(p) && (!scan_keeps(p) || own_tiles(c)) &&
           p->flags < 0 && p->offsets < 0;
}

/* A thread holds its positions in registers, next to where segments begin, and a block passes them through shared
 * memory.  Striped ones take more registers before sm_90. */
static void choose_items(const struct problem *p, struct plan_case *c, const struct device *d)
{
    const int sm = d->sm;
    const bool more = (scan_keeps(p) && !own_tiles(c)) || p->flags >= 0 || p->offsets >= 0 || p->exclusive ||
                      scan_compares_bytes(p) || (c->tunable[TN_STRIPED] && (scan_items_in_words(p) > 2 || sm < 90));
    /* With neighbours, which conditions take from registers; 512 threads have 128 registers each. */
    const int beside = kept_bytes(p) && p->rank == 1 && !p->reverse ? 80 : c->tunable[TN_THREADS] > 256 ? 20 : 32;
    /* A value with its index of eight bytes: with more ptxas spills up to 88 bytes of 64 registers. */
    const struct op *op = p->reduction[0].op;
    const bool indexed = p->nreductions == 1 && op->nfields == 2 && state_words(p, NULL) == 3 &&
                         op->field[1] == TY_I64 && c->tunable[TN_THREADS] * c->tunable[TN_MIN_BLOCKS] >= 1024;
    const int usual = indexed ? 36 : more ? 48 : kept_bytes(p) ? 56 : 64;
    const int registers = scan_reads_neighbours(p) ? beside : usual;
    while (plan_shrinks(c, TN_ITEMS) && (scan_degree(c) > items_most(p, c) || registers_held(p, c) > registers ||
                                         transpose_bytes(p, c) > STAGE_MAX || too_wide(p, c, d)))
        c->tunable[TN_ITEMS] -= c->tunable[TN_ITEMS] % 2 ? 2 : 1; /* odd ones keep the transpose free of conflicts */
    while (too_wide(p, c, d) && c->tunable[TN_THREADS] % 64 == 0 && !c->overridden[TN_THREADS])
        c->tunable[TN_THREADS] /= 2;
}

/* Enough blocks to hide the latency of loads: 1024 threads per multiprocessor with 64 registers each, or half of them
 * with twice as many where states are large (sooner before sm_90), operators long, neighbours are read, or small elements
 * are taken apart in reverse. */
static int choose_blocks(const struct planner *pl, const struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int sm = pl->plan->device.sm;
    if (scan_items_in_words(p) >= VAST)
        return 1;
    const bool heavy = scan_items_in_words(p) >= (sm < 90 ? 4 : 8) || (p->reverse && c->tunable[TN_VECTOR] > 4) ||
                       scan_reads_neighbours(p) || scan_laborious(pl);
    const int blocks = (heavy ? 512 : 1024) / c->tunable[TN_THREADS];
    return blocks > 0 ? blocks : 1;
}

/* The same arrangement of positions, single elements in memory. */
static void one_by_one(struct plan_case *c)
{
    c->tunable[TN_ITEMS] = scan_degree(c);
    c->tunable[TN_VECTOR] = 1;
    c->tunable_from[TN_VECTOR] = "elements one by one";
}

static void choose(struct planner *pl, struct plan_case *c, bool staged)
{
    const struct problem *p = pl->plan->problem;
    plan_set_pdl(pl, c);
    if (staged)
        plan_set(c, TN_MIN_BLOCKS, choose_blocks(pl, c),
                 "1024 threads per multiprocessor, half of them for heavy elements");
    plan_set(c, TN_SMEM_TRANSPOSE, staged && widest(p) > 0, "for arrays of scalars along the last dimensions");
    plan_set(c, TN_STRIPED,
             c->tunable[TN_SMEM_TRANSPOSE] && may_stripe(p, c) && (state_words(p, NULL) <= 2 || scan_counts(p)),
             "for whole arrays and states of up to 8 bytes");
    choose_items(p, c, &pl->plan->device);
}

/* Positions [i, i + vector) of any segment are a vector in memory: so say the pointers, and the length where it
 * matters. */
static bool vector_guard(const struct problem *p, int vector, struct formula *guard)
{
    if (!access_aligned_guard(p, vector, true, guard))
        return false;
    if (scan_keeps(p) || p->reverse)
        *guard = f_and(f_eq(f_mod(scan_length(p), vector), 0), *guard);
    return true;
}

/* States that want most registers of small blocks. */
static bool vast(const struct problem *p) { return scan_items_in_words(p) >= VAST; }

struct plan_case *scan_add_variant(struct planner *pl, const struct strategy *row, const char *variant,
                                   const char *name, struct formula guard)
{
    struct plan_case *c = plan_case_add(pl, row, name, guard);
    plan_case_variant(pl, c, variant);
    if (!vast(pl->plan->problem))
        return c;
    if (c->tunable[TN_THREADS] > 128)
        plan_set(c, TN_THREADS, 128, NULL);
    plan_set(c, TN_MIN_BLOCKS, 1, NULL);
    return c;
}

void scan_add_cases(struct planner *pl, const struct strategy *row, const char *variant, const char *name,
                    struct formula guard, bool staged)
{
    const struct problem *p = pl->plan->problem;
    struct plan_case *c = scan_add_variant(pl, row, variant, name, guard);
    if (!staged)
        plan_set(c, TN_VECTOR, 1, NULL);
    choose(pl, c, staged);
    struct formula aligned;
    if (p->offsets >= 0 && !staged && !c->overridden[TN_VECTOR])
        one_by_one(c);
    if (c->tunable[TN_VECTOR] == 1 || !vector_guard(p, c->tunable[TN_VECTOR], &aligned))
        return;
    c->aligned = true;
    c->code.guard = f_and(guard, aligned);
    struct plan_case *u = scan_add_variant(pl, row, variant, arena_printf(&pl->s->arena, "%s_unaligned", name), guard);
    choose(pl, u, staged);
    if (!u->overridden[TN_VECTOR] && !u->tunable[TN_STRIPED])
        one_by_one(u);
    enum { BYTES_AT_ONCE = 16 }; /* they are loaded one by one */
    while (items_most(p, u) > items_most(p, &(struct plan_case){ 0 }) && !u->overridden[TN_ITEMS] &&
           scan_degree(u) > BYTES_AT_ONCE && u->tunable[TN_ITEMS] > 1)
        u->tunable[TN_ITEMS] /= 2;
    const int words = scan_items_in_words(p);
    const bool heavy = scan_degree(u) >= 32 || (words > 2 && scan_degree(u) * words >= 40);
    if (u->tunable[TN_STRIPED] && heavy)
        plan_set(u, TN_MIN_BLOCKS, 1, NULL); /* registers: addresses of single elements */
}

bool scan_laborious(const struct planner *pl)
{
    enum { SLOTS = 48 };
    return work_of(pl->plan->problem, NULL, pl->plan->device.sm).slots > SLOTS;
}

bool scan_spreads(struct planner *pl)
{
    const char *why;
    const struct problem *p = pl->plan->problem;
    const struct device *d = &pl->plan->device;
    struct arena *a = &pl->s->arena;
    return scan_lookback_fits(p, d, a, &why) || scan_three_pass_fits(p, d, a, &why);
}

void scan_small_plan(struct planner *pl)
{
    const struct problem *p = pl->plan->problem;
    if (p->kind != KIND_SCAN || p->key || !scan_single(p))
        return;
    const struct strategy *row = strategy_by_name("scan.block");
    const struct formula all = { 0 }, small = scan_spreads(pl) ? f_le(access_count(p), BLOCK_LIMIT) : all;
    const int from = pl->plan->ncases;
    scan_add_cases(pl, row, "whole", "small", small, true);
    for (int i = from; i < pl->plan->ncases; i++) { /* there is one block, with no more than that to do */
        struct plan_case *c = &pl->plan->cases[i];
        plan_set(c, TN_MIN_BLOCKS, 1, NULL);
        while (plan_shrinks(c, TN_ITEMS) && c->tunable[TN_THREADS] * scan_degree(c) > BLOCK_LIMIT)
            c->tunable[TN_ITEMS] /= 2;
    }
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

bool scan_check_tunables(struct planner *pl, const struct plan_case *c)
{
    const struct problem *p = pl->plan->problem;
    const int vector = c->tunable[TN_VECTOR];
    const bool transpose = c->tunable[TN_SMEM_TRANSPOSE], striped = c->tunable[TN_STRIPED];
    const struct misfit m[] = {
        { c->tunable[TN_THREADS] % 32, "threads must be a multiple of 32" },
        { scan_degree(c) > items_most(p, c),
          "a thread holds at most 64 elements, 128 where it sums bytes by words, 32 where some are kept" },
        { vector > access_vector_width(p) || (vector & (vector - 1)),
          "the vector must be a power of two, no wider than 16 bytes of the widest array" },
        { transpose && (widest(p) == 0 || !scan_trailing(p)),
          "the transpose is for arrays of scalars along the last dimensions" },
        { striped && (!transpose || !may_stripe(p, c)),
          "striped vectors are for staged tiles of whole arrays without neighbours" },
        { transpose && transpose_bytes(p, c) > STAGE_MAX, "the transpose takes more than 40960 bytes" },
        { gather_bytes(p, c) && staged_bytes(p, c) > pl->plan->device.shared_per_block - RESERVED,
          "the values that a tile keeps do not fit shared memory" },
        { 0 }
    };
    return plan_consistent(pl, c, m);
}

struct prog_kernel *scan_kernel(struct planner *pl, struct plan_case *c, const char *suffix)
{
    const struct problem *p = pl->plan->problem;
    struct prog_kernel *k = plan_kernel(pl, c, suffix);
    plan_value_arg(k, VAL_LENGTH, TY_I64, scan_length(p));
    plan_value_arg(k, VAL_SEGMENTS, TY_I64, scan_segments(p));
    return k;
}

struct formula scan_tile_args(struct planner *pl, struct plan_case *c, struct prog_kernel *k)
{
    const struct formula count = segments_elements(pl->plan->problem);
    const struct formula tiles = f_cdiv(count, scan_tile_elements(c));
    plan_value_arg(k, VAL_COUNT, TY_I64, count);
    plan_value_arg(k, VAL_TILES, TY_I32, tiles);
    return tiles;
}

static struct formula tiles_of_row(const struct problem *p, const struct plan_case *c)
{
    return f_cdiv(scan_length(p), scan_tile_elements(c));
}

struct formula scan_row_tiles(const struct problem *p, const struct plan_case *c)
{
    const struct formula each = tiles_of_row(p, c);
    return scan_keeps(p) ? f_mul(scan_segments(p), each) : each;
}

struct formula scan_row_tile_args(struct planner *pl, struct plan_case *c, struct prog_kernel *k)
{
    const struct problem *p = pl->plan->problem;
    if (!scan_keeps(p))
        return scan_tile_args(pl, c, k);
    const struct formula tiles = scan_row_tiles(p, c);
    plan_value_arg(k, VAL_COUNT, TY_I64, access_count(p));
    plan_value_arg(k, VAL_PER_SEGMENT, TY_I32, tiles_of_row(p, c));
    plan_value_arg(k, VAL_TILES, TY_I32, tiles);
    return tiles;
}

bool scan_whole_build(struct planner *pl, struct plan_case *c)
{
    scan_kernel(pl, c, "");
    plan_launch(pl, c, 0, f_const(1));
    if (c->tunable[TN_LANES] || c->tunable[TN_CLUSTER] > 1)
        return plan_contradiction(pl, c, WITH_LANES | WITH_CLUSTER, "a whole array has one block");
    return scan_check_tunables(pl, c);
}
