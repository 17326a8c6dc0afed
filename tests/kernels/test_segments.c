/* SPDX-License-Identifier: Apache-2.0 */
/* test_segments.c - random reductions of segments agree with the oracle on the host executor.
 *
 * A spec is put together from a seed: a space of two or three dimensions of which some are reduced, or irregular
 * segments; inputs with all dimensions or some of them, in memory as scalars or structures; built-in and hand-written
 * operators, commutative and ordered, with and without identity, some that read what does not vary within a segment;
 * init, outputs in any order of dimensions, results per element, determinism, and sometimes a pinned strategy.  Each
 * runs at random sizes, zero included, under the checking modes.
 */
#include <criterion/criterion.h>

#include "base/str.h"
#include "kernels/once.h"

static uint64_t state;
static int below(int n) { return (int)(harness_random(&state) % (uint64_t)n); }
static bool chance(int percent) { return below(100) < percent; }

static const char *const names[] = { "d", "m", "n" };

struct shape {
    int first; /* dimensions names[first …] */
    bool reduced[3];
    bool offsets;
    bool needs_element; /* an operator without identity and init */
};

static void random_shape(struct shape *s)
{
    *s = (struct shape){ .first = chance(50) ? 1 : 0, .offsets = chance(20) };
    if (s->offsets) {
        s->first = 2;
        s->reduced[2] = true;
        return;
    }
    const int rank = 3 - s->first, all = (1 << rank) - 1;
    const int mask = 1 + below(all - 1);
    for (int d = s->first; d < 3; d++)
        s->reduced[d] = mask >> (d - s->first) & 1;
}

/* Those of the dimensions that are (not) reduced, in either direction: "n, m". */
static void dimensions(struct str *out, const struct shape *s, bool reduced, bool kept, bool backwards)
{
    bool any = false;
    for (int i = s->first; i < 3; i++) {
        const int d = backwards ? 2 + s->first - i : i;
        if (s->reduced[d] ? !reduced : !kept)
            continue;
        str_printf(out, "%s%s", any ? ", " : "", names[d]);
        any = true;
    }
}

static void random_inputs(struct str *out, const struct shape *s, const char *type)
{
    str_add(out, "inputs:\n  x: ");
    const bool structure = chance(20);
    str_printf(out, structure ? "{type: {a: u8, b: %s}, shape: [" : "\"%s[", type);
    dimensions(out, s, true, true, false);
    str_add(out, structure ? "]}\n" : "]\"\n");
    if (s->offsets) {
        str_printf(out, "  off: %s[k]\n", chance(50) ? "i32" : "u32");
    } else {
        str_printf(out, "  v: \"%s[", type);
        dimensions(out, s, true, false, chance(50));
        str_printf(out, "]\"\n  c: \"%s[", type);
        dimensions(out, s, false, true, chance(50));
        str_add(out, "]\"\n");
    }
    str_printf(out, "let: {e: %s}\n", structure ? "x.b" : "x");
}

/* What output o<i> shows of reduction r<i>. */
struct result {
    const char *type;
    char value[64];
};

static void show(struct result *r, const char *type, const char *format, int i)
{
    r->type = type;
    snprintf(r->value, sizeof r->value, format, i, i);
}

