/* SPDX-License-Identifier: Apache-2.0 */
/* stretches.c - a team of lanes reduces stretches of consecutive positions, whatever their ends.
 *
 *     positions:   |  vector  |  vector  |  vector  |  vector  |
 *     stretch:          first ^^^^^^^^^^^^^^^^^^^^^^^^^^^ last
 *                        head |  whole vectors      | tail
 *
 * Whole vectors are loaded as such, a round of lanes x items at a time, and only the last round is masked, a vector at
 * a time.  The few positions at both ends, fewer than a vector each, are loaded one by one.  A stretch of whole vectors
 * has none.
 *
 *     for round:   load the vectors of all stretches;   combine
 *
 * Commutative: vector i of lane r is number i * lanes + r, lanes keep running totals, and the ends go to the first
 * lanes; they are loaded ahead of the vectors, so that the team waits once.  Ordered: a lane has consecutive vectors,
 * the team's tree runs over them in order, and lane 0 keeps the running total, which begins with the head and takes the
 * tail in the end.
 */
#include "seg_gen.h"

/* A stretch, and how it lies on vectors. */
struct run {
    struct gen *g;
    const struct team *team;
    struct stretch *stretch;
    int items, vector;
    bool ordered, aligned;
    bool alone;                      /* the only one that its warp has a part in: rounds end with it */
    kb_val first;                    /* i64 position: the first vector boundary */
    kb_val vectors;                  /* i64 */
    kb_val head, ends;               /* i32: positions ahead of it, and those outside of whole vectors */
    struct point end;                /* where this lane has loaded … */
    kb_var end_value[SEG_ITEMS_MAX]; /* … the direct inputs of a position at an end */
    int nend;
};

/* What a lane has loaded in a round. */
struct round {
    kb_val base;              /* i64 position of what is loaded, … */
    kb_val named;             /* … and of what indices are of: within the stretch, if it has a vector's positions */
    kb_val at[SEG_ITEMS_MAX]; /* i32 per vector: where it was loaded, relative to base, … */
    int plus[SEG_ITEMS_MAX];  /* … and a distance known when generating */
    kb_val inside[SEG_ITEMS_MAX]; /* bool: it is part of the stretch */
    bool masked;
    struct direct d[SEG_ITEMS_MAX]; /* per position */
};

struct partial partial_new(struct gen *g, const char *name)
{
    return (struct partial){ kb_var_new(g->k, g->padded ? state_pad_value(g) : state_zero(g), name),
                             kb_var_new(g->k, kb_false(g->k), "have") };
}

void partial_take(struct gen *g, struct partial *p, kb_tup x)
{
    if (g->padded)
        kb_set(g->k, p->x, state_combine(g, kb_get(g->k, p->x), x));
    else
        state_accumulate(g, p->x, p->have, x);
}

void partial_join(struct gen *g, struct partial *p, kb_tup x, kb_val have)
{
    if (g->padded) {
        partial_take(g, p, x);
        return;
    }
    kb_if(g->k, have) {
        state_accumulate(g, p->x, p->have, x);
    }
}

