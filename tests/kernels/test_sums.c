/* SPDX-License-Identifier: Apache-2.0 */
/* test_sums.c - sums inside expressions agree with the oracle on the host executor: in every place that has them, in
 * every strategy that takes the place, at random sizes, nothing to sum over included, under the checking modes.
 */
#include <criterion/criterion.h>

#include "support/harness.h"

static uint64_t state;
static int below(int n) { return (int)(harness_random(&state) % (uint64_t)n); }

enum { STRATEGIES = 7 };
struct place {
    const char *sizes; /* f, g: what sums go over; a digit: this size; k: centroids, or offsets; the others: points */
    const char *spec;
    const char *strategy[STRATEGIES];
};

#define NEAREST                                                                                                        \
    "inputs: {x: 'f32[n, f]', c: 'f32[k, f]'}\nover: k\noperator: argmin\n"                                            \
    "map: {value: 'sum(f, (x - c) * (x - c))', index: i32(index(k))}\n"                                                \
    "outputs: {member: {type: 'i32[n]', value: r.index}}\n"
#define SEGREDUCE "segreduce.subwarp", "segreduce.block"
#define STENCIL   "stencil.global", "stencil.multi_write", "stencil.big_tile"

static const struct place places[] = {
    { "nfk", "kind: reduce\n" NEAREST, { "segreduce.pairs", SEGREDUCE } },
    { "nfk", "kind: reduce\nspace: [k, n]\n" NEAREST, { "segreduce.pairs", "segreduce.column" } },
    { "n3k",
      "kind: reduce\nspace: [k, n]\nassume: {f: {equals: 3}}\n" NEAREST,
      { "segreduce.pairs", "segreduce.column" } },
    { "n0k", "kind: reduce\nassume: {f: {equals: 0}}\n" NEAREST, { "segreduce.pairs", SEGREDUCE } },
    { "nfk",
      "kind: reduce\ninputs: {x: {type: {a: f64, b: i8}, shape: [n, f]}, c: 'f16[f, k]', w: 'f32[k]', v: 'f32[f]'}\n"
      "over: k\nreductions: {r: {map: 'w * sum(f, f32(x.a) * v + f32(c))', operator: max}, s: {map: 'i32(sum(f, "
      "i32(x.b)) % 7) + i32(index(k) * 3 + index(n))', operator: min}}\noutputs: {a: {type: 'f32[n]', value: r}, "
      "b: {type: 'i32[n]', value: s}}\n",
      { "segreduce.pairs", SEGREDUCE } },
    { "nf",
      "kind: reduce\ninputs: {x: 'f32[n, f]', w: 'f32[f]', y: 'f32[n]'}\nmap: 'abs(sum(f, x * w) - y)'\noperator: add\n"
      "outputs: {e: f32}\n",
      { "reduce.block", "reduce.gather", "reduce.last_block", "reduce.atomic", "reduce.two_kernel" } },
    { "nfk",
      "kind: reduce\ninputs: {y: 'f32[n]', x: 'f32[n, f]', w: 'f32[f]', off: 'i32[k]'}\nsegments: {offsets: off}\n"
      "map: 'y * sum(f, x * w)'\noperator: max\n"
      "outputs: {e: 'f32[k-1]', d: {type: 'f32[n]', value: 'sum(f, x * (w - r))'}}\n",
      { "segreduce.offsets", "segreduce.block" } },
    { "mnf",
      "kind: reduce\ninputs: {x: 'f32[m, n]', p: 'f32[m, f]', q: 'f32[f, n]'}\nover: n\nmap: x * sum(f, p * q)\n"
      "operator: max\noutputs: {e: {type: 'f32[m, n]', value: 'sum(f, p * q - r)'}, t: {type: 'f32[m]', value: "
      "'r + product(f, p * r)'}}\n",
      { SEGREDUCE, "segreduce.tile", "segreduce.resident" } },
    { "nf",
      "kind: scan\ninputs: {x: 'i16[n, f]', y: 'i32[n]'}\nmap: 'y + sum(f, i32(x)) * i32(greatest(f, x))'\n"
      "operator: add\noutputs: {s: 'i32[n]', t: i32, g: {type: 'i16[n]', value: 'least(f, x)'}}\n",
      { "scan.resident", "scan.lookback", "scan.pipeline" } },
    { "nf",
      "kind: scan\ninputs: {key: 'u8[n, f]', v: 'i32[n]'}\nsegments: {starts: 'any(f, key > key[-1, 0] + 100)'}\n"
      "map: v\noperator: add\n"
      "outputs: {kept: {type: 'i32[n]', where: 'last and all(f, key != 9)', value: s}, many: {type: i64, count: "
      "kept}}\n",
      { NULL } },
    { "mfn",
      "kind: scan\ninputs: {a: 'f32[m, f]', b: 'f32[f, n]'}\nmode: exclusive\ndirection: reverse\nmap: sum(f, a * b)\n"
      "operator: add\noutputs: {o: 'f32[m, n]'}\n",
      { NULL } },
    { "nfgm",
      "kind: map\ninputs: {a: 'f32[n, f]', b: 'f32[f, g]', c: 'f32[m, g]'}\nlet: {t: 'product(g, c)'}\n"
      "outputs: {o: {type: 'f32[n, m]', value: 't + sum(f, t * a * sum(g, b * c))'},\n"
      "  p: {type: 'f32[n, m]', value: 'sum(f, sum(g, a * c * f32(index(f) + index(g))))'}}\n",
      { STENCIL } },
    { "mnf",
      "kind: stencil\ninputs: {x: 'i32[m, n, f]', y: 'i32[m, n]'}\n"
      "boundary: {x: {m: wrap, n: {constant: 5}, f: mirror}, y: reflect}\n"
      "outputs: {o: {type: 'i32[m, n]', value: 'sum(f, x[-1, 2, 1] - x + y[0, 1])'}}\n",
      { STENCIL } },
    { "mnf",
      "kind: stencil\ninputs: {u: 'f32[m, n]', w: 'f32[f]'}\niterate: {steps: 3, feedback: {u: o}}\nboundary: wrap\n"
      "outputs: {o: {type: 'f32[m, n]', value: '0.3 * (u[-1, 0] + u[0, 1] + u) + sum(f, w * u) * 0.01'}}\n",
      { STENCIL } },
    { "mnf",
      "kind: stencil\ninputs: {x: 'f32[m, n]', w: 'f32[n, f]'}\nreductions: {e: {map: 'sum(f, w * o)', operator: "
      "max}}\n"
      "outputs: {o: {type: 'f32[m, n]', value: 'x[0, 1] + sum(f, w) * x[1, 0]'}, e: f32}\n",
      { NULL } },
    { "nfm",
      "kind: map\ninputs: {x: 'f16[n, f]', y: 'bf16[m, f]', z: {type: {re: f64, ok: bool}, shape: [f]}}\noutputs:\n"
      "  a: {type: 'f32[n, m]', value: 'sum(f, f32(x) * f32(y))'}\n  b: {type: 'f64[n, m]', value: 'sum(f, z.re)'}\n"
      "  c: {type: 'f16[n, m]', value: 'sum(f, x)'}\n  d: {type: 'bool[n, m]', value: 'all(f, z.ok) or any(f, x > "
      "1)'}\n",
      { "stencil.pairs" } },
    { "mnf7",
      "kind: map\ninputs: {x: 'i32[m, f]', y: 'i32[n, f]'}\noutputs: {o: {type: 'i32[m, n]', value: 'sum(f, x * y)'},\n"
      "  q: {type: 'i32[k]', value: 1, at: 'i64(sum(f, x + y)) % k', combine: add, initial: 0}}\n",
      { STENCIL } },
    { "mnf",
      "kind: map\ninputs: {x: 'f32[m, f]', y: 'f32[f, n]', b: 'f32[n]', c: 'i8[m, n]'}\nlet: {top: 'greatest(f, x * "
      "y)'}\n"
      "outputs: {o: {type: 'f32[m, n]', value: 'sum(f, exp(x * y)) - greatest(f, x * y) + b * f32(c)'},\n"
      "  t: {type: 'f32[n, m]', value: 'f32(index(m)) - sum(f, x + y * b)'}}\n",
      { "stencil.pairs", STENCIL } },
    /* some wait for others, also by way of a let; more than one loop takes; two dimensions */
    { "mnfg",
      "kind: map\ninputs: {x: 'f32[m, f]', y: 'f32[n, f]', z: 'f32[n, g]'}\n"
      "let: {top: 'greatest(f, x * y)', all: 'sum(f, exp(x * y - top))'}\noutputs:\n"
      "  a: {type: 'f32[m, n]', value: 'sum(f, exp(x * y - top) / all) + sum(g, z * all) + sum(f, x)'}\n"
      "  b: {type: 'f32[m, n]', value: 'sum(f, x * cos(y)) + sum(f, x * sin(y)) + least(f, y) * least(g, z)'}\n"
      "  c: {type: 'f32[m, n]', value: 'all + sum(f, sum(g, x * z)) + sum(f, 1 + x) + sum(f, 2 - x) + sum(f, 3 + y)'}\n"
      "  d: {type: 'f32[m, n]', value: 'sum(f, 4 - y) + sum(f, 5 + x) + sum(f, 6 + y) + sum(f, 7 + x) + product(f, "
      "x)'}\n",
      { STENCIL } },
};

