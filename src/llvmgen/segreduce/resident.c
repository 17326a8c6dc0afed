/* SPDX-License-Identifier: Apache-2.0 */
/* resident.c - reduce a row, then map it: a row is read once and stays in the registers of a team.
 *
 *     load all vectors of the row;   combine them in the thread, in the team;   every thread gets the results;   store
 *
 * A team is some lanes of a warp, a block, or a cluster of blocks, whose totals meet in distributed shared memory.
 * Vector i of thread r is number i * team + r of the row.
 */
#include "quotients.h"

struct resident {
    struct gen *g;
    int lanes, items, vector; /* lanes 0: the block, or the cluster */
    int cluster;              /* blocks of a team */
    kb_val rank;              /* i32, in the team */
    kb_val last;              /* i32: where the last vector of a row begins */
    kb_val room;              /* … after the thread's first one; negative: that is none */
    kb_val at;                /* i32: where the first one begins; the last one of the row where there is none */
    kb_arr aggregates, shown; /* of a block; of a cluster two `shown`, for the row and the one before */
    kb_var turn;              /* i32: which of them */
    kb_val length;            /* i64, of a row */
};

struct row {
    struct segment seg;
    kb_val exists, inside[SEG_ITEMS_MAX]; /* bool */
    struct direct d[SEG_ITEMS_MAX];       /* per element */
};

static int team_size(const struct resident *r) { return r->lanes ? r->lanes : r->cluster * kb_threads(r->g->k); }
static int behind_first(const struct resident *r, int i) { return i * team_size(r) * r->vector; }

/* Vector i, or zeros; of the first one, any. */
static void vector_load(const struct resident *r, struct row *w, int i)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const int fields = access_direct_fields(g->p);
    const bool aligned = g->c->aligned && r->vector > 1;
    struct direct *d = &w->d[i * r->vector];
    if (i == 0) { /* where addresses are made that the other vectors share */
        direct_load(g, w->seg.first, r->at, 0, r->vector, aligned, d);
        return;
    }
    kb_var x[SEG_ITEMS_MAX];
    for (int j = 0; j < r->vector * fields; j++)
        x[j] = kb_var_new(k, kb_imm(k, direct_type(g, j % fields), 0), "x");
    kb_if(k, w->inside[i]) {
        direct_load(g, w->seg.first, r->at, behind_first(r, i), r->vector, aligned, d);
        for (int j = 0; j < r->vector * fields; j++)
            kb_set(k, x[j], d[j / fields].v[j % fields]);
    }
    for (int j = 0; j < r->vector * fields; j++)
        d[j / fields].v[j % fields] = kb_get(k, x[j]);
}

static void row_load(const struct resident *r, struct row *w)
{
    kb *k = r->g->k;
    for (int i = 0; i < r->items; i++) {
        w->inside[i] = kb_and(k, w->exists, kb_ge(k, r->room, behind_first(r, i)));
        vector_load(r, w, i);
    }
}

/* The points of vector i. */
static void row_points(const struct resident *r, struct row *w, int i, struct point *pt, struct point **at)
{
    for (int j = 0; j < r->vector; j++) {
        segment_point(r->g, &pt[j], &w->seg, w->seg.first, r->at, behind_first(r, i) + j);
        pt[j].direct = &w->d[i * r->vector + j];
        pt[j].segment = w->seg.number;
        point_is_of_vector(&pt[j], j, r->vector);
        at[j] = &pt[j];
    }
}

/* Elements that are left out together.  States are combined before that where the numbers of their elements are known
 * when generating, unless an operator takes all of a thread at once. */
static int masked_together(const struct resident *r)
{
    for (int i = 0; i < r->g->p->nreductions; i++)
        if (r->g->p->reduction[i].takes_many)
            return 1;
    return r->vector;
}

struct other_reads {
    const struct problem *p;
    bool any;
};

/* Does a value follow the row?  Of at(), an index of the user's own is kept within the array. */
static bool follows_row(const struct problem *p, const struct expr *e)
{
    bool does = e->kind == EX_INDEX && p->space[e->which].reduced;
    for (int i = 0; i < e->nargs && !does; i++)
        does = follows_row(p, e->arg[i]);
    return does;
}

