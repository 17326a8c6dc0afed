/* SPDX-License-Identifier: Apache-2.0 */
/* halo.c - words that kernels of neighbouring ranks write for each other, as nvptx_halo.c has it.
 *
 * The other ranks are threads of the operating system, so their memory is that of the process.  Who waits lets the other
 * threads of its own rank go on, which may be those that other ranks wait for.
 *
 * Most words have come long before they are read, also those that nobody has waited for.  So which words a block has waited
 * for is kept, and any other one reads as UNAWAITED: a wait that leaves a word out is found whatever comes first.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launch/exchange.h"
#include "base/os.h"
#include "simt_impl.h"

_Static_assert(sizeof(struct halo_head) <= HALO_SLOTS, "words come after the head");

enum { LATE = 50, MISSED = 8, CAME_FIRST = 1024, BLOCK_SHIFT = 48 };
static const uint32_t UNAWAITED = 0x7ff8dead; /* no number in f32 and f64 */

static struct halo_head *head_at(uint64_t window) { return (struct halo_head *)(uintptr_t)window; }

/* ---- words that were waited for ---------------------------------------------------------------------------------- */

void halo_reset(struct exec *x)
{
    if (x->ncame)
        memset(x->came, 0, x->cap_came * sizeof *x->came);
    x->ncame = 0;
}

/* The current block and the word. */
static uint64_t key_of(const struct exec *x, uint64_t from) { return (uint64_t)x->block->number << BLOCK_SHIFT ^ from; }

/* Where the key is, or would be. */
static uint64_t *place(const struct exec *x, uint64_t key)
{
    size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (x->cap_came - 1);
    while (x->came[at] && x->came[at] != key)
        at = (at + 1) & (x->cap_came - 1);
    return &x->came[at];
}

static void grow(struct exec *x)
{
    uint64_t *const old = x->came;
    const size_t had = x->cap_came;
    x->cap_came = had ? 2 * had : CAME_FIRST;
    x->came = calloc(x->cap_came, sizeof *x->came);
    if (!x->came) {
        x->came = old;
        x->cap_came = had;
        finding(x, SIMT_NO_MEMORY, "has no memory left to remember the words of other ranks");
    }
    for (size_t i = 0; i < had; i++)
        if (old[i])
            *place(x, old[i]) = old[i];
    free(old);
}

static void has_come(struct exec *x, uint64_t from)
{
    if (2 * x->ncame >= x->cap_came)
        grow(x);
    uint64_t *const at = place(x, key_of(x, from));
    x->ncame += !*at;
    *at = key_of(x, from);
}

/* ---- the functions of kernels ------------------------------------------------------------------------------------ */

/* Another rank may have written it. */
static bool failed(struct halo_head *h)
{
    const bool fault = __atomic_load_n(&h->fault, __ATOMIC_RELAXED);
    if (fault)
        __atomic_store_n((uint32_t *)(uintptr_t)h->host_fault, 1, __ATOMIC_RELAXED);
    return fault;
}

uint32_t simt_halo_number(uint64_t window)
{
    struct halo_head *h = head_at(window);
    const uint32_t e = h->last + 1;
    return failed(h) ? 0 : e ? e : 2;
}

void simt_halo_send(uint64_t to, uint32_t word, uint32_t e)
{
    struct exec *const x = simt_current;
    if (x->options.seed && exec_random(x, LATE) == 0) /* words of one rank come in any order, and late */
        nanosleep(&(struct timespec){ .tv_nsec = 1000 * (1 + exec_random(x, LATE)) }, NULL);
    exec_interleave(x);
    __atomic_store_n((uint64_t *)(uintptr_t)to, (uint64_t)e << 32 | word, __ATOMIC_RELEASE);
}

void simt_halo_wait(uint64_t window, uint64_t from, uint32_t e)
{
    struct halo_head *const h = head_at(window);
    const uint64_t begin = os_nanoseconds(), *const slot = (const uint64_t *)(uintptr_t)from;
    uint64_t word = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    while (word >> 32 != e && !failed(h)) {
        if (os_nanoseconds() - begin >= h->limit)
            __atomic_store_n(&h->fault, 1, __ATOMIC_RELAXED);
        sched_yield();
        simt_current->idle = 0; /* others may make it come, however long that takes */
        exec_poll(simt_current, NULL, true);
        word = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    }
    has_come(simt_current, from);
}

/* What is no element of an array is a word.  One that has not been waited for is one that no point can want. */
uint32_t simt_halo_read(uint64_t from)
{
    struct exec *const x = simt_current;
    uint32_t word;
    if (!extent_of(x, (const char *)(uintptr_t)from, sizeof word, NULL) && (!x->ncame || !*place(x, key_of(x, from))))
        return UNAWAITED;
    memcpy(&word, (const void *)(uintptr_t)from, sizeof word);
    return word;
}

/* Sometimes it has not come yet, whatever is there. */
uint64_t simt_halo_peek(uint64_t from, uint32_t e)
{
    struct exec *const x = simt_current;
    const uint64_t word = __atomic_load_n((const uint64_t *)(uintptr_t)from, __ATOMIC_ACQUIRE);
    if (word >> 32 == e && x->options.seed && exec_random(x, MISSED) == 0)
        return UNAWAITED;
    return word >> 32 == e ? word : UNAWAITED;
}

void simt_halo_done(uint64_t window, uint32_t e, uint32_t amount, uint32_t total)
{
    struct halo_head *const h = head_at(window);
    h->ticket += amount;
    if (h->ticket != total || failed(h))
        return;
    h->ticket = 0;
    h->last = e;
    for (int i = 0; h->told[i]; i++)
        __atomic_store_n((uint32_t *)(uintptr_t)h->told[i], e, __ATOMIC_RELEASE);
}
