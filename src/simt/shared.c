/* SPDX-License-Identifier: Apache-2.0 */
/* shared.c - checks of shared memory: bounds, races, reads of what nobody wrote.
 *
 * Race detector: each byte remembers its last writer and a reader since, with how many barriers, warp syncs and
 * cluster phases that thread had passed.  An earlier access is ordered before the current one when the same thread made
 * it, or a synchronisation that both took part in lies between.  That does not depend on the schedule: a missing
 * barrier is found in nearly every run.  Mbarriers and the barriers of teams order some threads and not others: what
 * they tell a thread is in its `known` (async.c).  Synchronisation through flags in shared memory is not modelled.
 */
#include "simt_impl.h"

#include <string.h>

void shared_block_starts(struct exec *x, struct block *b)
{
    if (x->options.race)
        memset(b->shadow, 0, sizeof *b->shadow * (size_t)b->grid->shared_bytes);
    if (x->options.uninit)
        memset(b->initialised, 0, (size_t)b->grid->shared_bytes);
}

/* Number of the current thread in its cluster. */
static int thread_in_cluster(const struct exec *x)
{
    return x->block->rank * x->block->grid->threads + (int)(x->thread - x->block->thread);
}

/* Is the earlier access ordered before what the current thread does now? */
static bool ordered(const struct exec *x, const struct access *earlier, int thread)
{
    const int threads = x->block->grid->threads;
    const uint32_t *known = x->block->partly ? x->thread->known : NULL;
    if (earlier->block_epoch == 0 || earlier->thread == thread)
        return true; /* never accessed, or own */
    if (earlier->cluster_phase < x->thread->waits)
        return true;
    if (earlier->thread >= ASYNC_THREAD)
        return known && known[WARPS_MAX + earlier->thread - ASYNC_THREAD] > earlier->warp_epoch;
    if (earlier->thread / threads != x->block->rank)
        return false;
    if (earlier->block_epoch < x->block->epoch)
        return true;
    if (earlier->thread / WARP_LANES == thread / WARP_LANES && earlier->warp_epoch < x->warp->epoch)
        return true;
    return known && known[earlier->thread % threads / WARP_LANES] > earlier->warp_epoch;
}

static void report_race(struct exec *x, const struct block *owner, size_t offset, const char *name, bool writes,
                        const struct access *earlier, bool wrote)
{
    const int threads = x->block->grid->threads;
    const int thread = earlier->thread % threads, rank = earlier->thread / threads;
    if (earlier->thread >= ASYNC_THREAD)
        finding(x, SIMT_RACE, "%s '%s' (shared byte %zu) without having waited at '%s' for the copy into it",
                writes ? "writes" : "reads", name, offset, owner->mbar[earlier->thread - ASYNC_THREAD].name);
    finding(x, SIMT_RACE, "%s '%s' (shared byte %zu%s) that thread %d of block %d %s with no barrier in between",
            writes ? "writes" : "reads", name, offset, owner == x->block ? "" : " of another block", thread,
            x->block->cluster->block[rank]->number, wrote ? "wrote" : "read");
}

/* Two readers are enough to catch any writer: of different warps, as one warp's sync may order the writer after its
 * own.  A reader that is ordered before the new one may be forgotten: what is ordered after the new one is ordered
 * after both. */
static void remember_reader(const struct exec *x, struct shadow *s, const struct access *now)
{
    const int warp = s->read.thread / WARP_LANES;
    if (ordered(x, &s->read, now->thread))
        s->read = *now;
    else if (ordered(x, &s->other, now->thread) ||
             (s->other.thread / WARP_LANES == warp && now->thread / WARP_LANES != warp))
        s->other = *now;
}

static void check_race(struct exec *x, struct block *owner, size_t offset, uint32_t bytes, const char *name,
                       bool strong, enum access_kind kind)
{
    const int thread = thread_in_cluster(x);
    const bool writes = kind != ACCESS_READ;
    const struct access now = { .thread = (uint16_t)thread,
                                .strong = strong,
                                .fences = (writes ? x->thread->proxy_fences : x->thread->read_fences) & 0x7fff,
                                .block_epoch = x->block->epoch,
                                .warp_epoch = x->warp->epoch,
                                .cluster_phase = x->thread->arrives };
    for (size_t i = offset; i < offset + bytes; i++) {
        struct shadow *s = &owner->shadow[i];
        if (!(strong && s->write.strong) && !ordered(x, &s->write, thread))
            report_race(x, owner, i, name, writes, &s->write, true);
        if (writes && !(strong && s->read.strong) && !ordered(x, &s->read, thread))
            report_race(x, owner, i, name, true, &s->read, false);
        if (writes && !(strong && s->other.strong) && !ordered(x, &s->other, thread))
            report_race(x, owner, i, name, true, &s->other, false);
        if (writes)
            s->write = now;
        else
            remember_reader(x, s, &now);
    }
}

static void check_initialised(struct exec *x, struct block *owner, size_t offset, uint32_t bytes, const char *name,
                              enum access_kind kind)
{
    for (size_t i = offset; i < offset + bytes; i++) {
        if (kind != ACCESS_WRITE && !owner->initialised[i])
            finding(x, SIMT_UNINIT, "reads '%s' (shared byte %zu), which its block has not written", name, i);
        if (kind != ACCESS_READ)
            owner->initialised[i] = 1;
    }
}

