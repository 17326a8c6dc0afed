/* SPDX-License-Identifier: Apache-2.0 */
/* async.c - mbarriers, bulk copies, threads' own copies; and what threads know of each other through them.
 *
 * With `late`, a copy is put on a list and lands when chance or need says so: any copy, in any order, at the latest
 * when no thread can run or the starting thread waits for it.  Until then its destination holds garbage, and whoever
 * touches that, or writes what a copy still reads, is a finding.  Without `late` a copy lands where it is started.
 *
 * For the race detector, what barriers of the block and warp syncs do not order is in vectors (struct thread, `known`):
 * an arrival releases what its thread knows and what its warp had done before its last sync; a thread that waits
 * at the completed phase takes that over; barriers and syncs join the vectors of the threads that meet.  See Note [What an arrival releases].
 */
#include "simt_impl.h"

#include <stdlib.h>
#include <string.h>

/* Note [What an arrival releases]
 *
 * On the hardware a lane's arrival releases the lane's own accesses and all that was ordered before them.  Here
 * accesses are told apart by the syncs of their warp, so an arrival releases those before the warp's last sync: the
 * lane's own ones since then are left out.  That is stricter than the hardware, and what kb_mbar_arrive() does anyway. */

enum { BULK_ALIGN = 16, EXPECT_MAX = (1 << 20) - 1 };

/* ---- knowledge ------------------------------------------------------------------------------- */
static void join(uint32_t *into, const uint32_t *from)
{
    for (int i = 0; i < KNOWN_MAX; i++)
        into[i] = from[i] > into[i] ? from[i] : into[i];
}

void order_partly(struct exec *x, struct block *b)
{
    if (b->partly || !x->options.race)
        return;
    b->partly = true;
    memset(b->thread->known, 0, sizeof *b->thread->known * KNOWN_MAX * (size_t)b->grid->threads);
}

void order_meet(struct exec *x, struct block *b, uint32_t warps)
{
    uint32_t all[KNOWN_MAX] = { 0 };
    const int nwarps = b->grid->threads / WARP_LANES;
    if (!x->options.race)
        return;
    for (int w = 0; w < nwarps; w++) {
        if (!(warps >> w & 1))
            continue;
        for (int lane = 0; lane < WARP_LANES; lane++)
            join(all, b->thread[w * WARP_LANES + lane].known);
        all[w] = b->warp[w].epoch;
    }
    for (int w = 0; w < nwarps; w++)
        for (int lane = 0; lane < WARP_LANES && warps >> w & 1; lane++)
            memcpy(b->thread[w * WARP_LANES + lane].known, all, sizeof all);
}

/* ---- copies that are under way --------------------------------------------------------------- */
static void copy_read(struct copy *c)
{
    if (!c->read)
        memcpy(c->data, c->from, c->bytes);
    c->read = true;
}

/* Marks the lines of shared memory that a copy touches, or takes the marks away. */
static void mark_lines(const struct copy *c, int by)
{
    const char *at = c->kind == COPY_BULK_STORE ? c->from : c->to;
    const ptrdiff_t first = at - c->block->shared, last = first + c->bytes - 1;
    for (ptrdiff_t i = first / BUSY_LINE; c->block->busy && i <= last / BUSY_LINE; i++)
        c->block->busy[i] = (uint16_t)(c->block->busy[i] + by);
}

static void mbar_settles(struct exec *x, struct block *b, struct mbar *m);

/* Threads find their own copies by lists, as all copies together are thousands.  Copy i is, or is no longer, where the
 * copies beside it, or its thread, look for it. */
static void relink(struct exec *x, const struct copy *c, int before, int after)
{
    *(c->before ? &x->copy[c->before - 1].after : &c->block->thread[c->thread].copies) = after;
    if (c->after)
        x->copy[c->after - 1].before = before;
}