static void random_sizes(const char *names, int64_t *size)
{
    static const int points[] = { 1, 2, 3, 5, 17, 33, 70, 130 }, terms[] = { 0, 1, 3, 4, 7, 12 };
    const int n = (int)strlen(names);
    for (int i = 0; i < n; i++)
        size[i] = names[i] >= '0' && names[i] <= '9' ? names[i] - '0'
                  : strchr("fg", names[i])           ? terms[below(6)]
                  : n == 2 && below(2)               ? 3000
                                                     : points[below(8)];
}

static void check(const struct place *at, const char *strategy)
{
    static const char *const modes[] = { "seed:1,race,uninit", "seed:0", "seed:3,weak,race,uninit",
                                         "seed:4,stale,late" };
    const char *set[] = { "strategy", strategy, NULL };
    struct harness h;
    if (!harness_open(&h, "sums", at->spec, strategy || below(2) ? "sm_90" : "sm_80", strategy ? set : NULL))
        cr_assert_fail("%s: %s\n%s", strategy ? strategy : "chosen", h.text, at->spec);
    for (int k = 0; k < 3; k++) {
        int64_t size[4] = { 0 };
        const char *mode = modes[below(4)];
        random_sizes(at->sizes, size);
        harness_data_at(&h, size, (uint64_t)below(1000), below(4), false);
        cr_assert(harness_check(&h, mode) || strstr(h.text, "no case of"),
                  "%s, %s = %lld %lld %lld %lld, --simt=%s: %s\n%s", strategy ? strategy : "chosen", at->sizes,
                  (long long)size[0], (long long)size[1], (long long)size[2], (long long)size[3], mode, h.text,
                  at->spec);
    }
    harness_close(&h);
}

#define PLACES(name, from, to)                                                                                         \
    Test(sums, name)                                                                                                   \
    {                                                                                                                  \
        state = (from) + 1;                                                                                            \
        for (int i = (from); i < (to); i++) {                                                                          \
            check(&places[i], NULL);                                                                                   \
            for (int s = 0; s < STRATEGIES && places[i].strategy[s]; s++)                                              \
                check(&places[i], places[i].strategy[s]);                                                              \
        }                                                                                                              \
    }
enum { COUNT = sizeof places / sizeof *places };
PLACES(reduce, 0, 8)
PLACES(scan, 8, 11)
PLACES(stencil, 11, COUNT)
