/* SPDX-License-Identifier: Apache-2.0 */
/* The host executor's mbarriers, copies and barriers of teams: a right pipeline passes in every mode, and each fault is
 * found. */
#include <criterion/criterion.h>

#include "support/simt_harness.h"

enum { TILE = 128, STAGES = 3, TEAM = 64, TILES = 7, BLOCKS = 3, STAGE_BYTES = TILE * 4 };
enum { FULL_AT = STAGES * STAGE_BYTES, EMPTY_AT = FULL_AT + 64, OUT_AT = EMPTY_AT + 64, SHARED = OUT_AT + TEAM * 4 };

/* What can be wrong with the pipeline below. */
enum fault {
    NONE,
    NO_FULL_WAIT,
    NO_EMPTY_WAIT,
    WRONG_PARITY,
    EXPECT_MORE,
    EXPECT_LESS,
    NO_INIT_FENCE,
    NO_INIT_BARRIER,
    NO_WARP_SYNC,
    NO_PROXY_FENCE,
    NO_BULK_WAIT,
    NO_TEAM_BARRIER,
    ODD_BYTES,
    TOO_MANY_ARRIVALS,
    TOO_FEW_ARRIVALS,
    NO_EXPECT,
    STORE_UNREAD,
    WAIT_FOR_FEW,
    PREFETCH_ODD,
    PREFETCH_BEYOND,
};

static char *shared_at(int offset) { return (char *)simt_shared() + offset; }
static void *full(int s) { return shared_at(FULL_AT + 8 * s); }
static void *empty(int s) { return shared_at(EMPTY_AT + 8 * s); }

static void init(enum fault f)
{
    if (simt_tid() == 0) {
        for (int s = 0; s < STAGES; s++) {
            simt_mbar_init(full(s), 1, "full");
            simt_mbar_init(empty(s), TEAM / 32 + (f == TOO_MANY_ARRIVALS) - (f == TOO_FEW_ARRIVALS), "empty");
        }
        if (f != NO_INIT_FENCE)
            simt_mbar_ready();
    }
    if (f != NO_INIT_BARRIER)
        simt_barrier("mbarriers are ready");
}

static void produce(const int32_t *x, enum fault f)
{
    simt_prefetch((void *)(uintptr_t)x,
                  f == PREFETCH_ODD      ? STAGE_BYTES - 4
                  : f == PREFETCH_BEYOND ? BLOCKS * TILES * STAGE_BYTES + 16
                                         : STAGE_BYTES,
                  "x");
    for (int t = 0; t < TILES; t++) {
        const int s = t % STAGES, round = t / STAGES;
        if (f != NO_EMPTY_WAIT)
            simt_mbar_wait(empty(s), (round & 1) ^ 1, "empty");
        simt_mbar_arrive(full(s),
                         f == EXPECT_MORE   ? STAGE_BYTES + 16
                         : f == EXPECT_LESS ? 16
                         : f == NO_EXPECT   ? 0
                                            : STAGE_BYTES,
                         "full");
        simt_bulk_load(shared_at(s * STAGE_BYTES), (void *)(uintptr_t)(x + t * TILE),
                       f == ODD_BYTES ? STAGE_BYTES - 4 : STAGE_BYTES, full(s), "stage", "x");
    }
}

/* Of anything: a fault may leave the operands unwritten. */
static int32_t add(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }

/* Each thread adds two elements of the tile; the sums go out by a copy. */
static void consume(int32_t *out, enum fault f)
{
    int32_t *sums = (int32_t *)shared_at(OUT_AT);
    const int tid = (int)simt_tid();
    for (int t = 0; t < TILES; t++) {
        const int s = t % STAGES, round = t / STAGES;
        const int32_t *stage = (int32_t *)shared_at(s * STAGE_BYTES);
        if (f != NO_FULL_WAIT)
            simt_mbar_wait(full(s), (round & 1) ^ (f == WRONG_PARITY), "full");
        const int32_t sum = add(LD(int32_t, stage + tid, SIMT_SHARED, "stage"),
                                LD(int32_t, stage + TILE - 1 - tid, SIMT_SHARED, "stage"));
        if (f != NO_WARP_SYNC)
            simt_warp_sync("the stage is read");
        if (tid % 32 == 0)
            simt_mbar_arrive(empty(s), 0, "empty");
        ST(int32_t, sums + tid, SIMT_SHARED, "sums", sum);
        if (f != NO_PROXY_FENCE)
            simt_proxy_fence();
        if (f != NO_TEAM_BARRIER)
            simt_team_barrier("sums are written", 1, TEAM);
        if (tid == 0) {
            simt_bulk_store(out + t * TEAM, sums, TEAM * 4, "out", "sums");
            simt_bulk_commit();
            if (f != NO_BULK_WAIT && !(f == STORE_UNREAD && t == TILES - 1))
                simt_bulk_wait(f == WAIT_FOR_FEW, 1);
        }
        simt_team_barrier("sums are free", 1, TEAM);
    }
}

