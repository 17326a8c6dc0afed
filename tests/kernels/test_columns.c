/* SPDX-License-Identifier: Apache-2.0 */
/* test_columns.c - reductions and scans along a dimension that is not the last, by the host executor: the cases that random
 * specs of that size seldom reach.
 */
#include <criterion/criterion.h>

#include "kernels/once.h"

/* Narrow columns whose rows begin anywhere in words: no byte after the arrays is read, and what the last vectors share is
 * stored once; ordered and not, in one part and in several, all places by a thread, boxes of a middle dimension. */
Test(columns, narrow_columns)
{
    static const int64_t sizes[][3] = { { 1, 5, 9 },   { 1, 700, 13 }, { 1, 129, 17 }, { 1, 1500, 70 },
                                        { 3, 37, 11 }, { 1, 3, 8209 }, { 1, 1, 15 },   { 2, 260, 33 } };
    static const char *const spec[] = {
        "kind: reduce\ninputs: {x: 'u8[d, m, n]'}\nover: m\noperator: max\noutputs: {r: 'u8[d, n]'}\n",
        "kind: reduce\ninputs: {x: 'i16[d, m, n]', y: 'i8[d, m, n]'}\nover: m\nmap: i32(x) * i32(y)\noperator: add\n"
        "outputs: {r: 'i32[d, n]'}\n",
        "kind: reduce\ninputs: {x: 'i8[d, m, n]'}\nover: m\nmap: i32(x)\n"
        "operator: {state: i32, identity: 0, combine: 'select(b == 0, a, b)'}\n"
        "outputs: {r: 'i32[d, n]'}\n",
    };
    for (int i = 0; i < 3 * 8; i++) {
        struct harness h;
        cr_assert(harness_open(&h, "narrow", spec[i / 8], "sm_90", NULL), "%s", h.text);
        harness_data_at(&h, sizes[i % 8], 3, 0, false);
        cr_assert(harness_check(&h, i % 2 ? "seed:1,race,uninit,sms:1" : "seed:2,race,uninit,sms:3"), "%d: %s\n%s",
                  i % 8, h.text, spec[i / 8]);
        cr_expect(strstr(ptxgen_host_case(h.host), "_shifted"), "%d: case %s", i, ptxgen_host_case(h.host));
        harness_close(&h);
    }
}

/* Columns of a thread that lie a block's threads apart: the last block's are there in part, rows begin anywhere, and places
 * are no multiple of what a round takes; all places of them, or what a row group has, in one part and in several. */
Test(columns, striped_columns)
{
    static const int64_t sizes[][3] = { { 1, 3, 1031 },  { 1, 1, 1025 },  { 2, 5, 1501 },  { 1, 9, 2049 },
                                        { 3, 2, 701 },   { 1, 700, 70 },  { 1, 131, 397 }, { 2, 65, 99 },
                                        { 3, 1000, 45 }, { 1, 1500, 97 }, { 2, 701, 99 } };
    static const char *const spec[] = {
        "kind: reduce\ninputs: {x: 'f32[d, m, n]', w: 'f32[m]', v: 'f32[n]'}\nover: m\nmap: x * w + v\noperator: add\n"
        "outputs: {r: 'f32[d, n]'}\n",
        "kind: reduce\ninputs: {x: {type: {a: i16, b: f64}, shape: [d, m, n]}}\nover: m\n"
        "reductions:\n  s: {map: x.b, operator: max}\n  i: {map: {value: x.a, index: index(m)}, operator: argmin}\n"
        "outputs: {s: 'f64[d, n]', at: {type: 'i64[d, n]', value: i.index}}\n",
        "kind: reduce\ninputs: {x: 'i32[d, m, n]'}\nover: m\n"
        "operator: {state: i32, identity: 0, combine: 'select(b == 0, a, b)'}\noutputs: {r: 'i32[d, n]'}\n",
    };
    const int n = sizeof sizes / sizeof *sizes;
    for (int i = 0; i < 3 * n; i++) {
        const bool deep = i / n != 1 && i % n < 8; /* small arrays; structures are not loaded for several columns */
        const char *name = i % n < 5 ? "columns_scalar" : deep ? "strips_deep" : "strips_scalar";
        run_once(spec[i / n], NULL, sizes[i % n], i % 4, "seed:1,race,uninit,guard,sms:1", name);
    }
}

