/* SPDX-License-Identifier: Apache-2.0 */
/* stencil.c - stencils by windows: every thread computes a box of neighbouring points out of registers.
 *
 *     origin of the thread's window, from the block's box and the thread's place in it
 *     if the windows of the whole warp and all they read lie inside:
 *         load every value once, compute row by row, store
 *     else, if only columns may leave the arrays:
 *         the same, but what is read sideways goes through the boundary mode; store the points that exist
 *     else:
 *         everything through the boundary modes
 *     last step: contributions of the points -> block -> the last block to finish combines the partials
 *
 * Inside, no instruction is spent on boundaries.  The decision is a warp's, so the two sides never share a warp.
 */
#include <stdlib.h>

#include "llvmgen/builder/kb_target.h"
#include "lower/stencil/taps.h"
#include "stencil_gen.h"

/* ---- what exists --------------------------------------------------------------------------------------------------- */

/* Do all the window's points exist along the first `axes` axes, and lie their surroundings at known offsets inside? */
static kb_val sweep_inside(struct sweep *s, int axes)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const int last = g->p->rank - 1;
    const struct skews skews = stencil_skewed(g->c) ? stencil_skews(g->c, g->p->rank) : (struct skews){ 0, 0 };
    const struct reach r = stencil_space_reach(g->p);
    kb_val inside = kb_true(k);
    for (int d = 0; d < axes; d++) {
        const int points = stencil_points(g->c, g->p->rank, d);
        int64_t beyond = points + r.hi[d], before = -r.lo[d];
        if (d == last && stencil_skewed(g->c)) { /* with the vectors that the outermost columns lie in */
            beyond += skews.hi + points - 1;
            before += points - 1 - skews.lo;
        }
        const kb_val extent = gen_extent(g, &g->p->space[d].extent);
        inside = kb_and(k, inside, kb_le(k, kb_add(k, s->origin[d], beyond), extent));
        if (before > 0)
            inside = kb_and(k, inside, kb_ge(k, s->origin[d], before));
    }
    return inside;
}

/* May a point of the window exist?  Along axes other than the last: its first. */
static kb_val sweep_exists(struct sweep *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const int last = g->p->rank - 1, points = stencil_points(g->c, g->p->rank, last);
    kb_val exists = kb_true(k);
    for (int d = 0; d <= last; d++) {
        kb_val first = s->origin[d];
        if (d == last && stencil_skewed(g->c)) {
            const struct skews skews = stencil_skews(g->c, g->p->rank);
            exists = kb_and(k, exists, kb_gt(k, kb_add(k, first, points + skews.hi), 0));
            first = kb_add(k, first, skews.lo);
        }
        exists = kb_and(k, exists, kb_lt(k, first, gen_extent(g, &g->p->space[d].extent)));
    }
    return exists;
}

/* ---- one window -------------------------------------------------------------------------------------------------- */

static void contribute(struct sweep *s, struct stencil_point *sp)
{
    kb *k = s->g->k;
    if (s->role != STENCIL_LAST || s->g->nfields == 0)
        return;
    const kb_tup x = point_map(&sp->pt);
    kb_if(k, sp->exists) {
        state_accumulate(s->g, s->acc, s->have, x);
    }
}

/* Do the points of a row all exist, the first and the last one tell, and is none skipped? */
static kb_val all_stored(kb *k, const struct stencil_point *sp, int n)
{
    kb_val all = kb_and(k, sp[0].exists, sp[n - 1].exists);
    for (int i = 0; i < n && sp[0].skip.ir; i++)
        all = kb_and(k, all, kb_not(k, sp[i].skip));
    return all;
}

/* A row of n points that all exist, none skipped. */
static void store_row(struct stencil_point *sp, int n)
{
    struct point *pt[GEN_VECTOR_MAX];
    for (int i = 0; i < n; i++)
        pt[i] = &sp[i].pt;
    outputs_store(pt, n, sp->w->vectors);
}

