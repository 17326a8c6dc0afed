/* SPDX-License-Identifier: Apache-2.0 */
/* emit_stencil_temporal.c - several time steps per launch, in the registers of a warp.
 *
 *     a warp has 128 columns, 4 per lane, and streams down the rows ys - T R ... ye + T R
 *     queue[l][0 ... 2R][4]: the last rows of step l
 *     for each row r:
 *         queue[0] takes row r, which was loaded a round earlier
 *         for l = 0 ... T-1: queue[l] holds rows r - l R - 2R ... r - l R, so step l + 1 of row r - (l+1) R can be computed:
 *             neighbours in the row come from the lanes beside; the result goes to queue[l+1], or to memory for l = T-1
 *
 * The loop takes 2R + 1 rows at a time, so that the place of a row in its queue is known when the kernel is generated.  Columns of a
 * strip are wrong from its sides inward, R more with each step, but where the side is the edge of the array: there lane 0 or 31
 * follows the boundary.  Rows beyond the edge: with clamp, row 0 of a step fills the rows before it in the queue and the last row is
 * repeated; with a constant they are constant; with interior nobody reads them.
 */
#include "stencil_gen.h"

enum { V = STENCIL_STRIP, T_MAX = 16, U_MAX = 5, R_MAX = 2 };

struct strip {
    struct gen *g;
    int T, R, U;
    bool edge; /* of the array: else no boundary is met */
    kb_val lane, x0, ny, nx, from, to; /* i64 but lane: first column of the lane, rows that this warp writes */
    kb_val first, last;                /* columns that this strip writes: [first, last) */
    kb_var queue[T_MAX][U_MAX][V];
    kb_var ahead[U_MAX][V];
};

/* The point that is being computed: step l, queue place of its row's newest neighbour, column of the lane. */
struct strip_point {
    struct point pt;
    const struct strip *s;
    int l, u, i;
    kb_val (*beside)[2][R_MAX]; /* per row distance: values left and right of the lane's columns; made when asked for */
};

static int place(const struct strip *s, int u, int dy) { return (u + dy - s->R + 2 * s->U) % s->U; }

/* ---- boundaries ------------------------------------------------------------------------------------------------------------------ */

static const struct boundary *boundary(const struct strip *s, int d) { return &s->g->p->input[0].boundary[d]; }

static kb_val constant(const struct strip *s, int d)
{
    return kb_const(s->g->k, s->g->p->input[0].array.field[0].type, boundary(s, d)->constant[0]);
}

/* The value j columns beyond the lane's left (side 0, from the far end) or right (side 1) in the row at `row`: from the lane beside, or
 * what lies beyond the edge. */
static kb_val value_beside(const struct strip *s, int l, int row, int side, int j)
{
    kb *k = s->g->k;
    const kb_var *const q = s->queue[l][row];
    const kb_val near = side == 0 ? kb_shfl_up(k, kb_get(k, q[V - s->R + j]), 1) : kb_shfl_down(k, kb_get(k, q[j]), 1);
    if (!s->edge)
        return near;
    const kb_val beyond = boundary(s, 1)->mode == BOUND_CONSTANT ? constant(s, 1) : kb_get(k, q[side == 0 ? 0 : V - 1]);
    return kb_select(k, kb_eq(k, s->lane, side == 0 ? 0 : KB_WARP - 1), beyond, near);
}

static kb_val leaf(kb *k, struct emit_env *env, const struct expr *e)
{
    const struct strip_point *sp = env->user;
    const struct strip *s = sp->s;
    if (e->kind != EX_INPUT)
        return point_leaf(k, env, e);
    const int dy = e->noffsets ? e->offset[0] : 0, at = sp->i + (e->noffsets ? e->offset[1] : 0);
    const int row = place(s, sp->u, dy), side = at < 0 ? 0 : 1, j = at < 0 ? at + s->R : at - V;
    if (at >= 0 && at < V)
        return kb_get(k, s->queue[sp->l][row][at]);
    kb_val *v = &sp->beside[dy + s->R][side][j];
    if (!v->ir)
        *v = value_beside(s, sp->l, row, side, j);
    return *v;
}

static kb_val leaves(const struct strip *s, int d, kb_val at, kb_val extent)
{
    kb *k = s->g->k;
    const struct reach r = stencil_input_reach(s->g->p, 0);
    return kb_or(k, kb_lt(k, at, -r.lo[d]), kb_ge(k, kb_add(k, at, r.hi[d]), extent));
}

