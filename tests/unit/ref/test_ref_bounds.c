/* SPDX-License-Identifier: Apache-2.0 */
/* test_ref_bounds.c - single expressions, and the bounds on what rounding may do: wide enough, and narrow enough to
 * notice. */
#include "support/ref_fixture.h"

#include <float.h>

/* One expression on one element. */
struct expression {
    const char *type, *result, *text;
    double x, y, expected;
};

Test(ref_bounds, expressions)
{
    static const struct expression rows[] = {
        { "i32", "i32", "x / y", 7, 0, 0 },
        { "i32", "i32", "x % y", 7, 0, 0 },
        { "i32", "i32", "x / y", -7, 2, -3 },
        { "i32", "i32", "x % y", -7, 2, -1 },
        { "i32", "i32", "x / y", -2147483648.0, -1, -2147483648.0 },
        { "i32", "i32", "x % y", -2147483648.0, -1, 0 },
        { "i8", "i8", "x / y", -128, -1, -128 },
        { "i8", "i8", "x + y", 127, 1, -128 },
        { "u8", "u8", "x - y", 0, 1, 255 },
        { "i8", "i8", "x * y", 100, 3, 44 },
        { "i32", "i32", "x << y", 1, 32, 0 },
        { "i32", "i32", "x << y", 1, 31, -2147483648.0 },
        { "i32", "i32", "x << y", 1, -1, 0 },
        { "i32", "i32", "x >> y", -8, 40, -1 },
        { "i32", "i32", "x >> y", -8, 1, -4 },
        { "u32", "u32", "x >> y", 4294967288.0, 1, 2147483644 },
        { "u32", "u32", "x >> y", 8, 32, 0 },
        { "i32", "i32", "abs(x)", -2147483648.0, 0, -2147483648.0 },
        { "i32", "i32", "sign(x) + sign(y)", -5, 0, -1 },
        { "i32", "i32", "clamp(x, y, 10)", 50, 1, 10 },
        { "i8", "i8", "popcount(x) + clz(y)", -1, 1, 15 },
        { "i32", "i32", "ctz(x) + clz(y)", 0, 0, 64 },
        { "u16", "u16", "~x", 1, 0, 65534 },
        { "i32", "i32", "if x < y then x else y", 4, 3, 3 },
        { "f32", "i32", "i32(x)", 3e9, 0, 2147483647 },
        { "f32", "i32", "i32(x)", -3e9, 0, -2147483648.0 },
        { "f32", "i32", "i32(x)", NAN, 0, 0 },
        { "f32", "i32", "i32(x)", -1.9, 0, -1 },
        { "f32", "u8", "u8(x)", -5, 0, 0 },
        { "f32", "u8", "u8(x)", 300, 0, 255 },
        { "f32", "f32", "min(x, y)", NAN, 2, 2 },
        { "f32", "f32", "max(x, y)", 2, NAN, 2 },
        { "f32", "f32", "min(x, y)", NAN, NAN, NAN },
        { "f32", "f32", "round(x)", 2.5, 0, 2 },
        { "f32", "f32", "round(x)", -3.5, 0, -4 },
        { "f32", "f32", "round(x)", 0.49999997, 0, 0 },
        { "f32", "f32", "x % y", -7.5, 2, -1.5 },
        { "f32", "f32", "x + y", 16777216, 1, 16777216 },
        { "f32", "f32", "x / y", 1, 0, INFINITY },
        { "f32", "f32", "sqrt(x)", -1, 0, NAN },
        { "f16", "f16", "x + y", 2048, 1, 2048 },
        { "f16", "f16", "x + y", 2048, 3, 2052 },
        { "f16", "f16", "x * y", 300, 300, INFINITY },
        { "bf16", "bf16", "x + y", 256, 1, 256 },
        { "f32", "bool", "isnan(x) and not isinf(y)", NAN, 1, 1 },
        { "f32", "bool", "x != y", NAN, NAN, 1 },
        { "f32", "bool", "x <= y", NAN, 1, 0 },
        /* (1 + 2^-12)^2 - 1 = 2^-11 + 2^-24: once rounded the last term stays, after a rounded product it is gone. */
        { "f32", "f32", "fma(x, x, y)", 1.000244140625, -1, 0x1p-11 + 0x1p-24 },
        { "f32", "f32", "x * x + y", 1.000244140625, -1, 0x1p-11 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char spec[512];
        const struct expression *e = &rows[i];
        snprintf(
            spec, sizeof spec,
            "kind: stencil\ninputs: {x: '%s[n]', y: '%s[n]'}\noutputs:\n  z:\n    type: '%s[n]'\n    value: '%s'\n",
            e->type, e->type, e->result, e->text);
        struct row row = { .name = e->text,
                           .spec = spec,
                           .size = { 1 },
                           .input = { { 1, &e->x }, { 1, &e->y } },
                           .output = { { 1, &e->expected } } };
        row.input[1].n = strchr(e->text, 'y') ? 1 : row.input[1].n;
        run_row(&row, false);
        run_row(&row, true);
    }
}

/* A sum of n numbers in f32 in several orders must lie within the bound, and the bound must notice a number that is
 * missing. */
Test(ref_bounds, bounds_hold_and_bite)
{
    enum { N = 1000 };
    static float x[N];
    begin();
    const struct problem *p = build("sum", "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: add\noutputs: {s: f32}\n");
    uint32_t state = 1;
    float forward = 0, backward = 0, strided = 0;
    for (int i = 0; i < N; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) * 0x1p-23f - 1;
        forward += x[i];
    }
    for (int i = N - 1; i >= 0; i--) {
        backward += x[i];
    }
    for (int lane = 0; lane < 32; lane++) {
        float part = 0;
        for (int i = lane; i < N; i += 32) {
            part += x[i];
        }
        strided += part;
    }
    float sum;
    double bound;
    int64_t size = N;
    const void *input = x;
    void *output = &sum;
    double *bounds = &bound;
    struct run_args args = { &size, &input, &output, NULL };
    cr_assert_null(ref_bound(&session, p, &args, &bounds));
    cr_expect_leq(fabs((double)forward - (double)sum), bound);
    cr_expect_leq(fabs((double)backward - (double)sum), bound);
    cr_expect_leq(fabs((double)strided - (double)sum), bound);
    cr_expect_gt(bound, 0);
    cr_expect_lt(bound, 0.05, "the bound %g would not see a missing element", bound);
    end();
}

