/* SPDX-License-Identifier: Apache-2.0 */
/* test_determinism.c - what `determinism` promises: the same bits wherever arrays lie and however blocks are scheduled;
 * at `device` for any number of multiprocessors, too.
 *
 * Forms of reductions of floats, with the default plan and with every strategy that fits, run on the host executor at
 * several misalignments, seeds and numbers of multiprocessors.  The outputs must agree bit for bit with those of the
 * first run.
 */
#include <criterion/criterion.h>

#include "support/harness.h"
#include "lower/plan.h"

static const struct {
    const char *name, *spec;
    int64_t size[3][3];
} forms[] = {
    { "whole",
      "kind: reduce\ninputs: {x: 'f32[n]', y: 'f16[n]'}\nmap: x * f32(y)\noperator: add\noutputs: {s: f32}\n",
      { { 1000 }, { 1003 }, { 9001 } } },
    { "rows",
      "kind: reduce\ninputs: {x: 'f32[m, n]'}\noperator: add\nover: n\noutputs: {s: 'f32[m]'}\n",
      { { 7, 64 }, { 5, 1001 }, { 66, 18 } } },
    { "long rows of halves",
      "kind: reduce\ninputs: {x: 'f16[m, n]'}\noperator: add\nmap: f32(x) * f32(0.1)\nover: n\noutputs: {s: "
      "'f32[m]'}\n",
      { { 2, 18432 }, { 1, 18429 }, { 3, 40000 } } },
    { "mapped between offsets",
      "kind: reduce\ninputs: {x: 'f32[n]', off: 'i32[k]'}\nsegments: {offsets: off}\noperator: logsumexp\n"
      "outputs: {y: {type: 'f32[n]', value: exp(x - r.max) / r.sum}}\n",
      { { 9001, 90 }, { 15000, 3 }, { 30000, 2 } } },
    { "mapped columns",
      "kind: reduce\ninputs: {x: 'f32[m, n]'}\noperator: logsumexp\nover: m\n"
      "outputs: {y: {type: 'f32[m, n]', value: exp(x - r.max) / r.sum}}\n",
      { { 40, 700 }, { 7, 4300 }, { 300, 100 } } },
    { "columns",
      "kind: reduce\ninputs: {x: 'f32[m, n]'}\noperator: add\nover: m\noutputs: {s: 'f32[n]'}\n",
      { { 640, 8 }, { 1001, 5 }, { 30, 66 } } },
    { "narrow columns",
      "kind: reduce\ninputs: {x: 'f16[m, n]'}\noperator: add\nmap: f32(x)\nover: m\noutputs: {s: 'f32[n]'}\n",
      { { 640, 9 }, { 1001, 5 }, { 30, 67 } } },
    { "ordered",
      "kind: reduce\ninputs: {x: 'f32[n]'}\noperator: {state: f32, identity: 0, combine: a + b * 1.0000001}\n"
      "outputs: {s: f32}\n",
      { { 1000 }, { 1003 }, { 9001 } } },
    { "beside two dimensions",
      "kind: stencil\ninputs: {x: 'f64[m, n]'}\nreductions: {c: {map: o, operator: add}}\n"
      "outputs: {o: {type: 'f64[m, n]', value: 'x[-1, 0] + x[1, 0] + x[0, -1] + x[0, 1]'}, c: f64}\n",
      { { 37, 100 }, { 31, 101 }, { 29, 102 } } },
    { "beside one dimension",
      "kind: stencil\ninputs: {x: 'f32[n]'}\nreductions: {c: {map: o, operator: add}}\n"
      "outputs: {o: {type: 'f32[n]', value: 'x[-1] * x[1]'}, c: f32}\n",
      { { 1000 }, { 1001 }, { 4099 } } },
    { "beside three dimensions",
      "kind: stencil\ninputs: {x: 'f32[d, m, n]'}\nreductions: {c: {map: o, operator: add}}\n"
      "outputs: {o: {type: 'f32[d, m, n]', value: 'x[-1, 0, 0] + x[0, 1, 0] * x[0, 0, 1]'}, c: f32}\n",
      { { 9, 10, 24 }, { 9, 10, 25 }, { 7, 8, 9 } } },
};

