/* SPDX-License-Identifier: Apache-2.0 */
/* simt_kernels.h - four kernels of the kinds that ptxgen emits, and a machine for each.  Faults are numbered in the
 * comments. */
#ifndef PTXGEN_TESTS_SIMT_KERNELS_H
#define PTXGEN_TESTS_SIMT_KERNELS_H

#include "simt_harness.h"

/* Wraps: kernels with a fault add garbage. */
static int32_t add(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }

/* Sum over the warp, in lane 0. */
static int32_t warp_sum(int32_t s)
{
    for (uint32_t d = 16; d; d /= 2)
        s = add(s, (int32_t)simt_shfl(SIMT_SHFL_DOWN, (uint32_t)s, d, 32));
    return s;
}

/* Sum over 128 threads, in thread 0.  Fault 1: no barrier. */
static int32_t block_sum(int32_t s, int fault)
{
    int32_t *part = simt_shared();
    const uint32_t tid = simt_tid();
    s = warp_sum(s);
    if (tid % 32 == 0)
        ST(int32_t, part + tid / 32, SIMT_SHARED, "part", s);
    if (fault != 1)
        simt_barrier("partials are written");
    if (tid / 32 == 0)
        s = warp_sum(tid < 4 ? LD(int32_t, part + tid, SIMT_SHARED, "part") : 0);
    return s;
}

/* ---- one block ------------------------------------------------------------------------------- */
static void reduce_block(void *const *args)
{
    const int32_t n = ARG(int32_t, ARG_N);
    int32_t s = 0;
    for (int32_t i = (int32_t)simt_tid(); i < n; i += 128)
        s = add(s, LD(int32_t, ARG(int32_t *, ARG_X) + i, SIMT_INVARIANT, "x"));
    s = block_sum(s, ARG(int32_t, ARG_FAULT));
    if (simt_tid() == 0)
        ST(int32_t, ARG(int32_t *, ARG_OUT), 0, "out", s);
}
static const struct machine BLOCK = { "reduce_block", 1, { reduce_block }, 128, 1, 16, 0, 1, 1, false };

/* ---- last block: 1 no barrier, 2 no release, 3 no acquire, 4 no barrier after the broadcast, 5 counter not reset,
 *      6 the release comes before the store -------------------------------------------------------------------------- */
static void reduce_last(void *const *args)
{
    const int32_t n = ARG(int32_t, ARG_N), fault = ARG(int32_t, ARG_FAULT);
    int32_t *temp = ARG(int32_t *, ARG_TEMP), *counter = ARG(int32_t *, ARG_CONTROL),
            *last = (int32_t *)simt_shared() + 4;
    const int32_t blocks = (int32_t)simt_blocks(), tid = (int32_t)simt_tid();
    int32_t s = 0;
    for (int32_t i = (int32_t)simt_block() * 128 + tid; i < n; i += 128 * blocks)
        s = add(s, LD(int32_t, ARG(int32_t *, ARG_X) + i, SIMT_INVARIANT, "x"));
    s = block_sum(s, fault);
    if (tid == 0) {
        if (fault == 6)
            simt_fence(SIMT_RELEASE, SIMT_SCOPE_DEVICE);
        ST(int32_t, temp + simt_block(), 0, "temp", s);
        if (fault != 2 && fault != 6)
            simt_fence(SIMT_RELEASE, SIMT_SCOPE_DEVICE);
        const int32_t ticket =
            fault == 5 ? rmw_add(counter, 1, 0, "counter") : rmw_inc_wrap(counter, blocks - 1, "counter");
        if (fault != 3)
            simt_fence(SIMT_ACQUIRE, SIMT_SCOPE_DEVICE);
        ST(int32_t, last, SIMT_SHARED, "last", ticket == blocks - 1);
    }
    if (fault != 4)
        simt_barrier("last is known");
    if (!LD(int32_t, last, SIMT_SHARED, "last"))
        return;
    s = 0;
    for (int32_t i = tid; i < blocks; i += 128)
        s = add(s, LD(int32_t, temp + i, 0, "temp"));
    s = block_sum(s, 0);
    if (tid == 0)
        ST(int32_t, ARG(int32_t *, ARG_OUT), 0, "out", s);
}
static const struct machine LAST = { "reduce_last", 1, { reduce_last }, 128, 11, 32, 0, 16, 1, false };

/* ---- look-back scan: temp = a ticket, then (flag, sum) per tile of 128, in separate words.
 *      1 relaxed store of the flag, 2 relaxed load of the flag, 3 no barrier in the block's scan, 4 no wait
 * -------------- */
enum { SCAN_TEMP = 48 };

static int32_t look_back(int32_t *state, int32_t tile, int32_t own, int fault)
{
    const uint32_t store = fault == 1 ? ORDERED(SIMT_RELAXED) : ORDERED(SIMT_RELEASE);
    const uint32_t load = fault == 2 ? ORDERED(SIMT_RELAXED) : ORDERED(SIMT_ACQUIRE);
    int32_t before = 0;
    if (tile > 0) {
        int32_t *previous = state + 4 * (tile - 1);
        while (fault != 4 && !LD(int32_t, previous, load, "flag"))
            simt_backoff(20);
        before = LD(int32_t, previous + 2, 0, "prefix");
    }
    ST(int32_t, state + 4 * tile + 2, 0, "prefix", add(before, own));
    ST(int32_t, state + 4 * tile, store, "flag", 1);
    return before;
}

