/* SPDX-License-Identifier: Apache-2.0 */
/* test_scatter.c - outputs at computed places agree with the oracle on the host executor, by every strategy that takes
 * the spec: every kind and form of segments, one writer a place or elements that meet, places out of range.
 *
 * Elements that meet tell where a kernel stores a point twice.
 */
#include <criterion/criterion.h>

#include "lower/lower_impl.h"
#include "support/harness.h"

#define MEET                                                                                                           \
    ", c: {type: 'u32[k]', at: abs(i64(x)) % 7, value: 1, combine: add, initial: 3}, l: {type: 'f32[k]', at: i64(x) "  \
    "- 3, value: "                                                                                                     \
    "f32(x), combine: min}, o: {type: 'u64[k]', at: [x & 3], value: u64(x), combine: {state: u64, let: {t: a ^ b}, "   \
    "combine: t}}"
#define POINTS(dims, place) "outputs: {y: {type: 'i16[" dims "]', at: " place ", value: i16(x)}" MEET

static const struct {
    const char *spec;
    int rank, sizes;
} specs[] = {
    { "kind: map\ninputs: {x: 'i32[n]'}\n" POINTS("n", "n - 1 - index(n)") "}\n", 1, 2 },
    { "kind: map\ninputs: {x: 'i32[n]'}\nboundary: wrap\noutputs: {y: {type: {a: i32, b: f32}, shape: [k], at: "
      "\"index(n) "
      "* 3 - 5\", value: {a: x, b: \"f32(x[-1])\"}}}\n",
      1, 2 },
    { "kind: map\ninputs: {x: 'u8[m, n]'}\n" POINTS("n, m", "[index(n), index(m)]") "}\n", 2, 3 },
    { "kind: map\ninputs: {x: 'i16[d, m, n]'}\n" POINTS("n, d, m", "[n - 1 - index(n), index(d), index(m)]") "}\n", 3,
      4 },
    { "kind: map\ninputs: {x: 'i16[d, m, n]'}\noutputs: {y: {type: 'i16[n, d, m]', at: [index(n), index(d), index(m)], "
      "value: x}, z: {type: {a: i16, b: f32}, shape: [m, n, d], at: [index(m), index(n), index(d)], value: {a: x, b: "
      "f32(x) / 3}}, w: {type: 'i32[d, m, n]', value: i32(x) + 1}}\n",
      3, 3 },
    { "kind: scan\ninputs: {x: 'i32[m, n]'}\noperator: add\noutputs: {y: {type: 'i32[n, m]', at: [index(n), "
      "index(m)]}, "
      "t: 'i32[m]'}\n",
      2, 2 },
    { "kind: map\ninputs: {x: 'i32[n]'}\noutputs: {a: {type: 'u32[9]', at: \"i64(x) & 7\", value: 1, combine: add, "
      "initial: "
      "0}, b: {type: 'u32[9]', at: \"i64(x) & 3\", value: 1, combine: add, initial: 2}}\n",
      1, 1 },
    { "kind: map\ninputs: {x: 'i32[n]'}\noutputs: {a: {type: {value: i32, index: u8}, shape: [9], at: \"i64(x) & 7\", "
      "value: "
      "{value: "
      "x, index: u8(x)}, combine: argmin}, b: {type: {p: f64, q: u8, r: bool}, shape: [9], at: \"i64(x) & 3\", value: "
      "{p: "
      "f64(x), q: u8(x), r: x > 5}, initial: {p: 0, q: 1, r: false}, combine: {state: {p: f64, q: u8, r: bool}, "
      "combine: "
      "{p: \"max(a.p, b.p)\", q: a.q + b.q, r: a.r ^ b.r}}}, c: {type: {p: i16, q: u8}, shape: [9], at: \"i64(x) & "
      "7\", "
      "value: {p: i16(x), q: 1}, initial: {p: 0, q: 5}, combine: {state: {p: i16, q: u8}, commutative: true, combine: "
      "{p: "
      "\"max(a.p, b.p)\", q: \"if a.p == b.p then min(a.q, b.q) else if a.p > b.p then a.q else b.q\"}}}}\n",
      1, 1 },
    { "kind: map\ninputs: {x: 'i32[n]'}\noutputs: {a: {type: {odd: bool, least: u8}, shape: [9], at: \"i64(x) & 7\", "
      "value: {odd: \"x == 12345\", least: \"u8(x & 127) | 128\"}, combine: {state: {odd: bool, least: u8}, combine: "
      "{odd: "
      "'a.odd or b.odd', least: 'min(a.least, b.least)'}, identity: {odd: false, least: 255}}, initial: {odd: false, "
      "least: 254}}}\n",
      1, 1 },
    { "kind: stencil\ninputs: {x: 'i32[m, n]'}\nreductions: {t: {map: i64(y), operator: add}}\n" POINTS(
          "m, n", "[index(m) - 1, \"index(n) + i64(x[0, 1] - x[0, 1])\"]") ", t: i64}\n",
      2, 3 },
    { "kind: scan\ninputs: {x: 'i32[n]'}\nscans: {s: {map: \"i64(x % 3 == 0)\", operator: add}}\nmode: "
      "exclusive\n" POINTS("n",
                           "if x % 3 == 0 then s else n - 1 - (index(n) - s)") ", t: {type: i64, value: s.total}}\n",
      1, 2 },
    { "kind: scan\ninputs: {x: 'i32[n]'}\noperator: add\ndirection: reverse\nmap: i64(x)\n" POINTS(
          "n", "(index(n) + 5) % n") ", w: {type: 'i32[n]', where: x > 0, value: x}, s: 'i64[n]'}\n",
      1, 2 },
    { "kind: scan\ninputs: {x: 'i32[m, n]'}\nmap: 1\noperator: add\n" POINTS("n, m", "[s - 1, index(m)]") "}\n", 2, 3 },
    { "kind: scan\ninputs: {x: 'i32[m, n]'}\nmap: 1\nover: m\noperator: add\n" POINTS("n, m",
                                                                                      "[index(n), m - i64(s)]") "}\n",
      2, 3 },
    { "kind: scan\ninputs: {x: 'i32[n]', f: 'u8[n]'}\nsegments: {flags: f}\noperator: add\n" POINTS(
          "n", "n - 1 - index(n)") "}\n",
      1, 2 },
    { "kind: scan\ninputs: {x: 'i32[n]'}\nsegments: {starts: \"x > x[-1]\"}\noperator: add\n" POINTS(
          "n", "index(n) - 2") "}\n",
      1, 2 },
    { "kind: scan\ninputs: {x: 'i32[n]', off: 'i32[k]'}\nsegments: {offsets: off}\noperator: add\nmap: i64(x)\n" POINTS(
          "n", "n - 1 - index(n)") "}\n",
      1, 2 },
    { "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: max\n" POINTS(
          "n", "(index(n) + 1) % n") ", r: i32, z: {type: 'i32[n]', at: \"(index(n) + i64(r)) % n\", value: r - x}}\n",
      1, 2 },
    { "kind: reduce\ninputs: {x: 'i32[m, n]'}\nover: n\noperator: max\n" POINTS(
          "n, m", "[index(n), index(m)]") ", r: 'i32[m]', z: {type: 'i32[k]', at: r - x, value: 1, combine: add}}\n",
      2, 3 },
    { "kind: reduce\ninputs: {x: 'i32[m, n]'}\nover: m\noperator: max\n" POINTS(
          "n, m", "[index(n), index(m)]") ", r: 'i32[n]', z: {type: 'i32[k]', at: r - x, value: 1, combine: add}}\n",
      2, 3 },
    { "kind: reduce\ninputs: {x: 'i32[n]', off: 'i32[k]'}\nsegments: {offsets: off}\noperator: max\n" POINTS(
          "n", "index(n)") ", z: {type: 'i32[k]', at: r - x, value: 1, combine: add}}\n",
      1, 2 },
};
enum { NSPECS = sizeof specs / sizeof *specs };