static void run_open(struct run *r, struct gen *g, const struct team *team, int n, struct stretch *s)
{
    kb *k = g->k;
    const int vector = gen_tunable(g, TN_VECTOR);
    *r = (struct run){ .g = g,
                       .team = team,
                       .stretch = s,
                       .items = gen_tunable(g, TN_ITEMS),
                       .vector = vector,
                       .ordered = !state_commutative(g->p),
                       .aligned = g->c->aligned,
                       .alone = n == 1 && team->lanes >= KB_WARP };
    const kb_val length = kb_max(k, kb_sub(k, s->last, s->first), 0);
    const kb_val to_boundary = kb_and(k, kb_sub(k, kb_imm(k, TY_I64, 0), s->first), vector - 1);
    const kb_val head = kb_min(k, to_boundary, length), rest = kb_sub(k, length, head);
    r->first = kb_add(k, s->first, to_boundary);
    r->vectors = kb_div(k, rest, vector);
    r->head = kb_cast(k, head, TY_I32);
    r->ends = kb_add(k, r->head, kb_cast(k, kb_and(k, rest, vector - 1), TY_I32));
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

/* Position `number` of those outside of whole vectors: the head, then the tail. */
static void end_point(struct run *r, struct point *pt, kb_val number)
{
    kb *k = r->g->k;
    const struct stretch *s = r->stretch;
    const kb_val tail = kb_add(k, kb_sub(k, s->last, kb_cast(k, r->ends, TY_I64)), kb_cast(k, number, TY_I64));
    const kb_val head = kb_add(k, s->first, kb_cast(k, number, TY_I64));
    segment_point(r->g, pt, s->seg, kb_select(k, kb_lt(k, number, r->head), head, tail), kb_imm(k, TY_I32, 0), 0);
}

/* Points side by side know which of their neighbours they have; not where pieces may end in between. */
static void points_side_by_side(const struct run *r, struct point *pt, int n)
{
    const int together = segments_in_pieces(r->g->p) && !r->aligned ? 1 : n;
    for (int first = 0; first < n; first += together) {
        const kb_val edges = row_edges(r->g, &pt[first], together);
        for (int j = 0; j < together; j++) {
            point_is_of_vector(&pt[first + j], j, together);
            point_in_rows(&pt[first + j], j, together, edges);
        }
    }
}

static void take_point(struct run *r, struct point *pt, const struct direct *d)
{
    pt->direct = d;
    points_side_by_side(r, pt, 1);
    points_store(pt, 1, false);
    partial_take(r->g, &r->stretch->total, point_map(pt));
}

/* Positions lo, lo + step, … of the ends, below hi, one after the other. */
static void take_ends(struct run *r, kb_val lo, kb_val hi, int step)
{
    struct gen *g = r->g;
    kb_for(g->k, number, lo, hi, step) {
        struct point pt;
        struct direct d;
        end_point(r, &pt, number);
        direct_load(g, pt.base, pt.offset, pt.plus, 1, false, &d);
        take_point(r, &pt, &d);
    }
}

/* Is a lane given one position at most? */
static bool ends_spread(const struct run *r) { return r->team->lanes >= 2 * (r->vector - 1); }

static void ends_load(struct run *r)
{
    struct gen *g = r->g;
    kb *k = g->k;
    r->nend = access_direct_fields(g->p);
    for (int f = 0; f < r->nend; f++)
        r->end_value[f] = kb_var_new(k, kb_imm(k, direct_type(g, f), 0), "end");
    end_point(r, &r->end, r->team->rank);
    kb_if(k, kb_lt(k, r->team->rank, r->ends)) {
        struct direct d;
        direct_load(g, r->end.base, r->end.offset, r->end.plus, 1, false, &d);
        for (int f = 0; f < r->nend; f++)
            kb_set(k, r->end_value[f], d.v[f]);
    }
}

static void ends_take(struct run *r)
{
    kb *k = r->g->k;
    kb_if(k, kb_lt(k, r->team->rank, r->ends)) {
        struct direct d;
        for (int f = 0; f < r->nend; f++)
            d.v[f] = kb_get(k, r->end_value[f]);
        take_point(r, &r->end, &d);
    }
}

/* ---- rounds of whole vectors ------------------------------------------------------------------------------------- */

/* How many vectors the stretch has in the round that begins with vector `done`; i32.  Rounds go on as long as the
 * longest stretch does: others may have ended more vectors ago than 32 bits hold. */
static kb_val vectors_left(const struct run *r, kb_val done)
{
    kb *k = r->g->k;
    const kb_val left = kb_min(k, kb_sub(k, r->vectors, done), r->team->lanes * r->items);
    return kb_cast(k, r->alone ? left : kb_max(k, left, 0), TY_I32);
}

/* The same where segments consist of pieces, from vector `own` of the round on; what is not part of the stretch loads its
 * first vector. */
static void pieces_load(const struct run *r, struct round *in, kb_val own)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const int step = (r->ordered ? 1 : r->team->lanes) * r->vector, each = r->aligned ? r->vector : 1;
    const struct gaps base = pieces_from(g, in->base);
    const kb_val from = kb_add(k, r->stretch->seg->element, in->base), none = kb_imm(k, TY_I32, 0);
    LET(outside, kb_add(k, from, base.skipped));
    for (int j = 0; j < r->vector; j += each) { /* pieces may end within vectors */
        const kb_val at = kb_add(k, kb_mul(k, own, r->vector), j);
        struct gaps gaps = gaps_at(g, &base, at);
        kb_val element = kb_add(k, from, kb_add(k, gaps.skipped, kb_cast(k, at, TY_I64)));
        for (int i = 0; i < r->items; i++) {
            const kb_val there = in->masked ? kb_select(k, in->inside[i], element, outside) : element;
            direct_load(g, there, none, 0, each, r->aligned, &in->d[i * r->vector + j]);
            element = kb_add(k, element, gaps_pass(g, &gaps, step, step));
        }
    }
}

