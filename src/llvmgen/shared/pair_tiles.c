/* SPDX-License-Identifier: Apache-2.0 */
/* pair_tiles.c - see pair_tiles.h. */
#include "pair_tiles.h"

enum { AT_ONCE = 8, COPIES = 16, VECTOR = 4 };

struct pair_side pair_side_by(int each, int vector, int teams, kb_val rank, kb_val extent)
{
    return (struct pair_side){
        .each = each, .vector = each < vector ? each : vector, .teams = teams, .rank = rank, .extent = extent
    };
}

struct pair_side pair_side_of(int each, int teams, kb_val rank, kb_val extent)
{
    return pair_side_by(each, VECTOR, teams, rank, extent);
}

int pair_rows(const struct pair_side *s) { return s->each * s->teams; }

int pair_away(const struct pair_side *s, int i) { return i / s->vector * s->teams * s->vector + i % s->vector; }

kb_val pair_place(kb *k, const struct pair_side *s, int i)
{
    return kb_add(k, kb_mul(k, s->rank, s->vector), pair_away(s, i));
}

kb_val pair_first(kb *k, const struct pair_side *s)
{
    return kb_add(k, s->first, kb_cast(k, kb_mul(k, s->rank, s->vector), TY_I64));
}

kb_val pair_index(kb *k, const struct pair_side *s, kb_val place)
{
    return kb_add(k, s->first, kb_cast(k, place, TY_I64));
}

/* The terms first, first + 1, … of a tile that exist, and a power of two that holds them. */
struct terms {
    kb_val first, last; /* i64: and the last one of all */
    kb_val bits, most;  /* i32: log2 of the power; the last one within the tile */
};

static struct terms terms_at(kb *k, kb_val first, kb_val count)
{
    const kb_val own = kb_cast(k, kb_min(k, kb_sub(k, count, first), PAIRS_TERMS), TY_I32), most = kb_sub(k, own, 1);
    const kb_val bits = kb_sub(k, kb_imm(k, TY_I32, 32), kb_cast(k, kb_clz(k, most), TY_I32));
    return (struct terms){ first, kb_sub(k, count, 1), bits, most };
}

/* Number i of what is loaded: consecutive threads read consecutive elements of the table.  Rows and terms that do not
 * exist repeat the last one. */
struct loaded {
    kb_val exists; /* bool */
    kb_val at;     /* i32: in the tile */
    kb_val x;
};

static struct loaded load_one(struct pair_tiles *s, const struct pair_tile *t, const struct terms *terms, kb_val i)
{
    kb *k = s->g->k;
    const struct pair_side *side = &s->side[t->what->axis];
    const struct prog_array *a = &s->g->p->input[t->what->input].array;
    const int rows = pair_rows(side);
    kb_val row = kb_rem(k, i, rows), term = kb_div(k, i, rows);
    if (t->what->terms_last) {
        row = kb_shr(k, i, terms->bits);
        term = kb_sub(k, i, kb_shl(k, row, terms->bits));
    }
    const kb_val index = kb_min(k, pair_index(k, side, row), kb_sub(k, side->extent, 1));
    const kb_val along = kb_add(k, terms->first, kb_cast(k, kb_min(k, term, terms->most), TY_I64));
    const kb_val element = t->what->terms_last ? kb_add(k, kb_mul(k, index, kb_add(k, terms->last, 1)), along)
                                               : kb_add(k, kb_mul(k, along, side->extent), index);
    return (struct loaded){ kb_lt(k, i, kb_shl(k, kb_imm(k, TY_I32, rows), terms->bits)),
                            kb_add(k, kb_mul(k, term, t->pitch), row),
                            gen_load_field(s->g, a, gen_input(s->g, t->what->input), element, t->what->field) };
}

static kb_ptr table_at(struct pair_tiles *s, const struct pair_tile *t, kb_ptr from, kb_val element)
{
    const struct prog_array *a = &s->g->p->input[t->what->input].array;
    return kb_advance(s->g->k, from, *a->field[0].name ? kb_mul(s->g->k, element, a->stride) : element);
}

