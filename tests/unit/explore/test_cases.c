/* SPDX-License-Identifier: Apache-2.0 */
/* test_cases.c - the cases of a plan: which ones a size takes, what tuning files add, and how large their launches are. */
#include "lower/lower_impl.h"
#include "explore/variants.h"
#include "support/variant_fixture.h"

#include <ptxgen/ptxgen.h>
#include <stdio.h>

static const struct plan *plan_for(struct spec *f, int64_t n, int sms)
{
    const struct device d = device_of("sm_90");
    const struct plan *plan =
        plan_create(&f->s, f->p, &d, &(struct plan_options){ .size = &n, .only_these = true, .sms = sms });
    cr_assert(plan && plan->ncases > 0);
    return plan;
}

Test(cases, only_the_cases_that_a_size_takes)
{
    SPEC_BEGIN(f);
    spec_build(&f, SUM);
    const struct plan *large = plan_for(&f, 1 << 26, 0), *small = plan_for(&f, 1000, 0), *odd = plan_for(&f, 16385, 0);
    cr_expect(large->ncases == 1 && !strcmp(large->cases[0].strategy->name, "reduce.gather"));
    cr_expect(small->ncases == 1 && !strcmp(small->cases[0].strategy->name, "reduce.block"));
    cr_expect(odd->ncases == 1 && !strcmp(odd->cases[0].strategy->name, "reduce.block") &&
              odd->cases[0].tunable[TN_CLUSTER] == 8);
    spec_end(&f);
    SPEC_BEGIN(g);
    spec_build(&g, AFFINE);
    const struct plan *unknown = plan_for(&g, 1 << 18, 0), *known = plan_for(&g, 1 << 18, 132);
    cr_expect_gt(unknown->ncases, 1, "which case depends on the multiprocessors");
    cr_expect_eq(known->ncases, 1);
    const struct device d = device_of("sm_90");
    const struct tunable resident = { "strategy", "scan.resident", span_none() };
    const int64_t n = 1 << 28;
    const struct plan_options o = { .nset = 1, .set = &resident, .size = &n, .only_these = true, .sms = 132 };
    cr_expect_null(plan_create(&g.s, g.p, &d, &o));
    cr_expect_not_null(strstr(g.s.diags.last->text, "takes no launch at these sizes"));
    spec_end(&g);
}

