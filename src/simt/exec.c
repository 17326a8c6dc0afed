/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c - the scheduler: blocks into slots, warps into the queue, lanes onto the CPU.
 *
 * A warp that has ready lanes is in the queue, unless it is the current one.  The current warp's lanes run until all of
 * them wait or one of them asks to leave (spinning, preemption); then the next warp is taken, at random or in turn.
 * Running a warp's lanes together keeps their stacks in the cache and lets a collective complete with one switch per
 * lane.
 *
 * A fiber runs thread after thread of the blocks that its slot gets, so starting a block prepares no stacks.
 */
#include "simt_impl.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

_Thread_local struct exec *simt_current __attribute__((tls_model("initial-exec")));

enum { FUEL_RANDOM = 512, FUEL_FIXED = 1 << 16 };
static const double WATCH_SECONDS = 0.02;
static const uint64_t ACCESS_LIMIT = UINT64_C(1) << 30; /* accesses without progress: an endless loop */

/* ---- random numbers -------------------------------------------------------------------------- */
uint32_t exec_random(struct exec *x, uint32_t n)
{
    x->random ^= x->random << 13; /* Marsaglia's xorshift64 */
    x->random ^= x->random >> 7;
    x->random ^= x->random << 17;
    return (uint32_t)(((x->random >> 32) * n) >> 32);
}

static bool is_random(const struct exec *x) { return x->options.seed != 0; }

/* ---- the watcher ----------------------------------------------------------------------------- */
/* Pauses the run when it is time to call the watcher. */
static void exec_watch(struct exec *x)
{
    if (x->options.watch && session_now() - x->watched_at > WATCH_SECONDS)
        x->pause = true;
}

/* On main's stack: a watcher may need more than a fiber has.  False: the run ends. */
static bool watched(struct exec *x)
{
    x->pause = false;
    x->watched_at = session_now();
    if (x->options.watch(x->options.watch_user) == 0)
        return true;
    report_plain(x->report, SIMT_STOPPED, "the run was ended from outside");
    return false;
}

/* ---- queue of warps -------------------------------------------------------------------------- */
static void enqueue(struct exec *x, struct warp *w)
{
    int tail = x->queue_head + x->queue_count++;
    x->queue[tail < x->queue_size ? tail : tail - x->queue_size] = w;
    w->queued = true;
}

static struct warp *dequeue(struct exec *x)
{
    if (x->queue_count == 0)
        return NULL;
    if (is_random(x)) {
        int chosen = x->queue_head + (int)exec_random(x, (uint32_t)x->queue_count);
        chosen = chosen < x->queue_size ? chosen : chosen - x->queue_size;
        struct warp *w = x->queue[chosen];
        x->queue[chosen] = x->queue[x->queue_head];
        x->queue[x->queue_head] = w;
    }
    struct warp *w = x->queue[x->queue_head];
    x->queue_head = x->queue_head + 1 < x->queue_size ? x->queue_head + 1 : 0;
    x->queue_count--;
    w->queued = false;
    return w;
}

void exec_ready(struct exec *x, struct warp *w, uint32_t lanes)
{
    w->ready |= lanes;
    if (lanes && w != x->warp && !w->queued)
        enqueue(x, w);
}

/* ---- switching ------------------------------------------------------------------------------- */
static int choose_lane(struct exec *x, uint32_t ready)
{
    if (!is_random(x))
        return __builtin_ctz(ready);
    const uint32_t turn = exec_random(x, WARP_LANES);
    const uint32_t turned = turn ? ready >> turn | ready << (WARP_LANES - turn) : ready;
    return (int)((uint32_t)__builtin_ctz(turned) + turn) % WARP_LANES;
}

/* Chooses the thread to run and makes it current; false when none is ready. */
static bool pick(struct exec *x)
{
    struct warp *w = x->warp;
    if (!w || !w->ready || x->leave) {
        if (w && w->ready)
            enqueue(x, w);
        x->warp = NULL; /* whoever a copy wakes is queued, even the warp that was the current one */
        w = dequeue(x);
        while (!w && async_land(x))
            w = dequeue(x);
        x->warp = w;
        if (!w)
            return false;
    }
    x->leave = false;
    x->lane = choose_lane(x, w->ready);
    w->ready &= ~(UINT32_C(1) << x->lane);
    x->warp = w;
    x->block = w->block;
    x->thread = &w->block->thread[(w - w->block->warp) * WARP_LANES + x->lane];
    return true;
}

void exec_suspend(struct exec *x)
{
    struct thread *self = x->thread;
    const bool found = pick(x);
    x->pause = x->pause && found;
    if (!found || x->pause) { /* after a pause main switches to the thread that was picked */
        fiber_switch(&self->fiber, &x->main);
    } else if (x->thread != self) {
        x->report->switches++;
        fiber_switch(&self->fiber, &x->thread->fiber);
    }
}