static void random_reduction(struct str *out, struct result *result, struct shape *s, const char *type, int i)
{
    const bool is_float = type[0] == 'f', broadcast = !s->offsets && chance(50);
    const char *value = broadcast ? (is_float ? "max(e, v)" : "e * v + c") : "e";
    const char *last = s->reduced[2] ? "n" : s->reduced[1] ? "m" : "d";
    str_printf(out, "  r%d:\n", i);
    switch (below(s->offsets ? 4 : 6)) {
    case 0:
        str_printf(out, "    map: \"%s\"\n    operator: %s\n", value, chance(50) ? "add" : "max");
        show(result, "f64", "f64(r%d)", i);
        break;
    case 1:
        str_printf(out, "    map: {value: \"%s\", index: index(%s)}\n    operator: argmin\n", value, last);
        show(result, "i64", "r%d.index", i);
        break;
    case 2:
        str_printf(
            out,
            "    map: {p: \"u32(i32(%s))\", q: \"u32(i32(%s)) + 1\"}\n    operator:\n      state: {p: u32, q: u32}\n"
            "      identity: {p: 1, q: 0}\n      combine: {p: a.p * b.p, q: a.q * b.p + b.q}\n",
            value, value);
        show(result, "i64", "i64(r%d.q)", i);
        break;
    case 3: /* consecutive places, so that any order but the right one shows */
        str_printf(
            out,
            "    map: {lo: \"index(%s)\", hi: \"index(%s)\", ok: true}\n    operator:\n      state: {lo: i64, hi: i64, "
            "ok: bool}\n"
            "      identity: {lo: -1, hi: -1, ok: true}\n"
            "      combine:\n        lo: if a.lo < 0 then b.lo else a.lo\n        hi: if b.hi < 0 then a.hi else b.hi\n"
            "        ok: a.ok and b.ok and (a.lo < 0 or b.lo < 0 or b.lo == a.hi + 1 or b.lo == 0)\n",
            last, last);
        show(result, "i64", "i64(r%d.ok) * (r%d.hi + 2)", i);
        break;
    case 4:
        str_printf(out, "    map: \"%s\"\n    operator: %s\n", value, chance(50) ? "first" : "last");
        show(result, "f64", "f64(r%d)", i);
        s->needs_element = true;
        break;
    default: /* reads what does not vary within a segment */
        str_printf(out, "    map: {s: \"abs(i32(e))\"}\n    operator:\n      state: {s: i32}\n"
                        "      combine: {s: \"(a.s + b.s) %% (i32(abs(c)) + 7)\"}\n      commutative: true\n");
        show(result, "i64", "i64(r%d.s)", i);
        s->needs_element = true;
    }
}

static void random_outputs(struct str *out, const struct shape *s, const struct result *result, int n, const char *type)
{
    str_add(out, "outputs:\n");
    for (int i = 0; i < n; i++) {
        str_printf(out, "  o%d: {type: \"%s[", i, result[i].type);
        if (s->offsets)
            str_add(out, "k-1");
        else
            dimensions(out, s, false, true, chance(50));
        str_printf(out, "]\", value: \"%s\"}\n", result[i].value);
    }
    if (chance(30)) {
        str_printf(out, "  y: {type: \"%s[", type);
        dimensions(out, s, true, true, chance(30));
        str_add(out, "]\", value: e}\n");
    }
}

static char *random_spec(struct shape *s)
{
    static const char *const types[] = { "i8", "i16", "i32", "i64", "f32", "f64" };
    struct str out = { 0 };
    struct result result[2];
    const char *type = types[below(6)];
    random_shape(s);
    str_add(&out, "kind: reduce\n");
    random_inputs(&out, s, type);
    if (chance(30))
        str_printf(&out, "determinism: %s\n", chance(50) ? "run" : "device");
    if (s->offsets) {
        str_add(&out, "segments: {offsets: off}\n");
    } else {
        str_add(&out, "over: [");
        dimensions(&out, s, true, false, false);
        str_add(&out, "]\n");
    }
    str_add(&out, "reductions:\n");
    const int n = 1 + below(2);
    for (int i = 0; i < n; i++)
        random_reduction(&out, &result[i], s, type, i);
    random_outputs(&out, s, result, n, type);
    return str_take(&out);
}

/* A strategy, and a tunable that it is given; NULL: none. */
struct pin {
    const char *strategy, *name, *value;
};

static struct pin pinned(const struct shape *s)
{
    static const struct pin regular[] = { { "segreduce.subwarp", "lanes", "1" },
                                          { "segreduce.subwarp", NULL, NULL },
                                          { "segreduce.block", "parts", "1" },
                                          { "segreduce.block", "parts", "0" },
                                          { "segreduce.block", "parts", "3" } },
                            offsets[] = { { "segreduce.offsets", NULL, NULL }, { "segreduce.block", NULL, NULL } };
    if (chance(40))
        return (struct pin){ NULL, NULL, NULL };
    return s->offsets ? offsets[below(2)] : regular[below(5)];
}

/* Few elements in all, whatever the rank; now and then none, or a long dimension. */
static void random_sizes(struct harness *h, int64_t *size)
{
    static const int some[] = { 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 31, 33, 48, 64, 100, 127 },
                     many[] = { 255, 256, 1000, 2049, 4099 };
    int64_t product = 1;
    for (int i = 0; i < ptxgen_problem_size_count(h->problem); i++) {
        size[i] = product < 10 && chance(30) ? many[below(5)] : product < 100 ? some[below(18)] : 1 + below(4);
        product *= size[i];
    }
    if (chance(10))
        size[0] = 0;
}

