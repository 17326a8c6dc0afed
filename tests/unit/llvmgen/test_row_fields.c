/* SPDX-License-Identifier: Apache-2.0 */
/* test_row_fields.c - rows in registers: states whose fields follow one another, and quotients by a row's result.
 *
 * Rows of lanes, of a block whose warps are a power of two or not, of a cluster; rows that fill their team and do not;
 * infinities, of which no difference may be taken.  Quotients have the bits of a division, whatever the numbers.
 */
#include "kernels/once.h"

static const char *const spec[] = {
    "inputs: {x: 'f32[m, n]'}\nover: n\noperator: logsumexp\n"
    "outputs: {y: {type: 'f32[m, n]', value: exp(x - r.max) / r.sum}, t: {type: 'f32[m]', value: r.max}}\n",
    "inputs: {x: 'f32[m, n]', w: 'f32[n]'}\nover: n\nmap: x\noperator: welford\n"
    "outputs: {y: {type: 'f32[m, n]', value: (x - r.mean) * w}, v: {type: 'f32[m]', value: r.m2 / r.n}}\n",
    "inputs: {x: 'f32[m, n]', w: 'f32[n]'}\nover: n\nmap: abs(x) / 4\noperator: max\n"
    "outputs: {y: {type: 'f32[m, n]', value: x * w / r}}\n",
    "inputs: {x: 'f16[m, n]'}\nover: n\nreductions:\n  a: {map: f32(x), operator: logsumexp}\n"
    "  b: {map: i32(x), operator: max}\n  c: {map: f32(x), operator: welford}\n"
    "outputs: {y: {type: 'f32[m, n]', value: exp(f32(x) - a.max) / a.sum + c.mean + f32(b)}}\n",
};

Test(row_fields, of_every_team)
{
    static const int64_t sizes[][2] = { { 70, 7 }, { 9, 128 }, { 5, 1000 }, { 3, 1028 }, { 3, 2051 }, { 2, 6000 } };
    static const char *const sets[][7] = {
        { NULL },
        { "threads", "96", NULL },
        { "strategy", "segreduce.resident", "threads", "64", "cluster", "2", NULL },
    };
    for (size_t i = 0; i < sizeof spec / sizeof *spec; i++)
        for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
            for (int s = 0; s < 3; s++) {
                char text[600];
                snprintf(text, sizeof text, "kind: reduce\n%s", spec[i]);
                if (s == 2 && (sizes[n][1] % 8 || sizes[n][1] > 2048))
                    continue; /* a cluster takes whole vectors, and this one so many */
                run_once(text, *sets[s] ? sets[s] : NULL, sizes[n], 0, "seed:1,race,uninit,guard,sms:2", NULL);
            }
}

/* One row of infinities, and others among numbers. */
Test(row_fields, of_infinities)
{
    enum { ROWS = 4, COLUMNS = 300 };
    static const int64_t size[] = { ROWS, COLUMNS };
    struct harness h;
    cr_assert(harness_open(&h, "infinities",
                           "kind: reduce\ninputs: {x: 'f32[m, n]'}\nover: n\noperator: logsumexp\n"
                           "outputs: {s: {type: 'f32[m]', value: r.sum}, y: {type: 'f32[m, n]', value: x + r.sum}}\n",
                           "sm_90", NULL),
              "%s", h.text);
    harness_data_at(&h, size, 3, 0, 0);
    float *x = h.input[0];
    for (int i = 0; i < COLUMNS; i++)
        x[i] = -INFINITY;
    x[COLUMNS + 5] = -INFINITY;
    x[2 * COLUMNS + 7] = x[2 * COLUMNS + 280] = INFINITY;
    cr_expect(harness_check(&h, "seed:1,race,uninit,guard"), "%s", h.text);
    const float *sum = h.output[0];
    cr_expect(sum[0] == COLUMNS && sum[1] > 1 && sum[2] == 2, "%g %g %g", (double)sum[0], (double)sum[1],
              (double)sum[2]);
    harness_close(&h);
}

/* Any bits, those near the ends of the range in which quotients are computed, and divisors inside it and outside. */
Test(row_fields, quotients_have_the_bits_of_divisions)
{
    enum { ROWS = 24, COLUMNS = 512 };
    static const int64_t size[] = { ROWS, COLUMNS };
    struct harness h;
    uint64_t seed = 7;
    cr_assert(
        harness_open(&h, "quotients",
                     "kind: reduce\ninputs: {x: 'f32[m, n]', z: 'f32[m, n]'}\nmap: abs(z)\noperator: max\nover: n\n"
                     "outputs: {y: {type: 'f32[m, n]', value: x / r}}\n",
                     "sm_90", NULL),
        "%s", h.text);
    harness_data_at(&h, size, 3, 0, 0);
    float *x = h.input[0], *z = h.input[1];
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const int row = i / COLUMNS, exponent = row % 3 == 0 ? 0 : row % 3 == 1 ? -98 : 98;
        const double number = 1 + (double)(harness_random(&seed) >> 41) * 0x1p-23;
        const uint32_t bits = (uint32_t)harness_random(&seed);
        x[i] = (float)ldexp(number, exponent + (int)(harness_random(&seed) % 9) - 4);
        if (row % 4 == 3)
            memcpy(&x[i], &bits, sizeof bits);
        if (row % 8 == 1 && i % 50 == 3)
            x[i] = i % 4 ? INFINITY : -INFINITY;
        z[i] = (float)ldexp(number, row * 5 - 60);
    }
    cr_expect(harness_check(&h, "seed:1,race,uninit,guard"), "%s", h.text);
    const float *y = h.output[0];
    for (int row = 0; row < ROWS; row++) {
        float most = 0;
        int differ = 0;
        for (int i = row * COLUMNS; i < (row + 1) * COLUMNS; i++)
            most = fabsf(z[i]) > most ? fabsf(z[i]) : most;
        for (int i = row * COLUMNS; i < (row + 1) * COLUMNS; i++) {
            const float quotient = x[i] / most;
            differ += memcmp(&y[i], &quotient, sizeof quotient) && !(isnan(y[i]) && isnan(quotient));
        }
        cr_expect_eq(differ, 0, "row %d: %d of %d differ", row, differ, COLUMNS);
    }
    harness_close(&h);
}
