/* SPDX-License-Identifier: Apache-2.0 */
/* test_apart.c - more than three dimensions that are treated alike but lie apart, on the host executor against the oracle, by
 * every strategy that takes the spec: results and maps of them, scans, maps, neighbours, arrays in any order. */
#include <criterion/criterion.h>

#include "lower/lower_impl.h"
#include "support/harness.h"

#define X "x: 'i32[a, b, c, d]'"

static const struct {
    enum problem_kind kind;
    const char *spec;
} specs[] = {
    { KIND_REDUCE,
      "kind: reduce\ninputs: {" X "}\noperator: max\nover: [b, d]\noutputs: {r: 'i32[a, c]', y: {type: 'i32[a, "
      "b, c, d]', value: r - x}, z: {type: 'i32[d, b-1, a, c]', value: x}}\n" },
    { KIND_REDUCE,
      "kind: reduce\ninputs: {" X ", g: 'i16[c, a]', h: 'u8[d]'}\noperator: {state: {p: i32, q: i32}, combine: "
      "{p: a.p * b.p, q: a.q * b.p + b.q}}\nover: [b, d]\nmap: {p: 'x % 5 + i32(g)', q: 'i32(h) + x[0, -1, 0, "
      "1]'}\nboundary: {x: {b: wrap, d: {constant: 9}}}\noutputs: {r: {type: 'i32[a, c]', value: r.q + "
      "i32(g)}}\n" },
    { KIND_REDUCE,
      "kind: reduce\ninputs: {" X "}\nmap: i64(x)\noperator: add\nover: [a, c]\noutputs: {r: 'i64[b, d]', y: "
      "{type: 'i64[c, d, b, a]', value: r - index(c)}}\n" },
    { KIND_REDUCE,
      "kind: reduce\ninputs: {" X ", y: 'i32[d, c, b, a]'}\nmap: i64(x) * i64(y)\noperator: add\noutputs: {r: "
      "i64}\n" },
    { KIND_REDUCE, /* places after a row's end have no element of w */
      "kind: reduce\ninputs: {" X
      ", w: 'i32[a, b, d]'}\nmap: i64(x) * i64(w)\noperator: add\nover: [b, c, d]\noutputs: "
      "{r: 'i64[a]', y: {type: 'i64[a, b, c, d]', value: r - i64(x)}}\n" },
    { KIND_SCAN, "kind: scan\ninputs: {" X "}\nmap: i64(x)\noperator: add\nover: [a, c]\nmode: exclusive\noutputs: {s: "
                 "'i64[a, b, c, d]', t: 'i64[b, d]'}\n" },
    { KIND_SCAN,
      "kind: scan\ninputs: {" X ", f: 'u8[a, b, c, d]'}\nmap: i64(x)\noperator: add\nover: [b, d]\ndirection: "
      "reverse\ninit: 3\nsegments: {starts: f > 200}\noutputs: {s: {type: 'i64[d, c, b, a]', value: if last then s "
      "else -s}}\n" },
    { KIND_STENCIL,
      "kind: map\ninputs: {" X ", t: 'i16[d, b, a, c]', g: 'i32[b, d]'}\noutputs: {y: {type: 'i32[a, b, c, d]', "
      "value: x + i32(t) * g}, z: {type: 'i32[c, b, d, a]', value: 'x[0, 1, 0, -1]'}}\n" },
};
enum { SPECS = sizeof specs / sizeof *specs };

/* False: the strategy does not take the spec. */
static bool check(int spec, const char *strategy)
{
    static const int64_t sizes[][4] = {
        { 1, 1, 1, 1 }, { 3, 2, 4, 5 }, { 2, 33, 3, 40 }, { 40, 3, 5, 7 },
        { 5, 3, 6, 1 }, { 0, 2, 2, 2 }, { 3, 2, 5, 130 },
    };
    static const char *const modes[] = { "seed:1,race,uninit", "seed:2,weak,race", "seed:3,stale,late,uninit" };
    const char *set[] = { "strategy", strategy, NULL, NULL };
    struct harness h;
    const bool takes = harness_open(&h, "apart", specs[spec].spec, "sm_90", strategy ? set : NULL);
    cr_assert(takes || strategy, "%s\n%s", h.text, specs[spec].spec);
    for (int l = 0; takes && l < 7; l++) {
        if (sizes[l][0] == 0 && strstr(specs[spec].spec, "{state"))
            continue;
        harness_data_at(&h, sizes[l], (uint64_t)l + 5, l % 3, l % 2);
        const bool same = harness_check(&h, modes[l % 3]);
        cr_expect(same || (strategy && strstr(h.text, "no case of")), "%s, sizes %d, --simt=%s: %s\n%s",
                  strategy ? strategy : "default", l, modes[l % 3], h.text, specs[spec].spec);
    }
    harness_close(&h);
    return takes;
}

Test(apart, agrees, .timeout = 300)
{
    for (int i = 0; i < SPECS; i++) {
        int taken = 0;
        check(i, NULL);
        for (int s = 0; s < strategy_count(); s++)
            taken += strategy_row(s)->kind == specs[i].kind && check(i, strategy_row(s)->name);
        cr_expect(taken > 0, "%d strategies take\n%s", taken, specs[i].spec);
    }
}
