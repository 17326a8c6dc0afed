/* SPDX-License-Identifier: Apache-2.0 */
/* collective.c - operations in which the lanes of a warp or the threads of a block take part together.
 *
 * Warp operations: a lane deposits its word and waits until all 32 have; then each takes its result.  Two halves of
 * value[] alternate: the last lane to arrive goes on at once, and may deposit for the next operation before the others
 * have read.  Nobody can get two operations ahead.
 *
 * A barrier counts the threads of the block that have not ended.  As bar.sync is an *aligned* instruction, part of a
 * warp at the barrier while the rest has ended, or waits at a warp operation, is a fault; whole warps may end early, as
 * on the GPU.
 */
#include "simt_impl.h"

#include <string.h>

enum { OP_SHFL = 1, OP_VOTE, OP_REDUX, OP_SYNC };

static uint32_t op_code(uint32_t kind, uint32_t mode, uint32_t width) { return kind | mode << 8 | width << 16; }

static const char *op_name(uint32_t op)
{
    static const char *const shfl[] = { "shuffle idx", "shuffle up", "shuffle down", "shuffle xor" };
    static const char *const vote[] = { "vote any", "vote all", "ballot", "match" };
    const uint32_t kind = op & 0xff, mode = op >> 8 & 0xff;
    return kind == OP_SHFL ? shfl[mode] : kind == OP_VOTE ? vote[mode] : kind == OP_REDUX ? "redux" : "warp sync";
}

/* ---- warp operations ------------------------------------------------------------------------- */
/* The warp can never complete op when a lane has ended, waits elsewhere, or does something else. */
static void check_arrival(struct exec *x, const struct warp *w, uint32_t op)
{
    char text[128];
    if (w->exited)
        finding(x, SIMT_DIVERGENCE, "arrives at a %s, but lanes %s of its warp have ended", op_name(op),
                lanes_text(w->exited, text, sizeof text));
    if (w->at_barrier)
        finding(x, SIMT_DIVERGENCE, "arrives at a %s, but lanes %s of its warp wait at the barrier %s", op_name(op),
                lanes_text(w->at_barrier, text, sizeof text), x->block->site);
    if (w->at_team)
        finding(x, SIMT_DIVERGENCE, "arrives at a %s, but lanes %s of its warp wait at the team's barrier %s",
                op_name(op), lanes_text(w->at_team, text, sizeof text), x->block->team[w->team].site);
    if (w->arrived && w->op != op)
        finding(x, SIMT_DIVERGENCE, "arrives at a %s of width %u, but lanes %s of its warp wait at a %s of width %u",
                op_name(op), (unsigned)(op >> 16), lanes_text(w->arrived, text, sizeof text), op_name(w->op),
                (unsigned)(w->op >> 16));
}

static uint32_t redux(uint32_t op, bool is_signed, const uint32_t *value)
{
    uint32_t r = value[0];
    for (int i = 1; i < WARP_LANES; i++) {
        const uint32_t v = value[i];
        const bool less = is_signed ? (int32_t)v < (int32_t)r : v < r;
        switch (op) {
        case SIMT_REDUX_ADD: r += v; break;
        case SIMT_REDUX_MIN: r = less ? v : r; break;
        case SIMT_REDUX_MAX: r = less ? r : v; break;
        case SIMT_REDUX_AND: r &= v; break;
        case SIMT_REDUX_OR: r |= v; break;
        case SIMT_REDUX_XOR: r ^= v; break;
        }
    }
    return r;
}

/* All lanes are here: the result that they share. */
static void complete(struct warp *w, uint32_t phase)
{
    const uint32_t kind = w->op & 0xff;
    if (kind == OP_REDUX) {
        w->result[phase] = redux(w->op >> 8 & 0xff, w->op >> 16, w->value[phase]);
    } else if (kind == OP_VOTE) {
        uint32_t ballot = 0;
        for (int i = 0; i < WARP_LANES; i++)
            ballot |= (uint32_t)(w->value[phase][i] != 0) << i;
        w->result[phase] = ballot;
    } else if (kind == OP_SYNC) {
        w->epoch++;
        w->acquired = w->acquiring > w->acquired ? w->acquiring : w->acquired;
    }
}