/* As many blocks as are held at once, evenly; several waves where each block has several tiles. */
Test(cases, waves_of_blocks)
{
    static const struct {
        int64_t n, blocks;
    } rows[] = { { 10000000, 204 }, { 1 << 24, 256 },  { 2112 * 16384, 264 },  { 2112 * 16384 + 1, 1057 },
                 { 1 << 26, 2048 }, { 1 << 28, 2048 }, { 40000 * 16384, 2106 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SPEC_BEGIN(f);
        spec_build(&f, SUM);
        const struct plan *plan = plan_for(&f, rows[i].n, 132);
        const struct formula_env env = { .size = &rows[i].n, .sms = 132 };
        const int64_t blocks = formula_eval(&plan->cases[0].code.step[0].grid, &env);
        cr_expect_eq(blocks, rows[i].blocks, "%lld elements: %lld blocks", (long long)rows[i].n, (long long)blocks);
        spec_end(&f);
    }
}

/* Threads that have no point would take most of the time. */
Test(cases, narrow_arrays_fill_their_blocks)
{
    const struct device d = device_of("sm_90");
    SPEC_BEGIN(f);
    spec_build(&f,
               "kind: map\ninputs: {x: 'f32[m, n]', w: 'f32[n]'}\noutputs: {y: {type: 'f32[m, n]', value: x * w}}\n");
    for (int64_t n = 1; n <= 80; n++) {
        const int64_t size[] = { (1 << 22) / n, n };
        const struct plan *plan =
            plan_create(&f.s, f.p, &d, &(struct plan_options){ .size = size, .only_these = true });
        cr_assert(plan && plan->ncases > 0);
        const struct plan_case *c = &plan->cases[plan->ncases - 1];
        const int64_t blocks = formula_eval(&c->code.step[0].grid, &(struct formula_env){ .size = size, .sms = 132 });
        const int64_t points = c->tunable[TN_POINTS_X] * c->tunable[TN_POINTS_Y] * c->code.kernel[0].threads;
        cr_expect_leq(blocks * points, size[0] * n * 21 / 10, "%lld columns: %lld blocks of %lld points", (long long)n,
                      (long long)blocks, (long long)points);
    }
    spec_end(&f);
}

/* Where one tree is promised, arrays at other addresses are divided into the same blocks, whatever the user pins. */
Test(cases, one_tree_has_one_grid)
{
    const struct tunable set[] = { { "strategy", "stencil.multi_write", span_none() },
                                   { "points_x", "1", span_none() } };
    const struct device d = device_of("sm_90");
    SPEC_BEGIN(f);
    spec_build(&f, "kind: stencil\ninputs: {x: 'f32[m, n]'}\nboundary: clamp\ndeterminism: run\n"
                   "reductions: {r: {map: x, operator: add}}\n"
                   "outputs: {y: {type: 'f32[m, n]', value: 'x[0, 1]'}, s: {type: f32, value: r}}\n");
    for (int nset = 1; nset <= 2; nset++) {
        const struct plan *plan = plan_create(&f.s, f.p, &d, &(struct plan_options){ .nset = nset, .set = set });
        cr_assert(plan && plan->ncases == 3);
        for (int64_t n = 4; n <= 260; n += 4) {
            int64_t blocks[2];
            for (int i = 0; i < 2; i++)
                blocks[i] = formula_eval(&plan->cases[i].code.step[0].grid,
                                         &(struct formula_env){ .size = (int64_t[]){ 10000, n }, .sms = 132 });
            cr_expect_eq(blocks[0], blocks[1], "%lld columns: %s %lld blocks, %s %lld", (long long)n,
                         plan->cases[0].code.name, (long long)blocks[0], plan->cases[1].code.name,
                         (long long)blocks[1]);
        }
    }
    spec_end(&f);
}

/* What all pairs share is loaded once for four columns, and no map reads an array in vectors. */
Test(cases, columns_share_what_their_maps_load)
{
    const struct device d = device_of("sm_90");
    SPEC_BEGIN(f);
    spec_build(&f, "kind: reduce\ninputs: {p: 'f32[k]', q: 'f32[n]'}\nspace: [k, n]\nover: k\nmap: abs(p - q)\n"
                   "operator: min\noutputs: {r: 'f32[n]'}\n");
    static const struct {
        int64_t k, n;
        int vector;
        const char *name;
    } row[] = { { 1000, 100000, 4, "strips" },      { 1000, 100001, 1, "strips_scalar" },
                { 1000, 200000, 4, "strips" },      { 1000, 200001, 1, "columns_scalar" },
                { 5, 200000, 1, "columns_scalar" }, { 5, 1 << 20, 1, "columns_scalar" },
                { 1000, 1 << 20, 4, "strips" } };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const int64_t size[] = { row[i].k, row[i].n };
        const struct plan_options o = { .size = size, .only_these = true, .sms = 132 };
        const struct plan *plan = plan_create(&f.s, f.p, &d, &o);
        cr_assert(plan && plan->ncases > 0);
        cr_expect_str_eq(plan->cases[0].code.name, row[i].name, "%lld of %lld", (long long)size[0], (long long)size[1]);
        cr_expect_eq(plan->cases[0].tunable[TN_VECTOR], row[i].vector, "%s", row[i].name);
    }
    spec_end(&f);
}

/* A box of 25 points leaves registers for two steps and four blocks, and for single steps where rows are moved; few
 * reads leave more.  Where large arguments are reduced by long code, one row is in flight. */
Test(cases, registers_and_code_of_a_point)
{
    const struct device d = device_of("sm_90");
    SPEC_BEGIN(f);
    char text[2048];
    for (int reach = 1; reach <= 2; reach++) {
        int at = snprintf(text, sizeof text,
                          "kind: stencil\ninputs: {x: 'f32[m, n]'}\nparams: {t: {type: i32, value: 8}}\n"
                          "boundary: clamp\noutputs: {y: {type: 'f32[m, n]', value: '0");
        for (int i = -reach; i <= reach; i++)
            for (int j = -reach; j <= reach; j++)
                at += snprintf(text + at, sizeof text - (size_t)at, " + x[%d, %d]", i, j);
        snprintf(text + at, sizeof text - (size_t)at, "'}}\niterate: {steps: t, feedback: {x: y}}\n");
        spec_build(&f, text);
        const struct plan *plan = plan_create(&f.s, f.p, &d, NULL);
        cr_assert(plan && !strcmp(plan->cases[0].code.name, "strips"));
        cr_expect_eq(plan->cases[0].tunable[TN_MIN_BLOCKS], reach == 1 ? 0 : 4);
        cr_expect_eq(!strcmp(plan->cases[1].code.name, "strips_shifted"), reach == 1);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text,
                 "kind: reduce\ninputs: {p: 'f32[k]', q: 'f32[n]'}\nspace: [k, n]\nover: k\n"
                 "map: %s(p * q)\noperator: add\noutputs: {r: 'f32[n]'}\n",
                 i ? "cos" : "exp");
        spec_build(&f, text);
        const struct plan_options o = { .size = (int64_t[]){ 3000, 30000 }, .only_these = true, .sms = 132 };
        const struct plan *plan = plan_create(&f.s, f.p, &d, &o);
        cr_assert(plan && !strcmp(plan->cases[0].code.name, "strips"));
        cr_expect_eq(plan->cases[0].tunable[TN_ITEMS], i ? 1 : 4);
    }
    spec_end(&f);
}