/* At most AT_ONCE loads of a thread, of those that it has in all; the last ones may be beside the tile. */
static void tile_load_any(struct pair_tiles *s, const struct pair_tile *t, const struct terms *terms)
{
    kb *k = s->g->k;
    const int threads = kb_threads(k), all = pair_rows(&s->side[t->what->axis]) * PAIRS_TERMS;
    const int each = all > threads ? all / threads : 1, at_once = each < AT_ONCE ? each : AT_ONCE;
    const kb_val count = kb_shl(k, kb_imm(k, TY_I32, all / PAIRS_TERMS), terms->bits);
    kb_for(k, base, kb_imm(k, TY_I32, 0), count, at_once * threads) {
        struct loaded x[AT_ONCE];
        for (int u = 0; u < at_once; u++)
            x[u] = load_one(s, t, terms, kb_add(k, kb_add(k, base, kb_tid(k)), u * threads));
        for (int u = 0; u < at_once; u++)
            kb_if(k, x[u].exists) {
                kb_store(k, t->memory, x[u].at, x[u].x);
            }
    }
}

/* Has every thread as many elements of a tile of all PAIRS_TERMS terms, which are side by side in the table?  How many at
 * a time; 0: no. */
static int loads_in_step(const struct pair_tiles *s, const struct pair_tile *t)
{
    const int threads = kb_threads(s->g->k), all = pair_rows(&s->side[t->what->axis]) * PAIRS_TERMS;
    int at_once = AT_ONCE;
    if (!t->what->terms_last || all % threads)
        return 0;
    while (all / threads % at_once)
        at_once--;
    return at_once;
}

/* A thread has one term of rows at a known distance from each other: little is computed for each of its loads. */
static void tile_load_whole(struct pair_tiles *s, const struct pair_tile *t, const struct terms *terms, int at_once)
{
    kb *k = s->g->k;
    const struct pair_side *side = &s->side[t->what->axis];
    const struct prog_array *a = &s->g->p->input[t->what->input].array;
    const int rows = pair_rows(side), step = kb_threads(k) / PAIRS_TERMS;
    const kb_val length = kb_add(k, terms->last, 1), term = kb_rem(k, kb_tid(k), PAIRS_TERMS);
    const kb_val most = kb_cast(k, kb_min(k, kb_sub(k, kb_sub(k, side->extent, 1), side->first), rows - 1), TY_I32);
    const kb_val along = kb_add(k, terms->first, kb_cast(k, term, TY_I64));
    const kb_ptr from =
        table_at(s, t, gen_input(s->g, t->what->input), kb_add(k, kb_mul(k, side->first, length), along));
    const kb_ptr to = kb_advance(k, t->memory, kb_mul(k, term, t->pitch));
    kb_for(k, base, kb_div(k, kb_tid(k), PAIRS_TERMS), kb_imm(k, TY_I32, rows), at_once * step) {
        kb_val x[AT_ONCE];
        for (int u = 0; u < at_once; u++) {
            const kb_val row = kb_min(k, kb_add(k, base, u * step), most);
            x[u] = gen_load_field(s->g, a, from, kb_mul(k, kb_cast(k, row, TY_I64), length), t->what->field);
        }
        for (int u = 0; u < at_once; u++)
            kb_store(k, to, kb_add(k, base, u * step), x[u]);
    }
}

static void tile_load(struct pair_tiles *s, const struct pair_tile *t, const struct terms *terms)
{
    kb *k = s->g->k;
    const int at_once = loads_in_step(s, t);
    if (!at_once) {
        tile_load_any(s, t, terms);
        return;
    }
    kb_if(k, kb_eq(k, terms->most, PAIRS_TERMS - 1)) {
        tile_load_whole(s, t, terms, at_once);
    }
    kb_else { tile_load_any(s, t, terms); }
}

/* Copies of n values, each `away` elements of the table behind the one before, and `step` rows or terms of the tile: the
 * address of a copy is that of the one before and a known number of bytes. */
static void copy_series(kb *k, const struct pair_tile *t, int n, kb_ptr to, int step, kb_ptr from, kb_val away)
{
    const kb_val here = kb_imm(k, TY_I32, 0);
    for (int u = 0; u < n; u++) {
        kb_copy(k, ty_bytes(t->memory.ty), to, kb_imm(k, TY_I32, u * step), from, here);
        if (u < n - 1)
            from = kb_advance(k, from, away);
    }
}

/* The terms of a tile whose table has them side by side: a thread has one term of every so many rows.  All PAIRS_TERMS
 * terms of rows that all exist: little is computed for each copy. */