static void find_other_reads(const struct expr *e, void *user)
{
    struct other_reads *o = user;
    const struct input *in = e->kind == EX_INPUT || e->kind == EX_AT ? &o->p->input[e->which] : NULL;
    if (!in || (e->kind == EX_INPUT && !e->noffsets && access_input_direct(o->p, e->which)))
        return;
    for (int d = 0; d < in->array.rank; d++)
        o->any |= e->kind == EX_INPUT ? in->axis[d] >= 0 && o->p->space[in->axis[d]].reduced
                                      : (e->arg[d]->kind == EX_INDEX || e->op >> d & 1) && follows_row(o->p, e->arg[d]);
}

bool resident_maps_read(const struct problem *p)
{
    struct other_reads o = { p, false };
    for (int i = 0; i < p->nreductions; i++)
        for (int f = 0; f < p->reduction[i].op->nfields; f++)
            problem_walk(p, p->reduction[i].map[f], find_other_reads, &o);
    return o.any;
}

static void map_vector(const struct resident *r, struct row *w, int i, kb_tup *x)
{
    struct point pt[GEN_VECTOR_MAX], *at[GEN_VECTOR_MAX];
    row_points(r, w, i, pt, at);
    for (int j = 0; j < r->vector; j++)
        x[j] = point_map(&pt[j]);
}

/* What the thread's elements come to; without padding, in threads that have none it is no state. */
static kb_tup row_combine(const struct resident *r, struct row *w)
{
    struct gen *g = r->g;
    kb *k = g->k;
    kb_tup all[SEG_ITEMS_MAX], x[GEN_VECTOR_MAX];
    struct partial some = partial_new(g, "some");
    const int together = masked_together(r);
    const bool guarded = resident_maps_read(g->p), padded = g->padded && !guarded;
    int n = 0;
    for (int i = 0; i < r->items; i++) {
        if (!guarded)
            map_vector(r, w, i, x);
        for (int j = 0; j < r->vector && padded; j += together)
            all[n++] = kb_select(k, w->inside[i], state_combine_many(g, &x[j], together), state_pad_value(g));
        if (padded)
            continue;
        kb_if(k, w->inside[i]) {
            if (guarded)
                map_vector(r, w, i, x);
            partial_take(g, &some, state_combine_many(g, x, r->vector));
        }
    }
    return padded ? state_combine_many(g, all, n) : kb_get(k, some.x);
}

/* ---- field by field ---------------------------------------------------------------------------------------------- */

/* A field of a reduction's state. */
struct field {
    int red, f;
};

/* Is the field the length of the row?  A lifted constant that combines by itself counts elements (operators.def). */
static bool is_length(const struct resident *r, struct field at)
{
    const struct reduction *red = &r->g->p->reduction[at.red];
    return r->cluster == 1 && red->takes_many && !red->op->many[at.f] && red->map[at.f]->kind == EX_CONST;
}

/* Does what elements add to the field depend on fields before it? */
static bool depends(const struct problem *p, struct field at)
{
    return p->reduction[at.red].takes_many && p->reduction[at.red].op->many[at.f];
}

/* A state whose fields follow one another over the lanes, or the block: a thread combines its elements with the maximum of all
 * and not with its own, and has computed what maps of the same difference ask for.  Threads meet for all fields that depend
 * on no other, and then for each that does: twice at least, so that no thread still reads what another one writes for the
 * next row. */
static bool by_fields(const struct resident *r)
{
    const struct problem *p = r->g->p;
    bool each = r->g->padded && !resident_maps_read(p), first = false;
    int meetings = 0;
    for (int i = 0; i < p->nreductions; i++) {
        const struct reduction *red = &p->reduction[i];
        each &= !red->counts && (red->takes_many || red->op->nfields == 1);
        for (int f = 0; f < red->op->nfields; f++) {
            const struct field at = { i, f };
            meetings += depends(p, at);
            first |= !depends(p, at) && !is_length(r, at);
        }
    }
    return each && meetings > 0 && meetings + first >= 2;
}

