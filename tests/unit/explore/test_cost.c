/* SPDX-License-Identifier: Apache-2.0 */
/* test_cost.c - the model behind explanations. */
#include "explore/cost.h"
#include "lower/lower_impl.h"
#include "support/variant_fixture.h"

#include <ptxgen/ptxgen.h>

static struct work work_in(const char *text)
{
    SPEC_BEGIN(f);
    spec_build(&f, text);
    cr_assert_not_null(f.p, "%s", spec_text(&f));
    const struct work w = work_of(f.p, NULL, 90);
    spec_end(&f);
    return w;
}

static void check_work(const char *text, int flops, int integer, int special)
{
    const struct work w = work_in(text);
    cr_expect_eq(w.flops, flops, "%s: %d floating-point operations", text, w.flops);
    cr_expect_eq(w.integer, integer, "%s: %d integer operations", text, w.integer);
    cr_expect_eq(w.special, special, "%s: %d special operations", text, w.special);
}

Test(cost, operations_are_counted)
{
    check_work(SUM, 1, 0, 0);
    check_work("kind: reduce\ninputs: {x: 'f32[n]', y: 'f32[n]'}\nmap: x * y\noperator: add\noutputs: {dot: f32}\n", 2,
               0, 0);
    check_work("kind: reduce\ninputs: {x: 'i32[n]'}\nmap: max(x, 3)\noperator: add\noutputs: {s: i32}\n", 0, 2, 0);
    check_work("kind: reduce\ninputs: {x: 'f32[n]'}\nlet: {t: exp(x) / 2.0}\nmap: t * t + t\noperator: add\noutputs: "
               "{s: f32}\n",
               3, 0, 2);
    check_work("kind: reduce\ninputs: {x: 'f32[n]'}\nmap: 'fma(x, x, 1.0)'\noperator: max\noutputs: {s: f32}\n", 3, 0,
               0);
    check_work(STENCIL, 1, 0, 0);
    check_work(AFFINE, 0, 2, 0);
    check_work("kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {s: {type: f32, value: sqrt(r)}, y: "
               "{type: 'f32[n]', value: x * 2.0}}\n",
               2, 0, 0);
}

Test(cost, wide_operations_cost_more)
{
    const double narrow = work_in("kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {s: f32}\n").slots;
    const double wide = work_in("kind: reduce\ninputs: {x: 'f64[n]'}\noperator: add\noutputs: {s: f64}\n").slots;
    cr_expect_eq(wide, 2 * narrow, "sm_90 adds f64 at half the rate");
}

Test(cost, roofline_of_a_read_and_of_a_copy)
{
    struct gpu_model m;
    const int64_t n = 1 << 28;
    cr_assert(gpu_model_find("NVIDIA H200", 90, NULL, &m) && m.measured);
    SPEC_BEGIN(f);
    spec_build(&f, SUM);
    struct roofline r = roofline_of(f.p, &n, &m);
    cr_expect_eq(r.read, 4 * n);
    cr_expect_eq(r.written, 4);
    cr_expect(r.seconds > 231e-6 && r.seconds < 236e-6, "%g", r.seconds);
    spec_end(&f);
    SPEC_BEGIN(g);
    spec_build(&g, "kind: scan\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {y: 'f32[n]'}\n");
    r = roofline_of(g.p, &n, &m);
    cr_expect(r.seconds > 504e-6 && r.seconds < 510e-6, "%g", r.seconds);
    spec_end(&g);
}

Test(cost, gpus_are_found_by_name_and_facts)
{
    struct gpu_model m;
    cr_expect(gpu_model_find("NVIDIA L40S", 0, NULL, &m) && m.sms == 142);
    cr_expect(gpu_model_find("NVIDIA L4", 0, NULL, &m) && m.sms == 58);
    cr_expect(gpu_model_find("h100 pcie", 0, NULL, &m) && m.sms == 114);
    cr_expect_not(gpu_model_find("H2000", 90, NULL, &m));
    cr_expect(gpu_model_find(NULL, 80, NULL, &m) && !m.measured && !strcmp(m.name, "A100"));
    const struct gpu_facts facts = { "NVIDIA Future", 90, 66, 1 << 20, 1000000, 1024 };
    cr_expect(gpu_model_find(NULL, 90, &facts, &m) && m.sms == 66 && m.read > 0.9 * 256e9 && m.read < 256e9, "%g",
              m.read);
    const struct gpu_facts silent = { "NVIDIA Future", 90, 66, 1 << 20, 0, 0 };
    cr_expect_not(gpu_model_find(NULL, 90, &silent, &m));
}

Test(cost, occupancy_names_what_runs_out)
{
    const struct device d = device_of("sm_90"), small = device_of("sm_75");
    struct occupancy o = occupancy_of(&d, 256, 64, 0);
    cr_expect(o.blocks == 4 && !strcmp(o.limit, "registers") && o.warps == 0.5);
    o = occupancy_of(&d, 1024, 0, 0);
    cr_expect(o.blocks == 2 && !strcmp(o.limit, "threads") && o.warps == 1);
    o = occupancy_of(&d, 128, 32, 100 * 1024);
    cr_expect(o.blocks == 2 && !strcmp(o.limit, "shared memory"));
    o = occupancy_of(&d, 32, 16, 0);
    cr_expect(o.blocks == 32 && !strcmp(o.limit, "blocks"));
    o = occupancy_of(&small, 1024, 33, 0);
    cr_expect(o.blocks == 1);
}

Test(cost, predictions_follow_launches_and_passes)
{
    struct gpu_model m;
    const int64_t n = 1 << 26;
    cr_assert(gpu_model_find("H200", 90, NULL, &m));
    SPEC_BEGIN(f);
    spec_build(&f, "kind: scan\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {y: 'f32[n]'}\n");
    const struct device d = device_of("sm_90");
    const struct tunable one = { "strategy", "scan.lookback", span_none() },
                         three = { "strategy", "scan.three_pass", span_none() };
    const struct plan *a = plan_create(&f.s, f.p, &d, &(struct plan_options){ .nset = 1, .set = &one });
    const struct plan *b = plan_create(&f.s, f.p, &d, &(struct plan_options){ .nset = 1, .set = &three });
    cr_assert(a && b);
    const struct prediction single = predict(a, &n, NULL, &m, NULL), several = predict(b, &n, NULL, &m, NULL);
    cr_expect(single.launches == 1 && single.passes == 1);
    cr_expect(several.launches == 3 && several.passes == 2, "%d launches, %g passes", several.launches, several.passes);
    cr_expect_gt(several.seconds, 1.5 * single.seconds);
    const struct roofline least = roofline_of(f.p, &n, &m);
    cr_expect_geq(single.seconds, least.seconds);
    spec_end(&f);
}