void exec_stop(struct exec *x) { fiber_switch(&x->thread->fiber, &x->main); }

static void yield(struct exec *x, bool leave)
{
    x->warp->ready |= UINT32_C(1) << x->lane;
    x->leave = leave;
    exec_suspend(x);
}

void exec_interleave(struct exec *x)
{
    async_drift(x, 16);
    if (!is_random(x))
        yield(x, true);
    else if (exec_random(x, 2))
        yield(x, exec_random(x, 2));
}

void exec_preempt(struct exec *x)
{
    const uint32_t fuel = is_random(x) ? 1 + exec_random(x, FUEL_RANDOM) : FUEL_FIXED;
    x->fuel = fuel;
    x->accesses += fuel;
    if (x->accesses > ACCESS_LIMIT)
        finding(x, SIMT_DEADLOCK, "reads memory without end, and no thread makes progress");
    async_drift(x, 4);
    exec_watch(x);
    yield(x, true);
}

/* The last read-modify-write changed its target, so whoever issues them is not just spinning. */
static bool watched_changed(struct exec *x)
{
    const bool changed = x->watched && memcmp(x->watched, x->watched_value, x->watched_bytes) != 0;
    x->watched = NULL;
    return changed;
}

void exec_poll(struct exec *x, const char *name, bool leave)
{
    if (watched_changed(x))
        exec_progress(x);
    if (++x->idle > x->idle_limit) {
        if (name)
            finding(x, SIMT_DEADLOCK, "polls '%s' without end, and no thread makes progress", name);
        else
            finding(x, SIMT_DEADLOCK, "waits without end, and no thread makes progress");
    }
    if (x->options.weak && exec_random(x, 4) == 0)
        weak_leak(x);
    if (leave)
        yield(x, true);
    else
        exec_interleave(x);
}

/* ---- blocks ---------------------------------------------------------------------------------- */
/* A slot's block from the beginning. Shared memory has a content that no kernel can want. */
static void block_start(struct exec *x, struct cluster *c, struct grid *g, int rank)
{
    static const unsigned char poison[] = { 0xff, 0x7f, 0xa5, 0x5c };
    struct block *b = c->block[rank];
    const int nwarps = g->threads / WARP_LANES;
    b->grid = g;
    b->cluster = c;
    b->number = (int)g->started++;
    b->rank = rank;
    b->live = g->threads;
    b->arrived = b->npending = 0;
    b->waited = b->triggered = b->met = false;
    b->epoch = 1;
    b->acquired = b->since;
    b->acquiring = 0;
    memset(b->shared, poison[exec_random(x, sizeof poison)], (size_t)g->shared_bytes);
    shared_block_starts(x, b);
    async_block_starts(x, b);
    for (int t = 0; t < g->threads; t++) {
        b->thread[t].acquired = 0;
        b->thread[t].arrives = b->thread[t].waits = 0;
    }
    for (int i = 0; i < nwarps; i++) {
        struct warp *w = &b->warp[i];
        w->block = b;
        w->exited = w->arrived = w->at_barrier = w->at_cluster = w->at_dependency = 0;
        w->at_team = w->at_mbar = 0;
        w->phase = 0;
        w->epoch = 1;
        w->acquired = w->acquiring = 0;
        exec_ready(x, w, UINT32_MAX);
    }
}

static void cluster_start(struct exec *x, struct grid *g)
{
    const int n = g->cluster > 1 ? g->cluster : 1;
    struct cluster *c = NULL;
    for (int rank = 0; rank < n; rank++) {
        const int chosen = is_random(x) ? (int)exec_random(x, (uint32_t)x->nfree) : x->nfree - 1;
        const int slot = x->free_slot[chosen];
        x->free_slot[chosen] = x->free_slot[--x->nfree];
        if (!c)
            c = &x->clusters[slot];
        c->block[rank] = &x->blocks[slot];
    }
    c->nblocks = n;
    c->live = n * g->threads;
    c->arrived = 0;
    c->phase = 0;
    for (int rank = 0; rank < n; rank++)
        block_start(x, c, g, rank);
}

/* Starts what there is room for. */
static void fill_slots(struct exec *x)
{
    for (int i = 0; i < x->ngrids; i++) {
        struct grid *g = &x->grid[i];
        if (g->previous && g->previous->triggered < g->previous->nblocks)
            return;
        while (g->started < g->nblocks && x->nfree >= (g->cluster > 1 ? g->cluster : 1))
            cluster_start(x, g);
    }
}

void exec_trigger(struct exec *x)
{
    struct block *b = x->block;
    if (b->triggered)
        return;
    b->triggered = true;
    b->grid->triggered++;
    fill_slots(x);
}