/* Deposits `word`; returns, when all lanes have, which half of value[] and result[] holds this operation. */
static uint32_t collect(struct exec *x, uint32_t op, uint32_t word)
{
    struct warp *w = x->warp;
    const uint32_t phase = w->phase & 1;
    check_arrival(x, w, op);
    w->op = op;
    w->value[phase][x->lane] = word;
    w->arrived |= UINT32_C(1) << x->lane;
    if (w->arrived == UINT32_MAX) {
        exec_vote(x);
        complete(w, phase);
        if ((op & 0xff) == OP_SYNC && w->block->partly)
            order_meet(x, w->block, UINT32_C(1) << (w - w->block->warp));
        const uint32_t others = ~(UINT32_C(1) << x->lane);
        w->phase++;
        w->arrived = 0;
        exec_ready(x, w, others);
        if (x->options.seed && exec_random(x, 8) == 0) { /* now and then other warps overtake here */
            exec_ready(x, w, ~others);
            x->leave = true;
            exec_suspend(x);
        }
    } else {
        exec_suspend(x);
    }
    return phase;
}

uint32_t simt_shfl(uint32_t mode, uint32_t word, uint32_t arg, uint32_t width)
{
    struct exec *x = simt_current;
    struct warp *w = x->warp;
    const uint32_t phase = collect(x, op_code(OP_SHFL, mode, width), word);
    const uint32_t lane = (uint32_t)x->lane, first = lane & ~(width - 1), last = first + width - 1;
    uint32_t from = lane;
    switch (mode) {
    case SIMT_SHFL_IDX: from = first | (arg & (width - 1)); break;
    case SIMT_SHFL_UP: from = lane - first >= (arg & 31) ? lane - (arg & 31) : lane; break;
    case SIMT_SHFL_DOWN: from = lane + (arg & 31) <= last ? lane + (arg & 31) : lane; break;
    case SIMT_SHFL_XOR: from = (lane ^ (arg & 31)) <= last ? lane ^ (arg & 31) : lane; break;
    }
    return w->value[phase][from];
}

uint32_t simt_vote(uint32_t mode, uint32_t predicate)
{
    struct exec *x = simt_current;
    struct warp *w = x->warp;
    const uint32_t phase = collect(x, op_code(OP_VOTE, mode, WARP_LANES), predicate), ballot = w->result[phase];
    uint32_t same = 0;
    for (int i = 0; i < WARP_LANES && mode == SIMT_VOTE_MATCH; i++)
        same |= (uint32_t)(w->value[phase][i] == predicate) << i;
    if (mode == SIMT_VOTE_MATCH)
        return same;
    return mode == SIMT_VOTE_BALLOT ? ballot : mode == SIMT_VOTE_ANY ? ballot != 0 : ballot == UINT32_MAX;
}

uint32_t simt_redux(uint32_t op, uint32_t is_signed, uint32_t value)
{
    struct exec *x = simt_current;
    struct warp *w = x->warp;
    const uint32_t phase = collect(x, op_code(OP_REDUX, op, is_signed), value);
    return w->result[phase];
}

void simt_warp_sync(const char *site)
{
    struct exec *x = simt_current;
    struct warp *w = x->warp;
    (void)site;
    w->acquiring = x->thread->acquired > w->acquiring ? x->thread->acquired : w->acquiring;
    collect(x, op_code(OP_SYNC, 0, WARP_LANES), 0);
}