static void run_seed(uint64_t seed)
{
    static const char *const modes[] = { "seed:1,race,uninit", "seed:0", "seed:3,weak,race,uninit",
                                         "seed:4,stale,late" };
    struct shape shape;
    struct harness h;
    state = seed * 7919;
    char *spec = random_spec(&shape);
    const char *arch = chance(50) ? "sm_90" : "sm_80";
    const struct pin pin = pinned(&shape);
    const char *strategy = pin.strategy, *set[] = { "strategy", strategy, "threads", "64", pin.name, pin.value, NULL };
    cr_assert(harness_open(&h, "random", spec, arch, strategy ? set : NULL), "seed %llu on %s: %s\n%s",
              (unsigned long long)seed, arch, h.text, spec);
    for (int k = 0; k < 4; k++) {
        int64_t size[8] = { 0 };
        random_sizes(&h, size);
        if (shape.needs_element && size[0] == 0)
            size[0] = 1;
        const char *mode = modes[below(4)];
        harness_data_at(&h, size, seed + (uint64_t)k, below(4), chance(30));
        cr_assert(harness_check(&h, mode), "seed %llu on %s, %s, sizes %lld %lld %lld, --simt=%s: %s\n%s",
                  (unsigned long long)seed, arch, strategy ? strategy : "chosen", (long long)size[0],
                  (long long)size[1], (long long)size[2], mode, h.text, spec);
    }
    harness_close(&h);
    free(spec);
}

HARNESS_SEEDS(segments, 1, 20)
HARNESS_SEEDS(segments, 21, 20)
HARNESS_SEEDS(segments, 41, 20)
HARNESS_SEEDS(segments, 61, 20)

/* Shares of several tiles, and so many offsets among so many elements that finding a share takes several steps; far
 * more offsets than elements, so that most groups of segments are empty. */
static void check_offsets(const char *spec, const char *arch, const char *stages)
{
    static const int64_t sizes[][2] = { { 5003, 4001 }, { 9001, 90 }, { 2100, 7001 }, { 300, 20001 }, { 7000, 3 } };
    const char *set[] = { "items", "1", "copy_stages", stages, "threads", "64", NULL };
    struct harness h;
    cr_assert(harness_open(&h, "many", spec, arch, set), "%s", h.text);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        harness_data_at(&h, sizes[i], 5 + i, (int)i % 4, false);
        cr_assert(harness_check(&h, i % 2 ? "seed:3,late,stale" : "seed:1,race,uninit"),
                  "%s, %s stages, n = %lld, k = %lld: %s", arch, stages, (long long)sizes[i][0], (long long)sizes[i][1],
                  h.text);
    }
    harness_close(&h);
}

/* What varies along rows is not read behind their ends, where lanes of a team have no elements. */
Test(segments, rows_beside_broadcast)
{
    static const int64_t sizes[][2] = { { 3, 5 }, { 7, 33 }, { 2, 130 } };
    static const char *const spec[] = {
        "kind: reduce\ninputs: {x: 'f32[m, n]', w: 'f32[n]'}\nover: n\nmap: x * w\noperator: max\n"
        "outputs: {y: {type: 'f32[m, n]', value: x - r}}\n",
        "kind: reduce\ninputs: {x: 'f32[m, n]', w: 'f32[n]'}\nover: n\nmap: x * w\noperator: welford\n"
        "outputs: {y: {type: 'f32[m, n]', value: x - r.mean}}\n",
    };
    for (int i = 0; i < 6; i++) {
        run_once(spec[i / 3], NULL, sizes[i % 3], 0, "seed:1,race,uninit", NULL);
    }
}

