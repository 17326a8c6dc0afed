/* SPDX-License-Identifier: Apache-2.0 */
/* mapped.c - elements of a segment between offsets are mapped with its results by the team that has reduced it.
 *
 *     vectors that lie in the segment, by turns;   of those that begin before it or end after it, single elements
 *
 * The elements are read again.  Those of the segments that the device works on at a time are still in a cache.
 */
#include "quotients.h"
#include "whole.h"

struct mapped {
    struct gen *g;
    const struct segment *seg;
    const struct quotients *q; /* of vectors; NULL: of single elements */
    const kb_tup *results;
};

/* n neighbouring elements, the first at position `at`. */
static void map_elements(const struct mapped *m, kb_val at, int n, bool aligned)
{
    struct gen *g = m->g;
    struct point pt[GEN_VECTOR_MAX], *there[GEN_VECTOR_MAX];
    struct direct d[GEN_VECTOR_MAX];
    direct_load(g, at, kb_imm(g->k, TY_I32, 0), 0, n, aligned, d);
    for (int j = 0; j < n; j++) {
        segment_point(g, &pt[j], m->seg, at, kb_imm(g->k, TY_I32, 0), j);
        pt[j].segment = m->seg->number;
        pt[j].direct = &d[j];
        pt[j].state = m->results;
        point_is_of_vector(&pt[j], j, n);
        there[j] = &pt[j];
    }
    if (m->q)
        quotients_take(m->q, pt, n);
    outputs_store_at(AT_RESULT, there, n, aligned);
}

/* What of the vector at `at` lies in [first, last). */
static void map_vector(struct mapped *m, const struct quotients *q, kb_val at, kb_val first, kb_val last, int vector)
{
    kb *k = m->g->k;
    kb_if(k, kb_and(k, kb_ge(k, at, first), kb_le(k, kb_add(k, at, vector), last))) {
        kb_if(k, q->falls ? q->fits : kb_imm(k, TY_BOOL, !q->of)) { /* nobody asks for the range of others */
            m->q = q;
            map_elements(m, at, vector, true);
            m->q = NULL;
        }
        kb_else { map_elements(m, at, vector, true); }
    }
    kb_else
    {
        kb_for(k, i, kb_max(k, at, first), kb_min(k, kb_add(k, at, vector), last), 1) {
            map_elements(m, i, 1, false);
        }
    }
}

/* Positions [first, last) of the segment, by a team; all of its threads have the results. */
static void segment_map(struct gen *g, struct segment *seg, kb_val first, kb_val last, const struct team *team,
                        const kb_tup *results)
{
    kb *k = g->k;
    const int vector = g->c->aligned ? gen_tunable(g, TN_VECTOR) : 1;
    struct mapped m = { g, seg, NULL, results };
    struct quotients q;
    struct point here;
    segment_enter(g, seg);
    segment_point(g, &here, seg, first, kb_imm(k, TY_I32, 0), 0);
    here.state = results;
    quotients_begin(&q, &here, vector);
    LET(begin, kb_and(k, first, -(int64_t)vector));
    LET(own, kb_add(k, begin, kb_cast(k, kb_mul(k, team->rank, vector), TY_I64)));
    kb_for(k, at, own, last, (int64_t)team->lanes * vector) {
        if (vector == 1)
            map_elements(&m, at, 1, false);
        else
            map_vector(&m, &q, at, first, last, vector);
    }
}

void map_by_warp(struct gen *g, struct segment *seg, kb_tup total)
{
    kb *k = g->k;
    const struct team team = { KB_WARP, kb_lane(k) };
    const kb_tup results = state_results(g, kb_shfl_idx(k, total, 0), kb_ge(k, seg->first, seg->last));
    segment_map(g, seg, seg->first, seg->last, &team, &results);
}

void map_by_block(struct cut *c, struct segment *seg, kb_tup total)
{
    struct gen *g = c->g;
    kb *k = g->k;
    const struct team team = { kb_threads(k), kb_tid(k) };
    kb_if(k, kb_thread0(k)) {
        kb_store(k, c->shown, 0, total);
    }
    kb_barrier(k);
    const kb_tup results = state_results(g, kb_load(k, c->shown, 0), kb_ge(k, seg->first, seg->last));
    segment_map(g, seg, seg->first, seg->last, &team, &results);
}

/* ---- segments that several blocks have reduced ------------------------------------------------------------------- */

/* What of the segment lies in the tile, as take_part() has it. */
static void map_part(struct cut *c, kb_val number, kb_val tile)
{
    struct gen *g = c->g;
    kb *k = g->k;
    const struct team team = { kb_threads(k), kb_tid(k) };
    struct segment seg;
    segment_at(g, &seg, number);
    const kb_val second = kb_add(k, tile_of(c, seg.first), 1);
    LET(first, kb_select(k, kb_eq(k, tile, second), seg.first, tile_begin(c, tile)));
    LET(last, kb_min(k, seg.last, tile_begin(c, kb_add(k, tile, 1))));
    const kb_tup results = results_read(g, number);
    segment_map(g, &seg, first, last, &team, &results);
}

void emit_whole_rest(struct gen *g)
{
    struct cut c = cut_of(g);
    c.found = kb_shared_v(g->k, TY_I64, kb_threads(g->k) / KB_WARP, "found");
    gen_wait_for_predecessor(g);
    watch_tiles(&c, map_part);
}