/* Rows that are no multiples of 16 bytes: narrow columns are read as words all the same, others one by one. */
Test(cases, narrow_columns_lie_anywhere_in_rows)
{
    const struct device d = device_of("sm_90");
    static const struct {
        const char *type;
        int64_t m, n;
        int vector;
        const char *name;
    } row[] = {
        { "u8", 100000, 400, 16, "some" },
        { "u8", 100000, 397, 8, "some_shifted" },
        { "u8", 1000, 200001, 8, "strips_shifted" },
        { "u8", 3, 200001, 4, "columns_scalar" },
        { "u8", 100000, 7, 1, "some_scalar" },
        { "i16", 100000, 49, 4, "some_shifted" },
        { "i16", 100, 1200001, 4, "columns_shifted" },
        { "f32", 100000, 397, 4, "strips_scalar" },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char spec[256];
        const int64_t size[] = { row[i].m, row[i].n };
        const struct plan_options o = { .size = size, .only_these = true, .sms = 132 };
        SPEC_BEGIN(f);
        snprintf(spec, sizeof spec,
                 "kind: reduce\ninputs: {x: '%s[m, n]'}\nover: m\noperator: max\noutputs: {r: '%s[n]'}\n", row[i].type,
                 row[i].type);
        spec_build(&f, spec);
        const struct plan *plan = plan_create(&f.s, f.p, &d, &o);
        cr_assert(plan && plan->ncases > 0);
        cr_expect_str_eq(plan->cases[0].code.name, row[i].name, "%s, %lld columns", row[i].type, (long long)row[i].n);
        cr_expect_eq(plan->cases[0].tunable[TN_VECTOR], row[i].vector, "%s", row[i].name);
        spec_end(&f);
    }
}

/* A sum over the box of a radius around the point, with weights of which sums share nothing. */
static void box(char *text, size_t size, int radius)
{
    size_t n = 0;
    for (int z = -radius; z <= radius; z++)
        for (int y = -radius; y <= radius; y++)
            for (int x = -radius; x <= radius; x++)
                n += (size_t)snprintf(text + n, size - n, "%s%d * u[%d, %d, %d]", n ? " + " : "", 7 + x, z, y, x);
}

/* Windows hold several narrow values in a register, and multiply four bytes at once.  A crowd of other narrow reads, and of others where an array lies beside
 * them and rows begin anywhere, come through planes. */
