/* SPDX-License-Identifier: Apache-2.0 */
/* test_bins.c - reductions and scans by computed indices on the host executor against the oracle, for keys that are spread evenly,
 * of which a few are most, that are all the same, and that lie out of range; launch after launch on the same tables. */
#include <criterion/criterion.h>

#include "kernels/keyed.h"
#include "kernels/once.h"

static const struct keyed specs[] = {
    { "counts", "f32", "map: 1\noperator: add\nby: key\noutputs: {y: 'i32[k]'}\n" },
    { "counts in i64", "u8", "map: 1\noperator: add\naccumulator: i64\nby: key\noutputs: {y: 'i64[k]'}\n" },
    { "sums", "f32", "map: x\noperator: add\nby: key\noutputs: {y: 'f32[k]'}\n" },
    { "sums of halves", "f16", "map: x\noperator: add\nby: key\ninit: 0.5\noutputs: {y: 'f32[k]'}\n" },
    { "doubles", "f64", "map: x\noperator: add\nby: key\noutputs: {y: 'f64[k]'}\n" },
    { "products", "i64", "map: 1 + x * 2\noperator: mul\nby: key\noutputs: {y: 'i64[k]'}\n" },
    { "signs", "f32", "map: \"if x > 0 then f32(1) else f32(-1)\"\noperator: mul\nby: key\noutputs: {y: 'f32[k]'}\n" },
    { "bits", "u16", "map: x\noperator: xor\nby: key\noutputs: {y: 'u16[k]'}\n" },
    { "narrow extremes", "i8",
      "reductions: {lo: {map: x, operator: min}, hi: {map: i64(x), operator: max}}\nby: key\n"
      "outputs: {lo: 'i8[k]', hi: 'i64[k]'}\n" },
    { "extremes, and NaN in every other bin", "f32",
      "let: {v: \"if key % 2 == 0 then x - x + (x - x) / (x - x) else x\"}\n"
      "reductions: {lo: {map: v, operator: min}, hi: {map: v, operator: max}}\nby: key\n"
      "outputs: {lo: 'f32[k]', hi: 'f32[k]'}\n" },
    { "first of the least", "f32",
      "map: {value: x, index: i32(index(n))}\noperator: argmin\nby: key\n"
      "outputs: {at: {type: 'i32[k]', value: r.index}, least: {type: 'f32[k]', value: r.value}}\n" },
    { "an operator of its own", "u32",
      "map: {p: u16(x | 1), q: u32(x)}\noperator:\n  state: {p: u16, q: u32}\n  identity: {p: 1, q: 0}\n"
      "  combine: {p: a.p * b.p, q: a.q + b.q}\n  commutative: true\nby: key\n"
      "outputs: {p: {type: 'u16[k]', value: r.p}, q: {type: 'u32[k]', value: r.q}}\n" },
    { "means", "f32",
      "map: x\noperator: welford\nby: key\n"
      "outputs: {n: {type: 'f32[k]', value: r.n}, m: {type: 'f32[k]', value: r.mean}, v: {type: 'f32[k]', value: "
      "r.m2}}\n" },
    { "a state of three words, and an initial one", "u32",
      "map: {a: x, b: u16(x), c: u8(x), d: i64(x), e: i32(x) % 5, f: u8(x | 1)}\noperator:\n"
      "  state: {a: u32, b: u16, c: u8, d: i64, e: i32, f: u8}\n  identity: {a: 0, b: 7, c: 255, d: -1, e: 0, f: 1}\n"
      "  combine: {a: a.a + b.a, b: \"a.b ^ b.b ^ 7\", c: \"min(a.c, b.c)\", d: \"max(a.d, b.d)\", e: a.e + b.e, "
      "f: a.f * b.f}\n  commutative: true\nby: key\ninit: {a: 1, b: 2, c: 200, d: 4, e: 5, f: 3}\n"
      "outputs: {a: {type: 'u32[k]', value: r.a}, b: {type: 'u16[k]', value: r.b}, c: {type: 'u8[k]', value: r.c}, "
      "d: {type: 'i64[k]', value: r.d}, e: {type: 'i32[k]', value: r.e}, f: {type: 'u8[k]', value: r.f}}\n" },
    { "a mean, and neighbours", "f32",
      "reductions: {s: {map: \"x - x[-1]\", operator: add}, many: {map: 1, operator: add}}\nby: key[1] % 7\n"
      "outputs: {y: {type: 'f32[k]', value: if many > 0 then s / f32(many) else f32(k)}}\n" },
    { "the largest, of NaN in every other bin, between sums", "f64",
      "let: {v: \"if key % 2 == 0 then x - x + (x - x) / (x - x) else x\"}\n"
      "reductions: {s: {map: i32(i64(4 * x)), operator: add}, at: {map: {value: v, index: index(n)}, operator: "
      "argmax}, "
      "many: {map: 1, operator: add, accumulator: i64}}\nby: key\n"
      "outputs: {s: 'i32[k]', at: {type: 'i64[k]', value: at.index}, x: {type: 'f64[k]', value: at.value}, "
      "many: 'i64[k]'}\n" },
    { "cells", "i32", "map: x\noperator: add\nby: [key / 6, abs(x) % 9]\noutputs: {y: 'i32[7, 8]', z: 'i32[7, 8]'}\n" },
};
enum { SPECS = sizeof specs / sizeof *specs };

