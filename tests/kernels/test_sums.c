/* SPDX-License-Identifier: Apache-2.0 */
/* test_sums.c - sums inside expressions, and reductions of pairs, agree with the oracle on the host executor: in every
 * place that has them, in every strategy that takes the place, at random sizes, nothing to sum over included, under the
 * checking modes.
 */
#include <criterion/criterion.h>

#include "kernels/once.h"

static uint64_t state;
static int below(int n) { return (int)(harness_random(&state) % (uint64_t)n); }

enum { STRATEGIES = 7 };
struct place {
    const char *
        sizes; /* f, g: what sums go over; t: as many terms as a tile has; a digit: this size; k: centroids, or offsets; the others: points */
    const char *spec;
    const char *strategy[STRATEGIES]; /* NAME or NAME@TUNABLE=VALUE */
};

#define NEAREST                                                                                                        \
    "inputs: {x: 'f32[n, f]', c: 'f32[k, f]'}\nover: k\noperator: argmin\n"                                            \
    "map: {value: 'sum(f, (x - c) * (x - c))', index: i32(index(k))}\n"                                                \
    "outputs: {member: {type: 'i32[n]', value: r.index}}\n"
#define SEGREDUCE "segreduce.subwarp", "segreduce.block"
#define STENCIL   "stencil.global", "stencil.multi_write", "stencil.big_tile"

#define COLUMNS  "segreduce.column", "segreduce.subwarp", "segreduce.block"
#define BINS     "reduce.bins@lanes=32", "reduce.bins@lanes=1", "reduce.bins@bins=0"
#define PARTNERS "kind: reduce\ninputs: {mass: 'f32[j]', x: 'f32[n]', y: 'i32[3]'}\nspace: [j, n]\nover: j\n"
#define ATTRACTED                                                                                                      \
    "let: {dx: 'at(x, index(j)) - x', own: 'x * x + f32(at(y, index(n) % 3))'}\n"                                      \
    "reductions: {a: {map: 'mass * dx + own', operator: max}, b: {map: 'i32(dx * 8) ^ i32(own * 9)', operator: "       \
    "add}}\n"                                                                                                          \
    "outputs: {a: {type: 'f32[n]', value: a}, b: {type: 'i32[n]', value: b}}\n"

/* The two nearest, of equal ones the first; many distances are equal. */
#define NEAREST_TWO                                                                                                    \
    "map: {d0: 'i32(abs(p - q)) / 16', d1: 2147483647, i0: i32(index(n)), i1: 2147483647}\noperator:\n"                \
    "  state: {d0: i32, d1: i32, i0: i32, i1: i32}\n"                                                                  \
    "  identity: {d0: 2147483647, d1: 2147483647, i0: 2147483647, i1: 2147483647}\n  let:\n"                           \
    "    a0: a.d0 < b.d1 or (a.d0 == b.d1 and a.i0 < b.i1)\n"                                                          \
    "    a1: a.d1 < b.d0 or (a.d1 == b.d0 and a.i1 < b.i0)\n"                                                          \
    "    c0: select(a0, a.d0, b.d1)\n    c1: select(a1, a.d1, b.d0)\n"                                                 \
    "    k0: select(a0, a.i0, b.i1)\n    k1: select(a1, a.i1, b.i0)\n"                                                 \
    "    s: c0 < c1 or (c0 == c1 and k0 < k1)\n"                                                                       \
    "  combine: {d0: 'select(s, c0, c1)', d1: 'select(s, c1, c0)', i0: 'select(s, k0, k1)', i1: 'select(s, k1, "       \
    "k0)'}\n"                                                                                                          \
    "  commutative: true\n"                                                                                            \
    "outputs: {n0: {type: 'i32[m]', value: r.i0}, n1: {type: 'i32[m]', value: r.i1}, d: {type: 'i32[m]', value: "      \
    "r.d1}}\n"

#define PRODUCTS                                                                                                       \
    "segreduce.pairs", "segreduce.pairs@threads=256", "segreduce.pairs@lanes=32", "segreduce.pairs@items=2",           \
        "segreduce.pairs@segments=1", "segreduce.pairs@vector=1"

#define BIN "let: {c: 'x * y', bin: 'if c < at(edge, 1) then (if c < at(edge, 0) then 0 else 1) else 2'}\n"

