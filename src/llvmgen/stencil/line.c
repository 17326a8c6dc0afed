/* SPDX-License-Identifier: Apache-2.0 */
/* line.c - several time steps per launch in one dimension, in registers.
 *
 *     a warp has a tile: every lane a stretch of neighbouring points; neighbouring lanes have neighbouring stretches
 *     the arrays of the tile: memory -> shared memory, neighbouring lanes side by side -> each lane its stretch
 *     repeat `steps` times:
 *         the last values of the lane before and the first ones of the lane after it come by shuffles
 *         compute the stretch out of registers
 *     the stretches -> shared memory -> those points that are right, to memory
 *
 * What a warp computes goes wrong from the ends of its tile inward, by the reach with each step, so tiles overlap, and
 * no warp waits for another: trapezoids as in AN5D (Matsumura et al., CGO 2020), with a warp in place of a block.
 * Tiles at the ends of the array are shifted inward, so that its edge is that of lane 0 or 31: what lies beyond is then
 * among the lane's own values.  Arrays that wrap around are computed beyond their edge as within.
 *
 * Steps alternate between both directions: going up, the new value of a point takes the register of the point before,
 * whose old value has been used, and coming back each is where it was.  So the loop moves no values.
 */
#include "strip_gen.h"

#include "lower/stencil/line.h"

/* An array in registers: one that is fed back, or that is read at the point (then only `read` is set). */
struct stretch {
    int input, output;
    struct reach reach;
    kb_var at[LINE_ITEMS_MAX];
    kb_val read[LINE_ITEMS_MAX];
};

struct line {
    struct gen *g;
    struct line_shape is;
    bool wraps;
    kb_val lane, extent;       /* i32, i64 */
    kb_val first, last, begin; /* i64: points [first, last) are written; the tile's first one, which may lie beyond the
                                  array if that wraps around */
    kb_val away;               /* bool, the warp's: all accesses may be vectors */
    kb_val edge[2];            /* bool: the lane's stretch begins or ends with the array */
    kb_ptr tile;               /* u8: the warp's part of shared memory */
    bool used;                 /* other lanes may still read what a lane writes next */
    int nfed, naux;
    struct stretch fed[STRIP_FED_MAX], aux[STRIP_ARRAYS_MAX];
};

/* A step of one lane, and the point of it that is being computed. */
struct line_point {
    struct point pt;
    const struct line *s;
    kb_val (*old)[LINE_ITEMS_MAX];
    kb_val (*beside)[2][LINE_REACH_MAX]; /* by side and distance - 1 */
    int at;
};

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Where an index within a period of the array stands. */
static kb_val wrapped(const struct line *s, kb_val i)
{
    kb *k = s->g->k;
    if (!s->wraps)
        return i;
    const kb_val up = kb_select(k, kb_lt(k, i, 0), kb_add(k, i, s->extent), i);
    return kb_select(k, kb_ge(k, up, s->extent), kb_sub(k, up, s->extent), up);
}

/* Lanes side by side take parts side by side: the first point of the lane's part i, i32. */
static kb_val part_at(const struct line *s, int i, int points)
{
    kb *k = s->g->k;
    return kb_add(k, kb_mul(k, s->lane, points), i * KB_WARP * points);
}

/* A point of the tile in shared memory, where stretches begin at a pitch. */
static kb_val staged_at(const struct line *s, const struct prog_array *a, kb_val at)
{
    kb *k = s->g->k;
    const kb_val u = kb_cast(k, at, TY_U32), lane = kb_div(k, u, s->is.items);
    return kb_cast(k, kb_add(k, kb_mul(k, lane, s->is.pitch / a->stride), kb_sub(k, u, kb_mul(k, lane, s->is.items))),
                   TY_I32);
}

static kb_ptr staged(const struct line *s, const struct prog_array *a)
{
    kb_ptr p = s->tile;
    p.ty = a->field[0].type;
    return p;
}

/* All lanes have read what they wanted of the tile in shared memory. */
static void open_tile(struct line *s)
{
    if (s->used)
        kb_warp_sync(s->g->k);
    s->used = true;
}

/* Parts of so many points from memory to the tile in shared memory; loads before stores. */
static void load_parts(const struct line *s, int input, int points)
{
    kb *k = s->g->k;
    const struct prog_array *a = &s->g->p->input[input].array;
    const kb_ptr array = gen_input(s->g, input);
    kb_val v[LINE_ITEMS_MAX];
    for (int i = 0; i < s->is.items; i += points) {
        const kb_val at = part_at(s, i / points, points), e = kb_add(k, s->begin, kb_cast(k, at, TY_I64));
        if (points > 1)
            kb_load_n(k, array, e, points, points * a->stride, v + i);
        else
            v[i] = kb_load(k, array, wrapped(s, e));
    }
    for (int i = 0; i < s->is.items; i += points)
        kb_store_n(k, staged(s, a), staged_at(s, a, part_at(s, i / points, points)), points, points * a->stride, v + i);
}