/* Where the round begins that has `left` vectors.  After its last vector a stretch has too few positions for inputs that
 * are read by their indices; where all are, distances within segments of one size are the same for all of them. */
static void round_base(const struct run *r, struct round *in, kb_val done, kb_val left)
{
    struct gen *g = r->g;
    kb *k = g->k;
    if (in->masked && !access_any_direct(g->p)) {
        const kb_val further = kb_select(k, kb_gt(k, left, 0), done, kb_imm(k, TY_I64, 0));
        in->base = in->named = kb_add(k, r->first, kb_mul(k, further, r->vector));
        return;
    }
    in->base = kb_add(k, r->first, kb_mul(k, done, r->vector));
    if (in->masked)
        in->base = kb_min(k, in->base, kb_sub(k, gen_value(g, VAL_VECTOR_END), r->vector));
    in->named = in->masked ? kb_select(k, kb_gt(k, left, 0), in->base, r->stretch->first) : in->base;
}

/* Vectors `done`, done + 1, … of the stretch; masked: lanes after the last one load that once more, and those of a
 * stretch that has none left, any vector. */
static void round_load(const struct run *r, struct round *in, kb_val done, bool masked)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const kb_val own = r->ordered ? kb_mul(k, r->team->rank, r->items) : r->team->rank;
    const kb_val left = vectors_left(r, done);
    in->masked = masked;
    round_base(r, in, done, left);
    for (int i = 0; i < r->items; i++) {
        const int further = r->ordered ? i : i * r->team->lanes;
        const kb_val number = kb_add(k, own, further);
        in->inside[i] = kb_lt(k, number, left);
        in->at[i] = kb_mul(k, masked ? kb_max(k, kb_min(k, number, kb_sub(k, left, 1)), 0) : own, r->vector);
        in->plus[i] = masked ? 0 : further * r->vector;
        struct point pt;
        if (segments_in_pieces(g->p))
            continue;
        segment_point(g, &pt, r->stretch->seg, in->base, in->at[i], in->plus[i]);
        direct_load(g, pt.base, pt.offset, pt.plus, r->vector, r->aligned, &in->d[i * r->vector]);
    }
    if (segments_in_pieces(g->p))
        pieces_load(r, in, own);
}

static void vector_points(const struct run *r, const struct round *in, int i, struct point *pt)
{
    for (int j = 0; j < r->vector; j++) {
        segment_point(r->g, &pt[j], r->stretch->seg, in->named, in->at[i], in->plus[i] + j);
        pt[j].direct = &in->d[i * r->vector + j];
    }
    points_side_by_side(r, pt, r->vector);
}

static kb_tup vector_total(const struct run *r, struct point *pt)
{
    const int together = segments_in_pieces(r->g->p) && !r->aligned ? 1 : r->vector; /* pieces may end in between */
    for (int j = 0; j < r->vector; j += together)
        points_store(&pt[j], together, r->aligned);
    return state_of_points(r->g, pt, 0, r->vector);
}

static void round_take(const struct run *r, const struct round *in, struct partial *into)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const bool select = g->padded && !problem_writes(g->p, AT_POINT), together = g->p->sums && (!in->masked || select);
    struct point pt[SEG_ITEMS_MAX];
    kb_tup total = { .n = 0 };
    for (int i = 0; together && i < r->items; i++)
        vector_points(r, in, i, &pt[i * r->vector]);
    if (together)
        points_together(pt, r->items * r->vector, sizeof *pt);
    for (int i = 0; i < r->items; i++) {
        if (in->masked && !select) {
            kb_if(k, in->inside[i]) {
                vector_points(r, in, i, pt);
                partial_take(g, into, vector_total(r, pt));
            }
            continue;
        }
        if (!together)
            vector_points(r, in, i, &pt[i * r->vector]);
        kb_tup x = vector_total(r, &pt[i * r->vector]);
        if (in->masked)
            x = kb_select(k, in->inside[i], x, state_pad_value(g));
        total = i == 0 ? x : state_combine(g, total, x);
    }
    if (total.n)
        partial_take(g, into, total);
}

