/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c - the exchange of short messages between devices, as nvptx_exchange.c has it.
 *
 * All threads of the block arrive.  The first one does the work of all, between two barriers of the emitter.  The other
 * ranks are threads of the operating system, so their memory is that of the process, and this thread gives them time.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>

#include "launch/exchange.h"
#include "base/os.h"
#include "simt_impl.h"

static void *at(uint64_t address) { return (void *)(uintptr_t)address; }

struct window {
    uint32_t last, ticket, fault, ranks;
};

struct wait {
    const struct exchange_table *table;
    uint32_t number;
    uint64_t begin;
};

static void until_late(const struct wait *w, bool *late)
{
    sched_yield();
    if (os_nanoseconds() - w->begin < w->table->limit)
        return;
    __atomic_store_n(&((struct window *)at(w->table->window))->fault, 1, __ATOMIC_RELAXED);
    __atomic_store_n((uint32_t *)at(w->table->fault), 1, __ATOMIC_RELAXED);
    *late = true;
}

static void send(const struct wait *w, const struct exchange_row *row, uint64_t half, bool *late)
{
    uint64_t *to = at(row->slot_there + half);
    while (!*late && (int32_t)(__atomic_load_n((uint32_t *)at(row->done_there), __ATOMIC_ACQUIRE) - w->number + 2) < 0)
        until_late(w, late);
    for (uint64_t i = 0; i < row->send_bytes / 4 && !*late; i++) {
        uint32_t word;
        memcpy(&word, (const char *)at(row->send) + 4 * i, sizeof word);
        __atomic_store_n(&to[i], (uint64_t)w->number << 32 | word, __ATOMIC_RELEASE);
    }
}

static void get(const struct wait *w, const struct exchange_row *row, uint64_t half, bool *late)
{
    const uint64_t *from = at(row->slot_here + half);
    for (uint64_t i = 0; i < row->get_bytes / 4 && !*late; i++) {
        uint64_t seen = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
        for (; !*late && seen >> 32 != w->number; seen = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE))
            until_late(w, late);
        const uint32_t word = (uint32_t)seen;
        memcpy((char *)at(row->get) + 4 * i, &word, sizeof word);
    }
}

void simt_exchange(uint64_t table)
{
    const struct exec *x = simt_current;
    if (x->lane || x->warp != x->block->warp)
        return;
    const struct exchange_table *const t = at(table);
    struct window *const own = at(t->window);
    const struct wait w = { .table = t, .number = own->last + 1, .begin = os_nanoseconds() };
    const uint64_t half = (w.number & 1) * t->half, *const told = (const uint64_t *)(const void *)(own + 1);
    bool late = own->fault;
    for (uint32_t j = 0; j < own->ranks && !late; j++)
        send(&w, &t->row[j], half, &late);
    for (uint32_t j = 0; j < own->ranks && !late; j++)
        get(&w, &t->row[j], half, &late);
    if (late)
        return;
    own->last = w.number;
    for (uint32_t r = 0; r < own->ranks; r++)
        __atomic_store_n((uint32_t *)at(told[r]), w.number, __ATOMIC_RELEASE);
}