Test(cases, windows_and_planes_of_three_dimensions)
{
    const struct device d = device_of("sm_90");
    static const struct {
        const char *type;
        int radius;
        bool beside;
        int64_t n;
        const char *name;
        int points[3], most_blocks;
    } row[] = {
        { "f16", 1, false, 384, "vectors_8_224", { 8, 2, 1 }, 2 },
        { "f16", 1, false, 383, "planes_192", { 1, 4, 1 }, 2 },
        { "i8", 1, false, 384, "vectors", { 4, 2, 4 }, 0 },
        { "i8", 1, false, 383, "shift3_0", { 4, 2, 4 }, 0 },
        { "f16", 2, false, 384, "planes", { 1, 4, 1 }, 1 },
        { "f16", 2, false, 383, "planes", { 1, 4, 1 }, 1 },
        { "f32", 1, true, 384, "vectors_4_128", { 4, 2, 1 }, 2 },
        { "f32", 1, true, 383, "planes", { 1, 4, 1 }, 4 },
        { "f32", 1, false, 384, "vectors_4_128", { 4, 2, 1 }, 2 },
        { "f32", 1, false, 398, "vectors_2_112", { 2, 4, 1 }, 2 },
        { "f32", 1, false, 399, "planes_208", { 1, 4, 1 }, 2 },
        { "f64", 1, false, 399, "planes_208", { 1, 4, 1 }, 2 },
        { "i32", 1, false, 191, "planes_192", { 1, 4, 1 }, 2 },
        { "f32", 1, true, 109, "planes_112", { 1, 4, 1 }, 3 },
        { "f16", 2, false, 317, "planes_160", { 1, 4, 1 }, 2 },
        { "i8", 2, false, 191, "shift3_0", { 4, 2, 2 }, 3 },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char sum[3500], spec[4000];
        const int64_t size[] = { 384, 384, row[i].n };
        const struct plan_options o = { .size = size, .only_these = true, .sms = 132 };
        box(sum, sizeof sum, row[i].radius);
        snprintf(spec, sizeof spec,
                 "kind: stencil\ninputs: {u: '%s[d, m, n]'%s}\nboundary: clamp\n"
                 "outputs: {y: {type: '%s[d, m, n]', value: '(%s)%s'}}\n",
                 row[i].type, row[i].beside ? ", c: 'f32[d, m, n]'" : "", row[i].type, sum,
                 row[i].beside           ? " + c"
                 : row[i].type[0] == 'i' ? " >> 3"
                                         : "");
        SPEC_BEGIN(f);
        spec_build(&f, spec);
        const struct plan *plan = plan_create(&f.s, f.p, &d, &o);
        cr_assert(plan && plan->ncases > 0);
        const struct plan_case *c = &plan->cases[0];
        const int points[] = { c->tunable[TN_POINTS_X], c->tunable[TN_POINTS_Y], c->tunable[TN_POINTS_Z] };
        cr_expect_str_eq(c->code.name, row[i].name, "row %zu: %s", i, c->code.name);
        cr_expect_eq(memcmp(points, row[i].points, sizeof points), 0, "row %zu: %d x %d x %d points", i, points[0],
                     points[1], points[2]);
        cr_expect_leq(c->tunable[TN_MIN_BLOCKS], row[i].most_blocks, "row %zu", i);
        spec_end(&f);
    }
}

/* Tiles of two columns a thread turn only what shared memory has room for. */
Test(cases, outputs_that_turn)
{
    const struct device d = device_of("sm_90");
    static const char *const outputs[] = {
        "", ", b: {type: 'f64[n, m, d]', value: 'u[0, 1, 0]'}, c: {type: 'f64[n, m, d]', value: 'u'}"
    };
    const int64_t size[] = { 100, 128, 256 };
    const struct plan_options o = { .size = size, .only_these = true, .sms = 132 };
    for (int i = 0; i < 2; i++) {
        char spec[512];
        snprintf(spec, sizeof spec,
                 "kind: stencil\ninputs: {u: 'f64[d, m, n]'}\nboundary: clamp\n"
                 "outputs: {a: {type: 'f64[n, m, d]', value: 'u[0, 0, 1] - u'}%s}\n",
                 outputs[i]);
        SPEC_BEGIN(f);
        spec_build(&f, spec);
        const struct plan *plan = plan_create(&f.s, f.p, &d, &o);
        cr_assert(plan && plan->ncases > 0);
        cr_expect_str_eq(plan->cases[0].code.name, i ? "turned" : "turned_pairs");
        cr_expect(plan->cases[0].turns);
        spec_end(&f);
    }
}

/* Places that are a permutation of the indices are an order of the dimensions: the plan of one is that of the other. */
Test(cases, places_that_only_turn)
{
    static const char *const outputs[] = { "f32[n, m]', value: x", "f32[n, m]', at: [index(n), index(m)], value: x" };
    const int64_t size[] = { 8192, 8192 };
    const struct device d = device_of("sm_90");
    const struct plan_options o = { .size = size, .only_these = true, .sms = 132 };
    struct str text[2] = { { 0 } };
    for (int i = 0; i < 2; i++) {
        char spec[128];
        snprintf(spec, sizeof spec, "kind: map\ninputs: {x: 'f32[m, n]'}\noutputs: {y: {type: '%s}}\n", outputs[i]);
        SPEC_BEGIN(f);
        spec_build(&f, spec);
        const struct plan *plan = plan_create(&f.s, f.p, &d, &o);
        cr_assert(plan && plan->ncases == 1);
        cr_expect_str_eq(plan->cases[0].strategy->name, "stencil.multi_write");
        cr_expect_str_eq(plan->cases[0].code.name, "turned");
        plan_print(plan, &text[i]);
        spec_end(&f);
    }
    cr_expect_str_eq(text[0].text, text[1].text);
    str_finish(&text[0]);
    str_finish(&text[1]);
}