/* Those parts that are right from the tile in shared memory to memory; a part is so as a whole. */
static void store_parts(const struct line *s, int output, int points)
{
    kb *k = s->g->k;
    const struct prog_array *a = &s->g->p->output[output].array;
    const kb_ptr array = kb_advance(k, gen_output(s->g, output), s->begin);
    const kb_val from = kb_cast(k, kb_sub(k, s->first, s->begin), TY_I32),
                 to = kb_cast(k, kb_sub(k, s->last, s->begin), TY_I32);
    kb_val v[LINE_ITEMS_MAX];
    for (int i = 0; i < s->is.items; i += points)
        kb_load_n(k, staged(s, a), staged_at(s, a, part_at(s, i / points, points)), points, points * a->stride, v + i);
    for (int i = 0; i < s->is.items; i += points) {
        const kb_val at = part_at(s, i / points, points);
        kb_if(k, kb_and(k, kb_ge(k, at, from), kb_lt(k, at, to))) {
            kb_store_n(k, array, at, points, points * a->stride, v + i);
        }
    }
}

/* Vectors away from the ends of the array, if arrays begin at their boundaries. */
static void move_parts(const struct line *s, const struct prog_array *a, int which,
                       void (*move)(const struct line *, int, int))
{
    const int vector = s->g->c->aligned ? line_vector(a, s->is.items) : 1;
    if (vector == 1) {
        move(s, which, 1);
        return;
    }
    kb_if(s->g->k, s->away) {
        move(s, which, vector);
    }
    kb_else { move(s, which, 1); }
}

/* The lane's stretch in shared memory. */
static kb_ptr own_stretch(const struct line *s, const struct prog_array *a)
{
    kb *k = s->g->k;
    return kb_advance(k, staged(s, a), kb_mul(k, s->lane, s->is.pitch / a->stride));
}

static void take(struct line *s, int input, kb_val v[LINE_ITEMS_MAX])
{
    kb *k = s->g->k;
    const struct prog_array *a = &s->g->p->input[input].array;
    open_tile(s);
    move_parts(s, a, input, load_parts);
    kb_warp_sync(k);
    kb_load_n(k, own_stretch(s, a), kb_imm(k, TY_I32, 0), s->is.items, ACCESS_BYTES, v);
}

static void leave(struct line *s, const struct stretch *t)
{
    kb *k = s->g->k;
    const struct prog_array *a = &s->g->p->output[t->output].array;
    kb_val v[LINE_ITEMS_MAX];
    for (int i = 0; i < s->is.items; i++)
        v[i] = kb_get(k, t->at[i]);
    open_tile(s);
    kb_store_n(k, own_stretch(s, a), kb_imm(k, TY_I32, 0), s->is.items, ACCESS_BYTES, v);
    kb_warp_sync(k);
    move_parts(s, a, t->output, store_parts);
}

/* ---- one step ---------------------------------------------------------------------------------------------------- */

static kb_val fed_value(const struct line_point *lp, int n, int at)
{
    const int items = lp->s->is.items;
    if (at < 0)
        return lp->beside[n][0][-at - 1];
    return at < items ? lp->old[n][at] : lp->beside[n][1][at - items];
}

static kb_val leaf(kb *k, struct emit_env *env, const struct expr *e)
{
    const struct line_point *lp = env->user;
    const struct line *s = lp->s;
    for (int n = 0; n < s->nfed && e->kind == EX_INPUT; n++)
        if (s->fed[n].input == e->which)
            return fed_value(lp, n, lp->at + (e->noffsets ? (int)e->offset[0] : 0));
    for (int n = 0; n < s->naux && e->kind == EX_INPUT; n++)
        if (s->aux[n].input == e->which)
            return s->aux[n].read[lp->at];
    return point_leaf(k, env, e);
}

/* v, or what the point had where its surroundings leave an array whose boundary is `interior`. */
static kb_val keep(const struct line_point *lp, int n, kb_val v)
{
    const struct line *s = lp->s;
    kb *k = s->g->k;
    for (int m = 0; m < s->nfed; m++) {
        const struct stretch *t = &s->fed[m];
        if (s->g->p->input[t->input].boundary[0].mode != BOUND_INTERIOR)
            continue;
        if (lp->at < -t->reach.lo[0])
            v = kb_select(k, s->edge[0], lp->old[n][lp->at], v);
        if (lp->at >= s->is.items - t->reach.hi[0])
            v = kb_select(k, s->edge[1], lp->old[n][lp->at], v);
    }
    return v;
}

static void compute(struct line_point *lp, kb_val v[STRIP_FED_MAX][LINE_ITEMS_MAX])
{
    const struct line *s = lp->s;
    struct gen *g = s->g;
    kb *k = g->k;
    const kb_val own = kb_cast(k, kb_add(k, kb_mul(k, s->lane, s->is.items), lp->at), TY_I64);
    env_init(&lp->pt, g, NULL);
    lp->pt.env.leaf = leaf;
    lp->pt.env.user = lp;
    lp->pt.index[0] = wrapped(s, kb_add(k, s->begin, own));
    for (int n = 0; n < s->nfed; n++)
        v[n][lp->at] = keep(lp, n, emit_expr(k, &lp->pt.env, g->p->output[s->fed[n].output].value[0]));
}