static void tile_copy_whole(struct pair_tiles *s, const struct pair_tile *t, kb_ptr from, kb_val length, kb_ptr to)
{
    kb *k = s->g->k;
    const int rows = pair_rows(&s->side[t->what->axis]), step = kb_threads(k) / PAIRS_TERMS, each = rows / step;
    const kb_val term = kb_rem(k, kb_tid(k), PAIRS_TERMS), first = kb_div(k, kb_tid(k), PAIRS_TERMS);
    const kb_ptr column = kb_advance(k, to, kb_mul(k, term, t->pitch));
    const kb_val away = kb_mul(k, length, step);
    if (rows % step == 0 && each <= COPIES) {
        const kb_val element = kb_add(k, kb_mul(k, kb_cast(k, first, TY_I64), length), kb_cast(k, term, TY_I64));
        copy_series(k, t, each, kb_advance(k, column, first), step, kb_advance(k, from, element), away);
        return;
    }
    const int at_once = each % COPIES == 0 && rows % step == 0 ? COPIES : 1;
    kb_for(k, row, first, kb_imm(k, TY_I32, rows), at_once * step) {
        const kb_val element = kb_add(k, kb_mul(k, kb_cast(k, row, TY_I64), length), kb_cast(k, term, TY_I64));
        copy_series(k, t, at_once, kb_advance(k, column, row), step, kb_advance(k, from, element), away);
    }
}

/* Any number of terms: as many threads as the next power of two share a row.  Rows that do not exist repeat the last one. */
static void tile_copy_any(struct pair_tiles *s, const struct pair_tile *t, const struct terms *terms, kb_ptr from,
                          kb_val length, kb_ptr to)
{
    kb *k = s->g->k;
    const struct pair_side *side = &s->side[t->what->axis];
    const int rows = pair_rows(side);
    const kb_val most = kb_cast(k, kb_min(k, kb_sub(k, kb_sub(k, side->extent, 1), side->first), rows - 1), TY_I32);
    const kb_val first = kb_shr(k, kb_tid(k), terms->bits), term = kb_sub(k, kb_tid(k), kb_shl(k, first, terms->bits));
    kb_if(k, kb_le(k, term, terms->most)) {
        const kb_val step = kb_shr(k, kb_imm(k, TY_I32, kb_threads(k)), terms->bits);
        kb_for(k, row, first, kb_imm(k, TY_I32, rows), step) {
            const kb_val along = kb_mul(k, kb_cast(k, kb_min(k, row, most), TY_I64), length);
            kb_copy(k, ty_bytes(t->memory.ty), to, kb_add(k, kb_mul(k, term, t->pitch), row), from,
                    kb_add(k, along, kb_cast(k, term, TY_I64)));
        }
    }
}

static void tile_copy(struct pair_tiles *s, const struct pair_tile *t, const struct terms *terms, kb_ptr to)
{
    kb *k = s->g->k;
    const struct pair_side *side = &s->side[t->what->axis];
    const kb_val length = kb_add(k, terms->last, 1), end = kb_add(k, side->first, pair_rows(side));
    const kb_ptr from =
        kb_advance(k, gen_input(s->g, t->what->input), kb_add(k, kb_mul(k, side->first, length), terms->first));
    kb_if(k, kb_and(k, kb_eq(k, terms->most, PAIRS_TERMS - 1), kb_le(k, end, side->extent))) {
        tile_copy_whole(s, t, from, length, to);
    }
    kb_else { tile_copy_any(s, t, terms, from, length, to); }
}

/* Of a table whose rows are side by side: a thread has a row of every so many terms. */
static void tile_copy_across_any(struct pair_tiles *s, const struct pair_tile *t, const struct terms *terms,
                                 kb_ptr first, kb_ptr to)
{
    kb *k = s->g->k;
    const struct pair_side *side = &s->side[t->what->axis];
    const int rows = pair_rows(side), bytes = ty_bytes(t->memory.ty);
    const kb_val left = kb_sub(k, kb_sub(k, side->extent, 1), side->first);
    kb_for(k, i, kb_tid(k), kb_mul(k, kb_add(k, terms->most, 1), rows), kb_threads(k)) {
        const kb_val term = kb_div(k, i, rows), row = kb_sub(k, i, kb_mul(k, term, rows));
        kb_copy(k, bytes, to, kb_add(k, kb_mul(k, term, t->pitch), row), first,
                kb_add(k, kb_mul(k, kb_cast(k, term, TY_I64), side->extent), kb_min(k, kb_cast(k, row, TY_I64), left)));
    }
}