/* A product that is not rounded may be beyond its type, where the sum that takes it is not. */
Test(ref_bounds, bounds_hold_for_contracted_products_that_outgrow_the_type)
{
    static const float x[] = { -5e17f, 3.42e19f }, y[] = { 1e19f, 1e19f };
    const float fused = fmaf(x[1], y[1], x[0] * y[0]);
    begin();
    const struct problem *p = build("dot", "contract: true\nkind: reduce\ninputs: {x: 'f32[n]', y: 'f32[n]'}\n"
                                           "map: x * y\noperator: add\noutputs: {s: f32}\n");
    int64_t size = 2;
    float sum;
    double bound = 0;
    const void *input[] = { x, y };
    void *output = &sum;
    double *bounds = &bound;
    struct run_args args = { &size, input, &output, NULL };
    cr_assert_null(ref_bound(&session, p, &args, &bounds));
    cr_expect(isfinite(fused) && isinf(bound), "%g, %g within %g", (double)fused, (double)sum, bound);
    end();
}

/* A minimum is exact whatever the order, so its index is too. */
Test(ref_bounds, bounds_of_exact_operators_are_zero)
{
    static const float x[] = { 3, 0.1f, 7, 0.1f };
    begin();
    const struct problem *p =
        build("argmin", "kind: reduce\ninputs: {x: 'f32[n]'}\nmap: {value: x * x, index: index(n)}\noperator: argmin\n"
                        "outputs: {i: {type: i64, value: r.index}, v: {type: f32, value: r.value}}\n");
    int64_t size = 4, index;
    float value;
    double bound[2] = { -1, -1 };
    const void *input = x;
    void *output[] = { &index, &value };
    double *bounds[] = { &bound[0], &bound[1] };
    struct run_args args = { &size, &input, output, NULL };
    cr_assert_null(ref_bound(&session, p, &args, bounds));
    cr_expect_eq(index, 1);
    cr_expect_eq(value, 0.1f * 0.1f);
    cr_expect(bound[0] == 0 && bound[1] == 0, "%g %g", bound[0], bound[1]);
    end();
}

/* The rounding of a mean is not doubled at every level of the tree. */
Test(ref_bounds, bounds_of_welford_stay_small)
{
    enum { N = 4096 };
    static float x[N];
    begin();
    const struct problem *p =
        build("welford", "kind: reduce\ninputs: {x: 'f32[n]'}\nmap: x\noperator: welford\n"
                         "outputs: {mean: {type: f32, value: r.mean}, v: {type: f32, value: r.m2 / r.n}}\n");
    uint32_t state = 7;
    for (int i = 0; i < N; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) * 0x1p-23f - 1;
    }
    float mean, variance;
    double bound[2];
    int64_t size = N;
    const void *input = x;
    void *output[] = { &mean, &variance };
    double *bounds[] = { &bound[0], &bound[1] };
    struct run_args args = { &size, &input, output, NULL };
    cr_assert_null(ref_bound(&session, p, &args, bounds));
    cr_expect(bound[0] > 0 && bound[0] < 1e-3, "mean %g within %g", (double)mean, bound[0]);
    cr_expect(bound[1] > 0 && bound[1] < 1e-2, "variance %g within %g", (double)variance, bound[1]);
    end();
}

/* Combined one by one, a product of equal factors does not reach zero but stays where half a subnormal is rounded up;
 * by a tree it does reach zero. */