/* A point whose surroundings leave the array keeps its value. */
static kb_val keep_skipped(const struct strip *s, const struct strip_point *sp, kb_val v)
{
    kb *k = s->g->k;
    kb_val skip = kb_imm(k, TY_BOOL, 0);
    if (boundary(s, 0)->mode == BOUND_INTERIOR)
        skip = leaves(s, 0, sp->pt.index[0], s->ny);
    if (boundary(s, 1)->mode == BOUND_INTERIOR)
        skip = kb_or(k, skip, leaves(s, 1, sp->pt.index[1], s->nx));
    return kb_select(k, skip, kb_get(k, s->queue[sp->l][place(s, sp->u, 0)][sp->i]), v);
}

/* Rows beyond the edge in step l + 1, whose row y the lane has just computed. */
static void rows_beyond(const struct strip *s, int l, int u, kb_val y, kb_val *v)
{
    kb *k = s->g->k;
    const enum boundary_mode mode = boundary(s, 0)->mode;
    if (mode == BOUND_INTERIOR)
        return;
    const kb_val below = kb_ge(k, y, s->ny);
    for (int i = 0; i < V; i++) {
        if (mode == BOUND_CONSTANT)
            v[i] = kb_select(k, kb_or(k, below, kb_lt(k, y, 0)), constant(s, 0), v[i]);
        else
            v[i] = kb_select(k, below, kb_get(k, s->queue[l + 1][(u + s->U - 1) % s->U][i]), v[i]);
    }
    if (mode == BOUND_CLAMP) {
        kb_if (k, kb_eq(k, y, 0)) {
            for (int j = 0; j < s->U; j++)
                for (int i = 0; i < V; i++)
                    kb_set(k, s->queue[l + 1][j][i], v[i]);
        }
    }
}

/* ---- rows ------------------------------------------------------------------------------------------------------------------------ */

static kb_ptr row_of(const struct strip *s, kb_ptr p, kb_val y)
{
    kb *k = s->g->k;
    return kb_advance(k, p, kb_add(k, kb_mul(k, y, s->nx), s->x0));
}

static int vector_bytes(const struct strip *s)
{
    const int element = s->g->p->input[0].array.stride, bytes = V * element;
    return s->g->c->aligned ? (bytes < 16 ? bytes : 16) : element;
}

/* Row y of the input, or what stands for it. */
static void fetch(const struct strip *s, kb_val y, const kb_var *to)
{
    kb *k = s->g->k;
    kb_val v[V];
    const kb_val inside = kb_min(k, kb_max(k, y, 0), kb_sub(k, s->ny, 1));
    kb_load_n(k, row_of(s, gen_input(s->g, 0), inside), kb_imm(k, TY_I32, 0), V, vector_bytes(s), v);
    for (int i = 0; i < V; i++) {
        if (s->edge && boundary(s, 0)->mode == BOUND_CONSTANT)
            v[i] = kb_select(k, kb_eq(k, y, inside), v[i], constant(s, 0));
        kb_set(k, to[i], v[i]);
    }
}

static void store_row(const struct strip *s, kb_val y, const kb_val *v)
{
    kb *k = s->g->k;
    kb_if (k, kb_and(k, kb_ge(k, y, s->from), kb_lt(k, y, s->to))) {
        const kb_ptr to = row_of(s, gen_output(s->g, 0), y);
        const int together = s->g->c->aligned ? V : 1;
        for (int i = 0; i < V; i += together) {
            const kb_val x = kb_add(k, s->x0, i);
            kb_if (k, kb_and(k, kb_ge(k, x, s->first), kb_lt(k, x, s->last))) {
                kb_store_n(k, to, kb_imm(k, TY_I32, i), together, vector_bytes(s), &v[i]);
            }
        }
    }
}

/* Step l + 1 of row y, where queue place u has the newest row of step l. */
static void compute(const struct strip *s, int l, int u, kb_val y, kb_val *v)
{
    kb *k = s->g->k;
    kb_val beside[2 * R_MAX + 1][2][R_MAX] = { 0 };
    for (int i = 0; i < V; i++) {
        struct strip_point sp = { .s = s, .l = l, .u = u, .i = i, .beside = beside };
        env_init(&sp.pt, s->g, NULL);
        sp.pt.env.leaf = leaf;
        sp.pt.env.user = &sp;
        sp.pt.index[0] = y;
        sp.pt.index[1] = kb_add(k, s->x0, i);
        v[i] = emit_expr(k, &sp.pt.env, s->g->p->output[0].value[0]);
        if (s->edge && stencil_skips(s->g->p))
            v[i] = keep_skipped(s, &sp, v[i]);
    }
}