/* The block whose shared memory the address lies in: the current one, or for SIMT_CLUSTER one of its cluster. */
static struct block *owner_of(const struct exec *x, const char *at, uint32_t bytes, uint32_t how)
{
    const struct cluster *c = x->block->cluster;
    const size_t size = (size_t)x->block->grid->shared_bytes;
    const bool own = (how & SIMT_SPACE) == SIMT_SHARED;
    for (int r = own ? x->block->rank : 0; r < (own ? x->block->rank + 1 : c->nblocks); r++) {
        const uintptr_t offset = (uintptr_t)at - (uintptr_t)c->block[r]->shared;
        if (offset <= size && bytes <= size - offset)
            return c->block[r];
    }
    return NULL;
}

void shared_access(struct exec *x, char *at, uint32_t bytes, uint32_t how, const char *name, enum access_kind kind)
{
    struct block *owner = owner_of(x, at, bytes, how);
    const char *verb = kind == ACCESS_READ ? "reads" : "writes";
    if (!owner) {
        if (x->options.bounds)
            finding(x, SIMT_BOUNDS, "%s %u bytes of '%s' outside of shared memory: at byte %lld of %d", verb,
                    (unsigned)bytes, name, (long long)(at - x->block->shared), x->block->grid->shared_bytes);
        return;
    }
    /* All blocks of a cluster are resident together, but only a cluster barrier tells that another one has started. */
    if (owner != x->block && !x->block->met)
        finding(x, SIMT_RACE, "%s '%s' in the shared memory of block %d, which may not have started", verb, name,
                owner->number);
    if (owner->live == 0)
        finding(x, SIMT_RACE, "%s '%s' in the shared memory of block %d, which has ended", verb, name, owner->number);
    const size_t offset = (size_t)(at - owner->shared);
    if (owner->ncopies)
        async_access(x, owner, at, bytes, name, kind != ACCESS_READ);
    if (x->options.race)
        check_race(x, owner, offset, bytes, name, kind == ACCESS_RMW || (how & SIMT_ORDER), kind);
    if (x->options.uninit)
        check_initialised(x, owner, offset, bytes, name, kind);
}

/* ---- asynchronous copies --------------------------------------------------------------------- */
static bool inside(const struct block *b, const char *at, uint32_t bytes)
{
    const size_t size = (size_t)b->grid->shared_bytes, offset = (size_t)(at - b->shared);
    return offset <= size && bytes <= size - offset;
}

/* Has the thread that touched the byte called no proxy fence since, or for a read arrived at no mbarrier?  Its loads and
 * stores may still be on their way then, whatever barriers it has passed. */
static void check_fenced(struct exec *x, const struct access *a, bool wrote, size_t byte, const char *name)
{
    const struct block *b = x->block;
    const int thread = a->thread - b->rank * b->grid->threads;
    if (a->block_epoch == 0 || a->thread >= ASYNC_THREAD || thread < 0 || thread >= b->grid->threads)
        return;
    const uint16_t fences = wrote ? b->thread[thread].proxy_fences : b->thread[thread].read_fences;
    if (a->fences == (fences & 0x7fff))
        finding(x, SIMT_RACE,
                "starts a copy %s '%s' (shared byte %zu), which thread %d %s without a proxy fence after it",
                wrote ? "from" : "into", name, byte, thread, wrote ? "wrote" : "read");
}

/* The copying hardware writes on behalf of the thread; afterwards the bytes are the copy's, until its mbarrier says
 * otherwise. */
void shared_copy_starts(struct exec *x, char *at, uint32_t bytes, int mbar, const char *name)
{
    struct block *b = x->block;
    shared_access(x, at, bytes, SIMT_SHARED, name, ACCESS_WRITE);
    const size_t offset = (size_t)(at - b->shared);
    if (x->options.uninit && inside(b, at, bytes))
        memset(b->initialised + offset, 0, bytes);
    if (!x->options.race || mbar < 0 || !inside(b, at, bytes))
        return;
    for (size_t i = offset; i < offset + bytes; i++) {
        check_fenced(x, &b->shadow[i].read, false, i, name);
        check_fenced(x, &b->shadow[i].other, false, i, name);
        b->shadow[i].write.thread = (uint16_t)(ASYNC_THREAD + mbar);
        b->shadow[i].write.warp_epoch = b->mbar[mbar].phase;
    }
}

void shared_copy_ends(struct exec *x, struct block *b, char *at, uint32_t bytes)
{
    if (x->options.uninit && inside(b, at, bytes))
        memset(b->initialised + (at - b->shared), 1, bytes);
}

void shared_copy_reads(struct exec *x, char *at, uint32_t bytes, const char *name)
{
    const struct block *b = x->block;
    shared_access(x, at, bytes, SIMT_SHARED, name, ACCESS_READ);
    if (!x->options.race || !inside(b, at, bytes))
        return;
    const size_t offset = (size_t)(at - b->shared);
    for (size_t i = offset; i < offset + bytes; i++)
        check_fenced(x, &b->shadow[i].write, true, i, name);
}
