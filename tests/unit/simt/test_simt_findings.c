/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of finding of the host executor: a small kernel that provokes it, and its twin that is right. */
#include <criterion/criterion.h>

#include "support/simt_harness.h"

#define X(i)       (ARG(int32_t *, ARG_X) + (i))
#define OUT(i)     (ARG(int32_t *, ARG_OUT) + (i))
#define TEMP(i)    (ARG(int32_t *, ARG_TEMP) + (i))
#define CONTROL(i) (ARG(int32_t *, ARG_CONTROL) + (i))
#define FAULT      ARG(int32_t, ARG_FAULT)

static void set_out(void *const *args, int32_t v) { ST(int32_t, OUT(simt_tid()), 0, "out", v); }

/* 1: nobody sets the flag; 2: polls without backoff; 3: spins on a compare-and-swap that never succeeds */
static void waits(void *const *args)
{
    if (simt_tid() == 0 && FAULT == 0)
        ST(int32_t, CONTROL(0), ORDERED(SIMT_RELEASE), "flag", 1);
    if (simt_tid() == 32 && FAULT != 3)
        while (!LD(int32_t, CONTROL(0), ORDERED(SIMT_ACQUIRE), "flag"))
            if (FAULT == 1)
                simt_backoff(10);
    if (simt_tid() == 32 && FAULT == 3)
        while (!*(int32_t *)simt_rmw(CONTROL(0), 4, 0, "flag"))
            ;
    set_out(args, 0);
}

/* 1: half of the block ends first; 2: a lane ends; 3: two barriers; 4: a lane is at a shuffle */
static void diverges(void *const *args)
{
    const uint32_t tid = simt_tid();
    set_out(args, 0);
    if ((FAULT == 2 && tid == 5) || (FAULT == 5 && tid >= 32))
        return;
    if (FAULT == 1 && tid >= 32)
        while (!LD(int32_t, CONTROL(0), ORDERED(SIMT_RELAXED), "flag"))
            simt_backoff(10);
    if (FAULT == 3 && tid >= 32)
        simt_barrier("second");
    else if (FAULT == 4 && tid == 7)
        simt_shfl(SIMT_SHFL_IDX, 0, 0, 32);
    else
        simt_barrier("first");
}

/* 1: other operation; 2: other width; 3: a lane ends; 4: a lane waits at a barrier */
static void disagrees(void *const *args)
{
    const uint32_t tid = simt_tid();
    set_out(args, 0);
    if (tid == 40 && FAULT == 1)
        simt_vote(SIMT_VOTE_ANY, 1);
    else if (tid == 40 && FAULT == 2)
        simt_shfl(SIMT_SHFL_XOR, tid, 1, 16);
    else if (tid == 40 && FAULT == 4)
        simt_barrier("elsewhere");
    else if (tid != 40 || FAULT != 3)
        simt_shfl(SIMT_SHFL_XOR, tid, 1, 32);
}

/* 1: behind x; 2: before x; 3: writes x; 4: behind shared memory; 5: misaligned; 6: no such memory; 7: unknown rank */
static void strays(void *const *args)
{
    const uint32_t tid = simt_tid();
    int32_t v = LD(int32_t, X(tid + (FAULT == 1)), 0, "x");
    if (FAULT == 2)
        v += LD(int32_t, X(-1), 0, "x");
    if (FAULT == 3)
        ST(int32_t, X(tid), 0, "x", v);
    ST(int32_t, (int32_t *)simt_shared() + tid + (FAULT == 4), SIMT_SHARED, "s", v);
    if (FAULT == 5)
        simt_load((char *)X(0) + 2, 4, ALIGN_OF(int32_t), "x");
    if (FAULT == 6)
        v += LD(int32_t, (uintptr_t)64, 0, "lost");
    if (FAULT == 7)
        simt_cluster_map(simt_shared(), 1);
    set_out(args, v);
}

/* 1: shared memory; 2: scratch; 3: an output; 4: part of a wide read */
static void reads_nothing(void *const *args)
{
    const uint32_t tid = simt_tid();
    int32_t *shared = simt_shared(), v = 0;
    if (FAULT == 4 && tid == 0)
        ST(int16_t, shared, SIMT_SHARED, "s", 1);
    else if (FAULT != 1)
        ST(int32_t, shared + tid, SIMT_SHARED, "s", 1);
    v += LD(int32_t, shared + tid, SIMT_SHARED, "s");
    if (FAULT != 2)
        ST(int32_t, TEMP(tid), 0, "temp", v);
    v += LD(int32_t, TEMP(tid), 0, "temp");
    if (FAULT != 3)
        set_out(args, v);
    set_out(args, LD(int32_t, OUT(tid), 0, "out"));
}

