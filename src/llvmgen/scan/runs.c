/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c - joining runs: two, a warp's, a block's.
 *
 *     warp    Kogge and Stone: lane i takes in lane i - d for d = 1, 2, 4, …, unless a segment begins in between
 *     block   every warp stores its total; every warp scans the stored totals by itself
 *
 * Where no segment can begin within a run, `cut` is the constant false and everything about it folds away.
 */
#include "scan_gen.h"

static kb_val known(struct gen *g, bool b) { return kb_imm(g->k, TY_BOOL, b); }

static bool never(kb_val v)
{
    int64_t x;
    return kb_is_const(v, &x) && !x;
}

struct run run_none(struct gen *g) { return (struct run){ known(g, false), known(g, false), state_zero(g) }; }
struct run run_of(struct gen *g, kb_tup x, kb_val cut) { return (struct run){ known(g, true), cut, x }; }

struct run run_join(struct gen *g, struct run left, struct run right)
{
    kb *k = g->k;
    struct run r = { kb_or(k, left.some, right.some), kb_or(k, left.cut, right.cut), left.x };
    if (never(left.some))
        return right;
    if (never(right.some))
        return left;
    const kb_val both = kb_and(k, left.some, kb_and(k, right.some, kb_not(k, right.cut)));
    kb_tvar x = kb_var_new(k, kb_select(k, right.some, right.x, left.x), "joined");
    kb_if(k, both) {
        kb_set(k, x, state_combine(g, left.x, right.x));
    }
    r.x = kb_get(k, x);
    return r;
}

struct run_var run_var_new(struct gen *g, struct run r)
{
    return (struct run_var){ kb_var_new(g->k, r.some, "some"), kb_var_new(g->k, r.cut, "cut"),
                             kb_var_new(g->k, r.x, "run") };
}

struct run run_get(struct gen *g, struct run_var v)
{
    return (struct run){ kb_get(g->k, v.some), kb_get(g->k, v.cut), kb_get(g->k, v.x) };
}

void run_set(struct gen *g, struct run_var v, struct run r)
{
    kb_set(g->k, v.some, r.some);
    kb_set(g->k, v.cut, r.cut);
    kb_set(g->k, v.x, r.x);
}

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

struct aggregates aggregates_new(struct gen *g, int count, bool cuts, const char *name)
{
    struct aggregates p = { .x = state_shared(g, count, name), .cuts = cuts };
    if (cuts)
        p.cut = kb_shared_v(g->k, TY_U32, count, "cuts");
    return p;
}

void aggregates_store(struct gen *g, const struct aggregates *p, kb_val i, struct run r)
{
    kb_store(g->k, p->x, i, r.x);
    if (p->cuts)
        kb_store(g->k, p->cut, i, kb_cast(g->k, r.cut, TY_U32));
}

