/* SPDX-License-Identifier: Apache-2.0 */
/* packed.c - segments of 1, 2, 4, … or 32 vectors: a warp reads consecutive vectors, whatever the size of a
 * segment.
 *
 *     vectors:    0   1   2   3   4   5   6   7  …  31        the warp's first load
 *     segments:   |---|---|   |---|---|                       of two vectors each
 *
 * A lane has `items` vectors, a warp's width apart.  The lanes that share a segment are neighbours, so the tree over a
 * warp, left off after as many steps as a segment has lanes, ends in the segment's first lane.  No lane is idle and no
 * position is masked, hence states need no padding, and operators keep their order.
 */
#include "seg_gen.h"

struct packed {
    struct gen *g;
    int items, vector;
    kb_val per_segment; /* i32: vectors, a power of two */
    kb_val log;         /* i64: its logarithm */
    kb_val vectors;     /* i64: of all segments */
};

static kb_tup vector_tree(struct gen *g, struct point *pt, int n)
{
    kb_tup x[GEN_VECTOR_MAX];
    for (int j = 0; j < n; j++)
        x[j] = point_map(&pt[j]);
    for (int d = 1; d < n; d *= 2)
        for (int j = 0; j + d < n; j += 2 * d)
            x[j] = state_combine(g, x[j], x[j + d]);
    return x[0];
}

/* The vectors of a round. */
struct round {
    struct segment seg[SEG_ITEMS_MAX];
    struct point pt[SEG_ITEMS_MAX][GEN_VECTOR_MAX];
    struct direct d[SEG_ITEMS_MAX];
    kb_val exists[SEG_ITEMS_MAX]; /* bool */
};

/* The warp's vectors from `first` on, of which `left` exist; whole: all of the round do.  A segment's vectors divide
 * those of a warp, so that from one of the lane's vectors to the next its segments are equally far apart. */
static void load_round(const struct packed *q, struct round *r, kb_val first, kb_val left, bool whole)
{
    struct gen *g = q->g;
    kb *k = g->k;
    LET(base, kb_mul(k, first, q->vector));
    LET(segment, kb_shr(k, kb_add(k, first, kb_cast(k, kb_lane(k), TY_I64)), q->log));
    for (int i = 0; i < q->items; i++) {
        const kb_val own = kb_add(k, kb_lane(k), i * KB_WARP), at = kb_min(k, own, kb_sub(k, left, 1));
        r->exists[i] = whole ? kb_true(k) : kb_lt(k, own, left);
        segment_at(g, &r->seg[i],
                   whole ? kb_add(k, segment, kb_shr(k, kb_imm(k, TY_I64, i * KB_WARP), q->log))
                         : kb_shr(k, kb_add(k, first, kb_cast(k, at, TY_I64)), q->log));
        const kb_val offset = kb_mul(k, whole ? kb_lane(k) : at, q->vector);
        const int plus = whole ? i * KB_WARP * q->vector : 0;
        for (int j = 0; j < q->vector; j++) {
            segment_point(g, &r->pt[i][j], &r->seg[i], base, offset, plus + j);
            r->pt[i][j].direct = &r->d[i * q->vector + j];
            point_is_of_vector(&r->pt[i][j], j, q->vector);
        }
        const kb_val edges = row_edges(g, r->pt[i], q->vector);
        for (int j = 0; j < q->vector; j++)
            point_in_rows(&r->pt[i][j], j, q->vector, edges);
        direct_load(g, r->pt[i][0].base, r->pt[i][0].offset, r->pt[i][0].plus, q->vector, g->c->aligned,
                    &r->d[i * q->vector]);
    }
}

static void take_round(const struct packed *q, struct round *r)
{
    struct gen *g = q->g;
    kb *k = g->k;
    kb_tup x[SEG_ITEMS_MAX];
    for (int i = 0; i < q->items; i++) {
        segment_enter(g, &r->seg[i]);
        if (problem_writes(g->p, AT_POINT)) {
            kb_if(k, r->exists[i]) {
                points_store(r->pt[i], q->vector, g->c->aligned);
            }
        }
        x[i] = vector_tree(g, r->pt[i], q->vector);
    }
    kb_tvar total[SEG_ITEMS_MAX];
    for (int i = 0; i < q->items; i++)
        total[i] = kb_var_new(k, x[i], "total");
    for (int step = 1; step < KB_WARP; step *= 2) {
        kb_if(k, kb_gt(k, q->per_segment, step)) {
            for (int i = 0; i < q->items; i++) {
                segment_enter(g, &r->seg[i]);
                const kb_tup own = kb_get(k, total[i]);
                kb_set(k, total[i], state_combine(g, own, kb_shfl_down(k, own, step)));
            }
        }
    }
    LET(leads, kb_eq(k, kb_and(k, kb_lane(k), kb_sub(k, q->per_segment, 1)), 0));
    for (int i = 0; i < q->items; i++) {
        kb_if(k, kb_and(k, r->exists[i], leads)) {
            segment_store_known(g, &r->seg[i], kb_get(k, total[i]), kb_false(k));
        }
    }
}

void emit_packed(struct gen *g)
{
    kb *k = g->k;
    struct packed q = { .g = g, .items = gen_tunable(g, TN_ITEMS), .vector = gen_tunable(g, TN_VECTOR) };
    const int warps = kb_threads(k) / KB_WARP;
    const int64_t each = (int64_t)q.items * KB_WARP;
    gen_wait_for_predecessor(g);
    const kb_val per_segment = kb_div(k, gen_value(g, VAL_LENGTH), q.vector);
    q.per_segment = kb_cast(k, per_segment, TY_I32);
    q.log = kb_cast(k, kb_ctz(k, per_segment), TY_I64);
    q.vectors = kb_mul(k, gen_value(g, VAL_SEGMENTS), per_segment);
    LET(warp, kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), warps), kb_cast(k, kb_warp(k), TY_I64)));
    LET(step, kb_mul(k, kb_cast(k, kb_blocks(k), TY_I64), warps * each));
    kb_for(k, first, kb_mul(k, warp, each), q.vectors, step) {
        LET(left, kb_cast(k, kb_min(k, kb_sub(k, q.vectors, first), each), TY_I32));
        kb_if(k, kb_eq(k, left, (int)each)) {
            struct round r;
            load_round(&q, &r, first, left, true);
            take_round(&q, &r);
        }
        kb_else
        {
            struct round r;
            load_round(&q, &r, first, left, false);
            take_round(&q, &r);
        }
    }
}
