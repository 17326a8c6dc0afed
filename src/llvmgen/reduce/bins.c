/* SPDX-License-Identifier: Apache-2.0 */
/* bins.c - reductions by computed indices: what the elements of each bin come to.
 *
 *     add       tiles go round-robin to the blocks; each element updates the words of its bin atomically, in tables of
 *               the block (shared) or in the one table (global).  Blocks add their tables to the one table at their end,
 *               or leave them apart (bins_apart.c)
 *     finish    a thread per bin: the outputs from the words, which are then zero for the next launch (shared)
 *     clear     zeros into the table before all of this (global)
 *
 * Equal indices of a warp are combined first (bins_hot.c), so that one hot bin costs one update per warp and not 32: every
 * lane looks for the next lane with its index, and takes over what that lane has, and what that lane looks at; after at
 * most five rounds, none where all indices differ, the first lane of each index has all.  Constants need not be exchanged,
 * only counted.  In shared memory that costs more than it saves unless indices are frequent: a single one goes to
 * registers, and where several are (few of many, or runs) the elements of a tile are combined first.  Constants need
 * neither: the machine adds up the increments of a warp.
 */
#include "bins.h"

enum ty bins_word_type(const struct gen *g, int word) { return bins_word_bytes(g->p, word) == 4 ? TY_U32 : TY_U64; }

int bins_all_words(const struct bins *b)
{
    return b->counters ? 1 : bins_words(b->g->p) + (!b->alone && bins_locked(b->g->p));
}

void bins_global_table(struct gen *g, struct bins *b, bool fixed)
{
    kb *k = g->k;
    const bool locked = bins_locked(g->p);
    *b = (struct bins){
        .g = g, .tables = 1, .bin_step = 1, .merge = !locked, .hot = locked, .placed = bins_placed(g->p)
    };
    if (b->placed)
        return;
    const kb_ptr base = gen_buffer(g, BUF_TABLE, TY_U8);
    const kb_val bins = fixed ? kb_imm(k, TY_I64, bins_capacity(g->c, g->p)) : gen_value(g, VAL_BINS);
    for (int w = 0; w < bins_all_words(b); w++) {
        b->table[w] = kb_advance(k, base, kb_mul(k, bins, bins_before(g->p, w)));
        b->table[w].ty = bins_word_type(g, w);
        b->mine[w] = b->table[w];
    }
}

/* ---- updates ----------------------------------------------------------------------------------------------------- */