static void pipeline(void *const *args)
{
    const enum fault f = (enum fault)ARG(int32_t, ARG_FAULT);
    const uint32_t b = simt_block(), tid = simt_tid();
    init(f);
    if (tid < TEAM)
        consume(ARG(int32_t *, ARG_OUT) + b * TILES * TEAM, f);
    else if (tid == TEAM)
        produce(ARG(int32_t *, ARG_X) + b * TILES * TILE, f);
}
static const struct machine PIPELINE = { "pipeline", 1, { pipeline }, TEAM + 32, BLOCKS, SHARED, 0, 1, 1, false };

/* Every thread copies its own 16 bytes of two tiles, and another's after a barrier. */
static void copies(void *const *args)
{
    const enum fault f = (enum fault)ARG(int32_t, ARG_FAULT);
    const uint32_t tid = simt_tid(), b = simt_block();
    int32_t *stage = simt_shared(), *out = ARG(int32_t *, ARG_OUT) + b * TILE;
    for (uint32_t t = 0; t < 2; t++) {
        simt_copy(stage + t * TILE + 4 * tid, ARG(int32_t *, ARG_X) + (b * 2 + t) * TILE + 4 * tid, 16, true, "stage",
                  "x");
        simt_copy_commit();
    }
    if (f != NO_FULL_WAIT)
        simt_copy_wait(f == WAIT_FOR_FEW);
    if (f != NO_TEAM_BARRIER)
        simt_barrier("stages are there");
    for (uint32_t j = tid; j < TILE; j += 32)
        ST(int32_t, out + j, 0, "out",
           add(LD(int32_t, stage + j, SIMT_SHARED, "stage"),
               LD(int32_t, stage + 2 * TILE - 1 - j, SIMT_SHARED, "stage")));
}
static const struct machine COPIES = { "copies", 1, { copies }, 32, BLOCKS, 2 * STAGE_BYTES, 0, 1, 1, false };

/* ---- runs ------------------------------------------------------------------------------------ */
static bool passes(const struct machine *m, int fault, const struct simt_options *o, struct simt_report *r)
{
    enum { NX = BLOCKS * TILES * TILE, NOUT = BLOCKS * TILES * TEAM };
    _Alignas(16) int32_t x[NX], out[NOUT];
    const bool pipe = m == &PIPELINE;
    const int tiles = pipe ? BLOCKS * TILES : BLOCKS, nx = pipe ? NX : BLOCKS * 2 * TILE,
              nout = pipe ? NOUT : BLOCKS * TILE;
    for (int i = 0; i < NX; i++)
        x[i] = i * i % 1009;
    memset(out, 0x55, sizeof out);
    if (run_machine(m, fault, x, nx, out, nout, NULL, o, r) != SIMT_OK)
        return false;
    for (int t = 0; t < tiles; t++)
        for (int i = 0; i < nout / tiles; i++) {
            const int32_t *tile = x + t * (nx / tiles);
            if (out[t * (nout / tiles) + i] != tile[i] + tile[nx / tiles - 1 - i])
                return false;
        }
    return true;
}

Test(simt_async, right_kernels_pass_in_every_mode)
{
    static const char *const sets[] = { "", "race", "uninit", "late", "race,late", "all", "all,sms:1,resident:1" };
    static const struct machine *const machines[] = { &PIPELINE, &COPIES };
    for (int i = 0; i < 2; i++)
        for (size_t m = 0; m < sizeof sets / sizeof *sets; m++)
            for (uint64_t seed = 0; seed < 15; seed++) {
                const struct simt_options o = modes(sets[m], seed);
                struct simt_report r;
                cr_assert(passes(machines[i], NONE, &o, &r), "%s [%s] seed %d: %s", machines[i]->name, sets[m],
                          (int)seed, r.what ? r.text : "wrong result");
            }
}