/* Rows of all shapes, of which some do not fill their team: counts of one, and the user's, whose reciprocal is infinite. */
Test(segments, rows_of_means)
{
    static const int64_t lengths[] = { 3, 16, 130, 257, 520, 1030, 5001 };
    static const char *const spec[] = {
        "map: x\noutputs: {y: {type: 'f32[m, n]', value: (x - r.mean) * rsqrt(r.m2 / r.n + 0.01)}, all: {type: "
        "'f32[m]', "
        "value: r.n}}\n",
        "map: {n: abs(x) * 1e-44, mean: x, m2: 0}\noutputs: {y: {type: 'f32[m, n]', value: x - r.mean}}\n",
    };
    for (int i = 0; i < 14; i++) {
        const int64_t size[] = { 5, lengths[i / 2] };
        char text[512];
        struct harness h;
        snprintf(text, sizeof text, "kind: reduce\ninputs: {x: 'f32[m, n]'}\nover: n\noperator: welford\n%s",
                 spec[i % 2]);
        cr_assert(harness_open(&h, "means", text, i % 4 ? "sm_90" : "sm_75", NULL), "%s", h.text);
        harness_data_at(&h, size, 7 + (uint64_t)i, i % 3, false);
        cr_expect(harness_check(&h, "seed:1,race,uninit"), "rows of %d: %s\n%s", (int)size[1], h.text, text);
        harness_close(&h);
    }
}

#define OFFSETS "kind: reduce\ninputs: {x: 'i32[n]', off: 'i64[k]'}\nsegments: {offsets: off}\n"
static const char sums[] = OFFSETS "operator: add\noutputs: {sum: 'i32[k-1]'}\n";

Test(segments, many_offsets) { check_offsets(sums, "sm_90", "2"); }
Test(segments, many_offsets_three_stages) { check_offsets(sums, "sm_80", "3"); }
Test(segments, many_offsets_without_copies) { check_offsets(sums, "sm_70", "2"); }
Test(segments, many_offsets_of_the_merge_path) { check_offsets(sums, "sm_90", "0"); }

/* Segments that begin and end where tiles, shares and blocks do. */
Test(segments, offsets_at_shares)
{
    static const int64_t steps[] = { 96, 512, 768, 1024, 1536, 8192 };
    const char *set[] = { "items", "1", "threads", "64", NULL };
    struct harness h;
    cr_assert(harness_open(&h, "aligned", sums, "sm_90", set), "%s", h.text);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const int64_t n = 8192 / steps[i] * steps[i], size[] = { n, n / steps[i] + 1 };
        harness_data_at(&h, size, 11 + i, 0, false);
        for (int64_t s = 0; s < size[1]; s++)
            ((int64_t *)h.input[1])[s] = s * steps[i];
        cr_assert(harness_check(&h, "seed:2,race,uninit"), "segments of %lld: %s", (long long)steps[i], h.text);
    }
    harness_close(&h);
}

/* A few long segments among empty ones, so that tiles are short, of 128 or 256 elements: segments that their own blocks
 * take as a whole, and longer ones.  They begin and end at a tile, beside one, or anywhere. */
static int64_t end_at_tile(int64_t n)
{
    const int64_t any = below((int)n + 1);
    const int64_t end = chance(30) ? any : (any & -128) + (chance(50) ? 0 : below(3) - 1);
    return end < 0 ? 0 : end < n ? end : n;
}

static int ascending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void check_parts(const char *spec, const char *lanes, const char *vector, const char *queue)
{
    static const int64_t sizes[][2] = { { 9001, 160 }, { 5000, 90 }, { 3000, 40 }, { 260, 3 }, { 700, 11 } };
    static const char *const modes[] = { "seed:1,race,uninit", "seed:3,weak,stale", "seed:0" };
    const char *set[] = { "strategy", "segreduce.block", "lanes", lanes,    "queue", queue, "threads",
                          "64",       "items",           "1",     "vector", vector,  NULL };
    struct harness h;
    state = 91;
    cr_assert(harness_open(&h, "parts", spec, "sm_90", set), "%s", h.text);
    for (int i = 0; i < 60; i++) {
        const int64_t *size = sizes[i % 5];
        harness_data_at(&h, size, (uint64_t)i, 0, false);
        int64_t *end = h.input[1], place[8];
        const int places = 2 + below(7);
        for (int p = 0; p < places; p++)
            place[p] = end_at_tile(size[0]);
        for (int64_t s = 0; s < size[1]; s++)
            end[s] = place[below(places)];
        qsort(end, (size_t)size[1], sizeof *end, ascending);
        cr_assert(harness_check(&h, modes[i % 3]), "lanes %s, queue %s, row %d, --simt=%s: %s", lanes, queue, i,
                  modes[i % 3], h.text);
    }
    harness_close(&h);
}