static void check(const char *lanes, const char *bins, const char *parts)
{
    for (int i = 0; i < SPECS; i++) {
        const char *set[] = { "strategy", "reduce.bins", "threads", "64",  "lanes", lanes,
                              "bins",     bins,          "parts",   parts, NULL,    NULL };
        struct harness h;
        keyed_open(&h, "reduce", specs, i, set);
        keyed_launches(&h, specs[i].name);
    }
}

Test(bins, one_table_in_global_memory) { check("0", "0", "0"); }
Test(bins, a_table_per_block) { check("0", "64", "0"); }
Test(bins, a_part_of_the_bins_per_block) { check("0", "10", "6"); }
Test(bins, a_table_per_warp) { check("32", "64", "0"); }
Test(bins, tables_of_lanes) { check("8", "64", "0"); }
Test(bins, a_table_of_each_thread_alone) { check("1", "56", "0"); }

/* ---- kept dimensions behind the reduced ones --------------------------------------------------------------------- */

static const struct {
    const char *name, *text;
    int size[4]; /* -1: rows, -2: columns */
} column_specs[] = {
    { "means",
      "inputs: {x: 'f32[n, f]', key: 'i32[n]'}\nreductions: {s: {map: x, operator: add}, many: {map: 1, operator: "
      "add}}\n"
      "over: n\nby: key\noutputs: {y: {type: 'f32[k, f]', value: if many > 0 then s / f32(many) else 0}, z: {type: "
      "'i32[k, f]', value: many}}\n",
      { -1, -2, 7 } },
    { "counts",
      "inputs: {x: 'u8[n, f]'}\nmap: 1\noperator: add\nover: n\nby: x % 11\noutputs: {y: 'i64[7, f]'}\n",
      { -1, -2 } },
    { "extremes of doubles",
      "inputs: {x: 'f64[n, f]', key: 'i16[n]'}\nmap: x\noperator: max\nover: n\nby: key\noutputs: {y: 'f64[k, f]'}\n",
      { -1, -2, 7 } },
    { "deviations",
      "inputs: {x: 'f32[n, f]', key: 'i32[n]'}\nmap: x\noperator: welford\nover: n\nby: key\n"
      "outputs: {y: {type: 'f32[k, f]', value: r.m2}}\n",
      { -1, -2, 7 } },
    { "two of each",
      "inputs: {x: 'i32[n, m, f, g]', key: 'i32[n, m]'}\nmap: x\noperator: add\nover: [n, m]\n"
      "by: [key, index(f) % 3]\noutputs: {y: 'i32[4, 3, f, g]'}\n",
      { -1, 3, -2, 2 } },
};
enum { COLUMN_SPECS = sizeof column_specs / sizeof *column_specs };