static void zero_temp(void *const *args)
{
    const uint32_t i = simt_block() * 128 + simt_tid();
    if (i < SCAN_TEMP)
        ST(int32_t, ARG(int32_t *, ARG_TEMP) + i, 0, "temp", 0);
}

static void scan_tiles(void *const *args)
{
    int32_t *shared = simt_shared(), *temp = ARG(int32_t *, ARG_TEMP);
    const int32_t n = ARG(int32_t, ARG_N), fault = ARG(int32_t, ARG_FAULT), tid = (int32_t)simt_tid();
    if (tid == 0)
        ST(int32_t, shared + 128, SIMT_SHARED, "tile", rmw_add(temp, 1, 0, "ticket"));
    simt_barrier("the tile is known");
    const int32_t tile = LD(int32_t, shared + 128, SIMT_SHARED, "tile"), i = tile * 128 + tid;
    int32_t s = i < n ? LD(int32_t, ARG(int32_t *, ARG_X) + i, 0, "x") : 0;
    for (int32_t d = 1; d < 128; d *= 2) {
        ST(int32_t, shared + tid, SIMT_SHARED, "sums", s);
        simt_barrier("sums are written");
        s = add(s, tid >= d ? LD(int32_t, shared + tid - d, SIMT_SHARED, "sums") : 0);
        if (fault != 3)
            simt_barrier("sums are read");
    }
    if (tid == 127)
        ST(int32_t, shared + 129, SIMT_SHARED, "before", look_back(temp + 4, tile, s, fault));
    simt_barrier("the prefix is known");
    s = add(s, LD(int32_t, shared + 129, SIMT_SHARED, "before"));
    if (i < n)
        ST(int32_t, ARG(int32_t *, ARG_OUT) + i, 0, "out", s);
}
static const struct machine SCAN = {
    "scan_tiles", 2, { zero_temp, scan_tiles }, 128, 10, 1024, 0, SCAN_TEMP, 1, false
};

/* ---- cluster of 4: block r gives the sum of the elements of block r + 1.
 *      1 no barrier before reading, 2 none before ending, 3 the first one is too early
 * ------------------------------------ */
static void cluster_exchange(void *const *args)
{
    int32_t *shared = simt_shared();
    const int32_t n = ARG(int32_t, ARG_N), fault = ARG(int32_t, ARG_FAULT);
    const uint32_t rank = simt_cluster_rank(), next = (rank + 1) % 4, tid = simt_tid();
    const int32_t i = (int32_t)(simt_block() * 64 + tid);
    if (fault == 3) {
        simt_cluster_arrive("own is not written");
        simt_cluster_wait("own is not written");
    }
    ST(int32_t, shared + tid, SIMT_SHARED, "own", i < n ? LD(int32_t, ARG(int32_t *, ARG_X) + i, 0, "x") : 0);
    if (fault != 1 && fault != 3) {
        simt_cluster_arrive("own is written");
        simt_cluster_wait("own is written");
    }
    const int32_t *peer = simt_cluster_map(shared, next);
    int32_t s = 0;
    if (tid == 0)
        for (int j = 0; j < 64; j++)
            s = add(s, LD(int32_t, peer + j, SIMT_CLUSTER, "peer"));
    if (fault != 2) {
        simt_cluster_arrive("peer is read");
        simt_cluster_wait("peer is read");
    }
    if (tid == 0)
        ST(int32_t, ARG(int32_t *, ARG_OUT) + simt_block(), 0, "out", s);
}
static const struct machine CLUSTER = { "cluster_exchange", 1, { cluster_exchange }, 64, 8, 256, 4, 1, 1, false };

/* ---- dependent launch: temp = 2 x, out = temp reversed within each block.
 *      1 the second kernel does not wait, 2 it waits too late, 3 the first lets it start early: no fault
 * ------------------ */
static void dependent_first(void *const *args)
{
    const int32_t i = (int32_t)(simt_block() * 64 + simt_tid());
    if (ARG(int32_t, ARG_FAULT) == 3)
        simt_dependency_launch();
    ST(int32_t, ARG(int32_t *, ARG_TEMP) + i, 0, "temp", 2 * LD(int32_t, ARG(int32_t *, ARG_X) + i, 0, "x"));
}

static void dependent_second(void *const *args)
{
    const int fault = ARG(int32_t, ARG_FAULT);
    const uint32_t base = simt_block() * 64, tid = simt_tid();
    if (fault != 1 && fault != 2)
        simt_dependency_wait();
    const int32_t v = LD(int32_t, ARG(int32_t *, ARG_TEMP) + base + (63 - tid), 0, "temp");
    if (fault == 2)
        simt_dependency_wait();
    ST(int32_t, ARG(int32_t *, ARG_OUT) + base + tid, 0, "out", v);
}
static const struct machine DEPENDENT = { "dependent", 2,   { dependent_first, dependent_second }, 64, 9, 0, 0, 9 * 64,
                                          1,           true };

#endif