void sweep_store_row(struct sweep *s, struct window *w, struct stencil_point *sp)
{
    const int n = w->points[w->rank - 1];
    const bool reduces = s->role == STENCIL_LAST && s->g->nfields > 0;
    const bool keeps = sp[0].skip.ir && stencil_keeps_skipped(s->g->p);
    if (w->place != PLACE_EDGE && w->vectors && n % 4 == 0 && !keeps && !reduces && stencil_packs(s->g->p)) {
        packed_row(sp, n);
        return;
    }
    for (int i = 0; i < n; i++) {
        for (int o = 0; o < s->g->p->noutputs; o++) /* before any store of the row */
            for (int f = 0; output_moment(&s->g->p->output[o]) == AT_POINT && f < s->g->p->output[o].array.nfields; f++)
                stencil_value(&sp[i], o, f);
        contribute(s, &sp[i]);
    }
    const bool row = w->vectors || (w->ring && n == 1);
    const bool skips = sp[0].skip.ir;
    const bool together = (w->place == PLACE_INSIDE || row) && n <= GEN_VECTOR_MAX && !(skips && n == 1);
    if (together && w->place == PLACE_INSIDE && !skips) {
        store_row(sp, n);
    } else if (together) {
        kb_if(s->g->k, all_stored(s->g->k, sp, n)) {
            store_row(sp, n);
        }
        kb_else
        {
            /* Else all of a row or nothing exists. */
            const bool part = n > 1 && (skips || !(w->ring && w->vectors));
            for (int i = 0; i < n && part; i++)
                point_store(&sp[i].pt);
        }
    } else {
        for (int i = 0; i < n; i++)
            point_store(&sp[i].pt);
    }
}

static void init_row(struct sweep *s, struct window *w, const int *first, struct stencil_point *sp)
{
    for (int i = 0; i < w->points[w->rank - 1]; i++) {
        int at[SPACE_MAX] = { first[0], first[1], first[2] };
        at[w->rank - 1] = i + (w->skewed ? stencil_skew(s->g->c, w->rank, first) : 0);
        stencil_point_init(&sp[i], w, at, &s->gather);
    }
}

static struct stencil_point *new_points(struct sweep *s, int n)
{
    struct stencil_point *sp = calloc((size_t)n, sizeof *sp);
    if (!sp)
        kb_misuse(s->g->k, "out of memory");
    return sp;
}

/* Compute and store points `first` … of the last axis, a row of a window that has been loaded. */
static void sweep_row(struct sweep *s, struct window *w, const int *first)
{
    struct stencil_point *sp = new_points(s, w->points[w->rank - 1]);
    if (sp) {
        init_row(s, w, first, sp);
        sweep_store_row(s, w, sp);
    }
    free(sp);
}

static int count_rows(const struct window *w)
{
    const int last = w->rank - 1;
    return (last > 0 ? w->points[last - 1] : 1) * (last > 1 ? w->points[0] : 1);
}

struct stencil_point *sweep_points(struct sweep *s, struct window *w)
{
    const int last = w->rank - 1, n = w->points[last], lines = last > 0 ? w->points[last - 1] : 1, rows = count_rows(w);
    struct stencil_point *sp = new_points(s, rows * n);
    for (int y = 0; sp && y < rows; y++) {
        int first[SPACE_MAX] = { 0 };
        if (last > 1)
            first[0] = y / lines;
        if (last > 0)
            first[last - 1] = y % lines;
        init_row(s, w, first, sp + y * n);
    }
    return sp;
}

static void forget_late(struct window *w)
{
    for (int i = 0; i < w->ncells; i++)
        if (w->cell[i].late)
            w->cell[i].v.ir = NULL;
}

/* The rows of a place of a block that streams; what is loaded on the way is not there afterwards. */
static void rows_together(struct sweep *s, struct window *w)
{
    const int n = w->points[w->rank - 1], rows = count_rows(w);
    struct stencil_point *sp = sweep_points(s, w);
    if (sp)
        stencil_values(sp, rows * n, w->any);
    if (w->any.ir) /* what is loaded under the condition is not there without */
        forget_late(w);
    for (int y = 0; sp && y < rows; y++)
        sweep_store_row(s, w, sp + y * n);
    forget_late(w);
    free(sp);
}

