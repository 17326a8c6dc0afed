/* SPDX-License-Identifier: Apache-2.0 */
/* test_pieces.c - scans and reductions over two dimensions around a kept one, on the host executor against the oracle, by
 * every strategy that takes the spec: pieces of one element, of whole vectors and of others, shorter and longer than a
 * tile. */
#include <criterion/criterion.h>

#include "api/api_impl.h"
#include "lower/lower_impl.h"
#include "support/harness.h"

#define SPEC(kind, inputs, rest) "kind: " kind "\ninputs: {" inputs "}\nover: [d, n]\n" rest
#define SCAN(type, rest)         SPEC("scan", "x: '" type "[d, m, n]'", rest)
#define REDUCE(type, rest)       SPEC("reduce", "x: '" type "[d, m, n]'", rest)
/* Not commutative, and any lost, repeated or displaced element shows. */
#define RECURRENCE                                                                                                     \
    "map: {p: x | 1, q: x + 1}\noperator:\n  state: {p: u32, q: u32}\n  identity: {p: 1, q: 0}\n  combine: {p: a.p * " \
    "b.p, q: a.q * b.p + b.q}\n"
#define AFFINE "outputs: {y: {type: 'u32[d, m, n]', value: s.q}}\n"

static const struct {
    const char *spec;
    enum problem_kind kind;
    int least; /* strategies that take it */
} specs[] = {
    { SCAN("u32", RECURRENCE AFFINE), KIND_SCAN, 4 },
    { SCAN("u32", RECURRENCE "direction: reverse\n" AFFINE), KIND_SCAN, 4 },
    { SCAN("u32", RECURRENCE "mode: exclusive\ndirection: reverse\n" AFFINE), KIND_SCAN, 4 },
    { SCAN("i16",
           "operator: add\nmap: i32(x)\nmode: exclusive\noutputs: {y: 'i32[d, m, n]', t: {type: 'i32[m]', value: "
           "total}}\n"),
      KIND_SCAN, 4 },
    { SCAN("u8", "operator: add\noutputs: {y: 'u8[d, m, n]'}\n"), KIND_SCAN, 4 },
    { SPEC("scan", "x: 'i64[d, m, n]', w: 'i64[m]', v: 'i64[n]'",
           "map: x * w + v + index(d) + index(m)\noperator: max\noutputs: {y: {type: 'i64[d, m, n]', value: s + w}, z: "
           "{type: 'i64[n, m, d]', value: s}}\n"),
      KIND_SCAN, 4 },
    { SCAN("u32", RECURRENCE "direction: reverse\nmode: exclusive\noutputs: {y: {type: 'u32[m, n, d]', value: s.q}, z: "
                             "{type: {p: u32, q: u16}, shape: [n, m, d], value: {p: s.p, q: u16(s.q)}}}\n"),
      KIND_SCAN, 4 },
    { SCAN("i8", "map: i32(x - x[0, 0, -1])\noperator: add\noutputs: {y: 'i32[n, m, d]', z: 'i32[d, m, n]', t: {type: "
                 "'i32[m]', value: total}}\n"),
      KIND_SCAN, 4 },
    { SPEC("scan", "x: 'i32[d, m, n]', y: 'i32[d, m, n]'",
           "map: x * y - x[0, 0, -1]\noperator: add\ndeterminism: run\noutputs: {s: 'i32[d, m, n]'}\n"),
      KIND_SCAN, 2 },
    { REDUCE("u32", RECURRENCE "outputs: {y: {type: 'u32[m]', value: r.q}}\n"), KIND_REDUCE, 2 },
    { REDUCE("i16", "operator: add\nmap: i32(x) * i32(index(n) + 2 * index(d))\noutputs: {y: 'i32[m]'}\n"), KIND_REDUCE,
      2 },
    { REDUCE("u16",
             "operator: add\nmap: u32(x)\noutputs: {r: 'u32[m]', e: {type: 'u32[d, m, n]', value: 'u32(x) + 1'}}\n"),
      KIND_REDUCE, 2 },
    { SPEC("reduce", "x: 'i32[d, m, n]', w: 'i32[d, n]'",
           "map: x * w\noperator: add\ndeterminism: device\noutputs: {y: {type: 'i32[m]', value: r}}\n"),
      KIND_REDUCE, 2 },
};
enum { SPECS = sizeof specs / sizeof *specs };