enum { RUNS = 5, BYTES = 1 << 17 };

/* All outputs of a run; how many bytes. */
static size_t collect(struct harness *h, unsigned char *to)
{
    size_t bytes = 0;
    for (int o = 0; o < ptxgen_problem_output_count(h->problem); o++) {
        ptxgen_array_info a;
        ptxgen_problem_output(h->problem, o, &a);
        const size_t n = (size_t)h->count[o] * a.element_size;
        cr_assert_leq(bytes + n, BYTES);
        memcpy(to + bytes, h->output[o], n);
        bytes += n;
    }
    return bytes;
}

/* Every run must have the bits of the first; one that no case takes has none. */
static int check_size(struct harness *h, const char *what, const int64_t *size, bool device)
{
    static const char *const here[RUNS] = { "seed:0", "seed:3", "seed:0", "seed:7", "seed:1" },
                             *const anywhere[RUNS] = { "seed:0", "seed:3,sms:1", "seed:0,sms:7", "seed:7,resident:1",
                                                       "seed:1,sms:2" };
    static unsigned char first[BYTES], now[BYTES];
    size_t bytes = 0;
    int ran = 0;
    for (int run = 0; run < RUNS; run++) {
        harness_data_at(h, size, 5, run % 4, run == 4);
        if (!harness_check(h, (device ? anywhere : here)[run])) {
            cr_assert(strstr(h->text, "no case of "), "%s: %s", what, h->text);
            continue;
        }
        if (ran++ == 0)
            bytes = collect(h, first);
        cr_assert_eq(collect(h, now), bytes);
        cr_expect(!memcmp(first, now, bytes), "%s, sizes %lld %lld %lld: run %d has other bits (case %s)", what,
                  (long long)size[0], (long long)size[1], (long long)size[2], run, ptxgen_host_case(h->host));
    }
    return ran;
}

static int check_form(size_t form, const char *level, const char *strategy)
{
    const char *set[] = { "strategy", strategy, NULL, NULL };
    char spec[1024], what[256];
    struct harness h;
    int ran = 0;
    snprintf(spec, sizeof spec, "%sdeterminism: %s\n", forms[form].spec, level);
    snprintf(what, sizeof what, "%s, %s, %s", forms[form].name, level, strategy ? strategy : "default");
    if (harness_open(&h, forms[form].name, spec, "sm_90", strategy ? set : NULL))
        for (int i = 0; i < 3; i++)
            ran += check_size(&h, what, forms[form].size[i], *level == 'd');
    else
        cr_assert(strategy, "%s: %s", what, h.text);
    harness_close(&h);
    return ran;
}

static void check_level(const char *level)
{
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        cr_assert_eq(check_form(f, level, NULL), 3 * RUNS);
        for (int i = 0; i < strategy_count(); i++)
            check_form(f, level, strategy_row(i)->name);
    }
}

/* At `device` other architectures have the same bits, too. */
Test(determinism, every_architecture)
{
    static const char *const arch[] = { "sm_90", "sm_80", "sm_120", "sm_75" };
    static unsigned char first[BYTES], now[BYTES];
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        char spec[1024];
        snprintf(spec, sizeof spec, "%sdeterminism: device\n", forms[f].spec);
        for (int i = 0; i < 12; i++) {
            struct harness h;
            cr_assert(harness_open(&h, forms[f].name, spec, arch[i % 4], NULL), "%s", h.text);
            harness_data_at(&h, forms[f].size[i / 4], 5, 0, false);
            cr_assert(harness_check(&h, "seed:0"), "%s, %s: %s", forms[f].name, arch[i % 4], h.text);
            const size_t bytes = collect(&h, i % 4 ? now : first);
            cr_expect(i % 4 == 0 || !memcmp(first, now, bytes), "%s, sizes %lld %lld: %s has other bits (case %s)",
                      forms[f].name, (long long)forms[f].size[i / 4][0], (long long)forms[f].size[i / 4][1],
                      arch[i % 4], ptxgen_host_case(h.host));
            harness_close(&h);
        }
    }
}

Test(determinism, run) { check_level("run"); }
Test(determinism, device) { check_level("device"); }