static kb_val field_tree(struct gen *g, struct field at, const kb_val *x, int n)
{
    if (n == 1)
        return x[0];
    const kb_val left = field_tree(g, at, x, n / 2);
    return state_field_join(g, at.red, at.f, left, field_tree(g, at, x + n / 2, n - n / 2));
}

static kb_val field_of_lanes(struct gen *g, struct field at, kb_val x, int lanes)
{
    for (int d = 1; d < lanes; d *= 2)
        x = state_field_join(g, at.red, at.f, x, kb_shfl_xor(g->k, x, d));
    return x;
}

/* x := n fields of the total of the lanes, or of the block, in all its threads.  A block has met since its warps read what the
 * one before left there. */
static void meet(const struct resident *r, int n, const struct field *at, kb_val *x)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP, lanes = power_of_two_above(warps);
    for (int i = 0; i < n; i++)
        x[i] = field_of_lanes(g, at[i], x[i], r->lanes ? r->lanes : KB_WARP);
    if (r->lanes || warps == 1)
        return;
    LET(lane, kb_lane(k));
    kb_if(k, kb_eq(k, lane, 0)) {
        for (int i = 0; i < n; i++)
            kb_store(k, r->aggregates.e[state_first(g->p, at[i].red) + at[i].f], kb_warp(k), x[i]);
    }
    kb_barrier(k);
    LET(of, kb_and(k, lane, lanes - 1)); /* as often as there is room: all lanes get the total */
    for (int i = 0; i < n; i++) {
        x[i] = kb_load(k, r->aggregates.e[state_first(g->p, at[i].red) + at[i].f], kb_min(k, of, warps - 1));
        if (warps < lanes)
            x[i] = kb_select(k, kb_lt(k, of, warps), x[i], state_field_pad(g, at[i].red, at[i].f));
        x[i] = field_of_lanes(g, at[i], x[i], lanes);
    }
}

/* What the thread's elements add to the field. */
static kb_val field_of_thread(const struct resident *r, const struct row *w, struct field at, const kb_tup *x,
                              kb_tup known)
{
    struct gen *g = r->g;
    const int n = r->items * r->vector;
    kb_val share[SEG_ITEMS_MAX];
    for (int i = 0; i < n; i++)
        share[i] = kb_select(g->k, w->inside[i / r->vector], state_field_share(g, at.red, at.f, x[i], known),
                             state_field_pad(g, at.red, at.f));
    return field_tree(g, at, share, n);
}

/* The total of the lanes, or of the block, in all its threads. */
static kb_tup total_by_fields(const struct resident *r, struct row *w)
{
    struct gen *g = r->g;
    const struct problem *p = g->p;
    struct field at[STATE_FIELDS_MAX], later[STATE_FIELDS_MAX];
    kb_tup x[SEG_ITEMS_MAX], total = state_zero(g);
    kb_val together[STATE_FIELDS_MAX];
    int n = 0, nlater = 0;
    for (int i = 0; i < r->items; i++)
        map_vector(r, w, i, &x[i * r->vector]);
    for (int i = 0; i < p->nreductions; i++)
        for (int f = 0; f < p->reduction[i].op->nfields; f++) {
            const struct field field = { i, f };
            if (is_length(r, field))
                total.e[state_first(p, i) + f] = kb_cast(g->k, r->length, g->field[state_first(p, i) + f]);
            else if (depends(p, field))
                later[nlater++] = field;
            else
                at[n++] = field;
        }
    for (int i = 0; i < n; i++)
        together[i] = field_of_thread(r, w, at[i], x, total);
    if (n)
        meet(r, n, at, together);
    for (int i = 0; i < n; i++)
        total.e[state_first(p, at[i].red) + at[i].f] = together[i];
    for (int i = 0; i < nlater; i++) {
        kb_val *field = &total.e[state_first(p, later[i].red) + later[i].f];
        *field = field_of_thread(r, w, later[i], x, total);
        meet(r, 1, &later[i], field);
    }
    return total;
}

/* ---- whole states ------------------------------------------------------------------------------------------------ */

