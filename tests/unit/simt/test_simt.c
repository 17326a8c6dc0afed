/* SPDX-License-Identifier: Apache-2.0 */
/* The host executor: right kernels pass in every mode, and each fault is found by some mode. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/resource.h>

#include "support/simt_kernels.h"

enum { N = 9 * 64 * 2 + 77, N_CLUSTER = 8 * 64, N_DEPENDENT = 9 * 64, OUT_MAX = N };

struct subject {
    const struct machine *machine;
    int n, nout;
};
static const struct subject reduce_block_s = { &BLOCK, N, 1 }, reduce_last_s = { &LAST, N, 1 },
                            scan_s = { &SCAN, N, N }, cluster_s = { &CLUSTER, N_CLUSTER, 8 },
                            dependent_s = { &DEPENDENT, N_DEPENDENT, N_DEPENDENT };

static void make_input(int32_t *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = (int32_t)((uint32_t)i * 2654435761u >> 20) - 1000;
}

static void expected(const struct subject *s, const int32_t *x, int32_t *want)
{
    memset(want, 0, sizeof *want * (size_t)s->nout);
    for (int i = 0; i < s->n; i++) {
        if (s->machine == &SCAN)
            want[i] = x[i] + (i ? want[i - 1] : 0);
        else if (s->machine == &CLUSTER)
            want[(i / 256) * 4 + (i / 64 + 3) % 4] += x[i];
        else if (s->machine == &DEPENDENT)
            want[i / 64 * 64 + 63 - i % 64] = 2 * x[i];
        else
            want[0] += x[i];
    }
}

/* Runs twice on one control memory; true when both results are right and nothing was found. */
static bool passes(const struct subject *s, int fault, const struct simt_options *o, struct simt_report *r)
{
    int32_t x[OUT_MAX], want[OUT_MAX], got[OUT_MAX];
    bool good = true;
    struct simt_control *control = simt_control_create();
    make_input(x, s->n);
    expected(s, x, want);
    for (int again = 0; again < 2 && good; again++) {
        memset(got, 0x55, sizeof got);
        good = run_machine(s->machine, fault, x, s->n, got, s->nout, control, o, r) == SIMT_OK &&
               memcmp(got, want, sizeof *got * (size_t)s->nout) == 0;
    }
    simt_control_destroy(control);
    return good;
}

/* ---- right kernels --------------------------------------------------------------------------- */
Test(simt, right_kernels_pass_in_every_mode)
{
    static const struct subject *const subjects[] = { &reduce_block_s, &reduce_last_s, &scan_s, &cluster_s,
                                                      &dependent_s };
    static const char *const sets[] = { "",
                                        "race",
                                        "weak",
                                        "stale",
                                        "weak,stale",
                                        "uninit",
                                        "late",
                                        "all",
                                        "all,resident:1,sms:2",
                                        "all,sms:1,resident:1" };
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        for (size_t m = 0; m < sizeof sets / sizeof *sets; m++)
            for (uint64_t seed = 0; seed < 12; seed++) {
                const struct simt_options o = modes(sets[m], seed);
                struct simt_report r;
                cr_assert(passes(subjects[i], 0, &o, &r), "%s [%s] seed %d: %s", subjects[i]->machine->name, sets[m],
                          (int)seed, r.what ? r.text : "wrong result");
            }
}

Test(simt, no_false_alarms_over_many_seeds)
{
    static const struct subject *const subjects[] = { &reduce_last_s, &scan_s, &cluster_s, &dependent_s };
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        for (uint64_t seed = 100; seed < 200; seed++) {
            const struct simt_options o = modes("all", seed);
            struct simt_report r;
            cr_assert(passes(subjects[i], 0, &o, &r), "%s seed %d: %s", subjects[i]->machine->name, (int)seed,
                      r.what ? r.text : "wrong result");
        }
}

Test(simt, starting_early_is_allowed)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        const struct simt_options o = modes("all", seed);
        struct simt_report r;
        cr_assert(passes(&dependent_s, 3, &o, &r), "seed %d: %s", (int)seed, r.what ? r.text : "wrong result");
    }
}