/* Columns that threads have one by one though several fit: of small arrays, and of states of several words. */
Test(columns, single_columns)
{
    static const struct {
        const char *type, *map, *name;
        int64_t m, n;
    } row[] = {
        { "f32", "map: x\noperator: add\noutputs: {r: 'f32[n]'}\n", "strips_small", 120, 67 },
        { "f32", "map: x\noperator: add\noutputs: {r: 'f32[n]'}\n", "strips_deep", 129, 67 },
        { "f64", "map: x\noperator: welford\noutputs: {r: {type: 'f64[n]', value: r.mean}}\n", "single", 150, 68 },
        { "f64", "map: x\noperator: welford\noutputs: {r: {type: 'f64[n]', value: r.mean}}\n", "strips", 150, 132 }
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char spec[256];
        struct harness h;
        snprintf(spec, sizeof spec, "kind: reduce\ninputs: {x: '%s[m, n]'}\nover: m\n%s", row[i].type, row[i].map);
        cr_assert(harness_open(&h, "single", spec, "sm_90", NULL), "%s", h.text);
        harness_data_at(&h, (int64_t[]){ row[i].m, row[i].n }, 3, 0, false);
        cr_assert(harness_check(&h, "seed:1,race,uninit,guard,sms:1"), "%s", h.text);
        cr_expect(strcmp(ptxgen_host_case(h.host), row[i].name) == 0, "%zu: case %s", i, ptxgen_host_case(h.host));
        harness_close(&h);
    }
}

/* So many columns of two places that blocks take several groups of them. */
Test(columns, columns_in_turns)
{
    static const char spec[] =
        "kind: scan\ninputs: {x: 'i32[m, n]'}\nover: m\noperator: add\noutputs: {y: 'i32[m, n]'}\n";
    run_once(spec, NULL, (int64_t[]){ 2, 256 * 128 + 130 }, 1, "seed:1,race,uninit,sms:1", "column");
}

/* Rows of columns that are one vector: four f32, two f64, backwards too. */
Test(columns, rows_of_one_vector)
{
    static const struct {
        const char *type, *more;
        int64_t m, n;
    } row[] = { { "f32", "", 1501, 4 },
                { "f64", "mode: exclusive\n", 3001, 2 },
                { "i32", "direction: reverse\n", 1777, 4 } };
    const char *set[] = { "strategy", "scan.pipeline", "lookback_warps", "0", "threads", "64", "items", "1", NULL };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char spec[256];
        struct harness h;
        snprintf(spec, sizeof spec,
                 "kind: scan\ninputs: {x: '%s[m, n]'}\nover: m\noperator: add\n%soutputs: {y: '%s[m, n]'}\n",
                 row[i].type, row[i].more, row[i].type);
        cr_assert(harness_open(&h, "vector", spec, "sm_90", set), "%s", h.text);
        harness_data_at(&h, (int64_t[]){ row[i].m, row[i].n }, 3, 0, false);
        for (int seed = 0; seed < 3; seed++) {
            static const char *const modes[] = { "seed:1,race,uninit", "seed:2,late,stale", "seed:3,late,sms:2" };
            cr_assert(harness_check(&h, modes[seed]), "%s: %s", spec, h.text);
        }
        cr_expect(strcmp(ptxgen_host_case(h.host), "whole_row_pipeline") == 0, "case %s", ptxgen_host_case(h.host));
        harness_close(&h);
    }
}

/* What maps load beside the elements of their positions, and where results go: along the scanned axes and across them, with
 * indices of several axes, before and after the ends; and operators of several fields. */