void sweep_rows(struct sweep *s, struct window *w)
{
    const int last = w->rank - 1;
    const int rows = last > 0 ? w->points[last - 1] : 1, planes = last > 1 ? w->points[0] : 1;
    if (w->together || s->g->p->sums) {
        rows_together(s, w);
        return;
    }
    for (int z = 0; z < planes; z++)
        for (int y = 0; y < rows; y++) {
            int first[SPACE_MAX] = { 0 };
            if (last > 1)
                first[0] = z;
            if (last > 0)
                first[last - 1] = y;
            sweep_row(s, w, first);
        }
}

/* Is all inside along the axes but the last, for PLACE_ROWS? */
static kb_val sweep_rows_inside(struct sweep *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    const int rank = g->p->rank;
    const struct reach r = stencil_space_reach(g->p);
    const kb_val before = kb_ge(k, s->origin[0], 1 - r.lo[0]),
                 wide = kb_ge(k, gen_extent(g, &g->p->space[rank - 1].extent), ends_beyond(g));
    const kb_val after = kb_lt(k, kb_add(k, s->origin[0], stencil_points(g->c, rank, 0) + r.hi[0]),
                               gen_extent(g, &g->p->space[0].extent));
    return kb_and(k, kb_and(k, sweep_inside(s, rank - 1), wide), kb_and(k, before, after));
}

/* Are the points of a window computed as sums that share their parts? */
static bool shares_sums(const struct sweep *s, const struct window *w)
{
    const struct problem *p = s->g->p;
    const bool reduces = s->role == STENCIL_LAST && s->g->nfields > 0;
    return w->vectors && !reduces && !stencil_keeps_skipped(p) && w->points[w->rank - 1] % 4 == 0 && !s->gather.any &&
           stencil_shares_sums(p);
}

static void window(struct sweep *s, const int *points, enum placement place)
{
    struct window w;
    window_init(&w, s->g, s->origin, points, place);
    w.tile = s->tile;
    w.turned = s->turned;
    w.joined = s->joined;
    w.box = s->box;
    w.by_distance = s->turned || stencil_packs(s->g->p) || stencil_narrow(s->g->p);
    if (shares_sums(s, &w)) {
        w.word_ends = ends_in_words(&w);
        window_collect(&w);
        struct stencil_point *sp = sweep_points(s, &w);
        if (sp)
            (stencil_by_dots(s->g->p) ? packed_dots : packed_sums)(&w, sp);
        free(sp);
    } else {
        window_load(&w);
        w.together = stencil_halves(s->g->p);
        sweep_rows(s, &w);
    }
    window_free(&w);
}

/* The row `row` places on along `axis`, i64. */
static struct sweep moved(struct sweep *s, int axis, kb_val row)
{
    kb *k = s->g->k;
    const int last = s->g->p->rank - 1;
    struct sweep at = *s;
    int along[SPACE_MAX] = { 0 };
    along[axis] = 1;
    at.origin[axis] = kb_add(k, s->origin[axis], row);
    if (stencil_skewed(s->g->c))
        at.origin[last] = kb_add(k, at.origin[last], kb_mul(k, row, stencil_skew(s->g->c, last + 1, along)));
    return at;
}

static kb_val exists(struct sweep *s, int axis)
{
    return kb_lt(s->g->k, s->origin[axis], gen_extent(s->g, &s->g->p->space[axis].extent));
}

/* Row by row, or so many at once; of sums that share their parts plane by plane. */
static void by_rows(struct sweep *s, int count, int at_once, enum placement place)
{
    kb *k = s->g->k;
    const int rank = s->g->p->rank, points = stencil_points(s->g->c, rank, rank - 1),
              all = rank > 2 ? stencil_points(s->g->c, rank, 1) : 1, lines = stencil_shares_sums(s->g->p) ? 1 : all;
    const int row[SPACE_MAX] = { rank > 1 ? at_once : points, rank > 2 ? all / lines : points, points };
    kb_for(k, i, kb_imm(k, TY_I64, 0), count, at_once) {
        struct sweep there = rank > 1 ? moved(s, 0, i) : *s;
        kb_for(k, j, kb_imm(k, TY_I64, 0), lines, 1) {
            struct sweep at = lines > 1 ? moved(&there, 1, j) : there;
            kb_if(k, kb_and(k, exists(&at, 0), rank > 2 ? exists(&at, 1) : kb_true(k))) {
                window(&at, row, place);
            }
        }
    }
}