/* Out of the list; the last one takes its place. */
static struct copy take_out(struct exec *x, int i)
{
    const struct copy c = x->copy[i];
    relink(x, &c, c.before, c.after);
    if (i != --x->ncopies) {
        x->copy[i] = x->copy[x->ncopies];
        relink(x, &x->copy[i], i + 1, i + 1);
    }
    c.block->ncopies--;
    return c;
}

/* The copy arrives, and leaves the list. */
static void land(struct exec *x, int i)
{
    struct copy c = take_out(x, i);
    mark_lines(&c, -1);
    copy_read(&c);
    if (c.kind == COPY_BULK_STORE)
        stale_written(x, c.block, c.to, c.bytes);
    else
        shared_copy_ends(x, c.block, c.to, c.bytes);
    memcpy(c.to, c.data, c.bytes);
    free(c.data);
    exec_progress(x);
    if (c.mbar) {
        c.mbar->bytes -= c.bytes;
        mbar_settles(x, c.block, c.mbar);
    }
}

bool async_land(struct exec *x)
{
    if (x->ncopies == 0)
        return false;
    land(x, (int)exec_random(x, (uint32_t)x->ncopies));
    return true;
}

void async_drift(struct exec *x, uint32_t one_in)
{
    if (x->ncopies && exec_random(x, one_in) == 0)
        async_land(x);
}

void async_reset(struct exec *x)
{
    for (int i = 0; i < x->ncopies; i++)
        free(x->copy[i].data);
    x->ncopies = 0;
}

/* Puts the copy on the list; it lands at once where copies are not late, or memory is short. */
static void start(struct exec *x, struct copy c)
{
    static const unsigned char garbage[] = { 0xff, 0x7f, 0xa5, 0x5c };
    if (x->ncopies == x->cap_copies) {
        const int cap = x->cap_copies ? 2 * x->cap_copies : 64;
        struct copy *grown = realloc(x->copy, sizeof *grown * (size_t)cap);
        if (!grown)
            finding(x, SIMT_NO_MEMORY, "starts a copy, and memory is exhausted");
        x->copy = grown;
        x->cap_copies = cap;
    }
    c.data = malloc(c.bytes ? c.bytes : 1);
    if (!c.data)
        finding(x, SIMT_NO_MEMORY, "starts a copy of %u bytes, and memory is exhausted", (unsigned)c.bytes);
    c.block = x->block;
    c.thread = (uint16_t)(x->thread - x->block->thread);
    c.after = x->thread->copies;
    x->copy[x->ncopies++] = c;
    relink(x, &c, x->ncopies, x->ncopies);
    x->block->ncopies++;
    mark_lines(&c, 1);
    if (!x->options.late)
        land(x, x->ncopies - 1);
    else if (c.kind != COPY_BULK_STORE)
        memset(c.to, garbage[exec_random(x, sizeof garbage)], c.bytes);
    exec_interleave(x);
}