/* Of inputs that no array follows in vectors two lanes take two segments; rows of bytes and halves, and long segments of
 * such inputs, have two warps each.  Warps take several segments of all pairs, unless pairs read values of their own, or
 * segments are short or few. */
Test(cases, teams_of_segments)
{
#define OVER_LAST(inputs, map, output)                                                                                 \
    "kind: reduce\nspace: [n, k, f]\ninputs: {" inputs "}\nover: f\nmap: " map                                         \
    "\noperator: add\noutputs: {r: '" output "[n, k]'}\n"
#define PAIRS OVER_LAST("p: 'f32[n, f]', c: 'f32[k, f]'", "(p - c) * (p - c)", "f32")
#define NEAREST                                                                                                        \
    "kind: reduce\ninputs: {x: 'f32[n, f]', c: 'f32[k, f]'}\nover: k\nmap: {value: 'sum(f, (x - c) * (x - c))', "      \
    "index: i32(index(k))}\noperator: argmin\noutputs: {r: {type: 'i32[n]', value: r.index}}\n"
#define ALL_PAIRS(inputs, map)                                                                                         \
    "kind: reduce\nspace: [n, m]\ninputs: {x: 'f32[n]', y: 'f32[m]'" inputs "}\nover: m\nmap: " map                    \
    "\noperator: add\noutputs: {r: 'f32[n]'}\n"
    static const struct {
        const char *spec, *name;
        int64_t size[3]; /* by name of size: of the spec's order */
        int lanes, segments, threads;
    } row[] = {
        { PAIRS, "product_medium", { 100000, 16, 35 }, 8, 4, 128 },
        { PAIRS, "product_tall", { 100000, 16, 16 }, 2, 4, 128 },
        { PAIRS, "product_tall_128", { 50000, 16, 16 }, 4, 4, 128 },
        { PAIRS, "medium", { 100000, 16, 2 }, 2, 2, 256 },
        { PAIRS, "product_thin", { 100000, 16, 5 }, 2, 1, 128 },
        { PAIRS, "product_flat", { 5, 16, 100000 }, 32, 2, 128 },
        { PAIRS, "product_huge", { 100000, 9, 111 }, 16, 8, 256 },
        { PAIRS, "product_large", { 20000, 9, 111 }, 8, 4, 256 },
        { PAIRS, "product", { 10000, 64, 64 }, 8, 4, 128 },
        { PAIRS, "product_medium", { 18176, 64, 80 }, 8, 4, 128 },
        { PAIRS, "product_wide", { 80, 64, 18176 }, 32, 4, 128 },
        { PAIRS, "product_small", { 400, 64, 400 }, 8, 2, 128 },
        { PAIRS, "product_few", { 100000, 3, 111 }, 32, 8, 128 },
        { PAIRS, "product_few_64", { 100000, 8, 129 }, 32, 8, 128 },
        { PAIRS, "product_few_96", { 100000, 1, 65 }, 32, 8, 128 },
        { PAIRS, "product_few_64", { 100000, 4, 54 }, 32, 8, 128 },
        { PAIRS, "product_few_32", { 100000, 2, 21 }, 16, 8, 128 },
        { PAIRS, "product_few_16", { 100000, 2, 9 }, 8, 8, 128 },
        { PAIRS, "long", { 100, 100000, 100 }, 0, 1, 64 },
        { NEAREST, "pairs_few", { 200000, 34, 5 }, 1, 2, 128 },
        { NEAREST, "pairs_few", { 200000, 16, 39 }, 1, 2, 128 },
        { NEAREST, "pairs_few_16", { 200000, 17, 16 }, 1, 2, 128 },
        { NEAREST, "pairs", { 200000, 17, 17 }, 4, 4, 128 },
        { NEAREST, "pairs", { 200000, 16, 40 }, 4, 4, 128 },
        { NEAREST, "pairs", { 100000, 16, 24 }, 4, 4, 128 },
        { NEAREST, "pairs", { 16384, 16, 511 }, 4, 4, 128 },
        { NEAREST, "pairs_wide", { 16384, 16, 512 }, 32, 4, 128 },
        { NEAREST, "each", { 100000, 34, 5 }, 1, 1, 128 },
        { ALL_PAIRS("", "'(x - y) * y'"), "repeated", { 10000, 5000 }, 32, 4, 64 },
        { ALL_PAIRS("", "'(x - at(x, index(m))) * y'"), "repeated", { 10000, 5000 }, 32, 4, 64 },
        { ALL_PAIRS("", "'(x - y) * y'"), "repeated_few", { 7000, 256 }, 32, 2, 64 },
        { ALL_PAIRS("", "'(x - y) * y'"), "warps", { 7000, 255 }, 32, 1, 256 },
        { ALL_PAIRS("", "'(x - y) * y'"), "long", { 2000, 5000 }, 0, 1, 64 },
        { ALL_PAIRS("", "'x * y - at(x, index(n) + index(m))'"), "long", { 10000, 5000 }, 0, 1, 64 },
        { ALL_PAIRS(", z: 'f32[n, m]'", "'(x - y) * z'"), "rows", { 10000, 5000 }, 0, 1, 256 },
        { OVER_LAST("x: 'u8[n, k, f]'", "x", "u32"), "rows", { 1000, 100, 7040 }, 0, 1, 64 },
        { OVER_LAST("x: 'f32[n, k, f]'", "x", "f32"), "rows", { 1000, 100, 1760 }, 0, 1, 256 },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        SPEC_BEGIN(f);
        const struct plan_case *c = case_taken(&f, row[i].spec, row[i].size);
        cr_expect_str_eq(c->code.name, row[i].name, "row %zu: %s", i, c->code.name);
        cr_expect(c->tunable[TN_LANES] == row[i].lanes && c->tunable[TN_THREADS] == row[i].threads,
                  "row %zu: %d lanes, %d threads", i, c->tunable[TN_LANES], c->tunable[TN_THREADS]);
        if (row[i].lanes)
            cr_expect_eq(c->tunable[TN_SEGMENTS], row[i].segments, "row %zu", i);
        spec_end(&f);
    }
}