static const char *const beside[] = {
    "inputs: {x: 'i32[d, m, n]'}\nover: [d, m]\nmap: x - x[0, 0, -1]\noperator: add\noutputs: {y: 'i32[n, m, d]'}\n",
    "inputs: {x: 'i16[d, m, n]'}\nover: [d, m]\nmap: i32(x[0, -1, 0]) * 3 - i32(x)\noperator: add\nmode: exclusive\n"
    "outputs: {y: 'i32[d, m, n]'}\n",
    "inputs: {x: 'i32[d, m, n]', w: 'i32[m]'}\nover: [d, m]\nmap: x * w + x[-1, 0, 1]\noperator: max\n"
    "direction: reverse\noutputs: {y: 'i32[d, m, n]'}\n",
    "inputs: {x: 'i32[d, m, n]'}\nover: [d, m]\nmap: {value: x, index: index(d) * 1000 + index(m)}\noperator: argmax\n"
    "mode: exclusive\noutputs: {y: {type: 'i32[d, m, n]', value: s.value}, at: {type: 'i64[d, m, n]', value: "
    "s.index}}\n",
    "inputs: {x: 'u8[d, m, n]', v: 'u8[d, m, n]'}\nover: [d, m]\nmap: x - v\noperator: add\ndirection: reverse\n"
    "outputs: {y: 'u32[d, m, n]'}\n",
    "inputs: {x: 'i32[d, m, n]', w: 'i32[m]', v: 'i32[n]'}\nover: [d, m]\nmap: x * w + v\noperator: add\n"
    "outputs: {y: 'i32[d, m, n]'}\n",
    "inputs: {x: 'i32[d, m, n]'}\nover: [d, m]\nmap: {a: x, b: 1}\n"
    "operator: {state: {a: i32, b: i32}, identity: {a: 1, b: 0}, combine: {a: a.a * b.a, b: a.b * b.a + b.b}}\n"
    "outputs: {y: {type: 'i32[d, m, n]', value: s.b}}\n",
};
enum { BESIDE = sizeof beside / sizeof *beside };

static void check_beside(const char *spec, const int64_t *size, const char *const *set, const char *mode)
{
    char text[512];
    snprintf(text, sizeof text, "kind: scan\n%s", spec);
    run_once(text, set, size, 0, mode, NULL);
}

/* Strips of 32 and of 8 columns, whose last tile is in part outside; more blocks than a strip's groups look at at once, so
 * that the first look is at several tiles, and fewer. */
Test(columns, strips_that_load_beside)
{
    static const int64_t sizes[][3] = { { 31, 40, 5 }, { 101, 7, 33 }, { 1, 1, 3 } };
    static const char *const rows[] = { "2", "8", "12" };
    for (int i = 0; i < BESIDE * 3; i++) {
        const char *threads = i % 3 == 2 ? "384" : "64";
        const char *set[] = {
            "strategy", "segscan.strips", "threads", threads, "items", "3", "rows", rows[i % 3], NULL
        };
        check_beside(beside[i / 3], sizes[i % 3], set, "seed:1,race,uninit,guard,sms:1");
        check_beside(beside[i / 3], sizes[i % 3], set, "seed:2,race,uninit,guard,sms:20");
    }
}

/* The same by the pipeline, whose rows and columns are known without a division, by look-back and by look-ahead. */
Test(columns, pipelines_that_load_beside)
{
    static const int64_t sizes[][3] = { { 31, 40, 5 }, { 101, 7, 30 }, { 1, 1, 3 }, { 29, 7, 8 } };
    for (int i = 0; i < BESIDE * 4; i++) {
        const char *looks = (i + i / 4) % 2 ? "4" : "0", *vector = i % 4 == 3 ? "2" : "1";
        const char *set[] = { "strategy", "scan.pipeline",  "threads", "256", "items", "3", "vector", vector, "stages",
                              "3",        "lookback_warps", looks,     NULL };
        if (strstr(beside[i / 4], "[0, ") || strstr(beside[i / 4], "[-1, "))
            continue; /* of arrays whose neighbours are read, no copies are made */
        check_beside(beside[i / 4], sizes[i % 4], set, "seed:1,race,uninit,guard,sms:2");
    }
}