/* 1: write after write; 2: write after read; 3: within a warp, no sync; 4: plain beside atomic; 5: the same of two bytes
 * of a word, which an atomic operation takes whole. (Plain bytes of one word are no race.) */
static void races(void *const *args)
{
    const uint32_t tid = simt_tid();
    int32_t *shared = simt_shared();
    set_out(args, 0);
    ST(int32_t, shared + (FAULT == 1 ? 0 : tid), SIMT_SHARED, "s", 1);
    if (FAULT != 3)
        simt_warp_sync("s is written");
    const int32_t v = LD(int32_t, shared + (tid ^ 1), SIMT_SHARED, "s");
    if (FAULT != 2)
        simt_barrier("s is read");
    ST(int32_t, shared + tid, SIMT_SHARED, "s", v);
    simt_barrier("s is free");
    rmw_add(shared, 1, SIMT_SHARED, "sum");
    if (FAULT == 4 && tid == 63)
        ST(int32_t, shared, SIMT_SHARED, "sum", 0);
    simt_barrier("the sum is complete");
    if (FAULT == 5 && tid == 62)
        simt_cas_part((int8_t *)shared + tid, 1, SIMT_SHARED, "bytes", 0, 1);
    else
        ST(int8_t, (int8_t *)shared + tid, SIMT_SHARED, "bytes", 1);
}

__attribute__((noinline)) static int32_t big_frame(const int32_t *x)
{
    volatile char local[518000]; /* of the 512 KiB of a stack */
    local[0] = 1;
    local[517999] = LD(int32_t, x, 0, "x") != 0;
    return local[0] + local[517999];
}

/* 1: an address that no check sees; 2: too much stack; 3: waits for a cluster without arriving */
static void breaks(void *const *args)
{
    static volatile uintptr_t unmapped = 16;
    if (FAULT == 1 && simt_tid() == 40)
        *(volatile int *)unmapped = 1;
    if (FAULT == 3)
        simt_cluster_wait("never arrived");
    set_out(args, FAULT == 2 ? big_frame(X(0)) : 0);
}

static const struct row {
    host_kernel kernel;
    const char *name;
    int fault;
    const char *modes;
    int what;
    const char *mention;
} rows[] = {
    { waits, "waits", 0, "all", SIMT_OK, NULL },
    { waits, "waits", 1, "", SIMT_DEADLOCK, "without end" },
    { waits, "waits", 2, "", SIMT_DEADLOCK, "thread 32 polls 'flag'" },
    { waits, "waits", 2, "weak,stale", SIMT_DEADLOCK, "'flag'" },
    { waits, "waits", 3, "", SIMT_DEADLOCK, "'flag'" },
    { diverges, "diverges", 0, "all", SIMT_OK, NULL },
    { diverges, "diverges", 1, "", SIMT_DEADLOCK, "end" },
    { diverges, "diverges", 2, "", SIMT_DIVERGENCE, "barrier first" },
    { diverges, "diverges", 3, "", SIMT_DIVERGENCE, "barrier" },
    { diverges, "diverges", 4, "", SIMT_DIVERGENCE, "shuffle" },
    { diverges, "diverges", 5, "", SIMT_OK, NULL }, /* whole warps may end */
    { disagrees, "disagrees", 0, "all", SIMT_OK, NULL },
    { disagrees, "disagrees", 1, "", SIMT_DIVERGENCE, "vote any" },
    { disagrees, "disagrees", 2, "", SIMT_DIVERGENCE, "width 16" },
    { disagrees, "disagrees", 3, "", SIMT_DIVERGENCE, "lanes" },
    { disagrees, "disagrees", 4, "", SIMT_DIVERGENCE, "elsewhere" },
    { strays, "strays", 0, "all", SIMT_OK, NULL },
    { strays, "strays", 1, "", SIMT_BOUNDS, "'x' of 256 bytes, at byte 256" },
    { strays, "strays", 1, "guard", SIMT_BOUNDS, "at byte 256" },
    { strays, "strays", 2, "", SIMT_BOUNDS, "at byte -4" },
    { strays, "strays", 3, "", SIMT_BOUNDS, "input 'x'" },
    { strays, "strays", 4, "", SIMT_BOUNDS, "shared memory: at byte 256 of 256" },
    { strays, "strays", 5, "", SIMT_BOUNDS, "multiple of 4" },
    { strays, "strays", 6, "", SIMT_BOUNDS, "'lost'" },
    { strays, "strays", 7, "", SIMT_BOUNDS, "block 1 of a cluster of 1" },
    { reads_nothing, "reads_nothing", 0, "all", SIMT_OK, NULL },
    { reads_nothing, "reads_nothing", 1, "uninit", SIMT_UNINIT, "'s' (shared byte" },
    { reads_nothing, "reads_nothing", 2, "uninit", SIMT_UNINIT, "'temp'" },
    { reads_nothing, "reads_nothing", 3, "uninit", SIMT_UNINIT, "'out'" },
    { reads_nothing, "reads_nothing", 4, "uninit", SIMT_UNINIT, "shared byte 2" },
    { races, "races", 0, "all", SIMT_OK, NULL },
    { races, "races", 1, "race", SIMT_RACE, "writes 's'" },
    { races, "races", 2, "race", SIMT_RACE, "'s' (shared byte" },
    { races, "races", 3, "race", SIMT_RACE, "'s' (shared byte" },
    { races, "races", 4, "race", SIMT_RACE, "'sum'" },
    { races, "races", 5, "race", SIMT_RACE, "'bytes'" },
    { breaks, "breaks", 0, "all", SIMT_OK, NULL },
    { breaks, "breaks", 0, "all,guard", SIMT_OK, NULL },
    { breaks, "breaks", 1, "guard", SIMT_CRASH, "thread 40: signal 11" },
    { breaks, "breaks", 2, "", SIMT_CRASH, "stack" },
    { breaks, "breaks", 3, "", SIMT_DIVERGENCE, "without having arrived" },
    { strays, "strays", 1, "no-bounds,guard", SIMT_CRASH, "signal 11" },
};