Test(cases, teams_that_map_their_segment)
{
    static const char *const name[] = { "staged", "warps", "short", "blocks", "middle", "wide", "staged" };
    static const int64_t mean[] = { 79, 80, 1500, 3000, 12000, 24000, 80000 };
    const struct device d = device_of("sm_90");
    for (size_t i = 0; i < sizeof mean / sizeof *mean; i++) {
        const int64_t size[] = { mean[i] * 4096, 4097 };
        SPEC_BEGIN(f);
        spec_build(&f, "kind: reduce\ninputs: {x: 'f32[n]', off: 'i32[k]'}\nsegments: {offsets: off}\n"
                       "operator: max\noutputs: {y: {type: 'f32[n]', value: x - r}}\n");
        const struct plan *plan = plan_create(&f.s, f.p, &d, &(struct plan_options){ .size = size, .sms = 132 });
        cr_assert(plan && plan->ncases > 0);
        cr_expect_str_eq(plan->cases[0].code.name, name[i], "%d: %s", (int)mean[i], plan->cases[0].code.name);
        spec_end(&f);
    }
}

Test(cases, no_case_that_no_size_takes)
{
    const struct device d = device_of("sm_90");
    SPEC_BEGIN(f);
    spec_build(&f, "kind: scan\ninputs: {x: 'f32[n, 100]'}\nover: n\noperator: add\noutputs: {y: 'f32[n, 100]'}\n");
    const struct plan *plan = plan_create(&f.s, f.p, &d, NULL);
    cr_assert_not_null(plan);
    for (int c = 0; c < plan->ncases; c++)
        cr_expect(strcmp(plan->cases[c].code.name, "narrow_strips") && strcmp(plan->cases[c].code.name, "pipeline"),
                  "%s is for fewer columns", plan->cases[c].code.name);
    spec_end(&f);
}

/* Tiles of a few columns are whole units whatever the number of columns: of bytes where that is even, or as many rows as a
 * warp has are; and states have up to three words. */