/* False: the strategy does not take the spec. */
static bool check(int i, const char *strategy, const char *arch)
{
    static const int lengths[] = { 1, 2, 33, 127, 1000, 4099, 0 };
    static const char *const modes[] = { "seed:1,race,uninit", "seed:2,weak,race", "seed:3,stale,late,uninit" };
    const char *set[] = { "strategy", strategy, NULL, NULL };
    struct harness h;
    const bool takes = harness_open(&h, "placed", specs[i].spec, arch, strategy ? set : NULL);
    cr_assert(takes || strategy, "%s: %s\n%s", arch, h.text, specs[i].spec);
    for (size_t l = 0; takes && l < sizeof lengths / sizeof *lengths; l++) {
        int64_t size[] = { lengths[l], 9, 9, 9 };
        for (int d = 1; d < specs[i].rank; d++)
            size[d] = lengths[l] % 7 + 1;
        if (l % 2 && specs[i].rank > 1)
            size[0] = size[specs[i].rank - 1], size[specs[i].rank - 1] = lengths[l];
        harness_data_at(&h, size, l + 7, (int)l % 3, l % 2);
        const bool same = harness_check(&h, modes[l % 3]);
        cr_expect(same || (strategy && strstr(h.text, "no case of")), "%s on %s, %lld %lld %lld, --simt=%s: %s\n%s",
                  strategy ? strategy : "default", arch, (long long)size[0], (long long)size[1], (long long)size[2],
                  modes[l % 3], h.text, specs[i].spec);
    }
    harness_close(&h);
    return takes;
}