/* Threads of later grids that wait for g continue. */
static void grid_ends(struct exec *x, const struct grid *g)
{
    for (int s = 0; s < x->nslots; s++) {
        struct block *b = &x->blocks[s];
        if (!b->grid || b->grid->previous != g || b->live == 0)
            continue;
        for (int i = 0; i < b->grid->threads / WARP_LANES; i++) {
            const uint32_t lanes = b->warp[i].at_dependency;
            b->warp[i].at_dependency = 0;
            exec_ready(x, &b->warp[i], lanes);
        }
    }
}

static void block_ends(struct exec *x)
{
    struct block *b = x->block;
    struct cluster *c = b->cluster;
    weak_flush(x, b);
    exec_watch(x);
    async_block_ends(x);
    if (++b->grid->finished == b->grid->nblocks)
        grid_ends(x, b->grid);
    if (c->live == 0)
        for (int i = 0; i < c->nblocks; i++)
            x->free_slot[x->nfree++] = c->block[i]->slot;
    if (!b->triggered) {
        b->triggered = true;
        b->grid->triggered++;
    }
    fill_slots(x);
}

static void thread_exits(struct exec *x)
{
    char text[128];
    struct warp *w = x->warp;
    exec_progress(x);
    if (w->arrived)
        finding(x, SIMT_DIVERGENCE, "ends while lanes %s of its warp wait for it in a warp operation",
                lanes_text(w->arrived, text, sizeof text));
    async_thread_exits(x);
    w->exited |= UINT32_C(1) << x->lane;
    x->block->live--;
    x->block->cluster->live--;
    barrier_thread_exits(x);
    cluster_thread_exits(x);
    if (x->block->live == 0)
        block_ends(x);
    exec_suspend(x);
}

/* What a fiber does: one thread after the other, of the blocks that its slot gets. */
static void thread_main(void)
{
    for (;;) {
        struct exec *x = simt_current;
        const struct grid *g = x->block->grid;
        g->entry(g->argument);
        thread_exits(simt_current);
    }
}

/* ---- memory of the executor ------------------------------------------------------------------ */
/* Places an array into the allocation, or only counts when there is none yet. */
static void *carve(struct exec *x, size_t *used, size_t bytes)
{
    char *at = x->memory ? (char *)x->memory + *used : NULL;
    *used += (bytes + 127) / 128 * 128;
    return at;
}

static size_t carve_all(struct exec *x)
{
    const size_t slots = (size_t)x->nslots, warps = slots * (size_t)(x->slot_threads / WARP_LANES);
    const size_t shared = slots * (size_t)x->slot_shared, words = (size_t)1 << HISTORY_BITS;
    size_t used = 0;
    x->threads = carve(x, &used, sizeof *x->threads * slots * (size_t)x->slot_threads);
    x->warps = carve(x, &used, sizeof *x->warps * warps);
    x->queue = carve(x, &used, sizeof *x->queue * warps);
    x->blocks = carve(x, &used, sizeof *x->blocks * slots);
    x->clusters = carve(x, &used, sizeof *x->clusters * slots);
    x->free_slot = carve(x, &used, sizeof *x->free_slot * slots);
    x->shared = carve(x, &used, shared);
    x->mbars = carve(x, &used, sizeof *x->mbars * slots * MBAR_MAX);
    x->known = carve(x, &used, x->options.race ? sizeof *x->known * KNOWN_MAX * slots * (size_t)x->slot_threads : 0);
    x->shadows = carve(x, &used, x->options.race ? sizeof *x->shadows * shared : 0);
    x->initialised = carve(x, &used, x->options.uninit ? shared : 0);
    x->busy = carve(x, &used, x->options.late ? sizeof *x->busy * (shared / BUSY_LINE) : 0);
    x->pendings = carve(x, &used, x->options.weak ? sizeof *x->pendings * slots * PENDING_MAX : 0);
    x->history = carve(x, &used, x->options.stale ? sizeof *x->history * words : 0);
    x->seen = carve(x, &used, x->options.stale ? sizeof *x->seen * words * slots : 0);
    return used;
}

static bool reserve(struct exec *x)
{
    void *old = x->memory;
    x->memory = NULL;
    const size_t need = carve_all(x);
    x->memory = old;
    if (need > x->memory_bytes) {
        free(x->memory);
        x->memory = aligned_alloc(128, need);
        x->memory_bytes = x->memory ? need : 0;
    }
    const int threads = x->nslots * x->slot_threads;
    if (x->stacks && x->stacks->count < threads) {
        fiber_stacks_free(x->stacks);
        x->stacks = NULL;
    }
    x->stacks = x->stacks ? x->stacks : fiber_stacks_take(threads);
    if (!x->memory || !x->stacks)
        return false;
    carve_all(x);
    return true;
}