Test(simt_findings, each_fault_is_named)
{
    static const uint64_t seeds[] = { 0, 1, 2, 3 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        const struct machine m = { row->name, 1, { row->kernel }, 64, 1, 256, 0, 64, 1, false };
        for (size_t s = 0; s < sizeof seeds / sizeof *seeds; s++) {
            int32_t memory[3 * 64] = { 0 }, *x = memory, *out = memory + 128; /* no array begins where another ends */
            const struct simt_options o = modes(row->modes, seeds[s]);
            struct simt_report r;
            run_machine(&m, row->fault, x, 64, out, 64, NULL, &o, &r);
            cr_expect((int)r.what == row->what, "%s %d [%s] seed %d: %d \"%s\"", row->name, row->fault, row->modes,
                      (int)seeds[s], (int)r.what, r.text);
            if (row->mention && (int)r.what == row->what)
                cr_expect(strstr(r.text, row->mention), "%s %d: \"%s\" does not say \"%s\"", row->name, row->fault,
                          r.text, row->mention);
            if (row->what != SIMT_OK)
                cr_expect(strstr(r.text, row->name), "\"%s\" does not name the kernel", r.text);
        }
    }
}

/* ---- results of warp operations -------------------------------------------------------------- */
static void shuffles(void *const *args)
{
    const uint32_t tid = simt_tid(), width = (uint32_t)FAULT, lane = tid % 32;
    const uint32_t got[] = {
        simt_shfl(SIMT_SHFL_IDX, tid, 3, width),
        simt_shfl(SIMT_SHFL_UP, tid, 3, width),
        simt_shfl(SIMT_SHFL_DOWN, tid, 3, width),
        simt_shfl(SIMT_SHFL_XOR, tid, 3, width),
    };
    const uint32_t first = tid - lane % width, in = lane % width;
    const uint32_t want[] = {
        first + 3 % width,
        in >= 3 ? tid - 3 : tid,
        in + 3 < width ? tid + 3 : tid,
        (lane ^ 3) / width == lane / width ? tid ^ 3 : tid,
    };
    int32_t bad = 0;
    for (int i = 0; i < 4; i++)
        bad |= (got[i] != want[i]) << i;
    bad |= (simt_vote(SIMT_VOTE_BALLOT, lane % 3 == 0) != 0x49249249u) << 4;
    bad |= (simt_vote(SIMT_VOTE_ANY, lane == 31) != 1 || simt_vote(SIMT_VOTE_ANY, 0) != 0) << 5;
    bad |= (simt_vote(SIMT_VOTE_ALL, lane != 31) != 0 || simt_vote(SIMT_VOTE_ALL, 1) != 1) << 6;
    bad |= (simt_redux(SIMT_REDUX_ADD, 0, lane) != 496) << 7;
    bad |= (simt_redux(SIMT_REDUX_MIN, 1, lane - 5) != (uint32_t)-5) << 8;
    bad |= (simt_redux(SIMT_REDUX_MIN, 0, lane - 5) != 0) << 9;
    bad |= (simt_redux(SIMT_REDUX_MAX, 1, lane - 5) != 26) << 10;
    bad |= (simt_redux(SIMT_REDUX_XOR, 0, lane == 4 ? 6 : 0) != 6) << 11;
    set_out(args, bad);
}