/* In order: the lanes' shares of the round meet in lane 0, which joins them to what came before. */
static void round_join(const struct run *r, struct partial *part, kb_val done)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const kb_val left = vectors_left(r, done);
    const kb_val valid = kb_div(k, kb_add(k, left, r->items - 1), r->items);
    const kb_val before = kb_sub(k, kb_lane(k), r->team->rank);
    const struct valid_items f = g->padded ? valid_all() : valid_first(kb_add(k, before, valid));
    const kb_tup x = warp_reduce(g, kb_get(k, part->x), r->team->lanes, f);
    kb_if(k, kb_gt(k, left, 0)) {
        partial_take(g, &r->stretch->total, x);
    }
}

static void round_all(struct run *r, int n, kb_val done, struct partial *part, bool masked)
{
    struct gen *g = r->g;
    struct round in[SEG_AT_ONCE_MAX];
    for (int u = 0; u < n; u++)
        round_load(&r[u], &in[u], done, masked);
    for (int u = 0; u < n; u++) {
        segment_enter(g, r[u].stretch->seg);
        round_take(&r[u], &in[u], &part[u]);
    }
}

/* Rounds of all stretches side by side; all are masked where one of them has no full round left. */
static void rounds(struct run *r, int n, kb_val longest)
{
    struct gen *g = r->g;
    kb *k = g->k;
    const int tile = r->team->lanes * r->items;
    kb_val fewest = r[0].vectors;
    for (int u = 1; u < n; u++)
        fewest = kb_min(k, fewest, r[u].vectors);
    kb_for(k, done, kb_imm(k, TY_I64, 0), kb_div(k, longest, r->vector), tile) {
        struct partial part[SEG_AT_ONCE_MAX];
        for (int u = 0; u < n; u++)
            part[u] = r->ordered ? partial_new(g, "part") : r[u].stretch->total;
        kb_if(k, kb_le(k, kb_add(k, done, tile), fewest)) {
            round_all(r, n, done, part, false);
        }
        kb_else { round_all(r, n, done, part, true); }
        for (int u = 0; u < n && r->ordered; u++) {
            segment_enter(g, r[u].stretch->seg);
            round_join(&r[u], &part[u], done);
        }
    }
}

void stretches_reduce(struct gen *g, const struct team *team, int n, struct stretch *stretch, kb_val longest)
{
    kb *k = g->k;
    struct run r[SEG_AT_ONCE_MAX];
    const kb_val zero = kb_imm(k, TY_I32, 0);
    for (int u = 0; u < n; u++)
        run_open(&r[u], g, team, n, &stretch[u]);
    const bool ends = r->vector > 1, spread = ends && !r->ordered && ends_spread(r);
    for (int u = 0; u < n && ends; u++) {
        segment_enter(g, stretch[u].seg);
        if (spread) {
            ends_load(&r[u]);
        } else if (r->ordered) {
            kb_if(k, kb_eq(k, team->rank, 0)) {
                take_ends(&r[u], zero, r[u].head, 1);
            }
        }
    }
    rounds(r, n, longest);
    for (int u = 0; u < n && ends; u++) {
        segment_enter(g, stretch[u].seg);
        if (spread)
            ends_take(&r[u]);
        else
            take_ends(&r[u], r->ordered ? kb_select(k, kb_eq(k, team->rank, 0), r[u].head, r[u].ends) : team->rank,
                      r[u].ends, r->ordered ? 1 : team->lanes);
    }
}

kb_val stretch_valid(struct gen *g, const struct team *team, const struct stretch *s)
{
    kb *k = g->k;
    struct run r;
    run_open(&r, g, team, 1, (struct stretch *)s);
    const kb_val valid = kb_max(k, r.vectors, kb_cast(k, r.ends, TY_I64));
    return kb_cast(k, kb_max(k, kb_min(k, valid, team->lanes), 1), TY_I32);
}

kb_tup team_total(struct gen *g, const struct team *team, struct stretch *s)
{
    kb *k = g->k;
    segment_enter(g, s->seg);
    const kb_tup x = kb_get(k, s->total.x);
    if (!state_commutative(g->p))
        return x;
    const kb_val before = kb_sub(k, kb_lane(k), team->rank);
    const struct valid_items f = g->padded ? valid_all() : valid_first(kb_add(k, before, stretch_valid(g, team, s)));
    return warp_reduce(g, x, team->lanes, f);
}
