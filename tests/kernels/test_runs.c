/* SPDX-License-Identifier: Apache-2.0 */
/* test_runs.c - segments by `starts` in every row, column or middle dimension, on the host executor against the oracle, by
 * every strategy that takes the spec: rows of one element, shorter and longer than a tile, runs of every length. */
#include <criterion/criterion.h>

#include "lower/lower_impl.h"
#include "support/harness.h"

#define KEPT(dims, count)                                                                                              \
    "outputs: {k: {type: 'i32[" dims "]', where: last, value: key}, s: {type: 'i64[" dims "]', where: last, value: "   \
    "s}, runs: {type: '" count "', count: k}}\n"

static const struct {
    const char *spec;
    int rank, scanned;
} specs[] = {
    { "kind: scan\ninputs: {key: 'i32[m, n]', x: 'i16[m, n]'}\nsegments: {starts: 'key != key[0, -1]'}\nmap: "
      "i64(x)\noperator: add\n" KEPT("m, n", "i64[m]"),
      2, 1 },
    { "kind: scan\ninputs: {key: 'i32[m, n]', x: 'i16[n]'}\nsegments: {starts: 'key != key[0, -1]'}\nmap: i64(x) + "
      "index(m)\noperator: add\noutputs: {y: 'i64[m, n]'}\n",
      2, 1 },
    { "kind: scan\ninputs: {key: 'i32[m, n]', x: 'i16[m, n]'}\nover: m\nsegments: {starts: 'key != key[-1, 0]'}\nmap: "
      "i64(x)\noperator: add\n" KEPT("m, n", "i32[n]"),
      2, 0 },
    { "kind: scan\ninputs: {key: 'i32[d, m, n]', x: 'i16[n, d, m]', c: 'u8[d, n]'}\nover: m\nlet: {b: 'key != key[0, "
      "-1, "
      "0] or index(m) % 97 == 96 or x[0, 0, -1] == 90'}\nsegments: {starts: b and c < 190}\nmap: i64(x)\noperator: "
      "max\n" KEPT("d, m, n", "i64[d, n]"),
      3, 1 },
    { "kind: scan\ninputs: {key: 'i32[a, b, c, n]', x: 'i16[a, b, c, n]'}\nover: n\nsegments: {starts: 'key != key[0, "
      "0, "
      "0, -1] or index(b) > 0 and index(n) == 50'}\nmap: i64(x)\noperator: add\n" KEPT("a, b, c, n", "i64[a, b, c]"),
      4, 3 },
    { "kind: scan\ninputs: {key: 'i32[m, n]', x: 'i16[m, n]'}\nmode: exclusive\ndirection: reverse\ninit: 7\nsegments: "
      "{starts: 'key != key[0, -1]'}\nmap: i64(x)\noperator: add\n" KEPT("m, n", "i64[m]"),
      2, 1 },
    { "kind: scan\ninputs: {key: 'i32[m, n]', x: 'i16[m, n]'}\nover: m\nmode: exclusive\ninit: {a: 1, b: 2}\nsegments: "
      "{starts: 'key % 2 != 0'}\nmap: {a: u32(x), b: 1}\noperator: affine\noutputs: {y: {type: 'u32[m, n]', value: "
      "s.a + s.b}}\n",
      2, 0 },
    { "kind: scan\ninputs: {key: 'i32[n]', x: 'i16[n]'}\ndirection: reverse\ninit: -3\nsegments: {starts: 'key != "
      "key[-1]'}\nmap: i64(x)\noperator: max\n" KEPT("n", "i64"),
      1, 0 },
    { "kind: scan\ninputs: {key: 'i32[m, n]', x: 'i16[m, n]'}\nsegments: {flags: key}\nmap: i64(x)\noperator: "
      "add\noutputs: {y: 'i64[m, n]'}\n",
      2, 1 },
    { "kind: scan\ninputs: {key: 'i32[b, m, n]', x: 'i16[b, m, n]'}\nover: [m, n]\nsegments: {starts: key % 3 == "
      "0}\nmap: i64(x)\noperator: add\n" KEPT("b, m, n", "i64[b]"),
      3, 2 },
    { "kind: scan\ninputs: {key: 'i32[b, m, n]', x: 'i16[b, m, n]'}\nover: [b, m]\noutputs: {k: {type: 'i32[b, m, n]', "
      "where: x % 3 == 0, value: key + i32(index(m)), from: end}, c: {type: 'i64[n]', count: k}}\n",
      3, 1 },
};
enum { SPECS = sizeof specs / sizeof *specs };

/* Keys in runs of lengths that grow along the scanned dimension. */
static void runs(struct harness *h, int spec, const int64_t *size)
{
    int64_t inner = 1, count = 1;
    for (int d = 0; d < specs[spec].rank; d++) {
        count *= size[d];
        inner *= d > specs[spec].scanned ? size[d] : 1;
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = i / inner % size[specs[spec].scanned];
        ((int32_t *)h->input[0])[i] = (int32_t)(at < 300 ? at / 3 : at < 900 ? at / 37 : at / 500);
    }
}

/* False: the strategy does not take the spec. */
static bool check(int spec, const char *strategy)
{
    static const int64_t length[] = { 1, 2, 33, 127, 1000, 2600 };
    static const char *const modes[] = { "seed:1,race,uninit", "seed:2,weak,race", "seed:3,stale,late,uninit" };
    const char *set[] = { "strategy", strategy, NULL, NULL };
    struct harness h;
    const bool takes = harness_open(&h, "runs", specs[spec].spec, "sm_90", strategy ? set : NULL);
    cr_assert(takes || strategy, "%s\n%s", h.text, specs[spec].spec);
    for (int l = 0; takes && l < 6; l++) {
        int64_t size[4] = { 3 + l % 2, 2, 2, 3 };
        size[specs[spec].scanned] = length[l];
        harness_data_at(&h, size, (uint64_t)l + 5, l % 3, l % 2);
        runs(&h, spec, size);
        const bool same = harness_check(&h, modes[l % 3]);
        cr_expect(same || (strategy && strstr(h.text, "no case of")), "%s, length %d, --simt=%s: %s\n%s",
                  strategy ? strategy : "default", (int)length[l], modes[l % 3], h.text, specs[spec].spec);
    }
    harness_close(&h);
    return takes;
}

Test(runs, in_rows_and_columns)
{
    for (int i = 0; i < SPECS; i++) {
        int taken = 0;
        check(i, NULL);
        for (int s = 0; s < strategy_count(); s++)
            taken += strategy_row(s)->kind == KIND_SCAN && check(i, strategy_row(s)->name);
        cr_expect(taken > 2, "%d strategies take\n%s", taken, specs[i].spec);
    }
}