Test(simt_findings, warp_operations_compute)
{
    static const struct machine m = { "shuffles", 1, { shuffles }, 64, 1, 0, 0, 1, 1, false };
    for (int width = 4; width <= 32; width *= 2)
        for (uint64_t seed = 0; seed < 5; seed++) {
            int32_t x[1] = { 0 }, out[64];
            const struct simt_options o = modes("", seed);
            struct simt_report r;
            cr_assert_eq(run_machine(&m, width, x, 1, out, 64, NULL, &o, &r), SIMT_OK, "%s", r.text);
            for (int i = 0; i < 64; i++)
                cr_assert_eq(out[i], 0, "width %d thread %d: %x", width, i, (unsigned)out[i]);
        }
}

/* ---- elements that are parts of words -------------------------------------------------------- */

/* Every thread adds 1 to a byte and to a half of 2 bytes, which share words with those of others. */
static void parts(void *const *args)
{
    uint8_t *byte = (uint8_t *)OUT(0) + simt_tid() % 5, *half = (uint8_t *)OUT(2) + simt_tid() % 3 * 2;
    for (uint32_t seen = *(uint8_t *)simt_load(byte, 1, ORDERED(SIMT_RELAXED), "byte"), got = 256; got != seen;) {
        seen = got < 256 ? got : seen;
        got = simt_cas_part(byte, 1, 0, "byte", seen, (seen + 1) & 255);
    }
    for (uint32_t seen = *(uint16_t *)simt_load(half, 2, ORDERED(SIMT_RELAXED), "half"), got = 1 << 16; got != seen;) {
        seen = got < 1 << 16 ? got : seen;
        got = simt_cas_part(half, 2, 0, "half", seen, (seen + 1) & 65535);
    }
}

Test(simt_findings, parts_of_words_meet)
{
    static const struct machine m = { "parts", 1, { parts }, 64, 1, 0, 0, 1, 1, false };
    static const char *const mode[] = { "", "weak", "stale,late" };
    for (uint64_t seed = 0; seed < 30; seed++) {
        int32_t x[1] = { 0 }, out[4] = { 0 };
        uint8_t byte[5];
        uint16_t half[3];
        const struct simt_options o = modes(mode[seed % 3], seed);
        struct simt_report r;
        cr_assert_eq(run_machine(&m, 0, x, 1, out, 4, NULL, &o, &r), SIMT_OK, "%s", r.text);
        memcpy(byte, out, sizeof byte);
        memcpy(half, out + 2, sizeof half);
        for (int i = 0; i < 5; i++)
            cr_assert_eq(byte[i], 13 - (i == 4), "seed %d, byte %d: %d", (int)seed, i, byte[i]);
        for (int i = 0; i < 3; i++)
            cr_assert_eq(half[i], 21 + (i == 0), "seed %d, half %d: %d", (int)seed, i, half[i]);
    }
}

/* ---- options --------------------------------------------------------------------------------- */
Test(simt_findings, options_parse)
{
    struct simt_options o;
    simt_options_default(&o);
    cr_assert_null(simt_options_parse("seed:7,race,weak,resident:3,no-bounds", &o));
    cr_assert(o.seed == 7 && o.race && o.weak && o.resident == 3 && !o.bounds && !o.stale);
    cr_assert_null(simt_options_parse("", &o));
    cr_assert_null(simt_options_parse(NULL, &o));
    static const char *const wrong[] = { "sed:7",      "seed:", "seed:x",  "race:1", "resident:0",
                                         "sms:100000", "rac",   "seed:7x", "no-all", "seed:99999999999999999999" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect_not_null(simt_options_parse(wrong[i], &o), "'%s' is taken", wrong[i]);
}