static void stream(struct strip *s)
{
    kb *k = s->g->k;
    const int reach = s->T * s->R;
    LET(begin, kb_sub(k, s->from, reach));
    LET(end, kb_add(k, s->to, reach));
    for (int u = 0; u < s->U; u++)
        fetch(s, kb_add(k, begin, u), s->ahead[u]);
    kb_for (k, round, begin, end, s->U) {
        for (int u = 0; u < s->U; u++) {
            const kb_val r = kb_add(k, round, u);
            for (int i = 0; i < V; i++)
                kb_set(k, s->queue[0][u][i], kb_get(k, s->ahead[u][i]));
            fetch(s, kb_add(k, r, s->U), s->ahead[u]);
            for (int l = 0; l < s->T; l++) {
                kb_val v[V];
                const kb_val y = kb_sub(k, r, (l + 1) * s->R);
                compute(s, l, u, y, v);
                if (l + 1 == s->T) {
                    store_row(s, y, v);
                    continue;
                }
                if (s->edge)
                    rows_beyond(s, l, u, y, v);
                for (int i = 0; i < V; i++)
                    kb_set(k, s->queue[l + 1][u][i], v[i]);
            }
        }
    }
}

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */

static void make_queues(struct strip *s)
{
    kb *k = s->g->k;
    const kb_val zero = kb_imm(k, s->g->p->input[0].array.field[0].type, 0);
    for (int u = 0; u < s->U; u++)
        for (int i = 0; i < V; i++) {
            s->ahead[u][i] = kb_var_new(k, zero, "ahead");
            for (int l = 0; l < s->T; l++)
                s->queue[l][u][i] = kb_var_new(k, zero, "queue");
        }
}

static void strip_kernel(struct gen *g)
{
    kb *k = g->k;
    struct strip s = { .g = g, .T = gen_tunable(g, TN_STEPS), .R = stencil_radius(g->p), .lane = kb_lane(k) };
    s.U = 2 * s.R + 1;
    s.ny = gen_extent(g, &g->p->space[0].extent);
    s.nx = gen_extent(g, &g->p->space[1].extent);
    const int width = KB_WARP * V, halo = stencil_halo(g->c, g->p), useful = width - 2 * halo;
    LET(number, kb_add(k, kb_mul(k, kb_block(k), kb_threads(k) / KB_WARP), kb_warp(k)));
    const kb_val strips = gen_value(g, "strips"), rows = gen_value(g, "rows");
    LET(column, kb_cast(k, kb_rem(k, number, strips), TY_I64));
    LET(part, kb_cast(k, kb_div(k, number, strips), TY_I64));
    s.first = kb_mul(k, column, useful);
    s.last = kb_min(k, kb_add(k, s.first, useful), s.nx);
    LET(wanted, kb_sub(k, s.first, halo));
    LET(begin, kb_max(k, kb_min(k, wanted, kb_sub(k, s.nx, width)), 0));
    s.x0 = kb_add(k, begin, kb_cast(k, kb_mul(k, s.lane, V), TY_I64));
    s.from = kb_mul(k, part, rows);
    s.to = kb_min(k, kb_add(k, s.from, rows), s.ny);
    make_queues(&s);
    const int64_t reach = (int64_t)s.T * s.R + s.U;
    const kb_val sides = kb_and(k, kb_gt(k, begin, 0), kb_lt(k, begin, kb_sub(k, s.nx, width)));
    const kb_val ends = kb_and(k, kb_ge(k, s.from, reach), kb_le(k, kb_add(k, s.to, reach), s.ny));
    kb_if (k, kb_lt(k, s.from, s.ny)) {
        kb_if (k, kb_and(k, sides, ends)) {
            stream(&s);
        } kb_else {
            s.edge = true;
            stream(&s);
        }
    }
}

void emit_stencil_temporal(struct gen *g)
{
    enum stencil_role role[STENCIL_ROLES];
    const int many = gen_tunable(g, TN_STEPS) > 1, kernel = (int)(g->kernel - g->c->code.kernel);
    stencil_roles(g->p, role);
    if (kernel < many)
        strip_kernel(g);
    else
        emit_windows(g, role[kernel - many], false);
}