static const struct row {
    const struct machine *machine;
    int fault;
    const char *modes;
    int what;     /* -1: any finding, or a wrong result */
    int at_least; /* of 30 seeds */
    const char *mention;
} rows[] = {
    { &PIPELINE, NO_FULL_WAIT, "race", -1, 30, "" },
    { &PIPELINE, NO_FULL_WAIT, "race", SIMT_RACE, 10, "without having waited at 'full' for the copy into it" },
    { &PIPELINE, NO_FULL_WAIT, "late", SIMT_RACE, 20, "while a copy into it is under way" },
    { &PIPELINE, NO_FULL_WAIT, "uninit", SIMT_UNINIT, 8, "'stage'" },
    { &PIPELINE, NO_EMPTY_WAIT, "race", SIMT_RACE, 30, "'stage'" },
    { &PIPELINE, NO_EMPTY_WAIT, "late", -1, 30, "" },
    { &PIPELINE, WRONG_PARITY, "race", -1, 30, "" },
    { &PIPELINE, EXPECT_MORE, "", SIMT_DEADLOCK, 30,
      "which has completed 0 phases and needs 0 more arrivals and 16 bytes" },
    { &PIPELINE, EXPECT_LESS, "late", SIMT_DEADLOCK, 20, "needs" },
    { &PIPELINE, NO_EXPECT, "late", SIMT_RACE, 15, "while a copy into it is under way" },
    { &PIPELINE, NO_INIT_FENCE, "", SIMT_RACE, 30, "followed by no fence" },
    { &PIPELINE, NO_INIT_BARRIER, "race", -1, 25, "" },
    { &PIPELINE, NO_INIT_BARRIER, "", SIMT_UNINIT, 15, "no initialised mbarrier" },
    { &PIPELINE, NO_WARP_SYNC, "race", SIMT_RACE, 30, "'stage'" },
    { &PIPELINE, NO_PROXY_FENCE, "race", SIMT_RACE, 30, "wrote without a proxy fence" },
    { &PIPELINE, NO_BULK_WAIT, "late", SIMT_RACE, 25, "may still read" },
    { &PIPELINE, STORE_UNREAD, "late", SIMT_RACE, 15, "ends while a copy that it started may still read 'sums'" },
    { &PIPELINE, WAIT_FOR_FEW, "late", SIMT_RACE, 25, "may still read" },
    { &PIPELINE, NO_TEAM_BARRIER, "race", SIMT_RACE, 30, "'sums'" },
    { &PIPELINE, ODD_BYTES, "", SIMT_BOUNDS, 30, "multiples of 16" },
    { &PIPELINE, PREFETCH_ODD, "", SIMT_BOUNDS, 30, "prefetches 508 bytes of 'x'" },
    { &PIPELINE, PREFETCH_BEYOND, "", SIMT_BOUNDS, 30, "'x' outside of every array" },
    { &PIPELINE, TOO_MANY_ARRIVALS, "", SIMT_DEADLOCK, 30, "needs 1 more arrivals" },
    { &PIPELINE, TOO_FEW_ARRIVALS, "race", SIMT_RACE, 5, "'stage'" },
    { &COPIES, NO_FULL_WAIT, "late", SIMT_RACE, 28, "while a copy into it is under way" },
    { &COPIES, WAIT_FOR_FEW, "late", SIMT_RACE, 20, "while a copy into it is under way" },
    { &COPIES, NO_TEAM_BARRIER, "race", SIMT_RACE, 30, "'stage'" },
};

Test(simt_async, faults_are_found)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        struct simt_report last = { 0 };
        int found = 0;
        for (uint64_t seed = 1; seed <= 30; seed++) {
            const struct simt_options o = modes(row->modes, seed);
            struct simt_report r;
            const bool good = passes(row->machine, row->fault, &o, &r);
            const bool right = row->what < 0 || ((int)r.what == row->what && strstr(r.text, row->mention));
            found += !good && right;
            if (good || !right)
                last = r;
        }
        cr_expect(found >= row->at_least, "%s fault %d [%s]: found in %d of 30; %s", row->machine->name, row->fault,
                  row->modes, found, last.text);
    }
}

/* ---- teams ----------------------------------------------------------------------------------- */
/* 1: a thread of another warp; 2: other places; 3: half of the team; 4: a lane is at a shuffle; 5: a lane has ended */
static void teams(void *const *args)
{
    const uint32_t tid = simt_tid();
    const int f = ARG(int32_t, ARG_FAULT);
    int32_t *s = simt_shared();
    if (f == 5 && tid == 3)
        return;
    if (tid < 64) {
        ST(int32_t, s + tid, SIMT_SHARED, "s", (int32_t)tid);
        if (f == 4 && tid == 7)
            simt_shfl(SIMT_SHFL_IDX, 0, 0, 32);
        if (f != 3 || tid < 32)
            simt_team_barrier(f == 2 && tid > 31 ? "there" : "here", 1, 64);
    } else if (f == 1) {
        simt_team_barrier("here", 1, 64);
    }
    ST(int32_t, ARG(int32_t *, ARG_OUT) + tid, 0, "out", tid < 64 ? LD(int32_t, s + (tid ^ 32), SIMT_SHARED, "s") : 0);
}

Test(simt_async, teams_that_do_not_meet)
{
    static const struct machine m = { "teams", 1, { teams }, 128, 1, 256, 0, 1, 1, false };
    static const char *const says[] = {
        NULL,    "a team of 64 threads", "threads wait at the barrier", "wait at the team's barrier here",
        "lanes", "team's barrier here"
    };
    for (int f = 0; f < 6; f++)
        for (uint64_t seed = 0; seed < 10; seed++) {
            int32_t x[1] = { 0 }, out[128];
            const struct simt_options o = modes(f ? "" : "race,uninit", seed);
            struct simt_report r;
            run_machine(&m, f, x, 1, out, 128, NULL, &o, &r);
            cr_expect_eq((int)r.what, f ? SIMT_DIVERGENCE : SIMT_OK, "fault %d: %s", f, r.text);
            cr_expect(!f || strstr(r.text, says[f]), "fault %d: %s", f, r.text);
        }
}