Test(cases, a_few_columns_of_any_type)
{
    static const struct {
        const char *spec;
        int64_t n;
        bool taken;
    } row[] = {
        { "inputs: {x: 'u8[m, n]'}\noperator: add\noutputs: {y: 'u32[m, n]'}\n", 5, true },
        { "inputs: {x: 'u8[m, n]'}\noperator: add\noutputs: {y: 'u32[m, n]'}\n", 22, true },
        { "inputs: {x: 'u8[m, n]'}\noperator: add\noutputs: {y: 'u32[m, n]'}\n", 31, false },
        { "inputs: {x: 'i16[m, n]'}\noperator: add\noutputs: {y: 'i32[m, n]'}\n", 31, true },
        { "inputs: {x: 'f16[m, n]'}\nscans: {a: {map: x, operator: min}, b: {map: x, operator: max}}\n"
          "outputs: {a: 'f16[m, n]', b: 'f16[m, n]'}\ndirection: reverse\n",
          22, true },
        { "inputs: {x: 'f32[m, n]'}\nmap: {value: x, index: index(m)}\noperator: argmax\n"
          "outputs: {y: {type: 'f32[m, n]', value: s.value}, at: {type: 'i64[m, n]', value: s.index}}\n",
          30, true },
    };
    const struct device d = device_of("sm_90");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[400];
        const int64_t size[] = { 1 << 20, row[i].n };
        snprintf(text, sizeof text, "kind: scan\nover: m\n%s", row[i].spec);
        SPEC_BEGIN(f);
        spec_build(&f, text);
        const struct plan *plan = plan_create(&f.s, f.p, &d, &(struct plan_options){ .size = size, .sms = 132 });
        cr_assert(plan && plan->ncases > 0);
        cr_expect_eq(strstr(plan->cases[0].code.name, "columns_pipeline") != NULL, row[i].taken, "row %zu: %s", i,
                     plan->cases[0].code.name);
        spec_end(&f);
    }
}

/* Tunables that only some cases of a strategy have leave those as they are that take the other launches. */
Test(cases, settings_of_some_cases)
{
    static const char bins[] =
        "kind: reduce\ninputs: {x: 'f32[n]', key: 'i32[n]'}\nmap: x\nby: key\noperator: add\noutputs: {y: 'f32[k]'}\n";
    static const char rows[] =
        "kind: scan\ninputs: {x: 'f32[m, n]'}\nover: n\noperator: add\noutputs: {y: 'f32[m, n]'}\n";
    static const struct {
        const char *spec, *last;
        struct tunable set;
    } row[] = { { bins, "global_unaligned", { "bins", "64", { 0, 0 } } },
                { bins, "global_unaligned", { "lanes", "1", { 0, 0 } } },
                { rows, "long_rows_unaligned", { "smem_transpose", "1", { 0, 0 } } },
                { rows, "long_rows_unaligned", { "across", "1", { 0, 0 } } } };
    const struct device d = device_of("sm_90");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        SPEC_BEGIN(f);
        spec_build(&f, row[i].spec);
        const struct plan *plan = plan_create(&f.s, f.p, &d, &(struct plan_options){ .nset = 1, .set = &row[i].set });
        cr_assert_not_null(plan, "%s", row[i].set.name);
        cr_expect_str_eq(plan->cases[plan->ncases - 1].code.name, row[i].last, "%s", row[i].set.name);
        spec_end(&f);
    }
}

/* A tuning file may have any number of entries; the cases that take the other sizes need room behind theirs. */
Test(cases, room_for_the_usual_cases)
{
    enum { ENTRIES = 40 };
    static const struct tunable set[] = { { "strategy", "scan.lookback", { 0, 0 } } };
    const struct device d = device_of("sm_90");
    struct tuned tuned[ENTRIES];
    int64_t size[ENTRIES][2];
    SPEC_BEGIN(f);
    spec_build(&f, "kind: scan\ninputs: {x: 'f32[m, n]'}\nover: n\noperator: add\noutputs: {y: 'f32[m, n]'}\n");
    for (int i = 0; i < ENTRIES; i++) {
        size[i][0] = size[i][1] = 100 << i % 20;
        tuned[i] = (struct tuned){ .nset = 1, .set = set, .size = size[i] };
    }
    const struct plan *plan = plan_create(&f.s, f.p, &d, &(struct plan_options){ .ntuned = ENTRIES, .tuned = tuned });
    cr_assert_not_null(plan);
    cr_expect_leq(plan->ncases, PLAN_CASES_MAX);
    cr_expect_str_eq(plan->cases[plan->ncases - 1].code.name, "long_rows_unaligned");
    spec_end(&f);
}