static const int64_t sizes[][3] = {
    { 7, 3, 1 }, { 300, 2, 4 }, { 1, 3, 999 },  { 5, 40, 7 },   { 90, 3, 22 }, { 3, 1, 128 },
    { 0, 2, 5 }, { 31, 5, 33 }, { 2, 2, 4100 }, { 3, 2, 2049 }, { 64, 1, 64 }, { 1000, 2, 3 },
};
enum { SIZES = sizeof sizes / sizeof *sizes };

static bool may_refuse(const struct harness *h, const char *strategy, int64_t elements)
{
    return strategy ? strstr(h->text, "no case of") != NULL : !elements && strstr(h->text, "no elements");
}

/* False: the strategy, or its vectors of so many elements (0: any), do not take the spec. */
static bool check(int spec, const char *strategy, const char *vector)
{
    static const char *const modes[] = { "seed:1,race,uninit", "seed:2,weak,race", "seed:3,stale,late,uninit" };
    const char *set[] = { "strategy", strategy, vector ? "vector" : NULL, vector, NULL, NULL };
    struct harness h;
    const bool takes = harness_open(&h, "pieces", specs[spec].spec, "sm_90", strategy ? set : NULL);
    cr_assert(takes || strategy, "%s\n%s", h.text, specs[spec].spec);
    for (int i = 0; takes && i < SIZES; i++) {
        const int64_t *n = sizes[i];
        harness_data_at(&h, n, (uint64_t)i + 5, i % 3 == 2, 0);
        const bool same = harness_check(&h, modes[i % 3]);
        cr_expect(same || may_refuse(&h, strategy, n[0] * n[2]), "%s, vector %s, [%d, %d, %d], --simt=%s: %s\n%s",
                  strategy ? strategy : "default", vector ? vector : "-", (int)n[0], (int)n[1], (int)n[2], modes[i % 3],
                  h.text, specs[spec].spec);
    }
    harness_close(&h);
    return takes;
}

static void check_all(enum problem_kind kind)
{
    for (int i = 0; i < SPECS; i++) {
        int taken = 0;
        if (specs[i].kind != kind)
            continue;
        check(i, NULL, NULL);
        for (int s = 0; s < strategy_count(); s++) {
            const char *name = strategy_row(s)->name;
            if (strategy_row(s)->kind != kind || !check(i, name, NULL))
                continue;
            taken++;
            check(i, name, "1");
            check(i, name, "2");
        }
        cr_expect(taken >= specs[i].least, "%d strategies take\n%s", taken, specs[i].spec);
    }
}

Test(pieces, scans) { check_all(KIND_SCAN); }
Test(pieces, reductions) { check_all(KIND_REDUCE); }

/* Cases in front of the others, for pieces of which a tile has several. */
Test(pieces, outputs_turn)
{
    struct harness h;
    const int64_t size[] = { 700, 3, 5 };
    int turned = 0;
    cr_assert(harness_open(&h, "turned", SCAN("f64", "operator: max\noutputs: {y: 'f64[n, m, d]'}\n"), "sm_90", NULL));
    for (int i = 0; i < h.plan->plan->ncases; i++)
        turned += h.plan->plan->cases[i].turns;
    cr_expect_geq(turned, 4);
    harness_data_at(&h, size, 3, 0, 0);
    cr_expect(harness_check(&h, "seed:1,race,uninit"), "%s", h.text);
    harness_close(&h);
}