void exec_free(struct exec *x)
{
    async_reset(x);
    free(x->copy);
    free(x->came);
    free(x->memory);
    fiber_stacks_free(x->stacks);
    *x = (struct exec){ 0 };
}

/* ---- a launch -------------------------------------------------------------------------------- */
/* As many slots as the simulated device has, or as the grids can fill. */
static void size_slots(struct exec *x)
{
    int64_t blocks = 0;
    int cluster = 1;
    x->slot_threads = WARP_LANES;
    x->slot_shared = 0;
    for (int i = 0; i < x->ngrids; i++) {
        const struct grid *g = &x->grid[i];
        const int shared = (g->shared_bytes + 127) / 128 * 128;
        blocks += g->nblocks;
        cluster = g->cluster > cluster ? g->cluster : cluster;
        x->slot_threads = g->threads > x->slot_threads ? g->threads : x->slot_threads;
        x->slot_shared = shared > x->slot_shared ? shared : x->slot_shared;
    }
    const int64_t device = (int64_t)x->options.sms * x->options.resident;
    x->nslots = (int)(blocks < device ? blocks : device);
    x->nslots = x->nslots < cluster ? cluster : x->nslots;
}

static void prepare_slots(struct exec *x)
{
    const int warps = x->slot_threads / WARP_LANES;
    for (int s = 0; s < x->nslots; s++) {
        x->blocks[s] = (struct block){
            .slot = s,
            .since = x->now,
            .thread = x->threads + (ptrdiff_t)s * x->slot_threads,
            .warp = x->warps + (ptrdiff_t)s * warps,
            .shared = x->shared + (ptrdiff_t)s * x->slot_shared,
            .shadow = x->options.race ? x->shadows + (ptrdiff_t)s * x->slot_shared : NULL,
            .initialised = x->options.uninit ? x->initialised + (ptrdiff_t)s * x->slot_shared : NULL,
            .busy = x->options.late ? x->busy + (ptrdiff_t)s * x->slot_shared / BUSY_LINE : NULL,
            .mbar = x->mbars + (ptrdiff_t)s * MBAR_MAX,
            .pending = x->options.weak ? x->pendings + (ptrdiff_t)s * PENDING_MAX : NULL,
        };
        x->free_slot[s] = x->nslots - 1 - s;
    }
    memset(x->warps, 0, sizeof *x->warps * (size_t)(x->nslots * warps));
    for (int i = 0; i < x->nslots * x->slot_threads; i++) {
        fiber_start(&x->threads[i].fiber, x->stacks, i, thread_main);
        x->threads[i].stack_limit = fiber_stack_limit(x->stacks, i);
        x->threads[i].known = x->options.race ? x->known + (ptrdiff_t)i * KNOWN_MAX : NULL;
    }
    x->nfree = x->nslots;
    x->queue_size = x->nslots * warps;
    x->queue_head = x->queue_count = 0;
    x->idle_limit = 20000 + UINT64_C(1000) * (uint64_t)x->queue_size;
    if (x->options.stale) {
        memset(x->history, 0, sizeof *x->history << HISTORY_BITS);
        memset(x->seen, 0, (sizeof *x->seen << HISTORY_BITS) * (size_t)x->nslots);
    }
}

static bool all_finished(const struct exec *x)
{
    for (int i = 0; i < x->ngrids; i++)
        if (x->grid[i].finished < x->grid[i].nblocks)
            return false;
    return true;
}

bool exec_run(struct exec *x, struct grid *grids, int n)
{
    x->grid = grids;
    x->ngrids = n;
    size_slots(x);
    if (!reserve(x)) {
        report_plain(x->report, SIMT_NO_MEMORY, "out of memory for %d blocks of %d threads", x->nslots,
                     x->slot_threads);
        return false;
    }
    prepare_slots(x);
    async_reset(x);
    halo_reset(x);
    x->warp = NULL;
    x->watched = NULL;
    x->leave = false;
    x->fuel = 1;
    exec_progress(x);
    struct exec *outer = simt_current;
    simt_current = x;
    fill_slots(x);
    x->pause = false;
    exec_watch(x); /* many short runs make a long one */
    const bool goes_on = !x->pause || watched(x);
    for (bool more = goes_on && pick(x); more; more = x->pause && x->report->what == SIMT_OK && watched(x))
        fiber_switch(&x->main, &x->thread->fiber);
    if (x->report->what == SIMT_OK && !all_finished(x))
        report_stuck(x);
    for (int i = 0; i < x->nslots * x->slot_threads; i++)
        fiber_leave(&x->threads[i].fiber, x->stacks, i);
    x->stacks = fiber_stacks_give(x->stacks);
    simt_current = outer;
    return x->report->what == SIMT_OK;
}
