/* SPDX-License-Identifier: Apache-2.0 */
/* test_cost.c - the model behind explanations. */
#include "explore/cost.h"
#include "lower/lower_impl.h"
#include "support/variant_fixture.h"

#include <ptxgen/ptxgen.h>
#include <stdio.h>

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
    /* a state has one loop for all its fields, and a let of its operator is computed once */
    check_work(
        "kind: stencil\ninputs: {x: 'f32[n]', off: 'i32[p]'}\nlet: {g: 'gather(x, off, k, both, k * k, 1)'}\n"
        "operators: {both: {state: {s: f32, c: i32}, identity: {s: 0, c: 0}, let: {t: a.s + b.s}, combine: {s: t, "
        "c: a.c + b.c + i32(t)}}}\n"
        "outputs: {y: {type: 'f32[n]', value: 'g.s + f32(g.c)'}, z: {type: 'i32[n]', value: g.c}}\n",
        3, 4, 0);
}

Test(cost, wide_operations_cost_more)
{
    const double narrow = work_in("kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {s: f32}\n").slots;
    const double wide = work_in("kind: reduce\ninputs: {x: 'f64[n]'}\noperator: add\noutputs: {s: f64}\n").slots;
    cr_expect_eq(wide, 2 * narrow, "sm_90 adds f64 at half the rate");
}