static const char in_order[] =
    OFFSETS "map: {p: 'u32(x) | 1', q: 'u32(x) + 1'}\noperator:\n  state: {p: u32, q: u32}\n"
            "  combine: {p: a.p * b.p, q: a.q * b.p + b.q}\ninit: {p: 3, q: 1}\n"
            "outputs: {q: {type: 'u32[k-1]', value: r.q}, y: {type: 'i32[n]', value: x + 1}}\n";

Test(segments, parts_of_blocks) { check_parts(sums, "0", "1", "0"); }
Test(segments, parts_of_vectors) { check_parts(sums, "0", "2", "0"); }
Test(segments, parts_beside_warps) { check_parts(sums, "32", "1", "0"); }
Test(segments, queued_parts_of_blocks) { check_parts(sums, "0", "2", "1"); }
Test(segments, queued_parts_beside_warps) { check_parts(sums, "32", "1", "1"); }
Test(segments, queued_parts_in_order) { check_parts(in_order, "0", "1", "1"); }
Test(segments, parts_in_order) { check_parts(in_order, "0", "1", "0"); }
Test(segments, parts_in_order_beside_warps) { check_parts(in_order, "32", "2", "0"); }

/* Elements that are mapped with their segment's results: by warps, in registers or not, by blocks, in parts. */
static const char mapped[] = OFFSETS "operator: add\noutputs: {sum: 'i32[k-1]', y: {type: 'i32[n]', value: x - r}}\n",
                  mapped_in_order[] =
                      OFFSETS "map: {p: 'u32(x) | 1', q: 'u32(x) + 1'}\noperator:\n  state: {p: u32, q: u32}\n"
                              "  combine: {p: a.p * b.p, q: a.q * b.p + b.q}\ninit: {p: 3, q: 1}\n"
                              "outputs: {y: {type: 'u32[n]', value: u32(x) - r.q}}\n";

Test(segments, mapped_by_blocks) { check_parts(mapped, "0", "1", "0"); }
Test(segments, mapped_by_vectors) { check_parts(mapped, "0", "2", "0"); }
Test(segments, mapped_by_warps) { check_parts(mapped, "32", "2", "0"); }
Test(segments, mapped_beside_a_queue) { check_parts(mapped, "32", "1", "1"); }
Test(segments, mapped_in_order) { check_parts(mapped_in_order, "32", "2", "0"); }
Test(segments, mapped_by_tiles) { check_offsets(mapped, "sm_90", "2"); }

/* Elements in front of all segments and behind them, which are on their way to a share and never used. */
Test(segments, elements_outside)
{
    static const int64_t size[] = { 9001, 4 }, ends[][4] = {
        { 0, 10, 100, 2500 }, { 37, 37, 4000, 8900 }, { 6000, 6000, 6000, 6000 }, { 1500, 1600, 8990, 9001 }
    };
    static const char *const stages[] = { "2", "3" };
    for (int s = 0; s < 2; s++) {
        const char *set[] = { "strategy",    "segreduce.offsets", "blocks_per_sm", "1",  "items", "1",
                              "copy_stages", stages[s],           "threads",       "64", NULL };
        struct harness h;
        cr_assert(harness_open(&h, "outside", sums, "sm_90", set), "%s", h.text);
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            harness_data_at(&h, size, 7 + i, 0, false);
            memcpy(h.input[1], ends[i], sizeof ends[i]);
            cr_assert(harness_check(&h, i % 2 ? "seed:5,late,stale,sms:2" : "seed:5,late,race,sms:2"),
                      "%s stages, row %zu: %s", stages[s], i, h.text);
        }
        harness_close(&h);
    }
}

/* Rows of no elements, although one of their dimensions has some: places are not divided by the other one. */
Test(segments, rows_of_no_elements)
{
    static const int64_t size[] = { 33, 0 };
    static const char *const strategy[] = { "segreduce.subwarp", "segreduce.block" };
    static const char spec[] =
        "kind: reduce\ninputs: {x: 'u16[1, n, m]'}\nover: [n, m]\nmap: u32(x)\noperator: add\ninit: 7\n"
        "outputs: {sum: {type: 'u32[1]', value: r}, y: {type: 'u32[n, 1, m]', value: u32(x)}}\n";
    for (int s = 0; s < 2; s++) {
        const char *set[] = { "strategy", strategy[s], "vector", "4", NULL };
        run_once(spec, set, size, 0, "seed:5,race", NULL);
    }
}