/* Whole rounds are followed by half of one, a quarter, …; rounds of another number by masked ones. */
Test(columns, few_places_of_bytes)
{
    static const char spec[] = "kind: reduce\ninputs: {x: 'u8[m, n]'}\nover: m\nmap: 'i32(x)'\noperator: add\n"
                               "outputs: {o: 'i32[n]'}\n";
    static const char *const items[] = { "1", "3", "4" };
    for (int i = 0; i < 3; i++) {
        const char *set[] = { "strategy", "segreduce.column", "rows", "1", "items", items[i], NULL };
        struct harness h;
        cr_assert(harness_open(&h, "few", spec, "sm_90", set), "%s", h.text);
        for (int64_t m = 1; m <= 13; m += 2) {
            const int64_t size[8] = { m, 5 };
            harness_data_at(&h, size, 7, 0, 0);
            cr_expect(harness_check(&h, "seed:1,race,uninit,guard"), "%s items, %d rows: %s", items[i], (int)m, h.text);
        }
        harness_close(&h);
    }
}

/* Planes of few columns, and short rows, in shared memory: the last block has fewer, elements do not fill whole words, planes of an
 * even number of runs lie a run further apart, and wider elements are units themselves. */
Test(columns, segments_in_tiles)
{
    static const char *const spec[] = {
        "kind: scan\ninputs: {x: 'i8[d, m, n]'}\nover: m\noperator: max\nmap: x * x\ndirection: reverse\n"
        "outputs: {y: 'i8[d, m, n]', t: {type: 'i8[d, n]', value: total}}\n",
        "kind: scan\ninputs: {x: 'i16[d, m, n]', z: 'f64[d, m, n]', w: 'i32[d]'}\nover: m\nmode: exclusive\n"
        "operator: {state: i64, identity: 0, combine: 'select(b == 0, a, b)'}\nmap: i64(x) + index(m) + i64(w)\n"
        "outputs: {y: 'i64[d, m, n]', r: {type: 'f64[d, m, n]', value: z + f64(w)}}\n",
        "kind: scan\ninputs: {x: 'u8[d, m, n]', z: 'u8[d, m, n]'}\nover: [m, n]\noperator: max\nmap: x - z\n"
        "outputs: {y: 'u8[d, m, n]', at: {type: 'i16[d, m, n]', value: 'i16(index(n)) + i16(s)'}}\n",
    };
    static const int64_t sizes[][3] = {
        { 700, 40, 4 }, { 1333, 6, 6 }, { 1031, 9, 3 }, { 613, 32, 1 }, { 2001, 5, 2 }
    };
    static const char *const pinned[] = { "strategy", "segscan.tile", "threads", "64", "vector", "2", NULL };
    for (int i = 0; i < 2 * 3 * 5; i++) {
        const int64_t *size = sizes[i % 5];
        struct harness h;
        cr_assert(harness_open(&h, "short", spec[i / 5 % 3], i % 4 ? "sm_90" : "sm_75", i < 15 ? NULL : pinned), "%s",
                  h.text);
        harness_data_at(&h, (int64_t[]){ size[0], i / 5 % 3 < 2 ? size[1] : size[1] / 2, size[2] }, 3, 0, false);
        cr_expect(harness_check(&h, i % 2 ? "seed:1,race,uninit,guard,sms:1" : "seed:2,race,uninit,sms:1"),
                  "%d: %s\n%s", i, h.text, spec[i / 5 % 3]);
        const bool large = i == 5 || i == 8; /* too few planes of 26 bytes per element */
        cr_expect_eq(strncmp(ptxgen_host_case(h.host), "tile", 4) == 0, !large, "%d: case %s", i,
                     ptxgen_host_case(h.host));
        harness_close(&h);
    }
}