Test(cost, the_least_work_fuses_and_overlaps)
{
    cr_expect_eq(work_in("kind: reduce\ninputs: {x: 'f32[n]'}\nmap: x * x\noperator: add\noutputs: {s: f32}\n").least,
                 1);
    cr_expect_eq(work_in("kind: reduce\ninputs: {x: 'f32[n]'}\nmap: exp(x)\noperator: add\noutputs: {s: f32}\n").least,
                 8);
    cr_expect_eq(work_in("kind: reduce\ninputs: {x: 'i32[n]'}\nmap: x & 7\noperator: add\noutputs: {s: i32}\n").least,
                 0);
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
    cr_expect(m.clock > 1e9 && m.clock < 3e9 && m.l2_rate > 2e12 && m.l2_rate < 5e12, "%g, %g", m.clock, m.l2_rate);
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

/* The default plan's prediction for an H200 at these sizes; of the roofline.  known: of the kernel that is taken. */
static struct prediction predict_at(const char *text, const int64_t *size, ptxgen_kernel_resources *known,
                                    double *of_least)
{
    const struct resources r = { known != NULL, known };
    struct gpu_model m;
    cr_assert(gpu_model_find("H200", 90, NULL, &m));
    SPEC_BEGIN(f);
    spec_build(&f, text);
    const struct device d = device_of("sm_90");
    const struct plan *plan = f.p ? plan_create(&f.s, f.p, &d, &(struct plan_options){ 0 }) : NULL;
    cr_assert_not_null(plan, "%s", spec_text(&f));
    struct prediction p = predict(plan, size, NULL, &m, NULL);
    if (known) {
        known->kernel = plan->cases[p.case_index].code.kernel[0].name;
        p = predict(plan, size, NULL, &m, &r);
    }
    *of_least = p.seconds / roofline_of(f.p, size, &m).seconds;
    spec_end(&f);
    return p;
}

Test(cost, lanes_that_lie_apart_and_inputs_read_again_are_charged)
{
    static const struct {
        const char *text;
        int64_t size[3];
        double least, most; /* of the roofline */
        const char *bound;
    } row[] = {
        { STENCIL, { 8192, 8192 }, 0.9, 1.2, "memory" },
        /* A transpose leaves through shared memory; what is read in another order does not come through it. */
        { "kind: stencil\ninputs: {x: 'f32[m, n]'}\noutputs: {y: {type: 'f32[n, m]', value: x}}\n",
          { 8192, 8192 },
          0.9,
          1.3,
          "memory" },
#define ACROSS                                                                                                         \
    "kind: map\nspace: [m, n]\ninputs: {z: 'f32[m, n]', x: 'f32[n, m]'}\noutputs: {y: {type: 'f32[m, n]', value: x + " \
    "z}}\n"
        { ACROSS, { 8192, 8192 }, 2.5, 12, "L2" },
        { ACROSS, { 1024, 1024 }, 1.2, 4, "L1" },
        /* Distances of k-means: every centroid for every point. */
        { "kind: reduce\ninputs: {p: 'f32[n, f]', c: 'f32[k, f]'}\nover: f\nmap: (p - c) * (p - c)\noperator: add\n"
          "outputs: {d: 'f32[n, k]'}\n",
          { 1 << 20, 32, 16 },
          1,
          2,
          "arithmetic" },
        { "kind: reduce\ninputs: {p: 'f32[n, f]', c: 'f32[k, f]'}\nover: f\nmap: (p - c) * (p - c)\noperator: add\n"
          "outputs: {d: 'f32[n, k]'}\n",
          { 1 << 20, 32, 7 }, /* thin products: 24317 x 5 of 64 terms took 6.2 us, 1.3 of the roofline (H200) */
          1,
          2,
          "memory" },
        /* A neighbour of each of 100 offsets that are read at launch. */
        { "kind: stencil\ninputs: {x: 'f32[m, n]', off: 'i32[p, 2]'}\nboundary: clamp\n"
          "outputs: {s: {type: 'f32[m, n]', value: 'gather(x, off, k, add, k)'}}\n",
          { 2000, 2000, 100 },
          1.5,
          8,
          "L1" },
        /* N-body: every body for every body. */
        { "kind: reduce\ninputs: {x: 'f32[n]', u: 'f32[m]', q: 'f32[m]'}\nover: m\n"
          "let: {d: u - x}\nmap: q * d * rsqrt(d * d + 0.001)\noperator: add\noutputs: {a: 'f32[n]'}\n",
          { 65536, 65536 },
          1.5,
          8,
          "L2" },
        /* The same bodies, at the index of an axis. */
        { "kind: reduce\ninputs: {x: 'f32[n]', q: 'f32[m]'}\nspace: [m, n]\nover: m\n"
          "let: {d: 'at(x, index(m)) - x'}\nmap: q * d * rsqrt(d * d + 0.001)\noperator: add\noutputs: {a: 'f32[n]'}\n",
          { 65536, 65536 },
          1.5,
          8,
          "L2" },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        double ratio;
        const struct prediction p = predict_at(row[i].text, row[i].size, NULL, &ratio);
        cr_expect(ratio > row[i].least && ratio < row[i].most, "%s: %.2f of the roofline", row[i].text, ratio);
        cr_expect_str_eq(p.bound, row[i].bound, "%s: %s", row[i].text, p.bound);
    }
}

/* The nearest of k centroids, with sums inside, for lanes and items as an H200 measured them (docs/design/sums-inside.md). */
Test(cost, sums_inside_are_near_what_was_measured)
{
    static const struct {
        int64_t n, f, k;
        int lanes, items;
        double measured; /* us */
    } row[] = {
        { 494025, 34, 5, 8, 1, 96 },    { 494025, 34, 5, 4, 2, 68 },    { 494025, 34, 5, 1, 4, 85 },
        { 494025, 34, 5, 1, 5, 48 },    { 494025, 34, 5, 1, 8, 54.5 },  { 494025, 34, 5, 1, 16, 95 },
        { 1 << 20, 16, 64, 8, 1, 794 }, { 1 << 20, 16, 64, 4, 2, 531 }, { 1 << 20, 16, 64, 1, 4, 712 },
        { 1 << 20, 16, 64, 1, 5, 592 }, { 1 << 20, 16, 64, 1, 8, 424 }, { 1 << 20, 16, 64, 1, 16, 424 },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[600];
        double ratio;
        snprintf(text, sizeof text,
                 "kind: reduce\ninputs: {x: 'f32[n, f]', c: 'f32[k, f]'}\nover: k\noperator: argmin\n"
                 "map: {value: 'sum(f, (x - c) * (x - c))', index: i32(index(k))}\n"
                 "outputs: {member: {type: 'i32[n]', value: r.index}}\n"
                 "strategy: {name: segreduce.subwarp, lanes: %d, items: %d, segments: 1, threads: 256, vector: 1}\n",
                 row[i].lanes, row[i].items);
        const int64_t size[] = { row[i].n, row[i].f, row[i].k };
        const double us = predict_at(text, size, NULL, &ratio).seconds * 1e6, off = us / row[i].measured;
        cr_expect(off > 0.8 && off < 1.25, "%d lanes, %d items: %.1f us predicted, %.1f measured", row[i].lanes,
                  row[i].items, us, row[i].measured);
        cr_expect(ratio > 1, "%.1f us is below the limit", us);
    }
}

/* Equal parts of a term are computed once: a difference, its square, and the addition. */
Test(cost, a_term_of_a_sum_is_counted_with_its_equal_parts_once)
{
    const int64_t size[] = { 10, 34, 5 };
    SPEC_BEGIN(f);
    spec_build(&f, "kind: map\ninputs: {x: 'f32[n, f]', c: 'f32[k, f]'}\n"
                   "outputs: {y: {type: 'f32[n, k]', value: 'sum(f, (x - c) * (x - c))'}}\n");
    cr_assert_not_null(f.p, "%s", spec_text(&f));
    cr_expect_eq(work_of(f.p, size, 90).flops, 3 * 34, "%d", work_of(f.p, size, 90).flops);
    cr_expect_eq(work_of(f.p, size, 90).integer, 2 * 34, "a load for each array");
    spec_end(&f);
}

Test(cost, spills_are_charged_where_they_are_known)
{
    const int64_t n = 1 << 28;
    ptxgen_kernel_resources kernel = { .registers = 64 };
    double clean, spilled;
    predict_at(SUM, &n, &kernel, &clean);
    kernel.local = 4096;
    const struct prediction p = predict_at(SUM, &n, &kernel, &spilled);
    cr_expect_gt(spilled, 2 * clean, "%.2f, %.2f", spilled, clean);
    cr_expect_str_eq(p.bound, "spills");
}

Test(cost, few_elements_are_all_in_flight_and_wait_for_the_launch)
{
    const int64_t few = 64, some = 1 << 20;
    double ratio;
    const struct prediction p = predict_at(SUM, &few, NULL, &ratio), q = predict_at(SUM, &some, NULL, &ratio);
    cr_expect(p.in_flight == 1 && !strcmp(p.bound, "launch"), "%g, %s", p.in_flight, p.bound);
    cr_expect_lt(p.graph_seconds, 0.5 * p.seconds);
    cr_expect(q.graph_seconds > p.graph_seconds && q.graph_seconds < q.seconds);
}