/* ---- faults that some mode must notice ------------------------------------------------------- */
static const struct fault_row {
    const struct subject *subject;
    int fault;
    const char *modes;
    int what;            /* SIMT_OK: a wrong result will do */
    int at_least;        /* of 50 seeds */
    const char *mention; /* in the report */
} fault_rows[] = {
    { &reduce_block_s, 1, "race", SIMT_RACE, 50, "'part'" },
    { &reduce_block_s, 1, "uninit", SIMT_UNINIT, 25, "'part'" },
    { &reduce_block_s, 1, "", SIMT_OK, 25, NULL },
    { &reduce_last_s, 2, "weak", SIMT_OK, 25, NULL },
    { &reduce_last_s, 3, "stale", SIMT_OK, 40, NULL },
    { &reduce_last_s, 4, "race", SIMT_OK, 50, NULL },
    { &reduce_last_s, 5, "", SIMT_OK, 50, NULL },
    { &reduce_last_s, 6, "weak", SIMT_OK, 25, NULL },
    { &scan_s, 1, "weak", SIMT_OK, 25, NULL },
    { &scan_s, 2, "stale", SIMT_OK, 25, NULL },
    { &scan_s, 3, "race", SIMT_RACE, 50, "'sums'" },
    { &scan_s, 4, "", SIMT_OK, 25, NULL },
    { &scan_s, 4, "uninit,no-bounds", SIMT_OK, 25, NULL },
    { &cluster_s, 1, "", SIMT_RACE, 50, "may not have started" },
    { &cluster_s, 3, "race", SIMT_RACE, 50, "block" },
    { &cluster_s, 3, "uninit", SIMT_UNINIT, 25, "'peer'" },
    { &cluster_s, 2, "", SIMT_RACE, 10, "has ended" },
    { &dependent_s, 1, "late", SIMT_RACE, 50, "'temp'" },
    { &dependent_s, 2, "late", SIMT_RACE, 50, "'temp'" },
};

Test(simt, faults_are_found)
{
    for (size_t i = 0; i < sizeof fault_rows / sizeof *fault_rows; i++) {
        const struct fault_row *row = &fault_rows[i];
        int found = 0;
        for (uint64_t seed = 1; seed <= 50; seed++) {
            const struct simt_options o = modes(row->modes, seed);
            struct simt_report r;
            const bool good = passes(row->subject, row->fault, &o, &r);
            const bool right_kind = row->what == SIMT_OK || ((int)r.what == row->what && strstr(r.text, row->mention));
            found += !good && right_kind;
        }
        cr_expect(found >= row->at_least, "%s fault %d [%s]: found in %d of 50", row->subject->machine->name,
                  row->fault, row->modes, found);
    }
}

/* ---- the same seed, the same run ------------------------------------------------------------- */
Test(simt, a_seed_determines_the_schedule)
{
    int differ = 0;
    for (uint64_t seed = 0; seed < 10; seed++) {
        const struct simt_options o = modes("all", seed), other = modes("all", seed + 50);
        struct simt_report a, b, c;
        passes(&scan_s, 0, &o, &a);
        passes(&scan_s, 0, &o, &b);
        passes(&scan_s, 0, &other, &c);
        cr_assert_eq(a.switches, b.switches);
        differ += a.switches != c.switches;
    }
    cr_assert_geq(differ, 8);
}

Test(simt, memory_depends_on_resident_blocks_only)
{
    struct machine many = LAST;
    many.blocks = 1 << 13;
    many.temp = many.blocks;
    const struct subject s = { &many, N, 1 };
    const struct simt_options o = modes("race,uninit,resident:1,sms:2", 3);
    struct simt_control *control = simt_control_create();
    struct simt_report r;
    int32_t x[N], want[1], got[1];
    make_input(x, N);
    expected(&s, x, want);
    cr_assert_eq(run_machine(&many, 0, x, N, got, 1, control, &o, &r), SIMT_OK, "%s", r.text);
    cr_assert_eq(got[0], want[0]);
    cr_assert_eq(control->exec.nslots, 2);
    simt_control_destroy(control);
}

/* Its next run begins on stacks whose memory is there, also where they are too many to be kept for others. */
Test(simt, many_threads_keep_their_stacks)
{
    struct machine many = LAST;
    many.blocks = many.temp = 64;
    const struct simt_options o = modes("sms:64,resident:1", 1);
    struct simt_control *control = simt_control_create();
    struct rusage before, after;
    struct simt_report r;
    int32_t x[N], got[1];
    make_input(x, N);
    for (int again = 0; again < 3; again++) {
        getrusage(RUSAGE_SELF, &before);
        cr_assert_eq(run_machine(&many, 0, x, N, got, 1, control, &o, &r), SIMT_OK, "%s", r.text);
        getrusage(RUSAGE_SELF, &after);
    }
    cr_assert_eq(control->exec.nslots * control->exec.slot_threads, 8192);
    cr_expect_lt(after.ru_minflt - before.ru_minflt, 4096);
    simt_control_destroy(control);
}

/* ---- several executors at once -------------------------------------------------------------------------------------- */
static void *run_seeds(void *result)
{
    uint64_t *switches = result;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        const struct simt_options o = modes("all", seed);
        struct simt_report r;
        *switches = passes(&scan_s, 0, &o, &r) ? *switches + r.switches : 0;
    }
    return NULL;
}

Test(simt, executors_of_different_threads_do_not_meet)
{
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    uint64_t switches[THREADS] = { 0 }, alone = 0;
    run_seeds(&alone);
    cr_assert_gt(alone, 0);
    for (int t = 0; t < THREADS; t++)
        cr_assert_eq(pthread_create(&thread[t], NULL, run_seeds, &switches[t]), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(thread[t], NULL);
    for (int t = 0; t < THREADS; t++)
        cr_expect_eq(switches[t], alone);
}