void bins_update(struct bins *b, kb_val bin, kb_tup x)
{
    kb *k = b->g->k;
    kb_ptr word[BINS_WORDS_MAX];
    if (b->placed) {
        outputs_combine(b->g, kb_cast(k, bin, TY_I64), x);
        return;
    }
    for (int w = 0; w < bins_all_words(b); w++)
        word[w] = kb_advance(k, b->mine[w], kb_mul(k, bin, b->bin_step));
    if (b->counters) {
        kb_atomic(k, KB_RMW_ADD, word[0], 0, kb_imm(k, TY_U32, 1));
        return;
    }
    (b->alone ? combine_words : accumulate_words)(b->g, word, x);
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

kb_val bins_number(struct point *pt, bool kept, kb_val *inside)
{
    struct gen *g = pt->g;
    kb *k = g->k;
    kb_val bin = kb_imm(k, TY_I32, 0), in;
    *inside = kb_true(k);
    for (int d = 0; d < g->p->nby; d++) {
        const kb_val i = point_bin(pt, g->p->by[d], &g->p->bin[d], &in);
        *inside = kb_and(k, *inside, in);
        bin = d ? kb_add(k, kb_mul(k, bin, kb_cast(k, gen_extent(g, &g->p->bin[d]), TY_I32)), i) : i;
    }
    for (int d = 0; kept && d < g->p->rank; d++)
        if (!g->p->space[d].reduced)
            bin = kb_add(k, kb_mul(k, bin, kb_cast(k, gen_extent(g, &g->p->space[d].extent), TY_I32)),
                         kb_cast(k, point_index(pt, d), TY_I32));
    return bin;
}

/* The point's bin in the tables of this block, and whether it has one there. */
static kb_val table_number(struct bins *b, struct point *pt, kb_val *inside)
{
    kb *k = b->g->k;
    kb_val bin = bins_number(pt, !b->rows, inside);
    if (!bins_parted(b->g->c))
        return bin;
    bin = kb_sub(k, bin, b->first);
    *inside = kb_and(k, *inside, kb_and(k, kb_ge(k, bin, 0), kb_lt(k, bin, gen_tunable(b->g, TN_BINS))));
    return bin;
}

/* Is the index outside, whatever else, unless a condition holds? */
static bool conditional(const struct expr *e)
{
    if (e->kind == EX_CAST)
        e = e->arg[0];
    return e->kind == EX_IF && e->arg[2]->kind == EX_CONST && ty_is_signed(e->type) && e->arg[2]->imm.i < 0;
}

/* Elements that conditions leave out cost only these. */
static void add_if(struct bins *b, struct point *pt, kb_val valid)
{
    kb *k = b->g->k;
    kb_val inside;
    for (int d = 0; d < b->g->p->nby; d++) {
        const struct expr *e = b->g->p->by[d];
        if (conditional(e))
            valid = kb_and(k, valid, emit_expr(k, &pt->env, (e->kind == EX_CAST ? e->arg[0] : e)->arg[0]));
    }
    kb_if(k, valid) {
        LET(bin, table_number(b, pt, &inside));
        kb_if(k, inside) {
            bins_update(b, bin, point_map(pt));
        }
    }
}

void bins_add_point(struct bins *b, struct point *pt, kb_val valid, int turn)
{
    kb *k = b->g->k;
    kb_val inside;
    if (bins_walks(b->g->p) && !b->merge && !b->hot) {
        add_if(b, pt, valid);
        return;
    }
    LET(bin, table_number(b, pt, &inside));
    inside = kb_and(k, inside, valid);
    if (b->merge) {
        bins_merge(b, kb_select(k, inside, bin, kb_imm(k, TY_I32, -1)), point_map(pt));
        return;
    }
    const kb_tup x = point_map(pt);
    if (b->hot) {
        bins_add_hot(b, bin, inside, x, turn);
        return;
    }
    kb_if(k, inside) {
        bins_update(b, bin, x);
    }
}

/* Elements base + i * distance for i below n; all are loaded before the first is added. */
static void add_apart(struct bins *b, kb_val base, int n, int distance, kb_val valid, int turn)
{
    struct direct d[GEN_VECTOR_MAX];
    const kb_val none = kb_imm(b->g->k, TY_I32, 0);
    for (int i = 0; i < n; i++)
        direct_load(b->g, base, none, (int64_t)i * distance, 1, false, &d[i]);
    for (int i = 0; i < n; i++) {
        struct point pt;
        point_init(&pt, b->g, base, none, (int64_t)i * distance);
        pt.direct = &d[i];
        bins_add_point(b, &pt, valid, i ? turn & ~BINS_FIRST : turn);
    }
}

/* The elements that this warp has of the tile in add_vectors(), but lanes take neighbours: more of those have equal keys. */
static void add_crowded(struct bins *b, kb_val base)
{
    kb *k = b->g->k;
    const int items = gen_tunable(b->g, TN_ITEMS), vector = gen_tunable(b->g, TN_VECTOR);
    const int at_once = b->g->nfields == 1 ? vector : 1; /* loads under way, as registers allow */
    const kb_val warps = kb_mul(k, kb_warp(k), KB_WARP * vector);
    LET(own, kb_add(k, base, kb_cast(k, kb_add(k, warps, kb_lane(k)), TY_I64)));
    kb_for(k, u, kb_imm(k, TY_I32, 0), items, 1) {
        const kb_val run = kb_cast(k, kb_mul(k, u, kb_threads(k) * vector), TY_I64);
        kb_for(k, v, kb_imm(k, TY_I64, 0), KB_WARP * vector, KB_WARP * at_once) {
            add_apart(b, kb_add(k, kb_add(k, own, run), v), at_once, KB_WARP, kb_true(k), BINS_FIRST | BINS_CROWDED);
        }
    }
}

/* The first element's bin says what is frequent.  A loop takes the elements, so that the code of a lock is there once: every lane
 * takes its next one that has a bin, so that where few have one (parts) the rounds are as many as a lane has of these. */
static void add_in_turn(struct bins *b, struct point *pt, int n)
{
    kb *k = b->g->k;
    const enum ty mask = n > 32 ? TY_U64 : TY_U32;
    kb_val bin[GEN_MANY_MAX], inside[GEN_MANY_MAX], all = kb_imm(k, mask, 0);
    kb_tup x[GEN_MANY_MAX];
    for (int i = 0; i < n; i++) {
        bin[i] = table_number(b, &pt[i], &inside[i]);
        x[i] = point_map(&pt[i]);
        all = kb_or(k, all, kb_select(k, inside[i], kb_imm(k, mask, (int64_t)1 << i), kb_imm(k, mask, 0)));
    }
    bins_hot_look(b, kb_select(k, inside[0], bin[0], kb_imm(k, TY_I32, -1)));
    kb_var left = kb_var_new(k, all, "left");
    kb_loop(k) {
        const kb_val has = kb_ne(k, kb_get(k, left), 0);
        kb_break_if(k, kb_not(k, kb_any(k, has)));
        LET(i, kb_ctz(k, kb_get(k, left)));
        kb_val own = bin[0];
        kb_tup value = x[0];
        for (int j = 1; j < n; j++) {
            const kb_val at = kb_eq(k, i, j);
            own = kb_select(k, at, bin[j], own);
            value = kb_select(k, at, x[j], value);
        }
        bins_add_hot(b, own, has, value, BINS_NEXT);
        kb_set(k, left, kb_and(k, kb_get(k, left), kb_sub(k, kb_get(k, left), 1)));
    }
}

static void add_vectors(struct bins *b, kb_val base)
{
    struct gen *g = b->g;
    kb *k = g->k;
    const int items = gen_tunable(g, TN_ITEMS), vector = gen_tunable(g, TN_VECTOR);
    struct direct d[GEN_MANY_MAX];
    struct point pt[GEN_MANY_MAX];
    LET(offset, kb_mul(k, kb_tid(k), vector));
    for (int u = 0; u < items; u++)
        direct_load(g, base, offset, (int64_t)u * kb_threads(k) * vector, vector, g->c->aligned, &d[u * vector]);
    for (int i = 0; i < items * vector; i++) {
        point_init(&pt[i], g, base, offset, (int64_t)(i / vector) * kb_threads(k) * vector + i % vector);
        pt[i].direct = &d[i];
    }
    if (b->hot && bins_locked(g->p)) {
        add_in_turn(b, pt, items * vector);
        return;
    }
    for (int i = 0; i < items * vector; i++)
        bins_add_point(b, &pt[i], kb_true(k), i == 0 ? BINS_FIRST : BINS_NEXT);
}

void bins_add_tile(struct bins *b, kb_val base)
{
    kb *k = b->g->k;
    enum { FULL = 1024 }; /* threads, which have 64 registers: too few for several fields */
    if (!b->hot || (b->g->nfields > 1 && kb_threads(k) == FULL)) {
        add_vectors(b, base);
        return;
    }
    kb_if(k, kb_any(k, kb_get(k, b->crowded))) {
        add_crowded(b, base);
    }
    kb_else { add_vectors(b, base); }
}

void bins_add_single(struct bins *b, kb_val element, kb_val valid)
{
    add_apart(b, kb_select(b->g->k, valid, element, kb_imm(b->g->k, TY_I64, 0)), 1, 0, valid, BINS_NEXT);
}

void bins_blocks(const struct bins *b, kb_val *block, kb_val *blocks)
{
    kb *k = b->g->k;
    const bool parted = bins_parted(b->g->c);
    *block = kb_cast(k, parted ? kb_div(k, kb_block(k), b->parts) : kb_block(k), TY_I64);
    *blocks = kb_cast(k, parted ? kb_div(k, kb_blocks(k), b->parts) : kb_blocks(k), TY_I64);
}

void bins_add_elements(struct bins *b)
{
    struct gen *g = b->g;
    kb *k = g->k;
    if (bins_walks(g->p)) {
        bins_walk(b);
        return;
    }
    const int64_t row = (int64_t)kb_threads(k) * gen_tunable(g, TN_ITEMS), tile = row * gen_tunable(g, TN_VECTOR);
    kb_val block, blocks;
    bins_blocks(b, &block, &blocks);
    LET(head, kb_cast(k, gen_value(g, VAL_HEAD), TY_I64));
    LET(full, kb_div(k, gen_value(g, VAL_VECTORS), row));
    kb_section(k, "tiles");
    kb_for(k, t, block, full, blocks) {
        bins_add_tile(b, kb_add(k, head, kb_mul(k, t, tile)));
    }
    kb_section(k, "rest");
    LET(between, kb_mul(k, full, tile));
    LET(rest, kb_sub(k, gen_value(g, VAL_COUNT), between));
    const int64_t threads = kb_threads(k);
    kb_for(k, first, kb_mul(k, block, threads), rest, kb_mul(k, blocks, threads)) {
        LET(i, kb_add(k, first, kb_cast(k, kb_tid(k), TY_I64)));
        bins_add_single(b, kb_select(k, kb_lt(k, i, head), i, kb_add(k, i, between)), kb_lt(k, i, rest));
    }
}

/* ---- tables in shared memory ------------------------------------------------------------------------------------- */

void bins_clear_tables(struct bins *b, kb_val bins)
{
    kb *k = b->g->k;
    const bool dense = bins_side_by_side(b);
    kb_for(k, i, kb_tid(k), dense ? kb_mul(k, bins, b->tables) : bins, kb_threads(k)) {
        for (int t = 0; t < (dense ? 1 : b->tables); t++)
            for (int w = 0; w < bins_all_words(b); w++)
                kb_store(k, b->table[w], kb_add(k, i, t * b->table_step), kb_imm(k, b->table[w].ty, 0));
    }
}

kb_val bins_load(struct bins *b, kb_val number, kb_val *word)
{
    kb *k = b->g->k;
    kb_val any = kb_false(k);
    for (int w = 0; w < (b->counters ? 1 : bins_words(b->g->p)); w++) {
        word[w] = kb_load(k, b->table[w], number);
        any = kb_or(k, any, kb_ne(k, word[w], 0));
    }
    return any;
}

/* The state that words stand for: counters for so many of the constants that are added. */
static kb_tup state_of(struct bins *b, const kb_val *word)
{
    kb *k = b->g->k;
    const struct expr *map[KB_TUP_MAX];
    kb_tup x = { .n = point_maps(b->g->p, map) };
    if (!b->counters)
        return decode_words(b->g, word);
    for (int f = 0; f < x.n; f++)
        x.e[f] = kb_mul(k, kb_const(k, map[f]->type, map[f]->imm), kb_cast(k, word[0], map[f]->type));
    return x;
}

kb_tup bins_sum(struct bins *b, kb_val bin, kb_val *some)
{
    struct gen *g = b->g;
    kb *k = g->k;
    kb_val word[STATE_FIELDS_MAX];
    LET(first, kb_mul(k, bin, b->bin_step));
    const kb_val has_first = bins_load(b, first, word);
    kb_tvar sum = kb_var_new(k, state_of(b, word), "sum");
    kb_var any = kb_var_new(k, has_first, "any");
    if (b->tables > 1) {
        kb_for(k, t, kb_imm(k, TY_I32, 1), b->tables, 1) {
            const kb_val has = bins_load(b, kb_add(k, first, kb_mul(k, t, b->table_step)), word);
            kb_set(k, any, kb_or(k, kb_get(k, any), has));
            kb_set(k, sum, state_combine(g, kb_get(k, sum), state_of(b, word)));
        }
    }
    *some = kb_get(k, any);
    return kb_get(k, sum);
}

/* What the tables of the block have of a bin goes to the one table, to bin number `to` there. */
static void add_bin(struct bins *b, struct bins *all, kb_val bin, kb_val to)
{
    kb_val some;
    const kb_tup sum = bins_sum(b, bin, &some);
    bins_leave(all, to, sum, some);
}

/* Blocks begin at different bins, so that they do not meet. */
static void add_tables(struct bins *b, kb_val bins)
{
    kb *k = b->g->k;
    struct bins all;
    const bool parted = bins_parted(b->g->c);
    bins_destination(b->g, &all);
    LET(shift, kb_rem(k, kb_mul(k, kb_block(k), kb_threads(k)), kb_max(k, bins, 1)));
    kb_for(k, i, kb_tid(k), bins, kb_threads(k)) {
        LET(turned, kb_add(k, i, shift));
        const kb_val bin = kb_select(k, kb_ge(k, turned, bins), kb_sub(k, turned, bins), turned);
        add_bin(b, &all, bin, parted ? kb_add(k, bin, b->first) : bin);
    }
}

void bins_block_tables(struct gen *g, struct bins *b)
{
    kb *k = g->k;
    const int lanes = gen_tunable(g, TN_LANES);
    *b =
        (struct bins){ .g = g, .tables = bins_tables(g->c), .hot = !bins_count(g->p), .counters = bins_counters(g->p) };
    /* Lanes with one table meet in no bank where their bins lie side by side; lanes with tables of their own, where
     * their tables do. */
    const bool side_by_side = lanes > 0 && lanes < KB_WARP;
    b->bin_step = side_by_side ? b->tables : 1;
    b->table_step = side_by_side ? 1 : gen_tunable(g, TN_BINS);
    /* A distance that ptxas does not know to be zero: it would make the address anew for every element. */
    LET(zero, kb_shfl_idx(k, kb_imm(k, TY_I32, 0), 0));
    LET(own, lanes ? kb_mul(k, kb_div(k, kb_tid(k), lanes), b->table_step) : zero);
    for (int w = 0; w < bins_all_words(b); w++) {
        const enum ty word = b->counters ? TY_U32 : bins_word_type(g, w);
        b->table[w] = kb_shared_v(k, word, gen_tunable(g, TN_BINS) * b->tables, "table");
        b->mine[w] = kb_advance(k, b->table[w], own);
    }
}

static void add_shared(struct gen *g)
{
    kb *k = g->k;
    struct bins b;
    bins_block_tables(g, &b);
    kb_val bins = kb_cast(k, gen_value(g, VAL_BINS), TY_I32);
    if (bins_parted(g->c)) { /* blocks side by side have different ones */
        const int each = gen_tunable(g, TN_BINS);
        b.parts = gen_value(g, VAL_PARTS);
        b.first = kb_name(kb_mul(k, kb_rem(k, kb_block(k), b.parts), each), "first");
        bins = kb_min(k, kb_sub(k, bins, b.first), each);
    }
    bins = kb_name(bins, "bins");
    bins_clear_tables(&b, bins);
    bins_share_tables(g);
    kb_barrier(k);
    bins_hot_begin(&b);
    bins_add_elements(&b);
    bins_hot_end(&b);
    kb_barrier(k);
    kb_section(k, "add tables");
    add_tables(&b, bins);
}

/* Elements that meet in the one table: equal indices of a warp are combined first; where bins are locked, a warp keeps a
 * frequent one in registers. */
static void add_global(struct bins *b)
{
    bins_hot_begin(b);
    bins_add_elements(b);
    bins_hot_end(b);
}

/* ---- kernels over the bins --------------------------------------------------------------------------------------- */

static void clear_bin(struct bins *b, kb_val bin)
{
    for (int w = 0; w < bins_all_words(b); w++)
        kb_store(b->g->k, b->table[w], bin, kb_imm(b->g->k, b->table[w].ty, 0));
}

void bins_finish(struct gen *g, kb_val segment, kb_tup state, kb_val some)
{
    kb *k = g->k;
    kb_val kept = kb_imm(k, TY_I64, 1);
    struct point pt;
    const kb_tup results = state_results(g, state, kb_not(k, some));
    env_init(&pt, g, &results);
    pt.segment = segment;
    for (int d = 0; d < g->p->rank; d++)
        kept = g->p->space[d].reduced ? kept : kb_mul(k, kept, gen_extent(g, &g->p->space[d].extent));
    space_split(g, kb_rem(k, segment, kept), 0, g->p->rank, false, pt.index);
    outputs_store_total(&pt);
}

static void finish_bin(struct bins *b, kb_val bin, bool again)
{
    kb_val word[STATE_FIELDS_MAX];
    const kb_val some = bins_load(b, bin, word);
    if (again && kb_point(b->g->k, "table reset"))
        clear_bin(b, bin);
    bins_finish(b->g, bin, decode_words(b->g, word), some);
}

static void each_bin(struct bins *b, bool finish, bool again)
{
    kb *k = b->g->k;
    const int64_t threads = kb_threads(k);
    LET(own, kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), threads), kb_cast(k, kb_tid(k), TY_I64)));
    kb_for(k, bin, own, gen_value(b->g, VAL_BINS), kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), threads)) {
        if (finish)
            finish_bin(b, bin, again);
        else
            clear_bin(b, bin);
    }
}

void emit_reduce_bins(struct gen *g)
{
    const struct prog_kernel *kernel = g->c->code.kernel;
    const bool shared = gen_tunable(g, TN_BINS) > 0;
    struct bins b;
    gen_wait_for_predecessor(g);
    if (bins_of_rows(g->c)) {
        bins_take_rows(g);
        return;
    }
    if (bins_apart(g->c, g->p) && g->kernel != &kernel[BINS_ADD]) {
        bins_finish_apart(g);
        return;
    }
    const bool control = shared && !bins_parted(g->c);
    if (!bins_apart(g->c, g->p))
        bins_global_table(g, &b, control);
    if (g->kernel != &kernel[BINS_ADD])
        each_bin(&b, g->kernel == &kernel[BINS_FINISH], control);
    else if (!shared)
        add_global(&b);
    else if (bins_private(g->c))
        bins_add_private(g);
    else
        add_shared(g);
}