struct run aggregates_load(struct gen *g, const struct aggregates *p, kb_val i)
{
    const kb_val cut = p->cuts ? kb_ne(g->k, kb_load(g->k, p->cut, i), 0) : known(g, false);
    return run_of(g, kb_load(g->k, p->x, i), cut);
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

/* The lane where the segment of this lane begins, as far as the warp knows: the nearest cut at or before it, else lane
 * 0. */
static kb_val first_lane(struct gen *g, kb_val cut, kb_val lane)
{
    kb *k = g->k;
    const kb_val cuts = kb_ballot(k, cut);
    const kb_val upto =
        kb_sub(k, kb_shl(k, kb_imm(k, TY_U32, 2), kb_cast(k, lane, TY_U32)), 1); /* bits 0 … lane; wraps for lane 31 */
    const kb_val clz = kb_clz(k, kb_or(k, kb_and(k, cuts, upto), 1));
    return kb_sub(k, kb_imm(k, TY_I32, KB_WARP - 1), kb_cast(k, clz, TY_I32));
}

struct run warp_scan(struct gen *g, struct run own, int lanes, bool cuts)
{
    kb *k = g->k;
    LET(lane, kb_lane(k));
    const kb_val first = cuts ? first_lane(g, own.cut, lane) : kb_imm(k, TY_I32, 0);
    for (int d = 1; d < lanes; d *= 2) {
        const kb_tup left = kb_shfl_up(k, own.x, d);
        const kb_val inside = kb_ge(k, kb_sub(k, lane, d), first);
        kb_tvar x = kb_var_new(k, own.x, "scan");
        kb_if(k, inside) {
            kb_set(k, x, state_combine(g, left, own.x));
        }
        own.x = kb_get(k, x);
    }
    if (cuts) {
        const kb_val cut_before = kb_ne(
            k,
            kb_and(k, kb_ballot(k, own.cut), kb_sub(k, kb_shl(k, kb_imm(k, TY_U32, 2), kb_cast(k, lane, TY_U32)), 1)),
            0);
        own.cut = cut_before;
    }
    return own;
}

/* Inclusive to exclusive: what lane - 1 has; none in lane 0. */
static struct run shift_up(struct gen *g, struct run r, bool cuts)
{
    kb *k = g->k;
    struct run left = { .x = kb_shfl_up(k, r.x, 1), .cut = known(g, false) };
    left.some = kb_gt(k, kb_lane(k), 0);
    if (cuts)
        left.cut = kb_and(k, left.some, kb_ne(k, kb_shfl_up(k, kb_cast(k, r.cut, TY_U32), 1), 0));
    return left;
}

struct run run_from_lane(struct gen *g, struct run r, kb_val lane, bool cuts)
{
    kb *k = g->k;
    struct run out = { .some = known(g, true), .cut = known(g, false), .x = kb_shfl_idx(k, r.x, lane) };
    if (cuts)
        out.cut = kb_ne(k, kb_shfl_idx(k, kb_cast(k, r.cut, TY_U32), lane), 0);
    return out;
}

struct run warp_scan_exclusive(struct gen *g, struct run own, bool cuts, struct run *total)
{
    const struct run upto = warp_scan(g, own, KB_WARP, cuts);
    *total = run_from_lane(g, upto, kb_imm(g->k, TY_I32, KB_WARP - 1), cuts);
    return shift_up(g, upto, cuts);
}

struct run block_scan(struct gen *g, struct run own, const struct aggregates *aggregates, struct run *total)
{
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    if (warps == 1)
        return warp_scan_exclusive(g, own, aggregates->cuts, total);
    const struct run upto = warp_scan(g, own, KB_WARP, aggregates->cuts);
    kb_if(k, kb_eq(k, kb_lane(k), KB_WARP - 1)) {
        aggregates_store(g, aggregates, kb_warp(k), upto);
    }
    const struct run in_warp = shift_up(g, upto, aggregates->cuts);
    kb_barrier(k);
    return run_join(g, aggregates_before(g, aggregates, kb_imm(k, TY_I32, 0), warps, total), in_warp);
}

struct run block_scan_warps(struct gen *g, struct run own, const struct aggregates *aggregates, struct run *total)
{
    kb *k = g->k;
    const int warps = kb_threads(k) / KB_WARP;
    if (warps == 1) {
        *total = own;
        return run_none(g);
    }
    kb_if(k, kb_lane0(k)) {
        aggregates_store(g, aggregates, kb_warp(k), own);
    }
    kb_barrier(k);
    return aggregates_before(g, aggregates, kb_imm(k, TY_I32, 0), warps, total);
}

struct run aggregates_before(struct gen *g, const struct aggregates *aggregates, kb_val first, int warps,
                             struct run *total)
{
    kb *k = g->k;
    /* Lanes after the last warp repeat it. */
    const struct run aggregate = aggregates_load(g, aggregates, kb_add(k, first, kb_min(k, kb_lane(k), warps - 1)));
    const struct run upto = warp_scan(g, aggregate, power_of_two_above(warps), aggregates->cuts);
    *total = run_from_lane(g, upto, kb_imm(k, TY_I32, warps - 1), aggregates->cuts);
    LET(warp, kb_warp(k));
    struct run before = run_from_lane(g, upto, kb_max(k, kb_sub(k, warp, 1), 0), aggregates->cuts);
    before.some = kb_gt(k, warp, 0);
    before.cut = kb_and(k, before.some, before.cut);
    return before;
}