/* Has every thread as many copies of a tile of all PAIRS_TERMS terms, of one row or of rows that `threads` lie between? */
static bool across_in_step(int threads, int rows)
{
    return threads >= rows ? threads % rows == 0 && PAIRS_TERMS % (threads / rows) == 0 : rows % threads == 0;
}

static void tile_copy_across(struct pair_tiles *s, const struct pair_tile *t, const struct terms *terms, kb_ptr to)
{
    kb *k = s->g->k;
    const struct pair_side *side = &s->side[t->what->axis];
    const int rows = pair_rows(side), threads = kb_threads(k), span = threads < rows ? threads : rows;
    const int step = threads / span;
    const kb_ptr from =
        kb_advance(k, gen_input(s->g, t->what->input), kb_add(k, kb_mul(k, terms->first, side->extent), side->first));
    if (!across_in_step(threads, rows)) {
        tile_copy_across_any(s, t, terms, from, to);
        return;
    }
    kb_if(k, kb_eq(k, terms->most, PAIRS_TERMS - 1)) {
        const kb_val term = kb_div(k, kb_tid(k), span), left = kb_sub(k, kb_sub(k, side->extent, 1), side->first);
        const kb_ptr line = kb_advance(k, from, kb_mul(k, kb_cast(k, term, TY_I64), side->extent));
        for (int beside = 0; beside < rows; beside += span) {
            const kb_val row = kb_add(k, kb_rem(k, kb_tid(k), span), beside);
            copy_series(k, t, PAIRS_TERMS / step, kb_advance(k, to, kb_add(k, kb_mul(k, term, t->pitch), row)),
                        step * t->pitch, kb_advance(k, line, kb_min(k, kb_cast(k, row, TY_I64), left)),
                        kb_mul(k, side->extent, step));
        }
    }
    kb_else { tile_copy_across_any(s, t, terms, from, to); }
}

static kb_val stage_of(kb *k, kb_val first) { return kb_rem(k, kb_div(k, kb_cast(k, first, TY_I32), PAIRS_TERMS), 2); }

static kb_ptr tile_stage(kb *k, const struct pair_tile *t, kb_val stage)
{
    return kb_advance(k, t->memory, kb_mul(k, stage, PAIRS_TERMS * t->pitch));
}

static void tiles_at(struct pair_tiles *s, kb_val stage)
{
    for (int o = 0; o < s->pairs.noperands; o++)
        s->tile[o].at_hand = tile_stage(s->g->k, &s->tile[o], stage);
}

static void tiles_copy(struct pair_tiles *s, kb_val first, kb_val count)
{
    kb *k = s->g->k;
    const struct terms terms = terms_at(k, first, count);
    for (int o = 0; o < s->pairs.noperands; o++) {
        const struct pair_tile *t = &s->tile[o];
        const kb_val again = s->again[t->what->axis];
        const kb_val stays = again.ir ? kb_and(k, again, kb_le(k, count, PAIRS_TERMS)) : kb_imm(k, TY_BOOL, false);
        kb_if(k, kb_not(k, stays)) {
            (t->what->terms_last ? tile_copy : tile_copy_across)(s, t, &terms, tile_stage(k, t, stage_of(k, first)));
        }
    }
}

/* The whole block arrives: the terms at hand have come, and the next ones are on their way.  A thread has a group of
 * copies for each, which may be empty.  A barrier says both that copies of all threads have come, and that all threads
 * have read the terms before: the next ones take their place. */
static void stages_load(kb *k, struct pair_tiles *s, kb_val first, kb_val count)
{
    LET(next, kb_add(k, first, PAIRS_TERMS));
    LET(from, kb_select(k, kb_eq(k, first, 0), first, next));
    kb_for(k, at, from, kb_add(k, next, 1), PAIRS_TERMS) {
        kb_copy_wait(k, 0);
        kb_barrier(k);
        kb_if(k, kb_lt(k, at, count)) {
            tiles_copy(s, at, count);
        }
        kb_copy_commit(k);
    }
    tiles_at(s, stage_of(k, first));
}