/* The identity of affine is neutral for finite factors only (inf * 0): no strategy combines it with an element. */
Test(segments, infinite_factors)
{
#define FACTORS_OF(state)                                                                                              \
    "map: {a: 'if x > 60 then f64(inf) else 1', b: 1}\noperator: affine\noutputs: {o: {value: " state ".b, type: "
#define FACTORS FACTORS_OF("r")
    static const char *const spec[] = {
        OFFSETS FACTORS "'f64[k-1]'}}\n",
        "kind: reduce\ninputs: {x: 'i16[m, n]'}\nover: n\n" FACTORS "'f64[m]'}}\n",
        "kind: reduce\ninputs: {x: 'i16[m, n]'}\nover: m\n" FACTORS "'f64[n]'}}\n",
        "kind: reduce\ninputs: {x: 'i16[m, n]'}\n" FACTORS "f64}}\n",
        "kind: scan\ninputs: {x: 'i16[m, n]'}\nover: [m, n]\n" FACTORS_OF("s") "'f64[m, n]'}}\n",
        "kind: scan\ninputs: {x: 'i16[m, n]'}\n" FACTORS_OF("s") "'f64[m, n]'}}\n",
        "kind: scan\ninputs: {x: 'i16[m, n]'}\nover: m\n" FACTORS_OF("s") "'f64[m, n]'}}\n",
    };
    static const struct {
        int spec;
        const char *strategy;
    } rows[] = { { 0, "segreduce.offsets" }, { 0, "segreduce.block" }, { 1, "segreduce.tile" },
                 { 1, "segreduce.subwarp" }, { 1, "segreduce.block" }, { 2, "segreduce.column" },
                 { 2, "segreduce.block" },   { 3, "reduce.block" },    { 3, "reduce.last_block" },
                 { 3, "reduce.two_kernel" }, { 4, "scan.block" },      { 4, "scan.resident" },
                 { 4, "scan.lookback" },     { 4, "scan.pipeline" },   { 4, "scan.three_pass" },
                 { 5, "scan.block" },        { 5, "scan.resident" },   { 5, "scan.lookback" },
                 { 6, "segscan.column" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static const int64_t size[][2] = { { 37, 5 }, { 40, 200 }, { 3, 33 }, { 40, 1 } };
        const bool across = rows[i].spec == 5 && !strcmp(rows[i].strategy, "scan.resident");
        const char *set[] = { "strategy", rows[i].strategy, across ? "across" : NULL, "1", NULL };
        struct harness h;
        cr_assert(harness_open(&h, "factors", spec[rows[i].spec], "sm_90", set), "%s", h.text);
        for (uint64_t s = 0; s < sizeof size / sizeof *size; s++) {
            harness_data_at(&h, size[s], s, 0, false);
            cr_expect(harness_check(&h, "seed:1,race,uninit"), "%s, row %d: %s", rows[i].strategy, (int)s, h.text);
        }
        harness_close(&h);
    }
}

/* A thread that holds as many values as a thread may: the stacks of the host executor have room for them. */
Test(segments, most_values_per_thread)
{
#define EXPONENTIALS(i, x) "  r" #i ": {map: '" x "', operator: logsumexp}\n"
#define SUM_OF(i)          "  o" #i ": {type: 'f32[k-1]', value: r" #i ".sum}\n"
    static const char spec[] =
        "kind: reduce\ninputs: {x: 'f32[n]', off: 'i64[k]'}\nsegments: {offsets: off}\nreductions:\n" EXPONENTIALS(
            0, "x") EXPONENTIALS(1, "x * x") EXPONENTIALS(2, "sin(x)") EXPONENTIALS(3, "cos(x)")
            EXPONENTIALS(4, "sin(x * 4)") EXPONENTIALS(5, "cos(x * 5)") EXPONENTIALS(6, "sin(x * 6)")
                EXPONENTIALS(7, "cos(x * 7)") "outputs:\n" SUM_OF(0) SUM_OF(1) SUM_OF(2) SUM_OF(3) SUM_OF(4) SUM_OF(5)
                    SUM_OF(6) SUM_OF(7);
    static const int64_t size[] = { 4000, 10 };
    const char *set[] = { "strategy", "segreduce.offsets", "threads", "64", "items", "16", "vector",
                          "4",        "copy_stages",       "0",       NULL };
    run_once(spec, set, size, 0, "seed:1", NULL);
}