static bool overlap(const char *a, uint32_t a_bytes, const char *b, uint32_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

void async_access(struct exec *x, const struct block *owner, const char *at, uint32_t bytes, const char *name,
                  bool writes)
{
    const ptrdiff_t first = at - owner->shared, last = first + bytes - 1;
    bool busy = false;
    for (ptrdiff_t i = first / BUSY_LINE; owner->busy && i <= last / BUSY_LINE; i++)
        busy |= owner->busy[i] > 0;
    for (int i = 0; busy && i < x->ncopies; i++) {
        const struct copy *c = &x->copy[i];
        if (c->block != owner)
            continue;
        if (c->kind != COPY_BULK_STORE && overlap(at, bytes, c->to, c->bytes))
            finding(x, SIMT_RACE, "%s '%s' (shared byte %lld) while a copy into it is under way",
                    writes ? "writes" : "reads", name, (long long)(at - owner->shared));
        if (c->kind == COPY_BULK_STORE && writes && !c->read && overlap(at, bytes, c->from, c->bytes))
            finding(x, SIMT_RACE, "writes '%s' (shared byte %lld) while a copy may still read it", name,
                    (long long)(at - owner->shared));
    }
}

/* ---- blocks and threads ---------------------------------------------------------------------- */
void async_block_starts(struct exec *x, struct block *b)
{
    (void)x;
    b->nmbars = 0;
    b->ncopies = 0;
    b->partly = false;
    if (b->busy)
        memset(b->busy, 0, sizeof *b->busy * (size_t)((b->grid->shared_bytes + BUSY_LINE - 1) / BUSY_LINE));
    memset(b->team, 0, sizeof b->team);
    for (int t = 0; t < b->grid->threads; t++) {
        b->thread[t].bulk_group = b->thread[t].copy_group = 0;
        b->thread[t].copies = 0;
        b->thread[t].proxy_fences = b->thread[t].read_fences = 0;
    }
}

void async_thread_exits(struct exec *x)
{
    for (int k = x->thread->copies; k; k = x->copy[k - 1].after)
        if (x->copy[k - 1].kind == COPY_BULK_STORE && !x->copy[k - 1].read)
            finding(x, SIMT_RACE, "ends while a copy that it started may still read '%s'", x->copy[k - 1].name);
}

void async_block_ends(struct exec *x)
{
    for (int i = 0; i < x->ncopies && x->block->ncopies;) {
        if (x->copy[i].block != x->block) {
            i++;
            continue;
        }
        if (x->copy[i].kind != COPY_BULK_STORE)
            finding(x, SIMT_RACE, "is the last of its block to end, while a copy into '%s' is under way",
                    x->copy[i].name);
        land(x, i);
        i = 0;
    }
}

/* ---- mbarriers ------------------------------------------------------------------------------- */
/* Completes the phase when nothing is missing. */
static void mbar_settles(struct exec *x, struct block *b, struct mbar *m)
{
    if (m->pending || m->bytes)
        return;
    m->phase++;
    m->pending = m->arrivals;
    m->acquired = m->acquiring;
    m->released[WARPS_MAX + (m - b->mbar)] = m->phase;
    memcpy(m->complete, m->released, sizeof m->complete);
    exec_progress(x);
    for (int i = 0; i < b->grid->threads / WARP_LANES; i++) {
        uint32_t woken = 0;
        for (uint32_t lanes = b->warp[i].at_mbar; lanes; lanes &= lanes - 1)
            woken |= (uint32_t)(b->thread[i * WARP_LANES + __builtin_ctz(lanes)].at_mbar == m) << __builtin_ctz(lanes);
        b->warp[i].at_mbar &= ~woken;
        exec_ready(x, &b->warp[i], woken);
    }
}

static struct mbar *find(struct block *b, const char *at)
{
    for (int i = 0; i < b->nmbars; i++)
        if (b->mbar[i].at == at)
            return &b->mbar[i];
    return NULL;
}

/* The barrier at this address; that it has been initialised before is checked like any access. */
static struct mbar *mbar_at(struct exec *x, void *bar, const char *name, const char *verb)
{
    struct mbar *m = find(x->block, bar);
    if (!m)
        finding(x, SIMT_UNINIT, "%s '%s' (shared byte %lld), which is no initialised mbarrier", verb, name,
                (long long)((char *)bar - x->block->shared));
    shared_access(x, bar, sizeof(uint64_t), SIMT_SHARED | SIMT_RELAXED << SIMT_ORDER_SHIFT, name, ACCESS_RMW);
    return m;
}

void simt_mbar_init(void *bar, uint32_t arrivals, const char *name)
{
    struct exec *x = simt_current;
    struct block *b = x->block;
    struct mbar *m = find(b, bar);
    name = name ? name : "?";
    if (!m && b->nmbars == MBAR_MAX)
        finding(x, SIMT_CHECK, "initialises more than %d mbarriers", MBAR_MAX);
    if (arrivals < 1)
        finding(x, SIMT_CHECK, "initialises '%s' for no arrivals", name);
    shared_access(x, bar, sizeof(uint64_t), SIMT_SHARED, name, ACCESS_WRITE);
    order_partly(x, b);
    m = m ? m : &b->mbar[b->nmbars++];
    *m = (struct mbar){
        .at = bar, .name = name, .arrivals = arrivals, .pending = arrivals, .thread = (uint16_t)(x->thread - b->thread)
    };
}

void simt_mbar_ready(void)
{
    struct exec *x = simt_current;
    for (int i = 0; i < x->block->nmbars; i++)
        x->block->mbar[i].ready |= x->block->mbar[i].thread == x->thread - x->block->thread;
}

void simt_mbar_arrive(void *bar, uint32_t bytes, const char *name)
{
    struct exec *x = simt_current;
    struct block *b = x->block;
    name = name ? name : "?";
    exec_interleave(x);
    struct thread *first = x->thread - x->lane;
    for (int lane = 0; lane < WARP_LANES && bytes == 0; lane++)
        first[lane]
            .read_fences++; /* who waits for the arrival comes after the warp's loads; who announces bytes does not */
    struct mbar *m = mbar_at(x, bar, name, "arrives at");
    if (m->pending == 0)
        finding(x, SIMT_CHECK, "arrives at '%s' once more than the phase has arrivals, %u", name,
                (unsigned)m->arrivals);
    if (bytes > EXPECT_MAX)
        finding(x, SIMT_CHECK, "announces %u bytes at '%s', more than an mbarrier can count", (unsigned)bytes, name);
    if (x->options.weak)
        weak_release(x, SIMT_SCOPE_BLOCK);
    if (x->options.race) {
        const size_t warp = (size_t)(x->warp - b->warp);
        join(m->released, x->thread->known);
        m->released[warp] = x->warp->epoch > m->released[warp] ? x->warp->epoch : m->released[warp];
    }
    const uint64_t acquired[] = { x->thread->acquired, x->warp->acquired, b->acquired };
    for (int i = 0; i < 3; i++)
        m->acquiring = acquired[i] > m->acquiring ? acquired[i] : m->acquiring;
    m->bytes += bytes;
    m->pending--;
    mbar_settles(x, b, m);
    exec_interleave(x);
}

void simt_mbar_wait(void *bar, uint32_t parity, const char *name)
{
    struct exec *x = simt_current;
    name = name ? name : "?";
    exec_interleave(x);
    struct mbar *m = mbar_at(x, bar, name, "waits at");
    while ((m->phase & 1) == (parity & 1)) {
        x->thread->at_mbar = m;
        x->thread->parity = parity;
        x->warp->at_mbar |= UINT32_C(1) << x->lane;
        exec_suspend(x);
    }
    if (x->options.race)
        join(x->thread->known, m->complete);
    x->thread->acquired = m->acquired > x->thread->acquired ? m->acquired : x->thread->acquired;
}

/* ---- bulk copies ----------------------------------------------------------------------------- */
static void check_copy(struct exec *x, const char *to, const char *from, uint32_t bytes, const char *name,
                       uint32_t align)
{
    if (((uintptr_t)to | (uintptr_t)from | bytes) % align)
        finding(x, SIMT_BOUNDS, "copies %u bytes of '%s' from %p to %p: addresses and size must be multiples of %u",
                (unsigned)bytes, name, (const void *)from, (const void *)to, (unsigned)align);
}

/* Nothing happens here, but it has to be of an array. */
void simt_prefetch(void *from, uint32_t bytes, const char *name)
{
    struct exec *x = simt_current;
    name = name ? name : "?";
    if (((uintptr_t)from | bytes) % BULK_ALIGN)
        finding(x, SIMT_BOUNDS, "prefetches %u bytes of '%s' from %p: address and size must be multiples of %u",
                (unsigned)bytes, name, from, (unsigned)BULK_ALIGN);
    global_access(x, from, bytes, name, ACCESS_READ);
}

void simt_bulk_load(void *to, void *from, uint32_t bytes, void *bar, const char *to_name, const char *from_name)
{
    struct exec *x = simt_current;
    to_name = to_name ? to_name : "?";
    from_name = from_name ? from_name : "?";
    struct mbar *m = mbar_at(x, bar, to_name, "starts a copy that reports to");
    if (!m->ready)
        finding(x, SIMT_RACE, "starts a copy that reports to '%s', whose initialisation was followed by no fence",
                m->name);
    check_copy(x, to, from, bytes, from_name, BULK_ALIGN);
    global_access(x, from, bytes, from_name, ACCESS_READ);
    shared_copy_starts(x, to, bytes, (int)(m - x->block->mbar), to_name);
    start(x,
          (struct copy){ .kind = COPY_BULK_LOAD, .mbar = m, .name = to_name, .to = to, .from = from, .bytes = bytes });
}

void simt_bulk_store(void *to, void *from, uint32_t bytes, const char *to_name, const char *from_name)
{
    struct exec *x = simt_current;
    to_name = to_name ? to_name : "?";
    from_name = from_name ? from_name : "?";
    check_copy(x, to, from, bytes, to_name, BULK_ALIGN);
    global_access(x, to, bytes, to_name, ACCESS_WRITE);
    shared_copy_reads(x, from, bytes, from_name);
    if (x->options.weak)
        weak_settle(x, to, bytes);
    start(x, (struct copy){ .kind = COPY_BULK_STORE,
                            .group = x->thread->bulk_group,
                            .name = from_name,
                            .to = to,
                            .from = from,
                            .bytes = bytes });
}

void simt_bulk_commit(void) { simt_current->thread->bulk_group++; }

/* The current thread's copies of groups before `limit` are done, in some order; `read`: have read. */
static void finish_groups(struct exec *x, enum copy_kind kind, uint32_t limit, bool read)
{
    int first;
    do {
        first = 0;
        for (int k = x->thread->copies; k; k = x->copy[k - 1].after) {
            struct copy *c = &x->copy[k - 1];
            if (c->kind != kind || c->group >= limit)
                continue;
            if (read)
                copy_read(c);
            else if (!first || k < first)
                first = k;
        }
        if (first)
            land(x, first - 1);
    } while (first);
}

static uint32_t groups_before(uint32_t commits, uint32_t pending) { return commits > pending ? commits - pending : 0; }

void simt_bulk_wait(uint32_t pending, uint32_t read)
{
    struct exec *x = simt_current;
    exec_interleave(x);
    finish_groups(x, COPY_BULK_STORE, groups_before(x->thread->bulk_group, pending), read);
}

void simt_proxy_fence(void)
{
    simt_current->thread->proxy_fences++;
    simt_current->thread->read_fences++;
}

/* ---- threads' own copies --------------------------------------------------------------------- */
void simt_copy(void *to, void *from, uint32_t bytes, uint32_t exists, const char *to_name, const char *from_name)
{
    static char zeros[16];
    struct exec *x = simt_current;
    to_name = to_name ? to_name : "?";
    from_name = from_name ? from_name : "?";
    check_copy(x, to, from, bytes, from_name, bytes);
    if (exists)
        global_access(x, from, bytes, from_name, ACCESS_READ);
    shared_copy_starts(x, to, bytes, -1, to_name);
    start(x, (struct copy){ .kind = COPY_OWN,
                            .group = x->thread->copy_group,
                            .name = to_name,
                            .to = to,
                            .from = exists ? from : zeros,
                            .bytes = bytes });
}

void simt_copy_commit(void) { simt_current->thread->copy_group++; }

void simt_copy_wait(uint32_t pending)
{
    struct exec *x = simt_current;
    exec_interleave(x);
    finish_groups(x, COPY_OWN, groups_before(x->thread->copy_group, pending), false);
}