/* The whole block arrives. */
static void tiles_load(kb *k, struct emit_tiles *hooks, kb_val first, kb_val count)
{
    struct pair_tiles *s = (struct pair_tiles *)hooks;
    if (s->stages > 1) {
        stages_load(k, s, first, count);
        return;
    }
    const struct terms terms = terms_at(k, first, count);
    kb_barrier(k); /* all have read the tiles before */
    for (int o = 0; o < s->pairs.noperands; o++)
        tile_load(s, &s->tile[o], &terms);
    kb_barrier(k);
    tiles_at(s, kb_imm(k, TY_I32, 0));
}

static void tiles_term(kb *k, struct emit_tiles *hooks, kb_val i, int plus)
{
    struct pair_tiles *s = (struct pair_tiles *)hooks;
    for (int o = 0; o < s->pairs.noperands; o++) {
        struct pair_tile *t = &s->tile[o];
        const struct pair_side *side = &s->side[t->what->axis];
        const int n = side->vector;
        if (plus == 0)
            t->column = kb_advance(k, t->at_hand,
                                   kb_add(k, kb_mul(k, kb_cast(k, i, TY_I32), t->pitch), pair_place(k, side, 0)));
        for (int at = 0; at < side->each; at += n)
            kb_load_n(k, t->column, kb_imm(k, TY_I32, plus * t->pitch + at * side->teams), n,
                      gen_vector_alignment(n * ty_bytes(t->memory.ty)), &t->value[at]);
    }
}

bool pair_tiles_read(const struct pair_tiles *s, const struct expr *e, const int *row, kb_val *x)
{
    for (int o = 0; o < s->pairs.noperands; o++)
        if (pairs_is(s->g->p, e, s->tile[o].what)) {
            *x = s->tile[o].value[row[s->tile[o].what->axis]];
            return true;
        }
    return false;
}

/* ---- without tiles ----------------------------------------------------------------------------------------------- */

static void tables_term(kb *k, struct emit_tiles *hooks, kb_val i, int plus)
{
    struct pair_tiles *s = (struct pair_tiles *)hooks;
    const kb_val term = kb_add(k, i, plus);
    for (int o = 0; o < s->pairs.noperands; o++) {
        struct pair_tile *t = &s->tile[o];
        const struct pair_side *side = &s->side[t->what->axis];
        const struct prog_array *a = &s->g->p->input[t->what->input].array;
        const kb_val at = t->what->terms_last ? term : kb_mul(k, term, side->extent);
        for (int j = 0; j < side->each; j++)
            t->value[j] = gen_load_field(s->g, a, t->row[j], at, t->what->field);
    }
}

void pair_tables_open(struct pair_tiles *s, kb_val index[2][PAIRS_MAX])
{
    kb *k = s->g->k;
    const kb_val terms = gen_extent(s->g, &s->pairs.terms);
    for (int o = 0; o < s->pairs.noperands; o++) {
        struct pair_tile *t = &s->tile[o];
        for (int j = 0; j < s->side[t->what->axis].each; j++) {
            const kb_val row = index[t->what->axis][j];
            t->row[j] =
                table_at(s, t, gen_input(s->g, t->what->input), t->what->terms_last ? kb_mul(k, row, terms) : row);
        }
    }
}

void pair_tables_init(struct pair_tiles *s, struct gen *g, const struct pair_side *side)
{
    const char *why;
    *s = (struct pair_tiles){ .hooks = { .term = tables_term }, .g = g, .side = { side[0], side[1] } };
    pairs_of(g->p, &s->pairs, &why);
    for (int o = 0; o < s->pairs.noperands; o++)
        s->tile[o].what = &s->pairs.operand[o];
}

void pair_tiles_init(struct pair_tiles *s, struct gen *g, const struct pair_side *side)
{
    const char *why;
    *s = (struct pair_tiles){ .hooks = { PAIRS_TERMS, tiles_load, tiles_term }, .g = g, .side = { side[0], side[1] } };
    pairs_of(g->p, &s->pairs, &why);
    s->stages = pairs_stages(g->p, kb_has_copy(g->k), (const int[]){ pair_rows(&side[0]), pair_rows(&side[1]) });
    for (int o = 0; o < s->pairs.noperands; o++) {
        const struct pairs_operand *what = &s->pairs.operand[o];
        const enum ty ty = g->p->input[what->input].array.field[what->field].type;
        const int pitch = pairs_pitch(g->p, what, pair_rows(&side[what->axis]));
        s->tile[o] = (struct pair_tile){ .what = what,
                                         .memory = kb_shared_v(g->k, ty, s->stages * PAIRS_TERMS * pitch, "tile"),
                                         .pitch = pitch };
    }
}
