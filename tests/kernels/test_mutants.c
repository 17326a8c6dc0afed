/* SPDX-License-Identifier: Apache-2.0 */
/* test_mutants.c - every barrier, fence, warp sync and counter reset of the emitters is needed, and some mode of the
 * host executor notices when it is missing.
 *
 * The builder numbers its ordering points; each is left out in turn, and the kernels run in all modes over some seeds.
 * A mutant is caught when a run reports a finding or gives another result than the whole kernel.  The list of mutants
 * and who caught them is printed. Exempt ones carry the reason.  PTXGEN_TEST_MUTANTS: seeds that the whole kernels run
 * with in each mode, all unless it is set.
 */
#include <stdio.h>
#include <string.h>

#include "support/subject_run.h"

/* Points that no mode can notice, with the reason. */
static const struct {
    const char *subject, *file; /* NULL: any */
    const char *text, *reason;
} exempt[] = {
    { "atomic", NULL, "release fence",
      "orders two read-modify-writes, which the executor performs one after the other" },
    { "atomic", NULL, "acquire fence",
      "orders two read-modify-writes, which the executor performs one after the other" },
    { "clusters_atomic", NULL, "release fence", "as above" },
    { "clusters_atomic", NULL, "acquire fence", "as above" },
    { "clusters_last_block", NULL, "acquire fence",
      "the cluster's barrier acquired just before, in the executor all that was written; `last_block` needs it" },
    { "resident_marks", "scan/resident.c", "barrier",
      "a segment begins in the places of every warp; `resident_gaps` needs it" },
    { "resident_gaps", "scan/block_marks.c", "barrier", "one batch holds all offsets; `resident_marks` needs it" },
    { "kept_block", "scan/block.c", "barrier",
      "tiles that keep values have met barriers since; `scan_block` needs it" },
    { NULL, "segscan/few_columns.c", ": barrier",
      "three warps read the last row, of which one overwrites it: the executor remembers two of them" },
    { NULL, "scan/ring.c", "warp sync", "the lanes have exchanged what they read by shuffles" },
    { NULL, NULL, "launch dependents", "only says that the next kernel may start; omitting it costs time" },
};

static const char *const modes[] = { "seed:%d,race,uninit", "seed:%d,weak", "seed:%d,stale", "seed:%d,late",
                                     "seed:%d,weak,stale,late" };
/* Some schedule of the first few notices nearly every mutant; the few that need luck get more of them. */
enum { NMODES = sizeof modes / sizeof *modes, SEEDS = 12, MUTANT_SEEDS = 48 };

/* Several launches on one control block, so that a counter that is not reset shows. False: a finding. */
static bool run(struct subject_run *r, struct host_code *h, struct simt_control *control, const char *mode, int seed,
                bool *same)
{
    char text[64];
    struct simt_options o;
    struct simt_report report = { 0 };
    snprintf(text, sizeof text, mode, seed);
    simt_options_default(&o);
    cr_assert_null(simt_options_parse(text, &o));
    *same = true;
    bool ok = true;
    for (int l = 0; ok && l < LAUNCHES; l++) {
        ok = run_once(r, h, l, control, &o, &report) == SIMT_OK;
        *same &= hash_outputs(r) == r->result[l];
    }
    return ok;
}

/* Which mode notices the missing point, with one of `seeds` seeds from *seed on; NULL: none.  The control block, and
 * with it the stacks of the threads, stay for all of them. */
static const char *caught_by(struct subject_run *r, struct host_code *h, int seeds, int *seed)
{
    const int first = *seed;
    struct simt_control *control = simt_control_create();
    const char *caught = NULL;
    for (int m = 0; m < NMODES && !caught; m++)
        for (*seed = first; *seed < first + seeds; ++*seed) {
            bool same;
            if (!run(r, h, control, modes[m], *seed, &same) || !same) {
                caught = modes[m];
                break;
            }
        }
    simt_control_destroy(control);
    return caught;
}

static const char *exempt_reason(const char *subject, const char *text)
{
    for (size_t i = 0; i < sizeof exempt / sizeof *exempt; i++)
        if ((!exempt[i].subject || !strcmp(exempt[i].subject, subject)) &&
            (!exempt[i].file || strstr(text, exempt[i].file)) && strstr(text, exempt[i].text))
            return exempt[i].reason;
    return NULL;
}

static void whole_kernel_is_clean(struct subject_run *r, const struct subject *sub, struct host_code *h)
{
    struct simt_options o;
    struct simt_report report;
    simt_options_default(&o);
    for (int l = 0; l < LAUNCHES; l++) {
        cr_assert_eq(run_once(r, h, l, NULL, &o, &report), SIMT_OK, "%s: %s", sub->name, report.text);
        r->result[l] = hash_outputs(r);
    }
    int seed = 1;
    const char *some = getenv("PTXGEN_TEST_MUTANTS");
    const char *mode = caught_by(r, h, some ? atoi(some) : SEEDS, &seed);
    cr_assert_null(mode, "%s: the whole kernel fails in mode %s, seed %d", sub->name, mode, seed);
}

/* Of the copies of a statement, unrolled or for several tables, some never run on so few elements: one has to be caught. */
static bool has_copies(const char *subject)
{
    return !strcmp(subject, "stencil_temporal") || !strcmp(subject, "bins_locked");
}

static bool same_is_caught(const struct host_code *whole, const bool *caught, int points, int point)
{
    bool same = false;
    for (int i = 1; i <= points && !same; i++)
        same = caught[i] && !strcmp(host_point_text(whole, i), host_point_text(whole, point));
    return same;
}

static bool is_caught(struct subject_run *r, const char *subject, const char *text, int point)
{
    const char *reason = exempt_reason(subject, text), *mode = NULL;
    struct host_code *mutant = build(r, point);
    for (int seed = 1; !mode && !reason && seed <= MUTANT_SEEDS; seed += SEEDS)
        mode = caught_by(r, mutant, SEEDS, &(int){ seed });
    fprintf(stderr, "%-10s %-48s %s%s\n", subject, text,
            mode     ? "caught by "
            : reason ? "exempt: "
                     : "NOT CAUGHT",
            mode     ? mode
            : reason ? reason
                     : "");
    host_destroy(mutant);
    return mode || reason;
}

static void test_subject(const struct subject *sub)
{
    enum { POINTS = 256 };
    bool caught[POINTS] = { false };
    struct subject_run r;
    open_subject(&r, sub, sub->cases);
    struct host_code *whole = build(&r, 0);
    cr_assert(whole);
    whole_kernel_is_clean(&r, sub, whole);
    const int points = host_points(whole);
    const bool copies = has_copies(sub->name);
    cr_assert(points > 0 && points < POINTS);
    for (int i = 1; i <= points; i++)
        if (!copies || !same_is_caught(whole, caught, i - 1, i))
            caught[i] = is_caught(&r, sub->name, host_point_text(whole, i), i);
    for (int i = 1; i <= points; i++)
        cr_expect(caught[i] || (copies && same_is_caught(whole, caught, points, i)),
                  "%s: nothing notices that %s is missing", sub->name, host_point_text(whole, i));
    host_destroy(whole);
    close_subject(&r);
}

static void test_named(const char *name)
{
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        if (!strcmp(subjects[i].name, name))
            test_subject(&subjects[i]);
}

#define SUBJECT(name, spec, arch, pins, cases, m, n)                                                                   \
    Test(mutants, name) { test_named(#name); }
#include "support/mutant_subjects.def"