/* So many arrays that shared memory has no room for tiles of them. */
Test(columns, arrays_beyond_tiles)
{
    char spec[1024] = "kind: scan\ninputs:\n", map[256] = "x0";
    for (int i = 0; i < 20; i++)
        snprintf(spec + strlen(spec), sizeof spec - strlen(spec), "  x%d: 'f64[d, m, n]'\n", i);
    for (int i = 1; i < 20; i++)
        snprintf(map + strlen(map), sizeof map - strlen(map), " + x%d", i);
    snprintf(spec + strlen(spec), sizeof spec - strlen(spec),
             "over: m\noperator: max\nmap: %s\noutputs: {y: 'f64[d, m, n]'}\n", map);
    struct harness h;
    cr_assert(harness_open(&h, "many", spec, "sm_75", NULL), "%s", h.text); /* 64 KB */
    harness_data_at(&h, (int64_t[]){ 300, 5, 3 }, 3, 0, false);
    cr_expect(harness_check(&h, "seed:1,race,uninit,sms:1"), "%s", h.text);
    harness_close(&h);
}

static const char *const chunked[] = {
    "inputs: {x: 'i32[d, m, n]'}\nover: m\noperator: add\noutputs: {y: 'i32[d, m, n]', t: 'i32[d, n]'}\n",
    "inputs: {x: 'f32[d, m, n]'}\nover: m\noperator: welford\nmode: exclusive\n"
    "outputs: {y: {type: 'f32[d, m, n]', value: s.mean}, v: {type: 'f32[d, n]', value: total.m2 / total.n}}\n",
    "inputs: {x: 'u8[d, m, n]', w: 'u8[m]'}\nover: [d, m]\ndirection: reverse\nmap: x * w + x[0, 1, 0]\noperator: max\n"
    "outputs: {y: {type: 'u8[d, m, n]', value: s}}\n",
    "inputs: {x: 'i32[d, m, n]'}\nover: m\nmap: {a: x, b: 1}\n"
    "operator: {state: {a: i32, b: i32}, identity: {a: 1, b: 0}, combine: {a: a.a * b.a, b: a.b * b.a + b.b}}\n"
    "init: {a: 3, b: 5}\nmode: exclusive\noutputs: {y: {type: 'i32[d, m, n]', value: s.b}}\n",
    "inputs: {x: 'i64[d, m, n]'}\nover: d\noperator: {state: i64, combine: 'select(b == 0, a, b)'}\n"
    "outputs: {y: 'i64[d, m, n]', t: 'i64[m, n]'}\n",
};

/* Chunks of columns, of which the last one is in part outside; a single one; more of them than a block that scans totals has
 * threads; wide and ordered states, totals, columns without elements. */
Test(columns, chunks)
{
    static const int64_t sizes[][3] = { { 1, 500, 3 }, { 2, 37, 33 },  { 129, 5, 7 },  { 1, 1, 70 },
                                        { 3, 0, 5 },   { 1, 1301, 2 }, { 37, 11, 13 }, { 2, 2, 2 } };
    for (size_t i = 0; i < sizeof chunked / sizeof *chunked; i++)
        for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
            const char *set[] = { "strategy", "segscan.three_pass", "threads",       n % 2 ? "64" : "32",
                                  "items",    n % 3 ? "3" : "4",    "blocks_per_sm", n % 3 ? "1" : "8",
                                  NULL };
            char text[700];
            if (sizes[n][1] == 0 && strstr(chunked[i], "total."))
                continue; /* a mean of nothing */
            snprintf(text, sizeof text, "kind: scan\n%s", chunked[i]);
            run_once(text, set, sizes[n], (int)n % 3, "seed:1,race,uninit,guard,sms:2", "chunks");
            run_once(text, set, sizes[n], 0, "seed:2,weak,race,sms:9", "chunks");
        }
}

/* ---- mapped with their results: columns stay in registers of a block or a cluster of blocks ----------------------- */

#define PLANES(type) "kind: reduce\ninputs: {x: '" type "[b, m, n]'}\nover: m\n"