static const struct place places[] = {
    { "nfk", "kind: reduce\n" NEAREST, { "segreduce.pairs", SEGREDUCE } },
    { "nfk", "kind: reduce\nspace: [k, n]\n" NEAREST, { "segreduce.pairs", "segreduce.column" } },
    { "n3k",
      "kind: reduce\nspace: [k, n]\nassume: {f: {equals: 3}}\n" NEAREST,
      { "segreduce.pairs", "segreduce.column" } },
    { "n0k", "kind: reduce\nassume: {f: {equals: 0}}\n" NEAREST, { "segreduce.pairs", SEGREDUCE } },
    /* Five sums leave a thread four elements: tiles of fewer rows than threads copy at a time. */
    { "ntk",
      "kind: reduce\ninputs: {x: 'f32[n, f]', c: 'f32[k, f]'}\nover: k\noperator: max\n"
      "map: 'sum(f, x * c) + sum(f, x + c) + sum(f, x - c) + sum(f, x * x) + sum(f, max(x, c))'\noutputs: {d: "
      "'f32[n]'}\n",
      { "segreduce.pairs", "segreduce.pairs@lanes=1", "segreduce.pairs@threads=320" } },
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
    /* products: every layout, rows, columns and terms at either end; ordered operators, some without an identity; several
     * tables, weights of terms, values of rows and of columns */
    { "mnf",
      "kind: reduce\ninputs: {a: 'f32[m, f]', b: 'f32[n, f]'}\nspace: [m, n, f]\nover: f\nmap: abs(a - b)\n"
      "operator: add\noutputs: {r: 'f32[m, n]'}\n",
      { PRODUCTS } },
    { "mnf",
      "kind: reduce\ninputs: {a: 'f16[f, m]', b: 'f16[n, f]'}\nspace: [f, m, n]\nover: f\nmap: f32(a) * f32(b)\n"
      "operator: add\noutputs: {r: 'f32[m, n]'}\n",
      { PRODUCTS } },
    { "mnf",
      "kind: reduce\ninputs: {a: 'i8[m, f]', b: 'i8[f, n]', w: 'i32[f]', u: 'i32[n]'}\nspace: [m, f, n]\nover: f\n"
      "reductions: {r: {map: 'i32(a) * i32(b) * w + u + i32(index(f) * index(m))', operator: add}, s: {map: "
      "'i64(a) + i64(b)', operator: max}}\noutputs: {r: 'i32[m, n]', s: 'i64[m, n]'}\n",
      { PRODUCTS } },
    { "mnf",
      "kind: reduce\ninputs: {p: 'i32[f, m]', q: 'i32[f, n]'}\nspace: [m, n, f]\nover: f\n"
      "map: {x: p + q, y: p - q}\noperator: {state: {x: i32, y: i32}, combine: {x: a.x * b.x, y: b.x * a.y + b.y}}\n"
      "init: {x: 1, y: 0}\noutputs: {r: {type: 'i32[m, n]', value: r.y}}\n",
      { PRODUCTS } },
    /* pairs: what belongs to one partner is computed ahead, and what belongs to the other one is read once for several; an
     * operator without identity */
    { "nm",
      "kind: reduce\ninputs: {x: 'f32[n]', y: 'f32[m]', w: 'i32[m]'}\nspace: [n, m]\nover: m\n"
      "reductions: {a: {map: 'f32(w) * rsqrt((x - y) * (x - y) + 0.01)', operator: add}, b: {map: 'i32(x * 3) ^ w', "
      "operator: max}}\noutputs: {a: {type: 'f32[n]', value: a + x}, b: {type: 'i32[n]', value: b}}\n",
      { SEGREDUCE, "segreduce.subwarp@segments=2", "segreduce.subwarp@segments=4", "segreduce.subwarp@items=1" } },
    { "nm",
      "kind: reduce\ninputs: {x: 'i32[n]', y: 'i32[m]'}\nspace: [n, m]\nover: m\n"
      "map: {p: x + y, q: x - y}\noperator: {state: {p: i32, q: i32}, combine: {p: a.p * b.p, q: b.p * a.q + b.q}}\n"
      "outputs: {r: {type: 'i32[n]', value: r.q}}\n",
      { SEGREDUCE, "segreduce.subwarp@segments=4" } },
    /* columns: states settle; threads walk down columns to count */
    { "jn", PARTNERS ATTRACTED, { COLUMNS } },
    { "jn", PARTNERS "boundary: {x: {constant: 7}}\n" ATTRACTED, { COLUMNS } },
    { "ijn",
      "kind: reduce\ninputs: {v: 'f32[i]', mass: 'f32[j]', x: 'f32[n]'}\nspace: [i, j, n]\nover: [i, j]\n"
      "map: 'v * mass * (at(x, index(j)) - x * x) + at(v, index(i) + 1)'\noperator: min\noutputs: {a: 'f32[n]'}\n",
      { "segreduce.column" } },
    { "nm", "kind: reduce\ninputs: {p: 'i32[n]', q: 'i32[m]'}\nspace: [n, m]\nover: n\n" NEAREST_TWO, { COLUMNS } },
    { "nm",
      "kind: reduce\ninputs: {p: 'i32[n]', q: 'i32[m]'}\nspace: [n, m]\nover: n\nstrategy: {rows: 1}\n" NEAREST_TWO,
      { "segreduce.column" } },
    { "mp",
      "kind: reduce\ninputs: {x: 'f32[m]', y: 'f32[p]', edge: 'f32[2]'}\n" BIN
      "by: 'if index(m) < index(p) then bin else -1'\nmap: i64(1)\noperator: add\noutputs: {h: 'i64[3]'}\n",
      { BINS } },
    { "mp",
      "kind: reduce\ninputs: {x: 'f32[m]', y: 'f32[p]', edge: 'f32[2]'}\n" BIN
      "by: ['bin', 'if x < y then i64(index(p) % 3) else -1']\n"
      "reductions: {one: {map: 1, operator: add}, two: {map: i64(2), operator: add}, less: {map: u32(255), operator: "
      "add}}\n"
      "outputs: {one: 'i32[3, 3]', two: 'i64[3, 3]', less: {type: 'u32[3, 3]', value: less}}\n",
      { BINS } },
    { "smp",
      "kind: reduce\ninputs: {x: 'f32[s, m]', y: 'f32[s, p]', edge: 'f32[2]'}\n" BIN
      "by: ['index(s) % 2', bin]\nreductions: {a: {map: 'i32(x * 9) * i32(y * 7)', operator: add}, b: {map: c, "
      "operator: "
      "max}}\noutputs: {a: 'i32[2, 3]', b: {type: 'f32[2, 3]', value: b}}\n",
      { BINS } },
    { "smp",
      "kind: reduce\ninputs: {x: 'f32[s, m]', y: 'f32[s, p]', edge: 'f32[2]'}\nover: [s, m]\n" BIN
      "by: bin\nmap: 'i64(index(s) - index(p))'\noperator: add\noutputs: {h: 'i64[3, p]'}\n",
      { BINS } },
};