/* The total of the block of which `valid` threads have one, in all its threads. */
static kb_tup total_of_block(const struct resident *r, kb_tup x, kb_val valid)
{
    struct gen *g = r->g;
    kb *k = g->k;
    x = block_reduce(g, x, g->padded ? valid_all() : valid_first(valid), r->aggregates);
    kb_if(k, kb_thread0(k)) {
        kb_store(k, r->shown, 0, x);
    }
    kb_barrier(k);
    return kb_load(k, r->shown, 0);
}

/* The total of the cluster of which `valid` threads have elements, in all its threads, from those of blocks, which their
 * first threads have: every block shows its own, and every warp reads all of them, one per lane.  A block writes where it
 * wrote two rows ago: all have read that, as they have met since. */
static kb_tup total_of_cluster(const struct resident *r, kb_tup x, kb_val valid)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const int threads = kb_threads(k);
    LET(turn, kb_get(k, r->turn));
    kb_arr shown = r->shown;
    for (int f = 0; f < shown.n; f++)
        shown.e[f] = kb_advance(k, shown.e[f], turn);
    kb_if(k, kb_thread0(k)) {
        kb_store(k, shown, 0, x);
    }
    kb_set(k, r->turn, kb_xor(k, turn, 1));
    kb_cluster_arrive(k);
    kb_cluster_wait(k);
    const kb_val rank = kb_min(k, kb_lane(k), r->cluster - 1); /* lanes after the last block repeat it */
    for (int f = 0; f < shown.n; f++)
        shown.e[f] = kb_cluster_map(k, shown.e[f], rank);
    const kb_val blocks = kb_div(k, kb_add(k, valid, threads - 1), threads);
    x = warp_reduce(g, kb_load(k, shown, 0), r->cluster, g->padded ? valid_all() : valid_first(blocks));
    return kb_shfl_idx(k, x, 0);
}

/* The row's total, in all threads of the team. */
static kb_tup row_total(const struct resident *r, struct row *w)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const bool fields = by_fields(r);
    kb_tup x = fields ? total_by_fields(r, w) : row_combine(r, w);
    if (fields && r->cluster == 1)
        return x;
    const kb_val vectors = kb_add(k, kb_div(k, r->last, r->vector), 1), valid = kb_min(k, vectors, team_size(r));
    if (r->lanes) {
        const kb_val before = kb_sub(k, kb_lane(k), r->rank);
        const struct valid_items f = g->padded ? valid_all() : valid_first(kb_add(k, before, valid));
        return kb_shfl_idx(k, warp_reduce(g, x, r->lanes, f), before);
    }
    if (r->cluster == 1)
        return total_of_block(r, x, valid);
    if (!fields) {
        const kb_val own = kb_sub(k, valid, kb_mul(k, kb_cluster_rank(k), kb_threads(k)));
        const kb_val some = kb_max(k, kb_min(k, own, kb_threads(k)), 1);
        x = block_reduce(g, x, g->padded ? valid_all() : valid_first(some), r->aggregates);
    }
    return total_of_cluster(r, x, valid);
}

static void row_map(const struct resident *r, struct row *w, const kb_tup *results)
{
    kb *k = r->g->k;
    struct point pt[GEN_VECTOR_MAX], *at[GEN_VECTOR_MAX];
    struct quotients q;
    const bool aligned = r->g->c->aligned && r->vector > 1;
    row_points(r, w, 0, pt, at);
    pt[0].state = results;
    quotients_begin(r->g, &q, pt, r->vector);
    for (int i = 0; i < r->items; i++) {
        kb_if(k, w->inside[i]) {
            row_points(r, w, i, pt, at);
            for (int j = 0; j < r->vector; j++)
                pt[j].state = results;
            quotients_take(r->g, &q, pt, r->vector);
            outputs_store_at(AT_POINT, at, r->vector, aligned);
            outputs_store_at(AT_RESULT, at, r->vector, aligned);
        }
    }
}

