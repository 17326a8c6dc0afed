/* SPDX-License-Identifier: Apache-2.0 */
/* test_launch_numbers.c - what tells launches on one control region apart goes on when its numbers wrap.
 *
 * Words that blocks and tiles hand over bear a number of the launch, so that nobody takes one of an earlier launch for
 * a new one.  After 2^31 launches (tags of scans) or 2^32 a number begins anew, which no run is long enough to meet:
 * here the counter is set to just before.  That the number has the upper half of its word says that as many blocks as a
 * grid can have are counted below it.
 */
#include <stdio.h>

#include "simt/simt_impl.h"
#include "support/harness.h"
#include "support/subject_run.h"

enum { CONTROL_BYTES = 1 << 20, AROUND = 3, SEEDS = 4 };

static const char *const modes[] = { "seed:%d", "seed:%d,weak", "seed:%d,stale", "seed:%d,late" };

/* The only control buffer, at the beginning of the region: whose first word counts launches in its upper half. */
static bool counts_launches(const struct program *p)
{
    const char *name = NULL;
    int n = 0;
    for (int b = 0; p->ncases == 1 && b < p->cases[0].nbuffers; b++)
        if (p->cases[0].buffer[b].region == REGION_CONTROL) {
            name = p->cases[0].buffer[b].name;
            n++;
        }
    return n == 1 && (!strcmp(name, "words") || !strcmp(name, "states"));
}

/* Launches from number first - 1 on, on one control region: the first fills all words, later ones may find them. */
static void crosses(struct subject_run *r, struct host_code *h, const char *name, uint32_t wrap)
{
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++)
        for (int seed = 1; seed <= SEEDS; seed += harness_one_in("PTXGEN_TEST_SEEDS")) {
            char text[64];
            struct simt_options o;
            struct simt_report report = { 0 };
            snprintf(text, sizeof text, modes[m], seed);
            simt_options_default(&o);
            cr_assert_null(simt_options_parse(text, &o));
            struct simt_control *control = simt_control_create();
            cr_assert(simt_control_reserve(control, CONTROL_BYTES));
            uint64_t *word = (uint64_t *)(void *)control->memory;
            *word = (uint64_t)(wrap - AROUND) << 32;
            for (int l = 0; l < 2 * AROUND; l++) {
                const int data = l % LAUNCHES;
                cr_assert_eq(run_once(r, h, data, control, &o, &report), SIMT_OK, "%s: %s", name, report.text);
                cr_expect_eq(hash_outputs(r), r->result[data], "%s: %s, launch %u is wrong", name, text,
                             wrap - AROUND + (unsigned)l);
                cr_expect_eq(*word, (uint64_t)(wrap - AROUND + (unsigned)l + 1) << 32, "%s: its number is %llx", name,
                             (unsigned long long)*word);
            }
            simt_control_destroy(control);
        }
}

/* Some sizes are for a case that is not the first. */
static bool takes_first_case(struct subject_run *r, struct host_code *h, const struct simt_options *o)
{
    struct simt_report report = { 0 };
    run_once(r, h, 0, NULL, o, &report);
    return report.case_index == 0;
}

static void subject_wraps(const struct subject *sub, int *counting)
{
    struct subject_run r;
    struct simt_options o;
    struct simt_report report = { 0 };
    open_subject(&r, sub, FIRST);
    struct host_code *h = build(&r, 0);
    simt_options_default(&o);
    if (counts_launches(host_program(h)) && takes_first_case(&r, h, &o)) {
        for (int l = 0; l < LAUNCHES; l++) {
            cr_assert_eq(run_once(&r, h, l, NULL, &o, &report), SIMT_OK, "%s: %s", sub->name, report.text);
            r.result[l] = hash_outputs(&r);
        }
        crosses(&r, h, sub->name, UINT32_C(1) << 31);
        crosses(&r, h, sub->name, 0);
        *counting += 1;
    }
    host_destroy(h);
    close_subject(&r);
}

Test(launch_numbers, wrap)
{
    enum { AT_LEAST = 12 };
    int counting = 0;
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        subject_wraps(&subjects[i], &counting);
    cr_expect_geq(counting, AT_LEAST, "only %d of the subjects count launches", counting);
}
