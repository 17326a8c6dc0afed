/* SPDX-License-Identifier: Apache-2.0 */
/* peer_kernels.h - what the kernels of src/launch/exchange_code.c do, said again in C: as fake_cuda's `launched`. */
#ifndef PTXGEN_TEST_PEER_KERNELS_H
#define PTXGEN_TEST_PEER_KERNELS_H

#include <criterion/criterion.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "launch/exchange.h"

static _Atomic int peer_exchanges; /* that were completed */

static inline void *peer_at(uint64_t address) { return (void *)(uintptr_t)address; }

static inline double peer_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct peer_kernel {
    const struct exchange_table *t;
    uint32_t e;
    double end; /* of waits */
};

/* Until the word is e or later, or with `same` e itself. */
static inline void peer_wait_for(struct peer_kernel *k, const uint32_t *word, uint32_t e, bool same)
{
    for (;;) {
        const uint32_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (same ? seen == e : (int32_t)(seen - e) >= 0)
            return;
        if (peer_seconds() > k->end) {
            *(uint32_t *)peer_at(k->t->fault) = 1;
            ((uint32_t *)peer_at(k->t->window))[2] = 1;
            return;
        }
        sched_yield();
    }
}

/* Where piece c of a message begins, and its bytes. */
static inline bool peer_cut(uint64_t bytes, uint64_t piece, unsigned c, uint64_t *begin, uint64_t *n)
{
    *begin = c * piece;
    *n = *begin < bytes ? bytes - *begin : 0;
    *n = *n > piece ? piece : *n;
    return *n > 0;
}

static inline void peer_send_piece(struct peer_kernel *k, const struct exchange_row *m, unsigned c)
{
    const struct exchange_table *t = k->t;
    uint64_t begin, n;
    if (!peer_cut(m->send_bytes, m->send_piece, c, &begin, &n))
        return;
    if (!m->flag_there) {
        memcpy((char *)peer_at(m->slot_there) + begin, (char *)peer_at(m->send) + begin, n);
        return;
    }
    peer_wait_for(k, peer_at(m->done_there), k->e - 2, false);
    char *slot = (char *)peer_at(m->slot_there) + (k->e & 1) * t->half;
    const bool words = m->send_bytes <= t->longest;
    slot += (words ? 2 : 1) * begin;
    if (!words) {
        memcpy(slot, (char *)peer_at(m->send) + begin, n);
        __atomic_store_n((uint32_t *)peer_at(m->flag_there + (k->e & 1) * t->half) + c, k->e, __ATOMIC_RELEASE);
    }
    for (uint64_t i = 0; words && i < n; i += 4) {
        memcpy(slot + 2 * i, (char *)peer_at(m->send) + begin + i, n - i < 4 ? n - i : 4);
        __atomic_store_n((uint32_t *)(void *)(slot + 2 * i + 4), k->e, __ATOMIC_RELEASE);
    }
}

static inline void peer_get_piece(struct peer_kernel *k, const struct exchange_row *m, unsigned c)
{
    const struct exchange_table *t = k->t;
    uint64_t begin, n;
    if (!peer_cut(m->get_bytes, m->get_piece, c, &begin, &n))
        return;
    const char *slot = (char *)peer_at(m->slot_here) + (k->e & 1) * t->half;
    const bool words = m->get_bytes <= t->longest;
    slot += (words ? 2 : 1) * begin;
    if (!words) {
        peer_wait_for(k, (uint32_t *)peer_at(m->flag_here + (k->e & 1) * t->half) + c, k->e, true);
        memcpy((char *)peer_at(m->get) + begin, slot, n);
    }
    for (uint64_t i = 0; words && i < n; i += 4) {
        peer_wait_for(k, (const uint32_t *)(const void *)(slot + 2 * i + 4), k->e, true);
        memcpy((char *)peer_at(m->get) + begin + i, slot + 2 * i, n - i < 4 ? n - i : 4);
    }
}

static inline void peer_launched(const char *kernel, const unsigned grid[2], unsigned threads, void *const *params)
{
    if (strncmp(kernel, "ptxgen_exchange", 15) != 0)
        return;
    struct peer_kernel k = { .t = params[0] };
    uint32_t *head = peer_at(k.t->window);
    const bool words = !strcmp(kernel, "ptxgen_exchange_words");
    const unsigned messages = words ? threads / 32 : grid[1];
    cr_assert(words ? grid[0] * grid[1] == 1 && threads % 32 == 0 : threads == EXCHANGE_THREADS);
    cr_assert(messages <= EXCHANGE_MESSAGES && grid[0] <= EXCHANGE_PIECES);
    if (head[2])
        return;
    k.e = head[0] + 1;
    k.end = peer_seconds() + 1e-9 * (double)k.t->limit;
    for (unsigned j = 0; j < messages; j++)
        for (unsigned c = 0; c < grid[0]; c++)
            peer_send_piece(&k, &k.t->row[j], c);
    for (unsigned j = 0; j < messages; j++)
        for (unsigned c = 0; c < grid[0]; c++)
            peer_get_piece(&k, &k.t->row[j], c);
    if (head[2])
        return;
    head[0] = k.e;
    for (uint32_t r = 0; r < head[3]; r++)
        __atomic_store_n((uint32_t *)peer_at(((uint64_t *)(void *)(head + 4))[r]), k.e, __ATOMIC_RELEASE);
    peer_exchanges++;
}

#endif
