/* SPDX-License-Identifier: Apache-2.0 */
/* weak.c - store buffers: a store to global memory may become visible to other blocks late and out of order.
 *
 * Plain and relaxed stores go into a buffer of their block and reach memory in random order, but in program order where
 * they overlap. The block itself sees them at once.  A release by a thread empties what it releases: its own stores,
 * and those that a barrier or warp sync has ordered before it; not those of threads it never synchronised with. A
 * read-modify-write is relaxed (that is what LLVM's atomicrmw becomes on NVPTX): it releases nothing.
 */
#include "simt_impl.h"

#include <string.h>

static bool overlap(const struct pending *p, const char *at, uint32_t bytes)
{
    return p->at < at + bytes && at < p->at + p->bytes;
}

/* A set of words that may be pending, to decide most accesses without a search. */
static uint64_t filter_of(const char *at, uint32_t bytes)
{
    uint64_t set = 0;
    for (uintptr_t word = (uintptr_t)at / 8; word <= ((uintptr_t)at + bytes - 1) / 8; word++)
        set |= UINT64_C(1) << word % 64;
    return set;
}

/* Store i reaches memory, after earlier ones that it overlaps. */
static void drain(struct exec *x, struct block *b, int i)
{
    for (int j = 0; j < i; j++) {
        if (overlap(&b->pending[j], b->pending[i].at, b->pending[i].bytes)) {
            drain(x, b, j);
            i--;
            j = -1;
        }
    }
    struct pending *p = &b->pending[i];
    stale_written(x, b, p->at, p->bytes);
    memcpy(p->at, p->data, p->bytes);
    b->npending--;
    memmove(p, p + 1, sizeof *p * (size_t)(b->npending - i));
    if (b->npending == 0)
        b->pending_filter = 0;
}

void weak_settle(struct exec *x, char *at, uint32_t bytes)
{
    struct block *b = x->block;
    if (!(b->pending_filter & filter_of(at, bytes)))
        return;
    for (int i = 0; i < b->npending;) {
        if (overlap(&b->pending[i], at, bytes)) {
            drain(x, b, i);
            i = 0;
        } else {
            i++;
        }
    }
}

/* Where the block reads: in its own buffer when the newest store there covers the bytes. */
char *weak_load(struct exec *x, char *at, uint32_t bytes)
{
    struct block *b = x->block;
    if (!(b->pending_filter & filter_of(at, bytes)))
        return at;
    for (int i = b->npending - 1; i >= 0; i--) {
        struct pending *p = &b->pending[i];
        if (!overlap(p, at, bytes))
            continue;
        if (p->at <= at && at + bytes <= p->at + p->bytes)
            return p->data + (at - p->at);
        weak_settle(x, at, bytes);
        return at;
    }
    return at;
}

/* Where the block writes: a new place in its buffer. */
char *weak_store(struct exec *x, char *at, uint32_t bytes)
{
    struct block *b = x->block;
    if (bytes > ACCESS_MAX) {
        weak_settle(x, at, bytes);
        stale_written(x, b, at, bytes);
        return at;
    }
    if (b->npending == PENDING_MAX || (b->npending && exec_random(x, 16) == 0))
        drain(x, b, (int)exec_random(x, (uint32_t)b->npending));
    struct pending *p = &b->pending[b->npending++];
    p->at = at;
    p->bytes = bytes;
    p->thread = (uint16_t)(x->thread - b->thread);
    p->released = false;
    p->block_epoch = b->epoch;
    p->warp_epoch = x->warp->epoch;
    b->pending_filter |= filter_of(at, bytes);
    return p->data;
}

/* May the current thread's release cover the store? */
static bool covered(const struct exec *x, const struct pending *p)
{
    const int thread = (int)(x->thread - x->block->thread);
    if (p->thread == thread || p->released || p->block_epoch < x->block->epoch)
        return true;
    return p->thread / WARP_LANES == thread / WARP_LANES && p->warp_epoch < x->warp->epoch;
}

void weak_release(struct exec *x, enum simt_scope scope)
{
    struct block *b = x->block;
    for (int i = 0; i < b->npending;) {
        if (!covered(x, &b->pending[i])) {
            i++;
        } else if (scope == SIMT_SCOPE_BLOCK) {
            b->pending[i++].released = true; /* whoever in the block acquires it may release it further */
        } else {
            drain(x, b, i);
            i = 0;
        }
    }
}

void weak_flush(struct exec *x, struct block *b)
{
    while (b->npending)
        drain(x, b, 0);
}

void weak_leak(struct exec *x)
{
    struct block *b = &x->blocks[exec_random(x, (uint32_t)x->nslots)];
    if (b->npending)
        drain(x, b, (int)exec_random(x, (uint32_t)b->npending));
}