static void random_sizes(const char *names, int64_t *size)
{
    static const int points[] = { 1, 2, 3, 5, 17, 33, 70, 130 }, terms[] = { 0, 1, 3, 4, 7, 12, 16, 35 };
    const int n = (int)strlen(names);
    for (int i = 0; i < n; i++)
        size[i] = names[i] >= '0' && names[i] <= '9'      ? names[i] - '0'
                  : names[i] == 't'                       ? 16
                  : strchr("fg", names[i])                ? terms[below(8)]
                  : n == 2 && names[1] == 'f' && below(2) ? 3000
                                                          : points[below(8)];
}

static void check(const struct place *at, const char *strategy, int rounds)
{
    static const char *const modes[] = { "seed:1,race,uninit", "seed:0", "seed:3,weak,race,uninit",
                                         "seed:4,stale,late" };
    char name[32] = "", tunable[16] = "", value[16] = "";
    if (strategy)
        sscanf(strategy, "%31[^@]@%15[^=]=%15s", name, tunable, value);
    const char *set[] = { "strategy", name, *tunable ? tunable : NULL, value, NULL };
    struct harness h;
    if (!harness_open(&h, "place", at->spec, strategy || below(2) ? "sm_90" : "sm_80", strategy ? set : NULL))
        cr_assert_fail("%s: %s\n%s", strategy ? strategy : "chosen", h.text, at->spec);
    for (int k = 0; k < rounds; k++) {
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

#define PLACES(name, from, to, rounds)                                                                                 \
    Test(sums, name)                                                                                                   \
    {                                                                                                                  \
        state = (from) + 1;                                                                                            \
        for (int i = (from); i < (to); i++) {                                                                          \
            check(&places[i], NULL, rounds);                                                                           \
            for (int s = 0; s < STRATEGIES && places[i].strategy[s]; s++)                                              \
                check(&places[i], places[i].strategy[s], rounds);                                                      \
        }                                                                                                              \
    }

enum { COUNT = sizeof places / sizeof *places, PAIRS = COUNT - 11, PRODUCTS_FROM = PAIRS - 4 };
PLACES(reduce, 0, 8, 3)
PLACES(scan, 8, 11, 3)
PLACES(stencil, 11, PRODUCTS_FROM, 3)
PLACES(products, PRODUCTS_FROM, PAIRS, 4)
PLACES(pairs, PAIRS, COUNT, 12)

/* Rounds inside of all arrays: also of those that values per element read. */
Test(sums, values_per_element_read_a_short_table)
{
    static const char spec[] = "kind: reduce\ninputs: {x: 'f32[n, m]', z: 'f32[k]'}\nover: n\nmap: x\noperator: add\n"
                               "outputs: {s: 'f32[m]', e: {type: 'f32[n, m]', value: 'x + at(z, index(n))'}}\n";
    run_once(spec, NULL, (const int64_t[]){ 1000, 300, 7 }, 0, "seed:1,race,uninit,guard", NULL);
}

/* Threads with 64 results, whose tiles are whole or end early, of whole tiles of terms and others; results in vectors,
 * and one by one where rows of them are none. */
Test(sums, many_results_of_a_thread)
{
    static const char *const spec[] = {
        "kind: reduce\ninputs: {a: 'f32[m, f]', b: 'f32[f, n]', u: 'f32[n]'}\nspace: [m, n, f]\nover: f\n"
        "map: 'a * b + u'\noperator: add\noutputs: {r: {type: 'f32[m, n]', value: r + u}, s: {type: 'u8[m, n]', value: "
        "'u8(r > 0)'}}\n",
        "kind: map\ninputs: {a: 'f32[m, f]', b: 'f32[f, n]'}\noutputs: {y: {type: 'f32[m, n]', value: 'sum(f, a * "
        "b)'}}\n"
    };
    static const char *const set[][13] = { { "strategy", "segreduce.pairs", "threads", "256", "lanes", "16", "segments",
                                             "8", "items", "8", NULL },
                                           { "strategy", "stencil.pairs", "threads", "256", "block_x", "32", "block_y",
                                             "8", "points_x", "4", "points_y", "16", NULL } };
    static const int64_t size[][3] = { { 130, 16, 132 }, { 7, 35, 257 } }; /* m, f, n */
    for (int i = 0; i < 2; i++) {
        struct harness h;
        cr_assert(harness_open(&h, "many", spec[i], "sm_90", set[i]), "%s", h.text);
        for (int j = 0; j < 2; j++) {
            harness_data_at(&h, size[j], 5, j, false);
            cr_expect(harness_check(&h, "seed:1,race,uninit,guard"), "spec %d, sizes %d: %s", i, j, h.text);
        }
        harness_close(&h);
    }
}

/* The first of equal elements: a thread's later ones have larger indices along one reduced axis, but not along the
 * second of two. */
Test(sums, equal_elements)
{
    static const char *const spec[] = {
        "kind: reduce\ninputs: {x: 'u8[d, m]'}\nmap: {value: 'x % 2', index: index(m)}\n"
        "operator: argmin\noutputs: {r: {type: i64, value: r.index}}\n",
        "kind: reduce\ninputs: {x: 'u8[d, m, n]'}\nover: n\nmap: {value: 'x % 2', index: index(n)}\n"
        "operator: argmax\noutputs: {r: {type: 'i64[d, m]', value: r.index}}\n",
        "kind: reduce\ninputs: {x: 'u8[d, n]', y: 'i8[m, n]'}\nover: m\n"
        "map: {value: 'sum(n, i32(x) * i32(y)) % 2', index: i32(index(m))}\n"
        "operator: argmin\noutputs: {r: {type: 'i32[d]', value: r.index}}\n"
    };
    static const int64_t size[][3] = { { 4, 5 }, { 5, 70, 64 }, { 40, 7, 16 } };
    static const char *const strategy[] = { "reduce.last_block", "segreduce.block", "segreduce.pairs" };
    for (int i = 0; i < 3; i++) {
        struct harness h;
        const char *const set[] = { "strategy", strategy[i], NULL };
        cr_assert(harness_open(&h, "equal", spec[i], "sm_90", set), "%s", h.text);
        for (uint64_t seed = 0; seed < 10; seed++) {
            harness_data_at(&h, size[i], seed, 0, false);
            cr_expect(harness_check(&h, "seed:1,race,uninit,guard"), "%d: %s", i, h.text);
        }
        harness_close(&h);
    }
}