static void check_columns(int spec, const char *items)
{
    static const int64_t rows[] = { 0, 1, 5, 63, 64, 517 }, columns[] = { 0, 1, 7, 31, 32, 33, 64, 65 };
    static const char *const modes[] = { "seed:%d,race,uninit", "seed:%d,weak", "seed:%d,stale,late" };
    const char *set[] = { "strategy", "reduce.bins", "lanes", "1", "threads", "64", "items", items, NULL, NULL };
    char text[1024];
    struct harness h;
    snprintf(text, sizeof text, "kind: reduce\n%s", column_specs[spec].text);
    cr_assert(harness_open(&h, "t", text, spec % 2 ? "sm_90" : "sm_75", set), "%s: %s", column_specs[spec].name,
              h.text);
    for (int round = 0; round < 6 * 8; round++) {
        const int64_t n = rows[round % 6], f = columns[round / 6];
        int64_t size[4], kept = f;
        char mode[32];
        for (int i = 0; i < 4; i++) {
            const int given = column_specs[spec].size[i];
            size[i] = given == -1 ? n : given == -2 ? f : given;
            kept *= i == 3 && given ? given : 1;
        }
        if (kept > 64) /* the threads of a block are a row at least */
            continue;
        snprintf(mode, sizeof mode, modes[round % 3], round);
        harness_data_at(&h, size, (uint64_t)round, round % 3, round % 2);
        cr_expect(harness_check(&h, mode), "%s, %d x %d, --simt=%s: %s", column_specs[spec].name, (int)n, (int)f, mode,
                  h.text);
    }
    harness_close(&h);
}

Test(bins, threads_of_columns)
{
    for (int i = 0; i < COLUMN_SPECS; i++) {
        check_columns(i, "1");
        check_columns(i, "4");
    }
}

/* A block has tables of a row, of a state that is one word, or several. */
Test(bins, rows_with_tables_of_their_own)
{
    static const char *const specs_of_rows[] = {
        "kind: reduce\ninputs: {x: 'f32[m, n]', key: 'u8[m, n]'}\nmap: x\noperator: max\nover: n\nby: key % 37\n"
        "outputs: {y: 'f32[37, m]'}\n",
        "kind: reduce\ninputs: {x: 'f32[m, n]', key: 'u8[m, n]'}\nmap: x\noperator: welford\nover: n\nby: if key % 3 "
        "== 0 "
        "then u8(5) else key % 37\noutputs: {y: {type: 'f32[37, m]', value: r.mean}, n: {type: 'f32[37, m]', value: "
        "r.n}}\n",
    };
    static const char *const lanes[] = { "0", "8", "32" }, *const modes[] = { "seed:1,race,uninit,guard",
                                                                              "seed:2,weak,race,sms:1",
                                                                              "seed:3,stale,late" };
    static const int64_t sizes[][2] = { { 3, 700 }, { 5, 64 }, { 1, 1 }, { 9, 1031 } };
    for (int i = 0; i < 2 * 3; i++) {
        const char *set[] = { "strategy", "reduce.bins", "threads", "64", "lanes", lanes[i / 2],
                              "bins",     "37",          "parts",   "1",  NULL,    NULL };
        struct harness h;
        cr_assert(harness_open(&h, "rows", specs_of_rows[i % 2], "sm_90", set), "%s", h.text);
        for (int n = 0; n < 4 * 3; n++) {
            harness_data_at(&h, sizes[n / 3], (uint64_t)n, n % 2, 0);
            cr_expect(harness_check(&h, modes[n % 3]), "lanes %s, size %d, %s: %s", lanes[i / 2], n / 3, modes[n % 3],
                      h.text);
        }
        harness_close(&h);
    }
}

/* ---- scans ------------------------------------------------------------------------------------------------------- */

#define OWN(combine)                                                                                                   \
    "map: {p: x | 1, q: x + 1}\noperator: {state: {p: u32, q: u32}, identity: {p: 1, q: 0}, combine: " combine "}\n"
#define RECURRENCE OWN("{p: a.p * b.p, q: a.q * b.p + b.q}")