Test(ref_bounds, bounds_hold_below_the_normal_numbers)
{
    enum { N = 1200 };
    static float x[N], product[N], forward[N];
    static double bound[N];
    begin();
    const struct problem *p =
        build("product",
              "kind: scan\ninputs: {x: 'f32[n]'}\nmap: x\noperator: mul\noutputs: {y: {type: 'f32[n]', value: s}}\n");
    for (int i = 0; i < N; i++) {
        x[i] = 0.9f;
        forward[i] = i ? forward[i - 1] * x[i] : x[i];
    }
    int64_t size = N;
    const void *input = x;
    void *output = product;
    double *bounds = bound;
    struct run_args args = { &size, &input, &output, NULL };
    cr_assert_null(ref_bound(&session, p, &args, &bounds));
    cr_expect(forward[N - 1] > 0 && product[N - 1] == 0, "%g, %g", (double)forward[N - 1], (double)product[N - 1]);
    for (int i = 0; i < N; i++)
        cr_expect_leq(fabs((double)forward[i] - (double)product[i]), bound[i], "%d", i);
    cr_expect_lt(bound[N - 1], 0x1p-130);
    end();
}

/* Products of matrices whose entries alternate in sign: the bound outgrows the values, and where it reaches beyond the
 * type, or nearly so, a kernel that combines in another order may have overflowed. */
Test(ref_bounds, bounds_beyond_the_type_are_infinite)
{
    enum { N = 2000 };
    static float x[N], y[N], sum[N];
    static double bound[N];
    begin();
    const struct problem *p = build("products", "kind: scan\ninputs: {x: 'f32[n]', y: 'f32[n]'}\n"
                                                "map: {p: x, q: y, r: y - x, s: -x}\noperator:\n"
                                                "  state: {p: f32, q: f32, r: f32, s: f32}\n  combine:\n"
                                                "    p: a.p * b.p + a.q * b.r\n    q: a.p * b.q + a.q * b.s\n"
                                                "    r: a.r * b.p + a.s * b.r\n    s: a.r * b.q + a.s * b.s\n"
                                                "outputs: {z: {type: 'f32[n]', value: s.p}}\n");
    uint32_t state = 5;
    for (int i = 0; i < N; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) * 0x1p-23f - 1;
        state = state * 1664525u + 1013904223u;
        y[i] = 2.2f * ((float)(state >> 8) * 0x1p-23f - 1);
    }
    int64_t size = N;
    int finite = 0;
    const void *input[] = { x, y };
    void *output = sum;
    double *bounds = bound;
    struct run_args args = { &size, input, &output, NULL };
    cr_assert_null(ref_bound(&session, p, &args, &bounds));
    for (int i = 0; i < N; i++) {
        finite += isfinite(bound[i]) != 0;
        cr_expect(!isfinite(bound[i]) || !isfinite(sum[i]) || fabs((double)sum[i]) + bound[i] <= (double)FLT_MAX,
                  "%d: %g within %g", i, (double)sum[i], bound[i]);
        cr_expect(isfinite(sum[i]) || isinf(bound[i]), "%d: %g within %g", i, (double)sum[i], bound[i]);
        cr_expect(isinf(bound[i]) || bound[i] <= (double)FLT_MAX * 0x1p-18, "%d: %g", i, bound[i]);
    }
    cr_expect(finite > 4 && finite < N, "%d bounds are finite", finite);
    end();
}

/* Kernels may combine the identity of logsumexp, whose maximum wins against NaN, with elements. */
Test(ref_bounds, nothing_is_known_of_logsumexp_of_nan_alone)
{
    static const float x[3][2] = { { NAN, NAN }, { NAN, 3 }, { 2, 3 } };
    static float max[3], sum[3];
    static double bound_max[3], bound_sum[3];
    begin();
    const struct problem *p = build("exponentials", "kind: reduce\ninputs: {x: 'f32[m, n]'}\nover: n\n"
                                                    "operator: logsumexp\noutputs:\n"
                                                    "  max: {type: 'f32[m]', value: r.max}\n"
                                                    "  sum: {type: 'f32[m]', value: r.sum}\n");
    const int64_t size[] = { 3, 2 };
    const void *input[] = { x };
    void *output[] = { max, sum };
    double *bounds[] = { bound_max, bound_sum };
    struct run_args args = { size, input, output, NULL };
    cr_assert_null(ref_bound(&session, p, &args, bounds));
    cr_expect(isinf(bound_max[0]) && isinf(bound_sum[0]), "%g, %g", bound_max[0], bound_sum[0]);
    cr_expect(max[1] == 3 && bound_max[1] == 0, "%g within %g", (double)max[1], bound_max[1]);
    cr_expect(max[2] == 3 && bound_max[2] == 0 && bound_sum[2] < 1e-5, "%g within %g", (double)sum[2], bound_sum[2]);
    end();
}