/* A window at an edge.  Few warps come there, so that registers count more than that loads are under way together: row
 * by row.  But in three dimensions many warps end a row, and where outputs turn the whole block waits for them.  Windows
 * of bytes have many rows, of which two go together where they read little. */
static void edge(struct sweep *s, const int *points, enum placement place)
{
    enum { LITTLE = 13 };
    const int rank = s->g->p->rank;
    const bool pairs = stencil_reads(s->g->p) <= LITTLE && place == PLACE_ROWS && rank == 2 && points[0] % 2 == 0 &&
                       stencil_packs(s->g->p);
    if ((place == PLACE_ROWS && rank > 2) || stencil_turns_together(s->g->p, s->g->c))
        window(s, points, place);
    else
        by_rows(s, rank > 1 ? points[0] : 1, pairs ? 2 : 1, place);
}

static void windows(struct sweep *s)
{
    kb *k = s->g->k;
    const int rank = s->g->p->rank;
    int points[SPACE_MAX] = { 1, 1, 1 };
    for (int d = 0; d < rank; d++)
        points[d] = stencil_points(s->g->c, rank, d);
    LET(rows, rank > 1 ? kb_all(k, sweep_rows_inside(s)) : kb_false(k));
    kb_section(k, "inside");
    kb_if(k, kb_all(k, sweep_inside(s, rank))) {
        window(s, points, PLACE_INSIDE);
    }
    kb_else
    {
        kb_if(k, sweep_exists(s)) {
            kb_section(k, "columns");
            kb_if(k, rows) {
                edge(s, points, PLACE_ROWS);
            }
            kb_else
            {
                kb_section(k, "edge");
                edge(s, points, PLACE_EDGE);
            }
        }
    }
}

/* The window of a thread whose block takes the terms of its sums tile by tile (stencil.pairs).  The whole block arrives;
 * windows that lie outside read at the end of the space, and have no points. */
