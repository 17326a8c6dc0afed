/* SPDX-License-Identifier: Apache-2.0 */
/* stale.c - loads that see the past: what a missing acquire allows.
 *
 * Words that were written in this launch remember their last old values and until when each was current, in time of
 * writes.  A load may give any value that was current at or after
 *
 *     max(what the thread has acquired, the newest version of this word that its block has seen or written),
 *
 * so a block never goes back in time on one word, and after an acquire it sees all that was released before.  An
 * acquire covers everything written so far, which is more than it must: the mode forgives some faults but accuses no
 * right kernel.  Barriers and warp syncs pass on what the arriving threads have acquired.  Read-modify-writes read the
 * newest value.
 *
 * The table is small and forgets words that collide; a forgotten word is always fresh.
 */
#include "simt_impl.h"

#include <string.h>

static size_t slot_of(uintptr_t word) { return (size_t)((word * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - HISTORY_BITS)); }

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* The word's present value.  Bytes that do not belong to the same array as the accessed ones count as zero. */
static uint64_t word_value(const struct extent *e, uintptr_t word)
{
    const uintptr_t low = (uintptr_t)e->at, high = low + e->bytes;
    const uintptr_t from = word * 8 > low ? word * 8 : low, to = word * 8 + 8 < high ? word * 8 + 8 : high;
    uint64_t v = 0;
    memcpy((char *)&v + (from - word * 8), e->at + (from - low), to - from);
    return v;
}

void stale_written(struct exec *x, const struct block *by, const char *at, uint32_t bytes)
{
    const struct extent *e = x->options.stale ? extent_of(x, at, bytes, NULL) : NULL;
    if (!e)
        return;
    x->now++;
    for (uintptr_t word = (uintptr_t)at / 8; word <= ((uintptr_t)at + bytes - 1) / 8; word++) {
        const size_t slot = slot_of(word);
        struct word_history *h = &x->history[slot];
        uint64_t *seen = &x->seen[slot * (size_t)x->nslots];
        if (h->word != word) {
            h->word = word;
            h->count = 0;
            memset(seen, 0, sizeof *seen * (size_t)x->nslots);
        }
        if (h->count == VERSIONS)
            memmove(h->old, h->old + 1, sizeof *h->old * (size_t)--h->count);
        h->old[h->count++] = (struct version){ word_value(e, word), x->now };
        seen[by->slot] = x->now;
    }
}

static uint64_t acquired(const struct exec *x)
{
    return later(x->thread->acquired, later(x->warp->acquired, x->block->acquired));
}

/* Replaces *value by an old one, perhaps. False: the newest. */
static bool choose_old(struct exec *x, uintptr_t word, bool invariant, uint64_t *value)
{
    const size_t slot = slot_of(word);
    const struct word_history *h = &x->history[slot];
    if (h->word != word)
        return false;
    uint64_t *seen = &x->seen[slot * (size_t)x->nslots + (size_t)x->block->slot];
    const uint64_t floor = invariant ? x->block->since : later(acquired(x), *seen);
    int first = 0;
    while (first < h->count && h->old[first].until <= floor)
        first++;
    int chosen = h->count;
    if (first < h->count && exec_random(x, 2))
        chosen = first + (int)exec_random(x, (uint32_t)(h->count - first));
    if (!invariant && chosen > 0)
        *seen = later(*seen, h->old[chosen - 1].until);
    if (chosen == h->count)
        return false;
    *value = h->old[chosen].value;
    return true;
}

char *stale_load(struct exec *x, char *at, uint32_t bytes, bool invariant)
{
    const struct extent *e = bytes <= ACCESS_MAX ? extent_of(x, at, bytes, NULL) : NULL;
    if (!e)
        return at;
    const uintptr_t first = (uintptr_t)at / 8, last = ((uintptr_t)at + bytes - 1) / 8;
    char *const buffer = x->old_value + first * 8 % ACCESS_MAX; /* aligned like the original */
    bool any = false;
    for (uintptr_t word = first; word <= last; word++) {
        uint64_t value;
        if (!choose_old(x, word, invariant, &value)) {
            if (!any && word == last)
                return at;
            value = word_value(e, word);
        } else {
            any = true;
        }
        memcpy(buffer + (word - first) * 8, &value, sizeof value);
    }
    return any ? buffer + (uintptr_t)at % 8 : at;
}

void stale_acquire(struct exec *x, enum simt_scope scope)
{
    struct thread *t = x->thread;
    if (scope != SIMT_SCOPE_BLOCK) {
        t->acquired = x->now;
        return;
    }
    /* At block scope: what other threads of the block had acquired when they released. Not tracked, so all of it. */
    for (int i = 0; i < x->block->grid->threads; i++)
        t->acquired = later(t->acquired, x->block->thread[i].acquired);
}