/* ---- the block's barrier --------------------------------------------------------------------- */
static bool same_site(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static void barrier_completes(struct exec *x, struct block *b)
{
    exec_progress(x);
    b->arrived = 0;
    b->epoch++;
    if (b->partly)
        order_meet(x, b, UINT32_MAX);
    b->acquired = b->acquiring > b->acquired ? b->acquiring : b->acquired;
    for (int i = 0; i < b->grid->threads / WARP_LANES; i++) {
        const uint32_t lanes = b->warp[i].at_barrier;
        b->warp[i].at_barrier = 0;
        exec_ready(x, &b->warp[i], lanes);
    }
}

/* The thread that just ended does not hold up a barrier, unless its warp is there already. */
void barrier_thread_exits(struct exec *x)
{
    char text[128];
    struct block *b = x->block;
    if (x->warp->at_barrier)
        finding(x, SIMT_DIVERGENCE, "ends while lanes %s of its warp wait at the barrier %s",
                lanes_text(x->warp->at_barrier, text, sizeof text), b->site);
    if (b->live > 0 && b->arrived == b->live)
        barrier_completes(x, b);
}

void simt_barrier(const char *site)
{
    char text[128];
    struct exec *x = simt_current;
    struct block *b = x->block;
    struct warp *w = x->warp;
    site = site ? site : "";
    if (w->exited)
        finding(x, SIMT_DIVERGENCE, "arrives at the barrier %s, but lanes %s of its warp have ended", site,
                lanes_text(w->exited, text, sizeof text));
    if (w->arrived)
        finding(x, SIMT_DIVERGENCE, "arrives at the barrier %s, but lanes %s of its warp wait at a %s", site,
                lanes_text(w->arrived, text, sizeof text), op_name(w->op));
    if (b->arrived && !same_site(b->site, site))
        finding(x, SIMT_DIVERGENCE, "arrives at the barrier %s, but %d threads of its block wait at the barrier %s",
                site, b->arrived, b->site);
    b->site = site;
    b->acquiring = x->thread->acquired > b->acquiring ? x->thread->acquired : b->acquiring;
    b->acquiring = w->acquired > b->acquiring ? w->acquired : b->acquiring;
    w->at_barrier |= UINT32_C(1) << x->lane;
    if (++b->arrived == b->live) {
        barrier_completes(x, b);
        x->leave = x->options.seed && exec_random(x, 2); /* or the last warp to come would always be the first to go */
    }
    exec_suspend(x);
}

/* ---- the barrier of a team ------------------------------------------------------------------- */
/* All of the team are here.  Unlike at a barrier of the block, only what they did is ordered. */
static void team_completes(struct exec *x, struct block *b, struct team_barrier *t)
{
    const uint32_t nwarps = t->threads / WARP_LANES;
    exec_progress(x);
    t->arrived = 0;
    order_partly(x, b);
    for (uint32_t i = 0; i < nwarps; i++) {
        struct warp *w = &b->warp[i];
        w->epoch++;
        w->acquired = t->acquiring > w->acquired ? t->acquiring : w->acquired;
    }
    for (int i = 0; i < b->npending; i++)
        b->pending[i].released |= b->pending[i].thread < t->threads;
    order_meet(x, b, nwarps == WARPS_MAX ? UINT32_MAX : (UINT32_C(1) << nwarps) - 1);
    for (uint32_t i = 0; i < nwarps; i++) {
        b->warp[i].at_team = 0;
        exec_ready(x, &b->warp[i], UINT32_MAX);
    }
}

void simt_team_barrier(const char *site, uint32_t id, uint32_t threads)
{
    char text[128];
    struct exec *x = simt_current;
    struct block *b = x->block;
    struct warp *w = x->warp;
    struct team_barrier *t = &b->team[id];
    site = site ? site : "";
    if (simt_tid() >= threads)
        finding(x, SIMT_DIVERGENCE, "arrives at the barrier %s of a team of %u threads", site, (unsigned)threads);
    if (w->exited || w->arrived)
        finding(x, SIMT_DIVERGENCE, "arrives at the team's barrier %s, but lanes %s of its warp %s", site,
                lanes_text(w->exited ? w->exited : w->arrived, text, sizeof text),
                w->exited ? "have ended" : "wait in a warp operation");
    if (t->arrived && (t->threads != threads || !same_site(t->site, site)))
        finding(x, SIMT_DIVERGENCE, "arrives at the team's barrier %s, but %u threads wait at the barrier %s", site,
                (unsigned)t->arrived, t->site);
    if (!t->arrived)
        t->acquiring = 0;
    t->site = site;
    t->threads = threads;
    t->acquiring = x->thread->acquired > t->acquiring ? x->thread->acquired : t->acquiring;
    t->acquiring = w->acquired > t->acquiring ? w->acquired : t->acquiring;
    w->team = id;
    w->at_team |= UINT32_C(1) << x->lane;
    if (++t->arrived == threads) {
        team_completes(x, b, t);
        x->leave = x->options.seed && exec_random(x, 2);
    }
    exec_suspend(x);
}
