/* SPDX-License-Identifier: Apache-2.0 */
/* test_known_sizes.c - the cases and kernels that known sizes, and promises, leave of a plan. */
#include "lower/lower_impl.h"
#include "support/variant_fixture.h"

#include <stdio.h>
#include <string.h>

/* Arrays may lie anywhere, and the device may be any: what is left takes every launch at the size. */
Test(known_sizes, a_known_size_leaves_the_cases_that_it_can_take)
{
    static const char scan[] = "kind: scan\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {y: 'f32[n]'}\n";
    const struct device d = device_of("sm_90");
    const int64_t short_one = 512, long_one = 1 << 20;
    SPEC_BEGIN(f);
    spec_build(&f, scan);
    const struct plan *all = plan_create(&f.s, f.p, &d, NULL);
    const struct plan *few = plan_create(&f.s, f.p, &d, &(struct plan_options){ .size = &short_one });
    const struct plan *any = plan_create(&f.s, f.p, &d, &(struct plan_options){ .size = &long_one });
    const struct plan *sms = plan_create(&f.s, f.p, &d, &(struct plan_options){ .size = &long_one, .sms = 132 });
    cr_assert(all && few && any && sms);
    cr_expect_geq(all->ncases, 8);
    cr_expect_eq(few->ncases, 2, "aligned or not");
    cr_expect_str_eq(few->cases[1].code.name, "small_unaligned");
    cr_expect(any->ncases < all->ncases && any->ncases > sms->ncases);
    cr_expect_eq(sms->ncases, 2);
    spec_end(&f);
}

static int cases_of(const struct plan *plan, const char *strategy)
{
    int n = 0;
    for (int c = 0; c < plan->ncases; c++)
        n += !strcmp(plan->cases[c].strategy->name, strategy);
    return n;
}

/* Few rows are those of which a device has more, by their length: no rows of 500 are. */
Test(known_sizes, conditions_that_no_device_meets)
{
    static const char rows[] = "kind: scan\ninputs: {x: 'f32[m, n]'}\nover: n\noperator: add\n"
                               "outputs: {y: 'f32[m, n]'}\n";
    static const char *const fact[] = { "", "assume: {n: {max: 8000}}\n" };
    const struct device d = device_of("sm_90");
    for (int i = 0; i < 2; i++) {
        char text[400];
        snprintf(text, sizeof text, "%s%s", rows, fact[i]);
        SPEC_BEGIN(f);
        spec_build(&f, text);
        const int64_t any[] = { -1, -1 }, narrow[] = { -1, 500 };
        const struct plan *all = plan_create(&f.s, f.p, &d, &(struct plan_options){ .size = any });
        const struct plan *few = plan_create(&f.s, f.p, &d, &(struct plan_options){ .size = narrow });
        cr_assert(all && few);
        cr_expect_eq(cases_of(all, "scan.resident") > 0, i == 0, "%s", fact[i]);
        cr_expect(cases_of(few, "scan.resident") == 0 && cases_of(few, "scan.block") == 0);
        cr_expect_eq(few->ncases, 2, "aligned or not");
        spec_end(&f);
    }
}

/* Tiles of `long` that are no larger than those of `upper`, as registers leave them to two scans: that comes first. */
Test(known_sizes, no_case_stands_behind_one_that_takes_all_of_its_sizes)
{
    static const char *const scans[] = { "{low: {map: x, operator: min}}",
                                         "{low: {map: x, operator: min}, sum: {map: x, operator: add}}" };
    const struct device d = device_of("sm_90");
    for (int i = 0; i < 2; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "kind: scan\ninputs: {x: 'f32[m, n]'}\nscans: %s\nover: n\noutputs: {low: 'f32[m, n]'%s}\n", scans[i],
                 i ? ", sum: 'f32[m, n]'" : "");
        SPEC_BEGIN(f);
        spec_build(&f, text);
        const struct plan *plan = plan_create(&f.s, f.p, &d, NULL);
        cr_assert_not_null(plan);
        bool upper = false, longer = false;
        for (int c = 0; c < plan->ncases; c++) {
            upper |= !strcmp(plan->cases[c].code.name, "upper");
            longer |= !strcmp(plan->cases[c].code.name, "long");
        }
        cr_expect(upper && longer == (i == 0), "%s", scans[i]);
        spec_end(&f);
    }
}

/* Eight steps at once pay at 2^21 points. */
Test(known_sizes, kernels_of_steps_that_a_size_takes)
{
    static const char steps[] = "kind: stencil\ninputs: {u: 'f32[m, n]'}\nparams: {steps: i32}\nboundary: clamp\n"
                                "outputs: {out: {type: 'f32[m, n]', value: 'u[-1, 0] + u[1, 0]'}}\n"
                                "iterate: {steps: steps, feedback: {u: out}}\n";
    const struct device d = device_of("sm_90");
    SPEC_BEGIN(f);
    spec_build(&f, steps);
    const int64_t any[] = { -1, -1 }, small[] = { 1024, 1024 }, large[] = { 4096, 4096 };
    const int64_t *const size[] = { any, small, large };
    for (int i = 0; i < 3; i++) {
        const struct plan *plan = plan_create(&f.s, f.p, &d, &(struct plan_options){ .size = size[i] });
        cr_assert_not_null(plan);
        cr_expect_str_eq(plan->cases[0].strategy->name, "stencil.temporal");
        cr_expect_str_eq(strrchr(plan->cases[0].code.kernel[0].name, '_'), i == 1 ? "_steps4" : "_steps8");
    }
    spec_end(&f);
}

Test(known_sizes, what_is_assumed_leaves_the_cases_that_it_allows)
{
#define X_AND_Y "x: {aligned: 16}, y: {aligned: 16}"
    static const char *const fact[] = { "", "x: {aligned: 16}", X_AND_Y, X_AND_Y ", n: {multiple_of: 4}" };
    const struct device d = device_of("sm_90");
    int unaligned[4] = { 0 };
    for (int i = 0; i < 4; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "kind: scan\ninputs: {x: 'f32[m, n]'}\nover: n\noperator: add\n"
                 "outputs: {y: 'f32[m, n]'}\nassume: {%s}\n",
                 fact[i]);
        SPEC_BEGIN(f);
        spec_build(&f, text);
        const struct plan *plan = plan_create(&f.s, f.p, &d, NULL);
        cr_assert_not_null(plan);
        for (int c = 0; c < plan->ncases; c++)
            unaligned[i] += strstr(plan->cases[c].code.name, "unaligned") != NULL;
        spec_end(&f);
    }
    cr_expect(unaligned[0] >= unaligned[1] && unaligned[1] > unaligned[2] && unaligned[2] > 0);
    cr_expect_eq(unaligned[3], 0, "rows of a multiple of 4 begin at multiples of 16 bytes");
}