static const char *const mapped[] = {
    PLANES("f32") "operator: welford\noutputs: {y: {type: 'f32[b, m, n]', value: x - r.mean}, t: {type: 'f32[b, n]', "
                  "value: r.m2}}\n",
    PLANES("f16") "operator: logsumexp\nmap: f32(x)\noutputs: {y: {type: 'f32[b, m, n]', value: 'exp(f32(x) - r.max) / "
                  "r.sum'}}\n",
    PLANES("i8") "operator: max\ninit: 5\noutputs: {y: {type: 'i8[b, m, n]', value: r - x}, z: {type: 'i32[b, m, n]', "
                 "value: 'i32(x) * 3'}}\n",
    /* fields of two widths, values of columns and of planes, indices, an output in another order */
    "kind: reduce\ninputs: {x: 'f64[b, m, n]', w: 'i32[b, m, n]', p: 'i32[n]', q: 'i32[b]'}\nover: m\n"
    "reductions: {a: {map: x, operator: max}, s: {map: 'w * p + q + i32(index(m))', operator: add}}\n"
    "outputs: {y: {type: 'f64[b, m, n]', value: x - a}, t: {type: 'i32[n, m, b]', value: w + s - i32(index(n))}, "
    "s: 'i32[b, n]'}\n",
    /* vectors of columns, each of which has values and an index of its own */
    "kind: reduce\ninputs: {x: 'i32[b, m, n]', p: 'i32[n]', q: 'i32[b]'}\nover: m\noperator: add\nmap: 'x * p + "
    "i32(index(n))'\n"
    "outputs: {y: {type: 'i32[b, m, n]', value: 'x + r * p - q + i32(index(n))'}, s: 'i32[b, n]', "
    "w: {type: {a: i32, b: i16}, shape: [b, m, n], value: {a: x - r, b: i16(x)}}}\n",
    /* neighbours, and a table */
    "kind: reduce\ninputs: {x: 'i32[b, m, n]', c: 'i32[m]'}\nover: m\noperator: add\nboundary: wrap\n"
    "map: 'x[0, -1, 0] - x[0, 0, 1] + at(c, index(m))'\noutputs: {y: {type: 'i32[b, m, n]', value: x - r}}\n",
    PLANES("i32") "operator: min\noutputs: {y: {type: 'i32[b, m, n]', value: '2 * x[0, 0, -1] - r * x[0, 0, 1] + x[0, "
                  "1, 0]'}}\n",
    /* vectors that go on in the next row */
    "kind: reduce\ninputs: {q: 'i32[b]', x: 'i32[m, b, n]', p: 'i32[n]'}\nover: m\noperator: add\n"
    "map: 'x * p + q + i32(index(n)) + 64 * i32(index(b))'\n"
    "outputs: {y: {type: 'i32[m, b, n]', value: 'x * q - r + p'}, z: {type: 'i32[n, m, b]', value: 'r - x'}, "
    "s: 'i32[n, b]'}\n",
};

/* b, m, n: columns of one place, as many places as a team has at most and one less, columns that fill a warp or do not, vectors
 * of columns and one more vector than a warp has; first, where rows are no whole vectors, but all columns are. */
static const int64_t mapped_sizes[][3] = { { 4, 5, 7 }, { 2, 8, 32 }, { 3, 7, 31 }, { 1, 5, 133 },
                                           { 5, 8, 3 }, { 0, 3, 4 },  { 2, 8, 64 }, { 2, 3, 4 },
                                           { 1, 1, 8 }, { 3, 7, 36 }, { 1, 1, 1 } };

static void check_case(const char *text, const char *arch, const char *const *set, const int64_t *size, int n)
{
    static const char *const modes[] = { "seed:1,race,uninit,guard", "seed:2,weak,race", "seed:3,stale,late,guard" };
    struct harness h;
    cr_assert(harness_open(&h, "mapped columns", text, arch, set), "%s\n%s", h.text, text);
    harness_data_at(&h, size, 5 + (uint64_t)n, n % 3, 0);
    cr_expect(harness_check(&h, modes[n % 3]), "size %d: %s\n%s", n, h.text, text);
    harness_close(&h);
}

static void check_mapped(const char *threads, const char *lanes, const char *items, const char *cluster,
                         const char *max_grid)
{
    const char *set[] = {
        "strategy", "segreduce.resident", "threads", threads, "lanes", lanes, "items", items, "cluster",
        cluster,    "max_grid",           max_grid,  NULL
    };
    for (int i = 0; i < (int)(sizeof mapped / sizeof *mapped); i++)
        for (int n = 0; n < (int)(sizeof mapped_sizes / sizeof *mapped_sizes); n++)
            check_case(mapped[i], *cluster > '1' ? "sm_90" : "sm_75", set, mapped_sizes[n], n);
}