/* What lies beside the lane's stretch on both sides. */
static void look_beside(const struct line *s, kb_val old[][LINE_ITEMS_MAX], kb_val beside[][2][LINE_REACH_MAX])
{
    for (int n = 0; n < s->nfed; n++) {
        const struct stretch *t = &s->fed[n];
        const struct boundary *b = &s->g->p->input[t->input].boundary[0];
        for (int side = 0; side < 2; side++)
            for (int d = 1; d <= (side ? t->reach.hi[0] : -t->reach.lo[0]); d++)
                beside[n][side][d - 1] = strip_beside(s->g->k, b, old[n], s->is.items, side, d, s->edge[side]);
    }
}

/* All points of the stretch, up or down. */
static void step(const struct line *s, bool up)
{
    kb *k = s->g->k;
    kb_val old[STRIP_FED_MAX][LINE_ITEMS_MAX], v[STRIP_FED_MAX][LINE_ITEMS_MAX],
        beside[STRIP_FED_MAX][2][LINE_REACH_MAX];
    for (int at = 0; at < s->nfed * s->is.items; at++)
        old[at / s->is.items][at % s->is.items] = kb_get(k, s->fed[at / s->is.items].at[at % s->is.items]);
    look_beside(s, old, beside);
    for (int i = 0; i < s->is.items; i++) {
        struct line_point lp = { .s = s, .old = old, .beside = beside, .at = up ? i : s->is.items - 1 - i };
        compute(&lp, v);
    }
    for (int at = 0; at < s->nfed * s->is.items; at++)
        kb_set(k, s->fed[at / s->is.items].at[at % s->is.items], v[at / s->is.items][at % s->is.items]);
}

static void all_steps(const struct line *s)
{
    kb *k = s->g->k;
    const kb_val steps = gen_value(s->g, VAL_STEPS);
    kb_section(k, "steps");
    kb_for(k, done, kb_imm(k, TY_I32, 0), steps, 2) {
        step(s, true);
        kb_if(k, kb_lt(k, kb_add(k, done, 1), steps)) {
            step(s, false);
        }
    }
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

/* Tile `number` of the array, i64. */
static void place(struct line *s, kb_val number)
{
    kb *k = s->g->k;
    s->first = kb_mul(k, number, s->is.useful);
    s->last = kb_min(k, kb_add(k, s->first, s->is.useful), s->extent);
    LET(wanted, kb_sub(k, s->first, s->is.halo));
    LET(furthest, kb_sub(k, s->extent, s->is.width));
    s->away = kb_and(k, kb_gt(k, wanted, 0), kb_lt(k, wanted, furthest));
    s->begin = s->wraps ? wanted : kb_max(k, kb_min(k, wanted, furthest), 0);
    s->edge[0] = kb_and(k, kb_eq(k, s->lane, 0), kb_eq(k, s->begin, 0));
    s->edge[1] = kb_and(k, kb_eq(k, s->lane, KB_WARP - 1), kb_eq(k, s->begin, furthest));
}

static void take_all(struct line *s)
{
    struct gen *g = s->g;
    const struct problem *p = g->p;
    kb_section(g->k, "load");
    for (int n = 0; n < p->nfeedback; n++) {
        struct stretch *t = &s->fed[s->nfed++];
        *t = (struct stretch){ .input = p->feedback[n].input, .output = p->feedback[n].output };
        t->reach = stencil_input_reach(p, t->input);
        take(s, t->input, t->read);
        for (int i = 0; i < s->is.items; i++)
            t->at[i] = kb_var_new(g->k, t->read[i], "at");
    }
    for (int i = 0; i < p->ninputs; i++)
        if (stencil_feeds(p, i) < 0 && access_input_direct(p, i) && !*p->input[i].array.field[0].name) {
            s->aux[s->naux].input = i;
            take(s, i, s->aux[s->naux++].read);
        }
    s->used = false; /* what a lane has read last is its own stretch, and that is what it writes next */
}

void emit_line(struct gen *g)
{
    kb *k = g->k;
    struct line s = { .g = g, .is = line_shape(g->c, g->p), .wraps = strip_wraps(g->p, 0), .lane = kb_lane(k) };
    const kb_val warp = kb_warp(k);
    LET(number, kb_add(k, kb_mul(k, kb_cast(k, kb_block(k), TY_I64), s.is.warps), kb_cast(k, warp, TY_I64)));
    s.extent = gen_extent(g, &g->p->space[0].extent);
    const kb_ptr tiles = kb_shared_v(k, TY_U8, s.is.warps * KB_WARP * s.is.pitch, "tiles");
    s.tile = kb_advance(k, tiles, kb_mul(k, warp, KB_WARP * s.is.pitch));
    place(&s, number);
    kb_if(k, kb_lt(k, s.first, s.extent)) {
        take_all(&s);
        all_steps(&s);
        kb_section(k, "store");
        for (int n = 0; n < s.nfed; n++)
            leave(&s, &s.fed[n]);
    }
}