static const struct keyed scan_specs[] = {
    { "ranks", "u8", "map: 1\noperator: add\nmode: exclusive\noutputs: {y: 'i32[n]', all: 'i32[k]'}\n" },
    { "numbers in i64", "u8",
      "map: 3\noperator: add\naccumulator: i64\ninit: 5\noutputs: {y: 'i64[n]', all: 'i64[k]'}\n" },
    { "counts alone", "u8", "map: 1\noperator: add\noutputs: {all: 'i32[k]'}\n" },
    { "sums", "f32", "map: x\noperator: add\nbins: k\noutputs: {y: 'f32[n]'}\n" },
    { "a recurrence", "u32",
      RECURRENCE "outputs: {y: {type: 'u32[n]', value: s.q}, z: {type: 'u32[k]', value: total.q}}\n" },
    { "a recurrence before each, from the right", "u32",
      RECURRENCE
      "mode: exclusive\ndirection: reverse\ninit: {p: 3, q: 4}\nbins: k\noutputs: {y: {type: 'u32[n]', value: "
      "s.q + s.p}}\n" },
    { "extremes, and NaN in every other bin", "f32",
      "let: {v: \"if key % 2 == 0 then x - x + (x - x) / (x - x) else x\"}\nmode: exclusive\n"
      "scans: {lo: {map: v, operator: min}, hi: {map: v, operator: max}}\n"
      "outputs: {lo: 'f32[n]', hi: 'f32[n]', all: {type: 'f32[k]', value: lo.total}}\n" },
    { "the least so far, NaN among them", "f64",
      "let: {v: \"if key % 3 == 0 then (x - x) / (x - x) else x\"}\nmap: v\noperator: min\nbins: k\noutputs: {y: "
      "'f64[n]'}\n" },
    { "the first of each key, and its neighbour", "i16",
      "map: x - x[-1]\noperator: first\nbins: k\noutputs: {y: 'i16[n]', z: {type: 'i64[n]', value: index(n) + "
      "i64(s)}}\n" },
    { "sorted", "u32",
      "map: 1\noperator: add\nmode: exclusive\nbins: k\n"
      "outputs: {y: {type: 'u32[k, 4096]', at: [key, s], value: x}, z: {type: 'i64[k, 4096]', at: [key, s], value: "
      "index(n)}}\n" },
    { "sorted from the end, elements of no bin elsewhere", "u8",
      "map: 1\noperator: add\ninit: 7\ndirection: reverse\nlet: {some: key >= 0 and key < i32(k)}\n"
      "outputs: {y: {type: 'i32[k, 4096]', at: [if some then key else 0 - 1, s - 8], value: i32(x)}, z: {type: "
      "'i32[n]', at: "
      "index(n), value: s}, all: 'i32[k]'}\n" },
};
enum { SCAN_SPECS = sizeof scan_specs / sizeof *scan_specs };

static void check_scans(const char *threads, const char *items)
{
    for (int i = 0; i < SCAN_SPECS; i++) {
        const char *set[] = { "threads", threads, "items", items, NULL, NULL };
        struct harness h;
        keyed_open(&h, "scan\nby: key", scan_specs, i, set);
        keyed_launches(&h, scan_specs[i].name);
    }
}

Test(bins, scans_by_a_warp) { check_scans("32", "3"); }
Test(bins, scans_by_warps) { check_scans("64", "8"); }
Test(bins, scans_by_many_warps) { check_scans("256", "1"); }