/* The row whose segment is known. */
static void take_segment(const struct resident *r, struct row *w)
{
    struct gen *g = r->g;
    kb *k = g->k;
    segment_enter(g, &w->seg);
    row_load(r, w);
    const kb_tup results = state_results(g, row_total(r, w), kb_false(k));
    if (problem_writes(g->p, AT_TOTAL)) {
        kb_if(k, kb_and(k, w->exists, kb_eq(k, r->rank, 0))) {
            state_store(g, &results);
        }
    }
    row_map(r, w, &results);
}

static void take_row(const struct resident *r, kb_val number, kb_val exists)
{
    struct row w = { .exists = exists };
    segment_at(r->g, &w.seg, number);
    take_segment(r, &w);
}

/* Thread `rank` of the team has vectors of a row so long. */
static void share(struct resident *r, kb_val length)
{
    kb *k = r->g->k;
    r->length = length;
    r->last = kb_sub(k, kb_cast(k, length, TY_I32), r->vector);
    r->room = kb_sub(k, r->last, kb_mul(k, r->rank, r->vector));
    r->at = kb_min(k, kb_mul(k, r->rank, r->vector), r->last);
}

void resident_by_warp(struct gen *g, const struct segment *seg, int items)
{
    struct resident r = { .g = g, .lanes = KB_WARP, .cluster = 1, .items = items, .vector = 1 };
    struct row w = { .seg = *seg, .exists = kb_true(g->k) };
    r.rank = kb_lane(g->k);
    share(&r, kb_sub(g->k, seg->last, seg->first));
    take_segment(&r, &w);
}

static void lanes_take_rows(const struct resident *r)
{
    kb *k = r->g->k;
    const kb_val segments = gen_value(r->g, VAL_SEGMENTS);
    const int64_t teams = kb_threads(k) / r->lanes;
    const kb_val own = kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), teams),
                              kb_cast(k, kb_div(k, kb_tid(k), r->lanes), TY_I64));
    /* All lanes of a warp go on as long as its first team does. */
    const kb_val before = kb_cast(k, kb_div(k, kb_sub(k, kb_lane(k), r->rank), r->lanes), TY_I64);
    LET(first, kb_assume_uniform(kb_sub(k, own, before), KB_UNI_WARP));
    kb_for(k, number, first, segments, kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), teams)) {
        LET(mine, kb_add(k, number, before));
        take_row(r, kb_min(k, mine, kb_sub(k, segments, 1)), kb_lt(k, mine, segments));
    }
}

void emit_segreduce_resident(struct gen *g)
{
    kb *k = g->k;
    if (!segments_trailing(g->p)) {
        emit_resident_columns(g);
        return;
    }
    struct resident r = { .g = g,
                          .lanes = gen_tunable(g, TN_LANES),
                          .cluster = gen_tunable(g, TN_CLUSTER) > 1 ? gen_tunable(g, TN_CLUSTER) : 1,
                          .items = gen_tunable(g, TN_ITEMS),
                          .vector = gen_tunable(g, TN_VECTOR) };
    gen_wait_for_predecessor(g);
    r.rank = r.lanes ? kb_and(k, kb_lane(k), r.lanes - 1) : kb_tid(k);
    if (r.cluster > 1)
        r.rank = kb_add(k, r.rank, kb_mul(k, kb_cluster_rank(k), kb_threads(k)));
    share(&r, gen_value(g, VAL_LENGTH));
    if (r.lanes) {
        lanes_take_rows(&r);
        return;
    }
    r.aggregates = state_shared(g, KB_WARP, "warp_totals");
    r.shown = state_shared(g, r.cluster > 1 ? 2 : 1, "row_total");
    if (r.cluster > 1)
        r.turn = kb_var_new(k, kb_imm(k, TY_I32, 0), "turn");
    const kb_val team = kb_cast(k, kb_div(k, kb_block(k), r.cluster), TY_I64);
    const kb_val teams = kb_cast(k, kb_div(k, kb_blocks(k), r.cluster), TY_I64);
    kb_for(k, number, team, gen_value(g, VAL_SEGMENTS), teams) {
        take_row(&r, number, kb_true(k));
    }
    if (r.cluster > 1) { /* no block leaves while others read what it shows */
        kb_cluster_arrive(k);
        kb_cluster_wait(k);
    }
}