/* By a kernel that reads them again: rows of columns that fill a warp or do not, whole vectors or not; places that fill a strip or
 * do not. */
Test(columns, mapped_after)
{
    static const int64_t sizes[][3] = { { 1, 40, 64 }, { 2, 17, 33 }, { 1, 3, 31 }, { 3, 16, 36 },
                                        { 1, 5, 40 },  { 2, 70, 32 }, { 0, 4, 64 }, { 2, 1, 128 } };
    const char *set[] = { "strategy", "segreduce.column", NULL };
    for (int i = 0; i < (int)(sizeof mapped / sizeof *mapped); i++)
        for (int n = 0; n < (int)(sizeof sizes / sizeof *sizes); n++)
            check_case(mapped[i], "sm_80", set, sizes[n], n);
}

/* Threads alone are pinned: shapes whose cluster has more blocks than these have warps are left out. */
Test(columns, mapped_by_so_many_threads)
{
    const char *set[] = { "strategy", "segreduce.resident", "threads", "128", NULL };
    for (int n = 0; n < 3; n++)
        check_case(mapped[n], "sm_90", set, (const int64_t[]){ 2, 33, 36 + n }, n);
}

/* What the user sets for other strategies, and states that leave shared memory no room: another case takes the columns. */
Test(columns, mapped_with_other_settings)
{
    static const char *const set[][3] = { { "threads", "64", NULL },
                                          { "vector", "4", NULL },
                                          { "max_grid", "4", NULL },
                                          { "min_blocks", "8", NULL },
                                          { NULL } };
    static const char many[] =
        PLANES("f64") "reductions: {a: {map: x, operator: welford}, b: {map: 2 * x, operator: welford}, "
                      "c: {map: 3 * x, operator: welford}, d: {map: x * x, operator: welford}, e: {map: "
                      "4 * x, operator: welford}}\noutputs: {y: {type: 'f64[b, m, n]', value: x - a.mean - "
                      "b.mean - c.mean - d.mean - e.mean}}\n";
    for (int i = 0; i < 5; i++) {
        struct harness h;
        const int64_t size[] = { 1, 200, 100 };
        cr_assert(harness_open(&h, "mapped columns", i < 4 ? mapped[0] : many, i < 4 ? "sm_90" : "sm_75",
                               i < 4 ? set[i] : NULL),
                  "%s", h.text);
        harness_data_at(&h, size, 3, 0, 0);
        cr_expect(harness_check(&h, "seed:1,race,uninit,sms:1"), "%d: %s", i, h.text);
        harness_close(&h);
    }
}

/* Rows of pairs: vectors of two are for long columns. */
Test(columns, mapped_in_pairs)
{
    static const char spec[] = PLANES("f32") "operator: add\noutputs: {y: {type: 'f32[b, m, n]', value: x - r}}\n";
    run_once(spec, NULL, (int64_t[]){ 1, 16, 66 }, 0, "seed:1,race,uninit,guard,sms:1", "columns_16_scalar");
    run_once(spec, NULL, (int64_t[]){ 1, 200, 66 }, 0, "seed:1,race,uninit,guard,sms:1", "columns_256");
}

Test(columns, mapped_by_a_warp) { check_mapped("32", "0", "8", "1", "0"); }
Test(columns, mapped_by_warps_of_a_block) { check_mapped("128", "1", "8", "1", "0"); }
Test(columns, mapped_by_two_warps) { check_mapped("128", "2", "4", "1", "1"); }
Test(columns, mapped_by_a_block) { check_mapped("64", "0", "4", "1", "0"); }
Test(columns, mapped_by_blocks_that_take_turns) { check_mapped("128", "0", "2", "1", "2"); }
Test(columns, mapped_by_a_cluster) { check_mapped("64", "0", "2", "2", "4"); }
Test(columns, mapped_by_a_larger_cluster) { check_mapped("128", "0", "1", "4", "0"); }