/* Rows, columns, a middle dimension, and all of them; bins more than threads, and one. */
static const struct {
    const char *name, *text;
    int64_t size[4];
} scan_shapes[] = {
    { "rows", "inputs: {key: 'u8[b, t]'}\nby: key\noutputs: {y: 'i32[b, t]', all: 'i32[b, 256]'}\n", { 3, 517 } },
    { "columns",
      "inputs: {key: 'u8[t, b]'}\nby: key\nover: t\noutputs: {y: 'i32[t, b]', all: 'i32[k, b]'}\n",
      { 300, 5, 7 } },
    { "the middle",
      "inputs: {key: 'i8[a, t, b]'}\nby: key\nover: t\noutputs: {y: 'i32[a, t, b]', all: 'i32[a, 100, b]'}\n",
      { 2, 131, 3 } },
    { "all",
      "inputs: {key: 'i8[a, b]', c: 'i8[b]'}\nby: key + c\nover: [a, b]\noutputs: {y: 'i32[a, b]', all: 'i32[100]'}\n",
      { 33, 17 } },
    { "ends",
      "inputs: {key: 'i8[t, b, n]'}\nby: key\nover: [t, n]\noutputs: {y: 'i32[t, b, n]', all: 'i32[b, 5]'}\n",
      { 9, 4, 21 } },
    { "no bins", "inputs: {key: 'i8[b, t]'}\nby: key\noutputs: {y: 'i32[b, t]', all: 'i32[b, k]'}\n", { 2, 400, 0 } },
    { "no bins to sort by",
      "inputs: {key: 'i8[b, t]'}\nby: key\nbins: k\noutputs: {y: {type: 'i32[b, t]', at: [index(b), index(t)], value: "
      "s}}\n",
      { 2, 400, 0 } },
    { "one bin", "inputs: {key: 'i8[b, t]'}\nby: key * 0\nbins: 1\noutputs: {y: 'i32[b, t]'}\n", { 2, 400 } },
    { "rows by batches",
      "inputs: {key: 'i8[a, c, b, t]'}\nby: key\nbins: 40\noutputs: {y: 'i32[a, c, b, t]'}\n",
      { 2, 3, 2, 77 } },
    { "transposed",
      "inputs: {key: 'i8[t, b]', x: 'u8[b, t]'}\nspace: [b, t]\nby: key + i8(x) * 0\nbins: 40\noutputs: {y: 'i32[t, "
      "b]'}\n",
      { 90, 5 } },
};

Test(bins, scans_of_shapes)
{
    static const char *const modes[] = { "seed:%d,race,uninit,guard", "seed:%d,weak", "seed:%d,stale,late" };
    const char *set[] = { "threads", "64", "items", "4", NULL, NULL };
    for (size_t i = 0; i < sizeof scan_shapes / sizeof *scan_shapes; i++) {
        char text[512], mode[32];
        struct harness h;
        snprintf(text, sizeof text, "kind: scan\nmap: 1\noperator: add\n%s%s", i % 2 ? "mode: exclusive\n" : "",
                 scan_shapes[i].text);
        cr_assert(harness_open(&h, "t", text, i % 2 ? "sm_90" : "sm_75", set), "%s: %s", scan_shapes[i].name, h.text);
        for (int round = 0; round < 6; round++) {
            snprintf(mode, sizeof mode, modes[round % 3], round);
            harness_data_at(&h, scan_shapes[i].size, (uint64_t)round, round % 3, round % 2);
            cr_expect(harness_check(&h, mode), "%s, --simt=%s: %s", scan_shapes[i].name, mode, h.text);
        }
        harness_close(&h);
    }
}

/* What plans themselves choose, where an output has another order, a count does not fit a word, all elements are NaN. */
Test(bins, scans_as_planned)
{
    static const struct {
        const char *text;
        int64_t size[2];
    } spec[] = {
        { "inputs: {key: 'i32[m, n]'}\nover: n\nby: key % 4\nbins: 4\nmap: 1\noperator: add\noutputs: {y: 'i32[n, "
          "m]'}\n",
          { 40, 100 } },
        { "inputs: {key: 'i32[m, n]'}\nover: m\nby: key % 4\nmap: 1\noperator: add\noutputs: {y: 'i32[n, m]', t: "
          "'i32[n, 4]'}\n",
          { 100, 40 } },
        { "inputs: {key: 'u8[n]'}\nby: key % 5\nbins: 5\nmap: i64(1)\ninit: 5000000000\noperator: add\n"
          "outputs: {y: {type: 'i64[n]', at: index(n), value: s}}\n",
          { 300 } },
        { "inputs: {key: 'u8[n]'}\nby: key % 5\nbins: 5\nmap: f32(key) / 0 * 0\noperator: logsumexp\n"
          "outputs: {y: {type: 'f32[n]', value: s.max}}\n",
          { 300 } },
    };
    for (size_t i = 0; i < sizeof spec / sizeof *spec; i++) {
        char text[512];
        snprintf(text, sizeof text, "kind: scan\n%s", spec[i].text);
        run_once(text, NULL, spec[i].size, 0, "seed:1,race,uninit,guard", NULL);
    }
}