#define PART(part, from)                                                                                               \
    Test(scatter, part)                                                                                                \
    {                                                                                                                  \
        for (int i = (from); i < NSPECS; i += 4) {                                                                     \
            int taken = 0;                                                                                             \
            check(i, NULL, "sm_80");                                                                                   \
            check(i, NULL, "sm_90");                                                                                   \
            for (int s = 0; s < strategy_count(); s++)                                                                 \
                taken += check(i, strategy_row(s)->name, "sm_90");                                                     \
            cr_expect(taken > 0, "no strategy takes\n%s", specs[i].spec);                                              \
        }                                                                                                              \
    }
PART(first, 0)
PART(second, 1)
PART(third, 2)
PART(fourth, 3)

/* Two elements at one place: what the oracle says, and where, and what the executor says. */
Test(scatter, twice)
{
    static const struct {
        const char *spec, *oracle, *executor;
    } rows[] = {
        { "kind: map\ninputs: {x: 'i32[n]'}\noutputs:\n  y: {type: 'i32[n]', at: index(n) / 2, value: x}\n",
          "twice:4:3: error: the elements [0] and [1] both have their place at element 0 of 'y'", "to place" },
        { "kind: scan\ninputs: {x: 'i32[m, n]'}\noperator: add\nmap: 0\noutputs:\n  y: {type: 'i32[m]', at: s, value: "
          "x}\n",
          "the elements [0, 0] and [0, 1] both have their place at element 0 of 'y'", "where the element [" },
        { "kind: reduce\ninputs: {x: 'i32[n]'}\noperator: max\noutputs:\n  y: {type: 'i32[n]', at: r - r, value: x}\n",
          "the elements [0] and [1] both", "to place [0] of 'y'" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct harness h;
        cr_assert(harness_open(&h, "twice", rows[i].spec, "sm_90", NULL), "%s", h.text);
        harness_data(&h, 40, 1, 0, 0);
        cr_expect(!harness_expect(&h) && strstr(h.text, rows[i].oracle), "%s\n%s", h.text, rows[i].spec);
        const ptxgen_arguments args = { h.size, (const void *const *)h.input, h.output, h.param };
        ptxgen_diagnostics_clear(h.s);
        cr_expect_eq(ptxgen_host_run(h.s, h.host, &args, "seed:2"), PTXGEN_INVALID);
        harness_fail(&h, "run");
        cr_expect(strstr(h.text, "two elements at one place") && strstr(h.text, rows[i].executor), "%s", h.text);
        harness_close(&h);
    }
}