static void window_of_pairs(struct sweep *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    struct window w;
    struct pair_tiles pairs;
    struct pair_side side[2];
    int points[SPACE_MAX] = { 1, 1, 1 };
    for (int d = 0; d < 2; d++) {
        points[d] = stencil_points(g->c, 2, d);
        const kb_val rank = kb_div(k, kb_cast(k, kb_sub(k, s->origin[d], s->box[d]), TY_I32), points[d]);
        side[d] = (struct pair_side){ points[d], points[d], stencil_threads(g->c, 2, d),
                                      rank,      s->box[d], gen_extent(g, &g->p->space[d].extent) };
    }
    pair_tiles_init(&pairs, g, side);
    LET(exists, sweep_exists(s));
    for (int d = 0; d < 2; d++)
        s->origin[d] = kb_min(k, s->origin[d], kb_sub(k, side[d].extent, 1));
    window_init(&w, g, s->origin, points, PLACE_EDGE);
    w.exists = exists;
    w.box = s->box;
    w.pairs = &pairs;
    w.vectors = g->c->aligned;
    window_load(&w);
    sweep_rows(s, &w);
    window_free(&w);
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static kb_tup block_sum(struct sweep *s)
{
    struct gen *g = s->g;
    if (g->padded)
        return block_reduce(g, kb_get(g->k, s->acc), valid_all(), state_shared(g, KB_WARP, "warp_totals"));
    kb_val have = kb_get(g->k, s->have);
    return block_reduce_some(g, kb_get(g->k, s->acc), &have);
}

static kb_val no_points(struct gen *g)
{
    kb *k = g->k;
    kb_val none = kb_false(k);
    for (int d = 0; d < g->p->rank; d++)
        none = kb_or(k, none, kb_le(k, gen_extent(g, &g->p->space[d].extent), 0));
    return none;
}

static void finish(struct sweep *s)
{
    struct gen *g = s->g;
    kb *k = g->k;
    LET(block, kb_block(k));
    LET(blocks, kb_blocks(k));
    kb_section(k, "finish");
    if (g->nfields == 0) {
        kb_if(k, kb_and(k, kb_eq(k, block, 0), kb_thread0(k))) {
            state_finish(g, (kb_tup){ .n = 0 }, no_points(g));
        }
        return;
    }
    const kb_tup total = block_sum(s);
    kb_if(k, is_last_block(g, total, block, blocks)) {
        /* The first window of every block has a point, or there are none at all. */
        const kb_tup all = reduce_partials(g, kb_imm(k, TY_I32, 0), blocks);
        kb_if(k, kb_thread0(k)) {
            state_finish(g, all, no_points(g));
        }
    }
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* Element i of every fed-back input to its output. */
static void copy(struct gen *g)
{
    kb *k = g->k;
    LET(block, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), kb_threads(k)));
    LET(i, kb_add(k, block, kb_cast(k, kb_tid(k), TY_I64)));
    for (int b = 0; b < g->p->nfeedback; b++) {
        const struct prog_array *a = &g->p->input[g->p->feedback[b].input].array;
        kb_val count = kb_imm(k, TY_I64, 1);
        for (int d = 0; d < a->rank; d++)
            count = kb_mul(k, count, gen_extent(g, &a->dim[d]));
        kb_if(k, kb_lt(k, i, count)) {
            for (int f = 0; f < a->nfields; f++) {
                const kb_val x = gen_load_field(g, a, gen_input(g, g->p->feedback[b].input), i, f);
                gen_store_field(g, a, gen_output(g, g->p->feedback[b].output), i, f, x);
            }
        }
    }
}

void emit_windows(struct gen *g, enum stencil_role role, bool staged)
{
    kb *k = g->k;
    struct sweep s = { .g = g, .role = role };
    struct tile tile[PROBLEM_ARGS_MAX];
    struct turned turned[PROBLEM_ARGS_MAX];
    struct joined joined = joined_of(g, 1);
    gen_wait_for_predecessor(g);
    if (s.role == STENCIL_COPY) {
        copy(g);
        return;
    }
    s.joined = g->p->joins ? &joined : NULL;
    (stencil_linear(g->p) ? sweep_linear_origin : sweep_box_origin)(&s);
    if (s.joined)
        joined_begin(s.joined, s.box);
    s.gather = gather_reach(g);
    if (s.role == STENCIL_LAST) {
        s.acc = kb_var_new(k, g->padded ? state_pad_value(g) : state_zero(g), "acc");
        s.have = kb_var_new(k, kb_false(k), "have");
    }
    if (staged) {
        tiles_load(g, s.box, tile);
        s.tile = tile;
    }
    if (g->c->turns) {
        turned_declare(g, turned);
        s.turned = turned;
    }
    (stencil_streams(g->c) ? sweep_stream : g->c->tiled ? window_of_pairs : windows)(&s);
    if (s.turned)
        turned_leave(&s);
    if (s.joined)
        joined_end(s.joined);
    if (s.role == STENCIL_LAST)
        finish(&s);
}

static void emit_roles(struct gen *g, bool staged)
{
    enum stencil_role role[STENCIL_ROLES];
    stencil_roles(g->p, role);
    emit_windows(g, role[g->kernel - g->c->code.kernel], staged);
}

void emit_stencil_global(struct gen *g) { emit_roles(g, false); }
void emit_stencil_multi_write(struct gen *g) { emit_roles(g, false); }
void emit_stencil_stream(struct gen *g) { emit_roles(g, false); }
void emit_stencil_pairs(struct gen *g) { emit_roles(g, false); }
void emit_stencil_big_tile(struct gen *g) { emit_roles(g, true); }
